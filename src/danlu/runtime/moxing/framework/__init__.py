"""`moxing.framework`: the file functions are all there is."""

from __future__ import annotations

from typing import NoReturn

from moxing.framework import file
from moxing.framework.file._words import not_offered

__all__ = ["file"]


def __getattr__(name: str) -> NoReturn:
    raise not_offered("moxing.framework", name)
