"""An existing directory as a bucket: files by their relative paths, nothing copied."""

from __future__ import annotations

from danlu.stores.plain.directory import Directory
from danlu.stores.plain.joined import Joined, JoinedParts, joined

__all__ = ["Directory", "Joined", "JoinedParts", "joined"]
