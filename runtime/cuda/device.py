"""The device kind cuda: NVIDIA's GPUs through their driver.

What a thread does with a device is done in the order of its stream: tvm-ffi's environment stream, the device's default stream unless
something else is set (`tvm_ffi.use_raw_stream`). Nothing waits for the device but what the host has to know.

Memory is freed after all work that may use it, on every stream: the calls and copies of relayc, after which a stream gets an event
(Driver.mark), and the work of frameworks to which the memory was exported. The owner of a stream may have destroyed the stream since, so
a free uses only handles of streams that exist: the default stream, the thread's stream, and streams to which the memory was exported, which
their frameworks keep as long as the memory.
"""

import ctypes
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
import tvm_ffi

from relayc.runtime.artifact import ObjectCode, numpy_dtype
from relayc.runtime.cuda.driver import Driver, driver, is_forked
from relayc.runtime.cuda.images import ARGUMENT_ALIGNMENT
from relayc.runtime.cuda.program import CudaProgram, LoadedCudaProgram
from relayc.runtime.device import DeviceError, DeviceFacts, DeviceKind, DeviceMemoryError, device_kind, register_device_kind
from relayc.runtime.dlpack import imported, tensor_at

_DLPACK_TYPE = 2  # kDLCUDA
_VECTOR_BYTES = 16
"""Maximum bytes of a load of a thread."""
_LEGACY_STREAM, _NO_WAIT = 1, -1
"""The stream argument for DLPack's producers: the default stream, and no synchronisation."""
_LASTING_STREAMS = 0, _LEGACY_STREAM
"""The default stream, which exists as long as the process; other streams are destroyed by their owner."""


class Cuda(DeviceKind):
    """NVIDIA's GPUs. A machine without a driver has none of them."""

    name = "cuda"
    dlpack_type = _DLPACK_TYPE
    alignment = ARGUMENT_ALIGNMENT

    def __init__(self) -> None:
        self._allocations: dict[tuple[int, int], _Allocation] = {}
        """By device and address."""
        self._thread = threading.local()

    # ---- devices

    def count(self) -> int:
        try:
            return driver().count()
        except DeviceError:
            return 0

    def missing(self, index: int) -> str:
        try:
            driver()
        except DeviceError as error:
            return str(error).partition(": ")[2]
        return super().missing(index)

    def facts(self, index: int) -> DeviceFacts:
        found = driver().attributes(index)
        caches = found.shared_bytes, found.l2_bytes
        architecture = "sm_{}{}".format(*found.capability)
        return DeviceFacts(found.name, found.multiprocessors, found.memory_bytes, _VECTOR_BYTES, caches, architecture)

    def synchronize(self, index: int) -> None:
        with self._current(index):
            driver().synchronize()

    @contextmanager
    def _current(self, index: int) -> Iterator[None]:
        """The device is the thread's current one, and work is given to the thread's stream. Raises DeviceError for one that is too old."""
        found, where, outer = driver(), (index, _stream(index)), getattr(self._thread, "where", None)
        if where == outer:
            yield
            return
        found.usable(index)
        found.push(found.context(index))
        self._thread.where = where
        try:
            yield
        finally:
            self._thread.where = outer
            try:
                if where[1] not in _LASTING_STREAMS:
                    found.mark(*where)
            finally:
                found.pop()

    # ---- streams

    def stream_of(self, index: int, values: Sequence[Any]) -> int:
        of_frameworks = (_framework_stream(index, value) for value in values)
        return next((stream for stream in of_frameworks if stream is not None), _stream(index))

    @contextmanager
    def within(self, index: int, stream: int) -> Iterator[None]:
        with tvm_ffi.use_raw_stream(tvm_ffi.device(f"cuda:{index}"), stream), self._current(index):
            yield

    def hand_over(self, tensor: tvm_ffi.Tensor, stream: int, to: int, is_exported: bool = False) -> None:
        index = tensor.device.index
        self._use(tensor, to, is_exported)
        if stream != to:
            with self._current(index):
                _follow(driver(), to, stream)

    def done(self, index: int, stream: int, values: Sequence[Any]) -> None:
        for other in {_framework_stream(index, value) for value in values}:
            if other is not None and other != stream:
                with self._current(index):
                    _follow(driver(), other, stream)

    def wait(self, index: int) -> None:
        with self._current(index):
            driver().wait(_stream(index))

    # ---- memory

    def empty(self, index: int, shape: Sequence[int], dtype: str) -> tvm_ffi.Tensor:
        num_bytes = prod(shape) * numpy_dtype(dtype).itemsize
        with self._current(index):
            found = driver()
            try:
                address = found.allocate(num_bytes, _stream(index))
            except DeviceMemoryError:
                found.trim(index)
                try:
                    address = found.allocate(num_bytes, _stream(index))
                except DeviceMemoryError as error:
                    free, all_of_it = found.free_bytes(), found.usable(index).memory_bytes
                    raise DeviceMemoryError(
                        f"device cuda:{index}: expected {num_bytes} bytes for a tensor {dtype}{list(shape)}, "
                        f"found {free} free of {all_of_it} ({error})"
                    ) from None
        return self.at(index, address, shape, dtype)

    def at(self, index: int, address: int, shape: Sequence[int], dtype: str) -> tvm_ffi.Tensor:
        self._allocations[index, address] = _Allocation(driver(), index, address, _stream(index))
        return tensor_at(address, shape, dtype, (_DLPACK_TYPE, index), lambda: self._allocations.pop((index, address)).free())

    def _use(self, tensor: tvm_ffi.Tensor, stream: int, is_exported: bool = False) -> None:
        """Records that a stream uses memory, if the memory was allocated by relayc."""
        found = self._allocations.get((tensor.device.index, tensor.data_ptr()))
        if found is not None:
            found.users[stream] = is_exported or found.users.get(stream, False)

    def part(self, memory: tvm_ffi.Tensor, offset: int, shape: Sequence[int], dtype: str) -> tvm_ffi.Tensor:
        device = _DLPACK_TYPE, memory.device.index
        return tensor_at(memory.data_ptr() + offset, shape, dtype, device, [memory].clear)  # holds the memory until then

    def send(self, array: np.ndarray, tensor: tvm_ffi.Tensor) -> None:
        index = tensor.device.index
        with self._current(index):
            driver().copy_in(tensor.data_ptr(), array.ctypes.data, array.nbytes, _stream(index))

    def from_numpy(self, array: np.ndarray, tensor: tvm_ffi.Tensor) -> None:
        self.send(array, tensor)
        self.wait(tensor.device.index)  # of locked memory the driver takes the bytes later

    def fetch(self, tensor: tvm_ffi.Tensor) -> np.ndarray:
        index, array = tensor.device.index, np.empty(tuple(tensor.shape), numpy_dtype(str(tensor.dtype)))
        with self._current(index):
            driver().copy_out(array.ctypes.data, tensor.data_ptr(), array.nbytes, _stream(index))
        return array

    def to_numpy(self, tensor: tvm_ffi.Tensor) -> np.ndarray:
        array = self.fetch(tensor)
        self.wait(tensor.device.index)
        return array

    def copy(self, source: tvm_ffi.Tensor, destination: tvm_ffi.Tensor) -> None:
        index = destination.device.index
        num_bytes = prod(source.shape) * numpy_dtype(str(source.dtype)).itemsize
        if source.device.index != index:
            # Earlier work of the other device must be complete.
            self.synchronize(source.device.index)
        for tensor in (source, destination):
            self._use(tensor, _stream(index))
        with self._current(index):
            driver().copy(destination.data_ptr(), source.data_ptr(), num_bytes, _stream(index))
            if source.device.index != index:
                driver().wait(_stream(index))

    def taken(self, index: int, value: Any) -> tvm_ffi.Tensor:
        stream = _stream(index)
        if isinstance(value, tvm_ffi.Tensor):
            self._use(value, stream)
            return value
        # The producer makes this stream wait for its own, unless they are equal.
        wanted = _NO_WAIT if _framework_stream(index, value) == stream else stream or _LEGACY_STREAM
        return imported(value, stream=wanted)

    # ---- programs

    @property
    def is_host(self) -> bool:
        return False

    @property
    def loads_code(self) -> bool:
        return device_kind("cpu").loads_code

    def load(self, code: ObjectCode, count: int) -> tuple[Sequence[int], object]:
        """The host's half is loaded at once; that of a device when a program is first called there."""
        entries, owner = device_kind("cpu").load(code, count)
        return entries, CudaProgram(owner, code)

    def owner(self, library: ctypes.CDLL, code: ObjectCode) -> object:
        return CudaProgram(library, code)

    def program(self, owner: object, index: int) -> LoadedCudaProgram:
        if not isinstance(owner, CudaProgram):
            raise TypeError(f"device cuda: expected what `load` gave for a program, found {owner!r}")
        if (found := owner.loaded.get(index)) is not None:
            return found
        with self._current(index):
            return owner.load(index, driver().usable(index))

    def disassemble(self, code: ObjectCode, function: str | None) -> str:
        """The code of the host; `relayc inspect` shows that of devices."""
        return device_kind("cpu").disassemble(code, function)


def _framework_stream(index: int, value: Any) -> int | None:
    """The current stream of the framework of a tensor; None if it is unknown."""
    package = type(value).__module__.partition(".")[0]
    if package == "torch":
        return int(sys.modules["torch"].cuda.current_stream(index).cuda_stream)
    if package == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream(index).ptr)
    return None


def _stream(index: int) -> int:
    """The thread's stream."""
    return int(tvm_ffi.get_raw_stream(tvm_ffi.device(f"cuda:{index}")))


def _follow(of: Driver, stream: int, other: int) -> None:
    """Makes a stream wait for all work submitted so far to another stream."""
    event = of.make_event()
    try:
        of.record(event, other)
        of.follow(stream, event)
    finally:
        of.destroy_event(event)


class _Allocation:
    """Memory of a device.

    Attributes:
      users: the streams that use it, beginning with the stream that allocated it; for each, whether a framework uses it there too.
    """

    def __init__(self, of: Driver, index: int, address: int, stream: int) -> None:
        self._driver, self._index, self._address = of, index, address
        self.users = {stream: False}

    def free(self) -> None:
        """Frees the memory after the work of all its users."""
        if is_forked():
            return
        of, index = self._driver, self._index
        of.push(of.context(index))
        try:
            exists = {stream: is_exported or stream in (*_LASTING_STREAMS, _stream(index)) for stream, is_exported in self.users.items()}
            first = next(iter(self.users))
            home = first if exists[first] else of.release_stream(index)
            for stream in self.users:
                if stream != home and exists[stream]:
                    _follow(of, home, stream)
                elif stream != home:
                    of.follow_mark(index, home, stream)
            of.free(self._address, home)
        finally:
            of.pop()


register_device_kind(Cuda())
