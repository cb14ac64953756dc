"""Requests that the official SDKs send and the replies that they get: kept as files, replayed.

`python -m tests.golden.exchanges` records them anew, with each of the pinned SDKs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from danlu.engines.memory_script import Script
from tests.faces.http.live import Live, live
from tests.services import ROOT, sdk_python

GOLDEN = Path(__file__).parent / "modelarts"
VERSIONS = ("3.1.206", "3.1.219")
TURNS = 4

KEPT_HEADERS = ("content-type", "x-language", "x-project-id", "x-sdk-content-sha256")

VOLATILE = {
    "create_time": "<ms>",
    "start_time": "<ms>",
    "start_at": "<s>",
    "end_at": "<s>",
    "time": "<instant>",
    "request_id": "<request>",
    "engine_version": "<version>",
}
"""Fields whose values depend on the hour or on the interpreter."""


@contextmanager
def golden_server(root: Path) -> Iterator[Live]:
    """A server whose loop is turned by the requests alone, with what the driver's jobs need."""
    with live(root, turning=False) as server:
        server.running.board.load()
        objects = server.running.platform.objects
        objects.put("danlu", "golden/code/train.py", b"print()\n")
        objects.put("danlu", "golden/data/x", b"x")
        server.script("golden-1", Script(output=((0.0, b"epoch 1\nepoch 2\n"),)))
        server.script("golden-2", Script(duration_s=None))
        yield server


def settle(server: Live) -> None:
    """Let everything happen that can."""
    for _ in range(TURNS):
        server.running.loop.turn()


class Recorder:
    """ASGI middleware that keeps what passes; before each request it lets the jobs go on."""

    def __init__(self, app: Any, server: Live) -> None:
        self._app = app
        self._server = server
        self.exchanges: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        settle(self._server)
        body = bytearray()
        reply: dict[str, Any] = {"body": b""}

        async def received() -> Any:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                reply["status"] = message["status"]
            reply["body"] += message.get("body", b"")
            await send(message)

        query = scope["query_string"].decode()
        target = scope["raw_path"].decode() + (f"?{query}" if query else "")
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        await self._app(scope, received, sent)
        request = {
            "method": scope["method"],
            "target": target,
            "headers": {name: headers[name] for name in KEPT_HEADERS if name in headers},
            "body": json.loads(bytes(body)) if body else None,
        }
        answer = json.loads(reply["body"]) if reply["body"] else None
        self.exchanges.append(
            {"request": request, "response": {"status": reply["status"], "body": answer}}
        )


class Names:
    """Gives ids that differ from run to run names that do not, and back."""

    def __init__(self, server: Live) -> None:
        self._known = {server.project: "{project}", server.host: "{host}"}

    def learn(self, job_id: str) -> None:
        """A job that was made."""
        self._known.setdefault(job_id, f"{{job-{len(self._known) - 1}}}")

    def stable(self, text: str) -> str:
        """`text` with names instead of ids."""
        for found, name in self._known.items():
            text = text.replace(found, name)
        text = re.sub(r"completed in [0-9.]+ s", "completed in <s> s", text)
        return re.sub(r"expires=\d+(.*)signature=\w+", r"expires=<s>\1signature=<hmac>", text)

    def actual(self, text: str) -> str:
        """`text` with the ids of this run."""
        for found, name in self._known.items():
            text = text.replace(name, found)
        return text


def stable(value: Any, names: Names) -> Any:
    """A reply without what depends on the hour, the machine, or chance."""
    if isinstance(value, dict):
        return {
            key: VOLATILE[key] if key in VOLATILE and item else _stable(key, item, value, names)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [stable(item, names) for item in value]
    return names.stable(value) if isinstance(value, str) else value


def _stable(key: str, item: Any, beside: Any, names: Names) -> Any:
    if key == "node_count_metrics":
        return [["<ms>", count] for _, count in item]
    if key == "value" and "metric" in beside:
        return "<measured>"
    if key == "duration" and beside.get("start_time"):
        return "<ms>"
    return stable(item, names)


def record(version: str) -> None:
    """Write the exchanges of one SDK."""
    folder = GOLDEN / version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as data, golden_server(Path(data)) as server:
        recorder = Recorder(server.server.config.loaded_app, server)
        server.server.config.loaded_app = recorder
        environment = {
            "PATH": os.environ["PATH"],
            "HUAWEICLOUD_SDK_AK": server.key[0],
            "HUAWEICLOUD_SDK_SK": server.key[1],
            "TEST_PROJECT": server.project,
            "TEST_ENDPOINT": f"http://{server.host}",
        }
        driver = ROOT / "tests" / "clients" / "drivers" / "golden.py"
        subprocess.run([sdk_python(version), driver], env=environment, check=True)
        names = Names(server)
        for number, exchange in enumerate(recorder.exchanges, 1):
            body = exchange["response"]["body"]
            if exchange["response"]["status"] == 201:
                names.learn(body["metadata"]["id"])
            request = exchange["request"]
            kept = {
                "request": {
                    **request,
                    "target": names.stable(request["target"]),
                    "headers": stable(request["headers"], names),
                },
                "response": {**exchange["response"], "body": stable(body, names)},
            }
            text = json.dumps(kept, ensure_ascii=False, indent=1)
            (folder / f"{number:02}-{_title(request)}.json").write_text(text + "\n", "utf-8")


def _title(request: Any) -> str:
    parts = request["target"].partition("?")[0].split("/")[3:]
    words = [part for part in parts if re.fullmatch(r"[a-z-]+", part)]
    return "-".join([request["method"].lower(), *words])


if __name__ == "__main__":
    for each in VERSIONS:
        record(each)
