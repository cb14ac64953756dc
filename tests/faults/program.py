"""What a job of the kill harness does: steps, each told to a witness whom no kill reaches.

Run inside the job, by whatever Python it has: standard library only. A word to the witness is
acknowledged before the program goes on, so what it did is on record even if it is killed next.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any


class Witness:
    def __init__(self) -> None:
        address = ("127.0.0.1", int(os.environ["WITNESS"]))
        self._stream = socket.create_connection(address).makefile("rwb")
        self._who = {
            "label": os.environ["LABEL"],
            "job": os.environ["DANLU_JOB_ID"],
            "attempt": int(os.environ["DANLU_ATTEMPT"]),
            "task": int(os.environ["VC_TASK_INDEX"]),
            "run": secrets.token_hex(8),
        }

    @property
    def run(self) -> str:
        return str(self._who["run"])

    def tell(self, kind: str, **facts: Any) -> None:
        self._stream.write(json.dumps({**self._who, "kind": kind, **facts}).encode() + b"\n")
        self._stream.flush()
        if self._stream.readline() != b"ok\n":
            sys.exit(9)  # the harness has gone


def publish(path: Path, value: object) -> None:
    draft = path.with_name(f".{path.name}")
    draft.write_text(json.dumps(value), encoding="utf-8")
    draft.rename(path)


def main() -> None:
    out = Path(os.environ["out"])  # noqa: SIM112 -- the name of the job's output
    steps, pause_s = int(os.environ["STEPS"]), float(os.environ["PAUSE"])
    witness = Witness()
    if os.environ.get("TERM") == "ignore":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    task = os.environ["VC_TASK_INDEX"]
    checkpoint = out / f"checkpoint-{task}.json"
    first = json.loads(checkpoint.read_text())["step"] + 1 if checkpoint.exists() else 0
    witness.tell("start", step=first)
    for step in range(first, steps):
        witness.tell("step", step=step)
        sys.stdout.write(f"step {step} of {steps}, loss={1 / (step + 1):.6f}\n")
        sys.stdout.flush()
        publish(out / f"part-{task}-{step}.json", {"step": step, "fill": "x" * 512})
        publish(checkpoint, {"step": step, "run": witness.run})
        time.sleep(pause_s)
    publish(out / f"result-{task}.json", {"run": witness.run, "steps": steps})
    witness.tell("end")
    sys.exit(int(os.environ["CODE"]))


if __name__ == "__main__":
    main()
