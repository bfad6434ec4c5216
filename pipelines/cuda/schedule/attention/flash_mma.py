"""The strategy `flash_mma`: attention of 16-bit floats on tensor cores, and with few queries by splits of the keys as `flash` has them."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from relayc.pipelines.cuda.architectures import MOST_REGISTERS, REGISTERS
from relayc.pipelines.cuda.schedule.attention.copies import CHUNK_ELEMENTS
from relayc.pipelines.cuda.schedule.attention.tensor_blocks import Queries, TensorBlocks, TensorParameters, queries_of
from relayc.pipelines.cuda.schedule.attention.versions import emit_versions, has_few_rows, splits_of
from relayc.pipelines.cuda.schedule.product.instructions import ROWS
from relayc.pipelines.cuda.target import CudaTarget
from relayc.pipelines.gpu.launch import WARP
from relayc.pipelines.kernel.attention import KEY, Attention, match
from relayc.pipelines.kernel.graph import Kernel
from relayc.pipelines.schedule.strategy import Scheduled
from relayc.pipelines.schedule.tuning import Tuning, powers_of_two
from relayc.pipelines.target import Target
from relayc.symbolic import guess

MOST_WARPS, MOST_ROWS, MOST_KEYS, MOST_STAGES = 8, 32, 128, 4
"""Of a block, of a warp, of a tile, of shared memory."""
MOST_HEAD = 256
"""Elements of a head."""


def schedule_flash_mma(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules an attention of f16 or bf16, of which more than a few queries share keys; None for any other kernel."""
    attention = match(kernel)
    if attention is None or not isinstance(target, CudaTarget) or has_few_rows(attention):
        return None
    queries = queries_of(attention)
    if queries is None or any(n % CHUNK_ELEMENTS or n > MOST_HEAD for n in (attention.depth, attention.width)):
        return None
    default = _default(attention, queries, target)
    if default is None:
        return None
    few = splits_of(attention, target, tuning)
    return emit_versions(kernel, few, _blocks(attention, queries, default, target, tuning))


def registers(attention: Attention, p: TensorParameters) -> int:
    """Registers of a thread, by count: sums of context and of scores, words of queries, and an estimate for the rest."""
    sums = p.rows * (attention.width + p.keys) // WARP
    words = p.rows * attention.depth // 2 // WARP
    return sums + words + 44


def _fits(attention: Attention, queries: Queries, p: TensorParameters, target: CudaTarget) -> bool:
    needed = registers(attention, p)
    shared = TensorBlocks(attention, queries, p, True).shared_bytes
    return needed <= MOST_REGISTERS and needed * p.warps * WARP <= REGISTERS and shared <= target.shared_bytes


def _default(attention: Attention, queries: Queries, target: CudaTarget) -> TensorParameters | None:
    """Rows of a warp as many as registers allow, then keys; None where a block of one tile of an instruction's rows does not fit."""
    warps = 4
    while warps > 1 and warps * ROWS >= 2 * guess(attention.rows_of_key):
        warps //= 2
    for rows in (2 * ROWS, ROWS):
        if rows > ROWS and warps * rows > guess(attention.rows_of_key):
            continue
        for keys in (64, 32, 16):
            if keys > ROWS and keys >= 2 * guess(attention.shape[KEY]):
                continue
            found = TensorParameters(warps, rows, keys, 2)
            if keys >= 2 * ROWS and _fits(attention, queries, found, target):
                return found
    found = TensorParameters(warps, ROWS, ROWS, 2)
    return found if _fits(attention, queries, found, target) else None


def _blocks(attention: Attention, queries: Queries, default: TensorParameters, target: CudaTarget, tuning: Tuning) -> TensorBlocks:
    def fitted(p: TensorParameters) -> TensorParameters:
        warps, rows = _power(p.warps, 1, MOST_WARPS), _power(p.rows, ROWS, MOST_ROWS)
        found = TensorParameters(warps, rows, _power(p.keys, ROWS, MOST_KEYS), min(max(p.stages, 2), MOST_STAGES))
        while not _fits(attention, queries, found, target):
            if found.stages > 2:
                found = replace(found, stages=found.stages - 1)
            elif found.keys > ROWS:
                found = replace(found, keys=found.keys // 2)
            elif found.rows > ROWS:
                found = replace(found, rows=found.rows // 2)
            else:
                found = replace(found, warps=found.warps // 2)
        return found

    values: dict[str, Callable[[TensorParameters], Iterable[int]]] = {
        "warps": lambda p: powers_of_two(1, MOST_WARPS),
        "rows": lambda p: powers_of_two(ROWS, MOST_ROWS),
        "keys": lambda p: powers_of_two(ROWS, MOST_KEYS),
        "stages": lambda p: range(2, MOST_STAGES + 1),
    }
    chosen = tuning.replace(default, ("warps", "rows", "keys", "stages"), fitted, values)
    return TensorBlocks(attention, queries, chosen, target.has("cp-async"))


def _power(number: int, least: int, most: int) -> int:
    """The power of two at or below a number, within bounds that are such powers."""
    return min(max(1 << (max(1, number).bit_length() - 1), least), most)
