"""Axes that only the program knows: what they make of shapes is computed there, and enters the types as symbols.

A reduction along such axes is one along axes that are known: each axis of the data becomes two, the size of one or the other of which is 1,
and the second ones are reduced. Axes out of range, or given twice, are an error when the program runs: a size is -1 then.
"""

from collections.abc import Callable, Sequence
from math import prod

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import positions, shape_tensor, size_tensor, sizes
from relayc.frontend.steps import binary, cast, reshape
from relayc.symbolic import Size


class LateAxes:
    """Axes of a tensor of rank `rank`.

    Attributes:
      count: how many there are.
      places: bool[rank, count], whether axis i is the one at place j.
      listed: bool[rank], whether axis i is one of them.
      valid: a bool, whether each is in range and given once.
    """

    def __init__(self, axes: Tensor, rank: int) -> None:
        if axes.is_float or axes.dtype == "bool" or axes.rank > 1:
            raise OnnxError(f"input axes: expected a list of integers, found {axes.type}")
        self.rank, self.name = rank, axes.name or "axes"
        self.count: Size = prod(axes.shape)
        given = cast(reshape(axes, (1, self.count)), "int64")
        given = emit("where", binary("less", given, 0), binary("add", given, rank), given)
        self.places = emit("equal", reshape(positions(rank), (rank, 1)), given)
        self.listed = emit("any", self.places, axis=(1,))
        total = emit("sum", cast(self.listed, "int64"), axis=(0,))
        self.valid = emit("equal", total, size_tensor(self.count))

    def choose(self, listed: Tensor, other: Tensor) -> Tensor:
        """A value for each axis: that of `listed` for the axes that are listed."""
        return emit("where", self.listed, listed, other)

    def spread(self, values: Tensor, other: Tensor) -> Tensor:
        """A value for each axis: for listed axes the value in `values` at the same position, otherwise from `other`."""
        row = cast(reshape(values, (1, self.count)), "int64")
        found = emit("sum", emit("where", self.places, row, constant(0, "int64")), axis=(1,))
        return self.choose(found, other)

    def sizes(self, values: Tensor) -> tuple[Size, ...]:
        """Values as sizes, which are not negative."""
        checked = emit("where", self.valid, values, constant(-1, "int64"))
        checked.name = self.name
        return sizes(checked, "axes")

    def ranks(self) -> Tensor:
        """How many axes that are not listed stand before each axis."""
        return emit("cumsum", emit("subtract", _ones(self.rank), cast(self.listed, "int64")), axis=0, exclusive=True)

    def without(self, shape: Sequence[Size]) -> tuple[Size, ...]:
        """The sizes of the axes that are not listed. Raises OnnxError if their number is not known."""
        if not isinstance(self.count, int):
            raise OnnxError(f"input axes: expected as many axes as is known at import, found {self.count}")
        left = self.rank - self.count
        if left < 0:
            raise OnnxError(f"input axes: expected at most {self.rank}, found {self.count}")
        if left == 0:
            return ()
        here = emit("equal", reshape(positions(left), (left, 1)), reshape(self.choose(constant(-1, "int64"), self.ranks()), (1, self.rank)))
        return self.sizes(emit("sum", emit("where", here, reshape(shape_tensor(shape), (1, self.rank)), constant(0, "int64")), axis=(1,)))


def _ones(count: int) -> Tensor:
    return constant([1] * count, "int64")


def reduce_late(
    x: Tensor, axes: Tensor, keepdims: bool, all_where_empty: bool, reduce: Callable[[Tensor, tuple[int, ...]], Tensor]
) -> Tensor:
    """A reduction along axes that only the program knows.

    Args:
      all_where_empty: whether no axes at all mean all of them.
      reduce: the reduction along known axes, which it takes away.
    """
    late = LateAxes(axes, x.rank)
    if all_where_empty and not isinstance(late.count, int):
        late.listed = emit("logical_or", late.listed, emit("equal", size_tensor(late.count), constant(0, "int64")))
    dims, ones = shape_tensor(x.shape), _ones(x.rank)
    kept, reduced = late.sizes(late.choose(ones, dims)), late.sizes(late.choose(dims, ones))
    pairs = [d for pair in zip(kept, reduced, strict=True) for d in pair]
    found = reduce(reshape(x, pairs), tuple(range(1, 2 * x.rank, 2)))
    return reshape(found, kept if keepdims else late.without(x.shape))


def squeeze_late(x: Tensor, axes: Tensor) -> Tensor:
    """Squeeze of axes that only the program knows."""
    late = LateAxes(axes, x.rank)
    one = emit("logical_or", emit("logical_not", late.listed), binary("equal", shape_tensor(x.shape), 1))
    late.valid = emit("logical_and", late.valid, emit("all", one, axis=(0,)))
    return reshape(x, late.without(x.shape))


def unsqueeze_late(x: Tensor, axes: Tensor) -> Tensor:
    """Unsqueeze of axes that only the program knows."""
    count = prod(axes.shape)
    if not isinstance(count, int):
        raise OnnxError(f"input axes: expected as many axes as is known at import, found {axes.type}")
    late = LateAxes(axes, x.rank + count)
    if x.rank == 0:
        return reshape(x, late.sizes(_ones(count)))
    dims = emit("take", shape_tensor(x.shape), late.ranks(), axis=0, mode="clip")
    return reshape(x, late.sizes(late.choose(_ones(late.rank), dims)))


def along_late(x: Tensor, axis: Tensor, compute: Callable[[Tensor, int], Tensor], parts: int = 0) -> Tensor:
    """`compute` along an axis known only at run time: x is passed as [before, axis, after], followed by the last `parts` axes of x, which
    the axis must precede. The sizes of the axis and of the last axes may change."""
    rank = x.rank - parts
    late = LateAxes(reshape(axis, (1,)), rank)
    dims, one = shape_tensor(x.shape[:rank]), constant(1, "int64")
    behind = emit("cumsum", cast(late.listed, "int64"), axis=0)
    middle = [
        emit("prod", emit("where", chosen, dims, one), axis=(0,), keepdims=True)
        for chosen in (binary("equal", behind, 0), late.listed, emit("greater", behind, cast(late.listed, "int64")))
    ]
    given = late.sizes(emit("concatenate", *middle, axis=0))
    found = compute(reshape(x, (*given, *x.shape[rank:])), 1)
    if found.shape[1] == given[1]:
        return reshape(found, (*x.shape[:rank], *found.shape[3:]))
    return reshape(found, (*late.sizes(late.choose(size_tensor(found.shape[1]), dims)), *found.shape[3:]))
