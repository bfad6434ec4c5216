"""The launch of a product by warp groups: one warp copies tiles of the operands, the other groups multiply and store.

There are as many blocks as multiprocessors, and each block computes tile after tile of the result. Shared memory has a ring of stages.
Each stage has two barriers: one signals to the groups that its tiles have arrived ("full"), the other signals to the copying warp that all
warps have read them ("free"). The ring continues from one tile of the result to the next: the first operands of a tile are copied while the
previous tile is stored.
"""

from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.hopper import instructions as hopper
from relayc.pipelines.targets.cuda.strategies.hopper.operands import TileOperand
from relayc.pipelines.targets.cuda.strategies.hopper.results import Destination, Matrix, Results, load_run
from relayc.pipelines.targets.cuda.strategies.hopper.splits import Partials, turns_of, workspace_bytes
from relayc.pipelines.targets.cuda.strategies.hopper.tile import (
    BRINGER_REGISTERS,
    GROUP_REGISTERS,
    STRIP,
    STRIP_PITCH,
    STRIP_ROWS,
    GroupTile,
)
from relayc.pipelines.targets.cuda.strategies.product.instructions import Instruction
from relayc.pipelines.targets.cuda.strategies.product.problem import digits, divided, hoisted
from relayc.pipelines.targets.cuda.strategies.product.shared import SharedMemory, added, store
from relayc.pipelines.tir.gpu import bulk_copies as bulk
from relayc.pipelines.tir.gpu.aligned import AlignedEvaluator
from relayc.pipelines.tir.gpu.launch import WARP, Launch, barrier, launch, shuffle, warp_barrier
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, ceil_div, minimum, proves

BAND = 8
"""Rows of tiles that blocks go over column by column: neighbouring blocks share rows and columns, which the cache of the device keeps."""


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
    destination: Destination

    def __init__(self, tile: GroupTile, a: TileOperand, b: TileOperand, instruction: Instruction, blocks: int) -> None:
        """
        Args:
          a, b: the operands, side by side in a stage.
          blocks: of the launch, at most.
        """
        problem = a.problem
        self.problem, self.tile, self.a, self.b, self.instruction, self.blocks = problem, tile, a, b, instruction, blocks
        self.turns = a.turns
        self.grid = ceil_div(problem.rows, tile.rows), ceil_div(problem.columns, tile.columns)
        self.tiles: Size = self.grid[0] * self.grid[1] * problem.batches * tile.splits

    def emit(self) -> Scheduled:
        """The kernel in tir, at the ambient insertion point."""
        problem, splits = self.problem, self.tile.splits
        packings = {way.operand.node.position: way.packing for way in (self.a.way, self.b.way) if way.packing is not None}
        workspace = workspace_bytes(problem, splits)
        with kernel_function(problem.kernel, packings, workspace) as body:
            self.evaluator = AlignedEvaluator(body.evaluator.buffers)
            results = Results(problem, self.evaluator, body.outputs[0])
            if body.workspace is None:
                self._launch_tiles(results)
            else:
                partials = Partials(problem, splits, body.workspace)
                self._launch_tiles(partials)
                partials.launch_sums(results, self.evaluator)
        return Scheduled(body.function, packings, workspace)

    # ---- the host

    def _launch_tiles(self, destination: Destination) -> None:
        """Launches the kernel that sums tiles, if there are tiles: a tensor without elements has no tensor map."""
        self.destination = destination
        size = self.tiles
        if proves(lambda: size > 0):
            self._launch()
        elif size != 0:
            some = emit.compare("ne", emit.index_constant(size), emit.index_constant(0))
            nest.when(some, self.evaluator, self._launch)

    def _launch(self) -> None:
        tile, i8, i64 = self.tile, ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(64)
        maps = [operand.tensor_map(self.evaluator) for operand in (self.a, self.b)]
        shared = [(tile.stage_bytes * tile.stages, i8), (tile.strip_elements, self.problem.sums), (2 * tile.stages, i64)]
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
            nest.when(is_warp, self.evaluator, lambda: nest.when(bulk.elected(), self.evaluator, lambda: self._bring(maps)))

        def multiply() -> None:
            if tile.moves_registers:
                hopper.registers("increase", GROUP_REGISTERS)
            value = emit.create("arith.index_cast", [ir.IndexType.get()], [group])
            self._multiply(Index.of(Var.below(tile.groups, value, name="group")), hoisted(warp), hoisted(lane))

        nest.when(brings, self.evaluator, bring, multiply)

    def _init_barriers(self) -> None:
        for stage in range(self.tile.stages):
            bulk.init_barrier(self._barrier(bulk.i32(stage), False), 1)
            bulk.init_barrier(self._barrier(bulk.i32(stage), True), self.tile.groups * hopper.GROUP_THREADS // WARP)
        bulk.fence_barriers()

    def _barrier(self, stage: ir.Value, is_free: bool) -> ir.Value:
        """The barrier that signals that a stage (i32) is full, or that it is free."""
        index = emit.create("arith.index_castui", [ir.IndexType.get()], [stage])
        place = emit.arith("muli", index, emit.index_constant(bulk.BARRIER_BYTES))
        return self.barriers.pointer(added(place, bulk.BARRIER_BYTES * self.tile.stages if is_free else 0))

    def _stage(self, stage: ir.Value) -> ir.Value:
        """Where a stage (i32) begins, in bytes."""
        index = emit.create("arith.index_castui", [ir.IndexType.get()], [stage])
        return emit.create("arith.muli", [index.type], [index, emit.index_constant(self.tile.stage_bytes)], emit.no_overflow())

    def _place(self, number: Index) -> tuple[Matrix, Index, Index]:
        """Matrix, and row and column of the tile of a number."""
        rows, columns = self.grid
        matrices, within = divided(number, rows * columns)
        batch, split = map(hoisted, divided(matrices, self.tile.splits))
        row, column = tile_at(within, self.grid)
        return Matrix(split, batch, digits(batch, self.problem.batch)), hoisted(row), hoisted(column)

    def _turns(self, number: Index) -> tuple[ir.Value, ir.Value]:
        """The range of turns of a tile, by its number: its first turn, and the turn after its last."""
        rows, columns = self.grid
        split = divided(divided(number, rows * columns)[0], self.tile.splits)[1]
        return turns_of(split, self.turns, self.tile.splits)

    def _start(self) -> list[ir.Value]:
        return [bulk.i32(0), bulk.i32(0)]

    # ---- the warp that brings tiles

    def _bring(self, maps: list[ir.Value]) -> None:
        tile = self.tile
        addresses = [bulk.address_of(m) for m in maps]
        number = Var.below(self.tiles, name="tile")
        step = emit.index_constant(minimum(self.tiles, self.blocks))
        with emit.for_loop(self.first.value, self.tiles, step, number, self._start()) as tiles, self.evaluator.scope():
            matrix, row, column = self._place(Index.of(number))
            places = self.a.place(row * tile.rows, matrix.batch), self.b.place(column * tile.columns, matrix.batch)
            turn = Var.below(self.turns, name="turn")
            with emit.for_loop(*self._turns(Index.of(number)), 1, turn, tiles.inner_iter_args) as turns:
                ring = _Ring(*turns.inner_iter_args)
                bulk.wait(self._barrier(ring.stage, True), emit.arith("xori", ring.phase, emit.number(1, ring.phase.type)))
                full = self._barrier(ring.stage, False)
                bulk.arrive_expecting(full, tile.stage_bytes)
                stage = self._stage(ring.stage)
                for operand, address, place in zip((self.a, self.b), addresses, places, strict=True):
                    operand.bring(self.ring, stage, address, place, Index.of(turn), full)
                following = ring.after(tile.stages)
                emit.yield_values([following.stage, following.phase])
            emit.yield_values(list(turns.results))

    # ---- the groups that multiply

    def _multiply(self, group: Index, warp: Index, lane: Index) -> None:
        self.group, self.warp, self.lane = group, warp, lane
        # A wait covers the products of the executing threads only (PTX ISA, "wgmma.wait_group"): each warp frees a stage for itself.
        self.leads = emit.compare("eq", emit.materialize(lane), emit.index_constant(0))
        number = Var.below(self.tiles, name="tile")
        step = emit.index_constant(minimum(self.tiles, self.blocks))
        with emit.for_loop(self.first.value, self.tiles, step, number, self._start()) as tiles, self.evaluator.scope():
            sums, ring = self._sum(_Ring(*tiles.inner_iter_args), *self._turns(Index.of(number)))
            self._store(sums, *self._place(Index.of(number)))
            emit.yield_values([ring.stage, ring.phase])

    def _sum(self, start: _Ring, first: ir.Value, end: ir.Value) -> tuple[ir.Value, _Ring]:
        """The sums of some turns, at least one, and the position in the ring after them."""
        tile = self.tile
        turn = Var.below(self.turns, name="turn")
        begin = [hopper.no_sums(tile.columns, self.problem.sums), start.stage, start.phase, start.stage]
        with emit.for_loop(first, end, 1, turn, begin) as loop:
            sums, stage, phase, last = loop.inner_iter_args
            ring = _Ring(stage, phase)
            bulk.wait(self._barrier(ring.stage, False), ring.phase)
            base = emit.arith("addi", self.ring.base, self._stage(ring.stage))
            a, b = self.a.descriptor(base, self.group * hopper.ROWS), self.b.descriptor(base)
            along = (self.a.way.along_depth, self.b.way.along_depth)
            hopper.begin_products()
            for step in range(0, self.a.depth, self.instruction.depth):
                pair = self.a.step(a, step), self.b.step(b, step)
                sums = hopper.multiply_add(*pair, sums, tile.columns, self.instruction, along)
            hopper.commit_products()
            hopper.wait_products(1)
            later = emit.compare("ne", turn.value, first)
            self._free(last, emit.arith("andi", later, self.leads))
            following = ring.after(tile.stages)
            emit.yield_values([sums, following.stage, following.phase, ring.stage])
        hopper.wait_products(0)
        sums, stage, phase, last = loop.results
        self._free(last, self.leads)
        return sums, _Ring(stage, phase)

    def _free(self, stage: ir.Value, condition: ir.Value) -> None:
        """The warp has read a stage."""
        nest.when(condition, self.evaluator, lambda: bulk.arrive(self._barrier(stage, True)))

    # ---- results

    def _store(self, sums: ir.Value, matrix: Matrix, row: Index, column: Index) -> None:
        """Stores the sums strip by strip, through shared memory of the warp, so that lanes store contiguous elements of the result."""
        first_row = hoisted(row * self.tile.rows + self.group * hopper.ROWS + self.warp * STRIP_ROWS)
        first_column = hoisted(column * self.tile.columns)
        warps = hopper.GROUP_THREADS // WARP
        own = hoisted((self.group * warps + self.warp) * (STRIP_ROWS * STRIP_PITCH))
        quad, pair = divided(self.lane, 4)
        lanes = min(self.destination.direction.lanes, 8)
        along = self.destination.direction.along_columns
        units = STRIP_ROWS * STRIP // lanes
        for strip in range(self.tile.columns // STRIP):
            warp_barrier()
            for eight in range(STRIP // 8):
                for half in range(2):
                    at = (strip * STRIP // 8 + eight) * 4 + half * 2
                    two = vectors.from_elements([hopper.sum_of(sums, n, self.problem.sums) for n in (at, at + 1)])
                    place = own + (quad + 8 * half) * STRIP_PITCH + pair * 2 + eight * 8
                    store(two, self.strips, emit.materialize(place))
            warp_barrier()
            unit = Var.below(units, name="unit")
            with emit.for_loop(emit.materialize(self.lane), units, WARP, unit), self.evaluator.scope():
                outer, part = divided(Index.of(unit), (STRIP if along else STRIP_ROWS) // lanes)
                in_row, in_column = (outer, part * lanes) if along else (part * lanes, outer)
                place = hoisted(own + in_row * STRIP_PITCH + in_column)
                self._unit(place, first_row + in_row, first_column + in_column + strip * STRIP, lanes, matrix)

    def _unit(self, place: Index, row: Index, column: Index, lanes: int, matrix: Matrix) -> None:
        """Stores neighbouring elements, if they are inside the result, from their sums at a position in the strips."""
        p, along = self.problem, self.destination.direction.along_columns

        with nest.if_inside([(row, p.rows, self.tile.rows), (column, p.columns, self.tile.columns)], self.evaluator):
            value = load_run(self.strips, place, lanes, 1 if along else STRIP_PITCH)
            # Behind the last row or column there would be indices that are not there.
            at = [Index.of(Var.below(n, emit.materialize(i), name="at", step=s)) for i, n, s in self._bounded(row, column, lanes)]
            self.destination.store(value, at[0], at[1], matrix)

    def _bounded(self, row: Index, column: Index, lanes: int) -> list[tuple[Index, Size, int]]:
        along = self.destination.direction.along_columns
        return [(row, self.problem.rows, 1 if along else lanes), (column, self.problem.columns, lanes if along else 1)]


def tile_at(number: Index, grid: tuple[Size, Size]) -> tuple[Index, Index]:
    """Row and column of a tile by its number in a grid of rows and columns: along the columns of a band of rows of tiles, one column of the
    band after the other."""
    rows, columns = grid
    if proves(lambda: columns == 1):
        return number, Index()
    if proves(lambda: rows <= BAND):
        column, row = divided(number, rows)
        return row, column
    band, within = divided(number, columns * BAND)
    first, value = hoisted(band * BAND), emit.materialize(within)
    height = emit.smaller(emit.arith("subi", emit.index_constant(rows), emit.materialize(first)), BAND)
    column, row = (emit.arith(name, value, height) for name in ("divui", "remui"))
    return first + Var.below(BAND, row, name="row"), Index.of(Var.below(columns, column, name="column"))
