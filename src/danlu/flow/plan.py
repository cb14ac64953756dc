"""What one task of a job needs to run: the part that launch and a dry run share."""

from __future__ import annotations

from danlu.flow.platform import Platform
from danlu.model.attempt import Placement
from danlu.model.job import JobSpec
from danlu.model.resources import Gpu
from danlu.model.script import TaskPlan
from danlu.model.storage import StorageAccess
from danlu.model.verification import Verify
from danlu.ports.engine import Ref


def plan(
    platform: Platform,
    spec: JobSpec,
    ref: Ref,
    place: Placement,
    gpus: dict[str, Gpu],
    *,
    resumes_from: int = 0,
    storage: StorageAccess | None = None,
) -> TaskPlan:
    """What one task of a job needs to run. `resumes_from` is the instant (UTC ms) since when what
    lies in its outputs is the job's own; 0 for a first attempt, which starts afresh. `storage` is
    how its program reaches objects; None = it cannot.
    """
    return TaskPlan(
        job_id=ref.job_id,
        attempt=ref.attempt,
        index=ref.task,
        token=ref.token,
        job_name=spec.name,
        node_count=spec.node_count,
        hosts=("127.0.0.1",) * spec.node_count,
        code=spec.code,
        boot_file=spec.boot_file,
        command=spec.command,
        working_dir=spec.working_dir,
        local_code_dir=spec.local_code_dir,
        engine=spec.engine,
        image=spec.image,
        image_name=spec.image_name,
        packages=spec.packages,
        override_image=spec.override_image,
        verify=Verify.ALWAYS if spec.verify_image else platform.limits.verify_images,
        flavor=spec.flavor,
        parameters=spec.parameters,
        inputs=spec.inputs,
        outputs=spec.outputs,
        environments=spec.environments,
        gpus=tuple(gpus[uuid] for uuid in place.gpus if uuid in gpus),
        cpus=place.cpus,
        memory_bytes=place.memory_bytes,
        pids=spec.shape.pids,
        require_isolation=spec.require_isolation,
        grace_s=spec.grace_s,
        stop_signal=spec.stop_signal,
        time_limit_s=spec.time_limit_s,
        log_limit_bytes=spec.log_limit_bytes or platform.limits.log_bytes,
        log_url="" if spec.log_url is None else str(spec.log_url),
        api=platform.api,
        hang_after_s=_hang_after_s(platform, spec),
        log_rules=spec.log_rules,
        kind=spec.kind,
        volumes=spec.volumes,
        ssh=spec.ssh,
        resumes_from=resumes_from,
        storage=storage,
    )


def _hang_after_s(platform: Platform, spec: JobSpec) -> int:
    after_s = spec.hang.after_s
    return platform.limits.hang_after_s if after_s is None else after_s
