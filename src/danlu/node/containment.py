"""What holds one task: made before its program starts, taken down after its last process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from danlu.model.script import World
from danlu.model.url import LocalUrl
from danlu.node import cgroup, interpreter, landlock
from danlu.node.cgroup import CONTROLLERS, Group, Limits, NoGroup
from danlu.node.directory import TaskDirectory
from danlu.node.program import Program
from danlu.node.reach import Reach
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan


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

    def program(self, found: World, variables: Mapping[str, str]) -> Program:
        """The program as it will be started, with everything around it made."""
        self._make_group()
        Path(self._directory.file(files.TOLD)).mkdir(exist_ok=True)
        within, version = None, 0
        if self._plan.isolation.wanted:
            python = found.env.get("MA_SCRIPT_INTERPRETER", self._plan.layout.python)
            within = reach_of(self._directory, self._plan, python, variables)
            version = landlock.abi()
            if not version:
                self._directory.remark("files-unprotected")
            elif version < landlock.SCOPES_SINCE:
                self._directory.remark("signals-unprotected")
        return Program(found.argv, variables, found.cwd, self.group.entrances(), within, version)

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
        if missing:
            self._directory.remark("limits-unenforced", what=", ".join(missing))

    def remove(self) -> None:
        """Remove the control group. What cannot be removed yet is swept later."""
        self.group.remove()


def reach_of(
    directory: TaskDirectory, plan: AgentPlan, python: str, variables: Mapping[str, str]
) -> Reach:
    """The files of the machine that programs of one task may use; `python` runs them."""
    inputs = [channel.url.path for channel in plan.plan.inputs if isinstance(channel.url, LocalUrl)]
    return Reach(
        hidden=plan.isolation.hidden,
        readable=(
            *interpreter.needs(plan.layout.python, variables),
            *interpreter.needs(python, {}),
            directory.file(files.TOLD),
            *plan.isolation.readable,
        ),
        # An input of this machine is used where it lies, and was writable before it was one.
        writable=(directory.file(files.WORK), *inputs, *plan.isolation.writable),
    )
