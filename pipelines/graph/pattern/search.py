"""The search for a match: backtracking over a list of goals, with the outcome kept of what is asked for again."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from relayc.dialects.mlir import ir
from relayc.pipelines.graph.pattern.match import Users

if TYPE_CHECKING:
    from relayc.pipelines.graph.pattern.language import DFPattern

_Goals = tuple[Any, ...]
"""What is still to be met, as a linked list, whose ends choices share: (pattern, value, the rest), or (_Settled, None, the rest)."""

_Key = tuple["DFPattern", ir.Value]

Subgoals = tuple[_Key, ...]
"""Patterns and the values that they must match, in the order in which they are tried."""


class _Settled(NamedTuple):
    """The goal behind those of a pattern that is settled when it matches: `bound` and `choices` are how many there were before it."""

    key: _Key
    bound: int
    choices: int


class _Choice(NamedTuple):
    """Alternatives not tried yet, and what to go back to for them: the goals behind them, and how many patterns were bound."""

    alternatives: Iterator[Subgoals]
    rest: _Goals
    bound: int
    key: _Key | None


class Search:
    """A search for one match: goals are met one after the other; where one cannot be met, the last choice is made anew.

    A pattern whose parts stand in no other place means the same whatever is chosen around it. So it is settled for a value once and for
    all: when it matches, the choices within it are dropped, and what came out is kept in case it is asked for again. Where all patterns
    with a choice are such patterns, the work is bounded by the number of patterns times that of values.

    Attributes:
      bound: the value of each pattern met so far, in the order in which they were met.
      users: gives the operations that use a value.
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
        """Whether the pattern matches the value; `bound` says how."""
        goals: _Goals | None = (root, value, ())
        try:
            while goals:
                goals = self._meet(*goals)
                while goals is None and self._choices:
                    goals = self._retry()
        finally:
            self._choices.clear()  # iterators among them refer to this search: a cycle that would keep the whole program
        return goals is not None

    def matches_alone(self, pattern: "DFPattern", value: ir.Value) -> bool:
        """Whether a pattern that has no part in this search matches a value."""
        key = (pattern, value)
        found = self._alone.get(key)
        if found is None:
            found = self._alone[key] = pattern.match(value, self.users) is not None
        return found

    def _meet(self, pattern: Any, value: ir.Value, rest: _Goals) -> _Goals | None:
        """Meets the first goal: the goals that it comes down to, and the rest; None where it cannot be met."""
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
        """Whether the values are at least results of such operators as the patterns end in: most of what does not match stops here."""
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
        """The goals of the next alternative of the last choice; where there is none, None, and the choice is dropped."""
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
    """The patterns below `root` that have a choice and whose parts, and the parts of these, stand in no place outside of them."""
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
    """The parts of a pattern, their parts and so on, each once."""
    found: dict[DFPattern, None] = {}
    pending = list(pattern.parts)
    while pending:
        part = pending.pop()
        if part not in found:
            found[part] = None
            pending += part.parts
    return list(found)
