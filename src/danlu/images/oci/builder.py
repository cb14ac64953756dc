"""Podman or Docker as a command: builds, keeps and moves container images.

Both take the same words, but for how dates are kept out of an image. Their own settings say where
images lie: on this machine, where the container engine finds them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from danlu.images.uv import LOOK_EVERY_S, SAID_BYTES, Check, nothing
from danlu.model.errors import Missing, Refused, Unavailable

PROGRAMS = ("podman", "docker")
SAID_LINES = 8
MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Facts:
    """What a builder says of a container image."""

    id: str
    size_bytes: int
    layers: tuple[str, ...]
    user: str
    labels: Mapping[str, str]
    digests: tuple[str, ...]


def find(wanted: str = "") -> Builder:
    """The program that is wanted, or the first one that is installed. Unavailable where none is."""
    for name in (wanted,) if wanted else PROGRAMS:
        path = shutil.which(name)
        if path is not None:
            return Builder(path)
    raise Unavailable("image-no-builder", program=wanted or " / ".join(PROGRAMS))


class Builder:
    """One of the two. `check` is called often and ends what runs by raising."""

    def __init__(self, program: str, check: Check = nothing) -> None:
        self._program = program
        self._check = check
        self.name = Path(program).name

    def version(self) -> str:
        """`podman 4.3.1`."""
        words = self._run("--version").split()
        return f"{self.name} {next((w.rstrip(',') for w in words if w[:1].isdigit()), '?')}"

    def build(self, context: Path, base: str, tag: str, ca: str, *, fresh: bool) -> str:
        """Build the image of a directory with a Containerfile; its id. `ca` is a file of
        certificates that the build sees and the image does not; `fresh` uses no layer of before.
        """
        with tempfile.TemporaryDirectory() as folder:
            secret = Path(folder, "ca")
            secret.write_bytes(Path(ca).read_bytes() if ca else b"")
            said = Path(folder, "id")
            words = ["--network", "host", "--secret", f"id=ca,src={secret}", "--iidfile", str(said)]
            words += ["--build-arg", f"BASE={base}", "--tag", tag, *(["--no-cache"] * fresh)]
            file = ["--file", str(context / "Containerfile"), str(context)]
            if self.name == "docker":
                dated = ["--build-arg", "SOURCE_DATE_EPOCH=0"]
                dated += ["--output", "type=docker,rewrite-timestamp=true"]
                self._run("buildx", "build", "--provenance=false", *dated, *words, *file)
            else:
                self._run("build", "--timestamp", "0", "--format", "oci", *words, *file)
            return plain_id(said.read_text("ascii").strip())

    def inspect(self, reference: str) -> Facts | None:
        """What an image is; None where it is not here."""
        try:
            found = json.loads(self._run("image", "inspect", reference))[0]
        except Refused:
            return None
        config: dict[str, Any] = found.get("Config") or {}
        return Facts(
            plain_id(str(found.get("Id", ""))),
            int(found.get("Size") or 0),
            tuple((found.get("RootFS") or {}).get("Layers") or ()),
            str(config.get("User") or found.get("User") or ""),
            config.get("Labels") or {},
            tuple(filter(None, [found.get("Digest"), *(found.get("RepoDigests") or ())])),
        )

    def pull(self, reference: str) -> None:
        """Have an image from its registry."""
        self._run("pull", "--quiet", reference)

    def read(self, image: str, path: str) -> bytes:
        """A file of an image, of which nothing is run. Missing where there is none."""
        container = self._run("create", image, "true").strip().splitlines()[-1]
        try:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "file")
                try:
                    self._run("cp", f"{container}:{path}", str(file))
                except Refused as error:
                    raise Missing("image-file-missing-in", image=image, path=path) from error
                if file.is_symlink() or file.stat().st_size > MOST_BYTES:
                    raise Missing("image-file-missing-in", image=image, path=path)
                return file.read_bytes()
        finally:
            with suppress(Refused):
                self._run("rm", "--force", container)

    def tag(self, image: str, reference: str) -> None:
        """Give an image a name."""
        self._run("tag", image, reference)

    def push(self, image: str, reference: str, *, insecure: bool) -> None:
        """Send an image to a registry, where the program is signed in."""
        if self.name == "podman":
            plain = ["--tls-verify=false"] if insecure else []
            self._run("push", "--quiet", *plain, image, reference)
            return
        # Docker sends what has the name; whether a registry may be insecure is its daemon's matter.
        self.tag(image, reference)
        try:
            self._run("push", "--quiet", reference)
        finally:
            self.remove(reference)

    def save(self, reference: str, file: Path) -> None:
        """Write an image to a file, as an archive of OCI or Docker."""
        form = ["--quiet", "--format", "oci-archive"] if self.name == "podman" else []
        self._run("save", *form, "--output", str(file), reference)

    def load(self, file: Path) -> str:
        """Have an image from such a file; its id."""
        said = self._run("load", "--quiet", "--input", str(file))
        reference = said.strip().splitlines()[-1].partition(": ")[2] or said.strip()
        found = self.inspect(reference)
        if found is None:
            raise Refused("image-archive", path=file, detail=said.strip()[-200:])
        return found.id

    def remove(self, image: str) -> None:
        """Forget an image; repeatable."""
        with suppress(Refused):
            self._run("rmi", "--force", image)

    def _run(self, *words: str) -> str:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                [self._program, *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=said,
                env={**os.environ, "DOCKER_BUILDKIT": "1"},
                start_new_session=True,
            )
            try:
                while True:
                    self._check()
                    with suppress(subprocess.TimeoutExpired):
                        code = process.wait(LOOK_EVERY_S)
                        break
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, 15)
                process.wait()
                raise
            said.seek(max(0, said.seek(0, os.SEEK_END) - SAID_BYTES))
            lines = said.read().decode("utf-8", "replace").splitlines()
            if code != 0:
                raise Refused("image-builder", program=self.name, what=words[0],
                              detail=_cause(lines) or f"exit status {code}")  # fmt: skip
            out.seek(0)
            return out.read(MOST_BYTES).decode("utf-8", "replace")


def _cause(lines: list[str]) -> str:
    """Our own script's word, or the end of what was said."""
    own = [line.removeprefix("danlu: ") for line in lines if line.startswith("danlu: ")]
    plain = [" ".join(line.split()) for line in lines if line.strip()]
    return own[-1] if own else " ".join(plain[-SAID_LINES:])


def plain_id(found: str) -> str:
    """`sha256:` and the digits, however a program writes them."""
    return f"sha256:{found.removeprefix('sha256:')}"
