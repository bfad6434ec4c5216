"""Passes on programs of the Relay language, by Relay's names."""

from typing import Any

from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.ast.expr import Expr
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.ast.types import Type
from relayc.frontend.relay.inference import infer_expr, infer_module
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


def InferTypeLocal(expr: Expr) -> Type:
    """The type of an expression, which is noted in it and the expressions in it. Raises TypeInferenceError."""
    return infer_expr(expr).checked_type


def __getattr__(name: str) -> Any:
    if name[:1].isupper():
        raise RelayError(f"pass {name} of Relay is not supported yet")
    raise AttributeError(name)
