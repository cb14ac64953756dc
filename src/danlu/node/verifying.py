"""The image of a task is verified before the task's program, where that will run: the checks
(`runtime/danlu_verify`) are the program until the agent lets it be another one.

They are started as the program would be, with its user, limits, files and GPUs. They write a report
into the task's places and wait; the agent reads it, keeps it, and gives its word in `told`, where
the program cannot write. Nothing of the job has run before that, so nobody could have written it.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from danlu.model.errors import PlatformError
from danlu.model.event import Level
from danlu.model.reason import ReasonCode
from danlu.model.verification import Status, Verify
from danlu.node import places
from danlu.node.container.entry import PLACE
from danlu.node.container.outfit import RUNTIME
from danlu.node.directory import TaskDirectory, json_in, now_ms, open_plain
from danlu.node.gpu import loaded_driver
from danlu.node.stage import StageFailed
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan

if TYPE_CHECKING:
    from danlu.images.store import ImageStore
    from danlu.model.verification import Verification

FOLDER = ".danlu-verify"
REPORT = "report.json"
ENVIRONMENT = "/opt/danlu/environment"
LOOK_EVERY_S = 0.05
GPU_ROW = 25


def order(
    directory: TaskDirectory, plan: AgentPlan, argv: Sequence[str], env: Mapping[str, str]
) -> tuple[str, ...]:
    """What is to be started instead of `argv`, with `env`: the checks that are due, and then that;
    or just that. StageFailed where they cannot be made.
    """
    try:
        return _order(directory, plan, argv, env)
    except (PlatformError, OSError) as error:
        task = plan.plan.task_name
        raise StageFailed(ReasonCode.IMAGE_UNVERIFIED, task=task, failed=str(error)) from error


def _order(
    directory: TaskDirectory, plan: AgentPlan, argv: Sequence[str], env: Mapping[str, str]
) -> tuple[str, ...]:
    for left in (files.VERIFY_WORD, files.VERIFIED, files.VERIFY):
        # Of an agent that died before it started anything.
        Path(directory.file(left)).unlink(missing_ok=True)
    task, inside = plan.plan, plan.container is not None
    full = _due(directory, plan, env)
    if not full and (inside or not task.gpus):
        # A container says by itself how many GPUs it sees.
        return tuple(argv)
    config = _config(plan, env, full=full)
    _tell(directory, files.VERIFY, json.dumps(config))
    python = f"{config['prefix']}/bin/python" if full else plan.layout.python
    told = f"{PLACE}/{files.TOLD}" if inside else directory.file(files.TOLD)
    runtime = RUNTIME if inside else places.RUNTIME
    report = f"{env['MA_MOUNT_PATH']}/{FOLDER}/{REPORT}"
    if full:
        directory.note("image-verifying", image=task.image_name, flavor=task.flavor)
    return (python, "-I", f"{runtime}/danlu_verify", f"{told}/verify.json", report,
            f"{told}/verify.word", "--", *argv)  # fmt: skip


def _due(directory: TaskDirectory, plan: AgentPlan, env: Mapping[str, str]) -> bool:
    task = plan.plan
    if not task.image or not plan.images or task.verify == Verify.OFF:
        return False
    if task.verify == Verify.ALWAYS:
        return True
    known = _known(_store(plan), plan, _image(plan, env))
    if known is None or not known.ok:
        return True
    counts = known.counts()
    directory.note(
        "image-verified-before",
        image=task.image_name, flavor=task.flavor, job=known.job,
        passed=counts["pass"], skipped=counts["skipped"],
    )  # fmt: skip
    return False


def _store(plan: AgentPlan) -> ImageStore:
    from danlu.images.store import ImageStore

    return ImageStore(Path(plan.images))


def _known(store: ImageStore, plan: AgentPlan, image_id: str) -> Verification | None:
    from danlu.images import verified

    made = _realisation(store, plan, image_id)
    return verified.find(store, image_id, made, plan.plan.flavor, loaded_driver())


def _realisation(store: ImageStore, plan: AgentPlan, image_id: str) -> str:
    """A container image built anew is another one."""
    from danlu.images import built

    return built.reference(store, image_id) if plan.container is not None else "venv"


def _image(plan: AgentPlan, env: Mapping[str, str]) -> str:
    """The image that it is: with a job's own packages another one than was asked for."""
    made = Path(env["MA_SCRIPT_INTERPRETER"]).parent.parent.name
    whole = len(made) == 64 and plan.container is None
    return f"sha256:{made}" if whole else plan.plan.image


def _config(plan: AgentPlan, env: Mapping[str, str], *, full: bool) -> dict[str, Any]:
    task = plan.plan
    found: dict[str, Any] = {
        "full": full,
        "task": task.task_name,
        "nonce": secrets.token_hex(16),
        "began": now_ms(),
        "gpus": [gpu.uuid for gpu in task.gpus],
        "memory_mb": task.memory_bytes >> 20,
        "mounts": [env["MA_MOUNT_PATH"]],
        "wheels": {},
        "backend": "",
    }
    if not full:
        return found
    from danlu.images import verify

    store, image_id = _store(plan), _image(plan, env)
    inside = plan.container is not None
    kind = verify.CONTAINER if inside else verify.VENV
    models = [gpu.model for gpu in task.gpus]
    prefix = ENVIRONMENT if inside else str(store.environment(image_id))
    expected = verify.expected(store, image_id, kind, models)
    return {**found, **expected, "prefix": prefix, "image": image_id}


def _tell(directory: TaskDirectory, name: str, text: str) -> None:
    """Write what the program may read, whoever it is."""
    path = Path(directory.file(name))
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, "utf-8")
    fresh.chmod(0o644)
    fresh.rename(path)


class Watch:
    """While it is entered, a report is waited for, if one is still to come."""

    def __init__(self, directory: TaskDirectory, plan: AgentPlan) -> None:
        self._directory = directory
        self._plan = plan
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="verify", daemon=True)
        self._report = Path(plan.layout.mount, FOLDER, REPORT)

    def __enter__(self) -> None:
        if self._directory.exists(files.VERIFY) and not self._directory.exists(files.VERIFY_WORD):
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            said = _read(self._report)
            config = self._directory.read(files.VERIFY)
            if said is not None and config is not None and said.get("nonce") == config["nonce"]:
                self._take(said, config)
                return

    def _take(self, said: dict[str, Any], config: dict[str, Any]) -> None:
        try:
            good = (_verified if config["full"] else _counted)(
                self._directory, self._plan, config, list(said["results"])
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._directory.publish(files.VERIFIED, {"ok": False, "failed": f"no report: {error}"})
            good = False
        with suppress(OSError):
            self._report.unlink()
            self._report.parent.rmdir()
        _tell(self._directory, files.VERIFY_WORD, f"{config['nonce']} {'go' if good else 'no'}\n")


def _read(path: Path) -> dict[str, Any] | None:
    with suppress(OSError, ValueError):
        descriptor = open_plain(path)
        try:
            return json_in(descriptor)
        finally:
            os.close(descriptor)
    return None


def _counted(
    directory: TaskDirectory, plan: AgentPlan, _config: dict[str, Any], results: list[Any]
) -> bool:
    """GPUs alone were counted."""
    row = next(one for one in results if one["number"] == GPU_ROW)
    good = bool(row["status"] == Status.PASS)
    detail = str(row["detail"])
    first = detail.partition(" ")[0]
    found = int(first) if first.isdigit() else 0
    said = {"ok": good, "found": found, "wanted": len(plan.plan.gpus), "failed": detail}
    directory.publish(files.VERIFIED, said)
    return good


def _verified(
    directory: TaskDirectory, plan: AgentPlan, config: dict[str, Any], results: list[Any]
) -> bool:
    from danlu.images import advisories, verified
    from danlu.images.realise import system
    from danlu.model.verification import read

    store, task, image_id = _store(plan), plan.plan, str(config["image"])
    took_s = round((now_ms() - int(config["began"])) / 1000, 1)
    report = read(
        {
            "image": image_id,
            "image_name": task.image_name,
            "flavor": task.flavor,
            "realisation": _realisation(store, plan, image_id),
            "driver": loaded_driver(),
            "system": system(),
            "job": task.job_id,
            "at": now_ms(),
            "took_s": took_s,
            "findings": results,
            "advisories": advisories.against(config["wheels"]),
        }
    )
    verified.save(store, report)
    directory.publish(files.VERIFIED, {"ok": report.ok, "failed": report.failures()[:2000]})
    counts = report.counts()
    values: dict[str, str | int] = {
        "image": task.image_name, "flavor": task.flavor, "passed": counts["pass"],
        "warned": counts["warn"], "skipped": counts["skipped"], "took_s": f"{took_s:.1f}",
    }  # fmt: skip
    if report.ok:
        directory.note("image-verified", **values)
    else:
        directory.note(
            "image-unverified-now", Level.WARNING, **values, failed=report.failures()[:1000]
        )
    return report.ok
