"""ONNX models that are wrong, or at the edge of what is right: what a model is changed by, one or a few changes at a time."""

from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

Change = Callable[["np.random.Generator", ModelProto], str]
"""Changes the model in place and says how; says nothing ("") where the model has no place for the change."""

INTEGERS = (0, 1, -1, 2, 3, 5, 7, 100, 1000, -2, -7, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
DIMENSIONS = (0, 1, 2, 3, 7, 17, 33, 100, -1, -3, 2**20, 2**31 - 1, 2**31, 2**32 + 1, 2**40, 2**62, 2**63 - 1, -(2**63))
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e38, -1e38, float("inf"), float("-inf"), float("nan"), 1e6)
TEXTS = ("", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", "linear", "cubic", "nearest", "constant", "reflect", "edge", "wrap", "DCR")
TEXTS += ("CRD", "none", "tanh", "sum", "mul", "add", "max", "min", "LEFT", "RIGHT", "ij,jk->ik", "i,i", "...ii->...i", "->", "é", "\0")
ELEMENT_TYPES = (0, *range(1, 25), 99, -1)


def mutant(model: ModelProto, rng: np.random.Generator) -> tuple[bytes, str]:
    """A changed copy of a model, serialised, and what was changed in it."""
    changed = ModelProto()
    changed.CopyFrom(model)
    wanted = int(rng.choice([1, 1, 1, 2, 3]))
    done: list[str] = []
    for _ in range(20):
        change = CHANGES[int(rng.integers(len(CHANGES)))]
        said = change(rng, changed)
        if said:
            done.append(said)
        if len(done) == wanted:
            break
    data = changed.SerializeToString()
    if rng.random() < 0.06:
        data, said = _damaged(data, rng)
        done.append(said)
    return data, "; ".join(done)


# ---- where to change ------------------------------------------------------------------------------------------------------------------


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and those in its nodes' attributes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from graphs(attribute.g)


def _pick(rng: np.random.Generator, items):  # type: ignore[no-untyped-def]
    """One of the items; None where there are none."""
    items = list(items)
    return items[int(rng.integers(len(items)))] if items else None


def _node(rng: np.random.Generator, model: ModelProto) -> NodeProto | None:
    return _pick(rng, (node for graph in graphs(model.graph) for node in graph.node))


def _names(model: ModelProto) -> list[str]:
    graph = model.graph
    named = [v.name for v in (*graph.input, *graph.initializer, *graph.output)]
    return sorted({*named, *(name for g in graphs(graph) for node in g.node for name in (*node.input, *node.output))})


# ---- attributes -----------------------------------------------------------------------------------------------------------------------


def _integer(rng: np.random.Generator) -> int:
    return int(INTEGERS[int(rng.integers(len(INTEGERS)))]) if rng.random() < 0.7 else int(rng.integers(-4, 9))


def _set_value(rng: np.random.Generator, attribute: AttributeProto) -> None:
    """Another value of the attribute's own type."""
    kind = attribute.type
    if kind == AttributeProto.INT:
        attribute.i = _integer(rng)
    elif kind == AttributeProto.FLOAT:
        attribute.f = float(_pick(rng, NUMBERS))
    elif kind == AttributeProto.STRING:
        attribute.s = b"\xff\xfe" if rng.random() < 0.1 else _pick(rng, TEXTS).encode()
    elif kind in (AttributeProto.INTS, AttributeProto.FLOATS):
        values = list(attribute.ints if kind == AttributeProto.INTS else attribute.floats)
        make = _integer if kind == AttributeProto.INTS else lambda rng: float(_pick(rng, NUMBERS))
        way = int(rng.integers(5))
        if way == 0:
            values.append(make(rng))
        elif way == 1 and values:
            del values[int(rng.integers(len(values)))]
        elif way == 2:
            values = [make(rng) for _ in range(int(rng.integers(0, 6)))]
        elif values:
            values[int(rng.integers(len(values)))] = make(rng)
        field = attribute.ints if kind == AttributeProto.INTS else attribute.floats
        del field[:]
        field.extend(values)
    elif kind == AttributeProto.TENSOR:
        _change_tensor(rng, attribute.t)


def change_attribute(rng: np.random.Generator, model: ModelProto) -> str:
    node = _pick(rng, (n for g in graphs(model.graph) for n in g.node if n.attribute))
    if node is None:
        return ""
    attribute = _pick(rng, node.attribute)
    before = onnx.helper.printable_attribute(attribute)[:60] if attribute.type != AttributeProto.GRAPH else attribute.name
    _set_value(rng, attribute)
    return f"{node.op_type}: attribute {before} -> {attribute.i} {list(attribute.ints)[:6]} {attribute.f} {attribute.s!r}"


def add_attribute(rng: np.random.Generator, model: ModelProto) -> str:
    """An attribute that the operator's schema has and the node does not give."""
    node = _node(rng, model)
    if node is None or not onnx.defs.has(node.op_type, domain=node.domain):
        return ""
    given = {a.name for a in node.attribute}
    schema = onnx.defs.get_schema(node.op_type, domain=node.domain)
    absent = _pick(rng, (a for name, a in schema.attributes.items() if name not in given))
    if absent is None:
        return ""
    kind = int(absent.type)
    if kind not in (AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.STRING, AttributeProto.INTS, AttributeProto.FLOATS):
        return ""
    attribute = node.attribute.add(name=absent.name, type=kind)
    for _ in range(int(rng.integers(1, 5))):
        _set_value(rng, attribute)
    value = onnx.helper.get_attribute_value(attribute)
    return f"{node.op_type}: attribute {absent.name} = {value!r} added"


def remove_attribute(rng: np.random.Generator, model: ModelProto) -> str:
    node = _pick(rng, (n for g in graphs(model.graph) for n in g.node if n.attribute))
    if node is None:
        return ""
    position = int(rng.integers(len(node.attribute)))
    name = node.attribute[position].name
    del node.attribute[position]
    return f"{node.op_type}: attribute {name} removed"


def retype_attribute(rng: np.random.Generator, model: ModelProto) -> str:
    """An attribute of another type, twice, without a name, or under another name."""
    node = _pick(rng, (n for g in graphs(model.graph) for n in g.node if n.attribute))
    if node is None:
        return ""
    attribute = _pick(rng, node.attribute)
    way = int(rng.integers(5))
    if way == 0:
        node.attribute.add().CopyFrom(attribute)
    elif way == 1:
        attribute.name = ""
    elif way == 2:
        attribute.name = _pick(rng, ("axis", "axes", "to", "nonsense", "ref"))
    elif way == 3:
        attribute.type = int(rng.integers(0, 15))
    else:
        attribute.ref_attr_name = "nonsense"
    return f"{node.op_type}: attribute {attribute.name!r} changed in the way {way}"


# ---- types ----------------------------------------------------------------------------------------------------------------------------


def change_dimension(rng: np.random.Generator, model: ModelProto) -> str:
    value = _pick(rng, (v for v in model.graph.input if len(v.type.tensor_type.shape.dim)))
    if value is None:
        return ""
    dims = value.type.tensor_type.shape.dim
    position = int(rng.integers(len(dims)))
    size = int(_pick(rng, DIMENSIONS)) if rng.random() < 0.7 else int(rng.integers(0, 20))
    dims[position].dim_value = size
    return f"input {value.name}: dimension {position} = {size}"


def change_rank(rng: np.random.Generator, model: ModelProto) -> str:
    value = _pick(rng, (v for v in model.graph.input if v.type.HasField("tensor_type")))
    if value is None:
        return ""
    dims = value.type.tensor_type.shape.dim
    way = int(rng.integers(5))
    if way == 0:
        dims.add(dim_value=int(rng.integers(0, 4)))
    elif way == 1 and dims:
        del dims[int(rng.integers(len(dims)))]
    elif way == 2:
        del dims[:]
    elif way == 3:
        value.type.tensor_type.ClearField("shape")
    else:
        value.ClearField("type")
    return f"input {value.name}: shape changed in the way {way}"


def change_element_type(rng: np.random.Generator, model: ModelProto) -> str:
    value = _pick(rng, (v for v in model.graph.input if v.type.HasField("tensor_type")))
    if value is None:
        return ""
    value.type.tensor_type.elem_type = int(_pick(rng, ELEMENT_TYPES))
    return f"input {value.name}: element type {value.type.tensor_type.elem_type}"


def same_shape(rng: np.random.Generator, model: ModelProto) -> str:
    """All inputs get the same size in the place of another one: what hangs together stays together."""
    sizes = {d.dim_value for v in model.graph.input for d in v.type.tensor_type.shape.dim}
    before = _pick(rng, sorted(sizes))
    if before is None:
        return ""
    after = int(_pick(rng, DIMENSIONS))
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value == before:
                dim.dim_value = after
    return f"every dimension of {before} = {after}"


# ---- constants ------------------------------------------------------------------------------------------------------------------------


def _change_tensor(rng: np.random.Generator, tensor: TensorProto) -> str:
    way = int(rng.integers(9))
    if way == 0 and tensor.dims:
        tensor.dims[int(rng.integers(len(tensor.dims)))] = int(_pick(rng, DIMENSIONS))
    elif way == 1 and tensor.dims:
        del tensor.dims[int(rng.integers(len(tensor.dims)))]
    elif way == 2:
        tensor.dims.append(int(rng.integers(0, 4)))
    elif way == 3:
        tensor.raw_data = tensor.raw_data[: len(tensor.raw_data) // 2]
    elif way == 4:
        tensor.raw_data = tensor.raw_data + b"\1\2\3"
    elif way == 5:
        tensor.data_type = int(_pick(rng, ELEMENT_TYPES))
    elif way == 6:
        tensor.data_location = TensorProto.EXTERNAL
        places = {"location": _pick(rng, ("w.bin", "../w.bin", "", "/etc/passwd", "no\0thing", "x" * 5000))}
        for key in ("offset", "length"):
            if rng.random() < 0.7:
                places[key] = _pick(rng, ("0", "-1", "-4096", "16", str(2**63), str(-(2**70)), "nonsense", "", "1.5", "4096"))
        for key, value in places.items():
            tensor.external_data.add(key=key, value=value)
    else:
        _set_elements(rng, tensor)
    return f"tensor {tensor.name!r} changed in the way {way}, {list(tensor.dims)} of type {tensor.data_type}"


def _set_elements(rng: np.random.Generator, tensor: TensorProto) -> None:
    """Other elements, of the tensor's own type and shape or one more or less."""
    try:
        array = numpy_helper.to_array(tensor).copy()
    except (ValueError, TypeError, KeyError):
        return
    if array.dtype.kind not in "iuf" or array.size > 4096:
        return
    if array.ndim == 1 and rng.random() < 0.3:
        array = array[:-1] if rng.random() < 0.5 else np.append(array, array[:1])
    if array.size and array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            array.reshape(-1)[int(rng.integers(array.size))] = _pick(rng, NUMBERS)
    elif array.size:
        limits = np.iinfo(array.dtype)
        array.reshape(-1)[int(rng.integers(array.size))] = min(max(_integer(rng), limits.min), limits.max)
    with np.errstate(all="ignore"):
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def change_initializer(rng: np.random.Generator, model: ModelProto) -> str:
    tensor = _pick(rng, (t for g in graphs(model.graph) for t in g.initializer))
    return "" if tensor is None else _change_tensor(rng, tensor)


def change_elements(rng: np.random.Generator, model: ModelProto) -> str:
    tensor = _pick(rng, (t for g in graphs(model.graph) for t in g.initializer))
    if tensor is None:
        return ""
    _set_elements(rng, tensor)
    return f"initializer {tensor.name}: other elements"


def initializers(rng: np.random.Generator, model: ModelProto) -> str:
    """An initializer without a name, twice, or none in its place."""
    items = model.graph.initializer
    if not items:
        return ""
    position, way = int(rng.integers(len(items))), int(rng.integers(4))
    name = items[position].name
    if way == 0:
        items[position].name = ""
    elif way == 1:
        items.add().CopyFrom(items[position])
    elif way == 2:
        del items[position]
    else:
        items[position].name = _pick(rng, _names(model))
    return f"initializer {name}: changed in the way {way}"


def constant_input(rng: np.random.Generator, model: ModelProto) -> str:
    """A small constant in the place of an input."""
    value = _pick(rng, (v for v in model.graph.input if v.type.HasField("tensor_type")))
    if value is None:
        return ""
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if min(shape, default=1) < 0 or np.prod(shape, dtype=np.float64) > 4096 or dtype.kind not in "biuf":
            return ""
        with np.errstate(all="ignore"):
            elements = rng.integers(-3, 4, shape) if dtype.kind != "f" else rng.standard_normal(shape)
            tensor = numpy_helper.from_array(np.asarray(elements).astype(dtype), value.name)
    except (ValueError, TypeError, KeyError):
        return ""
    model.graph.initializer.append(tensor)
    if rng.random() < 0.5:
        _set_elements(rng, model.graph.initializer[-1])
    return f"input {value.name}: a constant"


# ---- the graph ------------------------------------------------------------------------------------------------------------------------


def change_input(rng: np.random.Generator, model: ModelProto) -> str:
    """An input of a node dropped, swapped, given twice, left empty, or another value of the model."""
    node = _pick(rng, (n for g in graphs(model.graph) for n in g.node if n.input))
    if node is None:
        return ""
    position, way = int(rng.integers(len(node.input))), int(rng.integers(6))
    if way == 0:
        del node.input[position]
    elif way == 1:
        other = int(rng.integers(len(node.input)))
        node.input[position], node.input[other] = node.input[other], node.input[position]
    elif way == 2:
        node.input.append(node.input[position])
    elif way == 3:
        node.input[position] = ""
    elif way == 4:
        node.input[position] = _pick(rng, _names(model))
    else:
        del node.input[:]
    return f"{node.op_type}: inputs changed in the way {way}: {list(node.input)}"


def change_output(rng: np.random.Generator, model: ModelProto) -> str:
    node = _pick(rng, (n for g in graphs(model.graph) for n in g.node if n.output))
    if node is None:
        return ""
    position, way = int(rng.integers(len(node.output))), int(rng.integers(4))
    if way == 0:
        del node.output[position]
    elif way == 1:
        node.output.append("another")
    elif way == 2:
        node.output[position] = ""
    else:
        node.output[position] = _pick(rng, _names(model))
    return f"{node.op_type}: outputs changed in the way {way}: {list(node.output)}"


def change_signature(rng: np.random.Generator, model: ModelProto) -> str:
    """Inputs and outputs of the graph: twice, missing, in another order, of other names, or a value in the middle."""
    graph = _pick(rng, graphs(model.graph))
    field = graph.input if rng.random() < 0.4 else graph.output
    if not field:
        return ""
    position, way = int(rng.integers(len(field))), int(rng.integers(6))
    if way == 0:
        field.add().CopyFrom(field[position])
    elif way == 1:
        del field[position]
    elif way == 2:
        field[position].name = ""
    elif way == 3:
        field[position].name = _pick(rng, _names(model))
    elif way == 4:
        field.add(name=_pick(rng, _names(model)))
    else:
        field[position].name = "nonsense"
    return f"signature changed in the way {way}: {[v.name for v in field]}"


def change_order(rng: np.random.Generator, model: ModelProto) -> str:
    """Nodes in another order, twice, or missing; a node that reads what it makes."""
    graph = _pick(rng, (g for g in graphs(model.graph) if g.node))
    if graph is None:
        return ""
    position, way = int(rng.integers(len(graph.node))), int(rng.integers(4))
    if way == 0:
        nodes = [NodeProto.FromString(n.SerializeToString()) for n in graph.node]
        del graph.node[:]
        graph.node.extend(nodes[int(i)] for i in rng.permutation(len(nodes)))
    elif way == 1:
        graph.node.add().CopyFrom(graph.node[position])
    elif way == 2:
        del graph.node[position]
    elif graph.node[position].input and graph.node[position].output:
        graph.node[position].input[0] = graph.node[position].output[0]
    return f"nodes changed in the way {way}"


def append_node(rng: np.random.Generator, model: ModelProto) -> str:
    """Another operator behind an output of the graph."""
    output = _pick(rng, model.graph.output)
    if output is None:
        return ""
    operator = _pick(rng, ("Relu", "Exp", "Softmax", "Flatten", "Transpose", "ReduceSum", "Shape", "Size", "Add", "MatMul", "Concat"))
    last = f"{output.name}_next"
    model.graph.node.add(op_type=operator, input=[output.name] * (1 + (operator in ("Add", "MatMul", "Concat"))), output=[last])
    if operator == "Concat":
        model.graph.node[-1].attribute.add(name="axis", type=AttributeProto.INT, i=_integer(rng))
    output.name = last
    output.ClearField("type")
    return f"{operator} of an output"


def change_operator(rng: np.random.Generator, model: ModelProto) -> str:
    node = _node(rng, model)
    if node is None:
        return ""
    before = node.op_type
    node.op_type = _pick(rng, OPERATORS) if rng.random() < 0.9 else ""
    if rng.random() < 0.1:
        node.domain = _pick(rng, ("ai.onnx", "ai.onnx.ml", "nonsense", "com.microsoft"))
    return f"{before} is {node.op_type}"


OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain})


def change_opset(rng: np.random.Generator, model: ModelProto) -> str:
    versions, way = model.opset_import, int(rng.integers(8))
    if way == 0:
        del versions[:]
    elif way == 1:
        versions.add(domain="", version=int(rng.integers(1, 30)))
    elif versions:
        _pick(rng, versions).version = int(rng.integers(7, 27)) if way < 7 else _pick(rng, (0, -1, 2**31, 2**63 - 1))
    return f"operator sets {[(o.domain, o.version) for o in versions]}"


def change_branches(rng: np.random.Generator, model: ModelProto) -> str:
    """Subgraphs: another one in its place, an output more or less, a value of another type in it."""
    nodes = [n for g in graphs(model.graph) for n in g.node if any(a.type == AttributeProto.GRAPH for a in n.attribute)]
    node = _pick(rng, nodes)
    if node is None:
        return ""
    attribute = _pick(rng, (a for a in node.attribute if a.type == AttributeProto.GRAPH))
    way = int(rng.integers(5))
    if way == 0:
        other = GraphProto()  # a graph around this one would be copied into itself
        other.CopyFrom(_pick(rng, graphs(model.graph)))
        attribute.g.CopyFrom(other)
    elif way == 1:
        attribute.g.ClearField("node")
    elif way == 2 and attribute.g.output:
        attribute.g.output.add().CopyFrom(_pick(rng, attribute.g.output))
    elif way == 3 and attribute.g.output:
        name = attribute.g.output[0].name
        kind = int(_pick(rng, (1, 7, 9, 11)))
        attribute.g.node.add(op_type="Cast", input=[name], output=["cast"]).attribute.add(name="to", type=AttributeProto.INT, i=kind)
        attribute.g.output[0].name = "cast"
    else:
        attribute.g.ClearField("output")
    return f"{node.op_type}: {attribute.name} changed in the way {way}"


CHANGES: tuple[Change, ...] = (
    *(change_attribute, change_attribute, change_attribute, change_attribute, add_attribute, add_attribute, add_attribute),
    *(remove_attribute, retype_attribute),
    *(change_dimension, change_dimension, change_dimension, change_rank, change_element_type, change_element_type, same_shape, same_shape),
    *(change_initializer, change_initializer, change_elements, change_elements, initializers, constant_input, constant_input),
    *(change_input, change_input, change_output, change_signature, change_order, append_node, append_node),
    *(change_operator, change_opset, change_branches, change_branches),
)
"""What is changed; what stands here more often is drawn more often."""


# ---- bytes ----------------------------------------------------------------------------------------------------------------------------


def _damaged(data: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """The message with a few of its bytes changed, left out or repeated."""
    if not data:
        return data, "no bytes"
    way, position = int(rng.integers(4)), int(rng.integers(len(data)))
    if way == 0:
        found = bytearray(data)
        for at in rng.integers(len(data), size=int(rng.integers(1, 4))):
            found[int(at)] ^= 1 << int(rng.integers(8))
        return bytes(found), "bits flipped"
    if way == 1:
        return data[:position], f"truncated to {position} bytes"
    length = int(rng.integers(1, 9))
    if way == 2:
        return data[:position] + data[position + length :], f"{length} bytes left out at {position}"
    return data[:position] + data[position : position + length] + data[position:], f"{length} bytes repeated at {position}"
