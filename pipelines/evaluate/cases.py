"""Test cases for the evaluation of programs: sizes of symbols, and random inputs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from relayc.dialects.discardable import INPUT_DTYPES, NAME
from relayc.dialects.functions import is_public, signature_of, symbol_name, value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType, numpy_dtype
from relayc.pipelines.evaluate.relay import bound_sizes
from relayc.pipelines.te.signature import flat_tensors, te_array
from relayc.symbolic import Range, Ranges, evaluate

_PRIMES = (7, 5, 11, 3, 13)
_LARGE = 1031
"""A prime above 1,024: more than any tile."""
_MOST_ELEMENTS = 1 << 14
"""Of the inputs of a case with chosen sizes."""


@dataclass(frozen=True)
class Case:
    """One call of a public function.

    Attributes:
      function: its name.
      arrays: its tensors in the dtypes of the te stage, those in tuples one by one.
      sizes: of the symbols in the types of its arguments.
      words: the case in words.
    """

    function: str
    arrays: tuple[np.ndarray, ...]
    sizes: Mapping[str, int]
    words: str

    def with_zeros(self) -> "Case":
        """The case with 0 in the place of all integers."""
        arrays = tuple(np.zeros_like(a) if a.dtype.kind in "iu" else a for a in self.arrays)
        return replace(self, arrays=arrays, words=f"{self.words}, integers 0")


def cases_of(mod: IRModule, inputs: Sequence[Mapping[str, np.ndarray]] | None, sizes: Mapping[str, Sequence[int]] | None) -> list[Case]:
    """The cases of every public function of a module of the relay or te stage; of `main` alone where `inputs` are given by name."""
    found: list[Case] = []
    for function in mod.module.body.operations:
        if isinstance(function, func.FuncOp) and is_public(function) and len(function.regions[0].blocks):
            name, tensors = symbol_name(function), _tensors(function)
            if inputs is None:
                found += _made_up(name, tensors, mod, sizes or {})
            elif name == "main":
                found += [_given(function, tensors, arrays, i) for i, arrays in enumerate(inputs)]
    return found


def _tensors(function: ir.OpView) -> list[TensorType]:
    """The types of the tensors that a function takes, with the dtypes that callers see."""
    types = signature_of(function).inputs
    if not INPUT_DTYPES.on(function):
        return flat_tensors(types)
    dtypes = INPUT_DTYPES.of(function)
    return [t.with_dtype(dtype) for t, dtype in zip(flat_tensors(list(types)[: len(dtypes)]), dtypes, strict=True)]


def _given(function: ir.OpView, tensors: Sequence[TensorType], arrays: Mapping[str, np.ndarray], number: int) -> Case:
    names = [NAME.of(a) for a in value_attributes(function) if NAME.on(a)]
    given = [np.asarray(arrays[name]).astype(numpy_dtype(t.dtype)) for name, t in zip(names, tensors, strict=True)]
    return Case("main", tuple(map(te_array, given)), bound_sizes(tensors, given, "inputs", {}), f"input {number}")


def _made_up(name: str, tensors: Sequence[TensorType], mod: IRModule, sizes: Mapping[str, Sequence[int]]) -> Iterator[Case]:
    symbols = sorted({s for t in tensors for s in t.symbols})
    fits = [v for v in sizes_of(symbols, mod.ranges, sizes) if all(evaluate(d, v) >= 0 for t in tensors for d in t.sizes)]
    small = [v for v in fits if sum(prod(evaluate(d, v) for d in t.sizes) for t in tensors) <= _MOST_ELEMENTS]
    for seed, values in enumerate(small or fits[:2]):
        rng = np.random.default_rng(seed)
        arrays = [random_array(rng, [evaluate(d, values) for d in t.sizes], t.dtype) for t in tensors]
        yield Case(name, tuple(map(te_array, arrays)), values, case_text(seed, values))


def case_text(seed: int, sizes: Mapping[str, int]) -> str:
    """Describes a case with random inputs."""
    return ", ".join([f"seed {seed}", *(f"{symbol} = {n}" for symbol, n in sizes.items())])


def sizes_of(symbols: Sequence[str], ranges: Ranges, given: Mapping[str, Sequence[int]]) -> list[dict[str, int]]:
    """Sizes of symbols, a dictionary for each case; without symbols two cases of none."""
    if not symbols:
        return [{}, {}]
    known = {s: ranges.of(s) for s in symbols}
    count = max([3, *(len(v) for v in given.values())])
    found = [{s: _size(known[s], i, which, given.get(s)) for i, s in enumerate(symbols)} for which in range(count)]
    if not given:
        # One symbol is large, the others are minimal.
        found += [{s: found[0][s] if s != large else min(_LARGE, known[s].high) for s in symbols} for large in symbols]
    return [dict(pairs) for pairs in dict.fromkeys(tuple(v.items()) for v in found)]


def _size(known: Range, number: int, which: int, given: Sequence[int] | None) -> int:
    """The size of a symbol in a case: 1, a prime, which another symbol does not have, or the typical one."""
    if given:
        return given[which % len(given)]
    wanted = (1, _PRIMES[number % len(_PRIMES)], known.typical)[which % 3]
    return max(known.low, min(known.high, wanted))


def random_array(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> np.ndarray:
    """Values of both signs: floats normal, integers of -2 to 3, which are small enough for indices and shifts."""
    target = numpy_dtype(dtype)
    if dtype == "bool" or dtype.startswith("uint"):
        return rng.integers(0, 2 if dtype == "bool" else 4, shape).astype(target)
    if dtype.startswith("int"):
        return rng.integers(-2, 2 if dtype == "int2" else 4, shape).astype(target)
    if dtype == "string":
        return np.zeros(shape, np.int64).view(target)
    return rng.standard_normal(shape).astype(target)
