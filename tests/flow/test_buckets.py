"""Whose a bucket is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from danlu import settings
from danlu.flow.buckets import OWNER, SEEN_FOR_S, Buckets
from danlu.flow.submit import check
from danlu.model.errors import Denied, Missing, Refused
from danlu.model.job import Input, JobSpec, Output
from danlu.model.resources import Shape
from danlu.model.url import ObjectUrl
from danlu.wiring import Running, open_platform


@pytest.fixture
def running(tmp_path: Path) -> Running:
    loaded = settings.load(tmp_path, {"engine": "memory", "port": 0}, {}).settings
    return open_platform(loaded)


@dataclass
class Hand:
    """A clock that is set by hand."""

    at: float = 0.0

    def now(self) -> int:
        return int(self.at * 1000)

    def monotonic(self) -> float:
        return self.at


def test_a_bucket_that_has_gone_is_missed_after_some_seconds_at_most(running: Running) -> None:
    platform, clock = running.platform, Hand()
    buckets = Buckets(platform.records, platform.objects, clock, "first")
    try:
        buckets.create("first", "one")
        buckets.check("first", "one")
        platform.objects.delete_bucket("one")
        clock.at = SEEN_FOR_S - 1
        buckets.check("first", "one")
        clock.at = SEEN_FOR_S
        with pytest.raises(Missing):
            buckets.check("first", "one")
        buckets.create("first", "one")
        buckets.delete("first", "one")
        with pytest.raises(Missing):
            buckets.check("first", "one")
    finally:
        running.close()


def test_a_bucket_belongs_to_who_made_it(running: Running) -> None:
    platform = running.platform
    buckets = Buckets(platform.records, platform.objects, platform.clock, "first")
    try:
        buckets.create("first", "one")
        buckets.create("second", "two")
        assert buckets.owned("first") == ["danlu", "one"]
        assert buckets.owned("second") == ["two"]
        with pytest.raises(Denied):
            buckets.check("first", "two")
        with pytest.raises(Missing):
            buckets.check("second", "none")
        with pytest.raises(Refused) as caught:
            buckets.create("first", "two")
        assert caught.value.key == "bucket-exists"
        with pytest.raises(Refused) as caught:
            buckets.create("second", "two")
        assert caught.value.key == "obs-bucket-owned"
        with pytest.raises(Denied):
            buckets.delete("first", "two")
        buckets.delete("second", "two")
        buckets.create("first", "two")
        again = Buckets(platform.records, platform.objects, platform.clock, "first")
        assert again.owner("two") == "first"
        assert platform.records.setting(f"{OWNER}two") == "first"
    finally:
        running.close()


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("algorithm.code_dir", {"code": ObjectUrl("two", "code/")}),
        ("algorithm.inputs[0]", {"inputs": (Input("data", ObjectUrl("two", "data/")),)}),
        ("algorithm.inputs[0]", {"inputs": (Input("data", ObjectUrl("two", "none")),)}),
        ("algorithm.outputs[0]", {"outputs": (Output("out", ObjectUrl("two", "out/")),)}),
        ("spec.log_export_path", {"log_url": ObjectUrl("two", "log/")}),
    ],
)
def test_a_job_may_not_name_a_bucket_of_others(
    running: Running, field: str, changes: dict[str, Any]
) -> None:
    platform, first = running.platform, running.workspace.id
    spec = JobSpec("job", "danlu.cpu.1u", Shape(1, 1), command="true")
    spec = replace(spec, **changes)
    try:
        running.buckets.create("second", "two")
        for key in ("code/a.py", "data/x"):
            platform.objects.put("two", key, b"")
        with pytest.raises(Denied) as denied:
            check(platform, running.board, first, spec)
        assert denied.value.key == "bucket-denied"
        assert field in str(denied.value)
        if "none" not in str(changes):
            check(platform, running.board, "second", spec)
    finally:
        running.close()
