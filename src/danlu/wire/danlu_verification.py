"""Verifications of images as our own JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from danlu.model.verification import Advisory, Verification
from danlu.wire.shape import BOOLEAN, INTEGER, NUMBER, STRING, listing, reply

_PARTS = ("package", "version", "below", "id", "severity", "summary", "source")
_ADVISORY = reply(dict.fromkeys(_PARTS, STRING))
_CHECK = reply({"number": INTEGER, "name": STRING, "status": STRING, "detail": STRING})
VERIFICATION = reply(
    {
        "ok": BOOLEAN,
        "image": STRING,
        "image_name": STRING,
        "flavor": STRING,
        "realisation": STRING,
        "driver": STRING,
        "system": STRING,
        "job": STRING,
        "at": INTEGER,
        "took_s": NUMBER,
        "on_gpus": BOOLEAN,
        "checks": listing(_CHECK),
        "advisories": listing(_ADVISORY),
    }
)


def verification(report: Verification) -> dict[str, Any]:
    """A report: each check by its number, and the known holes of the versions."""
    return {
        "ok": report.ok,
        "image": report.image,
        "image_name": report.image_name,
        "flavor": report.flavor,
        "realisation": report.realisation,
        "driver": report.driver,
        "system": report.system,
        "job": report.job,
        "at": report.at,
        "took_s": report.took_s,
        "on_gpus": report.on_gpus,
        "checks": [{**asdict(one), "status": str(one.status)} for one in report.findings],
        "advisories": [advisory(one) for one in report.advisories],
    }


def advisory(one: Advisory) -> dict[str, str]:
    """A version with a known hole."""
    return asdict(one)
