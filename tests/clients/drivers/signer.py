"""Signs requests with the official SDK's own signer. Run by its interpreter: JSON in, JSON out."""

import json
import sys
from types import SimpleNamespace

from huaweicloudsdkcore.sdk_request import SdkRequest
from huaweicloudsdkcore.signer.signer import Signer

found = []
for wanted in json.load(sys.stdin):
    request = SdkRequest(
        method=wanted["method"],
        schema="http",
        host=wanted["host"],
        resource_path=wanted["path"],
        query_params=[tuple(pair) for pair in wanted["query"]],
        header_params=dict(wanted["headers"]),
        body=wanted["body"],
    )
    signed = Signer(SimpleNamespace(ak=wanted["ak"], sk=wanted["sk"])).sign(request)
    found.append({"uri": signed.uri, "headers": dict(signed.header_params)})
json.dump(found, sys.stdout)
