"""Sorts on GPUs, emulated with the check for races, against numpy's stable sort: in a block, by tiles that are merged, by selection."""

import ml_dtypes
import numpy as np
import pytest
from fake_cuda import fake_cuda
from support import program
from symbolic_ops import symbolic_program, tensor

from relayc.dialects.relay import build
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.targets.gpu.sorting.lines import Shape
from relayc.pipelines.targets.gpu.sorting.selection import most_count
from relayc.symbolic import Range

EMULATED = Target("cuda", arch="sm_80", emulate=True, num_threads=2)
SMALL = {"threads": 64, "items": 3}
"""Blocks that sort 192 items, so that lines of some thousands have many tiles."""
LENGTHS = (0, 1, 2, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 191, 192, 193, 1000, 1025, 4097)


def compiled(fed, **numbers):
    config = {"gpu.check_races": True, **{f"schedule.sort.{name}": value for name, value in numbers.items()}}
    with PassContext(config=config):
        module = compile(fed, target=EMULATED)
    assert {kernel.schedule.split()[0] for kernel in module.kernels} == {"sort"}
    return module


def order(x, axis, ascending=True):
    """Indices that sort x, lower ones first among equals, NaN as the largest."""
    if ascending:
        return np.argsort(x, axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def floats(shape, dtype="float32", seed=0):
    """Few different values, both zeros, infinities and NaN among them."""
    some = np.array([0.0, -0.0, 1.5, -1.5, 1e-6, -3, 7, np.inf, -np.inf, np.nan, 2, 2.25])
    return np.random.default_rng(seed).choice(some, shape).astype(dtype)


def same_bits(found, expected):
    np.testing.assert_array_equal(found.view(f"u{found.itemsize}"), expected.view(f"u{expected.itemsize}"))


def test_symbolic_lengths():
    """One program for all lengths, along memory and across: what the elements are decides on words of their own for places."""

    def body(a, b):
        return [build("argsort", a, axis=1, is_ascend=False), build("sort", b, axis=0, is_ascend=False)]

    ranges = {"m": Range(0), "n": Range(0)}
    module = compiled(symbolic_program(body, [tensor("float64[m, n]"), tensor("int32[n, m]")], ranges), **SMALL)
    for n in LENGTHS:
        for m in (0, 1, 3) if n < 100 else (2,):
            a = floats((m, n), "float64", n)
            b = np.random.default_rng(n).integers(-2, 2, (n, m)).astype("int32") * np.int32(2**30)
            places, turned = module["main"](a, b)
            np.testing.assert_array_equal(places, order(a, 1, ascending=False))
            np.testing.assert_array_equal(turned, np.sort(b, 0)[::-1])


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_integers_come_back_from_their_keys(dtype):
    """They are as wide as the word of an item, or less."""
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, info.max, 20, dtype, endpoint=True)
    x[:3] = info.max, info.min, 0
    fed = program(lambda a: [build("sort", a, axis=0)], [x])
    np.testing.assert_array_equal(compiled(fed, **SMALL)["main"](x), np.sort(x))
    made = compile(fed, target=EMULATED, stop_after="tir")
    assert made.module.operation.verify()


def test_launches_at_a_size():
    """What the host launches: one block for a line, or tiles and as many merges as make one run of them."""
    with fake_cuda() as driver, PassContext(config={f"schedule.sort.{name}": value for name, value in SMALL.items()}):
        body = lambda a: [build("argsort", a, axis=0)]  # noqa: E731 (an argument, not a definition)
        module = compile(symbolic_program(body, [tensor("float16[n]")], {"n": Range(0)}), target=Target("cuda", arch="sm_80"))
        # Up to 16 * 3 elements are of 16 threads, for which a warp is launched.
        for n, launches, threads in ((0, 0, 0), (48, 1, 32), (49, 1, 64), (192, 1, 64), (193, 2, 64), (1000, 4, 64), (1000, 4, 64)):
            a, before = floats(n, "float16", n), len(driver.launches)
            np.testing.assert_array_equal(module["main"](a), order(a, 0))
            assert len(driver.launches) - before == launches
            assert all(launch.block[0] == threads for launch in driver.launches[before:])


def test_selection():
    """Few of many, of parts of lines that blocks share, and of lines shorter than what a block sorts. Half a block is for items to come."""
    assert [most_count(Shape(64, items)) for items in (1, 2, 8)] == [0, 64, 256]
    body = lambda a: build("topk", a, k=7, axis=1, is_ascend=True)  # noqa: E731 (an argument, not a definition)
    module = compiled(symbolic_program(body, [tensor("float32[m, n]")], {"m": Range(0), "n": Range(7)}), parts=3, **SMALL)
    for shape in ((2, 7), (0, 300), (3, 192), (1, 193), (2, 1000), (1, 4097)):
        a = floats(shape, seed=shape[1])
        # The orders of most and of least work.
        for x in (a, np.sort(a, 1), np.flip(np.sort(a, 1), 1).copy()):
            values, places = module["main"](x)
            expected = order(x, 1)[:, :7]
            np.testing.assert_array_equal(places, expected)
            same_bits(values, np.take_along_axis(x, expected, 1))


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "uint64"])
def test_element_types(dtype):
    """Keys and places in one word or in two, lines across memory, several of them in a block; a long one."""
    is_float = "float" in dtype
    rng = np.random.default_rng(0)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    make = lambda shape: floats(shape, kind) if is_float else rng.integers(0, 256, shape).astype("uint64").astype(kind)  # noqa: E731
    short, long = make((5, 20, 3)), make((1, 500))
    module = compiled(
        program(
            lambda a, b: [
                build("argsort", a, axis=1, dtype="int64"),
                *build("topk", a, k=3, axis=0),
                build("argsort", b, axis=1, is_ascend=False),
            ],
            [short, long],
        ),
        **SMALL,
    )
    wide = (lambda x: x.astype("float64")) if is_float else (lambda x: x)
    along, values, places, turned = module["main"](short, long)
    np.testing.assert_array_equal(along, order(wide(short), 1))
    np.testing.assert_array_equal(places, order(wide(short), 0, ascending=False)[:3])
    same_bits(values, np.take_along_axis(short, places.astype("int64"), 0))
    np.testing.assert_array_equal(turned, order(wide(long), 1, ascending=False))


def test_rows():
    """Rows that differ late, and equal ones, which keep their order; of no columns and of no rows."""
    body = lambda a: [build("argsort_rows", a)]  # noqa: E731 (an argument, not a definition)
    ranges = {"m": Range(0), "n": Range(0)}
    module = compiled(symbolic_program(body, [tensor("float32[n, m]")], ranges), threads=64)
    for shape in ((0, 3), (3, 0), (1, 4), (63, 2), (64, 3), (65, 3), (500, 4)):
        x = np.random.default_rng(shape[0]).integers(0, 3, shape).astype("float32")
        x[:, :-2] = 1
        expected = np.lexsort(x.T[::-1]) if shape[1] else np.arange(shape[0])
        np.testing.assert_array_equal(module["main"](x), expected)
