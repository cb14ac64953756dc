"""ModelArts' requests about notebooks, read into the model's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from danlu.model import limits
from danlu.model.errors import Invalid
from danlu.model.idle import OFF, Idle
from danlu.model.notebook import (
    HOME,
    LEAST_LEASE_MS,
    MOST_LEASE_MS,
    Lease,
    LeaseKind,
    Mounted,
    NotebookSpec,
)
from danlu.model.script import LITERAL_CACHE, LITERAL_HOME
from danlu.model.url import parse
from danlu.wire.shape import Listing, Mapped, Shape, Text, Unsupported, Whole

DEFAULT_LEASE_MS = LEAST_LEASE_MS
"""The lease of a notebook whose client names none: ModelArts' default."""
DEFAULT_EVS_GB = 5
MOST_HOME_GB = 1 << 20
CATEGORIES = ("EFS", "EVS")
PLACES_TAKEN = (HOME, f"{LITERAL_HOME}/modelarts")

_LEASE = Shape(
    {
        "duration": Whole(LEAST_LEASE_MS, MOST_LEASE_MS, "milliseconds, 1 to 72 h"),
        "type": Text(
            tuple(LeaseKind), "TIMING ends it after so long, IDLE after so long without activity"
        ),
    }
)
_ENDPOINTS = Listing(
    Shape(
        {
            "service": Text(("SSH", "NOTEBOOK")),
            "key_pair_names": Listing(Text(), 20, "the keys are those of the user's profile"),
            "allowed_access_ips": Listing(
                Text(about="an address or a network, 192.0.2.0/24 or 2001:db8::/32"),
                100,
                "from where SSH is let in; empty = from anywhere",
            ),
            "dew_secret_name": Unsupported("add public keys to your profile"),
            "uri": Unsupported("it is of replies"),
        }
    ),
    10,
)
_HOME_VOLUME = Shape(
    {
        "category": Text((*CATEGORIES, "OBS", "OBSFS")),
        "ownership": Text(("MANAGED", "DEDICATED")),
        "capacity": Whole(1, MOST_HOME_GB, "GB that the home may hold"),
        "uri": Unsupported("homes lie on the server's machine; mount data with data_volumes"),
        "mount_path": Unsupported("the home is always there", (HOME, f"{HOME}/")),
        "evs_sku_code": Unsupported("leave it out"),
        "dew_secret_name": Unsupported("leave it out"),
    },
    required=("category",),
)
_DATA_VOLUMES = Listing(
    Shape(
        {
            "category": Text(("OBS", "OBSFS")),
            "uri": Text(about="obs://bucket/path/"),
            "mount_path": Text(about=f"below {LITERAL_HOME} or {LITERAL_CACHE}"),
            "mount_type": Unsupported("leave it out", ("STATIC", "DYNAMIC")),
            "ownership": Unsupported("leave it out", ("DEDICATED", "MANAGED")),
            "capacity": Unsupported("leave it out"),
            "dew_secret_name": Unsupported("leave it out"),
            "read_only": Unsupported("each start gets a copy of its own"),
        },
        required=("uri",),
    )
)
_OURS = Shape(
    {
        "idle": Text(about="off, or after how many seconds without activity it is stopped"),
        "lease": Text((OFF,), "off: no lease, whatever else is said"),
        "environments": Mapped(Text()),
        "data": Listing(
            Shape(
                {"url": Text(about="obs://… or file://…"), "path": Text()},
                required=("url",),
            )
        ),
    },
    about="what ModelArts has no words for",
)
_LEFT_OUT = {
    "custom_spec": Unsupported("choose a flavor"),
    "affinity": Unsupported("leave it out"),
    "hooks": Unsupported("put what is to run at the start into ~/work"),
    "public_network_config": Unsupported("leave it out"),
}
CREATE = Shape(
    {
        "name": Text(about=f"1 to {limits.NAME_CHARS} letters, digits, '_' and '-'"),
        "description": Text(),
        "feature": Text(("DEFAULT", "NOTEBOOK")),
        "flavor": Text(),
        "image_id": Text(),
        "volume": _HOME_VOLUME,
        "data_volumes": _DATA_VOLUMES,
        "endpoints": _ENDPOINTS,
        "duration": Whole(LEAST_LEASE_MS, MOST_LEASE_MS, "milliseconds, 1 to 72 h"),
        "lease": _LEASE,
        "workspace_id": Unsupported("leave it out", ("0",)),
        "pool_id": Unsupported("leave it out"),
        "run_user": Unsupported("its user is ma-user"),
        "user_vpc": Unsupported("leave it out"),
        "danlu": _OURS,
        **_LEFT_OUT,
    },
    required=("name",),
)
CREATE_IMAGE = Shape(
    {
        "name": Text(about="small letters, digits and '-'"),
        "tag": Text(about="a version: the image is called NAME-TAG"),
        "description": Text(),
        "namespace": Text(about="not kept: an image belongs to its project"),
        "workspace_id": Unsupported("leave it out", ("0",)),
        "swr_instance_id": Unsupported("leave it out"),
        "swr_instance_domain": Unsupported("leave it out"),
        "danlu": Shape(
            {"without": Listing(Text(), 1000, "packages (or 'files') that are left out")},
        ),
    },
    required=("name",),
    remedy={"name": "notebooks and jobs name the image by it"},
)


def create_image(body: dict[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    """The name and description of the image that a notebook is to become, and what is left out."""
    read = CREATE_IMAGE.read(body)
    name = "-".join(filter(None, (read["name"], read.get("tag", ""))))
    without = tuple(read.get("danlu", {}).get("without", ()))
    return name, read.get("description", ""), without


UPDATE = Shape(
    {
        "name": Text(),
        "description": Text(),
        "flavor": Text(),
        "image_id": Text(),
        "storage_new_size": Whole(1, MOST_HOME_GB, "GB that the home may hold"),
        "endpoints": _ENDPOINTS,
        "data_volumes": Unsupported("name them when the notebook is created"),
        "dew_secret_name": Unsupported("leave it out"),
        "danlu": Shape({"idle": Text()}),
        **_LEFT_OUT,
    }
)
RENEW = _LEASE


@dataclass(frozen=True, slots=True)
class Terms:
    """Until when a notebook may run: its lease, and what is said of idleness (None = nothing)."""

    lease: Lease
    idle: Idle | None


def create(body: Mapping[str, Any]) -> tuple[NotebookSpec, Lease]:
    """What a create body asks for. Raises Invalid naming the first field that is wrong."""
    read = CREATE.read(body)
    ours, volume = read.get("danlu", {}), read.get("volume", {})
    access = _endpoints(read.get("endpoints", ()))
    terms = _terms(read)
    idle = _idle(ours["idle"]) if "idle" in ours else terms.idle
    category = volume.get("category", CATEGORIES[0])
    if category not in CATEGORIES:
        remedy = "a home lies on the server's machine; mount objects with data_volumes"
        raise Invalid("field-unsupported", field="volume.category", remedy=remedy)
    spec = NotebookSpec(
        name=read["name"],
        flavor=read.get("flavor", ""),
        image=read.get("image_id", ""),
        description=read.get("description", ""),
        category=category,
        home_gib=volume.get("capacity", DEFAULT_EVS_GB if category == "EVS" else None),
        data=_data(read.get("data_volumes", ()), ours.get("data", ())),
        key_pairs=access.get("key_pairs", ()),
        ssh=access["ssh"],
        allowed_ips=access.get("allowed_ips", ()),
        environments=ours.get("environments", {}),
        idle=idle or Idle(),
    )
    return spec, Lease() if ours.get("lease") == OFF else terms.lease


def _terms(read: Mapping[str, Any]) -> Terms:
    lease = read.get("lease", {})
    duration = lease.get("duration", read.get("duration", DEFAULT_LEASE_MS))
    return terms(duration, lease.get("type", LeaseKind.TIMING))


def terms(duration_ms: int, kind: str) -> Terms:
    """A duration of ModelArts' in our words."""
    if kind == LeaseKind.IDLE:
        return Terms(Lease(), Idle(duration_ms // 1000))
    return Terms(Lease(duration_ms), None)


def renewal(duration_ms: int | None, body: Mapping[str, Any]) -> Terms:
    """What a renewal asks for: a duration of the query wins, and is always a TIMING one."""
    read = RENEW.read(body)
    if duration_ms is not None:
        return terms(duration_ms, LeaseKind.TIMING)
    return terms(read.get("duration", DEFAULT_LEASE_MS), read.get("type", LeaseKind.TIMING))


def update(body: Mapping[str, Any]) -> dict[str, Any]:
    """What an update changes, by the names of `flow.notebook.Changes`."""
    read = UPDATE.read(body)
    names = {"image_id": "image", "storage_new_size": "home_gib"}
    found = {
        names.get(name, name): read[name]
        for name in ("name", "description", "flavor", "image_id", "storage_new_size")
        if name in read
    }
    if "endpoints" in read:
        found.update(_endpoints(read["endpoints"]))
    if "idle" in read.get("danlu", {}):
        found["idle"] = _idle(read["danlu"]["idle"])
    return found


def idle_of(text: str, field: str) -> Idle:
    """`off`, `default`, or a number of seconds."""
    if text == OFF:
        return Idle(off=True)
    if text == "default":
        return Idle()
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return Idle(int(text))
    expected = "off, default, or a number of seconds"
    raise Invalid("field-value", field=field, value=text, expected=expected)


def _idle(text: str) -> Idle:
    return idle_of(text, "danlu.idle")


def _endpoints(listed: Any) -> dict[str, Any]:
    """What is said of SSH, by the names of the specification; the rest stays as it is."""
    found: dict[str, Any] = {"ssh": False}
    for index, one in enumerate(listed):
        if one.get("service", "SSH") != "SSH":
            continue
        found["ssh"] = True
        if "key_pair_names" in one:
            found["key_pairs"] = (*found.get("key_pairs", ()), *one["key_pair_names"])
        if "allowed_access_ips" in one:
            field = f"endpoints[{index}].allowed_access_ips"
            networks = [
                _network(ip, f"{field}[{at}]") for at, ip in enumerate(one["allowed_access_ips"])
            ]
            found["allowed_ips"] = (*found.get("allowed_ips", ()), *networks)
    return found


def _network(text: str, field: str) -> str:
    try:
        ip_network(text, strict=False)
    except ValueError:
        expected = "an address or a network: 192.0.2.7, 192.0.2.0/24, 2001:db8::/32"
        raise Invalid("field-value", field=field, value=text, expected=expected) from None
    return text


def _data(volumes: Any, ours: Any) -> tuple[Mounted, ...]:
    found = [
        (f"data_volumes[{index}]", "uri", one["uri"], one.get("mount_path", ""), "mount_path")
        for index, one in enumerate(volumes)
    ]
    found += [
        (f"danlu.data[{index}]", "url", one["url"], one.get("path", ""), "path")
        for index, one in enumerate(ours)
    ]
    return tuple(
        Mounted(parse(url, f"{at}.{name}"), _place(path, f"{at}.{place}"))
        for at, name, url, path, place in found
    )


def _place(path: str, field: str) -> str:
    """Where data is to lie: nothing of the home may be covered, and nothing lies elsewhere."""
    plain = path.rstrip("/")
    below = any(plain.startswith(f"{root}/") for root in (LITERAL_HOME, LITERAL_CACHE))
    taken = any(plain == one or plain.startswith(f"{one}/") for one in PLACES_TAKEN)
    if plain and (not below or taken):
        expected = f"a path below {LITERAL_HOME} or {LITERAL_CACHE}, and not in {HOME}"
        raise Invalid("field-value", field=field, value=path, expected=expected)
    return plain
