"""What the process engine promises beyond the contract: how programs start and what they get."""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from danlu.engines.process import ProcessEngine
from danlu.model.job import Parameter
from danlu.model.reason import ReasonCode
from danlu.model.script import TaskPlan
from danlu.model.url import ObjectUrl
from danlu.node import identity, namespaces, tree
from danlu.ports.engine import Launch, Phase
from danlu.stores.folder import FolderStore
from tests.contract.engines import (
    ProcessHouse,
    finish,
    new_ref,
    said,
    see,
    whole_log,
)
from tests.contract.tasks import (
    planned,
    shim_of,
    start,
    wait,
)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[ProcessHouse]:
    """One whose starter is its own: these tests look at what it does."""
    made = ProcessHouse(tmp_path, own_starter=True)
    yield made
    made.close()


SPARE = 3 + bool(namespaces.offered().kind)
"""An agent, its shim, what will be the program, and the first process of its namespace."""


def spare(house: ProcessHouse) -> list[identity.Process]:
    """The agent that is forked ahead and all below it, once each of them waits: until then they
    are about to say with whom they end, and the starter's trial of namespaces looks much the same.
    """
    starter = house.engine._starter._process
    assert starter is not None
    found: list[identity.Process] = []

    def waits() -> bool:
        nonlocal found
        found = tree.descendants({starter.pid})
        shims = [process for process in found if name_of(process.pid) == "danlu-shim"]
        return len(found) == SPARE and bool(shims) and {one.state for one in found} == {"S"}

    wait(waits)
    return found


def name_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text("utf-8").strip()
    return ""


def test_starters_and_spare_agents_end_with_the_server(house: ProcessHouse) -> None:
    ours = {process.key for process in spare(house)}
    house.engine.close()
    wait(lambda: not ours & {process.key for process in tree.processes()})
    house.restart()


def test_no_zombies_are_left(house: ProcessHouse) -> None:
    """(case 24)"""
    before = {process.key for process in tree.processes() if process.state == "Z"}
    for _ in range(5):
        finish(house, start(house, "pass"))
    time.sleep(0.1)
    mine = {process.pid for process in tree.processes() if process.parent == os.getpid()}
    below = mine | {process.pid for process in tree.descendants({os.getpid()})}
    zombies = [
        process
        for process in tree.processes()
        if process.state == "Z"
        and process.key not in before
        and (process.pid in below or process.parent in below)
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
        assert engine.powers.literal_paths is bool(namespaces.offered().kind)
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


def test_a_shim_without_an_order_does_not_outlive_its_agent(house: ProcessHouse) -> None:
    """Not even when it is stopped, as everything below an agent is while it is being ended."""
    found = spare(house)
    below = {process.pid for process in found}
    (agent,) = [process for process in found if process.parent not in below]
    for process in found:
        assert identity.send_to(process, signal.SIGSTOP)
    assert identity.send_to(agent, signal.SIGKILL)
    ours = {process.key for process in found}
    wait(lambda: not ours & {p.key for p in tree.processes() if p.state not in identity.GONE})
    ref = start(house, "print('ran')")
    finish(house, ref)
    assert whole_log(house, ref) == b"ran\n"
