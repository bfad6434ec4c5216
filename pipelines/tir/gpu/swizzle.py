"""The permutation of chunks of shared memory that lets threads access a column of lines without bank conflicts."""

from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit

BANK_CHUNKS = 8
"""Chunks of 16 bytes that fill all banks of shared memory."""


@dataclass(frozen=True)
class Swizzle:
    """Permutes the chunks of 16 bytes in each line of a shared buffer.

    The position of a chunk is exclusive-or'ed with the number of its line. Lines that are shorter than all banks are counted in groups that
    fill the banks. Eight neighbouring lines then have chunks of the same number in eight different banks.

    Attributes:
      line, chunk: elements; powers of two.
    """

    line: int
    chunk: int

    @property
    def period(self) -> int:
        """Elements after which the permutation repeats."""
        return BANK_CHUNKS * self._group

    @property
    def _group(self) -> int:
        return max(self.line, BANK_CHUNKS * self.chunk)

    def place(self, at: ir.Value) -> ir.Value:
        """The position of an element, or of the elements of a vector."""
        chunks = min(BANK_CHUNKS, self.line // self.chunk)
        group, bits, within = (emit.number(n, at.type) for n in (self._group.bit_length() - 1, chunks - 1, self.chunk.bit_length() - 1))
        number = emit.arith("andi", emit.arith("shrui", at, group), bits)
        return emit.arith("xori", at, emit.arith("shli", number, within))
