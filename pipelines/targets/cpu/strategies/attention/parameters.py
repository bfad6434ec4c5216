"""The numbers of schedules whose lanes run along the queries: tiles of queries, strips and blocks of keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import Index, Var, affine_index
from relayc.pipelines.te.read.access import Analysis, split_exactly
from relayc.pipelines.te.read.attention import KEY, Scores
from relayc.pipelines.tir.strategy.tuning import Tuning, part_sizes, powers_of_two
from relayc.symbolic import ceil_div

MAX_TILE_BYTES = 64 << 10
"""Memory for the queries and the context of a task."""
SET_SPAN = 4096
"""Bytes after which addresses fall into the same set of the first-level cache: a page, within which processors of x86-64 find the set."""
MAX_OVERLAPPING = 16
"""Keys of a strip of a symbolic number of keys where a tile is one vector: sums of more would be of no use to anything but large strips."""

MIN_BLOCK = 36
"""The least keys of a block, even where the first-level cache keeps fewer: the work of a block (to find the largest score, to scale the
context) then costs more than reads from the second-level cache. Measured with rows 3,072 and 4,096 bytes apart, on vectors of 32 and 64
bytes."""

NAMES = ("height", "strips", "tiles")
"""Of the numbers that may be set."""


@dataclass(frozen=True)
class AttentionParameters:
    """Tunable numbers.

    Attributes:
      lanes, vectors: of a tile of queries.
      height: keys (in the first product) or elements of a head (in the second) whose sums stay in registers, at most. Sums take up to
        three quarters of the registers: with more, loops of the products move or spill registers, as vectors of queries, broadcast
        elements and the largest scores so far want some.
      strips: of keys that a block has, each of up to `height`.
      tiles: of queries in a task, at most; a block of keys is used for all of them.
    """

    lanes: int
    vectors: int
    height: int
    strips: int
    tiles: int

    @property
    def width(self) -> int:
        """Queries of a tile."""
        return self.lanes * self.vectors


def default_parameters(attention: Scores, target: Target, rows: int) -> AttentionParameters:
    """Tiles for a number of queries whose sums fill most of the register file, from no more rows of the key at once than the first-level
    cache keeps; blocks whose scores, keys and values that cache keeps, of about the same size each. Rows of keys and values that are far
    apart share sets of the cache, and leave others empty: half of the rows that it keeps are those of values."""
    element_bytes, keys = attention.product.element.width // 8, attention.shape[KEY]
    lanes = target.vector_bytes // element_bytes
    while lanes > rows:
        lanes //= 2
    vectors = min(2, ceil_div(rows, lanes))
    height = min(target.num_vector_registers * 3 // 4 // vectors, _rows_in_cache(attention, target))
    height = min(height, keys if isinstance(keys, int) else MAX_OVERLAPPING)
    width = lanes * vectors
    strips = max(1, target.l1_bytes // ((width + attention.depth + attention.width) * element_bytes * height))
    strips = min(strips, ceil_div(max(MIN_BLOCK, _rows_in_cache(attention, target) // 2), height))
    if isinstance(keys, int):
        wanted = ceil_div(keys, height)
        strips = ceil_div(wanted, ceil_div(wanted, strips))
    tile_bytes = (attention.depth + attention.width) * width * element_bytes
    return AttentionParameters(lanes, vectors, height, strips, max(2, min(8, MAX_TILE_BYTES // tile_bytes)))


def _rows_in_cache(attention: Scores, target: Target) -> int:
    """How many successive rows of the key have their lines in the first-level cache at once: addresses that are a multiple of SET_SPAN
    apart share a set, which has one line for each SET_SPAN of the cache. Rows whose distance is only known in a call count as spread."""
    structured = attention.product.structured
    loops = [Var.below(extent, name="r") for extent in structured.extents]
    analysis = Analysis()
    analysis.visit(structured.inputs[1], [affine_index(e, [Index.of(v) for v in loops], split_exactly) for e in structured.maps[1].results])
    strides = [(offset.coefficient(loops[KEY]), node.element.width // 8) for node, offset in analysis.found.offsets]
    sets = [SET_SPAN // gcd(SET_SPAN, stride * size) for stride, size in strides if isinstance(stride, int)]
    return max(1, target.l1_bytes // SET_SPAN) * min(sets, default=SET_SPAN)


def tuned_parameters(attention: Scores, target: Target, tuning: Tuning, rows: int, names: Sequence[str] = NAMES) -> AttentionParameters:
    """The parameters for a number of queries; `tuning` may set those with the given names."""
    keys, registers = attention.shape[KEY], target.num_vector_registers

    def heights(p: AttentionParameters) -> list[int]:
        most = (registers - 1 - p.vectors) // p.vectors
        return [n for n in part_sizes(keys if isinstance(keys, int) else MAX_OVERLAPPING) if n <= most]

    def strips(p: AttentionParameters) -> list[int]:
        # Scores of a block from a part of the first-level cache to half the second.
        bytes_ = p.width * attention.product.element.width // 8 * p.height
        most = max(1, target.l2_bytes // 2 // bytes_)
        return [n for n in (part_sizes(ceil_div(keys, p.height)) if isinstance(keys, int) else powers_of_two(1, 64)) if n <= min(64, most)]

    values = {"height": heights, "strips": strips, "tiles": lambda p: powers_of_two(2, 16)}
    return tuning.replace(default_parameters(attention, target, rows), names, values=values)
