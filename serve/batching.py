"""Requests that wait for a worker, joined to batches of requests of equal sizes."""

import asyncio
import itertools
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relayc.serve.metrics import Metrics
from relayc.serve.tensors import Refused
from relayc.serve.workers import Arrays, Worker


@dataclass(frozen=True)
class Limits:
    """What a model is given.

    Attributes:
      max_batch_size: rows that a batch has at most; up to 1, requests are not joined. A request of more rows runs alone.
      max_batch_time: seconds that a request waits at most for others, while workers are free.
      max_queue: requests that wait for a worker at most; more are refused.
      timeout: seconds from the arrival of a request to its result, at most.
    """

    max_batch_size: int = 1
    max_batch_time: float = 0.0
    max_queue: int = 256
    timeout: float = 60.0


@dataclass
class _Request:
    inputs: Arrays
    rows: int
    result: "asyncio.Future[Arrays]"


@dataclass
class _Batch:
    key: Hashable
    requests: list[_Request] = field(default_factory=list)
    rows: int = 0
    full: asyncio.Event = field(default_factory=asyncio.Event)


class Batcher:
    """Runs requests on workers, in the order of their arrival.

    A batch takes requests until it has `max_batch_size` rows, or until `max_batch_time` is over and a worker is free: while all workers
    are busy batches grow. Only requests whose arrays have equal dtypes and sizes, the first size apart, are joined.
    """

    def __init__(self, workers: Sequence[Worker], limits: Limits, metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._free: asyncio.Queue[Worker] = asyncio.Queue()
        for worker in workers:
            self._free.put_nowait(worker)
        self._open: dict[Hashable, _Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting = 0

    async def run(self, inputs: Arrays) -> Arrays:
        """The outputs of a request.

        Args:
          inputs: by name; where requests are joined, all have the same first size.

        Raises:
          Refused: too many requests wait, there is no result in time, or the model does not take the inputs.
        """
        if self._waiting >= self._limits.max_queue:
            raise Refused(f"queue full: {self._waiting} requests wait for a worker (max_queue {self._limits.max_queue})", 503)
        most = self._limits.max_batch_size
        rows = len(next(iter(inputs.values()))) if most > 1 else 1
        key = tuple((array.dtype.str, array.shape[1:]) for array in inputs.values())
        batch = self._open.get(key)
        if batch is None or batch.rows + rows > most:
            if batch is not None:
                batch.full.set()
            batch = self._open[key] = _Batch(key)
            task = asyncio.create_task(self._serve(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        request = _Request(inputs, rows, asyncio.get_running_loop().create_future())
        batch.requests.append(request)
        batch.rows += rows
        if batch.rows >= most:
            batch.full.set()
            del self._open[key]
        self._count_waiting(1)
        try:
            return await asyncio.wait_for(request.result, self._limits.timeout)
        except asyncio.TimeoutError:
            raise Refused(f"no result in {self._limits.timeout:g} s (timeout)", 504) from None

    async def drain(self, seconds: float) -> None:
        """Waits for the requests that have arrived."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    def _count_waiting(self, more: int) -> None:
        self._waiting += more
        self._metrics.waiting.set(self._waiting)

    async def _serve(self, batch: _Batch) -> None:
        """Runs a batch on the first worker that is free."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(batch.full.wait(), self._limits.max_batch_time)
        worker = await self._free.get()
        if self._open.get(batch.key) is batch:
            del self._open[batch.key]
        self._count_waiting(-len(batch.requests))
        try:
            await self._run(worker, [request for request in batch.requests if not request.result.done()])
        finally:
            self._free.put_nowait(worker)

    async def _run(self, worker: Worker, requests: Sequence[_Request]) -> None:
        """Completes each request with its result. If a batch fails, each request runs alone, so that one request does not fail others."""
        if not requests:
            return
        failure: Exception
        try:
            outputs = await asyncio.wait_for(worker.run(_joined([request.inputs for request in requests])), self._limits.timeout)
        except asyncio.TimeoutError:
            worker.kill()
            failure = Refused(f"the model ran for more than {self._limits.timeout:g} s (timeout)", 504)
        except Refused as error:
            failure = error
        except Exception as error:
            if len(requests) > 1:
                for request in requests:
                    await self._run(worker, [request])
                return
            failure = Refused(str(error), 400 if isinstance(error, ValueError) else 500)
        else:
            self._metrics.rows.observe(sum(request.rows for request in requests))
            ends = list(itertools.accumulate(request.rows for request in requests))
            for request, end in zip(requests, ends, strict=True):
                part = outputs if len(requests) == 1 else {name: array[end - request.rows : end] for name, array in outputs.items()}
                if not request.result.done():
                    request.result.set_result(part)
            return
        for request in requests:
            if not request.result.done():
                request.result.set_exception(failure)


def _joined(inputs: Sequence[Arrays]) -> Arrays:
    if len(inputs) == 1:
        return inputs[0]
    columns: dict[str, Any] = {name: [each[name] for each in inputs] for name in inputs[0]}
    return {name: np.concatenate(arrays) for name, arrays in columns.items()}
