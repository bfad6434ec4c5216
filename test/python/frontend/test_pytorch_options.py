"""Operators of PyTorch with options that few models use, a few in each small program, compared with eager."""

import math

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402 # there is torch
from pytorch_models import agrees, drawn, model_of  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import relayc  # noqa: E402
from relayc.frontend.pytorch.fx import from_fx  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
NAN, INF = math.nan, math.inf
aten, special = torch.ops.aten, torch.special


X, Y = drawn(3, 5), drawn(3, 5, seed=1)
I = torch.tensor([[3, -2, 0, 7], [1, 1, -5, 0]])  # noqa: E741


def check(function, *args, tolerance=1e-5, **options):
    """Torch marks tensors that an export takes for dynamic: it gets copies."""
    agrees(model_of(function), tuple(x.clone() for x in args), tolerance=tolerance, **options)


def test_activations():
    edges = torch.tensor([-INF, -3.5, -0.25, -0.0, 0.25, 1.0, 1.75, 30.0, NAN])
    check(
        lambda x: (
            *(F.leaky_relu(x, 0.1), F.celu(x, 0.5), F.elu(x, 0.7), aten.elu(x, 1.5, 2.0, 0.5), F.softplus(x, 2.0, 3.0)),
            *(aten.rrelu_with_noise(x, torch.ones_like(x), 0.1, 0.4, False), F.rrelu(x, 0.2, 0.4)),
            *(torch.softmax(x[1], 0), torch.log_softmax(x[1], 0), torch.softmax(x[0], 0)),
        ),
        edges,
    )


def test_clamps():
    """With numbers, tensors and sizes."""
    any_rows = ({0: torch.export.Dim.DYNAMIC},) * 2
    bounded = model_of(lambda x, y: (x.clamp(-0.5), x.clamp(max=0.25), x.clamp(y), x.clamp(max=y), x.clamp(x.shape[0] - 3)))
    agrees(bounded, (X.clone(), Y.clone()), dynamic_shapes=any_rows, more=[(X[:2], Y[:2])])
    for bounds, has in (((-1.5, 2), True), ((1 << 53, None), False)):
        text = str(relayc.from_pytorch(model_of(lambda x, bounds=bounds: x.clamp(*bounds)), (X,)))
        assert ("relay.clip" in text) is has


def test_numbers():
    x = torch.tensor([-INF, -2.5, -1.0, -0.0, 0.0, 0.5, 3.0, 1e-40, INF, NAN])
    check(
        lambda x: (
            *(x.angle(), x.sinc(), *x.frexp(), torch.hypot(x, x.flip(0)), x.abs() ** 1.7, 2.0**x),
            *(special.zeta(x.abs() + 0.5, x.abs() + 0.5), special.chebyshev_polynomial_t(x.clamp(-1, 1), 4)),
        ),
        x.nan_to_num(0.75, 2.25, -1.75),
    )


def test_mantissas_at_the_edges():
    check(lambda x: torch.frexp(x), torch.tensor([-INF, -7.25, -0.0, 0.0, 1.0, 1e-40, 3e38, INF, NAN]))


def test_bessel_functions_of_the_second_kind():
    x = torch.tensor([0.0, 1e-3, 0.7, 7.99, 8.01, 13.99, 14.01, 60.0, -1.0, NAN])
    check(lambda x: (special.bessel_y1(x), special.modified_bessel_k0(x), special.scaled_modified_bessel_k1(x)), x, tolerance=2e-5)


def test_spherical_bessel_function_at_infinity():
    """Its limit, where eager gives NaN."""
    x = torch.tensor([-INF, 0.0, 2.0, INF])
    found = relayc.compile(relayc.from_pytorch(model_of(lambda x: special.spherical_bessel_j0(x)), (x,)))(x)
    torch.testing.assert_close(found, torch.tensor([0.0, 1.0, math.sin(2) / 2, 0.0]))


def test_places_that_are_computed_are_not_checked():
    def function(x, image, places, grid):
        image_grads = aten.grid_sampler_2d_backward(image[:, :, :2, :2], image, grid, 0, 0, False, [True, True])
        pooled, at = F.max_pool2d(image, 2, return_indices=True)
        bags = aten._embedding_bag_backward(
            x[:2], places, places[:2] - 1, places, places, places[:, None] % x[:2].int(), 5, False, 2, False, None
        )
        return (
            *(torch.histc(x, 4, -1, 1), x.sort(1), x.median(1), x.nanmedian(1), x.mode(1), torch.nonzero_static(x, size=2), bags),
            *(torch.lu_unpack(*torch.linalg.lu_factor(x[:, :3])), torch.linalg.solve(x[:, :3], x), *image_grads),
            *(
                F.fractional_max_pool2d(image, 2, 2, _random_samples=grid[:, :1, 0].sigmoid()),
                F.adaptive_max_pool2d(image, 3, return_indices=True),
            ),
            aten.max_pool2d_with_indices_backward(pooled, image, (2, 2), (2, 2), (0, 0), (1, 1), False, at),
        )

    args = X, drawn(1, 1, 4, 5), torch.tensor([1, 2]), drawn(1, 2, 2, 2)
    lines = str(from_fx(make_fx(function, tracing_mode="fake")(*args), {}).module).splitlines()
    written = [line for line in lines if "relay.gather" in line or "relay.scatter" in line]
    assert len(written) > 15 and [line for line in written if "in_bounds = true" not in line] == []


@pytest.mark.parametrize(("count", "steps"), [(1, 0), (4, 2), (5, 3)])
def test_running_maxima_double_their_reach(count, steps):
    """Of numbers and places."""
    graph = make_fx(lambda x: torch.cummax(x, 0), tracing_mode="fake")(drawn(count))
    assert str(from_fx(graph, {}).module).count("tensor.concat") == 2 * steps


def test_distances():
    check(lambda x, y: tuple(torch.dist(x, y, p) for p in (0, 1, 2, 3, INF)), X, torch.where(Y > 0, X, Y))
    grads = aten._cdist_backward
    check(lambda g, x, y: tuple(grads(g, x, y, p, torch.cdist(x, y, p)) for p in (0.0, 3.0)), drawn(2, 3), X[:2, :4], Y[:, :4])


def test_norms_and_running_sums():
    check(
        lambda x: (
            *(torch.linalg.vector_norm(x.floor(), p, 1) for p in (0, INF, -INF)),
            *(torch.logcumsumexp(x, 1), torch.logcumsumexp(x, 0), torch.logcumsumexp(x[0, 0], 0)),
        ),
        X,
    )


def test_order_of_other_elements():
    """Of truth values, and of numbers with NaN."""
    x = torch.where(Y > 0.5, NAN, X)
    check(
        lambda x: (torch.sort(x > 0, dim=1, descending=True, stable=True), x.nanmedian(1), x.nanmedian(), x.nanmedian(0, keepdim=True)), x
    )


def test_distinct_elements():
    """The number of elements depends on data."""
    rows = torch.tensor([[1, 2, 0], [3, 1, 1], [1, 2, 0], [1, 2, 0]])
    check(lambda x: (torch.unique(x, return_inverse=True, return_counts=True), torch.unique(x > 1)), rows)
    check(lambda x: (torch.unique(x, dim=0, return_inverse=True), torch.unique_consecutive(x, dim=0, return_counts=True)), rows)


# ---- shapes -----------------------------------------------------------------------------------------------------------------------------


def test_axes():
    check(
        lambda x: (
            *(x.transpose(0, -1), x[0].T, x.mT, x.movedim(0, -1), x.movedim((0, 2), (1, 0)), x.swapaxes(-1, 1)),
            *(x.rot90(2, (0, 2)), x.rot90(0, (0, 2)), x.rot90(-1, (0, 2)), torch.cat([x.new_zeros(0), x.new_zeros(0)])),
            *(x[0].diagonal(7), x[0, 0, 0].unfold(0, 1, 1), x.select(1, -1)),
        ),
        drawn(2, 3, 4),
    )


def test_parts_and_repetitions():
    check(
        lambda x: (
            *(x.split(2, 1), x.unbind(0), x.tensor_split((1, 1, 3), 2), x.chunk(1)),
            *(x.as_strided((2, 3), (6, 1), 2), x.as_strided((2, 2), (0, 7)), x.repeat_interleave(2), x.repeat_interleave(3, 1)),
            *(x.slice_scatter(x[:, :, :0], 2, 1, 1, 2), x.slice_scatter(x[:, :, :2] * 9, 2, 0, 4, 2)),
        ),
        drawn(2, 3, 4),
    )


def test_parts_of_any_size():
    class Parts(torch.nn.Module):
        def forward(self, x, n):
            k = n.item()
            torch._check(k >= 0)
            torch._check(k < 4)
            return x.select(1, k), x[:, 1:].split([x.shape[1] - 3, 2], 1)

    more = [(drawn(2, 9), torch.tensor(3)), (drawn(2, 5), torch.tensor(0))]
    agrees(Parts(), (drawn(2, 6), torch.tensor(1)), dynamic_shapes=({1: torch.export.Dim.DYNAMIC}, None), more=more)


def test_blocks():
    check(
        lambda x: (
            *(F.pixel_shuffle(x, 2), F.pixel_shuffle(x[0], 2), F.pixel_unshuffle(x, 3), F.pixel_unshuffle(x[0], 2)),
            *(F.channel_shuffle(x, 2), x.roll((1, -2), (0, 2)), x.roll(13), x.diagonal(1, 0, 2), x.diagonal(-2, 3, 1)),
            *(x[0].diagonal_scatter(x[1].diagonal(k, 0, 2), k, 0, 2) for k in (1, -1)),
        ),
        drawn(2, 4, 6, 6),
    )


# ---- places -----------------------------------------------------------------------------------------------------------------------------


def test_elements_at_places():
    check(
        lambda x, i: (
            *(x[:, i], x[i % 3], torch.gather(x, 1, i[:0]), torch.gather(x, 1, i % 5), torch.gather(x[0, 0], 0, i[0, 2])),
            *(torch.nonzero_static(i[0, 0], size=2), *(torch.isin(i, i[0, 1:3], invert=kept) for kept in (False, True)), torch.isin(i, 1)),
            *(F.embedding(i % 3, x), x.masked_fill(x > 0, 0.5)),
        ),
        X,
        I.abs() % 5,
    )


def test_elements_written_to_places():
    def put(x, place, value):
        x = x.clone()
        x[place] = value
        return x

    check(
        lambda x, i: (
            *(put(x, x > 0.3, 2.0), put(x > 0, (i[0] % 3, i[1]), x[0, :4] > 0), put(x, (slice(None), i[1]), x[:, :4])),
            *(x.index_fill(1, i[0, :2], 3.0), x.index_fill(0, i[0, 2], 3.0), x[0, 0].index_fill(0, i[0, 2] * 0, 3.0)),
            *(x.put(i, i * 0.5), x.put(i, i * 0.5, accumulate=True), x.as_strided_scatter(x[:2, :2], (2, 2), (1, 6), 3)),
            *(x[0, 0].scatter(0, i[0, 2] * 0, x[1, 1]), x[0, 0].scatter(0, i[0, 2] * 0, 4.0), x.scatter(1, i[:0], x)),
        ),
        X,
        torch.tensor([[3, 4, 0, 2], [1, 0, 2, 4]]),
    )


def test_elements_reduced_at_places():
    """Where nothing is written the elements stay, with those that are there or without them."""
    places = torch.tensor([[0, 0, 2, 0], [1, 1, 1, 1]])

    def function(x, places):
        whole = (x * 4).round().int()
        return [
            a.scatter_reduce(1, places, b, how, include_self=kept)
            for kept in (False, True)
            for a, b, how in ((x, x.flip(0), "mean"), (whole, whole.flip(0), "mean"), (whole, whole.flip(0), "amax"), (x, x + 1, "amin"))
        ] + [(x > 0).scatter_reduce(1, places, x > 0.3, how, include_self=False) for how in ("amax", "amin")]

    check(function, X, places)


# ---- products and layers ----------------------------------------------------------------------------------------------------------------


def test_products():
    check(
        lambda a, b: (
            *(torch.addbmm(a[0], a, b, beta=0.5, alpha=2), torch.baddbmm(a, a, b, beta=2, alpha=0.5), torch.baddbmm(a, a, b, beta=0)),
            *(torch.addmm(a[0], a[1], b[1], alpha=3), torch.addmm(a[0, 0], a[1], b[1], beta=2), F.linear(a, b[0, 0])),
            *(F.linear(a, b[0, 0], b[0, 0, 0]), F.bilinear(a[0], b[0], b, a[0, 0, :3]), F.bilinear(a, b, b)),
        ),
        drawn(3, 4, 4, seed=6),
        drawn(3, 4, 4, seed=7),
    )


def test_determinants_and_systems():
    check(
        lambda a, b: (
            *(torch.linalg.det(a), torch.linalg.slogdet(a), torch.linalg.solve(a, b), torch.linalg.solve_ex(a, b[0, :, 0])),
            *(aten._linalg_det(a), aten._linalg_slogdet(a.mT)[:3], aten._linalg_det(a.mT.contiguous())[0]),
        ),
        drawn(2, 3, 3),
        drawn(2, 3, 4),
        tolerance=1e-4,
    )


def test_convolutions():
    check(
        lambda x, w: (
            *(F.conv2d(x, w[:, :, :2], padding="same"), F.conv2d(x[0], w, padding="same", dilation=(1, 2))),
            *(F.conv2d(x, w, padding="valid", stride=(1, 2)), F.conv1d(x[0, :, 0], w[:, :, 0], padding=1)),
            *(F.conv_transpose2d(x, w.transpose(0, 1), stride=2, output_padding=(1, 0)), F.conv_transpose1d(x[:, :, 0], w[0, :, :2])),
        ),
        drawn(2, 4, 5, 6, seed=3),
        drawn(3, 4, 3, 3, seed=5),
    )


def test_normalisations_with_their_statistics():
    check(
        lambda x: (
            *(aten.native_layer_norm(x, (3, 5), x[0, 0], None, 1e-3), aten.native_layer_norm(x, (5,), None, x[0, 0, 0], 1e-3)[0]),
            *(F.group_norm(x, 2, x[0, :, 0, 0], x[0, :, 0, 1], 1e-3), aten.native_group_norm(x, None, None, 2, 4, 15, 2, 1e-3)),
            *(
                aten.native_group_norm(x, x[0, :, 0, 0].clone(), None, 2, 4, 15, 4, 1e-3)[0],
                aten._fused_rms_norm(x, (5,), x[0, 0, 0], 1e-3),
            ),
            *(
                aten._fused_rms_norm(x, (3, 5), None, 1e-3)[0],
                aten._native_batch_norm_legit(x, None, None, *x[0, :, :2, 0].abs().unbind(1), False, 0.1, 1e-3)[0],
            ),
        ),
        drawn(2, 4, 3, 5),
    )


def test_places_of_adaptive_maxima():
    check(lambda x: (F.adaptive_max_pool2d(x, (3, 2), return_indices=True), F.adaptive_avg_pool2d(x, (1, 2))), drawn(1, 2, 7, 5))


def test_attention():
    check(
        lambda q, k, m: (
            *(F.scaled_dot_product_attention(q, k, k, mask) for mask in (m, m[0] > 0)),
            F.scaled_dot_product_attention(q[None], k[None], k[None], m[None], scale=0.3),
            aten._scaled_dot_product_flash_attention_for_cpu(q[None], k[None], k[None])[0],
        ),
        *(drawn(2, 4, 8), drawn(2, 5, 8, seed=1), drawn(2, 4, 5, seed=2)),
    )


def test_attention_without_its_logarithms():
    """Of GPUs: eager has it not on a CPU."""
    q, k = drawn(1, 2, 4, 8), drawn(1, 2, 5, 8, seed=1)
    model = model_of(lambda q, k: aten._scaled_dot_product_efficient_attention(q, k, k * 2, None, False, scale=0.3)[:2])
    found, logarithms = relayc.compile(relayc.from_pytorch(model, (q, k)))(q, k)
    torch.testing.assert_close(found, F.scaled_dot_product_attention(q, k, k * 2, scale=0.3))
    assert logarithms.shape == (1, 2, 0)


def test_fast_paths_of_transformers():
    """Of three inputs, and normalised first."""
    mask = torch.tensor([[False, True, False], [True, False, False]])
    of_all = drawn(2, 2, 3, 3) > 0.8

    def function(x, y, w, b):
        attend = aten._native_multi_head_attention
        more = w[:4], b[:4]
        kinds = ((x, y, y.tanh(), mask, 1), (x, x, y, mask, 1), (x, x, x, of_all, 2))
        parts = [attend(q, k, v, 4, 2, w, b, *more, given, False, True, kind) for q, k, v, given, kind in kinds]
        layer = (4, 2, w, b, *more, False, True, 1e-3, b[:4], b[4:8], b[1:5], b[2:6], w[:7], b[:7], w.flatten()[:28].view(4, 7), b[:4])
        return *(part[0] for part in parts), aten._transformer_encoder_layer_fwd(x, *layer, mask, 1)

    check(function, drawn(2, 3, 4), drawn(2, 3, 4, seed=1), drawn(12, 4, seed=2), drawn(12, seed=3))


@pytest.mark.parametrize("network", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(network):
    model = getattr(torch.nn, network)(3, 2, **({"nonlinearity": "relu", "bias": False} if network == "RNN" else {}))
    agrees(model, (drawn(4, 2, 3),))


# ---- backward graphs --------------------------------------------------------------------------------------------------------------------


def test_derivatives_of_convolutions():
    def function(g, x, w):
        options = [3], (2, 1), (1, 0), (1, 1), False, (0, 0), 1
        return aten.convolution_backward(g, x, w, *options, [True, True, True]), *(
            aten.convolution_backward(g, x, w, *options, [i == 0, i == 1, i == 2])[i] for i in range(3)
        )

    check(function, drawn(2, 3, 3, 4), drawn(2, 4, 5, 6), drawn(3, 4, 3, 3))


def test_derivatives_of_poolings_and_paddings():
    check(
        lambda x, g: (
            aten.avg_pool2d_backward(g[:, :, :3, :3], x, (3, 3), (2, 2), (1, 1), False, False, None),
            aten.avg_pool2d_backward(g[:, :, :3, :4], x, (3, 3), (2, 2), (1, 1), True, True, 5),
            *(aten._adaptive_avg_pool2d_backward(g[:, :, :a, :b], x) for a, b in ((2, 3), (5, 6), (4, 1))),
            aten.replication_pad2d_backward(g, x, (1, 2, 3, 0)),
        ),
        drawn(2, 2, 5, 6),
        drawn(2, 2, 8, 9, seed=1),
    )


@pytest.mark.parametrize(("mode", "padding", "align"), [(0, 0, True), (0, 2, False), (1, 1, False), (2, 2, True)])
def test_derivatives_of_samples(mode, padding, align):
    """Inside of an image, and so far outside that reflections return."""
    places = torch.linspace(-3.3, 3.1, 2 * 3 * 4 * 2).view(2, 3, 4, 2)
    backward = aten.grid_sampler_2d_backward
    tensors = drawn(2, 2, 3, 4), drawn(2, 2, 5, 4, seed=1), places
    check(lambda g, x, grid: backward(g, x, grid, mode, padding, align, [True, True]), *tensors)


def test_derivatives_of_bags():
    """A bag without elements, an index that is padding, and weights of elements."""

    def function(grad, table, indices, offsets, weights):
        found = []
        for mode, padding, own in ((0, -1, weights), (0, 0, weights), (1, 0, None), (2, -1, None)):
            bags = aten._embedding_bag(table, indices, offsets, False, mode, False, own, False, padding)
            rest = (*bags[1:], 5, False, mode, False, own, padding)
            found += [bags[0], aten._embedding_bag_backward(grad, indices, offsets, *rest)]
            if own is not None:
                found.append(aten._embedding_bag_per_sample_weights_backward(grad, table, indices, offsets, bags[1], mode, padding))
        return found

    indices, offsets = torch.tensor([1, 0, 4, 1, 2, 0, 0]), torch.tensor([0, 3, 3, 5])
    check(function, drawn(4, 3), drawn(5, 3, seed=1), indices, offsets, drawn(7, seed=2))


def test_resampling_by_factors():
    check(lambda x: F.interpolate(x, scale_factor=(0.4, 1.7), mode="bicubic", antialias=True), drawn(1, 2, 9, 5).double())
    check(
        lambda g: tuple(aten._upsample_bilinear2d_aa_backward(g, (3, 9), (1, 2, 9, 5), False, *by) for by in ((0.4, 1.7), (0.0, 0.0))),
        drawn(1, 2, 3, 9).double(),
    )
    check(lambda x: F.interpolate(x, (4, 9), mode="bicubic"), drawn(1, 2, 7, 5))
    check(
        lambda x: (
            *(F.interpolate(x, scale_factor=(0.4, 1.7), mode=mode) for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")),
            *(F.interpolate(x[:, :, 0], scale_factor=1.7, mode=mode) for mode in ("nearest", "linear")),
            F.interpolate(x[None], scale_factor=(2.6, 0.4, 1.7), mode="trilinear"),
        ),
        drawn(1, 2, 9, 5),
    )


# ---- complex numbers, random numbers ----------------------------------------------------------------------------------------------------


def test_complex_numbers():
    check(
        lambda x, y: (
            *(torch.polar(x.abs(), y), torch.complex(x, y) / torch.complex(y, x), 2.0 / torch.complex(x, y), torch.complex(x, y) / 2),
            *(torch.complex(x, y).square(), torch.complex(x, y) ** -1.5, torch.complex(x, y) ** (0.5 - 0.2j), x**1j),
            *(torch.complex(x, y) * (2 - 3j), torch.complex(x.round(), y.round()) == (1 - 1j), torch.complex(x, y).to(torch.float64)),
        ),
        X,
        Y,
    )


def test_transforms_of_any_length():
    """Each scale is that of the number of elements."""
    check(
        lambda x: (torch.fft.fft(x, norm="ortho"), torch.fft.ifft(x, norm="forward"), torch.fft.rfft(x, norm="forward")),
        X,
        dynamic_shapes=({1: "n"},),
        more=[(drawn(3, 9),)],
    )


DRAWN = {
    "functions": lambda x, p: (torch.bernoulli(p), torch.bernoulli(x, 0.4), torch.normal(x, p), torch.normal(1.0, p), torch.normal(x, 2.0)),
    "fillings": lambda x, p: (
        *(torch.empty(7).normal_(-2, 0.5), torch.empty(40).uniform_(-3, 2), torch.empty(7).exponential_(2.0), torch.empty(5).cauchy_(1, 2)),
        *(torch.empty(9).log_normal_(0.1, 0.3), torch.empty(9).geometric_(0.3), torch.empty(3, 5).bernoulli_(p)),
    ),
    "choices": lambda x, p: (torch.multinomial(p, 3), torch.multinomial(p, 40, replacement=True)),
    "dropout": lambda x, p: (
        *(F.dropout(x, 1.0), F.dropout(x, 0.3), F.dropout(x, 0.3, False), *aten.native_dropout(x, 0.3, True)),
        *(aten.native_dropout(x, 0.3, False), F.alpha_dropout(x, 0.3, True), F.dropout1d(x, 0.4)),
        *aten.native_dropout(x + 2, 0.0, True),
        *aten.native_dropout(x + 1, 0.3, None),
        *aten.native_dropout(x, 1.0, True),
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_numbers(name):
    model, inputs = model_of(DRAWN[name]), (X, Y.sigmoid())
    module = relayc.compile(relayc.from_pytorch(model, inputs))
    found = []
    for draw in (module, model):
        torch.manual_seed(3)
        found.append(draw(*inputs))
    torch.testing.assert_close(*found)


# ---- refused ----------------------------------------------------------------------------------------------------------------------------

ANY, OWN = torch.export.Dim.AUTO, torch.Generator()
MORE = (12, 4), (12,), (4, 4), (4,)
REFUSED = {
    "a tensor, a number or a constant, found CustomObjArgument": (lambda x: x.bernoulli(0.5, generator=OWN), None),
    r"query: expected heads of a size known at import, found tensor<1x3x\?xf32": (
        lambda x: F.scaled_dot_product_attention(*[x[None]] * 3),
        {1: ANY},
    ),
    "expected a network without projections": (torch.nn.LSTM(5, 4, proj_size=2), None),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    model, dims = REFUSED[message]
    model = model if isinstance(model, torch.nn.Module) else model_of(model)
    with pytest.raises(relayc.ModelError, match=message):
        relayc.from_pytorch(model, (X.clone(),), dynamic_shapes=dims and (dims,))


def bags(x, scaled, sparse):
    i = torch.tensor([1, 2])
    return aten._embedding_bag_backward(x[:2], i, i - 1, i, i, i, 5, scaled, 0, sparse, None)


def attended(x, dropout, wanted):
    q, seed = x[None, None, :2, :4], torch.tensor(0)
    options = q, q, q, None, q, q[..., 0], seed, seed, dropout, [True, True, True, wanted]
    return aten._scaled_dot_product_efficient_attention_backward(q, *options)[0]


OF_GRAPHS = {
    "expected a decomposition with exchanges of rows": lambda x: torch.linalg.lu_factor_ex(x[:, :3], pivot=False)[0],
    "expected a number of rows known at import": lambda x: aten._pdist_forward(x, 2.0),
    r"weight: expected sizes known at import, found tensor<1x3x\?xf32": lambda x: F.conv1d(torch.zeros(1, 3, 99), x[None]),
    "expected quant_min and quant_max of 32 bits": lambda x: aten.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 0, 0, 1 << 40)[0],
    "expected attention without dropout|forwards": lambda x: aten._scaled_dot_product_efficient_attention(
        *[x[None, None]] * 3, None, False, 0.5
    )[0],
    "expected a mask of queries and keys .0., of batch and keys .1., or of the scores .2., found 3": lambda x: (
        aten._native_multi_head_attention(*[x[None, :, :4]] * 3, 4, 2, *(torch.ones(s) for s in MORE), x[:1, :3] > 0, False, True, 3)[0]
    ),
    "expected numbers of torch's default generator, found": lambda x: aten.bernoulli.p(x, 0.5, generator=OWN),
    "expected attention without dropout|backwards": lambda x: attended(x, 0.5, False),
    "expected attention whose bias has no derivative": lambda x: attended(x, 0.0, True),
    "expected dense derivatives of embeddings that are not scaled, found others|scaled": lambda x: bags(x, True, False),
    "expected dense derivatives of embeddings that are not scaled, found others|sparse": lambda x: bags(x, False, True),
}


@pytest.mark.parametrize("message", OF_GRAPHS)
def test_refused_in_graphs(message):
    """As torch.compile gives them; sizes are symbols where they are refused."""
    graph = make_fx(OF_GRAPHS[message], tracing_mode="symbolic" if "known at import" in message else "fake")(X)
    graph.graph.eliminate_dead_code()
    with pytest.raises(relayc.ModelError, match=message.partition("|")[0]):
        from_fx(graph, {})


def test_padding_by_a_number():
    module = relayc.compile(relayc.from_pytorch(model_of(lambda x: F.pad(x, (1, 0), value=3.0)), (torch.ones(2),)))
    assert module(torch.zeros(2)).tolist() == [3.0, 0.0, 0.0]
