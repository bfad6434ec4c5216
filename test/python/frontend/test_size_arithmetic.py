"""Arithmetic on elements that are sizes or quotients of sizes: exact, or Inexact."""

import operator

import numpy as np
import pytest

from relayc.frontend.common.size_arithmetic import ARITHMETIC, converted, remainder
from relayc.frontend.onnx import fold_sizes
from relayc.frontend.sizes import Inexact, Ratio
from relayc.frontend.stablehlo import sizes as stablehlo_sizes
from relayc.frontend.steps import _first
from relayc.symbolic import Range, Ranges, evaluate, maximum, minimum, symbol

N, M, K = symbol("n"), symbol("m"), symbol("k")
RANGES = {"n": Range(0, 9), "m": Range(1, 9), "k": Range(-9, 9)}

VALUES = {
    **{
        f"divide {a} {b}": (ARITHMETIC["divide"], (a, b), expected)
        for a, b, expected in (
            (7, 2, 3),
            (-7, 2, -3),
            (N, 2, N // 2),
            (-N, 2, -(N // 2)),
            (0, 3, 0),
            (N, M, N // M),
            (1, M, 1 // M),
            (7, 0, None),
            (7, -2, None),
            (N, K, None),
            (Ratio(N), Ratio(2), Ratio(N, 2)),
            (Ratio(N), Ratio(-2), Ratio(-N, 2)),
            (Ratio(N), Ratio(0), None),
            (Ratio(N), Ratio(K), None),
            (Ratio(1), Ratio(M), Ratio(1, M)),
        )
    },
    **{
        f"mod {a} {b} {fmod}": (remainder(fmod), (a, b), expected)
        for a, b, fmod, expected in (
            (7, 3, False, 1),
            (-7, 3, False, 2),
            (7, 1, False, 0),
            (N, M, True, N % M),
            (N - 1, M, True, None),
            (N, M - 1, False, N % (M - 1)),
            (N, M - 2, False, None),
            (7, 1, True, 0),
            (0, 3, True, 0),
            (-7, 3, True, None),
            (N, 3, True, N % 3),
            (K, 3, True, None),
            (K, 3, False, K % 3),
            (7, -3, False, None),
            (7, 0, False, None),
            (7, K, False, None),
            (7, M, False, 7 % M),
            (7, N, False, 7 % N),
            (Ratio(N), Ratio(3), False, None),
        )
    },
    **{
        f"{name} {a} {b}": (ARITHMETIC[name], (a, b), expected)
        for name, a, b, expected in (
            ("maximum", N, 3, maximum(N, 3)),
            ("maximum", Ratio(N, 2), Ratio(3, 2), Ratio(maximum(N, 3), 2)),
            ("maximum", Ratio(N, 2), Ratio(3), None),
            ("minimum", Ratio(5), Ratio(3), Ratio(3)),
            ("equal", N, N, True),
            ("equal", 0, M, False),
            ("equal", 1, M, None),
            ("equal", Ratio(1, 2), Ratio(1), False),
            ("not_equal", N, N, False),
            ("less", Ratio(1, 3), Ratio(1, 2), True),
            ("less", Ratio(1, 2), Ratio(1, 2), False),
            ("less_equal", Ratio(1, 2), Ratio(1, 2), True),
            ("greater", 0, M, False),
            ("greater", M, 0, True),
            ("greater", Ratio(1, 2), Ratio(1, 2), False),
            ("greater_equal", N, 0, True),
            ("subtract", Ratio(N, 2), Ratio(1), Ratio(N - 2, 2)),
            ("subtract", Ratio(1, 2), Ratio(1, 2), Ratio(0)),
        )
    },
    **{
        f"abs {a}": (ARITHMETIC["abs"], (a,), expected)
        for a, expected in (
            (N, N),
            (-N, N),
            (0, 0),
            (Ratio(-N, 2), Ratio(N, 2)),
            (Ratio(N, 2), Ratio(N, 2)),
            (Ratio(K, 2), None),
        )
    },
    **{
        f"power {a} {b}": (fold_sizes._power, (a, b), expected)
        for a, b, expected in (
            (N, 0, 1),
            (N, 1, N),
            (N, 4, N * N * N * N),
            (N, 5, None),
            (N, -1, None),
            (N, M, None),
            (Ratio(N, 2), 2, Ratio(N * N, 4)),
            (Ratio(N, 2), 0, Ratio(1)),
            (N, Ratio(2), N * N),
            (N, Ratio(1, 2), None),
        )
    },
    **{
        f"stablehlo {name} {given}": (stablehlo_sizes._COMPUTED[name], given, expected)
        for name, given, expected in (
            ("and", (True, True), True),
            ("and", (np.True_, False), False),
            ("and", (True, 1), None),
            ("or", (False, np.True_), True),
            ("or", (False, False), False),
            ("or", (N, True), None),
            ("not", (np.False_,), True),
            ("not", (True,), False),
            ("not", (1,), None),
            ("clamp", (0, N, M), minimum(N, M)),
            ("clamp", (3, K, 5), minimum(maximum(K, 3), 5)),
            ("negate", (N,), -N),
            ("remainder", (-7, 3), None),
            ("remainder", (N, M), N % M),
            ("select", (np.True_, N, M), N),
            ("select", (False, N, M), M),
            ("select", (1, N, M), None),
            ("sign", (0,), 0),
            ("sign", (M,), 1),
            ("sign", (-M,), -1),
            ("sign", (N,), None),
            ("sign", (-N,), None),
            ("sign", (Ratio(1, 2),), None),
        )
    },
}


@pytest.mark.parametrize("name", VALUES)
def test_of_elements(name):
    compute, given, expected = VALUES[name]
    with Ranges(RANGES):
        if expected is None:
            with pytest.raises(Inexact):
                compute(*given)
            return
        found = compute(*given)
        assert type(found) is type(expected)
        if isinstance(found, Ratio):
            assert found.num * expected.den == expected.num * found.den
        else:
            assert found == expected


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64"])
def test_numbers_that_a_dtype_has(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    found = [stablehlo_sizes._fits(e, dtype) for e in (int(low) - 1, int(low), int(high), int(high) + 1)]
    assert found == [False, True, True, False]


@pytest.mark.parametrize("divisor", [1, 2, 5])
@pytest.mark.parametrize("number", range(-9, 10))
def test_quotients_of_a_size_of_any_sign_are_rounded_towards_zero(number, divisor):
    with Ranges(RANGES):
        found = ARITHMETIC["divide"](K, divisor)
        assert evaluate(found, {"k": number}) == int(operator.truediv(number, divisor))
        assert evaluate(ARITHMETIC["abs"](K), {"k": number}) == abs(number)


@pytest.mark.parametrize(
    ("element", "own", "target", "expected"),
    [
        (True, "bool", "float32", Ratio(1)),
        (N, "int64", "float64", Ratio(N)),
        (Ratio(N, 2), "float32", "float64", Ratio(N, 2)),
        (Ratio(N), "float32", "int64", N),
        (Ratio(-N), "float32", "int64", -N),
        (Ratio(N, 2), "float32", "int32", N // 2),
        (Ratio(-N, 2), "float32", "int32", None),
        (N, "int64", "int32", N),
        (M, "int64", "bool", True),
        (0, "int64", "bool", False),
        (N, "int64", "bool", None),
        (Ratio(M, 2), "float32", "bool", True),
        (Ratio(0), "float32", "bool", False),
        (N, "int64", "uint8", None),
        (N, "int32", "float16", None),
        (N, "uint8", "int64", None),
        (Ratio(N), "float16", "float32", None),
    ],
)
def test_conversions(element, own, target, expected):
    elements = np.array([element], object)
    with Ranges(RANGES):
        if expected is None:
            with pytest.raises(Inexact):
                converted(elements, own, target)
        else:
            (found,), dtype = converted(elements, own, target)
            assert (found, dtype, type(found)) == (expected, target, type(expected))


@pytest.mark.parametrize(
    ("compute", "given", "attributes", "expected"),
    [
        (fold_sizes._sum_so_far, [[N, 2, M]], {}, [N, N + 2, N + M + 2]),
        (fold_sizes._sum_so_far, [[N]], {"exclusive": 1}, None),
        (fold_sizes._sum_so_far, [[N]], {"reverse": 1}, None),
        (fold_sizes._sum_so_far, [[[N, 2]]], {}, None),
        (fold_sizes._clipped, [[N, 1], 2], {}, [maximum(N, 2), 2]),
        (fold_sizes._clipped, [[Ratio(N, 2)], Ratio(2)], {}, None),
        (fold_sizes._clipped, [[3, 12, 1], 2, 7], {}, [3, 7, 2]),
        (fold_sizes._clipped, [[3, 12, 1], None, 7], {}, [3, 7, 1]),
        (fold_sizes._clipped, [[3, 12, 1], 2], {}, [3, 12, 2]),
        (fold_sizes._clipped, [[3, 12, 1]], {}, [3, 12, 1]),
        (fold_sizes._COMPUTED["ReduceSum"], [[[N, 2], [3, 4]], [0]], {"keepdims": 0}, [N + 3, 6]),
        (fold_sizes._COMPUTED["ReduceSum"], [[[N, 2], [3, 4]], [-1]], {}, [[N + 2], [7]]),
        (fold_sizes._COMPUTED["ReduceSum"], [[[N, 2], [3, 4]]], {}, [[N + 9]]),
        (fold_sizes._COMPUTED["ReduceSum"], [[[N, 2], [3, 4]], None], {"noop_with_empty_axes": 1}, [[N, 2], [3, 4]]),
        (fold_sizes._COMPUTED["ReduceSum"], [[[N, 2], [3, 4]], []], {"keepdims": 0}, N + 9),
        (fold_sizes._COMPUTED["ReduceProd"], [[]], {}, None),
        (fold_sizes._COMPUTED["ReduceProd"], [[[N, 2], [3, 4]]], {"axes": [1], "keepdims": 0}, [2 * N, 12]),
        (fold_sizes._COMPUTED["Floor"], [[Ratio(N, 2)]], {}, [Ratio(N // 2)]),
        (fold_sizes._COMPUTED["Ceil"], [[Ratio(N, 2)]], {}, [Ratio(-(-N // 2))]),
        (fold_sizes._COMPUTED["Floor"], [[N]], {}, None),
    ],
)
def test_of_arrays(compute, given, attributes, expected):
    arrays = [None if g is None else np.array(g, object) for g in given]
    with Ranges(RANGES):
        if expected is None:
            with pytest.raises(Inexact):
                compute(arrays, "int64", attributes)
        else:
            found, dtype = compute(arrays, "int64", attributes)
            assert (found.tolist(), dtype) == (expected, "int64")


@pytest.mark.parametrize(
    ("begin", "size", "expected"),
    [
        (3, 4, 3),
        (-1, 4, -1),
        (-4, 4, -4),
        (-5, 4, 0),
        (-1, 0, -1),
        (N, 4, N),
        (-1, N, -1),
        (-2, N, maximum(N - 2, 0)),
        (-1, M, -1),
        (-2, M, maximum(M - 2, 0)),
        (-5, M + 4, -5),
        (-6, M + 4, maximum(M - 2, 0)),
    ],
)
def test_where_a_slice_backwards_begins(begin, size, expected):
    with Ranges(RANGES):
        assert _first(begin, size) == expected
