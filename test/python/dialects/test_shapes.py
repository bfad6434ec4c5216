"""Shapes, layouts, types and conditions of type relations, at the limits of each, without operators around them."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import OPS, RelayError, TensorType
from relayc.dialects.relay.base import View
from relayc.dialects.relay.conditions import (
    collected,
    require_at_least,
    require_at_most,
    require_divides,
    require_equal,
    require_type,
)
from relayc.dialects.relay.elements import has_seven_bits, uniform_element
from relayc.dialects.relay.errors import Unequal, may_equal
from relayc.dialects.relay.fourier import LARGEST_FACTOR, PLAN, plan_of
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.reshape import same_elements
from relayc.dialects.relay.shapes import broadcast_shapes, normalize_axis, product, shape_text
from relayc.dialects.relay.slices import slice_bounds, slices, split_bounds
from relayc.dialects.relay.types import (
    DTYPES,
    MAX_BYTES,
    MLIR_NAMES,
    STRING,
    TupleType,
    dtype_of,
    flat_types,
    is_bytes,
    relay_type,
    signless_dtype,
)
from relayc.dialects.relay.window import extent, padding_pairs, per_axis
from relayc.symbolic import FAR, Range, Ranges, evaluate, maximum, parse, symbol

N, M = symbol("n"), symbol("m")

# ---- axes and shapes -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_axes(rank: int) -> None:
    assert [normalize_axis(axis, rank) for axis in range(-rank, rank)] == [*range(rank), *range(rank)]
    for axis in (-rank - 1, rank):
        with pytest.raises(RelayError, match=rf"^way: expected a value in \[-{rank}, {rank}\), found {axis}$"):
            normalize_axis(axis, rank, "way")


def test_no_axis_of_a_scalar() -> None:
    for axis in (-1, 0, 1):
        with pytest.raises(RelayError, match=r"^axis: expected a value in \[0, 0\)"):
            normalize_axis(axis, 0)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_shapes_broadcast_as_those_of_numpy(count: int) -> None:
    shapes = [(), (1,), (3,), (0,), (2, 1), (2, 3), (1, 3), (4, 1, 3), (1, 1, 1), (0, 3), (4, 2, 1)]
    for some in itertools.product(shapes, repeat=count):
        try:
            expected = np.broadcast_shapes(*some)
        except ValueError:
            with pytest.raises(RelayError, match="shapes do not broadcast: expected equal or 1 in dimension") as error:
                broadcast_shapes(*some)
            assert not isinstance(error.value, Unequal)
        else:
            assert broadcast_shapes(*some) == expected


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(N, 1), (3,)], (N, 3)),
        ([(N,), (N,), (1,)], (N,)),
        ([(None,), (3,)], (3,)),
        ([(None,), (1,)], (None,)),
        ([(None,), (N,)], (N,)),
        ([(None, 1), (None,)], (None, None)),
        ([], ()),
    ],
)
def test_shapes_with_sizes_that_are_no_numbers(shapes: list, expected: tuple) -> None:
    assert broadcast_shapes(*shapes) == expected


@pytest.mark.parametrize(("a", "b", "may_be"), [(N, M, True), (N, 3, True), (N, N + 1, False), (3, 4, False)])
def test_sizes_that_do_not_broadcast(a: Any, b: Any, may_be: bool) -> None:
    with pytest.raises(RelayError, match="in dimension 1, found") as error:
        broadcast_shapes((2, a), (1, b))
    assert isinstance(error.value, Unequal) == may_be == may_equal(a, b) == may_equal(b, a)
    if isinstance(error.value, Unequal):
        assert {error.value.a, error.value.b} == {a, b}


def test_sizes_of_which_one_is_always_larger_are_never_equal() -> None:
    with Ranges({"m": Range(3, 12)}):
        assert not may_equal(M // 2, maximum(5, M))
        assert may_equal(M // 2, maximum(5, M) - 3)  # where m is 5


def test_texts_and_products_of_shapes() -> None:
    assert [shape_text(s) for s in ((), (2,), (N, None))] == ["()", "(2,)", "(n, None)"]
    assert [product(s) for s in ((), (2, 3), (0, N), (2, N, N), (2, None), (0, None))] == [1, 6, 0, 2 * N * N, None, None]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ((2, 3), (6,), True),
        ((2, 3), (5,), False),
        ((2, N), (N, 2), True),
        ((2, N), (N,), False),
        ((N,), (3,), False),
        ((None,), (3,), True),
        ((3,), (2, None), True),
        ((), (1, 1), True),
        ((0, 3), (5, 0), True),
        ((parse("n//2 + (n + 1)//2"),), (N,), True),
        ((parse("n"),), (parse("n + max(m - n, 0)"),), False),
        ((parse("n + max(m - n, 0)"),), (parse("n"),), False),
    ],
)
def test_shapes_of_as_many_elements(a: tuple, b: tuple, same: bool) -> None:
    assert same_elements(a, b) == same_elements(b, a) == same


def test_as_many_elements_as_a_symbol_of_one_value() -> None:
    with Ranges({"n": Range(3, 3)}):
        assert same_elements((3,), (N,)) == same_elements((N,), (3,))


# ---- conditions ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("least", "size", "holds"), [(3, 3, True), (3, 4, True), (3, 2, False), (0, 0, True), (5, None, True)])
def test_at_least_a_number(least: int, size: int | None, holds: bool) -> None:
    for ask in (
        lambda: require_at_least(least, size, "it", "enough", "less"),
        lambda: require_at_most(size, least, "it", "enough", "less"),
    ):
        with collected() as conditions:
            if holds:
                ask()
            else:
                with pytest.raises(RelayError, match=r"^it: expected enough, found less$"):
                    ask()
        assert not conditions
    require_at_most(None, 3, "it", "", "")


@pytest.mark.parametrize(
    ("least", "low", "high", "found"),
    [
        (3, 3, 9, "holds"),
        (3, 2, 9, "open"),
        (3, 0, 3, "open"),
        (3, 0, 2, "never"),
        (0, 0, 0, "holds"),
        (1, 0, 0, "never"),
        (M, 2, 9, "open"),
    ],
)
def test_at_least_a_size(least: Any, low: int, high: int, found: str) -> None:
    with Ranges({"n": Range(low, high), "m": Range(4, 5)}):
        with collected() as conditions:
            if found == "never":
                with pytest.raises(RelayError, match=r"^it: expected enough, found n$"):
                    require_at_least(least, N, "it", "enough", N)
            else:
                require_at_least(least, N, "it", "enough", N)
        assert [(c.size, c.text) for c in conditions] == ([(N - least, "it: expected enough, found n")] if found == "open" else [])
        with collected():
            pass
        if found == "open":
            require_at_least(least, N, "it", "enough", N)  # nothing collects them here


def test_contexts_that_collect_are_inside_each_other() -> None:
    with collected() as outer:
        with collected() as inner:
            require_at_least(1, N, "a", "x", "y")
        require_at_least(2, N, "b", "x", "y")
    assert [c.text[0] for c in inner] == ["a"] and [c.text[0] for c in outer] == ["b"]


def test_equal_sizes() -> None:
    for a, b in ((3, 3), (N, N), (None, 3), (N, None)):
        require_equal(a, b, "it", a, b)
    for a, b, may_be in ((3, 4, False), (N, M, True), (N, N - 1, False)):
        with pytest.raises(RelayError, match=f"^it: expected {a}, found {b}$") as error:
            require_equal(a, b, "it", a, b)
        assert isinstance(error.value, Unequal) == may_be


def test_equal_types() -> None:
    type_ = TensorType((N, 3, None), "float32")
    for other in ((N, 3, 5), (None, 3, 5), (N, 3, None)):
        require_type(type_, type_.with_shape(other), "it")
    for other, may_be in (
        (type_.with_dtype("int32"), False),
        (type_.with_shape((N, 3)), False),
        (type_.with_shape((M, 3, 1)), True),
        # What cannot be is said before what may be, in whatever order.
        (type_.with_shape((M, 4, 1)), False),
        (TensorType((N + 1, M, 1), "float32"), False),
    ):
        with pytest.raises(RelayError, match=r"^it: expected tensor") as error:
            require_type(type_, other, "it")
        assert isinstance(error.value, Unequal) == may_be, other


@pytest.mark.parametrize(
    ("den", "num", "expected"),
    [
        (3, 12, 4),
        (3, 13, RelayError),
        (0, 12, RelayError),
        (1, 0, 0),
        (5, 0, 0),
        (3, None, None),
        (2, 4 * N, 2 * N),
        (N, 4 * N, 4),
        (N, N * M, M),
        (2, N, Unequal),
        (2, 2 * N + 1, RelayError),
        (N, M, Unequal),
        (0, N, RelayError),
        (4, parse("4*(n//4)"), parse("n//4")),
        (8, parse("8*((n + 7)//8) - 8*(m//8)"), parse("(n + 7)//8 - m//8")),
    ],
)
def test_divisors_of_sizes(den: Any, num: Any, expected: Any) -> None:
    if not isinstance(expected, type):
        assert require_divides(den, num, "it", "a divisor", den) == expected
        return
    with pytest.raises(RelayError, match=f"^it: expected a divisor, found {den}$") as error:
        require_divides(den, num, "it", "a divisor", den)
    assert type(error.value) is expected


# ---- parts of axes ---------------------------------------------------------------------------------------------------------------------


def test_slices_of_numbers_are_those_of_python() -> None:
    for size in (0, 1, 2, 5):
        for begin, end, stride in itertools.product((-7, -5, -1, 0, 1, 4, 5, 7), (None, -7, -1, 0, 2, 5, 9), (1, 2, -1, -3)):
            start, count = slice_bounds(size, begin, end, stride)
            found = list(range(size))[begin:end:stride]
            assert count == len(found) and (not found or start == found[0]), (size, begin, end, stride)


@pytest.mark.parametrize("stride", [1, 2, 3, -1, -2])
@pytest.mark.parametrize("begin", [0, 1, -1, -3, 4, 1 << 31, -(1 << 31)])
def test_slices_of_symbols_are_those_of_python(begin: int, stride: int) -> None:
    for end in (None, 0, 2, -1, -2, 7, (1 << 31) - 1, -(1 << 31) + 1):
        start, count = slice_bounds(N, begin, end, stride)
        by_symbol = slice_bounds(N, M, end, stride) if 0 <= begin < 9 else None
        for size in (0, 1, 2, 3, 4, 6, 9):
            found = list(range(size))[begin:end:stride]
            assert evaluate(count, {"n": size}) == len(found), (size, begin, end)
            assert not found or evaluate(start, {"n": size}) == found[0]
            if by_symbol is not None:
                assert [evaluate(x, {"n": size, "m": begin}) for x in by_symbol][1] == len(found)


def test_counts_of_slices_are_written_as_they_are_read() -> None:
    assert slice_bounds(M, N, None, 1)[1] == maximum(0, M - N)
    assert slice_bounds(M, -1 - N, None, 1)[1] == maximum(0, M - maximum(0, M - N - 1))
    with Ranges({"n": Range(0, 2 * FAR)}):
        assert slice_bounds(N, 0, FAR, 1) == slice_bounds(N, -FAR, None, 1) == (0, N)
    for left in (1, 2):
        assert slice_bounds(N, N - left, None, 1)[1] == maximum(0, N - maximum(0, N - left))


@pytest.mark.parametrize("index", [-N, N - 1, N - 3, N - 9, 2 - N, M - 1, M - N, N - symbol("k")])
def test_slices_from_or_to_an_index_of_either_sign(index: Any) -> None:
    for stride in (1, 2, -1):
        found = slice_bounds(M, index, None, stride), slice_bounds(M, 0 if stride > 0 else M, index, stride)
        for m, n, k in itertools.product((0, 1, 4), (0, 1, 2, 5, 10), (0, 3)):
            at = evaluate(index, sizes := {"m": m, "n": n, "k": k})
            for (_, count), expected in zip(found, (range(m)[at::stride], range(m)[0 if stride > 0 else m : at : stride]), strict=True):
                assert evaluate(count, sizes) == len(expected), (sizes, stride)


@pytest.mark.parametrize(
    ("begin", "size", "end"),
    [
        (N, 3, N + 3),
        (N, -1, None),
        (-N - 2, N + 1, -1),
        (-3, 3, None),
        (-N - 1, N + 1, None),
        (-N, N, RelayError),
        (-N - 1, 1, RelayError),
        (N - 1, 3, RelayError),
    ],
)
def test_slices_of_a_size(begin: Any, size: Any, end: Any) -> None:
    """From a begin that counts from the end to the end itself, not to the first element."""
    op = View(begin=(begin,), end=(size,), axes=None, strides=(1,), slice_mode="size")
    with Ranges({"n": Range(0, 8)}):
        if end is RelayError:
            with pytest.raises(RelayError, match="begin: expected one that is known to count from the front with slice_mode size"):
                slices(op, 1)
        else:
            assert slices(op, 1) == {0: (begin, end, 1)}


@pytest.mark.parametrize(("low", "high", "known"), [(1, 8, True), (0, 8, False), (-8, -1, True), (-8, 0, False)])
def test_the_step_of_a_range_has_a_known_sign(low: int, high: int, known: bool) -> None:
    op = View(start=0.0, stop=12, step=N, dtype="int64")
    with Ranges({"n": Range(low, high)}):
        if known:
            assert OPS["arange"].infer(op).rank == 1
        else:
            with pytest.raises(RelayError, match="step: expected a known sign"):
                OPS["arange"].infer(op)


@pytest.mark.parametrize(
    ("size", "parts", "expected"),
    [
        (6, 1, [(0, 6)]),
        (6, 3, [(0, 2), (2, 4), (4, 6)]),
        (0, 2, [(0, 0), (0, 0)]),
        (6 * N, 2, [(0, 3 * N), (3 * N, 6 * N)]),
        (6, (2, 5), [(0, 2), (2, 5), (5, 6)]),
        (6, (0, 0, 6), [(0, 0), (0, 0), (0, 6), (6, 6)]),
        (6, (), [(0, 6)]),
        (N, (2, M), [(0, 2), (2, M), (M, N)]),
    ],
)
def test_parts_of_a_split(size: Any, parts: Any, expected: list) -> None:
    assert split_bounds(size, parts) == expected


@pytest.mark.parametrize(("size", "parts"), [(6, 0), (6, 4), (6, -1), (6, (3, 2)), (6, (-1,)), (6, (7,)), (5, (2, 6))])
def test_parts_that_are_none(size: Any, parts: Any) -> None:
    with pytest.raises(RelayError, match="indices_or_sections: expected"):
        split_bounds(size, parts)


# ---- windows ---------------------------------------------------------------------------------------------------------------------------


def test_attributes_of_axes() -> None:
    assert (
        per_axis((2,), 3, "strides") == (2, 2, 2) and per_axis((1, 2), 2, "strides") == (1, 2) and per_axis((0,), 1, "p", least=0) == (0,)
    )
    for values, n, message in (
        ((1, 2), 3, r"expected 1 or 3 values, found \(1, 2\)"),
        ((1, 2), 1, "expected 1 value, found"),
        ((), 2, "expected 1 or 2"),
        ((1, 0), 2, "expected values of at least 1"),
    ):
        with pytest.raises(RelayError, match=message):
            per_axis(values, n, "strides")
    assert padding_pairs((1,), 2) == ((1, 1), (1, 1)) and padding_pairs((1, 2), 2) == ((1, 1), (2, 2))
    assert padding_pairs((1, 2, 3, 4), 2) == ((1, 3), (2, 4)) and padding_pairs((1, 2), 1) == ((1, 2),)
    assert padding_pairs((1, 2, 3, 4, 5, 6), 3) == ((1, 4), (2, 5), (3, 6)) and padding_pairs((0,), 3) == ((0, 0),) * 3
    for padding, n, message in (
        ((1, 2, 3), 2, "expected 1 or 2 or 4 values"),
        ((), 1, "expected 1 or 2 values"),
        ((0, -1), 2, "of at least 0"),
        ((0, 0, 0, -1), 2, "of at least 0"),
    ):
        with pytest.raises(RelayError, match=message):
            padding_pairs(padding, n)
    assert [extent(k, d) for k, d in ((1, 5), (3, 1), (3, 2), (N, 3))] == [1, 3, 5, 3 * N - 2]


# ---- layouts ---------------------------------------------------------------------------------------------------------------------------


def test_layouts() -> None:
    found = layout("NCHW16c", "NCHW")
    assert (found.rank, found.letters, found.blocks, found.axes) == (5, "NCHW", {"C": 16}, ("N", "C", "H", "W", "c"))
    assert [found.index(a) for a in "NCHWc"] == [0, 1, 2, 3, 4] and found.block("C") == 16 and found.block("N") == 1
    assert found.logical((1, 2, 5, 6, 16)) == {"N": 1, "C": 32, "H": 5, "W": 6}
    assert (
        found.logical((N, M, None, 6, 16)) == {"N": N, "C": 16 * M, "H": None, "W": 6} and found.logical((1, None, 2, 3, 16))["C"] is None
    )
    assert found.shape({"N": 1, "C": 32, "H": N, "W": None}) == (1, 2, N, None, 16)
    assert found.shape({"N": 1, "C": 0, "H": 1, "W": 1})[1] == 0
    two = layout("OIHW8o4i")
    assert two.logical((2, 3, 1, 1, 8, 4)) == {"O": 16, "I": 12, "H": 1, "W": 1} and two.shape({"O": 16, "I": 12, "H": 1, "W": 1})[:2] == (
        2,
        3,
    )
    for shape, message in (
        ((1, 2, 5, 6), r"rank of data: expected 5 \(layout NCHW16c\), found 4"),
        ((1, 2, 5, 6, 8), "data, dimension c of layout NCHW16c: expected 16, found 8"),
    ):
        with pytest.raises(RelayError, match=message):
            found.logical(shape)
    with pytest.raises(RelayError, match="result, axis C of layout NCHW16c: expected a multiple of 16, found 40"):
        found.shape({"N": 1, "C": 40, "H": 1, "W": 1})


def test_a_layout_of_a_blocked_axis_alone() -> None:
    assert layout("C8c").blocks == {"C": 8}


@pytest.mark.parametrize("text", ["", "N C", "NCc", "NCN", "NC0c", "N16c", "NCHWc16", "nc", "NC8c4c", "NCHW-", "N16C", "8cN"])
def test_texts_that_are_no_layouts(text: str) -> None:
    with pytest.raises(RelayError, match=r"^way: expected a layout such as NCHW or NCHW16c, found"):
        layout(text, name="way")


def test_layouts_of_other_axes() -> None:
    assert layout("NHWC", "NCHW").letters == "NHWC" and layout("8cNC", "CN").letters == "NC"
    for text in ("NCW", "NCDHW", "OIHW"):
        with pytest.raises(RelayError, match=f"^layout: expected the axes N, C, H, W, found '{text}'"):
            layout(text, "NCHW")


# ---- types -----------------------------------------------------------------------------------------------------------------------------


def test_what_a_dtype_is() -> None:
    for dtype in MLIR_NAMES:
        type_ = TensorType((2,), dtype)
        narrow = dtype not in ("bool", "string") and (
            (dtype.startswith("float") and int(dtype[5:].split("_")[0]) <= 8) or dtype.endswith(("t2", "t4"))
        )
        assert type_.is_narrow == narrow
        assert type_.is_computed == (not narrow and dtype != "string")
        assert type_.is_float == (not narrow and "float" in dtype)
        assert type_.is_unsigned == (dtype == "bool" or dtype[0] == "u")
        assert type_.num_bytes == 2 * DTYPES[dtype].itemsize
        assert TensorType.of_array(np.zeros(2, DTYPES[dtype])) == type_ and dtype_of(np.zeros(0, DTYPES[dtype])) == dtype
        stands_for = signless_dtype(dtype)
        assert DTYPES[stands_for].itemsize == DTYPES[dtype].itemsize
        assert stands_for == dtype if type_.is_float else stands_for[:3] == "int" and not TensorType((), stands_for).is_narrow
    assert dtype_of(np.zeros(1, STRING)) == "string"
    with pytest.raises(ValueError, match="unknown dtype 'float31'; expected one of"):
        TensorType((), "float31")


@pytest.mark.parametrize(
    ("a", "b", "accepts"),
    [
        (TensorType((2, None), "int8"), TensorType((2, 3), "int8"), True),
        (TensorType((2, 3), "int8"), TensorType((None, 3), "int8"), True),
        (TensorType((2, 3), "int8"), TensorType((2, 4), "int8"), False),
        (TensorType((2, 3), "int8"), TensorType((2, 3), "uint8"), False),
        (TensorType((2,), "int8"), TensorType((2, 1), "int8"), False),
        (TensorType((N,), "int8"), TensorType((N,), "int8"), True),
        (TensorType((N,), "int8"), TensorType((M,), "int8"), False),
        (TupleType((TensorType((None,), "int8"),)), TupleType((TensorType((2,), "int8"),)), True),
        (TupleType((TensorType((2,), "int8"),)), TupleType((TensorType((3,), "int8"),)), False),
        (TupleType((TensorType((2,), "int8"),)), TupleType((TensorType((2,), "int8"),) * 2), False),
        (TupleType(()), TupleType(()), True),
        (TupleType((TensorType((2,), "int8"),)), TensorType((2,), "int8"), False),
        (TensorType((2,), "int8"), TupleType((TensorType((2,), "int8"),)), False),
    ],
)
def test_types_that_may_be_others(a: Any, b: Any, accepts: bool) -> None:
    assert a.accepts(b) == accepts


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((MAX_BYTES,), "int8", None),
        ((MAX_BYTES + 1,), "int8", f"expected at most {MAX_BYTES} bytes, found {MAX_BYTES + 1}"),
        ((MAX_BYTES // 4,), "float32", None),
        ((MAX_BYTES // 4, 2), "float32", "expected at most"),
        ((0, MAX_BYTES + 1), "int8", "expected at most"),
        ((0, 0), "int8", None),
        ((N, MAX_BYTES), "int8", None),
        ((None, MAX_BYTES + 1), "int8", "expected at most"),
        ((-1,), "int8", r"expected dimensions of 0 or more, found \[-1\]"),
        ((2, -N - 1), "int8", "expected dimensions of 0 or more"),
        ((-N,), "int8", None),
        ((N - 1,), "int8", None),
    ],
)
def test_types_that_fit_memory(shape: tuple, dtype: str, message: str | None) -> None:
    type_ = TensorType(shape, dtype)
    if message is None:
        type_.check_size()
    else:
        with pytest.raises(RelayError, match=f"shape: {message}"):
            type_.check_size()


def test_types_as_text_and_back() -> None:
    types = [TensorType(s, d) for s in ((), (0,), (2, 3), (N, 3), (None, 2 * N), (None, None)) for d in ("float32", "uint8", "bool")]
    texts = ["tensor<f32>", "tensor<0xui8>", "tensor<2x3xi1>", 'tensor<?x3xf32, ["n"]>', 'tensor<?x?xui8, ["?", "2*n"]>', "tensor<?x?xi1>"]
    assert [str(t) for t in types[::4] + types[1::3]][:2] == ["tensor<f32>", "tensor<0xui8>"] and set(texts) <= set(map(str, types))
    with make_context(), ir.Location.unknown():
        for type_ in types:
            assert relay_type(type_.to_mlir()) == type_ and str(type_.to_mlir()) == str(type_)
        both = TupleType((types[0], TupleType((types[4], types[6]))))
        assert relay_type(both.to_mlir()) == both and flat_types(both) == both.flat == (types[0], types[4], types[6])
        for text in ("f32", "vector<2xf32>", "memref<2xf32>", "tensor<*xf32>", "tensor<2xi3>", "tensor<2xcomplex<f32>>"):
            with pytest.raises(TypeError):
                relay_type(ir.Type.parse(text))
        for text in ('tensor<?x?xf32, ["n"]>', 'tensor<?xf32, ["n", "m"]>', "tensor<?xf32, [1]>", "tensor<?xf32, 3>"):
            with pytest.raises(TypeError, match="expected an encoding of"):
                relay_type(ir.Type.parse(text))


def test_values_that_are_tensors_of_bytes() -> None:
    expected = {"tensor<2xi8>": True, 'tensor<?xui8, ["n"]>': True, "tensor<?xi8>": False, "tensor<2xi4>": False, "tensor<2xi16>": False}
    expected |= {"tensor<i8>": True, "tuple<tensor<2xi8>>": False, "i8": False}
    with make_context(), ir.Location.unknown():
        block = ir.Module.parse(f"func.func private @f({', '.join(f'%a{i}: {t}' for i, t in enumerate(expected))}) {{ return }}")
        arguments = block.body.operations[0].regions[0].blocks[0].arguments
        assert [is_bytes(value) for value in arguments] == list(expected.values())


# ---- elements --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype", "seven"),
    [
        ([-64, 64], "int8", True),
        ([-65], "int8", False),
        ([65], "int8", False),
        ([], "int8", False),
        ([3], "uint8", False),
        ([3], "int16", False),
    ],
)
def test_bytes_of_seven_bits(values: list[int], dtype: str, seven: bool) -> None:
    assert has_seven_bits(np.array(values, dtype)) is seven


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.float32([2.5, 2.5]), 2.5),
        (np.float32([2.5, 2.5, 2]), None),
        (np.float32([0.0, -0.0]), None),
        (np.float32([]), None),
        (np.float32(7), 7.0),
        (np.array([[True, True]]), True),
        (np.int64([[3], [3]]), 3),
        (np.array([1, 1], ml_dtypes.bfloat16), 1.0),
        (np.array([5, 5], np.int64).view(STRING), 5),
        (np.array([5, 6], np.int64).view(STRING), None),
    ],
)
def test_the_one_element_of_an_array(array: np.ndarray, expected: Any) -> None:
    found = uniform_element(array)
    assert found == expected and type(found) is type(expected)
    assert math.isnan(uniform_element(np.float64([np.nan, np.nan])))  # type: ignore[arg-type]


# ---- plans of Fourier transforms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "factors"),
    [
        (1, []),
        (2, [2]),
        (4, [4]),
        (8, [8]),
        (16, [4, 4]),
        (32, [8, 4]),
        (64, [8, 8]),
        (128, [8, 4, 4]),
        (24, [8, 3]),
        (48, [4, 4, 3]),
        (12, [4, 3]),
    ],
)
def test_plans(length: int, factors: list[int]) -> None:
    assert plan_of(length) == [1, len(factors), *factors]


def test_a_plan_has_the_factors_of_its_length() -> None:
    assert plan_of(0) == [0, 0]
    assert [plan_of(61), plan_of(67), plan_of(61 * 61), plan_of(2 * 67)] == [[1, 1, 61], [67, 0], [1, 2, 61, 61], [67, 1, 2]]
    is_prime: Callable[[int], bool] = lambda n: n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))  # noqa: E731
    for length in (*range(1, 300), 1 << 20, 3**12, 61 * 59 * 53, 2**62):
        left, count, *factors = plan_of(length)
        assert left * math.prod(factors) == length and count == len(factors) <= PLAN - 2
        even, odd = [f for f in factors if f % 2 == 0], [f for f in factors if f % 2]
        assert factors == even + odd and odd == sorted(odd) and all(is_prime(f) and f <= LARGEST_FACTOR for f in odd)
        assert set(even) <= {2, 4, 8} and even == sorted(even, reverse=True) and even.count(2) <= 1
        assert left % 2 and all(left % p for p in range(3, LARGEST_FACTOR + 1) if is_prime(p))
