"""Causal masks that a program computes: conditions that compare the positions of keys with those of queries.

Where sizes are numbers such a mask is folded to a constant; where they are symbols it is `key <= query` of two `arange`, of which one may
begin behind what is cached.
"""

from collections.abc import Iterator

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.types import TensorType, numpy_dtype
from relayc.pipelines.graph.rewrite import Rewriter
from relayc.symbolic import Dim, Size

_COMPARISONS = (("less_equal", True, 0), ("less", True, -1), ("greater_equal", False, 0), ("greater", False, -1))
"""Operators that give key <= query + c: name, whether the key is on the left, c."""


def conjuncts(condition: ir.Value, rw: Rewriter) -> Iterator[ir.Value]:
    """The conditions that are all true where `condition` is; each broadcasts to it. Those that are constant and true are left out."""
    both, broadcast = rw.producer(condition, "logical_and"), rw.producer(condition, "broadcast_to")
    if both is not None:
        yield from conjuncts(both.lhs, rw)
        yield from conjuncts(both.rhs, rw)
    elif broadcast is not None:
        yield from conjuncts(broadcast.data, rw)
    elif rw.scalar(condition) is not True:
        yield condition


def computed_offset(condition: ir.Value, queries: Size, keys: Size, rw: Rewriter) -> Size | None:
    """c of a condition that is true where key <= query + c, of two last dimensions (queries, keys); None for any other one."""
    type_ = TensorType.of(condition)
    if type_.rank < 2 or type_.shape[-2:] != (queries, keys):
        return None
    for name, key_first, shift in _COMPARISONS:
        compared = rw.producer(condition, name)
        if compared is None:
            continue
        key, query = (compared.lhs, compared.rhs) if key_first else (compared.rhs, compared.lhs)
        first_key, first_query = _first_position(key, 1, rw), _first_position(query, 2, rw)
        if first_key is not None and first_query is not None:
            return first_query - first_key + shift
    return None


def _is_integer(type_: TensorType) -> bool:
    return np.issubdtype(numpy_dtype(type_.dtype), np.integer)


def _first_position(value: ir.Value, axis: int, rw: Rewriter) -> Size | None:
    """x of integers that are x + i at index i of dimension `axis`, counted from the last as 1, whatever the other indices are."""
    type_ = TensorType.of(value)
    if not type_.is_known or type_.rank < axis or not _is_integer(type_):
        return None
    positions, cast, reshape = rw.producer(value, "arange"), rw.producer(value, "cast"), rw.producer(value, "reshape")
    if positions is not None:
        start, step = positions.start, positions.step
        exact = isinstance(start, Dim) or float(start).is_integer()
        return (start if isinstance(start, Dim) else int(start)) if exact and step == 1 else None
    if cast is not None:
        return _first_position(cast.data, axis, rw)
    if reshape is not None:
        return _first_position(reshape.data, _axis_before(reshape.data, type_, axis), rw)
    for name, sign in (("add", 1), ("subtract", -1)):
        shifted = rw.producer(value, name)
        for x, c in ((shifted.lhs, shifted.rhs), (shifted.rhs, shifted.lhs))[: 2 if sign > 0 else 1] if shifted is not None else ():
            first, number = _first_position(x, axis, rw), _number(c, rw)
            if first is not None and number is not None and TensorType.of(x).shape[-axis] == type_.shape[-axis]:
                return first + sign * number
    return None


def _axis_before(data: ir.Value, type_: TensorType, axis: int) -> int:
    """The only dimension of what was reshaped that is not 1, counted from the last as 1, where it becomes `axis`; else rank + 1."""
    source = TensorType.of(data)
    long = [i for i, d in enumerate(reversed(source.shape), 1) if d != 1]
    only = [i for i, d in enumerate(reversed(type_.shape), 1) if d != 1] == [axis]
    return long[0] if only and len(long) == 1 else source.rank + 1


def _number(value: ir.Value, rw: Rewriter) -> Size | None:
    """The integer that all elements of a tensor of one element are, as far as the program says it by sizes and constants."""
    type_ = TensorType.of(value)
    if not _is_integer(type_) or any(d != 1 for d in type_.shape):
        return None
    scalar = rw.scalar(value)
    if scalar is not None:
        return int(scalar)
    sizes = rw.producer(value, "sizes")
    if sizes is not None:
        return sizes.values[0]
    seen = rw.producer(value, "reshape") or rw.producer(value, "cast")
    return None if seen is None else _number(seen.data, rw)
