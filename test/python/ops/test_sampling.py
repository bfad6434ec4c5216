"""Numerics of sampling at computed positions, against ONNX Runtime."""

import itertools

import numpy as np
import pytest
from oracle import assert_cut_off, onnx_run, values
from support import run, run_each

NAMES = {"nearest_neighbor": "nearest", "bilinear": "linear", "bicubic": "cubic"}
CASES = list(itertools.product(NAMES, ("zeros", "border", "reflection"), (False, True)))


def grid_of(shape, seed=0, dtype="float32"):
    """Positions in data and around it, as Relay has them: [batch, axes, ...]."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-2.6, 2.6, shape).astype(dtype)


def last(grid):
    """A grid of Relay as one of ONNX."""
    return np.ascontiguousarray(np.moveaxis(grid, 1, -1))


def test_images_agree_with_onnx_runtime():
    x, grid = values((2, 3, 7, 6)), grid_of((2, 2, 9, 11))
    calls = [{"method": m, "padding_mode": p, "align_corners": c} for m, p, c in CASES]
    for attrs, found in zip(calls, run_each([("image.grid_sample", a) for a in calls], x, grid), strict=True):
        expected = onnx_run(
            "GridSample",
            x,
            last(grid),
            opset=20,
            mode=NAMES[attrs["method"]],
            padding_mode=attrs["padding_mode"],
            align_corners=int(attrs["align_corners"]),
        )
        # A position has an error of some units in the last place of the size, which cubic weights multiply by at most 2.
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5, err_msg=str(attrs))


@pytest.mark.parametrize("method", ["nearest_neighbor", "bilinear"])
def test_volumes_agree_with_onnx_runtime(method):
    x, grid = values((1, 2, 4, 5, 3)), grid_of((1, 3, 3, 4, 5))
    found = run("image.grid_sample", x, grid, method=method, layout="NCDHW", padding_mode="reflection")
    expected = onnx_run("GridSample", x, last(grid), opset=20, mode=NAMES[method], padding_mode="reflection", align_corners=1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


def test_lines_by_pixels():
    x, at = np.arange(5, dtype=np.float32).reshape(1, 1, 5) ** 2, np.array([[[-0.5, 0, 0.25, 3.5, 4.5]]], np.float32)
    found = run("image.grid_sample", x, at, layout="NCW", coordinates="pixel")
    np.testing.assert_allclose(found[0, 0], [0, 0, 0.25, 12.5, 8], rtol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "grid_dtype"), [("float16", "float16"), ("float64", "float64"), ("int32", "float32"), ("uint8", "float16")]
)
def test_dtypes(dtype, grid_dtype):
    x, grid = values((1, 2, 5, 6), dtype, limit=1000), grid_of((1, 2, 4, 7), dtype=grid_dtype)
    found = run("image.grid_sample", x, grid, align_corners=False)
    assert found.dtype == x.dtype
    expected = onnx_run("GridSample", x.astype("float64"), last(grid).astype("float64"), opset=20, mode="linear")
    if x.dtype.kind in "iu":
        assert_cut_off(found, expected)
        return
    # Halves are rounded to 10 bits.
    tolerance = {"float16": 2e-3, "float64": 1e-10}[dtype]
    np.testing.assert_allclose(found.astype("float64"), expected, rtol=tolerance, atol=tolerance)


def test_positions_that_are_no_numbers_read_in_bounds():
    x, grid = values((1, 1, 3, 3)), np.full((1, 2, 1, 4), [[[np.nan, np.inf, -np.inf, 1e38]]], np.float32)
    for mode in ("zeros", "border", "reflection"):
        found = run("image.grid_sample", x, grid, padding_mode=mode, method="nearest_neighbor")
        assert found.shape == (1, 1, 1, 4) and np.isin(found, [*x.flat, 0] if mode == "zeros" else x).all()
        assert mode != "border" or tuple(found[0, 0, 0, 1:]) == (x[0, 0, 2, 2], x[0, 0, 0, 0], x[0, 0, 2, 2])


def test_no_positions():
    assert run("image.grid_sample", values((2, 3, 4, 4)), grid_of((2, 2, 0, 5))).shape == (2, 3, 0, 5)
