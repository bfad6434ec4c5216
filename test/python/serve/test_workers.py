"""Worker processes that die at any moment: each call ends, with its answer or with an error."""

import argparse
import asyncio
import io
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from dying import Dying

import relayc.serve
from relayc.processes import ChildProcess
from relayc.serve import command, workers
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
    return asyncio.run(asyncio.wait_for(worker.run({"seconds": np.array(seconds), "size": np.array(size)}), 60))


def test_a_worker_that_dies_while_it_answers_does_not_stop_its_server(worker: ProcessWorker) -> None:
    start = time.monotonic()
    call(worker, -1, 10_000_000)
    duration = min(time.monotonic() - start, 2)  # a busy machine may take much longer
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
    worker._child._connection.close()  # as the system does where the server ends
    assert worker._child._process.wait(60) == 0


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


@pytest.mark.parametrize(
    ("raised", "expected", "message"),
    [
        (TypeError("no"), ValueError, "^no$"),
        (ValueError("no"), ValueError, "^no$"),
        (OSError("no"), RuntimeError, "^OSError: no$"),
    ],
)
def test_errors_of_engines_have_classes_that_can_be_sent(raised: Exception, expected: type[Exception], message: str) -> None:
    with pytest.raises(expected, match=message):
        workers._call(Mock(run=Mock(side_effect=raised)), {})


def test_answers_that_are_errors_are_raised() -> None:
    with pytest.raises(ValueError, match="no"):
        ProcessWorker._ask(Mock(_child=Mock(ask=lambda request: ValueError("no"))), {})
    for failing in ({"send.side_effect": BrokenPipeError}, {"recv.side_effect": EOFError}):
        child = ChildProcess.__new__(ChildProcess)
        child._connection, child._process, child._errors = Mock(**failing), Mock(wait=lambda timeout: 0), io.BytesIO()
        with pytest.raises(WorkerDied):
            ProcessWorker._ask(Mock(_child=child), {})


def test_names_of_the_package() -> None:
    with pytest.raises(AttributeError, match=r"module 'relayc.serve' has no attribute 'Other'"):
        _ = relayc.serve.Other


@pytest.mark.parametrize("given", [[], ["--verbose", "--host", "::", "--http-port", "1", "--max-request-bytes", "2M", "--workers", "3"]])
def test_the_command_gives_its_options_to_the_server(given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run, parser = Mock(), argparse.ArgumentParser()
    monkeypatch.setitem(sys.modules, "relayc.serve.server", Mock(run=run))
    command.add_options(parser)
    command.serve(parser.parse_args(["models", *given]))
    of_server = {"host": "::", "http_port": 1, "grpc_max_message_length": 2 << 20, "debug": True} if given else {}
    run.assert_called_once_with(Path("models"), {"workers": 3} if given else {}, **of_server)


@pytest.mark.parametrize("text", ["0", "M", "-1", "1.5", "2T", ""])
def test_sizes_that_make_no_sense(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"expected a number of bytes such as 64M, found '{text}'"):
        command._size(text)
