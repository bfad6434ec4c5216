"""Workers that run a model: the server's own process, or processes that may die without it."""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

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
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        with theirs:
            self._process = context.Process(target=_work, args=(self._open, theirs), daemon=True)
            self._process.start()

    async def open(self) -> Specs:
        """Loads the model; gives its inputs and outputs.

        Raises:
          ValueError: `open_engine` raised; its class and its message.
          WorkerDied: the process died.
        """
        specs: Specs = await asyncio.wrap_future(self._thread.submit(self._receive))
        return specs

    async def run(self, inputs: Arrays) -> Arrays:
        """As `ThreadWorker.run`. Raises Refused if both the process and its replacement die, or it cannot be replaced."""
        for _ in range(2):
            if not self._process.is_alive():  # it died between calls
                await self._replace()
            try:
                outputs: Arrays = await asyncio.wrap_future(self._thread.submit(self._exchange, inputs))
                return outputs
            except WorkerDied:
                await self._replace()
        raise Refused("the worker process died while it ran the request, and so did its replacement", 500)

    def _exchange(self, inputs: Arrays) -> Any:
        try:
            self._connection.send(inputs)
        except OSError as error:
            raise WorkerDied from error
        return self._receive()

    def _receive(self) -> Any:
        try:
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise WorkerDied from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _replace(self) -> None:
        self._died()
        self.kill()
        # After a timeout the thread may still read the answer that will not come.
        await asyncio.wrap_future(self._thread.submit(self._connection.close))
        self._start()
        try:
            await self.open()
        except (WorkerDied, ValueError) as error:
            raise Refused(f"the worker process died, and another one cannot open the model: {error}", 500) from error

    def kill(self) -> None:
        """Kills the process and the call that it runs."""
        self._process.kill()
        self._process.join()

    def close(self) -> None:
        self.kill()
        self._thread.shutdown()


Worker = ThreadWorker | ProcessWorker


def _call(engine: Engine, inputs: Arrays) -> Arrays:
    """Calls the engine; errors are converted to classes that can be sent between processes."""
    try:
        return engine.run(inputs)
    except (TypeError, ValueError) as error:
        raise ValueError(str(error)) from None
    except Exception as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _work(open_engine: OpenEngine, connection: Connection) -> None:
    """The worker process: opens the engine, then answers each call; errors are answers too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends its workers
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    try:
        engine = open_engine()
    except Exception as error:
        connection.send(ValueError(f"{type(error).__name__}: {error}"))
        return
    connection.send((tuple(engine.inputs), tuple(engine.outputs)))
    with suppress(EOFError):
        while True:
            inputs = connection.recv()
            try:
                answer: Arrays | Exception = _call(engine, inputs)
            except Exception as error:
                answer = error
            connection.send(answer)


def _end_with_the_server() -> None:
    server = multiprocessing.parent_process()
    assert server is not None
    server.join()
    os._exit(1)
