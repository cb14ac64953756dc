"""What backup and restore say."""

from __future__ import annotations

RECOVERY: dict[str, tuple[str, str]] = {
    "backup-made": (
        "Backed up to {path}: {files} files, {size}.",
        "已备份到 {path}：{files} 个文件，共 {size}。",
    ),
    "backup-key": (
        "It holds the key of the secrets: keep it from others.",
        "其中包含密钥：请勿让他人取得。",
    ),
    "backup-no-key": (
        "The key is not in it: keep secret.key of the data directory elsewhere, or it is of no use.",
        "其中不含密钥：请另行保存数据目录中的 secret.key，否则备份无法使用。",
    ),
    "backup-no-objects": (
        "Objects (code, outputs) are not in it: --objects adds them.",
        "其中不含对象（代码、输出）：加 --objects 可一并备份。",
    ),
    "restored": (
        "Restored into {data}: {files} files, as of {when}.",
        "已恢复到 {data}：{files} 个文件，备份时间 {when}。",
    ),
    "restored-aside": (
        "What was there before lies in {path}.",
        "原有内容保留在 {path}。",
    ),
    "restored-no-objects": (
        "The backup has no objects: those of the data directory stay as they are.",
        "该备份不含对象：数据目录中的对象保持不变。",
    ),
    "restored-next": (
        (
            "Start the server: danlu up. Jobs that ran when the backup was made and are not there any"
            " more are shown as lost; those that waited run."
        ),
        "请启动服务器：danlu up。备份时正在运行而现已不在的作业会显示为丢失；当时排队的作业会运行。",
    ),
}
