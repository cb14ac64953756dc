"""Outputs: when a file is steady, what is passed over, and that nothing half-written is stored."""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from danlu.model.errors import Refused
from danlu.model.job import Output
from danlu.model.manifest import (
    STAGING,
    Delivery,
    Manifest,
    Owner,
    hidden,
    manifest_name,
    read_manifest,
)
from danlu.model.url import LocalUrl, ObjectUrl, Url
from danlu.node.commit import Superseded
from danlu.node.directory import TaskDirectory
from danlu.node.parallel import each
from danlu.node.steady import SteadyFile, Unsteady
from danlu.node.stored import Stored
from danlu.node.sync import OutputSync
from danlu.node.target import Target, open_target
from danlu.ports.task_directory import Isolation
from danlu.stores.folder import FolderStore


class Bench:
    """One output of a task, and where it goes."""

    def __init__(self, root: Path, kind: str) -> None:
        self.kind = kind
        self.place = root / "out"
        self.place.mkdir(parents=True)
        self.store = FolderStore(root / "objects")
        self.store.create_bucket("danlu")
        self.kept = root / "kept"
        self.url: Url = ObjectUrl("danlu", "o/") if kind == "objects" else LocalUrl(str(self.kept))
        objects = {"kind": "folder", "root": str(root / "objects")}
        self.target: Target = open_target(self.url, objects, Isolation(), "out")
        (root / "task").mkdir()
        self.directory = TaskDirectory(str(root / "task"))
        self.sync = self.another()

    def another(self, attempt: int = 1) -> OutputSync:
        """What a second agent would go on with."""
        output = Output("o", self.url)
        owner = Owner("job-1", attempt, "worker-0", f"{attempt}" * 32)
        return OutputSync(0, output, self.place, self.target, Stored(self.directory), owner)

    def look(self) -> list[str]:
        names = [found.name for found in self.sync.steady()]
        for name in names:
            self.sync._put(name, name, last=False)
        return names

    def stored(self) -> dict[str, bytes]:
        return {name: data for name, data in self.everything().items() if not hidden(name)}

    def everything(self) -> dict[str, bytes]:
        """What is stored, the platform's own files included."""
        if self.kind == "objects":
            walked = self.store.walk("danlu", "o/")
            return {i.key[2:]: b"".join(self.store.read("danlu", i.key)) for i in walked}
        found = [path for path in self.kept.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.kept)): path.read_bytes() for path in found}

    def manifest(self) -> Manifest:
        """What the platform says of the output."""
        found = read_manifest(self.everything()[manifest_name("job-1", "worker-0", 0)])
        assert found is not None
        return found


@pytest.fixture(params=["objects", "folder"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path, request.param)


def test_a_file_is_stored_when_two_looks_saw_it_alike(bench: Bench) -> None:
    (bench.place / "a").write_bytes(b"1")
    assert bench.look() == []
    assert bench.look() == ["a"]
    assert bench.look() == []
    assert bench.stored() == {"a": b"1"}


def test_a_file_that_grows_waits_and_one_that_changed_goes_again(bench: Bench) -> None:
    growing = (bench.place / "log").open("ab", buffering=0)
    for number in range(3):
        growing.write(b"x")
        assert bench.look() == []
        assert number < 3
    growing.close()
    assert bench.look() == ["log"]
    (bench.place / "log").write_bytes(b"new")
    assert bench.look() == []
    assert bench.look() == ["log"]
    assert bench.stored() == {"log": b"new"}


def test_a_file_of_the_same_size_and_time_that_was_replaced_goes_again(bench: Bench) -> None:
    file = bench.place / "model"
    file.write_bytes(b"one")
    os.utime(file, ns=(1, 1))
    bench.look()
    assert bench.look() == ["model"]
    other = bench.place / "model.tmp"
    other.write_bytes(b"two")
    os.utime(other, ns=(1, 1))
    other.rename(file)
    bench.look()
    assert bench.look() == ["model"]
    assert bench.stored()["model"] == b"two"


def test_what_was_written_first_is_stored_first(bench: Bench) -> None:
    """A manifest that is written last is stored last."""
    for number, name in enumerate(["shard-b", "shard-a", "manifest"]):
        (bench.place / name).write_bytes(b"x")
        os.utime(bench.place / name, ns=(number, number))
    bench.look()
    assert bench.look() == ["shard-b", "shard-a", "manifest"]


def test_nothing_half_written_is_ever_seen(bench: Bench) -> None:
    (bench.place / "deep").mkdir()
    file = bench.place / "deep/big"
    file.write_bytes(b"a" * 3_000_000)
    bench.look()
    real = SteadyFile.check
    changed: list[int] = []

    def touched(self: SteadyFile) -> None:
        if not changed:
            changed.append(file.write_bytes(b"b" * 3_000_000))
        real(self)

    SteadyFile.check = touched  # type: ignore[method-assign] # the moment before the end
    try:
        with pytest.raises(Unsteady):
            bench.look()
    finally:
        SteadyFile.check = real  # type: ignore[method-assign] # as it was
    assert bench.stored() == {}
    bench.look()
    bench.look()
    assert bench.stored() == {"deep/big": b"b" * 3_000_000}


def test_the_end_stores_what_the_run_did_not(bench: Bench) -> None:
    for number in range(40):
        (bench.place / f"{number % 4}").mkdir(exist_ok=True)
        (bench.place / f"{number % 4}/{number}").write_bytes(bytes([number]))
    bench.look()
    (bench.place / "0/0").write_bytes(b"late")
    bench.look()
    summary = bench.sync.store_all(0)
    assert (summary.files, summary.size, summary.skipped) == (40, 43, 0)
    expected = {f"{n % 4}/{n}": bytes([n]) for n in range(40)}
    assert bench.stored() == {**expected, "0/0": b"late"}
    assert bench.sync.store_all(0) == summary


def test_another_agent_stores_only_what_is_left(bench: Bench) -> None:
    for name in "ab":
        (bench.place / name).write_bytes(name.encode())
    bench.look()
    bench.look()
    (bench.place / "c").write_bytes(b"c")
    second = bench.another()
    put: list[str] = []
    real = second._put

    def watched(name: str, place: str, *, last: bool) -> None:
        put.append(name)
        real(name, place, last=last)

    second._put = watched  # type: ignore[method-assign] # to see what it is asked for
    second.store_all(0)
    assert put == ["c"]
    assert bench.stored() == {"a": b"a", "b": b"b", "c": b"c"}


def test_what_did_not_arrive_is_noticed_and_stored_again(bench: Bench) -> None:
    (bench.place / "a").write_bytes(b"1")
    bench.look()
    bench.look()
    if bench.kind == "objects":
        bench.store.delete("danlu", ["o/a"])
    else:
        (bench.kept / "a").unlink()
    with pytest.raises(OSError, match="did not arrive"):
        bench.sync.store_all(0)
    bench.sync.store_all(0)
    assert bench.stored() == {"a": b"1"}


def test_what_the_program_removed_again_stays_stored(bench: Bench) -> None:
    (bench.place / "old").write_bytes(b"1")
    bench.look()
    bench.look()
    (bench.place / "old").unlink()
    (bench.place / "new").write_bytes(b"2")
    assert bench.sync.store_all(0).files == 1
    assert bench.stored() == {"old": b"1", "new": b"2"}


def test_links_inside_are_followed_and_those_that_lead_out_are_not(bench: Bench) -> None:
    (bench.place / "step-9").mkdir()
    (bench.place / "step-9/w").write_bytes(b"9")
    (bench.place / "latest").symlink_to("step-9")
    (bench.place / "w").symlink_to("step-9/w")
    (bench.place / "out").symlink_to("/etc/passwd")
    (bench.place / "up").symlink_to("..")
    (bench.place / "gone").symlink_to("nowhere")
    (bench.place / "loop").symlink_to("loop")
    (bench.place / "step-9/self").symlink_to(".")
    os.mkfifo(bench.place / "pipe")
    summary = bench.sync.store_all(0)
    assert bench.stored() == {
        "step-9/w": b"9",
        "step-9/self/w": b"9",
        "latest/w": b"9",
        "w": b"9",
    }
    assert summary.skipped >= 5


def test_a_place_that_became_a_link_is_not_stored(bench: Bench) -> None:
    bench.place.rmdir()
    bench.place.symlink_to("/etc")
    summary = bench.sync.store_all(0)
    assert (summary.files, summary.skipped) == (0, 1)
    assert bench.stored() == {}


def test_a_place_that_was_removed_is_empty(bench: Bench) -> None:
    bench.place.rmdir()
    assert bench.sync.store_all(0).files == 0


def test_odd_names_are_stored(bench: Bench) -> None:
    names = ["中文 名", " ", "a\nb", "-", "~", "x" * 200, os.fsdecode(b"\xff")]
    for name in names:
        (bench.place / name).write_bytes(b"1")
    assert bench.sync.store_all(0).files == len(names)
    assert len(bench.stored()) == len(names)


def test_directories_that_were_locked_are_opened_at_the_end(bench: Bench) -> None:
    (bench.place / "d").mkdir()
    (bench.place / "d/x").write_bytes(b"1")
    (bench.place / "d").chmod(0)
    assert bench.sync.store_all(0).files == 1


def test_execute_bits_are_kept(bench: Bench) -> None:
    (bench.place / "run.sh").write_bytes(b"#!")
    (bench.place / "run.sh").chmod(0o755)
    bench.look()
    bench.look()
    if bench.kind == "objects":
        assert bench.store.head("danlu", "o/run.sh").metadata == {"mode": "755"}
    else:
        assert (bench.kept / "run.sh").stat().st_mode & 0o777 == 0o755


def test_a_look_ends_when_it_is_told_to(bench: Bench) -> None:
    (bench.place / "a").write_bytes(b"1")
    bench.sync.steady()
    stopping = threading.Event()
    stopping.set()
    bench.sync.store_steady(stopping)
    assert bench.stored() == {}


def test_no_part_files_are_left(bench: Bench) -> None:
    (bench.place / "a").write_bytes(b"1")
    bench.look()
    bench.look()
    bench.sync.store_all(0)
    if bench.kind == "folder":
        assert {path.name for path in bench.kept.iterdir()} == {"a", ".danlu"}
        assert not [path for path in bench.kept.rglob("*") if path.name.endswith(".part")]


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["write", "append", "remove", "look"])),
        max_size=12,
    )
)
def test_whatever_happens_the_end_is_what_was_there(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    bench = Bench(tmp_path_factory.mktemp("bench"), "folder")
    for number, (name, step) in enumerate(steps):
        file = bench.place / name
        if step == "write":
            file.write_bytes(b"%d" % number)
        elif step == "append":
            with file.open("ab") as stream:
                stream.write(b"+")
        elif step == "remove":
            file.unlink(missing_ok=True)
        else:
            bench.look()
    bench.sync.store_all(0)
    there = {path.name: path.read_bytes() for path in bench.place.iterdir()}
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in there.items()}
    assert {file.name: file.sha256 for file in bench.manifest().files} == digests
    stored = bench.stored()
    assert {name: stored[name] for name in there} == there


# ---------------------------------------------------------------- delivery


def test_a_manifest_names_every_file(bench: Bench) -> None:
    (bench.place / "live").write_bytes(b"1")
    bench.look()
    bench.look()
    (bench.place / "late").write_bytes(b"22")
    bench.sync.store_all(3)
    found = bench.manifest()
    assert {file.name: file.size for file in found.files} == {"live": 1, "late": 2}
    assert (found.state, found.attempt, found.exit_code) == (Delivery.COMMITTED, 1, 3)
    assert found.token == "1" * 32
    assert bench.stored() == {"live": b"1", "late": b"22"}
    assert len(bench.everything()) == 3


class Crash(Exception):
    """The agent dies here."""


STEPS = ("put", "settle", "put_document", "move", "clear")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_crash_at_any_step_leaves_nothing_half_delivered(
    bench: Bench, step: str, number: int, when: str
) -> None:
    """(fault 8)"""
    old = {"live": b"live", "changed": b"old"}
    for name, data in old.items():
        (bench.place / name).write_bytes(data)
    bench.look()
    bench.look()
    new = {"live": b"live", "changed": b"newer", "a": b"1", "d/b": b"2", "d/c": b"3"}
    (bench.place / "d").mkdir()
    for name, data in new.items():
        (bench.place / name).write_bytes(data)
    real, count = getattr(bench.target, step), itertools.count(1)

    def dying(*given: Any, **named: Any) -> Any:
        mine = next(count)
        if mine == number and when == "before":
            raise Crash
        done = real(*given, **named)
        if mine == number:
            raise Crash
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench.target, step, dying)
        try:
            bench.sync.store_all(0)
        except Crash:
            stored = bench.stored()
            moving = any("worker-0.0.json" in name for name in bench.everything())
            # Nothing gets its name before everything is there and a manifest says so.
            assert moving or stored == old
            assert all(stored[name] in (new[name], old.get(name)) for name in stored)
    second = bench.another()
    try:
        second.store_all(0)
    except OSError:  # what a crash between moving and writing it down costs: it is sent again
        second.store_all(0)
    assert bench.stored() == new
    assert bench.manifest().state is Delivery.COMMITTED
    assert sorted(bench.everything()) == sorted([*new, manifest_name("job-1", "worker-0", 0)])


def test_a_later_attempt_takes_over_and_an_earlier_one_is_refused(bench: Bench) -> None:
    (bench.place / "a").write_bytes(b"first")
    bench.sync.store_all(0)
    (bench.place / "a").unlink()
    (bench.place / "a").write_bytes(b"second")
    bench.another(2).store_all(0)
    assert (bench.manifest().attempt, bench.stored()) == (2, {"a": b"second"})
    (bench.place / "a").unlink()
    (bench.place / "a").write_bytes(b"stale")
    with pytest.raises(Superseded, match="attempt 2"):
        bench.another(1).store_all(0)
    assert (bench.manifest().attempt, bench.stored()) == (2, {"a": b"second"})


def test_a_manifest_that_changed_meanwhile_is_not_written_over(bench: Bench) -> None:
    name = manifest_name("job-1", "worker-0", 0)
    bench.target.put_document(name, b"one", None)
    found = bench.target.document(name)
    assert found is not None
    with pytest.raises(Refused, match="condition"):
        bench.target.put_document(name, b"two", None)
    bench.target.put_document(name, b"two", found[1])
    with pytest.raises(Refused, match="condition"):
        bench.target.put_document(name, b"three", found[1])
    assert (bench.target.document(name) or (b"",))[0] == b"two"


def test_what_killed_uploads_left_is_swept(bench: Bench) -> None:
    """(faults 8, 37)"""
    (bench.place / "a").write_bytes(b"dead")
    other = Owner("job-1", 1, "worker-1", "1" * 32)
    for owner in (Owner("job-0", 3, "worker-0", ""), Owner("job-1", 1, "worker-0", ""), other):
        bench.target.put(bench.place / "a", owner.staged(b"a"), last=True)
    assert bench.stored() == {}
    bench.another(2).store_all(0)
    bench.target.put(bench.place / "a", other.staged(b"a"), last=True)
    bench.sync = bench.another(1)
    assert [name for name in bench.everything() if name.startswith(STAGING)] == [other.staged(b"a")]


def test_tasks_of_one_attempt_do_not_clear_each_other(bench: Bench) -> None:
    other = Owner("job-1", 1, "worker-1", "1" * 32)
    (bench.place / "a").write_bytes(b"1")
    bench.target.put(bench.place / "a", other.staged(b"a"), last=True)
    bench.sync.store_all(0)
    assert other.staged(b"a") in bench.everything()


def test_the_platforms_own_directory_is_not_an_output(bench: Bench) -> None:
    (bench.place / ".danlu").mkdir()
    (bench.place / ".danlu/x").write_bytes(b"forged")
    summary = bench.sync.store_all(0)
    assert (summary.files, summary.skipped) == (0, 1)


# ---------------------------------------------------------------- threads


def test_work_is_done_on_everything_a_few_at_a_time() -> None:
    ahead = [0]
    most = [0]
    done: list[int] = []
    lock = threading.Lock()

    def items() -> Iterator[int]:
        for number in range(200):
            with lock:
                ahead[0] += 1
                most[0] = max(most[0], ahead[0])
            yield number

    def work(number: int) -> None:
        time.sleep(0.0005)
        with lock:
            ahead[0] -= 1
            done.append(number)

    each(items(), work, threads=4)
    assert sorted(done) == list(range(200))
    assert most[0] <= 12


@pytest.mark.parametrize("count", [3, 100])
def test_the_first_error_ends_the_work(count: int) -> None:
    done: list[int] = []

    def work(number: int) -> None:
        if number == 2:
            raise OSError("broken")
        done.append(number)

    with pytest.raises(OSError, match="broken"):
        each(iter(range(count)), work)
    assert len(done) < count
