"""What is made of a container runtime's answers, the odd ones too, told by a fake of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.engines.container import runtime
from danlu.model.errors import EngineError, Invalid
from danlu.model.reason import ReasonCode
from danlu.model.rules import image_reference
from danlu.node.container import metadata
from danlu.node.container.api import Api, RuntimeAway, RuntimeRefused
from danlu.node.container.image import Images
from danlu.node.directory import TaskDirectory
from danlu.node.stage import StageFailed
from danlu.ports import task_directory as files
from tests.fakes.container_runtime import FakeRuntime
from tests.services import offered, require

IMAGE = "registry.example.com/team/torch:2.8"
PODMAN = {"Version": "4.3.1", "Components": [{"Name": "Podman Engine"}]}
LIMITS = {"MemoryLimit": True, "CpuCfsQuota": True, "PidsLimit": True, "CgroupVersion": "2"}


@pytest.fixture
def fake() -> Iterator[FakeRuntime]:
    with tempfile.TemporaryDirectory(prefix="danlu-") as name:  # a socket's path is short
        made = FakeRuntime(Path(name))
        yield made
        made.close()


def images(fake: FakeRuntime, tmp_path: Path) -> Images:
    return Images(Api(fake.socket), TaskDirectory(str(tmp_path)), lambda: None)


def notes(tmp_path: Path) -> list[str]:
    text = (tmp_path / files.NOTES).read_text("utf-8")
    return [json.loads(line)["key"] for line in text.splitlines()]


def test_an_image_that_is_here_is_looked_at_once(fake: FakeRuntime, tmp_path: Path) -> None:
    config = {"Env": ["A=1", "PATH=/opt/conda/bin:/usr/bin"]}
    fake.says("GET", f"/images/{IMAGE}/json", 200, {"Id": "sha256:abc1", "Config": config})
    fake.says("POST", "/containers/create", 201, {"Id": "x"})
    fake.says("HEAD", "/containers/look/archive", 200, {})
    fake.says("DELETE", "/containers/look", 204, {})
    found = images(fake, tmp_path).facts(IMAGE, str(tmp_path / "kept"), "look")
    assert (found.id, found.path) == ("abc1", "/opt/conda/bin:/usr/bin")
    assert (found.python, found.sh) == ("/opt/conda/bin/python", True)
    made = fake.asked.count(("POST", "/containers/create"))
    assert images(fake, tmp_path).facts(IMAGE, str(tmp_path / "kept"), "look") == found
    assert fake.asked.count(("POST", "/containers/create")) == made


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"status": "Pulling"}, {"error": "manifest\n unknown"}], "manifest unknown"),
        ([{"error": "unauthorized: log in first"}], "unauthorized: log in first"),
    ],
)
def test_a_pull_that_fails_in_the_middle_is_told(
    fake: FakeRuntime, tmp_path: Path, lines: list[dict[str, str]], said: str
) -> None:
    """(fault 51): the status is 200, the error comes as a line."""
    fake.says("POST", "/images/create", 200, lines)
    with pytest.raises(StageFailed) as caught:
        images(fake, tmp_path).facts(IMAGE, str(tmp_path / "kept"), "look")
    assert caught.value.problem is ReasonCode.IMAGE_FAILED
    assert caught.value.detail == {"image": IMAGE, "detail": said}
    assert notes(tmp_path) == ["image-pulling"]


def test_a_pull_says_how_many_bytes_have_come(fake: FakeRuntime, tmp_path: Path) -> None:
    """(case 41): layers side by side; unpacking counts nothing twice; nonsense counts nothing."""
    lines = [
        {"status": "Downloading", "id": "a", "progressDetail": {"current": 100, "total": 1024}},
        {"status": "Downloading", "id": "b", "progressDetail": {"current": 1024, "total": 1024}},
        {"status": "Downloading", "id": "a", "progressDetail": {"current": 1024, "total": 1024}},
        {"status": "Extracting", "id": "a", "progressDetail": {"current": 9999, "total": 9999}},
        {"status": "Downloading", "id": "c", "progressDetail": {"current": "many"}},
        {"status": "Downloading", "id": "d", "progressDetail": {"current": -5}},
    ]

    def pulled() -> tuple[int, object]:
        found = {"Id": "sha256:abc1", "Config": {}}
        fake.says("GET", f"/images/{IMAGE}/json", 200, found)
        return 200, lines

    fake.answers["POST", "/images/create"] = pulled
    fake.says("POST", "/containers/create", 201, {})
    found = images(fake, tmp_path).facts(IMAGE, str(tmp_path / "kept"), "look")
    assert (found.python, found.sh, found.home) == ("", False, False)
    assert notes(tmp_path) == ["image-pulling", "image-pulled"]
    text = (tmp_path / files.NOTES).read_text("utf-8")
    assert json.loads(text.splitlines()[-1])["params"]["done"] == "2 KiB"


def test_a_refusal_has_the_runtimes_words(fake: FakeRuntime) -> None:
    fake.says("POST", "/containers/x/start", 500, {"message": "no\n room", "cause": "disk"})
    with pytest.raises(RuntimeRefused, match=r"^no room$") as caught:
        Api(fake.socket).call("POST", "/containers/x/start")
    assert caught.value.status == 500


def test_no_answer_is_no_refusal(fake: FakeRuntime, tmp_path: Path) -> None:
    with pytest.raises(RuntimeAway):
        Api(str(tmp_path / "nobody.sock")).call("GET", "/info")
    fake.answers["GET", "/info"] = lambda: (200, "x" * (17 << 20))
    with pytest.raises(RuntimeAway, match="more than"):
        Api(fake.socket).call("GET", "/info")


TRIES = """
import errno, socket, sys
for port in sys.argv[2:]:
    with socket.socket() as one:
        one.setblocking(False)
        print(port, errno.errorcode[one.connect_ex((sys.argv[1], int(port)))])
"""


def test_of_this_machine_only_the_servers_own_ports_can_be_reached() -> None:
    """Where the server listens on an address of the machine, and not on loopback."""
    own = sorted(one for one in metadata._own_addresses() if ":" not in one)
    offered(os.geteuid() == 0 and own, "root, and a network")
    require(shutil.which("ip"), "ip: apt-get install iproute2")
    # A network in which everything leads nowhere: what a rule lets pass is on its way for ever.
    made = "ip link set lo up && ip route add default dev lo && echo up; exec sleep 600"
    apart = ["unshare", "--net", "sh", "-c", made]
    with subprocess.Popen(apart, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        assert (
            metadata.close_machine(child.pid, [f"http://{own[0]}:8778", "http://x.invalid"]) == ""
        )
        words = ["nsenter", f"--net=/proc/{child.pid}/ns/net", sys.executable, "-I", "-S", "-c"]
        tried = subprocess.run(
            [*words, TRIES, own[0], "8778", "53", "8777", "22"], check=True, capture_output=True
        )
        child.kill()
    assert tried.stdout.split() == b"8778 EINPROGRESS 53 EINPROGRESS 8777 EACCES 22 EACCES".split()


def test_what_a_runtime_is(fake: FakeRuntime) -> None:
    fake.says("GET", "/version", 200, PODMAN)
    fake.says("GET", "/info", 200, {**LIMITS, "Rootless": True, "PidsLimit": False})
    found = runtime.look(fake.socket)
    assert (found.name, found.version, found.cgroups, found.rootless) == (
        "podman",
        "4.3.1",
        2,
        True,
    )
    assert found.unenforced == ("pids",)
    assert found.keeps
    docker = {"Version": "27.1", "Components": [{"Name": "Engine"}]}
    info = {**LIMITS, "Runtimes": {"runc": {}, "nvidia": {}}, "SecurityOptions": ["name=seccomp"]}
    other = runtime.described("s", docker, info)
    assert (other.name, other.gpu_driver, other.unenforced) == ("docker", "nvidia", ())
    assert (other.seccomp, other.keeps, other.rootless) == (True, False, False)


def test_a_runtime_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"nobody\.sock"):
        runtime.look(str(tmp_path / "nobody.sock"))


@pytest.mark.parametrize(
    "name",
    [
        "debian", "debian:12", "team/torch:2.8", "registry:5000/a/b_c.d:Tag", "Host.example/a",
        "localhost/danlu-test:1", f"a/b@sha256:{'0' * 64}",
    ],
)  # fmt: skip
def test_images_by_their_names(name: str) -> None:
    image_reference("field", name)


@pytest.mark.parametrize(
    "name", ["", "Debian", "a b", "a//b", "../a", "a:", "a@sha256:1", "-a", "a\n", "http://a/b"]
)
def test_what_names_no_image(name: str) -> None:
    with pytest.raises(Invalid):
        image_reference("field", name)
