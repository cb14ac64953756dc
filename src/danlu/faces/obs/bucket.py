"""Buckets: which there are, making and removing them, where they are and what they hold."""

from __future__ import annotations

from danlu.faces.http.reply import Answer, Header, Reply
from danlu.faces.obs import reading
from danlu.faces.obs.door import Door
from danlu.faces.obs.request import Request
from danlu.faces.obs.routes import operations
from danlu.model.errors import Invalid, Refused
from danlu.wire import obs, obs_requests

CREATE = "obs:bucket:CreateBucket"
XML = b"application/xml"
SMALL_BODY = 64 << 10
OBS_VERSION = b"3.0"


@operations("GET", "service", action="obs:bucket:ListAllMyBuckets", takes="marker max-keys")
async def list_buckets(door: Door, request: Request) -> Answer:
    """The buckets of the caller's workspace."""
    marker = request.query.get("marker")

    def found() -> list[tuple[str, int]]:
        owned = door.buckets.owned(request.caller.workspace.id)
        return [(name, door.objects.bucket(name).created_at) for name in owned if name > marker]

    listed = await door.run(found)
    limit = request.query.number("max-keys", 1000, 1, 1 << 31)
    body = obs.buckets(listed[:limit], request.owner, door.region, request.dialect)
    return Reply(body, media=XML)


@operations("PUT", "bucket", action=CREATE)
async def create_bucket(door: Door, request: Request) -> Answer:
    """A new bucket, which belongs to the caller's workspace."""
    reading.refuse_unsupported(request)
    if request.own("bucket-object-lock-enabled").lower() == "true":
        raise Refused("obs-not-implemented", http=501, what="object lock")
    region = obs_requests.location(await door.read(request, SMALL_BODY))
    if region not in ("", door.region):
        raise Invalid("obs-bucket-region", region=region, own=door.region)
    await door.run(door.buckets.create, request.caller.workspace.id, request.bucket)
    return Reply(b"", headers=[(b"location", f"/{request.bucket}".encode())])


@operations("HEAD", "bucket", action="obs:bucket:HeadBucket")
async def head_bucket(door: Door, request: Request) -> Answer:
    """Whether there is a bucket, and where."""
    await door.run(door.objects.bucket, request.bucket)
    return Reply(b"", headers=_headers(door, request))


def _headers(door: Door, request: Request) -> list[Header]:
    prefix, region = request.dialect.prefix, door.region.encode()
    kind = "bucket-location" if request.dialect is obs.OBS else "bucket-region"
    standard = "storage-class" if request.dialect is obs.OBS else ""
    name = f"{prefix}{standard}" if standard else "x-default-storage-class"
    return [
        (f"{prefix}{kind}".encode(), region),
        (name.encode(), request.dialect.storage_class.encode()),
        (f"{prefix}version".encode(), OBS_VERSION),
    ]


@operations("DELETE", "bucket", action="obs:bucket:DeleteBucket")
async def delete_bucket(door: Door, request: Request) -> Answer:
    """Remove an empty bucket."""
    await door.run(door.buckets.delete, request.caller.workspace.id, request.bucket)
    return Reply(b"", 204)


@operations("GET", "bucket", "location", action="obs:bucket:GetBucketLocation")
async def get_location(door: Door, request: Request) -> Answer:
    """The server's region."""
    return Reply(obs.location(door.region, request.dialect), media=XML)


@operations("GET", "bucket", "storageinfo", action="obs:bucket:GetBucketStorage")
async def get_storage_info(door: Door, request: Request) -> Answer:
    """How many objects there are, and how large they are together."""
    usage = await door.run(door.objects.usage, request.bucket)
    return Reply(obs.storage_info(usage.size, usage.objects, request.dialect), media=XML)


@operations("GET", "bucket", "quota", action="obs:bucket:GetBucketQuota")
async def get_quota(_door: Door, request: Request) -> Answer:
    """No limit: the disk is one."""
    return Reply(obs.quota(0, request.dialect), media=XML)


@operations("PUT", "bucket", "quota", action="obs:bucket:PutBucketQuota")
async def put_quota(door: Door, request: Request) -> Answer:
    """No limit may be set; another one cannot be kept."""
    quota = obs_requests.quota(await door.read(request, SMALL_BODY))
    if quota:
        raise Refused("obs-not-implemented", http=501, what=f"a quota of {quota} bytes")
    return Reply(b"")
