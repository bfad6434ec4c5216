"""Index expressions and values of sizes, against the numbers that they stand for: everything at once for small ranges of variables."""

import itertools
from collections.abc import Mapping
from functools import reduce
from math import gcd
from typing import Any

import numpy as np
import pytest

from relayc.dialects.discardable import SYMBOL
from relayc.dialects.mlir import func, ir, make_context
from relayc.pipelines.emission import emit, sizes
from relayc.pipelines.emission.index import (
    FAR,
    Index,
    Nonlinear,
    Var,
    affine_index,
    even_parts,
    even_runs,
    linearize,
    reshape,
    strides_of,
    weighted,
)
from relayc.pipelines.targets.cpu.strategies.attention.strips import _clamped
from relayc.runtime.artifact import EqualSizes
from relayc.symbolic import Range, Ranges, Size, evaluate, parse, symbol

X, Y, Z = (Var(low, high, name=name) for name, low, high in (("i", 0, 3), ("j", -2, 2), ("k", 1, 1)))
POINTS = [dict(zip((X, Y, Z), values, strict=True)) for values in itertools.product(range(4), range(-2, 3), [1])]
INDICES = [Index(const, {X: i, Y: j, Z: k}) for const, i, j, k in itertools.product((-7, 0, 1, 6), (-3, 0, 1, 4), (-1, 0, 2, 6), (0, 5))]


def value_of(index: Index, point: Mapping[Var, int], known: Mapping[str, int] | None = None) -> int:
    return evaluate(index.const, known or {}) + sum(evaluate(c, known or {}) * point[v] for v, c in index.terms.items())


def values_of(index: Index) -> list[int]:
    return [value_of(index, point) for point in POINTS]


def test_bounds_and_divisors_are_those_of_the_values() -> None:
    for index in INDICES:
        found = values_of(index)
        assert index.bounds() == (min(found), max(found)), index
        assert index.is_within(min(found), max(found))
        assert not index.is_within(min(found) + 1, max(found)) and not index.is_within(min(found), max(found) - 1)
        # What divides them whatever the ranges are.
        assert index.divisor == gcd(index.const, *index.terms.values()), index
        assert index.is_constant == (not index.terms) and 0 not in index.terms.values()
    assert Index(12, {Var(0, 40, step=20): 3}).divisor == 12
    assert Index(9, {Var(0, 40, step=2): 3}).divisor == 3


def test_arithmetic_is_that_of_the_values() -> None:
    for a, b in itertools.product(INDICES[::13], INDICES[::17]):
        left, right = np.array(values_of(a)), np.array(values_of(b))
        other = {X: b, Y: a}
        cases = [
            (a + b, left + right),
            (a - b, left - right),
            (a + X, left + [p[X] for p in POINTS]),
            (a - X, left - [p[X] for p in POINTS]),
        ]
        cases += [(a + 3, left + 3), (a - 3, left - 3)] + [(a * n, left * n) for n in (-2, 0, 1, 2, 3)]
        cases += [(a + Index(4), left + 4), (Index(4) + a, left + 4), (a - Index(4), left - 4), (Index(4) * 3, left * 0 + 12)]
        cases.append((a.without(X), np.array([value_of(a, {**p, X: 0}) for p in POINTS])))
        at = [value_of(a, {X: r, Y: left_, Z: 0}) for r, left_ in zip(right, left, strict=True)]
        cases.append((a.at(other), np.array(at)))
        cases.append((weighted([a, X, b], [2, -3, 0], 5), 2 * left - 3 * np.array([p[X] for p in POINTS]) + 5))
        cases.append((linearize([a, b], [99, 4]), left * 4 + right))
        for found, expected in cases:
            np.testing.assert_array_equal(values_of(found), expected)
            assert 0 not in found.terms.values(), found
            assert found.key == Index(found.const, dict(reversed(found.terms.items()))).key
        assert (a.key == b.key) == (a is b) and not a.has_vector()
    lanes = Var(0, 3, is_vector=True)
    assert Index(0, {X: 2, lanes: 1}).has_vector() and [v.extent for v in (X, Z, Var(0, 0))] == [4, 2, 1]
    # An operand is not changed.
    first = Index(1, {X: 2})
    assert (first + first - first).key == first.key == Index(1, {X: 2}).key and first.coefficient(Y) == 0


@pytest.mark.parametrize("divisor", [1, 2, 3, 4, 7, 12])
def test_a_split_is_the_quotient_and_the_remainder(divisor: int) -> None:
    """It is there where what the divisor does not divide stays between two of its multiples."""
    splits = 0
    for index in INDICES:
        found = index.split(divisor)
        rest = Index(index.const, {v: c for v, c in index.terms.items() if c % divisor})
        low, high = rest.bounds()
        assert (found is not None) == (low // divisor == high // divisor), index
        if found is not None:
            quotient, remainder = (np.array(values_of(part)) for part in found)
            np.testing.assert_array_equal([*zip(quotient, remainder, strict=True)], [divmod(n, divisor) for n in values_of(index)])
            splits += 1
    assert splits > 0


def test_bounds_and_splits_of_symbols() -> None:
    n, m, k = map(symbol, "nmk")
    with Ranges({"n": Range(1), "m": Range(0), "k": Range(-1, 1), "few": Range(0, 3), "many": Range(4)}):
        up, down = Var(0, n - 1), Var(2, 5)
        assert Index(3, {up: n}).bounds() == (3, 3 + n * (n - 1))
        assert Index(3, {up: n * -1}).bounds() == (3 - n * (n - 1), 3)
        # Zero is no sign: a size of at least or at most 0 has the ends where its sign puts them.
        assert Index(0, {down: m}).bounds() == (m * 2, m * 5)
        assert Index(0, {down: m * -1}).bounds() == (m * -5, m * -2)
        assert Index(0, {down: k}).bounds() == (-FAR, FAR)
        inner = Var(0, n - 1, name="inner")
        quotient, remainder = Index(0, {up: n, inner: 1}).split(n) or (None, None)
        assert quotient is not None and remainder is not None
        assert quotient.key == Index.of(up).key and remainder.key == Index.of(inner).key
        assert Index(0, {up: n, Var(0, n): 1}).split(n) is None and Index(0, {up: n, Var(-1, n - 1): 1}).split(n) is None
        # Bounds and divisors are numbers or sizes.
        few, many = symbol("few"), symbol("many")
        for variable, divisor in ((Var(few, 3), 4), (Var(0, few), 4), (Var(0, 3), many), (Var(few, few), 4)):
            quotient, remainder = Index(0, {variable: 1}).split(divisor) or (Index(), Index())
            assert remainder.key == Index.of(variable).key, (variable.low, variable.high, divisor)
        assert Index(0, {Var(few, 4): 1}).split(4) is None and Index(0, {Var(0, 4): 1}).split(many) is None
        # With constants of the size as well.
        whole, rest = Index(n * 2, {up: n, inner: 1}).split(n) or (None, None)
        assert whole is not None and rest is not None and (whole.const, rest.const) == (2, 0)


def test_nonlinear_values_are_equal_by_their_identity() -> None:
    a, b, c = (Nonlinear(0, 9, identity) for identity in (("div", 1), ("div", 1), ("div", 2)))
    assert a == b and hash(a) == hash(b) and a != c and a != Var(0, 9)
    assert (Index.of(a) - Index.of(b)).is_constant and not (Index.of(a) - Index.of(c)).is_constant


def test_even_parts_are_the_fewest_and_differ_by_one() -> None:
    for extent, most in itertools.product(range(14), range(1, 8)):
        parts = even_parts(extent, most)
        assert sum(parts) == extent and len(parts) == -(-extent // most) and parts == sorted(parts, reverse=True)
        assert not parts or (parts[0] <= most and parts[0] - parts[-1] <= 1)
        assert [size for size, count in even_runs(extent, most) for _ in range(count)] == parts
        assert all(count for _, count in even_runs(extent, most))


SHAPES = [(4, 6), (24,), (2, 2, 6), (4, 3, 2), (4, 1, 6), (1, 4, 6, 1), (8, 3), (4, 6, 1, 1), (2, 12)]


def test_reshapes_of_indices() -> None:
    """Of all elements, and dimensions that both shapes begin or end with keep their index."""

    def split(index: Index, by: Any) -> tuple[Index, Index]:
        assert index.is_constant and isinstance(index.const, int)
        return Index(index.const // by), Index(index.const % by)

    for shape, target in itertools.product(SHAPES, SHAPES):
        for place in np.ndindex(*shape):
            found = reshape([Index(i) for i in place], shape, target, split)
            expected = np.unravel_index(np.ravel_multi_index(place, shape), target)
            assert [index.const for index in found] == [int(i) for i in expected], (shape, target)
    given = [Index.of(Var(0, 9, name=name)) for name in "abc"]
    for shape, target, kept in (((4, 6, 5), (4, 6, 5), 3), ((4, 6, 1), (4, 6, 1, 1), 3), ((2, 4, 1), (2, 1, 4, 1), 2)):
        found = reshape(given, shape, target, lambda index, _: (index, Index()))
        assert sum(any(index is one for one in given) for index in found) >= kept, (shape, target)
    # Of a dimension of 1 the index is 0, whatever it was; what is left of the last dimension is not divided.
    calls = list[Any]()

    def recorded(index: Index, by: Any) -> tuple[Index, Index]:
        calls.append(by)
        return index, Index()

    found = reshape(given, (4, 6, 5), (2, 1, 12, 5), recorded)
    assert calls == [12, 12] and found[1].key == Index().key and found[3] is given[2]
    assert strides_of((4, 3, 1, 2)) == [6, 2, 2, 1] and strides_of(()) == []


def test_affine_expressions_of_indices() -> None:
    """All kinds of expressions, of constants on either side of a product."""

    def split(index: Index, by: Any) -> tuple[Index, Index]:
        assert index.is_constant and isinstance(index.const, int)
        return Index(index.const // by), Index(index.const % by)

    with make_context():
        d, e, s, five = ir.AffineDimExpr.get(0), ir.AffineDimExpr.get(1), ir.AffineSymbolExpr.get(0), ir.AffineConstantExpr.get(5)
        by = [ir.AffineExpr.get_floor_div(d + e, 3), ir.AffineExpr.get_ceil_div(d + e, 3), ir.AffineExpr.get_mod(d + e, 3)]
        for a, c, n in itertools.product((0, 2, 7), (0, 1, 4), (1, 6)):
            expected = {d: a, e: c, s: n, five: 5, d + e: a + c, e * 4 + d * -3 + 7: 4 * c - 3 * a + 7, s + d: n + a}
            expected |= dict(zip(by, [(a + c) // 3, -(-(a + c) // 3), (a + c) % 3], strict=True))
            # A symbol whose value is known is a constant, on the left of a product as well.
            expected |= {s * e: n * c, e * s: n * c}
            for expression, value in expected.items():
                found = affine_index(expression, [Index(a), Index(c)], split, [Index(n)])
                assert found.key == Index(value).key, (str(expression), a, c, n)
        assert affine_index(e * s, [Index(), Index.of(X)], split, [Index(3)]).key == Index(0, {X: 3}).key
        assert affine_index(s * e, [Index(), Index(3)], split, [Index.of(X)]).key == Index(0, {X: 3}).key


# ---- values of sizes

TEXTS = ["n", "-1*n", "3*n", "-4*n*m", "n*m + 2", "2*n - 3*m", "-2*n - m - 5", "n*n + n*m + m*m", "(n + 3) // 4", "(m - n) // 3"]
TEXTS += ["m - n", "n // 4", "n // (m + 1)", "-1*((0 - n) // 4)", "m*((0 - n) // 4)", "5 - 2*((0 - n) // 3)", "n*m*m - 7"]
TEXTS += ["min(n, 4)", "max(n - m, m - n, 2)", "min(2*m, n, 7) + n // 2", "(n // 2) // (m // 2)", "max(0, n - 5) * m"]
TEXTS += ["((0 - n) // 4) * ((0 - m) // 3)", "0 - n // 2"]
RULES = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divui": lambda a, b: a // b,
    "floordivsi": lambda a, b: a // b,
    "minsi": min,
    "maxsi": max,
    "index_cast": lambda a: a,
    "sitofp": float,
    "mulf": lambda a, b: a * b,
    "addf": lambda a, b: a + b,
    "divf": lambda a, b: a / b,
    "minimumf": min,
    "maximumf": max,
}


def run(block: ir.Block, arguments: list[Any], kept: dict[ir.Value, Any] | None = None) -> dict[ir.Value, Any]:
    """The value of each operation of a block."""
    found: dict[ir.Value, Any] = dict(zip(block.arguments, arguments, strict=True))
    for view in block.operations:
        op = view.operation
        name, operands = op.name.removeprefix("arith."), [found[v] for v in op.operands]
        if name == "constant":
            found[op.results[0]] = op.attributes["value"].value
        elif name in RULES:
            assert name != "divui" or min(operands) >= 0, "a division without signs"
            assert str(op.results[0].type) == {"index_cast": "i64"}.get(name, str(op.results[0].type))
            found[op.results[0]] = RULES[name](*operands)
    return found


def function_of(names: str) -> tuple[func.FuncOp, ir.Block]:
    function = func.FuncOp("f", ([ir.IndexType.get()] * len(names), []))
    function.arg_attrs = ir.ArrayAttr.get(sizes.symbol_attributes(names))
    return function, function.add_entry_block()


def test_values_of_sizes_are_computed_and_read_again() -> None:
    """By one operation for each that a person would write down, once for all uses."""
    with make_context(), ir.Location.unknown(), Ranges({"n": Range(0), "m": Range(0)}):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function, block = function_of("nm")
            assert sizes.symbol_positions(function) == {"n": 0, "m": 1} and sizes.symbol_names(function) == ["n", "m"]
            assert sizes.tensor_count(function) == 0 and SYMBOL.on(function.arg_attrs[1])
        parsed = [parse(text) for text in TEXTS]
        with ir.InsertionPoint(block), sizes.function_sizes(function):
            values = [sizes.size_value(size) for size in parsed]
            again = [sizes.size_value(size) for size in parsed]
            assert values == again
            func.ReturnOp([])
        names = [op.operation.name for op in block.operations]
        constants = [op.operation.results[0] for op in block.operations if op.operation.name == "arith.constant"]
        assert all(list(constant.uses) for constant in constants), "a constant that nothing needs"
        # A quotient rounded up is one of numbers that are not negative, too; only m - n may be below 0.
        assert names.count("arith.floordivsi") == 1, names
        for n, m in itertools.product((0, 1, 3, 4, 5, 9), (0, 1, 2, 3, 8)):
            found = run(block, [n, m])
            for text, size, value in zip(TEXTS, parsed, values, strict=True):
                assert found[value] == evaluate(size, {"n": n, "m": m}), f"{text} of n = {n}, m = {m}"
        known: dict[ir.Value, Size] = {block.arguments[0]: symbol("n"), block.arguments[1]: symbol("m")}
        for view in block.operations:
            size = sizes.read_size(view.operation, known)
            if size is not None:
                known[view.operation.results[0]] = size
        for text, size, value in zip(TEXTS, parsed, values, strict=True):
            if "//" not in text:  # of which what is read may be in other words
                assert known[value] == size, text


@pytest.mark.parametrize(
    ("text", "operations"),
    [
        ("n", ""),
        ("-1*n", "muli"),
        ("m - n", "subi"),
        ("n - m", "subi"),
        ("-1*m + n", "subi"),
        ("-2*m + n", "muli subi"),
        ("3*n - 3*m + 3", "muli muli subi addi"),
        ("-1*m - n", "muli subi"),
        # What is taken away is a quotient rounded up: the sum of one that is rounded down.
        ("n - ((0 - m) // 3)", "addi divui addi"),
        ("n + ((0 - m) // 3)", "addi divui subi"),
        ("((0 - m) // 3)", "addi divui muli"),
        ("n*m*n*m", "muli muli muli"),
    ],
)
def test_sizes_take_few_operations(text: str, operations: str) -> None:
    """Additions before subtractions, products of two of each kind, and each number once."""
    with make_context(), ir.Location.unknown(), Ranges({"n": Range(0), "m": Range(0)}):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function, block = function_of("nm")
        with ir.InsertionPoint(block), sizes.function_sizes(function) as values:
            made = sizes.size_value(parse(text))
            others = values.among({"n": block.arguments[1], "m": block.arguments[0]})
            assert others.value(symbol("n")) == block.arguments[1]
            func.ReturnOp([])
        names = [op.operation.name.removeprefix("arith.") for op in block.operations][:-1]
        numbers = [op.operation.attributes["value"].value for op in block.operations if op.operation.name == "arith.constant"]
        assert sorted(n for n in names if n != "constant") == sorted(operations.split()), names
        assert len(set(numbers)) == len(numbers) and made == (block.arguments[0] if text == "n" else made)


def test_estimates_of_sizes() -> None:
    """In floating point, where whole numbers overflow; quotients are not rounded, and a divisor is 1 at least."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function, block = function_of("nm")
        with ir.InsertionPoint(block), sizes.function_sizes(function) as values:
            cases = {"n*m*n*m*n": lambda n, m: n**3 * m**2, "3*n - 2*m + 7": lambda n, m: 3 * n - 2 * m + 7}
            cases |= {"min(n, 2*m, 9)": lambda n, m: min(n, 2 * m, 9), "max(n, 2*m, 9)": lambda n, m: max(n, 2 * m, 9)}
            cases |= {"(n + 1) // m": lambda n, m: (n + 1) / max(m, 1)}
            made = {text: values.estimate(parse(text)) for text in cases}
            number = values.estimate(12)
            func.ReturnOp([])
        for n, m in ((0, 0), (3, 2), (1 << 40, 1 << 41)):
            found = run(block, [n, m])
            assert found[number] == 12.0
            for text, expected in cases.items():
                assert found[made[text]] == pytest.approx(expected(n, m), rel=1e-12), text


def test_requirements_are_emitted_where_they_are_not_proved() -> None:
    with make_context() as context, ir.Location.unknown(), Ranges({"n": Range(0, 8), "m": Range(0)}):
        context.allow_unregistered_dialects = True
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function, block = function_of("nm")
        n, m = symbol("n"), symbol("m")
        with ir.InsertionPoint(block), sizes.function_sizes(function) as values:
            for size, limit in ((n, 8), (7, 7), (n * 3 + 2, 26)):
                sizes.require_at_most(size, limit, "at most %lld")
            assert not [op for op in block.operations if op.operation.name == "relay.require"]
            for size, limit in ((n, 7), (m, 100), (n * 3 + 2, 25)):
                sizes.require_at_most(size, limit, "at most %lld", values)
            func.ReturnOp([])
        checks = [op.operation for op in block.operations if op.operation.name == "relay.require"]
        assert [ir.StringAttr(op.attributes["predicate"]).value for op in checks] == ["ge"] * 3
        limits = [ir.IntegerAttr(op.operands[0].owner.attributes["value"]).value for op in checks]
        assert limits == [7, 100, 25]


def test_conditions_on_sizes_are_read() -> None:
    """Equalities of sizes and conjunctions of such, and no other conditions."""
    n, m = symbol("n"), symbol("m")
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            _, block = function_of("nmx")
        a, b, x = block.arguments
        with ir.InsertionPoint(block):
            equal, other, less, unknown = (
                emit.compare(p, *pair) for p, pair in (("eq", (a, b)), ("eq", (b, a)), ("slt", (a, b)), ("eq", (a, x)))
            )
            both = [emit.arith("andi", *pair) for pair in ((equal, other), (equal, less), (less, equal))]
            either = emit.arith("ori", equal, other)
            func.ReturnOp([])
        known: dict[ir.Value, EqualSizes] = {}
        for value in (equal, other, less, unknown, *both, either):
            condition = sizes.read_condition(value.owner, {a: n, b: m}, known)
            if condition is not None:
                known[value] = condition
        assert {v: c.pairs for v, c in known.items()} == {equal: ((n, m),), other: ((m, n),), both[0]: ((n, m), (m, n))}
        # Operations on other types, and with other operands, are no sizes.
        assert sizes.read_size(equal.owner, {a: n, b: m}) is None
        with ir.InsertionPoint.at_block_begin(block):
            total, half = emit.arith("addi", a, x), emit.number(2, ir.IntegerType.get_signless(64))
        assert sizes.read_size(total.owner, {a: n, b: m}) is None and sizes.read_size(total.owner, {a: n, x: m}) == n + m
        assert sizes.read_size(half.owner, {}) is None
        assert sizes.read_size(total.owner, {}) is None


def test_products_of_indices_are_computed_where_the_index_is() -> None:
    """Once, where a loop defines the index; where it is used, if the function's own block defines the index or the size is later."""
    n = symbol("n")
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function, block = function_of("nx")
        with ir.InsertionPoint(block), sizes.function_sizes(function) as values:
            variable = Var(0, 3)
            with emit.for_loop(0, 4, 1, variable):
                first, second = (sizes.size_product(variable.value, n) for _ in range(2))
                assert first == second and first.owner.operands[0] == variable.value
                whole = [sizes.size_product(variable.value, n * symbol("x")) for _ in range(2)]
                assert whole[0] == whole[1]
                values.define("late", block.arguments[1])
                late = [sizes.size_product(variable.value, symbol("late")) for _ in range(2)]
                assert late[0] != late[1]
            with values.scope():
                values.define("n", block.arguments[1])
                assert values.symbols["n"] == block.arguments[1]
            assert values.symbols["n"] == block.arguments[0]
            outside = [sizes.size_product(block.arguments[1], n) for _ in range(2)]
            assert outside[0] != outside[1]
            func.ReturnOp([])
        assert module.operation.verify()


def test_the_smallest_step_of_a_bound() -> None:
    """The minimum of an index and a size, with what is known of it."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            _, block = function_of("x")
        with ir.InsertionPoint(block), emit.constants_at(block):
            for low, high, step, limit in itertools.product((0, 8), (8, 24), (1, 8), (4, 7, 8, 16, 24, 25)):
                variable = Var(low, high, block.arguments[0], step)
                found = emit.at_most(Index.of(variable), limit)
                if high <= limit:
                    assert found.key == Index.of(variable).key
                    continue
                ((bound, factor),) = found.terms.items()
                values = [min(value, limit) for value in range(low, high + 1, step)]
                assert factor == 1 and (bound.low, bound.high) == (min(values), limit)
                assert bound.step == gcd(step, limit) and reduce(gcd, values) % bound.step == 0
            func.ReturnOp([])


def test_indices_are_clamped_where_they_may_be_outside() -> None:
    """By a minimum where one may be above the limit, and a maximum where one may be below 0, and by nothing else."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            _, block = function_of("x")
        with ir.InsertionPoint(block), emit.constants_at(block):
            for low, high, expected in ((0, 7, ""), (1, 7, ""), (-1, 7, "maxsi"), (0, 8, "minsi"), (-1, 8, "maxsi minsi")):
                value, names = _clamped(Index.of(Var(low, high, block.arguments[0])), 7), []
                while isinstance(value.owner, ir.OpView | ir.Operation):
                    names.append(value.owner.operation.name.removeprefix("arith."))
                    value = value.owner.operation.operands[0]
                assert " ".join(names) == expected, (low, high)
            func.ReturnOp([])
