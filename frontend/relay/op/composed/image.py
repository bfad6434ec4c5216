"""Operators on images: sampling at computed places, and dilation."""

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any

import numpy as np

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.relay.op.composed.registry import composed
from relayc.frontend.relay.op.composed.terms import Term
from relayc.frontend.sizes import size_tensor
from relayc.frontend.steps import cast, filled, reshape, strided_slice, transpose


@composed("image.affine_grid")
def affine_grid(data: Tensor, *, target_shape: Sequence[int]) -> Tensor:
    """The places [n, (x, y), height, width] that affine maps [n, 2, 3] give for the pixels of an image, corners at -1 and 1."""
    height, width = target_shape
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    points = constant(np.stack([x, y, np.ones_like(x)]).reshape(1, 3, -1), data.dtype)
    found = emit("nn.batch_matmul", data, points, transpose_a=False, transpose_b=False)
    return reshape(found, (data.shape[0], 2, height, width))


@composed("image.crop_and_resize", extrapolation_value=0)
def crop_and_resize(
    data: Tensor,
    boxes: Tensor,
    box_indices: Tensor,
    *,
    crop_size: Sequence[int],
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    out_dtype: str = "",
) -> Tensor:
    """Parts of images in one size: boxes (y1, x1, y2, x2) in 0 to 1 of the image that `box_indices` say."""
    image = data if layout == "NCHW" else transpose(data, (0, 3, 1, 2))
    count, dtype = boxes.shape[0], boxes.dtype
    places, inside = [], list[Term]()
    for axis, out in enumerate(crop_size):
        last = Term(cast(size_tensor(image.shape[2 + axis]), dtype)) - 1
        begin, end = Term(boxes).part(1, axis), Term(boxes).part(1, axis + 2)
        if out > 1:
            at = begin * last + Term(constant(np.arange(out)[None], dtype)) * ((end - begin) * last / float(out - 1))
        else:
            at = (begin + end) * last * 0.5
        here = (at >= 0) & (at <= last)
        shape = [count, 1, *(out if i == axis else 1 for i in range(2))]
        places.append(emit("broadcast_to", reshape(at.tensor, shape), shape=(count, 1, *crop_size)))
        inside.append(Term(reshape(here.tensor, shape)))
    found = emit(
        "image.grid_sample",
        emit("take", image, cast(box_indices, "int64"), axis=0, mode="clip"),
        emit("concatenate", places[1], places[0], axis=1),
        method="bilinear" if method == "bilinear" else "nearest_neighbor",
        padding_mode="border",
        coordinates="pixel",
    )
    is_inside = reduce(and_, inside)
    found = cast(is_inside.where(Term(cast(found, out_dtype or data.dtype)), extrapolation_value).tensor, out_dtype or data.dtype)
    return found if layout == "NCHW" else transpose(found, (0, 2, 3, 1))


@composed("image.dilation2d")
def dilation2d(
    data: Tensor,
    weight: Tensor,
    *,
    strides: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0),
    dilations: Sequence[int] = (1, 1),
    data_layout: str = "NCHW",
    kernel_layout: str = "IHW",
    out_dtype: str = "",
) -> Tensor:
    """The largest sum of an image and a structuring element in each window; padding is never the largest."""
    image = data if data_layout == "NCHW" else transpose(data, (0, 3, 1, 2))
    taps = weight if kernel_layout == "IHW" else transpose(weight, (2, 0, 1))
    strides, dilations = ([v[-3], v[-2]] if len(v) == 4 else list(v) for v in (strides, dilations))
    top, left, bottom, right = (list(padding) * 4)[:4] if len(padding) != 2 else (*padding, *padding)
    lowest = -np.inf if data.is_float else np.iinfo(data.dtype).min
    around: dict[str, Any] = {"pad_width": (0, 0, 0, 0, top, bottom, left, right), "pad_mode": "constant"}
    inside = emit("nn.pad", filled((1, 1, *image.shape[2:]), True, "bool"), constant(False), **around)
    image = emit("nn.pad", image, constant(lowest, data.dtype), **around)
    kernel = [int(d) for d in taps.shape[1:]]
    out = [(d - (k - 1) * r - 1) // s + 1 for d, k, r, s in zip(image.shape[2:], kernel, dilations, strides, strict=True)]
    sums = list[Term]()
    for row, column in np.ndindex(*kernel):
        begin = [row * dilations[0], column * dilations[1]]
        end = [b + (n - 1) * s + 1 for b, n, s in zip(begin, out, strides, strict=True)]
        tap = reshape(strided_slice(taps, [row, column], [row + 1, column + 1], [1, 1], [1, 2]), (1, taps.shape[0], 1, 1))
        here = Term(strided_slice(image, begin, end, strides, [2, 3])) + Term(tap)
        if not data.is_float:  # the sum with the least integer may be larger, or wrap
            here = Term(strided_slice(inside, begin, end, strides, [2, 3])).where(here, lowest)
        sums.append(here)
    result = cast(reduce(Term.max, sums).tensor, out_dtype or data.dtype)
    return result if data_layout == "NCHW" else transpose(result, (0, 2, 3, 1))
