"""Quantised models of PyTorch: PT2E, fake quantisation, torch's packed weights of 8 and 4 bits, integer products, torchao's layers."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.ao.quantization.fx import _decomposed  # noqa: E402, F401 (it registers quantized_decomposed)

import relayc  # noqa: E402

aten, pt2e = torch.ops.aten, torch.ops.quantized_decomposed


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


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
    ("name", "given", "product"),
    [
        ("Int8WeightOnlyConfig", {}, "nn.dense_blocks"),
        ("Int8DynamicActivationInt8WeightConfig", {}, "int8"),
        ("IntxWeightOnlyConfig", {"weight_dtype": torch.int4}, "nn.dense_blocks"),
        ("IntxWeightOnlyConfig", {"weight_dtype": torch.int2, "granularity": 32}, "nn.dense_blocks"),
        ("Int8DynamicActivationIntxWeightConfig", {"weight_dtype": torch.int4, "weight_granularity": 32}, "nn.dense_blocks"),
    ],
)
def test_pytorch_layers_that_torchao_quantises(name, given, product):
    quantization = pytest.importorskip("torchao.quantization")
    model = nn.Sequential(nn.Linear(288, 256), nn.ReLU(), nn.Linear(256, 272)).eval()
    ways = {key: quantization.PerGroup(value) if isinstance(value, int) else value for key, value in given.items()}
    quantization.quantize_(model, getattr(quantization, name)(**ways))
    x = torch.randn(5, 288)
    with torch.no_grad():
        wanted = model(x)
    module = relayc.compile(relayc.from_pytorch(torch.export.export(model, (x,))))
    assert sum(product in kernel.ops or kernel.schedule.startswith(product) for kernel in module.kernels) == 2
    # Numbers that lie between two steps of the 8 bits may go to either: a step of one activation, times a weight.
    torch.testing.assert_close(module(x), wanted, rtol=0, atol=1e-3 * wanted.abs().max().item())


@pytest.fixture(scope="module")
def affine():
    """torchao's operator on blocks that have a scale each, which is declared here where torchao is not installed."""
    if importlib.util.find_spec("torchao") is not None:
        importlib.import_module("torchao.quantization")
        yield torch.ops.torchao.dequantize_affine
        return
    library = torch.library.Library("torchao", "DEF")
    library.define(
        "dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType input_dtype, "
        "Scalar? quant_min=None, Scalar? quant_max=None, ScalarType output_dtype=6) -> Tensor"
    )

    def dequantize(x, blocks, scale, zero, dtype, low=None, high=None, output_dtype=torch.float32):
        counts = [size // block for size, block in zip(x.shape, blocks, strict=True)]
        for i, block in enumerate(blocks):
            scale, zero = (t if t is None else t.reshape(counts if i == 0 else t.shape).repeat_interleave(block, i) for t in (scale, zero))
        return ((x.to(output_dtype) - (0 if zero is None else zero.to(output_dtype))) * scale).to(output_dtype)

    library.impl("dequantize_affine", dequantize, "CompositeExplicitAutograd")
    yield torch.ops.torchao.dequantize_affine
    library._destroy()


@pytest.mark.parametrize("blocks", [(48, 64), (1, 64), (48, 1), (1, 32), (1, 16), (6, 16), (1, 4), (1, 1)])
@pytest.mark.parametrize("zero", [None, torch.int8, torch.float32])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_of_blocks(affine, blocks, zero, dtype):
    shape, counts = (48, 64), (48 // blocks[0], 64 // blocks[1])
    weight, x = torch.randint(-8, 8, shape, dtype=torch.int8), torch.randn(3, 64, dtype=dtype)
    held = {"w": weight, "s": (torch.rand(counts) + 0.1).to(dtype), "z": None if zero is None else torch.randint(-3, 3, counts).to(zero)}

    def whole(w, s, z):
        return affine(w, blocks, s, z, torch.int8, -8, 7, output_dtype=dtype)

    held = {name: tensor for name, tensor in held.items() if tensor is not None}
    function = Function(lambda x, w, s, z=None: nn.functional.linear(x, whole(w, s, z)), **held)
    module = compiled(function, x)
    assert ("nn.dense_blocks" in kernels(module)) == (blocks[1] % 16 == 0)
    exact = whole(weight, held["s"], held.get("z"))
    agree(lambda w, s, z=None: whole(w, s, z), weight, **{name: held[name] for name in ("s", "z") if name in held})
    wanted, found = x.double() @ exact.double().T, module(x).double()
    # float32 sums of 64 products; for bfloat16, weights and the result are rounded to 8 bits, in torch and perhaps not here.
    error = 1e-6 if dtype == torch.float32 else 2.0**-8
    bound = (x.double().abs() @ exact.double().abs().T) * error
    assert ((found - wanted).abs() <= bound + bound.max() * 0.1).all()


@pytest.mark.parametrize("zero", [None, torch.int8])
def test_blocks_by_themselves(affine, zero):
    """One block, blocks along each axis of one row or several, and of both."""
    blocks = (4, 6), (1, 6), (4, 1), (2, 6), (2, 3)
    counts = [(4 // rows, 6 // columns) for rows, columns in blocks]
    scales = [torch.rand(count) + 0.1 for count in counts]
    zeros = [None if zero is None else torch.randint(-3, 3, count).to(zero) for count in counts]

    def function(w):
        return tuple(affine(w, block, s, z, torch.int8, -8, 7) for block, s, z in zip(blocks, scales, zeros, strict=True))

    agree(function, torch.randint(-8, 8, (4, 6), dtype=torch.int8))


# ---- PT2E -------------------------------------------------------------------------------------------------------------------------------


class Function(nn.Module):
    """Calls a function, with tensors that the module holds."""

    def __init__(self, function, **held):
        super().__init__()
        self.function = function
        for name, tensor in held.items():
            self.register_buffer(name, tensor)

    def forward(self, *args):
        return self.function(*args, **dict(self.named_buffers()))


def compiled(model, *args):
    return relayc.compile(relayc.from_pytorch(model, args))


def agree(function, *args, **held):
    """What relayc and torch give of a function is equal."""
    model = Function(function, **held)
    found, wanted = compiled(model, *args)(*args), model(*args)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for a, b in pairs:
        assert a.dtype == b.dtype
        assert torch.equal(a, b), (a, b)


def between_steps(shape, scale):
    """Numbers that are nowhere near halfway between two steps, where a quotient and a product with the reciprocal may differ."""
    whole = torch.randint(-400, 400, shape)
    return (whole + torch.rand(shape) * 0.8 - 0.4) * scale


RANGES = [
    (torch.uint8, 0, 255, 128),
    (torch.uint8, 0, 127, 3),
    (torch.int8, -128, 127, -5),
    (torch.int8, -127, 127, 0),
    (torch.int8, -8, 7, 1),
    (torch.int16, -32768, 32767, -300),
    (torch.uint16, 0, 600, 500),
    (torch.int32, -250, 2**31 - 1, 7),
]


@pytest.mark.parametrize(("dtype", "low", "high", "zero"), RANGES)
@pytest.mark.parametrize("overload", ["default", "tensor", "tensor2"])
def test_steps_of_a_tensor(dtype, low, high, zero, overload):
    x = between_steps((3, 5, 7), 0.02)
    quantize, dequantize = (getattr(op, overload) for op in (pt2e.quantize_per_tensor, pt2e.dequantize_per_tensor))

    def both(x, **ways):
        given = [t.reshape(()) for t in ways.values()] if ways else [0.02, zero]
        ends = given[2:] if len(given) > 2 else (low, high)
        numbers = quantize(x, *given[:2], *ends, dtype)
        return numbers, dequantize(numbers, *given[:2], *ends, dtype)

    held = {
        "default": {},
        "tensor": {"s": torch.tensor([0.02]), "z": torch.tensor([zero])},
        "tensor2": {"s": torch.tensor([0.02]), "z": torch.tensor([zero]), "a": torch.tensor([low]), "b": torch.tensor([high])},
    }
    agree(both, x, **held[overload])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("dtype", "low", "high", "zero"), [RANGES[1], RANGES[3], RANGES[5]])
def test_steps_of_channels(axis, dtype, low, high, zero):
    shape = (3, 5, 7)
    scales = torch.linspace(0.01, 0.05, shape[axis])
    x = between_steps(shape, scales.reshape([-1 if i == axis else 1 for i in range(3)]))

    def both(x, s, z):
        numbers = pt2e.quantize_per_channel(x, s, z, axis, low, high, dtype)
        none = pt2e.dequantize_per_channel(numbers, s, None, axis, low, high, dtype)
        return numbers, pt2e.dequantize_per_channel(numbers, s, z, axis, low, high, dtype), none

    agree(both, x, s=scales, z=zero + torch.arange(shape[axis]))


def test_steps_of_rows_and_groups():
    x = between_steps((2, 5, 32), 0.02)
    rows = torch.linspace(0.015, 0.03, 10).reshape(2, 5, 1), torch.arange(-5, 5, dtype=torch.int32).reshape(2, 5, 1)

    def tokens(x, s, z):
        numbers = pt2e.quantize_per_token(x, s, z, -128, 127, torch.int8)
        return numbers, pt2e.dequantize_per_token(numbers, s, z, -128, 127, torch.int8, torch.float32)

    agree(tokens, (x / 0.02) * rows[0], s=rows[0], z=rows[1])
    numbers = torch.randint(-8, 8, (6, 32), dtype=torch.int8)
    for zeros in (torch.randint(-3, 3, (6, 2)), torch.randint(-3, 3, (6, 2)).float()):
        agree(
            lambda x, s, z: pt2e.dequantize_per_channel_group(x, s, z, -8, 7, torch.int8, 16, torch.float32),
            numbers,
            s=torch.rand(6, 2),
            z=zeros,
        )


@pytest.mark.parametrize("operator", ["choose_qparams", "choose_qparams_symmetric"])
@pytest.mark.parametrize(("dtype", "low", "high"), [r[:3] for r in RANGES[:4]])
@pytest.mark.parametrize("shift", [-5, 0, 5])
def test_scales_of_data(operator, dtype, low, high, shift):
    choose = getattr(pt2e, operator).tensor
    agree(lambda x: choose(x, low, high, 1e-5, dtype), torch.randn(4, 9) + shift)
    agree(lambda x: choose(x, low, high, 1e-5, dtype), torch.zeros(3))


def test_steps_of_bfloat16():
    x = between_steps((4, 9), 0.25).bfloat16()

    def both(x):
        numbers = pt2e.quantize_per_tensor(x, 0.25, 3, 0, 255, torch.uint8)
        return pt2e.dequantize_per_tensor(numbers, 0.25, 3, 0, 255, torch.uint8, out_dtype=torch.bfloat16)

    agree(both, torch.round(x * 4) / 4)


def test_steps_that_are_refused():
    x, zeros = torch.randn(3, 4), torch.tensor([0.0, 1.5, 2.0])
    model = Function(lambda x, z: torch.fake_quantize_per_channel_affine(x, torch.ones(3), z, 0, 0, 15), z=zeros)
    with pytest.raises(relayc.ModelError, match=r"expected whole numbers as zero points, found 'z' of type float32"):
        relayc.from_pytorch(model, (x,))
    float8 = torch.float8_e5m2
    model = Function(lambda x: pt2e.quantize_per_tensor(x, 1.0, 0, -100, 100, float8).to(torch.float32))
    with pytest.raises(relayc.ModelError, match=r"expected numbers of steps of type uint8, .*found float8_e5m2"):
        relayc.from_pytorch(model, (x,))


def integer_kernels(module):
    return [kernel.schedule.split()[0] for kernel in module.kernels if kernel.schedule.startswith("int8")]


class Steps(nn.Module):
    """A convolution network as convert_pt2e writes it: a convolution, a sum, a mean and a product; only the last result is no number."""

    STEP = 0.04

    def __init__(self, per_channel):
        super().__init__()
        self.per_channel = per_channel
        for name, shape in (("a", (16, 3, 3, 3)), ("b", (16, 16, 1, 1)), ("c", (10, 16))):
            self.register_buffer(name, torch.randint(-127, 128, shape).to(torch.int8))
            self.register_buffer(f"{name}_scales", torch.rand(shape[0] if per_channel else 1) * 2e-3 + 1e-3)
            self.register_buffer(f"{name}_zeros", torch.zeros(shape[0] if per_channel else 1, dtype=torch.int64))
            self.register_buffer(f"{name}_bias", torch.randn(shape[0]))

    def weight(self, name):
        numbers, scales, zeros = (getattr(self, f"{name}{end}") for end in ("", "_scales", "_zeros"))
        if self.per_channel:
            return pt2e.dequantize_per_channel(numbers, scales, zeros, 0, -127, 127, torch.int8)
        return pt2e.dequantize_per_tensor.tensor(numbers, scales, zeros, -127, 127, torch.int8)

    def steps(self, x, scale=STEP, zero=0):
        return pt2e.dequantize_per_tensor(pt2e.quantize_per_tensor(x, scale, zero, 0, 255, torch.uint8), scale, zero, 0, 255, torch.uint8)

    def forward(self, x):
        x = self.steps(x, 0.02, 128)
        x = self.steps(torch.relu(nn.functional.conv2d(x, self.weight("a"), self.a_bias, padding=1)))
        y = self.steps(nn.functional.conv2d(x, self.weight("b"), self.b_bias), self.STEP, 100)
        x = self.steps(torch.relu(x + y))
        x = self.steps(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))
        return self.steps(nn.functional.linear(x, self.weight("c"), self.c_bias), self.STEP, 128)


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("size", [(1, 8, 8), (3, 7, 13)])
def test_pt2e_networks_compute_in_integers(per_channel, size):
    model, x = Steps(per_channel).eval(), torch.randn(size[0], 3, *size[1:])
    module = compiled(model, x)
    assert len(integer_kernels(module)) == 3, [k.schedule for k in module.kernels]
    found, wanted = module(x), model(x)
    # Sums are exact here and rounded once; torch's are of floats, which may go to the other one of two steps.
    steps = ((found - wanted) / model.STEP).abs()
    assert steps.max() <= 1.001
    assert (steps > 0.001).float().mean() < 0.05
    assert wanted.unique().numel() > 4


class FakeSteps(nn.Module):
    """A network in training, whose weights are rounded to 8 and 4 bits as it runs."""

    def __init__(self):
        super().__init__()
        self.conv, self.linear = nn.Conv2d(3, 16, 3), nn.Linear(16, 24)
        self.register_buffer("enabled", torch.ones(1))

    def forward(self, x):
        x = torch.fake_quantize_per_tensor_affine(x, 0.02, 128, 0, 255)
        zeros = torch.zeros(24, dtype=torch.int32)
        weight = torch.fake_quantize_per_channel_affine(self.conv.weight, torch.linspace(0.001, 0.003, 16), zeros[:16], 0, -127, 127)
        x = torch.fake_quantize_per_tensor_affine(torch.relu(nn.functional.conv2d(x, weight, self.conv.bias)), 0.02, 0, 0, 127)
        x = torch.fake_quantize_per_tensor_affine(x.mean((2, 3)), torch.tensor(0.01), torch.tensor(0, dtype=torch.int32), 0, 127)
        weight = torch.fake_quantize_per_channel_affine(self.linear.weight, torch.full((24,), 0.03), zeros, 0, -8, 7)
        return torch.fake_quantize_per_tensor_affine(nn.functional.linear(x, weight, self.linear.bias), 0.01, 40, 0, 127)


def test_fake_quantised_networks_compute_in_integers():
    model, x = FakeSteps().eval(), torch.randn(2, 3, 9, 12)
    module = compiled(model, x)
    assert len(integer_kernels(module)) == 2
    steps = ((module(x) - model(x)) / 0.01).abs()
    assert steps.max() <= 1.001
    assert (steps > 0.001).float().mean() < 0.05


def test_fake_quantised_weights_of_floats_stay_in_few_bits():
    weight, scales, x = between_steps((24, 64), 0.02), torch.full((24,), 0.02), torch.randn(3, 64)
    zeros = torch.arange(24, dtype=torch.int32) % 5
    model = Function(
        lambda x, w, s, z: nn.functional.linear(x, torch.fake_quantize_per_channel_affine(w, s, z, 0, 0, 15)), w=weight, s=scales, z=zeros
    )
    module = compiled(model, x)
    assert "nn.dense_blocks" in kernels(module)
    torch.testing.assert_close(module(x), model(x), rtol=0, atol=1e-5 * model(x).abs().max().item())


@pytest.mark.parametrize(("low", "high", "zero"), [(0, 255, 128), (-8, 7, 1), (-127, 127, 0), (0, 1023, 500), (-40000, 40000, 0)])
def test_fake_quantised_tensors_and_masks(low, high, zero):
    x, scales, zeros = between_steps((3, 5, 7), 0.02), torch.full((5,), 0.02), torch.full((5,), zero, dtype=torch.int32)
    agree(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.02, zero, low, high), x)
    agree(lambda x: aten.fake_quantize_per_tensor_affine_cachemask(x, 0.02, zero, low, high), x)
    agree(lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, 1, low, high), x, s=scales, z=zeros)
    agree(lambda x, s, z: aten.fake_quantize_per_channel_affine_cachemask(x, s, z, 1, low, high), x, s=scales, z=zeros)


LIMITS = [(0, 255, "uint8"), (-128, 127, "int8"), (0, 65535, "uint16"), (-32768, 32767, "int16"), (-(2**31), 2**31 - 1, "int32")]


@pytest.mark.parametrize(("low", "high", "dtype"), LIMITS)
def test_pytorch_fake_quantisation_in_the_narrowest_integers(low, high, dtype):
    model = Function(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.25, 0, low, high))
    assert f'out_dtype = "{dtype}"' in str(relayc.from_pytorch(model, (torch.randn(3, 5),)).module)


@pytest.mark.parametrize("enabled", [0, 1])
@pytest.mark.parametrize("is_input", [False, True])
def test_fake_quantisation_that_may_be_off(enabled, is_input):
    x, switch = between_steps((3, 5), 0.02), torch.tensor([enabled])

    def function(x, on):
        one = torch.tensor([0.02]), torch.tensor([3], dtype=torch.int32)
        return aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, *one, on, 0, 127)

    agree(function, x, switch) if is_input else agree(function, x, on=switch)


def test_fake_quantisation_of_tensors_and_channels():
    """Of inputs that are inside of the limits and outside; a switch turns it off."""
    x, scales, zeros = between_steps((3, 5), 0.02), torch.rand(5) * 0.02 + 0.01, torch.tensor([3, 0, 7, 1, 5], dtype=torch.int32)
    switches = torch.tensor([[1], [0]])

    def function(x, switches, scales, zeros):
        switched = aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
        return (
            *aten.fake_quantize_per_tensor_affine_cachemask(x, 0.02, 3, -4, 7),
            *aten.fake_quantize_per_channel_affine_cachemask(x, scales, zeros, 1, 0, 15),
            *(part for switch in switches for part in switched(x, scales[:1], zeros[:1], switch, 0, 15)),
        )

    agree(function, x, switches, scales, zeros)


def test_products_of_data_that_are_quantised_as_they_come():
    """Dynamic quantisation: the scale is that of the data of each call."""
    weights, scales, zeros = torch.randint(-127, 128, (48, 64)).to(torch.int8), torch.rand(48) * 0.01, torch.zeros(48, dtype=torch.int64)

    def function(x, w, s, z):
        scale, zero = pt2e.choose_qparams.tensor(x, 0, 255, 1e-5, torch.uint8)
        numbers = pt2e.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
        x = pt2e.dequantize_per_tensor.tensor(numbers, scale, zero, 0, 255, torch.uint8)
        return nn.functional.linear(x, pt2e.dequantize_per_channel(w, s, z, 0, -127, 127, torch.int8))

    model, x = Function(function, w=weights, s=scales, z=zeros), torch.randn(7, 64)
    module = compiled(model, x)
    assert len(integer_kernels(module)) == 1
    for data in (x, x * 3 + 1):
        wanted = model(data)
        # Of 64 numbers one may be halfway between two steps, 1 / 255 of the range.
        torch.testing.assert_close(module(data), wanted, rtol=0, atol=5e-3 * wanted.abs().max().item())


def test_files_of_pt2e_programs(tmp_path):
    """A process that knows nothing of these operators reads the file."""
    model, x = Steps(True).eval(), torch.randn(1, 3, 8, 8)
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "model.pt2")
    np.save(tmp_path / "x.npy", x.numpy())
    script = "import numpy as np, relayc; m = relayc.compile('model.pt2'); x = np.load('x.npy'); np.save('y.npy', np.asarray(m['main'](x)))"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert np.abs(np.load(tmp_path / "y.npy") - model(x).numpy()).max() <= model.STEP * 1.001


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_models_that_torchao_converts(is_dynamic):
    steps = pytest.importorskip("torchao.quantization.pt2e.quantize_pt2e")
    x86 = pytest.importorskip("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_dynamic=is_dynamic))
    layers = [nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 32, bias=False)]
    if not is_dynamic:
        layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.Flatten(), nn.Linear(256, 8)]
    model, shape = nn.Sequential(*layers).eval(), (5, 64) if is_dynamic else (2, 3, 6, 6)
    prepared = steps.prepare_pt2e(torch.export.export(model, (torch.randn(shape),)).module(), quantizer)
    for _ in range(4):
        prepared(torch.randn(shape))
    converted, x = steps.convert_pt2e(prepared), torch.randn(shape)
    module = compiled(converted, x)
    assert len(integer_kernels(module)) == (2 if is_dynamic else 3)
    wanted = converted(x)
    # A number that is halfway between two steps of 8 bits may go to either.
    torch.testing.assert_close(module(x), wanted, rtol=0, atol=2e-2 * wanted.abs().max().item())
