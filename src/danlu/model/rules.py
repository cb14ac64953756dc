"""The rules that a job has to keep, checked before anything is made. Pure.

Fields are named as in ModelArts' create body, because that is what the caller wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from danlu.model import limits
from danlu.model.errors import Invalid
from danlu.model.hang import HangAction
from danlu.model.job import NOTEBOOK, Access, Input, JobSpec, Output, Parameter
from danlu.model.log_rules import MOST_RULES, PATTERN_CHARS, LogRule
from danlu.model.retry import Cause
from danlu.model.script import LITERAL_CACHE, LITERAL_HOME

NAME = re.compile(r"[A-Za-z0-9_-]+")
CHANNEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PARAMETER = re.compile(r"[^\s=\0]+")
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    r"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?/)?"
    rf"{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?"
)
PACKAGE = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9._, -]+\])?"
    r"\s*(?:(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+(?:\s*,\s*|$))*",
    re.ASCII,
)
PACKAGE_CHARS = 200
RESERVED = ("MA_", "DANLU_")


def check(spec: JobSpec) -> None:
    """Raise Invalid for the first rule that `spec` breaks."""
    name(spec.name, "metadata.name")
    at_most(
        "metadata.description",
        spec.description,
        limits.DESCRIPTION_CHARS,
        "characters",
        "shorten it",
    )
    printable("metadata.description", spec.description)
    _algorithm(spec)
    _environments(spec.environments)
    _parameters(spec.parameters)
    _channels(spec.inputs, spec.outputs)
    _numbers(spec)
    _annotations(spec.annotations)
    _together(spec)
    _hang(spec)
    _log_rules(spec.log_rules)
    for index, package in enumerate(spec.packages):
        _package(f"danlu.packages[{index}]", package)


def _package(field: str, value: str) -> None:
    """A package with versions. Never an option, an address or a path: they reach an installer."""
    at_most(field, value, PACKAGE_CHARS, "characters", "name one package")
    if not PACKAGE.fullmatch(value):
        raise Invalid(
            "field-value", field=field, value=value, expected="a package such as einops>=0.8"
        )


def name(value: str, field: str) -> None:
    """1–64 letters, digits, `_` and `-`."""
    if not value:
        raise Invalid("field-missing", field=field, remedy="give it 1 to 64 characters")
    at_most(field, value, limits.NAME_CHARS, "characters", "shorten it")
    if not NAME.fullmatch(value):
        raise Invalid(
            "field-characters",
            field=field,
            value=value,
            found="other characters than letters, digits, '_' and '-'",
            remedy="use only those",
        )


def at_most(field: str, value: str, limit: int, unit: str, remedy: str) -> None:
    """Refuse a text longer than `limit` (counted in characters, or in bytes of UTF-8)."""
    size = len(value) if unit == "characters" else _bytes(value, field)
    if size > limit:
        raise Invalid(
            "field-too-long", field=field, size=size, unit=unit, limit=limit, remedy=remedy
        )


def printable(field: str, value: str) -> None:
    """Refuse what no program can be handed: NUL, and halves of surrogate pairs."""
    _bytes(value, field)
    if "\0" in value:
        raise Invalid(
            "field-characters",
            field=field,
            value=value,
            found="a NUL character",
            remedy="no program can be given one; remove it",
        )


def _bytes(value: str, field: str) -> int:
    try:
        return len(value.encode())
    except UnicodeEncodeError:
        raise Invalid(
            "field-characters",
            field=field,
            value=value.encode("utf-8", "backslashreplace").decode(),
            found="half a surrogate pair, which is not valid Unicode",
            remedy="send valid UTF-8",
        ) from None


def _algorithm(spec: JobSpec) -> None:
    if bool(spec.boot_file) == bool(spec.command):
        raise Invalid(
            "field-missing" if not spec.boot_file else "field-value",
            field="algorithm.boot_file",
            value=spec.boot_file,
            expected="left out when algorithm.command is given: a job runs one or the other",
            remedy="give algorithm.code_dir with algorithm.boot_file, or algorithm.command",
        )
    if spec.boot_file and spec.code is None:
        raise Invalid(
            "field-missing",
            field="algorithm.code_dir",
            remedy="a boot file is looked for in the code directory",
        )
    if spec.boot_file and not spec.boot_file.endswith((".py", NOTEBOOK)):
        raise Invalid(
            "field-value",
            field="algorithm.boot_file",
            value=spec.boot_file,
            expected="a .py or .ipynb file (use algorithm.command for anything else)",
        )
    printable("algorithm.boot_file", spec.boot_file)
    printable("algorithm.command", spec.command)
    at_most(
        "algorithm.command",
        spec.command,
        limits.COMMAND_BYTES,
        "bytes",
        "put the steps into a script in the code directory",
    )
    for field, path in (
        ("algorithm.working_dir", spec.working_dir),
        ("algorithm.local_code_dir", spec.local_code_dir),
    ):
        container_path(field, path)


def container_path(field: str, path: str) -> None:
    """A path inside the task's own world: below /home/ma-user or /cache. Empty is fine."""
    if not path:
        return
    printable(field, path)
    below = any(path == top or path.startswith(f"{top}/") for top in (LITERAL_HOME, LITERAL_CACHE))
    if not below or ".." in path.split("/"):
        raise Invalid(
            "field-value",
            field=field,
            value=path,
            expected=f"an absolute path below {LITERAL_HOME} or {LITERAL_CACHE}, without '..'",
        )


def image_reference(field: str, reference: str) -> None:
    """Invalid unless `reference` names an image: [host[:port]/]path[:tag][@digest] (the grammar of
    the OCI distribution specification).
    """
    at_most(field, reference, limits.IMAGE_REFERENCE_BYTES, "bytes", "shorten it")
    if not _IMAGE.fullmatch(reference):
        raise Invalid(
            "field-value",
            field=field,
            value=reference,
            expected="an image: [registry[:port]/]name[:tag][@sha256:digest], in lower case",
        )


def _environments(environments: Mapping[str, str]) -> None:
    field = "algorithm.environments"
    if len(environments) > limits.ENVIRONMENTS:
        raise Invalid(
            "too-many",
            field=field,
            count=len(environments),
            limit=limits.ENVIRONMENTS,
            remedy="put settings into a file in the code directory",
        )
    for key, value in environments.items():
        if not VARIABLE.fullmatch(key):
            raise Invalid(
                "field-characters",
                field=f"{field} (a variable's name)",
                value=key,
                found="what no variable name may hold",
                remedy="use letters, digits and '_', not beginning with a digit",
            )
        if key.startswith(RESERVED):
            raise Invalid(
                "field-value",
                field=f"{field} (a variable's name)",
                value=key,
                expected="a name that does not begin with MA_ or DANLU_, which the platform sets",
            )
        printable(f"{field}.{key}", value)
        at_most(
            f"{field}.{key}",
            value,
            limits.STRING_BYTES,
            "bytes",
            "a program can be given no longer variable; put it into a file",
        )


def _parameters(parameters: tuple[Parameter, ...]) -> None:
    field = "algorithm.parameters"
    if len(parameters) > limits.PARAMETERS:
        raise Invalid(
            "too-many",
            field=field,
            count=len(parameters),
            limit=limits.PARAMETERS,
            remedy="put them into a file in the code directory",
        )
    for index, parameter in enumerate(parameters):
        at = f"{field}[{index}]"
        if not parameter.name:
            raise Invalid("field-missing", field=f"{at}.name", remedy="every parameter has a name")
        at_most(f"{at}.name", parameter.name, limits.STRING_BYTES, "bytes", "shorten it")
        printable(f"{at}.name", parameter.name)
        if not PARAMETER.fullmatch(parameter.name):
            raise Invalid(
                "field-characters",
                field=f"{at}.name",
                value=parameter.name,
                found="white space or '='",
                remedy="the script is given --name=value; put '=' into the value only",
            )
        value_field = f"{at}.value (parameter '{parameter.name[:64]}')"
        printable(value_field, parameter.value)
        at_most(
            value_field,
            parameter.value,
            limits.STRING_BYTES,
            "bytes",
            "a program can be given no longer argument; put it into a file and pass that as an"
            " input",
        )


def _channels(inputs: tuple[Input, ...], outputs: tuple[Output, ...]) -> None:
    seen: set[str] = set()
    fields: list[tuple[str, Input | Output]] = [
        *((f"algorithm.inputs[{index}]", channel) for index, channel in enumerate(inputs)),
        *((f"algorithm.outputs[{index}]", channel) for index, channel in enumerate(outputs)),
    ]
    for field, count in (("algorithm.inputs", len(inputs)), ("algorithm.outputs", len(outputs))):
        if count > limits.CHANNELS:
            raise Invalid(
                "too-many",
                field=field,
                count=count,
                limit=limits.CHANNELS,
                remedy="join them into fewer directories",
            )
    for at, channel in fields:
        _channel(at, channel)
        if channel.name in seen:
            raise Invalid("duplicate", field=f"{at}.name", value=channel.name)
        seen.add(channel.name)


def _channel(at: str, channel: Input | Output) -> None:
    if not channel.name:
        raise Invalid("field-missing", field=f"{at}.name", remedy="every channel has a name")
    at_most(f"{at}.name", channel.name, limits.NAME_CHARS, "characters", "shorten it")
    grammar = VARIABLE if channel.access is Access.ENV else CHANNEL
    if not grammar.fullmatch(channel.name):
        raise Invalid(
            "field-characters",
            field=f"{at}.name",
            value=channel.name,
            found="what a channel's name may not hold",
            remedy="use letters, digits, '_' (and '-' or '.' unless access_method is env)",
        )
    if channel.access is Access.ENV and channel.name.startswith(RESERVED):
        raise Invalid(
            "field-value",
            field=f"{at}.name",
            value=channel.name,
            expected="a name that does not begin with MA_ or DANLU_, which the platform sets",
        )
    container_path(f"{at}.local_dir", channel.local_dir)


def _numbers(spec: JobSpec) -> None:
    for field, value, low, high in (
        ("spec.resource.node_count", spec.node_count, 1, limits.NODES),
        ("spec.schedule_policy.priority", spec.priority, 1, 3),
        ("spec.auto_stop (in seconds)", spec.time_limit_s, 1, limits.TIME_LIMIT_S),
        ("spec.grace_s", spec.grace_s, 0, limits.GRACE_S),
        ("danlu.log_limit_mib (in bytes)", spec.log_limit_bytes, 1 << 20, limits.LOG_MIB << 20),
    ):
        if value is not None and not low <= value <= high:
            raise Invalid(
                "field-value", field=field, value=value, expected=f"a number from {low} to {high}"
            )


def _hang(spec: JobSpec) -> None:
    restarts = spec.hang.action is HangAction.RESTART
    if restarts and (spec.retry.limit == 0 or Cause.HANG not in spec.retry.on):
        raise Invalid(
            "field-value",
            field="danlu.on_hang",
            value=spec.hang.action,
            expected="notify or stop, unless danlu.retries is 1 or more and danlu.retry_on"
            " has hang",
        )


def _log_rules(rules: tuple[LogRule, ...]) -> None:
    if len(rules) > MOST_RULES:
        raise Invalid(
            "too-many",
            field="danlu.log_rules",
            count=len(rules),
            limit=MOST_RULES,
            remedy="remove some",
        )
    for index, rule in enumerate(rules):
        field = f"danlu.log_rules[{index}].match"
        printable(field, rule.match)
        at_most(field, rule.match, PATTERN_CHARS, "characters", "shorten it")
        if not rule.match.strip("*") or "\n" in rule.match:
            raise Invalid(
                "field-value",
                field=field,
                value=rule.match,
                expected="a part of one line, with * for any text; not empty and not stars alone",
            )


def _annotations(annotations: Mapping[str, str]) -> None:
    if len(annotations) > limits.ANNOTATIONS:
        raise Invalid(
            "too-many",
            field="metadata.annotations",
            count=len(annotations),
            limit=limits.ANNOTATIONS,
            remedy="remove some",
        )
    for key, value in annotations.items():
        field = f"metadata.annotations.{key}"
        for part in (key, value):
            printable(field, part)
            at_most(field, part, limits.COMMAND_BYTES, "bytes", "shorten it")


def _together(spec: JobSpec) -> None:
    size = _sizes(
        [
            *(part for parameter in spec.parameters for part in (parameter.name, parameter.value)),
            *(part for item in spec.environments.items() for part in item),
            spec.command,
        ]
    )
    if size > limits.STRINGS_BYTES:
        raise Invalid(
            "field-too-long",
            field="algorithm.parameters and algorithm.environments together",
            size=size,
            unit="bytes",
            limit=limits.STRINGS_BYTES,
            remedy="a program cannot be given more; put values into a file and pass it as an input",
        )


def _sizes(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) for text in texts)
