"""Integer divisions never trap: each has a divisor that is proven safe, or one that is replaced by 1 where the processor would trap.

A division by 0, and of the lowest integer by -1, ends the process on x86. `guard_divisions` proves for each division of a module that
neither can happen, from intervals of what the divisor is computed of, or from a `select` that leaves both cases out. Any other division gets
such a `select`: x / 0 is x then, x % 0 is 0, and the lowest integer divided by -1 is itself, as the compute rules of `divide` and `mod` say
(pipelines.te.binary). `check_divisions` raises an error instead.
"""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.sizes import SYMBOL
from relayc.pipelines.tir import emit
from relayc.symbolic import Ranges

SIGNED = frozenset(("arith.divsi", "arith.remsi", "arith.floordivsi", "arith.ceildivsi"))
DIVISIONS = SIGNED | {"arith.divui", "arith.remui", "arith.ceildivui"}
"""Operations that trap. Divisors in affine maps are positive numbers: MLIR lowers no others."""
_FAR = 1 << 63
"""Beyond the integers of 64 bits."""
_DEPTH = 24
"""Operations between a divisor and what its interval follows from, at most."""

Interval = tuple[int, int]
"""The lowest and the highest number that a signed integer, or an element of a vector of them, may be."""


def divisions(module: ir.Module) -> list[ir.Operation]:
    """The integer divisions and remainders of a module."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in DIVISIONS:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def guard_divisions(found: Sequence[ir.Operation]) -> None:
    """Replaces the divisors that are not proven safe, in place."""
    intervals = Intervals()
    for op in found:
        if intervals.is_safe(op):
            continue
        a, b = op.operands
        with ir.InsertionPoint(op), op.location:
            traps = emit.compare("eq", b, emit.number(0, b.type))
            if op.name in SIGNED:
                overflows = emit.arith("andi", *(emit.compare("eq", v, emit.number(n, v.type)) for v, n in ((a, _lowest(a)), (b, -1))))
                traps = emit.arith("ori", traps, overflows)
            op.operands[1] = emit.select(traps, emit.number(1, b.type), b)


def check_divisions(module: ir.Module) -> None:
    """Raises ValueError that names the first division whose divisor is not proven safe."""
    intervals = Intervals()
    for op in divisions(module):
        if not intervals.is_safe(op):
            raise ValueError(f"{op.location}: expected a division by what is not 0, found {op}")


class Intervals:
    """Intervals of integers, from the operations that compute them: they hold as long as these stay.

    Numbers of type index are sizes and offsets in memory, whose sums and products are taken to fit into 64 bits.
    """

    def __init__(self) -> None:
        self._found: dict[ir.Value, Interval] = {}

    def is_safe(self, division: ir.Operation) -> bool:
        """Whether a division cannot trap."""
        a, b = division.operands
        return self._is_safe(a, b, division.name in SIGNED, [])

    def _is_safe(self, a: ir.Value, b: ir.Value, signed: bool, excluded: Sequence[ir.Value]) -> bool:
        """`excluded` are conditions that do not hold where the divisor is `b`."""
        low, high = self.of(b)
        is_zero = low <= 0 <= high and not any(_is_equal_to(c, b, 0) for c in excluded)
        overflows = signed and low <= -1 <= high and self.of(a)[0] <= _lowest(a) and not any(_is_overflow(c, a, b) for c in excluded)
        if not is_zero and not overflows:
            return True
        op = _definition(b)
        if op is None or op.name != "arith.select":
            return False
        condition, chosen, other = op.operands
        return self._is_safe(a, chosen, signed, excluded) and self._is_safe(a, other, signed, [*excluded, *_any_of(condition)])

    def of(self, value: ir.Value, depth: int = _DEPTH) -> Interval:
        """The interval of a value: all that its type holds where nothing else is known."""
        found = self._found.get(value)
        if found is None:
            known = _interval(value, lambda v: self.of(v, depth - 1)) if depth else None
            low, high = widest = _all_of(value.type)
            found = widest if known is None else known
            if isinstance(emit.element_of(value.type), ir.IndexType):
                found = _within(found[0], low, high), _within(found[1], low, high)
            elif found[0] < low or found[1] > high:
                found = widest
            self._found[value] = found
        return found


def _within(number: int, low: int, high: int) -> int:
    return max(low, min(number, high))


def _all_of(type_: ir.Type) -> Interval:
    element = emit.element_of(type_)
    most = 1 << (element.width - 1) if isinstance(element, ir.IntegerType) else _FAR
    return -most, most - 1


def _lowest(value: ir.Value) -> int:
    return _all_of(value.type)[0]


def _definition(value: ir.Value) -> ir.Operation | None:
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def _constant(value: ir.Value) -> int | None:
    op = _definition(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def _any_of(condition: ir.Value) -> list[ir.Value]:
    """The conditions of which one at least holds where this one does."""
    op = _definition(condition)
    return [c for v in op.operands for c in _any_of(v)] if op is not None and op.name == "arith.ori" else [condition]


def _is_equal_to(condition: ir.Value, value: ir.Value, number: int) -> bool:
    """Whether a condition is that a value is a number."""
    op = _definition(condition)
    if op is None or op.name != "arith.cmpi" or ir.IntegerAttr(op.attributes["predicate"]).value != 0:
        return False
    left, right = op.operands
    return (left == value and _constant(right) == number) or (right == value and _constant(left) == number)


def _is_overflow(condition: ir.Value, a: ir.Value, b: ir.Value) -> bool:
    """Whether a condition holds where `a` is the lowest integer and `b` is -1."""
    op = _definition(condition)
    parts = list(op.operands) if op is not None and op.name == "arith.andi" else [condition]
    return all(_is_equal_to(c, a, _lowest(a)) or _is_equal_to(c, b, -1) for c in parts)


# ---- intervals of operations

_Of = Callable[[ir.Value], Interval]


def _interval(value: ir.Value, of: _Of) -> Interval | None:
    """The interval of a value by those of others, which may reach beyond its type; None where nothing is known."""
    op = _definition(value)
    if op is None:
        return _of_argument(ir.BlockArgument(value), of)
    if op.name == "arith.constant":
        number = _constant(value)
        return None if number is None else (number, number)
    rule = _RULES.get(op.name)
    return None if rule is None else rule([of(v) for v in op.operands])


def _of_argument(value: ir.BlockArgument, of: _Of) -> Interval | None:
    """A symbol of a function, or the variable of a loop."""
    op, number = value.owner.owner.operation, value.arg_number
    if op.name == "func.func" and "arg_attrs" in op.attributes:
        attributes = ir.DictAttr(op.attributes["arg_attrs"][number])
        if SYMBOL in attributes and value.owner == op.regions[0].blocks[0]:
            known = Ranges.current().of(ir.StringAttr(attributes[SYMBOL]).value)
            return known.low, known.high
    if op.name == "scf.for" and number == 0:
        return of(op.operands[0])[0], of(op.operands[1])[1] - 1
    if op.name == "scf.parallel":
        count = len(op.regions[0].blocks[0].arguments)
        return of(op.operands[number])[0], of(op.operands[count + number])[1] - 1
    return None


def _ends(combine: Callable[[int, int], int], a: Interval, b: Interval) -> Interval:
    """The interval of what is monotonic in each operand."""
    found = [combine(x, y) for x in a for y in b]
    return min(found), max(found)


def _quotient(operands: list[Interval]) -> Interval | None:
    (low, high), (least, most) = operands
    return (low // most, high // least) if low >= 0 and least >= 1 else None


def _quotient_up(operands: list[Interval]) -> Interval | None:
    (low, high), (least, most) = operands
    return (-(-low // most), -(-high // least)) if low >= 0 and least >= 1 else None


def _remainder(operands: list[Interval]) -> Interval | None:
    (low, high), (least, most) = operands
    return (0, min(high, most - 1)) if low >= 0 and least >= 1 else None


def _of_natural(rule: Callable[[list[Interval]], Interval]) -> Callable[[list[Interval]], Interval | None]:
    """A rule of signed integers for an operation on unsigned ones: the same where none is negative."""
    return lambda operands: rule(operands) if all(low >= 0 for low, _ in operands) else None


def _least(operands: list[Interval]) -> Interval:
    return _ends(min, *operands)


def _largest(operands: list[Interval]) -> Interval:
    return _ends(max, *operands)


def _same(operands: list[Interval]) -> Interval:
    return operands[0]


_RULES: dict[str, Callable[[list[Interval]], Interval | None]] = {
    "arith.addi": lambda operands: _ends(int.__add__, *operands),
    "arith.subi": lambda operands: _ends(int.__sub__, *operands),
    "arith.muli": lambda operands: _ends(int.__mul__, *operands),
    "arith.divui": _quotient,
    "arith.divsi": _quotient,
    "arith.floordivsi": _quotient,
    "arith.ceildivui": _quotient_up,
    "arith.ceildivsi": _quotient_up,
    "arith.remui": _remainder,
    "arith.remsi": _remainder,
    "arith.minsi": _least,
    "arith.maxsi": _largest,
    "arith.minui": _of_natural(_least),
    "arith.maxui": _of_natural(_largest),
    "arith.select": lambda operands: (min(operands[1][0], operands[2][0]), max(operands[1][1], operands[2][1])),
    "arith.index_cast": _same,
    "arith.index_castui": _of_natural(_same),
    "arith.extsi": _same,
    "arith.extui": _of_natural(_same),
    "arith.trunci": _same,
    "memref.dim": lambda operands: (0, _FAR),
    "vector.broadcast": _same,
}
