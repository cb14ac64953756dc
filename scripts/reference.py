#!/usr/bin/env python3
"""Writes into the documents what the code knows: states, settings, commands, routes, codes.

    python scripts/reference.py          renews every block
    python scripts/reference.py --check  says which are stale; exit status 1 if any is

A block stands between two lines, `<!-- NAME: generated -->` and `<!-- /NAME -->`, in any Markdown
file at the root or below docs/. NAME may end in -zh for the Chinese texts.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from danlu.images.matrix import Matrix, Release

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"^(?P<head><!-- (?P<name>[a-z]+)(?P<zh>-zh)?: generated -->\n)"
    r"(?P<body>.*?)(?P<tail><!-- /(?P=name)(?P=zh)? -->)$",
    re.DOTALL | re.MULTILINE,
)


def cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *([cell(one) for one in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def heads(language: str, *pairs: tuple[str, str]) -> list[str]:
    return [pair[language == "zh"] for pair in pairs]


# ---------------------------------------------------------------- blocks


def states(_language: str) -> str:
    from danlu.model.attempt import diagram

    return diagram().rstrip("\n") + "\n"


def notebooks(_language: str) -> str:
    from danlu.model.notebook import diagram

    return diagram().rstrip("\n") + "\n"


def settings(language: str) -> str:
    from danlu import settings as code

    rows = (
        (f"`{name}`", f"`{default}`" if default else "", f"`{code.PREFIX}{name.upper()}`", meaning)
        for name, (default, meaning) in code.describe(language).items()
    )
    names = (("setting", "设置"), ("default", "默认"), ("variable", "变量"), ("meaning", "含义"))
    return table(heads(language, *names), rows)


def commands(language: str) -> str:
    from danlu.faces.cli import table as cli
    from danlu.faces.cli.grammar import Option
    from danlu.faces.cli.texts import fill
    from danlu.faces.cli.texts.options import OPTIONS

    def said(key: str) -> str:
        return fill(OPTIONS, key, language, {}).rstrip(" :：")

    def row(option: Option, command: str) -> tuple[str, str]:
        own = f"{command}.{option.key}"
        spelling = ", ".join([*option.flags, *option.off])
        value = f" {option.metavar}" if option.metavar else ""
        return f"`{spelling}{value}`", said(own if own in OPTIONS else f".{option.key}")

    names = heads(language, ("option", "选项"), ("meaning", "含义"))
    parts = [f"### {said('heading.common')}\n\n{table(names, (row(o, '') for o in cli.COMMON))}"]
    for group in cli.GROUPS:
        parts.append(f"## {said(f'group.{group}')}\n")
        for command in cli.COMMANDS:
            if command.group != group:
                continue
            words = " ".join(["danlu", command.name, *(a.metavar for a in command.arguments)])
            parts.append(f"### `{words}`\n\n{said(command.name)}\n")
            if command.options:
                parts.append(table(names, (row(o, command.name) for o in command.options)))
    return "\n".join(parts)


@cache
def openapi() -> dict[str, Any]:
    """The API's own description, from a server that is built but never started."""
    from danlu.faces.http.app import create_app
    from danlu.settings import Settings
    from danlu.wiring import open_platform

    with tempfile.TemporaryDirectory() as folder:
        running = open_platform(Settings(data=Path(folder), engine="memory"))
        try:
            return create_app(running).openapi()
        finally:
            running.close()


def routes(language: str) -> str:
    rows = (
        (f"`{method.upper()}`", f"`{path}`", one.get("summary", ""))
        for path, methods in openapi()["paths"].items()
        for method, one in methods.items()
    )
    names = (("method", "方法"), ("path", "路径"), ("what it does", "作用"))
    return table(heads(language, *names), rows)


def errors(language: str) -> str:
    from danlu.model import errors as tree
    from danlu.model.texts.errors import ERRORS
    from danlu.wire.modelarts_errors import code

    kinds = (
        (f"`{kind.code}`", kind.http, kind.exit, (kind.__doc__ or "").split("\n")[0])
        for kind in tree.PlatformError.__subclasses__()
    )
    names = (("kind", "类别"), ("HTTP", "HTTP"), ("exit", "退出码"), ("meaning", "含义"))
    keys = (
        (f"`{key}`", f"`{code(key)}`", texts[language == "zh"]) for key, texts in ERRORS.items()
    )
    columns = (("key", "键"), ("error_code", "error_code"), ("text", "文本"))
    return f"{table(heads(language, *names), kinds)}\n{table(heads(language, *columns), keys)}"


def gateway(language: str) -> str:
    """What the OBS gateway does, and the errors that it alone has."""
    from danlu.faces.obs.app import OPERATIONS
    from danlu.model.errors import PlatformError
    from danlu.model.texts.obs import OBS_ERRORS
    from danlu.wire.obs_errors import code

    rows = (
        (f"`{method}`", level, f"`?{selector}`" if selector else "", f"`{one.action}`")
        for (method, level, selector), one in OPERATIONS
    )
    names = (("method", "方法"), ("of a", "对象"), ("sub-resource", "子资源"), ("action", "操作"))
    keys = (
        (f"`{key}`", f"`{code(PlatformError(key))}`", texts[language == "zh"])
        for key, texts in OBS_ERRORS.items()
    )
    columns = (("Cause", "Cause"), ("Code", "Code"), ("text", "文本"))
    return f"{table(heads(language, *names), rows)}\n{table(heads(language, *columns), keys)}"


def reasons(language: str) -> str:
    from danlu.model.reason import BLAME, ReasonCode
    from danlu.model.texts import TEXTS

    rows = ((f"`{one}`", BLAME[one], TEXTS[one][language == "zh"]) for one in ReasonCode)
    names = (("reason", "原因"), ("blame", "责任方"), ("text", "文本"))
    return table(heads(language, *names), rows)


def points(_language: str) -> str:
    from danlu.ports.crash import POINTS

    return table(
        ("point", "what stands when it is passed"), ((f"`{n}`", s) for n, s in POINTS.items())
    )


def fits(language: str) -> str:
    """For every series of torch and every GPU the builds that run, with their oldest drivers."""
    from danlu.images import matrix
    from danlu.model.image import CHANNELS, PYPI

    names = ("from PyPI alone", "仅用 PyPI"), ("with the index", "加上官方索引")
    found = matrix.packaged()
    parts = []
    for (english, chinese), channels in zip(names, ((PYPI,), CHANNELS), strict=True):
        title = chinese if language == "zh" else english
        rows = (fitting(release.torch, channels) for release in newest(found))
        head = ["torch", *(f"{gpu.gpu} ({gpu.sm})" for gpu in found.gpus)]
        parts.append(f"**{title}**\n\n{table(head, rows)}")
    return "\n".join(parts)


def newest(found: Matrix) -> list[Release]:
    """The newest release of every series, the newest series first."""
    by_series = {release.torch.rpartition(".")[0]: release for release in found.releases}
    return list(by_series.values())[::-1]


@cache
def fitting(torch: str, channels: tuple[str, ...]) -> list[str]:
    """A row: what is chosen for each GPU, from the newest driver down to the oldest."""
    from danlu.images import matrix, resolve
    from danlu.images.versions import cuda_version, numbers
    from danlu.model.image import PYPI, Ask

    found = matrix.packaged()
    builds = [build for release, build in found.candidates("x86_64") if release.torch == torch]
    floors = [
        found.drivers[cuda]
        for build in builds
        if build.channel in channels and (cuda := cuda_version(build.tag))
    ]
    drivers = {row.min_compat for row in floors}
    if len(floors) > 1:  # of several builds the driver says which is the best
        drivers |= {row.toolkit_driver for row in floors}
    cells = [torch]
    for gpu in found.gpus:
        parts: dict[str, str] = {}
        for driver in sorted(drivers, key=numbers):
            wanted = Ask(torch, "", (gpu.gpu,), driver, channels=channels)
            choice = resolve.ask(found, wanted).choice
            if choice is not None:
                mark = "" if choice.channel == PYPI else "*"
                parts.setdefault(f"{choice.cuda}{mark}", driver)
        cells.append(", ".join(f"{tag} ≥ {parts[tag]}" for tag in reversed(parts)) or "–")
    return cells


def kills(language: str) -> str:
    from scripts import promises

    return table(heads(language, ("figure", "数据"), ("value", "值")), promises.kills(language))


def faults(language: str) -> str:
    from scripts import promises

    names = (("#", "#"), ("fault", "故障"), ("injected", "注入方式"), ("result", "结果"))
    return table(heads(language, *names), promises.faults(language))


_MADE = (
    states,
    notebooks,
    settings,
    commands,
    routes,
    errors,
    gateway,
    reasons,
    points,
    fits,
    kills,
    faults,
)
BLOCKS: dict[str, Callable[[str], str]] = {block.__name__: block for block in _MADE}


# ---------------------------------------------------------------- documents


def documents(root: Path) -> Iterator[Path]:
    yield from sorted(root.glob("*.md"))
    yield from sorted((root / "docs").rglob("*.md"))


def renewed(text: str) -> str:
    def fresh(match: re.Match[str]) -> str:
        body = BLOCKS[match["name"]]("zh" if match["zh"] else "en")
        return f"{match['head']}{body}{match['tail']}"

    return BLOCK.sub(fresh, text)


def stale(root: Path = ROOT) -> dict[Path, str]:
    """Documents whose blocks are not what the code says, with what they should be."""
    found = {}
    for path in documents(root):
        text = path.read_text(encoding="utf-8")
        fresh = renewed(text)
        if fresh != text:
            found[path] = fresh
    return found


def main(arguments: list[str]) -> int:
    found = stale()
    for path, text in found.items():
        place = path.relative_to(ROOT)
        if "--check" in arguments:
            print(f"{place} is stale: make docs", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
            print(f"renewed {place}")
    return int(bool(found) and "--check" in arguments)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
