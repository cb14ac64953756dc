"""Long logs of real programs: followed across kills of the server, flooded, and read anywhere.

LOG_LINES and LOG_KILLS say how long and how often (`make faults-long` takes 1,000,000 lines and 20
kills), FLOOD_S for how long a program prints as fast as it can.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.faces.cli.house import House, until

LINES = int(os.environ.get("LOG_LINES", "200000"))
KILLS = int(os.environ.get("LOG_KILLS", "3"))
FLOOD_S = float(os.environ.get("FLOOD_S", "3"))
GROWTH_BYTES = 50 << 20
LIMIT_MIB = 8

COUNTS = """
import sys, time
lines, pause = int(sys.argv[1]), float(sys.argv[2])
for line in range(lines):
    sys.stdout.write(f"line {line} of some length, as programs print them\\n")
    if line % 1000 == 0:
        sys.stdout.flush()
        time.sleep(pause)
"""


def counted(lines: int) -> bytes:
    return b"".join(
        b"line %d of some length, as programs print them\n" % line for line in range(lines)
    )


def _read(process: subprocess.Popen[bytes], into: list[bytes]) -> None:
    assert process.stdout is not None
    into.append(process.stdout.read())


@pytest.mark.faults
@pytest.mark.timeout(7200)
def test_no_line_is_lost_or_doubled_while_the_server_is_killed(own_house: House) -> None:
    """(fault 1) A follower's file is the log, byte for byte, however often the server dies."""
    house, dice = own_house, random.Random(LINES)
    pause_s = max(0.02, KILLS * 1.5 / (LINES / 1000))
    words = (house.script(COUNTS), str(LINES), str(pause_s))
    job = house.good("run", "-d", "-q", *words).strip()
    with house.start("logs", "-f", job) as follower:
        followed: list[bytes] = []
        reader = threading.Thread(target=_read, args=(follower, followed))
        reader.start()
        for _ in range(KILLS):
            time.sleep(dice.uniform(0.2, 1.0))
            house.kill_server()
            until(lambda: house.state(job) in {"running", "collecting", "succeeded"})
        reader.join()
        complaint = follower.stderr.read() if follower.stderr is not None else b""
    assert follower.returncode == 0, complaint.decode()
    whole = counted(LINES)
    assert followed == [whole]
    assert house.good("logs", job).encode() == whole
    for first in (1, LINES // 3, LINES - 99):
        window = house.good("logs", "--lines", f"{first}:{first + 99}", job).encode()
        assert window == b"".join(whole.splitlines(keepends=True)[first - 1 : first + 99])
    needle = f"line {LINES // 2} "
    assert house.good("logs", "-n", "--grep", needle, job).split()[0] == str(LINES // 2 + 1)


FLOOD = """
import os, sys, time
block = b"".join(b"%07d " % n + b"x" * 55 + b"\\n" for n in range(4096))
until, count = time.monotonic() + float(sys.argv[1]), 0
os.write(1, b"the first line\\n")
while time.monotonic() < until:
    view = memoryview(block)
    while view:
        view = view[os.write(1, view):]
    count += 1
os.write(1, b"the last line after %d\\n" % count)
"""


def rss_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{pid} is gone")


def on_disk(house: House) -> int:
    """What all logs take."""
    found = 0
    for path in (house.data / "engine" / "tasks").glob("*/log*"):
        for file in [path, *path.glob("*")]:
            try:
                found += 0 if file.is_dir() else file.stat().st_size
            except FileNotFoundError:
                continue
    return found


@pytest.mark.faults
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("follower", ["reads", "stops reading"])
def test_a_flood_fills_neither_memory_nor_disk(own_house: House, follower: str) -> None:
    """(faults 42, 45) Head and tail are kept, the server stays small, others go on."""
    house = own_house
    house.good("run", "-q", house.script("print('warm')"))
    pid = house.server_pid()
    before = rss_bytes(pid)
    words = ("--log-limit", str(LIMIT_MIB), house.script(FLOOD), str(FLOOD_S))
    job = house.good("run", "-d", "-q", *words).strip()
    with house.start("logs", "-f", job) as watching:
        reader = threading.Thread(target=_read, args=(watching, []))
        if follower == "reads":
            reader.start()
        largest = disk = 0
        while house.state(job) not in {"succeeded", "failed"}:
            largest, disk = max(largest, rss_bytes(pid)), max(disk, on_disk(house))
            assert house.good("run", "-q", house.script("print('beside')", "b.py")) == "beside\n"
        if follower == "reads":
            reader.join()
        else:
            watching.kill()
    assert follower != "reads" or watching.returncode == 0
    assert largest - before < GROWTH_BYTES
    assert disk < 1.2 * (LIMIT_MIB << 20)
    lines = house.good("logs", job).splitlines()
    assert lines[0] == "the first line"
    assert lines[-1].startswith("the last line after ")
    (gap,) = [number for number, line in enumerate(lines) if line.startswith("[danlu")]
    printed = 4096 * int(lines[-1].split()[-1])
    assert f"{printed + 2 - (len(lines) - 1)} lines" in lines[gap]
    assert lines[gap - 1][:7].isdigit()
    assert lines[gap + 1][:7].isdigit()
    assert house.json("show", job)["log_bytes"] == printed * 64 + len(lines[0]) + len(lines[-1]) + 2


def test_the_c_locale_of_a_job_changes_no_byte(own_house: House) -> None:
    """(case 18)"""
    house = own_house
    text = "print('中文 — é', flush=True)"
    job = house.good("run", "-d", "-q", "--env", "LC_ALL=C", house.script(text)).strip()
    house.good("logs", "-f", job)
    assert house.good("logs", job) == "中文 — é\n"


def test_what_a_finished_job_printed_is_read_by_everyone_alike(own_house: House) -> None:
    """(case 11) One call gives what the other gives, running or ended."""
    house = own_house
    job = house.good("run", "-d", "-q", house.script("print('one'); print('two')")).strip()
    assert house.good("logs", "-f", job) == "one\ntwo\n"
    for options in ((), ("-f",), ("--tail", "2"), ("--lines", "1:2"), ("--grep", "o"), ("--raw",)):
        assert house.good("logs", *options, job) == "one\ntwo\n", options
