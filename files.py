"""Files that are read."""

import errno
import os
import stat
from typing import BinaryIO


def open_file(path: "str | os.PathLike[str]") -> BinaryIO:
    """Opens a regular file for reading. Raises OSError where it cannot be read, and for a FIFO or device, for which opening and reading may
    wait."""
    file: BinaryIO = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 # the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "expected a regular file", os.fspath(path))
    return file


def read_file(path: "str | os.PathLike[str]") -> bytes:
    """The contents of a regular file. Raises OSError as `open_file`."""
    with open_file(path) as file:
        return file.read()


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
