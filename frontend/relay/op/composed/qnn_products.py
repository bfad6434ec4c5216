"""Products of quantized tensors (see qnn): of their integers without the zero points, in int32, which `qnn.requantize` rounds once."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from relayc.dialects.relay.attributes import REQUIRED
from relayc.dialects.relay.errors import check
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.qnn import centred
from relayc.dialects.relay.types import BYTES
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.relay.op.composed.building import OnTensors
from relayc.frontend.relay.op.composed.qnn import along, is_zero, minus_zero_point
from relayc.frontend.relay.op.composed.registry import CONV, composed
from relayc.frontend.relay.op.composed.terms import Term
from relayc.frontend.steps import cast, reshape

_QUANTIZED = "input_zero_point kernel_zero_point input_scale kernel_scale"
_CONV_ATTRS = "strides padding dilation groups data_layout kernel_layout out_layout"
_INT_CONV = {**CONV, "out_dtype": "int32"}
_DENSE = {"units": REQUIRED, "out_dtype": "int32"}
_TRANSPOSED = {"transpose_a": False, "transpose_b": False, "out_dtype": "int32"}
_MATRICES = ("dense", "matmul", "batch_matmul")


def _plain(name: str, data: Tensor, weight: Tensor, attrs: Mapping[str, Any]) -> Tensor:
    """The operator nn.`name` of Relay on integers."""
    from relayc.frontend.relay.op.rules import apply

    return apply(OnTensors(), f"nn.{name}", [data, weight], attrs, ())


def _of_bytes(
    name: str, data: Tensor, weight: Tensor, zero: Tensor, integers: np.ndarray, axis: int, attrs: dict[str, Any]
) -> Tensor | None:
    """The product of bytes and a constant weight, `integers` of int8 without its zero point; None where the operands do not allow it.

    The zero point of the data is the padding, and what it adds is subtracted: zero times the sums of the weights.
    """
    output, kernel = attrs.get("out_layout") or attrs.get("data_layout", ""), attrs.get("kernel_layout", "")
    if kernel and (
        not kernel.isalpha() or integers.shape[kernel.index("I")] * attrs["groups"] != data.shape[attrs["data_layout"].index("C")]
    ):
        return None  # a form that only Relay has
    if zero.type.num_elements != 1:
        return None
    if not is_zero(zero):
        has_padding = any(attrs.get("padding", ()))
        if (has_padding and not zero.is_known) or (output and layout(output).blocks):
            return None
        attrs = {**attrs, "pad_value": int(zero.array.item())} if has_padding else attrs
    total: Tensor = emit(f"nn.{name}", data, constant(integers), **attrs)
    if is_zero(zero):
        return total
    sums = constant(integers.sum(tuple(a for a in range(integers.ndim) if a != axis % integers.ndim), dtype=np.int32))
    channel = layout(output).index("C") if output else total.rank - 1
    if sums.shape != (total.shape[channel],):
        return None
    excess = emit("multiply", sums, cast(reshape(zero, ()), "int32"))
    return emit("subtract", total, along(excess, total, channel))


def _of_wide_weights(
    name: str, data: Tensor, weight: Tensor, zeros: tuple[Tensor, Tensor], axis: int, attrs: dict[str, Any]
) -> Tensor | None:
    """The convolution of bytes and constant bytes that do not fit int8 without their zero point; None where the operands do not allow it.

    sum (a - za) (w - zw) = sum (a - za) w - zw sum (a - za), where the last sum is over the channels first, then over the window.
    """
    integers, weight_zero = weight.array, zeros[1].array.astype(np.int32)
    if "kernel_layout" not in attrs or attrs["groups"] != 1 or not attrs["kernel_layout"].isalpha() or weight.dtype not in BYTES:
        return None
    if weight.dtype == "uint8":
        integers, weight_zero = (integers ^ 128).view(np.int8), weight_zero - 128
    total = _of_bytes(name, data, weight, zeros[0], integers, axis, attrs)
    output = layout(attrs["out_layout"] or attrs["data_layout"])
    if total is None or output.blocks or weight_zero.size not in (1, integers.shape[axis]):
        return None
    of_pixels = emit("sum", minus_zero_point(data, zeros[0], -1, "int32").tensor, axis=(attrs["data_layout"].index("C"),), keepdims=True)
    window = np.ones([1 if letter in "OI" else size for letter, size in zip(attrs["kernel_layout"], integers.shape, strict=True)], np.int32)
    sums = emit(f"nn.{name}", of_pixels, constant(window), **attrs)
    # Channels are multiplied, so that fusion has this product with the larger convolution.
    by_channel = constant(np.broadcast_to(weight_zero, integers.shape[axis]))
    return emit("subtract", total, emit("multiply", sums, along(by_channel, total, output.index("C"))))


def _of_two(name: str, data: Tensor, weight: Tensor, zeros: tuple[Tensor, Tensor], attrs: dict[str, Any]) -> Tensor:
    """The product of two tensors of bytes, unsigned ones by signed ones. What the zero points z add is subtracted:

    sum (a - za) (b - zb) = sum a b - za sum (b - zb) - zb sum a
    """
    (a, data_zero), (b, weight_zero) = _with_sign(data, zeros[0], False), _with_sign(weight, zeros[1], True)
    transposes = attrs.get("transpose_a", False), attrs.get("transpose_b", name == "dense")
    found = Term(emit(f"nn.{name}", a, b, **attrs))
    if not is_zero(data_zero):
        columns = _sums(minus_zero_point(b, weight_zero, -1, "int32").tensor, -2, transposes[1])
        found -= columns * Term(cast(reshape(data_zero, ()), "int32"))
    if not is_zero(weight_zero):
        found -= _sums(cast(a, "int32"), -1, transposes[0]) * Term(cast(reshape(weight_zero, ()), "int32"))
    return found.tensor


def _sums(x: Tensor, axis: int, is_transposed: bool) -> Term:
    """Sums of matrices along -2 or -1, which is the other axis of transposed matrices; the axis stays, of size 1."""
    found = emit("sum", x, axis=(-3 - axis if is_transposed else axis,), keepdims=True)
    return Term(emit("transpose", found, axes=(*range(x.rank - 2), x.rank - 1, x.rank - 2)) if is_transposed else found)


def _with_sign(data: Tensor, zero: Tensor, signed: bool) -> tuple[Tensor, Tensor]:
    """Bytes that are signed or not, and their zero point: both are moved by 128 where they are the other way."""
    if (data.dtype == "int8") == signed:
        return data, zero
    dtype, half = ("int8", 128) if signed else ("uint8", -128)
    flipped = emit("bitwise_xor", data, constant(half, data.dtype))
    wide = Term(cast(zero, "int32")) - Term(constant(half, "int32"))
    return cast(flipped, dtype), wide.tensor


def _product(name: str, operands: str, order: str, attributes: Mapping[str, Any], weight_layout: str = "") -> None:
    """Registers a product of data and a weight without their zero points: the padding of a convolution is that of the data.

    Args:
      weight_layout: of the operator on real numbers, where there are several of a quantized weight.
    """
    plain = name.removeprefix("contrib_").removesuffix("_pack")

    @composed(f"qnn.{name}", order, operands=operands, attributes=attributes)
    def product(data: Tensor, weight: Tensor, data_zero: Tensor, weight_zero: Tensor, *scales: Tensor, **attrs: Any) -> Tensor:
        for what, operand in (("data", data), ("weight", weight)):
            check(not operand.type.is_float, what, "integers", operand.dtype)
        layout = attrs.pop("weight_layout", weight_layout)
        if layout != weight_layout:
            weight = emit("layout_transform", weight, src_layout=layout, dst_layout=weight_layout)
        axis = 0 if plain == "dense" else -1
        if plain == "matmul":
            axis = 0 if attrs["transpose_b"] else 1
        elif "kernel_layout" in attrs:
            axis = attrs["kernel_layout"].index("O")
        has_constant_weight = weight.is_known and weight_zero.is_known and data.dtype in BYTES and attrs["out_dtype"] == "int32"
        if has_constant_weight and not plain.endswith("transpose") and plain != "batch_matmul":
            integers = centred(weight.array, weight_zero.array, axis)
            if integers is None:
                found = _of_wide_weights(plain, data, weight, (data_zero, weight_zero), axis, attrs)
            else:
                found = _of_bytes(plain, data, weight, data_zero, integers, axis, attrs)
            if found is not None:
                return found
        are_bytes = data.dtype in BYTES and weight.dtype in BYTES and attrs["out_dtype"] == "int32"
        if plain in _MATRICES and are_bytes and data.rank > 1 and data_zero.type.num_elements == weight_zero.type.num_elements == 1:
            return _of_two(plain, data, weight, (data_zero, weight_zero), attrs)
        if not (data.dtype in BYTES and weight.dtype == "int8" and is_zero(data_zero) and is_zero(weight_zero)):
            wide = "int64" if attrs["out_dtype"] == "int64" else "int32"
            data = minus_zero_point(data, data_zero, -1, wide).tensor
            weight = minus_zero_point(weight, weight_zero, axis, wide).tensor
        return _plain(plain, data, weight, attrs)


for _n in (1, 2, 3):
    _axes = "DHW"[3 - _n :]
    _layouts = {} if _n == 2 else {"strides": (1,) * _n, "padding": (0,) * _n, "dilation": (1,) * _n, "data_layout": f"NC{_axes}"}
    _own = {**_INT_CONV, **_layouts, "kernel_layout": f"OI{_axes}"}
    _product(f"conv{_n}d", f"data kernel {_QUANTIZED}", f"data kernel {_QUANTIZED} kernel_size channels {_CONV_ATTRS} out_dtype", _own)
    _product(
        f"conv{_n}d_transpose",
        f"data weight {_QUANTIZED}",
        f"data weight {_QUANTIZED} {_CONV_ATTRS} channels kernel_size output_padding out_dtype",
        {**_own, "output_padding": (0,) * _n, "kernel_layout": f"IO{_axes}"},
    )
_product("dense", f"data weight {_QUANTIZED}", "", _DENSE)
_product(
    "contrib_dense_pack",
    f"data weight {_QUANTIZED}",
    f"data weight {_QUANTIZED} weight_layout units out_dtype",
    {**_DENSE, "units": None, "weight_layout": "NC"},
    "NC",
)
_product("matmul", f"data weight {_QUANTIZED}", "", {"units": None, **_TRANSPOSED})
_product("batch_matmul", "x y x_zero_point y_zero_point x_scale y_scale", "", {**_TRANSPOSED, "transpose_b": True})
