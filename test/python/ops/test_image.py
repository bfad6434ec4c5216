"""Numerics of resampling, against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from oracle import assert_cut_off, onnx_run, values
from support import run, run_each

import relayc
from relayc.frontend.common.antialias import positions

MODES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
SIZES = [(16, 14), (4, 7), (13, 5), (1, 1), (8, 21)]
METHODS = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}
# Positions and weights in f32, at positions up to some tens: an error of 1e-6 in a position times the slope between elements.
CLOSE = {"rtol": 1e-4, "atol": 2e-5}


def onnx_resize(x: np.ndarray, sizes=None, scales=None, roi=None, **attrs) -> np.ndarray:
    """ONNX Resize of the spatial axes only."""
    lead = list(x.shape[:2])
    roi = None if roi is None else np.array([0, 0, *roi[: len(roi) // 2], 1, 1, *roi[len(roi) // 2 :]], "float32")
    scales = None if scales is None else np.array([1, 1, *scales], "float32")
    sizes = None if sizes is None else np.array([*lead, *sizes], "int64")
    return onnx_run("Resize", x, roi, scales, sizes, **attrs)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", METHODS)
def test_resize2d_agrees_with_onnx_runtime(method, mode):
    x = values((1, 2, 8, 7))
    attrs = {"method": method, "coordinate_transformation_mode": mode, "cubic_alpha": -0.75}
    if method == "nearest_neighbor":
        attrs["rounding_method"] = "round_prefer_floor"
    for size, found in zip(SIZES, run_each([("image.resize2d", {"size": s, **attrs}) for s in SIZES], x), strict=True):
        expected = onnx_resize(x, sizes=size, mode=METHODS[method], coordinate_transformation_mode=mode)
        np.testing.assert_allclose(found, expected, err_msg=f"to {size}", **CLOSE)


def test_positions_that_are_symmetric_around_the_centre():
    """Scales of which the sizes are no multiples: the ends of what is left out are as long on both sides."""
    x, scales, mode = values((1, 1, 6, 7)), (1.7, 0.6), "half_pixel_symmetric"
    attrs = {"method": "linear", "coordinate_transformation_mode": mode, "scales": scales}
    found = run("image.resize2d", x, size=(10, 4), **attrs)
    np.testing.assert_allclose(found, onnx_resize(x, scales=scales, mode="linear", coordinate_transformation_mode=mode), **CLOSE)


def test_nothing_to_resample():
    assert run("nn.upsampling", values((0, 2, 3, 4)), scale_h=2.0, scale_w=3.0).shape == (0, 2, 6, 12)


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_nearest_neighbor_rounds_as_onnx_runtime(rounding):
    x = values((1, 1, 6, 9))
    for mode in ("half_pixel", "asymmetric", "align_corners"):
        attrs = {"method": "nearest_neighbor", "rounding_method": rounding, "coordinate_transformation_mode": mode}
        for size, found in zip(SIZES, run_each([("image.resize2d", {"size": s, **attrs}) for s in SIZES], x), strict=True):
            expected = onnx_resize(x, sizes=size, mode="nearest", nearest_mode=rounding, coordinate_transformation_mode=mode)
            np.testing.assert_array_equal(found, expected, err_msg=f"{mode} to {size}")


def test_half_pixel_positions_of_tensorflow():
    # Only operator set 11 has this mode; there, the unused inputs are empty.
    x, unused = values((1, 1, 6, 9)), np.zeros(0, "float32")
    mode = {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}
    found = run("image.resize2d", x, size=(4, 13), method="nearest_neighbor", rounding_method="floor", **mode)
    expected = onnx_run("Resize", x, unused, unused, np.array([1, 1, 4, 13]), opset=11, mode="nearest", nearest_mode="floor", **mode)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("method", METHODS)
def test_given_scales_differ_from_the_ratio_of_sizes(method):
    x, scales = values((1, 2, 7, 5)), (1.7, 2.3)
    size = tuple(int(np.floor(n * s)) for n, s in zip(x.shape[2:], scales, strict=True))
    attrs = {"method": method, "rounding_method": "floor", "coordinate_transformation_mode": "asymmetric", "cubic_alpha": -0.75}
    found = run("image.resize2d", x, size=size, scales=scales, **attrs)
    expected = onnx_resize(x, scales=scales, mode=METHODS[method], coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_cubic_without_the_outside():
    x = values((1, 2, 6, 7))
    for size in SIZES:
        found = run("image.resize2d", x, size=size, method="cubic", cubic_alpha=-0.5, cubic_exclude=1)
        expected = onnx_resize(x, sizes=size, mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1)
        np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("method", METHODS)
def test_crop_and_resize_fills_in_what_lies_outside(method):
    x, roi = values((1, 1, 9, 8)), (-0.2, 0.3, 0.7, 1.4)
    attrs = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
    rounding = {"rounding_method": "round_prefer_floor"}  # of ONNX
    found = run("image.resize2d", x, size=(5, 6), method=method, roi=roi, cubic_alpha=-0.75, **attrs, **rounding)
    np.testing.assert_allclose(found, onnx_resize(x, sizes=(5, 6), roi=roi, mode=METHODS[method], **attrs), **CLOSE)


@pytest.mark.parametrize("method", ["nearest_neighbor", "linear"])
@pytest.mark.parametrize(("shape", "size"), [((1, 2, 9), (20,)), ((1, 2, 4, 5, 6), (7, 10, 3))])
def test_one_and_three_axes(shape, size, method):
    x = values(shape)
    found = run(f"image.resize{len(size)}d", x, size=size, method=method, rounding_method="round_prefer_floor")
    np.testing.assert_allclose(found, onnx_resize(x, sizes=size, mode=METHODS[method]), **CLOSE)


@pytest.mark.parametrize(("mode", "scale"), [("half_pixel", 3), ("half_pixel", 0.4), ("asymmetric", 1.7), ("align_corners", 2.2)])
def test_without_a_rounding_positions_are_rounded_as_relay_does(mode, scale):
    x = values((1, 2, 15))
    out = int(15 * scale)
    at = np.arange(out)
    place = {"half_pixel": (at + 0.5) * 15 / out - 0.5, "asymmetric": at * 15 / out, "align_corners": at * 14 / (out - 1)}[mode]
    chosen = np.floor(place + 0.5) if mode == "align_corners" else np.floor(place + 1e-5)
    found = run("image.resize1d", x, size=(out,), method="nearest_neighbor", coordinate_transformation_mode=mode)
    np.testing.assert_array_equal(found, x[..., np.clip(chosen, 0, 14).astype(int)])


@pytest.mark.parametrize(("size", "out", "step"), [(5, 4, 1), (6, 3, 2), (7, 3, 2), (9, 3, 3)])
def test_rounded_down_positions_are_steps_or_numbers_that_look_like_some(size, out, step):
    x = values((1, 2, size))
    attrs = {"method": "nearest_neighbor", "rounding_method": "floor", "coordinate_transformation_mode": "asymmetric"}
    np.testing.assert_array_equal(run("image.resize1d", x, size=(out,), **attrs), x[..., : out * step : step])


def test_layouts_give_the_same_image():
    x = values((1, 8, 5, 6))
    attrs = {"size": (9, 12), "method": "linear"}
    expected = onnx_resize(x, sizes=(9, 12), mode="linear")
    found = run("image.resize2d", np.ascontiguousarray(x.transpose(0, 2, 3, 1)), layout="NHWC", **attrs)
    np.testing.assert_allclose(found.transpose(0, 3, 1, 2), expected, **CLOSE)
    blocked = np.ascontiguousarray(x.reshape(1, 2, 4, 5, 6).transpose(0, 1, 3, 4, 2))
    found = run("image.resize2d", blocked, layout="NCHW4c", **attrs)
    np.testing.assert_allclose(found.transpose(0, 1, 4, 2, 3).reshape(expected.shape), expected, **CLOSE)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "uint8"])
def test_types(dtype):
    x = values((1, 2, 5, 6), "float16" if dtype == "float64" else dtype, limit=1000).astype(dtype)  # exact in f32
    attrs = {"size": (9, 11), "rounding_method": "round_prefer_floor"}
    linear, nearest = run_each([("image.resize2d", {**attrs, "method": m}) for m in ("linear", "nearest_neighbor")], x)
    expected = onnx_resize(x.astype("float32"), sizes=(9, 11), mode="linear")
    assert linear.dtype == nearest.dtype == x.dtype
    if x.dtype.kind in "iu":
        assert_cut_off(linear, expected.astype("float64"))
    else:
        tolerance = {"float16": 1e-3, "float64": 1e-5}[dtype]
        np.testing.assert_allclose(linear.astype("float64"), expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(nearest, onnx_resize(x.astype("float32"), sizes=(9, 11), mode="nearest").astype(dtype))


def test_a_third_of_a_symbolic_length_is_each_third_element():
    made, type_ = relayc.Program(), relayc.TensorType((1, 2, "3*w"), "float32")
    made.function(lambda x: made.op.image.resize1d(x, size=("w",), method="nearest_neighbor"), name="main", x=type_)
    module = relayc.compile(made, keep_ir=True)
    assert "d2 * 3 + 1)" in module.ir["te"]
    x = values((1, 2, 15))
    np.testing.assert_array_equal(module["main"](x), x[..., 1::3])


def test_a_length_of_one_gets_the_first_element():
    made, type_ = relayc.Program(), relayc.TensorType((1, 2, "3*w"), "float32")
    attrs = {"method": "nearest_neighbor", "coordinate_transformation_mode": "pytorch_half_pixel"}
    made.function(lambda x: made.op.image.resize1d(x, size=("w",), **attrs), name="main", x=type_)
    module = relayc.compile(made, cache=False)
    for size, first in ((3, 0), (6, 1)):
        x = values((1, 2, size))
        np.testing.assert_array_equal(module["main"](x), x[..., first::3])


def test_upsampling():
    x = values((1, 2, 5, 6))
    nearest, linear, corners = run_each(
        [
            ("nn.upsampling", {"scale_h": 2.0, "scale_w": 3.0}),
            ("nn.upsampling", {"scale_h": 2.0, "scale_w": 1.5, "method": "bilinear"}),
            ("nn.upsampling", {"scale_h": 2.0, "scale_w": 3.0, "method": "bilinear", "align_corners": True}),
        ],
        x,
    )
    np.testing.assert_array_equal(nearest, x.repeat(2, 2).repeat(3, 3))
    asymmetric = {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}
    np.testing.assert_allclose(linear, onnx_resize(x, scales=(2.0, 1.5), **asymmetric), **CLOSE)
    at_corners = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    np.testing.assert_allclose(corners, onnx_resize(x, sizes=(10, 18), **at_corners), **CLOSE)


@pytest.mark.parametrize("mode", ["asymmetric", "align_corners"])
def test_upsampling_to_rounded_lengths(mode):
    """Of five rows and six columns 6.5 and 8.4: the lengths say how far the pixels of the result are apart, not the factors."""
    x, scales = values((1, 2, 5, 6)), {"scale_h": 1.3, "scale_w": 1.4, "align_corners": mode == "align_corners"}
    (found,) = run_each([("nn.upsampling", {**scales, "method": "bilinear"})], x)
    expected = onnx_resize(x, sizes=(6, 8), mode="linear", coordinate_transformation_mode=mode)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_upsampling3d():
    x = values((1, 2, 3, 4, 5))
    scales = {"scale_d": 2.0, "scale_h": 2.0, "scale_w": 2.0}
    asymmetric = {"method": "nearest_neighbor", "coordinate_transformation_mode": "asymmetric"}
    ways = [asymmetric, {"method": "nearest_neighbor"}, {"method": "trilinear"}]
    nearest, half, linear = run_each([("nn.upsampling3d", {**scales, **way}) for way in ways], x)
    np.testing.assert_array_equal(nearest, x.repeat(2, 2).repeat(2, 3).repeat(2, 4))
    # Pixels have their middle at a half, and positions are rounded down: floor((i + 0.5) / 2 - 0.5).
    places = [np.maximum(0, np.floor((np.arange(2 * n) + 0.5) / 2 - 0.5)).astype(int) for n in x.shape[2:]]
    np.testing.assert_array_equal(half, x[:, :, places[0]][:, :, :, places[1]][..., places[2]])
    np.testing.assert_allclose(linear, onnx_resize(x, sizes=(6, 8, 10), mode="linear"), **CLOSE)


POSITIONS = [
    ("align_corners", 3, 0.6, [0, 2, 4]),
    ("align_corners", 1, 0.2, [0]),
    ("asymmetric", 3, 0.6, [0, 5 / 3, 10 / 3]),
    ("half_pixel", 3, 0.6, [1 / 3, 2, 11 / 3]),
    ("pytorch_half_pixel", 3, 0.6, [1 / 3, 2, 11 / 3]),
    ("pytorch_half_pixel", 1, 0.2, [-0.5]),
    ("half_pixel_symmetric", 3, 0.625, [0.4, 2, 3.6]),
]


@pytest.mark.parametrize(("mode", "out", "scale", "wanted"), POSITIONS)
def test_the_positions_in_an_axis_of_five_elements(mode, out, scale, wanted):
    np.testing.assert_allclose(positions(mode, 5, out, scale), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("position", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"])
@pytest.mark.parametrize("excludes", [0, 1])
def test_antialiased_sizes(mode, position, excludes):
    """Axes that shrink and that grow, against the onnx package's reference: sums of float32 of weights that are at most about 1."""
    x, size = values((1, 2, 9, 5)), np.array([4, 7])
    attrs = {
        "mode": mode,
        "coordinate_transformation_mode": position,
        "exclude_outside": excludes if mode == "cubic" else 0,
        "antialias": 1,
    }
    node = onnx.helper.make_node("Resize", ["x", "", "", "size"], ["y"], axes=[2, 3], **attrs)
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [node],
            "g",
            [onnx.helper.make_tensor_value_info("x", 1, x.shape)],
            [onnx.helper.make_tensor_value_info("y", 1, None)],
            [onnx.numpy_helper.from_array(size, "size")],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 19)],
    )
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(relayc.compile(model, cache=False)["main"](x), expected, **CLOSE)
