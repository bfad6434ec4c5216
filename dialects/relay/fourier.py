"""Discrete Fourier transforms of rows, and the factors that they are computed by."""

from relayc.dialects.relay.base import Op, Operand, Pattern, Size, TensorType, View, check
from relayc.dialects.relay.conditions import require_equal
from relayc.dialects.relay.kinds import INTEGER

PLAN = 64
"""Elements of a plan: what the factors leave of the length, how many factors there are, and the factors."""
LARGEST_FACTOR = 61
"""A length with a larger prime factor has no plan: two transforms of a power of two take less time."""


def plan_of(length: int) -> list[int]:
    """The plan of a length, without the zeros at its end: factors of 8 and 4 before those of 2, then odd ones, the least first."""
    left, factors = length, []
    for factor in (2, *range(3, LARGEST_FACTOR + 1, 2)):
        while left > 0 and left % factor == 0:
            # 8 at a time, but two factors of 4 rather than one of 8 and one of 2.
            size = factor if factor != 2 or left % 4 else 4 if left % 8 or left % 32 == 16 else 8
            factors.append(size)
            left //= size
    return [left, len(factors), *factors]


class FFTPlan(Op, name="fft_plan"):
    """The factors of a length, int64[PLAN] of an int64 scalar, as `plan_of` gives them: the first element is 1 where `fft` takes the length.
    Not in Relay."""

    length: Operand
    pattern = Pattern.OPAQUE

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.length.rank == 0 and op.length.dtype == "int64", "length", "int64[]", op.length)
        return TensorType((PLAN,), "int64")


class FFT(Op, name="fft"):
    """sum over j of exp(-2 pi i j k / n) x[j], n = `length`, of each row x of complex numbers (not in Relay: ONNX DFT).

    Operands:
      data: [batch, n, 2], real and imaginary part of each element; [batch, n, 1] of real rows. float32 or float64.
      roots: [2, n], cos and sin of -2 pi j / n.
      plan: of n, by `fft_plan`; of n / 2 where the rows are real on one side and n is even.

    Attributes:
      frequencies: how many of the first frequencies are wanted, at most n. The result is [batch, frequencies, 2].
      inverse: exp(2 pi i j k / n), and divided by n.
      to_real: the inverse transform to real rows [batch, n, 1], of the first n // 2 + 1 frequencies. Imaginary parts that frequencies of
        real rows do not have are left out.
    """

    data: Operand
    roots: Operand
    plan: Operand
    length: Size
    frequencies: Size
    inverse: bool = False
    to_real: bool = False
    pattern = Pattern.OPAQUE

    @staticmethod
    def infer(op: View) -> TensorType:
        data = op.data
        check(data.dtype in ("float32", "float64"), "data", "float32 or float64", data)
        check(data.rank == 3 and data.shape[2] in (1, 2), "data", "[batch, n, 1 or 2]", data)
        given = op.length // 2 + 1 if op.to_real else op.length
        require_equal(data.shape[1], given, "data", f"{given} elements in a row", data)
        check(op.roots.dtype == data.dtype and op.roots.rank == 2 and op.roots.shape[0] == 2, "roots", f"{data.dtype}[2, n]", op.roots)
        require_equal(op.roots.shape[1], op.length, "roots", f"{op.length} of them", op.roots)
        INTEGER.require("plan", op.plan)
        check(op.plan.shape == (PLAN,) and op.plan.dtype == "int64", "plan", f"int64[{PLAN}]", op.plan)
        check(op.inverse or not op.to_real, "to_real", "an inverse transform", op.inverse)
        return data.with_shape((data.shape[0], op.length, 1) if op.to_real else (data.shape[0], op.frequencies, 2))
