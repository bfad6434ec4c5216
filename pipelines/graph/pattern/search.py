"""The search for a match: backtracking over a list of goals, with memoized outcomes."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from relayc.dialects.mlir import ir
from relayc.pipelines.graph.pattern.match import Users

if TYPE_CHECKING:
    from relayc.pipelines.graph.pattern.language import DFPattern

_Goals = tuple[Any, ...]
"""The remaining goals, as a linked list with tails shared by choices: (pattern, value, the rest), or (_Settled, None, the rest)."""

_Key = tuple["DFPattern", ir.Value]

Subgoals = tuple[_Key, ...]
"""Patterns and the values that they must match, in the order in which they are tried."""


class _Settled(NamedTuple):
    """The goal after the goals of a settling pattern: `bound` and `choices` are the numbers of bindings and choices before it."""

    key: _Key
    bound: int
    choices: int


class _Choice(NamedTuple):
    """Untried alternatives, and the state to restore for them: the following goals, and the number of bound patterns."""

    alternatives: Iterator[Subgoals]
    rest: _Goals
    bound: int
    key: _Key | None


class Search:
    """A search for one match: goals are met in order; if one fails, the search backtracks to the last choice.

    A pattern whose subpatterns occur nowhere else matches independently of the choices around it. So it is settled once per value: when it
    matches, the choices within it are dropped, and the outcome is memoized. If all patterns with a choice are of this kind, the work is
    bounded by the number of patterns times the number of values.

    Attributes:
      bound: the value of each matched pattern, in the order of matching.
      users: returns the operations that use a value.
    """

    def __init__(self, root: "DFPattern", users: Users) -> None:
        self.bound: dict[DFPattern, ir.Value] = {}
        self.users = users
        self._settling = _settling(root)
        self._choices: list[_Choice] = []
        self._outcomes: dict[_Key | None, tuple[_Key, ...] | None] = {}
        self._producers: dict[ir.Value, str | None] = {}
        self._alone: dict[_Key, bool] = {}

    def solve(self, root: "DFPattern", value: ir.Value) -> bool:
        """Whether the pattern matches the value; `bound` is the match."""
        goals: _Goals | None = (root, value, ())
        try:
            while goals:
                goals = self._meet(*goals)
                while goals is None and self._choices:
                    goals = self._retry()
        finally:
            self._choices.clear()  # its iterators refer to this search: a cycle that would keep the whole program alive
        return goals is not None

    def matches_alone(self, pattern: "DFPattern", value: ir.Value) -> bool:
        """Whether a pattern outside of this search matches a value."""
        key = (pattern, value)
        found = self._alone.get(key)
        if found is None:
            found = self._alone[key] = pattern.match(value, self.users) is not None
        return found

    def _meet(self, pattern: Any, value: ir.Value, rest: _Goals) -> _Goals | None:
        """Meets the first goal: returns its subgoals, and the rest; None if it fails."""
        bound = self.bound
        if isinstance(pattern, _Settled):
            self._outcomes[pattern.key] = tuple(itertools.islice(bound.items(), pattern.bound, None))
            del self._choices[pattern.choices :]
            return rest
        known = bound.get(pattern)
        if known is not None:
            return rest if known == value else None
        key = (pattern, value) if pattern in self._settling else None
        if key in self._outcomes:
            outcome = self._outcomes[key]
            if outcome is None:
                return None
            bound.update(outcome)
            return rest
        if key is not None:
            rest = (_Settled(key, len(bound), len(self._choices)), None, rest)
        bound[pattern] = value
        found = pattern.alternatives(value, self)
        if isinstance(found, tuple):
            found = [subgoals for subgoals in found if self._is_plausible(subgoals)]
            if key is None and len(found) < 2:
                return _before(found[0], rest) if found else None
        self._choices.append(_Choice(iter(found), rest, len(bound), key))
        return self._retry()

    def _is_plausible(self, subgoals: Subgoals) -> bool:
        """Whether the values are results of the operators in which the patterns end: most mismatches are found here."""
        for pattern, value in subgoals:
            names = pattern.root_operators
            if names is not None:
                name = self._producers.get(value, "")
                if name == "":
                    name = value.owner.operation.name if isinstance(value, ir.OpResult) else None
                    self._producers[value] = name
                if name not in names:
                    return False
        return True

    def _retry(self) -> _Goals | None:
        """The goals of the next alternative of the last choice; if there is none, None, and the choice is dropped."""
        choice = self._choices[-1]
        while len(self.bound) > choice.bound:
            self.bound.popitem()
        subgoals = next(choice.alternatives, None)
        if subgoals is not None:
            return _before(subgoals, choice.rest)
        self._choices.pop()
        if choice.key is not None:
            self._outcomes[choice.key] = None
        return None


def _before(subgoals: Subgoals, rest: _Goals) -> _Goals:
    for pattern, value in reversed(subgoals):
        rest = (pattern, value, rest)
    return rest


def _settling(root: "DFPattern") -> "frozenset[DFPattern]":
    """The patterns below `root` that have a choice and whose direct and indirect subpatterns occur nowhere else."""
    if root.settling is None:
        below = _below(root)
        places = Counter(part for pattern in (root, *below) for part in pattern.parts)
        found = []
        for pattern in below:
            if pattern.has_choice:
                inner = _below(pattern)
                within = Counter(part for other in (pattern, *inner) for part in other.parts)
                if all(within[part] == places[part] for part in inner):
                    found.append(pattern)
        root.settling = frozenset(found)
    return root.settling


def _below(pattern: "DFPattern") -> "list[DFPattern]":
    """The direct and indirect subpatterns of a pattern, each once."""
    found: dict[DFPattern, None] = {}
    pending = list(pattern.parts)
    while pending:
        part = pending.pop()
        if part not in found:
            found[part] = None
            pending += part.parts
    return list(found)
