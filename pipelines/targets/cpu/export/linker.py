"""The linker that makes libraries: one of the system, or LLVM's in the package ziglang. No compiler and no start files are needed."""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_VARIABLE = "RELAYC_LINKER"
_COMMANDS = ("ld.lld", "ld")


class LinkError(ValueError):
    """There is no linker, or it rejects the objects."""


@functools.cache
def _ziglang() -> tuple[str, ...]:
    return (sys.executable, "-m", "ziglang", "ld.lld") if importlib.util.find_spec("ziglang") is not None else ()


def find_linker() -> tuple[str, ...]:
    """The linker command: RELAYC_LINKER, otherwise ld.lld or ld of the system, otherwise the linker of the package ziglang.

    Raises:
      LinkError: there is none.
    """
    named = os.environ.get(_VARIABLE)
    if named:
        return tuple(named.split())
    for command in _COMMANDS:
        if path := shutil.which(command):
            return (path,)
    if _ziglang():
        return _ziglang()
    raise LinkError(
        f"export_library: expected a linker, found neither {' nor '.join(_COMMANDS)} nor the package ziglang; "
        f"install relayc[export], or name one in {_VARIABLE}"
    )


def link_shared(objects: Sequence[Path], libraries: Sequence[Path], out: Path, name: str) -> None:
    """Links a shared library of position-independent objects.

    Args:
      libraries: shared libraries that define what the objects do not; the library will ask for them by their sonames.
      name: its soname.

    Raises:
      LinkError: there is no linker, a symbol is not defined, or a reference would need the code to be written to when it is loaded.
    """
    options = ["-shared", "-soname", name, "-z", "text", "-z", "defs", "-z", "noexecstack", "-z", "relro", "--eh-frame-hdr"]
    # Libraries are searched beside this one before the system's folders.
    options += ["--hash-style=gnu", "--build-id=none", "--as-needed", "--enable-new-dtags", "-rpath", "$ORIGIN"]
    _run([*options, *map(str, objects), *map(str, libraries)], out)


def link_object(objects: Sequence[Path], out: Path) -> None:
    """Links objects to one. Raises LinkError as `link_shared` does."""
    _run(["-r", *map(str, objects)], out)


def _run(arguments: Sequence[str], out: Path) -> None:
    command = [*find_linker(), *arguments, "-o", str(out)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise LinkError(f"export_library: expected a linker that runs, found {command[0]}: {error}") from error
    if done.returncode:
        raise LinkError(f"export_library: {' '.join(find_linker())} refused the objects: {(done.stderr or done.stdout).strip()}")
