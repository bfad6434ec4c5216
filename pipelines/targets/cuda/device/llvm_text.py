"""Kernels in the LLVM dialect as text that the LLVM of llvmlite reads.

The bindings of MLIR carry a later LLVM than llvmlite does. Its text differs in the literals of floats, which are rewritten bit by bit:
16-bit floats as their bits, f32 and f64 as the bits of the f64 of the same value (LLVM Language Reference, "Simple Constants").
"""

import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import ir, llvm
from relayc.dialects.operations import find_operations


@dataclass(frozen=True)
class KernelText:
    """A kernel as LLVM text.

    Attributes:
      name: of the kernel.
      facts: its attributes that are numbers, by name (see dialects.discardable.BLOCK_THREADS).
      text: a module with the kernel and the variables that it uses, for any triple.
    """

    name: str
    facts: Mapping[str, int]
    text: str


def kernel_texts(module: ir.Module) -> Iterator[KernelText]:
    """The kernels of a module whose gpu.module is lowered (see lowering.lower_kernels), each as a separate text."""
    with module.context, ir.Location.unknown():
        for gpu_module in [op.operation for op in module.body.operations if op.operation.name == "gpu.module"]:
            operations = [op.operation for op in gpu_module.regions[0].blocks[0].operations]
            variables = {symbol_name(op): op for op in operations if op.name == "llvm.mlir.global"}
            for op in operations:
                if op.name == "llvm.func":
                    yield _kernel_text(op, variables)


def _kernel_text(kernel: ir.Operation, variables: Mapping[str, ir.Operation]) -> KernelText:
    alone = ir.Module.create()
    with ir.InsertionPoint(alone.body):
        for name in _variables_of(kernel):
            variables[name].clone()
        kernel.clone()
    attributes = {name: kernel.attributes[name] for name in kernel.attributes if name.startswith("relay.")}
    facts = {name: value.value for name, value in attributes.items() if isinstance(value, ir.IntegerAttr)}
    return KernelText(symbol_name(kernel), facts, readable(llvm.translate_module_to_llvmir(alone.operation)))


def _variables_of(kernel: ir.Operation) -> list[str]:
    addresses = find_operations(kernel, lambda op: op.name == "llvm.mlir.addressof")
    return list(dict.fromkeys(ir.FlatSymbolRefAttr(op.attributes["global_name"]).value for op in addresses))


# ---- literals ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Format:
    """A binary format: bits of mantissa and exponent, and the prefix of the digits of a literal."""

    mantissa: int
    exponent: int
    prefix: str = ""

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.mantissa


_FORMATS = {"half": _Format(10, 5, "0xH"), "bfloat": _Format(7, 8, "0xR"), "float": _Format(23, 8), "double": _Format(52, 11)}
_DOUBLE = _FORMATS["double"]

_SKIPPED = r'"(?:[^"\\]|\\.)*"|;.*|[%@][-\w.$]+'
_TYPES = r"\b(?:half|bfloat|float|double|i\d+|ptr)\b"
_NUMBERS = r"(?<![\w.%@])(?:[-+]?(?:inf|qnan|s?nan\(0x[0-9A-Fa-f]+\))(?!\w)|[-+]?\d+\.\d+(?:e[-+]?\d+)?|f0x[0-9A-Fa-f]+)"
_TOKEN = re.compile(rf"(?P<skipped>{_SKIPPED})|(?P<type>{_TYPES})|(?P<number>{_NUMBERS})")
_MAY_HAVE_LITERALS = re.compile(r"\d\.\d|f0x|inf|nan").search


def readable(text: str) -> str:
    """LLVM text with literals that all versions of LLVM read, and without the lines that name a machine."""
    lines = (line for line in text.splitlines() if not line.startswith("target "))
    return "\n".join(_with_literals(line) if _MAY_HAVE_LITERALS(line) else line for line in lines)


def _with_literals(line: str) -> str:
    current: _Format | None = None

    def replace(match: re.Match[str]) -> str:
        nonlocal current
        if match["type"]:
            current = _FORMATS.get(match["type"])
        elif match["number"] and current is not None:
            return _literal(_bits(match["number"], current), current)
        return match[0]

    return _TOKEN.sub(replace, line)


def _literal(bits: int, format_: _Format) -> str:
    if format_.prefix:
        return f"{format_.prefix}{bits:04X}"
    return f"0x{bits if format_ is _DOUBLE else _double_of_single(bits):016X}"


def _double_of_single(bits: int) -> int:
    """Bits of the f64 that an f32 is; a NaN keeps its payload in the upper bits."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return bits >> 31 << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    return struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", bits))[0]))[0]


def _bits(text: str, format_: _Format) -> int:
    """The bits of the value of a literal of a format."""
    if text.startswith("f0x"):
        return int(text[3:], 16)
    if "nan" not in text:
        return _nearest(float(text), format_)
    quiet = 0 if "snan" in text else 1 << (format_.mantissa - 1)
    payload = int(text[text.index("0x") : -1], 16) if "(" in text else 0
    exponent = ((1 << format_.exponent) - 1) << format_.mantissa
    return (text[0] == "-") << (format_.width - 1) | exponent | quiet | payload


def _nearest(value: float, format_: _Format) -> int:
    """The bits of the nearest number, ties to even."""
    sign = int(math.copysign(1.0, value) == -1) << (format_.width - 1)
    infinity = ((1 << format_.exponent) - 1) << format_.mantissa
    if math.isinf(value):
        return sign | infinity
    least = 2 - (1 << (format_.exponent - 1))
    scale = max(math.frexp(value)[1] - 1, least) if value else least
    units = round(math.ldexp(abs(value), format_.mantissa - scale))
    return sign | min(((scale - least) << format_.mantissa) + units, infinity)
