"""Quotients, remainders, minima and maxima of indices of blocks."""

import itertools
import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayc.dialects.mlir import func, ir, make_context
from relayc.pipelines.emission.index import FAR, Index, Var
from relayc.pipelines.tir.analysis.elements import _both, tell
from relayc.pipelines.tir.analysis.regions import Span, clip, is_within, quotient_of, remainder_of, span, union
from relayc.pipelines.tir.editing.moving import values_within
from relayc.pipelines.tir.lower.guards import _counts_tiles
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import (
    Divided,
    Extremal,
    Reader,
    canonical,
    computed,
    divide,
    equal,
    folded,
    largest,
    smallest,
    substitute,
    together,
    variables,
    write,
)
from relayc.pipelines.tir.tree.members import LoopVar
from relayc.pipelines.tir.tree.steps import COMMUTATIVE, Computed, neutral
from relayc.symbolic import Range, Ranges, evaluate, maximum, minimum, symbol

# Loop variables with negative values too, and what an iteration of 1 gives.
VARS = {name: Var(low, high, name=name) for name, low, high in (("i", 0, 9), ("j", 0, 11), ("k", -7, 4), ("x10", 3, 3), ("x9", 1, 5))}
PYTHON: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.floordivsi": operator.floordiv,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    # Toward 0, and of unsigned numbers: of dividends below 0 there is no index.
    "arith.divsi": operator.floordiv,
    "arith.divui": operator.floordiv,
    "arith.remsi": operator.mod,
    "arith.remui": operator.mod,
}
Tree = int | str | tuple[str, "Tree", "Tree"]


def trees() -> st.SearchStrategy[Tree]:
    divisions = [name for name in PYTHON if "div" in name or "rem" in name]
    return st.recursive(
        st.integers(-20, 20) | st.sampled_from(list(VARS)),
        lambda inner: (
            st.tuples(st.sampled_from(["arith.addi", "arith.subi", "arith.minsi", "arith.maxsi"]), inner, inner)
            | st.tuples(st.just("arith.muli"), inner, st.integers(-4, 16))
            | st.tuples(st.just("arith.muli"), st.integers(-4, 16), inner)
            | st.tuples(st.sampled_from(divisions), inner, st.sampled_from([1, 2, 3, 4, 6, 8, 16, 32]))
        ),
        max_leaves=6,
    )


def built(tree: Tree) -> Index | None:
    """The index of a tree; None where an operation has none."""
    if not isinstance(tree, tuple):
        return Index.of(VARS[tree] if isinstance(tree, str) else tree)
    operands = [built(tree[1]), built(tree[2])]
    return None if None in operands else computed(tree[0], operands)


def naive(tree: Tree, values: dict[str, int]) -> int:
    if not isinstance(tree, tuple):
        return values[tree] if isinstance(tree, str) else tree
    return PYTHON[tree[0]](naive(tree[1], values), naive(tree[2], values))


POINTS = st.fixed_dictionaries({name: st.integers(var.low, var.high) for name, var in VARS.items()})


@settings(max_examples=100, deadline=None)
@given(trees(), st.lists(POINTS, min_size=1, max_size=3))
def test_an_index_is_worth_what_the_operations_give(tree: Tree, points: list[dict[str, int]]) -> None:
    index = built(tree)
    if index is None:
        return
    low, high = index.bounds()
    assert variables(index) <= set(VARS.values())
    for values in points:
        expected = naive(tree, values)
        point = {VARS[name]: Index(value) for name, value in values.items()}
        for same in (index, canonical(index), folded(index)):
            found = substitute(same, point)
            assert found.is_constant and found.const == expected
        some = dict(list(point.items())[::2])
        left = substitute(index, some)
        assert variables(left).isdisjoint(some) and substitute(left, point).const == expected
        assert low <= expected <= high
        assert index.divisor == 0 == expected or expected % index.divisor == 0


@settings(max_examples=40, deadline=None)
@given(trees())
def test_an_index_is_read_as_it_is_written(tree: Tree) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        function = func.FuncOp("f", ([ir.IndexType.get()] * len(VARS), []), ip=ir.InsertionPoint(module.body))
        arguments = list(function.add_entry_block().arguments)
        named = {name: Var(v.low, v.high, value, name=name) for (name, v), value in zip(VARS.items(), arguments, strict=True)}
        index = built(tree)
        if index is None:
            return
        index = substitute(index, {VARS[name]: Index.of(var) for name, var in named.items()})
        with ir.InsertionPoint(function.entry_block):
            read = Reader({var.value: Index.of(var) for var in named.values()}, {}).read(write(index))
        assert equal(read, canonical(index)) and list(read.terms) == list(canonical(index).terms)


@pytest.mark.parametrize(("name", "divisor"), [(name, d) for name in PYTHON if "div" in name or "rem" in name for d in (1, 0, -2)])
def test_only_divisions_by_positive_numbers_have_an_index(name: str, divisor: int) -> None:
    assert (computed(name, [Index.of(VARS["i"]), Index(divisor)]) is not None) == (divisor > 0)
    assert computed(name, [Index.of(VARS["i"]), Index.of(VARS["x9"])]) is None
    # One value below 0 is enough for an operation to be another one than floor division.
    below = Index.of(VARS["i"]) - 1
    assert (computed(name, [below, Index(4)]) is not None) == (name in ("arith.floordivsi", "arith.ceildivsi"))
    assert computed(name, [below + 1, Index(4)]) is not None
    assert computed(name, [Index(8), None]) is None and computed("arith.xori", [Index(8), Index(4)]) is None


def test_products_of_variables_have_no_index() -> None:
    i, j = Index.of(VARS["i"]), Index.of(VARS["j"])
    assert computed("arith.muli", [i, j]) is None
    assert equal(computed("arith.muli", [Index(3), i + 1]), i * 3 + 3) and equal(computed("arith.muli", [i + 1, Index(3)]), i * 3 + 3)


def test_the_smaller_and_the_larger_of_two_indices() -> None:
    i, k, n = Index.of(VARS["i"]), Index.of(VARS["k"]), symbol("n")
    for a, b in itertools.product((-3, 0, 5), (-3, 0, 5)):
        assert smallest(Index(a), Index(b)).const == min(a, b) and largest(Index(a), Index(b)).const == max(a, b)
    # Ranges that touch decide; those that overlap by one do not.
    for pick, low, high in ((smallest, i, i + 9), (largest, i + 9, i)):
        assert equal(pick(low, high), low) and equal(pick(high, low), low)
    assert equal(smallest(i, Index(9)), i) and equal(smallest(Index(9), i), i) and equal(smallest(Index(0), i), Index(0))
    assert equal(largest(i, Index(0)), i) and equal(largest(Index(0), i), i) and equal(largest(Index(9), i), Index(9))
    for pick in (smallest, largest):
        for a, b in ((i, Index(8)), (Index(1), i), (i, k)):
            (var,) = pick(a, b).terms
            assert isinstance(var, Extremal) and equal(pick(a, b), pick(b, a))
    assert smallest(i, k).bounds() == (-7, 4) and largest(i, k).bounds() == (0, 9)
    assert smallest(k * 3, i).bounds() == (-21, 9) and largest(k * 3, i).bounds() == (0, 12)
    # Ends whose order is not known.
    for pick, of_sizes in ((smallest, minimum), (largest, maximum)):
        low, high = pick(i + n, Index(20) - k).bounds()
        assert (low, high) == (of_sizes(n, 16), of_sizes(n + 9, 27))
    with Ranges({"n": Range(0, 100)}):
        assert smallest(Index(n), Index(100)).const == n and largest(Index(n), Index(0)).const == n
        assert largest(Index(n), Index(101)).const == 101


@pytest.mark.parametrize(
    ("terms", "divisor", "left"),
    [
        ((16, 1, 4), 32, 2),
        ((16, 1, 5), 32, 32),  # the rest is up to 16
        ((16, 1, 0), 16, None),
        ((16, 1, -1), 16, 16),
        ((12, 1, 0), 24, 2),
        ((12, 1, 1), 24, 24),
        ((8, 4, 3), 32, 8),  # by the part of 4, as the rest of that of 8 is up to 47
        ((8, 4, 3), 6, 3),
        ((8, 4, -5), 6, 3),
        ((6, 1, 0), 9, 9),
        ((18, 2, 0), 9, 9),  # what the divisor divides is outside
        ((18, 1, -7), 9, 9),
        ((32, 5, 3), 8, 8),
    ],
)
def test_a_quotient_of_parts(terms: tuple[int, int, int], divisor: int, left: int | None) -> None:
    i, j = VARS["i"], VARS["j"]
    index = Index.of(i) * terms[0] + Index.of(j) * terms[1] + terms[2]
    found, rest = divide(index, divisor)
    assert [var.divisor for var in found.terms if isinstance(var, Divided)] == ([] if left is None else [left])
    for a, b in itertools.product(range(10), range(12)):
        point = {i: Index(a), j: Index(b)}
        expected = divmod(terms[0] * a + terms[1] * b + terms[2], divisor)
        assert (substitute(found, point).const, substitute(rest, point).const) == expected


def test_multiples_of_the_divisor_are_outside_of_its_quotient() -> None:
    i, j, n = VARS["i"], VARS["j"], symbol("n")
    for index, divisor, factor in ((Index.of(i) * 32 + Index.of(j) * 5, 8, 4), (Index(0, {i: n * 3}) + j, n, 3)):
        quotient, rest = divide(index, divisor)
        assert quotient.coefficient(i) == factor and i not in variables(rest)
    quotient, rest = divide(Index.of(i) * 32 + Index.of(j) * 16, 8)
    assert rest.is_constant and rest.const == 0 and (quotient.coefficient(i), quotient.coefficient(j)) == (4, 2)


def test_a_quotient_and_a_remainder_are_their_dividend_only_with_the_divisor_as_factor() -> None:
    index = Index.of(VARS["k"]) * 3 + VARS["j"]
    quotient, rest = divide(index, 5)
    other, _ = divide(index + 1, 5)
    assert equal(folded(quotient * 10 + rest * 2 + 7), index * 2 + 7)
    for kept in (quotient * 6 + rest, quotient * 5 - rest, other * 5 + rest, quotient * 10 + rest, quotient * 5, rest):
        assert equal(folded(kept), kept)


def test_divisions_of_a_quotient_are_one_division() -> None:
    """c (i // c % d) + i % c is i % (c d), and i // c // d is i // (c d); not with other factors or dividends."""
    index = Index.of(VARS["k"]) * 3 + VARS["j"]
    quotient, rest = divide(index, 12)
    (high, low), (whole, part) = divide(quotient, 2), divide(index, 24)
    assert equal(together(low * 12 + rest), part) and equal(together(low * 36 + rest * 3 + 1), part * 3 + 1)
    assert equal(together(high * 24 + low * 12 + rest), index) and equal(together(high * 5), whole * 5)
    for kept in (low * 6 + rest, low * 12 - rest, low * 12 + divide(index + 1, 12)[1], low * 12):
        assert equal(together(kept), kept)


NUMPY: dict[str, Callable] = {
    "arith.addf": np.add,
    "arith.mulf": np.multiply,
    "arith.maximumf": np.maximum,
    "arith.maxnumf": np.fmax,
    "arith.minimumf": np.minimum,
    "arith.minnumf": np.fmin,
    "arith.addi": np.add,
    "arith.muli": np.multiply,
    "arith.maxsi": np.maximum,
    "arith.maxui": np.maximum,
    "arith.minsi": np.minimum,
    "arith.minui": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
}


@pytest.mark.parametrize("name", COMMUTATIVE)
def test_what_is_neutral_leaves_the_other_operand(name: str) -> None:
    with make_context():
        if name.endswith("f"):
            types: dict[str, type] = {"f32": np.float32, "f64": np.float64}
        else:
            sign = "u" if name.endswith("ui") else ""
            types = {f"i{bits}": getattr(np, f"{sign}int{bits}") for bits in (8, 16, 32, 64)} | {"index": getattr(np, f"{sign}int64")}
        for text, dtype in types.items():
            number = neutral(name, ir.Type.parse(text))
            if name.endswith("f"):
                value, values = dtype(number), np.array([-np.inf, -2.5, 0, 3, np.inf, np.nan], dtype)
            else:
                limits = np.iinfo(dtype)
                value = np.array(number).astype(dtype)
                assert limits.min <= number <= limits.max or (number == -1 and limits.min == 0)
                values = np.array([limits.min, limits.min + 1, 0, 1, 7, limits.max - 1, limits.max], dtype)
            if name not in ("arith.maxnumf", "arith.minnumf"):  # of NaN and a number they give the number
                np.testing.assert_array_equal(NUMPY[name](value, values), values)
            np.testing.assert_array_equal(NUMPY[name](values, value)[:5], values[:5])


def test_what_is_less_than_a_part_of_the_divisor_is_not_divided() -> None:
    """(16 i + j + 4) // 32 is i // 2: only i is left in the quotient."""
    i, j = Var(0, 9, name="i"), Var(0, 11, name="j")
    quotient, rest = divide(Index.of(i) * 16 + j + 4, 32)
    (half,), (odd, same) = quotient.terms, sorted(rest.terms, key=lambda v: v is j)
    assert isinstance(half, Divided) and half.index.key == Index.of(i).key and half.divisor == 2 and same is j
    assert isinstance(odd, Divided) and rest.terms[odd] == 16 and rest.const == 4
    for a, b in itertools.product(range(10), range(12)):
        assert divmod(16 * a + b + 4, 32) == (a // 2, a % 2 * 16 + b + 4)


def test_what_may_reach_beyond_a_part_is_divided_as_a_whole() -> None:
    i, j = Var(0, 9, name="i"), Var(0, 16, name="j")
    quotient, _ = divide(Index.of(i) * 16 + j, 32)
    (whole,) = quotient.terms
    assert isinstance(whole, Divided) and whole.divisor == 32


def test_the_values_of_an_index_over_a_loop_whose_step_is_a_size() -> None:
    i, n = LoopVar(None, 5, "i"), symbol("n")
    with Ranges({"n": Range(0, 100)}):
        up, down = span(Index.of(i) * n, set()), span(Index.of(i) * -n + 7, set())
        assert up is not None and down is not None and not up.exact and not down.exact
    for size in (0, 3):
        for found, values in ((up, [i * size for i in range(5)]), (down, [7 - i * size for i in range(5)])):
            assert found is not None and found.low.is_constant
            low, extent = (evaluate(of, {"n": size}) for of in (found.low.const, found.extent))
            assert (low, low + extent - 1) == (min(values), max(values))


MOVING = {name: LoopVar(None, extent, name) for name, extent in (("a", 5), ("b", 3), ("c", 20))}
A, B, C, F = *map(Index.of, MOVING.values()), Index.of(VARS["i"])


@pytest.mark.parametrize(
    ("index", "guard", "extent", "exact"),
    [
        (A + B * 5 + F, None, 15, True),
        (A + B * 6 + F, None, 17, False),  # 5 is left out
        (A - B, None, 7, True),
        (smallest(A, B * 2), None, 5, False),  # 4 is the largest
        (largest(A, B) + F, None, 5, False),
        (divide(A + F * 8, 16)[1], None, 5, True),  # from 0 or from 8 on
        (divide(A + F * 8 + 8, 16)[1], None, 5, True),
        (divide(A * 4 + F * 16, 16)[1], None, 13, False),
        (divide(C + F, 16)[1], None, 16, True),
        (divide(C, 16)[0] + F, None, 2, True),
        (C + F + 5, Guard(C + 3, 10), 7, True),
        (C * -1 + F, Guard(C * -1 + 20, 5), 4, True),
        (C + 5, Guard(C + 3, 40), 20, True),
        (C + 5, Guard(A + 3, 10), 20, True),
    ],
)
def test_the_values_of_an_index_over_loops(index: Index, guard: Guard | None, extent: int, exact: bool) -> None:
    """`exact` where each value between the least and the greatest occurs."""
    found = span(index, {VARS["i"]}, [] if guard is None else [guard])
    assert found is not None and (found.extent, found.exact) == (extent, exact)
    for i in range(10):
        values = set()
        for at in itertools.product(*(range(var.extent) for var in MOVING.values())):
            point = {VARS["i"]: Index(i), **dict(zip(MOVING.values(), map(Index, at), strict=True))}
            if guard is None or substitute(guard.index, point).const < guard.limit:
                values.add(substitute(index, point).const)
        low = substitute(found.low, {VARS["i"]: Index(i)}).const
        assert values <= set(range(low, low + extent)) and (not exact or len(values) == extent)


@pytest.mark.parametrize(
    ("index", "low", "extent", "is_known"),
    [
        (C + 3, 5, 7, True),
        (C * 5 + A + 1, 6, 10, True),
        (C * 4 + A, 4, 8, False),  # 4 is reached by c = 0 and by c = 1
        (divide(C, 4)[0] + 1, 2, 3, True),
        (divide(C + 2, 4)[0], 1, 3, True),
        (divide(C, 4)[0] * 2, 2, 4, False),
        (divide(C + A, 4)[0], 1, 2, False),
        (divide(C, 4)[1], 1, 2, False),
        (C * -1 + 19, 3, 4, False),
        (A, 1, 2, False),
    ],
)
def test_the_values_of_an_iterator_whose_index_is_in_a_span(index: Index, low: int, extent: int, is_known: bool) -> None:
    var = MOVING["c"]
    found = values_within(index, Span(Index(low), extent), var)
    assert (found is not None) == is_known
    if found is None:
        return
    values = {
        c
        for a, c in itertools.product(range(5), range(20))
        if substitute(index, {MOVING["a"]: Index(a), var: Index(c)}).const in range(low, low + extent)
    }
    assert found.low.is_constant and values == set(range(found.low.const, found.low.const + found.extent)) and found.exact


@pytest.mark.parametrize(("low", "extent", "is_exact"), [(6, 10, True), (7, 10, False), (6, 9, False)])
def test_the_values_of_an_iterator_are_exact_where_whole_steps_are_in_the_span(low: int, extent: int, is_exact: bool) -> None:
    found = values_within(C * 5 + A + 1, Span(Index(low), extent), MOVING["c"])
    assert found is not None and (found.low.const, found.exact) == (1, is_exact)


def test_an_index_of_which_nothing_is_known_has_no_span() -> None:
    i, n = Index.of(VARS["i"]), symbol("n")
    with Ranges({"n": Range(0, 100)}):
        # Which of the ends is the least depends on n.
        for unknown in (A * (n - 50), i, smallest(i, A), smallest(A, i), divide(i, 4)[0], divide(i, 4)[1] + A):
            assert span(unknown, set()) is None
        # Of which at least one end is not known.
        ends = [Index.of(Var(-FAR, 5)), Index.of(Var(0, FAR))]
        for low, other in ((Index(n), Index(50)), (i, Index.of(Computed())), *((Index(), end) for end in ends)):
            found = union(Span(low, 3), Span(other, 3), 100)
            assert found.low.key == Index().key and (found.extent, found.exact) == (100, False)


def test_the_union_of_spans_at_a_distance_that_varies_holds_both() -> None:
    i, x9 = VARS["i"], VARS["x9"]
    found = union(Span(Index.of(i), 3), Span(Index.of(x9) * 2, 4), 100)
    for a, b in itertools.product(range(10), range(1, 6)):
        low = substitute(found.low, {i: Index(a), x9: Index(b)}).const
        assert low <= min(a, 2 * b) and max(a + 3, 2 * b + 4) <= low + found.extent
    assert found.extent == 4 + 10 and not found.exact


@pytest.mark.parametrize("factor", [11, 12, -11, -12])
def test_a_sum_tells_its_parts_where_one_step_exceeds_the_reach_of_the_other(factor: int) -> None:
    i, j = VARS["i"], VARS["j"]
    sums = {factor * a + b for a, b in itertools.product(range(10), range(12))}
    assert tell([Index.of(i) * factor + j], {i, j}) == (len(sums) == 120)


def test_a_sum_tells_a_part_where_the_others_are_known_and_nothing_where_a_sign_is_not() -> None:
    i, j, n = VARS["i"], VARS["j"], symbol("n")
    of_four = divide(Index.of(i), 4)[0] * 3 + j
    assert tell([of_four], {j}, {i}) and not tell([of_four], {j})
    with Ranges({"n": Range(0, 100)}):
        # With n = 51 the index is i + j.
        for factor in (n, -n):  # of a variable of one value
            assert tell([Index.of(VARS["x10"]) * factor + j], {j}) and not tell([Index.of(i) * factor + j], {j})
        assert not tell([Index.of(i) * (n - 50) + j], {j}) and tell([Index.of(i) * (n + 12) + j], {i, j})


@pytest.mark.parametrize("divisor", range(1, 6))
def test_quotients_and_remainders_of_a_span(divisor: int) -> None:
    for first, extent in itertools.product(range(7), range(1, 12)):
        values, given = range(first, first + extent), Span(Index(first), extent)
        for found, expected in (
            (quotient_of(given, divisor), {v // divisor for v in values}),
            (remainder_of(given, divisor), {v % divisor for v in values}),
        ):
            held = set(range(found.low.const, found.low.const + found.extent))
            has_gaps = len(expected) <= max(expected) - min(expected)
            assert found.exact != has_gaps and held == (set(range(divisor)) if has_gaps else expected)


def test_unions_and_parts_of_spans() -> None:
    spans = [Span(Index(first), extent) for first, extent in itertools.product(range(5), range(1, 5))]
    for a, b in itertools.product(spans, repeat=2):
        one, other = (set(range(s.low.const, s.low.const + s.extent)) for s in (a, b))
        both = union(a, b, 20)
        assert (both.low.const, both.low.const + both.extent - 1) == (min(one | other), max(one | other))
        assert both.exact == (len(one | other) == both.extent)
        assert is_within(a, b, 20) == (one <= other)
    i = Index.of(VARS["i"])
    assert is_within(Span(i, 3), Span(Index(), 5), 5) and not is_within(Span(i, 3), Span(Index(), 5), 6)
    assert is_within(Span(i + 2, 3), Span(i, 5), 20) and not is_within(Span(i + 3, 3), Span(i, 5), 20)
    for low, extent in itertools.product(range(-2, 3), range(1, 8)):
        found = clip(Span(Index(low), extent), 5)
        assert (found.low.const, found.extent) == ((max(low, 0), extent) if extent < 5 else (0, 5))
        assert found.exact == (low >= 0 or extent >= 5)
    assert clip(Span(i, 3), 5).exact and clip(Span(i + 1, 5), 5).low.key == Index().key


def test_an_index_that_is_at_a_limit_is_the_smaller_or_the_larger_one() -> None:
    i = Index.of(VARS["i"])
    for pick, limit, beyond in ((smallest, 9, 8), (largest, 0, 1)):
        assert pick(i, Index(limit)).key == i.key == pick(Index(limit), i).key
        assert (
            pick(i, Index(beyond)).key != i.key and pick(i, Index(9 - limit)).key == Index(9 - limit).key == pick(Index(9 - limit), i).key
        )


def test_the_terms_of_an_index_have_one_order() -> None:
    """By their factors, and by their names where these are the same; quotients and remainders of one division are their dividend."""
    i, j, k = (VARS[name] for name in "ijk")
    for terms in itertools.permutations([(i, 3), (j, 1), (k, 3)]):
        assert list(canonical(Index(0, dict(terms))).terms.items()) == [(j, 1), (k, 3), (i, 3)]
        assert list(canonical(Index(0, {v: c for v, c in terms if v is not k})).terms) == [j, i]
    quotient, rest = divide(Index.of(j), 4)
    assert canonical(Index.of(i) * 20 + quotient * 4 + rest).key == (Index.of(i) * 20 + j).key


def test_an_index_is_divided_by_a_size_that_is_no_number_below_1() -> None:
    i, n = Index.of(VARS["i"]), symbol("n")
    with Ranges({"n": Range(0, 100)}):
        for name in ("arith.floordivsi", "arith.ceildivsi", "arith.divui", "arith.divsi", "arith.remui", "arith.remsi"):
            is_legal = [computed(name, [i, Index(divisor)]) is not None for divisor in (n, n + 1, 1, 0, -1, n - 1)]
            assert is_legal == [True, True, True, False, False, False]
            # Unsigned and truncating operations are those of numbers from 0 on.
            assert (computed(name, [i - 1, Index(4)]) is not None) == (name in ("arith.floordivsi", "arith.ceildivsi"))


def test_accesses_of_inner_loops_reach_what_either_does() -> None:
    i, j, k = (Index.of(VARS[name]) for name in "ijk")
    for found in (_both(i * 20 + j, i * 20 + k, [VARS["i"]]), _both(i * 20 + k, i * 20 + j, [VARS["i"]])):
        assert found is not None and (found - i * 20).bounds() == (-7, 11)
    assert _both(i * 20 + j, i * 19 + j, [VARS["i"]]) is None


def test_an_index_counts_tiles_where_all_of_its_parts_do() -> None:
    i, j = (Index.of(VARS[name]) for name in "ij")
    for index, is_counted in (
        (i * 8 + j, True),
        (i * 6, False),
        (divide(i * 4 + j, 3)[0], True),
        (divide(i * 2 + j, 3)[0], False),
        (smallest(i * 4, i * 8 + j - 5), True),
        (smallest(i * 4, i + j), False),
        (largest(i + j, i * 4) * 4, False),
    ):
        assert _counts_tiles(index, VARS["i"], 4) == is_counted
