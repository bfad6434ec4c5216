"""Tables of embeddings: their rows, rows joined in bags, and the derivatives of both."""

from math import inf, prod
from typing import Any

from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.distance import norm_of
from relayc.frontend.pytorch.operands import flat, where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.sizes import positions, size_tensor
from relayc.frontend.steps import add, binary, cast, divide, filled, like, multiply, reshape, strided_slice, subtract
from relayc.symbolic import Size


@aten("embedding")
def embedding(weight: Tensor, indices: Tensor) -> Tensor:
    return emit("take", weight, indices, axis=0, mode="raise")


@aten("embedding_renorm")
def embedding_renorm(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """The table with the rows that are used no longer than `max_norm`."""
    rows = self.shape[0]
    used = emit("any", emit("equal", reshape(flat(indices), (1, prod(indices.shape))), reshape(positions(rows), (rows, 1))), axis=(1,))
    length = norm_of(emit("abs", self), norm_type)
    factor = divide(like(max_norm, length), add(length, 1e-7))
    factor = where(emit("logical_and", used, binary("greater", length, float(max_norm))), factor, like(1, factor))
    return emit("multiply", self, reshape(factor, (rows, 1)))


_BAGS = ("add", "add", "max")
"""How the rows of a bag are joined in the modes sum, mean and max."""


def _bag_of(indices: Tensor, offsets: Tensor) -> Tensor:
    """The bag of each index: the last bag that does not begin after it."""
    return subtract(emit("searchsorted", cast(offsets, "int64"), positions(indices.shape[0]), right=True, dtype="int64"), 1)


def _joined(at: Tensor, values: Tensor, bags: Size, first: float, mode: str) -> Tensor:
    """Values joined in bags; values of the bag after the last one are dropped."""
    zeros = filled((bags + 1, *values.shape[1:]), first, values.dtype)
    found = emit("scatter_nd", zeros, reshape(at, (1, at.shape[0])), values, mode=mode)
    return strided_slice(found, (0,), (bags,), (1,), (0,))


@aten("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    mode: int,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int,
) -> tuple[Any, ...]:
    """Rows of a table, joined in bags; the bag of each index, the sizes of bags, and the rows of the largest elements."""
    count, bags = indices.shape[0], offsets.shape[0] - int(include_last_offset)
    bag = _bag_of(indices, strided_slice(offsets, (0,), (bags,), (1,), (0,)))
    rows = emit("take", weight, indices, axis=0, mode="raise")
    if per_sample_weights is not None:
        rows = emit("multiply", rows, reshape(per_sample_weights, (count, 1)))
    at = bag if padding_idx < 0 else where(binary("equal", cast(indices, "int64"), padding_idx), size_tensor(bags), bag)
    found = _joined(at, rows, bags, -inf if mode == 2 else 0, _BAGS[mode])
    number = reshape(_joined(at, filled((count,), 1, weight.dtype), bags, 0, "add"), (bags, 1))
    if mode == 1:
        found = emit("divide", found, binary("maximum", number, 1.0))
    if mode == 2:
        found = where(binary("equal", number, 0.0), like(0, found), found)
    (_, of_index, of_bag, of_largest), (_, dtype, *_) = node().shape, node().dtype
    largest = filled(of_largest, 0, dtype)
    if mode == 2 and node().used(3):
        is_largest = emit("equal", rows, emit("take", found, bag, axis=0, mode="clip"))
        places = where(is_largest, reshape(positions(count), (count, 1)), size_tensor(count))
        places = _joined(at, places, bags, 2**62, "min")
        largest = where(binary("equal", number, 0.0), largest, cast(emit("take", indices, places, axis=0, mode="clip"), dtype))
    # The last offset may only end a bag: torch's shape can still have a size for a bag that would begin there.
    number = emit("nn.pad", reshape(number, (bags,)), filled((), 0, weight.dtype), pad_width=(0, int(of_bag != (bags,))))
    return found, filled(of_index, 0, dtype) if of_index == (0,) else cast(bag, dtype), cast(number, dtype), largest


@aten("_embedding_bag_backward")
def embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: Size,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int,
) -> Tensor:
    if sparse or scale_grad_by_freq:
        # Torch scales the derivatives of other indices where an index occurs several times.
        raise ModelError("expected dense derivatives of embeddings that are not scaled, found others")
    table, count = filled((num_weights, grad.shape[1]), 0, grad.dtype), indices.shape[0]
    size = reshape(strided_slice(bag_size, (0,), (grad.shape[0],), (1,), (0,)), (grad.shape[0], 1))
    if mode == 2:
        kept = where(binary("greater", size, 0), grad, like(0, grad))
        return emit("scatter_elements", table, maximum_indices, kept, axis=0, reduction="add", in_bounds=True)
    grad = divide(grad, cast(binary("maximum", size, 1), grad.dtype)) if mode == 1 else grad
    rows = _unpadded(emit("take", grad, _bag_of(indices, offsets), axis=0, mode="clip"), indices, padding_idx)
    if per_sample_weights is not None:
        rows = multiply(rows, reshape(per_sample_weights, (count, 1)))
    at = reshape(cast(indices, "int64"), (1, count))
    return emit("scatter_nd", table, at, rows, mode="add")


@aten("_embedding_bag_per_sample_weights_backward")
def weights_of_bags_backward(grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, padding_idx: int) -> Tensor:
    rows = multiply(emit("take", grad, _bag_of(indices, offsets), axis=0, mode="clip"), emit("take", weight, indices, axis=0, mode="clip"))
    return emit("sum", _unpadded(rows, indices, padding_idx), axis=(1,))


def _unpadded(rows: Tensor, indices: Tensor, padding_idx: int) -> Tensor:
    """The rows of indices, 0 where an index is padding."""
    if padding_idx < 0:
        return rows
    return where(reshape(binary("equal", cast(indices, "int64"), padding_idx), (indices.shape[0], 1)), like(0, rows), rows)
