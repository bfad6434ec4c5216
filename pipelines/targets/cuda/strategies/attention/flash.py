"""The strategy `flash`: attention as one kernel that keeps no scores in memory; with few queries as two, that split the keys."""

from collections.abc import Callable, Iterable

from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cuda.strategies.attention.blocks import BlockAttention, BlockParameters, fitted
from relayc.pipelines.targets.cuda.strategies.attention.versions import emit_versions, has_few_rows, splits_of
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.te.read.attention import Attention, match
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning, powers_of_two

BLOCKS = BlockParameters(warps=4, rows=8, keys=32)


def schedule_flash(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules attention without its log-sum-exp; None for any other kernel."""
    attention = match(kernel)
    if attention is None or attention.lse is not None or not isinstance(target, CudaTarget):
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
