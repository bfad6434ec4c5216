"""Operators of PyTorch, many in one program, compared with eager: options, ranks, dtypes, and numbers at the limits of each formula."""

import math
from fractions import Fraction

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402 # there is torch
from pytorch_models import drawn  # noqa: E402
from torch import nn  # noqa: E402

import relayc  # noqa: E402
from relayc.frontend.pytorch.gamma import _BERNOULLI  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

NAN, INF = math.nan, math.inf
aten, special = torch.ops.aten, torch.special


X, Y = drawn(4, 6), drawn(4, 6, seed=1)
EDGES = torch.tensor([-INF, -3.5, -2.0, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 2.0, 4.5, 30.0, INF, NAN])
OTHERS = torch.tensor([1.0, -INF, NAN, -1.0, 0.5, 0.0, -0.0, INF, -0.25, 1.0, 3.0, NAN, 0.0, INF, 2.0])
# Around where the formulas of Bessel functions change.
SIZES = torch.tensor([0.0, 1e-3, 0.7, 3.0, 13.99, 14.0, 14.01, 29.99, 30.0, 30.01, 60.0, NAN])
SIGNED = torch.cat([SIZES, -SIZES])
I = torch.tensor([[3, -2, 0, 7], [1, 1, -5, 0]])  # noqa: E741
TRUTH = X > 0.2
S = drawn(3, 4, 4, seed=2)
POSITIVE = S @ S.mT + torch.eye(4)
IMAGES = drawn(2, 4, 6, 6, seed=3)

GROUPS = {
    "activations": (
        [
            *(lambda x, a=a: F.celu(x, a) for a in (1.0, 0.5)),
            lambda x: F.elu(x, 0.7),
            *(F.selu, F.silu, F.mish, F.hardsigmoid, F.hardswish, F.relu6, F.logsigmoid),
            lambda x: F.softplus(x, 2.0, 3.0),
            lambda x: F.threshold(x, 0.25, -7.0),
            lambda x: F.hardshrink(x, 0.5),
            lambda x: F.softshrink(x, 0.5),
            lambda x: aten.rrelu_with_noise(x, torch.ones_like(x), 0.1, 0.3, False),
        ],
        [EDGES],
    ),
    "activations by channels": (
        [
            lambda x, w: F.prelu(x, w[:1]),
            F.prelu,
            lambda x, w: F.prelu(x[:, :, 0, 0], w),
            lambda x, w: F.prelu(w, w[:1] * 2),
            lambda x, w: F.glu(x, 1),
            lambda x, w: F.glu(x),
        ],
        [IMAGES, torch.tensor([0.1, -0.5, 2.0, 0.25])],
    ),
    "Bessel functions of any sign": (
        [special.i0, special.i0e, special.i1, special.i1e, special.bessel_j0, special.bessel_j1, special.spherical_bessel_j0],
        [SIGNED],
    ),
    "Bessel functions of positive numbers": (
        [
            *(special.bessel_y0, special.bessel_y1, special.modified_bessel_k0, special.modified_bessel_k1),
            *(special.scaled_modified_bessel_k0, special.scaled_modified_bessel_k1),
        ],
        [SIZES],
    ),
    "Bessel functions of double precision": (
        [special.i0e, special.i1e, special.bessel_j0, special.bessel_j1, special.spherical_bessel_j0],
        [SIGNED.double()],
    ),
    "numbers at the edges": (
        [
            *(lambda x, y, n=n: torch.round(x * 3.14159, decimals=n) for n in (2, 0, -1)),
            lambda x, y: torch.rsub(x, y, alpha=2),
            lambda x, y: torch.reciprocal(x),
            lambda x, y: torch.square(x),
            torch.fmax,
            torch.fmin,
            torch.copysign,
            lambda x, y: torch.copysign(x, -1.0),
            lambda x, y: torch.signbit(x),
            lambda x, y: torch.nan_to_num(x),
            lambda x, y: torch.nan_to_num(x, 1.5, posinf=8.0, neginf=-9.0),
            torch.nextafter,
            lambda x, y: torch.sinc(x.nan_to_num(0, 1, 1)),
            lambda x, y: torch.logit(x),
            lambda x, y: torch.logit(x, 0.125),
            torch.xlogy,
            lambda x, y: torch.xlogy(2.0, y),
            special.xlog1py,
            torch.logaddexp,
            torch.logaddexp2,
            torch.heaviside,
            lambda x, y: torch.isposinf(x),
            lambda x, y: torch.isneginf(x),
            lambda x, y: torch.isclose(x, y),
            lambda x, y: torch.isclose(x, y + 0.1, rtol=0.3, atol=0.2, equal_nan=True),
            lambda x, y: torch.isclose(x, x),
            lambda x, y: torch.special.erfcx(x.clamp(-3)),
            lambda x, y: torch.ldexp(x, torch.arange(15)),
            lambda x, y: torch.ldexp(x, y.nan_to_num(0, 1, 1)),
            *(lambda x, y, high=high: torch.clamp(x, 0.5, high) for high in (1.0, 0.5, -1.0)),
        ],
        [EDGES, OTHERS],
    ),
    "mantissas": ([torch.frexp], [torch.cat([EDGES, torch.tensor([1e-40, 3e38, -7.25])])]),
    "sums of products": (
        [
            lambda x, y: torch.addcmul(x, x, y, value=0.5),
            lambda x, y: torch.addcdiv(x, x, y.abs() + 1, value=-2),
            lambda x, y: torch.lerp(x, y, 0.3),
            lambda x, y: torch.lerp(x, y, y),
            lambda x, y: x.masked_fill(y > 0, 3.0),
            lambda x, y: x.masked_fill(y[0] > 0, y[0, 0]),
            lambda x, y: torch.logcumsumexp(x, 1),
            lambda x, y: torch.logcumsumexp(x[0, 0], 0),
            lambda x, y: torch.clamp(x, min=y),
            lambda x, y: torch.linspace(-1, 2, 7),
            lambda x, y: torch.linspace(3, 4, 1),
            lambda x, y: torch.linspace(x[0, 0], y[0, 0], 4),
            lambda x, y: torch.full((2, 3), 1.5) + torch.full_like(x[:2, :3], 2),
            lambda x, y: torch.eye(3, 4) + torch.eye(4)[:3],
            lambda x, y: torch.arange(1, 8, 2),
            lambda x, y: torch.arange(1, 2, 0.25),
        ],
        [X, Y],
    ),
    "whole numbers": (
        [
            lambda i: torch.round(i),
            lambda i: F.one_hot(i.abs(), 9),
            lambda i: torch.fmax(i, i.flip(0)),
            lambda i: torch.nan_to_num(i),
            lambda i: torch.signbit(i),
            lambda i: torch.signbit(i > 0),
            lambda i: torch.isposinf(i),
            lambda i: torch.isclose(i, i.flip(1), atol=2),
            lambda i: torch.isclose(i, i),
            lambda i: torch.heaviside(i, i + 1),
            lambda i: torch.square(i),
            lambda i: torch.reciprocal(i.abs() + 1),
            lambda i: torch.nanmedian(i, 1),
            lambda i: torch.count_nonzero(i, 1),
            lambda i: torch.count_nonzero(i),
            lambda i: (i > 0).max(1),
            lambda i: (i > 0).min(0),
            lambda i: torch.xlogy(i, i.abs()),
            lambda i: torch.clamp(i, 0, 3),
            lambda i: torch.clamp(i, 2, 1),
            lambda i: torch.histc(i.float(), 4),
            lambda i: i.view(torch.float64).view(torch.int64),
            *(lambda i, size=size: torch.nonzero_static(i, size=size, fill_value=-7) for size in (3, 6, 9)),
        ],
        [I],
    ),
    "reductions": (
        [
            lambda x, t: x.max(),
            lambda x, t: x.min(1),
            lambda x, t: x.max(0, keepdim=True),
            lambda x, t: x.max(-1)[0],
            lambda x, t: torch.aminmax(x),
            lambda x, t: torch.aminmax(x, dim=1),
            lambda x, t: torch.aminmax(x, dim=-2, keepdim=True),
            lambda x, t: torch.count_nonzero(t, (0, 1)),
            *(lambda x, t, p=p: torch.linalg.vector_norm(x.floor(), p, 1) for p in (0, 1, 3, INF, -INF)),
            lambda x, t: torch.linalg.vector_norm(x, 3, keepdim=True),
            lambda x, t: x.var((0, 1), correction=0),
            *(lambda x, t, n=n: x[:, :n].var(1) for n in (0, 1)),
            lambda x, t: torch.nanmedian(torch.where(t, NAN, x), 1),
            lambda x, t: torch.nanmedian(torch.where(t, NAN, x)),
            lambda x, t: torch.nanmedian(torch.where(x > -9, NAN, x), 0, keepdim=True)[0],
            lambda x, t: torch.sort(t.int(), stable=True, dim=1),
            lambda x, t: torch.sort(t, dim=0, stable=True, descending=True),
            lambda x, t: torch.mode((x * 2).round(), 1)[0],
        ],
        [X, TRUTH],
    ),
    "single numbers": (
        [
            lambda x: x.max(0),
            lambda x: x.max(),
            lambda x: torch.aminmax(x),
            lambda x: x.sort(),
            lambda x: x.argsort(),
            lambda x: x.median(),
            lambda x: x.median(0),
            lambda x: torch.nanmedian(x),
            lambda x: torch.nanmedian(x, 0),
            lambda x: x.mode(),
            lambda x: x.kthvalue(1),
            lambda x: x.topk(1),
            lambda x: x.argmax(),
            lambda x: x.argmin(0),
            lambda x: x.cumsum(0),
            lambda x: torch.cummax(x, 0),
            lambda x: x.flip(0),
            lambda x: x.roll(1),
            lambda x: torch.linalg.vector_norm(x, 0),
            lambda x: torch.linalg.vector_norm(x, 3, 0),
            lambda x: x.squeeze(0).unsqueeze(0),
            lambda x: x.transpose(0, 0),
            lambda x: torch.count_nonzero(x, 0),
        ],
        [torch.tensor(-1.5)],
    ),
    "shapes": (
        [
            lambda x: x.movedim(0, -1),
            lambda x: x.movedim((0, 2), (1, 0)),
            lambda x: torch.stack([x, x * 2], -1),
            lambda x: torch.stack([x[0], x[1].double()], 0),
            lambda x: torch.cat([x]),
            lambda x: torch.cat([x[0], x[0].double()], 1),
            lambda x: x.select(1, -1),
            lambda x: x.tensor_split(3, -1),
            lambda x: x.tensor_split((1, 1, 3), 2),
            lambda x: x.as_strided((2, 3), (6, 1), 2),
            lambda x: x.as_strided((2, 2), (0, 7)),
            lambda x: x.repeat_interleave(2),
            lambda x: x.repeat_interleave(3, 1),
            lambda x: x.roll(2),
            lambda x: x.roll((1, -2), (0, 2)),
            lambda x: x.roll(13, 1),
            *(lambda x, k=k: x.rot90(k, (0, 2)) for k in (0, 1, 2, 3, -1)),
            lambda x: x.tril(-1),
            lambda x: x.triu(1),
            lambda x: x.slice_scatter(x[:, :2] * 9, 1, 1, 3),
            lambda x: x.slice_scatter(x[:, :, :3] * 9, 2, 0, 6, 2),
            lambda x: x.slice_scatter(x[:, -2:] * 9, 1, -2),
            lambda x: x.select_scatter(x[0] * 9, 0, -1),
            *(lambda x, i=i: x.select_scatter(x[:, 1] * 9, 1, i) for i in (0, 2)),
            *(lambda x, k=k: x.diagonal_scatter(x.diagonal(k, 0, 2) * 9, k, 0, 2) for k in (0, 2, -1)),
            lambda x: x[0].diagonal_scatter(x[0].diagonal(1) * 9, 1),
            lambda x: x.new_zeros(0, 3),
            lambda x: aten.fill(x, 2.5),
            lambda x: x.T if x.dim() == 2 else x.mT,
            lambda x: x.view(torch.int32),
            lambda x: x.squeeze((0, 1)),
            lambda x: x[:, :1].squeeze(1),
            lambda x: x.swapaxes(-1, 0),
            lambda x: x[0, 0].diag_embed(1),
            lambda x: F.pad(x, (1, 2), mode="circular"),
            lambda x: F.pad(x, (1, 2), mode="replicate"),
            lambda x: F.pad(x, (0, -1, 2, 0), value=3.0),
        ],
        [drawn(3, 4, 6, seed=4)],
    ),
    "images": (
        [
            lambda x: F.pixel_shuffle(x, 2),
            lambda x: F.pixel_shuffle(x[0], 2),
            lambda x: F.pixel_unshuffle(x, 3),
            lambda x: F.pixel_unshuffle(x[0], 2),
            lambda x: F.channel_shuffle(x, 2),
            lambda x: F.unfold(x, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2)),
            lambda x: F.unfold(x[0], 2),
            lambda x: F.fold(x.reshape(2, 4, 36)[:, :, :25], (6, 6), 2),
            lambda x: F.fold(x.reshape(2, 4, 36)[0, :, :9], (7, 5), 2, padding=(0, 1), stride=2, dilation=1),
            lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, divisor_override=5),
            lambda x: F.avg_pool2d(x, 2, 2, 0, ceil_mode=True, divisor_override=3),
            lambda x: F.avg_pool2d(x[0], (2, 3), divisor_override=2),
            lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
            lambda x: F.max_unpool2d(*F.max_pool2d(x[0], 2, return_indices=True), 2, output_size=(7, 7)),
            lambda x: F.instance_norm(x),
            lambda x: F.instance_norm(x, x[0, 0, 0, :4], x[0, 0, 1, :4].abs(), x[0, 1, 0, :4], x[0, 1, 1, :4], False),
            lambda x: aten.native_batch_norm(x, x[0, 0, 0, :4], None, x[0, 1, 0, :4], x[0, 2, 0, :4].abs(), False, 0.1, 1e-3)[0],
            lambda x: F.rms_norm(x, (6,), None, 1e-3),
            lambda x: F.rms_norm(x, (6, 6), x[0, 0]),
            lambda x: aten._fused_rms_norm(x, (6,), x[0, 0, 0], 1e-3),
            *(
                lambda x, mode=mode, corners=corners: F.grid_sample(
                    x, x[:, :2].permute(0, 2, 3, 1) * 2.5, mode, padding_mode="reflection", align_corners=corners
                )
                for mode in ("bilinear", "nearest")
                for corners in (False, True)
            ),
        ],
        [IMAGES],
    ),
    "convolutions": (
        [
            lambda x, w: F.conv2d(x, w, padding="same"),
            lambda x, w: F.conv2d(x, w, padding="valid", dilation=2),
            lambda x, w: F.conv2d(x, w[:, :, :2], padding="same"),
            lambda x, w: F.conv2d(x[0], w, padding="same", dilation=(1, 2)),
            lambda x, w: F.conv2d(x[0], w, padding=1),
            lambda x, w: F.conv1d(x[:, :, 0], w[:, :, 0], stride=2),
        ],
        [IMAGES, drawn(3, 4, 3, 3, seed=5)],
    ),
    "products": (
        [
            lambda a, b: torch.addbmm(a[0], a, b, beta=0.5, alpha=2),
            lambda a, b: torch.baddbmm(a, a, b, beta=2, alpha=0.5),
            lambda a, b: torch.baddbmm(a, a, b, beta=0),
            lambda a, b: torch.addmv(a[0, 0], a[0], b[0, 0], beta=0.5),
            lambda a, b: F.bilinear(a[0], b[0], b, a[0, 0, :3]),
            lambda a, b: F.bilinear(a, b, b),
            lambda a, b: F.linear(a, b[0]),
            lambda a, b: F.linear(a, b[0], b[1, 0]),
            lambda a, b: torch.trace(a[0, :3]),
            lambda a, b: torch.trace((a[0, :, :3] * 4).int()),
            lambda a, b: torch.chain_matmul(a[0], b[0], a[1]),
        ],
        [drawn(3, 4, 4, seed=6), drawn(3, 4, 4, seed=7)],
    ),
    "systems": (
        [
            lambda a, p: torch.linalg.inv(a),
            lambda a, p: torch.linalg.inv_ex(a),
            lambda a, p: torch.linalg.tensorinv(a[0].reshape(4, 2, 2), 1),
            *(
                lambda a, p, u=u, left=left, unit=unit: torch.linalg.solve_triangular(p, a, upper=u, left=left, unitriangular=unit)
                for u, left, unit in ((True, True, False), (False, False, False), (False, True, True))
            ),
            lambda a, p: torch.triangular_solve(a, p, True, True, False)[0],
            lambda a, p: torch.triangular_solve(a, p, False)[0],
            *(lambda a, p, u=u: torch.cholesky_solve(a, torch.linalg.cholesky(p, upper=u), upper=u) for u in (False, True)),
            *(lambda a, p, u=u: torch.cholesky_inverse(torch.linalg.cholesky(p, upper=u), upper=u) for u in (False, True)),
        ],
        [S + 3 * torch.eye(4), POSITIVE],
    ),
    "attention of other ranks": (
        [
            lambda q, k, m: F.scaled_dot_product_attention(q, k, k, m[:, None]),
            lambda q, k, m: F.scaled_dot_product_attention(q, k, k, m[:, None].expand(3, 2, 4, 5), scale=0.3),
            lambda q, k, m: F.scaled_dot_product_attention(q[:, 0], k[:, 0], k[:, 0], m[0] > 0),
            lambda q, k, m: F.scaled_dot_product_attention(q[:, 0], k[:, 0], k[:, 0], m),
            lambda q, k, m: F.scaled_dot_product_attention(q, q, q, is_causal=True),
            lambda q, k, m: aten._scaled_dot_product_attention_math(q, k, k)[0],
            lambda q, k, m: F.scaled_dot_product_attention(q[None], k[None], k[None], m[None, :, None]),
        ],
        [drawn(3, 2, 4, 8, seed=8), drawn(3, 2, 5, 8, seed=9), drawn(3, 1, 4, 5, seed=10)[:, 0]],
    ),
    "complex numbers": (
        [
            lambda x, y: torch.view_as_real(torch.polar(x.abs(), y)),
            lambda x, y: torch.view_as_real(torch.sgn(torch.complex(x.round(), y.round()))),
            lambda x, y: torch.view_as_real(torch.complex(x, y) / torch.complex(y, x)),
            lambda x, y: torch.view_as_real(2.0 / torch.complex(x, y)),
            lambda x, y: torch.complex(x, y).real.to(torch.float64),
            lambda x, y: torch.view_as_real(torch.complex(x, y)).select(-1, 1),
            lambda x, y: torch.view_as_real(aten.unsafe_split(torch.complex(x, y), 3)[1]),
        ],
        [X, Y],
    ),
    "places and counts": (
        [
            *(lambda x, bounds=bounds: torch.histc(x, 5, *bounds) for bounds in ((), (-1, 1), (0, 0))),
            lambda x: torch.histc(x * 0 + 2, 3),
            lambda x: torch.histc(x.double() * 0 + (1 - 1e-12), 2, 0, 2),  # 1 in single precision
            lambda x: torch.fake_quantize_per_tensor_affine(x, 0.25, 3, -4, 5),
            lambda x: special.legendre_polynomial_p(x.clamp(-1, 1), 4),
            *(lambda x, n=n: special.laguerre_polynomial_l(x.abs(), n) for n in (0, 1, 3)),
            lambda x: torch.polygamma(0, x.abs() + 0.5),
            lambda x: torch.polygamma(2, x.abs() + 0.5),
        ],
        [X],
    ),
    "places": (
        [
            lambda x, i: torch.take(x, i.abs()),
            lambda x, i: torch.index_select(x, -1, i[0].abs() % 6),
            lambda x, i: torch.index_select(x[0, 0], 0, i[1, 1:2] * 0),
            lambda x, i: torch.gather(x, 0, i.abs() % 4),
            lambda x, i: torch.gather(x[0, 0], 0, i[0, 2]),
            lambda x, i: torch.gather(x, 1, i[:0]),
            lambda x, i: torch.nonzero_static(x > 0, size=9, fill_value=-3),
            lambda x, i: torch.nonzero_static(i, size=20, fill_value=-3),
            lambda x, i: torch.nonzero_static(i[0, 0], size=2),
            lambda x, i: torch.masked_select(x, x[:, :1] > 0),
            lambda x, i: torch.nonzero(x[0, 0]),
            lambda x, i: torch.repeat_interleave(i[0].abs()),
            lambda x, i: torch.bucketize(x[0, 0], torch.tensor([-0.5, 0.0, 0.5])),
            *(lambda x, i, kept=kept: torch.isin(i, i[0, 1:3], invert=kept) for kept in (False, True)),
            lambda x, i: torch.movedim(IMAGES, (0, -1), (2, 0)),
            lambda x, i: F.embedding_bag(i.abs() % 4, x, padding_idx=0),
            lambda x, i: aten.embedding_renorm(x * 3, i[0].abs() % 4, 1.5, 1.0),
        ],
        [X, I],
    ),
    "quadrants and sums": (
        [torch.atan2, lambda x, y: torch.sinc(x), lambda x, y: torch.einsum("ij,kj->ik", x[:9].view(3, 3), y[:9].view(3, 3))],
        [EDGES.nan_to_num(1.5), OTHERS.nan_to_num(2.5, 3.5, -4.5)],
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_operators_give_what_eager_gives(name):
    functions, args = GROUPS[name]

    class Model(nn.Module):
        def forward(self, *args):
            return [function(*args) for function in functions]

    module = relayc.compile(relayc.from_pytorch(Model(), tuple(args)))
    # Places that are computed are not checked.
    assert name != "reductions" or not any("worst_index" in kernel.name for kernel in module.kernels)
    found = module(*args)
    tolerance = 2e-4 if name == "systems" else 2e-5
    wrong = {}
    for number, (got, want) in enumerate(zip(found, Model()(*args), strict=True)):
        try:
            torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
        except AssertionError as error:
            wrong[number] = str(error)
    assert wrong == {}


def test_bessel_functions_at_infinity():
    """Their limits, where eager gives NaN."""
    both = [special.i0, special.i0e, special.i1, special.i1e, special.bessel_j0, special.bessel_j1, special.spherical_bessel_j0]
    right = [special.bessel_y0, special.bessel_y1, special.modified_bessel_k0, special.modified_bessel_k1]
    right += [special.scaled_modified_bessel_k0, special.scaled_modified_bessel_k1]

    class Model(nn.Module):
        def forward(self, x):
            return torch.stack([f(x) for f in both]), torch.stack([f(x[:1]) for f in right])

    x = torch.tensor([INF, -INF])
    found, of_positive = relayc.compile(relayc.from_pytorch(Model(), (x,)))(x)
    wanted = torch.zeros(7, 2)
    wanted[0], wanted[2] = INF, x
    assert torch.equal(found, wanted) and torch.equal(of_positive, torch.zeros(6, 1))


def test_bernoullis_numbers_are_those_of_their_recurrence():
    """The last ones change results by less than what float64 rounds."""
    numbers = [Fraction(1)]
    while len(numbers) <= 2 * len(_BERNOULLI):
        m = len(numbers)
        numbers.append(-sum(math.comb(m + 1, k) * b for k, b in enumerate(numbers)) / (m + 1))
    assert [float(number) for number in numbers[2::2]] == pytest.approx(_BERNOULLI, rel=1e-15)
