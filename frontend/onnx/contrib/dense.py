"""Products with transposed operands, activations, or weights of a few bits."""

import numpy as np

from relayc.dialects.relay.block_weights import BlockWeights, in_bytes
from relayc.dialects.relay.dense_blocks import STRIP
from relayc.frontend.common.dense_blocks import block_rows, dense_blocks, unpacked, zero_points
from relayc.frontend.converter import Tensor, assume, constant, emit, known
from relayc.frontend.onnx import dense
from relayc.frontend.onnx.contrib.activation import activated
from relayc.frontend.onnx.contrib.domain import microsoft
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import cast, last_part, multiply, reshape, transpose


def _arranged(x: Tensor, is_transposed: bool, is_batch_transposed: bool) -> Tensor:
    """x as an operand of a product: with `is_batch_transposed` its first axis goes before its last one, then the last two change places."""
    axes = list(range(x.rank))
    if is_batch_transposed:
        axes[:-1] = axes[1:-1] + axes[:-1][:1]
    if is_transposed:
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

    The weights stay as they are where blocks are in order; else they become floats when the model is imported. The product is one of
    floats, as exact as accuracy_level demands: 0 (the default) and 1 as in float32, see nn.dense_blocks.
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
    if g_idx is None and packed.shape[2] * 8 == block_size * bits and block_size % STRIP == 0:
        zeros_of = None if given is None else centres.astype(np.uint8) if given.dtype == np.uint8 else centres
        product = dense_blocks(assume(a, (*a.shape[:-1], K)), BlockWeights(packed, factors, zeros_of, bits), accuracy_level)
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
    """Rows of a table of a few bits, in blocks along its last axis: uint8 that has numbers of `bits` bits, or 4-bit integers.

    The table stays packed; what is taken of it becomes floats.
    """
    table = known(data, "data")
    if data.dtype not in ("uint8", "int4", "uint4"):
        raise OnnxError(f"input data: expected uint8, int4 or uint4, found {data.dtype}")
    if data.rank < 2 or gather_axis % data.rank != 0 or quantize_axis % data.rank != data.rank - 1:
        raise OnnxError(f"expected rows of axis 0 in blocks along the last axis, found axes {gather_axis} and {quantize_axis}")
    is_packed = data.dtype == "uint8"
    numbers = unpacked(table, bits, table.shape[-1] * 8 // max(bits, 1)) if is_packed else table.astype(np.int8).view(np.uint8)
    bits = bits if is_packed else 4
    if block_size < 1 or block_size * bits % 8:
        raise OnnxError(f"attribute block_size: expected whole bytes of numbers of {bits} bits, found {block_size}")
    rows, *inner, width = numbers.shape
    count = -(-width // block_size)
    of_blocks = (rows, *inner, count)
    factors = known(scales, "scales").astype(np.float32)
    centres = None if zeros is None else known(zeros, "zero_points")
    if is_packed:
        centres = None if centres is None else unpacked(centres, bits, count)
    else:  # of signed numbers the middle is zero
        middle = np.uint8(8 if data.dtype == "int4" else 0)
        numbers = numbers + middle & 15
        centres = np.full(of_blocks, middle) if centres is None else centres.astype(np.int8).view(np.uint8) + middle & 15
    for name, a in (("scales", factors), ("zero_points", centres)):
        if a is not None and a.shape != of_blocks:
            raise OnnxError(f"input {name}: expected {list(of_blocks)} numbers, of blocks of {block_size}, found {list(a.shape)}")
    whole = np.pad(numbers, [*[(0, 0)] * (numbers.ndim - 1), (0, count * block_size - width)])
    in_rows = in_bytes(whole.reshape(rows, -1, block_size), bits)
    weights = BlockWeights(in_rows, factors.reshape(rows, -1), None if centres is None else centres.reshape(rows, -1), bits)
    found = reshape(block_rows(weights, indices), (*indices.shape, *inner, count * block_size))
    return cast(last_part(found, 0, width), scales.dtype)
