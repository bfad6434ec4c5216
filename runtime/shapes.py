"""The shapes of a call: the values of a function's symbols, and from them the shapes of its results and the memory that it needs.

A symbol takes its value from dimensions that consist of the symbol alone. If a symbol occurs in expressions only, its value is solved for
from an expression in which it has a numeric factor. Every other dimension must equal the value of its expression.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from relayc.runtime.artifact import ProgramInfo, TensorSpec, numpy_dtype
from relayc.symbolic import Dim, Size, divisors_of, evaluate, evaluator, symbols_of

MAX_BYTES = 1 << 47
"""What a tensor or an arena may take: the memory that a process can address."""
_REMEMBERED = 4096
"""Calls whose shapes are remembered."""

Shape = tuple[int, ...]
Made = tuple[Shape, np.dtype, int]
"""Shape, dtype and bytes of an output."""


class CallShapes(NamedTuple):
    """What follows from the shapes of the inputs of a call.

    Attributes:
      outputs: the outputs whose sizes are known before the call.
      sizes: the symbols' values, in the order of the function's symbols.
      arena_bytes: memory for intermediate tensors.
    """

    outputs: tuple[Made, ...]
    sizes: Mapping[str, int]
    arena_bytes: int


@dataclass(frozen=True, slots=True)
class SymbolSource:
    """Where a symbol's value comes from: (dimension - rest) / factor of a dimension of an input."""

    name: str
    input: int
    axis: int
    factor: int = 1
    rest: Size = 0


def find_sources(inputs: Sequence[TensorSpec], symbols: Sequence[str]) -> tuple[SymbolSource, ...]:
    """The sources of the values of symbols, ordered so that each depends on earlier ones only.

    Raises ValueError if the shapes do not determine a symbol.
    """
    places = [(i, axis, d) for i, spec in enumerate(inputs) for axis, d in enumerate(spec.shape) if isinstance(d, Dim)]
    found: dict[str, SymbolSource] = {}
    for i, axis, d in places:
        if str(d) in symbols and str(d) not in found:
            found[str(d)] = SymbolSource(str(d), i, axis)
    more = True
    while more:
        more = False
        for i, axis, d in places:
            unknown = symbols_of(d) - found.keys()
            if len(unknown) == 1:
                name = next(iter(unknown))
                factor = d.terms.get((name,), 0)
                rest = d - Dim.make({(name,): factor})
                if factor > 0 and name not in symbols_of(rest):
                    found[name] = SymbolSource(name, i, axis, factor, rest)
                    more = True
    missing = [name for name in symbols if name not in found]
    if missing:
        shapes = ", ".join(f"{spec.name}: {spec}" for spec in inputs)
        raise ValueError(f"symbol {missing[0]}: expected a dimension of an input from which its value follows, found {shapes}")
    return tuple(found[name] for name in found if name in symbols)


class Shapes:
    """The shapes of a function.

    Attributes:
      known: what `of` found, by the shapes of the inputs.
    """

    def __init__(self, program: ProgramInfo, ranges: Mapping[str, tuple[int, int]]) -> None:
        self.name, self.inputs, self.symbols = program.name, program.inputs, program.symbols
        self.outputs = [spec for i, spec in enumerate(program.outputs) if i not in program.late]
        self._ranges = {name: ranges[name] for name in program.symbols if name in ranges}
        self._checked = [(i, axis, d) for i, spec in enumerate(self.inputs) for axis, d in enumerate(spec.shape) if isinstance(d, Dim)]
        self.known: dict[tuple[Shape, ...], CallShapes] = {}
        self._arena_bytes = program.arena_bytes

    @cached_property
    def _sources(self) -> tuple[SymbolSource, ...]:
        """Raises ValueError if the shapes of the inputs do not determine a symbol."""
        try:
            return find_sources(self.inputs, self.symbols)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None

    @cached_property
    def _evaluate(self) -> Callable[..., tuple[int, ...]]:
        """The bytes of the arena and the dimensions of the outputs, of the symbols' values."""
        return evaluator([self._arena_bytes, *(d for spec in self.outputs for d in spec.shape)], self.symbols)

    @cached_property
    def _divisors(self) -> frozenset[Dim]:
        """The divisors in the dimensions of inputs and outputs. (Divisors in other sizes may belong to a branch that is not taken.)"""
        return frozenset().union(*(divisors_of(d) for spec in (*self.inputs, *self.outputs) for d in spec.shape))

    def of(self, shapes: tuple[Shape, ...]) -> CallShapes:
        """What follows from the shapes of the inputs, whose ranks and fixed dimensions are right.

        Raises ValueError if they do not fit together, are out of bounds, or need more memory than there can be.
        """
        found = self.known.get(shapes)
        if found is None:
            if len(self.known) >= _REMEMBERED:
                self.known.clear()
            found = self.known[shapes] = self._call_shapes(shapes)
        return found

    def _call_shapes(self, shapes: tuple[Shape, ...]) -> CallShapes:
        sizes = self._solve(shapes)
        for i, axis, d in self._checked:
            expected = evaluate(d, sizes)
            if shapes[i][axis] != expected:
                raise ValueError(f"{self.name}: {self._conflict(i, axis, d, expected, shapes, sizes)}")
        for name, (low, high) in self._ranges.items():
            if not low <= sizes[name] <= high:
                bound = f"at least {low}" if sizes[name] < low else f"at most {high}"
                raise ValueError(f"{self.name}: {name} is {sizes[name]} in {self._where(name)}, expected {bound}")
        if any(evaluate(d, sizes) < 1 for d in self._divisors):
            values = self._values(self.symbols, sizes)
            raise ValueError(f"{self.name}: expected sizes for which all shapes have a value, found {values}")
        arena, *dims = self._evaluate(*(sizes[name] for name in self.symbols))
        outputs: list[Made] = []
        for spec in self.outputs:
            shape, dims = tuple(dims[: len(spec.shape)]), dims[len(spec.shape) :]
            outputs.append((shape, numpy_dtype(spec.dtype), self._bytes(spec, shape, sizes)))
        if arena > MAX_BYTES:
            values = self._values(self.symbols, sizes)
            raise ValueError(f"{self.name}: expected to need at most {MAX_BYTES} bytes, found {arena} for {values}")
        return CallShapes(tuple(outputs), {name: sizes[name] for name in self.symbols}, arena)

    def _solve(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for source in self._sources:
            rest = shapes[source.input][source.axis] - evaluate(source.rest, sizes)
            # Indivisibility is detected when the dimension is compared with its expression.
            sizes[source.name] = max(rest // source.factor, 0)
        return sizes

    def _bytes(self, spec: TensorSpec, shape: Shape, sizes: Mapping[str, int]) -> int:
        """Bytes of an output. Raises ValueError if memory cannot hold it."""
        num_bytes = TensorSpec(spec.name, shape, spec.dtype).num_bytes
        assert isinstance(num_bytes, int)
        if min(shape, default=0) < 0 or num_bytes > MAX_BYTES:
            expected = "sizes of 0 or more" if min(shape) < 0 else f"at most {MAX_BYTES} bytes"
            names = sorted({s for d in spec.shape for s in symbols_of(d)})
            raise ValueError(
                f"{self.name}: output {spec.name!r} of {spec}: expected {expected}, found {list(shape)} for {self._values(names, sizes)}"
            )
        return num_bytes

    # ---- words

    def _where(self, name: str) -> str:
        return next(self.inputs[source.input].name for source in self._sources if source.name == name)

    def _values(self, names: Sequence[str], sizes: Mapping[str, int]) -> str:
        return ", ".join(f"{name} = {sizes[name]} (in {self._where(name)})" for name in names)

    def _conflict(self, i: int, axis: int, d: Dim, expected: int, shapes: tuple[Shape, ...], sizes: Mapping[str, int]) -> str:
        found, here = shapes[i][axis], self.inputs[i].name
        if str(d) in sizes:
            return f"{d} is {expected} in {self._where(str(d))} and {found} in {here}"
        values = self._values(sorted(symbols_of(d)), sizes)
        return f"dimension {axis} of {here}: expected {d}, {expected} for {values}, found {found}"
