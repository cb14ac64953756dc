"""The log's pump: every byte, and no waiting for a disk that is full."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from danlu.node.log_files import LogWriter
from danlu.node.logs import Pump, open_pipe


def test_everything_arrives_and_the_end_is_noticed(tmp_path: Path) -> None:
    source, output = open_pipe()
    log = LogWriter(str(tmp_path), 0)
    data = os.urandom(3 << 20)

    def write() -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(output, left) :]
        os.close(output)

    writer = threading.Thread(target=write)
    writer.start()
    pump = Pump(source, log)
    assert pump.drain(60)
    writer.join()
    pump.sync()
    assert (tmp_path / "log").read_bytes() == data
    assert pump.dropped_bytes == 0
    os.close(source)
    log.close()


def test_a_log_is_continued(tmp_path: Path) -> None:
    for part in (b"pip said this\n", b"and then the program\n"):
        source, output = open_pipe()
        log = LogWriter(str(tmp_path), 0)
        os.write(output, part)
        os.close(output)
        assert Pump(source, log).drain(60)
        os.close(source)
        log.close()
    assert (tmp_path / "log").read_bytes() == b"pip said this\nand then the program\n"


def test_a_full_disk_costs_bytes_and_not_the_program(tmp_path: Path) -> None:
    """(fault 20)"""
    source, output = open_pipe()
    log = LogWriter(str(tmp_path), 0)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log._descriptor)
    os.write(output, b"x" * 10_000)
    os.close(output)
    pump = Pump(source, log)
    assert pump.drain(60)
    assert pump.dropped_bytes == 10_000
    os.close(source)
    os.close(full)


def test_a_pipe_that_somebody_keeps_open_is_not_waited_for(tmp_path: Path) -> None:
    """(case 7)"""
    source, output = open_pipe()
    log = LogWriter(str(tmp_path), 0)
    os.write(output, b"all there is")
    assert not Pump(source, log).drain(0.05)
    assert (tmp_path / "log").read_bytes() == b"all there is"
    for descriptor in (source, output):
        os.close(descriptor)
    log.close()
