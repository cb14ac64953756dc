"""Libraries in C that are preloaded into servers, to change what the kernel tells them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.services import require


def built(name: str, folder: Path) -> str:
    """The library made from `NAME.c` beside this file."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    require(compiler, "a C compiler: apt install gcc libc6-dev")
    library = folder / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run(
        [str(compiler), "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"],
        check=True,
    )
    return str(library)
