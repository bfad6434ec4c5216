"""WeightOnlyToDenseBlocks: products of floats with constant weights that a model dequantises keep these as they are stored."""

import re

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import relayc
from relayc.frontend import import_model
from relayc.pipelines.context.target import Target
from relayc.pipelines.graph import weight_only_to_dense_blocks
from relayc.tools.quantize.result import LayerReport, Quantized

FLOATS = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16}
LIMITS = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128), "uint8": (0, 256), "int16": (-9000, 9000)}


def drawn(dtype, shape, seed=0):
    numbers = np.random.default_rng(seed).integers(*LIMITS[dtype], shape)
    return numbers.astype(getattr(ml_dtypes, dtype) if dtype.endswith("int4") else dtype)


def model_of(weight, scales, zeros, data, gemm=None, transposed=False, **attributes):
    """DequantizeLinear of constants, perhaps Transpose, then MatMul, or Gemm with the attributes `gemm`."""
    inputs = {"w": weight, "s": scales, **({} if zeros is None else {"z": zeros})}
    nodes = [
        helper.make_node("DequantizeLinear", list(inputs), ["f"], **attributes),
        *([helper.make_node("Transpose", ["f"], ["t"])] if transposed else []),
        helper.make_node("MatMul" if gemm is None else "Gemm", ["x", "t" if transposed else "f"], ["y"], **(gemm or {})),
    ]
    info = [helper.make_tensor_value_info(name, FLOATS[data.dtype], shape) for name, shape in (("x", data.shape), ("y", None))]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], [numpy_helper.from_array(v, name) for name, v in inputs.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def keeps_weights(module):
    return any("nn.dense_blocks" in kernel.ops for kernel in module.kernels)


def check(model, data, whole, in_blocks=True):
    """Sums of `depth` products in float32, in which a weight is off by some roundings of its scale, against the same weights as float64."""
    module = relayc.compile(model)
    assert keeps_weights(module) == in_blocks
    found = np.asarray(module["main"](data))
    expected = data.astype(np.float64) @ whole
    assert found.dtype == data.dtype and found.shape == expected.shape
    bound = np.abs(data).astype(np.float64) @ np.abs(whole)
    step = 2.0**-11 * np.abs(expected) if data.dtype == np.float16 else 0
    assert np.all(np.abs(found - expected) <= 2e-6 * (bound + bound.max()) + step)
    return found


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int8", "uint8"])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize(("depth", "units", "rows"), [(48, 16, 1), (64, 33, 5), (160, 5, 40)])
def test_a_scale_for_each_output(dtype, zero, depth, units, rows):
    weight, zeros = drawn(dtype, (depth, units)), drawn(dtype, (units,), 1) if zero else None
    scales = np.random.default_rng(2).random(units, np.float32) + 0.1
    data = np.random.default_rng(3).standard_normal((rows, depth), np.float32)
    whole = (weight.astype(np.float64) - (0 if zeros is None else zeros.astype(np.float64))) * scales
    model = model_of(weight, scales, zeros, data, axis=1)
    found = check(model, data, whole)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(found, session.run(None, {"x": data})[0], rtol=0, atol=1e-5 * np.abs(found).max())


@pytest.mark.parametrize("block", [16, 32, 48])
@pytest.mark.parametrize("dtype", ["int4", "uint8"])
@pytest.mark.parametrize("gemm", [None, {"transB": 1}])
def test_a_scale_for_each_block(block, dtype, gemm):
    """Along the inputs of MatMul, and of Gemm with transposed weights."""
    axis, shape = (1, (40, 96)) if gemm else (0, (96, 40))
    counts = [96 // block if i == axis else 40 for i in range(2)]
    weight, zeros = drawn(dtype, shape), drawn(dtype, counts, 1)
    scales = np.random.default_rng(2).random(counts, np.float32) + 0.1
    data = np.random.default_rng(3).standard_normal((7, 96), np.float32)
    whole = (weight.astype(np.float64) - zeros.astype(np.float64).repeat(block, axis)) * scales.repeat(block, axis)
    check(model_of(weight, scales, zeros, data, gemm, axis=axis, block_size=block), data, whole.T if gemm else whole)


@pytest.mark.parametrize("scaled", ["outputs", "inputs", "blocks"])
@pytest.mark.parametrize("gemm", [None, {"transB": 1}])
def test_weights_that_are_transposed(scaled, gemm):
    """Square ones, of which an axis may be taken for the other."""
    outputs = 1 if gemm else 0
    axis, block = outputs if scaled == "outputs" else 1 - outputs, 32 if scaled == "blocks" else 1
    counts = [64 // block if i == axis else 64 if scaled == "blocks" else 1 for i in range(2)]
    weight, scales = drawn("int8", (64, 64)), np.random.default_rng(2).random(counts, np.float32) + 0.1
    data = np.random.default_rng(3).standard_normal((5, 64), np.float32)
    whole = weight * scales.repeat(block, axis).astype(np.float64)
    ways = {"block_size": block} if scaled == "blocks" else {}
    model = model_of(weight, scales if ways else scales.reshape(-1), None, data, gemm, transposed=True, axis=axis, **ways)
    check(model, data, whole if gemm else whole.T, scaled != "inputs")


def test_blocks_that_differ_in_one_output_alone():
    weight, scales = drawn("int4", (96, 20)), np.full((3, 20), 0.5, np.float32)
    scales[1, 7] = 0.25
    data = np.random.default_rng(3).standard_normal((2, 96), np.float32)
    check(model_of(weight, scales, None, data, axis=0, block_size=32), data, weight.astype(np.float64) * scales.repeat(32, 0))


def test_one_scale():
    weight, data = drawn("int8", (64, 24)), np.random.default_rng(3).standard_normal((2, 3, 64), np.float32)
    check(model_of(weight, np.float32(0.25), np.int8(3), data), data, (weight.astype(np.float64) - 3) * 0.25)


@pytest.mark.parametrize(("zero", "dtype"), [(-3, "f32"), (-2, "ui8"), (127, "ui8")])
def test_zero_points_are_bytes_where_they_fit(zero, dtype):
    """They are counted from the least number of two bits, -2."""
    weight = np.tile(np.arange(-2, 2, dtype=np.int8), (64, 6))
    model = model_of(weight, np.float32(0.25), np.int8(zero), np.ones((2, 64), np.float32))
    (line,) = [line for line in str(weight_only_to_dense_blocks(import_model(model))).splitlines() if "nn_dense_blocks" in line]
    assert re.search(r"\((.*)\) -> ", line)[1].endswith(f"x{dtype}>")


def test_tables_have_the_sensitivity_and_the_times_of_layers_where_any_is_known():
    known = ("a", (0.25, None, None)), ("b", (None, 2e-6, 1e-6))
    layers = [LayerReport(name, "MatMul", "int8", 40.0, None, rate, 8000, 2000, *times) for name, (rate, *times) in known]
    for chosen, rates, times in (
        (layers, ["25.00%", "", ""], ["", "2.0", ""]),
        (layers[:1], ["25.00%", ""], None),
        (layers[1:], None, ["2.0", ""]),
    ):
        columns = {column.header: [*column.cells] for column in Quantized(onnx.ModelProto(), chosen).table().columns}
        assert (columns.get("sensitivity"), columns.get("us")) == (rates, times) and columns["bytes"][-1] == f"{8 * len(chosen)}.0 k"


@pytest.mark.parametrize("zero", [-100, 127])
def test_zero_points_far_from_the_numbers(zero):
    """Two bits hold the numbers, and a byte does not hold the distance to every zero point."""
    weight = np.random.default_rng(0).integers(1, 3, (64, 24)).astype(np.int8)
    data = np.random.default_rng(3).standard_normal((2, 64), np.float32)
    check(model_of(weight, np.float32(0.25), np.int8(zero), data), data, (weight.astype(np.float64) - zero) * 0.25)


def test_halves():
    weight, scales = drawn("int8", (64, 24)), np.linspace(0.125, 0.5, 24).astype(np.float16)
    data = np.random.default_rng(3).standard_normal((3, 64)).astype(np.float16)
    check(model_of(weight, scales, None, data, axis=1), data, weight.astype(np.float64) * scales.astype(np.float64))


RANGES = [(-2, 2, 2), (0, 4, 2), (5, 9, 2), (-3, 2, 4), (0, 5, 4), (-8, 8, 4), (0, 16, 4), (-9, 8, 8), (0, 17, 8)]


@pytest.mark.parametrize(("low", "high", "bits"), RANGES)
def test_as_few_bits_as_the_numbers_need(low, high, bits):
    weight = np.random.default_rng(0).integers(low, high, (128, 64)).astype(np.int8)
    weight[0, :2] = low, high - 1
    data = np.random.default_rng(3).standard_normal((2, 128), np.float32)
    model = model_of(weight, np.float32(0.5), None, data)
    assert f"bits = {bits} : " in str(weight_only_to_dense_blocks(import_model(model)))
    check(model, data, weight * 0.5)


@pytest.mark.parametrize("rows", [1, 2, 20])
@pytest.mark.parametrize("zero", [0, 8, 108, 247, 255])
def test_narrow_ranges_around_a_zero_with_data_of_one_sign(zero, rows):
    """17 numbers of 8 bits: where the zero is far from the middle of what is stored, its product with the sum of the data cancels bits."""
    low = min(max(zero - 8, 0), 239)
    weight = np.random.default_rng(0).integers(low, low + 17, (512, 48)).astype(np.uint8)
    weight[0, :2] = low, low + 16
    data = np.random.default_rng(3).random((rows, 512), np.float32) + 1
    check(model_of(weight, np.float32(0.5), np.uint8(zero), data), data, (weight.astype(np.float64) - zero) * 0.5)


@pytest.mark.parametrize(
    ("dtype", "axis", "block"),
    [("int8", 0, 0), ("int4", 0, 8), ("int16", 1, 0), ("int8", 1, 0)],
)
def test_weights_that_are_floats_in_the_program(dtype, axis, block):
    """A scale for each input, blocks that are too small, numbers of 16 bits; and a depth of no whole blocks."""
    depth = 40 if (dtype, axis) == ("int8", 1) else 64
    weight = drawn(dtype, (depth, 32))
    counts = (depth // block, 32) if block else (weight.shape[axis],)
    scales = np.random.default_rng(2).random(counts, np.float32) + 0.1
    data = np.random.default_rng(3).standard_normal((3, depth), np.float32)
    along = scales.repeat(block, 0) if block else scales.reshape((-1, 1) if axis == 0 else (1, -1))
    model = model_of(weight, scales, None, data, axis=axis, **({"block_size": block} if block else {}))
    check(model, data, weight * along.astype(np.float64), False)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_programs_for_gpus_read_floats(target):
    weight, data = drawn("int8", (64, 32)), np.zeros((3, 64), np.float32)
    mod = import_model(model_of(weight, np.float32(0.5), None, data))
    with relayc.PassContext(config={"target": Target(target)}):
        assert ("dense_blocks" in str(weight_only_to_dense_blocks(mod))) == (target == "cpu")


@pytest.mark.parametrize(("precision", "level"), [("f32", 0), ("bf16", 3)])
def test_a_precision_is_the_least_accuracy_of_the_products(precision, level):
    weight, data = drawn("int8", (64, 24)), np.random.default_rng(3).standard_normal((5, 64), np.float32)
    model = model_of(weight, np.float32(0.25), np.int8(3), data)
    module = relayc.compile(model, target="cpu -mcpu=sapphirerapids", precision=precision, cache=False, keep_ir=True)
    assert f"accuracy_level = {level} " in module.ir["relay"]
