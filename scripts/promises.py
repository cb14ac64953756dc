"""What the last fault run found, as tables for docs/promises.md; `make faults-long` writes it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.faults import rows

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
        yield say("no run is recorded", "尚无运行记录"), "make faults-long"
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
        yield (
            say(
                "adoption of {jobs} running jobs, slowest of {restarts} restarts".format(**adopted),
                "接管 {jobs} 个运行中作业，{restarts} 次重启中最慢的一次".format(**adopted),
            ),
            say(
                f"{adopted['slowest_s']} s (median {adopted['median_s']} s,"
                f" goal {adopted['goal_s']} s: {_met(adopted)})",
                f"{adopted['slowest_s']} 秒（中位数 {adopted['median_s']} 秒，"
                f"目标 {adopted['goal_s']} 秒：{_met(adopted, chinese=True)}）",
            ),
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
    yield say("seeds", "种子"), ", ".join(map(str, run["seeds"]))
    names = {
        "kills": ("kills", "杀进程"),
        "adoption": ("adoption", "接管"),
        "crowd": ("crowd", "涌入"),
    }
    for name, words in names.items():
        if name in figures:
            what = say(f"run of the {words[0]}", f"{words[1]}测试的运行")
            yield what, f"{_stamp(figures[name])}, {figures[name]['machine']}"


def _stamp(one: dict[str, Any]) -> str:
    """When something was found, and with which program."""
    return f"{one['commit']} {one['day']}"


def _met(adopted: dict[str, Any], *, chinese: bool = False) -> str:
    met = adopted["slowest_s"] <= adopted["goal_s"]
    if chinese:
        return "达到" if met else "未达到"
    return "met" if met else "not met"


def faults(language: str) -> Iterator[tuple[object, str, str, str]]:
    """Rows of the table of faults: number, what happens, how it is injected, result."""
    results: list[dict[str, Any]] = found().get("tests", [])
    tests = rows.named()
    for number, words in rows.FAULTS.items():
        own = {name: told for name, (numbers, told) in tests.items() if number in numbers}
        ran = [one for one in results if rows.function(one["test"]) in own]
        yield (
            number,
            words[language == "zh"],
            " · ".join(_hows(own)) or "–",
            _result(
                ran,
                missing=len(own.keys() - {rows.function(one["test"]) for one in ran}),
                chinese=language == "zh",
            ),
        )


def _hows(tests: Mapping[str, str]) -> list[str]:
    """How the tests inject it; each said once."""
    said: dict[str, None] = {}
    for name, told in sorted(tests.items()):
        plain = name.rpartition("::")[2].removeprefix("test_").replace("_", " ")
        said[told or plain] = None
    return list(said)


OUTCOMES = {
    "passed": ("passed", "通过"),
    "skipped": ("skipped", "跳过"),
    "failed": ("failed", "失败"),
    "missing": ("not run", "未运行"),
}


def _result(ran: Sequence[dict[str, Any]], missing: int, *, chinese: bool) -> str:
    """What became of a fault's tests, and of which program that was said."""
    if not ran and not missing:
        return "尚无测试" if chinese else "no test yet"
    count = Counter(one["outcome"] for one in ran) + Counter(missing=missing)
    said = [f"{count[key]} {words[chinese]}" for key, words in OUTCOMES.items() if count[key]]
    stamps = sorted({_stamp(one) for one in ran})
    return ("，" if chinese else ", ").join(said) + "".join(f" · {one}" for one in stamps)
