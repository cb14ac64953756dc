"""The process engine on a disk without room: on small real file systems."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from danlu.model.job import Access, Output
from danlu.model.reason import ReasonCode
from danlu.model.texts import text
from danlu.model.url import LocalUrl
from danlu.ports.engine import Phase
from danlu.ports.task_directory import Isolation
from danlu.stores.folder import FolderStore
from tests import mounts
from tests.contract.engines import ProcessHouse, finish, until
from tests.contract.tasks import CODE, start

CHECKPOINTS = """
    import mmap, os, pathlib, time
    out = pathlib.Path(os.environ["model"])
    (out / "ckpt-1").write_bytes(b"1" * 100_000)
    while not pathlib.Path({go!r}).exists():
        time.sleep(0.01)
    {fill}
"""
FILLS = {
    "bytes": "(out / 'ckpt-2').write_bytes(bytes(64 << 20))",
    "inodes": "[(out / f'part-{n}').touch() for n in range(10**6)]",
    "mapped": (
        "file = open(out / 'ckpt-2', 'w+b'); file.truncate(64 << 20);"
        " mmap.mmap(file.fileno(), 0).write(bytes(64 << 20))"
    ),
}


@contextmanager
def small_disk(where: Path, **options: Any) -> Iterator[ProcessHouse]:
    with mounts.ext4(where, 48 << 20, "-N", "2000") as disk:
        house = ProcessHouse(disk / "house", **options)
        try:
            yield house
        finally:
            house.close()


@pytest.mark.parametrize("kind", sorted(FILLS))
def test_a_task_that_fills_the_disk_fails_with_a_cause_of_its_own(
    tmp_path: Path, kind: str
) -> None:
    """(faults 20, 21) Not just "exit 1"; and the checkpoint that it stored before is whole."""
    kept, signs = tmp_path / "kept", tmp_path / "signs"
    go = signs / "go"
    for folder in (kept, signs):
        folder.mkdir()
    seen_by_all = Isolation(readable=(str(signs),))
    with small_disk(tmp_path / "disk", isolation=seen_by_all) as house:
        output = Output("model", LocalUrl(str(kept)), Access.ENV)
        program = CHECKPOINTS.format(fill=FILLS[kind], go=str(go))
        ref = start(house, program, outputs=(output,))
        until(house, ref, lambda _: (kept / "ckpt-1").exists())
        go.touch()

        seen = finish(house, ref)

    assert seen.phase is Phase.DONE
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.OUT_OF_DISK
    assert (kept / "ckpt-1").read_bytes() == b"1" * 100_000
    said = text("out-of-disk", "en", task="worker-0", **seen.exit.detail)
    assert ref.name in said
    assert "No space left on device" in said


def test_code_that_does_not_fit_is_a_full_disk_and_not_a_mistake_in_the_code(
    tmp_path: Path,
) -> None:
    """(fault 20) While staging: nothing has run, and who reads it need not look at the code."""
    store = FolderStore(str(tmp_path / "objects"))
    store.create_bucket("danlu")
    store.put("danlu", "code/main.py", b"print('ran')\n")
    store.put("danlu", "code/weights.bin", bytes(64 << 20))
    objects = {"kind": "folder", "root": str(tmp_path / "objects")}
    with small_disk(tmp_path / "disk", objects=objects) as house:
        ref = start(house, "", code=CODE, boot_file="main.py", command="")

        seen = finish(house, ref)

    assert seen.exit is not None
    assert (seen.exit.problem, seen.started_at) == (ReasonCode.OUT_OF_DISK, None)
    assert seen.exit.detail["detail"] == "No space left on device"


def test_an_output_that_does_not_fit_stays_where_it_was_written(tmp_path: Path) -> None:
    """(fault 20) The store's disk is the full one; what was stored before is not touched."""
    with mounts.tmpfs(tmp_path / "kept", "size=1m") as kept, contextlib.ExitStack() as stack:
        (kept / "ckpt-0").write_bytes(b"0" * 1000)
        house = ProcessHouse(tmp_path)
        stack.callback(house.close)
        output = Output("model", LocalUrl(str(kept)), Access.ENV)
        program = """
            import os, pathlib
            (pathlib.Path(os.environ["model"]) / "ckpt-1").write_bytes(b"1" * 4_000_000)
        """
        ref = start(house, program, outputs=(output,))

        seen = finish(house, ref)

        assert (seen.exit and seen.exit.exit_code, seen.problem) == (0, ReasonCode.OUT_OF_DISK)
        left = Path(str(seen.detail["path"]), "ckpt-1")
        assert left.read_bytes() == b"1" * 4_000_000
        assert (kept / "ckpt-0").read_bytes() == b"0" * 1000
        assert not (kept / "ckpt-1").exists()
