"""Sections of ELF files, read without loading them. (Format: System V ABI, "Object Files".)"""

import platform
import struct
from dataclasses import dataclass

_MAGIC = b"\x7fELF"
_CLASS_64, _LITTLE = 2, 1
_SHARED = 3
_MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64", 22: "s390x", 3: "i386", 40: "arm"}
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NO_BITS = 8


class ElfError(ValueError):
    """A file that is no whole shared library for this kind of machine; the text says what was expected and found."""


@dataclass(frozen=True)
class Section:
    """Where the bytes of a section are in the file, and at which address of the library they will be in memory."""

    offset: int
    size: int
    address: int


def shared_sections(content: memoryview) -> dict[str, Section]:
    """The sections of a shared library by name.

    Raises:
      ElfError: the file is no shared library, is for another kind of machine, or ends before its sections do.
    """
    if bytes(content[:4]) != _MAGIC:
        raise ElfError("expected a shared library (ELF), found another kind of file")
    if len(content) < _HEADER.size:
        raise ElfError(f"expected a whole library, found its first {len(content)} bytes")
    if content[4] != _CLASS_64 or content[5] != _LITTLE:
        raise ElfError("expected a library of 64 bits, little-endian, found another one")
    header = _HEADER.unpack(content[: _HEADER.size])
    _, kind, machine, _, _, _, start, _, _, _, _, size, count, names = header
    found, here = _MACHINES.get(machine, f"machine {machine}"), platform.machine()
    if found != here:
        raise ElfError(f"expected a library for {here}, found one for {found}")
    if kind != _SHARED:
        raise ElfError(f"expected a shared library, found an ELF file of type {kind}")
    if size != _SECTION.size or start + size * count > len(content) or names >= count:
        raise ElfError(f"expected a whole library, found its first {len(content)} bytes")
    rows = [_SECTION.unpack(content[start + i * size : start + (i + 1) * size]) for i in range(count)]
    if any(row[1] != _NO_BITS and row[4] + row[5] > len(content) for row in rows):
        raise ElfError(f"expected a whole library, found its first {len(content)} bytes")
    texts = bytes(content[rows[names][4] : rows[names][4] + rows[names][5]])
    sections = {}
    for row in rows:
        end = texts.find(b"\0", row[0])
        sections[texts[row[0] : end].decode(errors="replace")] = Section(row[4], row[5], row[3])
    return sections
