"""Functions of JAX by jax.export and StableHLO, compared with JAX: operators, control flow, open sizes, nested arguments, refusals."""

import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from functools import partial  # noqa: E402 # there is JAX

import jax.numpy as jnp  # noqa: E402
from jax import export, lax  # noqa: E402
from jax_support import agrees, same, values  # noqa: E402

import relayc  # noqa: E402
from relayc.frontend.stablehlo import UnsupportedOperators  # noqa: E402

X, Y = values((4, 6), (4, 6))
I = np.array([[3, 0, 2, 1, 5, 4], [1, 1, 0, 7, -2, 3], [0, 2, 4, 5, 1, 3], [2, 2, 2, 0, 1, 5]], np.int32)  # noqa: E741
KEY = np.array([17, 42], np.uint32)


def spectral(x, w):
    """Products of the lowest frequencies with weights, as Fourier neural operators have them."""
    modes = jnp.fft.rfft(jnp.concatenate([x, x[:, ::-1]], 1), axis=1)
    low = jnp.einsum("im,iom->om", modes[:, :3], (w[0] + 1j * w[1])[:, None] * jnp.ones((4, 5, 1)))
    whole = lax.dynamic_update_slice(jnp.zeros((5, 7), jnp.complex64), low, (0, x[0, 0].astype(int) * 0))
    return jnp.fft.irfft(whole, 12, axis=1)


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
    "integers": (lambda i: (i // 2, i % 3, i << 2, i >> 1, lax.population_count(i), lax.clz(i), jnp.sign(i), i**3), I),
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
    agrees(function, x, kernel, open_sizes=("b, h, w, 3", None), more=[(values((2, 9, 8, 3))[0], kernel)], tolerance=1e-4)


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


def test_exported_programs_texts_and_files_compile(tmp_path):
    exported = export.export(jax.jit(lambda x: jnp.tanh(x).sum(0)), platforms=["cpu"])(X)
    wanted = np.tanh(X).sum(0)
    same(relayc.compile(exported)(X), wanted)
    for program in (exported.mlir_module(), exported.mlir_module_serialized):
        same(relayc.compile(relayc.from_stablehlo(program))["main"](X), wanted)
    (tmp_path / "f.jax").write_bytes(exported.serialize())
    (tmp_path / "f.stablehlo").write_text(exported.mlir_module())
    for name in ("f.jax", "f.stablehlo"):
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


def test_an_order_of_its_own_is_an_error_that_names_the_line():
    text = export.export(jax.jit(jnp.sort), platforms=["cpu"])(X).mlir_module()
    with pytest.raises(relayc.ModelError, match=r"operator stablehlo\.sort.*expected an order by the operands.*ne\("):
        relayc.from_stablehlo(text.replace("compare  LT", "compare LT").replace("compare LT", "compare NE"))


def test_what_is_no_program_is_an_error():
    with pytest.raises(relayc.ModelError, match="does not parse"):
        relayc.from_stablehlo("module {")
    with pytest.raises(TypeError, match="expected the text or the bytecode"):
        relayc.from_stablehlo(3)
    with pytest.raises(relayc.ModelError, match="found no file"):
        relayc.compile("missing.stablehlo")
