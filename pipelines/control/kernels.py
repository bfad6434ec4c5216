"""Calls of compiled kernels from control functions, without Python: functions on words, in text of the LLVM dialect.

Scalars are tensors on the stack, other results are new tensors. Symbolic sizes follow from the dimensions of the arguments; a result whose
sizes the kernel computes is moved to a new tensor. Kernels with host values are called through Python (runtime.native).
"""

from collections.abc import Iterator, Sequence

from relayc.pipelines.llvm.heap import CELL_BYTES, IMMEDIATES, TUPLE
from relayc.pipelines.llvm.size_text import Lines, SizeText
from relayc.pipelines.llvm.tensors import TENSORS
from relayc.runtime.artifact import ProgramInfo, TensorSpec, is_host_dtype
from relayc.runtime.native_info import ValueType
from relayc.runtime.shapes import find_sources

_TENSOR = 70
"""tvm-ffi's type index of tensors."""
_ALIGNMENT = 64
_SHAPE = 24 + 24
"""Byte offset of the address of the dimensions in a tensor object, a DLTensor after the header of all objects."""

SUPPORT = f"""{TENSORS}
llvm.func @aligned_alloc(i64, i64) -> !llvm.ptr
llvm.func @TVMFFITensorFromDLPackVersioned(!llvm.ptr, i32, i32, !llvm.ptr) -> i32
llvm.mlir.global internal constant @__relayc_memory_error("MemoryError\\00") {{addr_space = 0 : i32}} : !llvm.array<12 x i8>
llvm.mlir.global internal constant @__relayc_no_memory_text("expected memory for a call, found none\\00") : !llvm.array<39 x i8>
llvm.func internal @__relayc_no_memory() -> i32 {{
  %kind = llvm.mlir.addressof @__relayc_memory_error : !llvm.ptr
  %text = llvm.mlir.addressof @__relayc_no_memory_text : !llvm.ptr
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %text) : (!llvm.ptr, !llvm.ptr) -> ()
  %failed = llvm.mlir.constant(-1 : i32) : i32
  llvm.return %failed : i32
}}
"""


def is_on_tensors(program: ProgramInfo) -> bool:
    """Whether all arguments and results of a program are tensors."""
    return not any(is_host_dtype(spec.dtype) for spec in (*program.inputs, *program.outputs))


class KernelText(SizeText):
    """The function that calls a kernel.

    Args:
      name: of the function.
      types: of the arguments and the result.
      entry, params: the positions in `@__relayc_links` of the addresses of the kernel's packed entry and of the parameters.
    """

    def __init__(self, name: str, program: ProgramInfo, types: Sequence[ValueType], entry: int, params: int, params_bytes: int) -> None:
        super().__init__()
        self._name, self._program, self._types = name, program, types
        self._entry, self._params, self._params_bytes = entry, params, params_bytes
        known = [spec for i, spec in enumerate(program.outputs) if i not in program.late]
        late = [program.outputs[i] for i in program.late]
        self._tensors = [*program.inputs, *known]  # the first arguments of the entry
        self._blobs = range(len(self._tensors), len(self._tensors) + 2 + bool(late))  # the arena, the parameters, places of late results
        self._late = dict(enumerate(late, self._blobs.stop))
        self._made: list[int] = []  # arguments that are new tensors

    def text(self) -> str:
        """The function."""
        program, blobs = self._program, self._blobs
        *types, result = self._types
        args = ", ".join(f"%w{i}: i64" for i in range(len(types)))
        self.lines.append(f"llvm.func internal @{self._name}({args}) -> i64 {{")
        for text in (
            "zero = llvm.mlir.constant(0 : i64) : i64",
            "shift = llvm.mlir.constant(32 : i64) : i64",
            "null = llvm.mlir.zero : !llvm.ptr",
        ):
            self.line(f"%{text}")
        count, given = blobs.stop, len(program.late) + len(program.defined)
        anys, rooms, slots = self.room(2 * (count + len(self._late))), self.room(6 * count), self.room(count)
        dims, made, places = self.room(max((len(spec.shape) for spec in program.outputs), default=0)), self.room(2), self.room(given)
        words = [leaf for i, type_ in enumerate(types) for leaf in self._leaves(f"%w{i}", type_)]
        for source in find_sources(program.inputs, program.symbols):
            self.solve(source, self._dimension(words[source.input], source.axis))
        for i, spec in enumerate(self._tensors):
            if not spec.shape and spec.dtype in ("int32", "float32", "bool"):  # an immediate word
                self.store(self.value(f"llvm.lshr {words[i]}, %shift : i64") if i < len(words) else "%zero", slots, i)
                self.blob(self.at(anys, 2 * i), self.at(rooms, 6 * i), self.at(slots, i), self.at(slots, i), spec.dtype, 0)
            elif i < len(words):
                self.store(self.constant(_TENSOR), anys, 2 * i)
                self.store(words[i], anys, 2 * i + 1)
            else:
                self._tensor(anys, i, spec, dims)
        bytes_, alignment = self.bounded(program.arena_bytes), self.constant(_ALIGNMENT)
        room = self.binary("and", self.binary("add", bytes_, alignment), self.constant(-_ALIGNMENT))
        arena = self.value(f"llvm.call @aligned_alloc({alignment}, {room}) : (i64, i64) -> !llvm.ptr")
        self._leave_if(f'llvm.icmp "eq" {arena}, %null : !llvm.ptr', anys, raises=True)
        links = self.value("llvm.mlir.addressof @__relayc_links : !llvm.ptr")
        entry, params = (self.value(f"llvm.load {self.at(links, i)} : !llvm.ptr -> !llvm.ptr") for i in (self._entry, self._params))
        extra = [(arena, bytes_, "uint8"), (params, self.constant(self._params_bytes), "uint8"), (places, self.constant(given), "int64")]
        for i, (data, length, dtype) in zip(blobs, extra, strict=False):
            self.store(length, slots, i)
            self.blob(self.at(anys, 2 * i), self.at(rooms, 6 * i), data, self.at(slots, i), dtype)
        operands = f"(%null, {anys}, {self.constant(count, 'i32')}, {made})"
        status = self.value(f"llvm.call {entry}{operands} : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32")
        self.line(f"llvm.call @free({arena}) : (!llvm.ptr) -> ()")
        self._leave_if(f'llvm.icmp "ne" {status}, {self.constant(0, "i32")} : i32', anys)
        for i, name in enumerate(program.defined, len(program.late)):
            self.values[name] = self.load(f"{places}[{i}]", "i64")
        for place, (i, spec) in enumerate(self._late.items()):
            self.take(self._tensor(anys, i, spec, dims), spec, self.load(f"{places}[{place}]", "i64"))
        found = iter([self._result(anys, slots, i) for i in range(len(program.inputs), len(self._tensors))])
        late = iter([self._result(anys, slots, i) for i in self._late])
        results = [next(late if i in program.late else found) for i in range(len(program.outputs))]
        self.line(f"llvm.return {self._structured(iter(results), result)} : i64\n}}")
        return "\n".join(self.lines)

    def _dimension(self, word: str, axis: int) -> str:
        """A dimension of a tensor object."""
        place = self.value(f"llvm.getelementptr {self._pointer(word)}[{_SHAPE}] : (!llvm.ptr) -> !llvm.ptr, i8")
        return self.load(f"{self.value(f'llvm.load {place} : !llvm.ptr -> !llvm.ptr')}[{axis}]", "i64")

    def _pointer(self, word: str) -> str:
        return self.value(f"llvm.inttoptr {word} : i64 to !llvm.ptr")

    def _leaves(self, word: str, type_: ValueType) -> Iterator[str]:
        """The words of the tensors in a value, borrowed from it."""
        if type_.kind != "tuple":
            yield word
            return
        for i, part in enumerate(type_.parts):
            yield from self._leaves(self.load(f"{self._pointer(word)}[{CELL_BYTES // 8 + i}]", "i64"), part)

    def _tensor(self, anys: str, i: int, spec: TensorSpec, dims: str) -> str:
        """Creates a result; returns its data."""
        data = self.tensor(self.at(anys, 2 * i), spec, dims)
        self._leave_if(f'llvm.icmp "eq" {data}, %null : !llvm.ptr', anys)
        self._made.append(i)
        return data

    def _leave_if(self, condition: str, anys: str, raises: bool = False) -> None:
        """Leaves the function with an error raised, and releases the results created so far."""
        failed, number = self.value(condition), self.count
        self.line(f"llvm.cond_br {failed}, ^failed{number}, ^right{number}\n^failed{number}:")
        if raises:
            self.value("llvm.call @__relayc_no_memory() : () -> i32")
        for i in self._made:
            self.line(f"llvm.call @heap_release({self.load(f'{anys}[{2 * i + 1}]', 'i64')}) : (i64) -> ()")
        self.line(f"llvm.return %zero : i64\n^right{number}:")

    def _result(self, anys: str, slots: str, i: int) -> str:
        if i in self._made:
            return self.load(f"{anys}[{2 * i + 1}]", "i64")
        high = self.value(f"llvm.shl {self.load(f'{slots}[{i}]', 'i64')}, %shift : i64")
        return self.value(f"llvm.or {high}, {self.constant(IMMEDIATES[self._tensors[i].dtype] << 1 | 1)} : i64")

    def _structured(self, words: Iterator[str], type_: ValueType) -> str:
        if type_.kind != "tuple":
            return next(words)
        return cell_of(self, TUPLE, self.constant(0), [self._structured(words, part) for part in type_.parts])


def packed_call(lines: Lines, handle: str, words: Sequence[str], anys: str) -> tuple[str, str]:
    """A call of a packed function on words, which stay owned by the caller; returns the status, and the place of the result.

    Args:
      anys: memory for the arguments and the result, which follows them.
    """
    places = [lines.at(anys, 2 * i) for i in range(len(words) + 1)]
    for word, place in zip(words, places, strict=False):
        lines.line(f"llvm.call @heap_to_any({word}, {place}) : (i64, !llvm.ptr) -> ()")
    for i in (0, 1):
        lines.store("%zero", places[-1], i)
    call = f"llvm.call @TVMFFIFunctionCall({handle}, {anys}, {lines.constant(len(words), 'i32')}, {places[-1]})"
    return lines.value(f"{call} : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32"), places[-1]


def foreign_text(name: str, params: int) -> str:
    """The code of closures that wrap packed functions, which are a field of their cells."""
    lines, words = Lines(), [f"%a{i}" for i in range(params)]
    anys = lines.room(2 * params + 2)
    cell = lines.value("llvm.inttoptr %self : i64 to !llvm.ptr")
    handle = lines.value(f"llvm.load {lines.at(cell, CELL_BYTES // 8)} : !llvm.ptr -> !llvm.ptr")
    status, result = packed_call(lines, handle, words, anys)
    for i in range(params):  # a constructor without fields was converted to a cell
        taken = lines.value(f"llvm.call @heap_from_any({lines.at(anys, 2 * i)}) : (!llvm.ptr) -> i64")
        lines.line(f"llvm.call @heap_release({taken}) : (i64) -> ()")
    right = lines.value(f'llvm.icmp "eq" {status}, {lines.constant(0, "i32")} : i32')
    lines.line(f"llvm.cond_br {right}, ^right, ^failed\n^failed:\nllvm.return %zero : i64\n^right:")
    lines.line(f"llvm.return {lines.value(f'llvm.call @heap_from_any({result}) : (!llvm.ptr) -> i64')} : i64\n}}")
    args = ", ".join(f"{word}: i64" for word in ("%self", "%limit", *words))
    return "\n".join([f"llvm.func internal @{name}({args}) -> i64 {{\n%zero = llvm.mlir.constant(0 : i64) : i64", *lines.lines])


def cell_of(lines: Lines, tag: int, info: str, words: Sequence[str]) -> str:
    """A new cell, which takes ownership of the words."""
    count = lines.constant(len(words), "i32")
    cell = lines.value(f"llvm.call @heap_new({lines.constant(tag, 'i32')}, {count}, {info}) : (i32, i32, i64) -> !llvm.ptr")
    for i, word in enumerate(words):
        place = lines.value(f"llvm.getelementptr {cell}[{CELL_BYTES + 8 * i}] : (!llvm.ptr) -> !llvm.ptr, i8")
        lines.line(f"llvm.store {word}, {place} : i64, !llvm.ptr")
    return lines.value(f"llvm.ptrtoint {cell} : !llvm.ptr to i64")
