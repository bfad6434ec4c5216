"""Matrix products."""

from math import prod
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from relayc.dialects.relay.block_weights import BlockWeights
from relayc.dialects.relay.dense_blocks import STRIP
from relayc.frontend.common.dense_blocks import dense_blocks
from relayc.frontend.common.products import einsum, matmul, quantised_product
from relayc.frontend.converter import Tensor, emit, known
from relayc.frontend.pytorch.operands import operand
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import reshape


@aten("linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if weight.rank == 1:
        found = matmul(input, weight)
        return found if bias is None else emit("add", found, bias)
    return reshape(dense(input, weight, bias), node().sizes)


def dense(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x [..., k] times weight [n, k], and a bias [n]."""
    found = emit("nn.dense", reshape(x, (prod(x.shape[:-1]), x.shape[-1])), weight, units=weight.shape[0])
    found = found if bias is None else emit("nn.bias_add", found, bias, axis=1)
    return reshape(found, (*x.shape[:-1], weight.shape[0]))


aten("mm", "bmm", "matmul", "mv", "dot", "vdot", self="a", mat2="b", vec="b", other="b", tensor="b")(matmul)


def _scaled_sum(self: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * self + alpha * product."""
    product = product if alpha == 1 else emit("multiply", product, operand(alpha, product.dtype))
    if beta == 0:
        return product
    x = operand(self)
    x = x if beta == 1 else emit("multiply", x, operand(beta, x.dtype))
    if x.rank == 1 and product.rank == 2 and x.shape == product.shape[1:] and x.shape != (1,):
        return emit("nn.bias_add", product, x, axis=1)
    return emit("add", x, product)


@aten("addmm", "addmv", "baddbmm", mat="mat1", vec="mat2", batch1="mat1", batch2="mat2")
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> Tensor:
    return _scaled_sum(self, matmul(mat1, mat2), beta, alpha)


@aten("addbmm")
def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Tensor:
    return _scaled_sum(self, emit("sum", matmul(batch1, batch2), axis=(0,)), beta, alpha)


aten("einsum", tensors="inputs")(einsum)


@aten("_int_mm")
def int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    return matmul(self, mat2, quantised_product())


@aten("_weight_int8pack_mm")
def int8_weights(self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """x [M, K] times int8 weights [N, K], each row with a scale."""
    numbers, factors = known(mat2, "mat2"), known(scales, "scales").astype(np.float32)
    whole = np.pad(numbers, [(0, 0), (0, -numbers.shape[1] % STRIP)])
    return dense_blocks(self, BlockWeights((whole.view(np.uint8) ^ 0x80)[:, None], factors[:, None], None, 8))


@aten("_weight_int4pack_mm_for_cpu")
def int4_weights(self: Tensor, mat2: Tensor, qGroupSize: int, qScaleAndZeros: Tensor) -> Tensor:
    """x [M, K] times weights [N, K] of 4 bits as torch packs them for the processor: scale * (number - 8) + zero in each group of a row."""
    numbers = _int4_numbers(known(mat2, "mat2"), qGroupSize, known(qScaleAndZeros, "qScaleAndZeros").shape[0])
    scales, zeros = np.moveaxis(known(qScaleAndZeros, "qScaleAndZeros").astype(np.float32), 2, 0).transpose(0, 2, 1)
    return dense_blocks(self, BlockWeights.with_offsets(numbers.reshape(*scales.shape, qGroupSize), scales, zeros - 8 * scales))


_DIGITS = 6
"""Numbers of 4 bits that a float32 has the digits of, as its mantissa has 24."""


def _int4_numbers(packed: np.ndarray, group: int, groups: int) -> np.ndarray:
    """uint8 [N, groups * group], the numbers in torch's packed weights, whose order depends on the processor that packed them.

    torch's own product tells them: of a row of powers of 16 it gives the numbers of as many depths as digits of one float.
    """
    units, depth = len(packed), groups * group
    rows = torch.zeros(-(-depth // _DIGITS), depth)
    at = torch.arange(depth)
    rows[at // _DIGITS, at] = 16.0 ** (at % _DIGITS)
    ones_and_eights = torch.tensor([1.0, 8.0]).expand(groups, units, 2).contiguous()
    with torch.no_grad(), unset_fake_temporarily():
        found = torch.ops.aten._weight_int4pack_mm_for_cpu(rows, torch.from_numpy(packed), group, ones_and_eights)
    digits = found.numpy().astype(np.int64).T[:, :, None] >> np.arange(0, 4 * _DIGITS, 4) & 15
    return digits.reshape(units, -1)[:, :depth].astype(np.uint8)


@aten("_trilinear")
def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: tuple[int, ...],
    expand2: tuple[int, ...],
    expand3: tuple[int, ...],
    sumdim: tuple[int, ...],
) -> Tensor:
    """Products of three tensors, each with new axes, summed over some."""
    rank = i1.rank + len(expand1)
    terms = ["".join(chr(ord("a") + a) for a in range(rank) if a not in left) for left in (expand1, expand2, expand3, sumdim)]
    return einsum((i1, i2, i3), f"{','.join(terms[:3])}->{terms[3]}")
