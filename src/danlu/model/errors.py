"""Errors are for callers; how a job ended is a Reason, not an exception.

PlatformError
 ├─ Invalid       400 · exit 2    the request cannot be understood or breaks a rule
 ├─ Denied        401 · exit 3    who you are is not known (403 when known but not allowed)
 ├─ Missing       404 · exit 4    there is no such thing here
 ├─ Refused       409 · exit 5    understood and allowed, but not now or not here
 ├─ EngineError   502 · exit 70   where tasks run did not do as asked
 └─ Unavailable   503 · exit 75   try again

Every error names a text in `danlu.model.texts` by its key and carries the values that the
text needs, so that one error reads well in English and in Chinese. Keys are never translated.
"""

from __future__ import annotations

from danlu.model.texts import Language, text


class PlatformError(Exception):
    """Something a caller has to know. `key` names the text, `params` fill it."""

    code = "PLATFORM"
    http = 500
    exit = 70
    retry = False

    def __init__(self, key: str, /, *, http: int | None = None, **params: object) -> None:
        super().__init__(key)
        self.key = key
        self.params = params
        if http is not None:
            self.http = http

    def message(self, language: Language = "en") -> str:
        """The sentence for a person: what was wrong, where, and what to do next."""
        return text(self.key, language, **self.params)

    def __str__(self) -> str:
        return self.message()


class Invalid(PlatformError):
    """The request cannot be understood or breaks a rule; sending it again will not help."""

    code = "INVALID"
    http = 400
    exit = 2


class Denied(PlatformError):
    """The caller is not known (401) or may not do this (403)."""

    code = "DENIED"
    http = 401
    exit = 3


class Missing(PlatformError):
    """There is no such thing in the caller's workspace."""

    code = "MISSING"
    http = 404
    exit = 4


class Refused(PlatformError):
    """Understood and allowed, but it conflicts, exceeds a quota, does not fit or is full."""

    code = "REFUSED"
    http = 409
    exit = 5


class EngineError(PlatformError):
    """Where tasks run did not do as asked."""

    code = "ENGINE"
    http = 502
    exit = 70


class Unavailable(PlatformError):
    """A part of the platform is busy or down for the moment; try again."""

    code = "UNAVAILABLE"
    http = 503
    exit = 75
    retry = True
