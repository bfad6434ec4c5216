"""relay -> te: functions of fusion groups become kernels (see te.kernel), and functions of the program sequences of calls (te.program).

A program function in the te stage contains: `relay.constant` with the key of a parameter (in its te type), calls of kernels and other
functions, `tensor.expand_shape` and `tensor.collapse_shape` for reshapes, `scf.if` and `scf.while` for branches and loops, and the return.
Tuples are flattened into separate values. A private function of the program has the unit attribute `relay.program`, which distinguishes it
from kernels. A function with specializations for some sizes calls one of them, or the general one (see te.dispatch). Declarations of packed
functions (`relay.packed`) and of functions of the tir stage (`relay.tir`), and functions written in the te and tir stages themselves
(`relay.stage`), are copied.
"""

from relayc.dialects.discardable import PACKED, PRIMITIVE, STAGE, TE, TIR
from relayc.dialects.functions import Names, symbol_name
from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.specializations import names_of
from relayc.pipelines.context.passes import PassContext, functions, module_pass
from relayc.pipelines.te.kernel import lower_kernel
from relayc.pipelines.te.program import lower_dispatch, lower_program
from relayc.pipelines.te.signature import te_array, te_function


@module_pass(opt_level=0, name="RelayToTe", stage="te")
def lower_module(mod: IRModule, ctx: PassContext) -> IRModule:
    """Functions of fusion groups become kernels of linalg operations, the others programs that call them (pipelines.te.lower).

    The result is a new module, with its own parameter table.

    Raises:
      RelayError: an operation that is not allowed in a fused program; an unknown shape; an operator without a rule.
    """
    params = {key: te_array(array) for key, array in mod.params.items()}
    out = IRModule(ir.Module.create(ir.Location.unknown(mod.context)), params)
    if mod.ranges:
        out.set_ranges(mod.ranges)
    if len(mod.strings) > 1:
        out.set_strings(mod.strings)
    callees = {}
    for op in mod.module.body.operations:
        if not _has_relay_body(op.operation):
            callee = _take_over(op.operation, out)
            if callee is not None:
                callees[symbol_name(op)] = callee
    with_body = {symbol_name(f): f for f in functions(mod)}
    called = with_body | {symbol_name(op): op.operation for op in mod.module.body.operations if PACKED.on(op)}
    for function in with_body.values():
        if PRIMITIVE.on(function):
            lower_kernel(function, out.module)
        elif special := names_of(function):
            general = Names(mod.module).free(f"{symbol_name(function)}_general")
            lower_dispatch(function, out, general, [(name, with_body[name]) for name in special])
            lower_program(function, out, callees, called, general)
        else:
            lower_program(function, out, callees, called)
    return out


def _has_relay_body(function: ir.Operation) -> bool:
    return len(function.regions[0].blocks) > 0 and not STAGE.on(function)


def _take_over(function: ir.Operation, out: IRModule) -> str | None:
    """Copies a function of a later stage, or a declaration, to the te module; returns its name there."""
    if STAGE.on(function):
        with ir.InsertionPoint(out.module.body):
            function.clone()
        return None
    name = symbol_name(function)
    if TE.on(function):
        return TE.of(function)
    with ir.InsertionPoint(out.module.body):
        declared = te_function(name, function, (f"@{name}", f"@{name}"), "private")
    for key in (PACKED.name, TIR.name):
        if key in function.attributes:
            declared.attributes[key] = function.attributes[key]
            break
    else:
        raise RelayError(f"@{name}: expected a function with a body, or one that is packed, found a declaration of neither")
    return name
