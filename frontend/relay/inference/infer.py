"""Type inference: the type of every expression of a program, with those that it leaves out.

Each expression gets a type, which may have parts that are to be found; what must be equal is unified. A call of an operator waits until the
types of its arguments are known. Functions with type parameters are instantiated where they are called.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.analysis import bound_vars
from relayc.frontend.relay.ast.functor import children, post_order, rebuilt, type_parts
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.coverage import unmatched_cases
from relayc.frontend.relay.inference.errors import TypeInferenceError
from relayc.frontend.relay.inference.operands import operand_types
from relayc.frontend.relay.inference.operators import call_type
from relayc.frontend.relay.inference.unify import Unifier
from relayc.frontend.relay.op.composed.annotation import IDENTITIES
from relayc.trampoline import Call, each, trampoline

_BOOL = t.TensorType((), "bool")
_Goal = Callable[[], bool]
"""Finds a type if enough is known: whether it has."""


class Inference:
    """The types of one module's expressions.

    Args:
      generalises: whether functions that lets bind are polymorphic in the types that nothing says.
    """

    def __init__(self, module: RelayModule, generalises: bool) -> None:
        self._module, self._generalises = module, generalises
        self._type_params: dict[e.Expr, tuple[t.TypeVar, ...]] = {}
        self._unifier = Unifier()
        self._types: dict[e.Expr, t.Type] = {}
        self._vars: dict[e.Id, t.Type] = {}
        self._globals: dict[str, t.Type] = {}
        self._type_args: dict[e.Call, tuple[t.Type, ...]] = {}
        self._goals: list[tuple[e.Expr, _Goal]] = []

    # ---- errors

    def _failed(self, expr: e.Expr, message: str) -> TypeInferenceError:
        place = "" if expr.span is None else f" at {expr.span}"
        return TypeInferenceError(f"{self._headline(expr)}{place}: {message}")

    def _headline(self, expr: e.Expr) -> str:
        """Describes an expression briefly: its operator or kind, with the types of its operands."""
        if isinstance(expr, e.Call):
            callee = getattr(expr.op, "name", None) or getattr(expr.op, "name_hint", type(expr.op).__name__.lower())
            types = [str(self._unifier.resolve(self._types[arg])) if arg in self._types else "_" for arg in expr.args]
            return f"{callee}({', '.join(types)})"
        name = getattr(expr, "name_hint", None)
        return f"%{name}" if name is not None else type(expr).__name__

    def _unify(self, expr: e.Expr, a: t.Type, b: t.Type) -> t.Type:
        try:
            return self._unifier.unify(a, b)
        except TypeInferenceError as error:
            raise self._failed(expr, str(error)) from None

    # ---- goals

    def _await(self, expr: e.Expr, goal: _Goal) -> None:
        """Reaches a goal now, or when more is known."""
        if not goal():
            self._goals.append((expr, goal))

    def solve(self) -> None:
        """Reaches all goals. Raises TypeInferenceError if one is unreachable."""
        while self._goals:
            left = [(expr, goal) for expr, goal in self._goals if not goal()]
            if len(left) == len(self._goals):
                raise self._failed(left[0][0], "the types of its arguments are not known: expected annotations")
            self._goals = left

    # ---- expressions

    def run(self, expr: e.Expr) -> t.Type:
        """The type of an expression, with parts that are to be found until `solve`."""
        return trampoline(self._type(expr))

    def _type(self, expr: e.Expr) -> Call[t.Type]:
        found = self._types.get(expr)
        if found is None:
            if isinstance(expr, e.Let):
                found = yield self._lets(expr)
            else:
                found = yield self._found(expr)
            self._types[expr] = found
        return found

    def _found(self, expr: e.Expr) -> Call[t.Type]:
        if isinstance(expr, e.Var):
            return self._vars.setdefault(expr.vid, expr.type_annotation or t.IncompleteType())
        if isinstance(expr, e.Constant):
            return expr.type
        if isinstance(expr, e.GlobalVar):
            return (yield self._global(expr))
        if isinstance(expr, e.Constructor):
            assert isinstance(expr.belong_to, t.GlobalTypeVar)
            return e.constructor_type(expr, self._module.type_definitions[self._module.get_global_type_var(expr.belong_to.name_hint)])
        if isinstance(expr, e.Function):
            return (yield self._function(expr))
        if isinstance(expr, e.Op):
            raise self._failed(expr, "an operator that is not called is not supported yet: write a function around it")
        parts: list[t.Type] = []
        for part in children(expr):
            parts.append(_BOOL if isinstance(part, e.Op) else (yield self._type(part)))  # that of an operator is not looked at
        if isinstance(expr, e.Call):
            return self._operator(expr, parts[1:]) if isinstance(expr.op, e.Op) else self._call(expr, parts[0], parts[1:])
        if isinstance(expr, e.Tuple):
            return t.TupleType(parts)
        if isinstance(expr, e.TupleGetItem):
            return self._field(expr, parts[0])
        if isinstance(expr, e.If):
            self._unify(expr, _BOOL, parts[0])
            return self._unify(expr, parts[1], parts[2])
        if isinstance(expr, e.Match):
            return self._match(expr, parts)
        if isinstance(expr, e.RefCreate):
            return t.RefType(parts[0])
        assert isinstance(expr, (e.RefRead, e.RefWrite))
        value: t.Type = t.IncompleteType()
        self._unify(expr, t.RefType(value), parts[0])
        if isinstance(expr, e.RefRead):
            return value
        self._unify(expr, value, parts[1])
        return t.TupleType([])

    def _lets(self, expr: e.Expr) -> Call[t.Type]:
        """The type of lets in lets."""
        lets = []
        while isinstance(expr, e.Let) and expr not in self._types:
            lets.append(expr)
            declared = yield self._type(expr.var)
            value = yield self._type(expr.value)
            is_open = isinstance(self._unifier.find(declared), t.IncompleteType)
            found = self._unify(expr, declared, value)
            if is_open and self._generalises and isinstance(expr.value, e.Function) and isinstance(value, t.FuncType):
                value = self._generalised(expr.var, expr.value, value)
            if is_open and isinstance(value, t.FuncType):
                found = value
            self._types[expr.var] = self._vars[expr.var.vid] = found if expr.var.type_annotation is None else declared
            expr = expr.body
        found = yield self._type(expr)
        for let in lets:
            self._types[let] = found
        return found

    def _generalised(self, var: e.Var, function: e.Function, type_: t.FuncType) -> t.FuncType:
        """The type of a function as a polymorphic one, in what is neither known nor the type of a variable around it."""
        inside = {var.vid, *(inner.vid for inner in bound_vars(function))}
        around = [found for vid, found in self._vars.items() if vid not in inside]
        waiting = [self._types[node] for goal, _ in self._goals for node in (goal, *children(goal)) if node in self._types]
        fixed = {id(part) for found in (*around, *waiting) for part in self._open_parts(found)}
        free = [part for part in self._open_parts(type_) if id(part) not in fixed]
        made = tuple(t.TypeVar(f"t{i}") for i in range(len(free)))
        for part, variable in zip(free, made, strict=True):
            self._unifier.unify(part, variable)
        self._type_params[function] = made
        arg_types = [self._unifier.resolve(arg) for arg in type_.arg_types]
        return t.FuncType(arg_types, self._unifier.resolve(type_.ret_type), (*type_.type_params, *made))

    def _open_parts(self, type_: t.Type) -> list[t.IncompleteType]:
        """The parts of a type of which nothing is known, each once."""
        found = self._unifier.find(type_)
        if isinstance(found, t.IncompleteType):
            return [found]
        parts = [inner for part in type_parts(found) for inner in self._open_parts(part)]
        return list({id(part): part for part in parts}.values())

    def _declared(self, function: e.Function) -> t.FuncType:
        """The type of a function as far as it is annotated."""
        params = [self._vars.setdefault(p.vid, p.type_annotation or t.IncompleteType()) for p in function.params]
        self._types.update(zip(function.params, params, strict=True))
        return t.FuncType(params, function.ret_type or t.IncompleteType(), function.type_params)

    def _function(self, function: e.Function, declared: t.FuncType | None = None) -> Call[t.Type]:
        type_ = declared or self._declared(function)
        body = yield self._type(function.body)
        found = self._unify(function, type_.ret_type, body)
        return type_ if function.ret_type is not None else t.FuncType(type_.arg_types, found, type_.type_params)

    def _global(self, var: e.GlobalVar) -> Call[t.Type]:
        """The type of a global function, which is inferred first unless that is under way."""
        found = self._globals.get(var.name_hint)
        if found is None:
            try:
                function = self._module[var]
            except KeyError as error:
                raise self._failed(var, str(error.args[0])) from None
            declared = self._globals[var.name_hint] = self._declared(function)
            found = yield self._function(function, declared)
            self._types[function] = self._globals[var.name_hint] = found
        return found

    # ---- calls

    def _call(self, call: e.Call, callee: t.Type, args: list[t.Type]) -> t.Type:
        function = self._unifier.find(callee)
        if isinstance(function, t.IncompleteType):
            function = self._unify(call, function, t.FuncType(args, t.IncompleteType()))
        if not isinstance(function, t.FuncType):
            raise self._failed(call, f"expected a function, found {self._unifier.resolve(function)}")
        if function.type_params:
            function, self._type_args[call] = self._unifier.instantiate(function, call.type_args)
        if len(function.arg_types) != len(args):
            raise self._failed(call, f"expected {len(function.arg_types)} argument(s), found {len(args)}")
        for param, arg in zip(function.arg_types, args, strict=True):
            self._unify(call, param, arg)
        return function.ret_type

    def _operator(self, call: e.Call, args: list[t.Type]) -> t.Type:
        result = t.IncompleteType()
        self._type_args[call] = tuple(args)
        if isinstance(call.op, e.Op) and call.op.name in IDENTITIES and len(args) == 1:
            return args[0]  # more may become known of it

        def goal() -> bool:
            if not all(map(self._unifier.is_complete, args)) and not self._complete(call, args):
                return False
            resolved = [self._unifier.resolve(arg) for arg in args]
            try:
                self._unify(call, result, call_type(call, resolved))
            except TypeInferenceError:
                raise
            except (RelayError, TypeError, ValueError) as error:
                raise self._failed(call, str(error)) from None
            return True

        self._await(call, goal)
        return self._unifier.find(result)

    def _complete(self, call: e.Call, args: list[t.Type]) -> bool:
        """Finds types of arguments by the operator; whether it determines them."""
        found = [self._unifier.find(arg) for arg in args]
        known = [type_ if isinstance(type_, t.TensorType) else None for type_ in found]
        assert isinstance(call.op, e.Op)
        types = operand_types(call.op.name, known, call.attrs or {})
        if types is None:
            return False
        for arg, type_ in zip(args[1:], types, strict=True):
            if isinstance(self._unifier.find(arg), t.IncompleteType):
                self._unify(call, arg, type_)
        return True

    def _field(self, expr: e.TupleGetItem, tuple_type: t.Type) -> t.Type:
        result = t.IncompleteType()

        def goal() -> bool:
            found = self._unifier.find(tuple_type)
            if isinstance(found, t.IncompleteType):
                return False
            if not isinstance(found, t.TupleType) or not 0 <= expr.index < len(found.fields):
                raise self._failed(expr, f"expected a tuple with a field {expr.index}, found {self._unifier.resolve(found)}")
            self._unify(expr, result, found.fields[expr.index])
            return True

        self._await(expr, goal)
        return self._unifier.find(result)

    def _match(self, expr: e.Match, parts: list[t.Type]) -> t.Type:
        result: t.Type = t.IncompleteType()
        for clause, found in zip(expr.clauses, parts[1:], strict=True):
            self._pattern(expr, clause.lhs, parts[0])
            result = self._unify(expr, result, found)
        missing = unmatched_cases(expr, self._module) if expr.complete else []
        if missing:
            raise self._failed(expr, f"expected a clause for every value, found none for {', '.join(map(str, missing))}")
        return result

    def _pattern(self, expr: e.Match, pattern: e.Pattern, type_: t.Type) -> None:
        if isinstance(pattern, e.PatternVar):
            self._unify(expr, trampoline(self._type(pattern.var)), type_)
        elif isinstance(pattern, e.PatternTuple):
            fields = [t.IncompleteType() for _ in pattern.patterns]
            self._unify(expr, t.TupleType(fields), type_)
            for inner, field in zip(pattern.patterns, fields, strict=True):
                self._pattern(expr, inner, field)
        elif isinstance(pattern, e.PatternConstructor):
            function = trampoline(self._type(pattern.constructor))
            assert isinstance(function, t.FuncType)
            if function.type_params:
                function, _ = self._unifier.instantiate(function)
            self._unify(expr, function.ret_type, type_)
            if len(function.arg_types) != len(pattern.patterns):
                expected = len(function.arg_types)
                raise self._failed(expr, f"{pattern.constructor.name_hint}: expected {expected} pattern(s), found {len(pattern.patterns)}")
            for inner, input_type in zip(pattern.patterns, function.arg_types, strict=True):
                self._pattern(expr, inner, input_type)

    # ---- results

    def _resolved(self, expr: e.Expr) -> t.Type:
        found = self._unifier.resolve(self._types[expr] if not isinstance(expr, e.Var) else self._vars[expr.vid])
        if not self._unifier.is_complete(found, within_data=True):
            raise self._failed(expr, f"expected a type, found {found}, of which a part is not known: expected annotations")
        return found

    def typed(self, expr: e.Expr) -> e.Expr:
        """An expression with its types: annotations of variables, results of functions and type arguments of calls are filled in.

        The types are noted in the nodes of the expression itself, too. Raises TypeInferenceError if one is not known.
        """
        return trampoline(self._typed(expr, {}))

    def _typed(self, expr: e.Expr, made: dict[Any, e.Expr]) -> Call[e.Expr]:
        key = expr.vid if isinstance(expr, e.Var) else expr
        if key in made:
            return made[key]
        if isinstance(expr, e.Op):
            return expr
        lets = []
        while isinstance(expr, e.Let):  # lets in lets, without calls that nest
            lets.append((expr, (yield self._typed(expr.var, made)), (yield self._typed(expr.value, made))))
            expr = expr.body
        if lets:
            found = yield self._typed(expr, made)
            for let, var, value in reversed(lets):
                let.checked_type_ = found.checked_type_
                found = made[let] = let.replace(var=var, value=value, body=found)
                found.checked_type_ = let.checked_type_
            return found
        parts = yield each(self._typed(part, made) for part in children(expr))
        found = rebuilt(expr, iter(parts))
        type_ = self._resolved(expr) if isinstance(expr, e.Var) or expr in self._types else None
        if isinstance(expr, e.Var) and isinstance(expr.type_annotation, (t.IncompleteType, type(None))):
            found = expr.replace(type_annotation=type_)
        elif isinstance(expr, e.Function) and expr.ret_type is None:
            assert isinstance(type_, t.FuncType)
            found = found.replace(ret_type=type_.ret_type)
        if isinstance(expr, e.Function) and self._type_params.get(expr):
            found = found.replace(type_params=(*expr.type_params, *self._type_params[expr]))
            assert isinstance(type_, t.FuncType)
            type_ = t.FuncType(type_.arg_types, type_.ret_type, found.type_params)  # type: ignore[attr-defined] # a function
        elif isinstance(expr, e.Call) and expr in self._type_args:
            found = found.replace(type_args=tuple(map(self._unifier.resolve, self._type_args[expr])))
        elif isinstance(expr, e.Match):

            def typed_var(var: e.Var) -> e.Expr:
                return trampoline(self._typed(var, made))

            clauses = [e.Clause(e.rebuilt_pattern(c.lhs, typed_var), c.rhs) for c in found.clauses]  # type: ignore[attr-defined] # a match
            found = found.replace(clauses=tuple(clauses))
        expr.checked_type_ = found.checked_type_ = type_
        made[key] = found
        return found


def infer_expr(expr: e.Expr, module: RelayModule | None = None) -> e.Expr:
    """An expression with its types, in which free variables may have types that are to be found. Raises TypeInferenceError."""
    return _with_types(module or RelayModule(), [expr], [expr])[0]


def _with_types(module: RelayModule, roots: Sequence[e.Expr], exprs: Sequence[e.Expr]) -> list[e.Expr]:
    """Expressions with their types, once those of `roots` are found.

    Functions that lets bind are polymorphic where the expressions have no types otherwise.
    """

    def typed(generalises: bool) -> list[e.Expr]:
        inference = Inference(module, generalises)
        for root in roots:
            inference.run(root)
        inference.solve()
        return [inference.typed(expr) for expr in exprs]

    try:
        return typed(False)
    except TypeInferenceError:
        nodes = (node for expr in exprs for node in post_order(expr))
        if any(isinstance(node, e.Let) and isinstance(node.value, e.Function) for node in nodes):
            with contextlib.suppress(TypeInferenceError):
                return typed(True)
        raise


def infer_module(module: RelayModule) -> RelayModule:
    """A module with the type of every expression. Raises TypeInferenceError if types do not fit, or one is not known."""
    functions = dict(zip(module.functions, _with_types(module, list(module.functions), list(module.functions.values())), strict=True))
    for var, typed in functions.items():
        var.checked_type_ = typed.checked_type_
    return RelayModule(functions, module.type_definitions, module.attrs)  # type: ignore[arg-type] # they are functions
