"""The first program in a container: what it does, and how the agent and it tell each other things.

It is a shell script, because a shell is all that every image has. Before the program starts it says
how many GPUs it sees and waits for leave; then it is the program's parent, which the program cannot
end (it is the first process of its namespace), says how the program ended, and waits until the
agent has read the log to its end. So neither needs the container runtime while the program runs,
and nothing is lost when agent or runtime are killed.

| below /run/danlu | what | written by |
|---|---|---|
| `start` | this script | agent |
| `install`, `python`, `requirements` | installs what the job needs more, if anything | agent |
| `log` | a pipe: what the program prints | program |
| `bell` | a pipe: something was said | script |
| `go` | a pipe: the program may start | agent |
| `told/` | what the task directory has under that name | agent |
| `said/ready`, `said/ended` | a line of text | script |
| `said/installed` | what `install` printed | script |

Pipes are opened for reading and writing on both sides: no side ever sees an end, and what is in a
pipe stays there as long as one of them has it open.
"""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from danlu.node.directory import open_plain
from danlu.node.logs import PIPE_BYTES
from danlu.ports import task_directory as files

PLACE = "/run/danlu"
SAID = "said"
READY = "said/ready"
ENDED = "said/ended"
INSTALLED = "said/installed"
MOST_PRINTED = 1 << 20
PIPES = ("log", "bell", "go")
MOST_BYTES = 256

SCRIPT = f"""\
#!/bin/sh
# Danlu: the first program in a task's container. The agent beside it is told what is here; the
# task's own program starts when the agent says so.
box={PLACE}
gpus=0
if command -v nvidia-smi >/dev/null 2>&1 && listed=$(nvidia-smi -L 2>/dev/null); then
  gpus=$(printf '%s\\n' "$listed" | while read -r word _; do
    case $word in GPU|MIG) echo "$word" ;; esac
  done)
  case $gpus in *MIG*) kind=MIG ;; *) kind=GPU ;; esac
  count=0
  for word in $gpus; do [ "$word" = "$kind" ] && count=$((count + 1)); done
  gpus=$count
else
  for device in /dev/nvidia[0-9]*; do [ -c "$device" ] && gpus=$((gpus + 1)); done
fi
found=yes
if [ -f $box/install ]; then
  read -r python <$box/python
  "$python" -I $box/install >$box/{INSTALLED} 2>&1 || found=requirements
fi
if [ $found = yes ]; then cd -- "$1" 2>/dev/null || found=directory; fi
shift
[ $found = yes ] && {{ command -v -- "$1" >/dev/null 2>&1 || found=program; }}
echo "$gpus $found" >$box/{READY}
echo ready >$box/bell
read -r _ <>$box/go
# Signals are for the program; this one stays to tell its end, and keeps what is in the log's pipe.
trap : HUP INT QUIT TERM USR1 USR2
exec 3<>$box/log
"$@" 1>&3 2>&1 3>&- && code=0 || code=$?
echo "$code" >$box/{ENDED}.new && mv -f $box/{ENDED}.new $box/{ENDED}
echo "ended $code" >$box/bell
while :; do read -r _ <>$box/go; done
"""


INSTALL = """\
# Danlu: the job's requirements, into an environment that sees all that the image's Python has.
import glob, importlib.util, os, site, subprocess, sys
base, place = BASE, PLACE
wanted = os.path.join(os.path.dirname(__file__), "requirements")
python = [sys.executable, "-I", "-m"]
run = lambda *words: subprocess.run([*words], check=True, cwd=base)
try:
    run(*python, "venv", "--without-pip", place)
    lines = [f"import site; site.addsitedir({one!r})\\n" for one in site.getsitepackages()]
    for packages in glob.glob(glob.escape(place) + "/lib/python3*/site-packages"):
        with open(packages + "/job-environment.pth", "w", encoding="utf-8") as seen:
            seen.writelines(lines)
    own = [place + "/bin/python", "-I", "-m"]
    if importlib.util.find_spec("pip") is not None:
        pip = [*python, "pip", "--python", own[0]]
    else:
        run(*own, "ensurepip")
        pip = [*own, "pip"]
    run(*pip, "install", "--disable-pip-version-check", "--no-input", "-r", wanted)
except subprocess.CalledProcessError as error:
    sys.exit(error.returncode)
"""


@dataclass(slots=True)
class Entry:
    """The agent's end of one container's script. `path` is the directory that is /run/danlu."""

    path: str
    log: int = field(default=-1, init=False)
    bell: int = field(default=-1, init=False)
    _go: int = field(default=-1, init=False)

    def make(self, uid: int, gid: int) -> None:
        """Everything afresh, for a program of this user."""
        for name in (SAID, files.TOLD):
            Path(self.path, name).mkdir()
        for name in PIPES:
            os.mkfifo(f"{self.path}/{name}")
            # Not a matter of the umask; the directory above is open to nobody else.
            os.chmod(f"{self.path}/{name}", 0o666)  # noqa: PTH101, S103 -- as text; see above
        Path(self.path, "start").write_text(SCRIPT, "ascii")
        for name, mode in (("start", 0o755), (SAID, 0o700), (files.TOLD, 0o755), ("", 0o755)):
            os.chmod(f"{self.path}/{name}", mode)  # noqa: PTH101 -- as above
        with suppress(PermissionError):  # not root: the runtime maps our own user to the program's
            os.chown(f"{self.path}/{SAID}", uid, gid)

    def installs(self, python: str, lines: Sequence[str], base: str, place: str) -> None:
        """Have the script install requirements into an environment at `place`, made with the
        image's `python`. What the lines name relatively lies in `base`.
        """
        text = INSTALL.replace("BASE", repr(base)).replace("PLACE", repr(place))
        wanted = "".join(f"{line}\n" for line in lines)
        told = {"install": text, "python": f"{python}\n", "requirements": wanted}
        for name, content in told.items():
            Path(self.path, name).write_text(content, "utf-8")
            os.chmod(f"{self.path}/{name}", 0o644)  # noqa: PTH101 -- as above

    def installed(self) -> bytes:
        """What the installation printed; of much only the end."""
        try:
            descriptor = open_plain(f"{self.path}/{INSTALLED}")
        except OSError:
            return b""
        try:
            size = os.fstat(descriptor).st_size
            return os.pread(descriptor, MOST_PRINTED, max(0, size - MOST_PRINTED))
        finally:
            os.close(descriptor)

    def open(self) -> None:
        """Open the pipes. OSError where they are not there."""
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        found = [os.open(f"{self.path}/{name}", flags) for name in PIPES]
        if not all(stat.S_ISFIFO(os.fstat(one).st_mode) for one in found):
            raise FileNotFoundError(2, "no pipes", self.path)
        self.log, self.bell, self._go = found
        os.set_blocking(self.log, True)
        with suppress(OSError):
            import fcntl

            fcntl.fcntl(self.log, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def close(self) -> None:
        """Let go of the pipes."""
        for descriptor in (self.log, self.bell, self._go):
            if descriptor >= 0:
                os.close(descriptor)
        self.log = self.bell = self._go = -1

    def go(self) -> None:
        """Let the program start. Repeating it does no harm."""
        with suppress(BlockingIOError):
            os.write(self._go, b"\n")

    def quiet(self) -> None:
        """Take what rang."""
        with suppress(BlockingIOError):
            while os.read(self.bell, 512):
                pass

    def rings(self, wait_s: float) -> bool:
        """Whether the bell rings within a while."""
        poll = select.poll()
        poll.register(self.bell, select.POLLIN)
        return bool(poll.poll(wait_s * 1000))

    def ready(self) -> tuple[int, str] | None:
        """How many GPUs are there, and what is not: `requirements`, `directory`, `program` or
        nothing. None while nothing is said.
        """
        words = self._line(READY).split()
        if len(words) != 2 or not words[0].isdigit():
            return None
        return int(words[0]), "" if words[1] == "yes" else words[1]

    def ended(self) -> int | None:
        """The code with which the program ended, as a shell gives it; None while it runs."""
        said = self._line(ENDED)
        return min(255, int(said)) if said.isdigit() else None

    def _line(self, name: str) -> str:
        # The program's own user may write there: what is not a short text is nothing.
        try:
            descriptor = open_plain(f"{self.path}/{name}")
        except OSError:
            return ""
        try:
            said = os.read(descriptor, MOST_BYTES)
        finally:
            os.close(descriptor)
        return said.decode("ascii", "replace").strip() if said.endswith(b"\n") else ""
