"""NonMaxSuppression, Unique along an axis, Scan of operator set 8, and steps of Slice that data give: what ONNX Runtime gives."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx_models import model_of

import relayc
from relayc import OnnxError

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
node = helper.make_node


def agrees(model, *feeds):
    """A model compiled once gives for each of the inputs what ONNX Runtime gives: selections, and sums of small integers, are exact."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    module = relayc.compile(model, cache=False)
    for feed in ({name: np.asarray(value) for name, value in given.items()} for given in feeds):
        found, wanted = module.run(feed), session.run(None, feed)
        for name, array in zip(found, wanted, strict=True):
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)
    return module


# ---- NonMaxSuppression -------------------------------------------------------------------------------------------------------------------

SCALARS = {"most": (INT, []), "iou": (FLOAT, []), "threshold": (FLOAT, [])}


def detections(batch, classes, count, seed=0):
    """Boxes on a grid and scores of which many are equal."""
    rng = np.random.default_rng(seed)
    boxes, scores = rng.integers(0, 9, (batch, count, 4)), rng.integers(-4, 9, (batch, classes, count))
    return {"boxes": boxes.astype(np.float32) / 8, "scores": scores.astype(np.float32) / 8}


def suppression(given=("most", "iou", "threshold"), shapes=(["b", "n", 4], ["b", "c", "n"]), opset=20, **attributes):
    inputs = ["boxes", "scores", *(name if name in given else "" for name in SCALARS)]
    types = dict(zip(inputs, shapes, strict=False)) | {name: SCALARS[name] for name in SCALARS if name in given}
    made = node("NonMaxSuppression", inputs, ["y"], **attributes)
    return model_of([made], types, opset=opset, ir_version=8)


@pytest.mark.parametrize("center", [0, 1])
def test_boxes_of_any_number(center):
    sizes = [(1, 1, 1), (2, 3, 61), (1, 2, 7), (3, 1, 131), (1, 3, 0), (2, 0, 5)]
    limits = {"most": np.int64(9), "iou": np.float32(0.35), "threshold": np.float32(0.1)}
    module = agrees(suppression(center_point_box=center), *(detections(*s, seed=i) | limits for i, s in enumerate(sizes)))
    assert str(module.outputs[0]) == "int64[count, 3]"
    none = {"most": np.int64(0)}, {"most": np.int64(-1)}, {"threshold": np.float32(2)}
    for change in none:
        assert module.run(detections(2, 3, 61) | limits | change)["y"].shape == (0, 3)


@pytest.mark.parametrize("given", [("most",), ("most", "iou"), ("most", "threshold")])
def test_optional_inputs(given):
    values = {"most": np.int64(4), "iou": np.float32(0.6), "threshold": np.float32(-0.3)}
    feed = detections(2, 2, 23) | {name: values[name] for name in given}
    feed["scores"][0, 0, 3] = -np.inf
    agrees(suppression(given, ([2, 23, 4], [2, 2, 23]), opset=10), feed)


def test_without_a_number_of_boxes_there_are_none():
    assert relayc.compile(suppression(())).run(detections(1, 2, 5))["y"].shape == (0, 3)


def test_boxes_and_scores_must_fit():
    with pytest.raises(OnnxError, match="expected a tensor of shape"):
        relayc.compile(suppression(shapes=([1, 5, 4], [1, 2, 6])))
    module = relayc.compile(suppression(shapes=(["a", "n", 4], ["b", "c", "m"])))
    feed = detections(1, 2, 5) | {"scores": np.zeros((1, 2, 4), np.float32), "most": np.int64(1), "iou": np.float32(0)}
    with pytest.raises(ValueError, match=r"is 5 .*is 4|is 4 .*is 5"):
        module.run(feed | {"threshold": np.float32(0)})


# ---- Unique ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_slices_without_repetitions(axis, is_sorted):
    made = node("Unique", ["x"], ["y", "first", "inverse", "counts"], axis=axis, sorted=is_sorted)
    rng = np.random.default_rng(0)
    feeds = [{"x": rng.integers(0, 2, shape).astype(np.float32)} for shape in ((1, 1, 2), (2, 3, 2), (7, 2, 2), (1, 61, 2), (31, 1, 2))]
    agrees(model_of([made], {"x": ["n", "m", 2]}, made.output, opset=11, ir_version=8), *feeds)


def test_slices_of_no_elements_are_equal():
    made = node("Unique", ["x"], ["y", "first", "inverse", "counts"], axis=0)
    module = relayc.compile(model_of([made], {"x": ["n", "m"]}, made.output))
    for shape, expected in (((3, 0), [[0], [0, 0, 0], [3]]), ((0, 3), [[], [], []])):
        found = list(module.run({"x": np.zeros(shape, np.float32)}).values())
        assert found[0].shape == (len(expected[0]), shape[1])
        assert [list(a) for a in found[1:]] == expected


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float64"])
@pytest.mark.parametrize("axis", [None, 1])
def test_types(axis, dtype):
    attributes = {} if axis is None else {"axis": axis}
    x = np.random.default_rng(1).integers(0, 2, (3, 9)).astype(dtype)
    made = node("Unique", ["x"], ["y", "first", "inverse", "counts"], **attributes)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    found = relayc.compile(model_of([made], {"x": (kind, ["n", "m"])}, made.output)).run({"x": x})
    wanted = np.unique(x, True, True, True, axis=axis)
    for a, b in zip(found.values(), wanted, strict=True):
        np.testing.assert_array_equal(a, b.reshape(a.shape))
    assert found["y"].dtype == x.dtype


# ---- Scan of operator set 8 --------------------------------------------------------------------------------------------------------------


def scan_8(lengths, row=(3,), **attributes):
    """Sums of the steps so far of x, of which z is added to each output."""
    values = [helper.make_tensor_value_info(name, FLOAT, row) for name in ("s", "u", "v")]
    results = [helper.make_tensor_value_info(name, FLOAT, row) for name in ("t", "w")]
    body = helper.make_graph([node("Add", ["s", "u"], ["t"]), node("Sub", ["t", "v"], ["w"])], "body", values, results)
    types = ({"lengths": (INT, ["b"])} if lengths else {}) | {"s0": ["b", *row], "x": ["b", "n", *row], "z": ["b", "n", *row]}
    made = node("Scan", ["lengths" if lengths else "", "s0", "x", "z"], ["last", "rows"], body=body, num_scan_inputs=2, **attributes)
    return model_of([made], types, made.output, opset=8, ir_version=8)


@pytest.mark.parametrize(("lengths", "row"), [(False, (3,)), (True, (3,)), (False, ())])
@pytest.mark.parametrize("directions", [None, [0, 1]])
def test_scans_of_a_batch(lengths, row, directions):
    def feed(batch, steps):
        rng = np.random.default_rng(steps)
        arrays = {"s0": (batch, *row), "x": (batch, steps, *row), "z": (batch, steps, *row)}
        found = {name: rng.integers(-9, 9, shape).astype(np.float32) for name, shape in arrays.items()}
        return found | ({"lengths": rng.integers(1, steps + 1, batch)} if lengths else {})

    attributes = {} if directions is None else {"directions": directions}
    agrees(scan_8(lengths, row, **attributes), feed(2, 3), feed(1, 1), feed(3, 17))


def test_a_length_beyond_the_steps_of_a_scan():
    module = relayc.compile(scan_8(True))
    x = np.zeros((2, 5, 3), np.float32)
    with pytest.raises(ValueError):
        module.run({"lengths": np.array([1, 6]), "s0": x[:, 0], "x": x, "z": x})


# ---- steps and amounts -------------------------------------------------------------------------------------------------------------------


def test_steps_of_a_slice():
    made = node("Slice", ["x", "first", "last", "", "steps"], ["y"])
    bounds = {name: (INT, [2]) for name in ("first", "last", "steps")}
    model = model_of([made], {"x": ["n", 5]} | bounds, ir_version=8)
    rng, far = np.random.default_rng(0), 1 << 62
    feeds = [
        {"x": rng.random((int(n), 5), np.float32), "first": rng.integers(-9, 10, 2), "last": last, "steps": rng.choice([-3, -1, 1, 2], 2)}
        for n in (0, 1, 2, 7, 7)
        for last in (*rng.integers(-9, 10, (4, 2)), np.array([-far, far]))
    ]
    module = agrees(model, *feeds)
    with pytest.raises(ValueError, match="count_1: expected 0 or more, found -1"):
        module.run(feeds[0] | {"steps": np.array([1, 0])})


def test_depths_and_sizes_of_all_axes():
    hot = node("OneHot", ["i", "depth", "values"], ["y"], axis=0)
    types = {"i": (INT, ["n"]), "depth": (FLOAT, []), "values": (FLOAT, [2])}
    feeds = [{"i": np.arange(n), "depth": np.float32(d), "values": np.float32([1, 2])} for n, d in ((3, 2), (1, 7), (0, 3))]
    agrees(model_of([hot], types, ir_version=8), *feeds)
    resize = node("Resize", ["x", "", "", "s"], ["y"], mode="nearest")
    x = np.random.default_rng(0).random((1, 2, 5, 3), np.float32)
    sizes = [{"x": x, "s": np.array(s)} for s in ((1, 2, 10, 6), (1, 2, 3, 3), (2, 4, 5, 1))]
    agrees(model_of([resize], {"x": ["n", 2, "h", "w"], "s": (INT, [4])}, ir_version=8), *sizes)


# ---- in branches and loops ---------------------------------------------------------------------------------------------------------------


def test_selections_of_a_branch():
    def branch(name, made):
        return helper.make_graph([made], name, [], [helper.make_tensor_value_info("r", INT, [2, None])])

    column = node("NonZero", ["x"], ["r"])
    other = node("Expand", ["one", "shape"], ["r"])
    choice = node("If", ["c"], ["y"], then_branch=branch("a", column), else_branch=branch("b", other))
    types = {"x": ["n", 3], "c": (TensorProto.BOOL, []), "shape": (INT, [2])}
    x = np.random.default_rng(0).integers(0, 2, (7, 3)).astype(np.float32)
    feeds = [{"x": x[:n], "c": np.array(c), "shape": np.array([2, 5])} for n in (1, 7) for c in (True, False)]
    agrees(model_of([choice], types, initializers={"one": np.array([[1], [2]])}, ir_version=8), *feeds)


def test_selections_of_a_loop():
    """Boxes of each step: those that are chosen of it, behind those of the steps before."""
    inputs = [helper.make_tensor_value_info(*i) for i in (("i", INT, []), ("go", TensorProto.BOOL, []), ("all", INT, [None, 3]))]
    results = [helper.make_tensor_value_info(*o) for o in (("on", TensorProto.BOOL, []), ("more", INT, [None, 3]))]
    nodes = [
        node("Cast", ["i"], ["f"], to=FLOAT),
        node("Mul", ["f", "eighth"], ["t"]),
        node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "t"], ["found"]),
        node("Concat", ["all", "found"], ["more"], axis=0),
        node("Identity", ["go"], ["on"]),
    ]
    made = node("Loop", ["trips", "", "none"], ["y"], body=helper.make_graph(nodes, "body", inputs, results))
    types = {"trips": (INT, []), "boxes": ["b", "n", 4], "scores": ["b", "c", "n"]}
    constants = {"most": np.int64(3), "iou": np.float32(0.4), "eighth": np.float32(0.125), "none": np.zeros((0, 3), np.int64)}
    constants = {name: np.asarray(value) for name, value in constants.items()}
    feeds = [detections(2, 2, 13) | {"trips": np.int64(trips)} for trips in (0, 1, 9)]
    agrees(model_of([made], types, initializers=constants, ir_version=8), *feeds)
