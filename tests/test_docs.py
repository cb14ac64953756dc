"""The documents run, name only what exists, and leave nothing out."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from danlu import settings
from danlu.faces.cli import table as cli
from danlu.faces.cli.grammar import NUMBER, TEXT, Command
from danlu.model.errors import PlatformError
from danlu.model.reason import ReasonCode
from danlu.model.texts.errors import ERRORS
from danlu.model.texts.obs import OBS_ERRORS
from danlu.wire import modelarts_errors
from scripts import reference
from tests.services import ROOT

FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block of a document."""

    place: str
    line: int
    language: str
    words: str
    text: str

    @property
    def label(self) -> str:
        return f"{self.place}:{self.line}"


def blocks(root: Path, *languages: str) -> Iterator[Block]:
    for path in reference.documents(root):
        text = path.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            if match[1] in languages:
                line = text.count("\n", 0, match.start(3)) + 1
                place = path.relative_to(root).as_posix()
                yield Block(place, line, match[1], match[2].strip(), match[3])


def whole(root: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in reference.documents(root))


# ---------------------------------------------------------------- they run


def run_python(block: Block, names: dict[str, object]) -> None:
    """Statements, or a session with its output; line numbers are the document's."""
    if ">>>" in block.text:
        parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
        test = parser.get_doctest(block.text, names, block.place, block.place, block.line - 1)
        runner.run(test, clear_globs=False)
        assert runner.failures == 0, f"{block.label} does not give what it shows"
        return
    code = compile("\n" * (block.line - 1) + block.text, block.place, "exec")
    exec(code, names)  # noqa: S102  # the project's own documents


def runnable(root: Path) -> dict[str, list[Block]]:
    """Python blocks by document: one document is one session. `notest` marks what cannot run."""
    found: dict[str, list[Block]] = {}
    for block in blocks(root, "python", "pycon"):
        if block.words != "notest":
            found.setdefault(block.place, []).append(block)
    return found


@pytest.mark.parametrize("place", sorted(runnable(ROOT)) or ["none"])
def test_examples_run(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__docs__"}
    for block in runnable(ROOT).get(place, []):
        run_python(block, names)


def test_an_example_that_fails_is_found(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text(
        "Text.\n\n```python\nassert 1 == 2\n```\n\n```pycon\n>>> 1 + 1\n3\n```\n"
    )
    first, second = runnable(tmp_path)["bad.md"]

    with pytest.raises(AssertionError) as caught:
        run_python(first, {})
    assert caught.traceback[-1].lineno == 3  # counted from 0: the fourth line
    with pytest.raises(AssertionError, match=r"bad.md:8 does not give"):
        run_python(second, {})


def with_doctests() -> list[str]:
    source = ROOT / "src"
    return [
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(source.rglob("*.py"))
        if re.search(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]


def test_docstrings_run() -> None:
    for name in with_doctests():
        assert doctest.testmod(importlib.import_module(name)).failed == 0, name


# ---------------------------------------------------------------- they name what exists


def shell_lines(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Commands of shell blocks, each with its place and its words."""
    for block in blocks(root, "sh", "bash", "console"):
        for line in block.text.replace("\\\n", " ").splitlines():
            plain = re.sub(r"^\$ |\s+#.*$", "", line.strip())
            for part in re.split(r"\s*(?:&&|\||;)\s*", plain):
                try:
                    words = shlex.split(part)
                except ValueError:
                    continue  # a quoted shell line with operators in it
                if words:
                    yield block.label, words


def strange_option(command: Command, words: list[str]) -> str | None:
    """The first option that the command does not have; what follows a script is not danlu's."""
    known = {flag: one for one in (*command.options, *cli.COMMON) for flag in one.flags + one.off}
    rest = iter(words)
    for word in rest:
        if word == "--" or (command.passes_on and not word.startswith("-")):
            return None
        if not word.startswith("-"):
            continue
        flag, equals, _ = word.partition("=")
        if flag in {"--help", "-h"}:
            continue
        if flag not in known:
            return flag
        if known[flag].kind in {NUMBER, TEXT} and not equals:
            next(rest, None)
    return None


def wrong_commands(root: Path) -> Iterator[str]:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for place, words in shell_lines(root):
        if words[0] == "make":
            for word in words[1:]:
                if "=" not in word and word not in targets:
                    yield f"{place}: make {word}"
        if words[0].rpartition("/")[2] != "danlu" or len(words) == 1 or words[1].startswith("-"):
            continue
        command, behind = cli.begun(words[1:])
        if command is None:
            yield f"{place}: danlu {words[1]}"
            continue
        strange = strange_option(command, behind)
        if strange:
            yield f"{place}: danlu {command.name} {strange}"


def test_commands_in_documents_exist() -> None:
    wrong = [*wrong_commands(ROOT), *wrong_commands(ROOT / "examples")]

    assert not wrong, "\n".join(["", *wrong])


def test_a_command_that_does_not_exist_is_found(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text(
        "```sh\nmake tea\n$ danlu brew x\n.venv/bin/danlu ps --strong  # comment\n"
        "danlu run --name x train.py --strong\nmake demo && danlu rnu\n```\n"
    )

    assert list(wrong_commands(tmp_path)) == [
        "bad.md:2: make tea",
        "bad.md:2: danlu brew",
        "bad.md:2: danlu ps --strong",
        "bad.md:2: danlu rnu",
    ]


LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def broken_links(root: Path) -> Iterator[str]:
    for path in (*reference.documents(root), *sorted((root / "examples").rglob("*.md"))):
        for target in LINK.findall(path.read_text(encoding="utf-8")):
            if not (path.parent / target).exists():
                yield f"{path.relative_to(root).as_posix()}: {target}"


def test_links_lead_somewhere() -> None:
    wrong = list(broken_links(ROOT))

    assert not wrong, "\n".join(["", *wrong])


def test_a_link_to_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text("[a](nowhere.md) [b](bad.md#part) [c](https://example.org)")

    assert list(broken_links(tmp_path)) == ["bad.md: nowhere.md"]


# ---------------------------------------------------------------- they leave nothing out


def names_to_document() -> dict[str, str]:
    """What has to be named, and how it is written in the documents."""
    found = {f"setting {name}": f"`{name}`" for name in settings.describe()}
    found |= {f"command {one.name}": f"danlu {one.name}" for one in cli.COMMANDS}
    found |= {f"error {one.code}": f"`{one.code}`" for one in PlatformError.__subclasses__()}
    found |= {f"error key {key}": f"`{key}`" for key in (*ERRORS, *OBS_ERRORS)}
    found |= {f"error code {one}": f"`{one}`" for one in map(modelarts_errors.code, ERRORS)}
    found |= {f"reason {code}": f"`{code}`" for code in ReasonCode}
    found |= {
        f"route {method.upper()} {path}": f"| `{method.upper()}` | `{path}` |"
        for path, methods in reference.openapi()["paths"].items()
        for method in methods
    }
    return found


def undocumented(root: Path) -> list[str]:
    text = whole(root)
    return [name for name, written in names_to_document().items() if written not in text]


def test_everything_is_documented() -> None:
    missing = undocumented(ROOT)

    assert not missing, "\n".join(["", *missing])


def test_what_is_left_out_is_found(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("`danlu up`, `port` and `DENIED`")
    missing = undocumented(tmp_path)

    assert {"setting host", "command run", "error MISSING", "reason exit"} <= set(missing)
    assert not {"setting port", "command up", "error DENIED"} & set(missing)


def test_generated_parts_are_fresh() -> None:
    assert not reference.stale(), "make docs renews them"


def test_a_stale_part_is_found_and_renewed(tmp_path: Path) -> None:
    document = tmp_path / "README.md"
    document.write_text(
        "# T\n\n<!-- states: generated -->\nold\n<!-- /states -->\n\n"
        "<!-- reasons-zh: generated -->\n<!-- /reasons-zh -->\nend\n"
    )
    text = reference.stale(tmp_path)[document]
    document.write_text(text)

    assert "| queued | place → placed · stop → cancelled |" in text
    assert "| `time-limit` | user | 达到时间上限" in text
    assert "old" not in text
    assert text.endswith("<!-- /reasons-zh -->\nend\n")
    assert not reference.stale(tmp_path)
