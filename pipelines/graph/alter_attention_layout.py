"""AlterAttentionLayout: the rows of keys and values of a head lie side by side where many queries read them.

    attention(query, key, value) {key_layout = "BSHD"}   ->   attention(query, transpose(key), value) {key_layout = "BHSD"}

Exporters transpose what a dense layer gives, [batch, keys, heads, elements], and RecognizeAttention reads it in place. Rows of a head are
then a row of the dense layer apart: they share sets of the cache and take a page each. A copy costs time by keys, and gains it by keys and
queries. GPUs read the rows into shared memory first.
"""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.attention import AXES, Attention
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.passes import PassContext, function_pass
from relayc.pipelines.context.target import Target
from relayc.pipelines.graph.blocks import graph_blocks

MIN_QUERIES = 1024
"""Queries from which the copies pay. One thread, Ice Lake, 6 heads of 64, time with keys and values in the order of heads (without the time
of the copies, 1 to 3 %): 0.92 with 197 and 384 queries, 0.87 with 1,024 and 1,500; code for AVX2 0.95, 1.01, 0.92, 0.92."""


@function_pass(opt_level=3, name="AlterAttentionLayout")
def alter_attention_layout(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Keys and values of many queries are transposed to [batch, head, key, element]."""
    if (ctx.get("target") or Target("cpu")).is_gpu:
        return
    for block in graph_blocks(func):
        for op in list(block.operations):
            if isinstance(op, Attention) and _has_many_queries(op):
                _transpose(op)


def _has_many_queries(op: Attention) -> bool:
    """Whether the number of queries is known and large, of floats that no schedule packs."""
    query = TensorType.of(op.query)
    rows = query.sizes[op.query_layout.index("S")] if query.is_known else None
    return isinstance(rows, int) and rows >= MIN_QUERIES and query.dtype == "float32"


def _is_spread(value: ir.Value, layout: str) -> bool:
    """Whether elements of a head are contiguous, and other heads lie between its rows."""
    type_ = TensorType.of(value)
    return layout[-1] == "D" and layout[-2] != "S" and type_.is_known and type_.sizes[layout.index("H")] != 1


def _transpose(op: Attention) -> None:
    layouts = {"key": op.key_layout, "value": op.value_layout}
    operands = {"query": op.query, "key": op.key, "value": op.value}
    moved = [name for name, layout in layouts.items() if _is_spread(operands[name], layout)]
    if not moved:
        return
    with ir.InsertionPoint(op), op.location:
        for name in moved:
            operands[name] = build("transpose", operands[name], axes=tuple(layouts[name].index(axis) for axis in AXES))
        found = build("nn.attention", *operands.values(), *op.mask, **{**op.attrs(), **{f"{name}_layout": AXES for name in moved}})
    op.operation.results[0].replace_all_uses_with(found)
    op.operation.erase()
