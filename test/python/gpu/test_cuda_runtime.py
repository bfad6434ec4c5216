"""Programs on NVIDIA's GPUs from the caller's side, over a driver that tests have: see fake_cuda."""

import json
import logging
import os
import re
import sys
import threading
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import tvm_ffi
from cuda_programs import TARGET, Producer, chain, one_thread_an_element, two_kernels, unfused
from fake_cuda import fake_cuda
from gpu_kernels import strategy
from oracle import values
from support import Const, program
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc.dialects.relay import build
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.targets.cuda import peak
from relayc.pipelines.targets.cuda.host import use_driver
from relayc.runtime.cache import Cache, Origin
from relayc.runtime.cuda.driver import IMAGE_REFUSALS
from relayc.runtime.cuda.images import Images
from relayc.runtime.device import Device, DeviceError, DeviceMemoryError, device_kind
from relayc.runtime.module import Module
from relayc.runtime.tensor import Tensor
from relayc.symbolic import Range


def test_arrays_go_in_and_come_out(driver):
    x, y = values((3, 5)), values((3, 5), seed=1)
    module = compile(program(chain, [x, y]), target=TARGET)
    assert str(module.device) == "cuda:0" and module.records
    for _ in range(2):
        found = module["main"](x, y)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, (x + y) * x, rtol=1e-6)


def test_tensors_of_the_device_stay_there_and_nothing_is_waited_for(driver):
    x, y = values((3, 5)), values((3, 5), seed=1)
    module = compile(program(chain, [x, y]), target=TARGET)
    module.records = False
    given = [Device("cuda").tensor(array) for array in (x, y)]
    main = module["main"]
    main(*given)  # parameters and code are on the device from now on
    waits, launches = driver.waits, len(driver.launches)
    found = main(*given)
    assert isinstance(found, Tensor) and found.device == Device("cuda:0") and found.shape == (3, 5)
    assert driver.waits == waits and len(driver.launches) == launches
    np.testing.assert_allclose(found.numpy(), (x + y) * x, rtol=1e-6)
    assert len(driver.launches) == launches + 2  # of both calls, when somebody waits


def test_out_and_wrap(driver):
    x, y = values((3, 5)), values((3, 5), seed=1)
    main = compile(program(chain, [x, y]), target=TARGET)["main"]
    out = np.empty((3, 5), np.float32)
    assert main(x, y, out=out) is out
    np.testing.assert_allclose(out, (x + y) * x, rtol=1e-6)
    given, into = Device("cuda").tensor(x), Device("cuda").empty((3, 5))
    assert main(given, y, out=into) is into
    np.testing.assert_allclose(into.numpy(), (x + y) * x, rtol=1e-6)
    seen = main(x, y, wrap=lambda t: (type(t), str(t.device)))
    assert seen == (Tensor, "cuda:0")
    with pytest.raises(ValueError, match=r"output 0 'output0': expected a contiguous tensor float32\[3, 5\], found float32\[5, 3\]"):
        main(x, y, out=Device("cuda").empty((5, 3)))


def test_tensors_of_others_go_in_without_a_copy_on_the_stream_of_the_thread(driver):
    x = values((4, 4))
    module = compile(program(lambda a: [build("exp", a)], [x]), target=TARGET)
    module.records = False
    producer = Producer(Device("cuda").tensor(x).data)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), 77):
        found = module["main"](producer)
        assert found.stream == 77 and producer.asked == [77]
        np.testing.assert_allclose(found.numpy(), np.exp(x), rtol=1e-6)
    assert {one.stream for one in driver.launches} == {77}
    found = module["main"](producer)
    assert producer.asked == [77, 1]  # DLPack's number of the default stream
    # What reads the result on another stream waits for it.
    before = len(driver.launches)
    tvm_ffi.from_dlpack(found.__dlpack__(stream=5))
    driver.push(driver.context(0))
    driver.wait(5)
    driver.pop()
    assert len(driver.launches) == before + 1


def test_the_stream_is_that_of_the_first_tensor_whose_framework_has_one(driver, monkeypatch):
    streams = SimpleNamespace(current_stream=lambda index: SimpleNamespace(cuda_stream=9 + index))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=streams))
    tensor = type("Tensor", (), {"__module__": "torch"})()
    kind = device_kind("cuda")
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), 77):
        assert kind.stream_of(0, [values((4,)), tensor]) == 9
        assert kind.stream_of(0, [values((4,)), None]) == kind.stream_of(0, []) == 77
    # After a call only that framework's stream waits, where it is another one.
    followers = []
    monkeypatch.setattr(driver, "follow", lambda stream, event: followers.append(stream))
    kind.done(0, 77, [values((4,)), tensor])
    kind.done(0, 9, [values((4,)), tensor])
    assert followers == [9]


def test_the_default_stream_does_not_wait_for_itself(driver, monkeypatch):
    followers = []
    monkeypatch.setattr(driver, "follow", lambda stream, event: followers.append(stream))
    given = Device("cuda").tensor(values((4,)))
    for stream in (None, 1, -1, 5):  # DLPack's numbers: 1 is the default stream, -1 waits for nothing
        given.__dlpack__(stream=stream)
    assert followers == [5]


def test_a_result_of_one_stream_is_waited_for_on_another(driver):
    x = values((4, 4))
    module = compile(program(lambda a: [build("exp", a)], [x]), target=TARGET)
    device = tvm_ffi.device("cuda:0")
    with tvm_ffi.use_raw_stream(device, 3):
        first = module["main"](Device("cuda").tensor(x))
    with tvm_ffi.use_raw_stream(device, 4):
        second = module["main"](first)
        driver.push(driver.context(0))
        driver.wait(4)
        driver.pop()
        np.testing.assert_allclose(second.numpy(), np.exp(np.exp(x)), rtol=1e-6)


def test_tensors_that_begin_in_between_are_copied(driver):
    x = values((6,))
    module = compile(program(lambda a: [build("exp", a)], [x[1:]]), target=TARGET)
    whole = Device("cuda").tensor(x)
    kind = device_kind("cuda")
    part = kind.part(whole.data, 4, (5,), "float32")
    np.testing.assert_allclose(module["main"](part).numpy(), np.exp(x[1:]), rtol=1e-6)


# ---- what the host has to know ------------------------------------------------------------------------------------------------------


def test_a_loop_whose_condition_is_on_the_device(driver):
    made = relayc.Program()

    @made.function(x=relayc.TensorType(("n",), "float32"), steps=relayc.TensorType((), "int64"))
    def main(x, steps):
        return made.while_loop(lambda i, y: i < steps, lambda i, y: (i + 1, y * 2.0), (np.int64(0), x))[1]

    module = compile(made, target=TARGET)
    assert not module.records
    x = values((4,))
    for steps in (0, 3):
        np.testing.assert_array_equal(module["main"](x, np.int64(steps)), x * 2.0**steps)
    given = Device("cuda").tensor(x), Device("cuda").tensor(np.int64(2))
    waits = driver.waits
    found = module["main"](*given)
    assert driver.waits == waits + 3  # for the condition, each time
    np.testing.assert_array_equal(found.numpy(), x * 4)


def test_sizes_that_are_data(driver):
    made = relayc.Program()
    op = made.op

    @made.function(x=relayc.TensorType(("n",), "float32"), k=relayc.TensorType((2,), "int64"))
    def main(x, k):
        op.define_sizes(k, names=("rows", "columns"))
        return op.zeros(shape=("rows", "columns"), dtype="float32") + 1.0, x * 2.0

    module = compile(made, target=TARGET)
    x = values((4,))
    for rows, columns in ((3, 7), (2, 0), (1, 1)):
        found, other = module["main"](x, np.array([rows, columns]))
        assert found.shape == (rows, columns)
        np.testing.assert_array_equal(found, np.ones((rows, columns)))
        np.testing.assert_array_equal(other, x * 2)
    kept = module["main"](Device("cuda").tensor(x), np.array([300, 200]))
    taken = driver.allocated[0]
    del kept, found
    assert driver.allocated[0] <= taken - 300 * 200 * 4


def test_values_of_the_host_are_refused(driver):
    made = relayc.Program()

    @made.function(x=relayc.TensorType((2,), "float32"))
    def main(x):
        return made.call_packed("test.other", [x], relayc.TensorType((2,), "float32"))

    with pytest.raises(ValueError, match=r"expected a program of kernels alone, found a call of test.other, which is done on the host"):
        compile(made, target=TARGET)


def test_code_of_the_host_that_writes_memory_of_the_device_is_refused():
    module = IRModule.parse("""
        func.func @main(%x: memref<4xf32>, %i: index, %v: f32) {
          memref.store %v, %x[%i] : memref<4xf32>
          return
        }""")
    with pytest.raises(ValueError, match=r"@main at .*: expected code of the host that leaves memory .* alone, found memref.store"):
        use_driver(module.module, [])


# ---- errors -------------------------------------------------------------------------------------------------------------------------


def test_a_launch_that_fails_raises_and_the_next_call_runs(driver):
    x = values((3, 5))
    module = unfused(program(two_kernels, [x]))
    module.records = False
    module["main"](x)
    launches = len(driver.launches)
    driver.fails["cuLaunchKernel"] = 1
    with pytest.raises(
        RuntimeError,
        match=r"launch of kernel \w+ \(grid 3 x 5 x 1, block 1 x 1 x 1, 0 bytes .*: the driver says CUDA_ERROR_INVALID",
    ):
        module["main"](x)
    assert len(driver.launches) == launches  # nothing is launched behind it
    np.testing.assert_allclose(module["main"](x), np.exp(x) * x, rtol=1e-5)


def test_a_read_that_fails_raises(driver):
    made = relayc.Program()

    @made.function(x=relayc.TensorType((), "int64"))
    def main(x):
        return made.while_loop(lambda i: i < x, lambda i: i + 1, np.int64(0))

    module = compile(made, target=TARGET)
    driver.fails["cuMemcpyDtoHAsync"] = 1
    with pytest.raises(RuntimeError, match="reading an element of a tensor on the device: the driver says CUDA_ERROR_INVALID_VALUE"):
        module["main"](np.int64(3))
    assert module["main"](np.int64(3)) == 3


def test_no_memory_left():
    with fake_cuda(memory_bytes=1 << 12), strategy(one_thread_an_element):
        x = values((64, 8))
        module = compile(program(lambda a: [build("exp", a)], [x]), target=TARGET)
        with pytest.raises(DeviceMemoryError, match=r"expected \d+ bytes for a tensor .*, found \d+ free of 4096 \(.*cuMemAllocAsync"):
            module["main"](values((64, 8)))
        with pytest.raises(MemoryError):
            Device("cuda").empty((1 << 20,))
        assert Device("cuda").tensor(values((8,))).numpy().shape == (8,)


def test_programs_of_other_devices_are_refused(driver):
    with pytest.raises(TypeError, match="device cuda: expected what `load` gave for a program, found 'other'"):
        device_kind("cuda").program("other", 0)


def test_without_a_driver():
    device = Device("cuda")
    if device.exists:
        pytest.skip("this machine has a GPU")
    with pytest.raises(DeviceError, match=r"device cuda:0: expected (the package cuda-bindings|NVIDIA's driver)"):
        device.empty((3,))
    with pytest.raises(DeviceError, match="device cuda:0: expected"):
        _ = device.name
    with pytest.raises(ImportError, match=r"^device cuda: expected"):
        peak.quick_peak.__wrapped__(1)


def test_a_forked_process_cannot_use_the_driver(driver):
    x = values((3, 5))
    module = compile(program(two_kernels, [x]), target=TARGET)
    held = module["main"](Device("cuda").tensor(x))
    given, taken = Device("cuda").tensor(x), driver.allocated[0]
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for act in (lambda: module["main"](x), lambda: module["main"](given), lambda: Device("cuda").empty((1,))):
            try:
                act()
            except DeviceError as error:
                said.append(str(error))
        del held, given
        os.write(write_end, json.dumps([said, driver.allocated[0]]).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        said, left = json.load(pipe)
    os.waitpid(child, 0)
    expected = rf"device cuda:0: expected the process that began to use the driver \({os.getpid()}\), found one that was forked from it"
    assert len(said) == 3 and all(re.match(expected, text) for text in said)
    assert left == taken  # what the parent has is not the child's to free
    np.testing.assert_allclose(held.numpy(), np.exp(x) * x, rtol=1e-5)


@pytest.mark.parametrize("status", [200, 209, 218, 222])
def test_a_driver_that_refuses_cubins_compiles_ptx(driver, status, caplog):
    x = values((3, 5))
    module = unfused(program(two_kernels, [x]))
    driver.refuses["cubin"] = status
    with caplog.at_level(logging.WARNING):
        np.testing.assert_allclose(module["main"](x), np.exp(x) * x, rtol=1e-5)
    names = [kernel.name for kernel in module.kernels]
    loaded = device_kind("cuda").program(module._artifact.keep_alive, 0)
    assert loaded.images == dict.fromkeys(names, "PTX of sm_80")
    assert f"loading PTX of sm_80: the driver refused cubin of sm_80: device cuda: cuModuleLoadData: {IMAGE_REFUSALS[status]}" in (
        caplog.text.replace("the driver says ", "")
    )


def test_the_driver_takes_cubins_where_it_can(driver):
    x = values((3, 5))
    module = unfused(program(two_kernels, [x]))
    module["main"](x)
    loaded = device_kind("cuda").program(module._artifact.keep_alive, 0)
    assert set(loaded.images.values()) == {"cubin of sm_80"}


def test_a_driver_that_refuses_all_images_says_why(driver):
    x = values((3, 5))
    module = unfused(program(two_kernels, [x]))
    driver.refuses.update(cubin=200, PTX=222)
    expected = (
        r"device cuda:0: kernel \w+: expected an image that the driver loads, "
        r"found cubin of sm_80: .*INVALID_IMAGE; PTX of sm_80: .*UNSUPPORTED_PTX_VERSION"
    )
    with pytest.raises(DeviceError, match=expected):
        module["main"](x)
    driver.refuses.clear()
    np.testing.assert_allclose(module["main"](x), np.exp(x) * x, rtol=1e-5)
    assert len(driver._modules) == len(module.kernels)


def test_a_device_that_is_too_old_or_has_no_code():
    x = values((3,))
    with (
        fake_cuda(capability=(7, 0)),
        pytest.raises(DeviceError, match=r"cuda:0: expected compute capability 7.5 or later, found Fake 0 of 7.0"),
    ):
        Device("cuda").empty((1,))
    with fake_cuda(capability=(7, 5)), strategy(one_thread_an_element):
        module = compile(program(lambda a: [build("exp", a)], [x]), target=Target("cuda", arch="sm_80"))
        with pytest.raises(DeviceError, match=r"cuda:0: kernel .*: expected a device that runs code for sm_80, found one of .* 7.5"):
            module["main"](x)
    with fake_cuda(devices=0), pytest.raises(DeviceError, match="device cuda:0: expected "):
        module["main"](x)


def test_arguments_are_checked(driver):
    x = values((3, 5))
    main = compile(program(lambda a: [build("exp", a)], [x]), target=TARGET)["main"]
    on_device = Device("cuda").tensor
    with pytest.raises(ValueError, match=r"main: argument 0 'input0': expected float32\[3, 5\], found float32\[5, 3\]"):
        main(on_device(values((5, 3))))
    with pytest.raises(TypeError, match=r"argument 0 'input0': expected float32\[3, 5\], found int64\[3, 5\]"):
        main(on_device(np.zeros((3, 5), np.int64)))
    with pytest.raises(TypeError, match="expected 1 inputs"):
        main()
    with pytest.raises(TypeError, match="argument 4: expected the address of a context, an integer, found a value of type"):
        data = on_device(x).data
        main.packed(data, data, Device("cuda").empty((1 << 16,), "uint8").data, on_device(np.zeros(64, np.uint8)).data, 1.5)


def test_arguments_by_name_and_memory_of_a_call(driver):
    x, y = values((3, 5)), values((3, 5), seed=1)
    module = unfused(program(chain, [x, y]))
    main, on_device = module["main"], Device("cuda").tensor
    names = [spec.name for spec in main.inputs]
    found = main(**dict(zip(names[::-1], map(on_device, (y, x)), strict=True)))
    np.testing.assert_allclose(found.numpy(), (x + y) * x, rtol=1e-6)
    assert main.arena_bytes([x, on_device(y)]) == 64  # a sum of 60 bytes


def test_tensors_of_others_may_be_strided(driver):
    x = values((3, 5))
    module = compile(program(lambda a: [build("exp", a)], [x]), target=TARGET)
    strided = type("Strided", (Producer,), {"contiguous": lambda self: Device("cuda").tensor(x).data})(Device("cuda").tensor(x.T).data)
    np.testing.assert_allclose(module["main"](strided).numpy(), np.exp(x), rtol=1e-6)
    (spec,) = module.inputs
    for is_contiguous, message in ((True, None), (False, "it, found a tensor that is not contiguous")):
        with nullcontext() if is_contiguous else pytest.raises(ValueError, match=message):
            tensor = SimpleNamespace(shape=(3, 5), dtype="float32", is_contiguous=Mock(return_value=is_contiguous))
            module["main"]._check_tensor(tensor, "it", spec)


def test_only_tensors_between_alignments_are_copied(driver, monkeypatch):
    x, kind = values((3, 5)), device_kind("cuda")
    module = compile(program(lambda a: [build("exp", a)], [x]), target=TARGET)
    copy = Mock(side_effect=kind.copy)
    monkeypatch.setattr(kind, "copy", copy)
    room = Device("cuda").tensor(np.concatenate([np.zeros(4, np.float32), x.ravel()])).data
    for begin, copies in ((16, 0), (4, 1)):
        given = kind.part(room, begin, (3, 5), "float32")
        expected = np.exp(x if begin == 16 else np.concatenate([np.zeros(3, np.float32), x.ravel()])[:15].reshape(3, 5))
        np.testing.assert_allclose(module["main"](given).numpy(), expected, rtol=1e-6)
        assert copy.call_count == copies


def test_unfit_out_tensors_are_refused(driver):
    x, kind = values((3, 5)), device_kind("cuda")
    module = compile(program(lambda a: [build("exp", a), build("negative", a)], [x]), target=TARGET)
    first, second = (Device("cuda").empty((3, 5), "float32") for _ in range(2))
    between = kind.part(Device("cuda").empty((16,), "float32").data, 4, (3, 5), "float32")
    for out, error, message in (
        ([first], TypeError, "main: expected 2 arrays in out, found 1"),
        ([first, np.empty((3, 5), np.float32)], ValueError, r"output 1 '\w+': .* float32\[3, 5\] on cuda:0, found ndarray elsewhere"),
        ([first, between], ValueError, r"output 1 '\w+': .* begins at a multiple of 16 bytes, found 0x\w+4$"),
        ([first, Device("cuda").empty((5, 3), "float32")], ValueError, r"float32\[3, 5\], found float32\[5, 3\]"),
        ([Device("cuda").empty((3, 5), "int32"), second], TypeError, r"output 0 '\w+': .*, found int32\[3, 5\]"),
    ):
        with pytest.raises(error, match=message):
            module["main"](x, out=out)
    module["main"](x, out=[first, second])
    np.testing.assert_allclose(first.numpy(), np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(second.numpy(), -x)


# ---- devices and threads ------------------------------------------------------------------------------------------------------------


def test_devices():
    with fake_cuda(devices=2) as driver, strategy(one_thread_an_element):
        device = Device("cuda", 1)
        assert device.exists and not Device("cuda:2").exists
        assert (device.name, device.architecture, device.multiprocessors) == ("Fake 1", "sm_80", 4)
        assert device.facts.cache_bytes[-1] == 1 << 22 and device.memory_bytes == 1 << 30
        x = values((3, 5))
        module = unfused(program(two_kernels, [x]))
        for index in (0, 1):
            found = module["main"](Device("cuda", index).tensor(x))
            assert found.device == Device("cuda", index)
            np.testing.assert_allclose(found.numpy(), np.exp(x) * x, rtol=1e-5)
        moved = Device("cuda:0").tensor(x).to("cuda:1")
        np.testing.assert_array_equal(moved.to("cpu").numpy(), x)
        two = compile(program(chain, [x, x]), target=TARGET)["main"]
        with pytest.raises(ValueError, match=r"expected tensors of one device, found cuda:0 \(argument 0\) and cuda:1 \(argument 1\)"):
            two(Device("cuda:0").tensor(x), moved)
        with pytest.raises(DeviceError, match="cuda:2: expected an index below 2"):
            Device("cuda:2").empty((1,))
        assert driver.count() == 2


def test_what_is_recorded_on_a_device_is_for_that_device():
    with fake_cuda(devices=2) as driver, strategy(one_thread_an_element):
        x = values((3, 5))
        main = compile(program(chain, [x, x]), target=TARGET)["main"]
        for index, captured in ((0, 0), (0, 0), (0, 1), (0, 1), (1, 1), (1, 1), (1, 2), (1, 2), (0, 2)):
            device = Device("cuda", index)
            found = main(device.tensor(x), device.tensor(2 * x))
            assert found.device == device and driver.captured == captured
            np.testing.assert_allclose(found.numpy(), 3 * x * x, rtol=1e-6)


def test_memory_is_copied_from_tensors_of_others(driver):
    x, to = values((3, 5)), Device("cuda").empty((3, 5))
    to.copy_from(Producer(Device("cuda").tensor(x).data))
    np.testing.assert_array_equal(to.numpy(), x)
    with pytest.raises(ValueError, match=r"found .*\[5, 3\]"):
        to.copy_from(Producer(Device("cuda").tensor(x.reshape(5, 3)).data))


@pytest.mark.parametrize("records", [True, False])
def test_calls_of_several_threads(driver, records):
    module = unfused(program(two_kernels, [values((3, 5))]))
    module.records = records
    wrong = []

    def work(seed):
        with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), 10 + seed % 2):
            for i in range(20):
                x = values((3, 5), seed=20 * seed + i)
                if not np.allclose(module["main"](x), np.exp(x) * x, rtol=1e-5):
                    wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_kernel_by_itself(driver):
    x = values((3, 5))
    mod = symbolic_program(lambda a: [build("exp", a)], [tensor("float32[n, 5]")], {"n": Range(1)})
    module = compile(mod, target=TARGET)
    (kernel,) = module.kernels
    np.testing.assert_allclose(module[kernel.name](x), np.exp(x), rtol=1e-6)


# ---- profiles and the cache ---------------------------------------------------------------------------------------------------------


def test_a_profile_by_events(driver):
    made = relayc.Program()

    @made.function(x=relayc.TensorType(("n",), "float32"), steps=relayc.TensorType((), "int64"))
    def main(x, steps):
        return made.while_loop(lambda i, y: i < steps, lambda i, y: (i + 1, y * 2.0), (np.int64(0), x))[1]

    module = compile(made, target=TARGET)
    profile = module.profile([values((4,)), np.int64(3)], repeat=2)
    calls = {row.where: row.calls for row in profile.rows}
    assert calls["main/loop/condition"] == 4 and calls["main/loop"] == 3
    # The fake device's clock goes a microsecond further with each launch.
    assert [round(row.seconds * 1e6) for row in profile.rows] == [row.calls for row in profile.rows]
    assert profile.latency == pytest.approx(sum(row.calls for row in profile.rows) * 1e-6)
    peak.quick_peak.cache_clear()
    found = profile.peak
    peak.quick_peak.cache_clear()
    # 4 multiprocessors at 1 GHz, by what those of compute capability 8.0 do in a cycle.
    assert (found.gflops, found.tensor_gflops) == (4 * 128, 4 * 2048) and found.gbytes > 0
    assert "peak of the device: 0.5 TFLOP/s f32, 8 TFLOP/s of 16-bit floats on tensor cores" in str(profile)


@pytest.mark.parametrize(("memory", "copied"), [(1 << 30, 1 << 27), (1 << 31, 1 << 28), (1 << 40, 1 << 28)])
def test_bandwidth_is_measured_with_an_eighth_of_the_memory_at_most(memory, copied, monkeypatch):
    monkeypatch.setattr(peak, "copy_gbytes", lambda num_bytes: num_bytes)
    with fake_cuda(memory_bytes=memory):
        assert peak.quick_peak.__wrapped__(1).gbytes == copied


def test_programs_come_from_the_cache(driver, tmp_path):
    x = values((3, 5))
    made = unfused(program(two_kernels, [x]))
    cache = Cache(tmp_path / "cache")
    assert cache.store("key", made._artifact, Origin("test"))
    found = Module(cache.load("key"))
    np.testing.assert_allclose(found["main"](x), np.exp(x) * x, rtol=1e-5)
    assert found._artifact.code.kernels == made._artifact.code.kernels and str(found.device) == "cuda:0"


def test_exported_programs_run_on_devices(driver, tmp_path):
    x, w = values((3, 5)), values((5, 5), seed=1)
    path = tmp_path / "model.so"
    made = compile(program(lambda a, b: [build("exp", build("nn.dense", a, b))], [x, Const(w)]), target=TARGET)
    made.export_library(path)
    found = relayc.load_module(path)
    assert str(found.device) == "cuda:0" and found.target == made.target
    np.testing.assert_allclose(found["main"](Device("cuda").tensor(x)).numpy(), np.exp(x @ w.T), rtol=1e-5)
    # What only relayc's runtime does: to load kernels, and to copy parameters to a device.
    for name in found.function_names():
        with pytest.raises(ValueError, match=f"^{name}: expected relayc.load_module for a program of the device kind cuda, found a call"):
            tvm_ffi.load_module(str(path))[name](x)
    with pytest.raises(ValueError, match=r"expected a program of the host for an object, found one of the device kind cuda$"):
        made.export_library(tmp_path / "model.o")


def test_exported_programs_have_the_code_of_their_architectures(tmp_path):
    x = values((3, 5))
    path = tmp_path / "model.so"
    compile(program(chain, [x, x]), target=TARGET).export_library(path)
    module = relayc.load_module(path)
    assert list(Images.from_bytes(module._artifact.keep_alive._images).kernels) == [k.name for k in module.kernels]


def test_kernels_whose_threads_wait_for_each_other():
    x, w = values((3, 40)), values((40, 40), seed=1)
    with fake_cuda() as driver:
        module = compile(program(lambda a, b: [build("nn.softmax", build("nn.dense", a, b))], [x, Const(w)]), target=TARGET)
        for _ in range(2):
            found = module["main"](x)
    sums = np.exp(x @ w.T)
    np.testing.assert_allclose(found, sums / sums.sum(1, keepdims=True), rtol=1e-4)
    assert {one.block[0] for one in driver.launches} != {1}
