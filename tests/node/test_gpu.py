"""GPUs, against a driver library that says what a test wants."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from danlu.model.resources import GIB, Gpu
from danlu.node import gpu
from danlu.node.gpu import Inventory, Readings, probe, shares, visible
from tests.fakes import nvml
from tests.fakes.nvml import FakeNvml
from tests.services import require

A = "GPU-aaaaaaaa-1111-2222-3333-444444444444"
B = "GPU-bbbbbbbb-1111-2222-3333-444444444444"
MIG = "MIG-cccccccc-1111-2222-3333-444444444444"
MIG_2 = "MIG-dddddddd-1111-2222-3333-444444444444"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require(shutil.which("gcc"), "a C compiler: apt-get install gcc")
    return nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def driver(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """A machine with two V100 of 16 GiB."""
    fake = FakeNvml(library, tmp_path / "values")
    fake.write({"devices": 2})
    for index, uuid in enumerate([A, B]):
        fake.gpu(index, uuid=uuid, name="Tesla V100-SXM2-16GB", busy=0)
        fake.gpu(index, memory_total=16 * GIB, memory_used=GIB, memory_reserved=GIB // 2)
    for name, value in fake.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("NVIDIA_VISIBLE_DEVICES", raising=False)
    return fake


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose driver library cannot be loaded, even where there is a real one."""
    (tmp_path / nvml.LIBRARY).write_bytes(b"not a library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))


# ---------------------------------------------------------------------- which there are


def test_the_gpus_of_a_machine(driver: FakeNvml) -> None:
    found = probe()
    assert found == Inventory(
        gpus=(
            Gpu(A, 0, "Tesla V100-SXM2-16GB", 16 * GIB),
            Gpu(B, 1, "Tesla V100-SXM2-16GB", 16 * GIB),
        ),
        driver="550.54.15",
    )
    assert found.reason() == ""


def test_the_program_prints_one_document_whatever_the_library_says(driver: FakeNvml) -> None:
    """(case 5)"""
    driver.write({"say.nvmlInit_v2": "WARNING: {not json}", "say.nvmlDeviceGetName": "noise"})
    argv = [sys.executable, "-m", "danlu.node.gpu"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert [each["uuid"] for each in document["gpus"]] == [A, B]
    assert document["gpus"][0]["readings"] == {
        "busy": 0.0,
        "memory_used_bytes": GIB,
        "memory_total_bytes": 16 * GIB,
        "problem": "",
        "detail": "",
    }
    assert "WARNING" in done.stderr
    assert len(probe().gpus) == 2


def test_a_driver_installed_later_is_found_the_next_time(
    driver: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(case 51)"""
    driver.write({"fail.nvmlInit_v2": 9})
    assert probe().problem == "gpu-driver-not-loaded"
    driver.write({"fail.nvmlInit_v2": 0})
    assert len(probe().gpus) == 2


@pytest.mark.usefixtures("bare")
def test_no_driver() -> None:
    found = probe()
    assert (found.gpus, found.problem) == ((), "gpu-no-driver")
    assert "libnvidia-ml.so.1" in found.reason()
    assert "驱动" in found.reason("zh")


@pytest.mark.parametrize(
    ("code", "problem"),
    [(9, "gpu-driver-not-loaded"), (18, "gpu-driver-mismatch"), (999, "gpu-probe-failed")],
)
def test_a_driver_that_does_not_start(driver: FakeNvml, code: int, problem: str) -> None:
    driver.write({"fail.nvmlInit_v2": code})
    found = probe()
    assert (found.gpus, found.problem) == ((), problem)
    assert found.reason()
    assert found.reason("zh")


def test_no_python_package(
    driver: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError('no package here')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = probe()
    assert found.problem == "gpu-library-missing"
    assert "no package here" in found.reason()


@pytest.mark.parametrize("where", ["nvmlInit_v2", "nvmlDeviceGetMemoryInfo_v2"])
def test_a_crash_of_the_library_takes_nobody_along(driver: FakeNvml, where: str) -> None:
    """(case 58)"""
    driver.write({f"crash.{where}": 1})
    found = probe()
    assert (found.gpus, found.problem) == ((), "gpu-probe-crashed")
    assert "SIGSEGV" in found.reason()


def test_a_library_that_hangs_is_given_up(driver: FakeNvml) -> None:
    driver.write({"hang.nvmlInit_v2": 1})
    before = time.monotonic()
    found = probe(timeout_s=1.5)
    assert (found.gpus, found.problem) == ((), "gpu-probe-timeout")
    assert "1.5 s" in found.reason()
    assert time.monotonic() - before < 20


def test_an_answer_that_is_no_inventory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for answer in ("", "{}", "[1]", '{"gpus": [{}]}', "\xff"):
        program = tmp_path / "python"
        program.write_text(f"#!/bin/sh\nprintf '%s' '{answer}'\n", encoding="latin-1")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))
        assert probe().problem == "gpu-probe-failed"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    assert probe().problem == "gpu-probe-failed"


def test_nothing_of_the_current_directory_is_imported(
    driver: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    assert len(probe().gpus) == 2


def test_a_driver_without_gpus(driver: FakeNvml) -> None:
    driver.write({"devices": 0})
    found = probe()
    assert found.problem == "gpu-none"
    assert "550.54.15" in found.reason()


# ---------------------------------------------------------------------- parts that fail


@pytest.mark.parametrize("function", ["nvmlDeviceGetName", "nvmlDeviceGetMigMode"])
@pytest.mark.parametrize("code", [3, 13, 999])
def test_one_question_that_fails_costs_nothing_else(
    driver: FakeNvml, function: str, code: int
) -> None:
    driver.write({f"fail.{function}": code})
    found = probe()
    assert [each.uuid for each in found.gpus] == [A, B]
    assert {each.memory_bytes for each in found.gpus} == {16 * GIB}
    assert {each.model for each in found.gpus} <= {"Tesla V100-SXM2-16GB", "NVIDIA GPU"}


def test_an_old_driver_has_only_the_first_form_of_the_memory_call(driver: FakeNvml) -> None:
    driver.write({"fail.nvmlDeviceGetMemoryInfo_v2": 13})
    assert {each.memory_bytes for each in probe().gpus} == {16 * GIB}


def test_memory_that_no_call_gives_is_unknown_and_not_0(driver: FakeNvml) -> None:
    driver.write({"fail.nvmlDeviceGetMemoryInfo_v2": 3, "fail.nvmlDeviceGetMemoryInfo.gpu.1": 3})
    assert [each.memory_bytes for each in probe().gpus] == [16 * GIB, None]


@pytest.mark.parametrize(
    "function", ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetMemoryInfo_v2"]
)
def test_a_lost_gpu_is_left_out_and_named(driver: FakeNvml, function: str) -> None:
    """(case 57)"""
    driver.write({f"fail.{function}.gpu.0": 15})
    found = probe()
    assert [each.uuid for each in found.gpus] == [B]
    assert found.unreachable == (0,)


def test_mig_devices_stand_for_their_card(driver: FakeNvml) -> None:
    driver.gpu(1, mig=7, mig_0_uuid=MIG, mig_0_name="NVIDIA A100-SXM4-40GB MIG 3g.20gb")
    driver.gpu(1, mig_0_memory_total=20 * GIB, mig_5_uuid=MIG_2, mig_5_memory_total=5 * GIB)
    assert probe().gpus == (
        Gpu(A, 0, "Tesla V100-SXM2-16GB", 16 * GIB),
        Gpu(MIG, 1, "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 20 * GIB),
        Gpu(MIG_2, 1, "Tesla V100-SXM2-16GB MIG", 5 * GIB),
    )


# ---------------------------------------------------------------------- what the server may see


@pytest.mark.parametrize(
    ("value", "expected"), [("1", [B]), (f"{B},{A}", [B, A]), ("GPU-b", [B]), ("all", [A, B])]
)
def test_the_servers_own_cuda_visible_devices_counts(
    driver: FakeNvml, monkeypatch: pytest.MonkeyPatch, value: str, expected: list[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert [each.uuid for each in probe().gpus] == expected


@pytest.mark.parametrize("value", ["", "-1", "none", "NoDevFiles"])
def test_a_value_that_hides_every_gpu_is_named(
    driver: FakeNvml, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    found = probe()
    assert (found.gpus, found.problem) == ((), "gpu-hidden")
    assert f"'{value}'" in found.reason()
    assert "2 GPU" in found.reason()


@pytest.mark.parametrize("value", ["void", "none", "7", "/var/run/nvidia-container-devices"])
def test_what_the_container_runtime_was_told_does_not_count_twice(
    driver: FakeNvml, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """Its numbers are the host's; inside, the driver shows the chosen ones alone. (case 55)"""
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", value)
    assert len(probe().gpus) == 2


CARDS = (
    Gpu(A, 0, "V100", GIB),
    Gpu(B, 1, "V100", GIB),
    Gpu(MIG, 2, "A100 MIG", GIB),
    Gpu(MIG_2, 2, "A100 MIG", GIB),
    Gpu("MIG-GPU-eeeeeeee-1111-2222-3333-444444444444/1/0", 3, "A100 MIG", GIB),
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", [0]),
        ("1,0", [1, 0]),
        (" 1 , 0 ", [1, 0]),
        ("0,0", [0]),
        ("2", [2, 3]),
        ("2:1", [3]),
        ("0,2:0", [0, 2]),
        (A, [0]),
        (A.upper(), [0]),
        ("GPU-bbbb", [1]),
        (f"{MIG_2},{A}", [3, 0]),
        ("MIG-cc", [2]),
        ("MIG-GPU-eeeeeeee-1111-2222-3333-444444444444/1/0", [4]),
        ("all", [0, 1, 2, 3, 4]),
        ("ALL", [0, 1, 2, 3, 4]),
        ("/var/run/nvidia-container-devices", [0, 1, 2, 3, 4]),
        ("none", []),
        ("void", []),
        ("", []),
        ("  ", []),
        # the first entry that fits nothing ends the list
        ("0,9,1", [0]),
        ("-1,0", []),
        ("0,-1,1", [0]),
        ("0,,1", [0]),
        ("GPU-", []),
        ("GPU-zzzz", []),
        ("MIG-", []),
        ("2:7", []),
        ("2:", []),
        ("2:x", []),
        (":1", []),
        ("aaaaaaaa", []),
        ("NoDevFiles", []),
        ("१", []),
        ("1" * 100, []),
    ],
)
def test_every_form_of_the_visible_devices(value: str, expected: list[int]) -> None:
    """(case 55)"""
    assert visible(value, CARDS) == tuple(CARDS[index] for index in expected)


# ---------------------------------------------------------------------- readings


class Agent:
    """A process that reads its GPUs whenever the test says so, with one start of the driver."""

    SCRIPT = """
import sys, json, dataclasses
from danlu.node.gpu import GpuMeter
meter = GpuMeter(sys.argv[1:])
for line in sys.stdin:
    readings = meter.read()
    print(json.dumps({k: dataclasses.asdict(v) for k, v in readings.items()}), flush=True)
"""

    def __init__(self, *uuids: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", self.SCRIPT, *uuids],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self) -> dict[str, Readings]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        print("now", file=self._child.stdin, flush=True)
        answer: dict[str, dict[str, Any]] = json.loads(self._child.stdout.readline())
        return {uuid: Readings(**values) for uuid, values in answer.items()}

    def close(self) -> None:
        self._child.communicate(timeout=20)


@pytest.fixture
def agent(driver: FakeNvml) -> Iterator[Agent]:
    driver.gpu(1, mig=7, mig_0_uuid=MIG, mig_0_memory_total=5 * GIB, mig_0_memory_used=GIB)
    made = Agent(A, MIG)
    yield made
    made.close()


def test_readings_follow_a_gpus_life(driver: FakeNvml, agent: Agent) -> None:
    driver.gpu(0, busy=55)
    assert agent.read()[A] == Readings(0.55, GIB, 16 * GIB)
    driver.gpu(0, busy=100, memory_used=3 * GIB)
    driver.write({"fail.nvmlInit_v2": 999})  # nobody starts it again
    assert agent.read()[A] == Readings(1.0, 3 * GIB, 16 * GIB)
    driver.write({"fail.nvmlInit_v2": 0, "fail.nvmlDeviceGetUtilizationRates.gpu.0": 3})
    assert agent.read()[A] == Readings(None, 3 * GIB, 16 * GIB, "gpu-unsupported", "Not Supported")
    driver.write({"fail.nvmlDeviceGetUtilizationRates.gpu.0": 0})
    assert agent.read()[A].busy == 1.0


def test_mig_has_no_load_and_says_why(agent: Agent) -> None:
    """(case 56)"""
    reading = agent.read()[MIG]
    assert reading.busy is None
    assert (reading.memory_used_bytes, reading.memory_total_bytes) == (GIB, 5 * GIB)
    assert reading.problem == "gpu-unknown-mig"
    assert "MIG" in reading.reason()
    assert "MIG" in reading.reason("zh")


def test_a_gpu_that_is_lost_is_unknown_and_not_idle(driver: FakeNvml, agent: Agent) -> None:
    """(case 57)"""
    assert agent.read()[A].busy == 0.0
    lost = dict.fromkeys(
        [
            "fail.nvmlDeviceGetUtilizationRates.gpu.0",
            "fail.nvmlDeviceGetMemoryInfo.gpu.0",
            "fail.nvmlDeviceGetMemoryInfo_v2.gpu.0",
        ],
        15,
    )
    driver.write(lost)
    reading = agent.read()[A]
    assert reading == Readings(None, None, None, "gpu-lost", reading.detail)
    assert reading.reason()
    assert agent.read()[MIG].memory_used_bytes == GIB
    driver.write(dict.fromkeys(lost, 0))
    assert agent.read()[A].busy == 0.0


@pytest.mark.parametrize("busy", [101, 4294967295])
def test_a_load_that_is_no_percentage_is_unknown(driver: FakeNvml, agent: Agent, busy: int) -> None:
    driver.gpu(0, busy=busy)
    reading = agent.read()[A]
    assert (reading.busy, reading.problem) == (None, "gpu-unsupported")


@pytest.mark.usefixtures("bare")
def test_readings_without_a_driver() -> None:
    agent = Agent(A)
    reading = agent.read()[A]
    assert (reading.busy, reading.memory_used_bytes) == (None, None)
    assert "libnvidia-ml.so.1" in reading.reason()
    agent.close()


def test_shares_are_means_of_what_is_known() -> None:
    readings = {
        "a": Readings(0.5, 1, 4),
        "b": Readings(1.0, None, None),
        "c": Readings(None, 3, 4),
    }
    assert shares(readings) == {"gpu_busy": 0.75, "gpu_memory": 0.5}
    assert shares({"a": Readings()}) == {}
    assert shares({}) == {}


def test_the_module_loads_without_the_library() -> None:
    script = "import sys; import danlu.node.gpu; print('pynvml' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
    assert gpu.MOST_DEVICES >= 16
