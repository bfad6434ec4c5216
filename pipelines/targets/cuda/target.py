"""NVIDIA GPUs as targets."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from relayc.pipelines.context.target import Option, Target
from relayc.pipelines.targets.cuda.architectures import (
    ARCHITECTURES,
    MOST_REGISTERS,
    STATIC_SHARED_BYTES,
    Architecture,
    native_architecture,
)
from relayc.runtime.device import Device, DeviceError
from relayc.runtime.threads import checked_threads, usable_cpus

DEFAULT_ARCH = "sm_80"
"""The architecture if none is given and no device is found: its PTX runs on all later architectures."""
_LOG = logging.getLogger(__name__)
_MOST_MULTIPROCESSORS = 1024
_VECTOR_BYTES = 16
"""What a thread loads or stores at once at most."""


@dataclass(frozen=True, init=False, repr=False)
class CudaTarget(Target):
    """An NVIDIA GPU. Without `arch` it is device 0 of this machine, or without a device a product of the architecture DEFAULT_ARCH.

    Attributes that are not given come from the device, or with `arch` from the largest common product of the architecture.

    Attributes:
      arch: an architecture as ptxas names it: "sm_80", "sm_90a" (see architectures.ARCHITECTURES).
      device: name of the device that gave the attributes, with "_" for spaces: "NVIDIA_H200"; "" if no device was queried.
      features: features of the architecture; none can be added or removed.
      num_multiprocessors: multiprocessors that schedules plan for.
      shared_bytes: most shared memory of a block.
      memory_bytes: memory of the device; 0 if no device was queried.
      num_threads: threads of the host that an emulated program uses.
      vector_bytes: 16, the most bytes that a thread loads or stores at once; num_vector_registers: its registers of 32 bits.
      l1_bytes: shared memory of a block; l2_bytes, l3_bytes: the cache of the device.
      emulate: whether the same kernels run on the CPU, thread by thread, with the results of the device: for tests, and for machines
        without one; slow.
    """

    arch: str
    device: str
    num_multiprocessors: int
    shared_bytes: int
    memory_bytes: int

    options: ClassVar[Mapping[str, Option]] = {
        "arch": Option("arch", str),
        "device": Option("device", str),
        "num-multiprocessors": Option("num_multiprocessors", int),
        "shared-bytes": Option("shared_bytes", int),
        "l2-bytes": Option("l2_bytes", int),
        "memory-bytes": Option("memory_bytes", int),
        "num-threads": Option("num_threads", int),
        "emulate": Option("emulate", bool),
    }

    @classmethod
    def complete(cls, given: Mapping[str, Any], base: Target | None) -> dict[str, Any]:
        kept = {} if base is None else {option.attribute: getattr(base, option.attribute) for option in cls.options.values()}
        if given.get("arch", kept.get("arch")) != kept.get("arch"):
            kept = {name: kept[name] for name in ("num_threads", "emulate") if name in kept}
        if "arch" not in {**kept, **given}:
            kept = {**kept, **_of_device()}
        name = given.get("arch", kept.get("arch", DEFAULT_ARCH))
        if name not in ARCHITECTURES:
            raise ValueError(f"target cuda: expected arch {', '.join(ARCHITECTURES)}, found {name or 'nothing'}")
        arch = ARCHITECTURES[name]
        found = {
            "arch": name,
            "device": "",
            "num_multiprocessors": arch.multiprocessors,
            "shared_bytes": arch.shared_bytes,
            "l2_bytes": arch.l2_bytes,
            "memory_bytes": 0,
            "num_threads": usable_cpus(),
            "emulate": False,
            **kept,
            **given,
        }
        checked_threads(found["num_threads"])
        if not 1 <= found["num_multiprocessors"] <= _MOST_MULTIPROCESSORS:
            count = found["num_multiprocessors"]
            raise ValueError(f"target cuda: num_multiprocessors: expected 1 to {_MOST_MULTIPROCESSORS}, found {count}")
        if not STATIC_SHARED_BYTES <= found["shared_bytes"] <= arch.shared_bytes:
            expected = f"{STATIC_SHARED_BYTES} to {arch.shared_bytes}, what {name} has"
            raise ValueError(f"target cuda: shared_bytes: expected {expected}, found {found['shared_bytes']}")
        if found["l2_bytes"] < 1:
            raise ValueError(f"target cuda: l2_bytes: expected 1 or more, found {found['l2_bytes']}")
        if found["device"].split() not in ([], [found["device"]]):
            raise ValueError(f"target cuda: device: expected a name without spaces, found {found['device']!r}")
        shared, l2 = found["shared_bytes"], found["l2_bytes"]
        facts = {"features": arch.features, "vector_bytes": _VECTOR_BYTES, "num_vector_registers": MOST_REGISTERS}
        return {**found, **facts, "l1_bytes": shared, "l3_bytes": l2}

    def _value_text(self, attribute: str) -> str:
        return "" if getattr(self, attribute) == 0 else super()._value_text(attribute)

    @property
    def architecture(self) -> Architecture:
        """What the architecture has."""
        return ARCHITECTURES[self.arch]

    @property
    def is_gpu(self) -> bool:
        return True

    @property
    def has_fma(self) -> bool:
        return True

    @property
    def has_bf16(self) -> bool:
        return self.has("mma-bf16")

    @property
    def precisions(self) -> Mapping[str, Mapping[str, int]]:
        settings = {"f16": {}, "bf16": {}, "tf32": {"schedule.mma.tf32": 1, "schedule.flash_mma.tf32": 1}}
        return {"f32": {}, **{name: given for name, given in settings.items() if self.has(f"mma-{name}")}}

    @property
    def blocks_channels(self) -> bool:
        return False

    @property
    def image_dtypes(self) -> frozenset[str]:
        return frozenset({"float32", "float16", "bfloat16", "int8", "uint8", "int32"})

    @property
    def lacking(self) -> tuple[str, ...]:
        return ()

    @property
    def fingerprint(self) -> str:
        """Code of the host and of emulated kernels is for this machine."""
        host = Target("cpu")
        return f"{host} {host.fingerprint}"


def _of_device() -> dict[str, Any]:
    """The attributes of device 0; empty if there is no device, or if it is older than all architectures, which is logged."""
    try:
        facts = Device("cuda").facts
    except DeviceError as error:
        _LOG.info("target cuda: compiling for %s: %s", DEFAULT_ARCH, error)
        return {}
    arch = native_architecture(facts.architecture)
    if arch is None:
        oldest = next(iter(ARCHITECTURES))
        _LOG.warning("target cuda: compiling for %s: expected a device of %s or later, found %s", DEFAULT_ARCH, oldest, facts)
        return {}
    shared, l2 = facts.cache_bytes
    return {
        "arch": arch.name,
        "device": "_".join(facts.name.split()),
        "num_multiprocessors": facts.cores,
        "shared_bytes": min(shared, arch.shared_bytes),
        "l2_bytes": l2 or arch.l2_bytes,
        "memory_bytes": facts.memory_bytes,
    }
