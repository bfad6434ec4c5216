"""Passes on programs of the Relay language, by Relay's names."""

from collections.abc import Callable
from typing import Any

from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.ast.expr import Call, Expr, Op
from relayc.frontend.relay.ast.functor import ExprMutator
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.ast.types import Type
from relayc.frontend.relay.inference import infer_expr, infer_module
from relayc.frontend.relay.op.registered import attribute
from relayc.frontend.relay.text import parse_module


class ModulePass:
    """A pass: called with a module, it gives another."""

    opt_level = 0

    @property
    def name(self) -> str:
        """Relay's name of the pass."""
        return type(self).__name__

    def __call__(self, mod: RelayModule) -> RelayModule:
        raise NotImplementedError


class InferType(ModulePass):
    """Finds the type of every expression. Raises TypeInferenceError where types do not fit, or one is not known."""

    def __call__(self, mod: RelayModule) -> RelayModule:
        return infer_module(mod)


class AnnotateSpans(ModulePass):
    """Gives expressions their places in the text of the program."""

    def __call__(self, mod: RelayModule) -> RelayModule:
        return parse_module(mod.astext(), "GeneratedSource")


class Legalize(ModulePass):
    """Replaces calls of operators by what a function gives that is an attribute of the operator.

    The function is called with the attributes, the arguments and their types with that of the result last; None leaves the call as it is.
    """

    def __init__(self, legalize_map_attr_name: str = "FTVMLegalize") -> None:
        self._key = legalize_map_attr_name

    def __call__(self, mod: RelayModule) -> RelayModule:
        return infer_module(infer_module(mod).map_functions(_Replace(self._replacement).visit))

    def _replacement(self, call: Call, args: list[Expr]) -> Expr | None:
        function = attribute(call.op.name, self._key) if isinstance(call.op, Op) else None
        types = [*(arg.checked_type for arg in call.args), call.checked_type]
        return None if function is None else function(call.attrs, args, types)


class _Replace(ExprMutator):
    """Replaces calls, whose arguments are replaced before: None leaves a call as it is."""

    def __init__(self, replacement: Callable[[Call, list[Expr]], Expr | None]) -> None:
        super().__init__()
        self._replacement = replacement

    def visit_call(self, call: Call) -> Expr:
        args = [self.visit(arg) for arg in call.args]
        found = self._replacement(call, args)
        return call.replace(op=self.visit(call.op), args=tuple(args)) if found is None else found


def InferTypeLocal(expr: Expr) -> Type:
    """The type of an expression, which is noted in it and the expressions in it. Raises TypeInferenceError."""
    return infer_expr(expr).checked_type


def __getattr__(name: str) -> Any:
    if name[:1].isupper():
        raise RelayError(f"pass {name} of Relay is not supported yet")
    raise AttributeError(name)
