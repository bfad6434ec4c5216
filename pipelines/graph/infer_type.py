"""InferType: runs the type relations through the program, so that shapes known at its inputs reach its outputs."""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op, RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Fused
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.passes import PassContext, function_pass


def _merge(inferred: TensorType, found: TensorType, op: Op) -> TensorType:
    """What both say together. Raises RelayError where they contradict each other."""
    if not inferred.accepts(found):
        raise RelayError(f"{op.operation.name} at {op.source()}: expected result type {inferred}, found {found}")
    dims = (a if b is None else b for a, b in zip(inferred.shape, found.shape, strict=True))
    return found.with_shape(dims)


def _infer_block(block: ir.Block) -> None:
    for op in block.operations:
        operation = op.operation
        for region in operation.regions:
            for inner in region.blocks:
                _infer_block(inner)
        if not isinstance(op, Op):
            continue
        if isinstance(op, Fused):
            body = operation.regions[0].blocks[0].operations
            operation.results[0].set_type(body[len(body) - 1].operation.operands[0].type)
            continue
        try:
            inferred = op.inferred_types()
        except RelayError as e:
            raise RelayError(f"{operation.name} at {op.source()}: {e}") from None
        for result, type_ in zip(operation.results, inferred, strict=True):
            found = TensorType.of(result)
            merged = _merge(type_, found, op)
            if merged != found:
                result.set_type(merged.to_mlir())


@function_pass(opt_level=0, name="InferType")
def infer_type(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Infers every type anew: unknown dimensions that follow from known ones become known, in signatures too."""
    block = func.regions[0].blocks[0]
    _infer_block(block)
    returned = block.operations[len(block.operations) - 1].operation.operands
    signature = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in returned])
    func.attributes["function_type"] = ir.TypeAttr.get(signature)
