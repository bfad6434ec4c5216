"""Numerics of regions of images, against ONNX Runtime."""

import numpy as np
import pytest
from oracle import onnx_run, values
from support import run, run_each

X = values((2, 3, 12, 10))
IMAGES = np.array([0, 1, 1, 0, 1, 0])
CORNERS = np.array([[1, 2, 9, 11], [0.3, 0.7, 3.1, 20.5], [-3, -4, 2.5, 6], [30, 30, 40, 50], [4, 4, 4.2, 4.1], [5, 2, 5, 9]], np.float32)
REGIONS = np.concatenate([IMAGES[:, None], CORNERS], 1, dtype=np.float32)


@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align_agrees_with_onnx_runtime(aligned):
    cases = [(ratio, mode, most) for ratio, most in ((-1, None), (0, 10), (1, None), (3, None)) for mode in ("avg", "max_neighbor")]
    common = {"spatial_scale": 0.7, "aligned": aligned, "pooled_size": (3, 2)}
    calls = [("vision.roi_align", {**common, "sample_ratio": ratio, "mode": mode, "most_samples": most}) for ratio, mode, most in cases]
    coordinates = "half_pixel" if aligned else "output_half_pixel"
    for (ratio, mode, most), found in zip(cases, run_each(calls, X, REGIONS), strict=True):
        attrs = {"output_height": 3, "output_width": 2, "sampling_ratio": max(ratio, 0), "spatial_scale": 0.7, "mode": mode[:3]}
        expected = onnx_run("RoiAlign", X, CORNERS, IMAGES, coordinate_transformation_mode=coordinates, **attrs)
        # Positions have errors of some units in the last place of 20, which the differences of neighbours are multiplied with.
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5, err_msg=f"{ratio} {mode} {most}")


def largest_samples(x, regions, pooled, ratio):
    """Relay's roi_align of mode "max", one sample after the other: the largest of samples between four elements each."""
    n, channels, height, width = len(regions), *x.shape[1:]
    found = np.zeros((n, channels, *pooled))
    for r, c, i, j in np.ndindex(found.shape):
        image, x0, y0, x1, y1 = regions[r]
        steps = [max(b - a, 1.0) / p for a, b, p in ((y0, y1, pooled[0]), (x0, x1, pooled[1]))]
        samples = []
        for p, q in np.ndindex(ratio, ratio):
            y, z = y0 + (i + (p + 0.5) / ratio) * steps[0], x0 + (j + (q + 0.5) / ratio) * steps[1]
            if not (-1 <= y <= height and -1 <= z <= width):
                samples.append(0.0)
                continue
            y, z = np.clip(y, 0, height - 1), np.clip(z, 0, width - 1)
            a, b = int(y), int(z)
            rows, columns = [a, min(a + 1, height - 1)], [b, min(b + 1, width - 1)]
            weights = np.outer([1 - y + a, y - a], [1 - z + b, z - b])
            samples.append((weights * x[int(image), c][np.ix_(rows, columns)]).sum())
        found[r, c, i, j] = max(samples)
    return found


def test_roi_align_of_the_largest_sample():
    found = run("vision.roi_align", X, REGIONS, pooled_size=(3, 2), spatial_scale=1.0, sample_ratio=2, mode="max")
    # Positions have errors of some units in the last place of 20, as above.
    np.testing.assert_allclose(found, largest_samples(X, REGIONS, (3, 2), 2), rtol=1e-4, atol=2e-5)


def test_roi_pool_agrees_with_onnx_runtime():
    found = run("vision.roi_pool", X, REGIONS, pooled_size=(4, 3), spatial_scale=0.5)
    np.testing.assert_array_equal(found, onnx_run("MaxRoiPool", X, REGIONS, pooled_shape=(4, 3), spatial_scale=0.5))


@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_dtypes(dtype, ratio):
    attrs = {"pooled_size": (2, 2), "spatial_scale": 1.0, "sample_ratio": ratio, "aligned": True}
    found = run("vision.roi_align", X.astype(dtype), REGIONS.astype(dtype), **attrs)
    assert found.dtype == np.dtype(dtype)
    wide = REGIONS.astype(dtype).astype("float64")
    expected = run("vision.roi_align", X.astype(dtype).astype("float64"), wide, **attrs)
    tolerance = 2e-3 if dtype == "float16" else 1e-12
    np.testing.assert_allclose(found.astype("float64"), expected, rtol=tolerance, atol=tolerance)


def test_corners_that_are_no_numbers_read_in_bounds():
    regions = np.array([[np.nan] * 5, [7, np.inf, -np.inf, 1e38, -1e38], [-3, 0, 0, 1e9, 1e9]], np.float32)
    calls = [("vision.roi_align", {"sample_ratio": 2}), ("vision.roi_pool", {})]
    for name, attrs in calls:
        assert run(name, X, regions, pooled_size=(2, 2), spatial_scale=1.0, **attrs).shape == (3, 3, 2, 2)


def test_no_regions():
    assert run("vision.roi_align", X, REGIONS[:0], pooled_size=(2, 2), spatial_scale=1.0).shape == (0, 3, 2, 2)
