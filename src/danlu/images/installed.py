"""What speaks against a torch that is installed already, on the GPUs that are to run it."""

from __future__ import annotations

import re

from danlu.images import resolve
from danlu.images.matrix import Matrix
from danlu.images.versions import cuda_tag, python_name
from danlu.model.image import CHANNELS, CPU, Ask, Rejection, Rule

_OURS = re.compile(r"(\d+\.\d+\.\d+)(?:\+(cpu|cu\d{2,4}))?")
CERTAIN = (Rule.GPU, Rule.CUDNN, Rule.DRIVER)


def against(
    matrix: Matrix, torch: str, gpus: tuple[str, ...], driver: str, arch: str
) -> Rejection | None:
    """Why a version of torch, as it is installed (2.8.0, 2.8.0+cu126), cannot run on these GPUs.

    None where nothing is certain: another release, a build of somebody's own, an unknown GPU. A
    version without a local part is taken for PyPI's. Its Python and C library are not in question.
    """
    found = _OURS.fullmatch(torch)
    release = next((one for one in matrix.releases if found and one.torch == found[1]), None)
    if found is None or release is None or not gpus:
        return None
    tag = found[2] or tag_of_pypi(matrix, release.torch, arch) or cuda_tag(release.cuda)
    wanted = Ask(
        torch=release.torch,
        cuda=tag,
        gpus=gpus,
        driver=driver,
        python=python_name(release.pythons[0]),
        glibc=release.glibc,
        arch=arch,
        channels=CHANNELS,
    )
    refused = resolve.ask(matrix, wanted).rejected
    return next((one for one in refused if one.rule in CERTAIN), None)


def tag_of_pypi(matrix: Matrix, torch: str, arch: str) -> str:
    """The tag of PyPI's wheel for an architecture; empty where that is not known."""
    tags = [
        build.tag
        for release, build in matrix.candidates(arch)
        if release.torch == torch and build.channel == "pypi" and build.arch == arch
    ]
    return min(tags, key=lambda tag: tag == CPU, default="")
