"""The first few items of long lines, without sorting these.

A block goes along its part of a line. It keeps the first items so far, in their order, and behind them in shared memory those that it has
met since and that come before the last of these: most items of a line cost one comparison. When there is no room for more, all of them are
sorted. Where several blocks share a line, another launch sorts what they leave in the workspace.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import arith, ir, memref
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Var
from relayc.pipelines.targets.gpu.sorting.lines import Shape, sort_lines
from relayc.pipelines.targets.gpu.sorting.merging import Group, sort_group, store_items, to_index, to_word, word
from relayc.pipelines.targets.gpu.sorting.orders import Item, Line, Order, items_bytes, load_item, select, store_item, workspace_items
from relayc.pipelines.tir.gpu.launch import barrier, launch
from relayc.symbolic import Size, ceil_div


@dataclass(frozen=True)
class Selection:
    """How the first items of lines are selected.

    Attributes:
      lines, size: how many lines there are, and items of a line, one or more.
      count: first items that are wanted, at most `most_count(shape)`.
      shape: of the blocks, of one line each.
      parts: blocks of a line, with which `parts * count` is at most the capacity of a block.
    """

    lines: Size
    size: Size
    count: int
    shape: Shape
    parts: int

    @property
    def met(self) -> int:
        """Items that each thread meets before anyone asks whether there is room: there always is for these."""
        return _met(self.shape)

    @property
    def left(self) -> Size:
        """Items that the blocks of all lines leave."""
        return self.lines * self.parts * self.count

    def workspace_bytes(self, widths: Sequence[int]) -> Size:
        """For items with words of the given widths."""
        return 0 if self.parts == 1 else items_bytes(self.left, widths)


def _met(shape: Shape) -> int:
    return max(1, shape.items // 2)


def most_count(shape: Shape) -> int:
    """The most first items for which blocks have room."""
    return shape.capacity - _met(shape) * shape.threads


def select_first(order: Order, selection: Selection, workspace: ir.Value | None) -> None:
    """Launches the selection of the first items; the number of lines may be zero."""
    buffers: list[ir.Value] = []
    if workspace is not None:
        buffers = workspace_items(order, workspace, selection.left)
    _Selection(order, selection, buffers).launch()
    if buffers:
        found = selection.parts * selection.count

        def read(number: ir.Value, _: Line, place: ir.Value) -> Item:
            return load_item(buffers, emit.arith("addi", emit.arith("muli", number, emit.index_constant(found)), place))

        sort_lines(order, selection.lines, found, selection.shape, read)


class _Selection:
    def __init__(self, order: Order, selection: Selection, buffers: Sequence[ir.Value]) -> None:
        self.order, self.s, self.buffers = order, selection, buffers

    def launch(self) -> None:
        s, order = self.s, self.order
        i32 = ir.IntegerType.get_signless(32)
        with launch([s.lines * s.parts], s.shape.threads, [*s.shape.shared(order), (1, i32)]) as made:
            *self.shared, self.counter = made.shared
            self.thread, block = made.thread.value, made.block[0].value
            self.group = Group(s.shape.threads, s.shape.items, word(0), to_word(self.thread))
            parts = emit.index_constant(s.parts)
            number, part = emit.arith("divui", block, parts), emit.arith("remui", block, parts)
            self.line = order.line(number)
            length = emit.index_constant(ceil_div(s.size, s.parts))
            begin = emit.arith("muli", part, length)
            self.end = emit.smaller(emit.arith("addi", begin, length), s.size)
            self._begin()
            self._go_along(begin)
            self._store(number, block)

    def _begin(self) -> None:
        """No items are known yet."""
        for i in range(ceil_div(self.s.count, self.s.shape.threads)):
            self._if_first(i, lambda at: store_item(self.order.none(), self.shared, at))
        self._reset()
        barrier()

    def _reset(self) -> None:
        with emit.if_all([emit.compare("eq", self.thread, emit.index_constant(0))]):
            emit.create("memref.store", [], [word(0), self.counter, emit.index_constant(0)])

    def _if_first(self, i: int, code: Callable[[ir.Value], None]) -> None:
        """Code for place `i` of the thread among the first items, an index, where it is one."""
        at = to_index(self.group.spread(i))
        with emit.if_all([emit.compare("ult", at, emit.index_constant(self.s.count))]):
            code(at)

    def _go_along(self, begin: ir.Value) -> None:
        s, place = self.s, Var(0, 0, name="place")
        step = s.met * s.shape.threads
        with emit.for_loop(begin, self.end, step, place, self.order.none()) as loop:
            last: Item = tuple(loop.inner_iter_args)
            self._meet(place.value, last)
            barrier()
            known = emit.create("memref.load", [word(0).type], [self.counter, emit.index_constant(0)])
            barrier()
            following = emit.arith("addi", place.value, emit.index_constant(step))
            is_full = emit.compare("ugt", known, word(s.shape.capacity - s.count - step))
            is_last = emit.compare("sge", following, self.end)
            sorts = emit.arith("ori", is_full, is_last)
            emit.yield_values(emit.chosen(sorts, lambda: self._sort(known), last))

    def _meet(self, first: ir.Value, last: Item) -> None:
        """Keeps those of the items from a place on that come before the last of the first ones."""
        s, order = self.s, self.order
        places, items = [], []
        for i in range(s.met):
            places.append(emit.arith("addi", first, to_index(self.group.spread(i))))
            nearest = emit.arith("minui", places[-1], emit.arith("subi", self.end, emit.index_constant(1)))
            items.append(order.load(self.line, nearest))
        for at, item in zip(places, items, strict=True):
            keeps = emit.arith("andi", emit.compare("ult", at, self.end), order.before(item, last))
            with emit.if_all([keeps]):
                taken = memref.AtomicRMWOp(arith.AtomicRMWKind.addi, word(1), self.counter, [emit.index_constant(0)]).result
                store_item(item, self.shared, to_index(emit.arith("addi", taken, word(s.count))))

    def _sort(self, known: ir.Value) -> Item:
        """Sorts the current first items and the new candidates; returns the last of the new first items."""
        s, order = self.s, self.order
        filled = emit.arith("addi", known, word(s.count))
        items = []
        for i in range(s.shape.items):
            at = self.group.spread(i)
            items.append(select(emit.compare("ult", at, filled), load_item(self.shared, to_index(at)), order.none()))
        barrier()
        found = sort_group(order, self.shared, self.group, items)
        store_items(found, self.shared, self.group.own)
        self._reset()
        barrier()
        return load_item(self.shared, emit.index_constant(s.count - 1))

    def _store(self, number: ir.Value, block: ir.Value) -> None:
        for i in range(ceil_div(self.s.count, self.s.shape.threads)):
            self._if_first(i, lambda at: self._store_one(at, block))

    def _store_one(self, at: ir.Value, block: ir.Value) -> None:
        item = load_item(self.shared, at)
        if self.buffers:
            to = emit.arith("addi", emit.arith("muli", block, emit.index_constant(self.s.count)), at)
            store_item(item, self.buffers, to)
        else:
            self.order.store(self.line, at, item)
