"""Products with transposed operands, activations, or weights of a few bits."""

import numpy as np

from relayc.dialects.relay.dense_blocks import STRIP
from relayc.frontend.converter import Tensor, constant, emit, known
from relayc.frontend.onnx import dense
from relayc.frontend.onnx.contrib.activation import activated
from relayc.frontend.onnx.contrib.domain import microsoft
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import cast, multiply, transpose


def _arranged(x: Tensor, is_transposed: bool, is_batch_transposed: bool) -> Tensor:
    """x as an operand of a product: with `is_batch_transposed` its first axis goes before its last one, then the last two change places."""
    axes = list(range(x.rank))
    if is_batch_transposed and x.rank > 2:
        axes = [*axes[1:-1], 0, axes[-1]]
    if is_transposed and x.rank > 1:
        axes[-2:] = axes[:-3:-1]
    return transpose(x, axes)


@microsoft()
def FusedMatMul(
    a: Tensor,
    b: Tensor,
    *,
    alpha: float = 1.0,
    transA: bool = False,
    transB: bool = False,
    transBatchA: bool = False,
    transBatchB: bool = False,
) -> Tensor:
    product = dense.matmul(_arranged(a, transA, transBatchA), _arranged(b, transB, transBatchB))
    return product if alpha == 1.0 else multiply(product, alpha)


@microsoft()
def TransposeMatMul(a: Tensor, b: Tensor, *, alpha: float = 1.0, transA: bool = False, transB: bool = False) -> Tensor:
    return FusedMatMul(a, b, alpha=alpha, transA=transA, transB=transB)


@microsoft()
def FusedGemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: bool = False,
    transB: bool = False,
) -> Tensor:
    product: Tensor = dense.Gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    given = [p for p in (activation_alpha, activation_beta, activation_gamma) if p is not None]
    return activated(product, activation, given)


@microsoft()
def MatMulNBits(
    a: Tensor,
    b: Tensor,
    scales: Tensor,
    zeros: Tensor | None = None,
    g_idx: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
    weight_prepacked: int = 0,
) -> Tensor:
    """a [..., K] x weights [N, K]^T, which stand in `b` as uint8 [N, blocks, bytes of a block] of `bits` bits each.

    The weights stay as they are where all blocks are whole and in order; else they become floats when the model is imported. The product is
    one of floats, whatever accuracy_level allows.
    """
    if block_size < 1 or N < 1 or K < 1 or weight_prepacked:
        raise OnnxError(
            f"expected positive N, K and block_size, and weights in their order, found {N}, {K}, {block_size}, {weight_prepacked}"
        )
    count = -(-K // block_size)
    packed = known(b, "B").reshape(N, count, -1)
    factors = known(scales, "scales").reshape(N, count).astype(np.float32)
    given = None if zeros is None else known(zeros, "zero_points")
    centres = zero_points(given, bits, N, count)
    if g_idx is None and count * block_size == K and packed.shape[2] * 8 == block_size * bits and block_size % STRIP == 0:
        middle = np.full((1, 1), 1 << (bits - 1), np.uint8)
        shared = middle if given is None else in_strips(centres.astype(np.uint8) if given.dtype == np.uint8 else centres)
        operands = constant(in_words(packed)), constant(in_strips(factors)), constant(shared)
        attributes = {"units": N, "bits": bits, "block_size": block_size}
        product: Tensor = cast(emit("nn.dense_blocks", cast(a, "float32"), *operands, **attributes), a.dtype)
    else:
        numbers = unpacked(packed, bits, block_size).reshape(N, count * block_size)[:, :K]
        block = np.arange(K) // block_size if g_idx is None else known(g_idx, "g_idx")[:K].astype(np.int64)
        weights = (numbers.astype(np.float32) - centres[:, block]) * factors[:, block]
        product = emit("nn.dense", a, cast(constant(weights), a.dtype), units=N) if a.rank == 2 else _of_rows(a, weights)
    return product if bias is None else emit("nn.bias_add", product, bias, axis=product.rank - 1)


def _of_rows(a: Tensor, weights: np.ndarray) -> Tensor:
    return dense.matmul(a, cast(constant(np.ascontiguousarray(weights.T)), a.dtype))


@microsoft()
def GatherBlockQuantized(
    data: Tensor,
    indices: Tensor,
    scales: Tensor,
    zeros: Tensor | None = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Tensor:
    """Rows of a table of a few bits, in blocks along its last axis; the table becomes floats when the model is imported."""
    table = known(data, "data")
    if gather_axis % max(data.rank, 1) != 0 or quantize_axis % max(data.rank, 1) != data.rank - 1:
        raise OnnxError(f"expected rows of axis 0 in blocks along the last axis, found axes {gather_axis} and {quantize_axis}")
    rows = table.shape[0]
    flat = table.reshape(rows, -1)
    is_packed = data.dtype == "uint8"
    numbers = unpacked(flat, bits, flat.shape[1] * 8 // bits) if is_packed else flat.astype(np.int8)
    factors = known(scales, "scales").reshape(rows, -1)
    block = np.arange(numbers.shape[1]) // block_size
    if is_packed:
        centres = zero_points(None if zeros is None else known(zeros, "zero_points"), bits, rows, factors.shape[1])
    else:
        given = np.zeros_like(factors) if zeros is None else known(zeros, "zero_points").reshape(factors.shape)
        centres = given.astype(np.float32)
    found = (numbers.astype(np.float32) - centres[:, block]) * factors.astype(np.float32)[:, block]
    width = numbers.shape[1] // (flat.shape[1] // table.shape[-1]) if data.rank > 1 else numbers.shape[1]
    whole = constant(found.astype(factors.dtype).reshape(*table.shape[:-1], width))
    return emit("take", whole, indices, axis=0, mode="raise")


# Weights of a few bits in blocks, each with a scale, as ONNX Runtime's quantisers write them.


def unpacked(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """uint8[..., count] of numbers of 2, 4 or 8 bits that stand in bytes [..., n], the first in the lowest bits. Raises OnnxError."""
    if bits not in (2, 4, 8):
        raise OnnxError(f"attribute bits: expected 2, 4 or 8, found {bits}")
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    found = numbers.reshape(*packed.shape[:-1], -1)
    if found.shape[-1] < count:
        raise OnnxError(f"expected bytes of at least {count} numbers of {bits} bits in a row, found {list(packed.shape)}")
    return found[..., :count]


def zero_points(given: np.ndarray | None, bits: int, rows: int, count: int) -> np.ndarray:
    """The zero points of `count` blocks in each of some rows: packed like weights, one for each block as floats, or the middle."""
    if given is None:
        return np.full((rows, count), 1 << (bits - 1), np.float32)
    if given.dtype == np.uint8:
        return unpacked(given.reshape(rows, -1), bits, count).astype(np.float32)
    return given.reshape(rows, count).astype(np.float32)


def in_words(packed: np.ndarray) -> np.ndarray:
    """Weights [N, blocks, bytes of a block] as nn.dense_blocks has them: uint32 [strips, words, columns of a strip]."""
    words = np.ascontiguousarray(packed).reshape(len(packed), -1).view("<u4")
    return np.ascontiguousarray(_whole_strips(words).reshape(-1, STRIP, words.shape[1]).transpose(0, 2, 1))


def in_strips(numbers: np.ndarray) -> np.ndarray:
    """One number for each block of each row, [N, blocks], as nn.dense_blocks has them: [blocks, columns of all strips]."""
    return np.ascontiguousarray(_whole_strips(numbers).T)


def _whole_strips(rows: np.ndarray) -> np.ndarray:
    return np.pad(rows, [(0, -len(rows) % STRIP), (0, 0)])
