"""The worker process, as the search sees it: it is started when it is needed, ended when it takes too long, and replaced when it dies."""

from abc import ABC, abstractmethod
from concurrent.futures import Future
from dataclasses import replace

from typing_extensions import Self

from relayc.processes import ChildProcess, ProcessEnded, program_of
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
        self._child: ChildProcess | None = None

    def measure(self, task: Task, base: Candidate, candidate: Candidate, seconds: float) -> Measured:
        """See Measurer; if the process dies or takes too long, the candidate has failed."""
        request = replace(task, schedule=None, sketches={}), base, candidate, seconds
        try:
            answer: Measured = self._started().ask(request, self.seconds + 3 * seconds)
            return answer
        except (ProcessEnded, TimeoutError) as error:
            self.close()
            return Measured("crashed" if isinstance(error, ProcessEnded) else "timeout", message=str(error))
        except BaseException:  # an interrupt: the answer that comes is to nobody
            self.close()
            raise

    def _started(self) -> ChildProcess:
        if self._child is None:
            # In a separate session, which ^C does not reach.
            program = program_of(f"from {self.module} import main; main()")
            self._child = ChildProcess([*program, str(self.memory)], start_new_session=True)
        return self._child

    def close(self) -> None:
        """Ends the process; the next measurement starts another one."""
        if self._child is not None:
            self._child.close()
        self._child = None
