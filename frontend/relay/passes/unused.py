"""What a program does not need: lets that nothing uses, functions that nothing calls, expressions that are there twice."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.attrs import Attrs
from relayc.frontend.relay.ast.build import bind, in_lets
from relayc.frontend.relay.ast.functor import ExprMutator, children, post_order, pre_order
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.loops import uses as names
from relayc.frontend.relay.passes.effects import Effects
from relayc.frontend.relay.passes.normal_forms import is_primitive


def dead_code_elimination(mod: RelayModule, inline_once: bool = False, ignore_impurity: bool = False) -> RelayModule:
    """Drops lets whose variable nothing uses and whose value has no effect.

    Args:
      inline_once: whether a value that is used once, in the function that binds it, takes the place of its variable, unless it reads a
        reference, has an effect, or is a function that names itself.
      ignore_impurity: whether values with effects are dropped, too.
    """
    return mod.map_functions(lambda function: _DeadLets(mod, inline_once, ignore_impurity).visit(function))


class _DeadLets(ExprMutator):
    def __init__(self, mod: RelayModule, inline_once: bool, ignore_impurity: bool) -> None:
        super().__init__()
        self._inline_once, self._ignores_effects, self._effects = inline_once, ignore_impurity, Effects(mod)

    def visit_let(self, let: e.Let) -> e.Expr:
        lets: list[tuple[e.Var, e.Expr]] = []
        body: e.Expr = let
        while isinstance(body, e.Let):
            lets.append((body.var, body.value))
            self._effects.bound[body.var.vid] = body.value
            body = body.body
        body = self.visit(body)
        uses, seen, inlined = Counter[e.Id](), set[e.Expr](), dict[e.Id, e.Expr]()
        _count_uses(body, uses, seen)
        kept: list[tuple[e.Var, e.Expr]] = []
        for var, value in reversed(lets):
            if not uses[var.vid] and (self._ignores_effects or not self._effects.has(value)):
                continue
            new = self.visit(value)
            has_place = not self._ignores_effects and self._effects.has_place(value)
            if self._inline_once and uses[var.vid] == 1 and not has_place and not names(value, var.vid):
                inlined[var.vid] = new
            else:
                kept.append((var, new))
            _count_uses(new, uses, seen)
        body = in_lets(kept[::-1], body)
        return _Inlined(inlined).visit(body) if inlined else body


def _count_uses(expr: e.Expr, uses: Counter[e.Id], seen: set[e.Expr]) -> None:
    """Counts how often expressions have variables directly in them; in a function, which may be called often, twice."""
    weights = {node: 2 for f in post_order(expr) if isinstance(f, e.Function) for node in post_order(f.body)}
    weights |= {f: 2 for f in post_order(expr) if isinstance(f, e.Function)}
    for node in post_order(expr):
        if node not in seen:
            seen.add(node)
            for part in children(node):
                if isinstance(part, e.Var):
                    uses[part.vid] += weights.get(node, 1)
    if isinstance(expr, e.Var):
        uses[expr.vid] += 1


class _Inlined(ExprMutator):
    def __init__(self, values: dict[e.Id, e.Expr]) -> None:
        super().__init__()
        self._values = values

    def visit_var(self, var: e.Var) -> e.Expr:
        value = self._values.get(var.vid)
        return var if value is None else self.visit(value)


# ---- functions ---------------------------------------------------------------------------------------------------------------------------


def named_functions(expr: e.Expr) -> list[str]:
    """The names of global functions in an expression."""
    return list(dict.fromkeys(node.name_hint for node in post_order(expr) if isinstance(node, e.GlobalVar)))


def remove_unused_functions(mod: RelayModule, entry_functions: Sequence[str] = ("main",)) -> RelayModule:
    """Drops functions that neither an entry names nor a function that is kept."""
    kept = set(_named(mod, entry_functions))
    return RelayModule({v: f for v, f in mod.functions.items() if v.name_hint in kept}, mod.type_definitions, mod.attrs)


def inline(mod: RelayModule) -> RelayModule:
    """Puts the bodies of functions with the attribute Inline in the place of their calls, and drops these functions.

    Those that call themselves stay, and those that no function names: they are entries.
    """
    wanted = [v.name_hint for v, f in mod.functions.items() if f.attrs.get("Inline")]
    inlined = {name: mod[name] for name in wanted if not reaches(mod, name, name)}
    named = {name for function in mod.functions.values() for name in named_functions(function)}
    mutator = _Inline(inlined)
    kept = {v: mutator.visit(f) for v, f in mod.functions.items() if v.name_hint not in inlined.keys() & named}
    return RelayModule(kept, mod.type_definitions, mod.attrs)  # type: ignore[arg-type] # functions stay functions


def reaches(mod: RelayModule, start: str, goal: str) -> bool:
    """Whether a function calls another, by others too."""
    return goal in _named(mod, named_functions(mod[start]))


def _named(mod: RelayModule, roots: Iterable[str]) -> Iterator[str]:
    """Functions of a module, and the functions that they name, directly or indirectly."""
    return pre_order([name for name in roots if name in mod], lambda name: [n for n in named_functions(mod[name]) if n in mod])


class _Inline(ExprMutator):
    def __init__(self, functions: dict[str, e.Function]) -> None:
        super().__init__()
        self._functions = functions

    def visit_global_var(self, var: e.GlobalVar) -> e.Expr:
        function = self._functions.get(var.name_hint)
        return var if function is None else self.visit(function)

    def visit_call(self, call: e.Call) -> e.Expr:
        callee = self.visit(call.op)
        args = tuple(self.visit(arg) for arg in call.args)
        if callee is call.op or not isinstance(callee, e.Function) or is_primitive(callee):
            return call.replace(op=callee, args=args)
        return bind(e.Function([], callee.body), dict(zip(callee.params, args, strict=True))).body  # type: ignore[attr-defined]


# ---- expressions that are there twice ----------------------------------------------------------------------------------------------------


def eliminate_common_subexpr(mod: RelayModule, fskip: Callable[[e.Expr], bool] | None = None) -> RelayModule:
    """Computes equal calls of operators on the same arguments once, except those for which `fskip` holds."""
    return infer_module(mod.map_functions(lambda function: _CommonExpressions(fskip).visit(function)))


class _CommonExpressions(ExprMutator):
    def __init__(self, fskip: Callable[[e.Expr], bool] | None) -> None:
        super().__init__()
        self._fskip = fskip
        self._known: dict[Any, e.Expr] = {}

    def visit_call(self, call: e.Call) -> e.Expr:
        args = tuple(self.visit(arg) for arg in call.args)
        new = call.replace(op=self.visit(call.op), args=args)
        if not isinstance(call.op, e.Op) or call.op.get_attr("TOpIsStateful") or (self._fskip is not None and self._fskip(call)):
            return new
        parts = tuple(self._same(part) for arg in args for part in (arg.fields if isinstance(arg, e.Tuple) else (arg,)))
        return self._known.setdefault((call.op, parts, tuple(type(arg) for arg in args), _values(call.attrs)), new)

    def visit_tuple_getitem(self, item: e.TupleGetItem) -> e.Expr:
        new = item.replace(tuple_value=self.visit(item.tuple_value))
        return self._known.setdefault((new.tuple_value, item.index), new)  # type: ignore[attr-defined]

    @staticmethod
    def _same(part: e.Expr) -> Any:
        """A key that is equal for equivalent expressions: constants of one element are compared by value."""
        if isinstance(part, e.Constant) and part.data.size == 1:
            return part.dtype, part.data.shape, part.data.tobytes()
        return part.vid if isinstance(part, e.Var) else part


def _values(attrs: Attrs | None) -> Any:
    return None if attrs is None else tuple(sorted((name, repr(value)) for name, value in attrs.items()))
