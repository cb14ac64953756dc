"""A job's create body in ModelArts' words, from what stands on the command line. No I/O but for
looking at the paths that were named.
"""

from __future__ import annotations

import os

from danlu.faces.cli.failure import MISSING, REFUSED, USAGE, Failure
from danlu.faces.cli.session import utf8

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

CODE_ROOT = "/home/ma-user/modelarts/user-job-dir"
"""ModelArts' place of the code; a server with other places maps it."""
NAME_CHARS = 64
NOTEBOOK = ".ipynb"
"""A script that ends so is executed cell by cell."""
EXECUTED = "notebook"
"""The output that takes the executed copy."""
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Work:
    """What is to run: a boot file with parameters, or a shell line; and the code that goes along.

    `code` is a directory of this machine, empty where none is sent.
    """

    __slots__ = ("boot_file", "code", "command", "name", "parameters")

    def __init__(
        self,
        *,
        code: str = "",
        boot_file: str = "",
        command: str = "",
        parameters: Sequence[tuple[str, str]] = (),
        name: str = "job",
    ) -> None:
        self.code = code
        self.boot_file = boot_file
        self.command = command
        self.parameters = list(parameters)
        self.name = name


def script_work(script: str, args: list[str], code: str | None) -> Work:
    """Run a script of the code directory with exactly these arguments.

    Arguments that all have the form `--name=value` become parameters, as ModelArts hands them
    over. Any other list could not travel that way; it goes as a quoted shell line.
    """
    if not os.path.isfile(script):
        key = "script-is-directory" if os.path.isdir(script) else "script-missing"
        raise Failure(MISSING, key, script=script)
    path = os.path.abspath(script)
    root = code_directory(code) if code is not None else os.path.dirname(path)
    boot = os.path.relpath(path, root)
    if boot == os.pardir or boot.startswith(os.pardir + os.sep):
        raise Failure(USAGE, "script-outside", script=script, code=root)
    boot = utf8(boot.replace(os.sep, "/"), "SCRIPT")
    # `danlu run x.py -- --lr 1` is what people write who know other programs.
    texts = [utf8(arg, "ARGS") for arg in (args[1:] if args[:1] == ["--"] else args)]
    name = job_name(os.path.basename(path))
    parameters = [parameter for arg in texts if (parameter := _parameter(arg)) is not None]
    if boot.endswith(NOTEBOOK) and len(parameters) != len(texts):
        odd = next(arg for arg in texts if _parameter(arg) is None)
        raise Failure(USAGE, "notebook-argument", value=odd, notebook=boot)
    if boot.endswith((".py", NOTEBOOK)) and len(parameters) == len(texts):
        return Work(code=root, boot_file=boot, parameters=parameters, name=name)
    return Work(code=root, command=_script_line(path, boot, texts), name=name)


def command_work(words: Sequence[str], code: str | None, *, no_code: bool) -> Work:
    """Run a command. One word is a shell line; several are a program and its arguments."""
    import shlex

    texts = [utf8(word, "COMMAND") for word in words]
    if not texts or not texts[0].strip():
        raise Failure(USAGE, "command-empty")
    line = texts[0] if len(texts) == 1 else shlex.join(texts)
    parts = texts[0].split() if len(texts) == 1 else texts
    # `torchrun --nproc_per_node 2 train.py` is a job of train.py, not of torchrun.
    file = next((part for part in parts if part.endswith((".py", ".sh"))), parts[0])
    root = "" if no_code else code_directory(code or os.curdir)
    return Work(code=root, command=line, name=job_name(os.path.basename(file)))


def code_directory(code: str) -> str:
    """The absolute path of a directory that exists; Failure if it does not."""
    if not os.path.isdir(code):
        key = "code-not-directory" if os.path.exists(code) else "code-missing"
        raise Failure(MISSING if key == "code-missing" else USAGE, key, code=code)
    return os.path.abspath(code)


def _script_line(path: str, boot: str, args: Sequence[str]) -> str:
    import shlex

    if boot.endswith(".py"):
        program = '"$MA_SCRIPT_INTERPRETER" '
    elif boot.endswith(".sh"):
        program = "bash "
    elif os.access(path, os.X_OK):
        program = ""
    else:
        raise Failure(USAGE, "script-kind", script=boot)
    words = [f'"$MA_CODE_DIR"/{shlex.quote(boot)}', *(shlex.quote(arg) for arg in args)]
    return f"exec {program}{' '.join(words)}"


def _parameter(arg: str) -> tuple[str, str] | None:
    """The name and value of `--name=value`, or None for anything else."""
    name, equals, value = arg.removeprefix("--").partition("=")
    if not arg.startswith("--") or not equals or not name or any(c.isspace() for c in name):
        return None
    return name, value


def job_name(file: str) -> str:
    """A job's name from a file's: letters, digits, `-` and `_`."""
    stem = file.rpartition(".")[0] or file
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in stem)
    return plain.strip("-")[:NAME_CHARS] or "job"


def assignments(words: Iterable[str], option: str) -> list[tuple[str, str]]:
    """NAME=VALUE words, in order."""
    pairs = []
    for word in words:
        name, equals, value = utf8(word, option).partition("=")
        if not equals or not name:
            raise Failure(USAGE, "assignment", option=option, value=word)
        pairs.append((name, value))
    return pairs


def inputs(words: Iterable[str], send: Callable[[str, str], str] | None) -> list[dict[str, Any]]:
    """Input channels. Paths of this machine are good only for a server of this machine; `send`
    takes them to another one, and gives the place that they have there.
    """
    channels = []
    for name, value in assignments(words, "--input"):
        option = f"--input {name}"
        if send is not None and "://" not in value:
            url = send(value, option)
        else:
            url = place(value, option, remote=False, must_exist=True)
        channels.append(channel(name, url))
    return channels


def outputs(words: Iterable[str], home: str, *, remote: bool) -> list[dict[str, Any]]:
    """Output channels; without a path they lie below `home`."""
    channels = []
    for word in words:
        name, equals, value = utf8(word, "--output").partition("=")
        if not name or (equals and not value):
            raise Failure(USAGE, "assignment", option="--output", value=word)
        url = place(value, f"--output {name}", remote=remote) if equals else f"{home}{name}/"
        channels.append(channel(name, url))
    return channels


def channel(name: str, url: str) -> dict[str, Any]:
    """An input or output in ModelArts' form."""
    return {"name": name, "remote": {"obs": {"obs_url": url}}}


def place(value: str, option: str, *, remote: bool, must_exist: bool = False) -> str:
    """A storage URL as it stands, or the file:// URL of a path of this machine."""
    if "://" in value:
        return value  # the server says which schemes it takes
    if remote:
        raise Failure(REFUSED, "path-on-remote", option=option, path=value)
    path = os.path.abspath(os.path.expanduser(value))
    if must_exist and not os.path.exists(path):
        raise Failure(MISSING, "path-missing", option=option, path=path)
    return f"file://{path}"


def causes(text: str) -> list[str]:
    """The causes of `--retry-on`; `none` stands for an empty list."""
    listed = [one.strip() for one in utf8(text, "--retry-on").split(",")]
    return [] if listed == ["none"] else [one for one in listed if one]


def duration_s(text: str | None, option: str) -> int | None:
    """Seconds in `90`, `90s`, `30m`, `2h`, `1d` or `1h30m`."""
    if text is None:
        return None
    total, number, units = 0, "", 0
    for c in text:
        if c.isascii() and c.isdigit() and len(number) < 10:
            number += c
        elif c in UNITS and number:
            total += int(number) * UNITS[c]
            number, units = "", units + 1
        else:
            raise Failure(USAGE, "duration", option=option, value=text)
    if number and units:
        raise Failure(USAGE, "duration", option=option, value=text)
    total += int(number or 0)
    if not text or (not number and not units):
        raise Failure(USAGE, "duration", option=option, value=text)
    return total
