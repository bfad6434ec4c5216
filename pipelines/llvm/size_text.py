"""Text in the LLVM dialect that computes sizes, as i64 values."""

from relayc.pipelines.llvm.tables import dtype_bits
from relayc.runtime.artifact import TensorSpec, numpy_dtype
from relayc.runtime.shapes import MAX_BYTES, SymbolSource
from relayc.symbolic import Atom, Extreme, Size


class Lines:
    """Operations as lines of text."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def value(self, operation: str) -> str:
        """The name of the result of an operation."""
        self.count += 1
        self.line(f"%v{self.count} = {operation}")
        return f"%v{self.count}"

    def constant(self, number: int, type_: str = "i64") -> str:
        return self.value(f"llvm.mlir.constant({number} : {type_}) : {type_}")

    def room(self, words: int) -> str:
        """Stack memory of the given number of i64 words."""
        return self.value(f"llvm.alloca {self.constant(max(words, 1))} x i64 : (i64) -> !llvm.ptr")

    def at(self, place: str, word: int) -> str:
        return self.value(f"llvm.getelementptr {place}[{word}] : (!llvm.ptr) -> !llvm.ptr, i64")

    def store(self, value: str, place: str, word: int = 0) -> None:
        self.line(f"llvm.store {value}, {self.at(place, word)} : i64, !llvm.ptr")

    def copy(self, to: str, source: str, count: str, width: int) -> None:
        length = self.value(f"llvm.mul {count}, {self.constant(width)} : i64")
        self.line(f'"llvm.intr.memcpy"({to}, {source}, {length}) <{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()')


class SizeText(Lines):
    """Operations on sizes, and on tensors of such sizes.

    Attributes:
      values: names of the values of the symbols.
    """

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}

    def load(self, place: str, type_: str, element: str = "") -> str:
        at = self.value(f"llvm.getelementptr {place} : (!llvm.ptr) -> !llvm.ptr, {element or type_}")
        return self.value(f"llvm.load {at} : !llvm.ptr -> {type_}")

    def binary(self, name: str, a: str, b: str) -> str:
        return self.value(f"llvm.{name} {a}, {b} : i64")

    def size(self, size: Size) -> str:
        """The value of a size."""
        if isinstance(size, int):
            return self.constant(size)
        total = ""
        for monomial, factor in size.terms.items():
            product = self.constant(factor)
            for atom in monomial:
                product = self.binary("mul", product, self.atom(atom))
            total = self.binary("add", total, product) if total else product
        return total

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, str):
            return self.values[atom]
        if isinstance(atom, Extreme):
            first, *rest = map(self.size, atom.args)
            for other in rest:
                first = self.value(f"llvm.intr.s{atom.kind}({first}, {other}) : (i64, i64) -> i64")
            return first
        return self.floor(self.size(atom.num), self.size(atom.den))

    def floor(self, num: str, den: str) -> str:
        """The quotient rounded down; a divisor that is not positive counts as 1."""
        zero, one = self.constant(0), self.constant(1)
        den = self.value(f"llvm.intr.smax({den}, {one}) : (i64, i64) -> i64")
        quotient, rest = self.binary("sdiv", num, den), self.binary("srem", num, den)
        below = self.value(f'llvm.icmp "slt" {rest}, {zero} : i64')
        return self.binary("sub", quotient, self.value(f"llvm.zext {below} : i1 to i64"))

    def solve(self, source: SymbolSource, dimension: str) -> None:
        """Computes a symbol from a dimension."""
        solved = self.floor(self.binary("sub", dimension, self.size(source.rest)), self.constant(source.factor))
        self.values[source.name] = self.value(f"llvm.intr.smax({solved}, {self.constant(0)}) : (i64, i64) -> i64")

    def bounded(self, size: Size) -> str:
        """Bytes of the arena, clipped to the valid range: the packed entry reports sizes beyond it."""
        low = self.value(f"llvm.intr.smax({self.size(size)}, {self.constant(0)}) : (i64, i64) -> i64")
        return low if isinstance(size, int) else self.value(f"llvm.intr.smin({low}, {self.constant(MAX_BYTES)}) : (i64, i64) -> i64")

    # ---- calls of __relayc_tensor and __relayc_blob (llvm.tensors)

    def tensor(self, place: str, spec: TensorSpec, dims: str) -> str:
        """Creates a tensor, and an argument for it at a place; returns its data, null if there is no memory for it."""
        for axis, d in enumerate(spec.shape):
            self.store(self.size(d), dims, axis)
        kind, width = self.constant(dtype_bits(spec.dtype), "i32"), self.constant(numpy_dtype(spec.dtype).itemsize)
        call = f"llvm.call @__relayc_tensor({place}, {dims}, {self.constant(len(spec.shape))}, {kind}, {width})"
        return self.value(f"{call} : (!llvm.ptr, !llvm.ptr, i64, i32, i64) -> !llvm.ptr")

    def take(self, data: str, spec: TensorSpec, memory: str) -> None:
        """Moves an output that a program has returned, as an address of the C library's heap, to the data of a tensor."""
        source = self.value(f"llvm.inttoptr {memory} : i64 to !llvm.ptr")
        self.copy(data, source, self.size(spec.num_elements), numpy_dtype(spec.dtype).itemsize)
        self.line(f"llvm.call @free({source}) : (!llvm.ptr) -> ()")

    def blob(self, any_: str, room: str, data: str, shape: str, dtype: str, rank: int = 1) -> None:
        """An argument that is a tensor on the stack, of one dimension or none."""
        kinds = f"{self.constant(dtype_bits(dtype), 'i32')}, {self.constant(rank, 'i32')}"
        call = f"llvm.call @__relayc_blob({any_}, {room}, {data}, {shape}, {kinds})"
        self.line(f"{call} : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32, i32) -> ()")
