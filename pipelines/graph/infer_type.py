"""InferType: runs the type relations through the program, so that shapes known at its inputs reach its outputs.

Types reach across calls too: results of a call are those of its callee, and arguments of a private function what all its calls agree on.
(Upstream has no pass that refines types: an operation infers them when it is built.)
"""

from relayc.dialects.functions import is_public, refresh_signature, signature_of, symbol_name
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import Op, RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import While
from relayc.dialects.relay.types import RelayType, TensorType, TupleType, relay_type, type_of
from relayc.pipelines.graph.inline import read_calls
from relayc.pipelines.passes import PassContext, functions, module_pass

_MAX_ROUNDS = 100


def merged(inferred: RelayType, found: RelayType) -> RelayType:
    """What two types say together, of which `inferred.accepts(found)`."""
    if isinstance(inferred, TensorType) and isinstance(found, TensorType):
        return found.with_shape(a if b is None else b for a, b in zip(inferred.shape, found.shape, strict=True))
    assert isinstance(inferred, TupleType) and isinstance(found, TupleType)
    return TupleType(tuple(merged(a, b) for a, b in zip(inferred.fields, found.fields, strict=True)))


def _refine(value: ir.Value, inferred: RelayType, where: str) -> None:
    """Gives a value the type that its own and `inferred` say together. Raises RelayError where they contradict each other."""
    found = type_of(value)
    if not inferred.accepts(found):
        raise RelayError(f"{where}: expected result type {inferred}, found {found}")
    type_ = merged(inferred, found)
    if type_ != found:
        value.set_type(type_.to_mlir())


def _infer_block(block: ir.Block) -> None:
    for op in block.operations:
        operation = op.operation
        if isinstance(op, While):
            for region in operation.regions:
                _refine(region.blocks[0].arguments[0], type_of(operation.operands[0]), f"{operation.name} at {op.source()}")
        for region in operation.regions:
            for inner in region.blocks:
                _infer_block(inner)
        if isinstance(op, Op):
            _infer(op)
        elif operation.name == "builtin.unrealized_conversion_cast":
            made = TupleType(tuple(map(type_of, operation.operands)))
            _refine(operation.results[0], made, operation.name)


def _infer(op: Op) -> None:
    try:
        inferred = op.inferred_types()
    except RelayError as e:
        raise RelayError(f"{op.operation.name} at {op.source()}: {e}") from None
    for result, type_ in zip(op.operation.results, inferred, strict=True):
        _refine(result, type_, f"{op.operation.name} at {op.source()}")


def _infer_function(function: ir.Operation) -> None:
    _infer_block(function.regions[0].blocks[0])
    refresh_signature(function)


def _infer_calls(calls: list[func.CallOp], by_name: dict[str, ir.Operation]) -> bool:
    """Carries types from callees to the results of their calls, and from calls to the arguments of private callees; whether any changed."""
    changed = False
    arguments: dict[str, list[RelayType]] = {}
    for call in calls:
        callee = by_name.get(call.callee.value)
        if callee is None:
            continue
        for result, type_ in zip(call.operation.results, signature_of(callee).results, strict=True):
            before = result.type
            _refine(result, relay_type(type_), f"call of @{call.callee.value}")
            changed |= result.type != before
        given = [type_of(v) for v in call.operation.operands]
        agreed = arguments.setdefault(call.callee.value, given)
        if agreed != given:
            arguments[call.callee.value] = [relay_type(t) for t in signature_of(callee).inputs]
    for name, types in arguments.items():
        callee = by_name[name]
        if not is_public(callee):
            for argument, type_ in zip(callee.regions[0].blocks[0].arguments, types, strict=True):
                before = argument.type
                _refine(argument, type_, f"argument of @{name}")
                changed |= argument.type != before
    return changed


@module_pass(opt_level=0, name="InferType")
def infer_type(mod: IRModule, ctx: PassContext) -> IRModule:
    """Infers every type anew: unknown dimensions that follow from known ones become known, in signatures too."""
    by_name = {symbol_name(f): f for f in functions(mod)}
    calls = [call for function in by_name.values() for call in read_calls(function)]
    for _ in range(_MAX_ROUNDS):
        for function in by_name.values():
            _infer_function(function)
        if not _infer_calls(calls, by_name):
            break
    return mod
