"""Helpers of the code generation tests: MLIR text to machine code, called with arrays."""

import ctypes
from collections.abc import Callable

import numpy as np

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.engine import Engine
from relayc.pipelines.targets.cpu.jit import jit
from relayc.pipelines.targets.cpu.lowering import lower_to_llvm
from relayc.pipelines.tir.fallback.bufferize import bufferize_kernel


def compile_text(text: str, bufferize: bool = False, mcpu: str = "native", prepare: Callable[[ir.Module], None] | None = None) -> Engine:
    """Compiles tir text (te text with `bufferize`) for this machine, or for a level that it has; `prepare` changes it before."""
    target = Target("cpu", mcpu=mcpu)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        if bufferize:
            bufferize_kernel(module)
        if prepare is not None:
            prepare(module)
        lower_to_llvm(module, target)
        if mcpu != "native":
            # The engine puts around each function one for this machine, into which LLVM would take the body.
            for op in module.body.operations:
                if op.operation.name == "llvm.func" and len(op.regions[0].blocks):
                    op.attributes["no_inline"] = ir.UnitAttr.get()
        return jit(module, target)


def call(engine: Engine, name: str, *arrays: np.ndarray) -> None:
    """Calls a function whose arguments are bare pointers to the data of `arrays`."""
    address = engine.raw_lookup(name)
    assert address, f"no function {name}"
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
    packed = (ctypes.c_void_p * len(arrays))(*[ctypes.addressof(p) for p in pointers])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(packed)


def elementwise(name: str, body: str, element: str, lanes: int, size: int, inputs: int = 1) -> str:
    """A function over arrays of `size` elements: `body` computes %y of %x0, %x1, ... of the type it calls TYPE; 0 lanes means scalars."""
    buffer = f"memref<{size}x{element}>"
    type_ = f"vector<{lanes}x{element}>" if lanes else element
    suffix = f"{buffer}, {type_}" if lanes else buffer
    kind = "vector" if lanes else "memref"
    loads = "\n".join(f"%x{i} = {kind}.load %a{i}[%i] : {suffix}" for i in range(inputs))
    arguments = ", ".join(f"%a{i}: {buffer}" for i in range(inputs))
    return f"""
func.func @{name}({arguments}, %o: {buffer}) {{
  %zero = arith.constant 0 : index
  %step = arith.constant {lanes or 1} : index
  %end = arith.constant {size} : index
  scf.for %i = %zero to %end step %step {{
    {loads}
    {body.replace("TYPE", type_)}
    {kind}.store %y, %o[%i] : {suffix}
  }}
  return
}}"""
