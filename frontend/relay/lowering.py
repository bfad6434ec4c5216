"""Programs of the Relay language as programs of the relay dialect.

Functions, values of data types and references are there only while a program is lowered: a function that is called is known then, and its
body takes the place of the call, as are the constructor that a match asks for and what a reference refers to. Global
functions on tensors are functions of the dialect; functions that call themselves last are loops.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from relayc.dialects.callgraph import components
from relayc.dialects.functions import unique_names
from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import NeedsControl, RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import RelayType, TensorType, TupleType, flat_sizes, flat_types, type_of
from relayc.frontend.converter import Tensor
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.functor import post_order
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.builder import Expr as Built
from relayc.frontend.relay.builder import Program
from relayc.frontend.relay.external import packed_name
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.inference.operators import to_dialect
from relayc.frontend.relay.loops import LoopForm, callee_of, is_self_call, loop_form, uses
from relayc.frontend.relay.op.composed import Composed, FunctionBuilder, build
from relayc.frontend.relay.op.lowered_calls import direct_calls
from relayc.frontend.relay.op.rules import apply
from relayc.frontend.relay.scope import Scope
from relayc.symbolic import Dim, symbol
from relayc.trampoline import Call, each, trampoline

_NESTED = 8
"""How many calls of a function may be built in one another: more are of functions that call themselves by others."""

Value = Any
"""A tensor of the program being built, a tuple of values, or what is known of another value: Closure, Global, Made, Cell, a constructor."""


@dataclass(frozen=True)
class Closure:
    """A function that is known during lowering, with its scope of definition.

    Attributes:
      name: its own name inside the function.
    """

    function: e.Function
    scope: Scope
    name: Any = None


@dataclass(frozen=True)
class Made:
    """A value of a data type whose constructor is known."""

    constructor: e.Constructor
    fields: tuple[Value, ...]


@dataclass
class Cell:
    """A known reference: its current value, and the block in which it may change.

    In inner blocks, such as branches, it is only read: otherwise its value after them would depend on the path.
    """

    value: Value
    block: object


@dataclass(frozen=True)
class Global:
    """A function of the dialect's program."""

    name: str


def lower(module: RelayModule) -> IRModule:
    """A module as a program of the relay dialect.

    Global functions on tensors and tuples of them become its functions; main is one. A dimension of which nothing is known is a symbol.

    Raises:
      TypeInferenceError: types do not fit.
      RelayError: an operator's rules are broken, or something has no form in the dialect yet: data types, references, functions that are
        known only when the program runs.
    """
    return _Lowering(infer_module(direct_calls(module))).run()


class _Emitter:
    """Builds operators of calls, on values."""

    def __init__(self, program: Program, symbols: set[str]) -> None:
        self._program, self._symbols = program, symbols

    def inside(self, body: Callable[..., Value], *args: Built) -> Value:
        """What a Python function builds of arguments, as the body of a function of the program."""
        with FunctionBuilder(self._program.contents, self._symbols):
            return body(*args)

    def compose(self, found: Composed, args: list[Value], attrs: dict[str, Any], exprs: Sequence[e.Expr]) -> Value:
        made = build(found, list(map(self._tensor, args)), attrs, exprs)
        return tuple(map(self._result, made)) if isinstance(made, tuple) else self._result(made)

    def _tensor(self, value: Value) -> Any:
        return tuple(map(self._tensor, value)) if isinstance(value, tuple) else Tensor(value.type, value=value.value)

    def _result(self, made: Tensor) -> Built:
        return Built(self._program, made.value)

    def emit(self, name: str, *operands: Built, **attributes: Any) -> Value:
        return self._program.apply(name, *operands, **attributes)

    def type_of(self, value: Value) -> RelayType:
        if isinstance(value, tuple):
            return TupleType(tuple(map(self.type_of, value)))
        assert isinstance(value, Built)  # by its type
        return type_of(value.value)

    def fields(self, value: Value) -> Sequence[Value]:
        return value if isinstance(value, tuple) else [value]


class _Lowering:
    """One module while it is lowered."""

    def __init__(self, module: RelayModule) -> None:
        self._module = module
        self._program = Program()
        self._symbols: set[str] = set()
        self._emitter = _Emitter(self._program, self._symbols)
        self._block = object()  # the one being built
        self._entered: list[e.Function] = []  # functions whose bodies are being built in the place of calls
        self._first_order = {v.name_hint: f for v, f in module.functions.items() if is_first_order(f)}
        packed = {name: packed_name(f) for name, f in self._first_order.items()}
        self._packed = {name: found for name, found in packed.items() if found is not None}
        """The packed functions of global functions that are for code generators of others."""

    # ---- functions

    def run(self) -> IRModule:
        """Lowers the functions, callees first."""
        order, recursive = _call_order({name: f for name, f in self._first_order.items() if name not in self._packed})
        if not order or ("main" in self._module and "main" not in order):
            raise NeedsControl("main: expected a function on tensors and tuples of them")
        types = {name: self._parameter_types(self._first_order[name]) for name in order}
        for name in recursive:  # before its definition, only the type of a callee is known
            self._program.declare(name, types[name], _nested(self._dialect_type(self._first_order[name].ret_type, name)))
        for name in order:
            function = self._first_order[name]
            body = functools.partial(self._body, function, name)
            partition = "Compiler" in function.attrs and "main" in order  # without a generator: only its calls are compiled
            self._program.function(functools.partial(self._emitter.inside, body), name=name, private=partition, **types[name])
        return self._program.module()

    def _body(self, function: e.Function, name: str, *args: Value) -> Value:
        scope = Scope()
        form = loop_form(function, name) if uses(function.body, name) else None
        if form is not None:
            return self._loop(Closure(function, scope, name), form, args)
        scope.values.update((p.vid, arg) for p, arg in zip(function.params, args, strict=True))
        return self._data(function.body, trampoline(self._value(function.body, scope)))

    def _parameter_types(self, function: e.Function) -> dict[str, Any]:
        """The types of parameters by names that are all different."""
        names = unique_names(param.name_hint or "arg" for param in function.params)
        return {name: self._dialect_type(param.type_annotation, name) for name, param in zip(names, function.params, strict=True)}

    def _dialect_type(self, type_: t.Type | None, name: str) -> RelayType:
        """A type with unknown dimensions replaced by new symbols, named after the value of the type."""
        stem = re.sub(r"\W", "_", name, flags=re.ASCII)

        def fresh() -> Dim:
            count = 0
            while f"{stem}_{count}" in self._symbols:
                count += 1
            self._symbols.add(f"{stem}_{count}")
            return symbol(f"{stem}_{count}")

        assert type_ is not None
        return to_dialect(type_, fresh)

    # ---- expressions

    def _failed(self, expr: e.Expr, message: str) -> RelayError:
        place = "" if expr.span is None else f" at {expr.span}"
        return RelayError(f"{type(expr).__name__}{place}: {message}")

    def _needs_control(self, expr: e.Expr, what: str) -> NeedsControl:
        return NeedsControl(f"{self._failed(expr, what)}")

    def _data(self, expr: e.Expr, value: Value) -> Value:
        """A value that is tensors, and no function. Raises RelayError."""
        if isinstance(value, tuple):
            return tuple(self._data(expr, part) for part in value)
        if isinstance(value, (Made, Cell)):
            raise self._needs_control(expr, "a value of a data type, or a reference")
        if isinstance(value, (Closure, Global, e.Constructor)):
            raise self._needs_control(expr, "a function as a result, which is known only when the program runs")
        return value

    def _value(self, expr: e.Expr, scope: Scope) -> Call[Value]:
        return scope.value(expr, self._made)

    def _made(self, expr: e.Expr, scope: Scope) -> Call[Value]:
        if isinstance(expr, e.Var):
            raise self._failed(expr, f"expected a variable that is bound, found %{expr.name_hint}")
        if isinstance(expr, e.Constant):
            return self._program.constant(expr.data.numpy())
        if isinstance(expr, e.GlobalVar):
            if expr.name_hint in self._first_order:
                return Global(expr.name_hint)
            return Closure(self._module[expr], Scope(), expr.name_hint)
        if isinstance(expr, e.Function):
            return Closure(expr, scope)
        if isinstance(expr, e.Constructor):
            return expr
        if isinstance(expr, e.Let):
            return (yield self._value((yield self._after_lets(expr, scope)), scope))
        if isinstance(expr, e.Call):
            return (yield self._call(expr, scope))
        if isinstance(expr, e.Tuple):
            return tuple((yield each(self._value(part, scope) for part in expr.fields)))
        if isinstance(expr, e.TupleGetItem):
            return (yield self._value(expr.tuple_value, scope))[expr.index]
        if isinstance(expr, e.If):
            cond = yield self._value(expr.cond, scope)
            return self._branch(expr, cond, expr.true_branch, expr.false_branch, scope)
        if isinstance(expr, e.Match):
            return (yield self._match(expr, scope))
        if isinstance(expr, e.RefCreate):
            return Cell((yield self._value(expr.value, scope)), self._block)
        assert isinstance(expr, (e.RefRead, e.RefWrite))
        cell = yield self._value(expr.ref, scope)
        if not isinstance(cell, Cell) or (isinstance(expr, e.RefWrite) and cell.block is not self._block):
            raise self._needs_control(expr, "a reference that is not known, or is written in a branch")
        if isinstance(expr, e.RefRead):
            return cell.value
        cell.value = yield self._value(expr.value, scope)
        return ()

    def _match(self, match: e.Match, scope: Scope) -> Call[Value]:
        """The result of the clause that matches a value, which is known."""
        value = yield self._value(match.data, scope)
        for clause in match.clauses:
            inner = Scope(scope)
            if self._takes(match, clause.lhs, value, inner):
                return (yield self._value(clause.rhs, inner))
        raise self._needs_control(match, "a value that no clause takes")

    def _takes(self, match: e.Match, pattern: e.Pattern, value: Value, scope: Scope) -> bool:
        """Whether a pattern takes a value; its variables are bound."""
        if isinstance(pattern, e.PatternVar):
            scope.values[pattern.var.vid] = value
        if not isinstance(pattern, (e.PatternConstructor, e.PatternTuple)):
            return True
        if isinstance(pattern, e.PatternConstructor):
            assert isinstance(value, Made)  # what gives others needs control
            if value.constructor is not pattern.constructor:
                return False
        parts = value.fields if isinstance(value, Made) else value
        return all(self._takes(match, p, part, scope) for p, part in zip(pattern.patterns, parts, strict=True))

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """A block in the one being built."""
        block, self._block = self._block, object()
        yield
        self._block = block

    def _after_lets(self, expr: e.Expr, scope: Scope) -> Call[e.Expr]:
        """What is in lets, whose variables are bound."""
        while isinstance(expr, e.Let):
            scope.values[expr.var.vid] = _named((yield self._value(expr.value, scope)), expr.var)
            expr = expr.body
        return expr

    def _branch(self, expr: e.If, cond: Value, then: e.Expr, otherwise: e.Expr, scope: Scope) -> Value:
        def of(branch: e.Expr) -> Value:
            with self._inside():
                return self._data(branch, trampoline(self._value(branch, Scope(scope))))

        return self._checked(expr, lambda: self._program.if_else(cond, lambda: of(then), lambda: of(otherwise)))

    def _checked(self, expr: e.Expr, build_: Any) -> Any:
        """What a function builds; its errors get the place of the expression."""
        try:
            return build_()
        except NeedsControl:
            raise
        except RelayError as error:
            if expr.span is None or str(expr.span) in str(error):
                raise
            raise RelayError(f"{expr.span}: {error}") from None

    # ---- calls

    def _call(self, call: e.Call, scope: Scope) -> Call[Value]:
        args = yield each(self._value(arg, scope) for arg in call.args)
        if isinstance(call.op, e.Op):
            name, attrs = call.op.name, {} if call.attrs is None else call.attrs
            with ir.Location.name(name if call.span is None else str(call.span)):
                return self._checked(call, lambda: apply(self._emitter, name, args, attrs, call.args))
        callee = yield self._value(call.op, scope)
        packed = None
        if isinstance(callee, (Global, Closure)):
            packed = self._packed.get(callee.name) if isinstance(callee, Global) else packed_name(callee.function)
        if packed is not None:
            return self._call_packed(call, packed, tuple(self._data(call, a) for a in args))
        if isinstance(callee, Global):
            made = self._checked(call, lambda: self._program.call(callee.name, *(self._data(call, a) for a in args)))
            return _structured(call, made)
        if isinstance(callee, e.Constructor):
            return Made(callee, tuple(args))
        assert isinstance(callee, Closure)  # by its type
        return (yield self._apply(call, callee, tuple(args)))

    def _call_packed(self, call: e.Call, name: str, args: tuple[Value, ...]) -> Value:
        """A call of a packed function that reads tensors, those of tuples one by one."""
        type_ = self._dialect_type(call.checked_type, "result")
        made = self._checked(call, lambda: self._program.call_packed(name, args, flat_types(type_)))
        return _structured(call, made)

    def _apply(self, call: e.Call, callee: Closure, args: tuple[Value, ...]) -> Call[Value]:
        """The body of a function in the place of a call."""
        function = callee.function
        if callee.name is not None and uses(function.body, callee.name):
            form = loop_form(function, callee.name)
            if form is None:
                name = getattr(callee.name, "name_hint", callee.name)
                raise self._needs_control(call, f"{name} calls itself before its end, and is no global function on tensors")
            return self._loop(callee, form, tuple(self._data(call, a) for a in args))
        if self._entered.count(function) >= _NESTED:
            raise self._needs_control(call, "a function that calls itself by others")
        self._entered.append(function)
        inner = Scope(callee.scope, {p.vid: arg for p, arg in zip(function.params, args, strict=True)})
        found = yield self._value(function.body, inner)
        self._entered.pop()
        return found

    def _loop(self, closure: Closure, form: LoopForm, args: tuple[Value, ...]) -> Value:
        """A loop whose rounds are the calls of a function by itself."""
        params = closure.function.params

        def entered(values: Sequence[Value]) -> Scope:
            scope = Scope(closure.scope, {p.vid: value for p, value in zip(params, values, strict=True)})
            for let in form.lets:
                scope.values[let.var.vid] = _named(trampoline(self._value(let.value, scope)), let.var)
            return scope

        def condition(*values: Value) -> Value:
            with self._inside():
                found = trampoline(self._value(form.branch.cond, entered(values)))
            return found if form.goes_on else self._emitter.emit("logical_not", found)

        def step(*values: Value) -> Value:
            with self._inside():
                return trampoline(self._next(form.step, closure.name, entered(values)))

        carried = None  # the types of the arguments
        if all(is_data(p.type_annotation) for p in params):
            types = tuple(self._dialect_type(p.type_annotation, p.name_hint) for p in params)
            if any(isinstance(d, Dim) for type_ in types for d in flat_sizes(type_)):
                carried = _nested(TupleType(types))
        last = self._program.while_loop(condition, step, args, carried)
        return self._data(form.result, trampoline(self._value(form.result, entered(last))))

    def _next(self, expr: e.Expr, callee: Any, scope: Scope) -> Call[Value]:
        """The arguments of the next round."""
        expr = yield self._after_lets(expr, scope)
        if isinstance(expr, e.If):
            branch, cond = expr, (yield self._value(expr.cond, scope))

            def of(part: e.Expr) -> Value:
                with self._inside():
                    return trampoline(self._next(part, callee, Scope(scope)))

            return self._program.if_else(cond, lambda: of(branch.true_branch), lambda: of(branch.false_branch))
        assert isinstance(expr, e.Call) and is_self_call(expr, callee)
        args = yield each(self._value(arg, scope) for arg in expr.args)
        return self._data(expr, tuple(args))


def _named(value: Value, var: e.Var) -> Value:
    """A value that a variable is bound to: a function without a name is known by it."""
    return Closure(value.function, value.scope, var.vid) if isinstance(value, Closure) and value.name is None else value


def _nested(type_: RelayType) -> Any:
    """A type as a Python tuple of types if it is a tuple type."""
    return type_ if isinstance(type_, TensorType) else tuple(map(_nested, type_.fields))


def _structured(call: e.Call, made: Value) -> Value:
    """The tensors that a call gives as the tuples of its type."""
    return t.structured(call.checked_type, iter(made if isinstance(made, tuple) else (made,)), tuple)


def is_data(type_: t.Type | None) -> bool:
    return all(isinstance(leaf, t.TensorType) for leaf in t.leaves(type_))


def is_first_order(function: e.Function) -> bool:
    """Whether a function is one of tensors."""
    types = [*(p.type_annotation for p in function.params), function.ret_type]
    return not function.type_params and all(map(is_data, types))


def _call_order(functions: Mapping[str, e.Function]) -> tuple[list[str], set[str]]:
    """The names of functions, callees first; and the names of those that are called before, as recursive functions are."""
    named = {name: sorted(_named_in(function, name, functions), reverse=True) for name, function in functions.items()}
    order = [name for component in components(named) for name in reversed(component)]
    place = {name: i for i, name in enumerate(order)}
    return order, {callee for name in order for callee in named[name] if place[callee] >= place[name]}


def _named_in(function: e.Function, name: str, functions: Mapping[str, e.Function]) -> set[str]:
    found = {str(callee_of(node)) for node in post_order(function.body) if isinstance(node, e.GlobalVar)}
    is_loop = name in found and loop_form(function, name) is not None
    return (found & functions.keys()) - ({name} if is_loop else set())
