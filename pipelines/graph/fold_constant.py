"""FoldConstant: computes at compile time what depends on constants alone.

Nothing is copied that a view of a parameter can say, and constants do not grow without need: an operation stays where its result would take
much more memory than its operands, and so does one that only repeats elements (broadcast_to, full), as what uses it can repeat them.
(Upstream folds by interfaces of C++, and knows no parameter table.)
"""

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.operation_set import OperationSet
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.passes import PassContext, config_option, functions, module_pass
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.pipelines.graph.dead_code_elimination import drop_unused_params, erase_dead
from relayc.pipelines.graph.numpy_operators import NUMPY_OPERATORS, evaluate

config_option("relay.FoldConstant.max_growth", int, 1 << 24, "bytes by which a folded result may be larger than its operands")

_MAX_REPEATED_BYTES = 1 << 16


def _repeats(array: np.ndarray) -> bool:
    """Whether elements stand in memory once and in the array several times."""
    return any(stride == 0 and n > 1 for stride, n in zip(array.strides, array.shape, strict=True))


class _Folding:
    """The constants of one function and the values folded from them. A loop or a branch uses those of the blocks around it."""

    def __init__(self, mod: IRModule, max_growth: int) -> None:
        self.mod = mod
        self.max_growth = max_growth
        self.arrays: dict[ir.Value, np.ndarray] = {}
        self.keys: dict[ir.Value, str] = {}
        self.folded: list[Op] = []

    def run(self, func: ir.OpView) -> None:
        # A block after its enclosing block, whose values it uses.
        for op in [op for block in reversed(list(graph_blocks(func))) for op in block.operations]:
            if isinstance(op, Constant):
                array = self.mod.value_of(op.result)
                if array is not None:
                    self.arrays[op.result] = array
                    self.keys[op.result] = op.key or "const"
            elif isinstance(op, Op) and type(op)._op_name in NUMPY_OPERATORS:
                self.fold(op)
        self.materialize()

    def fold(self, op: Op) -> None:
        """Computes the results of an operation where all its operands are known."""
        operands = list(op.operation.operands)
        arrays = [self.arrays[v] for v in operands if v in self.arrays]
        if len(arrays) < len(operands) or not self.worthwhile(op, arrays):
            return
        found = evaluate(op, arrays)
        if found is None:
            return
        # The largest operand is the one that the result is a form of: the result goes by its name.
        named = max(operands, key=lambda v: self.arrays[v].size, default=None)
        for result, array in zip(op.operation.results, found, strict=True):
            self.arrays[result] = array
            self.keys[result] = self.keys[named] if named is not None else "const"
        self.folded.append(op)

    def worthwhile(self, op: Op, arrays: list[np.ndarray]) -> bool:
        types = [TensorType.of(r) for r in op.operation.results]
        if not all(t.is_static for t in types):
            return False
        size, given = sum(t.num_bytes for t in types), sum(a.nbytes for a in arrays)
        return size <= given + self.max_growth

    def materialize(self) -> None:
        """Replaces every folded value with other uses by a constant, last value first, because remaining operations need their operands."""
        gone = OperationSet()
        for op in reversed(self.folded):
            wanted = [r for r in op.operation.results if any(use.owner.operation not in gone for use in r.uses)]
            if any(_repeats(self.arrays[r]) and self.arrays[r].nbytes > _MAX_REPEATED_BYTES for r in wanted):
                continue
            gone.add(op.operation)
            for result in wanted:
                with ir.InsertionPoint(op.operation), op.location:
                    result.replace_all_uses_with(self.mod.constant(self.arrays[result], self.keys[result]))


@module_pass(opt_level=0, name="FoldConstant")
def fold_constant(mod: IRModule, ctx: PassContext) -> IRModule:
    """Computes what depends on constants alone, with numpy, and drops the parameters that nothing names any more."""
    for func in functions(mod):
        _Folding(mod, ctx.get("relay.FoldConstant.max_growth")).run(func)
        erase_dead(func)
    drop_unused_params(mod)
    return mod
