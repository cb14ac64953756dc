"""Start what a notebook offers, say when it answers, and end with it.

The endpoints lie in the directory that DANLU_ENDPOINTS names: `lab.sock` is JupyterLab, `ssh.sock`
OpenSSH (`danlu_sshd`), `notice.sock` is where the platform says when all this ends. The file
`ready` appears there once they answer, and `activity.json` says what the instance is used for.
SIGTERM ends everything; JupyterLab's own end (File > Shut Down) ends the instance.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

from danlu_notebook.activity import Activity
from danlu_notebook.lab import Lab, LabMissing
from danlu_notebook.notice import Notices
from danlu_sshd import NoSsh, Sshd

HERE = os.path.dirname(os.path.abspath(__file__))
ENDPOINTS = "DANLU_ENDPOINTS"
TOKEN = "DANLU_LAB_TOKEN"  # noqa: S105 -- the name of a variable
READY = "ready"
KEYS = ".danlu/ssh"
LOOK_EVERY_S = 0.1
START_LIMIT_S = 300.0
PR_SET_CHILD_SUBREAPER = 36
"""What loses its parent (nohup, tmux) becomes ours: it is still somebody's work."""
CONFIG_EXIT = 78
"""EX_CONFIG: the image lacks what a notebook needs."""


def main() -> int:
    """Run until JupyterLab ends, or SIGTERM comes."""
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    endpoints = os.environ[ENDPOINTS]
    # What the user starts is not to have it; JupyterLab gets it under its own name.
    token = os.environ.pop(TOKEN)
    # Of commands for people, such as danlu-extend.
    os.environ["PATH"] = f"{os.environ['PATH']}:{os.path.join(HERE, 'bin')}"
    lab = Lab(endpoints, token, os.path.join(os.environ["HOME"], "work"))
    try:
        lab.start()
    except LabMissing as missing:
        _say(str(missing))
        return CONFIG_EXIT
    _ssh(endpoints)
    notices = Notices(endpoints)
    notices.start()
    activity = Activity(endpoints, {os.getpid(), lab.pid}, lab.listed, lambda: notices.wrote_at)
    try:
        code = _run(lab, endpoints, activity, stopping)
    finally:
        lab.stop()
    return code


def _ssh(endpoints: str) -> None:
    """Have OpenSSH answer, where there is one; `ssh.json` says why not. By its host key people know
    the instance, so that is kept in the home.
    """
    home = os.path.join(os.environ["HOME"], "work")
    sshd = Sshd(endpoints, os.path.join(home, KEYS), home)
    try:
        sshd.prepare()
        opened = sshd.listen()
    except (NoSsh, OSError) as problem:
        _say(f"no SSH: {problem}")
        return
    threading.Thread(target=sshd.serve, args=(opened,), name="ssh", daemon=True).start()


def _run(lab: Lab, endpoints: str, activity: Activity, stopping: threading.Event) -> int:
    waited_s = 0.0
    ready = False
    while not stopping.wait(LOOK_EVERY_S):
        code = lab.ended()
        if code is not None:
            _say(f"JupyterLab ended with code {code}")
            return code
        if ready:
            activity.look()
            _reap(lab.pid)
            continue
        waited_s += LOOK_EVERY_S
        if lab.answers():
            ready = True
            activity.look()
            _publish_ready(endpoints)
        elif waited_s > START_LIMIT_S:
            _say(f"JupyterLab did not answer within {START_LIMIT_S:.0f} s")
            return 1
    return 0


def _reap(lab: int) -> None:
    """Take notice of adopted children that have ended; JupyterLab is looked after elsewhere."""
    with suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid == lab:
                return
            os.waitpid(ended.si_pid, 0)


def _publish_ready(endpoints: str) -> None:
    with open(os.path.join(endpoints, READY), "w", encoding="ascii") as file:
        file.write("ready\n")
    _say("JupyterLab answers")


def _say(words: str) -> None:
    """Into the log of the instance."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
