"""A job's own packages on top of an image: another lock, and so another image, made as any other.

What is added is resolved together with everything that the image has. Its versions are kept where
that is possible; torch and what follows from it are kept always, unless that is overridden. Nothing
is built: a package without a wheel would run code of its own outside of any task.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from danlu.images import pylock, uv
from danlu.images.definition import DECIDED, normal
from danlu.images.lock import Lock, Wheel
from danlu.images.locking import LINUX
from danlu.images.pylock import Target
from danlu.images.store import ImageStore, digits, publish
from danlu.images.uv import Uv
from danlu.model.errors import Invalid, Missing, Refused

MOST_LINES = 1000
MOST_CHARS = 1 << 18


def read(text: str, source: str) -> list[str]:
    """The requirements of a file, a line each. Invalid, with the line, for what is no package with
    versions: options, addresses and paths say where packages come from, and that is the server's.
    """
    found = []
    if len(text) > MOST_CHARS:
        raise Invalid("field-too-long", field=source, size=len(text), unit="characters",
                      limit=MOST_CHARS, remedy="remove some")  # fmt: skip
    joined = text.replace("\\\r\n", " ").replace("\\\n", " ")
    for number, line in enumerate(joined.splitlines(), 1):
        plain = line.partition(" #")[0].strip()
        if plain and not plain.startswith("#"):
            found.append(normalised(plain, f"{source}:{number}"))
    if len(found) > MOST_LINES:
        raise Invalid("too-many", field=source, count=len(found), limit=MOST_LINES,
                      remedy="remove some")  # fmt: skip
    return found


def normalised(text: str, source: str) -> str:
    """One requirement in its usual spelling."""
    try:
        found = Requirement(text)
    except InvalidRequirement:
        raise Invalid("requirement-line", source=source, value=text) from None
    if found.url:
        raise Invalid("requirement-line", source=source, value=text)
    found.name = normal(found.name)
    return str(found)


def derive(
    store: ImageStore, parent: str, wanted: Sequence[str], tool: Uv, *, override: bool
) -> str:
    """The id of the image that is `parent` with these requirements added; its lock is kept.

    Refused where they would replace what the image decides, or cannot be had together.
    """
    lines = sorted(dict.fromkeys(wanted))
    key = json.dumps([parent, lines, override])
    kept = store.part("derived") / f"{hashlib.sha256(key.encode()).hexdigest()}.json"
    with suppress(OSError, ValueError, KeyError, TypeError, Missing, Invalid):
        found = str(json.loads(kept.read_text("utf-8"))["id"])
        store.lock(found)
        return found
    base = store.lock(parent)
    if not override:
        _check(lines, base)
    added = _locked(base, lines, tool, Target(base.python, LINUX[1], base.arch), override=override)
    if not override:
        _undecided(base, added)
    image_id = store.keep(added)
    publish(kept, json.dumps({"id": image_id, "parent": parent, "extras": lines}))
    return image_id


def _check(lines: Iterable[str], base: Lock) -> None:
    """Refuse what names a package that the image decides, at a version that it does not have."""
    has = {wheel.name: wheel.version for wheel in base.wheels}
    for line in lines:
        one = Requirement(line)
        if not DECIDED.fullmatch(one.name):
            continue
        there = has.get(one.name)
        if there is None or not one.specifier.contains(Version(there), prereleases=True):
            raise _replaces(line, one.name, there)


def _undecided(base: Lock, added: Lock) -> None:
    """Refuse what would bring or replace a package that the image decides."""
    has = {wheel.name: wheel.version for wheel in base.wheels}
    for wheel in added.wheels:
        if DECIDED.fullmatch(wheel.name) and has.get(wheel.name) != wheel.version:
            raise _replaces(f"{wheel.name}=={wheel.version}", wheel.name, has.get(wheel.name))


def _replaces(wanted: str, name: str, there: str | None) -> Refused:
    return Refused("requirement-replaces", wanted=wanted, package=name, version=there or "–")


def _locked(base: Lock, lines: Sequence[str], tool: Uv, target: Target, *, override: bool) -> Lock:
    """Everything as it is, if that can be; else with as little changed as can be."""
    pins = {wheel.name: f"{wheel.name}=={wheel.version}" for wheel in base.wheels}
    named = {Requirement(line).name for line in lines}
    if override:
        pins = {name: pin for name, pin in pins.items() if not DECIDED.fullmatch(name)}
    compiler = _Compiler(base, tool, target)
    try:
        found = compiler.locked([*lines, *pins.values()])
    except uv.Failed:
        held = [pin for name, pin in pins.items() if DECIDED.fullmatch(name)]
        loose = [name for name in pins if not DECIDED.fullmatch(name) and name not in named]
        try:
            settled = compiler.settled([*lines, *held, *loose], pins.values())
            found = compiler.locked(settled)
        except uv.Failed as failed:
            raise Refused("requirements-conflict", detail=failed.said) from failed
    return replace(base, wheels=found)


class _Compiler:
    """uv's resolver for one image."""

    def __init__(self, base: Lock, tool: Uv, target: Target) -> None:
        self._base = base
        self._tool = tool
        self._target = target
        known = [(wheel.version, wheel.filename) for wheel in base.wheels]
        arch, glibc = target.arch, target.glibc.replace(".", "_")
        self._options = [
            *("--only-binary", ":all:", "--python-version", target.python),
            *("--python-platform", f"{arch}-manylinux_{glibc}"),
            *uv.extended(tool.sources, known),
        ]

    def locked(self, wanted: Sequence[str]) -> tuple[Wheel, ...]:
        """The wheels of what is wanted and all that it needs."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "pylock.toml")
            self._run(folder, wanted, out, "--format", "pylock.toml")
            local: Mapping[str, str] = {one.filename: one.sha256 for one in self._base.wheels}
            found = pylock.wheels(out.read_text("utf-8"), self._target, local)
            # Of a version that the image has, its wheel, whatever else is offered by now.
            has = {(one.name, one.version): one for one in self._base.wheels}
            return tuple(has.get((one.name, one.version), one) for one in found)

    def settled(self, wanted: Sequence[str], preferred: Iterable[str]) -> list[str]:
        """Versions of what is wanted, the preferred ones where they fit."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "settled.txt")
            # What stands in the file already is kept where it can be.
            out.write_text("".join(f"{one}\n" for one in preferred), "utf-8")
            self._run(folder, wanted, out, "--no-annotate", "--no-header")
            lines = out.read_text("utf-8").splitlines()
            return [line.strip() for line in lines if "==" in line]

    def _run(self, folder: str, wanted: Sequence[str], out: Path, *more: str) -> None:
        source = Path(folder, "requirements.in")
        source.write_text("".join(f"{one}\n" for one in wanted), "utf-8")
        self._tool("pip", "compile", str(source), *more, *self._options, "--output-file", str(out))


def name_of(parent: str, image_id: str) -> str:
    """How a derived image is called."""
    return f"{parent}+{digits(image_id)[:8]}"
