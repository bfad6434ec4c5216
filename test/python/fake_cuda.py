"""A CUDA driver for tests, on a machine without a GPU: memory of the host, streams that put work off until somebody waits, kernels that the
emulation runs.

An image is the text of a `gpu.module`: `device_code` stands for the compiler of devices, and `load_module` compiles such text for the CPU.
A cubin is the same text behind CUBIN. Memory that was given back is overwritten, so that what still reads it is seen; work of a stream that
nobody waits for is never done. Memory goes back to a pool, which gives it to requests of the same size alone, until the pool is trimmed.
"""

import ctypes
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import gpu, ir, make_context
from relayc.dialects.operations import walk
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.jit import jit
from relayc.pipelines.targets.cuda.backend import CudaBackend
from relayc.runtime.artifact import aligned_empty
from relayc.runtime.cuda.driver import IMAGE_REFUSALS, DeviceAttributes, Driver, ImageRefused, replace_driver
from relayc.runtime.cuda.images import Image, Images, KernelImages
from relayc.runtime.device import DeviceError, DeviceMemoryError

POISON = 0xCD
"""What bytes of memory are that was given back."""
CUBIN = b"cubin "
_SUCCESS, INVALID_VALUE, OUT_OF_MEMORY = 0, 1, 2
_ERRORS = {INVALID_VALUE: b"CUDA_ERROR_INVALID_VALUE", OUT_OF_MEMORY: b"CUDA_ERROR_OUT_OF_MEMORY"}
_FIRST_CONTEXT = 1000
_SIZES = 7
"""That an emulated kernel takes behind its arguments: of the grid, of a block, bytes of dynamic shared memory."""


@dataclass
class Launch:
    """A launch that a driver was given."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    stream: int


@dataclass
class _Kernel:
    name: str
    arguments: int
    run: Callable[[int, int], None]


@dataclass
class _Event:
    stream: tuple[int, int] | None = None
    over: bool = True
    number: int = 0


@dataclass
class _Recorded:
    """Work that a stream has noted instead of doing it."""

    work: list[Callable[[], None]] = field(default_factory=list)


class FakeDriver(Driver):
    """A driver of some devices.

    Attributes:
      launches: all so far, those of graphs when the graph is launched.
      waits: how often the host has waited for a stream or a device.
      captured: how many launches were captured.
      fails: by name of an entry point, the status that its next call gives.
      allocated: bytes that are taken of each device.
      refuses: by "cubin" and "PTX", the status with which the driver refuses images of the kind.
      dead: streams that were destroyed; `misused` those of them that were given something since.
      trims: how often a pool was trimmed.
    """

    def __init__(
        self, devices: int = 1, capability: tuple[int, int] = (8, 0), memory_bytes: int = 1 << 30, multiprocessors: int = 4
    ) -> None:
        super().__init__(None)
        self._devices, self._capability, self._memory_bytes, self._multiprocessors = devices, capability, memory_bytes, multiprocessors
        self.refuses: dict[str, int] = {}
        self.dead: set[int] = set()
        self.misused: list[int] = []
        self.trims = 0
        self._pool: list[list[int]] = [[] for _ in range(devices)]
        self.launches: list[Launch] = []
        self.waits = self.captured = 0
        self.fails: dict[str, int] = {}
        self.allocated = [0] * devices
        self._memory: dict[int, tuple[int, np.ndarray]] = {}
        self._work: dict[tuple[int, int], deque[Callable[[], None]]] = {}
        self._handles = iter(range(1 << 20, 1 << 40))
        self._events: dict[int, _Event] = {}
        self._modules: dict[int, dict[str, _Kernel]] = {}
        self._functions: dict[int, _Kernel] = {}
        self._captures: dict[int, _Recorded] = {}
        self._graphs: dict[int, _Recorded] = {}
        self._thread = threading.local()
        self._lock = threading.RLock()
        self.maps: list[list[int]] = []
        self._map_memory: list[ctypes.Array] = []
        self._points = _entry_points(self)

    # ---- devices

    def count(self) -> int:
        return self._devices

    def attributes(self, index: int) -> DeviceAttributes:
        return DeviceAttributes(
            f"Fake {index}", self._capability, self._multiprocessors, self._memory_bytes, 1 << 22, 99 << 10, 10**9, 10**9, 256
        )

    def context(self, index: int) -> int:
        return _FIRST_CONTEXT + index

    def _stack(self) -> list[int]:
        if not hasattr(self._thread, "stack"):
            self._thread.stack = []
        return self._thread.stack

    def push(self, context: int) -> None:
        self._stack().append(context)

    def pop(self) -> None:
        self._stack().pop()

    def device(self) -> int:
        """The current one."""
        if not self._stack():
            raise RuntimeError("device cuda: the driver says CUDA_ERROR_INVALID_CONTEXT")
        return self._stack()[-1] - _FIRST_CONTEXT

    # ---- streams

    def give(self, stream: int, work: Callable[[], None]) -> None:
        """Lets a stream do something after all that it was given before."""
        if stream in self.dead:
            self.misused.append(stream)
            raise RuntimeError("device cuda: the driver says CUDA_ERROR_INVALID_HANDLE")
        with self._lock:
            if stream in self._captures:
                self._captures[stream].work.append(work)
                return
            self._work.setdefault((self.device(), stream), deque()).append(work)

    def _drain(self, key: tuple[int, int], until: Callable[[], bool] = lambda: False) -> None:
        with self._lock:
            work = self._work.get(key, deque())
            while work and not until():
                work.popleft()()

    def make_stream(self) -> int:
        return next(self._handles)

    def destroy_stream(self, stream: int) -> None:
        self._drain((self.device(), stream))
        self.dead.add(stream)

    def wait(self, stream: int) -> None:
        if stream in self._captures:
            raise RuntimeError("device cuda: cuStreamSynchronize: the driver says CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
        self.waits += 1
        self._drain((self.device(), stream))

    def synchronize(self) -> None:
        self.waits += 1
        for key in [key for key in self._work if key[0] == self.device()]:
            self._drain(key)

    def make_event(self) -> int:
        handle = next(self._handles)
        self._events[handle] = _Event()
        return handle

    def destroy_event(self, event: int) -> None:
        del self._events[event]

    def record(self, event: int, stream: int) -> None:
        found = self._events[event]
        found.stream, found.over = (self.device(), stream), False

        def over() -> None:
            found.over, found.number = True, len(self.launches)

        self.give(stream, over)

    def follow(self, stream: int, event: int) -> None:
        found = self._events[event]

        def wait() -> None:
            assert found.stream is not None
            self._drain(found.stream, lambda: found.over)

        self.give(stream, wait)

    def elapsed(self, first: int, second: int) -> float:
        """A microsecond for each launch between them."""
        assert self._events[first].over and self._events[second].over
        return (self._events[second].number - self._events[first].number) * 1e-6

    # ---- memory

    def allocate(self, num_bytes: int, stream: int) -> int:
        index = self.device()
        with self._lock:
            if num_bytes in self._pool[index]:
                self._pool[index].remove(num_bytes)
            elif self.allocated[index] + sum(self._pool[index]) + num_bytes > self._memory_bytes:
                raise DeviceMemoryError("device cuda: cuMemAllocAsync: expected free memory, found none left (CUDA_ERROR_OUT_OF_MEMORY)")
            array = aligned_empty(max(num_bytes, 1))
            array.fill(POISON)
            address = array.ctypes.data
            self._memory[address] = (index, array)
            self.allocated[index] += num_bytes
        return address

    def free(self, address: int, stream: int) -> None:
        with self._lock:
            index, array = self._memory[address]
            self.allocated[index] -= array.nbytes
            self._pool[index].append(array.nbytes)

        def free() -> None:
            self._memory.pop(address)[1].fill(POISON)

        self.give(stream, free)

    def trim(self, index: int) -> None:
        self.synchronize()
        self.trims += 1
        self._pool[index].clear()

    def free_bytes(self) -> int:
        return self._memory_bytes - self.allocated[self.device()]

    def copy(self, destination: int, source: int, num_bytes: int, stream: int) -> None:
        self.give(stream, lambda: _move(destination, source, num_bytes))

    def copy_in(self, destination: int, source: int, num_bytes: int, stream: int) -> None:
        self.give(stream, lambda: _move(destination, source, num_bytes))

    def copy_out(self, destination: int, source: int, num_bytes: int, stream: int) -> None:
        self.give(stream, lambda: _move(destination, source, num_bytes))

    # ---- code

    def load_module(self, image: bytes) -> int:
        kind = "cubin" if image.startswith(CUBIN) else "PTX"
        if status := self.refuses.get(kind):
            raise ImageRefused(f"device cuda: cuModuleLoadData: the driver says {IMAGE_REFUSALS[status]}")
        handle = next(self._handles)
        self._modules[handle] = _compiled(image.removeprefix(CUBIN).rstrip(b"\0").decode())
        return handle

    def unload_module(self, module: int) -> None:
        del self._modules[module]

    def function(self, module: int, name: str, dynamic_shared_bytes: int = 0) -> int:
        handle = next(self._handles)
        self._functions[handle] = self._modules[module][name]
        return handle

    def launch(self, function: int, sizes: tuple[int, ...], shared: int, stream: int, places: int) -> None:
        """What cuLaunchKernel does: the values of the arguments are taken at once."""
        kernel = self._functions[function]
        values = (ctypes.c_int64 * max(kernel.arguments, 1))()
        for i in range(kernel.arguments):
            place = ctypes.c_void_p.from_address(places + 8 * i).value
            assert place is not None
            values[i] = ctypes.c_int64.from_address(place).value
        numbers = (ctypes.c_int64 * _SIZES)(*sizes, shared)
        self.captured += stream in self._captures

        def run() -> None:
            self.launches.append(Launch(kernel.name, sizes[:3], sizes[3:], shared, stream))
            kernel.run(ctypes.addressof(values), ctypes.addressof(numbers))

        self.give(stream, run)

    def begin_capture(self, stream: int) -> None:
        assert stream  # the default stream cannot be captured
        self._captures[stream] = _Recorded()

    def end_capture(self, stream: int) -> int:
        handle = next(self._handles)
        self._graphs[handle] = self._captures.pop(stream)
        return handle

    def instantiate(self, graph: int) -> int:
        handle = next(self._handles)
        self._graphs[handle] = self._graphs.pop(graph)
        return handle

    def launch_graph(self, graph: int, stream: int) -> None:
        for work in self._graphs[graph].work:
            self.give(stream, work)

    def destroy_graph(self, graph: int) -> None:
        del self._graphs[graph]

    def encode(self, place: int, kind: int, rank: int, address: int, *rest: int) -> None:
        """Makes a map of a tensor: words of what it was told, whose address is in the first bytes of the map. So a kernel that takes a map
        by value as a buffer finds these."""
        sizes, strides, *copied, steps, interleave, swizzle, promotion, fill = rest
        told = [kind, rank, address, interleave, swizzle, promotion, fill]
        told += (ctypes.c_uint64 * rank).from_address(sizes)
        told += (ctypes.c_uint64 * (rank - 1)).from_address(strides)
        if len(copied) == 1:
            told += (ctypes.c_uint32 * rank).from_address(copied[0])
        else:  # corners, channels and pixels
            for corner in copied[:2]:
                told += (ctypes.c_int32 * (rank - 2)).from_address(corner)
            told += copied[2:]
        told += (ctypes.c_uint32 * rank).from_address(steps)
        self.maps.append(told)
        self._map_memory.append((ctypes.c_uint64 * 32)(*told))
        ctypes.c_uint64.from_address(place).value = ctypes.addressof(self._map_memory[-1])

    def entry_points(self) -> Mapping[str, int]:
        return {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in self._points.items()}


def _move(destination: int, source: int, num_bytes: int) -> None:
    ctypes.memmove(destination, source, num_bytes)


def _entry_points(driver: FakeDriver) -> dict[str, ctypes._CFuncPtr]:
    """The functions that compiled code calls."""
    word, place, number = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32

    def guarded(name: str, act: Callable[..., None]) -> Callable[..., int]:
        def call(*arguments: int | None) -> int:
            if name in driver.fails:
                return driver.fails.pop(name)
            try:
                act(*[a or 0 for a in arguments])
            except DeviceMemoryError:
                return OUT_OF_MEMORY
            except Exception:
                return INVALID_VALUE
            return _SUCCESS

        return call

    def launch(function: int, *rest: int) -> None:
        *sizes, shared, stream, places, _ = rest
        driver.launch(function, tuple(sizes), shared, stream, places)

    def allocate(where: int, num_bytes: int, stream: int) -> None:
        ctypes.c_uint64.from_address(where).value = driver.allocate(num_bytes, stream)

    def name(code: int, where: int) -> None:
        ctypes.c_char_p.from_address(where).value = _ERRORS[code]

    acts: dict[str, tuple[Callable[..., None], list]] = {
        "cuLaunchKernel": (launch, [place, *[number] * 7, place, place, place]),
        "cuMemcpyDtoHAsync": (driver.copy_out, [place, word, word, place]),
        "cuStreamSynchronize": (driver.wait, [place]),
        "cuMemAllocAsync": (allocate, [place, word, place]),
        "cuMemFreeAsync": (driver.free, [word, place]),
        "cuGetErrorName": (name, [number, place]),
        "cuTensorMapEncodeTiled": (driver.encode, [place, number, number, word, *[place] * 4, *[number] * 4]),
        "cuTensorMapEncodeIm2col": (driver.encode, [place, number, number, word, *[place] * 4, number, number, place, *[number] * 4]),
    }
    return {name: ctypes.CFUNCTYPE(ctypes.c_int, *types)(guarded(name, act)) for name, (act, types) in acts.items()}


# ---- kernels ------------------------------------------------------------------------------------------------------------------------

_TABLE = "fake_kernels"


def device_code(self: CudaBackend, module: ir.Module, target: Target) -> bytes:
    """Stands for CudaBackend.images: what a FakeDriver loads, of kernels that are not lowered."""
    text = str(walk(module.operation, gpu.GPUModuleOp)[0])
    names = [symbol_name(f) for f in walk(module.operation, gpu.GPUFuncOp)]
    image = Image(target.attributes["arch"], text, CUBIN + text.encode())
    return Images.of(KernelImages(name, 1024, 0, 0, (image,)) for name in names).to_bytes()


@lru_cache(maxsize=4)  # each kernel of a program has the same text as its image
def _compiled(text: str) -> dict[str, _Kernel]:
    """The kernels of a `gpu.module` for the CPU, by name; each takes the addresses of its arguments' values and of the sizes."""
    host = Target("cpu", num_threads=1)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"module attributes {{gpu.container_module}} {{\n{text}\n}}")
        names = [symbol_name(f) for f in walk(module.operation, gpu.GPUFuncOp)]
        find_backend("cuda").lower(module, Target("cuda", emulate=True, num_threads=1))
        found = {name: _signature(module, f"{name}.grid") for name in names}
        types = {name: arguments for name, (_, arguments) in found.items()}
        parsed = ir.Module.parse("\n".join([*(_wrapper(name, *found[name]) for name in names), _table(names)]))
        for op in list(parsed.body.operations):
            if "sym_visibility" not in op.attributes:
                op.detach_from_parent()
                module.body.append(op)
        engine = jit(module, host)
    table = ctypes.c_void_p()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.raw_lookup(_TABLE))((ctypes.c_void_p * 1)(ctypes.addressof(table)))
    addresses = ctypes.cast(table, ctypes.POINTER(ctypes.c_size_t))
    made = {}
    for i, name in enumerate(names):
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(addresses[i])
        function.engine = engine
        made[name] = _Kernel(name, len(types[name]) - _SIZES, function)
    return made


def _signature(module: ir.Module, name: str) -> tuple[str, list[str]]:
    """The result of a function, which may be a status, and the types of its arguments."""
    function = next(op for op in module.body.operations if "sym_name" in op.attributes and symbol_name(op) == name)
    result, _, inside = str(function.attributes["function_type"]).removeprefix("!llvm.func<").removesuffix(")>").partition(" (")
    return result.replace("void", ""), [{"ptr": "!llvm.ptr"}.get(t.strip(), t.strip()) for t in inside.split(",")]


def _wrapper(name: str, result: str, types: list[str]) -> str:
    loads = []
    for i, type_ in enumerate(types):
        values, at = ("%values", i) if i < len(types) - _SIZES else ("%sizes", i - len(types) + _SIZES)
        loads.append(f"  %p{i} = llvm.getelementptr {values}[{at}] : (!llvm.ptr) -> !llvm.ptr, i64")
        loads.append(f"  %v{i} = llvm.load %p{i} : !llvm.ptr -> {type_}")
    operands = ", ".join(f"%v{i}" for i in range(len(types)))
    lines = "\n".join(loads)
    gives = f" -> {result}" if result else ""
    return f"""
llvm.func @"{name}.grid"({", ".join(types)}){gives} attributes {{sym_visibility = "private"}}
llvm.func internal @"{name}.call"(%values: !llvm.ptr, %sizes: !llvm.ptr) {{
{lines}
  {"%status = " if result else ""}llvm.call @"{name}.grid"({operands}) : ({", ".join(types)}) -> {result or "()"}
  llvm.return
}}"""


def _table(names: list[str]) -> str:
    array = f"!llvm.array<{len(names)} x ptr>"
    rows = [
        f'  %f{i} = llvm.mlir.addressof @"{name}.call" : !llvm.ptr\n  %v{i + 1} = llvm.insertvalue %f{i}, %v{i}[{i}] : {array}'
        for i, name in enumerate(names)
    ]
    lines = "\n".join(rows)
    return f"""
llvm.mlir.global internal constant @fake_table() : {array} {{
  %v0 = llvm.mlir.undef : {array}
{lines}
  llvm.return %v{len(names)} : {array}
}}
llvm.func @{_TABLE}() -> !llvm.ptr {{
  %0 = llvm.mlir.addressof @fake_table : !llvm.ptr
  llvm.return %0 : !llvm.ptr
}}"""


@contextmanager
def fake_cuda(devices: int = 1, **options) -> Iterator[FakeDriver]:
    """Inside, the driver of the process is a fake one, and programs for the target cuda get code that it runs."""
    driver = FakeDriver(devices, **options)

    @contextmanager
    def compiling(backend, module, target):
        made = device_code(backend, module, target)
        yield lambda: made

    stands_for = {"compiling": compiling, "lower_kernels": lambda *_: None}
    real = {name: getattr(CudaBackend, name) for name in stands_for}
    for name, function in stands_for.items():
        setattr(CudaBackend, name, function)
    replace_driver(driver)
    try:
        yield driver
    finally:
        for name, function in real.items():
            setattr(CudaBackend, name, function)
        replace_driver(None)


__all__ = ["DeviceError", "FakeDriver", "Launch", "fake_cuda"]
