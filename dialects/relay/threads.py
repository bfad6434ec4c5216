"""What the tir stage says of threads beside upstream's loops."""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op, Operand, TensorType, View, check


class ParallelIf(Op, name="parallel_if"):
    """Before an scf.parallel: the loop runs on several threads only where the condition, an i1, holds.

    Whether a loop is worth the threads is known only where its sizes are. Code generation makes the clause `if` of omp.parallel of it.
    """

    condition: Operand
    pure = False
    is_structure = True
    result_names = ()
    required_results = 0

    @staticmethod
    def infer(op: View) -> list[TensorType]:
        return []

    def verify_invariants(self) -> bool:
        check(self.operation.operands[0].type == ir.IntegerType.get_signless(1), "condition", "an i1", self.operation.operands[0].type)
        return True
