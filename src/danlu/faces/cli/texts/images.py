"""What the commands about images say."""

from __future__ import annotations

IMAGES: dict[str, tuple[str, str]] = {
    "image-for": ("for {asked}", "针对：{asked}"),
    "image-choice": (
        "torch {torch}, {cuda}, from {channel}",
        "torch {torch}，{cuda}，取自 {channel}",
    ),
    "image-none": ("no build does", "没有可用的构建"),
    "image-because": ("  because {reason}", "  理由：{reason}"),
    "image-warning": ("  note: {warning}", "  注意：{warning}"),
    "image-others": ("what else was looked at:", "其他考察过的构建："),
    "image-more": (
        "{count} more were looked at and do not do; --json lists them",
        "另有 {count} 个构建不可用；--json 可列出全部",
    ),
    "image-no-gpus": ("no GPU", "无 GPU"),
    "image-no-driver": ("no driver", "无驱动"),
    "image-asked-driver": ("driver {version}", "驱动 {version}"),
    "image-glibc-unknown": (
        "this system has no glibc to go by; name the one of the machine that is meant: --glibc 2.28",
        "本系统没有可参照的 glibc；请给出目标机器的版本：--glibc 2.28",
    ),
    "matrix-version": ("matrix {version}, {count} releases", "矩阵 {version}，共 {count} 个版本"),
    "matrix-read": (
        "{count} new; {fetched} of {size} were read",
        "新增 {count} 个；共读取 {fetched}（总计 {size}）",
    ),
    "matrix-current": (
        "the matrix knows every release on {index}",
        "矩阵已包含 {index} 上的所有版本",
    ),
    "columns.matrix": (
        "TORCH|RELEASED|PYTHON|GLIBC|CUDA|CUDNN|NCCL|GPU ARCHITECTURES|SOURCE",
        "TORCH|发布日期|PYTHON|GLIBC|CUDA|CUDNN|NCCL|GPU 架构|来源",
    ),
    "columns.image": (
        "TORCH|CUDA|RULE|FOUND|NEEDS|NEAREST CHANGE",
        "TORCH|CUDA|规则|现有|所需|最近的改动",
    ),
    "image-file-remote": (
        "'{path}' cannot be given to a remote server; register it there, then use its name or id",
        "无法将“{path}”交给远程服务器；请先在该服务器上注册，再使用其名称或 ID",
    ),
    "columns.images": (
        "NAME|ID|TORCH|PYTHON|PACKAGES|SIZE|LAST USED|IN USE",
        "名称|ID|TORCH|PYTHON|软件包|大小|上次使用|使用者",
    ),
    "images-total": (
        "all images and their cache take {size} below {path}; files that several share count once",
        "全部镜像及其缓存在 {path} 下占用 {size}；共享的文件只计一次",
    ),
    "image-honest": (
        "as a virtual environment: the packages are the lock's to the byte, the system is the host's",
        "虚拟环境：软件包与锁文件逐字节一致，操作系统为宿主机的",
    ),
    "image-not-here": ("not on this machine", "本机尚未制作"),
    "image-verify-nothing": (
        "image {image} has no environment here that could be verified; make it: danlu image realise",
        "镜像 {image} 在本机没有可校验的环境；请先制作：danlu image realise",
    ),
    "image-file-changed": ("{file} ({package}) is not what it was", "{file}（{package}）已被改动"),
    "image-file-missing": ("{file} ({package}) is gone", "{file}（{package}）已丢失"),
    "image-file-added": ("{file} was added", "{file} 是多余的文件"),
    "image-damaged": (
        "image {image}: {bad} file(s) are not as they were made; remove it, and it is made anew",
        "镜像 {image}：有 {bad} 个文件与制作时不符；将其移除后会重新制作",
    ),
    "image-good": (
        "image {image}: every file is as it was made",
        "镜像 {image}：所有文件与制作时一致",
    ),
    "image-removed": (
        "environment of {image} removed ({size}); its packages stay in the cache",
        "已移除 {image} 的环境（{size}）；其软件包仍在缓存中",
    ),
    "image-gc-nothing": (
        "say what is too much: --unused-for 30d, --budget 20G, or both",
        "请说明清理的标准：--unused-for 30d、--budget 20G，或两者",
    ),
    "image-gc-done": (
        "{count} environment(s) removed; {before} before, {after} now",
        "已移除 {count} 个环境；占用由 {before} 变为 {after}",
    ),
    "image-gc-would": (
        "{count} environment(s) would be removed; {before} now, about {after} then",
        "将移除 {count} 个环境；目前占用 {before}，之后约 {after}",
    ),
    "image-registered": (
        "registered; jobs name it: --image {name}",
        "已注册；作业可用 --image {name}",
    ),
    "image-lock-large": (
        "'{path}' is no lock: danlu image lock writes one",
        "“{path}”不是锁文件：请用 danlu image lock 生成",
    ),
    "image-frozen": (
        "frozen on top of {parent}; jobs name it: --image {name}",
        "已在 {parent} 之上冻结；作业可用 --image {name}",
    ),
    "image-frozen-change": ("  {package}: {before} → {after}", "  {package}：{before} → {after}"),
    "image-frozen-without": ("  left out: {why}", "  已略去：{why}"),
    "image-locked": (
        "{packages} packages locked in {file}",
        "已将 {packages} 个软件包锁定到 {file}",
    ),
    "columns.verify": ("NO|CHECK|RESULT|FOUND", "编号|检查|结果|详情"),
    "verify-running": (
        "verifying {image} on {flavor} as job {id}",
        "正在以作业 {id} 在 {flavor} 上检查 {image}",
    ),
    "verify-good": (
        "image {image} is verified on {flavor}: {pass} passed, {warn} with a warning, {skipped} skipped",
        "镜像 {image} 已在 {flavor} 上通过检查：通过 {pass} 项，警告 {warn} 项，跳过 {skipped} 项",
    ),
    "verify-bad": (
        "image {image} is not verified on {flavor}: {fail} failed, {pass} passed, {skipped} skipped",
        "镜像 {image} 未在 {flavor} 上通过检查：失败 {fail} 项，通过 {pass} 项，跳过 {skipped} 项",
    ),
    "verify-no-gpus": (
        "nothing is said about GPUs: the flavor has none",
        "未检查与 GPU 有关的内容：该规格没有 GPU",
    ),
    "verify-line": (
        (
            "{status} on {flavor} ({realisation}) {at}: {pass} passed, {warn} with a warning, {fail}"
            " failed, {skipped} skipped"
        ),
        (
            "{flavor}（{realisation}）{status}，{at}：通过 {pass} 项，警告 {warn} 项，失败 {fail} 项，"
            "跳过 {skipped} 项"
        ),
    ),
    "verify-ok": ("verified", "已通过检查"),
    "verify-failed": ("not verified", "未通过检查"),
    "image-hole": (
        "{package} {version}: {id} ({severity}), mended in {below}: {summary}; {source}",
        "{package} {version}：{id}（{severity}），{below} 起已修复：{summary}；{source}",
    ),
    "image-pushed": ("image {image} sent as {reference}", "镜像 {image} 已推送为 {reference}"),
    "image-saved": (
        "image {image} written to {path} ({size})",
        "镜像 {image} 已写入 {path}（{size}）",
    ),
    "size": (
        "{option} takes a size such as 20G or 500M, not '{value}'",
        "{option} 需要 20G、500M 这样的大小，而不是“{value}”",
    ),
}
