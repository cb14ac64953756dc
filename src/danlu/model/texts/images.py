"""What is said about builds of PyTorch: why one runs, what to know, and what to change."""

from __future__ import annotations

IMAGES: dict[str, tuple[str, str]] = {
    # why a build does
    "image-why-python": (
        "torch {torch} has wheels for Python {python}",
        "torch {torch} 提供 Python {python} 的 wheel",
    ),
    "image-why-glibc": (
        "its wheels need glibc {needs}; {found} is there",
        "其 wheel 需要 glibc {needs}；现有 {found}",
    ),
    "image-why-gpu-own": (
        "{gpu}: kernels for {kernels} are in the build",
        "{gpu}：该构建含 {kernels} 内核",
    ),
    "image-why-gpu-older": (
        "{gpu}: runs the kernels for {kernels}, which has the same major number",
        "{gpu}：可运行主版本号相同的 {kernels} 内核",
    ),
    "image-why-gpu-ptx": (
        "{gpu}: kernels are compiled from PTX for {kernels} at the first start, which takes minutes",
        "{gpu}：首次启动时由 {kernels} 的 PTX 编译内核，需要数分钟",
    ),
    "image-why-driver": (
        "driver {found} is at least {needs}, which CUDA {cuda} needs",
        "驱动 {found} 不低于 CUDA {cuda} 所需的 {needs}",
    ),
    "image-why-pypi": (
        "{cuda} is what PyPI has for torch {torch}",
        "{cuda} 是 PyPI 上 torch {torch} 的构建",
    ),
    "image-why-index": (
        "{cuda} is a build of torch {torch} on PyTorch's own index",
        "{cuda} 是 PyTorch 官方索引上 torch {torch} 的构建",
    ),
    # what to know about it
    "image-warn-plan": (
        "no driver is given, so this is a plan: CUDA {cuda} needs driver {needs} or newer",
        "未给出驱动版本，因此仅为规划：CUDA {cuda} 需要驱动 {needs} 或更新",
    ),
    "image-warn-no-gpu": (
        (
            "no GPU is given, so none was checked; a machine without one needs no CUDA: --cuda cpu"
            " --channel index"
        ),
        "未给出 GPU，因此未检查；没有 GPU 的机器不需要 CUDA：--cuda cpu --channel index",
    ),
    "image-warn-toolkit": (
        (
            "driver {found} is older than {full}, with which CUDA {cuda} was released: kernels run,"
            " but its new features and the compiling of PTX do not"
        ),
        "驱动 {found} 低于 CUDA {cuda} 发布时的 {full}：内核可以运行，但新特性和 PTX 编译不可用",
    ),
    "image-warn-by-rule": (
        "{gpu}: follows from NVIDIA's rule for kernels; nobody has reported it running",
        "{gpu}：依据 NVIDIA 的内核规则推出，尚无实际运行的记录",
    ),
    "image-warn-second-hand": (
        "what {cuda} holds was reported ({source}), not read from the wheel",
        "{cuda} 的内容来自文档（{source}），并非读自 wheel",
    ),
    "image-warn-carried": (
        (
            "what {cuda} holds is not certain ({source}); run torch.cuda.get_arch_list() before you"
            " rely on it"
        ),
        "{cuda} 的内容并不确定（{source}）；使用前请用 torch.cuda.get_arch_list() 核实",
    ),
    "image-warn-glibc-by-tag": (
        (
            "the wheels of torch {torch} are tagged {tag}, which promises more than their libraries"
            " may keep on an old system"
        ),
        "torch {torch} 的 wheel 标签为 {tag}，在旧系统上其库未必真能运行",
    ),
    # what to change
    "image-change-or": ("; or ", "；或者"),
    "image-change-torch": ("torch {torch} with {cuda}", "改用 torch {torch}（{cuda}）"),
    "image-change-torch-index": (
        "torch {torch} with {cuda}, from the index (--channel index)",
        "改用 torch {torch}（{cuda}），取自官方索引（--channel index）",
    ),
    "image-change-cuda": ("{cuda}", "改用 {cuda}"),
    "image-change-cuda-index": (
        "{cuda}, from the index (--channel index)",
        "改用 {cuda}，取自官方索引（--channel index）",
    ),
    "image-change-torch-pypi": (
        "torch {torch} with {cuda}, from PyPI",
        "改用 torch {torch}（{cuda}），取自 PyPI",
    ),
    "image-change-cuda-pypi": ("{cuda}, from PyPI", "改用 {cuda}，取自 PyPI"),
    "image-change-channel-pypi": ("allow PyPI", "允许使用 PyPI"),
    "image-change-channel-index": (
        "allow the index (--channel index)",
        "允许使用官方索引（--channel index）",
    ),
    "image-change-driver": ("driver {driver} or newer", "驱动 {driver} 或更新"),
    "image-change-python": ("Python {python}", "改用 Python {python}"),
    "image-change-glibc": (
        "a system with glibc {glibc} or newer",
        "改用 glibc {glibc} 或更新的系统",
    ),
    "image-change-arch": ("a machine of {arch}", "改用 {arch} 的机器"),
    "image-change-gpus": (
        "this build for {gpus} alone, and another image for the other GPUs",
        "该构建仅用于 {gpus}，其他 GPU 使用另一个镜像",
    ),
    "image-advice-capability": (
        (
            "if the GPU's model is not known here, give its compute capability, such as --gpu sm_86"
            " (nvidia-smi --query-gpu=compute_cap --format=csv)"
        ),
        (
            "若该 GPU 型号未收录，请给出其计算能力，例如 --gpu sm_86"
            "（nvidia-smi --query-gpu=compute_cap --format=csv）"
        ),
    ),
    "image-advice-split": (
        "no build known here does for these GPUs together; use an image for each model",
        "没有已知的构建能同时用于这些 GPU；请为每种型号使用单独的镜像",
    ),
    "image-advice-none": (
        "no build known here does for this machine",
        "已知的构建均不适用于这台机器",
    ),
    # while a container image is built
    "image-building": (
        "image {image}: building its container image on {base}",
        "镜像 {image}：正在 {base} 上构建容器镜像",
    ),
    "image-built": (
        "image {image}: {reference} built after {took_s} s",
        "镜像 {image}：已构建 {reference}，用时 {took_s} 秒",
    ),
    "image-large": (
        "image {image} is {gib} GiB; ModelArts advises against more than 15",
        "镜像 {image} 为 {gib} GiB；ModelArts 建议不超过 15 GiB",
    ),
}
