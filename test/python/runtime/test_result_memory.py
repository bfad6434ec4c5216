"""Memory of results: used again when nobody holds them, and never before."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import relayc
from relayc import TensorType
from relayc.runtime.artifact import ALIGNMENT, LARGE_PAGE, aligned_array
from relayc.runtime.device_arenas import DeviceArenas
from relayc.runtime.free_memory import MOST_SPARE_BYTES, FreeMemory
from relayc.runtime.result_memory import LEAST_BYTES, ResultMemory
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


def test_results_lie_beside_each_other_in_large_pages():
    """Sixteen of 256 KiB need two pages where four MiB begin at a page; those beyond two MiB have pages of their own."""
    results = [made(ResultMemory(), MIB // 4) for _ in range(64)]
    pages = {array.ctypes.data // LARGE_PAGE for array in results}
    assert 8 <= len(pages) <= 10
    for number, array in enumerate(results):
        array[...] = number
    assert all((array == number).all() for number, array in enumerate(results))
    for num_bytes in (2 * MIB + 4, 5 * MIB):
        assert made(ResultMemory(), num_bytes).ctypes.data % LARGE_PAGE == 0


def test_results_of_one_large_page_lie_beside_each_other():
    results = [made(ResultMemory(), LARGE_PAGE) for _ in range(3)]
    first, second, third = (array.ctypes.data for array in results)
    assert LARGE_PAGE in (second - first, third - second)  # four MiB are divided, whatever was left of those before


@pytest.mark.parametrize("num_bytes", [LEAST_BYTES + 4, 2 * MIB - 4, 2 * MIB])
def test_results_of_sizes_that_end_between_lines_have_memory_of_their_own(num_bytes):
    results = [made(ResultMemory(), num_bytes) for _ in range(40)]
    for number, array in enumerate(results):
        assert array.nbytes == num_bytes and array.ctypes.data % ALIGNMENT == 0
        array[...] = number
    assert all((array == number).all() for number, array in enumerate(results))


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


def test_memory_that_is_free():
    """Last in, first out; for more bytes than any has had, twice as much as the last, or 256 MiB more."""
    free = FreeMemory()
    assert free.take(10) == (None, 10)
    free.give("a", 100)
    free.give("b", 50)
    assert free.take(50) == ("b", 50) and free.take(100) == ("a", 100) and len(free) == 0
    for kept, wanted, room in ((50, 51, 100), (50, 100, 100), (50, 101, 101), (0, 5, 5), (MOST_SPARE_BYTES, 1 + MOST_SPARE_BYTES, 2 << 28)):
        free.give("c", kept)
        assert free.take(wanted) == (None, room) and len(free) == 0  # what was too small is let go
    free.give("d", 3 << 28)
    assert free.take(1 + (3 << 28)) == (None, 4 << 28)


def test_memory_that_was_not_needed_goes(monkeypatch):
    """The oldest piece ten seconds after it came, when another one comes; never the only one."""
    now = 0.0
    monkeypatch.setattr("relayc.runtime.free_memory.time.monotonic", lambda: now)
    free = FreeMemory(2)
    free.give("a", 1)
    now = 100.0
    free.take(1)
    free.give("a", 1)
    now = 110.0
    free.give("b", 1)
    assert len(free) == 2
    free.give("c", 1)  # as many as are kept
    assert len(free) == 2
    free.take(1)
    now = 110.001
    free.give("b", 1)
    assert len(free) == 1 and free.take(1) == ("b", 1)
    free = FreeMemory()
    for piece in "abc":
        free.give(piece, 1)
    now = 200.0
    free.give("d", 1)  # one at a time
    assert len(free) == 3 and [free.take(1)[0] for _ in range(3)] == ["d", "c", "b"]


def test_which_results_have_memory_of_their_own():
    """From 128 KiB to 256 MiB."""
    for num_bytes, kept in ((LEAST_BYTES - 1, 0), (LEAST_BYTES, 1), (1 << 28, 1), ((1 << 28) + 1, 0)):
        memory = ResultMemory()
        assert memory.array(((num_bytes,), np.dtype(np.uint8), num_bytes)).nbytes == num_bytes
        assert len(memory._free) == kept


class Tensors:
    """A kind of device whose tensors are arrays."""

    def __init__(self):
        self.copies = 0

    def empty(self, index, shape, dtype):
        return np.empty(shape, dtype)

    def from_numpy(self, array, tensor):
        self.copies += 1
        tensor[...] = array


def test_arenas_of_devices():
    """By device and stream; one that is too small is let go. Parameters are copied to a device once, until there are others."""
    kind = Tensors()
    arenas = DeviceArenas(kind, np.array([1, 2], np.uint8))
    first = arenas.acquire(0, 5, 64)
    assert first.nbytes == 64
    arenas.release(0, 5, first)
    assert arenas.acquire(1, 5, 64) is not first and arenas.acquire(0, 6, 64) is not first
    assert arenas.acquire(0, 5, 64) is first and arenas.acquire(0, 5, 64) is not first
    arenas.release(0, 5, first)
    assert arenas.acquire(0, 5, 65).nbytes == 65 and arenas.acquire(0, 5, 8) is not first
    params = arenas.params(0)
    assert arenas.params(0) is params and arenas.params(1) is not params and kind.copies == 2 and params.tolist() == [1, 2]
    before = arenas.version
    arenas.set_params(np.array([3], np.uint8))
    assert arenas.version != before and arenas.params(0).tolist() == [3] and kind.copies == 3
