"""Compute rules of matrix products: nn.dense, nn.matmul, nn.batch_matmul, nn.bias_add."""

from math import prod

from relayc.dialects.mlir import linalg
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator, contract, narrowed
from relayc.pipelines.te.rules.core import Value, affine_map, compute, dim, identity, operand_type, parallel, result_type, shape
from relayc.pipelines.te.rules.window import merge, split


@compute("nn_dense", "nn_matmul")
def matmul(op: Op, a: Value, b: Value) -> Value:
    """a [..., m, k] x b [k, n], or its transpose: static leading dimensions are flattened into rows."""
    transpose_a, transpose_b = (False, True) if type(op)._op_name == "nn_dense" else (op.transpose_a, op.transpose_b)
    out, operands = result_type(op), (operand_type(op).dtype, operand_type(op, 1).dtype)
    leading = out.sizes[:-1]
    if not leading:  # a vector: one row
        a = split(a, [[1, shape(a)[0]]])
    elif not transpose_a:
        a = merge(a, [len(leading), 1])
    maps = [affine_map(3, [dim(2), dim(0)] if transpose_a else [dim(0), dim(2)])]
    maps.append(affine_map(3, [dim(1), dim(2)] if transpose_b else [dim(2), dim(1)]))
    wide = accumulator(out.dtype)
    sums = TensorType((prod(leading), out.sizes[-1]), wide)
    product = contract(a, b, maps, affine_map(3, [dim(0), dim(1)]), sums, operands, linalg.MatmulOp)
    product = split(product, [leading, [out.sizes[-1]]]) if leading else merge(product, [2])
    return narrowed(product, out, wide)


@compute("nn_batch_matmul")
def batch_matmul(op: Op, a: Value, b: Value) -> Value:
    out, operands = result_type(op), (operand_type(op).dtype, operand_type(op, 1).dtype)
    # linalg.batch_matmul has no broadcast batch: a generic then reads the one matrix for every entry.
    batches = [0 if shape(v)[0] == 1 != out.shape[0] else dim(0) for v in (a, b)]
    maps = [
        affine_map(4, [batches[0], *([dim(3), dim(1)] if op.transpose_a else [dim(1), dim(3)])]),
        affine_map(4, [batches[1], *([dim(2), dim(3)] if op.transpose_b else [dim(3), dim(2)])]),
    ]
    wide = accumulator(out.dtype)
    named = None if 0 in batches else linalg.BatchMatmulOp
    product = contract(a, b, maps, affine_map(4, [dim(0), dim(1), dim(2)]), out.with_dtype(wide), operands, named)
    return narrowed(product, out, wide)


@compute("nn_bias_add")
def bias_add(op: Op, data: Value, bias: Value) -> Value:
    out = result_type(op)
    maps = [identity(out.rank), affine_map(out.rank, [dim(op.axis % out.rank)])]
    return parallel(out, [data, bias], lambda x, b: scalar.add(x, b, out.dtype), maps)
