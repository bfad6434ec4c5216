"""ByteTables: what is computed of one 8-bit tensor by elements, and is of 8 bits again, is read from a table of 256 results.

    %1 = quantise(f(dequantise(%0)))   ->   %1 = relay.take(table, cast<u8>(%0))

(also where %1 is dequantised and read as floats, if f takes more than arithmetic).

f is any graph of elementwise operators whose other operands are constants of one element (x * sigmoid(x) among them), and may be quantised
in between. The table is what the same operators give for all 256 numbers, in the order of their bits; FoldConstant computes it in numpy, so
that an element differs from the operators' by one step where a result is within rounding errors of half a step.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op, Pattern
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType, is_bytes
from relayc.pipelines.context.passes import PassContext, functions, module_pass
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.pipelines.graph.dead_code_elimination import erase_dead
from relayc.pipelines.graph.fold_scale_axis import is_constant
from relayc.pipelines.graph.numpy_operators import NUMPY_OPERATORS
from relayc.pipelines.graph.reshapes import reshape_to

ARITHMETIC = {"add", "cast", "clip", "divide", "maximum", "minimum", "multiply", "negative", "nn_relu", "round", "subtract"}
"""Operators that a kernel computes of an 8-bit number about as fast as it reads a table."""
_type = TensorType.of


@dataclass(frozen=True)
class _Function:
    """A value that is a function of each element of an 8-bit tensor.

    Attributes:
      root: the tensor.
      is_real: whether it is computed in floats on the way.
      is_costly: whether that takes more than arithmetic, such as an exponential.
    """

    root: ir.Value
    is_real: bool
    is_costly: bool


def _is_scalar(value: ir.Value) -> bool:
    """Whether a value is one number that constants make."""
    return isinstance(value.type, ir.RankedTensorType) and _type(value).num_elements == 1 and is_constant(value)


class _Tables:
    """The functions of 8-bit tensors in one function of a module."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.found: dict[ir.Value, _Function] = {}

    def of(self, value: ir.Value) -> _Function | None:
        """What is known of a value: a tensor of 8 bits is at least a function of itself."""
        if value not in self.found and is_bytes(value) and not is_constant(value):
            return _Function(value, False, False)
        return self.found.get(value)

    def visit(self, op: Op) -> None:
        """Notes an operation whose result is a function of one 8-bit tensor."""
        operands = list(op.operation.operands)
        if not (op.pattern is Pattern.ELEMWISE or op.broadcasts) or type(op)._op_name not in NUMPY_OPERATORS or len(op.results) != 1:
            return
        moving = [v for v in operands if not _is_scalar(v)]
        known = [self.of(v) for v in moving]
        if not known or any(k is None or k.root != known[0].root for k in known):  # type: ignore[union-attr] # the first is one then
            return
        root, type_ = known[0].root, _type(op.results[0])  # type: ignore[union-attr]
        if type_.is_known and type_.sizes == _type(root).sizes:
            is_real = type_.is_float or any(k.is_real for k in known if k)
            is_costly = type(op)._op_name not in ARITHMETIC or any(k.is_costly for k in known if k)
            self.found[op.results[0]] = _Function(root, is_real, is_costly)

    def wanted(self) -> list[ir.Value]:
        """The 8-bit values computed in floats that are read by anything but functions of the same tensor; costly ones also where such a
        function, in floats, is read by others."""
        return [v for v, f in self.found.items() if f.is_real and is_bytes(v) and self._leaves(v, f)]

    def _leaves(self, value: ir.Value, function: _Function) -> bool:
        for use in value.uses:
            results = list(use.owner.operation.results)
            found = self.found.get(results[0]) if len(results) == 1 else None
            if found is None or found.root != function.root:
                return True
            if function.is_costly and not is_bytes(results[0]) and self._leaves(results[0], function):
                return True
        return False

    def replace(self, values: Iterable[ir.Value]) -> None:
        """Reads values from tables."""
        lookups = [(value, self._lookup(value)) for value in values]
        for value, found in lookups:
            value.replace_all_uses_with(found)

    def _lookup(self, value: ir.Value) -> ir.Value:
        root = self.found[value].root
        with ir.InsertionPoint(value.owner), value.owner.operation.location:
            numbers = np.arange(256, dtype=np.uint8).view(_type(root).dtype)
            table = self._applied(value, {root: self.mod.constant(numbers)})
            indices = root if _type(root).dtype == "uint8" else build("cast", root, dtype="uint8")
            return build("take", table, indices, axis=0, mode="clip")

    def _applied(self, value: ir.Value, done: dict[ir.Value, ir.Value]) -> ir.Value:
        """A value for all numbers of its tensor, those of `done` being known."""
        pending = [value]
        while pending:
            last = pending[-1]
            missing = [v for v in last.owner.operands if v not in done and not _is_scalar(v)] if last not in done else []
            pending += missing
            if not missing:
                pending.pop()
                if last not in done:
                    operands = [done[v] if v in done else reshape_to(v, ()) for v in last.owner.operands]
                    done[last] = build(last.owner.relay_name, *operands, **last.owner.attrs())
        return done[value]


@module_pass(opt_level=2, name="ByteTables")
def byte_tables(mod: IRModule, ctx: PassContext) -> IRModule:
    """Functions of the elements of one 8-bit tensor, in floats and quantised again, become tables."""
    for func in functions(mod):
        tables = _Tables(mod)
        for op in [op for block in reversed(list(graph_blocks(func))) for op in block.operations]:
            if isinstance(op, Op) and not isinstance(op, Constant):
                tables.visit(op)
        tables.replace(tables.wanted())
        erase_dead(func)
    return mod
