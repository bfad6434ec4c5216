"""Operators between real numbers and their quantized forms."""

import numpy as np

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.relay.op.composed.registry import composed
from relayc.frontend.steps import cast, reshape


def _along(parameter: Tensor, data: Tensor, axis: int) -> Tensor:
    """A scalar, or a value for each element of an axis, as it broadcasts to data."""
    if parameter.rank == 0:
        return parameter
    return reshape(parameter, [d if i == axis % data.rank else 1 for i, d in enumerate(data.shape)])


@composed("qnn.dequantize", "data input_scale input_zero_point axis out_dtype")
def dequantize(data: Tensor, input_scale: Tensor, input_zero_point: Tensor, *, out_dtype: str = "float32", axis: int = -1) -> Tensor:
    """(data - zero point) * scale."""
    scale, zero = (_along(p, data, axis) for p in (input_scale, input_zero_point))
    wide = emit("subtract", cast(data, "int32"), cast(zero, "int32"))
    return cast(emit("multiply", cast(wide, "float32"), cast(scale, "float32")), out_dtype)


@composed("qnn.quantize", "data output_scale output_zero_point axis out_dtype")
def quantize(data: Tensor, output_scale: Tensor, output_zero_point: Tensor, *, out_dtype: str = "int8", axis: int = -1) -> Tensor:
    """round(data / scale) + zero point, limited to the numbers of the element type."""
    scale, zero = (_along(p, data, axis) for p in (output_scale, output_zero_point))
    whole = emit("add", emit("round", emit("divide", data, cast(scale, data.dtype))), cast(zero, data.dtype))
    limits = np.iinfo(out_dtype)
    low, high = (constant(v, data.dtype) for v in (limits.min, limits.max))
    return cast(emit("minimum", emit("maximum", whole, low), high), out_dtype)
