"""The NVIDIA GPUs of this machine: which there are, and how busy they are.

`python -m danlu.node.gpu` prints one JSON document on stdout. `probe` runs that in a process of
its own, because a driver's library may crash or hang, and nobody else is to die of it. Every
figure is read by itself: what one driver or card does not give is None with a reason, never 0.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from danlu.model.resources import Gpu
from danlu.model.texts import Language, text

PROBE_S = 30.0
"""Without its persistence mode a driver wakes every card first, seconds for each."""
MOST_DEVICES = 64
MOST_OUTPUT = 1 << 20
CUDA_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Readings:
    """The use of one GPU now. None = unknown; `problem` then names a text that says why.

    `busy` is the share (0–1) of the last moment in which at least one kernel ran.
    """

    busy: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    problem: str = ""
    detail: str = ""

    def reason(self, language: Language = "en") -> str:
        """Why a figure is unknown, as a sentence; empty where none is."""
        return text(self.problem, language, detail=self.detail) if self.problem else ""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The GPUs that tasks may use. Without any, `problem` names the text that says why.

    `unreachable` are the driver's numbers of GPUs that are there but cannot be used.
    """

    gpus: tuple[Gpu, ...] = ()
    driver: str = ""
    unreachable: tuple[int, ...] = ()
    problem: str = ""
    params: Mapping[str, str | int] | None = None

    def reason(self, language: Language = "en") -> str:
        """Why there is no GPU, as a sentence; empty where there is one."""
        return text(self.problem, language, **(self.params or {})) if self.problem else ""


# ---------------------------------------------------------------------- from outside


def probe(timeout_s: float = PROBE_S) -> Inventory:
    """Look for GPUs in a process of its own. Never raises, and answers within the time."""
    # -P: nothing in the directory where the server was started is imported.
    argv = [sys.executable, "-P", "-m", "danlu.node.gpu"]
    try:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as problem:
        return _none("gpu-probe-failed", detail=str(problem))
    try:
        out, noise = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        with suppress(subprocess.TimeoutExpired):  # a driver can hold even a killed process
            child.communicate(timeout=1.0)
        return _none("gpu-probe-timeout", limit_s=f"{timeout_s:g}")
    if child.returncode:
        return _none("gpu-probe-crashed", detail=_how_it_ended(child.returncode, noise))
    try:
        return _parsed(json.loads(out[:MOST_OUTPUT]))
    except (ValueError, KeyError, TypeError) as problem:
        return _none("gpu-probe-failed", detail=f"unreadable answer: {problem}")


def loaded_driver(root: Path = Path("/")) -> str:
    """The version of the driver that the kernel has loaded; empty where there is none."""
    try:
        return (root / "sys/module/nvidia/version").read_text("ascii", "replace").strip()
    except OSError:
        return ""


def visible(value: str, gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The GPUs that a value of CUDA_VISIBLE_DEVICES or NVIDIA_VISIBLE_DEVICES selects, in order.

    Forms: indexes (`0,2`), `card:place` for MIG (`0:1`), UUIDs or beginnings of UUIDs that fit
    one device only, `all`; `none`, `void` and nothing at all select none. A path (the container
    runtime was told the devices through mounted files) selects all that are there. As in CUDA,
    the first entry that fits nothing ends the list. Indexes are the driver's, in the order of
    the PCI bus (CUDA_DEVICE_ORDER=PCI_BUS_ID).
    """
    value = value.strip()
    if value.startswith("/") or value.lower() == "all":
        return tuple(gpus)
    if value.lower() in ("", "none", "void"):
        return ()
    chosen: dict[str, Gpu] = {}
    for entry in value.split(","):
        fits = _fitting(entry.strip(), gpus)
        if not fits:
            break
        chosen.update((gpu.uuid, gpu) for gpu in fits)
    return tuple(chosen.values())


def _fitting(entry: str, gpus: Sequence[Gpu]) -> Sequence[Gpu]:
    card, colon, place = entry.partition(":")
    if _is_number(card):
        of_card = [gpu for gpu in gpus if gpu.index == int(card)]
        if not colon:
            return of_card
        return of_card[int(place) : int(place) + 1] if _is_number(place) else ()
    if not entry.lower().startswith(("gpu-", "mig-")):
        return ()
    exact = [gpu for gpu in gpus if gpu.uuid.lower() == entry.lower()]
    begun = exact or [gpu for gpu in gpus if gpu.uuid.lower().startswith(entry.lower())]
    return begun if len(begun) == 1 else ()


def _is_number(entry: str) -> bool:
    return entry.isascii() and entry.isdigit() and len(entry) <= 9


def _none(problem: str, **params: str | int) -> Inventory:
    return Inventory(problem=problem, params=params)


def _how_it_ended(status: int, noise: bytes) -> str:
    last = noise.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
    if status > 0:
        return f"exit code {status}: {last}"
    with suppress(ValueError):
        return signal.Signals(-status).name
    return f"signal {-status}"


def _parsed(data: Any) -> Inventory:
    gpus = tuple(
        Gpu(str(g["uuid"]), int(g["index"]), str(g["model"]), g["memory_bytes"])
        for g in data["gpus"]
    )
    return Inventory(
        gpus, data["driver"], tuple(data["unreachable"]), data["problem"], data["params"]
    )


# ---------------------------------------------------------------------- inside the driver


class GpuMeter:
    """Reads the use of some GPUs again and again, for the sampler of one task."""

    def __init__(self, uuids: Sequence[str]) -> None:
        self._uuids = tuple(uuids)
        self._handles: dict[str, Any] = {}

    def read(self) -> dict[str, Readings]:
        """The readings of every GPU, by UUID. Never raises; may take as long as the driver."""
        try:
            driver = _driver()
        except _NoDriver as problem:
            reading = Readings(problem="gpu-reading-failed", detail=str(problem))
            return dict.fromkeys(self._uuids, reading)
        return {uuid: self._one(driver, uuid) for uuid in self._uuids}

    def _one(self, driver: _Driver, uuid: str) -> Readings:
        handle = self._handles.get(uuid)
        if handle is None:
            found = driver.ask("nvmlDeviceGetHandleByUUID", uuid)
            if found.value is None:
                return Readings(problem=found.problem, detail=found.detail)
            handle = self._handles[uuid] = found.value
        readings = driver.readings(handle, mig=uuid.startswith("MIG-"))
        if readings.problem == "gpu-lost":
            del self._handles[uuid]  # it may come back under another handle
        return readings


def shares(readings: Mapping[str, Readings]) -> dict[str, float]:
    """What a sample says of a task's GPUs: the means of `gpu_busy` and `gpu_memory` (0–1).

    A mean over those that are known; a key is missing where none is.
    """
    busy = [r.busy for r in readings.values() if r.busy is not None]
    memory = [
        r.memory_used_bytes / r.memory_total_bytes
        for r in readings.values()
        if r.memory_used_bytes is not None and r.memory_total_bytes
    ]
    means = {"gpu_busy": busy, "gpu_memory": memory}
    return {name: round(sum(m) / len(m), 4) for name, m in means.items() if m}


def inventory() -> Inventory:
    """Ask the driver, in this process. `probe` is the safe way."""
    try:
        driver = _driver()
    except _NoDriver as problem:
        return _none(problem.key, **problem.params)
    gpus, unreachable = driver.devices()
    found = Inventory(tuple(gpus), driver.version(), tuple(unreachable))
    if not gpus:
        return replace(found, problem="gpu-none", params={"driver": found.driver or "?"})
    value = os.environ.get(CUDA_VISIBLE)
    if value is None:
        return found
    chosen = visible(value, gpus)
    if not chosen:
        hidden: dict[str, str | int] = {"value": value, "count": len(gpus)}
        return replace(found, gpus=(), problem="gpu-hidden", params=hidden)
    return replace(found, gpus=chosen)


class _NoDriver(Exception):
    def __init__(self, key: str, **params: str | int) -> None:
        super().__init__(text(key, **params))
        self.key = key
        self.params = params


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the driver gave, or the key of a text that says why it did not."""

    value: Any = None
    problem: str = ""
    detail: str = ""


_INIT_PROBLEMS = {9: "gpu-driver-not-loaded", 12: "gpu-no-driver", 18: "gpu-driver-mismatch"}
_PROBLEMS = {
    3: "gpu-unsupported",
    13: "gpu-unsupported",  # the driver is older than the question
    15: "gpu-lost",
    16: "gpu-lost",  # it wants a reset
    28: "gpu-lost",
}
"""By NVML's error codes."""


class _Driver:
    """NVML, initialised. Every question has its own answer or its own reason."""

    def __init__(self) -> None:
        try:
            import pynvml
        except ImportError as problem:
            raise _NoDriver("gpu-library-missing", detail=str(problem)) from problem
        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as problem:
            key = _INIT_PROBLEMS.get(problem.value, "gpu-probe-failed")
            raise _NoDriver(key, detail=str(problem)) from problem

    def ask(self, function: str, *arguments: object) -> _Answer:
        try:
            return _Answer(getattr(self._nvml, function)(*arguments))
        except self._nvml.NVMLError as problem:
            key = _PROBLEMS.get(problem.value, "gpu-reading-failed")
            return _Answer(problem=key, detail=str(problem))
        except (AttributeError, ValueError) as problem:  # of an older or newer nvidia-ml-py
            return _Answer(problem="gpu-unsupported", detail=str(problem))

    def version(self) -> str:
        return str(self.ask("nvmlSystemGetDriverVersion").value or "")

    def devices(self) -> tuple[list[Gpu], list[int]]:
        """Every GPU, or its MIG devices where MIG is on; and the numbers of unreachable ones."""
        gpus: list[Gpu] = []
        unreachable: list[int] = []
        for index in range(min(self.ask("nvmlDeviceGetCount").value or 0, MOST_DEVICES)):
            handle = self.ask("nvmlDeviceGetHandleByIndex", index).value
            gpu = self._gpu(handle, index) if handle is not None else None
            if gpu is None:
                unreachable.append(index)
                continue
            mode = self.ask("nvmlDeviceGetMigMode", handle).value
            gpus.extend(self._parts(handle, gpu) if mode and mode[0] == 1 else [gpu])
        return gpus, unreachable

    def readings(self, handle: Any, *, mig: bool) -> Readings:
        use = self.ask("nvmlDeviceGetUtilizationRates", handle)
        percent = use.value.gpu if use.value is not None else None
        busy = percent / 100 if percent is not None and 0 <= percent <= 100 else None
        used, total, memory = self._memory(handle)
        problem, detail = use.problem or memory.problem, use.detail or memory.detail
        if busy is None and not problem:
            problem = "gpu-unsupported"  # some drivers give a number that is no percentage
        if mig and problem == "gpu-unsupported":
            problem = "gpu-unknown-mig"
        return Readings(busy, used, total, problem, detail)

    def _gpu(self, handle: Any, index: int) -> Gpu | None:
        uuid = self.ask("nvmlDeviceGetUUID", handle).value
        if not uuid:
            return None
        model = self.ask("nvmlDeviceGetName", handle).value
        _, total, answer = self._memory(handle)
        if answer.problem == "gpu-lost":
            return None
        return Gpu(str(uuid), index, str(model or "NVIDIA GPU"), total)

    def _parts(self, handle: Any, card: Gpu) -> Iterator[Gpu]:
        places = self.ask("nvmlDeviceGetMaxMigDeviceCount", handle).value or 0
        for place in range(min(places, MOST_DEVICES)):
            part = self.ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, place).value
            gpu = self._gpu(part, card.index) if part is not None else None
            if gpu is not None:
                model = gpu.model if "MIG" in gpu.model else f"{card.model} MIG"
                yield Gpu(gpu.uuid, gpu.index, model, gpu.memory_bytes)

    def _memory(self, handle: Any) -> tuple[int | None, int | None, _Answer]:
        """Used and total bytes. The second form of the call leaves the driver's own share out."""
        version = getattr(self._nvml, "nvmlMemory_v2", None)
        answer = self.ask("nvmlDeviceGetMemoryInfo", handle, version) if version else _Answer()
        if answer.value is None and answer.problem != "gpu-lost":
            answer = self.ask("nvmlDeviceGetMemoryInfo", handle)
        if answer.value is None or not answer.value.total:
            return None, None, _Answer(None, answer.problem or "gpu-unsupported", answer.detail)
        return int(answer.value.used), int(answer.value.total), answer


_opened: list[tuple[int, _Driver]] = []


def _driver() -> _Driver:
    """The driver of this process, initialised once; a fork begins anew. Raises _NoDriver."""
    if not _opened or _opened[0][0] != os.getpid():
        _opened[:] = [(os.getpid(), _Driver())]
    return _opened[0][1]


# ---------------------------------------------------------------------- as a program


@contextmanager
def _quiet_stdout() -> Iterator[int]:
    """What libraries print goes to stderr; the descriptor given is the real stdout."""
    sys.stdout.flush()
    real = os.dup(1)
    os.dup2(2, 1)
    try:
        yield real
    finally:
        os.close(real)


def main() -> int:
    """Print the inventory, with the readings of every GPU, as one JSON document."""
    with _quiet_stdout() as real:
        found = inventory()
        readings = GpuMeter([gpu.uuid for gpu in found.gpus]).read() if found.gpus else {}
        document = asdict(found)
        for gpu in document["gpus"]:
            gpu["readings"] = asdict(readings[gpu["uuid"]])
        line = json.dumps(document, allow_nan=False) + "\n"
        os.write(real, line.encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
