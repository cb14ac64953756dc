"""What Records promise of lists: filters, order, pages; and what hostile values do to them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from danlu.model.attempt import Event, State
from danlu.model.errors import Invalid
from danlu.model.job import JobView
from danlu.ports.records import Filter, JobQuery, Move, Records
from tests.contract.samples import OTHER, WAIT, WORKSPACE, Store, spec, submission, submitted

WS = WORKSPACE.id

HOSTILE = [
    "'",
    '"',
    "' OR '1'='1",
    "x'; DROP TABLE jobs; --",
    "%",
    "_",
    "\\",
    "a%b",
    "{}",
    ":name",
    "%(name)s",
    "%s",
    "?",
    "$1",
    "\n",
    "\r\n\t",
    "\x01\x1b[31m",
    "\u202e\u200b\ufeff",
    "训练",
    "🔥",
    "e\u0301",
    "é",
    "İ",
    "ß",
    "\U0010ffff",
    "",
    " ",
    "NULL",
    "0",
]


def names(records: Records, *filters: Filter, **query: Any) -> list[str]:
    page = records.jobs(WS, JobQuery(filters, **query))
    return [view.job.spec.name for view in page.jobs]


@pytest.fixture
def five(records: Records) -> Records:
    """Five jobs, each different from the others in every column."""
    for at, name in enumerate(["b", "B", "ab", "a", "ba"]):
        wanted = spec(
            name,
            description=f"about {name}",
            flavor=f"f{at % 2}",
            node_count=at + 1,
            priority=at % 3 + 1,
        )
        key = submitted(
            records, submission(wanted, at=10 * at, user=f"u{at % 2}", job_id=f"id-{at}")
        )[0]
        for event in [Event.PLACE, Event.LAUNCH, Event.STARTED][:at]:
            records.move(Move(key, event, 100 - at)).result(WAIT)
    submitted(records, submission(spec("b"), workspace=OTHER.id))
    return records


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (Filter("name", "in", ["a", "b"]), ["a", "b"]),
        (Filter("name", "in", []), []),
        (Filter("name", "not", ["a", "b"]), ["ba", "ab", "B"]),
        (Filter("name", "not", []), ["ba", "a", "ab", "B", "b"]),
        (Filter("name", "like", ["b"]), ["ba", "ab", "b"]),
        (Filter("name", "like", ["B", "ab"]), ["ab", "B"]),
        (Filter("name", "like", []), []),
        (Filter("name", "between", ["a", "b"]), ["a", "ab", "b"]),
        (Filter("description", "like", ["t a"]), ["a", "ab"]),
        (Filter("state", "in", ["queued"]), ["b"]),
        (Filter("state", "not", ["queued", "running"]), ["ab", "B"]),
        (Filter("state", "like", ["ing"]), ["ba", "a", "ab"]),
        (Filter("state", "in", ["odd"]), []),
        (Filter("flavor", "in", ["f1"]), ["a", "B"]),
        (Filter("user", "in", ["u0"]), ["ba", "ab", "b"]),
        (Filter("id", "in", ["id-1", "id-4", "id-9"]), ["ba", "B"]),
        (Filter("id", "like", ["d-3"]), ["a"]),
        (Filter("created_at", "between", [10, 30]), ["a", "ab", "B"]),
        (Filter("created_at", "between", [30, 10]), []),
        (Filter("created_at", "in", [0, 40, 5]), ["ba", "b"]),
        (Filter("created_at", "between", [-(2**63), 2**63 - 1]), ["ba", "a", "ab", "B", "b"]),
        (Filter("node_count", "in", [2, 3]), ["ab", "B"]),
        (Filter("node_count", "not", [2, 3]), ["ba", "a", "b"]),
        (Filter("priority", "between", [2, 3]), ["ba", "ab", "B"]),
    ],
)
def test_each_filter(five: Records, one: Filter, expected: list[str]) -> None:
    page = five.jobs(WS, JobQuery((one,)))

    assert [view.job.spec.name for view in page.jobs] == expected
    assert page.total == len(expected)


def test_filters_must_all_hold(five: Records) -> None:
    flavor, nodes = Filter("flavor", "in", ["f0"]), Filter("node_count", "between", [2, 5])

    assert names(five, flavor, nodes) == ["ba", "ab"]
    assert names(five, flavor, nodes, Filter("name", "like", ["ba"])) == ["ba"]
    assert names(five, flavor, flavor) == names(five, flavor)


@pytest.mark.parametrize(
    ("sort_by", "ascending"),
    [
        ("created_at", ["b", "B", "ab", "a", "ba"]),
        ("name", ["B", "a", "ab", "b", "ba"]),
        ("flavor", ["b", "ab", "ba", "B", "a"]),
        ("priority", ["b", "a", "B", "ba", "ab"]),
    ],
)
def test_each_order(five: Records, sort_by: str, ascending: list[str]) -> None:
    assert names(five, sort_by=sort_by, descending=False) == ascending
    assert names(five, sort_by=sort_by) == ascending[::-1]


def test_order_by_how_long_the_program_ran(store: Store) -> None:
    records = store.open()
    now = store.clock.now()
    # name, started, exited
    for name, started, exited in (("none", None, None), ("long", 5, 905), ("short", 500, 510)):
        key = submitted(records, submission(spec(name)))[0]
        if started is not None and exited is not None:
            for event, at in ((Event.PLACE, 1), (Event.LAUNCH, 2), (Event.STARTED, started)):
                records.move(Move(key, event, at)).result(WAIT)
            records.move(Move(key, Event.EXITED, exited)).result(WAIT)
            records.move(Move(key, Event.OK, exited + 10_000)).result(WAIT)
    key = submitted(records, submission(spec("still")))[0]
    for event in (Event.PLACE, Event.LAUNCH, Event.STARTED):
        records.move(Move(key, event, now - 100)).result(WAIT)

    assert names(records, sort_by="duration") == ["long", "still", "short", "none"]
    store.clock.advance(1)
    assert names(records, sort_by="duration") == ["still", "long", "short", "none"]
    assert names(records, sort_by="duration", descending=False)[0] == "none"


@pytest.mark.parametrize("sort_by", ["created_at", "name", "flavor", "priority", "duration"])
@pytest.mark.parametrize("descending", [True, False])
def test_equals_are_told_apart_by_their_number(
    records: Records, sort_by: str, *, descending: bool
) -> None:
    """(case 39) Pages neither repeat nor miss a job, whatever they are sorted by."""
    wanted = [submission(at=7) for _ in range(25)]
    submitted(records, *wanted)
    expected = [one.job.id for one in wanted]
    if descending:
        expected.reverse()

    found: list[str] = []
    for offset in range(0, 30, 4):
        query = JobQuery(sort_by=sort_by, descending=descending, offset=offset, limit=4)  # type: ignore[arg-type]  # parametrised
        page = records.jobs(WS, query)
        assert page.total == 25
        found += [view.job.id for view in page.jobs]

    assert found == expected


def test_a_page_is_what_job_says_one_by_one(five: Records) -> None:
    for view in five.jobs(WS, JobQuery()).jobs:
        assert view == five.job(WS, view.job.id)


def test_pages_at_the_edges(five: Records) -> None:
    assert five.jobs(WS, JobQuery(limit=0)).jobs == ()
    assert five.jobs(WS, JobQuery(limit=0)).total == 5
    assert five.jobs(WS, JobQuery(offset=5)).jobs == ()
    assert five.jobs(WS, JobQuery(offset=2**63 - 1)).total == 5
    assert len(five.jobs(WS, JobQuery(limit=2**63 - 1)).jobs) == 5
    assert names(five, offset=3, limit=1) == ["B"]


def bad(**query: Any) -> JobQuery:
    return JobQuery(**query)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        (bad(offset=-1), "offset"),
        (bad(limit=-1), "limit"),
        (bad(offset=2**63), "offset"),
        (bad(sort_by="spec"), "sort_by"),
        (bad(sort_by="name; DROP TABLE jobs"), "sort_by"),
        (bad(filters=(Filter("secret", "in", ["x"]),)), "filters[0].key"),
        (bad(filters=(Filter("name", "glob", ["x"]),)), "filters[0].operator"),  # type: ignore[arg-type]  # wrong on purpose
        (bad(filters=(Filter("priority", "like", [1]),)), "filters[0].operator"),
        (bad(filters=(Filter("priority", "in", ["1"]),)), "filters[0].value"),
        (bad(filters=(Filter("name", "in", [1]),)), "filters[0].value"),
        (bad(filters=(Filter("name", "in", ["x"]), Filter("name", "in", ["\0"]))), "filters[1]"),
        (bad(filters=(Filter("name", "like", ["\udc80"]),)), "filters[0].value"),
        (bad(filters=(Filter("created_at", "between", [1]),)), "filters[0].value"),
        (bad(filters=(Filter("created_at", "between", [1, 2, 3]),)), "filters[0].value"),
        (bad(filters=(Filter("created_at", "in", [2**63]),)), "filters[0].value"),
        (bad(filters=(Filter("name", "in", ["x"] * 5000),)), "filters"),
        (bad(filters=(Filter("name", "in", []),) * 5000), "filters"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    records: Records, query: JobQuery, named: str
) -> None:
    with pytest.raises(Invalid) as refused:
        records.jobs(WS, query)

    assert str(refused.value.params["field"]).startswith(named)


def test_as_many_values_as_may_be(records: Records) -> None:
    submitted(records, submission(spec("n7")))
    wanted: list[str | int] = [f"n{i}" for i in range(199)]

    for operator in ("in", "like"):
        assert names(records, Filter("name", operator, wanted)) == ["n7"]
    assert names(records, Filter("name", "not", wanted)) == []


def test_hostile_values_are_values_and_nothing_else(records: Records) -> None:
    for at, text in enumerate(HOSTILE):
        one = spec(text, description=text + text, flavor=text)
        submitted(records, submission(one, at=at, user=text))

    for text in HOSTILE:
        for key in ("name", "flavor", "user"):
            assert names(records, Filter(key, "in", [text])) == [text], key
            assert sorted(names(records, Filter(key, "not", [text]))) == sorted(
                other for other in HOSTILE if other != text
            )
        holding = [other for other in reversed(HOSTILE) if text in other]
        assert names(records, Filter("name", "like", [text])) == holding
        assert text not in HOSTILE[:0]
        assert records.find(WS, text or "none such") == (records.find(WS, text) if text else [])
    by_bytes = sorted(HOSTILE, key=str.encode)
    assert names(records, sort_by="name", descending=False) == by_bytes


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
KEYS: dict[str, Callable[[JobView], str | int]] = {
    "name": lambda view: view.job.spec.name,
    "description": lambda view: view.job.spec.description,
    "flavor": lambda view: view.job.spec.flavor,
    "user": lambda view: view.job.user,
    "id": lambda view: view.job.id,
    "state": lambda view: view.attempt.state.value,
    "created_at": lambda view: view.job.created_at,
    "node_count": lambda view: view.job.spec.node_count,
    "priority": lambda view: view.job.spec.priority,
}
NUMBERS = ("created_at", "node_count", "priority")


@st.composite
def conditions(draw: st.DrawFn) -> Filter:
    key = draw(st.sampled_from(sorted(KEYS)))
    operators = ["in", "not", "between"] + ([] if key in NUMBERS else ["like"])
    operator: Any = draw(st.sampled_from(operators))
    values: st.SearchStrategy[Any] = st.integers(0, 4) if key in NUMBERS else TEXTS
    if key == "state":
        values = st.sampled_from([str(state) for state in State])
    size = 2 if operator == "between" else draw(st.integers(0, 3))
    return Filter(key, operator, draw(st.lists(values, min_size=size, max_size=size)))


def holds(one: Filter, view: JobView) -> bool:
    """The filter in Python."""
    found: Any = KEYS[one.key](view)
    match one.operator:
        case "in":
            return found in one.values
        case "not":
            return found not in one.values
        case "like":
            return any(str(value) in found for value in one.values)
        case _:
            least, most = ordered(one.values[0]), ordered(one.values[1])
            return bool(least <= ordered(found) <= most)


def ordered(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def test_lists_are_what_python_would_say(records: Records) -> None:
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        jobs=st.lists(st.tuples(TEXTS, TEXTS, st.integers(0, 4)), min_size=1, max_size=3),
        filters=st.lists(conditions(), max_size=3),
        sort_by=st.sampled_from(["created_at", "name", "flavor", "priority"]),
        down=st.booleans(),
    )
    def check(
        jobs: list[tuple[str, str, int]], filters: list[Filter], sort_by: Any, *, down: bool
    ) -> None:
        for name, other, number in jobs:
            one = spec(name, description=other, flavor=other, node_count=number, priority=number)
            submitted(records, submission(one, at=number, user=name))
        everything = records.jobs(WS, JobQuery(limit=10_000)).jobs

        page = records.jobs(WS, JobQuery(tuple(filters), sort_by, descending=down, limit=10_000))

        expected = [view for view in everything if all(holds(one, view) for one in filters)]
        key = KEYS[sort_by]
        expected.sort(key=lambda view: (ordered(key(view)), view.job.sequence), reverse=down)
        assert list(page.jobs) == expected
        assert page.total == len(expected)

    check()


@pytest.mark.long
def test_ten_thousand_jobs_page_by_page(records: Records) -> None:
    """Every job once, in order, on pages from the middle as well as from the start."""
    count = 10_000
    wanted = [submission(at=i // 3, token=f"t{i}") for i in range(count)]
    for start in range(0, count, 2000):
        submitted(records, *wanted[start : start + 2000])
    expected = [one.job.id for one in reversed(wanted)]

    pages = (records.jobs(WS, JobQuery(offset=at, limit=1000)) for at in range(0, count, 1000))
    found = list(itertools.chain.from_iterable(page.jobs for page in pages))

    assert [view.job.id for view in found] == expected
    middle = records.jobs(WS, JobQuery(offset=4997, limit=50))
    assert [view.job.id for view in middle.jobs] == expected[4997:5047]
    assert middle.total == count
    assert len(records.live()) == count
