"""A lock becomes a container image: the same packages, closed doors, and the same digest again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pip
import pytest

from danlu.images import built
from danlu.images.known import Image
from danlu.images.lock import canonical
from danlu.images.oci import build as oci
from danlu.images.oci import builder as builders
from danlu.images.oci.build import Wish
from danlu.images.oci.builder import Builder
from danlu.images.oci.layout import LEFT_OUT
from danlu.images.store import ImageStore
from danlu.model.errors import Missing, PlatformError, Refused
from danlu.model.image import Built
from tests.containers import Podman, podman
from tests.images.small import World

__all__ = ["podman"]

pytestmark = [pytest.mark.timeout(600), pytest.mark.enable_socket]

ODD = "two words, 'quotes', \"more\", $HOME `x` 丹炉\nand a second line"
UNKNOWN = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null")
SSH = ("ssh", *UNKNOWN, "-p", "2222", "-q")


class House:
    """A built image, and the podman that has it."""

    def __init__(self, podman: Podman, world: World, made: Built) -> None:
        self.podman = podman
        self.world = world
        self.made = made

    def run(self, *words: str) -> str:
        """What a program in the image prints."""
        return self.podman.run("run", "--rm", "--network=none", *words)


@pytest.fixture(scope="module")
def house(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    patch = pytest.MonkeyPatch()
    for name, value in podman.variables().items():
        patch.setenv(name, value)
    world = World(tmp_path_factory.mktemp("oci"))
    yield House(podman, world, make(podman, world))
    patch.undo()


def make(podman: Podman, world: World, *, fresh: bool = False) -> Built:
    image = Image(world.id, "small", world.lock)
    wish = Wish(podman.image, "base", fresh=fresh)
    return oci.build(world.store, image, builders.find("podman"), wish, world.making)


def test_pip_finds_the_same_packages_in_container_and_environment(
    house: House, tmp_path: Path
) -> None:
    """To the byte: names, versions, and in which order."""
    own = Path(pip.__file__).parent
    (tmp_path / "pip").symlink_to(own)
    freeze = ("-m", "pip", "freeze", "--all", "--exclude", "pip")
    here = subprocess.run(
        [house.world.environment() / "bin" / "python", *freeze],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    there = house.run("-v", f"{own}:/pip/pip:ro", "-e", "PYTHONPATH=/pip", house.made.oci_id,
                      "python", *freeze)  # fmt: skip

    assert there == here
    assert "torch==2.13.0+cpu" in here


def test_its_files_are_those_of_the_environment(house: House) -> None:
    """Every one of them, the lists of files and bytecode aside."""
    script = "cd /opt/danlu/environment && find . -type f -exec sha256sum {} +"
    lines = house.run(house.made.oci_id, "sh", "-c", script).splitlines()
    there = {path: digest for digest, _, path in (line.partition("  ") for line in lines)}
    root = house.world.environment()
    lines = subprocess.run(
        ["sh", "-c", "find . -type f -exec sha256sum {} +"],
        cwd=root, capture_output=True, check=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    here = {path: digest for digest, _, path in (line.partition("  ") for line in lines)}
    odd = ("RECORD", ".pyc", *sorted(LEFT_OUT))
    plain = {path: digest for path, digest in here.items() if not path.endswith(odd)}

    assert plain
    assert {path: there.get(path) for path in plain} == plain
    assert not [path for path in there if path.endswith(".pyc")]


def test_it_starts_as_ma_user_under_tini_with_a_home(house: House) -> None:
    script = "id -un; id -u; id -g; cat /proc/1/comm; touch ~/x && echo writable"
    said = house.run(house.made.oci_id, "sh", "-c", script).split()

    assert said == ["ma-user", "1000", "100", "tini", "writable"]


def test_nothing_in_it_lets_anybody_in(house: House) -> None:
    """No password, no host key, no build secret, no log, no list of an earlier moment."""
    script = """
        cut -d: -f2,3 /etc/shadow | sort -u
        ls /etc/ssh/ssh_host_* /run/danlu-ca.crt /root/.ssh /etc/shadow- 2>/dev/null
        find / -xdev -name .git -o -xdev -name '*.pem' -path '/home/*'
        find /var/log /tmp /var/lib/apt/lists /var/cache/apt -type f
    """
    said = house.run("--user", "0", house.made.oci_id, "sh", "-c", script).split()

    assert said == ["*:"]


def test_the_layers_are_in_the_order_of_how_seldom_they_change(house: House) -> None:
    history = house.podman.run(
        "history", "--no-trunc", "--format", "{{.CreatedBy}}", house.made.oci_id
    )
    steps = [line for line in history.splitlines() if "COPY" in line or "prepare" in line]

    facts = builders.find("podman").inspect(house.made.oci_id)
    assert facts is not None
    # The base's, Debian's, torch's, the others', what starts. None of NVIDIA's is in this image.
    assert len(facts.layers) == 5
    assert len(steps) >= 4
    assert house.made.reference.startswith("localhost/danlu/small:")
    assert built.reference(house.world.store, house.world.id) == house.made.oci_id
    assert [one for one in house.made.apt if one.startswith("tini=")]


@pytest.mark.long
def test_two_builds_give_the_same_image(house: House) -> None:
    """Of layers that are all made anew, from another environment and another cache."""
    other = World(house.world.store.root.parent / "elsewhere")

    made = [make(house.podman, one, fresh=True) for one in (house.world, other)]

    assert made[0].oci_id == made[1].oci_id
    builder = builders.find("podman")
    facts = [builder.inspect(one.oci_id) for one in made]
    assert facts[0] is not None
    assert facts[1] is not None
    assert facts[0].digests == facts[1].digests


class Instance:
    """The image as it starts by itself: sshd, and JupyterLab where it has one."""

    def __init__(self, house: House, folder: Path, *variables: str) -> None:
        self.podman = house.podman
        self.name = f"danlu-test-{uuid4().hex[:8]}"
        self.key = folder / "key"
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)], check=True
        )
        keys = self.key.with_suffix(".pub").read_text()
        words = [word for one in variables for word in ("--env", one)]
        self.podman.run("run", "--detach", "--name", self.name, "--env",
                        f"DANLU_AUTHORIZED_KEYS={keys}", *words, house.made.oci_id)  # fmt: skip
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        self.address = self.podman.run("inspect", "--format", form, self.name).strip()

    def ssh(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        where = ["-i", str(self.key), "-o", "BatchMode=yes", f"ma-user@{self.address}"]
        return subprocess.run(
            [*SSH, *where, *words], input=typed, capture_output=True, text=True, check=False
        )

    def ready(self) -> None:
        end = time.monotonic() + 60
        while self.ssh("true").returncode != 0:
            assert time.monotonic() < end, self.podman.run("logs", self.name)
            time.sleep(0.2)

    def remove(self) -> None:
        self.podman.run("rm", "--force", "--time", "0", self.name)


@pytest.fixture
def instance(house: House, tmp_path: Path) -> Iterator[Instance]:
    made = Instance(house, tmp_path, f"ODD={ODD}", "JUPYTER_TOKEN=secret-of-the-notebook")
    try:
        made.ready()
        yield made
    finally:
        made.remove()


def test_a_remote_command_and_a_login_see_the_environment(instance: Instance) -> None:
    """PATH, LD_LIBRARY_PATH and every variable, whatever is in it; /etc/profile takes none away."""
    code = "import os, sys, json; print(json.dumps([sys.executable, dict(os.environ)]))"

    remote = instance.ssh(f"python -c '{code}'")
    login = instance.ssh("-T", typed=f"python -c '{code}'\nexit\n")

    for answer in (remote, login):
        python, variables = json.loads(answer.stdout.splitlines()[-1])
        assert python.startswith("/opt/danlu/environment/bin/python"), answer.stderr
        assert variables["ODD"] == ODD
        assert variables["LD_LIBRARY_PATH"].startswith("/usr/local/nvidia/lib64")
        assert "JUPYTER_TOKEN" not in variables
    assert instance.ssh("exit 7").returncode == 7


def test_without_a_key_nobody_comes_in(instance: Instance, tmp_path: Path) -> None:
    where = f"ma-user@{instance.address}"
    offered = subprocess.run(
        [*SSH[:-1], "-v", "-o", "PubkeyAuthentication=no", "-o", "BatchMode=yes", where],
        capture_output=True,
        text=True,
        check=False,
    )
    assert offered.returncode == 255
    assert "Authentications that can continue: publickey\n" in offered.stderr
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    words = ["-i", str(other), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", where, "true"]
    assert subprocess.run([*SSH, *words], check=False).returncode == 255


def test_it_stops_when_it_is_told_to(instance: Instance) -> None:
    """By itself: nobody has to be killed, although somebody is signed in."""
    with subprocess.Popen(
        [*SSH, "-i", str(instance.key), f"ma-user@{instance.address}", "echo in; sleep 600"],
        stdout=subprocess.PIPE,
    ) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"in\n"
        instance.podman.run("stop", "--time", "60", instance.name)
        session.kill()

    assert instance.podman.run("wait", instance.name).strip() == "0"


def test_without_jupyter_and_ssh_keys_it_is_a_program_like_others(house: House) -> None:
    assert house.run(house.made.oci_id, "python", "-c", "print(6 * 7)").strip() == "42"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        house.run(house.made.oci_id, "sh", "-c", "exit 9")
    assert caught.value.returncode == 9


@pytest.mark.long
def test_it_goes_to_a_file_and_comes_back_elsewhere(house: House, tmp_path: Path) -> None:
    builder = builders.find("podman")
    archive = tmp_path / "small.tar"
    builder.save(house.made.reference, archive)
    other = ImageStore(tmp_path / "other")

    loaded = oci.load(other, archive, builder)

    assert (loaded.id, loaded.oci_id, loaded.name) == (house.made.id, house.made.oci_id, "small")
    assert canonical(other.lock(loaded.id)) == canonical(house.world.lock)
    assert loaded.apt == house.made.apt


@pytest.mark.long
def test_a_file_that_is_none_of_ours_is_refused(house: House, tmp_path: Path) -> None:
    archive = tmp_path / "base.tar"
    house.podman.run(
        "save", "--quiet", "--format", "oci-archive", "-o", str(archive), house.podman.image
    )

    with pytest.raises(Refused) as caught:
        oci.load(ImageStore(tmp_path / "other"), archive, builders.find("podman"))

    assert caught.value.key == "image-not-ours"


@pytest.mark.parametrize(
    ("file", "word"),
    [
        ("RUN touch /usr/lib/x86_64-linux-gnu/libcuda.so.535.104.05", "libcuda.so.535.104.05"),
        ("RUN rm /usr/bin/apt-get", "apt-get"),
    ],
    ids=["driver", "no-apt"],
)
def test_a_base_that_will_not_do_is_refused_by_name(
    house: House, tmp_path: Path, file: str, word: str
) -> None:
    (tmp_path / "Containerfile").write_text(f"FROM {house.podman.image}\n{file}\n")
    tag = f"localhost/danlu-test-base:{uuid4().hex[:8]}"
    house.podman.run("build", "--quiet", "--timestamp", "0", "-t", tag, str(tmp_path))
    image = Image(house.world.id, "small", house.world.lock)
    try:
        wish = Wish(tag, "base")
        with pytest.raises(PlatformError) as caught:
            oci.build(house.world.store, image, builders.find("podman"), wish, house.world.making)
    finally:
        house.podman.run("rmi", "--force", tag)

    assert word in str(caught.value)


def test_what_was_not_built_or_has_gone_is_said(house: House, tmp_path: Path) -> None:
    builder = builders.find("podman")
    image = Image(house.world.id, "small", house.world.lock)
    with pytest.raises(Missing, match="danlu image build small"):
        oci.need(ImageStore(tmp_path), image, builder)
    assert oci.need(house.world.store, image, builder) == house.made
    assert builder.inspect("localhost/danlu/there-is-none:1") is None


def test_docker_is_asked_in_its_own_words(tmp_path: Path) -> None:
    """Docker writes dates of files anew only if it is told to."""
    said = tmp_path / "said"
    program = tmp_path / "docker"
    program.write_text(
        f"#!{sys.executable}\nimport sys, os\n"
        f"open({str(said)!r}, 'a').write(repr([os.environ['DOCKER_BUILDKIT'], *sys.argv[1:]]))\n"
        "open(sys.argv[sys.argv.index('--iidfile') + 1], 'w').write('sha256:' + 'd' * 64)\n"
    )
    program.chmod(0o755)

    found = Builder(str(program)).build(tmp_path, "base:1", "tag:1", "", fresh=True)

    words = said.read_text()
    assert found == f"sha256:{'d' * 64}"
    for word in (
        "'buildx', 'build'",
        "rewrite-timestamp=true",
        "SOURCE_DATE_EPOCH=0",
        "'--no-cache'",
    ):
        assert word in words
