"""The launch of a product by warp groups: one warp brings tiles of the operands, the other groups multiply and store.

Blocks are as many as there are multiprocessors, and go from tile to tile of the result. Shared memory has a ring of stages. Two barriers
of each stage tell the groups that its tiles are there ("full"), and the warp that brings them that all groups have read them ("free"). The
ring goes on from one tile of the result to the next: the first operands of a tile come while the one before is stored.
"""

from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.cuda.architectures import REGISTERS
from relayc.pipelines.cuda.schedule.hopper import instructions as hopper
from relayc.pipelines.cuda.schedule.product.nest import tile_at
from relayc.pipelines.cuda.schedule.product.operands import Way
from relayc.pipelines.cuda.schedule.product.problem import Problem, digits, divided, hoisted
from relayc.pipelines.cuda.schedule.product.results import Matrix, Results, load_run
from relayc.pipelines.cuda.schedule.product.shared import SharedMemory, added, as_pointer, store
from relayc.pipelines.cuda.tensor_maps import TensorMap
from relayc.pipelines.gpu.aligned import AlignedEvaluator
from relayc.pipelines.gpu.launch import WARP, Launch, barrier, launch, shuffle
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.schedule.strategy import Scheduled, kernel_body
from relayc.pipelines.tir import emit, nest, vectors
from relayc.pipelines.tir.evaluator import Evaluator
from relayc.symbolic import Size, ceil_div, minimum, proves

BRINGER_REGISTERS, GROUP_REGISTERS = 40, 232
"""Of a thread of the group that brings tiles, and of two others (PTX ISA, setmaxnreg: multiples of 8): what it gives back is theirs."""
_OTHER_REGISTERS = 70
"""Of a thread beside its sums, with some to spare: ptxas takes 29 to 51."""
STRIP = 32
"""Columns of the sums that a warp stores at a time."""
_STRIP_PITCH = STRIP + 4
_STRIP_ROWS = 16
"""Rows of a warp in the sums of its group."""
_BARRIER_BYTES = 8
_ALIGNED = 8
"""Elements of 16 bytes, which lines begin at multiples of."""


@dataclass(frozen=True)
class GroupTile:
    """Tunable numbers.

    Attributes:
      rows: of the tile of a block, 64 for each group that multiplies.
      columns: of it, a multiple of STRIP up to 256.
      stages: of the ring.
    """

    rows: int
    columns: int
    stages: int

    @property
    def groups(self) -> int:
        """Groups that multiply."""
        return self.rows // hopper.ROWS

    @property
    def moves_registers(self) -> bool:
        """Whether the groups that multiply need more registers than each thread has of its own: then the one that does not gives of its."""
        return self.columns // 2 + _OTHER_REGISTERS > REGISTERS // self.threads

    @property
    def threads(self) -> int:
        return (self.groups + 1) * hopper.GROUP_THREADS

    @property
    def stage_bytes(self) -> int:
        return (self.rows + self.columns) * hopper.LINE_BYTES

    @property
    def shared_bytes(self) -> int:
        """Of the ring, the strips and the barriers, each of which begins at a multiple of 1024."""
        strips = self.strip_elements * 4
        return self.stage_bytes * self.stages + -(-strips // 1024) * 1024 + 1024

    @property
    def strip_elements(self) -> int:
        return self.groups * (hopper.GROUP_THREADS // WARP) * _STRIP_ROWS * _STRIP_PITCH


@dataclass(frozen=True)
class _Ring:
    """Where a thread is in the ring.

    Attributes:
      stage, phase: its stage, and the parity of the phase that it waits for there (i32).
    """

    stage: ir.Value
    phase: ir.Value

    def after(self, stages: int) -> "_Ring":
        i32 = self.stage.type
        following = emit.arith("addi", self.stage, emit.number(1, i32))
        is_last = emit.compare("eq", following, emit.number(stages, i32))
        stage = emit.select(is_last, emit.number(0, i32), following)
        return _Ring(stage, emit.arith("xori", self.phase, emit.create("arith.extui", [i32], [is_last])))


class GroupNest:
    """Emits one product."""

    evaluator: Evaluator

    def __init__(self, problem: Problem, tile: GroupTile, ways: tuple[Way, Way], blocks: int) -> None:
        """
        Args:
          ways: how A and B lie in memory: in lines along the depth.
          blocks: of the launch, at most.
        """
        self.problem, self.tile, self.ways, self.blocks = problem, tile, ways, blocks
        self.element = ways[0].element
        self.depth = hopper.LINE_BYTES // ways[0].element_bytes
        self.turns = ceil_div(problem.depth, self.depth)
        self.grid = ceil_div(problem.rows, tile.rows), ceil_div(problem.columns, tile.columns)
        self.tiles: Size = self.grid[0] * self.grid[1] * problem.batches

    def emit(self) -> Scheduled:
        """The kernel in tir, at the ambient insertion point."""
        packings = {way.operand.node.position: way.packing for way in self.ways if way.packing is not None}
        with kernel_body(self.problem.kernel, packings) as body:
            self.evaluator = AlignedEvaluator(body.evaluator.buffers)
            self.results = Results(self.problem, self.evaluator, body.outputs[0])
            self.direction = self.results.direction
            size = self.tiles
            if proves(lambda: size >= 1):
                self._launch()
            elif size != 0:  # a tensor without elements has no map
                some = emit.compare("ne", emit.index_constant(size), emit.index_constant(0))
                nest.when(some, self.evaluator, self._launch)
        return Scheduled(body.function, packings)

    # ---- the host

    def _map(self, way: Way, count: int) -> ir.Value:
        """The map of an operand: [batch, line, depth], of which a copy brings `count` lines of a stage's depth."""
        p, operand = self.problem, way.operand
        buffer = self.evaluator.memory(operand.node)
        if way.packing is not None:
            offset: Size = 0
            strides: list[Size] = [way.pitch, way.extent * way.pitch]
        else:
            offset = operand.offset.const
            # A loop of one step has no stride; any one does.
            lines = ceil_div(p.depth, _ALIGNED) * _ALIGNED
            each = operand.offset.coefficient(way.loops[0].var) if way.loops else lines
            strides = [each, operand.offset.coefficient(p.batch[0].var) if p.batch else each]
        sizes = [p.depth, way.extent, p.batches]
        numbers = [emit.index_constant(n) for n in (offset, *sizes, *strides)]
        return TensorMap(self.element, buffer, numbers[0], numbers[1:4], numbers[4:], (self.depth, count, 1)).emit()

    def _launch(self) -> None:
        tile, i8, i64 = self.tile, ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(64)
        maps = [self._map(way, lines) for way, lines in zip(self.ways, (tile.rows, tile.columns), strict=True)]
        shared = [(tile.stage_bytes * tile.stages, i8), (tile.strip_elements, ir.F32Type.get()), (2 * tile.stages, i64)]
        with launch([minimum(self.tiles, self.blocks)], tile.threads, shared) as made, self.evaluator.scope():
            self._block(made, maps)

    # ---- a block

    def _block(self, made: Launch, maps: list[ir.Value]) -> None:
        tile = self.tile
        self.ring, self.barriers = SharedMemory.of(made.shared[0]), SharedMemory.of(made.shared[2])
        self.strips = made.shared[1]
        self.first = made.block[0]
        is_first = emit.compare("eq", made.thread.value, emit.index_constant(0))
        nest.when(is_first, self.evaluator, self._init_barriers)
        barrier()
        i32 = ir.IntegerType.get_signless(32)
        # The same in all lanes of a warp, which ptxas cannot know of a thread's number.
        number = emit.create("arith.index_cast", [i32], [made.thread.value])
        group = shuffle("idx", emit.arith("divui", number, emit.number(hopper.GROUP_THREADS, i32)), 0)
        brings = emit.compare("eq", group, emit.number(tile.groups, i32))
        in_group = hoisted(divided(Index.of(made.thread), hopper.GROUP_THREADS)[1])
        warp, lane = divided(in_group, WARP)

        def bring() -> None:
            if tile.moves_registers:
                hopper.registers("decrease", BRINGER_REGISTERS)
            is_warp = emit.compare("eq", emit.materialize(warp), emit.index_constant(0))
            nest.when(is_warp, self.evaluator, lambda: nest.when(hopper.elected(), self.evaluator, lambda: self._bring(maps)))

        def multiply() -> None:
            if tile.moves_registers:
                hopper.registers("increase", GROUP_REGISTERS)
            value = emit.create("arith.index_cast", [ir.IndexType.get()], [group])
            self._multiply(Index.of(Var(0, tile.groups - 1, value, name="group")), hoisted(warp), hoisted(lane))

        nest.when(brings, self.evaluator, bring, multiply)

    def _init_barriers(self) -> None:
        for stage in range(self.tile.stages):
            hopper.init_barrier(self._barrier(hopper.i32(stage), False), 1)
            hopper.init_barrier(self._barrier(hopper.i32(stage), True), self.tile.groups)
        hopper.fence_barriers()

    def _barrier(self, stage: ir.Value, is_free: bool) -> ir.Value:
        """The barrier that says that a stage (i32) is full, or that it is free."""
        index = emit.create("arith.index_castui", [ir.IndexType.get()], [stage])
        place = emit.arith("muli", index, emit.index_constant(_BARRIER_BYTES))
        return self.barriers.pointer(added(place, _BARRIER_BYTES * self.tile.stages if is_free else 0))

    def _stage(self, stage: ir.Value) -> ir.Value:
        """Where a stage (i32) begins, in bytes."""
        index = emit.create("arith.index_castui", [ir.IndexType.get()], [stage])
        return emit.create("arith.muli", [index.type], [index, emit.index_constant(self.tile.stage_bytes)], emit.no_overflow())

    def _place(self, number: Index) -> tuple[Index, Index, Index]:
        """Batch, and row and column of the tile of a number."""
        rows, columns = self.grid
        batch, within = divided(number, rows * columns)
        row, column = tile_at(within, self.grid)
        return hoisted(batch), hoisted(row), hoisted(column)

    def _start(self) -> list[ir.Value]:
        return [hopper.i32(0), hopper.i32(0)]

    # ---- the warp that brings tiles

    def _bring(self, maps: list[ir.Value]) -> None:
        tile, i32 = self.tile, ir.IntegerType.get_signless(32)
        addresses = [_address(m) for m in maps]
        number = Var(0, self.tiles - 1, name="tile")
        step = emit.index_constant(minimum(self.tiles, self.blocks))
        with emit.for_loop(self.first.value, self.tiles, step, number, self._start()) as tiles, self.evaluator.scope():
            batch, row, column = self._place(Index.of(number))
            lines = [
                emit.create("arith.index_cast", [i32], [emit.materialize(at)]) for at in (row * tile.rows, column * tile.columns, batch)
            ]
            turn = Var(0, self.turns - 1, name="turn")
            with emit.for_loop(0, self.turns, 1, turn, tiles.inner_iter_args) as turns:
                ring = _Ring(*turns.inner_iter_args)
                hopper.wait(self._barrier(ring.stage, True), emit.arith("xori", ring.phase, emit.number(1, i32)))
                full = self._barrier(ring.stage, False)
                hopper.arrive_expecting(full, tile.stage_bytes)
                depth = emit.create("arith.index_cast", [i32], [emit.materialize(Index.of(turn) * self.depth)])
                stage = self._stage(ring.stage)
                for i, start in enumerate((0, tile.rows * hopper.LINE_BYTES)):
                    to = self.ring.pointer(added(stage, start))
                    hopper.copy_box(to, addresses[i], [depth, lines[i], lines[2]], full)
                following = ring.after(tile.stages)
                emit.yield_values([following.stage, following.phase])
            emit.yield_values(list(turns.results))

    # ---- the groups that multiply

    def _multiply(self, group: Index, warp: Index, lane: Index) -> None:
        self.group, self.warp, self.lane = group, warp, lane
        place = emit.arith("addi", emit.materialize(warp * WARP), emit.materialize(lane))
        self.leads = emit.compare("eq", place, emit.index_constant(0))
        number = Var(0, self.tiles - 1, name="tile")
        step = emit.index_constant(minimum(self.tiles, self.blocks))
        with emit.for_loop(self.first.value, self.tiles, step, number, self._start()) as tiles, self.evaluator.scope():
            sums, ring = self._sum(_Ring(*tiles.inner_iter_args))
            self._store(sums, Index.of(number))
            emit.yield_values([ring.stage, ring.phase])

    def _sum(self, start: _Ring) -> tuple[ir.Value, _Ring]:
        """The sums of a tile, and where the ring is after."""
        tile, group = self.tile, self.group
        turn = Var(0, self.turns - 1, name="turn")
        begin = [hopper.no_sums(tile.columns), start.stage, start.phase, start.stage]
        with emit.for_loop(0, self.turns, 1, turn, begin) as loop:
            sums, stage, phase, last = loop.inner_iter_args
            ring = _Ring(stage, phase)
            hopper.wait(self._barrier(ring.stage, False), ring.phase)
            base = emit.arith("addi", self.ring.base, self._stage(ring.stage))
            own = emit.arith("addi", base, emit.materialize(group * (hopper.ROWS * hopper.LINE_BYTES)))
            a, b = hopper.descriptor(own), hopper.descriptor(added(base, tile.rows * hopper.LINE_BYTES))
            hopper.begin_products()
            for step in range(self.depth // hopper.STEP):
                # A step further in lines that are permuted: bytes in units of 16.
                further = emit.number(step * hopper.STEP * self.ways[0].element_bytes >> 4, a.type)
                pair = (emit.arith("addi", a, further), emit.arith("addi", b, further)) if step else (a, b)
                sums = hopper.multiply_add(*pair, sums, tile.columns, str(self.element))
            hopper.commit_products()
            hopper.wait_products(1)
            later = emit.compare("ne", turn.value, emit.index_constant(0))
            self._free(last, emit.arith("andi", later, self.leads))
            following = ring.after(tile.stages)
            emit.yield_values([sums, following.stage, following.phase, ring.stage])
        hopper.wait_products(0)
        sums, stage, phase, last = loop.results
        self._free(last, self.leads)
        return sums, _Ring(stage, phase)

    def _free(self, stage: ir.Value, condition: ir.Value) -> None:
        """The group has read a stage."""
        nest.when(condition, self.evaluator, lambda: hopper.arrive(self._barrier(stage, True)))

    # ---- results

    def _store(self, sums: ir.Value, number: Index) -> None:
        """Strip by strip, through memory of the warp, so that lanes store along the result."""
        batch_number, row, column = self._place(number)
        matrix = Matrix(Index(), batch_number, digits(batch_number, self.problem.batch))
        first_row = hoisted(row * self.tile.rows + self.group * hopper.ROWS + self.warp * _STRIP_ROWS)
        first_column = hoisted(column * self.tile.columns)
        warps = hopper.GROUP_THREADS // WARP
        own = hoisted((self.group * warps + self.warp) * (_STRIP_ROWS * _STRIP_PITCH))
        quad, pair = divided(self.lane, 4)
        lanes = min(self.direction.lanes, 8)
        along = self.direction.along_columns
        units = _STRIP_ROWS * STRIP // lanes
        for strip in range(self.tile.columns // STRIP):
            hopper.wait_for_warp()
            for eight in range(STRIP // 8):
                for half in range(2):
                    at = (strip * STRIP // 8 + eight) * 4 + half * 2
                    two = vectors.from_elements([hopper.sum_of(sums, at), hopper.sum_of(sums, at + 1)])
                    place = own + (quad + 8 * half) * _STRIP_PITCH + pair * 2 + eight * 8
                    store(two, self.strips, emit.materialize(place))
            hopper.wait_for_warp()
            unit = Var(0, units - 1, name="unit")
            with emit.for_loop(emit.materialize(self.lane), units, WARP, unit), self.evaluator.scope():
                outer, part = divided(Index.of(unit), (STRIP if along else _STRIP_ROWS) // lanes)
                in_row, in_column = (outer, part * lanes) if along else (part * lanes, outer)
                place = hoisted(own + in_row * _STRIP_PITCH + in_column)
                self._unit(place, first_row + in_row, first_column + in_column + strip * STRIP, lanes, matrix)

    def _unit(self, place: Index, row: Index, column: Index, lanes: int, matrix: Matrix) -> None:
        """Stores some neighbouring elements, where they are of the result, whose sums are at a place of the strips."""
        p, along = self.problem, self.direction.along_columns

        def inside() -> None:
            value = load_run(self.strips, place, lanes, 1 if along else _STRIP_PITCH)
            # Behind the last row or column there would be indices that are not there.
            at = [Index.of(Var(0, n - 1, emit.materialize(i), name="at", step=s)) for i, n, s in self._bounded(row, column, lanes)]
            self.results.store(value, at[0], at[1], matrix)

        conditions = [
            emit.below(index, extent)
            for index, extent, size in ((row, p.rows, self.tile.rows), (column, p.columns, self.tile.columns))
            if not proves(lambda extent=extent, size=size: extent % size == 0)  # type: ignore[misc]
        ]
        if conditions:
            nest.when(emit.all_of(conditions), self.evaluator, inside)
        else:
            inside()

    def _bounded(self, row: Index, column: Index, lanes: int) -> list[tuple[Index, Size, int]]:
        along = self.direction.along_columns
        return [(row, self.problem.rows, 1 if along else lanes), (column, self.problem.columns, lanes if along else 1)]


def _address(tensor_map: ir.Value) -> ir.Value:
    """Of a tensor map, as copies take it."""
    base = emit.create("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [tensor_map])
    return as_pointer(base, 0)
