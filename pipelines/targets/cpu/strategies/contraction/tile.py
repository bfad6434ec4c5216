"""The size of a contraction's register tile, by a model of the core and its caches."""

from dataclasses import dataclass

from relayc.pipelines.context.target import Target
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.tir.strategy.tuning import distinct, power_of_two_from
from relayc.pipelines.tir.values.buffers import LINE
from relayc.pipelines.tir.values.vectors import pieces
from relayc.symbolic import bounds, ceil_div, guess

PARALLEL_GRAIN = 1 << 17
"""Multiply-adds below which a contraction stays on one thread (about 2 us of work)."""
PARALLEL_TASKS = 8
"""Iterations that the parallel loop should have at least, so that threads get equal shares."""


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


def typical_rows(contraction: Contraction) -> int:
    """The number of innermost rows for which sizes are chosen. If it depends on the call, it is assumed to suffice for full tiles: fewer
    rows have separate tiles (`cover`)."""
    extent = contraction.row_extent
    return extent if isinstance(extent, int) else min(bounds(extent)[1], max(guess(extent), TYPICAL_ROWS))


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
    return target.vector_bytes * 8 // contraction.node.element.width


def column_vectors(columns: int, lanes: int, masks: bool) -> list[tuple[int, int]]:
    """(start, lanes) of the vectors that cover columns; with masks one vector has all that is left of whole ones, and lanes to spare."""
    start = columns // lanes * lanes
    if not masks or start == columns:
        return pieces(columns, lanes)
    return [*pieces(start, lanes), (start, power_of_two_from(columns - start))]


def tile_rows(contraction: Contraction, target: Target, tile: RegisterTile) -> list[int]:
    """The rows that tiles of so many vectors may have; of those that cut the rows in as many tiles the fewest."""
    rows = [r for r, v in _candidates(contraction, target) if v == tile.vectors]
    extent = contraction.row_extent
    return distinct(rows, tile.rows, lambda r: ceil_div(extent, r)) if isinstance(extent, int) else rows


def tile_vectors(contraction: Contraction, target: Target, tile: RegisterTile) -> list[int]:
    """The vectors that tiles of so many rows may have."""
    return [v for r, v in _candidates(contraction, target) if r == tile.rows]


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
