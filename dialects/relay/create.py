"""Tensors made from attributes or from a shape."""

from relayc.dialects.relay.base import Number, Op, Operand, Pattern, Sizes, TensorType, View, check
from relayc.dialects.relay.kinds import INTEGER, NUMBER
from relayc.dialects.relay.types import MLIR_NAMES


def _made(shape: Sizes, dtype: str) -> TensorType:
    check(dtype in MLIR_NAMES, "dtype", f"one of {', '.join(MLIR_NAMES)}", dtype)
    check(all(d >= 0 for d in shape), "shape", "no negative size", shape)
    return TensorType(tuple(shape), dtype)


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
        return _made(op.shape, op.dtype or op.fill_value.dtype)


class Zeros(Op, name="zeros"):
    """A tensor of zeros."""

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
        return _made(op.shape, op.dtype)


def arange_size(start: float, stop: float, step: float) -> int:
    """Number of elements of arange: max(ceil((stop - start) / step), 0), exact for integers."""
    if all(float(v).is_integer() for v in (start, stop, step)):
        return max(-((int(start) - int(stop)) // int(step)), 0)
    quotient = (stop - start) / step
    return max(int(quotient) + (quotient > int(quotient)), 0)


class Arange(Op, name="arange"):
    """start, start + step, ... below stop (above it for a negative step), as ONNX Range.

    The three are attributes, not operands as in Relay, so that the shape is known.
    """

    start: Number = 0.0
    stop: Number
    step: Number = 1.0
    dtype: str = "float32"
    repeats_only = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.step != 0, "step", "a value other than 0", op.step)
        made = _made((arange_size(op.start, op.stop, op.step),), op.dtype)
        check(NUMBER.contains(made), "dtype", NUMBER.expected, op.dtype)
        return made


class ShapeOf(Op, name="shape_of"):
    """The shape of the operand as a vector."""

    data: Operand
    dtype: str = "int32"

    @staticmethod
    def infer(op: View) -> TensorType:
        made = _made((op.data.rank,), op.dtype)
        check(INTEGER.contains(made), "dtype", INTEGER.expected, op.dtype)
        return made
