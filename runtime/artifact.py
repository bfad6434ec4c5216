"""A compiled program as plain data: the contract between the compiler, which creates it, and the runtime, which runs it.

This module does not depend on MLIR. An artifact gives the addresses of the packed functions, their arguments and results, and the steps of
its programs: which kernels, packed functions and other programs each calls, in which order, under which conditions and on which buffers.

Sizes may be expressions over symbols (relayc.symbolic). A function has its own symbols, whose values follow from the shapes of its
arguments.
"""

import ctypes
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal

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
LARGE_PAGE = 1 << 21
"""Bytes of a large page. The system provides large pages, where it can, for memory aligned to this size."""


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
"""Element types narrower than a byte: each element is stored in one byte, whose upper bits are zero."""

_NOT_NUMPY = {name: np.dtype(getattr(ml_dtypes, name)) for name in (*DLPACK_CODES, *SUB_BYTE)}


def is_object_dtype(name: str) -> bool:
    """Whether a dtype name is the dtype of an object of the host, "seq(float32)", "optional(float32)", "map(string, float32)", or of a
    value of the Relay language, "value(List[int32])"."""
    return name.startswith(("seq(", "optional(", "map(", "value("))


def is_host_dtype(name: str) -> bool:
    """Whether a dtype name is the dtype of values kept on the host, which code refers to by number (see runtime.host)."""
    return name == "string" or is_object_dtype(name)


def numpy_dtype(name: str) -> np.dtype:
    """The numpy dtype of a dtype name such as "float32" or "bfloat16"; from ml_dtypes if numpy lacks it. Raises TypeError.

    Values of the host are represented by numbers, of dtype int64.
    """
    if is_host_dtype(name):
        return np.dtype(np.int64)
    found = _NOT_NUMPY.get(name)
    return np.dtype(name) if found is None else found


def is_numpys(dtype: np.dtype) -> bool:
    """Whether a dtype is one of numpy's own, which DLPack, files and the array interface take."""
    return dtype.isbuiltin != 2  # 1 for a dtype itself, 0 for an unpickled one


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
        """The product of the sizes; an expression if sizes are symbolic."""
        return prod(self.shape)

    @property
    def num_bytes(self) -> Size:
        """Bytes of the elements in memory; an expression if sizes are symbolic."""
        return self.num_elements * numpy_dtype(self.dtype).itemsize

    def at(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape for given values of the symbols."""
        return tuple(evaluate(d, sizes) for d in self.shape)

    def __str__(self) -> str:
        return self.dtype if is_object_dtype(self.dtype) else f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class BufferRef:
    """The location of a tensor during a call of a program.

    Attributes:
      space: "input" and "output" are arguments of the program, at position `index` of its inputs or outputs; "arena" and "param" are blobs,
        at byte `offset`: the program's part of the arena, and the parameters of the module; "heap" is the memory in slot `index`, from byte
        `offset`.
      spec: the tensor at this location.
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
      sources: names of the ONNX nodes that the call implements.
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
      name: the registered name of the function (runtime.register_func); it is looked up when the call runs.
      sources: names of the ONNX nodes that the call implements.
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
      sources: names of the ONNX nodes that the call implements.
      sizes: the values of the callee's symbols.
      heap: the slot whose memory is the callee's arena instead; -1 for none.
      slots: receive the memory that the callee returns.
      names: of the sizes that the callee returns.
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
    """A condition on sizes: the sizes of each pair are equal."""

    pairs: tuple[tuple[Size, Size], ...]

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether the condition holds for given values of the symbols."""
        return all(evaluate(a, sizes) == evaluate(b, sizes) for a, b in self.pairs)


@dataclass(frozen=True, slots=True)
class Branch:
    """Runs `then` if the condition holds, otherwise `otherwise`. The condition is a bool tensor of one element, or a condition on sizes."""

    condition: BufferRef | EqualSizes
    then: "tuple[Node, ...]"
    otherwise: "tuple[Node, ...]"
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """Repeats: run `condition_steps`, which write the condition, a bool tensor of one element, and run `body` if the condition holds, until
    it does not hold."""

    condition_steps: "tuple[Node, ...]"
    condition: BufferRef
    body: "tuple[Node, ...]"
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocate:
    """Allocates heap memory of `num_bytes` bytes and assigns it to a slot. A slot is a variable of the program."""

    slot: int
    num_bytes: Size


@dataclass(frozen=True, slots=True)
class Define:
    """Sets a size to the value of an element of an integer tensor; `position` is the row-major index of the element."""

    name: str
    source: BufferRef
    position: int


@dataclass(frozen=True, slots=True)
class Move:
    """Assigns slots and sizes simultaneously: `slots` from `taken`, `names` from `sizes`. Used for results of branches and loop-carried
    values."""

    slots: tuple[int, ...]
    taken: tuple[int, ...]
    names: tuple[str, ...] = ()
    sizes: tuple[Size, ...] = ()


@dataclass(frozen=True, slots=True)
class Give:
    """The results of a program for its caller: the memory in these slots, and these sizes."""

    slots: tuple[int, ...]
    sizes: tuple[Size, ...] = ()


Node = Step | PackedCall | ProgramCall | Branch | Loop | Allocate | Define | Move | Give
"""A step of a program."""


def nested(node: Node) -> tuple[tuple[Node, ...], ...]:
    """The two sequences of nodes in a branch or a loop (which computes its condition in the first one); none in other nodes."""
    if isinstance(node, Branch):
        return node.then, node.otherwise
    return (node.condition_steps, node.body) if isinstance(node, Loop) else ()


def walk(nodes: Iterable[Node]) -> Iterator[Node]:
    """Nodes and the nodes nested in them, in the order of the text."""
    for node in nodes:
        yield node
        for inner in nested(node):
            yield from walk(inner)


@dataclass(frozen=True, slots=True)
class ProgramInfo:
    """A function that calls kernels, such as `main`.

    Attributes:
      steps: in order of execution.
      public: whether it is a function of the module, with a packed entry; other programs are only called by programs.
      max_depth: maximum depth of recursive calls; 0 for a program that does not call itself, directly or indirectly.
      symbols: names of its symbols; each has a value that follows from the shapes of the inputs.
      arena_bytes: memory for intermediate tensors that a call needs.
      late: the outputs whose sizes are computed by the program. The program allocates them on the heap of the C library; it writes other
        outputs to memory given by the caller.
      defined: names of the sizes that the program computes and returns with the late outputs.
      sizes: for a program specialised from another one: the values of the symbols, by name.
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
    """The contents of a kernel.

    Attributes:
      ops: Relay names of the operators fused into it, in order.
      sources: names of the ONNX nodes that it implements (of its first use, if equal kernels share a function).
      flops: floating-point operations that a call does; a multiply-add counts as two.
      bytes: bytes of its inputs and outputs: the least memory traffic of a call.
      schedule: the applied strategy and its tunable numbers: "contraction rows=6 vectors=2".
      own_flops: operations of the operators by definition, if the kernel computes them differently (Winograd); otherwise None.
      symbols: names of the symbols whose values its packed function takes as integers after the tensors.
      declined: why strategies tried before declined, "NAME: WHY"; recorded if requested ("schedule.why" of a PassContext).
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
        """Floating-point operations of its operators by definition, however the kernel computes them."""
        return self.flops if self.own_flops is None else self.own_flops

    def at(self, sizes: Mapping[str, int]) -> "KernelInfo":
        """The same kernel for given values of its symbols."""
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
      spec: its name, unique among parameters and inputs of public programs, and its shape and dtype in the layout that kernels read.
      offset: its first byte.
    """

    spec: TensorSpec
    offset: int


@dataclass(frozen=True)
class ObjectCode:
    """The machine code of a program as object files.

    Attributes:
      root: the object of all code except the kernels in `parts`, which it refers to by name.
      parts: kernel names, in the order of the part's table, and the object that contains them.
      images: the code of a device other than the host, in the format of its kind; `kernels` are the names of its kernels, in the order in
        which the host code numbers them.
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
      functions: address of the packed entry (tvm-ffi's TVMFFISafeCallType) of each public program and of each kernel, by function name. A
        program takes inputs, outputs, the arena and the parameters (both uint8 of one dimension); a kernel takes inputs, outputs, and the
        values of its symbols.
      keep_alive: owner of the code; lives as long as any function created from it.
      programs: all programs, public ones first; the first one is `main` if there is one.
      kernels: one entry per kernel function; programs may call a kernel more than once.
      ranges: minimum and maximum of the symbols for which they are known.
      params: the parameter blob, uint8 of one dimension, aligned to ALIGNMENT bytes.
      ir: text of the stages that were kept: "relay", "te", "tir", "llvm".
      stats: seconds spent per compilation stage.
      target: text of the compilation target, with all attributes.
      device: kind of the devices that run it (see runtime.device).
      precision: in which products and convolutions of f32 are computed: "f32", "bf16", "f16" or "tf32".
      lacking: features of the target that this machine lacks; if there are any, the functions cannot be called and have address 0.
      permissions: which a process must request from the system before it runs the code, as named by the kind of device.
      code: the machine code as object files; None if `functions` are not made of them (DeviceKind.loads_code).
      strings: the string constants that the program refers to by number, the empty string first (see runtime.host).
      parameters: the layout of the parameter blob.
      signature: how `main` is called with nested arguments, the text of a runtime.signature.Signature; empty for a program without one.
      native: for a program with data types, references or functions as values: the data for runtime.native. `functions` then contains the
        functions of NativeInfo, and more whose names begin with NATIVE.
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
        small: Any = _small_memory(num_bytes // ALIGNMENT + 2)()
        return np.ndarray(shape, dtype, small, -_addressof(small) % ALIGNMENT)
    raw: Any = np.empty(num_bytes + alignment, _UINT8)
    # ndarray.ctypes and __array_interface__ give the same address in four times the time.
    address = _addressof(_from_buffer(raw))
    return np.ndarray(shape, dtype, raw, -address % alignment)
