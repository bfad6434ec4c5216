"""Machine code from object files into memory: a small linker for the objects that the compiler makes.

LLVM's JIT emits position-independent ELF objects of the large code model, in which every reference is a full 64-bit address or
distance. A handful of relocations is all there is, so what would be a linker elsewhere is a page of code here, and code from the cache
needs no compiler to be loaded.
(Format: System V ABI, "Object Files"; relocations: its AMD64 supplement.)
"""

import ctypes
import functools
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from relayc.runtime.artifact import ENTRIES_SYMBOL, ObjectCode
from relayc.runtime.elf import NO_BITS, RELOCATABLE, X86_64, ElfError, Headers, SectionHeader, read_headers, section_name
from relayc.runtime.threads import openmp_library

PART_SYMBOL = "__relayc_part_entries"
"""Function of the object of a part of the kernels: gives the array of their addresses."""

_SYMTAB, _RELA = 2, 4
_ALLOC, _EXECUTE = 2, 4
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1
_FUNCTION = 2
_R_64, _R_PC64, _R_GOTOFF64, _R_GOT64, _R_GOTPC64 = 1, 24, 25, 27, 29
_GOT_SYMBOL = "_GLOBAL_OFFSET_TABLE_"
_PROT_READ, _PROT_EXECUTE = 1, 4
_SYMBOL_BYTES = _RELA_BYTES = 24
_MASK = (1 << 64) - 1


class LoadError(ValueError):
    """Object code that cannot be loaded here: another machine's, damaged, or with a symbol that nothing defines."""


class LoadedCode:
    """Object code in memory, ready to run, for the lifetime of this object."""

    def __init__(self, code: ObjectCode) -> None:
        """Raises LoadError if the code is for another kind of machine, is damaged or needs a missing symbol."""
        kernels: dict[str, int] = {}
        self._images = []
        for names, content in code.parts:
            image = _Image(content, _find)
            self._images.append(image)
            kernels.update(zip(names, image.table(PART_SYMBOL, len(names)), strict=True))
        self._root = _Image(code.root, lambda name: kernels.get(name) or _find(name))

    def entries(self, count: int) -> list[int]:
        """Addresses of the packed entries, of which the program has `count`."""
        return self._root.table(ENTRIES_SYMBOL, count)


def can_load() -> bool:
    """Whether this kind of machine is one that objects can be loaded on."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    # OpenMP first, as other packages may have brought another one into the process.
    return ctypes.CDLL(openmp_library()), ctypes.CDLL("libm.so.6"), ctypes.CDLL(None)


def _find(name: str) -> int:
    for library in _libraries():
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        except AttributeError:
            continue
    raise LoadError(f"symbol {name}: expected a definition, found none")


class _Image:
    """One object in memory: code that can run, and data that cannot."""

    def __init__(self, content: bytes, find: Callable[[str], int]) -> None:
        if not can_load():
            raise LoadError(f"expected Linux on x86_64, found {sys.platform} on {platform.machine()}")
        try:
            self._sections = _headers(content).sections
            self._load(content, find)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise LoadError(f"a damaged object file ({error})") from error

    def _load(self, content: bytes, find: Callable[[str], int]) -> None:
        code_bytes, size = self._place()
        # The global offset table, which contains the addresses of symbols, follows all sections.
        self._table = _align(size, 8)
        size = self._table + 8 * sum(s.size // _SYMBOL_BYTES for s in self._sections if s.kind == _SYMTAB)
        self._memory = mmap.mmap(-1, max(size, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for section, place in zip(self._sections, self._places, strict=True):
            if place is not None and section.kind != NO_BITS:
                self._memory[place : place + section.size] = content[section.offset : section.offset + section.size]
        self._names: dict[str, int] = {}
        for section in self._sections:
            if section.kind == _RELA and (place := self._places[section.info]) is not None:
                self._relocate(content, section, place, self._symbols(content, self._sections[section.link], find))
        if code_bytes:
            _protect(self._base, code_bytes)

    def _place(self) -> tuple[int, int]:
        """Places the sections that are loaded, code first; returns the bytes of the pages with code, and of all."""
        at, code_bytes = 0, 0
        self._places: list[int | None] = [None] * len(self._sections)
        for executable in (True, False):
            for index, section in enumerate(self._sections):
                if section.flags & _ALLOC and bool(section.flags & _EXECUTE) == executable:
                    self._places[index] = at = _align(at, max(section.alignment, 1))
                    at += section.size
            if executable:
                at = code_bytes = _align(at, mmap.PAGESIZE)
        return code_bytes, at

    def _symbols(self, content: bytes, table: SectionHeader, find: Callable[[str], int]) -> list[int]:
        values = []
        for symbol in _read_symbols(content, self._sections, table):
            value = symbol.value
            if symbol.name == _GOT_SYMBOL:
                value = self._base + self._table
            elif symbol.section == _UNDEFINED:
                value = find(symbol.name) if symbol.name else 0
            elif symbol.section != _ABSOLUTE:
                place = self._places[symbol.section] if symbol.section < len(self._places) else None
                value = 0 if place is None else self._base + place + value
                if not symbol.is_local:
                    self._names[symbol.name] = value
            values.append(value)
        return values

    def _relocate(self, content: bytes, section: SectionHeader, place: int, symbols: Sequence[int]) -> None:
        """Applies a relocation table to its section, which begins at `place`."""
        size = self._sections[section.info].size
        for at in range(section.offset, section.offset + section.size, _RELA_BYTES):
            offset, info, addend = struct.unpack_from("<QQq", content, at)
            kind, number = info & 0xFFFFFFFF, info >> 32
            value = symbols[number] + addend
            if kind in (_R_PC64, _R_GOTPC64):
                value -= self._base + place + offset
            elif kind == _R_GOTOFF64:
                value -= self._base + self._table
            elif kind == _R_GOT64:
                struct.pack_into("<Q", self._memory, self._table + 8 * number, symbols[number])
                value = 8 * number + addend
            elif kind != _R_64:
                raise LoadError(f"relocation {kind}: expected one out of {_R_64}, {_R_PC64}, {_R_GOTOFF64}, {_R_GOT64}, {_R_GOTPC64}")
            if offset + 8 > size:
                raise LoadError(f"a relocation at byte {offset} of a section of {size} bytes")
            struct.pack_into("<Q", self._memory, place + offset, value & _MASK)

    def table(self, symbol: str, count: int) -> list[int]:
        """Calls the function `symbol`, which returns an array of `count` addresses. Raises LoadError if it does not exist."""
        address = self._names.get(symbol)
        if not address:
            raise LoadError(f"symbol {symbol}: expected a definition in the object, found none")
        table = ctypes.CFUNCTYPE(ctypes.c_void_p)(address)()
        return list((ctypes.c_size_t * count).from_address(table))


@dataclass(frozen=True)
class _Symbol:
    name: str
    section: int
    value: int
    size: int
    is_local: bool
    is_function: bool


class ParsedObject:
    """The contents of an object file, for display."""

    def __init__(self, content: bytes) -> None:
        self._content, self._headers = content, _headers(content)
        self._sections = self._headers.sections
        tables = [s for s in self._sections if s.kind == _SYMTAB]
        self._symbols = [symbol for table in tables for symbol in _read_symbols(content, self._sections, table)]

    def undefined(self) -> list[str]:
        """Names that others must define."""
        return [s.name for s in self._symbols if s.section == _UNDEFINED and s.name]

    def functions(self) -> Iterator[tuple[str, bytes, list[tuple[int, str]]]]:
        """Name, code and references (byte in the code, symbol) of each function, in the order of the file."""
        for symbol in sorted((s for s in self._symbols if s.is_function and s.section), key=lambda s: (s.section, s.value)):
            start = self._sections[symbol.section].offset + symbol.value
            end = symbol.value + symbol.size
            references = [(at - symbol.value, name) for at, name in self._references(symbol.section) if symbol.value <= at < end]
            yield symbol.name, self._content[start : start + symbol.size], references

    def _references(self, index: int) -> Iterator[tuple[int, str]]:
        for section in self._sections:
            if section.kind == _RELA and section.info == index:
                for at in range(section.offset, section.offset + section.size, _RELA_BYTES):
                    offset, info, addend = struct.unpack_from("<QQq", self._content, at)
                    symbol = self._symbols[info >> 32]
                    name = symbol.name or section_name(self._content, self._headers, self._sections[symbol.section])
                    yield offset, f"{name}+{addend:#x}" if addend else name


def read_object(content: bytes) -> ParsedObject:
    """Parses an object file; raises LoadError if it is not for x86-64, or is damaged."""
    try:
        return ParsedObject(content)
    except (struct.error, IndexError, ValueError) as error:
        raise error if isinstance(error, LoadError) else LoadError(f"a damaged object file ({error})") from error


def _text(content: bytes, start: int) -> str:
    return content[start : content.index(b"\0", start)].decode()


def _read_symbols(content: bytes, sections: Sequence[SectionHeader], table: SectionHeader) -> Iterator[_Symbol]:
    names = sections[table.link]
    for at in range(table.offset, table.offset + table.size, _SYMBOL_BYTES):
        name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", content, at)
        yield _Symbol(_text(content, names.offset + name), section, value, size, info >> 4 == 0, info & 15 == _FUNCTION)


def _headers(content: bytes) -> Headers:
    try:
        headers = read_headers(content, "relocatable object")
    except ElfError as error:
        raise LoadError(str(error)) from error
    if (headers.kind, headers.machine) != (RELOCATABLE, X86_64):
        raise LoadError("expected a relocatable ELF object for x86-64")
    return headers


def _align(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def _protect(address: int, size: int) -> None:
    """Makes pages executable and read-only."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), _PROT_READ | _PROT_EXECUTE):
        raise LoadError(f"memory for code: mprotect failed with error {ctypes.get_errno()}")
