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
}
