"""`import moxing as mox` in a Danlu job: the file functions of ModelArts' MoXing, our own work.

Only what scripts use to move and read files is here (`mox.file`). It needs the standard library
alone. Danlu puts it on the path of every job; nobody gets it by installing a package.
"""

from __future__ import annotations

from typing import NoReturn

from moxing.framework import file
from moxing.framework.file._words import not_offered

__version__ = "0.1.0"
__all__ = ["file"]


def __getattr__(name: str) -> NoReturn:
    raise not_offered("moxing", name)
