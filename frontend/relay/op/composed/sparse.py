"""Operators on sparse matrices: compressed by rows, as nn.sparse_dense has them, or as positions with values."""

from collections.abc import Sequence

from relayc.dialects.relay.errors import check
from relayc.frontend.common.positions import positions_where
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.relay.op.composed.registry import composed
from relayc.frontend.relay.op.composed.terms import Term
from relayc.frontend.sizes import positions, size
from relayc.frontend.steps import cast, filled, reshape, strided_slice, transpose


@composed("nn.internal.sparse_dense_padded")
def sparse_dense_padded(
    data: Tensor, weight_data: Tensor, weight_indices: Tensor, weight_indptr: Tensor, *, sparse_lhs: bool = False
) -> Tensor:
    """As nn.sparse_dense: rows that are padded for the threads of a GPU have zeros as their last elements."""
    return emit("nn.sparse_dense", data, weight_data, weight_indices, weight_indptr, sparse_lhs=sparse_lhs)


@composed("nn.sparse_conv2d")
def sparse_conv2d(
    dense_data: Tensor,
    sparse_data: Tensor,
    sparse_indices: Tensor,
    sparse_indptr: Tensor,
    *,
    layout: str = "NHWC",
    kernel_size: Sequence[int] = (1, 1),
) -> Tensor:
    """A convolution by a sparse matrix: a row of it is a filter, flat as [height, width, channels], or [channels, height, width] for NCHW.

    The images keep their size: the filters, of an odd number of rows and columns, read zeros around them.
    """
    check(dense_data.rank == 4, "dense_data", "rank 4", dense_data.type)
    check(layout in ("NHWC", "NCHW"), "layout", "NHWC or NCHW", layout)
    check(len(kernel_size) == 2 and all(k % 2 for k in kernel_size), "kernel_size", "two odd numbers", kernel_size)
    if sparse_data.rank == 2:  # blocks of one column
        sparse_data = reshape(sparse_data, (*sparse_data.shape, 1))
    is_last = layout == "NHWC"
    images = dense_data if is_last else transpose(dense_data, (0, 2, 3, 1))
    batch, height, width, channels = images.shape
    rows, columns = kernel_size
    if (rows, columns) != (1, 1):
        pads = (0, 0, rows // 2, rows // 2, columns // 2, columns // 2, 0, 0)
        padded = emit("nn.pad", images, constant(0, images.dtype), pad_width=pads, pad_mode="constant")
        taps = [
            strided_slice(padded, [i, j], [i + height, j + width], [1, 1], [1, 2]) for i in range(rows) for j in range(columns)
        ]  # of which filters have all channels of one after those of the one before, or all of a channel
        images = emit("concatenate", *taps, axis=3) if is_last else emit("stack", *taps, axis=4)
    pixels = reshape(images, (batch * height * width, channels * rows * columns))
    found = emit("nn.sparse_dense", pixels, sparse_data, sparse_indices, sparse_indptr, sparse_lhs=not is_last)
    if is_last:
        return reshape(found, (batch, height, width, found.shape[1]))
    return transpose(reshape(found, (found.shape[0], batch, height, width)), (1, 0, 2, 3))


def _rows(indptr: Tensor, count: Tensor) -> Tensor:
    """The row of each of the stored elements that `count` numbers: how many rows have ended before it."""
    ends = strided_slice(indptr, [1], [indptr.shape[0]], [1], [0])
    return emit("searchsorted", ends, cast(count, indptr.dtype), right=True, dtype="int64")


def _check_compressed(data: Tensor, indices: Tensor) -> None:
    check(data.rank == 1, "sparse_data", "rank 1", data.type)
    check(indices.type.shape == data.type.shape, "sparse_indices", f"the shape of sparse_data {data.type}", indices.type)


@composed("nn.sparse_add")
def sparse_add(dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor) -> Tensor:
    """The sum of a dense and a sparse matrix."""
    _check_compressed(sparse_data, sparse_indices)
    check(dense_data.rank == 2, "dense_data", "rank 2", dense_data.type)
    at = emit("stack", _rows(sparse_indptr, positions(sparse_data.shape[0])), cast(sparse_indices, "int64"), axis=0)
    return emit("scatter_nd", dense_data, at, sparse_data, mode="add")


@composed("nn.sparse_transpose", results=3)
def sparse_transpose(sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor) -> tuple[Tensor, ...]:
    """The transpose of a square sparse matrix: its elements in the order of their columns, in a column in that of their rows."""
    _check_compressed(sparse_data, sparse_indices)
    order = emit("argsort", sparse_indices, axis=0, is_ascend=True, dtype="int32")
    data, columns = (emit("take", values, order, axis=0, mode="clip") for values in (sparse_data, sparse_indices))
    rows = cast(_rows(sparse_indptr, order), sparse_indices.dtype)
    starts = emit("searchsorted", columns, cast(positions(sparse_indptr.shape[0]), columns.dtype), right=False, dtype="int64")
    return data, rows, cast(starts, sparse_indptr.dtype)


@composed("sparse_fill_empty_rows", results=3)
def sparse_fill_empty_rows(sparse_indices: Tensor, sparse_values: Tensor, dense_shape: Tensor, default_value: Tensor) -> tuple[Tensor, ...]:
    """Positions [count, axes] in the order of their rows, and values, with a default at the start of each row that has none; which rows
    have none. All are int64, as in Relay."""
    count, axes = sparse_indices.shape
    total = size(cast(reshape(strided_slice(dense_shape, [0], [1], [1], [0]), ()), "int64"), "dense_shape")
    places, values = cast(sparse_indices, "int64"), cast(sparse_values, "int64")
    rows = reshape(strided_slice(places, [0], [1], [1], [1]), (count,))
    begins, ends = (Term(emit("searchsorted", rows, positions(total), right=right, dtype="int64")) for right in (False, True))
    is_empty = begins.eq(ends)
    empty = positions_where(is_empty.tensor)
    (more,) = empty.shape
    first = reshape(empty, (more, 1))
    starts = first if axes == 1 else emit("concatenate", first, filled((more, axes - 1), 0, "int64"), axis=1)
    defaults = emit("broadcast_to", reshape(cast(default_value, "int64"), (1,)), shape=(more,))
    all_rows = emit("concatenate", rows, empty, axis=0)
    order = emit("argsort", all_rows, axis=0, is_ascend=True, dtype="int32")
    joined = [emit("concatenate", places, starts, axis=0), emit("concatenate", values, defaults, axis=0)]
    return (*(emit("take", part, order, axis=0, mode="clip") for part in joined), is_empty.cast("int64").tensor)
