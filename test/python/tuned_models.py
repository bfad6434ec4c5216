"""Small models whose kernels are tuned."""

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
