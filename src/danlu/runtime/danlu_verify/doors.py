"""Who may come in: sshd with keys alone, JupyterLab with a token alone."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from danlu_verify.checks import FAIL, PASS, SKIPPED, Check, Config, Result, wheel

WAIT_S = 120.0
START = "/opt/danlu/start"
MARK = "DANLU_VERIFY_MARK"


def _ssh(config: Config) -> Result:
    if config["realisation"] != "container":
        return SKIPPED, "sshd is the host's"
    if config["ssh"] != "keys-only":
        return SKIPPED, "the image has no sshd"
    left = [str(path) for path in Path("/etc/ssh").glob("ssh_host_*")]
    if left:
        return FAIL, f"the image holds host keys: {', '.join(left)}"
    with tempfile.TemporaryDirectory() as name:
        key, port, mark = Path(name, "key"), _free_port(), secrets.token_hex(8)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        told = {"DANLU_AUTHORIZED_KEYS": key.with_suffix(".pub").read_text("ascii"), MARK: mark,
                "DANLU_SSH_PORT": str(port)}  # fmt: skip
        with _running([START], {**os.environ, **told}, without=("JUPYTER_TOKEN",)):
            return _through(key, port, mark)


def _through(key: Path, port: int, mark: str) -> Result:
    unknown = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
    user = os.environ.get("USER") or "ma-user"
    at = ["ssh", *unknown, "-o", "BatchMode=yes", "-p", str(port), f"{user}@127.0.0.1"]
    with_key = [at[0], "-i", str(key), *at[1:]]
    _until(lambda: _ran([*with_key, "true"])[0] == 0, "sshd does not answer")
    show = f"echo ${MARK}:$PATH"
    wanted = f"{mark}:{os.environ['PATH']}"
    for how, words, typed in (("a remote command", [show], ""), ("a login", [], f"{show}\nexit\n")):
        code, out = _ran([*with_key, *words], typed)
        if code != 0 or wanted not in out:
            return FAIL, f"{how} does not see the environment: {out.strip()[-200:]}"
    code, out = _ran([at[0], "-v", "-o", "PubkeyAuthentication=no", *at[1:], "true"])
    if code == 0 or "can continue: publickey\n" not in out.replace("\r", ""):
        return FAIL, "something else than a key lets one in"
    return PASS, "keys only; commands and logins see the environment"


def _jupyter(config: Config) -> Result:
    if not wheel(config, "jupyterlab"):
        return SKIPPED, "the image has no JupyterLab"
    port, token = _free_port(), secrets.token_hex(16)
    program = Path(config["prefix"], "bin", "jupyter-lab")
    with tempfile.TemporaryDirectory() as name:
        command = [str(program), "--no-browser", "--ip=127.0.0.1", f"--port={port}",
                   "--ServerApp.port_retries=0", f"--ServerApp.root_dir={name}"]  # fmt: skip
        if os.getuid() == 0:
            command.append("--allow-root")
        own = {"JUPYTER_TOKEN": token, "JUPYTER_RUNTIME_DIR": name, "JUPYTER_CONFIG_DIR": name,
               "JUPYTER_DATA_DIR": name, "HOME": name}  # fmt: skip
        with _running(command, {**os.environ, **own}):
            _until(lambda: _status(port, token) == 200, "JupyterLab does not answer")
            without = _status(port, "")
            if without != 403:
                return FAIL, f"it answers {without} to whom has no token"
    return PASS, "403 without the token"


def _status(port: int, token: str) -> int:
    door = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        headers = {"Authorization": f"token {token}"} if token else {}
        door.request("GET", "/api/contents", headers=headers)
        answer = door.getresponse()
        if answer.status == 200:
            json.loads(answer.read())
        return answer.status
    except (OSError, http.client.HTTPException, ValueError):
        return 0
    finally:
        door.close()


def _ran(words: list[str], typed: str = "") -> tuple[int, str]:
    done = subprocess.run(
        words, input=typed, capture_output=True, text=True, check=False, timeout=WAIT_S
    )
    return done.returncode, done.stdout + done.stderr


def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.2)


@contextlib.contextmanager
def _running(
    words: list[str], env: dict[str, str], without: tuple[str, ...] = ()
) -> Iterator[None]:
    for name in without:
        env.pop(name, None)
    process = subprocess.Popen(
        words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


DOORS: dict[int, Check] = {18: _ssh, 19: _jupyter}
