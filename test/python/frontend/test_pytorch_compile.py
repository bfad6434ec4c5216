"""torch.compile with relayc as its backend, compared with eager: graph breaks, dynamic sizes, weights, buffers, what is left to eager."""

import copy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from pytorch_models import resnet, same  # noqa: E402 # there is torch
from torch import nn  # noqa: E402

from relayc.tools import dynamo  # noqa: E402
from relayc.tools.dynamo import backend  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def inference():
    torch.manual_seed(0)
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def test_a_graph_break():
    def function(x):
        y = torch.relu(x) * 2
        if y.sum() > 3:
            y = y - 1
        return y.softmax(-1), [y, None, 3]

    compiled = torch.compile(function, backend=backend)
    for x in (torch.randn(4, 8), -torch.rand(4, 8)):
        found, wanted = compiled(x), function(x)
        same(found[0], wanted[0])
        assert found[1][1:] == [None, 3]


def test_dynamic_sizes_need_no_graph_for_each():
    made = []

    def counted(graph, inputs, **options):
        made.append(graph)
        return backend(graph, inputs, **options)

    network = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).eval()
    compiled = torch.compile(network, backend=counted, dynamic=True)
    for rows in (3, 7, 12, 40):
        x = torch.randn(rows, 8)
        same(compiled(x), network(x))
    assert len(made) <= 2  # the first may be of its size alone


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_views_and_results_of_every_size(dtype):
    """Tensors that a program cannot take as they are, and results on both sides of the size from which memory is used again."""

    def function(x, y):
        return x * 2 + y, x.amax(0), x[:3] - y[:3]

    compiled = torch.compile(function, backend=backend)
    rows = (1 << 17) // (64 * dtype.itemsize)
    for n in (rows - 1, rows, 3 * rows):
        x, y = torch.randn(n, 64).to(dtype), torch.randn(64, n).to(dtype)
        held = []
        for a, b in ((x, x.flip(0)), (x, y.T), (x.t().contiguous().t(), y.mT), (x, x.flip(1).clone())):
            found, wanted = compiled(a, b), function(a, b)
            held.append((found, wanted))
        for found, wanted in held:  # later calls do not write results that are held
            for one, other in zip(found, wanted, strict=True):
                torch.testing.assert_close(one, other)


def test_tensors_with_the_negative_bit():
    z = torch.randn(4, 5, dtype=torch.complex64).conj()
    compiled = torch.compile(lambda x: x * 2 + 1, backend=backend)
    for x in (z.imag.clone(), z.imag.contiguous(), torch._neg_view(torch.randn(4, 5))):
        same(compiled(x), x * 2 + 1)


@pytest.mark.parametrize("freeze", [False, True])
def test_weights(freeze):
    network, x = resnet().eval(), torch.randn(1, 3, 32, 32)
    compiled = torch.compile(network, backend=backend, options={"freeze": freeze, "num_threads": 1})
    before = network(x)
    same(compiled(x), before)
    network[-1].bias.add_(1.0)
    same(compiled(x), before if freeze else before + 1.0)


def test_buffers_are_written():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            self.total.add_(x.sum(0))
            return x + self.total

    network = Counter()
    other = copy.deepcopy(network)
    compiled = torch.compile(network, backend=backend, options={"freeze": True})
    for _ in range(3):
        x = torch.randn(2, 3)
        same(compiled(x), other(x))
        same(network.total, other.total)


def frozen(monkeypatch):
    """How many parameters of each graph become constants."""
    held, from_fx = [], dynamo.from_fx

    def seen(graph, constants):
        found = from_fx(graph, constants)
        held.append(len(constants))
        return found

    monkeypatch.setattr(dynamo, "from_fx", seen)
    return held


def test_tracked_weights_are_constants_until_they_are_written(monkeypatch):
    network, x = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), torch.randn(3, 8)
    held = frozen(monkeypatch)
    compiled = torch.compile(network, backend=backend, options={"freeze": "tracked"})
    for _ in range(2):
        same(compiled(x), network(x))
    assert held == [4]
    network[2].weight.mul_(2.0)
    network[0].bias.data = torch.ones(16)
    for _ in range(2):
        same(compiled(x), network(x))
    assert held == [4, 0]


def test_a_wrong_option():
    with pytest.raises(Exception, match="freeze: expected True, False or 'tracked', found 'yes'"):
        torch.compile(nn.Linear(3, 2), backend=backend, options={"freeze": "yes"})(torch.randn(2, 3))


@pytest.fixture
def made(monkeypatch):
    """The operators of the graphs that relayc has compiled."""
    found, from_fx = [], dynamo.from_fx

    def seen(graph, constants):
        program = from_fx(graph, constants)
        found.extend(str(n.target) for n in graph.graph.nodes)
        return program

    monkeypatch.setattr(dynamo, "from_fx", seen)
    return found


@pytest.mark.parametrize("freeze", [False, True])
def test_operators_that_relayc_lacks_are_left_to_eager(monkeypatch, freeze):
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 4)

        def forward(self, x):
            y = torch.special.airy_ai(self.first(x).relu() + 1)
            return self.second(y * 2) - 1, y

    held = frozen(monkeypatch)
    network = Network()
    compiled = torch.compile(network, backend=backend, options={"freeze": freeze})
    x = torch.randn(3, 4)
    for got, want in zip(compiled(x), network(x), strict=True):
        same(got, want)
    assert held == ([2, 2] if freeze else [0, 0])  # before and after the function


def test_a_branch_with_an_operator_that_relayc_lacks_is_left_to_eager(made):
    def function(x):
        return torch.cond(x.sum() > 0, lambda x: torch.special.airy_ai(x.sin() + 1), lambda x: x.cos(), (x * 2,)) * 3 - 1

    x = torch.randn(3, 4)
    for given in (x.abs(), -x.abs()):
        same(torch.compile(function, backend=backend)(given), function(given))
    assert "aten.sub.Tensor" in made and "cond" not in made


def test_torch_finds_the_backend_by_name():
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert f'[project.entry-points.torch_dynamo_backends]\nrelayc = "{backend.__module__}:{backend.__name__}"' in text


# ---- torch's fast paths of transformers


ENCODERS = {
    "post-norm": dict(activation="gelu"),
    "pre-norm": dict(activation="relu", norm_first=True),
}


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("kind", ENCODERS)
def test_torchs_fast_path_of_encoders(made, kind, padded):
    layer = nn.TransformerEncoderLayer(24, 4, 40, batch_first=True, layer_norm_eps=0.1, **ENCODERS[kind])
    network = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    for parameter in network.parameters():
        parameter.normal_(0, 0.3)
    x = torch.randn(3, 9, 24)
    mask = torch.arange(9) >= torch.tensor([[9], [4], [1]]) if padded else None
    same(torch.compile(network, backend=backend)(x, src_key_padding_mask=mask), network(x, src_key_padding_mask=mask), 1e-5)
    assert "aten._transformer_encoder_layer_fwd.default" in made


MASKS = {"scores": ((9, 9), 0), "keys": ((2, 9), 1), "all": ((2, 3, 9, 9), 2)}


@pytest.mark.parametrize("is_self", [True, False])
@pytest.mark.parametrize("axes", ["none", *MASKS])
def test_torchs_fast_path_of_attention(made, axes, is_self):
    weights = [torch.randn(shape) for shape in ((72, 24), (72,), (24, 24), (24,))]
    given = {}
    if axes in MASKS:
        shape, kind = MASKS[axes]
        mask = torch.rand(shape) > 0.5
        mask[..., 0] = False
        given = {"mask": mask, "mask_type": kind}

    def function(q, k, v):
        return torch._native_multi_head_attention(q, k, v, 24, 3, *weights, need_weights=False, **given)[0]

    inputs = [torch.randn(2, 9, 24)] * 3 if is_self else [torch.randn(2, 9, 24) for _ in range(3)]
    # Two products of 24 normal numbers before the softmax: the scores are some hundreds.
    same(torch.compile(function, backend=backend)(*inputs), function(*inputs), 1e-4)
    assert "aten._native_multi_head_attention.default" in made


def test_weights_that_are_used_are_left_to_eager(made):
    weights = [torch.randn(shape) for shape in ((72, 24), (72,), (24, 24), (24,))]

    def function(x):
        return torch._native_multi_head_attention(x.relu().tanh(), x, x, 24, 3, *weights)[1] * 2

    x = torch.randn(2, 9, 24)
    same(torch.compile(function, backend=backend)(x), function(x))
    assert "aten._native_multi_head_attention.default" not in made and "aten.relu.default" in made
