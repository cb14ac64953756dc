"""XML of OBS and S3: written so that any reader finds the same, and read within bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from danlu.model.errors import Denied, Invalid, PlatformError, Refused
from danlu.wire import obs, obs_errors, obs_requests, obs_xml
from danlu.wire.obs_requests import NamedPart

LETTERS = some.characters(
    codec="utf-8", exclude_characters="\r", exclude_categories=["Cs", "Cc"]
) | some.sampled_from("\t\n&<>\"'")


@given(
    some.text(LETTERS, max_size=200).filter(
        lambda text: "\ufffe" not in text and "\uffff" not in text
    )
)
def test_what_is_written_is_read_again(text: str) -> None:
    body = obs.document("Root", [("A", text), ("B", [("C", 1), ("D", True)])], obs.AMZ)
    found = obs_xml.parse(body, "Root")
    assert found.text_of("A") == text
    assert found.one("B") is not None
    assert [one.text for one in found.children[1].children] == ["1", "true"]


def test_what_xml_has_no_character_for_stays_a_reference() -> None:
    assert obs.escape("a\x01\r\ufffe") == "a&#x1;&#xd;&#xfffe;"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"<A/>", "its root is <A>"),
        (b"<!DOCTYPE Root><Root/>", "document type"),
        (b"<?x?><Root/>", "processing instruction"),
        (b"<Root>" * 9 + b"</Root>" * 9, "deeper than 8"),
        (b"<Root>" + b"<a/>" * 60_000 + b"</Root>", "more than 60000 elements"),
        (b"<Root>" + b"x" * 20_000 + b"</Root>", "longer than 16384"),
        (b"<Root", "at line 1"),
        (b"", "no element"),
    ],
)
def test_a_document_is_refused_with_the_reason(body: bytes, detail: str) -> None:
    with pytest.raises(Invalid) as caught:
        obs_xml.parse(body, "Root")
    assert detail in caught.value.message()


def test_a_body_that_is_too_large_is_not_parsed() -> None:
    with pytest.raises(Invalid) as caught:
        obs_xml.parse(b" " * (obs_xml.XML_BYTES + 1), "Root")
    assert caught.value.http == 413


def test_the_largest_requests_that_are_allowed_fit() -> None:
    keys = [("Object", [("Key", "&" * 1024)])] * 1000
    assert len(obs_requests.deletion(obs.document("Delete", keys, obs.AMZ)).keys) == 1000
    part: obs.Content = [
        ("PartNumber", 10_000),
        ("ETag", f'"{"0" * 32}"'),
        ("ChecksumSHA256", "x" * 44),
    ]
    parts: obs.Content = [("Part", part)] * 10_000
    found = obs_requests.completion(obs.document("CompleteMultipartUpload", parts))
    assert (len(found), found[-1]) == (10_000, NamedPart(10_000, "0" * 32, {"SHA256": "x" * 44}))


@pytest.mark.parametrize("text", ["0", "10001", "-1", "+1", "1.0", "１", "", " ", "1e3"])
def test_what_is_no_number_of_a_part(text: str) -> None:
    with pytest.raises(Invalid):
        obs_requests.part_number(text)


def test_both_forms_of_a_location_are_read() -> None:
    root = "CreateBucketConfiguration"
    for name in ("LocationConstraint", "Location"):
        assert obs_requests.location(obs.document(root, [(name, "r")], obs.OBS)) == "r"
    assert obs_requests.location(b"") == ""


def test_instants_and_dates() -> None:
    assert obs.instant(1_700_000_000_042) == "2023-11-14T22:13:20.042Z"
    assert obs.http_date(1_700_000_000_999) == "Tue, 14 Nov 2023 22:13:20 GMT"


@pytest.mark.parametrize(
    ("problem", "code", "status"),
    [
        (Refused("object-condition", http=412), "PreconditionFailed", 412),
        (Denied("project-denied"), "AccessDenied", 403),
        (Invalid("something-else"), "InvalidArgument", 400),
        (PlatformError("internal", request_id="x"), "InternalError", 500),
        (Refused("obs-no-configuration", obs_code="NoSuchTagSet"), "NoSuchTagSet", 409),
    ],
)
def test_every_error_has_a_code(problem: PlatformError, code: str, status: int) -> None:
    assert (obs_errors.code(problem), obs_errors.status(problem)) == (code, status)
