"""Forms of layers: what is written is a model that ONNX Runtime computes as relayc does, and close to the floats."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx_models import model_of

import relayc
from relayc.tools.quantize.graph import Graph, prepare
from relayc.tools.quantize.layers import find_layers
from relayc.tools.quantize.qdq import plan
from relayc.tools.quantize.smooth import smooth

RNG = np.random.default_rng(0)


def constant(*shape):
    return RNG.standard_normal(shape, np.float32)


def case(nodes, size, opset=20, **constants):
    return model_of(nodes, {"x": list(size)}, initializers=constants, opset=opset, ir_version=9)


def image(op="Conv", weight=(6, 4, 3, 3), bias=6, opset=20, **attributes):
    constants = {"w": constant(*weight), **({"b": constant(bias)} if bias else {})}
    return case([helper.make_node(op, ["x", *constants], ["y"], **attributes)], (2, 4, 9, 9), opset, **constants)


def normalised():
    """Conv -> BatchNormalization -> Clip -> AveragePool -> Conv of one more input channel at the end."""
    parts = {"g": constant(6), "s": constant(6), "m": constant(6), "v": np.abs(constant(6)) + 0.5}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], group=2),
        helper.make_node("BatchNormalization", ["c", *parts], ["n"], epsilon=0.25),
        helper.make_node("Clip", ["n", "low", "high"], ["l"]),
        helper.make_node("AveragePool", ["l"], ["p"], kernel_shape=[2, 2]),
        helper.make_node("Conv", ["p", "w2"], ["y"]),
    ]
    limits = {"low": np.float32(0), "high": np.float32(3)}
    return case(nodes, (2, 4, 9, 9), w=constant(6, 2, 3, 3), b=constant(6), w2=constant(5, 6, 1, 1), **parts, **limits)


def joined():
    """Two convolutions, joined, transposed and reshaped on their way to a product whose weights are transposed."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Conv", ["x", "w2"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        helper.make_node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["t", "shape"], ["r"]),
        helper.make_node("Transpose", ["v"], ["vt"], perm=[1, 0]),
        helper.make_node("MatMul", ["r", "vt"], ["y"]),
    ]
    return case(nodes, (2, 4, 5, 5), w1=constant(3, 4, 2, 2), w2=4 * constant(5, 4, 2, 2), v=constant(7, 8), shape=np.array([2, -1, 8]))


def tied():
    """One constant as the weights of two products, one of them transposed."""
    nodes = [helper.make_node("Gemm", ["x", "w"], ["h"], transB=1), helper.make_node("MatMul", ["h", "w"], ["y"])]
    return case(nodes, (8, 12), w=constant(6, 12))


def shared():
    """A tensor that a layer, an operator on floats and the caller read."""
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
        helper.make_node("Softmax", ["h"], ["z"]),
    ]
    made = case(nodes, (8, 12), w=constant(12, 6))
    made.graph.output.extend([onnx.ValueInfoProto(name="z"), onnx.ValueInfoProto(name="h")])
    return made


def branching():
    """A tensor that a layer and the branches of an operator read, from around them."""
    out = [onnx.ValueInfoProto(name="r")]
    branches = [helper.make_graph([helper.make_node(op, ["h"], ["r"])], op, [], out) for op in ("Exp", "Neg")]
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
        helper.make_node("If", ["c"], ["z"], then_branch=branches[0], else_branch=branches[1]),
    ]
    made = case(nodes, (8, 12), w=constant(12, 6), c=np.array(False))
    made.graph.output.append(onnx.ValueInfoProto(name="z"))
    return made


def silu(x, name):
    return [helper.make_node("Sigmoid", [x], [f"{name}.s"]), helper.make_node("Mul", [x, f"{name}.s"], [name])]


def activated():
    """Convolutions with x * sigmoid(x) between them, a padding of its own, and a gate from the means of the channels."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        *silu("a", "b"),
        helper.make_node("Pad", ["b", "widths"], ["c"]),
        helper.make_node("Conv", ["c", "w2"], ["d"], group=6, strides=[2, 2]),
        *silu("d", "e"),
        helper.make_node("ReduceMean", ["e", "axes"], ["m"]),
        helper.make_node("Conv", ["m", "w3"], ["g"]),
        helper.make_node("Sigmoid", ["g"], ["h"]),
        helper.make_node("Mul", ["e", "h"], ["i"]),
        helper.make_node("Conv", ["i", "w4"], ["y"]),
    ]
    weights = {"w1": constant(6, 4, 1, 1), "w2": constant(6, 1, 3, 3), "w3": constant(6, 6, 1, 1), "w4": constant(5, 6, 1, 1)}
    return case(nodes, (2, 4, 12, 13), **weights, widths=np.array([0, 0, 1, 0, 0, 0, 2, 1]), axes=np.array([2, 3]))


def enlarged():
    """x * sigmoid(x), enlarged and joined with what it was made of, as in detectors."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        *silu("a", "b"),
        helper.make_node("Conv", ["b", "w2"], ["c"], strides=[2, 2]),
        *silu("c", "d"),
        helper.make_node("Resize", ["d", "", "scales"], ["e"], mode="nearest"),
        helper.make_node("Concat", ["e", "b"], ["f"], axis=1),
        helper.make_node("Conv", ["f", "w3"], ["y"]),
    ]
    weights = {"w1": constant(6, 4, 1, 1), "w2": constant(5, 6, 2, 2), "w3": constant(3, 11, 2, 2)}
    return case(nodes, (2, 4, 12, 10), **weights, scales=np.array([1, 1, 2, 2], np.float32))


def pooled(outputs=()):
    """A convolution and a mean, joined, limited and added to, as in ShuffleNet."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2]),
        helper.make_node("Conv", ["c", "w2"], ["d"], strides=[2, 2]),
        helper.make_node("AveragePool", ["c"], ["e"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Concat", ["d", "e"], ["f"], axis=1),
        helper.make_node("Relu", ["f"], ["g"]),
        helper.make_node("Conv", ["g", "w3"], ["h"]),
        helper.make_node("Sum", ["h", "g"], ["i"]),
        helper.make_node("Relu", ["i"], ["j"]),
        helper.make_node("Conv", ["j", "w4"], ["y"]),
    ]
    weights = {"w1": constant(6, 4, 2, 2), "w2": constant(4, 6, 1, 1), "w3": constant(10, 10, 1, 1), "w4": constant(3, 10, 1, 1)}
    made = case(nodes, (2, 4, 10, 10), **weights)
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    return made


def beside_constants():
    """An image is joined with a constant, and one is added to another."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Concat", ["a", "k"], ["b"], axis=1),
        helper.make_node("Conv", ["b", "v"], ["c"]),
        helper.make_node("Add", ["c", "l"], ["d"]),
        helper.make_node("Conv", ["d", "u"], ["e"]),
    ]
    weights = {"w": constant(4, 4, 1, 1), "v": constant(4, 8, 1, 1), "u": constant(4, 4, 1, 1)}
    return case(nodes, (1, 4, 5, 5), k=constant(1, 4, 5, 5), l=constant(1, 4, 5, 5), **weights)


def beside_floats():
    """An image is added to floats that no convolution gives."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Exp", ["x"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Conv", ["c", "u"], ["y"]),
    ]
    return case(nodes, (1, 4, 5, 5), w=constant(4, 4, 1, 1), u=constant(4, 4, 1, 1))


def read_by_others(model, name):
    model.graph.node.append(helper.make_node("Exp", [name], ["z"]))
    model.graph.output.append(onnx.ValueInfoProto(name="z"))
    return model


CASES = {
    "padded": lambda: image(pads=[1, 0, 2, 1], strides=[2, 1]),
    "depthwise": lambda: image(weight=(8, 1, 3, 3), bias=8, group=4),
    "one dimension": lambda: case([helper.make_node("Conv", ["x", "w"], ["y"])], (2, 4, 9), w=constant(5, 4, 3)),
    "transposed": lambda: image("ConvTranspose", (4, 6, 3, 3)),
    "transposed groups": lambda: image("ConvTranspose", (4, 3, 2, 2), group=2, strides=[2, 2]),
    "old operators": lambda: image(opset=11),
    "gemm": lambda: case([helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)], (8, 12), w=constant(6, 12), b=constant(6)),
    "normalised": normalised,
    "joined": joined,
    "tied": tied,
    "shared": shared,
    "branching": branching,
    "activated": activated,
    "enlarged": enlarged,
    "pooled": pooled,
    "pooled, with a result before the limits": lambda: pooled(["f", "d"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_form(name):
    model = CASES[name]()
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    data = [{"x": RNG.standard_normal(shape, np.float32) + 0.3} for _ in range(4)]
    found = relayc.quantize(model, data)
    assert found.snr > 28 and all(layer.form == "int8" for layer in found.layers)
    session = onnxruntime.InferenceSession(found.model.SerializeToString(), providers=["CPUExecutionProvider"])
    module = relayc.compile(found.model)
    for sample in data:
        for theirs, ours in zip(session.run(None, sample), module.run(sample).values(), strict=True):
            assert np.sqrt(np.mean((theirs - ours) ** 2)) < 0.01 * np.std(theirs)


@pytest.mark.parametrize("name", ["normalised", "joined", "tied", "old operators", "shared"])
def test_what_is_prepared_computes_the_same(name):
    """Batch norms and constant transposes are in the weights."""
    model = CASES[name]()
    prepared = prepare(model)
    x = np.random.default_rng(1).standard_normal([d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim], np.float32)
    sessions = [onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]) for m in (model, prepared.model)]
    for theirs, ours in zip(*(session.run(None, {"x": x}) for session in sessions), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    assert not {"BatchNormalization"} & {node.op_type for node in prepared.nodes} and prepared.opset >= 13
    assert not any(node.op_type == "Transpose" and node.input[0] in prepared.constants for node in prepared.nodes)


CONV, NORM = helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("BatchNormalization", ["c", *"gsmv"], ["n"])


@pytest.mark.parametrize(
    "nodes",
    [
        [CONV, NORM, helper.make_node("Conv", ["n", "w"], ["y"])],
        [CONV, NORM, helper.make_node("Add", ["c", "n"], ["y"])],
        [helper.make_node("ReduceMax", ["x", "axes"], ["m"], keepdims=0), CONV, NORM, helper.make_node("Relu", ["n"], ["y"])],
    ],
    ids=["weights of two", "two readers", "a mean that is computed"],
)
def test_batch_norms_that_are_not_in_the_weights(nodes):
    constants = {"w": constant(4, 4, 1, 1), "axes": np.array([0, 2, 3]), **{name: constant(4) for name in "gsmv"}}
    made = {name for node in nodes for name in node.output}
    model = case(nodes, (1, 4, 2, 2), **{name: array for name, array in constants.items() if name not in made})
    assert [node.op_type for node in prepare(model).nodes] == [node.op_type for node in nodes]


def quantised(model, **options):
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    return relayc.quantize(model, [{"x": RNG.standard_normal(shape, np.float32) + 0.3} for _ in range(4)], **options)


@pytest.mark.parametrize("activations", ["uint8", "int8"])
@pytest.mark.parametrize(
    ("model", "kernels"),
    [(activated, {"take": 3}), (enlarged, {"take": 2, "resize2d": 1}), (pooled, {"max_pool2d": 1, "avg_pool2d": 1})],
)
def test_what_is_between_convolutions_is_computed_in_bytes(model, kernels, activations):
    """The only image that kernels read in floats is the input, of four channels."""
    module = relayc.compile(quantised(model(), activations=activations).model)
    for name, count in kernels.items():
        assert sum(name in kernel.name for kernel in module.kernels) >= count, module.kernels
    images = [t for kernel in module.kernels for t in kernel.inputs if t.dtype == "float32" and len(t.shape) == 4 and t.shape[2] > 1]
    assert [t.shape[1] for t in images] == [4]


@pytest.mark.parametrize(
    ("model", "groups", "limited", "through", "shared"),
    [
        (pooled, "x bc defg h j", "def", "cefgi", "cfg"),  # a maximum moves elements; nothing but the limits reads d, e and f
        (enlarged, "x a bdef c", "", "ef", "abcdef"),  # what is enlarged and joined has one scale, as has x * sigmoid(x) for its operand
        (activated, "x a bc d e g h i m", "", "c", "abcdegh"),
        (beside_constants, "x b d", "", "", ""),
        (beside_floats, "x c", "", "", ""),
        (lambda: read_by_others(activated(), "h"), "x a bc d e g h i m", "", "c", "abcdegh"),  # the gate of a quantised product
        (lambda: read_by_others(pooled(), "d"), "x bc fg h j", "f", "cgi", "cg"),  # others read what the limits would cut off
    ],
)
def test_tensors_that_have_one_scale(model, groups, limited, through, shared):
    made = model()
    for node in made.graph.node:
        node.name = node.output[0]
    graph = Graph(made)
    found = plan(graph, find_layers(graph))
    assert sorted("".join(group) for group in found.groups) == sorted(groups.split())
    assert [set(limited), set(through), set(shared)] == [found.limited, found.through, found.shared]


def test_channels_are_smoothed_by_the_roots_of_their_largest_values():
    """Except those without data or weights, which keep their scale; two products share the factor of what they read."""
    gain, first, second = np.float32([1, 2, 3, 4]), constant(4, 3), constant(2, 4)
    first[1], second[:, 1] = 0, 0
    nodes = [
        helper.make_node("Mul", ["x", "gain"], ["n"], name="m"),
        helper.make_node("MatMul", ["n", "w"], ["y"], name="p"),
        helper.make_node("Gemm", ["n", "v"], ["z"], name="q", transB=1),
    ]
    graph = prepare(case(nodes, (5, 4), gain=gain, w=first, v=second))
    largest = np.float32([4, 9, 0, 16])
    found = smooth(graph, {"n": find_layers(graph)}, {"n": largest}, 0.5)
    factor = np.sqrt(largest / np.maximum(np.abs(first).max(1), np.maximum(np.abs(second).max(0), 1e-30)))
    factor[1:3] = 1
    for name, expected in (("m.smooth1", gain / factor), ("p.smooth1", first * factor[:, None]), ("q.smooth1", second * factor)):
        np.testing.assert_allclose(found.constants[name], expected, rtol=1e-6)


@pytest.mark.parametrize(("given", "written"), [(4, 8), (8, 8), (9, 9)])
def test_what_is_written_has_version_8_of_the_ir_or_its_own(given, written):
    model = normalised()
    model.ir_version = given
    graph = Graph(model)
    assert graph.copy(graph.nodes, {}).ir_version == written


def test_the_inside_of_a_function_is_not_rounded():
    """Of x * sigmoid(x) the second factor."""
    found = [node.input[0] for node in quantised(activated()).model.graph.node if node.op_type == "QuantizeLinear"]
    assert sorted(found) == [*"abcdeghimx"]


@pytest.mark.parametrize("reader", ["Softmax", "Mul"])
def test_what_floats_alone_read_stays_in_floats(reader):
    """A function of a convolution that no layer reads, also not as part of a product."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        *silu("a", "b"),
        helper.make_node(reader, ["b"] if reader == "Softmax" else ["b", "x"], ["c"]),
        helper.make_node("Neg", ["c"], ["y"]),
    ]
    found = quantised(case(nodes, (2, 4, 9, 9), w=constant(4, 4, 1, 1))).model
    assert [node.input[0] for node in found.graph.node if node.op_type == "QuantizeLinear"] == ["x"]


def test_limits_cut_off_nothing_that_others_read():
    """The tensors before a Relu have the scale of its result only where it alone reads them."""
    alone = quantised(pooled()).model
    zeros = {t.name: int(onnx.numpy_helper.to_array(t)) for t in alone.graph.initializer if t.name.endswith("dequantized.zero")}
    assert zeros["d.dequantized.zero"] == zeros["e.dequantized.zero"] == zeros["g.dequantized.zero"] == 0
    for others in (("f",), ("d",)):
        found = {t.name for t in quantised(pooled(others)).model.graph.initializer}
        assert "d.dequantized.zero" not in found


def test_what_cannot_be_quantised_stays_as_it_is():
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["a"]),  # no constant weights
        helper.make_node("Gemm", ["a", "w"], ["b"], alpha=0.5),
        helper.make_node("MatMul", ["b", "v"], ["c"]),  # a stack of weights
        helper.make_node("MatMul", ["c", "w"], ["y"], name="last"),
    ]
    model = case(nodes, (6, 6), w=constant(6, 6), v=constant(3, 6, 6))
    found = relayc.quantize(model, [{"x": constant(6, 6)}])
    assert [layer.name for layer in found.layers] == ["last"]
    assert [node.op_type for node in found.model.graph.node].count("QuantizeLinear") == 1


def test_inputs_that_are_no_floats_and_local_functions():
    body = [helper.make_node("MatMul", ["a", "k"], ["r"])]
    function = helper.make_function("local", "Project", ["a", "k"], ["r"], body, [helper.make_opsetid("", 20)])
    nodes = [helper.make_node("Gather", ["table", "ids"], ["e"]), helper.make_node("Project", ["e", "w"], ["y"], domain="local")]
    model = model_of(
        nodes, {"ids": (TensorProto.INT64, ["n"])}, initializers={"table": constant(9, 16), "w": constant(16, 5)}, ir_version=9
    )
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("local", 1))
    found = relayc.quantize(model, [{"ids": RNG.integers(0, 9, n)} for n in (3, 8, 5)])
    assert len(found.layers) == 1 and found.snr > 35


def test_a_large_model_has_its_weights_beside_it(tmp_path, monkeypatch):
    model = case([helper.make_node("MatMul", ["x", "w"], ["y"])], (2, 64), w=constant(64, 64))
    data = [{"x": constant(2, 64)}]
    found = relayc.quantize(model, data)
    for more in (1, 0):
        monkeypatch.setattr("relayc.tools.quantize.result._LARGEST_FILE", found.model.ByteSize() + more)
        found.save(tmp_path / "m.onnx")
        assert (tmp_path / "m.onnx.data").exists() == (more == 0)
    assert {file.name for file in tmp_path.iterdir()} == {"m.onnx", "m.onnx.data"}
    y = relayc.compile(str(tmp_path / "m.onnx"))["main"](data[0]["x"])
    assert np.isfinite(y).all() and y.std() > 1


def test_nodes_get_names_of_their_own():
    nodes = [helper.make_node("Relu", [a], [b], name=name) for a, b, name in (("x", "a", "same"), ("a", "b", "same"), ("b", "y", ""))]
    found = [node.name for node in prepare(model_of(nodes, {"x": [2]})).model.graph.node]
    assert len(set(found)) == 3 and found[0] == "same" and all(found)
