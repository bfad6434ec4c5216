"""Random graphs as ONNX models, where ONNX has their operators: ONNX Runtime is a reference that shares nothing with the compiler."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper
from random_graphs import Body, Graph, Node, Sizes, at

from relayc import TensorType
from relayc.dialects.relay.registration import OPS
from relayc.frontend.onnx import binary, unary

OPSET = 21


class Unwritable(Exception):
    """ONNX, or this file, has no such operator."""


def onnx_type(dtype: str) -> int:
    if dtype == "bfloat16":
        return int(TensorProto.BFLOAT16)
    if TensorType((), dtype).is_narrow:
        raise Unwritable(dtype)
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


class Writer:
    """Nodes of a graph of ONNX under construction."""

    def __init__(self, graph: Graph, sizes: Sizes) -> None:
        self.graph, self.sizes, self.count = graph, sizes, 0
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.read: set[str] = set()

    def add(self, op: str, *inputs: str, outputs: int = 1, **attrs: Any) -> Any:
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attrs))
        return names[0] if outputs == 1 else names

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def constant(self, value: Any, dtype: str = "int64") -> str:
        name = self.name()
        self.initializers[name] = numpy_helper.from_array(np.asarray(value, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype), name)
        return name

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        return self.add("Reshape", x, self.constant(list(shape)), allowzero=1)

    def transpose(self, x: str, source: str, target: str) -> str:
        """An image in another order of axes."""
        return x if source == target else self.add("Transpose", x, perm=[source.index(axis) for axis in target])

    def type(self, v: int) -> TensorType:
        t = self.graph.types[v]
        return t.with_shape(at(t.sizes, self.sizes))

    def value_info(self, name: str, v: int) -> Any:
        return helper.make_tensor_value_info(name, onnx_type(self.type(v).dtype), self.type(v).static_shape)

    def leaf(self, v: int) -> str:
        name = f"v{v}"
        leaf = self.graph.leaves[v]
        onnx_type(leaf.type.dtype)
        self.read.add(name)
        if leaf.constant:
            self.initializers[name] = numpy_helper.from_array(self.graph.array(v, self.sizes), name)
        return name

    def body(self, body: Body, known: Mapping[int, str], partial: bool = False) -> dict[int, str]:
        """Names of values after the nodes of a body; where `partial` of those that can be written. Raises Unwritable otherwise."""
        known = dict(known)
        for node in body.nodes:
            try:
                used = {*node.operands, *(v for b in node.bodies for v in b.uses())}
                known |= {v: self.leaf(v) for v in used & self.graph.leaves.keys()}
                known.update(zip(node.results, self.node(node, known), strict=False))
            except (Unwritable, KeyError):
                if not partial:
                    raise
        return known | {v: self.leaf(v) for v in set(body.results) & self.graph.leaves.keys()}

    def results(self, body: Body, known: Mapping[int, str]) -> list[str]:
        found = self.body(body, known)
        return [found[v] for v in body.results]

    def region(self, name: str, body: Body, known: Mapping[int, str], before: Sequence[Any] = (), more: Sequence[Body] = ()) -> Any:
        """A subgraph; of a loop with the condition after the body, and iteration and condition as inputs `before`."""
        outer, self.nodes = self.nodes, []
        try:
            results = self.results(body, known)
            conditions = [self.results(b, {**known, **dict(zip(b.arguments, results, strict=True))})[0] for b in more]
            outputs = [self.add("Identity", r) for r in (*conditions, *results)]
            infos = [helper.make_tensor_value_info(o, TensorProto.BOOL, ()) for o in outputs[: len(more)]]
            infos += [self.value_info(o, v) for o, v in zip(outputs[len(more) :], body.results, strict=True)]
            return helper.make_graph(self.nodes, name, list(before), infos)
        finally:
            self.nodes = outer

    def node(self, node: Node, known: Mapping[int, str]) -> Sequence[str]:
        names = [known[v] for v in node.operands]
        if node.op == "call":
            function = self.graph.functions[node.attrs["function"]]
            return self.results(function, dict(zip(function.arguments, names, strict=True)))
        if node.op == "if":
            then, otherwise = (self.region(f"g{self.name()}", body, known) for body in node.bodies)
            found = self.add("If", names[0], outputs=len(node.results), then_branch=then, else_branch=otherwise)
            return [found] if isinstance(found, str) else list(found)
        if node.op == "while":
            condition, step = node.bodies
            first = self.results(condition, {**known, **dict(zip(condition.arguments, names, strict=True))})[0]
            carried = {v: self.name() for v in step.arguments}
            before = [helper.make_tensor_value_info(self.name(), t, ()) for t in (TensorProto.INT64, TensorProto.BOOL)]
            before += [self.value_info(name, v) for v, name in carried.items()]
            body = self.region(f"g{self.name()}", step, {**known, **carried}, before, [condition])
            return list(self.add("Loop", "", first, *names, outputs=len(names), body=body))
        attrs = OPS[node.op].attribute_values({k: at(v, self.sizes) for k, v in node.attrs.items()})
        types = [self.type(v) for v in node.operands]
        for v in (*node.operands, *node.results):
            onnx_type(self.graph.types[v].dtype)
        a = SimpleNamespace(**attrs, op=node.op, types=types, type=types[0] if types else None, outs=[self.type(v) for v in node.results])
        if node.op not in WRITERS:
            raise Unwritable(node.op)
        found = WRITERS[node.op](self, a, *names)
        return [found] if isinstance(found, str) else list(found)


def model_of(graph: Graph, sizes: Sizes) -> tuple[ModelProto, list[int]]:
    """The model of a graph at sizes, and which results it gives: those that ONNX has all operators for. Raises Unwritable."""
    w = Writer(graph, sizes)
    known = w.body(graph.main, {}, partial=True)
    written = [i for i, v in enumerate(graph.main.results) if v in known]
    if not written:
        raise Unwritable("every result")
    results = [graph.main.results[i] for i in written]
    outputs = [w.add("Identity", known[v]) for v in results]
    inputs = [w.value_info(f"v{v}", v) for v in graph.inputs if f"v{v}" in w.read]
    infos = [w.value_info(o, v) for o, v in zip(outputs, results, strict=True)]
    made = helper.make_graph(w.nodes, "main", inputs, infos, list(w.initializers.values()))
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10), written


# ---- operators ------------------------------------------------------------------------------------------------------------------------


def _named(op: str, **attrs: Any) -> Callable[..., Any]:
    return lambda w, a, *x: w.add(op, *x, **attrs)


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise Unwritable(what)


_NAMES = {
    **{relay: op for table in (unary._SAME_AS_RELAY, binary._SAME_AS_RELAY) for op, relay in table.items()},
    **{"power": "Pow", "maximum": "Max", "minimum": "Min", "isnan": "IsNaN", "isinf": "IsInf", "nn_relu": "Relu", "where": "Where"},
    **{"copy": "Identity", "det": "Det"},
}
WRITERS: dict[str, Callable[..., Any]] = {
    **{name: _named(op) for name, op in _NAMES.items()},
    "mod": _named("Mod", fmod=1),
    "not_equal": lambda w, a, x, y: w.add("Not", w.add("Equal", x, y)),
    "rsqrt": lambda w, a, x: w.add("Reciprocal", w.add("Sqrt", x)),
    "nn_leaky_relu": lambda w, a, x: w.add("LeakyRelu", x, alpha=a.alpha),
    "nn_softmax": lambda w, a, x: w.add("Softmax", x, axis=a.axis),
    "nn_log_softmax": lambda w, a, x: w.add("LogSoftmax", x, axis=a.axis),
    "cast": lambda w, a, x: w.add("Cast", x, to=onnx_type(a.dtype)),
    "transpose": lambda w, a, x: w.add("Transpose", x, perm=a.axes),
    "concatenate": lambda w, a, *x: w.add("Concat", *x, axis=a.axis),
    "stack": lambda w, a, *x: w.add("Concat", *(w.add("Unsqueeze", v, w.constant([a.axis])) for v in x), axis=a.axis),
    "broadcast_to": lambda w, a, x: w.add("Expand", x, w.constant(a.shape)),
    "tile": lambda w, a, x: w.add("Tile", x, w.constant(a.reps)),
    "trilu": lambda w, a, x, k: w.add("Trilu", x, k, upper=int(a.upper)),
    "full": lambda w, a, x: w.add("Expand", x, w.constant(a.shape)),
    "arange": lambda w, a: w.constant(np.arange(a.start, a.stop, a.step), a.dtype),
    "zeros": lambda w, a: w.constant(np.zeros(a.shape), a.dtype),
    "ones": lambda w, a: w.constant(np.ones(a.shape), a.dtype),
    "sizes": lambda w, a: w.constant(a.values, a.dtype),
    "shape_of": lambda w, a, x: w.constant(a.type.shape, a.dtype),
    "gather": lambda w, a, x, i: w.add("GatherElements", x, i, axis=a.axis),
    **dict.fromkeys(("reshape", "squeeze", "expand_dims", "nn_batch_flatten"), lambda w, a, x: w.reshape(x, a.outs[0].shape)),
}


def writer(*ops: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        WRITERS.update(dict.fromkeys(ops, function))
        return function

    return enter


def _reduction(op: str) -> Callable[..., Any]:
    def write(w: Writer, a: Any, x: str) -> Any:
        axes = list(range(a.type.rank)) if a.axis is None else [i % a.type.rank for i in a.axis]
        axes = [i for i in range(a.type.rank) if i not in axes] if a.exclude else axes
        if op.startswith("Arg"):
            _require(len(axes) == 1, "axes")
            found = w.add(op, x, axis=axes[0], keepdims=int(a.keepdims), select_last_index=int(a.select_last_index))
            return w.add("Cast", found, to=onnx_type("int32"))
        _require(bool(axes) and (op != "ReduceMean" or a.type.is_float), "axes")
        return w.add(op, x, w.constant(axes), keepdims=int(a.keepdims))

    return write


_REDUCTIONS = {name: f"Reduce{name.capitalize()}" for name in ("sum", "mean", "max", "min", "prod")} | {
    "argmax": "ArgMax",
    "argmin": "ArgMin",
}
WRITERS.update({name: _reduction(op) for name, op in _REDUCTIONS.items()})


@writer("clip")
def _clip(w: Writer, a: Any, x: str) -> Any:
    _require(a.type.is_float, "integers")
    return w.add("Clip", x, *("" if v is None else w.constant(v, a.type.dtype) for v in (a.a_min, a.a_max)))


def _along(w: Writer, a: Any, vector: str, axis: int) -> str:
    return w.reshape(vector, [a.type.static_shape[i] if i == axis % a.type.rank else 1 for i in range(a.type.rank)])


@writer("nn_bias_add", "nn_prelu")
def _with_vector(w: Writer, a: Any, x: str, vector: str) -> Any:
    return w.add("PRelu" if a.op == "nn_prelu" else "Add", x, _along(w, a, vector, a.axis))


@writer("nn_batch_norm")
def _batch_norm(w: Writer, a: Any, x: str, gamma: str, beta: str, mean: str, var: str) -> Any:
    _require(a.center and a.scale and a.axis % a.type.rank == 1, "axis")
    return [w.add("BatchNormalization", x, gamma, beta, mean, var, epsilon=a.epsilon), mean, var]


@writer("nn_layer_norm")
def _layer_norm(w: Writer, a: Any, x: str, gamma: str, beta: str) -> Any:
    _require(a.center and a.scale and a.axis % a.type.rank == a.type.rank - 1, "axis")
    return w.add("LayerNormalization", x, gamma, beta, epsilon=a.epsilon, axis=-1)


@writer("nn_instance_norm", "nn_group_norm")
def _group_norm(w: Writer, a: Any, x: str, gamma: str, beta: str) -> Any:
    _require(a.center and a.scale and a.axis % a.type.rank == 1, "axis")
    if hasattr(a, "num_groups"):
        return w.add("GroupNormalization", x, gamma, beta, num_groups=a.num_groups, epsilon=a.epsilon)
    return w.add("InstanceNormalization", x, gamma, beta, epsilon=a.epsilon)


@writer("nn_lrn")
def _lrn(w: Writer, a: Any, x: str) -> Any:
    _require(a.axis % a.type.rank == 1 and a.type.rank == 4, "axis")
    return w.add("LRN", x, size=a.size, bias=a.bias, alpha=a.alpha, beta=a.beta)


def _swapped(w: Writer, x: str, t: TensorType) -> str:
    return w.add("Transpose", x, perm=[*range(t.rank - 2), t.rank - 1, t.rank - 2])


@writer("nn_dense", "nn_matmul", "nn_batch_matmul")
def _matmul(w: Writer, a: Any, x: str, y: str) -> Any:
    _require(not a.out_dtype, "out_dtype")
    x = _swapped(w, x, a.types[0]) if getattr(a, "transpose_a", False) else x
    y = _swapped(w, y, a.types[1]) if getattr(a, "transpose_b", True) else y
    return w.add("MatMul", x, y)


@writer(*(f"nn_conv{n}d{end}" for n in (1, 2, 3) for end in ("", "_transpose")))
def _conv(w: Writer, a: Any, x: str, weight: str) -> Any:
    n = a.type.rank - 2
    letters = "DHW"[3 - n :]
    _require(len(a.padding) == 2 * n and not a.out_dtype and not a.out_layout, "short forms")
    attrs = {"strides": a.strides, "pads": a.padding, "dilations": a.dilation, "group": a.groups}
    transposed = hasattr(a, "output_padding")
    weight = w.transpose(weight, a.kernel_layout, ("IO" if transposed else "OI") + letters)
    x = w.transpose(x, a.data_layout, f"NC{letters}")
    more = {"output_padding": a.output_padding} if transposed else {}
    return w.transpose(w.add("ConvTranspose" if transposed else "Conv", x, weight, **attrs, **more), f"NC{letters}", a.data_layout)


@writer(*(f"nn_{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)))
def _pool(w: Writer, a: Any, x: str) -> Any:
    letters = "DHW"[5 - a.type.rank :]
    attrs = {"kernel_shape": a.pool_size, "strides": a.strides, "pads": a.padding, "dilations": a.dilation}
    average = hasattr(a, "count_include_pad")
    more = {"count_include_pad": int(a.count_include_pad)} if average else {}
    _require(not a.ceil_mode, "ceil_mode")  # in which ONNX Runtime is not at one with the standard
    x = w.transpose(x, a.layout, f"NC{letters}")
    return w.transpose(w.add("AveragePool" if average else "MaxPool", x, **attrs, **more), f"NC{letters}", a.layout)


@writer("nn_depth_to_space", "nn_space_to_depth")
def _blocks(w: Writer, a: Any, x: str) -> Any:
    x = w.transpose(x, a.layout, "NCHW")
    found = (
        w.add("DepthToSpace", x, blocksize=a.block_size, mode=a.mode)
        if hasattr(a, "mode")
        else w.add("SpaceToDepth", x, blocksize=a.block_size)
    )
    return w.transpose(found, "NCHW", a.layout)


@writer("image_grid_sample")
def _grid_sample(w: Writer, a: Any, x: str, grid: str) -> Any:
    rank = a.type.rank
    grid = w.add("Transpose", grid, perm=[0, *range(2, rank), 1])
    mode = {"bilinear": "linear", "bicubic": "cubic"}[a.method]
    _require(rank < 5 or mode == "linear", "cubic of volumes")
    return w.add("GridSample", x, grid, mode=mode, padding_mode=a.padding_mode, align_corners=int(a.align_corners))


@writer("cumsum")
def _cumsum(w: Writer, a: Any, x: str) -> Any:
    x = w.reshape(x, [-1]) if a.axis is None else x
    return w.add("CumSum", x, w.constant(a.axis or 0), exclusive=int(a.exclusive))


@writer("topk", "sort")
def _topk(w: Writer, a: Any, x: str) -> Any:
    k = getattr(a, "k", a.type.static_shape[a.axis])
    values, indices = w.add("TopK", x, w.constant([k]), outputs=2, axis=a.axis, largest=int(not a.is_ascend))
    if not hasattr(a, "k"):
        return values
    indices = w.add("Cast", indices, to=onnx_type(a.dtype))
    return {"both": [values, indices], "values": values, "indices": indices}[a.ret_type]


@writer("take")
def _take(w: Writer, a: Any, x: str, indices: str) -> Any:
    _require(a.mode == "raise" and a.axis is not None and not a.batch_dims, "mode")
    return w.add("Gather", x, indices, axis=a.axis)


def _columns_last(w: Writer, indices: str, rank: int) -> str:
    return w.add("Transpose", indices, perm=[*range(1, rank), 0])


@writer("gather_nd")
def _gather_nd(w: Writer, a: Any, x: str, indices: str) -> Any:
    return w.add("GatherND", x, _columns_last(w, indices, a.types[1].rank))


@writer("scatter_elements", "scatter_nd")
def _scatter(w: Writer, a: Any, x: str, indices: str, updates: str) -> Any:
    reduction = getattr(a, "reduction", None) or a.mode
    reduction = "none" if reduction == "update" else reduction
    if hasattr(a, "mode"):
        return w.add("ScatterND", x, _columns_last(w, indices, a.types[1].rank), updates, reduction=reduction)
    return w.add("ScatterElements", x, indices, updates, axis=a.axis, reduction=reduction)


@writer("one_hot")
def _one_hot(w: Writer, a: Any, indices: str, on: str, off: str) -> Any:
    both = w.add("Concat", w.reshape(off, [1]), w.reshape(on, [1]), axis=0)
    return w.add("OneHot", indices, w.constant(a.depth), both, axis=a.axis)


@writer("reverse", "strided_slice")
def _slice(w: Writer, a: Any, x: str) -> Any:
    if not hasattr(a, "begin"):
        return w.add("Slice", x, *(w.constant([v]) for v in (-1, -(1 << 31), a.axis, -1)))
    _require(a.slice_mode == "end", "sizes")
    strides = [*a.strides, *[1] * (len(a.begin) - len(a.strides))]
    axes = range(len(a.begin)) if a.axes is None else a.axes
    return w.add("Slice", x, *map(w.constant, (a.begin, a.end, list(axes), strides)))


@writer("split")
def _split(w: Writer, a: Any, x: str) -> Any:
    sizes = [t.static_shape[a.axis] for t in a.outs]
    found = w.add("Split", x, w.constant(sizes), outputs=len(sizes), axis=a.axis)
    return found if isinstance(found, list) else [found]


@writer("nn_pad", "nn_mirror_pad")
def _pad(w: Writer, a: Any, x: str, value: str = "") -> Any:
    mode = getattr(a, "pad_mode", None) or a.mode.lower()
    _require(mode != "symmetric", mode)
    return w.add("Pad", x, w.constant([*a.pad_width[::2], *a.pad_width[1::2]]), value if mode == "constant" else "", mode=mode)


@writer("repeat")
def _repeat(w: Writer, a: Any, x: str) -> Any:
    axis = 0 if a.axis is None else a.axis % a.type.rank
    shape = list(a.type.static_shape) if a.axis is not None else [int(np.prod(a.type.static_shape))]
    expanded = w.add(
        "Expand", w.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]]), w.constant([*shape[: axis + 1], a.repeats, *shape[axis + 1 :]])
    )
    return w.reshape(expanded, a.outs[0].static_shape)


@writer("variance")
def _variance(w: Writer, a: Any, x: str, mean: str) -> Any:
    _require(not a.unbiased and not a.exclude, "unbiased")
    off = w.add("Sub", x, mean)
    return w.add("ReduceMean", w.add("Mul", off, off), w.constant(a.axis), keepdims=int(a.keepdims))
