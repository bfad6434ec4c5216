"""What a pattern has matched, and what is done with matches: subgraphs found in a block, values rewritten."""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant

if TYPE_CHECKING:
    from relayc.pipelines.graph.pattern.language import DFPattern

Users = Callable[[ir.Value], Iterable[ir.OpView]]
"""Gives the operations that use a value."""


def users_of(value: ir.Value) -> Iterator[ir.OpView]:
    """The operations that use a value, once for each use."""
    return (use.owner for use in value.uses)


class Match:
    """What a pattern matched: `match[pattern]` is the value of a part of the pattern, `pattern in match` whether that part has one.

    The matched subgraph is what operator patterns, constant patterns and the paths of `dominates` matched. What wildcards and variables
    matched are its inputs.

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
        """The value of a part of the pattern; None where it has none."""
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
        """The operands of `operations` that none of these gives, each once, in the order of their first use."""
        inside = set(self.values)
        operands = dict.fromkeys(operand for op in self.operations for operand in op.operation.operands)
        return [operand for operand in operands if operand not in inside]

    def is_closed(self) -> bool:
        """Whether no value of the matched subgraph but `root` is used outside of it. Constants may be: each user may have its own."""
        operations = {op.operation for op in self.operations}
        inner = [v for op in self.operations if not isinstance(op, Constant) for v in op.operation.results if v != self.root]
        return all(user.operation in operations for value in inner for user in self._users(value))


def _in_program_order(operations: list[ir.Operation], root: ir.Value) -> list[ir.Operation]:
    """Operations that `root` is computed from, sorted: those of blocks around its own come first."""
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

    They are looked for from the block's end on: a match that ends later takes its operations before one that ends earlier, and comes first
    in the list, so that each may be rewritten while those behind it in the list stay valid. An operation gives at most one match.
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
    """Rewrites a module in place until the pattern matches nowhere, or `callback` gives None wherever it does (Relay's rewrite).

    Args:
      pattern: a pattern that ends in an operator.
      callback: (match, rewriter) -> what stands for the results of the operation that the match ends in, as a rule of `Rules.match`.
      mod: the module; it is given back.

    Raises:
      ValueError: the pattern may end in any value.
    """
    from relayc.pipelines.graph.rewrite import Rules  # late: passes of relayc.pipelines.graph are written with patterns

    rules = Rules(getattr(callback, "__name__", "rewrite"))
    rules.match(pattern)(callback)
    with mod.context, ir.Location.unknown():
        rules.apply(mod)
    return mod
