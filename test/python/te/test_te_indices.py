"""Any arithmetic of indices agrees with numpy, as what is read and as what is computed, and nothing is read out of bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_expressions import computed

from relayc import te
from relayc.pipelines.te.language.indices import interval, is_within, linear, out_of_bounds
from relayc.symbolic import Range, Ranges, evaluate

EXTENTS = (6, 5)
ROWS, COLUMNS = np.meshgrid(*map(np.arange, EXTENTS), indexing="ij")
OPERATIONS = {
    "add": (lambda a, b: a + b, np.add),
    "subtract": (lambda a, b: a - b, np.subtract),
    "multiply": (lambda a, b: a * b, np.multiply),
    "min": (lambda a, b: te.min(a, b), np.minimum),
    "max": (lambda a, b: te.max(a, b), np.maximum),
}
DIVISIONS = {
    "floordiv": (lambda a, b: a // b, np.floor_divide),
    "floormod": (lambda a, b: a % b, np.mod),
    "truncdiv": (te.truncdiv, lambda a, b: np.fix(a / b).astype(np.int64)),
    "truncmod": (te.truncmod, np.fmod),
}


@st.composite
def expressions(draw, depth=3):
    """A function of two indices as te and as numpy read it."""
    kind = (
        draw(st.sampled_from(("i", "j", "number"))) if depth == 0 else draw(st.sampled_from(("i", "j", "operation", "division", "select")))
    )
    if kind in ("i", "j"):
        return (lambda i, j: i if kind == "i" else j), ROWS if kind == "i" else COLUMNS
    if kind == "number":
        number = draw(st.integers(-7, 7))
        return (lambda i, j: te.const(number)), np.full(EXTENTS, number)
    (left, a), (right, b) = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    if kind == "operation":
        made, function = OPERATIONS[draw(st.sampled_from(sorted(OPERATIONS)))]
        return (lambda i, j: made(left(i, j), right(i, j))), function(a, b)
    if kind == "division":
        made, function = DIVISIONS[draw(st.sampled_from(sorted(DIVISIONS)))]
        divisor = draw(st.sampled_from((-3, 1, 2, 3, 4, 7)))
        return (lambda i, j: made(left(i, j), divisor)), function(a, divisor)
    return (lambda i, j: te.if_then_else(left(i, j) < right(i, j), left(i, j), right(i, j) + 1)), np.where(a < b, a, b + 1)


# Several expressions are compiled together; derandomized, so that a run tells the same as the one before.
@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.lists(expressions(), min_size=6, max_size=6))
def test_any_index_is_computed_and_read_as_numpy_does(made):
    data = np.random.default_rng(5).standard_normal(64).astype(np.float32)
    A = te.placeholder((64,), name="A")
    tensors, wanted = [], []
    for expression, at in made:
        low = int(at.min())
        shifted, limit = at - low, int(at.max()) - low
        tensors.append(te.compute(EXTENTS, lambda i, j, e=expression: e(i, j)))
        wanted.append(at.astype(np.int32))
        # The same index, from 0 on, where it is a position, and 0 where the condition says that it is none.
        inside = lambda i, j, e=expression, low=low: e(i, j) - low  # noqa: E731 (an argument, not a definition)
        tensors.append(te.compute(EXTENTS, lambda i, j, e=inside: te.if_then_else(te.all(e(i, j) >= 0, e(i, j) < 64), A[e(i, j)], 0.0)))
        wanted.append(np.where(shifted < 64, data[np.minimum(shifted, 63)], 0))
        if limit < 64:
            tensors.append(te.compute(EXTENTS, lambda i, j, e=inside: A[e(i, j)]))
            wanted.append(data[shifted])
    for found, expected in zip(computed([A, *tensors], data), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(expressions(), st.integers(1, 40))
def test_bounds_hold_what_an_index_is(made, size):
    expression, at = made
    (i, j) = te.compute(EXTENTS, lambda i, j: 0).op.axis
    form = linear(te.cast("int32", expression(i, j)))
    assert form is not None
    low, high = interval(form)
    assert low is None or low <= at.min()
    assert high is None or high >= at.max()
    if is_within((low, high), size):
        assert at.min() >= 0 and at.max() < size
    if out_of_bounds(form, size):
        assert at.min() < 0 or at.max() >= size


def test_a_remainder_by_a_size_is_no_more_than_its_dividend():
    (i,) = te.compute((6,), lambda i: 0).op.axis
    with Ranges({"n": Range(1, 100)}):
        low, high = interval(linear(i % te.var("n")))
    for size in (1, 4, 9):
        found = np.arange(6) % size
        assert (evaluate(low, {"n": size}), evaluate(high, {"n": size})) == (found.min(), found.max())


def test_bounds_of_a_multiple_by_a_size_are_those_of_its_sign():
    (i,) = te.compute((6,), lambda i: 0).op.axis
    n = te.var("n")
    with Ranges({"n": Range(0, 100)}):
        (low, high), (least, most) = interval(linear(i * n)), interval(linear(i * -n))
        assert interval(linear(i * (n - 1))) == (None, None)
    for size in (0, 9):
        ends = [evaluate(end, {"n": size}) for end in (low, high, least, most)]
        assert ends == [0, 5 * size, -5 * size, 0]


@pytest.mark.parametrize("shift", [-1, 0, 1])
@pytest.mark.parametrize("size", [5, 6, 7])
def test_an_index_at_the_ends_of_a_dimension(shift, size):
    (i,) = te.compute((6,), lambda i: 0).op.axis
    form, least, most = linear(i + shift), shift, 5 + shift
    assert is_within(interval(form), size) == (least >= 0 and most < size)
    assert out_of_bounds(form, size) == (least < 0 or most >= size)


def test_an_index_that_may_never_be_there_is_not_out_of_bounds():
    n = te.var("n")
    i, j = te.compute((6, n), lambda i, j: 0).op.axis
    # The bounds of the difference are wider than its values; there may be no j.
    assert interval(linear(i - i // 2)) == (-2, 5) and not out_of_bounds(linear(i - i // 2), 6)
    assert not out_of_bounds(linear(i + j - 1), 6)
