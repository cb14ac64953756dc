"""What was installed by hand becomes a definition and a lock: another image, of which the first is
the parent.

Every package gets the very wheel that it was installed from, found by its tags on the sources that
the server has, and proved: the new image is made, and its packages are held against the task's.
What cannot be pinned is named with what to do about it.
"""

from __future__ import annotations

import platform
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from danlu.images import definition, distributions, lock, pylock, uv
from danlu.images.definition import COMPANIONS, DECIDED, Definition
from danlu.images.installed import tag_of_pypi
from danlu.images.lock import Lock, Wheel
from danlu.images.locking import Local
from danlu.images.matrix import Matrix
from danlu.images.realise import Making, realise
from danlu.images.store import ImageStore, digits, publish
from danlu.images.uv import Uv
from danlu.model.errors import Invalid, Refused
from danlu.model.image import CHANNELS, CPU, PYPI
from danlu.model.installed import (
    CannotPin,
    Changed,
    Distribution,
    Frozen,
    Installed,
    Obstacle,
    Source,
    Unpinned,
)

FOLDER = "definitions"
FIRST = "1"
_VERSIONED = re.compile(r"(.+)-([0-9][0-9A-Za-z._-]{0,31})")
_DEFINED = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_OBSTACLES = {
    Source.EDITABLE: Obstacle.EDITABLE,
    Source.DIRECTORY: Obstacle.DIRECTORY,
    Source.VCS: Obstacle.VCS,
}
MOST_FILES = 10


def freeze(
    store: ImageStore,
    matrix: Matrix,
    found: Installed,
    name: str,
    making: Making,
    without: Sequence[str] = (),
) -> Frozen:
    """The image that a task's environment has become, realised and proved. Packages and files of
    `without` are left out.

    CannotPin names everything that can be in no lock; Refused where nothing was changed, or torch
    is gone.
    """
    parent = store.lock(found.image)
    named = _names(name)
    tool = Uv(store.part("cache"), making.sources, check=making.check)
    left = {definition.normal(one) for one in without}
    odd = [_obstacle(one) for one in found.added if one.source in _OBSTACLES]
    others = [one for one in found.added if one.source not in _OBSTACLES]
    pinned, more = _pinned(others, tool, parent.python)
    odd += [*more, *_files(found.loose)]
    left_out = [one for one in odd if (one.name or "files") in left]
    if len(left_out) < len(odd):
        raise CannotPin([one for one in odd if one not in left_out])
    pinned = {name: wheel for name, wheel in pinned.items() if name not in left}
    # A package that is left out is as it was in the parent.
    gone = [one for one in found.removed if one not in left]
    made = _locked(parent, pinned, gone, matrix)
    image_id = store.keep(made)
    changes = _changes(parent, made)
    if not changes:
        raise Refused("freeze-nothing", image=found.image)
    extras = tuple(f"{one.name}=={one.version}" for one in sorted(pinned.values()))
    realise(store, image_id, name, replace(making, parent=found.image, extras=extras))
    _prove(store, image_id, found, pinned)
    text = definition.text(_definition(store, found.image, made, named, changes), _about(found))
    publish(store.part(FOLDER) / f"{digits(image_id)}.toml", text)
    canonical = lock.canonical(made)
    return Frozen(image_id, name, found.image, text, canonical, changes, tuple(left_out))


def _names(name: str) -> tuple[str, str]:
    """Name and version of the definition: those of `mine-1.2`, else the first version."""
    parts = _VERSIONED.fullmatch(name)
    stem, version = (parts[1], parts[2]) if parts else (name, FIRST)
    if not _DEFINED.fullmatch(stem):
        expected = "small letters, digits and '-', perhaps with a version: mine, mine-1.2"
        raise Invalid("field-value", field="name", value=name, expected=expected)
    return stem, version


def _obstacle(one: Distribution) -> Unpinned:
    return Unpinned(one.name, one.version, _OBSTACLES[one.source], one.url)


def _files(loose: Sequence[str]) -> list[Unpinned]:
    if not loose:
        return []
    more = len(loose) - MOST_FILES
    detail = ", ".join(loose[:MOST_FILES]) + (f" +{more}" if more > 0 else "")
    return [Unpinned("", "", Obstacle.FILES, detail)]


# ---------------------------------------------------------------------- wheels


def _pinned(
    wanted: Sequence[Distribution], tool: Uv, python: str
) -> tuple[dict[str, Wheel], list[Unpinned]]:
    """The wheel of each package, and those that have none."""
    offered = _offered(wanted, tool, python)
    local = Local(tool.sources)
    pinned, odd = {}, []
    for one in wanted:
        files = [
            (filename, sha256 or str(local.get(filename, "")))
            for filename, sha256 in offered.get((one.name, one.version), [])
        ]
        right = [pair for pair in files if _is_of(pair, one)]
        if len(right) == 1 or (right and not one.sha256):
            filename, sha256 = right[0]
            pinned[one.name] = Wheel(one.name, one.version, filename, sha256)
        elif one.source is Source.ARCHIVE:
            odd.append(Unpinned(one.name, one.version, Obstacle.ARCHIVE, one.url))
        else:
            why = Obstacle.OTHER_WHEEL if files else Obstacle.NO_WHEEL
            odd.append(Unpinned(one.name, one.version, why, " ".join(one.tags)))
    return pinned, odd


def _is_of(pair: tuple[str, str], one: Distribution) -> bool:
    """Whether this file is what was installed, as far as that can be told without it."""
    filename, sha256 = pair
    if not sha256 or (one.source is Source.ARCHIVE and sha256 != one.sha256):
        return False
    try:
        tags = parse_wheel_filename(filename)[3]
    except InvalidWheelFilename:
        return False
    return not one.tags or {str(tag) for tag in tags} == set(one.tags)


def _offered(
    wanted: Sequence[Distribution], tool: Uv, python: str
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Every wheel that is offered of these versions; one that cannot be had hides no other."""
    if not wanted:
        return {}
    try:
        return pylock.offered(_compiled(wanted, tool, python))
    except uv.Failed:
        if len(wanted) == 1:
            return {}
    middle = len(wanted) // 2
    return {**_offered(wanted[:middle], tool, python), **_offered(wanted[middle:], tool, python)}


def _compiled(wanted: Iterable[Distribution], tool: Uv, python: str) -> str:
    pins = [(one.name, one.version) for one in wanted]
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "requirements.in"), Path(folder, "pylock.toml")
        source.write_text("".join(f"{name}=={version}\n" for name, version in pins), "utf-8")
        options = uv.extended(tool.sources, [(version, "") for _, version in pins])
        tool(
            *("pip", "compile", str(source), "--no-deps", "--only-binary", ":all:"),
            *("--python-version", python),
            *("--format", "pylock.toml", "--output-file", str(out), *options),
        )
        return out.read_text("utf-8")


def _locked(
    parent: Lock, pinned: Mapping[str, Wheel], removed: Iterable[str], matrix: Matrix
) -> Lock:
    wheels = {one.name: one for one in parent.wheels if one.name not in set(removed)}
    wheels.update(pinned)
    if "torch" not in wheels:
        raise Refused("freeze-no-torch")
    backend = parent.backend
    if "torch" in pinned:
        release, _, tag = pinned["torch"].version.partition("+")
        backend = tag or tag_of_pypi(matrix, release, parent.arch) or backend
    made = replace(parent, backend=backend, wheels=tuple(sorted(wheels.values())))
    lock.check(made)
    return made


def _prove(store: ImageStore, image_id: str, found: Installed, pinned: Mapping[str, Wheel]) -> None:
    """Hold the new environment against the task's. CannotPin where a wheel of the same name holds
    something else.
    """
    root = store.environment(image_id)
    sites = distributions.sites(root)
    made = dict(distributions.packages(distributions.Plain(root), sites))
    odd = [
        Unpinned(one.name, one.version, Obstacle.OTHER_WHEEL, pinned[one.name].filename)
        for one in found.added
        if one.name in pinned
        and (one.name not in made or made[one.name].about.content != one.content)
    ]
    if odd:
        raise CannotPin(odd)


# ---------------------------------------------------------------------- the definition


def _changes(before: Lock, after: Lock) -> tuple[Changed, ...]:
    """Packages in which two locks differ; another file of one version is a change as well."""
    old, new = ({one.name: one for one in each.wheels} for each in (before, after))
    return tuple(
        Changed(
            name,
            old[name].version if name in old else "",
            new[name].version if name in new else "",
        )
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    )


def _definition(
    store: ImageStore,
    parent: str,
    made: Lock,
    named: tuple[str, str],
    changes: Sequence[Changed],
) -> Definition:
    """The parent's with what was changed; of a parent that has none, one that names everything."""
    before = _defined(store, parent)
    versions = {one.name: one.version for one in made.wheels}
    base = before or next(definition.built_in())
    kept = base.packages if before else ()
    pins = changes if before else [Changed(name, "", one) for name, one in versions.items()]
    touched = {one.name for one in pins}
    packages = [one for one in kept if _name_of(one) not in touched]
    packages += [
        f"{one.name}=={one.after}" for one in pins if one.after and not DECIDED.fullmatch(one.name)
    ]
    release, _, local = versions["torch"].partition("+")
    return replace(
        base,
        name=named[0],
        version=named[1],
        python=made.python,
        torch=release,
        companions=tuple(one for one in COMPANIONS if one in versions),
        backends=(made.backend,),
        gpus=base.gpus if made.backend != CPU else (),
        min_driver=base.min_driver if made.backend != CPU else "",
        channels=CHANNELS if local else (PYPI,),
        packages=tuple(sorted(packages)),
        runtime=made.runtime,
    )


def _name_of(requirement: str) -> str:
    return definition.normal(re.split(r"[\[=~!<>]", requirement)[0])


def _defined(store: ImageStore, image_id: str) -> Definition | None:
    """The definition of an image, or of the nearest that it was made from."""
    for one in definition.built_in():
        for backend in one.backends:
            if lock.image_id(lock.built_in(one, backend)) == image_id:
                return one
    try:
        text = (store.root / FOLDER / f"{digits(image_id)}.toml").read_text("utf-8")
        return definition.parse(text)
    except (OSError, Invalid):
        return None


def _about(found: Installed) -> str:
    return f"Frozen from what was installed by hand in {found.image} on {platform.machine()}."
