"""Compiles LLVM text to PTX, by LLVM in separate processes (llvm_worker)."""

import atexit
import os
from importlib.util import find_spec

from relayc.pipelines.targets.cuda.architectures import ARCHITECTURES
from relayc.pipelines.targets.cuda.device.errors import DeviceCodeError
from relayc.processes import ChildProcess, ProcessEnded, program_of

_REASON_CHARACTERS = 600
_PATIENCE = 5.0
"""Seconds that an idle process may take to end."""


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
    except ProcessEnded as error:
        worker.close()
        raise DeviceCodeError(f"kernel {name}: expected what LLVM has instructions for on {arch}, found: {error}") from None
    except BaseException:
        worker.close()
        raise
    _POOL.give_back(worker)
    if "error" in answer:
        reason = " ".join(answer["error"].split())[:_REASON_CHARACTERS]
        raise DeviceCodeError(f"kernel {name}: expected LLVM text, found: {reason}")
    return answer["ptx"]


class _Worker(ChildProcess):
    """A process that answers one request at a time."""

    def __init__(self) -> None:
        require_llvm()
        super().__init__(program_of("from relayc.pipelines.targets.cuda.device.llvm_worker import main; main()"))

    def last_words(self) -> str:
        """The error output of a process that has ended."""
        code, lines = self._process.wait(), self.printed()
        errors = [line for line in lines if "rror" in line] or lines[-1:]
        return " ".join(errors[0].split())[:_REASON_CHARACTERS] if errors else f"an end with code {code}"


class _Pool:
    """The idle workers of this process; not the workers of the process from which it was forked."""

    def __init__(self) -> None:
        self._idle = list[_Worker]()
        os.register_at_fork(after_in_child=self._idle.clear)

    def take(self) -> _Worker:
        try:
            return self._idle.pop()
        except IndexError:
            return _Worker()

    def give_back(self, worker: _Worker) -> None:
        self._idle.append(worker)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close(_PATIENCE)


_POOL = _Pool()
atexit.register(_POOL.close)
