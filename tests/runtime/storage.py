"""A storage in memory that speaks as much of S3 as moxing asks, and fails on command."""

from __future__ import annotations

import hashlib
import re
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote_plus, unquote, urlsplit
from xml.sax.saxutils import escape

STAMP = 1_700_000_000
KEYS = ("AKIDFAKE", "secret-of-the-fake")

Fault = Callable[["Handler"], bool]
"""Spoils one request; True if that was all that there is to answer."""


@dataclass
class Object:
    data: bytes
    etag: str


@dataclass
class Storage:
    """What is stored, what was asked, and what shall go wrong with the next requests."""

    buckets: dict[str, dict[str, Object]] = field(default_factory=lambda: {"demo": {}})
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    url: str = ""
    page: int = 1000
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def demo(self) -> dict[str, bytes]:
        return {key: found.data for key, found in self.buckets["demo"].items()}

    def put(self, key: str, data: bytes) -> None:
        self.buckets["demo"][key] = Object(data, hashlib.md5(data).hexdigest())  # noqa: S324 - as S3 has it

    def requests(self, method: str) -> list[str]:
        return [path for asked, path in self.asked if asked == method]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    storage: Storage

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _answer(self) -> None:
        storage = self.storage
        parts = urlsplit(self.path)
        bucket, _, key = parts.path.lstrip("/").partition("/")
        self.bucket, self.key = unquote(bucket), unquote(key)
        self.query = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
        with storage.lock:
            storage.asked.append((self.command, self.path))
            fault = storage.faults.pop(0) if storage.faults else None
        if fault is not None and fault(self):
            return
        if self.headers["x-amz-content-sha256"] != hashlib.sha256(self.body).hexdigest():
            self.refuse(400, "XAmzContentSHA256Mismatch")
        elif f"Credential={KEYS[0]}/" not in self.headers["authorization"]:
            self.refuse(403, "InvalidAccessKeyId")
        elif self.bucket not in storage.buckets:
            self.refuse(404, "NoSuchBucket")
        else:
            with storage.lock:
                getattr(self, f"_{self.command.lower()}")(storage.buckets[self.bucket])

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - http.server's names

    def send(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status: int, code: str) -> None:
        self.send(status, f"<Error><Code>{code}</Code><Message>so</Message></Error>".encode())

    def _head(self, found: dict[str, Object]) -> None:
        one = found.get(self.key)
        if one is None:
            self.refuse(404, "NoSuchKey")
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(one.data)))
        self.send_header("ETag", f'"{one.etag}"')
        self.send_header("Last-Modified", self.date_time_string(STAMP))
        self.end_headers()

    def _get(self, found: dict[str, Object]) -> None:
        if not self.key:
            self._list(found)
            return
        one = found.get(self.key)
        if one is None:
            self.refuse(404, "NoSuchKey")
        elif self.headers.get("if-match", f'"{one.etag}"') != f'"{one.etag}"':
            self.refuse(412, "PreconditionFailed")
        else:
            span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["range"])
            assert span is not None
            self.send(206, one.data[int(span[1]) : int(span[2]) + 1], ETag=f'"{one.etag}"')

    def _list(self, found: dict[str, Object]) -> None:
        prefix, delimiter = self.query["prefix"], self.query.get("delimiter", "")
        after = self.query.get("continuation-token", "")
        entries: dict[str, Object | None] = {}
        for key in sorted(found):
            if not key.startswith(prefix):
                continue
            head, cut, _ = key[len(prefix) :].partition(delimiter or "\0")
            if cut and delimiter:
                entries[prefix + head + delimiter] = None
            else:
                entries[key] = found[key]
        names = [name for name in entries if name > after]
        page = names[: min(self.storage.page, int(self.query.get("max-keys", 1000)))]
        body = "".join(self._entry(name, entries[name]) for name in page)
        if len(page) < len(names):
            body += "<IsTruncated>true</IsTruncated>"
            body += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        whole = f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{body}'
        self.send(200, f"{whole}</ListBucketResult>".encode())

    def _entry(self, name: str, one: Object | None) -> str:
        if one is None:
            return f"<CommonPrefixes><Prefix>{quote_plus(name)}</Prefix></CommonPrefixes>"
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.250Z", time.gmtime(STAMP))
        return (
            f"<Contents><Key>{quote_plus(name)}</Key><Size>{len(one.data)}</Size>"
            f"<LastModified>{stamp}</LastModified><ETag>&quot;{one.etag}&quot;</ETag></Contents>"
        )

    def _put(self, found: dict[str, Object]) -> None:
        held = found.get(self.key)
        if "uploadId" in self.query:
            self.storage.uploads[self.query["uploadId"]][int(self.query["partNumber"])] = self.body
            self.send(200, ETag=f'"{hashlib.md5(self.body).hexdigest()}"')  # noqa: S324 - as S3 has it
            return
        if self.headers.get("if-none-match") == "*" and held is not None:
            self.refuse(412, "PreconditionFailed")
            return
        wanted = self.headers.get("if-match")
        if wanted is not None and (held is None or wanted != f'"{held.etag}"'):
            self.refuse(412, "PreconditionFailed")
            return
        data, source = self.body, self.headers.get("x-amz-copy-source")
        if source is not None:
            bucket, _, key = unquote(source).lstrip("/").partition("/")
            data = self.storage.buckets[bucket][key].data
        found[self.key] = Object(data, hashlib.md5(data).hexdigest())  # noqa: S324 - as S3 has it
        self.send(200, b"<CopyObjectResult/>" if source else b"", ETag=f'"{found[self.key].etag}"')

    def _post(self, found: dict[str, Object]) -> None:
        if "uploads" in self.query:
            name = f"upload-{len(self.storage.uploads)}"
            self.storage.uploads[name] = {}
            body = f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>"
            self.send(200, f"{body}</InitiateMultipartUploadResult>".encode())
        elif "delete" in self.query:
            for element in ET.fromstring(self.body).iter("Key"):  # noqa: S314 - our own
                found.pop(element.text or "", None)
            self.send(200, b"<DeleteResult/>")
        else:
            parts = self.storage.uploads.pop(self.query["uploadId"], None)
            if parts is None:
                self.refuse(404, "NoSuchUpload")
                return
            data = b"".join(parts[number] for number in sorted(parts))
            found[self.key] = Object(data, f"{hashlib.md5(data).hexdigest()}-{len(parts)}")  # noqa: S324 - as S3 has it
            self.send(200, b"<CompleteMultipartUploadResult/>")

    def _delete(self, found: dict[str, Object]) -> None:
        if "uploadId" in self.query:
            self.storage.uploads.pop(self.query["uploadId"], None)
        else:
            found.pop(self.key, None)
        self.send(204)


# what can go wrong


def status(code: int) -> Fault:
    """The storage says that it cannot."""

    def spoil(handler: Handler) -> bool:
        handler.refuse(code, "SlowDown" if code == 503 else "InternalError")
        return True

    return spoil


def cut_after(count: int) -> Fault:
    """The connection ends in the middle of the content."""

    def spoil(handler: Handler) -> bool:
        data = handler.storage.buckets[handler.bucket][handler.key].data
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", handler.headers["range"])
        assert span is not None
        wanted = data[int(span[1]) : int(span[2]) + 1]
        handler.send_response(206)
        handler.send_header("Content-Length", str(len(wanted)))
        handler.end_headers()
        handler.wfile.write(wanted[:count])
        handler.close_connection = True
        return True

    return spoil


def no_reply(handler: Handler) -> bool:
    """It is done, and nobody is told."""
    wfile, handler.wfile = handler.wfile, _Nowhere()  # type: ignore[assignment]  # a file to write to
    handler.storage.faults.insert(0, lambda _: False)
    handler.storage.faults.pop(0)
    with handler.storage.lock:
        getattr(handler, f"_{handler.command.lower()}")(handler.storage.buckets[handler.bucket])
    handler.wfile = wfile
    handler.close_connection = True
    return True


class _Nowhere:
    def write(self, data: bytes) -> int:
        return len(data)

    def flush(self) -> None:
        pass


@contextmanager
def serving() -> Iterator[Storage]:
    """A storage on a port of its own."""
    storage = Storage()
    handler = type("Bound", (Handler,), {"storage": storage})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    storage.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield storage
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
