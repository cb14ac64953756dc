"""Data sets that stay on a machine: each once, bounded, and never taken from a task."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from danlu.node.datasets import DataSets, Digest
from danlu.ports import task_directory as files
from danlu.ports.objects import ObjectInfo

MIB = 1 << 20


def name(letter: str) -> str:
    return letter * 64


class Place:
    """A cache of 10 MiB, and tasks that use it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sets = DataSets(root / "datasets", 10 * MIB)
        self.filled: list[str] = []

    def task(self, of: str) -> str:
        path = self.root / "tasks" / of
        path.mkdir(parents=True, exist_ok=True)
        return str(path)

    def over(self, of: str) -> None:
        (self.root / "tasks" / of / files.DONE).touch()

    def use(self, letter: str, task: str, mib: int = 4) -> Any:
        def fill(tree: Path) -> None:
            self.filled.append(letter)
            (tree / "f").write_bytes(letter.encode())

        about: dict[str, str | int] = {"size": mib * MIB, "files": 1, "url": f"obs://b/{letter}/"}
        return self.sets.use(name(letter), self.task(task), about, fill, lambda: None)

    def there(self) -> set[str]:
        return {one.digest[0] for one in self.sets.all()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_second_task_finds_what_the_first_has_brought(place: Place) -> None:
    tree, there = place.use("a", "one")
    assert (there, (tree / "f").read_bytes()) == (False, b"a")
    assert place.use("a", "two") == (tree, True)
    assert place.filled == ["a"]
    (found,) = place.sets.all()
    assert (found.size, found.files, found.url, len(found.users)) == (4 * MIB, 1, "obs://b/a/", 2)


def test_what_was_used_longest_ago_makes_room(place: Place) -> None:
    for letter in "ab":
        place.use(letter, letter)
        place.over(letter)
        time.sleep(0.01)
    place.use("a", "again")
    place.over("again")
    place.use("c", "c")
    assert place.there() == {"a", "c"}


def test_what_a_task_uses_is_never_removed(place: Place) -> None:
    place.use("a", "one")
    place.use("b", "two")
    assert place.use("c", "three") is None
    assert not place.sets.remove(name("a"))
    assert place.sets.shrink(0) == []
    place.over("one")
    assert place.use("c", "three") is not None
    assert place.there() == {"b", "c"}
    (Path(place.task("two"))).rename(place.root / "gone")
    assert [one.digest for one in place.sets.shrink(5 * MIB)] == [name("b")]


def test_what_is_larger_than_all_of_it_is_not_kept(place: Place) -> None:
    place.use("a", "one")
    assert place.use("b", "two", mib=11) is None
    assert place.there() == {"a"}


def test_what_could_not_be_brought_leaves_nothing(place: Place) -> None:
    def fill(tree: Path) -> None:
        (tree / "half").touch()
        raise OSError(5, "gone")

    with pytest.raises(OSError, match="gone"):
        place.sets.use(name("a"), place.task("one"), {"size": 1}, fill, lambda: None)
    assert place.sets.all() == []
    assert place.use("a", "one")[1] is False


def test_many_at_once_bring_it_once(place: Place) -> None:
    seen: list[bool] = []

    def one(number: int) -> None:
        seen.append(place.use("a", f"task-{number}")[1])

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [False, *[True] * 7]
    assert place.filled == ["a"]


def test_who_waits_can_be_stopped(place: Place) -> None:
    def stop() -> None:
        raise InterruptedError

    def fill(_tree: Path) -> None:
        with pytest.raises(InterruptedError):
            place.sets.use(name("a"), place.task("two"), {"size": 1}, lambda _: None, stop)

    assert place.sets.use(name("a"), place.task("one"), {"size": 1}, fill, lambda: None)


def _dies(root: Path, begun: Any) -> None:
    def fill(tree: Path) -> None:
        (tree / "half").write_text("half")
        begun.set()
        time.sleep(600)

    Place(root).sets.use(name("a"), Place(root).task("one"), {"size": 4 * MIB}, fill, lambda: None)


def test_a_kill_while_it_is_brought_leaves_what_the_next_one_clears(place: Place) -> None:
    spawning = multiprocessing.get_context("spawn")
    begun = spawning.Event()
    process = spawning.Process(target=_dies, args=(place.root, begun))
    process.start()
    assert begun.wait(60)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    (left,) = place.sets.all()
    assert not left.complete
    tree, there = place.use("a", "two")
    assert not there
    assert [path.name for path in tree.iterdir()] == ["f"]


def info(key: str, **changes: Any) -> ObjectInfo:
    return ObjectInfo(
        **{"bucket": "b", "key": key, "size": 1, "etag": "e", "modified_at": 1, **changes}
    )


def digest(*infos: ObjectInfo, of: Callable[[ObjectInfo], str] = lambda one: one.key) -> str:
    made = Digest()
    for one in infos:
        made.add(of(one), one)
    return made.hex()


def test_a_data_set_is_what_it_consists_of_and_not_where_it_lies() -> None:
    first = digest(info("a"), info("b"))
    assert digest(info("a", bucket="other", modified_at=2), info("b")) == first
    different = (
        digest(info("a")),
        digest(info("a"), info("c")),
        digest(info("a", size=2), info("b")),
        digest(info("a", etag="f"), info("b")),
        digest(info("a", metadata={"mode": "755"}), info("b")),
        digest(info("a\n"), info("b")),
        first,
    )
    assert len(set(different)) == len(different)
