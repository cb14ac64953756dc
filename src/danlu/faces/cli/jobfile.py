"""Job files: ModelArts' create body as YAML or JSON, with paths relative to the file.

Texts that only look like numbers stay as they were written: a parameter of 0.10 is handed to the
script as 0.10. YAML is read as YAML 1.2's core is, without aliases, tags and floats; `yes`, `on`
and dates are texts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from danlu.faces.cli.failure import FAULT, MISSING, USAGE, Failure

MAX_BYTES = 4 << 20


def read(path: str) -> dict[str, Any]:
    """The body that the file at `path` holds; Failure where it cannot be understood."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        status = MISSING if isinstance(error, FileNotFoundError) else USAGE
        raise Failure(status, "file-unreadable", path=path, detail=error.strerror) from None
    if len(data) > MAX_BYTES:
        raise Failure(USAGE, "file-too-large", path=path, limit=MAX_BYTES)
    try:
        text = data.decode()
        body = _json(text) if path.endswith(".json") else _yaml(text)
    except (ValueError, RecursionError) as error:
        detail = str(error) or type(error).__name__
        raise Failure(USAGE, "file-bad", path=path, detail=detail) from None
    if not isinstance(body, dict):
        raise Failure(USAGE, "file-bad", path=path, detail="it does not hold an object")
    _texts(body)
    return body


def directory(path: str) -> str:
    """Where relative paths of a job file begin."""
    return os.path.dirname(os.path.abspath(path))


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_object, parse_float=str, parse_constant=_refuse)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise ValueError(f"'{key}' stands there twice")
        made[key] = value
    return made


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise Failure(FAULT, "yaml-missing") from None

    class Loader(yaml.SafeLoader):
        """YAML without what surprises: no aliases, no tags, no other types than JSON's."""

        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - the name is PyYAML's

        def compose_node(self, parent: Any, index: Any) -> Any:
            """A node, unless it is an alias."""
            parser: Any = self
            if parser.check_event(yaml.AliasEvent):
                mark = parser.peek_event().start_mark
                raise yaml.MarkedYAMLError(None, None, "aliases are not taken", mark)
            return super().compose_node(parent, index)

    _teach(Loader)
    try:
        return yaml.load(text, Loader)  # noqa: S506 - the loader is a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


def _teach(loader: Any) -> None:
    import re

    for tag, pattern, first in (
        ("tag:yaml.org,2002:bool", r"true|false", "tf"),
        ("tag:yaml.org,2002:int", r"-?(?:0|[1-9][0-9]{0,17})", "-0123456789"),
        ("tag:yaml.org,2002:null", r"null|", ["n", ""]),
    ):
        loader.add_implicit_resolver(tag, re.compile(rf"(?:{pattern})\Z"), list(first))
    loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _mapping(loader: Any, node: Any) -> dict[str, Any]:
    pairs = loader.construct_pairs(node, deep=True)
    for key, _ in pairs:
        if not isinstance(key, str):
            line = node.start_mark.line + 1
            raise ValueError(f"line {line}: the key '{key}' is not a text")  # noqa: TRY004 - a file's fault
    try:
        return _object(pairs)
    except ValueError as error:
        raise ValueError(f"line {node.start_mark.line + 1}: {error}") from None


def _texts(body: dict[str, Any]) -> None:
    """Parameters and variables are texts, however they were written."""
    algorithm = body.get("algorithm")
    if not isinstance(algorithm, dict):
        return
    for parameter in _objects(algorithm.get("parameters")):
        if "value" in parameter:
            parameter["value"] = _plain(parameter["value"])
    variables = algorithm.get("environments")
    if isinstance(variables, dict):
        algorithm["environments"] = {key: _plain(value) for key, value in variables.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else value


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict):
            yield one


def local_places(body: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The channels whose path is one of this machine: `./data`, `data`, `~/data`.

    A path that begins with `/` is ModelArts' `/bucket/key/`.
    """
    algorithm = body.get("algorithm")
    for kind in ("inputs", "outputs"):
        listed = algorithm.get(kind) if isinstance(algorithm, dict) else None
        for number, one in enumerate(_objects(listed)):
            remote = one.get("remote")
            obs = remote.get("obs") if isinstance(remote, dict) else None
            url = obs.get("obs_url") if isinstance(obs, dict) else None
            if isinstance(obs, dict) and isinstance(url, str) and is_local(url):
                yield f"algorithm.{kind}[{number}].remote.obs.obs_url", obs


def is_local(url: str) -> bool:
    """Whether a path in a job file is one of this machine."""
    return bool(url) and not url.startswith("/") and "://" not in url
