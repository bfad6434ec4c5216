"""Compiles LLVM text to PTX, by LLVM in separate processes (llvm_worker)."""

import atexit
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from relayc.pipelines.targets.cuda.architectures import ARCHITECTURES
from relayc.pipelines.targets.cuda.device.errors import DeviceCodeError
from relayc.pipelines.targets.cuda.device.messages import read_message, write_message

_START = "import sys; sys.path[:] = sys.argv[1:]; from relayc.pipelines.targets.cuda.device.llvm_worker import main; main()"
"""With the paths of this process."""
_REASON_CHARACTERS = 600


def require_llvm() -> None:
    """Raises ModuleNotFoundError where llvmlite is not installed."""
    if find_spec("llvmlite") is None:
        message = "target cuda: expected the package llvmlite, which compiles PTX (pip install 'relayc[cuda]'), found none"
        raise ModuleNotFoundError(message, name="llvmlite")


def make_ptx(name: str, text: str, arch: str) -> str:
    """The PTX of a kernel; may be called by several threads at once, each of which then has a process.

    Args:
      name: of the kernel, for errors.
      text: a module of LLVM text without a triple.
      arch: one of ARCHITECTURES.

    Raises:
      DeviceCodeError: there is no such architecture, or LLVM makes no code of the text.
      ModuleNotFoundError: llvmlite is not installed.
    """
    if arch not in ARCHITECTURES:
        raise DeviceCodeError(f"kernel {name}: arch: expected {', '.join(ARCHITECTURES)}, found {arch}")
    worker = _POOL.take()
    try:
        answer = worker.ask({"text": text, "arch": arch, "ptx": ARCHITECTURES[arch].ptx})
    except EOFError:
        reason = worker.last_words()
        worker.close()
        raise DeviceCodeError(f"kernel {name}: expected what LLVM has instructions for on {arch}, found: {reason}") from None
    except BaseException:
        worker.close()
        raise
    _POOL.give_back(worker)
    if "error" in answer:
        reason = " ".join(answer["error"].split())[:_REASON_CHARACTERS]
        raise DeviceCodeError(f"kernel {name}: expected LLVM text, found: {reason}")
    return answer["ptx"]


class _Worker:
    """A process that answers one request at a time."""

    def __init__(self) -> None:
        require_llvm()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )

    def ask(self, request: dict[str, Any]) -> dict[str, str]:
        """Raises EOFError if the process has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            write_message(stdin, request)
            answer = read_message(stdout)
        except BrokenPipeError:
            answer = None
        if answer is None:
            raise EOFError
        return answer

    def last_words(self) -> str:
        """The error output of a process that has ended."""
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        errors = [line for line in lines if "rror" in line] or lines[-1:]
        return " ".join(errors[0].split())[:_REASON_CHARACTERS] if errors else f"an end with code {code}"

    def close(self) -> None:
        """Ends the process: it reads the end of its input."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # it has ended with a request unread
                    stream.close()
        self._process.wait()
        self._errors.close()


class _Pool:
    """The idle workers of this process; not the workers of the process from which it was forked."""

    def __init__(self) -> None:
        self._lock, self._idle, self._owner = threading.Lock(), list[_Worker](), os.getpid()

    def take(self) -> _Worker:
        with self._lock:
            if self._owner != os.getpid():
                self._idle, self._owner = [], os.getpid()
            if self._idle:
                return self._idle.pop()
        return _Worker()

    def give_back(self, worker: _Worker) -> None:
        with self._lock:
            self._idle.append(worker)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle if self._owner == os.getpid() else [], []
        for worker in idle:
            worker.close()


_POOL = _Pool()
atexit.register(_POOL.close)
