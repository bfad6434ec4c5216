"""Dataflow patterns: subgraphs described in Relay's terms and found among the values of the relay dialect (Relay's dataflow_pattern).

    x, weight, bias = wildcard(), is_constant(), is_constant()
    conv = is_op("nn.conv2d")(x, weight).has_attr({"groups": 1})
    pattern = (conv + bias).optional(lambda y: is_op("nn.relu")(y))

    match = pattern.match(value)  # None where the value is no such thing
    match[x], match[weight], match.operations, match.is_closed()

A pattern is matched against a value, its operand patterns against the operands, and so on. A pattern that stands in two places of another
one matches the same value in both. Operators that are commutative match in both orders, alternatives are tried from left to right, and a
choice is undone where what follows from it does not match: if a match exists, one is found. The first one found is the one that counts.

An operator pattern matches the first result of its operation; `is_tuple_get_item` reaches the others.

For rewrites there is `Rules.match` in pipelines/graph/rewrite.py, and `rewrite` for a single one; for subgraphs to be taken out of a
program, `find_matches`.
"""

from relayc.pipelines.graph.pattern.language import DFPattern, dominates, is_constant, is_op, is_tuple_get_item, is_var, wildcard
from relayc.pipelines.graph.pattern.match import Match, find_matches, rewrite

__all__ = [
    "DFPattern",
    "Match",
    "dominates",
    "find_matches",
    "is_constant",
    "is_op",
    "is_tuple_get_item",
    "is_var",
    "rewrite",
    "wildcard",
]
