"""Text in the LLVM dialect that computes sizes, as i64 values."""

from relayc.symbolic import Atom, Extreme, Size


class SizeText:
    """Operations as lines of text.

    Attributes:
      values: names of the values of the symbols.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.values: dict[str, str] = {}
        self._count = 0

    def value(self, operation: str) -> str:
        self._count += 1
        self.lines.append(f"  %v{self._count} = {operation}")
        return f"%v{self._count}"

    def constant(self, number: int) -> str:
        return self.value(f"llvm.mlir.constant({number} : i64) : i64")

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
        """The quotient rounded down, of a divisor that is taken for 1 where it is not positive."""
        zero, one = self.constant(0), self.constant(1)
        den = self.value(f"llvm.intr.smax({den}, {one}) : (i64, i64) -> i64")
        quotient, rest = self.binary("sdiv", num, den), self.binary("srem", num, den)
        below = self.value(f'llvm.icmp "slt" {rest}, {zero} : i64')
        return self.binary("sub", quotient, self.value(f"llvm.zext {below} : i1 to i64"))
