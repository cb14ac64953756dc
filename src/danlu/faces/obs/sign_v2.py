"""Signature V2 and Huawei's own, which is V2 with other prefixes. Pure: no I/O, no clock.

The signature is HMAC-SHA1 over method, Content-MD5, Content-Type, date, the headers with the
dialect's prefix, and the resource: the path as it was sent, behind the bucket's name, with those
parameters of the query that change what is asked for.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass

from danlu.faces.http.headers import Headers, text_of
from danlu.faces.obs.query import Query
from danlu.wire.obs import Dialect

SIGNED_PARAMETERS = frozenset(
    # S3's
    {"accelerate", "acl", "analytics", "cors", "delete", "inventory", "lifecycle", "location"}
    | {"logging", "metrics", "notification", "object-lock", "partnumber", "policy", "policystatus"}
    | {"publicaccessblock", "replication", "requestpayment", "restore", "retention", "tagging"}
    | {"torrent", "uploadid", "uploads", "versionid", "versioning", "versions", "website"}
    | {"response-cache-control", "response-content-disposition", "response-content-encoding"}
    | {"response-content-language", "response-content-type", "response-expires"}
    # Huawei's
    | {"append", "backtosource", "bucketstatus", "deletebucket", "directcoldaccess", "dispolicy"}
    | {"encryption", "fileinterface", "length", "metadata", "modify", "name", "obsalias"}
    | {"obsbucketalias", "obscompresspolicy", "obsworkflowtriggerpolicy", "position", "quota"}
    | {"rename", "storageclass", "storageinfo", "storagepolicy", "truncate", "x-image-process"}
    | {"x-image-save-bucket", "x-image-save-object", "x-obs-accesslabel", "x-oss-process"}
    | {"x-workflow-execution-state", "x-workflow-execution-type", "x-workflow-graph-name"}
    | {"x-workflow-limit", "x-workflow-next-marker", "x-workflow-prefix", "x-workflow-start"}
    | {"x-workflow-template-name"}
)
"""In lower case. What the official SDK of OBS 3.26 signs (`obs/const.py`), and what boto3 does."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it came over the wire. `resource` is its path behind the bucket's name."""

    method: str
    resource: str
    query: Query
    headers: Headers


def strings_to_sign(sent: Sent, dialect: Dialect, expires: str = "") -> Iterator[str]:
    """What may have been signed; the first is the usual form. `expires` stands in a signed URL.

    Some clients write `acl=` and sign `acl`; a bucket alone is signed with and without its slash.
    """
    resources = [sent.resource]
    if sent.resource.count("/") == 1 and len(sent.resource) > 1:
        resources.append(f"{sent.resource}/")
    elif sent.resource.count("/") == 2 and sent.resource.endswith("/"):
        resources.append(sent.resource[:-1])
    queries = dict.fromkeys(
        _parameters(sent.query, dialect, empty=empty) for empty in (True, False)
    )
    head = _head(sent, dialect, expires)
    for query in queries:
        for resource in resources:
            yield f"{head}{resource}{query}"


def signature(text: str, secret: str) -> str:
    """HMAC-SHA1 in base64."""
    digest = hmac.digest(secret.encode(), text.encode("utf-8", "surrogateescape"), hashlib.sha1)
    return base64.b64encode(digest).decode()


def _head(sent: Sent, dialect: Dialect, expires: str) -> str:
    headers = sent.headers
    date = expires
    if not date and headers.get(f"{dialect.prefix}date") is None:
        date = headers.get("date") or ""
    usual = [headers.get(name) or "" for name in ("content-md5", "content-type")]
    lines = [sent.method, *map(text_of, usual), date]
    own = sorted(name for name in headers.names() if name.startswith(dialect.prefix))
    lines += [f"{name}:{text_of(headers.get(name) or '').strip()}" for name in own]
    return "\n".join(lines) + "\n"


def _parameters(query: Query, dialect: Dialect, *, empty: bool) -> str:
    signed = [
        name if value is None or (not value and not empty) else f"{name}={value}"
        for name, value in sorted(query.items(), key=lambda pair: pair[0])
        if name.lower() in SIGNED_PARAMETERS or name.lower().startswith(dialect.prefix)
    ]
    return f"?{'&'.join(signed)}" if signed else ""
