"""Dtypes of expressions: the implicit conversions of TVM's arithmetic.

A Python number takes the dtype of the other operand. Otherwise integers are converted to floats, and the narrower of two types to the
wider; of a signed and an unsigned integer the result is signed, as wide as the wider. Types without a lossless common type are an error.
"""

from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.types import MLIR_NAMES, is_narrow
from relayc.pipelines.te.rules import scalar


def check_dtype(dtype: object, what: str) -> str:
    """The name of a dtype. Raises RelayError if it is not a numeric dtype."""
    known = isinstance(dtype, str) and dtype in MLIR_NAMES and dtype != "string"
    check(known, what, "a dtype such as float32, int8 or bool", repr(dtype))
    return str(dtype)


def is_integer(dtype: str) -> bool:
    """Whether a dtype is an integer type with arithmetic."""
    return dtype.startswith(("int", "uint")) and not is_narrow(dtype)


def common_dtype(a: str, b: str, what: object) -> str:
    """The common dtype of values of `a` and `b`. Raises RelayError if there is none.

    Args:
      what: the operation, for the error.
    """
    if a == b:
        return a
    floats = [d for d in (a, b) if scalar.is_float(d)]
    if is_narrow(a) or is_narrow(b) or set(floats) == {"float16", "bfloat16"}:
        raise RelayError(f"{what}: expected operands of dtypes that convert (te.cast), found {a} and {b}")
    if floats:
        return max(floats, key=lambda d: scalar.FLOAT_BITS[d])
    if "bool" in (a, b):
        return b if a == "bool" else a
    bits = max(scalar.bits(a), scalar.bits(b))
    both_unsigned = scalar.is_unsigned(a) and scalar.is_unsigned(b)
    return f"{'uint' if both_unsigned else 'int'}{bits}"


def check_computed(dtype: str, what: object) -> None:
    """Raises RelayError for a dtype whose values can only be moved and converted."""
    check(not is_narrow(dtype), what, "operands of a dtype that is computed in (te.cast)", dtype)
