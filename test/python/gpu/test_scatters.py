"""Updates of distinct elements on GPUs, emulated: a thread for each, and the results of one after the other."""

import re

import numpy as np
from support import program
from symbolic_ops import symbolic_program, tensor

from relayc.dialects.relay import build
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.symbolic import Range

EMULATED = Target("cuda", arch="sm_80", emulate=True, num_threads=2)


def test_elements_and_slices():
    rng = np.random.default_rng(0)
    data, updates = (rng.standard_normal((6, 40)).astype("float32") for _ in range(2))
    places = np.argsort(rng.standard_normal((6, 40)), 0)
    slices, rows = rng.standard_normal((2, 40)).astype("float32"), np.array([[4, 1]])

    def body(data, places, updates, rows, slices):
        return [
            build("scatter_elements", data, places, updates, axis=0, distinct=True),
            build("scatter_nd", data, rows, slices, distinct=True),
            build("scatter_nd", data, rows, slices, mode="add"),
        ]

    arrays = [data, places, updates, rows, slices]
    tir = str(compile(program(body, arrays), target=EMULATED, stop_after="tir").module)
    # Each copies data and updates the copy; sums one after the other.
    threads = [int(n) for n in re.findall(r"threads\(.*?\) in \(%\w+ = %c(\d+)", tir)]
    assert sorted(threads) == [1] + [256] * 5
    elements, replaced, added = compile(program(body, arrays), target=EMULATED)["main"](*arrays)
    expected = data.copy()
    np.put_along_axis(expected, places, updates, 0)
    np.testing.assert_array_equal(elements, expected)
    expected = data.copy()
    expected[rows[0]] = slices
    np.testing.assert_array_equal(replaced, expected)
    expected = data.copy()
    expected[rows[0]] += slices
    np.testing.assert_array_equal(added, expected)


def test_symbolic_sizes():
    body = lambda *operands: [build("scatter_elements", *operands, distinct=True)]  # noqa: E731 (an argument, not a definition)
    operands = [tensor("float32[n]"), tensor("int64[n]"), tensor("float32[n]")]
    module = compile(symbolic_program(body, operands, {"n": Range(0)}), target=EMULATED)
    for n in (0, 1, 300):
        order = np.random.default_rng(n).permutation(n)
        found = module["main"](np.zeros(n, "float32"), order, np.arange(n, dtype="float32"))
        np.testing.assert_array_equal(found, np.argsort(order).astype("float32"))
