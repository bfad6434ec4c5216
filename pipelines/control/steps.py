"""Programs of the Relay language as steps of a machine (runtime.control) and kernels.

The largest parts of a function that are operators on tensors, and calls of global functions on tensors alone, are kernels: each is compiled
at its first run, once for all programs that have it. The rest is control flow: steps.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.ast import bind, free_vars, structural_equal, structural_hash
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.functor import children, post_order
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.loops import loop_form, uses
from relayc.frontend.relay.lowering import is_first_order
from relayc.frontend.relay.passes.unused import named_functions, reaches, remove_unused_functions
from relayc.frontend.relay.scope import Scope
from relayc.runtime import control as c
from relayc.trampoline import Call, each, trampoline

_PLAIN = (e.Call, e.Constant, e.Var, e.GlobalVar, e.Op, e.Tuple, e.TupleGetItem, e.If, e.Let)
"""Expressions allowed in functions that are compiled as a whole."""


class KernelKey:
    """A kernel as a dictionary key: equal for equal functions."""

    def __init__(self, module: RelayModule) -> None:
        self.module, self._hash = module, structural_hash(module)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelKey) and structural_equal(self.module, other.module)


class Kernel:
    """A computation on tensors: main of a module.

    Args:
      compile_: compiles it to a function on Python values, at its first call.
    """

    def __init__(self, module: RelayModule, compile_: Callable[[KernelKey], Callable[..., Any]] | None = None) -> None:
        self.module, self._compile = module, compile_

    @functools.cached_property
    def key(self) -> KernelKey:
        """The computation as a key."""
        return KernelKey(self.module)

    @functools.cached_property
    def typed(self) -> e.Function:
        """The computation, with types."""
        found: e.Function = infer_module(self.module)["main"]
        return found

    @functools.cached_property
    def _function(self) -> Callable[..., Any]:
        assert self._compile is not None
        return self._compile(self.key)

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)


class Label:
    """A position among steps that is not known yet."""


class ControlProgram:
    """The functions of a module as functions of a machine.

    Args:
      module: with types.
      roots: names of the public functions, the first ones in `functions`.
      compile_kernel: as in Kernel.
    """

    def __init__(
        self,
        module: RelayModule,
        roots: Sequence[str] = (),
        compile_kernel: Callable[[KernelKey], Callable[..., Any]] | None = None,
    ) -> None:
        self.module, self.compile_kernel = module, compile_kernel
        self.roots: dict[str, e.Function] = {name: module[name] for name in roots}
        self.functions: list[c.Function] = []
        self._numbers: dict[Any, int] = {}
        self._waiting: list[tuple[int, e.Function, Any, Sequence[e.Var]]] = []
        self._plain: dict[str, RelayModule | None] = {}
        for name, function in self.roots.items():
            self.number_of(function, name, name)
        while self._waiting:
            number, function, own, captures = self._waiting.pop()
            self.functions[number] = _Body(self, function, own, captures).function(self.functions[number].name)

    def number_of(self, function: e.Function, name: str, own: Any = None, captures: Sequence[e.Var] = ()) -> int:
        """The number of a function.

        Args:
          name: for messages.
          own: the identity of the variable, or the global name, by which it calls itself.
          captures: free variables that it uses.
        """
        if function not in self._numbers:
            number = self._numbers[function] = len(self.functions)
            self.functions.append(c.Function(name, 0, 0, 0, ()))
            self._waiting.append((number, function, own, captures))
        return self._numbers[function]

    def constructor(self, constructor: e.Constructor) -> int:
        """The number of a constructor as a function."""
        if constructor not in self._numbers:
            count = len(constructor.inputs)
            steps = (c.Make(count + 1, constructor, tuple(range(count))), c.Give(count + 1))
            self._numbers[constructor] = len(self.functions)
            self.functions.append(c.Function(constructor.name_hint, count, count, count + 2, steps))
        return self._numbers[constructor]

    def compiles(self, name: str) -> RelayModule | None:
        """A module of the functions that a global function needs, including itself, if all are on tensors only; otherwise None."""
        if name not in self._plain:
            needed = remove_unused_functions(self.module, [name])
            is_plain = all(is_first_order(f) and all(map(_is_plain, post_order(f.body))) for f in needed.functions.values())
            is_plain = is_plain and all(_is_bounded(needed, var.name_hint) for var in needed.functions)
            self._plain[name] = needed if is_plain else None
        return self._plain[name]


def _is_bounded(module: RelayModule, name: str) -> bool:
    """Whether a function is not recursive, except for tail calls: compiled functions nest less deep than control."""
    function = module[name]
    is_cyclic = any(reaches(module, other, name) for other in named_functions(function) if other != name)
    return not is_cyclic and (uses(function.body, name) == 0 or loop_form(function, name) is not None)


def _is_plain(node: e.Expr) -> bool:
    """Whether an expression is one of a function on tensors, if its parts are: global functions are only called."""
    return isinstance(node, _PLAIN) and not any(isinstance(p, e.GlobalVar) for p in children(node)[isinstance(node, e.Call) :])


class _Body:
    """One function during translation to steps."""

    def __init__(self, program: ControlProgram, function: e.Function, own: Any, captures: Sequence[e.Var]) -> None:
        self._program, self._function, self._own = program, function, own
        self._steps: list[Any] = []  # with labels as targets
        self._places: dict[Label, int] = {}
        self._scope = Scope()
        self._registers = 0
        for var in (*function.params, *captures):
            self._scope.values[var.vid] = self._new()
        self._itself = self._new()
        self._uses: dict[e.Expr, int] = {}
        for node in post_order(function.body):
            for part in children(node):
                self._uses[part] = self._uses.get(part, 0) + 1

    def function(self, name: str) -> c.Function:
        """The function."""
        trampoline(self._give(self._function.body, self._scope))
        return c.Function(name, len(self._function.params), self._itself, self._registers, tuple(self._steps_at_places()))

    def _steps_at_places(self) -> Iterator[c.Step]:
        for step in self._steps:
            target = getattr(step, "target", None)
            yield step if target is None else dataclasses.replace(step, target=self._places[target])

    def _new(self) -> int:
        self._registers += 1
        return self._registers - 1

    def _emit(self, step: type, *operands: Any) -> int:
        """Adds a step with a result; returns its register."""
        to = self._new()
        self._steps.append(step(to, *operands))
        return to

    def _here(self, label: Label) -> None:
        self._places[label] = len(self._steps)

    # ---- expressions

    def _give(self, expr: e.Expr, scope: Scope) -> Call[None]:
        """The end of a function: returns an expression."""
        while isinstance(expr, e.Let):
            yield self._let(expr, scope)
            expr = expr.body
        if isinstance(expr, (e.If, e.Match)) and scope.find(expr) is None:
            yield self._branches(expr, scope, None)
        elif isinstance(expr, e.Call) and self._is_control(expr) and scope.find(expr) is None:
            yield self._call(expr, scope, is_last=True)
        else:
            self._steps.append(c.Give((yield self._value(expr, scope))))

    def _value(self, expr: e.Expr, scope: Scope) -> Call[int]:
        """The register of an expression's value."""
        return scope.value(expr, self._made)

    def _made(self, expr: e.Expr, scope: Scope) -> Call[int]:
        if isinstance(expr, e.Var):
            if expr.vid == self._own:
                return self._itself
            raise RelayError(f"expected a variable that is bound, found %{expr.name_hint}")
        if isinstance(expr, e.Constant):
            return self._emit(c.Constant, expr.data)
        if isinstance(expr, e.GlobalVar):
            return self._emit(c.Bind, self._program.number_of(self._program.module[expr], expr.name_hint, expr.name_hint), ())
        if isinstance(expr, e.Constructor):
            return self._emit(c.Bind, self._program.constructor(expr), ())
        if isinstance(expr, e.Function):
            return self._closure(expr, scope, "fn", None)
        if isinstance(expr, e.Let):
            while isinstance(expr, e.Let):
                yield self._let(expr, scope)
                expr = expr.body
            return (yield self._value(expr, scope))
        if isinstance(expr, (e.If, e.Match)):
            to = self._new()
            yield self._branches(expr, scope, to)
            return to
        if isinstance(expr, e.Call):
            if not self._is_control(expr):
                return (yield self._compute(expr, scope))
            found = yield self._call(expr, scope, is_last=False)
            assert found is not None
            return found
        parts = yield each(self._value(part, scope) for part in children(expr))
        if isinstance(expr, e.Tuple):
            return self._emit(c.Make, None, tuple(parts))
        if isinstance(expr, e.TupleGetItem):
            return self._emit(c.Field, parts[0], expr.index)
        steps: dict[type, type] = {e.RefCreate: c.Refer, e.RefRead: c.Read, e.RefWrite: c.Write}
        return self._emit(steps[type(expr)], *parts)

    def _let(self, let: e.Let, scope: Scope) -> Call[None]:
        if isinstance(let.value, e.Function):
            register = self._closure(let.value, scope, let.var.name_hint, let.var.vid)
        else:
            register = yield self._value(let.value, scope)
        scope.values[let.var.vid] = register

    def _closure(self, function: e.Function, scope: Scope, name: str, own: Any) -> int:
        captures = [var for var in free_vars(function) if var.vid != own]
        number = self._program.number_of(function, name, own, captures)
        return self._emit(c.Bind, number, tuple(trampoline(self._value(var, scope)) for var in captures))

    # ---- branches

    def _branches(self, expr: e.Expr, scope: Scope, to: int | None) -> Call[None]:
        """The branches of an expression, with the results in a register; without one, each branch returns."""
        end = Label()
        if isinstance(expr, e.If):
            cond = yield self._value(expr.cond, scope)
            otherwise = Label()
            self._steps.append(c.Unless(cond, otherwise))  # type: ignore[arg-type] # a label until the end
            yield self._branch(expr.true_branch, Scope(scope), to, end)
            self._here(otherwise)
            yield self._branch(expr.false_branch, Scope(scope), to, end)
        else:
            assert isinstance(expr, e.Match)
            value = yield self._value(expr.data, scope)
            for clause in expr.clauses:
                other, inner = Label(), Scope(scope)
                self._pattern(clause.lhs, value, inner, other)
                yield self._branch(clause.rhs, inner, to, end)
                self._here(other)
            self._steps.append(c.Fail(c.NO_CLAUSE))
        self._here(end)

    def _branch(self, expr: e.Expr, scope: Scope, to: int | None, end: Label) -> Call[None]:
        if to is None:
            yield self._give(expr, scope)
        else:
            self._steps.append(c.Move(to, (yield self._value(expr, scope))))
            self._steps.append(c.Jump(end))  # type: ignore[arg-type] # a label until the end

    def _pattern(self, pattern: e.Pattern, value: int, scope: Scope, other: Label) -> None:
        """Binds the variables of a pattern; jumps to a label if it does not match."""
        if isinstance(pattern, e.PatternVar):
            scope.values[pattern.var.vid] = value
        elif isinstance(pattern, (e.PatternConstructor, e.PatternTuple)):
            if isinstance(pattern, e.PatternConstructor):
                self._steps.append(c.Unlike(value, pattern.constructor.tag, other))  # type: ignore[arg-type] # a label until the end
            for i, inner in enumerate(pattern.patterns):
                if not isinstance(inner, e.PatternWildcard):
                    self._pattern(inner, self._emit(c.Field, value, i), scope, other)

    # ---- calls

    def _is_control(self, call: e.Call) -> bool:
        if isinstance(call.op, e.GlobalVar):
            return self._program.compiles(call.op.name_hint) is None
        return not isinstance(call.op, e.Op)

    def _call(self, call: e.Call, scope: Scope, is_last: bool) -> Call[int | None]:
        """A call; its register, unless it is a tail call."""
        args = yield each(self._value(arg, scope) for arg in call.args)
        if isinstance(call.op, e.Constructor):
            made = self._emit(c.Make, call.op, tuple(args))
            if is_last:
                self._steps.append(c.Give(made))
            return made
        if isinstance(call.op, e.GlobalVar):
            name = call.op.name_hint
            number = self._program.number_of(self._program.module[call.op], name, name)
            made_of: tuple[Any, ...] = (c.Call, number, tuple(args))
        else:
            made_of = (c.Apply, (yield self._value(call.op, scope)), tuple(args))
        if is_last:
            self._steps.append(made_of[0](None, *made_of[1:]))
            return None
        return self._emit(*made_of)

    def _compute(self, root: e.Call, scope: Scope) -> Call[int]:
        """A kernel: a call of an operator, with the operators that only it uses."""
        inputs: dict[e.Expr, e.Var] = {}
        functions: dict[e.GlobalVar, e.Function] = {}
        seen: set[e.Expr] = set()
        waiting: list[e.Expr] = [root]
        while waiting:
            node = waiting.pop()
            if node in seen or isinstance(node, (e.Op, e.Constant)):
                continue
            if isinstance(node, e.GlobalVar):
                needed = self._program.compiles(node.name_hint)
                assert needed is not None
                functions.update(needed.functions)
            elif node is root or self._joins(node, scope):
                seen.add(node)
                waiting.extend(reversed(children(node)))
            else:
                inputs.setdefault(node, e.Var(f"x{len(inputs)}", node.checked_type))
        registers = yield each(self._value(node, scope) for node in inputs)
        module = RelayModule(functions, None, None)
        module["main"] = e.Function(list(inputs.values()), bind(root, inputs))  # type: ignore[arg-type] # any node can be a key
        return self._emit(c.Compute, Kernel(module, self._program.compile_kernel), tuple(registers))

    def _joins(self, node: e.Expr, scope: Scope) -> bool:
        """Whether an operand, which is of tensors, is computed in the kernel that uses it."""
        if scope.find(node) is not None:
            return False
        if isinstance(node, e.Tuple):
            return True
        if isinstance(node, e.TupleGetItem):
            return isinstance(node.tuple_value, e.Call) and self._joins(node.tuple_value, scope)
        return isinstance(node, e.Call) and not self._is_control(node) and self._uses[node] == 1
