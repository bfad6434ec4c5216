"""What code is generated for: the CPU, described by its feature flags."""

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from relayc.runtime.threads import checked_threads, usable_cpus
from relayc.runtime.tiles import tiles_supported

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

# What each feature brings along: the features of x86-64 that code is generated for, in LLVM's spelling (its X86.td).
_IMPLIES: dict[str, tuple[str, ...]] = {
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

# Flags as Linux spells them, where LLVM's spelling differs by more than underscores.
_LLVM_NAMES = {"pni": "sse3", "sse4_1": "sse4.1", "sse4_2": "sse4.2", "abm": "lzcnt", "bmi1": "bmi", "pclmulqdq": "pclmul"}

# What `mcpu` levels contain: those of the x86-64 psABI (System V ABI, AMD64 supplement, "micro-architecture levels"), and a server CPU of
# 2023 with tiles of bf16 and int8, by the name that LLVM and GCC give it.
_V2 = ("sse4.2", "popcnt")
_V3 = (*_V2, "avx2", "fma", "f16c", "lzcnt", "bmi", "bmi2", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_WIDE = ("avx512ifma", "avx512vnni", "avx512vpopcntdq", "avx512vbmi", "avx512vbmi2", "avx512bitalg", "avx512bf16", "avx512fp16")
_SERVER = (*_V4, *_WIDE, "avxvnni", "gfni", "vaes", "vpclmulqdq", "amx-tile", "amx-int8", "amx-bf16")
_LEVELS = {"x86-64": ("sse2",), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4, "sapphirerapids": _SERVER}


@dataclass(frozen=True, init=False)
class Target:
    """A CPU to compile for.

    Args:
        kind: "cpu", optionally with options as in "cpu -mcpu=x86-64-v3 -num-threads=2"; another Target is copied.
        mcpu: "native" (the default) for the flags of this machine, a level "x86-64", "x86-64-v2", "-v3", "-v4" of the x86-64 psABI, or
            "sapphirerapids", which is v4 with AVX512-BF16, AVX512-FP16, VNNI and AMX.
        features: flags in LLVM's spelling with "+" or "-", as "+avx2,-avx512f" or a list, applied in order on top of `mcpu`. As in LLVM, a
            feature comes with those that it needs and goes with those that need it.
        num_threads: threads that schedules plan for; by default as many as this process may use.
        emulate: whether the code is for this machine whatever the features: schedules are those for the features, instructions that this
            machine lacks are expanded into others. For tests and studies of other CPUs; slow.

    Raises:
        ValueError: an unknown kind, level, option or feature.

    A target may be one that this machine cannot run (`lacking`): a program compiled for it can be looked at and kept, but not called.
    Features come from the CPU's flags, never from a CPU name: under a hypervisor the name is often wrong.
    """

    kind: str
    mcpu: str
    features: frozenset[str]
    num_threads: int
    emulate: bool

    def __init__(
        self,
        kind: "str | Target" = "cpu",
        mcpu: str | None = None,
        features: str | Iterable[str] | None = None,
        num_threads: int | None = None,
        emulate: bool | None = None,
    ) -> None:
        if num_threads is not None:
            num_threads = checked_threads(num_threads)
        if isinstance(kind, Target):
            base = kind
            mcpu, num_threads = mcpu or base.mcpu, num_threads or base.num_threads
            known, name = base.features if mcpu == base.mcpu else _level(mcpu), base.kind
            emulate = base.emulate if emulate is None else emulate
        else:
            name, options = _parse(kind)
            mcpu = mcpu or options.get("mcpu", "native")
            features = features if features is not None else options.get("mattr")
            num_threads = num_threads or _threads(options.get("num-threads"))
            emulate = _flag(options.get("emulate")) if emulate is None else emulate
            known = _level(mcpu)
        object.__setattr__(self, "kind", name)
        object.__setattr__(self, "mcpu", mcpu)
        object.__setattr__(self, "features", _apply(known, features))
        object.__setattr__(self, "num_threads", num_threads or usable_cpus())
        object.__setattr__(self, "emulate", emulate)

    def has(self, feature: str) -> bool:
        """Whether the CPU has a feature, in LLVM's spelling ("avx512f", "sse4.1")."""
        return feature in self.features

    @property
    def has_fma(self) -> bool:
        return self.has("fma")

    @property
    def has_f16c(self) -> bool:
        """Whether there are instructions that convert between f16 and f32."""
        return self.has("f16c")

    @property
    def has_bf16(self) -> bool:
        """Whether there are instructions that multiply bf16 and add in f32: those of AMX or of AVX-512."""
        return self.has("amx-bf16") or self.has("avx512bf16")

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
    def lacking(self) -> tuple[str, ...]:
        """Features of the target that its code needs and this machine does not have; with any, the code does not run here."""
        return tuple(sorted(self.machine.features - host_features()))

    @property
    def machine(self) -> "Target":
        """The target whose instructions the code consists of: this machine where the features are emulated."""
        return Target(num_threads=self.num_threads) if self.emulate else self

    @property
    def is_host(self) -> bool:
        """Whether this machine has every feature of the target, so that its code runs here."""
        return not self.lacking

    @property
    def changes(self) -> tuple[str, ...] | None:
        """Every known feature with "+" or "-", as LLVM takes them; None for this machine as it is."""
        if self.mcpu == "native" and self.features == host_features():
            return None
        lacking = [f"-{f}" for f in _IMPLIES if f not in self.features]
        return (*lacking, *(f"+{f}" for f in _IMPLIES if f in self.features))

    def __str__(self) -> str:
        level = _level(self.mcpu)
        changes = [f"+{f}" for f in sorted(self.features - level)] + [f"-{f}" for f in sorted(level - self.features)]
        features = f" -mattr={','.join(changes)}" if changes else ""
        emulate = " -emulate=true" if self.emulate else ""
        return f"{self.kind} -mcpu={self.mcpu}{features} -num-threads={self.num_threads}{emulate}"


@cache
def host_features() -> frozenset[str]:
    """Known features of this machine's CPU in LLVM's spelling; the x86-64 baseline where the system does not list flags."""
    flags: list[str] = []
    if _CPUINFO.exists():
        for line in _CPUINFO.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("flags", "Features"):
                flags = value.split()
                break
    names = {_LLVM_NAMES.get(flag, flag.replace("_", "-" if flag.startswith("amx") else "")) for flag in flags}
    if "amx-tile" in names and not tiles_supported():
        names = {name for name in names if not name.startswith("amx")}
    # A system may take a feature away from programs and leave what needs it in the list.
    return frozenset(f for f in names & _IMPLIES.keys() if _with_needs(f) <= names) or _level("x86-64")


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
    if not isinstance(text, str):
        raise TypeError(f"target: expected a text or a Target, found {text!r}")
    words = text.split()
    if not words or words[0] not in ("cpu", "llvm"):
        raise ValueError(f"target {text!r}: expected the kind cpu, found {words[0] if words else 'nothing'}")
    options = {}
    for word in words[1:]:
        key, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not equals or key not in ("mcpu", "mattr", "num-threads", "emulate"):
            raise ValueError(f"target {text!r}: expected -mcpu=, -mattr=, -num-threads= or -emulate=, found {word}")
        options[key] = value
    return "cpu", options


def _threads(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal():
        raise ValueError(f"target: expected a number of threads, found {text}")
    return checked_threads(int(text))


def _flag(text: str | None) -> bool:
    if text not in (None, "true", "false"):
        raise ValueError(f"target: expected -emulate=true or -emulate=false, found {text}")
    return text == "true"


def _level(mcpu: str) -> frozenset[str]:
    if mcpu == "native":
        return host_features()
    if mcpu not in _LEVELS:
        raise ValueError(f"target: expected mcpu native, {', '.join(_LEVELS)}, found {mcpu}")
    return frozenset().union(*map(_with_needs, _LEVELS[mcpu]))


def _with_needs(feature: str) -> frozenset[str]:
    """A feature and all that it implies."""
    return frozenset({feature}).union(*map(_with_needs, _IMPLIES[feature]))


def _apply(known: frozenset[str], changes: str | Iterable[str] | None) -> frozenset[str]:
    """`known` with "+f" added and "-f" removed, in order."""
    for change in changes.split(",") if isinstance(changes, str) else changes or ():
        sign, feature = change[:1], change[1:]
        if sign not in ("+", "-") or not feature:
            raise ValueError(f"target: expected features as +NAME or -NAME, found {change!r}")
        if feature not in _IMPLIES:
            raise ValueError(f"target: expected features out of {', '.join(_IMPLIES)}, found {feature}")
        known = known | _with_needs(feature) if sign == "+" else frozenset(f for f in known if feature not in _with_needs(f))
    return known
