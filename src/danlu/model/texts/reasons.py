"""Texts of reasons: why a job waits, and why one ended."""

from __future__ import annotations

REASONS: dict[str, tuple[str, str]] = {
    # how an attempt ended
    "completed": ("completed", "已完成"),
    "exit": ("task {task} exited with code {exit_code}", "任务 {task} 以退出码 {exit_code} 退出"),
    "signal": ("task {task} was killed by {signal}", "任务 {task} 被信号 {signal} 终止"),
    "out-of-memory": (
        "task {task} was killed because memory ran out (it had {limit})",
        "任务 {task} 因内存耗尽被终止（可用 {limit}）",
    ),
    "stopped": ("stopped by {user}", "被 {user} 停止"),
    "time-limit": (
        "stopped at its time limit of {limit_s} s (spec.auto_stop)",
        "达到时间上限 {limit_s} 秒（spec.auto_stop）后停止",
    ),
    "input-failed": (
        "input '{name}' could not be staged: {detail}",
        "输入“{name}”无法准备：{detail}",
    ),
    "code-failed": ("the code could not be staged: {detail}", "代码无法准备：{detail}"),
    "requirements-failed": (
        "pip-requirements.txt could not be installed: {detail}",
        "无法安装 pip-requirements.txt：{detail}",
    ),
    "boot-failed": (
        "the program could not be started: {detail}",
        "无法启动程序：{detail}",
    ),
    "output-failed": (
        "the outputs could not be stored: {detail}; what was written is kept in {path}",
        "输出无法保存：{detail}；已写入的内容保留在 {path}",
    ),
    "launch-failed": ("the tasks could not be launched: {detail}", "任务无法启动：{detail}"),
    "agent-lost": (
        "the program that watched task {task} disappeared, and the task with it",
        "监护任务 {task} 的程序消失，任务随之中断",
    ),
    "task-lost": (
        "task {task} disappeared without a record of its end (was the machine restarted?)",
        "任务 {task} 没有留下结束记录便消失（机器是否重启过？）",
    ),
    # why a job waits
    "waiting-ahead": (
        "{ahead} job(s) ahead; the first of them {head} waits because {because}",
        "前面有 {ahead} 个作业；其中最前的 {head} 在等待：{because}",
    ),
    "waiting-resource": (
        "needs {needs}, {free} free until {holders} end(s)",
        "需要 {needs}，目前空闲 {free}，须等待 {holders} 结束",
    ),
    "waiting-nodes": (
        (
            "needs {nodes} × {needs} at the same time; {fit} of them fit now, the rest when {holders}"
            " end(s)"
        ),
        "需要同时获得 {nodes} × {needs}；目前可容纳 {fit} 个，其余须等待 {holders} 结束",
    ),
    "waiting-placing": ("being placed now", "正在分配资源"),
    "waiting-no-node": (
        "no node is up that could ever hold {needs}",
        "没有任何在线节点能容纳 {needs}",
    ),
    "holding": (
        "does not start yet so that {head} ({needs}), which is ahead, is not delayed",
        "暂不启动，以免延误排在前面的 {head}（{needs}）",
    ),
    "jobs-ahead": ("{ahead} job(s) ahead", "前面有 {ahead} 个作业"),
    # what a job that does not wait is doing
    "is-placed": ("has its place and is about to start", "已分配资源，即将启动"),
    "is-launching": (
        "starting: code and inputs are being staged",
        "正在启动：准备代码和输入",
    ),
    "is-running": ("running", "运行中"),
    "is-stopping": ("stopping", "正在停止"),
    "is-collecting": (
        "its tasks have ended; outputs and logs are being stored",
        "任务已结束，正在保存输出和日志",
    ),
    "is-succeeded": ("completed", "已完成"),
    "is-failed": ("failed", "失败"),
    "is-cancelled": ("cancelled", "已取消"),
    "is-lost": ("lost", "丢失"),
}
