"""Symbols of a program of the relay stage: fixed to a size, or bounded."""

from collections.abc import Iterator, Mapping
from typing import Any

from relayc.dialects.functions import refresh_signature, signature_of
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import RelayType, TensorType, TupleType, flat_types, relay_type
from relayc.frontend.dimensions import check_names, ranges_of
from relayc.symbolic import Dim, Size, substitute


def bind_dims(mod: IRModule, dims: Mapping[str, int | tuple[int, int]]) -> None:
    """Puts sizes in the place of symbols everywhere, and bounds others (see `relayc.compile`).

    Raises ModelError where a name is no symbol of a function's arguments, or what is given no size.
    """
    fixed, bounded = ranges_of(dims)
    with mod.context, ir.Location.unknown(), mod.ranges:
        functions = [op for op in mod.module.body.operations if isinstance(op, func.FuncOp)]
        types = [relay_type(t) for f in functions if len(f.regions[0].blocks) for t in signature_of(f).inputs]
        check_names("dims", dims, sorted({name for t in types for leaf in flat_types(t) for name in leaf.symbols}), "dimensions")
        if fixed:
            for function in functions:
                _substitute(function.operation, fixed)
    if bounded or fixed:
        kept = {name: known for name, known in mod.ranges.items() if name not in fixed}
        mod.set_ranges(kept | bounded)
    mod.verify()


def _substitute(function: ir.Operation, values: Mapping[str, int]) -> None:
    for op in _inside(function):
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_type(_type(argument.type, values))
        for result in op.results:
            result.set_type(_type(result.type, values))
        view = op.opview
        if isinstance(view, Op):
            for name, spec in view.attr_specs.items():
                old = getattr(view, name)
                new = _value(old, values)
                encoded = None if new == old else spec.encode(new)
                if encoded is not None:
                    op.attributes[spec.key] = encoded
    if len(function.regions[0].blocks):
        refresh_signature(function.opview)


def _inside(root: ir.Operation) -> Iterator[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    yield from found


def _type(type_: ir.Type, values: Mapping[str, int]) -> ir.Type:
    if isinstance(type_, (ir.RankedTensorType, ir.TupleType)):
        return _substituted(relay_type(type_), values).to_mlir()
    return type_


def _substituted(type_: RelayType, values: Mapping[str, int]) -> RelayType:
    if isinstance(type_, TensorType):
        return type_.with_shape(d if d is None else substitute(d, values) for d in type_.shape)
    return TupleType(tuple(_substituted(t, values) for t in type_.fields))


def _value(value: Any, values: Mapping[str, Size]) -> Any:
    if isinstance(value, Dim):
        return substitute(value, values)
    return tuple(_value(v, values) for v in value) if isinstance(value, tuple) else value
