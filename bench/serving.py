"""The HTTP face: durable submits a second, showing one job among many, and a fresh server.

    python bench/serving.py [--seconds 5] [--connections 32] [--json FILE]

The server runs in a process of its own on the first core, the client on the last one. Requests
are signed beforehand, so the client does little more than write and read. Every figure stands
beside the null endpoint of the same application (`/danlu/v1/health`), measured in turn with it.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import hmac
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

ALGORITHM = "SDK-HMAC-SHA256"
NAME = "bench"


@dataclass(frozen=True, slots=True)
class Server:
    """Where a measured server is, and its key."""

    port: int
    pid: int
    project: str
    key: tuple[str, str]


def serve(data: Path, ready: Any, core: int) -> None:
    """A server whose tasks never end: what is measured is the face, not the jobs."""
    os.sched_setaffinity(0, {core})
    from danlu import settings
    from danlu.engines.memory import MemoryEngine
    from danlu.engines.memory_script import Script
    from danlu.faces.http.listen import listen, url
    from danlu.faces.http.serve import run
    from danlu.wiring import open_platform

    loaded = settings.load(data, {"engine": "memory", "port": 0}, {}).settings
    with listen(loaded) as opened:
        running = open_platform(loaded, url(loaded, opened))
        engine = running.platform.engine
        assert isinstance(engine, MemoryEngine)
        engine.scripts[NAME] = Script(duration_s=None)
        objects = running.platform.objects
        for key in ("code/train.py", "data/images"):
            objects.put("danlu", key, b"x")
        pair = (running.admin.access_key, running.admin.secret.reveal())
        ready.send((opened.getsockname()[1], os.getpid(), running.workspace.id, pair))
        run(running, opened, url(loaded, opened))


@contextmanager
def server(core: int) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as data:
        ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=serve, args=(Path(data), theirs, core), daemon=True)
        process.start()
        while not ours.poll(0.1):
            if not process.is_alive():
                raise RuntimeError("the server did not start")
        found = Server(*ours.recv())
        _until_healthy(found.port)
        try:
            yield found
        finally:
            process.terminate()
            process.join(30)


def _until_healthy(port: int) -> None:
    ends = time.monotonic() + 60
    while True:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/danlu/v1/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.01)
        finally:
            connection.close()


# ---------------------------------------------------------------- requests


def request(to: Server, method: str, path: str, body: bytes = b"", *, signed: bool = True) -> bytes:
    """The bytes of a request."""
    headers = {
        "host": f"127.0.0.1:{to.port}",
        "user-agent": "huaweicloud-usdk-python/3.0",
        "x-project-id": to.project,
        "x-sdk-date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        "x-nonce": uuid.uuid4().hex,
    }
    if body:
        headers["content-type"] = "application/json"
    names = sorted(headers)
    lines = [method, f"{path}/", "", *(f"{name}:{headers[name]}" for name in names)]
    lines += ["", ";".join(names), hashlib.sha256(body).hexdigest()]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = f"{ALGORITHM}\n{headers['x-sdk-date']}\n{digest}"
    signature = hmac.new(to.key[1].encode(), text.encode(), "sha256").hexdigest()
    if signed:
        headers["authorization"] = (
            f"{ALGORITHM} Access={to.key[0]}, SignedHeaders={';'.join(names)}, "
            f"Signature={signature}"
        )
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def create(to: Server, kind: str) -> bytes:
    """A signed create request: a bare command, or a job as the CLI sends one."""
    algorithm: dict[str, Any] = {"command": "python train.py"}
    if kind == "whole":
        obs = {"obs": {"obs_url": "obs://danlu/data/"}}
        out = {"obs": {"obs_url": f"obs://danlu/out/{uuid.uuid4().hex}/"}}
        algorithm = {
            "code_dir": "obs://danlu/code/",
            "boot_file": "train.py",
            "parameters": [{"name": "epochs", "value": "3"}, {"name": "lr", "value": "0.1"}],
            "inputs": [{"name": "data", "remote": obs}],
            "outputs": [{"name": "model", "remote": out}],
        }
    body = {
        "kind": "job",
        "metadata": {"name": NAME},
        "algorithm": algorithm,
        "spec": {"resource": {"flavor_id": "danlu.cpu.1u", "node_count": 1}},
    }
    return request(to, "POST", f"/v2/{to.project}/training-jobs", json.dumps(body).encode())


# ---------------------------------------------------------------- load


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of requests gave. `cpu_us` is the server's processor time a request: the figure
    that other programs on the machine disturb least.
    """

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    replies: Sequence[bytes]


async def _connection(
    port: int, requests: Iterator[bytes], wanted: bytes, times: list[float], replies: list[bytes]
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for data in requests:
        began = time.perf_counter()
        writer.write(data)
        head = await reader.readuntil(b"\r\n\r\n")
        at = head.index(b"content-length: ") + 16
        body = await reader.readexactly(int(head[at : head.index(b"\r", at)]))
        times.append(time.perf_counter() - began)
        if not head.startswith(b"HTTP/1.1 " + wanted):
            raise RuntimeError((head + body).decode())
        replies.append(body)
    writer.close()


def load(to: Server, requests: Sequence[bytes], connections: int, wanted: bytes = b"200") -> Load:
    """Send `requests` over so many connections, each waiting for its reply."""
    times: list[float] = []
    replies: list[bytes] = []

    async def run() -> float:
        shared = iter(requests)
        began = time.perf_counter()
        await asyncio.gather(
            *(_connection(to.port, shared, wanted, times, replies) for _ in range(connections))
        )
        return time.perf_counter() - began

    before = _processor_s(to.pid)
    took = _runner(run())
    spent = _processor_s(to.pid) - before
    times.sort()
    return Load(
        len(times) / took,
        1000 * statistics.median(times),
        1000 * times[int(len(times) * 0.99)],
        1e6 * spent / len(times),
        replies,
    )


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _runner(work: Any) -> float:
    try:
        import uvloop
    except ImportError:
        return float(asyncio.run(work))
    return float(uvloop.run(work))


# ---------------------------------------------------------------- figures


def row(figure: str, ours: Load, null: Load) -> dict[str, Any]:
    ratio = ours.rate / null.rate
    print(
        f"{figure:32} {ours.rate:6.0f}/s  p50 {ours.p50_ms:6.2f}  p99 {ours.p99_ms:6.2f} ms"
        f"  cpu {ours.cpu_us:5.0f} µs   null {null.rate:6.0f}/s {null.cpu_us:4.0f} µs"
        f"   {ratio:5.2f} × (cpu {null.cpu_us / ours.cpu_us:5.2f} ×)"
    )
    return {
        "figure": figure,
        "rate": ours.rate,
        "p50_ms": ours.p50_ms,
        "p99_ms": ours.p99_ms,
        "cpu_us": ours.cpu_us,
        "null_rate": null.rate,
        "null_cpu_us": null.cpu_us,
        "ratio": ratio,
    }


def nothing(to: Server, count: int, connections: int) -> Load:
    plain = request(to, "GET", "/danlu/v1/health", signed=False)
    return load(to, [plain] * count, connections)


def submits(to: Server, kind: str, seconds: float, connections: int) -> tuple[Load, list[str]]:
    """As many creates as fit into about `seconds`, in portions whose signatures stay fresh."""
    count = 300
    load(to, [create(to, kind) for _ in range(count)], connections, b"201")
    probe = load(to, [create(to, kind) for _ in range(count)], connections, b"201")
    count = max(500, int(probe.rate * seconds))
    requests = [create(to, kind) for _ in range(count)]
    found = load(to, requests, connections, b"201")
    return found, [json.loads(reply)["metadata"]["id"] for reply in found.replies]


def shows(to: Server, ids: Sequence[str], count: int, connections: int) -> Load:
    paths = [f"/v2/{to.project}/training-jobs/{ids[i % len(ids)]}" for i in range(count)]
    return load(to, [request(to, "GET", path) for path in paths], connections)


def face(seconds: float, connections: int, pairs: int, cores: tuple[int, int]) -> list[Any]:
    """Submits and shows, each run beside the null endpoint; the best pair of each counts."""
    os.sched_setaffinity(0, {cores[1]})
    rows: list[Any] = []
    with server(cores[0]) as to:
        few = [json.loads(reply)["metadata"]["id"] for reply in _made(to, 10)]
        rows.append(row("show, 10 jobs", *_best(to, few, connections, pairs)))
        ids: list[str] = []
        for kind in ("bare", "whole"):
            found = []
            for _ in range(pairs):
                null = nothing(to, 5000, connections)
                ours, made = submits(to, kind, seconds / pairs, connections)
                ids += made
                found.append((ours, null))
            best = max(found, key=lambda pair: pair[0].rate)
            rows.append(row(f"durable submits ({kind} body)", *best))
        while len(ids) < 10_000:
            ids += [json.loads(reply)["metadata"]["id"] for reply in _made(to, 1000)]
        rows.append(row(f"show, {len(ids):,} jobs", *_best(to, ids, connections, pairs)))
        one = shows(to, ids, 1000, 1)
        rows.append(row("show, one connection", one, nothing(to, 1000, 1)))
        resident = _resident(to.pid)
        print(f"{'memory after that':32} {resident:8.0f} MB")
        rows.append({"figure": "memory after that", "mb": resident})
    return rows


def _made(to: Server, count: int) -> Sequence[bytes]:
    return load(to, [create(to, "bare") for _ in range(count)], 8, b"201").replies


def _best(to: Server, ids: Sequence[str], connections: int, pairs: int) -> tuple[Load, Load]:
    found = [
        (shows(to, ids, 3000, connections), nothing(to, 3000, connections)) for _ in range(pairs)
    ]
    return max(found, key=lambda pair: pair[0].rate / pair[1].rate)


def _resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def fresh(rounds: int) -> list[Any]:
    """A server on an empty directory: seconds to the first answer, memory when idle."""
    times, resident = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as data:
            ready = Path(data) / "ready.json"
            command = [sys.executable, "-m", "danlu", "serve", "--data", data, "--port", "0"]
            began = time.perf_counter()
            process = subprocess.Popen(
                [*command, "--ready-file", str(ready)], stderr=subprocess.DEVNULL
            )
            try:
                while not ready.exists():
                    time.sleep(0.002)
                    if process.poll() is not None:
                        raise RuntimeError("the server did not start")
                _until_healthy(int(json.loads(ready.read_text())["api"].rpartition(":")[2]))
                times.append(time.perf_counter() - began)
                time.sleep(3)
                resident.append(_resident(process.pid))
            finally:
                process.terminate()
                process.wait(30)
    print(f"{'fresh server, first answer':32} {min(times):8.2f} s   (worst {max(times):.2f})")
    print(f"{'idle server, memory':32} {max(resident):8.0f} MB")
    return [
        {"figure": "first answer", "s": min(times)},
        {"figure": "idle memory", "mb": max(resident)},
    ]


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=6)
    arguments.add_argument("--connections", type=int, default=32)
    arguments.add_argument("--pairs", type=int, default=3)
    arguments.add_argument("--json", type=Path)
    chosen = arguments.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    rows = face(chosen.seconds, chosen.connections, chosen.pairs, (cores[0], cores[-1]))
    os.sched_setaffinity(0, cores)
    rows += fresh(chosen.pairs)
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
