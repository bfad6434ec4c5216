"""Functions of JAX by jax.export and StableHLO, compared with JAX: operators, control flow, open sizes, nested arguments, refusals."""

import re
import sys
from typing import NamedTuple

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from functools import partial  # noqa: E402 # there is JAX

import jax.numpy as jnp  # noqa: E402
from jax import export, lax  # noqa: E402
from jax_support import agrees, same, values  # noqa: E402

import relayc  # noqa: E402
from relayc.frontend.stablehlo import UnsupportedOperators, supported_operators  # noqa: E402

X, Y = values((4, 6), (4, 6))
I = np.array([[3, 0, 2, 1, 5, 4], [1, 1, 0, 7, -2, 3], [0, 2, 4, 5, 1, 3], [2, 2, 2, 0, 1, 5]], np.int32)  # noqa: E741
KEY = np.array([17, 42], np.uint32)
HALVES = np.array([-0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 0.49999997, -0.49999997, 8388609, -3.2, np.inf, -np.inf, np.nan], np.float32)


def spectral(x, w):
    """Products of the lowest frequencies with weights, as Fourier neural operators have them."""
    modes = jnp.fft.rfft(jnp.concatenate([x, x[:, ::-1]], 1), axis=1)
    low = jnp.einsum("im,iom->om", modes[:, :3], (w[0] + 1j * w[1])[:, None] * jnp.ones((4, 5, 1)))
    whole = lax.dynamic_update_slice(jnp.zeros((5, 7), jnp.complex64), low, (0, x[0, 0].astype(int) * 0))
    return jnp.fft.irfft(whole, 12, axis=1)


def largest_and_its_place(x, axis):
    """As jax.numpy.argmax, and the number as well."""

    def better(a, b):
        wins = (a[0] > b[0]) | (a[0] != a[0])
        first = wins | ((a[0] == b[0]) & (a[1] < b[1]))
        return lax.select(wins, a[0], b[0]), lax.select(first, a[1], b[1])

    return lax.reduce((x, lax.broadcasted_iota(np.int32, x.shape, axis)), (np.float32(-np.inf), np.int32(0)), better, (axis,))


def sums_and_products(a, b):
    return a[0] + b[0], a[1] * b[1]


def long_chain(a, b):
    """Longer than a region that is read."""
    c = a * b + a + b
    for _ in range(50):
        c = c * 1.0
    return c


def windows_of_known_begin(x):
    numbers = lax.GatherDimensionNumbers((0, 1), (), (0, 1))
    begin = [lax.gather(x, np.array(at, np.int32), numbers, (2, 3), mode="clip") for at in ((1, 2), (-1, 9), (3, 0))]
    column = lax.gather(x, np.array([[3], [0], [9]], np.int32), lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4), mode="clip")
    return begin, column


def writes_of_known_places(x, i):
    rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    batches = lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    whole = lax.dynamic_update_slice(x, x[::-1] * 2, (0, i[0, 0]))
    scalar = lax.scatter_add(x[0, 0], np.zeros((0,), np.int32), x[1, 1], lax.ScatterDimensionNumbers((), (), ()))
    known = lax.scatter_add(x, np.array([[0], [3], [0]], np.int32), x[:3], rows)
    batched = lax.scatter_mul(x, i[:, :2, None], x[:, 2:4], batches)
    return lax.scatter_add(x, np.array([[0], [4], [-1]], np.int32), x[:3], rows), whole, scalar, known, batched


# ---- functions of jax.numpy and lax -----------------------------------------------------------------------------------------------------

FUNCTIONS = {
    "softmax of a product": (lambda x, y: jax.nn.softmax(x @ y.T), X, Y),
    "activations": (lambda x: [f(x) for f in (jax.nn.gelu, jax.nn.silu, jax.nn.elu, jax.nn.softplus, jax.nn.sigmoid)], X),
    "exact gelu": (partial(jax.nn.gelu, approximate=False), X),
    "log of sums": (lambda x: (jax.nn.logsumexp(x, 1), jax.nn.log_softmax(x, 0)), X),
    "statistics": (lambda x: (x.mean(1), x.var(0), x.std(), jnp.median(x, 1), jnp.percentile(x, 30.0, axis=1)), X),
    "largest": (lambda x, i: (x.argmax(1), x.argmin(0), i.argmax(1), x.max(), i.min(0), x.prod(1)), X, I),
    "truth": (lambda x, i: (jnp.any(x > 1, 0), jnp.all(x < 2), (i & 1) == 0, ~(x > 0) ^ (i > 2)), X, I),
    "order": (lambda x, i: (jnp.sort(x, 1), jnp.argsort(-x, 0), lax.sort((i, x), num_keys=2), lax.top_k(x, 3)), X, I),
    "sums so far": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, reverse=True), lax.cumlogsumexp(x)), X),
    "taking": (lambda x, i: (jnp.take(x, i[0] % 4, axis=0), jnp.take_along_axis(x, i % 6, 1), x[1, ::2], x[i[0] % 4, i[1]]), X, I),
    "writing": (lambda x, i: (x.at[1, 2].set(5.0), x.at[i[0]].add(1.0), x.at[i[1], i[0]].max(0.5), x.at[:, 1:3].multiply(2)), X, I),
    "segments": (lambda x, i: jax.ops.segment_sum(x, i[:, 1], 3), X, I),
    "padding": (lambda x: (jnp.pad(x, 1, mode="reflect"), lax.pad(x, 9.0, ((1, -1, 2), (-2, 3, 0)))), X),
    "moving": (lambda x: (jnp.roll(x, 2, 1), jnp.flip(x, 0), jnp.tril(x), jnp.tile(x, (2, 1)), jnp.repeat(x, 2, 1)), X),
    "sums of products": (lambda x, y: (jnp.einsum("ij,kj->ki", x, y), jnp.einsum("ij,ij->", x, y), jnp.outer(x, y)), X, Y),
    "windows": (
        lambda x: [lax.reduce_window(x, v, f, (2, 3), (1, 2), "SAME") for v, f in ((-jnp.inf, lax.max), (0.0, lax.add), (1.0, lax.mul))],
        X,
    ),
    "dilated windows": (lambda x: lax.reduce_window(x, jnp.inf, lax.min, (2, 2), (1, 1), ((1, 0), (0, 1)), (1, 2), (2, 1)), X),
    "the gradient of pooling": (
        jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "VALID") ** 2).sum()),
        np.round(X),  # with ties
    ),
    "functions": (lambda x: [f(x) for f in (jnp.expm1, jnp.log1p, jnp.cbrt, jnp.arctan, jnp.sinh, jnp.arcsinh, jnp.round)], X + 2.5),
    "special functions": (lambda x: [f(x) for f in (jax.scipy.special.erf, jax.scipy.special.gammaln, jax.scipy.special.i0e)], abs(X)),
    "angles": (lambda x, y: (jnp.arctan2(x, y), jnp.hypot(x, y), jnp.sinc(x)), X, Y),
    "integers": (
        lambda i: (i // 2, i // jnp.full(i.shape, 3), i % 3, i << 2, i >> 1, lax.population_count(i), lax.clz(i), jnp.sign(i), i**3),
        I,
    ),
    "bits": (lambda x: (lax.bitcast_convert_type(x, jnp.int32), lax.bitcast_convert_type(x, jnp.uint8), jnp.nextafter(x, 1.0)), X),
    "products of truth": (lambda x, y: ((x > 1) @ (y > 1).T, jnp.vecdot(x > 1, y > 0), jnp.outer(x > 0, y > 0)), X, Y),
    "places of truth": (lambda x: (jnp.argmax(x > 0, 1), jnp.argmin(x > 0, 0), jnp.select([x > 1, x > 0], [x, 2 * x], 7.0)), X),
    "half precision": (lambda x: ((x.astype(jnp.bfloat16) * 2).astype(jnp.float32), x.astype(jnp.float16).sum(1).astype(jnp.float32)), X),
    "random numbers": (
        lambda k: (jax.random.uniform(jax.random.wrap_key_data(k), (3, 5)), jax.random.normal(jax.random.wrap_key_data(k), (4,))),
        KEY,
    ),
    "random choices": (
        lambda k, x: (jax.random.permutation(jax.random.wrap_key_data(k), 8), jax.random.categorical(jax.random.wrap_key_data(k), x)),
        *(KEY, X),
    ),
    "Fourier transforms": (lambda x: (jnp.abs(jnp.fft.fft(x)), jnp.fft.irfft(jnp.fft.rfft(x, 8)), jnp.fft.ifft2(jnp.fft.fft2(x)).real), X),
    "a layer of Fourier modes": (spectral, X, np.stack([X[:4, :3], Y[:4, :3]])),
    "writing complex numbers": (
        lambda x, i: (jnp.abs((x + 1j * x[::-1]).at[i[0] % 4].add(1j).at[1, i[1]].set(2 - 1j)), jnp.real((x * 1j).sum(1) * 1j)),
        *(X, I),
    ),
    "complex numbers": (lambda x: jnp.abs(jnp.exp(1j * x) * (x + 2j) / (3 - x[0] * 1j)), X),
    "interpolation": (lambda x: (jax.image.resize(x, (8, 9), "bilinear"), jnp.interp(x, jnp.arange(5.0), jnp.arange(5.0) ** 2)), X),
    "searching": (lambda x: (jnp.searchsorted(jnp.arange(-2.0, 3), x), jnp.histogram(x, 5)[0], jnp.unique(jnp.round(x), size=4)), X),
    "sums by a region of its own": (lambda x: lax.reduce(x, 0.0, lambda a, b: a * b + a + b, (1,)), X * 0.3),
    "regions of two numbers": (
        lambda x, y: lax.reduce((x, y), (np.float32(1), np.float32(2)), sums_and_products, (1,)),
        *(X, Y),
    ),
    "the largest and their places": (
        lambda x: (largest_and_its_place(x, 1), largest_and_its_place(x, 0)),
        np.array([[1, 5, 5, 2], [np.nan, 1, np.nan, 0], [-np.inf, -np.inf, 3, 3]], np.float32),
    ),
    "a region too long to read": (lambda x: lax.reduce(x, 0.5, long_chain, (0,)), X * 0.3),
    "reductions from another number": (
        lambda x, i: (
            [lax.reduce(x, x[0, 0], f, (1,)) for f in (lax.add, lax.max, lax.min, lax.mul)],
            [lax.reduce(i > 2, i[0, 0] > 9, f, (0,)) for f in (lax.bitwise_or, lax.bitwise_and, lax.max, lax.min)],
            [lax.reduce(i > 2, start, f, (0,)) for f in (lax.max, lax.min) for start in (False, True)],
            [lax.reduce(i[:, :0], np.int32(n), f, (1,)) for f, n in ((lax.bitwise_xor, 3), (lax.bitwise_or, 5))],
            [lax.reduce(i, np.int32(n), f, (1,)) for f, n in ((lax.bitwise_and, -1), (lax.bitwise_or, 0), (lax.max, 4))],
            jnp.sum(x, 1) * jnp.sum(x[:, :4], 0),
            jnp.sum(x[:, :1], 1) * jnp.sum(x, 1),
        ),
        *(X, I),
    ),
    "halves": (lambda x: (lax.round(x), lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)), HALVES),
    "bounds": (
        lambda x, i: (lax.clamp(-0.5, x, 0.75), lax.clamp(1, i, 3), lax.clamp(x - 1, X[::-1], x + 0.5), lax.clamp(-0.5, x, x[0, 0])),
        *(X, I),
    ),
    "bits of wider numbers": (
        lambda i: (
            lax.bitcast_convert_type(i.astype(jnp.uint8).reshape(4, 3, 2), jnp.uint16),
            lax.bitcast_convert_type(i[:, :4].astype(jnp.uint8), jnp.float32),
            lax.bitcast_convert_type(i[:, :4].astype(jnp.int8), jnp.int32),
            lax.bitcast_convert_type(i, jnp.uint32),
        ),
        I * 37,
    ),
    "windows of known begin": (windows_of_known_begin, X),
    "writes of known places": (writes_of_known_places, X, I),
    "slices of known begin": (lambda x: [lax.dynamic_slice(x, at, (2, 3)) for at in ((1, 2), (3, 5), (-9, 0))], X),
    "parts of complex numbers": (
        lambda x, i: [
            t.real - 2 * t.imag
            for z in [x + 1j * x[::-1]]
            for t in (z[i[0] % 4], lax.dynamic_slice(z, (i[0, 3], 2), (2, 3)), jnp.concatenate([z, z * 1j], 1), z[:, ::-1].T)
        ],
        *(X, I),
    ),
    "products without sums": (
        lambda x, y: (lax.dot_general(x, y, (((), ()), ((), ()))), lax.dot_general(x, y, (((), ()), ((0, 1), (0, 1))))),
        *(X, Y),
    ),
    "products of half precision": (
        lambda x, y: lax.dot_general(
            x.astype(jnp.bfloat16), y.astype(jnp.bfloat16), (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
        ),
        *(X, Y),
    ),
    "constants of few bits": (
        lambda x: (
            jnp.where(x[:, :1] > 0, *(jnp.asarray(np.linspace(n, 3, 300), jnp.bfloat16) for n in (-3, 1))).astype(jnp.float32),
            jnp.asarray([np.inf, -np.inf, np.nan, 1.5], jnp.bfloat16).astype(jnp.float32) + x[0, 0],
            jnp.asarray([np.inf, 65504, -0.0, 6e-8], jnp.float16).astype(jnp.float32) + x[0, 0] * 0,
            jnp.abs(np.linspace(1 + 2j, 3 - 1j, 200).astype(np.complex64) + x[0, 0]),
            jnp.abs(np.complex64(1 + 2j) + x),
        ),
        X,
    ),
    "padded truth": (lambda x: (jnp.pad(x > 0, 1), lax.pad(x > 0, True, ((0, 2, 1), (1, 0, 0)))), X),
    "windows with much padding": (
        lambda x: [lax.reduce_window(x, v, f, (2, 2), (1, 2), ((2, 0), (1, 3))) for v, f in ((-np.inf, lax.max), (0.0, lax.add))],
        X,
    ),
    "windows of one element": (lambda x: [lax.reduce_window(x, v, lax.add, (1, 1), (1, 1), "VALID") for v in (0.0, 2.0)], X),
    "numbers as they are": (lambda x, y: lax.optimization_barrier((x, y * 2)), X, Y),
    "a composite": (lambda x: lax.composite(lambda x: jnp.sin(x) * 2, "own.sine")(x), X),
    "quotients of single numbers": (
        lambda n, m: (n // m, n % m, n // 3, n % -3, jnp.int32(7) // jnp.int32(-2), jnp.int32(7) % jnp.int32(-2), jnp.int32(7) % m),
        *(np.int32(-17), np.int32(5)),
    ),
    "products in order": (lambda x: lax.associative_scan(lambda a, b: a @ b, x[:, :4].reshape(4, 2, 2)), X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gives_what_jax_gives(name):
    function, *args = FUNCTIONS[name]
    agrees(function, *args)


CONVOLUTIONS = {
    "same": dict(window_strides=(2, 1), padding="SAME"),
    "dilated": dict(window_strides=(1, 1), padding=((2, 1), (0, 3)), rhs_dilation=(2, 1)),
    "transposed": dict(window_strides=(1, 1), padding=((2, 2), (1, 2)), lhs_dilation=(2, 2)),
    "cropped": dict(window_strides=(1, 1), padding=((-1, 0), (1, -2))),
    "grouped": dict(window_strides=(1, 2), padding="VALID", feature_group_count=2),
    "transposed in a window that is larger": dict(window_strides=(1, 1), padding=((3, 0), (1, 2)), lhs_dilation=(2, 2)),
    "transposed beyond the last step": dict(window_strides=(1, 1), padding=((1, 4), (1, 2)), lhs_dilation=(2, 3)),
    "dilated data in steps": dict(window_strides=(2, 2), padding=((0, 0), (1, 1)), lhs_dilation=(2, 1)),
}


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolutions(kind):
    options = CONVOLUTIONS[kind]
    groups = options.get("feature_group_count", 1)
    sizes = dict(zip("NHWC", (2, 7, 8, 4), strict=True)), dict(zip("HWIO", (3, 2, 4 // groups, 6), strict=True))
    every_layout = [("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("CHWN", "IHWO", "NHWC")]

    def convolve(*arrays):
        pairs = zip(arrays[::2], arrays[1::2], every_layout, strict=True)
        return [lax.conv_general_dilated(x, k, dimension_numbers=layouts, **options) for x, k, layouts in pairs]

    shapes = [tuple(size[c] for c in layout) for x, kernel, _ in every_layout for size, layout in zip(sizes, (x, kernel), strict=True)]
    agrees(convolve, *values(*shapes), tolerance=1e-4)


def test_products_of_any_dimensions():
    a, b = values((2, 3, 4, 5), (5, 2, 6, 4))
    agrees(lambda a, b: lax.dot_general(a, b, (((3, 2), (0, 3)), ((0,), (1,)))), a, b)
    agrees(lambda a, b: lax.dot_general(a, b, (((3,), (0,)), ((), ()))), a, b)
    i = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    agrees(lambda i: lax.dot_general(i, i, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32), i)


def test_numbers_of_fewer_bits_have_the_bits_of_jax():
    edges = np.array([0, -0.0, np.inf, -np.inf, 65519, 65520, 6e-5, 2**-14, 2**-15, 1.5, 2.5, -3.4e38, 1e-45], np.float32)
    x = np.concatenate([edges, np.random.default_rng(8).integers(0, 0xFF800000, 2000, np.uint32).view(np.float32)])

    def rounded(x):
        return [lax.reduce_precision(x, e, m) for e, m in ((5, 10), (8, 7), (4, 3), (3, 0), (8, 23), (2, 20))]

    for found, wanted in zip(relayc.compile(relayc.from_jax(rounded, x))(x), rounded(x), strict=True):
        is_number = ~np.isnan(x)
        np.testing.assert_array_equal(found.view(np.uint32)[is_number], np.asarray(wanted).view(np.uint32)[is_number])
        assert np.isnan(found[~is_number]).all()


def pooled(x, size, padding="VALID"):
    return lax.reduce_window(x, -np.inf, lax.max, size, (1,) * x.ndim, padding)


def convolved_after_padding(x, padding, step):
    return lax.conv_general_dilated(x[None, None], X[None, None, :3, :3], (1, 1), padding, lhs_dilation=(step, step))


FOUR = values((2, 3, 4, 5))[0]
CHOSEN = {
    "rows of a product that come last, of which transposes cancel each other": (
        lambda x: lax.dot_general(x[0], x[1], (((2,), (2,)), ((0,), (0,)))).transpose(0, 2, 1),
        *(FOUR, {"nn_batch_matmul": 1, "transpose": 2}),
    ),
    "a convolution with padding": (partial(convolved_after_padding, padding=((0, 1), (0, 0)), step=1), X, {"nn_conv2d": 1, "nn_pad": 0}),
    **{
        f"a convolution of dilated data in {high} of {low}": (
            partial(convolved_after_padding, padding=((low, high), (2, 2)), step=2),
            *(X, {"nn_conv2d_transpose": count}),
        )
        for low, high, count in ((2, 2, 1), (3, 2, 0), (2, 3, 1), (2, 4, 0))
    },
    "a convolution along three axes": (lambda x: lax.conv(x[:, None], x[:, None, :2, :2], (1,) * 3, "VALID"), FOUR, {"nn_conv3d": 1}),
    **{
        f"windows with padding {low} before": (partial(pooled, size=(2, 2), padding=((low, 0), (1, 1))), X, {"nn_max_pool2d": count})
        for low, count in ((-1, 0), (0, 1), (1, 1), (2, 0))
    },
    "a sum times other numbers": (lambda x: x.sum(1) * x[:, 0], X, {"multiply": 1}),
    "windows along three axes": (partial(pooled, size=(1, 2, 2, 2)), FOUR, {"nn_max_pool3d": 1}),
    "windows along four axes": (partial(pooled, size=(2, 2, 2, 2)), FOUR, {"nn_max_pool3d": 0}),
    **{f"the largest of {n} so far": (lambda i: lax.cummax(i, 0), I[0, :n], {"concat": steps}) for n, steps in ((2, 1), (4, 2), (5, 3))},
    "leading zeros": (lambda i: lax.clz(i), I, {"right_shift": 10}),
    "writes to the first and the last row": (
        lambda x: lax.scatter_add(x, np.array([[0], [3]], np.int32), x[:2], lax.ScatterDimensionNumbers((1,), (0,), (0,))),
        *(X, {"scatter_nd": 1, "logical_and": 0}),
    ),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_which_operators_are_chosen(name):
    function, x, wanted = CHOSEN[name]
    module = relayc.from_jax(function, x)
    found = [op.operation.name.rpartition(".")[2] for op in module.main.regions[0].blocks[0].operations]
    assert {name: found.count(name) for name in wanted} == wanted


def test_gathers_and_scatters_clamp_and_drop():
    starts = np.array([[0, 0], [3, 9], [-4, 2], [1, 5]], np.int32)
    windows = lax.GatherDimensionNumbers((1, 2), (), (0, 1))
    agrees(lambda x, i: lax.gather(x, i, windows, (2, 3), mode="clip"), X, starts)
    written = lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
    updates = values((4, 2, 3))[0]
    agrees(lambda x, i, u: lax.scatter_add(x, i, u, written, mode="drop"), X, starts, updates)
    agrees(lambda x, i: lax.dynamic_update_slice(lax.dynamic_slice(x, (i, i + 4), (2, 3)), x[:1, :2], (i, 5)), X, np.int32(3))


# ---- control flow -----------------------------------------------------------------------------------------------------------------------


def test_branches():
    function = lambda x, i: lax.switch(i, [jnp.sin, lambda x: x * x, lambda x: x[::-1]], x)  # noqa: E731
    module = agrees(function, X, np.int32(1), more=[(X, np.int32(n)) for n in (-3, 0, 2, 9)])
    assert len(module.inputs) == 2
    agrees(lambda x: lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x), X, more=[(-X,)])


def test_loops():
    agrees(lambda x, n: lax.fori_loop(0, n, lambda i, c: (c[0] + i * c[1], c[1] * 0.5), (x, x)), X, np.int32(4), more=[(X, np.int32(0))])
    agrees(lambda x: lax.while_loop(lambda c: jnp.abs(c).max() > 0.1, lambda c: c / 2, x), X)
    agrees(lambda x: lax.scan(lambda c, r: (c + r, {"product": c * r}), x[0], x), X)
    agrees(lambda x: lax.map(jnp.sin, x), X)


def test_a_scan_over_an_open_number_of_rows_is_one_program():
    function = lambda x: lax.scan(lambda c, r: (c + r * x.shape[1], c * r), x[0], x, reverse=True)  # noqa: E731
    agrees(function, X, open_sizes="rows, columns", more=[values((1, 3)), values((7, 2))])


# ---- open sizes -------------------------------------------------------------------------------------------------------------------------

OPEN = {
    "softmax": (lambda x: jax.nn.softmax(x, 0), "a, b"),
    "mean": (lambda x: (x.mean(), x.mean(1), jnp.var(x, 0)), "a, b"),
    "halves": (lambda x: x.reshape(-1)[: x.size // 2], "a, b"),
    "joined": (lambda x: jnp.concatenate([x, x[:, :1], x * 2], 1), "a, b"),
    "positions": (lambda x: jnp.tril(x) + jnp.arange(x.shape[1]), "a, b"),
    "cumsum": (lambda x: jnp.cumsum(x, 1), "a, b"),
    "pooling": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "SAME"), "a, b"),
    "sorted": (lambda x: (jnp.sort(x, 1), x.argmax(0)), "a, b"),
    "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (x.shape[0], 3, x.shape[1])) * x.shape[0], "a, b"),
    "padded": (lambda x: jnp.pad(x, ((1, 2), (0, 3))), "a, b"),
    "every second": (lambda x: x[::2], "a, b"),
    "padded by sizes": (lambda x: jnp.pad(x, ((0, x.shape[0]), (1, 0)), constant_values=0.5), "a, b"),
    "half the sign": (lambda x: x * jnp.sign(jnp.array(x.shape[0]) / 2), "a, b"),
    "sizes in a row": (lambda x: x.sum() * lax.slice(jnp.array([x.shape[0], x.shape[1], 3]), (1,), (3,)), "a, b"),
    "the largest of all": (lambda x: lax.top_k(x, x.shape[1]), "a, b"),
    "quotients": (lambda x: x.reshape(-1)[: x.size // (x.shape[1] + 1)] * (x.shape[0] % x.shape[1]), "a, b"),
}


@pytest.mark.parametrize("name", OPEN)
def test_one_program_for_all_sizes(name):
    function, sizes = OPEN[name]
    agrees(function, X, open_sizes=sizes, more=[values((1, 2)), values((5, 9)), values((6, 1))])


def test_symbols_keep_their_names_and_relations():
    batch, half = export.symbolic_shape("batch, half")
    spec = jax.ShapeDtypeStruct((batch, 2 * half), jnp.float32), jax.ShapeDtypeStruct((half,), jnp.float32)
    mod = relayc.from_jax(lambda x, y: x.reshape(batch, 2, half) + y, *spec)
    module = relayc.compile(mod)
    assert [str(spec) for spec in module.inputs] == ["float32[batch, 2*half]", "float32[half]"]
    x, y = values((3, 8), (4,))
    same(module(x, y), x.reshape(3, 2, 4) + y)
    with pytest.raises(ValueError, match="half"):
        module(x, values((3,))[0])


def test_sizes_below_what_jax_expects_are_refused():
    module = relayc.compile(relayc.from_jax(lambda x: x * 2, X, polymorphic_shapes="b, 6"))
    with pytest.raises(ValueError, match="b"):
        module(np.zeros((0, 6), np.float32))


def test_a_convolution_at_open_sizes():
    x, kernel = values((1, 6, 5, 3), (3, 3, 3, 4))
    function = lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))  # noqa: E731
    agrees(function, x, kernel, open_sizes=("b, h, 5, 3", None), more=[(values((2, 9, 5, 3))[0], kernel)], tolerance=1e-4)


# ---- what a call takes and gives --------------------------------------------------------------------------------------------------------


def test_nested_arguments_and_results():
    function = lambda params, x, *, scale: {"y": x @ params["w"] * scale, "parts": [params["b"][0], (x,)]}  # noqa: E731
    x, w, b = values((2, 3), (3, 4), (4,))
    params = {"w": w, "b": (b, b * 2)}
    module = relayc.compile(relayc.from_jax(function, params, x, scale=np.float32(2)))
    assert [spec.name for spec in module.inputs] == ["params_b_0", "params_w", "x", "scale"]
    same(module(params, x, scale=np.float32(3)), function(params, x, scale=np.float32(3)))
    same(module(params, jnp.asarray(x), scale=3.0), function(params, x, scale=np.float32(3)))
    with pytest.raises(TypeError, match="params"):
        module({"w": w}, x, scale=1.0)


class Point(NamedTuple):
    x: np.ndarray
    y: np.ndarray


class Own:
    def __init__(self, part):
        self.part = part


jax.tree_util.register_pytree_node(Own, lambda own: ((own.part,), None), lambda _, parts: Own(*parts))


def test_named_tuples_are_arguments_and_results():
    module = relayc.compile(relayc.from_jax(lambda p, q: Point(p.x + q[0], {"b": p.y, "a": None}), Point(X, Y), [X]))
    assert [spec.name for spec in module.inputs] == ["p_x", "p_y", "q_0"]
    found = module(Point(X, Y), [Y])
    assert type(found) is Point and list(found.y) == ["a", "b"] and found.y["a"] is None
    same(found.x, X + Y)
    same(found.y["b"], Y)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        *((lambda x: x.part * 2, [Own(X)]), (lambda x: Own(x * 2), [X]), (lambda x: {"a": [Own(x[0] * 2)]}, [(X,)])),
        (lambda x: (None, {"a": Own(x * 2), "b": None}), [X]),
        (lambda x: x[1] * 2, [{1: X, 2.5: X}]),
    ],
    ids=["argument", "result", "nested", "beside others", "by numbers"],
)
def test_a_class_of_its_own_has_only_the_program_underneath(function, args):
    module = relayc.compile(relayc.from_jax(function, *args))
    for call in (module, module["main"]):
        same(call(X), X * 2)


def test_a_function_without_a_signature_names_its_arguments_by_their_places():
    module = relayc.compile(relayc.from_jax(dict, {"a": X}, b=Y))
    assert [spec.name for spec in module.inputs] == ["arg0_a", "b"]
    same(module({"a": Y}, b=X), {"a": Y, "b": X})


def test_progress_counts_operators():
    seen = []
    relayc.from_jax(lambda x: jnp.sin(jnp.cos(x)), X, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3)]


def test_exported_programs_texts_and_files_compile(tmp_path):
    exported = export.export(jax.jit(lambda x: jnp.tanh(x).sum(0)), platforms=["cpu"])(X)
    wanted = np.tanh(X).sum(0)
    same(relayc.compile(exported)(X), wanted)
    for program in (exported.mlir_module(), exported.mlir_module_serialized):
        same(relayc.compile(relayc.from_stablehlo(program))["main"](X), wanted)
    (tmp_path / "f.jax").write_bytes(exported.serialize())
    (tmp_path / "f.stablehlo").write_text(exported.mlir_module())
    (tmp_path / "g.stablehlo").write_bytes(exported.mlir_module_serialized)
    for name in ("f.jax", "f.stablehlo", "g.stablehlo"):
        same(relayc.compile(tmp_path / name)["main"](X), wanted)


def test_open_sizes_of_a_text_have_names_and_may_be_given():
    exported = export.export(jax.jit(lambda x: x.sum(1)), platforms=["cpu"])(
        jax.ShapeDtypeStruct(export.symbolic_shape("b, n"), jnp.float32)
    )
    module = relayc.compile(relayc.from_stablehlo(exported.mlir_module(), shapes={"arg0": ["rows", 6]}))
    assert str(module.inputs[0]) == "float32[rows, 6]"
    same(module["main"](X), X.sum(1))


# ---- refusals ---------------------------------------------------------------------------------------------------------------------------


def test_everything_that_is_refused_is_named_with_its_lines():
    def function(x):
        return jnp.linalg.solve(x[:, :4], x), jnp.linalg.svd(x)[1]

    with pytest.raises(UnsupportedOperators) as caught:
        relayc.from_jax(function, X)
    assert set(caught.value.operators) >= {"custom_call @lapack_sgetrf_ffi", "custom_call @lapack_sgesdd_ffi"}
    assert re.search(r"test_jax\.py:\d+", str(caught.value))


def open_rows(function):
    """A function to which the number of rows is open."""
    return lambda: relayc.from_jax(function, X, polymorphic_shapes="rows, 6")


def convolved(*sizes, **options):
    x, kernel = values(*sizes)
    return lambda: relayc.from_jax(lambda x, k: lax.conv_general_dilated(x, k, (1,) * (x.ndim - 2), "SAME", **options), x, kernel)


REFUSED = {
    "a complex input": (
        lambda: relayc.from_jax(jnp.abs, X + 1j),
        r"input \w+: expected a tensor of real numbers, found tensor<4x6xcomplex",
    ),
    "a complex output": (lambda: relayc.from_jax(lambda x: (x, x * 1j), X), "output 1: expected real numbers, found complex ones"),
    "complex branches": (
        lambda: relayc.from_jax(lambda x: lax.cond(x[0, 0] > 0, lambda x: x * 1j, lambda x: x + 0j, x).real, X),
        "stablehlo.case of complex numbers",
    ),
    "a complex function": (lambda: relayc.from_jax(lambda x: jnp.tanh(x * 1j).real, X), "stablehlo.tanh of complex numbers"),
    "a complex product": (lambda: relayc.from_jax(lambda x: (x * 1j).prod().real, X), r"expected a sum of complex.*multiply\(x0,x1\)"),
    "two complex sums": (
        lambda: relayc.from_jax(lambda x: lax.reduce((x * 1j, x), (0j, 0.0), lambda a, b: (a[0] + b[0], a[1] + b[1]), (0,))[0].real, X),
        r"expected a sum of complex numbers, found add\(x0,x2\) add\(x1,x3\)",
    ),
    "a dtype": (lambda: relayc.from_jax(lambda x: x.astype(jnp.float8_e3m4).astype(jnp.float32), X), "convert of tensor<4x6xf8E3M4>"),
    "functions at places": (lambda: relayc.from_jax(lambda x: x.at[0].apply(jnp.sin), X), r"expected updates.*found sine\(x0\)"),
    "differences at places": (lambda: relayc.from_jax(lambda x: x.at[0].subtract(2), X), r"expected updates.*found subtract\(x0,x1\)"),
    "complex products at places": (
        lambda: relayc.from_jax(lambda x: (x * 1j).at[0].multiply(2j).real, X),
        r"expected updates that replace.*found multiply\(x0,x1\)",
    ),
    "a region along an open axis": (
        open_rows(lambda x: lax.reduce(x, np.float32(0), lambda a, b: a * b + a + b, (0,))),
        r"of an axis of known size, found add\(add\(multiply\(x0,x1\),x0\),x1\)",
    ),
    "a long region along an open axis": (open_rows(lambda x: lax.reduce(x, np.float32(0), long_chain, (0,))), "known size, found "),
    "large windows": (
        lambda: relayc.from_jax(lambda x: lax.reduce_window(x, 0.0, lambda a, b: a * b + a + b, (64, 65), (1, 1), "SAME"), X),
        r"windows of at most 4096 elements, found \[64, 65\]",
    ),
    "open windows": (open_rows(lambda x: lax.reduce_window(x, 0.0, lax.add, (x.shape[0], 2), (1, 1), "VALID")), r"4096 elements, found \["),
    "open steps": (
        open_rows(lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (x.shape[0], 1), "VALID")),
        "expected steps of windows that are numbers, found expressions",
    ),
    "windows of dilated data": (
        lambda: relayc.from_jax(lambda x: lax.reduce_window(x, 1.0, lax.add, (2, 2), (1, 1), "VALID", (2, 1)), X),
        "expected windows of elements side by side",
    ),
    "windows of dilated data and a region": (
        lambda: relayc.from_jax(lambda x: lax.reduce_window(x, 0.0, lambda a, b: a * b + a + b, (2, 2), (1, 1), "VALID", (2, 1)), X),
        "expected windows of elements side by side",
    ),
    "four spatial axes": (convolved((1, 1, 2, 2, 2, 2), (1, 1, 1, 1, 1, 1)), "one to three spatial axes.*found 4 axes, 1 groups"),
    "groups of batches": (convolved((2, 4, 6, 6), (4, 4, 3, 3), batch_group_count=2), "one group of batches.*found 2 axes, 2 groups"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_what_was_found(name):
    convert, message = REFUSED[name]
    with pytest.raises(relayc.ModelError, match=message):
        convert()


def test_an_order_of_its_own_is_an_error_that_names_the_line():
    text = export.export(jax.jit(jnp.sort), platforms=["cpu"])(X).mlir_module()
    with pytest.raises(relayc.ModelError, match=r"operator stablehlo\.sort.*expected an order by the operands.*ne\("):
        relayc.from_stablehlo(text.replace("compare  LT", "compare LT").replace("compare LT", "compare NE"))


def test_what_is_no_program_is_an_error(tmp_path):
    with pytest.raises(relayc.ModelError, match="does not parse"):
        relayc.from_stablehlo("module {")
    with pytest.raises(TypeError, match="expected the text or the bytecode"):
        relayc.from_stablehlo(3)
    with pytest.raises(relayc.ModelError, match="found no file"):
        relayc.compile("missing.stablehlo")
    (tmp_path / "f.jax").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(relayc.ModelError, match=r"f\.jax: expected a program of StableHLO, found one that JAX cannot load"):
        relayc.compile(tmp_path / "f.jax")


def test_jax_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ModuleNotFoundError, match=r"expected JAX .* pip install relayc\[jax\]") as caught:
        relayc.from_stablehlo("module {}")
    assert caught.value.name == "jax"


def test_operators_with_a_converter_are_listed():
    found = supported_operators()
    assert found == sorted(found) and {"stablehlo.add", "chlo.erf", "custom_call @shape_assertion"} <= {*found}
