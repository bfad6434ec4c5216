"""PartialEvaluate: evaluates what is known before the program runs, and leaves the rest as a program.

Every expression gives a variable in the program that is left and, where it is known, its value. Calls of known functions are evaluated in
the place of the call, matches and branches on known values choose their clause, and operators on known tensors are computed. References are
followed as long as what may write to them is known. The program that is left is in A-normal form; DeadCodeElimination makes it small.
"""

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relayc.frontend.relay.analysis import Feature, detect_feature
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.build import in_lets
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference.unify import Unifier, substituted
from relayc.frontend.relay.op.registered import STATEFUL, attribute
from relayc.frontend.relay.passes.normal_forms import ATOMS, is_primitive, to_a_normal_form
from relayc.pipelines.control.steps import Kernel
from relayc.relay.folding import KEPT
from relayc.relay.kernel import kernel_compiler
from relayc.trampoline import Call, each, trampoline

_INTEGERS = ("int32", "int64")


class Cell:
    """A reference that is known."""


@dataclass(eq=False)
class Fields:
    """A known tuple, or a known value created by a constructor."""

    constructor: e.Constructor | None
    values: "Sequence[Value]"


@dataclass(eq=False)
class Closure:
    """A known function, with the values of captured variables, and its own name."""

    function: e.Function
    scope: "Mapping[e.Id, Value]"
    types: "Types"
    name: e.Id | None = None


_numbers = itertools.count()


@dataclass(eq=False)
class Value:
    """The value of an expression.

    Attributes:
      expr: its representation in the residual program.
      known: the value itself: an array, Cell, Fields or Closure, an operator or a constructor; None if unknown.
      number: of the value, in order of creation.
    """

    expr: e.Expr
    known: Any = None
    number: int = field(default_factory=lambda: next(_numbers))


_Fuel = tuple[tuple[int, int], ...]
"""For each argument of a call, its creation number, and its value if it is a number: each step of a terminating recursion decreases one."""

Scope = dict[e.Id, Value]
Types = Mapping[int, t.Type]
"""The values of type variables, by their `id`."""
Lets = list[tuple[e.Var, e.Expr]]


def partial_evaluate(mod: RelayModule) -> RelayModule:
    """Evaluates what is known in the functions of a module. Calls of recursive functions are evaluated as long as arguments get smaller."""
    if Feature.fGraph in detect_feature(mod):  # shared expressions are evaluated once
        mod = to_a_normal_form(mod)
    evaluator = _Evaluator(mod)
    found = mod.shallow_copy()
    for var, function in mod.functions.items():
        if not is_primitive(function):
            found[var] = evaluator.function(function, var)
    return found


class _Evaluator:
    """The evaluation of a module.

    Args:
      mod: has the functions that calls name.
    """

    def __init__(self, mod: RelayModule) -> None:
        self._mod = mod
        self._globals: dict[str, Value] = {}
        self._fuel: dict[e.Function, _Fuel] = {}
        self._store: list[dict[Cell, Value] | None] = [{}]  # None: earlier contents may be invalid
        self._kernels: dict[Any, Kernel | None] = {}

    def function(self, function: e.Function, var: e.GlobalVar) -> e.Function:
        """The residual of a global function."""
        return trampoline(self._left(Closure(function, {}, {}), Value(var)))

    # ---- references

    @contextlib.contextmanager
    def _branch(self, forgets: bool) -> Iterator[None]:
        """Where writes are undone afterwards: code that may run, or not."""
        depth = len(self._store)
        self._store += [None, {}] if forgets else [{}]
        yield
        del self._store[depth:]

    def _forget(self) -> None:
        self._store += [None, {}]

    def _read(self, cell: Cell) -> Value | None:
        for frame in reversed(self._store):
            if frame is None:
                return None
            if cell in frame:
                return frame[cell]
        return None

    # ---- expressions

    def _eval(self, expr: e.Expr, scope: Scope, types: Types, lets: Lets) -> Call[Value]:
        while isinstance(expr, e.Let):
            if isinstance(expr.value, e.Function) and not is_primitive(expr.value):
                scope[expr.var.vid] = yield self._closure(expr.value, scope, types, lets, expr.var)
            else:
                scope[expr.var.vid] = yield self._eval(expr.value, scope, types, lets)
            expr = expr.body
        if isinstance(expr, e.Var):
            return scope.get(expr.vid) or Value(expr)
        if isinstance(expr, e.GlobalVar):
            return self._global(expr)
        if isinstance(expr, (e.Op, e.Constructor)):
            return Value(expr, expr)
        if isinstance(expr, e.Function):
            if is_primitive(expr):
                return _push(lets, expr, expr)
            return (yield self._closure(expr, scope, types, lets, e.Var("f")))
        if isinstance(expr, e.Constant):
            return _push(lets, expr, np.asarray(expr.data))
        if isinstance(expr, e.If):
            return (yield self._if(expr, scope, types, lets))
        if isinstance(expr, e.Match):
            return (yield self._match(expr, scope, types, lets))
        if isinstance(expr, e.Call):
            callee = yield self._eval(expr.op, scope, types, lets)
            args = yield each(self._eval(arg, scope, types, lets) for arg in expr.args)
            return (yield self._call(expr, callee, args, types, lets))
        if isinstance(expr, e.Tuple):
            fields = yield each(self._eval(field, scope, types, lets) for field in expr.fields)
            return _push(lets, e.Tuple([value.expr for value in fields]), Fields(None, fields))
        if isinstance(expr, e.TupleGetItem):
            whole = yield self._eval(expr.tuple_value, scope, types, lets)
            if isinstance(whole.known, Fields):
                return whole.known.values[expr.index]
            return _push(lets, e.TupleGetItem(whole.expr, expr.index))
        return (yield self._reference(expr, scope, types, lets))

    def _block(self, expr: e.Expr, scope: Scope, types: Types, forgets: bool = False) -> Call[e.Expr]:
        """The residual of code that may or may not run."""
        lets: Lets = []
        with self._branch(forgets):
            found = yield self._eval(expr, dict(scope), types, lets)
        return in_lets(lets, found.expr)

    def _reference(self, expr: e.Expr, scope: Scope, types: Types, lets: Lets) -> Call[Value]:
        if isinstance(expr, e.RefCreate):
            value, cell = (yield self._eval(expr.value, scope, types, lets)), Cell()
            found = _push(lets, e.RefCreate(value.expr), cell)
            self._write(cell, value)
            return found
        assert isinstance(expr, (e.RefRead, e.RefWrite))
        ref = yield self._eval(expr.ref, scope, types, lets)
        if isinstance(expr, e.RefWrite):
            value = yield self._eval(expr.value, scope, types, lets)
            if isinstance(ref.known, Cell):
                self._write(ref.known, value)
            else:
                self._forget()
            return _push(lets, e.RefWrite(ref.expr, value.expr), Fields(None, []))
        known = self._read(ref.known) if isinstance(ref.known, Cell) else None
        return known or _push(lets, e.RefRead(ref.expr))

    def _write(self, cell: Cell, value: Value) -> None:
        frame = self._store[-1]
        assert frame is not None
        frame[cell] = value

    def _if(self, expr: e.If, scope: Scope, types: Types, lets: Lets) -> Call[Value]:
        cond = yield self._eval(expr.cond, scope, types, lets)
        if isinstance(cond.known, np.ndarray):
            return (yield self._eval(expr.true_branch if cond.known else expr.false_branch, scope, types, lets))
        then = yield self._block(expr.true_branch, scope, types)
        otherwise = yield self._block(expr.false_branch, scope, types)
        self._forget()
        return _push(lets, e.If(cond.expr, then, otherwise))

    def _match(self, expr: e.Match, scope: Scope, types: Types, lets: Lets) -> Call[Value]:
        data = yield self._eval(expr.data, scope, types, lets)
        for clause in expr.clauses:
            bound: Scope = {}
            matches = _matches(clause.lhs, data, bound)
            if matches:
                return (yield self._eval(clause.rhs, scope | bound, types, lets))
            if matches is None:
                break
        clauses = []
        for clause in expr.clauses:
            bound = {}
            pattern = _renamed(clause.lhs, bound, types)
            clauses.append(e.Clause(pattern, (yield self._block(clause.rhs, scope | bound, types))))
        self._forget()
        return _push(lets, e.Match(data.expr, clauses, expr.complete))

    # ---- functions

    def _global(self, var: e.GlobalVar) -> Value:
        name = var.name_hint
        if name not in self._globals:
            function = self._mod[var]
            known = None if is_primitive(function) else Closure(function, {}, {})
            self._globals[name] = Value(var, known)
        return self._globals[name]

    def _closure(self, function: e.Function, scope: Scope, types: Types, lets: Lets, var: e.Var) -> Call[Value]:
        closure = Closure(function, scope, types, var.vid)
        found = Value(e.Var(var.name_hint), closure)
        lets.append((found.expr, (yield self._left(closure, found))))  # type: ignore[arg-type] # a variable
        return found

    def _left(self, closure: Closure, value: Value) -> Call[e.Function]:
        """The residual of a function."""
        function, types = closure.function, closure.types
        params = [e.Var(p.name_hint, _substituted(p.type_annotation, types)) for p in function.params]
        scope = dict(closure.scope) | {p.vid: Value(new) for p, new in zip(function.params, params, strict=True)}
        if closure.name is not None:
            scope[closure.name] = value
        before = self._fuel.get(function)
        self._fuel[function] = tuple(map(_fuel_of, (scope[p.vid] for p in function.params)))
        body = yield self._block(function.body, scope, types, forgets=True)
        self._restore(function, before)
        ret_type = _substituted(function.ret_type, types)
        found = e.Function(params, body, ret_type, function.type_params, function.attrs, function.span)
        found.virtual_device_ = function.virtual_device_
        return found

    def _restore(self, function: e.Function, fuel: _Fuel | None) -> None:
        if fuel is None:
            del self._fuel[function]
        else:
            self._fuel[function] = fuel

    def _call(self, call: e.Call, callee: Value, args: list[Value], types: Types, lets: Lets) -> Call[Value]:
        given = [_substituted(type_, types) for type_ in call.type_args]
        type_args = given if None not in given else []
        exprs, known = [arg.expr for arg in args], callee.known
        left = call.replace(op=callee.expr, args=tuple(exprs), type_args=tuple(type_args))
        if isinstance(known, e.Constructor):
            return _push(lets, left, Fields(known, args))
        if isinstance(known, e.Op) or (isinstance(known, e.Function) and is_primitive(known)):
            result = self._computed(call, known, args)
            return _push(lets, left) if result is None else _constant(lets, result)
        if isinstance(known, Closure):
            function, fuel = known.function, tuple(map(_fuel_of, args))
            before = self._fuel.get(function)
            if before is None or any(x < y for a, b in zip(fuel, before, strict=True) for x, y in zip(a, b, strict=True)):
                if before is not None:
                    fuel = tuple((min(a[0], b[0]), min(a[1], b[1])) for a, b in zip(fuel, before, strict=True))
                scope = dict(known.scope) | {p.vid: arg for p, arg in zip(function.params, args, strict=True)}
                if known.name is not None:
                    scope[known.name] = callee
                own = {id(var): type_ or t.IncompleteType() for var, type_ in itertools.zip_longest(function.type_params, given)}
                self._fuel[function] = fuel
                found = yield self._eval(function.body, scope, {**known.types, **own}, lets)
                self._restore(function, before)
                return found
        self._forget()
        return _push(lets, left)

    def _computed(self, call: e.Call, callee: e.Expr, args: Sequence[Value]) -> Any:
        """The result of an operator on known values; None if they are unknown, or it is not to be evaluated."""
        given = [_known(arg) for arg in args]
        is_open = any(value is None for value in given) or not given
        if is_open or isinstance(callee, e.Function):
            return None
        assert isinstance(callee, e.Op)
        if callee.name.startswith(KEPT) or attribute(callee.name, STATEFUL):
            return None
        key = (callee.name, str(call.attrs), str(list(map(_type_of, given))))
        if key not in self._kernels:
            params = [e.Var(f"x{i}", _type_of(value)) for i, value in enumerate(given)]
            function = e.Function(params, e.Call(callee, params, call.attrs))
            self._kernels[key] = Kernel(RelayModule.from_expr(function), kernel_compiler(None))
        kernel = self._kernels[key]
        try:
            return None if kernel is None else kernel(*given)
        except ValueError:  # a failing operation fails at run time
            self._kernels[key] = None
            return None


def _push(lets: Lets, expr: e.Expr, known: Any = None) -> Value:
    """The value of an expression, which is bound to a variable in the program that is left."""
    if isinstance(expr, ATOMS):
        return Value(expr, known)
    var = e.Var("x")
    lets.append((var, expr))
    return Value(var, known)


def _constant(lets: Lets, result: Any) -> Value:
    if isinstance(result, list):
        fields = [_constant(lets, part) for part in result]
        return _push(lets, e.Tuple([value.expr for value in fields]), Fields(None, fields))
    return _push(lets, e.Constant(result), np.asarray(result))


def _known(value: Value) -> Any:
    """A value as an argument of a kernel: arrays, and lists for tuples; None if a part is not known."""
    if isinstance(value.known, Fields) and value.known.constructor is None:
        parts = [_known(part) for part in value.known.values]
        return None if any(part is None for part in parts) else parts
    return value.known if isinstance(value.known, np.ndarray) else None


def _type_of(value: Any) -> t.Type:
    return t.TupleType(list(map(_type_of, value))) if isinstance(value, list) else t.TensorType(value.shape, value.dtype.name)


def _fuel_of(value: Value) -> tuple[int, int]:
    known = value.known
    is_number = isinstance(known, np.ndarray) and known.ndim == 0 and known.dtype.name in _INTEGERS
    return value.number, max(0, int(known)) if is_number else 0


# ---- patterns and types ------------------------------------------------------------------------------------------------------------------


def _matches(pattern: e.Pattern, value: Value, bound: Scope) -> bool | None:
    """Whether a value matches a pattern, whose variables are bound; None if too little is known of it."""
    if isinstance(pattern, e.PatternVar):
        bound[pattern.var.vid] = value
    if not isinstance(pattern, (e.PatternConstructor, e.PatternTuple)):
        return True
    if not isinstance(value.known, Fields):
        return None
    if isinstance(pattern, e.PatternConstructor):
        made = value.known.constructor
        if made is None or made.name_hint != pattern.constructor.name_hint:
            return False
    parts = [_matches(part, field, bound) for part, field in zip(pattern.patterns, value.known.values, strict=True)]
    return False if False in parts else None if None in parts else True


def _renamed(pattern: e.Pattern, bound: Scope, types: Types) -> e.Pattern:
    """A pattern that binds new variables."""

    def renamed(var: e.Var) -> e.Expr:
        bound[var.vid] = Value(e.Var(var.name_hint, _substituted(var.type_annotation, types)))
        return bound[var.vid].expr

    return e.rebuilt_pattern(pattern, renamed)


def _substituted(type_: t.Type | None, types: Types) -> t.Type | None:
    """A type with its variables replaced; None, so that it is inferred, if unknown."""
    found = type_ if type_ is None else substituted(type_, types)
    return found if found is None or Unifier().is_complete(found) else None
