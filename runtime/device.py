"""Devices: where tensors are stored and programs run.

A `DeviceKind`, registered under its name, describes the devices of a kind. The kind "cpu" is part of relayc; others are registered by
`register_device_kind(MyKind())`.
"""

import ctypes
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import tvm_ffi

from relayc.runtime.artifact import ObjectCode

if TYPE_CHECKING:
    from relayc.runtime.tensor import Tensor


class DeviceError(ValueError):
    """A kind of device that is not registered, a device that this machine does not have, or one that does not support the request."""


class DeviceMemoryError(MemoryError, RuntimeError):
    """A device has no memory left."""


@dataclass(frozen=True)
class DeviceFacts:
    """The properties of a device.

    Attributes:
      name: the manufacturer's name.
      cores: units that run code independently: the CPU cores that this process may use, or the multiprocessors of a GPU.
      memory_bytes: its memory; 0 if the system does not report it.
      vector_bytes: width of its vector registers.
      cache_bytes: data caches from the first level on, of one core or shared by several; a level that the system does not report is
        missing, and so are the levels after it. For a GPU: shared memory of a block, L2.
      architecture: for which code is generated, if the kind has several ("sm_90"); empty if the features of a target determine it.
    """

    name: str
    cores: int
    memory_bytes: int
    vector_bytes: int
    cache_bytes: tuple[int, ...]
    architecture: str = ""


class Recording(ABC):
    """Work for a device that was noted instead of done, and can be done again and again."""

    @abstractmethod
    def launch(self) -> None:
        """Submits the work to the device, after the earlier work of the thread's stream."""


class LoadedProgram(ABC):
    """The code of a program on one device, for kinds whose compiled programs take a context (see DeviceKind.program)."""

    @abstractmethod
    def context(self, given: np.ndarray | None = None) -> ctypes.Array:
        """What compiled code is told of the device in a call, in the order of the thread's stream: its address is the last argument of a
        packed function. It belongs to one call, and is to be kept until that returns.

        Args:
          given: where the call writes the addresses and sizes of outputs that it allocates (see runtime.late).
        """

    @abstractmethod
    def record(self, run: Callable[[ctypes.Array], None]) -> Recording:
        """Records the work that `run`, called with a context, submits to the device. Raises the exceptions of `run`."""

    @abstractmethod
    def time(self, run: Callable[[], None]) -> Callable[[], float]:
        """Calls `run`; gives what tells, once the device has been waited for, how many seconds the work took that it gave to the device."""


class DeviceKind(ABC):
    """What devices of a kind do. Tensors are tvm-ffi's, contiguous in row-major order; methods get devices that exist.

    Attributes:
      name: of the kind, a word without ":".
      dlpack_type: its DLDeviceType in DLPack (dlpack.h).
      alignment: bytes at multiples of which tensors that compiled code is given have to begin, besides those of an element.
    """

    name: str
    dlpack_type: int
    alignment: int = 1

    @abstractmethod
    def count(self) -> int:
        """How many devices of the kind this machine has."""

    @abstractmethod
    def facts(self, index: int) -> DeviceFacts:
        """The properties of a device."""

    @abstractmethod
    def empty(self, index: int, shape: Sequence[int], dtype: str) -> tvm_ffi.Tensor:
        """Uninitialised memory for a tensor on a device."""

    @abstractmethod
    def from_numpy(self, array: np.ndarray, tensor: tvm_ffi.Tensor) -> None:
        """Writes a contiguous array of the host's memory to a tensor of its shape and dtype."""

    @abstractmethod
    def to_numpy(self, tensor: tvm_ffi.Tensor) -> np.ndarray:
        """A copy of a tensor in the host's memory."""

    def send(self, array: np.ndarray, tensor: tvm_ffi.Tensor) -> None:
        """Writes a tensor as `from_numpy` does, in the order of the thread's stream: the array must not change before `wait`."""
        self.from_numpy(array, tensor)

    def fetch(self, tensor: tvm_ffi.Tensor) -> np.ndarray:
        """Copies a tensor as `to_numpy` does, in the order of the thread's stream: the array has the contents after `wait`."""
        return self.to_numpy(tensor)

    def wait(self, index: int) -> None:
        """Waits for all work submitted to the thread's stream of a device."""
        return  # `send` and `fetch` have waited

    @abstractmethod
    def copy(self, source: tvm_ffi.Tensor, destination: tvm_ffi.Tensor) -> None:
        """Copies between tensors of one shape and dtype on devices of this kind."""

    @abstractmethod
    def synchronize(self, index: int) -> None:
        """Waits for all work submitted to a device."""

    @property
    def loads_code(self) -> bool:
        """Whether this machine can load object code of the kind (see `load`)."""
        return False

    @property
    def is_host(self) -> bool:
        """Whether the memory of its devices is the host's, which arrays can share."""
        return True

    def stream_of(self, index: int, values: Sequence[Any]) -> int:
        """The stream for work on some tensors: the stream of the framework that created them, otherwise the thread's."""
        return 0

    def within(self, index: int, stream: int) -> AbstractContextManager[object]:
        """Inside of it what this thread does with a device is done in the order of a stream, which is the thread's stream then (tvm-ffi's
        environment stream). Methods of the kind act in that order."""
        return nullcontext()

    def taken(self, index: int, value: Any) -> tvm_ffi.Tensor:
        """A tensor of the device that speaks DLPack as one of tvm-ffi, without a copy: the thread's stream waits for its contents.

        Raises TypeError if it cannot be exported.
        """
        return tvm_ffi.from_dlpack(value)

    def part(self, memory: tvm_ffi.Tensor, offset: int, shape: Sequence[int], dtype: str) -> tvm_ffi.Tensor:
        """A tensor in the memory of another one, from a byte on, which it keeps alive."""
        raise DeviceError(f"device {self.name}: expected a kind whose memory has parts, found one that does not")

    def at(self, index: int, address: int, shape: Sequence[int], dtype: str) -> tvm_ffi.Tensor:
        """The tensor at an address that a program gave (see runtime.late); its memory is given back with it."""
        raise DeviceError(f"device {self.name}: expected a kind whose programs give memory, found one that does not")

    def hand_over(self, tensor: tvm_ffi.Tensor, stream: int, to: int, is_exported: bool = False) -> None:
        """Lets another stream, which is about to use a tensor, wait for the work of a stream so far.

        Args:
          is_exported: a framework may use the tensor on the other stream as long as it holds the tensor, and keeps the stream as long.
            Otherwise all uses are within the current `within`.
        """
        return  # one that has no streams has nothing to wait for

    def done(self, index: int, stream: int, values: Sequence[Any]) -> None:
        """Lets the streams of the frameworks that own some tensors wait for the work of `stream` on the tensors.

        A framework may reuse memory as soon as its own stream is done with the memory.
        """
        return

    def program(self, owner: object, index: int) -> LoadedProgram:
        """The code of a program on a device, loaded there when it is first asked for.

        Args:
          owner: of the code, as `load` gave it.

        Raises:
          DeviceError: the kind's programs take no context, or there is no code for the device.
        """
        raise DeviceError(f"device {self.name}: expected a kind whose programs take a context, found one that does not")

    def missing(self, index: int) -> str:
        """Why there is no device of a number, as a text."""
        return f"expected an index below {self.count()}, the number of such devices, found {index}"

    def load(self, code: ObjectCode, count: int) -> tuple[Sequence[int], object]:
        """Addresses of the `count` packed entries of a program, and the owner of the code in memory.

        Raises:
          DeviceError: the kind has no object code. Others may raise a ValueError for code that cannot be loaded.
        """
        raise DeviceError(f"device {self.name}: expected a kind that loads object code, found one that does not")

    def owner(self, library: ctypes.CDLL, code: ObjectCode) -> object:
        """The owner of the code of a program in a library that is in memory (see `load`).

        Args:
          code: what there is of it for devices of the kind; nothing of the host.
        """
        return library

    def lacking(self, features: Sequence[str]) -> tuple[str, ...]:
        """The features of a target, out of `features`, that this machine lacks."""
        return ()

    def open_library(self, path: Path, symbol: str) -> ctypes.CDLL:
        """Loads a shared library that was checked, and its dependencies.

        Args:
          symbol: one that it defines, and that no other library does.

        Raises:
          DeviceError: it cannot be loaded, or the kind has no libraries.
        """
        raise DeviceError(f"device {self.name}: expected a kind that loads libraries, found one that does not")

    def disassemble(self, code: ObjectCode, function: str | None) -> str:
        """The instructions of a program, or of one function with its parallel loops, as text; raises DeviceError if that is unknown."""
        raise DeviceError(f"device {self.name}: expected a kind with a disassembler, found one without")

    def request(self, permissions: Sequence[str]) -> None:
        """Requests the permissions that a program needs from the system before it runs (`Artifact.permissions`).

        Raises:
          DeviceError: the kind does not know the permission.
          RuntimeError: the system refuses.
        """
        if permissions:
            raise DeviceError(f"device {self.name}: expected no permissions, found {', '.join(permissions)}")


# ---- the registry -------------------------------------------------------------------------------------------------------------------

HOST = "cpu"
"""The kind whose code libraries and programs of the host are, whatever device has the kernels."""
_KINDS: dict[str, DeviceKind] = {}
_HOMES = {"cpu": "relayc.runtime.cpu.device", "cuda": "relayc.runtime.cuda.device"}
"""Modules that register a kind on its first use."""


def register_device_kind(kind: DeviceKind, override: bool = False) -> None:
    """Makes a kind of device known under its name.

    Raises:
      ValueError: the name is no word, or is taken and `override` is false.
    """
    if not kind.name.isidentifier():
        raise ValueError(f"device kind {kind.name!r}: expected a word for a name")
    home = type(kind).__module__
    if not override and (kind.name in _KINDS or _HOMES.get(kind.name, home) != home):
        raise ValueError(f"device kind {kind.name!r}: expected a free name or override=True, found it registered")
    _KINDS[kind.name] = kind


def unregister_device_kind(name: str) -> None:
    """Forgets a kind that was registered."""
    _KINDS.pop(name, None)


def device_kind(name: str) -> DeviceKind:
    """The kind of a name.

    Raises:
      DeviceError: nobody registered it.
    """
    if name not in _KINDS and name in _HOMES:
        importlib.import_module(_HOMES[name])
    if name not in _KINDS:
        raise DeviceError(f"device: expected a kind out of {', '.join(sorted({*_KINDS, *_HOMES}))}, found {name or 'nothing'}")
    return _KINDS[name]


def registered_device_kinds() -> list[type[DeviceKind]]:
    """The classes of the kinds that are registered by now."""
    return [type(kind) for kind in _KINDS.values()]


# ---- devices ------------------------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, order=True, init=False)
class Device:
    """A device, by kind and number: `Device("cpu")`, `Device("cpu", 0)`, `Device("cpu:0")`.

    Devices are equal if kind and index are; they are ordered and hashed by these, and printed as "cpu:0".

    Raises:
      DeviceError: a kind that nobody registered, an index that is no number. A device that this machine does not have is one with `exists`
        False, which raises DeviceError if it is used.
      TypeError: neither a text nor a Device.
    """

    kind: str
    index: int

    def __init__(self, kind: "str | Device" = "cpu", index: int | None = None) -> None:
        if isinstance(kind, Device):
            index = kind.index if index is None else index
            kind = kind.kind
        if not isinstance(kind, str):
            raise TypeError(f"device: expected a text such as cpu:0 or a Device, found {kind!r}")
        name, colon, number = kind.partition(":")
        if colon and (index is not None or not number.isdecimal()):
            raise DeviceError(f"device: expected KIND or KIND:INDEX, found {kind!r}{'' if index is None else f' and the index {index}'}")
        found = int(number) if colon else index or 0
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise DeviceError(f"device {name}: expected an index of 0 or more, found {index!r}")
        object.__setattr__(self, "kind", device_kind(name).name)
        object.__setattr__(self, "index", found)

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"

    @property
    def _kind(self) -> DeviceKind:
        """The kind of a device that exists."""
        kind = device_kind(self.kind)
        if self.index >= kind.count():
            raise DeviceError(f"device {self}: {kind.missing(self.index)}")
        return kind

    @property
    def exists(self) -> bool:
        """Whether this machine has the device."""
        return self.index < device_kind(self.kind).count()

    @property
    def facts(self) -> DeviceFacts:
        """The properties of the device: name, cores, memory, caches."""
        return self._kind.facts(self.index)

    @property
    def name(self) -> str:
        """The manufacturer's name of the device."""
        return self.facts.name

    @property
    def cores(self) -> int:
        """Units that run code independently: see DeviceFacts."""
        return self.facts.cores

    @property
    def multiprocessors(self) -> int:
        """Of a GPU: what runs blocks of threads; the same as `cores`."""
        return self.facts.cores

    @property
    def architecture(self) -> str:
        """The architecture for which code is generated; see DeviceFacts."""
        return self.facts.architecture

    @property
    def memory_bytes(self) -> int:
        """Its memory in bytes; 0 if the system does not report it."""
        return self.facts.memory_bytes

    @property
    def dlpack_type(self) -> int:
        """DLDeviceType of DLPack."""
        return device_kind(self.kind).dlpack_type

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.dlpack_type, self.index

    def empty(self, shape: Sequence[int], dtype: str = "float32") -> "Tensor":
        """An uninitialised tensor on the device.

        Args:
          dtype: a name such as "float32" or "bfloat16".

        Raises:
          ValueError: a dimension is negative.
          TypeError: there is no such dtype.
          DeviceError: the device does not exist.
        """
        from relayc.runtime.tensor import Tensor

        if any(extent < 0 for extent in shape):
            raise ValueError(f"tensor on {self}: expected dimensions of 0 or more, found {list(shape)}")
        return Tensor(self._kind.empty(self.index, tuple(shape), dtype))

    def tensor(self, value: Any) -> "Tensor":
        """A copy, on the device, of an array, a tensor of any device, or numbers.

        Raises:
          TypeError: the dtype is none that tensors have.
          DeviceError: the device does not exist.
        """
        from relayc.runtime.tensor import Tensor, as_array

        if isinstance(value, Tensor):
            made = self.empty(value.shape, value.dtype)
        elif isinstance(value, np.ndarray) or not hasattr(value, "__dlpack_device__") or device_of(value).kind != self.kind:
            value = as_array(value) if hasattr(value, "__dlpack__") else np.asarray(value)
            made = self.empty(value.shape, value.dtype.name)
        else:
            made = self.empty(tuple(value.shape), str(self._kind.taken(self.index, value).dtype))
        made.copy_from(value)
        return made

    def synchronize(self) -> None:
        """Waits for all work submitted to the device."""
        self._kind.synchronize(self.index)


def device_of(value: Any) -> Device:
    """The device of an array, or of a tensor that speaks DLPack.

    Raises:
      TypeError: `value` does not say where it is.
      DeviceError: on a device of a kind that nobody registered.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return Device("cpu")
    if not hasattr(value, "__dlpack_device__"):
        raise TypeError(f"expected an array or a DLPack tensor, found a value of type {type(value).__name__}")
    type_, index = value.__dlpack_device__()
    for name in _HOMES:
        device_kind(name)
    for kind in _KINDS.values():
        if kind.dlpack_type == type_:
            return Device(kind.name, int(index))
    known = ", ".join(f"{kind.dlpack_type} ({kind.name})" for kind in sorted(_KINDS.values(), key=lambda k: k.dlpack_type))
    raise DeviceError(f"device: expected a DLPack device type out of {known}, found {type_}")
