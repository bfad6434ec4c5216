"""A relay program: the MLIR module and the parameter table its large constants live in (Relay's IRModule with its params)."""

import re
from collections.abc import Mapping

import numpy as np

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay.elements import dense_array, dense_attr
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.structure import Constant
from relayc.symbolic import Range, Ranges

INLINE_BYTES = 1024
"""Constants up to this size stand in the IR; larger ones in the parameter table, and the IR holds their key."""

_SYMBOLS = "relay.symbols"


def read_ranges(attribute: ir.Attribute) -> Ranges:
    """What the attribute `relay.symbols` says. Raises RelayError for another form."""
    found = {}
    for entry in attribute if isinstance(attribute, ir.DictAttr) else []:
        numbers = list(entry.attr) if isinstance(entry.attr, ir.DenseI64ArrayAttr) else []
        if len(numbers) != 3 or not 0 <= numbers[0] <= numbers[1]:
            raise RelayError(f"{_SYMBOLS}: {entry.name}: expected least, largest and typical size as array<i64: ...>, found {entry.attr}")
        found[entry.name] = Range(*numbers)
    if not isinstance(attribute, ir.DictAttr):
        raise RelayError(f"{_SYMBOLS}: expected a dictionary of symbols, found {attribute}")
    return Ranges(found)


def _ranges_in(text: str) -> Ranges:
    """What the attribute `relay.symbols` of a module says that is text yet. Raises RelayError for another form."""
    found = re.search(rf"\b{re.escape(_SYMBOLS)} = (\{{[^}}]*\}})", text)
    return read_ranges(ir.Attribute.parse(found[1])) if found else Ranges()


class IRModule:
    """An MLIR module in the `relay` stage, its context and its parameter table.

    Attributes:
      module: the MLIR module; its entry is the function `main`, whose arguments carry their names in the attribute `relay.name`. What is
        known of the symbols in its types stands in its attribute `relay.symbols`: `{seq = array<i64: 1, 512, 128>}` says that seq is at
        least 1, at most 512, and typically 128.
      params: arrays by key; never changed in place, as keys may share an array.
    """

    def __init__(self, module: ir.Module, params: Mapping[str, np.ndarray] | None = None) -> None:
        self.module = module
        self.params = dict(params or {})
        self._ranges: tuple[ir.Attribute | None, Ranges] | None = None

    @staticmethod
    def parse(text: str, params: Mapping[str, np.ndarray] | None = None, context: ir.Context | None = None) -> "IRModule":
        """Parses MLIR text. Raises MLIRError for text that does not parse, RelayError for a program that breaks an operator's rules."""
        with context or make_context(), ir.Location.unknown(), _ranges_in(text):  # MLIR verifies what it parses
            module = IRModule(ir.Module.parse(text), params)
            module.verify()
            return module

    def verify(self) -> None:
        """Checks the program. Raises MLIRError where its structure is broken, RelayError where an operator's rules are."""
        with self.ranges:
            self.module.operation.verify()

    @property
    def ranges(self) -> Ranges:
        """What is known of the symbols in the types of the program. Raises RelayError where the module says that in a wrong form."""
        found = self.module.operation.attributes
        if _SYMBOLS not in found:
            if self._ranges is None or self._ranges[0] is not None:
                self._ranges = None, Ranges()
        elif self._ranges is None or self._ranges[0] is None or self._ranges[0] != found[_SYMBOLS]:
            self._ranges = found[_SYMBOLS], read_ranges(found[_SYMBOLS])
        return self._ranges[1]

    def set_ranges(self, ranges: Mapping[str, Range]) -> None:
        """Says what is known of symbols, instead of what was said before."""
        attributes = {name: ir.DenseI64ArrayAttr.get([r.low, r.high, r.hint], self.context) for name, r in ranges.items()}
        self.module.operation.attributes[_SYMBOLS] = ir.DictAttr.get(attributes, self.context)

    @property
    def context(self) -> ir.Context:
        return self.module.context

    @property
    def main(self) -> ir.Operation:
        """The function `main`. Raises RelayError where there is none."""
        for op in self.module.body.operations:
            if "sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == "main":
                return op
        raise RelayError("the module has no function main")

    def add_param(self, array: np.ndarray, key: str = "const") -> str:
        """Enters `array` in the parameter table under `key`, made unique by a number, and gives the key."""
        unique, n = key, 0
        while unique in self.params:
            n += 1
            unique = f"{key}.{n}"
        self.params[unique] = array
        return unique

    def constant(self, array: np.ndarray, key: str = "const") -> ir.Value:
        """Builds a relay.constant at the ambient insertion point: elements in the IR up to INLINE_BYTES, else in the parameter table."""
        array = np.asarray(array)
        if array.nbytes <= INLINE_BYTES:
            return Constant(value=dense_attr(array)).result
        return self.parameter(self.add_param(array, key))

    def parameter(self, key: str) -> ir.Value:
        """Builds a relay.constant for the entry `key` of the parameter table."""
        array = self.params[key]
        return Constant(value=ir.StringAttr.get(key), shape=array.shape, dtype=array.dtype.name).result

    def value_of(self, value: ir.Value) -> np.ndarray | None:
        """The array of a value made by relay.constant; None for any other value, and for a parameter that is not in the table."""
        owner = value.owner
        op = owner.opview if isinstance(owner, ir.Operation) else owner
        if not isinstance(op, Constant):
            return None
        if op.key is not None:
            return self.params.get(op.key)
        return dense_array(op.attributes["value"])

    def __str__(self) -> str:
        with self.ranges:  # MLIR verifies what it prints
            return str(self.module)
