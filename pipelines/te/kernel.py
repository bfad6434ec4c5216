"""Kernels of the te stage: functions of fusion groups as private functions of linalg operations.

A kernel records its sources (see graph.outline_groups).
"""

import numpy as np

from relayc.dialects.discardable import OPERATORS, OWN_FLOPS, SOURCES, copy_discardable
from relayc.dialects.functions import signature_of, symbol_name, value_attributes
from relayc.dialects.locations import named_location
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import Op, RelayError
from relayc.dialects.relay.elements import dense_array, uniform_element
from relayc.dialects.relay.structure import Constant, TupleGetItem
from relayc.dialects.relay.types import TensorType, flat_types, type_of
from relayc.pipelines.emission.sizes import function_sizes
from relayc.pipelines.te.rules import core, scalar
from relayc.pipelines.te.signature import te_function


def lower_kernel(source: ir.Operation, module: ir.Module) -> None:
    """Lowers a function of one kernel (relay.primitive, see graph.outline_groups) to the end of a te module.

    Raises RelayError for an unknown shape or an operator without a compute rule.
    """
    block = source.regions[0].blocks[0]
    what = f"kernel of {_sources(source) or symbol_name(source)}"
    with ir.InsertionPoint(module.body):
        function = te_function(symbol_name(source), source, (what, what), "private")
    copy_discardable((OPERATORS, SOURCES, OWN_FLOPS), source, function)
    if "arg_attrs" in source.attributes:
        symbols = value_attributes(function)[len(signature_of(source).inputs) :]
        function.arg_attrs = [*value_attributes(source), *symbols]
    body = function.add_entry_block()
    values: dict[ir.Value, list[ir.Value]] = {}
    arguments = iter(body.arguments)
    for argument in block.arguments:
        values[argument] = [next(arguments) for _ in flat_types(type_of(argument))]
    with ir.InsertionPoint(body), function_sizes(function):
        for op in block.operations:
            with _location(op):
                if isinstance(op, func.ReturnOp):
                    func.ReturnOp([tensor for v in op.operation.operands for tensor in values[v]])
                else:
                    _member(op, values)


def _location(op: ir.OpView) -> ir.Location:
    """The location of the operations of an operator: its name, by which schedules find it, around its source location."""
    location = op.operation.location
    return named_location((op.relay_name or type(op)._op_name).rpartition(".")[2], location) if isinstance(op, Op) else location


def _sources(function: ir.Operation) -> str:
    """The names of the sources of a kernel."""
    return ", ".join(f'"{source}"' for source in SOURCES.get(function, ()))


def _member(member: ir.OpView, values: dict[ir.Value, list[ir.Value]]) -> None:
    """Computes an operation of a group; `values` holds the tensors of each value."""
    operands, results = member.operation.operands, member.operation.results
    if isinstance(member, Constant):
        values[member.result] = [_literal(member)]
    elif not isinstance(member, Op):  # builds a tuple
        values[results[0]] = [tensor for v in operands for tensor in values[v]]
    elif isinstance(member, TupleGetItem):
        values[member.result] = [values[member.data][member.index]]
    else:
        found = core.lower(member, [values[v][0] for v in operands])
        whole = len(results) == 1 and isinstance(results[0].type, ir.TupleType)
        values.update({results[0]: found} if whole else {r: [tensor] for r, tensor in zip(results, found, strict=False)})


def _literal(op: Constant) -> ir.Value:
    """A scalar constant that its uses broadcast. Raises RelayError for a constant of several distinct elements."""
    array = dense_array(op.attributes["value"]) if op.key is None else np.empty(0)
    type_ = TensorType.of(op.result)
    element = uniform_element(array)
    if element is None:
        raise RelayError(f"relay.constant at {op.source()}: expected one element inside a fusion group, found {type_}")
    return core.parallel(type_, [], lambda: scalar.constant(element, type_.dtype), [])
