"""The fields of a ModelArts training job, as its official clients name them.

Every field of the SDK's models (huaweicloudsdkmodelarts 3.1.206 and 3.1.219, `v1/model/job.py`
and below, and the reply's `job_response.py`) and of the documentation stands here: supported,
refused by name, or of replies only. What a reply holds is taken in a request, because clients
copy a job by sending its details back.
"""

from __future__ import annotations

from typing import Any

from danlu.model import limits
from danlu.model.job import STOP_SIGNALS
from danlu.wire import modelarts_training_retry as retry
from danlu.wire.body import INT64
from danlu.wire.shape import (
    ABSENT,
    Flag,
    Listing,
    Mapped,
    ReplyOnly,
    Schema,
    Shape,
    Text,
    Unsupported,
    Whole,
    wrong_kind,
)

REPLY = ReplyOnly()
FOR_PEOPLE = ReplyOnly("A text for people; taken and not kept.")
URL = Text(
    about="obs://bucket/key/, s3://bucket/key/, /bucket/key/ or file:///path",
    pattern="(obs://|s3://|/|file:///).+",
)
PATH = Text(about="below /home/ma-user or /cache", pattern="(|(/home/ma-user|/cache)(/.*)?)")

FOREIGN_ANNOTATIONS = {
    "fault-tolerance/pod-retry-num": "all tasks begin again together: send job-retry-num",
    "fault-tolerance/hccl_op_retry": "there are no Ascend devices here",
    "jupyter-lab/enable": "run a notebook of your own instead",
    "tensorboard/enable": "write the event files to an output and open them with TensorBoard",
    "mindstudio-insight/enable": "there are no Ascend devices here",
    "performance_diagnosis_enabled": "look at the job's metrics instead",
    "record/code-dir": "the code directory is kept where you uploaded it",
}
"""Annotations with a meaning that we cannot give yet, and what to do instead."""


class Environments:
    """ModelArts' environments: an object, as create takes it, or a list of one, as the SDK's
    reply model has it.
    """

    _of = Mapped(Text())

    def read(self, value: Any, at: str) -> Any:
        """The variables by name."""
        if type(value) is list:
            if len(value) > 1:
                raise wrong_kind(value, at, "an object, or a list of one object")
            return self._of.read(value[0], at) if value else ABSENT
        return self._of.read(value, at)

    def schema(self) -> Schema:
        """An object, or a list of at most one."""
        of = self._of.schema()
        return {"anyOf": [of, {"type": "array", "items": {**of, "type": "object"}, "maxItems": 1}]}


PARAMETER = Shape(
    {
        "name": Text(),
        "value": Text(),
        "description": FOR_PEOPLE,
        "i18n_description": FOR_PEOPLE,
        "constraint": Shape(
            {
                "type": ReplyOnly("How consoles edit the value; the script is given a string."),
                "editable": ReplyOnly("Whether consoles let the value be edited."),
                "required": ReplyOnly("Whether consoles ask for the value."),
                "sensitive": Unsupported("pass secrets in a file of an input"),
                "valid_type": Unsupported("check the value before you send it", ("None", "none")),
                "valid_range": Unsupported("check the value before you send it"),
            }
        ),
    },
    required=("name", "value"),
    remedy={"name": "every parameter has a name", "value": "send an empty string for no value"},
)

OBS = Shape({"obs_url": URL}, required=("obs_url",), remedy={"obs_url": "say where the data lies"})

INPUT = Shape(
    {
        "name": Text(),
        "description": FOR_PEOPLE,
        "local_dir": PATH,
        "access_method": Text(("parameter", "env")),
        "remote": Shape(
            {"obs": OBS, "dataset": Unsupported("give the data's path as remote.obs.obs_url")}
        ),
        "remote_constraint": Unsupported("leave it out"),
    },
    required=("name",),
    remedy={"name": "every channel has a name"},
)

OUTPUT = Shape(
    {
        "name": Text(),
        "description": FOR_PEOPLE,
        "local_dir": PATH,
        "access_method": Text(("parameter", "env")),
        "remote": Shape({"obs": OBS}),
        "prefetch_to_local": Flag("fetch what is stored there before the script starts"),
        "mode": Unsupported(
            "outputs are stored during the run and at its end", ("upload_periodically",)
        ),
        "period": Unsupported("outputs are stored during the run as they grow", ("30", 30)),
    },
    required=("name",),
    remedy={"name": "every channel has a name"},
)

ENGINE = Shape(
    {
        "engine_id": Text(about="one of training-job-engines; none = the server's default"),
        "engine_name": Text(),
        "engine_version": Text(),
        "image_url": Text(about="an image of this server: its name or id"),
        "install_sys_packages": Unsupported("moxing is not installed; use the injected paths"),
        "image_repo_id": Unsupported("leave it out"),
        "run_user": Unsupported("jobs run as the platform's user", ("1000", 1000)),
        "v1_compatible": Unsupported("leave it out"),
        "image_info": REPLY,
    }
)

ALGORITHM = Shape(
    {
        "id": Unsupported("give code_dir and boot_file, or command"),
        "name": ReplyOnly("ModelArts documents it as not to be filled in."),
        "subscription_id": Unsupported("give code_dir and boot_file, or command"),
        "item_version_id": Unsupported("give code_dir and boot_file, or command"),
        "code_dir": Text(about="obs://bucket/key/, s3://bucket/key/ or /bucket/key/"),
        "boot_file": Text(about="full path below code_dir, or relative to it"),
        "command": Text(about="a shell line; injected arguments are appended to its end"),
        "autosearch_config_path": Unsupported("leave it out"),
        "autosearch_framework_path": Unsupported("leave it out"),
        "parameters": Listing(PARAMETER),
        "policies": Unsupported("there is no automatic search; submit one job a setting"),
        "inputs": Listing(INPUT),
        "outputs": Listing(OUTPUT),
        "engine": ENGINE,
        "local_code_dir": PATH,
        "working_dir": PATH,
        "environments": Environments(),
        "summary": Unsupported("write event files to an output and open them with TensorBoard"),
    }
)

RESOURCE = Shape(
    {
        "flavor_id": Text(about="one of training-job-flavors; none = the server's default"),
        "node_count": Whole(1, limits.NODES),
        "pool_id": Unsupported("there are no dedicated pools; leave it out"),
        "pool_group_id": Unsupported("there are no pool groups; leave it out"),
        "main_container_customized_flavor": Unsupported("choose a flavor"),
        "policy": Unsupported("leave it out", ("regular",)),
        "flavor_name": REPLY,
        "flavor_detail": REPLY,
        "pool_name": REPLY,
        "pool_info": REPLY,
        "main_container_allocated_resources": REPLY,
    }
)

SPEC = Shape(
    {
        "resource": RESOURCE,
        "volumes": Unsupported("pass data as an input"),
        "log_export_path": Shape(
            {"obs_url": URL, "host_path": Unsupported("use log_export_path.obs_url")}
        ),
        "log_export_config": Shape(
            {
                "version": Unsupported("leave it out", ("v0",)),
                "rotation_enabled": Unsupported("leave it out"),
            }
        ),
        "auto_stop": Shape(
            {"time_unit": Text(("HOURS",)), "duration": Whole(1, limits.TIME_LIMIT_S // 3600)},
            required=("duration",),
            remedy={"duration": "say after how many hours the job is stopped"},
        ),
        "retention": Shape(
            {"policy": Unsupported("delete jobs that you no longer need", ("disabled",))}
        ),
        "schedule_policy": Shape(
            {
                "priority": Whole(1, 3, "1 = normal … 3 = first"),
                "preemptible": Unsupported("running jobs are never preempted"),
                "required_affinity": Unsupported("leave it out"),
                "preferred_affinity": Unsupported("leave it out"),
            }
        ),
        "notification": Unsupported("wait for the job with danlu logs -f, or poll it"),
        "custom_metrics": Unsupported("print what you measure, or write it to an output"),
        "output_model": Unsupported("use an output"),
        "asset_model": Unsupported("use an output"),
        "asset_id": Unsupported("leave it out"),
        "reserved_time": Unsupported("what a job wrote is kept in its outputs"),
        "runtime_type": Unsupported("leave it out"),
    }
)

METADATA = Shape(
    {
        "name": Text(about="1 to 64 letters, digits, '_' and '-'", pattern="[A-Za-z0-9_-]{1,64}"),
        "workspace_id": Unsupported("a project is one workspace here: send 0", ("0",)),
        "description": Text(about="at most 256 characters"),
        "annotations": Mapped(Text()),
        "training_experiment_reference": Unsupported("put the experiment's name into the job's"),
        "id": REPLY,
        "uuid": REPLY,
        "create_time": REPLY,
        "update_time": REPLY,
        "user_name": REPLY,
        "project_id": REPLY,
        "ai_project": REPLY,
    },
    required=("name",),
    remedy={"name": "give it 1 to 64 characters"},
)

EXTRAS = Shape(
    {
        "grace_s": Whole(0, limits.GRACE_S, "seconds between SIGTERM and SIGKILL"),
        "stop_signal": Text(STOP_SIGNALS, "what is sent instead of SIGTERM"),
        "time_limit_s": Whole(1, limits.TIME_LIMIT_S, "as spec.auto_stop, in seconds"),
        **retry.FIELDS,
        "require_isolation": Flag("refuse the job where it cannot be isolated in full"),
        "log_limit_mib": Whole(1, limits.LOG_MIB, "MiB kept of each task's log: head and tail"),
        "ssh": Flag("let the user in over SSH while it runs, with every key of the profile"),
        "packages": Listing(Text(), 100, "packages beside pip-requirements.txt: einops>=0.8"),
        "override_image": Flag("let packages replace torch and what follows from it in the image"),
        "verify_image": Flag("check the image before the program though it was checked already"),
    },
    about="What Danlu has beyond ModelArts' fields.",
)

JOB = Shape(
    {
        "kind": Unsupported("only training jobs run here: send job", ("job",)),
        "metadata": METADATA,
        "algorithm": ALGORITHM,
        "spec": SPEC,
        "tasks": Unsupported("all tasks of a job run the same algorithm; use spec"),
        "endpoints": Shape(
            {
                "ssh": Shape(
                    {
                        "key_pair_names": Listing(
                            Text(), 20, "whoever holds one of these keys of the user's profile"
                        ),
                        "task_urls": REPLY,
                    }
                ),
                "jupyter_lab": Unsupported("run a notebook of your own instead"),
                "tensorboard": Unsupported("write the event files to an output and open them"),
                "mindstudio_insight": Unsupported("there are no Ascend devices here"),
            }
        ),
        "train_type": Unsupported("leave it out", ("job",)),
        "ftjob_config": Unsupported("leave it out"),
        "tags": Unsupported("put what you search for into the job's name or description"),
        "status": REPLY,
        "danlu": EXTRAS,
    },
    required=("metadata", "algorithm"),
    remedy={"metadata": "it holds the job's name", "algorithm": "it says what the job runs"},
)

UPDATE = Shape(
    {
        "description": Text(about="at most 256 characters"),
        "spec": Unsupported("only the description can change"),
        "endpoints": Unsupported("only the description can change"),
        "metadata": Unsupported("only the description can change"),
    },
    required=("description",),
    remedy={"description": "it is what this call changes"},
)

ACTION = Shape(
    {"action_type": Text(("terminate",))},
    required=("action_type",),
    remedy={"action_type": "send terminate"},
)

FILTER = Shape(
    {
        "key": Text(),
        "operator": Text(("between", "like", "in", "not")),
        "value": Listing(Text(), most=100),
    },
    required=("key", "operator", "value"),
)

SEARCH = Shape(
    {
        "offset": Whole(0, INT64 // 50 - 1, "the number of the page, from 0"),
        "limit": Whole(1, 50, "jobs on a page"),
        "sort_by": Text(),
        "order": Text(("asc", "desc")),
        "group_by": Unsupported("group what you get"),
        "workspace_id": Unsupported("a project is one workspace here: send 0", ("0",)),
        "train_type": Unsupported("there are only training jobs", ("job",)),
        "tags": Unsupported("jobs have no tags; filter by name"),
        "host_ips": Unsupported("filter by name"),
        "filters": Listing(FILTER, most=20),
    }
)
