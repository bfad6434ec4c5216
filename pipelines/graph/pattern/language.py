"""The patterns: their conditions on a value, and the functions that create them; see the package's docstring."""

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import OPS, Op, RelayError
from relayc.dialects.relay.names import ir_name, relay_names
from relayc.dialects.relay.structure import Constant, TupleGetItem
from relayc.dialects.relay.types import TensorType
from relayc.nearest import nearest
from relayc.operators import Arithmetic
from relayc.pipelines.graph.pattern.match import Match, Users, users_of
from relayc.pipelines.graph.pattern.search import Search, Subgoals

OP_PATTERN = "TOpPattern"
"""The name of the fusion pattern of an operator (`relayc.dialects.relay.Pattern`) in `has_attr`, as in Relay."""

_MATCHES: tuple[Subgoals, ...] = ((),)
_FAILS: tuple[Subgoals, ...] = ()


class DFPattern(Arithmetic["DFPattern"]):
    """Base class of the patterns. Patterns are immutable, and compare by identity: they are the keys of a Match."""

    settling: frozenset["DFPattern"] | None = None  # if it is the root: see search.py
    parts: tuple["DFPattern", ...] = ()
    """The subpatterns, one for each place."""
    has_choice = False
    """Whether there may be several ways to match a value."""

    @functools.cached_property
    def root_operators(self) -> frozenset[str] | None:
        """Names of the operations (`OPERATION_NAME`) that may define a matching value; None for any value."""
        return None

    def alternatives(self, value: ir.Value, search: Search) -> Iterable[Subgoals]:
        """The subgoals of a match, one entry for each way to match: a tuple, or an iterator if `has_choice`."""
        raise NotImplementedError

    def match(self, value: ir.Value, users: Users = users_of) -> Match | None:
        """The match of this pattern that ends in `value`; None if there is none.

        Args:
          value: the last value of the subgraph.
          users: returns the operations that use a value; a Rewriter's `users` omits operations that it has found dead.
        """
        search = Search(self, users)
        return Match(value, search.bound, users) if search.solve(self, value) else None

    def operations(self, value: ir.Value) -> list[ir.OpView]:
        """The operations that this pattern itself, without subpatterns, adds to a matched subgraph; `value` is the matched value."""
        return []

    # -- constraints

    def has_attr(self, attributes: Mapping[str, Any]) -> "DFPattern":
        """This pattern, restricted to values whose operation has these attribute values, including defaults.

        Values are compared as Python values, sequences as tuples. The name "TOpPattern" is the operator's fusion pattern. An operation
        without an attribute of the name does not match.
        """
        expected = {name: tuple(v) if isinstance(v, (list, np.ndarray)) else v for name, v in attributes.items()}
        return ConjunctionPattern((CheckPattern(functools.partial(_has_attributes, expected)), self))

    def has_type(self, type_: TensorType) -> "DFPattern":
        """This pattern, restricted to values of exactly this type."""
        return ConjunctionPattern((CheckPattern(lambda value: TensorType.of(value) == type_), self))

    def has_shape(self, shape: Sequence[int | None]) -> "DFPattern":
        """This pattern, restricted to values of this shape; None is any length."""
        lengths = tuple(shape)

        def test(value: ir.Value) -> bool:
            found = TensorType.of(value).shape
            return len(found) == len(lengths) and all(n is None or n == m for n, m in zip(lengths, found, strict=True))

        return ConjunctionPattern((CheckPattern(test), self))

    def has_dtype(self, dtype: str) -> "DFPattern":
        """This pattern, restricted to values with this element type ("float32")."""
        return ConjunctionPattern((CheckPattern(lambda value: TensorType.of(value).dtype == dtype), self))

    def satisfies(self, predicate: Callable[[ir.Value], object]) -> "DFPattern":
        """This pattern, restricted to matching values that satisfy `predicate` (Relay has no such constraint)."""
        return ConjunctionPattern((self, CheckPattern(predicate)))

    # -- composition

    def optional(self, option: Callable[["DFPattern"], "DFPattern"]) -> "DFPattern":
        """`option` of this pattern if that matches, otherwise this pattern: `conv.optional(lambda x: is_op("nn.relu")(x))`."""
        return AltPattern(option(self), self)

    def dominates(self, parent: "DFPattern", path: "DFPattern | None" = None) -> "DFPattern":
        """This pattern as the child of `dominates(parent, path, child)`, like Relay's method of that name; any path by default."""
        return dominates(parent, wildcard() if path is None else path, self)

    def __or__(self, other: "DFPattern") -> "DFPattern":
        return AltPattern(self, other)

    def _apply(self, name: str, *operands: "DFPattern") -> "DFPattern":
        return is_op(name)(*operands)


def _has_attributes(expected: Mapping[str, Any], value: ir.Value) -> bool:
    op = value.owner
    if not isinstance(op, Op):
        return False
    for name, wanted in expected.items():
        if name == OP_PATTERN:
            found = op.pattern
        elif name in op.attr_specs:
            found = getattr(op, name)
        else:
            return False
        if found != wanted:
            return False
    return True


def wildcard() -> "WildcardPattern":
    """Any value. Called with operand patterns: the first result of any operation with such operands."""
    return WildcardPattern()


def is_var() -> DFPattern:
    """An argument of a function, or of a fusion group."""
    return VarPattern()


def is_constant() -> DFPattern:
    """A constant, in the IR or in the parameter table."""
    return ConstantPattern()


def is_op(name: str) -> "CallPattern":
    """The first result of an operator, by Relay's name (`nn.conv2d`), with any operands; called with patterns, with matching operands.

    Commutative operators match their two operand patterns in both orders.

    Raises:
      RelayError: no such operator; or, when called, it never has that many operands.
      TypeError: called with arguments that are not patterns.
    """
    cls = OPS.get(ir_name(name))
    if cls is None:
        raise RelayError(f"is_op: no operator {name!r} in the relay dialect{nearest(name, relay_names())}")
    return CallPattern(cls)


def is_tuple_get_item(pattern: DFPattern, index: int | None = None) -> DFPattern:
    """Result `index`, or any result, of an operation whose first result matches `pattern`."""
    return TupleGetItemPattern(pattern, index)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DFPattern:
    """A value matched by `child` in which all uses of a value matched by `parent` end (Relay's DominatorPattern).

    Going back from the child, every operand is that parent, or matches `path` and so do its own operands, up to the parent: a path that
    ends elsewhere, at an argument or a constant, needs a `path` that matches these too. Nothing outside uses the values between. `path` is
    matched separately at every step: it does not constrain other patterns, and has no entry in the Match.
    """
    return ConjunctionPattern((child, PathPattern(parent, path)))


# ---- the patterns -----------------------------------------------------------------------------------------------------------------------


def _patterns(given: tuple[DFPattern, ...]) -> tuple[DFPattern, ...]:
    """Checks the given patterns. Raises TypeError for other values, numbers for example."""
    for pattern in given:
        if not isinstance(pattern, DFPattern):
            raise TypeError(f"expected a pattern, found {pattern!r}")
    return given


class WildcardPattern(DFPattern):
    """See `wildcard`."""

    def __call__(self, *operands: DFPattern) -> "CallPattern":
        return CallPattern(None, operands)

    def alternatives(self, value: ir.Value, search: Search) -> tuple[Subgoals, ...]:
        return _MATCHES


class VarPattern(DFPattern):
    """See `is_var`."""

    def alternatives(self, value: ir.Value, search: Search) -> tuple[Subgoals, ...]:
        return _MATCHES if isinstance(value, ir.BlockArgument) else _FAILS


class ConstantPattern(DFPattern):
    """See `is_constant`."""

    @functools.cached_property
    def root_operators(self) -> frozenset[str]:
        return frozenset([Constant.OPERATION_NAME])

    def alternatives(self, value: ir.Value, search: Search) -> tuple[Subgoals, ...]:
        return _MATCHES if isinstance(value.owner, Constant) else _FAILS

    def operations(self, value: ir.Value) -> list[ir.OpView]:
        return [value.owner]


class CheckPattern(DFPattern):
    """Any value that satisfies a predicate."""

    def __init__(self, predicate: Callable[[ir.Value], object]) -> None:
        self._predicate = predicate

    def alternatives(self, value: ir.Value, search: Search) -> tuple[Subgoals, ...]:
        return _MATCHES if self._predicate(value) else _FAILS


class CallPattern(DFPattern):
    """An operator (None: any) and the patterns of its operands (None: any); see `is_op`."""

    def __init__(self, operator: type[Op] | None, operands: tuple[DFPattern, ...] | None = None) -> None:
        self._operator = operator
        self._name = None if operator is None else operator.OPERATION_NAME
        self._operands = operands and _patterns(operands)
        self.parts = self._operands or ()
        self.has_choice = len(self.parts) == 2 and (operator is None or operator.commutative)

    def __call__(self, *operands: DFPattern) -> "CallPattern":
        operator = self._operator
        if self._operands is not None:
            raise TypeError(f"{self._name or 'wildcard'}: the pattern has operands already")
        fixed = 0 if operator is None else len(operator.operand_names) - operator.variadic
        if operator is not None and (len(operands) < fixed or (len(operands) > fixed and not operator.variadic)):
            names = ", ".join(operator.operand_names)
            raise RelayError(f"is_op({operator.relay_name!r}): expected a pattern for each of ({names}), found {len(operands)}")
        return CallPattern(operator, operands)

    def has_attr(self, attributes: Mapping[str, Any]) -> DFPattern:
        if self._operator is not None:
            unknown = attributes.keys() - self._operator.attr_specs.keys() - {OP_PATTERN}
            if unknown:
                raise RelayError(f"{self._operator.relay_name} has no attribute {', '.join(sorted(unknown))}")
        return super().has_attr(attributes)

    @functools.cached_property
    def root_operators(self) -> frozenset[str] | None:
        return None if self._name is None else frozenset([self._name])

    def alternatives(self, value: ir.Value, search: Search) -> tuple[Subgoals, ...]:
        if not isinstance(value, ir.OpResult) or value.result_number:
            return _FAILS
        owner = value.owner
        operation = owner.operation
        if self._name is not None and operation.name != self._name:
            return _FAILS
        if self._operands is None:
            return _MATCHES
        operands = list(operation.operands)
        if len(operands) != len(self._operands):
            return _FAILS
        inorder = tuple(zip(self._operands, operands, strict=True))
        swaps = self.has_choice and isinstance(owner, Op) and owner.commutative and operands[0] != operands[1]
        if not swaps:
            return (inorder,)
        return inorder, tuple(zip(self._operands, reversed(operands), strict=True))

    def operations(self, value: ir.Value) -> list[ir.OpView]:
        return [value.owner]


class TupleGetItemPattern(DFPattern):
    """See `is_tuple_get_item`."""

    def __init__(self, operator: DFPattern, index: int | None) -> None:
        self._operator = operator
        self._index = index
        self.parts = (operator,)

    @functools.cached_property
    def root_operators(self) -> frozenset[str] | None:
        names = self._operator.root_operators
        return None if names is None else names | {TupleGetItem.OPERATION_NAME}

    def alternatives(self, value: ir.Value, search: Search) -> tuple[Subgoals, ...]:
        owner = value.owner
        if isinstance(owner, TupleGetItem):
            return (((self._operator, owner.data),),) if self._index in (None, owner.index) else _FAILS
        if not isinstance(value, ir.OpResult) or self._index not in (None, value.result_number):
            return _FAILS
        return (((self._operator, value.owner.operation.results[0]),),)


class AltPattern(DFPattern):
    """One of two patterns, the left one if both match. Called with operand patterns: both alternatives are called with them."""

    has_choice = True

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.parts = _patterns((left, right))

    def __call__(self, *operands: DFPattern) -> "AltPattern":
        left, right = self.parts
        return AltPattern(left(*operands), right(*operands))  # type: ignore[operator] # TypeError, as of any object, where one takes no operands

    @functools.cached_property
    def root_operators(self) -> frozenset[str] | None:
        left, right = (choice.root_operators for choice in self.parts)
        return None if left is None or right is None else left | right

    def alternatives(self, value: ir.Value, search: Search) -> tuple[Subgoals, ...]:
        left, right = self.parts
        return ((left, value),), ((right, value),)


class ConjunctionPattern(DFPattern):
    """The conjunction of several patterns of one value, matched from left to right. Called with operand patterns: its operator is called
    with them."""

    def __init__(self, parts: tuple[DFPattern, ...]) -> None:
        self.parts = parts

    def __call__(self, *operands: DFPattern) -> "ConjunctionPattern":
        return ConjunctionPattern(
            # TypeError, as for any object, if a part takes no operands.
            tuple(part if isinstance(part, CheckPattern) else part(*operands) for part in self.parts)  # type: ignore[operator]
        )

    @functools.cached_property
    def root_operators(self) -> frozenset[str] | None:
        known = [names for part in self.parts if (names := part.root_operators) is not None]
        return frozenset.intersection(*known) if known else None

    def alternatives(self, value: ir.Value, search: Search) -> tuple[Subgoals, ...]:
        return (tuple((part, value) for part in self.parts),)


class PathPattern(DFPattern):
    """A value that dominates a value matched by `parent`, with `path` between the two; see `dominates`."""

    has_choice = True

    def __init__(self, parent: DFPattern, path: DFPattern) -> None:
        self._parent = parent
        self._path = path
        self.parts = (parent,)

    def alternatives(self, value: ir.Value, search: Search) -> Iterator[Subgoals]:
        seen: set[ir.Value] = set()
        pending = deque(_operands(value))
        while pending:
            candidate = pending.popleft()
            if candidate in seen:
                continue
            seen.add(candidate)
            yield (self._parent, candidate), (DominatedPattern(candidate, self._path), value)
            if search.matches_alone(self._path, candidate):
                pending += _operands(candidate)


class DominatedPattern(DFPattern):
    """A value that dominates the value `parent`, with `path` between the two: created for each parent that a PathPattern tries."""

    def __init__(self, parent: ir.Value, path: DFPattern) -> None:
        self._parent = parent
        self._path = path
        self._between: list[ir.OpView] = []

    def alternatives(self, value: ir.Value, search: Search) -> tuple[Subgoals, ...]:
        found: dict[ir.Value, None] = {}
        reached = False
        pending = _operands(value)
        while pending:
            operand = pending.pop()
            if operand == self._parent:
                reached = True
            elif operand not in found:
                if not search.matches_alone(self._path, operand):
                    return _FAILS
                found[operand] = None
                pending += _operands(operand)
        self._between = [step.owner for step in found if isinstance(step, ir.OpResult)]
        return _MATCHES if reached and _ends_in(value, self._parent, self._between, search.users) else _FAILS

    def operations(self, value: ir.Value) -> list[ir.OpView]:
        return self._between


def _operands(value: ir.Value) -> list[ir.Value]:
    return list(value.owner.operation.operands) if isinstance(value, ir.OpResult) else []


def _ends_in(value: ir.Value, parent: ir.Value, between: list[ir.OpView], users: Users) -> bool:
    """Whether every use of `parent`, direct or indirect, is an operation of `between` or, in the end, the operation that defines
    `value`."""
    last = value.owner.operation
    inside = {last, *(op.operation for op in between)}
    seen = {last}
    pending = list(parent.owner.operation.results) if isinstance(parent, ir.OpResult) else [parent]
    while pending:
        for user in users(pending.pop()):
            operation = user.operation
            if operation not in inside:
                return False
            if operation not in seen:
                seen.add(operation)
                pending += operation.results
    return True
