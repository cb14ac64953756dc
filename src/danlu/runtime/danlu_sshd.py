"""OpenSSH in a running task: who connects to `ssh.sock` speaks to an `sshd -i` of his own.

    python danlu_sshd.py --at DIR [--keys DIR] [--home DIR] [-- PROGRAM ARGS...]

There is no TCP port: only the server reaches the socket. Before a client's first byte it sends the
public keys that may come in at this moment, as a number of eight hexadecimal digits and so many
bytes; sshd lets nobody else in. With PROGRAM this process becomes the
program and a process beside it answers, until the program has ended; otherwise it answers itself.

In DIR: `ssh.sock`; `ssh.json`, which says who one is here, by which host key it is known and why
there is no SSH if so; `ssh/`, sshd's configuration and log.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pwd
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

SOCKET = "ssh.sock"
ABOUT = "ssh.json"
PRIVATE = "ssh"
HOST_KEY = "ssh_host_ed25519_key"

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SFTP_SERVERS = (
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/libexec/sftp-server",
)
LOG_BYTES = 1 << 20
HEAD = 8
KEYS_BYTES = 1 << 20
HEAD_S = 10.0
BACKLOG = 128
END_S = 1.0
"""How long sessions have to end when the program has."""

OF_THE_SESSION = frozenset(
    {"TERM", "PWD", "OLDPWD", "SHLVL", "_", "DISPLAY", "MAIL", "LS_COLORS", "COLUMNS", "LINES"}
)
"""Variables that say something of one session, and not of the task."""

CONFIG = """\
HostKey "{key}"
AllowUsers {user}
StrictModes no
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PermitUserEnvironment no
UsePAM no
UseDNS no
AllowTcpForwarding yes
AllowStreamLocalForwarding yes
AllowAgentForwarding yes
GatewayPorts no
X11Forwarding no
PermitTunnel no
PrintMotd no
PrintLastLog no
MaxSessions 1000
LoginGraceTime 30
ClientAliveInterval 60
ClientAliveCountMax 5
AcceptEnv LANG LC_* COLORTERM
PidFile none
Subsystem sftp internal-sftp
ForceCommand exec /bin/sh {enter}
"""
# What a person asked for is run in the task's own environment and directory, which sshd knows
# nothing of: it begins in the home that the system knows, with the variables of a fresh login.
ENTER = """\
. {variables}
cd {home} 2>/dev/null || cd /
danlu_command=$SSH_ORIGINAL_COMMAND
unset SSH_ORIGINAL_COMMAND
[ -x "$SHELL" ] || SHELL=/bin/sh
export SHELL
case $danlu_command in
internal-sftp)
	exec {sftp} -u 0022
	;;
?*)
	exec "$SHELL" -c "$danlu_command"
	;;
esac
unset danlu_command
case ${{SHELL##*/}} in
bash)
	[ -t 0 ] && exec "$SHELL" --init-file {login}
	BASH_ENV={login} exec "$SHELL" -s
	;;
sh | dash | ash | ksh)
	ENV={variables}
	export ENV
	exec "$SHELL" -l
	;;
esac
exec "$SHELL" -l
"""
# What a login shell of bash's reads. /etc/profile sets PATH anew on many systems; what a person's
# own files add to it comes behind that.
LOGIN = """\
unset BASH_ENV
[ -r /etc/profile ] && . /etc/profile
. {variables}
if [ -r ~/.bash_profile ]; then . ~/.bash_profile
elif [ -r ~/.bash_login ]; then . ~/.bash_login
elif [ -r ~/.profile ]; then . ~/.profile
elif [ -r ~/.bashrc ]; then . ~/.bashrc
fi
"""


class NoSsh(Exception):
    """There can be no SSH here; `key` is for programs, the text for people."""

    def __init__(self, key: str, detail: str = "") -> None:
        super().__init__(detail or key)
        self.key = key
        self.detail = detail


class Sshd:
    """What is needed to answer connections in one directory."""

    def __init__(
        self,
        directory: str,
        keys: str = "",
        home: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = os.path.abspath(directory)
        self.private = os.path.join(self.directory, PRIVATE)
        self.keys = os.path.abspath(keys) if keys else self.private
        self.environ = dict(os.environ if environ is None else environ)
        self.home = home or os.getcwd()
        self.program = ""
        self.config = os.path.join(self.private, "sshd_config")
        self._running: set[subprocess.Popen[bytes]] = set()

    def prepare(self) -> None:
        """Find sshd, make the host key if there is none yet, write the configuration.

        Raises NoSsh where something is missing; `ssh.json` tells in both cases.
        """
        os.makedirs(self.private, mode=0o700, exist_ok=True)
        try:
            user = self._user()
            self.program = _find("sshd")
            self._make_key()
            self._write(user)
        except NoSsh as problem:
            self._tell({"problem": problem.key, "detail": problem.detail})
            raise
        except OSError as problem:
            self._tell({"problem": "ssh-broken", "detail": str(problem)})
            raise NoSsh("ssh-broken", str(problem)) from problem
        with open(f"{self._key()}.pub", encoding="utf-8") as stream:
            public = " ".join(stream.read().split()[:2])
        self._tell({"user": user, "host_key": public, "home": self.home})

    def listen(self) -> socket.socket:
        """The socket, in place and answering from now on."""
        held = os.open(self.directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        # The path of a unix socket is limited to 107 bytes; this way it is not the directory's.
        place = f"/proc/self/fd/{held}/{SOCKET}"
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place)
        before = os.umask(0o077)
        try:
            opened.bind(place)
        finally:
            os.umask(before)
            os.close(held)
        opened.listen(BACKLOG)
        return opened

    def serve(self, opened: socket.socket, ends: int | None = None) -> None:
        """Answer until `ends`, a descriptor, can be read; for ever without one."""
        log = self._log()
        wanted: list[socket.socket | int] = [opened] if ends is None else [opened, ends]
        while True:
            ready, _, _ = select.select(wanted, [], [])
            if ends in ready:
                break
            with contextlib.suppress(OSError):
                connection, _ = opened.accept()
                threading.Thread(target=self._answer, args=(connection, log), daemon=True).start()
        opened.close()
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.directory, SOCKET))
        _end(list(self._running))

    def _answer(self, connection: socket.socket, log: int) -> None:
        """Run sshd for one connection, until it has ended."""
        authorized = ""
        try:
            with connection:
                connection.settimeout(HEAD_S)
                size = int(_received(connection, HEAD), 16)
                if size > KEYS_BYTES:
                    return
                keys = _received(connection, size)
                connection.settimeout(None)
                handle, authorized = tempfile.mkstemp(prefix="keys-", dir=self.private)
                with os.fdopen(handle, "wb") as stream:
                    stream.write(keys)
                place = _in_quotes(authorized).replace("%", "%%")
                option = f'AuthorizedKeysFile="{place}"'
                running = subprocess.Popen(
                    [self.program, "-i", "-e", "-f", self.config, "-o", option],
                    stdin=connection.fileno(),
                    stdout=connection.fileno(),
                    stderr=log,
                    # Where the shadow file cannot be read, systemd says that root is locked.
                    env={"PATH": SYSTEM_PATH, "SYSTEMD_NSS_BYPASS_SYNTHETIC": "1"},
                    cwd="/",
                    start_new_session=True,
                )
            self._running.add(running)
            running.wait()
            self._running.discard(running)
        except (OSError, ValueError):
            return  # whoever connected has gone, or is not the server
        finally:
            if authorized:
                with contextlib.suppress(OSError):
                    os.unlink(authorized)

    def _user(self) -> str:
        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            raise NoSsh("ssh-no-user", str(os.getuid())) from None

    def _key(self) -> str:
        return os.path.join(self.keys, HOST_KEY)

    def _make_key(self) -> None:
        """The host key is made once: whoever knows the instance knows it by this key."""
        key = self._key()
        if os.path.exists(key) and os.path.exists(f"{key}.pub"):
            os.chmod(key, 0o600)
            return
        os.makedirs(self.keys, mode=0o700, exist_ok=True)
        draft = f"{key}.{os.getpid()}"
        made = subprocess.run(
            [_find("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", draft],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if made.returncode:
            raise NoSsh("ssh-broken", made.stdout.decode("utf-8", "replace").strip())
        os.replace(f"{draft}.pub", f"{key}.pub")
        os.replace(draft, key)

    def _write(self, user: str) -> None:
        variables = os.path.join(self.private, "variables.sh")
        login = os.path.join(self.private, "login.sh")
        enter = os.path.join(self.private, "enter.sh")
        sftp = next((one for one in SFTP_SERVERS if os.access(one, os.X_OK)), "")
        quoted = {
            "variables": shlex.quote(variables),
            "home": shlex.quote(self.home),
            "login": shlex.quote(login),
            "sftp": sftp or "echo 'there is no sftp-server in this image' >&2; exit 1;",
        }
        _put(variables, exports(self.environ))
        _put(login, LOGIN.format(**quoted))
        _put(enter, ENTER.format(**quoted))
        config = CONFIG.format(
            key=_in_quotes(self._key()),
            user=user,
            enter=shlex.quote(enter),
        )
        _put(self.config, config)

    def _tell(self, about: Mapping[str, str]) -> None:
        _put(os.path.join(self.directory, ABOUT), json.dumps(about))

    def _log(self) -> int:
        path = os.path.join(self.private, "log")
        with contextlib.suppress(OSError):
            if os.path.getsize(path) > LOG_BYTES:
                os.truncate(path, 0)
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def exports(environ: Mapping[str, str]) -> str:
    """The variables as lines for a shell, whatever is in them."""
    lines = []
    for name, value in sorted(environ.items()):
        plain = name.isascii() and name.isidentifier()
        if plain and name not in OF_THE_SESSION and not name.startswith("SSH_"):
            lines.append(f"export {name}={shlex.quote(value)}\n")
    return "".join(lines)


def _received(connection: socket.socket, size: int) -> bytes:
    """Exactly so many bytes: what follows is sshd's."""
    parts = b""
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionResetError
        parts += part
    return parts


def _find(name: str) -> str:
    found = shutil.which(name, path=SYSTEM_PATH)
    if found is None:
        raise NoSsh("ssh-not-installed", name)
    return found


def _in_quotes(path: str) -> str:
    """A path between the double quotes of sshd_config(5)."""
    if '"' in path or "\n" in path:
        raise NoSsh("ssh-broken", f"the path {path!r} cannot stand in a configuration")
    return path


def _put(path: str, text: str) -> None:
    draft = f"{path}.{os.getpid()}"
    opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(text)
    os.replace(draft, path)


def _end(running: list[subprocess.Popen[bytes]]) -> None:
    """Hang up on whoever is still connected."""
    for one in running:
        with contextlib.suppress(OSError):
            os.killpg(one.pid, signal.SIGTERM)
    ends = time.monotonic() + END_S
    for one in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            one.wait(max(0.0, ends - time.monotonic()))
    for one in running:
        if one.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(one.pid, signal.SIGKILL)


def beside(sshd: Sshd) -> None:
    """Answer in a process beside this one, until this one has ended, whatever it becomes."""
    opened = sshd.listen()
    ends = os.pidfd_open(os.getpid()) if hasattr(os, "pidfd_open") else None
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        opened.close()
        if ends is not None:
            os.close(ends)
        return
    # A child of nobody's: a program that waits for its children does not find this one.
    code = 1
    try:
        if os.fork() == 0:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            sshd.serve(opened, ends)
        code = 0
    finally:
        os._exit(code)


def _become(program: Sequence[str]) -> NoReturn:
    os.execvp(program[0], list(program))  # noqa: S606 -- it becomes what the user wants to run


def main(argv: Sequence[str] | None = None) -> int:
    """The program."""
    parser = argparse.ArgumentParser(prog="danlu_sshd")
    parser.add_argument("--at", required=True)
    parser.add_argument("--keys", default="")
    parser.add_argument("--home", default="")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    given = parser.parse_args(argv)
    # A session ends by a hang-up. Whoever started us may ignore it (nohup), and children inherit
    # that.
    for ending in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(ending) is signal.SIG_IGN:
            signal.signal(ending, signal.SIG_DFL)
    program = given.program[1:] if given.program[:1] == ["--"] else given.program
    sshd = Sshd(given.at, given.keys, given.home)
    try:
        sshd.prepare()
        if not program:
            sshd.serve(sshd.listen())
            return 0
        beside(sshd)
    except (NoSsh, OSError) as problem:
        if not program:
            sys.stderr.write(f"danlu: no SSH: {problem}\n")
            return 1
    _become(program)


if __name__ == "__main__":
    sys.exit(main())
