"""Values of symbolic sizes in a function of the te or tir stage: the last arguments are the symbols, and expressions are computed once.

A function takes the value of each symbol in its types as an argument of type index with the attribute `relay.symbol`, in the order of the
names, after its tensors. `with function_sizes(function):` makes these available to `size_value`. Expressions over them are computed at the
start of the function, so that they dominate every use. A symbol that is defined later has a value from there on.
"""

import contextvars
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, reduce
from itertools import chain
from typing import TypeAlias

from relayc.dialects.discardable import SYMBOL
from relayc.dialects.functions import signature_of, value_attributes
from relayc.dialects.mlir import ir
from relayc.dialects.relay.later import Require
from relayc.runtime.artifact import EqualSizes
from relayc.symbolic import Dim, Extreme, Floor, Monomial, Size, bounds, ceil_div, maximum, minimum, name_of, symbols_of

Value: TypeAlias = ir.Value


def symbol_names(function: ir.OpView) -> list[str]:
    """Names of the symbols that a function takes, in order."""
    return list(symbol_positions(function))


def symbol_positions(function: ir.OpView) -> dict[str, int]:
    """Positions of the symbols among the arguments of a function, by name. Memory arguments of a program follow them."""
    if "arg_attrs" not in function.attributes:
        return {}
    return {SYMBOL.of(a): i for i, a in enumerate(value_attributes(function)) if SYMBOL.on(a)}


def symbol_attributes(names: Iterable[str]) -> list[ir.DictAttr]:
    """The argument attributes of symbols."""
    return [ir.DictAttr.get(SYMBOL.entry(name)) for name in names]


def tensor_count(function: ir.OpView) -> int:
    """The number of arguments before the symbols."""
    return min(symbol_positions(function).values(), default=len(signature_of(function).inputs))


class SizeValues:
    """Values of sizes in one function.

    Attributes:
      symbols: value of each symbol, by name.
    """

    def __init__(self, block: ir.Block, symbols: Mapping[str, Value]) -> None:
        self.symbols = dict(symbols)
        self._early = frozenset(symbols)
        self._block = block
        self._found: dict[Dim, Value] = {}
        self._products: dict[tuple[Value, Dim], Value] = {}
        self._numbers: dict[int, Value] = {}
        self._anchor: ir.Operation | None = None
        """Computations are inserted before it: a temporary operation."""

    def value(self, size: Size) -> Value:
        """A size as a value of type index; an expression is computed at the start of the function. Raises KeyError for an undefined
        symbol."""
        if isinstance(size, int):
            return _constant(size)
        found = self._found.get(size)
        if found is not None:
            return found
        name = name_of(size)
        if name is not None:
            return self.symbols[name]
        if not symbols_of(size) <= self._early:
            return self._sum(size)
        if self._anchor is None:
            with ir.InsertionPoint.at_block_begin(self._block), ir.Location.unknown():
                self._anchor = _constant(0).owner.operation
        with ir.InsertionPoint(self._anchor), ir.Location.unknown():
            made = self._found[size] = self._sum(size)
        return made

    def product(self, value: Value, size: Dim) -> Value:
        """An index times a size, computed once, where the index is defined, so that the product dominates all places that the index
        dominates."""
        key = value, size
        found = self._products.get(key)
        if found is not None:
            return found
        factor, owner = self.value(size), value.owner
        block = owner if isinstance(owner, ir.Block) else owner.operation.block
        if block == self._block or not symbols_of(size) <= self._early:
            # The size may be defined after the index.
            return _arith("muli", value, factor)
        point = ir.InsertionPoint.at_block_begin(owner) if isinstance(owner, ir.Block) else ir.InsertionPoint.after(owner)
        with point, ir.Location.unknown():
            made = self._products[key] = _arith("muli", value, factor)
        return made

    def estimate(self, size: Size) -> Value:
        """An approximate value of a size as an f64, at the ambient insertion point, for sizes that may exceed 64 bits."""
        if isinstance(size, int):
            return _float(float(size))
        return _folded("addf", (self._term_estimate(m, c) for m, c in size.terms.items()))

    def _term_estimate(self, m: Monomial, c: int) -> Value:
        return _folded("mulf", chain([_float(float(c))], map(self._atom_estimate, m)))

    def _atom_estimate(self, atom: str | Floor | Extreme) -> Value:
        if isinstance(atom, str):
            integer = _cast("index_cast", self.symbols[atom], ir.IntegerType.get_signless(64))
            return _cast("sitofp", integer, ir.F64Type.get())
        if isinstance(atom, Extreme):
            return _folded(f"{atom.kind}imumf", list(map(self.estimate, atom.args)))
        return _arith("divf", self.estimate(atom.num), _arith("maximumf", self.estimate(atom.den), _float(1.0)))

    def among(self, symbols: Mapping[str, Value]) -> "SizeValues":
        """Values of sizes over other symbols, at the ambient insertion point."""
        found = SizeValues(self._block, {})
        found.symbols.update(symbols)
        return found

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Context whose definitions are undone at its end."""
        before = dict(self.symbols)
        yield
        self.symbols = before

    def define(self, name: str, value: Value) -> None:
        """Defines a symbol, from the ambient insertion point on."""
        self.symbols[name] = value

    def finish(self) -> None:
        """Removes temporary operations."""
        if self._anchor is not None:
            self._anchor.erase()
            self._anchor = None

    def _sum(self, size: Dim) -> Value:
        if len(size.terms) == 1:
            ((m, c),) = size.terms.items()
            if c == _sign(m):
                return self._magnitude(m)
            return _arith("muli", self.value(Dim({m: _sign(m)})), self._number(c * _sign(m)))
        # Terms are sizes that other expressions may share; subtractions follow additions.
        terms = [(m, c, _sign(m)) for m, c in size.terms.items() if m]
        total: Value | None = None
        for m, c, sign in sorted(terms, key=lambda term: term[1] * term[2] < 0):
            value = self.value(Dim({m: abs(c) * sign}))
            if total is None:
                total = value if c * sign > 0 else _arith("muli", value, self._number(-1))
            else:
                total = _arith("addi" if c * sign > 0 else "subi", total, value)
        assert total is not None  # a Dim has terms with symbols
        return _arith("addi", total, self._number(size.terms[()])) if () in size.terms else total

    def _number(self, number: int) -> Value:
        """A constant, at the start of the function too."""
        if self._anchor is None:
            return _constant(number)
        found = self._numbers.get(number)
        if found is None:
            with ir.InsertionPoint(self._anchor), ir.Location.unknown():
                found = self._numbers[number] = _constant(number)
        return found

    def _magnitude(self, m: Monomial) -> Value:
        """The product of atoms without their signs. Parts are cached like sizes."""
        return self._atom(m[0]) if len(m) == 1 else _folded("muli", (self.value(Dim({(atom,): _sign((atom,))})) for atom in m))

    def _atom(self, atom: str | Floor | Extreme) -> Value:
        """The value of an atom, or of its negative for a negative sign."""
        if isinstance(atom, str):
            return self.symbols[atom]
        if isinstance(atom, Extreme):
            return _folded(f"{atom.kind}si", list(map(self.value, atom.args)))
        # The start of a function computes the sizes of all branches, also of branches whose conditions keep the divisor positive.
        den = maximum(atom.den, 1)
        if _sign((atom,)) < 0:
            return _arith("divui", self.value(den - 1 - atom.num), self.value(den))
        # Unsigned division is several times cheaper, and correct for nonnegative operands.
        return _arith("divui" if bounds(atom.num)[0] >= 0 else "floordivsi", self.value(atom.num), self.value(den))


def _sign(m: Monomial) -> int:
    """-1 for an odd number of quotients rounded up, floor(-a / b) = -ceil(a / b), otherwise 1: values are computed from the latter."""
    sign = 1
    for atom in m:
        if isinstance(atom, Floor):
            low, high = bounds(atom.num)
            if low < 0 and high <= 0:
                sign = -sign
    return sign


def _constant(value: int) -> Value:
    type_ = ir.IndexType.get()
    return ir.Operation.create("arith.constant", results=[type_], attributes={"value": ir.IntegerAttr.get(type_, value)}).results[0]


def _float(value: float) -> Value:
    type_ = ir.F64Type.get()
    return ir.Operation.create("arith.constant", results=[type_], attributes={"value": ir.FloatAttr.get(type_, value)}).results[0]


def _cast(name: str, value: Value, type_: ir.Type) -> Value:
    return ir.Operation.create(f"arith.{name}", results=[type_], operands=[value]).results[0]


def _arith(name: str, a: Value, b: Value) -> Value:
    flags = {"overflowFlags": ir.Attribute.parse("#arith.overflow<nsw>")} if name in ("muli", "addi", "subi") else {}
    return ir.Operation.create(f"arith.{name}", results=[a.type], operands=[a, b], attributes=flags).results[0]


def _folded(name: str, values: Iterable[Value]) -> Value:
    """Combines values by an operation, from the first one on; an iterator may emit each right before it is used."""
    return reduce(partial(_arith, name), values)


_CURRENT: contextvars.ContextVar[SizeValues | None] = contextvars.ContextVar("relayc_size_values", default=None)


@contextmanager
def sizes_in(values: SizeValues) -> Iterator[SizeValues]:
    """Makes values available to `size_value`."""
    token = _CURRENT.set(values)
    try:
        yield values
    finally:
        _CURRENT.reset(token)
        values.finish()


@contextmanager
def function_sizes(function: ir.OpView) -> Iterator[SizeValues]:
    """Makes the symbol arguments of a function of one block available to `size_value`."""
    block = function.regions[0].blocks[0]
    with sizes_in(SizeValues(block, {name: block.arguments[i] for name, i in symbol_positions(function).items()})) as values:
        yield values


def size_value(size: Size) -> Value:
    """A size as a value of type index in the function that is being built."""
    if isinstance(size, int):
        return _constant(size)
    return _values_for(size).value(size)


def size_product(value: Value, size: Dim) -> Value:
    """An index times a symbolic size in the function that is being built."""
    return _values_for(size).product(value, size)


def _values_for(size: Dim) -> SizeValues:
    values = _CURRENT.get()
    if values is None:
        raise KeyError(f"{size}: a symbolic size outside of a function that takes symbols")
    return values


def require(found: Value, expected: Value, predicate: str, message: str) -> None:
    """Emits a check in a program: two sizes must satisfy `predicate` (see relay.require)."""
    attributes = {"predicate": ir.StringAttr.get(predicate), "message": ir.StringAttr.get(message)}
    ir.Operation.create(Require.OPERATION_NAME, operands=[found, expected], attributes=attributes)


def require_at_most(size: Size, limit: int, message: str, values: SizeValues | None = None) -> None:
    """Emits a check in a program: a size, which may exceed 64 bits, must be at most a limit, unless this is proved.

    Args:
      message: the expectation, with `%lld` for the limit.
      values: of the symbols; by default of the function that is being built.
    """
    values = values or _CURRENT.get()
    if bounds(size)[1] <= limit:
        return
    assert values is not None  # it is symbolic
    most = _arith("minimumf", values.estimate(size), _float(float(1 << 62)))
    found = _cast("index_cast", _cast("fptosi", most, ir.IntegerType.get_signless(64)), ir.IndexType.get())
    require(_constant(limit), found, "ge", message)


_OPERATIONS: dict[str, Callable[[Size, Size], Size]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: a // b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": ceil_div,
    "arith.minsi": minimum,
    "arith.maxsi": maximum,
}


def read_size(op: ir.Operation, known: Mapping[Value, Size]) -> Size | None:
    """The size that an operation on sizes computes, if `size_value` builds such operations; otherwise None."""
    if len(op.results) != 1 or not isinstance(op.results[0].type, ir.IndexType):
        return None
    if op.name == "arith.constant":
        return ir.IntegerAttr(op.attributes["value"]).value
    operands = [known[v] for v in op.operands if v in known]
    rule = _OPERATIONS.get(op.name)
    return rule(*operands) if rule is not None and len(operands) == 2 else None


def read_condition(op: ir.Operation, sizes: Mapping[Value, Size], known: Mapping[Value, EqualSizes]) -> EqualSizes | None:
    """The condition on sizes that an operation computes: arith.cmpi eq of two, or arith.andi of such conditions; otherwise None."""
    if op.name == "arith.cmpi" and all(v in sizes for v in op.operands) and ir.IntegerAttr(op.attributes["predicate"]).value == 0:
        a, b = (sizes[v] for v in op.operands)
        return EqualSizes(((a, b),))
    if op.name == "arith.andi" and all(v in known for v in op.operands):
        return EqualSizes(tuple(pair for v in op.operands for pair in known[v].pairs))
    return None
