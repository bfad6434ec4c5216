"""A relay program: the MLIR module and the parameter table its large constants live in (Relay's IRModule with its params)."""

from collections.abc import Mapping

import numpy as np

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay.elements import dense_array, dense_attr
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.structure import Constant

INLINE_BYTES = 1024
"""Constants up to this size stand in the IR; larger ones in the parameter table, and the IR holds their key."""


class IRModule:
    """An MLIR module in the `relay` stage, its context and its parameter table.

    Attributes:
      module: the MLIR module; its entry is the function `main`, whose arguments carry their names in the attribute `relay.name`.
      params: arrays by key; never changed in place, as keys may share an array.
    """

    def __init__(self, module: ir.Module, params: Mapping[str, np.ndarray] | None = None) -> None:
        self.module = module
        self.params = dict(params or {})

    @staticmethod
    def parse(text: str, params: Mapping[str, np.ndarray] | None = None, context: ir.Context | None = None) -> "IRModule":
        """Parses MLIR text. Raises MLIRError for text that does not parse, RelayError for a program that breaks an operator's rules."""
        with context or make_context(), ir.Location.unknown():
            module = IRModule(ir.Module.parse(text), params)
            module.verify()
            return module

    def verify(self) -> None:
        """Checks the program. Raises MLIRError where its structure is broken, RelayError where an operator's rules are."""
        self.module.operation.verify()

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
        return str(self.module)
