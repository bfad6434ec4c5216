"""WeightOnlyToDenseBlocks: products of floats with constant weights of 8 bits or less keep these weights as they are.

    dense(x, dequantize(numbers))   ->   dense_blocks(x, packed numbers, scales, zeros)

The weights have a scale for each output, or for each block of inputs of an output, and may be transposed; numbers that are cast to floats
have the scale 1. Such are torchao's weight-only layers and ONNX's DequantizeLinear before MatMul and Gemm. It runs after
FakeQuantizationToInteger, which makes products of integers where the data are quantised, too.
"""

from math import gcd

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.block_weights import BlockWeights, in_bytes
from relayc.dialects.relay.dense import Dense, Matmul
from relayc.dialects.relay.dense_blocks import STRIP
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build
from relayc.dialects.relay.qnn import Dequantize
from relayc.dialects.relay.transform import Transpose, permutation
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.passes import PassContext, module_pass
from relayc.pipelines.context.target import Target
from relayc.pipelines.graph.qnn_canonicalize import known
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules

RULES = Rules("WeightOnlyToDenseBlocks")

NUMBERS = ("int8", "uint8", "int4", "uint4", "int2", "uint2")
FLOATS = ("float32", "float16", "bfloat16")

_type = TensorType.of


@RULES.on(Dense, Matmul)
def product(op: Dense | Matmul, rw: Rewriter) -> Found:
    """A product of floats and numbers that are dequantised -> nn.dense_blocks."""
    data, weight = op.operation.operands
    dtype = _type(op.operation.results[0]).dtype
    if dtype not in FLOATS or _type(data).dtype != dtype or (isinstance(op, Matmul) and op.transpose_a):
        return None
    channel = op.weight_channels(of_result=True).axis
    while isinstance(weight.owner, Transpose):
        channel = permutation(weight.owner.axes, 2)[channel]
        weight = weight.owner.data
    found = _steps(weight, rw)
    if found is None:
        return None
    numbers, scales, zeros = (v.T if channel == 1 else v for v in found)
    block, bits, least = _block_size(numbers.shape[1], scales, zeros), *_form(numbers, zeros)
    if block % STRIP:
        return None
    scales, zeros = (np.broadcast_to(v, numbers.shape)[:, ::block] for v in (scales, zeros))
    offsets = np.asarray(zeros, np.int64) - least
    zeros = offsets.astype(np.uint8 if ((offsets >= 0) & (offsets < 256)).all() else np.float32)
    packed = in_bytes((numbers.astype(np.int16) - least).astype(np.uint8).reshape(*scales.shape, block), bits)
    weights = BlockWeights(packed, scales.astype(np.float32), zeros, bits)
    wide = data if dtype == "float32" else build("cast", data, dtype="float32")
    total = build("nn.dense_blocks", wide, *map(rw.mod.constant, weights.operands()), **weights.attributes())
    return total if dtype == "float32" else build("cast", total, dtype=dtype)


def _steps(weight: ir.Value, rw: Rewriter) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The numbers of a constant matrix, with scales and zero points of as many dimensions; None where there are none."""
    op = weight.owner
    is_cast = isinstance(op, Op) and op.relay_name == "cast"
    if not (is_cast or isinstance(op, Dequantize)) or _type(weight).rank != 2 or _type(op.data).dtype not in NUMBERS:
        return None
    given = (op.data,) if is_cast else (op.data, op.input_scale, op.input_zero_point)
    arrays = [known(v, rw) for v in given]
    if any(v is None for v in arrays):
        return None
    numbers, *parameters = (np.asarray(v) for v in arrays)
    if not numbers.size:
        return None
    parameters = parameters or [np.ones((), np.float32), np.zeros((), np.int32)]
    along = (1, -1) if not is_cast and op.axis % 2 == 1 else (-1, 1)
    scales, zeros = (v.reshape((1, 1) if v.size == 1 else along if v.ndim == 1 else v.shape) for v in parameters)
    return numbers, scales, zeros


def _block_size(depth: int, *parameters: np.ndarray) -> int:
    """The size of the largest equal blocks along the depth whose parameters are constant."""
    found = depth
    for v in parameters:
        changes = (v[:, 1:] != v[:, :-1]).any(axis=0).nonzero()[0] + 1
        found = gcd(found, *changes.tolist())
    return found


def _form(numbers: np.ndarray, zeros: np.ndarray) -> tuple[int, int]:
    """The fewest bits that hold the numbers, and the number stored as 0: the one for which the median zero is nearest to the middle."""
    low, high = (int(v) for v in (numbers.min(), numbers.max()))
    bits = next(bits for bits in (2, 4, 8) if high - low < 1 << bits)
    least = int(np.median(zeros)) - (1 << (bits - 1))
    return bits, min(max(least, high - (1 << bits) + 1), low)


@module_pass(opt_level=2, name="WeightOnlyToDenseBlocks")
def weight_only_to_dense_blocks(mod: IRModule, ctx: PassContext) -> IRModule:
    """Products read dequantised constant weights as they are stored. On GPUs they read floats: no schedule there unpacks weights."""
    return mod if (ctx.get("target") or Target("cpu")).is_gpu else RULES.apply(mod)
