"""The software bill of materials of an image, from its lock: CycloneDX 1.6 as JSON.

It holds no time, so that one image has one bill.
"""

from __future__ import annotations

import json
import uuid
from typing import Any
from urllib.parse import quote

from danlu.images.known import Image
from danlu.images.store import digits
from danlu.model.image import Built

_SPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")


def cyclonedx(image: Image, made: Built | None = None, *, version: str = "") -> str:
    """The bill as a text. With what was built of the image the packages of Debian in it, too."""
    own = f"pkg:generic/danlu/{quote(image.name)}@{digits(image.id)}"
    components = [_wheel(one.name, one.version, one.filename, one.sha256)
                  for one in sorted(image.lock.wheels)]  # fmt: skip
    if made is not None:
        components += [_apt(one, image.lock.arch) for one in sorted(made.apt)]
    data = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_SPACE, own + (made.oci_id if made else ''))}",
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "danlu", "version": version}]},
            "component": {
                "type": "container",
                "bom-ref": own,
                "name": image.name,
                "version": image.id,
                "purl": own,
                "properties": _properties(image, made),
            },
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [one["bom-ref"] for one in components]}],
    }
    return json.dumps(data, indent=1) + "\n"


def _properties(image: Image, made: Built | None) -> list[dict[str, str]]:
    found = {
        "danlu:backend": image.lock.backend,
        "danlu:arch": image.lock.arch,
        "danlu:python": image.lock.python,
        **({"danlu:base": made.base_id, "danlu:oci": made.oci_id} if made else {}),
    }
    return [{"name": name, "value": value} for name, value in found.items() if value]


def _wheel(name: str, version: str, filename: str, sha256: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{quote(name)}@{quote(version)}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "properties": [{"name": "danlu:file", "value": filename}],
    }


def _apt(line: str, arch: str) -> dict[str, Any]:
    name, _, version = line.partition("=")
    spelled = {"x86_64": "amd64", "aarch64": "arm64"}.get(arch, arch)
    purl = f"pkg:deb/debian/{quote(name)}@{quote(version)}?arch={spelled}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
