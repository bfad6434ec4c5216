"""What the tensors of a program are that is called step by step (see stepwise): arrays of the host, or tensors of a device."""

import ctypes
import time
from collections.abc import Callable, Sequence

import numpy as np
import tvm_ffi

from relayc.runtime.artifact import aligned_empty, numpy_dtype
from relayc.runtime.device import DeviceKind, LoadedProgram
from relayc.runtime.tensor import to_tensor


class HostMemory:
    """Arrays of the host, and calls of kernels on them."""

    def allocate(self, num_bytes: int) -> np.ndarray:
        """Memory, as a tensor of uint8 and one dimension."""
        return aligned_empty(num_bytes)

    def part(self, memory: np.ndarray, offset: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """A tensor in the memory of another one, from a byte on."""
        return np.ndarray(shape, numpy_dtype(dtype), memory, offset)

    def rest(self, memory: np.ndarray, offset: int) -> np.ndarray:
        """Memory from a byte on."""
        return memory[offset:]

    def element(self, tensor: np.ndarray, position: int) -> int:
        """An element of a tensor of integers, counted in row-major order."""
        return int(tensor.reshape(-1)[position])

    def argument(self, tensor: np.ndarray) -> tvm_ffi.Tensor:
        """A tensor as the argument of a packed function."""
        return to_tensor(tensor)

    def time(self, packed: tvm_ffi.Function, arguments: Sequence[tvm_ffi.Tensor | int]) -> Callable[[], float]:
        """Calls a packed function; returns a function that gives, after `wait`, the duration in seconds."""
        start = time.perf_counter()
        packed(*arguments)
        seconds = time.perf_counter() - start
        return lambda: seconds

    def wait(self) -> None:
        """Waits until all calls are done; calls on the host return when their work is done."""


class DeviceMemory:
    """The same with tensors of a device, to be used inside of `DeviceKind.within`."""

    def __init__(self, kind: DeviceKind, index: int, program: LoadedProgram) -> None:
        self._kind, self._index, self._program = kind, index, program

    def allocate(self, num_bytes: int) -> tvm_ffi.Tensor:
        return self._kind.empty(self._index, (num_bytes,), "uint8")

    def part(self, memory: tvm_ffi.Tensor, offset: int, shape: tuple[int, ...], dtype: str) -> tvm_ffi.Tensor:
        return self._kind.part(memory, offset, shape, dtype)

    def rest(self, memory: tvm_ffi.Tensor, offset: int) -> tvm_ffi.Tensor:
        return self._kind.part(memory, offset, (memory.shape[0] - offset,), "uint8")

    def element(self, tensor: tvm_ffi.Tensor, position: int) -> int:
        return int(self._kind.to_numpy(tensor).reshape(-1)[position])

    def argument(self, tensor: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
        return tensor

    def time(self, packed: tvm_ffi.Function, arguments: Sequence[tvm_ffi.Tensor | int]) -> Callable[[], float]:
        context = self._program.context()
        return self._program.time(lambda: packed(*arguments, ctypes.addressof(context)))

    def wait(self) -> None:
        self._kind.synchronize(self._index)


StepwiseMemory = HostMemory | DeviceMemory
