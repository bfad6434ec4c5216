"""The device kind cuda: NVIDIA's GPUs through their driver.

What a thread does with a device is done in the order of its stream: tvm-ffi's environment stream, the device's default stream unless
something else is set (`tvm_ffi.use_raw_stream`). Nothing waits for the device but what the host has to know.
"""

import ctypes
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from typing import Any

import numpy as np
import tvm_ffi

from relayc.runtime.artifact import ObjectCode, numpy_dtype
from relayc.runtime.cuda.driver import driver
from relayc.runtime.cuda.images import ARGUMENT_ALIGNMENT
from relayc.runtime.cuda.program import CudaProgram, LoadedCudaProgram
from relayc.runtime.device import DeviceError, DeviceFacts, DeviceKind, device_kind, register_device_kind
from relayc.runtime.dlpack import tensor_at

_DLPACK_TYPE = 2  # kDLCUDA
_VECTOR_BYTES = 16
"""What a thread loads at once at most."""
_LEGACY_STREAM, _NO_WAIT = 1, -1
"""What DLPack's producers are told for the default stream, and for a stream that needs no waiting."""


class Cuda(DeviceKind):
    """NVIDIA's GPUs. A machine without a driver has none of them."""

    name = "cuda"
    dlpack_type = _DLPACK_TYPE
    alignment = ARGUMENT_ALIGNMENT

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
        """The device is the thread's current one. Raises DeviceError for one that is too old."""
        found = driver()
        found.usable(index)
        found.push(found.context(index))
        try:
            yield
        finally:
            found.pop()

    # ---- streams

    def stream_of(self, index: int, values: Sequence[Any]) -> int:
        of_frameworks = (_framework_stream(index, value) for value in values)
        return next((stream for stream in of_frameworks if stream is not None), _stream(index))

    @contextmanager
    def within(self, index: int, stream: int) -> Iterator[None]:
        with self._current(index), tvm_ffi.use_raw_stream(tvm_ffi.device(f"cuda:{index}"), stream):
            yield

    def hand_over(self, index: int, stream: int, to: int) -> None:
        if stream == to:
            return
        found = driver()
        with self._current(index):
            event = found.make_event()
            try:
                found.record(event, stream)
                found.follow(to, event)
            finally:
                found.destroy_event(event)

    # ---- memory

    def empty(self, index: int, shape: Sequence[int], dtype: str) -> tvm_ffi.Tensor:
        element, stream = numpy_dtype(dtype), _stream(index)
        with self._current(index):
            address = driver().allocate(prod(shape) * element.itemsize, stream)
        return self._owned(index, address, shape, dtype, stream)

    def _owned(self, index: int, address: int, shape: Sequence[int], dtype: str, stream: int) -> tvm_ffi.Tensor:
        release = partial(_free, driver(), index, address, stream)
        return tensor_at(address, shape, dtype, (_DLPACK_TYPE, index), release)

    def at(self, index: int, address: int, shape: Sequence[int], dtype: str) -> tvm_ffi.Tensor:
        return self._owned(index, address, shape, dtype, _stream(index))

    def part(self, memory: tvm_ffi.Tensor, offset: int, shape: Sequence[int], dtype: str) -> tvm_ffi.Tensor:
        device = _DLPACK_TYPE, memory.device.index
        return tensor_at(memory.data_ptr() + offset, shape, dtype, device, partial(_let_go, [memory]))

    def from_numpy(self, array: np.ndarray, tensor: tvm_ffi.Tensor) -> None:
        index = tensor.device.index
        with self._current(index):
            driver().copy_in(tensor.data_ptr(), array.ctypes.data, array.nbytes, _stream(index))

    def to_numpy(self, tensor: tvm_ffi.Tensor) -> np.ndarray:
        index, array = tensor.device.index, np.empty(tuple(tensor.shape), numpy_dtype(str(tensor.dtype)))
        with self._current(index):
            driver().copy_out(array.ctypes.data, tensor.data_ptr(), array.nbytes, _stream(index))
            driver().wait(_stream(index))
        return array

    def copy(self, source: tvm_ffi.Tensor, destination: tvm_ffi.Tensor) -> None:
        index = destination.device.index
        num_bytes = prod(source.shape) * numpy_dtype(str(source.dtype)).itemsize
        if source.device.index != index:
            # What the other device was given before has to be done.
            self.synchronize(source.device.index)
        with self._current(index):
            driver().copy(destination.data_ptr(), source.data_ptr(), num_bytes, _stream(index))
            if source.device.index != index:
                driver().wait(_stream(index))

    def taken(self, index: int, value: Any) -> tvm_ffi.Tensor:
        if isinstance(value, tvm_ffi.Tensor):
            return value
        stream = _stream(index)
        # The producer lets its own stream be waited for, unless it is this one.
        wanted = _NO_WAIT if _framework_stream(index, value) == stream else stream or _LEGACY_STREAM
        try:
            try:
                capsule = value.__dlpack__(stream=wanted, max_version=(1, 0))
            except TypeError:  # a producer of before version 1
                capsule = value.__dlpack__(stream=wanted)
            return tvm_ffi.from_dlpack(capsule)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise TypeError(f"found a {type(value).__name__} that cannot be exported through DLPack ({error})") from error

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
    """The stream on which the framework of a tensor works now; None where that is not known."""
    package = type(value).__module__.partition(".")[0]
    if package == "torch":
        return int(sys.modules["torch"].cuda.current_stream(index).cuda_stream)
    if package == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream(index).ptr)
    return None


def _stream(index: int) -> int:
    """The thread's stream."""
    return int(tvm_ffi.get_raw_stream(tvm_ffi.device(f"cuda:{index}")))


def _free(of: Any, index: int, address: int, stream: int) -> None:
    """Gives memory back on the stream that it was taken on; on the default one where that stream is gone."""
    of.push(of.context(index))
    try:
        try:
            of.free(address, stream)
        except RuntimeError:
            of.free(address, 0)
    finally:
        of.pop()


def _let_go(held: list[Any]) -> None:
    held.clear()


register_device_kind(Cuda())
