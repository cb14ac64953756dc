"""The object store that a plan names."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import cast

from danlu.model.errors import Unavailable
from danlu.ports.objects import ObjectStore

KINDS = {"folder": "danlu.stores.folder:FolderStore", "s3": "danlu.stores.s3:S3Store"}
WARM = ("danlu.stores.folder", "danlu.stores.folder.bucket")
"""Modules that an agent of the folder store will want; imported before it has anything to do."""


def open_store(spec: Mapping[str, str]) -> ObjectStore:
    """Open the store that `spec` describes: its `kind`, and what its class is made with, and the
    `directories` that are buckets beside it (see `stores.plain.joined`).

    Raises Unavailable where there is no such store here.
    """
    arguments = dict(spec)
    kind = arguments.pop("kind", "")
    directories = arguments.pop("directories", "")
    module, _, name = KINDS.get(kind, kind).partition(":")
    try:
        opened = getattr(importlib.import_module(module), name)(**arguments)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise Unavailable("extra-missing", name=kind or "objects", install="danlu") from error
    if not directories:
        return cast("ObjectStore", opened)
    from danlu.stores.plain import joined

    return joined(opened, directories)
