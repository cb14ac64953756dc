"""What holds one task: made before its program starts, taken down after its last process."""

from __future__ import annotations

from danlu.node import cgroup
from danlu.node.cgroup import CONTROLLERS, Group, Limits, NoGroup
from danlu.node.directory import TaskDirectory
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan


def group_of(directory: TaskDirectory) -> Group:
    """The control group that was made for a task, as its directory tells."""
    return cgroup.described(directory.read(files.CGROUP))


class Containment:
    """One task's. Where the machine offers less, the task runs and its history says so."""

    def __init__(self, directory: TaskDirectory, plan: AgentPlan) -> None:
        self._directory = directory
        self.group = group_of(directory)
        self.limits = Limits(plan.plan.memory_bytes, plan.plan.cpus, plan.plan.pids)

    def make(self) -> None:
        """Make the control group."""
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
