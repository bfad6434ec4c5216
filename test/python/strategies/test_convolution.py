"""Numerics of convolutions with packed and unpacked weights, in plain and blocked layouts, against exact sums with rigorous bounds."""

import numpy as np
import pytest
from accuracy import bound_of
from contractions import Case, check, convolution, convolve
from oracle import values
from support import Const, program

from relayc.dialects.relay import build
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.driver.compile_kernel import compile_kernel

PLANES = {
    "one pixel": [((1, 5, 1, 1), (7, 5, 1, 1), {}), ((1, 16, 3, 3), (8, 16, 3, 3), {})],
    "pointwise": [
        ((1, 13, 7, 11), (17, 13, 1, 1), {}),
        ((2, 64, 14, 14), (32, 64, 1, 1), {}),
        ((1, 32, 1, 37), (5, 32, 1, 1), {}),
        ((1, 19, 13, 9), (23, 19, 1, 1), {"strides": (2, 3)}),
        ((1, 8, 9, 9), (16, 8, 1, 1), {"pads": (1, 0, 2, 1)}),
    ],
    "primes": [((1, 3, 17, 23), (7, 3, 3, 3), {"pads": (1, 1, 1, 1)}), ((2, 11, 13, 7), (13, 11, 5, 3), {"pads": (2, 1, 2, 1)})],
    "powers of two": [((1, 16, 16, 16), (32, 16, 3, 3), {"pads": (1, 1, 1, 1)}), ((1, 64, 8, 8), (64, 64, 3, 3), {"pads": (1, 1, 1, 1)})],
    "first layers": [
        ((1, 3, 33, 35), (32, 3, 7, 7), {"strides": (2, 2), "pads": (3, 3, 3, 3)}),
        ((1, 3, 32, 32), (16, 3, 4, 4), {"strides": (4, 4)}),
        ((1, 1, 29, 30), (6, 1, 5, 5), {}),
    ],
    "large strides": [
        ((1, 5, 31, 29), (9, 5, 3, 3), {"strides": (5, 7)}),
        ((1, 8, 40, 40), (16, 8, 2, 3), {"strides": (8, 3), "pads": (0, 1, 0, 1)}),
    ],
    "dilation": [
        ((1, 7, 19, 21), (8, 7, 3, 3), {"dilation": (2, 3), "pads": (2, 3, 2, 3)}),
        ((1, 16, 15, 15), (16, 16, 3, 3), {"dilation": (4, 4), "pads": (4, 4, 4, 4), "strides": (2, 2)}),
        ((1, 4, 9, 9), (8, 4, 3, 3), {"dilation": (3, 1), "pads": (0, 2, 5, 0)}),
    ],
    "asymmetric padding": [
        ((1, 6, 9, 10), (11, 6, 3, 3), {"pads": (0, 2, 1, 0)}),
        ((1, 16, 8, 8), (16, 16, 2, 2), {"pads": (0, 0, 1, 1)}),
        ((1, 3, 7, 7), (8, 3, 4, 4), {"pads": (3, 0, 0, 3), "strides": (1, 2)}),
    ],
    "grouped": [
        ((1, 12, 9, 10), (20, 3, 3, 3), {"groups": 4, "pads": (1, 1, 1, 1)}),
        ((1, 32, 7, 7), (32, 8, 3, 3), {"groups": 4, "strides": (2, 2), "pads": (1, 1, 1, 1)}),
        ((2, 64, 5, 5), (32, 32, 1, 1), {"groups": 2}),
    ],
    "depthwise": [
        ((1, 13, 9, 11), (13, 1, 3, 3), {"groups": 13, "pads": (1, 1, 1, 1)}),
        ((1, 16, 14, 14), (16, 1, 5, 5), {"groups": 16, "strides": (2, 2), "pads": (2, 2, 2, 2)}),
        ((1, 6, 9, 10), (18, 1, 3, 5), {"groups": 6, "dilation": (1, 2)}),
    ],
    "whole maps": [((3, 8, 6, 5), (10, 8, 6, 5), {}), ((1, 64, 7, 7), (37, 64, 7, 7), {})],
    "many channels": [((1, 256, 4, 4), (67, 256, 1, 1), {}), ((1, 70, 7, 7), (130, 70, 3, 3), {"pads": (1, 1, 1, 1)})],
}

LINES_AND_VOLUMES = [
    ((1, 4, 33), (6, 4, 5), {"strides": (2,), "pads": (2, 1)}),
    ((1, 80, 50), (64, 80, 3), {"pads": (1, 1)}),
    ((2, 6, 20), (9, 2, 3), {"groups": 3, "dilation": (4,)}),
    ((1, 1, 400), (16, 1, 10), {"strides": (5,)}),
    ((1, 17, 1), (5, 17, 1), {}),
    ((1, 3, 6, 7, 8), (4, 3, 3, 2, 3), {"strides": (2, 1, 1), "pads": (1, 0, 1, 1, 1, 1)}),
    ((1, 4, 5, 5, 6), (6, 2, 3, 3, 1), {"groups": 2, "dilation": (2, 1, 1)}),
    ((1, 16, 4, 9, 9), (32, 16, 1, 3, 3), {"pads": (0, 1, 1, 0, 1, 1)}),
    ((1, 3, 4, 16, 16), (24, 3, 2, 8, 8), {"strides": (2, 8, 8)}),
]


@pytest.mark.parametrize("case", PLANES)
def test_planes(case):
    check([convolution(x, w, constant=c, **attrs) for x, w, attrs in PLANES[case] for c in (True, False)])


def test_lines_and_volumes():
    check([convolution(x, w, constant=c, **attrs) for x, w, attrs in LINES_AND_VOLUMES for c in (True, False)])


def test_one_pixel_with_a_border_by_weights_beyond_the_cache():
    """There is no loop over rows, and panels are asked for ahead."""
    check([convolution((1, 384, 1, 1), (384, 384, 3, 3), pads=(1, 1, 1, 1))])


@pytest.mark.parametrize(
    ("dtype", "out_dtype"), [("float64", ""), ("float16", ""), ("bfloat16", ""), ("int8", "int32"), ("uint8", "int32"), ("int32", "")]
)
def test_types(dtype, out_dtype):
    cases = [
        PLANES["pointwise"][0],
        PLANES["primes"][0],
        PLANES["powers of two"][0],
        PLANES["asymmetric padding"][0],
        PLANES["grouped"][0],
        PLANES["depthwise"][0],
        LINES_AND_VOLUMES[0],
    ]
    found = [(case, i % 2 == 0) for i, case in enumerate(cases)]
    check([convolution(x, w, constant=c, dtype=dtype, out_dtype=out_dtype, **attrs) for (x, w, attrs), c in found])


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_every_level_of_the_instruction_set(mcpu):
    target = Target("cpu", mcpu=mcpu)
    if not target.is_host:
        pytest.skip(f"this machine lacks features of {mcpu}")
    check(
        [convolution(x, w, **attrs) for name in ("pointwise", "primes", "first layers", "dilation") for x, w, attrs in PLANES[name]],
        target=target,
    )


def test_tiles_of_wide_vectors():
    """Tiles for 64-byte vectors and 32 registers; where the machine has none, LLVM splits them."""
    target = Target("cpu", vector_bytes=64, num_vector_registers=32)
    check([convolution(x, w, **attrs) for cases in PLANES.values() for x, w, attrs in cases[:2]], target=target)


# ---- blocked layouts


def blocked(x: np.ndarray, block: int) -> np.ndarray:
    """[n, channels, spatial...] -> [n, channels / block, spatial..., block]."""
    return np.moveaxis(x.reshape(x.shape[0], -1, block, *x.shape[2:]), 2, -1)


def blocked_convolution(x_shape, w_shape, block, out_block, *, constant=True, strides=(1, 1), dilation=(1, 1), pads=(0,) * 4, groups=1):
    """nn.conv2d of data in NCHW{block}c to NCHW{out_block}c."""
    x, w = values(x_shape), values(w_shape, seed=1)
    geometry = (strides, dilation, pads, groups)
    expected, magnitude = (convolve(f(x.astype(float)), f(w.astype(float)), *geometry) for f in (np.asarray, np.abs))
    bound = bound_of(int(np.prod(w_shape[1:])), expected, magnitude, "float32")
    attrs = {"strides": strides, "dilation": dilation, "padding": pads, "groups": groups}
    layouts = {"data_layout": f"NCHW{block}c", "out_layout": f"NCHW{out_block}c"}
    arrays = [np.ascontiguousarray(blocked(x, block)), Const(w) if constant else w]
    form = f"{x_shape} by {w_shape} {attrs} {layouts}"
    body = lambda x, w: build("nn.conv2d", x, w, **attrs, **layouts)  # noqa: E731 (an argument, not a definition)
    return Case(form, body, arrays, blocked(expected, out_block), blocked(bound, out_block))


BLOCKED = [
    ((1, 16, 9, 7), (32, 16, 3, 3), 8, 8, {"pads": (1, 1, 1, 1)}),
    ((1, 16, 9, 7), (32, 16, 3, 3), 8, 16, {"pads": (1, 1, 1, 1), "strides": (2, 2)}),
    ((1, 64, 7, 7), (48, 64, 1, 1), 16, 16, {}),
    ((2, 32, 5, 13), (16, 32, 1, 1), 16, 8, {"strides": (2, 2)}),
    ((1, 16, 11, 12), (16, 16, 3, 3), 8, 8, {"dilation": (2, 3), "pads": (0, 3, 2, 1)}),
    ((1, 16, 14, 15), (16, 1, 3, 3), 8, 8, {"groups": 16, "pads": (1, 1, 1, 1)}),
    ((1, 16, 14, 15), (16, 1, 5, 5), 16, 16, {"groups": 16, "strides": (2, 2), "pads": (2, 2, 2, 2)}),
    ((1, 32, 8, 9), (16, 16, 3, 3), 16, 8, {"groups": 2}),
    ((1, 8, 1, 1), (8, 8, 1, 1), 8, 8, {}),
]


@pytest.mark.parametrize("constant", [True, False])
def test_blocked_channels(constant):
    check([blocked_convolution(*case[:4], constant=constant, **case[4]) for case in BLOCKED])


@pytest.mark.parametrize("transpose", [False, True])
def test_blocks_that_the_layout_pass_chooses(transpose):
    """Chains through AlterOpLayout give what they give without it; channel counts that are no multiple of a block, too."""
    rng = np.random.default_rng(0)
    cases = []
    for channels, middle, filters, stride in [(3, 32, 64, 1), (16, 48, 32, 2), (24, 40, 17, 1), (64, 33, 64, 1)]:
        x = rng.standard_normal((1, channels, 19, 21)).astype(np.float32)
        first = (rng.standard_normal((middle, channels, 3, 3)) / np.sqrt(9 * channels)).astype(np.float32)
        second = (rng.standard_normal((filters, middle, 3, 3)) / np.sqrt(9 * middle)).astype(np.float32)
        cases.append((x, first, second, stride))

    def body(*arguments):
        found = []
        for i, (*_, stride) in enumerate(cases):
            x, first, second = arguments[3 * i : 3 * i + 3]
            x = build("nn.relu", build("nn.conv2d", x, first, padding=(1,) * 4, strides=(stride,) * 2))
            if transpose:
                weight = build("transpose", second, axes=(1, 0, 2, 3))
                found.append(build("nn.conv2d_transpose", x, weight, padding=(1,) * 4, strides=(2, 2)))
            else:
                found.append(build("nn.conv2d", x, second, padding=(0, 1, 2, 1)))
        return found

    arrays = [a for x, first, second, _ in cases for a in (x, Const(first), Const(second))]
    inputs = [x for x, *_ in cases]
    with PassContext(3, required_pass=["AlterOpLayout"], disabled_pass=["Winograd"]):
        found = compile(program(body, arrays))["main"](*inputs)
    with PassContext(0):
        expected = compile(program(body, arrays))["main"](*inputs)
    # Sums of up to 600 products of order 1/sqrt(600) in two orders, after one another.
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


DIAGONALS = """func.func @k(%x: tensor<20x8xf32>, %w: tensor<3x8x24xf32>) -> tensor<9x10x24xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[1, 0] high[1, 0] {
  ^bb0(%a: index, %b: index):
    tensor.yield %zero : f32
  } : tensor<20x8xf32> to tensor<22x8xf32>
  %empty = tensor.empty() : tensor<9x10x24xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<9x10x24xf32>) -> tensor<9x10x24xf32>
  %0 = linalg.generic {
      indexing_maps = [affine_map<(i, j, f, k, c) -> (i + j + k, c)>, affine_map<(i, j, f, k, c) -> (k, c, f)>,
                       affine_map<(i, j, f, k, c) -> (i, j, f)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]
  } ins(%padded, %w : tensor<22x8xf32>, tensor<3x8x24xf32>) outs(%start : tensor<9x10x24xf32>) {
  ^bb0(%e: f32, %v: f32, %before: f32):
    %product = arith.mulf %e, %v : f32
    %sum = arith.addf %before, %product : f32
    linalg.yield %sum : f32
  } -> tensor<9x10x24xf32>
  return %0 : tensor<9x10x24xf32>
}"""


def test_a_padding_that_depends_on_two_loops_over_rows_is_left_to_other_schedules():
    kernel = compile_kernel(DIAGONALS, target=Target("cpu", num_threads=2))
    assert kernel.info.schedule.split()[0] == "loops"
    x, w = values((20, 8)), values((3, 8, 24), seed=1)
    rows = np.lib.stride_tricks.sliding_window_view(np.pad(x.astype(np.float64), [(1, 1), (0, 0)]), 3, 0)[:18]
    lines = np.einsum("pck,kcf->pf", rows, w)
    expected = np.stack([lines[i : i + 10] for i in range(9)])
    np.testing.assert_allclose(kernel(x, w), expected, rtol=0, atol=1e-5)
