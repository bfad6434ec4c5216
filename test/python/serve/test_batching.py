"""Requests that wait are joined where they fit, and each gets its own part of the results."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

WHY = "relayc serve needs MLServer, which is not installed (no release of it is for Python 3.13)"
batching = pytest.importorskip("relayc.serve.batching", reason=WHY)
metrics = pytest.importorskip("relayc.serve.metrics", reason=WHY)
Limits, Refused = batching.Limits, batching.Refused


class Doubler:
    """A worker that keeps the shapes of its batches, and refuses batches that hold a negative number."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.shapes: list[tuple[int, ...]] = []
        self.kills = 0

    async def run(self, inputs: Any) -> Any:
        self.shapes.append(inputs["x"].shape)
        await asyncio.sleep(self.seconds)
        if (inputs["x"] < 0).any():
            raise ValueError("expected no negative number")
        return {"y": inputs["x"] * 2}

    def kill(self) -> None:
        self.kills += 1


def run_all(worker: Doubler, limits: Any, *arrays: np.ndarray) -> list[Any]:
    """What requests get that arrive at once: outputs or errors."""

    async def run() -> list[Any]:
        batcher = batching.Batcher([worker], limits, metrics.Metrics("doubler", "1"))
        calls: list[Awaitable[Any]] = [batcher.run({"x": array}) for array in arrays]
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(run())


def rows(count: int, width: int = 3) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 100, (count, width))


def test_requests_of_equal_sizes_are_joined_and_cut_apart() -> None:
    worker = Doubler()
    arrays = [rows(2), rows(1), rows(4)]
    found = run_all(worker, Limits(max_batch_size=8, max_batch_time=0.05), *arrays)
    assert worker.shapes == [(7, 3)]
    assert all(np.array_equal(each["y"], 2 * array) for each, array in zip(found, arrays, strict=True))


def test_requests_of_other_sizes_or_dtypes_are_not_joined() -> None:
    worker = Doubler()
    arrays = [rows(2), rows(2, 5), rows(1), rows(1).astype(np.float32), rows(3, 5)]
    found = run_all(worker, Limits(max_batch_size=8, max_batch_time=0.05), *arrays)
    assert sorted(worker.shapes) == [(1, 3), (3, 3), (5, 5)]
    assert all(np.array_equal(each["y"], 2 * array) for each, array in zip(found, arrays, strict=True))


def test_a_batch_has_at_most_max_batch_size_rows_and_a_larger_request_runs_alone() -> None:
    worker = Doubler()
    run_all(worker, Limits(max_batch_size=4, max_batch_time=0.05), rows(3), rows(2), rows(6), rows(1))
    assert sorted(shape[0] for shape in worker.shapes) == [1, 2, 3, 6]


def test_a_batch_that_the_next_request_does_not_fit_waits_for_no_others() -> None:
    worker = Doubler()
    run_all(worker, Limits(max_batch_size=4, max_batch_time=60, timeout=10), rows(3), rows(4))
    assert worker.shapes == [(3, 3), (4, 3)]


def test_requests_that_wait_for_a_worker_are_joined_meanwhile() -> None:
    worker = Doubler(seconds=0.05)
    run_all(worker, Limits(max_batch_size=2, max_batch_time=0.0), *(rows(1) for _ in range(6)))
    assert [shape[0] for shape in worker.shapes] == [2, 2, 2]


@pytest.mark.parametrize("most", [0, 1])
def test_without_a_batch_size_each_request_runs_alone(most: int) -> None:
    """Its inputs need no first size then."""
    worker = Doubler()
    found = run_all(worker, Limits(max_batch_size=most), rows(2), rows(2), np.array(3), np.array(4))
    assert worker.shapes == [(2, 3), (2, 3), (), ()]
    assert [each["y"].sum() for each in found] == [2 * rows(2).sum()] * 2 + [6, 8]


def test_a_request_that_fails_does_not_fail_those_it_is_joined_with() -> None:
    arrays = [rows(2), -rows(1) - 1, rows(3)]
    good, bad, also = run_all(Doubler(), Limits(max_batch_size=8, max_batch_time=0.05), *arrays)
    assert np.array_equal(good["y"], 2 * arrays[0]) and np.array_equal(also["y"], 2 * arrays[2])
    assert isinstance(bad, Refused) and bad.status_code == 400 and str(bad) == "expected no negative number"


def test_a_full_queue_refuses_and_says_so() -> None:
    found = run_all(Doubler(seconds=0.05), Limits(max_queue=3), *(rows(1) for _ in range(5)))
    refused = [each for each in found if isinstance(each, Refused)]
    assert [each.status_code for each in refused] == [503, 503]
    assert str(refused[0]) == "queue full: 3 requests wait for a worker (max_queue 3)"


def test_a_call_that_takes_too_long_is_ended_and_its_request_told() -> None:
    worker = Doubler(seconds=30)
    (found,) = run_all(worker, Limits(timeout=0.05), rows(1))
    assert isinstance(found, Refused) and found.status_code == 504 and "(timeout)" in str(found)


@pytest.mark.parametrize("call", [1, 3])
def test_the_queue_is_empty_after_errors(call: int) -> None:
    """More errors than the queue is long: each of them leaves it."""

    async def run(check: Callable[[], Awaitable[Any]]) -> None:
        for _ in range(4):
            with pytest.raises(Refused, match="negative"):
                await check()

    async def main() -> None:
        batcher = batching.Batcher([Doubler()], Limits(max_queue=call, max_batch_size=call), metrics.Metrics("doubler", "2"))
        await run(lambda: batcher.run({"x": -rows(1) - 1}))

    asyncio.run(main())


def test_nothing_of_a_request_is_kept() -> None:
    async def main() -> None:
        batcher = batching.Batcher([Doubler()], Limits(), metrics.Metrics("doubler", "3"))
        await asyncio.gather(*(batcher.run({"x": rows(1)}) for _ in range(3)))
        await batcher.drain(1)
        await asyncio.sleep(0)
        assert not batcher._tasks and not batcher._open

    asyncio.run(main())


def test_rows_of_batches_are_counted_in_powers_of_two() -> None:
    of_model = metrics.Metrics("counted", "1")
    for count in (1, 2, 3, 1024, 1025):
        of_model.rows.observe(count)
    (family,) = metrics._families()[1].collect()
    found = {each.labels["le"]: each.value for each in family.samples if each.labels["model"] == "counted" and "le" in each.labels}
    assert found == {"1.0": 1, "2.0": 2, **{f"{float(1 << i)}": 3 for i in range(2, 10)}, "1024.0": 4, "+Inf": 5}
