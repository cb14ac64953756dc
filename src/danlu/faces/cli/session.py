"""What every command is given: the common options, the streams, and the way to the server."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from danlu.faces.cli.client import Client
from danlu.faces.cli.failure import USAGE, Failure
from danlu.faces.cli.terminal import Terminal
from danlu.faces.cli.texts import text

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

    from danlu.model.texts import Language


class Session:
    """One run of one command."""

    def __init__(
        self,
        terminal: Terminal,
        language: Language,
        *,
        data: str,
        data_source: str = "flag",
        server: str = "",
        as_json: bool = False,
        quiet: bool = False,
        debug: bool = False,
    ) -> None:
        self.terminal = terminal
        self.language = language
        self.data = data
        self.data_source = data_source
        """Who named the data directory: flag, environment, or nobody (default)."""
        self.server = server
        self.json = as_json
        self.quiet = quiet
        self.debug = debug
        self._client: Client | None = None

    def text(self, key: str, /, **params: object) -> str:
        """A sentence in the session's language."""
        return text(key, self.language, **params)

    def put(self, line: str) -> None:
        """A line of data for stdout."""
        self.terminal.put(line)

    def put_json(self, value: object) -> None:
        """A value as one line of JSON."""
        self.terminal.put(dump(value))

    def say(self, key: str, /, **params: object) -> None:
        """A sentence for stderr, unless --quiet."""
        if not self.quiet:
            self.terminal.say(f"danlu: {self.text(key, **params)}")

    def trace(self, line: str) -> None:
        """A detail for stderr with --debug."""
        if self.debug:
            self.terminal.say(f"danlu: debug: {line}")

    def client(self) -> Client:
        """The server that this command talks to; a local one is started where it is down."""
        if self._client is None:
            from danlu.faces.cli.servers import connect

            self._client = connect(
                self.data,
                self.server,
                self.language,
                say=self.say,
                trace=self.trace if self.debug else None,
            )
        return self._client

    def get(self, *path: str, query: Mapping[str, object] | None = None) -> Any:
        """A JSON answer of the server."""
        return self.client().get(*path, query=query)


def dump(value: object) -> str:
    """JSON in one line: readable where it can be printed safely, escaped where not."""
    plain = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    return plain if plain.isprintable() else json.dumps(value, separators=(", ", ": "))


def data_directory(wanted: str | None, environ: Mapping[str, str]) -> str:
    """The absolute path of the data directory: the flag, DANLU_DATA, or the XDG data home."""
    given = wanted or environ.get("DANLU_DATA")
    if given:
        return os.path.abspath(given)
    home = environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(home, "danlu")


def utf8(word: str, what: str) -> str:
    """A word of the command line as the text it spells in UTF-8, whatever the locale.

    Failure for bytes that are no UTF-8: neither JSON nor ModelArts could carry them.
    """
    try:
        if word.isascii():
            return word
        return os.fsencode(word).decode()
    except UnicodeError:
        raise Failure(USAGE, "not-utf8", what=what, value=word) from None
