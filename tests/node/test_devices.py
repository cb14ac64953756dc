from __future__ import annotations

from pathlib import Path

import pytest

from danlu.node import devices


@pytest.mark.parametrize(
    ("there", "made"),
    [(("nvidiactl",), True), (("nvidiactl", "nvidia-uvm"), False), ((), False)],
)
def test_the_memory_device_is_made_where_the_driver_is_and_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], *, made: bool
) -> None:
    dev, programs = tmp_path / "dev", tmp_path / "bin"
    for folder in (dev, programs):
        folder.mkdir()
    for name in there:
        (dev / name).touch()
    program = programs / devices.MODPROBE
    program.write_text(f'#!/bin/sh\n[ "$*" = "-c0 -u" ] && : > {tmp_path}/made\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    devices.make_ready(dev)
    assert (tmp_path / "made").exists() is made


def test_a_machine_without_the_program_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidiactl").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    devices.make_ready(tmp_path)
