"""CombineParallelDense: products of one tensor with several constant weights become one product and slices of it (query, key, value)."""

from collections.abc import Hashable

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.passes import PassContext, function_pass
from relayc.pipelines.graph.combine_parallel import Family, combine


def _key(op: Op) -> Hashable:
    weight = TensorType.of(op.weight)
    return op.out_dtype, weight.shape[1], weight.dtype


_DENSE = Family("nn_dense", _key, "units", lambda op: 0, lambda op: TensorType.of(op.data).rank - 1)


@function_pass(opt_level=4, name="CombineParallelDense")
def combine_parallel_dense(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Three or more nn.dense of the same data become one, with their biases."""
    combine(func, _DENSE, ctx)
