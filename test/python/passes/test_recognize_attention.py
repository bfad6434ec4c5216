"""Attention as families of models write it: found, and the same function as without the pass."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from support import Const, program, run_program

from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule, build
from relayc.dialects.relay.base import Op
from relayc.pipelines import PassContext, find_pass

# Sums in another order, and exp within 3e-7.
TOLERANCE = 1e-5


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def scalar(value: float) -> Const:
    return Const(np.array(value, np.float32))


def reshape(x: ir.Value, *shape: int) -> ir.Value:
    return build("reshape", x, newshape=shape)


def heads(x: ir.Value, batch: int, rows: int, count: int, axes: tuple[int, ...] = (0, 2, 1, 3)) -> ir.Value:
    return build("transpose", reshape(x, batch, rows, count, 8), axes=axes)


def attend(q: ir.Value, k: ir.Value, v: ir.Value, change: Callable[[ir.Value], ir.Value], transpose_b: bool = True) -> ir.Value:
    """The products as batched ones, with `change` between the first and the softmax."""
    return build(
        "nn.batch_matmul", build("nn.softmax", change(build("nn.batch_matmul", q, k, transpose_b=transpose_b))), v, transpose_b=False
    )


def windows(q, k, v, bias, mask, scale):
    """Swin: windows of a shifted grid, with a bias for each head and a mask for each window."""
    q, k, v = (reshape(heads(x, 4, 9, 2), 8, 9, 8) for x in (build("multiply", q, scale), k, v))

    def change(scores):
        biased = build("add", reshape(scores, 4, 2, 9, 9), bias)
        return reshape(build("add", reshape(biased, 1, 4, 2, 9, 9), mask), 8, 9, 9)

    return build("transpose", reshape(attend(q, k, v, change), 4, 2, 9, 8), axes=(0, 2, 1, 3))


def relative(q, k, v, bias):
    """T5: no scale, a bias for each head and pair of positions."""
    q, v = (reshape(heads(x, 1, n, 4), 4, n, 8) for x, n in ((q, 6), (v, 7)))
    k = reshape(heads(k, 1, 7, 4, (0, 2, 3, 1)), 4, 8, 7)
    return attend(q, k, v, lambda scores: reshape(build("add", reshape(scores, 1, 4, 6, 7), bias), 4, 6, 7), transpose_b=False)


def cached(q, k, v, past_k, past_v, mask, root):
    """A decoder's step: one query, keys and values of the past before its own, a mask of the padding."""
    q = heads(q, 2, 1, 4)
    k = build("concatenate", past_k, heads(k, 2, 1, 4), axis=2)
    v = build("concatenate", past_v, heads(v, 2, 1, 4), axis=2)
    q, k, v = (reshape(x, 8, n, 8) for x, n in ((q, 1), (k, 10), (v, 10)))

    def change(scores):
        return reshape(build("add", build("divide", reshape(scores, 2, 4, 1, 10), root), mask), 8, 1, 10)

    return reshape(heads(reshape(attend(q, k, v, change), 2, 4, 8), 2, 4, 1), 2, 32)


def softcapped(q, k, v, cap, inverse):
    """Gemma: scores between two bounds."""
    change = lambda scores: build("multiply", build("tanh", build("multiply", scores, inverse)), cap)  # noqa: E731
    return attend(q, k, v, change)


def filled(q, k, v, hidden, fill):
    """DistilBERT: scores replaced where a key is padding."""
    return attend(q, k, v, lambda scores: reshape(build("where", hidden, fill, reshape(scores, 2, 2, 5, 6)), 4, 5, 6))


def triangle(rows: int, keys: int, value: float) -> np.ndarray:
    return np.where(np.tri(rows, keys, keys - rows, bool), 0, value).astype(np.float32)


def causal(q, k, v, mask, padding):
    """A constant triangle and a mask of the padding, one after the other."""
    return attend(q, k, v, lambda scores: reshape(build("add", build("add", reshape(scores, 2, 2, 5, 6), mask), padding), 4, 5, 6))


PADDING = np.array([[0, 0, 0, 0, 0, 0], [-np.inf, 0, 0, 0, 0, 0]], np.float32).reshape(2, 1, 1, 6)
SMALL = [normal(4, 5, 8), normal(4, 6, 8, seed=1), normal(4, 6, 8, seed=2)]
FAMILIES = {
    "windows": (windows, [*(normal(4, 9, 16, seed=i) for i in range(3)), normal(1, 2, 9, 9), normal(4, 1, 9, 9), scalar(8**-0.5)]),
    "relative": (relative, [normal(1, 6, 32), normal(1, 7, 32, seed=1), normal(1, 7, 32, seed=2), normal(1, 4, 6, 7)]),
    "cached": (
        cached,
        [
            *(normal(2, 1, 32, seed=i) for i in range(3)),
            normal(2, 4, 9, 8),
            normal(2, 4, 9, 8, seed=1),
            np.where(np.arange(10) < 3, -np.inf, np.zeros((2, 1, 1, 10))).astype(np.float32),
            scalar(8**0.5),
        ],
    ),
    "softcapped": (softcapped, [*SMALL, scalar(5.0), scalar(0.05)]),
    "filled": (filled, [*SMALL, np.arange(12).reshape(2, 1, 1, 6) % 4 == 3, scalar(-np.inf)]),
    "causal": (causal, [*SMALL, Const(triangle(5, 6, -np.inf)), PADDING]),
    "causal, finite": (causal, [*SMALL, Const(triangle(5, 6, np.finfo(np.float32).min)), PADDING]),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families(name: str) -> None:
    build_one, arrays = FAMILIES[name]

    def body(*values: ir.Value) -> Sequence[ir.Value]:
        return [build_one(*values)]

    mod = program(body, arrays)
    for step in ("SimplifyExpr", "EliminateCommonSubexpr", "RecognizePatterns", "RecognizeAttention", "DeadCodeElimination"):
        mod = find_pass(step)(mod)
    found = [op for op in mod.main.regions[0].blocks[0].operations if isinstance(op, Op)]
    names = [op.operation.name for op in found]
    assert names.count("relay.nn_attention") == 1 and "relay.nn_softmax" not in names
    attention = found[names.index("relay.nn_attention")]
    # A triangle of finite numbers hides nothing from a row whose other keys are padding: it stays a mask.
    assert attention.is_causal == (name == "causal")
    with PassContext(disabled_pass=["RecognizeAttention"]):
        (expected,) = run_program(body, arrays)
    (result,) = run_program(body, arrays)
    np.testing.assert_allclose(result, expected, rtol=0, atol=TOLERANCE)


def test_a_mask_that_repeats_scores() -> None:
    """One query's scores, each time with other keys hidden, are no attention of so many queries: the products stay."""
    q, k, v = normal(2, 1, 8), normal(2, 6, 8, seed=1), normal(2, 6, 8, seed=2)
    hidden = np.arange(60).reshape(2, 5, 6) % 4 == 3
    weights = np.where(hidden, 0, np.exp(q @ k.transpose(0, 2, 1)))

    def body(q, k, v, hidden, fill):
        return [attend(q, k, v, lambda scores: build("where", hidden, fill, scores))]

    (result,) = run_program(body, [q, k, v, hidden, scalar(-np.inf)])
    np.testing.assert_allclose(result, weights / weights.sum(-1, keepdims=True) @ v, rtol=0, atol=TOLERANCE)


def test_keys_that_all_heads_share() -> None:
    """They are no heads of their own: the products stay."""
    q, k, v = normal(4, 5, 8), normal(1, 6, 8, seed=1), normal(4, 6, 8, seed=2)
    weights = np.exp(q @ k.transpose(0, 2, 1))
    (result,) = run_program(lambda *values: [attend(*values, lambda scores: scores)], [q, k, v])
    np.testing.assert_allclose(result, weights / weights.sum(-1, keepdims=True) @ v, rtol=0, atol=TOLERANCE)


def test_a_dimension_of_one_element_behind_a_transpose_is_part_of_the_last_one() -> None:
    q, k, v = normal(1, 2, 3, 1), normal(2, 5, seed=1), normal(1, 2, 5, 1, seed=2)

    def body(q, k, v):
        return [build("nn.attention", q, reshape(build("transpose", k, axes=(1, 0)), 1, 5, 2, 1), v, key_layout="BSHD", scale=1.0)]

    mod = find_pass("RecognizeAttention")(program(body, [q, k, v]))
    (op,) = (op for op in mod.main.regions[0].blocks[0].operations if op.operation.name == "relay.nn_attention")
    assert op.key_layout == "HDBS" and op.operation.operands[1].type.shape == [2, 1, 1, 5]


def test_attention_of_unknown_sizes_stays_as_it_is() -> None:
    text = """
    func.func @main(%q: tensor<2x3x4xf32>, %k: tensor<2x?x4xf32>, %h: tensor<1x2x3x4xf32>, %l: tensor<1x2x?x4xf32>)
        -> (tensor<2x3x4xf32>, tensor<1x2x3x4xf32>) {
      %0 = "relay.nn_batch_matmul"(%q, %k) : (tensor<2x3x4xf32>, tensor<2x?x4xf32>) -> tensor<2x3x?xf32>
      %1 = "relay.nn_softmax"(%0) : (tensor<2x3x?xf32>) -> tensor<2x3x?xf32>
      %2 = "relay.nn_batch_matmul"(%1, %k) {transpose_b = false} : (tensor<2x3x?xf32>, tensor<2x?x4xf32>) -> tensor<2x3x4xf32>
      %c = "relay.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
      %3 = "relay.multiply"(%h, %c) : (tensor<1x2x3x4xf32>, tensor<f32>) -> tensor<1x2x3x4xf32>
      %4 = "relay.nn_attention"(%3, %l, %l) {scale = 1.0}
        : (tensor<1x2x3x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x3x4xf32>
      return %2, %4 : tensor<2x3x4xf32>, tensor<1x2x3x4xf32>
    }"""
    mod = find_pass("RecognizeAttention")(IRModule.parse(text))
    names = [op.operation.name.removeprefix("relay.") for op in mod.main.regions[0].blocks[0].operations]
    assert names == ["nn_batch_matmul", "nn_softmax", "nn_batch_matmul", "constant", "multiply", "nn_attention", "func.return"]
