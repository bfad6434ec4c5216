"""Patterns of expressions of the Relay language, with Relay's names: what matches is rewritten, or made a function of its own.

Patterns of values of the dialect are in relayc.pipelines.graph.pattern.
"""

import inspect

from relayc.frontend.relay.dataflow_pattern.patterns import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wildcard,
)
from relayc.frontend.relay.dataflow_pattern.rewriting import DFPatternCallback, match, partition, rewrite

# What the imports above offer.
__all__ = sorted(name for name, value in globals().items() if not name.startswith("_") and not inspect.ismodule(value))
