"""Matches of patterns, and their uses: finding subgraphs in a block, rewriting values."""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant

if TYPE_CHECKING:
    from relayc.pipelines.graph.pattern.language import DFPattern

Users = Callable[[ir.Value], Iterable[ir.OpView]]
"""Returns the operations that use a value."""


def users_of(value: ir.Value) -> Iterator[ir.OpView]:
    """The operations that use a value, once for each use."""
    return (use.owner for use in value.uses)


class Match:
    """A match: `match[pattern]` is the value of a subpattern, `pattern in match` whether the subpattern has one.

    The matched subgraph consists of the matches of operator patterns, constant patterns and the paths of `dominates`. The matches of
    wildcards and variables are its inputs.

    Attributes:
      root: the value that the pattern was matched against.
    """

    def __init__(self, root: ir.Value, bound: dict["DFPattern", ir.Value], users: Users) -> None:
        self.root = root
        self._bound = bound
        self._users = users

    def __getitem__(self, pattern: "DFPattern") -> ir.Value:
        value = self._bound.get(pattern)
        if value is None:
            raise KeyError("the pattern is no part of the one that was matched, or of an alternative that was not taken")
        return value

    def __contains__(self, pattern: object) -> bool:
        return pattern in self._bound

    def get(self, pattern: "DFPattern") -> ir.Value | None:
        """The value of a subpattern; None if it has none."""
        return self._bound.get(pattern)

    @functools.cached_property
    def operations(self) -> list[ir.OpView]:
        """The operations of the matched subgraph, in program order."""
        matched = (op for pattern, value in self._bound.items() for op in pattern.operations(value))
        views = {op.operation: op for op in matched}
        return [views[operation] for operation in _in_program_order(list(views), self.root)]

    @property
    def values(self) -> list[ir.Value]:
        """The results of `operations`, in program order."""
        return [result for op in self.operations for result in op.operation.results]

    @property
    def inputs(self) -> list[ir.Value]:
        """The operands of `operations` that are not results of these, each once, in the order of their first use."""
        inside = set(self.values)
        operands = dict.fromkeys(operand for op in self.operations for operand in op.operation.operands)
        return [operand for operand in operands if operand not in inside]

    def is_closed(self) -> bool:
        """Whether no value of the matched subgraph except `root` is used outside of it. Constants are exempt: each user may have its
        own."""
        operations = {op.operation for op in self.operations}
        inner = [v for op in self.operations if not isinstance(op, Constant) for v in op.operation.results if v != self.root]
        return all(user.operation in operations for value in inner for user in self._users(value))


def _in_program_order(operations: list[ir.Operation], root: ir.Value) -> list[ir.Operation]:
    """Operations on which `root` depends, sorted: operations of enclosing blocks come first."""
    ordered: list[ir.Operation] = []
    at = root.owner if isinstance(root, ir.OpResult) else None
    while len(ordered) < len(operations):
        assert at is not None  # an argument is computed from no operations
        block = at.operation.block
        here = [operation for operation in operations if operation.block == block]
        here.sort(key=functools.cmp_to_key(_compare))
        ordered = here + ordered
        at = block.owner
    return ordered


def _compare(a: ir.Operation, b: ir.Operation) -> int:
    return -1 if a.is_before_in_block(b) else 1


def find_matches(pattern: "DFPattern", block: ir.Block) -> list[Match]:
    """Closed matches within a block, no two of which share an operation, constants excepted.

    The search starts at the block's end: a match that ends later claims its operations before one that ends earlier, and comes first in the
    list, so that each may be rewritten while the following ones stay valid. An operation is the root of at most one match.
    """
    names = pattern.root_operators
    taken: set[ir.Operation] = set()
    found: list[Match] = []
    for view in reversed(list(block.operations)):
        operation = view.operation
        if operation in taken or (names is not None and operation.name not in names):
            continue
        for value in operation.results:
            match = pattern.match(value)
            if match is None or not match.is_closed():
                continue
            own = {op.operation for op in match.operations if not isinstance(op, Constant)}
            if own and taken.isdisjoint(own) and all(op.block == block for op in own):
                taken |= own
                found.append(match)
                break
    return found


def rewrite(pattern: "DFPattern", callback: Callable[..., Any], mod: IRModule) -> IRModule:
    """Rewrites a module in place until the pattern does not match, or `callback` returns None for every match (Relay's rewrite).

    Args:
      pattern: a pattern that ends in an operator.
      callback: (match, rewriter) -> replacements of the results of the match's last operation, like a rule of `Rules.match`.
      mod: the module; it is returned.

    Raises:
      ValueError: the pattern may end in any value.
    """
    from relayc.pipelines.graph.rewrite import Rules  # late: passes of relayc.pipelines.graph are written with patterns

    rules = Rules(getattr(callback, "__name__", "rewrite"))
    rules.match(pattern)(callback)
    with mod.context, ir.Location.unknown():
        return rules.apply(mod)
