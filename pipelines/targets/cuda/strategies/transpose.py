"""Transposes through shared memory: elementwise kernels whose operand is contiguous along another axis than the result.

A block has a tile of two loops: the loop along which the result is contiguous, and the loop along which operands are. Its threads read the
tile along the second loop and store it along the first, both contiguously, through shared memory. If all runs are aligned to vectors, a
thread reads a square of vectors and transposes it in registers, so that shared memory is accessed in vectors too.

Shared memory holds the result if no large operand is contiguous along the first loop; otherwise it holds the transposed operands.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from relayc.dialects.mlir import ir
from relayc.dialects.operations import element_bytes
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cuda.architectures import STATIC_SHARED_BYTES, WARP
from relayc.pipelines.targets.cuda.strategies.product.problem import Point, aligned, digits, divided, hoisted
from relayc.pipelines.te.read.access import Accesses, Analysis, MergedLoop, collapse
from relayc.pipelines.te.read.graph import Kernel, Node, NotStructured
from relayc.pipelines.tir.gpu.aligned import VECTOR_BYTES, AlignedEvaluator, load, store
from relayc.pipelines.tir.gpu.launch import barrier, launch
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, power_of_two, power_of_two_from, powers_of_two
from relayc.pipelines.tir.values import nest, vectors
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
    moves = [move_of(result, kernel.args) for result in kernel.results]
    if not all(moves):
        return None
    values = {"threads": lambda n: powers_of_two(WARP, 1024), "vector_bytes": lambda n: powers_of_two(1, VECTOR_BYTES)}
    numbers = tuning.replace(Numbers(), list(values), _possible, values)
    with kernel_function(kernel) as body:
        evaluator = AlignedEvaluator(body.evaluator.buffers)
        for move, output in zip(moves, body.outputs, strict=True):
            assert move is not None
            tile = tile_of(move, numbers)
            if tile.shared_bytes(move) > STATIC_SHARED_BYTES:
                raise NotStructured("more operands than shared memory has room for")
            _Launch(move, tile, evaluator).emit(output)
    return Scheduled(body.function)


def _possible(numbers: Numbers) -> Numbers:
    """Numbers as launches can have them: whole warps, and vectors of a power of two."""
    return Numbers(power_of_two(numbers.threads, WARP, 1024), power_of_two(numbers.vector_bytes, 1, VECTOR_BYTES))


@dataclass(frozen=True)
class Move:
    """A result that is read across memory.

    Attributes:
      node: the stored value, in row-major order.
      variables: loops over the dimensions of the node.
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

    @property
    def others(self) -> list[MergedLoop]:
        return [loop for i, loop in enumerate(self.loops[:-1]) if i != self.position]

    @cached_property
    def offset(self) -> Index:
        """Where an element is stored."""
        return linearize([Index.of(v) for v in self.variables], self.node.shape)

    @property
    def staged(self) -> list[ir.Type]:
        """Element types of the values in shared memory."""
        return [node.element for node, _ in self.operands] or [self.node.element]

    def indices(self, point: Point) -> list[Index]:
        """Indices of the node at a point of the loops."""
        return [Index.of(v).at(point) for v in self.variables]


def move_of(result: Node, memory: Sequence[Node]) -> Move | None:
    """The transposed reads of an elementwise result that is not empty; None without such reads. `memory` are the kernel's arguments."""
    node = result
    while node.kind == "view":
        node = node.inputs[0]
    if node.size == 0:
        return None
    variables = [Var(0, e - 1, name=f"d{i}") for i, e in enumerate(node.shape)]
    point = [Index.of(v) for v in variables]
    analysis = Analysis(memory)
    analysis.visit(node, point)
    accesses = analysis.found
    if accesses.reductions:
        return None
    loops = collapse([v for v in variables if v.extent != 1], accesses, [linearize(point, node.shape)])
    best: Move | None = None
    for position in range(len(loops) - 1):
        reads = _along(accesses, loops[position].var, loops[-1].var)
        if reads and (best is None or len(reads) > len(best.reads)):
            best = Move(node, variables, loops, position, reads, _operands(accesses, reads, loops[position].var, loops[-1].var))
    return best


def _along(accesses: Accesses, across: Var, along: Var) -> list[tuple[Node, Index]]:
    """The reads that are contiguous along one loop and not along another."""
    return [(n, o) for n, o in accesses.offsets if o.coefficient(across) == 1 and o.coefficient(along) not in (0, 1, -1)]


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

    @property
    def turns(self) -> int:
        """Units of a thread."""
        return self.across * self.along // self.threads

    @property
    def elements(self) -> int:
        """In shared memory."""
        return self.lanes * self.across * self.pitch * self.lanes

    def shared_bytes(self, move: Move) -> int:
        """Bytes of all values in shared memory."""
        return self.elements * sum(map(element_bytes, move.staged))

    def place(self, row: int, across: Index, along: Index) -> Index:
        """The position of vector `row` of a unit in shared memory. Lines that neighbouring threads write are adjacent."""
        return ((across + row * self.across) * self.pitch + along) * self.lanes


def tile_of(move: Move, numbers: Numbers) -> TransposeTile:
    """The tile of a block: if one loop has few elements, the tile has all of them and more of the other loop."""
    size = max(map(element_bytes, [*move.staged, move.node.element]))
    lanes = min(_MOST_LANES, max(1, numbers.vector_bytes // size))
    while lanes > 1 and not _begins_at(move, lanes):
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


# ---- launches


class _Launch:
    """The launch of a result."""

    def __init__(self, move: Move, tile: TransposeTile, evaluator: AlignedEvaluator) -> None:
        self.move, self.tile, self.evaluator = move, tile, evaluator

    def emit(self, output: ir.Value) -> None:
        move, tile = self.move, self.tile
        tiles = [ceil_div(loop.extent, units * tile.lanes) for loop, units in ((move.across, tile.across), (move.along, tile.along))]
        blocks = prod(tiles) * prod(loop.extent for loop in move.others)
        shared = [(tile.elements, element) for element in move.staged]
        with launch([blocks], tile.threads, shared) as made, self.evaluator.scope():
            batch, number = divided(Index.of(made.block[0]), prod(tiles))
            across, along = divided(number, tiles[1])
            self.first = hoisted(across * (tile.across * tile.lanes)), hoisted(along * (tile.along * tile.lanes))
            self.point = digits(hoisted(batch), move.others)
            for turn in range(tile.turns):
                line, unit = self._unit(made.thread, turn, tile.across)
                with self.evaluator.scope():
                    self._read(unit, line, made.shared)
            barrier()
            for turn in range(tile.turns):
                line, unit = self._unit(made.thread, turn, tile.along)
                self._if_inside(line, unit, made.shared, output)

    def _unit(self, thread: Var, turn: int, fast: int) -> tuple[Index, Index]:
        """Line and place in the line of a unit of a thread, of lines of `fast` units."""
        threads = self.tile.threads
        if fast % threads == 0:
            line, part = divmod(turn, fast // threads)
            return Index(line), Index.of(thread) + part * threads
        if threads % fast == 0:
            line_, place = map(hoisted, divided(Index.of(thread), fast))
            return line_ + turn * (threads // fast), place
        line_, place = map(hoisted, divided(Index.of(thread) + turn * threads, fast))
        return line_, place

    def _at(self, across: Index, along: Index) -> Point:
        return {**self.point, **self.move.across.at(across), **self.move.along.at(along)}

    def _read(self, across: Index, along: Index, shared: Sequence[ir.Value]) -> None:
        """Copies a unit to shared memory. Units after the last repeat others and are not stored, so that all loads can be in flight."""
        move, tile, evaluator = self.move, self.tile, self.evaluator
        starts = []
        for unit, first, loop in zip((across, along), self.first, (move.across, move.along), strict=True):
            most = loop.extent - tile.lanes
            starts.append(aligned(emit.at_most(first + unit * tile.lanes, most), most, tile.lanes))
        for number, buffer in enumerate(shared):
            with evaluator.along(tile.lanes) as lane:
                rows = [self._value(number, self._at(starts[0] + lane, starts[1] + i)) for i in range(tile.lanes)]
            for row, value in enumerate(vectors.transpose([emit.broadcast(v, tile.lanes) for v in rows])):
                self._store(value, buffer, tile.place(row, across, along))

    def _value(self, number: int, point: Point) -> ir.Value:
        if not self.move.operands:
            return self.evaluator.at(self.move.node, self.move.indices(point))
        node, offset = self.move.operands[number]
        return self.evaluator.load(node, offset.at(point))

    def _if_inside(self, across: Index, along: Index, shared: Sequence[ir.Value], output: ir.Value) -> None:
        """Stores a unit if it is inside the result."""
        move, lanes = self.move, self.tile.lanes
        starts, conditions = [], []
        facts = zip((across, along), self.first, (move.across, move.along), (self.tile.across, self.tile.along), strict=True)
        for unit, first, loop, units in facts:
            start, extent = hoisted(first + unit * lanes), loop.extent
            if not proves(lambda: extent % (units * lanes) == 0):  # noqa: B023 (asked at once)
                conditions.append(emit.below(start, extent))
            starts.append(aligned(start, extent - lanes, lanes))

        def code() -> None:
            for row in range(lanes):
                self._write(row, (across, along), (starts[0] + row, starts[1]), shared, output)

        if conditions:
            nest.when(emit.all_of(conditions), self.evaluator, code)
        else:
            with self.evaluator.scope():
                code()

    def _write(self, row: int, unit: tuple[Index, Index], start: tuple[Index, Index], shared: Sequence[ir.Value], output: ir.Value) -> None:
        move, evaluator = self.move, self.evaluator
        values = [self._load(buffer, self.tile.place(row, *unit)) for buffer in shared]
        with evaluator.along(self.tile.lanes) as lane:
            point = self._at(start[0], start[1] + lane)
            for (node, offset), value in zip(move.operands, values, strict=False):
                evaluator.remember_load(node, offset.at(point), value)
            result = evaluator.at(move.node, move.indices(point)) if move.operands else values[0]
            evaluator.store(result, output, move.offset.at(point))

    def _store(self, value: ir.Value, buffer: ir.Value, at: Index) -> None:
        if self.tile.lanes == 1:
            emit.create("memref.store", [], [value, buffer, emit.materialize(at)])
        else:
            store(value, buffer, at)

    def _load(self, buffer: ir.Value, at: Index) -> ir.Value:
        if self.tile.lanes == 1:
            return emit.create("memref.load", [buffer.type.element_type], [buffer, emit.materialize(at)])
        return load(buffer, at, self.tile.lanes)
