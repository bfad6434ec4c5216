"""Attention with symbolic sizes: one kernel, compiled once, for many sizes, and its comparison with numpy."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from attention_reference import Case
from symbolic_kernels import SymbolicKernel

from relayc.pipelines.context.target import Target
from relayc.symbolic import evaluate, parse

# As in test_attention and test_attention_tiles: relative to the largest result.
TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "float16": 1e-3, "bfloat16": 1e-2}
ELEMENTS = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "i1"}

NATIVE = Target("cpu -num-threads=2")
AVX2 = Target("cpu", mcpu="x86-64-v3", num_threads=2)
"""Vectors of 8 lanes, 16 registers."""
NARROW = Target("cpu", vector_bytes=16, num_vector_registers=16)
TILES = Target("cpu", mcpu="sapphirerapids", emulate=True, num_threads=2)

CAUSAL = {"is_causal": True, "causal_offset": "past"}


@dataclass(frozen=True)
class Symbolic:
    """A Case whose shapes are texts of sizes; `sizes` are those at which it is called."""

    shape: tuple[str, ...]
    sizes: Sequence[Mapping[str, int]]
    mask: tuple[str, ...] | None = None
    mask_dtype: str = ""
    layout: str = "BHSD"
    dtype: str = "float32"
    attributes: dict[str, Any] = field(default_factory=dict)
    ranges: str = ""

    def at(self, sizes: Mapping[str, int]) -> Case:
        attributes = {k: evaluate(parse(v), sizes) if k == "causal_offset" else v for k, v in self.attributes.items()}
        shape = tuple(evaluate(parse(d), sizes) for d in self.shape)
        mask = None if self.mask is None else tuple(evaluate(parse(d), sizes) for d in self.mask)
        return Case(shape, mask, self.mask_dtype, self.layout, self.dtype, attributes)  # type: ignore[arg-type] # seven sizes

    def text(self) -> str:
        batch, heads, groups, rows, keys, depth, width = self.shape
        operands = [(batch, heads, rows, depth), (batch, groups, keys, depth), (batch, groups, keys, width)]
        types = [_type([shape["BHSD".index(axis)] for axis in self.layout], self.dtype) for shape in operands]
        if self.mask is not None:
            types.append(_type(self.mask, self.mask_dtype or self.dtype))
        result = _type([(batch, heads, rows, width)["BHSD".index(axis)] for axis in self.layout], self.dtype)
        attributes = {"scale": int(depth) ** -0.5, **{f"{n}_layout": self.layout for n in ("query", "key", "value", "out")}}
        texts = ", ".join(f"{name} = {_attribute(value)}" for name, value in (attributes | self.attributes).items())
        # An argument for each symbol makes expressions of it known.
        names = sorted({name for d in self.shape for name in re.findall(r"[a-z]\w*", d)})
        arguments = ", ".join([*(f"%x{i}: {t}" for i, t in enumerate(types)), *(f'%{n}: tensor<?xf32, ["{n}"]>' for n in names)])
        call = f'"relay.nn_attention"({", ".join(f"%x{i}" for i in range(len(types)))}) {{{texts}}} : ({", ".join(types)}) -> {result}'
        function = f"func.func @main({arguments}) -> {result} {{\n  %y = {call}\n  return %y : {result}\n}}"
        return f"module attributes {{relay.symbols = {{{self.ranges}}}}} {{\n{function}\n}}" if self.ranges else function


def _type(shape: Sequence[str], dtype: str) -> str:
    names = [f'"{d}"' for d in shape if not d.isdigit()]
    dims = "x".join(d if d.isdigit() else "?" for d in shape)
    return f"tensor<{dims}x{ELEMENTS[dtype]}{', [' + ', '.join(names) + ']' if names else ''}>"


def _attribute(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value!r} : f64"


def compare_at(kernel: SymbolicKernel, symbolic: Symbolic, sizes: Mapping[str, int]) -> None:
    """Compares a call of a kernel with numpy."""
    case = symbolic.at(sizes)
    (found,) = kernel(sizes, case.arrays())
    if not found.size:
        return
    expected = case.expected() if case.shape[4] else np.full(found.shape, 0.0 if "nan_to_zero" in case.attributes else np.nan)
    # Rows that see no key are NaN on both sides.
    bound = TOLERANCE[symbolic.dtype] * np.nan_to_num(np.abs(expected)).max()
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0, atol=bound, err_msg=str(sizes))
