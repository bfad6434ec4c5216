"""Devices: names, facts, memory, copies; kinds that register themselves; programs that name their device."""

import ctypes
import dataclasses
import pickle
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
from handmade import build_artifact
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx_models import model_of

import relayc
from relayc.runtime import (
    Device,
    DeviceError,
    DeviceFacts,
    DeviceKind,
    Module,
    device_kind,
    device_of,
    register_device_kind,
    to_tensor,
)
from relayc.runtime.artifact import numpy_dtype
from relayc.runtime.cache import Cache, Origin
from relayc.runtime.cpu import device as cpu
from relayc.runtime.cpu import disassembly, host
from relayc.runtime.device import unregister_device_kind
from relayc.runtime.device_arenas import DeviceArenas

DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"]
EXTENSION = 12  # kDLExtDev


def on_device(array, type_, index):
    """The memory of an array as a tensor that claims to be on another device (see DLManagedTensorVersioned in dlpack.h)."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = array.__dlpack__(max_version=(1, 0))
    ctypes.c_int32.from_address(pointer(capsule, b"dltensor_versioned") + 40).value = type_
    ctypes.c_int32.from_address(pointer(capsule, b"dltensor_versioned") + 44).value = index
    return tvm_ffi.from_dlpack(capsule)


class Drawers(DeviceKind):
    """Two devices, whose memory numpy does not see; the code of their programs runs on the CPU."""

    name = "drawer"
    dlpack_type = EXTENSION

    def __init__(self):
        self.memory, self.waited = {}, []

    def count(self):
        return 2

    def facts(self, index):
        return DeviceFacts(f"drawer {index}", 4, 1 << 20, 8, ())

    def empty(self, index, shape, dtype):
        array = np.empty(shape, dtype)
        tensor = on_device(array, EXTENSION, index)
        self.memory[tensor.data_ptr()] = array
        return tensor

    def from_numpy(self, array, tensor):
        self.memory[tensor.data_ptr()][...] = array

    def to_numpy(self, tensor):
        return self.memory[tensor.data_ptr()].copy()

    def copy(self, source, destination):
        self.memory[destination.data_ptr()][...] = self.memory[source.data_ptr()]

    def synchronize(self, index):
        self.waited.append(index)

    @property
    def loads_code(self):
        return True

    def load(self, code, count):
        return device_kind("cpu").load(code, count)


@pytest.fixture
def drawers():
    kind = Drawers()
    register_device_kind(kind)
    yield kind
    unregister_device_kind(kind.name)


def test_devices_are_named_by_kind_and_index():
    device = Device("cpu")
    assert str(device) == "cpu:0" and (device.kind, device.index) == ("cpu", 0)
    assert device == Device("cpu:0") == Device("cpu", 0) == Device(device) == pickle.loads(pickle.dumps(device))
    assert len({device, Device("cpu:0"), Device("cpu:1")}) == 2 and Device("cpu:0") < Device("cpu:1")
    assert relayc.Device is Device and device.__dlpack_device__() == (1, 0)


def test_the_cpu_is_one_device_that_says_what_it_is():
    device = Device("cpu")
    assert device.exists and not Device("cpu:1").exists
    assert device.name and device.cores == relayc.Target("cpu").num_threads and device.memory_bytes > 1 << 20
    assert device.facts.vector_bytes == relayc.Target("cpu").vector_bytes
    assert list(device.facts.cache_bytes) == sorted(device.facts.cache_bytes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tpu",), "device: expected a kind out of cpu, cuda, found tpu"),
        (("",), "found nothing"),
        (("cpu:",), "expected KIND or KIND:INDEX, found 'cpu:'"),
        (("cpu:x",), "expected KIND or KIND:INDEX, found 'cpu:x'"),
        (("cpu:0", 0), "expected KIND or KIND:INDEX, found 'cpu:0' and the index 0"),
        (("cpu", -1), "device cpu: expected an index of 0 or more, found -1"),
        (("cpu", True), "device cpu: expected an index of 0 or more, found True"),
    ],
)
def test_what_is_no_device_is_refused(arguments, message):
    with pytest.raises(DeviceError, match=message):
        Device(*arguments)


def test_a_device_is_a_text_or_a_device():
    with pytest.raises(TypeError, match="expected a text such as cpu:0 or a Device, found 3"):
        Device(3)


def test_a_device_beyond_the_machine_can_be_named_but_not_used():
    device = Device("cpu:1")
    for use in (lambda: device.empty((2,)), lambda: device.tensor([1.0]), lambda: device.facts, device.synchronize):
        with pytest.raises(DeviceError, match="device cpu:1: expected an index below 1, the number of such devices, found 1"):
            use()


@settings(deadline=None)
@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=4))
def test_tensors_hold_what_was_copied_to_them(dtype, shape):
    array = np.random.default_rng(0).integers(0, 2, shape).astype(numpy_dtype(dtype))
    tensor = Device("cpu").tensor(array)
    assert (str(tensor.device), list(tensor.shape), tensor.dtype) == ("cpu:0", shape, dtype)
    found, again = tensor.numpy(), tensor.to("cpu:0").numpy()
    assert found.dtype == array.dtype and not np.shares_memory(found, array)
    np.testing.assert_array_equal(found, array)
    np.testing.assert_array_equal(again, array)


def test_tensors_are_copies():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = Device("cpu").tensor(array.T)  # strided
    np.testing.assert_array_equal(tensor.numpy(), array.T)
    other = tensor.to("cpu")
    tensor.copy_from(np.zeros((3, 2), np.float32))
    array[...] = 9
    np.testing.assert_array_equal(other.numpy(), np.arange(6).reshape(2, 3).T)
    assert not tensor.numpy().any() and repr(tensor) == "<relayc tensor float32[3, 2] on cpu:0>"


def test_tensors_speak_dlpack(module, x, n):
    cpu = Device("cpu")
    y, m = module["main"](cpu.tensor(x), cpu.tensor(n))
    expected, _ = module["main"](x, n)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(m, n)
    np.testing.assert_array_equal(np.from_dlpack(cpu.tensor(x)), x)
    assert cpu.tensor(to_tensor(n)).dtype == "bfloat16"


def test_a_tensor_takes_its_own_shape_and_dtype_only():
    tensor = Device("cpu").empty((2, 3), "bfloat16")
    with pytest.raises(TypeError, match="tensor on cpu:0: expected dtype bfloat16, found float32"):
        tensor.copy_from(np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"tensor on cpu:0: expected shape \[2, 3\], found \[3\]"):
        tensor.copy_from(np.zeros(3, ml_dtypes.bfloat16))
    with pytest.raises(ValueError, match=r"tensor on cpu:0: expected dimensions of 0 or more, found \[2, -1\]"):
        Device("cpu").empty((2, -1))
    with pytest.raises(TypeError):
        Device("cpu").empty((2,), "no_dtype")


def test_every_value_says_its_device(drawers):
    assert device_of(np.zeros(1)) == device_of(to_tensor(np.zeros(1))) == device_of(Device("cpu").empty((1,))) == Device("cpu")
    assert device_of(Device("drawer:1").empty((1,))) == Device("drawer:1")
    with pytest.raises(TypeError, match="expected an array or a DLPack tensor, found a value of type int"):
        device_of(3)
    with pytest.raises(DeviceError, match=r"expected a DLPack device type out of 1 \(cpu\), 2 \(cuda\), 12 \(drawer\), found 13"):
        device_of(on_device(np.zeros(1), 13, 0))


def test_another_kind_adds_itself(drawers):
    first, second = Device("drawer"), Device("drawer:1")
    assert (first.name, first.cores, second.exists, Device("drawer:2").exists) == ("drawer 0", 4, True, False)
    array = np.arange(4.0)
    tensor = first.tensor(array)
    moved = tensor.to(second)
    assert (str(tensor.device), str(moved.device)) == ("drawer:0", "drawer:1")
    np.testing.assert_array_equal(moved.to("cpu").numpy(), array)
    np.testing.assert_array_equal(Device("cpu").tensor(array).to("drawer").numpy(), array)
    assert drawers.waited  # what is read is first waited for
    for use in (lambda: device_kind("drawer").disassemble(None, None), lambda: device_kind("drawer").request(["tiles"])):
        with pytest.raises(DeviceError, match="device drawer: expected"):
            use()


def test_kinds_are_taken_once(drawers):
    with pytest.raises(ValueError, match="device kind 'drawer': expected a free name or override=True, found it registered"):
        register_device_kind(Drawers())
    with pytest.raises(ValueError, match="device kind 'cpu': expected a free name"):
        register_device_kind(type("Cpu", (Drawers,), {"name": "cpu"})())
    with pytest.raises(ValueError, match="expected a word for a name"):
        register_device_kind(type("Spaced", (Drawers,), {"name": "a:b"})())
    register_device_kind(Drawers(), override=True)


def test_modules_and_functions_name_their_device(module):
    assert module.device == module["main"].device == module["add"].device == Device("cpu:0")
    assert "on cpu:0" in repr(module)


def test_functions_refuse_tensors_of_other_devices(module, x, n, drawers):
    elsewhere = Device("drawer:1").tensor(x)
    with pytest.raises(ValueError, match=r"main: argument 0 'x': expected float32\[2, 3\] on the cpu, found a tensor on drawer:1"):
        module["main"](elsewhere, n)
    with pytest.raises(ValueError, match=r"found float32\[2, 3\] that is not on the cpu"):
        module["add"].packed(elsewhere.data, x, np.empty_like(x))


def test_generated_code_checks_for_the_kind_of_device_it_is_for(drawers, x):
    made = Module(build_artifact(device="drawer"))
    assert str(made.device) == "drawer:0"
    drawer = Device("drawer")
    a, b, c = drawer.tensor(x), drawer.tensor(x), drawer.empty(x.shape)
    made["add"].packed(a.data, b.data, c.data)
    np.testing.assert_array_equal(c.numpy(), x + x)
    with pytest.raises(ValueError, match=r"found float32\[2, 3\] that is not on the drawer"):
        made["add"].packed(a.data, to_tensor(x), c.data)


def test_a_program_of_an_unknown_kind_of_device_is_one_error():
    with pytest.raises(DeviceError, match="device: expected a kind out of cpu, cuda, found drawer"):
        Module(dataclasses.replace(build_artifact(), device="drawer"))


@pytest.mark.skipif(not device_kind("cpu").loads_code, reason="programs are kept where object code can be loaded")
def test_the_cache_keeps_the_kind_of_device(tmp_path, drawers):
    module = relayc.compile(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [4]}), cache=False)
    artifact = dataclasses.replace(module._artifact, device="drawer")
    cache = Cache(tmp_path)
    assert cache.store("key", artifact, Origin("a model"))
    found = cache.load("key")
    assert found.device == "drawer" and found.target == module.target and found.functions.keys() == artifact.functions.keys()
    unregister_device_kind("drawer")
    with pytest.raises(DeviceError, match=r"key\.relayc: device: expected a kind out of cpu, cuda, found drawer"):
        cache.load("key")
    assert len(cache.entries()) == 1  # it is for a process that knows the kind


def test_permissions_that_the_kind_does_not_know_are_refused():
    with pytest.raises(DeviceError, match="device cpu: expected permissions out of tiles, found wings"):
        Module(dataclasses.replace(build_artifact(), permissions=("wings",)))


def test_a_program_asks_for_its_permissions(monkeypatch):
    asked = []
    monkeypatch.setitem(cpu._PERMISSIONS, "tiles", lambda: asked.append("tiles"))
    device_kind("cpu").request(["tiles"])
    assert asked == ["tiles"]


def test_arenas_go_to_calls_of_their_device_and_stream(drawers):
    arenas = DeviceArenas(drawers, np.arange(5, dtype=np.uint8))
    first = arenas.acquire(1, 7, 64)
    arenas.release(1, 7, first)
    for index, stream in ((0, 7), (1, 0)):
        assert arenas.acquire(index, stream, 8).data_ptr() != first.data_ptr()
    assert arenas.acquire(1, 7, 64).data_ptr() == first.data_ptr() and arenas.acquire(1, 7, 64).data_ptr() != first.data_ptr()
    arenas.release(1, 7, first)
    assert arenas.acquire(1, 7, 65).shape == (65,) and arenas.acquire(1, 7, 8).shape == (8,)  # the one that is too small is gone
    params = arenas.params(1)
    assert params is arenas.params(1) and params is not arenas.params(0) and drawers.fetch(params).tolist() == [0, 1, 2, 3, 4]
    arenas.set_params(np.ones(3, np.uint8))
    assert arenas.version == 1 and drawers.fetch(arenas.params(1)).tolist() == [1, 1, 1]


def test_what_a_kind_need_not_have(drawers):
    """Without methods of its own a kind has no streams, and refuses what needs more than memory and copies."""
    tensor, base = drawers.empty(0, (2,), "float32"), DeviceKind
    base.send(drawers, np.array([1, 2], np.float32), tensor)
    np.testing.assert_array_equal(base.fetch(drawers, tensor), [1, 2])
    base.wait(drawers, 0)
    base.done(drawers, 0, 0, [])
    assert base.stream_of(drawers, 0, []) == 0 and base.lacking(drawers, ["f"]) == () and base.loads_code.fget(drawers) is False
    with base.within(drawers, 0, 0):
        pass
    for refused, what in [
        (lambda: base.part(drawers, tensor, 0, (1,), "uint8"), "whose memory has parts"),
        (lambda: base.at(drawers, 0, 0, (1,), "uint8"), "whose programs give memory"),
        (lambda: base.program(drawers, None, 0), "whose programs take a context"),
        (lambda: base.load(drawers, None, 1), "that loads object code"),
        (lambda: base.open_library(drawers, Path("x.so"), "f"), "that loads libraries"),
    ]:
        with pytest.raises(DeviceError, match=f"device drawer: expected a kind {what}, found one that does not"):
            refused()


def test_libraries_of_the_cpu(tmp_path):
    cpu = device_kind("cpu")
    with pytest.raises(DeviceError, match="expected a library that can be loaded, found: "):
        cpu.open_library(tmp_path / "none.so", "f")
    import relayc.runtime.threads as threads

    with pytest.raises(DeviceError, match="expected a library that defines relayc_nothing, found none"):
        cpu.open_library(Path(threads.openmp_library()), "relayc_nothing")
    assert hasattr(cpu.open_library(Path(threads.openmp_library()), "omp_get_max_threads"), "omp_get_max_threads")


def test_the_openmp_runtime_is_looked_for_in_order(monkeypatch):
    from relayc.runtime import threads

    find = threads.openmp_library.__wrapped__

    def package_without(name):
        raise threads.importlib.metadata.PackageNotFoundError(name)

    class File:
        def __init__(self, name):
            self.name = name

        def locate(self):
            return Path("/packages") / self.name

    assert find() == threads.loaded_library(threads._FILES[0])
    monkeypatch.setattr(threads, "loaded_library", lambda name: None)
    monkeypatch.setattr(threads.importlib.metadata, "files", lambda name: [File("other.so"), File(threads._FILES[0])])
    assert find() == f"/packages/{threads._FILES[0]}"
    for files in (package_without, lambda name: None, lambda name: [File("other.so")]):
        monkeypatch.setattr(threads.importlib.metadata, "files", files)
        monkeypatch.setattr(threads.ctypes.util, "find_library", lambda name: f"lib{name}" if name == threads._OTHERS[-1] else None)
        assert find() == f"lib{threads._OTHERS[-1]}"
        monkeypatch.setattr(threads.ctypes.util, "find_library", lambda name: None)
        with pytest.raises(OSError, match="no OpenMP runtime found: install intel-openmp or LLVM's libomp"):
            find()


def test_what_the_system_says_of_its_memory(monkeypatch, tmp_path):
    caches = (("1", "Instruction", "32K"), ("1", "Data", "48K"), ("2", "Unified", "?"), ("2", "Unified", "2M"), ("3", "Unified", "?"))
    for index, (level, kind, size) in enumerate(caches):
        (tmp_path / f"index{index}").mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (tmp_path / f"index{index}" / name).write_text(f"{text}\n")
    (tmp_path / "index9").mkdir()  # which says nothing
    monkeypatch.setattr(host, "_CACHES", tmp_path)
    assert [host.cache_bytes.__wrapped__(level) for level in (1, 2, 3, 4)] == [48 << 10, 2 << 20, None, None]
    monkeypatch.setattr(host, "_CACHES", tmp_path / "none")
    assert host.cache_bytes.__wrapped__(1) is None
    numbers = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 10}
    monkeypatch.setattr(host.os, "sysconf", numbers.__getitem__)
    assert host.memory_bytes() == 40960
    monkeypatch.setattr(host.os, "sysconf", lambda name: int("none"))
    assert host.memory_bytes() == 0


def test_assembly_needs_a_disassembler(monkeypatch):
    monkeypatch.setitem(sys.modules, "iced_x86", None)
    with pytest.raises(ModuleNotFoundError, match=r"iced-x86, which is not installed: pip install 'relayc\[asm\]'"):
        list(disassembly._lines(b"", []))
