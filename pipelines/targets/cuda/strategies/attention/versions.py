"""The launches of an attention: of few queries that share keys the keys are split, of more the rows go to blocks."""

from collections.abc import Callable, Iterable

from relayc.pipelines.emission import emit
from relayc.pipelines.targets.cuda.strategies.attention.blocks import BlockAttention
from relayc.pipelines.targets.cuda.strategies.attention.splits import SplitParameters, Splits
from relayc.pipelines.targets.cuda.strategies.attention.tensor_blocks import TensorBlocks
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.te.read.attention import KEY, Attention
from relayc.pipelines.te.read.graph import Kernel, NotStructured
from relayc.pipelines.tir.gpu.launch import WARP
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, powers_of_two
from relayc.pipelines.tir.values import nest
from relayc.symbolic import ceil_div, guess, minimum, proves

FEW_ROWS = 8
"""Rows up to which the keys are split."""
SPLIT_KEYS = 256
"""Keys of a split at least."""
SPLIT_WARPS, SPLIT_ROWS, KEYS_AT_A_TIME = 4, 4, 4
BLOCKS_PER_MULTIPROCESSOR = 2
"""That splits are to make."""


def emit_versions(kernel: Kernel, few: Splits | None, many: BlockAttention | TensorBlocks | None) -> Scheduled:
    """The kernel in tir, at the ambient insertion point: `few` where at most FEW_ROWS rows share keys, else `many`."""
    workspace_bytes = few.workspace_bytes if few is not None else 0
    with kernel_function(kernel, workspace_bytes=workspace_bytes) as body:
        for emission in (few, many):
            if emission is not None:
                emission.begin(body)
        if few is not None and many is not None:
            is_few = emit.compare("sle", emit.index_constant(many.rows), emit.index_constant(FEW_ROWS))
            nest.when(is_few, body.evaluator, few.emit, many.emit)
        else:
            (few or many).emit()  # type: ignore[union-attr]
    return Scheduled(body.function, workspace_bytes=workspace_bytes)


def has_few_rows(attention: Attention) -> bool:
    """Whether few queries share keys, at all sizes."""
    rows = attention.rows_of_key
    return proves(lambda: rows <= FEW_ROWS)


def splits_of(attention: Attention, target: CudaTarget, tuning: Tuning) -> Splits | None:
    """For at most FEW_ROWS rows; None where there are always more, or where so few do not stay in registers."""
    rows, heads, keys = attention.rows_of_key, attention.heads_of_key, attention.shape[KEY]
    if proves(lambda: rows > FEW_ROWS):
        return None
    count = max(1, min(guess(rows), FEW_ROWS))
    for rows_of_block in range(min(SPLIT_ROWS, count), 0, -1):
        blocks = max(1, guess(heads)) * ceil_div(count, rows_of_block)
        wanted = ceil_div(BLOCKS_PER_MULTIPROCESSOR * target.num_multiprocessors, blocks)
        splits = max(1, min(wanted, ceil_div(guess(keys), SPLIT_KEYS)))
        defaults = SplitParameters(splits, SPLIT_WARPS, rows_of_block, KEYS_AT_A_TIME)
        names = {"splits": "splits", "warps": "split_warps", "rows": "split_rows", "keys": "split_keys"}
        values: dict[str, Callable[[SplitParameters], Iterable[int]]] = {
            "splits": lambda p: powers_of_two(1, max(1, ceil_div(guess(keys), WARP))),
            "split_warps": lambda p: powers_of_two(1, 8),
            "split_rows": lambda p: powers_of_two(1, FEW_ROWS),
            "split_keys": lambda p: powers_of_two(1, 8),
        }
        try:
            return Splits(attention, tuning.replace(defaults, names, values=values), minimum(rows, FEW_ROWS))
        except NotStructured:
            continue
    return None
