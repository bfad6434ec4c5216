"""Calls of compiled kernels by control, without Python: functions of words, in text of the LLVM dialect.

A kernel whose sizes are numbers is called where it is: scalars are tensors on the stack, other results are new tensors. Other kernels are
called through Python (runtime.native).
"""

from collections.abc import Iterator, Sequence

from relayc.pipelines.control.scalars import Lines
from relayc.pipelines.llvm.heap import CELL_BYTES, IMMEDIATES, TUPLE
from relayc.pipelines.llvm.tables import dtype_bits
from relayc.pipelines.llvm.tensors import TENSORS
from relayc.runtime.artifact import ProgramInfo, TensorSpec, is_host_dtype, numpy_dtype
from relayc.runtime.native_info import ValueType

_TENSOR = 70
"""tvm-ffi's index of the type of tensors."""
_ALIGNMENT = 64

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


def has_numbers(program: ProgramInfo) -> bool:
    """Whether the sizes of a program are numbers, and its values tensors."""
    specs = (*program.inputs, *program.outputs)
    return not program.symbols and not program.late and not any(spec.is_symbolic or is_host_dtype(spec.dtype) for spec in specs)


class KernelText(Lines):
    """The function that calls a kernel.

    Args:
      name: of the function.
      types: of the arguments and the result.
      entry, params: the places in `@__relayc_links` of the addresses of the kernel's packed entry and of the parameters.
    """

    def __init__(self, name: str, program: ProgramInfo, types: Sequence[ValueType], entry: int, params: int, params_bytes: int) -> None:
        super().__init__()
        self._name, self._program, self._types = name, program, types
        self._entry, self._params, self._params_bytes = entry, params, params_bytes

    def text(self) -> str:
        """The function."""
        program = self._program
        *types, result = self._types
        args = ", ".join(f"%w{i}: i64" for i in range(len(types)))
        self.line(f"llvm.func internal @{self._name}({args}) -> i64 {{")
        for text in ("zero = llvm.mlir.constant(0 : i64) : i64", "shift = llvm.mlir.constant(32 : i64) : i64"):
            self.line(f"%{text}")
        tensors = len(program.inputs) + len(program.outputs)
        anys, blobs, slots = self._room(2 * (tensors + 2)), self._room(6 * (tensors + 2)), self._room(tensors + 2)
        dims, made = self._room(max((len(spec.shape) for spec in program.outputs), default=0)), self._room(2)
        places = [self._at(slots, 8 * i) for i in range(tensors + 2)]
        words = [leaf for i, type_ in enumerate(types) for leaf in self._leaves(f"%w{i}", type_)]
        for i, (word, spec) in enumerate(zip(words, program.inputs, strict=True)):
            if _is_word(spec):
                self._store(self.made(f"llvm.lshr {word}, %shift : i64"), places[i])
                self._blob(anys, blobs, i, places[i], places[i], spec.dtype, 0)
            else:
                self._any(anys, i, word)
        objects: list[int] = []
        for i, spec in enumerate(program.outputs, len(program.inputs)):
            if _is_word(spec):
                self._store("%zero", places[i])
                self._blob(anys, blobs, i, places[i], places[i], spec.dtype, 0)
                continue
            for axis, extent in enumerate(spec.shape):
                self._store(self.number(int(extent)), self._at(dims, 8 * axis))
            sizes = [
                self.number(len(spec.shape)),
                self.number(dtype_bits(spec.dtype), "i32"),
                self.number(numpy_dtype(spec.dtype).itemsize),
            ]
            call = f"llvm.call @__relayc_tensor({self._at(anys, 16 * i)}, {dims}, {', '.join(sizes)})"
            data = self.made(f"{call} : (!llvm.ptr, !llvm.ptr, i64, i32, i64) -> !llvm.ptr")
            self._leave_if(f'llvm.icmp "eq" {data}, {self.made("llvm.mlir.zero : !llvm.ptr")} : !llvm.ptr', anys, objects)
            objects.append(i)
        bytes_ = max(-(-int(program.arena_bytes) // _ALIGNMENT) * _ALIGNMENT, _ALIGNMENT)
        arena = self.made(f"llvm.call @aligned_alloc({self.number(_ALIGNMENT)}, {self.number(bytes_)}) : (i64, i64) -> !llvm.ptr")
        links = self.made("llvm.mlir.addressof @__relayc_links : !llvm.ptr")
        entry, params = (self.made(f"llvm.load {self._at(links, 8 * i)} : !llvm.ptr -> !llvm.ptr") for i in (self._entry, self._params))
        for i, (data, count) in enumerate(((arena, int(program.arena_bytes)), (params, self._params_bytes)), tensors):
            self._store(self.number(count), places[i])
            self._blob(anys, blobs, i, data, places[i], "uint8", 1)
        null = self.made("llvm.mlir.zero : !llvm.ptr")
        operands = f"({null}, {anys}, {self.number(tensors + 2, 'i32')}, {made})"
        status = self.made(f"llvm.call {entry}{operands} : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32")
        self.line(f"llvm.call @free({arena}) : (!llvm.ptr) -> ()")
        self._leave_if(f'llvm.icmp "ne" {status}, {self.number(0, "i32")} : i32', anys, objects)
        found = [self._result(anys, places[i], i, spec) for i, spec in enumerate(program.outputs, len(program.inputs))]
        self.line(f"llvm.return {self._structured(iter(found), result)} : i64\n}}")
        return "\n".join(self.lines)

    def _room(self, words: int) -> str:
        return self.made(f"llvm.alloca {self.number(max(words, 1))} x i64 : (i64) -> !llvm.ptr")

    def _at(self, place: str, offset: int) -> str:
        return self.made(f"llvm.getelementptr {place}[{offset}] : (!llvm.ptr) -> !llvm.ptr, i8")

    def _store(self, value: str, place: str) -> None:
        self.line(f"llvm.store {value}, {place} : i64, !llvm.ptr")

    def _leaves(self, word: str, type_: ValueType) -> Iterator[str]:
        """The words of the tensors in a value, which keeps them."""
        if type_.kind != "tuple":
            yield word
            return
        cell = self.made(f"llvm.inttoptr {word} : i64 to !llvm.ptr")
        for i, part in enumerate(type_.parts):
            yield from self._leaves(self.made(f"llvm.load {self._at(cell, CELL_BYTES + 8 * i)} : !llvm.ptr -> i64"), part)

    def _any(self, anys: str, i: int, word: str) -> None:
        self._store(self.number(_TENSOR), self._at(anys, 16 * i))
        self._store(word, self._at(anys, 16 * i + 8))

    def _blob(self, anys: str, blobs: str, i: int, data: str, shape: str, dtype: str, rank: int) -> None:
        """An argument that is a tensor on the stack."""
        kinds = f"{self.number(dtype_bits(dtype), 'i32')}, {self.number(rank, 'i32')}"
        call = f"llvm.call @__relayc_blob({self._at(anys, 16 * i)}, {self._at(blobs, 48 * i)}, {data}, {shape}, {kinds})"
        self.line(f"{call} : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32, i32) -> ()")

    def _leave_if(self, condition: str, anys: str, objects: Sequence[int]) -> None:
        """Leaves the function with an error raised, without the results that were made."""
        failed, number = self.made(condition), self.count
        self.line(f"llvm.cond_br {failed}, ^failed{number}, ^right{number}\n^failed{number}:")
        for i in objects:
            self.line(f"llvm.call @heap_release({self.made(f'llvm.load {self._at(anys, 16 * i + 8)} : !llvm.ptr -> i64')}) : (i64) -> ()")
        self.line(f"llvm.return %zero : i64\n^right{number}:")

    def _result(self, anys: str, place: str, i: int, spec: TensorSpec) -> str:
        if not _is_word(spec):
            return self.made(f"llvm.load {self._at(anys, 16 * i + 8)} : !llvm.ptr -> i64")
        high = self.made(f"llvm.shl {self.made(f'llvm.load {place} : !llvm.ptr -> i64')}, %shift : i64")
        return self.made(f"llvm.or {high}, {self.number(IMMEDIATES[spec.dtype] << 1 | 1)} : i64")

    def _structured(self, words: Iterator[str], type_: ValueType) -> str:
        if type_.kind != "tuple":
            return next(words)
        return cell_of(self, TUPLE, self.number(0), [self._structured(words, part) for part in type_.parts])


def _is_word(spec: TensorSpec) -> bool:
    """Whether a word holds a tensor."""
    return not spec.shape and spec.dtype in ("int32", "float32", "bool")


def cell_of(lines: Lines, tag: int, info: str, words: Sequence[str]) -> str:
    """A new cell, which owns the words."""
    count = lines.number(len(words), "i32")
    cell = lines.made(f"llvm.call @heap_new({lines.number(tag, 'i32')}, {count}, {info}) : (i32, i32, i64) -> !llvm.ptr")
    for i, word in enumerate(words):
        place = lines.made(f"llvm.getelementptr {cell}[{CELL_BYTES + 8 * i}] : (!llvm.ptr) -> !llvm.ptr, i8")
        lines.line(f"llvm.store {word}, {place} : i64, !llvm.ptr")
    return lines.made(f"llvm.ptrtoint {cell} : !llvm.ptr to i64")
