"""Functions of 8-bit tensors as tables: all 256 numbers, by each set of instructions, against ONNX Runtime and the operators themselves."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import relayc
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target

LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "sapphirerapids")
FUNCTIONS = ("Sigmoid", "Tanh", "HardSwish", "Gelu", "Softplus", "Elu", "Silu")
COUNT = 64 * 17 + 37
"""Elements: whole vectors, and a remainder of several sizes."""


def target_of(mcpu: str) -> Target:
    found = Target("cpu", mcpu=mcpu, num_threads=2)
    return found if found.is_host else Target(found, emulate=True)


def quantised(function: str, dtype: str, shape: list[int | str], channels: int = 1) -> onnx.ModelProto:
    """quantise(f(dequantise(x))); Silu is x * dequantise(quantise(sigmoid(x))). With channels the result has scales along axis 0."""
    zero = 120 if dtype == "uint8" else -7
    constants = {
        "scale": np.float32(0.05),
        "zero": np.array(zero, dtype),
        "gate_scale": np.float32(1 / 255),
        "gate_zero": np.array(np.iinfo(dtype).min, dtype),
        "out_scale": np.float32(0.023) if channels == 1 else np.linspace(0.02, 0.03, channels).astype(np.float32),
        "out_zero": np.array(12, dtype) if channels == 1 else np.full(channels, 12, dtype),
    }
    nodes = [helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["a"])]
    if function == "Silu":
        nodes += [
            helper.make_node("Sigmoid", ["a"], ["b"]),
            helper.make_node("QuantizeLinear", ["b", "gate_scale", "gate_zero"], ["gate"]),
            helper.make_node("DequantizeLinear", ["gate", "gate_scale", "gate_zero"], ["c"]),
            helper.make_node("Mul", ["a", "c"], ["y"]),
        ]
    else:
        nodes.append(helper.make_node(function, ["a"], ["y"]))
    nodes.append(helper.make_node("QuantizeLinear", ["y", "out_scale", "out_zero"], ["out"], axis=0))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x, out = (helper.make_tensor_value_info(name, kind, shape) for name in ("x", "out"))
    tensors = [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()]
    graph = helper.make_graph(nodes, function, [x], [out], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def numbers(dtype: str, count: int = COUNT) -> np.ndarray:
    """All 256 numbers, several times, in an order that is not that of the table."""
    return (np.arange(count) * 37 % 256).astype(np.uint8).view(dtype).reshape(1, count)


def expected(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})[0]


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_table_gives_what_the_operators_give(function: str, dtype: str) -> None:
    model, x = quantised(function, dtype, [1, COUNT]), numbers(dtype)
    found = np.asarray(relayc.compile(model)["main"](x))
    with PassContext(disabled_pass=["ByteTables"]):
        plain = np.asarray(relayc.compile(model)["main"](x))
    np.testing.assert_array_equal(found, plain)
    np.testing.assert_array_equal(found, expected(model, x))


@pytest.mark.parametrize("mcpu", LEVELS)
def test_every_level_reads_the_table(mcpu: str) -> None:
    model = quantised("Silu", "int8", ["n", "m"])
    module = relayc.compile(model, target=target_of(mcpu))
    for count in (1, 63, 64, 65, COUNT):
        x = numbers("int8", count)
        np.testing.assert_array_equal(np.asarray(module["main"](x)), expected(model, x))


@pytest.mark.parametrize("mcpu", LEVELS)
@pytest.mark.parametrize("function", ["Silu", "Relu"])
def test_results_that_floats_read_are_tables_where_they_are_costly(function: str, mcpu: str) -> None:
    """The result, dequantised, is read by a mean and by a product, as in squeeze and excitation."""
    model = quantised(function, "uint8", [2, 37, 24])
    graph = model.graph
    graph.node.extend(
        [
            helper.make_node("DequantizeLinear", ["out", "out_scale", "out_zero"], ["wide"]),
            helper.make_node("ReduceMean", ["wide", "axis"], ["mean"]),
            helper.make_node("Mul", ["wide", "mean"], ["gated"]),
        ]
    )
    graph.initializer.append(numpy_helper.from_array(np.array([1]), "axis"))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("gated", onnx.TensorProto.FLOAT, [2, 37, 24]))
    x = numbers("uint8", 2 * 37 * 24).reshape(2, 37, 24)
    module = relayc.compile(model, target=target_of(mcpu))
    assert any("take" in kernel.ops for kernel in module.kernels) == (function == "Silu")
    np.testing.assert_allclose(np.asarray(module["main"](x)), expected(model, x), rtol=1e-5, atol=1e-6)


def test_scales_of_channels_are_no_table() -> None:
    model = quantised("Tanh", "uint8", [3, 300], channels=3)
    x = np.repeat(numbers("uint8", 300), 3, axis=0)
    np.testing.assert_array_equal(np.asarray(relayc.compile(model)["main"](x)), expected(model, x))


@pytest.mark.parametrize("mcpu", LEVELS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_tensors_of_256_bytes_are_read_inside_alone(dtype: str, mcpu: str) -> None:
    """They are no tables, and have the size of one."""
    x = numbers(dtype, 256).reshape(16, 16)
    nodes = [
        helper.make_node("Transpose", ["x"], ["turned"]),
        helper.make_node("Slice", ["x", "begin", "end", "axis", "step"], ["part"]),
        helper.make_node("Gather", ["flat", "at"], ["chosen"]),
        helper.make_node("Reshape", ["x", "all"], ["flat"]),
    ]
    nodes.insert(0, nodes.pop())
    at = np.array([[3, 250, 0], [17, 9, 255]], np.int64)
    given = {"begin": [1], "end": [16], "axis": [1], "step": [2], "all": [256]}
    constants = [numpy_helper.from_array(np.array(v, np.int64), k) for k, v in given.items()] + [numpy_helper.from_array(at, "at")]
    type_ = helper.np_dtype_to_tensor_dtype(x.dtype)
    outputs = [helper.make_tensor_value_info(name, type_, None) for name in ("turned", "part", "chosen")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", type_, x.shape)], outputs, constants)
    found = relayc.compile(helper.make_model(graph), target=target_of(mcpu))["main"](x)
    for result, right in zip(found, (x.T, x[:, 1::2], x.reshape(-1)[at]), strict=True):
        np.testing.assert_array_equal(np.asarray(result), right)
