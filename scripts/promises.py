"""The figures of the last fault run, as tables for docs/promises.md; `make faults` writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "docs" / "data" / "faults.json"

INVARIANTS = {
    "lost": ("accepted jobs lost", "已接受却丢失的作业"),
    "doubled": ("submissions that became two jobs", "一次提交变成两个作业"),
    "launched-twice": ("attempts launched twice", "被启动两次的尝试"),
    "overlapping": ("attempts that overlapped", "相互重叠的尝试"),
    "committed-twice": ("ends recorded twice", "重复记录的结束"),
    "final-changed": ("final states that changed", "发生变化的最终状态"),
    "stuck": ("jobs that never ended", "始终没有结束的作业"),
    "outcome-wrong": ("wrong outcomes", "错误的结果"),
    "outputs-wrong": ("outputs incomplete or of another attempt", "不完整或属于其他尝试的输出"),
    "log-wrong": ("logs with a line missing or twice", "缺行或重复行的日志"),
    "work-repeated": (
        "steps done twice though no shim was killed",
        "垫片未被杀死却重复执行的步数",
    ),
    "database-damaged": ("integrity checks that failed", "未通过的数据库完整性检查"),
    "survivor": ("processes left behind", "遗留的进程"),
    "server-error": ("answers of 500 and above, 503 excepted", "500 及以上的应答（503 除外）"),
}
"""What the checker of the kill harness looks for, in both languages."""


def found() -> dict[str, Any]:
    """What the last run wrote; empty where there was none."""
    return dict(json.loads(DATA.read_text("utf-8"))) if DATA.exists() else {}


def kills(language: str) -> Iterator[tuple[str, object]]:
    """Rows of the table of figures."""
    chinese = language == "zh"

    def say(english: str, other: str) -> str:
        return other if chinese else english

    data = found()
    figures: dict[str, Any] = data.get("figures", {})
    run, adopted = figures.get("kills"), figures.get("adoption")
    if run is None:
        yield say("no run is recorded", "尚无运行记录"), "make faults"
        return
    yield say("jobs", "作业数"), run["jobs"]
    targets = ", ".join(f"{name} {count}" for name, count in run["kills_by_target"].items())
    yield say("processes killed at random", "随机杀死的进程"), f"{run['kills']} ({targets})"
    if run["points"]:
        least = min(run["points"].values())
        points = say(
            f"{run['kills_at_points']}; each of {len(run['points'])} points at least {least} times",
            f"{run['kills_at_points']}；{len(run['points'])} 个崩溃点每个至少 {least} 次",
        )
        yield say("processes killed at crash points", "在崩溃点杀死的进程"), points
    yield say("steps of work watched", "被见证的训练步数"), run["steps"]
    for name, words in INVARIANTS.items():
        yield words[chinese], f"**{run['violations'].get(name, 0)}**"
    if adopted is not None:
        text = say(
            f"{adopted['p99_s']} s (median {adopted['median_s']} s, {adopted['restarts']} restarts;"
            f" goal {adopted['goal_s']} s: {_met(adopted)})",
            f"{adopted['p99_s']} 秒（中位数 {adopted['median_s']} 秒，"
            f"重启 {adopted['restarts']} 次；目标 {adopted['goal_s']} 秒："
            f"{_met(adopted, chinese=True)}）",
        )
        yield (
            say(
                f"adoption of {adopted['jobs']} running jobs, p99",
                "接管 {jobs} 个运行中作业，p99".format(**adopted),
            ),
            text,
        )
    crowd = figures.get("crowd")
    if crowd is not None:
        yield (
            say("submissions at once", "同时提交"),
            say(
                f"{crowd['submissions']}: {crowd['accepted']} accepted, {crowd['refused']} told to"
                f" come back, none failed, in {crowd['took_s']} s",
                f"{crowd['submissions']}：接受 {crowd['accepted']}，"
                f"要求稍后重试 {crowd['refused']}，无失败，耗时 {crowd['took_s']} 秒",
            ),
        )
    machine = data["machine"]
    yield say("seed", "种子"), run["seed"]
    where = f"{machine['processors']} × CPU, {machine['system']}, Python {machine['python']}"
    yield say("machine", "机器"), where


def _met(adopted: dict[str, Any], *, chinese: bool = False) -> str:
    met = adopted["p99_s"] <= adopted["goal_s"]
    if chinese:
        return "达到" if met else "未达到"
    return "met" if met else "not met"


def faults(language: str) -> Iterator[tuple[object, str, str, str]]:
    """Rows of the table of faults: number, what happens, how it is injected, result."""
    from tests.faults.rows import FAULTS

    tests: list[dict[str, Any]] = found().get("tests", [])
    for number, words in FAULTS.items():
        own = [one for one in tests if number in one["faults"]]
        if own:
            yield number, words[language == "zh"], " · ".join(_hows(own)), _result(own, language)


def _hows(tests: Iterable[dict[str, Any]]) -> list[str]:
    """How the tests inject it; each said once."""
    said: dict[str, None] = {}
    for one in tests:
        name = one["test"].rpartition("::")[2].partition("[")[0].removeprefix("test_")
        said[one["how"] or name.replace("_", " ")] = None
    return list(said)


def _result(tests: list[dict[str, Any]], language: str) -> str:
    passed = sum(one["outcome"] == "passed" for one in tests)
    if passed == len(tests):
        return f"通过（{passed}）" if language == "zh" else f"passed ({passed})"
    skipped = sum(one["outcome"] == "skipped" for one in tests)
    failed = len(tests) - passed - skipped
    if language == "zh":
        return f"通过 {passed}，跳过 {skipped}，失败 {failed}"
    return f"{passed} passed, {skipped} skipped, {failed} failed"
