"""Fourier transforms of the ONNX frontend, against numpy in float64 and ONNX Runtime."""

from functools import lru_cache

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import relayc
from relayc.dialects.relay.fourier import LARGEST_FACTOR, plan_of
from relayc.frontend.onnx import from_onnx
from relayc.pipelines.evaluate.relay import RelayInterpreter

DTYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16}


def dft_model(dtype, shape, length=None, axis=-2, **attrs):
    """A model of DFT with constants for the length and the axis."""
    constants = [onnx.numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("length", length), ("axis", axis)) if v is not None]
    node = helper.make_node("DFT", ["x", "" if length is None else "length", "axis"], ["y"], **attrs)
    value = helper.make_tensor_value_info("x", DTYPES[dtype], shape)
    graph = helper.make_graph([node], "dft", [value], [onnx.ValueInfoProto(name="y")], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def dft(x, length=None, axis=-2, **attrs):
    """What DFT gives for x, compiled for its shape."""
    return relayc.compile(dft_model(x.dtype.name, x.shape, length, axis, **attrs))["main"](x)


@lru_cache
def symbolic(parts, dtype="float32", **attrs):
    """DFT of [b, n, parts], compiled once for all sizes."""
    return relayc.compile(dft_model(dtype, ["b", "n", parts], **attrs))


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


def way_of(mod):
    """How often a program multiplies matrices, and transforms by factors."""
    names = [str(op.operation.name) for op in mod.main.body.blocks[0].operations]
    return names.count("relay.nn_matmul"), names.count("relay.fft")


def interpreted(mod, x):
    (found,) = RelayInterpreter(mod)("main", [x])
    return found


# On both sides of the limits: of lengths of small factors, of factors that take a step of their own (7, 13), and of large primes.
PRODUCT, FACTORS, CONVOLUTION = (1, 0), (0, 1), (0, 2)
WAYS = {
    **{1: PRODUCT, 25: PRODUCT, 27: FACTORS, 28: PRODUCT, 35: FACTORS, 39: PRODUCT, 42: FACTORS, 64: FACTORS},
    **{107: PRODUCT, 109: CONVOLUTION, 157: PRODUCT, 163: CONVOLUTION},
}


@pytest.mark.parametrize("length", WAYS)
def test_a_transform_takes_what_is_fastest(length):
    x = signal(2, length, 2)
    z = x.astype("float64") @ [1, 1j]
    for inverse, expected in ((0, np.fft.fft(z)), (1, np.fft.ifft(z))):
        mod = from_onnx(dft_model("float32", x.shape, inverse=inverse))
        assert way_of(mod) == WAYS[length]
        close(interpreted(mod, x), pairs(expected))


WAYS_OF_REAL = {
    **{49: PRODUCT, 96: PRODUCT, 98: PRODUCT, 100: FACTORS, 135: FACTORS, 168: FACTORS},
    **{719: PRODUCT, 727: CONVOLUTION, 2 * 359: PRODUCT, 2 * 367: CONVOLUTION},
}


@pytest.mark.parametrize("length", WAYS_OF_REAL)
def test_a_transform_of_real_signals_takes_what_is_fastest(length):
    """Half of the frequencies, and lines of half the length where that is even."""
    x = signal(2, length, 1)
    half = pairs(np.fft.rfft(x[..., 0].astype("float64"))).astype("float32")
    for rows, size, expected, inverse in ((x, None, half, 0), (half, length, x, 1)):
        mod = from_onnx(dft_model("float32", rows.shape, size, onesided=1, inverse=inverse))
        assert way_of(mod) == WAYS_OF_REAL[length]
        if length < 500:  # others take seconds to interpret
            close(interpreted(mod, rows), expected)


@pytest.mark.parametrize(("length", "parts", "inverse"), [(1, 2, 0), (12, 1, 0), (12, 2, 1), (67, 2, 1)])
def test_transforms_of_lengths_that_the_program_knows(length, parts, inverse):
    x = signal(1, length, parts)
    z = x.astype("float64") @ [1, 1j][:parts]
    found = interpreted(from_onnx(dft_model("float32", ["b", "n", parts], inverse=inverse)), x)
    close(found, pairs(np.fft.ifft(z) if inverse else np.fft.fft(z)))


@pytest.mark.parametrize("length", [2, 12, 134])
def test_real_signals_of_lengths_that_the_program_knows(length):
    x = signal(1, length, 1)
    half = pairs(np.fft.rfft(x[..., 0].astype("float64"))).astype("float32")
    close(interpreted(from_onnx(dft_model("float32", ["b", "n", 2], onesided=1, inverse=1)), half), x)


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


def test_a_signal_is_cut_before_a_convolution():
    """It is as long as the power of two for the convolution, whose last elements are those before the first."""
    x = signal(1, 256, 2)
    mod = from_onnx(dft_model("float32", x.shape, 109))
    assert way_of(mod) == CONVOLUTION
    close(interpreted(mod, x), pairs(np.fft.fft(x.astype("float64") @ [1, 1j], 109)))


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_axes(axis):
    x = signal(5, 6, 7, 2)
    z = x.astype("float64") @ [1, 1j]
    close(dft(x, axis=axis), pairs(np.fft.fft(z, axis=axis if axis >= 0 else axis + 1)))


@pytest.mark.parametrize("parts", [1, 2])
def test_no_signals(parts):
    assert dft(signal(0, 521, parts)).shape == (0, 521, 2)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_dtypes(dtype):
    x = signal(2, 300, 2, dtype=dtype)
    found = dft(x)
    assert found.dtype == x.dtype
    close(found, pairs(np.fft.fft(x.astype("float64") @ [1, 1j])), dtype)


def test_symbolic_batches():
    module = relayc.compile(dft_model("float32", ["n", 1000, 1], onesided=1))["main"]
    for n in (1, 4, 17):
        x = signal(n, 1000, 1)
        close(module(x), pairs(np.fft.rfft(x[..., 0].astype("float64"))))


# All short ones; on both sides of the longest lines side by side (1024), and of the largest factor (61) and its multiples; primes,
# powers of 2, 3, 5 and 7, and numbers of many factors; a prime and its double above the largest factor, where a convolution is taken.
LENGTHS = [
    *range(1, 65),
    67,
    122,
    127,
    134,
    243,
    256,
    343,
    625,
    720,
    997,
    1000,
    1009,
    1023,
    1024,
    1025,
    2018,
    2048,
    4097,
    4099,
    5040,
    65536,
]


@pytest.mark.parametrize(("parts", "inverse"), [(2, 0), (2, 1), (1, 1)])
def test_symbolic_lengths(parts, inverse):
    module = symbolic(parts, inverse=inverse)["main"]
    for length in LENGTHS:
        for batch in [1, 3, 17] if length < 1100 else [1 + length % 2]:
            x = signal(batch, length, parts, seed=length)
            z = x.astype("float64") @ [1, 1j][:parts]
            close(module(x), pairs(np.fft.ifft(z) if inverse else np.fft.fft(z)))


def test_real_signals_of_symbolic_lengths():
    forward, backward = symbolic(1, onesided=1)["main"], symbolic(2, onesided=1, inverse=1)["main"]
    for length in LENGTHS:
        x = signal(3, length, 1, seed=length)
        half = np.fft.rfft(x[..., 0].astype("float64"))
        close(forward(x), pairs(half))
        if half.shape[1] > 1:
            # Without a length that of the result is even. Imaginary parts that are none of real rows count for nothing.
            half[:, 0] += 1j
            close(backward(pairs(half).astype("float32")), np.fft.irfft(half)[..., None])


def test_symbolic_signals_are_cut_or_filled_up():
    module = relayc.compile(dft_model("float32", ["b", "n", 2], length=134))["main"]
    product = relayc.compile(dft_model("float32", ["b", "n", 1], length=96, onesided=1))["main"]
    for count in (0, 1, 95, 96, 97, 133, 134, 135, 1030):
        x = signal(2, count, 2)
        close(module(x), pairs(np.fft.fft(np.concatenate([x @ [1, 1j], np.zeros((2, 134))], 1, dtype=complex), 134)))
        close(product(x[..., :1]), pairs(np.fft.rfft(np.concatenate([x[..., 0], np.zeros((2, 96))], 1, dtype=float), 96)))


def test_an_inner_axis_of_symbolic_length():
    module = relayc.compile(dft_model("float32", ["a", "n", "c", 2], axis=1))["main"]
    for length in (12, 67, 1030):
        x = signal(2, length, 5, 2)
        close(module(x), pairs(np.fft.fft(x.astype("float64") @ [1, 1j], axis=1)))


def test_nothing_to_transform():
    for shape in ((0, 12, 2), (3, 0, 2)):
        assert symbolic(2, inverse=0)["main"](signal(*shape)).shape == shape


SMALL = [2, 3, 4, 5, 7, 8, 16, 31, LARGEST_FACTOR]


@st.composite
def limits(draw):
    """Lengths around what the plan of a transform decides by: products of factors with code of their own and of others, and what is one
    off; batches around a vector's lanes."""
    length = 1
    for factor in draw(st.lists(st.sampled_from(SMALL), min_size=1, max_size=6)):
        length *= factor if length * factor <= 3000 else 1
    return max(1, length + draw(st.integers(-1, 1))), draw(st.sampled_from([1, 2, 7, 8, 9, 15, 16, 17, 33]))


@settings(max_examples=60, deadline=None, derandomize=True, phases=[Phase.generate])
@given(limits())
def test_sizes_around_the_limits_of_plans(sizes):
    length, batch = sizes
    x = signal(batch, length, 2, seed=length + batch, dtype="float64")
    found = symbolic(2, "float64")["main"](x)
    close(found, pairs(np.fft.fft(x @ [1, 1j])), "float64")


def test_plans_have_the_factors():
    for length in [*range(1, 200), 997, 61 * 61 * 2, 62 * 67, 1 << 40]:
        left, count, *factors = plan_of(length)
        assert count == len(factors) and left * np.prod(factors, dtype=object) == length
        assert all(left % f for f in range(2, LARGEST_FACTOR + 1)) or left == 1


def test_errors_are_below_those_of_onnx_runtime():
    """Relative root mean square errors."""
    session = onnxruntime.InferenceSession(dft_model("float32", ["b", "n", 2]).SerializeToString())
    module = symbolic(2, inverse=0)["main"]
    for length in (64, 100, 997, 1024, 4096):
        x = signal(4, length, 2)
        z = pairs(np.fft.fft(x.astype("float64") @ [1, 1j]))
        theirs, ours = (np.sqrt(np.mean((found - z) ** 2) / np.mean(z**2)) for found in (session.run(None, {"x": x})[0], module(x)))
        assert ours < theirs


def test_threads_change_no_bit():
    module, x = symbolic(2, inverse=0), signal(70, 1000, 2)
    module.num_threads = 1
    alone = module["main"](x)
    module.num_threads = 2
    np.testing.assert_array_equal(module["main"](x), alone)


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
