"""A program starts only where it sees as many GPUs as its flavor has."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.model.reason import ReasonCode
from danlu.model.resources import Gpu
from danlu.ports.engine import Exit
from danlu.ports.task_directory import Isolation
from tests.contract.engines import ProcessHouse, finish, whole_log
from tests.contract.tasks import start
from tests.fakes import nvml
from tests.fakes.nvml import FakeNvml
from tests.services import require

UUIDS = ("GPU-11111111-1111-1111-1111-111111111111", "GPU-22222222-2222-2222-2222-222222222222")
GPUS = tuple(Gpu(uuid, index, "Tesla V100-SXM2-16GB", 16 << 30) for index, uuid in enumerate(UUIDS))
PROGRAM = "print('user code')"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require(shutil.which("gcc"), "a C compiler: apt-get install gcc")
    return nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def driver(library: Path, tmp_path: Path) -> FakeNvml:
    """A machine's driver, which knows two GPUs."""
    fake = FakeNvml(library, tmp_path / "values")
    fake.write({"devices": 2})
    for index, uuid in enumerate(UUIDS):
        fake.gpu(index, uuid=uuid, name="Tesla V100-SXM2-16GB")
    return fake


@pytest.fixture
def house(driver: FakeNvml, tmp_path: Path) -> Iterator[ProcessHouse]:
    paths = driver.environment
    readable = (paths["LD_LIBRARY_PATH"], str(tmp_path / "values"))
    made = ProcessHouse(
        tmp_path,
        environment={"LD_LIBRARY_PATH": paths["LD_LIBRARY_PATH"]},
        isolation=Isolation(readable=readable),
    )
    yield made
    made.close()


def ended(house: ProcessHouse, driver: FakeNvml, *gpus: Gpu) -> tuple[Exit, bytes]:
    """How a task with these GPUs ends, and what it said."""
    told = {"DANLU_FAKE_NVML": driver.environment["DANLU_FAKE_NVML"]}
    ref = start(house, PROGRAM, gpus=gpus, environments=told)
    found = finish(house, ref).exit
    assert found is not None
    return found, whole_log(house, ref)


def test_it_starts_where_all_are_there(house: ProcessHouse, driver: FakeNvml) -> None:
    found, log = ended(house, driver, *GPUS)

    assert b"user code" in log
    assert found.exit_code == 0


def test_one_that_has_gone_is_missed_before_user_code(
    house: ProcessHouse, driver: FakeNvml
) -> None:
    """A runtime that ignores what it is asked for, or a card that has fallen off the bus.
    (cases 2, 52, 57)
    """
    driver.write({"devices": 1})

    found, log = ended(house, driver, *GPUS)

    assert b"user code" not in log
    assert found.problem == ReasonCode.GPUS_MISSING
    assert (found.detail["found"], found.detail["wanted"]) == (1, 2)


def test_a_driver_that_does_not_start_is_no_gpu(house: ProcessHouse, driver: FakeNvml) -> None:
    """(case 53)"""
    driver.write({"fail.nvmlInit_v2": 9})

    found, log = ended(house, driver, GPUS[0])

    assert b"user code" not in log
    assert found.problem == ReasonCode.GPUS_MISSING


def test_a_driver_that_crashes_is_no_gpu(house: ProcessHouse, driver: FakeNvml) -> None:
    """It takes a process of the checks with it, and nothing else. (case 58)"""
    driver.write({"crash.nvmlInit_v2": 1})

    found, log = ended(house, driver, GPUS[0])

    assert b"user code" not in log
    assert found.problem == ReasonCode.GPUS_MISSING


def test_a_task_without_gpus_asks_nobody(house: ProcessHouse, driver: FakeNvml) -> None:
    driver.write({"crash.nvmlInit_v2": 1})

    found, log = ended(house, driver)

    assert b"user code" in log
    assert found.exit_code == 0
