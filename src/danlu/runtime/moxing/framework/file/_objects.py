"""What can be done with objects: one function for each operation of the storage."""

from __future__ import annotations

import base64
import calendar
import hashlib
import http.client
import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote_plus

from moxing.framework.file._connection import (
    AGAIN,
    CHUNK,
    LONG_S,
    Answer,
    Body,
    Patience,
    Request,
    StorageRefused,
    passing,
    storage,
)
from moxing.framework.file._place import Place
from moxing.framework.file._signature import escaped
from moxing.framework.file._words import say

DELETED_AT_ONCE = 1000
CHANGED = 412
_MD5 = re.compile(r"[0-9a-f]{32}")


class Info(NamedTuple):
    """What is known of an object."""

    place: Place
    size: int
    mtime_ns: int
    etag: str


class Page(NamedTuple):
    """Objects and, where a delimiter was asked for, what lies deeper, as prefixes."""

    objects: list[Info]
    prefixes: list[str]


def head(place: Place) -> Info | None:
    """What is known of an object; None if there is none."""
    try:
        answer = Request("HEAD", place).ask(good=(200, 404))
    except PermissionError:
        # The answer to a HEAD has no room for a reason; that to a GET has.
        Request("GET", place, headers={"range": "bytes=0-0"}).ask(good=(200, 206, 416))
        raise
    if answer.status == 404:
        return None
    headers = answer.headers
    modified = time.strptime(headers["last-modified"], "%a, %d %b %Y %H:%M:%S GMT")
    return Info(
        place,
        int(headers["content-length"]),
        calendar.timegm(modified) * 10**9,
        headers.get("etag", "").strip('"'),
    )


def pages(place: Place, delimiter: str = "", most: int = 0) -> Iterator[Page]:
    """The objects whose keys begin with the key of `place`, a page at a time. `most` = no more
    than so many, for who only asks whether there are any.
    """
    query = {"list-type": "2", "prefix": place.key, "encoding-type": "url"}
    if delimiter:
        query["delimiter"] = delimiter
    if most:
        query["max-keys"] = str(most)
    bucket = Place(place.bucket, "")
    while True:
        answer = Request("GET", bucket, tuple(query.items())).ask(good=(200,))
        tree = _document(answer)
        yield Page(
            [_listed(bucket, item) for item in tree if item.tag == "Contents"],
            [
                unquote_plus(item.findtext("Prefix", ""))
                for item in tree
                if item.tag == "CommonPrefixes"
            ],
        )
        token = tree.findtext("NextContinuationToken", "")
        if most or tree.findtext("IsTruncated") != "true" or not token:
            return
        query["continuation-token"] = token


def below(place: Place) -> Iterator[Info]:
    """Every object below a directory, markers of directories included."""
    for page in pages(place.directory):
        yield from page.objects


def _listed(bucket: Place, item: ET.Element) -> Info:
    stamp = item.findtext("LastModified", "")
    seconds, _, fraction = stamp.rstrip("Z").partition(".")
    whole = calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S"))
    return Info(
        Place(bucket.bucket, unquote_plus(item.findtext("Key", ""))),
        int(item.findtext("Size", "0")),
        whole * 10**9 + int(f"{fraction:0<9.9}"),
        item.findtext("ETag", "").strip('"'),
    )


def _document(answer: Answer) -> ET.Element:
    """An answer's XML without namespaces."""
    tree = ET.fromstring(answer.body)  # noqa: S314 - of the storage whose keys we hold, and bounded
    for element in tree.iter():
        element.tag = element.tag.rpartition("}")[2]
    return tree


def is_directory(place: Place) -> bool:
    """Whether something lies below, or a marker says that there is a directory."""
    try:
        found = next(pages(place.directory, most=1))
    except FileNotFoundError:
        return False
    return bool(found.objects) or not place.key


def exists(place: Place) -> bool:
    """Whether there is such an object or directory."""
    if place.key and head(place) is not None:
        return True
    return is_directory(place)


# contents


class Reading:
    """The content of an object from `start` on, at most `length` bytes; one version of it, and
    gone on with after interruptions.
    """

    def __init__(self, info: Info, start: int = 0, length: int | None = None) -> None:
        self._info = info
        self._at = start
        self._end = info.size if length is None else min(info.size, start + length)

    def chunks(self, size: int = CHUNK) -> Iterator[bytes]:
        """OSError where the object is replaced or removed meanwhile."""
        patience = Patience(self._info.place)
        while self._at < self._end:
            try:
                for data in self._open(patience, size):
                    patience.progress()
                    self._at += len(data)
                    yield data
            except (OSError, http.client.HTTPException) as error:
                patience.wait(passing(error))
            else:
                if self._at < self._end:
                    patience.wait(http.client.IncompleteRead(b"", self._end - self._at))

    def _open(self, patience: Patience, size: int) -> Iterator[bytes]:
        place = self._info.place
        headers = {"range": f"bytes={self._at}-{self._end - 1}", "if-match": f'"{self._info.etag}"'}
        with Request("GET", place, headers=headers).open() as response:
            if response.status not in (200, 206):
                answer = Answer(response.status, {}, response.read(1 << 16))
                if response.status in AGAIN:
                    patience.wait(answer)
                    return
                if response.status in (404, CHANGED):
                    raise StorageRefused(response.status, say("changed", url=place))
                answer.raise_for(place)
            skip = self._at if response.status == 200 else 0
            while skip:
                skipped = response.read(min(skip, size))
                if not skipped:
                    return
                skip -= len(skipped)
            left = self._end - self._at
            while left:
                data = response.read(min(size, left))
                if not data:
                    return
                left -= len(data)
                yield data
            # The end of the answer, so that its connection can be used again.
            response.read()


def checked(info: Info, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """A whole content, held against its digest where the storage gives one (the platform's does
    for what was put in one piece).
    """
    known = storage(info.place).platform and _MD5.fullmatch(info.etag)
    digest = hashlib.md5(usedforsecurity=False) if known else None
    for data in chunks:
        if digest is not None:
            digest.update(data)
        yield data
    if digest is not None and digest.hexdigest() != info.etag:
        raise OSError(say("damaged", url=info.place, found=digest.hexdigest(), expected=info.etag))


def put(place: Place, body: Body, *, if_etag: str | None = None, if_absent: bool = False) -> str:
    """Store a content under a key; its etag. StorageRefused (412) where a condition fails."""
    headers: dict[str, str] = {}
    if if_etag is not None:
        headers["if-match"] = f'"{if_etag}"'
    if if_absent:
        headers["if-none-match"] = "*"
    answer = Request("PUT", place, headers=headers, body=body).ask(good=(200,))
    return answer.headers.get("etag", "").strip('"')


def copy(source: Info, target: Place) -> None:
    """Have the storage copy an object."""
    name = f"/{escaped(source.place.bucket)}/{escaped(source.place.key, '/')}"
    headers = {"x-amz-copy-source": name}
    if source.etag:
        headers["x-amz-copy-source-if-match"] = f'"{source.etag}"'
    answer = Request("PUT", target, headers=headers, timeout_s=LONG_S).ask(good=(200,))
    # A copy that takes long answers 200 at once, and says in the document how it ended.
    if b"<Error>" in answer.body:
        answer._replace(status=500).raise_for(target)


def delete(places: Sequence[Place]) -> None:
    """Remove objects of one bucket; those that are not there are no error."""
    odd = [place for place in places if not _in_xml(place.key)]
    plain = [place for place in places if _in_xml(place.key)]
    for place in odd if len(plain) > 1 else places:
        Request("DELETE", place).ask(good=(200, 204, 404))
    if len(plain) > 1:
        for start in range(0, len(plain), DELETED_AT_ONCE):
            _delete(plain[start : start + DELETED_AT_ONCE])


def _in_xml(key: str) -> bool:
    """XML cannot hold control characters, and changes the ends of lines."""
    return all(ord(char) >= 32 and char not in "\ufffe\uffff" for char in key)


def _delete(places: Sequence[Place]) -> None:
    tree = ET.Element("Delete")
    ET.SubElement(tree, "Quiet").text = "true"
    for place in places:
        ET.SubElement(ET.SubElement(tree, "Object"), "Key").text = place.key
    bucket = Place(places[0].bucket, "")
    body = Body(ET.tostring(tree, "utf-8"))
    answer = _Posted(bucket, (("delete", ""),), body).ask()
    refused = _document(answer).find("Error")
    if refused is not None:
        place = Place(bucket.bucket, refused.findtext("Key", ""))
        Answer(403, {}, ET.tostring(refused)).raise_for(place)


class _Posted(NamedTuple):
    """A document that is posted, with the digests that S3 wants of it."""

    place: Place
    query: Sequence[tuple[str, str]]
    body: Body

    def ask(self) -> Answer:
        data = b"".join(self.body.chunks())
        md5 = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        headers: Mapping[str, str] = {"content-md5": md5, "content-type": "application/xml"}
        request = Request("POST", self.place, self.query, headers, self.body, LONG_S)
        return request.ask(good=(200,))


# in parts


class Upload(NamedTuple):
    """An object that arrives in parts; nothing of it is visible before `complete`."""

    place: Place
    id: str

    @staticmethod
    def begin(place: Place) -> Upload:
        """Announce it."""
        answer = Request("POST", place, (("uploads", ""),)).ask(good=(200,))
        return Upload(place, _document(answer).findtext("UploadId", ""))

    def part(self, number: int, body: Body) -> str:
        """Send part `number` (from 1); its etag."""
        query = (("partNumber", str(number)), ("uploadId", self.id))
        answer = Request("PUT", self.place, query, body=body).ask(good=(200,))
        return answer.headers.get("etag", "")

    def complete(self, etags: Sequence[str], size: int) -> None:
        """Make the object visible."""
        tree = ET.Element("CompleteMultipartUpload")
        for number, etag in enumerate(etags, 1):
            part = ET.SubElement(tree, "Part")
            ET.SubElement(part, "PartNumber").text = str(number)
            ET.SubElement(part, "ETag").text = etag
        body = Body(ET.tostring(tree, "utf-8"))
        try:
            answer = _Posted(self.place, (("uploadId", self.id),), body).ask()
        except FileNotFoundError:
            # Completed by an earlier try, whose answer was lost.
            found = head(self.place)
            if found is None or found.size != size:
                raise
            return
        if b"<Error>" in answer.body:
            answer._replace(status=500).raise_for(self.place)

    def abort(self) -> None:
        """Give it up, and what was sent of it."""
        Request("DELETE", self.place, (("uploadId", self.id),)).ask(good=(200, 204, 404))
