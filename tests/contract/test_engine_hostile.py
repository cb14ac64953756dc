"""The process engine against programs that do not want to end, and those that leave things."""

from __future__ import annotations

import json
import os
import shlex
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from danlu.model.reason import ReasonCode
from danlu.node import cgroup, identity, tree
from danlu.ports import task_directory as files
from danlu.ports.engine import Launch, Phase, Ref
from danlu.ports.task_directory import ProcessIdentity
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
from tests.contract.tasks import (
    FOREVER,
    agent_of,
    keys,
    kill,
    planned,
    shim_of,
    start,
    survivors,
    wait,
)
from tests.services import offered

HOSTILE = """
    import os, signal, time

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    until = time.monotonic() + 60          # so that a failing test does not leave it for ever

    def away():
        # A child that is nobody's: a session of its own, its parent gone.
        if os.fork() != 0:
            return False
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        return True

    def hop():
        # Never the same pid for long.
        while time.monotonic() < until:
            time.sleep(0.05)
            if os.fork() != 0:
                os._exit(0)
        os._exit(0)

    def breed(more):
        # A bomb that is full after some generations.
        for _ in range(more):
            if away():
                more -= 1
                breed(more)
                break
        while time.monotonic() < until:
            time.sleep(0.05)
        os._exit(0)

    for _ in range(8):
        if away():
            hop()
    if os.fork() == 0:
        os.setpgid(0, 0)
        os.execve("/bin/sleep", ["sleep", "60"], {})   # no environment to be known by
    print("hostile", flush=True)
    breed(4)    # 65 of them
"""


def test_no_process_of_a_hostile_tree_survives_a_stop(house: ProcessHouse) -> None:
    """(cases 22, 77; faults 13, 14, 16)"""
    ref = start(house, HOSTILE)
    said(house, ref, b"hostile")
    wait(lambda: len(survivors(house, ref)) > 50)
    sleeper = find_sleeper(house, ref)
    house.engine.stop(ref, 0.3)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.signal == "SIGKILL"
    assert not survivors(house, ref)
    assert not any(identity.alive(one) for one in sleeper)


BOMB = """
    import os, signal, time

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if os.fork() == 0:
                os.setsid()         # nobody's, and in a session of its own
                if os.fork() != 0:
                    os._exit(0)
        except OSError:
            os.write(1, b"full\\n")
            time.sleep(0.01)
"""
TRIES = int(os.environ.get("HOSTILE_TRIES", "4"))
PIDS = 60


def crowded(shim: int) -> bool:
    return len(tree.descendants({shim})) > PIDS // 2


@pytest.mark.timeout(120 + 10 * TRIES)
def test_a_fork_bomb_leaves_nobody_behind(house: ProcessHouse) -> None:
    """(case 22; faults 13, 14, 16): as often as HOSTILE_TRIES says, one after the other."""
    held = cgroup.here().controllers
    offered("pids" in held, "a limit on processes, for a fork bomb to be safe (root)")
    for _ in range(TRIES):
        ref = start(house, BOMB, pids=PIDS)
        said(house, ref, b"full")
        wait(partial(crowded, shim_of(house, ref)["pid"]))
        began = time.monotonic()
        house.engine.stop(ref, 0.2)
        seen = finish(house, ref)
        assert seen.exit is not None
        assert seen.exit.signal == "SIGKILL"
        assert not survivors(house, ref)
        assert time.monotonic() - began < HANG_S
        house.engine.remove(ref)


def test_no_process_of_a_hostile_tree_survives_a_remove(house: ProcessHouse) -> None:
    ref = start(house, HOSTILE)
    said(house, ref, b"hostile")
    wait(lambda: len(survivors(house, ref)) > 50)
    sleeper = find_sleeper(house, ref)
    house.engine.remove(ref)
    assert see(house, ref).phase is Phase.ABSENT
    assert not survivors(house, ref)
    assert not any(identity.alive(one) for one in sleeper)


def test_a_hostile_tree_is_ended_though_its_agent_is_dead(house: ProcessHouse) -> None:
    ref = start(house, HOSTILE)
    said(house, ref, b"hostile")
    kill(agent_of(house, ref))
    house.engine.stop(ref, 0.2)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.signal == "SIGKILL"
    assert not survivors(house, ref)


def find_sleeper(house: ProcessHouse, ref: Ref) -> list[ProcessIdentity]:
    """Those below the shim that have no environment."""
    below = tree.descendants({shim_of(house, ref)["pid"]})
    found = [identity.of(process.pid) for process in below if _is_sleep(process.pid)]
    return [one for one in found if one is not None]


def _is_sleep(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text("utf-8").strip() == "sleep"
    return False


def test_a_stop_with_a_dead_agent_still_gives_the_grace(house: ProcessHouse) -> None:
    """(case 69)"""
    ref = start(
        house,
        """
        import signal, sys, time
        def leave(*_):
            time.sleep(0.5)
            print("saved", flush=True)
            sys.exit(9)
        signal.signal(signal.SIGTERM, leave)
        print("up", flush=True)
        while True:
            time.sleep(60)
        """,
    )
    said(house, ref, b"up")
    kill(agent_of(house, ref))
    house.engine.stop(ref, HANG_S)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.exit_code == 9
    assert whole_log(house, ref) == b"up\nsaved\n"


def test_a_program_below_a_shell_has_its_grace(house: ProcessHouse) -> None:
    """(cases 69, 72): the shell dies of SIGTERM at once, the training script below it saves."""
    ref = new_ref()
    code = """
        import signal, sys, time
        told = []
        signal.signal(signal.SIGTERM, lambda *_: told.append(1))
        print("up", flush=True)
        while not told:
            time.sleep(0.05)
        time.sleep(3.0)     # longer than what is left behind by other programs may take
        print("saved", flush=True)
    """
    order = planned(house, ref, code)
    line = order.plan.command.removeprefix("exec ")
    order = Launch(ref, "here", replace(order.plan, command=f"cd / && {line}; echo not reached"))
    house.engine.launch([order])
    said(house, ref, b"up")
    house.engine.stop(ref, HANG_S)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.signal == "SIGTERM"
    assert whole_log(house, ref) == b"up\nsaved\n"
    assert "leftovers-killed" not in keys(seen)


def test_what_a_stopped_program_leaves_in_groups_of_its_own_is_asked_too(
    house: ProcessHouse,
) -> None:
    """Nobody looks after them any more, and they need not hold the stop for the whole grace."""
    code = """
        import subprocess, time
        line = "trap 'echo asked; exit' TERM; echo up; while :; do sleep 0.05; done"
        subprocess.Popen(["/bin/sh", "-c", line], start_new_session=True)
        time.sleep(3600)
    """
    ref = start(house, code)
    said(house, ref, b"up")
    house.engine.stop(ref, 20 * HANG_S)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.signal == "SIGTERM"
    assert b"asked\n" in whole_log(house, ref)
    assert "leftovers-killed" not in keys(seen)


def test_the_program_can_read_why_it_is_being_stopped(house: ProcessHouse) -> None:
    """(case 66)"""
    code = """
        import json, os, signal, sys, time
        told = []
        signal.signal(signal.SIGTERM, lambda *_: told.append(1))
        assert not os.path.exists(os.environ["DANLU_STOP_FILE"])
        print("up", flush=True)
        while not told:
            time.sleep(0.05)
        with open(os.environ["DANLU_STOP_FILE"]) as notice:
            print(notice.read(), flush=True)
    """
    stopped = start(house, code)
    limited = start(house, code, time_limit_s=1, grace_s=50)
    said(house, stopped, b"up")
    house.engine.stop(stopped, 40)
    for ref, reason, grace_s in ((stopped, "stop", 40), (limited, "time-limit", 50)):
        finish(house, ref)
        notice = json.loads(whole_log(house, ref).partition(b"\n")[2])
        assert notice["reason"] == reason
        assert notice["grace_s"] == grace_s
        assert notice["deadline"] == notice["at"] + 1000 * grace_s


def test_a_time_limit_counts_from_the_jobs_own_start(house: ProcessHouse) -> None:
    """The process that will be the program is kept ready; how long it has waited is no matter."""
    finish(house, start(house, "pass"))
    time.sleep(2)
    ref = start(house, FOREVER, time_limit_s=1, grace_s=20)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.TIME_LIMIT
    assert seen.started_at is not None
    assert seen.exit.ended_at - seen.started_at >= 900


def test_a_time_limit_holds_without_a_server(house: ProcessHouse) -> None:
    ref = start(house, FOREVER, time_limit_s=1, grace_s=20)
    said(house, ref, b"up")
    house.engine.close()
    wait((house.directory(ref) / files.DONE).exists)
    house.restart()
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.TIME_LIMIT


def test_a_time_limit_holds_after_the_agent_died(house: ProcessHouse) -> None:
    ref = start(house, FOREVER, time_limit_s=2, grace_s=20)
    said(house, ref, b"up")
    kill(agent_of(house, ref))
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.TIME_LIMIT
    assert seen.started_at is not None
    assert seen.exit.ended_at - seen.started_at >= 1900


# ---------------------------------------------------------------- what programs leave


def test_a_success_stays_one_when_a_daemon_had_to_be_killed(house: ProcessHouse) -> None:
    """(cases 7, 61)"""
    ref = start(
        house,
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            while True:
                time.sleep(60)
        print("main ends", flush=True)
        """,
    )
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.problem, seen.problem) == (0, None, None)
    assert whole_log(house, ref) == b"main ends\n"
    note = next(note for note in seen.notes if note.key == "leftovers-killed")
    assert note.params["count"] == 1
    assert not survivors(house, ref)


def test_what_ends_by_itself_shortly_after_is_waited_for(house: ProcessHouse) -> None:
    """(case 6)"""
    ref = start(
        house,
        """
        import os, time
        if os.fork() == 0:
            time.sleep(0.4)
            print("last words", flush=True)
            os._exit(0)
        print("main ends", flush=True)
        """,
    )
    seen = finish(house, ref)
    assert whole_log(house, ref) == b"main ends\nlast words\n"
    assert "leftovers-killed" not in keys(seen)


def test_reopening_stderr_does_not_cut_the_log(house: ProcessHouse) -> None:
    """(cases 6, 7): `echo > /dev/stderr` opens whatever stderr is anew, with O_TRUNC."""
    ref = new_ref()
    line = "echo one; echo two > /dev/stderr; echo three > /dev/stdout; echo four"
    plan = planned(house, ref, "").plan
    house.engine.launch([Launch(ref, "here", replace(plan, command=line))])
    finish(house, ref)
    assert whole_log(house, ref) == b"one\ntwo\nthree\nfour\n"


def test_the_work_is_removed_whatever_became_of_its_permissions(house: ProcessHouse) -> None:
    """(case 102)"""
    ref = start(
        house,
        """
        import os, pathlib
        home = pathlib.Path(os.environ["HOME"])
        deep = home / "a" / "b"
        deep.mkdir(parents=True)
        (deep / "file").write_text("x")
        (home / "link").symlink_to("/etc")
        deep.chmod(0o500)
        (home / "a").chmod(0)
        """,
    )
    seen = finish(house, ref)
    assert seen.problem is None
    directory = house.directory(ref)
    wait(lambda: not list(directory.glob("work*")))
    assert Path("/etc/passwd").exists()


def test_temporary_sockets_have_room_for_their_names(house: ProcessHouse) -> None:
    """Python's multiprocessing binds sockets below TMPDIR, and their paths have 107 bytes."""
    deep = ProcessHouse(house.root / ("x" * 80))
    try:
        ref = start(
            deep,
            """
            import multiprocessing.connection
            listener = multiprocessing.connection.Listener(family="AF_UNIX")
            print("listening")
            """,
        )
        seen = finish(deep, ref)
        assert (seen.exit and seen.exit.exit_code) == 0, whole_log(deep, ref)
        short = Path(deep.engine.layout(ref, planned(deep, ref, "").plan).temp)
        assert not short.is_relative_to(deep.root)
        wait(lambda: not short.is_symlink())
    finally:
        deep.close()


def test_a_log_that_never_pauses_does_not_hold_up_the_end(house: ProcessHouse) -> None:
    ref = new_ref()
    plan = planned(house, ref, "").plan
    line = f"exec {shlex.join(['yes', 'flood'])}"
    house.engine.launch([Launch(ref, "here", replace(plan, command=line))])
    until(house, ref, lambda _: len(house.engine.logs(ref, 0).data) > 1 << 19)
    house.engine.stop(ref, 10)
    began = time.monotonic()
    seen = finish(house, ref)
    assert seen.exit is not None
    assert time.monotonic() - began < HANG_S
    size = (house.directory(ref) / files.LOG).stat().st_size
    assert house.engine.logs(ref, size).ended


SPOILS = """
    import os, pathlib, sys, time
    here = pathlib.Path(os.environ["DANLU_STOP_FILE"]).parent.parent
    for name in ("notes.jsonl", "samples.jsonl", "told/notice.json", "done.json", "stored.jsonl"):
        path = here / name
        path.unlink(missing_ok=True)
        {what}
    print("spoilt", flush=True)
    time.sleep(0.5)
"""


@pytest.mark.parametrize(
    "what",
    [
        "os.mkfifo(path)",
        "path.symlink_to('/dev/zero')",
        "path.mkdir()",
        "path.write_bytes(os.urandom(100_000))",
        'path.write_text(\'{"at": 1e400, "key": "no-such-text"}\\n\' * 1000)',
        "path.write_text('[' * 200_000)",
        'path.write_text(\'{"problem": "x", "detail": [1], "grace_s": "y"}\\n\')',
    ],
)
def test_a_program_that_spoils_its_directory_harms_nobody_else(
    bare_house: ProcessHouse, what: str
) -> None:
    """It has the rights of the user it runs as; the server must not wait, fail or follow."""
    ref = start(bare_house, SPOILS.format(what=what))
    said(bare_house, ref, b"spoilt")
    other = start(bare_house, "print('fine')")
    finish(bare_house, other)
    for _ in range(3):
        bare_house.engine.observe([ref, other])
        bare_house.engine.stats([ref])
        bare_house.engine.logs(ref, 0)
    bare_house.engine.stop(ref, 0.1)
    bare_house.engine.remove(ref)
    assert see(bare_house, ref).phase is Phase.ABSENT
    assert whole_log(bare_house, other) == b"fine\n"
