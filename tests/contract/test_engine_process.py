"""What the process engine promises beyond the contract: nothing is lost, whatever dies."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import danlu.node
from danlu.engines.process import ProcessEngine, task
from danlu.model.errors import EngineError
from danlu.model.job import Access, Output, Parameter
from danlu.model.reason import ReasonCode
from danlu.model.script import TaskPlan
from danlu.model.url import ObjectUrl
from danlu.node import identity, tree
from danlu.node.directory import publish_json
from danlu.node.ending import marker
from danlu.ports import task_directory as files
from danlu.ports.engine import Launch, Phase, Ref, Seen
from danlu.ports.task_directory import ProcessIdentity
from danlu.stores.folder import FolderStore
from tests.contract.engines import (
    HANG_S,
    ProcessHouse,
    finish,
    new_ref,
    said,
    see,
    until,
    whole_log,
)
from tests.services import ROOT, require

AGENT = [sys.executable, "-I", "-S", "-X", "utf8"]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[ProcessHouse]:
    made = ProcessHouse(tmp_path)
    yield made
    made.close()


def planned(house: ProcessHouse, ref: Ref, text: str, /, **changes: Any) -> Launch:
    """A task that runs `text` in Python, written as a file so that any text will do."""
    script = house.root / f"{ref.name}.py"
    script.write_text(textwrap.dedent(text), "utf-8")
    line = shlex.join(["exec", sys.executable, "-I", str(script)])
    plan = TaskPlan(ref.job_id, 1, ref.task, ref.token, ref.name, command=line)
    return Launch(ref, "here", replace(plan, **changes))


def start(house: ProcessHouse, text: str, /, **changes: Any) -> Ref:
    ref = new_ref()
    house.engine.launch([planned(house, ref, text, **changes)])
    return ref


def read(house: ProcessHouse, ref: Ref, name: str) -> dict[str, Any]:
    """One of the files of the protocol, as soon as it is there."""
    path = house.directory(ref) / name
    wait(path.exists)
    value = json.loads(path.read_text("utf-8"))
    assert isinstance(value, dict)
    return value


def wait(condition: Callable[[], object]) -> None:
    end = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end, "it never comes true"
        time.sleep(0.01)


def kill(*victims: ProcessIdentity) -> None:
    for victim in victims:
        assert identity.send(victim, signal.SIGKILL)


def agent_of(house: ProcessHouse, ref: Ref) -> ProcessIdentity:
    agent: ProcessIdentity = read(house, ref, files.AGENT)["agent"]
    return agent


def shim_of(house: ProcessHouse, ref: Ref) -> ProcessIdentity:
    shim: ProcessIdentity = read(house, ref, files.TASK)["shim"]
    return shim


def survivors(house: ProcessHouse, ref: Ref) -> list[str]:
    """Processes of the task that are still there, by command line."""
    lines = []
    for process in tree.marked(marker(str(house.directory(ref)))):
        with suppress(OSError):  # it has gone meanwhile
            lines.append(Path(f"/proc/{process.pid}/cmdline").read_text("utf-8"))
    return lines


def keys(seen: Seen) -> list[str]:
    return [note.key for note in seen.notes]


SLOW = """
    import sys, time
    print("begin", flush=True)
    time.sleep(1.0)
    print("end", flush=True)
    sys.exit(4)
"""
FOREVER = """
    import time
    print("up", flush=True)
    while True:
        time.sleep(60)
"""


# ---------------------------------------------------------------- who dies


def test_nothing_is_lost_with_the_agent(house: ProcessHouse) -> None:
    """(fault 2)"""
    ref = start(house, SLOW)
    said(house, ref, b"begin")
    kill(agent_of(house, ref))
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.problem, seen.problem) == (4, None, None)
    assert whole_log(house, ref) == b"begin\nend\n"


def test_the_task_goes_on_when_agent_and_server_are_gone(house: ProcessHouse) -> None:
    """(faults 1, 2)"""
    ref = start(house, SLOW)
    said(house, ref, b"begin")
    house.engine.close()
    kill(agent_of(house, ref))
    wait((house.directory(ref) / files.EXIT).exists)
    assert not (house.directory(ref) / files.DONE).exists()
    house.restart()
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.exit_code == 4
    assert whole_log(house, ref) == b"begin\nend\n"


def test_without_its_shim_the_task_ends_at_once(house: ProcessHouse) -> None:
    """(fault 3)"""
    ref = start(
        house,
        """
        import os, time
        print("up", flush=True)
        os.fork()
        os.setpgid(0, 0) if os.fork() == 0 else None
        while True:
            time.sleep(60)
        """,
    )
    said(house, ref, b"up")
    wait(lambda: len(survivors(house, ref)) >= 4)
    kill(shim_of(house, ref))
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.problem, seen.exit.signal) == (ReasonCode.AGENT_LOST, "SIGKILL")
    assert not survivors(house, ref)
    assert whole_log(house, ref) == b"up\n"


def test_agent_and_shim_killed_together_end_the_task(house: ProcessHouse) -> None:
    """(fault 4)"""
    ref = start(
        house,
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
        print("up", flush=True)
        while True:
            time.sleep(60)
        """,
    )
    wait(lambda: house.engine.logs(ref, 0).data == b"up\nup\n")
    kill(agent_of(house, ref), shim_of(house, ref))
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.AGENT_LOST
    assert not survivors(house, ref)


def test_the_program_dies_with_all_who_watch_it(house: ProcessHouse) -> None:
    """(fault 4)"""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    house.engine.close()
    kill(agent_of(house, ref), shim_of(house, ref))
    wait(lambda: not survivors(house, ref))
    house.restart()
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.AGENT_LOST


def test_agents_that_keep_dying_lose_nothing_either(house: ProcessHouse) -> None:
    ref = start(house, SLOW)
    said(house, ref, b"begin")
    killed = 0
    while (seen := see(house, ref)).phase is not Phase.DONE:
        killed += killed < 3 and identity.send(agent_of(house, ref), signal.SIGKILL)
        time.sleep(0.05)
    assert killed == 3
    assert seen.exit is not None
    assert seen.exit.exit_code == 4
    assert whole_log(house, ref) == b"begin\nend\n"


class Gate:
    """An object store that lets nothing through while its gate is shut."""

    def __init__(self, root: Path) -> None:
        self.file = root / "gate"
        self.broken = root / "broken"
        self.store = FolderStore(root / "objects")
        self.store.create_bucket("danlu")
        self.options: dict[str, Any] = {
            "packages": str(ROOT),
            "objects": {
                "kind": "tests.fakes.gated_store:GatedStore",
                "root": str(root / "objects"),
                "gate": str(self.file),
                "broken": str(self.broken),
            },
        }

    def open(self) -> None:
        self.file.touch()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


@pytest.fixture
def gated(gate: Gate, tmp_path: Path) -> Iterator[ProcessHouse]:
    made = ProcessHouse(tmp_path, **gate.options)
    yield made
    gate.open()
    made.close()


CODE = ObjectUrl("danlu", "code/")


def upload(gate: Gate, name: str, text: str) -> None:
    gate.store.put("danlu", f"code/{name}", text.encode())


def test_staging_begins_anew_after_its_agent_died(gate: Gate, gated: ProcessHouse) -> None:
    upload(gate, "main.py", "print('ran', flush=True)\n")
    ref = start(gated, "", code=CODE, boot_file="main.py", command="")
    kill(agent_of(gated, ref))
    until(gated, ref, lambda _: read(gated, ref, files.AGENT)["starts"] > 1)
    gate.open()
    seen = finish(gated, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.problem) == (0, None)
    assert whole_log(gated, ref) == b"ran\n"


def test_agents_that_keep_dying_while_staging_end_the_task(
    gate: Gate, gated: ProcessHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(case 26)"""
    monkeypatch.setattr(task, "REVIVE_AFTER_S", (0.0, 0.1, 0.1))
    upload(gate, "main.py", "print('ran', flush=True)\n")
    ref = start(gated, "", code=CODE, boot_file="main.py", command="")
    while (seen := see(gated, ref)).exit is None:
        identity.send(agent_of(gated, ref), signal.SIGKILL)
        time.sleep(0.05)
    gate.open()
    assert seen.exit.problem is ReasonCode.AGENT_LOST
    assert finish(gated, ref).started_at is None
    assert whole_log(gated, ref) == b""


def test_a_stop_while_staging_means_that_nothing_starts(gate: Gate, gated: ProcessHouse) -> None:
    """(cases 29, 80)"""
    upload(gate, "main.py", "print('ran', flush=True)\n")
    ref = start(gated, "", code=CODE, boot_file="main.py", command="")
    agent_of(gated, ref)
    gated.engine.stop(ref, HANG_S)
    seen = finish(gated, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.signal, seen.exit.problem) == (143, "SIGTERM", None)
    assert seen.started_at is None
    assert whole_log(gated, ref) == b""


WRITES = """
    import os, pathlib, time
    out = pathlib.Path(os.environ["model"])
    for number in range(20):
        (out / f"{number}.bin").write_bytes(bytes([number]) * 1000)
    print("written", flush=True)
"""


def output(name: str = "model") -> Output:
    return Output(name, ObjectUrl("danlu", f"runs/{name}/"), access=Access.ENV)


def stored(gate: Gate, name: str = "model") -> Mapping[str, bytes]:
    prefix = f"runs/{name}/"
    return {
        info.key.removeprefix(prefix): b"".join(gate.store.read("danlu", info.key))
        for info in gate.store.walk("danlu", prefix)
    }


def test_outputs_are_stored_though_the_agent_dies_at_it(gate: Gate, gated: ProcessHouse) -> None:
    """(fault 8)"""
    ref = start(gated, WRITES, outputs=(output(),))
    until(gated, ref, lambda seen: seen.phase is Phase.COLLECTING)
    kill(agent_of(gated, ref))
    gate.open()
    seen = finish(gated, ref)
    assert (seen.problem, seen.exit and seen.exit.exit_code) == (None, 0)
    assert stored(gate) == {f"{n}.bin": bytes([n]) * 1000 for n in range(20)}
    assert keys(seen).count("output-stored") == 1


def test_outputs_that_cannot_be_stored_stay_where_they_are(gate: Gate, gated: ProcessHouse) -> None:
    gate.open()
    gate.broken.touch()
    ref = start(gated, WRITES, outputs=(output(),))
    seen = finish(gated, ref)
    assert seen.exit is not None
    assert seen.exit.exit_code == 0
    assert seen.problem is ReasonCode.OUTPUT_FAILED
    assert "broken by the test" in str(seen.detail["detail"])
    kept = Path(str(seen.detail["path"]))
    assert (kept / "19.bin").read_bytes() == bytes([19]) * 1000
    assert keys(seen).count("output-retry") == 2


# ---------------------------------------------------------------- identities


def test_a_machine_that_was_restarted_has_lost_the_task(house: ProcessHouse) -> None:
    """(fault 11)"""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    house.engine.close()
    kill(agent_of(house, ref), shim_of(house, ref))
    wait(lambda: not survivors(house, ref))
    before_boot(house, ref)
    house.restart()
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.TASK_LOST


def before_boot(house: ProcessHouse, ref: Ref, innocent: int | None = None) -> None:
    """Make a task's records those of an earlier boot; its pids are another process's now."""
    directory = house.directory(ref)
    for name in (files.AGENT, files.TASK):
        record = json.loads((directory / name).read_text("utf-8"))
        for who in ("agent", "shim", "program"):
            if who in record:
                record[who]["boot_id"] = "00000000-0000-0000-0000-000000000000"
                record[who]["pid"] = innocent or record[who]["pid"]
        publish_json(directory, name, record)


@pytest.mark.parametrize("boot", ["this", "earlier"])
def test_a_pid_that_is_used_again_is_never_signalled(house: ProcessHouse, boot: str) -> None:
    """(fault 12)"""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    house.engine.close()
    kill(agent_of(house, ref), shim_of(house, ref))
    wait(lambda: not survivors(house, ref))
    with subprocess.Popen(["sleep", "600"]) as innocent:
        before_boot(house, ref, innocent.pid)
        if boot == "this":
            for name in (files.AGENT, files.TASK):
                path = house.directory(ref) / name
                path.write_text(
                    path.read_text("utf-8").replace(
                        "00000000-0000-0000-0000-000000000000", identity.boot_id()
                    ),
                    "utf-8",
                )
        house.restart()
        house.engine.stop(ref, 0)
        finish(house, ref)
        house.engine.remove(ref)
        assert innocent.poll() is None
        innocent.kill()


def test_a_second_agent_leaves_at_once(house: ProcessHouse) -> None:
    """(fault 6)"""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    program = str(Path(danlu.node.__file__).with_name("__main__.py"))
    second = subprocess.run(
        [*AGENT, program, str(house.directory(ref))], timeout=HANG_S, check=False
    )
    assert second.returncode == files.BUSY_EXIT
    assert see(house, ref).phase is Phase.RUNNING


def test_what_was_never_begun_never_begins(house: ProcessHouse) -> None:
    """(fault 5)"""
    ref = start(house, "print('ran')")
    finish(house, ref)
    directory = house.directory(ref)
    plan = (directory / files.PLAN).read_bytes()
    house.engine.remove(ref)
    directory.mkdir()
    (directory / files.PLAN).write_bytes(plan)
    assert see(house, ref).phase is Phase.LAUNCHING  # somebody may be about to begin
    os.utime(directory / files.PLAN, (1, 1))
    assert see(house, ref).phase is Phase.ABSENT
    assert house.engine.known() == []
    program = str(Path(danlu.node.__file__).with_name("__main__.py"))
    late = subprocess.run([*AGENT, program, str(directory)], timeout=HANG_S, check=False)
    assert late.returncode != 0
    assert see(house, ref).phase is Phase.ABSENT


def test_a_directory_without_an_agent_is_taken_up_by_a_launch(house: ProcessHouse) -> None:
    """(faults 5, 6; case 28)"""
    ref = new_ref()
    order = planned(house, ref, "print('ran')")
    house.engine.launch([order])
    finish(house, ref)
    directory = house.directory(ref)
    plan = (directory / files.PLAN).read_bytes()
    house.engine.remove(ref)
    directory.mkdir()
    (directory / files.PLAN).write_bytes(plan)
    os.utime(directory / files.PLAN, (1, 1))
    house.restart()
    house.engine.launch([order])
    finish(house, ref)
    assert whole_log(house, ref) == b"ran\n"


def test_agents_that_cannot_start_are_an_error_and_leave_nothing(
    house: ProcessHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.engine.close()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    house.restart()
    with pytest.raises(EngineError):
        start(house, "print('ran')")
    assert house.engine.known() == []


def test_an_agent_that_always_crashes_is_given_up(
    house: ProcessHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(case 26)"""
    monkeypatch.setattr(task, "REVIVE_AFTER_S", (0.0, 0.1, 0.1))
    ref = new_ref()
    order = planned(house, ref, "print('ran')")
    house.engine.launch([order])
    said(house, ref, b"ran")
    finish(house, ref)
    (house.directory(ref) / files.DONE).unlink()
    (house.directory(ref) / files.AGENT_ERRORS).unlink()
    (house.directory(ref) / files.AGENT_ERRORS).mkdir()  # no agent gets beyond its first step
    house.restart()
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.exit_code == 0
    assert seen.problem is ReasonCode.OUTPUT_FAILED


def test_starters_and_spare_agents_end_with_the_server(house: ProcessHouse) -> None:
    starter = house.engine._starter._process
    assert starter is not None
    wait(lambda: len(tree.descendants({starter.pid})) == 3)
    ours = {process.key for process in tree.descendants({starter.pid})}
    house.engine.close()
    wait(lambda: not ours & {process.key for process in tree.processes()})
    house.restart()


def test_no_zombies_are_left(house: ProcessHouse) -> None:
    """(case 24)"""
    for _ in range(5):
        finish(house, start(house, "pass"))
    time.sleep(0.1)
    mine = {process.pid for process in tree.processes() if process.parent == os.getpid()}
    below = mine | {process.pid for process in tree.descendants({os.getpid()})}
    zombies = [
        process
        for process in tree.processes()
        if process.state == "Z" and (process.pid in below or process.parent in below)
    ]
    assert not zombies


def test_orphans_of_a_running_task_are_waited_for(house: ProcessHouse) -> None:
    """(case 24)"""
    ref = start(
        house,
        """
        import os, time
        for _ in range(20):
            if os.fork() == 0:
                if os.fork() == 0:
                    time.sleep(0.01)
                os._exit(0)
            os.wait()
        print("up", flush=True)
        time.sleep(60)
        """,
    )
    said(house, ref, b"up")
    shim = shim_of(house, ref)["pid"]

    def zombies() -> list[int]:
        return [p.pid for p in tree.processes() if p.parent == shim and p.state == "Z"]

    wait(lambda: not zombies())
    assert see(house, ref).phase is Phase.RUNNING


def test_an_engine_of_this_machine_offers_it(tmp_path: Path) -> None:
    engine = ProcessEngine(tmp_path, lambda _: Path(sys.prefix), {})
    try:
        (offer,) = engine.capacity()
        assert 1 <= offer.cpus <= (os.cpu_count() or 1)
        assert offer.memory_bytes > 1 << 20
        assert engine.powers.local_paths
        assert not engine.powers.literal_paths
    finally:
        engine.close()


def test_the_layout_is_known_before_the_launch(house: ProcessHouse) -> None:
    ref = new_ref()
    order = planned(house, ref, "import os; print(os.environ['MA_MOUNT_PATH'])")
    wanted = house.engine.layout(ref, order.plan)
    assert not house.directory(ref).exists()
    house.engine.launch([order])
    finish(house, ref)
    assert whole_log(house, ref).decode().strip() == wanted.mount


# ---------------------------------------------------------------- argv and environment


TELL = """
    import json, os, sys
    print(json.dumps([sys.argv[1:], dict(os.environ)]))
"""
TEXTS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=40)
NAMES = st.from_regex(r"\Au[a-zA-Z0-9_]{0,10}\Z")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessHouse]:
    made = ProcessHouse(tmp_path_factory.mktemp("shared"))
    made.root.mkdir(exist_ok=True)
    store = FolderStore(made.objects)
    store.create_bucket("danlu")
    store.put("danlu", "code/tell.py", textwrap.dedent(TELL).encode())
    yield made
    made.close()


ODD = ["a b", '{"k": [1, "x"]}', "'", '"', "$HOME", "`id`", "$(id)", "中文 参数", "a=b", "-", "--",
       "\n", "a\r\nb", "\\", "*", "~", ";", "|", "&&", "#", "!", "\t", " ", ""]  # fmt: skip


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(values=st.lists(TEXTS, max_size=6), env=st.dictionaries(NAMES, TEXTS, max_size=5))
@example(values=ODD, env={f"odd_{i}": value for i, value in enumerate(ODD)})
@pytest.mark.parametrize("way", ["boot_file", "command"])
def test_what_was_sent_is_what_arrives(
    shared: ProcessHouse, way: str, values: list[str], env: dict[str, str]
) -> None:
    """(cases 92, 93, 94, 96)"""
    ref = new_ref()
    parameters = tuple(Parameter(f"p{i}", value) for i, value in enumerate(values))
    plan = TaskPlan(
        ref.job_id,
        1,
        0,
        ref.token,
        "n",
        code=ObjectUrl("danlu", "code/"),
        parameters=parameters,
        environments=env,
        boot_file="tell.py" if way == "boot_file" else "",
        command="" if way == "boot_file" else 'cd / && exec python "$MA_CODE_DIR/tell.py"',
    )
    shared.engine.launch([Launch(ref, "here", plan)])
    seen = finish(shared, ref)
    assert (seen.exit and seen.exit.exit_code) == 0, whole_log(shared, ref)
    argv, environ = json.loads(whole_log(shared, ref))
    assert argv == [f"--p{i}={value}" for i, value in enumerate(values)]
    assert {name: environ[name] for name in env} == env
    shared.engine.remove(ref)


def test_tasks_of_a_gang_share_a_port_and_differ_in_rank(house: ProcessHouse) -> None:
    tell = """
        import json, os
        names = ["MA_NUM_HOSTS", "VC_TASK_INDEX", "VC_WORKER_HOSTS", "MA_RENDEZVOUS_PORT"]
        print(json.dumps([os.environ[name] for name in names]))
    """
    first = new_ref()
    second = replace(first, task=1)
    orders = [planned(house, ref, tell, index=ref.task, node_count=2) for ref in (first, second)]
    house.engine.launch(orders)
    told = []
    for ref in (first, second):
        finish(house, ref)
        told.append(json.loads(whole_log(house, ref)))
    port = told[0][3]
    assert told == [
        ["2", "0", "127.0.0.1,127.0.0.1", port],
        ["2", "1", "127.0.0.1,127.0.0.1", port],
    ]
    assert 1024 < int(port) < 65536
    another = start(house, tell)
    finish(house, another)
    # A task that is launched again after its directory was lost keeps the gang's port.
    house.engine.remove(second)
    house.engine.launch(orders)
    finish(house, second)
    assert json.loads(whole_log(house, second))[3] == port


def test_nothing_of_the_server_leaks_into_the_program(
    house: ProcessHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_SECRET", "canary")
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    house.restart()
    ref = start(
        house,
        """
        import json, os, signal
        ignored = [str(s) for s in signal.valid_signals()
                   if signal.getsignal(s) is signal.SIG_IGN]
        blocked = [str(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
        print(json.dumps({
            "env": dict(os.environ),
            "fds": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1],
            "stdin": os.readlink("/proc/self/fd/0"),
            "leader": os.getpid() == os.getpgid(0) == os.getsid(0),
            "umask": os.umask(0),
            # Python ignores these two itself
            "ignored": sorted(set(ignored) - {str(signal.SIGPIPE), str(signal.SIGXFSZ)}),
            "blocked": blocked,
        }))
        """,
    )
    finish(house, ref)
    told = json.loads(whole_log(house, ref))
    assert "SERVER_SECRET" not in told["env"]
    assert told["env"]["TZ"] == "Asia/Shanghai"
    assert told["fds"] == [0, 1, 2]
    assert told["stdin"] == "/dev/null"
    assert told["leader"]
    assert told["umask"] == 0o022
    assert told["ignored"] == []
    assert told["blocked"] == []


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"working_dir": "/home/ma-user/nowhere"}, 127, "No such file or directory"),
        ({"command": "true " + "x" * 200_000}, 126, "Argument list too long"),
        ({"environments": {"big": "y" * 3_000_000}}, 126, "Argument list too long"),
    ],
)
def test_a_program_that_cannot_be_started_says_why(
    house: ProcessHouse, changes: dict[str, Any], code: int, words: str
) -> None:
    seen = finish(house, start(house, "pass", **changes))
    assert seen.exit is not None
    assert (seen.exit.problem, seen.exit.exit_code) == (ReasonCode.BOOT_FAILED, code)
    assert words in str(seen.exit.detail["detail"])
    assert seen.started_at is None


def test_an_environment_without_an_interpreter_says_so(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "objects")
    store.create_bucket("danlu")
    store.put("danlu", "code/main.py", b"")
    engine = ProcessEngine(
        tmp_path, lambda _: Path("/nowhere"), {"kind": "folder", "root": str(tmp_path / "objects")}
    )
    try:
        ref = new_ref()
        code = ObjectUrl("danlu", "code/")
        plan = TaskPlan(ref.job_id, 1, 0, ref.token, "n", code=code, boot_file="main.py")
        engine.launch([Launch(ref, "here", plan)])
        wait(lambda: engine.observe([ref])[ref].phase is Phase.DONE)
        exit_ = engine.observe([ref])[ref].exit
        assert exit_ is not None
        assert exit_.problem is ReasonCode.BOOT_FAILED
        assert "/nowhere/bin/python" in str(exit_.detail["detail"])
    finally:
        engine.close()


# ---------------------------------------------------------------- memory


def test_a_program_that_ran_out_of_memory_says_so(house: ProcessHouse) -> None:
    """(case 59; faults 17, 18)"""
    group = Path("/sys/fs/cgroup/memory") / f"danlu-test-{os.getpid()}"
    usable = os.access("/sys/fs/cgroup/memory", os.W_OK) and Path("/proc/vmstat").exists()
    require(usable, "a memory control group that tests may make (root, cgroup v1)")
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(64 << 20))
        eats = """
            import os, pathlib, time
            pathlib.Path("{group}/cgroup.procs").write_text(str(os.getpid()))
            {fork}
            data = []
            while True:
                data.append(b"x" * (8 << 20))
        """
        main = start(house, eats.format(group=group, fork=""))
        seen = finish(house, main)
        assert seen.exit is not None
        assert (seen.exit.exit_code, seen.exit.out_of_memory) == (137, True)
        fork = "worker = os.fork()\n            if worker: os.wait(); os._exit(1)"
        worker = start(house, eats.format(group=group, fork=fork))
        seen = finish(house, worker)
        assert seen.exit is not None
        assert (seen.exit.exit_code, seen.exit.out_of_memory) == (1, True)
    finally:
        wait(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()
