"""Programs as expressions, before and after graph passes: passes/rewrites.txt has a table of what each rule of a pass does.

    == SinkReshapes
    x:2x3 n:3xi64
        exp(reshape(x, newshape=(3, 2))) -> reshape(exp(x), newshape=(3, 2))

are passes, the inputs of a program (f32 where nothing else is said), and a result before and after, of which a program may have several.
Operators have the names of the IR, and attributes that are not the default. `const([1, 2], 'int64')` is a constant, `numbers(2, 3)` one of
both signs that is not the same everywhere, and `positive(2, 3)` has its absolute values plus 1. A value that is used more than once is
`(a := ...)` where it is first; after the passes such values are v1, v2 and so on. Comments begin with #.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import relayc
from relayc import Equivalence, TensorType
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.dialects.relay.base import OPS, Op
from relayc.dialects.relay.structure import Constant
from relayc.pipelines import PassContext, find_pass

_DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f64": "float64",
    **{f"{letter}{bits}": f"{word}{bits}" for letter, word in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    "b": "bool",
}


def _type(text: str) -> TensorType:
    *sizes, last = text.split("x")
    if last not in _DTYPES and last:
        sizes.append(last)
    return TensorType(tuple(int(size) if size.isdecimal() else size for size in sizes), _DTYPES.get(last, "float32"))


def _numbers(*shape: int) -> np.ndarray:
    return (np.arange(math.prod(shape), dtype=np.float32) * 7 % 11 - 5).reshape(shape)


def _positive(*shape: int) -> np.ndarray:
    return np.abs(_numbers(*shape)) + 1


_MADE = {"numbers": _numbers, "positive": _positive}


def program_of(inputs: str, results: str, dims: dict[str, tuple[int, int]] | None = None) -> IRModule:
    """The module whose main has these inputs and results."""
    types = {name: _type(text) for name, text in (part.split(":") for part in inputs.split())}
    made = relayc.Program(dims)

    class Names(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            if name not in OPS:
                raise KeyError(name)
            return lambda *operands, **attributes: made.apply(name, *operands, **attributes)

    def main(*values: Any) -> Any:
        names = Names(zip(types, values, strict=True), const=made.constant)
        for name, function in _MADE.items():
            names[name] = lambda *shape, function=function: made.constant(function(*shape))
        return eval(results, {"__builtins__": {}}, names)

    made.function(main, **types)
    return made.module()


def texts_of(mod: IRModule, inputs: str) -> list[str]:
    """The results of a module's main as expressions."""
    (block,) = mod.main.regions[0].blocks
    names = dict(zip(block.arguments, (part.partition(":")[0] for part in inputs.split()), strict=True))
    *operations, end = block.operations
    uses = Counter(value for op in operations for value in op.operation.operands) + Counter(end.operands)
    numbers = itertools.count(1)

    def text(value: ir.Value) -> str:
        if value in names:
            return names[value]
        found = of_operation(value)
        if uses[value] == 1 or isinstance(value.owner, Constant):
            return found
        names[value] = f"v{next(numbers)}"
        return f"({names[value]} := {found})"

    def of_operation(value: ir.Value) -> str:
        op = value.owner
        if isinstance(op, Constant):
            array = mod.value_of(value)
            for name, made in _MADE.items():
                if array.size > 1 and array.dtype == np.float32 and np.array_equal(array, made(*array.shape)):
                    return f"{name}({', '.join(map(str, array.shape))})"
            return f"const({array.tolist()}, {str(array.dtype)!r})" if array.size <= 16 else f"const({array.shape})"
        if not isinstance(op, Op):
            return f"{op.operation.name}({', '.join(map(text, op.operation.operands))})"
        return f"{op._op_name}({', '.join([*map(text, op.operation.operands), *attributes(op)])})"

    def attributes(op: Op) -> Iterator[str]:
        for name, value in op.attrs().items():
            if value != op.attr_specs[name].default and value is not None:
                yield f"{name}={value!r}"

    return list(map(text, end.operands))


def rewritten(inputs: str, results: str, *passes: str, dims: dict[str, tuple[int, int]] | None = None, **options: Any) -> list[str]:
    """The results of a program after passes, each of which keeps what numpy computes of it."""
    mod = program_of(inputs, results, dims)
    expected = [value.type for value in _results(mod)]
    checks = Equivalence()
    with PassContext(**options, instruments=[checks]):
        for name in passes:
            mod = find_pass(name)(mod)
    mod.verify()
    assert not checks.unchecked and [value.type for value in _results(mod)] == expected
    return texts_of(mod, inputs)


def _results(mod: IRModule) -> list[ir.Value]:
    return list(mod.main.regions[0].blocks[0].operations[-1].operands)


@dataclass
class Case:
    """A program of the table: the line and the passes it is for, its inputs, and its results before and after."""

    line: int
    passes: Sequence[str]
    inputs: str
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.passes[0]} {self.line}"

    def found(self) -> list[str]:
        """The results as the passes leave them."""
        return rewritten(self.inputs, f"({', '.join(self.before)},)", *self.passes)


def cases_of(path: Path) -> list[Case]:
    """The programs of a table."""
    found, passes = list[Case](), list[str]()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("=="):
            passes = line[2:].split()
        elif line.startswith("    "):
            before, _, after = line.strip().partition(" -> ")
            found[-1].before.append(before)
            found[-1].after.append(after)
        elif line and not line.startswith("#"):
            found.append(Case(number, passes, line))
    return found
