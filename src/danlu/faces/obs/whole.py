"""What is promised of a whole object when an upload in parts is completed: its size, and a checksum
that follows from those of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from danlu.faces.obs import checksums
from danlu.faces.obs.request import Request
from danlu.model.errors import Invalid
from danlu.ports.objects import Multipart
from danlu.wire.obs_requests import SUMS, NamedPart


def check(store: Multipart, request: Request, upload: str, parts: Sequence[NamedPart]) -> None:
    """Invalid where the parts together are not what was promised. A checksum can be compared where
    the client names those of all parts, each of which was compared when it arrived.
    """
    size = request.own("mp-object-size")
    promised = {name: text for name in SUMS if (text := request.own(f"checksum-{name.lower()}"))}
    if not size and not promised:
        return
    sizes = _sizes(store, request, upload, parts)
    if size and size != str(sum(sizes)):
        raise Invalid("obs-object-size", size=sum(sizes), promised=size[:40])
    for name, text in promised.items():
        _compare(name, text, request.own("checksum-type"), parts, sizes)


def _compare(
    name: str, text: str, kind: str, parts: Sequence[NamedPart], sizes: Sequence[int]
) -> None:
    algorithm = name.lower()
    value, dash, count = text.partition("-")
    digest = checksums.read(algorithm, value)
    composite = bool(dash) or kind.upper() == "COMPOSITE"
    if digest is None or not (composite or algorithm in checksums.POLYNOMIALS):
        raise Invalid("obs-digest", header=f"x-amz-checksum-{algorithm}", value=text)
    told = [checksums.read(algorithm, part.checksums.get(name, "")) for part in parts]
    known = [one for one in told if one is not None]
    if len(known) < len(parts):
        return
    if composite:
        over = checksums.ALGORITHMS[algorithm]()
        over.update(b"".join(known))
        found = over.digest()
    else:
        found = checksums.joined(algorithm, zip(known, sizes, strict=True))
    if found != digest or (dash and count != str(len(parts))):
        shown = checksums.shown(algorithm, found) + (f"-{len(parts)}" if composite else "")
        raise Invalid("obs-checksum", name=f"checksum-{algorithm}", promised=text, found=shown)


def _sizes(
    store: Multipart, request: Request, upload: str, parts: Sequence[NamedPart]
) -> list[int]:
    """How long each part is; 0 for one that is not there, which completing refuses."""
    there: dict[tuple[int, str], int] = {}
    after: int | None = 0
    while after is not None:
        page = store.parts(request.bucket, request.key, upload, after=after)
        there.update({(part.number, part.etag): part.size for part in page.parts})
        after = page.next
    return [there.get((part.number, part.etag), 0) for part in parts]
