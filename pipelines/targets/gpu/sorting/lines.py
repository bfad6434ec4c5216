"""Lines that a block sorts in its shared memory, several short ones at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.sorting.merging import Group, sort_group, store_items, to_index, to_word, word
from relayc.pipelines.targets.gpu.sorting.orders import Item, Line, Order, item_or_none, load_item
from relayc.pipelines.tir.gpu.launch import barrier, launch
from relayc.symbolic import Size, ceil_div, minimum, proves


@dataclass(frozen=True)
class Shape:
    """The blocks of a launch.

    Attributes:
      threads: of a line, a power of two, 2 or more.
      items: of a thread.
      lines: of a block.
    """

    threads: int
    items: int
    lines: int = 1

    @property
    def capacity(self) -> int:
        """Items of a line at most."""
        return self.threads * self.items

    def shared(self, order: Order) -> list[tuple[int, ir.Type]]:
        """The buffers of a block: one element more than there are items is read, and not used."""
        return [(self.lines * self.capacity + 1, type_) for type_ in order.words]


@dataclass(frozen=True)
class ThreadPosition:
    """The position of a thread.

    Attributes:
      group: the threads of its line.
      number: of its line; is_line: whether a line with this number exists.
    """

    group: Group
    number: ir.Value
    is_line: ir.Value | None


Read = Callable[[ir.Value, Line, ir.Value], Item]
"""Gives an item of a line, by the number of the line (an index), the line, and the place of the item in it (an index)."""


def sort_lines(order: Order, lines: Size, size: Size, shape: Shape, read: Read | None = None) -> None:
    """Launches blocks that sort lines of at most `shape.capacity` items and store the results; no launch if lines are empty.

    Args:
      size: items of a line.
      read: loads items; by default from the sorted tensor.
    """
    wanted = read or (lambda number, line, place: order.load(line, place))
    # Threads side by side read elements side by side: of one line, or of several where these lie across.
    across = not proves(lambda: order.sorting.inner == 1)
    grid = ceil_div(lines, shape.lines) * minimum(size, 1)
    with launch([grid], shape.threads * shape.lines, shape.shared(order)) as made:
        place = _place(made.block[0].value, made.thread.value, shape, lines, across)
        line = order.line(place.number)
        items = [_item(order, place, line, i, size, wanted) for i in range(shape.items)]
        store_items(sort_group(order, made.shared, place.group, items), made.shared, place.group.own)
        barrier()
        for i in range(shape.items):
            _store(order, made.shared, place, line, i)


def _place(block: ir.Value, thread: ir.Value, shape: Shape, lines: Size, across: bool) -> ThreadPosition:
    number = to_word(thread)
    if shape.lines == 1:
        return ThreadPosition(Group(shape.threads, shape.items, word(0), number), block, None)
    by = word(shape.lines if across else shape.threads)
    quotient, rest = emit.arith("divui", number, by), emit.arith("remui", number, by)
    group, rank = (rest, quotient) if across else (quotient, rest)
    begin = emit.arith("muli", group, word(shape.capacity))
    line = emit.arith("addi", emit.arith("muli", block, emit.index_constant(shape.lines)), to_index(group))
    if proves(lambda: lines % shape.lines == 0):
        return ThreadPosition(Group(shape.threads, shape.items, begin, rank), line, None)
    is_line = emit.compare("ult", line, emit.index_constant(lines))
    # Threads without a line sort the last one as well, and store nothing.
    last = emit.index_constant(lines - 1)
    return ThreadPosition(Group(shape.threads, shape.items, begin, rank), emit.arith("minui", line, last), is_line)


def _item(order: Order, place: ThreadPosition, line: Line, i: int, size: Size, read: Read) -> Item:
    """Item `i` that a thread begins with."""
    at = to_index(place.group.spread(i))
    if proves(lambda: size >= (i + 1) * place.group.threads):
        return read(place.number, line, at)
    return item_or_none(order, at, size, lambda nearest: read(place.number, line, nearest))


def _store(order: Order, shared: Sequence[ir.Value], place: ThreadPosition, line: Line, i: int) -> None:
    """Stores item `i` of those that threads side by side store side by side."""
    count, threads = order.sorting.count, place.group.threads
    if proves(lambda: count <= i * threads):
        return
    at = place.group.spread(i)
    conditions = [] if place.is_line is None else [place.is_line]
    if not proves(lambda: count >= (i + 1) * threads):
        conditions.append(emit.compare("ult", to_index(at), emit.index_constant(count)))
    with emit.if_all(conditions):
        order.store(line, to_index(at), load_item(shared, to_index(emit.arith("addi", place.group.begin, at))))
