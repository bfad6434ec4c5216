"""Levels of x86-64 CPUs, and sets of features in LLVM's spelling."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from relayc.runtime.cpu.features import IMPLIES, host_features, with_needs


@dataclass(frozen=True)
class Level:
    """The properties of a named CPU.

    Attributes:
      features: a set that implies the others.
      doc: description of the features.
      l1_bytes, l2_bytes, l3_bytes: data caches: of one core, of one core, shared.
    """

    features: tuple[str, ...]
    doc: str
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int


_V2 = ("sse4.2", "popcnt")
_V3 = (*_V2, "avx2", "fma", "f16c", "lzcnt", "bmi", "bmi2", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_WIDE = ("avx512ifma", "avx512vnni", "avx512vpopcntdq", "avx512vbmi", "avx512vbmi2", "avx512bitalg", "avx512bf16", "avx512fp16")
_SERVER = (*_V4, *_WIDE, "avxvnni", "gfni", "vaes", "vpclmulqdq", "amx-tile", "amx-int8", "amx-bf16")
_KIB, _MIB = 1 << 10, 1 << 20

LEVELS = {
    "x86-64": Level(("sse2",), "SSE2", 32 * _KIB, 256 * _KIB, 8 * _MIB),
    "x86-64-v2": Level(_V2, "SSE4.2", 32 * _KIB, 256 * _KIB, 8 * _MIB),
    "x86-64-v3": Level(_V3, "AVX2, FMA, F16C", 32 * _KIB, 512 * _KIB, 16 * _MIB),
    "x86-64-v4": Level(_V4, "AVX-512", 32 * _KIB, 1 * _MIB, 32 * _MIB),
    "sapphirerapids": Level(_SERVER, "AVX-512 with bf16, f16 and VNNI, AMX", 48 * _KIB, 2 * _MIB, 60 * _MIB),
}
"""What `mcpu` names, lowest first: the levels of the x86-64 psABI (System V ABI, AMD64 supplement, "micro-architecture levels") with caches
as CPUs of the level commonly have them, and a server CPU of 2023 with tiles of bf16 and int8, by the name that LLVM and GCC give it."""

PROCESSORS = {
    **dict.fromkeys(("core-avx2", "haswell", "broadwell", "skylake", "znver1", "znver2", "znver3"), "x86-64-v3"),
    **dict.fromkeys(("skylake-avx512", "cascadelake", "icelake-server", "znver4", "znver5"), "x86-64-v4"),
}
"""LLVM's names of processors as levels: the highest one whose features the processor has."""


@cache
def level_features(mcpu: str) -> frozenset[str]:
    """All features of a level."""
    return frozenset().union(*map(with_needs, LEVELS[mcpu].features))


def changed(known: frozenset[str], changes: str | Iterable[str]) -> frozenset[str]:
    """`known` with "+f" added and "-f" removed, in order: adding a feature adds its requirements, removing it removes the features that
    require it.

    Raises:
      ValueError: a change without a sign, or an unknown feature.
    """
    for change in changes.split(",") if isinstance(changes, str) else changes:
        sign, feature = change[:1], change[1:]
        if sign not in ("+", "-") or not feature:
            raise ValueError(f"target: expected features as +NAME or -NAME, found {change!r}")
        if feature not in IMPLIES:
            raise ValueError(f"target: expected features out of {', '.join(IMPLIES)}, found {feature}")
        known = known | with_needs(feature) if sign == "+" else frozenset(f for f in known if feature not in with_needs(f))
    return known


def host_level() -> str:
    """The highest level whose features this machine has."""
    return next((level for level in reversed(LEVELS) if level_features(level) <= host_features()), "x86-64")
