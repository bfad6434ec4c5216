"""Tensor maps that the host makes: what the driver is told, and that kernels get them by value."""

from dataclasses import replace

import numpy as np
import pytest
from fake_cuda import fake_cuda
from gpu_kernels import strategy
from support import program

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import build
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.cuda.driver_calls import data_type
from relayc.pipelines.tir.gpu.launch import launch
from relayc.pipelines.tir.gpu.tensor_maps import TensorMap, Window
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function

ROWS, COLUMNS = 6, 32


def map_of_the_argument(kernel, target, tuning):
    """Writes the first bytes of the map of rows 1 and after of the kernel's argument where its result goes."""
    with kernel_function(kernel) as body:
        (source,), (output,) = (body.evaluator.buffers[a] for a in kernel.args), body.outputs
        numbers = [emit.index_constant(n) for n in (COLUMNS, COLUMNS, ROWS - 1, COLUMNS)]
        made = TensorMap(ir.F16Type.get(), source, numbers[0], numbers[1:3], numbers[3:], (16, 4), 32).emit()
        with launch([1], 1):
            for i in range(64):
                at = emit.index_constant(i)
                byte = emit.create("memref.load", [ir.IntegerType.get_signless(8)], [made, at])
                number = emit.create("arith.uitofp", [ir.F16Type.get()], [byte])
                emit.create("memref.store", [], [number, output, at])
    return Scheduled(body.function)


def main(x):
    return [build("exp", x)]


def test_the_driver_is_told_of_the_tensor_and_kernels_get_the_map():
    x = np.ones((ROWS, COLUMNS), np.float16)
    with fake_cuda(capability=(9, 0)) as driver, strategy(map_of_the_argument):
        found = compile(program(main, [x]), target=Target("cuda", arch="sm_90a"))["main"](x)
        (told,) = driver.maps
        kind, rank, address, *rest = told
        # CU_TENSOR_MAP_DATA_TYPE_FLOAT16; interleave, SWIZZLE_32B, L2_PROMOTION_L2_128B, fill with zeros; sizes, stride, box, steps.
        assert (kind, rank, rest) == (6, 2, [0, 1, 2, 0, COLUMNS, ROWS - 1, 2 * COLUMNS, 16, 4, 1, 1])
        assert address % 16 == 0
        # The tensor begins at its second row.
        words = found.reshape(-1)[:64].astype(np.uint8).view(np.uint64)
        assert words.tolist() == told[:8]


def map_of_pixels(kernel, target, tuning):
    """Makes a map of the kernel's argument, whose first element is then its result's."""
    with kernel_function(kernel) as body:
        (source,), (output,) = (body.evaluator.buffers[a] for a in kernel.args), body.outputs
        numbers = [emit.index_constant(n) for n in (0, 8, 5, 4, 2, 8, 40, 160)]
        window = Window((-1, 0), (1, -2), (2, 1))
        made = TensorMap(ir.F16Type.get(), source, numbers[0], numbers[1:5], numbers[5:], (8, 16), 0, window).emit()
        with launch([1], 1):
            at = emit.index_constant(0)
            byte = emit.create("memref.load", [ir.IntegerType.get_signless(8)], [made, at])
            emit.create("memref.store", [], [emit.create("arith.uitofp", [ir.F16Type.get()], [byte]), output, at])
    return Scheduled(body.function)


def test_the_driver_is_told_of_windows_of_pixels():
    x = np.ones((2, 4, 5, 8), np.float16)
    with fake_cuda(capability=(9, 0)) as driver, strategy(map_of_pixels):
        compile(program(main, [x]), target=Target("cuda", arch="sm_90a"))["main"](x)
        (told,) = driver.maps
    kind, rank, _, *rest = told
    # No interleave, no swizzle; sizes, strides in bytes, both corners, channels and pixels, steps: all innermost first.
    assert (kind, rank, rest[:4]) == (6, 4, [0, 0, 2, 0])
    assert rest[4:] == [8, 5, 4, 2, 16, 80, 320, -1, 0, 1, -2, 8, 16, 1, 2, 1, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"box": (16, 257)}, "box: expected 1 to 256, found 257"),
        ({"box": (16, 0)}, "box: expected 1 to 256, found 0"),
        ({"box": (32, 4)}, "found a swizzle of 32 and lines of 64 bytes"),
        ({"box": (12, 4)}, "lines of a multiple of 16 bytes that fit, found a swizzle of 32 and lines of 24 bytes"),
        ({"swizzle": 48}, "expected a swizzle of 0, 32, 64, 128 bytes"),
        ({"sizes": 6 * (None,)}, "dimensions: expected 1 to 5, found 6"),
        ({"window": Window((-129, 0), (0, 0), (1, 1))}, "dimensions: expected 3 to 5, found 2"),
        ({"window": Window((-129, 0), (0, 0), (1, 1)), "sizes": 4 * (None,)}, "corner: expected -128 to 127, found -129"),
        ({"window": Window((0, 0), (0, 0), (9, 1)), "sizes": 4 * (None,)}, "step: expected 1 to 8, found 9"),
        (
            {"window": Window((0, 0), (0, 0), (1, 1)), "sizes": 4 * (None,), "box": (16, 1025)},
            "pixels of a copy: expected 1 to 1024, found 1025",
        ),
    ],
)
def test_maps_beyond_the_limits_of_the_driver_are_errors(changes, message):
    with make_context():
        found = TensorMap(ir.F16Type.get(), None, None, (None, None), (None,), (16, 4), 32)
        with pytest.raises(ValueError, match=f"tensor map: .*{message}"):
            replace(found, **changes).emit()


@pytest.mark.parametrize(
    "changes",
    [
        {},  # a line fills the swizzle
        {"box": (16, 256)},
        {"box": (16, 1)},
        {"box": (256, 1), "swizzle": 0},
        {"box": (16,), "sizes": (None,)},
        {"box": (16, 1, 1, 1, 1), "sizes": 5 * (None,)},
        *({"window": Window((corner, 0), (0, corner), (1, 8)), "sizes": 4 * (None,)} for corner in (-128, 127)),
        {"window": Window((0,), (0,), (8,)), "sizes": 3 * (None,), "box": (16, 1024)},
        {"window": Window((0, 0, 0), (0, 0, 0), (1, 1, 1)), "sizes": 5 * (None,), "box": (16, 1)},
    ],
)
def test_maps_at_the_limits_of_the_driver_are_made(changes):
    with make_context():
        replace(TensorMap(ir.F16Type.get(), None, None, (None, None), (None,), (16, 4), 32), **changes)._check()


def test_the_emulation_takes_lines_of_128_bytes_alone():
    x = np.ones((ROWS, COLUMNS), np.float16)
    with strategy(map_of_the_argument), pytest.raises(ValueError, match="tensor map on the CPU: expected a swizzle of 128 bytes, found 32"):
        compile(program(main, [x]), target=Target("cuda", arch="sm_90a", emulate=True))


def test_a_map_that_the_driver_refuses_is_an_error():
    x = np.ones((ROWS, COLUMNS), np.float16)
    with fake_cuda(capability=(9, 0)) as driver, strategy(map_of_the_argument):
        module = compile(program(main, [x]), target=Target("cuda", arch="sm_90a"))
        driver.fails["cuTensorMapEncodeTiled"] = 1
        with pytest.raises(RuntimeError, match="making a tensor map: the driver says CUDA_ERROR_INVALID_VALUE"):
            module["main"](x)


def test_elements_that_the_driver_has():
    with make_context():
        assert [data_type(ir.Type.parse(name)) for name in ("f16", "bf16", "f32", "i8")] == [6, 9, 7, 0]  # CUtensorMapDataType
        with pytest.raises(ValueError, match=r"target cuda: tensor map: expected elements of .*, found i1$"):
            data_type(ir.Type.parse("i1"))
