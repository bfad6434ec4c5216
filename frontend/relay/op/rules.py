"""How calls of Relay's operators are computed by operators of the relay dialect.

A rule builds operators through an `Emitter`. There are two: one builds operations, the other only finds their types, so that what inference
says of a call and what it is lowered to have one source.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from relayc.dialects.relay.base import OPS
from relayc.dialects.relay.errors import RelayError, Unequal, check
from relayc.dialects.relay.names import ir_name
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.types import RelayType, TensorType
from relayc.frontend.relay.ast.expr import Constant, Expr
from relayc.frontend.relay.op.composed import COMPOSED, Composed
from relayc.frontend.relay.op.composed.annotation import IDENTITIES
from relayc.frontend.relay.op.composed.detection import CHOSEN_OF_IMAGES
from relayc.frontend.relay.op.composed.qnn import WAYS, configured
from relayc.frontend.relay.op.registered import REGISTERED
from relayc.frontend.relay.op.table import RENAMED, Signature, plain, signature
from relayc.symbolic import Dim, Size, product

Value = Any
"""A value of an emitter: of the IR, or its type."""


class Emitter(Protocol):
    """The interface with which rules build operators."""

    def emit(self, name: str, *operands: Value, **attributes: Any) -> Any:
        """The result of an operator of the dialect, or a tuple of results."""

    def compose(self, found: Composed, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
        """The result of a composed operator, or the tuple of its results."""

    def type_of(self, value: Value) -> RelayType:
        """The type of a value."""

    def fields(self, value: Value) -> Sequence[Value]:
        """The fields of a tuple."""


Rule = Callable[[Emitter, list[Value], dict[str, Any], Sequence[Expr]], Any]
"""(emitter, arguments, attributes, the arguments' expressions) -> the result, or the tuple of results."""

_RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return add


def apply(emitter: Emitter, name: str, args: list[Value], given: Mapping[str, Any], exprs: Sequence[Expr]) -> Any:
    """Builds a call of an operator: its result, or the tuple of its results.

    Args:
      given: attributes by Relay's names.
      exprs: the expressions of the arguments, for operators that read what is known of them.

    Raises:
      RelayError: wrong operands or attributes.
    """
    if name in IDENTITIES and len(args) == 1:
        return args[0]
    found = signature(name)
    if len(args) != len(found.operands):
        raise RelayError(f"{name}: expected {len(found.operands)} argument(s) ({', '.join(found.operands)}), found {len(args)}")
    if name in REGISTERED:
        raise RelayError(f"{name}: {REGISTERED[name].refusal}")
    attrs = found.attributes(given)
    if found.is_variadic:
        args = [*args[:-1], *emitter.fields(args[-1])]
    tuples = frozenset() if found.composed is None else found.composed.tuples
    for value in (arg for arg, operand in zip(args, found.operands, strict=False) if operand not in tuples):
        check(isinstance(emitter.type_of(value), TensorType), f"arguments of {name}", "tensors", emitter.type_of(value))
    if found.composed is not None:
        if takes(name, list(map(emitter.type_of, args)), attrs):
            if "compute_dtype" in attrs:
                attrs.update(zip(WAYS, configured(*(attrs[way] for way in WAYS)), strict=True))
            return emitter.emit(name, *args, **attrs)
        return emitter.compose(found.composed, args, attrs, exprs)
    rule = _RULES.get(RENAMED.get(name, name))
    return _same(emitter, found, args, attrs) if rule is None else rule(emitter, args, attrs, exprs)


def takes(name: str, types: Sequence[RelayType], attrs: Mapping[str, Any]) -> bool:
    """Whether the dialect has a composed operator as one of its own, for these operands: it has none of weights in blocks, say."""
    cls = OPS.get(ir_name(name))
    if cls is None:
        return False
    try:
        cls.result_types(types, cls.attribute_values(dict(attrs)))
    except Unequal:
        return True  # sizes that the program is to check
    except RelayError:
        return False
    return True


def _same(emitter: Emitter, found: Signature, args: list[Value], attrs: dict[str, Any]) -> Any:
    """The operator of the same name in the dialect."""
    assert found.cls is not None
    specs = found.cls.attr_specs
    layout = attrs.pop("out_layout", "") if "out_layout" not in specs else ""
    if layout not in ("", attrs.get("layout")):
        raise RelayError(f"{found.name}: out_layout: expected the layout {attrs.get('layout')}, found {layout}")
    kept = {name: value for name, value in attrs.items() if name in specs and (value is not None or specs[name].optional)}
    return emitter.emit(found.cls.relay_name, *args, **kept)


def _shape(emitter: Emitter, value: Value) -> tuple[Size, ...]:
    type_ = emitter.type_of(value)
    assert isinstance(type_, TensorType)
    return type_.sizes


def _dtype(emitter: Emitter, value: Value) -> str:
    type_ = emitter.type_of(value)
    assert isinstance(type_, TensorType)
    return type_.dtype


def _cast(emitter: Emitter, value: Value, dtype: str) -> Value:
    return value if _dtype(emitter, value) == dtype else emitter.emit("cast", value, dtype=dtype)


def _extreme(name: str) -> Rule:
    """The least or greatest element; of bools by numbers."""

    def rule(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
        is_bool = _dtype(emitter, args[0]) == "bool"
        found = _same(emitter, signature(name), [_cast(emitter, args[0], "uint8")] if is_bool else args, attrs)
        return _cast(emitter, found, "bool") if is_bool else found

    return rule


def _renamed(name: str, attribute: str, values: Mapping[str, str]) -> Rule:
    """Some values of an attribute have other names in the dialect."""

    def rule(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
        given = attrs[attribute]
        return _same(emitter, signature(name), args, {**attrs, attribute: values.get(given, given)})

    return rule


@_rule("shape_of")
def _shape_of(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
    """Sizes are integers, which may be asked for as floats."""
    dtype = "int64" if attrs["dtype"].startswith("float") else attrs["dtype"]
    return _cast(emitter, emitter.emit("shape_of", args[0], dtype=dtype), attrs["dtype"])


@_rule("full_like")
def _full_like(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
    return emitter.emit("full", _cast(emitter, args[1], _dtype(emitter, args[0])), shape=_shape(emitter, args[0]))


@_rule("full")
def _full(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
    value = _cast(emitter, args[0], attrs["dtype"]) if attrs["dtype"] else args[0]
    return emitter.emit("full", value, shape=attrs["shape"])


@_rule("arange")
def _arange(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
    if not all(isinstance(expr, Constant) for expr in exprs):
        return emitter.compose(COMPOSED["dyn.arange"], args, attrs, exprs)
    start, stop, step = (plain(expr) for expr in exprs)
    return emitter.emit("arange", start=start, stop=stop, step=step, dtype=attrs["dtype"])


@_rule("nn.pad", "nn.mirror_pad")
def _pad(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
    width = tuple(w for pair in attrs["pad_width"] for w in (pair if isinstance(pair, tuple) else (pair,)))
    if min(width, default=0) < 0:  # a negative width takes elements away
        shape = _shape(emitter, args[0])
        begin, end = [max(-w, 0) for w in width[::2]], [d - max(-w, 0) for d, w in zip(shape, width[1::2], strict=True)]
        args[0] = emitter.emit("strided_slice", args[0], begin=begin, end=end, strides=(1,) * len(shape))
        if any(isinstance(d, Dim) for d in shape):  # which are taken for large enough: the program checks that
            args[0] = emitter.emit("match_shape", args[0], shape=[e - b for b, e in zip(begin, end, strict=True)])
        width = tuple(max(w, 0) for w in width)
    if len(args) == 1:
        return emitter.emit("nn.mirror_pad", args[0], mode=attrs["mode"], pad_width=width)
    value = _cast(emitter, args[1], _dtype(emitter, args[0]))
    if _shape(emitter, value):
        value = emitter.emit("reshape", value, newshape=())
    return emitter.emit("nn.pad", args[0], value, pad_width=width, pad_mode=attrs["pad_mode"])


@_rule("reshape")
def _reshape(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
    """Where sizes are not known, the data is taken for having as many elements as the new shape: the program checks that."""
    count, wanted = product(_shape(emitter, args[0])), attrs["newshape"]
    if isinstance(count, Dim) and not any(isinstance(d, int) and d < 1 for d in wanted) and product(wanted) != count:
        flat = emitter.emit("reshape", args[0], newshape=(count,))
        args[0] = emitter.emit("match_shape", flat, shape=(product(wanted),))
    return _same(emitter, signature("reshape"), args, attrs)


@_rule("split")
def _split(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
    """A symbolic size is assumed to be divisible: the program checks it."""
    count, shape = attrs["indices_or_sections"], list(_shape(emitter, args[0]))
    axis = attrs["axis"] % len(shape) if shape else 0
    if isinstance(count, int) and count > 0 and shape and isinstance(shape[axis], Dim):
        shape[axis] = shape[axis] // count * count
        args[0] = emitter.emit("match_shape", args[0], shape=shape)
    return _same(emitter, signature("split"), args, attrs)


@_rule("argsort", "topk")
def _order(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
    """Positions of a float type are converted."""
    dtype, name = attrs["dtype"], "topk" if "k" in attrs else "argsort"
    if not dtype.startswith("float"):
        return _same(emitter, signature(name), args, attrs)
    found = _same(emitter, signature(name), args, {**attrs, "dtype": "int64"})
    if isinstance(found, tuple):
        return (found[0], _cast(emitter, found[1], dtype))
    return found if attrs.get("ret_type") == "values" else _cast(emitter, found, dtype)


@_rule("vision.roi_align")
def _roi_align(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
    """Images with their channels last are turned around."""
    if attrs["layout"] != "NHWC":
        return _same(emitter, signature("vision.roi_align"), args, attrs)
    data = emitter.emit("transpose", args[0], axes=(0, 3, 1, 2))
    found = _same(emitter, signature("vision.roi_align"), [data, args[1]], {**attrs, "layout": "NCHW"})
    return emitter.emit("transpose", found, axes=(0, 2, 3, 1))


@_rule("vision.all_class_non_max_suppression")
def _all_class_non_max_suppression(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
    form = attrs.pop("output_format")
    check(form in ("onnx", "tensorflow"), "output_format", "onnx or tensorflow", form)
    if form == "tensorflow":
        return emitter.compose(CHOSEN_OF_IMAGES, args, {}, exprs)
    return _same(emitter, signature("vision.all_class_non_max_suppression"), args, attrs)


@_rule("searchsorted")
def _searchsorted(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
    """In several sequences, values are compared with all elements of theirs."""
    sequence, wanted = (_shape(emitter, arg) for arg in args)
    if len(sequence) < 2:
        return _same(emitter, signature("searchsorted"), args, attrs)
    rows = emitter.emit("reshape", args[0], newshape=(*sequence[:-1], 1, sequence[-1]))
    columns = emitter.emit("reshape", args[1], newshape=(*wanted, 1))
    before = emitter.emit("less_equal" if attrs["right"] else "less", rows, columns)
    return emitter.emit("sum", emitter.emit("cast", before, dtype=attrs["dtype"]), axis=(len(wanted),))


@_rule("strided_slice")
def _strided_slice(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
    """Bounds that are missing at the end are those of the data."""
    shape = _shape(emitter, args[0])
    axes = attrs["axes"] or range(max(len(attrs[name]) for name in ("begin", "end", "strides")))
    count, sizes = len(axes), [shape[normalize_axis(axis, len(shape), "axes")] for axis in axes]
    attrs["begin"] = (*attrs["begin"], *(0,) * (count - len(attrs["begin"])))
    rest = (-1,) * count if attrs["slice_mode"] == "size" else sizes
    attrs["end"] = (*attrs["end"], *rest[len(attrs["end"]) :])
    if len(attrs["strides"]) > 1:
        attrs["strides"] = (*attrs["strides"], *(1,) * (count - len(attrs["strides"])))
    return _same(emitter, signature("strided_slice"), args, attrs)


def _along_axis(name: str) -> Rule:
    """A single number applies to all positions along the axis."""

    def rule(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
        shape, axis = _shape(emitter, args[0]), attrs["axis"]
        if _shape(emitter, args[1]) == (1,) and -len(shape) <= axis < len(shape) and shape[axis] != 1:
            args[1] = emitter.emit("broadcast_to", args[1], shape=(shape[axis],))
        return _same(emitter, signature(name), args, attrs)

    return rule


def _product(name: str) -> Rule:
    """Operands of different element types are multiplied in the type of the result: the one that is asked for, or that of float data."""

    def rule(emitter: Emitter, args: list[Value], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
        data, added = _dtype(emitter, args[0]), _added_at_end(attrs)
        dtype = attrs["out_dtype"] or (data if "float" in data else "")
        kernel = attrs.get("kernel_layout", "")
        if any(map(str.isdigit, kernel)):  # the dialect's weights are not split: schedules pack them
            attrs["kernel_layout"] = "".join(filter(str.isupper, kernel))
            args[1] = emitter.emit("layout_transform", args[1], src_layout=kernel, dst_layout=attrs["kernel_layout"])
        if dtype and data != _dtype(emitter, args[1]):
            args = [_cast(emitter, value, dtype) for value in args]
        if name in _CONVOLUTIONS and attrs["groups"] > 1 and "output_padding" not in attrs:
            args[1] = _by_channel(emitter, args, attrs)
        rank = len(_shape(emitter, args[0]))
        if attrs.get("transpose_a") and name == "nn.matmul" and rank > 2:
            args[0] = emitter.emit("transpose", args[0], axes=(*range(rank - 2), rank - 1, rank - 2))
            attrs["transpose_a"] = False
        found = _same(emitter, signature(name), args, attrs)
        if not any(added):
            return found
        width = [w for axis in attrs["data_layout"] for w in (0, added["DHW"[-len(added) :].index(axis)] if axis in "DHW" else 0)]
        zero = emitter.emit("zeros", shape=(), dtype=_dtype(emitter, found))
        return emitter.emit("nn.pad", found, zero, pad_width=width, pad_mode="constant")

    return rule


def _added_at_end(attrs: dict[str, Any]) -> list[int]:
    """Elements that a transposed convolution has at its ends which no window reaches, where its output padding is a step or more."""
    steps = [max(pair) for pair in zip(attrs.get("strides", ()), attrs.get("dilation", ()), strict=True)]
    more = attrs.get("output_padding")
    if more is None or all(pad < step for pad, step in zip(more, steps, strict=True)):
        return []
    begin, end = attrs["padding"][: len(steps)], attrs["padding"][len(steps) :]
    attrs["padding"] = (*begin, *(max(e - pad, 0) for e, pad in zip(end, more, strict=True)))
    attrs["output_padding"] = (0,) * len(steps)
    return [max(pad - e, 0) for e, pad in zip(end, more, strict=True)]


def _by_channel(emitter: Emitter, args: list[Value], attrs: dict[str, Any]) -> Value:
    """The weight of a depthwise convolution; where it has the results of each channel on axis I, they are moved to axis O."""
    layout, shape = attrs["kernel_layout"], list(_shape(emitter, args[1]))
    sizes, at = dict(zip(attrs["data_layout"], _shape(emitter, args[0]), strict=False)), layout.find("OI")
    channels = sizes.get("C")
    if channels != attrs["groups"] or at < 0 or len(layout) != len(shape) or shape[at] != channels or shape[at + 1] == 1:
        return args[1]
    shape[at : at + 2] = shape[at] * shape[at + 1], 1
    return emitter.emit("reshape", args[1], newshape=shape)


_CONVOLUTIONS = [f"nn.conv{n}d{kind}" for n in (1, 2, 3) for kind in ("", "_transpose")]
_RULES.update(
    {
        **{name: _extreme(name) for name in ("min", "max")},
        **{name: _along_axis(name) for name in ("nn.bias_add", "nn.prelu")},
        **{name: _product(name) for name in ("nn.dense", "nn.matmul", "nn.batch_matmul", *_CONVOLUTIONS)},
        "zeros_like": lambda emitter, args, *_: emitter.emit("zeros", shape=_shape(emitter, args[0]), dtype=_dtype(emitter, args[0])),
        "ones_like": lambda emitter, args, *_: emitter.emit("ones", shape=_shape(emitter, args[0]), dtype=_dtype(emitter, args[0])),
        "cast_like": lambda emitter, args, *_: emitter.emit("cast", args[0], dtype=_dtype(emitter, args[1])),
        "broadcast_to_like": lambda emitter, args, *_: emitter.emit("broadcast_to", args[0], shape=_shape(emitter, args[1])),
        # A sum of bools is whether any is true.
        "sum": lambda emitter, args, attrs, _: emitter.emit("any" if _dtype(emitter, args[0]) == "bool" else "sum", *args, **attrs),
        # Relay has another name for the order that ONNX calls CRD, and for the method nearest_neighbor of other operators.
        "nn.depth_to_space": _renamed("nn.depth_to_space", "mode", {"CDR": "CRD"}),
        "image.grid_sample": _renamed("image.grid_sample", "method", {"nearest": "nearest_neighbor"}),
    }
)
