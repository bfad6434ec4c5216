"""Programs as expressions, before and after graph passes: passes/rewrites.txt has a table of what each rule of a pass does.

    == CheckIndices relay.some.option=3
    x:2x3 i:4xi64
        take(exp(x), i, axis=1) -> take(exp(x), i, axis=1)
        -> check_index(worst_index(i, size=3), size=3)

are passes and configuration, the inputs of a program (f32 where nothing else is said), and a result before and after, of which a program
may have several. Operations without results come after the results.
Operators have the names of the IR, and attributes that are not the default. `const([1, 2], 'int64')` is a constant, `numbers(2, 3)` one of
both signs that is not the same everywhere, and `positive(2, 3)` has its absolute values plus 1. A value that is used more than once is
`(a := ...)` where it is first; after the passes such values are v1, v2 and so on. Comments begin with #.
"""

import ast
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
from relayc.dialects.relay.structure import Constant, Fused
from relayc.pipelines import PassContext, find_pass
from relayc.pipelines.evaluate.cases import cases_of as cases_of_inputs
from relayc.pipelines.evaluate.relay import RelayInterpreter

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
    """The results of a module's main as expressions; fusion groups do not show."""
    (block,) = mod.main.regions[0].blocks
    names = dict(zip(block.arguments, (part.partition(":")[0] for part in inputs.split()), strict=True))
    *operations, end = block.operations
    inside = dict[ir.Value, ir.Value]()
    for group in [op for op in operations if isinstance(op, Fused)]:
        *body, given = group.body().operations
        inside.update(zip(group.operation.results, given.operation.operands, strict=True))
        operations += body
    uses = Counter(inside.get(v, v) for op in (*operations, end) for v in op.operation.operands)
    numbers = itertools.count(1)

    def text(value: ir.Value) -> str:
        value = inside.get(value, value)
        if value in names:
            return names[value]
        results = value.owner.operation.results
        found = of_operation(value.owner)
        if isinstance(value.owner, Constant) or (len(results) == 1 and uses[value] == 1):
            return found
        name = f"v{next(numbers)}"
        parts = [f"[{i}]" for i in range(len(results))] if len(results) > 1 else [""]
        names.update((result, name + part) for result, part in zip(results, parts, strict=True))
        return f"({name} := {found}){parts[list(results).index(value)]}"

    def of_operation(op: ir.OpView) -> str:
        if isinstance(op, Constant):
            array = mod.value_of(op.result)
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

    return [*map(text, end.operands), *(of_operation(op) for op in operations if not op.operation.results)]


def rewritten(inputs: str, results: str, *passes: str, dims: dict[str, tuple[int, int]] | None = None, **options: Any) -> list[str]:
    """The results of a program after passes, each of which keeps what numpy computes of it.

    Operators on quantised tensors are canonicalized for that.
    """
    mod, is_quantised = program_of(inputs, results, dims), "qnn_" in results
    expected = [value.type for value in _results(mod)]
    checks = Equivalence()
    with PassContext(**options, instruments=[] if is_quantised else [checks]):
        for name in passes:
            mod = find_pass(name)(mod)
    mod.verify()
    # What is checked may be wrong in all cases.
    assert not checks.unchecked or passes == ("CheckIndices",)
    assert [value.type for value in _results(mod)] == expected
    found = texts_of(mod, inputs)
    if is_quantised:
        before, after = (find_pass("QnnCanonicalize")(m) for m in (program_of(inputs, results, dims), mod))
        with after.context:
            cases = cases_of_inputs(after, None, {})
        for case in cases:
            arrays = [RelayInterpreter(m)("main", list(case.arrays), case.sizes) for m in (before, after)]
            for a, b in zip(*arrays, strict=True):
                np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-5, atol=1e-5)
    return found


def _results(mod: IRModule) -> list[ir.Value]:
    return list(mod.main.regions[0].blocks[0].operations[-1].operands)


@dataclass
class Case:
    """A program of the table: the line, passes and their configuration, its inputs, and its results before and after."""

    line: int
    passes: Sequence[str]
    config: dict[str, Any]
    inputs: str
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.passes[0]} {self.line}"

    def found(self) -> list[str]:
        """The results as the passes leave them."""
        return rewritten(self.inputs, f"({', '.join(self.before)},)", *self.passes, config=self.config)


def cases_of(path: Path) -> list[Case]:
    """The programs of a table."""
    found, passes, config = list[Case](), list[str](), dict[str, Any]()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("=="):
            words = line[2:].split()
            passes = [word for word in words if "=" not in word]
            config = {name: ast.literal_eval(value) for name, _, value in (word.partition("=") for word in words) if value}
        elif line.startswith("    "):
            before, _, after = line.strip().partition("-> ")
            found[-1].before += [before] if before else []
            found[-1].after.append(after)
        elif line and not line.startswith("#"):
            found.append(Case(number, passes, config, line))
    return found
