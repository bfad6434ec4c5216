"""Transposes through shared memory: elementwise kernels whose operand is contiguous along another axis than the result.

A block has a tile of two loops: the loop along which the result is contiguous, and the loop along which operands are. Its threads read the
tile along the second loop and store it along the first, both contiguously, through shared memory. If all runs are aligned to vectors, a
thread reads a square of vectors and transposes it in registers, so that shared memory is accessed in vectors too.

Shared memory holds the result if no large operand is contiguous along the first loop; otherwise it holds the transposed operands.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from relayc.dialects.mlir import ir
from relayc.dialects.operations import element_bytes
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cuda.architectures import STATIC_SHARED_BYTES, WARP
from relayc.pipelines.targets.cuda.strategies.general import inline
from relayc.pipelines.te.read.access import Accesses, Analysis, MergedLoop, collapse
from relayc.pipelines.te.read.graph import Kernel, Node, NotStructured
from relayc.pipelines.tir.gpu.aligned import VECTOR_BYTES
from relayc.pipelines.tir.schedule.references import LoopRV
from relayc.pipelines.tir.schedule.schedule import Schedule
from relayc.pipelines.tir.schedule.written_strategy import schedule_built_in
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning, power_of_two, power_of_two_from, powers_of_two
from relayc.pipelines.tir.tree.indices import folded
from relayc.pipelines.tir.tree.layouts import map_of
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.symbolic import Size, ceil_div, guess, proves

_BANKS, _BANK_BYTES = 32, 4
_MOST_LANES = 8
"""Of a vector: a thread holds as many of them."""
_SIDE, _SQUARE_SIDE = 32, 16
"""Units of a tile along each loop, if units are elements, and if units are squares of vectors."""
_NARROW = 16
"""Extents up to which a tile has exactly as many lines: several lines may then be one contiguous run."""


@dataclass(frozen=True)
class Numbers:
    """The tunable numbers.

    Attributes:
      threads: of a block, at most.
      vector_bytes: bytes that a thread loads and stores at once, at most.
    """

    threads: int = 256
    vector_bytes: int = VECTOR_BYTES


def schedule_transpose(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules kernels each of whose results is elementwise and read across memory."""
    moves = [move for result in kernel.results if (move := move_of(result, kernel.args)) is not None]
    if len(moves) < len(kernel.results):
        return None
    values = {"threads": lambda n: powers_of_two(WARP, 1024), "vector_bytes": lambda n: powers_of_two(1, VECTOR_BYTES)}
    numbers = tuning.replace(Numbers(), list(values), _possible, values)
    tiles = [tile_of(move, numbers) for move in moves]
    if any(tile.shared_bytes(move) > STATIC_SHARED_BYTES for tile, move in zip(tiles, moves, strict=True)):
        raise NotStructured("more operands than shared memory has room for")

    def write(s: Schedule) -> None:
        inline(s)
        blocks = s.nest.blocks()
        if len(blocks) != len(moves):
            raise ScheduleError(f"expected one block for each result, found {', '.join(blocks)}")
        names = [next(b.name for b in blocks.values() if b.stores_to(output)) for output in s.nest.outputs]
        for name, move, tile in zip(names, moves, tiles, strict=True):
            _Writer(s, move, tile).write(name)

    return schedule_built_in(write, kernel, target, tuning)


def _possible(numbers: Numbers) -> Numbers:
    """Numbers as launches can have them: whole warps, and vectors of a power of two."""
    return Numbers(power_of_two(numbers.threads, WARP, 1024), power_of_two(numbers.vector_bytes, 1, VECTOR_BYTES))


@dataclass(frozen=True)
class Move:
    """A result that is read across memory.

    Attributes:
      node: the result.
      variables: loops over its dimensions.
      loops: the loops with several iterations, merged; the last one is contiguous in memory.
      position: position of the loop along which operands are contiguous.
      reads: (operand, offset) of the operands that are contiguous along that loop.
      operands: the operands that go to shared memory; if there are none, the result does.
    """

    node: Node
    variables: Sequence[Var]
    loops: Sequence[MergedLoop]
    position: int
    reads: Sequence[tuple[Node, Index]]
    operands: Sequence[tuple[Node, Index]]

    @property
    def along(self) -> MergedLoop:
        """The loop along which the result is contiguous."""
        return self.loops[-1]

    @property
    def across(self) -> MergedLoop:
        """The loop along which the operands are contiguous."""
        return self.loops[self.position]

    @cached_property
    def offset(self) -> Index:
        """Where an element is stored."""
        return linearize([Index.of(v) for v in self.variables], self.node.shape)

    @property
    def staged(self) -> list[ir.Type]:
        """Element types of the values in shared memory."""
        return [node.element for node, _ in self.operands] or [self.node.element]


def move_of(node: Node, memory: Sequence[Node]) -> Move | None:
    """The transposed reads of an elementwise result that is not empty; None without such reads. `memory` are the kernel's arguments."""
    if node.size == 0:
        return None
    variables = [Var.below(e, name=f"d{i}") for i, e in enumerate(node.shape)]
    point = [Index.of(v) for v in variables]
    analysis = Analysis(memory)
    analysis.visit(node, point)
    accesses = analysis.found
    if accesses.reductions:
        return None
    loops = collapse([v for v in variables if v.extent != 1], accesses, [linearize(point, node.shape)])
    moves = []
    for position, loop in enumerate(loops[:-1]):
        if reads := [(n, o) for n, o in accesses.offsets if _is_across(o, loop.var, loops[-1].var)]:
            moves.append(Move(node, variables, loops, position, reads, _operands(accesses, reads, loop.var, loops[-1].var)))
    return max(moves, key=lambda move: len(move.reads), default=None)


def _is_across(offset: Index, across: Var, along: Var) -> bool:
    """Whether a read is contiguous along one loop and not along another."""
    return offset.coefficient(across) == 1 and offset.coefficient(along) not in (0, 1, -1)


def _operands(accesses: Accesses, reads: list[tuple[Node, Index]], across: Var, along: Var) -> list[tuple[Node, Index]]:
    """The reads, if another operand is contiguous along the loop of the result, and no access is guarded or irregular; otherwise none."""
    others = [o for _, o in accesses.offsets if o.coefficient(along) in (1, -1) and o.coefficient(across) != 0]
    return reads if others and not accesses.bounds and not accesses.irregular else []


# ---- tiles


@dataclass(frozen=True)
class TransposeTile:
    """What a block moves, in units: squares of as many vectors as a vector has lanes.

    Attributes:
      lanes: of a vector.
      across, along: units.
      threads: of a block, which divide the units.
      pitch: vectors from one line of a tile in shared memory to the next.
    """

    lanes: int
    across: int
    along: int
    threads: int
    pitch: int

    def shared_bytes(self, move: Move) -> int:
        """Bytes of all values in shared memory."""
        return self.lanes**2 * self.across * self.pitch * sum(map(element_bytes, move.staged))


def tile_of(move: Move, numbers: Numbers) -> TransposeTile:
    """The tile of a block: if one loop has few elements, the tile has all of them and more of the other loop."""
    size = max(map(element_bytes, [*move.staged, move.node.element]))
    lanes = min(_MOST_LANES, max(1, numbers.vector_bytes // size))
    while not _begins_at(move, lanes):
        lanes //= 2
    across, along = (ceil_div(max(1, guess(loop.extent)), lanes) for loop in (move.across, move.along))
    few, many = sorted((across, along))
    if lanes > 1:
        few = min(power_of_two_from(few), _SQUARE_SIDE)
        many = max(WARP // few, min(power_of_two_from(many), _SQUARE_SIDE))
    elif few <= _NARROW:
        many = max(WARP, min(power_of_two_from(many), numbers.threads))
    else:
        few = many = _SIDE
    across, along = (few, many) if across <= along else (many, few)
    threads = numbers.threads
    while across * along % threads:
        threads //= 2
    return TransposeTile(lanes, across, along, threads, _pitch(across, along, lanes * size))


def _begins_at(move: Move, lanes: int) -> bool:
    """Whether all runs are whole vectors that begin at a multiple of their size."""
    across, along = move.across.var, move.along.var
    sizes: list[Size] = [move.across.extent, move.along.extent]
    for offset, run in (*((o, across) for _, o in move.reads), (move.offset, along)):
        sizes += [offset.const, *(c for v, c in offset.terms.items() if v is not run)]
    return all(proves(lambda: size % lanes == 0) for size in sizes)  # noqa: B023 (asked at once)


def _pitch(across: int, along: int, vector: int) -> int:
    """Vectors (of some bytes) from one line to the next with which the threads of a warp meet least often at a bank."""
    return min(range(along, along + WARP), key=lambda pitch: _conflicts(across, along, vector, pitch))


def _conflicts(across: int, along: int, vector: int, pitch: int) -> int:
    """Accesses of the busiest bank while a warp writes vectors, line after line, and while it reads them."""
    written = [n % across * pitch + n // across for n in range(WARP)]
    read = [n // along * pitch + n % along for n in range(WARP)]
    together = min(WARP, _BANKS * _BANK_BYTES // max(vector, _BANK_BYTES))
    total = 0
    for places in (written, read):
        for first in range(0, WARP, together):
            words = {place * vector // _BANK_BYTES for place in places[first : first + together]}
            banks = [word % _BANKS for word in words]
            total += max(map(banks.count, banks))
    return total


# ---- the schedule


class _Writer:
    """Schedules one result."""

    def __init__(self, s: Schedule, move: Move, tile: TransposeTile) -> None:
        self.s, self.tile, self.position = s, tile, move.position
        self.variables, self.loops, self.stages_result = list(move.variables), move.loops, not move.operands

    def write(self, name: str) -> None:
        """Tiles the block that computes a result, and in each tile the blocks that write to shared memory."""
        s, lanes = self.s, self.tile.lanes
        groups = [[self.variables.index(v) for v in loop.members] for loop in self.loops]
        groups[0] = [i for i, v in enumerate(self.variables) if v.extent == 1] + groups[0]
        s.fuse_iterators(name, groups)
        stored, staged = self._staged(name)
        copies = [s.cache_write(block, 0, "local").name for block in staged]
        loops = s.get_loops(stored)
        across, line, row = s.split(loops.pop(self.position), [None, self.tile.across, lanes])
        along, unit, lane = s.split(loops.pop(), [None, self.tile.along, lanes])
        s.reorder(*loops, across, along, line, unit, row, lane)
        block = s.fuse(across, along)
        block = s.fuse(*loops, block) if loops else block
        s.bind(block, "blockIdx.x")
        self._in_threads(line, unit, row, lane)
        for computed, copy in zip(staged, copies, strict=True):
            self._stage(computed, copy, block)

    def _staged(self, name: str) -> tuple[str, list[str]]:
        """The block that stores the result, and the blocks that write to shared memory."""
        if self.stages_result:
            stored, staged = self.s.reindex(name, ("write", 0)).name, [name]
        else:
            stored, staged = name, []
            while (found := self._across(name)) is not None:
                staged.append(self.s.reindex(name, ("read", found[0]), found[1]).name)
        for block in staged:
            self.s.set_scope(block, 0, "shared")
        return stored, staged

    def _across(self, name: str) -> tuple[str, int] | None:
        """An operand that a block reads across memory: its name, and which of the elements that the block reads of it."""
        nest = self.s.nest
        block = nest.blocks()[name]
        for buffer in (b for b in block.inputs() if nest.scope(b) == "global"):
            elements = list({tuple(i.key for i in a.indices): a.indices for a in block.loads() if a.buffer == buffer}.values())
            offsets = [folded(linearize(indices, nest.shape(buffer))) for indices in elements]
            for number, offset in enumerate(offsets):
                if _is_across(offset, block.vars[self.position], block.vars[-1]):
                    return nest.buffer_name(buffer), number
        return None

    def _stage(self, computed: str, copy: str, block: LoopRV) -> None:
        """Computes squares of vectors in registers, and copies them to shared memory transposed."""
        s, position, lanes = self.s, self.position, self.tile.lanes
        loops = s.compute_at(copy, block, preserve_unit_loops=True)
        across, row = s.split(loops[position], [None, lanes])
        along, lane = s.split(loops[-1], [None, lanes])
        s.reorder(along, across, row, lane)
        thread = self._in_threads(along, across, row, lane)
        loops = s.compute_at(computed, thread, preserve_unit_loops=True)
        s.reorder(loops[-1], loops[position])
        s.unroll(loops[-1])
        s.vectorize(loops[position])
        # Lines that neighbouring threads write are adjacent.
        layout = map_of(len(loops), lambda *i: [i[position] % lanes, *i[:position], i[position] // lanes, *i[position + 1 :]])
        s.transform_layout(copy, ("write", 0), layout)
        most = lanes * WARP
        s.storage_align(copy, 0, position - len(loops), most, self.tile.pitch * lanes % most)

    def _in_threads(self, line: LoopRV, unit: LoopRV, row: LoopRV, lane: LoopRV) -> LoopRV:
        """Distributes lines of units over threads, neighbouring units to neighbouring threads; returns the loop of the threads."""
        s, threads, units = self.s, self.tile.threads, self.s.nest.loops()[unit.name].extent
        if isinstance(units, int) and threads % units == 0:
            turn, line = s.split(line, [None, threads // units])
            thread = s.fuse(line, unit)
        else:
            turn, thread = s.split(s.fuse(line, unit), [None, threads])
        s.bind(thread, "threadIdx.x")
        for loop in (turn, row):
            s.unroll(loop)
        s.vectorize(lane)
        return thread
