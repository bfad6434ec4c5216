"""Bounds of the elements of integer tensors, as far as the operators that compute them say."""

from collections.abc import Callable
from math import isinf
from typing import TypeAlias

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.reduce import reduced_axes
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.sort import TopK
from relayc.dialects.relay.types import TensorType, numpy_dtype
from relayc.pipelines.graph.positions import positions_of
from relayc.pipelines.graph.rewrite import Rewriter
from relayc.symbolic import Size, bounds, maximum, minimum, product, proves

Ends: TypeAlias = tuple[Size | None, Size | None]
"""The minimum and the maximum element, if there are elements; None if unknown."""

_UNKNOWN: Ends = (None, None)
_DEPTH = 24
"""Maximum length of the chain of operators analysed."""


def ends_of(value: ir.Value, rw: Rewriter) -> Ends:
    """Bounds of the elements of a tensor of integers or bools."""
    known: dict[ir.Value, Ends] = {}

    def ends(value: ir.Value, depth: int) -> Ends:
        if value not in known:
            known[value] = _found(value, rw, lambda v: ends(v, depth - 1)) if depth else _UNKNOWN
        return known[value]

    return ends(value, _DEPTH)


def _found(value: ir.Value, rw: Rewriter, ends: "_EndsOf") -> Ends:
    """Bounds of the elements of a tensor; `ends` returns the bounds of other tensors."""
    type_ = TensorType.of(value)
    if type_.dtype == "bool":
        return 0, 1
    if type_.is_float or not type_.is_computed or not type_.is_known:
        return _UNKNOWN
    exact = exact_ends_of(value, rw)
    if exact is not None:
        return exact
    op = value.owner
    rule = _RULES.get(type(op)._op_name) if isinstance(op, Op) else None
    if isinstance(op, TopK) and op.ret_type != "indices" and value == op.operation.results[0]:
        rule = _same  # the values
    return _UNKNOWN if rule is None else _within(rule(op, ends), type_.dtype)


def exact_ends_of(value: ir.Value, rw: Rewriter) -> tuple[Size, Size] | None:
    """The minimum and the maximum of an integer tensor, both attained if it has elements; None if they are unknown."""
    array = rw.array(value)
    if array is not None and array.size:
        return int(array.min()), int(array.max())
    found = positions_of(value, rw)
    return None if found is None else found.ends


def _within(ends: Ends, dtype: str) -> Ends:
    """Bounds of what may not be in the range of its type, and is another number then."""
    low, high = ends
    info = np.iinfo(numpy_dtype(dtype))
    if (low is not None and bounds(low)[0] < info.min) or (high is not None and bounds(high)[1] > info.max):
        return _UNKNOWN
    # If one side is unbounded, values may wrap around to the other.
    return ends if None not in ends or numpy_dtype(dtype).itemsize == 8 else _UNKNOWN


_EndsOf: TypeAlias = Callable[[ir.Value], Ends]


def _same(op: Op, ends: _EndsOf) -> Ends:
    return ends(op.operation.operands[0])


def _any_of(*ends: Ends) -> Ends:
    lows, highs = zip(*ends, strict=True)
    return None if None in lows else minimum(*lows), None if None in highs else maximum(*highs)


def _all_operands(op: Op, ends: _EndsOf) -> Ends:
    return _any_of(*map(ends, op.operation.operands))


def _add(op: Op, ends: _EndsOf) -> Ends:
    (a, b), (c, d) = ends(op.lhs), ends(op.rhs)
    return None if a is None or c is None else a + c, None if b is None or d is None else b + d


def _subtract(op: Op, ends: _EndsOf) -> Ends:
    (a, b), (c, d) = ends(op.lhs), ends(op.rhs)
    return None if a is None or d is None else a - d, None if b is None or c is None else b - c


def _multiply(op: Op, ends: _EndsOf) -> Ends:
    (a, b), (c, d) = ends(op.lhs), ends(op.rhs)
    if a is None or b is None or c is None or d is None:
        return _UNKNOWN
    corners = [x * y for x in (a, b) for y in (c, d)]
    return minimum(*corners), maximum(*corners)


def _negative(op: Op, ends: _EndsOf) -> Ends:
    low, high = ends(op.data)
    return None if high is None else -high, None if low is None else -low


def _absolute(op: Op, ends: _EndsOf) -> Ends:
    low, high = ends(op.data)
    return 0, None if low is None or high is None else maximum(high, low * -1)


def _maximum(op: Op, ends: _EndsOf) -> Ends:
    (a, b), (c, d) = ends(op.lhs), ends(op.rhs)
    lows = [x for x in (a, c) if x is not None]
    return maximum(*lows) if lows else None, None if b is None or d is None else maximum(b, d)


def _minimum(op: Op, ends: _EndsOf) -> Ends:
    (a, b), (c, d) = ends(op.lhs), ends(op.rhs)
    highs = [x for x in (b, d) if x is not None]
    return None if a is None or c is None else minimum(a, c), minimum(*highs) if highs else None


def _floor_mod(op: Op, ends: _EndsOf) -> Ends:
    low, high = ends(op.rhs)
    return (0, high - 1) if low is not None and high is not None and proves(lambda: low > 0) else _UNKNOWN


def _clip(op: Op, ends: _EndsOf) -> Ends:
    """Of min(max(x, a_min), a_max), where these are integers: a limit bounds both sides, as x may be beyond it everywhere."""
    low, high = ends(op.data)
    limits = [None if v is None or isinf(v) else v for v in (op.a_min, op.a_max)]
    if any(v is not None and not float(v).is_integer() for v in limits):
        return _UNKNOWN
    least, most = (None if v is None else int(v) for v in limits)
    if least is not None:
        low, high = least if low is None else maximum(low, least), None if high is None else maximum(high, least)
    if most is not None:
        low, high = None if low is None else minimum(low, most), most if high is None else minimum(high, most)
    return low, high


def _where(op: Op, ends: _EndsOf) -> Ends:
    return _any_of(ends(op.x), ends(op.y))


def _sizes(op: Op, ends: _EndsOf) -> Ends:
    return minimum(*op.values), maximum(*op.values)


def _position_along(op: Op, ends: _EndsOf) -> Ends:
    """For operators that return positions along an axis of their operand."""
    source = TensorType.of(op.data)
    return 0, maximum(source.sizes[normalize_axis(op.axis, source.rank)] - 1, 0) if source.is_known else None


def _position_of_extreme(op: Op, ends: _EndsOf) -> Ends:
    source = TensorType.of(op.data)
    return 0, product(source.sizes[a] for a in reduced_axes(source.rank, op.axis, op.exclude)) - 1 if source.is_known else None


_MOVES = "broadcast_to cast expand_dims gather gather_nd match_shape repeat reshape reverse sort squeeze strided_slice take tile transpose"

_RULES: dict[str, Callable[[Op, _EndsOf], Ends]] = {
    **dict.fromkeys(_MOVES.split(), _same),
    **dict.fromkeys(("concatenate", "stack"), _all_operands),
    **dict.fromkeys(("argmax", "argmin"), _position_of_extreme),
    "abs": _absolute,
    "add": _add,
    "argsort": _position_along,
    "clip": _clip,
    "floor_mod": _floor_mod,
    "maximum": _maximum,
    "minimum": _minimum,
    "multiply": _multiply,
    "negative": _negative,
    "sizes": _sizes,
    "subtract": _subtract,
    "topk": _position_along,
    "where": _where,
}
