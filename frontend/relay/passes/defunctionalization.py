"""Defunctionalization: functions as values become data, and calls of them become calls of a function that matches on the data.

Each type of functions becomes a data type. The data type has a constructor for each function that is a value of the type somewhere in the
program; its fields are what the function uses from around it. Global functions are copied for the types of their calls.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from relayc.dialects.relay.errors import RelayError, check
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.analysis import free_vars
from relayc.frontend.relay.ast.functor import TypeMutator, children, post_order, rebuilt, type_parts
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_expr, infer_module
from relayc.frontend.relay.inference.unify import Unifier, substituted
from relayc.frontend.relay.passes.normal_forms import is_primitive

_Types = Mapping[int, t.Type]
"""The types that replace type variables, by their `id`."""


def defunctionalization(function: e.Function, mod: RelayModule) -> e.Function:
    """A function in which no function is a value; its type has none.

    Args:
      mod: has the functions that it names; it is given data types and functions.

    Raises:
      RelayError: a type with functions, or with parameters, or a data type whose constructors have functions.
    """
    typed = infer_expr(function, mod)
    assert isinstance(typed, e.Function)
    is_plain = not (typed.type_params or any(_has_function(part.checked_type) for part in (typed.body, *typed.params)))
    check(is_plain, "Defunctionalization", "a type without functions and type parameters", typed.checked_type)
    program = _Program(mod)
    found = program.function(typed, {})
    program.finish()
    return found


def _has_function(type_: t.Type) -> bool:
    return isinstance(type_, t.FuncType) or any(map(_has_function, type_parts(type_)))


@dataclass(eq=False)
class _Encoding:
    """A function type as a data type.

    Attributes:
      apply: calls the function that a value of the type represents, with its `params`.
      constructors: by the function that each represents, with their clauses of `apply`.
    """

    header: t.GlobalTypeVar
    apply: e.GlobalVar
    params: list[e.Var]
    result: t.Type
    constructors: dict[object, e.Constructor] = field(default_factory=dict)
    clauses: list[e.Clause] = field(default_factory=list)

    def constructor(self, key: object, inputs: list[t.Type]) -> e.Constructor:
        """A new constructor."""
        made = self.constructors[key] = e.Constructor(f"{self.header.name_hint}_{len(self.constructors)}", inputs, self.header)
        return made


class _Program(TypeMutator):
    """A program without function values, under construction."""

    def __init__(self, mod: RelayModule) -> None:
        self._mod, self._typed = mod, infer_module(mod)
        self._encodings: dict[t.Type, _Encoding] = {}
        self._instances: dict[tuple[str, tuple[t.Type, ...]], e.GlobalVar] = {}
        self._waiting: list[tuple[e.GlobalVar, e.Function, _Types]] = []

    def finish(self) -> None:
        """Adds the required definitions to the module."""
        while self._waiting:
            var, function, types = self._waiting.pop()
            self._mod[var] = self.function(function, types)
        for encoding in self._encodings.values():
            self._mod[encoding.header] = e.TypeData(encoding.header, [], list(encoding.constructors.values()))
            body = e.Match(encoding.params[0], encoding.clauses)
            self._mod[encoding.apply] = e.Function(encoding.params, body, encoding.result)

    def visit_func_type(self, type_: t.FuncType) -> t.Type:
        return t.TypeCall(self.encoding(type_).header, [])

    def encoding(self, type_: t.Type) -> _Encoding:
        """The data type of a type of functions."""
        if not isinstance(type_, t.FuncType) or type_.type_params:
            raise RelayError(f"Defunctionalization: expected a type of functions without parameters, found {type_}")
        found = self._encodings.get(type_)
        if found is None:
            number = len(self._encodings)
            header, value = t.GlobalTypeVar(f"Function{number}"), e.Var("f")
            found = self._encodings[type_] = _Encoding(header, e.GlobalVar(f"apply{number}"), [value], type_.ret_type)
            found.params[:] = [e.Var("f", t.TypeCall(header, [])), *(e.Var("x", self.visit(arg)) for arg in type_.arg_types)]
            found.result = self.visit(type_.ret_type)
        return found

    def instance(self, var: e.GlobalVar, type_args: tuple[t.Type, ...]) -> e.GlobalVar:
        """A global function for types."""
        key, function = (var.name_hint, type_args), self._typed[var]
        if is_primitive(function):
            return var
        if key not in self._instances:
            self._instances[key] = e.GlobalVar(f"{var.name_hint}_first_order{len(self._instances)}")
            types = {id(param): arg for param, arg in zip(function.type_params, type_args, strict=True)}
            self._waiting.append((self._instances[key], function, types))
        return self._instances[key]

    def function(self, function: e.Function, types: _Types) -> e.Function:
        """A global function."""
        body = _Body(self, types, {})
        params = [body.var(p) for p in function.params]
        return e.Function(params, body.converted(function.body), None, (), function.attrs, function.span)  # type: ignore[arg-type] # variables


class _Body:
    """The body of a function for some types; captured variables are replaced."""

    def __init__(self, program: _Program, types: _Types, scope: dict[e.Id, e.Expr]) -> None:
        self._program, self._types, self._scope = program, types, scope
        self._polymorphic: dict[e.Id, e.Expr] = {}
        self._made: dict[e.Expr, e.Expr] = {}
        self._names: dict[e.Expr, e.Id] = {}

    def converted(self, body: e.Expr) -> e.Expr:
        """The body."""
        for node in post_order(body, self._parts):
            self._made[node] = self._changed(node)
        return self._value(body)

    def var(self, var: e.Var) -> e.Expr:
        """The replacement of a variable."""
        if var.vid not in self._scope:
            self._scope[var.vid] = e.Var(var.name_hint, self._program.visit(self._type(var)))
        return self._scope[var.vid]

    def _type(self, expr: e.Expr) -> t.Type:
        return substituted(expr.checked_type, self._types)

    def _parts(self, node: e.Expr) -> list[e.Expr]:
        if isinstance(node, e.Let) and isinstance(node.value, e.Function):
            self._names[node.value] = node.var.vid
            if node.value.type_params:
                self._polymorphic[node.var.vid] = node.value
        if isinstance(node, e.Call) and isinstance(node.op, e.Function) and not is_primitive(node.op):
            return [*node.args, node.op.body]
        return [] if isinstance(node, e.Function) else children(node)

    def _value(self, expr: e.Expr, expected: t.Type | None = None) -> e.Expr:
        """The replacement of an expression used as a value; `expected` is its function type, if it is a function."""
        known = self._polymorphic.get(expr.vid, expr) if isinstance(expr, e.Var) else expr
        if isinstance(known, (e.GlobalVar, e.Function)) and not is_primitive(known):
            return self._encoded(known, self._type(known) if expected is None else expected)
        return self._made[known]

    def _changed(self, node: e.Expr) -> e.Expr:
        if isinstance(node, e.Var):
            return node if node.vid in self._polymorphic else self.var(node)
        if isinstance(node, (e.Op, e.Constructor, e.GlobalVar, e.Function)) or not children(node):
            return node
        if isinstance(node, e.Call):
            return self._call(node)
        if isinstance(node, e.Let):
            body = self._value(node.body)
            return body if node.var.vid in self._polymorphic else e.Let(self.var(node.var), self._value(node.value), body)  # type: ignore[arg-type] # a variable
        if isinstance(node, e.Match):
            clauses = [e.Clause(e.rebuilt_pattern(c.lhs, self.var, _plain), self._value(c.rhs)) for c in node.clauses]
            return e.Match(self._value(node.data), clauses, node.complete)
        return rebuilt(node, iter([self._value(part) for part in children(node)]))

    def _call(self, call: e.Call) -> e.Expr:
        callee = self._polymorphic.get(call.op.vid, call.op) if isinstance(call.op, e.Var) else call.op
        if isinstance(callee, e.Op) or is_primitive(callee):
            return call.replace(args=tuple(map(self._value, call.args)), type_args=())
        type_args = tuple(substituted(arg, self._types) for arg in call.type_args)
        type_ = self._type(callee)
        assert isinstance(type_, t.FuncType)
        if type_.type_params:
            type_, _ = Unifier().instantiate(type_, type_args)
        args = [self._value(arg, expected) for arg, expected in zip(call.args, type_.arg_types, strict=True)]
        if isinstance(callee, e.Constructor):
            return e.Call(_plain(callee), args)
        if isinstance(callee, e.GlobalVar):
            return e.Call(self._program.instance(callee, type_args), args, call.attrs)
        if isinstance(call.op, e.Function):
            found = self._value(call.op.body)
            for param, arg in reversed(list(zip(call.op.params, args, strict=True))):
                found = e.Let(self.var(param), arg, found)  # type: ignore[arg-type] # a variable
            return found
        return e.Call(self._program.encoding(type_).apply, [self._value(call.op, type_), *args])

    def _encoded(self, function: e.Expr, type_: t.Type) -> e.Expr:
        """A function as data."""
        encoding = self._program.encoding(type_)
        generic = self._type(function)
        assert isinstance(generic, t.FuncType)
        unifier = Unifier()
        instance, made = unifier.instantiate(generic)
        unifier.unify(instance, type_)
        type_args = tuple(map(unifier.resolve, made))
        if isinstance(function, e.GlobalVar):
            name = function.name_hint
            if name not in encoding.constructors:
                call = e.Call(self._program.instance(function, type_args), encoding.params[1:])
                encoding.clauses.append(e.Clause(e.PatternConstructor(encoding.constructor(name, [])), call))
            return e.Call(encoding.constructors[name], [])
        assert isinstance(function, e.Function)
        own = self._names.get(function)
        captured = [var for var in free_vars(function) if var.vid is not own]
        inputs = [self._program.visit(self._type(var)) for var in captured]
        constructor = encoding.constructor(object(), inputs)
        fields = [e.Var(var.name_hint, input_) for var, input_ in zip(captured, inputs, strict=True)]
        scope: dict[e.Id, e.Expr] = {var.vid: inner for var, inner in zip(captured, fields, strict=True)}
        scope |= {param.vid: x for param, x in zip(function.params, encoding.params[1:], strict=True)}
        if own is not None:
            scope[own] = e.Call(constructor, fields)
        types = {**self._types, **{id(param): arg for param, arg in zip(function.type_params, type_args, strict=True)}}
        body = _Body(self._program, types, scope).converted(function.body)
        encoding.clauses.append(e.Clause(e.PatternConstructor(constructor, list(map(e.PatternVar, fields))), body))
        return e.Call(constructor, [self.var(var) for var in captured])


def _plain(constructor: e.Constructor) -> e.Constructor:
    found = f"constructor {constructor.name_hint} of {constructor.belong_to}"
    check(not any(map(_has_function, constructor.inputs)), "Defunctionalization", "data without functions", found)
    return constructor
