"""Operations of the x86 dialect to LLVM's intrinsics: tiles of AMX, dot products of AVX512-BF16."""

from relayc.dialects.mlir import ir, passmanager

TILE = "!x86.amx.tile<"
_DOT = "llvm.x86.avx512bf16."


def uses_x86(module: ir.Module) -> bool:
    """Whether there is an operation of the x86 dialect in a module."""
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = op.name.startswith("x86.")
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def lower_x86(module: ir.Module) -> None:
    """Turns the x86 dialect's operations in a tir module into calls of intrinsics, and tiles that loops carry into LLVM's `x86_amx`.

    Loops must still be scf's: no later pass converts the types that branches carry.
    """
    manager = passmanager.PassManager.parse("builtin.module(convert-to-llvm{filter-dialects=x86})", module.context)
    manager.enable_verifier(False)
    manager.run(module.operation)
    register = ir.Type.parse("!llvm.x86_amx")
    casts: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        for value in (*op.results, *(a for region in op.regions for block in region.blocks for a in block.arguments)):
            if str(value.type).startswith(TILE):
                value.set_type(register)
        if op.name == "builtin.unrealized_conversion_cast" and op.results[0].type == register:
            casts.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in casts:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()


def restore_bf16_operands(module: ir.Module) -> None:
    """Gives intrinsics vectors of bf16 where `bf16_to_bits` has made i16 of everything."""
    calls = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "llvm.call_intrinsic" and ir.StringAttr(op.attributes["intrin"]).value.startswith(_DOT):
            calls.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    i16, bf16 = ir.IntegerType.get_signless(16), ir.BF16Type.get()
    for op in calls:
        with ir.InsertionPoint(op), op.location:
            for i, operand in enumerate(op.operands):
                type_ = operand.type
                if isinstance(type_, ir.VectorType) and type_.element_type == i16:
                    wanted = ir.VectorType.get(type_.shape, bf16)
                    op.operands[i] = ir.Operation.create("llvm.bitcast", results=[wanted], operands=[operand]).results[0]
