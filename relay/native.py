"""Programs of control as machine code for executors: kernels are compiled when they are called first."""

from collections.abc import Callable
from typing import Any

from relayc.dialects.mlir import bare_context, ir
from relayc.frontend.relay.ast import Constant, ndarray
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.target import Target
from relayc.pipelines.control.program import control_code
from relayc.pipelines.control.steps import ControlProgram, Kernel
from relayc.pipelines.llvm.tables import address_table
from relayc.relay.kernel import argument
from relayc.runtime.artifact import ENTRIES_SYMBOL
from relayc.runtime.device import device_kind
from relayc.runtime.native import NativeCode


def native_function(program: ControlProgram) -> Callable[..., Any]:
    """The function main of a program, on values of Python; a tuple is a list. Raises as NativeFunction."""
    code = control_code(program)
    text = f"{code.text}\n{address_table(ENTRIES_SYMBOL, list(code.symbols.values()))}"
    module = ir.Module.parse(text, context=bare_context())
    addresses, owner = device_kind("cpu").load(find_backend("cpu").object_code(module, Target("cpu")), len(code.symbols))
    types = {var.name_hint: data.constructors for var, data in program.module.type_definitions.items()}
    kernels = code.kernels
    function = NativeCode(
        code.info,
        dict(zip(code.symbols, addresses, strict=True)),
        owner,
        lambda link: kernels[link.name],
        lambda link: _constant(kernels[link.name]),
        types,
        array=ndarray,
        tensor=argument,
    ).function("main")

    def call(*args: Any) -> Any:
        found = function(*args)
        return list(found) if isinstance(found, tuple) else found

    return call


def _constant(kernel: Kernel) -> Any:
    body = kernel.typed.body
    assert isinstance(body, Constant)
    return body.data
