"""Keys in strips, whose sums stay in registers, and strips in blocks, whose scores stay in the first-level cache."""

from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.kernel.index import Index, Var, even_parts
from relayc.pipelines.tir import emit
from relayc.symbolic import ceil_div

Counts = tuple[ir.Value, ir.Value]
"""How many strips of the larger and of the smaller size."""


@dataclass(frozen=True)
class KeyBlock:
    """A block of keys: the first one, and how many strips of each size it has."""

    base: Index
    counts: Counts


@dataclass(frozen=True)
class Strips:
    """Keys in strips of two sizes that differ by one: none has so few keys that their sums wait for each other.

    Attributes:
      keys: all of them.
      size: keys of a larger strip; a smaller one has one less.
      larger, smaller: strips of each size; the larger ones come first.
      of_block: strips of a block, at most.
    """

    keys: int
    size: int
    larger: int
    smaller: int
    of_block: int

    @staticmethod
    def of(keys: int, most: int, of_block: int) -> "Strips":
        """Strips of at most `most` keys."""
        sizes = even_parts(keys, most)
        larger = sizes.count(sizes[0])
        return Strips(keys, sizes[0], larger, len(sizes) - larger, of_block)

    @property
    def blocks(self) -> int:
        return ceil_div(self.larger + self.smaller, self.of_block)

    @property
    def block_keys(self) -> int:
        """Keys of a block, at most."""
        return min(self.keys, self.of_block * self.size)

    def block(self, number: Index) -> KeyBlock:
        """A block: all strips of the larger size come before those of the smaller."""
        strips = number * self.of_block
        larger = _clamped(strips * -1 + self.larger, self.of_block)
        every = _clamped(strips * -1 + (self.larger + self.smaller), self.of_block)
        base = strips * self.size
        if (self.blocks - 1) * self.of_block > self.larger:
            before = emit.larger(emit.materialize(strips - self.larger), 0)
            base -= Var(0, self.smaller, before, name="smaller")
        return KeyBlock(base, (larger, emit.arith("subi", every, larger)))

    def keys_of(self, counts: Counts) -> ir.Value:
        """Keys of some strips of each size."""
        larger, smaller = counts
        keys = emit.arith("muli", larger, emit.index_constant(self.size))
        return emit.arith("addi", keys, emit.arith("muli", smaller, emit.index_constant(self.size - 1))) if self.smaller else keys

    def before(self, block: KeyBlock, limit: Index, counts_last: bool) -> Counts:
        """How many strips of a block end at a key or before it; with `counts_last` how many begin before it."""
        found: list[ir.Value] = []
        value = emit.materialize(limit)
        for size, count in zip((self.size, self.size - 1), block.counts, strict=True):
            if found:
                value = emit.arith("subi", value, emit.arith("muli", block.counts[0], emit.index_constant(self.size)))
            if not size:
                found.append(count)
                continue
            strips = emit.arith("ceildivsi" if counts_last else "floordivsi", value, emit.index_constant(size))
            found.append(emit.arith("minsi", emit.larger(strips, 0), count))
        return found[0], found[1]


def _clamped(index: Index, most: int) -> ir.Value:
    """An index, but not less than 0 nor more than `most`."""
    low, high = index.bounds()
    value = emit.materialize(index)
    if high > most:
        value = emit.smaller(value, most)
    return emit.larger(value, 0) if low < 0 else value
