"""Kernels of the te stage: fusion groups as private functions of linalg operations, equal groups once.

A kernel carries what it came from: `relay.ops` and `relay.sources` (string arrays), and the element types that callers see, as te tensors
are signless (`relay.input_dtypes`, `relay.output_dtypes`). An argument that is a parameter at every call has the unit attribute
`relay.param`, which lets a schedule ask for it in another layout.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import Op, RelayError
from relayc.dialects.relay.module import dense_array, is_uniform
from relayc.dialects.relay.structure import Constant, Fused, TupleGetItem, is_literal
from relayc.dialects.relay.types import TensorType, flat_types, type_of
from relayc.dialects.relay.winograd import OWN_FLOPS
from relayc.pipelines.te import core, scalar


def strings(values: Iterable[str]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(v) for v in values])


def record_types(function: func.FuncOp, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> None:
    """Keeps the element types that callers see beside a signature of signless types."""
    function.attributes["relay.input_dtypes"] = strings(t.dtype for t in inputs)
    function.attributes["relay.output_dtypes"] = strings(t.dtype for t in outputs)


def te_type(type_: TensorType, what: str) -> ir.RankedTensorType:
    """The te type of a tensor. Raises RelayError that names `what` where its shape is not known."""
    try:
        return core.te_type(type_)
    except RelayError as e:
        raise RelayError(f"{what}: {e}") from None


class Kernels:
    """The kernel functions of a te module under construction."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self._by_contents: dict[object, str] = {}
        self._names: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """`name`, with a number where it is taken."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return self.unique(f"{name}_{count}") if count else name

    def of_group(self, group: Fused, params: set[ir.Value]) -> tuple[str, list[ir.Value]]:
        """The kernel of a fusion group, by name, and the values that it takes; `params` are those that are parameters.

        Raises RelayError where a shape is not known or an operator has no compute rule.
        """
        captured = group.captured()
        operands = [v for v in captured if not is_literal(v)]
        contents = _contents(group, captured, params)
        if contents not in self._by_contents:
            self._by_contents[contents] = self._build(group, captured, operands, params)
        return self._by_contents[contents], operands

    def _function(self, name: str, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> func.FuncOp:
        with ir.InsertionPoint.at_block_begin(self.module.body):
            function = func.FuncOp(
                self.unique(name), ([core.te_type(t) for t in inputs], [core.te_type(t) for t in outputs]), visibility="private"
            )
        record_types(function, inputs, outputs)
        return function

    def _build(self, group: Fused, captured: Sequence[ir.Value], operands: Sequence[ir.Value], params: set[ir.Value]) -> str:
        members = [op for op in group.members() if isinstance(op, Op)]
        inputs = [TensorType.of(v) for v in operands]
        outputs = flat_types(type_of(group.operation.results[0]))
        for type_ in (*inputs, *outputs):
            te_type(type_, f"kernel of {group.source()}")
        operators = [op for op in members if not isinstance(op, Constant)]
        name = "_".join(["fused", *(type(o)._op_name.removeprefix("nn_") for o in operators)])[:80]
        function = self._function(name, inputs, outputs)
        function.attributes["relay.ops"] = strings(o.relay_name or type(o)._op_name for o in operators)
        function.attributes["relay.sources"] = strings(o.source().strip('"') for o in operators)
        own = [ir.IntegerAttr(o.attributes[OWN_FLOPS]).value for o in operators if OWN_FLOPS in o.attributes]
        if own:
            function.attributes[OWN_FLOPS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), sum(own))
        unit = ir.UnitAttr.get()
        function.arg_attrs = [ir.DictAttr.get({"relay.param": unit} if v in params else {}) for v in operands]
        body = function.add_entry_block()
        values: dict[ir.Value, list[ir.Value]] = {v: [argument] for v, argument in zip(operands, body.arguments, strict=True)}
        with ir.InsertionPoint(body):
            for value in captured:
                if is_literal(value):
                    with value.owner.operation.location:
                        values[value] = [_literal(value.owner)]
            for member in group.members():
                with member.operation.location:
                    _member(member, values)
            func.ReturnOp(values[group.yielded()])
        return symbol_name(function)


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


def _contents(group: Fused, captured: Sequence[ir.Value], params: set[ir.Value]) -> object:
    """What equal groups share: operations, how their values are connected, types, literals, and which values are parameters."""
    number = {value: i for i, value in enumerate(captured)}
    around = tuple(str(v.owner.attributes["value"]) if is_literal(v) else (str(v.type), v in params) for v in captured)
    inside = []
    for op in group.body().operations:
        operation = op.operation
        attributes = tuple(sorted((a.name, str(a.attr)) for a in _named(operation)))
        results = list(operation.results)
        inside.append((operation.name, attributes, tuple(number[v] for v in operation.operands), tuple(str(r.type) for r in results)))
        number.update((r, len(number) + i) for i, r in enumerate(results))
    return around, tuple(inside)


def _named(operation: ir.Operation) -> list[ir.NamedAttribute]:
    attributes = operation.attributes
    return [attributes[i] for i in range(len(attributes))]


def _literal(op: Constant) -> ir.Value:
    """A number that every use broadcasts. Raises RelayError for a constant of more than one."""
    array = dense_array(op.attributes["value"]) if op.key is None else np.empty(0)
    type_ = TensorType.of(op.result)
    if not is_uniform(array):
        raise RelayError(f"relay.constant at {op.source()}: expected one element inside a fusion group, found {type_}")
    return core.parallel(type_, [], lambda: scalar.constant(array.flat[0].item(), type_.dtype), [])
