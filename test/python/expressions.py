"""Expressions of the Relay language, run on arrays."""

import pytest

from relayc import relay
from relayc.frontend.relay.lowering import lower
from relayc.pipelines.evaluate.relay import RelayInterpreter


def _function(make, arrays, shapes=None):
    variables = [relay.var(f"x{i}", shape=a.shape if shapes is None else shapes[i], dtype=a.dtype.name) for i, a in enumerate(arrays)]
    expr = make(*variables)
    return relay.Function(variables, expr.astuple() if isinstance(expr, relay.TupleWrapper) else expr)


def evaluated(make, *arrays, shapes=None):
    """What an expression of variables gives for arrays; `shapes` are those of the variables where they are not the arrays' own."""
    found = relay.create_executor("graph").evaluate(_function(make, arrays, shapes))(*arrays)
    return [part.numpy() for part in found] if isinstance(found, list) else found.numpy()


def interpreted(make, *arrays, shapes=None):
    """As `evaluated`, on numpy: nothing is compiled, so that many cases take little time."""
    function = _function(make, arrays, shapes)
    signed = [array.view(array.dtype.name[1:]) if array.dtype.kind == "u" else array for array in arrays]
    found = RelayInterpreter(lower(relay.IRModule.from_expr(function)))("main", signed)
    type_ = relay.transform.InferTypeLocal(function.body)
    types = type_.fields if isinstance(type_, relay.TupleType) else [type_]
    # The interpreter has signed integers alone.
    parts = [part.view(own.dtype) if "int" in own.dtype else part for part, own in zip(found, types, strict=True)]
    return parts if isinstance(type_, relay.TupleType) else parts[0]


both_ways = pytest.mark.parametrize("run", [interpreted, evaluated], ids=["numpy", "compiled"])
"""For tests of what operators are composed of, with many cases."""
