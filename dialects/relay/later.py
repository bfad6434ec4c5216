"""Operations of the later stages that upstream lacks: decisions and checks at run time."""

from relayc.dialects.relay.base import Ints, Operand, Statement, Variadic, check


class _Later(Statement):
    """An operation on scalars of a later stage."""

    def check_operands(self, type_: str) -> None:
        """Raises RelayError unless all operands are of a type."""
        for name, operand in zip(self.operand_names, self.operation.operands, strict=True):
            check(str(operand.type) == type_, name, type_, operand.type)


class ParallelIf(_Later, name="parallel_if"):
    """Before an scf.parallel: the loop runs on several threads only where the condition, an i1, holds.

    Whether a loop is worth the threads is known only where its sizes are. Code generation makes the clause `if` of omp.parallel of it.
    """

    condition: Operand

    def verify_invariants(self) -> bool:
        self.check_operands("i1")
        return True


REQUIREMENTS = ("eq", "ge", "le")
"""How two sizes may have to compare: the first one is equal to the second one, at least as large, or at most as large."""


class Require(_Later, name="require"):
    """A run-time check: two sizes, of type index, must compare as `predicate` specifies ("eq", "ge", "le"), otherwise the call fails with a
    ValueError.

    `message` gives the expectation; both sizes, the found one first, replace `%lld` in it.
    """

    found: Operand
    expected: Operand
    predicate: str
    message: str

    def verify_invariants(self) -> bool:
        self.check_operands("index")
        check(self.predicate in REQUIREMENTS, "predicate", f"one of {', '.join(REQUIREMENTS)}", self.predicate)
        return True


class TensorMap(_Later, name="tensor_map"):
    """In a kernel's code of the host: fills memory with what a copy engine of a GPU has to know of a tensor
    (pipelines.tir.gpu.tensor_maps).

    `memory` is memref<128xi8>, `buffer` the flat buffer that the tensor is in, `numbers` (index) its first element, its sizes, innermost
    first, and strides in elements of all dimensions but the innermost; `box` has the elements of a copy along each dimension. With a
    `window` (corners and steps of pixels, see there) it has the channels and the pixels of a copy.
    """

    memory: Operand
    buffer: Operand
    numbers: Variadic
    box: Ints
    swizzle: int
    window: Ints = ()

    def verify_invariants(self) -> bool:
        rank = len(self.window) // 3 + 2 if self.window else len(self.box)
        check(len(self.numbers) == 2 * rank, "numbers", f"{2 * rank} of them", len(self.numbers))
        return True
