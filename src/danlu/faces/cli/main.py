"""The program `danlu`: help at once, plain command lines without click, mistakes through it."""

from __future__ import annotations

import os
import sys

from danlu.faces.cli.language import flag_of, language_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from collections.abc import Mapping, Sequence
    from typing import Any

    from danlu.faces.cli.grammar import Command
    from danlu.faces.cli.session import Session

COMPLETE = "_DANLU_COMPLETE"
HELP = os.path.join(os.path.dirname(__file__), "help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and give its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if COMPLETE not in os.environ:
            if words in ([], ["--help"], ["-h"]):
                return _packaged_help()
            if words == ["--version"]:
                return _version()
            from danlu.faces.cli import quick

            parsed = quick.read(words)
            if parsed is not None:
                return run(parsed.command, parsed.common, parsed.values)
        from danlu.faces.cli.clicked import click_main

        return click_main(words, run, language_of(flag_of(words), os.environ))
    except BrokenPipeError:
        return _pipe_closed()
    except KeyboardInterrupt:
        return 130
    except OSError as error:  # of help: what commands meet is shown by `run`
        return _output_failed(error, words)


def run(command: Command, common: dict[str, Any], values: dict[str, Any]) -> int:
    """Run one command with its values; every failure is shown here."""
    from danlu.faces.cli.session import Session, data_directory
    from danlu.faces.cli.terminal import Terminal, streams

    out, err = streams()
    session = Session(
        Terminal(out, err, color=common["color"]),
        language_of(common["lang"], os.environ),
        data=data_directory(common["data"], os.environ),
        data_source="flag" if common["data"] else _data_source(os.environ),
        server=common["server"] or ("" if common["data"] else os.environ.get("DANLU_SERVER", "")),
        as_json=common["json"],
        quiet=common["quiet"],
        debug=common["debug"],
    )
    try:
        status = _handler(command.handler)(session, **values)
        out.flush()
    except BrokenPipeError:
        return _pipe_closed()
    except KeyboardInterrupt:
        session.terminal.wipe()
        return 130
    except Exception as error:
        session.terminal.wipe()
        return _failed(session, error)
    return int(status)


def _data_source(environ: Mapping[str, str]) -> str:
    return "environment" if environ.get("DANLU_DATA") else "default"


def _handler(path: str) -> Any:
    module, _, name = path.partition(":")
    __import__(module)
    return getattr(sys.modules[module], name)


def _failed(session: Session, error: Exception) -> int:
    """Show what went wrong, in the one place that does."""
    from danlu.faces.cli.failures import explain

    return explain(session, error)


def _output_failed(error: OSError, words: list[str]) -> int:
    from danlu.faces.cli.failures import output_failure

    failure = output_failure(error)
    if failure is None:
        raise error
    sys.stderr.write(f"danlu: {failure.message(language_of(flag_of(words), os.environ))}\n")
    return failure.exit_status


def _packaged_help() -> int:
    """The program's own help, rendered beforehand: click would take three times as long."""
    language = language_of(None, os.environ)
    with open(os.path.join(HELP, f"{language}.txt"), "rb") as file:
        _write(file.read())
    return 0


def _version() -> int:
    from danlu import __version__

    _write(f"danlu {__version__}\n".encode())
    return 0


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _pipe_closed() -> int:
    """Whoever read us has gone: end without a word, and let the interpreter flush into nothing."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    return 141
