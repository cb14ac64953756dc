"""The agent of a task whose program runs in a container: the shim's place is taken by a script in
the container (`entry.py`) and by the kernel, which keeps the container whatever becomes of us.

Podman or Docker is asked to make the container and to remove it, and for nothing in between: while
the program runs, the runtime's service may be killed and started as it likes.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from danlu.model.errors import Refused
from danlu.model.event import Level
from danlu.model.reason import ReasonCode
from danlu.model.script import World, world
from danlu.node import ending, exits, identity, places, requirements, seen, tree, verifying
from danlu.node.agent import MOST_STARTS, Agent, Stopped
from danlu.node.cgroup import CONTROLLERS, Limits
from danlu.node.container import hold, metadata, network, outfit
from danlu.node.container.api import Api, RuntimeAway, RuntimeRefused, part
from danlu.node.container.box import GID, UID, Box, Found, Shape
from danlu.node.container.doors import Doors, behind, open_doors
from danlu.node.container.entry import Entry
from danlu.node.container.hold import Held
from danlu.node.container.image import Facts, Images
from danlu.node.container.outfit import ENVIRONMENT, RUNTIME
from danlu.node.container.owner import give, show
from danlu.node.container.tap import Tap
from danlu.node.containment import literal
from danlu.node.directory import TaskDirectory, now_ms
from danlu.node.limits import LimitWatch
from danlu.node.log_files import LogWriter
from danlu.node.oom import OomWatch, count_in
from danlu.node.requirements import FILE
from danlu.node.shim import LEFTOVER_GRACE_S, Handle
from danlu.node.signals import SignalPipe
from danlu.node.stage import Stage, StageFailed
from danlu.node.supervise import Supervisor
from danlu.ports import task_directory as files
from danlu.ports.crash import crash_point
from danlu.ports.task_directory import (
    AgentPlan,
    ContainerPlan,
    ExitFile,
    ProcessIdentity,
    TaskFile,
)

T = TypeVar("T")

MOST_WAIT_S = 2.0
SETTLE_S = 10.0
"""So long a runtime may take to notice that a container has ended."""
LOOK_EVERY_S = 0.05


class ContainerAgent(Agent):
    """One agent in charge of one directory and its container."""

    def __init__(
        self,
        directory: TaskDirectory,
        plan: AgentPlan,
        signals: SignalPipe,
        watch: int,
        ready: Handle | None,
    ) -> None:
        super().__init__(directory, plan, signals, watch, ready)
        self._own = cast("ContainerPlan", plan.container)
        self._api = Api(self._own.socket)
        self._box = Box(self._api, self._own, plan.plan.token)
        self._entry = Entry(directory.file(files.BOX))
        self._facts = Facts("", "", "", home=False, sh=True)
        self._requirements: tuple[str, ...] = ()
        """What pip is to install, as lines of a file of requirements."""
        self._kept: dict[int, Path] = {}
        """Inputs, by number, that are used where they are kept for several tasks."""
        self._doors = Doors()
        self._limits = Limits(plan.plan.memory_bytes, plan.plan.cpus, plan.plan.pids)
        # Where the runtime hides it and the container is gone: the machine's own count.
        self._oom = OomWatch(lambda: count_in(Path("/proc/vmstat")))

    def _step(self) -> None:
        self._dismiss()
        task = cast("TaskFile | None", self._directory.read(files.TASK))
        if task is not None and identity.alive(task["shim"]):
            self._attend(task)
            return
        try:
            found = self._patiently(self._box.find, self._check if task is None else None)
        except Stopped:
            self._publish_exit(exits.stopped_before_start(self._directory))
            return
        if found is not None and found.token != self._plan.plan.token:
            detail = f"'{self._own.name}' exists and is not of this attempt"
            self._publish_exit(
                exits.unstarted(self._directory, ReasonCode.CONTAINER_FAILED, detail=detail)
            )
        elif task is not None:
            self._ended_unseen(found)
        else:
            # Whatever is there, no program has started in it: it had no leave to.
            self._begin_or_give_up()

    def _begin_or_give_up(self) -> None:
        before = self._before
        rebooted = before is not None and before["agent"]["boot_id"] != identity.boot_id()
        if rebooted or self._starts >= MOST_STARTS:
            self._conclude(ReasonCode.REBOOTED if rebooted else ReasonCode.AGENT_LOST)
        else:
            self._begin()

    def _patiently(self, ask: Callable[[], T], check: Callable[[], None] | None = None) -> T:
        """What `ask` gives, as soon as the runtime answers. That it does not proves nothing."""
        wait_s = LOOK_EVERY_S
        told = False
        while True:
            try:
                found = ask()
            except RuntimeAway as away:
                if not told and wait_s >= MOST_WAIT_S:
                    self._directory.note("runtime-away", Level.WARNING, detail=str(away))
                    told = True
            else:
                if told:
                    self._directory.note("runtime-back")
                return found
            if check is not None:
                check()
            time.sleep(wait_s)
            wait_s = min(MOST_WAIT_S, wait_s * 2)

    # a program to start

    def _prepare(self) -> World:
        self._patiently(self._box.remove, self._check)
        kept, probe = self._own.facts, f"{self._own.name}-look"
        images = Images(self._api, self._directory, self._check)
        facts = self._patiently(lambda: images.facts(self._own.image, kept, probe), self._check)
        self._facts = facts
        for there, what in ((facts.sh, "/bin/sh"), (facts.python, "python, python3")):
            if not there and (what == "/bin/sh" or self._plan.plan.boot_file):
                detail = f"it has no {what}"
                raise StageFailed(ReasonCode.IMAGE_FAILED, image=self._own.image, detail=detail)
        stage = Stage(
            self._directory,
            self._plan,
            self._check,
            mounts=True,
            shares=True,
            own=give,
            install=None,
        )
        staged = stage.run()
        self._kept = stage.kept
        for shared in stage.kept.values():
            show(shared)
        layout = literal(
            replace(
                self._plan.layout,
                python=facts.python,
                path=facts.path,
                runtime=RUNTIME if self._plan.layout.runtime else "",
            )
        )
        wanted = Path(staged.code_dir, FILE)
        given = self._plan.plan.code is not None and wanted.is_file()
        place = world(self._plan.plan, layout).code_dir
        self._requirements = (*([f"-r {place}/{FILE}"] if given else ()), *self._plan.plan.packages)
        if self._requirements:
            path = f"{ENVIRONMENT}/bin:{layout.path}"
            layout = replace(layout, python=f"{ENVIRONMENT}/bin/python", path=path)
        return world(self._plan.plan, layout)

    def _start(self, found: World) -> None:
        try:
            self._make(found)
            there = self._patiently(self._box.find, self._check)
        except (RuntimeRefused, Refused, Stopped, StageFailed) as stopped:
            with suppress(RuntimeRefused, RuntimeAway):
                self._box.remove()
            self._publish_exit(self._unstarted(stopped))
            return
        init = identity.of(there.pid) if there is not None and there.pid else None
        if init is not None:
            self._let_go(init)
        # Otherwise it has ended already, and had no leave to start anything: begin again.

    def _unstarted(self, why: Exception) -> ExitFile:
        if isinstance(why, Stopped):
            return exits.stopped_before_start(self._directory)
        if isinstance(why, StageFailed):
            return exits.unstarted(self._directory, why.problem, **why.detail)
        return exits.unstarted(self._directory, ReasonCode.CONTAINER_FAILED, detail=str(why))

    def _make(self, found: World) -> None:
        box = Path(self._directory.file(files.BOX))
        places.remove_tree(box)
        box.mkdir()
        self._entry.make(UID, GID)
        if self._requirements:
            self._entry.installs(
                self._facts.python, self._requirements, found.code_dir, ENVIRONMENT
            )
        told = Path(self._directory.file(files.TOLD))
        told.mkdir(exist_ok=True)
        told.chmod(0o755)
        plan = self._plan.plan
        shape = Shape(
            plan.memory_bytes,
            plan.cpus,
            plan.pids,
            [gpu.uuid for gpu in plan.gpus],
            outfit.mounts(
                self._directory, self._plan, found, self._kept, own_home=self._facts.home
            ),
            read_only=not self._facts.home,
        )
        env = outfit.variables(self._plan, found)
        found = replace(
            found, argv=verifying.order(self._directory, self._plan, found.argv, found.env)
        )
        crash_point("container.staged", self._directory.path)
        if self._own.network and plan.node_count == 1:
            named = (self._api, self._own.network, self._own.facts)
            self._patiently(lambda: network.make(*named), self._check)
        self._patiently(lambda: self._box.make(self._facts.id, found, env, shape), self._check)
        self._entry.open()
        self._patiently(self._box.start, self._check)
        crash_point("container.ordered", self._directory.path)

    def _let_go(self, init: ProcessIdentity) -> None:
        """Wait until the script says what is there, look at what holds it, and let it go on."""
        began = time.monotonic()
        if self._requirements:
            self._directory.note("requirements-installing")
        while (ready := self._entry.ready()) is None:
            stopped = self._directory.exists(files.STOP)
            if stopped or not identity.alive(init):
                self._end(init)
                if stopped:
                    self._publish_exit(exits.stopped_before_start(self._directory))
                return
            self._entry.rings(LOOK_EVERY_S)
            self._entry.quiet()
        if self._requirements:
            self._keep_printed()
        refused = self._refusal(*ready, init)
        if refused is not None:
            self._end(init)
            self._publish_exit(refused)
            return
        if self._requirements:
            took_s = f"{time.monotonic() - began:.1f}"
            self._directory.note("requirements-installed", took_s=took_s)
        record: TaskFile = {
            "token": self._directory.token,
            "shim": init,
            "program": init,
            "started_at": now_ms(),
            "began_s": ending.boot_clock(),
        }
        self._directory.publish(files.TASK, record)
        crash_point("container.recorded", self._directory.path)
        self._open_doors(init)
        self._entry.go()
        self._directory.reserve(files.EXIT)
        self._directory.note("task-started", pid=init["pid"])
        crash_point("container.started", self._directory.path)
        own = [f"{ENVIRONMENT}/bin/python"] if self._requirements else []
        inside = seen.Inside(f"/proc/{init['pid']}/root")
        on = seen.seen(self._plan.plan, [*own, self._facts.python], tree=inside)
        if on:
            self._directory.remark("task-runs-on", what=seen.sentence(on), **on)

    def _refusal(self, gpus: int, missing: str, init: ProcessIdentity) -> ExitFile | None:
        """The exit record of a program that may not start; None if it may."""
        plan = self._plan.plan
        world_of = world(plan, literal(self._plan.layout))
        if missing == "requirements":
            detail = requirements.last_lines(self._entry.installed()) or "pip failed"
            return exits.unstarted(self._directory, ReasonCode.REQUIREMENTS_FAILED, detail=detail)
        if missing:
            what = world_of.cwd if missing == "directory" else world_of.argv[0]
            detail = f"'{what}' is not in the image '{self._own.image}'"
            return exits.unstarted(self._directory, ReasonCode.BOOT_FAILED, 127, detail=detail)
        if gpus != len(plan.gpus):
            return exits.unstarted(
                self._directory,
                ReasonCode.GPUS_MISSING,
                task=plan.task_name,
                found=gpus,
                wanted=len(plan.gpus),
            )
        without = self._unheld(init)
        if without and plan.require_isolation:
            return exits.unstarted(
                self._directory, ReasonCode.NOT_ISOLATED, missing=", ".join(without)
            )
        return None

    def _unheld(self, init: ProcessIdentity) -> list[str]:
        """What the container goes without of what was asked for; its history says so."""
        wanted = {
            "memory": self._limits.memory_bytes,
            "cpu": self._limits.cpus,
            "pids": self._limits.pids,
        }
        held = Held(init).make(self._limits)
        limits = [name for name in CONTROLLERS if wanted[name] and name not in held]
        profile = hold.unheld(init["pid"])
        problem = metadata.close(init["pid"], rootless=self._own.rootless)
        if problem:
            profile.append(f"metadata ({problem})")
        problem = metadata.close_machine(init["pid"], self._served(), rootless=self._own.rootless)
        if problem:
            profile.append(f"host ({problem})")
        if limits:
            self._directory.remark("limits-unenforced", what=", ".join(limits))
        if profile:
            self._directory.remark("profile-missing", Level.WARNING, what=", ".join(profile))
        return [*limits, *profile]

    def _keep_printed(self) -> None:
        log = LogWriter(self._directory.path, self._directory.log_limit_bytes)
        log.write(self._entry.installed())
        log.close()

    def _open_doors(self, init: ProcessIdentity) -> None:
        """Let the container reach the server's storage and API where they are on loopback."""
        addresses = behind(self._served())
        self._doors = open_doors(init["pid"], addresses, rootless=self._own.rootless)
        if self._doors.problem:
            detail = self._doors.problem
            self._directory.remark("doors-closed", Level.WARNING, detail=detail)

    def _served(self) -> list[str]:
        """What of this machine is for the program: the server's API and its storage."""
        plan = self._plan.plan
        return [plan.api, plan.storage.endpoint if plan.storage is not None else ""]

    def _end(self, init: ProcessIdentity) -> None:
        identity.send(init, signal.SIGKILL)
        with suppress(RuntimeRefused, RuntimeAway):
            self._box.remove()

    # a program that runs, or ran

    def _attend(self, task: TaskFile) -> None:
        """Be beside the program until it has ended, and write down how."""
        init = task["shim"]
        if self._entry.log < 0:
            self._entry.open()
        if not self._doors.pid:
            self._open_doors(init)
        # An agent before this one may have died before it let the program start.
        self._entry.go()
        held = Held(init)
        limits = LimitWatch(self._directory, held, self._limits)
        log = LogWriter(self._directory.path, self._directory.log_limit_bytes)

        def look() -> None:
            limits.look_again()
            self._oom.look()

        tap = Tap(self._entry.log, log, look)
        tap.start()
        try:
            with verifying.Watch(self._directory, self._plan):
                ContainerSupervisor(
                    self._directory, self._plan, init, self._signals, held, self._entry
                ).run()
            ended_at = now_ms()
            code = self._entry.ended()
            leftovers = 0 if code is None else self._see_off(init)
        finally:
            tap.stop()
        if code is None:
            # Its first process was killed, and everybody with it.
            held.oom_kills()
            self._ended_unseen(self._settled(), limits)
            return
        record = exits.of_code(self._directory, code, ended_at)
        limits.weigh(record)
        if leftovers and not self._directory.exists(files.NOTICE):
            record["detail"]["leftovers"] = leftovers
        self._conclude_with(record, tap)

    def _conclude_with(self, record: ExitFile, tap: Tap | None = None) -> None:
        exits.explain(record, self._directory)
        if tap is not None:
            if tap.pump.dropped_bytes:
                record["detail"]["log_dropped_bytes"] = tap.pump.dropped_bytes
            try:
                tap.pump.sync()
            except OSError:
                record["detail"]["log_damaged"] = 1
        crash_point("container.before-exit", self._directory.path)
        self._publish_exit(record)
        crash_point("container.after-exit", self._directory.path)

    def _see_off(self, init: ProcessIdentity) -> int:
        """Wait for what the program left running, as long as it may; how many are still there."""
        own_end = time.monotonic() + LEFTOVER_GRACE_S
        while left := tree.descendants({init["pid"]}) if identity.alive(init) else []:
            notice = ending.notice(self._directory)
            until = own_end
            if notice is not None:
                until = time.monotonic() + notice["deadline_boot_s"] - ending.boot_clock()
            if time.monotonic() >= until:
                tree.kill_all(lambda: tree.descendants({init["pid"]}), LEFTOVER_GRACE_S)
                return len(left)
            time.sleep(LOOK_EVERY_S)
        return 0

    def _settled(self) -> Found | None:
        """What the runtime says once it has noticed that the container has ended."""
        until = time.monotonic() + SETTLE_S
        while True:
            found = self._patiently(self._box.find)
            if found is None or not found.running or time.monotonic() > until:
                return found
            time.sleep(LOOK_EVERY_S)

    def _ended_unseen(self, found: Found | None, limits: LimitWatch | None = None) -> None:
        """The container has ended and its script did not say how: it was killed as a whole, by
        whomever, or the machine was restarted.
        """
        before = self._before
        code = self._entry.ended()
        if code is not None:
            self._conclude_with(exits.of_code(self._directory, code, now_ms()))
        elif before is not None and before["agent"]["boot_id"] != identity.boot_id():
            self._conclude(ReasonCode.REBOOTED)
        elif found is None or found.running or found.unstarted:
            self._conclude(ReasonCode.AGENT_LOST)
        else:
            record = exits.of_code(self._directory, found.exit_code, now_ms())
            if limits is not None:
                limits.weigh(record)
            if not self._directory.exists(files.NOTICE) and not record["out_of_memory"]:
                # Runtimes differ in whether they see it; the kernel's own count does not.
                by_memory = self._oom.explains(killed=True, failed=True)
                record["out_of_memory"] = found.out_of_memory or by_memory
                if not record["out_of_memory"]:
                    # The first process cannot be killed from inside: somebody else has ended it.
                    record["problem"] = str(ReasonCode.AGENT_LOST)
            self._conclude_with(record)

    def _conclude(self, problem: ReasonCode) -> None:
        record = exits.lost(self._directory, problem)
        self._conclude_with(record)

    def _take_down(self) -> None:
        self._doors.close()
        self._entry.close()
        task = cast("TaskFile | None", self._directory.read(files.TASK))
        if task is not None:
            identity.send(task["shim"], signal.SIGKILL)
        # The engine removes both with the task at the latest.
        with suppress(RuntimeRefused, RuntimeAway):
            self._box.remove()
            if self._own.network and self._plan.plan.node_count == 1:
                self._api.call("DELETE", f"/networks/{part(self._own.network)}")


class ContainerSupervisor(Supervisor):
    """Watches a container: its first process lives on when the program has ended."""

    def __init__(
        self,
        directory: TaskDirectory,
        plan: AgentPlan,
        init: ProcessIdentity,
        signals: SignalPipe,
        held: Held,
        entry: Entry,
    ) -> None:
        super().__init__(directory, plan, init, signals, None, held, told=entry.bell)
        self._entry = entry

    def _over(self) -> bool:
        self._entry.quiet()
        return self._entry.ended() is not None

    def _terminate(self) -> bool:
        with suppress(OSError):  # the program is another user, who may read it too
            Path(self._directory.file(files.NOTICE)).chmod(0o644)
        return super()._terminate()
