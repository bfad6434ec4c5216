"""Sizes of the loops around a contraction's tiles, by a model of the caches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.strategies.contraction.plan import OperandSource
from relayc.pipelines.targets.cpu.strategies.contraction.tile import (
    FEWEST_TILES,
    MOST_ROWS,
    MOST_SETS,
    RegisterTile,
    panel_fits,
    typical_rows,
)
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.tir.strategy.tuning import part_sizes
from relayc.pipelines.tir.values.buffers import MOST_LOCAL_BYTES
from relayc.symbolic import Size, ceil_div, guess


@dataclass(frozen=True)
class Blocking:
    """Tunable numbers of the loops around the tiles.

    A task is a block of rows times a block of panels (a panel is as many columns as a tile has). Within it the reduction goes in chunks;
    each chunk of a panel serves all tiles of the block while it stays in the first-level cache, and the block's rows stay in the second.

    Attributes:
      tiles: row tiles of a block.
      panels: panels of a block.
      chunk: steps of the outermost reduction loop between two visits of the sums; its extent where the sums never leave registers.
    """

    tiles: int
    panels: int
    chunk: Size

    def fitted(self, contraction: Contraction, tile: RegisterTile, in_place: bool) -> "Blocking":
        """The possible blocks nearest to these: no more than there is, with room for panels and sums on the stack; without chunks where B
        is read in place."""
        outer = guess(contraction.reduction[0].extent)
        extent = typical_rows(contraction)
        step_bytes = guess(contraction.depth) // outer * tile.width * contraction.b.node.element.width // 8
        chunk = outer if in_place else max(1, min(self.chunk, outer, MOST_LOCAL_BYTES // step_bytes))
        panels = min(self.panels, ceil_div(guess(contraction.column_extent), tile.width), max(1, MOST_LOCAL_BYTES // (chunk * step_bytes)))
        most_tiles = max(1, MOST_LOCAL_BYTES // (panels * tile.width * tile.rows * contraction.node.element.width // 8))
        return Blocking(min(self.tiles, ceil_div(extent, tile.rows), most_tiles), panels, chunk)


def block_values(contraction: Contraction, tile: RegisterTile, in_place: bool) -> dict[str, Callable[[Blocking], list[int]]]:
    """The sensible numbers of blocks: parts of about the same size of all that there is, which have room."""

    def fitting(blocks: Blocking, field: str, sizes: Sequence[int]) -> list[int]:
        possible = [replace(blocks, **{field: size}) for size in sizes]
        return [getattr(p, field) for p in possible if p.fitted(contraction, tile, in_place) == p]

    tiles = part_sizes(ceil_div(typical_rows(contraction), tile.rows))
    panels = part_sizes(ceil_div(guess(contraction.column_extent), tile.width))
    chunks = part_sizes(guess(contraction.reduction[0].extent))
    return {
        "block_tiles": lambda blocks: fitting(blocks, "tiles", tiles),
        "block_panels": lambda blocks: fitting(blocks, "panels", panels),
        "chunk": lambda blocks: fitting(blocks, "chunk", chunks),
    }


KEPT_SUMS = 1 << 16
"""Bytes of the sums of a panel that are quickly read and written again between chunks of the reduction."""


def default_blocks(
    contraction: Contraction, tile: RegisterTile, target: Target, a: OperandSource, b: OperandSource, rows: int | None
) -> Blocking:
    """Blocks for a contraction without paddings.

    A panel of B that fits stays in the first-level cache while the tiles of a block of rows go by, and the block, a quarter of the
    second-level cache, while the panels do, by the rule of Goto and van de Geijn (Anatomy of High-Performance Matrix Multiplication, 2008).

    A panel that does not fit is cut in chunks. If the sums of all rows are few, a chunk takes as much of the first-level cache as a panel
    that fits. Otherwise such a chunk costs more: its sums come from further, and rows of A come in pieces of a few lines, too short for the
    core to read ahead. So a chunk then takes half of the second-level cache, and all rows go by: a step of a tile computes for longer than
    its few lines of B take to come from there. If A has its steps in blocks, such as those of channels, small chunks do not shorten the
    pieces: chunks are small, and rows go by in blocks with few sums. If the number of rows depends on the call, chunks are large, because
    few rows go over whole panels.

    A B that the kernel packs is packed anew for each block of rows: all rows go by in front of its panels, too.

    Args:
      a, b: where tiles read the operands.
      rows: for which they are chosen, `typical_rows` by default.
    """
    item = contraction.b.node.element.width // 8
    sums = tile.width * tile.rows * ceil_div(contraction.node.element.width, 8)
    tiles = ceil_div(rows or typical_rows(contraction), tile.rows)
    # Typical values of an expression may be none that the loop can have.
    panels = max(1, ceil_div(guess(contraction.column_extent), tile.width))
    outer = max(1, guess(contraction.reduction[0].extent))
    inner = max(1, guess(contraction.depth) // outer)
    packs = b is OperandSource.COPY
    chunk, streams = outer, (packs or tiles >= FEWEST_TILES) and not panel_fits(contraction, tile, target)
    most_rows = tiles
    if streams:
        step = guess(contraction.a.offset.coefficient(contraction.reduction[0]))
        in_blocks = a in (OperandSource.MEMORY, OperandSource.TABLE) and step != inner
        is_near = not packs and isinstance(contraction.row_extent, int) and (in_blocks or tiles * sums <= KEPT_SUMS)
        if is_near:
            most_rows = KEPT_SUMS // sums
        chunk_bytes = target.l1_bytes * 3 // 4 if is_near else target.l2_bytes // 2
        steps = max(1, chunk_bytes // (tile.width * item * inner))
        chunk = ceil_div(outer, ceil_div(outer, steps)) if isinstance(contraction.reduction[0].extent, int) else steps
        if not isinstance(contraction.row_extent, int):
            # Lower tiles with several sums an element go over whole chunks without a rest.
            chunk = ceil_div(chunk, MOST_SETS) * MOST_SETS
    else:
        most_rows = max(1, target.l2_bytes // 4 // (chunk * inner * item * tile.rows))
    chunked = chunk != contraction.reduction[0].extent
    # Columns go by in front of a block of rows, or rows in front of a panel. The sums of chunks lie on the stack.
    most_panels = 1 if streams else panels
    if packs:
        most_panels = max(1, target.l2_bytes // 8 // (chunk * inner * tile.width * item))
    if chunked:
        most_rows = max(1, min(most_rows, MOST_LOCAL_BYTES // (sums * min(most_panels, panels))))
    others = max(1, guess(contraction.batches * prod(row.extent for row in contraction.rows[:-1])))
    rows, columns = _balanced(tiles, min(most_rows, tiles), panels, min(most_panels, panels), others, target.num_threads)
    return Blocking(rows, columns, chunk)


STREAMS = 8
"""Rows of a large B that are read at once: a core reads ahead in each of them by itself, and all of them together come faster than one."""


def row_blocks(contraction: Contraction, tile: RegisterTile, target: Target) -> Blocking:
    """Blocks for a B that one tile of rows reads where it lies, STREAMS of its rows at once, over as many columns as have their sums in a
    quarter of the first-level cache."""
    most = max(1, target.l1_bytes // 4 // (tile.rows * tile.width * contraction.node.element.width // 8))
    panels = ceil_div(guess(contraction.column_extent), tile.width)
    if isinstance(contraction.column_extent, int):
        most = min(most, max(1, ceil_div(panels, target.num_threads)))
    outer = contraction.reduction[0].extent
    tiles = 1 if isinstance(contraction.row_extent, int) else ceil_div((FEWEST_TILES - 1) * MOST_ROWS, tile.rows)
    return Blocking(tiles, most, min(STREAMS, outer) if isinstance(outer, int) else STREAMS)


SLACK = 1.03
"""How much more than the least the busiest thread may have to do, for the sake of larger blocks."""


def _balanced(tiles: int, most_rows: int, panels: int, most_panels: int, others: int, threads: int) -> tuple[int, int]:
    """(tiles, panels) of the largest blocks with which every thread has about the same to do."""

    def busiest(size: tuple[int, int]) -> int:
        rows, columns = size
        return ceil_div(others * ceil_div(tiles, rows) * ceil_div(panels, columns), threads) * rows * columns

    sizes = [(r, g) for r in _part_sizes(tiles, most_rows) for g in _part_sizes(panels, most_panels)]
    least = min(map(busiest, sizes))
    return max((s for s in sizes if busiest(s) <= least * SLACK), key=lambda s: (s[0] * s[1], s[0]))


def _part_sizes(count: int, most: int) -> list[int]:
    """Sizes of at most `most` that cut `count` in parts of about the same size, at most 64 of them."""
    fewest = ceil_div(count, most)
    return sorted({ceil_div(count, parts) for parts in range(fewest, fewest + 65)})
