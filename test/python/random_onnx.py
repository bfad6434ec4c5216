"""Random graphs as ONNX models, where ONNX has their operators: ONNX Runtime is a reference that shares nothing with the compiler."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper
from oracle import HAS_VNNI
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
        self.initializers[name] = numpy_helper.from_array(
            np.asarray(list(value) if isinstance(value, range) else value, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype), name
        )
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


Write = Callable[..., Any]


def _named(op: str, **attrs: Any) -> Write:
    return lambda w, a, *x: w.add(op, *x, **attrs)


def _if(holds: Callable[[Any], Any], write: Write) -> Write:
    """What writes an operator whose attributes ONNX has a form for."""

    def written(w: Writer, a: Any, *x: str) -> Any:
        if not holds(a):
            raise Unwritable(a.op)
        return write(w, a, *x)

    return written


def _reduction(op: str) -> Write:
    def write(w: Writer, a: Any, x: str) -> Any:
        axes = list(range(a.type.rank)) if a.axis is None else [i % a.type.rank for i in a.axis]
        axes = [i for i in range(a.type.rank) if i not in axes] if a.exclude else axes
        if not op.startswith("Arg"):
            return w.add(op, x, w.constant(axes), keepdims=int(a.keepdims), noop_with_empty_axes=1)
        if len(axes) != 1:
            raise Unwritable(a.op)
        found = w.add(op, x, axis=axes[0], keepdims=int(a.keepdims), select_last_index=int(a.select_last_index))
        return w.add("Cast", found, to=onnx_type("int32"))

    return write


def _with_vector(op: str) -> Write:
    def write(w: Writer, a: Any, x: str, vector: str) -> Any:
        return w.add(op, x, w.reshape(vector, [n if i == a.axis % a.type.rank else 1 for i, n in enumerate(a.type.static_shape)]))

    return write


def _matmul(w: Writer, a: Any, x: str, y: str, *zeros: str) -> Any:
    flags = (getattr(a, "transpose_a", False), getattr(a, "transpose_b", True))
    ranks = [t.rank for t in a.types]
    turned = [w.add("Transpose", v, perm=[*range(r - 2), r - 1, r - 2]) if f else v for v, f, r in zip((x, y), flags, ranks, strict=False)]
    return w.add("MatMulInteger" if zeros else "MatMul", *turned, *zeros)


def _of_integers(write: Write) -> Write:
    """A product of quantised tensors: ONNX has no scales for it, and ONNX Runtime saturates sums on CPUs without VNNI."""
    return _if(lambda a: HAS_VNNI and a.types[2].rank == a.types[3].rank == 0, lambda w, a, *x: write(w, a, *x[:4]))


def _conv(w: Writer, a: Any, x: str, weight: str, *zeros: str) -> Any:
    letters = "DHW"[5 - a.type.rank :]
    attrs = {"strides": a.strides, "pads": a.padding, "dilations": a.dilation, "group": a.groups}
    more = {"output_padding": a.output_padding} if hasattr(a, "output_padding") else {}
    weight = w.transpose(weight, a.kernel_layout, ("IO" if more else "OI") + letters)
    name = "ConvTranspose" if more else "ConvInteger" if zeros else "Conv"
    found = w.add(name, w.transpose(x, a.data_layout, f"NC{letters}"), weight, *zeros, **attrs, **more)
    return w.transpose(found, f"NC{letters}", a.data_layout)


def _image(op: str, *names: str, **attrs: Any) -> Write:
    """An operator of images in the order of ONNX, with attributes of the same names."""

    def write(w: Writer, a: Any, x: str) -> Any:
        letters = f"NC{'DHW'[5 - a.type.rank :]}"
        values = {name: getattr(a, attrs.get(name, name)) for name in (*names, *attrs)}
        values = {name: int(v) if isinstance(v, bool) else v for name, v in values.items()}
        return w.transpose(w.add(op, w.transpose(x, a.layout, letters), **values), letters, a.layout)

    return write


def _grid_sample(w: Writer, a: Any, x: str, grid: str) -> Any:
    grid = w.add("Transpose", grid, perm=[0, *range(2, a.type.rank), 1])
    mode = {"bilinear": "linear", "bicubic": "cubic"}[a.method]
    return w.add("GridSample", x, grid, mode=mode, padding_mode=a.padding_mode, align_corners=int(a.align_corners))


def _topk(w: Writer, a: Any, x: str) -> Any:
    k = getattr(a, "k", a.type.static_shape[a.axis])
    values, indices = w.add("TopK", x, w.constant([k]), outputs=2, axis=a.axis, largest=int(not a.is_ascend))
    if a.op == "sort":
        return values
    indices = w.add("Cast", indices, to=onnx_type(a.dtype))
    return {"both": [values, indices], "values": values, "indices": indices}[a.ret_type]


def _columns_last(w: Writer, a: Any, indices: str) -> str:
    return str(w.add("Transpose", indices, perm=[*range(1, a.types[1].rank), 0]))


def _one_hot(w: Writer, a: Any, indices: str, on: str, off: str) -> Any:
    both = w.add("Concat", w.reshape(off, [1]), w.reshape(on, [1]), axis=0)
    # ONNX counts negative indices from the end, Relay gives `off` for them as for those from the depth on.
    indices = w.add("Cast", indices, to=onnx_type("int64"))
    indices = w.add("Where", w.add("Less", indices, w.constant(0)), w.constant(a.depth), indices)
    return w.add("OneHot", indices, w.constant(a.depth), both, axis=a.axis)


def _slice(w: Writer, a: Any, x: str) -> Any:
    strides = [*a.strides, *[1] * (len(a.begin) - len(a.strides))]
    return w.add("Slice", x, *map(w.constant, (a.begin, a.end, range(len(a.begin)) if a.axes is None else a.axes, strides)))


def _split(w: Writer, a: Any, x: str) -> Any:
    sizes = [t.static_shape[a.axis] for t in a.outs]
    found = w.add("Split", x, w.constant(sizes), outputs=len(sizes), axis=a.axis)
    return found if isinstance(found, list) else [found]


def _pad(w: Writer, a: Any, x: str, *value: str) -> Any:
    mode = a.pad_mode if value else a.mode.lower()
    return w.add("Pad", x, w.constant([*a.pad_width[::2], *a.pad_width[1::2]]), *(value if mode == "constant" else ()), mode=mode)


def _quantisation(op: str) -> Write:
    def write(w: Writer, a: Any, x: str, *parameters: str) -> Any:
        types = a.types[1:]
        if a.type.dtype == "int32" or a.outs[0].dtype == "int32" or any(t.rank == 1 and t.static_shape[0] == 1 for t in types):
            raise Unwritable("numbers of 32 bits, or vectors of one")  # ONNX quantises to 16 bits at most, and scales are along an axis
        return w.add(op, x, *parameters, axis=a.axis)

    return write


def _by_channels(a: Any) -> bool:
    return bool(a.center and a.scale and a.axis % a.type.rank == 1)


_NAMES = {
    **{relay: op for table in (unary._SAME_AS_RELAY, binary._SAME_AS_RELAY) for op, relay in table.items()},
    **{"maximum": "Max", "minimum": "Min", "isnan": "IsNaN", "isinf": "IsInf", "nn_relu": "Relu", "where": "Where"},
    **{"copy": "Identity", "det": "Det"},
}
_WINDOW = {"kernel_shape": "pool_size", "pads": "padding", "dilations": "dilation"}
WRITERS: dict[str, Write] = {
    "qnn_quantize": _if(lambda a: a.rounding == "TONEVEN" and a.type.dtype == "float32", _quantisation("QuantizeLinear")),
    "qnn_dequantize": _if(lambda a: a.out_dtype == "float32", _quantisation("DequantizeLinear")),
    **{name: _named(op) for name, op in _NAMES.items()},
    "power": _if(lambda a: a.type.is_float, _named("Pow")),  # ONNX Runtime computes powers of integers in f64, which do not wrap
    **{name: _reduction(f"Reduce{name.capitalize()}") for name in ("sum", "max", "min", "prod")},
    "mean": _if(lambda a: a.type.is_float, _reduction("ReduceMean")),
    "argmax": _reduction("ArgMax"),
    "argmin": _reduction("ArgMin"),
    "mod": _named("Mod", fmod=1),
    "not_equal": lambda w, a, x, y: w.add("Not", w.add("Equal", x, y)),
    "rsqrt": lambda w, a, x: w.add("Reciprocal", w.add("Sqrt", x)),
    "clip": _if(
        lambda a: a.type.is_float,
        lambda w, a, x: w.add("Clip", x, *("" if v is None else w.constant(v, a.type.dtype) for v in (a.a_min, a.a_max))),
    ),
    "nn_leaky_relu": lambda w, a, x: w.add("LeakyRelu", x, alpha=a.alpha),
    "nn_bias_add": _with_vector("Add"),
    "nn_prelu": _with_vector("PRelu"),
    "nn_softmax": lambda w, a, x: w.add("Softmax", x, axis=a.axis),
    "nn_log_softmax": lambda w, a, x: w.add("LogSoftmax", x, axis=a.axis),
    "nn_batch_norm": _if(_by_channels, lambda w, a, *x: [w.add("BatchNormalization", *x, epsilon=a.epsilon), *x[-2:]]),
    "nn_instance_norm": _if(_by_channels, lambda w, a, *x: w.add("InstanceNormalization", *x, epsilon=a.epsilon)),
    "nn_group_norm": _if(_by_channels, lambda w, a, *x: w.add("GroupNormalization", *x, epsilon=a.epsilon, num_groups=a.num_groups)),
    "nn_layer_norm": _if(
        lambda a: a.center and a.scale and a.axis in (-1, a.type.rank - 1),
        lambda w, a, *x: w.add("LayerNormalization", *x, epsilon=a.epsilon, axis=-1),
    ),
    "nn_lrn": _if(
        lambda a: a.type.rank == 4 and a.axis % 4 == 1,
        lambda w, a, x: w.add("LRN", x, size=a.size, bias=a.bias, alpha=a.alpha, beta=a.beta),
    ),
    "variance": lambda w, a, x, mean: w.add(
        "ReduceMean", w.add("Pow", w.add("Sub", x, mean), w.constant(2, a.type.dtype)), w.constant(a.axis), keepdims=int(a.keepdims)
    ),
    **dict.fromkeys(("nn_dense", "nn_matmul", "nn_batch_matmul"), _matmul),
    **dict.fromkeys((f"nn_conv{n}d{end}" for n in (1, 2, 3) for end in ("", "_transpose")), _conv),
    **{f"qnn_conv{n}d": _of_integers(_conv) for n in (1, 2, 3)},
    **dict.fromkeys(("qnn_dense", "qnn_matmul", "qnn_batch_matmul"), _of_integers(_matmul)),
    # In ceil_mode ONNX Runtime is not at one with the standard.
    **{f"nn_max_pool{n}d": _if(lambda a: not a.ceil_mode, _image("MaxPool", "strides", **_WINDOW)) for n in (1, 2, 3)},
    **{
        f"nn_avg_pool{n}d": _if(lambda a: not a.ceil_mode, _image("AveragePool", "strides", "count_include_pad", **_WINDOW))
        for n in (1, 2, 3)
    },
    "nn_global_max_pool2d": _image("GlobalMaxPool"),
    "nn_global_avg_pool2d": _image("GlobalAveragePool"),
    "nn_depth_to_space": _image("DepthToSpace", "mode", blocksize="block_size"),
    "nn_space_to_depth": _image("SpaceToDepth", blocksize="block_size"),
    "image_grid_sample": _if(lambda a: a.type.rank < 5 or a.method == "bilinear", _grid_sample),
    "cumsum": lambda w, a, x: w.add(
        "CumSum", w.reshape(x, [-1]) if a.axis is None else x, w.constant(a.axis or 0), exclusive=int(a.exclusive)
    ),
    "sort": _topk,
    "topk": _topk,
    "take": _if(lambda a: a.mode == "raise" and a.axis is not None, lambda w, a, x, i: w.add("Gather", x, i, axis=a.axis)),
    "gather": lambda w, a, x, i: w.add("GatherElements", x, i, axis=a.axis),
    "gather_nd": lambda w, a, x, i: w.add("GatherND", x, _columns_last(w, a, i)),
    # Which of several updates of an element is the last one is not said in ONNX.
    "scatter_nd": _if(
        lambda a: a.mode != "update", lambda w, a, x, i, u: w.add("ScatterND", x, _columns_last(w, a, i), u, reduction=a.mode)
    ),
    "scatter_elements": _if(
        lambda a: a.reduction != "update", lambda w, a, *x: w.add("ScatterElements", *x, axis=a.axis, reduction=a.reduction)
    ),
    "one_hot": _one_hot,
    "cast": lambda w, a, x: w.add("Cast", x, to=onnx_type(a.dtype)),
    **dict.fromkeys(("reshape", "squeeze", "expand_dims", "nn_batch_flatten"), lambda w, a, x: w.reshape(x, a.outs[0].shape)),
    "transpose": lambda w, a, x: w.add("Transpose", x, perm=a.axes) if a.axes else x,
    "reverse": lambda w, a, x: w.add("Slice", x, *(w.constant([v]) for v in (-1, -(1 << 31), a.axis, -1))),
    "strided_slice": _slice,
    "split": _split,
    "concatenate": lambda w, a, *x: w.add("Concat", *x, axis=a.axis),
    "stack": lambda w, a, *x: w.add("Concat", *(w.add("Unsqueeze", v, w.constant([a.axis])) for v in x), axis=a.axis),
    "nn_pad": _pad,
    "nn_mirror_pad": _if(lambda a: a.mode == "REFLECT", _pad),
    "broadcast_to": lambda w, a, x: w.add("Expand", x, w.constant(a.shape)),
    "tile": lambda w, a, x: w.add("Tile", x, w.constant(a.reps)),
    "trilu": lambda w, a, x, k: w.add("Trilu", x, k, upper=int(a.upper)),
    "full": lambda w, a, x: w.add("Expand", x, w.constant(a.shape)),
    "arange": lambda w, a: w.constant(np.arange(a.start, a.stop, a.step), a.dtype),
    "zeros": lambda w, a: w.constant(np.zeros(a.shape), a.dtype),
    "ones": lambda w, a: w.constant(np.ones(a.shape), a.dtype),
    "sizes": lambda w, a: w.constant(a.values, a.dtype),
    "shape_of": lambda w, a, x: w.constant(a.type.shape, a.dtype),
}
