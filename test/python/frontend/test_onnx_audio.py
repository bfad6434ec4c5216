"""Encoders of audio as in wav2vec 2.0: convolutions that leave few frames of many samples, then attention, at any number of samples."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import relayc
from relayc.frontend.onnx import from_onnx
from relayc.symbolic import evaluate, parse
from relayc.tools.reference import compare, run_onnxruntime

WIDTH, HEADS = 16, 2


class _Graph:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def __call__(self, operator: str, *inputs: str | list[int] | tuple[int, ...], **attributes: object) -> str:
        """A node; a list is a constant of int64, a tuple the shape of a weight."""
        names = [x if isinstance(x, str) else self._constant(x) for x in inputs]
        name = f"{operator}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [name], **attributes))
        return name

    def _constant(self, x: list[int] | tuple[int, ...]) -> str:
        name = f"constant{len(self.constants)}"
        weight = None if isinstance(x, list) else self.rng.standard_normal(x) / np.sqrt(np.prod(x[1:]))
        array = np.array(x, np.int64) if weight is None else weight.astype(np.float32)
        self.constants.append(numpy_helper.from_array(array, name))
        return name


def encoder(layers: Sequence[tuple[int, int]]) -> onnx.ModelProto:
    """Convolutions of (kernel, stride), a grouped convolution that gives positions, and a layer of attention.

    Heads are split by the number of frames before the positions, and the batch is what is left (-1): of a residual sum whose number of
    frames is another expression that is quotient by it.
    """
    add = _Graph()
    x = add("Unsqueeze", "x", [1])
    for i, (kernel, stride) in enumerate(layers):
        x = add("Relu", add("Conv", x, (WIDTH, WIDTH if i else 1, kernel), kernel_shape=[kernel], strides=[stride]))
    frames = add("Transpose", x, perm=[0, 2, 1])
    positions = add("Conv", x, (WIDTH, WIDTH // 4, 16), kernel_shape=[16], pads=[8, 8], group=4)
    positions = add("Slice", positions, [0], [-1], [2])
    x = add("Add", frames, add("Transpose", positions, perm=[0, 2, 1]))
    length = add("Gather", add("Shape", frames), [1])
    split, joined = add("Concat", [-1], length, [HEADS, WIDTH // HEADS], axis=0), add("Concat", [-1], length, [WIDTH], axis=0)
    orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    query, key, value = (add("Transpose", add("Reshape", add("MatMul", x, (WIDTH, WIDTH)), split), perm=order) for order in orders)
    context = add("MatMul", add("Softmax", add("MatMul", query, key), axis=-1), value)
    y = add("Add", add("Reshape", add("Transpose", context, perm=[0, 2, 1, 3]), joined), x)
    arguments = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "samples"])]
    results = [helper.make_tensor_value_info(y, TensorProto.FLOAT, ["batch", "frames", WIDTH])]
    graph = helper.make_graph(add.nodes, "encoder", arguments, results, add.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


LAYERS = {"one convolution": [(400, 320)], "seven convolutions": [(10, 5), *[(3, 2)] * 4, (2, 2), (2, 2)]}


@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
def test_agrees_with_onnxruntime(layers: Sequence[tuple[int, int]]) -> None:
    model = encoder(layers)
    module = relayc.compile(model)
    for batch, samples in ((1, 400), (2, 719), (1, 720), (3, 4001), (2, 16000), (1, 100_001)):
        inputs = {"x": np.random.default_rng(samples).standard_normal((batch, samples), np.float32)}
        found = compare(module.run(inputs), run_onnxruntime(model.SerializeToString(), inputs))
        assert found.agrees, (batch, samples, found)


@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
def test_a_typical_number_of_samples_makes_several_frames(layers: Sequence[tuple[int, int]]) -> None:
    typical = from_onnx(encoder(layers)).ranges.of("samples").typical
    assert 4 <= evaluate(parse("(n - 400)//320 + 1"), {"n": typical}) <= 64
