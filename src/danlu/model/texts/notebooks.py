"""Texts about notebooks: errors, and the lines of their history."""

from __future__ import annotations

NOTEBOOK_ERRORS: dict[str, tuple[str, str]] = {
    "notebook-missing": (
        "there is no notebook '{notebook}' here; `danlu notebook ls` lists those that there are",
        "不存在 Notebook“{notebook}”；`danlu notebook ls` 可列出现有的 Notebook",
    ),
    "endpoint-missing": (
        "nothing listens at '{name}' of this instance; wait until it is ready, or start it",
        "该实例的“{name}”上没有服务在监听；请等待其就绪，或启动它",
    ),
    "endpoint-busy": (
        "'{name}' of this instance takes no connection at the moment; try again",
        "该实例的“{name}”暂时无法接受连接；请稍后重试",
    ),
}
