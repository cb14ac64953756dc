"""IAM's calls that clients of ModelArts make: projects, domains, tokens."""

from __future__ import annotations

import hashlib
import secrets

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from danlu.faces.http.call import Call
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import BodyLimits, Describe, Parameter, Routes
from danlu.faces.http.server import Server
from danlu.model.errors import Denied
from danlu.model.identity import Secret, User, Workspace
from danlu.wire import iam as wire

TOKEN_S = 24 * 3600
SIGN_IN_BYTES = 64 << 10

_hasher = PasswordHasher()
_NO_ONE = (
    "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$"
    "Dg2mNnZnUhOnLwFkKRVz3WBVTXzsGqRjMOQd3nKgKLs"
)
"""A hash that no password has: an unknown name takes as long to refuse as a known one."""

TAG = "identity"

routes = Routes()


@routes(
    "GET",
    "/v3/projects",
    rule=Rule("iam:projects:listProjects", Access.CALLER),
    about=Describe(
        "The caller's project",
        {200: wire.PROJECTS_SCHEMA},
        parameters=(Parameter("name", about="the region's name"),),
        errors=(400,),
        tag=TAG,
    ),
)
async def keystone_list_projects(server: Server, call: Call) -> Answer:
    """The caller's project, under the name that was asked for."""
    del server
    call.only("name", "domain_id", "parent_id", "enabled", "is_domain", "page", "per_page")
    return json_reply(wire.projects(call.caller, call.query.get("name")))


@routes(
    "GET",
    "/v3/auth/domains",
    rule=Rule("iam:domains:listDomains", Access.CALLER),
    about=Describe("The caller's domain", {200: wire.DOMAINS_SCHEMA}, errors=(400,), tag=TAG),
)
async def keystone_list_auth_domains(server: Server, call: Call) -> Answer:
    """The caller's domain."""
    del server
    call.only()
    return json_reply(wire.domains(call.caller.user))


@routes(
    "POST",
    "/v3/auth/tokens",
    rule=Rule("iam:tokens:create", Access.PUBLIC),
    body=BodyLimits(SIGN_IN_BYTES),
    about=Describe(
        "Sign in with a password; the token is in X-Subject-Token",
        {201: wire.TOKEN_SCHEMA},
        body=wire.SIGN_IN.schema(),
        parameters=(Parameter("nocatalog"),),
        errors=(400, 401, 403, 429),
        reply_headers=("X-Subject-Token",),
        tag=TAG,
    ),
)
async def keystone_create_user_token(server: Server, call: Call) -> Answer:
    """Sign in. Failures are counted for the account and for the address."""
    call.only("nocatalog")
    wanted = wire.sign_in(call.json())
    client = call.scope.get("client")
    names = ((server.by_account, wanted.user), (server.by_address, client[0] if client else ""))
    for limiter, name in names:
        limiter.check(name)
    user = await _verified(server, wanted)
    if user is None:
        for limiter, name in names:
            limiter.failed(name)
        raise Denied("password-wrong")
    server.by_account.succeeded(wanted.user)
    workspace = _scope(server, user, wanted)
    token = f"dlu_{secrets.token_urlsafe(32)}"
    now = server.now()
    expires_at = now + TOKEN_S * 1000
    digest = hashlib.sha256(token.encode()).hexdigest()
    await server.durable(server.platform.records.add_token(digest, user.id, expires_at))
    body = wire.token(user, workspace, now, expires_at)
    return json_reply(body, 201, {"X-Subject-Token": token})


async def _verified(server: Server, wanted: wire.SignIn) -> User | None:
    """The user whose password it is. At most a core's worth of hashing at a time."""
    user = server.platform.records.user(wanted.user)
    known = user if user is not None and user.password_hash else None
    if known is not None and wanted.domain not in ("", known.name, known.domain_id):
        known = None
    kept = known.password_hash if known else _NO_ONE
    async with server.passwords:
        matches = await server.on_worker(_matches, kept, wanted.password)
    return known if matches else None


def _matches(kept: str, password: Secret) -> bool:
    try:
        return _hasher.verify(kept, password.reveal().encode("utf-8", "surrogatepass"))
    except (Argon2Error, InvalidHashError):
        return False


def _scope(server: Server, user: User, wanted: wire.SignIn) -> Workspace:
    """The project that the token is for: the user's own, by id or by a region's name."""
    workspace = server.platform.records.workspace(user.workspace)
    if workspace is None or wanted.project_id not in ("", workspace.id):
        asked = wanted.project_id or user.workspace
        raise Denied("project-denied", http=403, project=asked, own=user.workspace)
    return workspace
