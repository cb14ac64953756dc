"""Makes an environment of a lock: uv installs it, every file is proved, and it appears at once.

Nobody ever sees half an environment: it is made aside, under a lock that an orphaned uv holds as
well, and published by rename. Its files are hard links to uv's cache, so that a second one costs no
disk and a second or two; they are made read-only, because a write to one would be a write to all.
"""

from __future__ import annotations

import ctypes
import os
import platform
import secrets
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from danlu.images import seal as seals
from danlu.images import uv
from danlu.images.lock import Lock
from danlu.images.seal import Looked, Seal, is_bytecode
from danlu.images.store import ImageStore, digits, now_ms
from danlu.images.uv import Check, Sources, Uv, nothing
from danlu.model.errors import Refused
from danlu.model.image import Damage, Realised
from danlu.ports.crash import crash_point

Say = Callable[..., None]
"""Called with a text's key and its values while something is going on."""

NOT_COMPILED = r"[/\\](tests?|testing|testcases)[/\\]"
"""Modules that no program imports; they are a third of all."""
MOST_NAMED = 5
MOST_RELATIVES = 4
"""Of so many other images' compiled modules are taken."""


@dataclass(frozen=True, slots=True)
class Making:
    """Whom to tell and whom to ask while an environment is made. `variables` name package sources
    (see `uv.Sources`).
    """

    say: Say = nothing
    check: Check = nothing
    variables: tuple[tuple[str, str], ...] = ()
    parent: str = ""
    """The image from which this one was derived, whose compiled modules are taken over."""
    extras: tuple[str, ...] = ()

    @property
    def sources(self) -> Sources:
        """Where packages come from."""
        return Sources.of(dict(self.variables))


def realise(
    store: ImageStore,
    image_id: str,
    name: str,
    making: Making,
    *,
    holder: tuple[Path, str] | None = None,
) -> Realised:
    """The environment of an image, made if it is not ready. `holder` is who will use it (see
    `ImageStore.use`), noted before anybody else can remove it.

    Refused where a wheel cannot be had or is not the locked one, or no Python fits; OSError where
    the disk is full; whatever `making.check` raises.
    """
    lock = store.lock(image_id)
    waits = lambda: making.say("image-waiting", image=name)  # noqa: E731 -- one call, one line
    with store.turn(image_id, making.check, waits) as held:
        store.sweep(image_id)
        found = store.realised(image_id)
        if found is None:
            _refuse_other_machine(lock, name)
            found = _Maker(store, image_id, name, lock, making, held).run()
        if holder is not None:
            store.use(image_id, *holder)
        else:
            store.touch(image_id)
    return found


class _Maker:
    """Makes one environment, in its turn."""

    def __init__(
        self, store: ImageStore, image_id: str, name: str, lock: Lock, making: Making, held: int
    ) -> None:
        self._store = store
        self._id = image_id
        self._name = name
        self._lock = lock
        self._making = making
        self._uv = Uv(store.part("cache"), making.sources, check=making.check, held=held)
        self._place = store.part("making") / f"{digits(image_id)}-{secrets.token_hex(4)}"
        self._root = self._place / "environment"
        self._seal_file = store.part("seals") / f"{digits(image_id)}.json"
        self._bytecode = store.part("bytecode") / digits(image_id)
        self._earlier: Seal = {}

    def run(self) -> Realised:
        began = time.monotonic()
        self._making.say("image-realising", image=self._name, packages=len(self._lock.wheels))
        self._place.mkdir(mode=0o700)
        try:
            crash_point("image.begun")
            fetched = self._install()
            crash_point("image.installed")
            looked = self._compiled(self._proved())
            freeze(looked)
            if fetched:
                # Links to what was on disk before need no waiting for; what came now does.
                sync(self._root)
            record = self._record(looked.seal, time.monotonic() - began)
            if not looked.known:
                seals.save(self._seal_file, looked.seal)
            crash_point("image.before-publish")
            self._store.publish(self._root, record)
            crash_point("image.after-publish")
        finally:
            self._store.discard(self._place)
        self._making.say("image-ready", image=self._name, took_s=f"{record.took_s:.1f}")
        return record

    def _install(self) -> bool:
        """Install every wheel; whether something had to be fetched."""
        try:
            python = venv(self._uv, self._lock.python, self._root)
        except uv.Failed as failed:
            raise Refused(
                "image-no-python", python=self._lock.python, detail=failed.said
            ) from failed
        wanted = self._place / "requirements.txt"
        wanted.write_text(requirements(self._lock), "utf-8")
        options = uv.extended(
            self._uv.sources, [(wheel.version, wheel.filename) for wheel in self._lock.wheels]
        )
        command = ["pip", "install", *_HARD, "--require-hashes", "--python", str(python), *options]
        with ThreadPoolExecutor(1) as beside:
            # uv leaves a processor idle at its end, with the largest package.
            laid = beside.submit(self._lay_bytecode)
            with suppress(uv.Failed):
                self._uv(*command, "--offline", "-r", str(wanted))
                self._earlier = laid.result()
                return False
            self._making.say("image-fetching", image=self._name)
            try:
                self._uv(*command, "-r", str(wanted))
            except uv.Failed as failed:
                raise Refused(
                    "image-not-realised-now", image=self._name, detail=failed.said
                ) from failed
            self._earlier = laid.result()
        return True

    def _lay_bytecode(self) -> Seal:
        """The seal of when the environment was made before, with the modules that were compiled
        then, if they are still there.
        """
        earlier = seals.load(self._seal_file)
        if self._bytecode.is_dir() and earlier:
            link_tree(self._bytecode, self._root)
            return earlier
        return {path: one for path, one in earlier.items() if not is_bytecode(path)}

    def _proved(self) -> Looked:
        """What was installed, every file proved. What the cache has damaged is named, fetched again
        once, and refused if it is damaged again.
        """
        looked = self._looked_at()
        if not looked.damaged:
            return looked
        for one in looked.damaged[:MOST_NAMED]:
            self._making.say("image-damaged", file=one.path, package=one.package)
        # Bytecode is made of the rest, and compared with what was made of it before.
        self._store.forget(self._id)
        packages = sorted({one.package for one in looked.damaged if one.package})
        with suppress(uv.Failed):
            self._uv("cache", "clean", *packages)
        self._store.discard(self._root)
        try:
            self._install()
        except Refused as error:
            raise Refused("image-broken", image=self._name, files=named(looked.damaged)) from error
        looked = self._looked_at()
        if looked.damaged:
            raise Refused("image-broken", image=self._name, files=named(looked.damaged))
        return looked

    def _looked_at(self) -> Looked:
        earlier = self._earlier
        trusted: Seal = {}
        if self._making.parent and not earlier:
            parent = digits(self._making.parent)
            trusted = seals.load(self._store.part("seals") / f"{parent}.json")
        return seals.make(self._root, earlier, self._making.check, trusted)

    def _compiled(self, looked: Looked) -> Looked:
        """With the modules compiled, if they were not. Nobody can write to the environment later:
        each start would do it again.
        """
        if any(is_bytecode(path) for path in looked.seal):
            return looked
        self._store.discard(self._bytecode)
        left = self._inherited(looked.seal)
        if not self._making.parent:
            self._making.say("image-compiling", image=self._name)
        compile_modules(self._root, left, self._making.check)
        looked = seals.make(self._root, looked.seal, self._making.check)
        link_bytecode(self._root, self._bytecode, looked.seal)
        return looked

    def _inherited(self, seal: Seal) -> list[str]:
        """Take over what was compiled of equal packages for other images, the parent's first; the
        modules that are left, as directories and files below the packages' own.
        """
        site = next(self._root.glob("lib/python3*/site-packages"))
        left = {path.name: str(path) for path in site.iterdir()}
        for relative in self._relatives():
            before = seals.load(self._store.part("seals") / f"{relative}.json")
            self._take_over(seal, before, site, self._store.part("bytecode") / relative, left)
        return list(left.values())

    def _relatives(self) -> list[str]:
        """The images whose compiled modules may be these: the last made ones."""
        parent = [digits(self._making.parent)] if self._making.parent else []
        kept = sorted(
            (path for path in self._store.part("bytecode").iterdir() if path != self._bytecode),
            key=lambda path: path.stat().st_mtime,
        )
        return list(dict.fromkeys([*parent, *(path.name for path in reversed(kept))]))[
            :MOST_RELATIVES
        ]

    def _take_over(
        self, seal: Seal, before: Seal, site: Path, bytecode: Path, left: dict[str, str]
    ) -> None:
        """Link the compiled modules of packages that are the same to the byte."""
        start = f"{site.relative_to(self._root)}/"
        same = dict.fromkeys(left, True)
        for path, one in seal.items():
            name = path.removeprefix(start).partition("/")[0]
            if path.startswith(start) and same.get(name):
                same[name] = path in before and before[path].sha256 == one.sha256
        for path, one in before.items():
            name = path.removeprefix(start).partition("/")[0]
            if is_bytecode(path) and same.get(name):
                same[name] = seals.is_same(one, bytecode / path)
        for name, equal in same.items():
            if equal and (bytecode / start / name).is_dir():
                link_tree(bytecode / start / name, site / name)
                del left[name]

    def _record(self, seal: Seal, took_s: float) -> Realised:
        versions = {wheel.name: wheel.version for wheel in self._lock.wheels}
        return Realised(
            id=self._id,
            name=self._name,
            backend=self._lock.backend,
            python=python_version(self._root),
            torch=versions.get("torch", ""),
            packages=len(versions),
            size_bytes=sum(one.size for one in seal.values()),
            digest=seals.digest(seal),
            system=system(),
            made_at=now_ms(),
            took_s=round(took_s, 3),
            parent=self._making.parent,
            extras=self._making.extras,
        )


_HARD = ("--no-deps", "--only-binary", ":all:", "--link-mode", "hardlink")


def requirements(lock: Lock) -> str:
    """What uv installs: each package at its version, with the digest of its one wheel."""
    lines = (f"{one.name}=={one.version} --hash=sha256:{one.sha256}\n" for one in lock.wheels)
    return "".join(lines)


def venv(tool: Uv, python: str, root: Path) -> Path:
    """Make an empty environment that can be moved; its interpreter."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = sys.executable if own == python else python
    tool("venv", "--no-project", "--relocatable", "--python", wanted, str(root))
    return root / "bin" / "python"


def python_version(root: Path) -> str:
    """The exact version of an environment's Python."""
    for line in (root / "pyvenv.cfg").read_text("utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "version_info":
            return value.strip()
    return ""


def compile_modules(root: Path, places: Sequence[str], check: Check) -> None:
    """Compile the modules in these places of an environment. Nothing of them is run; one that
    cannot be compiled is left as it is. The source is never looked at again: it was proved, and
    cannot be written.
    """
    command = [
        str(root / "bin" / "python"), "-I", "-m", "compileall", "-qq", "-j", "0",
        "--invalidation-mode", "unchecked-hash", "-x", NOT_COMPILED, *places,
    ]  # fmt: skip
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while True:
            check()
            with suppress(subprocess.TimeoutExpired):
                process.wait(uv.LOOK_EVERY_S)
                return
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
        raise


def link_bytecode(root: Path, target: Path, seal: Seal) -> None:
    """Keep an environment's compiled modules for the next one, as far as that can be done."""
    with suppress(OSError):
        for path in seal:
            if is_bytecode(path):
                place = target / path
                place.parent.mkdir(parents=True, exist_ok=True)
                os.link(root / path, place)


def link_tree(source: Path, target: Path) -> None:
    """Give every file of a tree a second name in another one, whose directories may exist."""
    folders = [""]
    for folder in folders:  # it grows
        # A name in an opened directory is looked up once, its whole path part by part.
        there = _opened(f"{target}/{folder}")
        here = _opened(f"{source}/{folder}")
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    name = entry.name
                    with suppress(FileExistsError):
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(f"{folder}{name}/")
                            os.mkdir(name, dir_fd=there)
                        else:
                            os.link(name, name, src_dir_fd=here, dst_dir_fd=there)
        finally:
            os.close(here)
            os.close(there)


def _opened(folder: str) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def freeze(looked: Looked) -> None:
    """Take away every right to write below an environment's root, which is still to be moved."""
    for path in (*looked.writable, *looked.folders[1:]):
        os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) & 0o555)  # noqa: PTH101 -- as above


def sync(root: Path) -> None:
    """Put what was written to the file system of a directory on disk (syncfs(2))."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(root))
    finally:
        os.close(descriptor)


def named(damaged: Sequence[Damage]) -> str:
    """Damaged files for a sentence: the first of them, with their packages."""
    words = [f"{one.path} ({one.package or '?'})" for one in damaged[:MOST_NAMED]]
    more = len(damaged) - len(words)
    return ", ".join(words) + (f" +{more}" if more > 0 else "")


def system() -> str:
    """The host as far as an environment rests on it: its name, C library and kernel."""
    name = platform.system()
    with suppress(OSError):
        name = platform.freedesktop_os_release().get("PRETTY_NAME", name)
    libc = " ".join(part for part in platform.libc_ver() if part)
    return ", ".join(
        part for part in (name, libc, f"{platform.system()} {platform.release()}") if part
    )


def _refuse_other_machine(lock: Lock, name: str) -> None:
    if lock.arch != platform.machine():
        raise Refused("image-other-arch", image=name, needs=lock.arch, found=platform.machine())
