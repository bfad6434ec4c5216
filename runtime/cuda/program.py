"""Programs on devices: their kernels, loaded when they are first called on a device, and calls that are recorded as CUDA graphs."""

import ctypes
import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import tvm_ffi

from relayc.runtime.artifact import ObjectCode
from relayc.runtime.cuda.context import ENTRY_POINTS as FIRST_ENTRY_POINT
from relayc.runtime.cuda.context import FUNCTIONS, GIVEN, LENGTH, STREAM
from relayc.runtime.cuda.driver import ENTRY_POINTS, DeviceAttributes, Driver, ImageRefused, driver, is_forked
from relayc.runtime.cuda.images import Images, NoImage
from relayc.runtime.device import DeviceError, LoadedProgram, Recording

_Context = ctypes.c_int64 * LENGTH
_LOG = logging.getLogger(__name__)


class CudaProgram:
    """The code of a program: host code in memory, and kernels on each device on which it was called.

    Attributes:
      loaded: by device number.
    """

    def __init__(self, host: object, code: ObjectCode) -> None:
        self.host, self.loaded = host, dict[int, LoadedCudaProgram]()
        self._kernels, self._images = code.kernels, code.images
        self._lock = threading.Lock()

    def load(self, index: int, attributes: DeviceAttributes) -> "LoadedCudaProgram":
        """The kernels on a device whose context is current. Raises DeviceError if there is no code for the device."""
        with self._lock:
            if index not in self.loaded:
                self.loaded[index] = self._load(index, attributes)
            return self.loaded[index]

    def _load(self, index: int, attributes: DeviceAttributes) -> "LoadedCudaProgram":
        found = driver()
        images = Images.from_bytes(self._images).kernels if self._kernels else {}
        modules: list[int] = []
        rows, taken = [], {}
        try:
            for name in self._kernels:
                kernel = images[name]
                try:
                    taken[name], module = _load_module(found, kernel.for_device(attributes.capability))
                except NoImage as error:
                    raise DeviceError(f"device cuda:{index}: {error}") from None
                except ImageRefused as error:
                    raise DeviceError(
                        f"device cuda:{index}: kernel {name}: expected an image that the driver loads, found {error}"
                    ) from None
                modules.append(module)
                rows.append((found.function(module, name, kernel.dynamic_shared_bytes), kernel.dynamic_shared_bytes))
        except BaseException:
            for module in modules:
                found.unload_module(module)
            raise
        return LoadedCudaProgram(found, index, modules, rows, taken)


def _load_module(of: Driver, candidates: Mapping[str, bytes]) -> tuple[str, int]:
    """Loads the first candidate (KernelImages.for_device) that the driver accepts; returns its name and the module.

    Raises ImageRefused, with a reason for each candidate, if the driver accepts none.
    """
    refused: list[str] = []
    for name, code in candidates.items():
        try:
            module = of.load_module(code)
        except ImageRefused as error:
            refused.append(f"{name}: {error}")
            continue
        if refused:
            _LOG.warning("device cuda: loading %s: the driver refused %s", name, "; ".join(refused))
        return name, module
    raise ImageRefused("; ".join(refused))


class LoadedCudaProgram(LoadedProgram):
    """The kernels of a program on a device.

    Attributes:
      table: handle and bytes of dynamic shared memory of each kernel, by number.
      images: by name of the kernel the image that the driver took: "cubin of sm_90a", "PTX of sm_80".
    """

    def __init__(self, of: Driver, index: int, modules: list[int], rows: list[tuple[int, int]], images: Mapping[str, str]) -> None:
        self._driver, self._index, self._modules, self.images = of, index, modules, images
        self.table = (ctypes.c_int64 * (2 * len(rows)))(*[number for row in rows for number in row])
        words = [0] * LENGTH
        words[FUNCTIONS] = ctypes.addressof(self.table)
        addresses = of.entry_points()
        words[FIRST_ENTRY_POINT : FIRST_ENTRY_POINT + len(ENTRY_POINTS)] = [addresses[name] for name in ENTRY_POINTS]
        self._words = bytes(_Context(*words))
        self._device = tvm_ffi.device(f"cuda:{index}")

    def context(self, given: np.ndarray | None = None) -> ctypes.Array:
        made = _Context.from_buffer_copy(self._words)
        made[STREAM] = tvm_ffi.get_raw_stream(self._device)
        if given is not None:
            made[GIVEN] = given.ctypes.data
        return made

    def record(self, run: Callable[[ctypes.Array], None]) -> Recording:
        # The default stream cannot be captured: another one notes the work, whichever it is launched on.
        stream = self._driver.make_stream()
        try:
            context = self.context()
            context[STREAM] = stream
            self._driver.begin_capture(stream)
            try:
                run(context)
            except BaseException:
                self._driver.destroy_graph(self._driver.instantiate(self._driver.end_capture(stream)))
                raise
            return _Graph(self._driver, self._device, self._driver.instantiate(self._driver.end_capture(stream)))
        finally:
            self._driver.destroy_stream(stream)

    def time(self, run: Callable[[], None]) -> Callable[[], float]:
        stream = tvm_ffi.get_raw_stream(self._device)
        first, last = _Event(self._driver), _Event(self._driver)
        self._driver.record(first.handle, stream)
        run()
        self._driver.record(last.handle, stream)
        return lambda: self._driver.elapsed(first.handle, last.handle)

    def __del__(self) -> None:
        for module in getattr(self, "_modules", ()):
            _quietly(self._driver, self._index, partial(self._driver.unload_module, module))


class _Event:
    """An event that goes with the object."""

    def __init__(self, of: Driver) -> None:
        self._driver, self.handle = of, of.make_event()

    def __del__(self) -> None:
        if getattr(self, "handle", 0) and not is_forked():
            self._driver.destroy_event(self.handle)


class _Graph(Recording):
    """A CUDA graph."""

    def __init__(self, of: Driver, device: Any, graph: int) -> None:
        self._driver, self._device, self._graph = of, device, graph

    def launch(self) -> None:
        self._driver.launch_graph(self._graph, tvm_ffi.get_raw_stream(self._device))

    def __del__(self) -> None:
        if getattr(self, "_graph", 0):
            _quietly(self._driver, self._device.index, lambda: self._driver.destroy_graph(self._graph))


def _quietly(of: Driver, index: int, act: Callable[[], None]) -> None:
    """Runs a finalizer; ignores a driver that is shutting down or in error, which has already released its resources."""
    if is_forked():
        return
    try:
        of.push(of.context(index))
        try:
            act()
        finally:
            of.pop()
    except RuntimeError:
        pass
