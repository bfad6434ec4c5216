"""Discrete Fourier transforms of rows, and the factors that they are computed by."""

from relayc.dialects.relay.base import Op, Operand, Pattern, Size, TensorType, Variadic, View, check
from relayc.dialects.relay.conditions import require_at_most, require_type

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
    """The factors of a length, int64[PLAN] of an int64 scalar, as `plan_of` gives them (not in Relay).

    The first element is 1 where `fft` takes the length.
    """

    length: Operand
    pattern = Pattern.OPAQUE

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.length.rank == 0 and op.length.dtype == "int64", "length", "int64[]", op.length)
        return TensorType((PLAN,), "int64")


class FFTRoots(Op, name="fft_roots"):
    """cos and sin of -2 pi power / length, [2, n], of integers int64[n] from 0 on and a positive int64 scalar, in `dtype`: computed in
    float64, of numbers that 51 bits hold (not in Relay)."""

    powers: Operand
    length: Operand
    dtype: str = "float64"
    pattern = Pattern.BROADCAST

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.powers.rank == 1 and op.powers.dtype == "int64", "powers", "int64[n]", op.powers)
        check(op.length.rank == 0 and op.length.dtype == "int64", "length", "int64[]", op.length)
        check(op.dtype in ("float32", "float64"), "dtype", "float32 or float64", op.dtype)
        return TensorType((2, op.powers.shape[0]), op.dtype)


class FFT(Op, name="fft"):
    """sum over j of exp(-2 pi i j k / n) x[j], n = `length`, of each row x of complex numbers (not in Relay: ONNX DFT).

    Operands:
      data: [batch, given, 2], real and imaginary part of each element; [batch, given, 1] of real rows. float32 or float64. Rows are cut, or
        filled up with zeros, to n elements.
      roots: [2, n], those of 0 to n - 1, by `fft_roots`.
      plan: of n, by `fft_plan`; of n / 2 where the rows are real on one side, n is even and there are no multipliers.
      multipliers: up to two of [2, n], complex numbers: what elements are multiplied with, and what frequencies are multiplied with.

    Attributes:
      frequencies: how many of the first frequencies are wanted, at most n. The result is [batch, frequencies, 2].
      inverse: exp(2 pi i j k / n), and divided by n.
      to_real: the inverse transform to real rows [batch, n, 1], of the first n // 2 + 1 frequencies. Imaginary parts that frequencies of
        real rows do not have are left out.
      is_power_of_two: whether n is one, where it is an expression: that takes less code.
    """

    data: Operand
    roots: Operand
    plan: Operand
    multipliers: Variadic
    length: Size
    frequencies: Size
    inverse: bool = False
    to_real: bool = False
    is_power_of_two: bool = False
    pattern = Pattern.OPAQUE

    @staticmethod
    def infer(op: View) -> TensorType:
        data = op.data
        check(data.dtype in ("float32", "float64"), "data", "float32 or float64", data)
        check(data.rank == 3 and data.shape[2] in (1, 2, None), "data", "[batch, n, 1 or 2]", data)
        table = TensorType((2, op.length), data.dtype)
        require_type(table, op.roots, "roots")
        require_type(TensorType((PLAN,), "int64"), op.plan, "plan")
        check(
            len(op.multipliers) <= 2 and not (op.multipliers and op.to_real),
            "multipliers",
            "at most two, none to real rows",
            len(op.multipliers),
        )
        for multiplier in op.multipliers:
            require_type(table, multiplier, "multipliers")
        check(op.inverse or not op.to_real, "to_real", "an inverse transform", op.inverse)
        require_at_most(op.length, op.frequencies, "frequencies", f"at most {op.length}", op.frequencies)
        return data.with_shape((data.shape[0], op.length, 1) if op.to_real else (data.shape[0], op.frequencies, 2))
