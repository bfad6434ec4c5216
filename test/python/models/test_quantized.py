"""Quantised ONNX models against ONNX Runtime.

Kernels are checked within one step of the output's scale. Sums are exact in both, but ONNX Runtime rounds a fused operator once and the
unfused ones several times, so that a value halfway between two steps may go either way. Whole networks are compared statistically: a step
of difference in one layer is one of many in the next. Models of onnxruntime.quantization are calibrated on seeded random inputs.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from oracle import needs_avx512, needs_exact_bytes

import relayc
from relayc.pipelines.context.target import Target
from relayc.runtime import TensorSpec
from relayc.tools.inputs import random_inputs

MODELS = Path(relayc.__path__[0]) / "test" / "models"
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8}


class Graph:
    """An ONNX graph under construction: nodes in order, constants by value."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, operator: str, *inputs: Any, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Inputs are names, or arrays that become constants; gives the name of the output, or a list of several."""
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        found = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, names, found, domain=domain, **attributes))
        return found[0] if outputs == 1 else found

    def quantized(self, x: str, scale: float, zero: Any) -> str:
        return self.node("QuantizeLinear", x, np.float32(scale), zero)

    def dequantized(self, x: Any, scale: Any, zero: Any, **attributes: Any) -> str:
        return self.node("DequantizeLinear", x, np.float32(scale), zero, **attributes)

    def between(self, x: str, scale: float, zero: Any) -> str:
        """x as it is after it has been quantised."""
        return self.dequantized(self.quantized(x, scale, zero), scale, zero)

    def model(self, inputs: dict[str, tuple[Sequence[int | str], type]], output: str, shape: Sequence[int | str], dtype: type) -> bytes:
        def info(name: str, shape: Sequence[int | str], dtype: type) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, TYPES.get(np.dtype(dtype), TensorProto.INT32), shape)

        graph = helper.make_graph(
            self.nodes, "g", [info(name, *given) for name, given in inputs.items()], [info(output, shape, dtype)], self.constants
        )
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def reference(model: bytes, inputs: dict[str, np.ndarray], fused: bool = True) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    if not fused:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, inputs)[0]


def run(model: bytes, inputs: dict[str, np.ndarray], **options: Any) -> tuple[np.ndarray, relayc.Module]:
    module = relayc.compile(model, cache=False, keep_ir=True, **options)
    found, *_ = module.run(inputs).values()
    return np.asarray(found), module


def check(model: bytes, inputs: dict[str, np.ndarray], step: float, strategies: Sequence[str] = ("int8",)) -> relayc.Module:
    """Compares within a step, and expects kernels of strategies whose names begin so."""
    found, module = run(model, inputs)
    expected = reference(model, inputs)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=0, atol=step * 1.0001)
    assert np.mean(found != expected) < 0.01
    for start in strategies:
        assert any(kernel.schedule.startswith(start) for kernel in module.kernels), [kernel.schedule for kernel in module.kernels]
    return module


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bytes_of(shape: Sequence[int], dtype: type, seed: int = 0) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)


ACTIVATIONS = [np.uint8(0), np.uint8(131), np.int8(0), np.int8(-9)]
"""Zero points with their types."""
CONVOLUTIONS = {
    "1x1": ((24, 16, 1, 1), {}),
    "3x3": ((24, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
    "strided": ((24, 16, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "uneven": ((7, 16, 3, 2), {"pads": [0, 1, 2, 0], "dilations": [2, 1]}),
    "depthwise": ((16, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 16}),
    "grouped": ((24, 4, 3, 3), {"pads": [1, 1, 1, 1], "group": 4}),
}


def dequantized_weights(g: Graph, shape: Sequence[int], axis: int = 0, dtype: type = np.int8) -> tuple[str, np.ndarray]:
    """Weights with a scale for each channel along an axis; and the scales."""
    scales = np.linspace(0.002, 0.01, shape[axis], dtype=np.float32)
    zero = np.full(shape[axis], 128 if dtype is np.uint8 else 0, dtype)
    return g.dequantized(bytes_of(shape, dtype, 5), scales, zero, axis=axis), scales


@pytest.mark.parametrize("zero", ACTIVATIONS, ids=repr)
@pytest.mark.parametrize("form", CONVOLUTIONS)
def test_convolutions_between_quantised_tensors(form, zero):
    needs_exact_bytes()
    shape, attributes = CONVOLUTIONS[form]
    g = Graph()
    w, scales = dequantized_weights(g, shape)
    bias = g.dequantized(np.arange(shape[0], dtype=np.int32) * 100 - 300, scales * np.float32(0.02), np.zeros(shape[0], np.int32), axis=0)
    y = g.node("Conv", g.dequantized("x", 0.02, zero), w, bias, **attributes)
    model = g.model({"x": ((1, 16, 12, 11), zero.dtype.type)}, g.quantized(y, 0.05, zero), ("n", "c", "h", "w"), zero.dtype.type)
    check(model, {"x": bytes_of((1, 16, 12, 11), zero.dtype.type)}, 1, () if "group" in attributes else ("int8",))


@pytest.mark.parametrize("zeros", [np.uint8(131), np.int8(3), np.arange(96, 144, 2, np.uint8)], ids=["u8", "s8", "by channel"])
@pytest.mark.parametrize(("zero", "form"), [(ACTIVATIONS[1], "3x3"), (ACTIVATIONS[3], "strided"), (ACTIVATIONS[0], "1x1")])
def test_weights_that_need_nine_bits_without_their_zero_point(zeros, zero, form):
    """The batch is that of the call, and rows and columns of the weights differ in their sums."""
    needs_exact_bytes()
    shape, attributes = CONVOLUTIONS[form]
    g = Graph()
    w = g.dequantized(bytes_of(shape, zeros.dtype.type, 5), np.linspace(0.002, 0.01, 24) if zeros.ndim else 0.01, zeros, axis=0)
    y = g.quantized(g.node("Conv", g.dequantized("x", 0.02, zero), w, **attributes), 0.05, zero)
    model = g.model({"x": (("n", 16, 12, 11), zero.dtype.type)}, y, ("n", 24, "h", "w"), zero.dtype.type)
    module = check(model, {"x": bytes_of((3, 16, 12, 11), zero.dtype.type)}, 1)
    assert not [kernel.schedule for kernel in module.kernels if kernel.schedule.startswith("contraction")]


@pytest.mark.parametrize("limit", ["Relu", "Clip"])
def test_limits_before_the_result_is_quantised(limit):
    g = Graph()
    w, _ = dequantized_weights(g, (24, 16, 1, 1))
    y = g.node("Conv", g.dequantized("x", 0.02, np.uint8(100)), w)
    y = g.node("Relu", y) if limit == "Relu" else g.node("Clip", y, np.float32(-1), np.float32(4))
    model = g.model({"x": ((2, 16, 5, 7), np.uint8)}, g.quantized(y, 0.05, np.int8(3)), (2, 24, 5, 7), np.int8)
    module = check(model, {"x": bytes_of((2, 16, 5, 7), np.uint8)}, 1)
    assert len(module.kernels) == 1


@pytest.mark.parametrize("zero", ACTIVATIONS, ids=repr)
@pytest.mark.parametrize("weights", [np.int8, np.uint8])
def test_products_of_as_many_rows_as_a_call_gives(zero, weights):
    needs_exact_bytes()
    g = Graph()
    w, _ = dequantized_weights(g, (67, 33), 1, weights)
    y = g.node("Add", g.node("MatMul", g.dequantized("x", 0.02, zero), w), normal(33))
    model = g.model({"x": (("n", 67), zero.dtype.type)}, g.quantized(y, 0.05, zero), ("n", 33), zero.dtype.type)
    module = relayc.compile(model, cache=False)
    assert module.kernels[0].schedule.startswith("int8")
    for rows in (1, 2, 5, 6, 7, 13, 64, 1025):
        x = bytes_of((rows, 67), zero.dtype.type, rows)
        np.testing.assert_allclose(module["main"](x).astype(int), reference(model, {"x": x}).astype(int), rtol=0, atol=1)


def test_general_products():
    needs_exact_bytes()
    g = Graph()
    w, scales = dequantized_weights(g, (30, 40))
    bias = g.dequantized(np.arange(30, dtype=np.int32) - 10, scales * np.float32(0.02), np.zeros(30, np.int32), axis=0)
    y = g.node("Gemm", g.dequantized("x", 0.02, np.uint8(128)), w, bias, transB=1)
    model = g.model({"x": ((9, 40), np.uint8)}, g.quantized(y, 0.05, np.uint8(7)), (9, 30), np.uint8)
    check(model, {"x": bytes_of((9, 40), np.uint8)}, 1)


def test_the_sum_of_two_quantised_tensors_reads_and_writes_bytes():
    g = Graph()
    left, right = g.dequantized("x", 0.0213, np.uint8(3)), g.dequantized("y", 0.0317, np.uint8(120))
    inputs = {"x": bytes_of((2, 8, 5, 7), np.uint8), "y": bytes_of((2, 8, 5, 7), np.uint8, 1)}
    total = g.quantized(g.node("Add", left, right), 0.0411, np.uint8(100))
    module = check(g.model({n: (v.shape, np.uint8) for n, v in inputs.items()}, total, (2, 8, 5, 7), np.uint8), inputs, 1, ())
    assert len(module.kernels) == 1


MOVES = {
    "largest": lambda g, x: g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "transposed": lambda g, x: g.node("Transpose", x, perm=[0, 2, 3, 1]),
    "reshaped": lambda g, x: g.node("Reshape", x, np.array([2, -1])),
    "joined": lambda g, x: g.node("Concat", x, x, axis=1),
    "cut": lambda g, x: g.node("Slice", x, np.array([1]), np.array([4]), np.array([2])),
}


@pytest.mark.parametrize("move", MOVES)
def test_elements_move_as_bytes(move):
    g = Graph()
    y = g.quantized(MOVES[move](g, g.dequantized("x", 0.02, np.uint8(9))), 0.02, np.uint8(9))
    x = bytes_of((2, 8, 9, 7), np.uint8)
    shape = [f"d{i}" for i in range(2 if move == "reshaped" else 4)]
    found, module = run(g.model({"x": (x.shape, np.uint8)}, y, shape, np.uint8), {"x": x})
    expected = reference(g.model({"x": (x.shape, np.uint8)}, y, shape, np.uint8), {"x": x})
    np.testing.assert_array_equal(found, expected)
    assert "f32" not in module.ir["relay"]


BEFORE_PRODUCTS = {
    **MOVES,
    "limited": lambda g, x: g.node("Relu", x),
    "enlarged": lambda g, x: g.node("Resize", x, "", np.array([1, 1, 2, 3], np.float32), mode="nearest"),
    "unequal": lambda g, x: g.node("Concat", x, g.dequantized("x", 0.05, np.uint8(9)), axis=1),
}


@pytest.mark.parametrize("move", BEFORE_PRODUCTS)
def test_products_after_moves_are_of_integers(move):
    """What other quantisers write: one QuantizeLinear before a pooling or a Flatten, none behind it. Two scales stay floats."""
    needs_exact_bytes()
    g = Graph()
    moved = BEFORE_PRODUCTS[move](g, g.dequantized("x", 0.02, np.uint8(109)))
    rows = g.node("Flatten", moved)
    depth = {"largest": 8 * 5 * 4, "cut": 8 * 3 * 7, "joined": 16 * 63, "unequal": 16 * 63, "enlarged": 48 * 63}.get(move, 8 * 63)
    w = g.dequantized(bytes_of((depth, 24), np.int8, 1), np.linspace(0.002, 0.01, 24), np.zeros(24, np.int8), axis=1)
    y = g.quantized(g.node("MatMul", rows, w), 0.5, np.uint8(120))
    x = bytes_of((2, 8, 9, 7), np.uint8)
    model = g.model({"x": (x.shape, np.uint8)}, y, (2, 24), np.uint8)
    module = check(model, {"x": x}, 1, ())
    assert any(kernel.schedule.startswith("int8") for kernel in module.kernels) == (move != "unequal")


def _transposed(g, w, scales, axis, perm):
    """Weights stored in another order, dequantised and transposed."""
    order = np.argsort(perm)
    return g.node("Transpose", g.dequantized(w.transpose(order), scales, np.zeros(len(scales), np.int8), axis=perm[axis]), perm=perm)


def _trained(g, w, scales, axis, perm):
    """Weights in floats, which are quantised in the model; a few are halfway between two steps, or beyond the last step."""
    steps = scales.reshape([-1 if i == axis else 1 for i in range(w.ndim)]).astype(np.float32)
    halves = np.where(w % 7 == 0, 0.5, 0.25) + np.where(w == 127, 9, 0)
    floats, zeros = ((w + halves) * steps).astype(np.float32), np.zeros(len(scales), np.int8)
    return g.dequantized(g.node("QuantizeLinear", floats, scales.astype(np.float32), zeros, axis=axis), scales, zeros, axis=axis)


@pytest.mark.parametrize("weights", [_transposed, _trained])
def test_weights_that_constants_make_stay_bytes(weights):
    needs_exact_bytes()
    g = Graph()
    scales, x = np.linspace(0.002, 0.01, 24), bytes_of((2, 16, 9, 7), np.uint8)
    w = weights(g, bytes_of((24, 16, 3, 3), np.int8), scales, 0, [3, 2, 0, 1])
    y = g.between(g.node("Conv", g.dequantized("x", 0.02, np.uint8(9)), w), 0.1, np.uint8(120))
    m = weights(g, bytes_of((24 * 35, 24), np.int8, 1), scales, 1, [1, 0])
    z = g.quantized(g.node("MatMul", g.node("Flatten", y), m), 2.0, np.uint8(120))
    module = check(g.model({"x": (x.shape, np.uint8)}, z, (2, 24), np.uint8), {"x": x}, 1)
    assert not [kernel.schedule for kernel in module.kernels if kernel.schedule.startswith("contraction")]


def test_other_scales_are_applied():
    """A tensor whose steps change is no movement."""
    g = Graph()
    y = g.quantized(g.node("Transpose", g.dequantized("x", 0.02, np.uint8(9)), perm=[1, 0]), 0.03, np.uint8(9))
    check(g.model({"x": ((4, 5), np.uint8)}, y, (5, 4), np.uint8), {"x": bytes_of((4, 5), np.uint8)}, 1, ())


@pytest.mark.parametrize("zero", [np.uint8(0), np.uint8(140)], ids=repr)
def test_quantised_operators(zero):
    needs_exact_bytes()
    g = Graph()
    scales = np.linspace(0.002, 0.01, 24, dtype=np.float32)
    w, b, none = bytes_of((24, 16, 3, 3), np.int8), np.arange(24, dtype=np.int32) * 50, np.zeros(24, np.int8)
    first = g.node("QLinearConv", "x", np.float32(0.02), zero, w, scales, none, np.float32(0.1), np.uint8(7), b, pads=[1, 1, 1, 1])
    pixels = g.node("Reshape", first, np.array([24, 35]))
    m, steps = bytes_of((35, 18), np.int8, 1), np.linspace(0.01, 0.03, 18, dtype=np.float32)
    second = g.node("QLinearMatMul", pixels, np.float32(0.1), np.uint8(7), m, steps, np.zeros(18, np.int8), np.float32(0.9), np.uint8(100))
    check(g.model({"x": ((1, 16, 5, 7), np.uint8)}, second, (24, 18), np.uint8), {"x": bytes_of((1, 16, 5, 7), np.uint8)}, 1)


@pytest.mark.parametrize("zero", [None, np.uint8(0), np.uint8(77)], ids=repr)
def test_integer_operators_are_exact(zero):
    needs_exact_bytes()
    g = Graph()
    zeros = [] if zero is None else [zero]
    sums = g.node("ConvInteger", "x", bytes_of((12, 16, 3, 3), np.int8), *zeros, pads=[1, 1, 1, 1])
    narrow = g.node("Cast", g.node("Mod", sums, np.int32(256)), to=TensorProto.UINT8)
    rows = g.node("MatMulInteger", g.node("Reshape", narrow, np.array([12, 63])), bytes_of((63, 20), np.int8, 1), *zeros)
    model = g.model({"x": ((1, 16, 9, 7), np.uint8)}, rows, (12, 20), np.int32)
    check(model, {"x": bytes_of((1, 16, 9, 7), np.uint8)}, 0)


def test_dynamically_quantised_products_of_any_number_of_rows():
    needs_exact_bytes()
    g = Graph()
    x, scale, zero = g.node("DynamicQuantizeLinear", "x", outputs=3)
    sums = g.node("MatMulInteger", x, bytes_of((67, 40), np.int8), zero, np.int8(0))
    factor = g.node("Mul", scale, np.float32(0.01))
    y = g.node("Add", g.node("Mul", g.node("Cast", sums, to=TensorProto.FLOAT), factor), normal(40))
    model = g.model({"x": ((1, "n", 67), np.float32)}, y, (1, "n", 40), np.float32)
    module = relayc.compile(model, cache=False)
    assert any(kernel.schedule.startswith("int8") for kernel in module.kernels)
    for rows in (1, 3, 6, 17, 128):
        x = normal(1, rows, 67, seed=rows)
        # The scale is computed alike but for a rounding, and integers of it are equal but for those halfway between two.
        np.testing.assert_allclose(module["main"](x), reference(model, {"x": x}), rtol=0, atol=0.05)


def test_weights_that_do_not_fit_in_signed_bytes_are_moved_by_their_zero_point():
    g = Graph()
    w = np.arange(256, dtype=np.uint8).reshape(16, 16)
    y = g.node("MatMulInteger", "x", w, np.uint8(3), np.uint8(10))
    check(g.model({"x": ((5, 16), np.uint8)}, y, (5, 16), np.int32), {"x": bytes_of((5, 16), np.uint8)}, 0)


def attention(g: Graph, heads: int, size: int, dtype: type, across: bool) -> str:
    """Attention of "q", "k" and "v" [batch, length, heads * size] with each tensor quantised, as quantisers write it; `across`: keys are
    transposed before they are dequantised, and not by the quantiser."""
    zero = (lambda v: dtype(v - 128)) if dtype is np.int8 else dtype
    steps: dict[str, tuple[float, Any]] = {"q": (0.02, zero(121)), "k": (0.03, zero(133)), "v": (0.025, zero(128))}

    def heads_of(name: str, axes: Sequence[int]) -> str:
        split = g.node("Reshape", g.dequantized(name, *steps[name]), np.array([0, -1, heads, size]))
        if across:
            return g.node("Transpose", split, perm=axes)
        return g.between(g.node("Transpose", g.between(split, *steps[name]), perm=axes), *steps[name])

    scores = g.node("MatMul", heads_of("q", [0, 2, 1, 3]), heads_of("k", [0, 2, 3, 1]))
    weights = g.node("Softmax", g.between(scores, 0.25, zero(140)), axis=-1)
    found = g.between(g.node("MatMul", g.between(weights, 1 / 256, zero(0)), heads_of("v", [0, 2, 1, 3])), 0.015, zero(125))
    moved = g.between(g.node("Transpose", found, perm=[0, 2, 1, 3]), 0.015, zero(125))
    return g.quantized(g.node("Reshape", moved, np.array([0, -1, heads * size])), 0.015, zero(125))


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_attention_is_two_products_of_integers(dtype, across):
    """Of any batch, and of other lengths of queries than of keys."""
    g = Graph()
    y = attention(g, 3, 20, dtype, across)
    shapes = {"q": ("b", "s", 60), "k": ("b", "t", 60), "v": ("b", "t", 60)}
    model = g.model({name: (shape, dtype) for name, shape in shapes.items()}, y, ("b", "s", 60), dtype)
    module = relayc.compile(model, cache=False)
    products = [kernel for kernel in module.kernels if "matmul" in kernel.name]
    assert len(products) == 2 and all(kernel.schedule.startswith("int8") for kernel in products), module.kernels
    for batch, queries, keys in ((1, 1, 1), (2, 1, 33), (1, 17, 5), (2, 70, 131)):
        inputs = {name: bytes_of((batch, queries if name == "q" else keys, 60), dtype, ord(name)) for name in shapes}
        found, expected = module["main"](*inputs.values()).astype(int), reference(model, inputs).astype(int)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1)
        assert np.mean(found != expected) < 0.01


@pytest.mark.parametrize("target", ["cpu -mcpu=x86-64-v3", "cpu -mcpu=x86-64-v4", "cpu -mcpu=sapphirerapids -emulate=true"])
def test_every_level_gives_the_same_bytes(target):
    if "x86-64-v4" in target:
        needs_avx512()
    g = Graph()
    w, _ = dequantized_weights(g, (40, 16, 3, 3))
    y = g.node("Conv", g.dequantized("x", 0.02, np.int8(-9)), w, pads=[1, 1, 1, 1])
    model = g.model({"x": ((1, 16, 9, 11), np.int8)}, g.quantized(y, 0.05, np.int8(3)), (1, 40, 9, 11), np.int8)
    x = {"x": bytes_of((1, 16, 9, 11), np.int8)}
    np.testing.assert_array_equal(run(model, x, target=Target(target))[0], run(model, x)[0])


# ---- whole networks ---------------------------------------------------------------------------------------------------------------------


class Inputs(CalibrationDataReader):
    def __init__(self, feeds: Sequence[dict[str, np.ndarray]]) -> None:
        self.feeds = iter(feeds)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.feeds, None)


LENGTH = 16
"""Symbolic dimensions that are no batch."""


def feeds(path: Path, count: int, first: int = 0) -> list[dict[str, np.ndarray]]:
    specs = [
        TensorSpec(v.name, tuple(d.dim_value or (LENGTH if i else 1) for i, d in enumerate(v.type.tensor_type.shape.dim)), _dtype(v).name)
        for v in onnx.load(path).graph.input
    ]
    return [random_inputs(specs, seed) for seed in range(first, first + count)]


def _dtype(value: onnx.ValueInfoProto) -> np.dtype:
    return helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)


FORMS = {
    "unsigned": {"activation_type": QuantType.QUInt8},
    "signed": {"activation_type": QuantType.QInt8},
    "operators": {"activation_type": QuantType.QUInt8, "quant_format": QuantFormat.QOperator},
}
STEPS = 3
"""Of the output, by which the two may differ in the mean."""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_statically_quantised_networks(name, form, tmp_path):
    needs_exact_bytes()
    source, path = MODELS / f"{name}.onnx", tmp_path / "quantised.onnx"
    settings = {"weight_type": QuantType.QInt8, "per_channel": True, **FORMS[form]}
    quantize_static(source, path, Inputs(feeds(source, 3)), **settings)
    inputs = feeds(source, 1, first=7)[0]
    found, module = run(path.read_bytes(), inputs, precision="f32")
    fused, plain = (reference(path.read_bytes(), inputs, fused) for fused in (True, False))
    step = np.abs(np.diff(np.unique(fused))).min()
    assert np.abs(found - fused).mean() <= max(STEPS * step, 2 * np.abs(plain - fused).mean())
    assert sum(kernel.schedule.startswith("int8") for kernel in module.kernels) >= 8


def test_a_dynamically_quantised_transformer(tmp_path):
    source, path = MODELS / "bert.onnx", tmp_path / "quantised.onnx"
    quantize_dynamic(source, path, weight_type=QuantType.QInt8)
    inputs = feeds(source, 1, first=7)[0]
    found, module = run(path.read_bytes(), inputs)
    expected = reference(path.read_bytes(), inputs)
    assert np.abs(found - expected).mean() <= 0.05 * expected.std()
    assert any(kernel.schedule.startswith("int8") for kernel in module.kernels)
