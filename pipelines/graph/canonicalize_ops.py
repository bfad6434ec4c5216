"""CanonicalizeOps: says the same program with fewer kinds of operators, so that the passes after it have less to know.

Everything that keeps the elements in order becomes `reshape` (which costs nothing at run time), splits become slices, and tuples that are
made and taken apart in one place go, as do branches on constants.
"""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.calls import restated
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.names import build
from relayc.dialects.relay.pool import AdaptivePool, GlobalPool2d
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.sizes import CastShape, MatchShape
from relayc.dialects.relay.structure import If
from relayc.dialects.relay.transform import BlockMove, Reshape, split_bounds
from relayc.dialects.relay.tuples import make_tuple, tuple_fields
from relayc.dialects.relay.types import TensorType, type_of
from relayc.pipelines.graph import fold_explicit_padding
from relayc.pipelines.graph.reshapes import along_axis, reshape_to
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules
from relayc.symbolic import Size

RULES = Rules("CanonicalizeOps")


# ---- structure ------------------------------------------------------------------------------------------------------------------------


@RULES.on("tuple_get_item")
def tuple_get_item(op: Op, rw: Rewriter) -> Found:
    """A field of a tuple created in the function -> the field's value."""
    fields = tuple_fields(op.data)
    return fields[op.index] if fields is not None else None


@RULES.on("if")
def constant_condition(op: If, rw: Rewriter) -> Found:
    """A branch on a constant -> the branch taken."""
    condition = rw.scalar(op.cond)
    if condition is None:
        return None
    taken = 0 if condition else 1
    for inner in list(op.body(taken).operations)[:-1]:
        inner.operation.move_before(op.operation)
    return restated(op.yielded(taken), type_of(op.operation.results[0]))


# ---- movement -------------------------------------------------------------------------------------------------------------------------


@RULES.where(lambda operator: operator.is_view and operator not in (Reshape, MatchShape, CastShape))
def as_reshape(op: Op, rw: Rewriter) -> Found:
    """Operators that keep the elements in order -> reshape."""
    type_ = TensorType.of(op.operation.results[0])
    return reshape_to(op.operation.operands[0], type_.sizes) if type_.is_known else None


@RULES.on("match_shape")
def known_shape(op: Op, rw: Rewriter) -> Found:
    """The statement that a tensor has the shape which its type says -> the tensor."""
    type_ = TensorType.of(op.data)
    return op.data if type_.is_known and type_ == TensorType.of(op.result) else None


@RULES.on("reshape")
def plain_reshape(op: Op, rw: Rewriter) -> Found:
    """Relay's reshape codes -> sizes."""
    type_ = TensorType.of(op.operation.results[0])
    if not type_.is_known or op.newshape == type_.shape:
        return None
    return build("reshape", op.data, newshape=type_.shape, allowzero=0 in type_.shape)


@RULES.on("split")
def split(op: Op, rw: Rewriter) -> Found:
    """split -> a strided_slice for each part."""
    data = TensorType.of(op.data)
    axis = normalize_axis(op.axis, data.rank)
    bounds = split_bounds(data.sizes[axis], op.indices_or_sections)
    parts = [build("strided_slice", op.data, begin=(begin,), end=(end,), strides=(1,), axes=(axis,)) for begin, end in bounds]
    return restated(make_tuple(parts), type_of(op.operation.results[0]))


@RULES.on("strided_slice")
def whole_slice(op: Op, rw: Rewriter) -> Found:
    """A slice of everything -> its operand."""
    data, result = TensorType.of(op.data), TensorType.of(op.operation.results[0])
    forward = all(stride == 1 for stride in op.strides)
    return op.data if data == result and data.is_known and forward else None


@RULES.on("concatenate")
def single_concatenate(op: Op, rw: Rewriter) -> Found:
    """A concatenation of one tensor -> the tensor; tensors without elements are left out."""
    axis = normalize_axis(op.axis, TensorType.of(op.data[0]).rank)
    parts = [v for v in op.data if TensorType.of(v).shape[axis] != 0] or op.data[:1]
    if len(parts) == 1:
        return parts[0]
    return build("concatenate", *parts, axis=axis) if len(parts) < len(op.data) else None


@RULES.on("stack")
def stack(op: Op, rw: Rewriter) -> Found:
    """stack -> concatenate of operands with a new axis."""
    type_ = TensorType.of(op.operation.results[0])
    if not type_.is_known:
        return None
    axis = normalize_axis(op.axis, type_.rank)
    part = (*type_.sizes[:axis], 1, *type_.sizes[axis + 1 :])
    return build("concatenate", *[reshape_to(v, part) for v in op.data], axis=axis)


@RULES.on(BlockMove)
def block_move(op: BlockMove, rw: Rewriter) -> Found:
    """depth_to_space and space_to_depth -> reshape, transpose, reshape."""
    return _rearranged(op, *op.rearrangement) if TensorType.of(op.data).is_known else None


def _rearranged(op: Op, apart: Sequence[Size], axes: Sequence[int]) -> ir.Value:
    """The data of an operation with the sizes `apart`, transposed, in the sizes of the result."""
    return reshape_to(build("transpose", reshape_to(op.data, apart), axes=axes), TensorType.of(op.operation.results[0]).sizes)


@RULES.on("layout_transform")
def layout_transform(op: Op, rw: Rewriter) -> Found:
    """layout_transform -> reshape, transpose, reshape."""
    data, result = TensorType.of(op.data), TensorType.of(op.operation.results[0])
    source, target = layout(op.src_layout), layout(op.dst_layout)
    if not (data.is_known and result.is_known):
        return None
    # Both blockings must divide each axis into the same inner parts, or be absent on one side.
    blocks = source.blocks | target.blocks
    if any(a.blocks.get(axis, size) != size for a in (source, target) for axis, size in blocks.items()):
        return None
    dims = source.logical(data.sizes)
    sizes = {axis: length // blocks.get(axis, 1) for axis, length in dims.items()}
    sizes |= {axis.lower(): size for axis, size in blocks.items()}

    def parts(axes: tuple[str, ...], own: dict[str, int]) -> list[str]:
        return [p for axis in axes for p in ([axis, axis.lower()] if axis in blocks and axis not in own else [axis])]

    before, after = parts(source.axes, source.blocks), parts(target.axes, target.blocks)
    return _rearranged(op, [sizes[part] for part in before], [before.index(part) for part in after])


# ---- nn -------------------------------------------------------------------------------------------------------------------------------


@RULES.on("nn_bias_add")
def bias_add(op: Op, rw: Rewriter) -> Found:
    """bias_add -> add of the bias along its axis."""
    rank = TensorType.of(op.data).rank
    return build("add", op.data, along_axis(op.bias, normalize_axis(op.axis, rank), rank))


@RULES.on("nn_matmul")
def matmul_as_dense(op: Op, rw: Rewriter) -> Found:
    """matmul with tensor_b [units, in] -> dense."""
    if op.transpose_a or not op.transpose_b:
        return None
    return build("nn.dense", op.tensor_a, op.tensor_b, out_dtype=op.out_dtype)


@RULES.on(GlobalPool2d, AdaptivePool)
def global_pool(op: GlobalPool2d | AdaptivePool, rw: Rewriter) -> Found:
    """A pooling of whole images -> a reduction, into which elementwise operators fuse."""
    parsed, result = layout(op.layout), TensorType.of(op.operation.results[0])
    axes = [i for i, axis in enumerate(parsed.axes) if axis in "DHW"]
    if any(result.shape[i] != 1 for i in axes):
        return None
    return build(op.reduction, op.data, axis=axes, keepdims=True)


RULES.include(fold_explicit_padding.RULES)


canonicalize_ops = RULES.as_pass(0, "The same program in fewer kinds of operators.")
