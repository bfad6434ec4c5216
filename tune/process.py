"""The worker process, as the search sees it: it is started when it is needed, ended when it takes too long, and replaced when it dies."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from concurrent.futures import Future
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import IO, Any

from typing_extensions import Self

from relayc.runtime import Device
from relayc.tune.tasks import Task
from relayc.tune.worker import Candidate, Measured

COMPILE_SECONDS = 60.0
"""The most that compiling two kernels and checking their results may take."""


class Measurer(ABC):
    """What measures candidates. A `with` statement closes it at the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def slots(self) -> int:
        """How many measurements may be under way at the same time."""
        return 1

    @abstractmethod
    def measure(self, task: Task, base: Candidate, candidate: Candidate, seconds: float) -> Measured:
        """Times a candidate in turns with the base, for `seconds` at most if more time would not change the outcome."""

    def submit(self, task: Task, base: Candidate, candidate: Candidate, seconds: float) -> "Future[Measured]":
        """The same, to be waited for; where measurements run one after the other it is done at once."""
        answer: Future[Measured] = Future()
        answer.set_result(self.measure(task, base, candidate, seconds))
        return answer

    def close(self) -> None:  # noqa: B027 # nothing to end
        """Ends the measuring process."""


class WorkerProcess(Measurer):
    """Measures in a separate process.

    Args:
      memory: most bytes of memory of the process, by default half of the memory of this machine; 0 for no limit.
      seconds: most seconds of a measurement in addition to the timed calls.
      module: the module that the process runs.
    """

    def __init__(self, memory: int | None = None, seconds: float = COMPILE_SECONDS, module: str = "relayc.tune.worker") -> None:
        self.memory = Device("cpu").memory_bytes // 2 if memory is None else memory
        self.seconds, self.module = seconds, module
        self._process: subprocess.Popen | None = None
        self._connection: Connection | None = None
        self._errors: IO[bytes]

    def measure(self, task: Task, base: Candidate, candidate: Candidate, seconds: float) -> Measured:
        """See Measurer; if the process dies or takes too long, the candidate has failed."""
        limit = self.seconds + 3 * seconds
        try:
            connection = self._connected()
            connection.send((replace(task, schedule=None, sketches={}), base, candidate, seconds))
            if not connection.poll(limit):
                self.close()
                return Measured("timeout", message=f"expected an answer in {limit:.0f} s, found none")
            answer: Measured = connection.recv()
            return answer
        except (EOFError, OSError):
            message = self._last_words()
            self.close()
            return Measured("crashed", message=message)
        except BaseException:  # an interrupt: the answer that comes is to nobody
            self.close()
            raise

    def _last_words(self) -> str:
        """How the process ended."""
        code = self._process.wait() if self._process is not None else 0
        if code < 0:
            return f"the process was ended by {signal.Signals(-code).name}"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        return f"the process ended with code {code}: {next(filter(None, reversed(lines)), '')[:500]}"

    def _connected(self) -> Connection:
        if self._connection is None:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                # With the packages of this process; in a separate session, which ^C does not reach.
                environment = {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(map(os.path.abspath, sys.path)))}
                # Not by -m: pickled classes must belong to the module of their name.
                code = f"import sys; from {self.module} import main; main(sys.argv[1:])"
                words = [sys.executable, "-c", code, str(theirs.fileno()), str(self.memory)]
                self._errors = tempfile.TemporaryFile()  # noqa: SIM115 # close() closes it
                streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": self._errors, "stderr": self._errors}
                self._process = subprocess.Popen(words, pass_fds=[theirs.fileno()], env=environment, start_new_session=True, **streams)
                self._connection = Connection(ours.detach())
        return self._connection

    def close(self) -> None:
        """Ends the process; the next measurement starts another one."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._errors.close()
        self._process = self._connection = None
