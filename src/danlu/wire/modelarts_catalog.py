"""Flavors and engines as ModelArts' clients read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from danlu.model.flavor import Flavor
from danlu.model.resources import GIB, Shape
from danlu.wire.shape import INTEGER, STRING, Schema, listing, reply

FLAVOR_TYPES = ("CPU", "GPU", "Ascend")


def gigabytes(count: int) -> float | int:
    """Bytes as GiB, whole where they are."""
    return count // GIB if count % GIB == 0 else round(count / GIB, 2)


def flavor_detail(flavor_id: str, shape: Shape) -> dict[str, Any]:
    """`flavor_detail` of a job's resource."""
    return {
        "flavor_type": "GPU" if shape.gpus else "CPU",
        "billing": {"code": flavor_id, "unit_num": 1},
        "flavor_info": _info(shape),
    }


def flavors(known: Iterable[Flavor], wanted_type: str = "") -> dict[str, Any]:
    """The reply for `training-job-flavors`; `wanted_type` is one of FLAVOR_TYPES, or empty."""
    listed = [
        {
            "flavor_id": flavor.id,
            "flavor_name": flavor.id,
            "flavor_type": flavor.kind,
            "max_num": 1,
            "billing": {"code": flavor.id, "unit_num": 1},
            "flavor_info": _info(flavor.shape),
            "attributes": {},
        }
        for flavor in known
        if wanted_type in ("", flavor.kind)
    ]
    return {"total_count": len(listed), "flavors": listed}


def _info(shape: Shape) -> dict[str, Any]:
    info: dict[str, Any] = {
        "max_num": 1,
        "cpu": {"arch": "", "core_num": shape.cpus},
        # The SDK's model has a whole number here; jobs get the bytes that are left over, too.
        "memory": {"size": shape.memory_bytes // GIB, "unit": "GB"},
    }
    if shape.gpus:
        info["gpu"] = {"unit_num": shape.gpus, "product_name": shape.gpu_model, "memory": ""}
    return info


def engines(known: Iterable[tuple[str, str, str]]) -> dict[str, Any]:
    """The reply for `training-job-engines`, from (id, Python version, PyTorch version)."""
    listed = [
        {
            "engine_id": name,
            "engine_name": name,
            "engine_version": _version(python, torch),
            "v1_compatible": False,
            "run_user": "",
            "image_info": {"cpu_image_url": "", "gpu_image_url": "", "image_version": ""},
        }
        for name, python, torch in known
    ]
    return {"total": len(listed), "items": listed}


def _version(python: str, torch: str) -> str:
    parts = [f"pytorch_{torch}" if torch else "", f"py_{python}" if python else ""]
    return "-".join(part for part in parts if part)


FLAVORS_SCHEMA: Schema = reply(
    {
        "total_count": INTEGER,
        "flavors": listing(
            reply(
                {
                    "flavor_id": STRING,
                    "flavor_name": STRING,
                    "flavor_type": STRING,
                    "max_num": INTEGER,
                    "billing": {"type": "object"},
                    "flavor_info": {"type": "object"},
                    "attributes": {"type": "object"},
                }
            )
        ),
    }
)

ENGINES_SCHEMA: Schema = reply(
    {
        "total": INTEGER,
        "items": listing(
            reply(
                {
                    "engine_id": STRING,
                    "engine_name": STRING,
                    "engine_version": STRING,
                    "v1_compatible": {"type": "boolean"},
                    "run_user": STRING,
                    "image_info": {"type": "object"},
                }
            )
        ),
    }
)
