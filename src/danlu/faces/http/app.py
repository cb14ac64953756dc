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
    danlu_job,
    danlu_log,
    danlu_server,
    iam,
    job,
    job_log,
)
from danlu.faces.http.edge import Edge, language
from danlu.faces.http.reply import error_reply
from danlu.faces.http.route import DeclaredRoute
from danlu.faces.http.server import Server
from danlu.model.errors import Missing, PlatformError, Refused
from danlu.wiring import Running

FACES = (job, danlu_job, danlu_log, job_log, catalog, iam, danlu_server, danlu_code)
"""The files with routes, the busiest first: paths are matched in order."""

SECURITY = {
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "SDK-HMAC-SHA256, as Huawei Cloud's SDKs sign; with X-Sdk-Date.",
    },
    "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
}


def create_app(running: Running) -> FastAPI:
    """The application that serves `running`. Its state holds the `Server`."""
    app = FastAPI(
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
    server = Server(running)
    app.state.server = server
    app.add_middleware(Edge, gate=server.gate)
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
    """JSON for paths and methods that there are not."""
    scope = request.scope
    path, method = scope["path"], scope["method"]
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    error: PlatformError
    if status == 405:
        error = Refused("method-not-allowed", http=405, path=path, method=method)
    else:
        error = Missing("no-such-path", path=path, method=method)
    reply = error_reply(error, scope["request_id"], language(scope))
    response = Response(reply.body, reply.status, media_type=reply.media.decode())
    if status == 405:
        response.headers["allow"] = ", ".join(_methods(request.app, path))
    return response


def _methods(app: FastAPI, path: str) -> list[str]:
    """What `path` takes."""
    routes = (known for known in app.router.routes if isinstance(known, DeclaredRoute))
    return sorted({known.method for known in routes if known.path_regex.match(path)})
