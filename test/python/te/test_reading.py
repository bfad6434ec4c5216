"""Kernels of the te stage as schedules read them, and what they do not read."""

import pytest

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.te.read.graph import NotStructured, read_kernel

GENERIC = """
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (OUTPUT)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    BODY
    linalg.yield %y : f32
  } -> tensor<4xf32>"""
LOOP = "%y = scf.for %k = %n to %n step %n iter_args(%v = %a) -> f32 { scf.yield %v : f32 }"


def generic(body: str, output: str = "i") -> str:
    return GENERIC.replace("BODY", body).replace("OUTPUT", output)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%r = tensor.reshape %x(%t) : (tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>", "tensor.reshape at "),
        ("%u = tensor.empty(%n) : tensor<?xf32>\n%r = tensor.empty() : tensor<4xf32>", r"a dimension that is not known in tensor<\?xf32>"),
        (
            "%e = tensor.empty() : tensor<4xindex>\n%r = linalg.fill ins(%n : index) outs(%e : tensor<4xindex>) -> tensor<4xindex>",
            "expected a constant scalar, found .*index",
        ),
        ("%r = tensor.extract_slice %w[0] [4] [%n] : tensor<16xf32> to tensor<4xf32>", "strides that are no numbers"),
        (generic(LOOP), "scf.for in the body of linalg.generic"),
        (generic("%y = arith.negf %a : f32", "3 - i"), r"linalg.generic: output map \(d0\) -> \(-d0 \+ 3\)"),
        (
            "%r = linalg.softmax dimension(0) ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>",
            "linalg.softmax: ",
        ),
    ],
)
def test_what_is_not_structured(body: str, message: str) -> None:
    arguments = '%x: tensor<4xf32>, %w: tensor<16xf32>, %t: tensor<1xi32>, %n: index {relay.symbol = "n"}'
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @f({arguments}) -> tensor<4xf32> {{ {body} \n return %x : tensor<4xf32> }}")
        with pytest.raises(NotStructured, match=message):
            read_kernel(module.body.operations[0])
