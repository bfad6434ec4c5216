"""A-normal form, basic-block normal form and graph normal form.

A function's body, a branch and a clause are blocks. What several expressions use belongs to the innermost block around all of them.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from relayc.frontend.relay.analysis import Scope
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.build import in_lets
from relayc.frontend.relay.ast.functor import children, post_order, rebuilt
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.loops import uses
from relayc.frontend.relay.passes.device_domains import on_device
from relayc.frontend.relay.passes.effects import Effects
from relayc.frontend.relay.passes.plan_devices import planned_devices, said
from relayc.trampoline import Call, each, trampoline

ATOMS = (e.Var, e.GlobalVar, e.Op, e.Constructor)
"""Expressions that are no computation."""


def to_a_normal_form(mod: RelayModule) -> RelayModule:
    """Binds the value of every expression to a variable, in the order of evaluation."""
    return mod.map_functions(lambda function: _Normaliser(function, True).run())


def to_basic_block_normal_form(mod: RelayModule) -> RelayModule:
    """Binds expressions that several blocks use to variables, in the innermost block around these."""
    return mod.map_functions(basic_block_form)


def basic_block_form(function: e.Function) -> e.Expr:
    """A function in which expressions that several blocks use are bound to variables."""
    return _Normaliser(function).run()


def blocks_of(function: e.Function) -> Mapping[e.Expr, Scope]:
    """The innermost block around all uses of each expression of a function."""
    return _Normaliser(function).home


def is_primitive(expr: e.Expr) -> bool:
    """Whether an expression is a function that stands for one kernel or is for a code generator: passes leave its body as it is."""
    return isinstance(expr, e.Function) and ("Primitive" in expr.attrs or "Compiler" in expr.attrs)


def _visible(expr: e.Expr) -> list[e.Expr]:
    """The parts of an expression that passes may change."""
    return [] if is_primitive(expr) else children(expr)


@dataclass(eq=False)
class _Block(Scope):
    lets: list[tuple[e.Var, e.Expr]] = field(default_factory=list)


class _Normaliser:
    """One function while it is normalised.

    Args:
      binds_all: whether every expression is bound to a variable; else those that several blocks use.

    Attributes:
      home: the block of each expression.
    """

    def __init__(self, function: e.Function, binds_all: bool = False) -> None:
        self._function, self._binds_all = function, binds_all
        self._numbers = itertools.count()
        self._made: dict[e.Expr, e.Expr] = {}
        self._devices = planned_devices(function) if binds_all else {}
        self.home: dict[e.Expr, _Block] = {function: _Block()}
        self._inner: dict[tuple[e.Expr, int], _Block] = {}
        self._lifted: set[e.Expr] = set()
        for node in reversed(list(post_order(function, _visible))):  # users before operands
            for part, block in self._parts(node):
                if part in self.home and self.home[part] is not block:
                    self.home[part] = self.home[part].common(block)  # type: ignore[assignment] # scopes here are blocks
                    self._lifted.add(part)
                self.home.setdefault(part, block)

    def run(self) -> e.Expr:
        found = trampoline(self._changed(self._function))
        assert isinstance(found, e.Function)
        return found

    def _parts(self, node: e.Expr) -> Iterator[tuple[e.Expr, _Block]]:
        """The expressions directly in one, with the blocks that they are in."""
        home = self.home[node]
        for i, part in enumerate(_visible(node)):
            if self._is_block(node, i):
                self._inner[node, i] = _Block(home)
            yield part, self._inner.get((node, i), home)

    def _is_block(self, node: e.Expr, index: int) -> bool:
        if isinstance(node, e.Function):
            return children(node)[index] is node.body
        return isinstance(node, (e.If, e.Match)) and index > 0

    # ---- expressions

    def _value(self, expr: e.Expr, var: e.Var | None = None) -> Call[e.Expr]:
        """The replacement of an expression: the variable that it is bound to, or its converted form."""
        if isinstance(expr, ATOMS):
            return expr
        if expr not in self._made:
            found = on_device(expr) if expr in self._devices else None
            if isinstance(expr, e.Let):
                new = yield self._lets(expr)
            elif found is not None and found.attrs is not None and found.attrs["constrain_result"]:  # each value has its own annotation
                self._made[expr] = new = yield self._value(found.args[0], var)
                return new
            else:
                new = yield self._changed(expr)
            if self._binds_all or (expr in self._lifted and not isinstance(expr, e.Constant)):
                name = e.Var(f"x{next(self._numbers)}") if var is None else var
                self.home[expr].lets.append((name, said(new, self._devices[expr]) if expr in self._devices else new))
                new = name
            self._made[expr] = new
        return self._made[expr]

    def _changed(self, expr: e.Expr) -> Call[e.Expr]:
        if is_primitive(expr):
            return expr
        parts: list[e.Expr] = []
        for i, part in enumerate(children(expr)):
            block = self._inner.get((expr, i))
            if block is None:
                parts.append((yield self._value(part)))
                continue
            body = yield self._value(part)
            parts.append(in_lets(block.lets, body))
        return rebuilt(expr, iter(parts))

    def _lets(self, expr: e.Expr) -> Call[e.Expr]:
        while isinstance(expr, e.Let):
            lets = self.home[expr].lets
            value = yield self._value(expr.value, expr.var if self.home.get(expr.value) is self.home[expr] else None)
            if value is not expr.var:
                lets.append((expr.var, value))
            expr = expr.body
        return (yield self._value(expr))


# ---- graphs ------------------------------------------------------------------------------------------------------------------------------


def to_graph_normal_form(mod: RelayModule) -> RelayModule:
    """Puts values in the place of the variables that lets bind to them.

    Lets of functions that name themselves stay, and those whose values make, read or write references: their order is that of the lets.
    """
    effects = Effects(mod)

    def changed(function: e.Function) -> e.Expr:
        effects.bound = {node.var.vid: node.value for node in post_order(function) if isinstance(node, e.Let)}
        return graph_form(function, effects.has_place)

    return mod.map_functions(changed)


def graph_form(expr: e.Expr, stays: Callable[[e.Expr], bool] = lambda value: False) -> e.Expr:
    """An expression without lets, except of functions that name themselves, and of values for which `stays` holds."""
    values: dict[e.Id, e.Expr] = {}
    made: dict[e.Expr, e.Expr] = {}

    def visit(node: e.Expr) -> Call[e.Expr]:
        if isinstance(node, e.Var):
            return values.get(node.vid, node)
        if node in made:
            return made[node]
        start, kept = node, []
        while isinstance(node, e.Let):
            value = yield visit(node.value)
            names_itself = isinstance(node.value, e.Function) and uses(node.value, node.var.vid) > 0
            if names_itself or stays(node.value):
                kept.append((node.var, value))
            else:
                values[node.var.vid] = value
            node = node.body
        if node is start:
            parts = yield each(visit(part) for part in children(node))
            found = rebuilt(node, iter(parts))
        else:
            found = yield visit(node)
        made[start] = in_lets(kept, found)
        return made[start]

    return trampoline(visit(expr))
