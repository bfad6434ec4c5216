"""What the system tells of this machine's CPU: name, flags, caches, memory."""

import functools
import os
import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@functools.cache
def _entries() -> dict[str, str]:
    """The entries of the first CPU in Linux's /proc/cpuinfo; none on other systems."""
    found: dict[str, str] = {}
    try:
        for line in _CPUINFO.read_text().splitlines():
            key, colon, value = line.partition(":")
            if colon:
                found.setdefault(key.strip(), value.strip())
    except OSError:
        pass  # another system
    return found


def name() -> str:
    """The manufacturer's name of the CPU; under a hypervisor it is often wrong."""
    return _entries().get("model name") or platform.processor() or platform.machine()


def flags() -> list[str]:
    """Features of the CPU as Linux spells them; empty if the system does not list them."""
    return (_entries().get("flags") or _entries().get("Features") or "").split()


@functools.cache
def cache_bytes(level: int) -> int | None:
    """Size of the data cache at `level` (1: nearest to the core); None if the system does not report it."""
    for entry in sorted(_CACHES.glob("index*")) if _CACHES.exists() else []:
        try:
            if (entry / "level").read_text().strip() == str(level) and (entry / "type").read_text().strip() != "Instruction":
                text = (entry / "size").read_text().strip()
                return int(text.rstrip("KM")) * {"K": 1024, "M": 1024 * 1024}.get(text[-1], 1)
        except (OSError, ValueError):
            continue
    return None


def memory_bytes() -> int:
    """Physical memory; 0 if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def vector_bytes() -> int:
    """Width of a vector register: 64 with AVX-512, 32 with AVX2, else 16."""
    found = flags()
    return 64 if "avx512f" in found else 32 if "avx2" in found else 16
