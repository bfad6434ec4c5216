"""Operators as operator sets 1 to 6 have them, where they are written or mean otherwise than later, against numpy."""

import numpy as np
import onnx
import pytest
from onnx import helper

import relayc
from relayc.frontend.onnx import OnnxError, from_onnx
from relayc.frontend.onnx.fold_nodes import is_as_in_opset_7
from relayc.pipelines.evaluate.relay import RelayInterpreter

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
CHANNELS = RNG.uniform(0.5, 1.5, 3).astype(np.float32)
MATRIX = RNG.standard_normal((3, 4)).astype(np.float32)


def model_of(
    op_type: str, arrays: list[np.ndarray], opset: int, outputs: int = 1, constants: int = 0, **attributes: object
) -> onnx.ModelProto:
    """One node whose last `constants` inputs are initializers, which are inputs of the graph too as they had to be."""
    names = [f"x{i}" for i in range(len(arrays))]
    values = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in zip(names, arrays, strict=True)
    ]
    given = len(arrays) - constants
    initializers = [onnx.numpy_helper.from_array(a, n) for n, a in zip(names[given:], arrays[given:], strict=True)]
    results = [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)]
    node = helper.make_node(op_type, names, [r.name for r in results], **attributes)
    graph = helper.make_graph([node], "old", values, results, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


def run(op_type: str, arrays: list[np.ndarray], opset: int, outputs: int = 1, constants: int = 0, **attributes: object):
    model = model_of(op_type, arrays, opset, outputs, constants, **attributes)
    return relayc.compile(model)["main"](*arrays[: len(arrays) - constants])


def scalar(value: float) -> np.ndarray:
    return np.float32(value).reshape(())


def norm(x: np.ndarray, p: float, axis: tuple[int, ...]) -> np.ndarray:
    return (np.abs(x) ** p).sum(axis, keepdims=True) ** (1 / p)


WINDOWS = np.stack([X[..., i : i + 3, j : j + 4] for i in range(2) for j in range(2)])

CASES = {
    "Add of the last axes": ("Add", [X, X[0, 0]], 6, {"broadcast": 1}, X + X[0, 0]),
    "Sub of axes from the second on": (
        "Sub",
        [X, X[0, :, :, 0]],
        1,
        {"broadcast": 1, "axis": 1, "consumed_inputs": [0, 0]},
        X - X[0, :, :, :1],
    ),
    "Mul of one element of a higher rank": ("Mul", [X[0, 0, 0], np.full((1,), 3, np.float32)], 6, {"broadcast": 1}, X[0, 0, 0] * 3),
    "Pow of the first axis": (
        "Pow",
        [np.abs(X), np.float32([2, 3])],
        1,
        {"broadcast": 1, "axis": 0},
        np.abs(X) ** np.reshape([2, 3], (2, 1, 1, 1)),
    ),
    "And of the channels": ("And", [X > 0, CHANNELS > 1], 1, {"broadcast": 1, "axis": 1}, (X > 0) & (CHANNELS > 1).reshape(3, 1, 1)),
    "BatchNormalization": (
        "BatchNormalization",
        [X, CHANNELS, CHANNELS, CHANNELS, CHANNELS],
        1,
        {"is_test": 1, "consumed_inputs": [0, 0, 0, 1, 1], "epsilon": 0.5},
        ((X.swapaxes(1, 3) - CHANNELS) / np.sqrt(CHANNELS + 0.5) * CHANNELS + CHANNELS).swapaxes(1, 3),
    ),
    "BatchNormalization of each element": (
        "BatchNormalization",
        [X, X[0], X[1], X[0], np.abs(X[1])],
        6,
        {"is_test": 1, "spatial": 0, "epsilon": 0.5},
        (X - X[0]) / np.sqrt(np.abs(X[1]) + 0.5) * X[0] + X[1],
    ),
    "Cast to a type by name": ("Cast", [np.float32([1.5, -2.5])], 1, {"to": "INT32"}, np.int32([1, -2])),
    "Concat along axis 1 by default": ("Concat", [X, X], 1, {}, np.concatenate([X, X], axis=1)),
    "Dropout": ("Dropout", [X], 6, {"is_test": 1}, X),
    "Gemm of a bias that is broadcast": (
        "Gemm",
        [MATRIX, MATRIX, CHANNELS],
        6,
        {"broadcast": 1, "transB": 1},
        MATRIX @ MATRIX.T + CHANNELS,
    ),
    "GlobalLpPool of a fraction": ("GlobalLpPool", [X], 1, {"p": 1.5}, norm(X, 1.5, (2, 3))),
    "LpPool of a fraction": ("LpPool", [X], 1, {"p": 2.5, "kernel_shape": [2, 2]}, norm(WINDOWS, 2.5, (0,))[0]),
    "LpPool in steps": (
        "LpPool",
        [X],
        1,
        {"p": 1.0, "kernel_shape": [2, 1], "strides": [2, 3]},
        np.abs(X[:, :, ::2, ::3]) + np.abs(X[:, :, 1::2, ::3]),
    ),
    "LpPool of the whole image": ("LpPool", [X], 1, {"p": 3.0}, norm(X, 3, (2, 3))),
    "PRelu of one slope a channel": ("PRelu", [X, CHANNELS], 6, {}, np.where(X < 0, X * CHANNELS.reshape(3, 1, 1), X)),
    "PRelu of a slope a channel of as many columns": (
        "PRelu",
        [X[0, :, :3, 0], CHANNELS],
        6,
        {},
        np.where(X[0, :, :3, 0] < 0, X[0, :, :3, 0] * CHANNELS, X[0, :, :3, 0]),
    ),
    "Reshape by an attribute": ("Reshape", [X], 1, {"shape": [0, -1]}, X.reshape(2, -1)),
    "Selu of its old constants": ("Selu", [X], 1, {}, 1.0507 * np.where(X > 0, X, 1.6732 * np.expm1(np.minimum(X, 0)))),
    "Pad by paddings": (
        "Pad",
        [MATRIX],
        1,
        {"paddings": [1, 0, 0, 2], "value": 1.5},
        np.pad(MATRIX, ((1, 0), (0, 2)), constant_values=1.5),
    ),
    "Upsample by two factors": ("Upsample", [X], 1, {"height_scale": 2.0, "width_scale": 3.0}, X.repeat(2, 2).repeat(3, 3)),
}
"""Operator, inputs, operator set, attributes and result."""


@pytest.mark.parametrize("name", CASES)
def test_old_forms(name):
    op_type, arrays, opset, attributes, expected = CASES[name]
    (found,) = RelayInterpreter(from_onnx(model_of(op_type, arrays, opset, **attributes)))("main", arrays)
    assert found.shape == expected.shape and found.dtype in (expected.astype(found.dtype).dtype, np.int8)  # bytes are bools there
    # A few units in the last place of float32: numpy computes some of them in float64.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_matrix_is_added_to_the_product_with_a_transposed_one():
    wide = np.concatenate([MATRIX, -MATRIX])
    bias = RNG.standard_normal((3, 6)).astype(np.float32)
    np.testing.assert_allclose(run("Gemm", [MATRIX, wide, bias], 6, transB=1), MATRIX @ wide.T + bias, rtol=1e-5, atol=1e-6)


def test_batches_are_normalised_by_themselves_in_training():
    scale, bias, before = CHANNELS, CHANNELS - 1, CHANNELS + 1
    found = run("BatchNormalization", [X, scale, bias, before, before], 6, 5, epsilon=0.5, momentum=0.75)
    mean, variance = X.mean((0, 2, 3)), X.var((0, 2, 3))
    column = (slice(None), None, None)
    expected = (X - mean[column]) / np.sqrt(variance[column] + 0.5) * scale[column] + bias[column]
    running = [before * 0.75 + new * 0.25 for new in (mean, variance)]
    for y, z in zip(found, [expected, *running, mean, variance], strict=True):
        np.testing.assert_allclose(y, z, 1e-5, 1e-6)


def test_elements_are_dropped_in_training():
    x = np.random.default_rng(0).standard_normal((100, 100)).astype(np.float32)
    found, mask = run("Dropout", [x], 6, 2, ratio=0.25)
    assert mask.dtype == np.float32
    assert set(np.unique(mask)) == {0, 1}
    assert abs(mask.mean() - 0.75) < 0.02  # four and a half standard deviations of 10,000 draws
    np.testing.assert_allclose(found, x * mask / 0.75, 1e-6)


def test_tile_repeats_one_axis():
    np.testing.assert_array_equal(run("Tile", [MATRIX, scalar(3), scalar(1)], 1, constants=2), np.tile(MATRIX, (1, 3)))


def test_split_takes_lengths_as_an_input():
    found = run("Split", [X, np.float32([1, 3])], 1, 2, constants=1, axis=2)
    for part, expected in zip(found, np.split(X, [1], axis=2), strict=True):
        np.testing.assert_array_equal(part, expected)


def test_models_of_ir_versions_before_operator_sets_are_of_the_first():
    model = model_of("Concat", [X, X], 1)
    del model.opset_import[:]
    model.ir_version = 2
    np.testing.assert_array_equal(relayc.compile(model)["main"](X, X), np.concatenate([X, X], axis=1))


REFUSED = {
    "Add of another shape without broadcast": ("Add", [X, X[0]], {}, "expected a tensor of shape"),
    "Add of axes that A does not have": ("Add", [MATRIX, X], {"broadcast": 1}, "expected consecutive axes"),
    "Add with an attribute that operator set 6 does not have": ("Add", [X, X], {"consumed_inputs": [0, 0]}, "expected attributes among"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    op_type, arrays, attributes, message = REFUSED[name]
    with pytest.raises(OnnxError, match=message):
        from_onnx(model_of(op_type, arrays, 6, **attributes))


@pytest.mark.parametrize(("opset", "dtype"), [(7, "float32"), (9, "float32"), (10, "bool"), (11, "bool")])
def test_the_mask_of_a_dropout(opset, dtype):
    x, mask = run("Dropout", [X], opset, 2)
    assert mask.dtype == dtype and mask.all() and np.array_equal(x, X)


@pytest.mark.parametrize(
    ("op_type", "opset", "same"),
    [("Add", 6, False), ("Relu", 6, True), ("Compress", 6, False), ("Add", 7, True), ("Compress", 7, True)],
)
def test_operators_that_have_changed_before_operator_set_7(op_type, opset, same):
    assert is_as_in_opset_7(op_type, opset) == same
