"""ModelArts' requests about training jobs, read into the model's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from danlu.model import limits
from danlu.model.attempt import State
from danlu.model.errors import Invalid
from danlu.model.job import STOP_SIGNALS, Access, EngineChoice, Input, JobSpec, Output, Parameter
from danlu.model.resources import Shape as ResourceShape
from danlu.model.rules import at_most, printable
from danlu.model.url import LocalUrl, ObjectUrl, Url, parse
from danlu.wire import modelarts_training_retry as retry
from danlu.wire.modelarts_training_fields import (
    ACTION,
    FOREIGN_ANNOTATIONS,
    JOB,
    SEARCH,
    UPDATE,
)
from danlu.wire.modelarts_training_reply import MODELARTS_PHASES, PHASES

HOUR_S = 3600
DEFAULT_GRACE_S = 30


def job_spec(body: Mapping[str, Any]) -> JobSpec:
    """What a create body asks for. Its shape is empty: the flavor decides that at submit.

    Raises Invalid naming the first field that is wrong, unknown or not supported.
    """
    read = JOB.read(body)
    metadata, algorithm = read["metadata"], read["algorithm"]
    spec, extras = read.get("spec", {}), read.get("danlu", {})
    key_pairs = tuple(read.get("endpoints", {}).get("ssh", {}).get("key_pair_names", ()))
    resource = spec.get("resource", {})
    code = _code(algorithm.get("code_dir", ""))
    log = spec.get("log_export_path", {}).get("obs_url")
    return JobSpec(
        name=metadata["name"],
        flavor=resource.get("flavor_id", ""),
        shape=ResourceShape(0, 0),
        node_count=resource.get("node_count", 1),
        description=metadata.get("description", ""),
        annotations=_annotations(metadata.get("annotations", {})),
        engine=EngineChoice(**_engine(algorithm.get("engine", {}))),
        code=code,
        boot_file=_boot_file(algorithm.get("boot_file", ""), code, algorithm.get("code_dir", "")),
        command=algorithm.get("command", ""),
        working_dir=algorithm.get("working_dir", ""),
        local_code_dir=algorithm.get("local_code_dir", ""),
        parameters=tuple(
            Parameter(item["name"], item["value"]) for item in algorithm.get("parameters", ())
        ),
        inputs=tuple(
            _input(f"algorithm.inputs[{index}]", item)
            for index, item in enumerate(algorithm.get("inputs", ()))
        ),
        outputs=tuple(
            _output(f"algorithm.outputs[{index}]", item)
            for index, item in enumerate(algorithm.get("outputs", ()))
        ),
        environments=algorithm.get("environments", {}),
        priority=spec.get("schedule_policy", {}).get("priority", 1),
        time_limit_s=_time_limit(spec.get("auto_stop"), extras.get("time_limit_s")),
        grace_s=extras.get("grace_s", DEFAULT_GRACE_S),
        stop_signal=extras.get("stop_signal", STOP_SIGNALS[0]),
        require_isolation=extras.get("require_isolation", False),
        log_limit_bytes=_mebibytes(extras.get("log_limit_mib")),
        packages=tuple(extras.get("packages", ())),
        override_image=extras.get("override_image", False),
        verify_image=extras.get("verify_image", False),
        retry=retry.policy(metadata.get("annotations", {}), extras),
        log_rules=retry.log_rules(extras),
        hang=retry.hang(metadata.get("annotations", {}), extras),
        log_url=parse(log, "spec.log_export_path.obs_url") if log else None,
        ssh=bool(key_pairs) or extras.get("ssh", False),
        key_pairs=key_pairs,
    )


def _mebibytes(count: int | None) -> int | None:
    return None if count is None else count << 20


def _annotations(annotations: dict[str, str]) -> dict[str, str]:
    for key, value in annotations.items():
        remedy = FOREIGN_ANNOTATIONS.get(key)
        if key == "job_template" and value == "Template RL":
            remedy = "all tasks of a job run the same algorithm"
        elif value.lower() in retry.OFF:
            continue
        if remedy:
            field = f"metadata.annotations.{key}"
            raise Invalid("field-unsupported", field=field, remedy=remedy)
    return annotations


def _engine(engine: dict[str, str]) -> dict[str, str]:
    names = ("engine_id", "engine_name", "engine_version", "image_url")
    return {name: engine[name] for name in names if name in engine}


def _code(code_dir: str) -> ObjectUrl | None:
    if not code_dir:
        return None
    url = parse(code_dir, "algorithm.code_dir")
    if isinstance(url, LocalUrl):
        raise Invalid("obs-url", field="algorithm.code_dir", value=code_dir)
    return url


def _boot_file(boot_file: str, code: ObjectUrl | None, code_dir: str) -> str:
    """The boot file relative to the code directory, however it was written."""
    if not boot_file or code is None:
        return boot_file
    outside = Invalid("boot-file-outside", value=boot_file, code_dir=code_dir)
    relative = boot_file
    if boot_file.startswith(("obs://", "s3://", "/")):
        url = parse(boot_file, "algorithm.boot_file")
        if not isinstance(url, ObjectUrl) or url.bucket != code.bucket:
            raise outside
        if not url.key.startswith(code.directory) or url.key == code.directory:
            raise outside
        relative = url.key.removeprefix(code.directory)
    while relative.startswith("./"):
        relative = relative[2:]
    if any(part in ("", ".", "..") for part in relative.split("/")):
        raise outside
    return relative


def _url(at: str, channel: Mapping[str, Any]) -> Url:
    obs = channel.get("remote", {}).get("obs")
    if obs is None:
        field = f"{at}.remote.obs.obs_url"
        raise Invalid("field-missing", field=field, remedy="say where the data lies")
    return parse(obs["obs_url"], f"{at}.remote.obs.obs_url")


def _input(at: str, channel: Mapping[str, Any]) -> Input:
    access = Access(channel.get("access_method", "parameter"))
    return Input(channel["name"], _url(at, channel), access, channel.get("local_dir", ""))


def _output(at: str, channel: Mapping[str, Any]) -> Output:
    access = Access(channel.get("access_method", "parameter"))
    prefetch = channel.get("prefetch_to_local", False)
    url = _url(at, channel)
    return Output(channel["name"], url, access, channel.get("local_dir", ""), prefetch)


def _time_limit(auto_stop: Mapping[str, Any] | None, seconds: int | None) -> int | None:
    if auto_stop is None:
        return seconds
    limit = int(auto_stop["duration"]) * HOUR_S
    if seconds not in (None, limit):
        raise Invalid(
            "field-value",
            field="danlu.time_limit_s",
            value=seconds,
            expected=f"left out, or the same as spec.auto_stop ({limit} s)",
        )
    return limit


def description(body: Mapping[str, Any]) -> str:
    """The new description of a job."""
    text: str = UPDATE.read(body)["description"]
    printable("description", text)
    at_most("description", text, limits.DESCRIPTION_CHARS, "characters", "shorten it")
    return text


def action(body: Mapping[str, Any]) -> None:
    """Check an action on a job: `terminate` is the only one."""
    ACTION.read(body)


# ---------------------------------------------------------------- search

Operator = Literal["in", "not", "like", "between"]
SortBy = Literal["created_at", "name", "flavor", "priority", "duration"]

SORTS: dict[str, SortBy] = {
    "create_time": "created_at",
    "name": "name",
    "job_name": "name",
    "flavor_id": "flavor",
    "priority": "priority",
    "duration": "duration",
}

KEYS: dict[str, str] = {
    "name": "name",
    "job_name": "name",
    "description": "description",
    "phase": "state",
    "status": "state",
    "flavor_id": "flavor",
    "user_name": "user",
    "id": "id",
    "job_id": "id",
    "create_time": "created_at",
    "node_count": "node_count",
    "priority": "priority",
}
"""ModelArts' words for what jobs are filtered by, and ours."""

NUMBERS = ("created_at", "node_count", "priority")


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter in our words; `values` as Records take them."""

    key: str
    operator: Operator
    values: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """A wanted page of jobs. `page` counts pages from 0, as ModelArts' `offset` does."""

    page: int = 0
    limit: int = 50
    sort_by: str = "create_time"
    descending: bool = True
    conditions: tuple[Condition, ...] = ()

    @property
    def sort(self) -> SortBy:
        """What Records sort by."""
        return SORTS[self.sort_by]


def search(body: Mapping[str, Any]) -> Search:
    """What a list request asks for."""
    read = SEARCH.read(body)
    sort_by = read.get("sort_by") or "create_time"
    if sort_by not in SORTS:
        expected = f"one of {', '.join(SORTS)}"
        raise Invalid("field-value", field="sort_by", value=sort_by, expected=expected)
    return Search(
        page=read.get("offset", 0),
        limit=read.get("limit", 50),
        sort_by=sort_by,
        descending=read.get("order", "desc") == "desc",
        conditions=tuple(
            _condition(f"filters[{index}]", item)
            for index, item in enumerate(read.get("filters", ()))
        ),
    )


def _condition(at: str, item: Mapping[str, Any]) -> Condition:
    key = KEYS.get(item["key"])
    if key is None:
        expected = f"one of {', '.join(KEYS)}"
        raise Invalid("field-value", field=f"{at}.key", value=item["key"], expected=expected)
    operator, values = cast("Operator", item["operator"]), item["value"]
    for value in values:
        printable(f"{at}.value", value)
    _fits(at, key, operator, values)
    if key == "state":
        return Condition(key, operator, _states(at, values))
    if key in NUMBERS:
        return Condition(key, operator, tuple(_number(at, value) for value in values))
    return Condition(key, operator, tuple(values))


def _fits(at: str, key: str, operator: Operator, values: list[str]) -> None:
    expected = ""
    if operator == "like" and (key == "state" or key in NUMBERS):
        expected = "in or not" if key == "state" else "in, not or between"
    if operator == "between" and key not in NUMBERS:
        expected = "in or not" if key == "state" else "in, not or like"
    if expected:
        raise Invalid("field-value", field=f"{at}.operator", value=operator, expected=expected)
    if operator == "between" and len(values) != 2:
        raise Invalid(
            "field-value", field=f"{at}.value", value=values, expected="two values, low and high"
        )
    if not values:
        raise Invalid("field-missing", field=f"{at}.value", remedy="give at least one value")


def _states(at: str, phases: list[str]) -> tuple[str, ...]:
    for phase in phases:
        if phase not in MODELARTS_PHASES:
            expected = f"one of {', '.join(MODELARTS_PHASES)}"
            raise Invalid("field-value", field=f"{at}.value", value=phase, expected=expected)
    # A phase that no job here is ever in (Creating) still needs a value that no state has.
    return tuple(state.value for state in State if PHASES[state][0] in phases) or ("none",)


def _number(at: str, value: str) -> int:
    if value.isascii() and value.isdigit() and len(value) <= 18:
        return int(value)
    raise Invalid("field-value", field=f"{at}.value", value=value, expected="a whole number")
