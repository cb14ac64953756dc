"""What Records promise of notebooks, whatever the database."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import replace

import pytest

from danlu.model.errors import Invalid, Missing, PlatformError
from danlu.model.event import JobEvent, Level
from danlu.model.idle import Idle
from danlu.model.job import Kind
from danlu.model.notebook import Hold, Lease, Mounted, Notebook, NotebookSpec, State
from danlu.model.reason import Reason, ReasonCode
from danlu.model.url import LocalUrl, ObjectUrl
from danlu.ports.records import EventQuery, JobQuery, NotebookChange, Records
from tests.contract.samples import OTHER, WAIT, WORKSPACE, Store, spec, submission, submitted

WS = WORKSPACE.id
_numbers = itertools.count(1)


def new(name: str = "", workspace: str = WS) -> Notebook:
    wanted = NotebookSpec(
        name or f"nb-{next(_numbers)}",
        "danlu.cpu.1u",
        "swr/x:1",
        "描述 \ud800",
        "EVS",
        20,
        (Mounted(ObjectUrl("b", "k/"), "/home/ma-user/d"), Mounted(LocalUrl("/srv/数据"))),
        ("key-1",),
        True,
        {"A": "1"},
        Idle(1800),
    )
    return Notebook(
        str(uuid.uuid4()),
        workspace,
        "älice",
        wanted,
        State.CREATING,
        1000,
        1000,
        "job-1",
        Lease(3_600_000, 1000),
        reason=Reason(ReasonCode.EXIT, {"task": "worker-0", "exit_code": 1}),
        hold=Hold(5000, 17, "training"),
    )


def added(records: Records, *events: JobEvent, **values: str) -> Notebook:
    made = new(**values)
    assert records.add_notebook(made, events).result(WAIT)
    return records.notebook(made.workspace, made.id)


def changed(records: Records, before: Notebook, *events: JobEvent, **values: object) -> Notebook:
    after = replace(before, **values)  # type: ignore[arg-type]  # fields of a notebook
    done = records.change_notebook(NotebookChange(before, after, events)).result(WAIT)
    assert done is not None
    return done


def test_a_notebook_comes_back_as_it_was_stored(store: Store) -> None:
    records = store.open()
    made = new()
    records.add_notebook(made).result(WAIT)
    records.close()

    found = store.open().notebook(WS, made.id)

    assert found == replace(made, sequence=found.sequence)
    assert found.sequence > 0


def test_a_name_is_one_notebooks_until_it_is_deleted(records: Records) -> None:
    first = added(records, name="mine")

    assert not records.add_notebook(new("mine")).result(WAIT)
    assert records.add_notebook(new("mine", OTHER.id)).result(WAIT)

    deleting = changed(records, first, state=State.DELETING)
    changed(records, deleting, state=State.DELETED)
    assert records.add_notebook(new("mine")).result(WAIT)


def test_a_name_cannot_be_changed_to_another_ones(records: Records) -> None:
    added(records, name="taken")
    other = added(records, name="free")

    renamed = replace(other, spec=replace(other.spec, name="taken"))
    with pytest.raises(PlatformError) as refused:
        records.change_notebook(NotebookChange(other, renamed)).result(WAIT)

    assert refused.value.key == "record-conflict"
    assert records.notebook(WS, other.id) == other


def test_of_two_changes_to_one_version_one_applies(records: Records) -> None:
    seen = added(records, name="contested")
    one = replace(seen, state=State.RUNNING)
    other = replace(seen, state=State.STOPPING)

    futures = [records.change_notebook(NotebookChange(seen, after)) for after in (one, other)]

    done = [future.result(WAIT) for future in futures]
    assert [found is not None for found in done] == [True, False]
    found = records.notebook(WS, seen.id)
    assert (found.state, found.version) == (State.RUNNING, seen.version + 1)
    assert found == done[0]


def test_a_change_that_no_event_makes_is_a_mistake(records: Records) -> None:
    seen = added(records)

    with pytest.raises(ValueError, match="no event leads"):
        records.change_notebook(NotebookChange(seen, replace(seen, state=State.STOPPED)))


def test_a_change_of_another_workspace_does_not_apply(records: Records) -> None:
    seen = added(records)
    foreign = replace(seen, workspace=OTHER.id)

    change = NotebookChange(foreign, replace(foreign, state=State.STOPPING))

    assert records.change_notebook(change).result(WAIT) is None
    with pytest.raises(Missing):
        records.notebook(OTHER.id, seen.id)


def test_lists_have_what_is_there_the_latest_first(records: Records) -> None:
    first, second = added(records), added(records)
    added(records, workspace=OTHER.id)
    gone = added(records)
    changed(records, changed(records, gone, state=State.DELETING), state=State.DELETED)

    assert [one.id for one in records.notebooks(WS)] == [second.id, first.id]
    with pytest.raises(Missing):
        records.notebook(WS, gone.id)


def test_live_ones_are_those_that_something_is_to_be_done_about(records: Records) -> None:
    first, second = added(records), added(records, workspace=OTHER.id)
    rests = added(records)
    changed(records, changed(records, rests, state=State.STOPPING), state=State.STOPPED)

    assert [one.id for one in records.live_notebooks()] == [first.id, second.id]


def test_events_are_kept_with_the_changes_that_apply(records: Records) -> None:
    seen = added(records, JobEvent(1, "notebook-created", {"user": "älice"}))
    late = JobEvent(3, "notebook-ready")
    running = changed(records, seen, late, state=State.RUNNING)
    stale = NotebookChange(seen, replace(seen, state=State.STOPPING), (JobEvent(4, "x"),))
    assert records.change_notebook(stale).result(WAIT) is None
    changed(records, running, JobEvent(5, "y", level=Level.WARNING), state=State.STOPPING)

    found = records.notebook_events(WS, seen.id, EventQuery())

    assert [event.key for event in found] == ["notebook-created", "notebook-ready", "y"]
    assert found[0].params == {"user": "älice"}
    later = EventQuery(after_sequence=found[0].sequence, levels=("Warning",))
    assert [event.key for event in records.notebook_events(WS, seen.id, later)] == ["y"]
    assert [e.at for e in records.notebook_events(WS, seen.id, EventQuery(since=2, until=3))] == [3]
    with pytest.raises(Missing):
        records.notebook_events(OTHER.id, seen.id, EventQuery())


def test_what_no_column_holds_is_refused(records: Records) -> None:
    with pytest.raises(Invalid):
        records.add_notebook(new("nul\0"))


def test_the_starts_of_notebooks_are_no_jobs_of_the_lists(records: Records) -> None:
    job = submission(spec("of-a-job"))
    start = submission(spec("of-a-notebook", kind=Kind.NOTEBOOK))
    submitted(records, job, start)

    page = records.jobs(WS, JobQuery())

    assert ([view.job.id for view in page.jobs], page.total) == ([job.job.id], 1)
    assert records.find(WS, "of-a-notebook") == []
    assert records.find(WS, start.job.id[:8]) == []
    assert records.job(WS, start.job.id).job.spec.kind is Kind.NOTEBOOK
    assert {view.job.id for view in records.live()} == {job.job.id, start.job.id}
