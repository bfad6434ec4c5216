"""Specialize: copies of `main` for frequent sizes, beside the version for all sizes (Relay's FlexibleShapeDispatch).

For each entry of `relay.specialize` there is a private copy of `main` in which symbols are numbers. All later passes treat it as a separate
function with static shapes: layouts, Winograd, constant folding. The dispatch at the start of `main` is created when it is lowered to the
te stage (see te.dispatch).
"""

from relayc.dialects.discardable import KNOWN_AS, NAME, SIZES, SPECIALIZE, SPECIALIZED
from relayc.dialects.functions import Names, refresh_signature, signature_of, symbol_name, symbols_of, value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.calls import cast_argument, cast_value
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.scopes import is_cast, replace_symbols, symbols_of_value
from relayc.dialects.relay.specializations import read_sizes, sizes_attribute, sizes_text
from relayc.dialects.relay.types import flat_sizes, relay_type, type_of
from relayc.dialects.relay.unify import substitute_type
from relayc.pipelines.context.passes import PassContext, module_pass
from relayc.pipelines.graph.infer_type import infer_type
from relayc.pipelines.graph.inline import read_calls


@module_pass(opt_level=0, name="Specialize")
def specialize(mod: IRModule, ctx: PassContext) -> IRModule:
    """Copies main for the sizes in its attribute relay.specialize."""
    wanted = _wanted(mod)
    if not wanted:
        return mod
    main, names = mod.main, Names(mod.module)
    made: list[ir.Attribute] = []
    last = main
    for sizes in wanted:
        last = copy = _copy(main, last, sizes)
        name = names.free("_".join([symbol_name(main), *(f"{symbol}_{size}" for symbol, size in sizes.items())]))
        copy.attributes["sym_name"] = ir.StringAttr.get(name)
        try:
            mod = infer_type.transform(mod, ctx)
        except RelayError as error:
            raise RelayError(f"specialize: {sizes_text(sizes)}: {error}") from None
        made.append(ir.FlatSymbolRefAttr.get(name))
    SPECIALIZED.put(main, ir.ArrayAttr.get(made))
    return mod


def _wanted(mod: IRModule) -> list[dict[str, int]]:
    """The requested entries, checked; entries of more symbols come first, because they are more specific. Removes the attribute."""
    asked = [op for op in mod.module.body.operations if SPECIALIZE.on(op)]
    if not asked:
        return []
    main = mod.main
    if any(op.operation != main.operation for op in asked):
        raise RelayError(f"@{symbol_name(asked[0])}: {SPECIALIZE}: expected it of main only")
    entries = [read_sizes(entry) for entry in ir.ArrayAttr(SPECIALIZE.of(main))]
    SPECIALIZE.remove(main)
    found = [_checked(sizes, mod) for sizes in entries]
    for i, sizes in enumerate(found):
        if sizes in found[:i]:
            raise RelayError(f"specialize: expected each entry once, found {sizes_text(sizes)} twice")
    return sorted(found, key=len, reverse=True)


def _checked(sizes: dict[str, int] | None, mod: IRModule) -> dict[str, int]:
    """The sizes of an entry in the order of their symbols. Raises RelayError for an entry that main cannot have."""
    arguments = list(mod.main.regions[0].blocks[0].arguments)
    symbols = sorted(frozenset().union(*map(symbols_of_value, arguments)))
    known = f"symbols of the inputs of main ({', '.join(symbols) or 'none'})"
    if not sizes:
        raise RelayError(f"specialize: expected sizes of {known}, found {'none' if sizes is not None else 'what is no size'}")
    unknown = [name for name in sizes if name not in symbols]
    if unknown:
        raise RelayError(f"specialize: expected sizes of {known}, found {', '.join(unknown)}")
    for name, size in sizes.items():
        known_range = mod.ranges.of(name)
        if not known_range.low <= size <= known_range.high:
            raise RelayError(f"specialize: {name}: expected a size of {known_range.low} to {known_range.high}, found {size}")
    return {name: sizes[name] for name in symbols if name in sizes}


def _copy(main: ir.Operation, last: ir.Operation, sizes: dict[str, int]) -> ir.Operation:
    """A private copy of main behind the last one, with numbers in the place of symbols.

    Raises RelayError if an input would have a size below 0.
    """
    _check_inputs(main, sizes)
    with ir.InsertionPoint.after(last):
        copy = main.operation.clone().operation
    copy.attributes["sym_visibility"] = ir.StringAttr.get("private")
    SIZES.put(copy, sizes_attribute(sizes))
    KNOWN_AS.put(copy, symbol_name(main))
    replace_symbols(copy, sizes, of_callees=False)
    functions = symbols_of(main.parent)
    for call in read_calls(copy):
        _cast(call, signature_of(functions[call.callee.value]), sizes)
    refresh_signature(copy)
    return copy


def _cast(call: func.CallOp, callee: ir.FunctionType, sizes: dict[str, int]) -> None:
    """Puts casts between a call, which stays in symbols of the callee, and the sizes around it."""
    operation = call.operation
    with operation.location:
        with ir.InsertionPoint(operation):
            for i, wanted in enumerate(callee.inputs):
                operation.operands[i] = cast_argument(operation.operands[i], relay_type(wanted))
        with ir.InsertionPoint.after(operation):
            for result in [r for r in operation.results if not is_cast(r)]:
                uses = list(result.uses)
                known = cast_value(result, substitute_type(type_of(result), sizes))
                for use in uses if known != result else ():
                    use.owner.operands[use.operand_number] = known


def _check_inputs(main: ir.Operation, sizes: dict[str, int]) -> None:
    for i, argument in enumerate(main.regions[0].blocks[0].arguments):
        found = substitute_type(type_of(argument), sizes)
        if any(isinstance(d, int) and d < 0 for d in flat_sizes(found)):
            attributes = value_attributes(main)[i]
            name = NAME.get(attributes, f"arg{i}")
            what = f"expected sizes of 0 or more, found {found} for the input {name} of {type_of(argument)}"
            raise RelayError(f"specialize: {sizes_text(sizes)}: {what}")
