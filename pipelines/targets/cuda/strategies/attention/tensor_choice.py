"""Which tiles an attention on tensor cores gets: those of the fewest cycles by a model of a multiprocessor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from relayc.pipelines.targets.cuda.architectures import MOST_REGISTERS
from relayc.pipelines.targets.cuda.strategies.attention.tensor_blocks import Queries, TensorBlocks, TensorParameters
from relayc.pipelines.targets.cuda.strategies.product.choice import (
    BARRIER,
    BESIDE,
    DELAY,
    LATENCY,
    MEMORY_BYTES,
    SHARED_BYTES,
    blocks_at_once,
)
from relayc.pipelines.targets.cuda.strategies.product.instructions import ROWS
from relayc.pipelines.targets.cuda.strategies.product.strategy import FMA_CYCLE, MMA_CYCLE
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.te.read.attention import KEY, Attention
from relayc.pipelines.tir.gpu.launch import WARP
from relayc.pipelines.tir.strategy.tuning import Tuning, power_of_two, powers_of_two
from relayc.symbolic import Size, ceil_div, guess, proves

MOST_WARPS, MOST_ROWS, MOST_KEYS, MOST_STAGES = 8, 32, 128, 4
"""Of a block, of a warp, of a tile of 16-bit floats, of shared memory. Of 128 keys of f32 ptxas would spill what it reads ahead."""
OTHER_REGISTERS = 61
"""Of a thread, beside sums and queries: largest scores, totals, words of keys on their way, addresses. This and the next are estimated from
what ptxas takes without a spill."""
QUERY_REGISTERS = 17
"""Of a thread that reads queries from shared memory."""
EXPONENTIALS_CYCLE = 16
"""Exponentials a cycle of a multiprocessor."""
TYPICAL = 512
"""Queries and keys at least, where only a call says how many: of few any tile is fast enough."""
SCORE_OPERATIONS = 5
"""Instructions of an element of the scores: its share of the largest, a difference, a product, a sum and a rounding."""


@dataclass(frozen=True)
class TensorTiles:
    """Tiles of an attention on a target."""

    attention: Attention
    queries: Queries
    target: CudaTarget

    def blocks(self, p: TensorParameters) -> TensorBlocks:
        """What emits them."""
        return TensorBlocks(self.attention, self.queries, p, self.target.has("cp-async"), self.keeps_queries(p))

    @property
    def most_keys(self) -> int:
        """Of a tile."""
        return MOST_KEYS * 2 // self.queries.element_bytes

    def chosen(self, tuning: Tuning) -> TensorParameters | None:
        """The best numbers, with those that were set; None where no block fits."""
        rows, keys = (_typical(size) for size in (self.attention.rows_of_key, self.attention.shape[KEY]))
        sizes = product(powers_of_two(1, MOST_WARPS), (ROWS, 2 * ROWS), powers_of_two(2 * ROWS, self.most_keys), (2, 3))
        every = [
            p
            for p in (TensorParameters(1, ROWS, ROWS, 2), *(TensorParameters(*numbers) for numbers in sizes))
            if self._fits(p) and (p.keys == ROWS or p.keys < 2 * keys) and (p.warps * p.rows == ROWS or p.warps * p.rows < 2 * rows)
        ]
        best = min(every, key=self.cycles, default=None)
        if best is None:
            return None
        options: dict[str, Sequence[int]] = {
            "warps": powers_of_two(1, MOST_WARPS),
            "rows": powers_of_two(ROWS, MOST_ROWS),
            "keys": powers_of_two(ROWS, self.most_keys),
            "stages": range(2, MOST_STAGES + 1),
        }

        def values(field: str) -> Callable[[TensorParameters], list[int]]:
            return lambda p: [v for v in options[field] if self._fits(replace(p, **{field: v}))]

        return tuning.replace(best, list(options), self._fitted, {field: values(field) for field in options})

    def registers(self, p: TensorParameters, keeps_queries: bool) -> int:
        """Of a thread: sums of context and of scores, words of queries, and the others."""
        a = self.attention
        sums = p.rows * (a.width + p.keys) // WARP
        words = p.rows * a.depth * self.queries.element_bytes // 4 // WARP if keeps_queries else QUERY_REGISTERS
        looks_at_end = a.causal is not None or not proves(lambda: a.shape[KEY] % p.keys == 0)
        return sums + words + OTHER_REGISTERS + p.keys // 32 + (p.keys // 2 if looks_at_end else 0)

    def keeps_queries(self, p: TensorParameters) -> bool:
        """Whether registers have room for the words of the queries."""
        return self.registers(p, True) <= MOST_REGISTERS

    def _needed(self, p: TensorParameters) -> int:
        return self.registers(p, self.keeps_queries(p))

    def _fits(self, p: TensorParameters) -> bool:
        # Of MOST_WARPS warps with MOST_REGISTERS registers of a thread a multiprocessor has room for a block.
        return self._needed(p) <= MOST_REGISTERS and self.blocks(p).shared_bytes <= self.target.shared_bytes

    def _fitted(self, p: TensorParameters) -> TensorParameters:
        """The nearest numbers that a block can have."""
        warps, rows = power_of_two(p.warps, 1, MOST_WARPS), power_of_two(p.rows, ROWS, MOST_ROWS)
        found = TensorParameters(warps, rows, power_of_two(p.keys, ROWS, self.most_keys), min(max(p.stages, 2), MOST_STAGES))
        while not self._fits(found):
            if found.stages > 2:
                found = replace(found, stages=found.stages - 1)
            elif found.keys > ROWS:
                found = replace(found, keys=found.keys // 2)
            elif found.rows > ROWS:
                found = replace(found, rows=found.rows // 2)
            else:
                found = replace(found, warps=found.warps // 2)
        return found

    def cycles(self, p: TensorParameters) -> float:
        """About how long the kernel takes.

        A warp multiplies, then computes weights, then multiplies: other warps of the multiprocessor are what its tensor cores do meanwhile.
        """
        a, architecture = self.attention, self.target.architecture
        threads, block_rows, head = p.warps * WARP, p.warps * p.rows, a.depth + a.width
        resident = blocks_at_once(self.target, self.blocks(p).shared_bytes, threads, self._needed(p))
        rows, keys = (_typical(size) for size in (a.rows_of_key, a.shape[KEY]))
        each = ceil_div(ceil_div(rows, block_rows) * guess(a.heads_of_key), self.target.num_multiprocessors)
        active = max(1, min(each, resident))
        turns = ceil_div(keys, p.keys)
        if a.causal is not None:  # of square scores half, and half a tile and half a block more
            turns = ceil_div(keys // 2 + (p.keys + min(block_rows, rows)) // 2, p.keys)
        fma = FMA_CYCLE // 2 if architecture.capability in ((7, 5), (8, 0)) else FMA_CYCLE
        scores = block_rows * p.keys
        size = self.queries.element_bytes
        products = scores * head * size / 2 / MMA_CYCLE.get(architecture.capability, 512)
        softmax = scores / EXPONENTIALS_CYCLE + (SCORE_OPERATIONS * scores + block_rows * a.width) / fma
        queries = 0 if self.keeps_queries(p) else block_rows * a.depth
        reads = (p.warps * p.keys * head + queries) * size / SHARED_BYTES
        parts = (products, softmax, reads, p.keys * head * size / MEMORY_BYTES)
        busy = max(parts) + BESIDE * (sum(parts) - max(parts))
        # The four schedulers of a multiprocessor each have so many warps.
        warps = max(1.0, active * p.warps / 4)
        alone = max(4 / p.warps / active, 1.0) * (products + softmax) / warps
        delay = DELAY / ((p.stages - 1) * active)
        turn = max(busy, alone, delay) + BARRIER / active
        return each * turns * turn + ceil_div(each, active) * LATENCY


def _typical(size: Size) -> int:
    return size if isinstance(size, int) else max(guess(size), TYPICAL)
