"""Python processes that answer requests, one after the other, over a socket."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from typing_extensions import Self

_PATIENCE = 5.0
"""Seconds that a process may take to end by itself."""


class ProcessEnded(Exception):
    """A process ended without an answer; the message says how."""


class ChildProcess:
    """A Python process that answers requests (see `answer_requests`); a context manager that ends it. What the process prints goes to a
    file, unless `options` say otherwise.

    Args:
      program: arguments of the interpreter; the file descriptor of the socket is added as the last argument.
      python: the interpreter.
      options: of subprocess.Popen.
    """

    def __init__(self, program: Sequence[str], python: str = sys.executable, **options: Any) -> None:
        ours, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 # close() closes it
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": self._errors, "stderr": self._errors}
        with ours, theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen([python, *program, str(number)], pass_fds=[number], **{**streams, **options})
            self._connection = Connection(ours.detach())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(_PATIENCE)

    def ask(self, request: Any, seconds: float | None = None) -> Any:
        """The answer to a request, which can be pickled.

        Raises:
          ProcessEnded: the process has ended, or it ends before it answers.
          TimeoutError: there is no answer in `seconds`; the process goes on.
        """
        try:
            self._connection.send(request)
            if self._connection.poll(seconds):
                return self._connection.recv()
        except (EOFError, OSError):
            raise ProcessEnded(self.last_words()) from None
        raise TimeoutError(f"expected an answer in {seconds:.0f} s, found none")

    def last_words(self) -> str:
        """How the process ended: the signal, or its exit code and the last line that it printed."""
        try:
            code: int | str = self._process.wait(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            code = "unknown"
        if isinstance(code, int) and code < 0:
            return f"the process was ended by {signal.Signals(-code).name}"
        last = next((line.strip() for line in reversed(self.printed()) if line.strip()), "")
        return f"the process ended with code {code}" + (f": {last[:500]}" if last else "")

    def printed(self) -> list[str]:
        """The lines that the process has printed, to standard output and standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").splitlines()

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kills the process, also while another thread waits for its answer."""
        self._process.kill()
        self._process.wait()

    def close(self, seconds: float = 0.0) -> None:
        """Ends the process. It has some seconds to end by itself, as its socket is closed."""
        self._connection.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=seconds)
        self.kill()
        self._errors.close()


def program_of(statement: str) -> list[str]:
    """Arguments of an interpreter for a statement, with the module path of this process. Classes belong to the modules of their names, so
    that they can be pickled; with -m they would belong to __main__."""
    return ["-c", f"import sys; sys.path[:] = {list(map(os.fspath, sys.path))!r}; {statement}"]


def answer_requests(answer: Callable[[Any], Any]) -> None:
    """The process: answers requests until the socket is closed, or the process that started it has ended."""
    threading.Thread(target=_end_with_the_parent, args=(os.getppid(),), daemon=True).start()
    with Connection(int(sys.argv[-1])) as connection, suppress(EOFError):
        while True:
            connection.send(answer(connection.recv()))


def _end_with_the_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
