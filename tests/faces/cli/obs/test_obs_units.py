"""The parts of `danlu obs` that need no store."""

from __future__ import annotations

import os
import socket
import threading
import time
from functools import partial
from hashlib import md5 as plain_md5
from pathlib import Path
from typing import Self

import pytest

from danlu.faces.cli.failure import Failure
from danlu.faces.cli.http import Connection
from danlu.faces.cli.obs import journal, xml
from danlu.faces.cli.obs.compare import changed, same_content, unsure
from danlu.faces.cli.obs.limiter import Limiter
from danlu.faces.cli.obs.moving import Moving
from danlu.faces.cli.obs.objects import Objects, Refusal
from danlu.faces.cli.obs.place import Local, Remote, local_name, pair, remote
from danlu.faces.cli.obs.signer import Signer
from danlu.faces.cli.obs.sizes import rate
from danlu.faces.cli.obs.tree import Item, Wanted, files
from danlu.faces.cli.session import Session
from danlu.faces.cli.terminal import Terminal
from danlu.model.xml_text import fits_xml
from tests.faces.cli.test_terminal import Stream

md5 = partial(plain_md5, usedforsecurity=False)


def test_a_signed_url_is_the_one_of_amazons_documentation() -> None:
    """docs.aws.amazon.com, "Authenticating Requests: Using Query Parameters"."""
    signer = Signer("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    at = 1369353600.0  # 2013-05-24 00:00:00 UTC
    query = signer.presigned("GET", "examplebucket.s3.amazonaws.com", "/test.txt", 86400, at)
    assert query.endswith(
        "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    )


@pytest.mark.parametrize(
    ("word", "bucket", "key"),
    [
        ("obs://b/k/x", "b", "k/x"),
        ("s3://b", "b", ""),
        ("/b/k/", "b", "k/"),
        ("b/k", "b", "k"),
        ("obs://b/a/../c", "b", "a/../c"),
        ("obs://", "", ""),
    ],
)
def test_ways_to_name_an_object(word: str, bucket: str, key: str) -> None:
    found = remote(word)
    assert (found.bucket, found.key) == (bucket, key)


@pytest.mark.parametrize("word", ["http://b/k", "obs:///k", "obs://b/" + "k" * 1025, "b\udcff/k"])
def test_what_names_no_object(word: str) -> None:
    with pytest.raises(Failure):
        remote(word)


def test_modelarts_form_of_a_path_is_told_from_a_path(tmp_path: Path) -> None:
    source, dest = pair(("/bucket/key", str(tmp_path)))
    assert isinstance(source, Remote)
    assert isinstance(dest, Local)
    source, dest = pair((str(tmp_path), "/bucket/key"))
    assert isinstance(source, Local)
    assert isinstance(dest, Remote)
    assert isinstance(pair((str(tmp_path), "obs://b/k"))[0], Local)
    with pytest.raises(Failure):
        pair((str(tmp_path), str(tmp_path / "new")))


def hostile() -> list[str]:
    """Names that lead out, or cannot be names of files."""
    parts = ["..", ".", "", "\0", "x" * 256, "饭" * 86]
    forms = ("{}", "{}/a", "a/{}", "a/{}/b", "a/b/{}/c/d", "../{}", "{}/..", "/{}")
    found = [form.format(part) for part in parts for form in forms]
    found += [f"{'../' * n}etc/passwd" for n in range(1, 60)]
    found += [f"a/{'../' * n}etc/passwd" for n in range(1, 60)]
    found += [f"{'a/' * n}../{'../' * n}x" for n in range(1, 40)]
    return [*found, "/etc/passwd", "//x", "a//b", "a/b/", "/", ".danlu-0123456789abcdef.part"]


def test_no_key_leads_out_of_a_directory(tmp_path: Path) -> None:
    names = hostile()
    assert len(set(names)) >= 200
    for name in names:
        assert local_name(name) is None, name
    for name in ("a", "a b/c", "...", "..a", "a\nb", "\\..\\x", "é", "~", "-rf", "C:x"):
        assert local_name(name) == name
        assert os.path.normpath(tmp_path / name) == str(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "count"),
    [("1", 1), ("500K", 500 << 10), ("10M", 10 << 20), ("1.5GiB", 3 << 29), ("2mb/s", 2 << 20)],
)
def test_rates(text: str, count: int) -> None:
    assert rate(text) == count


@pytest.mark.parametrize("text", ["", "M", "-1", "0", "1X", "1e9", "1.2.3", "٣"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(Failure):
        rate(text)


@pytest.mark.parametrize(
    ("include", "exclude", "taken"),
    [
        ((), (), ["a.py", "d/a.py", "d/b.txt"]),
        (("*.py",), (), ["a.py", "d/a.py"]),
        (("d/*",), (), ["d/a.py", "d/b.txt"]),
        ((), ("*.txt", "/a.py"), ["d/a.py"]),
    ],
)
def test_patterns(include: tuple[str, ...], exclude: tuple[str, ...], taken: list[str]) -> None:
    wanted = Wanted(include, exclude)
    assert [name for name in ("a.py", "d/a.py", "d/b.txt") if wanted(name)] == taken


def test_links_are_followed_only_if_asked_and_never_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_text("1")
    (tmp_path / "d/up").symlink_to(tmp_path)
    (tmp_path / "to").symlink_to("d/f")
    (tmp_path / "nowhere").symlink_to("gone")
    os.mkfifo(tmp_path / "fifo")
    skipped: dict[str, str] = {}

    def names(*, follow: bool) -> list[str]:
        skipped.clear()
        found = files(str(tmp_path), Wanted(), skipped.__setitem__, follow=follow)
        return [item.name for item in found]

    assert names(follow=False) == ["d/f"]
    assert skipped.pop("fifo") == "obs-skip-special"
    assert set(skipped.values()) == {"obs-skip-link"}
    assert names(follow=True) == ["d/f", "to"]
    assert skipped["d/up"] == "obs-skip-circle"
    assert skipped["nowhere"] == "obs-skip-unreadable"


def test_what_counts_as_changed() -> None:
    there = Item("x", 5, 100.0, "abc")
    assert changed(Item("x", 5, 99.0), None)
    assert changed(Item("x", 6, 99.0), there)
    assert changed(Item("x", 5, 101.0), there)
    assert not changed(Item("x", 5, 101.0, "abc"), there)
    assert not changed(Item("x", 5, 100.0), there)
    # A store that says only the second leaves open what happened within it.
    assert not changed(Item("x", 5, 100.7), there)
    assert unsure(Item("x", 5, 100.7), there)
    assert not unsure(Item("x", 5, 100.0), there)
    assert changed(Item("x", 5, 100.7), Item("x", 5, 100.5))


def test_contents_are_compared_with_etags_of_parts(tmp_path: Path) -> None:
    data = os.urandom(11 << 20)
    file = tmp_path / "f"
    file.write_bytes(data)
    parts = [md5(data[at : at + (5 << 20)]).digest() for at in range(0, len(data), 5 << 20)]
    etag = f"{md5(b''.join(parts)).hexdigest()}-{len(parts)}"
    with file.open("rb") as opened:
        number = opened.fileno()
        assert same_content(number, len(data), md5(data).hexdigest())
        assert same_content(number, len(data), etag)
        assert same_content(number, len(data), f"{'0' * 32}-{len(parts)}") is False
        assert same_content(number, len(data), "not-an-md5") is None


def test_a_page_whose_plus_is_sometimes_a_space() -> None:
    page = xml.Page([xml.Entry(key, 1, "", 0) for key in ("a+b", "a+b", "c%20d", "e%2Bf")], [], "")
    xml.decode(page, ["a b", "a+b", "c d", "e+f"])
    assert [entry.key for entry in page.entries] == ["a b", "a+b", "c d", "e+f"]


def test_keys_survive_their_way_through_xml() -> None:
    for key in ("a<b>&c", "new\nline", "tab\t", "中文", "😀", "\x01"):
        if fits_xml(key):
            body = xml.element("Delete", [xml.text("Key", key)])
            assert xml.fields(xml.parse(body))["Key"] == key
        else:
            assert key == "\x01"


def test_a_journal_is_for_one_and_survives_its_writer(tmp_path: Path) -> None:
    path = str(tmp_path / "j")
    first = journal.Journal(path)
    first.note({"a": 1})
    assert not journal.Journal(path).ours
    first.close()
    second = journal.Journal(path)
    assert (second.ours, second.said) == (True, {"a": 1})
    second.done()
    assert not os.path.lexists(path)


def test_a_limit_holds_for_all_threads_together() -> None:
    limiter = Limiter(1 << 20)
    began = time.monotonic()

    def take() -> None:
        for _ in range(2):
            limiter.take(64 << 10)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Half a mebibyte; what was taken last is not waited for.
    assert time.monotonic() - began >= 0.43


class Scripted:
    """A server that gives one answer after the other, whatever it is asked."""

    def __init__(self, *answers: bytes) -> None:
        self.asked: list[bytes] = []
        self.slept: list[float] = []
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.objects = Objects(
            lambda: Connection("127.0.0.1", port),
            Signer("a", "s"),
            url="http://x",
            sleep=self.slept.append,
        )
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._thread.join()
        self._listener.close()
        self.objects.close()

    def _serve(self) -> None:
        for answer in self._answers:
            connection, _ = self._listener.accept()
            with connection:
                self.asked.append(connection.recv(65536))
                connection.sendall(answer)


def said(status: str, body: bytes = b"", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


SLOW = said("503 Slow Down", b"<Error><Code>SlowDown</Code><Message>wait</Message></Error>")


def test_a_store_in_trouble_is_asked_again_with_growing_waits() -> None:
    """(fault 34) (fault 35) (fault 36) Refused, cut off in the middle, the answer lost."""
    answers = (SLOW, SLOW, said("200 OK", b"12", 5), b"", said("200 OK", b"12345"))
    with Scripted(*answers) as server:
        assert server.objects.call("GET", "b", "k").data == b"12345"
    assert len(server.asked) == 5
    assert len(server.slept) == 4
    assert all(0.5 * 0.2 * 2**n <= wait <= 0.2 * 2**n for n, wait in enumerate(server.slept))


def test_what_is_refused_for_good_is_not_asked_again() -> None:
    body = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
    denied = pytest.raises(Refusal, match="AccessDenied: no")
    with Scripted(said("403 Forbidden", body)) as server, denied:
        server.objects.call("GET", "b", "k")
    assert not server.slept


def test_a_store_that_is_not_there_is_told_of_at_once() -> None:
    slept: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    objects = Objects(lambda: Connection("127.0.0.1", port), Signer("a", "s"), sleep=slept.append)
    with pytest.raises(Failure, match="refused"):
        objects.call("GET", "b", "k")
    assert not slept


def test_a_fault_of_ours_is_no_success() -> None:
    session = Session(Terminal(Stream(), Stream(), environ={}), "en", data="")
    moving = Moving(session, "obs-copying", 3)

    def work(number: int) -> None:
        if number == 5:
            raise ValueError(number)

    with pytest.raises(ValueError, match="5"):
        moving.each(range(1000), work, str)
