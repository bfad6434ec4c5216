"""Operators of ONNX Runtime (domain com.microsoft) against ONNX Runtime, each on random inputs, with known and with symbolic sizes."""

from functools import partial
from math import erf, sqrt

import numpy as np
import onnx
import onnxruntime
import pytest
from contrib_models import Arrays, cosines, examples, few_bits, floats, grouped, model, numbers, packed, rng, scaled
from onnx import helper
from onnxruntime.capi import onnxruntime_pybind11_state
from oracle import needs_exact_bytes

import relayc
from relayc.frontend.onnx import OnnxError, from_onnx
from relayc.frontend.onnx.converters import CONVERTERS
from relayc.pipelines.evaluate.relay import RelayInterpreter


def oracle(proto, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)


def check(op, inputs: Arrays, rtol=1e-5, atol=2e-6, constants=(), steps=0, symbols=None, compiled=True, **given):
    """ONNX Runtime's result is ours, compiled or interpreted: floats within the rounding of float32 sums, quantised numbers but for
    `steps`."""
    feeds = {name: a for name, a in inputs.items() if a is not None and name not in constants}
    expected = oracle(model(op, inputs, constants=constants, **given), feeds)
    proto = model(op, inputs, constants=constants, symbols=symbols, **given)
    main = relayc.compile(proto)["main"] if compiled else partial(RelayInterpreter(from_onnx(proto)), "main")
    found = main(*feeds.values()) if compiled else main(list(feeds.values()))
    for y, z in zip(found if isinstance(found, (tuple, list)) else [found], expected, strict=True):
        assert (y.dtype, y.shape) == (z.dtype, z.shape)
        if z.dtype.kind == "f":
            np.testing.assert_allclose(y, z, rtol, atol)
        else:
            assert np.abs(y.astype(np.int64) - z.astype(np.int64)).max(initial=0) <= steps


def run(op, inputs: Arrays, **attributes):
    return relayc.compile(model(op, inputs, **attributes))["main"](*inputs.values())


# ---- activations and normalisations ---------------------------------------------------------------------------------------------------


def test_quantised_numbers_and_back():
    zero = np.arange(3, dtype=np.uint8) + 7
    check("QuantizeLinear", {"x": floats(2, 3, 5), "scale": np.float32([0.02, 0.01, 0.03]), "zero": zero}, axis=-2)
    check("DequantizeLinear", {"x": numbers(2, 3, 5), "scale": np.float32([0.02, 0.01, 0.03]), "zero": zero}, axis=1)


@pytest.mark.parametrize("op", ["Gelu", "FastGelu"])
def test_activations(op):
    # ONNX Runtime's tanh and erf are approximations to about 1e-6.
    check(op, {"x": floats(3, 7, 20, scale=3)}, atol=5e-6, symbols={3: "n", 7: "m"})


def test_quick_gelu():
    x = floats(3, 7, 20, scale=3)  # ONNX Runtime's sigmoid is off by up to 2e-5 here
    expected = x / (1 + np.exp(-1.5 * x.astype(np.float64)))
    np.testing.assert_allclose(relayc.compile(model("QuickGelu", {"x": x}, alpha=1.5))["main"](x), expected, 1e-5, 1e-6)


@pytest.mark.parametrize("op", ["BiasGelu", "FastGelu"])
def test_activations_with_a_bias(op):
    check(op, {"x": floats(2, 5, 16, scale=2), "bias": floats(16)}, atol=5e-6)


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("skip", [(2, 5, 16), (1, 5, 16), (5, 16)])
def test_norms_with_a_skip(op, bias, skip):
    inputs = {"x": floats(2, 5, 16), "skip": floats(*skip, seed=1), "gamma": floats(16)}
    if op == "SkipLayerNormalization":
        inputs["beta"] = floats(16, seed=2)
    inputs["bias"] = floats(16, seed=3) if bias else None
    check(op, inputs, outputs=(0, 3), epsilon=1e-5, atol=5e-6, symbols={2: "batch", 5: "seq"})


@pytest.mark.parametrize("axis", [-1, 1])
def test_norms_in_the_domain_of_onnx(axis):
    x = floats(2, 5, 8)
    scale = floats(*x.shape[axis:], seed=1)
    check("SimplifiedLayerNormalization", {"x": x, "scale": scale}, domain="", axis=axis, outputs=2, onnx_opset=13)
    check("LayerNormalization", {"x": x, "scale": scale, "b": scale}, domain="", axis=axis, onnx_opset=13)


@pytest.mark.parametrize("with_segments", [False, True])
def test_embeddings(with_segments):
    ids = numbers(2, 5, dtype=np.int32, low=0, high=10)
    inputs = {
        "ids": ids,
        "segments": numbers(2, 5, dtype=np.int32, low=0, high=1) if with_segments else None,
        "words": floats(11, 8),
        "places": floats(6, 8),
        "kinds": floats(2, 8) if with_segments else None,
        "gamma": floats(8),
        "beta": floats(8, seed=1),
        "mask": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32),
    }
    check("EmbedLayerNormalization", inputs, outputs=3, epsilon=1e-5, atol=5e-6, symbols={5: "seq"})


# ---- products and convolutions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [{}, {"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1}, {"transBatchA": 1, "transBatchB": 1}])
def test_products_of_transposed_operands(flags):
    a, b = floats(2, 3, 4, 5), floats(2, 3, 5, 6)
    if flags.get("transBatchA"):
        a, b = a.transpose(2, 0, 1, 3).copy(), b.transpose(2, 0, 1, 3).copy()
    a = np.ascontiguousarray(a.swapaxes(-1, -2)) if flags.get("transA") else a
    b = np.ascontiguousarray(b.swapaxes(-1, -2)) if flags.get("transB") else b
    check("FusedMatMul", {"a": a, "b": b}, alpha=0.5, symbols={2: "batch", 4: "rows"}, **flags)


def test_products_transpose_no_operand_by_default():
    check("TransposeMatMul", {"a": floats(3, 3), "b": floats(3, 4)}, compiled=False)


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.3}), ("HardSigmoid", {"activation_alpha": 0.2, "activation_beta": 0.4})],
)
def test_gemm_with_an_activation(activation, parameters):
    check("FusedGemm", {"a": floats(3, 8), "b": floats(5, 8), "c": floats(5)}, transB=1, alpha=0.5, activation=activation, **parameters)


@pytest.mark.parametrize(("activation", "parameters"), [("Relu", []), ("Clip", [-0.5, 0.5]), ("LeakyRelu", [0.2]), ("Sigmoid", [])])
@pytest.mark.parametrize("added", [False, True])
def test_convolutions_with_an_activation(activation, parameters, added):
    z = floats(1, 4, 6, 6) if added else None
    inputs = {"x": floats(1, 3, 8, 8), "w": floats(4, 3, 3, 3, scale=0.3), "b": floats(4), "z": z}
    check("FusedConv", inputs, constants=("w", "b"), activation=activation, **({"activation_params": parameters} if parameters else {}))


# ONNX Runtime takes zero points of floats with 4 bits only.
BITS = [(bits, block, zeros) for bits, block in ((4, 16), (4, 32), (8, 32), (2, 32)) for zeros in (None, "packed")]
BITS += [(4, block, "floats") for block in (16, 32)]


@pytest.mark.parametrize(("bits", "block", "zeros"), BITS)
def test_products_with_weights_of_a_few_bits(bits, block, zeros):
    n, k = 24, 80
    count = -(-k // block)
    inputs = {
        "a": floats(2, 3, k),
        "b": packed(numbers(n, count, block, low=0, high=(1 << bits) - 1), bits),
        "scales": np.abs(floats(n, count, scale=0.1)),
        "zeros": None,
        "g_idx": None,
        "bias": floats(n),
    }
    if zeros == "packed":
        inputs["zeros"] = packed(numbers(n, count, low=0, high=(1 << bits) - 1), bits)
    elif zeros == "floats":
        inputs["zeros"] = floats(n, count)
    known = ("b", "scales", "zeros", "bias")
    check(
        "MatMulNBits", inputs, constants=known, K=k, N=n, bits=bits, block_size=block, rtol=1e-4, atol=1e-4, symbols={2: "batch", 3: "seq"}
    )


def test_halves_times_weights_of_a_few_bits():
    # Sums are of float32 here and there, and rounded once: to 2^-11.
    attributes = {"K": 64, "N": 20, "bits": 4, "block_size": 32}
    check(
        "MatMulNBits", few_bits(20, 64, 32, np.float16), constants=("b", "scales"), symbols={5: "seq"}, rtol=1e-3, atol=1e-3, **attributes
    )


def test_data_in_eight_bits_times_weights_of_a_few_bits():
    # Each rounds data by half a step at most, 1 / 254 of the largest number of a block, about 3; 64 weights are about 0.4 each: 0.3 if all
    # errors had one sign.
    attributes = {"K": 64, "N": 20, "bits": 4, "block_size": 32, "accuracy_level": 4}
    check("MatMulNBits", few_bits(20, 64, 32), constants=("b", "scales"), symbols={5: "seq"}, rtol=0, atol=0.25, **attributes)


@pytest.mark.parametrize(("depth", "grouped", "kept"), [(96, False, True), (80, False, True), (97, False, True), (96, True, False)])
def test_weights_stay_packed_where_their_blocks_are_in_order(depth, grouped, kept):
    groups = np.roll(np.arange(96, dtype=np.int32) // 32, 7) if grouped else None
    inputs = few_bits(40, depth, 32, g_idx=groups)
    known, attributes = ("b", "scales", "g_idx"), {"K": depth, "N": 40, "bits": 4, "block_size": 32}
    check("MatMulNBits", inputs, constants=known, rtol=1e-5, atol=1e-4, **attributes)
    module = relayc.compile(model("MatMulNBits", inputs, constants=known, **attributes))
    assert any("nn.dense_blocks" in kernel.ops for kernel in module.kernels) == kept


def test_zero_points_of_groups_of_weights():
    """By definition: ONNX Runtime takes others."""
    digits, zeros, groups = (numbers(*shape, low=0, high=high) for shape, high in (((5, 2, 32), 15), ((5, 2), 15), ((64,), 1)))
    inputs = {"a": floats(3, 64), "b": packed(digits, 4), "scales": np.abs(floats(5, 2)), "zeros": packed(zeros, 4)}
    inputs["g_idx"] = groups.astype(np.int32)
    proto = model("MatMulNBits", inputs, constants=tuple(inputs)[1:], K=64, N=5, bits=4, block_size=32)
    weights = (digits.reshape(5, 64).astype(np.float32) - zeros[:, groups]) * inputs["scales"][:, groups]
    (found,) = RelayInterpreter(from_onnx(proto))("main", [inputs["a"]])
    np.testing.assert_allclose(found, inputs["a"] @ weights.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("bits", "k"), [(2, 33), (4, 31), (8, 63), (4, 130)])
def test_blocks_of_which_the_last_one_is_not_whole(bits, k):
    """Digits beyond the last input are as random as the others, and no input meets one."""
    count = -(-k // 32)
    inputs = {
        "a": floats(7, k),
        "b": numbers(19, count, 32 * bits // 8),
        "scales": np.abs(floats(19, count, scale=0.1)),
        "zeros": packed(numbers(19, count, low=0, high=(1 << bits) - 1), bits),
    }
    attributes = {"K": k, "N": 19, "bits": bits, "block_size": 32}
    # Sums of 130 products in float32, of weights of up to 255 tenths of a step in 8 bits.
    check("MatMulNBits", inputs, constants=("b", "scales", "zeros"), symbols={7: "rows", k: "depth"}, rtol=1e-4, atol=1e-3, **attributes)


def test_another_depth_than_that_of_the_weights_is_refused():
    """Also one that ends in the last block."""
    inputs = {**few_bits(4, 96, 32), "a": floats(1, 90)}
    attributes = {"constants": ("b", "scales"), "K": 96, "N": 4, "block_size": 32}
    with pytest.raises(OnnxError, match=r"expected a tensor of shape \[1, 96\], found \[1, 90\]"):
        relayc.compile(model("MatMulNBits", inputs, **attributes))
    module = relayc.compile(model("MatMulNBits", inputs, symbols={90: "depth"}, **attributes))
    with pytest.raises(ValueError, match="96"):
        module["main"](inputs["a"])


def table(shape, block, dtype="uint8", bits=4, zeros=True, scale_dtype=np.float32):
    """Inputs of GatherBlockQuantized: numbers of `bits` bits in bytes, or integers of 4 bits; indices from either end."""
    blocks = (*shape[:-1], -(-shape[-1] // block))
    if dtype == "uint8":
        made = [packed(numbers(*s, low=0, high=(1 << bits) - 1, seed=i), bits) for i, s in enumerate((shape, blocks))]
    else:
        low = -8 if dtype == "int4" else 0
        made = [numbers(*s, dtype=np.int8, low=low, high=low + 15, seed=i).astype(dtype) for i, s in enumerate((shape, blocks))]
    return {
        "data": made[0],
        "indices": np.array([[2, 0], [1, -shape[0]], [-1, shape[0] - 1]], np.int64),
        "scales": np.abs(floats(*blocks, scale=0.1, dtype=scale_dtype)),
        "zeros": made[1] if zeros else None,
    }


ROWS = [((6, 32), (0, 1)), ((3, 2, 64), (0, -1)), ((3, 5, 48), (-3, 2)), ((7, 88), (0, 1)), ((5, 16), (0, 1))]
"""Shapes of tables and their axes: also an odd number of blocks in a row, and a last block that is not whole."""


@pytest.mark.parametrize(("shape", "axes"), ROWS)
@pytest.mark.parametrize(("dtype", "bits"), [("uint8", 4), ("uint8", 8), ("uint4", 4), ("int4", 4)])
@pytest.mark.parametrize("zeros", [False, True])
def test_rows_of_a_table_of_a_few_bits(shape, axes, dtype, bits, zeros):
    """A number less its zero point is exact, and its product with the scale is rounded once, here and there."""
    inputs = table(shape, 16, dtype, bits, zeros)
    attributes = {"block_size": 16, "gather_axis": axes[0], "quantize_axis": axes[1], "bits": bits}
    known = ("data", "scales", "zeros")
    check("GatherBlockQuantized", inputs, constants=known, symbols={3: "n"}, rtol=0, atol=0, compiled=False, **attributes)


def test_rows_of_a_table_of_halves():
    inputs = table((5, 64), 32, scale_dtype=np.float16)
    check("GatherBlockQuantized", inputs, constants=("data", "scales", "zeros"), rtol=0, atol=0, bits=4, block_size=32)


@pytest.mark.parametrize("bits", [4, 8])
def test_bytes_of_a_table_are_taken_as_they_are(bits):
    proto = model("GatherBlockQuantized", table((5, 64), 32, bits=bits), constants=("data", "scales", "zeros"), bits=bits, block_size=32)
    assert ("right_shift" in str(from_onnx(proto))) == (bits < 8)


def test_a_table_stays_packed():
    """As many bytes as the model: numbers, scales, and a byte for each zero point of 4 bits."""
    inputs = table((64, 256), 32)
    module = relayc.compile(
        model("GatherBlockQuantized", inputs, constants=("data", "scales", "zeros"), symbols={3: "n"}, bits=4, block_size=32)
    )
    assert sum(a.nbytes for a in module.params.values()) <= 64 * (256 // 2 + 8 * (4 + 1)) + 64
    with pytest.raises(ValueError, match="index 64 into axis 0"):
        module["main"](np.array([[0, 64]] * 3))


def test_experts():
    inputs = {
        "x": floats(6, 8),
        "router": floats(6, 4),
        "fc1": floats(4, 16, 8, scale=0.4),
        "b1": floats(4, 16),
        "fc2": floats(4, 8, 16, scale=0.4),
        "b2": floats(4, 8),
    }
    known = ("fc1", "b1", "fc2", "b2")
    for attributes in ({"k": 1}, {"k": 2, "activation_type": "gelu"}, {"k": 2, "normalize_routing_weights": 1, "activation_type": "silu"}):
        check("MoE", inputs, constants=known, atol=1e-5, symbols={6: "tokens"}, **attributes)


def test_experts_whose_gates_are_the_first_half():
    """ONNX Runtime on the CPU takes rows of gates and of factors in turns only: theirs is the result of the same rows in that order."""
    turns = {
        "x": floats(6, 8),
        "router": floats(6, 4),
        "fc1": floats(4, 16, 8),
        "b1": floats(4, 16),
        "fc2": floats(4, 8, 8),
        "b2": floats(4, 8),
    }
    halves = {n: np.concatenate([a[:, ::2], a[:, 1::2]], 1) if n in ("fc1", "b1") else a for n, a in turns.items()}
    apart = {n: a[:, ::2].copy() if n in ("fc1", "b1") else a for n, a in turns.items()}
    apart |= {"fc3": turns["fc1"][:, 1::2].copy(), "b3": turns["b1"][:, 1::2].copy()}
    attributes = {"k": 2, "activation_type": "swiglu", "activation_alpha": 1.5, "swiglu_limit": 1.0}
    feeds = {name: turns[name] for name in ("x", "router")}
    (wanted,) = oracle(model("MoE", turns, constants=list(turns)[2:], swiglu_fusion=1, **attributes), feeds)
    for given, fusion in ((halves, 2), (apart, 0)):
        found = relayc.compile(model("MoE", given, constants=list(given)[2:], swiglu_fusion=fusion, **attributes))["main"](*feeds.values())
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


def test_convolutions_of_channels_last():
    """ONNX Runtime's of channels second, and HardSwish by its definition."""
    x, w, b, z = floats(1, 3, 6, 7), floats(4, 3, 3, 2, scale=0.3), floats(4), floats(1, 4, 4, 6)
    (plain,), (added,) = (oracle(model("FusedConv", g), g) for g in ({"x": x, "w": w, "b": b}, {"x": x, "w": w, "b": b, "z": z}))
    x, z, plain, added = (np.ascontiguousarray(t.transpose(0, 2, 3, 1)) for t in (x, z, plain, added))
    found = run("NhwcConv", {"x": x, "w": w.transpose(0, 2, 3, 1).copy(), "b": b})
    np.testing.assert_allclose(found, plain, 1e-5, 1e-5)
    found = run("NhwcFusedConv", {"x": x, "w": w, "b": b, "z": z}, activation="HardSwish")
    np.testing.assert_allclose(found, added * np.clip(added / 6 + 0.5, 0, 1), 1e-5, 1e-5)


def test_numbers_by_definition():
    """Operators that ONNX Runtime has not on the CPU."""
    a, b = numbers(2, 5), numbers(5, seed=1)
    found = run("MulInteger", {"a": a, "a_zero": np.uint8(3), "b": b, "b_zero": np.uint8(9)})
    np.testing.assert_array_equal(found, (a.astype(np.int32) - 3) * (b.astype(np.int32) - 9))
    for dtype, wide in ((np.uint8, np.uint32), (np.int8, np.int32)):
        given = numbers(2, 3, 4, dtype=dtype)
        found = run("ReduceSumInteger", {"x": given}, axes=[-1, 0], keepdims=1)
        assert found.dtype == wide
        np.testing.assert_array_equal(found, given.sum((0, 2), wide, keepdims=True))
    x, bias = floats(3, 8), floats(8)
    gate = (x + bias)[:, 4:].astype(np.float64)
    expected = (x + bias)[:, :4] * gate * (1 + np.vectorize(erf)(gate / sqrt(2))) / 2
    np.testing.assert_allclose(run("BiasSplitGelu", {"x": x, "bias": bias}), expected, 1e-5, 1e-6)


def test_experts_with_a_factor_of_their_own():
    """All of them, by numpy: ONNX Runtime has no third matrix on the CPU."""
    x, router = floats(6, 8), floats(6, 4)
    first, second, third = floats(4, 5, 8), floats(4, 8, 5), floats(4, 5, 8, seed=1)
    bias, last = floats(4, 5), floats(4, 5, seed=1)
    inputs = {"x": x, "router": router, "fc1": first, "b1": bias, "fc2": second, "b2": None, "fc3": third, "b3": last}
    gate, factor = (np.einsum("th,eih->eti", x, w) + b[:, None] for w, b in ((first, bias), (third, last)))
    shares = np.exp(router) / np.exp(router).sum(1, keepdims=True)
    wanted = np.einsum("eti,ehi,te->th", np.maximum(gate, 0) * factor, second, shares)
    given = model("MoE", inputs, constants=list(inputs)[2:], k=4)
    np.testing.assert_allclose(relayc.compile(given)["main"](x, router), wanted, 1e-4, 1e-4)


# ---- attention ------------------------------------------------------------------------------------------------------------------------

MASKS = {
    "none": None,
    "ends": np.array([3, 5], np.int32),
    "ends and begins": np.array([4, 5, 1, 0], np.int32),
    "keys": np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], np.int32),
    "pairs": (rng(5).random((2, 5, 5)) > 0.3).astype(np.int32),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
def test_self_attention(mask, causal):
    inputs = {"x": floats(2, 5, 12), "w": floats(12, 24, scale=0.4), "b": floats(24), "mask": MASKS[mask]}
    check("Attention", inputs, constants=("w", "b"), num_heads=2, unidirectional=causal, atol=1e-5, symbols={5: "seq"})


def test_self_attention_with_a_past():
    inputs = {"x": floats(2, 3, 12), "w": floats(12, 36, scale=0.4), "b": floats(36), "mask": None, "past": floats(2, 2, 3, 4, 4)}
    check("Attention", inputs, constants=("w", "b"), outputs=2, num_heads=3, unidirectional=1, atol=1e-5)


def test_a_mask_of_four_dimensions_is_that_of_the_last_queries():
    """ONNX Runtime takes such masks on GPUs only: theirs is the result of the rows of 3 queries behind 4 of the past."""
    mask = (rng(5).random((2, 1, 9, 9)) > 0.3).astype(np.int32)
    inputs = {"x": floats(2, 3, 12), "w": floats(12, 36, scale=0.4), "b": floats(36)}
    found, expected = (inputs | {"mask": m, "past": floats(2, 2, 3, 4, 4)} for m in (mask, mask[:, 0, 4:7, :7]))
    wanted, _ = oracle(model("Attention", expected, outputs=2, num_heads=3), expected)
    y = relayc.compile(model("Attention", found, num_heads=3))["main"](*found.values())
    np.testing.assert_allclose(y, wanted, 1e-5, 1e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_attention_of_heads(bias):
    q, k, v = floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 8, seed=7)
    check(
        "MultiHeadAttention",
        {"q": q, "k": k, "v": v, "bias": floats(24) if bias else None},
        num_heads=2,
        atol=1e-5,
        symbols={3: "s", 5: "l"},
    )
    crossed = {name: np.ascontiguousarray(x.reshape(2, 5, 2, 4).swapaxes(1, 2)) for name, x in (("k", k), ("v", v))}
    check("MultiHeadAttention", {"q": q, **crossed, "bias": floats(24) if bias else None}, num_heads=2, atol=1e-5)


def test_attention_of_packed_heads():
    """ONNX Runtime takes packed inputs on GPUs only: theirs is the result of the parts."""
    q, k, v = (floats(2, 5, 8, seed=i) for i in range(3))
    (expected,) = oracle(model("MultiHeadAttention", {"q": q, "k": k, "v": v}, num_heads=2), {"q": q, "k": k, "v": v})
    of_heads = [x.reshape(2, 5, 2, 4) for x in (q, k, v)]
    for given in ({"q": np.stack(of_heads, 3)}, {"q": q, "k": np.stack(of_heads[1:], 3)}):
        found = relayc.compile(model("MultiHeadAttention", given, num_heads=2))["main"](*given.values())
        np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


@pytest.mark.parametrize("mask", [None, np.array([5, 3], np.int32), np.array([[1, 1, 1, 0, 0, 1, 1], [0, 1, 1, 1, 1, 1, 1]], np.int32)])
def test_attention_of_heads_with_a_cache(mask):
    inputs = {
        "q": floats(2, 3, 8),
        "k": floats(2, 3, 8, seed=1),
        "v": floats(2, 3, 8, seed=2),
        "bias": None,
        "mask": mask,
        "scores": floats(1, 2, 3, 7),
        "past_k": floats(2, 2, 4, 4),
        "past_v": floats(2, 2, 4, 4, seed=4),
    }
    check("MultiHeadAttention", inputs, outputs=3, num_heads=2, atol=1e-5, unidirectional=int(mask is None), symbols={3: "s"})


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(
    ("shape", "extra"), [((2, 3, 16), {}), ((2, 2, 3, 8), {}), ((2, 3, 16), {"num_heads": 2, "rotary_embedding_dim": 4})]
)
@pytest.mark.parametrize("places", [np.array([2], np.int64), np.array([[0, 1, 2], [5, 6, 7]], np.int64)])
def test_rotary_embeddings(interleaved, shape, extra, places):
    cosine, sine = cosines(10, extra.get("rotary_embedding_dim", 8) // 2)
    inputs = {"x": floats(*shape), "places": places, "cos": cosine, "sin": sine}
    check("RotaryEmbedding", inputs, constants=("cos", "sin"), interleaved=interleaved, **extra)


GROUPED = {
    "first call": grouped(2, 5, 0, [5, 5]),
    "first call of different lengths": grouped(2, 5, 0, [5, 3], total=5),
    "a token": grouped(2, 1, 6, [7, 7]),
    "a token, different lengths": grouped(2, 1, 6, [7, 4]),
    "packed": grouped(2, 1, 6, [7, 7], is_packed=True),
    "more tokens": grouped(1, 3, 6, [9]),
    "no rotation": grouped(1, 1, 6, [7], is_packed=True, rotary=False),
    "room in the cache": grouped(2, 1, 12, [7, 5], total=7),
}


@pytest.mark.parametrize(("case", "interleaved"), [(c, i) for c in GROUPED for i in (0, 1) if not i or c != "no rotation"])
def test_grouped_attention(case, interleaved):
    inputs, extra = GROUPED[case], {}
    if case.startswith("first"):
        extra["rtol"] = 1e-4
    rotary = int(inputs["cos"] is not None)
    check(
        "GroupQueryAttention",
        inputs,
        constants=("cos", "sin"),
        outputs=3,
        num_heads=4,
        kv_num_heads=2,
        do_rotary=rotary,
        rotary_interleaved=interleaved,
        atol=1e-5,
        symbols={6: "past", 12: "past"} if interleaved else None,
        **extra,
    )


@pytest.mark.parametrize("attributes", [{"softcap": 2.0}, {"local_window_size": 3}, {"smooth_softmax": 1}, {"scale": 0.7}])
def test_options_of_grouped_attention(attributes):
    check("GroupQueryAttention", grouped(2, 1, 6, [7, 7], rotary=False), outputs=3, num_heads=4, kv_num_heads=2, atol=1e-5, **attributes)


# ---- quantised numbers ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantised_arithmetic(op, dtype):
    a, b = scaled("a", numbers(3, 1, 40, dtype=dtype), 0.03, 5), scaled("b", numbers(5, 1, dtype=dtype, seed=1), 0.02, 9)
    # ONNX Runtime multiplies by a quotient of the scales, which may round to the other side of a half.
    check(op, {**a, **b, "c_scale": np.array(0.05, np.float32), "c_zero": np.array(7, dtype)}, steps=1)


@pytest.mark.parametrize(
    ("op", "attributes"), [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2}), ("QLinearSoftmax", {"axis": -1, "opset": 13})]
)
def test_quantised_activations(op, attributes):
    y = {"y_scale": np.array(1 / 256 if op != "QLinearLeakyRelu" else 0.05, np.float32), "y_zero": np.array(0, np.uint8)}
    check(op, {**scaled("x", numbers(3, 50), 0.04, 120), **y}, steps=1, constants=("x_scale", "x_zero", "y_scale", "y_zero"), **attributes)


@pytest.mark.parametrize("last", [0, 1])
def test_quantised_pooling(last):
    x = numbers(2, 8, 8, 4) if last else numbers(2, 4, 8, 8)
    inputs = {**scaled("x", x, 0.04, 120), "y_scale": np.array(0.03, np.float32), "y_zero": np.array(100, np.uint8)}
    given = {"channels_last": 1} if last else {}
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    check("QLinearGlobalAveragePool", inputs, steps=1, **given)
    check("QLinearAveragePool", inputs, steps=1, **window, **given)
    check("QLinearAveragePool", inputs, steps=1, **window, **given, count_include_pad=1)


def test_quantised_concatenation_and_choice():
    y = {"y_scale": np.array(0.05, np.float32), "y_zero": np.array(3, np.uint8)}
    a, b = scaled("a", numbers(2, 3, 4), 0.04, 10), scaled("b", numbers(2, 5, 4, seed=2), 0.08, 0)
    check("QLinearConcat", {**y, **a, **b}, axis=1, constants=("y_scale", "y_zero", "a_scale", "a_zero", "b_scale", "b_zero"), steps=1)
    c = scaled("c", numbers(2, 3, 4, seed=5), 0.08, 0)
    chosen = numbers(2, 3, 4, low=0, high=1).astype(bool)
    check("QLinearWhere", {"holds": chosen, **a, **c, **y}, constants=tuple({**a, **c, **y}.keys() - {"a", "c"}), steps=1)


@pytest.mark.parametrize("by_column", [False, True])
def test_products_of_integers(by_column):
    scale = np.abs(floats(6, scale=0.01)) if by_column else np.array(0.01, np.float32)
    zero = numbers(6, low=100, high=140) if by_column else np.array(120, np.uint8)
    a, b = numbers(2, 3, 8), numbers(8, 6)
    common = {"b_zero": zero, "bias": floats(6)}
    inputs = {"a": a, "b": b, "a_scale": np.array(0.02, np.float32), "b_scale": scale, "a_zero": np.array(7, np.uint8), **common}
    check("MatMulIntegerToFloat", inputs, symbols={3: "rows"})
    check("DynamicQuantizeMatMul", {"a": floats(2, 3, 8), "b": b, "b_scale": scale, **common}, rtol=1e-4, atol=1e-4, symbols={3: "rows"})


@pytest.mark.parametrize("quantised", [False, True])
def test_quantised_gemm(quantised):
    inputs = {
        **scaled("a", numbers(3, 8), 0.02, 7),
        **scaled("b", numbers(5, 8, dtype=np.int8), 0.03, 0),
        "c": numbers(5, dtype=np.int32, low=-3000, high=3000),
        "y_scale": np.array(0.1, np.float32) if quantised else None,
        "y_zero": np.array(120, np.uint8) if quantised else None,
    }
    check("QGemm", inputs, transB=1, alpha=1.0, steps=1)


def test_quantised_convolution_with_channels_last():
    needs_exact_bytes()
    inputs = {
        **scaled("x", numbers(1, 6, 6, 3), 0.02, 7),
        **scaled("w", numbers(4, 3, 3, 3, dtype=np.int8), 0.03, 0),
        "y_scale": np.array(0.2, np.float32),
        "y_zero": np.array(120, np.uint8),
        "b": numbers(4, dtype=np.int32, low=-3000, high=3000),
    }
    check("QLinearConv", inputs, constants=tuple(inputs.keys() - {"x"}), channels_last=1, pads=[1, 1, 1, 1], steps=1)


def test_quantised_attention():
    needs_exact_bytes()
    inputs = {
        "x": numbers(2, 5, 12),
        "w": numbers(12, 24, dtype=np.int8),
        "b": floats(24),
        "x_scale": np.array(0.02, np.float32),
        "w_scale": np.array(0.01, np.float32),
        "mask": np.array([3, 5], np.int32),
        "x_zero": np.array(128, np.uint8),
        "w_zero": np.array(0, np.int8),
    }
    check("QAttention", inputs, constants=("w", "b"), num_heads=2, atol=1e-5)


SCHEMAS = {s.name: s for s in onnxruntime_pybind11_state.get_all_operator_schema() if s.domain == "com.microsoft"}


@pytest.mark.parametrize("name", examples())
def test_numbers_and_flags_left_out_are_those_of_onnxruntime(name):
    """A flag without a default is 0."""
    given = examples()[name]
    expected = str(from_onnx(given))
    for node in given.graph.node:
        if node.domain != "com.microsoft":
            continue
        types = CONVERTERS[node.domain, node.op_type][0].attributes
        for key, attribute in SCHEMAS[node.op_type].attributes.items():
            default = onnx.AttributeProto.FromString(attribute._default_value)
            is_number = default.type == onnx.AttributeProto.INT or (not default.name and types.get(key) == (bool,))
            if is_number and key in types and not any(a.name == key for a in node.attribute):
                node.attribute.append(helper.make_attribute(key, default.i))
    assert str(from_onnx(given)) == expected
