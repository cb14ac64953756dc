"""One request, as handlers see it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote, unquote_plus

from danlu.faces.http.headers import Headers
from danlu.model.errors import Invalid, Missing
from danlu.model.identity import Caller
from danlu.model.texts import Language
from danlu.wire import body as json_body

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_PARAMETERS = 100


class Call:
    """A request that has been let in. `caller` is set except on public routes.

    Headers whose name begins with `x-` are only given if they were signed (or the caller came
    with a token): whoever is between could have added others.
    """

    __slots__ = (
        "_query",
        "body",
        "caller",
        "headers",
        "language",
        "params",
        "receive",
        "request_id",
        "scope",
        "signed",
    )

    def __init__(
        self, scope: Scope, receive: Receive, params: dict[str, str], request_id: str
    ) -> None:
        self.scope = scope
        self.receive = receive
        self.headers: Headers = scope["read_headers"]
        self.params = params
        self.request_id = request_id
        self.body = b""
        self.language: Language = "en"
        self.signed: frozenset[str] | None = None
        """Names of the signed headers; None where the request carries a token instead."""
        self.caller: Caller
        self._query: dict[str, str] | None = None

    @property
    def method(self) -> str:
        """GET, POST …"""
        method: str = self.scope["method"]
        return method

    def header(self, name: str) -> str:
        """A header's value, empty where it was not sent (or not signed)."""
        if name.startswith("x-") and self.signed is not None and name not in self.signed:
            return ""
        return self.headers.any(name)

    def json(self) -> dict[str, Any]:
        """The body as a JSON object; Invalid where it is none."""
        return json_body.parse(self.body)

    def no_body(self) -> None:
        """Invalid where a body was sent that says something: this call takes none."""
        if self.body.strip() not in (b"", b"{}", b"null"):
            raise Invalid("field-unknown", field="the request body")

    @property
    def query(self) -> dict[str, str]:
        """The query's parameters; Invalid where one stands twice."""
        if self._query is None:
            self._query = _query(self.scope["query_string"])
        return self._query

    def only(self, *names: str) -> None:
        """Invalid for a query parameter that is none of `names`."""
        for name in self.query:
            if name not in names:
                raise Invalid("field-unknown", field=f"query parameter {name}")

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number from the query; an empty one counts as not sent."""
        text = self.query.get(name, "")
        if not text:
            return default
        digits = text.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) <= 19:
            number = int(text)
            if low <= number <= high:
                return number
        raise Invalid(
            "field-value", field=name, value=text, expected=f"a whole number from {low} to {high}"
        )

    def choice(self, name: str, *choices: str) -> str:
        """One of `choices` from the query; the first where it is not sent or empty."""
        text = self.query.get(name, "")
        if text and text not in choices:
            expected = f"one of {', '.join(choice for choice in choices if choice)}"
            raise Invalid("field-value", field=name, value=text, expected=expected)
        return text or choices[0]

    def text(self, name: str, most: int = 256) -> str:
        """A text from the query, at most `most` characters."""
        text = self.query.get(name, "")
        if len(text) > most:
            raise Invalid(
                "field-too-long",
                field=name,
                size=len(text),
                unit="characters",
                limit=most,
                remedy="shorten it",
            )
        if "\0" in text:
            raise Invalid(
                "field-characters",
                field=name,
                value=text,
                found="a NUL character",
                remedy="remove it",
            )
        return text

    def gone(self) -> asyncio.Task[None]:
        """Ends when the client hangs up. For calls whose body has been read."""
        return asyncio.get_running_loop().create_task(_hung_up(self.receive))

    async def unless(
        self, gone: asyncio.Task[None], chunks: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        """`chunks` until they end or the client is gone."""
        while True:
            following = asyncio.ensure_future(anext(chunks, None))
            try:
                await asyncio.wait((following, gone), return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    return
            finally:
                if not following.done():
                    following.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await following
            chunk = following.result()
            if chunk is None:
                return
            yield chunk

    def job_id(self) -> str:
        """The job that the path names; Missing at once for what no job can be called."""
        job_id = self.params.get("training_job_id") or self.params.get("job_id", "")
        if not plain_id(job_id):
            raise Missing("job-missing", job=job_id)
        return job_id


def plain_id(text: str) -> bool:
    """Whether `text` could name anything of ours: letters, digits, `-` and `_`."""
    return (
        0 < len(text) <= 64 and text.isascii() and text.replace("-", "").replace("_", "").isalnum()
    )


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def path_params(raw: dict[str, str]) -> dict[str, str]:
    """Each part of the raw path decoded by itself: an escaped slash never becomes a level."""
    return {name: unquote(value) if "%" in value else value for name, value in raw.items()}


def _query(query: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    if not query:
        return found
    parts = query.decode("ascii", "replace").split("&")
    if len(parts) > MAX_PARAMETERS:
        raise Invalid(
            "too-many",
            field="the query",
            count=len(parts),
            limit=MAX_PARAMETERS,
            remedy="send fewer parameters",
        )
    for part in parts:
        if part:
            name, _, value = part.partition("=")
            name = unquote_plus(name)
            if name in found:
                raise Invalid("duplicate", field="the query", value=name)
            found[name] = unquote_plus(value)
    return found
