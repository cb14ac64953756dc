"""The recorder that jobs report to: what happened, in the one order in which it was heard."""

from __future__ import annotations

import json
import selectors
import socket
import threading
from collections.abc import Callable
from typing import Any

from tests.faults.history import Word


class Witness:
    """Listens on loopback until closed. The end of a program is heard from the kernel: its
    connection closes.
    """

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.lock = threading.Lock()
        self.on_word: Callable[[Word], None] = lambda _word: None
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = int(self._listener.getsockname()[1])
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._closing = False
        self._said: dict[socket.socket, tuple[bytes, dict[str, Any] | None]] = {}
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._thread.join()
        for connection in (*self._said, self._listener):
            connection.close()

    def living(self) -> set[str]:
        """Runs that have started and are not gone."""
        with self.lock:
            begun = {word.run for word in self.words if word.kind == "start"}
            return begun - {word.run for word in self.words if word.kind == "gone"}

    def _run(self) -> None:
        while not self._closing:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    connection, _ = self._listener.accept()
                    self._said[connection] = (b"", None)
                    self._selector.register(connection, selectors.EVENT_READ)
                elif isinstance(key.fileobj, socket.socket):
                    self._hear(key.fileobj)

    def _hear(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(65536)
        except OSError:
            data = b""
        rest, who = self._said[connection]
        if not data:
            self._selector.unregister(connection)
            del self._said[connection]
            connection.close()
            if who is not None:
                self._note({**who, "kind": "gone"})
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            who = {name: said[name] for name in ("label", "job", "attempt", "task", "run")}
            self._note(said)
            try:
                connection.sendall(b"ok\n")
            except OSError:
                break  # killed while it waited; its end is heard next
        self._said[connection] = (rest, who)

    def _note(self, said: dict[str, Any]) -> None:
        with self.lock:
            word = Word(at=len(self.words), **said)
            self.words.append(word)
        self.on_word(word)
