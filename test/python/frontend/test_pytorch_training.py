"""Training by torch.compile with relayc as its backend, compared with eager: losses, gradients, buffers and steps of optimisers.

Gradients agree to some times the rounding of float32 sums of as many terms as the models have, relative to the largest gradient of a
model: the ones of a bias before a batch normalisation are zero but for rounding.
"""

import copy

import pytest

torch = pytest.importorskip("torch")

from pytorch_models import same  # noqa: E402 # there is torch
from torch import nn  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import relayc  # noqa: E402
from relayc.tools import dynamo  # noqa: E402
from relayc.tools.dynamo import backend  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
TOLERANCE = 1e-5


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(0)
    torch._dynamo.reset()


@pytest.fixture
def graphs(monkeypatch):
    """The graphs that are compiled, and what is left to eager of graphs in parts."""
    made = []
    from_fx = dynamo.from_fx

    def seen(graph, held):
        found = from_fx(graph, held)
        made.append(graph)
        return found

    monkeypatch.setattr(dynamo, "from_fx", seen)
    return made


def loss_of(model, x, seed):
    torch.manual_seed(seed)
    result = model(x)
    if result.dim() == 0:
        return result
    return (result.float() * torch.linspace(-1, 1, result.numel()).reshape(result.shape)).sum()


def agrees(model, *inputs, tolerance=TOLERANCE, **options):
    """The compiled model, of which losses, gradients and buffers agree with eager."""
    other = copy.deepcopy(model)
    compiled = torch.compile(model, backend=backend, **options)
    for i, x in enumerate(inputs):
        for m in (model, other):
            m.zero_grad()
        found, wanted = loss_of(compiled, x, i), loss_of(other, x, i)
        torch.testing.assert_close(found, wanted, rtol=tolerance, atol=10 * tolerance)
        found.backward()
        wanted.backward()
        largest = max(p.grad.abs().max().item() for p in other.parameters())
        for (name, p), q in zip(model.named_parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(p.grad, q.grad, rtol=0, atol=tolerance * largest, msg=lambda text, name=name: f"{name}: {text}")
        for p, q in zip(model.buffers(), other.buffers(), strict=True):
            same(p, q)
    return compiled


class Decoder(nn.Module):
    """A causal language model of one layer, whose result is the loss of the next tokens."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        self.tokens, self.places = nn.Embedding(11, 16), nn.Embedding(16, 16)
        self.norm, self.qkv, self.out, self.head = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 11)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        q, k, v = self.qkv(self.norm(x)).view(*tokens.shape, 3, 2, 8).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + F.dropout(self.out(y), self.dropout)
        return F.cross_entropy(self.head(x)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def test_convolutions_and_batch_normalisation(graphs):
    network = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 8, 3, groups=2, stride=2), nn.BatchNorm2d(8), nn.Hardswish(), nn.AvgPool2d(2)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3), nn.LogSoftmax(-1)),
    )
    agrees(network, torch.randn(4, 3, 18, 18), torch.randn(4, 3, 18, 18))
    assert len(graphs) == 2


def test_other_layers(graphs):
    network = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1, dilation=2), nn.AvgPool2d(3, 2, 1, count_include_pad=False), nn.GroupNorm(2, 8)),
        *(nn.ConvTranspose2d(8, 6, 3, stride=2, output_padding=1, groups=2), nn.SiLU(), nn.MaxPool2d(3, 2, 1)),
        *(nn.ReplicationPad2d((0, 3, 2, -1)), nn.AdaptiveAvgPool2d((5, 3)), nn.Flatten(), nn.RMSNorm(90)),
    )
    agrees(network, torch.randn(2, 3, 15, 15))
    assert len(graphs) == 2


class Distances(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.points, self.p = nn.Parameter(torch.randint(-2, 3, (2, 5, 3)).float()), p

    def forward(self, x):
        """A row's distance from itself is 0, and some of its elements."""
        apart = torch.cdist(x * self.points, self.points[:1], self.p)
        return torch.cat([apart.flatten(), F.pdist(self.points[1], self.p)])


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_distances(p, graphs):
    agrees(Distances(p), torch.ones(1, 1, 1))
    assert len(graphs) == 2


class GridSample(nn.Module):
    def __init__(self, n, mode, padding):
        super().__init__()
        sizes = (5, 4, 3)[:n]
        self.image, self.grid = (nn.Parameter(t) for t in (torch.randn(2, 3, *sizes), torch.rand(2, *sizes[::-1], n) * 5 - 2.5))
        self.how = {"mode": mode, "padding_mode": padding}

    def forward(self, x):
        return sum(F.grid_sample(self.image * x, self.grid, **self.how, align_corners=align) for align in (True, False))


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(("n", "mode"), [(2, "bilinear"), (2, "nearest"), (2, "bicubic"), (3, "bilinear")])
def test_grid_sample(n, mode, padding, graphs):
    agrees(GridSample(n, mode, padding), torch.ones(1))
    assert len(graphs) == 2


def test_bilinear(graphs):
    class Bilinear(nn.Bilinear):
        def forward(self, x):
            return super().forward(x[:, :3], x[:, 3:])

    agrees(Bilinear(3, 4, 5), torch.randn(2, 7))
    assert len(graphs) == 2


class Bags(nn.Module):
    """Of several indices, of the same twice, of none, of padding, and of one; and weights that have derivatives."""

    def __init__(self, mode, padding):
        super().__init__()
        bags = {"mode": mode, "padding_idx": padding, "include_last_offset": True}
        self.bags, self.weights = nn.EmbeddingBag(7, 3, **bags), nn.Parameter(torch.rand(8))

    def forward(self, indices):
        offsets = torch.tensor([0, 3, 3, 5, 7, 8])
        found = self.bags(indices, offsets, self.weights * 2 if self.bags.mode == "sum" else None)
        return found.exp() * self.weights.sum()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 0])
def test_bags_of_embeddings(mode, padding, graphs):
    agrees(Bags(mode, padding), torch.tensor([2, 4, 4, 0, 0, 0, 5, 6]))
    assert len(graphs) == 2


class MaskedScatter(nn.Module):
    def __init__(self):
        super().__init__()
        self.source = nn.Parameter(torch.randn(3, 7))

    def forward(self, x):
        return x.masked_scatter(x > 0, self.source.exp())


def test_masked_scatter(graphs):
    agrees(MaskedScatter(), torch.randn(4, 5))
    assert len(graphs) == 2


class Chosen(nn.Module):
    """Elements whose number the data decides."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(5))

    def forward(self, x):
        return torch.masked_select(x * self.scale, x > 0).exp()


def test_results_whose_size_the_data_decides(graphs):
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        agrees(Chosen(), torch.randn(4, 5), torch.randn(4, 5))
    assert len(graphs) == 2


@pytest.mark.parametrize("bounds", [(1, 2, 3), (2, 2, 4), (0, 5, 5)])
def test_gradients_of_parts_whose_bounds_are_data(bounds, graphs):
    """The gradient joins parts, each at a place in memory that the data decide."""

    def parts(x, bounds):
        return [part * part for part in torch.tensor_split(x.sin(), bounds)]

    inputs = torch.randn(5, 5, requires_grad=True)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        found = torch.compile(parts, backend=backend)(inputs, torch.tensor(bounds))
        sum((part * (i + 1)).sum() for i, part in enumerate(found)).backward()
    ours, inputs.grad = inputs.grad, None
    wanted = parts(inputs, torch.tensor(bounds))
    sum((part * (i + 1)).sum() for i, part in enumerate(wanted)).backward()
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(ours, inputs.grad)
    assert len(graphs) == 2


class UpdatedNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(3)), nn.Parameter(torch.randn(3))
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("variance", torch.ones(3))

    def forward(self, x):
        return torch.ops.aten._batch_norm_with_update(x, self.weight, self.bias, self.mean, self.variance, 0.1, 1e-5)[0]


def test_normalisation_that_updates_statistics(graphs):
    agrees(UpdatedNorm(), torch.randn(4, 3, 5))
    assert len(graphs) == 2


def test_encoder():
    agrees(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0, activation="gelu"), torch.randn(2, 6, 16))


def test_decoder_of_any_size(graphs):
    agrees(Decoder(), *(torch.randint(0, 11, shape) for shape in ((2, 8), (3, 5), (4, 9))), dynamic=True)
    assert len(graphs) == 2
    operators = [str(n.target) for graph in graphs for n in graph.graph.nodes]
    assert sum("flash_attention_for_cpu" in name for name in operators) == 2  # forwards and backwards, whole


def test_masked_attention():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(8, 24)

        def forward(self, x):
            q, k, v = self.qkv(x).unflatten(-1, (3, 1, 8)).permute(2, 0, 3, 1, 4)
            return F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(5, 5, dtype=torch.bool).tril(1), scale=0.3)

    agrees(Masked(), torch.randn(2, 5, 8))


class Attentions(nn.Module):
    """Attention of each kind that torch leaves whole in training, by heads that share keys."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.qkv = nn.Linear(24, 24 + 12 + 12, dtype=dtype)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (-1, 6)).transpose(1, 2) for t in self.qkv(x).split((24, 12, 12), -1))
        sees = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(-1)  # the first query sees nothing
        bias = torch.linspace(-2, 2, x.shape[1]).reshape(1, 1, 1, -1).to(x.dtype)
        found = [
            F.scaled_dot_product_attention(q, k, v, attn_mask=sees, enable_gqa=True),
            F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.7, enable_gqa=True),
            F.scaled_dot_product_attention(q[:, :2], k[:, :, :5], v[:, :, :5]),
        ]
        first = F.scaled_dot_product_attention(q[:, :, :3], k, v, is_causal=True, enable_gqa=True)
        return torch.cat(found, 1).sum(1) + F.pad(first.sum(1), (0, 0, 0, x.shape[1] - 3))


@pytest.fixture
def modules(graphs, monkeypatch):
    """The texts of the programs of the graphs."""
    made = []
    from_fx = dynamo.from_fx

    def seen(graph, held):
        found = from_fx(graph, held)
        made.append(str(found.module.module))
        return found

    monkeypatch.setattr(dynamo, "from_fx", seen)
    return made


def test_kinds_of_attention(modules):
    agrees(Attentions(), torch.randn(2, 19, 24))
    forwards, backwards = modules
    assert forwards.count("relay.nn_attention_lse") == backwards.count("relay.nn_attention_grad") == 4


def test_attention_of_bfloat16(modules):
    """Rounding is 2**-9; eager rounds weights, too."""
    agrees(Attentions(torch.bfloat16), torch.randn(2, 19, 24, dtype=torch.bfloat16), tolerance=2**-5)
    assert modules[1].count("relay.nn_attention_grad") == 4


def test_efficient_attention():
    """What torch makes of attention on GPUs; its log-sum-exp has zeros up to a multiple of 32 queries."""
    aten = torch.ops.aten

    def both(q, k, v, bias, g):
        out, lse, seed, offset = aten._scaled_dot_product_efficient_attention(q, k, v, bias, True, scale=0.3)
        *found, _ = aten._scaled_dot_product_efficient_attention_backward(
            g, q, k, v, bias, out, lse, seed, offset, 0.0, [True, True, True, False], scale=0.3
        )
        return out, lse, *found

    q, k, v, g = (torch.randn(2, 3, n, 8, requires_grad=True) for n in (5, 7, 7, 5))
    bias = torch.randn(2, 1, 5, 7)
    arrays = [t.detach() for t in (q, k, v, bias, g)]
    graph = make_fx(both, tracing_mode="fake")(*arrays)
    out, lse, *found = relayc.compile(dynamo.from_fx(graph, {}).module)["main"](*(a.numpy() for a in arrays))
    wanted = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.3)
    wanted.backward(g)
    for a, b in zip([out, *found], [wanted.detach(), q.grad, k.grad, v.grad], strict=True):
        torch.testing.assert_close(torch.from_numpy(a), b)
    scores = 0.3 * q @ k.transpose(2, 3) + bias
    torch.testing.assert_close(torch.from_numpy(lse), F.pad(scores.logsumexp(3), (0, 27)).detach())


def test_attention_whose_bias_has_a_gradient(modules):
    """torch decomposes it."""

    class Biased(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.bias = nn.Linear(8, 24), nn.Parameter(torch.randn(5, 5))

        def forward(self, x):
            q, k, v = self.qkv(x).unflatten(-1, (3, 1, 8)).permute(2, 0, 3, 1, 4)
            return F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias)

    agrees(Biased(), torch.randn(2, 5, 8))
    assert not any("nn_attention_grad" in text for text in modules)


def test_dropout_draws_numbers_of_eager(graphs):
    """The same numbers where its operand lies in memory as in eager."""
    agrees(Decoder(dropout=0.25), torch.randint(0, 11, (2, 8)))
    assert len(graphs) == 2  # forwards and backwards


def test_operators_that_relayc_lacks(graphs):
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 3)

        def forward(self, x):
            return self.second(torch.special.gammainc(torch.full((8,), 2.0), self.first(x).exp()) * 2).sin()

    agrees(Network(), torch.randn(3, 4))
    assert len(graphs) >= 3


def test_autocast():
    """Both compute in bfloat16, whose rounding is 2**-9."""
    network = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))
    with torch.autocast("cpu", torch.bfloat16):
        agrees(network, torch.randn(4, 5), tolerance=2**-5)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_steps_follow_eager(optimizer):
    """Rounding grows by a factor from step to step: the losses of twenty agree to a hundred times that of one."""
    network = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))
    other = copy.deepcopy(network)
    compiled = torch.compile(network, backend=backend)
    x = torch.randn(32, 6)
    y = torch.stack([x[:, 0] * x[:, 1], x[:, 2:].sum(1)], 1)
    losses = []
    for model, parameters in ((compiled, network.parameters()), (other, other.parameters())):
        optimiser = optimizer(parameters, lr=0.02)
        losses.append([])
        for _ in range(20):
            optimiser.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimiser.step()
            losses[-1].append(loss.item())
    assert losses[1][-1] < 0.9 * losses[1][0]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=0)
