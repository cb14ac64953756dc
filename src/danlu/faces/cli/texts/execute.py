"""What `danlu exec` and `danlu shell` say."""

from __future__ import annotations

EXEC: dict[str, tuple[str, str]] = {
    "exec-no-terminal": (
        "-t needs a terminal on stdin and stdout; leave it out, or give -i alone",
        "-t 需要标准输入和标准输出都是终端；请去掉该选项，或只使用 -i",
    ),
    "exec-restart": (
        "the server has ended or is being restarted, and with it this command ({detail}); the job goes on",
        "服务器已退出或正在重启，该命令随之结束（{detail}）；作业不受影响",
    ),
    "exec-lost": (
        "the command's connection was closed: {detail}; the job goes on",
        "与命令的连接已关闭：{detail}；作业不受影响",
    ),
    "exec-job-ended": ("the job has ended, and with it this command", "作业已结束，该命令随之结束"),
}

EXEC_OPTIONS: dict[str, tuple[str, str]] = {
    "exec": (
        (
            "Run a command in a running job.\n\nIt has the job's files, environment, limits and user,"
            " and ends with the job at the latest. Its exit code is that of danlu. What stands behind"
            " -- is the command: danlu exec JOB -- nvidia-smi -L"
        ),
        (
            "在运行中的作业里执行命令。\n\n命令使用作业的文件、环境、资源限制和用户，最迟随作业一起结束；"
            "danlu 的退出码就是命令的退出码。-- 之后为要执行的命令：danlu exec JOB -- nvidia-smi -L"
        ),
    ),
    ".task": (
        "Of a job with several tasks, which one: a number or a name (default 0).",
        "多任务作业中的任务：编号或名称（默认 0）。",
    ),
    "exec.interactive": (
        "Hand on what comes on stdin.",
        "将标准输入传给命令。",
    ),
    "exec.tty": ("Give it a terminal.", "为命令分配终端。"),
    "shell": (
        "Open a shell in a running job; where stdin is no terminal, it reads a script from there.",
        "在运行中的作业里打开 shell；标准输入不是终端时，从中读取脚本。",
    ),
}
