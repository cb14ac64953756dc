"""`import moxing.mxnet as mox`, as older scripts write it: the file functions."""

from __future__ import annotations

from typing import NoReturn

from moxing.framework import file
from moxing.framework.file._words import not_offered

__all__ = ["file"]


def __getattr__(name: str) -> NoReturn:
    raise not_offered("moxing.mxnet", name)
