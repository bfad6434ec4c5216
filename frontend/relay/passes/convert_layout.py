"""ConvertLayout and AlterOpLayout: some operators get other layouts, and those after them follow as far as they can.

A function is rewritten forwards. A value that has another layout than the program says is kept as it is until something needs it in its own
layout: operators whose rule (`layout_rules`) takes the new one do not.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from relayc.dialects.relay.errors import check
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.functor import children, post_order, rebuilt
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.op.functions import call as op_call
from relayc.frontend.relay.op.registered import attribute
from relayc.frontend.relay.passes.layout_rules import inferred, rule_of
from relayc.frontend.relay.passes.layouts import Layout, expanded
from relayc.frontend.relay.passes.normal_forms import is_primitive
from relayc.frontend.relay.passes.operators import name_of, replaced

Change = Callable[[e.Call, Any, list[e.Expr]], e.Expr | None]
"""(a call of an operator, its attributes, its current arguments) -> another call of an operator; None if it is unchanged."""


def canonicalize_ops(mod: RelayModule) -> RelayModule:
    """Replaces additions of biases by additions whose operands can have other layouts."""

    def added(call: e.Call, new: e.Call) -> e.Expr | None:
        if name_of(call) != "nn.bias_add" or call.attrs is None:
            return None
        rank = len(call.checked_type.shape)  # type: ignore[attr-defined] # a tensor
        after = rank - call.attrs["axis"] % rank - 1
        bias = op_call("expand_dims", [new.args[1]], {"axis": 1, "num_newaxis": after}) if after else new.args[1]
        return op_call("add", [new.args[0], bias], None, call.span)

    return replaced(mod, added)


def convert_layout(mod: RelayModule, desired_layouts: Mapping[str, Sequence[str]]) -> RelayModule:
    """Gives operators other layouts.

    Args:
      desired_layouts: by names of operators, layouts of the data, and of the weight if there is one: "default" is the usual one.
    """

    def change(call: e.Call, attrs: Any, args: list[e.Expr]) -> e.Expr | None:
        name = str(name_of(call))
        desired = desired_layouts.get(name)
        if desired is None:
            return None
        layouts, own = list(map(str, desired)), attribute(name, "FTVMConvertOpLayout")
        return _converted(call, attrs, args, layouts) if own is None else own(attrs, args, _tensors(call), layouts)

    return infer_module(infer_module(mod).map_functions(_Layouts(change).function))


def alter_op_layout(mod: RelayModule) -> RelayModule:
    """Replaces calls of operators that have the attribute FTVMAlterOpLayout by what this function gives.

    The function is called with the attributes, the arguments, the types of these and of the result; None leaves the call as it is.
    """

    def change(call: e.Call, attrs: Any, args: list[e.Expr]) -> e.Expr | None:
        function = attribute(str(name_of(call)), "FTVMAlterOpLayout")
        return None if function is None else function(attrs, args, _tensors(call), call.checked_type)

    return infer_module(infer_module(mod).map_functions(_Layouts(change, "FTVMAlterOpLayout").function))


def _tensors(call: e.Call) -> list[t.Type]:
    """The types of the tensors that a call has as arguments, also in tuples."""
    types = [arg.checked_type for arg in call.args]
    return [part for type_ in types for part in (type_.fields if isinstance(type_, t.TupleType) else (type_,))]


class LayoutConfig:
    """The convolutions that ConvertLayout leaves unchanged, by position: convolutions inside a `with` block are counted."""

    current: ClassVar["LayoutConfig | None"] = None

    def __init__(self, skip_layers: Sequence[int] = ()) -> None:
        self.skip_layers, self.skip_counter = list(skip_layers), 0

    def check_skip(self) -> bool:
        """Whether the next convolution is left."""
        self.skip_counter += 1
        return self.skip_counter - 1 in self.skip_layers

    def __enter__(self) -> "LayoutConfig":
        self._outer, LayoutConfig.current = LayoutConfig.current, self
        return self

    def __exit__(self, *_: object) -> None:
        LayoutConfig.current = self._outer


_PLAIN, _TRANSPOSED = {"NCHW": "OIHW", "NHWC": "HWIO", "HWNC": "HWOI"}, {"NCHW": "IOHW", "NHWC": "HWIO"}
_KERNELS = {
    **dict.fromkeys(("nn.conv2d", "nn.deformable_conv2d", "qnn.conv2d"), _PLAIN),
    **dict.fromkeys(("nn.conv2d_transpose", "qnn.conv2d_transpose"), _TRANSPOSED),
    "nn.conv3d": {"NCDHW": "OIDHW", "NDHWC": "DHWIO"},
    "nn.conv3d_transpose": {"NCDHW": "IODHW", "NDHWC": "DHWIO"},
}
"""The usual layouts of weights by those of the data."""


def _converted(call: e.Call, attrs: Any, args: list[e.Expr], desired: list[str]) -> e.Expr | None:
    """A call in the desired layouts. Raises RelayError if a layout does not exist."""
    name, data = str(name_of(call)), desired[0]
    if name not in _KERNELS:
        if "layout" not in (attrs or {}):
            return None  # the operator follows its operands
        return op_call(name, args, {**attrs, "layout": data, **({"out_layout": data} if "out_layout" in attrs else {})})
    if name == "nn.conv2d" and LayoutConfig.current is not None and LayoutConfig.current.check_skip():
        return None
    kernel, tile = desired[1], re.fullmatch(r"NCHW(\d+)c", data)
    type_: Any = call.args[0].checked_type
    channels = type_.shape[attrs["data_layout"].find("C")]
    if kernel == "default":
        is_depthwise = attrs.get("groups", 1) > 1 and attrs["groups"] == channels
        kernel = "HWOI" if is_depthwise and data == "NHWC" else _KERNELS[name].get(data, "")
    check(bool(kernel), f"ConvertLayout: {name}", f"a layout of the weight for the data layout {data}", "default")
    if tile and name == "nn.conv2d":
        if isinstance(args[0], e.Var) and channels % int(tile[1]):
            return None
        name = "nn.contrib_conv2d_NCHWc"
    return op_call(name, args, {**attrs, "data_layout": data, "kernel_layout": kernel})


# ---- the rewriter ------------------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Value:
    """A value, with its layouts before (`old`) and after the conversion (`new`); None if they are unknown."""

    expr: e.Expr
    old: Layout | None = None
    new: Layout | None = None


_Found = Any
"""The converted form of an expression: a _Value, or for a tuple a list of them."""


class _Layouts:
    """Rewrites functions.

    Args:
      change: returns the replacement of a call.
      key: attribute of operators that defines a change, with or without a layout rule.
    """

    def __init__(self, change: Change, key: str = "") -> None:
        self._change, self._key = change, key
        self._found: dict[e.Expr, _Found] = {}
        self._moved: dict[tuple[e.Expr, str, str], e.Expr] = {}

    def function(self, function: e.Function) -> e.Expr:
        """A function in new layouts."""
        for node in post_order(function, lambda node: [] if is_primitive(node) else children(node)):
            self._found[node] = self._rewritten(node)
        return self._plain(self._found[function])

    def _plain(self, found: _Found) -> e.Expr:
        """A value in its original layout."""
        if isinstance(found, list):
            return e.Tuple(list(map(self._plain, found)))
        return found.expr if found.old is None or found.new is None else self._in_layout(found.expr, found.new, found.old)

    def _in_layout(self, expr: e.Expr, source: Layout, target: Layout) -> e.Expr:
        """An expression in another layout, with axes of size 1 at its front where it has fewer. One element is as it is."""
        if source == target:
            return expr
        key = expr, source.text, target.text
        if key in self._moved:
            return self._moved[key]
        made = expr
        if source.rank < target.rank:
            if isinstance(expr.checked_type_, t.TensorType) and all(size == 1 for size in expr.checked_type_.shape):
                return expr
            made = op_call("expand_dims", [expr], {"axis": 0, "num_newaxis": target.rank - source.rank})
            source = expanded(source, target)
        if source != target:
            made = op_call("layout_transform", [made], {"src_layout": source.text, "dst_layout": target.text})
        self._moved[key] = made
        return made

    def _rewritten(self, node: e.Expr) -> _Found:
        if is_primitive(node) or not children(node):
            return _Value(node)
        if isinstance(node, e.Tuple):
            return [self._found[field] for field in node.fields]
        if isinstance(node, e.TupleGetItem) and isinstance(self._found[node.tuple_value], list):
            return self._found[node.tuple_value][node.index]
        if isinstance(node, e.Call) and name_of(node) is not None:
            found = self._call(node)
            if found is not None:
                return found
        return _Value(rebuilt(node, iter([self._plain(self._found[part]) for part in children(node)])))

    def _call(self, call: e.Call) -> _Found | None:
        """A call in new layouts; None if its operator has no layout rule."""
        name, types = str(name_of(call)), [arg.checked_type for arg in call.args]
        values = [self._found[arg] for arg in call.args]
        groups = [value if isinstance(value, list) else [value] for value in values]
        if any(isinstance(value, list) for group in groups for value in group):
            return None  # tuples in tuples
        flat = [value for group in groups for value in group]
        args: list[e.Expr] = [e.Tuple([part.expr for part in value]) if isinstance(value, list) else value.expr for value in values]
        if rule_of(name) is None:
            if not self._key or attribute(name, self._key) is None:
                return None
            plain = list(map(self._plain, values))
            return _Value(self._change(call, call.attrs, plain) or call.replace(args=tuple(plain)))
        old, new = [value.old for value in flat], [value.new for value in flat]
        before = inferred(name, call.attrs, None, old, types)
        if before is None:
            return None
        wanted = before.input_layouts
        changed = self._change(call, before.new_attrs, args) or e.Call(call.op, args, before.new_attrs)
        if not (isinstance(changed, e.Call) and isinstance(changed.op, e.Op)):
            return None
        given = [[own or other for own, other in zip(layouts, wanted, strict=True)] for layouts in (new, old)]
        after = inferred(changed.op.name, changed.attrs, given[0], given[1], types)
        if after is None:
            return None
        check(len(after.output_layouts) == len(before.output_layouts), name, "a call with as many results", changed.op.name)
        layouts = iter(list(zip(old, wanted, new, after.input_layouts, strict=True)))
        operands: list[e.Expr] = []
        for arg in changed.args:
            parts = [self._operand(part, *next(layouts)) for part in (arg.fields if isinstance(arg, e.Tuple) else (arg,))]
            operands.append(e.Tuple(parts) if isinstance(arg, e.Tuple) else parts[0])
        made = e.Call(changed.op, operands, after.new_attrs, None, call.span)
        if not isinstance(call.checked_type, t.TupleType):
            return _Value(made, before.output_layouts[0], after.output_layouts[0])
        pairs = zip(before.output_layouts, after.output_layouts, strict=True)
        return [_Value(e.TupleGetItem(made, i), *pair) for i, pair in enumerate(pairs)]

    def _operand(self, expr: e.Expr, old: Layout | None, wanted: Layout, new: Layout | None, target: Layout) -> e.Expr:
        """An operand in the layout that a call takes it in: `old` and `new` are those of its maker, `wanted` what the call saw before."""
        if old is not None and new is not None:
            if old == wanted:
                return self._in_layout(expr, new, target)
            expr = self._in_layout(expr, new, old)
        return self._in_layout(expr, wanted, target)
