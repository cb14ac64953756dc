"""Help texts of `danlu image`."""

from __future__ import annotations

IMAGE_OPTIONS: dict[str, tuple[str, str]] = {
    "image": (
        "Images: which software runs on which machine.",
        "镜像：何种软件可在何种机器上运行。",
    ),
    "image explain": (
        (
            "Say which build of PyTorch runs on a machine, and why, or why none does.\n\n"
            "What is not given is this machine's. The exit status is 5 where no build does."
        ),
        (
            "说明哪个 PyTorch 构建能在一台机器上运行及其理由，或为何都不能。\n\n"
            "未给出的项取自本机。没有可用构建时退出码为 5。"
        ),
    ),
    "image explain.short": (
        "Say which build of PyTorch runs on a machine, and why.",
        "说明哪个 PyTorch 构建能在一台机器上运行及其理由。",
    ),
    "image explain.torch": (
        "A version such as 2.8.0, or a series such as 2.8 (default: the newest that runs).",
        "版本（如 2.8.0）或系列（如 2.8）；默认取可运行的最新版本。",
    ),
    "image explain.cuda": (
        "Only builds of this tag: cu126, cu128, cpu and so on.",
        "仅考虑该标签的构建：cu126、cu128、cpu 等。",
    ),
    "image explain.gpus": (
        "A GPU's model (V100), or its compute capability (sm_70); 'none' for a machine without.",
        "GPU 型号（V100）或计算能力（sm_70）；没有 GPU 时写 none。",
    ),
    "image explain.driver": (
        "The NVIDIA driver, such as 535.104.05; 'none' to plan without one.",
        "NVIDIA 驱动版本，如 535.104.05；写 none 则不考虑驱动，仅作规划。",
    ),
    "image explain.python": (
        "The Python, such as 3.11; 3.13t is free-threaded.",
        "Python 版本，如 3.11；3.13t 为自由线程版。",
    ),
    "image explain.glibc": ("The C library, such as 2.28.", "C 库版本，如 2.28。"),
    "image explain.arch": ("The processor: x86_64 or aarch64.", "处理器架构：x86_64 或 aarch64。"),
    "image explain.channel": (
        "pypi: from PyPI alone (the default); index: also from PyTorch's own index.",
        "pypi：仅用 PyPI（默认）；index：同时使用 PyTorch 官方索引。",
    ),
    "image matrix": (
        (
            "Show the compatibility matrix, or read what is new on an index.\n\n"
            "refresh reads the metadata of releases that the matrix does not know, by ranges of their"
            " wheels and without downloading one, and shows what would be added to its tables. Nothing"
            " is changed."
        ),
        (
            "显示兼容矩阵，或读取索引上的新内容。\n\n"
            "refresh 按范围读取矩阵中没有的版本的 wheel 元数据，不下载整个 wheel，并显示各表会增加的内容，"
            "不做任何修改。"
        ),
    ),
    "image matrix.index_url": (
        "The package index to read (default https://pypi.org/simple).",
        "要读取的软件包索引（默认 https://pypi.org/simple）。",
    ),
    "image ls": (
        "List images: name, size of the environment, last use. --ready: those that have one here.",
        "列出镜像：名称、环境大小、上次使用时间。--ready：仅列出本机已有环境的镜像。",
    ),
    "image ls.ready": (
        "Only images with an environment on this machine.",
        "仅本机已有环境的镜像。",
    ),
    "image show": (
        "Show an image: what is in it, its environment here, who uses it.",
        "查看一个镜像：内容、本机上的环境及其使用者。",
    ),
    "image show.verify": (
        "Read every file of its environment; exit status 1 if one is not as it was made.",
        "逐一校验其环境中的文件；有不符者时退出码为 1。",
    ),
    "image realise": (
        "Make an image's environment now, and print where it lies.",
        "立即制作镜像的环境，并输出其所在目录。",
    ),
    "image rm": (
        "Remove environments of images. What a job uses is refused.",
        "移除镜像的环境。正被作业使用的会被拒绝。",
    ),
    "image gc": (
        "Free what images take: what was unused for long, and the oldest until all fits.",
        "清理镜像占用的空间：移除久未使用的环境，并从最旧的开始直至符合上限。",
    ),
    "image gc.unused_for": (
        "Remove environments that were not used for so long, such as 30d.",
        "移除超过该时长未使用的环境，如 30d。",
    ),
    "image gc.budget": (
        "Remove the longest unused until images and cache take no more than this, such as 20G.",
        "移除最久未用的环境，直到镜像与缓存的占用不超过该值，如 20G。",
    ),
    "image gc.dry_run": ("Say what would be removed, and do nothing.", "仅显示将移除的内容。"),
    "image lock": (
        (
            "Make the lock of an image from its definition (a TOML file, or a built-in one's name).\n\n"
            "Versions and digests come from the package index and from PIP_FIND_LINKS; no wheel is"
            " downloaded."
        ),
        (
            "由定义（TOML 文件或内置定义的名称）生成镜像的锁文件。\n\n"
            "版本和摘要来自软件包索引和 PIP_FIND_LINKS，不下载 wheel。"
        ),
    ),
    "image lock.short": (
        "Make the lock of an image from its definition.",
        "由定义生成镜像的锁文件。",
    ),
    "image register": (
        "Keep an image under a name on the server: its lock, which danlu image lock wrote.",
        "在服务器上以名称保存镜像：由 danlu image lock 生成的锁文件。",
    ),
    "image register.description": ("A word about it.", "说明文字。"),
    "image freeze": (
        (
            "Make an image of what was installed by hand in a job that runs or has ended, or in a notebook.\n\n"
            "Each package gets the wheel that it was installed from, by its digest, and what comes out"
            " is proved: it is made, and held against the job's. What cannot be pinned (editable,"
            " a directory, a repository, a file of one's own, loose files) is named with what to do.\n\n"
            "NAME is of small letters, digits and '-', perhaps with a version (mine-1.2)."
        ),
        (
            "将运行中或已结束的作业，或 Notebook 里手工安装的内容做成镜像。\n\n"
            "每个软件包都按摘要对应其安装所用的 wheel，并实际制作镜像与作业对照验证。无法锁定的内容"
            "（可编辑安装、目录、代码仓库、自有文件、零散文件）会逐一指出并说明处理办法。\n\n"
            "名称由小写字母、数字和“-”组成，可带版本（mine-1.2）。"
        ),
    ),
    "image freeze.short": (
        "Make an image of what was installed by hand in a job or notebook.",
        "将作业或 Notebook 中手工安装的内容做成镜像。",
    ),
    "image freeze.out": (
        "The directory for its definition (NAME.toml) and lock (NAME.json).",
        "存放定义（名称.toml）和锁文件（名称.json）的目录。",
    ),
    "image freeze.without": (
        "Leave out a package that cannot be pinned, or files (may be given again).",
        "略去一个无法锁定的软件包，或写 files 略去零散文件（可重复）。",
    ),
    "image freeze.task": (
        "The task that is meant (default worker-0).",
        "所指的任务，默认 worker-0。",
    ),
    "image freeze.description": ("A word about it.", "说明文字。"),
    "image lock.backend": (
        "The build to lock, such as cu128 or cpu.",
        "要锁定的构建，如 cu128 或 cpu。",
    ),
    "image lock.out": ("The file to write.", "要写入的文件。"),
    "image build": (
        "Build an image's container image of the same packages, with podman or Docker.",
        "用 podman 或 Docker 由相同的软件包构建容器镜像。",
    ),
    "image build.base": (
        "The base image (default: image_base, or as the definition says).",
        "基础镜像（默认取自 image_base 或镜像定义）。",
    ),
    "image build.apt_sources": (
        "Where Debian packages come from: the archive at the definition's time, or the base's own.",
        "Debian 软件包的来源：定义所记时间的归档，或基础镜像自带的软件源。",
    ),
    "image build.fresh": ("Use no layer of an earlier build.", "不使用以前构建的层。"),
    "image push": (
        "Send a built image to a registry in which podman or Docker is signed in.",
        "将已构建的镜像推送到 podman 或 Docker 已登录的仓库。",
    ),
    "image push.insecure": (
        "The registry speaks HTTP, or has a certificate that nobody vouches for.",
        "该仓库使用 HTTP，或其证书不受信任。",
    ),
    "image save": (
        "Write a built image to a file, for a machine without a registry.",
        "将已构建的镜像写入文件，供没有仓库的机器使用。",
    ),
    "image load": (
        "Take in an image that danlu image save wrote, with its lock.",
        "载入由 danlu image save 写出的镜像及其锁文件。",
    ),
    "image sbom": (
        "Print the software bill of materials of an image (CycloneDX, JSON).",
        "输出镜像的软件物料清单（CycloneDX，JSON）。",
    ),
    "image sbom.out": ("The file to write.", "要写入的文件。"),
    "image verify": (
        "Run the checks of an image as a job on a flavor; exit status 1 if one fails.",
        "在某规格上以作业形式检查镜像；有检查未通过时退出码为 1。",
    ),
    "image verify.flavor": (
        "The flavor to verify it on (default: that of jobs that name none).",
        "用于检查的规格（默认为未指定规格的作业所用的规格）。",
    ),
}
