"""Memory of results: used again when nobody holds them, and never before."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import relayc
from relayc import TensorType
from relayc.runtime.artifact import ALIGNMENT, aligned_array
from relayc.runtime.result_memory import ResultMemory
from relayc.runtime.tensor import to_tensor

MIB = 1 << 20


def made(memory: ResultMemory, num_bytes: int) -> np.ndarray:
    return memory.array(((num_bytes // 4,), np.dtype(np.float32), num_bytes))


def test_a_result_that_nobody_holds_gives_its_memory_to_the_next():
    memory = ResultMemory()
    first = memory.array(((2, MIB // 8), np.dtype(np.float32), MIB))
    assert first.shape == (2, MIB // 8) and first.dtype == np.float32 and first.flags.writeable and first.flags.c_contiguous
    address = first.ctypes.data
    assert address % ALIGNMENT == 0
    del first
    second = made(memory, MIB)
    assert second.ctypes.data == address
    assert made(memory, MIB).ctypes.data != address


@pytest.mark.parametrize(
    "share", [lambda a: a[7:], lambda a: a.view(np.uint8).reshape(4, -1)[1], to_tensor, np.from_dlpack, memoryview, lambda a: a.ctypes]
)
def test_what_shares_the_memory_of_a_result_holds_it(share):
    memory = ResultMemory()
    first = made(memory, MIB)
    address, shared = first.ctypes.data, share(first)
    del first
    assert made(memory, MIB).ctypes.data != address
    del shared
    kept = [made(memory, MIB) for _ in range(2)]
    assert address in [array.ctypes.data for array in kept]


@pytest.mark.parametrize("num_bytes", [0, 4, 1 << 29])
def test_small_and_very_large_results_are_the_system_s(num_bytes):
    memory = ResultMemory()
    assert made(memory, num_bytes).nbytes == num_bytes
    assert not memory._free


@pytest.mark.parametrize("num_bytes", [0, 1, 63, 64, 65, 4031, 4032, 4095, 4096, 4097, 4160])
def test_arrays_have_aligned_memory_of_their_own(num_bytes):
    # Many at once: the memory under each begins at another place within ALIGNMENT.
    arrays = [aligned_array((num_bytes,), np.dtype(np.uint8), num_bytes) for _ in range(40)]
    for i, array in enumerate(arrays):
        assert array.ctypes.data % ALIGNMENT == 0 and array.flags.writeable and array.flags.c_contiguous
        array[...] = i
    views = [array[num_bytes // 2 :] for array in arrays]
    del arrays, array
    assert all((view == i).all() for i, view in enumerate(views))


def test_results_that_grow_get_new_memory_seldom():
    memory, addresses = ResultMemory(), set()
    held = made(memory, MIB)
    for step in range(200):  # as a cache does: the last one is held while the next one is made
        held = made(memory, MIB + 4096 * step)
        addresses.add(held.ctypes.data)
    assert len(addresses) <= 6


def test_the_memory_of_many_results_goes(monkeypatch):
    now = 100.0
    monkeypatch.setattr("relayc.runtime.free_memory.time.monotonic", lambda: now)
    memory = ResultMemory()
    held = [made(memory, MIB) for _ in range(20)]
    del held
    assert len(memory._free) == 4
    now = 200.0
    for _ in range(5):
        made(memory, MIB)
    assert len(memory._free) == 1


def test_results_of_calls_from_several_threads_stay_as_they_are():
    program = relayc.Program()

    @program.function(x=TensorType(("n",), "float32"))
    def main(x):
        return x * 2.0, x + 1.0

    module = relayc.compile(program)

    def work(seed: int) -> bool:
        rng, held = np.random.default_rng(seed), []
        for turn in range(40):
            x = np.full(int(rng.integers(40_000, 80_000)), seed * 100 + turn, np.float32)
            held.append((x[0], *module["main"](x)))
            if turn % 3 == 0:
                held.pop(int(rng.integers(len(held))))
        return all((twice == 2 * x).all() and (more == x + 1).all() for x, twice, more in held)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_a_caller_may_take_an_array_for_a_result(module):
    made = module["main"].result(0, ((2, 3), np.dtype(np.float32), 24))
    assert made.shape == (2, 3) and made.dtype == np.float32 and made.ctypes.data % ALIGNMENT == 0
