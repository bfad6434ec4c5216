"""The common part of all loop nests around a contraction's tiles: the function, the source of B, loops over tasks and panels."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import reduce

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.contraction.microkernel import COLUMN, LEFT, Columns, Point, Steps, along_columns, element
from relayc.pipelines.targets.cpu.strategies.contraction.panels import PanelCopy, contiguous_steps
from relayc.pipelines.targets.cpu.strategies.contraction.plan import OperandSource, Plan, element_bytes, has_contiguous_columns
from relayc.pipelines.targets.cpu.strategies.contraction.tile import column_vectors
from relayc.pipelines.targets.cpu.strategies.loops.plan import LoopParameters
from relayc.pipelines.targets.cpu.strategies.loops.strategy import fill
from relayc.pipelines.te.read.access import MergedLoop
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.pipelines.tir.strategy.scheduled import KernelFunction, Scheduled, kernel_function
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.buffers import LINE, flat, view
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, guess, maximum


def emit_first(nests: Sequence["ContractionNest"]) -> Scheduled:
    """A function that runs the first of several loop nests that are for the number of rows of a call; the last ones are for any number."""
    last = nests[-1]
    memory = reduce(maximum, (one.workspace_bytes for one in nests))
    packings = last.packings()
    with kernel_function(last.plan.kernel, packings, memory) as body:
        _emit_in(nests, body)
    return Scheduled(body.function, packings, memory, turns=last.plan.turns)


def _emit_in(nests: Sequence["ContractionNest"], body: KernelFunction) -> None:
    first, *rest = nests
    if first.most_rows is None:
        first.emit_in(body)
        return
    beyond_one = emit.arith("subi", emit.index_constant(first.plan.rows), emit.index_constant(1))
    is_few = emit.compare("ult", beyond_one, emit.index_constant(first.most_rows))
    nest.when(is_few, body.evaluator, lambda: first.emit_in(body), lambda: _emit_in(rest, body))


class ContractionNest(ABC):
    """Emits the kernel of one contraction; `_loops` of the subclasses emits the loops.

    Attributes:
      copied_bytes: memory for what the kernel copies, after a padded A.
      most_rows: what the loops are for where only a call knows the number of rows: at least one and at most so many; None for any number.
    """

    evaluator: Evaluator

    def __init__(self, plan: Plan, copied_bytes: Size, most_rows: int | None = None) -> None:
        self.most_rows = most_rows
        self.plan, self.c, self.tile, self.copied_bytes = plan, plan.contraction, plan.tile, copied_bytes
        self.line = LINE // element_bytes(self.c.b.node)

    @property
    def workspace_bytes(self) -> Size:
        """Memory that the kernel works with."""
        return self.plan.padded_bytes + self.copied_bytes

    def emit_in(self, body: KernelFunction) -> None:
        """Emits the code in a function that has the arguments and memory it requires."""
        self.evaluator = body.evaluator
        packed = flat(body.arguments[self.c.b.node.position]) if self.plan.b is OperandSource.PARAMETER else None
        if body.workspace is not None and self.plan.pads:
            self._pad(body.workspace)
        self._loops(body, packed)

    @abstractmethod
    def _loops(self, body: KernelFunction, packed: ir.Value | None) -> None:
        """Emits the loops; `packed` is B packed in panels, if it is a parameter."""

    def _pad(self, workspace: ir.Value) -> None:
        """Writes a padded A to the start of the workspace, from which tiles read it."""
        node = self.c.a.node
        buffer = view(workspace, 0, node.size, node.element)
        fill(node, self.evaluator, LoopParameters(vector_bytes=self.tile.lanes * element_bytes(self.c.node)), buffer)
        self.evaluator.bind(node, buffer)

    def _copies(self, body: KernelFunction, type_: ir.Type) -> ir.Value:
        """The memory for the copies that the kernel makes."""
        assert body.workspace is not None
        return view(body.workspace, self.plan.padded_bytes, self.copied_bytes * 8 // type_.width, type_)

    def packings(self) -> dict[int, Packing]:
        """Of the kernel's arguments, by position."""
        return {self.c.b.node.position: self._panels_packing()} if self.plan.b is OperandSource.PARAMETER else {}

    def _panels_packing(self) -> Packing:
        c = self.c
        loops = [(v, v.extent) for v in (*c.batch, c.column, *c.reduction)]
        loops[len(c.batch)] = (c.column, c.column_extent)
        shape = (*(v.extent for v in c.batch), self.plan.panels, *(v.extent for v in c.reduction), self.tile.width)
        return Packing.reading("columns", c.b.node.shape, c.b.indices, loops, shape, batch=len(c.batch))

    def _panel_start(self, panel: Index, point: Point) -> Index:
        """First element of a panel where all of them are packed one after the other, batch by batch."""
        return (self.c.batch_at(point) * self.plan.panels + panel) * self.plan.panel_size

    @contextmanager
    def _tasks(self, loops: Sequence[MergedLoop], begin: Callable[[], None] = lambda: None, work: Size | None = None) -> Iterator[Point]:
        """Independent iterations, in one parallel loop if the work (by default the kernel's work) justifies it, which yield their point;
        `begin` is emitted first in each thread's code."""
        live = [loop for loop in loops if loop.extent != 1]
        variables = [Var.below(loop.extent, name="p") for loop in live]
        point = {m: Index() for loop in loops for m in loop.members}
        point.update((loop.var, Index.of(v)) for loop, v in zip(live, variables, strict=True))
        work = self.plan.work if work is None else work
        with nest.tasks(variables, self.evaluator, work, self.plan.grain, begin, self.plan.is_parallel):
            yield point

    def _panel_code(self, panel: Index, point: Point, code: Callable[[Index, Columns, Point], None]) -> None:
        """Emits `code(panel, its vectors, point)`: full panels are told apart here from the narrower last one or, if the number of columns
        depends on the call, from panels of one vector."""
        full, lanes, width, extent = self.plan.whole_panels, self.tile.lanes, self.tile.width, self.c.column_extent

        def of_columns(at: Index, columns: int) -> None:
            found = column_vectors(columns, lanes, self.plan.masks_columns)
            left: Point = {LEFT: Index(columns)} if sum(lanes for _, lanes in found) != columns else {}
            with self.evaluator.scope():
                code(at, found, {**point, COLUMN: at * width, **left})

        def last() -> None:
            if isinstance(extent, int):
                of_columns(Index(full), extent % width)
                return
            number = Var.below(self.plan.panels - full, emit.materialize(panel - full))
            column = Index.of(number) * lanes + full * width
            code(panel, [(0, lanes)], {**point, COLUMN: column, LEFT: column * -1 + extent})

        if isinstance(extent, int) and extent % width == 0:
            of_columns(panel, width)
        elif isinstance(extent, int) and full == 0:
            last()
        else:
            whole = Index.of(Var.below(full, emit.materialize(panel)))
            nest.when(emit.below(panel, full), self.evaluator, lambda: of_columns(whole, width), last)

    def _pack_panel(self, columns: Columns, point: Point, buffer: ir.Value, start: Index, steps: Steps | None = None) -> None:
        """Copies the steps of a panel of B to a buffer in which step 0 is at `start`."""
        steps = steps or {}
        run = contiguous_steps(self.c, steps) if LEFT not in point else []

        def at(p: Point) -> Index:
            return start + self.c.step(p) * self.tile.width

        with self._each_step(point, steps, [v for v in self.c.reduction if v not in run]) as outer:
            one = lambda p: self._pack_columns(columns, {**outer, **p}, buffer, at({**outer, **p}))  # noqa: E731
            if not run:
                one({})
                return
            copy = PanelCopy(self.c, run, self.tile.lanes, columns, outer, self.evaluator, buffer)
            copy.copy(steps.get(run[-1], (0, run[-1].extent)), lambda p: at({**outer, **p}), one)

    def _pack_columns(self, columns: Columns, point: Point, buffer: ir.Value, at: Index) -> None:
        """Copies one step of a panel of B to `at` in a buffer; `point` says which. Where a vector may have fewer columns, 0 or other
        columns stand in its other lanes."""
        c, last = self.c, self.c.column_extent - 1
        for start, lanes in columns:
            if LEFT not in point or has_contiguous_columns(c):
                with along_columns(self.evaluator, point, start, lanes) as lane:
                    value = element(c.b, {**point, **c.column_point(point[COLUMN] + lane + start)}, self.evaluator)
            else:
                with self.evaluator.lanes(lanes) as var:
                    wanted = self.evaluator.index_value(point[COLUMN] + start + var)
                    found = emit.arith("minsi", wanted, emit.broadcast(emit.index_constant(last), lanes))
                    value = element(c.b, {**point, **c.column_point(self.evaluator.opaque(found, 0, last))}, self.evaluator)
            with self.evaluator.along(lanes) as lane:
                self.evaluator.store(value, buffer, at + lane + start)

    @contextmanager
    def _each_step(self, point: Point, steps: Steps, reduction: Sequence[Var] | None = None) -> Iterator[Point]:
        """Loops over the steps of the reduction, or of some of its loops, as they lie in B, so that the steps of a cache line follow each
        other, which yield their point; `steps` bounds those of some loops."""
        offset = self.c.b.offset
        with ExitStack() as loops:
            for loop in sorted(self.c.reduction if reduction is None else reduction, key=lambda v: -abs(guess(offset.coefficient(v)))):
                low, high = steps.get(loop, (0, loop.extent))
                step = loops.enter_context(nest.loop(low, high, self.evaluator, below=loop.extent, name=loop.name))
                point = {**point, loop: step}
            yield point
