"""Arguments of primitives as attributes of their operations in a script, and back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from relayc.dialects.mlir import ir


@dataclass(frozen=True)
class Knob:
    """A number that was chosen from several options: a parameter of a script.

    Attributes:
      name: unique in the script.
      value: the chosen number; a tuple if several numbers are chosen together.
      options: all options; `value` is one of them.
    """

    name: str
    value: Any
    options: tuple[Any, ...]


@dataclass(frozen=True)
class Chosen:
    """A number that a knob chose, as an argument: the value of the knob, or an element of it."""

    knob: Knob
    position: int | None = None

    @property
    def value(self) -> int:
        return self.knob.value if self.position is None else self.knob.value[self.position]


def encode(value: Any, note: Callable[[Knob], None] = lambda knob: None) -> ir.Attribute:
    """Encodes an argument as an attribute; a number that a knob chose becomes a reference to the knob, and `note` is called with the
    knob."""
    if isinstance(value, Chosen):
        note(value.knob)
        name = value.knob.name if value.position is None else f"{value.knob.name}.{value.position}"
        return ir.FlatSymbolRefAttr.get(name)
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, ir.AffineMap):
        return ir.AffineMapAttr.get(value)
    if value is None:
        return ir.UnitAttr.get()
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get_f64(value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, Sequence):
        return ir.ArrayAttr.get([encode(v, note) for v in value])
    raise TypeError(f"expected a number, a text, None, an affine map, or a list of these, found {value!r}")


def decode(attribute: ir.Attribute, knob: Callable[[str], Any]) -> Any:
    """Decodes the argument of an attribute; `knob` returns the value of a knob by name."""
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        name, _, position = attribute.value.partition(".")
        found = knob(name)
        return found[int(position)] if position else found
    if isinstance(attribute, ir.UnitAttr):
        return None
    if isinstance(attribute, ir.BoolAttr):
        return attribute.value
    if isinstance(attribute, (ir.IntegerAttr, ir.FloatAttr, ir.StringAttr, ir.AffineMapAttr)):
        return attribute.value
    if isinstance(attribute, ir.ArrayAttr):
        return [decode(a, knob) for a in attribute]
    raise TypeError(f"expected an argument of a primitive, found {attribute}")
