"""Numerics of the sliding window schedule: depthwise convolutions and poolings over awkward maps, against numpy."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from accuracy import check_sums
from oracle import values
from tekernels import Program

from relayc import te
from relayc.dialects.mlir import arith, ir
from relayc.dialects.relay import IRModule, TensorType
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile_kernel import compile_kernel
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import affine_map, dim, empty, fill, generic, parallel
from relayc.pipelines.te.rules.window import pad


def windows(x: np.ndarray, taps: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> np.ndarray:
    """[..., outputs..., taps...] of a padded array that windows slide over along its last dimensions."""
    n = len(taps)
    reach = [(k - 1) * d + 1 for k, d in zip(taps, dilations, strict=True)]
    found = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(-n, 0)))
    lead = (slice(None),) * (x.ndim - n)
    return found[(*lead, *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations))]


class Case:
    """A windowed reduction of [1, channels, spatial...] with weights [channels, taps...]."""

    def __init__(self, channels: int, size: Sequence[int], taps: Sequence[int], strides=1, dilations=1, pads=0, dtype: str = "float32"):
        n = len(size)
        self.taps, self.dtype, self.channels = tuple(taps), dtype, channels
        self.strides, self.dilations = (v if isinstance(v, tuple) else (v,) * n for v in (strides, dilations))
        self.pads = pads if isinstance(pads, tuple) else ((pads, pads),) * n
        self.x = values((1, channels, *size), dtype)
        self.w = values((channels, *taps), dtype, seed=1)
        self.reach = [(k - 1) * d for k, d in zip(self.taps, self.dilations, strict=True)]
        padded = [n + a + b for n, (a, b) in zip(size, self.pads, strict=True)]
        self.out = [(n - r - 1) // s + 1 for n, r, s in zip(padded, self.reach, self.strides, strict=True)]

    def found(self, x: ir.Value, w: ir.Value | None, outside: float, init: float, combine) -> ir.Value:
        low, high = zip((0, 0), (0, 0), *self.pads, strict=True)
        x = pad(x, low, high, outside, self.dtype)
        n = len(self.taps)
        place = [dim(2 + i) * s + dim(2 + n + i) * d for i, (s, d) in enumerate(zip(self.strides, self.dilations, strict=True))]
        loops, taps = 2 + 2 * n, [dim(2 + n + i) for i in range(n)]
        maps = [affine_map(loops, [dim(0), dim(1), *place]), affine_map(loops, [dim(1), *taps] if w is not None else taps)]
        second = w if w is not None else empty(TensorType(self.taps, self.dtype))
        out = fill(TensorType((1, self.channels, *self.out), self.dtype), init)
        kinds = ["parallel"] * (2 + n) + ["reduction"] * n
        return generic([x, second], maps, [out], [affine_map(loops, [dim(i) for i in range(2 + n)])], kinds, combine)[0]

    def convolution(self):
        def body(x: ir.Value, w: ir.Value) -> list[ir.Value]:
            add = lambda a, b, acc: scalar.add(acc, scalar.multiply(a, b, self.dtype), self.dtype)  # noqa: E731
            return [self.found(x, w, 0, 0, add)]

        padded = np.pad(self.x, [(0, 0), (0, 0), *self.pads])
        dims = "xyz"[: len(self.taps)]
        sums = f"ncxyz{dims},c{dims}->ncxyz".replace("xyz", "hij"[: len(self.taps)])
        wide = [v.astype(np.int64 if np.dtype(self.dtype).kind in "iu" else np.float64) for v in (self._windows(padded), self.w)]
        expected = np.einsum(sums, *wide).astype(self.w.dtype if wide[0].dtype == np.int64 else np.float64)
        return body, (self.x, self.w), expected, np.einsum(sums, *map(np.abs, wide)), self.w[0].size

    def pooling(self):
        lowest = -np.inf if self.dtype.startswith("float") else int(np.iinfo(self.dtype).min)

        def body(x: ir.Value) -> list[ir.Value]:
            return [self.found(x, None, lowest, lowest, lambda a, _, acc: scalar.maximum(acc, a, self.dtype))]

        padded = np.pad(self.x, [(0, 0), (0, 0), *self.pads], constant_values=lowest)
        return body, (self.x,), self._windows(padded).max(tuple(range(-len(self.taps), 0))), 0, 0

    def _windows(self, padded: np.ndarray) -> np.ndarray:
        return windows(padded, self.taps, self.strides, self.dilations)


def check(cases: Sequence[tuple], expect_window: bool = True, **options) -> None:
    program = Program(*[(body, arrays) for body, arrays, *_ in cases], **options)
    assert not expect_window or program.text.count("memref.alloca") >= len(cases), "another schedule took a case"
    for result, (_, arrays, expected, magnitude, terms) in zip(program.run(), cases, strict=True):
        check_sums(result, expected, magnitude, terms, f"inputs {[a.shape for a in arrays]}")


MAPS = [(4, 4), (5, 4), (7, 7), (9, 14), (14, 14), (13, 17), (1, 19), (31, 8), (28, 33), (70, 150)]


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("taps", [3, 5])
def test_maps_of_all_sizes(taps, stride):
    sizes = [s for s in MAPS if (s[1] - 1) // stride + 1 >= 4]
    cases = [Case(3, size, (taps, taps), stride, 1, taps // 2) for size in sizes]
    check([c.convolution() for c in cases] + [c.pooling() for c in cases])


def test_asymmetric_windows():
    cases = [
        Case(2, (11, 13), (1, 5), pads=((0, 0), (2, 2))),
        Case(2, (11, 13), (5, 2), pads=((2, 2), (0, 0))),
        Case(2, (11, 13), (4, 3), (2, 1), pads=((0, 3), (1, 0))),
        Case(2, (11, 40), (3, 3), (1, 2), pads=((0, 0), (5, 7))),
        Case(2, (12, 40), (3, 7), (3, 4), pads=((2, 1), (0, 3))),
        Case(2, (10, 21), (2, 3), 1, (2, 3), ((1, 2), (3, 0))),
        Case(2, (10, 21), (3, 3), 2, 2, 2),
        Case(2, (10, 21), (3, 2), (1, 3), (1, 2), ((9, 9), (9, 9))),
    ]
    check([c.convolution() for c in cases] + [c.pooling() for c in cases])


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "int32"])
def test_types(dtype):
    cases = [Case(3, size, (3, 3), stride, 1, 1, dtype) for size, stride in itertools.product([(7, 7), (9, 40), (66, 70)], [1, 2])]
    check([c.pooling() for c in cases])
    if dtype != "float16":  # which is summed in float32 by the compute rules
        check([c.convolution() for c in cases])


def test_lines():
    cases = [Case(5, (n,), (3,), s, 1, 1) for n in (9, 64, 301, 5000) for s in (1, 2)]
    check([c.convolution() for c in cases] + [c.pooling() for c in cases], expect_window=False)


def test_many_taps():
    """Windows too large to unroll."""
    check([Case(2, (20, 20), (7, 7), 1, 1, 3).convolution(), Case(2, (40, 40), (13, 13), 2, 1, 6).convolution()])


@pytest.mark.parametrize("size", [(7, 7), (20, 30)])
def test_what_follows_is_computed_in_the_same_kernel(size):
    """A bias of the channel, another tensor, and indices."""
    case = Case(3, size, (3, 3), 1, 1, 1)
    body, (x, w), expected, magnitude, terms = case.convolution()
    bias, other = values((3, 1, 1), seed=2), values((1, 3, *size), seed=3)

    def whole(x: ir.Value, w: ir.Value, bias: ir.Value, other: ir.Value) -> list[ir.Value]:
        sums = body(x, w)[0]
        return [
            parallel(
                TensorType((1, 3, *size), "float32"),
                [sums, bias, other],
                lambda s, b, o: scalar.add(scalar.add(s, b, "float32"), o, "float32"),
            )
        ]

    def by_column(x: ir.Value, w: ir.Value) -> list[ir.Value]:
        from relayc.dialects.mlir import linalg

        def element(s: ir.Value) -> ir.Value:
            i32 = scalar.te_element("int32")
            at = arith.IndexCastOp(i32, arith.AddIOp(linalg.IndexOp(2).result, linalg.IndexOp(3).result).result).result
            return scalar.multiply(s, scalar.convert(at, "int32", "float32"), "float32")

        return [parallel(TensorType((1, 3, *size), "float32"), [body(x, w)[0]], element)]

    where = np.add.outer(np.arange(size[0]), np.arange(size[1])).astype(np.float32)
    biased = (whole, (x, w, bias, other), expected + bias + other, magnitude + np.abs(bias) + np.abs(other), terms + 2)
    check([biased, (by_column, (x, w), expected * where, magnitude * where, terms + 1)])


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_vectors_of_every_width(mcpu):
    target = Target("cpu", mcpu=mcpu)
    if not target.is_host:
        pytest.skip(f"this machine lacks features of {mcpu}")
    cases = [Case(3, size, (3, 3), stride, 1, 1) for size, stride in itertools.product([(7, 7), (14, 14), (17, 60)], [1, 2])]
    check([c.convolution() for c in cases], target=target)


def test_runs_give_the_same_bits_with_any_number_of_threads():
    """Also where tasks overlap."""
    case = Case(70, (100, 113), (3, 3), 1, 1, 1)
    body, arrays, *_ = case.convolution()
    program = Program((body, arrays))
    first = program.run_with_threads(1)[0]
    for threads in (2, 1, 2, 3):
        np.testing.assert_array_equal(first, program.run_with_threads(threads)[0])


LINES = """func.func @k(%x: tensor<1x4x6x5xf32>, %b: tensor<24xf32>) -> tensor<24x5xf32> {
  %low = arith.constant 0xFF800000 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %low : f32
  } : tensor<1x4x6x5xf32> to tensor<1x4x8x7xf32>
  %image = tensor.empty() : tensor<1x4x6x5xf32>
  %start = linalg.fill ins(%low : f32) outs(%image : tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
  %taps = tensor.empty() : tensor<3x3xf32>
  %max = linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %taps : tensor<1x4x8x7xf32>, tensor<3x3xf32>) outs(%start : tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
  %lines = tensor.collapse_shape %max [[0, 1, 2], [3]] : tensor<1x4x6x5xf32> into tensor<24x5xf32>
  %empty = tensor.empty() : tensor<24x5xf32>
  %0 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]
  } ins(%lines, %b : tensor<24x5xf32>, tensor<24xf32>) outs(%empty : tensor<24x5xf32>) {
  ^bb0(%e: f32, %of_line: f32, %_: f32):
    %sum = arith.addf %e, %of_line : f32
    linalg.yield %sum : f32
  } -> tensor<24x5xf32>
  return %0 : tensor<24x5xf32>
}"""


def test_results_that_go_along_rows_are_left_to_other_schedules():
    """The columns of the window are rows of the result."""
    x = te.placeholder((9, 42), name="x")
    k = te.reduce_axis((0, 3), name="k")
    kernel = compile_kernel(te.create_prim_func([x, te.compute((40, 9), lambda j, i: te.sum(x[i, j + k], axis=k))]), target=Target("cpu"))
    assert kernel.info.schedule.split()[0] == "loops"
    a = values((9, 42))
    expected = windows(a, (3,), (1,), (1,)).sum(-1).T
    np.testing.assert_allclose(kernel(a), expected, rtol=1e-5, atol=1e-5)


def test_narrow_maps_that_are_seen_as_lines():
    """What follows is computed line by line, as each has a number of its own."""
    kernel = compile_kernel(LINES, target=Target("cpu", num_threads=2))
    assert kernel.info.schedule.split()[0] == "window_columns"
    x, b = values((1, 4, 6, 5)), values((24,), seed=1)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    expected = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).max((4, 5)).reshape(24, 5) + b[:, None]
    np.testing.assert_array_equal(kernel(x, b), expected)


def test_windows_over_single_bits_are_left_to_other_schedules():
    """The bits are computed in the kernel, and only there."""
    every = ", ".join(["affine_map<(a, b, c) -> (a, b, c)>"] * 2)
    of_window = "affine_map<(a, b, c, i) -> (a, b, c + i)>, affine_map<(a, b, c, i) -> (i)>, affine_map<(a, b, c, i) -> (a, b, c)>"
    text = f"""
func.func @main(%x: tensor<1x2x40xf32>) -> tensor<1x2x38xf32> {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x40xi1>
  %m = linalg.generic {{indexing_maps = [{every}], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%x : tensor<1x2x40xf32>) outs(%e : tensor<1x2x40xi1>) {{
  ^bb0(%a: f32, %o: i1):
    %c = arith.cmpf ogt, %a, %z : f32
    linalg.yield %c : i1
  }} -> tensor<1x2x40xi1>
  %s = tensor.empty() : tensor<1x2x38xf32>
  %w = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%z : f32) outs(%s : tensor<1x2x38xf32>) -> tensor<1x2x38xf32>
  %r = linalg.generic {{indexing_maps = [{of_window}], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%m, %w : tensor<1x2x40xi1>, tensor<3xf32>) outs(%f : tensor<1x2x38xf32>) {{
  ^bb0(%a: i1, %u: f32, %o: f32):
    %v = arith.uitofp %a : i1 to f32
    %t = arith.addf %o, %v : f32
    linalg.yield %t : f32
  }} -> tensor<1x2x38xf32>
  return %r : tensor<1x2x38xf32>
}}"""
    x = values((1, 2, 40), "float32")
    found = compile_kernel(IRModule.parse(text))(x)
    np.testing.assert_array_equal(found, np.lib.stride_tricks.sliding_window_view(x > 0, 3, 2).sum(-1))
