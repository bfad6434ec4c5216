"""Signatures of the packed functions of a module: produced from the programs, used by code generation."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from relayc.runtime.artifact import TensorSpec
from relayc.runtime.shapes import SymbolSource


@dataclass(frozen=True)
class PackedEntry:
    """The arguments of a packed function.

    Attributes:
      tensors: inputs, outputs, and further tensors of a program: the arena, which may be larger than specified, and the parameters.
      symbols: names of the symbols that the function takes as i64.
      blobs: the number of tensors after its symbols.
      sources: sources of the symbols; empty if they are integers after the tensors.
      ranges: bounds of symbols, by name.
      depth: a last i64 argument, if it is not 0.
      memory, defined: numbers of addresses and sizes that it returns after its status: the entry writes them to the last of the tensors, of
        int64, which the function does not take.
      context: whether its last argument is the address of information about the device (LoadedProgram.context), an integer after tensors
        and symbols. Returned memory and sizes of such a function are written to the address that the context gives.
    """

    tensors: tuple[TensorSpec, ...]
    symbols: tuple[str, ...] = ()
    blobs: int = 0
    sources: tuple[SymbolSource, ...] = ()
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    depth: int = 0
    memory: int = 0
    defined: int = 0
    context: bool = False

    @property
    def sizes(self) -> int:
        """The number of symbol values after the tensors of a call."""
        return 0 if self.sources else len(self.symbols)

    @property
    def integers(self) -> int:
        """The number of integers after the tensors of a call."""
        return self.sizes + self.context

    def on_device(self) -> "PackedEntry":
        """The same entry with a context."""
        return replace(self, tensors=self.taken, context=True)

    @property
    def arena(self) -> int:
        """The position of the arena among the tensors; -1 for none."""
        return len(self.taken) - 2 if self.blobs else -1

    @property
    def taken(self) -> tuple[TensorSpec, ...]:
        """The tensors that the function takes."""
        return self.tensors[:-1] if self.memory and not self.context else self.tensors
