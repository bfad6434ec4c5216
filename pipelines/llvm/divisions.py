"""Prevents integer divisions from trapping: on x86 a division by 0, and of the lowest integer by -1, ends the process.

`guard_divisions` divides by 1 instead, unless it is proved that neither happens: then x / 0 is x, x % 0 is 0, and the lowest integer
divided by -1 is itself, as in the compute rules of `divide` and `mod` (pipelines.te.rules.binary). `check_divisions` is for tests: it
raises an error if code before machine code generation has a division without such a proof.

A proof is an interval of the divisor that follows from the operations which compute it, or a `select` that replaces the divisor where it
would trap. Neither depends on control flow or on the ranges of symbols, so a proof of the tir stage holds in the LLVM dialect too.
"""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.operations import find_operations, producer_of
from relayc.pipelines.emission import emit

_ARITH_NAMES = {
    "llvm.sdiv": "arith.divsi",
    "llvm.udiv": "arith.divui",
    "llvm.srem": "arith.remsi",
    "llvm.urem": "arith.remui",
    "llvm.add": "arith.addi",
    "llvm.sub": "arith.subi",
    "llvm.mul": "arith.muli",
    "llvm.and": "arith.andi",
    "llvm.or": "arith.ori",
    "llvm.icmp": "arith.cmpi",
    "llvm.select": "arith.select",
    "llvm.sext": "arith.extsi",
    "llvm.zext": "arith.extui",
    "llvm.intr.smin": "arith.minsi",
    "llvm.intr.smax": "arith.maxsi",
    "llvm.intr.umin": "arith.minui",
    "llvm.mlir.constant": "arith.constant",
}
"""Names in the arith dialect of operations of the LLVM dialect."""
_SIGNED = frozenset(("arith.divsi", "arith.remsi", "arith.floordivsi", "arith.ceildivsi"))
_DIVISIONS = _SIGNED | {"arith.divui", "arith.remui", "arith.ceildivui"}
"""Divisors in affine maps are positive numbers: MLIR lowers no others."""
_INDEX_BITS = 64
_DEPTH = 24
"""Limit of the operations between a divisor and the operations that determine its interval."""

Interval = tuple[int, int]
"""The lowest and the highest value of a signed integer, or of the elements of a vector."""


def guard_divisions(module: ir.Module) -> None:
    """Divides by 1 where a division of a tir module may trap, in place."""
    proofs = Proofs()
    for op in _divisions(module):
        if proofs.is_safe(op):
            continue
        a, b = op.operands
        with ir.InsertionPoint(op), op.location:
            traps = emit.compare("eq", b, emit.zero(b.type))
            if op.name in _SIGNED:
                lowest, minus_one = emit.number(_all_of(a.type)[0], a.type), emit.number(-1, b.type)
                overflows = emit.arith("andi", emit.compare("eq", a, lowest), emit.compare("eq", b, minus_one))
                traps = emit.arith("ori", traps, overflows)
            op.operands[1] = emit.select(traps, emit.number(1, b.type), b)


def check_divisions(module: ir.Module) -> None:
    """Raises ValueError that names the first division of a module, of arith or LLVM operations, without a proof that it does not trap."""
    proofs = Proofs()
    for op in _divisions(module):
        if not proofs.is_safe(op):
            raise ValueError(f"expected a division that cannot trap, found {op} by {op.operands[1]} at {op.location}")


def _divisions(module: ir.Module) -> list[ir.Operation]:
    return find_operations(module.operation, lambda op: _name(op) in _DIVISIONS)


class Proofs:
    """Facts about the integers of a module, valid while its operations do not change."""

    def __init__(self) -> None:
        self._found: dict[ir.Value, Interval] = {}

    def is_safe(self, division: ir.Operation) -> bool:
        """Whether it is proven that a division does not trap."""
        a, b = division.operands
        return self._is_safe(a, b, _name(division) in _SIGNED, [])

    def _is_safe(self, a: ir.Value, b: ir.Value, signed: bool, excluded: Sequence[ir.Value]) -> bool:
        """`excluded`: conditions that are false where the divisor is `b`."""
        low, high = self.interval(b)
        is_zero = low <= 0 <= high and not any(_is_equality(c, b, 0) for c in excluded)
        lowest = _all_of(a.type)[0]
        overflows = signed and low <= -1 <= high and self.interval(a)[0] <= lowest and not any(_is_overflow(c, a, b) for c in excluded)
        if not is_zero and not overflows:
            return True
        op = producer_of(b)
        if op is None or _name(op) != "arith.select":
            return False
        condition, chosen, other = op.operands
        return self._is_safe(a, chosen, signed, excluded) and self._is_safe(a, other, signed, [*excluded, *_any_of(condition)])

    def interval(self, value: ir.Value, depth: int = _DEPTH) -> Interval:
        """The interval of a value: all numbers of its type if nothing else is known."""
        found = self._found.get(value)
        if found is None:
            found = _all_of(value.type)
            op = producer_of(value)
            known = None if op is None or depth == 0 else self._of_operation(op, value, depth)
            if known is not None and found[0] <= known[0] and known[1] <= found[1]:
                found = known
            self._found[value] = found
        return found

    def _of_operation(self, op: ir.Operation, result: ir.Value, depth: int) -> Interval | None:
        """The interval of the result of an operation, which may exceed its type; None if unknown."""
        name = _name(op)
        if name == "arith.constant":
            return _of_constant(op)
        if name == "llvm.shufflevector":
            scalar = _broadcast(op)
            return None if scalar is None else self.interval(scalar, depth - 1)
        rule = _RULES.get(name)
        return None if rule is None else rule([self.interval(v, depth - 1) for v in op.operands])


def _name(op: ir.Operation) -> str:
    return _ARITH_NAMES.get(op.name, op.name)


def _all_of(type_: ir.Type) -> Interval:
    element = emit.element_of(type_)
    most = 1 << ((element.width if isinstance(element, ir.IntegerType) else _INDEX_BITS) - 1)
    return -most, most - 1


def _constant(value: ir.Value) -> int | None:
    """The value of a constant, or of each element of a constant vector."""
    op = producer_of(value)
    if op is None or _name(op) != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def _of_constant(op: ir.Operation) -> Interval | None:
    """The interval of a constant, or of the elements of a constant vector of signed integers."""
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseIntElementsAttr) and not attribute.is_splat:
        elements = list(attribute)
        return min(elements), max(elements)
    number = _constant(op.results[0])
    return None if number is None else (number, number)


def _broadcast(shuffle: ir.Operation) -> ir.Value | None:
    """The scalar of a broadcast in the LLVM dialect: inserted into lane 0, and shuffled to all lanes."""
    insertion = producer_of(shuffle.operands[0])
    if insertion is None or insertion.name != "llvm.insertelement" or any(ir.DenseI32ArrayAttr(shuffle.attributes["mask"])):
        return None
    _, scalar, lane = insertion.operands
    return scalar if _constant(lane) == 0 else None


def _any_of(condition: ir.Value) -> list[ir.Value]:
    """Conditions at least one of which holds if the given one does."""
    op = producer_of(condition)
    return [c for v in op.operands for c in _any_of(v)] if op is not None and _name(op) == "arith.ori" else [condition]


def _is_equality(condition: ir.Value, value: ir.Value, number: int) -> bool:
    """Whether a condition tests that a value equals a number."""
    op = producer_of(condition)
    if op is None or _name(op) != "arith.cmpi" or ir.IntegerAttr(op.attributes["predicate"]).value != 0:
        return False
    left, right = op.operands
    return (left == value and _constant(right) == number) or (right == value and _constant(left) == number)


def _is_overflow(condition: ir.Value, a: ir.Value, b: ir.Value) -> bool:
    """Whether a condition is true if `a` is the lowest integer and `b` is -1."""
    op = producer_of(condition)
    parts = list(op.operands) if op is not None and _name(op) == "arith.andi" else [condition]
    return all(_is_equality(c, a, _all_of(a.type)[0]) or _is_equality(c, b, -1) for c in parts)


# ---- intervals of operations


def _of_ends(combine: Callable[[int, int], int]) -> "_Rule":
    """The rule of an operation that is monotonic in each operand."""

    def rule(operands: list[Interval]) -> Interval:
        a, b = operands
        found = [combine(x, y) for x in a for y in b]
        return min(found), max(found)

    return rule


def _of_natural(rule: "_Rule") -> "_Rule":
    """A rule for signed integers, for unsigned operations: valid if no operand is negative."""
    return lambda operands: rule(operands) if all(low >= 0 for low, _ in operands) else None


def _of_division(rule: "_Rule") -> "_Rule":
    return lambda operands: rule(operands) if operands[0][0] >= 0 and operands[1][0] >= 1 else None


def _union(operands: list[Interval]) -> Interval:
    _, (low, high), (least, most) = operands
    return min(low, least), max(high, most)


_Rule = Callable[[list[Interval]], Interval | None]
_QUOTIENT = _of_division(_of_ends(lambda a, b: a // b))
_QUOTIENT_UP = _of_division(_of_ends(lambda a, b: -(-a // b)))
_REMAINDER = _of_division(lambda operands: (0, min(operands[0][1], operands[1][1] - 1)))
_RULES: dict[str, _Rule] = {
    "arith.addi": _of_ends(int.__add__),
    "arith.subi": _of_ends(int.__sub__),
    "arith.muli": _of_ends(int.__mul__),
    "arith.divui": _QUOTIENT,
    "arith.divsi": _QUOTIENT,
    "arith.floordivsi": _QUOTIENT,
    "arith.ceildivui": _QUOTIENT_UP,
    "arith.ceildivsi": _QUOTIENT_UP,
    "arith.remui": _REMAINDER,
    "arith.remsi": _REMAINDER,
    "arith.minsi": _of_ends(min),
    "arith.maxsi": _of_ends(max),
    "arith.minui": _of_natural(_of_ends(min)),
    "arith.select": _union,
    "arith.extsi": lambda operands: operands[0],
    "arith.extui": _of_natural(lambda operands: operands[0]),
    "arith.index_cast": lambda operands: operands[0],
    "vector.broadcast": lambda operands: operands[0],
}
