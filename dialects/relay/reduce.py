"""Reductions over axes.

`axis` None means all axes; `exclude` turns the choice around; `keepdims` leaves reduced axes with size 1.
"""

from collections.abc import Sequence
from typing import Any, cast

from relayc.dialects.relay.base import Ints, LayoutRole, Op, Operand, Pattern, Precision, Size, TensorType, View, check, declare
from relayc.dialects.relay.conditions import require_at_least, require_type
from relayc.dialects.relay.kinds import BOOL, FLOAT, NUMBER, same_dtype
from relayc.dialects.relay.layout import NCHW, layout
from relayc.dialects.relay.shapes import normalize_axis


def reduced_axes(rank: int, axis: Sequence[int] | None, exclude: bool) -> tuple[int, ...]:
    """The axes to reduce, ascending. An empty `axis` is no axis (without `exclude`). Raises RelayError on a bad or repeated axis."""
    if axis is None:
        return () if exclude else tuple(range(rank))
    chosen = [normalize_axis(a, rank) for a in axis]
    check(len(set(chosen)) == len(chosen), "axis", "no axis twice", tuple(axis))
    return tuple(i for i in range(rank) if (i in chosen) != exclude)


def reduced_shape(shape: Sequence[Size | None], axes: Sequence[int], keepdims: bool) -> tuple[Size | None, ...]:
    """`shape` after reducing `axes`."""
    return tuple(1 if i in axes else d for i, d in enumerate(shape) if keepdims or i not in axes)


class _Reduce(Op):
    """A reduction of elements in `kind`; the result's element type is `out_dtype`, or the operand's."""

    data: Operand
    axis: Ints | None = None
    keepdims: bool = False
    exclude: bool = False
    pattern = Pattern.COMM_REDUCE
    kind = NUMBER
    out_dtype = cast("str | None", None)

    @classmethod
    def infer(cls, op: View) -> TensorType:
        cls.kind.require("data", op.data)
        axes = reduced_axes(op.data.rank, op.axis, op.exclude)
        return TensorType(reduced_shape(op.data.shape, axes, op.keepdims), cls.out_dtype or op.data.dtype)


class Sum(_Reduce, name="sum"):
    """Sum; 0 of no elements, integers wrap."""

    precision = Precision.AVERAGE


class Mean(_Reduce, name="mean"):
    """Sum divided by the number of elements; of integers the quotient rounded toward zero."""

    layout_role = LayoutRole.JOINS
    precision = Precision.AVERAGE

    def can_change_layout(self) -> bool:
        """True if it reduces the pixels of images."""
        spatial = [NCHW.index(axis) for axis in "HW"]
        return not self.exclude and TensorType.of(self.data).rank == len(NCHW) and sorted(a % 4 for a in self.axis or ()) == spatial

    def in_layout(self, target: str) -> dict[str, Any]:
        return {**self.attrs(), "axis": tuple(layout(target).index(axis) for axis in "HW")}


declare(
    _Reduce,
    {
        "max": "Largest element, NaN if any is NaN; of no elements the type's lowest value.",
        "min": "Smallest element, NaN if any is NaN; of no elements the type's highest value.",
        "prod": "Product; 1 of no elements, integers wrap.",
    },
)
declare(_Reduce, {"all": "Whether every bool holds.", "any": "Whether some bool holds."}, kind=BOOL)


class _ArgReduce(_Reduce):
    """An index along the reduced axes taken as one (row-major), as int32 like Relay's."""

    select_last_index: bool = False
    out_dtype = "int32"

    @classmethod
    def infer(cls, op: View) -> TensorType:
        found = super().infer(op)
        for axis in reduced_axes(op.data.rank, op.axis, op.exclude):
            require_at_least(1, op.data.shape[axis], "data", f"at least one element along axis {axis}", op.data)
        return found


class ArgMax(_ArgReduce, name="argmax"):
    """Index of the largest element (of a NaN, if there is one): the first of equals, or the last with select_last_index."""


class ArgMin(_ArgReduce, name="argmin"):
    """Index of the smallest element (of a NaN, if there is one): the first of equals, or the last with select_last_index."""


class Variance(Op, name="variance"):
    """Mean of (data - mean) ** 2, of n - 1 where `unbiased`; `mean` has data's shape with the reduced axes at 1."""

    data: Operand
    mean: Operand
    axis: Ints | None = None
    keepdims: bool = False
    exclude: bool = False
    unbiased: bool = False
    pattern = Pattern.COMM_REDUCE

    @staticmethod
    def infer(op: View) -> TensorType:
        FLOAT.require("data", op.data)
        same_dtype(data=op.data, mean=op.mean)
        axes = reduced_axes(op.data.rank, op.axis, op.exclude)
        kept = op.data.with_shape(reduced_shape(op.data.shape, axes, keepdims=True))
        require_type(kept, op.mean, "mean")
        return op.data.with_shape(reduced_shape(op.data.shape, axes, op.keepdims))
