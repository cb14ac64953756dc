"""An engine of a user without rights, which runs one text and prints what came of it as JSON."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from danlu.model.script import TaskPlan
from danlu.ports.engine import Launch
from tests.contract.engines import ProcessHouse, finish, new_ref, whole_log


def main() -> None:
    order = json.loads(sys.argv[1])
    house = ProcessHouse(Path(order["root"]))
    try:
        ref = new_ref()
        environment = Path(order.get("environment", sys.prefix))
        house.engine._environment_of = lambda _: environment
        line = shlex.join(["exec", f"{environment}/bin/python3", "-I", "-c", order["text"]])
        plan = TaskPlan(ref.job_id, 1, 0, ref.token, "x", command=line, memory_bytes=64 << 20)
        house.engine.launch([Launch(ref, "here", plan)])
        seen = finish(house, ref)
        found = {
            "exit": None if seen.exit is None else seen.exit.exit_code,
            "log": whole_log(house, ref).decode(),
            "notes": [note.key for note in seen.notes],
            "unenforced": house.engine.powers.unenforced,
        }
    finally:
        house.close()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
