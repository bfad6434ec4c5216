"""How deep programs may nest: upstream's parser and its passes recurse into regions, and end the process where the stack is used up."""

import re

from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError

MOST_BRACKETS = 1000
"""Brackets in one another in MLIR text. Upstream's parser takes at least 2,400 regions in generic form on a stack of 8 MiB (4,000 of
`scf.if`, 7,200 attributes); Python's recursion limit, which passes over regions meet, is 1,000 as well."""

_TOKENS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=|[({\[<]|[)}\]>]')


def parse_module(text: str) -> ir.Module:
    """Parses MLIR text in the ambient context.

    Raises:
      MLIRError: the text does not parse. RelayError: it nests deeper than the parser can follow.
    """
    if sum(map(text.count, "({[<")) > MOST_BRACKETS:
        _check_depth(text)
    return ir.Module.parse(text)


def _check_depth(text: str) -> None:
    depth = 0
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token in "({[<":
            depth += 1
        elif token in ")}]>":
            depth = max(0, depth - 1)
        if depth > MOST_BRACKETS:
            line = text.count("\n", 0, found.start()) + 1
            raise RelayError(f"line {line}: expected at most {MOST_BRACKETS} brackets in one another, found more")
