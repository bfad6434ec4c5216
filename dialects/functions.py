"""What every stage asks of the functions of a module (upstream's func.func): names, types, and who may call them."""

from relayc.dialects.mlir import ir

Function = ir.Operation | ir.OpView


def symbol_name(function: Function) -> str:
    """The name of a function."""
    return ir.StringAttr(function.attributes["sym_name"]).value


def signature_of(function: Function) -> ir.FunctionType:
    """The types of its arguments and results."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def is_public(function: Function) -> bool:
    """Whether a function may be called from outside of its module: MLIR's default where nothing is said."""
    return "sym_visibility" not in function.attributes or ir.StringAttr(function.attributes["sym_visibility"]).value == "public"


def symbols_of(module: ir.Module | Function) -> dict[str, ir.OpView]:
    """What has a name in a module, in order."""
    operations = module.operation.regions[0].blocks[0].operations
    return {symbol_name(op): op for op in operations if "sym_name" in op.attributes}
