"""Directories as buckets: their files are the objects, and nothing else is within reach."""

from __future__ import annotations

import errno
import itertools
import os
import random
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from danlu.model.errors import Invalid, Missing, PlatformError, Refused, Unavailable
from danlu.node.store import open_store
from danlu.ports.objects import Editing, Multipart, ObjectStore, Sweeping, Tagging
from danlu.stores.plain import Directory
from tests.contract.hostile_keys import HOSTILE
from tests.contract.objects import content, names


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "deep" / "root"
    (made / "sub" / "文").mkdir(parents=True)
    (made / "empty").mkdir()
    for name in ("b.txt", "a b\n.txt", "sub/x", "sub/文/🔥", "sub.z", "sub-a"):
        (made / name).write_text(name)
    return made


@pytest.fixture
def store(tmp_path: Path, root: Path) -> ObjectStore:
    """A folder store with the directory twice: to read, and to write."""
    lines = f"data={root}\nscratch={root}:rw"
    made = open_store({"kind": "folder", "root": str(tmp_path / "objects"), "directories": lines})
    made.create_bucket("danlu")
    return made


KEYS = ["a b\n.txt", "b.txt", "sub-a", "sub.z", "sub/x", "sub/文/🔥"]


def test_files_are_objects_in_the_order_of_their_keys(store: ObjectStore) -> None:
    assert store.buckets() == ["danlu", "data", "scratch"]
    assert sorted(KEYS, key=str.encode) == KEYS
    assert names(store.list("data")) == KEYS
    assert [item.key for item in store.walk("data", "sub")] == KEYS[2:]
    assert names(store.list("data", "sub/")) == KEYS[4:]
    folded = store.list("data", delimiter="/")
    assert (names(folded), list(folded.prefixes)) == (KEYS[:4], ["sub/"])
    for key in KEYS:
        assert content(store, "data", key).decode() == key
        assert store.head("data", key).size == len(key.encode())
    assert store.usage("data").objects == len(KEYS)
    assert store.bucket("data").name == "data"


@pytest.mark.parametrize("delimiter", ["", "/", "a"])
@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_paging_sees_everything_once(store: ObjectStore, delimiter: str, limit: int) -> None:
    whole = store.list("data", delimiter=delimiter)
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        page = store.list("data", delimiter=delimiter, after=after, limit=limit)
        seen += sorted([*names(page), *page.prefixes], key=str.encode)
        after = page.next
    assert seen == sorted([*names(whole), *whole.prefixes], key=str.encode)


def test_what_is_written_is_a_file(store: ObjectStore, root: Path) -> None:
    data = random.Random(1).randbytes(5 << 20)
    info = store.put("scratch", "new/折/c", data)
    assert (root / "new" / "折" / "c").read_bytes() == data
    assert store.head("data", "new/折/c").etag == info.etag
    changed = store.put("scratch", "new/折/c", b"2", if_etag=info.etag)
    assert changed.etag != info.etag
    assert not set("0123456789abcdef") >= set(info.etag)
    for condition in ({"if_etag": info.etag}, {"if_absent": True}):
        with pytest.raises(Refused) as refused:
            store.put("scratch", "new/折/c", b"3", **condition)
        assert refused.value.http == 412
    assert b"".join(store.read("data", "new/折/c")) == b"2"
    store.copy("scratch", "new/折/c", "danlu", "c")
    store.copy("danlu", "c", "scratch", "d")
    assert (root / "d").read_bytes() == b"2"
    store.delete("scratch", ["d", "new/折/c", "never there", ".."])
    assert not (root / "d").exists()
    assert names(store.list("scratch")) == KEYS


def test_a_failed_put_leaves_the_old_file_and_nothing_beside_it(
    store: ObjectStore, root: Path
) -> None:
    class Fails:
        def read(self, _size: int = -1, /) -> bytes:
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        store.put("scratch", "b.txt", Fails())  # type: ignore[arg-type]  # `read` is all that is used
    assert (root / "b.txt").read_text() == "b.txt"
    assert not list(root.rglob(".danlu-part-*"))


def test_one_that_is_to_be_read_is_not_changed(store: ObjectStore, root: Path) -> None:
    for change in (
        lambda: store.put("data", "new", b"x"),
        lambda: store.delete("data", ["b.txt"]),
        lambda: store.copy("data", "b.txt", "data", "c.txt"),
        lambda: store.describe("data", "b.txt", metadata={"a": "b"}),
    ):
        with pytest.raises(Refused) as refused:
            change()
        assert refused.value.key == "bucket-read-only"
        assert str(root) in refused.value.message()
    for name in ("data", "scratch"):
        with pytest.raises(Refused):
            store.delete_bucket(name)
        assert not store.create_bucket(name)
    assert names(store.list("data")) == KEYS


def test_links_and_what_is_no_file_are_not_there(
    store: ObjectStore, root: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("canary")
    (root / "out").symlink_to(secret)
    (root / "file").symlink_to(secret / "key")
    (root / "sub" / "up").symlink_to("../../..")
    (root / "self").symlink_to(root)
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "s"))
        assert names(store.list("data")) == KEYS
        for key in ("out/key", "file", "sub/up/secret/key", "self/b.txt", "pipe", "s", "sub"):
            with pytest.raises(PlatformError):
                store.head("data", key)
            with pytest.raises(PlatformError):
                content(store, "data", key)
    for key in ("out/new", "out/key", "sub/up/new", "self/new", "b.txt/new"):
        with pytest.raises(Refused) as refused:
            store.put("scratch", key, b"x")
        assert refused.value.key == "plain-place"
    store.put("scratch", "file", b"in place of the link")
    assert (secret / "key").read_text() == "canary"
    assert [path.name for path in secret.iterdir()] == ["key"]
    assert not (root / "file").is_symlink()
    with pytest.raises(PlatformError):
        store.delete("scratch", ["out/key"])
    store.delete("scratch", ["out", "sub"])
    assert (root / "out").is_symlink()
    assert (root / "sub").is_dir()


def test_hostile_keys_stay_inside(store: ObjectStore, root: Path, tmp_path: Path) -> None:
    def outside() -> dict[Path, int]:
        return {
            path: path.lstat().st_size
            for path in tmp_path.rglob("*")
            if root not in path.parents and path.is_file() and "objects" not in path.parts
        }

    before = outside()
    stored = 0
    for number, key in enumerate(HOSTILE):
        mine = b"%d" % number
        try:
            store.put("scratch", key, mine)
        except (Invalid, Refused):
            continue
        stored += 1
        assert content(store, "scratch", key) == mine
        assert key in names(store.list("scratch", key))
        store.delete("scratch", [key])
        with pytest.raises(Missing):
            store.head("scratch", key)
    assert stored > 50
    assert outside() == before
    assert names(store.list("data")) == KEYS


def test_names_that_are_no_text_are_left_alone(store: ObjectStore, root: Path) -> None:
    with open(os.fsencode(root) + b"/bad\xff", "wb"):  # noqa: PTH123 - a name of bytes
        pass
    assert names(store.list("data")) == KEYS
    with pytest.raises(Invalid):
        store.head("data", "bad\udcff")


def test_folders_can_be_made_and_hold_nothing(store: ObjectStore, root: Path) -> None:
    assert store.put("scratch", "made/", b"").size == 0
    assert stat.S_ISDIR((root / "made").stat().st_mode)
    with pytest.raises(Invalid):
        store.put("scratch", "made/", b"x")
    store.delete("scratch", ["made/"])
    assert not (root / "made").exists()


def test_the_main_store_keeps_its_powers_and_a_directory_says_what_it_lacks(
    store: ObjectStore,
) -> None:
    assert isinstance(store, Multipart)
    assert isinstance(store, Tagging)
    assert isinstance(store, Editing)
    upload = store.create_upload("danlu", "a").id
    part = store.copy_part("danlu", "a", upload, 1, "data", "b.txt", 1, 2)
    store.complete_upload("danlu", "a", upload, [(1, part.etag)])
    assert content(store, "danlu", "a") == b".t"
    for use in (
        lambda: store.set_tags("scratch", None, {"a": "b"}),
        lambda: store.append("scratch", "a", b"x", 0),
        lambda: store.rename("scratch", "b.txt", "a"),
    ):
        with pytest.raises(Refused) as refused:
            use()
        assert refused.value.http == 501
    with pytest.raises(Refused) as refused:
        store.create_upload("data", "a")
    assert (refused.value.key, refused.value.http) == ("bucket-read-only", 403)


@pytest.mark.parametrize(
    "line",
    ["data", "data=", "data=relative", "UP=/tmp", "data=/no", "a=/tmp", "data=/etc/fstab"],
)
def test_what_registers_nothing_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(Invalid):
        open_store({"kind": "folder", "root": str(tmp_path / "o"), "directories": line})


def test_a_directory_that_goes_away_is_no_bucket(tmp_path: Path) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    store = Directory("gone", str(place), writable=True)
    place.rmdir()
    assert not store.buckets()
    with pytest.raises(Missing):
        store.list("gone")


KILLED = """
import sys
from danlu.stores.plain import Directory

class Endless:
    def read(self, size):
        print("sent", flush=True)
        return bytes(size)

Directory("scratch", sys.argv[1], writable=True).put("scratch", "sub/killed", Endless())
"""


def test_a_killed_put_is_never_visible_and_swept(store: ObjectStore, root: Path) -> None:
    """(reliability row 37)"""
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(root)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    for _ in range(20):
        assert child.stdout.readline()
    (draft,) = (root / "sub").glob(".danlu-part-*")
    os.utime(draft, (0, 0))
    assert isinstance(store, Sweeping)
    store.sweep()
    assert draft.exists()
    child.kill()
    child.wait(30)
    child.stdout.close()
    assert names(store.list("scratch")) == KEYS
    young = root / ".danlu-part-young"
    young.write_bytes(b"")
    os.utime(draft, (0, 0))
    store.sweep()
    assert not draft.exists()
    assert young.exists()


COMPLETES = """
import os, signal, sys
from danlu.stores.plain import Directory

root, upload, left, *parts = sys.argv[1:]
store = Directory("scratch", root, writable=True)
calls = int(left)

def dying(name):
    real = getattr(os, name)
    def call(*args, **named):
        global calls
        calls -= 1
        if calls < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **named)
    setattr(os, name, call)

for name in ("write", "fsync", "rename", "unlink"):
    dying(name)
wanted = [(number, etag) for number, etag in enumerate(parts, 1)]
store.complete_upload("scratch", "sub/big", upload, wanted)
"""


def test_a_killed_completion_is_whole_or_not_there_and_done_again(
    store: ObjectStore, root: Path
) -> None:
    """Killed before each of its changes to the disk. (reliability rows 36, 37)"""
    assert isinstance(store, Multipart)
    assert isinstance(store, Sweeping)
    whole = [random.Random(number).randbytes(1 << 20) for number in range(3)]
    for calls in itertools.count():
        upload = store.create_upload("scratch", "sub/big").id
        parts = [
            store.put_part("scratch", "sub/big", upload, number, data)
            for number, data in enumerate(whole, 1)
        ]
        etags = [part.etag for part in parts]
        command = [sys.executable, "-c", COMPLETES, str(root), upload, str(calls), *etags]
        code = subprocess.run(command, timeout=60, check=False).returncode
        assert code in (0, -9)
        assert set(names(store.list("scratch"))) - {"sub/big"} == set(KEYS)
        if (root / "sub" / "big").exists():
            assert content(store, "scratch", "sub/big") == b"".join(whole)
        store.complete_upload("scratch", "sub/big", upload, list(enumerate(etags, 1)))
        assert content(store, "scratch", "sub/big") == b"".join(whole)
        for path in root.rglob(".danlu-part-*"):
            os.utime(path, (0, 0))
        for path in (root / ".danlu-part-uploads").iterdir():
            assert not [one for one in path.iterdir() if one.name[0].isdigit()]
            os.utime(path, (0, 0))
        store.sweep()
        assert not list(root.rglob(".danlu-part-*"))
        store.delete("scratch", ["sub/big"])
        if code == 0:
            break
    assert calls > 8


def test_parts_nobody_completes_are_swept_and_not_seen(store: ObjectStore, root: Path) -> None:
    """(reliability row 37)"""
    assert isinstance(store, Multipart)
    assert isinstance(store, Sweeping)
    old, young = (store.create_upload("scratch", key).id for key in ("old", "young"))
    for key, upload in (("old", old), ("young", young)):
        store.put_part("scratch", key, upload, 1, b"x")
    assert names(store.list("scratch")) == KEYS
    hidden = f".danlu-part-uploads/{old}/upload"
    for use in (store.head, store.read):
        with pytest.raises(Invalid):
            use("scratch", hidden)
    os.utime(root / ".danlu-part-uploads" / old, (0, 0))
    store.sweep()
    assert [upload.key for upload in store.uploads("scratch").uploads] == ["young"]
    assert not (root / ".danlu-part-uploads" / old).exists()
    store.abort_upload("scratch", "young", young)
    assert not (root / ".danlu-part-uploads").exists()


def test_a_link_in_place_of_the_parts_leads_nowhere(
    store: ObjectStore, root: Path, tmp_path: Path
) -> None:
    assert isinstance(store, Multipart)
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / ".danlu-part-uploads").symlink_to(outside)
    with pytest.raises(Refused) as refused:
        store.create_upload("scratch", "a")
    assert refused.value.key == "plain-place"
    assert not list(outside.iterdir())
    assert not store.uploads("scratch").uploads


def test_a_file_that_changes_while_it_is_read_is_told(store: ObjectStore, root: Path) -> None:
    place = root / "b.txt"
    for change in (bytes(3 << 20), b"cut"):
        place.write_bytes(random.Random(1).randbytes(3 << 20))
        reading = store.read("data", "b.txt")
        next(reading)
        with place.open("r+b") as file:
            file.write(change)
            file.truncate(len(change))
        with pytest.raises(Unavailable) as changed:
            list(reading)
        assert changed.value.key == "object-changed"


@pytest.mark.parametrize("number", [errno.ESTALE, errno.ETIMEDOUT])
def test_a_mount_that_is_away_is_worth_another_try(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """(reliability row 39)"""

    def fails(*_: object, **__: object) -> bytes:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as away:
        away.setattr(os, "pread", fails)
        with pytest.raises(Unavailable) as error:
            content(store, "data", "b.txt")
    assert error.value.retry
    with monkeypatch.context() as away:
        away.setattr(os, "open", fails)
        for use in (store.head, store.read):
            with pytest.raises(Unavailable):
                use("data", "b.txt")
    assert content(store, "data", "b.txt") == b"b.txt"
