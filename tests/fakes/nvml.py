"""Builds the fake driver library and writes what it says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("nvml.c")
LIBRARY = "libnvidia-ml.so.1"


class FakeNvml:
    """A driver in a directory of its own. `write` changes what every program sees of it."""

    def __init__(self, library: Path, values: Path) -> None:
        self._library = library
        self._values = values
        self._said: dict[str, object] = {"driver": "550.54.15"}

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to meet this driver and no other."""
        return {"LD_LIBRARY_PATH": str(self._library.parent), "DANLU_FAKE_NVML": str(self._values)}

    def write(self, values: Mapping[str, object]) -> None:
        """Say this from now on, beside what was said before."""
        self._said |= values
        text = "".join(f"{key} {value}\n" for key, value in self._said.items())
        new = self._values.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.rename(self._values)

    def gpu(self, index: int, **values: object) -> None:
        """Say this of one GPU; `_` in a name stands for a dot."""
        self.write({f"gpu.{index}.{key.replace('_', '.')}": v for key, v in values.items()})


def build(directory: Path) -> Path:
    """Compile the library into `directory`: the C file, and every other function as a stub."""
    import pynvml

    wanted = set(
        re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', Path(pynvml.__file__).read_text("utf-8"))
    )
    definition = re.compile(r"^(?:int|const char \*)\s*(nvml\w+)\(", re.MULTILINE)
    there = set(definition.findall(SOURCE.read_text("utf-8")))
    stubs = directory / "stubs.c"
    # The functions take what they like: the caller's arguments stay unread.
    stubs.write_text("".join(f"int {name}(void) {{ return 3; }}\n" for name in wanted - there))
    library = directory / LIBRARY
    argv = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(library)]
    subprocess.run([*argv, str(SOURCE), str(stubs)], check=True)
    return library
