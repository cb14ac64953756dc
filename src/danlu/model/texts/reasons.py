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
    "not-isolated": (
        (
            "task {task} was not started: it was to be isolated in full (require_isolation), and"
            " {missing} could not be had"
        ),
        "任务 {task} 未启动：要求完全隔离（require_isolation），但无法提供 {missing}",
    ),
    "pids-limit": (
        (
            "task {task} exited with code {exit_code} after it was refused more than the {limit}"
            " processes and threads that its flavor allows"
        ),
        "任务 {task} 因进程和线程数达到规格上限（{limit}）而被拒绝创建后，以退出码 {exit_code} 退出",
    ),
    "out-of-disk": (
        (
            "the disk was full when task {task} worked in {path} ({detail}); free some space, then run"
            " it again; what was stored before is intact"
        ),
        (
            "任务 {task} 在 {path} 中工作时磁盘已满（{detail}）；请释放空间后重新运行；此前已保存的内容"
            "完好"
        ),
    ),
    "stopped": ("stopped by {user}", "被 {user} 停止"),
    "time-limit": (
        "stopped at its time limit of {limit_s} s (spec.auto_stop)",
        "达到时间上限 {limit_s} 秒（spec.auto_stop）后停止",
    ),
    "lease-ended": (
        "its lease of {minutes} min is over; start it again, or give it a longer lease",
        "{minutes} 分钟的租期已到；可重新启动，或设置更长的租期",
    ),
    "idle": (
        "nothing happened in it for {minutes} min; start it again, or change its idle stop",
        "{minutes} 分钟内没有任何活动；可重新启动，或修改其空闲停止设置",
    ),
    "run-limit": (
        "it ran for {minutes} min, the most that this server allows (notebook_max_run_h)",
        "已运行 {minutes} 分钟，达到本服务器允许的上限（notebook_max_run_h）",
    ),
    "lab-missing": (
        "its environment has no JupyterLab; choose an image that has it, as the built-in ones do",
        "其环境中没有 JupyterLab；请选择带有它的镜像，例如内置镜像",
    ),
    "cell-failed": (
        "cell {cell} of {notebook} failed: {error}",
        "{notebook} 的第 {cell} 个单元格执行失败：{error}",
    ),
    "notebook-failed": (
        "the notebook could not be run: {detail}",
        "无法运行该 Notebook：{detail}",
    ),
    "home-kept": (
        "its home could not be removed: {detail}",
        "无法删除其主目录：{detail}",
    ),
    "input-failed": (
        "input '{name}' could not be staged: {detail}",
        "输入“{name}”无法准备：{detail}",
    ),
    "code-failed": ("the code could not be staged: {detail}", "代码无法准备：{detail}"),
    "environment-failed": (
        "the environment of image {image} could not be made ready: {detail}",
        "镜像 {image} 的环境未能就绪：{detail}",
    ),
    "requirements-failed": (
        "the job's own packages (pip-requirements.txt) could not be installed: {detail}",
        "无法安装作业自带的软件包（pip-requirements.txt）：{detail}",
    ),
    "boot-failed": (
        "the program could not be started: {detail}",
        "无法启动程序：{detail}",
    ),
    "image-failed": (
        "the image '{image}' could not be had: {detail}",
        "无法获取镜像“{image}”：{detail}",
    ),
    "image-unverified": (
        (
            "task {task} was not started: its image does not pass its checks on this flavor: {failed};"
            " see danlu image show, or make it anew"
        ),
        (
            "任务 {task} 未启动：其镜像在该规格上未通过检查：{failed}；请查看 danlu image show，或重新制作该镜像"
        ),
    ),
    "container-failed": (
        "the container could not be started: {detail}",
        "无法启动容器：{detail}",
    ),
    "gpus-missing": (
        (
            "task {task} was not started: it would see {found} GPU(s) and its flavor has {wanted};"
            " see the rows 'GPUs' and 'containers' of danlu doctor"
        ),
        (
            "任务 {task} 未启动：其可见的 GPU 为 {found} 个，而规格要求 {wanted} 个；请查看 danlu doctor 的"
            "“GPU”和“容器”两行"
        ),
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
    "rebooted": (
        "the machine of task {task} was restarted while it ran",
        "任务 {task} 运行期间，其所在机器被重启",
    ),
    "preempted": (
        "its place was taken away at the request of {user}",
        "应 {user} 的要求收回了其资源",
    ),
    "restored": (
        (
            "task {task} ran when a backup was made, and the server was restored from that backup: what"
            " became of it since then is not known here; look at its outputs, then run it again if need"
            " be"
        ),
        (
            "备份时任务 {task} 正在运行，而服务器已从该备份恢复：此后的情况在这里无从得知；请查看其输出，"
            "必要时重新运行"
        ),
    ),
    "hung": (
        "task {task} hung: no log, no I/O and {busy} flat for {seconds} s; stacks are in {path}",
        "任务 {task} 卡死：{seconds} 秒内无日志、无读写，{busy} 不变；调用栈见 {path}",
    ),
    # what a rule about its log adds to that
    "rule-no-retry": (
        "{log_of} printed '{line}', after which the job is not tried again",
        "{log_of} 输出了“{line}”，按规则不再重试",
    ),
    "rule-avoid-node": (
        "{log_of} printed '{line}', after which {avoid} is avoided",
        "{log_of} 输出了“{line}”，按规则避开节点 {avoid}",
    ),
    # why a job waits
    "waiting-retry": (
        "attempt {attempt} begins in {delay_s} s; the one before it ended: {because}",
        "第 {attempt} 次尝试将在 {delay_s} 秒后开始；上一次尝试的结果：{because}",
    ),
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
    "waiting-disk": (
        "nothing new starts while the disk that holds '{path}' is full; free some space there",
        "“{path}”所在的磁盘已满，期间不启动新作业；请释放空间",
    ),
    "waiting-read-only": (
        "nothing new starts while '{path}' cannot be written to (read-only)",
        "“{path}”目前只读、无法写入，期间不启动新作业",
    ),
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
    "is-hung": (
        "running, but nothing has moved in task {task} since {since}; see danlu events",
        "运行中，但任务 {task} 自 {since} 起没有任何动静；请查看 danlu events",
    ),
    "is-stopping": ("stopping", "正在停止"),
    "is-collecting": (
        "its tasks have ended; outputs and logs are being stored",
        "任务已结束，正在保存输出和日志",
    ),
    "is-succeeded": ("completed", "已完成"),
    "is-failed": ("failed", "失败"),
    "is-cancelled": ("cancelled", "已取消"),
    "is-lost": ("lost", "丢失"),
    # why a machine shows no GPU, or a GPU no figures
    "gpu-no-driver": (
        (
            "no NVIDIA driver is installed (libnvidia-ml.so.1 is not there); install it if this machine"
            " has a GPU, then look with nvidia-smi"
        ),
        (
            "未安装 NVIDIA 驱动（找不到 libnvidia-ml.so.1）；若本机有 GPU，请先安装驱动并用 nvidia-smi"
            " 检查"
        ),
    ),
    "gpu-driver-not-loaded": (
        (
            "the NVIDIA driver is installed but not loaded; load it (modprobe nvidia) or restart the"
            " machine"
        ),
        "NVIDIA 驱动已安装但未加载；请加载驱动（modprobe nvidia）或重启机器",
    ),
    "gpu-driver-mismatch": (
        (
            "the NVIDIA library and the loaded kernel driver are of different versions, as after an"
            " upgrade; restart the machine"
        ),
        "NVIDIA 库与已加载的内核驱动版本不一致（常见于升级之后）；请重启机器",
    ),
    "gpu-library-missing": (
        (
            "the Python package nvidia-ml-py cannot be loaded ({detail}); install it with: pip install"
            " nvidia-ml-py"
        ),
        "无法加载 Python 包 nvidia-ml-py（{detail}）；请执行：pip install nvidia-ml-py",
    ),
    "gpu-probe-crashed": (
        (
            "looking for GPUs crashed in the driver's library ({detail}); the server goes on without"
            " GPUs; try nvidia-smi"
        ),
        "在驱动库中查找 GPU 时崩溃（{detail}）；服务器将不使用 GPU 继续运行；请用 nvidia-smi 检查",
    ),
    "gpu-probe-timeout": (
        (
            "the NVIDIA driver did not answer within {limit_s} s; the server goes on without GPUs; try"
            " nvidia-smi"
        ),
        "NVIDIA 驱动在 {limit_s} 秒内没有应答；服务器将不使用 GPU 继续运行；请用 nvidia-smi 检查",
    ),
    "gpu-probe-failed": (
        "the NVIDIA driver cannot be asked ({detail}); try nvidia-smi",
        "无法查询 NVIDIA 驱动（{detail}）；请用 nvidia-smi 检查",
    ),
    "gpu-none": (
        (
            "the NVIDIA driver {driver} sees no GPU; check the card, its power, and in a container"
            " that GPUs were passed to it"
        ),
        "NVIDIA 驱动 {driver} 没有发现 GPU；请检查显卡及其供电；若在容器中，请确认已传入 GPU",
    ),
    "gpu-hidden": (
        (
            "CUDA_VISIBLE_DEVICES is '{value}' for the server, which hides all of its {count} GPU(s);"
            " unset it and restart the server"
        ),
        (
            "服务器的 CUDA_VISIBLE_DEVICES 为“{value}”，隐藏了全部 {count} 个 GPU；请取消该变量并重启"
            "服务器"
        ),
    ),
    "gpu-unknown-mig": (
        "the driver does not report how busy a MIG device is",
        "驱动不提供 MIG 设备的忙碌程度",
    ),
    "gpu-unsupported": (
        "the driver does not report this for this GPU",
        "驱动不提供该 GPU 的这一数据",
    ),
    "gpu-lost": (
        (
            "the driver has lost this GPU (fallen off the bus, or taken from the container); restart"
            " the machine or the container"
        ),
        "驱动已失去该 GPU（从总线掉落，或已从容器中移除）；请重启机器或容器",
    ),
    "gpu-reading-failed": (
        "the driver failed to read this GPU ({detail})",
        "驱动读取该 GPU 失败（{detail}）",
    ),
}
