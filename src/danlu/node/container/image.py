"""Images: had from a registry with progress to be seen, and what has to be known of one."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from danlu.model.reason import ReasonCode
from danlu.model.resources import size
from danlu.model.script import LITERAL_HOME
from danlu.node.container.api import Api, RuntimeAway, RuntimeRefused, part
from danlu.node.directory import TaskDirectory, publish_json, read_json
from danlu.node.fetch import Check
from danlu.node.stage import StageFailed

PULL_LIMIT_S = 3600.0
"""So long a registry may be silent."""
PROGRESS_EVERY_S = 5.0
LOOK_EVERY_S = 0.2
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PYTHONS = ("python", "python3")
NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Facts:
    """Of one image: its PATH, the Python in it (empty = none), whether it has a home of ma-user of
    its own, as ModelArts' preset images do, and a shell.
    """

    id: str
    path: str
    python: str
    home: bool
    sh: bool


class Images:
    """What one task needs of its image."""

    def __init__(self, api: Api, directory: TaskDirectory, check: Check) -> None:
        self._api = api
        self._directory = directory
        self._check = check

    def facts(self, reference: str, kept: str, probe: str) -> Facts:
        """What there is to know of an image, which is pulled if it is not here. StageFailed where
        it cannot be had. Answers are kept in the directory `kept`; `probe` is the name of a
        container that may be made (and is never started).
        """
        with _told(reference):
            found = self._inspect(reference)
            if found is None:
                self._pull(reference)
                found = self._inspect(reference) or {}
            image = str(found.get("Id", "")).removeprefix("sha256:")
            if not image.isalnum():
                raise StageFailed(ReasonCode.IMAGE_FAILED, image=reference, detail="it has no id")
            data = read_json(Path(kept, f"{image}.json"))
            if data is not None:
                with suppress(TypeError):
                    return Facts(**data)
            facts = self._probe(image, found.get("Config") or {}, probe)
        with suppress(OSError):
            Path(kept).mkdir(mode=0o700, exist_ok=True)
            publish_json(kept, f"{image}.json", asdict(facts), durable=False)
        return facts

    def _inspect(self, reference: str) -> dict[str, Any] | None:
        try:
            found = self._api.call("GET", f"/images/{part(reference)}/json")
        except RuntimeRefused as refused:
            if refused.status == NOT_FOUND:
                return None
            raise
        return found if isinstance(found, dict) else {}

    # pulling

    def _pull(self, reference: str) -> None:
        began = time.monotonic()
        self._directory.note("image-pulling", image=reference)
        pull = _Pull(self._api, reference)
        said_at = began
        while not pull.wait(LOOK_EVERY_S):
            # The runtime goes on without us, and whoever asks next finds what it has.
            self._check()
            if time.monotonic() - said_at >= PROGRESS_EVERY_S and pull.done:
                said_at = time.monotonic()
                self._directory.note("image-progress", image=reference, done=pull.told())
        if pull.error:
            raise StageFailed(ReasonCode.IMAGE_FAILED, image=reference, detail=pull.error)
        took_s = f"{time.monotonic() - began:.1f}"
        self._directory.note("image-pulled", image=reference, done=size(pull.done), took_s=took_s)

    # looking into it

    def _probe(self, image: str, config: dict[str, Any], name: str) -> Facts:
        variables = config.get("Env") or ()
        paths = [one.partition("=")[2] for one in variables if str(one).startswith("PATH=")]
        path = paths[-1] if paths else USUAL_PATH
        self._forget(name)
        body = {"Image": image, "Cmd": ["/bin/sh"], "HostConfig": {"NetworkMode": "none"}}
        self._api.call("POST", "/containers/create", {"name": name}, body)
        try:
            return Facts(
                image,
                path,
                self._python(name, path),
                self._is_there(name, LITERAL_HOME),
                self._is_there(name, "/bin/sh"),
            )
        finally:
            self._forget(name)

    def _python(self, name: str, path: str) -> str:
        for word in PYTHONS:
            for directory in path.split(":"):
                if directory.startswith("/") and self._is_there(name, f"{directory}/{word}"):
                    return f"{directory}/{word}"
        return ""

    def _is_there(self, name: str, path: str) -> bool:
        where = f"/containers/{part(name)}/archive"
        told = self._api.header(where, {"path": path}, "X-Docker-Container-Path-Stat")
        if told is None:
            return False
        with suppress(ValueError):
            return isinstance(json.loads(base64.b64decode(told)), dict)
        return True

    def _forget(self, name: str) -> None:
        with suppress(RuntimeRefused):
            self._api.call("DELETE", f"/containers/{part(name)}", {"force": "true"})


class _Pull:
    """One pull, in a thread: a registry that is silent must not keep a job from being stopped."""

    def __init__(self, api: Api, reference: str) -> None:
        self._api = api
        self._reference = reference
        self._layers: dict[str, tuple[int, int]] = {}
        self.error = ""
        self._thread = threading.Thread(target=self._run, name="pull", daemon=True)
        self._thread.start()

    def wait(self, limit_s: float) -> bool:
        """Whether it has ended within a while."""
        self._thread.join(limit_s)
        return not self._thread.is_alive()

    @property
    def done(self) -> int:
        """Bytes that have come."""
        return sum(current for current, _ in list(self._layers.values()))

    def told(self) -> str:
        """For people: how much has come, and of how much as far as that is known."""
        whole = sum(total for _, total in list(self._layers.values()))
        return f"{size(self.done)} / {size(whole)}" if whole >= self.done else size(self.done)

    def _run(self) -> None:
        query = {"fromImage": self._reference}
        try:
            for line in self._api.lines("POST", "/images/create", query, wait_s=PULL_LIMIT_S):
                self._take(line)
        except RuntimeRefused as refused:
            self.error = str(refused)
        except RuntimeAway as away:
            self.error = str(away)

    def _take(self, line: dict[str, Any]) -> None:
        if line.get("error"):
            self.error = " ".join(str(line["error"]).split())[:1000]
            return
        progress = line.get("progressDetail")
        layer = str(line.get("id", ""))
        # Unpacking counts the same bytes once more.
        if isinstance(progress, dict) and layer and line.get("status") != "Extracting":
            current, total = progress.get("current"), progress.get("total")
            if isinstance(current, int) and 0 <= current < 1 << 62:
                known = total if isinstance(total, int) and 0 <= total < 1 << 62 else 0
                self._layers[layer] = (current, known)


@contextmanager
def _told(reference: str) -> Iterator[None]:
    try:
        yield
    except RuntimeRefused as refused:
        detail = str(refused)
        raise StageFailed(ReasonCode.IMAGE_FAILED, image=reference, detail=detail) from refused
