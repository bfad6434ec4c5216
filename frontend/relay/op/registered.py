"""Operators and attributes of operators that programs register, by Relay's names.

A registered operator has a type relation, and stands in programs; to be compiled, it is to be rewritten, or composed of others
(`relayc.frontend.relay.op.composed`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from relayc.dialects.relay.errors import RelayError

PATTERN, STATEFUL = "TOpPattern", "TOpIsStateful"


@dataclass
class Registered:
    """An operator that a program has registered.

    Attributes:
      num_inputs: how many operands it has.
      arguments: names of those that are described.
      attrs_type_key: the type of its attributes.
      support_level: as it was set.
      attrs: names of its attributes with their defaults; of one that a program registers, none.
      refusal: why it cannot be compiled: what was expected in its place.
      relation: of the types of the operands and the attributes, the type of the result.
    """

    name: str
    describe: str = ""
    num_inputs: int = 0
    arguments: list[str] = field(default_factory=list)
    attrs_type_key: str = ""
    support_level: int | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    refusal: str = "expected an operator that can be compiled, found one that is only registered"
    relation: Callable[[Any, Any], Any] | None = None

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of its operands."""
        return tuple(self.arguments[i] if i < len(self.arguments) else f"data_{i}" for i in range(self.num_inputs))


REGISTERED: dict[str, Registered] = {}
"""Operators that programs have registered, by name."""

_ATTRS: dict[tuple[str, str], Any] = {}


def register(op_name: str, describe: str = "") -> None:
    """Registers an operator. Raises RelayError if the name is taken."""
    from relayc.frontend.relay.op.table import UnsupportedOperator, check_name

    try:
        check_name(op_name)
    except UnsupportedOperator:
        REGISTERED[op_name] = Registered(op_name, describe)
    else:
        raise RelayError(f"Operator {op_name} is registered before")


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Sets an attribute of an operator: a value, or the function that this decorates."""
    if value is not None:
        _ATTRS[op_name, attr_key] = value
        return value
    return lambda function: register_op_attr(op_name, attr_key, function)


def register_pattern(op_name: str, pattern: Any, level: int = 10) -> None:
    """Sets the fusion pattern of an operator."""
    register_op_attr(op_name, PATTERN, pattern)


def register_stateful(op_name: str, stateful: bool, level: int = 10) -> None:
    """Sets whether an operator has side effects."""
    register_op_attr(op_name, STATEFUL, stateful)


def attribute(op_name: str, key: str) -> Any:
    """An attribute of an operator; None if it is not set. All operators have a fusion pattern."""
    if (op_name, key) not in _ATTRS and key == PATTERN and op_name not in REGISTERED:
        from relayc.dialects.relay.facts import Pattern
        from relayc.frontend.relay.op.table import signature

        cls = signature(op_name).cls
        return Pattern.OPAQUE if cls is None else cls.pattern
    return _ATTRS.get((op_name, key))


def reset_attribute(op_name: str, key: str) -> None:
    """Takes an attribute from an operator."""
    _ATTRS.pop((op_name, key), None)
