"""Permission to use AMX tiles: Linux gives a process the 8 KiB of tile registers only when it asks.

(Linux, Documentation/arch/x86/xstate.rst, "Using dynamically enabled XSTATE features in user space applications".)
"""

import ctypes
import errno
import functools
import os
import platform
import sys

_ARCH_PRCTL = 158
_GET_SUPPORTED, _REQUEST = 0x1021, 0x1023
_TILE_DATA = 18
"""Number of the state component in XSAVE areas."""


def _arch_prctl(code: int, argument: object) -> int:
    """The system call: 0, or the number of an error."""
    libc = ctypes.CDLL(None, use_errno=True)
    return 0 if libc.syscall(_ARCH_PRCTL, code, argument) == 0 else ctypes.get_errno()


@functools.cache
def tiles_supported() -> bool:
    """Whether the system lets processes use AMX tiles, which the flags of the CPU alone do not say."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    mask = ctypes.c_uint64(0)
    return _arch_prctl(_GET_SUPPORTED, ctypes.byref(mask)) == 0 and bool(mask.value >> _TILE_DATA & 1)


@functools.cache
def request_tiles() -> None:
    """Asks for the tile registers, once for all threads of the process.

    Raises:
      RuntimeError: the system refuses.
    """
    error = _arch_prctl(_REQUEST, _TILE_DATA)
    if error:
        hint = "an alternate signal stack is too small for the larger register state" if error == errno.ENOSPC else "compile without AMX"
        raise RuntimeError(
            f"the program uses AMX tiles, and the system refuses this process their registers ({os.strerror(error)}): {hint} "
            "(Target(features='-amx-tile'))"
        )
