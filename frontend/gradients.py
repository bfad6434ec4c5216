"""Reverse-mode derivatives of what is built already: of a tensor with respect to others, by a rule for each operator between them.

A rule gives the contribution of an operator to the derivative with respect to each of its operands, from that with respect to its result;
one that is not needed is not built. What a comparison, a rounding or a conversion to integers gives does not change with its operands.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from math import inf, pi, prod
from typing import NoReturn, TypeAlias

from relayc.dialects.mlir import ir
from relayc.dialects.relay import TensorType
from relayc.dialects.relay.attention import AXES
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.conv import ConvGeometry
from relayc.dialects.relay.reduce import reduced_axes, reduced_shape
from relayc.dialects.relay.slices import slice_bounds, slices
from relayc.frontend import window_gradients as windows
from relayc.frontend.common.attention import attention_derivatives
from relayc.frontend.common.padding import gathered_pad
from relayc.frontend.converter import Tensor, assume, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.sizes import shape_tensor
from relayc.frontend.steps import (
    add,
    binary,
    broadcast_to,
    cast,
    dilated,
    divide,
    filled,
    multiply,
    reshape,
    strided_slice,
    subtract,
    transpose,
)
from relayc.symbolic import Size


class Call:
    """An operator that is there.

    Attributes:
      op: the operation.
      inputs, result: its operands and its result.
    """

    def __init__(self, op: Op) -> None:
        self.op = op
        self.inputs = [_tensor(v) for v in op.operation.operands]
        self.result = _tensor(op.operation.results[0])


Part: TypeAlias = Callable[[], Tensor] | None
"""Builds a contribution; None for an operand with which the result does not change."""
Rule: TypeAlias = Callable[[Call, Tensor], Sequence[Part]]
_RULES: dict[str, Rule] = {}


def gradients(y: Tensor, xs: Sequence[Tensor], seed: Tensor | None = None) -> list[Tensor]:
    """The derivatives of the sum of y with respect to tensors that it is computed from, each of the shape of its tensor.

    Args:
      xs: results of operators, or arguments, no two the same.
      seed: weights of the elements of y in the sum, of the shape of y (default: ones).

    Raises ModelError for an operator between them that has no rule.
    """
    wanted = {x.value for x in xs}
    order = _between(y.value, wanted)
    found: dict[ir.Value, Tensor] = {y.value: filled(y.shape, 1, y.dtype) if seed is None else seed}
    depends = wanted | {op.operation.results[0] for op in order}
    for op in reversed(order):
        call = Call(op)
        given = found.get(call.result.value)
        if given is None or call.result.value in wanted:
            continue
        rule = _RULES.get(op.relay_name)
        if rule is None:
            raise ModelError(f"expected operators that have a derivative, found {op.relay_name} of node {op.source()!r}")
        for tensor, part in zip(call.inputs, rule(call, given), strict=True):
            if part is None or tensor.value not in depends or not tensor.is_float:
                continue
            made = _as(part(), tensor)
            found[tensor.value] = add(found[tensor.value], made) if tensor.value in found else made
    return [found[x.value] if x.value in found else filled(x.shape, 0, x.dtype) for x in xs]


def _tensor(value: ir.Value) -> Tensor:
    return Tensor(TensorType.of(value), value=value)


def _between(y: ir.Value, xs: set[ir.Value]) -> list[Op]:
    """The operations that y is computed by from others, each behind those whose results it uses. Raises ModelError."""
    order: list[Op] = []
    depends: dict[ir.Value, bool] = dict.fromkeys(xs, True)
    waiting = [y]
    while waiting:
        value = waiting[-1]
        if value in depends:
            waiting.pop()
            continue
        owner = value.owner
        if isinstance(owner, ir.Block):
            depends[value] = False
            continue
        used = list(_used(owner.operation))
        missing = [v for v in used if v not in depends]
        if missing:
            waiting += missing
            continue
        depends[value] = any(depends[v] for v in used)
        if depends[value]:
            if not isinstance(owner, Op) or len(owner.operation.results) != 1 or len(owner.operation.regions):
                name = owner.relay_name if isinstance(owner, Op) else owner.operation.name
                raise ModelError(f"expected operators that have a derivative, found {name}")
            order.append(owner)
    return order


def _used(operation: ir.Operation) -> Iterator[ir.Value]:
    """The values from around an operation that it uses, itself and in its regions."""
    yield from operation.operands
    own = [argument for region in operation.regions for block in region.blocks for argument in block.arguments]
    for region in operation.regions:
        for block in region.blocks:
            for op in block.operations:
                yield from (v for v in _used(op.operation) if v not in own)
                own += op.operation.results


def _as(g: Tensor, x: Tensor) -> Tensor:
    """A derivative with respect to what x was broadcast to as that with respect to x."""
    g = cast(g, x.dtype)
    if g.shape == x.shape:
        return g
    extra = g.rank - x.rank
    repeated = [extra + a for a, (n, d) in enumerate(zip(g.shape[extra:], x.shape, strict=True)) if d == 1 and n != 1]
    axes = [*range(extra), *repeated]
    if axes:
        g = emit("sum", g, axis=tuple(axes), keepdims=True)
    return assume(reshape(g, g.shape[extra:]), x.shape)


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def _parts(name: str, *parts: Callable[[Call, Tensor], Tensor] | None) -> None:
    """The rule of an operator of so many operands: the contribution to each, None where the result does not change with it."""
    _RULES[name] = lambda call, g: [None if part is None else partial(part, call, g) for part in parts]


def _unary(name: str, slope: Callable[[Tensor, Tensor], Tensor]) -> None:
    """The rule of an elementwise operator from its slope, a function of the operand and the result."""
    _parts(name, lambda call, g: multiply(g, slope(call.inputs[0], call.result)))


def _minus(x: Tensor) -> Tensor:
    return emit("negative", x)


def _square(x: Tensor) -> Tensor:
    return multiply(x, x)


def _where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return emit("where", condition, x, y)


def _none(x: Tensor) -> Tensor:
    return filled(x.shape, 0, x.dtype)


def _chosen(g: Tensor, relay_name: str, x: Tensor, y: Tensor | float) -> Tensor:
    """g where x compares so to y, else 0."""
    return _where(binary(relay_name, x, y), g, _none(g))


# ---- elementwise ----------------------------------------------------------------------------------------------------------------------

for _name, _slope in {
    "negative": lambda x, y: filled((), -1, x.dtype),
    "exp": lambda x, y: y,
    "log": lambda x, y: binary("divide", filled((), 1, x.dtype), x),
    "log2": lambda x, y: divide(filled((), 1.4426950408889634, x.dtype), x),
    "log10": lambda x, y: divide(filled((), 0.4342944819032518, x.dtype), x),
    "sqrt": lambda x, y: divide(filled((), 0.5, x.dtype), y),
    "rsqrt": lambda x, y: multiply(divide(y, x), -0.5),
    "tanh": lambda x, y: subtract(filled((), 1, x.dtype), _square(y)),
    "sigmoid": lambda x, y: multiply(y, subtract(filled((), 1, x.dtype), y)),
    "sin": lambda x, y: emit("cos", x),
    "cos": lambda x, y: _minus(emit("sin", x)),
    "tan": lambda x, y: add(_square(y), 1),
    "sinh": lambda x, y: emit("cosh", x),
    "cosh": lambda x, y: emit("sinh", x),
    "asin": lambda x, y: emit("rsqrt", subtract(filled((), 1, x.dtype), _square(x))),
    "acos": lambda x, y: _minus(emit("rsqrt", subtract(filled((), 1, x.dtype), _square(x)))),
    "atan": lambda x, y: divide(filled((), 1, x.dtype), add(_square(x), 1)),
    "asinh": lambda x, y: emit("rsqrt", add(_square(x), 1)),
    "acosh": lambda x, y: emit("rsqrt", subtract(_square(x), 1)),
    "atanh": lambda x, y: divide(filled((), 1, x.dtype), subtract(filled((), 1, x.dtype), _square(x))),
    "erf": lambda x, y: multiply(emit("exp", _minus(_square(x))), 2 / pi**0.5),
    "abs": lambda x, y: emit("sign", x),
}.items():
    _unary(_name, _slope)


_parts("nn.relu", lambda call, g: _chosen(g, "greater", call.inputs[0], 0))
_parts("nn.leaky_relu", lambda call, g: _where(binary("greater", call.inputs[0], 0), g, multiply(g, call.op.alpha)))
# Of what is inside of the bounds.
_parts("clip", lambda call, g: _chosen(g, "equal", call.inputs[0], call.result))
for _name in ("copy", "cast", "cast_shape", "match_shape"):
    _parts(_name, lambda call, g: g)


@_rule(
    "sign", "floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite", "logical_not", "argmax", "argmin", "zeros", "ones",
    "shape_of", "one_hot",
)  # fmt: skip
def _constant(call: Call, g: Tensor) -> list[Part]:
    return [None] * len(call.inputs)


for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    _parts(_name, None, None)
for _name in ("logical_and", "logical_or", "logical_xor", "floor_divide"):
    _parts(_name, None, None)
_parts("add", lambda call, g: g, lambda call, g: g)
_parts("subtract", lambda call, g: g, lambda call, g: _minus(g))
_parts("multiply", lambda call, g: multiply(g, call.inputs[1]), lambda call, g: multiply(g, call.inputs[0]))
_parts(
    "divide",
    lambda call, g: divide(g, call.inputs[1]),
    lambda call, g: _minus(multiply(g, divide(call.result, call.inputs[1]))),
)


@_rule("power")
def _power(call: Call, g: Tensor) -> list[Part]:
    x, n = call.inputs

    def of_base() -> Tensor:
        return multiply(g, multiply(n, emit("power", x, subtract(n, 1))))

    def of_exponent() -> Tensor:
        # 0 to any power does not change with the power.
        log = emit("log", _where(binary("equal", x, 0), filled((), 1, x.dtype), x))
        return multiply(g, multiply(call.result, log))

    return [of_base, of_exponent]


@_rule("maximum", "minimum")
def _extremum(call: Call, g: Tensor) -> list[Part]:
    """Of two that are equal the first one counts."""
    x, y = call.inputs
    is_first = "greater_equal" if call.op.relay_name == "maximum" else "less_equal"
    return [lambda: _chosen(g, is_first, x, y), lambda: _where(binary(is_first, x, y), _none(g), g)]


_parts(
    "where",
    None,
    lambda call, g: _where(call.inputs[0], g, _none(g)),
    lambda call, g: _where(call.inputs[0], _none(g), g),
)


@_rule("nn.bias_add")
def _bias_add(call: Call, g: Tensor) -> list[Part]:
    axis = call.op.axis % g.rank
    return [lambda: g, lambda: emit("sum", g, axis=tuple(a for a in range(g.rank) if a != axis), keepdims=False)]


# ---- shape and movement ---------------------------------------------------------------------------------------------------------------


@_rule("reshape", "expand_dims", "squeeze", "nn.batch_flatten")
def _reshape(call: Call, g: Tensor) -> list[Part]:
    # Constants that a reshape names its shape by do not count.
    return [lambda: reshape(g, call.inputs[0].shape), *[None] * (len(call.inputs) - 1)]


@_rule("broadcast_to")
def _broadcast_to(call: Call, g: Tensor) -> list[Part]:
    return [lambda: g, *[None] * (len(call.inputs) - 1)]


@_rule("transpose")
def _transpose(call: Call, g: Tensor) -> list[Part]:
    axes = [a % g.rank for a in call.op.axes or reversed(range(g.rank))]
    return [lambda: transpose(g, [axes.index(a) for a in range(g.rank)])]


@_rule("concatenate")
def _concatenate(call: Call, g: Tensor) -> list[Part]:
    axis = call.op.axis % g.rank
    ends: list[Size] = [0]
    for x in call.inputs:
        ends.append(ends[-1] + x.shape[axis])

    def part(i: int) -> Part:
        return lambda: assume(strided_slice(g, [ends[i]], [ends[i + 1]], [1], [axis]), call.inputs[i].shape)

    return [part(i) for i in range(len(call.inputs))]


@_rule("stack")
def _stack(call: Call, g: Tensor) -> list[Part]:
    axis = call.op.axis % g.rank

    def part(i: int) -> Part:
        return lambda: reshape(strided_slice(g, [i], [i + 1], [1], [axis]), call.inputs[i].shape)

    return [part(i) for i in range(len(call.inputs))]


def _whole(call: Call, g: Tensor) -> Tensor:
    """The derivative of a slice, at its place among zeros."""
    x = call.inputs[0]
    width: list[Size] = [0] * (2 * x.rank)
    steps, backwards = [1] * x.rank, []
    for axis, (begin, end, stride) in slices(call.op, x.rank).items():
        start, count = slice_bounds(x.shape[axis], begin, end, stride)
        if stride != 1:
            if not isinstance(count, int) or not isinstance(start, int):
                raise ModelError(f"expected slices of step 1 along an axis whose size is not known, found step {stride}")
            start, steps[axis] = min(start, start + (count - 1) * stride), abs(stride) if count else 1
            count = (count - 1) * abs(stride) + 1 if count else 0
        if stride < 0:
            backwards.append(axis)
        width[2 * axis], width[2 * axis + 1] = (start, x.shape[axis] - start - count) if count != 0 else (0, x.shape[axis])
    forwards = g
    for axis in backwards:
        forwards = emit("reverse", forwards, axis=axis)
    return emit("nn.pad", dilated(forwards, steps), filled((), 0, g.dtype), pad_width=width, pad_mode="constant")


_parts("strided_slice", _whole)


def _taken(call: Call, g: Tensor) -> Tensor:
    """Of rows that are taken several times the sum."""
    x, at = call.inputs
    axis = call.op.axis
    if axis is None or call.op.batch_dims:
        raise ModelError("expected elements taken along an axis, found others")
    along = axis % x.rank
    order = [*range(along, along + at.rank), *range(along), *range(along + at.rank, g.rank)]
    rows = transpose(g, order)
    others = [a for a in range(x.rank) if a != along]
    count = prod(at.shape)
    last = subtract(reshape(shape_tensor([x.shape[along]]), ()), 1)
    index = emit("minimum", binary("maximum", cast(at, "int64"), 0), last)
    zeros = filled([x.shape[a] for a in (along, *others)], 0, g.dtype)
    updates = reshape(rows, [count, *(x.shape[a] for a in others)])
    found = emit("scatter_nd", zeros, reshape(index, (1, count)), updates, mode="add", in_bounds=True)
    return transpose(found, [[along, *others].index(a) for a in range(x.rank)])


_parts("take", _taken, None)


def _gathered(call: Call, g: Tensor) -> Tensor:
    x, at = call.inputs
    return emit("scatter_elements", _none(x), at, g, axis=call.op.axis, reduction="add", in_bounds=True)


def _cropped(call: Call, g: Tensor) -> Tensor:
    x, width = call.inputs[0], call.op.pad_width
    if call.op.pad_mode != "constant":
        return gradients(gathered_pad(x, list(zip(width[::2], width[1::2], strict=True)), call.op.pad_mode), [x], g)[0]
    begin = list(width[::2])
    return strided_slice(g, begin, [b + d for b, d in zip(begin, x.shape, strict=True)], [1] * x.rank, range(x.rank))


_parts("gather", _gathered, None)
_parts("nn.pad", _cropped, None)


# ---- reductions -----------------------------------------------------------------------------------------------------------------------


def _spread(call: Call, t: Tensor) -> Tensor:
    """What has the shape of a reduction's result, in that of its operand."""
    x = call.inputs[0]
    axes = reduced_axes(x.rank, call.op.axis, call.op.exclude)
    shape = [d for d in reduced_shape(x.shape, axes, True) if d is not None]
    return broadcast_to(reshape(t, shape), x.shape)


def _count(call: Call, dtype: str, less: int = 0) -> Tensor:
    """How many elements a reduction makes one of, minus `less`: a scalar."""
    x = call.inputs[0]
    count = prod(x.shape[a] for a in reduced_axes(x.rank, call.op.axis, call.op.exclude)) - less
    return cast(reshape(shape_tensor([count]), ()), dtype)


def _by_data(call: Call, g: Tensor) -> Tensor:
    x, mean = call.inputs
    half = divide(subtract(x, mean), _count(call, g.dtype, call.op.unbiased))
    return multiply(_spread(call, g), add(half, half))


def _shared(call: Call, g: Tensor) -> Tensor:
    """Of several that are equal each counts for a part."""
    x = call.inputs[0]
    is_one = cast(emit("equal", x, _spread(call, call.result)), g.dtype)
    axes = reduced_axes(x.rank, call.op.axis, call.op.exclude)
    return multiply(_spread(call, g), divide(is_one, emit("sum", is_one, axis=axes, keepdims=True)))


def _along(call: Call, t: Tensor) -> Tensor:
    """Sums along the axis of a softmax."""
    return emit("sum", t, axis=(call.op.axis,), keepdims=True)


_parts("sum", _spread)
_parts("mean", lambda call, g: divide(_spread(call, g), _count(call, g.dtype)))
_parts("variance", _by_data, lambda call, g: _minus(_by_data(call, g)))
for _name in ("max", "min"):
    _parts(_name, _shared)
_parts("nn.softmax", lambda call, g: multiply(call.result, subtract(g, _along(call, multiply(g, call.result)))))
_parts("nn.log_softmax", lambda call, g: subtract(g, multiply(emit("exp", call.result), _along(call, g))))


# ---- products -------------------------------------------------------------------------------------------------------------------------


def _product(operator: str, call: Call, g: Tensor, transposes: tuple[bool, bool]) -> list[Part]:
    """Of a product of matrices, each of which may be given transposed."""
    (a, b), (ta, tb) = call.inputs, transposes

    def product(x: Tensor, y: Tensor, tx: bool, ty: bool) -> Tensor:
        return emit(operator, x, y, transpose_a=tx, transpose_b=ty)

    def of_a() -> Tensor:
        return product(b, g, tb, True) if ta else product(g, b, False, not tb)

    def of_b() -> Tensor:
        return product(g, a, True, ta) if tb else product(a, g, not ta, False)

    return [of_a, of_b]


def _rows(x: Tensor) -> Tensor:
    """All but the last axis as one."""
    return reshape(x, (prod(x.shape[:-1]), x.shape[-1]))


def _linear(call: Call, g: Tensor, transposes: tuple[bool, bool]) -> list[Part]:
    a, b = call.inputs
    flat = Call(call.op)
    flat.inputs = [a if transposes[0] else _rows(a), b]
    of_a, of_b = _product("nn.matmul", flat, g if transposes[0] else _rows(g), transposes)
    assert of_a is not None
    return [lambda: reshape(of_a(), a.shape), of_b]


@_rule("nn.matmul")
def _matmul(call: Call, g: Tensor) -> list[Part]:
    return _linear(call, g, (call.op.transpose_a, call.op.transpose_b))


@_rule("nn.dense")
def _dense(call: Call, g: Tensor) -> list[Part]:
    return _linear(call, g, (False, True))


@_rule("nn.batch_matmul")
def _batch_matmul(call: Call, g: Tensor) -> list[Part]:
    return _product("nn.batch_matmul", call, g, (call.op.transpose_a, call.op.transpose_b))


# ---- images ---------------------------------------------------------------------------------------------------------------------------


@_rule("nn.conv1d", "nn.conv2d", "nn.conv3d")
def _convolution(call: Call, g: Tensor) -> list[Part]:
    x, weight = call.inputs
    window = ConvGeometry.of(call.op, x.rank - 2)
    return [lambda: windows.of_convolved(x, g, weight, window), lambda: windows.of_weight(x, g, weight.shape, window)]


@_rule("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def _transposed_convolution(call: Call, g: Tensor) -> list[Part]:
    x, weight = call.inputs
    window = windows.transposed(ConvGeometry.of(call.op, x.rank - 2))
    return [lambda: windows.of_transposed(x, g, weight, window), lambda: windows.of_weight(g, x, weight.shape, window)]


def _of_pixels(call: Call, g: Tensor) -> Tensor:
    x = call.inputs[0]
    return broadcast_to(divide(g, cast(reshape(shape_tensor([x.shape[2] * x.shape[3]]), ()), g.dtype)), x.shape)


for _n in (1, 2, 3):
    _parts(f"nn.avg_pool{_n}d", lambda call, g: windows.of_averaged(call.inputs[0], g, call.op))
    _parts(f"nn.max_pool{_n}d", lambda call, g: windows.of_largest(call.inputs[0], call.result, g, call.op))
_parts("nn.global_avg_pool2d", _of_pixels)


# ---- attention ------------------------------------------------------------------------------------------------------------------------


@_rule("nn.attention")
def _attention(call: Call, g: Tensor) -> list[Part]:
    """By the log-sum-exp of the scores. nn.attention_lse computes the attention again: EliminateCommonSubexpr merges the two."""
    op = call.op

    def refused(what: str) -> NoReturn:
        raise ModelError(f"expected an attention that has a derivative, found {what}")

    @cache
    def found() -> list[Tensor]:
        if op.softcap:
            refused("nn.attention with softcap")
        if op.mask_value != -inf and any(t.dtype == "bool" for t in call.inputs[3:]):
            refused(f"nn.attention with mask_value {op.mask_value}")
        with ir.InsertionPoint(op.operation):
            result, lse = emit("nn.attention_lse", *call.inputs, **op.attrs())
        layouts = [op.query_layout, op.key_layout, op.value_layout, op.out_layout]
        query, key, value, grad = (_in_order(t, layout) for t, layout in zip((*call.inputs[:3], g), layouts, strict=True))
        operands = (query, key, value, grad, _in_order(result, op.out_layout), lse, *call.inputs[3:])
        made = attention_derivatives(*operands, scale=op.scale, is_causal=op.is_causal, causal_offset=op.causal_offset)
        return [transpose(t, [AXES.index(axis) for axis in layout]) for t, layout in zip(made, layouts, strict=False)]

    of_mask = [lambda: refused("one of the mask of nn.attention")] * len(call.inputs[3:])
    return [lambda: found()[0], lambda: found()[1], lambda: found()[2], *of_mask]


def _in_order(x: Tensor, layout: str) -> Tensor:
    return transpose(x, [layout.index(axis) for axis in AXES])
