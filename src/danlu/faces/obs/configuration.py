"""Settings of buckets and objects that clients ask for: what is always so, and what there is not.

Nothing of it can be changed: asking for another state than the one that always holds is refused as
not implemented, never answered as if it had been done.
"""

from __future__ import annotations

from danlu.faces.http.reply import Answer, Reply
from danlu.faces.obs import reading
from danlu.faces.obs.bucket import SMALL_BODY, XML
from danlu.faces.obs.door import Door
from danlu.faces.obs.request import Request
from danlu.faces.obs.routes import VERSION, Handler, operations
from danlu.model.errors import Missing, Refused
from danlu.wire import obs, obs_requests

ABSENT = {
    "cors": "NoSuchCORSConfiguration",
    "encryption": "ServerSideEncryptionConfigurationNotFoundError",
    "lifecycle": "NoSuchLifecycleConfiguration",
    "object-lock": "ObjectLockConfigurationNotFoundError",
    "ownershipControls": "OwnershipControlsNotFoundError",
    "policy": "NoSuchBucketPolicy",
    "policyStatus": "NoSuchBucketPolicy",
    "publicAccessBlock": "NoSuchPublicAccessBlockConfiguration",
    "replication": "ReplicationConfigurationNotFoundError",
    "website": "NoSuchWebsiteConfiguration",
}
"""What no bucket has, and how S3 says so."""
REMOVABLE = ("cors", "encryption", "lifecycle", "policy", "publicAccessBlock", "website")

ALWAYS: dict[str, tuple[str, obs.Content]] = {
    "accelerate": ("AccelerateConfiguration", []),
    "logging": ("BucketLoggingStatus", []),
    "notification": ("NotificationConfiguration", []),
    "requestPayment": ("RequestPaymentConfiguration", [("Payer", "BucketOwner")]),
    "versioning": ("VersioningConfiguration", []),
}
"""What is the same for every bucket."""


def _absent(name: str, code: str) -> Handler:
    async def absent(_door: Door, request: Request) -> Answer:
        raise Missing("obs-no-configuration", name=name, bucket=request.bucket, obs_code=code)

    return absent


def _always(root: str, content: obs.Content) -> Handler:
    async def always(_door: Door, request: Request) -> Answer:
        return Reply(obs.document(root, content, request.dialect), media=XML)

    return always


async def _nothing_to_remove(_door: Door, _request: Request) -> Answer:
    return Reply(b"", 204)


for _name, _code in ABSENT.items():
    operations("GET", "bucket", _name, action=f"obs:bucket:Get-{_name}")(_absent(_name, _code))
for _name in REMOVABLE:
    operations("DELETE", "bucket", _name, action=f"obs:bucket:Delete-{_name}")(_nothing_to_remove)
for _name, (_root, _content) in ALWAYS.items():
    operations("GET", "bucket", _name, action=f"obs:bucket:Get-{_name}")(_always(_root, _content))


@operations("PUT", "bucket", "versioning", action="obs:bucket:PutBucketVersioning")
async def put_versioning(door: Door, request: Request) -> Answer:
    """Suspended is what it is; older versions cannot be kept."""
    status = obs_requests.versioning(await door.read(request, SMALL_BODY))
    if status == "Enabled":
        raise Refused("obs-not-implemented", http=501, what="versioning")
    return Reply(b"")


@operations("GET", "bucket", "storageClass", action="obs:bucket:GetBucketStoragePolicy")
@operations("GET", "bucket", "storagePolicy", action="obs:bucket:GetBucketStoragePolicy")
async def get_storage_class(_door: Door, request: Request) -> Answer:
    """The only one that there is."""
    if request.dialect is obs.OBS:
        body = obs.document("StorageClass", obs.OBS.storage_class, obs.OBS)
    else:
        content: obs.Content = [("DefaultStorageClass", obs.AMZ.storage_class)]
        body = obs.document("StoragePolicy", content, obs.AMZ)
    return Reply(body, media=XML)


@operations("GET", "bucket", "acl", action="obs:bucket:GetBucketAcl")
async def get_bucket_acl(_door: Door, request: Request) -> Answer:
    """Everything to the owner."""
    return Reply(obs.acl(request.owner, request.dialect), media=XML)


@operations("GET", "object", "acl", action="obs:object:GetObjectAcl", takes=VERSION)
async def get_object_acl(door: Door, request: Request) -> Answer:
    """The same."""
    await door.run(door.objects.head, request.bucket, request.key)
    return Reply(obs.acl(request.owner, request.dialect), media=XML)


@operations("PUT", "bucket", "acl", action="obs:bucket:PutBucketAcl")
async def put_bucket_acl(door: Door, request: Request) -> Answer:
    """Taken where it gives nothing to others."""
    return await _only_the_owner(door, request)


@operations("PUT", "object", "acl", action="obs:object:PutObjectAcl", takes=VERSION)
async def put_object_acl(door: Door, request: Request) -> Answer:
    """The same."""
    await door.run(door.objects.head, request.bucket, request.key)
    return await _only_the_owner(door, request)


async def _only_the_owner(door: Door, request: Request) -> Answer:
    canned = request.own("acl")
    if canned and canned not in reading.OWN_ACLS:
        raise Refused("obs-not-implemented", http=501, what=f"the access list '{canned}'")
    body = await door.read(request, SMALL_BODY)
    for who, what in obs_requests.grants(body) if body else ():
        if who != request.owner.id or what != "FULL_CONTROL":
            raise Refused("obs-not-implemented", http=501, what=f"{what} for '{who}'")
    return Reply(b"")
