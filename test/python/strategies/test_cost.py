"""What a kernel counts as its work."""

import pytest

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.te.read.cost import kernel_cost

SUM = """
  %e = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    BODY
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
"""
ADD = "%s = arith.addf %a, %a : f32"
TAKE = """
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%i, %j] : tensor<1000x4xf32>
    %s = arith.addf %a, %v : f32"""
TAKE_BOTH = (
    TAKE.replace("%s =", "%p =")
    + """
    %w = tensor.extract %u[%i, %j] : tensor<1000x4xf32>
    %s = arith.addf %p, %w : f32"""
)
PART = "%x = tensor.extract_slice %t[1, 0] [8, 4] [1, 1] : tensor<1000x4xf32> to tensor<8x4xf32>"


@pytest.mark.parametrize(
    ("signature", "body", "flops", "read"),
    [
        ("%x: tensor<8x4xf32>", SUM.replace("BODY", ADD), 32, {}),
        # Elements at computed indices are read once for each element of the result, a slice once as a whole.
        ("%x: tensor<8x4xf32>, %t: tensor<1000x4xf32>", SUM.replace("BODY", TAKE), 32, {1: 128}),
        ("%x: tensor<8x4xf32>, %t: tensor<1000x4xf32>, %u: tensor<1000x4xf32>", SUM.replace("BODY", TAKE_BOTH), 64, {1: 128, 2: 128}),
        # No more is read than there is.
        ("%t: tensor<1000x4xf32>", PART + SUM.replace("BODY", TAKE), 32, {0: 256}),
        ("%t: tensor<10x4xf32>", (PART + SUM.replace("BODY", TAKE)).replace("1000x4", "10x4"), 32, {}),
        (
            "%y: tensor<80x4xf32>",
            "%x = tensor.extract_slice %y[3, 0] [8, 4] [2, 1] : tensor<80x4xf32> to tensor<8x4xf32>" + SUM.replace("BODY", ADD),
            32,
            {0: 128},
        ),
    ],
)
def test_operations_and_bytes(signature, body, flops, read):
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func private @f({signature}) -> tensor<8x4xf32> {{ {body} }}")
        cost = kernel_cost(module.body.operations[0])
        assert (cost.flops, cost.read) == (flops, read)
