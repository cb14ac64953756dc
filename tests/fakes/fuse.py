"""A real file system in user space that holds nothing: what the kernel calls `fuse`.

Only what mounting and looking around needs of the protocol (include/uapi/linux/fuse.h).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services import offered

GETATTR, FORGET, INIT, BATCH_FORGET = 3, 2, 26, 42
REQUEST = struct.Struct("<IIQQIIII")
ANSWER = struct.Struct("<IiQ")
HELLO = struct.Struct("<IIIIHHIIHHI28x")
ATTRIBUTES = struct.Struct("<QII6Q3I7I")
DETACH = 2


@contextmanager
def mounted(where: Path) -> Iterator[Path]:
    """An empty directory on FUSE at `where`."""
    offered(os.geteuid() == 0 and os.access("/dev/fuse", os.W_OK), "root and /dev/fuse")
    where.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"nothing", bytes(where), b"fuse", 0, options):
        os.close(device)
        offered(condition=False, what=f"mount -t fuse ({os.strerror(ctypes.get_errno())})")
    serving = threading.Thread(target=_serve, args=(device,), daemon=True)
    serving.start()
    try:
        yield where
    finally:
        libc.umount2(bytes(where), DETACH)
        serving.join(10)
        os.close(device)


def _serve(device: int) -> None:
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                continue
            return  # unmounted
        _, code, unique, *_ = REQUEST.unpack_from(request)
        if code in (FORGET, BATCH_FORGET):
            continue
        failed, body = _answer(code)
        os.write(device, ANSWER.pack(ANSWER.size + len(body), -failed, unique) + body)


def _answer(code: int) -> tuple[int, bytes]:
    if code == INIT:
        return 0, HELLO.pack(7, 31, 0, 0, 1, 1, 4096, 1, 0, 0, 0)
    if code == GETATTR:
        return 0, ATTRIBUTES.pack(0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 0, 0)
    return errno.ENOSYS if code > GETATTR else errno.ENOENT, b""
