"""The ranges of symbols in a module's types, stored in its attribute `relay.symbols`."""

from relayc.dialects.discardable import RANGES
from relayc.dialects.mlir import ir
from relayc.dialects.operations import outermost
from relayc.dialects.relay.errors import RelayError
from relayc.symbolic import Range, Ranges


def read_ranges(attribute: ir.Attribute) -> Ranges:
    """The value of the attribute. Raises RelayError for an invalid form."""
    found = {}
    for entry in attribute if isinstance(attribute, ir.DictAttr) else []:
        numbers = list(entry.attr) if isinstance(entry.attr, ir.DenseI64ArrayAttr) else []
        if len(numbers) != 3 or not numbers[0] <= numbers[1]:
            raise RelayError(f"{RANGES}: {entry.name}: expected least, largest and typical value as array<i64: ...>, found {entry.attr}")
        found[entry.name] = Range(*numbers)
    if not isinstance(attribute, ir.DictAttr):
        raise RelayError(f"{RANGES}: expected a dictionary of symbols, found {attribute}")
    return Ranges(found)


def ranges_around(operation: ir.Operation) -> Ranges | None:
    """The ranges of the module that contains an operation; None if there is no module, or it has no ranges."""
    module = outermost(operation)
    return read_ranges(RANGES.of(module)) if RANGES.on(module) else None
