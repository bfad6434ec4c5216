"""Tensors made from attributes or from a shape."""

from relayc.dialects.relay.base import Number, Op, Operand, Pattern, Sizes, TensorType, View, check
from relayc.dialects.relay.conditions import require_at_least
from relayc.dialects.relay.kinds import ANY, INTEGER, NUMBER, Kind, check_conversion
from relayc.dialects.relay.shapes import shape_text
from relayc.dialects.relay.types import MLIR_NAMES
from relayc.symbolic import Dim, Size, ceil_div, maximum, proves


def _made(shape: Sizes, dtype: str, kind: Kind = ANY) -> TensorType:
    check(dtype in MLIR_NAMES, "dtype", f"one of {', '.join(MLIR_NAMES)}", dtype)
    for d in shape:
        require_at_least(0, d, "shape", "no negative size", shape_text(shape))
    made = TensorType(tuple(shape), dtype)
    check(kind.contains(made), "dtype", kind.expected, dtype)
    return made


class Full(Op, name="full"):
    """A tensor of `fill_value` (a scalar tensor) everywhere; `dtype` None keeps the scalar's, another converts it."""

    fill_value: Operand
    shape: Sizes
    dtype: str | None = None
    pattern = Pattern.ELEMWISE
    repeats_only = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.fill_value.rank == 0, "fill_value", "a scalar (rank 0)", op.fill_value)
        check_conversion(op.fill_value.dtype, op.dtype or op.fill_value.dtype)
        return _made(op.shape, op.dtype or op.fill_value.dtype)


class Zeros(Op, name="zeros"):
    """A tensor of zeros; of strings, of empty ones."""

    shape: Sizes
    dtype: str = "float32"
    pattern = Pattern.ELEMWISE
    repeats_only = True

    @staticmethod
    def infer(op: View) -> TensorType:
        return _made(op.shape, op.dtype)


class Ones(Op, name="ones"):
    """A tensor of ones."""

    shape: Sizes
    dtype: str = "float32"
    pattern = Pattern.ELEMWISE
    repeats_only = True

    @staticmethod
    def infer(op: View) -> TensorType:
        made = _made(op.shape, op.dtype)
        check(made.dtype != "string", "dtype", "one with a number 1", op.dtype)
        return made


def arange_size(start: Number, stop: Number, step: Number) -> Size:
    """Number of elements of arange: max(ceil((stop - start) / step), 0), exact for integers; the sign of a symbolic step is proved."""
    sizes = [v if isinstance(v, Dim) else int(v) for v in (start, stop, step) if isinstance(v, Dim) or float(v).is_integer()]
    if len(sizes) == 3:
        first, last, by = sizes
        return maximum(ceil_div(last - first, by) if by > 0 else ceil_div(first - last, -by), 0)
    assert not isinstance(start, Dim) and not isinstance(stop, Dim) and not isinstance(step, Dim)  # by the type relation
    quotient = (stop - start) / step
    return max(int(quotient) + (quotient > int(quotient)), 0)


class Arange(Op, name="arange"):
    """start, start + step, ... below stop (above it for a negative step), as ONNX Range.

    The three are attributes, not operands as in Relay, so that the shape is known. Expressions are for integer dtypes; the sign of a step
    must be known.
    """

    start: Number = 0.0
    stop: Number
    step: Number = 1.0
    dtype: str = "float32"
    pattern = Pattern.INJECTIVE
    repeats_only = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.step != 0, "step", "a value other than 0", op.step)
        given = (op.start, op.stop, op.step)
        if any(isinstance(v, Dim) for v in given):
            whole = op.dtype.removeprefix("u").startswith("int") and all(isinstance(v, Dim) or float(v).is_integer() for v in given)
            check(whole, "start, stop and step", "whole numbers and an integer dtype beside an expression", (*map(str, given), op.dtype))
            signed = isinstance(op.step, float | int) or proves(lambda: op.step > 0) or proves(lambda: op.step < 0)
            check(signed, "step", "a known sign", op.step)
        return _made((arange_size(op.start, op.stop, op.step),), op.dtype, NUMBER)


class ShapeOf(Op, name="shape_of"):
    """The shape of the operand as a vector."""

    data: Operand
    dtype: str = "int32"

    @staticmethod
    def infer(op: View) -> TensorType:
        return _made((op.data.rank,), op.dtype, INTEGER)


class SizesOf(Op, name="sizes"):
    """A vector of integers that are expressions over symbols: what a program computes with of shapes, as data."""

    values: Sizes
    dtype: str = "int64"
    repeats_only = True

    @staticmethod
    def infer(op: View) -> TensorType:
        return _made((len(op.values),), op.dtype, INTEGER)
