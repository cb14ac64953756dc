"""Everything that has to be there before the program starts: places, code, inputs, outputs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from danlu.model.errors import Missing, PlatformError
from danlu.model.event import Level
from danlu.model.job import Input, Output
from danlu.model.reason import ReasonCode
from danlu.model.resources import size
from danlu.model.script import Layout, World, world
from danlu.model.url import LocalUrl, ObjectUrl
from danlu.node import environment, full, given, places, requirements
from danlu.node.datasets import LEAST_BYTES, LEAST_FILES, DataSets
from danlu.node.directory import TaskDirectory
from danlu.node.fetch import Check, Fetcher, Source, Tally, copy_tree, survey
from danlu.node.store import open_store
from danlu.node.stored import Stored
from danlu.node.volumes import volume_of
from danlu.ports.objects import ObjectStore
from danlu.ports.task_directory import AgentPlan

PROGRESS_EVERY_S = 30.0


Install = Callable[[TaskDirectory, AgentPlan, Path, World, Check], Layout]
"""Installs a file of requirements; the layout with the interpreter and PATH that has them."""


def _ours(_place: Path) -> None:
    """The program runs as the agent's own user."""


class StageFailed(Exception):
    """The program cannot be started: why, as a reason code and what its sentence needs."""

    def __init__(self, problem: ReasonCode, **detail: str | int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.detail = detail


class Stage:
    """Prepares one task. `check` is called often and raises when the task is to be stopped. With
    `mounts` inputs of this machine will be mounted at their places, which are made for it. `own`
    gives what was put somewhere to the user of the program; `install` installs requirements, which
    are left to whoever starts the program where it is None. With `shares` the program sees at a
    place what it is told to: data sets need not be copied there.
    """

    def __init__(
        self,
        directory: TaskDirectory,
        plan: AgentPlan,
        check: Check,
        *,
        mounts: bool = False,
        shares: bool = False,
        own: Callable[[Path], None] = _ours,
        install: Install | None = requirements.install,
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._check = check
        self._mounts = mounts
        self._shares = shares
        self._own = own
        self._install = install
        self._store: ObjectStore | None = None
        self.kept: dict[int, Path] = {}
        """The inputs, by number, that are to be seen where they are kept for several tasks."""

    def run(self) -> World:
        """Prepare everything; the program's arguments, variables and directories.

        Raises StageFailed, or what `check` raises.
        """
        plan, layout = self._plan.plan, self._plan.layout
        found = world(plan, layout)
        with self._failing(ReasonCode.CODE_FAILED):
            places.make(layout, self._directory.path)
            if plan.listens:
                Path(layout.endpoints).mkdir(0o700, exist_ok=True)
            self._volumes()
            if plan.code is not None:
                self._code(plan.code, self._place(found.code_dir))
        for index, (channel, place) in enumerate(zip(plan.inputs, found.inputs, strict=True)):
            with self._failing(ReasonCode.INPUT_FAILED, name=channel.name):
                self._input(index, channel, self._place(place))
        stored = Stored(self._directory)
        for index, (output, place) in enumerate(zip(plan.outputs, found.outputs, strict=True)):
            with self._failing(ReasonCode.OUTPUT_FAILED, path=place):
                self._output(index, output, self._place(place), stored)
        for place in (layout.home, layout.cache):
            self._own(Path(place))
        wanted = Path(found.code_dir, requirements.FILE)
        given_file = wanted if plan.code is not None and wanted.is_file() else None
        if self._install is not None and (given_file is not None or plan.packages):
            return self._with_requirements(self._install, given_file, found)
        return found

    def environment(self) -> None:
        """See to it that the environment of the task's image is there. Raises as `run` does."""
        name = self._plan.plan.image_name
        with self._failing(ReasonCode.ENVIRONMENT_FAILED, image=name):
            environment.make_ready(self._directory, self._plan, self._check)

    @contextmanager
    def _failing(self, problem: ReasonCode, **detail: str | int) -> Iterator[None]:
        try:
            yield
        except (PlatformError, OSError, UnicodeError) as error:
            if full.is_cause(error):
                path = self._directory.path
                said = in_words(error)
                raise StageFailed(ReasonCode.OUT_OF_DISK, path=path, detail=said) from error
            raise StageFailed(problem, detail=in_words(error), **detail) from error

    def _place(self, path: str) -> Path:
        return places.inside(self._plan.layout, path)

    def _fetcher(self) -> tuple[ObjectStore, Fetcher]:
        if self._store is None:
            self._store = open_store(self._plan.objects)
        return self._store, Fetcher(self._store, self._check)

    def _volumes(self) -> None:
        """Whoever has no view of his own finds a volume behind a link."""
        for volume in self._plan.plan.volumes:
            place = self._place(self._plan.layout.below(volume.path))
            place.mkdir(parents=True, exist_ok=True)
            lies = Path(volume_of(self._plan, volume))
            if lies.stat().st_uid == os.geteuid():
                # What was given once need not be looked through again: it may be much.
                self._own(lies)
            if not self._mounts:
                place.rmdir()
                place.symlink_to(lies)

    # code and inputs

    def _code(self, url: ObjectUrl, place: Path) -> None:
        store, fetcher = self._fetcher()
        source = survey(store, url.bucket, url.directory, self._check)
        if not source.files:
            raise Missing("code-dir-missing", value=url)
        place.mkdir(parents=True)
        tally = fetcher.directory(source, url.directory, place, lambda _: None)
        self._warn_of_skipped(url.name, tally)
        self._directory.note(
            "code-staged", files=tally.files, size=size(tally.size), dir=str(place)
        )

    def _input(self, index: int, channel: Input, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(channel.url, LocalUrl):
            self._link(channel, channel.url, place)
            return
        began = time.monotonic()
        if self._kept(index, channel, channel.url, place):
            return
        tally = self._bring("input-staging", channel, channel.url, place)
        if tally is None:
            raise Missing("object-missing", field=channel.name, value=channel.url)
        self._directory.note(
            "input-staged",
            name=channel.name,
            files=tally.files,
            size=size(tally.size),
            url=str(channel.url),
            took_s=f"{time.monotonic() - began:.1f}",
        )

    def _kept(self, index: int, channel: Input, url: ObjectUrl, place: Path) -> bool:
        """Use a data set that stays on this machine, and bring it if it is not there; False where
        it is too small for that, too large, or a single object.
        """
        datasets = self._plan.storing.datasets
        if not datasets.limit_bytes or not self._shares or (url.key and not url.key.endswith("/")):
            return False
        store, _ = self._fetcher()
        source = survey(store, url.bucket, url.directory, self._check)
        if source.size < LEAST_BYTES and source.files < LEAST_FILES:
            return False
        began = time.monotonic()
        tally = Tally()

        def fill(tree: Path) -> None:
            nonlocal tally
            told = {"name": channel.name, "url": str(url)}
            self._directory.note("input-staging", **told, size=size(source.size))
            progress = _Progress(source.size, lambda text: self._progress(channel.name, text))
            fetcher = Fetcher(store, self._check, link=True)
            tally = fetcher.directory(source, url.directory, tree, progress.add)
            about["skipped"] = tally.skipped_count
            about["files"] = tally.files

        about: dict[str, str | int] = {"files": source.files, "size": source.size, "url": str(url)}
        keeper = DataSets(Path(datasets.root), datasets.limit_bytes)
        used = keeper.use(source.digest, self._directory.path, about, fill, self._check)
        if used is None:
            return False
        tree, there = used
        place.mkdir()
        self.kept[index] = tree
        self._warn_of_skipped(channel.name, tally)
        self._directory.note(
            "input-kept" if there else "input-staged",
            name=channel.name,
            files=about["files"],
            size=size(source.size),
            url=str(url),
            took_s=f"{time.monotonic() - began:.1f}",
        )
        return True

    def _link(self, channel: Input, url: LocalUrl, place: Path) -> None:
        """Use what lies on this machine where it lies."""
        path = given.real(url, channel.name, self._plan.isolation)
        if not path.exists():
            raise Missing("path-missing", field=channel.name, value=url.path)
        if path.is_dir():
            os.scandir(path).close()
            if self._mounts:
                place.mkdir()
            else:
                place.symlink_to(path, target_is_directory=True)
        else:
            path.open("rb").close()
            place.mkdir()
            if self._mounts:
                (place / url.name).touch()
            else:
                (place / url.name).symlink_to(path)
        self._directory.note("input-linked", name=channel.name, url=str(channel.url))

    def _bring(
        self, key: str, channel: Input | Output, url: ObjectUrl, place: Path, since: int = 0
    ) -> Tally | None:
        """Bring an object or everything below a prefix, as far as it was written since an instant
        (UTC ms); None if there is nothing. What an output holds is proved by its digests.
        """
        proved = isinstance(channel, Output)
        store, fetcher = self._fetcher()
        place.mkdir(parents=True, exist_ok=True)
        if url.key and not url.key.endswith("/"):
            try:
                info = store.head(url.bucket, url.key)
            except Missing:
                pass
            else:
                if info.modified_at < since:
                    return None
                source = Source(1, info.size, lambda: [info])
                prefix = url.key[: -len(url.name)]
                return fetcher.directory(source, prefix, place, lambda _: None, proved=proved)
        source = survey(store, url.bucket, url.directory, self._check, since)
        if not source.size and not list(source.objects()):
            return None
        told = {"name": channel.name, "url": str(url)}
        self._directory.note(key, **told, size=size(source.size))
        progress = _Progress(source.size, lambda text: self._progress(channel.name, text))
        tally = fetcher.directory(source, url.directory, place, progress.add, proved=proved)
        self._warn_of_skipped(channel.name, tally)
        return tally

    def _progress(self, name: str, text: str) -> None:
        self._directory.note("staging-progress", name=name, done=text)

    def _warn_of_skipped(self, name: str, tally: Tally) -> None:
        if tally.skipped_count:
            self._directory.note(
                "objects-skipped",
                Level.WARNING,
                name=name,
                count=tally.skipped_count,
                keys=", ".join(tally.skipped),
            )

    # outputs

    def _output(self, index: int, output: Output, place: Path, stored: Stored) -> None:
        place.mkdir(parents=True)
        if isinstance(output.url, LocalUrl):
            target = given.real(output.url, output.name, self._plan.isolation)
            target.mkdir(parents=True, exist_ok=True)
            if not os.access(target, os.W_OK | os.X_OK):
                raise PermissionError(13, f"{target} cannot be written to")
        else:
            store, _ = self._fetcher()
            store.list(output.url.bucket, limit=1)
        since = 0 if output.prefetch else self._plan.plan.resumes_from
        if not output.prefetch and not since:
            return
        if isinstance(output.url, LocalUrl):
            local = given.real(output.url, output.name, self._plan.isolation)
            tally: Tally | None = copy_tree(local, place, self._check, since)
        else:
            tally = self._bring("input-staging", output, output.url, place, since)
            for name in tally.damaged if tally is not None else ():
                self._leave_out(output, place, name)
        if tally is None or not tally.files:
            return
        self._own(place)
        stored.everything(index, place)
        self._directory.note(
            "output-prefetched",
            name=output.name,
            files=tally.files,
            size=size(tally.size),
            url=str(output.url),
        )

    def _leave_out(self, output: Output, place: Path, name: str) -> None:
        """Take away the checkpoint that a damaged file belongs to: a script that takes the newest
        one finds the one before it, whole.
        """
        whole = checkpoint_of(name)
        if whole != name:
            places.remove_tree(place / whole)
        self._directory.note(
            "output-damaged", Level.WARNING, name=output.name, file=name, left_out=whole
        )

    # requirements

    def _with_requirements(self, install: Install, file: Path | None, found: World) -> World:
        """The program's world with packages of its own: an image's environment that has them too,
        or one of the task's own that sees the job's environment.
        """
        began = time.monotonic()
        self._directory.note("requirements-installing")
        made = {}
        with self._failing(ReasonCode.REQUIREMENTS_FAILED):
            try:
                if self._plan.plan.image:
                    layout = environment.with_packages(
                        self._directory, self._plan, file, self._check
                    )
                    made = {"image": environment.image_of(layout)}
                else:
                    whole = requirements.whole(self._directory, self._plan, file)
                    layout = install(self._directory, self._plan, whole, found, self._check)
            except requirements.InstallFailed as error:
                raise StageFailed(ReasonCode.REQUIREMENTS_FAILED, detail=error.detail) from error
        took_s = f"{time.monotonic() - began:.1f}"
        self._directory.note("requirements-installed", took_s=took_s, **made)
        return world(self._plan.plan, layout)


def checkpoint_of(name: str) -> str:
    """The checkpoint that a file belongs to: the outermost directory above it whose name has a
    number (`step-200`, `epoch_3`), else its own directory, else the file itself.
    """
    parts = name.split("/")[:-1]
    for depth, part in enumerate(parts, 1):
        if any(c.isdigit() for c in part):
            return "/".join(parts[:depth])
    return "/".join(parts) or name


class _Progress:
    """Speaks up now and then while much is being brought."""

    def __init__(self, whole: int, say: Callable[[str], None]) -> None:
        self._whole = whole
        self._done = 0
        self._say = say
        self._next = time.monotonic() + PROGRESS_EVERY_S

    def add(self, count: int) -> None:
        """So many bytes more. From any thread; a lost addition only makes a figure late."""
        self._done += count
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PROGRESS_EVERY_S
            self._say(f"{size(self._done)} / {size(self._whole)}")


def in_words(error: Exception) -> str:
    """An error as the end of a sentence: which file, and what the system said."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
