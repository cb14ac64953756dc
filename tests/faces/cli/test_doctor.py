"""What doctor says of machines of all kinds, told by files below a root of the test's own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from danlu.faces.cli import checks, probe
from danlu.faces.cli.checks import (
    FAIL,
    OK,
    WARN,
    Check,
    Containers,
    Examined,
    Gpus,
    Groups,
    Isolation,
)
from danlu.faces.cli.doctor import unfit
from danlu.faces.cli.machine import Machine
from danlu.faces.cli.probe import Torch
from danlu.faces.cli.texts import fill
from danlu.faces.cli.texts.checks import CHECKS

CUDA12 = Torch("3.11.7", "2.9.0+cu128", "12.8", available=True)
VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Mon Nov  3 2025\nGCC version: 12\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"


def look(root: Path, torch: Torch = CUDA12, data: Path | None = None, port: int = 0) -> Examined:
    return Examined(Machine(root), data or root, Path(sys.executable), torch, "127.0.0.1", port)


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def said(check: Check, language: str = "en") -> str:
    return fill(CHECKS, check.key, language, check.params)


def test_this_machine_can_be_looked_at_whole(tmp_path: Path) -> None:
    found = list(checks.every(look(Path("/"), Torch("3.11"), tmp_path)))
    assert len(found) == len(checks.CHECKS)
    for check in found:
        assert check.level in (OK, WARN, FAIL)
        assert said(check)
        assert fill(CHECKS, f"name.{check.name}", "zh", {})
        assert said(check, "zh")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (VERSION.format("535.104.05"), "535.104.05"),
        (VERSION.format("470.42"), "470.42"),
        (OPEN, "580.95.05"),
    ],
)
def test_the_driver_of_either_kernel_module(tmp_path: Path, text: str, version: str) -> None:
    write(tmp_path, "proc/driver/nvidia/version", text)
    assert said(checks.driver(look(tmp_path))) == version


@pytest.mark.parametrize(
    ("driver", "torch", "level", "words"),
    [
        ("535.104.05", CUDA12, OK, "535.104.05 serves CUDA 12.8"),
        ("470.42.01", CUDA12, FAIL, "470.42.01 is too old for torch's CUDA 12.8, which needs 525"),
        ("535.104.05", CUDA12._replace(cuda="13.0"), FAIL, "580.65.06"),
        ("535.104.05", CUDA12._replace(cuda=""), FAIL, "CPU build"),
        ("535.104.05", CUDA12._replace(available=False), FAIL, "sees no GPU"),
        ("535.104.05", Torch(), WARN, "could not be asked"),
        (None, CUDA12, OK, "no driver"),
    ],
)
def test_driver_and_cuda_have_to_fit(
    tmp_path: Path, driver: str | None, torch: Torch, level: str, words: str
) -> None:
    """(cases 2 and 3) Both versions named."""
    if driver:
        write(tmp_path, "proc/driver/nvidia/version", VERSION.format(driver))
    check = checks.cuda(look(tmp_path, torch))
    assert check.level == level
    assert words in said(check)


@pytest.mark.parametrize(
    ("version", "cuda", "models", "words"),
    [
        ("2.14.1", "13.0", ("Tesla V100-SXM2-16GB",), "V100-SXM2-16GB (sm_70)"),
        ("2.7.1+cu128", "12.8", ("Tesla T4", "Tesla V100-SXM2-16GB"), "(sm_70), only sm_75 sm_80"),
        ("2.10.0+cu128", "12.8", ("Tesla V100-SXM2-16GB",), ""),
        ("2.14.1", "13.0", ("NVIDIA Graphics Device",), ""),
        ("2.99.0", "14.0", ("Tesla V100-SXM2-16GB",), ""),
        ("2.9.0a0+git1234", "13.0", ("Tesla V100-SXM2-16GB",), ""),
        ("2.14.1", "13.0", (), ""),
    ],
)
def test_a_build_without_kernels_for_the_gpu_is_found_before_a_job_does(
    tmp_path: Path, version: str, cuda: str, models: tuple[str, ...], words: str
) -> None:
    """Driver and CUDA fit, and yet the first kernel would fail: no kernel image is available."""
    write(tmp_path, "proc/driver/nvidia/version", VERSION.format("595.45.04"))
    torch = Torch("3.11.7", version, cuda, available=True)
    found = unfit(torch, models, "en")
    check = checks.cuda(look(tmp_path, torch)._replace(unfit=found))
    assert check.level == (FAIL if words else OK)
    assert words in said(check)
    if words:
        assert "cu126" in said(check)
        translated = unfit(torch, models, "zh")
        assert translated
        assert not translated.fix.isascii()


def test_a_card_without_a_driver_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
    write(tmp_path, "sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
    write(tmp_path, "sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n")
    write(tmp_path, "sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n")
    check = checks.driver(look(tmp_path))
    assert (check.level, check.params["count"]) == (FAIL, 1)


@pytest.mark.parametrize(
    ("driver", "gpus", "level", "words"),
    [
        (True, Gpus(("Tesla V100", "Tesla T4", "Tesla V100")), OK, "2 × Tesla V100, 1 × Tesla T4"),
        (True, Gpus(("Tesla V100",), 1), FAIL, "1 × Tesla V100; 1 more do not answer"),
        (True, Gpus(reason="NVML is gone"), FAIL, "NVML is gone"),
        (False, Gpus(reason="no driver"), OK, "jobs run on CPUs"),
    ],
)
def test_gpus_that_tasks_would_get(
    tmp_path: Path, *, driver: bool, gpus: Gpus, level: str, words: str
) -> None:
    """(cases 53 and 57)"""
    if driver:
        write(tmp_path, "proc/driver/nvidia/version", OPEN)
    check = checks.gpus(look(tmp_path)._replace(gpus=gpus))
    assert check.level == level
    assert words in said(check)


def test_memory_is_the_cgroups_where_that_has_less(tmp_path: Path) -> None:
    write(tmp_path, "proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 16777216 kB\n")
    assert said(checks.memory(look(tmp_path))) == "32 GiB, 16 GiB available"
    write(tmp_path, "sys/fs/cgroup/memory.max", "max\n")
    write(tmp_path, "sys/fs/cgroup/memory.current", "1073741824\n")
    assert checks.memory(look(tmp_path)).level == OK
    write(tmp_path, "sys/fs/cgroup/memory.max", "1610612736\n")
    check = checks.memory(look(tmp_path))
    assert (check.level, check.params) == (WARN, {"total": "1.5 GiB", "free": "512 MiB"})


def test_a_quota_of_cpus_is_seen(tmp_path: Path) -> None:
    write(tmp_path, "sys/fs/cgroup/cpu.max", "50000 100000\n")
    assert said(checks.cpus(look(tmp_path))).startswith("0.5 usable of")


@pytest.mark.parametrize(
    ("groups", "level", "words"),
    [
        (Groups(), WARN, "none is mounted"),
        (Groups(1, 1, ("memory", "cpu", "pids")), OK, "version 1: limits"),
        (Groups(2, 2, ("pids", "cpu", "memory")), OK, "version 2: limits"),
        (Groups(2, 2, ("memory",)), WARN, "without cpu, pids"),
        (Groups(2), WARN, "Delegate=yes"),
        (Groups(1), WARN, "version 1, but none may be made"),
    ],
)
def test_control_groups_and_what_to_do_about_them(
    tmp_path: Path, groups: Groups, level: str, words: str
) -> None:
    check = checks.cgroup(look(tmp_path)._replace(groups=groups))
    assert check.level == level
    assert words in said(check)
    assert "{" not in said(check, "zh")


def test_what_forbids_user_namespaces_is_named(tmp_path: Path) -> None:
    refused = checks.namespaces(look(tmp_path)._replace(isolation=Isolation("", "No way")))
    assert refused.level == WARN
    assert "(No way)" in said(refused)
    write(tmp_path, "proc/sys/kernel/unprivileged_userns_clone", "0\n")
    check = checks.namespaces(look(tmp_path))
    assert check.level == WARN
    assert "kernel.unprivileged_userns_clone" in said(check)


@pytest.mark.parametrize(
    ("isolation", "levels", "words"),
    [
        (Isolation("root", "", 7), (OK, OK), ("made by root", "version 7")),
        (Isolation("user", "", 4), (OK, OK), ("user namespaces", "version 4")),
        (Isolation("", "x", 6), (WARN, OK), ("SYS_ADMIN", "version 6")),
        (Isolation("", "x", 4), (WARN, WARN), ("SYS_ADMIN", "may signal")),
        (Isolation("root"), (OK, WARN), ("made by root", "lsm=")),
    ],
)
def test_what_isolates_tasks_and_what_to_do_about_it(
    tmp_path: Path, isolation: Isolation, levels: tuple[str, str], words: tuple[str, str]
) -> None:
    looked = look(tmp_path)._replace(isolation=isolation)
    found = (checks.namespaces(looked), checks.landlock(looked))
    assert tuple(check.level for check in found) == levels
    for check, word in zip(found, words, strict=True):
        assert word in said(check)
        assert "{" not in said(check, "zh")


def test_a_data_directory_that_others_read_or_that_lies_on_a_network(tmp_path: Path) -> None:
    data = tmp_path / "my data"
    assert checks.data(look(tmp_path, data=data)).key == "data.new"
    data.mkdir(mode=0o755)
    assert "chmod 700" in said(checks.data(look(tmp_path, data=data)))
    data.chmod(0o700)
    assert checks.data(look(tmp_path, data=data)).level == OK
    mount = os.fspath(data).replace(" ", "\\040")
    write(tmp_path, "proc/mounts", f"/dev/a / ext4 rw 0 0\nsrv:/x {mount} nfs4 rw 0 0\n")
    assert "nfs4" in said(checks.data(look(tmp_path, data=data)))


def test_the_environment_of_jobs_is_asked_and_noise_ignored(tmp_path: Path) -> None:
    """(case 5) Warnings on either stream are no answer."""
    found = probe.ask(Path(sys.executable))
    assert found.python == sys.version.split()[0]
    assert found.problem == ""
    fake = tmp_path / "python"
    answer = '{"python": "3.9", "version": "2.1", "cuda": "", "available": false}'
    fake.write_text(
        f"#!/bin/sh\necho warning >&2\necho noise\necho '{probe.MARK}{answer}'\necho more noise\n"
    )
    fake.chmod(0o755)
    assert probe.ask(fake) == Torch("3.9", "2.1")


@pytest.mark.parametrize(
    ("script", "words"),
    [("kill -SEGV $$", "exit status -11"), ("echo boom >&2; exit 3", "boom"),
     (f"echo '{probe.MARK}nonsense'", "Expecting"), ("exec sleep 60", "no answer")],
)  # fmt: skip
def test_an_environment_that_crashes_takes_nobody_along(
    tmp_path: Path, script: str, words: str
) -> None:
    """(case 58)"""
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    torch = probe.ask(fake, timeout_s=1.0)
    assert words in torch.problem
    check = checks.environment(look(tmp_path, torch)._replace(python=fake))
    assert check.level == FAIL
    assert checks.torch(look(tmp_path, torch)).level == WARN


def test_an_environment_without_an_interpreter(tmp_path: Path) -> None:
    missing = look(tmp_path)._replace(python=tmp_path / "bin" / "python")
    assert checks.environment(missing).key == "environment.missing"


@pytest.mark.parametrize(
    ("found", "level", "words"),
    [
        (Containers(), OK, "not used"),
        (Containers(True, "nothing answers at /x"), FAIL, "nothing answers at /x"),
        (Containers(True, "", "podman 4.3.1", (), "cdi"), OK, "podman 4.3.1: tasks are held"),
        (Containers(True, "", "podman 4", ("cpu", "pids"), "cdi"), WARN, "cpu, pids"),
        (Containers(True, "", "podman 4"), FAIL, "nvidia-ctk cdi generate"),
        (Containers(True, "", "docker 27", (), "nvidia", keeps=False), WARN, "live-restore"),
    ],
)
def test_the_container_runtime(tmp_path: Path, found: Containers, level: str, words: str) -> None:
    """(case 52) Also where the machine has a GPU that containers would not get."""
    examined = look(tmp_path)._replace(containers=found, gpus=Gpus(("H200",)))
    check = checks.containers(examined)
    assert check.level == level
    assert words in said(check)
    assert said(check, "zh")
