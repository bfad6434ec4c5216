"""Workers that run a model: the server's own process, or processes that may die without it."""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from relayc.processes import ChildProcess, ProcessEnded, answer_requests, program_of
from relayc.runtime.artifact import TensorSpec
from relayc.serve.tensors import Refused

Arrays = Mapping[str, np.ndarray]


class Engine(Protocol):
    """Runs a model; `relayc.runtime.Module` is an engine."""

    @property
    def inputs(self) -> Sequence[TensorSpec]: ...
    @property
    def outputs(self) -> Sequence[TensorSpec]: ...
    def run(self, inputs: Arrays, /) -> Arrays: ...


OpenEngine = Callable[[], Engine]
"""Creates the engine; worker processes unpickle it."""
Specs = tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]


class ThreadWorker:
    """Runs calls in the process of the server, one at a time."""

    def __init__(self, open_engine: OpenEngine) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._open = open_engine
        self._engine: Any = None

    async def open(self) -> Specs:
        """Loads the model; returns its inputs and outputs. Raises the errors of `open_engine`."""
        self._engine = await asyncio.wrap_future(self._pool.submit(self._open))
        return tuple(self._engine.inputs), tuple(self._engine.outputs)

    async def run(self, inputs: Arrays) -> Arrays:
        """The outputs by name. Raises ValueError for inputs that the model does not take, RuntimeError for other failures."""
        return await asyncio.wrap_future(self._pool.submit(_call, self._engine, inputs))

    def kill(self) -> None:
        """Ends a call that takes too long, where it can be ended: a thread cannot."""

    def close(self) -> None:
        self._pool.shutdown(wait=False)


class WorkerDied(RuntimeError):
    """The process of a worker ended while the server waited for its answer."""

    def __init__(self) -> None:
        super().__init__("the worker process died")


class ProcessWorker:
    """Runs calls in a process of its own, one at a time. A process that dies is replaced, and the call that it ran is run once more.

    Nothing but a socket joins the two processes, and only the worker holds its other end: wherever the worker dies, the server reads the
    end of the file. The queues of `concurrent.futures.ProcessPoolExecutor` have locks, and writers in both processes: a worker that dies
    while it writes an answer leaves its server to wait for the rest.
    """

    def __init__(self, open_engine: OpenEngine, died: Callable[[], None]) -> None:
        self._open = open_engine
        self._died = died
        self._thread = ThreadPoolExecutor(1)
        self._start()

    def _start(self) -> None:
        program = program_of("from relayc.serve.workers import main; main()")
        self._child = ChildProcess(program, stdout=None, stderr=None)  # what it prints is for the log of the server

    async def open(self) -> Specs:
        """Loads the model; gives its inputs and outputs.

        Raises:
          ValueError: `open_engine` raised; its class and its message.
          WorkerDied: the process died.
        """
        specs: Specs = await asyncio.wrap_future(self._thread.submit(self._ask, self._open))
        return specs

    async def run(self, inputs: Arrays) -> Arrays:
        """As `ThreadWorker.run`. Raises Refused if both the process and its replacement die, or it cannot be replaced."""
        for _ in range(2):
            if not self._child.is_alive:  # it died between calls
                await self._replace()
            try:
                outputs: Arrays = await asyncio.wrap_future(self._thread.submit(self._ask, inputs))
                return outputs
            except WorkerDied:
                await self._replace()
        raise Refused("the worker process died while it ran the request, and so did its replacement", 500)

    def _ask(self, request: Any) -> Any:
        try:
            answer = self._child.ask(request)
        except ProcessEnded as error:
            raise WorkerDied from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _replace(self) -> None:
        self._died()
        self.kill()
        # After a timeout the thread may still read the answer that will not come.
        await asyncio.wrap_future(self._thread.submit(self._child.close))
        self._start()
        try:
            await self.open()
        except (WorkerDied, ValueError) as error:
            raise Refused(f"the worker process died, and another one cannot open the model: {error}", 500) from error

    def kill(self) -> None:
        """Kills the process and the call that it runs."""
        self._child.kill()

    def close(self) -> None:
        self.kill()
        self._thread.shutdown()
        self._child.close()


Worker = ThreadWorker | ProcessWorker


def _call(engine: Engine, inputs: Arrays) -> Arrays:
    """Calls the engine; errors are converted to classes that can be sent between processes."""
    try:
        return engine.run(inputs)
    except (TypeError, ValueError) as error:
        raise ValueError(str(error)) from None
    except Exception as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _opened(open_engine: OpenEngine) -> Engine:
    """Creates the engine; an error is converted like those of calls."""
    try:
        return open_engine()
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def main() -> None:
    """The worker process: opens the engine, then answers each call; errors are answers too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends its workers
    engine: Engine | None = None

    def answer(request: Any) -> Any:
        nonlocal engine
        try:
            if engine is not None:
                return _call(engine, request)
            engine = _opened(request)
            return tuple(engine.inputs), tuple(engine.outputs)
        except Exception as error:
            return error

    answer_requests(answer)
