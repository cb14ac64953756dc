"""What holds a program in a container, looked at from inside by one that tries to get out."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from danlu.model.job import Access, EngineChoice, Input
from danlu.model.reason import ReasonCode
from danlu.model.resources import Gpu
from danlu.model.url import LocalUrl
from danlu.ports.engine import Launch, Phase, Ref
from tests.containers import Podman
from tests.contract.engines import ContainerHouse, finish, new_ref, said, see, whole_log
from tests.contract.escapes import IN_A_CONTAINER
from tests.contract.tasks import FOREVER, keys, planned, start, wait

MIB = 1 << 20
LIMIT = 96 * MIB
EAT = """
data = []
def eat():
    while True:
        data.append(bytearray(b"x" * (8 << 20)))
"""


COUNTS = """
import itertools, time
for number in itertools.count():
    print(number, flush=True)
    time.sleep(0.02)
"""


def goes_on(house: ContainerHouse, ref: Ref) -> None:
    """A task that counts still does."""
    last = int(house.engine.logs(ref, 0).data.split()[-1])
    said(house, ref, b"\n%d\n" % (last + 3))
    assert see(house, ref).phase is Phase.RUNNING


@pytest.fixture
def house(tmp_path: Path, podman: Podman) -> Iterator[ContainerHouse]:
    made = ContainerHouse(tmp_path, podman)
    yield made
    made.close()


def found(house: ContainerHouse, text: str, /, **changes: Any) -> Any:
    """What a program prints as JSON."""
    ref = start(house, text, **changes)
    seen = finish(house, ref)
    assert seen.exit is not None
    log = whole_log(house, ref)
    assert seen.exit.exit_code == 0, log
    return json.loads(log)


# ---------------------------------------------------------------- limits


def test_a_memory_bomb_ends_itself_and_nothing_else(house: ContainerHouse) -> None:
    """(case 59; fault 17)"""
    neighbour = start(house, COUNTS, memory_bytes=LIMIT)
    said(house, neighbour, b"3\n")
    seen = finish(house, start(house, EAT + "eat()", memory_bytes=LIMIT))
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.signal) == (137, "SIGKILL")
    assert seen.exit.out_of_memory
    assert "limits-unenforced" not in keys(seen)
    goes_on(house, neighbour)
    assert not {"worker-out-of-memory", "memory-short"} & set(keys(see(house, neighbour)))


def test_a_worker_that_ran_out_of_memory_is_told_and_the_program_goes_on(
    house: ContainerHouse,
) -> None:
    """(fault 18)"""
    rest = "import os\nif os.fork() == 0:\n    eat()\nos.wait()\nprint('on', flush=True)\n"
    ref = start(house, EAT + rest, memory_bytes=LIMIT)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.out_of_memory) == (0, False)
    assert whole_log(house, ref).endswith(b"on\n")
    assert "worker-out-of-memory" in keys(seen)


def test_shared_memory_counts_and_is_as_large_as_the_memory(house: ContainerHouse) -> None:
    size = found(
        house,
        """
        import json, os
        shm = os.statvfs("/dev/shm")
        print(json.dumps(shm.f_frsize * shm.f_blocks))
        """,
        memory_bytes=LIMIT,
    )
    assert size == LIMIT


def test_a_fork_bomb_stays_within_its_number(house: ContainerHouse) -> None:
    """(fault 16): its neighbour lives, and nothing of it is left."""
    neighbour = start(house, COUNTS, pids=40)
    said(house, neighbour, b"3\n")
    mark = secrets.token_hex(8)
    text = """
        import os, sys, time
        made = 0
        while True:
            try:
                if os.fork() == 0:
                    time.sleep(60)
                made += 1
            except OSError:
                print(made, flush=True)
                sys.exit(9)
    """
    text += f"    # {mark}\n"
    ref = start(house, text, pids=40)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.PIDS_LIMIT
    assert seen.exit.detail["limit"] == 40
    # Its own first process and the program itself count too.
    assert int(whole_log(house, ref)) <= 38
    goes_on(house, neighbour)
    wait(lambda: not marked(mark))


def marked(text: str) -> list[str]:
    """The processes of this machine whose command line has a text in it."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in one.read_bytes():
                found.append(str(one))
    return found


def test_the_processors_are_a_quota(house: ContainerHouse) -> None:
    """Two that want all they can get, on a tenth of a processor: what they got of the time."""
    share = found(
        house,
        """
        import json, os, time
        children = []
        began = time.monotonic()
        for _ in range(2):
            if (child := os.fork()) == 0:
                while time.monotonic() < began + 2:
                    pass
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        used = os.times()
        spent = used.children_user + used.children_system
        print(json.dumps(spent / (time.monotonic() - began)))
        """,
        cpus=0.1,
    )
    assert 0 < share < 0.2


def test_memory_that_is_a_disk_has_an_end(house: ContainerHouse) -> None:
    """(fault 20): /tmp is half of the memory at most, and that is the program's to see."""
    text = """
        import os, sys
        for place in ("/tmp", "/var/tmp", "/run"):
            size = os.statvfs(place)
            print(place, size.f_frsize * size.f_blocks, flush=True)
        with open("/tmp/all", "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
    """
    ref = start(house, text, memory_bytes=LIMIT)
    seen = finish(house, ref)
    assert seen.exit is not None
    log = whole_log(house, ref).decode()
    assert log.startswith("".join(f"{one} {LIMIT // 2}\n" for one in ("/tmp", "/var/tmp", "/run")))
    assert "No space left on device" in log
    assert seen.exit.problem is ReasonCode.OUT_OF_DISK
    assert not seen.exit.out_of_memory


def test_a_task_sees_as_many_gpus_as_it_has(house: ContainerHouse) -> None:
    """(case 52): neither fewer nor more, before its program begins. The runtime is real, and
    ignores the request; what lists the GPUs is not.
    """
    podman, image, name = house.podman, "localhost/danlu-test-gpus:1", "danlu-test-gpus"
    lists = "#!/bin/sh\\necho GPU 0: H200\\necho GPU 1: H200\\n"
    make = f"printf '{lists}' >/usr/bin/nvidia-smi && chmod 755 /usr/bin/nvidia-smi"
    podman.run("rm", "--force", "--ignore", name)
    podman.run("run", "--network=none", "--name", name, podman.image, "sh", "-c", make)
    podman.run("commit", name, image)
    podman.run("rm", name)
    gpus = [Gpu(f"GPU-{n}", n, "H200", 1 << 30) for n in range(3)]
    engine = EngineChoice(image_url=image)
    for count in (2, 0, 3):
        ref = start(house, "print('ran')", gpus=tuple(gpus[:count]), engine=engine)
        seen = finish(house, ref)
        assert seen.exit is not None
        if count == 2:
            assert whole_log(house, ref) == b"ran\n"
        else:
            assert whole_log(house, ref) == b""
            assert seen.exit.problem is ReasonCode.GPUS_MISSING
            assert (seen.exit.detail["found"], seen.exit.detail["wanted"]) == (2, count)


def test_a_task_whose_gpus_are_not_there_does_not_start(house: ContainerHouse) -> None:
    """(cases 2, 52): the runtime ignored the request; the program would run on the CPU."""
    gpu = Gpu("GPU-00000000-0000-0000-0000-000000000000", 0, "H200", 1 << 30)
    ref = start(house, "print('never')", gpus=(gpu,))
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem in (ReasonCode.GPUS_MISSING, ReasonCode.CONTAINER_FAILED)
    assert b"never" not in whole_log(house, ref)


# ---------------------------------------------------------------- rights and places


def test_the_profile_as_the_program_sees_it(house: ContainerHouse) -> None:
    told = found(
        house,
        """
        import json, os, pathlib
        def lacks(place):
            try:
                (pathlib.Path(place) / "mine").touch()
            except OSError:
                return True
            return False
        status = dict(
            line.split(":", 1)
            for line in pathlib.Path("/proc/self/status").read_text().splitlines()
        )
        print(json.dumps({
            "user": [os.getuid(), os.getgid()],
            "rights": [int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")],
            "gains": status["NoNewPrivs"].strip(),
            "filter": status["Seccomp"].strip(),
            "closed": [p for p in ("/", "/etc", "/usr/lib", "/root", "/home") if lacks(p)],
            "open": [p for p in ("/tmp", "/var/tmp", "/cache", "/home/ma-user",
                     "/home/ma-user/work", "/home/ma-user/modelarts/outputs") if not lacks(p)],
            "processes": sorted(int(p) for p in os.listdir("/proc") if p.isdigit())[:2],
            "links": os.listdir("/sys/class/net"),
            "sockets": [p for p in ("/run/podman/podman.sock", "/var/run/docker.sock")
                        if os.path.exists(p)],
        }))
        """,
    )
    assert told["user"] == [1000, 100]
    assert told["rights"] == [0, 0, 0, 0]
    assert (told["gains"], told["filter"]) == ("1", "2")
    assert len(told["closed"]) == 5
    assert len(told["open"]) == 6
    assert told["processes"][0] == 1
    assert sorted(told["links"]) == ["eth0", "lo"]
    assert told["sockets"] == []


def test_addresses_of_metadata_lead_nowhere(house: ContainerHouse) -> None:
    told = found(
        house,
        """
        import errno, json, socket
        found = {}
        for address in ("169.254.169.254", "169.254.170.2", "100.100.100.200"):
            with socket.socket() as one:
                one.settimeout(20)
                found[address] = errno.errorcode.get(one.connect_ex((address, 80)))
        print(json.dumps(found))
        """,
    )
    assert set(told.values()) == {"EACCES"}


def test_nothing_of_the_machine_can_be_reached(house: ContainerHouse, tmp_path: Path) -> None:
    """The host's rows of the threat model, tried as on the process engine."""
    other = start(house, FOREVER)
    said(house, other, b"up")
    home = tmp_path / "home"
    for name in (".ssh/id_ed25519", ".aws/credentials", ".config/tool/token", ".netrc"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("secret")
    records = tmp_path / "records"
    records.write_text("secret")
    ref = new_ref()
    aim = {
        "victim": os.getpid(),
        "server": os.getpid(),
        "address": id(records),
        "records": str(records),
        "data": str(house.root),
        "other": str(house.directory(other)),
        "own": str(house.directory(ref)),
        "home": str(home),
        "socket": f"danlu-test-{secrets.token_hex(4)}",
        "group": "/sys/fs/cgroup/memory",
        "name": "danlu",
    }
    escape = {"ESCAPE": json.dumps(aim)}
    house.engine.launch([planned(house, ref, IN_A_CONTAINER, environments=escape)])
    finish(house, ref)
    told = json.loads(whole_log(house, ref))
    assert [name for name, what in told.items() if what == "done"] == []
    assert len(told) > 65 or platform.machine() != "x86_64"
    # What the agent removes meanwhile is left out.
    names = [name for _, folders, names in os.walk(house.root) for name in (*folders, *names)]
    assert not [name for name in names if "planted" in name]


def test_an_input_of_this_machine_lies_at_its_place(house: ContainerHouse, tmp_path: Path) -> None:
    data = tmp_path / "some data"
    data.mkdir()
    (data / "file").write_text("here")
    tmp_path.chmod(0o755)
    channel = Input("data", LocalUrl(str(data)), access=Access.ENV)
    ref = start(
        house, "import os; print(open(os.environ['data'] + '/file').read())", inputs=(channel,)
    )
    finish(house, ref)
    assert whole_log(house, ref) == b"here\n"


def test_a_variable_reaches_the_program_as_it_is(house: ContainerHouse) -> None:
    """(cases 92, 94)"""
    odd = {"A": "a b\n$HOME `id` \"x\" 'y' \\", "B": "丹炉\r", "C": ""}
    told = found(
        house,
        "import json, os; print(json.dumps([os.environ[name] for name in 'ABC']))",
        environments=odd,
    )
    assert told == list(odd.values())


# ---------------------------------------------------------------- several tasks


def test_the_tasks_of_a_job_find_each_other_by_name(house: ContainerHouse) -> None:
    text = """
        import os, socket, time
        hosts = os.environ["VC_WORKER_HOSTS"].split(",")
        port = int(os.environ["MA_RENDEZVOUS_PORT"])
        assert socket.gethostbyname(hosts[int(os.environ["VC_TASK_INDEX"])]) == os.environ[
            "MA_CURRENT_IP"]
        if os.environ["VC_TASK_INDEX"] == "0":
            with socket.create_server(("", port)) as door:
                print(door.accept()[0].recv(100).decode(), flush=True)
        else:
            for _ in range(1000):
                try:
                    socket.create_connection((hosts[0], port)).send(b"hello")
                    break
                except OSError:
                    time.sleep(0.05)
    """
    job, token = new_ref().job_id, secrets.token_hex(16)
    refs = [Ref(job, 1, task, token) for task in range(2)]
    orders = [planned(house, ref, text) for ref in refs]
    house.engine.launch(
        [Launch(one.ref, one.node, replace(one.plan, node_count=2)) for one in orders]
    )
    for ref in refs:
        seen = finish(house, ref)
        assert seen.exit is not None
        assert seen.exit.exit_code == 0, whole_log(house, ref)
    assert whole_log(house, refs[0]) == b"hello\n"
    network = f"{house.engine._prefix}{job}-1"  # type: ignore[attr-defined] # the house's own
    assert network in house.podman.run("network", "ls", "--format", "{{.Name}}")
    for ref in refs:
        house.engine.remove(ref)
    assert network not in house.podman.run("network", "ls", "--format", "{{.Name}}")
