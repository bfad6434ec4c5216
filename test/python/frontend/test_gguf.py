"""Quantised tensors of GGUF against what the package gguf makes of them."""

import gguf
import numpy as np
import onnx
import onnxruntime
import pytest
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter, quants
from oracle import values

import relayc
from relayc.frontend.common.dense_blocks import unpacked

KINDS = ("Q4_0", "Q8_0", "Q4_K")


def tensor(kind, rows, depth):
    """Bytes of a tensor as llama.cpp has it, each as likely as another, but for the float16 factors of a block."""
    rng = np.random.default_rng(depth)
    numbers, size = gguf.GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    data = rng.integers(0, 256, (rows, depth // numbers, size), np.uint8)
    factors = 2 if kind == "Q4_K" else 1
    data[..., : 2 * factors] = rng.normal(0, 0.01, (*data.shape[:2], factors)).astype("<f2").view(np.uint8)
    if kind == "Q4_K":
        data[:7, :, 4:6], data[:7, :, 6] = 0, 0xC0  # scales of zero, beside offsets that are not
        data[5, :, :2] = 0
    return data.reshape(rows, -1)


def floats(data, kind):
    """float32 [N, depth], and the largest in size of each block: digits and offsets round in units of it."""
    found = quants.dequantize(data, GGMLQuantizationType[kind])
    return found, np.abs(found).reshape(len(found), -1, 32).max(2).repeat(32, 1).astype(np.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_tensor(kind):
    data = tensor(kind, 24, 512)
    weights = relayc.gguf_weights(data, kind)
    numbers = unpacked(weights.packed, weights.bits, 32).astype(np.float32)
    centres = np.float32(1 << (weights.bits - 1)) if weights.zeros is None else weights.zeros[..., None]
    found = ((numbers - centres) * weights.scales[..., None]).reshape(24, 512)
    expected, largest = floats(data, kind)
    assert weights.scales.dtype == np.float32 and weights.block_size == 32
    # Products of 11 bits and 8 are exact. An offset is rounded as a multiple of the scale, and what its number is less than it.
    assert np.all(np.abs(found - expected) <= (2**-22 * largest if kind == "Q4_K" else 0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("depth", "columns"), [(256, 40), (2048, 40)])
def test_products(kind, depth, columns):
    data = tensor(kind, columns, depth)
    weights, (expected, largest) = relayc.gguf_weights(data, kind), floats(data, kind)
    program = relayc.Program()

    @program.function(x=relayc.TensorType(("n", depth), "float32"))
    def main(x):
        return program.op.nn.dense_blocks(x, *weights.operands(), **weights.attributes())

    module = relayc.compile(program.module())
    assert [kernel.schedule.split()[0] for kernel in module.kernels] == ["dense_blocks"]
    for rows in (1, 7, 130):
        x = values((rows, depth), "float32")
        found = module["main"](x)
        assert found.shape == (rows, columns)
        # Roundings of float32 that add up as a random walk would, to 2^4 of them at most for a depth of 2,048.
        assert np.all(np.abs(found - x.astype(np.float64) @ expected.T.astype(np.float64)) <= 2**-20 * (np.abs(x) @ largest.T))


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_inputs_of_matmulnbits(kind):
    data = tensor(kind, 20, 256)
    weights, x = relayc.gguf_weights(data, kind), values((5, 256), "float32")
    arrays = {"b": weights.packed, "scales": weights.scales} | ({} if weights.zeros is None else {"zeros": weights.zeros})
    attributes = {"K": 256, "N": 20, "bits": weights.bits, "block_size": weights.block_size}
    node = onnx.helper.make_node("MatMulNBits", ["x", *arrays], ["y"], domain="com.microsoft", **attributes)
    types = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", size]) for name, size in (("x", 256), ("y", 20))]
    graph = onnx.helper.make_graph([node], "g", types[:1], types[1:], [onnx.numpy_helper.from_array(a, n) for n, a in arrays.items()])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)
    expected, largest = floats(data, kind)
    for found in (relayc.compile(model)["main"](x), onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]):
        assert np.all(np.abs(found - x.astype(np.float64) @ expected.T) <= 2**-20 * (np.abs(x) @ largest.T))


def test_tensors_of_a_file(tmp_path):
    writer, weights = GGUFWriter(tmp_path / "model.gguf", "llama"), values((24, 96), "float32")
    for kind in ("Q4_0", "Q8_0"):
        kind_of = GGMLQuantizationType[kind]
        writer.add_tensor(kind, quants.quantize(weights, kind_of), raw_dtype=kind_of)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    for read in GGUFReader(tmp_path / "model.gguf").tensors:
        found = relayc.gguf_weights(read.data, read.tensor_type.name)
        assert (found.packed.shape[:2], found.bits) == ((24, 3), 4 if read.name == "Q4_0" else 8)


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (np.zeros((2, 210), np.uint8), "Q6_K", "expected a tensor of type Q4_0, Q8_0, Q4_K, found Q6_K"),
        (np.zeros((2, 36), np.float32), "Q4_0", r"expected uint8 .* for Q4_0, found float32\[2, 36\]"),
        (np.zeros((2, 143), np.uint8), "Q4_K", r"a multiple of 144 bytes for Q4_K, found uint8\[2, 143\]"),
        (np.zeros((3, 2, 34), np.uint8), "Q8_0", r"found uint8\[3, 2, 34\]"),
        (np.zeros((3, 0), np.uint8), "Q8_0", r"found uint8\[3, 0\]"),
    ],
)
def test_other_tensors_are_refused(data, kind, message):
    with pytest.raises(relayc.ModelError, match=message):
        relayc.gguf_weights(data, kind)
