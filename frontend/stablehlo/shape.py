"""Operators that move, repeat and make elements."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from relayc.frontend.common.padding import pad as pad_edges
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.sizes import positions, sizes
from relayc.frontend.stablehlo.registry import Node, Pair, Spread, op, whole
from relayc.frontend.stablehlo.sizes import known_sizes
from relayc.frontend.steps import as_numbers, cast, dilated, strided_slice
from relayc.frontend.steps import reshape as reshaped
from relayc.frontend.steps import transpose as transposed
from relayc.symbolic import Size


def shape_operand(x: Tensor, what: str) -> tuple[Size, ...]:
    """The elements of an operand that holds sizes, or numbers that may be negative."""
    found = known_sizes(x)
    return sizes(x, what, signed=True) if found is None else found


def each_part(change: Callable[..., Any], *operands: Any) -> Any:
    """A change of places; of complex numbers the changes of both parts."""
    if not isinstance(operands[0], Pair):
        return change(*operands)
    return Pair(*(whole(change(*parts)) for parts in zip(*operands, strict=True)))


# ---- shapes -----------------------------------------------------------------------------------------------------------------------------


def _broadcast(node: Node, x: Any, axes: Sequence[int], shape: Sequence[Size]) -> Any:
    """x, whose axis i is axis axes[i] of the result."""
    small = x.tensor if isinstance(x, Spread) else x
    axes = axes[len(x.shape) - small.rank :]
    wide = [1] * len(shape)
    for size, axis in zip(small.shape, axes, strict=True):
        wide[axis] = size
    found = node.program.with_axes(small, wide)
    if found is None:
        first = len(shape) - small.rank
        # The last axes broadcast as they are: a vector stays one.
        found = small if list(axes) == list(range(first, len(shape))) else reshaped(small, wide)
    return found if found.shape == tuple(shape) else Spread(found, tuple(shape))


@op("broadcast_in_dim", complex_too=True)
def broadcast_in_dim(node: Node, x: Any) -> Any:
    shape = node.static("broadcast_in_dim")
    return each_part(lambda t: _broadcast(node, t, node.ints("broadcast_dimensions"), shape), x)


@op("dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(node: Node, x: Any, shape: Any) -> Any:
    return _broadcast(node, x, node.ints("broadcast_dimensions"), shape_operand(whole(shape), "output_dimensions"))


def _reshape(node: Node, x: Any, shape: Sequence[Size]) -> Any:
    if isinstance(x, Spread) and x.tensor.type.num_elements == 1:
        return Spread(reshaped(x.tensor, ()), tuple(shape))
    x = whole(x)
    found = node.program.with_axes(x, shape)
    return reshaped(x, shape) if found is None else found


@op("reshape", complex_too=True)
def reshape(node: Node, x: Any) -> Any:
    shape, _ = node.result()
    if None in shape:  # an unknown size is the number of elements divided by the others
        rest = prod(d for d in shape if d is not None)
        shape = tuple(prod(x.shape) // rest if d is None else d for d in shape)
    return each_part(lambda t: _reshape(node, t, shape), x)  # type: ignore[arg-type] # no open one any more


@op("dynamic_reshape")
def dynamic_reshape(node: Node, x: Any, shape: Any) -> Any:
    return _reshape(node, x, shape_operand(whole(shape), "output_shape"))


@op("transpose", complex_too=True)
def transpose(node: Node, x: Any) -> Any:
    return each_part(lambda t: transposed(t, node.ints("permutation")), x)


@op("reverse", complex_too=True)
def reverse(node: Node, x: Any) -> Any:
    def change(t: Tensor) -> Tensor:
        for axis in node.ints("dimensions"):
            t = emit("reverse", t, axis=axis)
        return t

    return each_part(change, x)


@op("concatenate", complex_too=True)
def concatenate(node: Node, *operands: Any) -> Any:
    def change(*tensors: Tensor) -> Tensor:
        return tensors[0] if len(tensors) == 1 else emit("concatenate", *tensors, axis=node.attribute("dimension"))

    return each_part(change, *operands)


# ---- parts ------------------------------------------------------------------------------------------------------------------------------


@op("slice", complex_too=True)
def slice_(node: Node, x: Any) -> Any:
    begin, end, strides = (node.ints(name) for name in ("start_indices", "limit_indices", "strides"))
    return each_part(lambda t: strided_slice(t, begin, end, strides, range(len(begin))), x)


@op("real_dynamic_slice")
def real_dynamic_slice(node: Node, x: Tensor, start: Tensor, limit: Tensor, strides: Tensor) -> Tensor:
    from relayc.frontend.stablehlo.indexing import sliced

    begin, end, step = (known_sizes(t) for t in (start, limit, strides))
    steps = [s for s in step or () if isinstance(s, int)]
    if begin is not None and end is not None and len(steps) == x.rank:
        return strided_slice(x, begin, end, steps, range(x.rank))
    # JAX writes the limit as start + size.
    plus = node.op.operands[2].owner
    size = None
    if "add" in getattr(plus, "name", "") and plus.operands[0] == node.op.operands[1]:
        size = known_sizes(whole(node.scope[plus.operands[1]])) if plus.operands[1] in node.scope else None
    if size is None or steps != [1] * x.rank:
        raise ModelError("expected a slice of known sizes without strides, found strides or sizes that depend on data")
    return sliced(x, [strided_slice(start, (i,), (i + 1,), (1,), (0,)) for i in range(x.rank)], size)


def _pad(x: Tensor, value: Tensor, low: Sequence[Size], high: Sequence[Size], interior: Sequence[Size]) -> Tensor:
    if any(i != 0 for i in interior):
        if not value.is_known or not all(isinstance(i, int) for i in interior):
            raise ModelError("interior padding: expected a value and numbers known at import, found some that are computed")
        x = dilated(x, [int(i) + 1 for i in interior], value.array.item())
    return cast(pad_edges(as_numbers(x), [*low, *high], as_numbers(value), "constant", range(x.rank)), x.dtype)


@op("pad", complex_too=True)
def pad(node: Node, x: Any, value: Any) -> Any:
    amounts = [node.ints(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    return each_part(lambda t, v: _pad(t, v, *amounts), x, value)


@op("dynamic_pad")
def dynamic_pad(node: Node, x: Tensor, value: Tensor, *amounts: Tensor) -> Tensor:
    low, high, interior = (shape_operand(t, "edge_padding") for t in amounts)
    return _pad(x, value, low, high, interior)


# ---- new tensors ------------------------------------------------------------------------------------------------------------------------


@op("iota", "dynamic_iota")
def iota(node: Node, output_shape: Tensor | None = None) -> Any:
    axis, dtype = node.attribute("iota_dimension"), node.dtype
    shape: tuple[Size, ...] = node.static("iota") if output_shape is None else shape_operand(output_shape, "output_shape")
    size = shape[axis]
    along = constant(np.arange(size), dtype) if isinstance(size, int) else emit("cast", positions(size), dtype=dtype)
    wide = [d if i == axis else 1 for i, d in enumerate(shape)]
    found = along if axis == len(shape) - 1 else reshaped(along, wide)
    return found if found.shape == shape else Spread(found, shape)
