"""Random lives of a platform on a clock that stands still: replayed by their seed, then checked.

The flow and the model are the real ones. The engine is the scriptable one; the records are a fake
that loses in a crash what was not committed. Chance decides what happens next: submissions and
their repetitions, stops, deletions, ends of every kind, vanished tasks, reboots, crashes of the
server at any commit, a server that is stopped in mid-turn, reports that come late, a clock that is
set. After every step, and once all is quiet, the invariants must hold.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

from danlu.engines.memory import Cluster, ManualClock, MemoryEngine
from danlu.engines.memory_script import Script, follow
from danlu.flow.board import Board
from danlu.flow.catalog import Catalog, Environment
from danlu.flow.delete import delete
from danlu.flow.finish import finish
from danlu.flow.loop import Loop
from danlu.flow.observe import observe
from danlu.flow.platform import Limits, Platform
from danlu.flow.retry import retry
from danlu.flow.stop import stop, want_stop
from danlu.flow.submit import submit
from danlu.flow.sweep import sweep_orphans
from danlu.model.attempt import FINAL, HOLDING, Attempt, Event, State
from danlu.model.errors import PlatformError
from danlu.model.event import JobEvent
from danlu.model.identity import Caller, User, Workspace
from danlu.model.job import Intent, JobSpec, Task
from danlu.model.reason import Reason, ReasonCode
from danlu.model.resources import GIB, Offer, Shape
from danlu.model.retry import CAUSES, FREE, Cause, Retry
from danlu.model.script import TaskPlan
from danlu.ports.engine import Launch, Ref
from danlu.ports.objects import ObjectStore
from danlu.ports.records import Move, Records
from tests.fakes.ledger import Disk, Ledger, Row

WORKSPACE = "w"
STEPS = 40
QUIET_TURNS = 600
NEVER_AGAIN = (ReasonCode.COMPLETED, ReasonCode.STOPPED, ReasonCode.TIME_LIMIT)


class SeededDice:
    """The seed's randomness, as the flow draws it."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def token(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    def job_id(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def fraction(self) -> float:
        return self._random.random()


class WatchedEngine(MemoryEngine):
    """Notes each real beginning of a task, and who else of its job lives at that instant."""

    def __init__(
        self, *arguments: Any, begun: Counter[Ref], broken: list[str], **more: Any
    ) -> None:
        super().__init__(*arguments, **more)
        self._begun, self._broken = begun, broken

    def _begin(self, launch: Launch) -> None:
        fresh = launch.ref not in self._cluster.tasks
        super()._begin(launch)
        if fresh:
            self._begun[launch.ref] += 1
            self._broken += [
                f"{launch.ref.name} begins while {other.name} lives"
                for other in self._cluster.tasks
                if other.job_id == launch.ref.job_id
                and other.attempt != launch.ref.attempt
                and lives(self._cluster, other, self._clock.now())
            ]


def lives(cluster: Cluster, ref: Ref, now: int) -> bool:
    """Whether a task's program, or what is started for it, is there."""
    task = cluster.tasks[ref]
    look = follow(task.script, task.plan, task.launched_at, task.stops, now)
    return look.exit is None


@dataclass(slots=True)
class Server:
    """One process of the platform's."""

    platform: Platform
    board: Board
    loop: Loop
    ledger: Ledger


class World:
    """Everything that one seed brings about."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = ManualClock()
        self.nodes_clock = ManualClock()
        """The nodes' own: nobody sets that one."""
        self.disk = Disk()
        self.cluster = Cluster()
        self.accepted: dict[str, str] = {}
        """Job ids by client token, as clients were told."""
        self.begun: Counter[Ref] = Counter()
        self.vanished: Counter[Ref] = Counter()
        self.broken: list[str] = []
        count = self.random.randint(1, 3)
        self.nodes = [Offer(f"n{i}", self.random.randint(1, 4), 64 * GIB) for i in range(count)]
        self.caller = Caller(User("u", "alice", WORKSPACE, "d"), Workspace(WORKSPACE, "here"))
        self.server = self._start()

    def _start(self) -> Server:
        ledger = Ledger(self.disk, self.random)
        engine = WatchedEngine(
            self.nodes_clock,
            script_of=self._script,
            nodes=self.nodes,
            cluster=self.cluster,
            sleep=lambda _s: None,
            begun=self.begun,
            broken=self.broken,
        )
        platform = Platform(
            cast("Records", ledger),
            cast("ObjectStore", None),  # no job of this world has code, inputs or outputs
            engine,
            Catalog(engine.capacity, lambda _: [Environment("default", "/usr")]),
            self.clock,
            SeededDice(self.random),
            Limits(platform_retries=self.random.randint(0, 3)),
        )
        board = Board(platform.records)
        loop = Loop(platform, board)
        board.load()
        return Server(platform, board, loop, ledger)

    @property
    def engine(self) -> MemoryEngine:
        """The present server's."""
        return cast("MemoryEngine", self.server.platform.engine)

    def _script(self, plan: TaskPlan) -> Script:
        """What a task does: drawn when it is launched."""
        draw = self.random
        kind = draw.random()
        common: dict[str, Any] = {
            "stage_s": draw.choice([0.0, 0.5, 3.0]),
            "duration_s": draw.choice([0.0, 1.0, 5.0, 40.0, 700.0, None]),
            "collect_s": draw.choice([0.0, 0.2, 4.0]),
            "on_term_s": draw.choice([0.0, 1.0, None]),
            "notes": [(0.0, "task-started", {"pid": plan.index})],
        }
        if kind < 0.4:
            return Script(**common)
        if kind < 0.6:
            return Script(**common, exit_code=draw.randint(1, 255))
        if kind < 0.7:
            return Script(**common, exit_code=137, signal="SIGKILL", out_of_memory=True)
        if kind < 0.85:
            lost = draw.choice([ReasonCode.AGENT_LOST, ReasonCode.REBOOTED, ReasonCode.PREEMPTED])
            return Script(**common, exit_code=137, signal="SIGKILL", problem=lost)
        if kind < 0.95:
            return Script(**common, exit_code=125, starts=False, problem=ReasonCode.INPUT_FAILED)
        return Script(**common, storing_problem=ReasonCode.OUTPUT_FAILED)

    # what happens

    def live(self) -> None:
        """Everything that the seed holds, then quiet."""
        happenings = (
            (self.look, 30), (self.submit, 10), (self.stop, 4), (self.resubmit, 2),
            (self.delete, 3), (self.vanish, 3), (self.reboot, 1), (self.crash, 4),
            (self.misbehave, 3), (self.oversleep, 1), (self.report_late, 3), (self.set_clock, 1),
        )  # fmt: skip
        deeds = [deed for deed, _ in happenings]
        weights = [weight for _, weight in happenings]
        for _ in range(STEPS):
            self.random.choices(deeds, weights)[0]()
            check(self)
        self.calm_down()

    def look(self) -> None:
        """Time passes, and the loop has a turn."""
        self.pass_time(self.random.choice([0, 0.1, 1, 1, 3, 10, 60]))
        self._turn(self.server)

    def pass_time(self, seconds: float) -> None:
        """For everybody."""
        self.clock.advance(seconds)
        self.nodes_clock.advance(seconds)

    def _turn(self, server: Server) -> None:
        try:
            server.loop.turn()
        except PlatformError:
            self._recover(server)

    def _recover(self, server: Server) -> None:
        """As Loop does it: until the records can be read."""
        server.ledger.unreadable = self.random.choice([0, 0, 1, 3])
        while True:
            try:
                server.board.reload()
            except PlatformError:
                continue
            return

    def submit(self) -> None:
        """A client submits something, and gets its answer or not."""
        most = sum(offer.cpus for offer in self.nodes)
        causes = tuple(cause for cause in Cause if self.random.random() < 0.7)
        spec = JobSpec(
            f"job-{len(self.accepted)}",
            "danlu.cpu.1u",
            Shape(1, 1),
            node_count=self.random.randint(1, min(3, most)),
            priority=self.random.randint(1, 3),
            command="true",
            grace_s=self.random.choice([0, 2, 30]),
            time_limit_s=self.random.choice([None, None, 3, 100]),
            retry=Retry(self.random.choice([0, 1, 3]), causes),
        )
        self._send(spec, f"token-{len(self.accepted)}")

    def _send(self, spec: JobSpec, token: str) -> None:
        server = self.server
        try:
            future = submit(
                server.platform,
                server.board,
                self.caller,
                spec,
                client_token=token,
                wake=lambda: None,
            )
        except PlatformError:  # the engine is deaf, so nothing fits
            return
        job = future.result().job
        if self.accepted.setdefault(token, job.id) != job.id:
            self.broken.append(f"{token} is two jobs")

    def resubmit(self) -> None:
        """A client that did not get its answer sends the same again."""
        if self.accepted:
            token = self.random.choice(list(self.accepted))
            row = self.disk.rows.get(self.accepted[token])
            if row is not None and not row.deleted:
                self._send(row.job.spec, token)

    def stop(self) -> None:
        """A user stops something, and the server may die before anybody hears of it."""
        row = self._any_row()
        if row is not None and row.attempts[-1].state not in FINAL:
            server = self.server
            future = want_stop(server.platform, server.board, self.caller, row.job.id, lambda: None)
            if self.random.random() < 0.8:
                future.result()

    def delete(self) -> None:
        """A user deletes something."""
        row = self._any_row()
        if row is not None and row.attempts[-1].state in FINAL:
            delete(self.server.platform, self.caller, row.job.id).result()

    def _any_row(self) -> Row | None:
        rows = [row for row in self.disk.rows.values() if not row.deleted]
        return self.random.choice(rows) if rows else None

    def vanish(self) -> None:
        """A task is gone without a trace."""
        if self.cluster.tasks:
            ref = self.random.choice(list(self.cluster.tasks))
            del self.cluster.tasks[ref]
            self.vanished[ref] += 1

    def reboot(self) -> None:
        """The machine restarts: everything that ran is dead, the server is a new one."""
        now = self.nodes_clock.now()
        for ref, task in self.cluster.tasks.items():
            if lives(self.cluster, ref, now):
                began = task.launched_at + round(task.script.stage_s * 1000)
                task.script = replace(
                    task.script,
                    stage_s=0,
                    duration_s=max(0, now - began) / 1000,
                    exit_code=137,
                    signal="SIGKILL",
                    problem=ReasonCode.REBOOTED,
                )
                task.launched_at = min(began, now)
        self.crash()

    def crash(self) -> None:
        """The server dies between any two commits, perhaps in mid-turn, and another one starts."""
        self.server.ledger.crash()
        self.server = self._start()
        sweep_orphans(self.server.platform)

    def misbehave(self) -> None:
        """The engine is deaf, late, refuses or repeats itself; or is well again."""
        faults, draw = self.engine.faults, self.random
        faults.deaf = draw.random() < 0.3
        faults.late_s = draw.choice([0.0, 0.0, 2.0])
        faults.refuse_launches = draw.choice([0, 0, 1, 3])
        faults.repeat_notes = draw.random() < 0.2

    def oversleep(self) -> None:
        """The server is stopped in mid-turn (SIGSTOP), and goes on with what it saw an hour ago."""
        platform, board = self.server.platform, self.server.board
        try:
            seen = observe(platform, board)
            self.pass_time(self.random.choice([1, 60, 3600]))
            stop(platform, board, seen)
            finish(platform, board, seen)
            self.pass_time(self.random.choice([0, 60]))
            retry(platform, board)
            board.settle()
        except PlatformError:
            self._recover(self.server)

    def report_late(self) -> None:
        """Somebody reports on an attempt that is over, or with a token that is not its own."""
        row = self._any_row()
        if row is None:
            return
        key = self.random.choice(row.attempts).key
        wrong = self.random.random() < 0.5
        if wrong:
            key = replace(key, token="0" * 32)
        elif key not in self.disk.ends:
            return
        said = Reason(ReasonCode.EXIT, {"task": "worker-0", "exit_code": 1})
        for event in Event:
            move = Move(key, event, 1, events=(JobEvent(1, "late"),), reason=said)
            if self.server.ledger.move(move).result() is not None:
                self.broken.append(f"{event} of {key} was taken")
        if self.server.ledger.note(key, [JobEvent(1, "late")], [Task(0)]).result():
            self.broken.append(f"a note of {key} was taken")

    def set_clock(self) -> None:
        """Somebody sets the machine's clock."""
        self.clock._start_ms += self.random.choice([-3_600_000, 3_600_000, -86_400_000, 500])

    def calm_down(self) -> None:
        """Nothing happens any more: everything has to come to its end."""
        self.engine.faults.deaf = False
        self.engine.faults.late_s = 0
        self.engine.faults.refuse_launches = 0
        for row in list(self.disk.rows.values()):
            endless = any(
                ref.job_id == row.job.id and task.script.duration_s in (None, 700.0)
                for ref, task in self.cluster.tasks.items()
            )
            if endless and row.attempts[-1].state not in FINAL:
                server = self.server
                want_stop(server.platform, server.board, self.caller, row.job.id, lambda: None)
        for turn in range(QUIET_TURNS):
            self.pass_time(2)
            self._turn(self.server)
            check(self)
            live = self.server.ledger.live()
            if not live and turn > 3:
                break
            if turn % 50 == 49:
                for view in live:
                    want_stop(
                        self.server.platform,
                        self.server.board,
                        self.caller,
                        view.job.id,
                        lambda: None,
                    ).result()
        self.pass_time(60)
        for _ in range(3):
            self._turn(self.server)
        check_quiet(self)


# ---------------------------------------------------------------- what must hold


def check(world: World) -> None:
    """After every step."""
    broken = world.broken
    touched, world.disk.touched = world.disk.touched, set()
    for row in (world.disk.rows[job_id] for job_id in touched & world.disk.rows.keys()):
        broken += _attempts(row)
        broken += _budget(row)
    for key, (attempt, tasks) in world.disk.ends.items():
        if key.job_id not in touched:
            continue
        row = world.disk.rows[key.job_id]
        if (row.attempts[key.number - 1], row.tasks_of(key.number)) != (attempt, tasks):
            broken.append(f"the end of attempt {key.number} of {key.job_id} changed")
    broken += _capacity(world)
    broken += [
        f"{ref.name} was begun {count} times"
        for ref, count in world.begun.items()
        if count > 1 + world.vanished[ref]
    ]
    lost = [job for job in world.accepted.values() if job not in world.disk.rows]
    broken += [f"{job} was accepted and is not there" for job in lost]
    assert not broken, broken[:5]


def _attempts(row: Row) -> Iterable[str]:
    job = row.job.id
    if [one.key.number for one in row.attempts] != list(range(1, len(row.attempts) + 1)):
        yield f"{job} has odd attempts"
    if len({one.key.token for one in row.attempts}) != len(row.attempts):
        yield f"{job} has two attempts of one token"
    if any(one.state not in FINAL for one in row.attempts[:-1]):
        yield f"{job} has an attempt behind a live one"
    for one in row.attempts:
        full = len(one.placement) == row.job.spec.node_count
        if one.state in HOLDING and not full:
            yield f"{job} holds places for {len(one.placement)} of its tasks"
        codes = [task.exit_code for task in row.tasks_of(one.key.number)]
        well = codes == [0] * row.job.spec.node_count
        if one.state is State.SUCCEEDED and not well:
            yield f"{job} succeeded with {codes}"
    earlier = [one.reason.code for one in row.attempts[:-1] if one.reason]
    if any(code in NEVER_AGAIN for code in earlier):
        yield f"{job} was tried again after {earlier}"


def _budget(row: Row) -> Iterable[str]:
    policy = row.job.spec.retry
    causes = [CAUSES.get(one.reason.code) for one in row.attempts[:-1] if one.reason]
    if any(cause not in policy.on for cause in causes):
        yield f"{row.job.id} was tried again after {causes}, and wants {policy.on}"
    if sum(cause not in FREE for cause in causes) > policy.limit:
        yield f"{row.job.id} was tried again {causes}, at most {policy.limit}"


def _capacity(world: World) -> Iterable[str]:
    held: Counter[str] = Counter()
    for row in world.disk.rows.values():
        latest: Attempt = row.attempts[-1]
        if latest.state in HOLDING:
            held.update(place.node for place in latest.placement)
    for offer in world.nodes:
        if held[offer.node] > offer.cpus:
            yield f"{held[offer.node]} of {offer.cpus} processors of {offer.node} are held"


def check_quiet(world: World) -> None:
    """Once nothing happens any more."""
    now = world.nodes_clock.now()
    for row in world.disk.rows.values():
        state = row.attempts[-1].state
        assert state in FINAL, f"{row.job.id} is {state} for ever"
        wanted = row.job.intent is Intent.STOP
        assert state is not State.CANCELLED or wanted or _limited(row), f"{row.job.id} cancelled"
    alive = [ref.name for ref in world.cluster.tasks if lives(world.cluster, ref, now)]
    assert not alive, f"{alive} still live"
    assert world.server.board.entries() == []
    assert world.server.board.held() == {}
    assert world.server.platform.records.swept() == []
    deleted = {row.job.id for row in world.disk.rows.values() if row.deleted}
    left = [ref.name for ref in world.cluster.tasks if ref.job_id in deleted]
    assert not left, f"{left} are left of deleted jobs"


def _limited(row: Row) -> bool:
    reason = row.attempts[-1].reason
    return reason is not None and reason.code is ReasonCode.TIME_LIMIT
