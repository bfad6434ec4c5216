"""Convolutions with weights that are transformed ahead of time, against sums over windows in float64."""

from itertools import product

import numpy as np
import pytest
from expressions import both_ways, interpreted
from oracle import values

from relayc import relay
from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.op.composed import winograd
from relayc.symbolic import symbol


def unknown(known, *arrays):
    """Shapes of arrays, of which the first one's batch and axis behind the channels may not be known."""
    shape = list(arrays[0].shape)
    for axis, is_known in zip((0, 2), known, strict=True):
        if not is_known:
            shape[axis] = relay.Any()
    return [shape, *(a.shape for a in arrays[1:])]


def convolved(data, weight, pads, strides=(1, 1, 1)):
    """A convolution by its definition, in float64; data are N, C, ... and the weight is O, I, ..."""
    n = data.ndim - 2
    padded = np.pad(data.astype(np.float64), [(0, 0), (0, 0), *zip(pads[:n], pads[n:], strict=True)])
    sizes = [(d - k) // s + 1 for d, k, s in zip(padded.shape[2:], weight.shape[2:], strides, strict=False)]
    found = np.zeros((len(data), len(weight), *sizes))
    for tap in product(*map(range, weight.shape[2:])):
        seen = padded[(..., *(slice(t, t + (d - 1) * s + 1, s) for t, d, s in zip(tap, sizes, strides, strict=False)))]
        found += np.einsum("nc...,oc->no...", seen, weight[(slice(None), slice(None), *tap)].astype(np.float64))
    return found


def close(found, expected, tolerance):
    """Transforms round differently: by a share of the largest result that grows with the tile."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize(("tile", "taps", "points"), [(2, 3, (0, -1, 1)), (4, 3, (0, -1, 1, 0.5, -2)), (3, 5, (0, -1, 1, 0.5, -2, -0.5))])
def test_weights_are_values_of_polynomials(tile, taps, points):
    """At points in both directions; at infinity the last coefficient. The factors are those of the interpolation."""
    weight = values((2, 3, taps, taps), "float64")
    found = interpreted(lambda w: relay.nn.contrib_conv2d_winograd_weight_transform(w, tile), weight)
    scale = [abs(np.prod(points[1:])), *(np.prod([a - b for b in points if a != b]) for a in points[1:])]

    def at(coefficients, place):
        return coefficients[-1] if place == len(points) else np.polyval(coefficients[::-1], points[place]) / scale[place]

    assert found.shape == (tile + taps - 1, tile + taps - 1, 2, 3)
    for row, column, o, i in np.ndindex(found.shape):
        np.testing.assert_allclose(found[row, column, o, i], at([at(line, column) for line in weight[o, i]], row), rtol=1e-12)


FIRST, NEXT = [0, -1, 1, 0.5], [0, -1, 1, 0.5, -0.5, 2, -2, -0.25]


@pytest.mark.parametrize(
    ("tile", "taps", "points"),
    [
        (3, 3, FIRST),
        (6, 3, NEXT[:7]),
        (5, 5, NEXT),
        (8, 3, [*NEXT, 4]),
        (7, 5, [*NEXT, 3 / 4, -4 / 3]),
        (6, 7, [*NEXT, 4, 3 / 4, -4 / 3]),
        (7, 7, [*NEXT, 4, 3 / 4, -4 / 3, 1 / 4]),
        (8, 7, [*NEXT, 4, 1 / 4, -3 / 4, 4 / 3, -4]),
    ],
)
def test_points_are_those_of_relay(tile, taps, points):
    points = np.array(points)
    scale = [np.prod([a - b for b in points if a != b]) for a in points]
    expected = np.vander(points, taps, increasing=True) / np.array([abs(scale[0]), *scale[1:]])[:, None]
    np.testing.assert_allclose(winograd._matrices(tile, taps)[2], [*expected, np.eye(taps)[-1]], rtol=1e-12, atol=1e-15)


@both_ways
@pytest.mark.parametrize(
    ("tile", "taps", "layout", "known"),
    [
        (2, 3, "NCHW", (False, True)),
        (4, 3, "NHWC", (True, True)),
        (4, 3, "NCHW", (False, False)),
        (6, 3, "NCHW", (True, True)),
        (3, 5, "NHWC", (False, True)),
    ],
)
def test_winograd_conv2d(tile, taps, layout, known, run):
    """The last tiles are not full; the axis whose size is not known is the height or the width."""
    data, weight = values((2, 3, 13, 10)), values((5, 3, taps, taps), seed=1)
    expected = convolved(data, weight, (1, 0, 2, 1))
    is_last = layout == "NHWC"

    def made(x, w):
        points = relay.nn.contrib_conv2d_winograd_weight_transform(w, tile_size=tile)
        points = points if is_last else relay.transpose(points, axes=[0, 1, 3, 2])
        attrs = {"padding": (1, 0, 2, 1), "channels": 5, "kernel_size": (taps, taps), "data_layout": layout}
        return relay.nn.contrib_conv2d_winograd_without_weight_transform(x, points, tile, **attrs)

    given = data.transpose(0, 2, 3, 1).copy() if is_last else data
    found = run(made, given, weight, shapes=unknown(known, given, weight))
    close(found.transpose(0, 3, 1, 2) if is_last else found, expected, 1e-4 if tile > 4 else 2e-5)


@both_ways
@pytest.mark.parametrize(("kernel", "strides"), [((3, 3, 3), (1, 1, 1)), ((2, 3, 3), (2, 1, 1))])
def test_winograd_conv3d(kernel, strides, run):
    """The depth of the second one is not transformed."""
    data, weight = values((2, 3, 6, 7, 5)), values((4, 3, *kernel), seed=1)
    pads = (1, 0, 1, 0, 1, 1)

    def made(x, w):
        points = relay.nn.contrib_conv3d_winograd_weight_transform(w, 2)
        attrs = {"padding": pads, "strides": strides, "channels": 4}
        return relay.nn.contrib_conv3d_winograd_without_weight_transform(x, points, 2, **attrs)

    close(run(made, data, weight, shapes=unknown((False, True), data, weight)), convolved(data, weight, pads, strides), 2e-5)


def test_nnpack_weights_are_those_of_tiles_of_6():
    weight = values((4, 3, 3, 3))
    found = interpreted(lambda w: relay.nn.contrib_conv2d_winograd_nnpack_weight_transform(w, 3, "float32"), weight)
    expected = interpreted(lambda w: relay.nn.contrib_conv2d_winograd_weight_transform(w, 6), weight)
    np.testing.assert_allclose(found.transpose(2, 3, 0, 1), expected, rtol=1e-6)
    with pytest.raises(RelayError, match="convolution_algorithm: expected one on tiles"):
        relay.transform.InferTypeLocal(relay.nn.contrib_conv2d_winograd_nnpack_weight_transform(relay.var("w", shape=weight.shape), 1))


@both_ways
@pytest.mark.parametrize(("dtype", "out"), [("float32", "float32"), ("int8", "int32")])
def test_gemm_conv2d(dtype, out, run):
    data, weight = values((2, 7, 6, 5), dtype), values((3, 2, 5, 6), dtype, seed=1)
    tiles = interpreted(lambda w: relay.nn.contrib_conv2d_gemm_weight_transform(w, 4, 3), weight)
    flat = np.zeros((36, 8), dtype)  # 3 * 2 * 5 rows in steps of 12, 6 columns in steps of 4
    flat[:30, :6] = weight.reshape(30, 6)
    in_tile = (2, 3) if dtype == "int8" else (3, 2)
    for n, k, i, j in np.ndindex(2, 12, 4, 3):
        place = [0] * 4
        place[0], place[1], place[in_tile[0]], place[in_tile[1]] = n, k, i, j
        assert tiles[tuple(place)] == flat[k * 3 + j, n * 4 + i]

    def made(x, w):
        points = relay.nn.contrib_conv2d_gemm_weight_transform(w, tile_N=4, tile_K=3)
        attrs = {"padding": (1, 0, 1, 1), "strides": (2, 1), "channels": 6, "kernel_size": (3, 2), "data_layout": "NHWC", "out_dtype": out}
        return relay.nn.contrib_conv2d_gemm_without_weight_transform(x, points, kernel_layout="HWIO", **attrs)

    expected = convolved(data.transpose(0, 3, 1, 2), weight.transpose(3, 2, 0, 1), (1, 0, 1, 1), (2, 1))
    found = run(made, data, weight, shapes=unknown((False, True), data, weight))
    assert found.dtype == out
    close(found.transpose(0, 3, 1, 2), expected, 1e-6)


def variable(*shape):
    return relay.var("w", shape=shape)


IMAGE, VOLUME = relay.var("x", shape=(1, 3, 8, 8)), relay.var("x", shape=(1, 3, 4, 8, 8))
POINTS, POINTS_3D = (4, 4, 3, 5), (4, 4, 4, 5, 3)
LATE = symbol("n")
WRONG_WEIGHTS = {
    "rank of weight: expected 4, found 3": ("conv2d_winograd", (4, 3, 3), {"tile_size": 2}),
    "rank of weight: expected 5, found 4": ("conv3d_winograd", (4, 3, 3, 3), {"tile_size": 2}),
    "tile_size: expected 2 to 8, found 9": ("conv2d_winograd", (4, 4, 3, 3), {"tile_size": 9}),
    "tile_size: expected 2 to 8, found 1": ("conv2d_winograd", (4, 4, 3, 3), {"tile_size": 1}),
    "size of the kernel: expected 3 to 7, found 2": ("conv2d_winograd", (4, 4, 2, 2), {"tile_size": 2}),
    "size of the kernel: expected 3 to 7, found 8": ("conv2d_winograd", (4, 4, 8, 8), {"tile_size": 2}),
    "size of the kernel: expected 3 to 7, found n": ("conv2d_winograd", (4, 4, LATE, LATE), {"tile_size": 2}),
    "weight: expected 2 equal sizes behind": ("conv2d_winograd", (4, 4, 4, 3), {"tile_size": 2}),
    "weight: expected 3 equal sizes behind": ("conv3d_winograd", (4, 4, 3, 3, 5), {"tile_size": 2}),
    "convolution_algorithm: expected one on tiles": ("conv2d_winograd_nnpack", (4, 3, 3, 3), {"convolution_algorithm": 1}),
    "weight: expected kernels of 3x3": ("conv2d_winograd_nnpack", (4, 3, 5, 5), {"convolution_algorithm": 3}),
}
WRONG_CONVOLUTIONS = {
    r"channels of weight .*: expected those of the data, 3, found 5": ("conv2d_winograd", IMAGE, (4, 4, 5, 3), {}),
    "weight: expected points whose number is known, found": ("conv2d_winograd", IMAGE, (LATE, LATE, 3, 5), {}),
    "weight: expected a transformed one, found .4, 5, 5, 3": ("conv2d_winograd", IMAGE, (4, 5, 3, 5), {}),
    "weight: expected a transformed one, found .4, 4, 4, 3, 5": ("conv2d_winograd", IMAGE, (4, 4, 4, 3, 5), {"data_layout": "NHWC"}),
    "dilation: expected windows of neighbours": ("conv2d_winograd", IMAGE, POINTS, {"dilation": (1, 2)}),
    "groups: expected 1, found 3": ("conv2d_winograd", IMAGE, POINTS, {"groups": 3}),
    "channels: expected those of the weight, 5, found 4": ("conv2d_winograd", IMAGE, POINTS, {"channels": 4}),
    "strides: expected steps of 1, found .1, 2": ("conv2d_winograd", IMAGE, POINTS, {"strides": (1, 2)}),
    "data_layout: expected NCHW or NHWC, .* found NCHW4c": ("conv2d_winograd", IMAGE, POINTS, {"data_layout": "NCHW4c"}),
    "data_layout: expected NCHW or NHWC, .* found NCHW$": ("conv2d_winograd", IMAGE, POINTS, {"out_layout": "NHWC"}),
    "data_layout: expected NCDHW, found NDHWC": ("conv3d_winograd", VOLUME, POINTS_3D, {"data_layout": "NDHWC"}),
    "data_layout: expected NCDHW, found NCDHW": ("conv3d_winograd", VOLUME, POINTS_3D, {"out_layout": "NDHWC"}),
    "strides: expected steps of 1, found .2, 1, 1": ("conv3d_winograd", VOLUME, POINTS_3D, {"strides": (2, 1, 1)}),
    "data_layout: expected NHWC, found NCHW": ("conv2d_gemm", IMAGE, POINTS, {"channels": 4, "kernel_size": (3, 3)}),
    "data_layout: expected NHWC, found NHWC": ("conv2d_gemm", IMAGE, POINTS, {"data_layout": "NHWC", "out_layout": "NCHW"}),
    "groups: expected 1, found 2": ("conv2d_gemm", IMAGE, POINTS, {"data_layout": "NHWC", "groups": 2}),
    "those of the weight, found None and 4": ("conv2d_gemm", IMAGE, POINTS, {"data_layout": "NHWC", "channels": 4}),
    r"those of the weight, found \(3, 3\) and None": ("conv2d_gemm", IMAGE, POINTS, {"data_layout": "NHWC", "kernel_size": (3, 3)}),
    "rank of weight: expected 4, found 3": ("conv2d_gemm", IMAGE, (4, 4, 3), {"data_layout": "NHWC", "kernel_size": 3, "channels": 4}),
}


@pytest.mark.parametrize("message", WRONG_WEIGHTS)
def test_wrong_weights(message):
    name, shape, attrs = WRONG_WEIGHTS[message]
    with pytest.raises(RelayError, match=message):
        relay.transform.InferTypeLocal(getattr(relay.nn, f"contrib_{name}_weight_transform")(variable(*shape), **attrs))


@pytest.mark.parametrize("message", WRONG_CONVOLUTIONS)
def test_wrong_convolutions(message):
    name, data, shape, attrs = WRONG_CONVOLUTIONS[message]
    tile = () if name == "conv2d_gemm" else (2,)
    with pytest.raises(RelayError, match=message):
        relay.transform.InferTypeLocal(
            getattr(relay.nn, f"contrib_{name}_without_weight_transform")(data, variable(*shape), *tile, **attrs)
        )
