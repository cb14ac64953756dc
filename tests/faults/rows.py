"""The faults by number, and which tests inject them: a docstring that begins `(fault 12)` says so.

A run writes what it found to the file that FAULTS_RESULTS names; the documents are made from it.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import architecture
from tests.services import ROOT

FAULTS = {
    1: ("server killed at random moments", "服务器在随机时刻被杀死"),
    2: ("node agent killed", "节点代理被杀死"),
    3: ("shim killed", "垫片进程被杀死"),
    4: ("server, agent and shim killed together", "服务器、代理与垫片同时被杀死"),
    5: ("killed between commit and spawn", "在提交与启动之间被杀死"),
    6: ("killed between spawn and the first record", "在启动与首条记录之间被杀死"),
    7: ("killed between the program's end and the exit record", "在程序结束与退出记录之间被杀死"),
    8: ("killed between upload and manifest", "在上传与清单之间被杀死"),
    9: ("server stopped and continued", "服务器被挂起后继续"),
    10: ("two servers on one data directory", "两个服务器使用同一数据目录"),
    11: ("the machine restarts", "机器重启"),
    12: ("a pid is used again", "进程号被重用"),
    13: ("a job that double-forks and calls setsid", "作业两次 fork 并调用 setsid"),
    14: ("a job that ignores SIGTERM", "作业忽略 SIGTERM"),
    15: ("a process that cannot be killed", "无法杀死的进程"),
    16: ("fork bomb", "fork 炸弹"),
    17: ("out of memory, main process", "主进程内存耗尽"),
    18: ("out of memory, worker only", "仅工作进程内存耗尽"),
    19: ("disk of the database full", "数据库磁盘已满"),
    20: ("disk of a job full", "作业磁盘已满"),
    21: ("no inodes left", "inode 耗尽"),
    22: ("file system turns read-only", "文件系统变为只读"),
    23: ("input/output error in write or fsync", "写入或 fsync 出现 I/O 错误"),
    24: ("a torn checkpoint", "检查点被截断"),
    25: ("a flipped bit in a checkpoint", "检查点发生位翻转"),
    26: ("a damaged page of the database", "数据库页损坏"),
    27: ("write-ahead log deleted or copied", "预写日志被删除或复制"),
    28: ("database on a network or FUSE file system", "数据库位于网络或 FUSE 文件系统"),
    29: ("another program holds the database's lock", "其他程序持有数据库锁"),
    30: ("killed at each statement of a migration", "在迁移的每条语句处被杀死"),
    31: ("an older program on a newer database", "旧版程序打开新版数据库"),
    32: ("the clock jumps or drifts", "时钟跳变或漂移"),
    33: ("2038, and an hour lived twice", "2038 年与重复的一小时"),
    34: ("the object store is away for a while", "对象存储暂时不可用"),
    35: ("the object store hangs up in mid-body", "对象存储在传输中途断开"),
    36: ("a reply is lost after the write", "写入成功但回复丢失"),
    37: ("an upload that is never completed", "上传始终未完成"),
    38: ("a slow object store", "对象存储很慢"),
    39: ("a mount that no longer answers", "挂载点不再响应"),
    40: ("packets are lost", "丢包"),
    41: ("the network is cut, and heals", "网络中断后恢复"),
    42: ("a client that stops reading a log", "客户端停止读取日志"),
    43: ("a client sends a submission again", "客户端重复提交"),
    44: ("10,000 jobs at once", "同时提交 10,000 个作业"),
    45: ("log flood", "日志洪水"),
    46: ("binary log", "二进制日志"),
    47: ("the container service restarts", "容器服务重启"),
    48: ("a container is removed by hand", "容器被手动删除"),
    49: ("Kubernetes answers with errors", "Kubernetes 返回错误"),
    50: ("a pod is evicted", "Pod 被驱逐"),
    51: ("an image cannot be pulled", "镜像无法拉取"),
    52: ("one rank dies", "某个进程（rank）死亡"),
    53: ("a task hangs", "任务挂起"),
    54: ("a GPU is lost", "GPU 掉卡"),
    55: ("a notebook is stopped as it is used", "Notebook 在使用时被停止"),
    56: ("a user is deleted meanwhile", "用户在期间被删除"),
    57: ("no file descriptors left", "文件描述符耗尽"),
    58: ("the event loop stalls", "事件循环停顿"),
    59: ("a misspelt setting", "拼错的设置"),
    60: ("upgrade while jobs run", "作业运行期间升级"),
}
"""What happens, in English and Chinese, by the numbers that tests name."""

_ROWS = re.compile(r"\((?:[^()]*; )?faults? (\d+(?:, \d+)*)(?:; [^()]*)?\)")


def rows(docstring: str | None) -> list[int]:
    """The faults that a test's docstring says it injects.

    >>> rows("(case 28) (faults 5, 6) Killed in between.")
    [5, 6]
    """
    found = _ROWS.search(docstring or "")
    if not found:
        return []
    return [int(number) for number in re.findall(r"\d+", found[1])]


def how(docstring: str | None) -> str:
    """How a test injects its fault: its docstring without the numbers."""
    plain = re.sub(r"\((?:case|fault)s? \d[^)]*\)", "", docstring or "")
    return " ".join(plain.split()).strip(" :;")


def named() -> dict[str, tuple[list[int], str]]:
    """The tests that inject faults: which, and how; by the name that pytest gives them, without
    parameters.
    """
    return {
        f"{source.place}::{node.name}": (rows(told), how(told))
        for source in architecture.sources(ROOT, "tests")
        for node in _tests(source.tree)
        if rows(told := ast.get_docstring(node))
    }


def _tests(module: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def function(test: str) -> str:
    """A test's name without its parameters."""
    return test.partition("[")[0]


def together(one: Any, other: Any) -> Any:
    """The figures of two runs as those of one: numbers added, lists joined, by their names."""
    if isinstance(one, dict):
        both = {name: together(one[name], other[name]) for name in one.keys() & other.keys()}
        return {**one, **other, **both}
    return one + other


def stamped() -> dict[str, str]:
    """The commit and the day, now."""
    return {"commit": commit(ROOT), "day": time.strftime("%Y-%m-%d", time.gmtime())}


def commit(root: Path) -> str:
    """The commit that is checked out, `+` where the sources differ from it, `?` without git."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", root, *words], check=False, capture_output=True, text=True
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        changed = git("status", "--porcelain", "--", "src", "tests")
        return (git("rev-parse", "--short=10", "HEAD") or "?") + ("+" if changed else "")
    except FileNotFoundError:
        return "?"


@dataclass(slots=True)
class Results:
    """What a run of the faults found."""

    tests: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    stamp: dict[str, str] = field(default_factory=stamped)
    """What was there when the run began."""

    def note(self, numbers: list[int], name: str, told: str, outcome: str) -> None:
        """A test that injects these faults has ended."""
        self.tests.append({"faults": numbers, "test": name, "how": told, "outcome": outcome})

    def add(self, name: str, figures: dict[str, Any]) -> None:
        """One more run of what `name` counts."""
        mine = self.figures.get(name)
        self.figures[name] = together(mine, figures) if mine else figures

    def write(self, path: Path) -> None:
        """Publish what was found, with the commit and the day. What this run did not run keeps
        what an earlier one found.
        """
        before = json.loads(path.read_text("utf-8")) if path.exists() else {}
        stamp = self.stamp
        figures = {
            name: {**one, **stamp, "machine": machine()} for name, one in self.figures.items()
        }
        ran = {function(one["test"]) for one in self.tests}
        kept = [one for one in before.get("tests", []) if function(one["test"]) not in ran]
        tests = [*kept, *({**one, **stamp} for one in self.tests)]
        found = {
            "figures": {**before.get("figures", {}), **figures},
            "tests": sorted(tests, key=lambda one: (one["faults"], one["test"])),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


def machine() -> str:
    """What the figures were measured on."""
    system = f"{platform.system()} {platform.release()}"
    load = os.getloadavg()[2]  # of 15 minutes: what else ran there
    return f"{os.cpu_count()} × CPU, {system}, Python {platform.python_version()}, load {load:.0f}"
