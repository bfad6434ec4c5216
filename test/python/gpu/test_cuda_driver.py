"""The calls of the CUDA driver, as far as a machine without one can see: cuda-bindings has each function, and takes what it is given."""

import sys
from types import SimpleNamespace

import pytest

from relayc.runtime.cuda import driver as cuda_driver
from relayc.runtime.cuda.driver import ENTRY_POINTS, IMAGE_REFUSALS, DeviceAttributes, Driver, ImageRefused, machine_driver
from relayc.runtime.device import Device, DeviceError, DeviceMemoryError

CALLS = {
    "count": (),
    "attributes": (0,),
    "context": (0,),
    "push": (1,),
    "pop": (),
    "allocate": (16, 0),
    "free": (1, 0),
    "trim": (0,),
    "free_bytes": (),
    "copy": (1, 2, 3, 0),
    "copy_in": (1, 2, 3, 0),
    "copy_out": (1, 2, 3, 0),
    "make_stream": (),
    "destroy_stream": (1,),
    "wait": (0,),
    "synchronize": (),
    "make_event": (),
    "destroy_event": (1,),
    "record": (1, 0),
    "follow": (0, 1),
    "elapsed": (1, 2),
    "load_module": (b"code\0",),
    "unload_module": (1,),
    "function": (1, "kernel", 64 << 10),
    "begin_capture": (1,),
    "end_capture": (1,),
    "launch_graph": (1, 0),
    "destroy_graph": (1,),
    "entry_points": (),
}


def test_work_of_a_stream_is_that_of_its_device():
    driver, calls, events = Driver(None), [], iter((10, 11))
    driver.make_event = lambda: next(events)
    driver.record = lambda event, stream: calls.append(("record", event, stream))
    driver.follow = lambda stream, event: calls.append(("follow", stream, event))
    for index, stream in ((0, 5), (1, 5), (0, 5)):
        driver.mark(index, stream)
    for index, marked in ((1, 5), (0, 5), (0, 6), (2, 5)):
        driver.follow_mark(index, 7, marked)
    assert calls == [("record", 10, 5), ("record", 11, 5), ("record", 10, 5), ("follow", 7, 11), ("follow", 7, 10)]


def test_times_are_in_seconds():
    driver = Driver(None)
    driver._call = lambda name, *events: 1500.0  # milliseconds
    assert driver.elapsed(1, 2) == 1.5


@pytest.mark.parametrize("name", CALLS)
def test_arguments_reach_the_driver(name):
    bindings = pytest.importorskip("cuda.bindings.driver")
    if Device("cuda").exists:
        pytest.skip("this machine has a GPU")
    driver = Driver(bindings)
    # Arguments that do not fit are a TypeError, before the driver is looked for.
    with pytest.raises(RuntimeError, match="NVIDIA driver library"):
        getattr(driver, name)(*CALLS[name])


class Bindings:
    """What stands for cuda-bindings: notes calls, and gives what a test says, or 7.

    Attributes:
      calls: the names of functions with their arguments.
      given: by name of a function, its status and results.
    """

    CUresult = SimpleNamespace(CUDA_SUCCESS=0, CUDA_ERROR_OUT_OF_MEMORY=2)
    CUdevice_attribute = type("Attributes", (), {"__getattr__": lambda self, name: name.removeprefix("CU_DEVICE_ATTRIBUTE_")})()
    CUmemPool_attribute = SimpleNamespace(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD="threshold")
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING="non-blocking")
    CUevent_flags = SimpleNamespace(CU_EVENT_DEFAULT="default")
    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic")
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL="thread")

    def __init__(self, **given):
        self.calls, self.given = [], given

    def cuuint64_t(self, number):
        return number

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, *arguments))
            found = self.given.get(name, (0, 7))
            return found(*arguments) if callable(found) else found

        return call


def recorded(**given):
    driver = Driver(Bindings(**given))
    return driver, driver._cuda.calls


@pytest.mark.parametrize(
    ("method", "arguments", "result", "calls"),
    [
        ("count", (), 7, [("cuDeviceGetCount",)]),
        ("push", (5,), None, [("cuCtxPushCurrent", 5)]),
        ("pop", (), None, [("cuCtxPopCurrent",)]),
        ("allocate", (16, 3), 7, [("cuMemAllocAsync", 16, 3)]),
        ("allocate", (0, 3), 7, [("cuMemAllocAsync", 1, 3)]),  # the driver has no memory of no bytes
        ("free", (16, 3), None, [("cuMemFreeAsync", 16, 3)]),
        (
            "trim",
            (1,),
            None,
            [("cuCtxSynchronize",), ("cuDeviceGet", 1), ("cuDeviceGetDefaultMemPool", 7), ("cuMemPoolTrimTo", 7, 0)],
        ),
        ("copy", (1, 2, 3, 4), None, [("cuMemcpyAsync", 1, 2, 3, 4)]),
        ("copy_in", (1, 2, 3, 4), None, [("cuMemcpyHtoDAsync", 1, 2, 3, 4)]),
        ("copy_out", (1, 2, 3, 4), None, [("cuMemcpyDtoHAsync", 1, 2, 3, 4)]),
        ("make_stream", (), 7, [("cuStreamCreate", "non-blocking")]),
        ("destroy_stream", (3,), None, [("cuStreamDestroy", 3)]),
        ("wait", (3,), None, [("cuStreamSynchronize", 3)]),
        ("synchronize", (), None, [("cuCtxSynchronize",)]),
        ("make_event", (), 7, [("cuEventCreate", "default")]),
        ("destroy_event", (3,), None, [("cuEventDestroy", 3)]),
        ("record", (3, 4), None, [("cuEventRecord", 3, 4)]),
        ("follow", (3, 4), None, [("cuStreamWaitEvent", 3, 4, 0)]),
        ("elapsed", (3, 4), 0.007, [("cuEventElapsedTime", 3, 4)]),
        ("load_module", (b"code\0",), 7, [("cuModuleLoadData", b"code\0")]),
        ("unload_module", (3,), None, [("cuModuleUnload", 3)]),
        ("function", (3, "k"), 7, [("cuModuleGetFunction", 3, b"k")]),
        ("function", (3, "k", 1), 7, [("cuModuleGetFunction", 3, b"k"), ("cuFuncSetAttribute", 7, "dynamic", 1)]),
        ("begin_capture", (3,), None, [("cuStreamBeginCapture", 3, "thread")]),
        ("end_capture", (3,), 7, [("cuStreamEndCapture", 3)]),
        ("instantiate", (3,), 7, [("cuGraphInstantiate", 3, 0), ("cuGraphDestroy", 3)]),
        ("launch_graph", (3, 4), None, [("cuGraphLaunch", 3, 4)]),
        ("destroy_graph", (3,), None, [("cuGraphExecDestroy", 3)]),
    ],
)
def test_what_the_driver_is_asked_for(method, arguments, result, calls):
    driver, asked = recorded()
    assert (getattr(driver, method)(*arguments), asked) == (result, calls)


def test_results_of_several_values():
    driver, _ = recorded(cuMemGetInfo=(0, 100, 200))
    assert driver.free_bytes() == 100
    driver, asked = recorded(cuGetProcAddress=lambda name, version, flags: (0, len(name), 1))
    assert driver.entry_points() == {name: len(name) for name in ENTRY_POINTS}
    # The version that first had all of them, as older drivers have that.
    assert asked == [("cuGetProcAddress", name.encode(), 12000, 0) for name in ENTRY_POINTS]


def test_a_context_is_made_once_and_keeps_freed_memory():
    driver, asked = recorded()
    assert [driver.context(1), driver.context(1)] == [7, 7]
    keeps = ("cuMemPoolSetAttribute", 7, "threshold", 2**64 - 1)
    assert asked == [("cuDeviceGet", 1), ("cuDevicePrimaryCtxRetain", 7), ("cuDeviceGetDefaultMemPool", 7), keeps]
    driver.context(2)
    assert len(asked) == 8


def test_attributes_of_a_device():
    numbers = {"COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 1, "MULTIPROCESSOR_COUNT": 132, "L2_CACHE_SIZE": 50}
    numbers |= {"MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 227, "CLOCK_RATE": 2, "GLOBAL_MEMORY_BUS_WIDTH": 5120}
    given = {
        "cuDeviceGetName": (0, b"A GPU\0\0x"),
        "cuDeviceTotalMem": (0, 1 << 40),
        "cuDeviceGetAttribute": lambda name, device: (0, numbers[name]) if name in numbers else (1, None),
    }
    # Frequencies are in kHz; this driver does not tell that of the memory.
    driver, asked = recorded(**given)
    assert driver.attributes(3) == DeviceAttributes("A GPU", (9, 1), 132, 1 << 40, 50, 227, 2000, 0, 5120)
    assert asked[0] == ("cuDeviceGet", 3) and ("cuDeviceGetName", 256, 7) in asked
    del numbers["L2_CACHE_SIZE"]
    with pytest.raises(RuntimeError, match="device cuda: cuDeviceGetAttribute: the driver says 1"):
        driver.attributes(3)


def test_statuses_of_the_driver_are_errors():
    named = type("Status", (int,), {"name": "CUDA_ERROR_OUT_OF_MEMORY"})(2)
    driver, asked = recorded(cuMemAllocAsync=(named, None), cuCtxPushCurrent=(201, None), cuGraphInstantiate=(1, None))
    with pytest.raises(DeviceMemoryError, match="cuMemAllocAsync: expected free memory, found none left"):
        driver.allocate(8, 0)
    with pytest.raises(RuntimeError, match="device cuda: cuCtxPushCurrent: the driver says 201") as found:
        driver.push(1)
    assert type(found.value) is RuntimeError
    for status in (200, 209, 218, 221, 222, 223):
        driver._cuda.given["cuModuleLoadData"] = (status, None)
        with pytest.raises(ImageRefused, match=f"cuModuleLoadData: the driver says {status}"):
            driver.load_module(b"")
    assert {200, 209, 218, 221, 222, 223} == set(IMAGE_REFUSALS)
    with pytest.raises(RuntimeError, match="cuGraphInstantiate"):
        driver.instantiate(5)
    assert asked[-1] == ("cuGraphDestroy", 5)  # a graph that does not become one to launch as well


@pytest.mark.parametrize(
    ("status", "message"),
    [(100, "device cuda: expected a GPU, found a driver without one"), (999, "device cuda: expected a driver that starts, found 999")],
)
def test_a_driver_that_does_not_start(monkeypatch, status, message):
    bindings = Bindings(cuInit=(status,))
    bindings.CUresult = SimpleNamespace(CUDA_SUCCESS=0, CUDA_ERROR_NO_DEVICE=100)
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bindings=SimpleNamespace(driver=bindings)))
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=bindings))
    with pytest.raises(DeviceError, match=f"^{message}$"):
        machine_driver()
    bindings.given["cuInit"] = (0,)
    assert machine_driver()._cuda is bindings and bindings.calls[-1] == ("cuInit", 0)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(
        DeviceError, match=r"^device cuda: expected the package cuda-bindings \(pip .*'relayc\[cuda\]'\), found none \(.+\)$"
    ):
        machine_driver()


def test_a_driver_belongs_to_its_process(monkeypatch):
    monkeypatch.setattr(cuda_driver, "_found", [])
    assert not cuda_driver.is_forked()
    own = recorded()[0]
    cuda_driver.replace_driver(own)
    assert cuda_driver.driver() is own and not cuda_driver.is_forked()
    monkeypatch.setattr(cuda_driver.os, "getpid", lambda: -1)
    with pytest.raises(DeviceError, match="found one that was forked from it"):
        cuda_driver.driver()
    cuda_driver.replace_driver(None)
    assert not cuda_driver.is_forked()
