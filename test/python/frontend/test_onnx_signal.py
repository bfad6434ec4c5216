"""Fourier transforms of the ONNX frontend, against numpy in float64."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import relayc

DTYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16}


def dft(x, length=None, axis=-2, shape=None, **attrs):
    """What DFT gives for x, compiled for the shape (texts are symbols), with constants for the length and the axis."""
    constants = [onnx.numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("length", length), ("axis", axis)) if v is not None]
    node = helper.make_node("DFT", ["x", "" if length is None else "length", "axis"], ["y"], **attrs)
    value = helper.make_tensor_value_info("x", DTYPES[x.dtype.name], x.shape if shape is None else shape)
    graph = helper.make_graph([node], "dft", [value], [onnx.ValueInfoProto(name="y")], constants)
    module = relayc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))
    return module["main"](x)


def pairs(z):
    return np.stack([z.real, z.imag], -1)


def signal(*shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def close(found, expected, dtype="float32"):
    """The error of a transform is about that of its largest element, in units of the last place, times the logarithm of the length."""
    relative = {"float32": 3e-6, "float64": 1e-14, "float16": 2e-3}[dtype]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * max(np.abs(expected).max(), 1e-30))


# One product, a large prime as a convolution, two factors, three of them, and a factor that is a large prime.
@pytest.mark.parametrize("length", [1, 13, 128, 257, 521, 360, 1024, 8192, 2 * 1031])
def test_lengths(length):
    x = signal(3, length, 2)
    z = x.astype("float64") @ [1, 1j]
    close(dft(x), pairs(np.fft.fft(z)))
    close(dft(x, inverse=1), pairs(np.fft.ifft(z)))


@pytest.mark.parametrize("length", [2, 15, 300, 1000])
def test_real_signals(length):
    x = signal(2, length, 1)
    half = np.fft.rfft(x[..., 0].astype("float64"))
    close(dft(x, onesided=1), pairs(half))
    close(dft(pairs(half).astype("float32"), length, onesided=1, inverse=1), x)


@pytest.mark.parametrize(("given", "length"), [(20, 31), (31, 20), (700, 512), (200, 512)])
def test_signals_are_cut_or_filled_up(given, length):
    x = signal(2, given, 1)
    close(dft(x, length), pairs(np.fft.fft(x[..., 0].astype("float64"), length)))
    close(dft(x, length, onesided=1, inverse=1), np.fft.irfft(x[..., 0].astype("float64"), length)[..., None])


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_axes(axis):
    x = signal(5, 6, 7, 2)
    z = x.astype("float64") @ [1, 1j]
    close(dft(x, axis=axis), pairs(np.fft.fft(z, axis=axis if axis >= 0 else axis + 1)))


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_dtypes(dtype):
    x = signal(2, 300, 2, dtype=dtype)
    found = dft(x)
    assert found.dtype == x.dtype
    close(found, pairs(np.fft.fft(x.astype("float64") @ [1, 1j])), dtype)


def test_symbolic_batches():
    for n in (1, 4):
        x = signal(n, 1000, 1)
        close(dft(x, shape=["n", 1000, 1], onesided=1), pairs(np.fft.rfft(x[..., 0].astype("float64"))))


@pytest.mark.parametrize("length", [1, 16, 61])
def test_symbolic_lengths(length):
    x = signal(3, length, 2)
    z = x.astype("float64") @ [1, 1j]
    close(dft(x, shape=[3, "n", 2]), pairs(np.fft.fft(z)))
    close(dft(x, shape=[3, "n", 2], inverse=1, axis=1), pairs(np.fft.ifft(z)))
    close(dft(x, shape=[3, "n", 2], length=20, axis=1), pairs(np.fft.fft(z, 20)))


@pytest.mark.parametrize("length", [16, 61])
def test_real_signals_of_symbolic_lengths(length):
    x = signal(3, length, 1)
    half = np.fft.rfft(x[..., 0].astype("float64"))
    close(dft(x, shape=[3, "n", 1], onesided=1), pairs(half))
    # Without a length that of the result is even.
    close(dft(pairs(half).astype("float32"), shape=[3, "n", 2], onesided=1, inverse=1), np.fft.irfft(half)[..., None])


@pytest.mark.parametrize("shape", [None, ["n", "samples", 1]])
def test_frames(shape):
    x, window = signal(2, 700, 1), np.hanning(96).astype("float32")
    constants = [onnx.numpy_helper.from_array(np.array(40), "step"), onnx.numpy_helper.from_array(window, "window")]
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape or x.shape)
    node = helper.make_node("STFT", ["x", "step", "window"], ["y"])
    graph = helper.make_graph([node], "stft", [value], [onnx.ValueInfoProto(name="y")], constants)
    module = relayc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10))
    frames = np.stack([x[:, s : s + 96, 0] * window for s in range(0, 700 - 95, 40)], 1)
    close(module["main"](x), pairs(np.fft.rfft(frames.astype("float64"))))
