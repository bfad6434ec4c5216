"""Features of x86-64 CPUs, in LLVM's spelling, and those of this machine."""

from functools import cache

from relayc.runtime.cpu import host
from relayc.runtime.cpu.tiles import tiles_supported

IMPLIES: dict[str, tuple[str, ...]] = {
    "sse": (),
    "sse2": ("sse",),
    "sse3": ("sse2",),
    "ssse3": ("sse3",),
    "sse4.1": ("ssse3",),
    "sse4.2": ("sse4.1",),
    "aes": ("sse2",),
    "pclmul": ("sse2",),
    "gfni": ("sse2",),
    "popcnt": (),
    "lzcnt": (),
    "bmi": (),
    "bmi2": (),
    "movbe": (),
    "avx": ("sse4.2",),
    "f16c": ("avx",),
    "fma": ("avx",),
    "avx2": ("avx",),
    "vaes": ("avx2", "aes"),
    "vpclmulqdq": ("avx", "pclmul"),
    "avxvnni": ("avx2",),
    "avxvnniint8": ("avx2",),
    "avxneconvert": ("avx2",),
    "avxifma": ("avx2",),
    "avx512f": ("avx2", "f16c", "fma"),
    "avx512cd": ("avx512f",),
    "avx512dq": ("avx512f",),
    "avx512bw": ("avx512f",),
    "avx512vl": ("avx512f",),
    "avx512ifma": ("avx512f",),
    "avx512vnni": ("avx512f",),
    "avx512vpopcntdq": ("avx512f",),
    "avx512vbmi": ("avx512bw",),
    "avx512vbmi2": ("avx512bw",),
    "avx512bitalg": ("avx512bw",),
    "avx512bf16": ("avx512bw",),
    "avx512fp16": ("avx512bw",),
    "amx-tile": (),
    "amx-int8": ("amx-tile",),
    "amx-bf16": ("amx-tile",),
    "amx-fp16": ("amx-tile",),
    "amx-complex": ("amx-tile",),
}
"""What each feature brings along: the features of x86-64 that code is generated for, in LLVM's spelling (its X86.td)."""

# Flags as Linux spells them, where LLVM's spelling differs by more than underscores.
_LLVM_NAMES = {"pni": "sse3", "sse4_1": "sse4.1", "sse4_2": "sse4.2", "abm": "lzcnt", "bmi1": "bmi", "pclmulqdq": "pclmul"}


_BASELINE = "sse2"
"""The feature that brings along all that every x86-64 CPU has."""


def with_needs(feature: str) -> frozenset[str]:
    """A feature and all features that it implies."""
    return frozenset({feature}).union(*map(with_needs, IMPLIES[feature]))


@cache
def host_features() -> frozenset[str]:
    """Known features of this machine's CPU; the x86-64 baseline where the system does not list flags."""
    names = {_LLVM_NAMES.get(flag, flag.replace("_", "-" if flag.startswith("amx") else "")) for flag in host.flags()}
    if "amx-tile" in names and not tiles_supported():
        names = {name for name in names if not name.startswith("amx")}
    # A system may take a feature away from programs and leave what needs it in the list.
    return frozenset(f for f in names & IMPLIES.keys() if with_needs(f) <= names) or with_needs(_BASELINE)
