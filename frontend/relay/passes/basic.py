"""Types, spans, and calls that functions replace."""

from collections.abc import Callable

from relayc.frontend.relay.ast.base import Span
from relayc.frontend.relay.ast.expr import Call, Constructor, Expr, Op
from relayc.frontend.relay.ast.functor import ExprMutator, children, post_order, rebuilt
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.op.registered import attribute
from relayc.frontend.relay.text import parse_module


def infer_type(mod: RelayModule) -> RelayModule:
    """Finds the type of every expression. Raises TypeInferenceError where types do not fit, or one is not known."""
    return infer_module(mod)


def annotate_spans(mod: RelayModule) -> RelayModule:
    """Gives expressions their places in the text of the program."""
    return parse_module(mod.astext(), "GeneratedSource")


def capture_post_dfs_index_in_spans(mod: RelayModule) -> RelayModule:
    """Gives expressions their place among those of the function, after those in them: as the line, and the last use's as the end line."""

    def numbered(function: Expr) -> Expr:
        nodes = list(post_order(function))
        last = {part: i for i, node in enumerate(nodes) for part in children(node)}
        made: dict[Expr, Expr] = {}
        for i, node in enumerate(nodes):
            parts = rebuilt(node, iter([made[part] for part in children(node)]))
            made[node] = node if isinstance(node, (Op, Constructor)) else parts.at(Span("index", i, last.get(node, 0), 0, 0))
        return made[function]

    return mod.map_functions(numbered)


def legalize(mod: RelayModule, legalize_map_attr_name: str = "FTVMLegalize") -> RelayModule:
    """Replaces calls of operators by what a function gives that is an attribute of the operator.

    The function is called with the attributes, the arguments and their types with that of the result last; None leaves the call as it is.
    """

    def replacement(call: Call, args: list[Expr]) -> Expr | None:
        function = attribute(call.op.name, legalize_map_attr_name) if isinstance(call.op, Op) else None
        types = [*(arg.checked_type for arg in call.args), call.checked_type]
        return None if function is None else function(call.attrs, args, types)

    return infer_module(infer_module(mod).map_functions(Replace(replacement).visit))


class Replace(ExprMutator):
    """Replaces calls, whose arguments are replaced before: None leaves a call as it is."""

    def __init__(self, replacement: Callable[[Call, list[Expr]], Expr | None]) -> None:
        super().__init__()
        self._replacement = replacement

    def visit_call(self, call: Call) -> Expr:
        args = [self.visit(arg) for arg in call.args]
        found = self._replacement(call, args)
        return call.replace(op=self.visit(call.op), args=tuple(args)) if found is None else found
