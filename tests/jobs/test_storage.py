"""Clients of S3 and OBS find the storage in a job's environment, and nothing is set by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faces.cli.house import House, opened
from tests.services import ROOT, obs_clients, require

pytestmark = pytest.mark.clients

LIBRARIES = """
import os
import boto3
from obs import ObsClient
import moxing as mox

s3 = boto3.client("s3")
s3.put_object(Bucket="danlu", Key="libraries/文 1", Body=b"by boto3")
obs = ObsClient(server=os.environ["OBS_ENDPOINT"], security_provider_policy="ENV")
answer = obs.getObject("danlu", "libraries/文 1", loadStreamInMemory=True)
assert answer.status == 200, (answer.status, answer.errorMessage)
assert bytes(answer.body.buffer) == b"by boto3"
assert obs.putContent("danlu", "libraries/2", "by obs").status == 200
assert mox.file.list_directory("obs://danlu/libraries") == ["2", "文 1"]
assert mox.file.read("obs://danlu/libraries/2") == "by obs"
names = [one["Name"] for one in s3.list_buckets()["Buckets"]]
print("all of", names)
"""

STREAMS = """
import fsspec, obstore, s3fs
from obstore.store import S3Store

store = S3Store("danlu")
obstore.put(store, "streams/文 1", b"by obstore" * 1000)
assert bytes(obstore.get_range(store, "streams/文 1", start=3, end=10)) == b"obstore"
files = s3fs.S3FileSystem()
with files.open("danlu/streams/文 1", "rb") as file:
    file.seek(3)
    assert file.read(7) == b"obstore"
with files.open("danlu/streams/2", "wb") as file:
    file.write(b"by s3fs" * (1 << 20))
with fsspec.open("s3://danlu/streams/2", "rb") as file:
    assert file.read() == b"by s3fs" * (1 << 20)
assert sorted(files.ls("danlu/streams")) == ["danlu/streams/2", "danlu/streams/文 1"]
listed = [one["path"] for page in obstore.list(store, prefix="streams/") for one in page]
assert listed == ["streams/2", "streams/文 1"]
print("streamed")
"""


@pytest.fixture(scope="module")
def clients_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    root = tmp_path_factory.mktemp("clients")
    (root / "data" / "environments").mkdir(parents=True)
    (root / "data" / "environments" / "default").symlink_to(obs_clients().parent)
    with opened(root) as made:
        yield made


def test_boto3_the_obs_sdk_and_moxing_see_one_storage(clients_house: House) -> None:
    assert "all of ['danlu']" in clients_house.good("run", clients_house.script(LIBRARIES))


def test_s3fs_and_obstore_read_it_without_being_told_where(clients_house: House) -> None:
    packages = obs_clients().parent.glob("lib/python3*/site-packages/s3fs")
    require(list(packages), "s3fs and obstore: make setup")
    assert clients_house.good("run", clients_house.script(STREAMS)) == "streamed\n"


def test_the_example_streams_shards(clients_house: House) -> None:
    said = clients_house.good(
        "run", "--code", str(ROOT / "examples" / "streaming"), "--",
        "cd $MA_CODE_DIR && python shards.py obs://danlu/shards --count 3 --samples 40",
    )  # fmt: skip
    assert said.endswith("\n120 samples in 3 shards\n")


def test_keys_of_the_jobs_own_are_not_sent_to_the_platform(clients_house: House) -> None:
    script = clients_house.script(
        "import os\n"
        "print(sorted(name for name in os.environ if name.startswith('AWS_')))\n"
        "import moxing as mox\n"
        "print(mox.file.exists('obs://danlu'))\n"
    )
    said = clients_house.good("run", "--env", "AWS_ACCESS_KEY_ID=AKIAOWN", script)
    assert said == "['AWS_ACCESS_KEY_ID']\nTrue\n"
