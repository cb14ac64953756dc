"""Huawei's OBS SDK, unmodified: every call that our users make, and what it said.

TEST_SIGNATURE is the SDK's own setting (empty = its default), TEST_SERVER the endpoint.
"""

import hashlib
import json
import os
import sys
import tempfile
import urllib.request
from pathlib import Path

import obs_names
from obs import (
    CompleteMultipartUploadRequest,
    CompletePart,
    CopyObjectHeader,
    DeleteObjectsRequest,
    GetObjectHeader,
    Object,
    ObsClient,
    PutObjectHeader,
    SetObjectMetadataHeader,
    Tag,
    TagInfo,
    Versions,
)

obs_names.resolve()
signature = os.environ["TEST_SIGNATURE"]
client = ObsClient(
    access_key_id=os.environ["TEST_AK"],
    secret_access_key=os.environ["TEST_SK"],
    server=os.environ["TEST_SERVER"],
    **({"signature": signature} if signature else {}),
)
bucket = os.environ["TEST_BUCKET"]
said = {}


def ok(answer, wanted=300):
    """An answer that must be good, with all that it says of itself where it is not."""
    if answer.status >= wanted:
        raise AssertionError([answer.status, answer.errorCode, answer.errorMessage, answer.reason])
    return answer


def code(answer):
    return [answer.status, answer.errorCode]


def fetch(key, **named):
    return ok(client.getObject(bucket, key, loadStreamInMemory=True, **named)).body.buffer


def url(method, key, **named):
    return client.createSignedUrl(method, bucket, key, expires=120, **named)


KEY = "数据/a b+c&d=e#f%41?.txt"
BODY = "内容 body".encode()
MD5 = hashlib.md5(BODY, usedforsecurity=False).hexdigest()
BIG = hashlib.sha256(b"seed").digest() * (6 << 15)  # 6 MiB

# ---------------------------------------------------------------- buckets
ok(client.createBucket(bucket))
said["created twice"] = code(client.createBucket(bucket))
said["listed"] = bucket in [one.name for one in ok(client.listBuckets()).body.buckets]
said["head"] = ok(client.headBucket(bucket)).status
said["head missing"] = client.headBucket("no-such-bucket").status
said["location"] = ok(client.getBucketLocation(bucket)).body.location
ok(client.getBucketMetadata(bucket))
said["acl"] = [one.permission for one in ok(client.getBucketAcl(bucket)).body.grants]
said["versioning"] = ok(client.getBucketVersioning(bucket)).body
said["policy"] = code(client.getBucketPolicy(bucket))
said["put policy"] = code(client.setBucketPolicy(bucket, "{}"))
said["quota"] = ok(client.getBucketQuota(bucket)).body.quota
said["storage class"] = ok(client.getBucketStoragePolicy(bucket)).body.storageClass

# ---------------------------------------------------------------- objects
headers = PutObjectHeader(contentType="text/x-test")
answer = ok(client.putContent(bucket, KEY, BODY, metadata={"note": "值 1"}, headers=headers))
said["etag"] = answer.body.etag == f'"{MD5}"'
said["content"] = fetch(KEY) == BODY
said["range"] = fetch(KEY, headers=GetObjectHeader(range="2-4")) == BODY[2:5]
answer = ok(client.getObjectMetadata(bucket, KEY))
said["metadata"] = [dict(answer.header).get("note"), answer.body.contentType]
said["not modified"] = client.getObject(
    bucket, KEY, headers=GetObjectHeader(if_none_match=f'"{MD5}"')
).status
said["missing"] = code(client.getObject(bucket, "no such key", loadStreamInMemory=True))
named = SetObjectMetadataHeader(contentType="text/x-other")
ok(client.setObjectMetadata(bucket, KEY, metadata={"more": "2"}, headers=named))
answer = ok(client.getObjectMetadata(bucket, KEY))
header = dict(answer.header)
said["changed"] = [header.get("note"), header.get("more"), answer.body.contentType]
said["content after"] = fetch(KEY) == BODY
ok(client.copyObject(bucket, KEY, bucket, "copy/" + KEY))
said["copied"] = fetch("copy/" + KEY) == BODY
replaced = CopyObjectHeader(directive="REPLACE", contentType="text/x-copy")
ok(client.copyObject(bucket, KEY, bucket, "copy/new", metadata={"k": "v"}, headers=replaced))
answer = ok(client.getObjectMetadata(bucket, "copy/new"))
said["copied anew"] = [dict(answer.header).get("k"), answer.body.contentType]
ok(client.setObjectTagging(bucket, KEY, [Tag("颜色", "红"), Tag("n", "")]))
said["tags"] = sorted(
    [[one.key, one.value] for one in ok(client.getObjectTagging(bucket, KEY)).body.tags]
)
ok(client.deleteObjectTagging(bucket, KEY))
said["no tags"] = len(ok(client.getObjectTagging(bucket, KEY)).body.tags)
tags = TagInfo()
tags.addTag("team", "训练")
ok(client.setBucketTagging(bucket, tags))
said["bucket tags"] = [[t.key, t.value] for t in ok(client.getBucketTagging(bucket)).body.tagSet]
ok(client.deleteBucketTagging(bucket))
said["no bucket tags"] = code(client.getBucketTagging(bucket))
said["object acl"] = [one.permission for one in ok(client.getObjectAcl(bucket, KEY)).body.grants]

# ---------------------------------------------------------------- append and rename
answer = ok(client.appendObject(bucket, "log", content={"content": "one\n", "position": 0}))
position = answer.body.nextPosition
ok(client.appendObject(bucket, "log", content={"content": "two\n", "position": position}))
said["appended"] = [position, fetch("log").decode()]
said["at a wrong place"] = code(
    client.appendObject(bucket, "log", content={"content": "x", "position": 1})
)
ok(client.renameFile(bucket, "log", "renamed 日志"))
said["renamed"] = [fetch("renamed 日志").decode(), client.headObject(bucket, "log").status]

# ---------------------------------------------------------------- parts
answer = ok(client.initiateMultipartUpload(bucket, "parts", metadata={"p": "q"}))
upload = answer.body.uploadId
uploads = ok(client.listMultipartUploads(bucket)).body.upload
said["uploads"] = [one.key for one in uploads if one.uploadId == upload]
first = ok(client.uploadPart(bucket, "parts", 1, upload, content=BIG))
second = ok(client.copyPart(bucket, "parts", 2, upload, f"{bucket}/copy/new"))
listed = ok(client.listParts(bucket, "parts", upload)).body.parts
said["parts"] = [[one.partNumber, one.size] for one in listed]
complete = CompleteMultipartUploadRequest(
    [CompletePart(1, first.body.etag), CompletePart(2, second.body.etag)]
)
ok(client.completeMultipartUpload(bucket, "parts", upload, complete))
said["joined"] = fetch("parts") == BIG + BODY
said["joined metadata"] = dict(ok(client.getObjectMetadata(bucket, "parts")).header).get("p")
upload = ok(client.initiateMultipartUpload(bucket, "gone")).body.uploadId
ok(client.uploadPart(bucket, "gone", 1, upload, content="x"))
ok(client.abortMultipartUpload(bucket, "gone", upload))
said["aborted"] = code(client.listParts(bucket, "gone", upload))

# ---------------------------------------------------------------- files
with tempfile.TemporaryDirectory() as folder:
    here, there = Path(folder, "here.bin"), Path(folder, "there.bin")
    here.write_bytes(BIG)
    ok(client.putFile(bucket, "file", str(here)))
    part = int(os.environ.get("TEST_PART", "1048576"))
    ok(client.uploadFile(bucket, "resumable", str(here), part, 4, enableCheckpoint=True))
    ok(client.downloadFile(bucket, "resumable", str(there), 1 << 20, 4, enableCheckpoint=True))
    said["files"] = [there.read_bytes() == BIG, fetch("file") == BIG]
    with here.open("rb") as stream:
        ok(client.putContent(bucket, "streamed", stream))
    said["streamed"] = fetch("streamed") == BIG

# ---------------------------------------------------------------- listings
for number in range(25):
    ok(client.putContent(bucket, f"page/{number:02}", b"x"))
marker, keys = None, []
while True:
    body = ok(client.listObjects(bucket, prefix="page/", max_keys=10, marker=marker)).body
    keys += [one.key for one in body.contents]
    marker = body.next_marker
    if not body.is_truncated:
        break
said["paged"] = keys == [f"page/{number:02}" for number in range(25)]
body = ok(client.listObjects(bucket, delimiter="/")).body
said["folded"] = [sorted(one.prefix for one in body.commonPrefixs), len(body.contents)]
body = ok(client.listObjects(bucket, prefix="数据/", encoding_type="url")).body
said["decoded"] = [one.key for one in body.contents]
said["versions"] = len(ok(client.listVersions(bucket, Versions(prefix="page/"))).body.versions)
info = ok(client.getBucketStorageInfo(bucket)).body
said["storage"] = [info.objectNumber > 25, info.size > 4 * len(BIG)]

# ---------------------------------------------------------------- signed URLs
signed = url("PUT", "由 URL", headers={"Content-Type": "text/plain"})
sent = {k: v for k, v in signed["actualSignedRequestHeaders"].items() if k != "Host"}
request = urllib.request.Request(signed["signedUrl"], BODY, sent, method="PUT")
with urllib.request.urlopen(request) as reply:
    said["put by url"] = reply.status
with urllib.request.urlopen(url("GET", "由 URL")["signedUrl"]) as reply:
    said["got by url"] = reply.read() == BODY
attachment = {"response-content-disposition": "attachment; filename=x"}
with urllib.request.urlopen(url("GET", KEY, queryParams=attachment)["signedUrl"]) as reply:
    said["named by url"] = reply.headers["content-disposition"]

# ---------------------------------------------------------------- removing
keys = [one.key for one in ok(client.listObjects(bucket)).body.contents]
wanted = DeleteObjectsRequest(False, [Object(key) for key in keys])
said["deleted"] = len(ok(client.deleteObjects(bucket, wanted)).body.deleted) == len(keys)
said["empty"] = len(ok(client.listObjects(bucket)).body.contents)
ok(client.deleteBucket(bucket))
said["removed"] = client.headBucket(bucket).status
wrong = ObsClient(os.environ["TEST_AK"], "wrong", server=os.environ["TEST_SERVER"])
said["wrong secret"] = code(wrong.listBuckets())
said["signature"] = client.signature
sys.stdout.write(json.dumps(said))
