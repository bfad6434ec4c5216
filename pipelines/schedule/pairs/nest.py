"""The loops around blocks of sums of a contraction by pairs: copies of run-time operands, tasks, the epilogue.

A block is a few row tiles by a few blocks of columns. Its sums are computed by the instruction set at hand (a `BlockKernel`) and left in a
small buffer of the thread, on which the epilogue is evaluated. All tiles have the same shape: the last ones begin early rather than end
late, and only rows that are new are stored.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Protocol

from relayc.dialects.mlir import func, ir
from relayc.pipelines.schedule import emit
from relayc.pipelines.schedule.evaluate import Evaluator
from relayc.pipelines.schedule.graph import Kernel, Node
from relayc.pipelines.schedule.index import Index, Var, linearize
from relayc.pipelines.schedule.pairs.copies import TASKS, ColumnsCopy, RowsCopy, leading, packed_offset
from relayc.pipelines.schedule.pairs.layout import COLUMNS, pack_pairs, packed_shape, packing_name
from relayc.pipelines.schedule.pairs.plan import Plan
from relayc.pipelines.schedule.products.microkernel import column_vectors, store_across
from relayc.pipelines.schedule.strategy import Packing, Scheduled, begin_function, flat, is_param
from relayc.pipelines.target import Target

Value = ir.Value
Point = dict[Var, Index]
Values = Sequence[Value]

GRAIN = 6000
"""Cycles below which a kernel stays on one thread."""
LINE = 64
"""Bytes of a cache line, which copies of operands are aligned to."""
STREAM_BYTES = 1024
"""How far ahead a block of columns is asked for where each is read once: all of a step at least."""


class BlockKernel(Protocol):
    """What an instruction set does: sums held in registers across the reduction loops."""

    uses_tiles: bool

    def begin(self) -> Values:
        """The sums before the first step."""

    def step(self, a: Value, rows: Sequence[Index], stride: int, b: Value, columns: Sequence[Index], sums: Values) -> Values:
        """The sums after one more instruction in depth; `rows` are where row tiles begin in `a` (rows apart by `stride`), `columns` where
        blocks of columns do in `b`."""

    def end(self, sums: Values, scratch: Value) -> None:
        """Stores the sums row by row."""


class PairsNest:
    """Emits one contraction kernel."""

    def __init__(self, kernel: Kernel, plan: Plan, instructions: BlockKernel, target: Target) -> None:
        contraction, layout, block = plan.contraction, plan.layout, plan.block
        self.kernel, self.c, self.layout, self.block, self.instructions = kernel, contraction, layout, block, instructions
        self.parallel = plan.cycles >= kernel.tuning.number("grain", GRAIN)
        self.lanes = target.lanes(32)
        self.rows = layout.row_groups(contraction)
        self.blocks = -(-contraction.column_extent // block.width) * block.column_tiles
        b = contraction.b.node
        self.packs_param = b.kind == "arg" and is_param(kernel, b.position)
        self.row = self.rows[-1][0][-1] if self.rows else None
        extent = self.rows[-1][1] if self.rows else 1
        self.row_extent = extent
        self.tiles = -(-extent // block.rows)
        # Tiles of a block are neighbours along the innermost rows, or else, where those are few, along the rows around.
        self.along_rows = self.tiles % block.row_tiles == 0 or len(self.rows) < 2
        # What is read once is asked for before.
        read_once = -(-self.tiles * prod(extent for _, extent in self.rows[:-1]) // block.row_tiles) == 1
        packed_bytes = prod(packed_shape(contraction, layout, self.blocks)) * 2
        self.prefetches = self.packs_param and read_once and packed_bytes > target.l2_bytes
        self.tile = Var(0, 0, name="tile")
        self.column_block = Var(0, 0, name="columns")

    def emit(self) -> Scheduled:
        """The kernel in tir, at the ambient insertion point."""
        c, layout = self.c, self.layout
        packings = {}
        sizes = [layout.copied, 0]
        if self.packs_param:
            shape = packed_shape(c, layout, self.blocks)
            name = packing_name(c, layout, self.blocks)
            packings[c.b.node.position] = Packing(name, shape, lambda array, out: pack_pairs(c, layout, array, out))
        else:
            sizes[1] = prod(packed_shape(c, layout, self.blocks))
        starts = [0, -(-sizes[0] * 2 // LINE) * LINE]
        workspace = starts[1] + sizes[1] * 2
        function, arguments = begin_function(self.kernel, packings, workspace)
        with ir.InsertionPoint(function.entry_block):
            count = len(self.kernel.args)
            self.evaluator = Evaluator({node: flat(buffer) for node, buffer in zip(self.kernel.args, arguments[:count], strict=True)})
            self.output = flat(arguments[count])
            self.a, self.b = (
                self._buffer(operand.node) if size == 0 else _view(arguments[-1], start, size)
                for operand, size, start in zip((c.a, c.b), sizes, starts, strict=True)
            )
            if sizes[0]:
                RowsCopy(c, layout, self.evaluator, self.a).emit(self.parallel)
            if sizes[1]:
                ColumnsCopy(c, layout, self.blocks, self.evaluator, self.b).emit(self.parallel)
            self._nest()
            func.ReturnOp([])
        return Scheduled(function, packings, workspace, self.instructions.uses_tiles)

    def _buffer(self, node: Node) -> Value:
        return self.evaluator.buffers[node if node in self.evaluator.buffers else node.inputs[0]]

    # ---- outer loops

    def _nest(self) -> None:
        """Loops over batch, blocks of columns and of rows: those that walk the larger operand outside, so that it is read once."""
        block = self.block
        columns = [(self.column_block, self.blocks // block.column_tiles)]
        outer = [(members[-1], extent) for members, extent in self.rows[:-1]]
        tiles = self.tiles
        if self.along_rows:
            tiles = -(-tiles // block.row_tiles)
        else:
            outer[-1] = (outer[-1][0], -(-outer[-1][1] // block.row_tiles))
        rows = [*outer, (self.tile, tiles)]
        height = self.row_extent * prod(extent for _, extent in self.rows[:-1])
        loops = [(v, v.high + 1) for v in self.c.batch]
        loops += [*columns, *rows] if self.c.column_extent >= height else [*rows, *columns]
        count = leading([extent for _, extent in loops], TASKS) if self.parallel else 0
        fixed = {m: Index() for members, _ in self.rows for m in members} | {v: Index() for v, _ in loops}
        parallel = [(v, e) for v, e in loops[:count] if e > 1]
        serial = [(v, e) for v, e in loops[count:] if e > 1]

        def inside(point: Point) -> None:
            self.scratch = emit.local_buffer(self.block.size, ir.F32Type.get())
            self._serial(serial, point, self._block)

        if not parallel:
            inside(fixed)
            return
        variables = [Var(0, extent - 1, name="p") for _, extent in parallel]

        def body() -> None:
            with self.evaluator.scope():
                inside(fixed | {v: Index.of(p) for (v, _), p in zip(parallel, variables, strict=True)})

        emit.parallel_loop([extent for _, extent in parallel], variables, body)

    def _serial(self, loops: Sequence[tuple[Var, int]], point: Point, body: Callable[[Point], None]) -> None:
        if not loops:
            body(point)
            return
        (key, extent), *rest = loops
        var = Var(0, extent - 1, name="s")
        with emit.for_loop(0, extent, 1, var), self.evaluator.scope():
            self._serial(rest, {**point, key: Index.of(var)}, body)

    # ---- a block of sums

    def _tile_point(self, point: Point, number: Index) -> tuple[Point, Index]:
        """Where a row tile of a block begins, and how many of its rows belong to the tile before it."""
        size = self.block.rows
        if self.row is None:
            return point, Index()
        if self.along_rows:
            wanted = (point[self.tile] * self.block.row_tiles + number) * size
            start = emit.at_most(wanted, self.row_extent - size)
            return {**point, self.row: start}, wanted - start if start is not wanted else Index()
        members, extent = self.rows[-2]
        wanted = point[members[-1]] * self.block.row_tiles + number
        outer = emit.at_most(wanted, extent - 1)
        first = point[self.tile] * size
        start = emit.at_most(first, self.row_extent - size)
        old = first - start if start is not first else Index()
        if outer is not wanted:
            old += (wanted - outer) * size
        return {**point, members[-1]: outer, self.row: start}, old

    def _block(self, point: Point) -> None:
        points = [self._tile_point(point, Index(i))[0] for i in range(self.block.row_tiles)]
        with self.evaluator.scope():
            sums = self._reduce(list(self.layout.outer), points, self.instructions.begin())
            self.instructions.end(sums, self.scratch)
        number = Var(0, self.block.row_tiles - 1, name="i")
        with emit.for_loop(0, self.block.row_tiles, 1, number), self.evaluator.scope():
            at, old = self._tile_point(point, Index.of(number))
            self._columns(Index.of(number), at, old)

    def _reduce(self, loops: list[Var], points: Sequence[Point], sums: Values) -> Values:
        """The reduction loops, which carry the sums."""
        if loops:
            var, *rest = loops
            loop = Var(0, var.high, name=var.name)
            with emit.for_loop(0, var.high + 1, 1, loop, sums) as op, self.evaluator.scope():
                inner = [{**p, var: Index.of(loop)} for p in points]
                emit.yield_values(self._reduce(rest, inner, list(op.inner_iter_args)))
            return list(op.results)
        count = self.layout.run // self.layout.step
        if count == 1:
            return self._step(points, Index(), sums)
        loop = Var(0, count - 1, name="k")
        with emit.for_loop(0, count, 1, loop, sums) as op, self.evaluator.scope():
            emit.yield_values(self._step(points, Index.of(loop) * self.layout.step, list(op.inner_iter_args)))
        return list(op.results)

    def _step(self, points: Sequence[Point], at: Index, sums: Values) -> Values:
        c, layout = self.c, self.layout
        rows = [layout.offset.at(p) + at for p in points]
        first = points[0][self.column_block] * self.block.column_tiles
        columns = [packed_offset(c, layout, self.blocks, points[0], first + j) + at * COLUMNS for j in range(self.block.column_tiles)]
        if self.prefetches:
            self._prefetch(columns)
        stride = layout.offset.coefficient(self.row) if self.row is not None else layout.step
        return self.instructions.step(self.a, rows, stride, self.b, columns, sums)

    def _prefetch(self, columns: Sequence[Index]) -> None:
        """Asks the memory for a later step of each block of columns."""
        line, size = LINE // 2, self.layout.step * COLUMNS
        for at in columns:
            start = emit.at_most(at + max(STREAM_BYTES // 2, size), self.b.type.shape[0] - size)
            for element in range(0, size, line):
                emit.prefetch(self.b, start + element, level=1)

    # ---- epilogue

    def _columns(self, tile: Index, point: Point, old: Index) -> None:
        """The epilogue of a row tile: full blocks of columns and the last one are told apart here."""
        width = self.block.width
        full, left = divmod(self.c.column_extent, width)

        def code(block: Index, count: int) -> None:
            with self.evaluator.scope():
                self._rows(tile, {**point, self.column_block: block}, old, count)

        at = point[self.column_block]
        if not left or not full:
            code(at, left or width)
        else:
            whole = Index.of(Var(0, full - 1, emit.materialize(at), name="columns"))
            emit.when(emit.below(at, full), lambda: code(whole, width), lambda: code(Index(full), left))

    def _vectors(self, count: int) -> list[tuple[int, int]]:
        """(start, lanes) of vectors that cover `count` columns, none of which spans two blocks of the result."""
        lanes = self.lanes
        if len(self.c.columns) > 1:
            while self.c.columns[-1][1] % lanes:
                lanes //= 2
        return column_vectors(count, lanes)

    def _rows(self, tile: Index, point: Point, old: Index, count: int) -> None:
        """The epilogue of `count` columns of a row tile, without its first `old` rows."""
        vectors, rows = self._vectors(count), self.block.rows
        row_stride = self.c.store_stride(self.row) if self.row is not None else 0
        transposed = self.c.store_stride(self.c.column) != 1 and row_stride == 1 and rows > 1

        def by_row() -> None:
            row = Var(0, rows - 1, name="r")
            first = emit.materialize(old) if not old.is_constant else old.const
            with emit.for_loop(first, rows, 1, row), self.evaluator.scope():
                for start, lanes in vectors:
                    with self.evaluator.lanes(lanes):
                        value, offset = self._element(tile, point, Index.of(row), start)
                        self.evaluator.store(value, self.output, offset)

        def by_column() -> None:
            for start, lanes in vectors:
                with self.evaluator.lanes(lanes) as lane:
                    found = [self._element(tile, point, Index(r), start) for r in range(rows)]
                    if lanes == 1:
                        for value, offset in found:
                            self.evaluator.store(value, self.output, offset)
                        continue
                    base = found[0][1] - Index(0, {lane: found[0][1].coefficient(lane)})
                    store_across([value for value, _ in found], self.output, base, found[0][1].coefficient(lane), lanes)

        if not transposed:
            by_row()
        elif old.is_constant:
            by_column()
        else:
            emit.when(emit.below(old, 1), lambda: self._scoped(by_column), lambda: self._scoped(by_row))

    def _scoped(self, code: Callable[[], None]) -> None:
        with self.evaluator.scope():
            code()

    def _element(self, tile: Index, point: Point, row: Index, start: int) -> tuple[Value, Index]:
        """Value(s) of the result in a row of a tile at the lanes from column `start` on, and where they go."""
        c, evaluator = self.c, self.evaluator
        along = Index.of(evaluator.lane) if evaluator.width > 1 else Index()
        at = {**point, **c.column_point(point[self.column_block] * self.block.width + start + along)}
        if self.row is not None:
            at[self.row] = at[self.row] + row
        dims = c.structured.output_dims(c.node.position)
        indices = [Index() if d is None else at.get(c.variables[d], Index()) for d in dims]
        place = (tile * self.block.rows + row) * self.block.width + start + along
        evaluator.remember(c.node, indices, self._with_initial(evaluator.load_from(self.scratch, c.node.element, place), indices))
        return evaluator.at(c.root, c.root_point(indices)), linearize(indices, c.node.shape)

    def _with_initial(self, value: Value, indices: Sequence[Index]) -> Value:
        """The sums began at 0: what they should have begun at is added now."""
        init = self.c.structured.inits[0]
        if init.kind == "splat" and init.op.attributes["value"].value == 0:
            return value
        first = self.evaluator.at(init, indices if init.shape else [])
        first = emit.broadcast(first, self.evaluator.width)
        return emit.create("arith.addf", [value.type], [value, first])


def _view(workspace: Value, start: int, size: int) -> Value:
    return emit.create("memref.view", [ir.MemRefType.get([size], ir.BF16Type.get())], [workspace, emit.index_constant(start)])
