"""Which operand of a contraction takes which role, and which loops it gets."""

from dataclasses import replace
from math import prod

from relayc.pipelines.cpu.schedule.contraction.blocked import FEWEST_PANELS, BlockedNest
from relayc.pipelines.cpu.schedule.contraction.nest import takes_packed
from relayc.pipelines.cpu.schedule.contraction.padded import PaddedNest
from relayc.pipelines.cpu.schedule.contraction.tile import FEWEST_TILES, Tile, default_blocks, default_tile, panel_fits
from relayc.pipelines.kernel.contraction import Contraction, match
from relayc.pipelines.kernel.graph import Kernel
from relayc.pipelines.schedule.strategy import Scheduled, is_param
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target

NEAR = 1024
"""Bytes between steps of the reduction in B up to which panels are read in place however often: they share pages, and the cache's sets
evenly enough."""


MOST_TAPS = 64
"""Steps of checked reduction loops up to which the tiles that a padding touches are unrolled; beyond, a padded copy is made first."""


def _taps(contraction: Contraction) -> int:
    return prod(v.high + 1 for v in contraction.checked)


def _is_contiguous(contraction: Contraction) -> bool:
    return len(contraction.columns) == 1 and contraction.b.offset.coefficient(contraction.column) == 1


def _efficiency(contraction: Contraction, kernel: Kernel, target: Target) -> float:
    """Share of lanes and rows that do useful work in these roles, lower where B would have to be packed at run time."""
    tile = default_tile(contraction, target)
    columns = contraction.column_extent
    lanes = columns / (-(-columns // tile.lanes) * tile.lanes) if columns >= tile.lanes else columns / tile.lanes / 2
    ready = 1.0 if takes_packed(kernel, contraction) or _is_contiguous(contraction) else 0.6
    contiguous = 1.0 if contraction.store_stride(contraction.column) == 1 else 0.9
    return lanes * ready * contiguous


def _reads_in_place(kernel: Kernel, contraction: Contraction, tile: Tile, target: Target) -> bool:
    """Whether tiles read B where it lies: contiguous, and read by few tiles, or a small panel with its steps near each other."""
    c = contraction
    if takes_packed(kernel, c) or c.b.node.kind != "arg" or not _is_contiguous(c):
        return False
    tiles = -(-(c.rows[-1][1] if c.rows else 1) // tile.rows)
    distance = abs(c.b.offset.coefficient(c.reduction[-1])) * c.b.node.element.width // 8
    return tiles < FEWEST_TILES or bool(c.a.checks) or (distance <= NEAR and panel_fits(c, tile, target))


def _long_rows(contraction: Contraction, kernel: Kernel, target: Target) -> Contraction:
    """The contraction with its rows in one loop, where A is worth packing for it: rows of a strided convolution, say, are short."""
    c = contraction
    if len(c.rows) < 2 or c.a.checks or (c.a.node.kind == "arg" and is_param(kernel, c.a.node.position)):
        return c
    tile = default_tile(c, target)
    short = -(-c.rows[-1][1] // tile.rows) < FEWEST_TILES
    deep = not panel_fits(c, tile, target) and -(-c.column_extent // tile.width) >= FEWEST_PANELS
    return (c.with_one_row_loop() or c) if short and deep else c


def schedule_contraction(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a kernel whose result is a contraction with an elementwise epilogue; None for any other."""
    found = match(kernel)
    if not found:
        return None
    if all(_taps(c) > MOST_TAPS for c in found):
        found = match(kernel, keeps_pads=True) or found
    contraction = max(found, key=lambda c: _efficiency(c, kernel, target))
    if contraction.column_extent < 2 or contraction.node.element.width < 16:
        return None
    contraction = _long_rows(contraction, kernel, target)
    tile = tuning.replace(default_tile(contraction, target), rows="rows", vectors="vectors")
    in_place = _reads_in_place(kernel, contraction, tile, target)
    if contraction.a.checks:
        return PaddedNest(kernel, contraction, tile, in_place, target, tuning).emit()
    if contraction.rows:
        extent = contraction.rows[-1][1]
        tile = replace(tile, rows=-(-extent // -(-extent // tile.rows)))
    blocks = default_blocks(contraction, tile, target, packs=not in_place and not takes_packed(kernel, contraction))
    names = {"tiles": "block_tiles", "panels": "block_panels", "chunk": "chunk"}
    blocks = tuning.replace(blocks, lambda b: b.fitted(contraction, tile, in_place), **names)
    return BlockedNest(kernel, contraction, tile, blocks, in_place, target, tuning).emit()
