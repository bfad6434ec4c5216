"""Reductions along axes."""

from collections.abc import Callable
from math import inf, prod
from typing import Any

import ml_dtypes
import numpy as np

from relayc.frontend.converter import Tensor, emit
from relayc.frontend.sizes import size_tensor
from relayc.frontend.steps import cast, divide, filled, in_float32, multiply

Reduction = Callable[[Tensor, tuple[int, ...], bool], Tensor]
"""Of a tensor, the axes, and whether these stay as axes of size 1."""


def relay_reduction(relay_name: str) -> Reduction:
    return lambda x, axes, keepdims: emit(relay_name, x, axis=axes, keepdims=keepdims)


_sum, _max = relay_reduction("sum"), relay_reduction("max")


def extremum(relay_name: str, of_bool: str) -> Reduction:
    # The largest of bools is whether any holds.
    return lambda x, axes, keepdims: emit(of_bool if x.dtype == "bool" else relay_name, x, axis=axes, keepdims=keepdims)


def mean(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    if x.is_float:
        return emit("mean", x, axis=axes, keepdims=keepdims)
    count = size_tensor(prod(x.shape[a] for a in axes))
    return divide(_sum(x, axes, keepdims), cast(count, x.dtype))


def mean_and_variance(x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Both with `axes` of size 1."""
    found = emit("mean", x, axis=axes, keepdims=True)
    return found, emit("variance", x, found, axis=axes, keepdims=True)


def lowest(dtype: str, negated: bool = False) -> Any:
    """The number below all others of a dtype; above all others where `negated`."""
    if dtype == "bool":
        return negated
    if dtype.startswith(("float", "bfloat")):
        return inf if negated else -inf
    limits = ml_dtypes.iinfo(dtype) if dtype.endswith("int4") else np.iinfo(dtype)
    return limits.max if negated else limits.min


def sum_square(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    return _sum(multiply(x, x), axes, keepdims)


def l2_norm(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    return as_float(x, lambda y: emit("sqrt", sum_square(y, axes, keepdims)))


def log_sum(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    return as_float(x, lambda y: emit("log", _sum(y, axes, keepdims)))


def log_sum_exp(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """log(sum(exp(x))), with the largest element taken out so that it does not overflow."""

    def compute(y: Tensor) -> Tensor:
        if prod(y.shape[a] for a in axes) == 0:
            return emit("log", _sum(emit("exp", y), axes, keepdims))
        # An infinite maximum is not taken out: inf - inf would be NaN.
        largest = _max(y, axes, True)
        shift = emit("where", emit("isfinite", largest), largest, filled((), 0, y.dtype))
        total = _sum(emit("exp", emit("subtract", y, shift)), axes, True)
        found = emit("add", emit("log", total), shift)
        return found if keepdims else emit("squeeze", found, axis=axes)

    return as_float(x, compute)


def as_float(x: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
    """`compute` in a float type; the result of integers is an integer again."""
    if x.is_float:
        return in_float32(x, compute)
    return cast(compute(cast(x, "float64")), x.dtype)
