"""Functions that are compiled for some sizes by themselves, in the attributes of a module: which sizes, and which function is for them.

- `relay.specialize = [{batch = 1 : i64}]` of `main` asks for them.
- `relay.specialized = [@main_batch_1]` of `main` names private functions that are `main` at such sizes, those of most symbols first.
- `relay.sizes = {batch = 1 : i64}` of each of these says which.
- `relay.known_as = "main"` of these, and of what is for all other sizes: the name that errors call it by.
"""

from collections.abc import Iterable, Mapping, Sequence

from relayc.dialects.discardable import KNOWN_AS, SIZES, SPECIALIZE, SPECIALIZED
from relayc.dialects.functions import Function, symbol_name
from relayc.dialects.mlir import ir
from relayc.dialects.size_attribute import i64_attribute


def sizes_attribute(sizes: Mapping[str, int]) -> ir.DictAttr:
    """Sizes by symbol as an attribute; they are below 2^63."""
    return ir.DictAttr.get({name: i64_attribute(size) for name, size in sizes.items()})


def read_sizes(attribute: ir.Attribute) -> dict[str, int] | None:
    """The sizes in an attribute; None if it is anything else."""
    entries = list(attribute) if isinstance(attribute, ir.DictAttr) else [None]
    if not all(entry is not None and isinstance(entry.attr, ir.IntegerAttr) for entry in entries):
        return None
    return {entry.name: entry.attr.value for entry in entries if entry is not None}


def sizes_of(function: Function) -> dict[str, int]:
    """The sizes that a function is specialised for; empty for a general one."""
    return (read_sizes(SIZES.of(function)) or {}) if SIZES.on(function) else {}


def names_of(function: Function) -> list[str]:
    """Names of the functions that a function is at some sizes."""
    found = ir.ArrayAttr(SPECIALIZED.of(function)) if SPECIALIZED.on(function) else []
    return [ir.FlatSymbolRefAttr(a).value for a in found]


def known_as(function: Function) -> str:
    """The name of a function for callers."""
    return KNOWN_AS.get(function, symbol_name(function))


def ask_for(function: Function, wanted: Iterable[Mapping[str, int]]) -> None:
    """Requests a function for more sizes."""
    before: Sequence[ir.Attribute] = list(ir.ArrayAttr(SPECIALIZE.of(function))) if SPECIALIZE.on(function) else []
    SPECIALIZE.put(function, ir.ArrayAttr.get([*before, *map(sizes_attribute, wanted)]))


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Describes sizes."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())
