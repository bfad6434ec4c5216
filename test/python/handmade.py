"""A compiled program made by hand: what the runtime gets from the compiler, without the compiler.

main(x: f32[2, 3], n: bf16[1, 4]) -> (y: f32[2, 3], m: bf16[1, 4]) computes y = (x + p) + (x + p) and m = n, with p from the parameter
table at byte 64 and x + p in the arena at byte 64.
"""

import numpy as np

from relayc.dialects.mlir import ExecutionEngine, ir
from relayc.pipelines.llvm.packed import add_packed_entries, entry_addresses
from relayc.pipelines.program.packed_entry import PackedEntry
from relayc.runtime import Artifact, BufferRef, KernelInfo, ProgramInfo, Step, TensorSpec
from relayc.runtime.artifact import aligned_empty

PARAMETER = np.arange(6, dtype=np.float32)

LOOP = """
llvm.func @{name}({arguments}) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %n = llvm.mlir.constant({count} : i64) : i64
  llvm.br ^next(%zero : i64)
^next(%i: i64):
  %more = llvm.icmp "slt" %i, %n : i64
  llvm.cond_br %more, ^body, ^end
^body:
  {body}
  %j = llvm.add %i, %one : i64
  llvm.br ^next(%j : i64)
^end:
  llvm.return
}}
"""

_ADD = LOOP.format(
    name="add",
    arguments="%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr",
    count=6,
    body="""
  %0 = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %1 = llvm.load %0 : !llvm.ptr -> f32
  %2 = llvm.getelementptr %b[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %3 = llvm.load %2 : !llvm.ptr -> f32
  %4 = llvm.fadd %1, %3 : f32
  %5 = llvm.getelementptr %c[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %4, %5 : f32, !llvm.ptr""",
)

_COPY = LOOP.format(
    name="copy",
    arguments="%a: !llvm.ptr, %c: !llvm.ptr",
    count=4,
    body="""
  %0 = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %1 = llvm.load %0 : !llvm.ptr -> i16
  %2 = llvm.getelementptr %c[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  llvm.store %1, %2 : i16, !llvm.ptr""",
)

_MAIN = """
llvm.func @main(%x: !llvm.ptr, %n: !llvm.ptr, %y: !llvm.ptr, %m: !llvm.ptr, %arena: !llvm.ptr, %params: !llvm.ptr) {
  %p = llvm.getelementptr %params[64] : (!llvm.ptr) -> !llvm.ptr, i8
  %t = llvm.getelementptr %arena[64] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.call @add(%x, %p, %t) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
  llvm.call @add(%t, %t, %y) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
  llvm.call @copy(%n, %m) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return
}
"""

X = TensorSpec("x", (2, 3), "float32")
N = TensorSpec("n", (1, 4), "bfloat16")
Y = TensorSpec("y", (2, 3), "float32")
M = TensorSpec("m", (1, 4), "bfloat16")


def build_artifact(device: str = "cpu") -> Artifact:
    params = aligned_empty(88)
    params[64:] = PARAMETER.view(np.uint8)
    kernels = (
        KernelInfo("add", (X, X), (Y,), ("add",), ("node_a", "node_b"), flops=6, bytes=72),
        KernelInfo("copy", (N,), (M,), ("copy",), ("node_c",), flops=0, bytes=16),
    )
    temporary = BufferRef("arena", 0, 64, X)
    steps = (
        Step("add", (BufferRef("input", 0, 0, X), BufferRef("param", 0, 64, X)), (temporary,)),
        Step("add", (temporary, temporary), (BufferRef("output", 0, 0, Y),)),
        Step("copy", (BufferRef("input", 1, 0, N),), (BufferRef("output", 1, 0, M),)),
    )
    blobs = (TensorSpec("arena", (128,), "uint8"), TensorSpec("params", (88,), "uint8"))
    entries = {"main": PackedEntry((X, N, Y, M, *blobs), blobs=2), **{k.name: PackedEntry((*k.inputs, *k.outputs)) for k in kernels}}
    with ir.Context() as context, ir.Location.unknown():
        context.load_all_available_dialects()
        module = ir.Module.parse(_ADD + _COPY + _MAIN)
        add_packed_entries(module, entries, device)
        assert module.operation.verify()
        engine = ExecutionEngine(module, opt_level=2)
    functions = entry_addresses(engine, entries)
    programs = (ProgramInfo("main", (X, N), (Y, M), steps, public=True, arena_bytes=128),)
    return Artifact(functions, engine, programs, kernels, params, {}, {"llvm": "text"}, {"llvm": 0.5}, "cpu", device=device)
