"""Random numbers: RandomUniform, RandomNormal, their forms by a tensor, Bernoulli, Multinomial, and Dropout in training.

Numbers are a function of a key and of their position in the tensor: the seed of the node is the key, so that a model gives the same numbers
whenever it is called, on any processor. A node without a seed has the name of its output as its key: nodes draw different numbers, each the
same ones in every call.
"""

from collections.abc import Sequence
from math import pi
from zlib import crc32

import numpy as np

from relayc.frontend.converter import Tensor, axis_of, constant, emit, known
from relayc.frontend.onnx.activation import Dropout
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.loops import scalar_of
from relayc.frontend.onnx.model import dtype_name
from relayc.frontend.sizes import size_tensor
from relayc.frontend.steps import add, binary, cast, divide, filled, multiply, reshape, strided_slice, subtract
from relayc.symbolic import Size


def _key(seed: float | None, stream: int) -> Tensor:
    """The key of a node, for one of its streams of numbers."""
    word = crc32(current().outputs[0].encode()) if seed is None else int(np.float32(seed).view(np.uint32))
    return constant([word, stream], "uint32")


def _fractions(shape: Sequence[Size], dtype: str, seed: float | None, stream: int = 0) -> Tensor:
    """Whole numbers below 1 of as many bits as the mantissa of float32 or float64 has, as fractions: from 0 on."""
    bits, whole, used = ("uint64", "int64", 53) if dtype == "float64" else ("uint32", "int32", 24)
    drawn = emit("random.threefry_generate", _key(seed, stream), out_shape=tuple(shape), dtype=bits)
    # Without a sign bit they are the same with a sign, which processors convert faster.
    shifted = binary("right_shift", drawn, np.dtype(bits).itemsize * 8 - used)
    return multiply(cast(emit("reinterpret", shifted, dtype=whole), dtype), 2.0**-used)


def _wide(dtype: str) -> str:
    return "float64" if dtype == "float64" else "float32"


def _float_name(dtype: int | None, default: str) -> str:
    name = default if dtype is None else dtype_name(dtype, "attribute dtype")
    if name not in ("float16", "bfloat16", "float32", "float64"):
        raise OnnxError(f"attribute dtype: expected a floating-point type, found {name}")
    return name


def _uniform(shape: Sequence[Size], dtype: str, low: float, high: float, seed: float | None) -> Tensor:
    return cast(add(multiply(_fractions(shape, _wide(dtype), seed), high - low), low), dtype)


def _normal(shape: Sequence[Size], dtype: str, mean: float, scale: float, seed: float | None) -> Tensor:
    """By Box and Muller: the logarithm is taken of 1 less a fraction, which is not 0."""
    wide = _wide(dtype)
    distance = emit("sqrt", multiply(emit("log", subtract(filled((), 1, wide), _fractions(shape, wide, seed))), -2.0))
    direction = emit("cos", multiply(_fractions(shape, wide, seed, 1), 2 * pi))
    return cast(add(multiply(emit("multiply", distance, direction), scale), mean), dtype)


@converter(foldable=False)
def RandomUniform(*, shape: Sequence[int], dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None) -> Tensor:
    return _uniform(shape, _float_name(dtype, ""), low, high, seed)


@converter(foldable=False)
def RandomUniformLike(x: Tensor, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float | None = None) -> Tensor:
    return _uniform(x.shape, _float_name(dtype, x.dtype), low, high, seed)


@converter(foldable=False)
def RandomNormal(*, shape: Sequence[int], dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None) -> Tensor:
    return _normal(shape, _float_name(dtype, ""), mean, scale, seed)


@converter(foldable=False)
def RandomNormalLike(x: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None) -> Tensor:
    return _normal(x.shape, _float_name(dtype, x.dtype), mean, scale, seed)


@converter(since=15, foldable=False)
def Bernoulli(x: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
    """1 where a fraction is below the probability, which it never is of 0 and always of 1."""
    drawn = _fractions(x.shape, _wide(x.dtype), seed)
    return cast(emit("less", drawn, cast(x, _wide(x.dtype))), x.dtype if dtype is None else dtype_name(dtype, "attribute dtype"))


@converter(since=7, foldable=False)
def Multinomial(x: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Tensor:
    """The class in whose part of the sum of all probabilities a fraction of that sum lies: as many sums as are not above it come before."""
    if x.rank != 2:
        raise OnnxError(f"expected logarithms of probabilities [batch, classes], found {list(x.shape)}")
    name = dtype_name(dtype, "attribute dtype")
    if name not in ("int32", "int64"):
        raise OnnxError(f"attribute dtype: expected int32 or int64, found {name}")
    batch, classes = x.shape
    wide = _wide(x.dtype)
    sums = emit("cumsum", emit("nn.softmax", cast(x, wide), axis=axis_of(-1, x.rank)), axis=1)
    total = strided_slice(sums, [classes - 1], [classes], [1], [1])
    drawn = emit("multiply", _fractions((batch, sample_size), wide, seed), total)
    passed = emit("less_equal", reshape(sums, (batch, 1, classes)), reshape(drawn, (batch, sample_size, 1)))
    # What is drawn may be rounded to the last sum.
    last = cast(size_tensor(classes - 1), name)
    return emit("minimum", emit("sum", cast(passed, name), axis=(2,)), last)


@converter("Dropout", foldable=False)
def Dropout_1(x: Tensor, *, is_test: bool = False, ratio: float = 0.5) -> tuple[Tensor, ...]:
    """In training unless `is_test` says otherwise; the mask has the type of the data."""
    if is_test or ratio == 0:
        return Dropout(x)
    found, kept = _dropped(x, constant(ratio, _wide(x.dtype)), None, None)
    return (found, cast(kept, x.dtype)) if current().wants(1) else (found,)


@converter("Dropout", since=12, foldable=False)
def Dropout_12(
    x: Tensor, ratio: Tensor | None = None, training_mode: Tensor | None = None, *, seed: int | None = None
) -> tuple[Tensor, ...]:
    share = constant(0.5, "float32") if ratio is None else cast(scalar_of(ratio, "ratio"), _wide(ratio.dtype))
    is_off = training_mode is None or (training_mode.is_known and not known(training_mode, "training_mode").any())
    if is_off or (share.is_known and not share.array.any()):
        return Dropout(x)
    assert training_mode is not None
    is_on = None if training_mode.is_known else cast(scalar_of(training_mode, "training_mode"), "bool")
    found, kept = _dropped(x, share, is_on, seed)
    return (found, kept) if current().wants(1) else (found,)


def _dropped(x: Tensor, share: Tensor, is_on: Tensor | None, seed: int | None) -> tuple[Tensor, Tensor]:
    """x in training, and a mask of the kept elements: those whose random fraction is at least `share`; kept elements are divided by 1 -
    share.

    Args:
      is_on: whether training is on, if known only at run time.
    """
    wide = _wide(x.dtype)
    share = cast(share, wide)
    kept = emit("greater_equal", _fractions(x.shape, wide, seed), share)
    factor = divide(filled((), 1, wide), subtract(filled((), 1, wide), share))
    if is_on is not None:
        kept = emit("logical_or", kept, emit("logical_not", is_on))
        factor = emit("where", is_on, factor, filled((), 1, wide))
    return cast(emit("where", kept, emit("multiply", cast(x, wide), factor), filled((), 0, wide)), x.dtype), kept
