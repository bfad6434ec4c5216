"""Relations between types by name, and a solver for them."""

from collections.abc import Callable, Sequence
from typing import Any

from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.expr import Call, Op, Var
from relayc.frontend.relay.inference.operators import call_type
from relayc.frontend.relay.inference.unify import Unifier

Relation = Callable[[Sequence[t.Type], Any], "t.Type | None"]
"""Of the types of operands and attributes, the type of the result; None if the operands do not fit."""


def identity(types: Sequence[t.Type], attrs: Any = None) -> t.Type:
    """The type of the first operand."""
    return types[0]


def broadcast(types: Sequence[t.Type], attrs: Any = None) -> t.Type:
    """The broadcast type of two tensors. Raises RelayError if they do not broadcast."""
    return call_type(Call(Op("add"), [Var("lhs"), Var("rhs")]), types)


RELATIONS: dict[str, Relation] = {"Identity": identity, "Broadcast": broadcast}
"""Relations by Relay's names."""


class TypeSolver:
    """Infers types from equalities and relations."""

    def __init__(self) -> None:
        self._unifier = Unifier()
        self._waiting: list[t.TypeRelation] = []

    def unify(self, a: t.Type, b: t.Type) -> t.Type:
        """Makes two types equal and returns the common type. Raises TypeInferenceError."""
        return self._unifier.resolve(self._unifier.unify(a, b))

    def resolve(self, type_: t.Type) -> t.Type:
        """A type with all known parts filled in."""
        return self._unifier.resolve(type_)

    def add_constraint(self, relation: t.TypeRelation) -> None:
        """Adds a relation; `func` may be one of `RELATIONS` or another function."""
        self._waiting.append(relation)

    def solve(self) -> bool:
        """Whether all relations are met. Raises TypeInferenceError if one cannot be."""
        progress = True
        while progress:
            left = [relation for relation in self._waiting if not self._met(relation)]
            progress, self._waiting = len(left) < len(self._waiting), left
        return not self._waiting

    def _met(self, relation: t.TypeRelation) -> bool:
        inputs = relation.args[: relation.num_inputs]
        if relation.func is not identity:
            if not all(map(self._unifier.is_complete, inputs)):
                return False
            inputs = tuple(map(self._unifier.resolve, inputs))
        found = relation.func(inputs, relation.attrs)
        if found is None:
            return False
        self._unifier.unify(relation.args[relation.num_inputs], found)
        return True
