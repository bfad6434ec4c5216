"""Fourier transforms."""

from math import prod, sqrt

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.fourier import transform
from relayc.frontend.relay.op.composed.registry import composed
from relayc.frontend.sizes import size_tensor
from relayc.frontend.steps import cast, divide, reshape, strided_slice, transpose


@composed("stft")
def stft(data: Tensor, window: Tensor, *, n_fft: int, hop_length: int, win_length: int, normalized: bool, onesided: bool) -> Tensor:
    """The transforms of frames: [batch, frequencies, frames, 2]. The window stands in the middle of a frame."""
    from relayc.frontend.onnx.signal import STFT

    left = (n_fft - win_length) // 2
    weights = cast(window, data.dtype)
    if win_length < n_fft:
        weights = emit("nn.pad", weights, constant(0, data.dtype), pad_width=(left, n_fft - win_length - left), pad_mode="constant")
    found = transpose(STFT(data, size_tensor(hop_length), weights, size_tensor(n_fft), onesided=onesided), (0, 2, 1, 3))
    return divide(found, sqrt(n_fft)) if normalized else found


@composed("dft", results=2)
def dft(re_data: Tensor, im_data: Tensor, *, inverse: bool = False) -> tuple[Tensor, ...]:
    """The transform along the last axis: real parts and imaginary parts."""
    size, shape = re_data.shape[-1], re_data.shape
    rows = emit("stack", *(reshape(x, (prod(shape[:-1]), size)) for x in (re_data, im_data)), axis=2)
    found = transform(rows, size, inverse)
    return tuple(reshape(strided_slice(found, [i], [i + 1], [1], [2]), shape) for i in range(2))
