"""A real file system in user space, one that never answers: what the kernel calls `fuse`.

Only what mounting and looking around needs of the protocol (include/uapi/linux/fuse.h).
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.services import offered

_libc = ctypes.CDLL(None, use_errno=True)

_IN = struct.Struct("<IIQQIIII")
_OUT = struct.Struct("<IiQ")
_ATTRIBUTES = struct.Struct("<6Q3I7I")
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, INIT = 1, 2, 3, 14, 15, 17, 26
RELEASE, OPENDIR, RELEASEDIR, ACCESS, INTERRUPT, BATCH_FORGET, FLUSH = 18, 27, 29, 34, 36, 42, 25
ENOENT, ENOSYS = 2, 38
DIRECT_IO = 1


class StuckFs:
    """A file system (FUSE) with one file, `stuck`. Whoever reads it waits in the kernel and
    cannot be killed, as with a network file system whose server is gone.
    """

    def __init__(self, place: Path) -> None:
        offered(os.geteuid() == 0, "root, to mount file systems")
        offered(os.access("/dev/fuse", os.R_OK | os.W_OK), "/dev/fuse")
        place.mkdir(parents=True, exist_ok=True)
        self.place = place
        self.waiting = threading.Event()
        """Somebody reads."""
        self._woken, self._wake = os.pipe()
        self._device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if _libc.mount(b"stuck", os.fsencode(place), b"fuse", 0, options) != 0:
            number = ctypes.get_errno()
            os.close(self._device)
            offered(condition=False, what=f"mounting FUSE: {os.strerror(number)}")
        self._thread = threading.Thread(target=self._serve, name="stuck-fs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let everyone go: what they wait for fails when the last end of the device is closed."""
        _libc.umount2(os.fsencode(self.place), 2)
        os.close(self._wake)
        self._thread.join(10)

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._device, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            if self._woken in {descriptor for descriptor, _ in poll.poll()}:
                break
            try:
                request = os.read(self._device, 1 << 17)
            except OSError:
                break
            _, opcode, unique, node, *_ = _IN.unpack_from(request)
            answer = self._answer(opcode, node, request[_IN.size :])
            if answer is None:
                continue
            error, body = answer if isinstance(answer, tuple) else (0, answer)
            with suppress(OSError):
                os.write(self._device, _OUT.pack(_OUT.size + len(body), -error, unique) + body)
        os.close(self._device)
        os.close(self._woken)

    def _answer(self, opcode: int, node: int, body: bytes) -> Any:
        if opcode == INIT:
            return struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 16, 12, 4096, 1, 0, 0, 0, *[0] * 7)
        if opcode == GETATTR:
            return struct.pack("<QII", 1, 0, 0) + _attributes(node)
        if opcode == LOOKUP:
            if body.rstrip(b"\0") != b"stuck":
                return ENOENT, b""
            return struct.pack("<QQQQII", 2, 0, 1, 1, 0, 0) + _attributes(2)
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, DIRECT_IO if opcode == OPEN else 0, 0)
        if opcode == STATFS:
            return struct.pack("<5Q4I6I", 1000, 500, 500, 100, 50, 4096, 255, 4096, 0, *[0] * 6)
        if opcode == READ:
            self.waiting.set()
            return None
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            return None
        if opcode in (RELEASE, RELEASEDIR, ACCESS, FLUSH):
            return b""
        return ENOSYS, b""


def _attributes(node: int) -> bytes:
    mode = 0o40755 if node == 1 else 0o100644
    return _ATTRIBUTES.pack(node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


@contextmanager
def stuck(place: Path) -> Iterator[StuckFs]:
    """A file system that never answers, until the block ends."""
    made = StuckFs(place)
    try:
        yield made
    finally:
        made.close()
