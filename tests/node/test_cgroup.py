from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.node import cgroup
from danlu.node.cgroup import Limits, NoGroup, Version1, Version2
from danlu.node.cgroup_mounts import Hierarchies, find
from tests.services import offered

CGROUP2 = Path("/sys/fs/cgroup/unified")
CONTROLLERS = frozenset({"memory", "cpu", "pids"})


def machine(root: Path, own: str, *mounts: str) -> Path:
    """A root with this process's groups and mounts in /proc."""
    proc = root / "proc/self"
    proc.mkdir(parents=True)
    (proc / "cgroup").write_text(own)
    (proc / "mountinfo").write_text("".join(f"{line}\n" for line in mounts))
    return root


def delegated(root: Path, path: str, *, children: str = "", inner: bool = True) -> Path:
    """A group of version 2 that may be written to."""
    group = root / "sys/fs/cgroup" / path
    group.mkdir(parents=True, exist_ok=True)
    (group / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (group / "cgroup.subtree_control").write_text(children)
    (group / "cgroup.procs").write_text("")
    if inner:
        (group / "cgroup.type").write_text("domain\n")
    return group


V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"


def test_version_1_lies_where_this_process_is(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        "5:pids:/a b\n4:memory:/docker/x/y\n2:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n",
        "1 2 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
        "1 2 0:32 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
        "1 2 0:33 / /sys/fs/cgroup/odd\\040name rw - cgroup cgroup rw,pids",
        V2.replace("/sys/fs/cgroup ", "/sys/fs/cgroup/unified "),
    )
    for path in ("cpu,cpuacct", "memory/y", "odd name/a b", "unified"):
        (tmp_path / "sys/fs/cgroup" / path).mkdir(parents=True)
    found = find(root)
    assert (found.version, found.controllers) == (1, CONTROLLERS)
    base = tmp_path / "sys/fs/cgroup"
    assert found.bases == {
        "cpu": base / "cpu,cpuacct",
        "memory": base / "memory/y",
        "pids": base / "odd name/a b",
    }


def test_the_root_of_version_2_takes_groups_beside_processes(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/\n", V2)
    base = delegated(tmp_path, "", children="cpu memory pids", inner=False)
    (base / "cgroup.procs").write_text("1\n")
    assert find(root) == Hierarchies(2, {"unified": base}, CONTROLLERS, 2)


def test_a_delegated_group_above_is_used(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/user/app.slice/mine.scope\n", V2)
    (delegated(tmp_path, "user/app.slice/mine.scope") / "cgroup.procs").write_text("1\n")
    base = delegated(tmp_path, "user/app.slice", children="memory pids cpu")
    assert find(root).bases == {"unified": base}


def test_a_server_steps_aside_in_a_group_of_its_own(tmp_path: Path) -> None:
    """Version 2 takes no processes where there are groups below."""
    root = machine(tmp_path, "0::/danlu.service\n", V2)
    base = delegated(tmp_path, "danlu.service")
    (base / "cgroup.procs").write_text(f"{os.getpid()}\n")
    assert find(root).bases == {"unified": base}
    assert not (base / "danlu-server").exists()
    find(root, prepare=True)
    assert (base / "danlu-server/cgroup.procs").read_text() == str(os.getpid())


def test_a_group_with_others_in_it_is_left_alone(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/shared\n", V2)
    (delegated(tmp_path, "shared") / "cgroup.procs").write_text(f"{os.getpid()}\n1\n")
    assert find(root, prepare=True) == Hierarchies(present=2)
    assert not (tmp_path / "sys/fs/cgroup/shared/danlu-server").exists()


@pytest.mark.parametrize("own", ["", "0::/../outside\n", "nonsense", "4:memory:/\n"])
def test_where_there_is_nothing_nothing_is_used(tmp_path: Path, own: str) -> None:
    assert find(machine(tmp_path, own, V2)).version == 0


def test_version_2_is_told_the_limits(tmp_path: Path) -> None:
    for name in ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.max", "pids.max"):
        (tmp_path / name).touch()
    group = Version2(tmp_path)
    assert group.make(Limits(1 << 30, 2, 100)) == CONTROLLERS
    told = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert told == {
        "memory.max": str(1 << 30),
        "memory.swap.max": "0",
        # Left alone: with it the death of a worker would be the death of all.
        "memory.oom.group": "",
        "cpu.max": "200000 100000",
        "pids.max": "100",
    }


def test_version_2_counts(tmp_path: Path) -> None:
    group = Version2(tmp_path)
    assert (group.oom_kills(), group.refused_forks()) == (None, None)
    (tmp_path / "memory.events").write_text("low 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n")
    (tmp_path / "pids.events").write_text("max 5\n")
    assert (group.oom_kills(), group.refused_forks()) == (2, 5)


def test_a_controller_that_is_missing_is_not_said_to_hold(tmp_path: Path) -> None:
    (tmp_path / "pids.max").touch()
    assert Version2(tmp_path).make(Limits(1, 1, 1)) == {"pids"}
    memory = tmp_path / "memory"
    memory.mkdir()
    (memory / "memory.limit_in_bytes").touch()
    assert Version1({"memory": memory}).make(Limits(1, 1, 1)) == {"memory"}


@pytest.mark.parametrize(
    "data", [None, [], {}, {"memory": 1}, {"memory": "/etc"}, {"unified": "x"}]
)
def test_what_is_no_group_is_none(data: object) -> None:
    assert isinstance(cgroup.described(data), NoGroup)


def test_a_group_is_the_same_when_it_is_read_back() -> None:
    for hierarchies in (
        Hierarchies(1, {"memory": Path("/m"), "freezer": Path("/f")}, CONTROLLERS),
        Hierarchies(2, {"unified": Path("/u")}, CONTROLLERS),
    ):
        group = cgroup.named("/data/tasks/job-1-0", hierarchies)
        assert cgroup.described(group.described()) == group
        assert group != cgroup.named("/other/tasks/job-1-0", hierarchies)


# ---------------------------------------------------------------- the kernel's own


@pytest.fixture(params=["version 1", "version 2", "version 2 before Linux 5.14"])
def real(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[cgroup.Group]:
    """A group of each kind, for killing."""
    name = f"danlu-test-{os.getpid()}"
    group: cgroup.Group
    if request.param == "version 1":
        freezer = Path("/sys/fs/cgroup/freezer")
        offered(os.access(freezer, os.W_OK), "a freezer of control groups version 1 (root)")
        group = Version1({"freezer": freezer / name})
    else:
        mount = Path("/sys/fs/cgroup")
        base = CGROUP2 if CGROUP2.exists() else mount
        usable = (base / "cgroup.procs").exists() and os.access(base, os.W_OK)
        offered(usable, "control groups version 2 that may be made (root)")
        group = Version2(base / name)
    if request.param.endswith("5.14"):
        write = cgroup._write
        monkeypatch.setattr(
            cgroup, "_write", lambda file, text: file.name != "cgroup.kill" and write(file, text)
        )
    group.make(Limits())
    yield group
    group.kill()
    assert group.remove()


BOMB = """
import os, signal, sys, time
for path in sys.argv[1:]:
    with open(path, "w") as group:
        group.write("0")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.setsid()
until = time.monotonic() + 60
while time.monotonic() < until:
    try:
        if len(os.listdir("/proc")) < 400 and os.fork() == 0:
            os.setsid()
            os.write(1, b"up\\n")
    except OSError:
        pass
    time.sleep(0.02)
"""


def test_nobody_in_a_group_escapes_its_end(real: cgroup.Group) -> None:
    """(case 22; faults 13, 14, 16): each forks as fast as it can when the kill comes."""
    bomb = subprocess.Popen([sys.executable, "-c", BOMB, *real.entrances()], stdout=subprocess.PIPE)
    assert bomb.stdout is not None
    for _ in range(60):
        assert bomb.stdout.readline() == b"up\n"
    bomb.stdout.close()
    assert len(real.pids()) > 30
    real.kill()
    assert bomb.wait(60) == -signal.SIGKILL
    until = time.monotonic() + 60
    while real.pids():
        assert time.monotonic() < until, "somebody lives"
        real.kill()
        time.sleep(0.01)


SPIN = """
import sys, time
for path in sys.argv[1:]:
    with open(path, "w") as group:
        group.write("0")
began = time.monotonic()
while time.monotonic() < began + 3:
    pass
print(time.process_time() / (time.monotonic() - began))
"""


def test_a_quota_of_a_tenth_is_a_tenth() -> None:
    hierarchies = cgroup.here()
    offered("cpu" in hierarchies.controllers, "control groups for CPU that may be made (root)")
    group = cgroup.named(f"/tests/{os.getpid()}", hierarchies)
    group.make(Limits(cpus=0.1))
    try:
        spin = [sys.executable, "-c", SPIN, *group.entrances()]
        done = subprocess.run(spin, stdout=subprocess.PIPE, check=True)
        # A busy machine would give a third, an idle one all.
        assert float(done.stdout) < 0.2
    finally:
        assert group.remove()
