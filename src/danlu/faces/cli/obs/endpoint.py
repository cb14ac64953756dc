"""Which object store `danlu obs` talks to: the server's, or one that was named."""

from __future__ import annotations

import os
from collections.abc import Mapping

from danlu.faces.cli.client import Endpoint, base_path, connection
from danlu.faces.cli.failure import DENIED, MISSING, Failure
from danlu.faces.cli.obs.objects import Objects
from danlu.faces.cli.obs.signer import Signer
from danlu.faces.cli.session import Session

VARIABLE = "DANLU_OBS_ENDPOINT"


def objects(session: Session, named: str | None) -> Objects:
    """The store that was named, by option or variable; otherwise that of the server."""
    url = named or os.environ.get(VARIABLE, "")
    return _elsewhere(url, os.environ) if url else _of_server(session)


def _elsewhere(url: str, environ: Mapping[str, str]) -> Objects:
    for access, secret in (
        ("DANLU_ACCESS_KEY", "DANLU_SECRET_KEY"),
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    ):
        if environ.get(access) and environ.get(secret):
            keys = (environ[access], environ[secret])
            break
    else:
        raise Failure(DENIED, "obs-keys", url=url)
    token = environ.get("AWS_SESSION_TOKEN", "")
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION", "")
    ca = environ.get("AWS_CA_BUNDLE", "")
    return _opened(Endpoint(url, "", *keys, ca=ca), token, region)


def _of_server(session: Session) -> Objects:
    server = session.client().endpoint
    url = server.obs or str(session.get("status").get("obs", ""))
    if not url:
        raise Failure(MISSING, "obs-no-door", api=server.api)
    keys = (server.access_key, server.secret_key)
    return _opened(Endpoint(url, "", *keys, ca=server.ca, pin=server.pin))


def _opened(endpoint: Endpoint, token: str = "", region: str = "") -> Objects:
    connection(endpoint)  # a bad address is told of at once
    signer = Signer(endpoint.access_key, endpoint.secret_key, token, region)
    url = endpoint.api.rstrip("/")
    return Objects(lambda: connection(endpoint), signer, base=base_path(endpoint.api), url=url)
