"""Drives a server with the official IAM SDK: projects, domains, and a token by password."""

import json
import os
import sys

from huaweicloudsdkcore.auth.credentials import GlobalCredentials
from huaweicloudsdkcore.exceptions.exceptions import ClientRequestException
from huaweicloudsdkiam.v3 import *

endpoint = os.environ["HUAWEICLOUD_SDK_IAM_ENDPOINT"]
credentials = GlobalCredentials(
    os.environ["HUAWEICLOUD_SDK_AK"], os.environ["HUAWEICLOUD_SDK_SK"], os.environ["TEST_DOMAIN"]
)
iam = IamClient.new_builder().with_credentials(credentials).with_endpoint(endpoint).build()


def token(password):
    user = PwdPasswordUser(
        domain=PwdPasswordUserDomain(name="admin"),
        name="admin",
        password=password,
    )
    identity = PwdIdentity(methods=["password"], password=PwdPassword(user=user))
    scope = AuthScope(project=AuthScopeProject(name="cn-north-4"))
    body = KeystoneCreateUserTokenByPasswordRequestBody(
        auth=PwdAuth(identity=identity, scope=scope)
    )
    request = KeystoneCreateUserTokenByPasswordRequest(body=body)
    return iam.keystone_create_user_token_by_password(request)


found = {
    "projects": json.loads(
        str(iam.keystone_list_projects(KeystoneListProjectsRequest(name="cn-north-4")))
    ),
    "domains": json.loads(str(iam.keystone_list_auth_domains(KeystoneListAuthDomainsRequest()))),
}
made = token(os.environ["TEST_PASSWORD"])
found["token"] = made.x_subject_token
found["body"] = json.loads(str(made.token))
try:
    token("wrong")
except ClientRequestException as error:
    found["wrong password"] = [error.status_code, error.error_code]
json.dump(found, sys.stdout)
