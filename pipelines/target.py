"""What code is generated for: the CPU, described by its feature flags."""

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

# Flags as Linux spells them, in the spelling of LLVM where the two differ.
_LLVM_NAMES = {
    "pni": "sse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "abm": "lzcnt",
    "avx512_vnni": "avx512vnni",
    "avx512_bf16": "avx512bf16",
}
_LLVM_NAMES |= {"avx512_fp16": "avx512fp16", "avx_vnni": "avxvnni", "amx_tile": "amx-tile", "amx_int8": "amx-int8", "amx_bf16": "amx-bf16"}

# What `mcpu` levels of the x86-64 psABI contain (System V ABI, AMD64 supplement, "micro-architecture levels").
_V2 = ("sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt")
_V3 = (*_V2, "avx", "avx2", "fma", "f16c", "lzcnt", "bmi1", "bmi2", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_LEVELS = {"x86-64": ("sse", "sse2"), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}


@dataclass(frozen=True, init=False)
class Target:
    """A CPU to compile for.

    Args:
        kind: "cpu", optionally with options as in "cpu -mcpu=x86-64-v3 -num-threads=2"; another Target is copied.
        mcpu: "native" (the default) for the flags of this machine, or a level "x86-64", "x86-64-v2", "-v3", "-v4".
        features: flags in LLVM's spelling with "+" or "-", as "+avx2,-avx512f" or a list, applied on top of `mcpu`.
        num_threads: threads that schedules plan for; by default as many as this process may use.

    Raises:
        ValueError: an unknown kind, level, option or feature syntax.

    Features come from the CPU's flags, never from a CPU name: under a hypervisor the name is often wrong.
    """

    kind: str
    mcpu: str
    features: frozenset[str]
    num_threads: int

    def __init__(
        self,
        kind: "str | Target" = "cpu",
        mcpu: str | None = None,
        features: str | Iterable[str] | None = None,
        num_threads: int | None = None,
    ) -> None:
        if isinstance(kind, Target):
            base = kind
            mcpu, num_threads = mcpu or base.mcpu, num_threads or base.num_threads
            known, name = base.features if mcpu == base.mcpu else _level(mcpu), base.kind
        else:
            name, options = _parse(kind)
            mcpu = mcpu or options.get("mcpu", "native")
            features = features if features is not None else options.get("mattr")
            num_threads = num_threads or _count(options.get("num-threads"))
            known = _level(mcpu)
        if num_threads is not None and num_threads < 1:
            raise ValueError(f"target {name}: expected at least 1 thread, found {num_threads}")
        object.__setattr__(self, "kind", name)
        object.__setattr__(self, "mcpu", mcpu)
        object.__setattr__(self, "features", _apply(known, features))
        object.__setattr__(self, "num_threads", num_threads or usable_cpus())

    def has(self, feature: str) -> bool:
        """Whether the CPU has a feature, in LLVM's spelling ("avx512f", "sse4.1")."""
        return feature in self.features

    @property
    def has_fma(self) -> bool:
        return self.has("fma") or self.has("avx512f")

    @property
    def has_f16c(self) -> bool:
        """Whether there are instructions that convert between f16 and f32."""
        return self.has("f16c") or self.has("avx512f")

    @property
    def vector_bytes(self) -> int:
        """Width of a vector register: 64 with AVX-512, 32 with AVX2, else 16."""
        return 64 if self.has("avx512f") else 32 if self.has("avx2") else 16

    @property
    def num_vector_registers(self) -> int:
        return 32 if self.has("avx512f") or platform.machine() in ("aarch64", "arm64") else 16

    def lanes(self, bits: int) -> int:
        """Elements of `bits` bits in a vector register."""
        return self.vector_bytes * 8 // bits

    @property
    def l1_bytes(self) -> int:
        """Data cache of one core, first level."""
        return _cache_bytes(1, 32 * 1024)

    @property
    def l2_bytes(self) -> int:
        """Second-level cache of one core."""
        return _cache_bytes(2, 512 * 1024)

    @property
    def is_host(self) -> bool:
        """Whether this machine has every feature of the target, so that its code runs here."""
        return self.features <= host_features()

    def __str__(self) -> str:
        return f"{self.kind} -mcpu={self.mcpu} -num-threads={self.num_threads}"


def usable_cpus() -> int:
    """CPUs this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def host_features() -> frozenset[str]:
    """Features of this machine's CPU in LLVM's spelling; the x86-64 baseline where the system does not list flags."""
    flags: list[str] = []
    if _CPUINFO.exists():
        for line in _CPUINFO.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("flags", "Features"):
                flags = value.split()
                break
    return frozenset(_LLVM_NAMES.get(flag, flag) for flag in flags) or frozenset(_LEVELS["x86-64"])


@cache
def _cache_bytes(level: int, default: int) -> int:
    """Size of this machine's data cache at `level`, or `default` where the system does not tell."""
    for entry in sorted(_CACHES.glob("index*")) if _CACHES.exists() else []:
        try:
            if (entry / "level").read_text().strip() == str(level) and (entry / "type").read_text().strip() != "Instruction":
                text = (entry / "size").read_text().strip()
                return int(text.rstrip("KM")) * {"K": 1024, "M": 1024 * 1024}.get(text[-1], 1)
        except (OSError, ValueError):
            continue
    return default


def _parse(text: str) -> tuple[str, dict[str, str]]:
    """A kind and its options, "cpu -mcpu=native" -> ("cpu", {"mcpu": "native"})."""
    words = text.split()
    if not words or words[0] not in ("cpu", "llvm"):
        raise ValueError(f"target {text!r}: expected the kind cpu, found {words[0] if words else 'nothing'}")
    options = {}
    for word in words[1:]:
        key, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not equals or key not in ("mcpu", "mattr", "num-threads"):
            raise ValueError(f"target {text!r}: expected -mcpu=, -mattr= or -num-threads=, found {word}")
        options[key] = value
    return "cpu", options


def _count(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdigit():
        raise ValueError(f"target: expected a number of threads, found {text}")
    return int(text)


def _level(mcpu: str) -> frozenset[str]:
    if mcpu == "native":
        return host_features()
    if mcpu not in _LEVELS:
        raise ValueError(f"target: expected mcpu native, {', '.join(_LEVELS)}, found {mcpu}")
    return frozenset(_LEVELS[mcpu])


def _apply(known: frozenset[str], changes: str | Iterable[str] | None) -> frozenset[str]:
    """`known` with "+f" added and "-f" removed."""
    if changes is None:
        return known
    found = set(known)
    for change in changes.split(",") if isinstance(changes, str) else changes:
        if change[:1] not in ("+", "-") or len(change) < 2:
            raise ValueError(f"target: expected features as +NAME or -NAME, found {change!r}")
        found = found | {change[1:]} if change[0] == "+" else found - {change[1:]}
    return frozenset(found)
