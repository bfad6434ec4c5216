"""The body of a computation: expressions as arith and math operations on scalars, inside a linalg operation."""

from collections.abc import Callable, Sequence
from functools import reduce

from relayc.dialects.mlir import arith, ir, linalg, math
from relayc.pipelines.te.language.expressions import (
    Argument,
    Cast,
    Compare,
    Const,
    Expr,
    IterVar,
    Operation,
    Select,
    SizeExpr,
    TensorElement,
    children_first,
)
from relayc.pipelines.te.language.indices import interval, is_at_least, is_within, linear
from relayc.pipelines.te.language.operands import Operands
from relayc.pipelines.te.language.tensors import Tensor
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.binary import FUNCTIONS, WIDE
from relayc.pipelines.te.rules.contraction import accumulator
from relayc.pipelines.te.rules.core import Value, extract, index_constant
from relayc.pipelines.te.rules.literal import INDEX_DTYPE, clamped, index_of
from relayc.pipelines.te.rules.unary import EXACT, ROUNDING, TRANSCENDENTAL
from relayc.symbolic import Size, bounds

_DIRECT: dict[str, Callable[..., Value]] = {**EXACT, **FUNCTIONS}
"""Functions computed in the operands' own dtype."""
_WIDE: dict[str, Callable[..., Value]] = {**TRANSCENDENTAL, **ROUNDING, **WIDE}
"""Functions that compute 16-bit floats in float32."""
_BITS = {"popcount": math.CtPopOp, "clz": math.CountLeadingZerosOp}
_RELAY_NAMES: dict[str, str] = {"truncdiv": "divide", "truncmod": "mod", "fmod": "mod"}
"""Names of operations among the scalar functions of Relay's operators, where they differ."""
_OF_INDICES: dict[str, type] = {
    "add": arith.AddIOp,
    "subtract": arith.SubIOp,
    "multiply": arith.MulIOp,
    "minimum": arith.MinSIOp,
    "maximum": arith.MaxSIOp,
}


class ScalarEmitter:
    """Emits expressions at the ambient insertion point, each once.

    A value of dtype bool is an i1 here; other values have the types of `scalar`.

    Args:
      operands: the inputs of the linalg operation.
      arguments: the block arguments for them.
      values: returns the value of a tensor, for loads at computed indices.
    """

    def __init__(
        self,
        operands: Operands,
        arguments: Sequence[Value],
        values: Callable[[Tensor], Value],
    ) -> None:
        self._operands, self._arguments, self._tensors = operands, arguments, values
        self._bound: dict[Argument, Value] = {}
        self._values: dict[Expr, Value] = {}
        self._indices: dict[Expr, Value] = {}

    def element(self, x: Expr) -> Value:
        """An expression as an element of a tensor: a bool in its te type."""
        value = self.value(x)
        return scalar.to_bool(value) if x.dtype == "bool" else value

    def bind(self, argument: Argument, value: Value) -> None:
        """Binds an argument of a function to the value of an expression."""
        self._bound[argument] = value

    def bind_element(self, argument: Argument, value: Value) -> None:
        """Binds an argument of a function to an element of a tensor."""
        self._bound[argument] = scalar.to_flag(value) if argument.dtype == "bool" else value

    def value(self, x: Expr) -> Value:
        """An expression as a scalar of its dtype."""
        for y in children_first(x, self._needed, self._values.__contains__):
            self._values[y] = self._emit(y)
        return self._values[x]

    def _needed(self, x: Expr) -> Sequence[Expr]:
        """The operands whose values an expression needs."""
        if id(x) in self._operands.padded:
            _, rest = self._operands.padded[id(x)]
            return [*rest, *x.operands[2:]] if rest else ()
        if x.is_index and x.dtype != "bool":
            return ()
        return [c for c in x.operands if not c.is_index or c.dtype == "bool" or not isinstance(x, (TensorElement, Compare))]

    def _emit(self, x: Expr) -> Value:
        if isinstance(x, Const):
            return _flag(bool(x.value)) if x.dtype == "bool" else scalar.constant(x.value, x.dtype)
        if x.is_index and x.dtype != "bool":
            return arith.IndexCastOp(scalar.te_element(x.dtype), self.index(x)).result
        if isinstance(x, Argument):
            return self._bound[x]
        if isinstance(x, TensorElement):
            return self._element(x)
        if isinstance(x, Select):
            return self._select(x)
        if isinstance(x, Cast):
            return self._cast(x)
        if isinstance(x, Compare):
            if x.is_index and x.operands[0].dtype != "bool":
                left, right = (self.index(v) for v in x.operands)
                return scalar.compare(x.name, left, right, INDEX_DTYPE)
            left, right = (self.value(v) for v in x.operands)
            return scalar.compare(x.name, left, right, x.operands[0].dtype)
        assert isinstance(x, Operation)  # reductions have computations of their own
        return operation(x.name, [self.value(v) for v in x.operands], x.operands[0].dtype)

    def _cast(self, x: Cast) -> Value:
        value, source = self.value(x.value), x.value.dtype
        if x.dtype == "bool":
            return scalar.to_flag(value, source)
        return scalar.convert(scalar.to_bool(value) if source == "bool" else value, source, x.dtype)

    def _select(self, x: Select) -> Value:
        if id(x) not in self._operands.padded:
            return scalar.select(self.value(x.condition), self.value(x.taken), self.value(x.other))
        position, rest = self._operands.padded[id(x)]
        found = self._argument(position, x.dtype)
        if not rest:
            return found
        return scalar.select(reduce(scalar.both, [self.value(part) for part in rest]), found, self.value(x.other))

    def _argument(self, position: int, dtype: str) -> Value:
        """The element of an input."""
        value = self._arguments[position]
        return scalar.to_flag(value) if dtype == "bool" else value

    def _element(self, x: TensorElement) -> Value:
        if id(x) in self._operands.elements:
            return self._argument(self._operands.elements[id(x)], x.dtype)
        at = [self._bounded(index, size) for index, size in zip(x.indices, x.tensor.type.sizes, strict=True)]
        value = extract(self._tensors(x.tensor), at)
        return scalar.to_flag(value) if x.dtype == "bool" else value

    def _bounded(self, x: Expr, size: Size) -> Value:
        """An index into a dimension of `size`, clipped unless it is known to be in bounds."""
        index = self.index(x) if x.is_index else index_of(self.value(x), x.dtype)
        form = linear(x)
        return index if form is not None and is_within(interval(form), size) else clamped(index, size)

    # ---- indices

    def index(self, x: Expr) -> Value:
        """An expression of only indices and sizes, as a value of type index."""
        for y in children_first(x, lambda y: [c for c in y.operands if c.dtype != "bool"], self._indices.__contains__):
            self._indices[y] = self._emit_index(y)
        return self._indices[x]

    def _emit_index(self, x: Expr) -> Value:
        if isinstance(x, Const):
            return index_constant(int(x.value))
        if isinstance(x, SizeExpr):
            return index_constant(x.size)
        if isinstance(x, IterVar):
            loop = linalg.IndexOp(self._operands.loops[x.position]).result
            return loop if x.low == 0 else arith.AddIOp(loop, index_constant(x.low)).result
        if isinstance(x, Cast):
            return self.index(x.value)
        if isinstance(x, Select):
            return scalar.select(self.value(x.condition), self.index(x.taken), self.index(x.other))
        assert isinstance(x, Operation)  # other expressions are not indices
        left, right = (self.index(v) for v in x.operands)
        if x.name in _OF_INDICES:
            return _OF_INDICES[x.name](left, right).result
        return self._divided(x, left, right)

    def _divided(self, x: Operation, a: Value, b: Value) -> Value:
        """A quotient or remainder. Unsigned division is several times cheaper, and correct for nonnegative operands."""
        if not _is_at_least(x.operands[1], 1):
            zero, one = index_constant(0), index_constant(1)
            b = scalar.select(scalar.compare("eq", b, zero, INDEX_DTYPE), one, b)
        if _is_at_least(x.operands[0], 0) and _is_at_least(x.operands[1], 0):
            return (arith.DivUIOp if x.name.endswith("div") or x.name == "floor_divide" else arith.RemUIOp)(a, b).result
        if x.name.startswith("trunc"):
            return (arith.DivSIOp if x.name == "truncdiv" else arith.RemSIOp)(a, b).result
        quotient = arith.FloorDivSIOp(a, b).result
        return quotient if x.name == "floor_divide" else arith.SubIOp(a, arith.MulIOp(quotient, b).result).result


def _is_at_least(x: Expr, least: int) -> bool:
    """Whether it is proved that an index is at least a number."""
    if isinstance(x, SizeExpr):
        return bounds(x.size)[0] >= least
    form = linear(x)
    low = None if form is None else interval(form)[0]
    return low is not None and is_at_least(low, least)


def _flag(value: bool) -> Value:
    i1 = ir.IntegerType.get_signless(1)
    return arith.ConstantOp(i1, ir.IntegerAttr.get(i1, int(value))).result


def operation(name: str, values: Sequence[Value], dtype: str) -> Value:
    """An operation on scalars of one dtype."""
    if name in ("and", "or"):
        return (scalar.both if name == "and" else scalar.either)(*values)
    if name == "not":
        return scalar.negated(*values)
    if name in ("isnan", "isinf", "isfinite"):
        (value,) = values
        if name == "isnan":
            return scalar.compare("ne", value, value, dtype)
        predicate = "eq" if name == "isinf" else "lt"
        return scalar.compare(predicate, scalar.absolute(value, dtype), scalar.constant(float("inf"), dtype), dtype)
    if name in _BITS:
        return _BITS[name](*values).result
    called = _RELAY_NAMES.get(name, name)
    if called in _DIRECT:
        return _DIRECT[called](*values, dtype)
    wide = accumulator(dtype)
    return scalar.convert(_WIDE[called](*(scalar.convert(v, dtype, wide) for v in values), wide), wide, dtype)
