"""The well-known image networks whose graphs are shipped inside the onnx package (`light_resnet50` and eight more).

Their weights are constants made by ConstantOfShape, all 0.02, so that every output is 1/1000 whatever happens in between. For a check that
means something the weights are drawn at random here, and the input of the final Softmax becomes an output too.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from relayc.tools.onnx_graphs import inputs_of

_FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def light_names() -> list[str]:
    """Names of the networks, such as "resnet50"."""
    return sorted(path.stem.removeprefix("light_") for path in _FOLDER.glob("light_*.onnx"))


def light_path(name: str) -> Path:
    """The file of a network as it is shipped."""
    return _FOLDER / f"light_{name}.onnx"


def stored_case(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The input and the output that the onnx package tests a shipped network with."""
    graph = onnx.load(light_path(name)).graph
    (data,) = inputs_of(graph)
    shape = [dim.dim_value for dim in data.type.tensor_type.shape.dim]
    n = int(np.prod(shape))
    stored = _FOLDER / f"light_{name}_output_0.pb"
    output = onnx.TensorProto.FromString(stored.read_bytes())
    return (np.arange(n).reshape(shape) / n).astype(np.float32), numpy_helper.to_array(output)


def _factors(graph: onnx.GraphProto) -> set[str]:
    """Names of the values that multiply: scale and variance of BatchNormalization, operands of Mul, also through Unsqueeze."""
    found = set()
    for node in reversed(graph.node):
        if node.op_type == "BatchNormalization":
            found |= {node.input[1], node.input[4]}
        elif node.op_type == "Mul":
            found |= set(node.input)
        elif node.op_type == "Unsqueeze" and node.output[0] in found:
            found.add(node.input[0])
    return found


def random_light(name: str, seed: int = 0) -> onnx.ModelProto:
    """A network with random weights, scaled so that activations neither vanish nor grow without bound.

    Filters and matrices are normal with a standard deviation of sqrt(2 / fan-in) (He et al., 2015), without the 2 in residual networks,
    where each block adds to what there is; vectors that multiply (scales and variances of normalisations) are uniform between 0.5 and
    1.5, those that are added normal with a standard deviation of 0.1.
    """
    model = onnx.load(light_path(name))
    graph, rng = model.graph, np.random.default_rng(seed)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    factors = _factors(graph)
    gain = 1 if any(node.op_type == "Sum" for node in graph.node) else 2
    weights = [node for node in graph.node if node.op_type == "ConstantOfShape" and node.input[0] in shapes]
    model.ir_version = max(model.ir_version, 4)  # the first in which an initializer need not be an input too
    for node in weights:
        shape = tuple(shapes[node.input[0]])
        if len(shape) > 1:
            values = rng.standard_normal(shape, np.float32) * np.float32(np.sqrt(gain / np.prod(shape[1:])))
        elif node.output[0] in factors:
            values = rng.random(shape, np.float32) + np.float32(0.5)
        else:
            values = rng.standard_normal(shape, np.float32) * np.float32(0.1)
        graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
        graph.node.remove(node)
    last = graph.node[-1]
    if last.op_type == "Softmax":
        graph.output.append(onnx.ValueInfoProto(name=last.input[0], type=graph.output[0].type))
    return model
