"""Virtual devices: the locations of a program's values, as far as the program or device planning determines them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

DEVICE_TYPES = {"cpu": 1, "cuda": 2, "opencl": 4, "vulkan": 7, "metal": 8, "rocm": 10}
"""The numbers of kinds of devices, as in DLPack."""
_KIND_OF_TARGET = {"llvm": "cpu", "c": "cpu", "nvptx": "cuda"}


@dataclass(frozen=True)
class VirtualDevice:
    """A device, the target that code is compiled for there, and a kind of its memory; what is not given is not constrained.

    Attributes:
      device: kind and number of the device ("cuda:0"), empty if any will do.
      target: compared with `==`.
      memory_scope: a name, empty if any will do.
    """

    device: str = ""
    target: Any = None
    memory_scope: str = ""

    def __post_init__(self) -> None:
        name = "" if self.device is None else str(self.device)
        object.__setattr__(self, "device", name if ":" in name or not name else f"{name}:0")

    @property
    def device_type(self) -> int:
        """The number of the kind of the device; 0 if it is not constrained."""
        return DEVICE_TYPES.get(self.device.partition(":")[0], -1) if self.device else 0

    @property
    def device_type_int(self) -> int:
        """The number of the kind of the device; -1 if it is not constrained."""
        return self.device_type or -1

    @property
    def virtual_device_id(self) -> int:
        """The number of the device in its kind; -1 if it is not constrained."""
        return int(self.device.partition(":")[2]) if self.device else -1

    @property
    def is_free(self) -> bool:
        """Whether nothing is constrained."""
        return not (self.device or self.target or self.memory_scope)

    @property
    def is_fixed(self) -> bool:
        """Whether everything is constrained."""
        return bool(self.device and self.target and self.memory_scope)

    def join(self, other: "VirtualDevice") -> "VirtualDevice | None":
        """The device that satisfies both constraints; None if they contradict each other."""
        pairs = [(self.device, other.device), (self.target, other.target), (self.memory_scope, other.memory_scope)]
        return None if any(a and b and a != b for a, b in pairs) else VirtualDevice(*(a or b for a, b in pairs))

    def or_else(self, default: "VirtualDevice") -> "VirtualDevice":
        """This device with the constraints of a default where it has none; target and memory only of a device of the same kind."""
        device = self.device or default.device
        same = device.partition(":")[0] == default.device.partition(":")[0]
        return VirtualDevice(device, self.target or (default.target if same else None), self.memory_scope or default.memory_scope * same)


@dataclass(frozen=True)
class CompilationConfig:
    """The devices of a program.

    Attributes:
      targets: that code is compiled for, one for each kind of device.
      default: where operators are that nothing constrains; by default the device of the first target.
      host: where shapes are, and what runs the program.
    """

    targets: tuple[Any, ...]
    default: VirtualDevice = field(default_factory=VirtualDevice)
    host: VirtualDevice = field(default_factory=lambda: VirtualDevice("cpu", "llvm"))

    @staticmethod
    def of(targets: Any, default_type: int | None = None, host_target: Any = None) -> "CompilationConfig":
        """The devices of targets. Raises ValueError if none has the default type (a number as in DLPack)."""
        given = tuple(targets) if isinstance(targets, Iterable) and not isinstance(targets, str) else (targets,)
        kinds = [device_kind(target) for target in given]
        found = [i for i, kind in enumerate(kinds) if default_type in (None, DEVICE_TYPES.get(kind))]
        if not found:
            raise ValueError(f"expected a target for devices of type {default_type}, found {', '.join(map(str, given))}")
        host = host_target or next((target for target, kind in zip(given, kinds, strict=True) if kind == "cpu"), "llvm")
        return CompilationConfig(given, VirtualDevice(kinds[found[0]], given[found[0]]), VirtualDevice("cpu", host))

    def canonical(self, device: VirtualDevice) -> VirtualDevice:
        """A virtual device with the target for its device, if there is one."""
        kind = device.device.partition(":")[0]
        target = device.target or next((target for target in self.targets if device_kind(target) == kind), None)
        return VirtualDevice(device.device, target, device.memory_scope)


def device_kind(target: Any) -> str:
    """The kind of the devices that code for a target runs on."""
    kind = str(target).split()[0]
    return _KIND_OF_TARGET.get(kind, kind)
