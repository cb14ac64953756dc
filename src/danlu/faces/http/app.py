"""The HTTP application: every route, FastAPI's books, and errors for what has no route."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException

import danlu
from danlu.faces.http import (
    catalog,
    danlu_code,
    danlu_freeze,
    danlu_job,
    danlu_lines,
    danlu_log,
    danlu_notebook,
    danlu_notebook_open,
    danlu_outputs,
    danlu_server,
    execute,
    iam,
    image,
    job,
    job_log,
    notebook,
    ssh,
    ssh_key,
)
from danlu.faces.http.edge import Edge, missing
from danlu.faces.http.paths import Paths
from danlu.faces.http.route import DeclaredRoute
from danlu.faces.http.server import Server
from danlu.wiring import Running

FACES = (
    job,
    danlu_job,
    danlu_log,
    danlu_notebook,
    danlu_notebook_open,
    danlu_lines,
    danlu_outputs,
    job_log,
    notebook,
    catalog,
    image,
    iam,
    danlu_server,
    danlu_code,
    danlu_freeze,
    execute,
    ssh,
    ssh_key,
)
"""The files with routes."""

SECURITY = {
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "SDK-HMAC-SHA256, as Huawei Cloud's SDKs sign; with X-Sdk-Date.",
    },
    "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
}


class Application(FastAPI):
    """FastAPI behind our edge: requests for our routes never pass its middleware."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """As Starlette does it; FastAPI would ask the environment about telemetry each time."""
        scope["app"] = self
        if self.middleware_stack is None:
            self.middleware_stack = self.build_middleware_stack()
        await self.middleware_stack(scope, receive, send)

    def build_middleware_stack(self) -> Any:
        """The edge around whatever FastAPI would put around its router."""
        server: Server = self.state.server
        return Edge(super().build_middleware_stack(), server.gate, self.state.paths)


def create_app(running: Running) -> FastAPI:
    """The application that serves `running`. Its state holds the `Server`."""
    app = Application(
        title="Danlu",
        version=danlu.__version__,
        description="Training jobs, in ModelArts' API and in Danlu's own.",
        # Served by a route of ours; the documentation pages would load scripts from a CDN.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _unrouted},
    )
    app.state.server = Server(running)
    app.state.paths = Paths[DeclaredRoute]()
    for face in FACES:
        face.routes.register(app)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # FastAPI's documented way
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.router.routes,
        )
        schema.setdefault("components", {})["securitySchemes"] = SECURITY
        app.openapi_schema = schema
    return app.openapi_schema


async def _unrouted(request: Request, problem: Exception) -> Response:
    """JSON for paths that there are not."""
    del problem
    reply = missing(request.scope)
    return Response(reply.body, reply.status, media_type=reply.media.decode())
