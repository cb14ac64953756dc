"""Texts of errors about images as container images."""

from __future__ import annotations

CONTAINER_IMAGE_ERRORS: dict[str, tuple[str, str]] = {
    "image-no-builder": (
        (
            "container images are built by {program}, which is not installed; install it (apt install"
            " podman), or name another one: image_builder"
        ),
        "容器镜像由 {program} 构建，但尚未安装；请安装（apt install podman），或用 image_builder 指定其他程序",
    ),
    "image-builder": (
        "{program} {what} failed: {detail}",
        "{program} {what} 失败：{detail}",
    ),
    "image-not-built": (
        "image {image} was not built on this machine; build it: danlu image build {image}",
        "镜像 {image} 尚未在本机构建；请执行：danlu image build {image}",
    ),
    "image-base": (
        "the base image '{base}' cannot be had; name one that can: --base, or image_base",
        "无法获得基础镜像“{base}”；请用 --base 或 image_base 指定可用的基础镜像",
    ),
    "image-other-base": (
        (
            "image {image} is locked on the base {needs}, and '{base}' is {found}; name the locked one"
            " by its digest: --base NAME@{needs}"
        ),
        (
            "镜像 {image} 锁定的基础镜像为 {needs}，而“{base}”是 {found}；请按摘要指定：--base NAME@{needs}"
        ),
    ),
    "image-too-large": (
        (
            "image {image} is {size} bytes, and ModelArts takes at most {limit}; leave packages out of"
            " its definition"
        ),
        "镜像 {image} 为 {size} 字节，ModelArts 的上限为 {limit}；请在定义中去掉一些软件包",
    ),
    "image-other-user": (
        "image {image} starts as {found} instead of {needs}; build it anew: --fresh",
        "镜像 {image} 以 {found} 而非 {needs} 启动；请重新构建：--fresh",
    ),
    "image-has-driver": (
        (
            "the image would hold a GPU driver ({file}); drivers belong to the machine: leave the package"
            " out that brings it"
        ),
        "镜像将包含 GPU 驱动（{file}）；驱动应由宿主机提供：请去掉带来它的软件包",
    ),
    "image-archive": (
        "'{path}' was read, and no image came of it: {detail}; give a file of danlu image save",
        "已读取“{path}”，但未得到镜像：{detail}；请提供 danlu image save 生成的文件",
    ),
    "image-not-ours": (
        (
            "the image in '{path}' holds no lock of its own that fits it; give a file of danlu image"
            " save, or load it with podman or Docker and name it in engine.image_url"
        ),
        (
            "“{path}”中的镜像不含与之相符的锁文件；请提供 danlu image save 生成的文件，或用 podman 或 Docker"
            " 加载后在 engine.image_url 中指定"
        ),
    ),
    "image-file-missing-in": (
        "{image} has no file {path}; build it anew: danlu image build --fresh",
        "{image} 中没有文件 {path}；请重新构建：danlu image build --fresh",
    ),
    "image-file-exists": (
        "'{path}' is there already; name another file",
        "“{path}”已存在；请指定其他文件",
    ),
}
