"""Sums of products: code shared by convolutions and matrix products."""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir, linalg
from relayc.dialects.relay.types import DTYPES, TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, fill, parallel, reduction

HALF = ("float16", "bfloat16")


def accumulator(dtype: str) -> str:
    """The dtype of accumulators for elements of `dtype`: float32 for the 16-bit floats."""
    return "float32" if dtype in HALF else dtype


def named_applies(operand: str, result: str) -> bool:
    """Whether a named linalg operation widens `operand` as this dtype requires: it reads integers as signed."""
    return not scalar.is_unsigned(operand) or DTYPES[operand].itemsize == DTYPES[result].itemsize


def multiply_add(operand: str, result: str, other: str | None = None) -> Callable[[Value, Value, Value], Value]:
    """Body of a contraction: acc + a * b, with a of dtype `operand` and b of `other`, or the same, widened to dtype `result` first."""

    def body(a: Value, b: Value, acc: Value) -> Value:
        wide_a, wide_b = scalar.convert(a, operand, result), scalar.convert(b, other or operand, result)
        return scalar.add(acc, scalar.multiply(wide_a, wide_b, result), result)

    return body


def contract(
    a: Value,
    b: Value,
    maps: Sequence[ir.AffineMap],
    output_map: ir.AffineMap,
    out: TensorType,
    operands: tuple[str, str],
    named: type | None = None,
) -> Value:
    """Sum of a * b over the loops that `output_map` omits, as `named` if it accepts the maps (matmul), otherwise a linalg.generic.

    `out` is the type of the accumulators; elements of a and b have the dtypes `operands`.
    """
    if named is not None and all(named_applies(operand, out.dtype) for operand in operands):
        attribute = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in (*maps, output_map)])
        destination = fill(out, 0)
        op = named([destination.type], [a, b], [destination], indexing_maps=attribute)
        linalg.fill_builtin_region(op.operation)
        return op.results[0]
    return reduction([a, b], maps, fill(out, 0), output_map, multiply_add(operands[0], out.dtype, operands[1]))


def narrowed(value: Value, out: TensorType, dtype: str) -> Value:
    """Converts `value`, whose elements are of `dtype`, to the type `out`."""
    if out.dtype == dtype:
        return value
    return parallel(out, [value], lambda x: scalar.convert(x, dtype, out.dtype))
