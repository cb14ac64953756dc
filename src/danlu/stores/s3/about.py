"""What is kept with an object, as headers of S3 and back.

S3 keeps metadata as header lines: lower-case names of ASCII, values without line breaks. Whatever
does not fit there, and headers beyond ASCII, travel together in one value of ours.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from danlu.ports.objects import HEADERS, ObjectInfo
from danlu.stores.names import check_headers, check_texts
from danlu.stores.s3.answers import Answer, instant

META = "x-amz-meta-"
OURS = "danlu-"
MORE = "danlu-more"
PART_SIZE = "danlu-part-size"
"""How many bytes each part of an upload of ours has, so that a reader can check its etag."""
PUT = "danlu-put"
"""A random text of one put: whoever lost the answer finds out whether it was carried out."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_VALUE = re.compile(r"[!-~]+(?: [!-~]+)*")


def written(
    metadata: Mapping[str, str] | None, headers: Mapping[str, str] | None, **ours: str
) -> dict[str, str]:
    """The headers of a request that stores an object. Raises Invalid for what is not kept."""
    check_texts(metadata or {}, "metadata")
    check_headers(headers or {})
    sent: dict[str, str] = {}
    more: dict[str, dict[str, str]] = {}
    for name, value in (metadata or {}).items():
        if _NAME.fullmatch(name) and _VALUE.fullmatch(value) and not name.startswith(OURS):
            sent[META + name] = value
        else:
            more.setdefault("metadata", {})[name] = value
    for name, value in (headers or {}).items():
        if _VALUE.fullmatch(value):
            sent[name] = value
        else:
            more.setdefault("headers", {})[name] = value
    if more:
        text = json.dumps(more, separators=(",", ":"))
        sent[META + MORE] = base64.b64encode(text.encode()).decode()
    sent.update((f"{META}{OURS}{name.replace('_', '-')}", value) for name, value in ours.items())
    return sent


def info_of(bucket: str, key: str, answer: Answer) -> ObjectInfo:
    """What the headers of an answer say of an object."""
    metadata = {
        name.removeprefix(META): value
        for name, value in answer.headers.items()
        if name.startswith(META) and not name.startswith(META + OURS)
    }
    headers = {name: answer.headers[name] for name in HEADERS if answer.headers.get(name)}
    more = _more(answer.headers.get(META + MORE, ""))
    metadata.update(more.get("metadata", {}))
    headers.update(more.get("headers", {}))
    _, _, whole = answer.headers.get("content-range", "").rpartition("/")
    size = whole if whole.isdigit() else answer.headers.get("content-length", "0")
    return ObjectInfo(
        bucket,
        key,
        int(size),
        etag_of(answer.headers.get("etag", "")),
        instant(answer.headers.get("last-modified", "")),
        metadata,
        answer.headers.get(f"{META}{OURS}sha256", ""),
        headers,
    )


def etag_of(quoted: str) -> str:
    """An etag without its quotes."""
    return quoted.strip('"').lower()


def _more(value: str) -> dict[str, dict[str, str]]:
    """The texts in our own value; nothing where others have written there."""
    try:
        found: Any = json.loads(base64.b64decode(value, validate=True)) if value else {}
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        kind: {str(name): str(text) for name, text in texts.items()}
        for kind, texts in found.items()
        if isinstance(texts, dict)
    }
