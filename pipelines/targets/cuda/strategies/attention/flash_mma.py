"""The strategy `flash_mma`: attention of 16-bit floats, or of f32 as tf32, on tensor cores, and of few queries by splits of the keys as
`flash` has them."""

from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cuda.strategies.attention.tensor_blocks import queries_of
from relayc.pipelines.targets.cuda.strategies.attention.tensor_choice import TensorTiles
from relayc.pipelines.targets.cuda.strategies.attention.versions import emit_versions, has_few_rows, splits_of
from relayc.pipelines.targets.cuda.strategies.product.instructions import COLUMNS
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.te.read.attention import match
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning


def schedule_flash_mma(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules an attention of f16 or bf16, or f32 as tf32 where that is asked for, of which more than a few queries share keys; None for
    any other kernel."""
    attention = match(kernel)
    if attention is None or attention.lse is not None or not isinstance(target, CudaTarget) or has_few_rows(attention):
        return None
    queries = queries_of(attention, bool(tuning.number("tf32", 0)))
    if queries is None or attention.depth * queries.element_bytes % CHUNK_BYTES or attention.width % COLUMNS:
        return None
    tiles = TensorTiles(attention, queries, target)
    chosen = tiles.chosen(tuning)
    if chosen is None:
        return None
    return emit_versions(kernel, splits_of(attention, target, tuning), tiles.blocks(chosen))
