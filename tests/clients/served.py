"""A real `danlu serve` process and the environment in which official clients find it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.services import ROOT

PATIENCE_S = 90.0


@dataclass(frozen=True, slots=True)
class Served:
    """What the server said when it was ready, and where its data lie."""

    data: Path
    ready: Mapping[str, Any]
    region: str

    @property
    def environment(self) -> dict[str, str]:
        """All that a client is told."""
        api = str(self.ready["api"])
        suffix = self.region.replace("-", "_").upper()
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.data),
            f"HUAWEICLOUD_SDK_REGION_MODELARTS_{suffix}": api,
            "HUAWEICLOUD_SDK_IAM_ENDPOINT": api,
            "HUAWEICLOUD_SDK_AK": str(self.ready["access_key"]),
            "HUAWEICLOUD_SDK_SK": str(self.ready["secret_key"]),
            "TEST_REGION": self.region,
            "TEST_FLAVOR": "danlu.cpu.1u",
            "TEST_DOMAIN": str(self.ready["domain_id"]),
            "TEST_PASSWORD": (self.data / "admin-password").read_text().strip(),
        }

    def drive(self, python: Path, driver: str) -> Any:
        """What a driver prints."""
        done = subprocess.run(
            [str(python), str(ROOT / "tests" / "clients" / "drivers" / driver)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=3 * PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@contextmanager
def served(data: Path, region: str, settings: Mapping[str, str] | None = None) -> Iterator[Served]:
    """Run `danlu serve` until the block ends; `settings` are variables of the server's own."""
    ready_file = data / "ready.json"
    command = [sys.executable, "-m", "danlu", "serve", "--data", str(data), "--port", "0"]
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    process = subprocess.Popen(
        [*command, "--ready-file", str(ready_file)],
        env={**environment, "HOME": str(data), **(settings or {})},
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        yield Served(data, _ready(process, ready_file), region)
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors.decode()
    assert b"Traceback" not in errors, errors.decode()


def _ready(process: subprocess.Popen[bytes], path: Path) -> Any:
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends and process.poll() is None:
        if path.exists():
            return json.loads(path.read_text())
        time.sleep(0.05)
    process.kill()
    raise AssertionError(process.communicate()[1].decode())
