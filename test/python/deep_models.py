"""Models as deep as they get: chains, trees and diamonds of many operators, and sizes that many nodes compute.

    .venv/bin/python test/python/deep_models.py --depth 10000 [--cases tanh,concat] [--static] [--opt-level 3]

compiles each, runs it beside ONNX Runtime and prints what compiling took; the suite compiles some, of less depth.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

import relayc

Nodes = list[onnx.NodeProto]
Step = Callable[[int, str], tuple[Nodes, str]]
"""The nodes of a step and their result, of its number and what the step before gives."""

node = helper.make_node
ROWS: tuple[int | str, ...] = ("n", 8)
SIZES = {"n": 3, "k": 4}
_WEIGHTS = np.random.default_rng(0)


def weights(*shape: int, scale: float = 1.0) -> np.ndarray:
    """Random weights."""
    return (_WEIGHTS.standard_normal(shape) * scale).astype(np.float32)


def value(name: str, shape: Sequence[int | str], dtype: int = onnx.TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """A tensor of a graph."""
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Nodes, result: str, shape: Sequence[int | str], constants: Mapping[str, np.ndarray], rows: Sequence[int | str]
) -> onnx.ModelProto:
    """A model of one input x."""
    graph = helper.make_graph(
        nodes, "deep", [value("x", rows)], [value(result, shape)], [numpy_helper.from_array(v, k) for k, v in constants.items()]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def chained(depth: int, step: Step, first: str = "x") -> tuple[Nodes, str]:
    """The nodes of so many steps, one after the other, and the result of the last."""
    nodes: Nodes = []
    for i in range(depth):
        made, first = step(i, first)
        nodes += made
    return nodes, first


def chain(
    step: Step,
    constants: Mapping[str, np.ndarray] | None = None,
    shape: Sequence[int | str] | None = None,
    rows: Sequence[int | str] = ROWS,
) -> Callable[[int], onnx.ModelProto]:
    """A model of so many steps."""
    return lambda depth: model(*chained(depth, step), rows if shape is None else shape, constants or {}, rows)


def each(*operators: tuple[str, ...], **attributes: object) -> Step:
    """A step of operators, one after the other: name and inputs. _ is the result of the operator before, and . that of the step before."""

    def step(i: int, begin: str) -> tuple[Nodes, str]:
        nodes, last = [], begin
        for j, (name, *inputs) in enumerate(operators):
            own = attributes if j == len(operators) - 1 else {}
            given = [last if x == "_" else begin if x == "." else x for x in inputs]
            last = f"y{i}_{j}"
            nodes.append(node(name, given, [last], **own))
        return nodes, last

    return step


def tree(depth: int) -> onnx.ModelProto:
    """A balanced tree of sums of so many products."""
    nodes = [node("Mul", ["x", f"c{i}"], [f"l{i}"]) for i in range(depth)]
    level = [f"l{i}" for i in range(depth)]
    while len(level) > 1:
        pairs = list(zip(level[::2], level[1::2], strict=False))
        made = [f"t{len(nodes) + i}" for i in range(len(pairs))]
        nodes += [node("Add", pair, [name]) for pair, name in zip(pairs, made, strict=True)]
        level = made + level[2 * len(pairs) :]
    return model(nodes, level[0], ROWS, {f"c{i}": np.array(i % 7 / 7, np.float32) for i in range(depth)}, ROWS)


def branch(depth: int) -> onnx.ModelProto:
    """A chain in each branch of an If."""

    def graph(operator: str) -> onnx.GraphProto:
        nodes, last = chained(depth, lambda i, x: ([node(operator, [x], [f"{operator}{i}"])], f"{operator}{i}"))
        return helper.make_graph(nodes, operator, [], [value(last, ROWS)])

    nodes = [
        node("ReduceMax", ["x"], ["most"], keepdims=0),
        node("Greater", ["most", "zero"], ["condition"]),
        node("If", ["condition"], ["y"], then_branch=graph("Tanh"), else_branch=graph("Sigmoid")),
    ]
    return model(nodes, "y", ROWS, {"zero": np.array(0, np.float32)}, ROWS)


def loop(depth: int) -> onnx.ModelProto:
    """A chain in the body of a Loop."""
    nodes, last = chained(depth, each(("Tanh", "_")), "v")
    head = [value("step", [], onnx.TensorProto.INT64), value("go", [], onnx.TensorProto.BOOL), value("v", ROWS)]
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), *nodes], "body", head, [value("on", [], onnx.TensorProto.BOOL), value(last, ROWS)]
    )
    constants = {"trips": np.array(2), "true": np.array(True)}
    return model([node("Loop", ["trips", "true", "x"], ["y"], body=body)], "y", ROWS, constants, ROWS)


def computed_size(*operators: tuple[str, ...]) -> Callable[[int], onnx.ModelProto]:
    """A size that so many steps compute of n, to which the sum of the rows is expanded."""

    def make(depth: int) -> onnx.ModelProto:
        begin = [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "zero"], ["rows"])]
        nodes, last = chained(depth, each(*operators), "rows")
        end = [
            node("Unsqueeze", [last, "first"], ["size"]),
            node("Concat", ["size", "eight"], ["wanted"], axis=0),
            node("ReduceSum", ["x", "first"], ["total"]),
            node("Expand", ["total", "wanted"], ["y"]),
        ]
        return model([*begin, *nodes, *end], "y", ("m", 8), NUMBERS, ROWS)

    return make


NUMBERS = {name: np.array(number) for name, number in (("zero", 0), ("one", 1), ("two", 2), ("five", 5))}
NUMBERS |= {name: np.array([number]) for name, number in (("first", 0), ("second", 1), ("eight", 8), ("end", 1 << 62))}
PRODUCT = {"w": weights(8, 8, scale=0.3)}
ROW = {"row": weights(1, 8)}

CASES: dict[str, Callable[[int], onnx.ModelProto]] = {
    "tanh": chain(each(("Tanh", "_"))),
    "add to itself": chain(each(("Add", "_", "_"), ("Mul", "_", "half")), {"half": np.array(0.499, np.float32)}),
    "product": chain(each(("MatMul", "_", "w"), ("Relu", "_")), PRODUCT),
    "residual": chain(
        each(("MatMul", "_", "w"), ("Tanh", "_"), ("Mul", "_", "half"), ("Add", ".", "_")), {**PRODUCT, "half": np.array(1e-3, np.float32)}
    ),
    "concat": chain(each(("Concat", "_", "x"), axis=0), shape=("m", 8)),
    "concat a row": chain(each(("Concat", "_", "row"), axis=0), ROW, ("m", 8)),
    "pad": chain(each(("Pad", "_", "pads")), {"pads": np.array([0, 0, 1, 0])}, ("m", 8)),
    "shift": chain(each(("Slice", "_", "second", "end", "first"), ("Concat", "_", "row"), axis=0), {**NUMBERS, **ROW}, ("m", 8)),
    "transpose": chain(each(("Transpose", "_"), ("Reshape", "_", "shape")), {"shape": np.array([-1, 8])}),
    "where": chain(each(("Where", "c", "_", "z"), ("Greater", "_", "x"), ("Where", "_", "x", "z")), {"c": weights(8) > 0, "z": weights(8)}),
    "conv": chain(each(("Conv", "_", "k")), {"k": weights(4, 4, 1, 1, scale=0.5)}, rows=("n", 4, 6, 6)),
    "tree": tree,
    "diamond": chain(
        lambda i, x: ([node("Tanh", [x], [f"a{i}"]), node("Sigmoid", [x], [f"b{i}"]), node("Add", [f"a{i}", f"b{i}"], [f"y{i}"])], f"y{i}")
    ),
    "branch": branch,
    "loop": loop,
    "shapes": chain(
        lambda i, x: (
            [
                node("Shape", [x], [f"s{i}"]),
                node("Gather", [f"s{i}", "zero"], [f"g{i}"]),
                node("Add", [f"g{i}", "one"], [f"a{i}"]),
                node("Sub", [f"a{i}", "one"], [f"b{i}"]),
                node("Unsqueeze", [f"b{i}", "first"], [f"u{i}"]),
                node("Concat", [f"u{i}", "eight"], [f"r{i}"], axis=0),
                node("Reshape", [x, f"r{i}"], [f"y{i}"]),
            ],
            f"y{i}",
        ),
        NUMBERS,
    ),
    "sum of sizes": computed_size(("Add", "_", "one")),
    "maximum of sizes": computed_size(("Add", "_", "rows"), ("Max", "_", "five"), ("Div", "_", "two")),
}


def check(name: str, depth: int, static: bool = False, opt_level: int | None = None) -> tuple[float, int]:
    """Compiles a case and compares it with ONNX Runtime; gives the seconds of CPU that compiling took, and the kernels."""
    import onnxruntime

    made = CASES[name](depth)
    shape = [d.dim_value or SIZES[d.dim_param] for d in made.graph.input[0].type.tensor_type.shape.dim]
    start = time.process_time()
    module = relayc.compile(made, shapes={"x": shape} if static else None, opt_level=opt_level, cache=False)
    seconds = time.process_time() - start
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # constants that a case has no use for
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    expected = onnxruntime.InferenceSession(made.SerializeToString(), options).run(None, {"x": x})[0]
    # Each step rounds anew: the tolerance is of the whole, for operators that shrink what the steps before got wrong.
    np.testing.assert_allclose(module["main"](x), expected, rtol=1e-4, atol=1e-4)
    return seconds, len(module.kernels)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compiles deep models and compares them with ONNX Runtime.")
    parser.add_argument("--depth", type=int, default=10000, help="steps of each model")
    parser.add_argument("--cases", default=",".join(CASES), help="names, separated by commas")
    parser.add_argument("--static", action="store_true", help="with sizes that are numbers")
    parser.add_argument("--opt-level", type=int, default=None)
    options = parser.parse_args()
    for name in options.cases.split(","):
        seconds, kernels = check(name, options.depth, options.static, options.opt_level)
        print(f"{name:20} {options.depth:6} steps {seconds:8.1f} CPU s {kernels:4} kernels", flush=True)


if __name__ == "__main__":
    main()
