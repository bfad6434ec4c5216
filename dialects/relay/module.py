"""A relay program: the MLIR module and the parameter table its large constants live in (Relay's IRModule with its params)."""

import importlib
import re
from collections.abc import Mapping, Sequence

import numpy as np

from relayc.dialects.discardable import RANGES, STRINGS, strings_attribute
from relayc.dialects.mlir import ir, make_context
from relayc.dialects.nesting import parse_module
from relayc.dialects.relay.elements import dense_array, dense_attr
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.ranges import read_ranges
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import STRING, dtype_of
from relayc.symbolic import Range, Ranges

INLINE_BYTES = 1024
"""Constants up to this size stand in the IR; larger ones in the parameter table, and the IR holds their key."""

_QUOTED = r'"(?:[^"\\\n]|\\.)*"'
"""A text in MLIR, as a regular expression."""


def _read_strings(attribute: ir.Attribute) -> tuple[str, ...]:
    """The value of the attribute `relay.strings`. Raises RelayError for an invalid form."""
    found = list(attribute) if isinstance(attribute, ir.ArrayAttr) else []
    texts = tuple(entry.value for entry in found if isinstance(entry, ir.StringAttr))
    if len(texts) < len(found) or texts[:1] != ("",) or len(set(texts)) < len(texts):
        raise RelayError(f"{STRINGS}: expected texts, each once and the empty one first, found {attribute}")
    return texts


def _ranges_in(text: str) -> Ranges:
    """The ranges in the attribute `relay.symbols` of a module in text form. Raises RelayError for an invalid form."""
    for found in re.finditer(rf"{_QUOTED}|\b{re.escape(RANGES.name)} = (\{{[^}}]*\}})", text):
        if found[1] is not None:
            return read_ranges(ir.Attribute.parse(found[1]))
    return Ranges()


class IRModule:
    """An MLIR module in the `relay` stage, its context and its parameter table.

    Attributes:
      module: the MLIR module; its entry is the function `main`, whose arguments carry their names in the attribute `relay.name`. What is
        known of the symbols in its types stands in its attribute `relay.symbols`: `{seq = array<i64: 1, 512, 128>}` says that seq is at
        least 1, at most 512, and typically 128. The program's strings stand in `relay.strings`, by number; number 0 is the empty one.
      params: arrays by key; never changed in place, as keys may share an array.
    """

    def __init__(self, module: ir.Module, params: Mapping[str, np.ndarray] | None = None) -> None:
        self.module = module
        self.params = dict(params or {})
        self._ranges: tuple[ir.Attribute | None, Ranges] | None = None
        self._strings: tuple[ir.Attribute, dict[str, int]] | None = None

    @staticmethod
    def parse(text: str, params: Mapping[str, np.ndarray] | None = None, context: ir.Context | None = None) -> "IRModule":
        """Parses MLIR text.

        Raises:
          MLIRError: the text does not parse.
          RelayError: the program breaks an operator's rules, or nests too deep.
        """
        with context or make_context(), ir.Location.unknown(), _ranges_in(text):  # MLIR verifies while it parses
            module = IRModule(parse_module(text), params)
            module.verify()
            return module

    def verify(self) -> None:
        """Checks the program. Raises MLIRError if its structure is invalid, RelayError if it violates an operator's rules."""
        with self.ranges:
            self.module.operation.verify()
        self._numbers()

    @property
    def ranges(self) -> Ranges:
        """The ranges of the symbols in the types of the program. Raises RelayError if the module's attribute has an invalid form."""
        found = self.module.operation.attributes
        if not RANGES.on(found):
            if self._ranges is None or self._ranges[0] is not None:
                self._ranges = None, Ranges()
        elif self._ranges is None or self._ranges[0] is None or self._ranges[0] != RANGES.of(found):
            self._ranges = RANGES.of(found), read_ranges(RANGES.of(found))
        return self._ranges[1]

    def set_ranges(self, ranges: Mapping[str, Range]) -> None:
        """Replaces the known ranges of symbols."""
        attributes = {name: ir.DenseI64ArrayAttr.get([r.low, r.high, r.hint], self.context) for name, r in ranges.items()}
        RANGES.put(self.module.operation, ir.DictAttr.get(attributes, self.context))

    @property
    def strings(self) -> tuple[str, ...]:
        """The program's strings by number, at least the empty one. Raises RelayError if the module says them in a wrong form."""
        return tuple(self._numbers())

    def _numbers(self) -> dict[str, int]:
        """The number of each string. Not to be changed."""
        attributes = self.module.operation.attributes
        if not STRINGS.on(attributes):
            return {"": 0}
        if self._strings is None or self._strings[0] != STRINGS.of(attributes):
            texts = _read_strings(STRINGS.of(attributes))
            self._strings = STRINGS.of(attributes), {text: number for number, text in enumerate(texts)}
        return self._strings[1]

    def set_strings(self, texts: Sequence[str]) -> None:
        """Replaces the strings of the program; they are distinct, and the empty string is first."""
        with self.context:
            STRINGS.put(self.module.operation, strings_attribute(texts))

    def numbers_of(self, texts: np.ndarray) -> np.ndarray:
        """The numbers of strings, an array of dtype STRING of the same shape; a string that had none gets one.

        Raises TypeError for an element that is no string.
        """
        flat = texts.reshape(-1).tolist()
        wrong = next((text for text in flat if not isinstance(text, str)), None)
        if wrong is not None:
            raise TypeError(f"expected strings, found {wrong!r} of type {type(wrong).__name__}")
        numbers = dict(self._numbers())
        count = len(numbers)
        found = np.array([numbers.setdefault(text, len(numbers)) for text in flat], np.int64)
        if len(numbers) > count:
            self.set_strings(tuple(numbers))
        return found.view(STRING).reshape(texts.shape)

    def texts_of(self, numbers: np.ndarray) -> np.ndarray:
        """The strings that an array of dtype STRING stands for, an array of objects of the same shape."""
        strings = self.strings
        found = np.empty(numbers.size, object)
        found[:] = [strings[number] for number in numbers.reshape(-1).view(np.int64).tolist()]
        return found.reshape(numbers.shape)

    @property
    def context(self) -> ir.Context:
        """The MLIR context of the module."""
        return self.module.context

    @property
    def main(self) -> ir.Operation:
        """The function `main`. Raises RelayError if there is none."""
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
        return Constant(value=ir.StringAttr.get(key), shape=array.shape, dtype=dtype_of(array)).result

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
        with self.ranges:  # MLIR verifies while it prints
            return str(self.module)

    def _repr_html_(self) -> str | None:
        """The program as HTML for a notebook; None if the viewer is not installed."""
        try:
            # By name, because the viewer imports this module.
            return importlib.import_module("relayc").notebook_html(self)
        except ModuleNotFoundError:
            return None
