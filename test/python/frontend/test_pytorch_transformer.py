"""Torch's fast paths of transformers by torch.compile, compared with eager."""

import pytest

torch = pytest.importorskip("torch")

from pytorch_models import same  # noqa: E402 # there is torch
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
