"""`mox.file`: files of the machine and objects of the storage through the same functions.

`obs://bucket/key` and `s3://bucket/key` name objects; everything else is a path of the machine.
"""

from __future__ import annotations

from typing import NoReturn

from moxing.framework.file import file_io
from moxing.framework.file._listing import glob, list_directory, scan_dir, walk
from moxing.framework.file._shift import shift
from moxing.framework.file._streams import File
from moxing.framework.file._words import not_offered
from moxing.framework.file.file_io import (
    append,
    copy,
    copy_parallel,
    exists,
    get_size,
    is_directory,
    make_dirs,
    mk_dir,
    read,
    remove,
    rename,
    set_auth,
    stat,
    write,
)

__all__ = [
    "File",
    "append",
    "copy",
    "copy_parallel",
    "exists",
    "file_io",
    "get_size",
    "glob",
    "is_directory",
    "list_directory",
    "make_dirs",
    "mk_dir",
    "read",
    "remove",
    "rename",
    "scan_dir",
    "set_auth",
    "shift",
    "stat",
    "walk",
    "write",
]


def __getattr__(name: str) -> NoReturn:
    raise not_offered("moxing.framework.file", name)
