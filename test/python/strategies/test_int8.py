"""Contractions of 8-bit integers by each set of instructions, against numpy bit for bit: numbers of the whole range, sizes around tiles of
rows, blocks of columns and groups along the reduction. What this machine lacks is emulated."""

import itertools
import re
from collections.abc import Sequence

import numpy as np
import pytest
from contractions import Case, check, convolve
from support import Const, program

from relayc import Program, TensorType
from relayc.dialects.relay import build
from relayc.dialects.relay.errors import RelayError
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.driver.compile_kernel import compile_kernel

TARGETS = {
    "vnni": ("x86-64-v4", "+avx512vnni", {}),
    "vnni on 256 bits": ("x86-64-v3", "+avxvnni", {}),
    "avx512 without vnni": ("x86-64-v4", None, {}),
    "avx2": ("x86-64-v3", None, {}),
    "amx": ("sapphirerapids", None, {}),
    "vectors of 256 bits": ("x86-64-v4", "+avx512vnni", {"vector_bytes": 32}),
}


@pytest.fixture(params=TARGETS)
def target(request) -> Target:
    mcpu, features, options = TARGETS[request.param]
    found = Target("cpu", mcpu=mcpu, features=features, num_threads=2, **options)
    return found if found.is_host else Target(found, emulate=True)


def numbers(shape: Sequence[int], dtype: str, seed: int, most: int | None = None) -> np.ndarray:
    """Integers of the whole range of a dtype, or from -most to most; the first are the limits, whose products do not fit in 16 bits."""
    info = np.iinfo(dtype)
    low, high = (info.min, info.max) if most is None else (-most, most)
    found = np.random.default_rng(seed).integers(low, high + 1, shape).astype(dtype)
    found.reshape(-1)[: found.size // 3] = high
    found.reshape(-1)[: found.size // 5] = low
    return found


def product(rows: int, depth: int, columns: int, dtype: str, transpose_b: bool = False, most: int | None = None) -> Case:
    a, b = numbers((rows, depth), dtype, 0), numbers((columns, depth) if transpose_b else (depth, columns), "int8", 1, most)
    expected = a.astype(np.int64) @ (b.T if transpose_b else b).astype(np.int64)
    body = lambda x, y: build("nn.matmul", x, y, transpose_b=transpose_b, out_dtype="int32")  # noqa: E731 (an argument, not a definition)
    return Case(f"{rows}x{depth}x{columns} {dtype}", body, [a, Const(b)], expected, np.zeros(1))


def convolution(
    image: Sequence[int],
    weight: Sequence[int],
    dtype: str,
    layout: str = "NCHW",
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    pad_value: int = 0,
    groups: int = 1,
    most: int | None = None,
) -> Case:
    """Data [n, channels, height, width] by [filters, channels of a group, taps]; with "NHWC" the channels are last in memory."""
    x, w = numbers(image, dtype, 2), numbers(weight, "int8", 3, most)
    top, left, bottom, right = pads
    padded = np.pad(x.astype(np.int64), [(0, 0), (0, 0), (top, bottom), (left, right)], constant_values=pad_value)
    expected = convolve(padded, w.astype(np.int64), strides, dilation, (0, 0, 0, 0), groups)
    if layout == "NHWC":
        x, expected = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), expected.transpose(0, 2, 3, 1)
    attrs = {"strides": strides, "padding": pads, "dilation": dilation, "pad_value": pad_value, "groups": groups, "data_layout": layout}
    body = lambda x, w: build("nn.conv2d", x, w, out_dtype="int32", **attrs)  # noqa: E731 (an argument, not a definition)
    return Case(f"{image} by {weight} {dtype} {attrs}", body, [x, Const(w)], expected, np.zeros(1))


SIGNS = ("uint8", "int8")
SHAPES = {
    "less than a group, a block, a tile": [(1, 1, 1), (3, 2, 5), (5, 3, 17), (2, 5, 15)],
    "around groups": [(7, 63, 33), (7, 64, 33), (7, 65, 33), (7, 66, 33), (7, 67, 33)],
    "around blocks of columns": [(9, 40, 15), (9, 40, 16), (9, 40, 31), (9, 40, 63), (9, 40, 64), (9, 40, 65), (9, 40, 97)],
    "around tiles of rows": [(r, 36, 64) for r in (1, 2, 4, 5, 6, 7, 12, 13, 14, 15, 29, 30, 31, 33)],
    "around steps of tiles": [(17, 127, 48), (17, 128, 48), (33, 129, 80)],
    "one row, one column": [(1, 1030, 129), (100, 70, 1)],
    "beyond 1024": [(5, 1030, 1040), (1027, 68, 18)],
    "worth threads": [(197, 96, 130), (300, 160, 200)],
}


@pytest.mark.parametrize("shapes", SHAPES)
def test_products(shapes, target):
    forms = itertools.cycle(itertools.product(SIGNS, (False, True)))
    check([product(*shape, *next(forms)) for shape in SHAPES[shapes] for _ in (0, 1)], target=target)


@pytest.mark.parametrize("rows", [96, 97, 129, 193])
def test_an_operand_beyond_the_second_level_cache_is_walked_in_parts(rows):
    """96 rows of 128 bytes, or as many columns, are three quarters of 16 KiB; parts are of 64 at most."""
    small = Target("cpu", mcpu="sapphirerapids", emulate=True, num_threads=2, l1_bytes=1 << 12, l2_bytes=1 << 14)
    check([product(*shape, dtype) for dtype in SIGNS for shape in ((rows, 128, 210), (210, 128, rows))], target=small)


def test_sums_wrap(target):
    """2^31 is beyond what s32 holds: 255 * 127 * 66,400 would be more."""
    a, b = np.full((2, 66_400), 255, np.uint8), np.full((66_400, 3), 127, np.int8)
    expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    body = lambda x, y: build("nn.matmul", x, y, out_dtype="int32")  # noqa: E731 (an argument, not a definition)
    check([Case("wraps", body, [a, Const(b)], expected, np.zeros(1))], target=target)


IMAGES = {
    "pointwise": [((1, 64, 7, 9), (48, 64, 1, 1), {}), ((2, 13, 5, 7), (17, 13, 1, 1), {"strides": (2, 3)})],
    "3x3": [((1, 16, 9, 8), (32, 16, 3, 3), {"pads": (1, 1, 1, 1)}), ((1, 20, 8, 9), (18, 20, 3, 3), {})],
    "strided": [((1, 8, 15, 13), (24, 8, 3, 3), {"strides": (2, 2), "pads": (1, 1, 1, 1)})],
    "first layer": [((1, 3, 33, 35), (32, 3, 7, 7), {"strides": (2, 2), "pads": (3, 3, 3, 3)})],
    "dilated": [((1, 7, 19, 21), (8, 7, 3, 3), {"dilation": (2, 3), "pads": (2, 3, 2, 3)})],
    "uneven padding": [((1, 6, 9, 10), (11, 6, 3, 3), {"pads": (0, 2, 1, 0)})],
    "worth threads": [((1, 64, 30, 30), (64, 64, 3, 3), {"pads": (1, 1, 1, 1)})],
    "groups": [
        ((1, 68, 7, 7), (68, 17, 1, 1), {"groups": 4}),
        ((2, 18, 8, 6), (33, 6, 1, 1), {"groups": 3}),
        ((1, 16, 34, 33), (26, 8, 1, 1), {"groups": 2}),
        ((1, 10, 9, 13), (14, 5, 3, 3), {"groups": 2, "pads": (1, 1, 1, 1)}),
    ],
}


@pytest.mark.parametrize("images", IMAGES)
def test_convolutions(images, target):
    """Padded with values that only one of the two types has, as zero points are."""
    values = {"uint8": 200, "int8": -7}
    check(
        [
            convolution(image, weight, dtype, layout, pad_value=values[dtype], **attrs)
            for image, weight, attrs in IMAGES[images]
            for dtype in SIGNS
            for layout in ("NCHW", "NHWC")
        ],
        target=target,
    )


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize(("taps", "strides"), [((16, 16), (1, 1)), ((3, 3), (2, 2)), ((5, 4), (1, 2))], ids=str)
def test_sums_of_one_channel_in_floats_are_exact(taps, strides, sign):
    """Of the largest bytes, by windows of as many taps as there may be: sums of eight millions, of which the last bit counts."""
    rng = np.random.default_rng(taps[0])
    largest = np.array([255, 254, 253] if sign == "uint8" else [-128, -127, -126])
    x = rng.choice(largest, (1, 5, 40, 37)).astype(sign)
    w = rng.choice([-128, -127, -125], (5, 1, *taps)).astype(np.int8)
    expected = convolve(x.astype(np.int64), w.astype(np.int64), strides, (1, 1), (1, 1, 1, 1), 5)
    attrs = {"strides": strides, "padding": (1, 1, 1, 1), "groups": 5, "out_dtype": "int32"}
    case = Case(f"{taps}", lambda x, w: build("nn.conv2d", x, w, **attrs), [x, Const(w)], expected, np.zeros(1))
    target = Target("cpu", mcpu="x86-64-v3", num_threads=2)
    module = check([case], target=target, keep_ir=True)
    assert [kernel.schedule.split()[0] for kernel in module.kernels] == ["window_columns"]
    assert "vector.fma" in module.ir["tir"]


@pytest.mark.parametrize("taps", [(2, 3), (3, 3), (4, 3), (5, 3), (6, 3), (3, 1), (1, 3)], ids=str)
def test_any_number_of_rows_of_taps_for_each_channel(taps):
    """A product has four rows of taps; those that are left may be one, two or three. Windows of one row or column have no such products."""
    case = convolution((1, 16, 9, 7), (16, 1, *taps), "uint8", "NHWC", pads=(1, 1, 1, 1), groups=16)
    target = Target("cpu", mcpu="x86-64-v4", features="+avx512vnni", num_threads=2)
    module = check([case], target=target if target.is_host else Target(target, emulate=True))
    assert [kernel.schedule.split()[0] for kernel in module.kernels] == ["window_channels"]


def test_pixels_are_columns_where_groups_are_narrow(target):
    """Signed weights by unsigned pixels, which lie side by side."""
    module = check([convolution(*image, "uint8", **attrs) for *image, attrs in IMAGES["groups"][:3]], target=target)
    assert all(kernel.schedule.startswith("int8") for kernel in module.kernels), module.kernels


@pytest.mark.parametrize("mcpu", ["x86-64-v4", "x86-64-v3"])
def test_machine_code_keeps_sums_in_registers(mcpu):
    """Between the first and the last multiplication nothing is written to the stack."""
    pytest.importorskip("iced_x86")
    fused = mcpu == "x86-64-v4"
    target = Target("cpu", mcpu=mcpu, features="+avx512vnni" if fused else None, num_threads=1)
    for dtype in SIGNS:
        case = product(96, 256, 128, dtype)
        module = compile(program(lambda *v: [case.body(*v)], case.arrays), target=target, cache=False)  # noqa: B023 (called now)
        assert module.kernels[0].schedule.startswith("int8_dots")
        lines = module.assembly().splitlines()
        at = [i for i, line in enumerate(lines) if ("vpdpbusd" if fused else "vpmaddwd") in line]
        assert len(at) >= 8
        assert not any(re.search(r",[-\w]*\(%rsp\)$", line) for line in lines[at[0] : at[-1] + 1])


NARROW = {"products": [key for key in SHAPES if key not in ("around steps of tiles", "one row, one column")], "images": IMAGES}


@pytest.mark.parametrize("names", NARROW)
@pytest.mark.parametrize("name", ["avx2", "avx512 without vnni"])
def test_weights_of_seven_bits(names, name):
    """Two products by 64, the largest weight of seven bits, fit in 16 bits, also by 255; two by 65 do not."""
    target = Target("cpu", mcpu=TARGETS[name][0], num_threads=2)
    target = target if target.is_host else Target(target, emulate=True)
    forms = itertools.cycle(itertools.product(SIGNS, (False, True)))
    if names == "products":
        cases = [product(*shape, *next(forms), most=64) for key in NARROW[names] for shape in SHAPES[key]]
    else:
        shapes = [(key, *shape) for key in IMAGES for shape in IMAGES[key]]
        layouts = ["NCHW" if key == "groups" else "NHWC" for key, *_ in shapes]
        cases = [
            convolution(image, weight, next(forms)[0], layout, most=64, **attrs)
            for (_, image, weight, attrs), layout in zip(shapes, layouts, strict=True)
        ]
    check(cases, target=target)


@pytest.mark.parametrize("most", [64, 65])
@pytest.mark.parametrize("mcpu", ["x86-64-v4", "x86-64-v3"])
def test_pairs_of_bytes_are_added_where_they_fit(mcpu, most):
    """Of seven bits all fit; of eight some may not, which another loop multiplies in halves."""
    pytest.importorskip("iced_x86")
    case = product(96, 256, 128, "uint8", most=most)
    module = compile(program(lambda *v: [case.body(*v)], case.arrays), target=Target("cpu", mcpu=mcpu, num_threads=1), cache=False)
    lines = module.assembly().splitlines()
    at = [i for i, line in enumerate(lines) if "vpmaddubsw" in line]
    assert len(at) >= 8
    assert any("vpsraw" in line for line in lines) is (most == 65)
    assert not any(re.search(r",[-\w]*\(%rsp\)$", line) for line in lines[at[0] : at[-1] + 1])


PAIRS_OF_WEIGHTS = [(64, 64), (65, 64), (64, 65), (-64, -64), (-65, -64), (127, 1), (127, 2), (-128, 0), (-128, -1), (127, -128), (1, 2)]
"""Around the most that two weights may be."""


def pairs_of_weights(rng: np.random.Generator, columns: int, depth: int, share: float) -> np.ndarray:
    """Weights [columns, depth] of pairs at limits, in about this share of the groups; the others are small."""
    pairs = np.array(PAIRS_OF_WEIGHTS, np.int8)[rng.integers(0, len(PAIRS_OF_WEIGHTS), (columns, depth // 2 + 1))].reshape(columns, -1)
    wide = np.repeat(rng.random(depth // 4 + 1) < share, 4)[:depth]
    return np.where(wide, pairs[:, :depth], rng.integers(-20, 21, (columns, depth))).astype(np.int8)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("name", ["avx2", "avx512 without vnni"])
def test_weights_of_eight_bits_whose_pairs_fit_or_not(name, share):
    """By the largest bytes, which saturate wherever they can; depths around groups, and images whose rows of taps are apart."""
    target = Target("cpu", mcpu=TARGETS[name][0], num_threads=2)
    target = target if target.is_host else Target(target, emulate=True)
    rng = np.random.default_rng(int(share * 10))
    cases = []
    for rows, depth, columns, dtype in [
        (7, 4, 16, "uint8"),
        (9, 63, 17, "int8"),
        (5, 64, 33, "uint8"),
        (12, 66, 31, "uint8"),
        (3, 1028, 40, "int8"),
    ]:
        a, b = (
            rng.choice(np.array([np.iinfo(dtype).max, np.iinfo(dtype).max - 1], dtype), (rows, depth)),
            pairs_of_weights(rng, columns, depth, share),
        )
        body = lambda x, y: build("nn.matmul", x, y, transpose_b=True, out_dtype="int32")  # noqa: E731 (an argument)
        cases.append(Case(f"{rows}x{depth}x{columns}", body, [a, Const(b)], a.astype(np.int64) @ b.T.astype(np.int64), np.zeros(1)))
    for strides, dilation, groups in [((1, 1), (1, 1), 1), ((2, 1), (1, 2), 1), ((1, 1), (1, 1), 2)]:
        x = rng.choice(np.array([255, 254], np.uint8), (2, 9, 8, 24))
        w = pairs_of_weights(rng, 20, 9 * 24 // groups, share).reshape(20, 3, 3, 24 // groups).transpose(0, 3, 1, 2)
        expected = convolve(x.transpose(0, 3, 1, 2).astype(np.int64), w.astype(np.int64), strides, dilation, (1, 1, 1, 1), groups)
        attrs = {"strides": strides, "padding": (1, 1, 1, 1), "dilation": dilation, "groups": groups, "data_layout": "NHWC"}
        body = lambda x, w, attrs=attrs: build("nn.conv2d", x, w, out_dtype="int32", **attrs)  # noqa: E731 (an argument)
        cases.append(Case(f"{attrs}", body, [x, Const(np.ascontiguousarray(w))], expected.transpose(0, 2, 3, 1), np.zeros(1)))
    check(cases, target=target)


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 23])
def test_sorted_groups_of_rows_whose_number_a_call_says(rows):
    rng = np.random.default_rng(rows)
    a, b = rng.integers(200, 256, (rows, 70)).astype(np.uint8), pairs_of_weights(rng, 36, 70, 0.4)
    mod = Program(dims={"n": (1, 64)})
    mod.function(
        lambda x: mod.apply("nn_matmul", x, mod.constant(b), transpose_b=True, out_dtype="int32"),
        name="main",
        x=TensorType(("n", 70), "uint8"),
    )
    module = compile(mod.module(), target=Target("cpu", mcpu="x86-64-v3", num_threads=2), cache=False)
    np.testing.assert_array_equal(np.asarray(module["main"](a)), a.astype(np.int32) @ b.T.astype(np.int32))


def test_kernels_of_equal_shapes_with_weights_of_other_widths():
    """A kernel for weights of seven bits is none for those of eight, also where all else is equal."""
    cases = [product(20, 48, 32, "uint8", most=most) for most in (64, None, 63)]
    bodies = lambda x, *weights: [build("nn.matmul", x, w, out_dtype="int32") for w in weights]  # noqa: E731 (an argument)
    x = cases[0].arrays[0]
    weights = [case.arrays[1] for case in cases]
    module = compile(program(bodies, [x, *weights]), target="cpu -mcpu=x86-64-v3", cache=False)
    for found, case in zip(module["main"](x), cases, strict=True):
        np.testing.assert_array_equal(np.asarray(found), case.expected)
    assert len({kernel.name for kernel in module.kernels}) == 2


def test_a_kernel_compiled_by_itself_looks_at_the_weights_that_it_gets():
    """The te function says that its weights have seven bits; those given do not."""
    case, wide = product(20, 48, 32, "uint8", most=64), product(20, 48, 32, "uint8")
    target = Target("cpu", mcpu="x86-64-v3", num_threads=1)
    te = compile(program(lambda *v: [case.body(*v)], case.arrays), target=target, stop_after="te")
    assert str(te).count("relay.seven_bits") == 1
    for given in (case, wide):
        kernel = compile_kernel(te, target, params={1: given.arrays[1].array.T.copy()})
        np.testing.assert_array_equal(np.asarray(kernel(given.arrays[0])), given.expected)


def batches(left: int, right: int, rows: int, depth: int, columns: int, transpose_a: bool = False, transpose_b: bool = False) -> Case:
    """nn.batch_matmul of what a call gives: u8 [left, rows, depth] by s8 [right, depth, columns], where `left` or `right` may be 1."""
    a = numbers((left, *((depth, rows) if transpose_a else (rows, depth))), "uint8", 0)
    b = numbers((right, *((columns, depth) if transpose_b else (depth, columns))), "int8", 1)
    x, y = (v.astype(np.int64).transpose(0, 2, 1) if t else v.astype(np.int64) for v, t in ((a, transpose_a), (b, transpose_b)))
    attrs = {"transpose_a": transpose_a, "transpose_b": transpose_b, "out_dtype": "int32"}
    form = f"{left},{right} of {rows}x{depth}x{columns} {transpose_a} {transpose_b}"
    return Case(form, lambda x, y: build("nn.batch_matmul", x, y, **attrs), [a, b], x @ y, np.zeros(1))


FORMS = list(itertools.product((False, True), repeat=2))
DEPTHS = (2, 3, 4, 15, 16, 17, 31, 33, 63, 64, 65, 67, 128, 130)
"""Around groups, and around as many steps of columns as are transposed together: 16, 32, 64."""
OF_CALLS = {
    "depths": [(1, 1, 9, depth, 33, i % 4 > 1, True) for i, depth in enumerate(DEPTHS)],
    "depths in rows": [(1, 1, 9, depth, 33, i % 4 > 1, False) for i, depth in enumerate(DEPTHS)],
    "blocks of columns": [(1, 1, 7, 40, columns, False, t) for columns in (2, 15, 16, 17, 31, 64, 65) for t in (False, True)],
    "batches": [(*n, 19, 66, 40, *form) for n in ((3, 3), (1, 4), (4, 1)) for form in FORMS],
    "beyond 1024": [(1, 1, 5, 1030, 1040, False, True), (1, 1, 1027, 68, 18, False, False)],
    "attention": [(2, 2, 197, 64, 197, False, True), (2, 2, 197, 197, 64, False, False)],
}


@pytest.mark.parametrize("name", OF_CALLS)
def test_products_of_two_tensors_of_a_call(name, target):
    module = check([batches(*shape) for shape in OF_CALLS[name]], target=target)
    assert all(kernel.schedule.startswith("int8") for kernel in module.kernels if "matmul" in kernel.name), module.kernels


def test_unlike_signs_need_a_wider_result():
    a, b = numbers((2, 4), "uint8", 0), numbers((4, 3), "int8", 1)
    with pytest.raises(RelayError, match=r"out_dtype: expected more bits than tensor_a and tensor_b, of unlike signs, found"):
        program(lambda x, y: [build("nn.matmul", x, y)], [a, b])


@pytest.mark.parametrize("high", [40, 64, 65])
def test_products_by_rows_whose_length_a_call_says(high):
    """Of a quantised matrix with itself transposed. A tile has room for a row of at most 64 bytes, so that its depth is known; its length
    is not."""
    mod = Program(dims={"n": (2, high)})

    @mod.function(x=TensorType(("n + 1", "n"), "uint8"))
    def main(x):
        real = mod.op.qnn.dequantize(x, mod.constant(np.float32(0.5)), mod.constant(np.uint8(3)))
        return mod.op.nn.dense(real, real)

    rng = np.random.default_rng(high)
    target = Target("cpu", mcpu="sapphirerapids")
    module = compile(mod, target=target if target.is_host else Target(target, emulate=True))
    for n in (2, 31, high - 1, high):
        x = rng.integers(0, 256, (n + 1, n)).astype(np.uint8)
        real = (x.astype(np.float64) - 3) / 2
        np.testing.assert_array_equal(module["main"](x), real @ real.T)
