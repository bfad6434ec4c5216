"""Products and convolutions on GPUs, emulated: every way of operands to shared memory, over awkward shapes.

Tiles are small, so that shapes of some tens of elements have several blocks, stages and strips, and emulation is quick. Bounds are those of
`contractions`: sums in f32 in any order, and one rounding of the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from contractions import Case, batch_product, check, convolution, convolve, matrix_product
from oracle import values
from support import Const, program
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc import te
from relayc.dialects.relay import build
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.tir.lower import launches
from relayc.symbolic import Range

EMULATED = Target("cuda", arch="sm_80", emulate=True, num_threads=2)
MMA = {"rows": 32, "columns": 16, "unit_rows": 16, "unit_columns": 16, "depth": 32, "stages": 3, "splits": 1}
TF32 = {**MMA, "depth": 16, "tf32": 1}
BYTES = {**MMA, "depth": 64}
FMA = {"rows": 32, "columns": 32, "unit_rows": 8, "unit_columns": 4, "depth": 8, "stages": 2, "splits": 1}
SMALL_FMA = {**FMA, "rows": 16, "unit_rows": 4, "depth": 4}


def numbers(strategy: str, found: Mapping[str, int]) -> dict[str, int]:
    """The numbers of a strategy as a configuration has them."""
    return {f"schedule.{strategy}.{name}": number for name, number in found.items()}


def run(cases: Sequence[Case], strategy: str, found: Mapping[str, int], target: Target = EMULATED) -> None:
    """Compiles cases for the emulation, each of them by a strategy, and compares them. Layouts stay as they are."""
    config = {**numbers(strategy, found), "gpu.check_races": True}
    with PassContext(config=config, disabled_pass=["AlterOpLayout"]):
        module = check(cases, target=target)
    schedules = [kernel.schedule.split()[0] for kernel in module.kernels]
    assert schedules.count(strategy) == len(cases), schedules


def products(dtype: str, out_dtype: str = "") -> list[Case]:
    """Operands along the depth and across it, in copies of 16, 8 and 4 bytes and through registers, and packed; more and fewer rows and
    columns than a tile has, and a depth of no whole stages."""
    forms = [
        ((33, 64, 24), False, True, ""),
        ((17, 40, 24), True, False, ""),
        ((1, 7, 9), False, True, ""),
        ((33, 17, 19), False, True, "b"),
        ((9, 20, 36), False, False, ""),
        ((20, 24, 34), True, False, "a"),
    ]
    return [
        matrix_product(*shape, transpose_a=a, transpose_b=b, constant=constant, dtype=dtype, out_dtype=out_dtype)
        for shape, a, b, constant in forms
    ]


def as_tf32(case: Case, transpose_a: bool = False) -> Case:
    """A case of nn.matmul whose operands are rounded to 11 bits: each product is off by two such roundings."""
    a, b = (np.abs(getattr(array, "array", array)) for array in case.arrays)
    return replace(case, bound=case.bound + 2.001 * 2.0**-11 * ((a.T if transpose_a else a) @ b))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_halves(dtype):
    run(products(dtype), "mma", MMA)


def test_products_of_floats():
    run(products("float32"), "fma", FMA)


def test_products_of_floats_by_wide_units():
    """A thread stores two runs of columns, of lines across the depth."""
    run([matrix_product(9, 4, 70)], "fma", {**SMALL_FMA, "columns": 64, "unit_columns": 8})


def test_lines_of_more_units_than_a_block_has_threads():
    """128 rows side by side, which 32 threads copy."""
    tile = {"rows": 128, "columns": 16, "unit_rows": 8, "unit_columns": 8, "depth": 4, "stages": 2, "splits": 1}
    run([matrix_product(131, 17, 5, transpose_a=True)], "fma", tile)


def test_products_of_floats_as_tf32():
    cases = [matrix_product(*shape) for shape in ((33, 64, 24), (9, 20, 36), (1, 7, 9))]
    run([as_tf32(case) for case in cases], "mma", TF32)


def test_small_products_of_floats_as_tf32():
    """A first operand along the depth and one across it; fewer rows and more columns than a tile, and no whole steps of the depth."""
    cases = [as_tf32(matrix_product(9, 12, 20, transpose_a=is_turned), is_turned) for is_turned in (False, True)]
    run(cases, "mma", {**TF32, "rows": 16, "stages": 2})


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_products_of_bytes(dtype):
    """Exact."""
    run(products(dtype, "int32")[:3], "mma", BYTES)


def test_splits():
    """Parts of the depth, some of which are empty, are added by a second launch; results are the same every time."""
    cases = [matrix_product(5, 200, 24, dtype="bfloat16"), matrix_product(3, 65, 9, dtype="float16", constant="b")]
    run(cases, "mma", {**MMA, "splits": 4})
    run([matrix_product(3, 130, 12)], "fma", {**FMA, "splits": 4})


@pytest.mark.parametrize(("dtype", "total", "strategy"), [("float32", "float32", "fma"), ("int8", "int32", "mma")])
def test_sums_begin_with_other_values_than_zero(dtype, total, strategy):
    """Numbers up to 3, whose sums are exact."""
    a, b, c = te.placeholder((9, 40), dtype, name="A"), te.placeholder((20, 40), dtype, name="B"), te.placeholder((20,), total, name="C")
    k = te.reduce_axis((0, 40), "k")
    d = te.compute((9, 20), lambda i, j: te.sum(a[i, k].astype(total) * b[j, k].astype(total), axis=k, init=c[j]), name="D")
    kernel = relayc.compile_kernel(te.create_prim_func([a, b, c, d]), target=EMULATED, tuning={f"{strategy}.rows": 16})
    assert kernel.info.schedule.split()[0] == strategy
    rng = np.random.default_rng(0)
    x, y, z = (rng.integers(-3, 4, shape) for shape in ((9, 40), (20, 40), (20,)))
    np.testing.assert_array_equal(kernel(x.astype(dtype), y.astype(dtype), z.astype(total)), x @ y.T + z)


def test_batches():
    cases = [batch_product(3, 3, 17, 24, 20, dtype="float16"), batch_product(1, 3, 9, 16, 8, dtype="float16", transpose_a=True)]
    run(cases, "mma", MMA)
    run([batch_product(2, 1, 9, 12, 20), batch_product(2, 2, 5, 7, 3, transpose_b=False)], "fma", FMA)


def test_convolutions():
    """As the program has them, NCHW: padding, strides, dilation, groups, and one by one."""
    cases = [
        convolution((2, 16, 7, 9), (24, 16, 3, 3), pads=(1, 1, 1, 1), dtype="bfloat16"),
        convolution((1, 5, 8, 7), (7, 5, 3, 2), strides=(1, 2), dilation=(2, 1), pads=(2, 0, 1, 1), dtype="bfloat16"),
        convolution((1, 16, 5, 5), (32, 8, 3, 3), groups=2, pads=(1, 1, 1, 1), dtype="bfloat16"),
        convolution((1, 8, 6, 6), (16, 8, 1, 1), dtype="bfloat16"),
    ]
    run(cases, "mma", MMA)
    cases = [
        convolution((1, 3, 9, 11), (10, 3, 3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
        convolution((1, 8, 6, 6), (16, 8, 1, 1), constant=False),
        convolution((1, 4, 9), (6, 4, 3), pads=(2, 0)),
    ]
    run(cases, "fma", FMA)


COMPUTED = """func.func @k(%x: tensor<1x3x5x4xf32>, %w: tensor<6x3x3x2xf32>) -> tensor<1x6x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %image = tensor.empty() : tensor<1x3x5x4xf32>
  %more = linalg.generic {
      indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]
  } ins(%x : tensor<1x3x5x4xf32>) outs(%image : tensor<1x3x5x4xf32>) {
  ^bb0(%e: f32, %_: f32):
    %s = arith.addf %e, %one : f32
    linalg.yield %s : f32
  } -> tensor<1x3x5x4xf32>
  %padded = tensor.pad %more low[0, 0, 1, 1] high[0, 0, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x3x5x4xf32> to tensor<1x3x7x5xf32>
  %empty = tensor.empty() : tensor<1x6x5x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x6x5x4xf32>) -> tensor<1x6x5x4xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x3x7x5xf32>, tensor<6x3x3x2xf32>) outs(%start : tensor<1x6x5x4xf32>) -> tensor<1x6x5x4xf32>
  return %0 : tensor<1x6x5x4xf32>
}"""


@pytest.mark.parametrize("start", ["zero", "one"])
def test_the_padding_of_what_a_kernel_computes_is_not_computed(start):
    """It is 0, where the image is one more than what lies in memory; sums begin with 0 or 1."""
    text = COMPUTED.replace("%start = linalg.fill ins(%zero", f"%start = linalg.fill ins(%{start}")
    kernel = relayc.compile_kernel(text, target=EMULATED, tuning={f"fma.{name}": number for name, number in SMALL_FMA.items()})
    assert kernel.info.schedule.split()[0] == "fma"
    x, w = values((1, 3, 5, 4)), values((6, 3, 3, 2), seed=1)
    image = np.pad(x.astype(np.float64) + 1, [(0, 0), (0, 0), (1, 1), (1, 0)])
    expected = convolve(image, w.astype(np.float64), (1, 1), (1, 1), (0, 0, 0, 0), 1) + (start == "one")
    np.testing.assert_allclose(kernel(x, w), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("dtype", "zero"), [("uint8", 200), ("int8", -128)])
def test_convolutions_of_bytes_padded_with_the_zero_point(dtype, zero):
    """Exact, by copies of 16, 8 and 4 bytes and through registers, with the requantisation in the same kernel."""
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    cases = []
    for channels, strides in ((32, (1, 1)), (8, (2, 1)), (4, (1, 2)), (3, (1, 1))):
        x = rng.integers(info.min, info.max + 1, (2, 7, 9, channels)).astype(dtype)
        w = rng.integers(-128, 128, (24, channels, 3, 2)).astype(np.int8)
        padded = np.pad(x.transpose(0, 3, 1, 2).astype(np.float64), [(0, 0), (0, 0), (1, 1), (2, 0)], constant_values=zero)
        sums = convolve(padded, w.astype(np.float64), strides, (1, 1), (0, 0, 0, 0), 1).transpose(0, 2, 3, 1)
        factor = np.float32(127 / np.abs(sums).max())
        expected = np.rint(sums.astype(np.float32) * factor).astype(np.int8)
        attrs = {"strides": strides, "padding": (1, 2, 1, 0), "pad_value": zero, "data_layout": "NHWC", "out_dtype": "int32"}

        def body(x, w, factor, attrs=attrs):
            total = build("cast", build("nn.conv2d", x, w, **attrs), dtype="float32")
            return build("cast", build("round", build("multiply", total, factor)), dtype="int8")

        cases.append(Case(f"{channels} channels of {dtype}", body, [x, Const(w), Const(factor)], expected, np.zeros(1)))
    run(cases, "mma", BYTES)
    run(cases[:1], "mma", {**BYTES, "splits": 3})


def test_convolutions_are_channels_last():
    """Convolutions that follow each other are laid out with their channels last, and each is one product, whatever the precision."""
    x, pads = values((1, 8, 10, 10), "float32"), (1, 1, 1, 1)
    first, second = (values((16, c, 3, 3), "float32", seed=c) for c in (8, 16))

    def body(data, a, b):
        return [build("nn.conv2d", build("nn.relu", build("nn.conv2d", data, a, padding=pads)), b, padding=pads)]

    def expected(*arrays):
        wide = [array.astype(np.float64) for array in arrays]
        hidden = np.maximum(convolve(wide[0], wide[1], (1, 1), (1, 1), pads, 1), 0)
        return convolve(hidden, wide[2], (1, 1), (1, 1), pads, 1)

    found = expected(x, first, second)
    magnitude = expected(*map(np.abs, (x, first, second)))
    for precision, unit in (("f32", 2.0**-24 * 300), ("tf32", 2.0**-11), ("f16", 2.0**-11), ("bf16", 2.0**-8)):
        strategy = "fma" if precision == "f32" else "mma"
        shape = {"f32": FMA, "tf32": TF32}.get(precision, MMA)
        with PassContext(config=numbers(strategy, {k: v for k, v in shape.items() if k != "tf32"})):
            module = compile(program(body, [x, Const(first), Const(second)]), target=EMULATED, precision=precision)
        assert module.precision == precision
        convolutions = [kernel for kernel in module.kernels if "nn.conv2d" in kernel.ops]
        assert [kernel.schedule.split()[0] for kernel in convolutions] == [strategy] * 2
        assert sorted(kernel.inputs[0].shape[-1] for kernel in convolutions) == [8, 16]
        # Two factors of each of two products are rounded.
        np.testing.assert_array_less(np.abs(module["main"](x) - found), 4.1 * unit * magnitude)


def test_epilogues():
    """Bias, activation, residual, scale and cast in the same kernel; a result seen as another shape."""
    a, b = values((3, 11, 40), "float32"), values((24, 40), "float32", seed=1)
    bias, residual = values((24,), "float32", seed=2), values((3, 11, 24), "float32", seed=3)
    sums = a.astype(np.float64) @ b.astype(np.float64).T

    def body(a, b, bias, residual):
        found = build("add", build("nn.relu", build("add", build("nn.dense", a, b), bias)), residual)
        return build("reshape", found, newshape=(33, 24))

    expected = np.maximum(sums + bias, 0) + residual
    magnitude = np.abs(a) @ np.abs(b).T + np.abs(bias) + np.abs(residual)
    bound = (44 * 2.0**-24 / (1 - 44 * 2.0**-24) * magnitude).reshape(33, 24)
    case = Case("epilogue", body, [a, Const(b), Const(bias), residual], expected.reshape(33, 24), bound)
    run([case], "fma", FMA)
    run([case], "fma", {**FMA, "splits": 2})
    half = matrix_product(33, 40, 24, dtype="bfloat16")
    run([replace(half, body=lambda *v: build("cast", half.body(*v), dtype="float32"))], "mma", MMA)


def test_symbolic_rows_and_batches():
    """One kernel for all sizes, none among them."""

    def body(a, b, x, y):
        return [build("nn.relu", build("nn.dense", a, b)), build("nn.batch_matmul", x, y)]

    weights = values((24, 40), "bfloat16", seed=1)
    types = [tensor("bfloat16[m, 40]"), Const(weights), tensor("float32[n, 5, 12]"), tensor("float32[n, 9, 12]")]
    config = {**numbers("mma", MMA), **numbers("fma", FMA)}
    with PassContext(config=config):
        module = compile(symbolic_program(body, types, {"m": Range(0), "n": Range(0)}), target=EMULATED)
    assert sorted(kernel.schedule.split()[0] for kernel in module.kernels) == ["fma", "mma"]
    for m, n in ((0, 0), (1, 3), (33, 1), (64, 2)):
        a, x, y = values((m, 40), "bfloat16"), values((n, 5, 12), "float32"), values((n, 9, 12), "float32", seed=1)
        dense, batches = module["main"](a, x, y)
        expected = np.maximum(a.astype(np.float64) @ weights.astype(np.float64).T, 0)
        np.testing.assert_allclose(dense.astype(np.float64), expected, rtol=2.0**-8, atol=40 * 2.0**-22)
        np.testing.assert_allclose(batches, x.astype(np.float64) @ y.astype(np.float64).transpose(0, 2, 1), rtol=0, atol=24 * 2.0**-21)


def test_tiles_are_no_larger_than_the_product():
    """Where copies for a longer tile would take no longer."""
    for rows, columns in ((16, 32), (32, 16), (100, 16), (16, 100)):
        case = matrix_product(rows, 600, columns, dtype="float16")
        (kernel,) = compile(program(lambda *v, case=case: [case.body(*v)], case.arrays), target=EMULATED, stop_after="tir").kernels
        tile = dict(number.split("=") for number in kernel.schedule.split()[1:])
        assert (int(tile["rows"]), int(tile["columns"])) == (min(rows, 64), min(columns, 64))


def test_lines_of_several_taps_are_copied_together():
    """Where channels are fewer than a chunk, or no multiple of one, as neighbouring taps follow each other; and where only the start of a
    line is padded."""
    cases = []
    for channels, taps, pads in ((12, 2, 0), (4, 3, 1), (8, 3, 1)):
        x, w = values((2, 8, 8, channels), "float16"), values((16, channels, taps, taps), "float16", seed=1)
        attrs = {"strides": (2, 2), "padding": (pads,) * 4, "data_layout": "NHWC", "out_dtype": "float32"}
        padded = np.pad(x.transpose(0, 3, 1, 2).astype(np.float64), [(0, 0), (0, 0), (pads, pads), (pads, pads)])
        sums = convolve(padded, w.astype(np.float64), (2, 2), (1, 1), (0, 0, 0, 0), 1).transpose(0, 2, 3, 1)
        sizes = convolve(np.abs(padded), np.abs(w.astype(np.float64)), (2, 2), (1, 1), (0, 0, 0, 0), 1).transpose(0, 2, 3, 1)
        body = lambda x, w, attrs=attrs: build("nn.conv2d", x, w, **attrs)  # noqa: E731
        cases.append(Case(f"{channels} channels", body, [x, Const(w)], sums, channels * taps**2 * 2.0**-23 * sizes))
    run(cases, "mma", MMA)


def test_numbers_are_fitted():
    """Numbers that a block cannot have become the nearest that it can."""
    run([matrix_product(20, 33, 40, dtype="float16")], "mma", {"rows": 9, "columns": 100, "unit_rows": 64, "unit_columns": 3, "depth": 99})
    run([matrix_product(20, 33, 40)], "fma", {"rows": 1, "columns": 7, "unit_rows": 64, "unit_columns": 3, "stages": 8})


def test_a_missing_barrier_is_a_race(monkeypatch):
    monkeypatch.setattr(launches, "barrier", lambda: None)
    with pytest.raises(RuntimeError, match="expected a barrier between uses of shared memory"):
        run([matrix_product(20, 64, 24, dtype="float16")], "mma", MMA)


def test_a_missing_wait_is_seen(monkeypatch):
    """Copies are there when somebody waits for them, not before: shared memory that nobody has written is not a number."""
    monkeypatch.setattr(launches, "wait_for_copies", lambda groups: None)
    a, b = values((20, 64), "float16"), values((24, 64), "float16", seed=1)
    with PassContext(config=numbers("mma", MMA)):
        module = compile(program(lambda a, b: [build("nn.dense", a, b)], [a, b]), target=EMULATED)
    assert np.isnan(module["main"](a, b)).all()
