"""Kernels in loops that go over their parameters to and fro.

A loop whose parameters are somewhat larger than a cache finds none of them there where each iteration begins with those that it used first:
they are what the cache gave up last. Iterations that alternate between going forwards and backwards begin with those that are still there.

A kernel that a loop of a program calls is marked before it is scheduled (REPEATED). Its schedule may ask which way to go: a constant of 0
with the attribute TURN. Once the calls of programs are emitted, such a kernel takes the way as one more argument, behind the others, where
a loop calls it; called by its own name it goes forwards.
"""

from collections.abc import Iterable

from relayc.dialects.functions import Names, extend_signature, symbol_name
from relayc.dialects.mlir import func, ir
from relayc.pipelines.tir import emit

REPEATED = "relay.repeated"
"""Unit attribute of a kernel of the te stage that a loop of a program calls."""
TURN = "relay.turn"
"""Unit attribute of the constant of type index in a kernel that says which way it goes: 0 forwards, 1 backwards."""


def mark_repeated(programs: Iterable[ir.OpView], kernels: dict[str, ir.OpView]) -> None:
    """Marks the kernels that loops call."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "scf.while":
            for name in calls_in(op.regions[1].blocks[0]):
                if name in kernels:
                    kernels[name].attributes[REPEATED] = ir.UnitAttr.get()
        return ir.WalkResult.ADVANCE

    for program in programs:
        program.operation.walk(visit)


def calls_in(block: ir.Block) -> set[str]:
    """Names of the functions that a block calls, also in branches and loops."""
    found: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.call":
            found.add(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        return ir.WalkResult.ADVANCE

    for op in block.operations:
        op.operation.walk(visit)
    return found


def way() -> ir.Value:
    """Which way the kernel that is being emitted goes."""
    attributes = {"value": ir.IntegerAttr.get(ir.IndexType.get(), 0), TURN: ir.UnitAttr.get()}
    return emit.create("arith.constant", [ir.IndexType.get()], [], attributes)


def split_turning(functions: Iterable[ir.OpView], names: Names) -> dict[str, str]:
    """Moves the bodies of kernels that ask which way to go into functions that take it; gives the names of these by those of the kernels.

    A kernel then calls its function with 0.
    """
    found = {}
    for kernel in functions:
        ways = [] if kernel.is_external else _ways(kernel)
        if not ways:
            continue
        name = symbol_name(kernel)
        found[name] = names.free(f"{name}.turn")
        with ir.InsertionPoint(kernel), kernel.operation.location:
            turning = kernel.operation.clone().opview
        for key in [name for name in turning.attributes if name.startswith("relay.")]:
            del turning.attributes[key]
        turning.attributes["sym_name"] = ir.StringAttr.get(found[name])
        (argument,) = extend_signature(turning, [ir.IndexType.get()])
        for op in _ways(turning):
            op.results[0].replace_all_uses_with(argument)
            op.erase()
        block = kernel.regions[0].blocks[0]
        for op in reversed(list(block.operations)):
            op.operation.erase()
        with ir.InsertionPoint(block), kernel.operation.location:
            forwards = emit.create("arith.constant", [ir.IndexType.get()], [], {"value": ir.IntegerAttr.get(ir.IndexType.get(), 0)})
            func.CallOp([], ir.FlatSymbolRefAttr.get(found[name]), [*block.arguments, forwards])
            func.ReturnOp([])
    return found


def _ways(kernel: ir.OpView) -> list[ir.Operation]:
    found = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "arith.constant" and TURN in op.attributes:
            found.append(op)
        return ir.WalkResult.ADVANCE

    kernel.operation.walk(visit)
    return found
