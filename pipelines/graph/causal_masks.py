"""Causal masks computed by a program: conditions that compare the positions of keys and queries.

With constant sizes such a mask is folded to a constant; with symbolic sizes it is `key <= query` of two `arange`, one of which may be
offset by the number of cached keys.
"""

from collections.abc import Iterator

from relayc.dialects.mlir import ir
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.graph.positions import positions_of
from relayc.pipelines.graph.rewrite import Rewriter
from relayc.symbolic import Size

_COMPARISONS = (("less_equal", True, 0), ("less", True, -1), ("greater_equal", False, 0), ("greater", False, -1))
"""Operators that give key <= query + c: name, whether the key is on the left, c."""


def conjuncts(condition: ir.Value, rw: Rewriter) -> Iterator[ir.Value]:
    """The conditions whose conjunction is `condition`; each broadcasts to it."""
    seen, pending = set[ir.Value](), [condition]
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        both, broadcast = rw.producer(one, "logical_and"), rw.producer(one, "broadcast_to")
        if both is not None:
            pending += (both.rhs, both.lhs)
        elif broadcast is not None:
            pending.append(broadcast.data)
        else:
            yield one


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


def _first_position(value: ir.Value, axis: int, rw: Rewriter) -> Size | None:
    """x of integers that are x + i at index i of dimension `axis`, counted from the last as 1, whatever the other indices are."""
    found = positions_of(value, rw)
    if found is None or len(found.shape) < axis:
        return None
    along = len(found.shape) - axis
    return found.first if found.steps[along] == 1 and set(found.dimensions).issubset({along}) else None
