"""Calls: of functions of the program, of packed functions by their registered names, and of functions written in later stages.

Every call is a `func.call`. What is not a relay function stands in the module as a private declaration whose attribute says what it is:

    func.func private @norm(tensor<4xf32>) -> tensor<f32> attributes {relay.packed = "my.norm"}      a packed function
    func.func private @scan(tensor<4xf32>) -> tensor<4xf32> attributes {relay.te = @scan_te}         a function on te tensors
    func.func private @sort(tensor<4xi32>) -> tensor<4xi32> attributes {relay.tir = @sort_tir}       a function on buffers

The last two name a function of the same module with the attribute `relay.stage`. Passes on the relay stage leave that function alone, and
take the call for an opaque operator (as Relax does with call_tir and call_dps_packed).
"""

import re
from collections.abc import Sequence
from typing import TypeAlias

from relayc.dialects.discardable import BINDINGS, STAGE
from relayc.dialects.functions import signature_of, symbols_of
from relayc.dialects.mlir import func, ir
from relayc.dialects.nesting import parse_module
from relayc.dialects.operations import find_operations, outermost
from relayc.dialects.relay.errors import check
from relayc.dialects.relay.scopes import SymbolNames
from relayc.dialects.relay.sizes import CastShape, MatchShape
from relayc.dialects.relay.tuples import fields_of, make_tuple, tuple_fields
from relayc.dialects.relay.types import MLIR_NAMES, RelayType, TensorType, TupleType, flat_types, relay_type, signless_dtype, type_of
from relayc.dialects.relay.unify import Bindings, match, substitute_type, symbols_of_type
from relayc.dialects.size_attribute import read_size_attribute, size_attribute

Results: TypeAlias = ir.Value | tuple[ir.Value, ...]

STAGES = ("te", "tir")
"""Later stages that a relay function may call into."""


def _module() -> ir.Operation:
    """The module around the ambient insertion point."""
    return outermost(ir.InsertionPoint.current.block.owner.operation)


def _emit(name: str, results: Sequence[ir.Type], args: Sequence[ir.Value]) -> Results:
    found = tuple(func.CallOp(list(results), ir.FlatSymbolRefAttr.get(name), list(args)).operation.results)
    return found[0] if len(found) == 1 else found


def call(callee: str, *args: ir.Value) -> Results:
    """Calls a function of the module at the ambient insertion point; gives its result, or a tuple of them where there is not just one.

    The symbols of the function's arguments stand for the sizes of `args`, in the types of its results too; symbols that only its results
    have are new ones of the caller. Where sizes are written otherwise on either side, `relay.cast_shape` stands between.

    Raises RelayError if there is no such function, or the arguments are not what it takes.
    """
    module = _module()
    function = symbols_of(module).get(callee)
    check(function is not None, "call", "the name of a function of the module", f"{callee!r}")
    signature = signature_of(function)
    inputs, found = list(signature.inputs), [v.type for v in args]
    what = f"arguments of @{callee}"
    check(len(inputs) == len(found), what, _listed(inputs), _listed(found))
    patterns = [relay_type(t) for t in inputs]
    bindings = match(patterns, [relay_type(t) for t in found], what)
    given = [cast_argument(v, t) for v, t in zip(args, patterns, strict=True)]
    check(inputs == [v.type for v in given], what, _listed(inputs), _listed(found))
    results = _emit(callee, signature.results, given)
    if isinstance(results, ir.Value):
        return cast_result(results, bindings, module)
    return tuple(cast_result(result, bindings, module) for result in results)


def cast_value(value: ir.Value, type_: RelayType, cast: type[CastShape | MatchShape] = CastShape) -> ir.Value:
    """A value as one of another type that differs in how sizes are written only, by an operator; itself where the types are the same."""
    found = type_of(value)
    if found == type_:
        return value
    if isinstance(found, TensorType):
        assert isinstance(type_, TensorType)
        return cast(value, shape=type_.sizes).result if type_.is_known else value
    assert isinstance(type_, TupleType)
    return make_tuple([cast_value(field, t, cast) for field, t in zip(fields_of(value), type_.fields, strict=True)])


def restated(value: ir.Value, type_: RelayType) -> ir.Value:
    """A value that takes the place of one of another type, whose sizes are the same ones in other words.

    The symbols of `type_` that have no value yet are defined by what it builds, at the ambient insertion point.
    """
    return cast_value(value, type_, MatchShape)


def recast(value: ir.Value) -> ir.Value:
    """A value, cast to its own type after existing casts."""
    type_ = type_of(value)
    if isinstance(type_, TensorType):
        return CastShape(value, shape=type_.sizes).result
    return make_tuple([recast(field) for field in fields_of(value)])


def cast_argument(value: ir.Value, type_: RelayType) -> ir.Value:
    """An argument of a call in the callee's symbols.

    The first cast of a call's result is to symbols of the caller: if both sides use the same type, the value is cast to its own type.
    """
    found = type_of(value)
    if found == type_:
        return value
    if isinstance(type_, TupleType):
        return make_tuple([cast_argument(field, t) for field, t in zip(fields_of(value), type_.fields, strict=True)])
    assert isinstance(found, TensorType)
    if type_.is_known and found.is_known and _is_given_by_a_call(value):
        value = recast(value)
    return cast_value(value, type_)


def cast_result(value: ir.Value, bindings: Bindings, inside: ir.Operation) -> ir.Value:
    """A result of a call in terms of the caller's symbols: `bindings` for those of the callee's arguments, new ones for others.

    `bindings` gains the new ones. `inside` is an operation of the module.
    """
    type_ = type_of(value)
    for name in sorted(symbols_of_type(type_) - bindings.keys()):
        bindings[name] = SymbolNames(inside).free(name)
    return cast_value(value, substitute_type(type_, bindings))


def bindings_attribute(bindings: Bindings) -> ir.DictAttr:
    """The values of a callee's symbols as the attribute BINDINGS."""
    return ir.DictAttr.get({name: size_attribute(size) for name, size in bindings.items()})


def stated_bindings(call: func.CallOp) -> Bindings | None:
    """The values in the attribute BINDINGS of a call; None if it is absent."""
    attributes = call.operation.attributes
    if not BINDINGS.on(attributes):
        return None
    return {entry.name: read_size_attribute(entry.attr) for entry in ir.DictAttr(BINDINGS.of(attributes))}


def bindings_of(call: func.CallOp, callee: ir.Operation | ir.OpView) -> Bindings:
    """The values of the symbols of a callee's arguments at a call, in the caller's symbols. Raises RelayError if they contradict each
    other."""
    patterns = [relay_type(t) for t in signature_of(callee).inputs]
    actuals = [type_of(uncast(v)) for v in call.operation.operands]
    return match(patterns, actuals, f"arguments of @{call.callee.value}")


def uncast(value: ir.Value) -> ir.Value:
    """What an argument of a call was before its sizes were written in the callee's symbols."""
    fields = tuple_fields(value)
    if fields is not None:
        sources = [uncast(field) for field in fields]
        items = [s.owner.opview for s in sources if not isinstance(s.owner, ir.Block) and s.owner.name == "relay.tuple_get_item"]
        # A tuple that was taken apart to cast its fields.
        whole = items[0].data if items and sources != fields else None
        if whole is not None and [(item.data, item.index) for item in items] == [(whole, i) for i in range(len(fields))]:
            return whole if ir.TupleType(whole.type).num_types == len(fields) else value
        return value
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "relay.cast_shape" or _is_given_by_a_call(owner.operands[0]):
        return value
    return owner.operands[0]


def _is_given_by_a_call(value: ir.Value) -> bool:
    """Whether a value is a result of a call, or a field of one: a cast of it is to symbols of the caller."""
    while not isinstance(value.owner, ir.Block) and value.owner.name == "relay.tuple_get_item":
        value = value.owner.operands[0]
    return not isinstance(value.owner, ir.Block) and value.owner.name == "func.call"


def _tensor_types(types: RelayType | Sequence[TensorType]) -> list[TensorType]:
    """The tensors of a type, or of several."""
    return list(flat_types(types) if isinstance(types, (TensorType, TupleType)) else types)


def call_packed(name: str, args: Sequence[ir.Value], types: RelayType | Sequence[TensorType]) -> Results:
    """Calls the packed function that is registered as `name` when the program runs: with the tensors of `args`, then those it writes to.

    Args:
      name: under which it is registered (`relayc.register_func`, or any tvm-ffi registration), then or later.
      args: what it reads, tensors.
      types: of its results. Their sizes are known before the call, as the program makes the memory: they name symbols that have a value.

    Raises:
      RelayError: an argument or a result is no tensor.
    """
    return _call_declared("packed", ir.StringAttr.get(name), re.sub(r"\W", "_", name), args, types)


def call_te(callee: str, args: Sequence[ir.Value], types: RelayType | Sequence[TensorType]) -> Results:
    """Calls a function of the te stage that stands in the module: linalg on tensors, scheduled as a kernel of its own.

    Raises RelayError if there is no such function, or its types are not those of the arguments and results in the te stage.
    """
    results = _tensor_types(types)
    return _call_stage("te", callee, args, results, [v.type for v in args], [t.to_mlir() for t in results])


def call_tir(callee: str, args: Sequence[ir.Value], types: RelayType | Sequence[TensorType]) -> Results:
    """Calls a function of the tir stage in the module. Its parameters are buffers: those it reads, followed by those it writes.

    Raises RelayError as `call_te` does.
    """
    results = _tensor_types(types)
    return _call_stage("tir", callee, args, results, [*(v.type for v in args), *(t.to_mlir() for t in results)], [])


def _call_stage(
    stage: str,
    callee: str,
    args: Sequence[ir.Value],
    results: Sequence[TensorType],
    inputs: Sequence[ir.Type],
    outputs: Sequence[ir.Type],
) -> Results:
    function = symbols_of(_module()).get(callee)
    is_there = function is not None and stage_of(function) == stage
    check(is_there, f"call_{stage}", f"the name of a function of the {stage} stage in the module", f"{callee!r}")
    signature = signature_of(function)
    for what, wanted, found in (("arguments", inputs, signature.inputs), ("results", outputs, signature.results)):
        same = len(wanted) == len(found) and all(_is_same(a, b) for a, b in zip(wanted, found, strict=True))
        check(same, f"call_{stage}: {what} of @{callee}", _listed(found), _listed(wanted))
    return _call_declared(stage, ir.FlatSymbolRefAttr.get(callee), f"call_{callee}", args, results)


def stage_of(function: ir.OpView) -> str:
    """The stage that a function of a module is written in: "relay", "te" or "tir"."""
    return STAGE.get(function, "relay")


def _is_same(tensor: ir.Type, other: ir.Type) -> bool:
    """Whether a relay tensor is what a later stage calls `other`, a signless tensor or buffer of the same shape."""
    type_ = relay_type(tensor)
    if not isinstance(other, (ir.RankedTensorType, ir.MemRefType)) or not isinstance(type_, TensorType):
        return False
    return tuple(other.shape) == type_.shape and str(other.element_type) == MLIR_NAMES[signless_dtype(type_.dtype)]


def _call_declared(
    kind: str, target: ir.Attribute, name: str, args: Sequence[ir.Value], types: RelayType | Sequence[TensorType]
) -> Results:
    results = _tensor_types(types)
    for what, type_ in (*(("argument", type_of(v)) for v in args), *(("result", t) for t in results)):
        check(isinstance(type_, TensorType), f"call_{kind}: {what}", "a tensor", type_)
    signature = ir.FunctionType.get([v.type for v in args], [t.to_mlir() for t in results])
    declared = _declaration(f"relay.{kind}", target, name, signature)
    return _emit(declared, signature.results, args)


def _declaration(key: str, target: ir.Attribute, name: str, signature: ir.FunctionType) -> str:
    """Name of the declaration of `target` with these types, which is created if missing."""
    module = _module()
    functions = symbols_of(module)
    for other, function in functions.items():
        if key in function.attributes and function.attributes[key] == target and signature_of(function) == signature:
            return other
    unique, n = name, 0
    while unique in functions:
        n += 1
        unique = f"{name}_{n}"
    with ir.InsertionPoint(module.regions[0].blocks[0]):
        made = func.FuncOp(unique, signature, visibility="private")
    made.attributes[key] = target
    return unique


def _listed(types: Sequence[ir.Type]) -> str:
    return f"({', '.join(map(str, types))})"


def _check_stage(function: ir.OpView, stage: str) -> None:
    """Raises RelayError for an operation of the relay stage in a function of a later one."""
    found = find_operations(function.operation, lambda op: op.name.startswith("relay."))
    texts = ", ".join(f"{op.name} at {op.location}" for op in found)
    check(not found, f"function of the {stage} stage", f"operations of that stage in @{function.name.value}", texts)


def add_function(module: ir.Module, text: str, stage: str) -> list[str]:
    """Adds functions of a later stage, written as MLIR text, to a relay module as private ones; gives their names.

    Raises:
      MLIRError: the text does not parse.
      RelayError: the text nests too deep, an operation is no function with a body or is one of the relay stage, a name is taken, or there
        is no such stage.
    """
    check(stage in STAGES, "stage", f"one of {', '.join(STAGES)}", stage)
    with module.context, ir.Location.unknown():
        parsed = parse_module(text)
        taken = symbols_of(module)
        names = []
        for op in list(parsed.body.operations):
            is_function = isinstance(op, func.FuncOp) and len(op.regions[0].blocks) > 0
            check(is_function, f"function of the {stage} stage", "a func.func with a body", op.operation.name)
            name = op.name.value
            _check_stage(op, stage)
            check(name not in taken, f"function of the {stage} stage", "a name that is not taken", f"@{name}")
            STAGE.put(op, stage)
            op.attributes["sym_visibility"] = ir.StringAttr.get("private")
            op.operation.detach_from_parent()
            module.body.append(op)
            names.append(name)
    return names
