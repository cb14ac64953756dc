"""danlu obs cp, mv and sync."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from danlu.faces.cli.failure import MISSING, USAGE, Failure
from danlu.faces.cli.obs import endpoint, tree
from danlu.faces.cli.obs.compare import changed, same_content, unsure
from danlu.faces.cli.obs.copies import Copier
from danlu.faces.cli.obs.download import Downloader
from danlu.faces.cli.obs.limiter import Limiter
from danlu.faces.cli.obs.moving import Moving
from danlu.faces.cli.obs.objects import DELETED, Objects
from danlu.faces.cli.obs.place import Local, Place, Remote, local_name, pair
from danlu.faces.cli.obs.sizes import rate
from danlu.faces.cli.obs.tree import Item, Wanted
from danlu.faces.cli.obs.upload import Uploader
from danlu.faces.cli.session import Session

THREADS = 16
MOVING = "obs-moving"


def cp(session: Session, *, places: tuple[str, ...], **options: object) -> int:
    """Copy a file, an object, or with -r all below a directory or prefix."""
    return _Copy(session, places, "obs-copying", options).run(sync=False)


def mv(session: Session, *, places: tuple[str, ...], **options: object) -> int:
    """The same, and remove what has arrived from where it was."""
    return _Copy(session, places, MOVING, options).run(sync=False)


def sync(session: Session, *, places: tuple[str, ...], **options: object) -> int:
    """Copy what is new or has changed below a directory or prefix."""
    return _Copy(session, places, "obs-syncing", options).run(sync=True)


class _Copy:
    """One command: from where to where, with what."""

    def __init__(
        self, session: Session, places: tuple[str, ...], verb: str, options: dict[str, object]
    ) -> None:
        self._session = session
        self._source, self._dest = pair(places)
        self._verb = verb
        self._many = bool(options.get("recursive"))
        self._follow = bool(options["follow_links"])
        self._delete = bool(options.get("delete"))
        self._checksum = bool(options.get("checksum"))
        self._dry = bool(options["dry_run"])
        self._wanted = Wanted(_words(options["include"]), _words(options["exclude"]))
        named, threads = options["endpoint"], options["threads"]
        self._store: Objects = endpoint.objects(session, named if isinstance(named, str) else None)
        count = threads if isinstance(threads, int) else THREADS
        self._moving = Moving(session, verb, count, dry=self._dry)
        limiter = Limiter(rate(options["limit_rate"]))
        tally = self._moving.tally
        self._up = Uploader(self._store, tally, limiter)
        self._copier = Copier(self._store, tally)
        self._down = Downloader(self._store, tally, limiter, proved=self._checksum)

    def run(self, *, sync: bool) -> int:
        """Do it; the exit status."""
        if sync:
            there = self._there()
            gone = dict(there) if self._delete else {}
            self._moving.each(self._changed(there, gone), self._move, self._name)
            if self._delete and not self._moving.tally.failed:
                self._remove(gone)
            return self._moving.end()
        items = self._below() if self._many else iter([self._one()])
        self._moving.each(self._counted(items), self._move, self._name)
        return self._moving.end()

    # ------------------------------------------------------------------ what there is

    def _one(self) -> Item:
        """The one file or object that was named; where it goes is settled, too."""
        source, dest = self._source, self._dest
        if isinstance(source, Local):
            if os.path.isdir(source.path):
                raise Failure(USAGE, "obs-recursive", place=str(source))
            try:
                found = os.stat(source.path)
            except OSError as error:
                raise Failure(
                    MISSING, "obs-file", path=source.path, detail=error.strerror
                ) from error
            item = Item("", found.st_size, found.st_mtime)
        else:
            entry = None if source.is_directory else self._store.head(source.bucket, source.key)
            if entry is None:
                key = "obs-recursive" if self._any(source) else "obs-missing"
                raise Failure(USAGE if key == "obs-recursive" else MISSING, key, place=str(source))
            item = Item("", entry.size, entry.modified, entry.etag)
        if dest.is_directory:
            if isinstance(dest, Remote):
                self._dest = Remote(dest.bucket, f"{dest.key}{_key_of(source)}")
            else:
                self._dest = Local(os.path.join(dest.path, source.name))
        return item

    def _any(self, place: Remote) -> bool:
        page = next(self._store.pages(place.bucket, place.prefix))
        return bool(page.entries)

    def _below(self) -> Iterator[Item]:
        source = self._source
        if isinstance(source, Remote):
            yield from tree.objects(self._store, source.bucket, source.prefix, self._wanted)
        elif os.path.isdir(source.path):
            yield from tree.files(source.path, self._wanted, self._moving.skip, follow=self._follow)
        else:
            key = "obs-not-directory" if os.path.exists(source.path) else "obs-file"
            detail = os.strerror(2)
            raise Failure(
                USAGE if key != "obs-file" else MISSING, key, path=source.path, detail=detail
            )

    def _counted(self, items: Iterator[Item]) -> Iterator[Item]:
        for item in items:
            if not self._possible(item):
                continue
            self._moving.tally.found(item.size)
            if self._dry:
                self._session.put(self._name(item))
                self._moving.tally.file(item.size)
            else:
                yield item

    def _possible(self, item: Item) -> bool:
        """Whether an item can be at its destination at all."""
        if not item.name:
            return True
        if isinstance(self._dest, Remote):
            if tree.fits_key(self._dest.prefix, item.name):
                return True
            self._moving.skip(item.name, "obs-skip-long")
            return False
        directory = item.name.endswith("/")
        name = local_name(item.name.rstrip("/") if directory else item.name)
        if name is None:
            self._moving.skip(item.name, "obs-skip-key")
            return False
        if directory:
            if not self._dry:
                os.makedirs(os.path.join(self._dest.path, name), exist_ok=True)
            return False
        return True

    # ------------------------------------------------------------------ sync

    def _there(self) -> dict[str, Item]:
        """What is at the destination already, by name."""
        dest = self._dest
        if isinstance(dest, Remote):
            found = tree.objects(self._store, dest.bucket, dest.prefix, self._wanted)
        elif os.path.isdir(dest.path):
            found = tree.files(dest.path, self._wanted, lambda _name, _key: None, follow=False)
        else:
            found = iter(())
        return {item.name: item for item in found}

    def _changed(self, there: dict[str, Item], gone: dict[str, Item]) -> Iterator[Item]:
        """What has to be copied. What stays is taken out of `gone`."""

        def items() -> Iterator[Item]:
            for item in self._below():
                gone.pop(item.name, None)
                if self._differs(item, there.get(item.name)):
                    yield item
                elif not item.name.endswith("/"):
                    self._moving.tally.unchanged += 1

        yield from self._counted(items())

    def _differs(self, item: Item, there: Item | None) -> bool:
        if there is None or not (self._checksum or unsure(item, there)):
            return changed(item, there)
        if item.size != there.size:
            return True
        local = self._source if isinstance(self._source, Local) else self._dest
        etag = there.etag if isinstance(self._source, Local) else item.etag
        if isinstance(local, Remote):
            return item.etag != there.etag
        descriptor = os.open(os.path.join(local.path, item.name), os.O_RDONLY | os.O_CLOEXEC)
        try:
            same = same_content(descriptor, item.size, etag)
        finally:
            os.close(descriptor)
        return changed(item, there) if same is None else not same

    def _remove(self, gone: dict[str, Item]) -> None:
        """Remove what the source does not have."""
        dest, names = self._dest, sorted(gone)
        if self._dry:
            for name in names:
                self._session.put(self._session.text("obs-would-remove", name=name))
        elif isinstance(dest, Remote):
            for start in range(0, len(names), DELETED):
                keys = [f"{dest.prefix}{name}" for name in names[start : start + DELETED]]
                for key, code in self._store.delete(dest.bucket, keys):
                    self._moving.fail(key, code)
        else:
            for name in names:
                os.unlink(os.path.join(dest.path, name))
            _tidy(dest.path, names)
        self._moving.tally.removed += len(names)

    # ------------------------------------------------------------------ one item

    def _move(self, item: Item) -> None:
        source, dest = self._source, self._dest
        if isinstance(source, Local):
            path = os.path.join(source.path, item.name) if item.name else source.path
            if isinstance(dest, Remote):
                self._up.put(path, Remote(dest.bucket, _behind(dest, item)))
            if self._verb == MOVING:
                os.unlink(path)
            return
        key = _behind(source, item)
        if isinstance(dest, Remote):
            self._copier.put(
                Remote(source.bucket, key), item, Remote(dest.bucket, _behind(dest, item))
            )
        else:
            path = os.path.join(dest.path, item.name) if item.name else dest.path
            self._down.get(source.bucket, key, item, path)
        if self._verb == MOVING:
            self._store.delete(source.bucket, [key])

    def _name(self, item: Item) -> str:
        place: Place = self._source
        if not item.name:
            return str(place)
        if isinstance(place, Remote):
            return str(Remote(place.bucket, f"{place.prefix}{item.name}"))
        return os.path.join(place.word, item.name)


def _behind(place: Remote, item: Item) -> str:
    return f"{place.prefix}{item.name}" if item.name else place.key


def _key_of(source: Place) -> str:
    return os.fsencode(source.name).decode("utf-8", "backslashreplace")


def _words(value: object) -> tuple[str, ...]:
    return tuple(str(word) for word in value) if isinstance(value, tuple) else ()


def _tidy(root: str, names: list[str]) -> None:
    """Remove the directories that are empty now."""
    directories = {os.path.dirname(name) for name in names}
    for directory in list(directories):
        parts = directory.split("/")
        directories.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
    for directory in sorted(directories - {""}, reverse=True):
        with suppress(OSError):
            os.rmdir(os.path.join(root, directory))
