"""A network of its own for each attempt of a job, in which its tasks find each other by name and
nobody else's find them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from danlu.model.errors import EngineError
from danlu.node.container import network
from danlu.node.container.api import Api, RuntimeAway, RuntimeRefused, part
from danlu.node.container.box import OWNER_LABEL

FIRST_HOST = 10
"""Addresses below belong to the gateway and to whoever the runtime gives one to by itself."""


def host_names(job_id: str, count: int) -> tuple[str, ...]:
    """What the tasks of a job are called in its network, as in ModelArts' instance names."""
    return tuple(f"modelarts-job-{job_id}-worker-{index}" for index in range(count))


class Networks:
    """The networks that one engine has made, told by a label."""

    def __init__(self, api: Api, owner: str) -> None:
        self._api = api
        self._owner = owner

    def make(self, name: str, count: int) -> tuple[str, ...]:
        """The network `name`, made if it is not there; an address in it for each of `count` tasks.

        EngineError where it cannot be had.
        """
        try:
            found = network.make(self._api, name, self._owner)
        except (RuntimeAway, RuntimeRefused) as error:
            raise EngineError("engine-failed", detail=f"network '{name}': {error}") from error
        return _addresses(name, found, count)

    def remove(self, name: str) -> None:
        """Remove it, if it is there and nobody is in it any more."""
        with suppress(RuntimeAway, RuntimeRefused):
            self._api.call("DELETE", f"/networks/{part(name)}")

    def known(self) -> Sequence[str]:
        """The names of all of them. Raises RuntimeAway."""
        found = self._api.call("GET", "/networks") or ()
        return [
            str(one.get("Name"))
            for one in found
            if (one.get("Labels") or {}).get(OWNER_LABEL) == self._owner
        ]


def _addresses(name: str, found: dict[str, Any], count: int) -> tuple[str, ...]:
    for one in (found.get("IPAM") or {}).get("Config") or ():
        with suppress(ValueError):
            subnet = ipaddress.ip_network(str(one.get("Subnet")), strict=False)
            if subnet.version == 4 and subnet.num_addresses > FIRST_HOST + count:
                first = subnet.network_address + FIRST_HOST
                return tuple(str(first + index) for index in range(count))
    raise EngineError("engine-failed", detail=f"network '{name}' has no room for {count} tasks")
