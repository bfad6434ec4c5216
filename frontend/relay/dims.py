"""Symbols of a program of the relay stage: fixed to a size, or bounded."""

from collections.abc import Mapping

from relayc.dialects.functions import is_public, signature_of
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.scopes import replace_symbols
from relayc.dialects.relay.types import relay_type
from relayc.dialects.relay.unify import symbols_of_type
from relayc.frontend.dimensions import check_names, ranges_of


def bind_dims(mod: IRModule, dims: Mapping[str, int | tuple[int, int]]) -> None:
    """Puts sizes in the place of symbols everywhere, and bounds others (see `relayc.compile`).

    Raises:
      ModelError: a name is no symbol of the arguments of a function that can be called from outside, or what is given is no size.
      RelayError: an operator does not work with a size.
    """
    fixed, bounded = ranges_of(dims)
    with mod.context, ir.Location.unknown(), mod.ranges:
        functions = [op for op in mod.module.body.operations if isinstance(op, func.FuncOp) and is_public(op)]
        names = {name for f in functions for t in signature_of(f).inputs for name in symbols_of_type(relay_type(t))}
        check_names("dims", dims, sorted(names), "dimensions")
        if fixed:
            replace_symbols(mod.module.operation, fixed)
    mod.set_ranges({name: known for name, known in mod.ranges.items() if name not in fixed} | bounded)
    mod.verify()
