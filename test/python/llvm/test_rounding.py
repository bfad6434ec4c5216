"""Floats that are rounded, limited and converted to integers, against numpy: halves, numbers around the limits, and large ones."""

import numpy as np
import pytest

from relayc import Program, TensorType
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile

NUMBERS = np.concatenate(
    [
        np.arange(-300, 300, 0.5, np.float32),
        np.random.default_rng(0).uniform(-300, 300, 1031).astype(np.float32),
        np.array([0.49999997, 8388607.5, 4194303.5, -4194304.5, -1e9, 2e9, 3e38, -np.inf, np.inf, -0.0], np.float32),
    ]
)


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(
    ("zero", "low", "high", "dtype", "is_one"),
    [
        (0, 0, 255, "uint8", True),
        (137, 0, 255, "uint8", True),
        (-7, -128, 127, "int8", True),
        (0, -128, 127, "int32", True),
        (3, -4194304, 4194304, "int32", True),
        (3, -4194305, 4194305, "int32", False),
        (0, -0.5, 10.5, "int32", False),
        (0.5, 0, 255, "uint8", False),
        (137, None, 255, "int32", False),
        (137, 0, None, "int32", False),
        (0, 0, 255, "int64", False),
    ],
)
def test_rounded_numbers_become_integers(mcpu, zero, low, high, dtype, is_one):
    """One instruction rounds and converts where all numbers are whole, and small enough to be exact."""
    numbers = NUMBERS[np.abs(NUMBERS) <= 1e9] if None in (low, high) else NUMBERS
    made = Program()

    @made.function(x=TensorType(numbers.shape, "float32"))
    def main(x):
        steps = made.apply("round", x)
        limited = made.apply("clip", steps + float(zero) if zero else steps, a_min=low, a_max=high)
        return made.apply("cast", limited, dtype=dtype)

    target = Target("cpu", mcpu=mcpu, num_threads=1)
    module = compile(made.module(), target=target, cache=False, keep_ir=True)
    assert ("llvm.lrint" in module.ir["llvm"]) is is_one
    if target.is_host:
        expected = np.clip(np.round(numbers) + np.float32(zero), low, high).astype(dtype)
        np.testing.assert_array_equal(np.asarray(module["main"](numbers)), expected)
