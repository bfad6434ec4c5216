"""The backend of the onnx package: models and nodes by its interface."""

import numpy as np
import onnx
import pytest
from onnx import helper

import relayc
from relayc.frontend.onnx import OnnxError, backend

MODEL = onnx.parser.parse_model("""
<ir_version: 9, opset_import: ["" : 18]>
g (float[n, 3] x, float[3] b) => (float[n, 3] sum, float[n, 3] less) { sum = Add (x, b)  less = Sub (x, b) }
""")
X, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 2, 3], np.float32)


def test_outputs_have_positions_and_names():
    for inputs in ([X, B], {"b": B, "x": X}):
        found = backend.prepare(MODEL).run(inputs)
        assert np.array_equal(found[0], X + B)
        assert np.array_equal(found.less, X - B)
    assert np.array_equal(backend.run_model(MODEL, [X, B])[1], X - B)


def test_arguments_of_compile_are_passed_on():
    rep = backend.prepare(MODEL, dims={"n": 2})
    assert rep.module.inputs[0].shape == (2, 3)
    with pytest.raises(ValueError, match="expected float32\\[2, 3\\]"):
        rep.run([X[:1], B])


def test_one_node():
    node = helper.make_node("Gemm", ["a", "b"], ["y"], transB=1)
    assert np.allclose(backend.run_node(node, [X, X])[0], X @ X.T)
    assert np.allclose(backend.run_node(node, {"b": X, "a": X + 1}).y, (X + 1) @ X.T)


def test_a_node_in_an_operator_set():
    node = helper.make_node("Softmax", ["x"], ["y"])
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    old = np.exp(x) / np.exp(x).sum(axis=(1, 2), keepdims=True)
    new = np.exp(x) / np.exp(x).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(backend.run_node(node, [x], opset_version=11)[0], old, 1e-6)
    np.testing.assert_allclose(backend.run_node(node, [x])[0], new, 1e-6)


def test_what_is_compatible():
    node, output = helper.make_node("Nonsense", ["x"], ["y"]), onnx.ValueInfoProto(name="y")
    unknown = helper.make_model(helper.make_graph([node], "g", MODEL.graph.input[:1], [output]))
    assert backend.is_compatible(MODEL)
    assert not backend.is_compatible(unknown)
    assert not backend.is_compatible(MODEL, "CUDA:0")
    assert (backend.supports_device("CPU"), backend.supports_device("CUDA")) == (True, False)
    with pytest.raises(OnnxError, match="Nonsense"):
        backend.prepare(unknown)
    with pytest.raises(ValueError, match="device: expected CPU, found 'CUDA'"):
        backend.prepare(MODEL, "CUDA")


def test_it_is_the_module_that_the_runtime_gives():
    assert isinstance(backend.prepare(MODEL).module, relayc.Module)
