"""Signals: Fourier transforms and the weights of mel spectra."""

from math import log

from relayc.frontend.converter import Tensor, assume, axis_of, constant, emit, integer
from relayc.frontend.fourier import real_inverse, rows_of, transform
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.late_axes import along_late
from relayc.frontend.onnx.loops import scalar_of
from relayc.frontend.onnx.model import dtype_name
from relayc.frontend.sizes import is_at_import, positions, size, size_tensor
from relayc.frontend.steps import add, binary, cast, divide, in_float32, multiply, reshape, subtract
from relayc.symbolic import Size, maximum, proves


@converter("DFT", since=17)
def DFT_17(x: Tensor, dft_length: Tensor | None = None, *, axis: int = 1, inverse: bool = False, onesided: bool = False) -> Tensor:
    return _dft(x, dft_length, axis, inverse, onesided)


@converter(since=20)
def DFT(
    x: Tensor, dft_length: Tensor | None = None, axis: Tensor | None = None, *, inverse: bool = False, onesided: bool = False
) -> Tensor:
    if axis is None or is_at_import(axis):
        return _dft(x, dft_length, -2 if axis is None else integer(axis, "axis"), inverse, onesided)
    _check_parts(x)
    return along_late(x, axis, lambda y, at: _dft(y, dft_length, at, inverse, onesided), parts=1)


def _check_parts(x: Tensor) -> None:
    if x.rank < 2 or x.shape[-1] not in (1, 2):
        raise OnnxError(f"expected a signal whose last dimension is 1 or 2, found {list(x.shape)}")
    if not x.is_float:
        raise OnnxError(f"expected a signal of floats, found {x.dtype}")


def _dft(x: Tensor, dft_length: Tensor | None, axis: int, inverse: bool, onesided: bool) -> Tensor:
    _check_parts(x)
    axis = axis_of(axis, x.rank)
    if axis == x.rank - 1:
        raise OnnxError(f"axis: expected one of the signal's, not the last one, found {axis}")
    if dft_length is not None:
        length = size(dft_length, "dft_length")
    else:
        length = 2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis]
    _check_length(length)

    def compute(y: Tensor) -> Tensor:
        rows, back = rows_of(y, axis)
        if inverse and onesided:
            return back(real_inverse(rows, length))
        return back(transform(rows, length, inverse, length // 2 + 1 if onesided else None))

    return in_float32(x, compute)


def _check_length(length: Size) -> None:
    if proves(lambda: length <= 0):
        raise OnnxError(f"expected a transform of 1 element or more, found {length}")


@converter(since=17)
def STFT(
    signal: Tensor, frame_step: Tensor, window: Tensor | None = None, frame_length: Tensor | None = None, *, onesided: bool = True
) -> Tensor:
    """Frames are taken from the signal, multiplied with the window and transformed."""
    if signal.rank == 2:
        signal = reshape(signal, (*signal.shape, 1))
    _check_parts(signal)
    if signal.rank != 3:
        raise OnnxError(f"input signal: expected [batch, length, 1 or 2], found {list(signal.shape)}")
    batch, samples, parts = signal.shape
    length = size(frame_length, "frame_length") if frame_length is not None else samples if window is None else window.shape[0]
    _check_length(length)
    step = size(frame_step, "frame_step")
    if step == 0:
        raise OnnxError("input frame_step: expected 1 or more, found 0")
    if window is not None:
        window = assume(window, (length,))
    frames = (samples - length) // maximum(step, 1) + 1
    if proves(lambda: frames <= 0):
        raise OnnxError(f"input signal: expected at least one frame of {length} elements, found {list(signal.shape)}")

    def compute(x: Tensor) -> Tensor:
        starts = reshape(emit("multiply", positions(frames), size_tensor(step)), (frames, 1))
        framed = emit("take", x, emit("add", starts, reshape(positions(length), (1, length))), axis=1, mode="clip")
        if window is not None:
            framed = emit("multiply", framed, reshape(cast(window, x.dtype), (length, 1)))
        rows = reshape(framed, (batch * frames, length, parts))
        found = transform(rows, length, False, length // 2 + 1 if onesided else None)
        return reshape(found, (batch, frames, *found.shape[1:]))

    return in_float32(signal, compute)


@converter(since=17)
def MelWeightMatrix(
    num_mel_bins: Tensor,
    dft_length: Tensor,
    sample_rate: Tensor,
    lower_edge_hertz: Tensor,
    upper_edge_hertz: Tensor,
    *,
    output_datatype: int = 1,
) -> Tensor:
    """Triangles over frequencies [dft_length // 2 + 1, num_mel_bins]: each begins at the center of the one before, and ends at that of the
    next."""
    bins, length = size(num_mel_bins, "num_mel_bins"), size(dft_length, "dft_length")
    rate, low, high = (
        cast(scalar_of(t, name), "float64")
        for t, name in ((sample_rate, "sample_rate"), (lower_edge_hertz, "lower_edge_hertz"), (upper_edge_hertz, "upper_edge_hertz"))
    )
    low, high = (_mel(t) for t in (low, high))
    step = divide(subtract(high, low), cast(size_tensor(bins + 2), "float64"))
    hertz = _hertz(emit("add", emit("multiply", cast(positions(bins + 2), "float64"), step), low))
    at = emit("floor", divide(emit("multiply", hertz, cast(size_tensor(length + 1), "float64")), rate))
    begin, center, end = (emit("strided_slice", at, begin=(i,), end=(bins + i,), strides=(1,), axes=(0,)) for i in range(3))
    frequencies = length // 2 + 1
    j = reshape(cast(positions(frequencies), "float64"), (frequencies, 1))
    rising = _quotient(subtract(j, begin), subtract(center, begin))
    falling = _quotient(subtract(end, j), subtract(end, center))
    zero = constant(0.0, "float64")
    rises = emit("logical_and", emit("greater_equal", j, begin), emit("less_equal", j, center))
    falls = emit("logical_and", emit("greater_equal", j, center), emit("less", j, end))
    # A triangle whose sides are steeper than a bin is 1 at its center.
    found = emit("where", falls, falling, emit("where", rises, rising, zero))
    return cast(found, dtype_name(output_datatype, "attribute output_datatype"))


def _mel(hertz: Tensor) -> Tensor:
    return multiply(emit("log", add(divide(hertz, 700.0), 1.0)), 2595 / log(10))


def _hertz(mel: Tensor) -> Tensor:
    return multiply(subtract(emit("exp", multiply(mel, log(10) / 2595)), 1.0), 700.0)


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    """a / b, or 1 where b is 0."""
    flat = binary("equal", b, 0.0)
    return emit("where", flat, constant(1.0, "float64"), emit("divide", a, emit("where", flat, constant(1.0, "float64"), b)))
