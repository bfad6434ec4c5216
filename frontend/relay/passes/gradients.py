"""Gradients of operators: of a call and the gradient of its result, the gradients of its arguments, as expressions.

A rule gives None for an argument that the result does not depend on in a differentiable way.
"""

from collections.abc import Callable, Sequence
from math import pi
from typing import Any

from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.build import const
from relayc.frontend.relay.op.functions import call, op

Grads = Sequence[e.Expr | None]
Rule = Callable[[e.Call, Any], Grads]
"""(a call with types, the gradient of its result: of several results, a list of them) -> those of the arguments."""

RULES: dict[str, Rule] = {}
"""By Relay's names of operators. A program may add rules."""


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return add


def _shape(expr: e.Expr) -> tuple[Any, ...]:
    type_ = expr.checked_type
    assert isinstance(type_, t.TensorType)
    return tuple(type_.shape)


def _number(value: float, like: e.Expr) -> e.Expr:
    type_ = like.checked_type
    assert isinstance(type_, t.TensorType)
    return const(value, type_.dtype)


def _like(grad: e.Expr, arg: e.Expr) -> e.Expr:
    """A gradient summed over the axes along which an argument broadcasts."""
    return op.collapse_sum_like(grad, arg)


# ---- element by element ------------------------------------------------------------------------------------------------------------------

RULES |= {
    "add": lambda c, g: [_like(g, c.args[0]), _like(g, c.args[1])],
    "subtract": lambda c, g: [_like(g, c.args[0]), _like(-g, c.args[1])],
    "multiply": lambda c, g: [_like(g * c.args[1], c.args[0]), _like(g * c.args[0], c.args[1])],
    "divide": lambda c, g: [_like(g / c.args[1], c.args[0]), _like(-g * c / c.args[1], c.args[1])],
    "negative": lambda c, g: [-g],
    "exp": lambda c, g: [g * c],
    "log": lambda c, g: [g / c.args[0]],
    "log2": lambda c, g: [g / (c.args[0] * op.log(_number(2, c)))],
    "log10": lambda c, g: [g / (c.args[0] * op.log(_number(10, c)))],
    "sqrt": lambda c, g: [g * _number(0.5, c) / c],
    "rsqrt": lambda c, g: [g * _number(-0.5, c) * c / c.args[0]],
    "tanh": lambda c, g: [g * (_number(1, c) - c * c)],
    "sigmoid": lambda c, g: [g * c * (_number(1, c) - c)],
    "sin": lambda c, g: [g * op.cos(c.args[0])],
    "cos": lambda c, g: [-g * op.sin(c.args[0])],
    "tan": lambda c, g: [g * (_number(1, c) + c * c)],
    "sinh": lambda c, g: [g * op.cosh(c.args[0])],
    "cosh": lambda c, g: [g * op.sinh(c.args[0])],
    "atan": lambda c, g: [g / (_number(1, c) + c.args[0] * c.args[0])],
    "asin": lambda c, g: [g * op.rsqrt(_number(1, c) - c.args[0] * c.args[0])],
    "acos": lambda c, g: [-g * op.rsqrt(_number(1, c) - c.args[0] * c.args[0])],
    "asinh": lambda c, g: [g * op.rsqrt(c.args[0] * c.args[0] + _number(1, c))],
    "acosh": lambda c, g: [g * op.rsqrt(c.args[0] * c.args[0] - _number(1, c))],
    "atanh": lambda c, g: [g / (_number(1, c) - c.args[0] * c.args[0])],
    "erf": lambda c, g: [g * _number(2 / pi**0.5, c) * op.exp(-c.args[0] * c.args[0])],
    "abs": lambda c, g: [g * op.sign(c.args[0])],
    "nn.relu": lambda c, g: [_where(c.args[0] > _number(0, c), g)],
    "where": lambda c, g: [None, _like(_where(c.args[0], g), c.args[1]), _like(op.where(c.args[0], op.zeros_like(g), g), c.args[2])],
    "maximum": lambda c, g: [_like(_where(c.args[0] >= c.args[1], g), c.args[0]), _like(_where(c.args[0] < c.args[1], g), c.args[1])],
    "minimum": lambda c, g: [_like(_where(c.args[0] <= c.args[1], g), c.args[0]), _like(_where(c.args[0] > c.args[1], g), c.args[1])],
    "cast": lambda c, g: [op.cast_like(g, c.args[0])],
    "cast_like": lambda c, g: [op.cast_like(g, c.args[0]), None],
    **dict.fromkeys(("copy", "annotation.checkpoint", "annotation.stop_fusion", "nn.dropout"), lambda c, g: [_first(g)]),
}


def _first(grad: Any) -> e.Expr:
    found: e.Expr = grad[0] if isinstance(grad, list) else grad
    return found


def _where(condition: e.Expr, grad: e.Expr) -> e.Expr:
    found: e.Expr = op.where(condition, grad, op.zeros_like(grad))
    return found


@_rule("nn.leaky_relu")
def _leaky_relu(c: e.Call, g: e.Expr) -> Grads:
    assert c.attrs is not None
    return [op.where(c.args[0] > _number(0, c), g, g * _number(c.attrs["alpha"], c))]


@_rule("clip")
def _clip(c: e.Call, g: e.Expr) -> Grads:
    x = c.args[0]
    assert c.attrs is not None
    return [_where(op.logical_and(x >= _number(c.attrs["a_min"], c), x <= _number(c.attrs["a_max"], c)), g)]


@_rule("power")
def _power(c: e.Call, g: e.Expr) -> Grads:
    x, y = c.args
    return [_like(g * y * op.power(x, y - _number(1, c)), x), _like(g * c * op.log(x), y)]


@_rule(
    *(
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "equal",
        "not_equal",
        "logical_not",
        "logical_and",
        "logical_or",
        "argmax",
        "argmin",
    ),
    *(
        "zeros",
        "ones",
        "zeros_like",
        "ones_like",
        "full_like",
        "shape_of",
        "arange",
        "ndarray_size",
        "floor",
        "ceil",
        "round",
        "sign",
        "one_hot",
    ),
)
def _none(c: e.Call, g: e.Expr) -> Grads:
    return [None] * len(c.args)


# ---- shapes ------------------------------------------------------------------------------------------------------------------------------


@_rule("reshape", "expand_dims", "squeeze", "nn.batch_flatten", "reshape_like", "contrib_reverse_reshape")
def _reshape(c: e.Call, g: e.Expr) -> Grads:
    return [op.reshape_like(g, c.args[0]), *[None] * (len(c.args) - 1)]


@_rule("transpose")
def _transpose(c: e.Call, g: e.Expr) -> Grads:
    rank = len(_shape(c))
    axes = [a % rank for a in c.attrs["axes"] or range(rank)[::-1]]  # type: ignore[index]
    return [op.transpose(g, [axes.index(i) for i in range(rank)])]


@_rule("broadcast_to", "broadcast_to_like", "collapse_sum_like")
def _broadcast(c: e.Call, g: e.Expr) -> Grads:
    if c.op.name == "collapse_sum_like":  # type: ignore[attr-defined]
        return [op.broadcast_to_like(g, c.args[0]), None]
    return [_like(g, c.args[0]), *[None] * (len(c.args) - 1)]


@_rule("concatenate", "stack")
def _concatenate(c: e.Call, g: e.Expr) -> Grads:
    """Of the fields of the tuple."""
    fields = c.args[0].checked_type.fields  # type: ignore[attr-defined]
    axis, found, begin = c.attrs["axis"] % len(_shape(c)), [], 0  # type: ignore[index]
    for type_ in fields:
        size = 1 if c.op.name == "stack" else type_.shape[axis]  # type: ignore[attr-defined]
        part = op.strided_slice(g, begin=[begin], end=[begin + size], axes=[axis])
        found.append(op.squeeze(part, axis=[axis]) if c.op.name == "stack" else part)  # type: ignore[attr-defined]
        begin += size
    return found


@_rule("split")
def _split(c: e.Call, g: Any) -> Grads:
    parts = [op.zeros(part.shape, part.dtype) if grad is None else grad for grad, part in zip(g, c.checked_type.fields, strict=True)]  # type: ignore[attr-defined]
    return [op.concatenate(e.Tuple(parts), axis=c.attrs["axis"])]  # type: ignore[index]


@_rule("strided_slice")
def _strided_slice(c: e.Call, g: e.Expr) -> Grads:
    shape, attrs = _shape(c.args[0]), c.attrs
    assert attrs is not None
    axes = [a % len(shape) for a in attrs["axes"] or range(len(attrs["begin"]))]
    width, strides = [(0, 0)] * len(shape), [*attrs["strides"], *[1] * len(axes)]
    for axis, begin, end, step in zip(axes, attrs["begin"], attrs["end"], strides, strict=False):
        size = int(shape[axis])
        chosen = range(size)[begin : begin + (size if end < 0 else end) if attrs["slice_mode"] == "size" else end : step]
        width[axis] = chosen.start, max(size - chosen.start - len(chosen), 0)
        if chosen.step != 1:
            return [_placed(c, g)]
    return [op.nn.pad(g, width, pad_value=0)]


def _placed(c: e.Call, g: e.Expr) -> e.Expr:
    """A gradient at the places that a slice with steps takes, with zeros elsewhere."""
    assert c.attrs is not None
    steps = [*c.attrs["strides"], *[1] * (len(c.attrs["begin"]) - len(c.attrs["strides"]))]
    bounds = [c.attrs["begin"], c.attrs["end"], steps]
    found: e.Expr = op.strided_set(op.zeros_like(c.args[0]), g, *(const(list(b), "int64") for b in bounds))
    return found


@_rule("take")
def _take(c: e.Call, g: e.Expr) -> Grads:
    """By a product with the rows of ones that the indices are."""
    data, indices = c.args
    shape, axis = _shape(data), c.attrs["axis"]  # type: ignore[index]
    flat = op.reshape(indices, [-1])
    if axis is None:
        moved, rows, rest = op.reshape(g, [-1, 1]), 1, shape
        for size in shape:
            rows *= int(size)
    else:
        axis %= len(shape)
        count, rank = len(_shape(indices)), len(_shape(c))
        order = [*range(axis, axis + count), *range(axis), *range(axis + count, rank)]
        moved = op.reshape(op.transpose(g, order), [-1, max(1, _size([d for i, d in enumerate(shape) if i != axis]))])
        rows, rest = int(shape[axis]), tuple(d for i, d in enumerate(shape) if i != axis)
    type_ = data.checked_type
    assert isinstance(type_, t.TensorType)
    ones = op.one_hot(flat, const(1, type_.dtype), const(0, type_.dtype), rows, -1, type_.dtype)
    summed = op.nn.matmul(ones, moved, transpose_a=True)
    if axis is None:
        return [op.reshape(summed, list(shape)), None]
    whole = op.reshape(summed, [rows, *rest])
    return [op.transpose(whole, [*range(1, axis + 1), 0, *range(axis + 1, len(shape))]), None]


def _size(sizes: Sequence[Any]) -> int:
    found = 1
    for size in sizes:
        found *= int(size)
    return found


# ---- reductions --------------------------------------------------------------------------------------------------------------------------


def _axes(c: e.Call) -> list[int]:
    rank, attrs = len(_shape(c.args[0])), c.attrs
    assert attrs is not None
    given = attrs["axis"]
    found = list(range(rank)) if given is None else [a % rank for a in (given if isinstance(given, tuple) else (given,))]
    return [a for a in range(rank) if a not in found] if attrs["exclude"] else found


def _spread(c: e.Call, value: e.Expr) -> e.Expr:
    """A result of a reduction, or its gradient, as it broadcasts to the data."""
    axes = _axes(c)
    kept = value if c.attrs["keepdims"] else op.reshape(value, [1 if i in axes else d for i, d in enumerate(_shape(c.args[0]))])  # type: ignore[index]
    found: e.Expr = op.broadcast_to_like(kept, c.args[0])
    return found


RULES |= {
    "sum": lambda c, g: [_spread(c, g)],
    "mean": lambda c, g: [_spread(c, g) / _number(_size([_shape(c.args[0])[a] for a in _axes(c)]), c)],
}


@_rule("max", "min")
def _largest(c: e.Call, g: e.Expr) -> Grads:
    """Equal ones share the gradient."""
    chosen = op.cast_like(op.equal(_spread(c, c), c.args[0]), c.args[0])
    count = _spread(c, op.sum(chosen, axis=_axes(c), keepdims=bool(c.attrs["keepdims"])))  # type: ignore[index]
    return [_spread(c, g) * chosen / count]


@_rule("variance")
def _variance(c: e.Call, g: e.Expr) -> Grads:
    x, mean = c.args
    count = _size([_shape(x)[a] for a in _axes(c)]) - bool(c.attrs["unbiased"])  # type: ignore[index]
    found = _spread(c, g) * (x - mean) * _number(2 / count, c)
    return [found, _like(-found, mean)]


# ---- products and networks ---------------------------------------------------------------------------------------------------------------


@_rule("nn.dense")
def _dense(c: e.Call, g: e.Expr) -> Grads:
    x, w = c.args
    rows = op.reshape(g, [-1, _shape(w)[0]])
    flat = op.reshape(x, [-1, _shape(w)[1]])
    weight = op.nn.dense(op.transpose(rows, [1, 0]), op.transpose(flat, [1, 0]))
    return [op.reshape_like(op.nn.dense(rows, op.transpose(w, [1, 0])), x), weight]


@_rule("nn.matmul", "nn.batch_matmul")
def _matmul(c: e.Call, g: e.Expr) -> Grads:
    name, attrs = c.op.name, c.attrs  # type: ignore[attr-defined]
    assert attrs is not None

    def product(a: e.Expr, b: e.Expr, ta: bool, tb: bool) -> e.Expr:
        return call(name, [a, b], {"transpose_a": ta, "transpose_b": tb})

    a, b = c.args
    ta, tb = bool(attrs["transpose_a"]), bool(attrs["transpose_b"])
    left = product(b, g, tb, True) if ta else product(g, b, False, not tb)
    right = product(g, a, True, ta) if tb else product(a, g, not ta, False)
    return [_like(left, a), _like(right, b)]


@_rule("nn.bias_add")
def _bias_add(c: e.Call, g: e.Expr) -> Grads:
    return [g, op.sum(g, axis=[c.attrs["axis"]], exclude=True)]  # type: ignore[index]


@_rule("nn.softmax")
def _softmax(c: e.Call, g: e.Expr) -> Grads:
    return [(g - op.sum(g * c, axis=[c.attrs["axis"]], keepdims=True)) * c]  # type: ignore[index]


@_rule("nn.log_softmax")
def _log_softmax(c: e.Call, g: e.Expr) -> Grads:
    return [g - op.sum(g, axis=[c.attrs["axis"]], keepdims=True) * op.exp(c)]  # type: ignore[index]


@_rule("nn.cross_entropy", "nn.cross_entropy_with_logits")
def _cross_entropy(c: e.Call, g: e.Expr) -> Grads:
    x, y = c.args
    scale = g / _number(int(_shape(x)[0]), c)
    if c.op.name == "nn.cross_entropy":  # type: ignore[attr-defined]
        return [-scale * y / x, -scale * op.log(x)]
    return [-scale * y, -scale * x]


@_rule("nn.global_avg_pool2d")
def _global_avg_pool2d(c: e.Call, g: e.Expr) -> Grads:
    x, layout = c.args[0], c.attrs["layout"]  # type: ignore[index]
    return [op.broadcast_to_like(g, x) / _number(_size([_shape(x)[layout.index(a)] for a in "HW"]), c)]


@_rule("nn.conv2d")
def _conv2d(c: e.Call, g: e.Expr) -> Grads:
    """Of one group, in NCHW: transposed, and as a convolution of the images by the gradients, entries of the batch as channels."""
    attrs = c.attrs
    assert attrs is not None
    if attrs["groups"] != 1 or attrs["data_layout"] != "NCHW" or attrs["kernel_layout"] != "OIHW":
        raise RelayError("gradient: nn.conv2d: expected one group, in NCHW and OIHW")
    x, w = c.args
    pads, steps, dilation, kernel = attrs["padding"], attrs["strides"], attrs["dilation"], _shape(w)[2:]
    more = []
    for i in range(2):
        windows = (int(_shape(c)[2 + i]) - 1) * steps[i] - pads[i] - pads[i + 2] + dilation[i] * (int(kernel[i]) - 1) + 1
        more.append(int(_shape(x)[2 + i]) - windows)
    same = {"strides": steps, "padding": pads, "dilation": dilation}
    data = call("nn.conv2d_transpose", [g, w], {**same, "output_padding": more, "kernel_layout": "IOHW"})
    turned = [op.transpose(v, [1, 0, 2, 3]) for v in (x, g)]
    weight = call("nn.conv2d", turned, {"strides": dilation, "padding": pads, "dilation": steps})
    cut = op.strided_slice(op.transpose(weight, [1, 0, 2, 3]), begin=[0, 0], end=list(kernel), axes=[2, 3])
    return [data, cut]
