"""CombineParallelConv2D: convolutions of one tensor with several constant weights become one and slices of it."""

from collections.abc import Hashable

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.passes import PassContext, function_pass
from relayc.pipelines.graph.combine_parallel import Family, combine


def _key(op: Op) -> Hashable | None:
    if op.groups != 1 or layout(op.out_layout or op.data_layout).blocks:
        return None
    weight = layout(op.kernel_layout).logical(TensorType.of(op.weight).sizes)
    attrs = {name: value for name, value in op.attrs().items() if name != "channels"}
    return tuple(attrs.items()), tuple(weight[axis] for axis in "IHW"), TensorType.of(op.weight).dtype


_CONV2D = Family(
    "nn_conv2d",
    _key,
    "channels",
    lambda op: layout(op.kernel_layout).index("O"),
    lambda op: layout(op.out_layout or op.data_layout).index("C"),
)


@function_pass(opt_level=4, name="CombineParallelConv2D")
def combine_parallel_conv2d(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Three or more nn.conv2d of the same data with equal windows become one, with their biases."""
    combine(func, _CONV2D, ctx)
