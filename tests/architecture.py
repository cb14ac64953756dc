"""The rules of ARCHITECTURE.md as functions: each takes a tree's root and gives the broken places.

A rule reads source text and never imports it, so that it works on a tree that does not run, and on
the small bad samples with which test_architecture.py proves that it can fail.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = "danlu"

LAYERS: dict[str, frozenset[str]] = {
    "model": frozenset(),
    "ports": frozenset({"model"}),
    "images": frozenset({"ports", "model"}),
    "stores": frozenset({"ports", "model"}),
    # The process engine starts node agents on this machine and reads their directories back.
    "engines": frozenset({"node", "ports", "model"}),
    # An agent stages what its task needs: objects of a store, the environment of an image.
    "node": frozenset({"images", "stores", "ports", "model"}),
    "flow": frozenset({"ports", "model"}),
    "wire": frozenset({"model"}),
    # A face also shows the nouns, and catches the errors, that wire and flow hand to it.
    "faces": frozenset({"wire", "flow", "ports", "model", "wiring", "settings", "registry"}),
    # On the path of jobs, where nothing of ours is installed.
    "runtime": frozenset(),
    "settings": frozenset({"model"}),
    "registry": frozenset({"model"}),
    "wiring": frozenset(
        {"images", "stores", "engines", "node", "flow", "ports", "model", "settings", "registry"}
    ),
    "__init__": frozenset(),
    "__main__": frozenset({"faces"}),
}
"""What each layer may import beside itself; the standard library and dependencies are elsewhere."""

SHARED_IN_FLOW = frozenset(
    {"__init__", "activity", "board", "catalog", "notebooks", "plan", "platform", "refs"}
)
"""Nouns that the verbs share. Every other module of flow/ is a verb."""
COMPOSERS = frozenset({"loop"})

NAMELESS = frozenset({"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"})
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60

IMPURE = frozenset(
    {"asyncio", "http", "logging", "multiprocessing", "os", "pathlib", "random", "secrets"}
    | {"select", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile"}
    | {"threading", "time"}
)
"""Modules through which I/O, the clock or chance would reach the model."""
IMPURE_CALLS = frozenset({"now", "open", "print", "today", "utcnow", "uuid1", "uuid4"})

FORBIDDEN_IMPORTS = frozenset({"cPickle", "dill", "marshal", "pickle", "shelve"})
FORBIDDEN_NAMES = frozenset({"eval", "exec"})
FORBIDDEN_ATTRIBUTES = frozenset(
    {"create_subprocess_shell", "extractall", "getoutput", "getstatusoutput"}
)
FORBIDDEN_IN_OS = frozenset({"popen", "system"})
STARTERS = frozenset({"Popen", "call", "check_call", "check_output", "run"})
"""Callables of subprocess, which take shell=."""


@dataclass(frozen=True)
class Source:
    """One Python file of the tree."""

    path: Path
    place: str
    """The path from the tree's root, as it is shown."""
    text: str
    tree: ast.Module

    def problem(self, node: ast.AST | int, words: str) -> str:
        line = node if isinstance(node, int) else getattr(node, "lineno", 1)
        return f"{self.place}:{line}: {words}"

    @property
    def module(self) -> tuple[str, ...]:
        """The dotted name below src/, in parts: ("danlu", "flow", "place")."""
        parts = self.path.with_suffix("").parts
        return parts[len(parts) - len(Path(self.place).parts) + 1 :]

    @property
    def layer(self) -> str:
        return self.module[1] if len(self.module) > 1 else "__init__"


@cache
def _parse(path: Path, place: str, _changed: int) -> Source:
    text = path.read_text(encoding="utf-8")
    return Source(path, place, text, ast.parse(text, str(path)))


def sources(root: Path, *folders: str) -> Iterator[Source]:
    """The Python files below these folders, in order."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            yield _parse(path, path.relative_to(root).as_posix(), path.stat().st_mtime_ns)


def package(root: Path) -> Iterator[Source]:
    return sources(root, f"src/{PACKAGE}")


# ---------------------------------------------------------------- layers and cycles


def imports(source: Source) -> Iterator[tuple[ast.stmt, str]]:
    """Every imported module, at any depth; `from a import b` gives a.b, perhaps a name in a."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node, "." * node.level + (node.module or "")
                continue
            for alias in node.names:
                yield node, f"{node.module}.{alias.name}"


def layer_problems(root: Path) -> Iterator[str]:
    """Imports that point sideways or up."""
    for source in package(root):
        allowed = LAYERS.get(source.layer)
        if allowed is None:
            yield source.problem(1, f"no layer is called {source.layer}")
            continue
        for statement, name in imports(source):
            parts = name.split(".")
            if name.startswith("."):
                yield source.problem(statement, f"import {name} relative; write it from danlu")
            if parts[0] != PACKAGE or len(parts) < 2:
                continue
            target = parts[1] if parts[1] in LAYERS else "__init__"
            if target not in {source.layer, "__init__"} and target not in allowed:
                yield source.problem(statement, f"{source.layer} imports {target} ({name})")


def concrete_problems(root: Path) -> Iterator[str]:
    """Names of concrete engines and stores, also as text, outside wiring and registry."""
    pattern = re.compile(rf"{PACKAGE}\.(engines|stores)\.\w")
    for source in package(root):
        if source.layer in {"wiring", "registry", "engines", "stores", "node"}:
            continue
        for node in ast.walk(source.tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and pattern.match(node.value)
            ):
                yield source.problem(node, f"{node.value!r} belongs into wiring")


def purity_problems(root: Path) -> Iterator[str]:
    """The model imports the standard library only: no I/O, no clock, no chance."""
    for source in package(root):
        if source.layer != "model":
            continue
        for statement, name in imports(source):
            top = name.split(".")[0]
            if top != PACKAGE and top not in sys.stdlib_module_names:
                yield source.problem(statement, f"the model imports {top}")
            if top in IMPURE and not name.startswith(("pathlib.Pure", "http.HTTPStatus")):
                yield source.problem(statement, f"the model imports {name}, which is not pure")
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and called(node) in IMPURE_CALLS:
                yield source.problem(node, f"the model calls {called(node)}()")


def called(node: ast.Call) -> str:
    """The last name of what is called: `b` for a.b() and for b()."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def cycle_problems(root: Path) -> Iterator[str]:
    """Modules that need each other, imports inside functions and for typing included."""
    known = {".".join(source.module): source for source in package(root)}
    graph: dict[str, set[str]] = {}
    for name, source in known.items():
        targets = set()
        for _, imported in imports(source):
            for candidate in (imported, imported.rpartition(".")[0]):
                real = candidate if candidate in known else f"{candidate}.__init__"
                if real in known:
                    targets.add(real)
                    break
        graph[name] = targets - {name}
    for knot in _knots(graph):
        yield f"cycle: {' -> '.join(knot)}"


def _knots(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that all reach each other: Tarjan's strongly connected components."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for target in sorted(graph[name]):
            if target not in number:
                visit(target)
                lowest[name] = min(lowest[name], lowest[target])
            elif target in stack:
                lowest[name] = min(lowest[name], number[target])
        if lowest[name] == number[name]:
            knot = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(knot) > 1:
                found.append(sorted(knot))

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return found


def verb_problems(root: Path) -> Iterator[str]:
    """Verbs of flow/ that import each other; loop.py alone composes them."""
    for source in package(root):
        if source.layer != "flow" or source.module[2:3] == ("__init__",):
            continue
        own = source.module[2]
        if own in COMPOSERS:
            continue
        for statement, name in imports(source):
            parts = name.split(".")
            if parts[:2] != [PACKAGE, "flow"] or len(parts) < 3:
                continue
            if parts[2] != own and parts[2] not in SHARED_IN_FLOW:
                yield source.problem(statement, f"the verb {own} imports the verb {parts[2]}")


# ---------------------------------------------------------------- sizes and names


CODE = ("src", "tests", "scripts", "examples", "bench")


def size_problems(root: Path) -> Iterator[str]:
    for source in sources(root, *CODE):
        lines = source.text.count("\n")
        if lines > MAX_FILE_LINES:
            yield source.problem(1, f"{lines} lines, at most {MAX_FILE_LINES}")
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or node.lineno) - node.lineno + 1
                if size > MAX_FUNCTION_LINES:
                    words = f"{node.name}() has {size} lines, at most {MAX_FUNCTION_LINES}"
                    yield source.problem(node, words)


def name_problems(root: Path) -> Iterator[str]:
    """Modules whose name says nothing."""
    for source in sources(root, *CODE):
        for part in Path(source.place).with_suffix("").parts[1:]:
            if part in NAMELESS:
                yield source.problem(1, f"{part} could hold anything; name what it holds")


def mirror_problems(root: Path) -> Iterator[str]:
    """Layers that are tested by themselves, but have no tests under their name."""
    for layer in ("model", "flow", "wire", "images", "node"):
        modules = [s for s in package(root) if s.layer == layer and s.path.stem != "__init__"]
        if modules and not list((root / "tests" / layer).glob("**/test_*.py")):
            yield f"tests/{layer}: no tests, but src/{PACKAGE}/{layer} has modules"


def docstring_problems(root: Path) -> Iterator[str]:
    """Public things of model and ports that do not say what they are."""
    for source in package(root):
        if source.layer not in {"model", "ports"}:
            continue
        if ast.get_docstring(source.tree) is None:
            yield source.problem(1, "the module has no docstring")
        for node in public_definitions(source.tree, into_classes=source.layer == "ports"):
            if ast.get_docstring(node) is None:
                yield source.problem(node, f"{node.name} has no docstring")


def public_definitions(
    tree: ast.Module | ast.ClassDef, *, into_classes: bool
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if node.name.startswith("_"):
            continue
        yield node
        if isinstance(node, ast.ClassDef) and into_classes:
            yield from public_definitions(node, into_classes=True)


# ---------------------------------------------------------------- states and dangers

SQL_WRITE = re.compile(r"^\s*(UPDATE\s+\w+\s+SET|INSERT\s+INTO|DELETE\s+FROM)\b", re.IGNORECASE)


def state_problems(root: Path) -> Iterator[str]:
    """States that are set by hand, and SQL, outside the stores.

    A state is reached through MOVES alone: a value that the table gave may be kept in a copy, a
    literal one may not. The one literal is the first state of a new attempt.
    """
    for source in package(root):
        if source.layer in {"stores", "wiring"}:
            continue
        for statement, name in imports(source):
            if name.split(".")[0] in {"sqlalchemy", "sqlite3", "psycopg", "alembic"}:
                yield source.problem(statement, f"{name.split('.')[0]} is for the stores alone")
        for node in ast.walk(source.tree):
            words = _state_write(node)
            if words:
                yield source.problem(node, words)


def _state_write(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        text = node.value if isinstance(node.value, str) else ""
        return "SQL is for the stores alone" if SQL_WRITE.match(text) else None
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        wrong = any(_is_attempts_state(one) for one in targets)
        return "a state is written by Records alone" if wrong else None
    if isinstance(node, ast.Call) and called(node) in {"replace", "_replace", "values"}:
        for keyword in node.keywords:
            if keyword.arg == "state" and _is_literal_state(keyword.value):
                return "a state is reached through MOVES, not named"
    return None


def _is_attempts_state(target: ast.expr) -> bool:
    """x.attempt.state = ..., attempt.state = ...; an engine's own notes are its own business."""
    if not (isinstance(target, ast.Attribute) and target.attr == "state"):
        return False
    owner = target.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return name in {"attempt", "job", "view", "entry", "row"}


def _is_literal_state(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str)
    return (
        isinstance(value, ast.Attribute)
        and isinstance(value.value, ast.Name)
        and value.value.id == "State"
    )


def danger_problems(root: Path) -> Iterator[str]:
    """Shells, and ways for data to become code or to leave its directory."""
    for source in sources(root, "src", "scripts"):
        for statement, name in imports(source):
            if name.split(".")[0] in FORBIDDEN_IMPORTS:
                yield source.problem(statement, f"import {name.split('.')[0]}")
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call):
                words = _danger(node)
                if words:
                    yield source.problem(node, words)


def _danger(node: ast.Call) -> str | None:
    name = called(node)
    if isinstance(node.func, ast.Name) and name in FORBIDDEN_NAMES:
        return f"{name}()"
    if isinstance(node.func, ast.Attribute):
        owner = node.func.value
        of_os = isinstance(owner, ast.Name) and owner.id == "os"
        if name in FORBIDDEN_ATTRIBUTES or (of_os and name in FORBIDDEN_IN_OS):
            return f".{name}()"
    for keyword in node.keywords:
        off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        if name in STARTERS and keyword.arg == "shell" and not off:
            return "shell=True"
    return None


def stub_problems(root: Path) -> Iterator[str]:
    """Promises that nothing keeps; a power that only some have is a Protocol of its own."""
    for source in package(root):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Name) and node.id == "NotImplementedError":
                yield source.problem(node, "NotImplementedError")


# ---------------------------------------------------------------- silenced checkers

SILENCERS = (
    re.compile(r"#\s*type:\s*ignore(\[[\w\-, ]+\])?"),
    re.compile(r"#\s*noqa(:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*)?", re.IGNORECASE),
)
WHOLE_FILE = re.compile(r"#\s*(ruff:\s*noqa|flake8:\s*noqa|mypy:\s*ignore)", re.IGNORECASE)


def silencer_problems(root: Path) -> Iterator[str]:
    """Checks that are switched off without a code, or without a reason beside it."""
    for source in sources(root, *CODE):
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type != tokenize.COMMENT:
                continue
            words = _silencer(token.string)
            if words:
                yield source.problem(token.start[0], words)


def _silencer(comment: str) -> str | None:
    if WHOLE_FILE.search(comment):
        return "a whole file is silenced"
    rest, silences = comment, False
    for pattern in SILENCERS:
        match = pattern.search(rest)
        if match:
            silences = True
            if match[1] is None:
                return f"{match[0]} names no check"
            rest = rest.replace(match[0], "")
    if silences and not re.search(r"\w", rest):
        return f"{comment} gives no reason"
    return None


RULES = (
    layer_problems,
    concrete_problems,
    purity_problems,
    cycle_problems,
    verb_problems,
    size_problems,
    name_problems,
    mirror_problems,
    docstring_problems,
    state_problems,
    danger_problems,
    stub_problems,
    silencer_problems,
)
