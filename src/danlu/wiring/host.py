"""What the command line asks of this machine and of the matrix in the package."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from danlu.model.errors import PlatformError

if TYPE_CHECKING:
    from danlu.images.matrix import Matrix
    from danlu.images.refresh import Refreshed
    from danlu.model.image import Answer, Ask, Rejection
    from danlu.model.texts import Language
    from danlu.model.verification import Advisory
    from danlu.node.datasets import DataSet, DataSets
    from danlu.node.gpu import Inventory
    from danlu.settings import Settings


DATASETS = "datasets"
"""Where data sets stay, in the data directory."""


def datasets(data: str) -> DataSets:
    """The data sets that stay on this machine, for looking at and removing."""
    from danlu.node.datasets import DataSets

    return DataSets(Path(data, DATASETS), 0)


def kept(data: str) -> list[DataSet]:
    """Those data sets, the one that was used last first."""
    return datasets(data).all()


def gpu_inventory() -> Inventory:
    """The GPUs that tasks of this machine would get, or why there are none."""
    from danlu.node.gpu import probe

    return probe()


def image_for(wanted: Ask) -> Answer:
    """The build of PyTorch that runs where `wanted` says, by the matrix in the package."""
    from danlu.images import matrix, resolve

    return resolve.ask(matrix.packaged(), wanted)


def against_torch(torch: str, gpus: tuple[str, ...]) -> Rejection | None:
    """Why a torch that is installed cannot run on these GPUs of this machine, if it cannot."""
    from danlu.images import installed, matrix
    from danlu.node.gpu import loaded_driver

    arch = os.uname().machine
    return installed.against(matrix.packaged(), torch, gpus, loaded_driver(), arch)


def image_matrix() -> Matrix:
    """The compatibility matrix of the package."""
    from danlu.images import matrix

    return matrix.packaged()


def refreshed_matrix(index: str) -> Refreshed:
    """What an index has that the matrix does not know; empty = PyPI."""
    from danlu.images import matrix, refresh

    return refresh.refresh(matrix.packaged(), index or refresh.PYPI_INDEX)


def control_groups() -> tuple[int, int, tuple[str, ...]]:
    """The version of control groups that is mounted, the one that tasks started from here would
    use (0 = none), and what it can hold them to.
    """
    from danlu.node.cgroup_mounts import find

    found = find()
    return found.present, found.version, tuple(found.controllers)


def containers(
    settings: Settings, language: Language
) -> tuple[bool, str, str, tuple[str, ...], str, bool]:
    """Whether jobs run in containers; then why they cannot, the runtime's name and version, what it
    does not enforce, how it is asked for GPUs, and whether containers outlive its service.
    """
    if settings.engine != "container":
        return False, "", "", (), "", True
    from danlu.engines.container.runtime import look, socket_of

    try:
        found = look(socket_of(settings.container_socket))
    except PlatformError as error:
        return True, error.message(language), "", (), "", True
    kind = f"{found.name} {found.version}{', rootless' if found.rootless else ''}"
    version = f"{kind}, cgroup v{found.cgroups}, {found.socket}"
    unenforced = (*found.unenforced, *(() if found.seccomp else ("seccomp",)))
    return True, "", version, unenforced, found.gpu_driver, found.keeps


def runtimes() -> tuple[dict[str, str], list[Advisory]]:
    """The versions of what makes containers here, and the known holes of these."""
    from danlu.images import advisories
    from danlu.model.verification import Advisory
    from danlu.node.runtimes import versions

    found = versions()
    return found, [Advisory(**one) for one in advisories.against(found, advisories.HOST)]


def isolation() -> tuple[str, str, int]:
    """Who may make namespaces here (or nobody, and why), and the version of Landlock."""
    try:
        from danlu.node import landlock, namespaces

        offer = namespaces.offered()
        return offer.kind, offer.problem, landlock.abi()
    except (ImportError, AttributeError, OSError) as error:  # not Linux
        return "", str(error), 0
