"""RecognizeAttention: softmax(scale * query x key^T + mask) x value, as exporters write it, becomes nn.attention.

First the two products and what stands between them become one operator; then what stands before and behind it goes into its attributes:
factors of query and key into the scale, transposes into the layouts, repeated heads of key and value into its grouping of heads.
The sequence is taken where every step between the products is used by the next one only. The operator sums up in another order, and rounds
less in 16-bit floats; otherwise it is the same function, also of rows that see no key.

Run after RecognizePatterns, which finds the softmax.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from math import prod

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.attention import AXES
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.names import build
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.transform import permutation
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.graph.causal_masks import computed_offset, conjuncts
from relayc.pipelines.graph.reshapes import Shape, before_reshape, regroup, reshape_to
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules
from relayc.symbolic import Size, proves, symbol

RULES = Rules("RecognizeAttention")

NEVER = -1e9
"""A finite mask up to which no weight is left: exp(NEVER + score - largest score) is 0 for scores of any size that networks have."""


def _shape(value: ir.Value) -> Shape:
    """The shape of a value; for a dimension of which nothing is known a symbol that equals no other size."""
    type_ = TensorType.of(value)
    return type_.sizes if type_.is_known else tuple(symbol(f"unknown{next(_UNKNOWN)}") if d is None else d for d in type_.shape)


_UNKNOWN = count()


def _same_type(a: ir.Value, b: ir.Value) -> bool:
    """Whether two values have one type, of which every dimension is known."""
    return a.type == b.type and TensorType.of(a).is_known


def _factor(value: ir.Value, rw: Rewriter) -> tuple[ir.Value, float] | None:
    """(x, c) of a product or quotient x * c with a constant number c, where x has the type of the result."""
    product = rw.producer(value, "multiply")
    pairs = [(product.lhs, product.rhs), (product.rhs, product.lhs)] if product is not None else []
    for x, c in pairs:
        factor = rw.scalar(c)
        if factor is not None and _same_type(x, value):
            return x, float(factor)
    quotient = rw.producer(value, "divide")
    if quotient is None or not _same_type(quotient.lhs, value):
        return None
    divisor = rw.scalar(quotient.rhs)
    return (quotient.lhs, 1 / float(divisor)) if divisor else None


def _behind_reshapes(value: ir.Value, rw: Rewriter) -> ir.Value:
    """The first value in the chain of reshapes that produces a value."""
    while (reshape := rw.producer(value, "reshape")) is not None:
        value = reshape.data
    return value


def _as(value: ir.Value, shape: Shape, rw: Rewriter) -> ir.Value:
    """A value under another shape."""
    return reshape_to(_behind_reshapes(value, rw), shape)


# ---- the scores ---------------------------------------------------------------------------------------------------------------------


@dataclass
class _Step:
    """A step on the scores: `kind` is scale (factor), tanh, add (mask) or where (mask, kept where it equals `keep`, otherwise fill).

    `shape` is the shape of the scores at this step.
    """

    kind: str
    shape: Shape
    mask: ir.Value | None = None
    factor: float = 1.0
    keep: bool | None = None
    fill: float = 0.0


MAX_STEPS = 12
"""Operators between the product and the softmax, at most."""


def _steps(value: ir.Value, rw: Rewriter, most: int = MAX_STEPS) -> tuple[Op, list[_Step]] | None:
    """The product that scores were made from, and the steps from there on, in order; no more than `most` operators."""
    if most < 0 or not rw.used_once(value):
        return None
    product = rw.producer(value, "nn_batch_matmul") or rw.producer(value, "nn_matmul")
    if product is not None:
        return product, []
    for before, step in _last_steps(value, rw):
        found = _steps(before, rw, most - 1)
        if found is not None:
            return found[0], found[1] + ([step] if step is not None else [])
    return None


def _last_steps(value: ir.Value, rw: Rewriter) -> Iterator[tuple[ir.Value, _Step | None]]:
    """Candidates for the last step of scores: (the scores before, the step); None for a step without effect."""
    shape = _shape(value)
    reshape, cast = rw.producer(value, "reshape"), rw.producer(value, "cast")
    if reshape is not None and _shape(reshape.data)[-2:] == shape[-2:]:
        yield reshape.data, None
    if cast is not None and cast.dtype == "float32" and TensorType.of(cast.data).is_float:
        yield cast.data, None
    scaled = _factor(value, rw)
    if scaled is not None:
        yield scaled[0], _Step("scale", shape, factor=scaled[1])
    tanh = rw.producer(value, "tanh")
    if tanh is not None:
        yield tanh.data, _Step("tanh", shape)
    where = rw.producer(value, "where")
    for condition, scores, other, keep in (
        ((where.condition, where.x, where.y, True), (where.condition, where.y, where.x, False)) if where is not None else ()
    ):
        fill = rw.scalar(other)
        if fill is not None and _same_type(scores, value):
            yield scores, _Step("where", shape, condition, keep=keep, fill=float(fill))
    plus = rw.producer(value, "add")
    for scores, mask in ((plus.lhs, plus.rhs), (plus.rhs, plus.lhs)) if plus is not None else ():
        if _same_type(scores, value):
            yield scores, _Step("add", shape, mask)


@dataclass
class _Scores:
    """The attributes of nn.attention that a sequence of steps amounts to."""

    scale: float = 1.0
    softcap: float = 0.0
    added: list[tuple[ir.Value, Shape]] = field(default_factory=list)
    chosen: tuple[ir.Value, Shape, bool | None] | None = None
    fill: float = float("-inf")
    causal: int | None = None
    finite: bool = False

    def take(self, step: _Step, shape: Shape, causal: bool, rw: Rewriter) -> bool:
        """Adds a step to scores of `shape` (batch, heads, queries, keys); False if nn.attention has no place for it."""
        if step.kind == "scale":
            return self._take_scale(step.factor)
        if step.kind == "tanh":
            taken = not (self.softcap or self.added or self.chosen or self.causal is not None)
            self.softcap = 1.0
            return taken
        assert step.mask is not None
        array = rw.array(step.mask)
        if array is not None:
            kept = array == step.keep if step.kind == "where" else array == 0
            if kept.all():
                return True
            offset = _causal_offset(kept, shape) if causal else None
            lost = np.array([step.fill]) if step.kind == "where" else array[~kept]
            if offset is not None and self.causal is None and (lost.astype(np.float64) <= NEVER).all():
                self.causal, self.finite = offset, bool(np.isfinite(lost).any())
                return self.chosen is None
        mask_shape = before_reshape(_shape(step.mask), shape, step.shape)
        if mask_shape is None or self.chosen is not None:
            return False
        if step.kind == "add":
            self.added.append((step.mask, mask_shape))
        elif self.added or self.causal is not None:
            return False
        else:
            self.chosen, self.fill = (step.mask, mask_shape, step.keep), step.fill
        return True

    def _take_scale(self, factor: float) -> bool:
        if self.added or self.chosen or self.causal is not None:
            return False
        if self.softcap:  # c * tanh(x): the scale before it is the divisor of x
            self.softcap *= factor
        else:
            self.scale *= factor
        return True

    @property
    def is_sound(self) -> bool:
        """Whether a causal mask of finite numbers may be taken for one of -inf: every query sees a key without another mask."""
        return not self.finite or not (self.added or self.chosen or self.causal is None or self.causal < 0)

    def mask(self, rw: Rewriter) -> list[ir.Value]:
        """Builds the mask as an operand, if there is one."""
        if self.chosen is not None:
            value, shape, keep = self.chosen
            mask = _as(value, shape, rw)
            return [mask if keep else build("logical_not", mask)]
        masks = [_as(*added, rw) for added in self.added]
        while len(masks) > 1:
            masks[:2] = [build("add", *masks[:2])]
        return masks


def _causal_offset(kept: np.ndarray, shape: Shape) -> int | None:
    """The c of a mask that keeps key j for query i where j <= i + c; None for any other mask."""
    if kept.shape[-2:] != shape[-2:] or kept.size != prod(kept.shape[-2:]):
        return None
    rows: np.ndarray = kept.reshape(kept.shape[-2:])
    offset = int(rows[0].sum()) - 1
    return offset if np.array_equal(rows, np.tri(rows.shape[0], rows.shape[1], offset, bool)) else None


def _scores(steps: list[_Step], shape: Shape, rw: Rewriter) -> _Scores | None:
    """The steps as attributes; a causal mask becomes is_causal if this is valid."""
    for causal in (True, False):
        scores = _Scores()
        if all(scores.take(step, shape, causal, rw) for step in steps) and scores.is_sound:
            return scores
    return None


# ---- the products -------------------------------------------------------------------------------------------------------------------


def _softmax(value: ir.Value, rw: Rewriter) -> tuple[Op, bool] | None:
    """(the softmax, whether NaN became 0 after it) that gives weights, possibly under another shape or cast."""
    guarded = False
    while True:
        softmax = rw.producer(value, "nn_softmax")
        if softmax is not None:
            last = normalize_axis(softmax.axis, TensorType.of(value).rank) == TensorType.of(value).rank - 1
            return (softmax, guarded) if last and (guarded or rw.used_once(value)) else None
        if not rw.used_once(value):
            return None
        where = rw.producer(value, "where")
        view = rw.producer(value, "reshape") or rw.producer(value, "cast")
        if view is not None and _shape(view.data)[-2:] == _shape(value)[-2:] and TensorType.of(view.data).is_float:
            value = view.data
        elif where is not None and _is_guard(where, rw):
            value, guarded = where.y, True
        else:
            return None


def _is_guard(where: Op, rw: Rewriter) -> bool:
    """where(isnan(x), 0, x), the only use of x."""
    isnan = rw.producer(where.condition, "isnan")
    same = isnan is not None and isnan.data == where.y and _same_type(where.y, where.result) and rw.scalar(where.x) == 0
    return same and rw.used_once(where.condition) and len(list(rw.users(where.y))) == 2


def _heads(shape: Shape, steps: list[_Step], operands: list[ir.Value], rw: Rewriter) -> Shape:
    """(batch, heads) of scores: the leading dimensions if there are two, at any step, otherwise the leading dimensions of an operand that
    was reshaped to their product."""
    lead = prod(shape[:-2])
    for seen in (shape, *(step.shape for step in steps)):
        if len(seen) == 4 and prod(seen[:2]) == lead:
            return seen[:2]
    for value in operands:
        scaled = _factor(value, rw)
        for source in (value, scaled[0]) if scaled is not None else (value,):
            seen = _shape(_behind_reshapes(source, rw))
            if len(seen) == 4 and prod(seen[:2]) == lead and seen[2:] == _shape(value)[-2:]:
                return seen[:2]
    return (lead, 1)


@RULES.on("nn_batch_matmul", "nn_matmul")
def products(op: Op, rw: Rewriter) -> Found:
    """softmax(scores) x value -> attention."""
    weights = _softmax(op.tensor_a, rw) if not op.transpose_a else None
    found = _steps(weights[0].data, rw) if weights is not None else None
    if weights is None or found is None:
        return None
    (softmax, guarded), (product, steps) = weights, found
    values = (op.result, product.result, op.tensor_b, product.tensor_a, product.tensor_b)
    if product.transpose_a or not all(TensorType.of(v).is_known for v in values):
        return None
    type_ = TensorType.of(product.tensor_a)
    if any(TensorType.of(v).dtype != type_.dtype for v in (op.tensor_b, op.result, product.tensor_b)) or not type_.is_float:
        return None
    operands = [product.tensor_a, product.tensor_b, op.tensor_b]
    shape = _shape(softmax.data)
    heads = _heads(shape, steps, operands, rw)
    if 0 in shape or any(prod(_shape(v)[:-2]) != prod(heads) for v in operands):
        return None
    scores = _scores(steps, (*heads, *shape[-2:]), rw)
    if scores is None:
        return None
    transposed = (False, not product.transpose_b, op.transpose_b)
    layouts = ["BHDS" if t else AXES for t in transposed]
    found = build(
        "nn.attention",
        *(_as(v, (*heads, *_shape(v)[-2:]), rw) for v in operands),
        *scores.mask(rw),
        scale=scores.scale * scores.softcap if scores.softcap else scores.scale,
        softcap=scores.softcap,
        mask_value=scores.fill,
        is_causal=scores.causal is not None,
        causal_offset=scores.causal or 0,
        nan_to_zero=guarded,
        query_layout=layouts[0],
        key_layout=layouts[1],
        value_layout=layouts[2],
    )
    return reshape_to(found, _shape(op.result))


# ---- what stands around -------------------------------------------------------------------------------------------------------------

_OPERANDS = ("query", "key", "value")


def _is_known(op: Op) -> bool:
    """Whether every dimension of the operands of an attention is known."""
    return all(TensorType.of(v).is_known for v in op.operation.operands)


def _with(op: Op, operands: dict[str, ir.Value], **attributes: object) -> ir.Value:
    """An attention with other operands and attributes."""
    values = [operands.get(name, getattr(op, name)) for name in _OPERANDS]
    return build("nn.attention", *values, *op.mask, **{**op.attrs(), **attributes})


@RULES.on("nn_attention")
def scaled_operand(op: Op, rw: Rewriter) -> Found:
    """A factor of query or key -> of the scale."""
    if not _is_known(op):
        return None
    for name in ("query", "key"):
        value = getattr(op, name)
        scaled = _factor(_behind_reshapes(value, rw), rw)
        if scaled is not None:
            return _with(op, {name: _as(scaled[0], _shape(value), rw)}, scale=op.scale * scaled[1])
    return None


@RULES.on("nn_attention")
def transposed_operand(op: Op, rw: Rewriter) -> Found:
    """A transposed operand, possibly seen under another shape -> another layout."""
    if not _is_known(op):
        return None
    for name in _OPERANDS:
        value, layout = getattr(op, name), getattr(op, f"{name}_layout")
        transpose = rw.producer(_behind_reshapes(value, rw), "transpose")
        moved = _before_transpose(transpose, _shape(value), layout, rw) if transpose is not None else None
        if moved is not None:
            return _with(op, {name: moved[0]}, **{f"{name}_layout": moved[1]})
    return None


def _before_transpose(transpose: Op, shape: Shape, layout: str, rw: Rewriter) -> tuple[ir.Value, str] | None:
    """What was transposed, under a shape of four dimensions, and its layout; the result, seen under `shape`, has `layout`."""
    parts = _parts(_shape(transpose.result), shape)
    if parts is None:
        return None
    axes = permutation(transpose.axes, len(parts))
    order = [parts[axes.index(i)] for i in range(len(axes))]  # of the data's axes
    dimensions = [d for part in order for d in part]
    return _as(transpose.data, tuple(shape[d] for d in dimensions), rw), "".join(layout[d] for d in dimensions)


def _parts(source: Shape, target: Shape) -> list[list[int]] | None:
    """For each dimension of `source`, the dimensions of `target` that a reshape splits it into; None if it merges dimensions."""
    if source == target:
        return [[d] for d in range(len(source))]
    parts, position = [], 0
    for before, after in regroup(source, target) or ():
        if len(before) > 1:
            return None
        dimensions = list(range(position, position + len(after)))
        position += len(after)
        if before:
            parts.append(dimensions)
        elif parts:
            parts[-1] += dimensions
        else:
            return None
    return parts if len(parts) == len(source) else None


@RULES.on("nn_attention")
def constant_mask(op: Op, rw: Rewriter) -> Found:
    """A constant mask that hides nothing -> none; a triangle -> is_causal."""
    array = rw.array(op.mask[0]) if op.mask else None
    if array is None or not array.size:
        return None
    kept = array if array.dtype == bool else array == 0
    lost = np.array([op.mask_value]) if array.dtype == bool else array[~kept]
    causal = {}
    if not kept.all():
        rows, keys = (_shape(getattr(op, name))[getattr(op, f"{name}_layout").index("S")] for name in ("query", "key"))
        offset = _causal_offset(kept, (rows, keys))
        unsound = offset is not None and offset < 0 and np.isfinite(lost).any()
        if offset is None or unsound or op.is_causal or not (lost <= NEVER).all():
            return None
        causal = {"is_causal": True, "causal_offset": offset}
    return build("nn.attention", op.query, op.key, op.value, **{**op.attrs(), **causal})


@RULES.on("nn_attention")
def computed_mask(op: Op, rw: Rewriter) -> Found:
    """A mask computed from the positions of queries and keys -> is_causal, and a remaining mask."""
    if not op.mask or op.is_causal or not _is_known(op):
        return None
    mask = op.mask[0]
    where = rw.producer(mask, "where")
    if TensorType.of(mask).dtype == "bool":
        condition, lost = mask, op.mask_value
    elif where is not None and rw.scalar(where.x) == 0 and (fill := rw.scalar(where.y)) is not None:
        condition, lost = where.condition, float(fill)
    else:
        return None
    rows, keys = (_shape(getattr(op, name))[getattr(op, f"{name}_layout").index("S")] for name in ("query", "key"))
    others, offset = [], None
    for part in conjuncts(condition, rw):
        found = computed_offset(part, rows, keys, rw) if offset is None else None
        if found is None:
            others.append(part)
        else:
            offset = found
    if offset is None:
        return None
    # Of finite numbers every query must see a key, and nothing but the position may hide one.
    if lost != -np.inf and (lost > NEVER or others or not _is_proved(offset)):
        return None
    while len(others) > 1:
        others[:2] = [build("logical_and", *others[:2])]
    causal = {"is_causal": True, "causal_offset": offset, "mask_value": -np.inf if others else op.mask_value}
    return build("nn.attention", op.query, op.key, op.value, *others, **{**op.attrs(), **causal})


def _is_proved(offset: Size) -> bool:
    """Whether every query attends to its own key, or an earlier one."""
    return proves(lambda: offset >= 0)


@RULES.on("nn_attention")
def repeated_heads(op: Op, rw: Rewriter) -> Found:
    """Heads of key and value that were repeated for those of the query -> as they were."""
    if not _is_known(op):
        return None
    found = {name: _unrepeated(getattr(op, name), getattr(op, f"{name}_layout").index("H"), rw) for name in ("key", "value")}
    key, value = found["key"], found["value"]
    if key is None or value is None:
        return None
    at = {name: getattr(op, f"{name}_layout").index("H") for name in found}
    return _with(op, found) if _shape(key)[at["key"]] == _shape(value)[at["value"]] else None


def _unrepeated(value: ir.Value, axis: int, rw: Rewriter) -> ir.Value | None:
    """A tensor of which each index along `axis` was repeated several times, one after the other, before the repetition."""
    shape, source = _shape(value), _behind_reshapes(value, rw)
    repeat, broadcast = rw.producer(source, "repeat"), rw.producer(source, "broadcast_to")
    if repeat is not None and repeat.axis is not None and _shape(source) == shape and normalize_axis(repeat.axis, len(shape)) == axis:
        return repeat.data
    if broadcast is None:
        return None
    before, after = _shape(broadcast.data), _shape(broadcast.result)
    if len(before) != len(after):
        return None
    repeated = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    if len(repeated) != 1:
        return None
    split = (*shape[:axis], shape[axis] // after[repeated[0]], after[repeated[0]], *shape[axis + 1 :])
    ones = tuple(n for n in after if n != 1)
    if ones != tuple(n for n in split if n != 1) or prod(after[: repeated[0]]) != prod(split[: axis + 1]):
        return None
    return _as(broadcast.data, (*split[: axis + 1], *split[axis + 2 :]), rw)


@RULES.on("transpose")
def transposed_result(op: Op, rw: Rewriter) -> Found:
    """A transposed attention -> another layout of its result."""
    attention = rw.producer(_behind_reshapes(op.data, rw), "nn_attention")
    if attention is None or not all(map(rw.used_once, _reshapes(op.data, rw))) or _shape(op.data) != _shape(attention.result):
        return None
    layout = attention.out_layout
    return _with(attention, {}, out_layout="".join(layout[a] for a in permutation(op.axes, len(layout))))


def _reshapes(value: ir.Value, rw: Rewriter) -> Iterator[ir.Value]:
    """A value and the values that it was reshaped from, step by step."""
    yield value
    while (reshape := rw.producer(value, "reshape")) is not None:
        value = reshape.data
        yield value


recognize_attention = RULES.as_pass(
    1, "Attention that exporters write out as products, masks and softmax becomes one operator, with the transposes around it."
)
