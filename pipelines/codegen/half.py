"""bf16 carried as its bits.

Once arithmetic on bf16 is expanded to integer and f32 operations, bf16 values are only moved about: loaded, stored, selected, shuffled.
LLVM's x86 backend does some of these moves in f32 where the CPU has no bf16 instructions, and calls `__truncsfbf2` of compiler-rt to get
back, which no library at hand has. So the moves are made on i16, which has the same bytes.
"""

from collections.abc import Callable

import numpy as np

from relayc.dialects.mlir import arith, ir
from relayc.dialects.relay.module import dense_array
from relayc.dialects.relay.types import numpy_dtype
from relayc.pipelines.codegen.bufferize import walk

Bits = Callable[[ir.Type], ir.Type | None]


def has_bf16(module: ir.Module) -> bool:
    """Whether a function of a tir module has an argument with bf16 elements (where all bf16 comes from)."""
    bf16 = ir.BF16Type.get(module.context)
    for function in module.body.operations:
        if "function_type" in function.attributes:
            inputs = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs
            if any(isinstance(t, ir.MemRefType) and t.element_type == bf16 for t in inputs):
                return True
    return False


def extend_in_steps(module: ir.Module) -> None:
    """Turns extensions of bf16 to f64 into two, of which arith-expand knows the first: to f32, and from there."""
    for op in walk(module.operation, arith.ExtFOp):
        source, target = op.in_.type, op.out.type
        if _element(source) != ir.BF16Type.get() or _element(target) != ir.F64Type.get():
            continue
        f32 = ir.F32Type.get()
        step = ir.VectorType.get(source.shape, f32) if isinstance(source, ir.VectorType) else f32
        with ir.InsertionPoint(op), op.operation.location:
            op.operation.operands[0] = arith.ExtFOp(step, op.in_).result


def _element(type_: ir.Type) -> ir.Type:
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def bf16_to_bits(module: ir.Module) -> None:
    """Turns every bf16 in a module of the LLVM dialect, which must have no arithmetic on it, into i16."""
    types: dict[ir.Type, ir.Type | None] = {}
    casts: list[ir.Operation] = []

    def bits(type_: ir.Type) -> ir.Type | None:
        """The type with i16 in place of bf16; None where there is none in it."""
        if type_ not in types:
            text = str(type_)
            types[type_] = ir.Type.parse(text.replace("bf16", "i16")) if "bf16" in text else None
        return types[type_]

    def visit(op: ir.Operation) -> ir.WalkResult:
        for value in (*op.results, *(a for region in op.regions for block in region.blocks for a in block.arguments)):
            if (type_ := bits(value.type)) is not None:
                value.set_type(type_)
        for name in ("elem_type", "value"):
            if name in op.attributes and (attribute := _of_bits(op.attributes[name], bits)) is not None:
                op.attributes[name] = attribute
        if op.name == "llvm.bitcast":
            casts.append(op)
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        for op in casts:
            if op.operands[0].type == op.results[0].type:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()


def _of_bits(attribute: ir.Attribute, bits: Bits) -> ir.Attribute | None:
    """A type or constant attribute with i16 in place of bf16; None where there is none in it."""
    if isinstance(attribute, ir.TypeAttr):
        type_ = bits(attribute.value)
        return None if type_ is None else ir.TypeAttr.get(type_)
    if isinstance(attribute, ir.FloatAttr) and (type_ := bits(attribute.type)) is not None:
        return ir.IntegerAttr.get(type_, int(np.array(attribute.value, numpy_dtype("bfloat16")).view(np.int16)))
    if isinstance(attribute, ir.DenseFPElementsAttr) and (type_ := bits(attribute.type)) is not None:
        # The elements of a vector are read as those of a tensor.
        elements = dense_array(ir.DenseElementsAttr(ir.Attribute.parse(str(attribute).replace(": vector<", ": tensor<"))))
        return ir.DenseElementsAttr.get(elements.view(np.int16), type=type_)
    return None
