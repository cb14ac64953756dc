"""boto3, unmodified: every call that our users make, and what it said.

TEST_SIGNATURE is botocore's name of the signature, TEST_STYLE its style of addresses.
"""

import io
import json
import os
import sys
import urllib.request
from urllib.error import HTTPError

import boto3
import obs_names
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

obs_names.resolve()
bucket = os.environ["TEST_BUCKET"]
config = Config(
    signature_version=os.environ["TEST_SIGNATURE"],
    s3={"addressing_style": os.environ["TEST_STYLE"]},
    retries={"max_attempts": 1},
)
client = boto3.client(
    "s3",
    endpoint_url=os.environ["TEST_SERVER"],
    aws_access_key_id=os.environ["TEST_AK"],
    aws_secret_access_key=os.environ["TEST_SK"],
    region_name="us-east-1",
    config=config,
)
said = {}
KEY = "数据/a b+c&d=e#f%41?.txt"
BODY = "内容 body".encode()
BIG = bytes(range(256)) * (40 << 10)  # 10 MiB


def code(call, **named):
    """The status and the code of a call that must fail."""
    try:
        call(Bucket=bucket, **named)
    except ClientError as problem:
        return [
            problem.response["ResponseMetadata"]["HTTPStatusCode"],
            problem.response["Error"]["Code"],
        ]
    raise AssertionError(f"{call} {named} did not fail")


def read(key, **named):
    return client.get_object(Bucket=bucket, Key=key, **named)["Body"].read()


client.create_bucket(Bucket=bucket)
said["created twice"] = code(client.create_bucket)
said["listed"] = bucket in [one["Name"] for one in client.list_buckets()["Buckets"]]
said["location"] = client.get_bucket_location(Bucket=bucket)["LocationConstraint"]
said["region"] = client.head_bucket(Bucket=bucket)["BucketRegion"]
said["acl"] = [one["Permission"] for one in client.get_bucket_acl(Bucket=bucket)["Grants"]]
said["versioning"] = client.get_bucket_versioning(Bucket=bucket).get("Status")
said["no lifecycle"] = code(client.get_bucket_lifecycle_configuration)
said["versioned"] = code(
    client.put_bucket_versioning, VersioningConfiguration={"Status": "Enabled"}
)
said["policy"] = code(client.put_bucket_policy, Policy="{}")

# ---------------------------------------------------------------- objects
client.put_object(
    Bucket=bucket, Key=KEY, Body=BODY, Metadata={"note": "1"}, ContentType="text/x-test"
)
found = client.get_object(Bucket=bucket, Key=KEY)
said["got"] = [found["Body"].read() == BODY, found["Metadata"], found["ContentType"]]
said["range"] = (
    read(KEY, Range="bytes=2-4") == BODY[2:5] and read(KEY, Range="bytes=-2") == BODY[-2:]
)
said["outside"] = code(client.get_object, Key=KEY, Range="bytes=100-")
said["missing"] = code(client.get_object, Key="none")
said["same"] = code(client.get_object, Key=KEY, IfNoneMatch=found["ETag"])
said["other"] = code(client.get_object, Key=KEY, IfMatch='"0"')
said["put if absent"] = code(client.put_object, Key=KEY, Body=b"x", IfNoneMatch="*")
said["put if etag"] = code(client.put_object, Key=KEY, Body=b"x", IfMatch='"0"')
client.put_object(Bucket=bucket, Key=KEY, Body=BODY, IfMatch=found["ETag"], Metadata={"n": "2"})
said["replaced"] = client.head_object(Bucket=bucket, Key=KEY)["Metadata"]
said["checksums"] = [
    bool(
        client.put_object(Bucket=bucket, Key="sum", Body=BIG, ChecksumAlgorithm=name)[
            f"Checksum{name}"
        ]
    )
    for name in ("CRC32", "SHA1", "SHA256")
]
said["summed"] = read("sum") == BIG
said["wrong sum"] = code(client.put_object, Key="no", Body=b"x", ChecksumCRC32="AAAAAA==")
said["not stored"] = code(client.get_object, Key="no")
client.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": KEY})
said["copied"] = [read("copy") == BODY, client.head_object(Bucket=bucket, Key="copy")["Metadata"]]
said["copied itself"] = code(
    client.copy_object, Key="copy", CopySource={"Bucket": bucket, "Key": "copy"}
)
client.copy_object(
    Bucket=bucket,
    Key="copy",
    CopySource={"Bucket": bucket, "Key": "copy"},
    MetadataDirective="REPLACE",
    Metadata={"k": "v"},
)
said["described"] = [
    read("copy") == BODY,
    client.head_object(Bucket=bucket, Key="copy")["Metadata"],
]
said["copied if"] = code(
    client.copy_object,
    Key="copy2",
    CopySource={"Bucket": bucket, "Key": KEY},
    CopySourceIfMatch='"0"',
)
tags = {"TagSet": [{"Key": "颜色", "Value": "红"}]}
client.put_object_tagging(Bucket=bucket, Key=KEY, Tagging=tags)
said["tags"] = client.get_object_tagging(Bucket=bucket, Key=KEY)["TagSet"] == tags["TagSet"]
client.put_object(Bucket=bucket, Key="tagged", Body=b"", Tagging="a=b&c=d%20e")
said["tagged"] = client.get_object_tagging(Bucket=bucket, Key="tagged")["TagSet"]
said["encrypted"] = code(client.put_object, Key="e", Body=b"", ServerSideEncryption="AES256")
said["public"] = code(client.put_object, Key="e", Body=b"", ACL="public-read")

# ---------------------------------------------------------------- parts
parts = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
client.upload_fileobj(io.BytesIO(BIG), bucket, "parts", Config=parts)
target = io.BytesIO()
client.download_fileobj(bucket, "parts", target, Config=parts)
said["parts"] = target.getvalue() == BIG
said["etag of parts"] = client.head_object(Bucket=bucket, Key="parts")["ETag"].endswith('-2"')
upload = client.create_multipart_upload(Bucket=bucket, Key="gone")["UploadId"]
named = {"Key": "gone", "UploadId": upload}
client.upload_part(Bucket=bucket, PartNumber=1, Body=b"x", **named)
said["uploads"] = [one["Key"] for one in client.list_multipart_uploads(Bucket=bucket)["Uploads"]]
said["listed parts"] = [one["Size"] for one in client.list_parts(Bucket=bucket, **named)["Parts"]]
wrong = {"Parts": [{"PartNumber": 1, "ETag": '"0"'}]}
said["wrong part"] = code(client.complete_multipart_upload, MultipartUpload=wrong, **named)
client.abort_multipart_upload(Bucket=bucket, **named)
said["aborted"] = code(client.list_parts, **named)

# ---------------------------------------------------------------- listings
for number in range(25):
    client.put_object(Bucket=bucket, Key=f"page/{number:02}", Body=b"x")
pages = client.get_paginator("list_objects_v2").paginate(
    Bucket=bucket, Prefix="page/", PaginationConfig={"PageSize": 10}
)
said["paged"] = [one["Key"][-2:] for page in pages for one in page["Contents"]] == [
    f"{number:02}" for number in range(25)
]
found = client.list_objects_v2(Bucket=bucket, Delimiter="/")
said["folded"] = [one["Prefix"] for one in found["CommonPrefixes"]]
found = client.list_objects(Bucket=bucket, Prefix="数据/")
said["decoded"] = [one["Key"] for one in found["Contents"]]
said["versions"] = len(client.list_object_versions(Bucket=bucket, Prefix="page/")["Versions"])

# ---------------------------------------------------------------- signed URLs
place = {"Bucket": bucket, "Key": "由 URL"}
url = client.generate_presigned_url("put_object", Params=place)
# urllib would say of what type it is, which V2 signs.
request = urllib.request.Request(url, BODY, {"Content-Type": ""}, method="PUT")
with urllib.request.urlopen(request) as reply:
    said["put by url"] = reply.status
url = client.generate_presigned_url("get_object", Params=place)
with urllib.request.urlopen(url) as reply:
    said["got by url"] = reply.read() == BODY
try:
    urllib.request.urlopen(url.replace("Signature=", "Signature=0"))
except HTTPError as problem:
    said["changed url"] = problem.code

# ---------------------------------------------------------------- removing
keys = [{"Key": one["Key"]} for one in client.list_objects_v2(Bucket=bucket)["Contents"]]
said["not empty"] = code(client.delete_bucket)
deleted = client.delete_objects(Bucket=bucket, Delete={"Objects": keys})["Deleted"]
said["deleted"] = len(deleted) == len(keys)
client.delete_bucket(Bucket=bucket)
said["removed"] = code(client.get_object, Key="x")
sys.stdout.write(json.dumps(said))
