"""danlu diff: where two jobs differ in what was asked for, what they ran on, how they ended."""

from __future__ import annotations

from danlu.faces.cli import view
from danlu.faces.cli.events import every
from danlu.faces.cli.replay import original
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from collections.abc import Iterator
    from typing import Any

DIFFERENT = 1
RUNS_ON = "task-runs-on"
BY_NAME = ("parameters", "inputs", "outputs")
"""Lists of the create body whose items are known by their name."""
PARTS = ("metadata", "algorithm", "spec", "danlu")
OF_ITS_OWN = ("metadata.id", "metadata.create_time")


def diff(session: Session, *, job: str, other: str) -> int:
    """List what differs; the exit status is 1 where something does."""
    both = [_facts(session, one) for one in (job, other)]
    names = list(dict.fromkeys([*both[0], *both[1]]))
    rows = [
        (name, both[0].get(name, ""), both[1].get(name, ""))
        for name in names
        if both[0].get(name, "") != both[1].get(name, "")
    ]
    if session.json:
        keys = ("what", "first", "second")
        session.put_json({"differences": [dict(zip(keys, row, strict=True)) for row in rows]})
    elif rows:
        shown = [tuple(printable(cell) or "-" for cell in row) for row in rows]
        session.terminal.table(session.text("columns.diff").split("|"), shown)
    else:
        session.say("diff-none")
    return DIFFERENT if rows else 0


def _facts(session: Session, ref: str) -> dict[str, str]:
    """Everything of a job that can differ for a reason, by its place."""
    found = session.get("jobs", ref)
    asked = original(session, found["id"])
    facts = {
        name: value
        for part in PARTS
        for name, value in _flat(part, asked.get(part, {}))
        if name not in OF_ITS_OWN
    }
    for event in every(session, found["id"]):
        if event["key"] == RUNS_ON:
            task = event["task"] or "worker-0"
            facts.update(
                (f"{task}.{name}", str(value))
                for name, value in event["params"].items()
                if name != "what"
            )
    if found["image"]:
        facts["image"] = found["image"]
    facts["state"] = view.state(found)
    if found["exit_code"] is not None:
        facts["exit"] = str(found["exit_code"])
    if found["duration_ms"] is not None:
        facts["duration"] = view.seconds(found["duration_ms"] / 1000)
    return facts


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    elif isinstance(value, list) and name.rpartition(".")[2] in BY_NAME:
        seen: dict[str, int] = {}
        for item in value:
            # A parameter may stand twice; scripts take the last one, or both.
            count = seen[item["name"]] = seen.get(item["name"], 0) + 1
            place = f"{name}.{item['name']}" + (f"#{count}" if count > 1 else "")
            rest = {key: inner for key, inner in item.items() if key != "name"}
            yield from _flat(place, rest["value"] if rest.keys() == {"value"} else rest)
    else:
        yield name, value if isinstance(value, str) else _plain(value)


def _plain(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
