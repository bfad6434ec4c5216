"""ONNX If and Loop on values of the program, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import relayc
from relayc import OnnxError
from relayc.frontend.onnx import from_onnx

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -0.75]], np.float32)


def tensor(name, type_, shape):
    return helper.make_tensor_value_info(name, type_, shape)


def graph(name, nodes, inputs, outputs, **constants):
    initializers = [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()]
    return helper.make_graph(nodes, name, inputs, outputs, initializers)


def model(nodes, inputs, outputs, **constants):
    return helper.make_model(graph("g", nodes, inputs, outputs, **constants), opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def agree(proto, *feeds, rtol=1e-5):
    """Both give the same for each of the inputs."""
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    module = relayc.compile(proto, cache=False)
    for feed in feeds:
        found = module.run(feed)
        for name, wanted in zip(found, session.run(None, feed), strict=True):
            np.testing.assert_allclose(found[name], wanted, rtol=rtol, atol=1e-6)


def branch(name, operator, result="r"):
    return graph(name, [helper.make_node(operator, ["x"], [result])], [], [tensor(result, FLOAT, [2, 3])])


def test_a_branch_on_an_input():
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("a", "Exp"), else_branch=branch("b", "Neg"))
    proto = model([node], [tensor("c", BOOL, []), tensor("x", FLOAT, [2, 3])], [tensor("y", FLOAT, [2, 3])])
    agree(proto, *({"c": np.array(c), "x": X} for c in (True, False)))


def test_branches_in_branches_with_weights_and_several_results():
    w = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
    inner = helper.make_node("If", ["c"], ["p"], then_branch=branch("a", "Exp", "q"), else_branch=branch("b", "Neg", "q"))
    products = [helper.make_node("MatMul", ["x", "w"], ["s"]), inner, helper.make_node("Identity", ["s"], ["t"])]
    both = [tensor("p", FLOAT, [2, 3]), tensor("t", FLOAT, [2, 3])]
    then = graph("then", products, [], both, w=w)
    otherwise = graph(
        "else", [helper.make_node("MatMul", ["x", "v"], ["t"]), helper.make_node("Abs", ["x"], ["p"])], [], both, v=w.T.copy()
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["positive"]),
        helper.make_node("If", ["positive"], ["y", "z"], then_branch=then, else_branch=otherwise),
    ]
    inputs = [tensor("c", BOOL, [1]), tensor("x", FLOAT, [2, 3])]
    proto = model(nodes, inputs, [tensor("y", FLOAT, [2, 3]), tensor("z", FLOAT, [2, 3])], zero=np.float32(0))
    agree(proto, *({"c": np.array([c]), "x": x} for c in (True, False) for x in (X, -X)))


def loop(nodes, carried, **constants):
    """A Loop's body that carries `v` and sees the iteration `i` and the condition `c`; it gives `cond` and the names `carried`."""
    inputs = [tensor("i", INT, []), tensor("c", BOOL, []), tensor("v", FLOAT, [2, 3])]
    return graph("body", nodes, inputs, [tensor("cond", BOOL, []), *(tensor(n, FLOAT, [2, 3]) for n in carried)], **constants)


def test_a_loop_with_a_number_of_trips():
    body = loop(
        [
            helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
            helper.make_node("Add", ["v", "f"], ["s"]),
            helper.make_node("Mul", ["s", "x"], ["n"]),
            helper.make_node("Identity", ["c"], ["cond"]),
        ],
        ["n"],
    )
    node = helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)
    proto = model([node], [tensor("m", INT, []), tensor("x", FLOAT, [2, 3])], [tensor("y", FLOAT, [2, 3])])
    agree(proto, *({"m": np.array(m), "x": X} for m in (0, 1, 4)))


def test_a_loop_until_a_condition():
    body = loop(
        [
            helper.make_node("Mul", ["v", "two"], ["n"]),
            helper.make_node("ReduceMax", ["n"], ["top"], keepdims=0),
            helper.make_node("Less", ["top", "limit"], ["cond"]),
        ],
        ["n"],
        two=np.float32(2),
        limit=np.float32(100),
    )
    node = helper.make_node("Loop", ["", "c0", "x"], ["y"], body=body)
    inputs = [tensor("c0", BOOL, []), tensor("x", FLOAT, [2, 3])]
    proto = model([node], inputs, [tensor("y", FLOAT, [2, 3])])
    agree(proto, *({"c0": np.array(c), "x": x} for c in (True, False) for x in (X, X * 60)))


def test_scan_outputs_are_refused():
    body = loop([helper.make_node("Neg", ["v"], ["n"]), helper.make_node("Identity", ["c"], ["cond"])], ["n", "v"])
    node = helper.make_node("Loop", ["m", "", "x"], ["y", "all"], body=body)
    outputs = [tensor("y", FLOAT, [2, 3]), tensor("all", FLOAT, [None, 2, 3])]
    with pytest.raises(OnnxError, match="expected a body without scan outputs, whose length the program decides, found 1"):
        from_onnx(model([node], [tensor("m", INT, []), tensor("x", FLOAT, [2, 3])], outputs))


def test_branches_of_different_shapes_are_refused():
    short = graph("a", [helper.make_node("ReduceSum", ["x"], ["r"])], [], [tensor("r", FLOAT, None)])
    node = helper.make_node("If", ["c"], ["y"], then_branch=short, else_branch=branch("b", "Neg"), name="choice")
    proto = model([node], [tensor("c", BOOL, []), tensor("x", FLOAT, [2, 3])], [tensor("y", FLOAT, None)])
    with pytest.raises(OnnxError, match=r"node 'choice' \(If, opset 20\): .*expected tuple<tensor<1x1xf32>>, found tuple<tensor<2x3xf32>>"):
        from_onnx(proto)
