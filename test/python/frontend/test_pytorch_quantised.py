"""Models of PyTorch with weights of 8 and 4 bits: torch's packed weights, integer products, torchao's quantised layers."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import relayc  # noqa: E402

aten = torch.ops.aten


class Int4(nn.Module):
    def __init__(self, numbers, group, scales, zeros):
        super().__init__()
        self.group = group
        self.register_buffer("packed", aten._convert_weight_to_int4pack_for_cpu(numbers, 2))
        self.register_buffer("scales_and_zeros", torch.stack([scales, zeros], 2).transpose(0, 1).contiguous())

    def forward(self, x):
        return aten._weight_int4pack_mm_for_cpu(x, self.packed, self.group, self.scales_and_zeros)


class Int8(nn.Module):
    def __init__(self, units, depth):
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 128, (units, depth), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(units) - 0.5)

    def forward(self, x):
        return aten._weight_int8pack_mm(x, self.weight, self.scales)


def kernels(module):
    return [operator for kernel in module.kernels for operator in kernel.ops]


@pytest.mark.parametrize(("depth", "units", "group", "rows"), [(64, 32, 64, 1), (128, 48, 32, 3), (1152, 64, 128, 5), (256, 192, 256, 33)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_int4_weights_of_pytorch(depth, units, group, rows, dtype):
    numbers = torch.randint(0, 16, (units, depth), dtype=torch.int32)
    scales, zeros = torch.randn(units, depth // group).to(dtype), torch.randn(units, depth // group).to(dtype)
    model, x = Int4(numbers, group, scales, zeros), torch.randn(rows, depth).to(dtype)
    module = relayc.compile(relayc.from_pytorch(model, (x,)))
    assert "nn.dense_blocks" in kernels(module)
    weights = (numbers - 8) * scales.double().repeat_interleave(group, 1) + zeros.double().repeat_interleave(group, 1)
    wanted, found = (x.double() @ weights.T).numpy(), module(x).double().numpy()
    # Sums of `depth` float32 products, of weights up to 8 steps; then one rounding to bfloat16.
    bound = 1e-6 * depth**0.5 * np.abs(x.double().numpy()) @ np.abs(weights.numpy()).T
    np.testing.assert_array_less(np.abs(found - wanted), bound + (2**-8 if dtype == torch.bfloat16 else 0) * np.abs(wanted) + 1e-30)


def test_int4_weights_of_pytorch_with_scales_of_zero():
    """A group with a scale of zero has one value: its zero."""
    numbers, scales = torch.randint(0, 16, (32, 64), dtype=torch.int32), torch.rand(32, 2)
    scales[3, 1] = 0
    model, x = Int4(numbers, 32, scales, torch.randn(32, 2)), torch.randn(4, 64)
    module = relayc.compile(relayc.from_pytorch(model, (x,)))
    assert "nn.dense_blocks" in kernels(module)
    torch.testing.assert_close(module(x), model(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("depth", "units"), [(128, 64), (1056, 16), (100, 32), (16, 48), (20, 3)])
def test_int8_weights_of_pytorch(depth, units):
    model, x = Int8(units, depth), torch.randn(3, depth)
    module = relayc.compile(relayc.from_pytorch(model, (x,)))
    assert "nn.dense_blocks" in kernels(module)
    wanted = model(x)
    torch.testing.assert_close(module(x), wanted, rtol=0, atol=1e-6 * wanted.abs().max().item() * depth**0.5)


@pytest.mark.parametrize(("rows", "depth", "columns"), [(33, 72, 40), (17, 8, 8), (18, 1032, 64)])
def test_int_mm_of_pytorch_is_exact(rows, depth, columns):
    x, y = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((rows, depth), (depth, columns)))

    class Product(nn.Module):
        def forward(self, x, y):
            return torch._int_mm(x, y)

    module = relayc.compile(relayc.from_pytorch(Product(), (x, y)))
    assert torch.equal(module(x, y), torch._int_mm(x, y))
    assert "qnn.matmul" in kernels(module) or any("int8" in kernel.schedule for kernel in module.kernels)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Int8WeightOnlyConfig", {}),
        ("Int8DynamicActivationInt8WeightConfig", {}),
        ("IntxWeightOnlyConfig", {"weight_dtype": torch.int4}),
        ("Int8DynamicActivationIntxWeightConfig", {"weight_dtype": torch.int4}),
    ],
)
def test_pytorch_layers_that_torchao_quantises(name, given):
    quantization = pytest.importorskip("torchao.quantization")
    model = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 32)).eval()
    quantization.quantize_(model, getattr(quantization, name)(**given))
    x = torch.randn(5, 128)
    with torch.no_grad():
        wanted = model(x)
    module = relayc.compile(relayc.from_pytorch(torch.export.export(model, (x,))))
    # Numbers that lie between two steps of the 8 bits may go to either: a step of one activation, times a weight.
    torch.testing.assert_close(module(x), wanted, rtol=0, atol=1e-3 * wanted.abs().max().item())
