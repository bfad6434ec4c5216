"""Functions as values: eta expansion and lambda lifting."""

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.analysis import free_vars
from relayc.frontend.relay.ast.build import bind
from relayc.frontend.relay.ast.functor import ExprMutator
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.passes.normal_forms import is_primitive


def eta_expand(mod: RelayModule, expand_constructor: bool = False, expand_global_var: bool = False) -> RelayModule:
    """Makes functions that call them of constructors, or of global functions, that are values: f to fn (x) { f(x) }."""
    kinds = (*((e.Constructor,) if expand_constructor else ()), *((e.GlobalVar,) if expand_global_var else ()))
    return mod.map_functions(_EtaExpand(infer_module(mod), kinds).visit)


class _EtaExpand(ExprMutator):
    def __init__(self, mod: RelayModule, kinds: tuple[type, ...]) -> None:
        super().__init__()
        self._mod, self._kinds = mod, kinds

    def visit_call(self, call: e.Call) -> e.Expr:
        op = call.op if isinstance(call.op, (e.Constructor, e.GlobalVar)) else self.visit(call.op)
        return call.replace(op=op, args=tuple(map(self.visit, call.args)))

    def visit_global_var(self, var: e.GlobalVar) -> e.Expr:
        if e.GlobalVar not in self._kinds:
            return var
        function = self._mod[var]
        params = [e.Var(p.name_hint, p.type_annotation) for p in function.params]
        return e.Function(params, e.Call(var, params), function.ret_type, function.type_params)

    def visit_constructor(self, constructor: e.Constructor) -> e.Expr:
        if e.Constructor not in self._kinds:
            return constructor
        assert isinstance(constructor.belong_to, t.GlobalTypeVar)
        data = self._mod.type_definitions[self._mod.get_global_type_var(constructor.belong_to.name_hint)]
        params = [e.Var(f"eta_expand_param_{i}", type_) for i, type_ in enumerate(constructor.inputs)]
        return e.Function(params, e.Call(constructor, params), t.TypeCall(data.header, data.type_vars), data.type_vars)


def lambda_lift(mod: RelayModule) -> RelayModule:
    """Makes global functions of function values.

    A function that captures variables becomes a global function that returns it, with the attribute Closure.
    """
    found = mod.shallow_copy()
    for var, function in mod.functions.items():
        body = _LambdaLift(found, var.name_hint).visit(function.body)
        found[var] = function.replace(body=body)
    return found


class _LambdaLift(ExprMutator):
    def __init__(self, mod: RelayModule, around: str) -> None:
        super().__init__()
        self._mod, self._around = mod, around

    def visit_let(self, let: e.Let) -> e.Expr:
        own = let.var if isinstance(let.value, e.Function) else None
        value = self._lifted(let.value, own) if isinstance(let.value, e.Function) else self.visit(let.value)
        return let.replace(value=value, body=self.visit(let.body))

    def visit_function(self, function: e.Function) -> e.Expr:
        return self._lifted(function, None)

    def _lifted(self, function: e.Function, own: e.Var | None) -> e.Expr:
        """The replacement of a function; it may be bound to a variable by which it refers to itself."""
        if is_primitive(function):
            return function
        count = 0
        while f"{self._around}_lifted_{count}" in self._mod:
            count += 1
        name = e.GlobalVar(f"{self._around}_lifted_{count}")
        captured = [v for v in free_vars(function) if own is None or v.vid is not own.vid]
        known = [e.Var(v.vid, v.type_annotation if v.checked_type_ is None else v.checked_type_) for v in captured]
        made: e.Expr = e.Call(name, captured) if captured else name
        self._mod[name] = function  # the name is taken
        body = self.visit(function.body if own is None else bind(e.Function([], function.body), {own: made}).body)  # type: ignore[attr-defined]
        inner = function.replace(body=body)
        assert isinstance(inner, e.Function)
        self._mod[name] = e.Function(known, inner, function.checked_type_, (), {"Closure": 1}) if captured else inner
        return made
