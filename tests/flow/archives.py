"""Code archives for tests, honest and otherwise."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from danlu.flow.code import CodeStored, store_archive
from danlu.model import tar
from danlu.model.code import CodeLimits
from danlu.stores.folder import FolderStore

BUCKET = "danlu"

Files = dict[str, tuple[bytes, bool]]


def archive(files: Files, form: int = tarfile.PAX_FORMAT) -> bytes:
    """What Python's own tarfile makes of these files."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=form) as opened:
        for path, (content, executable) in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            info.mode = 0o755 if executable else 0o644
            opened.addfile(info, io.BytesIO(content))
    return target.getvalue()


def special(*infos: tarfile.TarInfo, end: bytes = tar.END) -> bytes:
    return b"".join(info.tobuf(tarfile.PAX_FORMAT) for info in infos) + end


def info(
    path: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0
) -> tarfile.TarInfo:
    made = tarfile.TarInfo(path)
    made.type = kind
    made.linkname = link
    made.size = size
    return made


def member(path: str, content: bytes, *, executable: bool = False) -> bytes:
    return tar.encode(path, len(content), executable=executable) + tar.padded(content)


def take(objects: FolderStore, data: bytes, **more: CodeLimits) -> CodeStored:
    return store_archive(objects, BUCKET, io.BytesIO(data), "code", **more)


def found(objects: FolderStore, taken: CodeStored) -> Files:
    """What lies in the object store for a code directory."""
    prefix = taken.url.key
    return {
        item.key.removeprefix(prefix): (
            b"".join(objects.read(BUCKET, item.key)),
            item.metadata.get("mode") == "755",
        )
        for item in objects.walk(BUCKET, prefix)
    }


@contextmanager
def opened(path: Path) -> Iterator[FolderStore]:
    store = FolderStore(path / "objects")
    store.create_bucket(BUCKET)
    yield store
    store.close()
