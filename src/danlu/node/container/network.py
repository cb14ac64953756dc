"""A network of a job's own, as the runtime is asked for it."""

from __future__ import annotations

from typing import Any

from danlu.node.container.api import Api, RuntimeRefused, part
from danlu.node.container.box import OWNER_LABEL

NOT_FOUND = 404


def find(api: Api, name: str) -> dict[str, Any] | None:
    """The network `name`; None if there is none."""
    try:
        found = api.call("GET", f"/networks/{part(name)}")
    except RuntimeRefused as refused:
        if refused.status == NOT_FOUND:
            return None
        raise
    return found if isinstance(found, dict) else None


def make(api: Api, name: str, owner: str) -> dict[str, Any]:
    """The network `name`, made if it is not there; what the runtime says of it."""
    found = find(api, name)
    if found is None:
        body = {"Name": name, "Driver": "bridge", "Labels": {OWNER_LABEL: owner}}
        api.call("POST", "/networks/create", None, {**body, "CheckDuplicate": True})
        found = find(api, name)
    return found or {}
