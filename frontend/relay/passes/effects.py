"""What the evaluation of expressions does besides giving values."""

from typing import Any

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.functor import children, pre_order
from relayc.frontend.relay.ast.module import RelayModule

_EFFECTS = ("memory.kill", "vm.invoke_tvm_op")
"""Operators with effects."""


class Effects:
    """Which expressions have effects.

    Args:
      mod: the module of the global functions that are called.

    Attributes:
      bound: the values of variables that lets bind, as far as they are known. A call of an unknown function may have any effect.
    """

    def __init__(self, mod: RelayModule) -> None:
        self._mod = mod
        self.bound: dict[e.Id, e.Expr] = {}

    def has(self, expr: e.Expr) -> bool:
        """Whether evaluating an expression has effects: it writes references, for example."""
        return self._finds(expr, (e.RefWrite,), frozenset())

    def has_place(self, expr: e.Expr) -> bool:
        """Whether an expression cannot be evaluated at another place: it has effects, or makes or reads references."""
        return self._finds(expr, (e.RefCreate, e.RefRead, e.RefWrite), frozenset())

    def _finds(self, expr: e.Expr, kinds: tuple[type[e.Expr], ...], entered: frozenset[Any]) -> bool:
        # A function has no effect until it is called.
        nodes = pre_order([expr], lambda node: [] if isinstance(node, e.Function) else children(node))
        return any(isinstance(node, kinds) or (isinstance(node, e.Call) and self._of_call(node.op, kinds, entered)) for node in nodes)

    def _of_call(self, callee: e.Expr, kinds: tuple[type[e.Expr], ...], entered: frozenset[Any]) -> bool:
        if isinstance(callee, e.Op):
            return callee.name in _EFFECTS
        if isinstance(callee, e.Constructor):
            return False
        key = callee.vid if isinstance(callee, e.Var) else getattr(callee, "name_hint", callee)
        if key in entered:
            return False
        function: Any = callee
        if isinstance(callee, e.Var):
            function = self.bound.get(callee.vid)
        elif isinstance(callee, e.GlobalVar):
            function = self._mod[callee]
        return not isinstance(function, e.Function) or self._finds(function.body, kinds, entered | {key})
