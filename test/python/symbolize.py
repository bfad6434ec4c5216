"""Programs of static sizes made symbolic, and symbolic ones made static again."""

from collections.abc import Mapping
from typing import Any

from relayc.dialects.functions import refresh_signature
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.scopes import replace_symbols
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType
from relayc.symbolic import Dim, Range, Size, symbol


def symbolize(mod: IRModule, primes: Mapping[int, str], ranges: Mapping[str, Range] | None = None) -> IRModule:
    """Makes `main` of a program without branches and loops symbolic, in place.

    Args:
      mod: the program; sizes that the chosen primes divide must stem from the sizes that are to be symbols.
      primes: the symbol that each prime becomes, wherever it is a factor of a size of an argument or of an attribute that says sizes.
      ranges: what is known of the symbols; at least 1, and typically the prime, where nothing is said.
    """
    stated = {name: Range(1, hint=prime) for prime, name in primes.items()}
    mod.set_ranges({**stated, **(ranges or {})})
    with mod.context, ir.Location.unknown(), mod.ranges:
        block = mod.main.regions[0].blocks[0]
        for argument in block.arguments:
            type_ = TensorType.of(argument)
            argument.set_type(type_.with_shape(_symbolic(d, primes) for d in type_.sizes).to_mlir())
        for op in block.operations:
            if isinstance(op, Op):
                _retype(op, primes)
        refresh_signature(mod.main)
    mod.verify()
    return mod


def constants_as_arguments(mod: IRModule, primes: Mapping[int, str]) -> IRModule:
    """Makes arguments of the constants of `main` that have a size which one of the primes divides, in place.

    They were folded from the sizes that are to be symbols.
    """
    with mod.context, ir.Location.unknown():
        block = mod.main.regions[0].blocks[0]
        for op in list(block.operations):
            if isinstance(op, Constant) and any(d % prime == 0 for d in TensorType.of(op.result).static_shape for prime in primes):
                op.result.replace_all_uses_with(block.add_argument(op.result.type, op.location))
                op.operation.erase()
        if "arg_attrs" in mod.main.attributes:
            del mod.main.attributes["arg_attrs"]  # they are as many as there were arguments
        refresh_signature(mod.main)
    mod.verify()
    return mod


def at_sizes(mod: IRModule, sizes: Mapping[str, int]) -> IRModule:
    """A program in which symbols are the numbers given, in place."""
    with mod.context, ir.Location.unknown(), mod.ranges:
        replace_symbols(mod.module.operation, sizes)
    mod.set_ranges({})
    mod.verify()
    return mod


def _retype(op: Op, primes: Mapping[int, str]) -> None:
    for name, spec in op.attr_specs.items():
        value = getattr(op, name)
        if spec.says_sizes and value is not None:
            op.operation.attributes[spec.key] = spec.encode(_each(value, primes))
    for result, type_ in zip(op.operation.results, op.inferred_types(), strict=True):
        result.set_type(type_.to_mlir())


def _each(value: Any, primes: Mapping[int, str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_symbolic(v, primes) for v in value)
    return _symbolic(value, primes) if isinstance(value, int) else value


def _symbolic(size: Size, primes: Mapping[int, str]) -> Size:
    if isinstance(size, Dim) or not 0 < size < 1 << 31:
        return size
    found: Size = 1
    for prime, name in primes.items():
        while size % prime == 0:
            size, found = size // prime, found * symbol(name)
    return found * size
