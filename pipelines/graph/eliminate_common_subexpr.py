"""EliminateCommonSubexpr: equal operations on equal operands become one."""

from collections.abc import Hashable

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant
from relayc.pipelines.passes import PassContext, function_pass

_HASHED_BYTES = 1 << 16
"""Parameters up to this size are one where their bytes are; larger ones only where they are one array, as hashing weights takes time."""


class _Keys:
    """Makes keys that equal operations share."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod

    def of(self, op: Op) -> Hashable:
        operation = op.operation
        if isinstance(op, Constant) and op.key is not None:
            return self.parameter(op.key)
        attributes = operation.attributes
        return operation.name, tuple(operation.operands), tuple((name, attributes[name]) for name in sorted(attributes))

    def parameter(self, key: str) -> Hashable:
        array = self.mod.params.get(key)
        if array is None:
            return "key", key
        if array.nbytes <= _HASHED_BYTES:
            return "bytes", array.dtype.name, array.shape, array.tobytes()
        return "array", array.dtype.name, array.shape, array.strides, array.__array_interface__["data"][0]


def _merge(block: ir.Block, keys: _Keys, outer: dict[Hashable, ir.Operation]) -> None:
    """Merges within a block; what an outer block holds counts too, as its values are seen here."""
    known = dict(outer)
    equal: list[ir.Operation] = []
    for op in block.operations:
        operation = op.operation
        for region in operation.regions:
            for inner in region.blocks:
                _merge(inner, keys, known if op.operation.name == "relay.if" else {})
        if not isinstance(op, Op) or not op.pure or op.region_names:
            continue
        first = known.setdefault(keys.of(op), operation)
        if first is not operation:
            for old, new in zip(operation.results, first.results, strict=True):
                old.replace_all_uses_with(new)
            equal.append(operation)
    for operation in equal:
        operation.erase()


@function_pass(opt_level=1, name="EliminateCommonSubexpr")
def eliminate_common_subexpr(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Merges equal operations and equal constants."""
    _merge(func.regions[0].blocks[0], _Keys(mod), {})
