"""Images as ModelArts' clients list, register and delete them.

An image of ours is a lock. What is registered is its text (`danlu.lock`) under a name; ModelArts
registers an address in its container registry, which there is none of here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from danlu.model.errors import Invalid
from danlu.model.image import CPU, ImageView
from danlu.wire.shape import BOOLEAN, INTEGER, STRING, Schema, Shape, Text, Unsupported, reply
from danlu.wire.shape import listing as many

TYPES = ("BUILD_IN", "DEDICATED")
MOST = 500

REGISTER = Shape(
    {
        "description": Text(),
        "swr_path": Unsupported("register a lock (danlu.lock); jobs name images of registries"),
        "arch": Unsupported("leave it out", ("X86_64", "AARCH64")),
        "origin": Unsupported("leave it out", ("CUSTOMIZE",)),
        "resource_category": Unsupported("leave it out"),
        "service_type": Unsupported("leave it out", ("COMMON", "TRAIN")),
        "services": Unsupported("leave it out"),
        "visibility": Unsupported("a project's images are its own", ("PRIVATE",)),
        "workspace_id": Unsupported("leave it out", ("0",)),
        "flavor_type": Unsupported("leave it out"),
        "tags": Unsupported("leave it out"),
        "swr_instance_id": Unsupported("leave it out"),
        "read_me": Unsupported("use description"),
        "danlu": Shape(
            {
                "name": Text(about="letters, digits, '.', '_' and '-', at most 64"),
                "lock": Text(about="the text of the lock, as danlu image lock writes it"),
            },
            required=("name", "lock"),
            remedy={"name": "jobs name the image by it", "lock": "danlu image lock makes one"},
        ),
    },
)


def register(body: dict[str, Any]) -> tuple[str, str, str]:
    """The name, the lock's text and the description that a body registers."""
    read = REGISTER.read(body)
    if "danlu" not in read:
        raise Invalid("field-missing", field="danlu", remedy="say name and lock")
    found = read["danlu"]
    return found["name"], found["lock"], read.get("description", "")


def image(view: ImageView) -> dict[str, Any]:
    """One image."""
    made = view.realised
    at = view.created_at or (made.made_at if made else 0)
    return {
        "id": view.id,
        "name": view.name,
        "show_name": view.name,
        "namespace": "danlu",
        "tag": view.backend,
        "show_tag": view.backend,
        "type": TYPES[0] if view.built_in else TYPES[1],
        "origin": "CUSTOMIZE",
        "arch": "X86_64" if view.arch == "x86_64" else view.arch.upper(),
        "description": view.description,
        "resource_categories": ["CPU"] if view.backend == CPU else ["GPU", "CPU"],
        "service_type": "TRAIN",
        "size": made.size_bytes if made else 0,
        "status": "ACTIVE",
        "status_message": "",
        "swr_path": "",
        "visibility": "PUBLIC" if view.built_in else "PRIVATE",
        "workspace_id": "0",
        "create_at": at,
        "update_at": max(at, view.used_at),
        "danlu": {
            "python": view.python,
            "torch": view.torch,
            "packages": view.packages,
            "realised": made is not None,
            "realisation": made.realisation if made else "",
            "os": made.os if made else "",
            "system": made.system if made else "",
            "digest": made.digest if made else "",
            "parent": made.parent if made else "",
            "extras": list(made.extras) if made else [],
            "used_by": list(view.used_by),
        },
    }


def images(found: Sequence[ImageView], offset: int, limit: int) -> dict[str, Any]:
    """A page of images."""
    return {
        "total": len(found),
        "size": limit,
        "pages": -(-len(found) // limit),
        "current": offset // limit + 1,
        "data": [image(one) for one in found[offset : offset + limit]],
    }


_STRINGS = (
    "id", "name", "show_name", "namespace", "tag", "show_tag", "type", "origin", "arch",
    "description", "service_type", "status", "status_message", "swr_path", "visibility",
    "workspace_id",
)  # fmt: skip

IMAGE_SCHEMA: Schema = reply(
    {
        **dict.fromkeys(_STRINGS, STRING),
        "resource_categories": many(STRING),
        "size": INTEGER,
        "create_at": INTEGER,
        "update_at": INTEGER,
        "danlu": reply(
            {
                **dict.fromkeys(("python", "torch", "realisation", "os", "system"), STRING),
                **dict.fromkeys(("digest", "parent"), STRING),
                "packages": INTEGER,
                "realised": BOOLEAN,
                "extras": many(STRING),
                "used_by": many(STRING),
            }
        ),
    }
)

IMAGES_SCHEMA: Schema = reply(
    {
        **dict.fromkeys(("total", "size", "pages", "current"), INTEGER),
        "data": many(IMAGE_SCHEMA),
    }
)
