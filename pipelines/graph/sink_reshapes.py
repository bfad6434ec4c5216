"""SinkReshapes: reshapes move down past elementwise and row operators, so that these meet the operator before the reshape and fuse with it.

ONNX's MatMul of a [batch, length, in] tensor comes as reshape, product of matrices, reshape; the bias and activation after it then work on
the product's own shape, and the reshapes of successive products meet and cancel.
"""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op, Pattern
from relayc.dialects.relay.names import build
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.graph.reshapes import Shape, before_reshape, reshape_to
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules
from relayc.pipelines.graph.simplify_expr import reshape_chain

RULES = Rules("SinkReshapes")


def _known_reshape(value: ir.Value, rw: Rewriter) -> Op | None:
    """The reshape that produces a value, if its shapes before and after are known."""
    op = rw.producer(value, "reshape")
    return op if op is not None and TensorType.of(op.data).is_known and TensorType.of(value).is_known else None


@RULES.where(lambda operator: operator.pattern == Pattern.ELEMWISE and operator.keeps_shape)
def past_unary(op: Op, rw: Rewriter) -> Found:
    """f(reshape(x)) -> reshape(f(x)), unless a reduction absorbs f, which cannot fuse with what gives x."""
    data = op.operation.operands[0]
    reshape = _known_reshape(data, rw)
    if reshape is None or (_is_reduced(op.result, rw) and not (rw.used_once(data) and _is_fusible(reshape.data, rw))):
        return None
    return reshape_to(build(op.relay_name, reshape.data, **op.attrs()), TensorType.of(op.result).sizes)


def _is_reduced(value: ir.Value, rw: Rewriter) -> bool:
    """Whether a reduction alone reads a value, or elementwise operators between."""
    users = list(rw.users(value))
    if len(users) != 1 or not isinstance(users[0], Op):
        return False
    user = users[0]
    return user.pattern == Pattern.COMM_REDUCE or (user.pattern <= Pattern.BROADCAST and _is_reduced(user.operation.results[0], rw))


@RULES.where(lambda operator: operator.by_rows)
def past_rows(op: Op, rw: Rewriter) -> Found:
    """A row operator over the last dimension, if the reshape keeps it: rows(reshape(x)) -> reshape(rows(x))."""
    data, *others = op.operation.operands
    reshape = _known_reshape(data, rw)
    if reshape is None or TensorType.of(reshape.data).rank == 0:
        return None
    source, target = TensorType.of(reshape.data), TensorType.of(data)
    if normalize_axis(op.axis, target.rank) != target.rank - 1 or source.shape[-1] != target.shape[-1]:
        return None
    attrs = {**op.attrs(), "axis": source.rank - 1}
    return reshape_to(build(op.relay_name, reshape.data, *others, **attrs), target.sizes)


@RULES.where(lambda operator: operator.broadcasts)
def past_broadcasting(op: Op, rw: Rewriter) -> Found:
    """f(reshape(x), y) -> reshape(f(x, y')), where y' is y seen under the shape of x.

    Where y' takes a reshape that is not there yet, this is done only if f can then fuse with the operator that gives x. It is not done for
    a constant x, whose reshape is folded: two constants would take the shape of each other without end.
    """
    operands = list(op.operation.operands)
    result = TensorType.of(op.result)
    for value in operands:
        reshape = _known_reshape(value, rw)
        if reshape is None or isinstance(reshape.data.owner, Constant) or TensorType.of(value).shape != result.shape:
            continue
        source = TensorType.of(reshape.data).sizes
        found = [_shape_before(v, source, result.sizes) for v in operands]
        shapes = [shape for shape in found if shape is not None]
        if len(shapes) < len(found):
            continue
        free = all(_is_free(v, shape, result.sizes, rw) for v, shape in zip(operands, shapes, strict=True))
        fuses = rw.used_once(value) and _is_fusible(reshape.data, rw)
        if not free and (not fuses or any(_parts(v, result.sizes, rw) for v in operands)):
            continue
        moved = [_seen_as(v, shape, result.sizes, rw) for v, shape in zip(operands, shapes, strict=True)]
        return reshape_to(build(op.relay_name, *moved), result.sizes)
    return None


def _shape_before(value: ir.Value, source: Shape, target: Shape) -> Shape | None:
    type_ = TensorType.of(value)
    return before_reshape(type_.sizes, source, target) if type_.is_known else None


def _before(value: ir.Value, shape: Shape, target: Shape, rw: Rewriter) -> ir.Value | None:
    """An operand `value`, reshaped for use before a reshape to `target`, if this takes no new reshape: the value it was reshaped from, or
    itself if it is smaller than `target` and lacks only leading dimensions of 1."""
    own = TensorType.of(value).shape
    reshape = rw.producer(value, "reshape")
    if reshape is not None and TensorType.of(reshape.data).shape == shape:
        return reshape.data
    return value if own != target and (1,) * (len(shape) - len(own)) + own == shape else None


def _seen_as(value: ir.Value, shape: Shape, target: Shape, rw: Rewriter) -> ir.Value:
    found = _before(value, shape, target, rw)
    return reshape_to(value, shape) if found is None else found


def _is_free(value: ir.Value, shape: Shape, target: Shape, rw: Rewriter) -> bool:
    """Whether seeing `value` under another shape takes no reshape at run time that is not there yet."""
    return isinstance(value.owner, Constant) or _before(value, shape, target, rw) is not None


def _is_fusible(value: ir.Value, rw: Rewriter) -> bool:
    """Whether the operator that produces `value` may be fused with its only user."""
    owner = value.owner
    computes = isinstance(owner, Op) and not isinstance(owner, Constant) and not owner.is_view
    return computes and owner.pattern <= Pattern.OUT_ELEMWISE_FUSABLE and rw.used_once(value)


def _parts(value: ir.Value, target: Shape, rw: Rewriter) -> bool:
    """Whether a reshape of this operand would separate it from its producer, with which its user can fuse now."""
    return TensorType.of(value).shape == target and _is_fusible(value, rw)


RULES.on("reshape")(reshape_chain)

sink_reshapes = RULES.as_pass(1, "Moves reshapes down past elementwise and row operators, which then fuse with their producers.")
