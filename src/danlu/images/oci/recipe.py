"""What a container image is made of beside the packages of its lock, and the file that says so.

The order of the layers is that of how often they change, the large ones first: base, Debian
packages, NVIDIA's wheels, torch, all other wheels, what starts. Images share the layers that are
equal, so a second version of an image costs what is new in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from danlu.images import definition
from danlu.images.known import Image
from danlu.images.lock import Lock
from danlu.model.errors import Invalid

PLACE = "/opt/danlu"
ENVIRONMENT = f"{PLACE}/environment"
LABEL = "io.danlu.image"
NAME_LABEL = "io.danlu.name"
APT_SOURCES = ("snapshot", "base")
"""Where Debian packages come from: the archive as it was at the definition's time, or what the base
itself names.
"""
LAYERS = ("nvidia", "torch", "rest")
EXECUTABLE = ("start", "session")
BASE = re.compile(r"[a-z0-9][a-z0-9._/:-]*(?:@sha256:[0-9a-f]{64})?")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The system's part of an image. `snapshot` is the time of the Debian archive; empty = as the
    base says.
    """

    base: str
    apt: tuple[str, ...]
    snapshot: str


def of(image: Image, base: str, sources: str) -> Recipe:
    """The recipe of an image: its definition's, or that of the first built-in one where only a lock
    is known. `base` overrides the base image. Invalid names what cannot be.
    """
    if base and not BASE.fullmatch(base):
        raise Invalid("field-value", field="base", value=base,
                      expected="an image reference such as debian:bookworm")  # fmt: skip
    if sources not in APT_SOURCES:
        raise Invalid("field-value", field="apt_sources", value=sources,
                      expected=f"one of {', '.join(APT_SOURCES)}")  # fmt: skip
    known = {one.id: one for one in definition.built_in()}
    name = image.name.removesuffix(f".{image.lock.backend}")
    written = known.get(name) or next(iter(known.values()))
    named = tuple(sorted(f"{one.name}={one.version}" for one in image.lock.apt))
    snapshot = written.apt_snapshot if sources == "snapshot" else ""
    return Recipe(base or written.base, named or written.apt, snapshot)


def layer_of(package: str) -> str:
    """The layer of a wheel by its package's name."""
    if re.fullmatch(r"nvidia-.*|cuda-.*|triton", package):
        return "nvidia"
    return "torch" if package in ("torch", *definition.COMPANIONS) else "rest"


def containerfile(lock: Lock, recipe: Recipe, labels: Mapping[str, str], parts: set[str]) -> str:
    """The Containerfile of an image whose directories of layers are `parts`."""
    user = lock.runtime
    told = [lock.python, user.user, str(user.uid), str(user.gid), recipe.snapshot, *recipe.apt]
    lines = [
        "ARG BASE",
        "FROM ${BASE}",
        f"RUN --mount=type=secret,id=ca,target=/run/danlu-ca.crt {_prepare(told)}",
        *(f"COPY --chown=0:0 {one}/ {ENVIRONMENT}/" for one in LAYERS if one in parts),
        "COPY --chown=0:0 entry/ /",
        *(f"ENV {name}={json.dumps(value)}" for name, value in _variables(lock).items()),
        *(f"LABEL {name}={json.dumps(value)}" for name, value in sorted(labels.items())),
        "STOPSIGNAL SIGTERM",
        f"WORKDIR /home/{user.user}",
        f"USER {user.uid}:{user.gid}",
        f'ENTRYPOINT ["tini", "--", "{PLACE}/start"]',
        "CMD []",
    ]
    return "\n".join(lines) + "\n"


def _prepare(told: Sequence[str]) -> str:
    # As a list, which no shell and no builder looks into.
    return json.dumps(["/bin/sh", "-c", packaged("prepare"), "prepare", *told])


def _variables(lock: Lock) -> dict[str, str]:
    """Drivers are the machine's: ModelArts and NVIDIA's runtime mount them at these places."""
    usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {
        "PATH": f"{ENVIRONMENT}/bin:/usr/local/nvidia/bin:{usual}",
        "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64:/usr/local/nvidia/lib",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "HOME": f"/home/{lock.runtime.user}",
        "USER": lock.runtime.user,
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "PYTHONUNBUFFERED": "1",
        **lock.env,
    }


def entry(lock: Lock) -> dict[str, tuple[str, int]]:
    """The files of the last layer: text and mode of each by its path."""
    found = {
        f"{PLACE}/{name}": (packaged(name), 0o755 if name in EXECUTABLE else 0o644)
        for name in ("start", "session", "sshd_config")
    }
    found["/etc/profile.d/danlu.sh"] = (packaged("profile.sh"), 0o644)
    access = f"ssh={lock.runtime.ssh}\njupyter={lock.runtime.jupyter_auth}\n"
    found[f"{PLACE}/access"] = (access, 0o644)
    return found


def packaged(name: str) -> str:
    """A file of ours that becomes a part of images."""
    return (resources.files("danlu.images.oci") / "files" / name).read_text("utf-8")
