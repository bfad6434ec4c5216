"""16-bit floats carried as their bits.

Once arithmetic on bf16 is expanded to integer and f32 operations, bf16 values are only moved about: loaded, stored, selected, shuffled.
LLVM's x86 backend does some of these moves in f32 where the CPU has no bf16 instructions, and calls `__truncsfbf2` of compiler-rt to get
back, which no library at hand has. So the moves are made on i16, which has the same bytes. The same holds of f16 on CPUs without F16C.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np

from relayc.dialects.functions import signature_of
from relayc.dialects.mlir import arith, func, ir
from relayc.dialects.operations import walk
from relayc.dialects.relay.elements import dense_array
from relayc.dialects.relay.types import numpy_dtype
from relayc.pipelines.emission.emit import like
from relayc.pipelines.targets.cpu.target import CpuTarget

Bits = Callable[[ir.Type], ir.Type | None]

_DTYPES = {"bf16": "bfloat16", "f16": "float16"}


def emulated_floats(module: ir.Module, types: Iterable[ir.Type], target: CpuTarget) -> list[ir.Type]:
    """The 16-bit float types in a tir module that the target cannot move or convert; `types` are those of its operations' results."""
    with module.context:
        wanted = [ir.BF16Type.get(), *([] if target.has_f16_conversion else [ir.F16Type.get()])]
    found = {_element(t) for t in types}
    for function in module.body.operations:
        if isinstance(function, func.FuncOp):
            found |= {_element(t) for t in signature_of(function).inputs}
    return [type_ for type_ in wanted if type_ in found]


def round_before_comparing(module: ir.Module) -> None:
    """Lets comparisons see 16-bit floats as they are in memory, after arithmetic on them has become arithmetic on f32.

    LLVM passes may drop the rounding of a value that is extended again. A search for a maximum then finds nothing: loops carry the maximum
    rounded, and the values that are compared with it are not rounded.
    """
    for op in walk(module.operation, arith.CmpFOp):
        extended = [v.owner for v in op.operands if isinstance(v.owner, arith.ExtFOp)]
        if len(extended) == 2 and extended[0].in_ == extended[1].in_:
            continue  # whether it is NaN
        for extension in extended:
            if "fastmath" in extension.operation.attributes:
                del extension.operation.attributes["fastmath"]


def extend_in_steps(module: ir.Module, elements: Sequence[ir.Type]) -> None:
    """Turns extensions of these types to f64 into two, of which the first has an expansion: to f32, and from there."""
    for op in walk(module.operation, arith.ExtFOp):
        source, target = op.in_.type, op.out.type
        if _element(source) not in elements or _element(target) != ir.F64Type.get():
            continue
        with ir.InsertionPoint(op), op.operation.location:
            op.operation.operands[0] = arith.ExtFOp(like(source, ir.F32Type.get()), op.in_).result


def _element(type_: ir.Type) -> ir.Type:
    return type_.element_type if isinstance(type_, ir.ShapedType) else type_


def floats_to_bits(module: ir.Module, elements: Sequence[ir.Type]) -> None:
    """Turns every float of these 16-bit types in a module of the LLVM dialect, which must have no arithmetic on it, into an i16."""
    name = re.compile(rf"\b({'|'.join(map(str, elements))})\b")
    casts: list[ir.Operation] = []

    @cache
    def bits(type_: ir.Type) -> ir.Type | None:
        """The type with i16 in place of the floats; None if it contains none."""
        text, count = name.subn("i16", re.sub(r"(\d+)x", r"\1 x ", str(type_)))
        return ir.Type.parse(text) if count else None

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
    """A type or constant attribute with i16 in place of the floats; None if it contains none."""
    if isinstance(attribute, ir.TypeAttr):
        type_ = bits(attribute.value)
        return None if type_ is None else ir.TypeAttr.get(type_)
    if isinstance(attribute, ir.FloatAttr) and (type_ := bits(attribute.type)) is not None:
        return ir.IntegerAttr.get(type_, int(np.array(attribute.value, numpy_dtype(_DTYPES[str(attribute.type)])).view(np.int16)))
    if isinstance(attribute, ir.DenseFPElementsAttr) and (type_ := bits(attribute.type)) is not None:
        # The elements of a vector are read as those of a tensor.
        elements = dense_array(ir.DenseElementsAttr(ir.Attribute.parse(str(attribute).replace(": vector<", ": tensor<"))))
        return ir.DenseElementsAttr.get(elements.view(np.int16), type=type_)
    return None
