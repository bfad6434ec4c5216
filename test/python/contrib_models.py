"""Models of one operator of ONNX Runtime (domain com.microsoft), and what such models are made of."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

Arrays = Mapping[str, np.ndarray | None]


def rng(seed=0):
    return np.random.default_rng(seed)


def floats(*shape, seed=0, scale=1.0, dtype=np.float32):
    return (rng(seed + sum(shape)).standard_normal(shape) * scale).astype(dtype)


def numbers(*shape, dtype=np.uint8, low=None, high=None, seed=0):
    info = np.iinfo(dtype)
    return rng(seed + len(shape)).integers(info.min if low is None else low, (info.max if high is None else high) + 1, shape).astype(dtype)


def model(op, inputs: Arrays, outputs=1, constants: Sequence[str] = (), symbols=None, onnx_opset=17, domain="com.microsoft", **attributes):
    """A model of one node; inputs of None are not given, those named in `constants` are known, outputs are numbers of those in use;
    `symbols` are names of sizes that are not known."""
    wanted = [f"y{i}" if i in ([*range(outputs)] if isinstance(outputs, int) else outputs) else "" for i in range(8)]
    while not wanted[-1]:
        wanted.pop()
    given = {name: array for name, array in inputs.items() if array is not None}
    node = helper.make_node(op, [name if name in given else "" for name in inputs], wanted, domain=domain, **attributes)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), [(symbols or {}).get(d, d) for d in a.shape])
        for name, a in given.items()
        if name not in constants
    ]
    known = [onnx.numpy_helper.from_array(given[name], name) for name in constants if name in given]
    graph = helper.make_graph([node], op, values, [onnx.ValueInfoProto(name=n) for n in wanted if n], known)
    opsets = [helper.make_opsetid("", onnx_opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def packed(weights, bits):
    """Numbers in bytes, the first in the lowest bits."""
    per = 8 // bits
    padded = np.pad(weights, [*[(0, 0)] * (weights.ndim - 1), (0, -weights.shape[-1] % per)]).reshape(*weights.shape[:-1], -1, per)
    return (padded.astype(np.uint32) << (np.arange(per) * bits)).sum(-1).astype(np.uint8)


def few_bits(n, k, block, dtype=np.float32, **more):
    """Inputs of MatMulNBits with 4 bits, a token and a few."""
    count = -(-k // block)
    weights = {"b": packed(numbers(n, count, block, low=0, high=15), 4), "scales": np.abs(floats(n, count, scale=0.1, dtype=dtype))}
    return {"a": floats(1, 5, k, dtype=dtype), **weights, "zeros": None, **more}


def cosines(rows, half):
    angles = np.outer(np.arange(rows), 1 / 10 ** np.arange(half)).astype(np.float32)
    return np.cos(angles), np.sin(angles)


def grouped(batch, rows, past, lengths, heads=4, groups=2, depth=16, is_packed=False, total=None, rotary=True, **extra):
    """Inputs of GroupQueryAttention; `lengths` are the numbers of keys of the entries of the batch."""
    cosine, sine = cosines(64, depth // 2)
    q, k, v = floats(batch, rows, heads * depth), floats(batch, rows, groups * depth, seed=1), floats(batch, rows, groups * depth, seed=2)
    return {
        "q": np.concatenate([q, k, v], -1) if is_packed else q,
        "k": None if is_packed else k,
        "v": None if is_packed else v,
        "past_k": floats(batch, groups, past, depth, seed=3),
        "past_v": floats(batch, groups, past, depth, seed=4),
        "seqlens": np.array(lengths, np.int32) - 1,
        "total": np.array(max(lengths) if total is None else total, np.int32),
        "cos": cosine if rotary else None,
        "sin": sine if rotary else None,
        **extra,
    }


def scaled(name, array, scale, zero):
    return {name: array, f"{name}_scale": np.array(scale, np.float32), f"{name}_zero": np.array(zero, array.dtype)}


def examples() -> dict[str, onnx.ModelProto]:
    """A small model of each operator that has arithmetic of its own, by a name that says which."""
    y = {"y_scale": np.array(0.05, np.float32), "y_zero": np.array(7, np.uint8)}
    a, b = scaled("a", numbers(2, 3, 4), 0.04, 10), scaled("b", numbers(2, 3, 4, seed=2), 0.08, 0)
    heads = {name: floats(2, 3, 8, seed=i) for i, name in enumerate("qkv")}
    experts = {
        "x": floats(6, 8),
        "router": floats(6, 4),
        "fc1": floats(4, 16, 8),
        "b1": floats(4, 16),
        "fc2": floats(4, 8, 16),
        "b2": floats(4, 8),
    }
    blocks = {"a": floats(3, 64), "b": packed(numbers(8, 2, 32, low=0, high=15), 4), "scales": floats(8, 2)}
    norm = {
        "x": floats(2, 5, 16),
        "skip": floats(2, 5, 16, seed=1),
        "gamma": floats(16),
        "beta": floats(16, seed=2),
        "bias": floats(16, seed=3),
    }
    turned = {"x": floats(2, 3, 16), "places": np.array([2], np.int64), **dict(zip(("cos", "sin"), cosines(10, 8), strict=True))}
    found = {
        "FusedMatMul": model("FusedMatMul", {"a": floats(2, 4, 3), "b": floats(2, 4, 5)}, transA=1, alpha=0.5),
        "FusedGemm": model("FusedGemm", {"a": floats(3, 8), "b": floats(5, 8), "c": floats(5)}, transB=1, activation="Relu"),
        "FusedConv": model("FusedConv", {"x": floats(1, 3, 8, 8), "w": floats(4, 3, 3, 3), "b": floats(4)}, activation="Relu"),
        "MatMulNBits": model("MatMulNBits", blocks, constants=("b", "scales"), K=64, N=8, bits=4, block_size=32),
        "MoE": model("MoE", experts, constants=("fc1", "b1", "fc2", "b2"), k=2),
        "SkipLayerNormalization": model("SkipLayerNormalization", norm, outputs=(0, 3)),
        "Attention": model("Attention", {"x": floats(2, 5, 12), "w": floats(12, 24), "b": floats(24)}, num_heads=2, unidirectional=1),
        "MultiHeadAttention": model("MultiHeadAttention", heads, outputs=3, num_heads=2),
        "GroupQueryAttention": model(
            "GroupQueryAttention", grouped(2, 1, 6, [7, 7]), constants=("cos", "sin"), outputs=3, num_heads=4, kv_num_heads=2, do_rotary=1
        ),
        "RotaryEmbedding": model("RotaryEmbedding", turned, constants=("cos", "sin")),
        "QLinearAdd": model("QLinearAdd", {**a, **b, **y}),
        "QLinearConcat": model("QLinearConcat", {**y, **a, **b}, axis=1),
        "QGemm": model(
            "QGemm",
            {**scaled("a", numbers(3, 8), 0.02, 7), **scaled("b", numbers(5, 8), 0.03, 0), "c": None, **y},
            transB=1,
        ),
        "DynamicQuantizeMatMul": model(
            "DynamicQuantizeMatMul", {"a": floats(3, 8), "b": numbers(8, 6), "b_scale": np.array(0.01, np.float32)}
        ),
        "QLinearAveragePool": model("QLinearAveragePool", {**scaled("a", numbers(1, 2, 8, 8), 0.04, 9), **y}, kernel_shape=[3, 3]),
    }
    return {f"com.microsoft.{name}": one for name, one in found.items()}
