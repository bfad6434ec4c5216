"""CPUs as targets."""

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from relayc.pipelines.context.target import Option, Target
from relayc.pipelines.targets.cpu.features import LEVELS, PROCESSORS, changed, host_level, level_features
from relayc.runtime.cpu import host
from relayc.runtime.cpu.features import IMPLIES, host_features
from relayc.runtime.threads import checked_threads, usable_cpus

LEVEL_THREADS = 8
"""Threads that schedules for a level plan for where nothing else is said: blocks that 8 threads share evenly suit 2 and 4 as well."""
_UNKNOWN = 32 << 10, 512 << 10, 16 << 20
"""Cache sizes if the system does not report them."""
_CACHES = ("l1_bytes", "l2_bytes", "l3_bytes")
_VECTOR_BYTES = (16, 32, 64)
_MOST_REGISTERS = 64
_MOST_BYTES = 1 << 40


@dataclass(frozen=True, init=False, repr=False)
class CpuTarget(Target):
    """A CPU.

    Attributes:
      mcpu: the level whose features and caches are the defaults, and which LLVM schedules instructions for where it does not compile for
        this machine: "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4" of the x86-64 psABI, or "sapphirerapids", which is v4 with
        AVX512-BF16, AVX512-FP16, VNNI and AMX. Of "native" it becomes the highest level whose features this machine has.
      features: in LLVM's spelling. As in LLVM, a feature comes with those that it needs and goes with those that need it.
      num_threads: of "native" the CPUs that this process may use, of a level LEVEL_THREADS.
      vector_bytes: 64 with AVX-512, 32 with AVX2, else 16, where it is not given.
      num_vector_registers: 32 with AVX-512, else 16, where it is not given.
      l1_bytes, l2_bytes, l3_bytes: of "native" those of this machine, of a level those of the table features.LEVELS.
      emulate: whether the code is for this machine whatever the features: schedules are those for the features, instructions that this
        machine lacks are expanded into others. For tests and studies of other CPUs; slow. The tir stage is the same on every machine.

    Features of this machine come from the flags of its CPU, never from its name: under a hypervisor the name is often wrong.
    """

    mcpu: str

    options: ClassVar[Mapping[str, Option]] = {
        "mcpu": Option("mcpu", str),
        "mattr": Option("features", frozenset),
        "num-threads": Option("num_threads", int),
        "vector-bytes": Option("vector_bytes", int),
        "num-vector-registers": Option("num_vector_registers", int),
        "l1-bytes": Option("l1_bytes", int),
        "l2-bytes": Option("l2_bytes", int),
        "l3-bytes": Option("l3_bytes", int),
        "emulate": Option("emulate", bool),
    }

    @classmethod
    def _parse(cls, words: Iterable[str]) -> dict[str, Any]:
        rest = []
        for word in words:
            triple = word.removeprefix("-mtriple=")
            if triple == word:
                rest.append(word)
            elif triple.partition("-")[0] != platform.machine():
                raise ValueError(f"target: expected -mtriple= of this kind of machine ({platform.machine()}), found {triple!r}")
        return super()._parse(rest)

    @classmethod
    def complete(cls, given: Mapping[str, Any], base: Target | None) -> dict[str, Any]:
        mcpu = given.get("mcpu")
        mcpu = PROCESSORS.get(str(mcpu), mcpu)
        if base is not None and mcpu in (None, base.mcpu):  # type: ignore[attr-defined] # a target of this class
            start = {option.attribute: getattr(base, option.attribute) for option in cls.options.values()}
        else:
            start = _native() if mcpu in (None, "native") else _level(mcpu)
            if base is not None:
                start |= {"num_threads": base.num_threads, "emulate": base.emulate}
        features = changed(start["features"], given["features"]) if "features" in given else start["features"]
        if features != start["features"]:
            start |= _registers(features)
        found = {**start, **given, "mcpu": start["mcpu"], "features": features}
        _check(found)
        return found

    def _value_text(self, attribute: str) -> str:
        if attribute != "features":
            return super()._value_text(attribute)
        level = level_features(self.mcpu)
        return ",".join([*(f"+{f}" for f in sorted(self.features - level)), *(f"-{f}" for f in sorted(level - self.features))])

    @property
    def mask_bits(self) -> int:
        if self.has("avx512vl") and self.has("avx512bw"):
            return 8
        return 32 if self.has("avx2") else 0

    @property
    def has_fma(self) -> bool:
        return self.has("fma")

    @property
    def has_f16_conversion(self) -> bool:
        """Whether there are instructions that convert between f16 and f32."""
        return self.has("f16c")

    @property
    def has_bf16(self) -> bool:
        """Whether there are AMX tiles of bf16, or dot products of AVX512-BF16."""
        return self.has("amx-bf16") or self.has("avx512bf16")

    @property
    def reduces_range(self) -> bool:
        return self.has("avx2") and not any(map(self.has, ("avx512vnni", "avxvnni", "amx-int8")))

    @property
    def image_dtypes(self) -> frozenset[str]:
        return frozenset({"float32", "int32", "int8", "uint8"})

    @property
    def machine(self) -> "CpuTarget":
        """The target whose instructions the code uses: this machine if the features are emulated."""
        if not self.emulate:
            return self
        return Target(self.kind, num_threads=self.num_threads)  # type: ignore[return-value] # of the same kind

    @property
    def lacking(self) -> tuple[str, ...]:
        return tuple(sorted(self.machine.features - host_features()))

    @property
    def fingerprint(self) -> str:
        """All flags of this machine's CPU if LLVM compiles for it, because it may use instructions that relayc has no name for."""
        return " ".join(sorted(host.flags())) if self.machine.changes is None else ""

    @property
    def changes(self) -> tuple[str, ...] | None:
        """Every known feature with "+" or "-", as LLVM takes them; None for this machine as it is."""
        if self.features == host_features():
            return None
        lacking = [f"-{f}" for f in IMPLIES if f not in self.features]
        return (*lacking, *(f"+{f}" for f in IMPLIES if f in self.features))


def _registers(features: frozenset[str]) -> dict[str, Any]:
    wide = "avx512f" in features
    return {"vector_bytes": 64 if wide else 32 if "avx2" in features else 16, "num_vector_registers": 32 if wide else 16}


def _native() -> dict[str, Any]:
    """The attributes of this machine."""
    caches = [host.cache_bytes(level) or unknown for level, unknown in enumerate(_UNKNOWN, 1)]
    return _attributes(host_level(), host_features(), usable_cpus(), caches)


def _level(mcpu: str) -> dict[str, Any]:
    """The attributes of a level."""
    if mcpu not in LEVELS:
        raise ValueError(f"target: expected mcpu native, {', '.join(LEVELS)}, found {mcpu or 'nothing'}")
    level = LEVELS[mcpu]
    return _attributes(mcpu, level_features(mcpu), LEVEL_THREADS, [level.l1_bytes, level.l2_bytes, level.l3_bytes])


def _attributes(mcpu: str, features: frozenset[str], num_threads: int, caches: Sequence[int]) -> dict[str, Any]:
    """All attributes; `caches` are the bytes of the caches of the first, second and third level."""
    known = {"mcpu": mcpu, "features": features, "num_threads": num_threads, "emulate": False}
    return {**known, **_registers(features), **dict(zip(_CACHES, caches, strict=True))}


def _check(found: Mapping[str, Any]) -> None:
    """Raises ValueError for numbers that no CPU has."""
    checked_threads(found["num_threads"])
    if found["vector_bytes"] not in _VECTOR_BYTES:
        raise ValueError(f"target: vector_bytes: expected 16, 32 or 64, found {found['vector_bytes']}")
    if not 8 <= found["num_vector_registers"] <= _MOST_REGISTERS:
        raise ValueError(f"target: num_vector_registers: expected 8 to {_MOST_REGISTERS}, found {found['num_vector_registers']}")
    sizes = [found[name] for name in _CACHES]
    if sizes != sorted(sizes) or not 1024 <= sizes[0] <= sizes[-1] <= _MOST_BYTES:
        raise ValueError(f"target: expected 1024 <= l1_bytes <= l2_bytes <= l3_bytes <= {_MOST_BYTES}, found {', '.join(map(str, sizes))}")
