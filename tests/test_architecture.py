"""The tree keeps its own rules, and each rule can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests import architecture
from tests.services import ROOT

Rule = Callable[[Path], Iterator[str]]


@pytest.mark.parametrize("rule", architecture.RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps(rule: Rule) -> None:
    problems = list(rule(ROOT))

    assert not problems, "\n".join(["", *problems])


def broken(rule: Rule, root: Path, files: Mapping[str, str]) -> list[str]:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(rule(root))


LONG = "def long():\n" + "    x = 1\n" * 60

SAMPLES: list[tuple[Rule, str, str, str]] = [
    (
        architecture.layer_problems,
        "src/danlu/model/job.py",
        "from danlu.flow.submit import submit",
        "src/danlu/model/job.py:1: model imports flow (danlu.flow.submit.submit)",
    ),
    (
        architecture.layer_problems,
        "src/danlu/faces/cli/job.py",
        "def run():\n    import danlu.stores.sql",
        "src/danlu/faces/cli/job.py:2: faces imports stores (danlu.stores.sql)",
    ),
    (
        architecture.layer_problems,
        "src/danlu/engines/process.py",
        "from danlu import flow",
        "src/danlu/engines/process.py:1: engines imports flow (danlu.flow)",
    ),
    (
        architecture.layer_problems,
        "src/danlu/settings.py",
        "from danlu.ports.world import Clock",
        "src/danlu/settings.py:1: settings imports ports (danlu.ports.world.Clock)",
    ),
    (
        architecture.layer_problems,
        "src/danlu/wire/obs.py",
        "from . import iam",
        "src/danlu/wire/obs.py:1: import . relative; write it from danlu",
    ),
    (
        architecture.layer_problems,
        "src/danlu/core/job.py",
        "",
        "src/danlu/core/job.py:1: no layer is called core",
    ),
    (
        architecture.concrete_problems,
        "src/danlu/faces/cli/serve.py",
        'ENGINE = "danlu.engines.process:build"',
        "src/danlu/faces/cli/serve.py:1: 'danlu.engines.process:build' belongs into wiring",
    ),
    (
        architecture.purity_problems,
        "src/danlu/model/job.py",
        "import pydantic",
        "src/danlu/model/job.py:1: the model imports pydantic",
    ),
    (
        architecture.purity_problems,
        "src/danlu/model/job.py",
        "from pathlib import Path",
        "src/danlu/model/job.py:1: the model imports pathlib.Path, which is not pure",
    ),
    (
        architecture.purity_problems,
        "src/danlu/model/job.py",
        "import datetime\nat = datetime.datetime.now()",
        "src/danlu/model/job.py:2: the model calls now()",
    ),
    (
        architecture.verb_problems,
        "src/danlu/flow/submit.py",
        "from danlu.flow.place import place",
        "src/danlu/flow/submit.py:1: the verb submit imports the verb place",
    ),
    (
        architecture.size_problems,
        "src/danlu/flow/submit.py",
        "x = 1\n" * 501,
        "src/danlu/flow/submit.py:1: 501 lines, at most 500",
    ),
    (
        architecture.size_problems,
        "tests/flow/test_submit.py",
        LONG,
        "tests/flow/test_submit.py:1: long() has 61 lines, at most 60",
    ),
    (
        architecture.name_problems,
        "src/danlu/flow/utils.py",
        "",
        "src/danlu/flow/utils.py:1: utils could hold anything; name what it holds",
    ),
    (
        architecture.name_problems,
        "src/danlu/common/job.py",
        "",
        "src/danlu/common/job.py:1: common could hold anything; name what it holds",
    ),
    (
        architecture.mirror_problems,
        "src/danlu/flow/submit.py",
        "",
        "tests/flow: no tests, but src/danlu/flow has modules",
    ),
    (
        architecture.docstring_problems,
        "src/danlu/model/job.py",
        '"""Jobs."""\nclass Job:\n    pass',
        "src/danlu/model/job.py:2: Job has no docstring",
    ),
    (
        architecture.docstring_problems,
        "src/danlu/ports/engine.py",
        '"""Seam."""\nclass Engine:\n    """Runs tasks."""\n    def stop(self): ...',
        "src/danlu/ports/engine.py:4: stop has no docstring",
    ),
    (
        architecture.state_problems,
        "src/danlu/flow/stop.py",
        "def stop(attempt):\n    attempt.state = after(attempt.state, event)",
        "src/danlu/flow/stop.py:2: a state is written by Records alone",
    ),
    (
        architecture.state_problems,
        "src/danlu/flow/stop.py",
        "attempt = replace(attempt, state=State.LOST)",
        "src/danlu/flow/stop.py:1: a state is reached through MOVES, not named",
    ),
    (
        architecture.state_problems,
        "src/danlu/faces/http/job.py",
        "run(\"update attempts set state = 'lost'\")",
        "src/danlu/faces/http/job.py:1: SQL is for the stores alone",
    ),
    (
        architecture.state_problems,
        "src/danlu/flow/stop.py",
        "from sqlalchemy import update",
        "src/danlu/flow/stop.py:1: sqlalchemy is for the stores alone",
    ),
    (
        architecture.danger_problems,
        "src/danlu/node/stage.py",
        "import pickle",
        "src/danlu/node/stage.py:1: import pickle",
    ),
    (
        architecture.danger_problems,
        "src/danlu/node/stage.py",
        "tar.extractall(place)",
        "src/danlu/node/stage.py:1: .extractall()",
    ),
    (
        architecture.danger_problems,
        "src/danlu/node/stage.py",
        "subprocess.run(line, shell=want)",
        "src/danlu/node/stage.py:1: shell=True",
    ),
    (
        architecture.danger_problems,
        "src/danlu/node/stage.py",
        "os.system(line)",
        "src/danlu/node/stage.py:1: .system()",
    ),
    (
        architecture.danger_problems,
        "scripts/make.py",
        "eval(text)",
        "scripts/make.py:1: eval()",
    ),
    (
        architecture.stub_problems,
        "src/danlu/engines/process.py",
        "def snapshot(self):\n    raise NotImplementedError",
        "src/danlu/engines/process.py:2: NotImplementedError",
    ),
    (
        architecture.silencer_problems,
        "src/danlu/node/stage.py",
        "x = 1  # type: ignore",
        "src/danlu/node/stage.py:1: # type: ignore names no check",
    ),
    (
        architecture.silencer_problems,
        "src/danlu/node/stage.py",
        "x = 1  # type: ignore[misc]",
        "src/danlu/node/stage.py:1: # type: ignore[misc] gives no reason",
    ),
    (
        architecture.silencer_problems,
        "src/danlu/node/stage.py",
        "x = 1  # noqa: S603, S607",
        "src/danlu/node/stage.py:1: # noqa: S603, S607 gives no reason",
    ),
    (
        architecture.silencer_problems,
        "src/danlu/node/stage.py",
        "# ruff: noqa: S603",
        "src/danlu/node/stage.py:1: a whole file is silenced",
    ),
]


@pytest.mark.parametrize(
    ("rule", "path", "text", "problem"),
    SAMPLES,
    ids=[f"{rule.__name__}-{number}" for number, (rule, *_) in enumerate(SAMPLES)],
)
def test_a_broken_sample_is_found(
    tmp_path: Path, rule: Rule, path: str, text: str, problem: str
) -> None:
    assert broken(rule, tmp_path, {path: text}) == [problem]


def test_every_rule_has_a_broken_sample() -> None:
    # Cycles need two files, and have a test of their own.
    shown = {rule for rule, *_ in SAMPLES} | {architecture.cycle_problems}

    assert shown == set(architecture.RULES)


def test_a_cycle_is_found_through_packages_and_late_imports(tmp_path: Path) -> None:
    files = {
        "src/danlu/model/job.py": "from danlu.model import queue",
        "src/danlu/model/queue/__init__.py": "from danlu.model.flavor import Flavor",
        "src/danlu/model/flavor.py": "def late():\n    from danlu.model.job import Job",
        "src/danlu/model/reason.py": "from danlu.model.job import Job",
    }

    assert broken(architecture.cycle_problems, tmp_path, files) == [
        "cycle: danlu.model.flavor -> danlu.model.job -> danlu.model.queue.__init__"
    ]


ALLOWED = {
    "src/danlu/model/job.py": '"""Jobs."""\nfrom pathlib import PurePosixPath\n',
    "src/danlu/flow/loop.py": "from danlu.flow.place import place\n",
    "src/danlu/flow/place.py": "from danlu.flow.board import Board\ntry_ = replace(a, state=s)\n",
    "src/danlu/flow/board.py": "from danlu.ports.records import Records\n",
    "src/danlu/wiring.py": "from danlu.stores import sql\nname = platform.system()\n",
    "src/danlu/stores/sql.py": "import sqlalchemy\n",
    "src/danlu/node/stage.py": "x = 1  # noqa: S603  # the argv is the job's own\n",
    "tests/flow/test_place.py": "",
    "tests/model/test_job.py": "",
    "tests/node/test_stage.py": "",
}


@pytest.mark.parametrize("rule", architecture.RULES, ids=lambda rule: rule.__name__)
def test_what_is_allowed_passes(tmp_path: Path, rule: Rule) -> None:
    assert broken(rule, tmp_path, ALLOWED) == []
