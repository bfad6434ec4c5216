"""Rules of random graphs of quantised tensors.

Most scales are powers of two: real numbers are exact, and results equal, bit for bit. Other scales are those of a few elements, as a number
next to a half may be rounded either way.
"""

from collections.abc import Sequence
from contextlib import suppress
from math import prod
from typing import Any

import random_rules as rules
from random_drawing import Drawing, rule
from random_graphs import at

from relayc import TensorType
from relayc.dialects.relay import RelayError
from relayc.dialects.relay.qnn import COMPUTE_DTYPES, FUNCTIONS, ROUNDINGS
from relayc.dialects.relay.types import BYTES
from relayc.symbolic import Size

FEW = 256
"""Elements of a tensor whose numbers may be rounded either way."""
_FROM_ZERO = ("log", "sqrt", "rsqrt")
"""Functions of numbers from 0."""
_WAYS = ("None", *ROUNDINGS), ("None", *COMPUTE_DTYPES)


def _bytes(d: Drawing, least: int = 0, rank: int | None = None) -> int:
    """A value of bytes, of a rank or of at least so many axes."""
    fresh = lambda: d.leaf(d.shape(max(d.rank(), least) if rank is None else rank), d.choice(BYTES), "all", constant=False)  # noqa: E731
    return d.pick(lambda t: t.dtype in BYTES and t.rank >= least and rank in (None, t.rank), fresh)


def _is_small(d: Drawing, t: TensorType) -> bool:
    return prod(at(t.sizes, d.sample)) <= FEW


def _parameters(d: Drawing, t: TensorType, dtype: str = "", axis: int | None = None, scale: str = "scale", zero: str = "") -> list[int]:
    """A scale and a zero point of a tensor that is or becomes one of `dtype`; one for each index along an axis, if it is given."""
    dtype = dtype or t.dtype
    shape = () if axis is None else (t.shape[axis],)
    scale = "real scale" if scale == "scale" and _is_small(d, t) and d.chance(0.3) else scale
    zero = zero or d.choice(("zero", "all" if dtype in BYTES else "any"))
    return [d.leaf(shape, of, domain, constant=d.chance(0.9)) for of, domain in (("float32", scale), (dtype, zero))]


def _axis(d: Drawing, shape: Sequence[Size], p: float) -> int | None:
    """An axis of known size, or none."""
    axis = d.integer(0, len(shape) - 1) if shape and d.chance(p) else None
    return axis if axis is not None and isinstance(shape[axis], int) else None


def _along(axis: int | None) -> dict[str, int]:
    return {} if axis is None else {"axis": axis}


# ---- operators on real numbers, which become operators on integers -------------------------------------------------------------------

_EXACT = {
    rules.convolution: tuple(f"nn_conv{n}d{end}" for n in (1, 2, 2, 3) for end in ("", "", "_transpose")),
    rules.product_of_two: ("nn_dense", "nn_matmul"),
    rules.batch_product: ("nn_batch_matmul",),
    rules.binary: ("add", "add", "subtract", "multiply", "maximum"),
    rules.unary: ("nn_relu", "nn_leaky_relu", *FUNCTIONS),
    rules.clip: ("clip",),
    rules.join: ("concatenate", "stack"),
    rules.reshape: ("reshape",),
    rules.rearrange: ("transpose", "expand_dims", "squeeze"),
    rules.strided_slice: ("strided_slice",),
    rules.pad: ("nn_pad",),
    rules.pooling: ("nn_max_pool1d", "nn_max_pool2d"),
}
"""Operators whose results are exact, or are functions of 256 numbers, none of which is likely to be next to a half."""
_ROUNDED = {
    rules.softmax: ("nn_softmax",),
    rules.pooling: ("nn_avg_pool1d", "nn_avg_pool2d"),
    rules.adaptive: ("nn_global_avg_pool2d", "nn_adaptive_avg_pool2d"),
    rules.reduction: ("mean", "sum", "max"),
}


@rule("qnn_quantize", "qnn_dequantize", weight=6)
def between(d: Drawing, op: str) -> Any:
    """Operators of dequantised tensors, whose result is quantised."""
    before, dtype, first = d.scope, d.dtype, _bytes(d)

    def real(shape: Sequence[Size], constant: bool | None) -> int:
        return dequantised(d.leaf(shape, d.choice(BYTES), "all", constant=constant))

    def dequantised(v: int) -> int:
        axis = _axis(d, d.types[v].shape, 0.3)
        return int(d.emit("qnn_dequantize", v, *_parameters(d, d.types[v], axis=axis), **_along(axis)))

    try:
        d.scope, d.dtype, d.real_leaf = [], "float32", real
        v, exact = dequantised(first), True
        for _ in range(d.integer(0, 3)):
            exact = d.chance(0.8)
            family = _EXACT if exact else _ROUNDED
            draw = d.choice(list(family))
            with suppress(RelayError):
                found = draw(d, d.choice(family[draw]))
                v = d.choice(found) if isinstance(found, list) else found
    finally:
        d.scope, d.dtype, d.real_leaf = [*before, *d.scope], dtype, None
    t = d.types[v]
    if not (exact or _is_small(d, t)) or t.dtype != "float32":
        raise RelayError("numbers that may be rounded either way")
    axis, out = _axis(d, t.shape, 0.2), d.choice((*BYTES, *BYTES, "int32"))
    parameters = _parameters(d, t, out, axis)
    rounding = d.choice(("TONEVEN", "TONEVEN", "TONEVEN", "TONEAREST"))
    found = d.emit("qnn_quantize", v, *parameters, out_dtype=out, rounding=rounding, **_along(axis))
    return d.emit("qnn_dequantize", found, *parameters, **_along(axis)) if d.chance(0.4) else found


# ---- operators on integers ------------------------------------------------------------------------------------------------------------

PRODUCTS = (*(f"qnn_conv{n}d{end}" for n in (1, 2, 2, 3) for end in ("", "", "_transpose")), "qnn_dense", "qnn_matmul", "qnn_batch_matmul")


@rule(*PRODUCTS, weight=4)
def product(d: Drawing, op: str) -> Any:
    rank = int(op[8]) + 2 if "conv" in op else 3 if op == "qnn_batch_matmul" else None
    v = _bytes(d, 1, rank)
    t, shape, attrs, of_result = d.types[v], [], dict[str, Any](), -1
    if "conv" in op:
        order = d.choice(rules.LAYOUTS[t.rank - 2])
        shape, attrs = rules.kernel_of(d, v, order, op.endswith("transpose"))
        of_weight, of_result = attrs["kernel_layout"].index("O"), order.index("C")
    else:
        a, b = op != "qnn_dense" and t.rank > 1 and d.chance(0.3), op == "qnn_dense" or d.chance(0.5)
        depth, units = t.shape[-2 if a else -1], d.size(300)
        rules.bounded(d, t, units)
        shape = [*([t.shape[0]] if rank == 3 else []), *((units, depth) if b else (depth, units))]
        attrs = {} if op == "qnn_dense" else {"transpose_a": a, "transpose_b": b}
        of_weight = 0 if b else 1
    w = d.leaf(shape, d.choice(BYTES), "all", constant=True if d.chance(0.7) else None)
    has_channels = not op.endswith("transpose") and op != "qnn_batch_matmul" and d.chance(0.4)
    scale, zero = _parameters(d, t)
    symmetric = "zero" if d.chance(0.6) else ""
    weight_scale, weight_zero = _parameters(d, d.types[w], axis=of_weight if has_channels else None, zero=symmetric)
    sums = d.emit(op, v, w, zero, weight_zero, scale, weight_scale, **attrs)
    return _requantised(d, sums, of_result, "fine scale") if d.chance(0.7) else sums


def _requantised(d: Drawing, v: int, axis: int | None, scale: str = "scale") -> int:
    t, out = d.types[v], d.choice((*BYTES, *BYTES, "int32"))
    rounding, compute_dtype = map(d.choice, _WAYS)
    axis = axis if axis is not None and isinstance(t.shape[axis], int) and d.chance(0.5) else None
    given = _parameters(d, t, axis=axis, scale=scale, zero="zero" if t.dtype == "int32" else "")
    to = _parameters(d, t, out, axis if d.chance(0.1) else None)
    ways = {"rounding": rounding, "compute_dtype": compute_dtype, "out_dtype": out}
    return int(d.emit("qnn_requantize", v, *given, *to, **ways, **_along(axis)))


@rule("qnn_requantize")
def requantize(d: Drawing, op: str) -> Any:
    v = _bytes(d)
    return _requantised(d, v, _axis(d, d.types[v].shape, 0.5))


@rule("qnn_add", "qnn_subtract", "qnn_mul", weight=2)
def binary(d: Drawing, op: str) -> Any:
    v = _bytes(d)
    pair = [v, rules.broadcasting(d, v, d.choice(BYTES), "all")]
    pair = pair if d.chance(0.7) else pair[::-1]
    types = [d.types[x] for x in pair]
    axes = [_axis(d, types[0].shape, 0.2), None]
    sides = [p for t, axis in zip(types, axes, strict=True) for p in _parameters(d, t, axis=axis)]
    rounding, compute_dtype = map(d.choice, _WAYS)
    ways = {"rounding": rounding, "compute_dtype": compute_dtype, "lhs_axis": -1 if axes[0] is None else axes[0]}
    return d.emit(op, *pair, *sides, *_parameters(d, d.types[v], types[0].dtype), **ways)


@rule(*(f"qnn_{name}" for name in (*FUNCTIONS, "hardswish", "softmax", "leaky_relu", "leaky_relu")), weight=2)
def function(d: Drawing, op: str) -> Any:
    v = _bytes(d, op == "qnn_softmax")
    t, rounding = d.types[v], d.choice(ROUNDINGS[1:])
    if op == "qnn_softmax" and not _is_small(d, t):
        raise RelayError("numbers that may be rounded either way")
    parameters = [*_parameters(d, t, zero="least" if op[4:] in _FROM_ZERO else ""), *_parameters(d, t)]
    if op == "qnn_softmax":
        return d.emit(op, v, *parameters, axis=d.axis(v), rounding=rounding)
    if op == "qnn_leaky_relu":
        rounding, compute_dtype = map(d.choice, _WAYS)
        return d.emit(op, v, *parameters, alpha=d.choice((0.125, 0.25, 0.5)), rounding=rounding, compute_dtype=compute_dtype)
    return d.emit(op, v, *parameters, rounding=rounding)


@rule("qnn_avg_pool2d")
def means(d: Drawing, op: str) -> Any:
    v, order = _bytes(d, rank=4), d.choice(rules.LAYOUTS[2])
    kernel, attrs = rules.window(d, v, order, 2, 4)
    more = {"ceil_mode": d.chance(0.3), "count_include_pad": d.chance(0.4)}
    parameters = [*_parameters(d, d.types[v]), *_parameters(d, d.types[v])]
    return d.emit(op, v, *parameters, pool_size=tuple(kernel), layout=order, **attrs, **more)
