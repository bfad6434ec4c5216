"""Items: the values that threads move while they sort, one or two words in registers, in a total order.

An item contains the key of an element and its position in the line, in one word if both fit, so that sorting is stable. Elements that are
indistinguishable when equal (integers without requested positions) are represented by keys alone. A sentinel that represents no item sorts
after all items.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.sorting.keys import Key, bits
from relayc.pipelines.te.read.sorting import VALUES, Sorting
from relayc.pipelines.tir.values.buffers import view
from relayc.symbolic import Size, proves

Item: TypeAlias = tuple[ir.Value, ...]

WORD, WIDE = 32, 64
"""Bits of the words of items; a position in a word of its own has WORD bits."""
MOST_ITEMS = (1 << WORD) - 1
"""Maximum items in a line: positions and the sentinel have WORD bits."""


@dataclass(frozen=True)
class Line:
    """The start of a line in the flat buffers of the input and of the results."""

    source: ir.Value
    result: ir.Value


class Order(ABC):
    """Items of a sort.

    Attributes:
      widths: bits of the words of an item.
      sorting: the operation.
      source: the flat buffer of the input; outputs: the buffers of the results.
    """

    widths: tuple[int, ...]

    def __init__(self, sorting: Sorting, source: ir.Value, outputs: Sequence[ir.Value]) -> None:
        self.sorting, self.source, self.outputs = sorting, source, outputs

    @property
    def words(self) -> list[ir.Type]:
        """Types of the words of an item."""
        return [ir.IntegerType.get_signless(width) for width in self.widths]

    def none(self) -> Item:
        """The sentinel, which sorts after all items."""
        return tuple(bits((1 << width) - 1, width) for width in self.widths)

    def line(self, number: ir.Value) -> Line:
        """Line `number` (an index)."""
        s, zero = self.sorting, emit.index_constant(0)
        outer, within = number, zero
        if not proves(lambda: s.inner == 1):
            inner = emit.index_constant(s.inner)
            outer, within = emit.arith("divui", number, inner), emit.arith("remui", number, inner)
        begins = [emit.arith("muli", outer, emit.index_constant(size * s.inner)) for size in (s.size, s.count)]
        return Line(*(emit.arith("addi", begin, within) for begin in begins))

    def _at(self, begin: ir.Value, place: ir.Value) -> ir.Value:
        return emit.arith("addi", begin, emit.arith("muli", place, emit.index_constant(self.sorting.inner)))

    @abstractmethod
    def load(self, line: Line, place: ir.Value) -> Item:
        """The item of the element at a place (an index) of a line."""

    @abstractmethod
    def before(self, b: Item, a: Item) -> ir.Value:
        """i1: whether item b comes strictly before item a."""

    @abstractmethod
    def place(self, item: Item) -> ir.Value | None:
        """The position of an item's element in its line, an index; None if items do not contain it."""

    def value(self, item: Item, line: Line) -> ir.Value:
        """The element of an item that contains its position."""
        at = self.place(item)
        assert at is not None
        return emit.create("memref.load", [self.source.type.element_type], [self.source, self._at(line.source, at)])

    def exchanged(self, a: Item, b: Item) -> tuple[Item, Item]:
        """Two items in their order."""
        swaps = self.before(b, a)
        return select(swaps, b, a), select(swaps, a, b)

    def store(self, line: Line, place: ir.Value, item: Item) -> None:
        """Writes the element of an item to a position of a sorted line."""
        to = self._at(line.result, place)
        for kind, output in zip(self.sorting.results, self.outputs, strict=True):
            if kind == VALUES:
                stored = self.value(item, line)
            else:
                at = self.place(item)
                assert at is not None  # items contain positions, because positions are a result
                stored = emit.create("arith.index_castui", [output.type.element_type], [at])
            emit.create("memref.store", [], [stored, output, to])


def order_of(sorting: Sorting, source: ir.Value, outputs: Sequence[ir.Value]) -> Order:
    """The items of a sort."""
    return (_Rows if sorting.columns is not None else _Keys)(sorting, source, outputs)


def key_of(sorting: Sorting) -> Key:
    """The keys of the sorted elements."""
    return Key(sorting.dtype, sorting.source.element.width, sorting.descending)


def item_widths(sorting: Sorting) -> tuple[int, ...]:
    """Bits of the words of the items of a sort."""
    if sorting.columns is not None:
        return (WORD,)
    key = key_of(sorting)
    if _is_key_alone(sorting):
        return (max(WORD, key.width),)
    if key.width < WORD and proves(lambda: sorting.size < 1 << (WORD - key.width)):
        return (WORD,)
    return (WIDE,) if key.width <= WORD else (WIDE, WORD)


def _is_key_alone(sorting: Sorting) -> bool:
    return set(sorting.results) == {VALUES} and key_of(sorting).is_reversible


def select(condition: ir.Value, a: Item, b: Item) -> Item:
    """Item `a` if a condition holds, otherwise `b`."""
    return tuple(emit.select(condition, x, y) for x, y in zip(a, b, strict=True))


def load_item(buffers: Sequence[ir.Value], at: ir.Value) -> Item:
    """The item at an index of buffers, one for each word."""
    return tuple(emit.create("memref.load", [buffer.type.element_type], [buffer, at]) for buffer in buffers)


def item_or_none(order: "Order", place: ir.Value, size: Size, load: Callable[[ir.Value], Item]) -> Item:
    """The item at a place (an index) where there is one. Beyond the end the last one is read: so no load waits for a branch."""
    inside = emit.compare("ult", place, emit.index_constant(size))
    return select(inside, load(emit.arith("minui", place, emit.index_constant(size - 1))), order.none())


def items_bytes(count: Size, widths: Sequence[int]) -> Size:
    """Bytes of items with words of the given widths."""
    return count * (sum(widths) // 8)


def workspace_items(order: "Order", workspace: ir.Value, count: Size) -> list[ir.Value]:
    """The buffers of items in a workspace, one behind the other, one for each word."""
    found = list[ir.Value]()
    begin: Size = 0
    for width, type_ in zip(order.widths, order.words, strict=True):
        found.append(view(workspace, begin, count, type_))
        begin = begin + count * (width // 8)
    return found


def store_item(item: Item, buffers: Sequence[ir.Value], at: ir.Value) -> None:
    for word, buffer in zip(item, buffers, strict=True):
        emit.create("memref.store", [], [word, buffer, at])


class _Keys(Order):
    """Items of elements: a key, a key with a position in its lower bits, or a key and a position in separate words."""

    def __init__(self, sorting: Sorting, source: ir.Value, outputs: Sequence[ir.Value]) -> None:
        super().__init__(sorting, source, outputs)
        self.widths = item_widths(sorting)
        self.key = key_of(sorting)

    @cached_property
    def _is_alone(self) -> bool:
        return _is_key_alone(self.sorting)

    def load(self, line: Line, place: ir.Value) -> Item:
        element = emit.create("memref.load", [self.source.type.element_type], [self.source, self._at(line.source, place)])
        key = self.key.of(element)
        width, type_ = self.widths[0], self.words[0]
        if self.key.width < width:
            key = emit.create("arith.extui", [type_], [key])
        if self._is_alone:
            return (key,)
        number = emit.create("arith.index_castui", [self.words[-1]], [place])
        if len(self.widths) > 1:
            return key, number
        shift = WORD if width == WIDE else WORD - self.key.width
        return (emit.arith("ori", emit.arith("shli", key, bits(shift, width)), number),)

    def before(self, b: Item, a: Item) -> ir.Value:
        found = emit.compare("ult", b[-1], a[-1])
        for x, y in zip(b[:-1], a[:-1], strict=True):
            same = emit.arith("andi", emit.compare("eq", x, y), found)
            found = emit.arith("ori", emit.compare("ult", x, y), same)
        return found

    def exchanged(self, a: Item, b: Item) -> tuple[Item, Item]:
        if len(a) > 1:
            return super().exchanged(a, b)
        return (emit.arith("minui", a[0], b[0]),), (emit.arith("maxui", a[0], b[0]),)

    def place(self, item: Item) -> ir.Value | None:
        if self._is_alone:
            return None
        number = item[-1]
        if self.widths == (WIDE,):
            number = emit.create("arith.trunci", [ir.IntegerType.get_signless(WORD)], [number])
        elif self.widths == (WORD,):
            number = emit.arith("andi", number, bits((1 << (WORD - self.key.width)) - 1, WORD))
        return emit.create("arith.index_castui", [ir.IndexType.get()], [number])

    def value(self, item: Item, line: Line) -> ir.Value:
        """Read from the source if the key does not determine it: all NaN have one key, and so have both zeros."""
        if not self._is_alone:
            return super().value(item, line)
        key = item[0]
        if self.key.width < self.widths[0]:
            key = emit.create("arith.trunci", [ir.IntegerType.get_signless(self.key.width)], [key])
        return self.key.element(key)


class _Rows(Order):
    """Items of rows: their positions. Rows are compared in memory, up to the first elements that differ."""

    widths = (WORD,)

    def line(self, number: ir.Value) -> Line:
        return Line(emit.index_constant(0), emit.index_constant(0))

    def load(self, line: Line, place: ir.Value) -> Item:
        return (emit.create("arith.index_castui", [self.words[0]], [place]),)

    def before(self, b: Item, a: Item) -> ir.Value:
        sooner = emit.compare("ult", b[0], a[0])
        none = self.none()[0]
        are_rows = emit.arith("andi", emit.compare("ne", a[0], none), emit.compare("ne", b[0], none))
        return emit.chosen(are_rows, lambda: [self._compared(b, a, sooner)], [sooner])[0]

    def _compared(self, b: Item, a: Item, sooner: ir.Value) -> ir.Value:
        """If all elements are equal, the earlier row is first."""
        columns = self.sorting.columns
        assert columns is not None  # these are rows
        key, flag = key_of(self.sorting), ir.IntegerType.get_signless(1)
        begins = [emit.arith("muli", self._index(row), emit.index_constant(columns)) for row in (b, a)]
        yes, no = emit.number(1, flag), emit.number(0, flag)

        def goes_on(carried: Sequence[ir.Value]) -> ir.Value:
            column, same, _ = carried
            return emit.arith("andi", same, emit.compare("ult", column, emit.index_constant(columns)))

        def step(carried: Sequence[ir.Value]) -> list[ir.Value]:
            column, _, _ = carried
            at = [emit.arith("addi", begin, column) for begin in begins]
            x, y = (key.of(emit.create("memref.load", [self.source.type.element_type], [self.source, i])) for i in at)
            return [emit.arith("addi", column, emit.index_constant(1)), emit.compare("eq", x, y), emit.compare("ult", x, y)]

        _, same, smaller = emit.repeat_while([emit.index_constant(0), yes, no], goes_on, step)
        return emit.select(same, sooner, smaller)

    @staticmethod
    def _index(item: Item) -> ir.Value:
        return emit.create("arith.index_castui", [ir.IndexType.get()], [item[0]])

    def place(self, item: Item) -> ir.Value | None:
        return self._index(item)
