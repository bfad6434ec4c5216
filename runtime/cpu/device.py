"""The device kind cpu. There is one device, cpu:0: the host, in whose memory numpy's arrays are."""

import contextlib
import ctypes
from collections.abc import Sequence
from itertools import takewhile
from math import prod
from pathlib import Path

import numpy as np
import tvm_ffi

from relayc.runtime.artifact import ObjectCode, aligned_array, numpy_dtype
from relayc.runtime.cpu import host
from relayc.runtime.cpu.disassembly import disassemble
from relayc.runtime.cpu.features import host_features
from relayc.runtime.cpu.objects import LoadedCode, can_load
from relayc.runtime.cpu.tiles import request_tiles
from relayc.runtime.device import DeviceError, DeviceFacts, DeviceKind, register_device_kind
from relayc.runtime.tensor import as_array, to_tensor
from relayc.runtime.threads import openmp_library, usable_cpus

_PERMISSIONS = {"tiles": request_tiles}
_MOST_REPLACED = 1000
"""How often the library of a path can be replaced and loaded again in a process."""


class Cpu(DeviceKind):
    """This machine's CPUs together."""

    name = "cpu"
    dlpack_type = 1  # kDLCPU

    def count(self) -> int:
        return 1

    def facts(self, index: int) -> DeviceFacts:
        caches = [size for size in takewhile(bool, map(host.cache_bytes, range(1, 4))) if size]
        return DeviceFacts(host.name(), usable_cpus(), host.memory_bytes(), host.vector_bytes(), tuple(caches))

    def empty(self, index: int, shape: Sequence[int], dtype: str) -> tvm_ffi.Tensor:
        element = numpy_dtype(dtype)
        return to_tensor(aligned_array(tuple(shape), element, prod(shape) * element.itemsize))

    def from_numpy(self, array: np.ndarray, tensor: tvm_ffi.Tensor) -> None:
        as_array(tensor)[...] = array

    def to_numpy(self, tensor: tvm_ffi.Tensor) -> np.ndarray:
        return as_array(tensor).copy()

    def copy(self, source: tvm_ffi.Tensor, destination: tvm_ffi.Tensor) -> None:
        as_array(destination)[...] = as_array(source)

    def synchronize(self, index: int) -> None:
        """Nothing to wait for: calls return when their work is done."""

    @property
    def loads_code(self) -> bool:
        return can_load()

    def load(self, code: ObjectCode, count: int) -> tuple[Sequence[int], object]:
        program = LoadedCode(code)
        return program.entries(count), program

    def lacking(self, features: Sequence[str]) -> tuple[str, ...]:
        return tuple(sorted(set(features) - host_features()))

    def open_library(self, path: Path, symbol: str) -> ctypes.CDLL:
        # The OpenMP runtime of this process first: the library takes that one then.
        with contextlib.suppress(OSError):
            ctypes.CDLL(openmp_library())
        folder, name = path.resolve().parent, path.resolve().name
        try:
            # A library that was loaded from the path before, and replaced since, is what the loader gives for the same spelling.
            for same in range(_MOST_REPLACED):
                library = ctypes.CDLL(f"{folder}/{'./' * same}{name}")
                if hasattr(library, symbol):
                    return library
        except OSError as error:
            raise DeviceError(f"expected a library that can be loaded, found: {error}") from None
        raise DeviceError(f"expected a library that defines {symbol}, found none")

    def disassemble(self, code: ObjectCode, function: str | None) -> str:
        return disassemble(code, function)

    def request(self, permissions: Sequence[str]) -> None:
        for permission in permissions:
            if permission not in _PERMISSIONS:
                raise DeviceError(f"device cpu: expected permissions out of {', '.join(_PERMISSIONS)}, found {permission}")
            _PERMISSIONS[permission]()


register_device_kind(Cpu())
