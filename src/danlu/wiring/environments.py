"""The environments of this machine in which jobs can run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from danlu.flow.catalog import Environment
from danlu.model.errors import EngineError
from danlu.model.script import TaskPlan
from danlu.node.seen import venv_version
from danlu.settings import Settings
from danlu.wiring import images


def environments(settings: Settings, workspace: str = "") -> Sequence[Environment]:
    """Every environment in which jobs of a workspace can run; the default one first."""
    # The memory engine runs nothing in them.
    pretended = settings.engine == "memory"
    found = [_environment("default", default_environment(settings), lab=pretended)]
    root = settings.data / "environments"
    found.extend(
        _environment(path.name, path, lab=pretended)
        for path in (sorted(root.iterdir()) if root.is_dir() else ())
        if path.name != "default" and (path / "bin" / "python").exists()
    )
    known = {one.id for one in found}
    named = (one for one in images.named(settings, workspace) if one.name not in known)
    found.extend(Environment(one.name, one.path, one.python, one.torch, one.id) for one in named)
    return found


def default_environment(settings: Settings) -> Path:
    """Where jobs run that name no environment."""
    if settings.default_environment:
        return Path(settings.default_environment)
    own = settings.data / "environments" / "default"
    return own if (own / "bin" / "python").exists() else Path(sys.prefix)


def environment_of(settings: Settings, plan: TaskPlan) -> Path:
    """The directory of the environment that a task runs in. An image's may still have to be made;
    EngineError for another one that has gone.
    """
    if plan.image:
        return images.store(settings).environment(plan.image)
    choice = plan.engine
    name = choice.engine_id or choice.engine_name or "default"
    found = {one.id: Path(one.directory) for one in environments(settings) if not one.image}
    directory = found.get(name, settings.data / "environments" / name)
    python = directory / "bin" / "python"
    if not python.exists():
        raise EngineError("environment-missing", path=directory, looked=python)
    return directory


def _environment(name: str, path: Path, *, lab: bool) -> Environment:
    """Read versions from the files that installers leave; nothing of the environment is run."""
    packages = [item.name for item in path.glob("lib/python3*/site-packages/torch-*.dist-info")]
    torch = packages[0].removeprefix("torch-").removesuffix(".dist-info") if packages else ""
    return Environment(name, str(path), venv_version(path), torch, lab=lab or _may_have_lab(path))


def _may_have_lab(path: Path) -> bool:
    """False only for an environment that is all of its own, and has no JupyterLab."""
    try:
        settings = (path / "pyvenv.cfg").read_text("utf-8").replace(" ", "").lower()
    except (OSError, UnicodeDecodeError):
        return True
    if "include-system-site-packages=true" in settings:
        return True
    return any(path.glob("lib*/python3*/site-packages/jupyterlab*"))
