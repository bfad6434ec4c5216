"""What the packed functions of a module take: said by whoever knows the programs, read by code generation."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from relayc.runtime.artifact import TensorSpec
from relayc.runtime.shapes import SymbolSource


@dataclass(frozen=True)
class PackedEntry:
    """What a packed function takes.

    Attributes:
      tensors: inputs, outputs, and what a program takes behind them: the arena, which may be larger than said, and the parameters.
      symbols: names of the symbols that the function takes as i64.
      blobs: how many of the tensors it takes behind its symbols.
      sources: where the symbols come from; nothing where they are integers behind the tensors.
      ranges: bounds of symbols, by name.
      depth: what it takes as a last i64, where that is not 0.
      memory, defined: how many addresses and sizes it gives behind its status: the entry writes them to the last of the tensors, of int64,
        which the function does not take.
      context: whether it takes as the last argument of all an address of what code is told of the device (LoadedProgram.context), an
        integer behind tensors and symbols. Memory and sizes that such a function gives are written where the context says.
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
        """How many values of symbols follow the tensors of a call."""
        return 0 if self.sources else len(self.symbols)

    @property
    def integers(self) -> int:
        """How many integers follow the tensors of a call."""
        return self.sizes + self.context

    def on_device(self) -> "PackedEntry":
        """The same with a context."""
        return replace(self, tensors=self.taken, context=True)

    @property
    def arena(self) -> int:
        """Which tensor is the arena; -1 for none."""
        return len(self.taken) - 2 if self.blobs else -1

    @property
    def taken(self) -> tuple[TensorSpec, ...]:
        """The tensors that the function takes."""
        return self.tensors[:-1] if self.memory and not self.context else self.tensors
