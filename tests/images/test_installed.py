"""What speaks against a torch that is installed: only what is certain."""

from __future__ import annotations

from pathlib import Path

import pytest

from danlu.images import matrix
from danlu.images.installed import against
from danlu.model.image import Rule
from danlu.node.gpu import loaded_driver

PACKAGED = matrix.packaged()
V100, A100 = "Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-80GB"


@pytest.mark.parametrize(
    ("torch", "gpus", "driver", "arch", "rule"),
    [
        ("2.13.0+cpu", (A100,), "580.65.06", "x86_64", Rule.GPU),
        ("2.14.1", (V100,), "580.65.06", "x86_64", Rule.GPU),
        ("2.14.1", (A100, V100), "580.65.06", "x86_64", Rule.GPU),
        ("2.14.1", (A100,), "570.26", "x86_64", Rule.DRIVER),
        ("2.10.0", ("GH200",), "580.65.06", "aarch64", Rule.GPU),
        ("2.14.1", (A100,), "580.65.06", "x86_64", None),
        ("2.14.1", (A100,), "", "x86_64", None),
        ("2.14.1+cu126", (V100,), "535.104.05", "x86_64", None),
        ("2.11.0", ("GH200",), "580.65.06", "aarch64", None),
        ("2.15.0+cu126", (V100,), "580.65.06", "x86_64", None),
        ("2.14.1", ("NVIDIA Graphics Device",), "580.65.06", "x86_64", None),
        ("2.14.1", (A100,), "580.65.06", "riscv64", None),
        ("2.99.0", (V100,), "580.65.06", "x86_64", None),
        ("2.14.1+rocm6", (V100,), "580.65.06", "x86_64", None),
        ("2.14.0a0+git1", (V100,), "580.65.06", "x86_64", None),
        ("2.14.1", (), "580.65.06", "x86_64", None),
        ("", (V100,), "580.65.06", "x86_64", None),
    ],
)
def test_only_what_is_certain_speaks_against_it(
    torch: str, gpus: tuple[str, ...], driver: str, arch: str, rule: Rule | None
) -> None:
    found = against(PACKAGED, torch, gpus, driver, arch)
    assert (found.rule if found else None) == rule
    assert found is None or found.fix_text()


def test_the_driver_that_is_loaded(tmp_path: Path) -> None:
    assert loaded_driver(tmp_path) == ""
    file = tmp_path / "sys" / "module" / "nvidia" / "version"
    file.parent.mkdir(parents=True)
    file.write_text("580.95.05\n")
    assert loaded_driver(tmp_path) == "580.95.05"
