"""A storage that fails on the way (reliability rows 34 to 36)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import moxing as mox
from moxing.framework.file import _connection, _transfer, _upload
from tests.runtime.storage import Storage, cut_after, no_reply, status


@pytest.mark.fault
def test_bursts_of_refusals_pass(storage: Storage) -> None:
    """34"""
    storage.put("x", b"content")
    storage.faults = [status(503), status(500), status(429)]

    assert mox.file.read("obs://demo/x") == "content"


@pytest.mark.fault
def test_a_connection_that_ends_in_the_body_is_gone_on_with(
    storage: Storage, tmp_path: Path
) -> None:
    """35"""
    data = os.urandom(500_000)
    storage.put("x", data)
    storage.faults = [lambda _: False, cut_after(100_000), cut_after(0), cut_after(1)]

    mox.file.copy("obs://demo/x", tmp_path / "x")

    assert (tmp_path / "x").read_bytes() == data


@pytest.mark.fault
def test_a_lost_reply_does_no_harm(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """36"""
    storage.faults = [no_reply]
    mox.file.write("obs://demo/x", "once")
    assert storage.demo == {"x": b"once"}

    passed = [lambda _: False]
    # It is looked at when it is opened and when it is closed.
    storage.faults = [*passed * 2, no_reply]
    mox.file.append("obs://demo/new", "line\n")
    storage.faults = [*passed * 3, no_reply]
    mox.file.append("obs://demo/x", " more")
    assert storage.demo == {"x": b"once more", "new": b"line\n"}

    for module in (_upload, _transfer):
        monkeypatch.setattr(module, "LARGE", 1000)
    monkeypatch.setattr(_upload, "PART", 1000)
    (tmp_path / "big").write_bytes(b"x" * 1500)
    # Look at the target (it is no directory), begin, two parts, and the end whose reply is lost.
    storage.faults = [lambda _: False] * 3 + [no_reply]
    mox.file.copy(tmp_path / "big", "obs://demo/big")
    assert storage.demo["big"] == b"x" * 1500
    assert len([path for path in storage.requests("POST") if "uploadId" in path]) == 2


@pytest.mark.fault
def test_an_upload_that_fails_leaves_nothing(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """37"""
    for module in (_upload, _transfer):
        monkeypatch.setattr(module, "LARGE", 1000)
    monkeypatch.setattr(_upload, "PART", 1000)
    (tmp_path / "big").write_bytes(b"x" * 2500)
    storage.faults = [lambda _: False, lambda _: False, status(403)]

    with pytest.raises(PermissionError):
        mox.file.copy(tmp_path / "big", "obs://demo/big")
    assert storage.demo == {}
    assert storage.uploads == {}


def test_a_storage_that_does_not_answer_is_given_up_some_time(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_connection, "PATIENCE_S", 0.3)
    monkeypatch.setattr(_connection, "TELL_AFTER_S", 0.0)
    monkeypatch.setenv("DANLU_OBS_ENDPOINT", "http://127.0.0.1:1")

    with pytest.raises(TimeoutError, match=r"no answer from the storage at 127\.0\.0\.1:1"):
        mox.file.read("obs://demo/x")
    assert capfd.readouterr().err.count("trying again") == 1


def test_a_refusal_is_not_tried_again(storage: Storage) -> None:
    storage.put("x", b"")
    storage.faults = [status(400)]

    with pytest.raises(OSError, match="the storage answers 400"):
        mox.file.list_directory("obs://demo")
    assert len(storage.asked) == 1
