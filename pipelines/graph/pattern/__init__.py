"""Dataflow patterns: subgraphs described in Relay's terms and matched against values of the relay dialect (Relay's dataflow_pattern).

    x, weight, bias = wildcard(), is_constant(), is_constant()
    conv = is_op("nn.conv2d")(x, weight).has_attr({"groups": 1})
    pattern = (conv + bias).optional(lambda y: is_op("nn.relu")(y))

    match = pattern.match(value)  # None if it does not match
    match[x], match[weight], match.operations, match.is_closed()

A pattern is matched against a value, its operand patterns against the operands, and so on. A pattern that occurs twice in another one must
match the same value in both places. Commutative operators match in both orders, alternatives are tried from left to right, and the search
backtracks: if a match exists, one is found. The first match found counts.

An operator pattern matches the first result of its operation; `is_tuple_get_item` matches the others.

For rewrites there is `Rules.match` in pipelines/graph/rewrite.py, and `rewrite` for a single one; `find_matches` finds subgraphs to be
extracted from a program.
"""

from relayc.pipelines.graph.pattern.language import DFPattern, dominates, is_constant, is_op, is_tuple_get_item, is_var, wildcard
from relayc.pipelines.graph.pattern.match import Match, find_matches, rewrite
