"""Inputs of this machine on their way to a server elsewhere."""

from __future__ import annotations

import hashlib
import os

from danlu.faces.cli.failure import FAILED, MISSING, Failure
from danlu.faces.cli.obs import tree
from danlu.faces.cli.obs.endpoint import objects
from danlu.faces.cli.obs.limiter import Limiter
from danlu.faces.cli.obs.moving import Moving
from danlu.faces.cli.obs.place import Remote
from danlu.faces.cli.obs.tree import Item, Wanted
from danlu.faces.cli.obs.upload import Uploader
from danlu.faces.cli.session import Session, utf8

THREADS = 16


def send(session: Session, word: str, option: str, *, dry: bool = False) -> str:
    """Store a file or directory with the server, unless it is there already; its storage URL. With
    `dry` only that.

    The place is named after what lies there: names, sizes and times. So a job that reads it keeps
    what it was given when the next one brings something newer.
    """
    path = os.path.abspath(os.path.expanduser(word))
    if not os.path.exists(path):
        raise Failure(MISSING, "path-missing", option=option, path=path)
    moving = Moving(session, "obs-copying", THREADS)
    is_directory = os.path.isdir(path)
    items = _items(path, moving) if is_directory else [_file(path)]
    name = utf8(os.path.basename(path), option)
    bucket = str(session.get("status")["bucket"])
    place = Remote(bucket, f"inputs/{_digest(path, items)}/{name}{'/' if is_directory else ''}")
    if dry:
        return str(place)
    store = objects(session, None)
    there = {entry.key: entry.size for entry in store.entries(bucket, place.key)}
    keys = {item.name: f"{place.key}{item.name}" for item in items}
    missing = [item for item in items if there.get(keys[item.name]) != item.size]
    if not missing:
        return str(place)
    session.say("obs-sending", path=path, files=f"{len(missing):,}", place=place)
    for item in missing:
        moving.tally.found(item.size)
    uploader = Uploader(store, moving.tally, Limiter())

    def put(item: Item) -> None:
        file = os.path.join(path, item.name) if item.name else path
        uploader.put(file, Remote(bucket, keys[item.name]))

    moving.each(missing, put, lambda item: item.name or path)
    if moving.tally.failed:
        raise Failure(FAILED, "obs-unsent", path=path, count=moving.tally.failed)
    return str(place)


def _items(path: str, moving: Moving) -> list[Item]:
    return list(tree.files(path, Wanted(), moving.skip, follow=True))


def _file(path: str) -> Item:
    found = os.stat(path)
    return Item("", found.st_size, found.st_mtime)


def _digest(path: str, items: list[Item]) -> str:
    digest = hashlib.sha256(os.fsencode(path))
    for item in items:
        digest.update(f"\0{item.name}\0{item.size}\0{item.modified}".encode())
    return digest.hexdigest()[:16]
