"""Operators whose sizes are computed by the program: Relay's dyn.*, which have an operand in the place of an attribute."""

from collections.abc import Sequence
from typing import Any

from relayc.frontend.converter import Tensor, emit, known
from relayc.frontend.relay.op.composed.indexing import sparse_to_dense
from relayc.frontend.relay.op.composed.registry import composed
from relayc.frontend.relay.op.composed.terms import Term
from relayc.frontend.sizes import shape_tensor, size, sizes
from relayc.frontend.steps import cast, filled, reshape, transpose


def _long(tensor: Tensor) -> Tensor:
    return tensor if tensor.is_known or tensor.dtype == "int64" else cast(tensor, "int64")


@composed("dyn.reshape")
def dyn_reshape(data: Tensor, newshape: Tensor, *, allowzero: bool = False) -> Tensor:
    from relayc.frontend.onnx.transform import Reshape

    return Reshape(data, _long(newshape), allowzero=allowzero)


@composed("vm.reshape_tensor")
def vm_reshape_tensor(data: Tensor, shape: Tensor, *, newshape: Sequence[int]) -> Tensor:
    """The data in a new shape, which is known; `shape` is the same as a tensor."""
    return reshape(data, tuple(newshape))


@composed("vm.shape_of")
def vm_shape_of(data: Tensor, *, dtype: str = "int64") -> Tensor:
    """The shape of the data, a tensor on the host."""
    return cast(emit("shape_of", data), dtype)


@composed("dyn.tile")
def dyn_tile(data: Tensor, reps: Tensor) -> Tensor:
    from relayc.frontend.onnx.transform import Tile

    count = reps.shape[0]
    assert isinstance(count, int)
    if count < data.rank:
        reps = emit("concatenate", filled((data.rank - count,), 1, "int64"), _long(reps), axis=0)
    return Tile(reshape(data, (1,) * (count - data.rank) + data.shape), _long(reps))


@composed("dyn.broadcast_to")
def dyn_broadcast_to(data: Tensor, shape: Tensor) -> Tensor:
    from relayc.frontend.onnx.transform import Expand

    return Expand(data, _long(shape))


@composed("dyn.full")
def dyn_full(fill_value: Tensor, shape: Tensor, *, dtype: str = "") -> Tensor:
    return emit("full", cast(reshape(fill_value, ()), dtype or fill_value.dtype), shape=sizes(_long(shape), "shape"))


@composed("dyn.zeros")
def dyn_zeros(shape: Tensor, *, dtype: str = "float32") -> Tensor:
    return emit("zeros", shape=sizes(_long(shape), "shape"), dtype=dtype)


@composed("dyn.ones")
def dyn_ones(shape: Tensor, *, dtype: str = "float32") -> Tensor:
    return emit("ones", shape=sizes(_long(shape), "shape"), dtype=dtype)


@composed("dyn.one_hot")
def dyn_one_hot(indices: Tensor, on_value: Tensor, off_value: Tensor, depth: Tensor, *, axis: int = -1, dtype: str = "") -> Tensor:
    made = {"depth": size(_long(depth), "depth"), "axis": axis, "dtype": dtype or on_value.dtype}
    return emit("one_hot", indices, on_value, off_value, **made)


@composed("dyn.topk", results=lambda attrs, _: 2 if attrs["ret_type"] == "both" else 1)
def dyn_topk(
    data: Tensor, k: Tensor, *, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32"
) -> tuple[Tensor, ...]:
    found = emit("topk", data, k=size(_long(k), "k"), axis=axis, ret_type="both", is_ascend=is_ascend, dtype=dtype)
    return found if ret_type == "both" else (found[0 if ret_type == "values" else 1],)


@composed("dyn.strided_slice", strides=None)
def dyn_strided_slice(data: Tensor, begin: Tensor, end: Tensor, strides: Tensor, *, slice_mode: str = "end", axes: object = None) -> Tensor:
    from relayc.frontend.onnx.transform import Slice_10

    begin, end, strides = (cast(t, "int64") for t in (begin, end, strides))
    if slice_mode == "size":  # end holds the sizes of the slice; -1 is the rest of the axis
        begin_, taken = Term(begin), Term(end)
        end = (taken < 0).where(Term(shape_tensor(data.shape[: begin.shape[0]])), begin_ + taken).tensor
        strides = filled(begin.shape, 1, "int64")
    return Slice_10(data, begin, end, None, strides)


@composed("dyn.nn.pad", pad_value=0)
def dyn_pad(data: Tensor, pad_width: Tensor, pad_value: Tensor, *, pad_mode: str = "constant") -> Tensor:
    from relayc.frontend.onnx.transform import Pad_11

    flat = reshape(transpose(reshape(_long(pad_width), (data.rank, 2)), (1, 0)), (2 * data.rank,))
    return Pad_11(data, flat, cast(pad_value, data.dtype), mode=pad_mode)


@composed("dyn.expand_dims")
def dyn_expand_dims(data: Tensor, axis: Tensor, *, num_newaxis: int = 1) -> Tensor:
    from relayc.frontend.onnx.late_axes import unsqueeze_late

    return unsqueeze_late(data, reshape(_long(axis), (1,)))


@composed("dyn.squeeze")
def dyn_squeeze(data: Tensor, axis: Tensor) -> Tensor:
    from relayc.frontend.onnx.transform import Squeeze_13

    return Squeeze_13(data, _long(axis))


@composed("dyn.arange")
def dyn_arange(start: Tensor, stop: Tensor, step: Tensor, *, dtype: str) -> Tensor:
    from relayc.frontend.onnx.create import Range

    return Range(*(cast(t, dtype) for t in (start, stop, step)))


@composed("dyn.sparse_to_dense")
def dyn_sparse_to_dense(sparse_indices: Tensor, sparse_values: Tensor, default_value: Tensor, output_shape: Tensor) -> Tensor:
    return sparse_to_dense(sparse_indices, sparse_values, default_value, output_shape=sizes(_long(output_shape), "output_shape"))


_RESIZE = {
    **{"layout": "NCHW", "method": "linear", "coordinate_transformation_mode": "half_pixel", "rounding_method": ""},
    **{"cubic_alpha": -0.5, "cubic_exclude": 0, "extrapolation_value": 0.0, "out_dtype": ""},
}


@composed("dyn.image.resize2d", attributes=_RESIZE)
def dyn_resize2d(data: Tensor, size: Tensor, roi: Tensor, **attrs: Any) -> Tensor:
    box = tuple(float(v) for v in known(roi, "roi").reshape(-1))
    return emit("image.resize2d", data, size=sizes(cast(size, "int64"), "size"), roi=box, **attrs)


@composed("dyn.nn.upsampling")
def dyn_upsampling(
    data: Tensor, scale_h: Tensor, scale_w: Tensor, *, layout: str = "NCHW", method: str = "nearest_neighbor", align_corners: bool = False
) -> Tensor:
    return _upsampled(data, (scale_h, scale_w), layout, method.removeprefix("bi"), "align_corners" if align_corners else "asymmetric")


@composed("dyn.nn.upsampling3d")
def dyn_upsampling3d(
    data: Tensor,
    scale_d: Tensor,
    scale_h: Tensor,
    scale_w: Tensor,
    *,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> Tensor:
    return _upsampled(data, (scale_d, scale_h, scale_w), layout, method.removeprefix("tri"), coordinate_transformation_mode)


def _upsampled(data: Tensor, scales: tuple[Tensor, ...], layout: str, method: str, mode: str) -> Tensor:
    """The spatial axes times scales that the program computes, rounded as those of nn.upsampling."""
    lengths = shape_tensor([data.shape[layout.index(axis)] for axis in "DHW"[3 - len(scales) :]])
    scale = emit("concatenate", *(reshape(cast(s, "float32"), (1,)) for s in scales), axis=0)
    size = emit("round", emit("multiply", cast(lengths, "float32"), scale))
    made = {"layout": layout, "method": method, "coordinate_transformation_mode": mode}
    return emit(f"image.resize{len(scales)}d", data, size=sizes(cast(size, "int64"), "size"), **made)
