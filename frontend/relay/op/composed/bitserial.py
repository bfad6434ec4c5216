"""Products of integers of few bits, and the packing of their bits into words.

A number of n bits is n planes of bits, each packed along an axis: the first element of a word is its highest bit. A sum over pairs of
planes of the bits that both have, weighted by powers of 2, is the product of the numbers, which is what the operators here compute.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from relayc.dialects.relay.errors import check
from relayc.frontend.converter import Tensor, axis_of, constant, emit
from relayc.frontend.relay.op.composed.registry import composed
from relayc.frontend.steps import binary, cast, multiply, reshape, subtract

_WORDS = ("uint8", "uint16", "uint32", "uint64")


def _word_bits(pack_type: str, name: str = "pack_dtype") -> int:
    check(pack_type in _WORDS, name, f"one of {', '.join(_WORDS)}", pack_type)
    return np.iinfo(pack_type).bits


def _along(values: np.ndarray, axis: int, rank: int, dtype: str) -> Tensor:
    """Numbers along an axis, as they broadcast to a tensor of this rank."""
    return constant(values.reshape([-1 if i == axis else 1 for i in range(rank)]), dtype)


@composed("nn.bitpack")
def bitpack(
    data: Tensor, *, bits: int = 1, pack_axis: int = 1, bit_axis: int = 2, pack_type: str = "uint32", name: str = "BitPack"
) -> Tensor:
    """The planes of the lowest bits along a new axis `bit_axis`, packed along `pack_axis`."""
    width, axis, shape = _word_bits(pack_type, "pack_type"), axis_of(pack_axis, data.rank), data.shape
    size, at = shape[axis], axis_of(bit_axis, data.rank + 1)
    check(isinstance(size, int) and size % width == 0, f"axis {axis} of data", f"a multiple of {width} ({pack_type})", size)
    apart = reshape(data, (*shape[:axis], size // width, width, *shape[axis + 1 :]))
    places = _along(np.arange(width)[::-1], axis + 1, apart.rank, pack_type)
    planes = []
    for bit in range(bits):
        ones = cast(binary("bitwise_and", binary("right_shift", apart, bit), 1), pack_type)
        planes.append(emit("sum", emit("left_shift", ones, places), axis=(axis + 1,)))
    return emit("stack", *planes, axis=at)


def _unpacked(words: Tensor, axis: int, bit_axis: int) -> Tensor:
    """The numbers, of int32, from words with their bit planes."""
    width, bits, rank = _word_bits(words.dtype, "weight"), words.shape[bit_axis], words.rank + 1
    spread = reshape(words, (*words.shape[: axis + 1], 1, *words.shape[axis + 1 :]))
    ones = emit("right_shift", spread, _along(np.arange(width)[::-1], axis + 1, rank, words.dtype))
    at = bit_axis + (bit_axis > axis)
    powers = _along(2 ** np.arange(bits), at, rank, "int32")  # type: ignore[arg-type] # the weight_bits
    numbers = emit("sum", emit("multiply", cast(binary("bitwise_and", ones, 1), "int32"), powers), axis=(at,))
    shape, first = numbers.shape, axis - (bit_axis < axis)
    return reshape(numbers, (*shape[:first], prod(shape[first : first + 2]), *shape[first + 2 :]))


def _factors(data: Tensor, weight: Tensor, bits: tuple[int, int], axes: tuple[int, int], unipolar: bool) -> tuple[Tensor, Tensor]:
    """The numbers of the data and of the weight: of a unipolar one each bit counts as 1 or -1. `axes` are those that a packed one has."""
    numbers = binary("bitwise_and", cast(data, "int32"), 2 ** bits[0] - 1)
    if weight.rank == data.rank:
        weights = binary("bitwise_and", cast(weight, "int32"), 2 ** bits[1] - 1)
    else:
        check(weight.shape[axes[1]] == bits[1], f"axis {axes[1]} of the packed weight", f"weight_bits, {bits[1]}", weight.shape[axes[1]])
        weights = _unpacked(weight, *axes)
    if unipolar:
        weights = subtract(multiply(weights, 2), 2 ** bits[1] - 1)
    if bits[0] <= 8 and bits[1] <= 7:  # which there are faster instructions for
        return cast(numbers, "uint8"), cast(weights, "int8")
    return numbers, weights


@composed("nn.bitserial_dense")
def bitserial_dense(
    data: Tensor,
    weight: Tensor,
    *,
    units: int | None = None,
    data_bits: int = 1,
    weight_bits: int = 1,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:
    """nn.dense of the lowest bits of data and of a weight [units, features], or one that is packed: [units, bits, words]."""
    _word_bits(pack_dtype)
    x, w = _factors(data, weight, (data_bits, weight_bits), (2, 1), unipolar)
    return cast(emit("nn.dense", x, w, units=units, out_dtype="int32"), out_dtype or data.dtype)


@composed("nn.bitserial_conv2d")
def bitserial_conv2d(
    data: Tensor,
    weight: Tensor,
    *,
    strides: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0),
    channels: int | None = None,
    kernel_size: Sequence[int] | None = (3, 3),
    activation_bits: int = 1,
    weight_bits: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:
    """nn.conv2d of the lowest bits of data and of a weight, OIHW for NCHW and HWIO for NHWC, or one that is packed along I, bits last."""
    _word_bits(pack_dtype)
    layouts = {"NCHW": "OIHW", "NHWC": "HWIO"}
    check(data_layout in layouts, "data_layout", "NCHW or NHWC", data_layout)
    kernel = layouts[data_layout]
    check(kernel_layout.rstrip("i") in (kernel, "OIHW"), "kernel_layout", f"{kernel} or {kernel}i", kernel_layout)
    x, w = _factors(data, weight, (activation_bits, weight_bits), (kernel.index("I"), 4), unipolar)
    attrs = {"strides": strides, "padding": padding, "channels": channels, "kernel_size": kernel_size}
    return cast(emit("nn.conv2d", x, w, **attrs, data_layout=data_layout, kernel_layout=kernel, out_dtype="int32"), out_dtype)
