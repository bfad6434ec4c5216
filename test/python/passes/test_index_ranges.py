"""Bounds of computed integers: no element is outside of them, and they are as narrow as the rule of the operator allows."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from support import Const, build, program

from relayc.pipelines.evaluate.relay import RelayInterpreter
from relayc.pipelines.graph.index_ranges import _RULES, _within, ends_of
from relayc.pipelines.graph.rewrite import Rewriter

# x is in -2 to 3, y in 1 to 4, and small in -2 to 3 as int8.
CASES = {
    "x": (lambda x, y, small: x, (-2, 3)),
    "negative": (lambda x, y, small: build("negative", x), (-3, 2)),
    "abs": (lambda x, y, small: build("abs", x), (0, 3)),
    "abs of negative ones": (lambda x, y, small: build("abs", build("negative", y)), (0, 4)),
    "add": (lambda x, y, small: build("add", x, y), (-1, 7)),
    "subtract": (lambda x, y, small: build("subtract", x, y), (-6, 2)),
    "multiply": (lambda x, y, small: build("multiply", x, build("negative", y)), (-12, 8)),
    "multiply negative ones": (lambda x, y, small: build("multiply", build("negative", y), build("negative", y)), (1, 16)),
    "maximum": (lambda x, y, small: build("maximum", x, y), (1, 4)),
    "minimum": (lambda x, y, small: build("minimum", x, y), (-2, 3)),
    "floor_mod": (lambda x, y, small: build("floor_mod", x, y), (0, 3)),
    "floor_mod by any sign": (lambda x, y, small: build("floor_mod", y, build("add", build("multiply", x, x), x)), (None, None)),
    "cast": (lambda x, y, small: build("cast", x, dtype="int8"), (-2, 3)),
    "int8": (lambda x, y, small: build("multiply", small, small), (-6, 9)),
    "int8 that may wrap": (
        lambda x, y, small: build("multiply", build("multiply", build("multiply", small, small), small), build("multiply", small, small)),
        (None, None),
    ),
    "where": (lambda x, y, small: build("where", build("less", x, y), x, y), (-2, 4)),
    "concatenate": (lambda x, y, small: build("concatenate", x, y, axis=0), (-2, 4)),
    "stack": (lambda x, y, small: build("stack", x, y, axis=0), (-2, 4)),
    "reverse": (lambda x, y, small: build("reverse", x, axis=0), (-2, 3)),
    "argmax": (lambda x, y, small: build("argmax", x, axis=(0,)), (0, 1)),
    "argsort": (lambda x, y, small: build("argsort", x, axis=0, dtype="int64"), (0, 1)),
    "places of topk": (lambda x, y, small: build("topk", y, k=1, axis=0, dtype="int64")[1], (0, 1)),
    "places of topk alone": (lambda x, y, small: build("topk", y, k=1, axis=0, dtype="int64", ret_type="indices"), (0, 1)),
    "values of topk": (lambda x, y, small: build("topk", y, k=1, axis=0, dtype="int64")[0], (1, 4)),
    "values of topk alone": (lambda x, y, small: build("topk", y, k=1, axis=0, ret_type="values"), (1, 4)),
    "float": (lambda x, y, small: build("cast", build("cast", x, dtype="float32"), dtype="int64"), (None, None)),
    **{
        f"clip {least} {most}": (lambda x, y, small, a=least, b=most: build("clip", x, a_min=a, a_max=b), expected)
        for least, most, expected in (
            (0.0, 2.0, (0, 2)),
            (None, 2.0, (-2, 2)),
            (0.0, None, (0, 3)),
            (-9.0, 9.0, (-2, 3)),
            (5.0, 9.0, (5, 5)),
            (5.0, None, (5, 5)),
            (-9.0, -7.0, (-7, -7)),
            (None, -7.0, (-7, -7)),
            (-np.inf, np.inf, (-2, 3)),
            (0.5, None, (None, None)),
        )
    },
}


@pytest.mark.parametrize("name", CASES)
def test_no_element_is_outside(name):
    compute, expected = CASES[name]
    ends = [Const(np.array(v)) for v in (-2, 3, 1, 4)] + [Const(np.int8(v)) for v in (-2, 3)]

    def body(a, b, c, *values):
        flags = zip((a, b, c), zip(values[::2], values[1::2], strict=True), strict=True)
        return [compute(*(build("where", flag, high, low) for flag, (low, high) in flags))]

    flags = np.zeros(2, bool)
    mod = program(body, [flags, flags, flags, *ends])
    block = mod.main.regions[0].blocks[0]
    with mod.context:
        found = ends_of(block.operations[len(block.operations) - 1].operands[0], Rewriter(mod))
    assert found == expected
    low, high = found
    run = RelayInterpreter(mod)
    for bits in itertools.product((0, 1), repeat=4):
        (result,) = run("main", list(np.array([*bits, *bits[1:3]], np.int8).reshape(3, 2)))
        assert low is None or result.min() >= low
        assert high is None or result.max() <= high


INTERVALS = [(None, None), (None, 2), (-1, None), (-3, -2), (-3, 2), (0, 0), (1, 4)]
FAR = 1000
"""What stands for an end that is not known."""
EXACT = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "maximum": max,
    "minimum": min,
    "negative": lambda x, y: -x,
    **{
        f"clip {low} {high}": lambda x, y, low=low, high=high: min(max(x, low), high) for low in (-np.inf, -2, 1) for high in (np.inf, 1, 3)
    },
}


@pytest.mark.parametrize("name", EXACT)
def test_ends_that_are_not_known_leave_the_others(name):
    """What the operator gives for the ends of its operands says it, as it is monotonic in each."""
    rule, *limits = name.split()
    a_min, a_max = map(float, limits or (0, 0))
    op = SimpleNamespace(data=0, lhs=0, rhs=1, a_min=None if a_min == -np.inf else a_min, a_max=a_max)
    for pair in itertools.product(INTERVALS, repeat=2):
        values = [(-FAR if low is None else low, FAR if high is None else high) for low, high in pair]
        found = [EXACT[name](x, y) for x, y in itertools.product(*values)]
        expected = tuple(None if abs(end) > FAR / 2 else end for end in (min(found), max(found)))
        assert _RULES[rule](op, pair.__getitem__) == expected, pair


@pytest.mark.parametrize(
    ("name", "pair", "expected"),
    [
        ("multiply", ((-2, 3), (None, 4)), (None, None)),
        ("multiply", ((None, 3), (1, 4)), (None, None)),
        ("multiply", ((-2, None), (1, 4)), (None, None)),
        ("multiply", ((-2, 3), (1, None)), (None, None)),
        ("multiply", ((-2, 3), (-5, 4)), (-15, 12)),
        ("abs", ((-4, 3),), (0, 4)),
        ("abs", ((None, 3),), (0, None)),
        ("abs", ((-4, None),), (0, None)),
        ("floor_mod", ((0, 1), (1, 4)), (0, 3)),
        ("floor_mod", ((0, 1), (0, 4)), (None, None)),
        ("floor_mod", ((0, 1), (None, 4)), (None, None)),
        ("floor_mod", ((0, 1), (1, None)), (None, None)),
        ("where", ((None, 3), (1, 4)), (None, 4)),
        ("where", ((-2, 3), (1, None)), (-2, None)),
        ("sizes", (), (3, 7)),
    ],
)
def test_rules_of_operators(name, pair, expected):
    op = SimpleNamespace(data=0, lhs=0, rhs=1, x=0, y=1, values=(5, 3, 7))
    assert _RULES[name](op, pair.__getitem__) == expected


@pytest.mark.parametrize(
    ("ends", "dtype", "is_kept"),
    [
        ((-128, 127), "int8", True),
        ((-129, 127), "int8", False),
        ((-128, 128), "int8", False),
        ((0, 255), "uint8", True),
        ((-1, 255), "uint8", False),
        ((None, 127), "int8", False),
        ((0, None), "int32", False),
        ((None, 128), "int8", False),
        ((None, 5), "int64", True),
        ((5, None), "uint64", True),
        ((-(1 << 31), (1 << 31) - 1), "int32", True),
        ((-(1 << 31), 1 << 31), "int32", False),
    ],
)
def test_values_beyond_their_type_wrap(ends, dtype, is_kept):
    assert _within(ends, dtype) == (ends if is_kept else (None, None))


@pytest.mark.parametrize(("count", "expected"), [(23, (3, 7)), (24, (None, None))])
def test_chains_are_followed_so_far(count, expected):
    def body(x, value):
        for _ in range(count):
            value = build("reverse", value, axis=0)
        return [value, x]

    mod = program(body, [np.zeros(2), Const(np.array([3, 7, 4]))])
    block = mod.main.regions[0].blocks[0]
    with mod.context:
        assert ends_of(block.operations[len(block.operations) - 1].operands[0], Rewriter(mod)) == expected
