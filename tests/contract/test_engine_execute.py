"""Commands beside a task's program: the same for every engine that runs real programs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.model import execute as words
from danlu.model.errors import EngineError, Refused
from danlu.model.execute import Command
from danlu.node import identity
from danlu.ports import task_directory as files
from danlu.ports.engine import Execution, Phase, Ref
from tests.contract.engines import (
    HANG_S,
    HOUSES,
    ContainerHouse,
    ProcessHouse,
    finish,
    new_ref,
    running,
    said,
    see,
)
from tests.contract.tasks import FOREVER, read, start, wait


@pytest.fixture(params=["process", "container"], scope="module")
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessHouse]:
    made = HOUSES[request.param](tmp_path_factory.mktemp("engine"), request)
    assert isinstance(made, ProcessHouse)
    yield made
    made.close()


Ended = tuple[int, bytes, bytes]
RUNS: list[Run] = []


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """Commands of a test that failed do not disturb the next one."""
    yield
    while RUNS:
        RUNS.pop().execution.close()


class Run:
    """One command, and what came from it."""

    def __init__(self, house: ProcessHouse, ref: Ref, *argv: str, **how: object) -> None:
        self.execution: Execution = house.engine.execute(ref, Command(argv, **how))  # type: ignore[arg-type]  # what a test asks for
        RUNS.append(self)
        self.wire: socket.socket = self.execution.wire
        self.wire.settimeout(HANG_S)
        self.out: dict[int, bytes] = {words.STDOUT: b"", words.STDERR: b""}
        self.status: bytes | None = None

    def say(self, channel: int, data: bytes = b"") -> None:
        self.wire.send(words.message(channel, data))

    def step(self) -> bool:
        packet = self.wire.recv(words.MESSAGE_BYTES)
        if not packet:
            return False
        if packet[0] == words.STATUS:
            self.status = packet[1:]
        else:
            self.out[packet[0]] += packet[1:]
        return True

    def until(self, said: bytes) -> None:
        while said not in self.out[words.STDOUT]:
            assert self.step(), self.out

    def end(self) -> Ended:
        while self.step():
            pass
        self.execution.close()
        assert self.status is not None
        return words.how_ended(self.status)[0], self.out[words.STDOUT], self.out[words.STDERR]


def ran(house: ProcessHouse, ref: Ref, *argv: str, stdin: bytes = b"", **how: object) -> Ended:
    """Run a command to its end, with all of its stdin given at once."""
    run = Run(house, ref, *argv, **how)

    def feed() -> None:
        with contextlib.suppress(OSError):  # it may have ended by then
            for at in range(0, len(stdin), words.PIECE):
                run.say(words.STDIN, stdin[at : at + words.PIECE])
            run.say(words.CLOSE, b"\0")

    writer = threading.Thread(target=feed)
    writer.start()
    found = run.end()
    writer.join()
    return found


@pytest.fixture(scope="module")
def ref(house: ProcessHouse) -> Ref:
    """A task that waits."""
    found = start(
        house,
        """
        import os, time
        os.environ["MADE_LATER"] = "x"
        open("/cache/left", "w").write("here")
        print(f"cwd={os.getcwd()} uid={os.getuid()}", flush=True)
        time.sleep(3600)
        """,
        environments={"OWN": "a b 中文\nline"},
    )
    running(house, found)
    said(house, found, b"uid=")
    return found


def test_streams_and_the_exit_code_are_the_commands(house: ProcessHouse, ref: Ref) -> None:
    code, out, err = ran(house, ref, "/bin/sh", "-c", "echo out; echo err >&2; exit 3")
    assert (code, out, err) == (3, b"out\n", b"err\n")
    assert ran(house, ref, "/bin/sh", "-c", "kill -KILL $$")[0] == 137
    assert ran(house, ref, "true") == (0, b"", b"")


def test_arguments_arrive_as_they_were_sent(house: ProcessHouse, ref: Ref) -> None:
    """(case 92)"""
    sent = ["a b", "$HOME", '{"k": "v"}', "`id`", "中文", "'", "", "-x", "line\nline"]
    text = "import json,sys; print(json.dumps(sys.argv[1:]))"
    code, out, err = ran(house, ref, house.python, "-c", text, *sent)
    assert (code, err) == (0, b"")
    assert json.loads(out) == sent


def test_what_is_sent_comes_back_to_the_byte(house: ProcessHouse, ref: Ref) -> None:
    data = hashlib.shake_256(b"x").digest(3 << 20)
    code, out, _ = ran(house, ref, "cat", stdin=data)
    assert code == 0
    assert hashlib.sha256(out).digest() == hashlib.sha256(data).digest()


def test_it_is_beside_the_program(house: ProcessHouse, ref: Ref) -> None:
    """With its environment, directory, user, files and processes, and with no more rights."""
    text = (
        "import json, os; "
        "print(json.dumps([os.environ.get('OWN'), os.environ.get('MADE_LATER'), os.getcwd(), "
        "os.getuid(), open('/cache/left').read(), sorted(os.listdir('/proc'))[0] == '1', "
        "open('/proc/self/status').read()]))"
    )
    code, out, err = ran(house, ref, house.python, "-I", "-c", text)
    assert (code, err) == (0, b"")
    own, later, cwd, uid, left, apart, status = json.loads(out)
    assert (own, later, left) == ("a b 中文\nline", None, "here")
    log = house.engine.logs(ref, 0).data.decode()
    assert f"cwd={cwd} uid={uid}" in log
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    task = read(house, ref, files.TASK)["program"]["pid"]
    program = Path(f"/proc/{task}/status").read_text("utf-8")
    if isinstance(house, ContainerHouse):
        children = Path(f"/proc/{task}/task/{task}/children").read_text("ascii").split()
        program = Path(f"/proc/{children[0]}/status").read_text("utf-8")
    of_program = dict(line.split(":\t", 1) for line in program.splitlines())
    for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "NoNewPrivs", "Seccomp", "Uid", "Gid"):
        assert fields[name] == of_program[name], name
    del apart


def test_it_sees_nothing_of_the_server(house: ProcessHouse, ref: Ref) -> None:
    secret = house.root / "secret"
    secret.write_text("for nobody", "utf-8")
    code, out, _ = ran(house, ref, "cat", str(secret))
    assert code != 0
    assert out == b""
    # Neither is there a descriptor of ours in it.
    _, out, _ = ran(house, ref, "/bin/sh", "-c", "ls /proc/self/fd | wc -l")
    assert int(out) <= 4


def test_the_limits_of_the_task_hold_it(house: ProcessHouse) -> None:
    ref = start(house, FOREVER, memory_bytes=256 << 20, pids=64)
    said(house, ref, b"up")
    code, out, _ = ran(house, ref, house.python, "-c", "x = bytearray(1 << 30); print('too much')")
    assert (code, out) == (137, b"")
    code, _, err = ran(
        house, ref, "/bin/sh", "-c", "for i in $(seq 200); do sleep 5 & done; echo made all >&2"
    )
    assert b"made all" not in err
    assert running(house, ref).exit is None
    house.engine.remove(ref)


def test_a_command_that_is_not_there(house: ProcessHouse, ref: Ref) -> None:
    code, out, err = ran(house, ref, "no-such-command")
    assert (code, out) == (127, b"")
    assert b"no-such-command" in err


def test_a_terminal_with_its_size_and_ctrl_c(house: ProcessHouse, ref: Ref) -> None:
    run = Run(house, ref, "/bin/sh", terminal=True, columns=99, rows=33, term="vt100")
    run.say(words.STDIN, b"stty size; echo $TERM; tty\n")
    run.until(b"33 99")
    run.until(b"vt100")
    run.say(words.RESIZE, json.dumps({"Width": 120, "Height": 40}).encode())
    run.say(words.STDIN, b"sleep 0.2; stty size\n")
    run.until(b"40 120")
    run.say(words.STDIN, b"PS1='[re''ady]'; echo be''gin; sleep 1116\n")
    run.until(b"begin")
    # Until then the terminal's foreground is still the shell's, which would keep the signal.
    wait(lambda: _sleeping("1116"))
    # The shell drops what was typed before it is told of the signal.
    run.say(words.STDIN, b"\x03")
    run.until(b"[ready]")
    run.say(words.STDIN, b"echo over''=$?; exit 5\n")
    run.until(b"over=130")
    assert run.end()[0] == 5


def test_signals_reach_the_command(house: ProcessHouse, ref: Ref) -> None:
    run = Run(
        house, ref, "/bin/sh", "-c", "trap 'echo got; exit 9' INT; echo up; sleep 1000 & wait"
    )
    run.until(b"up")
    run.say(words.SIGNAL, b"INT")
    assert run.end()[:2] == (9, b"up\ngot\n")


def test_nobody_left_means_that_it_ends(house: ProcessHouse, ref: Ref) -> None:
    """What runs in the foreground is not left behind when whoever wanted it has gone."""
    run = Run(house, ref, "/bin/sh", "-c", "trap '' HUP; echo $$ up; sleep 1111; sleep 1112")
    run.until(b"up")
    wait(lambda: _sleeping("1111"))  # the word comes before the shell has forked
    run.execution.close()
    wait(lambda: not _sleeping("1111") and not _sleeping("1112"))


def _sleeping(word: str) -> bool:
    found = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
    return f"sleep {word}" in found.splitlines()


def test_what_it_leaves_open_does_not_hold_it(house: ProcessHouse, ref: Ref) -> None:
    """(case 7)"""
    code, out, _ = ran(house, ref, "/bin/sh", "-c", "sleep 1113 & echo done")
    assert (code, out) == (0, b"done\n")


def test_many_at_once(house: ProcessHouse, ref: Ref) -> None:
    runs = [Run(house, ref, "/bin/sh", "-c", f"read x; echo {n} $x") for n in range(12)]
    for run in reversed(runs):
        run.say(words.STDIN, b"word\n")
    for number, run in enumerate(runs):
        assert run.end()[:2] == (0, f"{number} word\n".encode())


def test_it_ends_with_the_job(house: ProcessHouse) -> None:
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    run = Run(house, ref, "/bin/sh", "-c", "trap '' HUP TERM; echo up; sleep 1114; sleep 1115")
    run.until(b"up")
    house.engine.stop(ref, 0.2)
    code, _, _ = run.end()
    assert code == 137
    assert words.how_ended(run.status or b"")[1] == words.JOB_ENDED
    finish(house, ref)
    wait(lambda: not _sleeping("1114") and not _sleeping("1115"))
    with pytest.raises(Refused, match="does not run"):
        house.engine.execute(ref, Command(("true",)))


def test_refused_where_nothing_runs(house: ProcessHouse) -> None:
    with pytest.raises(Refused, match="worker-0 does not run"):
        house.engine.execute(new_ref(), Command(("true",)))


def test_its_process_killed_ends_it_and_hurts_nothing(house: ProcessHouse, ref: Ref) -> None:
    contained = isinstance(house, ContainerHouse)
    # What is left in a container until its job ends must not be taken for the other one's.
    seconds = "1117" if contained else "1116"
    run = Run(house, ref, "/bin/sh", "-c", f"echo up; exec sleep {seconds}")
    run.until(b"up")
    os.kill(run.execution._process.pid, signal.SIGKILL)  # type: ignore[attr-defined]  # the seam does not show it
    assert not run.step()
    if not contained:
        wait(lambda: not _sleeping(seconds))
    assert see(house, ref).phase is Phase.RUNNING
    assert ran(house, ref, "echo", "well") == (0, b"well\n", b"")


def test_a_stale_record_runs_nothing(house: ProcessHouse) -> None:
    """What a task's directory says of a process that is another one by now is not believed."""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    task = read(house, ref, files.TASK)
    other = {**task["program"], "start_ticks": task["program"]["start_ticks"] - 1}
    (house.directory(ref) / files.TASK).write_text(json.dumps({**task, "program": other}), "utf-8")
    with pytest.raises((Refused, EngineError)):
        house.engine.execute(ref, Command(("true",)))
    identity.send(task["shim"], signal.SIGKILL)
    finish(house, ref)
