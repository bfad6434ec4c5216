"""Gives buffers of symbolic size static types, so that functions can pass them as bare pointers: MLIR does so for static shapes only.

Heap memory comes from the C library.

A `memref<?xf32>` of the tir stage is a flat buffer whose size is never read: offsets are computed from the symbols. It becomes a buffer of
UNBOUNDED elements.
"""

from collections.abc import Sequence

from relayc.dialects.discardable import HEAP
from relayc.dialects.functions import signature_of, symbols_of
from relayc.dialects.mlir import arith, func, ir, memref
from relayc.dialects.operations import has_only_values
from relayc.pipelines.emission import emit
from relayc.runtime.artifact import ALIGNMENT

UNBOUNDED = 1 << 40
"""Elements of a buffer of unknown size: more than any has, so that no access is out of bounds."""


def give_bare_pointers(module: ir.Module) -> None:
    """Gives flat buffers of unknown size a static type, in place."""
    views: list[ir.Operation] = []
    memory: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = op.name
        if has_only_values(name):
            return ir.WalkResult.ADVANCE
        if name in ("memref.view", "memref.reinterpret_cast") and _is_unsized(op.results[0].type):
            views.append(op)
        elif name in ("memref.alloc", "memref.dealloc") and HEAP.on(op):
            memory.append(op)
        elif name == "memref.alloc" and _is_unsized(op.results[0].type):
            views.append(op)
        else:
            for result in op.results:
                _retype(result)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    _retype(argument)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    without_size = {"memref.view": _without_size, "memref.reinterpret_cast": _unbounded, "memref.alloc": _cast}
    for op in views:
        without_size[op.name](op)
    if memory:
        _from_c_library(module, memory)
    for function in [op for op in module.body.operations if isinstance(op, func.FuncOp)]:
        signature = signature_of(function)
        found = [[_static(t) if _is_unsized(t) else t for t in types] for types in (signature.inputs, signature.results)]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*found))


def _is_unsized(type_: ir.Type) -> bool:
    return isinstance(type_, ir.MemRefType) and type_.rank == 1 and not type_.has_static_shape


def _static(type_: ir.MemRefType) -> ir.MemRefType:
    return ir.MemRefType.get([UNBOUNDED], type_.element_type, memory_space=type_.memory_space)


def _retype(value: ir.Value) -> None:
    if _is_unsized(value.type):
        value.set_type(_static(value.type))


def _without_size(view: ir.Operation) -> None:
    with ir.InsertionPoint(view), view.location:
        made = memref.ViewOp(_static(view.results[0].type), *list(view.operands)[:2], [])
    view.results[0].replace_all_uses_with(made.result)
    view.erase()


def _cast(alloc: ir.Operation) -> None:
    """Casts allocated memory of a known size to a buffer of unknown size."""
    result = alloc.results[0]
    uses = list(result.uses)
    with ir.InsertionPoint.after(alloc), alloc.location:
        made = memref.CastOp(_static(result.type), result)
    for use in uses:
        use.owner.operation.operands[use.operand_number] = made.result


def _unbounded(view: ir.Operation) -> None:
    """A memref.reinterpret_cast to a flat buffer, and the memref.cast that drops the explicit layout."""
    type_ = _static(view.results[0].type)
    strided = ir.MemRefType.get([UNBOUNDED], type_.element_type, ir.StridedLayoutAttr.get(0, [1]))
    with ir.InsertionPoint(view), view.location:
        made = memref.ReinterpretCastOp(strided, view.operands[0], [], [], [], [0], [UNBOUNDED], [1])
    view.results[0].replace_all_uses_with(made.result)
    view.erase()


def _from_c_library(module: ir.Module, memory: Sequence[ir.Operation]) -> None:
    """Lowers heap allocations, which may have no bytes, to calls of aligned_alloc and free."""
    index, i8 = ir.IndexType.get(), ir.IntegerType.get_signless(8)
    buffer = ir.MemRefType.get([UNBOUNDED], i8)
    with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown():
        for name, signature in (("aligned_alloc", ([index, index], [buffer])), ("free", ([buffer], []))):
            if name not in symbols_of(module):
                func.FuncOp(name, signature, visibility="private")
    for op in memory:
        with ir.InsertionPoint(op), op.location:
            if op.name == "memref.dealloc":
                func.CallOp([], ir.FlatSymbolRefAttr.get("free"), [op.operands[0]])
            else:
                alignment, one = emit.index_constant(ALIGNMENT), emit.index_constant(1)
                # aligned_alloc requires multiples of the alignment.
                lines = arith.CeilDivSIOp(arith.MaxSIOp(op.operands[0], one).result, alignment).result
                size = arith.MulIOp(lines, alignment).result
                made = func.CallOp([buffer], ir.FlatSymbolRefAttr.get("aligned_alloc"), [alignment, size])
                op.results[0].replace_all_uses_with(made.operation.results[0])
        op.erase()
