"""Object storage paths as ModelArts writes them: obs://, s3:// and /bucket/key/."""

from __future__ import annotations

from dataclasses import dataclass

from danlu.model.errors import Invalid

MAX_KEY_BYTES = 1024


@dataclass(frozen=True, slots=True)
class ObjectUrl:
    """A bucket and a key in it; an empty key or one ending in `/` names a directory."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"obs://{self.bucket}/{self.key}"

    def child(self, relative: str) -> ObjectUrl:
        """The path `relative` below this directory."""
        return ObjectUrl(self.bucket, f"{self.directory}{relative}")

    @property
    def directory(self) -> str:
        """The key as a prefix: empty, or ending in `/`."""
        return self.key if not self.key or self.key.endswith("/") else f"{self.key}/"

    @property
    def name(self) -> str:
        """The last part of the key (the bucket where the key is empty)."""
        return self.key.rstrip("/").rpartition("/")[2] or self.bucket


@dataclass(frozen=True, slots=True)
class LocalUrl:
    """An absolute path of the machine on which the tasks run (`file:///…`); Danlu's own form."""

    path: str

    def __str__(self) -> str:
        return f"file://{self.path}"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2] or "root"


Url = ObjectUrl | LocalUrl


def parse(value: str, field: str) -> Url:
    """Read a storage path, or raise Invalid naming `field`.

    Accepted, as the official clients send them: `obs://bucket/key/`, `s3://bucket/key/`,
    `/bucket/key/`; and `file:///absolute/path` for a server that allows its own paths.
    """
    if value.startswith("file://"):
        return _local(value, field)
    for scheme in ("obs://", "s3://", "/"):
        if value.startswith(scheme):
            bucket, _, key = value[len(scheme) :].partition("/")
            break
    else:
        raise Invalid("obs-url", field=field, value=value)
    if not bucket or "\0" in value or not _is_utf8(value):
        raise Invalid("obs-url", field=field, value=value)
    if len(key.encode()) > MAX_KEY_BYTES:
        raise Invalid(
            "field-too-long",
            field=field,
            size=len(key.encode()),
            unit="bytes",
            limit=MAX_KEY_BYTES,
            remedy="an object key cannot be longer",
        )
    if any(part in ("..", ".") for part in key.split("/")):
        raise Invalid(
            "field-characters",
            field=field,
            value=value,
            found="a '.' or '..' part",
            remedy="write the path without it",
        )
    return ObjectUrl(bucket, key)


def _local(value: str, field: str) -> LocalUrl:
    path = value.removeprefix("file://")
    parts = path.split("/")
    if not path.startswith("/") or "\0" in path or ".." in parts or not _is_utf8(value):
        raise Invalid("obs-url", field=field, value=value)
    # One spelling a place: `/a//b/.` and `/a/b` must not look like two.
    plain = "/".join(part for part in parts if part not in ("", "."))
    ending = "/" if plain and path.endswith("/") else ""
    return LocalUrl(f"/{plain}{ending}")


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
