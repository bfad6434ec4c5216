"""Blocks for elementwise nests that read an operand across its rows: what is contiguous along another loop is read along that one, and
turned in registers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.te.read.access import Accesses, MergedLoop
from relayc.pipelines.te.read.graph import Node
from relayc.pipelines.tir.values import vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import guess

Assign = Callable[[Index, Index], Mapping[Var, Index]]
"""Maps indices across and along the lanes to indices of the loops."""
Store = Callable[[list[dict[Var, Index]]], None]

MAX_LANES = 16
LINE_BYTES = 64
CHUNK_BYTES = 128 << 10
"""Memory read along the turned loop before the lanes' loop goes on: it stays in the second-level cache."""
_CHEAP_STRIDES = (0, 1, -1, 2)
"""Strides along the lanes that a load reads well by itself."""


@dataclass
class Turned:
    """A loop (by its position) along which operands are contiguous that are not along the lanes.

    Attributes:
      reads: (buffer, offset) of these operands.
      lanes: rows and columns of what is turned at once.
      across, along: how many of that are taken together along the turned loop and along the lanes, so that whole cache lines are used.
      chunk: tiles along the lanes that are done for all of the turned loop before the next ones.
    """

    position: int
    reads: list[tuple[Node, Index]]
    lanes: int
    across: int
    along: int
    chunk: int


def find_turned(loops: Sequence[MergedLoop], accesses: Accesses, store: Index, width: int, element_bytes: int) -> Turned | None:
    """The loop to tile together with the loop of the lanes (the last loop); None if all accesses along the lanes are efficient."""
    if len(loops) < 2 or width < 4:
        return None
    lane, lane_extent = loops[-1].var, loops[-1].extent
    fixed = accesses.irregular | {v for index, _ in accesses.bounds for v in index.terms}
    if lane in fixed or store.coefficient(lane) != 1:
        return None
    across = [(node, offset) for node, offset in accesses.offsets if offset.coefficient(lane) not in _CHEAP_STRIDES]
    best: Turned | None = None
    for position, loop in enumerate(loops[:-1]):
        extents = max(1, guess(loop.extent)), max(1, guess(lane_extent))
        lanes = 1 << (min(width, MAX_LANES, *extents).bit_length() - 1)
        reads = [(node, offset) for node, offset in across if offset.coefficient(loop.var) == 1]
        if loop.var not in fixed and reads and lanes >= 4 and (best is None or len(reads) > len(best.reads)):
            line = LINE_BYTES // element_bytes
            over, along = (min(line, n) // lanes for n in extents)
            rows = max(1, CHUNK_BYTES // (extents[0] * element_bytes))
            best = Turned(position, reads, lanes, over, along, max(1, rows // (lanes * along)))
    return best


def smaller_tiles(turned: Turned) -> list[Turned]:
    """Tiles for fewer elements than one takes: the smallest, as each is code of its own for a short time."""
    rows = turned.chunk * turned.lanes * turned.along
    return [replace(turned, lanes=4, across=1, along=1, chunk=rows // 4)] if turned.lanes > 4 else []


def emit_turned(turned: Turned, evaluator: Evaluator, across: Index, along: Index, assign: Assign, store: Store) -> None:
    """A tile of the nest from `across` on along the turned loop, from `along` on along the lanes.

    `assign(across, along)` gives the loop indices of a point, `store([indices])` computes and stores the elements there.
    """
    n = turned.lanes
    for i, j in product(range(turned.across), range(turned.along)):
        _block(turned, evaluator, across + i * n, along + j * n, assign, store)


def _block(turned: Turned, evaluator: Evaluator, across: Index, along: Index, assign: Assign, store: Store) -> None:
    n = turned.lanes
    with evaluator.lanes(n) as lane:
        rows = [[evaluator.load(node, offset.at(assign(across + lane, along + i))) for i in range(n)] for node, offset in turned.reads]
    columns = [vectors.transpose(r) for r in rows]
    with evaluator.lanes(n) as lane:
        for i in range(n):
            point = dict(assign(across + i, along + lane))
            for (node, offset), column in zip(turned.reads, columns, strict=True):
                evaluator.remember_load(node, offset.at(point), column[i])
            store([point])
