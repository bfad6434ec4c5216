"""torch.compile with relayc as its backend, compared with eager: graph breaks, dynamic sizes, weights, buffers, refusals."""

import copy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from pytorch_models import resnet, same  # noqa: E402 # there is torch
from torch import nn  # noqa: E402

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


def test_training_is_refused():
    network = nn.Linear(3, 2)
    with torch.enable_grad(), pytest.raises(Exception, match="expected a model in inference"):
        torch.compile(network, backend=backend)(torch.randn(2, 3))


def test_torch_finds_the_backend_by_name():
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert f'[project.entry-points.torch_dynamo_backends]\nrelayc = "{backend.__module__}:{backend.__name__}"' in text
