"""The accesses of linalg operations over their iteration spaces, and their reductions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.operations import last_operation, producer_of, users_of
from relayc.pipelines.emission.index import affine_value
from relayc.pipelines.evaluate.errors import Outside

Array = np.ndarray

_REDUCERS: dict[str, Any] = {
    "arith.addf": np.add,
    "arith.addi": np.add,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
}
"""Operations of a reduction that are computed for all points at once."""


def grid(extents: Sequence[int]) -> list[Array]:
    """The indices of an iteration space."""
    return list(np.ogrid[tuple(slice(n) for n in extents)]) if extents else []


def access(amap: ir.AffineMap) -> Callable[[Sequence[Array], Array], Array]:
    """Creates a function that reads the elements of an operand over an iteration space; size 1 for dimensions without effect."""
    rank, results = amap.n_dims, list(amap.results)
    dims = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in results]
    is_view = all(isinstance(e, ir.AffineConstantExpr) if d is None else dims.count(d) == 1 for d, e in zip(dims, results, strict=True))
    order = sorted(range(len(dims)), key=[-1 if d is None else d for d in dims].__getitem__)

    def read(indices: Sequence[Array], array: Array) -> Array:
        index = [np.asarray(affine_value(e, indices)) for e in results]
        spans = [(int(i.min()), int(i.max()) + 1) for i in index]
        for (low, high), n in zip(spans, array.shape, strict=True):
            if low < 0 or high > n:
                raise Outside(f"an operand of {array.shape} is read at {low} to {high - 1} of a dimension of {n}")
        if not is_view:
            return array[tuple(np.reshape(i, [1] * rank) if i.ndim < rank else i for i in index)]
        part = array[tuple(slice(*span) for span in spans)].transpose(order)
        return part.reshape([part.shape[order.index(dims.index(d))] if d in dims else 1 for d in range(rank)])

    return read


def written(found: Array, places: Sequence[int | None], whole: Sequence[int], old: Array) -> Array:
    """The elements of a result from those over the iteration space."""
    kept = [d for d in places if d is not None]
    spread = np.broadcast_to(found, whole)
    others = [d for d in range(len(whole)) if d not in kept]
    array = spread.transpose([*kept, *others]).reshape(old.shape)
    return np.array(array, old.dtype)


@dataclass(frozen=True)
class Reduction:
    """How a result of a linalg operation is reduced: by one of numpy's functions.

    Attributes:
      ufunc: the function.
      operands: what is reduced at each point: a value, or two whose products are summed.
      done: the operations of the body that this does.
    """

    ufunc: Any
    operands: tuple[ir.Value, ...]
    done: tuple[ir.Operation, ...]


def reduced(ufunc: Any, acc: Array, operands: Sequence[Any], space: Sequence[int], axes: Sequence[int]) -> Array:
    """The accumulator of a reduction after the points of a space, of which some axes are reduced. Floats are float64."""
    if len(operands) == 2:
        return acc + _contracted(operands[0], operands[1], space, axes)
    array = np.broadcast_to(operands[0], space)
    wide = array.dtype if array.dtype.kind in "iub" else np.dtype(np.float64)
    return ufunc(acc, ufunc.reduce(array.astype(wide), axis=tuple(axes), keepdims=True))


def _contracted(a: Any, b: Any, space: Sequence[int], axes: Sequence[int]) -> Array:
    """The sums of a * b over some axes."""
    rank = len(space)
    x, y = (np.reshape(v, [1] * (rank - np.ndim(v)) + list(np.shape(v))).astype(np.float64) for v in (a, b))
    neither = prod(space[d] for d in axes if x.shape[d] == y.shape[d] == 1)
    operands: list[Any] = [x, range(rank), y, range(rank), [d for d in range(rank) if d not in axes]]
    found = np.einsum(*operands, optimize=True)
    return np.expand_dims(found * neither, tuple(axes))


def reductions(block: ir.Block, count: int) -> list[Reduction] | None:
    """How each result of a body is reduced; None unless the body is `combine(accumulator, element)` for all of them."""
    accumulators = list(block.arguments)[-count:]
    found = []
    for value, acc in zip(last_operation(block).operands, accumulators, strict=True):
        owner = producer_of(value)
        if owner is None:
            return None
        operands = list(owner.operands)
        if owner.name not in _REDUCERS or users_of(acc) != [owner] or len(users_of(value)) != 1 or operands[0] == operands[1]:
            return None
        element = operands[1] if operands[0] == acc else operands[0]
        product = producer_of(element)
        if product is not None and (owner.name, product.name) == ("arith.addf", "arith.mulf") and users_of(element) == [owner]:
            found.append(Reduction(_REDUCERS[owner.name], tuple(product.operands), (owner, product)))
        else:
            found.append(Reduction(_REDUCERS[owner.name], (element,), (owner,)))
    return found
