"""What LLVM is told of loops over symbolic sizes: to leave those alone that a schedule has laid out.

A schedule unrolls as far as registers go. Of a loop whose iterations LLVM cannot count it makes several copies nevertheless, with code
for what is left over, and a kernel of symbolic sizes has several such loops where a static one has none: lower tiles, masked ends.
They take twice the time to compile and run no faster. So it is with a loop over the elements that are left over behind the last vector:
LLVM, which does not know that they are few, would make vectors of them.

A loop of a few iterations with a short body, over the channels of a block, say, is unrolled as in static programs: counting costs something
beside such a body. One with a long body, such as a transpose of a tile or other loops, is not: schedules of symbolic sizes write loops
where static ones write copies, to have the code once.

`keep_loops` also marks each function that may have loops without such a hint. LLVM compiles a module without marked functions at its first
optimisation level (see engine.py).
"""

from relayc.dialects.discardable import OPTIMIZE
from relayc.dialects.mlir import func, ir, scf
from relayc.dialects.operations import find_operations, has_operation, walk
from relayc.pipelines.emission.sizes import symbol_positions

_ON_LOOP = "llvm.loop_annotation"
_ON_BRANCH = "loop_annotation"
_OF_VECTORS = "vector."
"""Prefix of vector operations: a function with vectors loads, stores or broadcasts one."""
_MOST_UNROLLED = 16
"""Iterations up to which unrolling of a loop is left to LLVM."""
_LONGEST_BODY = 16
"""Operations per iteration up to which unrolling is left to LLVM; the loop counter takes two or three."""
_AS_IT_IS = "#llvm.loop_annotation<vectorize = <disable = true>, unroll = <disable = true>>"


def keep_loops(module: ir.Module) -> bool:
    """Marks the loops with vectors in functions that take symbols, and those that go on where one of these ends, but for loops of a few
    iterations. Gives whether there are such functions: then `pass_on_hints` has to follow the conversion to branches."""
    functions = [op for op in module.body.operations if isinstance(op, func.FuncOp)]
    symbolic = [op for op in functions if symbol_positions(op)]
    hint = ir.Attribute.parse(_AS_IT_IS)
    for function in functions:
        OPTIMIZE.mark(function.operation)
    for function in symbolic:
        loops = [loop.operation for loop in walk(function.operation, scf.ForOp) if not _is_short(loop.operation)]
        kept = [loop for loop in loops if _has_vectors(loop)]
        ends = {loop.operands[1] for loop in kept}
        kept += [loop for loop in loops if loop.operands[0] in ends and loop not in kept]
        for loop in kept:
            loop.attributes[_ON_LOOP] = hint
        if len(kept) == len(loops) and not _has_other_loops(function.operation):
            OPTIMIZE.remove(function.operation)
    return bool(symbolic)


def _has_other_loops(function: ir.Operation) -> bool:
    """Whether a function has linalg operations, which become loops, or parallel loops without vectors."""
    return has_operation(function, lambda op: op.name.startswith("linalg.") or (op.name == "scf.parallel" and not _has_vectors(op)))


def _is_short(loop: ir.Operation) -> bool:
    """Whether a loop has a few iterations, of a number that is known, and a short body."""
    owners = [bound.owner for bound in list(loop.operands)[:3]]
    if not all(isinstance(owner, (ir.OpView, ir.Operation)) and owner.operation.name == "arith.constant" for owner in owners):
        return False
    low, high, step = (ir.IntegerAttr(owner.operation.attributes["value"]).value for owner in owners)
    if high - low > _MOST_UNROLLED * step:
        return False
    # Of a single iteration there are no copies.
    return high - low <= step or _has_short_body(loop)


def _has_short_body(loop: ir.Operation) -> bool:
    count = -1  # the loop itself

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal count
        count += 1
        return ir.WalkResult.INTERRUPT if count > _LONGEST_BODY else ir.WalkResult.ADVANCE

    loop.walk(visit, ir.WalkOrder.PRE_ORDER)
    return count <= _LONGEST_BODY


def pass_on_hints(module: ir.Module) -> None:
    """Transfers the hints of loops to their branches in the LLVM dialect, under the name that the dialect defines."""
    for op in find_operations(module.operation, lambda op: op.name == "llvm.br" and _ON_LOOP in op.attributes):
        op.attributes[_ON_BRANCH] = op.attributes[_ON_LOOP]
        del op.attributes[_ON_LOOP]


def _has_vectors(loop: ir.Operation) -> bool:
    return has_operation(loop, lambda op: op.name.startswith(_OF_VECTORS))
