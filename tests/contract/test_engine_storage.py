"""The process engine where things come from and go to: staging, outputs and logs."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.engines.process import task
from danlu.model.job import Access, Output
from danlu.model.reason import ReasonCode
from danlu.model.url import LocalUrl
from danlu.node import identity
from danlu.ports import task_directory as files
from danlu.ports.engine import Phase
from danlu.ports.task_directory import Storing
from danlu.stores.folder import FolderStore
from tests.contract.engines import (
    HANG_S,
    ProcessHouse,
    finish,
    said,
    see,
    until,
    whole_log,
)
from tests.contract.tasks import (
    CODE,
    WRITES,
    Gate,
    agent_of,
    keys,
    kill,
    output,
    read,
    start,
    stored,
    upload,
    wait,
)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


@pytest.fixture
def gated(gate: Gate, tmp_path: Path) -> Iterator[ProcessHouse]:
    made = ProcessHouse(tmp_path, **gate.options)
    yield made
    gate.open()
    made.close()


def test_staging_begins_anew_after_its_agent_died(gate: Gate, gated: ProcessHouse) -> None:
    upload(gate, "main.py", "print('ran', flush=True)\n")
    ref = start(gated, "", code=CODE, boot_file="main.py", command="")
    kill(agent_of(gated, ref))
    until(gated, ref, lambda _: read(gated, ref, files.AGENT)["starts"] > 1)
    gate.open()
    seen = finish(gated, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.problem) == (0, None)
    assert whole_log(gated, ref) == b"ran\n"


def test_agents_that_keep_dying_while_staging_end_the_task(
    gate: Gate, gated: ProcessHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(case 26)"""
    monkeypatch.setattr(task, "REVIVE_AFTER_S", (0.0, 0.1, 0.1))
    upload(gate, "main.py", "print('ran', flush=True)\n")
    ref = start(gated, "", code=CODE, boot_file="main.py", command="")
    while (seen := see(gated, ref)).exit is None:
        identity.send(agent_of(gated, ref), signal.SIGKILL)
        time.sleep(0.05)
    gate.open()
    assert seen.exit.problem is ReasonCode.AGENT_LOST
    assert finish(gated, ref).started_at is None
    assert whole_log(gated, ref) == b""


def test_a_stop_while_staging_means_that_nothing_starts(gate: Gate, gated: ProcessHouse) -> None:
    """(cases 29, 80)"""
    upload(gate, "main.py", "print('ran', flush=True)\n")
    ref = start(gated, "", code=CODE, boot_file="main.py", command="")
    agent_of(gated, ref)
    gated.engine.stop(ref, HANG_S)
    seen = finish(gated, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.signal, seen.exit.problem) == (143, "SIGTERM", None)
    assert seen.started_at is None
    assert whole_log(gated, ref) == b""


def test_outputs_are_stored_though_the_agent_dies_at_it(gate: Gate, gated: ProcessHouse) -> None:
    """(fault 8)"""
    ref = start(gated, WRITES, outputs=(output(),))
    until(gated, ref, lambda seen: seen.phase is Phase.COLLECTING)
    kill(agent_of(gated, ref))
    gate.open()
    seen = finish(gated, ref)
    assert (seen.problem, seen.exit and seen.exit.exit_code) == (None, 0)
    assert stored(gate) == {f"{n}.bin": bytes([n]) * 1000 for n in range(20)}
    assert keys(seen).count("output-stored") == 1


def test_outputs_that_cannot_be_stored_stay_where_they_are(gate: Gate, gated: ProcessHouse) -> None:
    gate.open()
    gate.broken.touch()
    ref = start(gated, WRITES, outputs=(output(),))
    seen = finish(gated, ref)
    assert seen.exit is not None
    assert seen.exit.exit_code == 0
    assert seen.problem is ReasonCode.OUTPUT_FAILED
    assert "broken by the test" in str(seen.detail["detail"])
    kept = Path(str(seen.detail["path"]))
    assert (kept / "19.bin").read_bytes() == bytes([19]) * 1000
    assert keys(seen).count("output-retry") == 2


def test_a_store_that_comes_back_gets_the_outputs_and_the_job_succeeds(
    gate: Gate, tmp_path: Path
) -> None:
    """(fault 34)"""
    gate.open()
    gate.broken.touch()
    gated = ProcessHouse(
        tmp_path, **gate.options, storing=Storing(interval_s=0.1, patience_s=HANG_S)
    )
    try:
        ref = start(gated, WRITES, outputs=(output(),))
        until(gated, ref, lambda seen: keys(seen).count("output-retry") >= 3)
        assert see(gated, ref).phase is Phase.COLLECTING
        assert stored(gate) == {}
        gate.broken.unlink()
        seen = finish(gated, ref)
        assert (seen.problem, seen.exit and seen.exit.exit_code) == (None, 0)
        assert stored(gate) == {f"{n}.bin": bytes([n]) * 1000 for n in range(20)}
    finally:
        gated.close()


def test_a_place_that_cannot_be_written_to_is_not_waited_for(tmp_path: Path) -> None:
    """What will not go away by itself fails after three tries, and says where the data is."""
    house = ProcessHouse(tmp_path, storing=Storing(interval_s=0.1, patience_s=HANG_S))
    try:
        kept = tmp_path / "kept"
        text = """
            import os, pathlib, time
            print("up", flush=True)
            time.sleep(1)
            pathlib.Path(os.environ["model"], "a").write_bytes(b"1")
        """
        local = Output("model", LocalUrl(str(kept)), access=Access.ENV)
        ref = start(house, text, outputs=(local,))
        said(house, ref, b"up")
        kept.rmdir()
        kept.write_text("in the way")
        seen = finish(house, ref)
        assert seen.problem is ReasonCode.OUTPUT_FAILED
        assert keys(seen).count("output-retry") == 2
        assert Path(str(seen.detail["path"]), "a").read_bytes() == b"1"
    finally:
        house.close()


def test_outputs_are_stored_while_the_program_runs(gate: Gate, gated: ProcessHouse) -> None:
    gate.open()
    text = WRITES + "    time.sleep(60)\n"
    ref = start(gated, text, outputs=(output(),))
    wait(lambda: len(stored(gate)) == 20)
    assert see(gated, ref).phase is Phase.RUNNING
    gated.engine.stop(ref, 0)
    finish(gated, ref)


@pytest.mark.parametrize("kind", ["obs", "file"])
def test_the_log_is_stored_where_it_was_asked_for(house: ProcessHouse, kind: str) -> None:
    FolderStore(house.objects).create_bucket("danlu")
    url = "obs://danlu/logs/" if kind == "obs" else f"file://{house.root}/logs"
    ref = start(house, "print('hello')", log_url=url)
    seen = finish(house, ref)
    assert seen.problem is None
    name = f"modelarts-job-{ref.job_id}-worker-0.log"
    note = next(note for note in seen.notes if note.key == "log-stored")
    assert note.params["url"] == f"{url.rstrip('/')}/{name}"
    if kind == "obs":
        data = b"".join(FolderStore(house.objects).read("danlu", f"logs/{name}"))
    else:
        data = (house.root / "logs" / name).read_bytes()
    assert data == whole_log(house, ref) == b"hello\n"


@pytest.mark.parametrize("kind", ["obs", "file"])
def test_of_a_log_beyond_its_limit_head_mark_and_tail_are_stored(
    house: ProcessHouse, kind: str
) -> None:
    """(fault 45)"""
    FolderStore(house.objects).create_bucket("danlu")
    url = "obs://danlu/logs/" if kind == "obs" else f"file://{house.root}/logs"
    text = "for n in range(20000): print('line', n)"
    ref = start(house, text, log_url=url, log_limit_bytes=50_000)
    assert finish(house, ref).problem is None
    name = f"modelarts-job-{ref.job_id}-worker-0.log"
    if kind == "obs":
        data = b"".join(FolderStore(house.objects).read("danlu", f"logs/{name}"))
    else:
        data = (house.root / "logs" / name).read_bytes()
    lines = data.decode().splitlines()
    (gap,) = [number for number, line in enumerate(lines) if line.startswith("[danlu")]
    assert lines[:gap] == [f"line {n}" for n in range(gap)]
    kept = len(lines) - gap - 1
    assert lines[gap + 1 :] == [f"line {n}" for n in range(20000 - kept, 20000)]
    assert f" {20000 - gap - kept} lines" in lines[gap]
    assert len(data) < 55_000


def test_a_log_that_cannot_be_stored_is_a_problem_of_storing(house: ProcessHouse) -> None:
    FolderStore(house.objects).create_bucket("danlu")
    seen = finish(house, start(house, "print('hello')", log_url="obs://elsewhere/logs/"))
    assert seen.exit is not None
    assert seen.exit.exit_code == 0
    assert seen.problem is ReasonCode.OUTPUT_FAILED
    assert "elsewhere" in str(seen.detail["detail"])


def test_an_output_of_this_machine_is_a_plain_directory(house: ProcessHouse) -> None:
    kept = house.root / "结果"
    local = Output("model", LocalUrl(str(kept)), access=Access.ENV)
    ref = start(house, WRITES, outputs=(local,))
    assert finish(house, ref).problem is None
    names = {path.name for path in kept.iterdir()}
    assert names == {".danlu", *(f"{n}.bin" for n in range(20))}
    wait(lambda: not list(house.directory(ref).glob("work*")))
