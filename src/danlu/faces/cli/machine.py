"""What the kernel says about this machine, read below a root that tests may choose."""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path

UNLIMITED = 1 << 60


class Machine:
    """Files of /proc, /sys and /dev; unknown is None, never 0."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    @property
    def system(self) -> str:
        """`Linux`, `Darwin`, `Windows`."""
        return platform.system()

    @property
    def kernel(self) -> str:
        """The kernel's release."""
        return platform.release()

    def read(self, path: str) -> str | None:
        """The text of a small file, or None where there is none."""
        try:
            return (self._root / path.lstrip("/")).read_text("utf-8", "replace")[: 1 << 20]
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Whether something is there."""
        return (self._root / path.lstrip("/")).exists()

    @property
    def architecture(self) -> str:
        """The processor, as wheels name it: `x86_64`, `aarch64`."""
        return wheel_architecture(platform.machine())

    def glibc(self) -> str | None:
        """The version of the GNU C library, or None where the system has another."""
        if not hasattr(os, "confstr") or "CS_GNU_LIBC_VERSION" not in os.confstr_names:
            return None
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        return version if name == "glibc" else None

    def driver(self) -> str | None:
        """The version of NVIDIA's loaded kernel module."""
        own = (self.read("/sys/module/nvidia/version") or "").strip()
        if re.fullmatch(r"\d+\.\d+(?:\.\d+)?", own):
            return own
        text = self.read("/proc/driver/nvidia/version") or ""
        found = re.search(r"Kernel Module\D*?\s(?:for \S+\s+)?(\d+\.\d+(?:\.\d+)?)", text)
        return found[1] if found else None

    def nvidia_devices(self) -> int:
        """How many NVIDIA display devices are on the bus, driver or not."""
        count = 0
        for path in self._root.glob("sys/bus/pci/devices/*/vendor"):
            vendor = path.read_text("ascii", "replace").strip()
            kind = (self.read(str(path.parent.relative_to(self._root) / "class")) or "").strip()
            count += vendor == "0x10de" and kind.startswith("0x03")
        return count

    def memory(self) -> tuple[int, int] | None:
        """Bytes in all and available: of the machine, or of the cgroup where that has less."""
        text = self.read("/proc/meminfo")
        if text is None:
            return None
        fields = dict(re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE))
        total, free = (int(fields.get(key, 0)) << 10 for key in ("MemTotal", "MemAvailable"))
        limit = self._cgroup_memory()
        if limit is not None and limit[0] < total:
            total, free = limit[0], min(free, limit[0] - limit[1])
        return total, free

    def _cgroup_memory(self) -> tuple[int, int] | None:
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
        ):
            most = (self.read(f"/sys/fs/cgroup/{limit}") or "").strip()
            now = (self.read(f"/sys/fs/cgroup/{used}") or "").strip()
            if most.isdigit() and now.isdigit() and int(most) < UNLIMITED:
                return int(most), int(now)
        return None

    def cpus(self) -> tuple[float, int]:
        """CPUs that may be used (affinity and quota), and all that there are."""
        everything = os.cpu_count() or 1
        usable = float(everything)
        if hasattr(os, "sched_getaffinity"):
            usable = float(len(os.sched_getaffinity(0)))
        quota, _, period = (self.read("/sys/fs/cgroup/cpu.max") or "").strip().partition(" ")
        if not quota:
            quota = (self.read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") or "").strip()
            period = (self.read("/sys/fs/cgroup/cpu/cpu.cfs_period_us") or "").strip()
        if quota.isdigit() and period.isdigit() and int(period):
            usable = min(usable, int(quota) / int(period))
        return usable, everything

    def no_namespaces(self) -> tuple[str, str] | None:
        """The setting that forbids user namespaces, with its value; None if nothing does."""
        for setting, forbids in (
            ("user/max_user_namespaces", "0"),
            ("kernel/unprivileged_userns_clone", "0"),
            ("kernel/apparmor_restrict_unprivileged_userns", "1"),
        ):
            value = (self.read(f"/proc/sys/{setting}") or "").strip()
            if value == forbids:
                return setting.replace("/", "."), value
        return None

    def file_system(self, path: Path) -> str:
        """The type of the file system that holds `path`, or nothing where that is not known."""
        best, kind = "", ""
        for line in (self.read("/proc/mounts") or "").splitlines():
            parts = line.split(" ")
            if len(parts) < 3:
                continue
            mount = parts[1].encode().decode("unicode_escape")
            below = f"{path}/".startswith(mount.rstrip("/") + "/")
            if below and len(mount) >= len(best):
                best, kind = mount, parts[2]
        return kind

    def encoding(self) -> str:
        """How names of files are read."""
        return sys.getfilesystemencoding()


def wheel_architecture(name: str) -> str:
    """A processor as wheels name it, whatever the system calls it."""
    plain = name.lower()
    return {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}.get(plain, plain)
