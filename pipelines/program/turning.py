"""Traversal directions of kernels called in loops (see tir.strategy.turns): marks, and the argument for the direction."""

from collections.abc import Iterable, Mapping

from relayc.dialects.discardable import REPEATED, TURNS
from relayc.dialects.functions import Names, extend_signature, symbol_name
from relayc.dialects.mlir import func, ir, scf
from relayc.dialects.operations import called_names, find_operations, walk
from relayc.pipelines.emission import emit


def mark_repeated(programs: Iterable[ir.OpView], kernels: Mapping[str, ir.OpView]) -> None:
    """Marks the kernels that loops of programs call."""
    for program in programs:
        for loop in walk(program.operation, scf.WhileOp):
            for name in calls_in(loop.regions[1].blocks[0]):
                if name in kernels:
                    REPEATED.mark(kernels[name])


def calls_in(block: ir.Block) -> set[str]:
    """Names of the functions that a block calls, including calls in branches and loops."""
    return {name for op in block.operations for name in called_names(op.operation)}


def split_turning(functions: Iterable[ir.OpView], names: Names) -> dict[str, str]:
    """Moves the bodies of kernels that support both directions to functions with the direction as last argument; returns the names of these
    by kernel. The kernels call them with 0."""
    found = {}
    for kernel in functions:
        if not TURNS.on(kernel):
            continue
        name = symbol_name(kernel)
        found[name] = names.free(f"{name}.turn")
        with ir.InsertionPoint(kernel), kernel.operation.location:
            turning = kernel.operation.clone().opview
            turning.attributes["sym_name"] = ir.StringAttr.get(found[name])
            for key in [key for key in turning.attributes if key.startswith("relay.")]:
                del turning.attributes[key]
            (argument,) = extend_signature(turning, [ir.IndexType.get()])
            for op in _ways(turning):
                op.results[0].replace_all_uses_with(argument)
                op.erase()
        block = kernel.regions[0].blocks[0]
        for op in reversed(list(block.operations)):
            op.operation.erase()
        with ir.InsertionPoint(block), kernel.operation.location:
            func.CallOp([], ir.FlatSymbolRefAttr.get(found[name]), [*block.arguments, emit.index_constant(0)])
            func.ReturnOp([])
    return found


def _ways(kernel: ir.OpView) -> list[ir.Operation]:
    """The constants in a kernel for the direction."""
    return find_operations(kernel.operation, lambda op: op.name == "arith.constant" and TURNS.on(op))
