"""The programs that make containers here, and give them GPUs: which versions there are."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping

PROGRAMS: Mapping[str, str] = {
    "podman": "podman",
    "docker": "docker",
    "runc": "runc",
    "crun": "crun",
    "nvidia-ctk": "nvidia-container-toolkit",
}
"""Programs, and what they belong to."""
ASK_S = 10.0
_VERSION = re.compile(r"\bversion:?\s+v?(\d+(?:\.\d+)+[^\s,]*)", re.IGNORECASE)


def versions() -> dict[str, str]:
    """The version of each that is installed. What says none is left out."""
    found = {}
    for program, name in PROGRAMS.items():
        path = shutil.which(program)
        version = _asked(path) if path else ""
        if version:
            found[name] = version
    return found


def _asked(path: str) -> str:
    try:
        said = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=ASK_S,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    match = _VERSION.search(said[:4096].decode("utf-8", "replace"))
    return match[1] if match else ""
