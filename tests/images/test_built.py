"""Which container image is the realisation of a lock on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from danlu.images import built
from danlu.images.store import ImageStore, digits
from danlu.model.image import Built

ID = f"sha256:{'a' * 64}"
RECORD = Built(
    ID,
    "small",
    "localhost/danlu/small:aaaaaaaaaaaa",
    f"sha256:{'b' * 64}",
    "debian:bookworm",
    f"sha256:{'c' * 64}",
    ("git=1:2.39.5", "tini=0.19.0-1"),
    123,
    "podman 4.3.1",
    1,
    2.5,
)


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "images")


def test_what_was_built_is_found_by_the_id_of_its_lock(store: ImageStore) -> None:
    assert built.find(store, ID) is None
    assert built.reference(store, ID) == ""

    built.save(store, RECORD)

    assert built.find(store, ID) == RECORD
    assert built.reference(store, ID) == RECORD.oci_id
    built.forget(store, ID)
    assert built.reference(store, ID) == ""


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"id": "x"}'])
def test_a_record_that_cannot_be_read_is_none(store: ImageStore, text: str) -> None:
    built.save(store, RECORD)
    (store.root / built.FOLDER / f"{digits(ID)}.json").write_text(text)

    assert built.find(store, ID) is None


def test_what_a_newer_program_has_added_means_nothing_here(store: ImageStore) -> None:
    built.save(store, RECORD)
    path = store.root / built.FOLDER / f"{digits(ID)}.json"
    path.write_text(path.read_text().replace("{", '{"signed": true,', 1))

    assert built.find(store, ID) == RECORD
