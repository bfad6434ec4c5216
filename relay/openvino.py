"""OpenVINO as a code generator: partitions of float32 operators on static shapes run in its CPU plugin (the extra `openvino`).

from relayc.relay import openvino

mod = openvino.partition_for_openvino(mod, params)  # what OpenVINO takes is in functions of its own
module = relay.build(mod)
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relayc.frontend.relay.ast import Call, Constant, Expr, Function, Id, Op, RelayModule, TensorType, Tuple, TupleType, Var
from relayc.frontend.relay.dataflow_pattern import DFPattern, is_op, wildcard
from relayc.frontend.relay.op.registered import register_op_attr
from relayc.frontend.relay.passes.byoc import get_pattern_table, register_pattern_table
from relayc.frontend.relay.passes.unused import remove_unused_functions
from relayc.relay import transform
from relayc.relay.build import as_module
from relayc.relay.external import register_external_codegen
from relayc.trampoline import Call as Step
from relayc.trampoline import each, trampoline

NAME = "openvino"

Node = Any
"""An output of a node of OpenVINO's graph."""
_Rule = Callable[[Any, list[Node], Mapping[str, Any], Call], Node]
"""(OpenVINO's operators, operands, attributes, the call) -> the result."""


def _shape(expr: Expr) -> list[int]:
    type_ = expr.checked_type
    assert isinstance(type_, TensorType)
    return [int(d) for d in type_.shape if isinstance(d, int)]


def _integers(ops: Any, values: Sequence[int]) -> Node:
    return ops.constant(np.array(values, np.int64))


def _same(theirs: str) -> _Rule:
    return lambda ops, args, attrs, call: getattr(ops, theirs)(*args)


def _conv2d(ops: Any, args: list[Node], attrs: Mapping[str, Any], call: Call) -> Node:
    pads = attrs["padding"][:2], attrs["padding"][2:]
    if attrs["groups"] == 1:
        return ops.convolution(*args, attrs["strides"], *pads, attrs["dilation"])
    out, inputs, *kernel = _shape(call.args[1])
    grouped = _integers(ops, [attrs["groups"], out // attrs["groups"], inputs, *kernel])
    return ops.group_convolution(args[0], ops.reshape(args[1], grouped, False), attrs["strides"], *pads, attrs["dilation"])


def _bias_add(ops: Any, args: list[Node], attrs: Mapping[str, Any], call: Call) -> Node:
    rank = len(_shape(call.args[0]))
    shape = [-1 if i == attrs["axis"] % rank else 1 for i in range(rank)]
    return ops.add(args[0], ops.reshape(args[1], _integers(ops, shape), False))


def _max_pool2d(ops: Any, args: list[Node], attrs: Mapping[str, Any], call: Call) -> Node:
    pads = list(attrs["padding"][:2]), list(attrs["padding"][2:])
    return ops.max_pool(args[0], attrs["strides"], attrs["dilation"], *pads, attrs["pool_size"]).output(0)


def _avg_pool2d(ops: Any, args: list[Node], attrs: Mapping[str, Any], call: Call) -> Node:
    pads = list(attrs["padding"][:2]), list(attrs["padding"][2:])
    return ops.avg_pool(args[0], attrs["strides"], *pads, attrs["pool_size"], not attrs["count_include_pad"])


_RULES: dict[str, _Rule] = {
    **{name: _same(name) for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power")},
    **{name: _same(name) for name in ("exp", "log", "sqrt", "tanh", "sigmoid", "erf", "abs", "floor", "negative")},
    "nn.relu": _same("relu"),
    "ceil": _same("ceiling"),
    "nn.conv2d": _conv2d,
    "nn.dense": lambda ops, args, attrs, call: ops.matmul(*args, False, True),
    "nn.batch_matmul": lambda ops, args, attrs, call: ops.matmul(*args, bool(attrs["transpose_a"]), bool(attrs["transpose_b"])),
    "nn.bias_add": _bias_add,
    "nn.max_pool2d": _max_pool2d,
    "nn.avg_pool2d": _avg_pool2d,
    "nn.global_avg_pool2d": lambda ops, args, attrs, call: ops.reduce_mean(args[0], _integers(ops, [2, 3]), True),
    "nn.softmax": lambda ops, args, attrs, call: ops.softmax(args[0], attrs["axis"] % len(_shape(call))),
    **dict.fromkeys(
        ("reshape", "nn.batch_flatten", "squeeze", "expand_dims"),
        lambda ops, args, attrs, call: ops.reshape(args[0], _integers(ops, _shape(call)), False),
    ),
    "transpose": lambda ops, args, attrs, call: ops.transpose(args[0], _integers(ops, attrs["axes"] or range(len(_shape(call)))[::-1])),
    "concatenate": lambda ops, args, attrs, call: ops.concat(list(args[0]), attrs["axis"]),
    "clip": lambda ops, args, attrs, call: ops.clamp(args[0], attrs["a_min"], attrs["a_max"]),
}


# ---- what it takes -----------------------------------------------------------------------------------------------------------------------

_LAYOUTS = {"data_layout": "NCHW", "kernel_layout": "OIHW", "layout": "NCHW", "ceil_mode": False, "out_layout": ("", "NCHW")}
"""Values of attributes that the rules are written for."""


def _is_taken(call: Call) -> bool:
    """Whether an operator's rule is right for a call: float32 on static shapes, in the usual layouts."""
    types = [part for expr in (*call.args, call) for part in _tensors(expr.checked_type)]
    if not all(t is not None and t.dtype == "float32" and all(isinstance(d, int) for d in t.shape) for t in types):
        return False
    attrs: Mapping[str, Any] = call.attrs or {}
    if isinstance(call.op, Op) and call.op.name == "nn.avg_pool2d" and tuple(attrs["dilation"]) != (1, 1):
        return False
    return all(attrs[k] in (v if isinstance(v, tuple) else (v,)) for k, v in _LAYOUTS.items() if k in attrs)


def _tensors(type_: Any) -> Sequence[TensorType | None]:
    fields = type_.fields if isinstance(type_, TupleType) else [type_]
    return [field if isinstance(field, TensorType) else None for field in fields]


for _name in _RULES:
    register_op_attr(_name, f"target.{NAME}", _is_taken)


@register_pattern_table(NAME)
def pattern_table() -> Sequence[tuple[str, DFPattern, Callable[[Expr], bool]]]:
    """Products with a bias and an activation, which are one kernel of OpenVINO."""
    found: list[tuple[str, DFPattern, Callable[[Expr], bool]]] = []
    for name in ("conv2d", "dense"):
        product = is_op(f"nn.{name}")(wildcard(), wildcard())
        biased = is_op("nn.bias_add")(product, wildcard()) | is_op("add")(product, wildcard())
        for suffix, pattern in (("bias_relu", is_op("nn.relu")(biased)), ("bias", biased), ("relu", is_op("nn.relu")(product))):
            found.append((f"{NAME}.{name}_{suffix}", pattern, _all_taken))
    return found


def _all_taken(expr: Expr) -> bool:
    """Whether all operators of a match, given its last expression, are accepted."""
    while isinstance(expr, Call) and _is_taken(expr):
        if isinstance(expr.op, Op) and expr.op.name in ("nn.conv2d", "nn.dense"):
            return True
        expr = expr.args[0]
    return False


def partition_for_openvino(mod: RelayModule | Expr, params: Mapping[str, Any] | None = None) -> RelayModule:
    """A program in which what OpenVINO takes is in functions with the attribute Compiler. Raises RelayError.

    Args:
      params: arrays that take the place of parameters of main, by name: constants are weights that OpenVINO prepares.
    """
    passes = [
        transform.InferType(),
        transform.MergeComposite(get_pattern_table(NAME)),
        transform.AnnotateTarget(NAME, False),
        transform.MergeCompilerRegions(),
        transform.PartitionGraph(),
    ]
    return remove_unused_functions(transform.Sequential(passes)(as_module(mod, params)))


# ---- code --------------------------------------------------------------------------------------------------------------------------------


@register_external_codegen(NAME)
def codegen(name: str, function: Function) -> Callable[..., None]:
    """A partition as a compiled model of OpenVINO. Raises ModuleNotFoundError without the extra `openvino`."""
    try:
        import openvino
        from openvino import opset13 as ops
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"partition {name}: expected the extra openvino (pip install 'relayc[openvino]')") from error
    variables: dict[Id, Node] = {}
    inputs = []
    for param in function.params:
        fields = [ops.parameter([int(d) for d in t.shape], np.float32) for t in _tensors(param.checked_type) if t is not None]  # type: ignore[arg-type]
        inputs += fields
        variables[param.vid] = fields if isinstance(param.checked_type, TupleType) else fields[0]
    result = _built(ops, function.body, variables)
    model = openvino.Model(list(result) if isinstance(result, list) else [result], inputs, name)
    precision = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    compiled = openvino.Core().compile_model(model, "CPU", precision)
    local = threading.local()

    def call(*arrays: np.ndarray) -> None:
        if not hasattr(local, "request"):
            local.request = compiled.create_infer_request()
        found = local.request.infer(list(arrays[: len(inputs)]))
        for i, out in enumerate(arrays[len(inputs) :]):
            out[...] = found[i]

    return call


def _built(ops: Any, body: Expr, variables: Mapping[Id, Node]) -> Node:
    """The node of an expression; of a tuple, the list of nodes."""
    return trampoline(_value(ops, body, variables, {}))


def _value(ops: Any, node: Expr, variables: Mapping[Id, Node], values: dict[Expr, Node]) -> Step[Node]:
    if isinstance(node, Var):
        return variables[node.vid]
    if node not in values:
        operands = node.fields if isinstance(node, Tuple) else node.args if isinstance(node, Call) else ()
        parts = yield each(_value(ops, part, variables, values) for part in operands)
        if isinstance(node, Constant):
            values[node] = ops.constant(np.ascontiguousarray(node.data.numpy()))
        elif isinstance(node, Tuple):
            values[node] = parts
        elif isinstance(node, Call) and isinstance(node.op, Function):  # a composite function: OpenVINO finds its own
            inner = {param.vid: part for param, part in zip(node.op.params, parts, strict=True)}
            values[node] = yield _value(ops, node.op.body, inner, {})
        else:
            assert isinstance(node, Call) and isinstance(node.op, Op)
            values[node] = _RULES[node.op.name](ops, parts, node.attrs or {}, node)
    return values[node]
