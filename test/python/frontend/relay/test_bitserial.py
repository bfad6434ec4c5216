"""Packed bits and products of numbers of few bits, against counts of the bits that words have in common."""

import re

import numpy as np
import pytest
from expressions import both_ways
from oracle import values

from relayc import relay
from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.lowering import lower


def unknown_batch(*arrays):
    """Shapes of arrays, of which the first one's first axis is not known."""
    return [(relay.Any(), *arrays[0].shape[1:]), *(a.shape for a in arrays[1:])]


def packed(data, bits, pack_axis, bit_axis, dtype):
    """Planes of bits by numpy's own packing of bits."""
    planes = []
    for bit in range(bits):
        last = np.moveaxis(data >> bit & 1, pack_axis, -1).astype(np.uint8)
        words = np.ascontiguousarray(np.packbits(last, axis=-1)).view(np.dtype(dtype).newbyteorder(">")).astype(dtype)
        planes.append(np.moveaxis(words, -1, pack_axis))
    return np.stack(planes, bit_axis)


def counted(data, weight, unipolar):
    """The sum over pairs of planes of the bits that words [planes, words] have in common, less those that only the data has."""
    total = 0
    for d, x in enumerate(data):
        for w, y in enumerate(weight):
            common = sum(bin(int(v)).count("1") for v in x & y)
            alone = sum(bin(int(v)).count("1") for v in x & ~y) if unipolar else 0
            total += (common - alone) << (d + w)
    return total


@both_ways
@pytest.mark.parametrize(
    ("dtype", "bits", "pack_axis", "bit_axis", "pack_type"),
    [("int16", 1, 1, 4, "uint16"), ("uint8", 3, 1, 0, "uint8"), ("int32", 2, -1, 2, "uint32"), ("int8", 2, 3, 3, "uint64")],
)
def test_bitpack(dtype, bits, pack_axis, bit_axis, pack_type, run):
    axis, width = pack_axis % 4, np.iinfo(pack_type).bits
    data = values([2 * width if i == axis else 3 - i % 2 for i in range(4)], dtype, limit=None)
    attrs = {"bits": bits, "pack_axis": pack_axis, "bit_axis": bit_axis, "pack_type": pack_type}
    found = run(lambda x: relay.nn.bitpack(x, **attrs), data, shapes=unknown_batch(data))
    expected = packed(data, bits, axis, bit_axis, pack_type)
    assert found.dtype == pack_type
    np.testing.assert_array_equal(found, expected)


@both_ways
@pytest.mark.parametrize("unipolar", [True, False])
@pytest.mark.parametrize(("bits", "pack"), [((1, 1), "uint32"), ((2, 3), "uint8"), ((8, 8), "uint64")])
def test_bitserial_dense(unipolar, bits, pack, run):
    data, weight = values((3, 128), "int16", limit=None), values((5, 128), "int16", seed=1, limit=None)
    planes, words = (packed(a, n, 1, 1, pack) for a, n in zip((data, weight), bits, strict=True))
    attrs = {"units": 5, "data_bits": bits[0], "weight_bits": bits[1], "pack_dtype": pack, "out_dtype": "int32"}
    attrs |= {} if unipolar else {"unipolar": False}
    found = run(
        lambda x, *w: relay.stack([relay.nn.bitserial_dense(x, each, **attrs) for each in w], 0),
        data,
        weight,
        words,
        shapes=unknown_batch(data, weight, words),
    )
    np.testing.assert_array_equal(found, [[[counted(x, w, unipolar) for w in words] for x in planes]] * 2)


@pytest.mark.parametrize(("bits", "expected"), [((8, 7), ("ui8", "i8")), ((9, 7), ("i32", "i32")), ((8, 8), ("i32", "i32"))])
def test_bytes_hold_few_bits(bits, expected):
    """Weights of 8 bits are up to 255, which no signed byte holds."""
    x, w = relay.var("x", shape=(3, 32), dtype="int16"), relay.var("w", shape=(5, 32), dtype="int16")
    found = lower(relay.IRModule.from_expr(relay.nn.bitserial_dense(x, w, units=5, data_bits=bits[0], weight_bits=bits[1])))
    (line,) = (line for line in str(found).splitlines() if "nn_dense" in line)
    assert re.findall(r"tensor<\w+x(u?i\d+)>", line)[:2] == list(expected)


@both_ways
@pytest.mark.parametrize(("data_layout", "is_packed"), [("NCHW", True), ("NHWC", False), ("NHWC", True)])
@pytest.mark.parametrize("unipolar", [True, False])
def test_bitserial_conv2d(data_layout, is_packed, unipolar, run):
    """Padding has no bits: it counts nothing."""
    data, weight = values((2, 32, 5, 4), "int16", limit=None), values((3, 32, 3, 2), "int16", seed=1, limit=None)
    planes, words = packed(data, 2, 1, 1, "uint32"), packed(weight, 3, 1, 1, "uint32")
    around = np.pad(planes, [(0, 0)] * 3 + [(1, 0), (0, 1)])
    expected = np.zeros((2, 3, 2, 4), np.int16)
    for n, o, row, column in np.ndindex(expected.shape):
        window = around[n, :, :, 2 * row : 2 * row + 3, column : column + 2]
        expected[n, o, row, column] = counted(window.reshape(2, -1), words[o].reshape(3, -1), unipolar)
    attrs = {"strides": (2, 1), "padding": (1, 0, 0, 1), "channels": 3, "kernel_size": (3, 2), "activation_bits": 2, "weight_bits": 3}
    given = np.moveaxis(words, 1, 4) if is_packed else weight
    if data_layout == "NHWC":
        data, expected = data.transpose(0, 2, 3, 1).copy(), expected.transpose(0, 2, 3, 1)
        given = given.transpose(2, 3, 1, 0, *range(4, given.ndim)).copy()
        attrs |= {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    given = np.ascontiguousarray(given)
    attrs |= {} if unipolar else {"unipolar": False}
    found = run(lambda x, w: relay.nn.bitserial_conv2d(x, w, **attrs), data, given, shapes=unknown_batch(data, given))
    assert found.dtype == np.int16
    np.testing.assert_array_equal(found, expected)


def test_errors():
    x = relay.var("x", shape=(4, 20), dtype="int16")
    with pytest.raises(RelayError, match=r"axis 1 of data: expected a multiple of 32 \(uint32\), found 20"):
        relay.transform.InferTypeLocal(relay.nn.bitpack(x))
    with pytest.raises(RelayError, match="pack_type: expected one of uint8"):
        relay.transform.InferTypeLocal(relay.nn.bitpack(x, pack_type="int32"))
    words = relay.var("w", shape=(5, 2, 1), dtype="uint32")
    with pytest.raises(RelayError, match="axis 1 of the packed weight: expected weight_bits, 3, found 2"):
        relay.transform.InferTypeLocal(relay.nn.bitserial_dense(x, words, weight_bits=3))
    images, kernels = relay.var("i", shape=(1, 2, 4, 4), dtype="int16"), relay.var("k", shape=(3, 2, 3, 3), dtype="int16")
    for call in (
        relay.nn.bitserial_dense(x, relay.var("v", shape=(5, 20), dtype="int16"), pack_dtype="int32"),
        relay.nn.bitserial_conv2d(images, kernels, pack_dtype="int32"),
    ):
        with pytest.raises(RelayError, match="pack_dtype: expected one of uint8"):
            relay.transform.InferTypeLocal(call)


@pytest.mark.parametrize(("bits", "is_small"), [((8, 7), True), ((9, 7), False), ((8, 8), False)])
def test_numbers_of_few_bits_are_multiplied_as_bytes(bits, is_small):
    x, w = (relay.var(name, shape=(3, 32), dtype="int16") for name in "xw")
    product = relay.nn.bitserial_dense(x, w, data_bits=bits[0], weight_bits=bits[1], out_dtype="int32")
    text = str(lower(relay.transform.InferType()(relay.IRModule.from_expr(product))).module)
    assert ("xui8>, tensor<3x32xi8>) -> tensor<3x3xi32>" in text) == is_small
