"""Arithmetic on tensors as Python writes it."""

from collections.abc import Callable
from typing import Any

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.relay.operators import Operators
from relayc.frontend.steps import cast, strided_slice
from relayc.operators import forward


class Term(Operators["Term"]):
    """A tensor with Python's operators: numbers among the operands have its element type.

    Attributes:
      tensor: the tensor.
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def _apply(self, name: str, *operands: Any) -> "Term":
        return Term(emit(name, *(v.tensor if isinstance(v, Term) else constant(v, self.tensor.dtype) for v in operands)))

    def max(self, other: Any) -> "Term":
        """The larger of two."""
        return self._apply("maximum", self, other)

    def min(self, other: Any) -> "Term":
        """The smaller of two."""
        return self._apply("minimum", self, other)

    def eq(self, other: Any) -> "Term":
        """Whether two are equal."""
        return self._apply("equal", self, other)

    def where(self, then: Any, otherwise: Any) -> "Term":
        """Selects between two values by this bool; at least one is a Term."""
        dtype = next(v.tensor.dtype for v in (then, otherwise) if isinstance(v, Term))
        values = [v.tensor if isinstance(v, Term) else constant(v, dtype) for v in (then, otherwise)]
        return Term(emit("where", self.tensor, *values))

    def exp(self) -> "Term":
        """e to the power of it."""
        return self._apply("exp", self)

    def cast(self, dtype: str) -> "Term":
        """In another element type."""
        return Term(cast(self.tensor, dtype))

    __and__: Callable[["Term", "Term"], "Term"] = forward("logical_and")
    __or__: Callable[["Term", "Term"], "Term"] = forward("logical_or")
    __invert__: Callable[["Term"], "Term"] = forward("logical_not")

    def part(self, axis: int, begin: int, end: int | None = None) -> "Term":
        """A part along an axis: one element, with its axis, by default."""
        return Term(strided_slice(self.tensor, [begin], [begin + 1 if end is None else end], [1], [axis]))

    def field(self, index: int) -> "Term":
        """One element of the last axis, without it."""
        found = self.part(self.tensor.rank - 1, index)
        return Term(emit("squeeze", found.tensor, axis=(found.tensor.rank - 1,)))


def stacked(*terms: Term) -> Term:
    """Terms along a new last axis."""
    return Term(emit("stack", *(term.tensor for term in terms), axis=terms[0].tensor.rank))
