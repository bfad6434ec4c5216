"""The plan of a contraction: where its tiles read the operands, the tile sizes, and the copies that the kernel makes first."""

from dataclasses import dataclass
from enum import Enum

from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.strategies.contraction.tile import (
    FEWEST_TILES,
    LONG,
    MOST_SETS,
    NEAR_LINE,
    NO_WAITS,
    RegisterTile,
    panel_fits,
    stream_waits,
    typical_rows,
)
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.te.read.graph import Kernel, Node, is_costly_after, memory_of
from relayc.pipelines.tir.memory import align
from relayc.pipelines.tir.strategy.scheduled import is_param
from relayc.pipelines.tir.strategy.turns import is_repeated
from relayc.pipelines.tir.values.buffers import LINE
from relayc.symbolic import Dim, Size, ceil_div, guess

NEAR = 1024
"""Bytes between steps of the reduction in B up to which panels are read in place however often: they share pages, and the cache's sets
evenly enough."""
PAGE = 4096
"""Rows of A at a distance that is a multiple of this share a few sets of the cache, so A is packed."""
FEWEST_PANELS = 8
"""Panels of B below which a packed row of A would be read too few times to be worth packing at run time."""
BUSY_ROWS = 4
"""Rows of a tile from which it is compute-bound on data in the second-level cache or closer: prefetching then does not slow down its
reads."""

PLACE_BYTES = 8
"""Bytes of an entry of a table of the starts of rows of A."""


class OperandSource(Enum):
    """The location from which tiles read an operand."""

    PARAMETER = "from a parameter that is packed when the program is compiled"
    MEMORY = "where it lies"
    COPY = "from a copy that the kernel makes, in the order in which tiles read it"
    TABLE = "where it lies, each row from where a table says that it begins"


@dataclass(frozen=True)
class Plan:
    """How a contraction is run.

    Attributes:
      kernel, contraction, tile: what is run in which tiles.
      a, b: where tiles read the operands; a padded A that is not checked is written with its padding first.
      work, grain: multiply-adds of the kernel, and those from which several threads are worth it.
      target: for which the kernel is compiled.
      prefetches: whether panels are asked for ahead of their use, as they come from beyond the second-level cache.
      turns: whether every other call goes backwards over the panels of a task.
      is_far: whether panels come from beyond the second-level cache (see `is_far`).
      waits: cycles that a step of a tile takes at least where it is the first to read its panel, with 1, 2, ... sums an element.
    """

    kernel: Kernel
    contraction: Contraction
    tile: RegisterTile
    a: OperandSource
    b: OperandSource
    work: Size
    grain: int
    target: Target
    prefetches: bool
    turns: bool = False
    is_far: bool = False
    waits: tuple[float, ...] = NO_WAITS

    def has_masks(self, node: Node) -> bool:
        """Whether the target reads and writes some lanes of a vector of elements of a node by one instruction each."""
        return 0 < self.target.mask_bits <= node.element.width

    @property
    def has_costly_epilogue(self) -> bool:
        """Whether the epilogue of a vector is many instructions, of which one copy is better than one for each sum of a tile."""
        return is_costly_after(self.contraction.node, self.contraction.root)

    @property
    def may_keep_sums(self) -> bool:
        """Whether sums may wait in memory for the epilogue: it takes a small part of the time of a long reduction or a costly epilogue."""
        return guess(self.contraction.depth) >= LONG or self.has_costly_epilogue

    @property
    def masks_columns(self) -> bool:
        """Whether the last columns may be a vector of which only some lanes are there."""
        c = self.contraction
        return self.has_masks(c.b.node) and c.store_stride(c.column) == 1 and not c.a.checks

    @property
    def tasks(self) -> int:
        """Tasks that there should be for as many threads as the target plans for."""
        threads = self.target.num_threads
        return 1 if threads == 1 else threads * (1 if self.b is OperandSource.COPY else 2)

    @property
    def is_parallel(self) -> bool:
        """Whether there are parallel loops; if the work is symbolic, each call decides whether they run on several threads."""
        return isinstance(self.work, Dim) or self.work >= self.grain

    @property
    def panels(self) -> Size:
        """Panels of B, each as wide as a tile; if the number of columns depends on the call, columns after the last full panel are in
        panels of one vector."""
        columns = self.contraction.column_extent
        if isinstance(columns, int):
            return ceil_div(columns, self.tile.width)
        return self.whole_panels + ceil_div(columns - self.whole_panels * self.tile.width, self.tile.lanes)

    @property
    def whole_panels(self) -> Size:
        """Panels that have as many columns as a tile."""
        return self.contraction.column_extent // self.tile.width

    @property
    def panel_size(self) -> Size:
        """Elements of a packed panel."""
        return self.contraction.depth * self.tile.width

    @property
    def packed_bytes(self) -> Size:
        """Bytes of a packed B."""
        return packed_bytes(self.contraction, self.tile)

    @property
    def rows(self) -> Size:
        """Rows along the innermost row loop."""
        return self.contraction.row_extent

    @property
    def row_tiles(self) -> Size:
        """Tiles along the innermost row loop; where their number is an expression, at least the whole ones."""
        return ceil_div(self.rows, self.tile.rows)

    @property
    def copies_whole_rows(self) -> bool:
        """Whether a copy of A has its rows one after the other, a line apart, and not tile by tile: tiles of any height read it then."""
        c = self.contraction
        return self.a is OperandSource.COPY and not isinstance(self.rows, int) and c.a.offset.coefficient(c.reduction[-1]) == 1

    @property
    def row_pitch(self) -> Size:
        """Elements between whole rows of a copy of A."""
        return self.contraction.depth + LINE // element_bytes(self.contraction.a.node)

    @property
    def copied_rows(self) -> Size:
        """Elements of a copy of A."""
        c = self.contraction
        of_batch = self.rows * self.row_pitch if self.copies_whole_rows else self.row_tiles * self.tile.rows * c.depth
        return c.batches * of_batch if self.a is OperandSource.COPY else 0

    @property
    def copied_bytes(self) -> Size:
        """Bytes of a copy of A, or of a table of its rows."""
        if self.a is OperandSource.TABLE:
            return self.rows * PLACE_BYTES
        return self.copied_rows * element_bytes(self.contraction.a.node)

    @property
    def padded_bytes(self) -> Size:
        """Bytes of A with its padding, if the kernel writes it."""
        node = self.contraction.a.node
        return align(node.size * node.element.width // 8) if self.pads else 0

    @property
    def pads(self) -> bool:
        """Whether the kernel writes A with its padding first."""
        return self.contraction.a.node.kind == "pad"


def element_bytes(node: Node) -> int:
    """Bytes of an element in memory; 0 for elements narrower than a byte."""
    return node.element.width // 8


def packed_bytes(contraction: Contraction, tile: RegisterTile) -> Size:
    """Bytes of B packed in panels."""
    panels = ceil_div(contraction.column_extent, tile.width)
    return contraction.batches * panels * contraction.depth * tile.width * element_bytes(contraction.b.node)


def is_far(kernel: Kernel, contraction: Contraction, target: Target) -> bool:
    """Whether B is a parameter and a thread's share of it does not stay in the second-level cache; in a loop of a program it usually
    does."""
    c = contraction
    share = guess(c.batches * c.depth * c.column_extent) * element_bytes(c.b.node) // target.num_threads
    return is_param(kernel, c.b.node) and not is_repeated(kernel) and share > target.l2_bytes // 2


def waits_for_panel(
    contraction: Contraction, tile: RegisterTile, b: OperandSource, share: int, target: Target, is_far: bool
) -> tuple[float, ...]:
    """Cycles that a step of a tile takes at least where it is the first to read its panel, with 1, 2, ... sums an element: of a parameter,
    which comes from beyond the first-level cache, where a thread's share of it, so many bytes, does not stay."""
    num_bytes = tile.width * element_bytes(contraction.b.node)
    if is_far:
        return stream_waits(num_bytes)
    return (NEAR_LINE * num_bytes / LINE,) * MOST_SETS if b is OperandSource.PARAMETER and share > target.l1_bytes // 2 else NO_WAITS


def is_read_by_rows(kernel: Kernel, contraction: Contraction, tile: RegisterTile, rows: int, target: Target) -> bool:
    """Whether so few rows that they are in one tile read B where it lies, beyond the second-level cache: in the order of memory then, as
    each element of it is read once."""
    c = contraction
    is_far = guess(c.batches * c.depth * c.column_extent) * element_bytes(c.b.node) > target.l2_bytes
    return rows <= tile.rows and is_far and has_contiguous_columns(c) and not is_repeated(kernel)


def has_contiguous_columns(contraction: Contraction) -> bool:
    """Whether the columns of a row of B are neighbours in memory."""
    return len(contraction.columns) == 1 and contraction.b.offset.coefficient(contraction.column) == 1


def source_of_b(kernel: Kernel, contraction: Contraction, tile: RegisterTile, target: Target) -> OperandSource:
    """Parameters are packed; memory is read in place where it is contiguous, and read by few tiles, or a small panel with its steps near
    each other."""
    c = contraction
    if is_param(kernel, c.b.node):
        return OperandSource.PARAMETER
    if c.b.node.kind != "arg" or not has_contiguous_columns(c):
        return OperandSource.COPY
    tiles = ceil_div(typical_rows(c), tile.rows)
    distance = abs(guess(c.b.offset.coefficient(c.reduction[-1]))) * element_bytes(c.b.node)
    in_place = tiles < FEWEST_TILES or bool(c.a.checks) or (distance <= NEAR and panel_fits(c, tile, target))
    return OperandSource.MEMORY if in_place else OperandSource.COPY


def source_of_a(kernel: Kernel, contraction: Contraction, tile: RegisterTile) -> OperandSource:
    """A is packed where its rows are computed, not contiguous, or badly placed in the cache."""
    c = contraction
    if len(c.rows) != 1 or c.row_extent == 1 or c.a.checks or c.a.node.element.width < 16:
        return OperandSource.MEMORY
    packed = OperandSource.PARAMETER if is_param(kernel, c.a.node) else OperandSource.COPY
    if c.row_loops:
        return packed
    step, row = c.a.offset.coefficient(c.reduction[-1]), c.a.offset.coefficient(c.rows[0].var)
    lies = c.a.node.kind == "pad" or memory_of(c.a.node) is not None
    if lies and step == 1 and guess(row * element_bytes(c.a.node)) % PAGE and guess(row):
        return OperandSource.MEMORY
    worth_it = packed is OperandSource.PARAMETER or ceil_div(guess(c.column_extent), tile.width) >= FEWEST_PANELS
    return packed if worth_it else OperandSource.MEMORY
