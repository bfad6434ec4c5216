"""Random numbers of models of PyTorch: those that eager mode draws after the same seed."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import relayc  # noqa: E402

CASES = {
    "rand": lambda x, p: (torch.rand(3, 5), torch.rand_like(x), torch.rand(257, dtype=torch.float64), torch.rand(9).half()),
    "randn": lambda x, p: (torch.randn(3, 5), torch.randn_like(x), torch.randn(1025), torch.randn(40, dtype=torch.bfloat16)),
    "randint": lambda x, p: (torch.randint(3, 11, (4, 60)), torch.randint(5, (7,)), torch.randint_like(x, -4, 9)),
    "randperm": lambda x, p: (torch.randperm(17), torch.randperm(1), torch.randperm(1100)),
    "bernoulli": lambda x, p: (torch.bernoulli(p), torch.bernoulli(x, 0.4), torch.empty(8, 16).bernoulli_(p)),
    "normal": lambda x, p: (torch.normal(x, p), torch.normal(x, 2.0), torch.normal(1.0, p), torch.empty(21).normal_(-2, 0.5)),
    "other": lambda x, p: (
        torch.empty(40).uniform_(-3, 2),
        torch.empty(7).exponential_(2.0),
        torch.empty(9).cauchy_(1, 2),
        torch.empty(9).log_normal_(0.1, 0.3),
        torch.empty(9).geometric_(0.3),
    ),
    "multinomial": lambda x, p: (torch.multinomial(p, 3), torch.multinomial(p, 40, replacement=True), torch.multinomial(p[0], 2)),
    "dropout": lambda x, p: (nn.functional.dropout(x, 0.3), nn.functional.dropout(x, 1.0), nn.functional.dropout2d(x[None], 0.5)),
    # Equal calls are no common subexpression.
    "order": lambda x, p: (torch.rand(4) - torch.rand(4), torch.randn(4) * 0 + torch.rand(4), torch.rand(4)),
}


class Drawing(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, p):
        return self.function(x, p)


def same_numbers(module, model, *inputs):
    for seed in (1, 2):
        torch.manual_seed(seed)
        wanted = model(*inputs)
        torch.manual_seed(seed)
        torch.testing.assert_close(module(*inputs), wanted)
    # The generator is where eager leaves it.
    torch.manual_seed(3)
    module(*inputs)
    after = torch.rand(2)
    torch.manual_seed(3)
    model(*inputs)
    assert torch.equal(torch.rand(2), after)


@pytest.mark.parametrize("name", CASES)
def test_exported_pytorch_draws_what_eager_draws(name):
    model, inputs = Drawing(CASES[name]), (torch.randn(8, 16), torch.rand(8, 16))
    same_numbers(relayc.compile(relayc.from_pytorch(model, inputs)), model, *inputs)


def test_pytorch_at_every_size():
    n = torch.export.Dim("n", min=2, max=4096)
    model = Drawing(lambda x, p: (torch.rand_like(x) + x, nn.functional.dropout(p, 0.25), torch.randperm(x.shape[0])))
    example = torch.randn(8, 3), torch.rand(8, 3)
    module = relayc.compile(relayc.from_pytorch(model, example, dynamic_shapes={"x": {0: n}, "p": {0: n}}))
    for size in (2, 15, 16, 17, 1031):
        same_numbers(module, model, torch.randn(size, 3), torch.rand(size, 3))


@pytest.mark.parametrize("network", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("batch_first", [False, True])
def test_dropout_between_layers_of_pytorch(network, batch_first):
    model = network(4, 6, num_layers=3, dropout=0.4, bidirectional=True, batch_first=batch_first).train()
    x = torch.randn(5, 3, 4)
    module = relayc.compile(relayc.from_pytorch(model, (x,)))
    with torch.no_grad():
        same_numbers(module, model, x)


def test_compiled_pytorch_draws_what_eager_draws():
    from relayc.tools.dynamo import backend

    def function(x):
        return x * torch.rand_like(x), torch.randn(3)

    compiled, x = torch.compile(function, backend=backend), torch.randn(4, 33)
    same_numbers(compiled, function, x)


def test_pytorch_error_of_a_distribution_reaches_the_caller():
    module = relayc.compile(relayc.from_pytorch(Drawing(lambda x, p: torch.bernoulli(p)), (torch.randn(2), torch.rand(2))))
    with pytest.raises(RuntimeError, match="p_in >= 0 && p_in <= 1"):
        module(torch.randn(2), torch.tensor([0.5, 1.5]))


def test_pytorch_library_draws_in_another_process(tmp_path):
    model = Drawing(lambda x, p: torch.rand_like(x) + p)
    relayc.compile(relayc.from_pytorch(model, (torch.randn(3), torch.rand(3)))).export_library(tmp_path / "drawing.so")
    program = (
        "import numpy as np, relayc, torch\n"
        f"module = relayc.load_module({str(tmp_path / 'drawing.so')!r})\n"
        "torch.manual_seed(5)\n"
        "found = module(np.zeros(3, np.float32), np.zeros(3, np.float32))\n"
        "torch.manual_seed(5)\n"
        "assert np.array_equal(np.asarray(found), torch.rand(3).numpy()), found\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
