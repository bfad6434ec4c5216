"""The strategy of contractions: which operand takes which role, and which loops they get."""

from dataclasses import replace
from functools import partial
from math import prod

from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.strategies.contraction.blocked import BlockedNest
from relayc.pipelines.targets.cpu.strategies.contraction.blocks import Blocking, block_values, default_blocks, row_blocks
from relayc.pipelines.targets.cpu.strategies.contraction.nest import ContractionNest, emit_first
from relayc.pipelines.targets.cpu.strategies.contraction.padded import PaddedNest, fewest_tasks
from relayc.pipelines.targets.cpu.strategies.contraction.plan import (
    BUSY_ROWS,
    FEWEST_PANELS,
    OperandSource,
    Plan,
    has_contiguous_columns,
    is_far,
    is_read_by_rows,
    packed_bytes,
    source_of_a,
    source_of_b,
    waits_for_panel,
)
from relayc.pipelines.targets.cpu.strategies.contraction.tile import (
    FEW_ROWS,
    FEWEST_TILES,
    PARALLEL_GRAIN,
    PARALLEL_TASKS,
    RegisterTile,
    default_tile,
    panel_fits,
    tile_rows,
    tile_vectors,
    typical_rows,
)
from relayc.pipelines.te.read.contraction import Contraction, match
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled, is_param
from relayc.pipelines.tir.strategy.tuning import Tuning, grains
from relayc.pipelines.tir.strategy.turns import is_repeated
from relayc.symbolic import Dim, Size, bounds, ceil_div, guess

MOST_TAPS = 64
"""Steps of checked reduction loops up to which the tiles that a padding touches are unrolled; beyond, a padded copy is made first."""


def schedule_contraction(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a kernel whose result is a contraction with an elementwise epilogue; None for any other."""
    nests = contraction_nests(kernel, target, tuning)
    return emit_first(nests) if nests else None


def contraction_nests(kernel: Kernel, target: Target, tuning: Tuning) -> list[ContractionNest]:
    """The loops of such a kernel, the last ones for any number of rows; none for any other kernel."""
    chosen = choose(kernel, target, tuning)
    if chosen is None:
        return []
    plan, blocks = chosen
    if blocks is not None:
        return [*_few_rows_in_place(plan, target), BlockedNest(plan, blocks)]
    return [PaddedNest(plan, tuning.number("tasks", PARALLEL_TASKS, partial(fewest_tasks, plan)))]


def _few_rows_in_place(plan: Plan, target: Target) -> list[ContractionNest]:
    """Loops for a small, symbolic number of rows, which use B in place, while more rows use a copy of it."""
    c, most = plan.contraction, (FEWEST_TILES - 1) * plan.tile.rows
    in_place = plan.b is OperandSource.COPY and c.b.node.kind == "arg" and has_contiguous_columns(c)
    if not in_place or isinstance(plan.rows, int) or bounds(plan.rows)[0] > most:
        return []
    chosen = choose(plan.kernel, target, Tuning(), IN_PLACE_ROWS)
    return [] if chosen is None or chosen[1] is None else [BlockedNest(chosen[0], chosen[1], most)]


def choose(kernel: Kernel, target: Target, tuning: Tuning, rows: int | None = None) -> tuple[Plan, Blocking | None] | None:
    """The plan of such a kernel, and its cache blocking, None if padding bounds the reads; None for any other kernel.

    Args:
      rows: number of rows, for so few of a symbolic number that B is used in place.
    """
    found = match(kernel)
    if not found:
        return None
    if all(guess(_taps(c)) > MOST_TAPS for c in found):
        found = match(kernel, keeps_pads=True) or found
    usable = [c for c in found if isinstance(c.column_extent, int) or (c.store_stride(c.column) == 1 and not c.a.checks)]
    if not usable:
        return None
    contraction = max(usable, key=lambda c: _efficiency(c, kernel, target))
    if contraction.column_extent == 1 or contraction.node.element.width < 16:
        return None
    joined = _joined_rows(contraction, kernel, target)
    contraction = joined or _long_rows(contraction, kernel, target)
    values = {"rows": partial(tile_rows, contraction, target), "vectors": partial(tile_vectors, contraction, target)}
    few = rows or (FEW_ROWS if is_repeated(kernel) and isinstance(contraction.row_extent, Dim) else None)
    far = is_far(kernel, contraction, target)
    tile = tuning.replace(default_tile(contraction, target, few, far), ("rows", "vectors"), values=values)
    b = source_of_b(kernel, contraction, tile, target) if rows is None else OperandSource.MEMORY
    prefetches = b is OperandSource.PARAMETER and guess(packed_bytes(contraction, tile)) > target.l2_bytes
    if contraction.a.checks:
        work, grain = multiply_adds(contraction, tuning)
        return Plan(kernel, contraction, tile, OperandSource.MEMORY, b, work, grain, target, prefetches), None
    extent = contraction.row_extent
    if contraction.rows and isinstance(extent, int):
        tile = replace(tile, rows=ceil_div(extent, ceil_div(extent, tile.rows)))
    a = source_of_a(kernel, contraction, tile) if joined is None else OperandSource.TABLE
    by_rows = b is OperandSource.MEMORY and is_read_by_rows(kernel, contraction, tile, rows or typical_rows(contraction), target)
    blocks = row_blocks(contraction, tile, target) if by_rows else default_blocks(contraction, tile, target, a, b, few)
    in_one_block = joined is not None and not isinstance(extent, int)
    if (few and not by_rows) or in_one_block:
        # Many rows are in one block, too: they read the same panels.
        blocks = replace(blocks, tiles=ceil_div(typical_rows(contraction), tile.rows))
    if in_one_block:
        # As without a table: all tiles go by in front of a panel, which stays in the second-level cache.
        blocks = replace(blocks, panels=1, chunk=contraction.reduction[0].extent)
    names = {"tiles": "block_tiles", "panels": "block_panels", "chunk": "chunk"}
    in_place = b is OperandSource.MEMORY and not by_rows
    blocks = tuning.replace(
        blocks, names, lambda found: found.fitted(contraction, tile, in_place), block_values(contraction, tile, in_place)
    )
    if in_place or in_one_block:
        blocks = replace(blocks, chunk=contraction.reduction[0].extent)
    share = guess(packed_bytes(contraction, tile)) // target.num_threads
    whole = blocks.chunk == contraction.reduction[0].extent or not isinstance(extent, int)
    turns = whole and b is OperandSource.PARAMETER and _turns(kernel, share, target)
    if turns:
        prefetches = (few is not None or isinstance(extent, int)) and tile.rows >= BUSY_ROWS and share > target.l2_bytes // 2
    waits = waits_for_panel(contraction, tile, b, share, target, far)
    work, grain = multiply_adds(contraction, tuning)
    return Plan(kernel, contraction, tile, a, b, work, grain, target, prefetches, turns, far, waits), blocks


def _turns(kernel: Kernel, share: int, target: Target) -> bool:
    """Whether a kernel goes to and fro over its panels, of which a thread has so many bytes: a loop calls it, and they are not few beside
    the second-level cache, which other kernels of the loop share, nor so many that little of them is there from one call to the next."""
    return is_repeated(kernel) and target.l2_bytes // 8 < share <= 4 * target.l2_bytes


def multiply_adds(contraction: Contraction, tuning: Tuning) -> tuple[Size, int]:
    """Multiply-adds, and the number from which several threads pay off."""
    work = prod(v.extent for v in contraction.variables)
    return work, tuning.number("grain", PARALLEL_GRAIN, lambda: grains(PARALLEL_GRAIN, work))


def _taps(contraction: Contraction) -> Size:
    return prod(v.extent for v in contraction.checked)


def _efficiency(contraction: Contraction, kernel: Kernel, target: Target) -> float:
    """Share of lanes and rows that do useful work in these roles, lower where B would have to be packed at run time."""
    tile = default_tile(contraction, target)
    columns = guess(contraction.column_extent)
    lanes = columns / (ceil_div(columns, tile.lanes) * tile.lanes) if columns >= tile.lanes else columns / tile.lanes / 2
    ready = 1.0 if is_param(kernel, contraction.b.node) or has_contiguous_columns(contraction) else _packed_share(contraction, tile)
    contiguous = 1.0 if contraction.store_stride(contraction.column) == 1 else 0.9
    return lanes * ready * contiguous


IN_PLACE_ROWS = 2
"""Rows of tiles that use B in place, if a call has few rows: wide tiles, because few rows wait for memory."""
GATHERED = 3.0
"""Cycles to pack an element of B whose columns are not neighbours in memory: one by one."""


def _packed_share(contraction: Contraction, tile: RegisterTile) -> float:
    """The share of the time that is left for multiply-adds, two vectors a cycle, where B is packed element by element; at most 0.6."""
    busy = guess(prod(row.extent for row in contraction.rows)) / tile.lanes / 2
    return min(0.6, busy / (busy + GATHERED))


COPIED = 400
"""Multiply-adds per element of a padded image from which writing the image is cheap: a few percent of the work if it stays in caches, a
tenth otherwise."""


def _joined_rows(contraction: Contraction, kernel: Kernel, target: Target) -> Contraction | None:
    """The contraction that reads a padded copy of the image and has its rows in one loop, if padding bounds the rows. Tiles then need not
    end with a line of the image, whose length a call may decide, and a part of a panel of B serves all lines. None for any other
    contraction, if the copy costs too much, or if a panel serves the lines from the first-level cache anyway."""
    c = contraction
    is_known = isinstance(c.row_extent, int)
    if not c.a.checks or not is_param(kernel, c.b.node) or (is_known and panel_fits(c, default_tile(c, target), target)):
        return None
    padded = next((f for f in match(kernel, keeps_pads=True) if f.b.node is c.b.node and f.a.node.kind == "pad"), None)
    joined = padded.with_joined_rows() if padded is not None else None
    if joined is None or guess(prod(v.extent for v in c.variables)) < COPIED * guess(joined.a.node.size):
        return None
    if is_known:
        # All taps of a block of channels are a chunk.
        return replace(joined, reduction=sorted(joined.reduction, key=lambda v: -guess(joined.a.offset.coefficient(v))))
    # What is checked stays outermost: neighbours in memory are read one after the other.
    order = [c.variables.index(v) for v in c.reduction]
    return replace(joined, reduction=sorted(joined.reduction, key=lambda v: order.index(joined.variables.index(v))))


def _long_rows(contraction: Contraction, kernel: Kernel, target: Target) -> Contraction:
    """The contraction with its rows in one loop, if this justifies packing A: rows of a strided convolution, for example, are short."""
    c = contraction
    if len(c.rows) < 2 or c.a.checks or is_param(kernel, c.a.node):
        return c
    tile = default_tile(c, target)
    short = ceil_div(typical_rows(c), tile.rows) < FEWEST_TILES
    deep = not panel_fits(c, tile, target) and ceil_div(guess(c.column_extent), tile.width) >= FEWEST_PANELS
    return (c.with_one_row_loop() or c) if short and deep else c
