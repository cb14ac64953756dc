"""Sentences of the command line."""

from __future__ import annotations

from danlu.faces.cli.texts.access import ACCESS
from danlu.faces.cli.texts.execute import EXEC
from danlu.faces.cli.texts.images import IMAGES
from danlu.faces.cli.texts.notebooks import NOTEBOOKS
from danlu.faces.cli.texts.recovery import RECOVERY
from danlu.faces.cli.texts.results import RESULTS
from danlu.faces.cli.texts.storage import STORAGE

MESSAGES: dict[str, tuple[str, str]] = {
    **ACCESS,
    **NOTEBOOKS,
    **EXEC,
    **RESULTS,
    **STORAGE,
    # words
    "yes": ("yes", "是"),
    "no": ("no", "否"),
    "default": ("default", "默认"),
    "colon": (": ", "："),
    "separator": (" · ", " · "),
    "request": ("request {id}", "请求号 {id}"),
    "out-of-memory": ("out of memory", "内存耗尽"),
    # mistakes on the command line
    "try-help": ("Try: {command} --help", "请参阅：{command} --help"),
    "usage": ("{detail}", "命令行有误：{detail}"),
    "did-you-mean": ("; did you mean {words}?", "；您是否想输入 {words}？"),
    "command-missing": ("no command is given", "没有给出命令"),
    "no-such-command": ("there is no command '{command}'", "没有命令“{command}”"),
    "no-such-option": ("there is no option '{option}'", "没有选项“{option}”"),
    "option-needs-value": ("option '{option}' needs a value", "选项“{option}”需要一个值"),
    "option-takes-none": ("option '{option}' takes no value", "选项“{option}”不带值"),
    "argument-missing": ("{name} is missing", "缺少 {name}"),
    "argument-extra": ("'{word}' is one argument too many", "多余的参数“{word}”"),
    "bad-choice": ("{name} must be one of {choices}", "{name} 的值应为 {choices} 之一"),
    "bad-number": (
        "{name} must be a whole number from {low} to {high}",
        "{name} 的值应为 {low} 至 {high} 之间的整数",
    ),
    "name-empty": (
        "a name is empty; name a job by its id, the beginning of its id, its name or @last",
        "名称为空；请用作业 ID、ID 的开头、作业名称或 @last 指定作业",
    ),
    "not-utf8": (
        "{what}: '{value}' is not valid UTF-8, and a job can be given only text; put it into a file",
        "{what}：“{value}”不是合法的 UTF-8，作业只能接收文本；请将其写入文件",
    ),
    "assignment": (
        "{option} is '{value}'; write NAME=VALUE with a name before '='",
        "{option} 的值为“{value}”；请写成 NAME=VALUE，“=”前须有名称",
    ),
    "duration": (
        "{option} is '{value}'; write a time such as 90s, 30m, 2h, 1h30m or 1d",
        "{option} 的值为“{value}”；请写成 90s、30m、2h、1h30m、1d 这样的时间",
    ),
    "state-unknown": (
        "--state is '{state}'; the states are {states}",
        "--state 的值为“{state}”；可用的状态有 {states}",
    ),
    "bad-pattern": (
        "--grep is '{pattern}', which is not a regular expression: {detail}",
        "--grep 的值“{pattern}”不是合法的正则表达式：{detail}",
    ),
    "bad-address": (
        "'{api}' is not a server's address; write http://host:port or https://host:port",
        "“{api}”不是服务器地址；请写成 http://host:port 或 https://host:port",
    ),
    "shell-unknown": ("'{shell}' cannot be completed", "不支持补全“{shell}”"),
    # what to run
    "nothing-to-run": (
        (
            "nothing to run: name a script (danlu run train.py), a command (danlu run -- python -m"
            " mine) or a file (danlu run -f job.yaml)"
        ),
        (
            "没有要运行的内容：请给出脚本（danlu run train.py）、命令（danlu run -- python -m mine）或文件"
            "（danlu run -f job.yaml）"
        ),
    ),
    "script-missing": (
        (
            "the script '{script}' does not exist; to run a command, put -- before it: danlu run --"
            " {script} …"
        ),
        "脚本“{script}”不存在；若要运行命令，请在前面加 --：danlu run -- {script} …",
    ),
    "script-is-directory": (
        "'{script}' is a directory; name the script in it (danlu run {script}/train.py)",
        "“{script}”是目录；请给出其中的脚本（danlu run {script}/train.py）",
    ),
    "script-outside": (
        "the script '{script}' is not below --code {code}; choose a directory that holds it",
        "脚本“{script}”不在 --code {code} 之下；请选择包含它的目录",
    ),
    "script-kind": (
        (
            "'{script}' is no .py or .sh file and not executable; make it executable (chmod +x) or run"
            " it with its program: danlu run -- PROGRAM {script}"
        ),
        (
            "“{script}”不是 .py 或 .sh 文件，也不可执行；请加执行权限（chmod +x），或用对应程序运行："
            "danlu run -- PROGRAM {script}"
        ),
    ),
    "notebook-argument": (
        "'{value}' is not of the form --name=value: {notebook} has variables, and no command line",
        "“{value}”不是 --name=value 的形式：{notebook} 只有变量，没有命令行",
    ),
    "option-behind-script": (
        (
            "{option} stands behind {script} and is handed to it; put it before the script if danlu"
            " is meant"
        ),
        "{option} 写在 {script} 之后，会传给脚本；若是 danlu 的选项，请写在脚本之前",
    ),
    "command-empty": (
        "nothing stands behind --; write the command there: danlu run -- python -m mine",
        "-- 之后没有内容；请在其后写上命令：danlu run -- python -m mine",
    ),
    "no-code-script": (
        "--no-code is for commands; a script travels with its directory",
        "--no-code 仅用于命令；脚本会随其目录一同上传",
    ),
    "code-missing": (
        "--code is '{code}', which does not exist; check the path",
        "--code 的目录“{code}”不存在；请检查路径",
    ),
    "code-not-directory": (
        "--code is '{code}', which is not a directory; name the directory that holds the code",
        "--code 的值“{code}”不是目录；请给出代码所在的目录",
    ),
    "path-missing": (
        "{option} is '{path}', which does not exist; check the path",
        "{option} 的路径“{path}”不存在；请检查路径",
    ),
    "path-on-remote": (
        (
            "{option} is '{path}', a path of this machine, and the server is another one; upload the"
            " files to it and pass obs://bucket/key/"
        ),
        (
            "{option} 的值“{path}”是本机路径，而服务器在另一台机器上；请先上传文件并使用"
            " obs://bucket/key/"
        ),
    ),
    "file-and-words": (
        "-f describes the job; leave '{word}' out, or put it into the file",
        "-f 已描述作业；请去掉“{word}”，或写入文件",
    ),
    "file-unreadable": (
        "the file '{path}' cannot be read: {detail}",
        "无法读取文件“{path}”：{detail}",
    ),
    "file-too-large": (
        (
            "the file '{path}' is larger than {limit} bytes; a job file describes a job, data goes"
            " into inputs"
        ),
        "文件“{path}”超过 {limit} 字节；作业文件只描述作业，数据请作为输入传入",
    ),
    "file-bad": (
        "the file '{path}' cannot be understood: {detail}",
        "无法解析文件“{path}”：{detail}",
    ),
    "yaml-missing": (
        (
            "reading YAML needs PyYAML, which is not installed; install it (pip install pyyaml), or"
            " write the file as JSON and call it .json"
        ),
        "读取 YAML 需要 PyYAML，但尚未安装；请安装（pip install pyyaml），或改用 .json 文件",
    ),
    "field-not-object": ("'{field}' in the file is not an object", "文件中的“{field}”不是对象"),
    "field-not-list": ("'{field}' in the file is not a list", "文件中的“{field}”不是列表"),
    "code-credentials": (
        (
            "the code holds what looks like credentials ({paths}); list it in .danluignore to keep it"
            " here"
        ),
        "代码中包含疑似凭证的文件（{paths}）；如不想上传，请写入 .danluignore",
    ),
    "code-sending": (
        "sending the code: {files} files, {size}",
        "正在上传代码：{files} 个文件，{size}",
    ),
    # jobs
    "submitted": ("{name} is job {id}", "{name} 已提交，作业 {id}"),
    "several-tasks": (
        "{count} tasks; this is the log of worker-0 (danlu logs {id} --task worker-1)",
        "共 {count} 个任务；以下为 worker-0 的日志（danlu logs {id} --task worker-1）",
    ),
    "waiting": ("waiting: {why}", "等待中：{why}"),
    "detached": (
        "{name} is still running · back to it: danlu logs -f {id} · stop it: danlu stop {id}",
        "{name} 仍在运行 · 继续查看：danlu logs -f {id} · 停止：danlu stop {id}",
    ),
    "detached-next": (
        "its log: danlu logs -f {id} · stop it: danlu stop {id}",
        "查看日志：danlu logs -f {id} · 停止：danlu stop {id}",
    ),
    "ended-succeeded": ("{name} ({id}) completed in {took}", "{name}（{id}）已完成，用时 {took}"),
    "ended-failed": ("{name} ({id}) failed after {took}", "{name}（{id}）失败，用时 {took}"),
    "ended-cancelled": (
        "{name} ({id}) was stopped after {took}",
        "{name}（{id}）已停止，用时 {took}",
    ),
    "ended-lost": ("{name} ({id}) was lost after {took}", "{name}（{id}）已丢失，用时 {took}"),
    # drills
    "drill-what": (
        "name a job (danlu drill JOB) or a job file (danlu drill -f FILE), and not both",
        "请指定作业（danlu drill JOB）或作业文件（danlu drill -f FILE），二者择一",
    ),
    "drill-no-output": (
        (
            "the job has no output, so nothing of it outlives a kill; give it one (--output) and"
            " write checkpoints there"
        ),
        "作业没有输出，被杀死后什么也留不下；请为它指定输出（--output）并把检查点写入其中",
    ),
    "drill-no-flavor": (
        "no flavor fits this machine; danlu flavors lists them, --flavor chooses one",
        "没有适合本机的规格；danlu flavors 可列出规格，--flavor 可指定规格",
    ),
    "drill-fails-anyway": (
        "the job fails in peace too ({id}): {why}; a drill needs a job that succeeds",
        "作业在不受干扰时也失败（{id}）：{why}；演练需要能成功的作业",
    ),
    "drill-begins": (
        "{kills} kill(s) at moments of seed {seed}; outputs go to places of their own",
        "将按种子 {seed} 选定的时刻杀死 {kills} 次；输出写入单独的位置",
    ),
    "drill-reference": ("first a run in peace: {id}", "先不受干扰地运行一次：{id}"),
    "drill-killed": (
        "kill {number} of {of}, at {share} of the work",
        "第 {number}/{of} 次杀死，完成 {share} 时",
    ),
    "drill-resumed": (
        "it resumes: after each of {kills} kill(s) the job went on ({id})",
        "可以续训：{kills} 次被杀死后，作业都从断点继续（{id}）",
    ),
    "drill-anew": (
        (
            "it does not resume: after a kill the job began anew ({id}); write checkpoints to an output"
            " and load the latest one at the start"
        ),
        "不能续训：被杀死后作业从头开始（{id}）；请把检查点写入输出，并在启动时加载最新的检查点",
    ),
    "drill-untold": (
        "whether it resumes is not told: print step=N or epoch=N as the work goes on ({id})",
        "无法判断能否续训：请在训练过程中打印 step=N 或 epoch=N（{id}）",
    ),
    "drill-failed": (
        "the job did not survive {kills} kill(s) ({id}): {why}",
        "作业没能挺过 {kills} 次杀死（{id}）：{why}",
    ),
    "drill-too-short": (
        "the job ended before it could be killed {wanted} times, only {kills}; let it run longer ({id})",
        "作业在被杀死 {wanted} 次之前已结束，只杀死了 {kills} 次；请让它运行更久（{id}）",
    ),
    "drill-steps": ("steps repeated: {repeated} of {steps}", "重复的步数：{repeated} / {steps}"),
    "drill-time": (
        "time lost: {lost} s; in peace it takes {whole} s",
        "损失的时间：{lost} 秒；不受干扰时需 {whole} 秒",
    ),
    "drill-found": ("files found by later attempts: {found}", "后续尝试找到的文件：{found}"),
    "drill-no-loss": (
        "no loss to compare: print loss=… beside the step",
        "没有可比较的损失：请与步数一起打印 loss=…",
    ),
    "drill-loss": (
        "loss compared at {compared} step(s): at most {gap} apart, {share} of its range",
        "在 {compared} 步上比较了损失：最多相差 {gap}，占其范围的 {share}",
    ),
    "stopping": (
        "{name} ({id}) will stop; it is {state} now",
        "{name}（{id}）将停止；目前：{state}",
    ),
    "stopped": ("{name} ({id}) has ended: {state}", "{name}（{id}）已结束：{state}"),
    "deleted": ("{name} ({id}) was deleted", "{name}（{id}）已删除"),
    "rm-ask": ("Delete {jobs} with all logs? [y/N]", "确定删除 {jobs} 及其全部日志？[y/N]"),
    "rm-needs-yes": (
        "nobody is at the terminal to confirm; give --yes to delete",
        "没有终端可供确认；请加 --yes 以删除",
    ),
    "no-jobs": (
        "no jobs; danlu run train.py submits one",
        "没有作业；可用 danlu run train.py 提交",
    ),
    "no-recent-jobs": (
        "no job is live and none ended in the last day; danlu ps -a lists all {total}",
        "没有运行中或最近一天内结束的作业；danlu ps -a 可列出全部 {total} 个",
    ),
    # the server
    "server-started": (
        "the server is up at {api}; danlu down stops it",
        "服务器已启动：{api}；可用 danlu down 停止",
    ),
    "server-runs": ("the server runs already at {api}", "服务器已在运行：{api}"),
    "server-flags-unused": (
        "{flags} counts at a start only; for another address: danlu down, then danlu up {flags}",
        "{flags} 仅在启动时有效；如需更换地址：先 danlu down，再 danlu up {flags}",
    ),
    "replay-output": (
        (
            "output '{name}' of the job went to {url}, which a second run would write over; give it"
            " another place: --output {name}=PATH"
        ),
        "作业的输出“{name}”位于 {url}，再次运行会将其覆盖；请指定其他位置：--output {name}=路径",
    ),
    "replay-output-unknown": (
        "the job has no output '{name}'; its outputs are: {outputs}",
        "作业没有输出“{name}”；其输出为：{outputs}",
    ),
    "diff-none": ("nothing differs", "没有不同之处"),
    "columns.diff": ("WHAT|FIRST|SECOND", "项目|第一个|第二个"),
    "output-failed": (
        "the output cannot be written: {detail}; nothing else is wrong, write it somewhere else",
        "无法写出输出：{detail}；其他一切正常，请输出到别处",
    ),
    "server-stopped": ("the server is stopped; jobs go on", "服务器已停止；作业继续运行"),
    "server-not-up": (
        "no server runs on {data}; danlu up starts one",
        "{data} 没有运行中的服务器；可用 danlu up 启动",
    ),
    "server-died": (
        "the server ended before it was ready; its last words ({log}):\n{words}",
        "服务器未就绪便已退出；最后的日志（{log}）：\n{words}",
    ),
    "server-slow": (
        "the server was not ready after {seconds} s and was stopped; its log is {log}",
        "服务器在 {seconds} 秒内未就绪，已停止；日志见 {log}",
    ),
    "server-silent": (
        (
            "a server (process {pid}) has the data directory {data} but does not answer; danlu down"
            " stops it"
        ),
        "数据目录 {data} 的服务器（进程 {pid}）没有响应；可用 danlu down 停止",
    ),
    "server-stays": (
        (
            "the server (process {pid}) has not ended within {seconds} s; look at its log, or end it"
            " with kill -9 {pid} (jobs go on)"
        ),
        "服务器（进程 {pid}）在 {seconds} 秒内未退出；请查看日志，或执行 kill -9 {pid}（作业继续运行）",
    ),
    "server-away": (
        "the server is away ({detail}); trying again",
        "服务器暂时不可用（{detail}）；正在重试",
    ),
    "server-away-watching": (
        "the server is away; the job goes on, and so does this once danlu up has started it",
        "服务器暂时不可用；作业继续运行，服务器恢复后（danlu up）将继续显示",
    ),
    "next-attempt": ("attempt {attempt} follows: {why}", "第 {attempt} 次尝试：{why}"),
    "server-back": ("the server is back", "服务器已恢复"),
    "server-gone": (
        "the server stayed away; the job goes on: danlu logs -f {id}",
        "服务器长时间不可用；作业继续运行：danlu logs -f {id}",
    ),
    "unreachable": (
        "no server can be reached at {api} ({detail}); check the address, or that it runs",
        "无法连接服务器 {api}（{detail}）；请检查地址以及服务器是否运行",
    ),
    "broken": (
        "the connection to {api} was lost ({detail}); try again",
        "与 {api} 的连接中断（{detail}）；请重试",
    ),
    "lost": ("the connection was lost ({detail}); try again", "连接中断（{detail}）；请重试"),
    "not-danlu": (
        "what answers at {api} is not a Danlu server; check the address",
        "{api} 上响应的不是 Danlu 服务器；请检查地址",
    ),
    "server-unknown": (
        "there is no server '{server}' in {path}; it names {known}",
        "{path} 中没有服务器“{server}”；已有 {known}",
    ),
    "keys-missing": (
        (
            "there is no key for {server}; set DANLU_ACCESS_KEY and DANLU_SECRET_KEY, or put"
            " access_key and secret_key into {path}"
        ),
        (
            "缺少 {server} 的密钥；请设置 DANLU_ACCESS_KEY 和 DANLU_SECRET_KEY，或将 access_key 和"
            " secret_key 写入 {path}"
        ),
    ),
    "profiles-open": (
        "{path} holds keys and others may read it; run: chmod 600 {path}",
        "{path} 含有密钥但可被他人读取；请执行：chmod 600 {path}",
    ),
    "profiles-bad": ("{path} cannot be read: {detail}", "无法读取 {path}：{detail}"),
    "data-bad": (
        "the data directory '{data}' cannot be used: {detail}; give another --data",
        "数据目录“{data}”不可用：{detail}；请更换 --data",
    ),
    "unexpected": (
        (
            "this should not have happened: {name}: {detail}; run it again with --debug for the"
            " details"
        ),
        "出现了意外错误：{name}：{detail}；请加 --debug 重新运行以查看细节",
    ),
    # tables
    "columns.ps": ("ID|NAME|STATE|AGE|TIME|FLAVOR|WHY", "ID|名称|状态|提交|用时|规格|原因"),
    "columns.events": ("AT|LEVEL|WHAT", "时间|级别|内容"),
    "hangs": ("hangs", "卡死"),
    "columns.attempts": ("ATTEMPT|STATE|STARTED|TIME|CAUSE|WHY", "次数|状态|开始|用时|类别|原因"),
    "columns.tasks": ("TASK|NODE|STATE|TIME|EXIT", "任务|节点|状态|用时|退出码"),
    "columns.flavors": (
        "ID|CPUS|MEMORY|GPUS|PRICE/H|FITS|",
        "规格|CPU|内存|GPU|每小时价格|可用|",
    ),
    "columns.status": ("SERVER|", "服务器|"),
    "columns.capacity": ("NODE|CPUS FREE|MEMORY FREE|GPUS FREE", "节点|空闲 CPU|空闲内存|空闲 GPU"),
    "columns.config": ("SETTING|VALUE|FROM|MEANING", "设置|值|来源|含义"),
    "columns.doctor": ("CHECK||FOUND", "检查项||结果"),
    "source.default": ("default", "默认"),
    "source.file": ("file", "文件"),
    "source.environment": ("environment", "环境变量"),
    "source.flag": ("flag", "命令行"),
    "status.api": ("address", "地址"),
    "status.version": ("version", "版本"),
    "status.up": ("up for", "已运行"),
    "status.pid": ("process", "进程"),
    "status.data": ("data", "数据目录"),
    "status.engine": ("engine", "执行引擎"),
    "status.environment": ("environment", "默认环境"),
    "status.jobs": ("jobs", "作业"),
    "status.problem": ("problem", "问题"),
    "status.no-jobs": ("none", "无"),
    **IMAGES,
    **RECOVERY,
    # show
    "show.id": ("id", "ID"),
    "show.name": ("name", "名称"),
    "show.state": ("state", "状态"),
    "show.why": ("why", "原因"),
    "show.command": ("runs", "运行"),
    "show.flavor": ("flavor", "规格"),
    "show.nodes": ("nodes", "节点数"),
    "show.priority": ("priority", "优先级"),
    "show.attempt": ("attempt", "第几次"),
    "show.retries": ("retries", "重试次数"),
    "show.user": ("user", "用户"),
    "show.description": ("description", "描述"),
    "show.exit": ("exit code", "退出码"),
    "show.image": ("image", "镜像"),
    "show.commit": ("commit", "提交版本"),
    "commit-dirty": (
        "{commit} with uncommitted changes ({diff})",
        "{commit}，含未提交的修改（{diff}）",
    ),
    "show.log": ("log", "日志"),
    "show.created_at": ("submitted", "提交"),
    "show.placed_at": ("placed", "分配资源"),
    "show.launched_at": ("launched", "启动"),
    "show.started_at": ("started", "开始运行"),
    "show.exited_at": ("exited", "退出"),
    "show.ended_at": ("ended", "结束"),
    "show.input": ("input", "输入"),
    "show.output": ("output", "输出"),
    "show.parameter": ("parameter", "参数"),
    # dry run
    "plan.job": ("job      ", "作业      "),
    "plan.flavor": ("flavor   ", "规格      "),
    "plan.home": ("home     ", "主目录    "),
    "plan.cache": ("cache    ", "缓存      "),
    "plan.code": ("code     ", "代码      "),
    "plan.inputs": ("input    ", "输入      "),
    "plan.outputs": ("output   ", "输出      "),
    "plan.cwd": ("  in      ", "  目录    "),
    "plan.argv": ("  runs    ", "  运行    "),
    "plan.mapped": (
        "paths     /home/ma-user and /cache lie elsewhere here; use the variables or arguments",
        "路径      /home/ma-user 和 /cache 在此处位于别处；请使用变量或参数",
    ),
    "plan.unknown": (
        "the engine cannot say beforehand what it would start",
        "该执行引擎无法预先给出启动内容",
    ),
}
