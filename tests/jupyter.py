"""An environment with JupyterLab for the tests: of the built-in image's versions, made once and
kept between runs.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from danlu.images import definition, lock
from danlu.images.uv import Failed, Sources, Uv
from tests.services import require

IMAGE = "pytorch-2.13-cpu"
PACKAGES = (
    "ipykernel",
    "jupyter-resource-usage",
    "jupyter-server-proxy",
    "jupyterlab",
    "jupyterlab-language-pack-zh-cn",
)
HOW = "JupyterLab: needs a package index once, for the environment kept in the user's cache"
CHROMIUM = "chromium: apt-get install chromium"


def chromium() -> str:
    """The system's chromium."""
    found = shutil.which("chromium") or ""
    require(found, CHROMIUM)
    return found


def environment() -> Path:
    """The directory of the environment, made if it is not kept from an earlier run."""
    pins = _pins()
    recipe = hashlib.sha256(f"{sys.version_info[:2]} {PACKAGES} {pins}".encode()).hexdigest()[:12]
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    kept = Path(home) / "danlu-tests" / "jupyter"
    kept.mkdir(parents=True, exist_ok=True)
    made = kept / recipe
    with (kept / "lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (made / ".whole").exists():
            shutil.rmtree(made, ignore_errors=True)
            problem = _make(made, pins)
            require(not problem, f"{HOW} ({problem})")
            (made / ".whole").touch()
    return made


def _pins() -> list[str]:
    one = next(one for one in definition.built_in() if one.id == IMAGE)
    return [
        f"{w.name}=={w.version}" for w in lock.built_in(one, "cpu").wheels if "+" not in w.version
    ]


def _make(folder: Path, pins: list[str]) -> str:
    """Install into `folder`; what went wrong, if anything did."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(pins), "ascii")
    sources = Sources.of(os.environ)
    try:
        Uv(folder / "cache", sources)(
            *("pip", "install", "--python", str(folder / "bin" / "python")),
            *("--only-binary", ":all:", "--constraint", str(constraints)),
            *sources.options(),
            *PACKAGES,
        )
    except Failed as failed:
        return failed.said
    finally:
        shutil.rmtree(folder / "cache", ignore_errors=True)
    return ""


@pytest.fixture(scope="session")
def jupyter() -> Path:
    """The Python of an environment with JupyterLab."""
    return environment() / "bin" / "python"
