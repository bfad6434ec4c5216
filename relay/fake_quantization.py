"""FakeQuantizationToInteger: float operators between `qnn.dequantize` and `qnn.quantize` become operators on integers.

A rule of an operator is its attribute FTVMFakeQuantizationToInteger: a function of a call, and of the affine types of the expressions in
its region, that gives the integer expression and its affine type. A region changes only if every operator in it has a rule that succeeds.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relayc.dialects.relay.errors import RelayError, check
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.build import const
from relayc.frontend.relay.ast.equality import structural_equal
from relayc.frontend.relay.ast.functor import children, post_order, rebuilt
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.ast.types import TensorType
from relayc.frontend.relay.inference import infer_expr
from relayc.frontend.relay.op.composed.qnn import UNARY
from relayc.frontend.relay.op.functions import call
from relayc.frontend.relay.op.registered import attribute, register_op_attr
from relayc.frontend.relay.op.table import signature
from relayc.frontend.relay.passes.operators import name_of, replaced
from relayc.relay.folding import folded

KEY, OPTIONAL_KEY = "FTVMFakeQuantizationToInteger", "FTVMOptionalFakeQuantizationToInteger"


@dataclass(frozen=True, eq=False)
class TensorAffineType:
    """The real numbers (data - zero_point) * scale of integers; `axis` is the axis of several scales."""

    scale: e.Expr
    zero_point: e.Expr
    dtype: str
    axis: int = -1

    @property
    def parameters(self) -> tuple[e.Expr, e.Expr]:
        """Scale and zero point."""
        return self.scale, self.zero_point

    def of(self, dtype: str) -> "TensorAffineType":
        """The same numbers of another element type."""
        return TensorAffineType(self.scale, self.zero_point, dtype, self.axis)

    def is_near(self, other: "TensorAffineType") -> bool:
        """Whether equal integers stand for equal real numbers, up to a relative difference of 1e-5."""
        pairs = zip(self.parameters, other.parameters, strict=True)
        return self.dtype == other.dtype and all(_near(a, b) for a, b in pairs)


@dataclass(frozen=True, eq=False)
class TupleAffineType:
    """The affine types of the fields of a tuple."""

    types: Sequence[TensorAffineType]


class Types(dict[e.Expr, Any]):
    """The affine types of the expressions of a region. An expression that has none raises RelayError."""

    def __missing__(self, expr: e.Expr) -> Any:
        raise RelayError(f"expected a quantized operand, found {type(expr).__name__} {name_of(expr) or ''}")


Rule = Callable[[e.Call, Types], Sequence[Any]]


def fake_quantization_to_integer(
    mod: RelayModule, hard_fail: bool = False, use_qat: bool = False, optional_qnn_ops: Collection[str] = ()
) -> RelayModule:
    """Float operators between dequantized and quantized tensors become operators on integers.

    Args:
      hard_fail: whether a region that cannot change raises an error.
      use_qat: whether operators on dequantized tensors change one by one in the regions that are left: their results are dequantized.
      optional_qnn_ops: operators that change in addition, if they have the attribute FTVMOptionalFakeQuantizationToInteger.

    Raises:
      RelayError, or what a rule raises: a region that cannot change, with hard_fail.
    """
    mod = replaced(mod, _Regions(hard_fail, optional_qnn_ops).quantized)
    return replaced(mod, _Regions(hard_fail, optional_qnn_ops).single) if use_qat else mod


class _Regions:
    """Replaces regions of one program; `quantized` and `single` are given to `replace_calls`."""

    def __init__(self, hard_fail: bool, optional: Collection[str]) -> None:
        self._hard_fail, self._optional = hard_fail, optional
        self._dequantized = Types()

    def _rule(self, name: str | None) -> Rule | None:
        found = attribute(name or "", KEY)
        return attribute(name or "", OPTIONAL_KEY) if found is None and name in self._optional else found

    def _note(self, before: e.Call, new: e.Call) -> None:
        """Notes the affine type of a dequantized tensor."""
        if name_of(new) == "qnn.dequantize" and new.attrs is not None:
            self._dequantized[new] = TensorAffineType(new.args[1], new.args[2], _dtype(before.args[0]), new.attrs["axis"])

    def quantized(self, before: e.Call, new: e.Call) -> e.Expr | None:
        """What a call of qnn.quantize becomes."""
        self._note(before, new)
        return self._tried(new) if name_of(new) == "qnn.quantize" else None

    def single(self, before: e.Call, new: e.Call) -> e.Expr | None:
        """A call on dequantized tensors as the dequantized result of a call on integers."""
        self._note(before, new)
        return self._tried(new) if name_of(new) in _SINGLE else None

    def _tried(self, root: e.Call) -> e.Expr | None:
        try:
            return self._changed(root)
        except Exception:  # rules may be the program's own
            if self._hard_fail:
                raise
            return None

    def _changed(self, root: e.Call) -> e.Expr | None:
        """The replacement of the root of a region; None if the region contains no operator."""
        is_region = name_of(root) == "qnn.quantize"
        nodes = list(post_order(root, _operands))
        calls = [node for node in nodes if isinstance(node, e.Call) and name_of(node) != "qnn.quantize" and (is_region or node is not root)]
        if not calls or not all(isinstance(node, (e.Call, e.Tuple, e.TupleGetItem, e.Constant)) for node in nodes):
            return None
        for each in calls:
            has_rule = self._rule(name_of(each)) is not None and (is_region or each in self._dequantized)
            check(has_rule, "FakeQuantizationToInteger", "an operator with a rule", name_of(each))
        types = Types(self._dequantized)
        types.update((node, _quantized_type(node)) for node in nodes if isinstance(node, e.Call) and name_of(node) == "qnn.quantize")
        made: dict[e.Expr, e.Expr] = {}
        for node in nodes:
            new: e.Expr = rebuilt(node, iter([made.get(part, part) for part in children(node)])) if node not in self._dequantized else node
            made[node] = new
            if isinstance(new, e.Call):
                if is_region and node not in self._dequantized:
                    types[new] = types[root]
                convert = self._rule(name_of(new))
                assert convert is not None
                result, type_ = convert(new, types)
                made[node], types[result] = result, type_
            elif isinstance(new, e.Tuple):
                types[new] = TupleAffineType([types[part] for part in new.fields])
            elif isinstance(new, e.TupleGetItem):
                types[new] = types[new.tuple_value].types[new.index]
        return made[root] if is_region else self._dequantize(made[root], types[made[root]])

    def _dequantize(self, data: e.Expr, type_: Any) -> e.Expr:
        if not isinstance(type_, TensorAffineType):
            raise RelayError("FakeQuantizationToInteger: expected an operator with one result, found one with several")
        made = call("qnn.dequantize", [data, *type_.parameters], {"axis": type_.axis})
        self._dequantized[made] = type_
        return made


def _operands(expr: e.Expr) -> list[e.Expr]:
    """The parts of a region directly in an expression: none of dequantized tensors, and no scales."""
    if name_of(expr) in ("qnn.quantize", "qnn.dequantize"):
        assert isinstance(expr, e.Call)
        return [expr.args[0]] if name_of(expr) == "qnn.quantize" else []
    return [part for part in children(expr) if not isinstance(part, e.Op)]


def _dtype(expr: e.Expr) -> str:
    type_ = expr.checked_type
    assert isinstance(type_, TensorType)
    return type_.dtype


def _quantized_type(node: e.Call) -> TensorAffineType:
    assert node.attrs is not None
    return TensorAffineType(node.args[1], node.args[2], node.attrs["out_dtype"], node.attrs["axis"])


# ---- scales and zero points ------------------------------------------------------------------------------------------------------------


def _known(expr: e.Expr) -> np.ndarray | None:
    found = expr if isinstance(expr, e.Constant) else folded(expr)
    return found.data.numpy() if isinstance(found, e.Constant) else None


def _near(a: e.Expr, b: e.Expr) -> bool:
    x, y = _known(a), _known(b)
    return structural_equal(a, b) if x is None or y is None else bool(np.allclose(x, y, rtol=1e-5, atol=0))


def _product(x: TensorAffineType, w: TensorAffineType, axis: int) -> TensorAffineType:
    """The affine type of a product of integers without their zero points."""
    scale = infer_expr(call("multiply", [x.scale, w.scale]))
    known = _known(scale)
    zero = const(np.zeros(scale.checked_type.concrete_shape, np.int32))  # type: ignore[attr-defined] # a tensor's
    return TensorAffineType(scale if known is None else e.Constant(known), zero, "int32", axis)


def _requantized(data: e.Expr, of: TensorAffineType, to: TensorAffineType, dtype: str, axis: int | None = None) -> e.Expr:
    attrs = {"out_dtype": dtype, "axis": of.axis if axis is None else axis}
    return call("qnn.requantize", [data, *of.parameters, *to.parameters], attrs)


def _quantized(data: e.Expr, to: TensorAffineType, axis: int = -1) -> e.Expr:
    """A constant of floats in the integers of a type."""
    return call("qnn.quantize", [data, *to.parameters], {"out_dtype": to.dtype, "axis": axis})


def _in_type(expr: e.Expr, types: Types, to: TensorAffineType, axis: int | None = None) -> e.Expr:
    """An operand in the integers of a type: a constant of floats, or integers of another type."""
    if expr not in types:
        return _quantized(expr, to, -1 if axis is None else axis)
    return expr if types[expr].is_near(to) else _requantized(expr, types[expr], to, to.dtype, axis)


def _spread(values: np.ndarray, data: e.Expr, axis: int) -> np.ndarray:
    """Values for the elements of an axis, as they broadcast to data."""
    shape = [1] * len(infer_expr(data).checked_type.shape)  # type: ignore[attr-defined]
    shape[axis] = -1
    return values.reshape(shape)


def _constant(expr: e.Expr, what: str) -> np.ndarray:
    found = _known(expr)
    if found is None:
        raise RelayError(f"{what}: expected a constant")
    return found


# ---- rules -----------------------------------------------------------------------------------------------------------------------------


def rule(*names: str, key: str = KEY) -> Callable[[Rule], Rule]:
    """Registers a rule of operators."""

    def register(function: Rule) -> Rule:
        for name in names:
            register_op_attr(name, key, function)
        return function

    return register


def _attrs(of: e.Call, **changed: Any) -> dict[str, Any]:
    return {**(of.attrs or {}), **changed}


@rule("qnn.dequantize")
def _dequantize(of: e.Call, types: Types) -> Sequence[Any]:
    return of.args[0], types[of]


@rule("qnn.quantize")
def _quantize(of: e.Call, types: Types) -> Sequence[Any]:
    found, target = types[of.args[0]], _quantized_type(of)
    return (of.args[0] if found.is_near(target) else _requantized(of.args[0], found, target, target.dtype)), target


@rule("reshape", "squeeze", "strided_slice", "transpose", "expand_dims", "nn.max_pool2d", "nn.batch_flatten", "nn.depth_to_space")
@rule("max", "min", "image.resize2d", "broadcast_to", "take")
def _same(of: e.Call, types: Types) -> Sequence[Any]:
    """Operators that compute the same on integers."""
    return of, types[of.args[0]]


@rule("topk")
def _topk(of: e.Call, types: Types) -> Sequence[Any]:
    check(_attrs(of)["ret_type"] == "values", "topk: ret_type", "values", _attrs(of)["ret_type"])
    return of, types[of.args[0]]


@rule("split")
def _split(of: e.Call, types: Types) -> Sequence[Any]:
    sections = _attrs(of)["indices_or_sections"]
    return of, TupleAffineType([types[of.args[0]]] * (sections if isinstance(sections, int) else len(sections) + 1))


@rule("nn.avg_pool2d")
def _average(of: e.Call, types: Types) -> Sequence[Any]:
    """The mean has the scale of the data, except where it is quantized next to integers of the same element type."""
    found, target = types[of.args[0]], types.get(of)
    end = next((node.args[0] for node in types if isinstance(node, e.Call) and name_of(node) == "qnn.quantize"), None)
    is_last = isinstance(end, e.Call) and end.op is of.op and end.attrs is of.attrs
    to = target if is_last and target is not None and target.dtype == found.dtype else found
    attrs = {name: value for name, value in _attrs(of).items() if name != "out_layout"}
    return call("qnn.avg_pool2d", [of.args[0], *found.parameters, *to.parameters], attrs), to


@rule("nn.adaptive_avg_pool1d", "nn.global_avg_pool2d")
def _wide_average(of: e.Call, types: Types) -> Sequence[Any]:
    found, target = types[of.args[0]], types[of]
    is_near = found.is_near(target)
    data = call("cast", [of.args[0]], {"dtype": "int32"}) if is_near else _requantized(of.args[0], found, target, "int32")
    return of.replace(args=(data,)), target.of("int32")


@rule("mean")
def _mean(of: e.Call, types: Types) -> Sequence[Any]:
    found = types[of.args[0]]
    wide = of.replace(args=(call("cast", [of.args[0]], {"dtype": "int32"}),))
    return call("cast", [wide], {"dtype": found.dtype}), found


@rule("nn.bias_add")
def _bias(of: e.Call, types: Types) -> Sequence[Any]:
    data, bias = of.args
    found = types[data]
    is_product = found.dtype == "int32" and not _constant(found.zero_point, "nn.bias_add").any()
    check(is_product, "nn.bias_add", "int32 numbers with zero points of 0, as of a product", found.dtype)
    return of.replace(args=(data, _in_type(bias, types, found, axis=0))), found


@rule("nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul")
def _products(of: e.Call, types: Types) -> Sequence[Any]:
    x, w = (types[arg] for arg in of.args)
    attrs = _attrs(of, out_dtype="int32")
    if "data_layout" in attrs:
        axis = (attrs["out_layout"] or attrs["data_layout"]).index("C")
    else:
        axis = x.axis if name_of(of) == "nn.batch_matmul" else 1
    if name_of(of) == "nn.batch_matmul" and (attrs.pop("transpose_a"), attrs.pop("transpose_b")) != (False, True):
        raise RelayError("nn.batch_matmul: expected transpose_a=False and transpose_b=True")
    operands = [*of.args, x.zero_point, w.zero_point, x.scale, w.scale]
    name = f"qnn.{str(name_of(of)).removeprefix('nn.')}"
    made = call(name, operands, {key: value for key, value in attrs.items() if key in signature(name).attrs})
    return made, _product(x, w, axis)


@rule("concatenate")
def _concatenate(of: e.Call, types: Types) -> Sequence[Any]:
    fields, target = types[of.args[0]].types, types[of]
    parameters = [e.Tuple([t.scale for t in fields]), e.Tuple([t.zero_point for t in fields])]
    return call("qnn.concatenate", [of.args[0], *parameters, *target.parameters], _attrs(of)), target


@rule("clip")
def _clip(of: e.Call, types: Types) -> Sequence[Any]:
    data, found = of.args[0], types[of.args[0]]
    scale, zero = (_constant(p, "clip") for p in found.parameters)
    bounds = [_attrs(of)[name] for name in ("a_min", "a_max")]
    if scale.size == zero.size == 1:
        low, high = (int(bound / scale.item() + zero.item()) for bound in bounds)
        return call("clip", [data], {"a_min": low, "a_max": high}), found
    for name, bound in zip(("maximum", "minimum"), bounds, strict=True):
        limit = const(_spread(np.full(scale.shape, bound, np.float32), of.args[0], found.axis))
        data = call(name, [data, _quantized(limit, found, found.axis)])
    return data, found


@rule("nn.relu")
def _relu(of: e.Call, types: Types) -> Sequence[Any]:
    found = types[of.args[0]]
    zero, scale = _constant(found.zero_point, "nn.relu"), _constant(found.scale, "nn.relu")
    if scale.size > 1:
        zero = _spread(np.broadcast_to(zero, scale.shape), of.args[0], found.axis)
    return call("maximum", [of.args[0], const(zero.astype(found.dtype))]), found


@rule("nn.pad")
def _pad(of: e.Call, types: Types) -> Sequence[Any]:
    data, value = of.args
    return of.replace(args=(data, _in_type(value, types, types[data]))), types[data]


def _sides(of: e.Call, types: Types) -> tuple[list[tuple[e.Expr, TensorAffineType]], TensorAffineType]:
    """The operands of a binary operator with their types, of which a constant takes the other's, and the type of the result."""
    known = next((types[arg] for arg in of.args if arg in types), None)
    if known is None:
        raise RelayError(f"{name_of(of)}: expected a quantized operand")
    sides = [(arg, types[arg]) if arg in types else (_quantized(arg, known), known) for arg in of.args]
    target = types[of]
    return sides, target if sides[0][1].dtype == target.dtype else sides[0][1]


@rule("add", "subtract", "multiply")
def _binary(of: e.Call, types: Types) -> Sequence[Any]:
    """An operator on quantized tensors. A sum of int32 numbers of one scale, as that of a bias, is their sum."""
    ((left, a), (right, b)), target = _sides(of, types)
    if name_of(of) == "add" and a.dtype == "int32" and a.is_near(b) and a.is_near(target) and not _constant(target.zero_point, "add").any():
        return call("add", [left, right]), a
    has_several = any(_constant(parameter, str(name_of(of))).ndim for parameter in target.parameters)
    check(not has_several, name_of(of), "one scale and zero point of the result", "several")
    name = {"multiply": "qnn.mul"}.get(str(name_of(of)), f"qnn.{name_of(of)}")
    operands = [left, right, *a.parameters, *b.parameters, *target.parameters]
    return call(name, operands, {"lhs_axis": a.axis, "rhs_axis": b.axis}), target


@rule("minimum", "maximum")
def _limit(of: e.Call, types: Types) -> Sequence[Any]:
    sides, target = _sides(of, types)
    args = [arg if found is target else _requantized(arg, found, target, target.dtype) for arg, found in sides]
    return call(str(name_of(of)), args), target


@rule(*UNARY, "nn.leaky_relu")
@rule("nn.softmax", key=OPTIONAL_KEY)
def _unary(of: e.Call, types: Types) -> Sequence[Any]:
    found, target = types[of.args[0]], types[of]
    made = call(f"qnn.{str(name_of(of)).removeprefix('nn.')}", [of.args[0], *found.parameters, *target.parameters], _attrs(of))
    return made, target.of(found.dtype)


# fmt: off
_SINGLE = {
    "broadcast_to", "clip", "expand_dims", "max", "maximum", "min", "minimum", "nn.avg_pool2d", "nn.batch_flatten", "nn.batch_matmul",
    "nn.bias_add", "nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.depth_to_space", "nn.global_avg_pool2d", "nn.max_pool2d", "nn.pad",
    "nn.relu", "reshape", "split", "squeeze", "strided_slice", "transpose",
}
# fmt: on
"""Operators that change one by one: what their results stand for follows from the operands."""
