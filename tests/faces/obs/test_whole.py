"""What is promised of a whole object when an upload in parts is completed."""

from __future__ import annotations

import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as some

from danlu.faces.obs import checksums
from danlu.wire import obs
from tests.faces.obs.conftest import Answer, Gateway

PIECES = [random.Random(n).randbytes(size) for n, size in enumerate((70_001, 1, 33_333))]
JOINED = sorted(checksums.POLYNOMIALS)


def digest(algorithm: str, *pieces: bytes) -> bytes:
    made = checksums.ALGORITHMS[algorithm]()
    for piece in pieces:
        made.update(piece)
    return made.digest()


@pytest.mark.parametrize("algorithm", JOINED)
@given(pieces=some.lists(some.binary(max_size=300), max_size=5))
def test_the_crc_of_a_whole_follows_from_its_parts(algorithm: str, pieces: list[bytes]) -> None:
    parts = [(digest(algorithm, piece), len(piece)) for piece in pieces]
    assert checksums.joined(algorithm, parts) == digest(algorithm, *pieces)


@pytest.mark.parametrize(("algorithm", "size"), [("crc32c", 4), ("crc64nvme", 8)])
def test_compiled_code_and_tables_agree(
    algorithm: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("awscrt")
    compiled = checksums.ALGORITHMS[algorithm]()
    monkeypatch.setitem(sys.modules, "awscrt", None)
    table = checksums.ALGORITHMS[algorithm]()
    assert isinstance(table, checksums.Crc)
    assert not isinstance(compiled, checksums.Crc)
    for piece in (b"", *PIECES):
        compiled.update(piece)
        table.update(piece)
    assert compiled.digest() == table.digest()
    assert len(table.digest()) == size


def completed(
    gateway: Gateway, bucket: str, headers: dict[str, str], name: str = "", *, told: bool = True
) -> Answer:
    """An upload of all pieces, completed with these headers; `told`: with a checksum of each."""
    upload = gateway.call("POST", bucket, "k", query={"uploads": None}).text("UploadId")
    parts: list[obs.Field] = []
    for number, piece in enumerate(PIECES, 1):
        query = {"uploadId": upload, "partNumber": str(number)}
        etag = gateway.call("PUT", bucket, "k", piece, query=query).headers["etag"]
        part: list[obs.Field] = [("PartNumber", number), ("ETag", etag)]
        if told and name:
            shown = checksums.shown(name.lower(), digest(name.lower(), piece))
            part.append((f"Checksum{name}", shown))
        parts.append(("Part", part))
    body = obs.document("CompleteMultipartUpload", parts)
    return gateway.call("POST", bucket, "k", body, query={"uploadId": upload}, headers=headers)


@pytest.mark.parametrize("name", ["CRC32", "CRC32C", "CRC64NVME"])
def test_the_checksum_of_the_whole_is_compared(gateway: Gateway, bucket: str, name: str) -> None:
    algorithm = name.lower()
    header = f"x-amz-checksum-{algorithm}"
    right = {
        header: checksums.shown(algorithm, digest(algorithm, *PIECES)),
        "x-amz-checksum-type": "FULL_OBJECT",
    }
    wrong = {**right, header: checksums.shown(algorithm, digest(algorithm, *reversed(PIECES)))}
    answer = completed(gateway, bucket, wrong, name)
    assert (answer.status, answer.code) == (400, "BadDigest")
    assert gateway.content(bucket, "k") is None
    assert completed(gateway, bucket, right, name).status == 200
    assert gateway.content(bucket, "k") == b"".join(PIECES)
    assert completed(gateway, bucket, right, name, told=False).status == 200
    answer = completed(gateway, bucket, {header: "no digest"}, name)
    assert (answer.status, answer.code) == (400, "InvalidDigest")


@pytest.mark.parametrize("name", ["SHA256", "CRC32"])
def test_a_checksum_of_checksums_is_compared(gateway: Gateway, bucket: str, name: str) -> None:
    algorithm = name.lower()
    header = f"x-amz-checksum-{algorithm}"
    over = digest(algorithm, *(digest(algorithm, piece) for piece in PIECES))
    text = f"{checksums.shown(algorithm, over)}-{len(PIECES)}"
    assert completed(gateway, bucket, {header: text}, name).status == 200
    for other in (f"{text}0", checksums.shown(algorithm, digest(algorithm, b"x")) + "-3"):
        answer = completed(gateway, bucket, {header: other}, name)
        assert (answer.status, answer.code) == (400, "BadDigest")


def test_the_size_of_the_whole_is_compared(gateway: Gateway, bucket: str) -> None:
    size = sum(map(len, PIECES))
    answer = completed(gateway, bucket, {"x-amz-mp-object-size": str(size + 1)})
    assert (answer.status, answer.code) == (400, "InvalidRequest")
    assert str(size) in answer.text("Message")
    assert completed(gateway, bucket, {"x-amz-mp-object-size": str(size)}).status == 200
