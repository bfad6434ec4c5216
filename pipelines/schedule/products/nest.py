"""What all loop nests around a contraction's tiles share: the function, where B is read from, loops over tasks and panels."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from math import prod

from relayc.dialects.mlir import func, ir
from relayc.pipelines.memory import align
from relayc.pipelines.schedule import emit
from relayc.pipelines.schedule.evaluate import Evaluator
from relayc.pipelines.schedule.graph import Kernel
from relayc.pipelines.schedule.index import Index, Var
from relayc.pipelines.schedule.loops import LoopParameters, fill
from relayc.pipelines.schedule.products.contraction import Contraction, pack
from relayc.pipelines.schedule.products.microkernel import COLUMN, Columns, Microkernel, Point, column_vectors
from relayc.pipelines.schedule.products.tile import CACHE_LINE, PARALLEL_GRAIN, Tile
from relayc.pipelines.schedule.strategy import Packing, Scheduled, begin_function, flat, is_param

Value = ir.Value
Loops = Sequence[tuple[list[Var], int]]  # groups (members, extent); the last member stands for the group


def takes_packed(kernel: Kernel, contraction: Contraction) -> bool:
    """Whether B is a parameter, which comes packed in panels."""
    return contraction.b.node.kind == "arg" and is_param(kernel, contraction.b.node.position)


class Nest:
    """Emits the kernel of one contraction; `body` of the subclasses emits the loops."""

    def __init__(self, kernel: Kernel, contraction: Contraction, tile: Tile) -> None:
        self.kernel, self.c, self.tile = kernel, contraction, tile
        self.panels = -(-contraction.column_extent // tile.width)
        self.panel_size = contraction.depth * tile.width
        item = contraction.b.node.element.width // 8
        self.packed_bytes = prod(v.high + 1 for v in contraction.batch) * self.panels * self.panel_size * item
        self.line = CACHE_LINE // item
        self.packs_param = takes_packed(kernel, contraction)
        self.packings: dict[int, Packing] = {}
        a = contraction.a.node
        self.padded_bytes = align(a.size * a.element.width // 8) if a.kind == "pad" else 0
        self.workspace_bytes = self.padded_bytes
        if self.packs_param:
            self.packings[contraction.b.node.position] = self._panels_packing()
        self.is_serial = prod(v.high + 1 for v in contraction.variables) < kernel.tuning.number("grain", PARALLEL_GRAIN)

    def emit(self) -> Scheduled:
        """The kernel in tir, at the ambient insertion point."""
        function, arguments = begin_function(self.kernel, self.packings, self.workspace_bytes)
        with ir.InsertionPoint(function.entry_block):
            count = len(self.kernel.args)
            self.evaluator = Evaluator({node: flat(buffer) for node, buffer in zip(self.kernel.args, arguments[:count], strict=True)})
            self.micro = Microkernel(self.c, self.tile, self.evaluator, flat(arguments[count]))
            if self.packs_param:
                self.packed = flat(arguments[self.c.b.node.position])
            if self.padded_bytes:
                self.pad(arguments[-1])
            self.body(arguments)
            func.ReturnOp([])
        return Scheduled(function, self.packings, self.workspace_bytes)

    def pad(self, workspace: Value) -> None:
        """Writes a padded A to the beginning of the workspace, from where tiles read it."""
        node = self.c.a.node
        type_ = ir.MemRefType.get([node.size], node.element)
        buffer = emit.create("memref.view", [type_], [workspace, emit.index_constant(0)])
        fill(node, self.evaluator, LoopParameters(vector_bytes=self.tile.lanes * self.c.node.element.width // 8), buffer)
        self.evaluator.bind(node, buffer)

    def body(self, arguments: Sequence[Value]) -> None:
        """Emits the loops; `arguments` are those of the function."""
        raise NotImplementedError

    def _panels_packing(self) -> Packing:
        c, width = self.c, self.tile.width
        shape = (*(v.high + 1 for v in c.batch), self.panels, *(v.high + 1 for v in c.reduction), width)
        steps = ",".join(f"{c.b.offset.coefficient(v)}*{v.high + 1}" for v in (*c.batch, c.column, *c.reduction))
        return Packing(f"columns{width}:{c.b.offset.const}:{steps}", shape, lambda array, out: pack(c, array, out))

    def panel_start(self, panel: Index, point: Point) -> Index:
        """First element of a panel where all of them are packed one after the other, batch by batch."""
        offset = Index()
        for v in self.c.batch:
            offset = offset * (v.high + 1) + point.get(v, Index())
        return (offset * self.panels + panel) * self.panel_size

    def tasks(self, loops: Loops, body: Callable[[Point], None], begin: Callable[[], None] = lambda: None) -> None:
        """Independent iterations, in one parallel loop where the work is worth it; `begin` is emitted first in each thread's code."""
        live = [(members, extent) for members, extent in loops if extent > 1]
        point = {m: Index() for members, _ in loops for m in members}
        if self.is_serial or not live:
            begin()
            self.serial(live, point, body)
            return
        variables = [Var(0, extent - 1, name="p") for _, extent in live]

        def inside() -> None:
            with self.evaluator.scope():
                begin()
                body({**point, **{members[-1]: Index.of(v) for (members, _), v in zip(live, variables, strict=True)}})

        emit.parallel_loop([extent for _, extent in live], variables, inside)

    def serial(self, loops: Loops, point: Point, body: Callable[[Point], None]) -> None:
        """Nested loops, outermost first."""
        if not loops:
            body(point)
            return
        (members, extent), *rest = loops
        var = Var(0, extent - 1, name="s")
        with emit.for_loop(0, extent, 1, var), self.evaluator.scope():
            self.serial(rest, {**point, members[-1]: Index.of(var)}, body)

    def panel_code(self, panel: Index, point: Point, code: Callable[[Index, Columns, Point], None]) -> None:
        """Emits `code(panel, its vectors, point)`: full panels and the narrower last one are told apart here."""
        width, lanes = self.tile.width, self.tile.lanes
        full, left = divmod(self.c.column_extent, width)

        def emit_for(at: Index, columns: int) -> None:
            with self.evaluator.scope():
                code(at, column_vectors(columns, lanes), {**point, COLUMN: at * width})

        if not left:
            emit_for(panel, width)
        elif not full:
            emit_for(Index(), left)
        else:
            at = emit.materialize(panel)
            whole = Index.of(Var(0, full - 1, at))
            emit.when(emit.below(whole, full), lambda: emit_for(whole, width), lambda: emit_for(Index(full), left))

    def pack_columns(self, columns: Columns, point: Point, buffer: Value, at: Index) -> None:
        """Copies one step of a panel of B to `at` in a buffer; `point` says which."""
        c = self.c
        for start, lanes in columns:
            with self.evaluator.lanes(lanes) as lane:
                along = Index(start) + (Index.of(lane) if lanes > 1 else Index())
                value = self.micro.element(c.b, {**point, **c.column_point(point[COLUMN] + along)})
                self.evaluator.store(value, buffer, at + along)

    def each_step(self, point: Point, code: Callable[[Point], None], steps: dict[Var, tuple[Value, Value]] | None = None) -> None:
        """Loops over the steps of the reduction; `steps` bounds those of some loops."""
        with ExitStack() as nest:
            for loop in self.c.reduction:
                var = Var(0, loop.high, name=loop.name)
                low, high = (steps or {}).get(loop, (0, loop.high + 1))
                nest.enter_context(emit.for_loop(low, high, 1, var))
                nest.enter_context(self.evaluator.scope())
                point = {**point, loop: Index.of(var)}
            code(point)
