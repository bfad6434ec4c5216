"""Contractions by a schedule of primitives: tiles of sums in registers, in blocks for the caches, behind which the epilogue is computed.

Which loops are rows, columns, batch and reduction is what `kernel.contraction` finds; the numbers are those of `tile`. A person writes such
a schedule with the same primitives (docs/schedules.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from relayc.pipelines.blocks.strategy import schedule_built_in
from relayc.pipelines.blocks.references import LoopRV
from relayc.pipelines.blocks.schedule import Schedule
from relayc.pipelines.blocks.views import Block
from relayc.pipelines.cpu.schedule.contraction.blocked import STREAM_BYTES
from relayc.pipelines.cpu.schedule.contraction.plan import Plan, Source
from relayc.pipelines.cpu.schedule.contraction.tile import Blocks
from relayc.pipelines.cpu.schedule.contraction.strategy import choose
from relayc.pipelines.kernel.graph import Kernel, NotStructured
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.schedule.strategy import Scheduled
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.symbolic import ceil_div


def schedule_products(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a kernel whose result is a contraction with an elementwise epilogue; None for any other."""
    chosen = choose(kernel, target, tuning)
    if chosen is None:
        return None
    plan, blocks = chosen
    if not isinstance(plan.work, int) or blocks is None or plan.b is not Source.PARAMETER or (plan.contraction.rows and plan.contraction.row_loops):
        return None
    outer = plan.contraction.reduction[0].extent
    even = max(n for n in range(1, blocks.chunk + 1) if outer % n == 0)
    if even * 2 >= blocks.chunk and "products.chunk" not in tuning.given:
        blocks = replace(blocks, chunk=even)
        tuning.used["chunk"] = even
    return schedule_built_in(lambda s: _Product(s, plan, blocks).write(), kernel, target, tuning)


@dataclass(frozen=True)
class _Groups:
    """Iterators by role, those of a group are walked as one: positions, outermost first."""

    batch: list[list[int]]
    rows: list[list[int]]
    columns: list[list[int]]
    reduction: list[list[int]]

    @property
    def parallel(self) -> list[list[int]]:
        return [*self.batch, *self.rows, *self.columns]


class _Product:
    """The schedule of one contraction: `product` computes its sums, `result` what follows."""

    def __init__(self, schedule: Schedule, plan: Plan, blocks: Blocks) -> None:
        self.s, self.plan, self.c, self.tile, self.blocks = schedule, plan, plan.contraction, plan.tile, blocks
        self.width = min(self.tile.width, int(self.c.column_extent))
        self.is_chunked = blocks.chunk != self.c.reduction[0].extent

    def write(self) -> None:
        self._inline()
        self._order_iterators()
        self._pack()
        outer, panels, tiles = self._tile_result()
        self._place_product((outer + panels + tiles)[-1] if not self.is_chunked else outer[-1])
        if self.plan.is_parallel:
            for loop in outer:
                self.s.parallel(loop)

    # ---- what is computed where

    def _inline(self) -> None:
        """Two blocks remain: the sums, and the result of the kernel."""
        nest = self.s.nest
        blocks = nest.outer_blocks()
        self.product = next(b.name for b in blocks if b.is_reduction)
        self.result = next(b.name for b in blocks if any(nest.is_output(o) for o in b.outputs()))
        for block in blocks:
            if block.name not in (self.product, self.result):
                self.s.compute_inline(block.name)
        if self.product == self.result:
            self.result = self.s.cache_write(self.product, 0, "local").name
        else:
            self.s.set_scope(self.product, 0, "local")

    def _block(self, name: str) -> Block:
        return self.s.nest.blocks()[name]

    # ---- iterators

    def _order_iterators(self) -> None:
        """Both blocks get the iterators batch, rows, columns, and the sums the reduction; those that all accesses walk as one are one."""
        of_product = self._groups()
        of_result = self._groups_of_result(of_product)
        sums = self._block(self.product)
        store = next(a for a in sums.stores())
        dims = {next(iter(index.terms)): d for d, index in enumerate(store.indices) if index.terms}
        order = [[dims[sums.vars[i]] for i in group if sums.vars[i] in dims] for group in of_product.parallel]
        shape = self.s.nest.shape(store.buffer)
        self._fuse(self.product, [*of_product.parallel, *of_product.reduction])
        self._fuse(self.result, of_result)
        if order != [[i] for i in range(len(shape))]:
            self.s.transform_layout(self.product, ("write", 0), _linear(order, shape))
        self.batch, self.rows, self.columns = len(of_product.batch), len(of_product.rows), len(of_product.columns)

    def _fuse(self, block: str, groups: list[list[int]]) -> None:
        if groups != [[i] for i in range(len(self.s.get_loops(block)))]:
            self.s.fuse_iterators(block, groups)

    def _groups(self) -> _Groups:
        c = self.c
        at = {v: i for i, v in enumerate(c.variables)}
        kinds = c.structured.iterators
        batch = [[at[v]] for v in c.batch]
        rows = [[at[v] for v in loop.members] for loop in c.rows] or [[]]
        columns = [[at[v] for v in loop.members] for loop in c.columns]
        reduction = [[at[v]] for v in c.reduction]
        used = {i for group in (*batch, *rows, *columns, *reduction) for i in group}
        for i, kind in enumerate(kinds):
            if i not in used:  # of one value
                (rows if kind == "parallel" else reduction)[0].insert(0, i)
        return _Groups(batch, rows, columns, reduction)

    def _groups_of_result(self, of_product: _Groups) -> list[list[int]]:
        """The iterators of the result that are those of the sums. Raises NotStructured where they are not the same points in that order."""
        sums, result = self._block(self.product), self._block(self.result)
        (buffer,) = sums.outputs()
        (store,) = sums.stores()
        loads = [a for a in result.loads() if a.buffer == buffer]
        of_iterator: dict[Var, Index] = {}
        for written, read in zip(store.indices, loads[0].indices, strict=True):
            if written.terms:
                of_iterator[next(iter(written.terms))] = read
        position = {v: i for i, v in enumerate(result.vars)}
        found: list[list[int]] = []
        for group in of_product.parallel:
            members: list[int] = []
            for i in group:
                members += _digits(of_iterator.get(sums.vars[i], Index()), position, sums.extents[i])
            found.append(members)
        used = {i for group in found for i in group}
        units = [i for i in range(len(result.vars)) if i not in used]
        if any(result.extents[i] != 1 for i in units):
            raise NotStructured("a result that repeats sums")
        found[0] = [*units, *found[0]]
        return found

    # ---- operands

    def _pack(self) -> None:
        """The right operand lies in panels as wide as a tile, one step of the reduction after the other."""
        c = self.c
        dims: dict[Var, tuple[int, int]] = {}
        shape = c.b.node.shape
        if any(index.const != 0 for index in c.b.indices):
            raise NotStructured("a part of a parameter")
        for d, index in enumerate(c.b.indices):
            rest = shape[d]
            for v, factor in sorted(index.terms.items(), key=lambda term: -term[1]):
                if v in dims or rest != factor * v.extent:
                    raise NotStructured("a parameter that is not read as a whole")
                dims[v], rest = (d, factor), factor
            if rest != 1:
                raise NotStructured("a parameter that is not read as a whole")
        column = c.columns[0].members[0], c.columns[-1].members[-1]
        d, factor = dims[column[1]]
        if {dims[v][0] for loop in c.columns for v in loop.members} != {d}:
            raise NotStructured("columns along several dimensions of a parameter")
        extent, width = c.column_extent, self.width

        def layout(*at):
            def part(v):
                dim, factor = dims[v]
                digit = at[dim] // factor if factor != 1 else at[dim]
                return digit % v.extent if shape[dim] != factor * v.extent else digit

            along = at[d] // factor if factor != 1 else at[d]
            along = along % extent if shape[d] != factor * extent else along
            return [*(part(v) for v in c.batch), along // width, *(part(v) for v in c.reduction), along % width]

        self.panels = buffer = self.s.nest.buffer_name(next(a.buffer for a in self._block(self.product).loads() if self._is_b(a.buffer)))
        layout.__signature__ = _signature(len(shape))
        self.s.transform_layout(self.product, ("read", buffer), layout, pad_value=0.0)

    def _is_b(self, buffer) -> bool:
        arguments = list(self.s.nest.entry.arguments)
        return buffer == arguments[self.c.b.node.position]

    # ---- loops

    def _tile_result(self) -> tuple[list[LoopRV], list[LoopRV], list[LoopRV]]:
        """The loops of the result: over tasks, over the panels of a task, and over the tiles of a panel (none, where sums lie in memory)."""
        s, tile, blocks = self.s, self.tile, self.blocks
        loops = s.get_loops(self.result)
        batch, rows, columns = loops[: self.batch], loops[self.batch : self.batch + self.rows], loops[self.batch + self.rows :]
        block, *inside = self._split(rows[-1], [blocks.tiles, tile.rows], self.plan.rows)
        panel_block, panel, *lanes = self._split_columns(columns, blocks.panels)
        outer = [*batch, panel_block, block, *rows[:-1]]
        tiles, row = inside
        s.reorder(*outer, panel, tiles, row, *lanes)
        if not self.is_chunked:
            s.unroll(row)
        for loop in lanes[:-1]:
            s.unroll(loop)
        s.vectorize(lanes[-1])
        return outer, [panel], [tiles]

    def _split(self, loop, factors: Sequence[int], extent) -> list[LoopRV]:
        return self.s.split(loop, [None, *factors])

    def _split_columns(self, columns: Sequence[LoopRV], panels: int) -> list[LoopRV]:
        if len(columns) == 1:
            return self.s.split(columns[0], [None, panels, self.width])
        inner = self.c.columns[-1].extent
        if self.width % inner:
            raise NotStructured("panels that split blocks of channels")
        return [*self.s.split(columns[0], [None, panels, self.width // inner]), columns[1]]

    def _place_product(self, at: LoopRV) -> None:
        """The sums are computed in a loop of the result."""
        s, tile = self.s, self.tile
        loops = s.compute_at(self.product, at, preserve_unit_loops=True)
        head, rest = loops[: self.batch + self.rows - 1], loops[self.batch + self.rows - 1 :]
        row, columns, reduction = rest[0], rest[1 : 1 + self.columns], rest[1 + self.columns :]
        if not self.is_chunked:
            s.reorder(*head, *reduction, row, *columns)
            self._registers(row, columns)
            self._prefetch(reduction[-1], s.get_loops(self.result)[self.batch + 2 + self.rows - 1])
            return
        tiles, row = s.split(row, [None, tile.rows])
        panel = []
        if self.blocks.panels > 1:
            inner = self.width // (self.c.columns[-1].extent if len(columns) > 1 else 1)
            first, second = s.split(columns[0], [None, inner])
            panel, columns = [first], [second, *columns[1:]]
        chunk, steps = s.split(reduction[0], [None, self.blocks.chunk])
        s.reorder(*head, chunk, *panel, tiles, steps, *reduction[1:], row, *columns)
        self._registers(row, columns)
        self._prefetch([steps, *reduction[1:]][-1], [chunk, *panel][-1])

    def _prefetch(self, steps: LoopRV, panel: LoopRV) -> None:
        """A panel is read from memory once while all tiles go by, so only the first one would wait for it: each tile asks for its share of
        the next panel. Where there is one tile, memory is all that it waits for, and it asks for what follows."""
        if not self.plan.prefetches:
            return
        if self.blocks.tiles == 1:
            step = self.width * self.c.b.node.element.width // 8
            self.s.annotate(steps, "prefetch", [self.panels, steps.name, STREAM_BYTES // step, 2])
        else:
            self.s.annotate(steps, "prefetch", [self.panels, panel.name, 1, 2])

    def _registers(self, row: LoopRV, columns: Sequence[LoopRV]) -> None:
        for loop in (row, *columns[:-1]):
            self.s.unroll(loop)
        self.s.vectorize(columns[-1])


def _digits(index: Index, position, extent) -> list[int]:
    """Positions of the iterators that an index is made of, the first the outermost. Raises NotStructured where they are not its digits."""
    found, rest = [], extent
    if index.const != 0:
        raise NotStructured("a result that reads a part of sums")
    for v, factor in sorted(((v, f) for v, f in index.terms.items() if v.extent != 1), key=lambda term: -term[1]):
        if v not in position or rest != factor * v.extent:
            raise NotStructured("a result in another order than its sums")
        found.append(position[v])
        rest = factor
    if rest != 1:
        raise NotStructured("a result of a part of sums")
    return found


def _linear(order: Sequence[Sequence[int]], shape):
    def layout(*at):
        found = []
        for group in order:
            total = at[group[0]] if group else 0
            for d in group[1:]:
                total = total * shape[d] + at[d]
            found.append(total)
        return found

    layout.__signature__ = _signature(len(shape))
    return layout


def _signature(count: int):
    import inspect

    return inspect.Signature([inspect.Parameter(f"d{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(count)])
