"""Texts about notebooks: errors, and the lines of their history."""

from __future__ import annotations

NOTEBOOK_ERRORS: dict[str, tuple[str, str]] = {
    "notebook-missing": (
        "there is no notebook '{notebook}' here; `danlu notebook ls` lists those that there are",
        "不存在 Notebook“{notebook}”；`danlu notebook ls` 可列出现有的 Notebook",
    ),
    "notebook-name": (
        "there is a notebook called '{value}' already; choose another name, or use that one",
        "名为“{value}”的 Notebook 已存在；请换一个名称，或直接使用它",
    ),
    "notebook-state": (
        "notebook '{notebook}' is {state}: it cannot {verb} now; look at it with `danlu notebook show`",
        "Notebook“{notebook}”当前状态为 {state}，不能执行 {verb}；可用 `danlu notebook show` 查看",
    ),
    "notebook-saving": (
        "an image is being made of notebook '{notebook}' already; wait until it is there",
        "正在将 Notebook“{notebook}”保存为镜像；请等待完成",
    ),
    "notebook-not-stopped": (
        (
            "{field} of notebook '{notebook}' can only be changed while it is stopped (it is {state});"
            " stop it first"
        ),
        "只有在停止后才能修改 Notebook“{notebook}”的 {field}（当前为 {state}）；请先停止",
    ),
    "notebook-no-lab": (
        (
            "the environment {environment}, in which notebooks without an image run, has no JupyterLab;"
            " name an image that has it (danlu notebook create --image): there are {images}"
        ),
        (
            "未指定镜像的 Notebook 在环境 {environment} 中运行，而其中没有 JupyterLab；请指定带有它的镜像"
            "（danlu notebook create --image）：可用的有 {images}"
        ),
    ),
    "notebook-idle-most": (
        (
            "this server stops idle notebooks after {most} s at the latest (notebook_max_idle_s), {value}"
            " was asked for; choose less"
        ),
        (
            "本服务器最迟在空闲 {most} 秒后停止 Notebook（notebook_max_idle_s），而请求的是 {value}；"
            "请选择更短的时间"
        ),
    ),
    "notebooks-not-here": (
        "this server's engine cannot run notebooks; use the process or the container engine",
        "本服务器的引擎不能运行 Notebook；请使用 process 或 container 引擎",
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

NOTEBOOK_EVENTS: dict[str, tuple[str, str]] = {
    "progress-place": ("wait for a place", "等待资源"),
    "progress-prepare": ("prepare image, home and data", "准备镜像、主目录和数据"),
    "progress-lab": ("start JupyterLab", "启动 JupyterLab"),
    "notebook-saved": (
        "image {image} made of what is installed in it, by {user}",
        "{user} 已将其中安装的内容保存为镜像 {image}",
    ),
    "notebook-created": ("created by {user}", "由 {user} 创建"),
    "notebook-starting": ("start requested by {user}", "{user} 请求启动"),
    "notebook-ready": (
        "JupyterLab answers after {took_s} s",
        "JupyterLab 已就绪，用时 {took_s} 秒",
    ),
    "notebook-again": (
        "its machine was lost ({because}); it is started again, with the same home",
        "所在机器丢失（{because}）；将以同一主目录重新启动",
    ),
    "notebook-stopping": ("stopping: {because}", "正在停止：{because}"),
    "notebook-stopped": ("stopped; its home stays", "已停止；主目录保留"),
    "notebook-create-failed": ("could not be started: {because}", "无法启动：{because}"),
    "notebook-start-failed": ("could not be started: {because}", "无法启动：{because}"),
    "notebook-error": ("ended though nobody stopped it: {because}", "意外结束：{because}"),
    "notebook-deleting": ("deletion requested by {user}", "{user} 请求删除"),
    "notebook-deleted": ("deleted with its home", "已连同主目录删除"),
    "notebook-delete-failed": ("not deleted: {because}", "未能删除：{because}"),
    "notebook-renewed": (
        "renewed by {user}: a lease of {minutes} min from now (0 = without end)",
        "由 {user} 续期：从现在起 {minutes} 分钟（0 表示不限）",
    ),
    "notebook-held": (
        "held by {user} for {hours} h (process: {pid}) {why}",
        "由 {user} 保持运行 {hours} 小时（进程：{pid}）{why}",
    ),
    "notebook-released": ("no longer held ({user})", "不再保持运行（{user}）"),
    "notebook-hold-over": (
        "process {pid} has ended: no longer held",
        "进程 {pid} 已结束：不再保持运行",
    ),
    "notebook-changed": ("changed: {what}", "已修改：{what}"),
    "notebook-ends-soon": (
        "will be stopped in {left} min: {because}; renew it to keep it",
        "将在 {left} 分钟后停止：{because}；如需继续请续期",
    ),
    "notebook-activity-unknown": (
        "cannot tell whether it is used ({signals}); it is not stopped for idleness meanwhile",
        "无法判断是否在使用（{signals}）；在此期间不会因空闲而停止",
    ),
    "notebook-home-full": (
        "its home holds {used} of {size}; remove what is not needed, or give it more",
        "主目录已使用 {used}（容量 {size}）；请清理或扩容",
    ),
}
