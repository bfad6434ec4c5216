"""Complex numbers of PyTorch models: Fourier transforms, operators by parts, inputs, buffers and results, gradients, refusals."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import relayc  # noqa: E402 # there is torch
from relayc.frontend.errors import ModelError  # noqa: E402
from relayc.frontend.pytorch import UnsupportedOperators  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def values(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(0))


class Everything(torch.nn.Module):
    """Positions as complex numbers (of decoders), transforms, and operators by parts."""

    def __init__(self):
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.ones(3, 4), values(3, 4)))

    def forward(self, x, z):
        turned = torch.view_as_real(torch.view_as_complex(x.reshape(3, 4, 2)) * self.turns)
        whole = torch.complex(x, x.flip(1))
        return {
            "turned": turned,
            "of numbers": (z * (2 + 1j) + x[0, 0], 1 / z, z / 2, whole - x, z.exp().log(), z.sgn(), z == z.conj()),
            "of one part": (z.abs(), z.angle(), z.real, z.imag, whole.sum(0).imag),
            "moved": (torch.cat([z, z.conj()]).T[1:], z.mm(z.mT), torch.where(z.real > 0, z, 0)),
            "there": (torch.fft.fft2(z), torch.fft.rfft(x, 12, norm="ortho"), torch.fft.ihfft2(x), torch.fft.fftn(x, norm="forward")),
            "and back": (torch.fft.irfftn(torch.fft.rfftn(x)), torch.fft.hfft(z, norm="ortho"), torch.fft.ifft(z, norm="forward")),
            "frames": torch.stft(x.reshape(-1), 8, window=torch.hann_window(8), return_complex=True),
        }


def test_operators_agree_with_eager():
    model, x, z = Everything(), values(3, 8), values(3, 5, dtype=torch.complex64)
    compiled = relayc.compile(relayc.from_pytorch(model, (x, z)), num_threads=1)
    wanted = model(x, z)
    torch.testing.assert_close(compiled(x, z), wanted, **TOLERANCE)
    # The lazy conjugate of a tensor is in no memory.
    torch.testing.assert_close(compiled(x, z.conj())["of one part"], model(x, z.conj())["of one part"], **TOLERANCE)
    found = compiled(x.numpy(), z.numpy())["there"]
    assert all(isinstance(array, np.ndarray) and array.dtype == np.complex64 for array in found)
    torch.testing.assert_close([torch.from_numpy(array) for array in found], list(wanted["there"]), **TOLERANCE)
    with pytest.raises(TypeError, match=r"expected complex numbers, found torch\.float32"):
        compiled(x, x[:, :5])


def test_open_sizes():
    def transforms(x):
        return torch.fft.fft(x.to(torch.complex64), norm="ortho").abs(), torch.fft.rfft(x, norm="forward").real

    class Model(torch.nn.Module):
        forward = staticmethod(transforms)

    exported = relayc.from_pytorch(Model(), (values(3, 8),), dynamic_shapes={"x": {1: "n"}})
    compiled = relayc.compile(exported, num_threads=1)
    for n in (5, 8, 34):
        torch.testing.assert_close(compiled(values(3, n)), transforms(values(3, n)), **TOLERANCE)


def test_gradients_by_torch_compile():
    def loss(x, z):
        return torch.fft.ifft(z * torch.fft.rfft(x)).abs().sum()

    compiled = torch.compile(loss, backend="relayc", fullgraph=True)
    x, z = values(3, 8).requires_grad_(), values(3, 5, dtype=torch.complex64).requires_grad_()
    torch.testing.assert_close(torch.autograd.grad(compiled(x, z), (x, z)), torch.autograd.grad(loss(x, z), (x, z)), **TOLERANCE)


class Root(torch.nn.Module):
    def forward(self, z):
        return z.sqrt().abs()


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3, dtype=torch.complex64))

    def forward(self, z):
        self.total.add_(z)
        return z.abs()


class Doubled(torch.nn.Module):
    def forward(self, z):
        return z.mul_(2).abs()


def test_a_converter_of_ones_own_gets_pairs():
    z = values(3, dtype=torch.complex64)
    length = {"aten::sqrt": lambda self: self}
    compiled = relayc.compile(relayc.from_pytorch(Root(), (z,), converters=length), num_threads=1)
    torch.testing.assert_close(compiled(z), z.abs(), **TOLERANCE)


def test_refusals():
    z = values(3, dtype=torch.complex64)
    with pytest.raises(UnsupportedOperators, match=r"aten\.sqrt\.default of complex numbers"):
        relayc.from_pytorch(Root(), (z,))
    with pytest.raises(ModelError, match="total: expected state of real numbers, found complex ones"):
        relayc.from_pytorch(Counter(), (z,))
    with pytest.raises(ModelError, match="input z: expected real numbers to be written to it, found complex ones"):
        relayc.from_pytorch(Doubled(), (z,))
