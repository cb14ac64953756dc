"""What the commands about data say."""

from __future__ import annotations

STORAGE: dict[str, tuple[str, str]] = {
    # mistakes
    "obs-scheme": (
        "'{value}' is no place in an object store; write obs://bucket/key or s3://bucket/key",
        "“{value}”不是对象存储中的位置；请写成 obs://bucket/key 或 s3://bucket/key",
    ),
    "obs-place": (
        "'{value}' names no bucket and key (of at most 1024 bytes); write obs://bucket/key",
        "“{value}”没有给出桶和对象键（键最长 1024 字节）；请写成 obs://bucket/key",
    ),
    "obs-bucket": (
        "'{value}' is not the name of a bucket; write obs://bucket",
        "“{value}”不是桶名；请写成 obs://bucket",
    ),
    "obs-two-local": (
        "neither '{source}' nor '{dest}' is in an object store; write one as obs://bucket/key",
        "“{source}”和“{dest}”都不在对象存储中；请将其中之一写成 obs://bucket/key",
    ),
    "obs-recursive": (
        "{place} is a directory or prefix; add -r for all below it",
        "{place} 是目录或前缀；加 -r 处理其下的全部内容",
    ),
    "obs-not-directory": (
        "{path} is not a directory; copy one file without -r",
        "{path} 不是目录；复制单个文件时请去掉 -r",
    ),
    "obs-file": ("{path}: {detail}", "{path}：{detail}"),
    "obs-missing": (
        "there is nothing at {place}; danlu obs ls shows what there is",
        "{place} 处没有内容；可用 danlu obs ls 查看已有内容",
    ),
    "obs-below": (
        "there is no object {place}, but there are some below it; -r takes all of them",
        "没有名为 {place} 的对象，但其下有对象；用 -r 可处理全部",
    ),
    "obs-rate": (
        "'{value}' is not a size; write 500K, 10M or 1.5G",
        "“{value}”不是大小；请写成 500K、10M 或 1.5G",
    ),
    "obs-expires": (
        "--expires {value} is longer than {days} days, the most that a signed URL is good for",
        "--expires 的值 {value} 超过了签名 URL 的最长有效期 {days} 天",
    ),
    "obs-whole-bucket": (
        "this would empty the whole bucket {bucket}; add --yes if that is meant",
        "这会清空整个桶 {bucket}；确认如此请加 --yes",
    ),
    "obs-sending": (
        "sending {files} files of {path} to {place}",
        "正在将 {path} 的 {files} 个文件发送到 {place}",
    ),
    "obs-unsent": (
        "{count} files of {path} could not be sent; the same command sends the rest",
        "{path} 有 {count} 个文件未能发送；重新执行同一命令可发送其余部分",
    ),
    # data sets on this machine
    "cache-missing": (
        "no data set here begins with '{digest}'; danlu cache ls lists them",
        "本机没有摘要以“{digest}”开头的数据集；可用 danlu cache ls 查看",
    ),
    "cache-several": (
        "{count} data sets begin with '{digest}'; give more digits",
        "有 {count} 个数据集的摘要以“{digest}”开头；请多给几位",
    ),
    "cache-used": (
        "data set {digest} is in use by {tasks}; wait for these tasks or stop them",
        "数据集 {digest} 正被 {tasks} 使用；请等待或停止这些任务",
    ),
    "cache-removed": ("removed {count} data sets, {size}", "已删除 {count} 个数据集，{size}"),
    "columns.cache": (
        "DIGEST|FILES|SIZE|LAST USE|TASKS|FROM",
        "摘要|文件数|大小|上次使用|任务数|来源",
    ),
    # the store
    "obs-keys": (
        (
            "there are no keys for {url}; set DANLU_ACCESS_KEY and DANLU_SECRET_KEY, or"
            " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        ),
        (
            "没有访问 {url} 的密钥；请设置 DANLU_ACCESS_KEY 和 DANLU_SECRET_KEY，或"
            " AWS_ACCESS_KEY_ID 和 AWS_SECRET_ACCESS_KEY"
        ),
    ),
    "obs-no-door": (
        (
            "the server at {api} does not say where its objects are; give the address of an S3"
            " endpoint with --endpoint, or as obs in servers.json"
        ),
        (
            "服务器 {api} 没有给出对象存储的地址；请用 --endpoint 或 servers.json 中的 obs 给出 S3 地址"
        ),
    ),
    "obs-refused": (
        "the object store refused {what}: {detail} (request {id})",
        "对象存储拒绝了 {what}：{detail}（请求号 {id}）",
    ),
    "obs-lost": (
        "the object store at {url} does not answer {what}: {detail}; the same command goes on later",
        "对象存储 {url} 未响应 {what}：{detail}；稍后重新执行同一命令即可续传",
    ),
    "obs-damaged": (
        "what arrived is not what was sent: {what}; run the command again",
        "收到的内容与发送的不一致：{what}；请重新执行命令",
    ),
    "obs-listing": (
        "the listing of obs://{bucket}/{prefix} does not end; the store repeats itself",
        "obs://{bucket}/{prefix} 的列举没有结束：存储返回了重复的结果",
    ),
    "obs-changed": (
        "the file was changed while it was read; copy it again once nobody writes to it",
        "文件在读取期间被修改；请在写入结束后重新复制",
    ),
    "obs-replaced": (
        "'{key}' was replaced or removed after it was listed; run the command again",
        "“{key}”在列出之后被替换或删除；请重新执行命令",
    ),
    "obs-busy": (
        "another run is copying between {path} and {place}; wait for it",
        "另一个进程正在 {path} 与 {place} 之间复制；请等待其完成",
    ),
    "obs-directory": (
        "{path} is a directory; an object of that name cannot be stored there",
        "{path} 是目录，无法保存同名对象",
    ),
    # what is left out
    "obs-skip-link": (
        "{name} is a link and was left out; --follow-links copies what it leads to",
        "{name} 是链接，已跳过；--follow-links 可复制其所指内容",
    ),
    "obs-skip-circle": (
        "{name} leads back to a directory above it and was left out",
        "{name} 指回其上级目录，已跳过",
    ),
    "obs-skip-special": (
        "{name} is neither a file nor a directory and was left out",
        "{name} 既不是文件也不是目录，已跳过",
    ),
    "obs-skip-unreadable": (
        "{name} leads nowhere and was left out",
        "{name} 没有指向任何内容，已跳过",
    ),
    "obs-skip-name": (
        "{name} is not UTF-8 and cannot be the key of an object; it was left out",
        "{name} 不是 UTF-8，不能作为对象键，已跳过",
    ),
    "obs-skip-long": (
        "{name} gives a key of more than 1024 bytes and was left out",
        "{name} 的对象键超过 1024 字节，已跳过",
    ),
    "obs-skip-key": (
        "the object {name} cannot be a file below a directory and was left out",
        "对象 {name} 不能成为目录下的文件，已跳过",
    ),
    # while it goes on, and afterwards
    "obs-copying": ("copying", "正在复制"),
    "obs-moving": ("moving", "正在移动"),
    "obs-syncing": ("syncing", "正在同步"),
    "obs-progress": (
        "{verb} {files} files  {size}  {rate}/s",
        "{verb} {files} 个文件  {size}  {rate}/s",
    ),
    "obs-copied": (
        "copied {files} files ({size}) in {took}",
        "已复制 {files} 个文件（{size}），用时 {took}",
    ),
    "obs-would-copy": (
        "nothing was done: {files} files ({size}) would be copied",
        "未执行任何操作：将复制 {files} 个文件（{size}）",
    ),
    "obs-would-move": (
        "nothing was done: {files} files ({size}) would be moved",
        "未执行任何操作：将移动 {files} 个文件（{size}）",
    ),
    "obs-would-be-removed": ("{count} would be removed", "将删除 {count} 个"),
    "obs-moved": (
        "moved {files} files ({size}) in {took}",
        "已移动 {files} 个文件（{size}），用时 {took}",
    ),
    "obs-unchanged": ("{count} files had not changed", "{count} 个文件没有变化"),
    "obs-removed": ("{count} were removed", "已删除 {count} 个"),
    "obs-would-remove": ("remove {name}", "删除 {name}"),
    "obs-left-out": ("{count} were left out", "已跳过 {count} 个"),
    "obs-not-done": ("{count} failed", "{count} 个失败"),
    "obs-failed": ("{name}: {detail}", "{name}：{detail}"),
}
