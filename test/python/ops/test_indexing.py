"""Reading and writing at computed indices, against numpy and ONNX Runtime."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import onnx_run, values
from support import Const, program, run

import relayc
from relayc.dialects.relay import RelayError, build
from relayc.pipelines.driver.compile import compile

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "bool")


@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    chosen=st.lists(st.integers(1, 4), max_size=3),
    axis=st.integers(0, 3),
    seed=st.integers(0, 99),
)
@settings(max_examples=14, deadline=None, derandomize=True)
def test_take_of_any_shape(shape, chosen, axis, seed):
    axis %= len(shape)
    x = values(shape, seed=seed)
    indices = np.random.default_rng(seed).integers(-shape[axis], shape[axis], chosen)
    np.testing.assert_array_equal(run("take", x, indices, axis=axis, mode="fast"), np.take(x, indices, axis))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index_dtype", ["int32", "int64", "uint8"])
def test_take_of_dtypes(dtype, index_dtype):
    x = values((10, 33), dtype, limit=None)
    indices = np.array([[3, 0], [9, 3]], index_dtype)
    found = run("take", x, indices, axis=0)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x[indices.astype(int)])


def test_take_modes_out_of_range():
    x = np.arange(5, dtype=np.float32)
    indices = np.array([-9, -1, 4, 5, 12])
    np.testing.assert_array_equal(run("take", x, indices, axis=0), np.take(x, indices, mode="clip"))
    np.testing.assert_array_equal(run("take", x, indices, axis=0, mode="fast"), [0, 4, 4, 4, 4])
    np.testing.assert_array_equal(run("take", x, indices, axis=0, mode="wrap"), x[indices % 5])


def test_take_without_axis_flattens():
    x, indices = values((3, 4)), np.array([[0, 11], [5, 7]])
    np.testing.assert_array_equal(run("take", x, indices), x.ravel()[indices])


def test_take_with_batch_dims():
    x = values((3, 2, 5, 4))
    indices = np.random.default_rng(0).integers(0, 5, (3, 6))
    expected = np.stack([np.take(x[b], indices[b], 1) for b in range(3)])
    np.testing.assert_array_equal(run("take", x, indices, axis=2, batch_dims=1), expected)


@pytest.mark.parametrize("index", [0, 2, -1])
@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_take_at_a_constant(index, mode):
    x = values((4, 3, 5))
    np.testing.assert_array_equal(run("take", x, Const(np.array(index)), axis=1, mode=mode), np.take(x, index, 1, mode=mode))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_gather(axis):
    x = values((4, 5, 6))
    shape = [3, 4, 5]
    indices = np.random.default_rng(1).integers(-x.shape[axis], x.shape[axis], shape)
    np.testing.assert_array_equal(run("gather", x, indices, axis=axis), onnx_run("GatherElements", x, indices, axis=axis))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("columns", [(), (4,), (2, 3)])
def test_gather_nd(depth, columns):
    x = values((3, 4, 5))
    indices = np.stack([np.random.default_rng(i).integers(-n, n, columns) for i, n in enumerate(x.shape[:depth])])
    np.testing.assert_array_equal(run("gather_nd", x, indices), onnx_run("GatherND", x, np.moveaxis(indices, 0, -1)))


def test_gather_nd_with_batch_dims():
    x = values((3, 4, 5))
    indices = np.random.default_rng(2).integers(0, 4, (1, 3, 2))
    np.testing.assert_array_equal(
        run("gather_nd", x, indices, batch_dims=1), onnx_run("GatherND", x, np.moveaxis(indices, 0, -1), batch_dims=1)
    )


def unique_indices(shape: tuple[int, ...], axis: int, size: int) -> np.ndarray:
    """Indices of which none repeats along `axis`, as replacing needs them."""
    keys = np.random.default_rng(3).random([size if i == axis else n for i, n in enumerate(shape)])
    return np.take(np.argsort(keys, axis), range(shape[axis]), axis) - size // 2


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_scatter_elements_replaces(axis):
    x, shape = values((4, 5, 6)), (3, 4, 5)
    indices, updates = unique_indices(shape, axis, x.shape[axis]), values(shape, seed=1)
    np.testing.assert_array_equal(
        run("scatter_elements", x, indices, updates, axis=axis), onnx_run("ScatterElements", x, indices, updates, axis=axis)
    )


@pytest.mark.parametrize("reduction", ["add", "mul", "min", "max"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_scatter_elements_combines_repeated_indices(reduction, dtype):
    x, updates = values((5, 4), dtype), values((7, 4), dtype, seed=1)
    indices = np.random.default_rng(4).integers(-5, 5, (7, 4))
    found = run("scatter_elements", x, indices, updates, axis=0, reduction=reduction)
    np.testing.assert_allclose(found, onnx_run("ScatterElements", x, indices, updates, axis=0, reduction=reduction), rtol=1e-5)


def test_scatter_elements_mean_includes_the_data():
    x = np.array([2, 4, 6], np.float32)
    found = run("scatter_elements", x, np.array([0, 0, 2]), np.array([4, 6, 8], np.float32), reduction="mean")
    np.testing.assert_array_equal(found, [4, 4, 7])


@pytest.mark.parametrize(("dtype", "first", "added"), [("int32", -7, -4), ("uint8", 200, 41)])
def test_scatter_elements_mean_of_integers_drops_the_fraction(dtype, first, added):
    x, updates = np.array([first, 4, 5], dtype), np.array([added, 6, 8], dtype)
    found = run("scatter_elements", x, np.array([0, 0, 2]), updates, reduction="mean")
    np.testing.assert_array_equal(found, [int((first + added + 6) / 3), 4, 6])


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("mode", ["update", "add", "mul", "min", "max"])
def test_scatter_nd(depth, mode):
    x = values((4, 5, 6))
    cells = np.random.default_rng(5).permutation(int(np.prod(x.shape[:depth])))[:3]
    indices = np.stack(np.unravel_index(cells, x.shape[:depth]))
    updates = values((3, *x.shape[depth:]), seed=1)
    reduction = {"update": "none"}.get(mode, mode)
    expected = onnx_run("ScatterND", x, np.ascontiguousarray(indices.T), updates, reduction=reduction)
    np.testing.assert_allclose(run("scatter_nd", x, indices, updates, mode=mode), expected, rtol=1e-6)


def test_scatter_at_indices_that_break_the_promise_stays_in_the_tensor():
    x = values((3,))
    found = run("scatter_elements", x, np.array([-9, 9]), np.array([1, 2], np.float32), in_bounds=True)
    np.testing.assert_array_equal(found, [1, x[1], 2])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_an_index_out_of_range_is_an_error_where_no_mode_says_what_it_is(dtype):
    """Limits of the index types too, which do not come round to be in range."""
    x, limits = values((5, 3)), np.iinfo(dtype)
    for bad in {limits.max, 5, *([-6, limits.min] if limits.min else [])}:
        indices = np.array([4, bad, 0], dtype)
        with pytest.raises(
            ValueError,
            match=rf'main: "test": index .* into axis 0 of tensor<5x3xf32>: expected at {"least -5" if bad < 0 else "(most 4|least)"}',
        ):
            run("take", x, indices, axis=0, mode="raise")
    good = np.array([0, 4, *([-5, -1] if limits.min else [])], dtype)
    np.testing.assert_array_equal(run("take", x, good, axis=0, mode="raise"), x[good])


def test_scatter_leaves_its_input_alone():
    x, at, updates = values((3,)), np.array([1]), np.array([5], np.float32)
    before = x.copy()
    found = compile(program(lambda *v: [build("scatter_elements", *v)], [x, at, updates]))["main"](x, at, updates)
    np.testing.assert_array_equal(found, [before[0], 5, before[2]])
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("dtype", "on", "off"), [("float32", -2.5, 0.3), ("int64", 2**40, -7), ("bool", False, True)])
def test_one_hot(axis, dtype, on, off):
    indices = np.array([[0, 3, -1], [7, -9, 2]])
    found = run("one_hot", indices, np.array(on, dtype), np.array(off, dtype), depth=5, axis=axis, dtype=dtype)
    assert found.dtype == np.dtype(dtype)
    inside = np.where((indices >= 0) & (indices < 5), indices, 5)
    np.testing.assert_array_equal(found, np.moveaxis(np.where(np.eye(6)[inside][..., :5], on, off).astype(dtype), -1, axis))


@pytest.mark.parametrize(
    ("operator", "shapes", "purpose"),
    [
        ("scatter_elements", [(0, 3), (2, 3), (2, 3)], "write"),
        ("scatter_nd", [(0, 3), (1, 2), (2, 3)], "write"),
        ("gather_nd", [(0, 3), (1, 2)], "read"),
    ],
)
def test_an_axis_without_elements_has_no_place_for_an_index(operator, shapes, purpose):
    data, indices, *updates = (np.zeros(s, "float32") for s in shapes)
    with pytest.raises(RelayError, match=f"data: expected at least one element along axis 0 to {purpose}"):
        run(operator, data, indices.astype("int64"), *updates)


def test_take_at_a_constant_that_an_axis_of_unknown_size_may_not_have():
    program = relayc.Program()

    @program.function(x=relayc.TensorType(("n", 2), "float32"), y=relayc.TensorType(("n",), "float32"))
    def main(x, y):
        return [program.op.take(of, program.constant(np.int64(at)), axis=0, mode="clip") for of in (x, y) for at in (0, 4, -3)]

    module = relayc.compile(program)
    for n in (1, 4, 5, 7):
        x, y = values((n, 2)), values((n,))
        expected = [np.take(of, at, axis=0, mode="clip") for of in (x, y) for at in (0, 4, -3)]
        for found, wanted in zip(module["main"](x, y), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
