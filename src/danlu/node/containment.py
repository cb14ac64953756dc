"""What holds one task: made before its program starts, taken down after its last process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from danlu.model.script import LITERAL_CACHE, LITERAL_HOME, Layout, World, world
from danlu.model.url import LocalUrl
from danlu.node import (
    cgroup,
    devices,
    ending,
    given,
    interpreter,
    landlock,
    layer,
    namespaces,
    view,
)
from danlu.node.cgroup import CONTROLLERS, Group, Limits, NoGroup
from danlu.node.directory import TaskDirectory
from danlu.node.program import Program
from danlu.node.reach import Reach
from danlu.node.view import View
from danlu.node.volumes import volume_of
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan

LITERAL_TEMP = "/tmp"  # noqa: S108 -- the task's own, in its view


def group_of(directory: TaskDirectory) -> Group:
    """The control group that was made for a task, as its directory tells."""
    return cgroup.described(directory.read(files.CGROUP))


class Containment:
    """One task's. Where the machine offers less, the task runs and its history says so."""

    def __init__(self, directory: TaskDirectory, plan: AgentPlan) -> None:
        self._directory = directory
        self._plan = plan
        self.group = group_of(directory)
        self.limits = Limits(plan.plan.memory_bytes, plan.plan.cpus, plan.plan.pids)
        self.missing: list[str] = []
        """What of `ports.engine.ISOLATION` the program goes without."""
        self.kept: dict[int, Path] = {}
        """Inputs, by number, that the program is to see where they are kept for several tasks."""
        self.apart = ""
        """Who makes the program's namespaces (`namespaces.Offer`); empty = it has none."""

    def program(self, found: World) -> Program:
        """The program as it will be started, with everything around it made. `found` is the
        program's world as it was staged.
        """
        self._make_group()
        if self._plan.plan.gpus:
            devices.make_ready()
        for name in (files.TOLD, files.VIEW):
            Path(self._directory.file(name)).mkdir(exist_ok=True)
        python = found.env["MA_SCRIPT_INTERPRETER"]
        layout = replace(self._plan.layout, python=python, path=found.env["PATH"])
        if not self.apart:
            self._say_where(layout)
            self.missing.append("namespaces")
        if not self._plan.isolation.wanted:
            self.missing.append("landlock")
            return self._program(found)
        within = reach_of(self._directory, self._plan)
        if self._plan.plan.listens:
            within = replace(within, logins=True)
        if python != self._plan.layout.python:
            needed = interpreter.needs(python, {})
            within = replace(within, readable=(*within.readable, *needed))
        version = self._landlock()
        if not self.apart:
            return replace(self._program(found), within=within, landlock=version)
        found = world(self._plan.plan, literal(layout))
        own = self._directory.file(files.WORK)
        view = self._view(layout, found)
        volumes = [volume_of(self._plan, volume) for volume in self._plan.plan.volumes]
        writable = [path for path in within.writable if path not in (own, *volumes)]
        writable += layer.places(python, own)
        within = replace(within, writable=(LITERAL_HOME, LITERAL_CACHE, *writable), private=True)
        return replace(self._program(found), within=within, landlock=version, view=view)

    def remove(self) -> None:
        """Remove the control group. What cannot be removed yet is swept later."""
        self.group.remove()

    def _program(self, found: World) -> Program:
        name, _, value = ending.marker(self._directory.path).partition("=")
        variables = {**self._plan.environment, **found.env, name: value}
        if self._plan.plan.storage is not None:
            variables = self._plan.plan.storage.past_proxies(variables)
        if self.apart and self._plan.plan.node_count > 1:
            # Tasks of one machine share neither memory nor sockets; NCCL is to use the network.
            plan = self._plan.plan
            variables.setdefault("NCCL_HOSTID", f"{plan.job_id}-{plan.attempt}-{plan.index}")
        return Program(found.argv, variables, found.cwd, self.group.entrances())

    def _view(self, layout: Layout, found: World) -> View:
        own = self._directory.file(files.WORK)
        root = self._directory.file(files.VIEW)
        places = [
            (real, place if Path(real).is_dir() else f"{place}/{url.name}")
            for channel, place in zip(self._plan.plan.inputs, found.inputs, strict=True)
            if isinstance(url := channel.url, LocalUrl)
            and (real := given.real_path(url, self._plan.isolation))
        ]
        kept = [
            (str(tree), found.inputs[index], self._upper(index))
            for index, tree in self.kept.items()
        ]
        places += [
            (volume_of(self._plan, volume), volume.path) for volume in self._plan.plan.volumes
        ]
        shm_bytes = self.limits.memory_bytes
        environment = layer.prepare(layout.python, own)
        return View(
            *(root, layout.home, layout.cache, f"{own}/temp"),
            *(tuple(places), shm_bytes, tuple(kept), environment),
        )

    def _upper(self, index: int) -> str:
        """Where what the program changes of a data set goes."""
        upper = Path(self._directory.file(files.WORK), "changes", str(index))
        for name in ("upper", "work"):
            (upper / name).mkdir(parents=True, exist_ok=True)
        return str(upper)

    def _make_group(self) -> None:
        self.group = cgroup.named(self._directory.path)
        # On record before it is there: whoever finds none on record finds none at all.
        self._directory.publish_fleeting(files.CGROUP, self.group.described())
        try:
            held = self.group.make(self.limits)
        except OSError:
            self.group.remove()
            self.group = NoGroup()
            held = frozenset()
        missing = [name for name in CONTROLLERS if name not in held]
        self.missing.extend(missing)
        if missing:
            self._directory.remark("limits-unenforced", what=", ".join(missing))

    def _landlock(self) -> int:
        version = landlock.abi()
        if not version:
            self.missing.append("landlock")
            self._directory.remark("files-unprotected")
        elif version < landlock.SCOPES_SINCE and not self.apart:
            self._directory.remark("signals-unprotected")
        return version

    def set_apart(self) -> bool:
        """Decide whether the program has namespaces of its own."""
        if not (self._plan.isolation.wanted and self._plan.isolation.namespaces):
            return False
        offer = namespaces.offered()
        within = reach_of(self._directory, self._plan)
        if not offer.kind:
            self._directory.remark("namespaces-missing", detail=offer.problem)
        elif not view.possible(within.readable):
            self._directory.remark("view-in-the-way", literal=f"{LITERAL_HOME}, {LITERAL_CACHE}")
        else:
            self.apart = offer.kind
        return bool(self.apart)

    def _say_where(self, layout: Layout) -> None:
        self._directory.remark(
            "paths-mapped",
            literal=f"{LITERAL_HOME}, {LITERAL_CACHE}",
            real=f"{layout.home}, {layout.cache}",
        )


def literal(layout: Layout) -> Layout:
    """The layout as a task sees it that has a view of its own."""
    return replace(layout, home=LITERAL_HOME, cache=LITERAL_CACHE, temp=LITERAL_TEMP)


def reach_of(directory: TaskDirectory, plan: AgentPlan) -> Reach:
    """The files of the machine that programs of one task may use. The job's own variables have no
    say in it: whoever may submit could name any place in them.
    """
    inputs = [
        given.real_path(channel.url, plan.isolation)
        for channel in plan.plan.inputs
        if isinstance(channel.url, LocalUrl)
    ]
    return Reach(
        hidden=plan.isolation.hidden,
        readable=(
            *interpreter.needs(plan.layout.python, plan.environment),
            directory.file(files.TOLD),
            *filter(None, [plan.layout.runtime]),
            *plan.isolation.readable,
        ),
        writable=(
            directory.file(files.WORK),
            *plan.isolation.writable,
            *(volume_of(plan, volume) for volume in plan.plan.volumes),
        ),
        # An input of this machine is used where it lies, and was writable before it was one.
        given=tuple(filter(None, inputs)),
    )
