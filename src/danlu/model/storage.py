"""How a job's program reaches the platform's storage: the variables that libraries read.

Each attempt has a key pair of its own. It opens the buckets of the job's workspace and nothing
else, and is refused as soon as the attempt has ended. The secret is never stored: it follows from
the attempt's token and the key file, so a copy of the database gives nothing away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_KEY = re.compile(r"job-([A-Za-z0-9][A-Za-z0-9-]{0,99})-([1-9][0-9]{0,8})")

FAMILIES = ("AWS_", "OBS_", "S3_")
"""Variables that only make sense together: who names one of a family brings all of it."""
PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
NO_PROXY = ("no_proxy", "NO_PROXY")


def access_key_of(job_id: str, attempt: int) -> str:
    """The public half of an attempt's key pair. It says whose it is: it stands in logs."""
    return f"job-{job_id}-{attempt}"


def attempt_of(access_key: str) -> tuple[str, int] | None:
    """The job and the attempt that an access key belongs to; None for one of a user."""
    found = _KEY.fullmatch(access_key)
    return None if found is None else (found[1], int(found[2]))


@dataclass(frozen=True, slots=True)
class StorageAccess:
    """Where the storage is for a task, and the key pair of its attempt."""

    endpoint: str
    """A URL."""
    region: str
    access_key: str
    secret_key: str = field(repr=False)

    @property
    def on_this_machine(self) -> bool:
        """Whether only what runs on the server's own machine and network can reach it."""
        host = urlsplit(self.endpoint).hostname or ""
        return host in ("localhost", "::1") or host.startswith("127.")

    def variables(self, own: Mapping[str, str]) -> dict[str, str]:
        """The variables of the task, in the forms that boto3, s3fs, obstore, Huawei's OBS SDK, and
        ModelArts' scripts read. `own` are the job's: a family of which it names one is left to it.
        """
        secure = self.endpoint.startswith("https://")
        found = {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "OBS_ACCESS_KEY_ID": self.access_key,
            "OBS_SECRET_ACCESS_KEY": self.secret_key,
            "OBS_ENDPOINT": self.endpoint,
            "S3_ENDPOINT": self.endpoint,
            "S3_USE_HTTPS": "1" if secure else "0",
            "S3_VERIFY_SSL": "1" if secure else "0",
        }
        if not secure:
            # obstore and other users of Rust's object_store speak plain HTTP only where told to.
            found["AWS_ALLOW_HTTP"] = "true"
        named = {family for family in FAMILIES for name in own if name.startswith(family)}
        # What moxing reads, under names that no job may choose.
        return {
            **{name: found[name] for name in found if not name.startswith(tuple(named))},
            "DANLU_OBS_ENDPOINT": self.endpoint,
            "DANLU_OBS_REGION": self.region,
            "DANLU_OBS_ACCESS_KEY": self.access_key,
            "DANLU_OBS_SECRET_KEY": self.secret_key,
        }

    def past_proxies(self, variables: Mapping[str, str]) -> dict[str, str]:
        """`variables`, and where they name a proxy, that the storage is not behind it."""
        if not any(variables.get(name) for name in PROXIES):
            return dict(variables)
        host = urlsplit(self.endpoint).hostname or ""
        spared = {
            name: ",".join(filter(None, [variables.get(name, ""), host])) for name in NO_PROXY
        }
        return {**variables, **spared}
