"""Help texts of the commands about notebooks."""

from __future__ import annotations

NOTEBOOK_OPTIONS: dict[str, tuple[str, str]] = {
    "group.notebooks": ("Notebooks:", "Notebook："),
    "notebook": (
        "Machines to work at, with a home that stays.",
        "交互式开发环境，主目录持久保留。",
    ),
    "notebook create": (
        (
            "Create a notebook and wait until JupyterLab answers. Its home is ~/work; the rest of the"
            " machine is new at each start. It is stopped when nobody uses it (--idle), or after a time"
            " (--lease)."
        ),
        (
            "创建 Notebook 并等待 JupyterLab 就绪。主目录为 ~/work，其余内容在每次启动时都是全新的。"
            "无人使用时（--idle）或到期后（--lease）自动停止。"
        ),
    ),
    ".flavor": (
        "The machine's shape; danlu flavors lists them.",
        "机器规格；可用 danlu flavors 查看。",
    ),
    ".image": (
        "A name or id (danlu image ls); registry/name:tag for containers.",
        "名称或 ID（见 danlu image ls）；容器引擎上为 registry/name:tag。",
    ),
    ".lease": (
        "Stop it after so long whatever happens in it, 1h to 72h (default: off).",
        "运行多久后一律停止，1h 到 72h（默认 off）。",
    ),
    ".idle": (
        "Stop it after so long without activity; off: never; default: as the server says.",
        "无活动多久后停止；off 表示不停止，default 表示按服务器默认。",
    ),
    ".home": (
        "GiB that its home may hold (default: no limit).",
        "主目录容量，单位 GiB（默认不限）。",
    ),
    ".detach": ("Do not wait.", "不等待。"),
    "notebook create.data_urls": (
        (
            "Data to bring at each start: obs://… or file://…, perhaps with =PATH below /home/ma-user or"
            " /cache."
        ),
        "每次启动时准备的数据：obs://… 或 file://…，可加 =路径（位于 /home/ma-user 或 /cache 下）。",
    ),
    "notebook create.env": ("A variable of its environment.", "环境变量。"),
    "notebook create.description": ("What it is for.", "用途说明。"),
    "notebook create.ssh": (
        "Allow SSH, with the public keys of your profile (danlu key add).",
        "允许以您资料中的公钥通过 SSH 登录（danlu key add）。",
    ),
    ".allow_ip": (
        (
            "Let SSH in from this address or network only, 192.0.2.0/24 or 2001:db8::/32; may be"
            " repeated. any = from anywhere."
        ),
        "仅允许从该地址或网段经 SSH 登录，如 192.0.2.0/24 或 2001:db8::/32；可重复使用。any 表示不限。",
    ),
    "notebook ls": ("List notebooks.", "列出 Notebook。"),
    "notebook show": (
        "Show a notebook: how it is, until when it runs and why, and each sign of its use.",
        "显示 Notebook 的状态、停止时间及原因，以及各项使用迹象。",
    ),
    "notebook open": (
        "Open JupyterLab of a notebook in the browser, by a link that is good once and for a minute.",
        "在浏览器中打开 Notebook 的 JupyterLab；所用链接仅一次有效，且一分钟内有效。",
    ),
    "notebook open.print_only": (
        "Print the link, and start no browser.",
        "只输出链接，不启动浏览器。",
    ),
    "notebook start": (
        "Start a notebook that was stopped, with the home it had.",
        "以原有主目录启动已停止的 Notebook。",
    ),
    "notebook stop": ("Stop a notebook; its home stays.", "停止 Notebook；主目录保留。"),
    "notebook restart": (
        "Stop a notebook if it runs, and start it, perhaps with another flavor or image.",
        "重新启动 Notebook，可同时更换规格或镜像。",
    ),
    "notebook update": (
        "Change a notebook; flavor and image while it is stopped.",
        "修改 Notebook；规格和镜像须在停止后修改。",
    ),
    "notebook update.name": ("Its new name.", "新名称。"),
    "notebook update.description": ("What it is for.", "用途说明。"),
    "notebook renew": (
        (
            "Count a notebook's lease and idleness from now on. TIME is a new lease, off ends it; without"
            " it things stay as they were."
        ),
        "从现在起重新计算租期和空闲时间。TIME 为新的租期，off 表示取消租期；省略时保持原设置。",
    ),
    "notebook hold": (
        "Keep a notebook up for TIME (at most 24h, default 8h): neither lease nor idleness ends it.",
        "在 TIME 内（最长 24h，默认 8h）保持 Notebook 运行，租期和空闲均不会使其停止。",
    ),
    "notebook hold.until_pid": (
        "Only as long as this process of the instance lives.",
        "仅在实例中的该进程存活期间。",
    ),
    "notebook hold.why": ("Shown to whoever asks why it is up.", "显示给查看原因的人。"),
    "notebook hold.release": ("No longer.", "不再保持。"),
    "notebook events": ("List what happened to a notebook.", "列出 Notebook 的历史事件。"),
    "notebook save": (
        (
            "Make an image of what was installed by hand in a notebook. It runs on meanwhile; jobs and"
            " notebooks name the image (--image NAME).\n\n"
            "NAME is of small letters, digits and '-', perhaps with a version (mine-1.2)."
        ),
        (
            "将 Notebook 中手工安装的内容做成镜像。期间 Notebook 照常运行；作业和 Notebook 以名称使用该镜像"
            "（--image 名称）。\n\n"
            "名称由小写字母、数字和“-”组成，可带版本（mine-1.2）。"
        ),
    ),
    "notebook save.short": (
        "Make an image of what was installed by hand in a notebook.",
        "将 Notebook 中手工安装的内容做成镜像。",
    ),
    "notebook save.out": (
        "The directory for its definition (NAME.toml) and lock (NAME.json).",
        "存放定义（名称.toml）和锁文件（名称.json）的目录。",
    ),
    "notebook save.without": (
        "Leave out a package that cannot be pinned, or files (may be given again).",
        "略去一个无法锁定的软件包，或写 files 略去零散文件（可重复）。",
    ),
    "notebook save.description": ("A word about it.", "说明文字。"),
    "notebook rm": (
        "Delete a notebook with its home, for good. Its name has to be typed, or --yes given.",
        "永久删除 Notebook 及其主目录。需输入名称确认，或使用 --yes。",
    ),
    "notebook rm.yes": ("Do not ask.", "不询问。"),
}
