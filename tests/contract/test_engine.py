"""What every Engine promises. A new engine joins by one line in HOUSES."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from danlu.model.errors import EngineError
from danlu.model.reason import ReasonCode
from danlu.ports.engine import Dropped, Launch, Phase, Ref, Wakes
from tests.contract.engines import (
    HANG_S,
    HOUSES,
    House,
    Program,
    finish,
    gang,
    launch,
    new_ref,
    running,
    said,
    see,
    until,
    whole_log,
)


@pytest.fixture(params=sorted(HOUSES))
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    made = HOUSES[request.param](tmp_path, request)
    yield made
    made.close()


FOREVER = Program(out=b"up\n", runs_s=None)
DEAF = Program(out=b"up\n", runs_s=None, on_term="ignore")


# ---------------------------------------------------------------- how a task ends


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_the_exit_code_is_kept(house: House, code: int) -> None:
    """(case 62)"""
    ref = launch(house, Program(exit_code=code))
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.signal, seen.exit.problem) == (code, "", None)
    assert not seen.exit.out_of_memory
    assert seen.started_at is not None
    assert seen.started_at <= seen.exit.ended_at


@pytest.mark.parametrize(("signal", "code"), [("SIGKILL", 137), ("SIGSEGV", 139)])
def test_a_program_that_a_signal_ended_names_it(house: House, signal: str, code: int) -> None:
    """(case 59)"""
    seen = finish(house, launch(house, Program(signal=signal)))
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.signal) == (code, signal)
    assert not seen.exit.out_of_memory


def test_what_is_done_stays_as_it_is(house: House) -> None:
    """(cases 31, 73)"""
    ref = launch(house, Program(exit_code=4))
    first = finish(house, ref)
    house.engine.stop(ref, 0)
    house.pass_time(0.05)
    assert see(house, ref) == first


def test_phases_only_go_forward(house: House) -> None:
    order = [Phase.LAUNCHING, Phase.RUNNING, Phase.COLLECTING, Phase.DONE]
    ref = launch(house, Program(runs_s=0.1))
    seen = [see(house, ref)]
    while seen[-1].phase is not Phase.DONE:
        house.pass_time(0.005)
        seen.append(see(house, ref))
    places = [order.index(look.phase) for look in seen]
    assert places == sorted(places)
    for before, after in itertools.pairwise(seen):
        assert list(after.notes[: len(before.notes)]) == list(before.notes)
    instants = [note.at for note in seen[-1].notes]
    assert instants == sorted(instants)


def test_a_time_limit_ends_a_task_and_says_so(house: House) -> None:
    ref = launch(house, FOREVER, time_limit_s=1, grace_s=20)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.TIME_LIMIT
    assert seen.exit.detail["limit_s"] == 1
    assert seen.started_at is not None
    assert seen.exit.ended_at - seen.started_at >= 900


def test_a_time_limit_has_its_grace_too(house: House) -> None:
    """(case 69)"""
    ref = launch(house, Program(runs_s=None, on_term="5"), time_limit_s=1, grace_s=20)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.problem, seen.exit.exit_code) == (ReasonCode.TIME_LIMIT, 5)


# ---------------------------------------------------------------- launching


def test_the_same_launch_twice_is_one_task(house: House) -> None:
    """(case 28)"""
    ref = new_ref()
    order = Launch(ref, "here", house.plan(ref, Program(out=b"once\n", runs_s=0.2)))
    house.engine.launch([order])
    house.engine.launch([order])
    first = running(house, ref)
    house.engine.launch([order])
    seen = finish(house, ref)
    assert seen.started_at == first.started_at
    assert whole_log(house, ref) == b"once\n"
    house.engine.launch([order])
    assert see(house, ref) == seen
    assert house.engine.known() == [ref]


def test_another_token_under_the_same_name_is_refused(house: House) -> None:
    """(case 33)"""
    ref = launch(house, FOREVER)
    running(house, ref)
    other = replace(ref, token=secrets.token_hex(16))
    with pytest.raises(EngineError):
        house.engine.launch([Launch(other, "here", house.plan(other, Program()))])
    assert see(house, other).phase is Phase.ABSENT
    house.engine.stop(other, 0)
    house.engine.remove(other)
    house.pass_time(0.1)
    assert see(house, ref).phase is Phase.RUNNING


def test_a_gang_starts_together_or_not_at_all(house: House) -> None:
    """(case 34)"""
    launches = gang(house, [Program(runs_s=0.05), Program(runs_s=0.05)])
    taken = replace(launches[1].ref, token=secrets.token_hex(16))
    house.engine.launch([Launch(taken, "here", house.plan(taken, FOREVER))])
    with pytest.raises(EngineError):
        house.engine.launch(launches)
    assert see(house, launches[0].ref).phase is Phase.ABSENT
    assert house.engine.known() == [taken]
    house.engine.remove(taken)
    house.engine.launch(launches)
    for order in launches:
        assert finish(house, order.ref).exit is not None


def test_many_tasks_are_observed_at_once(house: House) -> None:
    refs = [launch(house, Program(exit_code=code)) for code in range(5)]
    strangers = [new_ref() for _ in range(3)]
    for ref in refs:
        finish(house, ref)
    seen = house.engine.observe([*refs, *strangers])
    codes = [look.exit.exit_code for ref in refs if (look := seen[ref]).exit is not None]
    assert codes == [0, 1, 2, 3, 4]
    assert all(seen[ref].phase is Phase.ABSENT for ref in strangers)


def test_capacity_is_the_same_before_and_after(house: House) -> None:
    """(case 46)"""
    before = list(house.engine.capacity())
    ref = launch(house, FOREVER)
    running(house, ref)
    assert list(house.engine.capacity()) == before
    house.restart()
    assert list(house.engine.capacity()) == before
    assert before
    assert all(offer.cpus >= 1 and offer.memory_bytes > 0 for offer in before)


# ---------------------------------------------------------------- what is not there


def test_the_unknown_is_absent_and_nothing_about_it_fails(house: House) -> None:
    ref = new_ref()
    assert see(house, ref).phase is Phase.ABSENT
    assert see(house, ref).exit is None
    house.engine.stop(ref, 1)
    house.engine.remove(ref)
    chunk = house.engine.logs(ref, 7)
    assert (chunk.data, chunk.ended) == (b"", True)
    assert list(house.engine.stats([ref])[ref]) == []
    assert house.engine.known() == []


def test_odd_names_are_absent_too(house: House) -> None:
    for job in ("", "..", "a/b", "\0", "a" * 500, "é", "-"):
        ref = Ref(job, 1, 0, "t")
        assert see(house, ref).phase is Phase.ABSENT
        house.engine.remove(ref)


# ---------------------------------------------------------------- stopping


def test_a_stop_ends_a_program_that_listens(house: House) -> None:
    ref = launch(house, FOREVER)
    said(house, ref, b"up")
    house.engine.stop(ref, HANG_S)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.signal) == (143, "SIGTERM")


def test_a_program_may_end_in_its_own_way(house: House) -> None:
    """(case 69)"""
    ref = launch(house, Program(out=b"up\n", runs_s=None, on_term="7"))
    said(house, ref, b"up")
    house.engine.stop(ref, HANG_S)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.signal) == (7, "")


def test_the_grace_is_given_and_then_ends(house: House) -> None:
    ref = launch(house, DEAF)
    said(house, ref, b"up")
    house.engine.stop(ref, 0.6)
    house.pass_time(0.2)
    assert see(house, ref).phase is Phase.RUNNING
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.signal) == (137, "SIGKILL")
    assert not seen.exit.out_of_memory


def test_a_stop_may_be_repeated_and_hastened(house: House) -> None:
    ref = launch(house, DEAF)
    said(house, ref, b"up")
    house.engine.stop(ref, 10 * HANG_S)
    house.engine.stop(ref, 10 * HANG_S)
    house.pass_time(0.1)
    assert see(house, ref).phase is Phase.RUNNING
    house.engine.stop(ref, 0.1)
    house.engine.stop(ref, 10 * HANG_S)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.signal == "SIGKILL"
    house.engine.stop(ref, 1)


def test_a_stop_reaches_a_task_at_any_moment(house: House) -> None:
    """(case 29)"""
    for pause_s in (0.0, 0.002, 0.005, 0.01, 0.02, 0.05):
        ref = launch(house, FOREVER)
        house.pass_time(pause_s)
        house.engine.stop(ref, HANG_S)
        seen = finish(house, ref)
        assert seen.exit is not None
        assert (seen.exit.exit_code, seen.exit.signal) == (143, "SIGTERM")


def test_a_task_that_ended_by_itself_was_not_stopped(house: House) -> None:
    ref = launch(house, Program(exit_code=3))
    until(house, ref, lambda seen: seen.exit is not None)
    house.engine.stop(ref, 0)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.problem) == (3, None)


# ---------------------------------------------------------------- logs


def test_a_log_is_read_from_any_offset(house: House) -> None:
    ref = launch(house, Program(out=b"0123456789"))
    finish(house, ref)
    assert house.engine.logs(ref, 3, 4).data == b"3456"
    assert not house.engine.logs(ref, 3, 4).ended
    assert house.engine.logs(ref, 7, 3).ended
    assert house.engine.logs(ref, 8).data == b"89"
    end = house.engine.logs(ref, 10)
    assert (end.data, end.ended) == (b"", True)
    beyond = house.engine.logs(ref, 1000)
    assert (beyond.data, beyond.ended) == (b"", True)
    assert whole_log(house, ref, limit=3) == b"0123456789"


def test_a_log_that_has_not_begun_is_empty_and_not_ended(house: House) -> None:
    """(cases 10, 12)"""
    ref = launch(house, Program(runs_s=0.2))
    chunk = house.engine.logs(ref, 0)
    assert (chunk.data, chunk.ended) == (b"", False)
    finish(house, ref)
    assert house.engine.logs(ref, 0).ended


def test_a_log_beyond_its_limit_keeps_head_and_tail(house: House) -> None:
    """(fault 45)"""
    some = b"".join(b"line %06d\n" % number for number in range(1_000))
    written = some * 20
    ref = launch(house, Program(out=some, times=20), log_limit_bytes=100_000)
    finish(house, ref)
    found, since = [], 0
    while (chunk := house.engine.logs(ref, since, 30_000)).data:
        found.append(chunk)
        since = chunk.next
    assert chunk.ended
    assert since == len(written)
    assert all(written[chunk.offset : chunk.next] == chunk.data for chunk in found)
    (gap,) = [chunk for chunk in found if chunk.dropped]
    assert found[0].offset == 0
    assert sum(len(chunk.data) for chunk in found) <= 110_000
    head = found[found.index(gap) - 1].next
    assert gap.dropped == Dropped(
        gap.offset - head,
        written.count(b"\n", head, gap.offset),
        written.count(b"\n", 0, gap.offset),
    )


def test_a_log_ends_when_the_task_has_and_not_before(house: House) -> None:
    ref = launch(house, Program(out=b"line\n", runs_s=0.3))
    said(house, ref, b"line")
    chunk = house.engine.logs(ref, 0)
    assert not chunk.ended
    assert chunk.next == 5
    assert whole_log(house, ref) == b"line\n"
    assert see(house, ref).exit is not None


def test_output_beyond_any_pipe_arrives_whole(house: House) -> None:
    """(cases 8, 19)"""
    ref = launch(house, Program(out=b"o" * 1023 + b"\n", err=b"e" * 1023 + b"\n", times=1024))
    finish(house, ref)
    log = whole_log(house, ref, limit=100_000)
    assert (len(log), log.count(b"o"), log.count(b"e")) == (2 << 20, 1023 << 10, 1023 << 10)


def test_a_hundred_thousand_lines_and_an_immediate_end(house: House) -> None:
    """(case 8)"""
    ref = launch(house, Program(out=b"tick\n", times=100_000))
    finish(house, ref)
    assert whole_log(house, ref) == b"tick\n" * 100_000


def test_output_is_bytes(house: House) -> None:
    """(case 17) (fault 46)"""
    odd = bytes(range(256)) + "丹炉\r".encode("gb18030") + b"\xff\xfe\x00"
    ref = launch(house, Program(out=odd, times=4000))
    finish(house, ref)
    assert whole_log(house, ref) == odd * 4000


# ---------------------------------------------------------------- samples, wake-ups


def test_samples_are_in_order_and_the_unknown_is_not_zero(house: House) -> None:
    ref = launch(house, Program(runs_s=None, out=b"up\n"))
    said(house, ref, b"up")
    end = time.monotonic() + HANG_S
    while len(house.engine.stats([ref])[ref]) < 2:
        assert time.monotonic() < end
        house.pass_time(0.1)
    house.engine.stop(ref, 1)
    finish(house, ref)
    samples = house.engine.stats([ref])[ref]
    instants = [sample.at for sample in samples]
    assert instants == sorted(instants)
    assert samples[-1].memory_bytes is None or samples[-1].memory_bytes > 0
    assert all(sample.gpu_busy is None and sample.gpu_memory is None for sample in samples)
    assert samples[1].cpu_cores is not None


def test_changes_ring(house: House) -> None:
    engine: object = house.engine
    if not isinstance(engine, Wakes):
        pytest.skip("this engine does not tell of changes")
    rung = threading.Event()
    engine.on_change(rung.set)
    launch(house, Program())
    assert rung.wait(HANG_S)


# ---------------------------------------------------------------- forgetting, adopting


def test_remove_forgets_everything_and_may_be_repeated(house: House) -> None:
    ref = launch(house, Program(out=b"x"))
    finish(house, ref)
    house.engine.remove(ref)
    house.engine.remove(ref)
    assert see(house, ref).phase is Phase.ABSENT
    assert house.engine.logs(ref, 0).data == b""
    assert house.engine.known() == []


def test_remove_ends_what_still_runs(house: House) -> None:
    ref = launch(house, DEAF)
    said(house, ref, b"up")
    house.engine.remove(ref)
    assert see(house, ref).phase is Phase.ABSENT
    assert house.engine.known() == []


def test_a_name_can_be_used_again_after_remove(house: House) -> None:
    ref = launch(house, Program(exit_code=1))
    finish(house, ref)
    house.engine.remove(ref)
    house.engine.launch([Launch(ref, "here", house.plan(ref, Program(exit_code=2)))])
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.exit_code == 2


def test_another_engine_object_sees_the_same_tasks(house: House) -> None:
    """(cases 27, 77)"""
    lasting = launch(house, Program(out=b"up\n", runs_s=None))
    short = launch(house, Program(out=b"gone\n", runs_s=0.2, exit_code=9))
    said(house, lasting, b"up")
    before = running(house, lasting)
    house.restart()
    assert sorted(house.engine.known()) == sorted([lasting, short])
    assert see(house, lasting) == before
    seen = finish(house, short)
    assert seen.exit is not None
    assert seen.exit.exit_code == 9
    assert whole_log(house, short) == b"gone\n"
    house.engine.stop(lasting, HANG_S)
    assert finish(house, lasting).exit is not None


def test_a_task_outlives_a_server_that_is_killed(house: House) -> None:
    """(cases 27, 77; faults 1, 41)"""
    ref = new_ref()
    program = Program(out=b"one line\n", runs_s=0.5, exit_code=6)
    house.launch_and_die(Launch(ref, "here", house.plan(ref, program)))
    assert house.engine.known() == [ref]
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.problem) == (6, None)
    assert whole_log(house, ref) == b"one line\n"
