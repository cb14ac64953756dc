"""Start an agent: `python -I -S -X utf8 …/danlu/node/__main__.py DIRECTORY`, or `--serve` for a
process that starts agents when asked (see `starter`), `--serve-bare` for one whose programs are
kept from nothing, `--execute DIRECTORY` for a command beside a task (see `execute`). Needs the
standard library only.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run what the arguments ask for; the exit status."""
    beside = len(arguments) == 2 and arguments[0] == "--execute"
    if len(arguments) != 1 and not beside:
        sys.stderr.write("usage: DIRECTORY | --serve | --serve-bare | --execute DIRECTORY\n")
        return 64
    # Started by path and isolated from the environment: only this tells where the package is.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    if beside:
        from danlu.node.execute.serve import serve

        return serve(arguments[1])
    from danlu.node import starter

    if arguments[0] in ("--serve", "--serve-bare"):
        return starter.serve(apart=arguments[0] == "--serve")
    starter.detach()
    starter.be_agent(arguments[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
