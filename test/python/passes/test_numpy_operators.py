"""Folding gives what kernels compute: each evaluator against the compiled operator, over dtypes."""

import ml_dtypes
import numpy as np
import pytest
from support import Const, build, program, run_program

from relayc.dialects.relay import OPS
from relayc.pipelines import find_pass
from relayc.pipelines.graph.numpy_operators import NUMPY_OPERATORS, NumpyOperator

INTEGERS = ["int8", "int32", "int64", "uint8"]
ROUNDED = ["floor", "ceil", "round", "trunc", "sign", "abs", "negative"]
FLOAT_FUNCTIONS = ["exp", "sigmoid", "tanh", "erf", "sin", "cos", "atan", "asinh", "nn.relu"]
POSITIVE_FUNCTIONS = ["log", "log2", "log10", "sqrt", "rsqrt"]
ARITHMETIC = ["add", "subtract", "multiply", "divide", "floor_divide", "mod", "floor_mod", "maximum", "minimum"]
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]


def folded(body, arrays):
    """What FoldConstant makes of a program of constants."""
    mod = find_pass("FoldConstant")(program(body, [Const(a) for a in arrays]))
    block = mod.main.regions[0].blocks[0]
    assert {op.operation.name for op in block.operations} <= {"relay.constant", "func.return"}
    return [mod.value_of(v) for v in block.operations[len(block.operations) - 1].operation.operands]


def check(body, arrays, rtol=0.0):
    expected = run_program(body, arrays)
    for i, (a, b) in enumerate(zip(folded(body, arrays), expected, strict=True)):
        assert a.dtype == b.dtype, i
        np.testing.assert_allclose(a.astype("float64"), b.astype("float64"), rtol=rtol, atol=rtol, err_msg=f"result {i}")


def integers(dtype, seed, low=-100, high=100):
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(max(low, info.min), high, (5, 7)).astype(dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic(dtype):
    x, y, shift = integers(dtype, 0), integers(dtype, 1), integers(dtype, 2, 0, 7)
    y[y == 0] = 3

    def body(x, y, shift):
        pairs = [build(name, x, y) for name in ARITHMETIC + COMPARISONS + BITS[:3]]
        return pairs + [build(name, x, shift) for name in BITS[3:]] + [build(name, x) for name in ROUNDED]

    check(body, [x, y, shift])


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 2e-6), ("float64", 1e-12), ("float16", 2e-3)])
def test_float_arithmetic(dtype, rtol):
    rng = np.random.default_rng(0)
    x, y, positive = (v.astype(dtype) for v in (rng.standard_normal((5, 7)), rng.uniform(1, 2, (5, 7)), rng.uniform(0.1, 9, (5, 7))))

    def body(x, y, positive):
        pairs = [build(name, x, y) for name in [n for n in ARITHMETIC if n != "floor_divide"] + COMPARISONS]
        ones = [build(name, x) for name in ROUNDED + FLOAT_FUNCTIONS] + [build(name, positive) for name in POSITIVE_FUNCTIONS]
        return [*pairs, *ones, build("power", positive, y), build("clip", x, a_min=-0.5, a_max=None)]

    check(body, [x, y, positive], rtol)


def test_special_floats():
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.5, 1.5, -2.5], "float32")

    def body(x):
        names = ["round", "floor", "sign", "abs", "isnan", "isinf", "isfinite", "nn.relu"]
        return [*[build(name, x) for name in names], build("maximum", x, build("reverse", x)), build("clip", x, a_min=0.0, a_max=1.0)]

    check(body, [x])


@pytest.mark.parametrize("source", ["float32", "int64", "uint8", "bool"])
def test_casts(source):
    x = np.array([[0, 1, 2], [3, 100, 127]]).astype(source)
    check(lambda x: [build("cast", x, dtype=d) for d in ("bool", "int8", "int32", "uint8", "float16", "float32", "float64")], [x])


@pytest.mark.parametrize(("saturate", "expected"), [(True, 448), (False, np.nan), (None, 448)])
def test_casts_beyond_the_largest_number(saturate, expected):
    ways = {} if saturate is None else {"saturate": saturate}
    (found,) = folded(lambda x: [build("cast", x, dtype="float8_e4m3fn", **ways)], [np.float32([1000])])
    np.testing.assert_array_equal(found.astype(np.float32), np.float32([expected]))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_reductions(dtype):
    x = integers("int32", 3, -9, 9).astype(dtype)

    def body(x):
        kinds = [("sum", {}), ("max", {"axis": (0,)}), ("min", {"axis": (1,), "keepdims": True}), ("mean", {"axis": (0,), "exclude": True})]
        scans = [build("cumsum", x, axis=1), build("cumsum", x, axis=0, exclusive=True)]
        return [build(name, x, **attrs) for name, attrs in kinds] + scans

    check(body, [x], rtol=1e-6 if dtype == "float32" else 0)


@pytest.mark.parametrize(("exponents", "folds"), [([0, 1, 5], True), ([0, -1, 2], False)])
def test_powers_of_integers(exponents, folds):
    """A negative power of an integer is left to the program."""
    x, y = np.array([-2, 0, 3]), np.array(exponents)
    mod = find_pass("FoldConstant")(program(lambda x, y: [build("power", x, y)], [Const(x), Const(y)]))
    assert ("relay.power" not in str(mod)) == folds
    if folds:
        np.testing.assert_array_equal(folded(lambda x, y: [build("power", x, y)], [x, y])[0], x**y)


def test_bools():
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])

    def body(x, y):
        pairs = [build(name, x, y) for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "equal", "maximum")]
        return [*pairs, build("logical_not", x), build("all", x), build("any", y), build("where", x, y, x)]

    check(body, [x, y])


def test_movement():
    x, indices = np.arange(24, dtype="int32").reshape(2, 3, 4), np.array([[-1, 0], [1, 2]])

    def body(x, i):
        return [
            build("transpose", x, axes=(2, 0, 1)),
            build("reshape", x, newshape=(0, -1)),
            build("strided_slice", x, begin=(3, -1), end=(-9, 0), strides=(-2, -1), axes=(2, 1)),
            build("concatenate", x, x, axis=-1),
            build("stack", x, x, axis=1),
            build("tile", x, reps=(2, 1, 1, 2)),
            build("repeat", x, repeats=2, axis=1),
            build("reverse", x, axis=2),
            build("broadcast_to", x, shape=(2, 2, 3, 4)),
            build("expand_dims", x, axis=1, num_newaxis=2),
            build("take", x, i, axis=1),
            build("take", x, i, axis=0, mode="wrap"),
            build("take", x, build("add", i, i), axis=1, mode="clip"),
            build("gather", build("reshape", x, newshape=(4, 6)), i, axis=1),
            build("gather_nd", x, i),
            build("shape_of", x, dtype="int64"),
        ]

    check(body, [x, indices])


def test_creation_and_padding():
    x, k, value = np.arange(12, dtype="float32").reshape(3, 4), np.int64(1), np.float32(2.5)

    def body(x, k, value):
        return [
            build("trilu", x, k),
            build("trilu", x, k, upper=False),
            build("nn.pad", x, value, pad_width=(1, 0, 2, 1)),
            build("nn.pad", x, value, pad_width=(1, 1, 2, 1), pad_mode="reflect"),
            build("nn.pad", x, value, pad_width=(1, 1, 2, 1), pad_mode="edge"),
            build("full", value, shape=(2, 3), dtype="int32"),
            build("arange", start=5, stop=-1, step=-2, dtype="int32"),
            build("arange", start=0, stop=1, step=0.3),
            build("zeros", shape=(2,), dtype="bool"),
            build("ones", shape=(2,), dtype="float16"),
            build("one_hot", build("cast", x, dtype="int32"), value, build("negative", value), depth=4, axis=1),
        ]

    check(body, [x, k, value])


@pytest.mark.parametrize(
    ("body", "folds"),
    [
        (lambda x, zero: build("divide", x, zero), False),
        (lambda x, zero: build("floor_mod", x, zero), False),
        (lambda x, zero: build("power", x, build("negative", x)), False),
        (lambda x, zero: build("clip", x, a_min=0.5, a_max=9.0), False),
        (lambda x, zero: build("clip", x, a_min=-np.inf, a_max=9.0), True),
        (lambda x, zero: build("clip", x, a_min=0.0, a_max=1.0), True),
        (lambda x, zero: build("take", x, zero, axis=0, mode="raise"), True),
        (lambda x, zero: build("take", x, build("negative", x), axis=0, mode="raise"), True),
        (lambda x, zero: build("take", x, x, axis=0, mode="raise"), False),
        (lambda x, zero: build("take", x, build("negative", build("add", x, zero)), axis=0, mode="raise"), True),
        (lambda x, zero: build("take", x, build("negative", build("add", x, x)), axis=0, mode="raise"), False),
        (lambda x, zero: build("take", x, zero, axis=None, mode="clip"), True),
        (lambda x, zero: build("take", build("stack", x, x), build("stack", x, zero), axis=1, batch_dims=1), False),
        (lambda x, zero: build("gather_nd", build("stack", x, x), build("stack", zero, axis=0)), True),
        (lambda x, zero: build("gather_nd", build("stack", x, x), build("stack", zero, axis=0), batch_dims=1), False),
        *(
            (lambda x, zero, name=name: build(name, build("strided_slice", x, begin=(0,), end=(0,)), axis=(0,), keepdims=True), False)
            for name in ("max", "min", "mean")
        ),
        (lambda x, zero: build("sum", build("strided_slice", x, begin=(0,), end=(0,)), axis=(0,), keepdims=True), True),
    ],
)
def test_what_has_no_safe_value_is_left_to_run_time(body, folds):
    arrays = [Const(np.array([1, 2], "int32")), Const(np.array([1, 0], "int32"))]
    mod = find_pass("FoldConstant")(program(lambda *given: [body(*given)], arrays))
    names = {op.operation.name for op in mod.main.regions[0].blocks[0].operations}
    assert (names <= {"relay.constant", "func.return"}) == folds


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans_of_all_elements_and_without_their_own(name):
    x = integers("int32", 3, -3, 4)
    check(lambda x: [build(name, x, axis=axis, exclusive=e) for axis in (None, 0, -1) for e in (False, True)], [x])


def test_bits_of_other_types():
    x = np.float32([[0.0, -0.0, 1.5], [np.inf, -1.0, 2.0]])
    check(lambda x: [build("reinterpret", x, dtype=d) for d in ("int32", "float32")] + [build("copy", x)], [x])


def test_evaluators_are_of_operators_that_exist():
    assert NUMPY_OPERATORS.keys() <= OPS.keys()


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "multipliers", "length", "frequencies"),
    [((3, 4, 2), 0, 6, 6), ((2, 9, 2), 1, 8, 5), ((2, 8, 2), 2, 8, 8), ((3, 5, 1), 0, 5, 4), ((3, 7, 1), 0, 6, 4)],
)
def test_transforms(shape, multipliers, length, frequencies, inverse):
    rng = np.random.default_rng(0)
    plan = length // 2 if shape[2] == 1 and length % 2 == 0 else length
    arrays = [rng.standard_normal(shape), np.arange(length), np.int64(length), np.int64(plan)]

    def body(x, powers, n, plan, *factors):
        roots = build("fft_roots", powers, n, dtype="float64")
        given = x, roots, build("fft_plan", plan), *factors
        return [build("fft", *given, length=length, frequencies=frequencies, inverse=inverse)]

    check(body, arrays + [rng.standard_normal((2, length)) for _ in range(multipliers)], rtol=1e-12)


def test_dequantised_floats_are_not_rounded_to_integers():
    data, scale = np.array([0.5, -1.75, 3.0]).astype(ml_dtypes.float8_e4m3fn), np.float32(0.25)
    zero = np.zeros((), ml_dtypes.float8_e4m3fn)

    def body(*operands):
        return [build("qnn.dequantize", *operands)]

    arrays = [Const(data), Const(scale), Const(zero)]
    np.testing.assert_array_equal(run_program(body, arrays)[0], np.float32([0.125, -0.4375, 0.75]))
    assert "relay.qnn_dequantize" in str(find_pass("FoldConstant")(program(body, arrays)))


def test_an_evaluator_gives_what_the_types_say(monkeypatch):
    monkeypatch.setitem(NUMPY_OPERATORS, "copy", NumpyOperator(lambda op, x: x[:1], 1 << 20))
    with pytest.raises(ValueError, match=r"relay.copy at .*: evaluated to shape \(1,\), expected tensor<3xf32>"):
        folded(lambda x: [build("copy", x)], [np.float32([1, 2, 3])])


@pytest.mark.parametrize("length", [6, 7])
def test_transforms_to_real_rows(length):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, length // 2 + 1, 2))

    def body(x, powers, n, plan):
        roots = build("fft_roots", powers, n, dtype="float64")
        return [build("fft", x, roots, build("fft_plan", plan), length=length, frequencies=length, inverse=True, to_real=True)]

    arrays = [x, np.arange(length), np.int64(length), np.int64(length // 2 if length % 2 == 0 else length)]
    check(body, arrays, rtol=1e-12)
    (found,) = folded(body, arrays)
    np.testing.assert_allclose(found[..., 0], np.fft.irfft(x @ [1, 1j], length), rtol=1e-12, atol=1e-12)


def test_roots_of_transforms():
    powers, n = np.array([0, 1, 5, 9, 10**12]), 7
    check(lambda powers, n: [build("fft_roots", powers, n, dtype="float64")], [powers, np.int64(n)], rtol=1e-12)
    (found,) = folded(lambda powers, n: [build("fft_roots", powers, n, dtype="float64")], [powers, np.int64(n)])
    np.testing.assert_allclose([1, 1j] @ found, np.exp(-2j * np.pi / n * np.array([0, 1, 5, 2, 10**12 % n])), rtol=1e-14)


@pytest.mark.parametrize(
    ("dtype", "attributes", "is_folded"),
    [
        ("float32", {}, True),
        ("float32", {"out_dtype": "int16"}, True),
        ("float16", {}, False),
        ("float32", {"rounding": "TONEAREST"}, False),
        ("float32", {"out_dtype": "float8_e4m3fn"}, False),
        ("float32", {"out_dtype": "int32"}, False),
    ],
)
def test_constants_are_quantised_where_the_steps_are_the_nearest_even(dtype, attributes, is_folded):
    given = [np.array([-0.25, 0.25, 0.75, 1.25, 100], dtype), np.array(0.5, dtype), np.array(3, np.int32)]
    attributes = {"rounding": "TONEVEN", "out_dtype": "int8", **attributes}
    mod = find_pass("FoldConstant")(program(lambda *v: [build("qnn.quantize", *v, **attributes)], [Const(a) for a in given]))
    operations = mod.main.regions[0].blocks[0].operations
    result = mod.value_of(operations[len(operations) - 1].operation.operands[0])
    assert ("relay.qnn_quantize" not in str(mod)) == is_folded
    if is_folded:
        assert result.tolist() == [3, 3, 5, 5, min(203, np.iinfo(attributes["out_dtype"]).max)]


def test_multipliers_of_transforms_are_complex():
    rng = np.random.default_rng(1)
    x, first, second = rng.standard_normal((3, 6, 2)), rng.standard_normal((2, 6)), rng.standard_normal((2, 6))

    def body(x, powers, n, *factors):
        given = build("fft_roots", powers, n, dtype="float64"), build("fft_plan", n)
        return [build("fft", x, *given, *factors, length=6, frequencies=6)]

    (found,) = folded(body, [x, np.arange(6), np.int64(6), first, second])
    wide, before, after = (a @ [1, 1j] for a in (x, first.T, second.T))
    wanted = np.fft.fft(wide * before) * after
    np.testing.assert_allclose(found @ [1, 1j], wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_quantisation(dtype):
    """Halves go to even, numbers beyond the last step stay there, and each row has a scale."""
    info = np.iinfo(dtype)
    scales, zero = np.linspace(0.25, 2, 5, dtype=np.float32), np.array(3, np.int32)
    steps = np.random.default_rng(0).integers(info.min - 9, info.max + 9, (5, 64)) + np.resize([0.5, 0.25, -0.5, 0], 64)
    ways = {"axis": 0, "out_dtype": dtype, "rounding": "TONEVEN"}

    def body(x, scales, zero):
        numbers = build("qnn.quantize", x, scales, zero, **ways)
        return [numbers, build("qnn.dequantize", numbers, scales, zero, axis=0)]

    check(body, [(steps * scales[:, None]).astype(np.float32), scales, zero])
