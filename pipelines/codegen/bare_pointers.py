"""Buffers of symbolic size get types that functions can pass as bare pointers: MLIR does so for static shapes only.

A `memref<?xf32>` of the tir stage is a flat buffer whose size nobody asks for: the code computes its offsets of the symbols. It becomes one
of UNBOUNDED elements.
"""

from relayc.dialects.functions import signature_of
from relayc.dialects.mlir import func, ir
from relayc.pipelines.codegen.bufferize import walk

UNBOUNDED = 1 << 40
"""Elements of a buffer whose size is not known: more than any has, so that no access is outside of it."""


def give_bare_pointers(module: ir.Module) -> None:
    """Gives flat buffers of unknown size a static type, in place."""
    views: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.view" and _is_unsized(op.results[0].type):
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
    for op in views:
        _without_size(op)
    for function in walk(module.operation, func.FuncOp):
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
        made = ir.Operation.create("memref.view", results=[_static(view.results[0].type)], operands=list(view.operands)[:2])
    view.results[0].replace_all_uses_with(made.results[0])
    view.erase()
