"""SimplifyExpr: identities of arithmetic and of data movement.

Arithmetic is left alone where finite results would differ by more than the sign of a zero: a division becomes a multiplication only where
the reciprocal is exact.
"""

import functools
import itertools
import math
from collections.abc import Callable

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.names import build
from relayc.dialects.relay.narrow import converted
from relayc.dialects.relay.shapes import broadcast_shapes, normalize_axis
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.transform import permutation
from relayc.dialects.relay.types import TensorType, is_narrow, numpy_dtype
from relayc.pipelines.graph.positions import columns_of, computed, positions_of, read_at
from relayc.pipelines.graph.reshapes import regroup, reshape_to
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules
from relayc.symbolic import Size, maximum, proves

RULES = Rules("SimplifyExpr")


_type = TensorType.of


def _if_same_type(value: ir.Value, op: Op) -> ir.Value | None:
    """`value` if it can replace the result of `op`."""
    return value if value.type == op.operation.results[0].type else None


# ---- arithmetic -----------------------------------------------------------------------------------------------------------------------


@RULES.where(lambda operator: operator.right_neutral is not None)
def neutral_operand(op: Op, rw: Rewriter) -> Found:
    """x + 0, x - 0, x * 1, x / 1, x ** 1, x << 0 -> x."""
    lhs, rhs = op.operation.operands
    if _repeated(rhs, rw) == op.right_neutral:
        return _if_same_type(lhs, op)
    if op.commutative and _repeated(lhs, rw) == op.right_neutral:
        return _if_same_type(rhs, op)
    return None


_FILLED = {"zeros": 0, "ones": 1}


def _repeated(value: ir.Value, rw: Rewriter) -> float | int | bool | None:
    """The number that all elements of a value are equal to, if known."""
    for name, number in _FILLED.items():
        if rw.producer(value, name) is not None:
            return number
    full = rw.producer(value, "full")
    return rw.scalar(value if full is None else full.fill_value)


@RULES.on("power")
def small_power(op: Op, rw: Rewriter) -> Found:
    """x ** 2, 3, 0.5, -0.5, -1 in terms of products, roots and quotients."""
    exponent = rw.scalar(op.rhs)
    if exponent is None or not _type(op.lhs).is_float or _type(op.lhs) != _type(op.result):
        return None
    x = op.lhs
    if exponent in (2, 3):
        square = build("multiply", x, x)
        return square if exponent == 2 else build("multiply", square, x)
    if exponent in (0.5, -0.5):
        return build("sqrt" if exponent == 0.5 else "rsqrt", x)
    if exponent == -1:
        return build("divide", rw.mod.constant(np.array(1, numpy_dtype(_type(x).dtype))), x)
    return None


@RULES.on("divide")
def exact_reciprocal(op: Op, rw: Rewriter) -> Found:
    """x / c -> x * (1 / c) where c is a power of two, so that both round alike."""
    divisor = rw.scalar(op.rhs)
    type_ = _type(op.rhs)
    if divisor is None or not type_.is_float or not math.isfinite(divisor) or divisor == 0:
        return None
    mantissa, exponent = math.frexp(divisor)
    if abs(mantissa) != 0.5 or abs(exponent) > 12:  # far inside the range of every float type
        return None
    return build("multiply", op.lhs, rw.mod.constant(np.full(type_.static_shape, 1 / divisor, numpy_dtype(type_.dtype))))


@RULES.where(lambda operator: operator.involutory)
def involution(op: Op, rw: Rewriter) -> Found:
    """-(-x), not (not x) -> x."""
    inner = op.operation.operands[0].owner
    return inner.operation.operands[0] if _is_like(inner, op) else None


@RULES.where(lambda operator: operator.idempotent)
def idempotent(op: Op, rw: Rewriter) -> Found:
    """f(f(x)) -> f(x)."""
    inner = op.operation.operands[0]
    return inner if _is_like(inner.owner, op) else None


def _is_like(owner: ir.OpView | ir.Block, op: Op) -> bool:
    """Whether the producer of a value is the operator `op`, with the same attributes."""
    return isinstance(owner, type(op)) and owner.attrs() == op.attrs()


@RULES.on("cast")
def cast_chain(op: Op, rw: Rewriter) -> Found:
    """A cast to the type it has -> its operand; a cast after one that keeps every value -> one cast."""
    if _type(op.data).dtype == op.dtype:
        return op.data
    inner = rw.producer(op.data, "cast")
    if inner is None or not _keeps_values(_type(inner.data).dtype, inner.dtype):
        return None
    return build("cast", inner.data, **op.attrs())


def limits(clip: Op) -> tuple[float, float]:
    """The limits of a clip, infinite on a side that is open."""
    return -math.inf if clip.a_min is None else clip.a_min, math.inf if clip.a_max is None else clip.a_max


@RULES.on("clip")
def clip_of_everything(op: Op, rw: Rewriter) -> Found:
    """clip of integers to all that their type has -> its operand."""
    dtype = numpy_dtype(_type(op.data).dtype)
    if dtype.kind not in "iu":
        return None
    low, high = limits(op)
    return op.data if low <= np.iinfo(dtype).min and high >= np.iinfo(dtype).max else None


@functools.cache
def _keeps_values(source: str, target: str) -> bool:
    """Whether every value of one dtype is a value of the other (bool being 0 and 1)."""
    if is_narrow(source):
        values = np.arange(256, dtype=np.uint8).view(numpy_dtype(source))
        with np.errstate(all="ignore"):
            return np.array_equal(converted(values, "float32"), converted(converted(values, target), "float32"), equal_nan=True)
    if is_narrow(target):
        return source == target
    if "bfloat16" in (source, target):
        return source == target or ((source, target[:5]) == ("bfloat16", "float") and target != "float16")
    return bool(np.can_cast(numpy_dtype(source), numpy_dtype(target), "safe"))


@RULES.on("where")
def known_condition(op: Op, rw: Rewriter) -> Found:
    """where with a condition that is the same everywhere, or with equal branches -> the branch."""
    condition = rw.scalar(op.condition)
    if not _type(op.result).is_known:
        return None
    if op.x == op.y:
        return _if_same_type(op.x, op)
    if condition is None:
        array = rw.array(op.condition)
        if array is None or not array.size or array.min() != array.max():
            return None
        condition = bool(array.flat[0])
    return _if_same_type(op.x if condition else op.y, op)


# ---- broadcasting ---------------------------------------------------------------------------------------------------------------------


@RULES.where(lambda operator: operator.broadcasts)
def implicit_broadcast(op: Op, rw: Rewriter) -> Found:
    """An operand that was broadcast before an operator that broadcasts itself -> what it was broadcast from."""
    operands = list(op.operation.operands)
    sources = [_unbroadcast(v, rw) for v in operands]
    changed = False
    for i, source in enumerate(sources):
        if source is None:
            continue
        tried = [*operands[:i], source, *operands[i + 1 :]]
        if _broadcast_shape(tried) == _type(op.result).shape:
            operands, changed = tried, True
    return build(op.relay_name, *operands) if changed else None


def _unbroadcast(value: ir.Value, rw: Rewriter) -> ir.Value | None:
    for name, field in (("broadcast_to", "data"), ("full", "fill_value")):
        op = rw.producer(value, name)
        if op is not None and _type(getattr(op, field)).dtype == _type(value).dtype:
            return getattr(op, field)
    number = next((n for name, n in _FILLED.items() if rw.producer(value, name) is not None), None)
    return None if number is None else rw.mod.constant(np.array(number, numpy_dtype(_type(value).dtype)))


def _broadcast_shape(values: list[ir.Value]) -> tuple[Size | None, ...] | None:
    types = [_type(v) for v in values]
    return broadcast_shapes(*(t.sizes for t in types)) if all(t.is_known for t in types) else None


@RULES.on("broadcast_to", "tile")
def no_broadcast(op: Op, rw: Rewriter) -> Found:
    """A broadcast or repetition that only adds dimensions of 1 -> reshape."""
    data, result = _type(op.data), _type(op.result)
    if not (data.is_known and result.is_known) or data.num_elements != result.num_elements:
        return None
    return reshape_to(op.data, result.sizes)


# ---- movement -------------------------------------------------------------------------------------------------------------------------


@RULES.on("reshape")
def reshape_chain(op: Op, rw: Rewriter) -> Found:
    """A reshape of a reshape -> one; to the shape that it has -> its operand."""
    result = _type(op.result)
    if _type(op.data) == result and result.is_known:
        return op.data
    inner = rw.producer(op.data, "reshape")
    if inner is None or not result.is_known or not _type(inner.data).is_known:
        return None
    return reshape_to(inner.data, result.sizes)


@RULES.on("transpose")
def transpose_chain(op: Op, rw: Rewriter) -> Found:
    """A transpose of a transpose -> one; of nothing -> its operand; one that only moves dimensions of 1 -> reshape."""
    type_ = _type(op.data)
    axes = permutation(op.axes, type_.rank)
    if axes == tuple(range(type_.rank)):
        return op.data
    moved = [a for a in axes if type_.shape[a] != 1]
    if moved == sorted(moved) and type_.is_known:
        return reshape_to(op.data, _type(op.result).sizes)
    inner = rw.producer(op.data, "transpose")
    if inner is None:
        return None
    before = permutation(inner.axes, type_.rank)
    return build("transpose", inner.data, axes=[before[a] for a in axes])


@RULES.on("transpose")
def transpose_of_pixels(op: Op, rw: Rewriter) -> Found:
    """An image seen as [N, C, pixels], then transposed -> transposed to NHWC, then seen as [N, pixels, C]."""
    shape = _type(op.data).shape
    inner = rw.producer(op.data, "reshape")
    if inner is None or len(shape) != 3 or permutation(op.axes, 3) != (0, 2, 1):
        return None
    image = _type(inner.data)
    if not (image.is_known and _type(op.data).is_known) or image.rank != 4 or image.shape[:2] != shape[:2]:
        return None
    return reshape_to(build("transpose", inner.data, axes=(0, 2, 3, 1)), _type(op.result).sizes)


@RULES.on("reshape")
def pixels_of_transpose(op: Op, rw: Rewriter) -> Found:
    """[N, pixels, C], transposed, then seen as an image -> seen as NHWC, then transposed to NCHW."""
    image = _type(op.result)
    inner = rw.producer(op.data, "transpose")
    if inner is None or not image.is_known or image.rank != 4 or _type(op.data).rank != 3 or permutation(inner.axes, 3) != (0, 2, 1):
        return None
    n, c, height, width = image.sizes
    if _type(op.data).shape[:2] != (n, c):
        return None
    return build("transpose", reshape_to(inner.data, (n, height, width, c)), axes=(0, 3, 1, 2))


MOST_PARTS = 64
"""Maximum parts of a concatenation merged from others: its kernel has a loop nest for each."""


@RULES.on("concatenate")
def nested_concatenate(op: Op, rw: Rewriter) -> Found:
    """Concatenations that only this one uses, along the same axis -> part of it; of many parts, concatenations of MOST_PARTS at most."""
    axis = _axis_of(op)
    users = list(itertools.islice(rw.users(op.result), 2))
    if len(users) == 1 and isinstance(users[0], type(op)) and users[0].operation.block == op.operation.block and _axis_of(users[0]) == axis:
        return None  # part of that one
    parts, inner, pending = list[ir.Value](), 0, list(reversed(op.data))
    while pending:
        value = pending.pop()
        producer = rw.producer(value, "concatenate")
        if producer is not None and rw.used_once(value) and _axis_of(producer) == axis:
            inner += 1
            pending += reversed(producer.data)
        else:
            parts.append(value)
    levels = [parts]
    while len(levels[-1]) > MOST_PARTS:
        levels.append(levels[-1][::MOST_PARTS])
    if inner <= sum(map(len, levels[1:])):
        return None
    while len(parts) > MOST_PARTS:
        groups = [parts[i : i + MOST_PARTS] for i in range(0, len(parts), MOST_PARTS)]
        parts = [build("concatenate", *group, axis=axis) if len(group) > 1 else group[0] for group in groups]
    return build("concatenate", *parts, axis=axis)


def _axis_of(concatenate: Op) -> int:
    return normalize_axis(concatenate.axis, _type(concatenate.result).rank)


@RULES.on("take")
def take_slice(op: Op, rw: Rewriter) -> Found:
    """take at constant consecutive positions -> strided_slice."""
    data, indices = _type(op.data), rw.array(op.indices)
    if indices is None or op.axis is None or op.batch_dims or not data.is_known or not 0 < indices.size <= 1 << 16:
        return None
    axis = normalize_axis(op.axis, data.rank)
    size = data.sizes[axis]
    flat = indices.reshape(-1).astype(np.int64)
    if op.mode == "clip" and flat[0] < 0:
        return None
    if isinstance(size, int):
        flat = np.where(flat < 0, flat + size, flat)
    first = size if flat[0] < 0 else 0
    begin, end = first + int(flat[0]), first + int(flat[-1]) + 1
    if (np.diff(flat) != 1).any() or not proves(lambda: begin >= 0 and end <= size):
        return None
    part = build("strided_slice", op.data, begin=(begin,), end=(end,), strides=(1,), axes=(axis,))
    return reshape_to(part, _type(op.result).sizes)


@RULES.on("strided_slice")
def slice_of_concatenate(op: Op, rw: Rewriter) -> Found:
    """A slice that lies in one part of a concatenation -> a slice of that part."""
    whole = rw.producer(op.data, "concatenate")
    if whole is None or op.axes is None or len(op.axes) != 1 or op.slice_mode != "end" or not _type(op.data).is_known:
        return None
    rank = _type(op.data).rank
    axis = normalize_axis(op.axes[0], rank)
    if normalize_axis(whole.axis, rank) != axis or op.strides[:1] not in ((1,), ()):
        return None
    total = _type(op.data).sizes[axis]
    begin, end = _from_front(op.begin[0], total), _from_front(op.end[0], total)
    offset: Size = 0
    for part in whole.data:
        size = _type(part).sizes[axis]
        if begin != end and _ascend(offset, begin, end, offset + size):
            found = build("strided_slice", part, begin=(begin - offset,), end=(end - offset,), strides=(1,), axes=(axis,))
            return found if _type(found) == _type(op.result) else None
        offset = offset + size
    return None


def _ascend(*sizes: Size) -> bool:
    """Whether no size is smaller than the one before it."""
    return proves(lambda: all(a <= b for a, b in itertools.pairwise(sizes)))


def _from_front(position: Size, size: Size) -> Size:
    """A bound of a slice of an axis of `size`, counted from the front, and that size where it is proved to be beyond."""
    if isinstance(position, int) and position < 0:
        position = maximum(position + size, 0)
    return size if proves(lambda: position >= size) else position


@RULES.on("reshape")
def reshape_of_slice(op: Op, rw: Rewriter) -> Found:
    """reshape(slice(x)) that splits the sliced axis at multiples of its inner part -> slice(reshape(x)).

    The heads of a joint query, key and value: the reshape costs nothing there, and the slice fuses with the transpose behind it.
    """
    part = rw.producer(op.data, "strided_slice")
    if part is None or not rw.used_once(op.data) or part.axes is None or len(part.axes) != 1 or part.slice_mode != "end":
        return None
    whole, sliced, result = _type(part.data), _type(op.data), _type(op.result)
    if part.strides[:1] not in ((1,), ()) or not (whole.is_known and result.is_known):
        return None
    axis = normalize_axis(part.axes[0], whole.rank)
    total, first, last = whole.sizes[axis], part.begin[0], part.end[0]
    if not isinstance(total, int) or not isinstance(first, int) or not isinstance(last, int):
        return None
    begin, end, _ = slice(first, last).indices(total)
    position = source = 0
    for before, after in regroup(sliced.sizes, result.sizes) or ():
        if before == (end - begin,) and source == axis and after:
            inner = math.prod(after[1:])
            if not isinstance(inner, int) or total % inner or begin % inner:
                return None
            shape = (*result.sizes[:position], total // inner, *result.sizes[position + 1 :])
            view = reshape_to(part.data, shape)
            return build("strided_slice", view, begin=(begin // inner,), end=(end // inner,), strides=(1,), axes=(position,))
        position, source = position + len(after), source + len(before)
    return None


# ---- positions ----------------------------------------------------------------------------------------------------------------------


@RULES.on("take")
def take_at_positions(op: Op, rw: Rewriter) -> Found:
    """take at computed positions -> strided_slice."""
    data, result = _type(op.data), _type(op.result)
    if op.axis is None or op.batch_dims or rw.array(op.indices) is not None or not (data.is_known and result.is_known):
        return None
    found = positions_of(op.indices, rw)
    axis = normalize_axis(op.axis, data.rank)
    return None if found is None else read_at(op.data, {axis: found}, axis, result.sizes)


@RULES.on("gather_nd")
def gather_at_positions(op: Op, rw: Rewriter) -> Found:
    """gather_nd at computed positions -> strided_slice and transpose."""
    result = _type(op.result)
    if op.batch_dims or rw.array(op.indices) is not None or not result.is_known:
        return None
    found = columns_of(op.indices, 0, rw)
    return read_at(op.data, dict(enumerate(found)), 0, result.sizes) if found else None


@RULES.on("add", "subtract")
def shifted_positions(op: Op, rw: Rewriter) -> Found:
    """A sum of computed positions -> arange."""
    found = positions_of(op.result, rw)
    return None if found is None else computed(found, _type(op.result).dtype)


_ORDERS: dict[str, Callable[[Size, Size], tuple[bool, bool]]] = {
    "less": lambda least, most: (proves(lambda: most < 0), proves(lambda: least >= 0)),
    "less_equal": lambda least, most: (proves(lambda: most <= 0), proves(lambda: least > 0)),
    "greater": lambda least, most: (proves(lambda: least > 0), proves(lambda: most <= 0)),
    "greater_equal": lambda least, most: (proves(lambda: least >= 0), proves(lambda: most < 0)),
}
"""Whether a comparison is true, and false, of all differences between two bounds."""


@RULES.on(*_ORDERS)
def known_order(op: Op, rw: Rewriter) -> Found:
    """A comparison of positions that is the same everywhere -> its value."""
    result, a, b = _type(op.result), positions_of(op.lhs, rw), positions_of(op.rhs, rw)
    if a is None or b is None or not result.is_known:
        return None
    difference = a.broadcast(result.sizes).minus(b.broadcast(result.sizes))
    is_true, is_false = _ORDERS[op._op_name](*difference.ends)
    if not is_true and not is_false:
        return None
    return build("full", rw.mod.constant(np.array(is_true)), shape=result.sizes)


@RULES.on("logical_and", "logical_or")
def known_conjunct(op: Op, rw: Rewriter) -> Found:
    """x and true, x or false -> x."""
    neutral = op._op_name == "logical_and"
    for known, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if _is_all(known, neutral, rw) and _type(op.result).is_known:
            return other if _type(other) == _type(op.result) else build("broadcast_to", other, shape=_type(op.result).sizes)
    return None


def _is_all(value: ir.Value, truth: bool, rw: Rewriter) -> bool:
    """Whether all elements are one and the same, seen under another shape or not."""
    seen = rw.producer(value, "reshape")
    source = _unbroadcast(seen.data if seen is not None else value, rw)
    scalar = rw.scalar(value if source is None else source)
    return scalar is not None and bool(scalar) == truth


# ---- products -------------------------------------------------------------------------------------------------------------------------


def _swapped(value: ir.Value, rw: Rewriter) -> ir.Value | None:
    """A value whose last two dimensions swapped give `value`: what a transpose of them, possibly seen through a reshape, was made from.

    Of reshape(transpose(x)) that merges leading dimensions, the transpose is redone so that the last dimension of x stays last: it then
    moves whole rows.
    """
    transpose = rw.producer(value, "transpose")
    if transpose is not None:
        rank = _type(value).rank
        axes = permutation(transpose.axes, rank)
        if axes[-2] != rank - 1:
            return None
        return build("transpose", transpose.data, axes=(*axes[:-2], axes[-1], axes[-2]))
    reshape = rw.producer(value, "reshape")
    inner = rw.producer(reshape.data, "transpose") if reshape is not None else None
    if inner is None or _type(value).shape[-2:] != _type(inner.result).shape[-2:] or _type(inner.result).rank < 2:
        return None
    if not _type(value).is_known:
        return None
    swapped = _swapped(inner.result, rw)
    shape = _type(value).sizes
    return None if swapped is None else reshape_to(swapped, (*shape[:-2], shape[-1], shape[-2]))


@RULES.on("nn_batch_matmul", "nn_matmul")
def transposed_operand(op: Op, rw: Rewriter) -> Found:
    """A product of a transposed operand -> the product with its flag turned."""
    operands, attrs = list(op.operation.operands), op.attrs()
    if len({_type(v).rank for v in operands}) != 1:
        return None  # a matmul of more than one matrix
    for i, flag in enumerate(("transpose_a", "transpose_b")):
        source = _swapped(operands[i], rw)
        if source is not None:
            operands[i], attrs[flag] = source, not attrs[flag]
    return None if operands == list(op.operation.operands) else build(op.relay_name, *operands, **attrs)


@RULES.on("nn_dense")
def dense_of_transposed_weight(op: Op, rw: Rewriter) -> Found:
    """dense with a weight that is transposed at run time -> matmul."""
    transpose = rw.producer(op.weight, "transpose")
    if transpose is None or isinstance(transpose.data.owner, Constant):
        return None
    source = _swapped(op.weight, rw)
    return None if source is None else build("nn.matmul", op.data, source, out_dtype=op.out_dtype)


@RULES.on("nn_matmul")
def constant_weight(op: Op, rw: Rewriter) -> Found:
    """matmul with a constant tensor_b [in, units] -> dense with its transpose, which FoldConstant takes as a view."""
    if op.transpose_a or op.transpose_b or rw.array(op.tensor_b) is None:
        return None
    return build("nn.dense", op.tensor_a, build("transpose", op.tensor_b, axes=(1, 0)), out_dtype=op.out_dtype)


simplify_expr = RULES.as_pass(1, "Identities of arithmetic and data movement; transposes into the flags of products.")
