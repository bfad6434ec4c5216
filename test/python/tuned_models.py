"""Small models whose kernels are tuned."""

import itertools

import numpy as np
import onnx


def dense(rows="64", weight_first=False, name="y", columns=96):
    """max(x W + b, 0) with a weight that is a parameter."""
    rng = np.random.default_rng(0)
    w = onnx.numpy_helper.from_array(rng.standard_normal((256, columns), np.float32), "w")
    b = onnx.numpy_helper.from_array(rng.standard_normal(columns, np.float32), "b")
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> main (float[{rows}, 256] x) => (float[{rows}, {columns}] {name}) '
        f"{{ p = MatMul (x, w) s = Add (p, b) {name} = Relu (s) }}"
    )
    model.graph.initializer.extend([w, b])
    for i, node in enumerate(model.graph.node):
        node.name = f"{name}_{i}"
    return model


def chain(*columns):
    """tanh(tanh(x W0) W1) ...: a kernel for each product."""
    rng, rows = np.random.default_rng(0), 64
    weights, lines, last = [], [], "x"
    for i, (before, after) in enumerate(itertools.pairwise(columns)):
        weights.append(onnx.numpy_helper.from_array(rng.standard_normal((before, after), np.float32), f"w{i}"))
        lines.append(f"p{i} = MatMul ({last}, w{i}) t{i} = Tanh (p{i})")
        last = f"t{i}"
    text = f"(float[{rows}, {columns[0]}] x) => (float[{rows}, {columns[-1]}] {last}) {{ {' '.join(lines)} }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> main {text}')
    model.graph.initializer.extend(weights)
    return model
