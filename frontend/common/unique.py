"""Elements that repeat: runs of equal rows, and the distinct rows of all."""

from math import prod

from relayc.frontend.common.positions import positions_where
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.sizes import objects, positions, tensor_of
from relayc.frontend.steps import binary, cast, filled, reshape, strided_slice, subtract, transpose

PERMUTED = {"axis": 0, "reduction": "update", "distinct": True, "in_bounds": True}
"""How a scatter inverts a permutation."""


def as_rows(x: Tensor, axis: int) -> Tensor:
    """The slices of a tensor along an axis, as elements of a vector or rows of a matrix."""
    if x.rank == 1:
        return x
    moved = transpose(x, (axis, *(a for a in range(x.rank) if a != axis)))
    return reshape(moved, (x.shape[axis], prod(moved.shape[1:])))


def runs(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of runs of equal neighbours: where they begin, which one each row is in, and how long they are."""
    n = rows.shape[0]
    steps = positions(n)
    before = emit("take", rows, binary("maximum", subtract(steps, 1), 0), axis=0, mode="clip")
    differ = emit("not_equal", rows, before)
    begins = emit("logical_or", binary("equal", steps, 0), differ if rows.rank == 1 else emit("any", differ, axis=(1,)))
    at = positions_where(begins)
    ends = emit("concatenate", at, tensor_of(objects([1], [n]), "int64"), axis=0)
    ends = strided_slice(ends, [1], [at.shape[0] + 1], [1], [0])
    return at, subtract(emit("cumsum", cast(begins, "int64"), axis=0), 1), subtract(ends, at)


def distinct(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of the distinct rows of numbers, ascending: where each is first, which one each row is, and how often they occur."""
    order = emit("argsort", rows, axis=0, is_ascend=True, dtype="int64") if rows.rank == 1 else emit("argsort_rows", rows)
    at, which, counts = runs(emit("take", rows, order, axis=0, mode="clip"))
    inverse = emit("scatter_elements", filled((rows.shape[0],), 0, "int64"), order, which, **PERMUTED)
    return emit("take", order, at, axis=0, mode="clip"), inverse, counts
