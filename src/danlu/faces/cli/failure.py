"""What ends a command early, with the exit status that says why."""

from __future__ import annotations

from collections.abc import Mapping

from danlu.faces.cli.texts import printable, text

OK = 0
FAILED = 1
USAGE = 2
DENIED = 3
MISSING = 4
REFUSED = 5
FAULT = 70
RETRY = 75
TIMED_OUT = 124
INTERRUPTED = 130
PIPE_CLOSED = 141

EXITS: Mapping[int, int] = {
    400: USAGE, 401: DENIED, 403: DENIED, 404: MISSING, 405: USAGE, 409: REFUSED, 412: REFUSED,
    413: USAGE, 422: USAGE, 429: REFUSED, 502: FAULT, 503: RETRY, 504: RETRY, 507: REFUSED,
}  # fmt: skip
"""The exit status for an HTTP status; as on the classes of `model/errors.py`."""


class Failure(Exception):
    """Something that the person at the terminal has to know. `key` names the text."""

    def __init__(self, exit_status: int, key: str, /, **params: object) -> None:
        super().__init__(key)
        self.exit_status = exit_status
        self.key = key
        self.params = params

    def message(self, language: str) -> str:
        """What was wrong, where, and what to do next."""
        return text(self.key, language, **self.params)

    def record(self, language: str) -> dict[str, object]:
        """The failure for programs (`--json`)."""
        return {
            "error_code": "DANLU.CLI",
            "error_msg": self.message(language),
            "key": self.key,
            "exit": self.exit_status,
        }

    def __str__(self) -> str:
        return self.message("en")


class Answered(Failure):
    """The server said no. Its sentence is already in the language that was asked for."""

    def __init__(self, status: int, answer: Mapping[str, object], request_id: str) -> None:
        super().__init__(EXITS.get(status, FAULT), str(answer.get("key", "")))
        self.status = status
        self.answer = answer
        self.request_id = request_id

    def message(self, language: str) -> str:
        """The server's sentence, and the request by which its log knows it."""
        said = printable(str(self.answer.get("error_msg") or "")[:4000])
        if not self.request_id:
            return said
        return f"{said} ({text('request', language, id=self.request_id)})"

    def record(self, language: str) -> dict[str, object]:
        """The server's own answer, and the exit status."""
        _ = language
        return {
            "error_code": self.answer.get("error_code", ""),
            "error_msg": self.answer.get("error_msg", ""),
            "key": self.key,
            "request_id": self.request_id,
            "exit": self.exit_status,
        }
