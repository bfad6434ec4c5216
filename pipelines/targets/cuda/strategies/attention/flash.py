"""The strategy `flash`: attention as one kernel that keeps no scores in memory; with few queries as two, that split the keys."""

from collections.abc import Callable, Iterable

from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cuda.strategies.attention.blocks import BlockAttention, BlockParameters, fitted
from relayc.pipelines.targets.cuda.strategies.attention.tensor_blocks import queries_of
from relayc.pipelines.targets.cuda.strategies.attention.tensor_choice import TensorTiles
from relayc.pipelines.targets.cuda.strategies.attention.versions import emit_versions, has_few_rows, splits_of
from relayc.pipelines.targets.cuda.strategies.product.instructions import COLUMNS
from relayc.pipelines.targets.cuda.strategies.product.shared import CHUNK
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.te.read.attention import Attention, match
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning, powers_of_two

BLOCKS = BlockParameters(warps=4, rows=8, keys=32)


def schedule_flash(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules attention; None for any other kernel."""
    attention = match(kernel)
    if attention is None or not isinstance(target, CudaTarget):
        return None
    few = splits_of(attention, target, tuning)
    many = None if few is not None and has_few_rows(attention) else _blocks(attention, target, tuning)
    return emit_versions(kernel, few, many)


def _blocks(attention: Attention, target: Target, tuning: Tuning) -> BlockAttention:
    values: dict[str, Callable[[BlockParameters], Iterable[int]]] = {
        "warps": lambda p: powers_of_two(1, 8),
        "rows": lambda p: powers_of_two(1, 16),
        "keys": lambda p: powers_of_two(32, 128),
    }
    chosen = tuning.replace(BLOCKS, ("warps", "rows", "keys"), lambda p: fitted(attention, p, target.l1_bytes), values)
    return BlockAttention(attention, fitted(attention, chosen, target.l1_bytes))


# The strategy `flash_mma`: attention of 16-bit floats, or of f32 as tf32, on tensor cores, and of few queries by splits of the keys as
# `flash` has them.


def schedule_flash_mma(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules an attention of f16 or bf16, or f32 as tf32 where that is asked for, of which more than a few queries share keys; None for
    any other kernel."""
    attention = match(kernel)
    if attention is None or not isinstance(target, CudaTarget) or has_few_rows(attention):
        return None
    queries = queries_of(attention, bool(tuning.number("tf32", 0)))
    if queries is None or attention.depth * queries.element_bytes % CHUNK or attention.width % COLUMNS:
        return None
    tiles = TensorTiles(attention, queries, target)
    chosen = tiles.chosen(tuning)
    if chosen is None:
        return None
    return emit_versions(kernel, splits_of(attention, target, tuning), tiles.blocks(chosen))
