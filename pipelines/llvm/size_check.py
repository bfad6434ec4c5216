"""The check of the sizes of a call from outside: one function, which interprets a short program of each entry.

A program computes the symbols, and checks dimensions and symbols. It is in the table of the entries as pairs of numbers, an instruction and
its operand, for a stack machine: so an entry costs numbers, not code.
"""

from collections.abc import Sequence
from enum import IntEnum

from relayc.pipelines.emission.mlir_text import loaded_word, mlir_texts
from relayc.symbolic import Atom, Extreme, Size

MOST_VALUES = 16
"""Limit of the numbers in an error message."""


class Do(IntEnum):
    """The instructions, with the value that they push: `n` is the operand, a and b are the numbers that they pop."""

    END = 0  # the call is valid
    NUMBER = 1  # n
    SYMBOL = 2  # the value of symbol n
    DIMENSION = 3  # of the DLTensor at n >> 16, its dimension n & 0xffff
    KIND = 4  # of argument n
    INTEGER = 5  # the value of argument n
    MULTIPLY = 6
    ADD = 7
    FLOOR = 8  # floor(a / max(b, 1))
    MIN = 9
    MAX = 10
    SET = 11  # nothing: pops the value of symbol n
    EQUAL = 12  # nothing: where a = b, the next n words are skipped
    AT_LEAST = 13  # nothing: where a >= b, the next n words are skipped
    RAISE = 14  # ends with a ValueError, of the text at n with the numbers of the stack
    RAISE_TENSOR = 15  # ends with a ValueError about a tensor, with the note at n: its number, its row in the entry, where its DLTensor is


class SizeProgram:
    """A program under construction.

    Attributes:
      words: the instructions so far.
      depth: maximum depth of the stack.
    """

    def __init__(self, symbols: Sequence[str]) -> None:
        self.words: list[int] = []
        self.depth = 0
        self._symbols = {name: i for i, name in enumerate(symbols)}
        self._height = 0

    @property
    def room(self) -> int:
        """The number of places that the function needs to run the program."""
        return 2 + max(self.depth, MOST_VALUES)

    def do(self, what: Do, operand: int = 0, pushes: int = 0) -> None:
        """Adds an instruction that changes the depth of the stack by `pushes`."""
        self.words += [what.value, operand]
        self._height += pushes
        self.depth = max(self.depth, self._height)

    def number(self, value: int) -> None:
        self.do(Do.NUMBER, value, 1)

    def dimension(self, place: int, axis: int) -> None:
        """Pushes a dimension of the DLTensor at a place."""
        self.do(Do.DIMENSION, place << 16 | axis, 1)

    def set(self, name: str) -> None:
        """Pops the value of a symbol."""
        self.do(Do.SET, self._symbols[name], -1)

    def size(self, size: Size) -> None:
        """Pushes the value of a size. Numbers beyond 64 bits become the largest one."""
        if isinstance(size, int):
            self.number(size)
            return
        for i, (monomial, factor) in enumerate(size.terms.items()):
            if factor != 1 or not monomial:
                self.number(factor)
            for j, atom in enumerate(monomial):
                self._atom(atom)
                if j or factor != 1:
                    self.do(Do.MULTIPLY, 0, -1)
            if i:
                self.do(Do.ADD, 0, -1)

    def _atom(self, atom: Atom) -> None:
        if isinstance(atom, str):
            self.do(Do.SYMBOL, self._symbols[atom], 1)
        elif isinstance(atom, Extreme):
            for i, arg in enumerate(atom.args):
                self.size(arg)
                if i:
                    self.do(Do.MIN if atom.kind == "min" else Do.MAX, 0, -1)
        else:
            self.size(atom.num)
            self.size(atom.den)
            self.do(Do.FLOOR, 0, -1)

    def demand(self, relation: Do, otherwise: "SizeProgram") -> None:
        """Continues if the relation (EQUAL or AT_LEAST) of the top two numbers holds; otherwise runs another program, which terminates."""
        self.do(relation, len(otherwise.words), -2)
        self.words += otherwise.words
        self.depth = max(self.depth, otherwise.depth)


# Stack: %top is the position of the next number, and two unused places are at its start. The number of places precedes the program.
_MLIR = mlir_texts(__file__)
_FUNCTION = _MLIR["function"]


def size_function(value_error: int) -> str:
    """The function that runs programs, each preceded by its number of places. `value_error` is the offset of that message."""
    cases = ",\n    ".join(f"{what.value}: ^{what.name.lower()}" for what in Do if what is not Do.END)
    values = range(MOST_VALUES)
    return _FUNCTION.substitute(
        value_error=value_error,
        cases=cases,
        loads="\n".join(loaded_word(f"q{i}", "%bottom", i) for i in values),
        operands=", ".join(f"%q{i}" for i in values),
        types=", ".join("i64" for _ in values),
    )
