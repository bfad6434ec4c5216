"""Operations of the x86 dialect to LLVM's intrinsics: tiles of AMX, dot products and conversions of AVX512-BF16."""

from relayc.dialects.functions import retype
from relayc.dialects.mlir import ir
from relayc.dialects.operations import find_operations, has_operation, innermost_around
from relayc.pipelines.context.upstream import run_upstream

TILE = "!x86.amx.tile<"
_BF16 = "llvm.x86.avx512bf16."
"""Prefix of the intrinsics on vectors of bf16."""
_TILES = ("llvm.x86.tile", "llvm.x86.tdp")
"""Prefixes of the intrinsics on tiles."""
_CONVERTED = ([8], [16])
"""Shapes of the vectors that an instruction converts."""


def uses_x86(module: ir.Module) -> bool:
    """Whether there is an operation of the x86 dialect in a module."""
    return has_operation(module.operation, lambda op: op.name.startswith("x86."))


def lower_x86(module: ir.Module) -> None:
    """Turns the x86 dialect's operations in a tir module into calls of intrinsics, and tiles that loops carry into LLVM's `x86_amx`.

    Loops must still be scf's: no later pass converts the types that branches carry.
    """
    run_upstream(module.operation, "convert-to-llvm{filter-dialects=x86}")
    register = ir.Type.parse("!llvm.x86_amx")
    retype(module.operation, lambda type_: register if str(type_).startswith(TILE) else type_)
    casts = find_operations(module.operation, lambda op: op.name == "builtin.unrealized_conversion_cast")
    for op in casts:
        if op.results[0].type == register:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()


def convert_by_instruction(module: ir.Module) -> None:
    """Turns roundings of whole vectors of f32 to bf16 into operations of AVX512-BF16, which take denormal numbers as zeros."""
    types = ir.F32Type.get(), ir.BF16Type.get()

    def has_instruction(op: ir.Operation) -> bool:
        if op.name != "arith.truncf" or not isinstance(source := op.operands[0].type, ir.VectorType):
            return False
        return source.shape in _CONVERTED and (source.element_type, op.results[0].type.element_type) == types

    for op in find_operations(module.operation, has_instruction):
        with ir.InsertionPoint(op), op.location:
            made = ir.Operation.create("x86.avx512.cvt.packed.f32_to_bf16", results=[op.results[0].type], operands=[op.operands[0]])
            op.results[0].replace_all_uses_with(made.results[0])
        op.erase()


def _calls(module: ir.Module, prefixes: str | tuple[str, ...]) -> list[ir.Operation]:
    """Calls of the intrinsics with these prefixes."""

    def is_call(op: ir.Operation) -> bool:
        return op.name == "llvm.call_intrinsic" and ir.StringAttr(op.attributes["intrin"]).value.startswith(prefixes)

    return find_operations(module.operation, is_call)


def keep_tiles_apart(module: ir.Module) -> None:
    """Prevents inlining of functions with tiles: LLVM assigns one shape to a tile register in a whole function, and runs out of the eight
    registers if tiles of the caller have other shapes. It then only prints a message on stderr and generates wrong code.
    """
    for op in _calls(module, _TILES):
        function = innermost_around(op, lambda outer: outer.name == "llvm.func")
        function.attributes["no_inline"] = ir.UnitAttr.get()  # type: ignore[union-attr] # a call is in a function


def restore_bf16(module: ir.Module) -> None:
    """Inserts casts to and from bf16 vectors at intrinsics, after `floats_to_bits` has replaced all floats by i16."""
    for op in _calls(module, _BF16):
        with op.location:
            for i, operand in enumerate(op.operands):
                if (wanted := _as_bf16(operand.type)) is not None:
                    with ir.InsertionPoint(op):
                        op.operands[i] = ir.Operation.create("llvm.bitcast", results=[wanted], operands=[operand]).results[0]
            result = op.results[0]
            if (wanted := _as_bf16(result.type)) is not None:
                bits = result.type
                result.set_type(wanted)
                with ir.InsertionPoint.after(op):
                    cast = ir.Operation.create("llvm.bitcast", results=[bits], operands=[result])
                result.replace_all_uses_except(cast.results[0], cast)


def _as_bf16(type_: ir.Type) -> ir.Type | None:
    """A vector type of i16 as a vector type of bf16; None for any other type."""
    if isinstance(type_, ir.VectorType) and type_.element_type == ir.IntegerType.get_signless(16):
        return ir.VectorType.get(type_.shape, ir.BF16Type.get())
    return None
