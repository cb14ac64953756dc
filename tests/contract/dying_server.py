"""A server that launches one task and is killed before it can do anything else."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from danlu.engines.container import ContainerEngine
from danlu.engines.process import ProcessEngine
from danlu.model.script import TaskPlan
from danlu.ports.engine import Launch, Ref
from danlu.ports.task_directory import Isolation


def main() -> None:
    order = json.loads(sys.argv[1])
    root = Path(order["root"])
    objects = {"kind": "folder", "root": str(root / "objects")}
    ours = Isolation(readable=(str(Path(__file__).parent),))
    engine: ProcessEngine
    if "socket" in order:
        engine = ContainerEngine(
            root / "engine", order["socket"], objects, image=order["image"], isolation=ours
        )
    else:
        engine = ProcessEngine(
            root / "engine", lambda _plan: Path(sys.prefix), objects, isolation=ours
        )
    ref = Ref(*order["ref"])
    plan = TaskPlan(ref.job_id, 1, ref.task, ref.token, "x", command=order["command"])
    engine.launch([Launch(ref, "here", plan)])
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
