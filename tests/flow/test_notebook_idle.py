"""Notebooks stop when they should, and never when they should not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from danlu.engines.memory import ManualClock, MemoryEngine
from danlu.flow import notebook as wishes
from danlu.flow.activity import gpu, told
from danlu.flow.notebook_idle import outlook
from danlu.flow.platform import Limits
from danlu.model.errors import Invalid, Refused
from danlu.model.idle import Idle, Signal
from danlu.model.job import Intent
from danlu.model.notebook import HOUR_MS, Hold, Lease, State
from danlu.model.reason import ReasonCode
from danlu.ports.engine import Ref, Sample
from tests.flow.desk import READY, Desk, running

HOUR = 3600


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# ---------------------------------------------------------------- lease and idleness


def quiet(desk: Desk, made: str) -> None:
    """Nothing happens in it any more."""
    desk.active_at = desk.notebook(made).ready_at


def test_a_lease_that_is_over_stops_it_whatever_happens_in_it(desk: Desk) -> None:
    made = running(desk, lease=Lease(HOUR_MS))
    desk.idle_for(HOUR - 60)
    assert desk.notebook(made).state is State.RUNNING

    desk.idle_for(90)

    stopped = desk.until(made, State.STOPPED)
    assert stopped.reason is not None
    assert "lease of 60 min" in stopped.reason.sentence()
    assert desk.told(made).count("notebook-ends-soon") == 2
    metered_s = stopped.metered_ms(desk.clock.now()) / 1000
    assert HOUR - 60 < metered_s < HOUR + 120


def test_the_lease_counts_from_the_moment_it_is_ready(desk: Desk) -> None:
    desk.scripts["nb"] = replace(READY, stage_s=1800)
    made = desk.create(lease=Lease(HOUR_MS))
    found = desk.until(made, State.RUNNING, step_s=60)

    assert found.lease.ends_at == (found.ready_at or 0) + HOUR_MS


def test_a_renewal_counts_from_now_and_is_warned_of_anew(desk: Desk) -> None:
    made = running(desk, lease=Lease(HOUR_MS))
    desk.idle_for(HOUR - 300)
    assert desk.notebook(made).warned_at == 10

    desk.wish(made, wishes.renew, Lease(2 * HOUR_MS), Idle())

    found = desk.notebook(made)
    assert found.lease.ends_at == desk.clock.now() + 2 * HOUR_MS
    assert found.warned_at == 0
    desk.idle_for(HOUR)
    assert desk.notebook(made).state is State.RUNNING


def test_an_idle_notebook_is_stopped_and_a_used_one_is_not(desk: Desk) -> None:
    """(fault 55) Never one that is used; an idle one at most 60 s late."""
    made = running(desk)
    desk.idle_for(5 * HOUR, 60)
    assert desk.notebook(made).state is State.RUNNING  # its processes work

    desk.active_at = desk.clock.now()
    desk.idle_for(HOUR - 120)
    assert desk.notebook(made).state is State.RUNNING
    desk.idle_for(180)

    stopped = desk.until(made, State.STOPPED)
    assert stopped.reason is not None
    assert stopped.reason.code is ReasonCode.IDLE
    assert desk.told(made).count("notebook-ends-soon") == 2


def test_a_busy_kernel_keeps_it_up_however_silent_it_is(desk: Desk) -> None:
    """(case 84) A cell that computes for five hours prints nothing and touches no timestamp."""
    desk.signals = [Signal("kernels", None, "busy", goes_on=True)]
    made = running(desk)
    quiet(desk, made)

    desk.idle_for(5 * HOUR, 60)

    assert desk.notebook(made).state is State.RUNNING


def test_what_cannot_be_told_is_not_idle_and_is_said_once(desk: Desk) -> None:
    """A probe that fails is an alert; the notebook stays up."""
    desk.signals = [Signal("kernels", None, "HTTP 403")]
    made = running(desk)
    quiet(desk, made)

    desk.idle_for(5 * HOUR, 60)

    assert desk.notebook(made).state is State.RUNNING
    assert desk.told(made).count("notebook-activity-unknown") == 1
    desk.signals = []
    desk.idle_for(120)
    desk.until(made, State.STOPPED)


def test_an_instance_that_is_not_looked_at_is_not_idle(desk: Desk) -> None:
    made = running(desk)

    for _ in range(100):
        desk.turn(300)

    assert desk.notebook(made).state is State.RUNNING


def test_a_start_sets_the_clocks_back(desk: Desk) -> None:
    """(case 89) A notebook that was stopped for idleness is not stopped again at its start."""
    made = running(desk)
    quiet(desk, made)
    desk.idle_for(HOUR + 60)
    desk.until(made, State.STOPPED)

    desk.wish(made, wishes.start, None)
    desk.until(made, State.RUNNING)
    desk.idle_for(1800)

    assert desk.notebook(made).state is State.RUNNING


def test_off_is_off(desk: Desk) -> None:
    made = running(desk, idle=Idle(off=True))
    quiet(desk, made)

    desk.idle_for(100 * HOUR, 1800)

    assert desk.notebook(made).state is State.RUNNING


def test_the_servers_most_binds_everybody(tmp_path: Path) -> None:
    limits = Limits(notebook_max_idle_s=1800, notebook_max_run_s=4 * HOUR)
    desk = Desk(tmp_path, limits)
    for idle in (Idle(off=True), Idle(3600)):
        with pytest.raises(Refused) as refused:
            desk.create("no", idle=idle)
        assert refused.value.key == "notebook-idle-most"
    made = running(desk)

    desk.idle_for(4 * HOUR + 60, 60)

    stopped = desk.until(made, State.STOPPED)
    assert stopped.reason is not None
    assert stopped.reason.code is ReasonCode.RUN_LIMIT


def test_a_hold_keeps_it_up_beyond_its_lease_until_its_process_ends(desk: Desk) -> None:
    made = running(desk, lease=Lease(HOUR_MS))
    quiet(desk, made)
    hold = wishes.holding(desk.clock.now(), 10 * HOUR, 17, "overnight")
    desk.wish(made, wishes.hold, hold)
    desk.idle_for(5 * HOUR, 60)
    assert desk.notebook(made).state is State.RUNNING
    assert outlook(desk.platform, desk.loop.activity, desk.notebook(made)).held

    desk.pids = [1]
    desk.idle_for(60)
    assert desk.told(made)[-2:] == ["notebook-hold-over", "notebook-ends-soon"]
    desk.idle_for(660)

    desk.until(made, State.STOPPED)


def test_a_hold_ends_with_its_time(desk: Desk) -> None:
    made = running(desk, lease=Lease(HOUR_MS))
    desk.wish(made, wishes.hold, Hold(desk.clock.now() + 3 * HOUR_MS))
    desk.idle_for(3 * HOUR - 120, 60)
    assert desk.notebook(made).state is State.RUNNING

    desk.idle_for(240)

    desk.until(made, State.STOPPED)


@pytest.mark.parametrize("seconds", [0, 59, 24 * HOUR + 1])
def test_a_hold_is_bounded(seconds: int) -> None:
    with pytest.raises(Invalid):
        wishes.holding(0, seconds, 0, "")


def test_the_outlook_says_what_ends_it_and_when(desk: Desk) -> None:
    made = running(desk, lease=Lease(2 * HOUR_MS), idle=Idle(1800))
    quiet(desk, made)
    desk.look()
    notebook = desk.notebook(made)

    found = outlook(desk.platform, desk.loop.activity, notebook)

    assert found.ends_at == (notebook.ready_at or 0) + 1_800_000
    assert found.because is not None
    assert found.because.code is ReasonCode.IDLE
    names = [signal.name for signal in found.verdict.signals]
    assert names == ["processes", "kernels", "terminals", "browser"]


def test_only_running_is_metered(desk: Desk) -> None:
    desk.scripts["nb"] = replace(READY, stage_s=600)
    made = desk.create()
    desk.until(made, State.RUNNING, step_s=10)
    assert desk.notebook(made).metered_ms(desk.clock.now()) < 10_000
    desk.turn(100)
    desk.wish(made, wishes.stop)
    stopped = desk.until(made, State.STOPPED)

    later = stopped.metered_ms(desk.clock.now() + 10 * HOUR_MS)

    assert 100_000 <= later < 110_000


def test_the_intent_of_its_job_follows_the_notebook(desk: Desk) -> None:
    made = running(desk)
    desk.wish(made, wishes.stop)
    desk.turn()

    entry = desk.board.get(desk.notebook(made).job_id)

    assert entry is not None
    assert entry.job.intent is Intent.STOP


def test_a_home_that_holds_too_much_is_told_of_once(desk: Desk) -> None:
    made = running(desk, home_gib=1)
    for used, times in ((1 << 30, 0), (3 << 30, 1), (4 << 30, 1), (1 << 20, 1), (2 << 30, 2)):
        desk.cluster.volumes[made] = used
        desk.loop.activity.measure(desk.notebook(made))
        desk.turn(1)
        desk.turn(1)

        assert desk.told(made).count("notebook-home-full") == times
    assert desk.loop.activity.home_bytes(desk.notebook(made)) == 2 << 30


def test_what_is_written_through_the_browser_is_a_use(desk: Desk) -> None:
    made = running(desk)
    quiet(desk, made)
    for _ in range(5):
        desk.idle_for(1800, 60)
        desk.loop.activity.touch(made)

    assert desk.notebook(made).state is State.RUNNING
    desk.idle_for(HOUR + 120, 60)
    desk.until(made, State.STOPPED)


SAID = {
    "at": 1_000_000,
    "processes": {"active_at": 5, "detail": "x"},
    "kernels": 7,
    "pids": ["a", 3],
}


@pytest.mark.parametrize(
    ("said", "now", "expected"),
    [
        (SAID, 1_000_000, (5, False)),
        (SAID, 1_000_000 + 90_000, (5, False)),
        (SAID, 1_000_000 + 90_001, (None, False)),  # it has not spoken for a while
        (None, 1_000_000, (None, False)),
        ({"at": "now", "processes": {}}, 0, (None, False)),
        ({"at": 1, "processes": {"active_at": "1"}}, 1, (None, False)),
        ({"at": 1, "processes": [1]}, 1, (None, False)),
        ({"at": 1, "processes": {"active_at": 1, "goes_on": 1}}, 1, (1, False)),
        ({"at": 1, "processes": {"active_at": 1, "goes_on": True}}, 1, (1, True)),
    ],
)
def test_an_instance_may_say_anything(
    said: dict[str, object] | None, now: int, expected: tuple[int | None, bool]
) -> None:
    """It is a user's text: what makes no sense is unknown, and unknown is not idle."""
    signal = told(said, "processes", now)

    assert (signal.active_at, signal.goes_on) == expected


NOW = 10_000_000


class Gpus(MemoryEngine):
    """An engine whose tasks have GPUs that are as busy as this."""

    def __init__(self, *busy: float | None, newest_s: float = 0) -> None:
        super().__init__(ManualClock())
        last = NOW - round(newest_s * 1000)
        self.samples = [
            Sample(last - 60_000 * (len(busy) - 1 - index), gpu_busy=share)
            for index, share in enumerate(busy)
        ]

    def stats(self, refs: Iterable[Ref]) -> Mapping[Ref, Sequence[Sample]]:
        return dict.fromkeys(refs, self.samples)


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (Gpus(0.0, 0.9, 0.0, 0.01), NOW - 120_000),
        (Gpus(0.0, 0.9), NOW),
        (Gpus(0.0, 0.0, 0.0), NOW - 120_000),  # since it is looked at
        (Gpus(0.9, None), None),  # a driver that does not say any more
        (Gpus(), None),
        (Gpus(0.0, newest_s=100), None),  # nobody looks
    ],
)
def test_a_gpu_is_used_when_it_was_busy_last(engine: Gpus, expected: int | None) -> None:
    assert gpu(engine, Ref("job", 1, 0, "token"), NOW).active_at == expected
