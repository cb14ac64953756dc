"""Whose a bucket is."""

from __future__ import annotations

from pathlib import Path

import pytest

from danlu import settings
from danlu.flow.buckets import OWNER, Buckets
from danlu.model.errors import Denied, Missing, Refused
from danlu.wiring import Running, open_platform


@pytest.fixture
def running(tmp_path: Path) -> Running:
    loaded = settings.load(tmp_path, {"engine": "memory", "port": 0}, {}).settings
    return open_platform(loaded)


def test_a_bucket_belongs_to_who_made_it(running: Running) -> None:
    platform = running.platform
    buckets = Buckets(platform.records, platform.objects, "first")
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
        again = Buckets(platform.records, platform.objects, "first")
        assert again.owner("two") == "first"
        assert platform.records.setting(f"{OWNER}two") == "first"
    finally:
        running.close()
