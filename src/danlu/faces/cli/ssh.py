"""danlu ssh, code, port: OpenSSH's own client on the way to a notebook or a job.

The client is told by a file what it would ask or have to guess: the door on the way, and the keys
by which door and instance are known. Nothing of the user's own settings is lost.
"""

from __future__ import annotations

import os
import shutil
from shlex import quote
from urllib.parse import urlsplit

from danlu.faces.cli.failure import MISSING, RETRY, USAGE, Failure
from danlu.faces.cli.session import Session, utf8

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any, NoReturn

DIRECTORY = "danlu"
INCLUDE = f"Include {DIRECTORY}/*.conf"
EDITORS = ("code", "code-insiders", "codium", "cursor")
MOST_PORT = 65_535


def ssh(session: Session, *, task: str | None, words: tuple[str, ...]) -> NoReturn:
    """A login, or a command as ssh takes it; the exit status is that of ssh."""
    name, *command = words
    host, config, _ = _written(session, name, task)
    _become(["-F", config, host, *command])


def port(session: Session, *, task: str | None, words: tuple[str, ...]) -> NoReturn:
    """Have ports of this machine lead to the instance's, until Ctrl-C."""
    name, *wanted = words
    pairs = [_pair(one) for one in wanted]
    host, config, _ = _written(session, name, task)
    forwards = [word for here, there in pairs for word in ("-L", _forward(here, there))]
    for here, there in pairs:
        session.say("port-open", here=here, there=there, notebook=name)
    session.terminal.err.flush()
    _become(["-F", config, "-N", "-o", "ExitOnForwardFailure=yes", *forwards, host])


def code(session: Session, *, task: str | None, name: str, print_only: bool) -> int:
    """Make the instance a host of ssh's, and open an editor there."""
    host, _, home = _written(session, name, task)
    _included()
    editor = None if print_only else next(filter(None, map(shutil.which, EDITORS)), None)
    if session.json:
        session.put_json({"host": host, "home": home})
    elif editor is None or session.quiet:
        session.put(host)
        session.say("code-host", host=host, home=home)
    else:
        session.say("code-opening", host=host, home=home)
        os.execv(editor, [editor, "--remote", f"ssh-remote+{host}", home])  # noqa: S606 -- no shell
    return 0


def forget(notebook_id: str) -> None:
    """Remove what ssh was told of a notebook, which is over."""
    for ending in ("conf", "ssh", "known_hosts"):
        try:
            os.unlink(_path(f"{notebook_id}.{ending}"))
        except OSError:
            continue


def _become(words: list[str]) -> NoReturn:
    program = shutil.which("ssh")
    if program is None:
        raise Failure(MISSING, "ssh-no-client")
    os.execv(program, [program, *words])  # noqa: S606 -- no shell is the point


def _access(session: Session, name: str, task: str | None) -> Any:
    named = session.get("jobs", name)["id"] if name.startswith("@") else utf8(name, "NAME")
    if task is not None:
        number = task.isascii() and task.isdigit()
        named = f"{f'worker-{task}' if number else utf8(task, '--task')}.{named}"
    found = session.get("ssh", named)
    if not found["keys"]:
        raise Failure(USAGE, "ssh-no-keys")
    if not found["ready"]:
        raise Failure(RETRY, "ssh-not-ready", name=name)
    return found


def _written(session: Session, name: str, task: str | None) -> tuple[str, str, str]:
    """The name of a host that leads to the instance, the file that says how, and its home."""
    access = _access(session, name, task)
    instance = access["name"]
    plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    host = f"{name if plain else instance[:8]}.danlu"
    if "." in instance:
        host = f"{instance.partition('.')[0]}.{host}"
    known = _path(f"{instance}.known_hosts")
    _write(known, f"danlu-door {access['door_key']}\ndanlu-instance {access['host_key']}\n")
    server = urlsplit(session.client().endpoint.api).hostname or "127.0.0.1"
    config = _path(f"{instance}.ssh")
    # What ProxyJump runs is not quoted: no space may be in the name of the file. That of ssh's own
    # need not be given.
    through = f"ssh -F {quote(config).replace('%', '%%')} -W [%h]:%p {host}-door"
    own, given = (
        _config(host, instance, server, access, known, way)
        for way in (f"ProxyJump {host}-door", f"ProxyCommand {through}")
    )
    _write(_path(f"{instance}.conf"), own)
    others = "".join(
        f"Include {_quoted(path)}\n"
        for path in (_own("config"), "/etc/ssh/ssh_config")
        if os.path.isfile(path)
    )
    _write(config, f"{given}Match all\n{others}")
    return host, config, access["home"]


def _config(host: str, instance: str, server: str, access: Any, known: str, way: str) -> str:
    return f"""\
# Danlu wrote this, and removes it when the notebook or job has ended.
Host {host}
  HostName {instance}
  User {access["user"]}
  HostKeyAlias danlu-instance
  {way}
Host {host}-door
  HostName {server}
  Port {access["port"]}
  User {access["login"]}
  HostKeyAlias danlu-door
Host {host} {host}-door
  UserKnownHostsFile {_quoted(known)}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  PasswordAuthentication no
  ServerAliveInterval 30
"""


def _included() -> None:
    """Have ssh read the hosts of ours: the first line of its own settings says so."""
    path = _own("config")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read()
    except FileNotFoundError:
        text = ""
    if INCLUDE not in text.splitlines():
        # A link, as people have who keep their settings elsewhere, stays one.
        _write(os.path.realpath(path), f"{INCLUDE}\n{text}")


def _own(name: str) -> str:
    return os.path.join(os.path.expanduser("~"), ".ssh", name)


def _path(name: str) -> str:
    return os.path.join(_own(DIRECTORY), name)


def _write(path: str, text: str) -> None:
    """Write a file for its owner only: whole or not at all."""
    draft = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with open(
            os.open(draft, flags, 0o600), "w", encoding="utf-8", errors="surrogateescape"
        ) as to:
            to.write(text)
        os.replace(draft, path)
    except OSError as error:
        raise Failure(MISSING, "ssh-config", path=path, detail=error.strerror or error) from error


def _quoted(path: str) -> str:
    """A path as ssh's settings take it: tokens begin with %."""
    return '"' + path.replace("%", "%%").replace('"', '\\"') + '"'


def _pair(text: str) -> tuple[int, int]:
    """The ports of `PORT` or `HERE:THERE`."""
    here, colon, there = text.partition(":")
    both = (here, there if colon else here)
    if not all(one.isascii() and one.isdigit() and 0 < int(one[:6]) <= MOST_PORT for one in both):
        raise Failure(USAGE, "port-malformed", value=text)
    return int(both[0]), int(both[1])


def _forward(here: int, there: int) -> str:
    return f"127.0.0.1:{here}:127.0.0.1:{there}"
