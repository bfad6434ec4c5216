"""Expressions of the Relay language, run on arrays."""

from relayc import relay


def evaluated(make, *arrays, shapes=None):
    """What an expression of variables gives for arrays; `shapes` are those of the variables where they are not the arrays' own."""
    variables = [relay.var(f"x{i}", shape=a.shape if shapes is None else shapes[i], dtype=a.dtype.name) for i, a in enumerate(arrays)]
    expr = make(*variables)
    body = expr.astuple() if isinstance(expr, relay.TupleWrapper) else expr
    found = relay.create_executor("graph").evaluate(relay.Function(variables, body))(*arrays)
    return [part.numpy() for part in found] if isinstance(found, list) else found.numpy()
