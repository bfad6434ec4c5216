"""Turns a function into a coroutine, which suspends where it calls SUSPEND and resumes there.

The function has structured control flow and no results. Two of its arguments are the address of the memory for its frame, and the place for
its handle. Called with a null frame it does nothing. It returns the bytes of its frame, an i64.
"""

from itertools import pairwise

from relayc.dialects.discardable import COROUTINE, SMALL, strings_attribute
from relayc.dialects.functions import signature_of
from relayc.dialects.mlir import cf, func, ir, memref
from relayc.dialects.operations import last_operation, walk
from relayc.pipelines.context.upstream import run_upstream
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.emulate.pointers import i64, pointer_type
from relayc.pipelines.targets.gpu.emulate.thread import SUSPEND

FRAME_ALIGNMENT = 64


def make_coroutine(function: func.FuncOp, frame: int, handle: int) -> None:
    """Makes a coroutine of a function, in place.

    Args:
      frame, handle: which of its arguments are the addresses of its frame and of the place for its handle.
    """
    local = [op.operation for op in walk(function.operation, memref.AllocaOp)]
    run_upstream(function.operation, "convert-scf-to-cf")
    with function.operation.location:
        begin = function.regions[0].blocks[0]
        types = [a.type for a in begin.arguments]
        entry = begin.create_before(*types)
        arguments = list(entry.arguments)
        for i in reversed(range(len(types))):
            begin.arguments[i].replace_all_uses_with(arguments[i])
            begin.erase_argument(i)
        blocks = [block for block in function.regions[0].blocks if block != entry]
        end = blocks[-1].create_after()
        leave = end.create_after()
        with ir.InsertionPoint(entry):
            for op in local:  # LLVM places them in the frame, if they are in the entry block
                ir.InsertionPoint.current.insert(op.detach_from_parent())
            null = emit.create("llvm.mlir.zero", [pointer_type()], [])
            alignment = emit.number(FRAME_ALIGNMENT, ir.IntegerType.get_signless(32))
            coroutine = emit.create("llvm.intr.coro.id", [_token()], [alignment, null, null, null])
            size = emit.create("llvm.intr.coro.size", [i64()], [])
            equal = {"predicate": ir.IntegerAttr.get(i64(), 0)}
            asks = emit.create("llvm.icmp", [ir.IntegerType.get_signless(1)], [arguments[frame], null], equal)
            cf.CondBranchOp(asks, [], [], leave, begin)
        with ir.InsertionPoint.at_block_begin(begin):
            place = emit.create("llvm.intr.coro.begin", [pointer_type()], [coroutine, arguments[frame]])
            emit.create("llvm.store", [], [place, arguments[handle]])
        for block in blocks:
            last = last_operation(block).operation
            if last.name == "func.return":
                last.erase()
                with ir.InsertionPoint(block):
                    cf.BranchOp([], end)
            _split(block, place, end)
        with ir.InsertionPoint(end):
            none = emit.create("llvm.mlir.none", [_token()], [])
            emit.create("llvm.intr.coro.end", [ir.IntegerType.get_signless(1)], [place, _false(), none])
            cf.BranchOp([], leave)
        with ir.InsertionPoint(leave):
            func.ReturnOp([size])
        inputs = signature_of(function).inputs
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [i64()]))
        COROUTINE.mark(function)


def mark_functions(module: ir.Module) -> None:
    """Tells LLVM which functions of a module in its dialect are coroutines, and which are to be small: conversions lose such attributes."""
    with module.context:
        for op in module.body.operations:
            if COROUTINE.on(op) or SMALL.on(op):
                words = ("presplitcoroutine", "optsize") if COROUTINE.on(op) else ("optsize",)
                op.attributes["passthrough"] = strings_attribute(words)


def _split(block: ir.Block, place: ir.Value, end: ir.Block) -> None:
    """Ends a block at its calls of SUSPEND, and continues in new blocks."""
    parts: list[list[ir.Operation]] = [[]]
    for view in block.operations:
        op = view.operation
        if op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value == SUSPEND:
            parts.append([])
        parts[-1].append(op)
    blocks = [block]
    for suspends, *following in parts[1:]:
        blocks.append(blocks[-1].create_after())
        for op in following:
            blocks[-1].append(op)
        suspends.erase()
    for left, entered in pairwise(blocks):
        with ir.InsertionPoint(left):
            saved = emit.create("llvm.intr.coro.save", [_token()], [place])
            way = emit.create("llvm.intr.coro.suspend", [ir.IntegerType.get_signless(8)], [saved, _false()])
            # It is 0 to resume; the end is for what is suspended (-1) or destroyed (1).
            cf.CondBranchOp(emit.compare("eq", way, emit.number(0, way.type)), [], [], entered, end)


def _token() -> ir.Type:
    return ir.Type.parse("token")


def _false() -> ir.Value:
    return emit.create("arith.constant", [ir.IntegerType.get_signless(1)], [], {"value": ir.BoolAttr.get(False)})
