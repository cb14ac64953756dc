"""Code archives from strangers: what is taken, and what is refused."""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from danlu.flow.code import store_archive, stored
from danlu.model import tar
from danlu.model.errors import Invalid, Missing, Refused, Unavailable
from danlu.ports.objects import ObjectInfo
from danlu.stores.folder import FolderStore
from tests.flow.archives import (
    BUCKET,
    Files,
    archive,
    found,
    info,
    member,
    opened,
    special,
    take,
)
from tests.services import require

SOME: Files = {
    "train.py": (b"print('hello')\n", False),
    "run.sh": (b"#!/bin/sh\n", True),
    ".env": (b"A=1\n", False),
    "lib/__init__.py": (b"", False),
    "data/big.bin": (random.Random(1).randbytes(3 << 20), False),
    "odd/-rf 丹炉\n🔥": (b"x", False),
    "long/" + "n" * 200: (b"y", True),
}


@pytest.fixture
def objects(tmp_path: Path) -> Iterator[FolderStore]:
    with opened(tmp_path) as store:
        yield store


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_every_form_of_archive_gives_the_same_code(
    objects: FolderStore, form: int, pack: Callable[[bytes], bytes]
) -> None:
    taken = take(objects, pack(archive(SOME, form)))
    assert found(objects, taken) == SOME
    assert str(taken.url) == f"obs://{BUCKET}/code/{taken.digest}/code/"
    assert taken.files == len(SOME)
    assert taken.size == sum(len(content) for content, _ in SOME.values())
    again = take(objects, archive(dict(reversed(SOME.items())), tarfile.PAX_FORMAT))
    assert again == taken


def test_what_the_system_tar_sends_is_taken(objects: FolderStore, tmp_path: Path) -> None:
    require(Path("/bin/tar").exists(), "tar: apt-get install tar")
    tree = tmp_path / "tree"
    (tree / "sub" / "empty").mkdir(parents=True)
    (tree / "train.py").write_bytes(b"train")
    (tree / "sub" / ("n" * 150)).write_bytes(b"long")
    (tree / "sub" / "hard").hardlink_to(tree / "train.py")
    (tree / "soft").symlink_to("sub/hard")
    for form in ("gnu", "pax"):
        argv = ["/bin/tar", f"--format={form}", "-C", str(tree), "-czf", "-", "."]
        taken = take(objects, subprocess.run(argv, capture_output=True, check=True).stdout)
        assert found(objects, taken) == {
            "train.py": (b"train", False),
            f"sub/{'n' * 150}": (b"long", False),
            "sub/hard": (b"train", False),
            "soft": (b"train", False),
        }


def test_several_gzip_members_and_padding(objects: FolderStore) -> None:
    data = archive(SOME)
    parts = [data[at : at + 1_000_001] for at in range(0, len(data), 1_000_001)]
    packed = b"".join(gzip.compress(part) for part in parts) + bytes(1000)
    assert found(objects, take(objects, packed)) == SOME


def test_links_become_copies_of_their_files(objects: FolderStore) -> None:
    data = special(
        info("first", tarfile.SYMTYPE, "a/second"),  # before its target, and over another link
        info("a/second", tarfile.SYMTYPE, "../b/./file"),
        end=member("b/file", b"content", executable=True)
        + special(info("hard", tarfile.LNKTYPE, "./b/file")),
    )
    files = found(objects, take(objects, data))
    assert files == dict.fromkeys(["first", "a/second", "hard", "b/file"], (b"content", True))


@pytest.mark.parametrize(
    ("link", "kind"),
    [
        ("/etc/passwd", tarfile.SYMTYPE),
        ("../outside", tarfile.SYMTYPE),
        ("nothing", tarfile.SYMTYPE),
        ("link", tarfile.SYMTYPE),  # to itself
        ("dir", tarfile.SYMTYPE),
        ("\udcff", tarfile.SYMTYPE),
        ("nothing", tarfile.LNKTYPE),
        ("/etc/passwd", tarfile.LNKTYPE),
    ],
)
def test_a_link_to_anything_else_is_refused(objects: FolderStore, link: str, kind: bytes) -> None:
    data = special(info("dir", tarfile.DIRTYPE), info("dir/f"), info("link", kind, link))
    with pytest.raises(Invalid) as refused:
        take(objects, data)
    assert refused.value.key == "code-link"
    assert "'link'" in refused.value.message()
    assert not list(objects.walk(BUCKET))


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/etc/passwd", "code-path-outside"),
        ("../a", "code-path-outside"),
        ("a/../../b", "code-path-outside"),
        ("..", "code-path-outside"),
        ("", "code-path-outside"),
        ("nul\0name", "code-path-outside"),
        ("bad\udcff", "code-path-encoding"),
        ("n" * 300, "code-path-long"),
        ("d/" * 40 + "f", "code-path-deep"),
        ("d/" * 500 + "f", "code-path-long"),
    ],
)
def test_a_bad_path_is_refused(objects: FolderStore, path: str, key: str) -> None:
    record = tar._record(b"path", path.encode("utf-8", "surrogateescape"))
    header = info("x", b"x", size=len(record))
    data = header.tobuf(tarfile.USTAR_FORMAT) + tar.padded(record) + special(info("x"))
    with pytest.raises(Invalid) as refused:
        take(objects, data)
    assert refused.value.key == key
    assert not list(objects.walk(BUCKET))


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (tarfile.CHRTYPE, "character device"),
        (tarfile.BLKTYPE, "block device"),
        (tarfile.FIFOTYPE, "named pipe"),
        (tarfile.GNUTYPE_SPARSE, "sparse"),
        (b"Z", "not known"),
    ],
)
def test_special_files_are_refused_by_name(objects: FolderStore, kind: bytes, word: str) -> None:
    with pytest.raises(Invalid) as refused:
        take(objects, special(info("dev/it", kind)))
    assert refused.value.key == "code-special"
    assert "dev/it" in refused.value.message()
    assert word in refused.value.message()


def test_pax_sparse_files_are_refused(objects: FolderStore) -> None:
    made = info("a")
    made.pax_headers = {"GNU.sparse.major": "1"}
    with pytest.raises(Invalid) as refused:
        take(objects, special(made))
    assert refused.value.key == "code-special"


@pytest.mark.parametrize(
    "paths", [("a", "a"), ("a", "./a"), ("a/b", "a//b"), ("a", "a/b"), ("a/b/c", "a")]
)
def test_a_path_used_twice_is_refused(objects: FolderStore, paths: tuple[str, str]) -> None:
    with pytest.raises(Invalid) as refused:
        take(objects, special(*(info(path) for path in paths)))
    assert refused.value.key in {"code-path-twice", "code-path-both"}


BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "text": b"hello" * 200,
    "no end mark": archive(SOME)[:1024],
    "cut content": archive(SOME)[: -(1 << 20)],
    "cut gzip": gzip.compress(archive(SOME))[:-20],
    "cut gzip trailer": gzip.compress(archive(SOME))[:-4],
    "damaged gzip": gzip.compress(archive(SOME))[:-4] + b"\1\2\3\4",
    "gzip of nothing": gzip.compress(b""),
    "data behind the end": archive(SOME) + b"x",
    "endless zeros": archive(SOME) + bytes(3 << 20),
    "xz": b"\xfd7zXZ\0" + bytes(600),
    "zip": b"PK\3\4" + bytes(600),
    "no file": special(info("dir", tarfile.DIRTYPE)),
    "directory with content": special(info("dir", tarfile.DIRTYPE, size=512)),
    "header of 4 GiB": info("h", b"x", size=1 << 32).tobuf(tarfile.USTAR_FORMAT),
    "long name of 4 GiB": info("l", b"L", size=1 << 32).tobuf(tarfile.USTAR_FORMAT),
    "global path": (
        info("g", b"g", size=10).tobuf(tarfile.USTAR_FORMAT)
        + tar.padded(b"10 path=a\n")
        + special(info("x"))
    ),
    "size that is no number": (
        info("x", b"x", size=11).tobuf(tarfile.USTAR_FORMAT)
        + tar.padded(b"11 size=-9\n")
        + special(info("x"))
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_archive_is_refused_and_leaves_nothing(objects: FolderStore, what: str) -> None:
    with pytest.raises(Invalid) as refused:
        take(objects, BROKEN[what])
    assert refused.value.key == "code-archive"
    assert refused.value.message().encode()
    assert not list(objects.walk(BUCKET))


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_change_of_an_archive_is_taken_whole_or_refused(
    objects: FolderStore, data: st.DataObject
) -> None:
    whole = bytearray(archive({"a": (b"x" * 600, False), "b/" + "n" * 120: (b"y", True)}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    whole = whole[: data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))))]
    packed = gzip.compress(whole) if data.draw(st.booleans()) else bytes(whole)
    try:
        taken = take(objects, packed)
    except Invalid:
        return
    assert len(found(objects, taken)) == taken.files


# ---------------------------------------------------------------------- complete or not


def test_complete_code_is_not_written_again(objects: FolderStore) -> None:
    taken = take(objects, archive(SOME))
    before = {item.key: item.modified_at for item in objects.walk(BUCKET)}
    assert take(objects, gzip.compress(archive(SOME))) == taken
    assert {item.key: item.modified_at for item in objects.walk(BUCKET)} == before
    assert stored(objects, BUCKET, taken.digest, "code") == taken.url


def test_the_same_content_under_another_name(objects: FolderStore) -> None:
    first = take(objects, archive(SOME))
    assert stored(objects, BUCKET, first.digest, "other") is None
    second = store_archive(objects, BUCKET, io.BytesIO(archive(SOME)), "other")
    assert second.digest == first.digest
    assert second.url.name == "other"
    assert found(objects, second) == SOME


def test_what_is_not_stored_is_not_found(objects: FolderStore) -> None:
    assert stored(objects, BUCKET, "0" * 64, "code") is None
    assert stored(objects, BUCKET, "../../x", "code") is None
    with pytest.raises(Invalid):
        stored(objects, BUCKET, "0" * 64, "../code")


def test_code_of_which_a_part_was_deleted_is_stored_again(objects: FolderStore) -> None:
    taken = take(objects, archive(SOME))
    objects.delete(BUCKET, [f"{taken.url.key}train.py"])
    assert stored(objects, BUCKET, taken.digest, "code") is None
    assert take(objects, archive(SOME)) == taken
    assert found(objects, taken) == SOME


class Breaks(FolderStore):
    """A store that fails after some puts, as a crash of the server would leave it."""

    left = 3

    def put(
        self,
        bucket: str,
        key: str,
        source: bytes | BinaryIO,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        if_absent: bool = False,
        if_etag: str | None = None,
    ) -> ObjectInfo:
        self.left -= 1
        if self.left < 0:
            raise Refused("disk-full", http=507, path="/", detail="No space left on device")
        return super().put(
            bucket, key, source, metadata=metadata, if_absent=if_absent, if_etag=if_etag
        )


def test_the_mark_comes_last(objects: FolderStore, tmp_path: Path) -> None:
    with pytest.raises(Refused) as full:
        take(Breaks(tmp_path / "objects"), archive(SOME))
    assert full.value.http == 507
    keys = [item.key for item in objects.walk(BUCKET)]
    assert len(keys) == 3
    assert not [key for key in keys if "/.complete/" in key]
    digest = keys[0].split("/")[1]
    assert stored(objects, BUCKET, digest, "code") is None
    assert found(objects, take(objects, archive(SOME))) == SOME


def test_an_unknown_bucket_is_missing(objects: FolderStore) -> None:
    with pytest.raises(Missing):
        store_archive(objects, "no-such-bucket", io.BytesIO(archive(SOME)), "code")


def test_a_connection_that_breaks_is_not_a_full_disk(objects: FolderStore) -> None:
    class Breaking(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 1000:
                raise ConnectionResetError("the client went away")
            return super().read(min(size or 512, 512))

    with pytest.raises(ConnectionResetError):
        store_archive(objects, BUCKET, Breaking(archive(SOME)), "code")
    assert not list(objects.walk(BUCKET))


def test_a_machine_without_threads_is_busy(
    objects: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(Unavailable):
        take(objects, archive(SOME))
    with pytest.raises(Unavailable):
        objects.put(BUCKET, "large", io.BytesIO(bytes(6 << 20)))


def test_nothing_is_left_in_the_temporary_directory(
    objects: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    take(objects, archive({"big": (os.urandom(6 << 20), False)}))
    with pytest.raises(Invalid):
        take(objects, archive({"big": (os.urandom(6 << 20), False)})[:-20000])
    assert not list(place.iterdir())
