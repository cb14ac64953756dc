"""Help texts: a command under its name, an option under `<command>.<option>` or `.<option>`."""

from __future__ import annotations

from danlu.faces.cli.texts.access_options import ACCESS_OPTIONS
from danlu.faces.cli.texts.execute import EXEC_OPTIONS
from danlu.faces.cli.texts.image_options import IMAGE_OPTIONS
from danlu.faces.cli.texts.notebook_options import NOTEBOOK_OPTIONS
from danlu.faces.cli.texts.storage_options import STORAGE_OPTIONS

OPTIONS: dict[str, tuple[str, str]] = {
    **ACCESS_OPTIONS,
    **EXEC_OPTIONS,
    **IMAGE_OPTIONS,
    **NOTEBOOK_OPTIONS,
    **STORAGE_OPTIONS,
    # the program
    "": (
        "Danlu trains models on your own machines and speaks ModelArts' API.",
        "丹炉：在自己的机器上训练模型，兼容 ModelArts API。",
    ),
    "epilog": (
        "Try: danlu run train.py",
        "试一试：danlu run train.py",
    ),
    "group.jobs": ("Jobs:", "作业："),
    "group.server": ("Server:", "服务器："),
    "group.images": ("Images:", "镜像："),
    "group.machine": ("This machine:", "本机："),
    "heading.usage": ("Usage: ", "用法："),
    "heading.commands": ("Commands:", "命令："),
    "heading.options": ("Options:", "选项："),
    "heading.common": ("Common options:", "通用选项："),
    # common options
    ".help": ("Show this text.", "显示本帮助。"),
    ".version": ("Show the version.", "显示版本。"),
    ".data": (
        "The directory of the local server's data (DANLU_DATA).",
        "本地服务器的数据目录（DANLU_DATA）。",
    ),
    ".server": (
        (
            "Another server: its URL, or its name in servers.json (DANLU_SERVER). Keys come from"
            " DANLU_ACCESS_KEY and DANLU_SECRET_KEY or from that file."
        ),
        (
            "其他服务器：URL，或 servers.json 中的名称（DANLU_SERVER）。密钥取自 DANLU_ACCESS_KEY 和"
            " DANLU_SECRET_KEY，或该文件。"
        ),
    ),
    ".json": ("Print JSON.", "输出 JSON。"),
    ".quiet": ("Print only what was asked for; of jobs, only ids.", "只输出结果；作业只输出 ID。"),
    ".lang": ("Language of texts; by default the locale's.", "文本语言；默认取自区域设置。"),
    ".color": (
        "Colour always, or never; by default on a terminal.",
        "始终或从不使用颜色；默认仅在终端中使用。",
    ),
    ".debug": ("Trace requests and errors to stderr.", "将请求和错误的细节输出到 stderr。"),
    # jobs
    "run": (
        (
            "Run a script or a command as a job.\n\n"
            "danlu run [OPTIONS] SCRIPT [ARGS]...  runs a Python script of your code; what follows it"
            " is handed to it unchanged, so options of danlu stand before it. Its directory is sent"
            " along.\n\n"
            "danlu run [OPTIONS] -- COMMAND [ARGS]...  runs a command in a copy of the current"
            " directory; a single word is a shell line.\n\n"
            "danlu run [OPTIONS] -f FILE  runs the job that a YAML or JSON file describes in"
            " ModelArts' words.\n\n"
            "The log is shown until the job ends; the exit status is then 0 if it has succeeded, and 1 if"
            " it has failed or was stopped. Ctrl-C leaves the job running."
        ),
        (
            "将脚本或命令作为作业运行。\n\n"
            "danlu run [选项] 脚本 [参数]...  运行 Python 脚本；其后的内容原样传给脚本，因此 danlu"
            " 的选项要写在脚本之前。脚本所在目录会一并上传。\n\n"
            "danlu run [选项] -- 命令 [参数]...  在当前目录的副本中运行命令；只有一个词时按 shell"
            " 命令行处理。\n\n"
            "danlu run [选项] -f 文件  运行以 ModelArts 字段描述作业的 YAML 或 JSON 文件。\n\n"
            "日志会一直显示到作业结束；作业成功时退出码为 0，失败或被停止时为 1。按 Ctrl-C 后作业继续运行。"
        ),
    ),
    "run.short": ("Run a script or a command as a job.", "将脚本或命令作为作业运行。"),
    "run.file": (
        "A YAML or JSON file with ModelArts' create body; other options change it.",
        "含 ModelArts 创建请求体的 YAML 或 JSON 文件；其他选项会覆盖其内容。",
    ),
    "run.name": (
        "The job's name: letters, digits, '-' and '_' (default: the script's).",
        "作业名称：字母、数字、“-”和“_”（默认取脚本名）。",
    ),
    "run.flavor": (
        "The machine shape of each task; danlu flavors lists them.",
        "每个任务的规格；可用 danlu flavors 查看。",
    ),
    "run.image": (
        "Its image: a name or id (danlu image ls), a lock's file; registry/name:tag for containers.",
        "作业所用的镜像：名称或 ID（见 danlu image ls），或锁文件；容器引擎上为 registry/name:tag。",
    ),
    "run.packages": (
        "A package beside those of pip-requirements.txt, such as einops>=0.8; repeatable.",
        "在 pip-requirements.txt 之外安装的软件包，如 einops>=0.8；可重复。",
    ),
    "run.override_image": (
        "Let packages replace torch and what follows from it in the image: another image.",
        "允许软件包替换镜像中的 torch 及由其决定的内容（得到另一个镜像）。",
    ),
    "run.nodes": ("How many tasks run side by side.", "并行运行的任务数。"),
    "run.inputs": (
        "Data for the script, as --NAME=<directory>: a path of this machine or obs://bucket/key/.",
        "脚本的输入数据，以 --NAME=<目录> 传入：本机路径或 obs://bucket/key/。",
    ),
    "run.outputs": (
        (
            "A directory that is kept, as --NAME=<directory>; without PATH it is kept under"
            " obs://danlu/jobs/."
        ),
        "要保存的输出目录，以 --NAME=<目录> 传入；不写 PATH 时保存在 obs://danlu/jobs/ 下。",
    ),
    "run.prefetch": (
        "Bring what the outputs hold already before the start, to resume from it.",
        "启动前先取回输出目录中已有的内容，以便续训。",
    ),
    "run.params": (
        "A hyper-parameter, as --NAME=VALUE behind the script's own arguments.",
        "超参，以 --NAME=VALUE 追加在脚本参数之后。",
    ),
    "run.envs": ("An environment variable.", "环境变量。"),
    "run.code": (
        "The directory to send along (default: the script's, or the current one).",
        "要上传的代码目录（默认为脚本所在目录或当前目录）。",
    ),
    "run.no_code": ("Send no code along with a command.", "运行命令时不上传代码。"),
    "run.priority": ("3 goes before 1.", "3 优先于 1。"),
    "run.time_limit": (
        "Stop the job after this time: 90s, 30m, 2h, 1d (a number alone is seconds).",
        "超过该时间后停止作业：90s、30m、2h、1d（纯数字为秒）。",
    ),
    "run.grace": (
        "Time between SIGTERM and SIGKILL when the job is stopped (default 30s).",
        "停止作业时 SIGTERM 与 SIGKILL 之间的时间（默认 30s）。",
    ),
    "run.ssh": (
        "Let you in over SSH while it runs, with the keys of your profile (danlu ssh JOB).",
        "运行期间允许您用资料中的密钥经 SSH 登录（danlu ssh 作业）。",
    ),
    "run.require_isolation": (
        (
            "Refuse the job where the server cannot hold it to its flavor and keep it from what is not"
            " its own (danlu doctor says what a machine has)."
        ),
        "若服务器无法将作业限制在规格之内并与他人内容隔离，则拒绝该作业（机器具备的能力见 danlu doctor）。",
    ),
    "run.log_limit": (
        "How many MiB of each task's log are kept: its beginning and its end (server's default 1024).",
        "每个任务的日志保留多少 MiB：开头与结尾（服务器默认 1024）。",
    ),
    "run.stop_signal": (
        "What is sent instead of SIGTERM: SIGINT, SIGHUP, SIGQUIT, SIGUSR1 or SIGUSR2.",
        "代替 SIGTERM 的信号：SIGINT、SIGHUP、SIGQUIT、SIGUSR1 或 SIGUSR2。",
    ),
    "run.retries": (
        (
            "Try again so often when the script fails, runs out of memory or hangs. What the platform"
            " lost is tried again by itself and does not count."
        ),
        "脚本失败、内存不足或卡死时的重试次数。因平台原因中断的作业会自动重试，不计入此次数。",
    ),
    "run.retry_on": (
        (
            "After which causes to try again: user-error, out-of-memory, hang, node, platform,"
            " preemption; or none."
        ),
        "在哪些原因后重试：user-error、out-of-memory、hang、node、platform、preemption；none 表示不重试。",
    ),
    "run.no_retry_log": (
        "Do not try again if the log of a failed attempt has a line with this text (* = any text).",
        "失败的尝试若日志中某行含此文本（* 代表任意文本），则不再重试。",
    ),
    "run.avoid_node_log": (
        "The same, but try again on another node.",
        "同上，但改在其他节点上重试。",
    ),
    "run.hang_after": (
        (
            "After how long without log, without I/O and with flat use of GPU or CPU a task is taken to"
            " hang; 0 never. Its stacks are recorded, and the events say so."
        ),
        "任务无日志、无读写且 GPU 或 CPU 占用不变达多久后视为卡死；0 表示不检测。届时记录调用栈并写入事件。",
    ),
    "run.on_hang": (
        "What to do then: notify (default), stop, or restart, which needs --retries.",
        "视为卡死后：notify（默认，仅通知）、stop 或 restart（需要 --retries）。",
    ),
    "run.description": ("A sentence to go with the job.", "作业描述。"),
    "run.detach": (
        "Print the job's id and leave; do not show the log.",
        "输出作业 ID 后立即返回，不显示日志。",
    ),
    "run.dry_run": (
        "Show what would run, with its arguments, environment and paths; send and start nothing.",
        "只显示将要运行的命令、参数、环境变量和路径；不上传，也不启动。",
    ),
    "ps": (
        "List jobs: those that are live, and those that ended in the last day.",
        "列出作业：运行中的，以及最近一天内结束的。",
    ),
    "ps.every": ("All jobs, however old.", "列出全部作业。"),
    "ps.state": ("Only jobs in these states.", "仅列出处于这些状态的作业。"),
    "ps.name": ("Only jobs of this name.", "仅列出该名称的作业。"),
    "ps.count": (
        "At most N jobs, the latest first (default 20).",
        "最多列出 N 个，最新的在前（默认 20）。",
    ),
    "show": ("Show everything about a job.", "显示作业的全部信息。"),
    "logs": ("Print a job's log.", "输出作业日志。"),
    "logs.follow": (
        "Go on until the job has ended; the exit status is then 0 if it has succeeded, otherwise 1.",
        "持续输出直到作业结束；作业成功时退出码为 0，否则为 1。",
    ),
    "logs.task": (
        "Of a job with several tasks, which one (default worker-0).",
        "多任务作业中的任务名（默认 worker-0）。",
    ),
    "logs.attempt": (
        "The log of an earlier attempt; the latest by default, and with -f all that follow.",
        "查看之前某次尝试的日志；默认为最近一次，使用 -f 时会继续显示之后的各次尝试。",
    ),
    "logs.tail": ("Begin with the last N lines.", "从最后 N 行开始。"),
    "logs.lines": (
        "Only these lines, counted from 1: 100:199, 100:, :99 or 100.",
        "仅输出这些行（从 1 计）：100:199、100:、:99 或 100。",
    ),
    "logs.numbers": ("Put its number in front of each line.", "在每行前加上行号。"),
    "logs.raw": (
        "Byte for byte: control characters and every state of a progress bar.",
        "逐字节输出：保留控制字符以及进度条的每个状态。",
    ),
    "logs.grep": (
        "Only lines in which this regular expression is found.",
        "仅输出匹配该正则表达式的行。",
    ),
    "events": ("Show what happened to a job.", "显示作业的事件。"),
    "events.count": ("Only the last N events.", "仅显示最后 N 条。"),
    "outputs": (
        "List what a job delivered, by its manifests.",
        "按清单列出作业已交付的输出。",
    ),
    "outputs.verify": (
        "Read every file against its manifest (size, SHA-256); exit status 1 if one differs.",
        "逐个文件核对清单（大小、SHA-256）；有差异时退出码为 1。",
    ),
    "replay": (
        (
            "Submit a job once more: same code, data, parameters and environment.\n\n"
            "What it writes goes to places of its own; for an output whose place the job's user had"
            " chosen, --output names another one. danlu diff compares the two afterwards."
        ),
        (
            "再次提交作业：代码、数据、参数和环境均相同。\n\n"
            "输出写到新的位置；若原作业的输出位置由用户指定，请用 --output 给出新位置。之后可用"
            " danlu diff 比较两个作业。"
        ),
    ),
    "replay.name": (
        "The new job's name (default: the same).",
        "新作业的名称（默认与原作业相同）。",
    ),
    "replay.outputs": (
        "Where an output of the job goes this time.",
        "该作业的某个输出此次写到何处。",
    ),
    "replay.detach": ("Do not stay with the job; print its id.", "不等待作业，只输出其 ID。"),
    "diff": (
        (
            "List what differs between two jobs.\n\n"
            "Compared is what was asked for, what they ran on (versions, driver, GPUs) and how they"
            " ended. The exit status is 1 where something differs."
        ),
        (
            "列出两个作业的不同之处。\n\n"
            "比较的内容包括提交的请求、运行环境（版本、驱动、GPU）以及结束情况。有不同之处时退出码为 1。"
        ),
    ),
    "why": ("Say why a job waits, or how it ended.", "说明作业为何等待或如何结束。"),
    "drill": (
        "Kill a job at random points and say whether it resumes.",
        "在随机时刻杀死作业，并报告它能否真正续训。",
    ),
    "drill.file": (
        "A job file instead of an existing job.",
        "用作业文件代替已有作业。",
    ),
    "drill.kills": ("How many times to kill it (default 3).", "杀死的次数（默认 3）。"),
    "drill.seed": ("Choose the same moments as an earlier drill.", "选用与先前演练相同的时刻。"),
    "drill.flavor": (
        "The flavor to run on (default: the smallest, with GPUs if the job's has them).",
        "运行所用规格（默认最小规格；若原作业使用 GPU 则选带 GPU 的最小规格）。",
    ),
    "stop": (
        "Stop jobs: SIGTERM, time to save, SIGKILL.",
        "停止作业：SIGTERM，留出保存时间，再 SIGKILL。",
    ),
    "stop.wait": ("Return when they have ended.", "等待其结束后返回。"),
    "rm": (
        "Delete jobs that have ended, with their logs. Outputs stay.",
        "删除已结束的作业及其日志。输出会保留。",
    ),
    "rm.stop": ("Stop them first if they are live.", "若仍在运行则先停止。"),
    "rm.yes": ("Do not ask.", "不再询问。"),
    "flavors": ("List the machine shapes that jobs can ask for.", "列出作业可用的规格。"),
    # the server
    "up": ("Start the local server in the background.", "在后台启动本地服务器。"),
    "down": ("Stop the local server; jobs go on.", "停止本地服务器；作业继续运行。"),
    "status": ("Show how the server is.", "显示服务器状态。"),
    "serve": ("Run the server in the foreground.", "在前台运行服务器。"),
    "backup": (
        (
            "Copy what the local server keeps to a new directory, while it runs or not.\n\n"
            "The copy holds the records as of one moment, the settings, the key of the secrets, and"
            " with --objects everything in the object store; a manifest names every file with its"
            " size and SHA-256. Environments and the files of tasks are not in it. Records in"
            " PostgreSQL are backed up with pg_dump."
        ),
        (
            "将本地服务器的数据复制到新目录，服务器无需停止。\n\n"
            "备份包含某一时刻的记录、设置和密钥，加 --objects 时还包含全部对象；清单列出每个文件的大小和"
            " SHA-256。不含环境和任务的文件。PostgreSQL 中的记录请用 pg_dump 备份。"
        ),
    ),
    "backup.objects": (
        "Also copy the objects: code, inputs, outputs.",
        "同时复制对象：代码、输入、输出。",
    ),
    "backup.without_key": (
        "Leave out the key of the secrets; the backup is of no use without it.",
        "不包含密钥；没有密钥则备份无法使用。",
    ),
    "restore": (
        (
            "Put a backup in the place of what the local server keeps.\n\n"
            "The server has to be stopped. Every file is verified before anything is changed; a"
            " restore that is killed is finished by the next start. Jobs that ran when the backup was"
            " made and are not there any more are shown as lost."
        ),
        (
            "用备份替换本地服务器的数据。\n\n"
            "须先停止服务器。改动之前会校验每个文件；恢复过程若被中断，下次启动时会继续完成。备份时正在运行"
            "而现已不在的作业会显示为丢失。"
        ),
    ),
    "restore.force": (
        "Replace records that are there; they are kept aside.",
        "替换已有记录；原有内容另行保留。",
    ),
    ".host": (
        "The address to listen on (default 127.0.0.1).",
        "监听地址（默认 127.0.0.1）。",
    ),
    ".port": ("The port to listen on; 0 takes a free one.", "监听端口；0 表示任取空闲端口。"),
    "serve.ready_file": (
        "Where to write address and keys once ready (default: server.json in the data directory).",
        "就绪后写入地址和密钥的文件（默认为数据目录下的 server.json）。",
    ),
    "serve.tls_cert": ("PEM file of the certificate chain.", "证书链 PEM 文件。"),
    "serve.tls_key": ("PEM file of the private key.", "私钥 PEM 文件。"),
    "serve.insecure_bind": (
        "Listen beyond loopback without TLS, because a proxy in front does TLS.",
        "在没有 TLS 的情况下监听非回环地址（由前置代理负责 TLS）。",
    ),
    "serve.default_environment": (
        "The Python environment of jobs that name none.",
        "未指定环境的作业所用的 Python 环境目录。",
    ),
    "serve.log_level": ("How much the server logs.", "服务器日志级别。"),
    # this machine
    "doctor": (
        "Check this machine: driver, CUDA, torch, memory, disk, server.",
        "检查本机：驱动、CUDA 与 torch、内存、磁盘、服务器。",
    ),
    "config": (
        "List the settings of the local server and their sources.",
        "列出本地服务器的全部设置、取值及来源。",
    ),
    "completion": (
        "Print the script that completes commands and job ids in a shell.",
        "输出用于补全命令和作业 ID 的 shell 脚本。",
    ),
}
