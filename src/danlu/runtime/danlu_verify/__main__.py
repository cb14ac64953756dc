"""Run the checks, hand the report over, wait for leave, and become the job's program.

    python -I danlu_verify CONFIG REPORT WORD -- PROGRAM [ARGUMENT...]

CONFIG is JSON of the agent's; REPORT is written here; WORD is written by the agent once it has read
the report: `go`, or anything else. Nothing of the job has run until then.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from danlu_verify.checks import FAIL, NAMES, SKIPPED, Check, Config, reason_to_skip, result, run
from danlu_verify.doors import DOORS
from danlu_verify.gpu_side import COUNT, GPUS
from danlu_verify.system import FILES, SYSTEM
from danlu_verify.torch_side import LOADER, REDUCING, TORCH

GROUPS: dict[str, dict[int, Check]] = {
    "system": SYSTEM, "files": FILES, "torch": TORCH, "loader": LOADER, "reduce": REDUCING,
    "doors": DOORS, "gpus": GPUS, "count": COUNT,
}  # fmt: skip
FULL = ("torch", "reduce", "doors", "loader", "files", "system", "gpus")
AT_ONCE = 3
GROUP_LIMIT_S = 900.0
REFUSED = 79
"""The exit status where the agent says no."""


def main(words: list[str]) -> int:
    """See the module. With `--group NAME CONFIG`: one group of checks, a line of JSON each."""
    if words[0] == "--group":
        for one in run(_read(words[2]), GROUPS[words[1]]):
            sys.stdout.write(json.dumps(one) + "\n")
            sys.stdout.flush()
        return 0
    config_file, report, word, _, *program = words
    config = _read(config_file)
    results = every(config, config_file)
    fresh = Path(f"{report}.new")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_text(json.dumps({"nonce": config["nonce"], "results": results}), "utf-8")
    fresh.rename(report)
    if not _leave(Path(word), config["nonce"]):
        for one in results:
            if one["status"] == FAIL:
                sys.stderr.write("danlu: {number} {name}: {detail}\n".format(**one))
        return REFUSED
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)  # noqa: S606 -- no shell is the point
    except OSError as error:
        sys.stderr.write(f"{program[0]}: {error.strerror}\n")
        return 127 if isinstance(error, FileNotFoundError) else 126


def _read(path: str) -> Config:
    found: Config = json.loads(Path(path).read_text("utf-8"))
    return found


def every(config: Config, file: str) -> list[dict[str, Any]]:
    """The results of all groups, each of which is a process: a crash is a result."""
    waiting = list(FULL if config["full"] else ("count",))
    running: list[tuple[str, subprocess.Popen[str]]] = []
    found: dict[int, dict[str, Any]] = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            name = waiting.pop(0)
            running.append((name, _started(name, file)))
        name, process = running.pop(0)
        try:
            out, err = process.communicate(timeout=GROUP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        found.update(_told(config, name, process.returncode, out, err))
    return [found[number] for number in sorted(found)]


def _started(name: str, file: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", os.path.dirname(os.path.abspath(__file__)), "--group", name, file],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )


def _told(config: Config, name: str, code: int, out: str, err: str) -> dict[int, dict[str, Any]]:
    """What a group said, on stdout alone; of what it did not come to, that it failed."""
    found: dict[int, dict[str, Any]] = {}
    for line in out.splitlines():
        try:
            one = json.loads(line)
            found[int(one["number"])] = one
        except (ValueError, TypeError, KeyError):
            continue
    last = " ".join(err.split())[-200:]
    for number in GROUPS[name]:
        if number not in found:
            skipped = reason_to_skip(config, number)
            how = f"the check ended with {code}: {last}"
            found[number] = result(number, SKIPPED if skipped else FAIL, skipped or how)
    return {number: one for number, one in found.items() if number in NAMES}


def _leave(word: Path, nonce: str) -> bool:
    """Wait for the agent's word. Who asks has a parent that ends it; nobody else is waited for."""
    while True:
        try:
            said = word.read_text("ascii").split()
        except OSError:
            said = []
        if len(said) == 2 and said[0] == nonce:
            return said[1] == "go"
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
