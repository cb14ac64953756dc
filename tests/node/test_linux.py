"""The calls of Linux that Python has no function for."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from danlu.node import linux


def test_a_place_is_opened_only_without_links_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "data/below").mkdir(parents=True)
    (tmp_path / "way").symlink_to(tmp_path / "data")
    os.close(linux.open_plain(str(tmp_path / "data/below")))
    for opened in (linux.open_plain, linux.open_step_by_step):
        os.close(opened(str(tmp_path / "data/below")))
        for path in (tmp_path / "way", tmp_path / "way/below"):
            with pytest.raises(OSError) as caught:
                opened(str(path))
            assert caught.value.errno == errno.ELOOP
