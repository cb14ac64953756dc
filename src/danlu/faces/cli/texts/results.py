"""What is said of logs and outputs, in English and in Chinese, by key."""

from __future__ import annotations

RESULTS: dict[str, tuple[str, str]] = {
    "bad-lines": (
        "'{value}' names no lines; write --lines 100:199, 100:, :99 or 100",
        "“{value}”不是行范围；请写成 --lines 100:199、100:、:99 或 100",
    ),
    "lines-alone": (
        "--lines goes neither with --tail nor with --follow; use one of them",
        "--lines 不能与 --tail 或 --follow 同用；请只选其一",
    ),
    "log-gap": (
        "[danlu: {bytes} bytes, {lines} lines were dropped here: the log grew beyond its limit]",
        "[danlu：此处略去 {bytes} 字节、{lines} 行：日志超出上限]",
    ),
    "log-gap-bytes": (
        "[danlu: {bytes} bytes were dropped here: the log grew beyond its limit]",
        "[danlu：此处略去 {bytes} 字节：日志超出上限]",
    ),
    "output.missing": ("is not there", "不存在"),
    "output.size": ("has another size than was delivered", "大小与交付时不同"),
    "output.content": ("has other content than was delivered", "内容与交付时不同"),
    "output.unreadable": ("cannot be read", "无法读取"),
    "outputs-good": (
        "{files} file(s) read, all as they were delivered",
        "已读取 {files} 个文件，均与交付时一致",
    ),
    "outputs-damaged": (
        "{files} file(s) read, {bad} not as they were delivered",
        "已读取 {files} 个文件，其中 {bad} 个与交付时不一致",
    ),
    "outputs-undelivered": (
        "{count} output(s) were not delivered: what lies there is from during the run",
        "有 {count} 个输出未交付：其中的文件为运行期间所存",
    ),
    "columns.outputs": (
        "OUTPUT|TASK|STATE|ATTEMPT|FILES|SIZE|PLACE",
        "输出|任务|状态|尝试|文件数|大小|位置",
    ),
}
