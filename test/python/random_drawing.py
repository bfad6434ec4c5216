"""Draws graphs of Relay operators, of which random_rules has a rule for each family.

Sizes are those around limits of schedules: vectors, tiles, blocks, cache lines. An operator that a type relation refuses is drawn anew, so
that rules need not know them.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from random_graphs import Body, Graph, Leaf, Node, at, pruned

from relayc import TensorType
from relayc.dialects.relay import RelayError
from relayc.dialects.relay.registration import OPS
from relayc.dialects.relay.types import DTYPES, TupleType
from relayc.symbolic import Range, Ranges, Size, symbol

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 48, 63, 64, 65, 95, 96, 97, 127, 128, 129, 191, 255, 256, 257, 511, 513, 1023)
LONG = (1024, 1025, 1087, 1409, 2049, 4097)
MOST_ELEMENTS, MOST_PRODUCTS = 1 << 16, 1 << 23
"""Of one tensor, and of one operator that sums products: the reference takes two seconds at most for them."""
FLOATS, INTEGERS = ("float32", "float16", "bfloat16", "float64"), ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
NARROW = tuple(name for name in DTYPES if TensorType((), name).is_narrow)

Test = Callable[[TensorType], bool]


class Drawing:
    """A graph on its way, with what draws its next part."""

    def __init__(self, seed: int, number: int) -> None:
        self.rng = np.random.default_rng([seed, number])
        self.seed = int(self.rng.integers(1 << 31))
        self.leaves: dict[int, Leaf] = {}
        self.types: dict[int, TensorType] = {}
        self.functions: list[Body] = []
        self.nodes: list[Node] = []
        self.scope: list[int] = []
        self.undefined: set[int] = set()
        """Values with undefined elements, which are never results."""
        self.depth, self.in_function, self.symbols = 0, False, list[Size]()
        self.real_leaf: Callable[[Sequence[Size], bool | None], int] | None = None
        self.dtype = self.choice(("float32",) * 7 + FLOATS)
        names = ("n", "m")[: self.integer(1, 2)] if self.chance(0.3) else ()
        self.bounds = {name: (self.integer(1, 3), self.choice((8, 40, 1100))) for name in names if self.chance(0.5)}
        self.sample = {"n": 7, "m": 5}
        self.ranges = Ranges({name: Range(*limits) for name, limits in self.bounds.items()})

        for name in names:
            self.symbols.append(symbol(name))
            self.scope.append(self.leaf((symbol(name), *self.shape(self.integer(0, 3))), self.dtype))

    # ---- numbers

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def choice(self, values: Sequence[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def size(self, most: int) -> int:
        return self.choice([n for n in (*SIZES, *LONG) if n <= max(most, 1)])

    def shape(self, rank: int) -> tuple[Size, ...]:
        """Sizes in a random order, of which the first one drawn may be large."""
        left, found = self.choice((256, 4096, MOST_ELEMENTS)), list[Size]()
        for _ in range(rank):
            n = self.size(min(left, self.choice((4, 40, 300, 5000))))
            left //= n
            found.append(
                self.choice((*self.symbols, self.symbols[0] + 1, 2 * self.symbols[-1])) if self.symbols and self.chance(0.4) else n
            )
        return tuple(found[i] for i in self.rng.permutation(rank))

    def rank(self) -> int:
        return self.choice((0, 1, 2, 2, 3, 3, 4, 4, 5))

    def axis(self, v: int) -> int:
        rank = self.types[v].rank
        if rank == 0:
            raise RelayError("no axis")
        return self.integer(-rank, rank - 1)

    def number(self, v: int, axis: int) -> int:
        """The size of an axis, which must be a number."""
        size = self.types[v].shape[axis]
        if not isinstance(size, int):
            raise RelayError("a symbol")
        return size

    # ---- values

    def leaf(self, shape: Sequence[Size], dtype: str, domain: Any = "any", constant: bool | None = None) -> int:
        """An input or a constant; one that is there already now and then. Floats are those of `real_leaf`, where it is given."""
        if self.real_leaf and dtype == "float32" and domain == "any":
            return self.real_leaf(shape, constant)
        type_ = TensorType(tuple(shape), dtype)
        symbolic = not type_.is_static or not isinstance(domain, (str, int))
        if symbolic and self.in_function:
            raise RelayError("no constant of a symbolic size")
        constant = self.in_function or (not symbolic and (self.chance(0.6) if constant is None else constant))
        made = Leaf(type_, domain, constant)
        same = [v for v, leaf in self.leaves.items() if leaf == made]
        if same and self.chance(0.4):
            return self.choice(same)
        v = self.value(type_)
        self.leaves[v] = made
        return v

    def value(self, type_: TensorType) -> int:
        self.types[len(self.types)] = type_
        return len(self.types) - 1

    def pick(self, test: Test = lambda t: True, fresh: Callable[[], int] | None = None) -> int:
        """A value that passes a test, rather a late one; a new leaf now and then."""
        found = [v for v in self.scope if test(self.types[v])]
        if found and self.chance(0.9):
            return found[-1 - min(int(self.rng.exponential(2.5)), len(found) - 1)]
        v = self.leaf(self.shape(self.rank()), self.dtype, constant=False) if fresh is None else fresh()
        if not test(self.types[v]):
            raise RelayError("no such value")
        return v

    def floats(self, least: int = 0, rank: int | None = None) -> int:
        """A value of floats, of a rank or of at least so many axes."""
        rank_ = rank if rank is not None else max(self.rank(), least)
        fresh = lambda: self.leaf(self.shape(rank_), self.dtype, constant=False)  # noqa: E731 # named for its use
        return self.pick(lambda t: t.is_float and t.rank >= least and rank in (None, t.rank), fresh)

    def emit(self, op: str, *operands: int, **attrs: Any) -> Any:
        """An operator; gives its result, or the list of its results. Raises RelayError."""
        cls = OPS[op]
        values = cls.attribute_values(attrs)
        found = cls.result_types([self.types[v] for v in operands], values)
        types = [t for r in found for t in (r.fields if isinstance(r, TupleType) else (r,))]
        for t in types:
            if not t.is_known or prod(at(t.sizes, self.sample)) > MOST_ELEMENTS or (0 in t.shape and self.chance(0.9)):
                raise RelayError("too large, empty or not known")
        for name, spec in cls.attr_specs.items():
            if values[name] is not None and not spec.kind.check(values[name]):
                raise RelayError(f"{name} is no {spec.kind.expected}")
        return self.append(op, operands, attrs, types)

    def append(
        self, op: str, operands: Sequence[int], attrs: dict[str, Any], types: Sequence[TensorType], bodies: Sequence[Body] = ()
    ) -> Any:
        results = tuple(map(self.value, types))
        self.nodes.append(Node(op, tuple(operands), attrs, results, tuple(bodies)))
        self.scope += results
        return results[0] if len(results) == 1 else list(results)

    # ---- regions

    @contextmanager
    def inside(self, arguments: Sequence[int], function: bool = False) -> Iterator[list[Node]]:
        """Collects operators of a region or a function."""
        before = self.scope, self.nodes, self.in_function, self.symbols
        self.scope, self.nodes = [] if function else list(self.scope), []
        self.scope += arguments
        if function:
            self.symbols = sorted({symbol(name) for v in arguments for name in self.types[v].symbols}, key=str)
        self.in_function, self.depth = function or self.in_function, self.depth + 1
        try:
            yield self.nodes
        finally:
            self.scope, self.nodes, self.in_function, self.symbols = before
            self.depth -= 1

    def body(self, types: Sequence[TensorType], finish: Callable[[list[int]], Sequence[int]], function: bool = False) -> Body:
        """A region or a function with arguments: a few operators, and what `finish` makes of the arguments."""
        arguments = [self.value(t) for t in types]
        with self.inside(arguments, function) as nodes:
            self.grow(self.integer(1, 3))
            results = tuple(finish(arguments))
            return Body(tuple(arguments), tuple(nodes), results)

    def grow(self, count: int) -> None:
        """Applies rules until there are so many operators more."""
        end = len(self.nodes) + count
        for _ in range(12 * count):
            if len(self.nodes) >= end:
                return
            rule = RULES[int(self.rng.choice(len(RULES), p=self.weights))]
            try:
                rule.draw(self, self.choice(rule.ops))
            except RelayError:
                continue

    def converted(self, v: int, dtype: str) -> int:
        """A cast; of floats to integers of numbers that these have."""
        source = self.types[v]
        if source.is_narrow and source.dtype.startswith("float") and dtype in INTEGERS:
            v = self.emit("cast", v, dtype="float32")
        if self.types[v].is_float and not TensorType((), dtype).is_float and dtype != "bool":
            v = self.emit("clip", v, a_min=0.0 if dtype.startswith("u") else -100.0, a_max=100.0)
        return self.emit("cast", v, dtype=dtype)

    def like(self, type_: TensorType) -> int:
        """A value of a type, made of one of the latest."""
        v = self.pick(lambda t: not t.is_narrow and (t.shape == type_.shape or (t.is_static and type_.is_static and 0 not in t.shape)))
        if self.types[v].dtype != type_.dtype:
            v = self.converted(v, type_.dtype)
        if self.types[v].shape != type_.shape:
            have, want = self.types[v].num_elements, type_.num_elements
            v = self.emit("reshape", v, newshape=(have,))
            if have < want:
                v = self.emit("tile", v, reps=(-(-want // have),))
            if have != want:
                v = self.emit("strided_slice", v, begin=(0,), end=(want,))
            v = self.emit("reshape", v, newshape=type_.shape)
        return v


@dataclass(frozen=True)
class Rule:
    ops: Sequence[str]
    weight: float
    draw: Callable[[Drawing, str], Any]


RULES: list[Rule] = []


def rule(*ops: str, weight: float = 1.0) -> Callable[[Callable[[Drawing, str], Any]], Callable[[Drawing, str], Any]]:
    """Enters a function that draws one of some operators."""

    def enter(function: Callable[[Drawing, str], Any]) -> Callable[[Drawing, str], Any]:
        RULES.append(Rule(ops, weight, function))
        return function

    return enter


def draw(seed: int, number: int) -> Graph:
    """The graph of a seed and a number."""
    d = Drawing(seed, number)
    # Each program is of a few families mostly.
    weights = np.array([rule.weight for rule in RULES]) * d.rng.exponential(1, len(RULES)) ** 2
    d.weights = weights / weights.sum()
    with d.ranges:
        d.grow(d.integer(3, 12))
    return _drawn(d, 0.05)


def draw_one(op: str, number: int) -> Graph:
    """A graph of one operator, with what it needs, that rules of other operators have no say in."""
    d = Drawing(zlib.crc32(op.encode()), number)
    d.weights = np.full(len(RULES), 1 / len(RULES))
    rule = next(rule for rule in RULES if op in rule.ops)
    with d.ranges:
        while not any(node.op == op for node in d.nodes):
            try:
                rule.draw(d, op)
            except RelayError:
                d.dtype = d.choice((d.dtype, *FLOATS, "int32", "bool"))
    return _drawn(d, 0)


def _drawn(d: Drawing, share: float) -> Graph:
    """The graph of what has been drawn, whose results are values without a use, and a share of the others."""
    used = Body((), tuple(d.nodes), ()).uses()
    results = [v for node in d.nodes for v in node.results if (v not in used or d.chance(share)) and v not in d.undefined]
    return pruned(Graph(d.seed, d.leaves, tuple(d.functions), Body((), tuple(d.nodes), tuple(results)), d.types, d.bounds))
