"""ELF files, read without loading them: their headers, and the sections of shared libraries. (Format: System V ABI, "Object Files".)"""

import platform
import struct
from dataclasses import dataclass

RELOCATABLE, SHARED = 1, 3
"""Kinds of files: objects for a linker, and libraries."""
X86_64 = 62
NO_BITS = 8
"""The kind of a section that has no bytes in the file."""
_MAGIC = b"\x7fELF"
_CLASS_64, _LITTLE = 2, 1
_MACHINES = {X86_64: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64", 22: "s390x", 3: "i386", 40: "arm"}
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")


class ElfError(ValueError):
    """A file that is not a complete ELF file, or not of the expected kind; the text gives the expected and the actual kind."""


@dataclass(frozen=True)
class SectionHeader:
    """A row of the table of sections: `name` is where its name is in the section of names, `offset` and `size` where its bytes are, and
    `address` where they will be in memory."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


@dataclass(frozen=True)
class Headers:
    """The headers of a file: what it is, for which machine, its sections, and which of them has their names."""

    kind: int
    machine: int
    sections: tuple[SectionHeader, ...]
    names: int


def read_headers(content: bytes | memoryview, what: str) -> Headers:
    """The headers of a file of 64 bits, little-endian; `what` it should be, for errors.

    Raises:
      ElfError: it is another kind of file, or ends before its sections do.
    """
    if bytes(content[:4]) != _MAGIC:
        raise ElfError(f"expected a {what} (ELF), found another kind of file")
    if len(content) < _HEADER.size:
        raise ElfError(f"expected a whole {what}, found its first {len(content)} bytes")
    if content[4] != _CLASS_64 or content[5] != _LITTLE:
        raise ElfError(f"expected a {what} of 64 bits, little-endian, found another one")
    _, kind, machine, _, _, _, start, _, _, _, _, size, count, names = _HEADER.unpack(content[: _HEADER.size])
    if size != _SECTION.size or start + size * count > len(content) or names >= count:
        raise ElfError(f"expected a whole {what}, found its first {len(content)} bytes")
    rows = [_SECTION.unpack(content[start + i * size : start + (i + 1) * size]) for i in range(count)]
    sections = tuple(SectionHeader(*row[:-1]) for row in rows)
    if any(s.kind != NO_BITS and s.offset + s.size > len(content) for s in sections):
        raise ElfError(f"expected a whole {what}, found its first {len(content)} bytes")
    return Headers(kind, machine, sections, names)


def section_name(content: bytes | memoryview, headers: Headers, section: SectionHeader) -> str:
    names = headers.sections[headers.names]
    text = bytes(content[names.offset + section.name : names.offset + names.size])
    return text.partition(b"\0")[0].decode(errors="replace")


def shared_sections(content: memoryview) -> dict[str, SectionHeader]:
    """The sections of a shared library by name.

    Raises:
      ElfError: the file is no shared library, is for another kind of machine, or ends before its sections do.
    """
    headers = read_headers(content, "shared library")
    found, here = _MACHINES.get(headers.machine, f"machine {headers.machine}"), platform.machine()
    if found != here:
        raise ElfError(f"expected a library for {here}, found one for {found}")
    if headers.kind != SHARED:
        raise ElfError(f"expected a shared library, found an ELF file of type {headers.kind}")
    return {section_name(content, headers, s): s for s in headers.sections}
