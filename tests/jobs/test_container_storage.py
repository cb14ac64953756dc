"""Jobs in containers reach the storage and the API of a server that listens on loopback only, and
nothing else of its machine; and they do not reach each other.
"""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from danlu.faces.cli import local
from danlu.node import identity
from danlu.node.container import metadata
from danlu.ports import task_directory as files
from danlu.ports.task_directory import ProcessIdentity
from tests.containers import Podman
from tests.faces.cli.house import House, opened, until
from tests.services import obs_clients

pytestmark = pytest.mark.clients

CLIENTS = """
import os, sys
sys.path.insert(0, {packages!r})
import boto3
from obs import ObsClient
import moxing as mox

s3 = boto3.client("s3")
s3.put_object(Bucket="danlu", Key="libraries/1", Body=b"by boto3" * 1000000)
obs = ObsClient(server=os.environ["OBS_ENDPOINT"], security_provider_policy="ENV")
answer = obs.getObject("danlu", "libraries/1", loadStreamInMemory=True)
assert answer.status == 200, (answer.status, answer.errorMessage)
assert bytes(answer.body.buffer) == b"by boto3" * 1000000
assert obs.putContent("danlu", "libraries/2", "by obs").status == 200
assert mox.file.read("obs://danlu/libraries/2") == "by obs"
print("all of", [one["Name"] for one in s3.list_buckets()["Buckets"]])
"""

PROBE = """
import json, os, socket, sys, urllib.request

def reached(host, port):
    try:
        socket.create_connection((host, port), 2).close()
    except OSError as error:
        return type(error).__name__
    return "reached"

def asks(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect((gateway(), port))
        except OSError as error:
            return type(error).__name__
    return "leads there"

def gateway():
    for line in open("/proc/net/route").read().splitlines()[1:]:
        _, destination, found, *_ = line.split()
        if destination == "00000000":
            return socket.inet_ntoa(bytes.fromhex(found)[::-1])

api = os.environ["MA_APIGW_ENDPOINT"]
health = urllib.request.urlopen(api + "/danlu/v1/health", timeout=20).status
print(json.dumps({
    "health": health,
    "other": reached("127.0.0.1", int(sys.argv[1])),
    "metadata": reached("169.254.169.254", 80),
    "host": [reached(address, int(sys.argv[2])) for address in sys.argv[3:]],
    "gateway": reached(gateway(), int(sys.argv[2])),
    "names": [asks(port) for port in (53, 54)],
}), flush=True)
"""


@pytest.fixture(scope="module")
def packages() -> str:
    """Where the clients' libraries lie on this machine."""
    return str(next((obs_clients().resolve().parent / "lib").glob("python3*/site-packages")))


@pytest.fixture(scope="module")
def house(
    tmp_path_factory: pytest.TempPathFactory, podman: Podman, packages: str
) -> Iterator[House]:
    env = {
        "DANLU_ENGINE": "container",
        "DANLU_CONTAINER_SOCKET": podman.socket,
        "DANLU_CONTAINER_IMAGE": podman.image,
        "DANLU_READABLE_PATHS": packages,
    }
    with opened(tmp_path_factory.mktemp("contained"), env) as made:
        yield made


def test_boto3_the_obs_sdk_and_moxing_see_one_storage(house: House, packages: str) -> None:
    script = house.script(CLIENTS.format(packages=packages))
    assert "all of ['danlu']" in house.good("run", script)


def test_the_api_is_there_and_nothing_else_of_the_machine(house: House) -> None:
    """Neither on loopback nor on the machine's other addresses, the bridge's among them."""
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        socket.create_server(("0.0.0.0", 0)) as everywhere,
    ):
        ports = [str(one.getsockname()[1]) for one in (other, everywhere)]
        addresses = metadata._own_addresses()
        assert addresses
        said = house.good("run", house.script(PROBE), *ports, *sorted(addresses))
    found = json.loads(said.splitlines()[-1])
    assert found["health"] == 200
    assert found["other"] == "ConnectionRefusedError"
    assert found["metadata"] != "reached"
    # Where the container has no IPv6 there is no way at all.
    assert {*found["host"]} <= {"PermissionError", "OSError"}
    assert found["gateway"] == "PermissionError"
    assert found["names"] == ["leads there", "PermissionError"]


LISTENS = """
import socket, time
listener = socket.create_server(("0.0.0.0", 5555))
print("address", socket.gethostbyname(socket.gethostname()), flush=True)
time.sleep(3600)
"""


def test_jobs_do_not_reach_each_other(house: House) -> None:
    job = house.good("run", "-d", "-q", "--flavor", "danlu.cpu.1u", house.script(LISTENS)).strip()
    until(lambda: "address" in house.good("logs", job))
    address = house.good("logs", job).split()[1]
    probe = (
        "import socket, sys\n"
        "try:\n socket.create_connection((sys.argv[1], 5555), 3)\n"
        "except OSError as error: print('kept apart')\n"
        "else: print('reached')\n"
    )
    script = house.script(probe)
    said = house.good("run", "--flavor", "danlu.cpu.1u", script, address)
    assert said.splitlines()[-1] == "kept apart"
    # The same address answers to whoever is in that container.
    answered = house.good("exec", job, "--", "python3", "-c", probe, address)
    assert answered == "reached\n"
    house.good("stop", "--wait", job)


STORES = """
import os, sys, time, urllib.request
import moxing as mox

api = os.environ["MA_APIGW_ENDPOINT"]
number = 0
while True:
    began = time.monotonic_ns()
    try:
        urllib.request.urlopen(api + "/danlu/v1/health", timeout=10).read()
        mox.file.write(f"obs://danlu/doors/{number}", str(number))
        assert mox.file.read(f"obs://danlu/doors/{number}") == str(number)
    except Exception as error:
        print("failed", type(error).__name__, error, flush=True)
    else:
        print("stored", began, flush=True)
        number += 1
        if mox.file.exists("obs://danlu/doors-end"):
            break
    time.sleep(0.05)
print("all", number, flush=True)
"""


def test_the_doors_open_again_whatever_is_killed(house: House, podman: Podman) -> None:
    """(faults 1, 2, 47): SIGKILL to the agent, to the server and to the runtime's service, in turn.
    The program goes on, reaches storage and API again each time, and what was stored is there.
    """
    job = house.good("run", "-d", "-q", "--flavor", "danlu.cpu.1u", house.script(STORES)).strip()
    pattern = f"**/tasks/{job}-*/{files.AGENT}"
    until(lambda: [*house.data.glob(pattern)])
    (agent_file,) = house.data.glob(pattern)

    def agent() -> ProcessIdentity:
        found: ProcessIdentity = json.loads(agent_file.read_text("utf-8"))["agent"]
        return found

    def stores_since(instant: int) -> bool:
        whole, _, _ = house.good("logs", job).rpartition("\n")  # the last line may not be whole
        lines = [line.split() for line in whole.splitlines()]
        times = [int(line[1]) for line in lines if line[:1] == ["stored"]]
        return bool(times) and times[-1] > instant

    def kill_agent() -> None:
        first = agent()
        identity.send(first, signal.SIGKILL)
        until(lambda: agent() != first)

    def kill_server() -> None:
        ready = local.read_ready(str(house.data))
        assert ready is not None
        port, obs = (str(urlsplit(ready[one]).port) for one in ("api", "obs"))
        house.kill_server()
        house.env["DANLU_OBS_PORT"] = obs
        house.good("up", "--port", port)

    def kill_runtime() -> None:
        podman.kill()
        podman.start()

    until(lambda: stores_since(0))
    for kill in (kill_agent, kill_server, kill_runtime, kill_agent):
        kill()
        now = time.monotonic_ns()
        until(lambda now=now: stores_since(now))
        assert house.state(job) == "running"
    house.good("obs", "cp", house.script("end", "end"), "obs://danlu/doors-end")
    until(lambda: house.state(job) == "succeeded")
    log = house.good("logs", job).splitlines()
    count = int(log[-1].split()[1])
    assert sum(line.startswith("stored") for line in log) == count
    listed = house.good("obs", "ls", "-r", "obs://danlu/doors/").splitlines()
    for number in range(count):
        assert any(line.endswith(f"doors/{number}") for line in listed), number
    assert "doors-closed" not in house.good("events", job, "--json")


def test_no_network_is_left_when_a_job_has_ended(house: House, podman: Podman) -> None:
    job = house.good(
        "run", "-d", "-q", "--flavor", "danlu.cpu.1u", house.script("print(1)")
    ).strip()
    until(lambda: house.state(job) == "succeeded")
    until(lambda: job not in podman.run("network", "ls", "--format", "{{.Name}}"))


def test_a_data_set_is_brought_once_and_can_only_be_read(house: House, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(70):
        (data / f"{number}.bin").write_bytes(bytes([number]) * (1 << 20))
    house.good("obs", "cp", "-r", f"{data}/", "obs://danlu/data/")
    script = house.script(
        "import os, sys\n"
        "place = sys.argv[1].partition('=')[2]\n"
        "print(len(os.listdir(place)), open(place + '/3.bin', 'rb').read(2))\n"
        "try:\n open(place + '/new', 'w')\n"
        "except OSError as error: print(error.strerror)\n"
    )
    arguments = ("run", "--flavor", "danlu.cpu.1u", "--input", "data=obs://danlu/data/", script)
    for _ in range(2):
        said = house.good(*arguments).splitlines()
        assert said[-2:] == ["70 b'\\x03\\x03'", "Read-only file system"]
    assert "were on this machine already" in house.good("events", "@last")
