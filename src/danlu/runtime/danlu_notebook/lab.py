"""JupyterLab, run directly: on a socket in the endpoints' directory, on no port."""

from __future__ import annotations

import http.client
import importlib.util
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

SOCKET = "lab.sock"
ETC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "etc")
KEPT = os.path.join(".danlu", "lab")
"""Where Lab keeps its user's choices, below the home that stays."""
STOP_S = 15.0
ANSWER_S = 5.0
MISSING = (
    "the environment of this notebook has no JupyterLab: choose an image that brings it, or install"
    " the package `jupyterlab` in the environment"
)


class LabMissing(Exception):
    """There is no JupyterLab here."""


class Lab:
    """The one of this instance. `work` is what it shows."""

    def __init__(self, endpoints: str, token: str, work: str) -> None:
        self._endpoints = endpoints
        self._token = token
        self._work = work
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid if self._process is not None else 0

    def start(self) -> None:
        """Start it; LabMissing where it is not installed."""
        if importlib.util.find_spec("jupyterlab") is None:
            raise LabMissing(MISSING)
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self._endpoints, SOCKET))
        # The directory's own path may be longer than a socket's may be.
        directory = os.open(self._endpoints, os.O_PATH | os.O_DIRECTORY)
        os.set_inheritable(directory, True)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", *self._options(directory)],
                env=self._environment(),
                cwd=self._work,
                pass_fds=(directory,),
                start_new_session=True,
            )
        finally:
            os.close(directory)

    def _options(self, directory: int) -> list[str]:
        return [
            f"--ServerApp.sock=/proc/self/fd/{directory}/{SOCKET}",
            "--ServerApp.sock_mode=0600",
            f"--ServerApp.root_dir={self._work}",
            "--ServerApp.allow_remote_access=True",
            "--ServerApp.allow_root=True",
            "--ServerApp.identity_provider_class=danlu_notebook.identity.Proxied",
            f"--LabApp.extra_labextensions_path={os.path.join(ETC, 'labextensions')}",
            # Beside the user's files: what he has chosen in Lab is to outlive a stop.
            f"--LabApp.user_settings_dir={os.path.join(self._work, KEPT, 'settings')}",
            f"--LabApp.workspaces_dir={os.path.join(self._work, KEPT, 'workspaces')}",
            *_shell(),
            "--no-browser",
        ]

    def _environment(self) -> dict[str, str]:
        """What only Lab gets: its token, and how it behaves where its user has not said."""
        paths = [os.environ.get("JUPYTER_CONFIG_PATH", ""), ETC]
        return {
            **os.environ,
            "DANLU_LAB_TOKEN": self._token,
            "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, paths)),
        }

    def ended(self) -> int | None:
        """Its exit code, once it has ended."""
        if self._process is None:
            return None
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def answers(self) -> bool:
        """Whether it answers, without being taken for somebody at work."""
        return self.get("/api/status?no_track_activity=1") is not None

    def listed(self, path: str) -> bytes | None:
        """The same of a list: a JupyterLab that has no terminals has an empty one."""
        return self.get(path, b"[]")

    def get(self, path: str, absent: bytes | None = None) -> bytes | None:
        """What its API says; `absent` where it has no such thing, None where it does not answer."""
        try:
            connection = _Local(self._endpoints)
            try:
                connection.request("GET", path, headers={"Authorization": f"token {self._token}"})
                answer = connection.getresponse()
                body = answer.read(1 << 20)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException):
            return None
        if answer.status == http.client.NOT_FOUND:
            return absent
        return body if answer.status == http.client.OK else None

    def stop(self) -> None:
        """End it: kernels first, as JupyterLab does when it is told to."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _shell() -> list[str]:
    """Which shell a terminal of Lab's runs; Lab's own choice where there is no bash."""
    shell = os.environ.get("SHELL", "")
    if os.path.basename(shell) != "bash" or not os.access(shell, os.X_OK):
        return []
    command = [shell, "--init-file", os.path.join(ETC, "terminal.sh")]
    return [f"--ServerApp.terminado_settings={ ({'shell_command': command})!r}"]


class _Local(http.client.HTTPConnection):
    """A connection to a socket of this instance."""

    def __init__(self, endpoints: str) -> None:
        super().__init__("localhost", timeout=ANSWER_S)
        self._endpoints = endpoints

    def connect(self) -> None:
        """By the directory, as its path may be too long."""
        directory = os.open(self._endpoints, os.O_PATH | os.O_DIRECTORY)
        try:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(ANSWER_S)
            self.sock.connect(f"/proc/self/fd/{directory}/{SOCKET}")
        finally:
            os.close(directory)
