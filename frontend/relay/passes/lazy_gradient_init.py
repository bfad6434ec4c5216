"""LazyGradientInit: tensors of ones and zeros, which are frequent in gradients, are created at the use of their elements.

In the function a tensor is a GradCell: the tensor itself, or a function that creates it if all elements are ones, or zeros. Sums and
products of cells are simplified if an operand consists of ones or zeros.
"""

from typing import Any

from relayc.dialects.relay.errors import check
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.equality import structural_equal
from relayc.frontend.relay.ast.functor import TypeMutator, post_order, with_parts
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.prelude import import_from_std

_FILLED = {"ones": "One", "ones_like": "One", "zeros": "Zero", "zeros_like": "Zero"}
_COMBINED = {"add": "AddGradCell", "multiply": "MultiplyGradCell"}


def lazy_gradient_init(mod: RelayModule) -> RelayModule:
    """Makes tensors of ones and zeros late in the functions of a module, whose types stay. The module is given the type GradCell.

    Raises RelayError for data types in these functions.
    """
    found = infer_module(mod)
    own = dict(found.functions)
    if "FromGradCell" not in found:
        import_from_std(found, "gradient.rly")
    for var, function in own.items():
        found[var] = _Cells(found).function(function)
    return infer_module(found)


class _Cells(TypeMutator):
    """The expressions of one function as cells, and tuples, functions and references of them."""

    def __init__(self, mod: RelayModule) -> None:
        self._mod = mod
        self._cell, *made = mod.get_type("GradCell")
        self._constructors = {constructor.name_hint: constructor for constructor in made}
        self._made: dict[e.Expr, e.Expr] = {}
        self._vars: dict[e.Id, e.Expr] = {}

    def function(self, function: e.Function) -> e.Expr:
        """A function of tensors that computes with cells."""
        self._vars = {p.vid: self._wrapped(p, p.checked_type) for p in function.params}
        for node in post_order(function.body):
            self._made[node] = self._changed(node)
        result = e.Var("result")
        body = e.Let(result, self._made[function.body], self._unwrapped(result, function.body.checked_type))
        return e.Function(function.params, body, function.ret_type, function.type_params, function.attrs, function.span)

    def visit_tensor_type(self, type_: t.TensorType) -> t.Type:
        return t.TypeCall(self._cell, [type_])

    # ---- cells of tensors, and back

    def _wrapped(self, expr: e.Expr, type_: t.Type) -> e.Expr:
        if isinstance(type_, t.TupleType):
            return e.Tuple([self._wrapped(e.TupleGetItem(expr, i), part) for i, part in enumerate(type_.fields)])
        return self._construct("Raw", expr, type_)

    def _unwrapped(self, expr: e.Expr, type_: t.Type) -> e.Expr:
        if isinstance(type_, t.TupleType):
            return e.Tuple([self._unwrapped(e.TupleGetItem(expr, i), part) for i, part in enumerate(type_.fields)])
        return _of_tensor(self._mod.get_global_var("FromGradCell"), expr, type_)

    def _construct(self, name: str, expr: e.Expr, type_: t.Type) -> e.Expr:
        return _of_tensor(self._constructors[name], expr, type_)

    # ---- expressions

    def _var(self, var: e.Var) -> e.Expr:
        if var.vid not in self._vars:
            self._vars[var.vid] = e.Var(var.name_hint, self.visit(var.checked_type))
        return self._vars[var.vid]

    def _changed(self, node: e.Expr) -> e.Expr:
        if isinstance(node, e.Var):
            return self._var(node)
        if isinstance(node, (e.Op, e.GlobalVar)):
            return node
        if isinstance(node, e.Constant):
            return self._wrapped(node, node.checked_type)
        check(not isinstance(node, (e.Constructor, e.Match)), "LazyGradientInit", "no data types", node)
        if isinstance(node, e.Call) and isinstance(node.op, (e.Op, e.GlobalVar)):
            return self._call(node)
        made: Any = with_parts(node, self._made)
        if isinstance(node, e.If):
            return made.replace(cond=self._unwrapped(made.cond, node.cond.checked_type))
        if isinstance(node, e.Function):
            return made.replace(ret_type=None if node.ret_type is None else self.visit(node.ret_type))
        return made.replace(type_args=()) if isinstance(node, e.Call) else made

    def _call(self, call: e.Call) -> e.Expr:
        """The cell of an operator, or of a global function, which is one of tensors."""
        name, type_ = call.op.name if isinstance(call.op, e.Op) else "", call.checked_type
        args = [self._made[arg] for arg in call.args]
        if name in _COMBINED and structural_equal(call.args[0].checked_type, call.args[1].checked_type):
            params = [e.Var(side, type_) for side in ("lhs", "rhs")]
            combine = e.Function(params, e.Call(call.op, params), type_)
            return e.Call(self._mod.get_global_var(_COMBINED[name]), [combine, *args], None, [type_])
        plain = call.replace(args=tuple(self._unwrapped(made, arg.checked_type) for made, arg in zip(args, call.args, strict=True)))
        if name in _FILLED:
            return self._construct(_FILLED[name], e.Function([], plain, type_), type_)
        return self._wrapped(plain, type_)


def _of_tensor(callee: e.Expr, expr: e.Expr, type_: t.Type) -> e.Call:
    """A call for a type of tensors, which has the type as its argument."""
    check(isinstance(type_, t.TensorType), "LazyGradientInit", "tensors and tuples of them", type_)
    return e.Call(callee, [expr], None, [type_])
