"""Small ONNX models that tests are made of."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model_of(nodes, inputs, outputs=("y",), initializers=None, opset=20, **extra):
    """A model; `inputs` gives shapes (or (element type, shape)) by name, `initializers` arrays by name."""
    typed = {name: given if isinstance(given, tuple) else (TensorProto.FLOAT, given) for name, given in inputs.items()}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *given) for name, given in typed.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (initializers or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **extra)


def relu():
    """A node: y is Relu of x."""
    return helper.make_node("Relu", ["x"], ["y"], name="act")


def weighted(size=64):
    """A model of one matrix product, and its weight, which is too large to stand in the IR."""
    w = np.random.default_rng(0).standard_normal((size, size), np.float32)
    return model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [1, size]}, initializers={"w": w}), w


def branches(condition):
    """A model of an If with a constant condition: exp of x, or else its logarithm."""

    def graph(operator):
        return helper.make_graph([helper.make_node(operator, ["x"], ["r"])], operator, [], [onnx.ValueInfoProto(name="r")])

    node = helper.make_node("If", ["c"], ["y"], then_branch=graph("Exp"), else_branch=graph("Log"))
    return model_of([node], {"x": [2]}, initializers={"c": np.array(condition)})
