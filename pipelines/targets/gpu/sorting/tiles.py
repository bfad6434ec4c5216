"""Lines longer than a block can sort: blocks sort tiles into a workspace, then each launch merges pairs of runs.

The workspace has two halves; a launch reads one and writes the other. Lines in it consist of full tiles, padded with sentinels. A block of
a merge produces one tile: two warps search for its start and end in both runs, each at as many places at once as it has lanes; the items
between are copied to shared memory, where threads merge them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Var
from relayc.pipelines.targets.gpu.sorting.lines import Shape
from relayc.pipelines.targets.gpu.sorting.merging import Group, Run, merge, sort_group, store_items, to_index, to_word, word
from relayc.pipelines.targets.gpu.sorting.orders import Item, Line, Order, item_or_none, items_bytes, load_item, store_item, workspace_items
from relayc.pipelines.tir.gpu.launch import WARP, Launch, barrier, launch, reduce_lanes
from relayc.symbolic import Size, ceil_div

LEAST_THREADS = 2 * WARP
"""Of a block that merges."""


@dataclass(frozen=True)
class LineTiles:
    """The tiles of some lines.

    Attributes:
      lines, size: how many lines there are, and items of a line.
      shape: of the blocks.
    """

    lines: Size
    size: Size
    shape: Shape

    @property
    def count(self) -> Size:
        """Tiles of a line."""
        return ceil_div(self.size, self.shape.capacity)

    @property
    def half(self) -> Size:
        """Items of a half of the workspace."""
        return self.lines * self.count * self.shape.capacity

    def workspace_bytes(self, widths: Sequence[int]) -> Size:
        """Of both halves, for items with words of the given widths."""
        return items_bytes(2 * self.half, widths)


def sort_tiles(order: Order, tiles: LineTiles, workspace: ir.Value) -> None:
    """Launches the sort of lines of more than one tile; they may be without items."""
    _Sort(order, tiles, workspace).emit()


class _Sort:
    def __init__(self, order: Order, tiles: LineTiles, workspace: ir.Value) -> None:
        self.order, self.tiles, self.shape = order, tiles, tiles.shape
        self.buffers = workspace_items(order, workspace, 2 * tiles.half)

    def emit(self) -> None:
        """The launches: of the merges all but the last are a loop of the host."""
        self._launch_tiles()
        one = emit.index_constant(1)
        last = emit.arith("subi", _rounds(self.tiles.count), one)
        merged = Var(0, 0, name="round")
        with emit.for_loop(0, last, 1, merged):
            self._launch_merges(merged.value, is_last=False)
        self._launch_merges(last, is_last=True)

    def _group(self, thread: ir.Value) -> Group:
        return Group(self.shape.threads, self.shape.items, word(0), to_word(thread))

    def _number(self, block: ir.Value, tiles: Size) -> tuple[ir.Value, ir.Value]:
        """Line and tile of a block, of so many tiles of each line."""
        count = emit.index_constant(tiles)
        return emit.arith("divui", block, count), emit.arith("remui", block, count)

    def _line(self, number: ir.Value, half: ir.Value) -> ir.Value:
        """The start of a line in a half (0 or 1) of the workspace."""
        length = emit.index_constant(self.tiles.count * self.shape.capacity)
        first = emit.arith("muli", half, emit.index_constant(self.tiles.half))
        return emit.arith("addi", first, emit.arith("muli", number, length))

    # ---- tiles

    def _launch_tiles(self) -> None:
        order, tiles, shape = self.order, self.tiles, self.shape
        with launch([tiles.lines * tiles.count], shape.threads, shape.shared(order)) as made:
            number, tile = self._number(made.block[0].value, tiles.count)
            group, line = self._group(made.thread.value), order.line(number)
            begin = emit.arith("muli", tile, emit.index_constant(shape.capacity))
            items = [self._first_item(line, begin, group.spread(i)) for i in range(shape.items)]
            store_items(sort_group(order, made.shared, group, items), made.shared, group.own)
            barrier()
            to = emit.arith("addi", self._line(number, emit.index_constant(0)), begin)
            self._copy_tile(made, group, to)

    def _first_item(self, line: Line, begin: ir.Value, position: ir.Value) -> Item:
        place = emit.arith("addi", begin, to_index(position))
        return item_or_none(self.order, place, self.tiles.size, lambda nearest: self.order.load(line, nearest))

    def _copy_tile(self, made: Launch, group: Group, to: ir.Value) -> None:
        """A tile from shared memory to the workspace."""
        for i in range(self.shape.items):
            at = to_index(group.spread(i))
            store_item(load_item(made.shared, at), self.buffers, emit.arith("addi", to, at))

    # ---- merges

    def _launch_merges(self, round_: ir.Value, is_last: bool) -> None:
        """A launch that merges runs of 2**round tiles; the last one stores what the sort gives, only the tiles that have some of it."""
        order, tiles, shape = self.order, self.tiles, self.shape
        of_line = ceil_div(order.sorting.count, shape.capacity) if is_last else tiles.count
        index = ir.IndexType.get()
        with launch([tiles.lines * of_line], shape.threads, [*shape.shared(order), (2, index)]) as made:
            *shared, ends = made.shared
            one = emit.index_constant(1)
            number, tile = self._number(made.block[0].value, of_line)
            half = emit.arith("andi", round_, one)
            line = self._line(number, half)
            width = emit.arith("shli", one, round_)
            # The first tile of both runs, and the remainder from there.
            mask = emit.arith("subi", emit.index_constant(0), emit.arith("shli", width, one))
            first = emit.arith("andi", tile, mask)
            left = emit.arith("subi", emit.index_constant(tiles.count), first)
            size = emit.index_constant(shape.capacity)
            count_a = emit.arith("minui", width, left)
            count_b = emit.arith("minui", width, emit.arith("subi", left, count_a))
            a = Run(emit.arith("addi", line, emit.arith("muli", first, size)), emit.arith("muli", count_a, size))
            b = Run(a.end, emit.arith("muli", count_b, size))
            begin = emit.arith("muli", emit.arith("subi", tile, first), size)
            self._find_ends(made, ends, a, b, begin)
            group = self._group(made.thread.value)
            parts = self._load_parts(shared, ends, a, b, begin, group)
            found = merge(order, shared, *parts, group.own, shape.items)
            barrier()
            store_items(found, shared, group.own)
            barrier()
            start = emit.arith("muli", tile, size)
            if is_last:
                self._store_results(shared, number, start, group)
            else:
                other = self._line(number, emit.arith("xori", half, one))
                self._copy_tile(Launch(made.block, made.threads, tuple(shared)), group, emit.arith("addi", other, start))

    def _find_ends(self, made: Launch, ends: ir.Value, a: Run, b: Run, begin: ir.Value) -> None:
        """Leaves in shared memory how many items of the first run are before the tile, and before its end: a warp finds each."""
        thread = made.thread.value
        with emit.if_all([emit.compare("ult", thread, emit.index_constant(2 * WARP))]):
            lanes = emit.index_constant(WARP)
            which, lane = emit.arith("divui", thread, lanes), emit.arith("remui", thread, lanes)
            first = emit.arith("addi", begin, emit.arith("muli", which, emit.index_constant(self.shape.capacity)))
            taken = self._split(a, b, first, lane)
            with emit.if_all([emit.compare("eq", lane, emit.index_constant(0))]):
                emit.create("memref.store", [], [taken, ends, which])
        barrier()

    def _split(self, a: Run, b: Run, first: ir.Value, lane: ir.Value) -> ir.Value:
        """How many of the `first` items of two merged runs in the workspace are of the first run: each lane asks of another item."""
        zero, one, lanes = (emit.index_constant(n) for n in (0, 1, WARP))

        def goes_on(ends: Sequence[ir.Value]) -> ir.Value:
            return emit.compare("ult", *ends)

        def narrow(ends: Sequence[ir.Value]) -> list[ir.Value]:
            low, high = ends
            last = emit.arith("subi", high, one)
            span = emit.arith("subi", high, low)
            step = emit.arith("divui", emit.arith("addi", span, emit.index_constant(WARP - 1)), lanes)
            asked = emit.arith("addi", low, emit.arith("muli", lane, step))
            of_a = emit.arith("minui", asked, last)
            of_b = emit.arith("subi", emit.arith("subi", first, of_a), one)
            items = [load_item(self.buffers, emit.arith("addi", run.begin, at)) for run, at in ((a, of_a), (b, of_b))]
            is_taken = emit.arith("xori", self.order.before(items[1], items[0]), emit.number(1, ir.IntegerType.get_signless(1)))
            counted = emit.arith("andi", is_taken, emit.compare("ult", asked, high))
            taken = to_index(reduce_lanes(emit.create("arith.extui", [word(0).type], [counted]), lambda x, y: emit.arith("addi", x, y)))
            # The first `taken` of the candidates are among the first items, the next one is not.
            behind = emit.arith("addi", low, emit.arith("muli", taken, step))
            known = emit.arith("addi", emit.arith("subi", behind, step), one)
            return [emit.select(emit.compare("eq", taken, zero), low, known), emit.arith("minui", high, behind)]

        low = emit.arith("maxsi", emit.arith("subi", first, b.count), zero)
        return emit.repeat_while([low, emit.arith("minui", first, a.count)], goes_on, narrow)[0]

    def _load_parts(self, shared: Sequence[ir.Value], ends: ir.Value, a: Run, b: Run, begin: ir.Value, group: Group) -> tuple[Run, Run]:
        """The parts of both runs that are merged to a tile, in shared memory one after the other."""
        before, until = (emit.create("memref.load", [ends.type.element_type], [ends, emit.index_constant(i)]) for i in range(2))
        count = emit.arith("subi", until, before)
        from_a = emit.arith("addi", a.begin, before)
        from_b = emit.arith("addi", b.begin, emit.arith("subi", emit.arith("subi", begin, before), count))
        for i in range(self.shape.items):
            at = to_index(group.spread(i))
            source = emit.select(emit.compare("ult", at, count), from_a, from_b)
            store_item(load_item(self.buffers, emit.arith("addi", source, at)), shared, at)
        barrier()
        part = to_word(count)
        return Run(word(0), part), Run(part, emit.arith("subi", word(self.shape.capacity), part))

    def _store_results(self, shared: Sequence[ir.Value], number: ir.Value, start: ir.Value, group: Group) -> None:
        line = self.order.line(number)
        for i in range(self.shape.items):
            at = to_index(group.spread(i))
            place = emit.arith("addi", start, at)
            with emit.if_all([emit.compare("ult", place, emit.index_constant(self.order.sorting.count))]):
                self.order.store(line, place, load_item(shared, at))


def _rounds(tiles: Size) -> ir.Value:
    """Merges that make one run of so many, one or more: the logarithm, rounded up."""
    if isinstance(tiles, int):
        return emit.index_constant((tiles - 1).bit_length())
    wide = ir.IntegerType.get_signless(64)
    zeros = emit.create("math.ctlz", [wide], [emit.create("arith.index_cast", [wide], [emit.index_constant(tiles - 1)])])
    return emit.create("arith.index_cast", [ir.IndexType.get()], [emit.arith("subi", emit.number(64, wide), zeros)])
