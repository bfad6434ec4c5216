"""What the CUDA runtime does in the order of streams, over a FakeDriver: recordings, copies of arrays, and the memory of tensors."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tvm_ffi
from cuda_programs import TARGET, Producer, on_stream, two_kernels, unfused, wait
from fake_cuda import fake_cuda
from oracle import values
from support import Const, program
from symbolic_ops import symbolic_program, tensor

from relayc.dialects.relay import build
from relayc.pipelines.driver.compile import compile
from relayc.runtime import device_function
from relayc.runtime.device import Device, DeviceMemoryError, device_kind
from relayc.runtime.device_function import MOST_COPIED_BYTES, MOST_SIZES_COUNTED
from relayc.symbolic import Range


def _rows(n: str = "n"):
    """A program of two kernels on n rows, and a check of calls of it, which gives the kernels that were captured so far."""
    return unfused(symbolic_program(two_kernels, [tensor(f"float32[{n}, 8]")], {n: Range(1)}))


def _call(module, rows, seed=0):
    array = values((rows, 8), seed=rows + seed)
    np.testing.assert_allclose(module["main"](array), np.exp(array) * array, rtol=1e-5)


def test_the_third_call_of_a_size_is_recorded_and_later_ones_replay_it(driver):
    module = _rows()
    kernels = len(module.kernels)
    for rows, captured in ((3, 0), (5, 0), (3, 0), (3, 1), (5, 1), (3, 1), (5, 2), (5, 2), (7, 2)):
        _call(module, rows)
        assert driver.captured == captured * kernels
    assert len(driver.launches) == 9 * kernels
    module.records = False
    _call(module, 3)
    assert driver.captured == 2 * kernels and not module.records and not driver._graphs


def test_a_recording_is_of_one_stream(driver):
    x = values((4, 4))
    module = compile(program(lambda a: [build("exp", a)], [x]), target=TARGET)
    given = Device("cuda").tensor(x)
    for stream, captured in ((4, 1), (5, 2)):
        for _ in range(3):
            with on_stream(stream):
                np.testing.assert_allclose(module["main"](given).numpy(), np.exp(x), rtol=1e-6)
        assert driver.captured == captured


def test_sizes_that_grow_with_each_call_are_never_recorded(driver):
    module = _rows()
    for generation in range(4):
        for rows in range(1, MOST_SIZES_COUNTED + 2):
            _call(module, rows, seed=100 * generation)
    assert not driver.captured
    for _ in range(3):
        for rows in range(1, MOST_SIZES_COUNTED + 1):
            _call(module, rows)
    assert driver.captured == MOST_SIZES_COUNTED * len(module.kernels)


def test_calls_that_copy_much_are_not_recorded(driver):
    x, row = values((MOST_COPIED_BYTES // 4,)), np.arange(3, dtype=np.int64)
    for length, captured in ((x.size - 9, True), (x.size - 8, False)):  # besides 36 bytes of places and the result
        body = lambda a, b: [build("take", a, b, axis=0)]  # noqa: E731 (an argument, not a definition)
        before = driver.captured
        main = compile(program(body, [x[:length], row]), target=TARGET)["main"]
        for _ in range(4):
            np.testing.assert_array_equal(main(x[:length], row), x[:3])
        assert (driver.captured > before) == captured


def test_no_more_than_so_many_recordings_are_held(driver, monkeypatch):
    monkeypatch.setattr(device_function, "MOST_RECORDINGS", 2)
    module = _rows()
    for rows in (1, 2, 3, 4):
        for _ in range(3):
            _call(module, rows)
    kernels, taken = len(module.kernels), driver.captured
    assert taken == 4 * kernels and len(driver._graphs) == 2
    for rows in (4, 3) * 3:
        _call(module, rows)
    assert driver.captured == taken  # the two that were used last are there
    _call(module, 1)
    assert driver.captured == taken


def test_recordings_follow_parameters(driver):
    x, w = values((2, 4)), values((2, 4), seed=1)
    module = compile(program(lambda a, b: [build("add", a, b)], [x, Const(w)]), target=TARGET)
    for _ in range(3):
        np.testing.assert_allclose(module["main"](x), x + w)
    (name,) = module.params
    module.load_params({name: w * 2})
    for _ in range(3):
        np.testing.assert_allclose(module["main"](x), x + 2 * w)
    assert len(driver._graphs) == 1  # those of other parameters are gone


@pytest.mark.parametrize("calls", [1, 4], ids=["run", "replayed"])
def test_a_call_waits_once_whatever_its_arrays(driver, calls):
    x, y, z = (values((3, 5), seed=i) for i in range(3))
    made = program(lambda a, b, c: [build("add", a, b), build("multiply", b, c), build("subtract", a, c)], [x, y, z])
    main = compile(made, target=TARGET)["main"]
    main(x, y, z)  # parameters are on the device from now on
    for _ in range(calls):
        waits = driver.waits
        found = main(x, y, z)
        assert driver.waits == waits + 1
        out = [np.empty_like(x) for _ in range(3)]
        main(x, y, z, out=out)
        assert driver.waits == waits + 2
        for one in (found, out):
            for array, expected in zip(one, (x + y, y * z, x - z), strict=True):
                np.testing.assert_allclose(array, expected, rtol=1e-6)


@pytest.mark.parametrize("records", [True, False])
def test_arrays_may_change_when_a_call_returns(driver, records):
    x = values((3, 5))
    module = compile(program(lambda a, b: [build("add", a, b)], [x, x]), target=TARGET)
    module.records = records
    given, y = Device("cuda").tensor(x), values((3, 5), seed=1)
    for _ in range(4):
        array = y.copy()
        found = module["main"](given, array)
        array.fill(0)
        np.testing.assert_allclose(found.numpy(), x + y, rtol=1e-6)


# ---- memory


def read(driver, address, num_bytes, stream):
    """Lets a stream read memory, as a framework does; gives what will have the bytes."""
    found = np.zeros(num_bytes, np.uint8)
    driver.push(driver.context(0))
    driver.copy_out(found.ctypes.data, address, num_bytes, stream)
    driver.pop()
    return found


@pytest.mark.parametrize(("made_on", "read_on"), [(0, 5), (4, 5), (4, 4), (4, 0)])
def test_memory_is_freed_after_its_use_on_another_stream(driver, made_on, read_on):
    x = values((4, 4))
    module = compile(program(lambda a: [build("exp", a)], [x]), target=TARGET)
    with on_stream(made_on):
        result = module["main"](Device("cuda").tensor(x))
    held = tvm_ffi.from_dlpack(result.__dlpack__(stream=read_on or 1))
    del result
    found = read(driver, held.data_ptr(), x.nbytes, read_on)
    del held
    # The framework's stream is not done, but all other streams that anybody waits for.
    wait(driver, made_on, driver.release_stream(0))
    wait(driver, read_on)
    np.testing.assert_allclose(found.view(np.float32).reshape(4, 4), np.exp(x), rtol=1e-6)
    taken = driver.allocated[0]
    assert not driver.misused and taken < 1 << 20


def test_memory_is_freed_after_a_call_on_another_stream(driver):
    x = values((4, 4))
    module = compile(program(lambda a: [build("exp", a)], [x]), target=TARGET)
    given = Device("cuda").tensor(x)
    with on_stream(4):
        found = module["main"](given)
    del given
    wait(driver, 0)
    with on_stream(4):
        np.testing.assert_allclose(found.numpy(), np.exp(x), rtol=1e-6)
    given = Device("cuda").tensor(x).data  # without DLPack
    with on_stream(5):
        found = module["main"](given)
    del given
    wait(driver, 0)
    with on_stream(5):
        np.testing.assert_allclose(found.numpy(), np.exp(x), rtol=1e-6)


def test_memory_of_a_stream_that_was_destroyed_is_freed_without_its_handle(driver):
    x = values((4, 4))
    module = compile(program(lambda a: [build("exp", a)], [x]), target=TARGET)
    stream, given = driver.make_stream(), Device("cuda").tensor(x)
    with on_stream(stream):
        result = module["main"](given)
    before = driver.allocated[0]
    driver.push(driver.context(0))
    driver.destroy_stream(stream)
    driver.pop()
    del result, given
    assert driver.allocated[0] == before - 2 * x.nbytes and not driver.misused


class Framework(Producer):
    """A tensor of a framework that works on a stream of its own."""

    __module__ = "cupy"


def test_a_framework_waits_for_calls_that_read_its_tensors(driver, monkeypatch):
    x = values((4, 4))
    module = compile(program(lambda a, b: [build("add", a, b)], [x, x]), target=TARGET)
    cupy = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda index: SimpleNamespace(ptr=7)))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    source = Device("cuda").tensor(x)
    kind, launches = device_kind("cuda"), len(driver.launches)
    monkeypatch.setattr(kind, "stream_of", lambda index, values: 9)
    found = module["main"](Framework(source.data), source)
    wait(driver, 7)
    assert len(driver.launches) == launches + 1  # by stream 9, for which nobody has waited
    with on_stream(9):
        np.testing.assert_allclose(found.numpy(), x + x, rtol=1e-6)


def test_the_pool_is_trimmed_when_memory_runs_out():
    with fake_cuda(memory_bytes=1 << 12) as driver:
        held = Device("cuda").empty((3000,), "uint8")
        del held
        Device("cuda").empty((3000,), "uint8")  # from the pool
        assert driver.trims == 0
        held = Device("cuda").empty((3600,), "uint8")
        assert driver.trims == 1
        expected = r"cuda:0: expected 800 bytes for a tensor float32\[10, 20\], found 496 free of 4096 \(.*CUDA_ERROR_OUT_OF_MEMORY\)"
        with pytest.raises(DeviceMemoryError, match=expected):
            Device("cuda").empty((10, 20))
        assert driver.trims == 2 and held.shape == (3600,)
