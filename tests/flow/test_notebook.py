"""The life of notebooks: their starts are jobs, and their homes stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from danlu.engines.memory_script import Script
from danlu.flow import notebook as wishes
from danlu.flow import notebook_life
from danlu.flow.platform import Limits
from danlu.model.attempt import State as JobState
from danlu.model.errors import Invalid, Missing, Refused
from danlu.model.idle import Idle
from danlu.model.job import Kind
from danlu.model.notebook import HOUR_MS, Lease, State
from danlu.model.reason import ReasonCode
from danlu.ports.crash import POINTS
from danlu.ports.records import JobQuery
from tests.flow.desk import READY, Desk, running

HOUR = 3600


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# ---------------------------------------------------------------- starts and stops


def test_a_notebook_is_created_and_becomes_ready(desk: Desk) -> None:
    made = desk.create()
    assert desk.notebook(made).state is State.CREATING

    found = desk.until(made, State.RUNNING)

    view = desk.view(found.job_id)
    assert view.attempt.state is JobState.RUNNING
    assert view.job.spec.kind is Kind.NOTEBOOK
    assert found.ready_at is not None
    assert view.attempt.started_at is not None
    assert found.ready_at >= view.attempt.started_at + 2000
    assert desk.told(made) == ["notebook-created", "notebook-ready"]
    assert desk.records.jobs("p1", JobQuery()).total == 0


def test_it_is_stopped_and_started_with_the_same_home(desk: Desk) -> None:
    made = running(desk)
    first = desk.notebook(made).job_id
    desk.cluster.volumes[made] = 4096

    desk.wish(made, wishes.stop)
    stopped = desk.until(made, State.STOPPED)
    assert stopped.reason is not None
    assert stopped.reason.sentence() == "stopped by alice"
    assert desk.state(first) is JobState.CANCELLED
    desk.wish(made, wishes.start, None)
    again = desk.until(made, State.RUNNING)

    assert again.job_id != first
    assert desk.cluster.volumes == {made: 4096}
    with pytest.raises(Missing):
        desk.view(first)


def test_flavor_and_image_change_while_it_rests_and_the_home_stays(desk: Desk) -> None:
    made = running(desk)
    wanted = wishes.Changes(flavor="danlu.cpu.2u")
    with pytest.raises(Refused) as refused:
        wishes.update(desk.platform, desk.notebook(made), wanted)
    assert refused.value.key == "notebook-not-stopped"

    desk.wish(made, wishes.stop)
    before = desk.until(made, State.STOPPED)
    to, events = wishes.update(desk.platform, before, wanted)
    desk.loop.notebooks.change(before, to, events).result(30)
    desk.wish(made, wishes.start, None)
    found = desk.until(made, State.RUNNING)

    job = desk.view(found.job_id).job.spec
    assert (job.flavor, job.shape.cpus) == ("danlu.cpu.2u", 2)
    assert [volume.name for volume in job.volumes] == [made]


def test_a_name_may_change_while_it_runs(desk: Desk) -> None:
    made = running(desk)
    before = desk.notebook(made)

    to, events = wishes.update(desk.platform, before, wishes.Changes(name="other", home_gib=5))

    assert desk.loop.notebooks.change(before, to, events).result(30) is not None
    assert desk.notebook(made).spec.name == "other"
    with pytest.raises(Invalid):
        wishes.update(desk.platform, desk.notebook(made), wishes.Changes(home_gib=4))


def test_a_start_that_fails_says_why_and_can_be_tried_again(desk: Desk) -> None:
    desk.scripts["nb"] = Script(exit_code=78, duration_s=1)
    made = desk.create()

    found = desk.until(made, State.CREATE_FAILED)
    assert found.reason is not None
    assert found.reason.code is ReasonCode.LAB_MISSING
    desk.scripts["nb"] = READY
    desk.wish(made, wishes.start, None)

    assert desk.until(made, State.RUNNING).reason is None
    assert desk.told(made)[1] == "notebook-create-failed"


def test_a_job_that_cannot_be_submitted_is_a_failed_start(desk: Desk) -> None:
    made = desk.create()
    before = desk.notebook(made)
    odd = replace(before, spec=replace(before.spec, environments={"MA_X": "no"}))
    desk.loop.notebooks.change(before, odd).result(30)

    found = desk.until(made, State.CREATE_FAILED)

    assert found.reason is not None
    assert "MA_X" in found.reason.sentence()


def test_a_start_for_which_there_is_no_room_waits(desk: Desk) -> None:
    """A full queue is no fault of the notebook's."""
    desk.limits = Limits(queued_jobs=0)
    desk.restart()
    made = desk.create()
    for _ in range(3):
        desk.turn(1)
    assert desk.notebook(made).state is State.CREATING

    desk.limits = Limits()
    desk.restart()

    desk.until(made, State.RUNNING)


def test_lab_that_its_user_shuts_down_is_a_stop_and_a_crash_is_an_error(desk: Desk) -> None:
    desk.scripts["shut"] = Script(duration_s=5, ready_s=1)
    desk.scripts["crash"] = Script(duration_s=5, ready_s=1, exit_code=1)

    shut, crash = running(desk, name="shut"), running(desk, name="crash")

    desk.until(shut, State.STOPPED)
    found = desk.until(crash, State.ERROR)
    assert found.reason is not None
    assert found.reason.code is ReasonCode.EXIT


def test_whoever_stops_the_job_of_a_notebook_stops_the_notebook(desk: Desk) -> None:
    made = running(desk)

    desk.stop(desk.notebook(made).job_id)

    stopped = desk.until(made, State.STOPPED)
    assert stopped.reason is not None
    assert stopped.reason.sentence() == "stopped by alice"


def test_a_lost_machine_starts_it_again(desk: Desk) -> None:
    made = running(desk)
    ran_ms = desk.notebook(made).ran_ms

    for ref in desk.engine.known():
        desk.engine.vanish(ref)
    desk.until(made, State.STARTING)
    again = desk.until(made, State.RUNNING)

    assert "notebook-again" in desk.told(made)
    assert again.ran_ms > ran_ms
    assert desk.view(again.job_id).attempt.key.number == 2


def test_what_rests_is_not_stopped_and_what_runs_is_not_started(desk: Desk) -> None:
    made = running(desk)
    with pytest.raises(Refused) as refused:
        desk.wish(made, wishes.start, None)
    assert refused.value.key == "notebook-state"

    desk.wish(made, wishes.stop)
    desk.wish(made, wishes.stop)  # twice is fine
    desk.until(made, State.STOPPED)
    for step, arguments in (
        (wishes.stop, ()),
        (wishes.renew, (Lease(), Idle())),
        (wishes.hold, (None,)),
    ):
        with pytest.raises(Refused):
            desk.wish(made, step, *arguments)


def test_a_stop_before_it_was_ready_ends_it(desk: Desk) -> None:
    made = desk.create()
    desk.turn()

    desk.wish(made, wishes.stop)

    assert desk.until(made, State.STOPPED).ran_ms == 0


def test_a_stop_before_there_is_a_job_ends_it(desk: Desk) -> None:
    made = desk.create()

    desk.wish(made, wishes.stop)

    desk.until(made, State.STOPPED)
    assert desk.engine.known() == []


# ---------------------------------------------------------------- deletion


def test_a_running_notebook_is_deleted_with_its_home(desk: Desk) -> None:
    made = running(desk)
    job = desk.notebook(made).job_id

    desk.wish(made, wishes.delete)
    for _ in range(20):
        desk.turn(1)

    with pytest.raises(Missing):
        desk.notebook(made)
    assert made not in desk.cluster.volumes
    assert desk.engine.known() == []
    with pytest.raises(Missing):
        desk.view(job)


def test_a_home_that_cannot_be_removed_is_said_and_tried_again(desk: Desk) -> None:
    made = running(desk)
    desk.engine.kept_volumes = True
    desk.wish(made, wishes.delete)

    found = desk.until(made, State.DELETE_FAILED)
    assert found.reason is not None
    assert found.reason.code is ReasonCode.HOME_KEPT
    desk.engine.kept_volumes = False
    desk.wish(made, wishes.delete)
    desk.turn(1)

    with pytest.raises(Missing):
        desk.notebook(made)


# ---------------------------------------------------------------- a server that dies


def test_a_server_that_returns_adopts_what_runs_and_the_lease_goes_on(desk: Desk) -> None:
    """(case 89) The clocks of a notebook are on record, not in the server."""
    made = running(desk, lease=Lease(HOUR_MS))
    before = desk.notebook(made)
    desk.idle_for(1800)

    desk.restart()
    desk.turn()

    assert desk.notebook(made) == before
    assert desk.state(before.job_id) is JobState.RUNNING
    desk.idle_for(1795)
    desk.turn(10)
    stopped = desk.until(made, State.STOPPED)
    assert stopped.reason is not None
    assert stopped.reason.code is ReasonCode.LEASE_ENDED


@pytest.mark.parametrize("turns", range(1, 6))
def test_a_start_that_a_dying_server_began_is_one_job(desk: Desk, turns: int) -> None:
    made = desk.create()
    for _ in range(turns):
        desk.turn(0.5)
        desk.restart()

    found = desk.until(made, State.RUNNING)

    assert [ref.job_id for ref in desk.engine.known()] == [found.job_id]


def test_a_deletion_goes_on_after_a_restart(desk: Desk) -> None:
    made = running(desk)
    desk.wish(made, wishes.delete)
    for _ in range(20):
        desk.turn(1)
        desk.restart()

    with pytest.raises(Missing):
        desk.notebook(made)
    assert made not in desk.cluster.volumes


class Died(Exception):
    """The server was killed."""


@pytest.mark.parametrize("point", [name for name in POINTS if name.startswith("notebook.")])
def test_a_server_that_dies_at_any_point_is_followed_by_one_that_goes_on(
    desk: Desk, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on record is carried out once, whenever the one before it died."""
    died: list[str] = []

    def crash_point(name: str) -> None:
        if name == point and not died:
            died.append(name)
            raise Died

    monkeypatch.setattr(notebook_life, "crash_point", crash_point)

    def turn() -> None:
        try:
            desk.turn(0.5)
        except Died:
            desk.restart()

    made = desk.create()
    desk.cluster.volumes[made] = 4096
    for _ in range(20):
        turn()
    assert desk.notebook(made).state is State.RUNNING
    assert [ref.job_id for ref in desk.engine.known()] == [desk.notebook(made).job_id]
    assert desk.cluster.volumes == {made: 4096}

    desk.wish(made, wishes.delete)
    for _ in range(30):
        turn()

    assert died == [point]
    assert desk.engine.known() == []
    assert desk.cluster.volumes == {}
    with pytest.raises(Missing):
        desk.notebook(made)
