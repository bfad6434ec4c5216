"""Continuation-passing style: functions call another function, their continuation, with their result, and give what that gives.

A function of type fn (A) -> B becomes fn (A, fn (B) -> R) -> R for any R, the answer. What joins after a branch, a match or a call is a
function, which PartialEvaluate then evaluates for each branch apart.
"""

from collections.abc import Callable, Sequence

from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.analysis import Feature, detect_feature
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.functor import TypeMutator, post_order, rebuilt
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_expr, infer_module
from relayc.frontend.relay.passes.normal_forms import is_primitive, to_a_normal_form
from relayc.trampoline import Call, trampoline

_Rest = Callable[[e.Expr], Call[e.Expr]]
"""What is made of a program after an expression, of a variable or another expression without effects that stands for the result."""


def to_cps(function: e.Function, mod: RelayModule | None = None) -> e.Function:
    """A function in continuation-passing style.

    Args:
      mod: has the functions that the function names. It is given these in continuation-passing style, under names that end with "_cps".

    Raises:
      RelayError: a primitive function; a global function without a module.
    """
    given = mod or RelayModule()
    if Feature.fGraph in detect_feature(function):
        function = to_a_normal_form(RelayModule({"f": function}))["f"]
    typed = infer_expr(function, given)
    assert isinstance(typed, e.Function)
    return _converted(typed, given)


def un_cps(function: e.Function) -> e.Function:
    """A function of plain values that calls a function in continuation-passing style. Raises RelayError for another function."""
    typed = infer_expr(function) if function.checked_type_ is None else function
    assert isinstance(typed, e.Function)
    params = [e.Var(p.name_hint, p.checked_type) for p in typed.params]
    kind = params.pop().type_annotation if params else None
    if not isinstance(kind, t.FuncType) or len(kind.arg_types) != 1 or kind.ret_type not in typed.type_params[-1:]:
        raise RelayError(f"un_cps: expected a function of type fn (A, fn (B) -> R) -> R for any R, found {typed.checked_type}")
    (result,) = kind.arg_types
    x = e.Var("x", result)
    type_params = typed.type_params[:-1]
    call = e.Call(typed, [*params, e.Function([x], x, result)], None, [*type_params, result])
    return e.Function(params, call, result, type_params, typed.attrs)


def to_cps_pass(mod: RelayModule) -> RelayModule:
    """Puts functions in continuation-passing style."""
    found = mod.shallow_copy()
    made = {var: to_cps(function, found) for var, function in mod.functions.items()}
    found.update(made)
    return infer_module(found)


def un_cps_pass(mod: RelayModule) -> RelayModule:
    """Makes functions of plain values of functions in continuation-passing style."""
    return infer_module(mod.map_functions(un_cps))


class _Types(TypeMutator):
    def __init__(self, answer: t.TypeVar) -> None:
        self._answer = answer

    def visit_func_type(self, type_: t.FuncType) -> t.FuncType:
        args = map(self.visit, type_.arg_types)
        return t.FuncType([*args, self.continuation(self.visit(type_.ret_type))], self._answer, type_.type_params)

    def continuation(self, result: t.Type) -> t.FuncType:
        return t.FuncType([result], self._answer)


def _converted(function: e.Function, mod: RelayModule) -> e.Function:
    """A global function, with types, for any answer."""
    answer = t.TypeVar("answer")
    converter = _Converter(mod, _Types(answer))
    converter.declare(function)
    found = trampoline(converter.function(function))
    return e.Function(found.params, found.body, answer, [*function.type_params, answer], function.attrs, function.span)


class _Converter:
    """The conversion of one global function."""

    def __init__(self, mod: RelayModule, types: _Types) -> None:
        self._mod, self._types = mod, types
        self._vars: dict[e.Id, e.Var] = {}

    def declare(self, function: e.Function) -> None:
        """Creates variables of the new types for the variables of the function."""
        patterns = [
            var for node in post_order(function) if isinstance(node, e.Match) for c in node.clauses for var in e.pattern_vars(c.lhs)
        ]
        for node in [*patterns, *post_order(function)]:
            if isinstance(node, e.Var) and node.vid not in self._vars:
                self._vars[node.vid] = e.Var(node.name_hint, self._types.visit(node.checked_type))

    def function(self, function: e.Function) -> Call[e.Function]:
        """A function with a continuation as its last parameter."""
        if is_primitive(function):
            raise RelayError("to_cps: expected functions that are no kernels of their own, found a primitive function")
        assert isinstance(function.checked_type, t.FuncType)
        rest = e.Var("k", self._types.continuation(self._types.visit(function.checked_type.ret_type)))

        def end(result: e.Expr) -> Call[e.Expr]:
            return e.Call(rest, [result])
            yield

        body = yield self._expr(function.body, end)
        params = [*(self._vars[p.vid] for p in function.params), rest]
        return e.Function(params, body, rest.type_annotation.ret_type, function.type_params, function.attrs, function.span)  # type: ignore[union-attr] # a function's

    def _expr(self, expr: e.Expr, rest: _Rest) -> Call[e.Expr]:
        if isinstance(expr, e.Let):
            return (yield self._expr(expr.value, lambda value: self._let(expr, value, rest)))
        if isinstance(expr, e.Function):
            return (yield rest((yield self.function(expr))))
        if isinstance(expr, e.GlobalVar):
            return (yield rest(self._global(expr)))
        if isinstance(expr, (e.Constant, e.Op, e.Constructor, e.Var)):
            return (yield rest(self._vars[expr.vid] if isinstance(expr, e.Var) else expr))
        if isinstance(expr, (e.If, e.Match)):
            join = e.Var("f")
            body = yield self._branches(expr, join)
            return e.Let(join, (yield self._joined(rest)), body)
        if isinstance(expr, e.Call):
            return (yield self._all([expr.op, *expr.args], [], lambda parts: self._call(expr, parts, rest)))
        parts: list[e.Expr] = (
            list(expr.fields)
            if isinstance(expr, e.Tuple)
            else [getattr(expr, n) for n in ("tuple_value", "ref", "value") if hasattr(expr, n)]
        )
        return (yield self._all(parts, [], lambda made: self._plain(expr, made, rest)))

    def _all(self, exprs: Sequence[e.Expr], done: list[e.Expr], rest: Callable[[list[e.Expr]], Call[e.Expr]]) -> Call[e.Expr]:
        """Converts several expressions, in order."""
        if len(done) == len(exprs):
            return (yield rest(done))
        return (yield self._expr(exprs[len(done)], lambda value: self._all(exprs, [*done, value], rest)))

    def _let(self, let: e.Let, value: e.Expr, rest: _Rest) -> Call[e.Expr]:
        return e.Let(self._vars[let.var.vid], value, (yield self._expr(let.body, rest)))

    def _plain(self, expr: e.Expr, parts: list[e.Expr], rest: _Rest) -> Call[e.Expr]:
        """What is computed without a call of a function. Effects are bound to a variable: the rest may use them late, or never."""
        made = rebuilt(expr, iter(parts))
        if isinstance(expr, (e.Tuple, e.TupleGetItem)):
            return (yield rest(made))
        var = e.Var("x")
        return e.Let(var, made, (yield rest(var)))

    def _call(self, call: e.Call, parts: list[e.Expr], rest: _Rest) -> Call[e.Expr]:
        if isinstance(call.op, (e.Op, e.Constructor)):
            return (yield self._plain(call, parts, rest))
        return e.Call(parts[0], [*parts[1:], (yield self._joined(rest))], call.attrs)

    def _joined(self, rest: _Rest) -> Call[e.Expr]:
        """The rest of a program as a function."""
        var = e.Var("arg")
        return e.Function([var], (yield rest(var)))

    def _branches(self, expr: e.If | e.Match, join: e.Var) -> Call[e.Expr]:
        """A branch or match whose results go to a function."""

        def end(result: e.Expr) -> Call[e.Expr]:
            return e.Call(join, [result])
            yield

        def chosen(by: e.Expr) -> Call[e.Expr]:
            if isinstance(expr, e.If):
                return e.If(by, (yield self._expr(expr.true_branch, end)), (yield self._expr(expr.false_branch, end)))
            clauses = []
            for clause in expr.clauses:
                pattern = e.rebuilt_pattern(clause.lhs, lambda var: self._vars[var.vid])
                clauses.append(e.Clause(pattern, (yield self._expr(clause.rhs, end))))
            return e.Match(by, clauses, expr.complete)

        return (yield self._expr(expr.cond if isinstance(expr, e.If) else expr.data, chosen))

    def _global(self, var: e.GlobalVar) -> e.GlobalVar:
        """The name of a global function in continuation-passing style, which is made first."""
        name = f"{var.name_hint}_cps"
        if name in self._mod:
            return self._mod.get_global_var(name)
        function = self._mod[var]
        self._mod[name] = function  # a function that calls itself finds the name
        typed = infer_module(RelayModule(self._mod.functions, self._mod.type_definitions))[var]
        self._mod[name] = _converted(typed, self._mod)
        return self._mod.get_global_var(name)
