"""A process with the whole server imported, which forks one whenever a line comes in.

So a server that is killed twice a second is back before it is missed. What a fork runs is the
server as `danlu serve` runs it; only the machine is said to be larger than it is, so that many
jobs run side by side.

    python zygote.py DATA PORT LOG         forks on demand
    python zygote.py DATA PORT LOG cold    becomes the server itself, imports and all
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from pathlib import Path

from danlu import settings
from danlu.engines import process  # noqa: F401 -- imported for the forks
from danlu.engines.process import machine
from danlu.faces.http import serve
from danlu.flow import loop
from danlu.model.errors import PlatformError
from danlu.stores import folder, sql  # noqa: F401 -- as above
from tests.faults.house import CPUS

SWEEP_EVERY_S = 0.5


def main(data: str, port: str, log: str, cold: str = "") -> None:
    machine.cpus = _cpus
    loop.SWEEP_EVERY_S = SWEEP_EVERY_S
    loaded = settings.load(Path(data), {"port": int(port)}).settings
    if cold:
        _serve(loaded, log)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _serve(loaded, log)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def _cpus(root: Path = Path("/")) -> int:
    _ = root
    return CPUS


def _serve(loaded: settings.Settings, log: str) -> None:
    """Be a server; does not return."""
    code = 70
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        end = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream, to in ((0, nothing), (1, end), (2, end)):
            os.dup2(to, stream)
        code = serve.serve(loaded)
    except PlatformError as error:
        code = error.exit
    finally:
        if code:
            traceback.print_exc()
        os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
