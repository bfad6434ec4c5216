"""Resampling with antialias, adaptive and fractional poolings of PyTorch, of known and of dynamic sizes, compared with eager."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402 # there is torch
from torch import nn  # noqa: E402

import relayc  # noqa: E402
from relayc.tools.dynamo import backend  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

ANY = torch.export.Dim.DYNAMIC
MODES = ["bilinear", "bicubic", "lanczos"]


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(0)
    torch._dynamo.reset()


class Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def compiled(function, *args, open_axes=()):
    """The function's module, in which these axes of all arguments are dynamic."""
    dims = ((dict.fromkeys(open_axes, ANY),) * len(args),) if open_axes else None
    return relayc.compile(relayc.from_pytorch(Model(function), args, dynamic_shapes=dims), cache=False)


def antialiased(mode, **options):
    return lambda x: F.interpolate(x, mode=mode, antialias=True, **options)


def in_float64(function, *args):
    """What eager gives in float64, in float32: torch computes positions in float32, where those past 1,024 have an error of 1e-4."""
    return function(*(a.double() for a in args)).float()


CLOSE = {"rtol": 0, "atol": 1e-5}
"""Sums of products of float32 weights whose positions have errors of 1e-7 of sizes below 40, of elements of about 1."""


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_antialias_of_known_sizes(mode, align):
    for shape, size in (
        *(((2, 3, 9, 13), (4, 20)), ((1, 2, 37, 1), (5, 3)), ((1, 2, 7, 8), (1, 1))),
        *(((1, 1, 1030, 50), (333, 1027)), ((1, 2, 5, 6), (7, 6))),
    ):
        # torch has no lanczos that aligns corners
        function, x = antialiased(mode, size=size, **({} if mode == "lanczos" else {"align_corners": align})), torch.randn(shape)
        torch.testing.assert_close(compiled(function, x)(x), in_float64(function, x), **CLOSE)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_antialias_of_dynamic_sizes(mode, align):
    function = antialiased(mode, size=(6, 11), **({} if mode == "lanczos" else {"align_corners": align}))
    shapes = [(2, 3, 9, 13), (2, 3, 4, 5), (1, 3, 40, 33), (1, 3, 1100, 3), (3, 3, 2, 64)]
    module = compiled(function, torch.randn(shapes[0]), open_axes=(0, 2, 3))
    for shape in shapes:
        x = torch.randn(shape)
        torch.testing.assert_close(module(x), in_float64(function, x), **CLOSE)


def test_antialias_by_factors():
    """The factors that are given, not those of the sizes: 3 rows of 9 by 0.4."""
    function, x = antialiased("bicubic", scale_factor=(0.4, 1.7)), torch.randn(2, 3, 9, 13)
    torch.testing.assert_close(compiled(function, x)(x), in_float64(function, x), **CLOSE)
    function, x = antialiased("bilinear", scale_factor=(0.5, 2)), torch.randn(1, 3, 10, 13)
    module = compiled(function, x, open_axes=(2, 3))
    for shape in ((1, 3, 10, 13), (1, 3, 7, 9), (1, 3, 1041, 33)):
        x = torch.randn(shape)
        torch.testing.assert_close(module(x), in_float64(function, x), **CLOSE)


def test_antialias_to_the_size_of_another_image():
    def function(x, y):
        return F.interpolate(x, y.shape[2:], mode="bilinear", antialias=True)

    module = compiled(function, torch.randn(1, 2, 9, 8), torch.randn(1, 2, 5, 20), open_axes=(2, 3))
    for a, b in (((9, 8), (5, 20)), ((1033, 7), (33, 29)), ((33, 7), (64, 2)), ((1, 1), (3, 4))):
        x, y = torch.randn(1, 2, *a), torch.randn(1, 2, *b)
        torch.testing.assert_close(module(x, y), in_float64(function, x, y), **CLOSE)


@pytest.mark.parametrize("mode", MODES)
def test_antialias_of_bytes(mode):
    """Exact for known sizes. For dynamic ones weights come from float32 positions: sums that lie at a half may be rounded otherwise."""
    for shape, size in (((2, 3, 40, 31), (4, 20)), ((1, 3, 30, 31), (50, 77)), ((1, 1, 1030, 40), (101, 7))):
        function, x = antialiased(mode, size=size), torch.randint(0, 256, shape, dtype=torch.uint8)
        wanted = function(x)
        torch.testing.assert_close(compiled(function, x)(x), wanted, rtol=0, atol=0)
        apart = (compiled(function, x, open_axes=(2, 3))(x).int() - wanted.int()).abs()
        assert apart.max() <= 1 and (apart > 0).float().mean() < 0.01


def test_antialias_in_training():
    x = torch.randn(1, 2, 11, 9, requires_grad=True)

    def loss(x):
        y = F.interpolate(x, (4, 15), mode="bilinear", antialias=True)
        return (y * torch.linspace(-1, 1, y.numel()).reshape(y.shape)).sum()

    (wanted,) = torch.autograd.grad(loss(x), x)
    (found,) = torch.autograd.grad(torch.compile(loss, backend=backend)(x), x)
    torch.testing.assert_close(found, wanted, **CLOSE)


# ---- adaptive poolings ------------------------------------------------------------------------------------------------------------------

SHAPES = {
    1: [(2, 3, 9), (1, 3, 1), (4, 3, 5), (2, 3, 1100)],
    2: [(2, 3, 9, 10), (1, 3, 2, 1), (3, 3, 7, 7), (2, 3, 14, 21), (1, 3, 1031, 3)],
    3: [(2, 3, 9, 10, 4), (1, 3, 1, 2, 1), (1, 3, 2, 3, 4), (1, 3, 5, 3, 1050)],
}
SIZES = {1: 5, 2: (7, 5), 3: (2, 3, 4)}


@pytest.mark.parametrize("n", SIZES)
def test_adaptive_means_of_dynamic_sizes(n):
    """Smaller and larger than the result, multiples of it and not."""
    pool = getattr(F, f"adaptive_avg_pool{n}d")
    shapes, axes = SHAPES[n], range(2, 2 + n)
    module = compiled(lambda x: pool(x, SIZES[n]), torch.randn(shapes[0]), open_axes=(0, *axes))
    for shape in shapes:
        x = torch.randn(shape)
        torch.testing.assert_close(module(x), pool(x, SIZES[n]), **CLOSE)


@pytest.mark.parametrize("n", SIZES)
def test_adaptive_maxima_of_dynamic_sizes(n):
    """With the places of the maxima; numbers are equal in part, of which the first counts."""
    pool = getattr(F, f"adaptive_max_pool{n}d")
    shapes, axes = SHAPES[n], range(2, 2 + n)
    module = compiled(lambda x: pool(x, SIZES[n], return_indices=True), torch.randn(shapes[0]), open_axes=(0, *axes))
    for shape in shapes:
        x = torch.randint(0, 6, shape).float()
        for found, wanted in zip(module(x), pool(x, SIZES[n], return_indices=True), strict=True):
            torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_adaptive_pooling_without_a_batch_or_along_one_axis():
    def function(x):
        return F.adaptive_avg_pool2d(x, (None, 3)), F.adaptive_max_pool2d(x, (4, 3))

    module = compiled(function, torch.randn(3, 9, 10), open_axes=(1, 2))
    for shape in ((3, 9, 10), (3, 2, 1100), (3, 5, 2)):
        x = torch.randn(shape)
        for found, wanted in zip(module(x), function(x), strict=True):
            torch.testing.assert_close(found, wanted, **CLOSE)


def test_adaptive_pooling_of_dynamic_sizes_in_training():
    def loss(x):
        y = F.adaptive_avg_pool2d(x, (4, 3))
        return (y * torch.linspace(-1, 1, y.numel()).reshape(y.shape)).sum()

    module = torch.compile(loss, backend=backend, dynamic=True)
    for shape in ((2, 3, 9, 10), (2, 3, 6, 2), (2, 3, 5, 1031)):
        x = torch.randn(shape, requires_grad=True)
        (wanted,), (found,) = (torch.autograd.grad(f(x), x) for f in (loss, module))
        torch.testing.assert_close(found, wanted, **CLOSE)


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pooling(n):
    """With the places of the maxima, at the random numbers that begin windows; gradients go to these places."""
    pool, x = getattr(F, f"fractional_max_pool{n}d"), torch.randn(2, 3, *(9, 7, 8)[:n])
    samples = torch.rand(2, 3, n)

    def function(x, samples):
        return pool(x, 2, output_size=(5, 3, 4)[:n], return_indices=True, _random_samples=samples)

    for found, wanted in zip(compiled(function, x, samples)(x, samples), function(x, samples), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)

    def loss(x):
        y = function(x, samples)[0]
        return (y * torch.linspace(-1, 1, y.numel()).reshape(y.shape)).sum()

    x.requires_grad_()
    (wanted,), (found,) = (torch.autograd.grad(f(x), x) for f in (loss, torch.compile(loss, backend=backend)))
    torch.testing.assert_close(found, wanted, **CLOSE)
