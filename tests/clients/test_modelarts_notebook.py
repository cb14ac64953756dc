"""Huawei's official SDKs on notebooks: a real JupyterLab, whose clients are as they are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import ssh_keys
from tests.clients.served import Served, served
from tests.jupyter import jupyter
from tests.services import sdk_python

VERSIONS = ("3.1.206", "3.1.219")
HOUR_MS = 3_600_000
pytestmark = [pytest.mark.clients, pytest.mark.timeout(400)]

__all__ = ["jupyter"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, jupyter: Path) -> Iterator[Served]:
    environment = str(jupyter.parent.parent)
    data = tmp_path_factory.mktemp("served")
    with served(data, "cn-north-4", {"DANLU_DEFAULT_ENVIRONMENT": environment}) as running:
        ssh_keys.make(data / "key")
        words = ["key", "add", "--data", str(data), "--name", "key", str(data / "key.pub")]
        subprocess.run([sys.executable, "-m", "danlu", *words], check=True)
        yield running


@pytest.fixture(scope="module", params=VERSIONS)
def driven(server: Served, request: pytest.FixtureRequest) -> Any:
    return server.drive(sdk_python(request.param), "modelarts_notebook.py")


def test_create_leads_to_a_lab_that_answers(driven: Any) -> None:
    made, runs = driven["created"], driven["running"]
    assert made["status"] in ("CREATING", "RUNNING")
    assert (runs["status"], runs["id"]) == ("RUNNING", made["id"])
    assert (runs["volume"]["category"], runs["volume"]["capacity"]) == ("EFS", 50)
    assert runs["endpoints"][0]["key_pair_names"] == ["key"]
    assert not runs["token"]


def test_a_lease_counts_in_milliseconds_from_now(driven: Any) -> None:
    assert (driven["lease"]["duration"], driven["lease"]["type"]) == (HOUR_MS, "TIMING")
    assert driven["lease"]["enable"] is True
    assert (driven["renewed"]["duration"], driven["renewed"]["type"]) == (2 * HOUR_MS, "TIMING")
    assert driven["renewed"]["create_at"] > driven["lease"]["create_at"]
    assert (driven["idle"]["duration"], driven["idle"]["type"]) == (3 * HOUR_MS, "IDLE")


def test_lists_and_flavors_answer(driven: Any) -> None:
    assert (driven["listed"]["total"], driven["all"]) == (1, 1)
    assert driven["listed"]["data"][0]["name"] == "driven-notebook"
    flavors = {one["id"]: one for one in driven["flavors"]["data"]}
    assert flavors["danlu.cpu.1u"]["memory"] > 1 << 28
    assert "danlu.cpu.1u" not in [one.get("id") for one in driven["switchable"]["data"]]


def test_stop_change_start_and_delete_follow_the_statuses(driven: Any) -> None:
    assert (driven["stopping"], driven["stopped"]["status"]) == ("STOPPING", "STOPPED")
    assert driven["changed"]["description"] == "changed"
    assert (driven["starting"], driven["again"]["status"]) == ("STARTING", "RUNNING")
    assert driven["deleting"] == "DELETING"
    status, code, message = driven["deleted"]
    assert (status, code) == (404, "ModelArts.6309")
    assert "no notebook" in message
