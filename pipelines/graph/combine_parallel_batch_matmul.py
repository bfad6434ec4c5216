"""CombineParallelBatchMatmul: products of one batch of matrices with several others become one product and slices of it."""

from collections.abc import Hashable

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.passes import PassContext, function_pass
from relayc.pipelines.graph.combine_parallel import Family, combine


def _key(op: Op) -> Hashable:
    shape = TensorType.of(op.tensor_b).shape
    return tuple(op.attrs().items()), shape[0], shape[2 if op.transpose_b else 1], TensorType.of(op.tensor_b).dtype


_BATCH_MATMUL = Family("nn_batch_matmul", _key, None, lambda op: 1 if op.transpose_b else 2, lambda op: 2)


@function_pass(opt_level=4, name="CombineParallelBatchMatmul")
def combine_parallel_batch_matmul(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Three or more nn.batch_matmul of the same matrices become one, with what follows all of them."""
    combine(func, _BATCH_MATMUL, ctx)
