"""Keys in strips, whose sums stay in registers, and strips in blocks, whose scores stay in the first-level cache."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, even_parts
from relayc.symbolic import Dim, Size, ceil_div, maximum, minimum, proves

Counts = tuple[ir.Value, ir.Value]
"""How many strips of the larger and of the smaller size."""


@dataclass(frozen=True)
class KeyBlock:
    """A block of keys: the first one, and how many strips of each size it has."""

    base: Index
    counts: Counts


class Strips(ABC):
    """Keys in strips of two sizes; those of the larger size come first.

    Attributes:
      sizes: keys of a strip, for both.
      numbers: strips of each size.
      of_block: strips of the larger size that a block has.
      block_keys: keys of a block, at most: a number.
      before: rows that buffers of a block have before its first key.
      behind: and behind its last one.
    """

    sizes: tuple[int, int]
    numbers: tuple[Size, Size]
    of_block: Size
    block_keys: int
    before = 0
    behind = 0

    @staticmethod
    def of(keys: Size, most: int, of_block: int) -> "Strips":
        """Strips of at most `most` keys."""
        return OverlappingStrips(keys, most, of_block) if isinstance(keys, Dim) else EvenStrips(keys, most, of_block)

    @property
    @abstractmethod
    def blocks(self) -> Size:
        """How many blocks there are."""

    @abstractmethod
    def block(self, number: Index) -> KeyBlock:
        """A block."""

    @abstractmethod
    def keys_of(self, block: KeyBlock, counts: Counts) -> ir.Value:
        """Keys of some strips of each size, the first ones of a block."""

    def start(self, block: KeyBlock, kind: int, strip: Index, offset: Index) -> Index:
        """The first key of a strip of a size, relative to the block; `offset` is the start of the first strip of its size."""
        return strip * self.sizes[kind] + offset

    def key(self, block: KeyBlock, kind: int, key: Index) -> Index:
        """A key of a strip, relative to the block; a valid replacement if the key does not exist."""
        return key

    def first_kept(self, block: KeyBlock) -> ir.Value | int:
        """The first key, from the first one of the block on, that its strips read."""
        return 0

    def kinds(self, block: KeyBlock) -> Iterator[tuple[int, int, Index]]:
        """0 for the larger and 1 for the smaller size, the size, and where its strips begin in a block."""
        offset = Index.of(
            Var.below(self.block_keys, emit.arith("muli", block.counts[0], emit.index_constant(self.sizes[0])), name="offset")
        )
        for kind, first in enumerate((Index(), offset) if self.numbers[1] != 0 else (Index(),)):
            yield kind, self.sizes[kind], first

    def below(self, block: KeyBlock, limit: Index, counts_last: bool) -> Counts:
        """The number of strips of a block that end at or before a key; with `counts_last`, that begin before it."""
        found: list[ir.Value] = []
        value = emit.materialize(limit)
        for size, count in zip(self.sizes, block.counts, strict=True):
            if found:
                value = emit.arith("subi", value, emit.arith("muli", block.counts[0], emit.index_constant(self.sizes[0])))
            if not size:
                found.append(count)
                continue
            strips = emit.arith("ceildivsi" if counts_last else "floordivsi", value, emit.index_constant(size))
            found.append(emit.arith("minsi", emit.larger(strips, 0), count))
        return found[0], found[1]


class EvenStrips(Strips):
    """Strips of sizes that differ by one: none has so few keys that their sums wait for each other."""

    def __init__(self, keys: int, most: int, of_block: int) -> None:
        parts = even_parts(keys, most)
        larger = parts.count(parts[0])
        self.sizes = parts[0], parts[0] - 1
        self.larger, self.smaller = larger, len(parts) - larger
        self.numbers = self.larger, self.smaller
        self.of_block: int = of_block
        self.block_keys = min(keys, of_block * parts[0])

    @property
    def blocks(self) -> int:
        return ceil_div(self.larger + self.smaller, self.of_block)

    def block(self, number: Index) -> KeyBlock:
        strips = number * self.of_block
        larger = _clamped(strips * -1 + self.larger, self.of_block)
        every = _clamped(strips * -1 + (self.larger + self.smaller), self.of_block)
        base = strips * self.sizes[0]
        if (self.blocks - 1) * self.of_block > self.larger:
            before = emit.larger(emit.materialize(strips - self.larger), 0)
            base -= Var(0, self.smaller, before, name="smaller")
        return KeyBlock(base, (larger, emit.arith("subi", every, larger)))

    def keys_of(self, block: KeyBlock, counts: Counts) -> ir.Value:
        larger, smaller = counts
        keys = emit.arith("muli", larger, emit.index_constant(self.sizes[0]))
        return emit.arith("addi", keys, emit.arith("muli", smaller, emit.index_constant(self.sizes[1]))) if self.smaller else keys


class OverlappingStrips(Strips):
    """Strips of a symbolic number of keys: full strips, the last of which starts early so that it does not exceed the end. If the last one
    would have at most half of its keys new, and if there are fewer keys than a strip has, strips of half the size are used, in which the
    last key replaces missing ones. A score that is computed twice has the same value both times."""

    def __init__(self, keys: Dim, most: int, of_block: int) -> None:
        size, half = most, ceil_div(most, 2)
        self.keys = keys
        self.sizes = size, half
        # Zero if there are fewer keys than in a strip.
        whole = minimum((keys + (size - half - 1)) // size, keys // size * 2)
        self.numbers = whole, ceil_div(maximum(keys - whole * size, 0), half)
        # Blocks of about the same size; those of half the size are in the last one.
        self.last = maximum(ceil_div(whole, of_block), 1) - 1
        self.of_block = ceil_div(whole, self.last + 1)
        self.behind = 2 * half
        self.block_keys = of_block * size + self.behind
        self.before = size

    @property
    def blocks(self) -> Size:
        return self.last + 1

    def block(self, number: Index) -> KeyBlock:
        strips = number * self.of_block
        larger = emit.smaller(emit.larger(emit.materialize(strips * -1 + self.numbers[0]), 0), self.of_block)
        smaller = emit.index_constant(self.numbers[1])
        if not proves(lambda: self.last <= 0):
            is_last = emit.compare("eq", emit.materialize(number), emit.index_constant(self.last))
            smaller = emit.select(is_last, smaller, emit.index_constant(0))
        return KeyBlock(strips * self.sizes[0], (larger, smaller))

    def keys_of(self, block: KeyBlock, counts: Counts) -> ir.Value:
        larger, smaller = (emit.arith("muli", n, emit.index_constant(size)) for n, size in zip(counts, self.sizes, strict=True))
        return emit.arith("minsi", emit.arith("addi", larger, smaller), emit.materialize(block.base * -1 + self.keys))

    def start(self, block: KeyBlock, kind: int, strip: Index, offset: Index) -> Index:
        wanted = super().start(block, kind, strip, offset)
        if kind:
            return wanted
        last = emit.materialize(block.base * -1 + (self.keys - self.sizes[0]))
        return Index.of(Var(-self.before, self.block_keys - 1, emit.arith("minsi", emit.materialize(wanted), last), name="start"))

    def key(self, block: KeyBlock, kind: int, key: Index) -> Index:
        if not kind:
            return key
        last = emit.materialize(block.base * -1 + (self.keys - 1))
        return Index.of(Var.below(self.block_keys, emit.arith("minsi", emit.materialize(key), last), name="key"))

    def first_kept(self, block: KeyBlock) -> ir.Value | int:
        # The last block may begin with the strip that starts early, but there are no keys before the first.
        early = emit.smaller(emit.materialize(block.base * -1 + (self.keys - self.sizes[0])), 0)
        return emit.arith("maxsi", early, emit.materialize(block.base * -1))


class SingleStrips(Strips):
    """Strips of a symbolic number of keys of which each is in one strip only: full strips, then strips of one key in the last block."""

    def __init__(self, keys: Dim, most: int, of_block: int) -> None:
        self.sizes = most, 1
        self.numbers = keys // most, keys % most
        self.of_block: int = of_block
        self.block_keys = of_block * most + most - 1

    @property
    def blocks(self) -> Size:
        return maximum(ceil_div(self.numbers[0], self.of_block), 1)

    def block(self, number: Index) -> KeyBlock:
        strips = number * self.of_block
        larger = emit.smaller(emit.larger(emit.materialize(strips * -1 + self.numbers[0]), 0), self.of_block)
        is_last = emit.compare("eq", emit.materialize(number), emit.index_constant(self.blocks - 1))
        return KeyBlock(
            strips * self.sizes[0], (larger, emit.select(is_last, emit.index_constant(self.numbers[1]), emit.index_constant(0)))
        )

    def keys_of(self, block: KeyBlock, counts: Counts) -> ir.Value:
        return emit.arith("addi", emit.arith("muli", counts[0], emit.index_constant(self.sizes[0])), counts[1])


def _clamped(index: Index, most: int) -> ir.Value:
    """An index, but not less than 0 nor more than `most`."""
    low, high = index.bounds()
    value = emit.materialize(index)
    if high > most:
        value = emit.smaller(value, most)
    return emit.larger(value, 0) if low < 0 else value
