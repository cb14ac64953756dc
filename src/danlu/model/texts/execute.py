"""Texts about commands in running jobs: errors, and what a job's history says of them."""

from __future__ import annotations

EXEC_ERRORS: dict[str, tuple[str, str]] = {
    "exec-not-running": (
        "{task} does not run, so no command can be run in it; commands are for running jobs",
        "{task} 不在运行，无法在其中执行命令；只能在运行中的作业里执行命令",
    ),
    "exec-job-not-running": (
        "job '{job}' does not run ({state}), so no command can be run in it; commands are for running jobs",
        "作业“{job}”不在运行（{state}），无法在其中执行命令；只能在运行中的作业里执行命令",
    ),
    "exec-unsupported": (
        "this server's engine cannot run commands in jobs",
        "该服务器的引擎不支持在作业中执行命令",
    ),
    "exec-too-many": (
        "{count} commands run in jobs already, which is the most at one time; end one and try again",
        "作业中已有 {count} 个命令在执行，已达同时执行的上限；请结束其中一个后重试",
    ),
    "websocket-only": (
        "{path} is spoken over a WebSocket; send the request with 'Upgrade: websocket'",
        "{path} 使用 WebSocket 通信；请在请求中带上“Upgrade: websocket”",
    ),
    "websocket-none": (
        "{path} is not spoken over a WebSocket; send the request without 'Upgrade'",
        "{path} 不使用 WebSocket；请去掉请求中的“Upgrade”",
    ),
}

EXEC_EVENTS: dict[str, tuple[str, str]] = {
    "doors-closed": (
        "the container cannot reach the server's storage and API: {detail}",
        "容器无法访问服务器的存储和 API：{detail}",
    ),
    "exec-started": ("{user} runs '{command}' in it", "{user} 在其中执行“{command}”"),
    "exec-ended": (
        "'{command}' of {user} ended with code {exit_code}",
        "{user} 执行的“{command}”以退出码 {exit_code} 结束",
    ),
    "exec-left": (
        "'{command}' of {user} was ended: nobody waited for it any more",
        "{user} 执行的“{command}”已被结束：不再有人等待它",
    ),
}
