"""The CUDA driver: every call of it that relayc makes, over the package cuda-bindings.

Contexts, streams, events, modules, functions and graphs are integers, as the driver's own handles are; stream 0 is its default stream.
Errors of the driver become one exception each, which names the call; after an error that the driver calls sticky (a kernel that wrote where
it must not) every later call on the device fails, in this process, until it ends.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relayc.runtime.device import DeviceError, DeviceMemoryError

ENTRY_POINTS = (
    "cuLaunchKernel",
    "cuMemcpyDtoHAsync",
    "cuStreamSynchronize",
    "cuMemAllocAsync",
    "cuMemFreeAsync",
    "cuGetErrorName",
    "cuTensorMapEncodeTiled",
    "cuTensorMapEncodeIm2col",
)
"""What compiled host code calls by address (pipelines.targets.cuda.host), in this order."""

OLDEST = (7, 5)
"""Compute capability from which on devices are used."""

_CUDA_VERSION = 12000
"""Of the entry points that are asked for: with that of the first release that has all of them, older drivers do too."""


class ImageRefused(RuntimeError):
    """The driver does not load a cubin or PTX; it may load another image of the same kernel."""


IMAGE_REFUSALS = {
    200: "CUDA_ERROR_INVALID_IMAGE",
    209: "CUDA_ERROR_NO_BINARY_FOR_GPU",
    218: "CUDA_ERROR_INVALID_PTX",
    221: "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    223: "CUDA_ERROR_JIT_COMPILATION_DISABLED",
}
"""Statuses of a driver that refuses an image: cubins of CUDA 13 need the driver 580 or later, PTX one that knows its version."""


@dataclass(frozen=True)
class DeviceAttributes:
    """What the driver tells of a device.

    Attributes:
      capability: compute capability, (9, 0).
      memory_bytes: of the device; `l2_bytes` of its cache, `shared_bytes` of the shared memory that a block may take.
      clock_hertz, memory_hertz: highest frequencies; 0 if the driver does not tell. `bus_bits` is the width of the memory's bus.
    """

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int
    shared_bytes: int
    clock_hertz: int = 0
    memory_hertz: int = 0
    bus_bits: int = 0


class Driver:
    """The calls of the driver. All methods except those about devices act on the thread's current context (`push`, `pop`).

    Args:
      bindings: the module cuda.bindings.driver.
    """

    def __init__(self, bindings: Any) -> None:
        self._cuda = bindings
        self._contexts: dict[int, int] = {}
        self._usable: dict[int, DeviceAttributes] = {}
        self._marks: dict[tuple[int, int], int] = {}
        """By device and stream the event behind the last work that relayc gave to the stream."""
        self._release_streams: dict[int, int] = {}

    def _call(self, name: str, *arguments: Any) -> Any:
        """The results of a driver function after its status. Raises DeviceMemoryError or RuntimeError if the status is an error."""
        result, *found = getattr(self._cuda, name)(*arguments)
        if result != self._cuda.CUresult.CUDA_SUCCESS:
            if result == self._cuda.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
                raise DeviceMemoryError(f"device cuda: {name}: expected free memory, found none left ({_name(result)})")
            kind = ImageRefused if int(result) in IMAGE_REFUSALS else RuntimeError
            raise kind(f"device cuda: {name}: the driver says {_name(result)}")
        return found[0] if len(found) == 1 else found

    def mark(self, index: int, stream: int) -> None:
        """Notes that relayc gave work to a stream, which is one that exists; see `follow_mark`."""
        key = index, stream
        if key not in self._marks:
            self._marks[key] = self.make_event()
        self.record(self._marks[key], stream)

    def follow_mark(self, index: int, stream: int, marked: int) -> None:
        """Lets a stream wait for the work that relayc gave to another one, which need not exist any more."""
        if (index, marked) in self._marks:
            self.follow(stream, self._marks[index, marked])

    def release_stream(self, index: int) -> int:
        """The stream of a device on which memory is freed whose own stream may no longer exist."""
        if index not in self._release_streams:
            self._release_streams[index] = self.make_stream()
        return self._release_streams[index]

    def usable(self, index: int) -> DeviceAttributes:
        """The attributes of a device. Raises DeviceError if its architecture is older than OLDEST."""
        if index not in self._usable:
            found = self.attributes(index)
            if found.capability < OLDEST:
                expected, old = (".".join(map(str, capability)) for capability in (OLDEST, found.capability))
                raise DeviceError(f"device cuda:{index}: expected compute capability {expected} or later, found {found.name} of {old}")
            self._usable[index] = found
        return self._usable[index]

    def count(self) -> int:
        """How many devices there are."""
        return int(self._call("cuDeviceGetCount"))

    def attributes(self, index: int) -> DeviceAttributes:
        """The attributes of a device."""
        device = self._call("cuDeviceGet", index)
        names = self._cuda.CUdevice_attribute

        def number(name: str) -> int:
            return int(self._call("cuDeviceGetAttribute", getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}"), device))

        def known(name: str) -> int:
            try:
                return number(name)
            except RuntimeError:
                return 0  # newer drivers do not tell all frequencies

        return DeviceAttributes(
            name=self._call("cuDeviceGetName", 256, device).split(b"\0")[0].decode(),
            capability=(number("COMPUTE_CAPABILITY_MAJOR"), number("COMPUTE_CAPABILITY_MINOR")),
            multiprocessors=number("MULTIPROCESSOR_COUNT"),
            memory_bytes=int(self._call("cuDeviceTotalMem", device)),
            l2_bytes=number("L2_CACHE_SIZE"),
            shared_bytes=number("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            clock_hertz=1000 * known("CLOCK_RATE"),
            memory_hertz=1000 * known("MEMORY_CLOCK_RATE"),
            bus_bits=known("GLOBAL_MEMORY_BUS_WIDTH"),
        )

    def context(self, index: int) -> int:
        """The primary context of a device, which all libraries of the process share; it is kept until the process ends."""
        if index not in self._contexts:
            device = self._call("cuDeviceGet", index)
            self._contexts[index] = int(self._call("cuDevicePrimaryCtxRetain", device))
            # Freed memory stays in the pool until `trim`, so that the next call does not request it from the system.
            pool = self._call("cuDeviceGetDefaultMemPool", device)
            threshold = self._cuda.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
            self._call("cuMemPoolSetAttribute", pool, threshold, self._cuda.cuuint64_t((1 << 64) - 1))
        return self._contexts[index]

    def push(self, context: int) -> None:
        """Makes a context the thread's current one, until `pop`."""
        self._call("cuCtxPushCurrent", context)

    def pop(self) -> None:
        """Makes the context current that was so before the last `push`."""
        self._call("cuCtxPopCurrent")

    def allocate(self, num_bytes: int, stream: int) -> int:
        """Address of memory of the device's pool, which work that is given to `stream` from now on may use. Raises DeviceMemoryError."""
        return int(self._call("cuMemAllocAsync", max(num_bytes, 1), stream))

    def free(self, address: int, stream: int) -> None:
        """Frees memory after the work submitted so far to `stream`."""
        self._call("cuMemFreeAsync", address, stream)

    def trim(self, index: int) -> None:
        """Waits for a device, and gives the memory of its pool that nobody has back to the system."""
        self.synchronize()
        self._call("cuMemPoolTrimTo", self._call("cuDeviceGetDefaultMemPool", self._call("cuDeviceGet", index)), 0)

    def free_bytes(self) -> int:
        """Bytes of the current context's device that nobody has."""
        return int(self._call("cuMemGetInfo")[0])

    def copy(self, destination: int, source: int, num_bytes: int, stream: int) -> None:
        """Copies between devices, or within one."""
        self._call("cuMemcpyAsync", destination, source, num_bytes, stream)

    def copy_in(self, destination: int, source: int, num_bytes: int, stream: int) -> None:
        """Copies from the host's memory, which may change once the stream is done."""
        self._call("cuMemcpyHtoDAsync", destination, source, num_bytes, stream)

    def copy_out(self, destination: int, source: int, num_bytes: int, stream: int) -> None:
        """Copies to the host's memory, which has it once the stream is done."""
        self._call("cuMemcpyDtoHAsync", destination, source, num_bytes, stream)

    def make_stream(self) -> int:
        """A new stream, which does not wait for the default one."""
        return int(self._call("cuStreamCreate", self._cuda.CUstream_flags.CU_STREAM_NON_BLOCKING))

    def destroy_stream(self, stream: int) -> None:
        self._call("cuStreamDestroy", stream)

    def wait(self, stream: int) -> None:
        """Waits for all work submitted to a stream."""
        self._call("cuStreamSynchronize", stream)

    def synchronize(self) -> None:
        """Waits for all work submitted to the device of the current context."""
        self._call("cuCtxSynchronize")

    def make_event(self) -> int:
        """A new event, which notes its time."""
        return int(self._call("cuEventCreate", self._cuda.CUevent_flags.CU_EVENT_DEFAULT))

    def destroy_event(self, event: int) -> None:
        self._call("cuEventDestroy", event)

    def record(self, event: int, stream: int) -> None:
        """Lets an event be over when the work given to a stream so far is done."""
        self._call("cuEventRecord", event, stream)

    def follow(self, stream: int, event: int) -> None:
        """Makes later work on a stream wait for an event."""
        self._call("cuStreamWaitEvent", stream, event, 0)

    def elapsed(self, first: int, second: int) -> float:
        """Seconds between two events that are over."""
        return float(self._call("cuEventElapsedTime", first, second)) / 1e3

    def load_module(self, image: bytes) -> int:
        """Loads a cubin, or PTX closed by a zero byte, which the driver compiles. Raises ImageRefused (see IMAGE_REFUSALS)."""
        return int(self._call("cuModuleLoadData", image))

    def unload_module(self, module: int) -> None:
        self._call("cuModuleUnload", module)

    def function(self, module: int, name: str, dynamic_shared_bytes: int = 0) -> int:
        """A kernel of a module, which may be launched with so much dynamic shared memory."""
        found = self._call("cuModuleGetFunction", module, name.encode())
        if dynamic_shared_bytes:
            attribute = self._cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", found, attribute, dynamic_shared_bytes)
        return int(found)

    def begin_capture(self, stream: int) -> None:
        """Starts recording the work that this thread submits to a stream, instead of running it."""
        self._call("cuStreamBeginCapture", stream, self._cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)

    def end_capture(self, stream: int) -> int:
        """A graph of the recorded work of a stream."""
        return int(self._call("cuStreamEndCapture", stream))

    def instantiate(self, graph: int) -> int:
        """A launchable graph; the source graph is destroyed."""
        try:
            return int(self._call("cuGraphInstantiate", graph, 0))
        finally:
            self._call("cuGraphDestroy", graph)

    def launch_graph(self, graph: int, stream: int) -> None:
        self._call("cuGraphLaunch", graph, stream)

    def destroy_graph(self, graph: int) -> None:
        """Destroys a graph that `instantiate` gave."""
        self._call("cuGraphExecDestroy", graph)

    def entry_points(self) -> Mapping[str, int]:
        """Addresses of the functions in ENTRY_POINTS."""
        return {name: int(self._call("cuGetProcAddress", name.encode(), _CUDA_VERSION, 0)[0]) for name in ENTRY_POINTS}


def _name(result: Any) -> str:
    """The driver's name of a status."""
    return getattr(result, "name", str(result))


# ---- the driver of the process ------------------------------------------------------------------------------------------------------


def machine_driver() -> Driver:
    """The driver of this machine.

    Raises:
      DeviceError: the package cuda-bindings or the driver is not there, or the driver has no device.
    """
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise DeviceError(f"device cuda: expected the package cuda-bindings (pip install 'relayc[cuda]'), found none ({error})") from None
    try:
        (result,) = driver.cuInit(0)
    except (RuntimeError, OSError) as error:
        # cuda-bindings imports without a driver, and raises when it is first called.
        raise DeviceError(f"device cuda: expected NVIDIA's driver (libcuda.so.1), found none ({str(error).splitlines()[0]})") from None
    if result == driver.CUresult.CUDA_ERROR_NO_DEVICE:
        raise DeviceError("device cuda: expected a GPU, found a driver without one")
    if result != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"device cuda: expected a driver that starts, found {_name(result)}")
    return Driver(driver)


_found: list[tuple[Driver, int]] = []
"""The driver, and the number of the process that uses it."""


def driver() -> Driver:
    """The driver.

    Raises:
      DeviceError: there is none (raised on each request), or this process was forked from a process that used it.
    """
    if not _found:
        replace_driver(machine_driver())
    if is_forked():
        raise DeviceError(
            f"device cuda: expected the process that began to use the driver ({_found[0][1]}), found one that was forked from it: "
            "the driver does not work there; start processes by the method spawn or forkserver of multiprocessing"
        )
    return _found[0][0]


def is_forked() -> bool:
    """Whether this process was forked from one that has used the driver: what that one has on devices is not this one's to give back."""
    return bool(_found) and _found[0][1] != os.getpid()


def replace_driver(other: Driver | None) -> None:
    """Replaces the driver of the process, or with None restores the machine's driver; code that is already loaded is unaffected."""
    _found[:] = [] if other is None else [(other, os.getpid())]
