"""Values of the host in a call: their numbers, whose they are, and what is no such value."""

import threading
from collections.abc import Callable

import numpy as np
import pytest

from relayc.runtime import sequences, strings
from relayc.runtime.artifact import TensorSpec
from relayc.runtime.host import ABSENT, HostValues, ProgramStrings, current
from relayc.runtime.tensor import as_array, to_tensor


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


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        ([np.zeros(2, "float32"), np.zeros((2, 3), "int32")], "seq(float32)", r"at position 1 found int32\[2, 3\]"),
        ([1, "a"], "seq(string)", r"at position 0 found int64\[\]"),
        (np.zeros(2, "float32"), "seq(float32)", "found a value of type ndarray"),
        ([(1, 2.0)], "map(int64, float32)", "found a value of type list"),
        ({1: 2.0, "a": 3.0}, "map(int64, float32)", "found a key 'a' of type str"),
        ({1: True}, "map(int64, float32)", "found a value True of type bool"),
        ({1 << 63: 2.0}, "map(int64, float32)", "found a key that int64 does not have"),
    ],
)
def test_what_is_no_object_is_refused(value: object, dtype: str, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{message}$"):
        HostValues().taken(value, TensorSpec("x", (), dtype))


def test_strings_in_order() -> None:
    texts = np.array([["b", "", "abc"], ["ab", "b", "B"]])
    found = np.empty(texts.shape, np.int64)
    with HostValues() as values:
        strings.ranks(values.numbers(texts), found)
    np.testing.assert_array_equal(found, np.unique(texts, return_inverse=True)[1].reshape(2, 3))


def of(function: Callable[..., None], *arguments: object, shape: tuple[int, ...] = (), dtype: str = "int64") -> np.ndarray:
    """What a packed function writes, for arrays, numbers and texts."""
    given = [np.frombuffer(a.encode(), np.uint8) if isinstance(a, str) else np.asarray(a) for a in arguments]
    out = to_tensor(np.zeros(shape, dtype))
    function(*(to_tensor(array.copy()) for array in given), out)
    return as_array(out)


def test_sequences_are_parts_of_tensors_and_tensors_again() -> None:
    """By sizes, by one size for all, and by slices; along each axis."""
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    none = np.zeros((0, 0), np.int64)
    with HostValues() as values:
        for axis, sizes, step in ((0, [0, 2], 1), (1, [1, 0, 2], 2), (2, [3, 1], 3)):
            for parts, expected in (
                (np.array(sizes), np.split(data, np.cumsum(sizes)[:-1], axis)),
                (np.array(step), np.split(data, range(step, data.shape[axis], step), axis)),
                (none, list(np.moveaxis(data, axis, 0))),
            ):
                found = of(sequences.split, data, parts, axis, "here")
                items = list(values.objects[int(found)])
                assert len(items) == len(expected) and all(map(np.array_equal, items, expected))
                joined = of(sequences.concat_shape, found, axis, int(parts is none), "here", shape=(3,))
                assert joined.tolist() == [2, 3, 4]
                joined = of(sequences.concat, found, axis, int(parts is none), "here", shape=(2, 3, 4), dtype="float32")
                np.testing.assert_array_equal(joined, data)


def test_what_sequences_and_optional_values_are_not() -> None:
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    with HostValues() as values:
        two = of(sequences.construct, data, data[:, 0])
        empty, absent = of(sequences.construct), np.array(ABSENT)
        for message, call in (
            (r"split: expected sizes that add up to 3, found \[1, 1\]", lambda: of(sequences.split, data, np.array([1, 1]), 0, "here")),
            (r"split: expected sizes that add up to 3, found \[4, -1\]", lambda: of(sequences.split, data, np.array([4, -1]), 0, "here")),
            ("split: expected a size of 1 or more, found 0", lambda: of(sequences.split, data, 0, 0, "here")),
            ("expected a sequence of elements, found an empty one", lambda: of(sequences.concat_shape, empty, 0, 0, "here", shape=(2,))),
            (
                r"expected elements of rank 2 and shapes that differ in axis 0 alone, found \[3, 2\] and \[3\]",
                lambda: of(sequences.concat_shape, two, 0, 0, "here", shape=(2,)),
            ),
            (
                r"expected elements of rank 2 and one shape, found \[3, 2\] and \[3\]",
                lambda: of(sequences.concat_shape, two, 0, 1, "here", shape=(3,)),
            ),
            (r"element: expected a tensor of rank 1, found one of shape \[3, 2\]", lambda: of(sequences.shape, two, 0, "here", shape=(1,))),
            (r"element: expected a tensor of shape \[2, 2\], found \[3, 2\]", lambda: of(sequences.at, two, -2, "here", shape=(2, 2))),
            (r"position in a sequence of 2 elements: expected a value in \[-2, 1\], found 2", lambda: of(sequences.erase, two, 2, "here")),
            (r"position in a sequence of 0 elements: expected none, found 0", lambda: of(sequences.erase, empty, 0, "here")),
            (
                r"position in a sequence of 0 elements: expected a value in \[0, 0\], found 1",
                lambda: of(sequences.insert, empty, data, np.array(1), "here"),
            ),
            ("expected an optional value that is there, found none", lambda: of(sequences.present, absent, "here")),
            ("expected an optional value that is there, found none", lambda: of(sequences.get, absent, "here")),
        ):
            with pytest.raises((ValueError, IndexError), match=f"^here: {message}$"):
                call()
        some = of(sequences.some, data)
        assert of(sequences.present, some, "here") == some and values.objects[int(some)] is not data
        np.testing.assert_array_equal(of(sequences.get, some, "here", shape=(3, 2), dtype="float32"), data)
