"""Values of the host in a call: their numbers, whose they are, and what is no such value."""

import threading

import numpy as np
import pytest

from relayc.runtime.artifact import TensorSpec
from relayc.runtime.host import HostValues, ProgramStrings, current


def test_a_string_has_one_number() -> None:
    values = HostValues(ProgramStrings(("", "the", "program's")))
    numbers = values.numbers(np.array([["a", "the"], ["", "a"]]))
    assert numbers.dtype == np.int64
    assert numbers.tolist() == [[3, 1], [0, 3]]
    assert values.texts(numbers).tolist() == [["a", "the"], ["", "a"]]


def test_values_are_of_the_thread_and_the_innermost_call() -> None:
    seen: list[object] = []

    def elsewhere() -> None:
        with pytest.raises(RuntimeError, match="expected the call of a module's function"):
            current()
        seen.append(True)

    with HostValues() as outer:
        with HostValues() as inner:
            assert current() is inner
        assert current() is outer
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert seen == [True]


@pytest.mark.parametrize("value", [np.array([1, 2]), np.array(["a", 1], object)])
def test_what_is_no_string_is_refused(value: np.ndarray) -> None:
    with pytest.raises(TypeError, match=r"found"):
        HostValues().taken(value, TensorSpec("x", (2,), "string"))
