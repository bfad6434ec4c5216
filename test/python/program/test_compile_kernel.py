"""One kernel compiled by itself."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of
from tuned_kernels import product_text

import relayc
from relayc.dialects.functions import symbols_of
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.instruments import ir_text
from relayc.pipelines.program.single import parsed

PRODUCT = product_text(16, 64, 48)
RANDOM = np.random.default_rng(0)
X, W = RANDOM.standard_normal((16, 64), np.float32), RANDOM.standard_normal((64, 48), np.float32)
BOUND = dict(rtol=0, atol=64 * 2**-23 * 64)
"""Sums of 64 products below about 16 each, in another order: 64 roundings at most, of partial sums below 64."""


def test_text_becomes_a_function_on_arrays():
    kernel = relayc.compile_kernel(PRODUCT)
    np.testing.assert_allclose(kernel(X, W), X @ W, **BOUND)
    assert kernel.info.flops == 2 * 16 * 64 * 48
    assert [s.shape for s in kernel.inputs] == [(16, 64), (64, 48)]
    assert repr(kernel).startswith(
        "<kernel product(arg0: float32[16, 64], arg1: float32[64, 48]) -> output0: float32[16, 48], contraction "
    )


def test_parameters_are_packed_and_are_no_inputs():
    kernel = relayc.compile_kernel(PRODUCT, params={1: W})
    assert [s.name for s in kernel.inputs] == ["arg0"]
    assert kernel.info.inputs[1].shape != W.shape
    np.testing.assert_allclose(kernel(X), X @ W, **BOUND)


def test_tuned_numbers_are_used_and_shown():
    kernel = relayc.compile_kernel(PRODUCT, tuning={"strategy": "contraction", "rows": 3, "vectors": 1}, params={1: W}, keep_ir=True)
    assert kernel.info.schedule.startswith("contraction rows=3 vectors=1 ")
    assert "vector.fma" in kernel.ir["tir"]
    np.testing.assert_allclose(kernel(X), X @ W, **BOUND)


def test_another_strategy_may_be_asked():
    kernel = relayc.compile_kernel(PRODUCT, tuning={"strategy": "loops"})
    assert kernel.info.schedule.startswith("loops ")
    np.testing.assert_allclose(kernel(X, W), X @ W, **BOUND)


def test_the_packed_function_is_that_of_the_kernel():
    kernel = relayc.compile_kernel(PRODUCT, tuning={"strategy": "loops"})
    out = np.empty((16, 48), np.float32)
    kernel.packed(X, W, out)
    np.testing.assert_allclose(out, X @ W, **BOUND)


def test_a_kernel_of_a_model_is_taken_as_the_model_compiles_to_it():
    x = RANDOM.standard_normal((4, 64), np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
    te = relayc.compile(model_of(nodes, {"x": [4, 64]}, initializers={"w": W}), stop_after="te")
    name = next(name for name in symbols_of(te.module) if name.startswith("fused_"))
    kernel = relayc.compile_kernel(te, name=name, params={1: W.T})  # dense takes weights by columns
    np.testing.assert_allclose(kernel(x), np.maximum(x @ W, 0), **BOUND)
    assert kernel.info.ops[-1] == "nn.relu"


def test_kernels_of_a_te_module_are_taken_by_name():
    both = PRODUCT + PRODUCT.replace("@product", "@other").replace("linalg.matmul", "linalg.matmul")
    mod = relayc.IRModule.parse(both)
    before = str(mod)
    kernel = relayc.compile_kernel(mod, name="other")
    np.testing.assert_allclose(kernel(X, W), X @ W, **BOUND)
    assert kernel.name == "other" and str(mod) == before


DOUBLED = """
func.func @doubled(%x: tensor<?x4xf32, ["n"]> {relay.name = "x"}, %n: index {relay.symbol = "n"})
    -> (tensor<?x4xf32, ["n"]> {relay.name = "y"}) {
  %e = tensor.empty(%n) : tensor<?x4xf32, ["n"]>
  %0 = linalg.add ins(%x, %x : tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["n"]>) outs(%e : tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]>
  return %0 : tensor<?x4xf32, ["n"]>
}
"""


STEPS = """
func.func @steps(%x: tensor<12xf32>, %s: tensor<?xf32, ["s"]>, %n: index {relay.symbol = "s"}) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %0 = tensor.extract_slice %x[1] [3] [%n] : tensor<12xf32> to tensor<3xf32>
  %1 = linalg.add ins(%0, %0 : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
"""


def test_strides_that_a_call_says():
    kernel, x = relayc.compile_kernel(STEPS), np.arange(12, dtype=np.float32)
    for stride in (1, 2, 5):
        np.testing.assert_array_equal(kernel(x, np.zeros(stride, np.float32)), 2 * x[1::stride][:3])


CUT = """
func.func @cut(%x: tensor<4xf32>, %n: index {relay.symbol = "n"}) -> tensor<?xf32, ["m"]> {
  %0 = tensor.extract_slice %x[0] [%n] [1] : tensor<4xf32> to tensor<?xf32, ["m"]>
  return %0 : tensor<?xf32, ["m"]>
}
"""


def test_symbols_have_the_values_of_the_shapes_of_a_call():
    kernel = relayc.compile_kernel(DOUBLED)
    assert repr(kernel).startswith("<kernel doubled(x: float32[n, 4]) -> y: float32[n, 4], loops ")
    for size in (0, 1, 19):
        x = RANDOM.standard_normal((size, 4), np.float32)
        np.testing.assert_array_equal(kernel(x), 2 * x)


@pytest.mark.parametrize(
    ("names", "expected"), [(("", ""), ("output0", "output1")), (("", "y"), ("output0", "y")), (("y", "z"), ("y", "z"))]
)
def test_results_without_a_name_have_their_number(names, expected):
    results = ", ".join("tensor<4xf32>" + (f' {{relay.name = "{name}"}}' if name else "") for name in names)
    kernel = relayc.compile_kernel(f"""
func.func @twice(%x: tensor<4xf32>) -> ({results}) {{
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0, %0 : tensor<4xf32>, tensor<4xf32>
}}""")
    assert f"-> {expected[0]}: float32[4], {expected[1]}: float32[4], " in repr(kernel)


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        ("func.func @f(%x: tensor<4xf32>) {", {}, "compile_kernel: expected MLIR text of the te stage"),
        ("func.func private @f(tensor<4xf32>) -> tensor<4xf32>", {}, "expected one function over tensors .* found none"),
        (PRODUCT + PRODUCT.replace("@product", "@other"), {}, "found @product, @other"),
        (PRODUCT, {"name": "quotient"}, "expected a function @quotient over tensors, found none"),
        (PRODUCT.replace("16x", "?x").replace("tensor.empty()", "tensor.empty(%n)"), {}, "compile_kernel: expected"),
        (DOUBLED.replace(', ["n"]', ""), {}, "argument 0: expected sizes that are numbers or symbols that the function takes"),
        (CUT, {}, "result 0: expected sizes that are numbers or symbols that the function takes"),
        (DOUBLED, {"params": {0: X}}, "argument 0 of @doubled: expected an array"),
        (PRODUCT, {"params": {2: W}}, "expected positions of arguments of @product below 2, found 2"),
        (PRODUCT, {"params": {1: W[:8]}}, r"argument 1 of @product: expected an array float32\[64, 48\], found float32\[8, 48\]"),
        (PRODUCT.replace("tensor<64x48xf32>)", "tensor<64x48xf32> {relay.param})", 1), {}, "expected the parameters of @product"),
        (PRODUCT, {"tuning": {"strategy": "contraction", "depth": 2}}, "found 'contraction.depth'"),
        (PRODUCT, {"tuning": {"strategy": "attention_rows"}}, "strategy attention_rows: expected a kernel that it takes, found @product"),
    ],
)
def test_what_is_no_kernel_is_an_error(kernel, options, message):
    with pytest.raises(ValueError, match=message):
        relayc.compile_kernel(kernel, **options)


def test_another_type_is_an_error():
    with pytest.raises(TypeError, match="expected a function of the te stage as MLIR text, an operation or a module, found 3"):
        relayc.compile_kernel(3)


def test_operations_of_a_given_function_keep_their_locations():
    text = """func.func @k(%x: tensor<4xf32>) -> tensor<4xf32> {
      %p = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32> loc("here")
      %r = tensor.collapse_shape %p [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
      return %r : tensor<4xf32>
    }"""
    mod = parsed(IRModule.parse(text), "a test")
    assert 'loc("here")' in ir_text(mod.module.operation, locations=True)
    assert "loc(" not in ir_text(mod.module.operation)
