"""danlu drill: kill a job at random points, and say whether it really goes on."""

from __future__ import annotations

import os
import random
import time

from danlu.faces.cli import curve, run, view
from danlu.faces.cli.failure import USAGE, Answered, Failure
from danlu.faces.cli.replay import original
from danlu.faces.cli.session import Session
from danlu.faces.cli.table import command
from danlu.faces.cli.waiting import persistently, until_final
from danlu.faces.cli.watch import BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from collections.abc import Sequence
    from typing import Any

    from danlu.faces.cli.curve import Point

KILLS = 3
LOOK_S = 0.2
LEAST_RUN_S = 0.5
"""An attempt runs at least this long before it is killed: one that is killed before it has done
anything tells nothing."""
FIRST, LAST = 0.2, 0.85
"""Between these shares of the work the kills lie."""
TASK = "worker-0"
CONFLICT = 409
FREE = ["node", "platform", "preemption"]


def drill(
    session: Session,
    *,
    job: str | None,
    file: str | None,
    kills: int | None,
    seed: int | None,
    flavor: str | None,
) -> int:
    """Run the job once in peace (unless it has succeeded already) and once with kills, and compare.
    0 = it resumed after every kill; 1 = it did not, or the log does not tell.
    """
    if (job is None) == (file is None):
        raise Failure(USAGE, "drill-what")
    kills = KILLS if kills is None else kills
    seed = random.SystemRandom().randrange(1, 1 << 31) if seed is None else seed
    body, reference = _wanted(session, job, file)
    _tame(session, body, kills, flavor)
    session.say("drill-begins", kills=kills, seed=seed)
    if reference is None:
        reference = _in_peace(session, body)
    calm = curve.points(_whole_log(session, reference))
    dice = random.Random(seed)  # noqa: S311 - which moment is no secret
    trial = Trial(session, body, reference, calm, [dice.uniform(FIRST, LAST) for _ in range(kills)])
    report = {"seed": seed, **trial.run()}
    if session.json:
        session.put_json(report)
    else:
        _show(session, report)
    return 0 if report["resumed"] else 1


def _wanted(session: Session, job: str | None, file: str | None) -> tuple[dict[str, Any], Any]:
    """The create body, and the job that shows how it goes in peace, if there is one."""
    if file is not None:
        row = command("run")
        options = {one.key: one.default for one in (row.options if row else ())}
        return run.create_body(session, file, (), options), None
    found = session.get("jobs", str(job))
    return original(session, found["id"]), found if found["state"] == "succeeded" and found[
        "attempt"
    ] == 1 else None


def _tame(session: Session, body: dict[str, Any], kills: int, flavor: str | None) -> None:
    """Make a body harmless: places of its own for what it writes, a small flavor, and as many
    attempts as there are kills.
    """
    metadata, spec = body.setdefault("metadata", {}), body.setdefault("spec", {})
    metadata["name"] = f"drill-{metadata.get('name', 'job')}"[:64]
    spec.pop("log_export_path", None)
    resource = spec.setdefault("resource", {})
    resource["flavor_id"] = flavor or _small(session, resource.get("flavor_id"))
    extras = body.setdefault("danlu", {})
    extras["retries"] = kills + 1
    extras["retry_on"] = FREE
    if not body.get("algorithm", {}).get("outputs"):
        raise Failure(USAGE, "drill-no-output")


def _places(body: dict[str, Any]) -> None:
    """Fresh places for the outputs of one run."""
    home = f"obs://danlu/drills/{body['metadata']['name']}-{os.urandom(4).hex()}"
    for output in body["algorithm"]["outputs"]:
        output["remote"] = {"obs": {"obs_url": f"{home}/{output['name']}/"}}


def _small(session: Session, wanted: str | None) -> str:
    """The smallest flavor that has GPUs if the job's own has."""
    listed = [one for one in session.get("flavors")["flavors"] if one["fits"]]
    own = next((one for one in listed if one["id"] == wanted), None)
    gpus = bool(own and own["gpus"])
    fit = [one for one in listed if bool(one["gpus"]) == gpus]
    if not fit:
        raise Failure(USAGE, "drill-no-flavor")
    best = min(fit, key=lambda one: (one["gpus"], one["cpus"], one["memory_bytes"]))
    return str(best["id"])


def _submit(session: Session, body: dict[str, Any]) -> Any:
    _places(body)
    return run.submit(session, body)


def _in_peace(session: Session, body: dict[str, Any]) -> Any:
    """The job once it has run undisturbed."""
    submitted = _submit(session, body)
    session.say("drill-reference", id=submitted["id"][: view.ID_CHARS])
    ended = until_final(session, submitted["id"])
    if ended["state"] != "succeeded":
        raise Failure(1, "drill-fails-anyway", id=ended["id"][:8], why=view.why(ended))
    return ended


def _log(session: Session, job_id: str, attempt: int, offset: int) -> tuple[str, int]:
    """An attempt's log from an offset on, and where it ends now."""
    path = ("jobs", job_id, "tasks", TASK, "log")
    query = {"offset": offset, "attempt": attempt}

    def ask() -> tuple[str, int]:
        response = session.client().send("GET", path, query, headers=BYTES)
        text = response.read(1 << 26).decode("utf-8", "replace")
        return text, int(response.headers.get("x-log-next", offset))

    found: tuple[str, int] = persistently(session, ask)
    return found


def _whole_log(session: Session, job: Any) -> str:
    parts: list[str] = []
    offset = 0
    while True:
        text, end = _log(session, job["id"], job["attempt"], offset)
        if end == offset:
            return "".join(parts)
        parts.append(text)
        offset = end


class Trial:
    """One run with kills. `moments` are shares of the reference's work."""

    def __init__(
        self,
        session: Session,
        body: dict[str, Any],
        reference: Any,
        calm: Sequence[Point],
        moments: Sequence[float],
    ) -> None:
        self._session = session
        self._body = body
        self._calm = calm
        self._calm_s = max(0.001, (reference["duration_ms"] or 0) / 1000)
        self._reference = reference
        self._order = {point.position: at for at, point in enumerate(calm)}
        self._moments = sorted(moments)
        self._logs: dict[int, curve.Growing] = {}
        self._offsets: dict[int, int] = {}
        self._done: dict[int, int] = {}
        self._begun = 0.0
        self._ran_s = 0.0
        self._kills: list[dict[str, Any]] = []

    def run(self) -> dict[str, Any]:
        """The report."""
        job = _submit(self._session, self._body)
        try:
            while job["exit"] is None:
                time.sleep(LOOK_S)
                job = self._look(job["id"])
        except KeyboardInterrupt:
            self._session.client().post("jobs", job["id"], "stop")
            raise
        for attempt in range(1, job["attempt"] + 1):
            self._read(job["id"], attempt)
        return self._report(job)

    def _look(self, job_id: str) -> Any:
        job = persistently(self._session, lambda: self._session.get("jobs", job_id))
        self._read(job_id, job["attempt"])
        if job["state"] != "running":
            self._begun = 0.0
            return job
        now = time.monotonic()
        self._begun = self._begun or now
        due = len(self._kills) < len(self._moments)
        if due and now - self._begun >= LEAST_RUN_S:
            done = self._progress(job["attempt"], now)
            if done >= self._moments[len(self._kills)]:
                self._kill(job_id, job["attempt"], done)
        return job

    def _read(self, job_id: str, attempt: int) -> None:
        """Note what an attempt has printed since it was read last."""
        offset = self._offsets.get(attempt, 0)
        text, self._offsets[attempt] = _log(self._session, job_id, attempt, offset)
        seen = self._logs.setdefault(attempt, curve.Growing()).take(text)
        done = (self._order.get(point.position, -1) + 1 for point in seen)
        self._done[attempt] = max([self._done.get(attempt, 0), *done])

    def _progress(self, attempt: int, now: float) -> float:
        """The share of the work that is done: by the steps in the log, or else by time."""
        if self._order:
            return self._done[attempt] / len(self._calm)
        return (self._ran_s + now - self._begun) / self._calm_s

    def _kill(self, job_id: str, attempt: int, done: float) -> None:
        try:
            self._session.client().post("jobs", job_id, "preempt", query={"grace_s": 0})
        except Answered as refused:
            if refused.status != CONFLICT:
                raise
            return  # it has just ended
        self._ran_s += time.monotonic() - self._begun
        self._begun = 0.0
        self._kills.append({"attempt": attempt, "progress": round(done, 3)})
        self._session.say(
            "drill-killed", number=len(self._kills), of=len(self._moments), share=f"{done:.0%}"
        )

    def _report(self, job: Any) -> dict[str, Any]:
        listed = [self._logs[n].end() for n in range(1, job["attempt"] + 1)]
        gap = curve.gap(self._calm, listed)
        whole = (job["ended_at"] - (job["created_at"])) / 1000
        calm = (self._reference["ended_at"] - self._reference["created_at"]) / 1000
        resumed = curve.resumed(self._calm, listed)
        ended = job["state"] == "succeeded" and len(self._kills) == len(self._moments)
        return {
            "job": job["id"],
            "reference": self._reference["id"],
            "state": job["state"],
            "why": view.why(job),
            "resumed": False if job["state"] != "succeeded" else resumed if ended else None,
            "kills": self._kills,
            "kills_wanted": len(self._moments),
            "steps": len({point.position for point in self._calm}),
            "steps_repeated": curve.repeated(listed),
            "first_steps": [list(one[0].position) if one else None for one in listed],
            "time_lost_s": round(max(0.0, whole - calm), 1),
            "reference_s": round(calm, 1),
            "loss": gap and {"compared": gap[0], "largest_gap": gap[1], "share": round(gap[2], 4)},
            "checkpoints": self._checkpoints(job["id"]),
        }

    def _checkpoints(self, job_id: str) -> list[dict[str, Any]]:
        """What each further attempt found in its outputs."""
        from danlu.faces.cli.events import every

        return [
            {name: event["params"].get(name) for name in ("name", "files", "size")}
            for event in every(self._session, job_id)
            if event["key"] == "output-prefetched"
        ]


def _show(session: Session, report: dict[str, Any]) -> None:
    """The report for a person."""
    verdict = {True: "drill-resumed", False: "drill-anew", None: "drill-untold"}
    key = verdict[report["resumed"]]
    if report["state"] != "succeeded":
        key = "drill-failed"
    elif len(report["kills"]) < report["kills_wanted"]:
        key = "drill-too-short"
    killed = len(report["kills"])
    session.put(
        session.text(
            key, id=report["job"][: view.ID_CHARS], kills=killed, why=report["why"] or "-",
            wanted=report["kills_wanted"],
        )
    )  # fmt: skip
    session.put(
        session.text("drill-steps", repeated=report["steps_repeated"], steps=report["steps"])
    )
    session.put(session.text("drill-time", lost=report["time_lost_s"], whole=report["reference_s"]))
    found = [f"{one['name']}: {one['files']} ({one['size']})" for one in report["checkpoints"]]
    session.put(session.text("drill-found", found=", ".join(found) or session.text("no")))
    loss = report["loss"]
    if loss is None:
        session.put(session.text("drill-no-loss"))
    else:
        session.put(
            session.text(
                "drill-loss",
                compared=loss["compared"],
                gap=f"{loss['largest_gap']:.3g}",
                share=f"{loss['share']:.1%}",
            )
        )
