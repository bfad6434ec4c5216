"""Expressions of the Relay language, run on arrays."""

from relayc import relay
from relayc.frontend.relay.lowering import lower
from relayc.pipelines.evaluate.relay import RelayInterpreter


def _function(make, arrays, shapes=None):
    """A function of variables like arrays; `shapes` are those of the variables where they are not the arrays' own."""
    variables = [relay.var(f"x{i}", shape=a.shape if shapes is None else shapes[i], dtype=a.dtype.name) for i, a in enumerate(arrays)]
    expr = make(*variables)
    return relay.Function(variables, expr.astuple() if isinstance(expr, relay.TupleWrapper) else expr)


def evaluated(make, *arrays, shapes=None):
    """What an expression of variables gives for arrays; `shapes` are those of the variables where they are not the arrays' own."""
    found = relay.create_executor("graph").evaluate(_function(make, arrays, shapes))(*arrays)
    return [part.numpy() for part in found] if isinstance(found, list) else found.numpy()


def interpreted(make, *arrays):
    """The results on numpy, without compiling the expression."""
    return RelayInterpreter(lower(relay.IRModule.from_expr(_function(make, arrays))))("main", list(arrays))
