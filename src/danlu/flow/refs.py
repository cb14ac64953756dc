"""The engine's names for a job's tasks, from the names that people use."""

from __future__ import annotations

from danlu.model.errors import Missing
from danlu.model.job import JobView, task_index
from danlu.ports.engine import Ref


def ref(view: JobView, task: str) -> Ref:
    """The engine's name of the task called `worker-N`; Missing if the job has none such."""
    index = task_index(task, view.job.spec.node_count)
    if index is None:
        names = ", ".join(f"worker-{i}" for i in range(min(view.job.spec.node_count, 20)))
        raise Missing("task-missing", job=view.job.id, task=task, tasks=names)
    key = view.attempt.key
    return Ref(key.job_id, key.number, index, key.token)
