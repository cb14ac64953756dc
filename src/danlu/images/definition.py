"""The definition of an image: the one file that a person writes, in TOML.

A definition says what is wanted; a lock (`lock.py`) says exactly what that is. Built-in ones stand
beside this module.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from danlu.images import resolve
from danlu.images.fields import Number, Table, Text, Texts
from danlu.images.matrix import Matrix, Release
from danlu.images.versions import series
from danlu.model.errors import Invalid, Missing
from danlu.model.image import CHANNELS, CPU, Answer, Ask, DoesNotFit

SCHEMA = 1
SUFFIX = ".toml"
MOST_CHARS = 1 << 18

COMPANIONS = ("torchaudio", "torchvision")
DECIDED = re.compile(r"(?:torch|torchvision|torchaudio|triton|nvidia-.*|cuda-.*)")
"""Packages that follow from torch's version and backend: a second opinion could only be wrong."""

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_SPECIFIER = r"(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+"
_REQUIREMENT = (
    rf"{_NAME}(?:\[{_NAME}(?:\s*,\s*{_NAME})*\])?\s*(?:{_SPECIFIER}(?:\s*,\s*{_SPECIFIER})*)?"
)

_FILE = Table(
    {
        "schema": Number(SCHEMA, SCHEMA),
        "name": Text(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?", "small letters, digits and '-'"),
        "version": Text(r"[0-9A-Za-z][0-9A-Za-z._-]{0,31}", "a version such as 2.8 or 2.8-cpu"),
        "base": Table(
            {
                "image": Text(
                    r"[a-z0-9][a-z0-9._/:-]*(?:@sha256:[0-9a-f]{64})?",
                    "an image reference such as debian:bookworm",
                ),
                "apt_snapshot": Text(
                    r"\d{8}T\d{6}Z", "the time of an apt snapshot such as 20250520T000000Z"
                ),
                "apt": Texts(Text(r"[a-z0-9][a-z0-9+.-]+", "the name of a Debian package")),
            },
            {"apt": ()},
        ),
        "python": Table({"version": Text(r"3\.\d{1,2}t?", "a Python version such as 3.11")}, {}),
        "torch": Table(
            {
                "version": Text(r"\d+\.\d+\.\d+", "a release of torch such as 2.8.0"),
                "companions": Texts(Text("|".join(COMPANIONS), "one of torchaudio, torchvision")),
                "backends": Texts(Text(r"cpu|cu\d{2,4}", "a tag such as cu128, or cpu"), least=1),
            },
            {"companions": ()},
        ),
        "target": Table(
            {
                "gpus": Texts(Text(r"[ -~]+", "a GPU's model or its compute capability")),
                "min_driver": Text(
                    r"\d+(?:\.\d+){1,2}",
                    "a driver's version such as 535.104.05, as nvidia-smi shows it",
                ),
                "channels": Texts(Text("|".join(CHANNELS), "pypi or index"), least=1),
            },
            {"gpus": (), "min_driver": "", "channels": ("pypi",)},
        ),
        "packages": Table(
            {
                "pinned": Texts(
                    Text(_REQUIREMENT, "a package with versions such as numpy>=2,<3, without a URL")
                )
            },
            {"pinned": ()},
        ),
        "runtime": Table(
            {
                "user": Table(
                    {
                        "uid": Number(1, 65_533),
                        "gid": Number(1, 65_533),
                        "name": Text(r"[a-z_][a-z0-9_-]{0,31}", "a user's name"),
                    },
                    {},
                ),
                "ssh": Text(r"keys-only|off", "one of keys-only, off"),
                "jupyter_auth": Text(r"token-required|off", "one of token-required, off"),
                "shm_min_mb": Number(1, 1 << 20),
            },
            {
                "user": {"uid": 1000, "gid": 100, "name": "ma-user"},
                "ssh": "keys-only",
                "jupyter_auth": "token-required",
                "shm_min_mb": 1024,
            },
        ),
    },
    {
        "target": {"gpus": (), "min_driver": "", "channels": ("pypi",)},
        "packages": {"pinned": ()},
        "runtime": {
            "user": {"uid": 1000, "gid": 100, "name": "ma-user"},
            "ssh": "keys-only",
            "jupyter_auth": "token-required",
            "shm_min_mb": 1024,
        },
    },
)


@dataclass(frozen=True, slots=True)
class Runtime:
    """How an image starts: who its user is, and who may come in."""

    uid: int
    gid: int
    user: str
    ssh: str
    jupyter_auth: str
    shm_min_mb: int


@dataclass(frozen=True, slots=True)
class Definition:
    """What is wanted of an image. Lists are sorted: their order in the file says nothing."""

    name: str
    version: str
    base: str
    apt_snapshot: str
    apt: tuple[str, ...]
    python: str
    torch: str
    companions: tuple[str, ...]
    backends: tuple[str, ...]
    gpus: tuple[str, ...]
    min_driver: str
    channels: tuple[str, ...]
    packages: tuple[str, ...]
    runtime: Runtime

    @property
    def id(self) -> str:
        """Name and version, as people and ModelArts' clients call it: `pytorch-cuda-2.8`."""
        return f"{self.name}-{self.version}"


def parse(text: str) -> Definition:
    """A definition from its TOML. Invalid names the field, its value and what it has to be."""
    if len(text) > MOST_CHARS:
        raise Invalid("field-too-long", field="definition", size=len(text), unit="characters",
                      limit=MOST_CHARS, remedy="remove it")  # fmt: skip
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise Invalid("image-not-toml", detail=str(problem)) from problem
    found = _FILE.read(data, "")
    base, torch, target, runtime = (found[key] for key in ("base", "torch", "target", "runtime"))
    packages = tuple("".join(one.split()) for one in found["packages"]["pinned"])
    for one in packages:
        name = normal(re.split(r"[\[=~!<>]", one)[0])
        if DECIDED.fullmatch(name):
            raise Invalid("image-package-decided", field="packages.pinned", value=one, name=name)
    user = runtime["user"]
    return Definition(
        found["name"],
        found["version"],
        base["image"],
        base["apt_snapshot"],
        base["apt"],
        found["python"]["version"],
        torch["version"],
        torch["companions"],
        torch["backends"],
        target["gpus"],
        target["min_driver"],
        target["channels"],
        tuple(sorted(packages)),
        Runtime(
            user["uid"],
            user["gid"],
            user["name"],
            runtime["ssh"],
            runtime["jupyter_auth"],
            runtime["shm_min_mb"],
        ),
    )


def normal(name: str) -> str:
    """The one spelling of a package's name: small letters, and '-' between the parts."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(matrix: Matrix, definition: Definition) -> tuple[str, ...]:
    """What has to be installed: torch and its companions to the version, then the rest.

    The companions come from the matrix, because their own metadata does not always name the torch
    that they were built for. Missing if the matrix does not know the release.
    """
    release = _release(matrix, definition)
    paired = {"torchvision": release.torchvision, "torchaudio": release.torchaudio}
    pairs = [f"{name}=={_exact(paired[name])}" for name in definition.companions]
    return (f"torch=={release.torch}", *pairs, *definition.packages)


def _exact(version: str) -> str:
    """`2.11.x` is any release of 2.11."""
    return f"{series(version)}.*" if version.endswith(".x") else version


def check(matrix: Matrix, definition: Definition, glibc: str, arch: str) -> dict[str, Answer]:
    """The answer for every backend, on the GPUs and the oldest driver that the definition names.

    DoesNotFit, with the nearest change, where one of them could not work: before anything is built.
    """
    _release(matrix, definition)
    answers = {}
    for backend in definition.backends:
        gpus = () if backend == CPU else definition.gpus
        driver = "" if backend == CPU else definition.min_driver
        answer = resolve.ask(
            matrix,
            Ask(definition.torch, backend, gpus, driver, definition.python, glibc, arch,
                definition.channels),
        )  # fmt: skip
        if answer.choice is None:
            raise DoesNotFit(definition.id, answer.rejected[0])
        answers[backend] = answer
    return answers


def _release(matrix: Matrix, definition: Definition) -> Release:
    for release in matrix.releases:
        if release.torch == definition.torch:
            return release
    newest = matrix.releases[-1].torch
    raise Missing("image-torch-unknown", torch=definition.torch, newest=newest)


def text(one: Definition, about: str = "") -> str:
    """A definition as TOML, of which `parse` makes the same. `about` is a remark at its head."""
    user = {"uid": one.runtime.uid, "gid": one.runtime.gid, "name": one.runtime.user}
    tables: dict[str, dict[str, object]] = {
        "base": {"image": one.base, "apt_snapshot": one.apt_snapshot, "apt": one.apt},
        "python": {"version": one.python},
        "torch": {
            "version": one.torch, "companions": one.companions, "backends": one.backends,
        },
        "target": {
            "gpus": one.gpus, "min_driver": one.min_driver, "channels": one.channels,
        },
        "packages": {"pinned": one.packages},
        "runtime": {
            "user": user, "ssh": one.runtime.ssh, "jupyter_auth": one.runtime.jupyter_auth,
            "shm_min_mb": one.runtime.shm_min_mb,
        },
    }  # fmt: skip
    lines = [*(f"# {line}" for line in about.splitlines()), f"schema = {SCHEMA}"]
    lines += [f"name = {_toml(one.name)}", f"version = {_toml(one.version)}"]
    for name, fields in tables.items():
        kept = {key: value for key, value in fields.items() if value not in ("", ())}
        if kept:
            lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in kept.items())]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        if not value:
            return "[]"
        return "".join(["[\n", *(f"    {_toml(one)},\n" for one in value), "]"])
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(one)}' for key, one in value.items())} }}"
    return json.dumps(value)


# ---------------------------------------------------------------------- built in


def built_in() -> Iterator[Definition]:
    """The definitions that the package carries, by name."""
    folder = resources.files("danlu.images") / "builtin"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(SUFFIX):
            yield parse(file.read_text("utf-8"))
