"""Strings. What moves or compares them are operators as of any element type; the rest is done by packed functions of the runtime."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from relayc.dialects.relay.narrow import wide_dtype
from relayc.dialects.relay.types import TensorType, is_narrow
from relayc.frontend.converter import Tensor, assume, constant, kept, packed
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import size
from relayc.frontend.steps import broadcast_shape, cast, reshape
from relayc.symbolic import maximum

STRING = "relayc.host.string."
"""Prefix of the names of packed functions on strings."""


def check_strings(name: str, x: Tensor) -> None:
    """Raises OnnxError for an input that is no tensor of strings."""
    if x.dtype != "string":
        raise OnnxError(f"input {name}: expected strings, found {x.type}")


def text(value: str) -> Tensor:
    """A scalar."""
    return constant(value, "string")


@converter(since=20)
def StringConcat(x: Tensor, y: Tensor) -> Tensor:
    check_strings("X", x)
    check_strings("Y", y)
    (found,) = packed(f"{STRING}concat", [x, y], TensorType(broadcast_shape(x.shape, y.shape), "string"))
    return found


@converter(since=20)
def StringSplit(x: Tensor, *, delimiter: str = "", maxsplit: int = -1) -> tuple[Tensor, ...]:
    check_strings("X", x)
    given = [x, text(delimiter), constant(maxsplit if maxsplit >= 0 else -1, "int64")]
    scalar = TensorType((), "int64")
    counts, columns, parts = packed(f"{STRING}split", given, x.type.with_dtype("int64"), scalar, scalar)
    return kept(parts, x.type.with_shape((*x.shape, size(columns, "parts")))), counts


@converter(since=10)
def StringNormalizer(
    x: Tensor,
    *,
    case_change_action: Literal["NONE", "LOWER", "UPPER"] = "NONE",
    is_case_sensitive: bool = False,
    locale: str = "en_US",
    stopwords: Sequence[str] = (),
) -> Tensor:
    check_strings("X", x)
    if x.rank not in (1, 2):
        raise OnnxError(f"input X: expected a vector, or a matrix of one row, found {x.type}")
    if x.rank == 2:
        x = assume(x, (1, x.shape[1]))
    given = [x, constant(np.array(stopwords, object)), text(case_change_action), text(locale), constant(is_case_sensitive)]
    count, words = packed(f"{STRING}normalize", given, *[TensorType((), "int64")] * 2)
    # Without stop words, nothing is removed.
    found = kept(words, TensorType((size(count, "words") if stopwords else maximum(x.shape[-1], 1),), "string"))
    return reshape(found, (*x.shape[:-1], *found.shape))


@converter(since=20)
def RegexFullMatch(x: Tensor, *, pattern: str = "") -> Tensor:
    check_strings("X", x)
    (found,) = packed(f"{STRING}full_match", [x, text(pattern)], x.type.with_dtype("bool"))
    return found


def converted(x: Tensor, dtype: str) -> Tensor:
    """Numbers as strings, or the other way round: a Cast of which one side are strings."""
    if dtype == "string":
        plain = cast(x, wide_dtype(x.dtype)) if x.type.is_narrow else x
        (found,) = packed(f"{STRING}from_numbers", [plain], x.type.with_dtype(dtype))
        return found
    (found,) = packed(f"{STRING}to_numbers", [x], x.type.with_dtype(wide_dtype(dtype) if is_narrow(dtype) else dtype))
    return cast(found, dtype)
