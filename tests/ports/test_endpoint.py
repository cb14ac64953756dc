"""The way to a task's sockets: however long it is, and never along a link."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.ports import endpoint


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A directory whose path is longer than that of a unix socket may be."""
    made = tmp_path / ("d" * 90) / ("e" * 90)
    made.mkdir(parents=True)
    return made


@pytest.fixture
def listening(deep: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    monkeypatch.chdir(deep)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("lab.sock")
        made.listen(1)
        yield made


def test_a_path_of_any_length(listening: socket.socket, deep: Path) -> None:
    with endpoint.connect(deep / "lab.sock", 5) as made:
        taken, _ = listening.accept()
        with taken:
            made.sendall(b"hello")
            assert taken.recv(5) == b"hello"


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_descriptor_is_left(listening: socket.socket, deep: Path) -> None:
    before = open_files()
    for _ in range(3):
        endpoint.connect(deep / "lab.sock", 5).close()
        listening.accept()[0].close()
    with pytest.raises(FileNotFoundError):
        endpoint.connect(deep / "other.sock", 5)
    assert open_files() == before


def test_a_link_to_another_socket_is_not_followed(listening: socket.socket, deep: Path) -> None:
    """Whoever may write there could otherwise have the server talk to the container runtime."""
    (deep / "trap.sock").symlink_to(deep / "lab.sock")
    with pytest.raises(FileNotFoundError, match="not a socket"):
        endpoint.connect(deep / "trap.sock", 5)


def test_a_full_queue_is_waited_for_within_bounds(listening: socket.socket, deep: Path) -> None:
    with contextlib.ExitStack() as held:

        def fill() -> None:
            for _ in range(100):
                held.enter_context(endpoint.connect(deep / "lab.sock", 0.05))

        with pytest.raises(TimeoutError):
            fill()


def test_a_file_is_no_socket(deep: Path) -> None:
    (deep / "lab.sock").write_text("")
    with pytest.raises(FileNotFoundError, match="not a socket"):
        endpoint.connect(deep / "lab.sock", 5)


def test_nobody_listens(deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(deep)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("lab.sock")
    with pytest.raises(ConnectionRefusedError):
        endpoint.connect(deep / "lab.sock", 5)
