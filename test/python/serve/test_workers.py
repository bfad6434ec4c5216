"""Worker processes that die at any moment: each call ends, with its answer or with an error."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dying import Dying

from relayc.serve.tensors import Refused
from relayc.serve.workers import Arrays, ProcessWorker, ThreadWorker, WorkerDied


@pytest.fixture
def worker() -> Iterator[ProcessWorker]:
    deaths: list[int] = []
    worker = ProcessWorker(Dying(), lambda: deaths.append(1))
    asyncio.run(worker.open())
    yield worker
    worker.close()


def call(worker: ProcessWorker, seconds: float, size: int) -> Arrays:
    return asyncio.run(asyncio.wait_for(worker.run({"seconds": np.array(seconds), "size": np.array(size)}), 20))


def test_a_worker_that_dies_while_it_answers_does_not_stop_its_server(worker: ProcessWorker) -> None:
    start = time.monotonic()
    call(worker, -1, 10_000_000)
    duration = time.monotonic() - start
    for part in (0.2, 0.4, 0.6, 0.8):  # the answer of 80 MB takes most of the time
        try:
            assert call(worker, part * duration, 10_000_000)["y"][-1] == 9_999_999
        except Refused as error:
            assert error.status_code == 500 and "and so did its replacement" in str(error)
    assert call(worker, -1, 3)["y"].tolist() == [0, 1, 2]


def test_a_call_in_the_process_of_the_server_is_not_waited_for() -> None:
    worker, ends = ThreadWorker(Dying()), threading.Event()
    running = worker._pool.submit(ends.wait, 20)
    worker.close()
    assert not running.done()
    ends.set()


def test_a_worker_that_dies_between_calls_is_replaced(worker: ProcessWorker) -> None:
    worker.kill()
    assert call(worker, -1, 3)["y"].tolist() == [0, 1, 2]


def test_a_worker_that_dies_while_it_opens_the_model(tmp_path: Path) -> None:
    deaths: list[int] = []
    worker = ProcessWorker(Dying(str(tmp_path / "file")), lambda: deaths.append(1))
    asyncio.run(worker.open())
    (tmp_path / "file").touch()
    worker.kill()
    with pytest.raises(Refused, match=r"^the worker process died, and another one cannot open the model: the worker process died$"):
        call(worker, -1, 3)
    with pytest.raises(WorkerDied, match="the worker process died"):
        asyncio.run(worker.open())
    worker.close()
    assert deaths == [1]
