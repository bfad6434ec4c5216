"""The registry of composed operators."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relayc.dialects.relay.attributes import REQUIRED

Results = Callable[[Mapping[str, Any], Sequence[Any]], int]


@dataclass(frozen=True)
class Composed:
    """An operator that is composed of others.

    Attributes:
      name: Relay's.
      operands: their names.
      results: how many it has: a function of the attributes and operands of a call.
      function: composes it: of tensors and attributes, a tensor or a tuple of tensors.
      attrs: names of the attributes with their defaults in text (REQUIRED where there is none).
      parameters: those of the Python function that makes calls, in order, with their defaults (REQUIRED).
      is_variadic: whether the operand is a tuple of any number of tensors.
      tuples: names of the operands that are tuples of tensors, where there are other operands too.
    """

    name: str
    operands: tuple[str, ...]
    results: Results
    function: Callable[..., Any]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    is_variadic: bool = False
    tuples: frozenset[str] = frozenset()


COMPOSED: dict[str, Composed] = {}
"""Composed operators by Relay's names."""


CONV: Mapping[str, Any] = {
    **{"strides": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1, "channels": None, "kernel_size": None},
    **{"data_layout": "NCHW", "kernel_layout": "OIHW", "out_layout": "", "out_dtype": ""},
}
"""The attributes of convolutions of images."""


def composed(
    name: str,
    order: str = "",
    results: int | Results = 1,
    operands: str = "",
    attributes: Mapping[str, Any] | None = None,
    **defaults: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function that composes an operator. An operand that is annotated as a tuple of tensors is one.

    Args:
      operands: their names, where those of the parameters are others.
      attributes: those that the function takes as `**attrs`, with their defaults.
      results: how many there are, or a function of the attributes and operands of a call that says it.
      order: names of the parameters of the Python function that makes calls, where they are not the operands and then the attributes.
      defaults: defaults of these parameters that are not those of the attributes; of an operand, too.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = list(inspect.signature(function).parameters.values())
        own = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL))
        names = tuple(operands.split()) or own
        attrs = {p.name: REQUIRED if p.default is p.empty else p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        attrs |= attributes or {}
        is_variadic = not operands and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
        tuples = frozenset(p.name for p in parameters if p.name in own and str(p.annotation).startswith("tuple["))
        in_order = {p: {**attrs, **defaults}.get(p, REQUIRED) for p in order.split() or (*names, *attrs)}
        count = results if callable(results) else lambda *_: results
        COMPOSED[name] = Composed(name, names, count, function, attrs, in_order, is_variadic, tuples)
        return function

    return register
