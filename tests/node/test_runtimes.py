"""Which container programs there are, whatever else they print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from danlu.images import advisories
from danlu.node.runtimes import versions


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("danlu.node.runtimes.shutil.which", _only(tmp_path))
    return tmp_path


def _only(folder: Path) -> Callable[[str], str | None]:
    return lambda name: str(folder / name) if (folder / name).exists() else None


def program(folder: Path, name: str, text: str, code: int = 0) -> None:
    path = folder / name
    path.write_text(
        f"#!/bin/sh\ncat <<'END'\n{text}\nEND\necho noise version 9.9 >&2\nexit {code}\n"
    )
    path.chmod(0o755)


def test_each_is_asked_and_only_what_it_prints_counts(programs: Path) -> None:
    """(case 5) What goes to stderr is noise."""
    program(programs, "podman", "podman version 4.3.1")
    program(programs, "docker", "Docker version 20.10.24+dfsg1, build 297e128")
    program(
        programs, "runc", "runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\nspec: 1.0.2-dev"
    )
    program(programs, "nvidia-ctk", "NVIDIA Container Toolkit CLI version 1.17.8\ncommit: f202b80")
    program(programs, "crun", "no such thing", 1)

    assert versions() == {
        "podman": "4.3.1",
        "docker": "20.10.24+dfsg1",
        "runc": "1.1.5+ds1",
        "nvidia-container-toolkit": "1.17.8",
    }


@pytest.mark.parametrize(
    ("name", "version", "holes"),
    [
        ("runc", "1.1.5+ds1", {"CVE-2024-21626", "CVE-2025-31133"}),
        ("runc", "1.2.7", {"CVE-2025-31133"}),
        ("runc", "1.2.8", set()),  # mended on its own branch
        ("runc", "1.3.2", {"CVE-2025-31133"}),
        ("runc", "1.3.3", set()),
        ("runc", "1.4.0", set()),
        ("nvidia-container-toolkit", "1.17.8", set()),
        ("nvidia-container-toolkit", "1.17.7", {"CVE-2025-23266"}),
        ("torch", "1.0", set()),  # not a program of the host
    ],
)
def test_versions_below_a_floor_are_named(name: str, version: str, holes: set[str]) -> None:
    found = advisories.against({name: version}, advisories.HOST)

    assert {one["id"] for one in found} == holes


@pytest.mark.parametrize(
    ("version", "holes"),
    [
        ("2.5.1", {"CVE-2025-32434", "CVE-2026-24747"}),
        ("2.8.0+cu128", {"CVE-2026-24747"}),
        ("2.10.0", set()),
        ("2.13.0+cpu", set()),
    ],
)
def test_of_torch_too(version: str, holes: set[str]) -> None:
    found = advisories.against({"torch": version})

    assert {one["id"] for one in found} == holes
    assert all(one["source"].startswith("https://") for one in advisories.table())
