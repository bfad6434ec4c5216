"""Constant tables in the LLVM dialect: tensor descriptions and texts for generated code."""

from collections.abc import Sequence

from relayc.dialects.relay.types import is_narrow
from relayc.runtime.artifact import DLPACK_CODES, is_host_dtype

_DTYPE_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
"""DLDataTypeCode of dtype names without their width."""


class Strings:
    """Texts laid out contiguously, each terminated by a zero byte; equal texts are shared."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._offsets: dict[str, int] = {}

    def offset(self, text: str) -> int:
        if text not in self._offsets:
            self._offsets[text] = len(self._data)
            self._data += text.encode().replace(b"\0", b"") + b"\0"
        return self._offsets[text]

    def as_global(self, name: str) -> str:
        """The constant that holds the texts. Every byte is escaped, as names are free text."""
        digits = self._data.hex("\\")
        escaped = f"\\{digits}" if digits else ""
        return f'llvm.mlir.global internal constant @{name}("{escaped}")'


def i64_global(name: str, values: Sequence[int]) -> str:
    """A constant array."""
    n = len(values)
    return f"llvm.mlir.global internal constant @{name}(dense<{list(values)}> : tensor<{n}xi64>) : !llvm.array<{n} x i64>"


def address_table(symbol: str, names: Sequence[str], table: str = "") -> str:
    """The function `symbol`, which returns the array of the addresses of functions: the constant `table`, by default SYMBOL_table."""
    table = table or f"{symbol}_table"
    array = f"!llvm.array<{len(names)} x ptr>"
    rows = [
        f'%f{i} = llvm.mlir.addressof @"{name}" : !llvm.ptr\n%v{i + 1} = llvm.insertvalue %f{i}, %v{i}[{i}] : {array}'
        for i, name in enumerate(names)
    ]
    return "\n".join(
        [
            f"llvm.mlir.global internal constant @{table}() : {array} {{",
            f"%v0 = llvm.mlir.undef : {array}",
            *rows,
            f"llvm.return %v{len(names)} : {array}\n}}",
            f"llvm.func @{symbol}() -> !llvm.ptr {{",
            f"%0 = llvm.mlir.addressof @{table} : !llvm.ptr",
            "llvm.return %0 : !llvm.ptr\n}",
        ]
    )


def dtype_bits(dtype: str) -> int:
    """DLDataType of a dtype name as the little-endian i32 that a DLTensor holds, one lane."""
    if is_narrow(dtype):
        # DLPack packs elements of less than a byte. Here they take one byte each, and are described as uint8.
        return DLPACK_CODES.get(dtype, _DTYPE_CODES["uint"]) | 8 << 8 | 1 << 16
    if is_host_dtype(dtype):
        dtype = "int64"
    stem = dtype.rstrip("0123456789")
    return _DTYPE_CODES[stem] | int(dtype[len(stem) :] or 8) << 8 | 1 << 16
