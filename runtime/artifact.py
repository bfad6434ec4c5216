"""What a compiled program is, as plain data: the contract between the compiler, which fills it, and the runtime, which runs it.

Nothing here knows MLIR. An artifact says where the packed functions are in memory, what they take and give, and what its programs do: which
kernels, packed functions and other programs each calls, in which order, under which conditions and on which buffers.

Sizes may be expressions over symbols (relayc.symbolic): a function has symbols of its own, whose values follow from the shapes of what it
is called with.
"""

import ctypes
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

import ml_dtypes
import numpy as np

from relayc.runtime.native_info import NativeInfo
from relayc.symbolic import Size, evaluate, is_symbolic

PACKED_PREFIX = "__tvm_ffi_"
"""Prefix of the symbol of a packed function, as tvm-ffi expects it of a shared library."""

ENTRIES_SYMBOL = "__relayc_entries"
"""Function of a program's object code: gives the array of the addresses of all packed entries."""

ALIGNMENT = 64
"""Alignment in bytes of arenas, parameters and outputs that the runtime allocates, and of every offset in an arena or parameter blob."""


DLPACK_CODES = {
    "bfloat16": 4,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}
"""DLDataTypeCode of the dtypes that numpy does not export."""

SUB_BYTE = ("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4", "uint4", "int2", "uint2")
"""Element types of less than a byte: an element takes a byte, of which the bits above its own are zeros."""

_NOT_NUMPY = {name: np.dtype(getattr(ml_dtypes, name)) for name in (*DLPACK_CODES, *SUB_BYTE)}


def is_object_dtype(name: str) -> bool:
    """Whether a dtype name is that of an object of the host: "seq(float32)", "optional(float32)", "map(string, float32)"; or of a value of
    the Relay language: "value(List[int32])"."""
    return name.startswith(("seq(", "optional(", "map(", "value("))


def is_host_dtype(name: str) -> bool:
    """Whether a dtype name is that of values which the host holds, and code knows by number (see runtime.host)."""
    return name == "string" or is_object_dtype(name)


def numpy_dtype(name: str) -> np.dtype:
    """The numpy dtype of a dtype name such as "float32" or "bfloat16"; of ml_dtypes where numpy has none. Raises TypeError.

    That of values of the host is the dtype of their numbers, int64.
    """
    if is_host_dtype(name):
        return np.dtype(np.int64)
    found = _NOT_NUMPY.get(name)
    return np.dtype(name) if found is None else found


def is_numpys(dtype: np.dtype) -> bool:
    """Whether a dtype is one of numpy's own, which DLPack, files and the array interface take."""
    return dtype.isbuiltin != 2  # 1 says so of a dtype itself, 0 of one that was unpickled


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, shape and element type name of a row-major tensor."""

    name: str
    shape: tuple[Size, ...]
    dtype: str

    @property
    def is_symbolic(self) -> bool:
        """Whether a size is symbolic."""
        return any(map(is_symbolic, self.shape))

    @property
    def num_elements(self) -> Size:
        """The product of the sizes, an expression where they are symbolic."""
        return prod(self.shape)

    @property
    def num_bytes(self) -> Size:
        """Bytes of the elements in memory, an expression where sizes are symbolic."""
        return self.num_elements * numpy_dtype(self.dtype).itemsize

    def at(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape where symbols have the given values."""
        return tuple(evaluate(d, sizes) for d in self.shape)

    def __str__(self) -> str:
        return self.dtype if is_object_dtype(self.dtype) else f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class BufferRef:
    """Where a tensor lives during a call of a program.

    Attributes:
      space: "input" and "output" are arguments of the program, at position `index` of its inputs or outputs; "arena" and "param" are blobs,
        at byte `offset`: the program's part of the arena, and the parameters of the module; "heap" is what slot `index` holds, from that
        byte on.
      spec: the tensor that is read or written there.
    """

    space: Literal["input", "output", "arena", "param", "heap"]
    index: int
    offset: Size
    spec: TensorSpec


@dataclass(frozen=True, slots=True)
class Step:
    """A call of a kernel: its packed function takes the inputs, then the outputs.

    Attributes:
      kernel: name of the kernel.
      sources: names of the ONNX nodes that the call stands for.
      sizes: the values of the kernel's symbols, which its packed function takes after the tensors.
    """

    kernel: str
    inputs: tuple[BufferRef, ...]
    outputs: tuple[BufferRef, ...]
    sources: tuple[str, ...] = ()
    sizes: tuple[Size, ...] = ()


@dataclass(frozen=True, slots=True)
class PackedCall:
    """A call of a packed function of the process: it takes the inputs, then the outputs, which it writes.

    Attributes:
      name: under which the function is registered (runtime.register_func); it is looked up when the call runs.
      sources: names of the ONNX nodes that the call stands for.
    """

    name: str
    inputs: tuple[BufferRef, ...]
    outputs: tuple[BufferRef, ...]
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """A call of another program of the module, or of the program itself.

    Attributes:
      function: name of the called program.
      inputs, outputs: buffers of the caller, of the shapes and dtypes of the callee's inputs and outputs.
      arena: byte of the caller's arena at which the callee's arena begins.
      sources: names of the ONNX nodes that the call stands for.
      sizes: the values of the callee's symbols.
      heap: the slot of memory that is its arena instead; -1 for none.
      slots: which then hold the memory that the callee gives.
      names: of the sizes that it gives.
    """

    function: str
    inputs: tuple[BufferRef, ...]
    outputs: tuple[BufferRef, ...]
    arena: Size
    sources: tuple[str, ...] = ()
    sizes: tuple[Size, ...] = ()
    heap: int = -1
    slots: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EqualSizes:
    """A condition on sizes: those of each pair are equal."""

    pairs: tuple[tuple[Size, Size], ...]

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether it does where symbols have the given values."""
        return all(evaluate(a, sizes) == evaluate(b, sizes) for a, b in self.pairs)


@dataclass(frozen=True, slots=True)
class Branch:
    """Runs `then` where the condition, a tensor of one bool element or one on sizes, holds, else `otherwise`."""

    condition: BufferRef | EqualSizes
    then: "tuple[Node, ...]"
    otherwise: "tuple[Node, ...]"
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """Runs `condition_steps`, which write the condition, a tensor of one bool element, and where it holds `body`; then again, until it
    does not."""

    condition_steps: "tuple[Node, ...]"
    condition: BufferRef
    body: "tuple[Node, ...]"
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocate:
    """Puts memory of the heap into a slot: so many bytes. A slot is a variable of the program."""

    slot: int
    num_bytes: Size


@dataclass(frozen=True, slots=True)
class Define:
    """Gives a size the value of an element of a tensor of integers: `position` counts in row-major order."""

    name: str
    source: BufferRef
    position: int


@dataclass(frozen=True, slots=True)
class Move:
    """Lets slots hold what others hold, and sizes be others, all at once: what a branch gives, and a loop carries."""

    slots: tuple[int, ...]
    taken: tuple[int, ...]
    names: tuple[str, ...] = ()
    sizes: tuple[Size, ...] = ()


@dataclass(frozen=True, slots=True)
class Give:
    """What a program gives to its caller: the memory in these slots, and these sizes."""

    slots: tuple[int, ...]
    sizes: tuple[Size, ...] = ()


Node = Step | PackedCall | ProgramCall | Branch | Loop | Allocate | Define | Move | Give
"""What a program does at a place."""


@dataclass(frozen=True, slots=True)
class ProgramInfo:
    """A function that calls kernels, such as `main`.

    Attributes:
      steps: what it does, in order.
      public: whether it is a function of the module, with a packed entry; others are called by programs only.
      max_depth: how many calls of the program may be under way in one another; 0 for a program that does not call itself, however
        indirectly.
      symbols: names of its symbols; each has a value that follows from the shapes of the inputs.
      arena_bytes: memory for intermediate tensors that a call needs.
      late: which outputs are of sizes that only the program finds out. It gives memory of the C library's heap for them; others it writes
        where it is told.
      defined: names of the sizes that it finds out, which it gives with that.
      sizes: of a program that is another one at some sizes, those, by symbol.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    steps: tuple[Node, ...]
    public: bool
    max_depth: int = 0
    symbols: tuple[str, ...] = ()
    arena_bytes: Size = 0
    late: tuple[int, ...] = ()
    defined: tuple[str, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What a kernel is made of.

    Attributes:
      ops: Relay names of the operators fused into it, in order.
      sources: names of the ONNX nodes it stands for (of its first use, where equal kernels share one function).
      flops: floating-point operations that a call does; a multiply-add counts as two.
      bytes: bytes of its inputs and outputs: what a call moves at least.
      schedule: the strategy that it got, and its tunable numbers: "contraction rows=6 vectors=2".
      own_flops: those that its operators are by their definitions, where the kernel computes them with others (Winograd); else None.
      symbols: names of the symbols whose values its packed function takes, integers after the tensors.
      declined: why strategies that were asked before did not take it, "NAME: WHY", where that was asked for ("schedule.why" of a
        PassContext).
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    ops: tuple[str, ...]
    sources: tuple[str, ...]
    flops: Size
    bytes: Size
    schedule: str = ""
    own_flops: Size | None = None
    symbols: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()

    @property
    def operator_flops(self) -> Size:
        """Floating-point operations that its operators are by their definitions, however the kernel computes them."""
        return self.flops if self.own_flops is None else self.own_flops

    def at(self, sizes: Mapping[str, int]) -> "KernelInfo":
        """What it is where its symbols have the given values."""
        if not self.symbols:
            return self
        own = None if self.own_flops is None else evaluate(self.own_flops, sizes)
        ins, outs = (tuple(replace(s, shape=s.at(sizes)) for s in specs) for specs in (self.inputs, self.outputs))
        flops, moved = evaluate(self.flops, sizes), evaluate(self.bytes, sizes)
        return replace(self, inputs=ins, outputs=outs, flops=flops, bytes=moved, own_flops=own, symbols=())


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """A parameter in the parameter blob.

    Attributes:
      spec: its name, which no other parameter and no input of a public program has, and its shape and dtype as kernels read it: in the
        layout that they want.
      offset: its first byte.
    """

    spec: TensorSpec
    offset: int


@dataclass(frozen=True)
class ObjectCode:
    """The machine code of a program as object files.

    Attributes:
      root: the object of everything but the kernels in `parts`, which it refers to by name.
      parts: kernel names, in the order of the part's table, and the object that holds them.
      images: the code of a device, where programs run on another one than the host, as its kind keeps it; `kernels` are the names of the
        kernels in it, in the order in which the code of the host counts them.
    """

    root: bytes
    parts: tuple[tuple[tuple[str, ...], bytes], ...]
    images: bytes = b""
    kernels: tuple[str, ...] = ()

    @property
    def num_bytes(self) -> int:
        return len(self.root) + sum(len(content) for _, content in self.parts) + len(self.images)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A compiled module.

    Attributes:
      functions: address of the packed entry (tvm-ffi's TVMFFISafeCallType) of each public program and of each kernel, by function name.
        A program takes inputs, outputs, the arena and the parameters (both uint8 of one dimension); a kernel takes inputs, outputs, and the
        values of its symbols.
      keep_alive: owner of the code; lives as long as any function made of it.
      programs: all programs, public ones first; the first one is `main` if there is one.
      kernels: one entry per kernel function; programs may call a kernel more than once.
      ranges: least and largest size of symbols of which that is known.
      params: the parameter blob, uint8 of one dimension, aligned to ALIGNMENT bytes.
      ir: text of the stages that were kept: "relay", "te", "tir", "llvm".
      stats: seconds spent per compilation stage.
      target: text of the target the code is for, with all attributes.
      device: kind of the devices that run it (see runtime.device).
      precision: what products and convolutions of f32 are computed in: "f32", "bf16", "f16" or "tf32".
      lacking: features of the target that this machine does not have: with any, the functions cannot be called, and have the address 0.
      permissions: what a process must ask the system for before the code may run, in words of the kind of device.
      code: the machine code as object files; None where `functions` are not made of them (DeviceKind.loads_code).
      strings: those that the program's own numbers stand for, the empty one first (see runtime.host).
      parameters: what is where in the parameter blob.
      signature: how `main` is called with nested arguments, the text of a runtime.signature.Signature; empty for a program without one.
      native: of a program with data types, references or functions as values, what runtime.native must know; `functions` has the functions
        of NativeInfo, and others under names that begin with NATIVE.
    """

    functions: Mapping[str, int]
    keep_alive: object
    programs: tuple[ProgramInfo, ...]
    kernels: tuple[KernelInfo, ...]
    params: np.ndarray
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    ir: Mapping[str, str] = field(default_factory=dict)
    stats: Mapping[str, float] = field(default_factory=dict)
    target: str = "cpu"
    precision: str = "f32"
    lacking: tuple[str, ...] = ()
    device: str = "cpu"
    permissions: tuple[str, ...] = ()
    code: ObjectCode | None = None
    strings: tuple[str, ...] = ("",)
    parameters: tuple[ParameterInfo, ...] = ()
    signature: str = ""
    native: NativeInfo | None = None


_UINT8 = np.dtype(np.uint8)
_SMALL_BYTES = 1 << 12
"""The largest array in memory that ctypes allocates. ctypes gives the address of its memory faster than numpy does, but clears the memory:
for larger arrays, clearing takes longer."""


@functools.cache
def _small_memory(num_blocks: int) -> type[ctypes.Array[ctypes.c_uint8]]:
    """The ctypes array of `num_blocks * ALIGNMENT` bytes. Cached, because ctypes creates types slowly and drops unused types."""
    return ctypes.c_uint8 * (num_blocks * ALIGNMENT)


_addressof, _from_buffer = ctypes.addressof, ctypes.c_char.from_buffer


def aligned_empty(num_bytes: int, alignment: int = ALIGNMENT) -> np.ndarray:
    """Uninitialised uint8 memory of one dimension that begins at a multiple of `alignment`."""
    return aligned_array((num_bytes,), _UINT8, num_bytes, alignment)


def aligned_array(shape: tuple[int, ...], dtype: np.dtype, num_bytes: int, alignment: int = ALIGNMENT) -> np.ndarray:
    """An uninitialised array of `num_bytes` bytes that begins at a multiple of `alignment`."""
    if num_bytes <= _SMALL_BYTES and alignment == ALIGNMENT:
        small = _small_memory(num_bytes // ALIGNMENT + 2)()
        return np.ndarray(shape, dtype, small, -_addressof(small) % ALIGNMENT)  # type: ignore[arg-type] # any buffer will do
    raw = np.empty(num_bytes + alignment, _UINT8)
    # ndarray.ctypes and __array_interface__ give the same address in four times the time.
    address = _addressof(_from_buffer(raw))  # type: ignore[arg-type] # any buffer will do
    return np.ndarray(shape, dtype, raw, -address % alignment)
