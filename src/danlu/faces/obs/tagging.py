"""Tags of objects and buckets."""

from __future__ import annotations

from danlu.faces.http.reply import Answer, Reply
from danlu.faces.obs import reading
from danlu.faces.obs.bucket import SMALL_BODY, XML
from danlu.faces.obs.door import Door
from danlu.faces.obs.request import Request
from danlu.faces.obs.routes import VERSION, operations
from danlu.model.errors import Missing
from danlu.wire import obs, obs_requests


@operations("GET", "object", "tagging", action="obs:object:GetObjectTagging", takes=VERSION)
async def get_object_tags(door: Door, request: Request) -> Answer:
    """The tags of an object; none is an answer too."""
    reading.check_version(request)
    tags = await door.run(door.tagging.tags, request.bucket, request.key)
    return Reply(obs.tagging(list(tags.items()), request.dialect), media=XML)


@operations("PUT", "object", "tagging", action="obs:object:PutObjectTagging", takes=VERSION)
async def put_object_tags(door: Door, request: Request) -> Answer:
    """Replace the tags of an object."""
    reading.check_version(request)
    tags = obs_requests.tags(await door.read(request, SMALL_BODY), obs_requests.OBJECT_TAGS)
    await door.run(door.tagging.set_tags, request.bucket, request.key, tags)
    return Reply(b"")


@operations("DELETE", "object", "tagging", action="obs:object:DeleteObjectTagging", takes=VERSION)
async def delete_object_tags(door: Door, request: Request) -> Answer:
    """Remove the tags of an object."""
    reading.check_version(request)
    await door.run(door.tagging.set_tags, request.bucket, request.key, {})
    return Reply(b"", 204)


@operations("GET", "bucket", "tagging", action="obs:bucket:GetBucketTagging")
async def get_bucket_tags(door: Door, request: Request) -> Answer:
    """The tags of a bucket; Missing where there are none, as S3 has it."""
    tags = await door.run(door.tagging.tags, request.bucket)
    if not tags:
        raise Missing(
            "obs-no-configuration", name="tagging", bucket=request.bucket, obs_code="NoSuchTagSet"
        )
    return Reply(obs.tagging(list(tags.items()), request.dialect), media=XML)


@operations("PUT", "bucket", "tagging", action="obs:bucket:PutBucketTagging")
async def put_bucket_tags(door: Door, request: Request) -> Answer:
    """Replace the tags of a bucket."""
    tags = obs_requests.tags(await door.read(request, SMALL_BODY), obs_requests.BUCKET_TAGS)
    await door.run(door.tagging.set_tags, request.bucket, None, tags)
    return Reply(b"", 204)


@operations("DELETE", "bucket", "tagging", action="obs:bucket:DeleteBucketTagging")
async def delete_bucket_tags(door: Door, request: Request) -> Answer:
    """Remove the tags of a bucket."""
    await door.run(door.tagging.set_tags, request.bucket, None, {})
    return Reply(b"", 204)
