"""OutlineGroups: fusion groups become functions, equal ones once (Relay's functions with the attribute Primitive).

A group `relay.fused` becomes a call of a private function with the unit attribute `relay.primitive`. It takes what the group uses from
around it, but literals, which it holds itself, and carries what it came from: `relay.ops` and `relay.sources` (string arrays). An argument
that is a parameter at every call has the unit attribute `relay.param`, which lets a schedule ask for it in another layout, and
`relay.seven_bits` if its elements are so small.
"""

from collections.abc import Sequence
from typing import TypeAlias

from relayc.dialects.discardable import OPERATORS, OWN_FLOPS, PARAM, PRIMITIVE, SEVEN_BITS, SOURCES
from relayc.dialects.functions import Names
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.elements import has_seven_bits
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant, Fused, is_literal
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.passes import PassContext, functions, module_pass
from relayc.pipelines.graph.fusion.groups import is_view


@module_pass(opt_level=0, name="OutlineGroups")
def outline_groups(mod: IRModule, ctx: PassContext) -> IRModule:
    """Fusion groups become functions, equal ones once."""
    outlining = _Outlining(mod)
    for function in functions(mod):
        outlining.block(function.regions[0].blocks[0], {})
    return mod


Params: TypeAlias = dict[ir.Value, bool]
"""The values that are parameters, and whether they have seven bits."""


class _Outlining:
    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self._by_contents: dict[object, str] = {}
        self._names = Names(mod.module)

    def block(self, block: ir.Block, params: Params) -> None:
        """Takes the groups of a block out; `params` are the values that are parameters, which it adds to."""
        self._groups(block, params)
        for op in list(block.operations):
            if isinstance(op, Constant) and not list(op.result.uses):
                op.operation.erase()  # a literal, which the functions now contain

    def _groups(self, block: ir.Block, params: Params) -> None:
        for op in list(block.operations):
            operation = op.operation
            if isinstance(op, Fused):
                self._group(op, params)
                continue
            if isinstance(op, Constant):
                params[op.result] = _has_seven_bits(op, self.mod)
            elif is_view(op) and operation.operands[0] in params:
                params[operation.results[0]] = params[operation.operands[0]]
            for region in operation.regions:
                for inner in region.blocks:
                    self.block(inner, params)

    def _group(self, group: Fused, params: Params) -> None:
        if group.compiler is not None:
            raise RelayError(
                f"relay.fused at {group.source()}: expected a code generator of the name {group.compiler!r} for the group, found none"
            )
        captured = group.captured()
        operands = [v for v in captured if not is_literal(v)]
        contents = _contents(group, captured, params)
        result = group.operation.results[0]
        with ir.InsertionPoint(group), group.operation.location:
            if contents not in self._by_contents:
                self._by_contents[contents] = self._function(group, captured, operands, params)
            name = ir.FlatSymbolRefAttr.get(self._by_contents[contents])
            result.replace_all_uses_with(func.CallOp([result.type], name, operands).operation.results[0])
        group.operation.erase()

    def _function(self, group: Fused, captured: Sequence[ir.Value], operands: Sequence[ir.Value], params: Params) -> str:
        """Creates the function of a group and moves the operations of the group to it."""
        members = group.members()
        operators = [op for op in members if isinstance(op, Op) and not isinstance(op, Constant)]
        name = self._names.free("_".join(["fused", *(type(o)._op_name.removeprefix("nn_") for o in operators)])[:80])
        result = group.operation.results[0].type
        with ir.InsertionPoint.at_block_begin(self.mod.module.body):
            function = func.FuncOp(name, ([v.type for v in operands], [result]), visibility="private")
        PRIMITIVE.mark(function)
        OPERATORS.put(function, tuple(o.relay_name or type(o)._op_name for o in operators))
        SOURCES.put(function, tuple(o.source().strip('"') for o in operators))
        own = [OWN_FLOPS.of(o) for o in operators if OWN_FLOPS.on(o)]
        if own:
            OWN_FLOPS.put(function, sum(own))
        if any(v in params for v in operands):
            function.arg_attrs = [ir.DictAttr.get({**PARAM.entry(v in params), **SEVEN_BITS.entry(params.get(v, False))}) for v in operands]
        block = function.add_entry_block()
        inside = dict(zip(operands, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for value in captured:
                if is_literal(value):
                    inside[value] = value.owner.operation.clone().operation.results[0]
        given = group.yielded()
        for member in members:
            operation = member.operation
            for i, value in enumerate(operation.operands):
                if value in inside:
                    operation.operands[i] = inside[value]
            block.append(operation)
        with ir.InsertionPoint(block):
            func.ReturnOp([inside.get(given, given)])
        return name


def _contents(group: Fused, captured: Sequence[ir.Value], params: Params) -> object:
    """What equal groups share: operations, how their values are connected, types, literals, and which values are parameters, and narrow."""
    number = {value: i for i, value in enumerate(captured)}
    around = tuple(str(v.owner.attributes["value"]) if is_literal(v) else (str(v.type), params.get(v)) for v in captured)
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


def _has_seven_bits(constant: Constant, mod: IRModule) -> bool:
    array = mod.value_of(constant.result) if TensorType.of(constant.result).dtype == "int8" else None
    return array is not None and has_seven_bits(array)
