"""Elements of every dtype agree with numpy; conversions are TVM's; functions, printing and what is no expression."""

import math

import numpy as np
import pytest
from tensor_expressions import computed, numpy_dtype

from relayc import te
from relayc.dialects.relay import RelayError
from relayc.pipelines.te.language.expressions import expr
from relayc.pipelines.te.language.operators import Operators

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COUNT = 37


def operands(dtype):
    """Two arrays; the second has no 0."""
    random, kind = np.random.default_rng(1), numpy_dtype(dtype)
    if dtype in FLOATS:
        return [(random.standard_normal(COUNT) * 4).astype(kind), (random.standard_normal(COUNT) * 4 + 0.1).astype(kind)]
    low = 0 if dtype.startswith("u") else -100
    b = random.integers(max(low, -10), 10, COUNT).astype(kind)
    b[b == 0] = 3
    return [random.integers(low, 100, COUNT).astype(kind), b]


def results_of(functions, a, b):
    """Each of some functions of an element of both arrays, by name, all in one kernel."""
    tensors = [te.placeholder(x.shape, x.dtype.name, name) for name, x in (("A", a), ("B", b))]
    made = [te.compute((COUNT,), lambda i, f=f: f(tensors[0][i], tensors[1][i]), name=name) for name, f in functions.items()]
    return dict(zip(functions, computed([*tensors, *made], a, b), strict=True))


def assert_equal(found, wanted):
    for name, array in found.items():
        assert array.dtype == wanted[name].dtype, name
        np.testing.assert_array_equal(array, wanted[name], err_msg=name)


COMMON = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "max": lambda a, b: te.max(a, b),
    "min": lambda a, b: te.min(a, b),
    "less": lambda a, b: a < b,
    "equal": lambda a, b: a == b,
    "both": lambda a, b: te.all(a < b, ~(b < 3)),
    "either": lambda a, b: te.any(a < b, b != 3),
    "select": lambda a, b: te.if_then_else(a < b, a, b),
    "negative": lambda a, b: -a,
    "abs": lambda a, b: abs(a),
    "beside": lambda a, b: 3 - a,
}


def common_in_numpy(a, b):
    return {
        "add": a + b,
        "subtract": a - b,
        "multiply": a * b,
        "max": np.maximum(a, b),
        "min": np.minimum(a, b),
        "less": a < b,
        "equal": a == b,
        "both": (a < b) & (b >= 3),
        "either": (a < b) | (b != 3),
        "select": np.where(a < b, a, b),
        "negative": -a,
        "abs": abs(a),
        "beside": a.dtype.type(3) - a,
    }


@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_of_floats(dtype):
    a, b = operands(dtype)
    functions = COMMON | {"divide": lambda a, b: a / b, "floor": lambda a, b: a // b, "mod": lambda a, b: a % b, "fmod": te.fmod}
    wide = (x.astype("float32") if x.dtype.itemsize == 2 else x for x in (a, b))
    x, y = wide
    wanted = common_in_numpy(a, b) | {
        "divide": (x / y).astype(a.dtype),
        "floor": np.floor(x / y).astype(a.dtype),
        "mod": np.mod(x, y).astype(a.dtype),
        "fmod": np.fmod(x, y).astype(a.dtype),
    }
    assert_equal(results_of(functions, a, b), wanted)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_arithmetic_of_integers(dtype):
    a, b = operands(dtype)
    functions = COMMON | {
        "floordiv": lambda a, b: a // b,
        "floormod": lambda a, b: a % b,
        "truncdiv": te.truncdiv,
        "truncmod": te.truncmod,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "not": lambda a, b: ~a,
        "left": lambda a, b: a << (b & 7),
        "right": lambda a, b: a >> (b & 7),
        "popcount": lambda a, b: te.popcount(a),
        "clz": lambda a, b: te.clz(a),
        "power": lambda a, b: te.power(a, b & 3),
        "float": lambda a, b: a.astype("float32") * 0.5,
    }
    bits = 8 * a.dtype.itemsize
    unsigned = [int(x) % (1 << bits) for x in a]
    wanted = common_in_numpy(a, b) | {
        "floordiv": a // b,
        "floormod": a % b,
        "truncdiv": np.fix(a / b).astype(a.dtype),
        "truncmod": np.fmod(a, b),
        "and": a & b,
        "or": a | b,
        "xor": a ^ b,
        "not": ~a,
        "left": a << (b & 7),
        "right": a >> (b & 7),
        "popcount": np.array([x.bit_count() for x in unsigned], a.dtype),
        "clz": np.array([bits - x.bit_length() for x in unsigned], a.dtype),
        "power": a ** (b & 3),
        "float": a.astype(np.float32) * np.float32(0.5),
    }
    assert_equal(results_of(functions, a, b), wanted)


ROUNDED = ("floor", "ceil", "trunc", "round")
MATHEMATICS = {
    **{name: getattr(np, name) for name in ("exp", "log", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", *ROUNDED)},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_floats(dtype):
    a = np.linspace(-3, 3, 9).astype(numpy_dtype(dtype))
    a[:2] = np.nan, np.inf
    A = te.placeholder((9,), dtype, "A")
    made = [te.compute((9,), lambda i, name=name: getattr(te, name)(A[i]), name=name) for name in MATHEMATICS]
    # One rounding of 16-bit results of at most half an ulp; f32 functions are accurate to a few ulps of 2**-23, f64 ones far more so.
    bound = {"float16": 2**-11, "bfloat16": 2**-8}.get(dtype, 1e-6)
    for (name, function), found in zip(MATHEMATICS.items(), computed([A, *made], a), strict=True):
        with np.errstate(all="ignore"):
            wanted = function(a.astype(np.float64))
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=bound, atol=bound / 8, err_msg=name)


def test_logaddexp():
    a, b = np.array([0, -np.inf, 3, 100], np.float32), np.array([1, -np.inf, -np.inf, 100], np.float32)
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    (found,) = computed([A, B, te.compute((4,), lambda i: te.logaddexp(A[i], B[i]))], a, b)
    np.testing.assert_allclose(found, np.logaddexp(a, b), rtol=1e-6)


def test_bools_and_conversions_of_every_kind():
    a, flags = np.array([-2.5, 0, 3.75, 1e9], np.float32), np.array([True, False, True, True])
    A, F = te.placeholder((4,), name="A"), te.placeholder((4,), "bool", "F")
    made = {
        "not": te.compute((4,), lambda i: ~F[i]),
        "and": te.compute((4,), lambda i: F[i] & (A[i] > 0)),
        "xor": te.compute((4,), lambda i: F[i] ^ (A[i] > 0)),
        "counted": te.compute((4,), lambda i: F[i].astype("int32") + 1),
        "number": te.compute((4,), lambda i: F[i] * A[i]),
        "test": te.compute((4,), lambda i: A[i].astype("bool")),
        "whole": te.compute((4,), lambda i: A[i].astype("int32")),
        "half": te.compute((4,), lambda i: te.cast("float16", A[i])),
        "narrow": te.compute((4,), lambda i: A[i].astype("float8_e4m3fn")),
        "constant": te.compute((4,), lambda i: te.const(True)),
        "chosen": te.compute((4,), lambda i: te.select(F[i], A[i] > 0, A[i] < 0)),
    }
    found = dict(zip(made, computed([A, F, *made.values()], a, flags), strict=True))
    positive = a > 0
    with np.errstate(over="ignore"):
        wanted = {
            "not": ~flags,
            "and": flags & positive,
            "xor": flags ^ positive,
            "counted": flags.astype(np.int32) + 1,
            "number": flags * a,
            "test": a.astype(bool),
            "whole": a.astype(np.int32),
            "half": a.astype(np.float16),
            "constant": np.ones(4, bool),
            "chosen": np.where(flags, positive, a < 0),
        }
    assert found.pop("narrow").astype(np.float32).tolist()[:3] == [-2.5, 0, 3.75]
    assert_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["int4", "uint2", "float8_e4m3fn", "float4_e2m1fn"])
def test_narrow_types_are_moved_and_converted(dtype):
    a, b = np.array([0, 1, 1, 0, 1, 1]).astype(numpy_dtype(dtype)), np.array([0, 1, 1.5, 0, 2, 0.5], np.float32)
    A, B = te.placeholder((6,), dtype, "A"), te.placeholder((6,), name="B")
    made = [
        te.compute((6,), lambda i: A[i].astype("float32") * B[i]),
        te.compute((6,), lambda i: B[i].astype(dtype)),
        te.compute((8,), lambda i: te.if_then_else(te.all(i > 0, i < 7), A[i - 1], te.const(0, dtype))),
    ]
    found = computed([A, B, *made], a, b)
    wanted = [a.astype(np.float32) * b, b.astype(a.dtype), np.pad(a.astype(np.float32), 1)]
    for array, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(array.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        ("float16", "float32", "float32"),
        ("bfloat16", "float32", "float32"),
        ("int64", "float16", "float16"),
        ("int8", "int32", "int32"),
        ("uint8", "uint16", "uint16"),
        ("uint32", "int8", "int32"),
        ("bool", "int8", "int8"),
        ("float64", "bool", "float64"),
    ],
)
def test_operands_meet_in_the_dtype_that_tvm_says(a, b, common):
    A, B = te.placeholder((4,), a, "A"), te.placeholder((4,), b, "B")
    assert (A[0] + B[0]).dtype == (B[0] * A[0]).dtype == common


def test_numbers_take_the_dtype_of_the_other_side():
    A, B = te.placeholder((4,), "uint8", "A"), te.placeholder((4,), "float16", "B")
    assert (A[0] + 1).dtype == "uint8" and (2.5 * B[0]).dtype == "float16" and (B[0] + np.float64(1)).dtype == "float16"
    assert (A[0] + 1.5).dtype == "float32" and (te.var("n") + 1).dtype == "int32"
    with pytest.raises(RelayError, match="expected a number that uint8 holds, found 256"):
        A[0] + 256


def test_expressions_print_as_they_are_written():
    A, n, k = te.placeholder((8, 8), name="A"), te.var("n"), te.reduce_axis((0, 8), "k")
    assert str(A[k // 2, (k + 1) % 8] * 2 - A[0][1]) == "(A[k // 2, (k + 1) % 8] * 2.0) - A[0, 1]"
    assert str(te.if_then_else(k < n, te.exp(A[k, 0]), 0)) == "if_then_else(k < n, exp(A[k, 0]), 0.0)"
    assert str(te.sum(A[0, k], axis=k)) == "sum(A[0, k], axis=[k])" and str(2 * n + 1 - n) == "n + 1"
    assert repr(A) == "Tensor(A: float32[8, 8])" and te.const(3, "int8").dtype == "int8"
    assert [te.min_value("int8").value, te.max_value("uint16").value, te.infinity("float32").value] == [-128, 65535, math.inf]
    assert (te.min_value("bool").value, te.max_value("bool").value) == (False, True)
    assert te.max_value("float16").value == 65504 and te.div(te.const(7), 2).dtype == "int32"


A = te.placeholder((4,), "float16", "A")
B = te.placeholder((4,), "bfloat16", "B")
W = te.placeholder((4,), "int32", "W")
F = te.placeholder((4,), "bool", "F")
N = te.placeholder((4,), "float8_e4m3fn", "N")
Q = te.placeholder((4,), "int4", "Q")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: A[0] + B[0],
            r"add of A\[0\] and B\[0\]: expected operands of dtypes that convert \(te.cast\), found float16 and bfloat16",
        ),
        (lambda: N[0] * N[1], r"multiply of N\[0\] and N\[1\]: expected operands of a dtype that is computed in"),
        (lambda: W[0] / W[1], r"/ of W\[0\] and W\[1\]: expected floats .*truncdiv.*found int32"),
        (lambda: F[0] + F[1], r"add of F\[0\] and F\[1\]: expected operands that are numbers .*found bool"),
        (lambda: A[0] & A[1], "bitwise_and of .*expected integers, found float16"),
        (lambda: W[0] << 32, "expected a shift by 0 to 31, found 32"),
        (lambda: W[0] >> -1, "expected a shift by 0 to 31, found -1"),
        (lambda: te.exp(W[0]), r"te.exp of W\[0\]: expected floats \(te.cast\), found int32"),
        (lambda: te.popcount(A[0]), r"te.popcount of A\[0\]: expected an integer, found float16"),
        (lambda: te.if_then_else(W[0], 1, 2), r"te.if_then_else: expected a condition, of dtype bool, found W\[0\] of dtype int32"),
        (lambda: te.all(), "te.all: expected one condition or more, found none"),
        (lambda: W[0] // 0, r"floor_divide of W\[0\]: expected a divisor other than 0, found 0"),
        (lambda: W[0] + "x", "add: expected an expression or a number, found 'x'"),
        (lambda: W[0].astype("decimal"), "te.cast: expected a dtype such as float32, int8 or bool, found 'decimal'"),
        (lambda: te.const(1.5, "int32"), "te.const: expected a number that int32 holds, found 1.5"),
        (lambda: te.var("2n"), "te.var: expected a name such as n, found '2n'"),
        (lambda: te.var("n", "float32"), "te.var n: expected int32 or int64"),
        (lambda: te.const("x"), "te.const: expected a number, found 'x'"),
        (lambda: te.const(128, "int8"), "te.const: expected a number that int8 holds, found 128"),
        (lambda: te.const(-129, "int8"), "te.const: expected a number that int8 holds, found -129"),
        (lambda: te.abs(F[0]), r"abs of F\[0\]: expected a number \(te.cast\), found bool"),
        (lambda: te.fmod(A[0]), "te.fmod: expected 2 values, found 1"),
        (lambda: te.isnan(F[0]), r"te.isnan of F\[0\]: expected a float or an integer, found bool"),
        (lambda: te.isnan(Q[0]), r"te.isnan of Q\[0\]: expected a float or an integer, found int4"),
        (lambda: te.popcount(Q[0]), r"te.popcount of Q\[0\]: expected an integer, found int4"),
        (lambda: te.floor(Q[0]), r"floor of Q\[0\]: expected operands of a dtype that is computed in"),
        (lambda: te.truncdiv(A[0], 2), r"te.truncdiv of A\[0\] and 2.0: expected integers, found float16"),
        (lambda: te.infinity("int8"), "te.infinity: expected a float dtype, found int8"),
    ],
)
def test_what_is_no_expression_is_an_error(make, message):
    with pytest.raises(RelayError, match=message):
        make()


def test_numbers_beyond_32_bits_have_64():
    last = 1 << 31
    assert [expr(number).dtype for number in (-last - 1, -last, last - 1, last)] == ["int64", "int32", "int32", "int64"]


def test_integers_are_finite_numbers():
    found = [getattr(te, name)(te.const(3, "int32")) for name in ("isnan", "isinf", "isfinite")]
    assert [(x.dtype, x.value) for x in found] == [("bool", False), ("bool", False), ("bool", True)]


def test_a_language_says_what_its_operators_do():
    class Bare(Operators):
        dtype = "int32"

    for use in (lambda x: x & x, lambda x: x < x, lambda x: -x, lambda x: x.astype("int64")):
        with pytest.raises(NotImplementedError):
            use(Bare())


def test_an_expression_is_neither_true_nor_false():
    with pytest.raises(TypeError, match=r"W\[0\] < 3: expected a number where Python asks whether it is true, found an expression"):
        bool(W[0] < 3)
    n, k = te.var("n"), te.reduce_axis((0, 4))
    assert n + 1 == 1 + te.var("n") and n != n + 1 and k == k and k in [n, k]


@pytest.mark.parametrize("count", [0, 31])
def test_shifts_by_nothing_and_to_the_highest_bit(count):
    assert (W[0] << count).dtype == (W[0] >> count).dtype == "int32"


def test_the_highest_bit_of_unsigned_numbers():
    for bits in (8, 64):
        a, top = np.arange(4, dtype=f"uint{bits}"), 1 << bits - 1
        A = te.placeholder((4,), a.dtype.name, "A")
        (found,) = computed([A, te.compute((4,), lambda i: A[i] ^ te.const(top, A.dtype))], a)  # noqa: B023
        np.testing.assert_array_equal(found, a ^ a.dtype.type(top))


def test_conditions_on_indices_and_other_names_of_operations():
    x, y = np.arange(10, dtype=np.float32), np.array([0, 3, 2, 3, 1, 5, 7, 7, 8, -9], np.float32)
    n, m = np.arange(-5, 5, dtype=np.int8), np.arange(10, dtype=np.float32).reshape(2, 5)
    tensors = [te.placeholder(v.shape, v.dtype.name, name) for name, v in (("X", x), ("Y", y), ("N", n), ("M", m))]
    X, Y, N, M = tensors
    i = np.arange(10)
    forms = {
        "both": (lambda i: X[te.if_then_else(te.all(i < 7, i > 2), i, 9 - i)], x[np.where((i < 7) & (i > 2), i, 9 - i)]),
        "either": (lambda i: X[te.if_then_else(te.any(i < 3, i >= 7), 9 - i, i)], x[np.where((i < 3) | (i >= 7), 9 - i, i)]),
        "and a constant": (lambda i: X[te.if_then_else(te.all(i < 7, te.const(True, "bool")), i, 9 - i)], x[np.where(i < 7, i, 9 - i)]),
        "of an element": (lambda i: X[te.if_then_else(N[i] < 0, i, 9 - i)], x[np.where(n < 0, i, 9 - i)]),
        "of an index and an element": (
            lambda i: X[te.if_then_else(te.all(i < 7, N[i] > -3), i, 9 - i)],
            x[np.where((i < 7) & (n > -3), i, 9 - i)],
        ),
        "between an index and an element": (lambda i: X[te.if_then_else(i < 4, i, N[i])], x[np.where(i < 4, i, np.maximum(n, 0))]),
        "truncdiv": (lambda i: X[te.truncdiv(i - 5, 2) + 2], x[np.trunc((i - 5) / 2).astype(int) + 2]),
        "truncmod": (lambda i: X[te.truncmod(i - 5, 3) + 2], x[np.fmod(i - 5, 3) + 2]),
        "itself": (lambda i: +X[i], x),
        "flag and number": (lambda i: ((X[i] > 2.0) + 1).astype("float32"), 1 + (x > 2)),
        "wide index": (lambda i: X[(i.astype("int64") * 2) // 2], x),
        "ceildiv": (lambda i: te.ceildiv(i, 4).astype("float32"), -(-i // 4)),
        "equal": (lambda i: te.if_then_else(X[i].equal(Y[i]), 1.0, 0.0), x == y),
        "always": (lambda i: te.if_then_else(te.const(True, "bool"), X[i], 7.0), x),
        "never": (lambda i: te.if_then_else(te.const(False, "bool"), X[i], 7.0), x * 0 + 7),
        "isnan": (lambda i: te.if_then_else(te.isnan(N[i]), 7.0, X[i]), x),
        "isfinite": (lambda i: te.if_then_else(te.isfinite(N[i]), 7.0, X[i]), x * 0 + 7),
        "bits": (lambda i: te.bitwise_not(N[i]).astype("float32"), ~n),
        "slice": (lambda i: M[i % 2][i // 2], m[i % 2, i // 2]),
        "cast": (lambda i: X[te.cast("int64", 9 - i)], x[::-1]),
        "constant": (lambda i: X[i] + te.cast("float32", te.const(3, "int32")), x + 3),
        "condition as an index": (lambda i: X[te.cast("int32", Y[i] > 2.0)], x[(y > 2).astype(int)]),
    }
    made = [te.compute((10,), make, name=name.replace(" ", "_")) for name, (make, _) in forms.items()]
    for (name, (_, wanted)), found in zip(forms.items(), computed([*tensors, *made], x, y, n, m), strict=True):
        np.testing.assert_array_equal(found, wanted.astype(np.float32), err_msg=name)
    axis = te.reduce_axis((2, 7), name="k")
    assert (axis.var is axis, [str(e) for e in axis.dom], str(M[3])) == (True, ["2", "5"], "M[3]")
    assert made[0].op.output(0) is made[0] and made[0].op.num_outputs == 1
