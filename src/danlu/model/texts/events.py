"""Texts of events: the line in a job's history for each thing that happened to it."""

from __future__ import annotations

from danlu.model.texts.execute import EXEC_EVENTS

EVENTS: dict[str, tuple[str, str]] = {
    **EXEC_EVENTS,
    "job-submitted": ("submitted by {user}", "由 {user} 提交"),
    "job-queued": ("waiting for a place", "等待资源"),
    "job-placed": ("placed on {nodes}", "已分配到 {nodes}"),
    "job-launching": ("starting {tasks} task(s)", "正在启动 {tasks} 个任务"),
    "job-running": ("all tasks run", "所有任务已运行"),
    "job-stopping": (
        "stopping: {because}; SIGTERM was sent, SIGKILL follows after {grace_s} s",
        "正在停止：{because}；已发送 SIGTERM，{grace_s} 秒后发送 SIGKILL",
    ),
    "job-collecting": ("tasks ended; storing outputs and logs", "任务已结束；正在保存输出和日志"),
    "job-succeeded": ("completed in {duration_s} s", "已完成，用时 {duration_s} 秒"),
    "job-failed": ("failed: {because}", "失败：{because}"),
    "job-cancelled": ("cancelled: {because}", "已取消：{because}"),
    "job-lost": ("lost: {because}", "丢失：{because}"),
    "job-retrying": (
        "attempt {attempt} begins in {delay_s} s ({cause}: retry {used} of {most})",
        "第 {attempt} 次尝试将在 {delay_s} 秒后开始（{cause}：第 {used} 次重试，最多 {most} 次）",
    ),
    "retries-used": (
        "no further attempt ({cause}: {used} of {most} retries used)",
        "不再重试（{cause}：重试次数已用 {used}/{most}）",
    ),
    "job-unplaced": ("gave its place back: {because}", "放弃已分配的资源：{because}"),
    "job-deleted": ("deleted by {user}", "由 {user} 删除"),
    "job-adopted": (
        "the server restarted and found the tasks still there",
        "服务器重启后重新接管了任务",
    ),
    "stop-requested": ("stop requested by {user}", "{user} 请求停止"),
    "task-exit": (
        "task {task} exited with code {exit_code}",
        "任务 {task} 以退出码 {exit_code} 退出",
    ),
    "task-signal": ("task {task} was killed by {signal}", "任务 {task} 被信号 {signal} 终止"),
    "task-oom": (
        "task {task} was killed because memory ran out",
        "任务 {task} 因内存耗尽被终止",
    ),
    # notes of the node agent
    "task-runs-on": ("runs on {what}", "运行环境：{what}"),
    "code-staged": (
        "code: {files} file(s), {size} in {dir}",
        "代码：{files} 个文件，{size}，位于 {dir}",
    ),
    "input-staging": (
        "input '{name}': copying {size} from {url}",
        "输入“{name}”：正在从 {url} 复制 {size}",
    ),
    "input-staged": (
        "input '{name}': {files} file(s), {size} from {url} in {took_s} s",
        "输入“{name}”：从 {url} 获取 {files} 个文件，{size}，用时 {took_s} 秒",
    ),
    "input-kept": (
        "input '{name}': {files} file(s), {size} of {url} were on this machine already",
        "输入“{name}”：{url} 的 {files} 个文件（{size}）已在本机",
    ),
    "input-linked": ("input '{name}': {url} is used in place", "输入“{name}”：直接使用 {url}"),
    "staging-progress": (
        "'{name}': {done} copied so far",
        "“{name}”：已复制 {done}",
    ),
    "objects-skipped": (
        (
            "'{name}': {count} object(s) have keys that cannot be file names ({keys}, …); they were left"
            " out"
        ),
        "“{name}”：有 {count} 个对象的键无法作为文件名（{keys} 等），已跳过",
    ),
    "output-skipped": (
        (
            "output '{name}': {count} entries are neither files nor links to files inside it"
            " ({example}, …); they were not stored"
        ),
        "输出“{name}”：有 {count} 项既不是文件，也不是指向其内部文件的链接（{example} 等），未保存",
    ),
    "output-damaged": (
        (
            "output '{name}': {file} is not what was stored (torn, or a bit flipped); {left_out} was left"
            " out, so that the one before it is used"
        ),
        (
            "输出“{name}”：{file} 与所存内容不符（被截断或位翻转）；已略去 {left_out}，以便使用其之前的"
            "检查点"
        ),
    ),
    "output-prefetched": (
        "output '{name}': {files} earlier file(s), {size} fetched from {url}",
        "输出“{name}”：已从 {url} 取回 {files} 个已有文件，{size}",
    ),
    "image-waiting": (
        "image {image}: another job is making its environment; waiting for it",
        "镜像 {image}：另一个作业正在制作其环境，等待中",
    ),
    "image-realising": (
        "image {image}: making its environment of {packages} packages",
        "镜像 {image}：正在用 {packages} 个软件包制作环境",
    ),
    "image-verifying": (
        "image {image}: checking it on {flavor} before its first use there",
        "镜像 {image}：首次用于 {flavor} 之前进行检查",
    ),
    "image-verified": (
        (
            "image {image}: {passed} checks passed on {flavor} after {took_s} s ({warned} with a"
            " warning, {skipped} skipped)"
        ),
        "镜像 {image}：在 {flavor} 上通过 {passed} 项检查，用时 {took_s} 秒（警告 {warned} 项，跳过 {skipped} 项）",
    ),
    "image-verified-before": (
        "image {image}: verified on {flavor} by job {job}, {passed} checks passed, {skipped} skipped",
        "镜像 {image}：已由作业 {job} 在 {flavor} 上检查，通过 {passed} 项，跳过 {skipped} 项",
    ),
    "image-unverified-now": (
        "image {image}: checks failed on {flavor}: {failed}",
        "镜像 {image}：在 {flavor} 上未通过的检查：{failed}",
    ),
    "image-fetching": (
        "image {image}: fetching what is not in the cache",
        "镜像 {image}：正在获取缓存中没有的内容",
    ),
    "image-damaged": (
        (
            "{file} of package {package} is not what its wheel says (the cache was changed or the disk"
            " is bad); it is made anew"
        ),
        "软件包 {package} 的 {file} 与其 wheel 不符（缓存被改动或磁盘损坏），将重新生成",
    ),
    "image-compiling": (
        "image {image}: compiling its modules, once",
        "镜像 {image}：正在编译其模块（仅一次）",
    ),
    "image-ready": (
        "image {image}: its environment is ready after {took_s} s",
        "镜像 {image}：环境已就绪，用时 {took_s} 秒",
    ),
    "image-pulling": ("pulling the image '{image}'", "正在拉取镜像“{image}”"),
    "image-progress": (
        "image '{image}': {done} pulled so far",
        "镜像“{image}”：已拉取 {done}",
    ),
    "image-pulled": (
        "image '{image}' pulled: {done} in {took_s} s",
        "镜像“{image}”拉取完成：{done}，用时 {took_s} 秒",
    ),
    "runtime-away": (
        "the container runtime does not answer ({detail}); waiting for it",
        "容器运行时没有应答（{detail}）；正在等待",
    ),
    "runtime-back": ("the container runtime answers again", "容器运行时已恢复应答"),
    "profile-missing": (
        "the container goes without: {what} (see danlu doctor)",
        "容器缺少以下防护：{what}（详见 danlu doctor）",
    ),
    "requirements-installing": (
        "installing pip-requirements.txt",
        "正在安装 pip-requirements.txt",
    ),
    "requirements-installed": (
        "pip-requirements.txt installed in {took_s} s",
        "pip-requirements.txt 安装完成，用时 {took_s} 秒",
    ),
    "namespaces-missing": (
        (
            "no namespaces of its own ({detail}): it sees the processes of the machine and has no"
            " /tmp and /dev/shm of its own (see danlu doctor)"
        ),
        (
            "没有独立的命名空间（{detail}）：可以看到本机的进程，/tmp 和 /dev/shm 不是独占的"
            "（详见 danlu doctor）"
        ),
    ),
    "view-in-the-way": (
        (
            "no namespaces of its own: its Python environment lies below {literal}, where a job's own"
            " places would be"
        ),
        "没有独立的命名空间：其 Python 环境位于 {literal} 之下，与作业自己的目录冲突",
    ),
    "paths-mapped": (
        (
            "this task cannot have the literal paths of ModelArts: {literal} is {real} here; use the"
            " variables MA_JOB_DIR, MA_MOUNT_PATH and MA_CACHE_DIR or the injected arguments"
        ),
        (
            "该任务无法使用 ModelArts 的固定路径：{literal} 在此处为 {real}；请使用变量 MA_JOB_DIR、"
            "MA_MOUNT_PATH、MA_CACHE_DIR 或注入的参数"
        ),
    ),
    "limits-unenforced": (
        (
            "the flavor's limits are reserved but not enforced here for: {what} (no control group may"
            " be made; see danlu doctor)"
        ),
        "规格的以下限制在此仅预留、不强制执行：{what}（无法创建 cgroup，详见 danlu doctor）",
    ),
    "files-unprotected": (
        (
            "not kept from other files of the server's user, nor from signalling its processes: the"
            " kernel has no Landlock (see danlu doctor)"
        ),
        "未隔离服务器用户的其他文件，也未阻止向其进程发信号：内核没有 Landlock（详见 danlu doctor）",
    ),
    "signals-unprotected": (
        (
            "not kept from signalling other processes of the server's user: the kernel's Landlock is"
            " too old for it (see danlu doctor)"
        ),
        "未阻止向服务器用户的其他进程发信号：内核的 Landlock 版本过旧（详见 danlu doctor）",
    ),
    "worker-out-of-memory": (
        (
            "memory ran out ({limit}): the kernel killed {count} process(es) that the program had"
            " started; the program itself goes on"
        ),
        "内存耗尽（{limit}）：内核终止了程序启动的 {count} 个进程；程序本身继续运行",
    ),
    "pids-refused": (
        (
            "the task has all {limit} processes and threads that its flavor allows; the kernel refuses"
            " it more"
        ),
        "任务的进程和线程数已达规格上限 {limit}，内核拒绝其继续创建",
    ),
    "task-hangs": (
        (
            "nothing moves: no log, no I/O and {busy} flat for {seconds} s; the stacks of {count}"
            " process(es), {python} of them Python's, are in {path}"
        ),
        (
            "没有任何动静：{seconds} 秒内无日志、无读写，{busy} 不变；{count} 个进程的调用栈（其中"
            " {python} 个为 Python 栈）见 {path}"
        ),
    ),
    "log-matched": (
        "a line of the log matches '{match}' ({rule}): {line}",
        "日志中有一行匹配“{match}”（{rule}）：{line}",
    ),
    "no-other-node": (
        "no further attempt: without {nodes} no node could ever hold the job",
        "不再重试：避开 {nodes} 后没有节点能容纳该作业",
    ),
    "task-moves": ("something moves again", "恢复动静"),
    "task-started": ("process {pid} started", "进程 {pid} 已启动"),
    "output-stored": (
        "output '{name}': {files} file(s), {size} stored in {url}",
        "输出“{name}”：{files} 个文件，{size} 已保存到 {url}",
    ),
    "output-retry": (
        "output '{name}' could not be stored ({detail}); trying again",
        "输出“{name}”保存失败（{detail}）；正在重试",
    ),
    "log-stored": ("log stored in {url}", "日志已保存到 {url}"),
    "log-left-open": (
        "a process that outlived the task still held its log; it was closed after {wait_s} s",
        "任务结束后仍有进程占用其日志；{wait_s} 秒后已关闭",
    ),
    "log-dropped": (
        "{size} of the log could not be written (is the disk full?) and are lost",
        "日志有 {size} 无法写入（磁盘是否已满？），已丢失",
    ),
    # in a log, in place of what was dropped
    "log-gap": (
        (
            "[danlu: {size} bytes, {lines} lines were dropped here: the log grew beyond its limit"
            " (log_limit_mib)]"
        ),
        "[danlu：此处略去 {size} 字节、{lines} 行：日志超出上限（log_limit_mib）]",
    ),
    "log-gap-bytes": (
        ("[danlu: {size} bytes were dropped here: the log grew beyond its limit (log_limit_mib)]"),
        "[danlu：此处略去 {size} 字节：日志超出上限（log_limit_mib）]",
    ),
    "leftovers-unkillable": (
        (
            "{count} process(es) of the task cannot be ended; a device or file system does not answer"
            " them"
        ),
        "任务有 {count} 个进程无法终止；某个设备或文件系统对其没有响应",
    ),
    "leftovers-killed": (
        "{count} process(es) outlived the task and were killed",
        "任务结束后仍有 {count} 个进程存活，已终止",
    ),
}
