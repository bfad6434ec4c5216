"""Operators of PyTorch that few models use, in graphs as torch.compile gives them, which are interpreted: compared with eager."""

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402 # there is torch
import torch.nn.functional as F  # noqa: E402
from pytorch_models import drawn, same  # noqa: E402
from torch._higher_order_ops import while_loop  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils import _pytree  # noqa: E402

from relayc.frontend.pytorch.fx import from_fx  # noqa: E402
from relayc.pipelines.evaluate.relay import RelayInterpreter  # noqa: E402
from relayc.tools.dynamo import _decompositions  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
aten = torch.ops.aten
X, Y, IMAGE = drawn(3, 5), drawn(3, 5, seed=1), drawn(1, 2, 9, 5)
I = torch.tensor([2, 0, 2])  # noqa: E741
SQUARE = drawn(2, 3, 3, seed=2)
BYTES = torch.tensor(np.random.default_rng(0).integers(0, 256, (1, 2, 9, 5)), dtype=torch.uint8)
LU, PIVOTS = torch.linalg.lu_factor(SQUARE)
WEIGHTS = drawn(12, 4), drawn(12), drawn(4, 4), drawn(4)
NORMS = drawn(4, seed=3), drawn(4, seed=4), drawn(4, seed=5), drawn(4, seed=6)


def reduced(how, kept):
    return lambda x, i: [x.index_reduce(axis, i, y, how, include_self=kept) for axis, y in ((0, x.flip(0) + 2), (1, x[:, 1:4]))]


def cubic(padding):
    return lambda g, x, grid: aten.grid_sampler_2d_backward(g, x, grid, 2, padding, padding == 1, [True, True])


GRAPHS = {
    "places": (
        lambda x, i: (
            *(x.index_select(1, i), x[0, 0].index_select(0, i[1:2]), torch.take(x, i * 5 + 4), torch.gather(x, 1, i[:0, None])),
            *(torch.nonzero_static(x > 0.3, size=n, fill_value=-7) for n in (2, 15)),
            *(x.index_copy(1, i[:2], x[:, 2:4]), x[0, 0].index_copy(0, i[1], x[1, 1]), x.index_add(1, i, x[:, :3], alpha=3)),
            *(torch.nonzero_static(x[0, 0], size=2), aten.copy(x, x[:1]), aten.embedding_renorm(x * 3, i, 1.5, 1.0)),
        ),
        (X, I),
    ),
    **{
        f"{how} at places{', which begin as they are' if kept else ''}": (reduced(how, kept), (X, I))
        for how in ("mean", "prod", "amax", "amin")
        for kept in (False, True)
    },
    "order": (
        lambda x: (*torch.topk(x, 2, 1), *torch.topk(x, 2, 0, largest=False), *x.kthvalue(2, 1), *x.kthvalue(3, 0, keepdim=True)),
        (X,),
    ),
    "ranges": (lambda x: (torch.arange(0.5, 4) + x, torch.arange(1, 4, 0.75) * x, torch.arange(7, 0, -2) - x), (X[:, :4],)),
    "angles": (lambda x, y: (torch.atan2(x, y), torch.atan2(x[:1], y), torch.atan2(x, y[0])), (X, Y)),
    "systems": (
        lambda lu, pivots, b: [
            torch.linalg.lu_solve(lu, pivots, b if left else b.mT, left=left, adjoint=adjoint)
            for left in (False, True)
            for adjoint in (False, True)
        ],
        (LU, PIVOTS, drawn(2, 3, 2, seed=3)),
    ),
    "images": (
        lambda x: (
            *(F.interpolate(x, scale_factor=(0.4, 1.7), mode=mode) for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")),
            *(F.interpolate(x, (3, 8), mode=mode, antialias=True) for mode in ("bilinear", "bicubic", "lanczos")),
            F.interpolate(x, scale_factor=(0.4, 1.7), mode="bicubic", antialias=True),
            aten._upsample_bilinear2d_aa(x, (4, 9), False, 0.0, 1.8),
            *(
                F.interpolate(image, size, mode="bilinear", antialias=True, align_corners=True)
                for image, size in ((x, (4, 9)), (x, (1, 4)), (x[..., :1], (3, 2)))
            ),
        ),
        (IMAGE.double(),),
    ),
    "bytes of images": (
        lambda x: [F.interpolate(x, (4, 8), mode=mode, antialias=True) for mode in ("bilinear", "bicubic")],
        (BYTES,),
    ),
    **{
        f"derivatives of cubic samples, padding {padding}": (
            cubic(padding),
            (drawn(1, 2, 3, 4), IMAGE, torch.linspace(-1.9, 1.7, 24).view(1, 3, 4, 2)),
        )
        for padding in (0, 1, 2)
    },
    "layers": (
        lambda x, w, n: (
            aten.native_dropout(x, 0.3, False)[0],
            *(aten._transformer_encoder_layer_fwd(x, 4, 2, *w, g, f, 1e-3, *n, w[0][:7], w[1][:7], w[0].view(-1)[:28].view(4, 7), w[3])
              for f, g in ((False, False), (True, True))),
        ),
        (drawn(2, 3, 4), WEIGHTS, NORMS),
    ),
    "transforms": (
        lambda x, y: (
            *(torch.fft.irfft(torch.complex(x, y), n, norm=norm) for n in (7, 8) for norm in ("forward", "ortho", "backward")),
            *(torch.view_as_real(torch.fft.fft2(torch.complex(x, y), norm=norm)) for norm in ("forward", "ortho", "backward")),
        ),
        (X, Y),
    ),
    "a loop": (
        lambda x, n: while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x * 0.5 + i), (n, x)),
        (X, torch.tensor(1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_pytorch_graphs_give_what_eager_gives(name):
    function, args = GRAPHS[name]
    graph = make_fx(function, decomposition_table=_decompositions(), tracing_mode="fake")(*args)
    found = RelayInterpreter(from_fx(graph, {}).module)("main", [a.numpy() for a in _pytree.tree_leaves(args)])
    for got, want in zip(found, _pytree.tree_leaves(function(*args)), strict=True):
        same(torch.from_numpy(np.array(got)).view(want.dtype), want)


def test_pytorch_zeta_functions_are_exact_to_float64():
    s, x = torch.tensor([1.5, 2.0, 7.0, 30.0], dtype=torch.float64), torch.tensor([0.25, 1.0, 3.5, 9.0], dtype=torch.float64)
    graph = make_fx(torch.special.zeta, tracing_mode="fake")(s, x)
    (found,) = RelayInterpreter(from_fx(graph, {}).module)("main", [s.numpy(), x.numpy()])
    np.testing.assert_allclose(found, torch.special.zeta(s, x).numpy(), rtol=1e-14)


@pytest.mark.parametrize("correction", [0, 1, 2])
def test_pytorch_variances_are_operators(correction):
    graph = make_fx(lambda x: x.var(1, correction=correction), tracing_mode="fake")(X)
    assert ("relay.variance" in str(from_fx(graph, {}).module)) == (correction < 2)
