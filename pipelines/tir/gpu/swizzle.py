"""The permutation of chunks of shared memory that lets threads access a column of lines without bank conflicts."""

from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit

CHUNK_BYTES = 16
"""Bytes that a thread moves at once at most."""
BANK_CHUNKS = 8
"""Chunks that fill all banks of shared memory."""


@dataclass(frozen=True)
class Swizzle:
    """Permutes the chunks in each line of a shared buffer.

    The position of a chunk is exclusive-or'ed with the number of its line. Lines that are shorter than all banks are counted in groups that
    fill the banks. As many neighbouring lines as chunks fill the banks then have chunks of the same number in different banks.

    Attributes:
      line, chunk: elements; powers of two.
      banks: the chunks that fill all banks.
    """

    line: int
    chunk: int
    banks: int = BANK_CHUNKS

    @property
    def period(self) -> int:
        """Elements after which the permutation repeats."""
        return self.banks * self._group

    @property
    def _group(self) -> int:
        return max(self.line, self.banks * self.chunk)

    def place(self, at: ir.Value) -> ir.Value:
        """The position of an element, or of the elements of a vector."""
        chunks = min(self.banks, self.line // self.chunk)
        group, bits, within = (emit.number(n, at.type) for n in (self._group.bit_length() - 1, chunks - 1, self.chunk.bit_length() - 1))
        number = emit.arith("andi", emit.arith("shrui", at, group), bits)
        return emit.arith("xori", at, emit.arith("shli", number, within))
