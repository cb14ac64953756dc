"""Proves the invariants over a recorded history. Pure: a history goes in, violations come out.

The invariants are those of a platform that loses nothing: no accepted job lost or doubled; at
most one live attempt; at most one launch an attempt; at most one commit; a final state never
changes; every job ends; logs are whole; the database is sound; and killing a server or an agent
repeats no work.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from danlu.model.attempt import FINAL, State
from danlu.node.agent import MOST_STARTS
from tests.faults.history import History, Order, Remains, Word

ENDS = {f"job-{state}" for state in FINAL}
PLATFORM = frozenset({"agent-lost", "task-lost"})
"""Reasons with which an attempt may end whose shim was killed."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold, where, and how that shows."""

    invariant: str
    job: str
    words: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.job or 'the platform'}: {self.words}"


def check(history: History) -> list[Violation]:
    """Every violation in a history."""
    return [violation for rule in RULES for violation in rule(history)]


# ---------------------------------------------------------------- accepted means there, once


def lost(history: History) -> Iterator[Violation]:
    there = {remains.job for remains in history.remains}
    for accepted in history.accepted:
        if accepted.job not in there:
            yield Violation("lost", accepted.job, f"{accepted.label} was accepted and is not there")
    known = {accepted.label for accepted in history.accepted}
    for order in history.orders:
        if order.label not in known:
            yield Violation("lost", "", f"{order.label} was never accepted, however often sent")


def doubled(history: History) -> Iterator[Violation]:
    jobs: dict[str, set[str]] = defaultdict(set)
    for accepted in history.accepted:
        jobs[accepted.label].add(accepted.job)
    for remains in history.remains:
        jobs[remains.label].add(remains.job)
    for label, found in jobs.items():
        if len(found) > 1:
            yield Violation("doubled", min(found), f"{label} is {len(found)} jobs")


# ---------------------------------------------------------------- attempts


def launched_twice(history: History) -> Iterator[Violation]:
    runs: dict[tuple[str, int, int], set[str]] = defaultdict(set)
    for word in history.words:
        if word.kind == "start":
            runs[word.job, word.attempt, word.task].add(word.run)
    for (job, attempt, task), found in runs.items():
        if len(found) > 1:
            words = f"worker-{task} of attempt {attempt} was started {len(found)} times"
            yield Violation("launched-twice", job, words)


def overlapping(history: History) -> Iterator[Violation]:
    """A task's program starts while another run of that task lives, or of an earlier attempt."""
    living: dict[str, dict[str, Word]] = defaultdict(dict)
    for word in history.words:
        if word.kind == "start":
            for other in living[word.job].values():
                if other.task == word.task or other.attempt != word.attempt:
                    words = f"attempt {word.attempt} starts while attempt {other.attempt} lives"
                    yield Violation("overlapping", word.job, words)
            living[word.job][word.run] = word
        elif word.kind == "gone":
            living[word.job].pop(word.run, None)


def unended(history: History) -> Iterator[Violation]:
    for remains in history.remains:
        *earlier, last = remains.attempts
        for attempt in remains.attempts:
            if State(attempt.state) not in FINAL:
                words = f"attempt {attempt.number} is {attempt.state} at the end"
                yield Violation("stuck", remains.job, words)
        for attempt in earlier:
            if attempt.state == State.SUCCEEDED:
                words = f"attempt {attempt.number} succeeded and {last.number} followed"
                yield Violation("final-changed", remains.job, words)
        numbers = [attempt.number for attempt in remains.attempts]
        if numbers != list(range(1, len(numbers) + 1)):
            yield Violation("doubled", remains.job, f"attempts are numbered {numbers}")


def final_changed(history: History) -> Iterator[Violation]:
    seen: dict[str, tuple[int, str]] = {}
    for look in history.looks:
        attempt, state = seen.get(look.job, (0, ""))
        if look.attempt < attempt:
            words = f"attempt {look.attempt} is shown after attempt {attempt}"
            yield Violation("final-changed", look.job, words)
        elif look.attempt == attempt and state in FINAL and look.state != state:
            words = f"attempt {attempt} was {state} and is {look.state}"
            yield Violation("final-changed", look.job, words)
        seen[look.job] = (look.attempt, look.state)


# ---------------------------------------------------------------- how it ended


def committed_twice(history: History) -> Iterator[Violation]:
    for remains in history.remains:
        ends = [key for key in remains.events if key in ENDS]
        if len(ends) > len(remains.attempts):
            yield Violation("committed-twice", remains.job, f"its history ends {', '.join(ends)}")


def outputs_wrong(history: History) -> Iterator[Violation]:
    """A job that succeeded has every file of its last run, and no result of another one."""
    orders = {order.label: order for order in history.orders}
    ended = {word.run: word for word in history.words if word.kind == "end"}
    for remains in history.remains:
        order = orders.get(remains.label)
        last = remains.attempts[-1]
        if order is None or last.state != State.SUCCEEDED:
            continue
        for task in range(order.tasks):
            run = _run(remains, task)
            if run not in ended or ended[run].attempt != last.number:
                words = f"the result of worker-{task} is of run {run or 'nobody'}"
                yield Violation("outputs-wrong", remains.job, words)
            wanted = {f"part-{task}-{step}.json" for step in range(order.steps)}
            missing = wanted - remains.outputs.keys()
            if missing:
                words = f"{len(missing)} of {len(wanted)} files are missing: {min(missing)}"
                yield Violation("outputs-wrong", remains.job, words)


def _run(remains: Remains, task: int) -> str:
    try:
        return str(json.loads(remains.outputs[f"result-{task}.json"])["run"])
    except (KeyError, ValueError):
        return ""


def outcome_wrong(history: History) -> Iterator[Violation]:
    """A job ends as its program did; with the platform's reason only where its shim was killed."""
    orders = {order.label: order for order in history.orders}
    shot = _shot(history)
    for remains in history.remains:
        order = orders.get(remains.label)
        last = remains.attempts[-1]
        if order is None or State(last.state) not in FINAL:
            continue
        allowed = {State.SUCCEEDED if order.code == 0 else State.FAILED}
        if order.stopped:
            allowed.add(State.CANCELLED)
        platform = last.reason in PLATFORM and last.state in {State.FAILED, State.LOST}
        if platform and (remains.job, last.number) in shot:
            continue
        if platform or last.state not in allowed:
            words = f"it is {last.state} ({last.reason}), its program ends with {order.code}"
            yield Violation("outcome-wrong", remains.job, words)


# ---------------------------------------------------------------- work and words


def repeated(history: History) -> Iterator[Violation]:
    """Work that was done twice although no shim of the job was killed."""
    shot = {job for job, _ in _shot(history)}
    done: dict[tuple[str, int, int], int] = defaultdict(int)
    for word in history.words:
        if word.kind == "step" and word.job not in shot:
            done[word.job, word.task, word.step] += 1
    for (job, task, step), count in done.items():
        if count > 1:
            words = f"step {step} of worker-{task} was done {count} times"
            yield Violation("work-repeated", job, words)
    granted = {order.label: order.retries for order in history.orders}
    unbegun = _unbegun(history)
    for remains in history.remains:
        allowed = 1 + granted.get(remains.label, 0) + unbegun[remains.job]
        if remains.job not in shot and len(remains.attempts) > allowed:
            words = f"{len(remains.attempts)} attempts, though no shim was killed"
            yield Violation("work-repeated", remains.job, words)


def _unbegun(history: History) -> Counter[str]:
    """How many attempts of each job did no work and lost so many agents that they were given up."""
    killed = Counter((kill.job, kill.attempt) for kill in history.kills if kill.target == "agent")
    begun = {(word.job, word.attempt) for word in history.words if word.kind == "start"}
    return Counter(
        job
        for (job, attempt), count in killed.items()
        if count >= MOST_STARTS and (job, attempt) not in begun
    )


def logs_wrong(history: History) -> Iterator[Violation]:
    """The log is what the program printed: all of it, or what came before its shim was killed."""
    orders = {order.label: order for order in history.orders}
    shot = _shot(history)
    for remains in history.remains:
        order = orders.get(remains.label)
        if order is None:
            continue
        last = remains.attempts[-1].number
        for task, log in remains.logs.items():
            steps = [
                word.step
                for word in history.words
                if word.kind == "step"
                and (word.job, word.attempt, word.task) == (remains.job, last, task)
            ]
            text = b"".join(line(step, order) for step in steps)
            ended = any(
                word.kind == "end"
                and (word.job, word.attempt, word.task) == (remains.job, last, task)
                for word in history.words
            )
            whole = log == text
            # The last step was told before its line was printed.
            before = text.startswith(log) if (remains.job, last) in shot else False
            cut = not ended and text.startswith(log) and len(steps) - log.count(b"\n") <= 1
            if not (whole or before or cut):
                lines = log.count(b"\n")
                words = f"worker-{task} printed {len(steps)} lines, the log has {lines}"
                yield Violation("log-wrong", remains.job, words)


def line(step: int, order: Order) -> bytes:
    """What the program prints for a step."""
    return f"step {step} of {order.steps}, loss={1 / (step + 1):.6f}\n".encode()


# ---------------------------------------------------------------- the platform


def unsound(history: History) -> Iterator[Violation]:
    for said in history.integrity:
        if said != "ok":
            yield Violation("database-damaged", "", said)


def survived(history: History) -> Iterator[Violation]:
    for process in history.survivors:
        yield Violation("survivor", "", process)


def failed(history: History) -> Iterator[Violation]:
    for refusal in history.refusals:
        yield Violation("server-error", "", refusal)


def _shot(history: History) -> set[tuple[str, int]]:
    """Attempts of which a shim was killed."""
    return {(kill.job, kill.attempt) for kill in history.kills if kill.target == "shim"}


RULES: tuple[Callable[[History], Iterator[Violation]], ...] = (
    lost,
    doubled,
    launched_twice,
    overlapping,
    unended,
    final_changed,
    committed_twice,
    outputs_wrong,
    outcome_wrong,
    repeated,
    logs_wrong,
    unsound,
    survived,
    failed,
)
