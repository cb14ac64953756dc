"""ModelArts' error codes for our text keys, and the body of an error reply.

Codes of ModelArts' documentation (appendix "error codes"), of its API gateway (APIGW) and of IAM,
because programs and people search for them; what has no counterpart there is `Danlu.<key>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from danlu.model.errors import PlatformError
from danlu.model.texts import Language
from danlu.wire.shape import STRING, Schema, reply

DUPLICATE_NAME = "ModelArts.2751"
CODE_DIR = "ModelArts.2757"
BOOT_FILE = "ModelArts.2758"
CODE_FILES = "ModelArts.2759"
CODE_DEPTH = "ModelArts.2760"
CODE_SIZE = "ModelArts.2761"
NO_FLAVOR = "ModelArts.2763"
JOB_MISSING = "ModelArts.2775"
NOTEBOOK_MISSING = "ModelArts.6309"
LOG_NOT_READY = "ModelArts.2776"
METRIC_NOT_READY = "ModelArts.2777"
ENGINE = "ModelArts.2780"
FLAVOR = "ModelArts.2781"
BAD_JSON = "ModelArts.2787"
BAD_PARAMETER = "ModelArts.2788"
OBS_PATH = "ModelArts.2791"
PROJECT = "ModelArts.0210"
SIGNATURE = "APIGW.0301"
NO_API = "APIGW.0101"
BAD_METHOD = "APIGW.0103"
TOO_LARGE = "APIGW.0201"
THROTTLED = "APIGW.0308"
PASSWORD = "IAM.0101"  # noqa: S105 - an error code

CODES: Mapping[str, str] = MappingProxyType(
    {
        "not-json": BAD_JSON,
        "body-too-large": TOO_LARGE,
        "field-missing": BAD_PARAMETER,
        "field-type": BAD_PARAMETER,
        "field-value": BAD_PARAMETER,
        "field-too-long": BAD_PARAMETER,
        "field-characters": BAD_PARAMETER,
        "field-unsupported": BAD_PARAMETER,
        "field-unknown": BAD_PARAMETER,
        "too-many": BAD_PARAMETER,
        "duplicate": BAD_PARAMETER,
        "job-missing": JOB_MISSING,
        "notebook-missing": NOTEBOOK_MISSING,
        "notebook-name": DUPLICATE_NAME,
        "notebook-state": BAD_PARAMETER,
        "notebook-not-stopped": BAD_PARAMETER,
        "task-missing": JOB_MISSING,
        "job-ambiguous": BAD_PARAMETER,
        "job-live": BAD_PARAMETER,
        "job-final": BAD_PARAMETER,
        "job-not-running": BAD_PARAMETER,
        "log-not-ready": LOG_NOT_READY,
        "isolation-missing": BAD_PARAMETER,
        "flavor-unknown": FLAVOR,
        "flavor-does-not-fit": NO_FLAVOR,
        "engine-unknown": ENGINE,
        "environment-missing": ENGINE,
        "obs-url": OBS_PATH,
        "bucket-missing": OBS_PATH,
        "object-missing": OBS_PATH,
        "bucket-denied": OBS_PATH,
        "path-missing": OBS_PATH,
        "path-closed": OBS_PATH,
        "path-unwritable": OBS_PATH,
        "path-local-refused": OBS_PATH,
        "output-shared": OBS_PATH,
        "code-dir-missing": CODE_DIR,
        "code-missing": CODE_DIR,
        "code-archive": CODE_DIR,
        "code-link": CODE_DIR,
        "code-name": CODE_DIR,
        "code-special": CODE_DIR,
        "code-path-both": CODE_DIR,
        "code-path-encoding": CODE_DIR,
        "code-path-long": CODE_DIR,
        "code-path-outside": CODE_DIR,
        "code-path-twice": CODE_DIR,
        "code-path-deep": CODE_DEPTH,
        "boot-file-missing": BOOT_FILE,
        "boot-file-outside": BOOT_FILE,
        "code-too-many-files": CODE_FILES,
        "code-too-large": CODE_SIZE,
        "no-credentials": SIGNATURE,
        "algorithm-unsupported": SIGNATURE,
        "signature-malformed": SIGNATURE,
        "signature-header-missing": SIGNATURE,
        "signature-date": SIGNATURE,
        "signature-body": SIGNATURE,
        "signature-key": SIGNATURE,
        "key-for-storage": SIGNATURE,
        "signature-mismatch": SIGNATURE,
        "signature-replayed": SIGNATURE,
        "token-unknown": SIGNATURE,
        "link-invalid": SIGNATURE,
        "password-wrong": PASSWORD,
        "too-many-tries": THROTTLED,
        "project-denied": PROJECT,
        "no-such-path": NO_API,
        "method-not-allowed": BAD_METHOD,
    }
)
"""The codes of ModelArts, its gateway and IAM, by the key of our text."""


def code(key: str) -> str:
    """The error code of a text key."""
    return CODES.get(key) or f"Danlu.{key}"


def error(problem: PlatformError, request_id: str, language: Language = "en") -> dict[str, str]:
    """The body of an error reply: ModelArts' two fields, our key, and the request's id."""
    return {
        "error_code": code(problem.key),
        "error_msg": problem.message(language),
        "key": problem.key,
        "request_id": request_id,
    }


ERROR_SCHEMA: Schema = reply(
    {
        "error_code": STRING,
        "error_msg": STRING,
        "key": {**STRING, "description": "the cause for programs; never translated"},
        "request_id": STRING,
    }
)
