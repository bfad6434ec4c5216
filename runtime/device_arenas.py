"""Scratch memory and parameters of programs on devices whose memory is not the host's."""

import threading

import numpy as np
import tvm_ffi

from relayc.runtime.device import DeviceKind


class DeviceArenas:
    """Arenas by device and stream, and the parameters, which are copied to a device once.

    An arena that one call has given back the next one on the same stream may take at once: what they do to it is in the stream's order.
    Methods are called inside of `DeviceKind.within`.
    """

    def __init__(self, kind: DeviceKind, params: np.ndarray) -> None:
        self._kind, self._params = kind, params
        self._copies: dict[int, tvm_ffi.Tensor] = {}
        self._free: dict[tuple[int, int], list[tvm_ffi.Tensor]] = {}
        self._lock = threading.Lock()
        self.version = 0
        """Changes with the parameters."""

    def acquire(self, index: int, stream: int, num_bytes: int) -> tvm_ffi.Tensor:
        """An arena of at least that size; to be returned with `release`. An arena that is too small is freed."""
        free = self._free.setdefault((index, stream), [])
        try:
            found = free.pop()
        except IndexError:
            found = None
        if found is not None and found.shape[0] >= num_bytes:
            return found
        return self._kind.empty(index, (num_bytes,), "uint8")

    def release(self, index: int, stream: int, arena: tvm_ffi.Tensor) -> None:
        self._free[index, stream].append(arena)

    def params(self, index: int) -> tvm_ffi.Tensor:
        """The parameters on a device."""
        with self._lock:
            if index not in self._copies:
                made = self._kind.empty(index, self._params.shape, "uint8")
                self._kind.from_numpy(self._params, made)
                self._copies[index] = made
            return self._copies[index]

    def set_params(self, params: np.ndarray) -> None:
        """Sets the parameter blob of calls that begin from now on."""
        with self._lock:
            self._params, self._copies = params, {}
            self.version += 1
