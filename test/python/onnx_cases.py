"""Cases of tests of ONNX operators: the operator set, the inputs and the nodes of a model as texts, and arrays for its inputs."""

import numpy as np
from onnx import helper
from onnx.parser import parse_model

SIZES = {"n": 5, "m": 3}
RNG = np.random.default_rng(0)
ARRAYS = {
    "infinite": np.float32([[-np.inf] * 6, [np.inf, 1, 2, 3, 4, -np.inf], [500, 1, 2, -np.inf, 500, 3]]),
    "count": np.array(3),
    "yes": np.array(True),
    "place": np.array(1),
    "row": np.array([0, 1], bool),
    "column": np.array([1, 0, 1], bool),
    "own": RNG.standard_normal((1, 12, 12), np.float32),
    "again": RNG.standard_normal((1, 9, 3), np.float32),
    "special": np.float32([np.inf, -np.inf, np.nan, 0, -1, 3e38]),
    "b": np.array([0, 1, 1, 0, 0, 1, 0], bool),
    "c": np.array([0, 1, 0], bool),
    "h": np.float16(0.75),
    "z": np.array([3, 0, 1, 2, 1]),
    "i": np.int32([3, 0, 4, 2, 100]),
    "k": np.array([1, 2]),
    "axis": np.array([-1]),
    "axes": np.array([1, 0]),
    "high": np.float32([3000]),
    "f": np.float32([1, 1, 2.5, 0.6]),
    "g": np.float32([1, 1, 2.5, 1.5]),
    "r": np.float32([[0, 1, 2, 9, 8], [1, 0, 0, 13, 11]]),
    "q": np.float32([[0.5, 0.25, 4, 5], [1, 1, 3, 2]]),
    "crop": np.float32([0, 0, 0.25, 0.25, 1, 1, 0.75, 1.25]),
    "unpooled i": np.stack([RNG.permutation(36)[:6].reshape(1, 2, 3) for _ in range(2)]),
    "unpooled to a size i": np.array([[[0, 3, 5]], [[7, 9, 11]]]),
}


def parsed(case, plain=False):
    """A case as a model; `plain` in the form that others understand: a crop with the sizes that follow from its factors."""
    opset, inputs, nodes = case
    if plain and "crop" in nodes and ", t)" in nodes:
        inputs, nodes = inputs + ", int64[4] sizes = {1, 1, 3, 3}", nodes.replace(", t)", ", , sizes)")
    trees = 5 if "TreeEnsemble<" in nodes else 2
    return parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}, "ai.onnx.ml" : {trees}, "com.microsoft" : 1]> main ({inputs}) => (y) {{ {nodes} }}'
    )


def arrays(name, case):
    """The inputs of a case by name: given ones, positive floats where they are random."""
    rng, graph = np.random.default_rng(len(name)), parsed(case).graph
    found = {}
    for given in graph.input:
        if any(given.name == t.name for t in graph.initializer):
            continue
        type_ = given.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else SIZES[d.dim_param] for d in type_.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(type_.elem_type)
        array = ARRAYS.get(f"{name} {given.name}", ARRAYS.get(given.name))
        if array is None and dtype.kind in "iu":
            array = rng.integers(*((-9, 9) if dtype.kind == "i" else (0, 256)), shape)
        if array is None or (array.ndim != len(shape) or array.shape != tuple(shape)):
            array = rng.uniform(0.25, 2, shape)
        found[given.name] = np.asarray(array, dtype)
    return found


STUMP = {
    "nodes_nodeids": [0, 1, 2],
    "nodes_treeids": [0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
"""The attributes of a tree of one branch and two leaves, without their weights."""
