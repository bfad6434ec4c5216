"""Contractions by a schedule of primitives: tiles of sums in registers, in blocks for the caches, behind which the epilogue is computed.

Which loops are rows, columns, batch and reduction is what `kernel.contraction` finds, the numbers are those of `tile`; a person writes such
a schedule with the same primitives (docs/schedules.md). It takes products with parameters, which are packed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from relayc.pipelines.blocks.layouts import Axis, map_of
from relayc.pipelines.blocks.references import LoopRV
from relayc.pipelines.blocks.schedule import Schedule
from relayc.pipelines.blocks.strategy import schedule_built_in
from relayc.pipelines.blocks.views import Block
from relayc.pipelines.cpu.schedule.contraction.plan import Plan, Source
from relayc.pipelines.cpu.schedule.contraction.strategy import choose
from relayc.pipelines.cpu.schedule.contraction.tile import Blocks
from relayc.pipelines.kernel.contraction import Contraction
from relayc.pipelines.kernel.graph import Kernel, NotStructured
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.schedule.strategy import Scheduled
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.symbolic import Size

STREAM_BYTES = 4096
"""How far ahead a tile asks for what it reads once: what arrives while the memory answers, and a page, where the core's own guesses end."""


def schedule_products(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a contraction of a parameter with an elementwise epilogue, all of whose sizes are numbers; None for any other kernel."""
    chosen = choose(kernel, target, tuning)
    if chosen is None:
        return None
    plan, blocks = chosen
    c = plan.contraction
    if blocks is None or not isinstance(plan.work, int) or plan.b is not Source.PARAMETER:
        return None
    if plan.a is not Source.MEMORY and not (plan.a is Source.COPY and plan.row_tiles == 1):  # one tile reads each row once
        return None
    if (c.rows and c.row_loops) or c.store_stride(c.column) != 1:
        return None
    if "products.chunk" not in tuning.given:
        blocks = replace(blocks, chunk=_even_chunk(plan, blocks, target))
        tuning.used["chunk"] = blocks.chunk
    return schedule_built_in(lambda s: _Product(s, plan, blocks).write(), kernel, target, tuning)


def _even_chunk(plan: Plan, blocks: Blocks, target: Target) -> int:
    """Steps of a chunk, a divisor of all steps where one is near: a chunk of a panel then takes up to three quarters of the first-level
    cache."""
    c = plan.contraction
    outer, chunk = int(c.reduction[0].extent), int(blocks.chunk)
    if chunk == outer:
        return chunk
    bytes_of_step = int(plan.panel_size) // outer * c.b.node.element.width // 8
    most = max(chunk, target.l1_bytes * 3 // 4 // bytes_of_step)
    even = max(n for n in range(1, most + 1) if outer % n == 0)
    return even if even * 2 >= chunk else chunk


@dataclass(frozen=True)
class _Roles:
    """The iterators of a block by role: positions, outermost first; those of a group are walked as one."""

    batch: list[list[int]]
    rows: list[list[int]]
    columns: list[list[int]]
    reduction: list[list[int]]

    @property
    def parallel(self) -> list[list[int]]:
        return [*self.batch, *self.rows, *self.columns]


class _Product:
    """The schedule of one contraction.

    Attributes:
      product: the block that computes the sums; result: the one that computes what the kernel gives.
      width: columns of a panel.
    """

    def __init__(self, schedule: Schedule, plan: Plan, blocks: Blocks) -> None:
        self.s, self.plan, self.c, self.tile, self.blocks = schedule, plan, plan.contraction, plan.tile, blocks
        self.width = min(self.tile.width, int(self.c.column_extent))
        self.is_chunked = blocks.chunk != self.c.reduction[0].extent
        nest = schedule.nest
        self.blocks_by_name = nest.blocks()
        self.product = next(b.name for b in self.blocks_by_name.values() if b.is_reduction)
        self.result = next(b.name for b in self.blocks_by_name.values() if any(map(nest.is_output, b.outputs())))

    def write(self) -> None:
        self._leave_two_blocks()
        self._order_iterators()
        self._pack()
        tasks, inside = self._tile_result()
        self._place_product(tasks[-1] if self.is_chunked else inside[-1], inside)
        if self.plan.is_parallel:
            for loop in tasks:
                self.s.parallel(loop)

    # ---- what is computed where

    def _leave_two_blocks(self) -> None:
        """The sums, in a buffer of a thread, and the result; what else there is becomes a part of these."""
        s = self.s
        for name in self.blocks_by_name:
            if name not in (self.product, self.result):
                s.compute_inline(name)
        if self.product == self.result:
            self.result = s.cache_write(self.product, 0, "local").name
        else:
            s.set_scope(self.product, 0, "local")

    # ---- iterators

    def _order_iterators(self) -> None:
        """Both blocks go over batch, rows and columns, one iterator for all loops that are walked as one, the sums over the reduction too;
        the buffer of the sums has these dimensions."""
        blocks = self.s.nest.blocks()
        sums, result = blocks[self.product], blocks[self.result]
        roles = _roles(self.c)
        self.batch, self.rows, self.columns = len(roles.batch), len(roles.rows), len(roles.columns)
        (store,) = sums.stores()
        dims = {next(iter(index.terms)): d for d, index in enumerate(store.indices) if index.terms}
        order = [[dims[sums.vars[i]] for i in group if sums.vars[i] in dims] for group in roles.parallel]
        shape = self.s.nest.shape(store.buffer)
        of_result = _of_result(roles, sums, result)
        self._fuse(self.product, [*roles.parallel, *roles.reduction])
        self._fuse(self.result, of_result)
        if order != [[d] for d in range(len(shape))]:
            self.s.transform_layout(self.product, ("write", 0), map_of(len(shape), lambda *at: [_joined(at, shape, g) for g in order]))

    def _fuse(self, block: str, groups: list[list[int]]) -> None:
        if groups != [[i] for i in range(len(self.s.get_loops(block)))]:
            self.s.fuse_iterators(block, groups)

    # ---- the parameter

    def _pack(self) -> None:
        """The parameter lies in panels as wide as a tile, one step of the reduction after the other."""
        c, shape = self.c, self.c.b.node.static_shape
        places: dict[Var, tuple[int, int]] = {}
        for d, (index, extent) in enumerate(zip(c.b.indices, shape, strict=True)):
            places |= {var: (d, factor) for var, factor in _digits(index, extent)}
        lanes = c.columns[-1].var
        if any(places[v][0] != places[lanes][0] for loop in c.columns for v in loop.members):
            raise NotStructured("columns along several dimensions of a parameter")

        def layout(*at: Axis) -> list[Axis]:
            def part(var: Var, extent: Size) -> Axis:
                d, step = places[var]
                found = at[d] if step == 1 else at[d] // step
                return found if shape[d] == step * extent else found % int(extent)

            column = part(lanes, c.column_extent)
            steps = [part(v, v.extent) for v in (*c.batch, *c.reduction)]
            return [*steps[: len(c.batch)], column // self.width, *steps[len(c.batch) :], column % self.width]

        self.parameter = self.s.nest.buffer_name(self.s.nest.entry.arguments[c.b.node.position])
        self.s.transform_layout(self.product, ("read", self.parameter), map_of(len(shape), layout), pad_value=0.0)

    # ---- loops

    def _tile_result(self) -> tuple[list[LoopRV], list[LoopRV]]:
        """The loops of the result: over tasks, and over the panels of a task and the tiles of a panel."""
        s, blocks, at = self.s, self.blocks, self.batch + self.rows
        loops = s.get_loops(self.result)
        block, tiles, row = s.split(loops[at - 1], [None, blocks.tiles, self.tile.rows])
        first, panel, *columns = self._split_columns(loops[at:], [None, blocks.panels])
        tasks = [*loops[: self.batch], first, block, *loops[self.batch : at - 1]]
        s.reorder(*tasks, panel, tiles, row, *columns)
        self._vectorize(columns if self.is_chunked else [row, *columns])
        return tasks, [panel, tiles]

    def _split_columns(self, columns: Sequence[LoopRV], factors: Sequence[int | None]) -> list[LoopRV]:
        """The columns in panels: several loops, where they are blocks of channels."""
        inner = 1 if len(columns) == 1 else int(self.c.columns[-1].extent)
        if self.width % inner:
            raise NotStructured("panels that cut blocks of channels")
        return [*self.s.split(columns[0], [*factors, self.width // inner]), *columns[1:]]

    def _place_product(self, at: LoopRV, inside: Sequence[LoopRV]) -> None:
        """The sums of a tile are computed where their result is; or those of a task, a chunk of the reduction after the other."""
        s = self.s
        loops = s.compute_at(self.product, at, preserve_unit_loops=True)
        first, last = self.batch + self.rows - 1, self.batch + self.rows + self.columns
        outer, row, columns, reduction = loops[:first], loops[first], loops[first + 1 : last], loops[last:]
        around, ahead = outer, inside[0]
        if self.is_chunked:
            tiles, row = s.split(row, [None, self.tile.rows])
            panels, *columns = self._split_columns(columns, [None])
            chunk, steps = s.split(reduction[0], [None, int(self.blocks.chunk)])
            around, reduction = [*outer, chunk, panels, tiles], [steps, *reduction[1:]]
            ahead = panels if self.blocks.panels > 1 else chunk
        s.reorder(*around, *reduction, row, *columns)
        self._vectorize([row, *columns])
        if self.plan.prefetches:
            self._prefetch(reduction[-1], ahead)

    def _vectorize(self, loops: Sequence[LoopRV]) -> None:
        """The last loop as vectors, the others written out."""
        for loop in loops[:-1]:
            self.s.unroll(loop)
        self.s.vectorize(loops[-1])

    def _prefetch(self, steps: LoopRV, panel: LoopRV) -> None:
        """A panel is read from memory once while all tiles go by, so that only the first one would wait for it: each tile asks for its
        share of the next panel. Where there is one tile, memory is all that it waits for, and it asks for what follows."""
        if self.blocks.tiles == 1:
            distance = STREAM_BYTES // (self.width * self.c.b.node.element.width // 8)
            self.s.annotate(steps, "prefetch", [self.parameter, steps.name, max(1, distance), 2])
        else:
            self.s.annotate(steps, "prefetch", [self.parameter, panel.name, 1, 2])


def _roles(c: Contraction) -> _Roles:
    """The iterators of the block of the sums."""
    at = {v: i for i, v in enumerate(c.variables)}
    batch, reduction = ([[at[v]] for v in found] for found in (c.batch, c.reduction))
    rows, columns = ([[at[v] for v in loop.members] for loop in found] for found in (c.rows, c.columns))
    rows = rows or [[]]
    used = {i for group in (*batch, *rows, *columns, *reduction) for i in group}
    for i, kind in enumerate(c.structured.iterators):
        if i not in used:  # of one value
            (rows if kind == "parallel" else reduction)[0].insert(0, i)
    return _Roles(batch, rows, columns, reduction)


def _of_result(roles: _Roles, sums: Block, result: Block) -> list[list[int]]:
    """The iterators of the result that go over the same points as those of the sums. Raises NotStructured where there are none."""
    (buffer,) = sums.outputs()
    (store,) = sums.stores()
    read = next(a for a in result.loads() if a.buffer == buffer)
    index_of = {next(iter(w.terms)): r for w, r in zip(store.indices, read.indices, strict=True) if w.terms}
    position: dict[Var, int] = {v: i for i, v in enumerate(result.vars)}
    found: list[list[int]] = []
    for group in roles.parallel:
        members = [var for i in group for var, _ in _digits(index_of.get(sums.vars[i], Index()), sums.extents[i])]
        if any(var not in position for var in members):
            raise NotStructured("a result whose indices are computed otherwise")
        found.append([position[var] for var in members])
    used = {i for group in found for i in group}
    units = [i for i in range(len(result.vars)) if i not in used]
    if any(result.extents[i] != 1 for i in units):
        raise NotStructured("a result that repeats sums")
    return [[*units, *found[0]], *found[1:]]


def _digits(index: Index, extent: Size) -> list[tuple[Var, int]]:
    """The variables that an index has as its digits, with their factors, the outermost first, but for those of one value.

    Raises NotStructured where it has no digits, or they do not reach all of an extent.
    """
    found, rest = list[tuple[Var, int]](), extent
    terms: Mapping[Var, Size] = {v: factor for v, factor in index.terms.items() if v.high != 0}
    for var, factor in sorted(terms.items(), key=lambda term: -term[1]):
        if rest != factor * var.extent:
            raise NotStructured("a part of a tensor")
        found.append((var, int(factor)))
        rest = factor
    if rest != 1 or index.const != 0:
        raise NotStructured("a part of a tensor")
    return found


def _joined(at: Sequence[Axis], shape: Sequence[Size], dims: Sequence[int]) -> Axis | int:
    """The index along several dimensions as one."""
    found: Axis | int = at[dims[0]] if dims else 0
    for d in dims[1:]:
        found = found * int(shape[d]) + at[d]
    return found
