"""Help texts of the commands about data."""

from __future__ import annotations

STORAGE_OPTIONS: dict[str, tuple[str, str]] = {
    "group.data": ("Data:", "数据："),
    "obs": (
        "Objects: list, copy, compare, remove, share.",
        "对象存储：列举、复制、同步、删除与分享。",
    ),
    ".endpoint": (
        (
            "Another object store: the URL of its S3 endpoint (DANLU_OBS_ENDPOINT). Keys come from"
            " DANLU_ACCESS_KEY and DANLU_SECRET_KEY, or from AWS_ACCESS_KEY_ID,"
            " AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN."
        ),
        (
            "其他对象存储的 S3 地址（DANLU_OBS_ENDPOINT）。密钥取自 DANLU_ACCESS_KEY 和"
            " DANLU_SECRET_KEY，或 AWS_ACCESS_KEY_ID、AWS_SECRET_ACCESS_KEY 和"
            " AWS_SESSION_TOKEN。"
        ),
    ),
    ".recursive": ("All below the directory or prefix.", "处理目录或前缀下的全部内容。"),
    ".dry_run": ("Only list what would be done.", "只列出将要执行的操作。"),
    ".include": (
        (
            "Only names that this pattern fits (repeatable). Without a slash it is for the last"
            " part of a name."
        ),
        "只处理匹配此模式的名称（可重复）；模式不含斜杠时只匹配名称的最后一段。",
    ),
    ".exclude": (
        "No names that this pattern fits (repeatable).",
        "不处理匹配此模式的名称（可重复）。",
    ),
    ".follow_links": (
        "Copy what links lead to. Otherwise links are left out.",
        "复制链接所指的内容；否则跳过链接。",
    ),
    ".limit_rate": (
        "The most that moves in a second, all transfers together: 500K, 10M, 1.5G.",
        "每秒传输总量的上限：500K、10M、1.5G。",
    ),
    ".threads": ("How many files move at once (default 16).", "同时传输的文件数（默认 16）。"),
    "obs ls": (
        (
            "List buckets, or what lies below a prefix.\n\n"
            "PLACE is obs://bucket/key, s3://bucket/key, /bucket/key or bucket/key."
        ),
        (
            "列出桶，或前缀下的内容。\n\n"
            "PLACE 的写法：obs://bucket/key、s3://bucket/key、/bucket/key 或 bucket/key。"
        ),
    ),
    "obs ls.short": ("List buckets, or what lies below a prefix.", "列出桶，或前缀下的内容。"),
    "obs cp": (
        (
            "Copy a file or an object, or with -r all below a directory or prefix.\n\n"
            "One side is obs://bucket/key, the other a path, or both are objects. A destination"
            " that ends in / is a directory. Large files move in parts; when a run is killed, the"
            " same command goes on where it was, and nothing partial has the final name."
        ),
        (
            "复制一个文件或对象；加 -r 时复制目录或前缀下的全部内容。\n\n"
            "一侧为 obs://bucket/key，另一侧为本地路径，或两侧均为对象。以 / 结尾的目标表示目录。"
            "大文件分段传输；进程被杀死后，重新执行同一命令即可续传，最终名称下不会出现不完整的内容。"
        ),
    ),
    "obs cp.short": ("Copy files and objects.", "复制文件和对象。"),
    "obs sync": (
        (
            "Copy what is new or has changed below a directory or prefix.\n\n"
            "A file has changed when its size is another one or the source is newer; --checksum"
            " compares contents."
        ),
        (
            "复制目录或前缀下新增或有变化的内容。\n\n"
            "大小不同或源较新即视为有变化；--checksum 比较内容。"
        ),
    ),
    "obs sync.short": ("Copy what is new or has changed.", "复制新增或有变化的内容。"),
    "obs sync.delete": (
        "Remove from the destination what the source does not have.",
        "删除目标中源所没有的内容。",
    ),
    "obs sync.checksum": (
        "Compare contents, not times. Every file is read.",
        "比较内容而不是时间；会读取每个文件。",
    ),
    "obs mv": (
        "Copy, and remove each file or object from where it was once it has arrived.",
        "复制，并在每个文件或对象到达后从原处删除。",
    ),
    "obs rm": (
        "Remove an object, or with -r all below a prefix.",
        "删除一个对象；加 -r 时删除前缀下的全部对象。",
    ),
    "obs rm.yes": ("Allow -r for a whole bucket.", "允许用 -r 清空整个桶。"),
    "obs du": ("Count the objects below a prefix and their size.", "统计前缀下的对象数和总大小。"),
    "obs mb": ("Make a bucket.", "创建桶。"),
    "obs presign": (
        "Print a URL that gives whoever has it one object for a while.",
        "输出一个在一段时间内可直接访问某个对象的 URL。",
    ),
    "obs presign.expires": (
        "For how long: 90s, 30m, 12h, 7d (default 1h).",
        "有效期：90s、30m、12h、7d（默认 1h）。",
    ),
    "cache": (
        "Data sets that stay on this machine for the next job that reads them.",
        "为后续作业保留在本机的数据集。",
    ),
    "cache ls": (
        "List them: size, last use, and how many tasks use them now.",
        "列出数据集：大小、最近使用时间、当前使用的任务数。",
    ),
    "cache rm": (
        "Remove data sets that no task uses (the first digits of a digest are enough).",
        "删除没有任务使用的数据集（摘要的前几位即可）。",
    ),
    "cache gc": (
        "Remove what was used longest ago and is not in use.",
        "清除最久未用且当前未被使用的数据集。",
    ),
    "cache gc.to": (
        "Until no more than that is left: 500M, 20G (default: remove all that is unused).",
        "清除到不超过此大小：500M、20G（默认清除全部未用的）。",
    ),
    "obs presign.put": ("For writing the object, not reading it.", "用于写入对象而不是读取。"),
}
