"""What the official SDKs send gets the replies that are on file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.exchanges import GOLDEN, VERSIONS, Names, golden_server, settle, stable


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_exchanges_are_replayed(tmp_path: Path, version: str) -> None:
    files = sorted((GOLDEN / version).glob("*.json"))
    assert len(files) >= 17
    with golden_server(tmp_path) as server:
        names = Names(server)
        for path in files:
            exchange: Any = json.loads(path.read_text("utf-8"))
            settle(server)
            request = exchange["request"]
            headers = {name: names.actual(value) for name, value in request["headers"].items()}
            answer = server.call(
                request["method"],
                names.actual(request["target"]),
                request["body"],
                headers=headers,
            )
            body: Any = json.loads(answer.body) if answer.body else None
            if answer.status == 201:
                names.learn(body["metadata"]["id"])
            found = {"status": answer.status, "body": stable(body, names)}
            assert found == exchange["response"], path.name


def test_both_sdks_send_what_the_other_lacks() -> None:
    """The union of the versions is the contract."""
    targets = {
        version: {
            json.loads(path.read_text("utf-8"))["request"]["target"].partition("?")[0]
            for path in (GOLDEN / version).glob("*.json")
        }
        for version in VERSIONS
    }
    assert any(target.endswith("/logs/url") for target in targets["3.1.206"])
    assert any("/logs/worker-0" in target for target in targets["3.1.219"])
