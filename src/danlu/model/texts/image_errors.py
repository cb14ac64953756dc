"""Texts of errors about images: definitions, locks and environments."""

from __future__ import annotations

IMAGE_ERRORS: dict[str, tuple[str, str]] = {
    "image-not-toml": (
        "the definition of the image is not valid TOML: {detail}",
        "镜像定义不是合法的 TOML：{detail}",
    ),
    "image-field-unknown": (
        "{field} is not a field of an image; there is {near}",
        "镜像没有字段 {field}；可用的有 {near}",
    ),
    "image-package-decided": (
        (
            "{field} names '{value}', but the version of {name} follows from torch.version and its"
            " backend; remove it"
        ),
        "字段 {field} 中有“{value}”，但 {name} 的版本由 torch.version 及其后端决定；请将其移除",
    ),
    "image-torch-unknown": (
        "torch {torch} is not in the compatibility matrix, whose newest release is {newest}",
        "兼容矩阵中没有 torch {torch}；其中最新的版本是 {newest}",
    ),
    "image-does-not-fit": (
        (
            "image {image} cannot work: torch {torch} with {cuda} breaks the rule '{rule}' (found"
            " {found}, needs {needs}); {fix}"
        ),
        (
            "镜像 {image} 无法工作：torch {torch}（{cuda}）不满足规则“{rule}”（现有 {found}，需要"
            " {needs}）；{fix}"
        ),
    ),
    "image-lock": (
        "the lock of the image cannot be used: {detail}; make it anew from the definition",
        "镜像的锁文件无法使用：{detail}；请由定义重新生成",
    ),
    "image-lock-missing": (
        "image {image} has no lock for {backend} in this version; lock it from its definition",
        "本版本中镜像 {image} 没有 {backend} 的锁文件；请由其定义生成",
    ),
    "index-unreadable": (
        "the package index cannot be read at {url}: {detail}; try again, or name another: --index-url",
        "无法读取软件包索引 {url}：{detail}；请重试，或用 --index-url 指定其他索引",
    ),
    "image-pylock": (
        "what the resolver wrote cannot be read: {detail}; try again, and report it if it stays so",
        "无法读取解析器的输出：{detail}；请重试，若仍如此请报告",
    ),
    "image-no-wheel": (
        (
            "{package} {version} has no wheel for Python {python}, glibc {glibc} and {arch}; pin another"
            " version of it, or choose another Python"
        ),
        (
            "{package} {version} 没有适用于 Python {python}、glibc {glibc} 和 {arch} 的 wheel；请固定其他版本，"
            "或选择其他 Python"
        ),
    ),
    "image-no-hash": (
        "{file} has no SHA-256, and without one nobody can say what is in the image; give its digest",
        "{file} 没有 SHA-256，无法确定镜像的内容；请给出其摘要",
    ),
    # an image's environment
    "image-no-uv": (
        "environments are made by uv, which is not installed; install it: pip install uv",
        "环境由 uv 制作，但尚未安装；请执行：pip install uv",
    ),
    "image-unresolved": (
        "the packages of image {image} cannot be had together: {detail}",
        "镜像 {image} 的软件包无法一起安装：{detail}",
    ),
    "image-other-build": (
        (
            "{package} {version} is another build than the one that is meant ({needs}), and does not"
            " load beside it; give the right wheel with PIP_FIND_LINKS, or leave {package} out"
        ),
        (
            "{package} {version} 不是所需的构建（{needs}），无法与之一起加载；请用 PIP_FIND_LINKS 提供正确的"
            " wheel，或去掉 {package}"
        ),
    ),
    "image-missing": (
        "there is no image {image} here; `danlu image ls` lists those that there are",
        "这里没有镜像 {image}；可用 `danlu image ls` 查看",
    ),
    "image-unknown": (
        (
            "{field} is '{value}', which is no image of this server; there are {engines}, and ids of"
            " images (sha256:…). Images of container registries cannot run on this engine"
        ),
        (
            "{field} 的值“{value}”不是本服务器的镜像；可用的有 {engines} 以及镜像 ID（sha256:…）。"
            "该引擎不能运行容器仓库中的镜像"
        ),
    ),
    "image-ambiguous": (
        "'{value}' may be {images}; give more of its id, or its backend",
        "“{value}”可能是 {images}；请给出更长的 ID 或其后端",
    ),
    "image-not-realised": (
        "image {image} has no environment on this machine; `danlu image realise` makes it",
        "镜像 {image} 在本机没有环境；可用 `danlu image realise` 制作",
    ),
    "image-in-use": (
        "the environment of image {image} is used by {holders}; stop them, or wait until they end",
        "镜像 {image} 的环境正被 {holders} 使用；请将其停止，或等待其结束",
    ),
    "image-no-python": (
        (
            "no Python {python} can be had for the environment: {detail}; install it (python{python})"
            " and try again"
        ),
        "环境所需的 Python {python} 不可用：{detail}；请安装（python{python}）后重试",
    ),
    "image-not-realised-now": (
        "the environment of image {image} could not be made: {detail}",
        "无法制作镜像 {image} 的环境：{detail}",
    ),
    "image-broken": (
        (
            "files of image {image} are not what its wheels say, and no others could be had: {files};"
            " check the disk and the package index"
        ),
        "镜像 {image} 的文件与其 wheel 不符，且无法重新获得正确的文件：{files}；请检查磁盘和软件包索引",
    ),
    "image-other-arch": (
        "image {image} is for {needs}, and this machine is {found}; choose an image for it",
        "镜像 {image} 适用于 {needs}，而本机为 {found}；请选择适合的镜像",
    ),
    "image-file-unreadable": (
        "'{path}' cannot be read: {detail}",
        "无法读取“{path}”：{detail}",
    ),
    "requirement-line": (
        (
            "{source}: '{value}' is no package with versions such as einops>=0.8; options, addresses"
            " and paths are not taken with an image: put the code into the code directory"
        ),
        (
            "{source}：“{value}”不是 einops>=0.8 这样带版本的软件包；使用镜像时不接受选项、地址和路径，"
            "请将代码放入代码目录"
        ),
    ),
    "requirement-replaces": (
        (
            "'{wanted}' would replace what the image decides ({package} {version}); choose another image, leave it"
            " out, or say that it may (override_image)"
        ),
        (
            "“{wanted}”会替换由镜像决定的内容（{package} {version}）；请选择其他镜像、去掉该项，或明确允许"
            "（override_image）"
        ),
    ),
    "requirements-conflict": (
        "the job's own packages cannot be had together with the image's: {detail}",
        "作业自带的软件包与镜像的软件包无法共存：{detail}",
    ),
    # freezing
    "freeze-unsupported": (
        (
            "what is installed in a job's environment can be told on the process engine only; name the"
            " packages with --with or in pip-requirements.txt"
        ),
        "只有进程引擎能说明作业环境中安装了什么；请用 --with 或 pip-requirements.txt 指明软件包",
    ),
    "freeze-away": (
        (
            "what {task} of job {job} has installed is not known: it has not started, has installed nothing,"
            " had no view of its own, or its records were removed"
        ),
        (
            "不知道作业 {job} 的 {task} 安装了什么：任务尚未启动、未安装任何内容、没有独有的视图，或其记录已"
            "被移除"
        ),
    ),
    "freeze-no-image": (
        "job {job} runs in an environment that is no image's; run it in one: danlu run --image",
        "作业 {job} 所用的环境不属于任何镜像；请在镜像中运行：danlu run --image",
    ),
    "freeze-nothing": (
        "nothing was installed by hand that differs from image {image}",
        "没有与镜像 {image} 不同的手工安装内容",
    ),
    "freeze-no-torch": (
        "torch was removed, and an image has one; install it again before freezing",
        "torch 已被移除，而镜像必须包含 torch；请重新安装后再冻结",
    ),
    "freeze-unpinned": (
        "{count} thing(s) cannot be in an image's lock; --without NAME leaves one out:",
        "有 {count} 项无法写入镜像的锁文件；可用 --without 名称 将其略去：",
    ),
    "freeze-editable": (
        (
            "{package} is installed where it is edited ({detail}): build a wheel of it (pip wheel), put that into"
            " a directory of PIP_FIND_LINKS and install it from there"
        ),
        (
            "{package} 以可编辑方式安装（{detail}）：请构建 wheel（pip wheel），放入 PIP_FIND_LINKS 的目录后"
            "从那里安装"
        ),
    ),
    "freeze-directory": (
        (
            "{package} was installed from a directory ({detail}): build a wheel of it (pip wheel), put that into a"
            " directory of PIP_FIND_LINKS and install it from there"
        ),
        "{package} 由目录安装（{detail}）：请构建 wheel（pip wheel），放入 PIP_FIND_LINKS 的目录后从那里安装",
    ),
    "freeze-vcs": (
        (
            "{package} was installed from a repository ({detail}): build a wheel of that revision (pip wheel), put"
            " it into a directory of PIP_FIND_LINKS and install it from there"
        ),
        (
            "{package} 由代码仓库安装（{detail}）：请构建该版本的 wheel（pip wheel），放入 PIP_FIND_LINKS 的目录后"
            "从那里安装"
        ),
    ),
    "freeze-archive": (
        (
            "{package} was installed from a file ({detail}) that no index of the server has: put it into a directory"
            " of PIP_FIND_LINKS"
        ),
        "{package} 由文件安装（{detail}），服务器的索引中没有该文件：请将其放入 PIP_FIND_LINKS 的目录",
    ),
    "freeze-no-wheel": (
        (
            "{package} has no wheel on the server's indexes, or none with a digest (built for {detail}): build one"
            " (pip wheel), put it into a directory of PIP_FIND_LINKS and install it from there"
        ),
        (
            "服务器的索引中没有 {package} 的 wheel，或没有摘要（构建目标：{detail}）：请构建 wheel（pip wheel），"
            "放入 PIP_FIND_LINKS 的目录后从那里安装"
        ),
    ),
    "freeze-other-wheel": (
        (
            "{package} is not what the wheel of that version on the server's indexes holds ({detail}): it was built"
            " or changed by hand; build a wheel with a version of its own, put it into a directory of"
            " PIP_FIND_LINKS and install it from there"
        ),
        (
            "{package} 与服务器索引中同版本 wheel 的内容不同（{detail}）：它是手工构建或改动过的；请以独有的版本号"
            "构建 wheel，放入 PIP_FIND_LINKS 的目录后从那里安装"
        ),
    ),
    "freeze-files": (
        (
            "files that belong to no package, or were changed in one ({detail}): keep them in the code directory, or"
            " make a package of them; --without files leaves them out"
        ),
        (
            "不属于任何软件包或在软件包中被改动的文件（{detail}）：请放在代码目录中，或做成软件包；"
            "--without files 可将其略去"
        ),
    ),
    "image-name-taken": (
        "the name '{name}' means image {image}; choose another name, or remove that one first",
        "名称“{name}”已用于镜像 {image}；请换一个名称，或先删除它",
    ),
    "image-not-yours": (
        "the name {image} is everybody's on this machine; its administrator removes it from there",
        "名称 {image} 属于本机所有人；须由管理员在本机移除",
    ),
    "image-built-in": (
        "image {image} is built in and cannot be deleted; `danlu image rm` removes its environment",
        "镜像 {image} 是内置的，不能删除；可用 `danlu image rm` 移除其环境",
    ),
}
