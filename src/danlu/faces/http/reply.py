"""What handlers answer with, and how errors are rendered: in this one place."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from danlu.model.errors import PlatformError
from danlu.model.texts import Language
from danlu.wire.modelarts_errors import error as error_body

log = logging.getLogger(__name__)

Header = tuple[bytes, bytes]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

JSON = b"application/json"
BYTES = b"application/octet-stream"
EVENT_STREAM = b"text/event-stream"

ALGORITHM = b"SDK-HMAC-SHA256"


@dataclass(slots=True)
class Reply:
    """A whole reply: its bytes are there already."""

    body: bytes
    status: int = 200
    media: bytes = JSON
    headers: list[Header] = field(default_factory=list)


@dataclass(slots=True)
class Streamed:
    """A reply that is made while it is sent. `chunks` is closed when the client has gone."""

    chunks: AsyncGenerator[bytes, None]
    media: bytes = BYTES
    headers: list[Header] = field(default_factory=list)
    status: int = 200


def encode(value: object) -> bytes:
    """JSON as bytes. Halves of surrogate pairs, if any got this far, stay escaped."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return _encode(value).encode("utf-8", "backslashreplace")


def json_reply(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A JSON reply."""
    extra = [(name.encode(), text.encode()) for name, text in (headers or {}).items()]
    return Reply(encode(value), status, JSON, extra)


def empty_reply(status: int) -> Reply:
    """A reply without a body (ModelArts answers a delete so)."""
    return Reply(b"", status)


def error_reply(problem: PlatformError, request_id: str, language: Language) -> Reply:
    """The reply for an error."""
    reply = Reply(encode(error_body(problem, request_id, language)), problem.http)
    if problem.http == 401:
        reply.headers.append((b"www-authenticate", ALGORITHM))
    if problem.http in (408, 413):
        reply.headers.append((b"connection", b"close"))
    retry = problem.params.get("wait_s", 1 if problem.retry or problem.http == 429 else None)
    if retry is not None:
        reply.headers.append((b"retry-after", str(retry).encode()))
    return reply


def internal_reply(request_id: str, language: Language) -> Reply:
    """The reply for what must not happen; the log has the cause."""
    problem = PlatformError("internal", request_id=request_id)
    return error_reply(problem, request_id, language)


def language_of(wanted: str, accepted: str) -> Language:
    """The language of messages: X-Language (zh-cn, en-us) before Accept-Language."""
    if not wanted and not accepted:
        return "en"
    for value in (wanted, *(part.partition(";")[0] for part in accepted.split(","))):
        tag = value.strip().lower()[:2]
        if tag == "zh":
            return "zh"
        if tag == "en":
            return "en"
    return "en"


Answer = Reply | Streamed
JsonObject = dict[str, Any]
