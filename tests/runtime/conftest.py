"""A storage for each test, in the variables in which a job finds the platform's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moxing.framework.file import _connection
from tests.runtime.storage import KEYS, Storage, serving


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    with serving() as made:
        monkeypatch.setenv("DANLU_OBS_ENDPOINT", made.url)
        monkeypatch.setenv("DANLU_OBS_ACCESS_KEY", KEYS[0])
        monkeypatch.setenv("DANLU_OBS_SECRET_KEY", KEYS[1])
        monkeypatch.setenv("LC_ALL", "C.UTF-8")
        monkeypatch.delenv("MOXING_OBS_DIR", raising=False)
        yield made
        _connection.forget()
