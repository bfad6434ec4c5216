"""What compiling leaves in memory, given back: a process that goes on to run a model needs neither the compiler's heap nor its code.

Freed memory stays with the allocator, and pages of the compiler's library stay mapped, for as long as no one says that they are not
needed: together more than most models. Both come back by themselves when the next model is compiled.
"""

import ctypes
import gc
import mmap
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from relayc.dialects.mlir import c_library, live_contexts

_HEADER_BYTES = 4096
"""Bytes of a library that contain its program headers: linkers place them first."""
_PT_LOAD, _PF_W = 1, 2


@contextmanager
def paused_collection() -> Iterator[None]:
    """Keeps Python's garbage collector from walking the compiler's objects again and again, which takes a twentieth of a compilation:
    nearly all of them are in use until its end, and few are in cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def release_memory(contexts: int) -> None:
    """Returns memory that a compilation has left to the system; if the system has no calls for this, only Python's memory.

    Args:
      contexts: number of contexts before the compilation (dialects.mlir.live_contexts). A context is freed with the last object that refers
        to it; if there are more contexts now, such objects are in a reference cycle, and cycles are collected.
    """
    if live_contexts() > contexts:
        gc.collect()
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # not in every C library
        libc.malloc_trim(0)
    for address, size in _constant_segments():
        # These pages are never written: on their next use they are read from the file again.
        libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), mmap.MADV_DONTNEED)


@cache
def _constant_segments() -> list[tuple[int, int]]:
    """Address and bytes of the segments of the compiler's library that nothing writes to, not even the dynamic linker: code, constants."""
    path = Path(c_library()).resolve()
    base = _base_address(path)
    return [] if base is None else [(base + offset, size) for offset, size in _read_only(path)]


def _base_address(library: Path) -> int | None:
    """The address at which a library is loaded; None if it is not found."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        # START-END PERMISSIONS OFFSET DEVICE INODE PATH, as in proc_pid_maps(5)
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[5] == str(library) and int(fields[2], 16) == 0:
            return int(fields[0].split("-")[0], 16)
    return None


def _read_only(library: Path) -> list[tuple[int, int]]:
    """Offset from the base address and bytes, in whole pages, of the segments that an ELF file wants loaded read-only (System V ABI,
    "Program Header"). What is read-only only after relocation lies in writable ones."""
    with library.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    (start,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    found = []
    for i in range(count):
        kind, flags, _, address, _, _, memory_bytes, _ = struct.unpack_from("<IIQQQQQQ", head, start + i * size)
        if kind == _PT_LOAD and not flags & _PF_W:
            first, end = -(-address // mmap.PAGESIZE), (address + memory_bytes) // mmap.PAGESIZE
            found.append((first * mmap.PAGESIZE, (end - first) * mmap.PAGESIZE))
    return found
