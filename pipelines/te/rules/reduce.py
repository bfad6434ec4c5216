"""Compute rules of the reductions. 16-bit floats are summed in float32."""

from collections.abc import Callable
from math import prod

from relayc.dialects.mlir import arith, ir, linalg
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.reduce import ArgMax, reduced_axes, reduced_shape
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator
from relayc.pipelines.te.rules.core import (
    Value,
    affine_map,
    compute,
    dim,
    fill,
    identity,
    index_constant,
    operand_type,
    parallel,
    reduce,
    reduction,
    reshape,
    result_type,
    shape,
)
from relayc.pipelines.te.rules.literal import integer_of, number
from relayc.symbolic import Size, maximum

Combine = Callable[[Value, Value, str], Value]


def _axes(op: Op) -> tuple[int, ...]:
    return reduced_axes(operand_type(op).rank, op.axis, op.exclude)


def _folded(op: Op, data: Value, dtype: str, init: float | int, combine: Combine) -> Value:
    """`data` reduced over the op's axes in elements of `dtype`, in the shape without these axes."""
    source, axes = operand_type(op), _axes(op)
    out = TensorType(reduced_shape(source.shape, axes, keepdims=False), dtype)
    return reduce(data, axes, out, init, lambda x, acc: combine(x, acc, dtype), lambda x: scalar.convert(x, source.dtype, dtype))


def _finished(op: Op, reduced: Value, dtype: str, body: Callable[[Value], Value] | None = None) -> Value:
    """The op's result from the reduced elements of `dtype`: `body` of each, in the result's dtype and shape (keepdims)."""
    out = result_type(op)
    if body is not None or dtype != out.dtype:
        flat = TensorType(shape(reduced), out.dtype)
        reduced = parallel(flat, [reduced], lambda x: scalar.convert(body(x) if body else x, dtype, out.dtype))
    return reshape(reduced, out.sizes)


_COMBINE: dict[str, Combine] = {
    "sum": scalar.add,
    "prod": scalar.multiply,
    "max": scalar.maximum,
    "min": scalar.minimum,
    "any": lambda x, acc, _: scalar.either(x, acc),
    "all": lambda x, acc, _: scalar.both(x, acc),
}


@compute(*_COMBINE)
def combined(op: Op, data: Value) -> Value:
    name, dtype = type(op)._op_name, operand_type(op).dtype
    if name in ("sum", "prod"):
        dtype, first = accumulator(dtype), float(name == "prod")
    else:
        first = scalar.limits(dtype)[int(name in ("min", "all"))]
    return _finished(op, _folded(op, data, dtype, first, _COMBINE[name]), dtype)


@compute("mean")
def mean(op: Op, data: Value) -> Value:
    source = operand_type(op)
    # Sums of small integers may overflow their type although their mean does not.
    dtype = accumulator(source.dtype) if source.is_float else "uint64" if source.is_unsigned else "int64"
    count = prod(source.sizes[a] for a in _axes(op))
    return _finished(op, _folded(op, data, dtype, 0, scalar.add), dtype, lambda x: _divided(x, count, dtype))


def _divided(x: Value, count: Size, dtype: str) -> Value:
    # The mean of no integers is undefined; dividing by 1 gives 0 and does not trap.
    return scalar.divide(x, number(count if scalar.is_float(dtype) else maximum(count, 1), dtype), dtype)


# ---- two operands, or two steps ---------------------------------------------------------------------------------------------------


def _kept_map(rank: int, axes: tuple[int, ...]) -> ir.AffineMap:
    """The map of a tensor without `axes` in loops over all of them."""
    return affine_map(rank, [dim(i) for i in range(rank) if i not in axes])


@compute("argmax", "argmin")
def arg_reduce(op: Op, data: Value) -> Value:
    """The extreme value first, then the lowest (or highest) index that has it."""
    largest = isinstance(op, ArgMax)
    source, axes, out = operand_type(op), _axes(op), result_type(op)
    dtype = source.dtype
    extreme = scalar.limits(dtype)[0 if largest else 1]
    best = _folded(op, data, dtype, extreme, scalar.maximum if largest else scalar.minimum)
    never = scalar.limits(out.dtype)[0 if op.select_last_index else 1]
    pick = scalar.maximum if op.select_last_index else scalar.minimum

    def body(x: Value, b: Value, acc: Value) -> Value:
        found = scalar.compare("eq", x, b, dtype)
        if source.is_float:  # NaN equals nothing, and is the extreme if present
            found = arith.ori(found, scalar.compare("ne", x, x, dtype))
        index = integer_of(_flat_index(source, axes), out.dtype)
        return pick(scalar.select(found, index, scalar.constant(never, out.dtype)), acc, out.dtype)

    kept_map = _kept_map(source.rank, axes)
    initial = fill(TensorType(shape(best), out.dtype), never)
    found = reduction([data, best], [identity(source.rank), kept_map], initial, kept_map, body)
    return reshape(found, out.sizes)


def _flat_index(source: TensorType, axes: tuple[int, ...]) -> Value:
    """The row-major linear index over the loops of `axes`."""
    flat: Value | None = None
    for axis in axes:
        here = linalg.IndexOp(axis).result
        flat = here if flat is None else arith.addi(arith.muli(flat, index_constant(source.sizes[axis])), here)
    return index_constant(0) if flat is None else flat


@compute("variance")
def variance(op: Op, data: Value, mean_: Value) -> Value:
    source, axes = operand_type(op), _axes(op)
    dtype = accumulator(source.dtype)

    def body(x: Value, m: Value, acc: Value) -> Value:
        wide_x, wide_m = (scalar.convert(v, source.dtype, dtype) for v in (x, m))
        centred = scalar.subtract(wide_x, wide_m, dtype)
        return scalar.add(scalar.multiply(centred, centred, dtype), acc, dtype)

    mean_map = affine_map(source.rank, [0 if i in axes else dim(i) for i in range(source.rank)])
    out = TensorType(reduced_shape(source.shape, axes, keepdims=False), dtype)
    squares = reduction([data, mean_], [identity(source.rank), mean_map], fill(out, 0), _kept_map(source.rank, axes), body)
    count = prod(source.sizes[a] for a in axes) - op.unbiased
    return _finished(op, squares, dtype, lambda x: _divided(x, count, dtype))
