"""A program that does what its one argument says (JSON): see `Program` in engines.py."""

from __future__ import annotations

import json
import os
import signal
import sys
import time


def main() -> None:
    part = json.loads(sys.argv[1])
    told: list[int] = []
    if part["on_term"] == "ignore":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif part["on_term"] != "die":
        signal.signal(signal.SIGTERM, lambda number, _frame: told.append(number))
    for stream, key in ((1, "out"), (2, "err")):
        data = bytes.fromhex(part[key]) * part["times"]
        while data:
            data = data[os.write(stream, data) :]
    if part["runs_s"] is None or part["runs_s"] > 0:
        until = None if part["runs_s"] is None else time.monotonic() + part["runs_s"]
        while not told and (until is None or time.monotonic() < until):
            time.sleep(0.005)
    if told:
        os.write(1, b"told to stop\n")
        sys.exit(int(part["on_term"]))
    if part["signal"]:
        os.kill(os.getpid(), signal.Signals[part["signal"]])
    sys.exit(part["exit_code"])


if __name__ == "__main__":
    main()
