"""Where images lie on this machine: one directory, which any number of processes use at once.

```
root/cache/                uv's: wheels as they were unpacked; environments are hard links to it
root/environments/<hex>/   a ready environment, read-only; it appears by rename
root/making/<hex>-<any>/   one that is being made; nobody else looks there
root/trash/                what is being deleted
root/locks/<hex>.json      the lock of an image, whose digest is the name
root/names/<name>.json     an image that is registered under a name, for everybody here
root/names/<workspace>/    those that a workspace has registered
root/turns/<hex>           an exclusive flock: who makes, takes or removes the environment
root/uses/<hex>/<holder>   who uses it; its own time is that of the last use
root/seals/<hex>.json      what its files are: digest, size, time and inode of each
root/bytecode/<hex>/       its modules as they were compiled, for when it is made again
root/built/<hex>.json      it as a container image of this machine's podman or Docker
root/derived/<digest>.json an image with a job's own packages: what was asked for, and its id
```

`<hex>` is the image's id without `sha256:`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from danlu.images import lock as locks
from danlu.images import trash
from danlu.images.lock import Lock
from danlu.images.uv import Check, nothing, wait_for
from danlu.model.errors import Invalid, Missing, Refused
from danlu.model.image import Realised

SIGN = "sha256:"
RECORD = "danlu-image.json"
LEAST_DIGITS = 8
_HEX = re.compile(r"[0-9a-f]{64}")
_START = re.compile(rf"[0-9a-f]{{{LEAST_DIGITS},64}}")
PARTS = (
    "cache",
    "environments",
    "making",
    "trash",
    "locks",
    "names",
    "turns",
    "uses",
    "seals",
    "bytecode",
)


def digits(image_id: str) -> str:
    """An image's id as the name of a file. ValueError for what is none."""
    found = image_id.removeprefix(SIGN)
    if not _HEX.fullmatch(found):
        raise ValueError(f"{image_id} is no image's id")
    return found


class ImageStore:
    """The images of one machine below `root`, which need not be there yet."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    # places

    def environment(self, image_id: str) -> Path:
        """Where the environment of an image lies once it is ready."""
        return self.root / "environments" / digits(image_id)

    def part(self, name: str) -> Path:
        """One of the directories, made if need be."""
        place = self.root / name
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place

    # locks

    def keep(self, lock: Lock) -> str:
        """Keep a lock under its digest; its id."""
        image_id = locks.image_id(lock)
        path = self.part("locks") / f"{digits(image_id)}.json"
        if not path.exists():
            publish(path, locks.canonical(lock))
        return image_id

    def lock(self, image_id: str) -> Lock:
        """The lock of an image. Missing where none is kept, Invalid where it was changed."""
        try:
            text = (self.root / "locks" / f"{digits(image_id)}.json").read_text("utf-8")
        except FileNotFoundError:
            raise Missing("image-missing", image=image_id) from None
        found = locks.parse(text)
        if locks.image_id(found) != SIGN + digits(image_id):
            raise Invalid("image-lock", detail="it is not the one that its id is the digest of")
        return found

    def known(self, start: str) -> list[str]:
        """The ids of kept locks and of environments that begin with these digits."""
        if not _START.fullmatch(start):
            return []
        names = [path.stem for path in _entries(self.root / "locks")]
        names += [path.name for path in _entries(self.root / "environments")]
        return sorted({f"{SIGN}{name}" for name in names if name.startswith(start)})

    # one at a time

    @contextmanager
    def turn(self, image_id: str, check: Check = nothing, waits: Check = nothing) -> Iterator[int]:
        """Be the only one who makes, takes or removes an environment; the lock's descriptor.
        `waits` is called once if another one has to be waited for.
        """
        path = self.part("turns") / digits(image_id)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _taken(descriptor):
                waits()
                wait_for(lambda: _taken(descriptor), check)
            yield descriptor
        finally:
            os.close(descriptor)

    def sweep(self, image_id: str) -> None:
        """Delete what an interrupted making left. To be called in one's turn."""
        for left in self.part("making").glob(f"{digits(image_id)}-*"):
            self.discard(left)

    def discard(self, path: Path) -> None:
        """Take a tree out of sight at once, then delete it."""
        trash.delete(self._throw(path))

    def _throw(self, path: Path) -> Path:
        gone = self.part("trash") / f"{path.name}-{secrets.token_hex(4)}"
        with suppress(FileNotFoundError):
            trash.writable(path)
            path.rename(gone)
        return gone

    def empty_trash(self) -> None:
        """Have deleted what was thrown away; nobody waits for it (see `trash`)."""
        if _entries(self.root / "trash"):
            trash.empty_behind(self.root / "trash")

    def usage(self) -> int:
        """The bytes on disk of all images, without what is being deleted."""
        return usage(self.root, without=self.root / "trash")

    # use

    def use(self, image_id: str, holder: Path, over: str) -> None:
        """Note that `holder`, a directory, uses an environment until there is a file `over` in it
        or it is gone itself. To be called in one's turn.
        """
        place = self.part("uses") / digits(image_id)
        place.mkdir(mode=0o700, exist_ok=True)
        for note in _entries(place):
            if not _holds(note):
                note.unlink(missing_ok=True)
        publish(place / holder.name, json.dumps({"holder": str(holder), "over": over}))
        self.touch(image_id)

    def touch(self, image_id: str) -> None:
        """Note that an environment is used now."""
        place = self.part("uses") / digits(image_id)
        place.mkdir(mode=0o700, exist_ok=True)
        os.utime(place)

    def holders(self, image_id: str) -> list[str]:
        """Who uses an environment: names of tasks."""
        notes = _entries(self.root / "uses" / digits(image_id))
        return sorted(note.name for note in notes if _holds(note))

    def used_at(self, image_id: str) -> int:
        """When an environment was last used (UTC ms); 0 = never."""
        with suppress(OSError):
            return (self.root / "uses" / digits(image_id)).stat().st_mtime_ns // 1_000_000
        return 0

    # environments

    def realised(self, image_id: str) -> Realised | None:
        """What is known of a ready environment."""
        try:
            data = json.loads((self.environment(image_id) / RECORD).read_text("utf-8"))
            # What a newer program adds to a record means nothing here.
            known = {one.name: data[one.name] for one in fields(Realised) if one.name in data}
            return Realised(**{**known, "extras": tuple(data["extras"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def all(self) -> list[Realised]:
        """Every ready environment, the last used first."""
        names = [path.name for path in _entries(self.root / "environments")]
        found = [self.realised(f"{SIGN}{name}") for name in names if _HEX.fullmatch(name)]
        ready = [one for one in found if one is not None]
        return sorted(ready, key=lambda one: self.used_at(one.id), reverse=True)

    def publish(self, made: Path, record: Realised) -> None:
        """Let a finished environment appear. To be called in one's turn."""
        text = json.dumps(asdict(record), indent=1, sort_keys=True) + "\n"
        (made / RECORD).write_text(text, "utf-8")
        (made / RECORD).chmod(0o444)
        place = self.part("environments") / digits(record.id)
        if place.exists():  # its record cannot be read, or it would not have been made again
            self.discard(place)
        made.rename(place)
        place.chmod(0o555)

    def remove(self, image_id: str) -> int:
        """Take an environment away; how large it was. Its files are deleted by `empty_trash`. What
        it was made from stays in the cache: it is made again in seconds.

        Missing where there is none, Refused while a task uses it.
        """
        with self.turn(image_id):
            found = self.realised(image_id)
            place = self.environment(image_id)
            if not place.exists():
                raise Missing("image-not-realised", image=image_id)
            if holders := self.holders(image_id):
                raise Refused("image-in-use", image=image_id, holders=", ".join(holders))
            self._throw(place)
            shutil.rmtree(self.root / "uses" / digits(image_id), ignore_errors=True)
        return found.size_bytes if found else 0

    def forget(self, image_id: str) -> None:
        """Throw away what makes an environment faster to make again, uv's cache aside."""
        self._throw(self.root / "bytecode" / digits(image_id))
        (self.root / "seals" / f"{digits(image_id)}.json").unlink(missing_ok=True)


def usage(root: Path, without: Path | None = None) -> int:
    """The bytes on disk below a directory, what has several names counted once."""
    seen: set[int] = set()
    total = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if Path(folder, name) != without]
        for name in names:
            with suppress(OSError):
                found = os.lstat(f"{folder}/{name}")
                if found.st_ino not in seen:
                    seen.add(found.st_ino)
                    total += found.st_blocks * 512
    return total


def _entries(place: Path) -> list[Path]:
    try:
        return sorted(place.iterdir())
    except OSError:
        return []


def _holds(note: Path) -> bool:
    """Whether who wrote a note still uses the environment. A note that cannot be read does."""
    try:
        said: dict[str, Any] = json.loads(note.read_text("utf-8"))
        holder = Path(said["holder"])
        return holder.is_dir() and not (holder / said["over"]).exists()
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError):
        return True


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def publish(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)


def now_ms() -> int:
    """UTC, milliseconds since 1970."""
    return time.time_ns() // 1_000_000
