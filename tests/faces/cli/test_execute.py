"""Commands in running jobs, from the command line and from other clients' WebSockets."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from danlu.faces.cli import signing
from danlu.model import execute as words
from tests.faces.cli.house import HANG_S, House, Typed, opened, until

WAITS = "import time; print('up', flush=True); time.sleep(3600)"


@pytest.fixture(scope="module")
def job(house: House) -> Iterator[str]:
    """A job that runs."""
    found = started(house, WAITS)
    yield found
    house.run("stop", "--wait", found)


def started(house: House, text: str) -> str:
    job = house.good("run", "-d", "-q", "--flavor", "danlu.cpu.1u", house.script(text)).strip()
    until(lambda: house.state(job) == "running")
    return job


def run(house: House, *args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        house.command(*args),
        env=house.env,
        cwd=house.home,
        input=stdin,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )


def test_a_command_and_its_exit_code(house: House, job: str) -> None:
    done = run(house, "exec", job, "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    odd = ["a b", "$HOME", "'", "中文", "-x", "--", '{"k": 1}']
    text = "import json,sys; print(json.dumps(sys.argv[1:]))"
    done = run(house, "exec", job, "--", "python", "-c", text, *odd)
    assert json.loads(done.stdout) == odd


def test_stdin_is_handed_on_to_the_byte(house: House, job: str) -> None:
    """Much of it, both ways at once, and nobody waits for anybody."""
    data = hashlib.shake_256(b"x").digest(5 << 20)
    done = run(house, "exec", "-i", job, "--", "cat", stdin=data)
    assert (done.returncode, done.stderr) == (0, b"")
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()
    # Without -i there is none, whatever stands there.
    assert run(house, "exec", job, "--", "cat", stdin=b"x").stdout == b""


def test_a_script_into_a_shell(house: House, job: str) -> None:
    done = run(house, "shell", job, stdin=b"echo $MA_CURRENT_INSTANCE_NAME\nexit 4\n")
    assert done.returncode == 4
    assert job.encode() in done.stdout


def test_a_command_has_the_key_of_its_job(house: House, job: str) -> None:
    """Which stands in the task's plan, and in no second file for commands."""
    text = (
        "import os, moxing as mox; mox.file.write('obs://danlu/beside/one', 'x');"
        "print(os.environ['DANLU_OBS_SECRET_KEY'], os.environ['AWS_SECRET_ACCESS_KEY'])"
    )
    done = run(house, "exec", job, "--", "python", "-c", text)
    assert (done.returncode, done.stderr) == (0, b"")
    secret, again = done.stdout.split()
    assert secret == again
    files = [path for path in house.data.rglob("*.json") if secret in path.read_bytes()]
    assert [path.name for path in files] == ["plan.json"]


def test_a_shell_on_a_terminal(house: House, job: str) -> None:
    typed = Typed(house, "shell", job, columns=123)
    typed.read_until(b"# ")
    typed.press(b"stty size; tty\n")
    typed.read_until(b"40 123")
    # Said by what has the terminal then: the shell itself would not be interrupted.
    typed.press(b"PS1='[re''ady]'; sh -c 'echo be\"\"gin; exec sleep 1000'\n")
    typed.read_until(b"begin")
    typed.press(b"\x03")
    typed.read_until(b"[ready]")
    typed.press(b"exit 6\n")
    assert typed.finish() == 6


def test_ctrl_c_without_a_terminal_is_the_commands_first(house: House, job: str) -> None:
    text = "trap 'echo got; exit 9' INT; echo up; sleep 1000 & wait"
    process = house.start("exec", job, "--", "/bin/sh", "-c", text)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=HANG_S)
    assert (process.returncode, out) == (9, b"got\n")


def test_ctrl_c_twice_leaves(house: House, job: str) -> None:
    text = "trap '' INT HUP; echo up; while :; do sleep 0.1; done"
    process = house.start("exec", job, "--", "/bin/sh", "-c", text)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANG_S)
    assert process.returncode == 130


def test_what_is_refused_says_why(house: House, job: str) -> None:
    done = run(house, "exec", "no-such-job", "--", "true")
    assert done.returncode == 4
    done = run(house, "exec", job, "--task", "7", "--", "true")
    assert done.returncode == 4
    assert b"worker-7" in done.stderr
    done = run(house, "exec", "-t", job, "--", "true")
    assert done.returncode == 2
    assert b"terminal" in done.stderr
    script = house.script("print(1)")
    over = house.good("run", "-d", "-q", "--flavor", "danlu.cpu.1u", script).strip()
    until(lambda: house.state(over) == "succeeded")
    done = run(house, "exec", over, "--", "true")
    assert done.returncode == 5
    assert b"does not run (succeeded)" in done.stderr
    assert "不在运行" in run(house, "--lang", "zh", "exec", over, "--", "true").stderr.decode()


def test_who_ran_what_is_in_the_history(house: House, job: str) -> None:
    """The command's name and not its arguments: passwords stand there."""
    run(house, "exec", job, "--", "/bin/sh", "-c", "exit 3", "pass-word")
    said = house.good("events", job)
    assert "runs '/bin/sh' in it" in said
    until(lambda: "'/bin/sh' of admin ended with code 3" in house.good("events", job))
    assert "pass-word" not in said


def test_it_ends_with_the_job_and_says_so(house: House) -> None:
    job = started(house, WAITS)
    process = house.start("exec", job, "--", "/bin/sh", "-c", "echo up; exec sleep 1000")
    assert process.stdout is not None
    process.stdout.readline()
    house.good("stop", job)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 137
    assert b"the job has ended" in err


class CloudShell:
    """What a client for ModelArts does (macli's frames), with this server's own credentials."""

    def __init__(self, house: House, path: str, query: str = "") -> None:
        ready = json.loads((house.data / "server.json").read_text("utf-8"))
        authority = ready["api"].partition("://")[2]
        path = path.replace("{p}", ready["project_id"])
        pairs = [(key, value) for key, _, value in (p.partition("=") for p in query.split("&"))]
        pairs = [pair for pair in pairs if pair[0]]
        headers = {"Host": authority, "X-Sdk-Date": signing.stamp()}
        headers["Authorization"] = signing.authorization(
            (ready["access_key"], ready["secret_key"]),
            "GET",
            path,
            pairs,
            headers,
            b"",
        )
        target = path + (f"?{signing.query_string(pairs)}" if pairs else "")
        del headers["Host"]
        self._opened = connect(
            f"ws://{authority}{target}", additional_headers=headers, open_timeout=HANG_S
        )
        self.socket: ClientConnection = self._opened.__enter__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def until(self, wanted: bytes) -> bytes:
        seen = b""
        while wanted not in seen:
            message = self.socket.recv(HANG_S)
            assert isinstance(message, bytes)
            assert message[0] == words.STDOUT, message
            seen += message[1:]
        return seen

    def ended(self) -> Any:
        while True:
            message = self.socket.recv(HANG_S)
            assert isinstance(message, bytes)
            if message[0] == words.STATUS:
                return json.loads(message[1:])


@pytest.mark.parametrize("root", ["", "/modelarts/rest"])
def test_a_client_of_cloud_shell(house: House, job: str, root: str) -> None:
    path = f"{root}/v2/{{p}}/training-jobs/{job}/exec"
    with CloudShell(house, path, "command=/bin/sh&task_id=worker-0") as shell:
        shell.socket.send(b"\x04" + json.dumps({"Width": 77, "Height": 22}).encode())
        shell.socket.send(b"\x00")
        shell.socket.send(b"\x00sleep 0.2; stty size; echo in=$MA_CURRENT_INSTANCE_NAME\n")
        shell.until(b"22 77")
        shell.socket.send(b"\x00exit 5\n")
        status = shell.ended()
        assert status["status"] == "Failure"
        assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "5"}]
        with pytest.raises(ConnectionClosed) as closed:
            shell.socket.recv(HANG_S)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1000


def test_cloud_shell_is_refused_before_it_is_a_websocket(house: House, job: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        CloudShell(house, "/v2/{p}/training-jobs/0000/exec")
    answer = refused.value.response
    assert answer.status_code == 404
    assert json.loads(answer.body or b"")["error_code"] == "ModelArts.2775"
    with pytest.raises(InvalidStatus) as refused:
        CloudShell(house, f"/v2/{{p}}/training-jobs/{job}")
    assert refused.value.response.status_code == 400
    with pytest.raises(InvalidStatus) as refused:
        CloudShell(house, f"/v2/{{p}}/training-jobs/{job}/exec", "command='")
    assert refused.value.response.status_code == 400


def test_the_server_killed_ends_it_and_not_the_job(tmp_path: Path) -> None:
    with opened(tmp_path) as house:
        job = started(house, WAITS)
        text = "echo up; trap 'exit' HUP; while :; do sleep 0.1; done; # once-and-only"
        process = house.start("exec", job, "--", "/bin/sh", "-c", text)
        assert process.stdout is not None
        process.stdout.readline()
        house.kill_server()
        _, err = process.communicate(timeout=HANG_S)
        assert process.returncode == 75
        assert b"the server has ended" in err
        assert b"the job goes on" in err
        until(lambda: "once-and-only" not in _arguments())
        assert house.state(job) == "running"
        again = house.start("exec", job, "--", "/bin/sh", "-c", "echo up; exec sleep 1000")
        assert again.stdout is not None
        again.stdout.readline()
        house.good("down")
        _, err = again.communicate(timeout=HANG_S)
        assert again.returncode == 75
        assert b"the server has ended or is being restarted" in err
        house.good("up", "--port", "0")
        assert house.state(job) == "running"


def _arguments() -> str:
    found = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True)
    return found.stdout
