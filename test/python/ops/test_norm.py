"""Numerics of normalisations, against numpy in float64 and ONNX Runtime."""

import numpy as np
import pytest
from oracle import onnx_run, values
from support import run
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc.dialects.relay import build

# Two rounded sums and a reciprocal root for f32; one rounding of the result for the 16-bit types, which are computed in f32.
TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "float16": 3e-3, "bfloat16": 2e-2}


def close(found: np.ndarray, expected: np.ndarray, dtype: str = "float32") -> None:
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(found.astype("float64"), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def normalized(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    x = x.astype("float64")
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def along(vector: np.ndarray, axis: int, rank: int) -> np.ndarray:
    return vector.astype("float64").reshape([-1 if i == axis else 1 for i in range(rank)])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("shape", "axis"), [((3, 8), 1), ((2, 7, 384), 2), ((2, 5, 9), 1), ((4, 3), 0)])
def test_layer_norm(shape, axis, dtype):
    x, gamma, beta = values(shape, dtype), values((shape[axis],), dtype, seed=1), values((shape[axis],), dtype, seed=2)
    expected = normalized(x, (axis,), 1e-3) * along(gamma, axis, x.ndim) + along(beta, axis, x.ndim)
    close(run("nn.layer_norm", x, gamma, beta, axis=axis, epsilon=1e-3), expected, dtype)


@pytest.mark.parametrize(("center", "scale"), [(False, True), (True, False), (False, False)])
def test_center_and_scale_are_optional(center, scale):
    x, gamma, beta = values((2, 6, 5)), values((6,), seed=1), values((6,), seed=2)
    for name, axes, attrs in (("layer_norm", (1,), {"axis": 1}), ("instance_norm", (2,), {})):
        expected = normalized(x, axes, 1e-5) * (along(gamma, 1, 3) if scale else 1) + (along(beta, 1, 3) if center else 0)
        close(run(f"nn.{name}", x, gamma, beta, center=center, scale=scale, **attrs), expected)


def test_layer_norm_of_values_far_from_zero():
    # The variance is the mean of squared deviations: the difference of two large sums would leave nothing of it.
    x = 1000 + values((4, 256))
    gamma, beta = values((256,), seed=1), values((256,), seed=2)
    expected = normalized(x, (1,), 1e-5) * gamma + beta
    # The mean is off by (2 + sqrt(256) / 8) roundings of 1000, which is what a deviation is off by, and gamma multiplies.
    np.testing.assert_allclose(run("nn.layer_norm", x, gamma, beta), expected, rtol=1e-5, atol=4000 * 2**-24 * np.abs(gamma).max())


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(3, 64), (2, 5, 33)])
def test_rms_norm(shape, dtype):
    x, gamma = values(shape, dtype), values((shape[-1],), dtype, seed=1)
    wide = x.astype("float64")
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5) * gamma.astype("float64")
    close(run("nn.rms_norm", x, gamma), expected, dtype)


@pytest.mark.parametrize("shape", [(1, 3, 10), (2, 4, 7, 9), (1, 2, 3, 4, 5)])
def test_instance_norm_agrees_with_onnx_runtime(shape):
    x, gamma, beta = values(shape), values((shape[1],), seed=1), values((shape[1],), seed=2)
    close(run("nn.instance_norm", x, gamma, beta), onnx_run("InstanceNormalization", x, gamma, beta))


def test_instance_norm_of_channels_last():
    x, gamma, beta = values((2, 7, 9, 4)), values((4,), seed=1), values((4,), seed=2)
    expected = normalized(x, (1, 2), 1e-5) * gamma + beta
    close(run("nn.instance_norm", x, gamma, beta, axis=-1), expected)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("shape", "groups"), [((2, 6, 5, 7), 3), ((1, 8, 9), 1), ((2, 4, 3), 4)])
def test_group_norm(shape, groups, dtype):
    x, gamma, beta = values(shape, dtype), values((shape[1],), dtype, seed=1), values((shape[1],), dtype, seed=2)
    grouped = x.reshape(shape[0], groups, -1)
    expected = normalized(grouped, (2,), 1e-5).reshape(shape) * along(gamma, 1, x.ndim) + along(beta, 1, x.ndim)
    close(run("nn.group_norm", x, gamma, beta, num_groups=groups), expected, dtype)


ANY_CHANNELS = ("float32[n, 3*c, 5]", "float32[3*c]", "float32[3*c]")


def test_group_norm_of_any_number_of_channels():
    module = relayc.compile(symbolic_program(lambda *v: [build("nn.group_norm", *v, num_groups=3)], list(map(tensor, ANY_CHANNELS))))
    for channels in (3, 12):
        x, gamma, beta = values((2, channels, 5)), values((channels,), seed=1), values((channels,), seed=2)
        expected = normalized(x.reshape(2, 3, -1), (2,), 1e-5).reshape(x.shape) * along(gamma, 1, 3) + along(beta, 1, 3)
        close(module["main"](x, gamma, beta), expected)


@pytest.mark.parametrize("axis", [1, 3])
def test_batch_norm(axis):
    x = values((2, 5, 6, 5))
    gamma, beta, mean, var = (values((5,), seed=i) for i in range(1, 5))
    var = np.abs(var)
    found, new_mean, new_var = run("nn.batch_norm", x, gamma, beta, mean, var, axis=axis, epsilon=1e-3)
    g, b, m, v = (along(a, axis, 4) for a in (gamma, beta, mean, var))
    close(found, (x - m) / np.sqrt(v + 1e-3) * g + b)
    np.testing.assert_array_equal(new_mean, mean)
    np.testing.assert_array_equal(new_var, var)


@pytest.mark.parametrize("axes", [(1,), (-1,), (1, 2)])
def test_l2_normalize(axes):
    x = values((3, 5, 7))
    norm = np.sqrt(np.maximum((x.astype("float64") ** 2).sum(axes, keepdims=True), 1e-5))
    close(run("nn.l2_normalize", x, axis=axes, eps=1e-5), x / norm)


def test_l2_normalize_of_zeros_is_zero():
    x = np.concatenate([values((1, 3)), np.zeros((1, 3), "float32")])
    found = run("nn.l2_normalize", x, axis=(1,), eps=1e-12)
    close(found, x / [[np.sqrt((x[0].astype("float64") ** 2).sum())], [1]])
    np.testing.assert_array_equal(found[1], 0)


@pytest.mark.parametrize("size", [1, 3, 5, 9])
def test_lrn_agrees_with_onnx_runtime(size):
    x = values((2, 7, 5, 6)) * 3
    attrs = {"size": size, "alpha": 0.3, "beta": 0.6}
    close(run("nn.lrn", x, bias=1.5, **attrs), onnx_run("LRN", x, bias=1.5, **attrs))


def test_lrn_of_an_even_window_reaches_further_ahead():
    # ONNX Runtime takes odd windows only; the rule is that of ONNX LRN.
    x = values((1, 6, 3))
    squares = np.pad(x.astype("float64") ** 2, [(0, 0), (1, 2), (0, 0)])
    sums = sum(squares[:, i : i + 6] for i in range(4))
    close(run("nn.lrn", x, size=4, bias=1.5, alpha=0.3, beta=0.6), x / (1.5 + 0.3 / 4 * sums) ** 0.6)
