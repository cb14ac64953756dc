"""The process engine holds tasks to their flavor: memory, processors, processes."""

from __future__ import annotations

import json
import signal
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pytest

from danlu.model.reason import ReasonCode
from danlu.node import cgroup, identity, tree
from danlu.node.containment import group_of
from danlu.node.directory import TaskDirectory
from danlu.ports.engine import Phase, Ref
from tests.contract.engines import ProcessHouse, finish, said, see, whole_log
from tests.contract.tasks import FOREVER, agent_of, keys, kill, shim_of, start, wait
from tests.services import offered

MIB = 1 << 20
LIMIT = 64 * MIB

EAT = """
    data = []
    def eat():
        while True:
            data.append(bytearray(b"x" * (8 << 20)))
"""


@pytest.fixture(autouse=True)
def groups() -> None:
    """These tests are about limits that are enforced."""
    held = cgroup.here().controllers
    offered(held.issuperset(cgroup.CONTROLLERS), "control groups that may be made (root)")


def group(house: ProcessHouse, ref: Ref) -> cgroup.Group:
    return group_of(TaskDirectory(str(house.directory(ref))))


def eats(rest: str) -> str:
    return textwrap.dedent(EAT) + textwrap.dedent(rest)


def test_a_program_that_eats_all_its_memory_says_so(house: ProcessHouse) -> None:
    """(case 59; fault 17)"""
    seen = finish(house, start(house, eats("eat()"), memory_bytes=LIMIT))
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.signal) == (137, "SIGKILL")
    assert seen.exit.out_of_memory
    assert "worker-out-of-memory" not in keys(seen)


def test_a_worker_that_ran_out_of_memory_is_told_and_the_program_goes_on(
    house: ProcessHouse,
) -> None:
    """(fault 18): the kernel kills one worker, its parent lives and ends as it likes."""
    ref = start(
        house,
        eats("""
            import os
            if os.fork() == 0:
                eat()
            os.wait()
            print("goes on", flush=True)
        """),
        memory_bytes=LIMIT,
    )
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.out_of_memory) == (0, False)
    (note,) = [note for note in seen.notes if note.key == "worker-out-of-memory"]
    assert (note.params["count"], note.params["limit"]) == (1, "64 MiB")


def test_a_worker_that_ran_out_of_memory_is_told_while_the_program_runs(
    house: ProcessHouse,
) -> None:
    ref = start(
        house,
        eats("""
            import os, time
            if os.fork() == 0:
                eat()
            os.wait()
            while True:
                time.sleep(60)
        """),
        memory_bytes=LIMIT,
    )
    wait(lambda: "worker-out-of-memory" in keys(see(house, ref)))
    assert see(house, ref).phase is Phase.RUNNING


def test_a_program_that_fails_for_its_worker_keeps_its_exit_code(house: ProcessHouse) -> None:
    """(case 62)"""
    rest = """
        import os, sys
        if os.fork() == 0:
            eat()
        os.wait()
        sys.exit(3)
    """
    seen = finish(house, start(house, eats(rest), memory_bytes=LIMIT))
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.out_of_memory) == (3, True)
    assert "worker-out-of-memory" in keys(seen)


def test_a_kill_is_not_taken_for_lack_of_memory(house: ProcessHouse) -> None:
    text = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    seen = finish(house, start(house, text, memory_bytes=LIMIT))
    assert seen.exit is not None
    assert (seen.exit.signal, seen.exit.out_of_memory) == ("SIGKILL", False)


def test_what_lies_in_memory_file_systems_counts(house: ProcessHouse) -> None:
    ref = start(
        house,
        """
        import os, tempfile
        with tempfile.TemporaryFile(dir="/dev/shm") as file:
            for _ in range(32):
                file.write(b"x" * (8 << 20))
        """,
        memory_bytes=LIMIT,
    )
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.out_of_memory


FORKS = """
    import os, sys, time
    children = []
    try:
        for _ in range(100):
            pid = os.fork()
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            children.append(pid)
    except BlockingIOError:
        print(len(children), flush=True)
    finally:
        for pid in children:
            os.kill(pid, 9)
    sys.exit({code})
"""


def test_a_program_that_fails_for_want_of_processes_says_so(house: ProcessHouse) -> None:
    """(fault 16)"""
    ref = start(house, FORKS.format(code=7), pids=20)
    seen = finish(house, ref)
    assert 15 <= int(whole_log(house, ref)) < 20
    assert seen.exit is not None
    assert (seen.exit.problem, seen.exit.exit_code) == (ReasonCode.PIDS_LIMIT, 7)
    assert (seen.exit.detail["limit"], seen.exit.detail["exit_code"]) == (20, 7)
    assert keys(seen).count("pids-refused") == 1


def test_a_program_that_makes_do_with_its_processes_succeeds(house: ProcessHouse) -> None:
    seen = finish(house, start(house, FORKS.format(code=0), pids=20))
    assert seen.exit is not None
    assert (seen.exit.problem, seen.exit.exit_code) == (None, 0)
    assert "pids-refused" in keys(seen)


SPINS = """
    import json, os, resource, time
    began = time.monotonic()
    for _ in range(3):
        if os.fork() == 0:
            while time.monotonic() < began + 3:
                pass
            os._exit(0)
    for _ in range(3):
        os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps((used.ru_utime + used.ru_stime) / (time.monotonic() - began)), flush=True)
    time.sleep(60)
"""


def test_a_task_has_the_processors_of_its_flavor_and_no_more(house: ProcessHouse) -> None:
    ref = start(house, SPINS, cpus=1)
    said(house, ref, b"\n")
    cores = json.loads(house.engine.logs(ref, 0).data)
    assert cores < 1.2
    paths = [Path(path) for path in group(house, ref).described().values()]
    stats = [(path / "cpu.stat").read_text() for path in paths if (path / "cpu.stat").exists()]
    counts = dict(line.split() for text in stats for line in text.splitlines())
    # Where others leave the task less than it may have, there is nothing to be held back.
    assert int(counts["nr_throttled"]) > 0 or cores < 0.95


# ---------------------------------------------------------------- the groups themselves


def directories(house: ProcessHouse, ref: Ref) -> list[Path]:
    return [Path(path) for path in group(house, ref).described().values()]


def living(seen: Iterable[identity.Process]) -> set[tuple[int, int]]:
    """Those of the processes seen before that still live, by pid and start."""
    known = {process.key for process in seen}
    return known & {process.key for process in tree.of(pid for pid, _ in known)}


def test_a_group_lives_as_long_as_its_task(house: ProcessHouse) -> None:
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    made = directories(house, ref)
    assert made
    assert all(ref.name in path.name for path in made)
    assert all(path.is_dir() for path in made)
    house.engine.stop(ref, 0)
    finish(house, ref)
    assert not any(path.exists() for path in made)


def test_a_removed_task_leaves_no_group(house: ProcessHouse) -> None:
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    made = directories(house, ref)
    house.engine.remove(ref)
    assert not any(path.exists() for path in made)


def test_a_group_that_was_left_is_swept_with_all_that_is_in_it(house: ProcessHouse) -> None:
    """Its server, agent and shim were killed, and its directory is gone too."""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    made = directories(house, ref)
    inside = tree.of(group(house, ref).pids())
    assert inside
    stop_and_kill = [agent_of(house, ref), shim_of(house, ref)]
    for one in stop_and_kill:
        identity.send(one, signal.SIGSTOP)
    kill(*stop_and_kill)
    house.directory(ref).rename(house.root / "gone")
    house.restart()
    assert not any(path.exists() for path in made)
    assert not living(inside)


def test_who_hides_from_its_variable_is_found_in_its_group(house: ProcessHouse) -> None:
    """Nothing tells whose it is once its agent and shim are dead, but its control group."""
    ref = start(
        house,
        """
        import os
        print(os.getpid(), flush=True)
        if os.fork() == 0:
            os.setsid()
            os.execve("/bin/sleep", ["sleep", "60"], {})
        os.wait()
        """,
    )
    said(house, ref, b"\n")
    wait(lambda: len(group(house, ref).pids()) == 2)
    inside = tree.of(group(house, ref).pids())
    heads = [agent_of(house, ref), shim_of(house, ref)]
    for one in heads:
        identity.send(one, signal.SIGSTOP)
    kill(*heads)
    house.engine.remove(ref)
    assert not living(inside)
