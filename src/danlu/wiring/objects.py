"""Where objects are kept, by the settings: for the server, for agents, and for a look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from danlu.model.errors import Invalid, PlatformError
from danlu.node.store import open_store
from danlu.ports.objects import Sweeping

if TYPE_CHECKING:
    from danlu.model.texts import Language
    from danlu.ports.objects import ObjectStore
    from danlu.settings import Settings

DIRECTORY = "objects"
"""Below the data directory."""


def spec(settings: Settings) -> dict[str, str]:
    """What `node.store.open_store` opens. It holds no secret: keys stay in their file."""
    directories = "\n".join(settings.directories)
    return {**_main(settings), **({"directories": directories} if directories else {})}


def _main(settings: Settings) -> dict[str, str]:
    if settings.objects == "folder":
        return {"kind": "folder", "root": str(settings.data / DIRECTORY)}
    if not settings.s3_endpoint:
        raise Invalid(
            "setting-value",
            key="s3_endpoint",
            source="the settings",
            value="",
            expected="the address of the S3 server, since objects is s3",
        )
    return {
        "kind": "s3",
        "endpoint": settings.s3_endpoint,
        "region": settings.s3_region,
        "keys": settings.s3_keys_file,
        "buckets": ",".join(settings.s3_buckets),
    }


def opened(settings: Settings, bucket: str) -> ObjectStore:
    """The store of a server, with its own `bucket`. Raises Unavailable where it does not answer."""
    objects = open_store(spec(settings))
    objects.create_bucket(bucket)
    if isinstance(objects, Sweeping):
        # What uploads left that a crash cut off. Before there are other processes of ours.
        objects.sweep()
    return objects


def trouble(settings: Settings, language: Language) -> str:
    """Why the store that is set cannot be used; nothing where it can. Asks it, if only twice."""
    quick = {"tries": "2", "timeout_s": "5"} if settings.objects == "s3" else {}
    if not quick and not settings.directories:
        return ""
    try:
        open_store({**spec(settings), **quick}).buckets()
    except PlatformError as problem:
        return problem.message(language)
    return ""
