"""Sorting in shared memory: threads sort a few items each in registers, and then merge runs, twice as many threads together each time.

Of two runs that are merged every thread gives as many items as it has: where these begin in both runs it finds by halving (merge path).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Var
from relayc.pipelines.targets.gpu.sorting.orders import WORD, Item, Order, load_item, select, store_item
from relayc.pipelines.tir.gpu.launch import barrier


def word(value: int) -> ir.Value:
    """A constant position in shared memory: positions there have 32 bits."""
    return emit.number(value, ir.IntegerType.get_signless(WORD))


def to_word(index: ir.Value) -> ir.Value:
    return emit.create("arith.index_castui", [ir.IntegerType.get_signless(WORD)], [index])


def to_index(position: ir.Value) -> ir.Value:
    return emit.create("arith.index_castui", [ir.IndexType.get()], [position])


@dataclass(frozen=True)
class Run:
    """A sorted, contiguous run of items in shared memory: its start and length."""

    begin: ir.Value
    count: ir.Value

    @property
    def end(self) -> ir.Value:
        return emit.arith("addi", self.begin, self.count)


@dataclass(frozen=True)
class Group:
    """Threads that sort together.

    Attributes:
      threads: a power of two, 2 or more; items: of each.
      begin: position in shared memory of the items of the group.
      rank: number of the thread in the group; both have 32 bits.
    """

    threads: int
    items: int
    begin: ir.Value
    rank: ir.Value

    @property
    def own(self) -> ir.Value:
        """The position of the thread's items when all are in order."""
        return emit.arith("addi", self.begin, emit.arith("muli", self.rank, word(self.items)))

    def spread(self, i: int) -> ir.Value:
        """The position of an item if adjacent threads have one each, relative to the group."""
        return emit.arith("addi", self.rank, word(i * self.threads))


def exchanges(count: int) -> Iterator[tuple[int, int]]:
    """The exchanges that sort `count` items: merge exchange, by Batcher (Knuth, The Art of Computer Programming, 5.2.2, algorithm M)."""
    most = 1 << (count - 1).bit_length() >> 1
    p = most
    while p:
        q, r, d = most, 0, p
        while d:
            yield from ((i, i + d) for i in range(count - d) if i & p == r)
            d, q, r = q - p, q >> 1, p
        p >>= 1


def sort_registers(order: Order, items: Sequence[Item]) -> list[Item]:
    """Items of a thread in their order."""
    found = list(items)
    for i, j in exchanges(len(found)):
        found[i], found[j] = order.exchanged(found[i], found[j])
    return found


def sort_group(order: Order, shared: Sequence[ir.Value], group: Group, items: Sequence[Item]) -> list[Item]:
    """The items of the threads of a group in their order, those of a thread after those of the threads before it.

    All threads of the block come here: they wait for each other. Nobody uses the shared memory any more when they go on.

    Args:
      shared: a buffer for each word of an item, with one element more than all groups have items.
      items: of the thread, as many for each.
    """
    found, own, rounds = sort_registers(order, items), group.own, group.threads.bit_length() - 1
    round_ = Var.below(rounds, name="round")
    with emit.for_loop(0, rounds, 1, round_, flattened(found)) as loop:
        store_items(order_items(order, loop.inner_iter_args), shared, own)
        barrier()
        half = emit.arith("shli", word(1), to_word(round_.value))
        first = emit.arith("andi", group.rank, emit.arith("subi", word(0), emit.arith("shli", half, word(1))))
        count = emit.arith("muli", half, word(group.items))
        begin = emit.arith("addi", group.begin, emit.arith("muli", first, word(group.items)))
        a, b = Run(begin, count), Run(emit.arith("addi", begin, count), count)
        merged = merge(order, shared, a, b, emit.arith("subi", own, begin), group.items)
        barrier()
        emit.yield_values(flattened(merged))
    return order_items(order, loop.results)


def merge(order: Order, shared: Sequence[ir.Value], a: Run, b: Run, first: ir.Value, count: int) -> list[Item]:
    """Some items of two merged runs, from number `first` on; beyond the last item they are any."""
    taken = split(order, shared, a, b, first)
    i, j = emit.arith("addi", a.begin, taken), emit.arith("addi", b.begin, emit.arith("subi", first, taken))
    a_end, b_end = a.end, b.end
    next_a, next_b = (load_item(shared, to_index(at)) for at in (i, j))
    found = list[Item]()
    for n in range(count):
        is_later = emit.arith("ori", emit.compare("uge", i, a_end), order.before(next_b, next_a))
        from_b = emit.arith("andi", emit.compare("ult", j, b_end), is_later)
        found.append(select(from_b, next_b, next_a))
        if n + 1 < count:
            at = emit.arith("addi", emit.select(from_b, j, i), word(1))
            i, j = emit.select(from_b, i, at), emit.select(from_b, at, j)
            loaded = load_item(shared, to_index(at))
            next_a, next_b = select(from_b, next_a, loaded), select(from_b, loaded, next_b)
    return found


def split(order: Order, shared: Sequence[ir.Value], a: Run, b: Run, first: ir.Value) -> ir.Value:
    """How many of the `first` items of two merged runs are of the first run."""

    def goes_on(ends: Sequence[ir.Value]) -> ir.Value:
        return emit.compare("ult", *ends)

    def halve(ends: Sequence[ir.Value]) -> list[ir.Value]:
        low, high = ends
        middle = emit.arith("shrui", emit.arith("addi", low, high), word(1))
        behind = emit.arith("subi", emit.arith("subi", first, middle), word(1))
        of_a = load_item(shared, to_index(emit.arith("addi", a.begin, middle)))
        of_b = load_item(shared, to_index(emit.arith("addi", b.begin, behind)))
        is_later = order.before(of_b, of_a)
        return [emit.select(is_later, low, emit.arith("addi", middle, word(1))), emit.select(is_later, middle, high)]

    low = emit.arith("maxsi", emit.arith("subi", first, b.count), word(0))
    return emit.repeat_while([low, emit.arith("minsi", first, a.count)], goes_on, halve)[0]


# ---- items as values that loops carry, and in shared memory


def flattened(items: Sequence[Item]) -> list[ir.Value]:
    """The words of items, concatenated."""
    return [part for item in items for part in item]


def order_items(order: Order, words: Sequence[ir.Value]) -> list[Item]:
    """Items built from words."""
    size = len(order.widths)
    return [tuple(words[i : i + size]) for i in range(0, len(words), size)]


def store_items(items: Sequence[Item], shared: Sequence[ir.Value], begin: ir.Value) -> None:
    """Items side by side from a position on."""
    for i, item in enumerate(items):
        store_item(item, shared, to_index(emit.arith("addi", begin, word(i))))
