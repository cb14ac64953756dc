"""What this package says to people, in English and Chinese."""

from __future__ import annotations

import os
import sys

_TEXTS = {
    "not-offered": (
        "{module}.{name} is not offered: of MoXing only the file functions are here (mox.file: {functions})",
        "不提供 {module}.{name}：此处仅提供 MoXing 的文件接口（mox.file：{functions}）",
    ),
    "no-tensorflow": (
        "moxing.tensorflow is not offered: its training loop is for TensorFlow 1. Write the loop with your framework, and use 'import moxing as mox' for mox.file",
        "不提供 moxing.tensorflow：其训练循环仅适用于 TensorFlow 1。请用所选框架编写训练循环，文件操作请使用 import moxing as mox 中的 mox.file",
    ),
    "no-storage": (
        "{url}: there is no storage here. Danlu tells its jobs where it is. To try a script elsewhere, set MOXING_OBS_DIR=/some/directory: {url} is then /some/directory/{path}",
        "{url}：此处没有对象存储。只有 Danlu 作业才会获得存储地址。在其他环境试运行脚本时，请设置 MOXING_OBS_DIR=/某个目录，此时 {url} 即 /某个目录/{path}",
    ),
    "bad-url": (
        "{url} is not the name of an object: it must be obs://bucket/key",
        "{url} 不是有效的对象名：应为 obs://桶名/对象键",
    ),
    "outside": (
        "{url} would lead out of {place}",
        "{url} 会指向 {place} 之外",
    ),
    "missing": ("{url} does not exist", "{url} 不存在"),
    "no-bucket": ("{url}: there is no bucket '{bucket}'", "{url}：桶 '{bucket}' 不存在"),
    "denied": (
        "{url}: the storage refuses this ({code}: {message}). A job's key opens the buckets of its own workspace, while the job lives",
        "{url}：存储拒绝访问（{code}：{message}）。作业密钥仅在作业存续期间可访问其所属工作空间的桶",
    ),
    "failed": (
        "{url}: the storage answers {status} ({code}: {message})",
        "{url}：存储返回 {status}（{code}：{message}）",
    ),
    "no-answer": (
        "{url}: no answer from the storage at {host} in {seconds} s ({detail})",
        "{url}：存储 {host} 在 {seconds} 秒内没有应答（{detail}）",
    ),
    "trying-again": (
        "moxing: {url}: no good answer from the storage ({detail}); trying again",
        "moxing：{url}：存储应答异常（{detail}），正在重试",
    ),
    "damaged": (
        "{url} arrived damaged: {found} instead of {expected}",
        "{url} 传输后内容损坏：应为 {expected}，实为 {found}",
    ),
    "changed": (
        "{url} was replaced while it was read",
        "{url} 在读取过程中被替换",
    ),
    "file-changed": (
        "{url} changed while it was copied; write a file to its end before it is copied",
        "{url} 在复制过程中发生了变化；请在文件写完后再复制",
    ),
    "is-directory": (
        "{url} is a directory; copy is for one file. Use mox.file.copy_parallel(src, dst) for a directory",
        "{url} 是目录，copy 只能复制单个文件。复制目录请使用 mox.file.copy_parallel(src, dst)",
    ),
    "open-directory": ("{url} is a directory", "{url} 是目录"),
    "remove-directory": (
        "{url} is a directory; remove it with remove(url, recursive=True)",
        "{url} 是目录；请使用 remove(url, recursive=True) 删除",
    ),
    "not-directory": ("{url} is a file, not a directory", "{url} 是文件，不是目录"),
    "whole-bucket": (
        "{url} is a whole bucket, which is not removed or renamed from a script",
        "{url} 是整个桶，不能通过脚本删除或重命名",
    ),
    "into-itself": (
        "{source} cannot be copied into itself ({target})",
        "不能将 {source} 复制到自身之内（{target}）",
    ),
    "not-listed": (
        "'{name}' of file_list is not the name of a file below {url}",
        "file_list 中的 '{name}' 不是 {url} 之下的文件名",
    ),
    "bad-mode": (
        "mode '{mode}' is not offered: it must be one of {modes}",
        "不支持打开模式 '{mode}'：应为 {modes} 之一",
    ),
    "bad-shift": (
        "shift({source!r}, {target!r}): it is either shift('os', 'mox') or shift('mox', 'os')",
        "shift({source!r}, {target!r})：只能是 shift('os', 'mox') 或 shift('mox', 'os')",
    ),
    "no-key": (
        "{path}: its name is not UTF-8, and no object can have it",
        "{path}：文件名不是 UTF-8，无法作为对象键",
    ),
    "left-out": (
        "moxing: {count} not copied, because their names are no paths below {place} or they are no regular files: {names}",
        "moxing：有 {count} 项未复制，因为其名称不是 {place} 之下的路径，或不是普通文件：{names}",
    ),
    "copying": (
        "moxing: {source} -> {target}: {files} files, {size} after {seconds} s ({speed}/s)",
        "moxing：{source} -> {target}：已复制 {files} 个文件，共 {size}，用时 {seconds} 秒（{speed}/s）",
    ),
    "copying-of": (
        "moxing: {source} -> {target}: {files} of {files_all} files, {size} of {size_all} after {seconds} s ({speed}/s), {left} s to go",
        "moxing：{source} -> {target}：已复制 {files}/{files_all} 个文件，{size}/{size_all}，用时 {seconds} 秒（{speed}/s），预计还需 {left} 秒",
    ),
    "copied": (
        "moxing: copied {source} -> {target}: {files} files, {size} in {seconds} s",
        "moxing：已完成复制 {source} -> {target}:{files} 个文件，共 {size}，用时 {seconds} 秒",
    ),
    "not-stored": (
        "moxing: {url} was not stored: its 'with' block ended with an error",
        "moxing：{url} 未写入存储：其 with 块因错误而中断",
    ),
    "auth-ignored": (
        "moxing: set_auth: the keys are not used; the storage of this platform is opened with the job's own",
        "moxing：set_auth：传入的密钥不会被使用；平台存储由作业自身的密钥访问",
    ),
}

_FUNCTIONS = (
    "File, append, copy, copy_parallel, exists, get_size, glob, is_directory, list_directory,"
    " make_dirs, mk_dir, read, remove, rename, scan_dir, set_auth, shift, stat, walk, write"
)


def say(key: str, **values: object) -> str:
    """A sentence in the language of the environment (LC_ALL, LC_MESSAGES or LANG)."""
    english, chinese = _TEXTS[key]
    found = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return (chinese if found.startswith("zh") else english).format(**values)


def tell(key: str, **values: object) -> None:
    """A line for the log of the job."""
    sys.stderr.write(say(key, **values) + "\n")
    sys.stderr.flush()


def not_offered(module: str, name: str) -> AttributeError:
    """What somebody is told who asks for more of MoXing than is here."""
    return AttributeError(say("not-offered", module=module, name=name, functions=_FUNCTIONS))


def size(count: float) -> str:
    """Bytes for people: `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
