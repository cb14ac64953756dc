"""danlu obs ls, du, rm, mb and presign."""

from __future__ import annotations

from danlu.faces.cli import view
from danlu.faces.cli.failure import MISSING, REFUSED, USAGE, Failure
from danlu.faces.cli.obs.endpoint import objects
from danlu.faces.cli.obs.objects import DELETED, Objects, Refusal
from danlu.faces.cli.obs.place import Remote, remote
from danlu.faces.cli.request import duration_s
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable
from danlu.model.sign_v4 import MOST_EXPIRES_S

HOUR_S = 3600
SIZE_COLUMNS = 10
FAILED = 1


def ls(session: Session, *, place: str | None, recursive: bool, endpoint: str | None) -> int:
    """List buckets, or what lies below a prefix."""
    store = _store(session, endpoint)
    found = remote(place or "obs://")
    if not found.bucket:
        for name, made in store.buckets():
            if session.json:
                session.put_json({"bucket": name, "created": round(made * 1000)})
            else:
                session.put(f"{view.instant(round(made * 1000))}  obs://{name}/")
        return 0
    count = 0
    for page in store.pages(found.bucket, found.key, "" if recursive else "/"):
        for prefix in page.prefixes:
            count += 1
            _directory(session, found, prefix)
        for entry in page.entries:
            count += 1
            _object(session, found, entry.key, entry.size, entry.modified, entry.etag)
        session.terminal.out.flush()
    if not count and found.key:
        raise Failure(MISSING, "obs-missing", place=str(found))
    return 0


def _directory(session: Session, place: Remote, prefix: str) -> None:
    if session.json:
        session.put_json({"prefix": prefix, "url": f"obs://{place.bucket}/{prefix}"})
    else:
        margin = " " * (len(view.instant(0)) + 2 + SIZE_COLUMNS)
        session.put(f"{margin}  {printable(f'obs://{place.bucket}/{prefix}')}")


def _object(
    session: Session, place: Remote, key: str, size: int, modified: float, etag: str
) -> None:
    at = round(modified * 1000)
    url = f"obs://{place.bucket}/{key}"
    if session.json:
        session.put_json({"key": key, "bytes": size, "modified": at, "etag": etag, "url": url})
    else:
        session.put(f"{view.instant(at)}  {view.size(size):>{SIZE_COLUMNS}}  {printable(url)}")


def du(session: Session, *, place: str, endpoint: str | None) -> int:
    """Count what lies below a prefix."""
    store, found = _store(session, endpoint), _in_bucket(place)
    files = size = 0
    for entry in store.entries(found.bucket, found.key):
        files += 1
        size += entry.size
    if session.json:
        session.put_json({"url": str(found), "files": files, "bytes": size})
    else:
        session.put(f"{view.size(size):>{SIZE_COLUMNS}}  {files:,}  {printable(str(found))}")
    return 0


def rm(
    session: Session, *, place: str, recursive: bool, yes: bool, dry_run: bool, endpoint: str | None
) -> int:
    """Remove an object, or with -r all below a prefix; a whole bucket only with --yes."""
    store, found = _store(session, endpoint), _in_bucket(place)
    if not recursive:
        if found.is_directory and not found.key:
            raise Failure(USAGE, "obs-recursive", place=str(found))
        if store.head(found.bucket, found.key) is None:
            below = next(iter(store.entries(found.bucket, found.prefix)), None) is not None
            raise Failure(MISSING, "obs-below" if below else "obs-missing", place=str(found))
        if dry_run:
            session.put(printable(str(found)))
        else:
            store.delete(found.bucket, [found.key])
        return _told(session, 1, 0)
    if not found.key and not yes and not dry_run:
        raise Failure(REFUSED, "obs-whole-bucket", bucket=found.bucket)
    return _remove_below(session, store, found, dry_run=dry_run)


def _remove_below(session: Session, store: Objects, place: Remote, *, dry_run: bool) -> int:
    removed = failed = 0
    batch: list[str] = []

    def send() -> None:
        nonlocal removed, failed
        bad = store.delete(place.bucket, batch) if batch else []
        for key, code in bad:
            session.say("obs-failed", name=f"obs://{place.bucket}/{key}", detail=code)
        removed += len(batch) - len(bad)
        failed += len(bad)
        batch.clear()

    for entry in store.entries(place.bucket, place.prefix):
        if dry_run:
            session.put(printable(f"obs://{place.bucket}/{entry.key}"))
            removed += 1
            continue
        batch.append(entry.key)
        if len(batch) == DELETED:
            send()
    send()
    return _told(session, removed, failed)


def _told(session: Session, removed: int, failed: int) -> int:
    if session.json:
        session.put_json({"removed": removed, "failed": failed})
    else:
        session.say("obs-removed", count=f"{removed:,}")
        if failed:
            session.say("obs-not-done", count=f"{failed:,}")
    return FAILED if failed else 0


def mb(session: Session, *, place: str, endpoint: str | None) -> int:
    """Make a bucket. One that is there already is fine, if it is ours."""
    store, found = _store(session, endpoint), remote(place)
    if not found.bucket or found.key:
        raise Failure(USAGE, "obs-bucket", value=place)
    try:
        store.call("PUT", found.bucket)
    except Refusal as refusal:
        if refusal.code != "BucketAlreadyOwnedByYou":
            raise
    if session.json:
        session.put_json({"bucket": found.bucket})
    else:
        session.put(str(found))
    return 0


def presign(
    session: Session, *, place: str, expires: str | None, put: bool, endpoint: str | None
) -> int:
    """Print a URL that lets whoever has it read (or write) one object for a while."""
    store, found = _store(session, endpoint), _in_bucket(place)
    if not found.key:
        raise Failure(USAGE, "obs-place", value=place)
    expires_s = duration_s(expires, "--expires") or HOUR_S
    if expires_s > MOST_EXPIRES_S:
        raise Failure(USAGE, "obs-expires", value=expires, days=MOST_EXPIRES_S // 86400)
    url = store.presigned("PUT" if put else "GET", found.bucket, found.key, expires_s)
    if session.json:
        session.put_json({"url": url, "expires_s": expires_s})
    else:
        session.put(url)
    return 0


def _store(session: Session, named: str | None) -> Objects:
    return objects(session, named)


def _in_bucket(word: str) -> Remote:
    found = remote(word)
    if not found.bucket:
        raise Failure(USAGE, "obs-place", value=word)
    return found
