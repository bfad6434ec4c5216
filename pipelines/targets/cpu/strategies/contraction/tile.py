"""Sizes of a contraction's register tile and of the blocks around it, by a model of the core and its caches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from relayc.pipelines.context.target import Target
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.tir.strategy.tuning import distinct, part_sizes
from relayc.pipelines.tir.values.buffers import LINE, MOST_LOCAL_BYTES
from relayc.pipelines.tir.values.vectors import pieces
from relayc.symbolic import Size, bounds, ceil_div, guess

PARALLEL_GRAIN = 1 << 17
"""Multiply-adds below which a contraction stays on one thread (about 2 us of work)."""
PARALLEL_TASKS = 8
"""Iterations that the parallel loop should have at least, so that threads get equal shares."""
MOST_SCRATCH = 1 << 20
"""Maximum bytes of a buffer on the stack of a thread: a quarter of the stack in libiomp5."""


@dataclass(frozen=True)
class RegisterTile:
    """Tunable numbers: rows and vectors of columns of a tile, lanes of a vector."""

    rows: int
    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return self.vectors * self.lanes


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
        chunk = outer if in_place else max(1, min(self.chunk, outer, MOST_SCRATCH // step_bytes))
        panels = min(self.panels, ceil_div(guess(contraction.column_extent), tile.width), max(1, MOST_SCRATCH // (chunk * step_bytes)))
        most_tiles = max(1, MOST_SCRATCH // (panels * tile.width * tile.rows * contraction.node.element.width // 8))
        return Blocking(min(self.tiles, ceil_div(extent, tile.rows), most_tiles), panels, chunk)


def typical_rows(contraction: Contraction) -> int:
    """The number of innermost rows for which sizes are chosen. If it depends on the call, it is assumed to suffice for full tiles: fewer
    rows have separate tiles (`cover`)."""
    extent = contraction.row_extent
    return extent if isinstance(extent, int) else max(1, min(bounds(extent)[1], max(guess(extent), TYPICAL_ROWS)))


TYPICAL_ROWS = 64
"""See `typical_rows`."""
FEW_ROWS = 4
"""Rows that products in the loop of a program are optimised for, if their number depends on the call: one per active sequence."""
MOST_ROWS = 14
"""Rows of a tile where their number is not known: each may have an address of its own, and as many registers have no other use."""
FEWEST_TILES = 4
"""Row tiles below which a chunk of a panel would be used too few times to be worth keeping the sums in memory."""
NEAR_LINE, FAR_LINE = 1.3, 8.0
"""Cycles that a tile waits for a cache line that has been read before: from the second-level cache, and from further."""
STREAM_LINE = (12.5, 11.5, 10.5, 9.5)
"""Cycles from one cache line to the next where each core reads 1, 2, ... places at once that are beyond its second-level cache."""
REMAINDER = 1.03
"""Relative cost of a narrower last panel besides its own cycles: code size and compile time double."""


SUMS_IN_FLIGHT = 12
"""Vectors of sums that a core works on at once: an addition takes four or five cycles, and two begin in one; what they add has registers as
well."""
MOST_SETS = 4
"""Sums that an element has at most while its tile goes over the reduction."""
LONG = 64
"""Steps of the reduction from which it takes a small part of the time of a tile that its sums go through memory."""
NO_WAITS = (0.0,) * MOST_SETS
"""See `cover.Heights`."""


def default_tile(contraction: Contraction, target: Target, rows: int | None = None, is_far: bool = False) -> RegisterTile:
    """The tile with the fewest cycles for the contraction's rows and columns that fits the register file.

    A step of a tile of r rows and v vectors needs r * v multiply-adds at two a cycle and r + v loads at two a cycle. As each accumulator
    waits four cycles for its own last value and no core schedules perfectly, it takes five cycles at least, and a little more than
    counted with each load. The tile holds the accumulators, the vectors of B and one broadcast element.

    A panel of B that does not stay in the first-level cache is read again by each of few tiles one below the other: from the second-level
    cache if it and the next one have their share of that, or else from further. More tiles go by in chunks that stay (`default_blocks`).

    Where a padding bounds the rows, tiles differ by a row at most; else they are all alike, and the last one may overlap the one before.

    Args:
      rows: for which it is chosen, `typical_rows` by default.
      is_far: whether B is packed beforehand and comes from beyond the second-level cache. Few rows wait for it.
    """
    lanes = lanes_of(contraction, target)
    extent = rows or typical_rows(contraction)
    vectors_needed = ceil_div(guess(contraction.column_extent), lanes)
    vector_bytes = lanes * contraction.b.node.element.width // 8

    def waits(count: int, vectors: int) -> float:
        """Cycles of a step for the panels of B that each of few tiles one below the other reads again."""
        panel_bytes = guess(contraction.depth) * vectors * vector_bytes
        if contraction.a.checks or count >= FEWEST_TILES or panel_bytes <= target.l1_bytes * 3 // 4:
            return 0.0
        lines = (count - 1) * vectors_needed * vector_bytes / LINE
        return lines * (NEAR_LINE if panel_bytes <= target.l2_bytes // 4 else FAR_LINE)

    def arrives(count: int, height: int, vectors: int) -> float:
        """Cycles by which fetching a step of a panel exceeds the computation of the tiles that use it, if each tile prefetches a share."""
        sets = sets_of_sums(height * vectors) if count == 1 else 1
        return max(0.0, stream_waits(vectors * vector_bytes)[sets - 1] - count * cycles(height, vectors))

    def cost(height: int, vectors: int) -> float:
        count = ceil_div(extent, height)
        base, larger = divmod(extent if contraction.a.checks else count * height, count)
        blocks, left = divmod(vectors_needed, vectors)
        total = sum(
            tiles * times * cycles(r, v)
            for tiles, r in ((larger, base + 1), (count - larger, base))
            for times, v in ((blocks, vectors), (1, left))
            if tiles and times and v
        )
        if is_far:
            total += blocks * arrives(count, height, vectors) + (arrives(count, height, left) if left else 0.0)
        return (total * REMAINDER if left and blocks else total) + waits(count, vectors)

    # Among equals the narrower: its panel of B is smaller.
    chosen = [c for c in _candidates(contraction, target) if c[0] <= extent]
    return RegisterTile(*min(chosen, key=lambda c: (round(cost(*c), 3), c[1])), lanes)


def _candidates(contraction: Contraction, target: Target) -> list[tuple[int, int]]:
    """Rows and vectors of the tiles that fit the register file."""
    registers = target.num_vector_registers
    most_rows = registers if isinstance(contraction.row_extent, int) else MOST_ROWS
    needed = ceil_div(guess(contraction.column_extent), lanes_of(contraction, target))
    return [
        (rows, vectors)
        for vectors in range(1, min(needed, 8) + 1)
        for rows in range(1, min(typical_rows(contraction), most_rows, (registers - 1 - vectors) // vectors) + 1)
    ]


def lanes_of(contraction: Contraction, target: Target) -> int:
    """Lanes of a vector of sums."""
    return max(1, target.vector_bytes * 8 // contraction.node.element.width)


def column_vectors(columns: int, lanes: int, masks: bool) -> list[tuple[int, int]]:
    """(start, lanes) of the vectors that cover columns; with masks one vector has all that is left of whole ones, and lanes to spare."""
    found, whole = pieces(columns, lanes), columns // lanes
    if not masks or len(found) <= whole + 1:
        return found
    start = whole * lanes
    return [*found[:whole], (start, 1 << (columns - start - 1).bit_length())]


def tile_rows(contraction: Contraction, target: Target, tile: RegisterTile) -> list[int]:
    """The rows that tiles of so many vectors may have; of those that cut the rows in as many tiles the fewest."""
    rows = [r for r, v in _candidates(contraction, target) if v == tile.vectors]
    extent = contraction.row_extent
    return distinct(rows, tile.rows, lambda r: ceil_div(extent, r)) if isinstance(extent, int) else rows


def tile_vectors(contraction: Contraction, target: Target, tile: RegisterTile) -> list[int]:
    """The vectors that tiles of so many rows may have."""
    return [v for r, v in _candidates(contraction, target) if r == tile.rows]


def block_values(contraction: Contraction, tile: RegisterTile, in_place: bool) -> dict[str, Callable[[Blocking], list[int]]]:
    """The sensible numbers of blocks: parts of about the same size of all that there is, which have room."""

    def fitting(blocks: Blocking, field: str, sizes: Sequence[int]) -> list[int]:
        possible = [replace(blocks, **{field: size}) for size in sizes]
        return [getattr(p, field) for p in possible if p.fitted(contraction, tile, in_place) == p]

    tiles = part_sizes(ceil_div(typical_rows(contraction), tile.rows))
    panels = part_sizes(max(1, ceil_div(guess(contraction.column_extent), tile.width)))
    chunks = part_sizes(max(1, guess(contraction.reduction[0].extent)))
    return {
        "block_tiles": lambda blocks: fitting(blocks, "tiles", tiles),
        "block_panels": lambda blocks: fitting(blocks, "panels", panels),
        "chunk": lambda blocks: fitting(blocks, "chunk", chunks),
    }


def cycles(rows: int, vectors: int, sets: int = 1, wait: float = 0.0) -> float:
    """Cycles of a step of a tile (see `default_tile`), whose elements have so many sums, and which waits so long for what it reads."""
    return max(rows * vectors / 2, (rows + vectors) / 2, 5 / sets, wait) + 0.25 + (rows + vectors) / 20


def stream_waits(num_bytes: int) -> tuple[float, ...]:
    """Cycles of a step that reads so many bytes from beyond the second-level cache, with 1, 2, ... sums an element.

    Less than a line takes as long as one.
    """
    return tuple(line * max(num_bytes, LINE) / LINE for line in STREAM_LINE)


def sets_of_sums(sums: int) -> int:
    """How many sums each element of a tile of `sums` vectors may have: an addition to one waits for the last one, so that few vectors do
    not keep a core busy."""
    return max(1, min(MOST_SETS, SUMS_IN_FLIGHT // sums))


def panel_fits(contraction: Contraction, tile: RegisterTile, target: Target) -> bool:
    """Whether a whole panel of B stays in the first-level cache while tiles go by."""
    return guess(contraction.depth) * tile.width * contraction.b.node.element.width // 8 <= target.l1_bytes * 3 // 4


def default_blocks(contraction: Contraction, tile: RegisterTile, target: Target, packs: bool, rows: int | None = None) -> Blocking:
    """Blocks for a contraction without paddings, whose B is packed by the kernel itself where `packs` is set.

    A panel of B that fits stays in the first-level cache while the tiles of a block of rows go by, and the block, a quarter of the
    second-level cache, while the panels do, by the rule of Goto and van de Geijn (Anatomy of High-Performance Matrix Multiplication, 2008).

    A panel that does not fit stays in the second-level cache, of which a chunk takes half, while all rows go by: a step of a tile computes
    for longer than its few lines of B take to come from there. Chunks for the first-level cache would be short, and each of them costs
    twice: sums, of which the rows have too many for that cache, are read and written again, and rows of A come in pieces of a few lines,
    too short for the core to read ahead.

    A B that the kernel packs is packed anew for each block of rows: all rows go by in front of its panels, too.

    Args:
      rows: for which they are chosen, `typical_rows` by default.
    """
    item = contraction.b.node.element.width // 8
    tiles = ceil_div(rows or typical_rows(contraction), tile.rows)
    # Typical values of an expression may be none that the loop can have.
    panels = max(1, ceil_div(guess(contraction.column_extent), tile.width))
    outer = max(1, guess(contraction.reduction[0].extent))
    inner = max(1, guess(contraction.depth) // outer)
    chunk, streams = outer, (packs or tiles >= FEWEST_TILES) and not panel_fits(contraction, tile, target)
    if streams:
        steps = max(1, target.l2_bytes // 2 // (tile.width * item * inner))
        chunk = ceil_div(outer, ceil_div(outer, steps)) if isinstance(contraction.reduction[0].extent, int) else steps
        if not isinstance(contraction.row_extent, int):
            # Lower tiles with several sums an element go over whole chunks without a rest.
            chunk = ceil_div(chunk, MOST_SETS) * MOST_SETS
    chunked = chunk != contraction.reduction[0].extent
    # Columns go by in front of a block of rows, or rows in front of a panel. The sums of chunks lie on the stack.
    most_rows = tiles if streams else max(1, target.l2_bytes // 4 // (chunk * inner * item * tile.rows))
    most_panels = 1 if streams else panels
    if packs:
        most_panels = max(1, target.l2_bytes // 8 // (chunk * inner * tile.width * item))
    if chunked:
        sums = ceil_div(contraction.node.element.width, 8) * min(most_panels, panels) * tile.width * tile.rows
        most_rows = max(1, min(most_rows, MOST_LOCAL_BYTES // sums))
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
    return sorted({ceil_div(count, parts) for parts in range(fewest, min(count, fewest + 64) + 1)})
