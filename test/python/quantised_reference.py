"""Random graphs of quantised tensors as graphs of wide integers and floats, which the reference computes."""

from dataclasses import replace
from typing import Any

import numpy as np
from random_graphs import Body, Graph, Node
from random_quantised import PRODUCTS

from relayc.dialects.relay.registration import OPS


class _Composer:
    """Writes operators on quantised tensors as operators on wide integers and floats, each by the definition of its real numbers."""

    def __init__(self, graph: Graph) -> None:
        self.types, self.nodes = dict(graph.types), list[Node]()

    def emit(self, op: str, *operands: int, **attrs: Any) -> int:
        found = len(self.types)
        (self.types[found],) = OPS[op].result_types([self.types[v] for v in operands], OPS[op].attribute_values(attrs))
        self.nodes.append(Node(op, operands, attrs, (found,)))
        return found

    def body(self, body: Body) -> Body:
        outer, self.nodes = self.nodes, []
        for node in body.nodes:
            node = replace(node, bodies=tuple(map(self.body, node.bodies)))
            if not node.op.startswith("qnn_"):
                self.nodes.append(node)
                continue
            attrs = OPS[node.op].attribute_values(dict(node.attrs))
            found = _COMPOSED.get(node.op, _function)(self, node, attrs, *node.operands)
            last = next(i for i in reversed(range(len(self.nodes))) if found in self.nodes[i].results)
            self.nodes[last] = replace(self.nodes[last], results=node.results)
        nodes, self.nodes = self.nodes, outer
        return replace(body, nodes=tuple(nodes))

    def cast(self, v: int, dtype: str) -> int:
        return self.emit("cast", v, dtype=dtype)

    def along(self, parameter: int, x: int, axis: int) -> int:
        """A parameter as it broadcasts to a tensor."""
        t, rank = self.types[parameter], self.types[x].rank
        shape = () if t.num_elements == 1 else [t.shape[0] if i == axis % rank else 1 for i in range(rank)]
        return self.emit("reshape", parameter, newshape=tuple(shape))

    def centred(self, x: int, zero: int, axis: int = -1, dtype: str = "int64") -> int:
        return self.emit("subtract", self.cast(x, dtype), self.cast(self.along(zero, x, axis), dtype))

    def real(self, x: int, scale: int, zero: int, axis: int = -1, dtype: str = "float64") -> int:
        return self.emit("multiply", self.cast(self.centred(x, zero, axis), dtype), self.cast(self.along(scale, x, axis), dtype))

    def rounded(self, x: int, rounding: str) -> int:
        if rounding == "TONEVEN":
            return self.emit("round", x)
        one = self.emit("ones", shape=(), dtype=self.types[x].dtype)
        half = self.emit("divide", one, self.emit("add", one, one))
        if rounding != "TONEAREST":
            return self.emit("floor", self.emit("add", x, half))
        return self.emit("multiply", self.emit("sign", x), self.emit("floor", self.emit("add", self.emit("abs", x), half)))

    def quantised(self, real: int, scale: int, zero: int, dtype: str, rounding: str, axis: int = -1) -> int:
        """Real numbers as numbers of an integer type, in float64."""
        steps = self.emit("divide", self.cast(real, "float64"), self.cast(self.along(scale, real, axis), "float64"))
        found = self.emit("add", self.rounded(steps, rounding), self.cast(self.along(zero, real, axis), "float64"))
        limits = np.iinfo(dtype)
        return self.cast(self.emit("clip", found, a_min=float(limits.min), a_max=float(limits.max)), dtype)


def _product(c: _Composer, node: Node, a: dict[str, Any], x: int, w: int, zero: int, weight_zero: int, *scales: int) -> int:
    layout = a.get("kernel_layout")
    axis = layout.index("O") if layout else int(node.op != "qnn_dense" and not a["transpose_b"])
    attrs = {name: value for name, value in a.items() if name != "out_dtype"}
    return c.emit(node.op[1:], c.centred(x, zero, -1, "int32"), c.centred(w, weight_zero, axis, "int32"), **attrs)


def _binary(c: _Composer, node: Node, a: dict[str, Any], *operands: int) -> int:
    x, y, x_scale, x_zero, y_scale, y_zero, scale, zero = operands
    dtype, sides = a["out_dtype"] or c.types[x].dtype, ((x, x_scale, x_zero, a["lhs_axis"]), (y, y_scale, y_zero, a["rhs_axis"]))
    name = {"qnn_add": "add", "qnn_subtract": "subtract", "qnn_mul": "multiply"}[node.op]
    if name == "multiply" or a["rounding"] == "TONEVEN":
        return c.quantised(c.emit(name, *(c.real(*side) for side in sides)), scale, zero, dtype, a["rounding"])
    # Relay brings both to the scale of the result, each in int32.
    none = c.emit("zeros", shape=(), dtype="int32")
    pair = [c.cast(c.quantised(c.real(*side), scale, none, "int32", a["rounding"]), "float64") for side in sides]
    one = c.emit("ones", shape=(), dtype="float32")
    return c.quantised(c.emit(name, *pair), one, zero, dtype, "TONEVEN")


def _function(c: _Composer, node: Node, a: dict[str, Any], x: int, scale: int, zero: int, to_scale: int, to_zero: int) -> int:
    real, name = c.real(x, scale, zero, dtype="float32"), node.op[4:]
    if name in ("softmax", "leaky_relu"):
        real = c.emit(f"nn_{name}", real, **{k: v for k, v in a.items() if k in ("axis", "alpha")})
    elif name == "hardswish":
        one = c.emit("ones", shape=(), dtype="float32")
        three = c.emit("add", one, c.emit("add", one, one))
        gate = c.emit("clip", c.emit("add", real, three), a_min=0.0, a_max=6.0)
        real = c.emit("divide", c.emit("multiply", real, gate), c.emit("add", three, three))
    else:
        real = c.emit(name, real)
    return c.quantised(real, to_scale, to_zero, c.types[x].dtype, a["rounding"])


def _means(c: _Composer, node: Node, a: dict[str, Any], x: int, scale: int, zero: int, to_scale: int, to_zero: int) -> int:
    attrs = {name: a[name] for name in OPS["nn_avg_pool2d"].attr_specs}
    found = c.emit("nn_avg_pool2d", c.real(x, scale, zero), **attrs)
    return c.quantised(found, to_scale, to_zero, c.types[x].dtype, "TONEVEN")


_COMPOSED = {
    **dict.fromkeys(PRODUCTS, _product),
    **dict.fromkeys(("qnn_add", "qnn_subtract", "qnn_mul"), _binary),
    "qnn_avg_pool2d": _means,
    "qnn_dequantize": lambda c, node, a, x, scale, zero: c.cast(c.real(x, scale, zero, a["axis"], "float32"), a["out_dtype"]),
    "qnn_quantize": lambda c, node, a, x, *to: c.quantised(x, *to, a["out_dtype"], a["rounding"], a["axis"]),
    "qnn_requantize": lambda c, node, a, x, scale, zero, *to: c.quantised(
        c.real(x, scale, zero, a["axis"]), *to, a["out_dtype"], a["rounding"], a["axis"]
    ),
}


def composed(graph: Graph) -> Graph:
    """A graph without operators on quantised tensors, which gives the same."""
    bodies = (graph.main, *graph.functions)
    if not any(node.op.startswith("qnn_") for body in bodies for node in body.all_nodes()):
        return graph
    c = _Composer(graph)
    main, *functions = map(c.body, bodies)
    return replace(graph, main=main, functions=tuple(functions), types=c.types)
