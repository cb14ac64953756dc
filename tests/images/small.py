"""An image of three small packages, whose wheels lie in a directory of the test's."""

from __future__ import annotations

import base64
import ensurepip
import hashlib
import platform
import shutil
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from danlu.images.definition import Runtime
from danlu.images.lock import Lock, Wheel
from danlu.images.realise import Making, realise
from danlu.images.store import ImageStore
from danlu.model.image import Realised

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
RUNTIME = Runtime(1000, 100, "ma-user", "keys-only", "token-required", 64)
PACKAGES: Mapping[str, str] = {"torch": "2.13.0+cpu", "numpy": "2.4.0", "einops": "0.8.1"}


def wheel(
    folder: Path, name: str, version: str, *, requires: tuple[str, ...] = (), body: str = ""
) -> Wheel:
    """Write the wheel of a package that holds one module, its version in it."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    needed = "".join(f"Requires-Dist: {one}\n" for one in requires)
    files = {
        f"{name}/__init__.py": body or f"__version__ = {version!r}\n",
        f"{name}/data.bin": f"{name} {version} " * 50,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\nrun-{name} = {name}:main\n",
    }
    lines = [f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items()]
    files[f"{info}/RECORD"] = "".join(lines) + f"{info}/RECORD,,\n"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(zipfile.ZipInfo(inside), text)
    return Wheel(name, version, path.name, hashlib.sha256(path.read_bytes()).hexdigest())


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def with_pip(folder: Path) -> Wheel:
    """The wheel of pip that comes with Python."""
    places = (Path(ensurepip.__file__).parent / "_bundled", Path("/usr/share/python-wheels"))
    found = [path for place in places for path in place.glob("pip-*-py3-none-any.whl")]
    if not found:
        pytest.skip("this Python comes without a wheel of pip")
    shutil.copy(found[0], folder)
    sha256 = hashlib.sha256(found[0].read_bytes()).hexdigest()
    return Wheel("pip", found[0].name.split("-")[1], found[0].name, sha256)


class World:
    """A store of images, a directory of wheels, and what was said while something was made."""

    def __init__(self, folder: Path) -> None:
        self.wheels = folder / "wheels"
        self.store = ImageStore(folder / "images")
        self.said: list[tuple[str, dict[str, str]]] = []
        found = [wheel(self.wheels, name, version) for name, version in PACKAGES.items()]
        self.lock = locked(found)
        self.id = self.store.keep(self.lock)

    @property
    def variables(self) -> dict[str, str]:
        """What says where packages come from: this directory, and no index."""
        return {"PIP_FIND_LINKS": str(self.wheels), "PIP_NO_INDEX": "1"}

    @property
    def making(self) -> Making:
        return Making(
            say=lambda key, **params: self.said.append((key, params)),
            variables=tuple(self.variables.items()),
        )

    def realise(self, image_id: str = "", holder: tuple[Path, str] | None = None) -> Realised:
        return realise(self.store, image_id or self.id, "small", self.making, holder=holder)

    def environment(self, image_id: str = "") -> Path:
        return self.store.environment(image_id or self.id)

    def site(self, image_id: str = "") -> Path:
        return self.environment(image_id) / "lib" / f"python{PYTHON}" / "site-packages"

    def told(self) -> list[str]:
        return [key for key, _ in self.said]


def locked(wheels: list[Wheel]) -> Lock:
    return Lock("cpu", platform.machine(), PYTHON, "test", tuple(wheels), RUNTIME)
