"""Normalisations fused with the operators before them, and those that ONNX Runtime had in ONNX's domain before ONNX defined them."""

from relayc.frontend.converter import Tensor, axis_of, emit
from relayc.frontend.onnx import norm
from relayc.frontend.onnx.contrib.domain import check_ranks, microsoft
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import positions
from relayc.frontend.steps import add, broadcast_to, cast, filled, multiply, reshape

converter("LayerNormalization", since=1)(norm.LayerNormalization)


@converter()
def SimplifiedLayerNormalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """Division by the root of the mean of squares; the second output is 1 over that root."""
    result: Tensor = norm.RMSNormalization(x, scale, axis=axis, epsilon=epsilon)
    if not current().wants(1):
        return result
    wide, axes = cast(x, "float32"), tuple(range(axis_of(axis, x.rank), x.rank))
    return result, emit("rsqrt", add(emit("mean", multiply(wide, wide), axis=axes, keepdims=True), epsilon))


def _sum(x: Tensor, skip: Tensor, bias: Tensor | None) -> Tensor:
    """x + skip + bias, where skip may be the same for the whole batch."""
    if skip.rank > x.rank:
        raise OnnxError(f"input skip: expected at most {x.rank} dimensions as input has, found {list(skip.shape)}")
    found = add(x, skip)
    return found if bias is None else add(found, bias)


@microsoft()
def SkipLayerNormalization(
    x: Tensor, skip: Tensor, gamma: Tensor, beta: Tensor | None = None, bias: Tensor | None = None, *, epsilon: float = 1e-12
) -> tuple[Tensor, ...]:
    """The outputs mean and inv_std_var are for training: ONNX Runtime does not compute them on CPUs."""
    _refuse_statistics()
    total = _sum(x, skip, bias)
    found = emit("nn.layer_norm", total, gamma, beta or filled(gamma.shape, 0, x.dtype), axis=-1, epsilon=epsilon)
    return _with_sum(found, total)


@microsoft()
def SkipSimplifiedLayerNormalization(
    x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None = None, *, epsilon: float = 1e-12
) -> tuple[Tensor, ...]:
    _refuse_statistics()
    total = _sum(x, skip, bias)
    return _with_sum(emit("nn.rms_norm", total, gamma, axis=-1, epsilon=epsilon), total)


def _refuse_statistics() -> None:
    if current().wants(1) or current().wants(2):
        raise OnnxError("outputs mean and inv_std_var: expected them not to be used, as only training does, found a use")


def _with_sum(found: Tensor, total: Tensor) -> tuple[Tensor, ...]:
    return (found, found, found, total) if current().wants(3) else (found,)


@microsoft()
def EmbedLayerNormalization(
    input_ids: Tensor,
    segment_ids: Tensor | None,
    word_embedding: Tensor,
    position_embedding: Tensor,
    segment_embedding: Tensor | None,
    gamma: Tensor,
    beta: Tensor,
    mask: Tensor | None = None,
    position_ids: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
) -> tuple[Tensor, ...]:
    """LayerNormalization of the sum of embeddings of tokens, positions and segments; the number of tokens that mask keeps; the sum."""
    check_ranks((2,), input_ids=input_ids, segment_ids=segment_ids, mask=mask, position_ids=position_ids)
    check_ranks((2,), word_embedding=word_embedding, position_embedding=position_embedding, segment_embedding=segment_embedding)
    batch, length = input_ids.shape
    total = emit("take", word_embedding, input_ids, axis=0, mode="raise")
    if position_ids is None:
        position_ids = reshape(positions(length), (1, length))
    places = emit("take", position_embedding, position_ids, axis=0, mode="raise")
    total = add(total, broadcast_to(places, total.shape))
    if segment_ids is not None and segment_embedding is not None:
        total = add(total, emit("take", segment_embedding, segment_ids, axis=0, mode="raise"))
    found = emit("nn.layer_norm", total, gamma, beta, axis=-1, epsilon=epsilon)
    kept = filled((batch,), 0, "int32") if mask is None else emit("sum", cast(mask, "int32"), axis=(1,))
    return found, kept, total
