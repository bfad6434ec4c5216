"""The loops around blocks of sums of a contraction by groups: copies of run-time operands, tasks, the epilogue.

A block is a few row tiles by a few blocks of columns. Its sums are computed by the instruction set at hand (a `BlockKernel`) and left in a
small buffer of the thread, on which the epilogue is evaluated. All tiles have the same shape: the last ones begin early rather than end
late, and only rows that are new are stored.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, prod
from typing import Protocol

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.bf16.columns import ColumnsCopy
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, SumBlock, groups_packing, head_offset, packed_offset, packed_shape
from relayc.pipelines.targets.cpu.strategies.bf16.moves import LANES, TASKS
from relayc.pipelines.targets.cpu.strategies.bf16.plan import COPIED, STORED, Lower, Plan
from relayc.pipelines.targets.cpu.strategies.bf16.rows import RowsCopy
from relayc.pipelines.targets.cpu.strategies.contraction.nest import ContractionNest
from relayc.pipelines.targets.cpu.strategies.contraction.plan import has_contiguous_columns
from relayc.pipelines.targets.cpu.strategies.contraction.strategy import contraction_nests
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.memory import align
from relayc.pipelines.tir.strategy.scheduled import KernelFunction, Scheduled, is_param, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, grains
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.buffers import LINE, local_buffer, prefetch, view
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Dim, Size, bounds, ceil_div, guess, maximum, minimum, proves

Point = dict[Var, Index]
Values = Sequence[ir.Value]
Loops = list[tuple[Var, Size]]

FEW_ROWS = 8
"""Rows up to which a run-time B is not copied in pairs, where a call says how many rows there are."""
GRAIN = 6000
"""Cycles below which a kernel stays on one thread."""
FITS, PART = 0.75, 0.5
"""Shares of the second-level cache: tiles take an operand of more than the first share in parts of at most the second share."""
STREAM_BYTES = 1024
"""How far ahead a block of columns is asked for where each is read once: all of a step at least."""


class BlockKernel(Protocol):
    """What an instruction set does: sums held in registers across the reduction loops."""

    uses_tiles: bool

    def begin(self, b: ir.Value | None = None, heads: Sequence[Index] = ()) -> Values:
        """The sums before the first step: 0, or what is at the heads of blocks of columns in `b`."""

    def step(self, a: ir.Value, rows: Sequence[Index], stride: Size, b: ir.Value, columns: Sequence[Index], sums: Values) -> Values:
        """The sums after one more instruction in depth; `rows` are where row tiles begin in `a` (rows apart by `stride`), `columns` where
        blocks of columns do in `b`."""

    def end(self, sums: Values, scratch: ir.Value) -> None:
        """Stores the sums row by row."""


class PairsNest:
    """Emits one contraction kernel.

    Attributes:
      a, b: where the operands are read.
      scratch: buffer of a thread for the sums of a block.
      is_apart: whether the nest has to be in a function of its own.
    """

    evaluator: Evaluator
    output: ir.Value
    a: ir.Value
    b: ir.Value
    scratch: ir.Value

    def __init__(self, kernel: Kernel, plan: Plan, instructions: Callable[[SumBlock], BlockKernel], target: Target, tuning: Tuning) -> None:
        contraction, layout, block = plan.contraction, plan.layout, plan.block
        self.kernel, self.plan, self.c, self.layout, self.make = kernel, plan, contraction, layout, instructions
        # With a number of rows that only a call knows, the call compares.
        self.grain = tuning.number("grain", GRAIN, lambda: grains(GRAIN, plan.work if isinstance(plan.work, Dim) else int(plan.cycles)))
        self.is_parallel = isinstance(plan.work, Dim) or plan.cycles >= self.grain
        self.target, self.lanes = target, target.lanes(32)
        self.rows = layout.row_loops(contraction)
        self.blocks = ceil_div(contraction.column_extent, block.width) * block.column_tiles
        self.row = self.rows[-1].var if self.rows else None
        self.row_extent: Size = self.rows[-1].extent if self.rows else 1
        self.bytes = contraction.b.node.element.width // 8
        packed_bytes = guess(prod(packed_shape(contraction, layout, self.blocks))) * self.bytes
        self.streams = is_param(kernel, contraction.b.node) and packed_bytes > target.l2_bytes
        reached = prod(row.extent for row in self.rows) * layout.depth
        whole = layout.copied if layout.copy is not None else prod(contraction.a.node.shape)
        # Of A and of B, for a point of the batch.
        self.operand_bytes = (
            min(guess(reached), guess(whole)) * self.bytes,
            packed_bytes // guess(contraction.batches),
        )
        self.tile = Var(0, 0, name="tile")
        self.column_block = Var(0, 0, name="columns")
        self.is_staged = False
        self.is_apart = False
        self._use(block)

    def _use(self, block: SumBlock) -> None:
        """From now on the nest is one of these blocks."""
        self.block, self.instructions = block, self.make(block)
        self.tiles: Size = minimum(self.row_extent, 1) if self.is_staged else ceil_div(self.row_extent, block.rows)
        # Tiles of a block are neighbours along the innermost rows, or else, where those are few, along the rows around.
        self.along_rows = self.tiles % block.row_tiles == 0 or len(self.rows) < 2 or not isinstance(self.tiles, int)
        # What is read once is asked for before; what a call may read once, too.
        row_blocks = ceil_div(self.tiles * prod(row.extent for row in self.rows[:-1]), block.row_tiles)
        self.prefetches = self.streams and (isinstance(row_blocks, Dim) or row_blocks == 1)

    def emit(self) -> Scheduled:
        """The kernel in tir, at the ambient insertion point."""
        c, layout = self.c, self.layout
        packed = is_param(self.kernel, c.b.node)
        packings = {c.b.node.position: groups_packing(c, layout, self.blocks)} if packed else {}
        # Elements that the kernel copies of A, then of B.
        sizes = layout.copied, 0 if packed else prod(packed_shape(c, layout, self.blocks))
        starts = 0, align(sizes[0] * self.bytes)
        staged_at = starts[1] + align(sizes[1] * self.bytes)
        self.cycles = self._cycles(sum(sizes))
        stage = self._staged()
        workspace_bytes = staged_at + stage * self.bytes if stage else starts[1] + sizes[1] * self.bytes
        few = self._few_rows()
        if few is not None:
            workspace_bytes = maximum(workspace_bytes, few.workspace_bytes)

        def pairs(body: KernelFunction) -> None:
            self.evaluator, self.output = body.evaluator, body.outputs[0]
            self.a, self.b = (
                view(body.workspace, start, size, operand.node.element)
                if body.workspace is not None and size != 0
                else self.evaluator.memory(operand.node)
                for operand, size, start in zip((c.a, c.b), sizes, starts, strict=True)
            )
            if sizes[0] != 0:
                self._copy_rows()
            if sizes[1] != 0:
                ColumnsCopy(c, layout, self.blocks, self.evaluator, self.b).emit(self.is_parallel, self.cycles, self.grain)
            if isinstance(self.row_extent, int):
                self._nest()
            else:
                assert body.workspace is not None or not stage
                buffer = view(body.workspace, staged_at, stage, c.a.node.element) if stage else None
                self._nest_of_call(self.block, self.plan.instructions.lower(self.block), buffer)

        with kernel_function(self.kernel, packings, workspace_bytes) as body:
            if few is None:
                pairs(body)
            else:
                height = emit.index_constant(prod(row.extent for row in self.rows))
                is_few = emit.compare("sle", height, emit.index_constant(FEW_ROWS))
                nest.when(is_few, body.evaluator, lambda: few.emit_in(body), lambda: pairs(body))
        return Scheduled(body.function, packings, workspace_bytes, self.instructions.uses_tiles)

    # ---- outer loops

    def _copy_rows(self) -> None:
        """Copies A, unless a call finds it to be in memory as it would be in the copy: its reduction is whole steps."""
        layout, source = self.layout, self.evaluator.memory(self.c.a.node)

        def copy() -> None:
            RowsCopy(self.c, layout, self.evaluator, self.a).emit(self.is_parallel, self.cycles, self.grain)

        if not layout.only_completes(self.c) or source.type != self.a.type:
            copy()
            return
        left = emit.arith("remui", emit.index_constant(layout.size), emit.index_constant(layout.step))
        is_whole = emit.compare("eq", left, emit.index_constant(0))
        nest.when(is_whole, self.evaluator, lambda: None, copy)
        self.a = emit.select(is_whole, source, self.a)

    def _few_rows(self) -> ContractionNest | None:
        """Loops on f32 vectors for the calls of few rows, where these read in place what the kernel would have to copy in pairs."""
        if isinstance(self.row_extent, int) or is_param(self.kernel, self.c.b.node) or proves(lambda: self.row_extent > FEW_ROWS):
            return None
        if not has_contiguous_columns(self.c):
            return None
        found = contraction_nests(self.kernel, self.target, Tuning())
        return found[-1] if found and not found[-1].packings() else None

    def _staged(self) -> int:
        """Elements of a copy of few rows for tiles that read rows behind the last; 0 where there is none."""
        staged = () if isinstance(self.row_extent, int) else self.plan.instructions.lower(self.block).staged
        if not staged or self.layout.copy is not None or len(self.rows) > 1 or self.c.batch:
            return 0
        reach = self._reach()
        return staged[0].rows * reach if isinstance(reach, int) else 0

    def _reach(self) -> Size:
        """Elements of A from the first to the last that a row reads."""
        offset = self.layout.offset
        reach: Size = 1
        for v in self.c.reduction:
            reach = reach + maximum(offset.coefficient(v), -offset.coefficient(v)) * v.high
        return reach

    def _stage(self, buffer: ir.Value) -> None:
        """Copies all rows, which are few, to a buffer, from which they are read from now on."""
        reach, offset = self._reach(), self.layout.offset
        assert self.row is not None and isinstance(reach, int)
        with nest.loop(0, self.row_extent, self.evaluator, name="row") as row:
            source, target = offset.at({self.row: row}), row * reach
            whole = reach // LANES
            with nest.loop(0, whole, self.evaluator) as number:
                at = number * LANES
                vectors.store(vectors.load(self.a, source + at, LANES), buffer, target + at)
            for start, lanes in vectors.pieces(reach - whole * LANES, LANES):
                at = Index(whole * LANES + start)
                vectors.store(vectors.load(self.a, source + at, lanes), buffer, target + at)
        own = Index(0, {v: k for v, k in offset.terms.items() if v in self.c.reduction}) + Index(0, {self.row: reach})
        self.a, self.layout, self.is_staged = buffer, replace(self.layout, offset=own), True

    def _nest_of_call(self, block: SumBlock, lower: Lower, stage: ir.Value | None) -> None:
        """The nest of the block that suits the rows of a call. Each has all of the loops: a function of its own in the end, as these are
        parallel and the shapes of tiles are those of a function. One block alone is in a parallel loop of min(rows, 1) iterations."""
        rows, most = emit.index_constant(self.row_extent), len(lower.choice) - 1
        self.is_apart = self.instructions.uses_tiles

        def nest_of(block: SumBlock) -> None:
            self._use(block)
            self._nest()

        blocks, choice = (lower.staged, lower.staged_choice) if stage is not None else (lower.blocks, lower.choice)

        def few() -> None:
            if stage is not None:
                self._stage(stage)
            # Three bits for each number of rows.
            bits = sum(choice << 3 * at for at, choice in enumerate(choice))
            shift = emit.arith("muli", rows, emit.index_constant(3))
            number = emit.arith("andi", emit.arith("shrui", emit.index_constant(bits), shift), emit.index_constant(7))
            one_of(number, list(enumerate(blocks)))

        def one_of(number: ir.Value, blocks: Sequence[tuple[int, SumBlock]]) -> None:
            (at, first), *others = blocks
            if not others:
                nest_of(first)
                return
            is_first = emit.compare("eq", number, emit.index_constant(at))
            nest.when(is_first, self.evaluator, lambda: nest_of(first), lambda: one_of(number, others))

        many = emit.compare("sgt", rows, emit.index_constant(most))
        nest.when(many, self.evaluator, lambda: nest_of(block), few)

    def _cycles(self, copied: Size) -> Size:
        """About how long the kernel takes on one core. A block takes its time however many of its rows are there, and all loops decide
        alike whether threads are worth it: each reads what it has copied itself."""
        block = self.block
        one = self.layout.steps * ceil(self.plan.instructions.cycles(block)) + ceil(block.size / STORED)
        batch, outer, inner, _ = self._loops()
        return prod(extent for _, extent in (*batch, *outer, *inner)) * one + copied // COPIED

    def _loops(self) -> tuple[Loops, Loops, Loops, int]:
        """Loops over the batch; over the larger operand, outside, so that it is read once; over the smaller operand; and its bytes."""
        block = self.block
        columns = [(self.column_block, self.blocks // block.column_tiles)]
        outer = [(row.var, row.extent) for row in self.rows[:-1]]
        tiles = self.tiles
        if self.along_rows:
            tiles = ceil_div(tiles, block.row_tiles)
        else:
            outer[-1] = (outer[-1][0], ceil_div(outer[-1][1], block.row_tiles))
        rows = [*outer, (self.tile, tiles)]
        height = prod(row.extent for row in self.rows)
        batch = [(v, v.extent) for v in self.c.batch]
        a_bytes, b_bytes = self.operand_bytes
        if guess(self.c.column_extent) >= guess(height):
            return batch, columns, rows, a_bytes
        return batch, rows, columns, b_bytes

    def _nest(self) -> None:
        """The loops around blocks. The inner loops read their operand in every round of the outer loops: tiles wait for an operand that is
        beyond the second-level cache, so the outer loops take a part of it at a time."""
        batch, outer, inner, bytes_ = self._loops()
        at = next((i for i, (_, extent) in enumerate(inner) if extent != 1), 0)
        var, extent = inner[at]
        each = self._part(extent, bytes_) if any(n != 1 for _, n in outer) else None
        part = Var(0, 0, name="part")
        if each is not None:
            outer, inner = [(part, ceil_div(extent, each)), *outer], [*inner[:at], (var, each), *inner[at + 1 :]]
        loops = [*batch, *outer, *inner]
        extents = [extent for _, extent in loops]
        fixed = {m: Index() for row in self.rows for m in row.members}

        def body(indices: list[Index]) -> None:
            point = {**fixed, **{v: index for (v, _), index in zip(loops, indices, strict=True)}}
            if each is None:
                self._block(point)
                return
            index = point.pop(part) * each + point[var]
            point[var] = Index.of(Var.below(extent, emit.materialize(index), name=var.name))
            with nest.if_inside([(index, extent, each)], self.evaluator):
                self._block(point)

        # Where a call says how many rows there are, they may all be in one block: then columns are what threads share.
        least = [max(1, bounds(extent)[0]) for extent in extents]
        parallel_loops = nest.leading(least, TASKS) if self.is_parallel else 0
        if not self.is_apart or any(extent != 1 for extent in extents[:parallel_loops]):
            with nest.box(extents, self.evaluator, parallel_loops, self._allocate, self.cycles, self.grain) as indices:
                body(indices)
            return
        once = emit.arith("minsi", emit.index_constant(self.row_extent), emit.index_constant(1))
        with (
            emit.parallel_loop([Var(0, 0)], self.cycles, self.grain, [once]),
            nest.box(extents, self.evaluator, begin=self._allocate) as indices,
        ):
            body(indices)

    def _part(self, extent: Size, bytes_: int) -> Size | None:
        """Iterations of a part of a loop that reads so many bytes of an operand; None where the loop is not divided."""
        # Vectors compute for longer than they wait; blocks of lower tiles are for few rows.
        if not self.instructions.uses_tiles or not (isinstance(extent, int) or self.block == self.plan.block):
            return None
        fits, most = (max(1, int(self.target.l2_bytes * share) * guess(extent) // max(1, bytes_)) for share in (FITS, PART))
        return None if proves(lambda: extent <= fits) else ceil_div(extent, ceil_div(extent, most))

    def _allocate(self) -> None:
        self.scratch = local_buffer(self.block.size, self.c.node.element)

    # ---- a block of sums

    def _tile_point(self, point: Point, number: Index) -> tuple[Point, Index]:
        """Where a row tile of a block begins, and how many of its rows belong to the tile before it."""
        size = self.block.rows
        if self.row is None:
            return point, Index()
        if self.is_staged:
            return {**point, self.row: Index()}, Index()
        if self.along_rows:
            wanted = (point[self.tile] * self.block.row_tiles + number) * size
            start = emit.at_most(wanted, self.row_extent - size)
            return {**point, self.row: start}, wanted - start if start is not wanted else Index()
        around = self.rows[-2]
        wanted = point[around.var] * self.block.row_tiles + number
        outer = emit.at_most(wanted, around.extent - 1)
        first = point[self.tile] * size
        start = emit.at_most(first, self.row_extent - size)
        old = first - start if start is not first else Index()
        if outer is not wanted:
            old += (wanted - outer) * size
        return {**point, around.var: outer, self.row: start}, old

    def _block(self, point: Point) -> None:
        points = [self._tile_point(point, Index(i))[0] for i in range(self.block.row_tiles)]
        with self.evaluator.scope():
            sums = self._reduce(list(self.layout.outer), points, self.instructions.begin(self.b, self._heads(points[0])))
            self.instructions.end(sums, self.scratch)
        with nest.box([self.block.row_tiles], self.evaluator) as (number,):
            at, old = self._tile_point(point, number)
            self._columns(number, at, old)

    def _heads(self, point: Point) -> list[Index]:
        """Where B has what the sums of a block begin at; nowhere where they begin at 0."""
        if not self.layout.start:
            return []
        first, tiles = point[self.column_block] * self.block.column_tiles, range(self.block.column_tiles)
        return [head_offset(self.c, self.layout, self.blocks, point, first + j) for j in tiles]

    def _reduce(self, loops: list[Var], points: Sequence[Point], sums: Values) -> Values:
        """The reduction loops, which carry the sums."""
        if loops:
            var, *rest = loops
            inner = lambda at, sums: self._reduce(rest, [{**p, var: at} for p in points], sums)  # noqa: E731
            return nest.carried(var.extent, var.name, self.evaluator, sums, inner)
        step = self.layout.step
        count = self.layout.run // step
        return nest.carried(count, "k", self.evaluator, sums, lambda k, sums: self._step(points, k * step, sums), unrolled=count == 1)

    def _step(self, points: Sequence[Point], at: Index, sums: Values) -> Values:
        c, layout = self.c, self.layout
        rows = [layout.offset.at(p) + at for p in points]
        first = points[0][self.column_block] * self.block.column_tiles
        columns = [packed_offset(c, layout, self.blocks, points[0], first + j) + at * COLUMNS for j in range(self.block.column_tiles)]
        if self.prefetches:
            self._prefetch(columns)
        return self.instructions.step(self.a, rows, self._stride(), self.b, columns, sums)

    def _stride(self) -> Size:
        """Elements of A from a row of a tile to the next."""
        return self.layout.offset.coefficient(self.row) if self.row is not None else self.layout.step

    def _prefetch(self, columns: Sequence[Index]) -> None:
        """Asks the memory for a later step of each block of columns."""
        line, size = LINE // self.bytes, self.layout.step * COLUMNS
        for at in columns:
            start = emit.at_most(at + max(STREAM_BYTES // self.bytes, size), self.b.type.shape[0] - size)
            for element in range(0, size, line):
                prefetch(self.b, start + element, level=1)

    # ---- epilogue

    def _columns(self, tile: Index, point: Point, old: Index) -> None:
        """The epilogue of a row tile: full blocks of columns are told apart here from the last one, of which some columns are there; which
        ones, only a call may know."""
        at, width, extent = point[self.column_block], self.block.width, self.c.column_extent
        full = extent // width
        if isinstance(extent, int) and (extent % width == 0 or not full):
            with self.evaluator.scope():
                self._rows(tile, point, old, extent % width or width)
            return

        def whole() -> None:
            inside = Index.of(Var.below(full, emit.materialize(at), name="columns"))
            self._rows(tile, {**point, self.column_block: inside}, old, width)

        def some() -> None:
            if isinstance(extent, int):
                self._rows(tile, {**point, self.column_block: Index(full)}, old, extent % width)
            else:
                self._rows(tile, point, old, width, at * -width + extent)

        nest.when(emit.below(at, full), self.evaluator, whole, some)

    def _vectors(self, count: int) -> list[tuple[int, int]]:
        """(start, lanes) of vectors that cover `count` columns, none of which spans two blocks of the result."""
        # Of two vectors of sums the bytes are packed together.
        lanes = COLUMNS if self.output.type.element_type.width == 8 else self.lanes
        if len(self.c.columns) > 1:
            while self.c.columns[-1].extent % lanes:
                lanes //= 2
        return vectors.pieces(count, lanes)

    def _rows(self, tile: Index, point: Point, old: Index, count: int, left: Index | None = None) -> None:
        """The epilogue of `count` columns of a row tile, or of the first `left` of them, without its first `old` rows."""
        pieces, rows = self._vectors(count), self.block.rows
        row_stride = self.c.store_stride(self.row) if self.row is not None else 0
        transposed = self.c.store_stride(self.c.column) != 1 and row_stride == 1 and rows > 1

        def by_row() -> None:
            first = emit.materialize(old) if not old.is_constant else old.const
            with nest.loop(first, self.row_extent if self.is_staged else rows, self.evaluator, below=rows, name="r") as row:
                for start, lanes in pieces:
                    mask = None if left is None else emit.first_lanes(emit.materialize(left - start), lanes)
                    with self.evaluator.lanes(lanes, mask):
                        value, offset = self._element(tile, point, row, start)
                        self.evaluator.store(value, self.output, offset)

        def by_column() -> None:
            for start, lanes in pieces:
                with self.evaluator.lanes(lanes) as lane:
                    found = [self._element(tile, point, Index(r), start) for r in range(rows)]
                    if lanes == 1:
                        for value, offset in found:
                            self.evaluator.store(value, self.output, offset)
                        continue
                    first = found[0][1]
                    stride = first.coefficient(lane)
                    vectors.store_across([value for value, _ in found], self.output, first - Index(0, {lane: stride}), stride, lanes)

        if not transposed or self.is_staged:
            by_row()
        elif old.is_constant:
            by_column()
        else:
            nest.when(emit.below(old, 1), self.evaluator, by_column, by_row)

    def _element(self, tile: Index, point: Point, row: Index, start: int) -> tuple[ir.Value, Index]:
        """Value(s) of the result in a row of a tile at the lanes from column `start` on, and where they go."""
        c, evaluator = self.c, self.evaluator
        along = evaluator.lane_index + start
        at = {**point, **c.column_point(point[self.column_block] * self.block.width + along)}
        if self.row is not None:
            at[self.row] = at[self.row] + row
        indices = c.output_at(at)
        place = (tile * self.block.rows + row) * self.block.width + along
        found = evaluator.load_from(self.scratch, c.node.element, place)
        evaluator.remember(c.node, indices, evaluator.with_init(found, c.structured.inits[0], indices))
        return evaluator.at(c.root, c.root_point(indices)), linearize(indices, c.node.shape)
