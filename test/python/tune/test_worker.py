"""Measurements in a process of their own: what they say, and what becomes of candidates that crash, hang, or give wrong results."""

import io
import math
import os
import signal
import socket
import sys
import threading
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import tuning_faults

from relayc import processes
from relayc.pipelines.context.target import Target
from relayc.processes import ChildProcess
from relayc.tools.timing import Comparison
from relayc.tune import worker
from relayc.tune.process import WorkerProcess
from relayc.tune.single import kernel_task
from relayc.tune.tasks import Task
from relayc.tune.worker import DEFAULT, Bench, Candidate, WrongResult, check_results, copies_of

_X, _Y = 'tensor<?x64xf32, ["n"]>', 'tensor<?x48xf32, ["n"]>'
SYMBOLIC = f"""
func.func @product(%x: {_X}, %w: tensor<64x48xf32> {{relay.param}}, %n: index {{relay.symbol = "n"}}) -> {_Y} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%n) : {_Y}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {_Y}) -> {_Y}
  %0 = linalg.matmul ins(%x, %w : {_X}, tensor<64x48xf32>) outs(%init : {_Y}) -> {_Y}
  return %0 : {_Y}
}}
"""
PRODUCT = SYMBOLIC.replace(_X, "tensor<32x64xf32>").replace(_Y, "tensor<32x48xf32>")
PRODUCT = PRODUCT.replace(', %n: index {relay.symbol = "n"}', "").replace("(%n)", "()")


def rows(count):
    return Candidate("contraction", {"rows": count})


@pytest.fixture(scope="module")
def task():
    return kernel_task(PRODUCT, Target("cpu", num_threads=1), None, None, {}, (), 1)


def test_a_kernel_with_a_symbol():
    task = kernel_task(SYMBOLIC, Target("cpu", num_threads=1), None, None, {"n": 33}, (), 1)
    assert task.shapes == ((33, 64), ()) and task.params == (1,) and task.name == "product"
    found = Bench().measure(task, DEFAULT, rows(3), 0.02)
    assert found.outcome == "measured", found.message


def test_a_candidate_that_gives_other_values_is_not_timed(task):
    wrong = tuning_faults.Bench().measure(task, DEFAULT, rows(4), 0.02)
    assert wrong.outcome == "wrong" and "found a difference of" in wrong.message


def test_a_process_measures_and_survives_what_candidates_do(task):
    """Faults of tuning_faults: 2 rows end the process, 3 rows hang, 4 rows give other values, 5 rows take all memory, 6 rows raise."""
    with WorkerProcess(module="tuning_faults", seconds=60.0) as process:
        found = process.measure(task, DEFAULT, rows(1), 0.02)
        assert found.outcome == "measured" and found.comparison.base_seconds > 0 and found.comparison.seconds > 0
        crashed = process.measure(task, DEFAULT, rows(2), 0.02)
        assert (crashed.outcome, crashed.message) == ("crashed", "the process was ended by SIGSEGV")
        wrong = process.measure(task, DEFAULT, rows(4), 0.02)
        assert wrong.outcome == "wrong" and "result 0: expected what the default schedule gives, found a difference of" in wrong.message
        pid = process._child._process.pid
        refused = process.measure(task, DEFAULT, rows(6), 0.02)
        assert (refused.outcome, refused.message) == ("failed", "ValueError: six rows")
        failed = process.measure(task, DEFAULT, Candidate("attention_rows"), 0.02)
        assert failed.outcome == "failed" and "strategy attention_rows: expected a kernel that it takes" in failed.message
        assert process.measure(task, rows(1), rows(7), 0.02).outcome == "measured"
        assert process._child._process.pid == pid  # these faults cost no process
        process.seconds = 1.0
        hung = process.measure(task, DEFAULT, rows(3), 0.02)
        assert hung.outcome == "timeout" and process._child is None
        process.seconds = 60.0
        assert process.measure(task, DEFAULT, rows(1), 0.02).outcome == "measured"


def test_a_process_that_cannot_start_says_why(task):
    with WorkerProcess(module="no_such_module") as process:
        found = process.measure(task, DEFAULT, rows(1), 0.02)
    assert found.outcome == "crashed" and "No module named 'no_such_module'" in found.message


def test_a_process_has_a_limit_of_memory(task):
    with WorkerProcess(memory=3 << 30, module="tuning_faults") as process:
        found = process.measure(task, DEFAULT, rows(5), 0.02)
        assert found.outcome in ("failed", "crashed")
        assert found.outcome == "crashed" or "MemoryError" in found.message


def test_a_process_that_is_killed_from_outside_is_replaced(task):
    with WorkerProcess(module="tuning_faults") as process:
        process._started()
        killer = threading.Timer(0.2, lambda: os.kill(process._child._process.pid, signal.SIGKILL))
        killer.start()
        found = process.measure(task, DEFAULT, rows(3), 0.02)  # which hangs
        killer.join()
        assert (found.outcome, found.message) == ("crashed", "the process was ended by SIGKILL")


def test_a_process_ends_with_who_started_it():
    process = WorkerProcess()
    process._started()
    child = process._child._process
    assert os.getsid(child.pid) == child.pid  # which ^C does not reach
    process._child._connection.close()  # as the system does for a process that is gone
    assert child.wait(60) == 0
    process.close()


def test_calls_take_parameters_in_turns_where_the_model_finds_them_cold(task, monkeypatch):
    target = Target(task.target)
    own = 64 * 48 * 4
    assert copies_of(own, task) == 1
    cold = Task(**{**task.__dict__, "others": target.l2_bytes})
    assert own * copies_of(own, cold) >= min(2 * target.l2_bytes, 64 * own) or copies_of(own, cold) == 64
    assert copies_of(0, cold) == 1 and copies_of(1 << 40, cold) == 1
    taken = []

    def compare_times(base, other, seconds, enough, clock):
        for call in (base, base, other, base):
            call()
        return Comparison(1.0, 1.0, 1.0, 0.0, 2.0, 1)

    def call_of(kernel):
        original = kernel.packed

        def packed(*tensors):
            taken.append(tensors[1].data_ptr() if hasattr(tensors[1], "data_ptr") else np.from_dlpack(tensors[1]).ctypes.data)
            return original(*tensors)

        return packed

    compiled = worker.compiled

    def wrapped(*arguments):
        kernel, inputs = compiled(*arguments)
        kernel.packed = call_of(kernel)
        return kernel, inputs

    monkeypatch.setattr(worker, "compiled", wrapped)
    monkeypatch.setattr(worker, "compare_times", compare_times)
    assert Bench().measure(cold, DEFAULT, rows(3), 0.1).outcome == "measured"
    assert len(set(taken)) == 3 and taken[0] == taken[2]  # the same three for base and candidate


@pytest.mark.parametrize(
    "num_bytes, others, l2, l3, copies",
    [
        (100, 900, 1000, 0, 1),  # all fit
        (100, 901, 1000, 0, 21),
        (100, 901, 1000, None, 21),
        (100, 1900, 1000, 2000, 21),  # more than the smaller cache
        (100, 1901, 1000, 2000, 41),
        (99, 1902, 1000, 2000, 42),  # 2 * 2000 bytes and one copy more, rounded up
        (100, 1900, 0, 2000, 1),
        (0, 5000, 1000, 2000, 1),
        (10, 5000, 1000, 2000, 64),
        (64 << 20, 5000, 1 << 28, 1 << 30, 1),
        (64 << 20, 1 << 30, 1 << 28, 1 << 30, 4),  # 256 MB in all
        (129 << 20, 1 << 30, 1 << 28, 1 << 30, 1),
        (1 << 40, 5000, 1000, 2000, 1),
        (5000, 0, 5000, 0, 1),
        (5001, 0, 5000, 0, 3),
    ],
)
def test_so_many_copies_that_they_fill_the_caches_twice(monkeypatch, num_bytes, others, l2, l3, copies):
    monkeypatch.setattr(worker, "Target", lambda text: SimpleNamespace(l2_bytes=l2, l3_bytes=l3))
    assert copies_of(num_bytes, Task("key", "k", "", target="cpu", others=others)) == copies


def test_times_are_those_of_a_call(task, monkeypatch):
    monkeypatch.setattr(Bench, "_compiled", lambda self, task, candidate: print)
    monkeypatch.setattr(worker, "compare_times", lambda *_: Comparison(32.0, 16.0, 2.0, 1.9, 2.1, 8))
    monkeypatch.setattr(worker, "launches_of", lambda task: 8)
    found = Bench().measure(task, DEFAULT, DEFAULT, 1.0).comparison
    assert (found.base_seconds, found.seconds, found.ratio) == (4.0, 2.0, 2.0)


@pytest.mark.parametrize("is_gpu, emulate, launches", [(False, False, 1), (True, True, 1), (True, False, 16)])
def test_kernels_of_gpus_are_timed_many_at_a_time(monkeypatch, is_gpu, emulate, launches):
    monkeypatch.setattr(worker, "Target", lambda text: SimpleNamespace(is_gpu=is_gpu, emulate=emulate))
    assert worker.launches_of(Task("key", "k", "", target="cpu")) == launches


@pytest.mark.parametrize("rounds, ratio, asked", [(3, 1.2, [1.0, 20 / 3]), (1, 1.2, [1.0, 10.0]), (3, 0.9, [1.0]), (8, 1.2, [1.0])])
def test_calls_that_take_long_get_more_rounds_where_they_seem_faster(task, monkeypatch, rounds, ratio, asked):
    seconds = []

    def compare_times(base, other, limit, enough, clock):
        seconds.append(limit)
        assert clock is time.thread_time  # the task has one thread
        assert enough(Comparison(1.0, 2.0, 0.5, 0.0, math.inf, 4)) and not enough(Comparison(1.0, 1.1, 0.9, 0.0, math.inf, 4))
        return Comparison(1.0, 1.0, ratio, *((0.0, math.inf) if rounds < 8 else (1.1, 1.3)), rounds)

    monkeypatch.setattr(worker, "compare_times", compare_times)
    assert Bench().measure(replace(task, threads=1), DEFAULT, DEFAULT, 1.0).outcome == "measured"
    assert seconds == asked


def test_tolerances_are_those_of_the_format(task):
    from relayc.runtime.artifact import TensorSpec

    x = np.linspace(1, 2, 8, dtype=np.float32)
    for dtype, factor, agrees in (("float32", 1.0001, True), ("float32", 1.01, False), ("bfloat16", 1.01, True), ("bfloat16", 2.0, False)):
        specs = (TensorSpec("y", (8,), dtype),)
        if agrees:
            check_results(specs, [x * factor], [x])
        else:
            with pytest.raises(WrongResult, match="result 0: expected what the default schedule gives, found a difference"):
                check_results(specs, [x * factor], [x])
    with pytest.raises(WrongResult, match="found other values"):
        check_results((TensorSpec("y", (2,), "int64"),), [np.array([1, 1 << 40])], [np.array([1, (1 << 40) + 1])])


def test_a_written_schedule_runs_by_its_text():
    def halves(s):
        outer, _ = s.split(s.get_loops("matmul")[0], s.sample_perfect_tile(s.get_loops("matmul")[0], 2, 16, name="rows"))
        s.parallel(outer)

    from relayc.tune.generated import written_text

    task = kernel_task(PRODUCT, Target("cpu", num_threads=1), halves, None, {}, (), 1)
    first, second = (Candidate("halves", numbers, written_text(task, Candidate("halves", numbers))) for numbers in ({}, {"rows": (2, 16)}))
    assert first.schedule != second.schedule
    found = Bench().measure(task, first, second, 0.02)
    assert found.outcome == "measured", found.message


def test_time(task):
    """A measurement ends where more of it says nothing."""
    begin = time.perf_counter()
    assert Bench().measure(task, DEFAULT, DEFAULT, 0.05).comparison.rounds > 0
    assert time.perf_counter() - begin < 60


@pytest.mark.parametrize(
    ("ratio", "low", "high", "enough"),
    [
        (1.5, 1.1, 2.0, True),  # faster
        (1.0, 0.9, 1.5, False),
        (1.0, 0.9, 1.019, True),  # not worth a change
        (1.0, 0.9, 1.02, False),
        (0.79, 0.5, 1.5, True),  # hopeless
        (0.8, 0.5, 1.5, False),
    ],
)
def test_a_candidate_is_timed_until_it_is_known_to_be_worth_a_change_or_not(ratio, low, high, enough):
    assert worker._is_enough(Comparison(1.0, 1.0, ratio, low, high, 8)) is enough


def test_a_process_answers_until_nobody_asks(monkeypatch):
    """It is no longer than its parent, by a thread that does not keep it, and an interrupt is for the parent."""
    ours, theirs = socket.socketpair()
    watching, ignored = Mock(), Mock()
    monkeypatch.setattr(processes, "threading", SimpleNamespace(Thread=watching))
    monkeypatch.setattr(worker.signal, "signal", ignored)
    with ours, Connection(os.dup(ours.fileno())) as connection:
        connection.send((1,))
        connection.send((2,))
        ours.shutdown(socket.SHUT_WR)
        monkeypatch.setattr(sys, "argv", ["-c", "0", str(theirs.detach())])
        worker.main(SimpleNamespace(measure=lambda number: 10 * number))
        assert [connection.recv(), connection.recv()] == [10, 20]
    ignored.assert_called_once_with(signal.SIGINT, signal.SIG_IGN)
    watching.assert_called_once_with(target=processes._end_with_the_parent, args=(os.getppid(),), daemon=True)


def test_an_interrupt_ends_the_process_whose_answer_nobody_waits_for(task, monkeypatch):
    process = WorkerProcess()
    monkeypatch.setattr(process, "_started", Mock(side_effect=KeyboardInterrupt))
    monkeypatch.setattr(process, "close", Mock())
    with pytest.raises(KeyboardInterrupt):
        process.measure(task, DEFAULT, DEFAULT, 1.0)
    process.close.assert_called_once_with()


@pytest.mark.parametrize(
    ("code", "said", "words"),
    [
        (0, b"first\nlast\n\n", "the process ended with code 0: last"),
        (3, b"", "the process ended with code 3"),
        (-9, b"last", "the process was ended by SIGKILL"),
    ],
)
def test_how_a_process_ended(code, said, words):
    process = ChildProcess.__new__(ChildProcess)
    process._process, process._errors = SimpleNamespace(wait=lambda timeout: code), io.BytesIO(said)
    assert process.last_words() == words
