"""The general schedule, by primitives: runs any kernel that can be expressed as blocks on threads.

A computation that is not a reduction is inlined where it is read. A result is computed in one launch with the reductions that only it
reads: softmax and normalisations along their rows. Elementwise computations, gathers and padding have a thread for each vector of 16 bytes,
or for each element. A reduction has a thread for each element, or, if its steps are contiguous in memory, a warp or a whole block of
threads, which reduce together.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import ir
from relayc.dialects.operations import element_bytes
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import linearize
from relayc.pipelines.targets.cuda.architectures import WARP
from relayc.pipelines.te.read.graph import Kernel, NotStructured
from relayc.pipelines.tir.analysis.reducers import find_reducer
from relayc.pipelines.tir.editing import moving
from relayc.pipelines.tir.schedule.references import LoopRV
from relayc.pipelines.tir.schedule.schedule import Schedule
from relayc.pipelines.tir.schedule.written_strategy import schedule_built_in
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, power_of_two, powers_of_two
from relayc.pipelines.tir.tree.indices import variables
from relayc.pipelines.tir.tree.members import Block, ScheduleError
from relayc.symbolic import Size, Undecided, guess

_MOST_WARP_STEPS = 1024
"""Steps of a reduction that a warp takes; of more a whole block does."""


@dataclass(frozen=True)
class Numbers:
    """The tunable numbers.

    Attributes:
      threads: of a block.
      vector_bytes: bytes that a thread loads and stores at once.
      warp_steps: number of steps of a reduction up to which a warp computes an element; longer reductions get a block of threads.
    """

    threads: int = 256
    vector_bytes: int = 16
    warp_steps: int = _MOST_WARP_STEPS


def schedule_general(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled:
    """Schedules any kernel that can be expressed as blocks.

    Raises:
      NotStructured: the kernel has an operation that blocks do not support (sorts, scans, tables of constants).
    """
    values: dict[str, Callable[[Numbers], list[int]]] = {
        "threads": lambda n: powers_of_two(WARP, 1024),
        "vector_bytes": lambda n: powers_of_two(1, target.vector_bytes),
        "warp_steps": lambda n: [32, 256, 1024, 4096],
    }
    if all(node.size == 0 for node in kernel.results):
        with kernel_function(kernel) as body:
            return Scheduled(body.function)
    numbers = tuning.replace(Numbers(), list(values), _possible, values)
    block = ir.InsertionPoint.current.block
    before = len(block.operations)
    try:
        return schedule_built_in(lambda s: _Writer(s, numbers).write(), kernel, target, tuning)
    except (NotStructured, Undecided):
        for op in list(block.operations)[before:]:  # operations emitted before the illegal one
            op.operation.erase()
        return schedule_built_in(lambda s: _Writer(s, numbers).write_each(), kernel, target, tuning)


def _possible(numbers: Numbers) -> Numbers:
    """Numbers as blocks of threads can have them: whole warps, and vectors of a power of two."""
    return Numbers(power_of_two(numbers.threads, WARP, 1024), power_of_two(numbers.vector_bytes, 1, 16), numbers.warp_steps)


def inline(s: Schedule) -> None:
    """Inlines every block that can be: those are left that are a reduction or a result, or give several tensors, or a part of one."""
    for name in s.nest.blocks():
        with suppress(ScheduleError):
            s.compute_inline(name)


def split_threads(s: Schedule, loops: Sequence[LoopRV], threads: int, lanes: int = 1) -> tuple[LoopRV, LoopRV]:
    """Makes some threads of nested loops, each with some lanes; gives the loop around the threads, and theirs."""
    outer, inner, *vector = s.split(s.fuse(*loops), [None, threads, lanes] if lanes > 1 else [None, threads])
    s.bind(inner, "threadIdx.x")
    for loop in vector:
        s.vectorize(loop)
    return outer, inner


class _Writer:
    def __init__(self, s: Schedule, numbers: Numbers) -> None:
        self.s, self.numbers = s, numbers

    def write(self) -> None:
        """Schedules the kernel."""
        inline(self.s)
        placed: set[str] = set()
        for block in reversed(list(self.s.nest.blocks().values())):
            if block.name not in placed:
                group = self._producers(block, placed)
                placed |= {block.name, *group}
                self._schedule(block.name, group)

    def write_each(self) -> None:
        """Schedules each block for itself: right for all, and slow."""
        for block in list(self.s.nest.blocks().values()):
            loops = self.s.get_loops(block.name)
            elements = [loops[i] for i in block.parallel]
            self.s.reorder(*elements, *(loops[i] for i in block.reduction))
            self._bind_threads(elements)

    def _producers(self, block: Block, placed: set[str]) -> list[str]:
        """Blocks whose results only a block and these use, the last one first."""
        nest, blocks = self.s.nest, self.s.nest.outer_blocks()
        found: list[str] = []
        known = {block.name}
        for other in reversed(list(nest.blocks().values())):
            outputs = other.outputs()
            if other.name in placed or other.name in known or any(map(nest.is_output, outputs)):
                continue
            readers = {r.name for buffer in outputs for r in moving.readers_of(blocks, buffer)}
            writers = {w.name for buffer in outputs for w in moving.writers_of(blocks, buffer)}
            if readers and readers <= known and writers == {other.name}:
                found.append(other.name)
                known.add(other.name)
        return found

    # ---- nests

    def _schedule(self, name: str, group: Sequence[str]) -> None:
        block = self.s.nest.blocks()[name]
        loops = self.s.get_loops(name)
        if not group and not block.is_reduction:
            self._elementwise(block, loops)
            return
        rows = self._rows(block, group)
        elements = [loops[i] for i in rows]
        inner = [loops[i] for i in block.parallel if i not in rows]
        steps = [loops[i] for i in block.reduction]
        self.s.reorder(*elements, *inner, *steps)
        width = self._shared_by(block, group)
        if width == 1:
            self._in_threads(elements, group)
        else:
            self._in_groups(name, elements, inner, steps, group, width)

    def _rows(self, block: Block, group: Sequence[str]) -> list[int]:
        """The iterators on which the elements read from the results of other blocks depend; of a reduction, all parallel iterators."""
        if block.is_reduction:
            return block.parallel
        made = {buffer for name in group for buffer in self.s.nest.blocks()[name].outputs()}
        used = set().union(*(variables(i) for a in block.loads() if a.buffer in made for i in a.indices))
        return [i for i in block.parallel if block.vars[i] in used]

    def _elementwise(self, block: Block, loops: list[LoopRV]) -> None:
        self._bind_threads(loops, self._lanes(block, block.vars[-1], block.extents[-1]) if loops else 1)

    def _bind_threads(self, loops: Sequence[LoopRV], lanes: int = 1) -> LoopRV | None:
        """Makes threads of loops, each with some lanes; gives the loop of the threads."""
        if not loops:
            return None
        blocks, threads = split_threads(self.s, loops, self.numbers.threads, lanes)
        self.s.bind(blocks, "blockIdx.x")
        return threads

    def _in_threads(self, rows: list[LoopRV], group: Sequence[str]) -> None:
        """A thread for each row."""
        if not rows:
            if group:
                raise ScheduleError("expected rows for the blocks computed in them, found none")
            return
        threads = self._bind_threads(rows)
        assert threads is not None  # there are rows
        for name in group:
            self.s.compute_at(name, threads)
            self._keep_local(name)

    def _in_groups(self, name: str, rows: list[LoopRV], inner: list[LoopRV], steps: list[LoopRV], group: Sequence[str], width: int) -> None:
        """Assigns some threads to each row; they share the elements along it."""
        s = self.s
        count = prod(s.nest.loops()[loop.name].extent for loop in rows)
        together = self.numbers.threads // width
        while isinstance(count, int) and together >= 2 * count:
            together //= 2
        if rows:
            row = self.s.fuse(*rows)
            blocks, row = s.split(row, [None, together])
            s.bind(blocks, "blockIdx.x")
            s.bind(row, "threadIdx.y")
        elif group:
            row = s.add_unit_loop(s.get_loops(name)[0] if s.get_loops(name) else name)
        for producer in group:
            made = s.compute_at(producer, row)
            self._keep_local(producer)
            block = s.nest.blocks()[producer]
            along = {loop.name for loop in self._steps(block)}
            self._share([loop for loop in made if loop.name in along] or made, block, width)
        block = s.nest.blocks()[name]
        if steps:
            self._share(steps, block, width)
        elif inner:
            self._share(inner, block, width)

    def _share(self, loops: Sequence[LoopRV], block: Block, width: int) -> None:
        """Distributes the iterations of loops over threads; each thread gets several that are contiguous in memory, if possible."""
        iterators = block.reduction if block.is_reduction else block.parallel
        extents = [self.s.nest.loops()[loop.name].extent for loop in loops]
        lanes = self._lanes(block, block.vars[iterators[-1]], extents[-1])
        if guess(prod(extents)) < width * lanes:
            lanes = 1
        split_threads(self.s, loops, width, lanes)

    def _keep_local(self, name: str) -> None:
        for i, _ in enumerate(self.s.nest.blocks()[name].outputs()):
            self.s.set_scope(name, i, "local")

    def _steps(self, block: Block) -> list[LoopRV]:
        """The loops that a reduction runs along."""
        along = {v for i in block.reduction for v in variables(block.points[i])}
        return [LoopRV(loop.name) for loop in block.around if loop.var in along]

    # ---- how memory is read

    def _shared_by(self, block: Block, group: Sequence[str]) -> int:
        """How many threads compute a row: one if neighbouring rows are contiguous in memory, or if a row is short."""
        reductions = [b for b in (block, *(self.s.nest.blocks()[name] for name in group)) if b.is_reduction]
        steps = max((guess(prod(b.extents[i] for i in b.reduction)) for b in reductions), default=0)
        if steps < WARP or not all(map(self._is_along_memory, reductions)) or not all(map(_is_simple, reductions)):
            return 1
        return WARP if steps <= self.numbers.warp_steps else self.numbers.threads

    def _is_along_memory(self, block: Block) -> bool:
        """Whether the steps of a reduction, and not its elements, follow each other in memory."""
        made = block.outputs()
        offsets = [linearize(a.indices, self.s.nest.shape(a.buffer)) for a in block.loads() if a.buffer not in made]
        elements = [block.vars[i] for i in block.parallel if block.extents[i] != 1]
        steps = [block.vars[i] for i in block.reduction]
        if any(o.coefficient(v) == 1 for o in offsets for v in elements):
            return False
        return any(o.coefficient(v) == 1 for o in offsets for v in steps)

    def _lanes(self, block: Block, var: object, extent: Size) -> int:
        """Elements that a thread computes at once along an iterator: as many as the widest element allows, where vectors begin at their
        size and memory is read along it."""
        accesses = block.accesses()
        widest = max(element_bytes(a.buffer.type.element_type) for a in accesses)
        lanes = self.numbers.vector_bytes // widest
        if lanes < 2 or not isinstance(extent, int) or extent % lanes:
            return 1
        for access in accesses:
            factor = linearize(access.indices, self.s.nest.shape(access.buffer)).coefficient(var)  # type: ignore[arg-type]
            if access.is_store and not block.is_reduction and factor != 1:
                return 1
        return lanes


def _is_simple(block: Block) -> bool:
    """Whether a reduction updates one element by one commutative operation, so that threads may share its steps."""
    try:
        reducer = find_reducer(block)
    except ScheduleError:
        return False
    return reducer.is_commutative and len(reducer.parts) == 1 and reducer.operations[0].name != "math.fma"
