"""Workers that run a model: the server's own process, or processes that may die without it."""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from relayc.runtime.artifact import TensorSpec
from relayc.serve.tensors import Refused

Arrays = Mapping[str, np.ndarray]


class Engine(Protocol):
    """What runs a model; `relayc.runtime.Module` is one."""

    @property
    def inputs(self) -> Sequence[TensorSpec]: ...
    @property
    def outputs(self) -> Sequence[TensorSpec]: ...
    def run(self, inputs: Arrays, /) -> Arrays: ...


OpenEngine = Callable[[], Engine]
"""Makes the engine; worker processes unpickle it."""
Specs = tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]


class ThreadWorker:
    """Runs calls in the process of the server, one at a time."""

    def __init__(self, open_engine: OpenEngine) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._open = open_engine
        self._engine: Any = None

    async def open(self) -> Specs:
        """Loads the model; gives its inputs and outputs. Raises what `open_engine` raises."""
        self._engine = await asyncio.wrap_future(self._pool.submit(self._open))
        return tuple(self._engine.inputs), tuple(self._engine.outputs)

    async def run(self, inputs: Arrays) -> Arrays:
        """The outputs by name. Raises ValueError for inputs that the model does not take, RuntimeError for other failures."""
        return await asyncio.wrap_future(self._pool.submit(_call, self._engine, inputs))

    def kill(self) -> None:
        """Ends a call that takes too long, where it can be ended: a thread cannot."""

    def close(self) -> None:
        self._pool.shutdown(wait=False)


class ProcessWorker:
    """Runs calls in a process of its own, one at a time. A process that dies is replaced, and the call that it ran is run once more."""

    def __init__(self, open_engine: OpenEngine, died: Callable[[], None]) -> None:
        self._open = open_engine
        self._died = died
        self._pid = 0
        self._start()

    def _start(self) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        self._opened = self._pool.submit(_open_in_worker, self._open)

    async def open(self) -> Specs:
        """Loads the model; gives its inputs and outputs. Raises ValueError with what `open_engine` raised."""
        self._pid, specs = await asyncio.wrap_future(self._opened)
        return specs

    async def run(self, inputs: Arrays) -> Arrays:
        """As `ThreadWorker.run`. Raises Refused where the process dies and so does its replacement, or where there can be none."""
        for _ in range(2):
            try:
                call = self._pool.submit(_call_in_worker, inputs)
            except RuntimeError:  # the process died between calls
                await self._replace()
                call = self._pool.submit(_call_in_worker, inputs)
            try:
                return await asyncio.wrap_future(call)
            except BrokenProcessPool:
                await self._replace()
        raise Refused("the worker process died while it ran the request, and so did its replacement", 500)

    async def _replace(self) -> None:
        self._died()
        # Before Python 3.11.6 the thread that writes to a dead process waits for ever for it to read, and the server for the thread
        # (https://github.com/python/cpython/issues/94777).
        with suppress(AttributeError):
            self._pool._call_queue._reader.close()  # type: ignore[attr-defined] # private
        self.close()
        self._start()
        try:
            await self.open()
        except (BrokenProcessPool, ValueError) as error:
            self.close()
            raise Refused(f"the worker process died, and another one cannot open the model: {error}", 500) from error

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


Worker = ThreadWorker | ProcessWorker


def _call(engine: Engine, inputs: Arrays) -> Arrays:
    """A call, whose errors are of classes that survive the way between processes."""
    try:
        return engine.run(inputs)
    except (TypeError, ValueError) as error:
        raise ValueError(str(error)) from None
    except Exception as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


_engines: list[Any] = []
"""In a worker process: the engine."""


def _open_in_worker(open_engine: OpenEngine) -> tuple[int, Specs]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends its workers
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    try:
        _engines[:] = [open_engine()]
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return os.getpid(), (tuple(_engines[0].inputs), tuple(_engines[0].outputs))


def _end_with_the_server() -> None:
    server = multiprocessing.parent_process()
    assert server is not None
    server.join()
    os._exit(1)


def _call_in_worker(inputs: Arrays) -> Arrays:
    return _call(_engines[0], inputs)
