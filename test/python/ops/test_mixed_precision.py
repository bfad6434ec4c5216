"""Operators with precision="bf16": against exact arithmetic on rounded operands. The schedules are those of CPUs without bf16."""

import ml_dtypes
import numpy as np
import pytest
from accuracy import check_sums
from oracle import check_convolution, onnx_run
from support import Const, program

import relayc
from relayc.dialects.relay import build
from relayc.pipelines.context.instruments import Verifier

FORCED = {"relay.ToMixedPrecision.force": True}


def rounded(array):
    """As bf16, in f32."""
    return array.astype(ml_dtypes.bfloat16).astype(np.float32)


def values(*shape):
    return np.random.default_rng([3, *shape]).standard_normal(shape).astype(np.float32)


def run(body, arrays):
    """Outputs of a program in bf16, which is verified after each pass."""
    with relayc.PassContext(config=FORCED, instruments=[Verifier()]):
        module = relayc.compile(program(body, arrays), precision="bf16")
    assert module.precision == "bf16"
    found = module["main"](*[a for a in arrays if not isinstance(a, Const)])
    return list(found) if isinstance(found, tuple) else [found]


PRODUCTS = [
    ("nn.dense", (5, 33), (7, 33), {}, lambda a, b: a @ b.T),
    ("nn.dense", (2, 3, 64), (48, 64), {}, lambda a, b: a @ b.T),
    ("nn.dense", (1, 130), (17, 130), {}, lambda a, b: a @ b.T),
    ("nn.matmul", (33, 5), (33, 9), {"transpose_a": True}, lambda a, b: a.T @ b),
    ("nn.matmul", (5, 33), (33, 16), {}, lambda a, b: a @ b),
    ("nn.batch_matmul", (3, 5, 17), (3, 9, 17), {}, lambda a, b: a @ b.transpose(0, 2, 1)),
    ("nn.batch_matmul", (3, 17, 5), (1, 17, 9), {"transpose_a": True, "transpose_b": False}, lambda a, b: a.transpose(0, 2, 1) @ b),
]


@pytest.mark.parametrize("constant", [False, True], ids=["input", "weight"])
@pytest.mark.parametrize(("name", "a", "b", "attrs", "reference"), PRODUCTS, ids=[f"{p[0]}-{p[1]}" for p in PRODUCTS])
def test_products_multiply_bf16_and_add_f32(name, a, b, attrs, reference, constant):
    x, w = values(*a), values(*b)
    (found,) = run(lambda x, w: [build(name, x, w, **attrs)], [x, Const(w) if constant else w])
    wide = [rounded(v).astype(np.float64) for v in (x, w)]
    check_sums(found, reference(*wide), reference(*map(np.abs, wide)), x.shape[-2 if attrs.get("transpose_a") else -1])


CONVOLUTIONS = [
    ("nn.conv2d", (1, 16, 9, 11), (32, 16, 3, 3), {"padding": (1, 1, 1, 1)}),
    ("nn.conv2d", (1, 32, 8, 8), (32, 32, 1, 1), {}),
    ("nn.conv2d", (2, 3, 15, 15), (24, 3, 7, 7), {"padding": (3, 3, 3, 3), "strides": (2, 2)}),
    ("nn.conv2d", (1, 16, 9, 9), (16, 1, 3, 3), {"padding": (1, 1, 1, 1), "groups": 16}),
    ("nn.conv2d", (1, 12, 7, 7), (8, 6, 3, 3), {"groups": 2, "dilation": (2, 2)}),
    ("nn.conv1d", (1, 5, 19), (6, 5, 4), {}),
    ("nn.conv3d", (1, 3, 5, 6, 7), (4, 3, 2, 3, 2), {}),
    ("nn.conv2d_transpose", (1, 6, 5, 5), (6, 4, 3, 3), {"strides": (2, 2)}),
]


@pytest.mark.parametrize(("name", "data", "weight", "attrs"), CONVOLUTIONS, ids=[f"{c[0]}-{c[2]}" for c in CONVOLUTIONS])
def test_convolutions_multiply_bf16_and_add_f32(name, data, weight, attrs):
    x, w = values(*data), values(*weight)
    (found,) = run(lambda x, w: [build(name, x, w, **attrs)], [x, Const(w)])
    onnx_name = "ConvTranspose" if "transpose" in name else "Conv"
    names = {"padding": "pads", "strides": "strides", "groups": "group", "dilation": "dilations"}
    check_convolution(found, onnx_name, rounded(x), rounded(w), **{names[key]: value for key, value in attrs.items()})


def test_blocked_layouts_hold_the_lanes_of_bf16():
    x, v, w = values(1, 3, 12, 12), values(32, 3, 3, 3), values(32, 32, 3, 3)

    def body(x, v, w):
        return [build("nn.conv2d", build("nn.relu", build("nn.conv2d", x, v)), w)]

    with relayc.PassContext(config=FORCED):
        mod = relayc.compile(program(body, [x, Const(v), Const(w)]), precision="bf16", stop_after="relay")
    lanes = relayc.Target().lanes(16)
    assert f'"NCHW{lanes}c"' in str(mod) and "winograd" not in str(mod)
    (found,) = run(body, [x, Const(v), Const(w)])
    inner = rounded(np.maximum(onnx_run("Conv", rounded(x), rounded(v)), 0))
    # Sums next to the middle between two bf16 numbers may round either way: one step of 2**-8 in a few of 288 terms.
    expected = onnx_run("Conv", inner, rounded(w))
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())


def test_operators_between_products_round_once():
    x, w, b = values(4, 64), values(64, 64), values(64)

    def body(x, w, b):
        hidden = build("sigmoid", build("nn.bias_add", build("nn.dense", x, w), b, axis=-1))
        return [build("nn.dense", hidden, w)]

    (found,) = run(body, [x, Const(w), Const(b)])
    sums = rounded(x).astype(np.float64) @ rounded(w).T.astype(np.float64) + b
    hidden = rounded((1 / (1 + np.exp(-sums))).astype(np.float32)).astype(np.float64)
    expected = hidden @ rounded(w).T.astype(np.float64)
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())  # as above


def test_other_types_than_f32_are_left_alone():
    x, n = values(4, 8).astype(np.float64), np.arange(32, dtype=np.int32).reshape(4, 8)
    double, whole = run(lambda x, n: [build("nn.dense", x, x), build("nn.dense", n, n)], [x, n])
    np.testing.assert_allclose(double, x @ x.T, rtol=1e-14)
    np.testing.assert_array_equal(whole, n @ n.T)


def test_a_result_that_a_product_reads_too_is_f32():
    x, w = values(4, 8), values(8, 8)
    first, second = run(lambda x, w: [y := build("nn.dense", x, w), build("nn.dense", y, w)], [x, Const(w)])
    for left, found in ((rounded(x), first), (rounded(first), second)):
        check_sums(found, left @ rounded(w).T, np.abs(left) @ np.abs(rounded(w)).T, 8)


def test_attention_reads_bf16_and_sees_its_mask_in_f32():
    q, k, v = (values(1, 2, 6, 16) * scale for scale in (1, 0.5, 1))
    lowest = np.finfo(np.float32).min
    mask = np.where(np.arange(6) < 4, 0, lowest).astype(np.float32) * np.ones((1, 1, 6, 1), np.float32)
    mask[..., 5, :] = lowest  # a row that sees nothing weighs all alike: with infinities it would be NaN
    (found,) = run(lambda q, k, v, m: [build("nn.attention", q, k, v, m, scale=0.25)], [q, k, v, mask])
    q, k, v = (rounded(x).astype(np.float64) for x in (q, k, v))
    scores = 0.25 * q @ k.transpose(0, 1, 3, 2) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v
    assert found.dtype == np.float32
    # The result is rounded to bf16: half a unit in the last of 8 bits.
    np.testing.assert_allclose(found, expected, rtol=2**-8, atol=1e-5)


def test_attention_sees_a_mask_that_a_product_made_in_f32():
    q, k, v, a, w = values(1, 2, 6, 16), values(1, 2, 7, 16) / 2, values(1, 2, 7, 16), 2 * values(6, 32), values(7, 32)

    def body(q, k, v, a, w):
        mask = build("reshape", build("nn.dense", a, w), newshape=(1, 1, 6, 7))
        return [build("nn.attention", q, k, v, mask, scale=0.25)]

    (found,) = run(body, [q, k, v, a, Const(w)])
    q, k, v, a, w = (rounded(x).astype(np.float64) for x in (q, k, v, a, w))
    scores = 0.25 * q @ k.transpose(0, 1, 3, 2) + a @ w.T
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    # As above; in bf16 the mask, of up to some tens, would be off by 2**-4.
    np.testing.assert_allclose(found, weights / weights.sum(-1, keepdims=True) @ v, rtol=2**-8, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "width", "join", "reference"),
    [
        (
            "concatenate",
            32,
            lambda y, half: build("concatenate", build("tanh", y), build("exp", y), axis=1),
            lambda y: np.concatenate([np.tanh(y), np.exp(y)], 1),
        ),
        (
            "nn.pad",
            23,
            lambda y, half: build("nn.pad", build("tanh", y), half, pad_width=(0, 0, 3, 4)),
            lambda y: np.pad(np.tanh(y), ((0, 0), (3, 4)), constant_values=0.5),
        ),
    ],
)
def test_what_is_written_in_pieces_stays_the_last_operator_of_its_kernel(name, width, join, reference):
    """It moves what was cast before: rounding and moving do not change places with any effect."""
    x, w, v = values(6, 33), values(16, 33) / 8, values(9, width)
    arrays = [x, w, v, Const(np.float32(0.5))]

    def body(x, w, v, half):
        return [build("nn.dense", join(build("nn.dense", x, w), half), v)]

    with relayc.PassContext(config=FORCED):
        module = relayc.compile(program(body, arrays), precision="bf16")
    assert any(kernel.ops[-1] == name for kernel in module.kernels)
    y = (rounded(x).astype(np.float64) @ rounded(w).T.astype(np.float64)).astype(np.float32)
    expected = rounded(reference(y)).astype(np.float64) @ rounded(v).T.astype(np.float64)
    # An element near the border between two numbers of bf16 may be rounded to the other one: 2**-8 of a term.
    np.testing.assert_allclose(module["main"](x, w, v), expected, rtol=1e-2, atol=2**-5)
