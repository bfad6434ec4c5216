"""The onnx package's own backend tests: every case passes, or stands in onnx_refused.ini with the reason and is refused with one error.

A listed case that passes fails here until it is taken off the list, and so does one that gives another result than expected, unless the
reason says that results differ, or raises anything else than OnnxError. The package compares numbers of outputs, dtypes, shapes, and values
within the tolerances of each case.
"""

import functools
import unittest
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test import BackendTest

from relayc.frontend.onnx import OnnxError, backend
from relayc.tools.conformance import DIFFERING, LISTED_VERSION, REFUSED_FILE, newer_cases, refused_cases

Test = Callable[[unittest.TestCase], None]
DEVICE = "_cpu"
REFUSED = refused_cases()


class ValuesDiffer(AssertionError):
    """Outputs are of the expected number, types and shapes, and of other values.

    Attributes:
      pairs: (expected, found) of each.
    """

    def __init__(self, message: str, pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
        super().__init__(message)
        self.pairs = pairs


class ExactTest(BackendTest):
    """The package's tests, where sequences are of the expected length and compared element by element: the package takes a tensor in a
    sequence for a sequence of rows, which a scalar has not."""

    @classmethod
    def assert_similar_outputs(
        cls, ref_outputs: Sequence[Any], outputs: Sequence[Any], rtol: float, atol: float, model_dir: str | None = None
    ) -> None:
        expected, found = flat(ref_outputs), flat(outputs)
        try:
            super().assert_similar_outputs(expected, found, rtol, atol, model_dir)
        except AssertionError as error:
            if [(v.shape, v.dtype) for v in expected] == [(v.shape, v.dtype) for v in found]:
                raise ValuesDiffer(str(error), list(zip(expected, found, strict=True))) from error
            raise


def flat(values: Sequence[Any]) -> list[np.ndarray]:
    """Tensors, and of each sequence the length and its elements."""
    parts = [[np.array(len(v)), *v] if isinstance(v, list) else [v] for v in values]
    return [np.asarray(tensor) for part in parts for tensor in part]


def refuses(test: Test, name: str) -> Test:
    """The test of a case that is listed."""

    @functools.wraps(test)
    def check(self: unittest.TestCase) -> None:
        differs = REFUSED[name].removeprefix(DIFFERING) if REFUSED[name].startswith(DIFFERING) else None
        try:
            test(self)
        except (OnnxError, unittest.SkipTest):  # skipped is what is_compatible says no to
            if differs is not None:
                raise
            return
        except ValuesDiffer as error:
            if differs is None:
                raise
            for expected, found in error.pairs:
                differs_as_said(differs, expected, found)
            return
        pytest.fail(f"{name} passes now: take it off {REFUSED_FILE.name}")

    return check


def differs_as_said(reason: str, expected: np.ndarray, found: np.ndarray) -> None:
    """Checks an output that may have other values than a case expects. Another generator chooses between 0 and a value: where both choose
    the value it is the same, and neither choice is the only one. Else the difference is a rounding."""
    if reason != "numbers of another generator":
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        return
    both = (expected != 0) & (found != 0)
    np.testing.assert_allclose(found[both], expected[both], rtol=1e-6)
    assert found.size < 16 or 0.1 < np.mean(found != 0) < 0.9 or np.array_equal(found, expected)


def cpu_tests() -> dict[str, type[unittest.TestCase]]:
    """The classes of tests that BackendTest makes, without those of other devices and of operator sets that the list does not know, and
    without the nine networks, which models/test_light.py runs."""
    newer = newer_cases()
    classes = ExactTest(backend, __name__).test_cases
    del classes["OnnxBackendRealModelTest"]
    for tests in classes.values():
        for name in [name for name in vars(tests) if name.startswith("test_")]:
            case = name.removesuffix(DEVICE)
            if case == name or case in newer:
                delattr(tests, name)
            elif case in REFUSED:
                setattr(tests, name, refuses(getattr(tests, name), case))
    return classes


CLASSES = cpu_tests()
globals().update(CLASSES)


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch):
    """A folder of the test for what the package writes, else in the home of the user."""
    monkeypatch.setenv("ONNX_MODELS", str(tmp_path))


@pytest.mark.skipif(not onnx.__version__.startswith(LISTED_VERSION), reason=f"the list is of the cases of onnx {LISTED_VERSION}")
def test_every_listed_case_is_one_of_the_suite():
    names = {name.removesuffix(DEVICE) for tests in CLASSES.values() for name in vars(tests)}
    assert not REFUSED.keys() - names
