"""Global packed functions, and the number of threads."""

import ctypes
import threading

import numpy as np
import pytest
import tvm_ffi

from relayc import runtime


def test_a_registered_function_is_found_and_called():
    @runtime.register_func("relayc.test.add_one")
    def add_one(x):
        return x + 1

    assert add_one(1) == 2
    assert runtime.get_global_func("relayc.test.add_one")(41) == 42


def test_functions_of_others_are_registered_as_they_are():
    other = tvm_ffi.convert(lambda x: type(x).__name__)
    assert runtime.register_func("relayc.test.other", other) is other
    assert runtime.get_global_func("relayc.test.other")(np.arange(3)) == "Tensor"


def test_tensors_arrive_without_a_copy():
    seen = []
    runtime.register_func("relayc.test.look", lambda x: seen.append(np.from_dlpack(x).copy()))
    runtime.get_global_func("relayc.test.look")(np.arange(3))
    np.testing.assert_array_equal(seen[0], np.arange(3))


def test_a_taken_name_is_an_error_unless_overridden():
    runtime.register_func("relayc.test.taken", lambda: 1)
    with pytest.raises(ValueError, match=r"'relayc.test.taken': expected a free name"):
        runtime.register_func("relayc.test.taken", lambda: 2)
    runtime.register_func("relayc.test.taken", lambda: 3, override=True)
    assert runtime.get_global_func("relayc.test.taken")() == 3


def test_a_missing_function_is_an_error_or_none():
    with pytest.raises(ValueError, match=r"'relayc.test.nowhere'"):
        runtime.get_global_func("relayc.test.nowhere")
    assert runtime.get_global_func("relayc.test.nowhere", allow_missing=True) is None


def test_errors_of_registered_functions_keep_their_type():
    @runtime.register_func("relayc.test.fail")
    def fail():
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        runtime.get_global_func("relayc.test.fail")()


@pytest.fixture
def threads_restored():
    before = runtime.num_threads()
    yield
    runtime.set_num_threads(before)


@pytest.mark.usefixtures("threads_restored")
def test_the_number_of_threads_holds_in_every_thread(module, x):
    from relayc.runtime import threads

    found = []

    def work():
        module["add"](x, x)
        found.append(threads._runtime().omp_get_max_threads())

    for count in (1, 3):
        runtime.set_num_threads(count)
        assert runtime.num_threads() == count
        work()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert found[-2:] == [count, count]


def test_less_than_one_thread_is_an_error():
    number, limits = "a number of threads", "1 to 4096 threads"
    counts = [(0, limits), (10**12, limits), (float("nan"), number), ("2", number)]
    for wrong, error in counts:
        with pytest.raises((ValueError, TypeError), match=f"expected {error}, found {wrong!r}"):
            runtime.set_num_threads(wrong)


def test_the_openmp_runtime_is_a_library_that_can_be_loaded():
    assert ctypes.CDLL(runtime.openmp_library()).omp_get_max_threads() >= 1
