"""IAM's projects, domains and tokens (Keystone v3, as Huawei's clients use it)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from danlu.model.errors import Invalid
from danlu.model.identity import Caller, Secret, User, Workspace
from danlu.model.rules import at_most, printable
from danlu.wire.modelarts_training_watch import instant
from danlu.wire.shape import (
    BOOLEAN,
    STRING,
    Listing,
    Schema,
    Shape,
    Text,
    Unsupported,
    listing,
    reply,
)

PASSWORD_BYTES = 1024
REGION = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
NAME_CHARS = 255

_NAMED = Shape({"id": Text(), "name": Text()})

_PASSWORD_USER = Shape(
    {"name": Text(), "id": Text(), "password": Text(), "domain": _NAMED},
    required=("name", "password"),
    remedy={"name": "say who signs in", "password": "give the user's password"},
)

_IDENTITY = Shape(
    {
        "methods": Listing(Text(("password",)), most=4),
        "password": Shape({"user": _PASSWORD_USER}, required=("user",)),
        "token": Unsupported("sign in with a password"),
        "totp": Unsupported("sign in with a password"),
        "assume_role": Unsupported("sign in with a password"),
        "hw_ak_sk": Unsupported("sign the request with the key instead"),
    },
    required=("methods", "password"),
    remedy={"methods": 'send ["password"]', "password": "say who signs in"},
)

_SCOPE = Shape({"project": _NAMED, "domain": _NAMED})

SIGN_IN = Shape(
    {"auth": Shape({"identity": _IDENTITY, "scope": _SCOPE}, required=("identity",))},
    required=("auth",),
    remedy={"auth": "send auth.identity with methods and password"},
)


@dataclass(frozen=True, slots=True)
class SignIn:
    """A request for a token. Project and domain are what the token is wanted for; empty = own."""

    user: str
    password: Secret
    domain: str = ""
    project_id: str = ""
    project_name: str = ""


def sign_in(body: Mapping[str, Any]) -> SignIn:
    """What `POST /v3/auth/tokens` asks for; Invalid where it asks for another method."""
    auth = SIGN_IN.read(body)["auth"]
    identity, scope = auth["identity"], auth.get("scope", {})
    if "password" not in identity["methods"]:
        raise Invalid("field-missing", field="auth.identity.methods", remedy='send ["password"]')
    user = identity["password"]["user"]
    field = "auth.identity.password.user"
    if "\0" in user["password"]:
        # Said without the value.
        raise Invalid(
            "field-type",
            field=f"{field}.password",
            found="a string with a NUL character",
            expected="a string without one",
        )
    printable(f"{field}.name", user["name"])
    at_most(f"{field}.name", user["name"], NAME_CHARS, "characters", "check it")
    at_most(f"{field}.password", user["password"], PASSWORD_BYTES, "bytes", "check it")
    project = scope.get("project", {})
    domain = user.get("domain", {})
    return SignIn(
        user=user["name"],
        password=Secret(user["password"]),
        domain=domain.get("name") or domain.get("id") or "",
        project_id=project.get("id", ""),
        project_name=project.get("name", ""),
    )


def token(user: User, workspace: Workspace, issued_at: int, expires_at: int) -> dict[str, Any]:
    """The body that goes with a new token; the token itself travels in X-Subject-Token."""
    domain = _domain(user)
    return {
        "token": {
            "catalog": [],
            "methods": ["password"],
            "issued_at": _instant(issued_at),
            "expires_at": _instant(expires_at),
            "project": {"id": workspace.id, "name": workspace.region, "domain": domain},
            "roles": [{"id": "0", "name": "te_admin"}],
            "user": {
                "id": user.id,
                "name": user.name,
                "password_expires_at": "",
                "domain": domain,
            },
        }
    }


def projects(caller: Caller, name: str | None) -> dict[str, Any]:
    """The caller's project. SDKs look it up by the name of the region they are set to and insist
    on exactly one; this server stands for whatever region they were told.
    """
    asked = caller.workspace.region if name is None else name
    shown = [asked] if name is None or REGION.fullmatch(asked) else []
    return {
        "projects": [
            {
                "id": caller.workspace.id,
                "name": region,
                "description": "",
                "domain_id": caller.user.domain_id,
                "parent_id": caller.user.domain_id,
                "enabled": True,
                "is_domain": False,
                "links": {"self": ""},
            }
            for region in shown
        ],
        "links": {"self": "", "previous": None, "next": None},
    }


def domains(user: User) -> dict[str, Any]:
    """The caller's domain (account)."""
    described = {"enabled": True, "description": "", "links": {"self": ""}}
    return {"domains": [{**_domain(user), **described}], "links": {"self": ""}}


def _domain(user: User) -> dict[str, str]:
    return {"id": user.domain_id, "name": user.name}


def _instant(at: int) -> str:
    """Keystone writes microseconds."""
    return instant(at).removesuffix("Z") + "000Z"


_DOMAIN = {"id": STRING, "name": STRING}
_LINKS = {"type": "object"}

TOKEN_SCHEMA: Schema = reply(
    {
        "token": reply(
            {
                "catalog": listing({"type": "object"}),
                "methods": listing(STRING),
                "issued_at": STRING,
                "expires_at": STRING,
                "project": reply({"id": STRING, "name": STRING, "domain": reply(_DOMAIN)}),
                "roles": listing(reply(_DOMAIN)),
                "user": reply(
                    {
                        "id": STRING,
                        "name": STRING,
                        "password_expires_at": STRING,
                        "domain": reply(_DOMAIN),
                    }
                ),
            }
        )
    }
)

PROJECTS_SCHEMA: Schema = reply(
    {
        "projects": listing(
            reply(
                {
                    "id": STRING,
                    "name": STRING,
                    "description": STRING,
                    "domain_id": STRING,
                    "parent_id": STRING,
                    "enabled": BOOLEAN,
                    "is_domain": BOOLEAN,
                    "links": _LINKS,
                }
            )
        ),
        "links": _LINKS,
    }
)

DOMAINS_SCHEMA: Schema = reply(
    {
        "domains": listing(
            reply({**_DOMAIN, "enabled": BOOLEAN, "description": STRING, "links": _LINKS})
        ),
        "links": _LINKS,
    }
)
