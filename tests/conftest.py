"""What holds for every test."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.faults.rows import Results, how, rows

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

# Under nohup, or in the background of a script, signals are ignored, and all that is started gets
# that, too: nothing would end by Ctrl-C or a hang-up.
for number, usual in (
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

RESULTS = pytest.StashKey[Results]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RESULTS] = Results()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test whose docstring names a fault belongs to the faults, wherever it stands."""
    for item in items:
        if rows(_docstring(item)):
            item.add_marker("fault")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    numbers = rows(_docstring(item))
    if numbers and (report.when == "call" or report.outcome != "passed"):
        told = how(_docstring(item))
        item.config.stash[RESULTS].note(numbers, item.nodeid, told, report.outcome)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    wanted = os.environ.get("FAULTS_RESULTS")
    if wanted:
        session.config.stash[RESULTS].write(Path(wanted))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, figures in terminalreporter.config.stash[RESULTS].figures.items():
        terminalreporter.write_line(f"{name}: {json.dumps(figures)}")


@pytest.fixture(scope="session")
def faults(request: pytest.FixtureRequest) -> Results:
    """Takes what the runs of the kill harness measure."""
    return request.config.stash[RESULTS]


def _docstring(item: pytest.Item) -> str | None:
    function = getattr(item, "function", None)
    return function.__doc__ if function is not None else None
