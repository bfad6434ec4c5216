"""Reductions along axes. A region without an operator of Relay combines neighbours repeatedly, if the size is known."""

from collections.abc import Sequence
from typing import Any

from relayc.frontend.common.reductions import lowest
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.stablehlo.elementwise import bitwise, combined
from relayc.frontend.stablehlo.regions import expression
from relayc.frontend.stablehlo.registry import Node, Pair, op, whole
from relayc.frontend.steps import as_numbers, broadcast_to, cast, filled, reshape, strided_slice

_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "and": "all", "or": "any"}
OPERATORS = {f"{name}({a},{b})": name for name in _REDUCTIONS for a, b in (("x0", "x1"), ("x1", "x0"))}
"""The operators that combine two numbers, by the text of a region."""
_NEUTRAL = {"add": 0, "multiply": 1, "maximum": None, "minimum": None, "and": 1, "or": 0}


def operator_of(block: Any) -> str | None:
    """The operator of StableHLO that a region is, if it is a single one that combines."""
    found = expression(block)
    return OPERATORS.get(found[0]) if len(found) == 1 else None


def _extremum(block: Any) -> str | None:
    """argmax or argmin, if a region is the region that jax.numpy generates for it, of a number and its position."""
    found = expression(block)
    for name, better in (("argmax", "gt"), ("argmin", "lt")):
        for wins in (f"or({better}(x0,x2),ne(x0,x0))", f"{better}(x0,x2)"):
            position = f"select(or({wins},and(eq(x0,x2),lt(x1,x3))),x1,x3)"
            if found == (f"select({wins},x0,x2)", position):
                return name
    return None


def is_neutral(value: Tensor, name: str) -> bool:
    """Whether a number changes nothing that an operator combines it with."""
    if not value.is_known:
        return False
    number = value.array.reshape(-1)[0]
    if _NEUTRAL[name] is not None:
        return bool(number == _NEUTRAL[name])
    return bool(number == lowest(value.dtype, name == "minimum"))


def combine(name: str, a: Tensor, b: Tensor) -> Tensor:
    """Two operands of an operator that combines."""
    return bitwise(name, a, b) if name in ("and", "or") else combined(name, a, b)


def apply_region(node: Node, block: Any, values: Sequence[Tensor]) -> list[Tensor]:
    """What a region of scalars gives for tensors of one shape, element by element."""
    found = [whole(v) for v in node.program.block(block, values, node.scope, of_scalars=True)]
    return [broadcast_to(f, v.shape) for f, v in zip(found, values, strict=False)]


@op("reduce", complex_too=True)
def reduce(node: Node, *operands: Any) -> Any:
    count = len(operands) // 2
    data, first = operands[:count], operands[count:]
    axes = node.ints("dimensions")
    block = node.region(0)
    if any(isinstance(x, Pair) for x in data):
        if count != 1 or operator_of(block) != "add":
            raise ModelError(f"expected a sum of complex numbers, found {' '.join(expression(block)) or 'another region'}")
        return Pair(*(emit("add", emit("sum", x, axis=axes) if axes else x, start) for x, start in zip(data[0], first[0], strict=True)))
    if count == 2 and len(axes) == 1 and (name := _extremum(block)) is not None and _is_iota(node, 1, axes[0]):
        x = as_numbers(data[0])
        place = node.program.without(cast(emit(name, x, axis=axes, keepdims=True), data[1].dtype), axes)
        if list(node.op.results[0].uses):
            return cast(emit("max" if name == "argmax" else "min", x, axis=axes), data[0].dtype), place
        return filled(place.shape, 0, data[0].dtype), place
    name = operator_of(block) if count == 1 else None
    if name is None or (name in ("and", "or") and data[0].dtype != "bool"):
        return _halved(node, block, data, first, axes)
    x = data[0]
    if not axes:
        return combine(name, x, first[0])
    relay_name = {"sum": "any", "max": "any", "min": "all", "prod": "all"}.get(_REDUCTIONS[name]) if x.dtype == "bool" else None
    kept = emit(relay_name or _REDUCTIONS[name], x, axis=axes, keepdims=True)
    found = node.program.without(kept, axes)
    if not is_neutral(first[0], name):
        return combine(name, found, first[0])
    if name == "add":
        node.program.sums[id(found)] = found, x, axes
        node.program.sums[id(kept)] = kept, x, axes
    return found


def _is_iota(node: Node, i: int, axis: int) -> bool:
    owner = node.op.operands[i].owner
    name = str(getattr(owner, "name", ""))
    return name in ("stablehlo.iota", "stablehlo.dynamic_iota") and owner.attributes["iota_dimension"].value == axis


def _halved(node: Node, block: Any, data: Sequence[Tensor], first: Sequence[Tensor], axes: Sequence[int]) -> list[Tensor]:
    """The reduction by any region: combines neighbours along an axis until one element is left."""
    values = list(data)
    for axis in axes:
        size = values[0].shape[axis]
        if not isinstance(size, int):
            raise ModelError(f"expected a reduction by one operator, or of an axis of known size, found {' '.join(expression(block))}")
        while size > 1:  # neighbours are joined: regions need not be commutative
            even = size - size % 2
            left, right = ([strided_slice(t, (i,), (even,), (2,), (axis,)) for t in values] for i in range(2))
            joined = apply_region(node, block, [*left, *right])
            last = [strided_slice(t, (even,), (size,), (1,), (axis,)) for t in values]
            values = [emit("concatenate", j, r, axis=axis) for j, r in zip(joined, last, strict=True)] if size % 2 else joined
            size = even // 2 + size % 2
    result = [d for i, d in enumerate(data[0].shape) if i not in axes]
    start = [broadcast_to(t, result) for t in first]
    if 0 in data[0].shape:
        return start
    return apply_region(node, block, [*start, *(reshape(t, result) for t in values)])
