"""Kernels of the te stage: functions of fusion groups as private functions of linalg operations.

A kernel carries what it came from (see graph.outline_groups), and the element types that callers see, as te tensors are signless
(`relay.input_dtypes`, `relay.output_dtypes`).
"""

from collections.abc import Iterable, Sequence

import numpy as np

from relayc.dialects.functions import signature_of, symbol_name
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import Op, RelayError
from relayc.dialects.relay.elements import dense_array, is_uniform
from relayc.dialects.relay.structure import Constant, TupleGetItem
from relayc.dialects.relay.types import TensorType, flat_types, relay_type, type_of
from relayc.dialects.relay.winograd import OWN_FLOPS
from relayc.pipelines.te import core, scalar

_KEPT = ("relay.ops", "relay.sources", OWN_FLOPS, "arg_attrs")


def _strings(values: Iterable[str]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(v) for v in values])


def record_types(function: func.FuncOp, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> None:
    """Keeps the element types that callers see beside a signature of signless types."""
    function.attributes["relay.input_dtypes"] = _strings(t.dtype for t in inputs)
    function.attributes["relay.output_dtypes"] = _strings(t.dtype for t in outputs)


def te_type(type_: TensorType, what: str) -> ir.RankedTensorType:
    """The te type of a tensor. Raises RelayError that names `what` where its shape is not known."""
    try:
        return core.te_type(type_)
    except RelayError as e:
        raise RelayError(f"{what}: {e}") from None


def lower_kernel(source: ir.Operation, module: ir.Module) -> None:
    """Lowers a function that computes one kernel (relay.primitive, see graph.outline_groups) to the end of a te module.

    Raises RelayError where a shape is not known or an operator has no compute rule.
    """
    block = source.regions[0].blocks[0]
    signature = signature_of(source)
    what = f"kernel of {_sources(source) or symbol_name(source)}"
    inputs, outputs = ([leaf for t in types for leaf in flat_types(relay_type(t))] for types in (signature.inputs, signature.results))
    types = [te_type(t, what) for t in inputs], [te_type(t, what) for t in outputs]
    with ir.InsertionPoint(module.body), source.location:
        function = func.FuncOp(symbol_name(source), types, visibility="private")
    record_types(function, inputs, outputs)
    for key in _KEPT:
        if key in source.attributes:
            function.attributes[key] = source.attributes[key]
    body = function.add_entry_block()
    values: dict[ir.Value, list[ir.Value]] = {}
    arguments = iter(body.arguments)
    for argument in block.arguments:
        values[argument] = [next(arguments) for _ in flat_types(type_of(argument))]
    with ir.InsertionPoint(body):
        for op in block.operations:
            with op.operation.location:
                if isinstance(op, func.ReturnOp):
                    func.ReturnOp([tensor for v in op.operation.operands for tensor in values[v]])
                else:
                    _member(op, values)


def _sources(function: ir.Operation) -> str:
    """The names of what a kernel was made from."""
    found = function.attributes["relay.sources"] if "relay.sources" in function.attributes else ir.ArrayAttr.get([])
    return ", ".join(f'"{ir.StringAttr(s).value}"' for s in ir.ArrayAttr(found))


def _member(member: ir.OpView, values: dict[ir.Value, list[ir.Value]]) -> None:
    """Computes an operation of a group; `values` has the tensors of each value, one or those in a tuple."""
    operands, results = member.operation.operands, member.operation.results
    if isinstance(member, Constant):
        values[member.result] = [_literal(member)]
    elif not isinstance(member, Op):  # makes a tuple
        values[results[0]] = [tensor for v in operands for tensor in values[v]]
    elif isinstance(member, TupleGetItem):
        values[member.result] = [values[member.data][member.index]]
    else:
        found = core.lower(member, [values[v][0] for v in operands])
        whole = len(results) == 1 and isinstance(results[0].type, ir.TupleType)
        values.update({results[0]: found} if whole else {r: [tensor] for r, tensor in zip(results, found, strict=False)})


def _literal(op: Constant) -> ir.Value:
    """A number that every use broadcasts. Raises RelayError for a constant of more than one."""
    array = dense_array(op.attributes["value"]) if op.key is None else np.empty(0)
    type_ = TensorType.of(op.result)
    if not is_uniform(array):
        raise RelayError(f"relay.constant at {op.source()}: expected one element inside a fusion group, found {type_}")
    return core.parallel(type_, [], lambda: scalar.constant(array.flat[0].item(), type_.dtype), [])
