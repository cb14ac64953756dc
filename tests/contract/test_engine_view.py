"""What a program of the process engine finds at the paths that ModelArts documents, and what it
does not find of others.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from danlu.model.job import Access, Input, Output
from danlu.model.url import LocalUrl, ObjectUrl
from danlu.node import identity, namespaces, tree, view
from danlu.ports import task_directory as files
from danlu.ports.engine import Launch
from danlu.stores.folder import FolderStore
from tests.contract.engines import ProcessHouse, finish, new_ref, said, whole_log
from tests.contract.tasks import (
    FOREVER,
    agent_of,
    keys,
    kill,
    planned,
    read,
    shim_of,
    start,
    wait,
)
from tests.services import offered


@pytest.fixture(autouse=True)
def allowed() -> None:
    """These tests are about namespaces."""
    offered(namespaces.offered().kind, "namespaces (root, or user namespaces)")


LITERAL = """
    import os, pathlib, sys
    modelarts = pathlib.Path("/home/ma-user/modelarts")
    sample = modelarts / "inputs" / "data_url_0" / "a.txt"
    print(sample.read_text())
    pathlib.Path("/cache/x").write_text("scratch")
    (modelarts / "outputs" / "train_url_0" / "model.bin").write_bytes(b"weights")
    (modelarts / "log" / "own.log").write_text("line")
    assert os.getcwd() == os.environ["HOME"] == "/home/ma-user"
    assert os.environ["MA_MOUNT_PATH"] == str(modelarts)
    assert os.environ["MA_CACHE_DIR"] == "/cache"
    assert os.path.isdir("/home/ma-user/work")
    assert os.path.realpath(sample.parent) == str(sample.parent)
    print(sys.argv[1:])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a home")
def test_a_home_of_the_machine_by_the_same_name_is_not_the_tasks(house: ProcessHouse) -> None:
    machines = Path("/home/ma-user")
    made = not machines.exists()
    machines.mkdir(exist_ok=True)
    try:
        ref = start(house, "import os\nprint(sorted(os.listdir('/home/ma-user')))")
        finish(house, ref)
        assert whole_log(house, ref).decode() == "['modelarts', 'work']\n"
    finally:
        if made:
            machines.rmdir()


def test_a_script_finds_the_literal_paths(house: ProcessHouse, tmp_path: Path) -> None:
    data = tmp_path / "set"
    data.mkdir()
    (data / "a.txt").write_text("sample")
    store = FolderStore(Path(house.objects))
    store.create_bucket("danlu")
    ref = start(
        house,
        LITERAL,
        inputs=(Input("data_url", LocalUrl(str(data))),),
        outputs=(Output("train_url", ObjectUrl("danlu", "out/")),),
    )
    seen = finish(house, ref)
    log = whole_log(house, ref).decode()
    assert log == (
        "sample\n['--data_url=/home/ma-user/modelarts/inputs/data_url_0',"
        " '--train_url=/home/ma-user/modelarts/outputs/train_url_0']\n"
    )
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.problem) == (0, None)
    assert b"".join(store.read("danlu", "out/model.bin")) == b"weights"
    assert "paths-mapped" not in keys(seen)


def test_a_data_directory_in_a_hidden_place_of_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where people have it who say nothing else: what is hidden there lies in what is hidden."""
    home = tmp_path / "home"
    place = home / ".local" / "share" / "danlu"
    place.mkdir(parents=True)
    (home / ".netrc").write_text("password")
    monkeypatch.setenv("HOME", str(home))
    house = ProcessHouse(place)
    try:
        secret = str(home / ".netrc")
        ref = start(house, f"print('began', flush=True); print(open({secret!r}).read())")
        seen = finish(house, ref)
        assert seen.exit is not None
        assert seen.problem is None
        log = whole_log(house, ref)
        assert log.startswith(b"began\n")
        assert b"password" not in log
    finally:
        house.close()


def test_what_lies_in_something_hidden_is_not_hidden_once_more() -> None:
    paths = ["/srv/a/engine", "/home/u/.local", "/home/u/.local/share/x", "/srv/a", "/srv/ab"]
    assert sorted(view.outermost(paths)) == ["/home/u/.local", "/srv/a", "/srv/ab"]


def test_code_from_storage_lies_where_modelarts_puts_it(house: ProcessHouse) -> None:
    store = FolderStore(Path(house.objects))
    store.create_bucket("danlu")
    store.put("danlu", "code/train.py", b"import other; print(__file__, other.__file__)")
    store.put("danlu", "code/other.py", b"")
    ref = new_ref()
    plan = replace(
        planned(house, ref, "").plan,
        command="",
        boot_file="train.py",
        code=ObjectUrl("danlu", "code/"),
    )
    house.engine.launch([Launch(ref, "here", plan)])
    finish(house, ref)
    place = "/home/ma-user/modelarts/user-job-dir/code"
    assert whole_log(house, ref).decode() == f"{place}/train.py {place}/other.py\n"


def test_the_layout_tells_the_literal_paths_beforehand(house: ProcessHouse) -> None:
    assert house.engine.powers.literal_paths
    ref = new_ref()
    assert house.engine.layout(ref, planned(house, ref, "").plan).literal


def test_two_tasks_share_no_temporary_files(house: ProcessHouse) -> None:
    """The same names in /tmp, /var/tmp and /dev/shm are two files in two tasks."""
    code = """
        import os, pathlib, sys, time
        for place in ("/tmp", "/var/tmp", "/dev/shm"):
            file = pathlib.Path(place, f"danlu-shared-{place.count('/')}")
            assert not file.exists(), file
            file.write_text(os.environ["DANLU_JOB_ID"])
        print("up", flush=True)
        while not os.path.exists("/tmp/go"):
            time.sleep(0.02)
            if os.path.exists(os.environ["DANLU_STOP_FILE"]):
                break
        print(pathlib.Path("/dev/shm/danlu-shared-2").read_text(), flush=True)
    """
    first, second = start(house, code, grace_s=60), start(house, code, grace_s=60)
    for ref in (first, second):
        said(house, ref, b"up")
        assert not Path("/dev/shm/danlu-shared-2").exists()
        assert not Path("/tmp/danlu-shared-1").exists()
    for ref in (first, second):
        # Also proves that the notice is seen in there.
        house.engine.stop(ref, 60)
        finish(house, ref)
        assert not whole_log(house, ref).decode().startswith("up\nup")


def test_a_program_sees_its_own_processes_only(house: ProcessHouse) -> None:
    ref = start(
        house,
        """
        import os
        mine = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
        print(os.getpid(), mine, open("/proc/1/comm").read().strip(), flush=True)
        """,
    )
    finish(house, ref)
    assert whole_log(house, ref) == b"2 [1, 2] danlu-init\n"


def test_what_is_mounted_for_a_task_is_seen_by_nobody_else(house: ProcessHouse) -> None:
    before = Path("/proc/self/mounts").read_text()
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    assert Path("/proc/self/mounts").read_text() == before
    assert not Path("/home/ma-user").exists()
    assert not list((house.directory(ref) / files.VIEW).iterdir())


# ---------------------------------------------------------------- the end of a namespace


STRAYS = """
    import os, signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execve("/bin/sleep", ["sleep", "60"], {})
            os._exit(0)
    print("up", flush=True)
    time.sleep(60)
"""


def test_with_its_shim_all_of_a_task_is_gone(house: ProcessHouse) -> None:
    """(fault 3): by the kernel; nobody has to look for anybody."""
    ref = start(house, STRAYS)
    said(house, ref, b"up")
    shim = shim_of(house, ref)
    wait(lambda: len(tree.descendants({shim["pid"]})) >= 7)
    # The namespace's first process is gone when its zombies are, which only the agent can see to.
    first = read(house, ref, files.TASK)["first"]["pid"]
    below = {p.key for p in tree.descendants({shim["pid"]}) if p.pid != first}
    agent = agent_of(house, ref)
    identity.send(agent, signal.SIGSTOP)  # it is to have no part in it
    kill(shim)
    wait(lambda: not below & {p.key for p in tree.processes() if p.state not in identity.GONE})
    identity.send(agent, signal.SIGCONT)


def test_exit_codes_and_signals_come_from_the_kernel(house: ProcessHouse) -> None:
    for code, exit_code, name in (
        ("import sys; sys.exit(7)", 7, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", 139, "SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143, "SIGTERM"),
    ):
        seen = finish(house, start(house, code))
        assert seen.exit is not None
        assert (seen.exit.exit_code, seen.exit.signal) == (exit_code, name)


def test_the_first_process_is_not_counted_as_the_tasks(house: ProcessHouse) -> None:
    """Nor as something it left behind: there is no note of it."""
    ref = start(house, "import time; print('up', flush=True); time.sleep(2)")
    said(house, ref, b"up")
    first = read(house, ref, files.TASK)["first"]
    assert identity.alive(first)
    seen = finish(house, ref)
    assert "leftovers-killed" not in keys(seen)
    assert not identity.alive(first)


def test_the_server_can_look_into_a_program(house: ProcessHouse) -> None:
    """As py-spy does: memory map, memory and files by the pid that is on record."""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    pid = read(house, ref, files.TASK)["program"]["pid"]
    assert "python" in Path(f"/proc/{pid}/maps").read_text()
    with Path(f"/proc/{pid}/mem").open("rb"):
        pass
    inner = Path(f"/proc/{pid}/root/home/ma-user")
    assert inner.is_dir() or os.geteuid() != 0
    status = Path(f"/proc/{pid}/status").read_text()
    assert [line.split()[1:] for line in status.splitlines() if line.startswith("NSpid")] == [
        [str(pid), "2"]
    ]


def test_tasks_of_a_gang_are_hosts_of_their_own_to_nccl(house: ProcessHouse) -> None:
    tell = "import json, os; print(json.dumps(os.environ.get('NCCL_HOSTID')))"
    first = new_ref()
    second = replace(first, task=1)
    house.engine.launch(
        [planned(house, ref, tell, index=ref.task, node_count=2) for ref in (first, second)]
    )
    told = []
    for ref in (first, second):
        finish(house, ref)
        told.append(json.loads(whole_log(house, ref)))
    assert len(set(told)) == 2
    assert None not in told


def test_an_input_below_a_hidden_directory_is_seen(house: ProcessHouse, tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("one file")
    ref = start(
        house,
        "import os, pathlib; print((pathlib.Path(os.environ['data']) / 'data.txt').read_text())",
        inputs=(Input("data", LocalUrl(str(data)), access=Access.ENV),),
    )
    finish(house, ref)
    assert whole_log(house, ref) == b"one file\n"
