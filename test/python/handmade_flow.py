"""A module with branches, loops and calls, made by hand: what the runtime gets from the compiler, without the compiler.

In Python, with t[0] and so on the first element, it is

    def main(x):                       # f32[2, 3] all of them
        t = x + P
        while t[0] < 10:
            t = packed("relayc.test.flow")(t) + 0
        return climb(t)

    def climb(v):                      # at most twelve in one another
        return climb(v + v) if v[0] < 1000 else v + 0
"""

import ctypes

import numpy as np
from handmade import LOOP

from relayc.dialects.mlir import ExecutionEngine, ir
from relayc.pipelines.llvm.packed import add_packed_entries, entry_addresses
from relayc.pipelines.program.packed_entry import PackedEntry
from relayc.runtime import Artifact, Branch, BufferRef, KernelInfo, Loop, PackedCall, ProgramCall, ProgramInfo, Step, TensorSpec
from relayc.runtime.artifact import aligned_empty

PARAMETER = np.arange(6, dtype=np.float32).reshape(2, 3)
DEPTH = 12
FUNCTION = "relayc.test.flow"

_P, _ZERO, _TEN, _THOUSAND = 0, 64, 128, 192
"""Bytes of parameters."""
_T, _GOES_ON, _DOUBLED, _CALLEE = 0, 64, 128, 192
"""Bytes of the arena of main; that of climb begins at the last one."""
_IS_BELOW, _TWICE, _NEXT = 0, 64, 128
"""Bytes of the arena of climb."""

_ADD = LOOP.format(
    name="add",
    arguments="%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr",
    count=6,
    body="""
  %0 = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %1 = llvm.load %0 : !llvm.ptr -> f32
  %2 = llvm.getelementptr %b[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %3 = llvm.load %2 : !llvm.ptr -> f32
  %4 = llvm.getelementptr %c[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %5 = llvm.fadd %1, %3 : f32
  llvm.store %5, %4 : f32, !llvm.ptr""",
)

_BELOW = """
llvm.func @below(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) {
  %0 = llvm.load %a : !llvm.ptr -> f32
  %1 = llvm.load %b : !llvm.ptr -> f32
  %2 = llvm.fcmp "olt" %0, %1 : f32
  %3 = llvm.zext %2 : i1 to i8
  llvm.store %3, %c : i8, !llvm.ptr
  llvm.return
}
"""

_PROGRAMS = f"""
llvm.func @TVMFFIFunctionGetGlobal(!llvm.ptr, !llvm.ptr) -> i32
llvm.func @TVMFFIFunctionCall(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
llvm.func @TVMFFIObjectDecRef(!llvm.ptr) -> i32
llvm.func @TVMFFIErrorSetRaisedFromCStr(!llvm.ptr, !llvm.ptr)
llvm.mlir.global internal constant @flow_name("{FUNCTION}")
llvm.mlir.global internal constant @flow_kind("RecursionError\\00")
llvm.mlir.global internal constant @flow_message("climb: too deep\\00")
llvm.mlir.global internal constant @flow_shape(dense<[2, 3]> : tensor<2xi64>) : !llvm.array<2 x i64>
llvm.mlir.global internal constant @flow_strides(dense<[3, 1]> : tensor<2xi64>) : !llvm.array<2 x i64>

// A DLTensor of f32[2, 3] at %to.
llvm.func internal @tensor(%to: !llvm.ptr, %data: !llvm.ptr) {{
  %cpu = llvm.mlir.constant(1 : i64) : i64
  %rank_f32 = llvm.mlir.constant({2 | 2 << 32 | 32 << 40 | 1 << 48} : i64) : i64
  %shape = llvm.mlir.addressof @flow_shape : !llvm.ptr
  %strides = llvm.mlir.addressof @flow_strides : !llvm.ptr
  %none = llvm.mlir.constant(0 : i64) : i64
  llvm.store %data, %to : !llvm.ptr, !llvm.ptr
  %1 = llvm.getelementptr %to[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %cpu, %1 : i64, !llvm.ptr
  %2 = llvm.getelementptr %to[2] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %rank_f32, %2 : i64, !llvm.ptr
  %3 = llvm.getelementptr %to[3] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %shape, %3 : !llvm.ptr, !llvm.ptr
  %4 = llvm.getelementptr %to[4] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %strides, %4 : !llvm.ptr, !llvm.ptr
  %5 = llvm.getelementptr %to[5] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %none, %5 : i64, !llvm.ptr
  llvm.return
}}

llvm.func internal @call_packed(%a: !llvm.ptr, %b: !llvm.ptr) -> i32 {{
  %words = llvm.mlir.constant(20 : i64) : i64
  %memory = llvm.alloca %words x i64 : (i64) -> !llvm.ptr
  %dltensor = llvm.mlir.constant(7 : i64) : i64
  %none = llvm.mlir.constant(0 : i64) : i64
  %two = llvm.mlir.constant(2 : i32) : i32
  %first = llvm.getelementptr %memory[0] : (!llvm.ptr) -> !llvm.ptr, i64
  %second = llvm.getelementptr %memory[6] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.call @tensor(%first, %a) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.call @tensor(%second, %b) : (!llvm.ptr, !llvm.ptr) -> ()
  %args = llvm.getelementptr %memory[12] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %dltensor, %args : i64, !llvm.ptr
  %1 = llvm.getelementptr %memory[13] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %first, %1 : !llvm.ptr, !llvm.ptr
  %2 = llvm.getelementptr %memory[14] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %dltensor, %2 : i64, !llvm.ptr
  %3 = llvm.getelementptr %memory[15] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %second, %3 : !llvm.ptr, !llvm.ptr
  %result = llvm.getelementptr %memory[16] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %none, %result : i64, !llvm.ptr
  %name = llvm.getelementptr %memory[18] : (!llvm.ptr) -> !llvm.ptr, i64
  %text = llvm.mlir.addressof @flow_name : !llvm.ptr
  llvm.store %text, %name : !llvm.ptr, !llvm.ptr
  %4 = llvm.getelementptr %memory[19] : (!llvm.ptr) -> !llvm.ptr, i64
  %length = llvm.mlir.constant({len(FUNCTION)} : i64) : i64
  llvm.store %length, %4 : i64, !llvm.ptr
  %found = llvm.getelementptr %memory[17] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.call @TVMFFIFunctionGetGlobal(%name, %found) : (!llvm.ptr, !llvm.ptr) -> i32
  %function = llvm.load %found : !llvm.ptr -> !llvm.ptr
  %status = llvm.call @TVMFFIFunctionCall(%function, %args, %two, %result) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
  llvm.call @TVMFFIObjectDecRef(%function) : (!llvm.ptr) -> i32
  llvm.return %status : i32
}}

llvm.func internal @climb(%v: !llvm.ptr, %w: !llvm.ptr, %arena: !llvm.ptr, %params: !llvm.ptr, %depth: i32) -> i32 {{
  %one = llvm.mlir.constant(1 : i32) : i32
  %most = llvm.mlir.constant({DEPTH} : i32) : i32
  %good = llvm.mlir.constant(0 : i32) : i32
  %failed = llvm.mlir.constant(-1 : i32) : i32
  %deeper = llvm.add %depth, %one : i32
  %is_deep = llvm.icmp "sgt" %deeper, %most : i32
  llvm.cond_br %is_deep, ^fail, ^start
^fail:
  %kind = llvm.mlir.addressof @flow_kind : !llvm.ptr
  %message = llvm.mlir.addressof @flow_message : !llvm.ptr
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return %failed : i32
^start:
  %top = llvm.getelementptr %params[{_THOUSAND}] : (!llvm.ptr) -> !llvm.ptr, i8
  %zero = llvm.getelementptr %params[{_ZERO}] : (!llvm.ptr) -> !llvm.ptr, i8
  %is_below = llvm.getelementptr %arena[{_IS_BELOW}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.call @below(%v, %top, %is_below) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
  %0 = llvm.load %is_below : !llvm.ptr -> i8
  %1 = llvm.trunc %0 : i8 to i1
  llvm.cond_br %1, ^then, ^otherwise
^then:
  %twice = llvm.getelementptr %arena[{_TWICE}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.call @add(%v, %v, %twice) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
  %next = llvm.getelementptr %arena[{_NEXT}] : (!llvm.ptr) -> !llvm.ptr, i8
  %status = llvm.call @climb(%twice, %w, %next, %params, %deeper) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32) -> i32
  llvm.return %status : i32
^otherwise:
  llvm.call @add(%v, %zero, %w) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
  llvm.return %good : i32
}}

llvm.func internal @main(%x: !llvm.ptr, %y: !llvm.ptr, %arena: !llvm.ptr, %params: !llvm.ptr, %depth: i32) -> i32 {{
  %good = llvm.mlir.constant(0 : i32) : i32
  %p = llvm.getelementptr %params[{_P}] : (!llvm.ptr) -> !llvm.ptr, i8
  %zero = llvm.getelementptr %params[{_ZERO}] : (!llvm.ptr) -> !llvm.ptr, i8
  %limit = llvm.getelementptr %params[{_TEN}] : (!llvm.ptr) -> !llvm.ptr, i8
  %t = llvm.getelementptr %arena[{_T}] : (!llvm.ptr) -> !llvm.ptr, i8
  %goes_on = llvm.getelementptr %arena[{_GOES_ON}] : (!llvm.ptr) -> !llvm.ptr, i8
  %doubled = llvm.getelementptr %arena[{_DOUBLED}] : (!llvm.ptr) -> !llvm.ptr, i8
  %callee = llvm.getelementptr %arena[{_CALLEE}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.call @add(%x, %p, %t) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
  llvm.br ^loop
^loop:
  llvm.call @below(%t, %limit, %goes_on) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
  %0 = llvm.load %goes_on : !llvm.ptr -> i8
  %1 = llvm.trunc %0 : i8 to i1
  llvm.cond_br %1, ^body, ^rest
^body:
  %status = llvm.call @call_packed(%t, %doubled) : (!llvm.ptr, !llvm.ptr) -> i32
  %2 = llvm.icmp "eq" %status, %good : i32
  llvm.cond_br %2, ^add, ^fail
^add:
  llvm.call @add(%doubled, %zero, %t) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
  llvm.br ^loop
^fail:
  llvm.return %status : i32
^rest:
  %last = llvm.call @climb(%t, %y, %callee, %params, %depth) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32) -> i32
  llvm.return %last : i32
}}

// The data of argument %i: a DLTensor*, or a tensor object (type 70) with the DLTensor in it.
llvm.func internal @data(%args: !llvm.ptr, %i: i64) -> !llvm.ptr {{
  %object = llvm.mlir.constant(70 : i32) : i32
  %arg = llvm.getelementptr %args[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  %type = llvm.load %arg : !llvm.ptr -> i32
  %0 = llvm.getelementptr %arg[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %1 = llvm.load %0 : !llvm.ptr -> !llvm.ptr
  %2 = llvm.getelementptr %1[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %3 = llvm.icmp "eq" %type, %object : i32
  %4 = llvm.select %3, %2, %1 : i1, !llvm.ptr
  %5 = llvm.load %4 : !llvm.ptr -> !llvm.ptr
  llvm.return %5 : !llvm.ptr
}}
"""

_ENTRY = """
llvm.func internal @entry_{name}(%self: !llvm.ptr, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32 {{
  %depth = llvm.mlir.constant(0 : i32) : i32
  %i0 = llvm.mlir.constant(0 : i64) : i64
  %i1 = llvm.mlir.constant(1 : i64) : i64
  %i2 = llvm.mlir.constant(2 : i64) : i64
  %i3 = llvm.mlir.constant(3 : i64) : i64
  %0 = llvm.call @data(%args, %i0) : (!llvm.ptr, i64) -> !llvm.ptr
  %1 = llvm.call @data(%args, %i1) : (!llvm.ptr, i64) -> !llvm.ptr
  %2 = llvm.call @data(%args, %i2) : (!llvm.ptr, i64) -> !llvm.ptr
  %3 = llvm.call @data(%args, %i3) : (!llvm.ptr, i64) -> !llvm.ptr
  %status = llvm.call @{name}(%0, %1, %2, %3, %depth) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32) -> i32
  llvm.return %status : i32
}}
llvm.func @address_{name}() -> !llvm.ptr {{
  %0 = llvm.mlir.addressof @entry_{name} : !llvm.ptr
  llvm.return %0 : !llvm.ptr
}}
"""

X = TensorSpec("x", (2, 3), "float32")
FLAG = TensorSpec("flag", (), "bool")


def _ref(space: str, offset: int, spec: TensorSpec = X) -> BufferRef:
    return BufferRef(space, 0, offset, spec)


def programs() -> tuple[ProgramInfo, ProgramInfo]:
    given, made = _ref("input", 0), _ref("output", 0)
    p, zero, ten, thousand = (_ref("param", at) for at in (_P, _ZERO, _TEN, _THOUSAND))
    t, doubled, goes_on = _ref("arena", _T), _ref("arena", _DOUBLED), _ref("arena", _GOES_ON, FLAG)
    body = (PackedCall(FUNCTION, (t,), (doubled,), ("double",)), Step("add", (doubled, zero), (t,)))
    main = (
        Step("add", (given, p), (t,), ("first",)),
        Loop((Step("below", (t, ten), (goes_on,)),), goes_on, body, ("while",)),
        ProgramCall("climb", (t,), (made,), _CALLEE),
    )
    is_below, twice = _ref("arena", _IS_BELOW, FLAG), _ref("arena", _TWICE)
    climb = (
        Step("below", (given, thousand), (is_below,)),
        Branch(
            is_below,
            (Step("add", (given, given), (twice,)), ProgramCall("climb", (twice,), (made,), _NEXT)),
            (Step("add", (given, zero), (made,)),),
        ),
    )
    y = TensorSpec("y", (2, 3), "float32")
    arena = _CALLEE + _NEXT * DEPTH
    main = ProgramInfo("main", (X,), (y,), main, True, arena_bytes=arena)
    return main, ProgramInfo("climb", (X,), (y,), climb, True, DEPTH, arena_bytes=arena)


def expected(x: np.ndarray) -> np.ndarray:
    """What main gives where the packed function doubles."""
    found = x + PARAMETER
    while found[0, 0] < 1000:
        found = found + found
    return found


def build_artifact() -> Artifact:
    params = aligned_empty(256)
    for at, value in ((_P, PARAMETER), (_ZERO, 0), (_TEN, 10), (_THOUSAND, 1000)):
        params[at : at + 24].view(np.float32).reshape(2, 3)[...] = value
    kernels = (
        KernelInfo("add", (X, X), (X,), ("add",), (), flops=6, bytes=72),
        KernelInfo("below", (X, X), (FLAG,), ("less",), (), flops=1, bytes=9),
    )
    text = "\n".join([_ADD, _BELOW, _PROGRAMS, *(_ENTRY.format(name=program.name) for program in programs())])
    with ir.Context() as context, ir.Location.unknown():
        context.load_all_available_dialects()
        module = ir.Module.parse(text)
        packed = {k.name: PackedEntry((*k.inputs, *k.outputs)) for k in kernels}
        add_packed_entries(module, packed)
        assert module.operation.verify()
        engine = ExecutionEngine(module, opt_level=2)
    entries = {program.name: _address(engine, program.name) for program in programs()}
    return Artifact({**entries, **entry_addresses(engine, packed)}, engine, programs(), kernels, params)


def _address(engine: ExecutionEngine, name: str) -> int:
    found = ctypes.c_void_p()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.raw_lookup(f"address_{name}"))((ctypes.c_void_p * 1)(ctypes.addressof(found)))
    return found.value
