"""An S3 endpoint as `danlu obs` uses it: signed requests, sent again where that may help."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from xml.etree.ElementTree import Element

from danlu.faces.cli.failure import DENIED, EXITS, FAULT, MISSING, RETRY, Failure
from danlu.faces.cli.http import Body, Broken, Connection, Garbled, HttpError, Response, Unreachable
from danlu.faces.cli.obs import xml
from danlu.faces.cli.obs.signer import Signer, query_string
from danlu.faces.cli.obs.xml import Entry, Page
from danlu.model.sign_v4 import quote_path
from danlu.model.xml_text import fits_xml

TRIES = 8
FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 10.0
TIMEOUT_S = 120.0
RETRIED = frozenset({429, 500, 502, 503, 504})
RETRIED_CODES = frozenset({"SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable"})
LISTED = 1000
DELETED = 1000
"""Keys of one batch: S3 takes no more."""

Query = Sequence[tuple[str, str]]
Sink = Callable[[Response], None]
"""Takes a good response's body. It begins anew where the request is sent again."""


class Refusal(Failure):
    """The store said no; `code` is its word for why."""

    def __init__(self, status: int, code: str, said: str, what: str, request_id: str) -> None:
        exit_status = {404: MISSING, 403: DENIED, 401: DENIED}.get(status, EXITS.get(status, FAULT))
        detail = f"{code}: {said}" if said else code or f"HTTP {status}"
        super().__init__(exit_status, "obs-refused", what=what, detail=detail, id=request_id or "-")
        self.status = status
        self.code = code


class Damaged(Exception):
    """What arrived is not what was sent."""


class Reply:
    """A good response whose body has been read."""

    __slots__ = ("data", "headers")

    def __init__(self, headers: dict[str, str], data: bytes) -> None:
        self.headers = headers
        self.data = data

    @property
    def etag(self) -> str:
        """The ETag without its quotes."""
        return self.headers.get("etag", "").strip('"')


class Objects:
    """One endpoint. `connect` makes a connection; `base` is the path of its address. Safe to use
    from several threads: each request has a connection for itself.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        signer: Signer,
        *,
        base: str = "",
        url: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.signer = signer
        self.url = url
        self._connect = connect
        self._base = base
        self._sleep = sleep
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._answered = False
        """Whether the endpoint has ever answered: until then nobody waits for it."""

    def close(self) -> None:
        """Close what is open and idle."""
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    # ------------------------------------------------------------------ requests

    def call(
        self,
        method: str,
        bucket: str,
        key: str = "",
        query: Query = (),
        headers: dict[str, str] | None = None,
        body: bytes | Callable[[], Body] = b"",
        sink: Sink | None = None,
    ) -> Reply:
        """Send a request until it is carried out, or there is no hope. `body` may be a function
        that makes it anew for each try. Refusal or Failure.
        """
        what = f"{method} obs://{bucket}/{key}"
        for count in range(1, TRIES + 1):
            wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (count - 1))
            try:
                reply = self._once(method, bucket, key, query, headers or {}, body, sink, what)
            except Refusal as refusal:
                again = refusal.status in RETRIED or refusal.code in RETRIED_CODES
                if not again or count == TRIES:
                    raise
            except HttpError as error:
                hopeless = isinstance(error, Garbled) or (
                    isinstance(error, Unreachable) and not self._answered
                )
                if hopeless or count == TRIES:
                    raise Failure(
                        RETRY, "obs-lost", url=self.url, what=what, detail=error
                    ) from error
            except Damaged as error:
                if count == TRIES:
                    raise Failure(FAULT, "obs-damaged", what=what) from error
            else:
                return reply
            self._sleep(wait_s * (0.5 + os.urandom(1)[0] / 512))
        raise AssertionError("unreachable")

    def _once(
        self,
        method: str,
        bucket: str,
        key: str,
        query: Query,
        headers: dict[str, str],
        body: bytes | Callable[[], Body],
        sink: Sink | None,
        what: str,
    ) -> Reply:
        connection = self._take()
        try:
            path = self.path(bucket, key)
            text = query_string(query)
            signed = self.signer.headers(method, connection.authority, path, text, headers)
            target = f"{path}?{text}" if text else path
            sent = body() if callable(body) else body
            response = connection.request(method, target, signed, sent, timeout_s=TIMEOUT_S)
            self._answered = True
            data = _body(response, sink, what)
        except BaseException as error:
            if not isinstance(error, Refusal):
                connection.close()
            raise
        finally:
            with self._lock:
                self._idle.append(connection)
        return Reply(response.headers, data)

    def _take(self) -> Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def path(self, bucket: str, key: str) -> str:
        """The encoded path of an object, bucket, or (both empty) the endpoint."""
        if not bucket:
            return f"{self._base}/"
        return f"{self._base}/{bucket}/{quote_path(key)}"

    def presigned(self, method: str, bucket: str, key: str, expires_s: int) -> str:
        """A URL that lets whoever has it do this to an object."""
        path = self.path(bucket, key)
        host = self._connect().authority
        query = self.signer.presigned(method, host, path, expires_s)
        return f"{self.url.partition('://')[0]}://{host}{path}?{query}"

    # ------------------------------------------------------------------ buckets and listings

    def buckets(self) -> list[tuple[str, float]]:
        """Names and times of creation."""
        root = xml.parse(self.call("GET", "").data)
        found = [xml.fields(one) for one in root.iter() if xml.tag(one) == "Bucket"]
        return [(one.get("Name", ""), xml.instant(one.get("CreationDate", ""))) for one in found]

    def pages(self, bucket: str, prefix: str, delimiter: str = "") -> Iterator[Page]:
        """A listing, page by page."""
        after = ""
        while True:
            query = [("max-keys", str(LISTED)), ("encoding-type", "url"), ("prefix", prefix)]
            if delimiter:
                query.append(("delimiter", delimiter))
            if after:
                query.append(("marker", after))
            page = self._page(bucket, query)
            yield page
            if not page.after:
                return
            if page.after <= after and not page.entries and not page.prefixes:
                raise Failure(FAULT, "obs-listing", bucket=bucket, prefix=prefix)
            after = page.after

    def entries(self, bucket: str, prefix: str) -> Iterator[Entry]:
        """Every object below a prefix, in order."""
        for page in self.pages(bucket, prefix):
            yield from page.entries

    def _page(self, bucket: str, query: Query) -> Page:
        root = xml.parse(self.call("GET", bucket, query=query).data)
        page, texts = xml.page(root)
        if not any(xml.tag(child) == "EncodingType" for child in root):
            return page
        known: list[str] = []
        if any("+" in text for text in texts):
            # Some servers write a space as `+`, others `+` as itself, and some do both in one key.
            plain = [pair for pair in query if pair[0] != "encoding-type"]
            known = xml.page(xml.parse(self.call("GET", bucket, query=plain).data))[1]
        xml.decode(page, known)
        return page

    # ------------------------------------------------------------------ objects

    def head(self, bucket: str, key: str) -> Entry | None:
        """What is known of an object, or None if there is none."""
        try:
            reply = self.call("HEAD", bucket, key)
        except Refusal as refusal:
            if refusal.status == 404:
                return None
            raise
        from email.utils import parsedate_to_datetime

        try:
            modified = parsedate_to_datetime(reply.headers["last-modified"]).timestamp()
        except (KeyError, ValueError):
            modified = 0.0
        return Entry(key, int(reply.headers.get("content-length", "0")), reply.etag, modified)

    def copy(self, source: tuple[str, str, str], to_bucket: str, to_key: str) -> None:
        """Have the store copy an object: its bucket, key and ETag as it was listed."""
        bucket, key, etag = source
        headers = copied_from(bucket, key, etag)
        root = xml.parse(self.call("PUT", to_bucket, to_key, headers=headers).data)
        if xml.tag(root) == "Error":
            raise _said(200, root, f"COPY obs://{bucket}/{key}", "")

    def delete(self, bucket: str, keys: Sequence[str]) -> list[tuple[str, str]]:
        """Remove objects; those that could not be, with the reason."""
        # No document can hold some characters that keys may have.
        together = [key for key in keys if len(keys) > 1 and fits_xml(key)]
        for key in keys if not together else (key for key in keys if not fits_xml(key)):
            self.call("DELETE", bucket, key)
        keys = together
        if not keys:
            return []
        from base64 import b64encode
        from hashlib import md5

        listed = [f"<Object>{xml.text('Key', key)}</Object>" for key in keys]
        body = xml.element("Delete", [xml.text("Quiet", "true"), *listed])
        digest = b64encode(md5(body, usedforsecurity=False).digest()).decode()
        headers = {"content-md5": digest, "content-type": "application/xml"}
        root = xml.parse(self.call("POST", bucket, "", [("delete", "")], headers, body).data)
        errors = [xml.fields(one) for one in root if xml.tag(one) == "Error"]
        if xml.tag(root) == "Error":
            raise _said(200, root, f"POST obs://{bucket}/?delete", "")
        return [(one.get("Key", ""), one.get("Code", "")) for one in errors]


def copied_from(bucket: str, key: str, etag: str) -> dict[str, str]:
    """Headers that name the object to copy, and its version where that is known."""
    headers = {"x-amz-copy-source": f"/{bucket}/{quote_path(key)}"}
    if etag:
        headers["x-amz-copy-source-if-match"] = f'"{etag}"'
    return headers


def _body(response: Response, sink: Sink | None, what: str) -> bytes:
    """The body of a good response, where nobody else takes it."""
    if response.status >= 400:
        raise _refusal(response, what)
    data = b""
    if sink is None:
        data = response.read()
    else:
        sink(response)
    if not response.ended:
        raise Broken("an answer that was not read to its end")
    return data


def _refusal(response: Response, what: str) -> Refusal:
    request_id = response.headers.get("x-amz-request-id", "")
    try:
        root = xml.parse(response.read(1 << 20))
    except HttpError:
        if not response.ended:
            response.close()
        return Refusal(response.status, "", "", what, request_id)
    return _said(response.status, root, what, request_id)


def _said(status: int, root: Element, what: str, request_id: str) -> Refusal:
    found = xml.fields(root)
    code, said = found.get("Code", ""), found.get("Message", "")
    return Refusal(status, code, said, what, request_id or found.get("RequestId", ""))
