"""Inline: calls whose callee is small, or has no other call, become a copy of its body, so that fusion and layouts see across them.

What is not worth inlining stays a call of a function that is compiled once. Recursive functions are never inlined. Symbols of a callee's
arguments become the sizes of the call, its other symbols those of the results, or new ones. (Upstream's inline pass takes no operation of
a dialect without an inliner interface in C++, so this one is relayc's own.)
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from relayc.dialects.callgraph import components, is_recursive
from relayc.dialects.functions import is_public, symbol_name
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.calls import bindings_of, recast, restated, uncast
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.scopes import SymbolNames, replace_symbols, scope_before, symbols_of_value, symbols_within
from relayc.dialects.relay.tuples import fields_of
from relayc.dialects.relay.types import RelayType, type_of
from relayc.dialects.relay.unify import Bindings, match, substitute_type
from relayc.pipelines.context.passes import PassContext, config_option, functions, module_pass
from relayc.pipelines.context.upstream import run_upstream
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.symbolic import bounds, name_of, symbol

config_option(
    "relay.Inline.max_operations",
    int,
    64,
    "operations of a function up to which all its calls are inlined; a private one called once always is",
)


@dataclass
class _Function:
    op: ir.Operation
    size: int


def read_calls(function: ir.Operation) -> list[func.CallOp]:
    """The calls in a function, including branches and loops."""
    return [op for block in graph_blocks(function) for op in block.operations if isinstance(op, func.CallOp)]


def _read(function: ir.Operation) -> _Function:
    size = sum(len(block.operations) for block in graph_blocks(function))
    return _Function(function, size)


def _inline(call: func.CallOp, callee: ir.Operation, mod: IRModule) -> None:
    """Replaces a call by a copy of its callee's body, whose only block ends in func.return."""
    copy = callee.clone()
    if symbols_within(copy):
        _rename_symbols(call, callee, copy, mod)
    block = copy.regions[0].blocks[0]
    operands = list(call.operation.operands)
    for argument, value in zip(block.arguments, operands, strict=True):
        argument.replace_all_uses_with(uncast(value))
    *body, terminator = list(block.operations)
    for op in body:
        op.operation.move_before(call.operation)
    with ir.InsertionPoint(call.operation), call.operation.location:
        for old, new in zip(call.operation.results, terminator.operands, strict=True):
            _replace_result(old, new)
    call.operation.erase()
    copy.erase()
    _erase_casts(operands)


def _replace_result(old: ir.Value, new: ir.Value) -> None:
    """Lets what a callee returns take the place of the result of its call, and of what that is in the symbols of the caller."""
    for user in [use.owner.operation for use in old.uses if old.type != new.type or use.owner.operation.name == "relay.cast_shape"]:
        if user.name == "relay.cast_shape":
            user.results[0].replace_all_uses_with(restated(new, type_of(user.results[0])))
        elif user.name == "relay.tuple_get_item":
            _replace_result(user.results[0], fields_of(new)[user.opview.index])
        else:
            continue
        user.erase()
    if next(iter(old.uses), None) is not None:
        old.replace_all_uses_with(restated(new, type_of(old)))


def _erase_casts(values: list[ir.Value]) -> None:
    """Erases the casts of arguments, some of which may be equal, to symbols of a callee that is no longer called."""
    left = list(dict.fromkeys(values))
    while left:
        owner = left.pop().owner
        if (
            isinstance(owner, ir.Block)
            or owner.operation.name not in _CASTS
            or any(next(iter(r.uses), None) for r in owner.operation.results)
        ):
            continue
        results, operands = list(owner.operation.results), list(owner.operation.operands)
        left = [value for value in left if value not in results] + [value for value in operands if value not in left]
        owner.operation.erase()


_CASTS = ("relay.cast_shape", "builtin.unrealized_conversion_cast", "relay.tuple_get_item")


# ---- symbols of the callee ---------------------------------------------------------------------------------------------------------------


def _rename_symbols(call: func.CallOp, callee: ir.Operation, copy: ir.Operation, mod: IRModule) -> None:
    """Writes a copy of a callee in the sizes of a call: those of the arguments, and for other symbols new ones, or those of the results."""
    inner = read_calls(copy)
    for one in inner:
        _cast_results(one)
    for one in inner:
        _cast_arguments(one)
    bindings = bindings_of(call, callee)
    names, scope = SymbolNames(call), scope_before(call)
    own = {name: names.free(name) for name in sorted(symbols_within(copy) - bindings.keys())}
    free = {str(new): name for name, new in own.items()}
    for name, size in _named_by_caller(call, {**bindings, **own}, free).items():
        given = name_of(size)
        if given is not None and given not in {*scope, *map(str, own.values())}:
            own[free[name]] = symbol(given)
    ranges = {**{str(new): mod.ranges[name] for name, new in own.items() if name in mod.ranges}, **mod.ranges}
    if len(ranges) > len(mod.ranges):
        mod.set_ranges(ranges)
    replace_symbols(copy, {**bindings, **own}, of_callees=False)


def _named_by_caller(call: func.CallOp, values: Bindings, free: Collection[str]) -> Bindings:
    """The caller's names of the sizes in a call's results for which the callee has symbols of its own, the keys of `free`."""
    found = [pair for result in call.operation.results for pair in _casts(result)]
    try:
        return match([substitute_type(t, values) for t, _ in found], [type_of(c.results[0]) for _, c in found], "results", free)
    except RelayError:
        return {}  # the caller says less of them, and gets them with new names


def _casts(value: ir.Value) -> Iterator[tuple[RelayType, ir.Operation]]:
    """(type in symbols of the callee, the cast to the caller's) of a result of a call and of its fields."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "relay.cast_shape":
            yield type_of(value), user
        elif user.name == "relay.tuple_get_item":
            yield from _casts(user.results[0])


def _cast_arguments(call: func.CallOp) -> None:
    """Puts a cast before a call of all arguments with symbols, also where caller and callee have one name for a size."""
    operation = call.operation
    with ir.InsertionPoint(operation), operation.location:
        for i, value in enumerate(list(operation.operands)):
            if symbols_of_value(value) and uncast(value) == value:
                operation.operands[i] = recast(value)


def _cast_results(call: func.CallOp) -> None:
    """Casts all results after a call. The first cast of a call's result is a result cast: result casts precede argument casts."""
    operation = call.operation
    with ir.InsertionPoint.after(operation), operation.location:
        for result in operation.results:
            uses = [use for use in result.uses if use.owner.operation.name != "relay.cast_shape"] if symbols_of_value(result) else []
            if uses and not (isinstance(result.type, ir.TupleType) and list(_casts(result))):
                same = recast(result)
                for use in uses:
                    use.owner.operation.operands[use.operand_number] = same


def _keeps_ranges(call: func.CallOp, callee: ir.Operation, mod: IRModule) -> bool:
    """Whether the sizes of a call are proved to be in the ranges of the callee's symbols, by which its body may have been simplified."""
    for name, size in bindings_of(call, callee).items() if symbols_within(callee) else ():
        low, high = bounds(size)
        if low < mod.ranges.of(name).low or (name in mod.ranges and high > mod.ranges[name].high):
            return False
    return True


def _count(name: str, all_functions: Iterable[_Function]) -> int:
    """How many calls of a function there are."""
    return sum(call.callee.value == name for function in all_functions for call in read_calls(function.op))


@module_pass(opt_level=1, name="Inline")
def inline(mod: IRModule, ctx: PassContext) -> IRModule:
    """Inlines calls of small functions and of private ones called once, callees first; removes private functions no longer called."""
    found = {symbol_name(f): _read(f) for f in functions(mod)}
    callees = {name: {c.callee.value for c in read_calls(f.op)} & found.keys() for name, f in found.items()}
    order = components(callees)
    kept = {name for component in order if is_recursive(component, callees) for name in component}
    limit = ctx.get("relay.Inline.max_operations")
    for name in (name for component in order for name in component):
        for call in read_calls(found[name].op):
            callee = found.get(call.callee.value)
            if callee is None or call.callee.value in kept:
                continue
            small = callee.size <= limit or (not is_public(callee.op) and _count(call.callee.value, found.values()) == 1)
            if small and _keeps_ranges(call, callee.op, mod):
                _inline(call, callee.op, mod)
                found[name].size += callee.size
    run_upstream(mod.module.operation, "symbol-dce")
    return mod
