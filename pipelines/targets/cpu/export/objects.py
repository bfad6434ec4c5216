"""Object files for a linker: those that LLVM made, with names for other objects to see, and objects of data.

The objects of a program are made to be loaded one by one (see runtime.cpu.objects): kernels are internal to theirs, and every object has
functions of the same names. Here the kernels become visible to the other objects of the library, and all else internal.
(Format: System V ABI, "Object Files".)
"""

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

_SYMTAB, _STRTAB, _RELA = 2, 3, 4
_LOCAL, _GLOBAL = 0, 1
_SECTION_SYMBOL = 3
_HIDDEN = 2
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_HEADER_BYTES = 64
_PAGE = 4096
_ALLOC, _LARGE = 2, 0x10000000
_X86_64 = 62


class _Object:
    """The section headers and symbols of an object file."""

    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content)
        (self.headers_at,) = struct.unpack_from("<Q", content, 40)
        (self.count,) = struct.unpack_from("<H", content, 60)
        self.headers = [list(_SECTION_HEADER.unpack_from(content, self._header_at(i))) for i in range(self.count)]
        (self.table,) = (i for i, header in enumerate(self.headers) if header[1] == _SYMTAB)
        offset, size = self.headers[self.table][4:6]
        self.symbols = [list(_SYMBOL.unpack_from(content, at)) for at in range(offset, offset + size, _SYMBOL.size)]
        names = self.headers[self.headers[self.table][6]]
        self.names = bytearray(content[names[4] : names[4] + names[5]])

    def _header_at(self, section: int) -> int:
        return self.headers_at + section * _SECTION_HEADER.size

    def name(self, symbol: Sequence[int]) -> str:
        return self.names[symbol[0] : self.names.index(0, symbol[0])].decode()

    def rename(self, symbol: list[int], name: str) -> None:
        symbol[0] = len(self.names)
        self.names += name.encode() + b"\0"

    def move(self, section: int, content: bytes) -> None:
        """Replaces the content of a section, at the end of the file."""
        self.content += b"\0" * (-len(self.content) % 8)
        self.headers[section][4:6] = len(self.content), len(content)
        self.content += content

    def finish(self) -> bytes:
        """The file with its symbols in the order that the format asks for: local ones first."""
        order = sorted(range(len(self.symbols)), key=lambda i: self.symbols[i][1] >> 4 != _LOCAL)
        place = {old: new for new, old in enumerate(order)}
        for header in self.headers:
            if header[1] == _RELA:
                for at in range(header[4], header[4] + header[5], 24):
                    (info,) = struct.unpack_from("<Q", self.content, at + 8)
                    struct.pack_into("<Q", self.content, at + 8, place[info >> 32] << 32 | info & 0xFFFFFFFF)
        self.move(self.headers[self.table][6], bytes(self.names))
        self.move(self.table, b"".join(_SYMBOL.pack(*self.symbols[i]) for i in order))
        self.headers[self.table][7] = sum(symbol[1] >> 4 == _LOCAL for symbol in self.symbols)
        for i, header in enumerate(self.headers):
            _SECTION_HEADER.pack_into(self.content, self._header_at(i), *header)
        return bytes(self.content)


def with_names(content: bytes, names: Mapping[str, str], visible: Collection[str] = ()) -> bytes:
    """An object file with other names for some symbols, of which other objects see these and `visible` only.

    Args:
      names: symbols that the object defines or wants, and the names that they get; they are seen within a library.
      visible: symbols, by their new names, that are seen from outside a library.
    """
    found = _Object(content)
    for symbol in found.symbols[1:]:
        name, kind, is_defined = found.name(symbol), symbol[1] & 15, symbol[3] != 0
        if kind == _SECTION_SYMBOL:
            continue
        if name in names:
            found.rename(symbol, names[name])
        if name in names or name in visible:
            symbol[1:3] = _GLOBAL << 4 | kind, 0 if names.get(name, name) in visible else _HIDDEN
        elif is_defined:
            symbol[1] = _LOCAL << 4 | kind
    return found.finish()


@dataclass(frozen=True)
class Data:
    """Read-only bytes in a section of their own.

    Attributes:
      section: its name.
      symbol: name of the first byte.
      content: bytes, or contiguous memory.
      exported: whether the symbol is seen from outside a library.
    """

    section: str
    symbol: str
    content: Any
    exported: bool = False


def write_data_object(file: BinaryIO, parts: Sequence[Data]) -> None:
    """Writes an object file of data, each piece at the beginning of a page."""
    section_names, symbol_names = bytearray(b"\0"), bytearray(b"\0")
    symbols = [_SYMBOL.pack(0, 0, 0, 0, 0, 0)]
    headers = [_SECTION_HEADER.pack(*[0] * 10)]
    at = _PAGE
    places = []
    for i, part in enumerate(parts):
        size = memoryview(part.content).nbytes
        headers.append(_SECTION_HEADER.pack(len(section_names), 1, _ALLOC | _LARGE, 0, at, size, 0, 0, _PAGE, 0))
        section_names += part.section.encode() + b"\0"
        symbols.append(_SYMBOL.pack(len(symbol_names), _GLOBAL << 4 | 1, 0 if part.exported else _HIDDEN, i + 1, 0, size))
        symbol_names += part.symbol.encode() + b"\0"
        places.append(at)
        at += -(-size // _PAGE) * _PAGE
    first = len(headers)
    tables: list[tuple[str, int, bytes, int]] = [(".symtab", _SYMTAB, b"".join(symbols), first + 1)]
    tables += [(".strtab", _STRTAB, bytes(symbol_names), 0), (".shstrtab", _STRTAB, b"", 0), (".note.GNU-stack", 1, b"", 0)]
    starts = []
    for name, *_ in tables:
        starts.append(len(section_names))
        section_names += name.encode() + b"\0"
    tail = b""
    for (name, kind, content, link), start in zip(tables, starts, strict=True):
        content = bytes(section_names) if name == ".shstrtab" else content
        entry = (1, 8, _SYMBOL.size) if kind == _SYMTAB else (0, 1, 0)
        headers.append(_SECTION_HEADER.pack(start, kind, 0, 0, at + len(tail), len(content), link, *entry))
        tail += content + b"\0" * (-len(content) % 8)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    fixed = 1, _X86_64, 1, 0, 0, at + len(tail), 0, _HEADER_BYTES, 0, 0, _SECTION_HEADER.size, len(headers), first + 2
    file.write(ident + struct.pack("<HHIQQQIHHHHHH", *fixed))
    for place, part in zip(places, parts, strict=True):
        file.seek(place)
        file.write(part.content)
    file.seek(at)
    file.write(tail + b"".join(headers))
