"""FakeQuantizationToInteger against numpy: the program has operators on integers, and gives what the floats give."""

import numpy as np
import pytest

from relayc import relay
from relayc.dialects.relay.errors import RelayError
from relayc.relay.fake_quantization import KEY, TensorAffineType

qnn = relay.qnn.op
CHANNEL_SCALES = np.array([0.5, 0.25, 2.0], np.float32)


def drawn(shape, dtype="int8", seed=0):
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def real(name, array, scale, zero, axis=-1):
    """A dequantized parameter, and its numbers in numpy."""
    variable = relay.var(name, shape=array.shape, dtype=array.dtype.name)
    shape = [-1 if i == axis % array.ndim and np.ndim(scale) else 1 for i in range(array.ndim)]
    scale = np.asarray(scale, np.float32)
    numbers = (array.astype(np.float64) - zero) * (scale.reshape(shape) if scale.ndim else scale)
    return qnn.dequantize(variable, relay.const(scale), relay.const(zero), axis=axis), numbers


def quantized(expr, scale, zero, dtype="int8"):
    return qnn.quantize(expr, relay.const(scale, "float32"), relay.const(zero), out_dtype=dtype)


def integers(numbers, scale, zero, dtype="int8"):
    limits = np.iinfo(dtype)
    return np.clip(np.floor(numbers / np.float32(scale) + 0.5) + zero, limits.min, limits.max).astype(dtype)


def converted(expr, **options):
    """The program after the pass, with the type check of a program before it."""
    mod = relay.transform.InferType()(relay.IRModule.from_expr(expr))
    found = relay.transform.FakeQuantizationToInteger(**options)(mod)
    assert found["main"].ret_type == mod["main"].ret_type
    return mod, found


def operators(mod):
    found = []
    relay.analysis.post_order_visit(mod["main"], lambda node: found.append(node.op.name) if isinstance(node, relay.Call) else None)
    return found


def run(mod, arrays):
    """The result on arrays by name of the parameter."""
    values = [arrays[param.name_hint] for param in mod["main"].params]
    found = relay.create_executor("graph", mod).evaluate()(*values)
    return [part.numpy() for part in found] if isinstance(found, list) else found.numpy()


NUMBER, ZERO, SCALE = relay.var("n", shape=()), relay.const(0), relay.const(0.3)


@pytest.mark.parametrize(
    ("scale", "zero", "dtype", "is_near"),
    [
        (relay.const(np.nextafter(np.float32(0.3), 1, dtype="float32")), ZERO, "int8", True),
        (relay.const(0.3001), ZERO, "int8", False),
        (SCALE, relay.const(1), "int8", False),
        (SCALE, ZERO, "uint8", False),
        (NUMBER, ZERO, "int8", False),
        (relay.const(np.full(3, 0.3, "float32")), ZERO, "int8", True),
        (relay.const(np.array([0.3, 0.3, 0.6], "float32")), ZERO, "int8", False),
    ],
)
def test_affine_types_that_are_near(scale, zero, dtype, is_near):
    types = TensorAffineType(SCALE, ZERO, "int8"), TensorAffineType(scale, zero, dtype)
    assert types[0].is_near(types[1]) == types[1].is_near(types[0]) == is_near


def test_affine_types_of_small_and_of_unknown_scales():
    small, other = (TensorAffineType(relay.const(scale), ZERO, "int32") for scale in (1e-9, 2e-9))
    assert small.is_near(small) and not small.is_near(other)
    late, same, other = (TensorAffineType(expr, ZERO, "int32") for expr in (NUMBER + SCALE, NUMBER + SCALE, NUMBER + NUMBER))
    assert late.is_near(same) and not late.is_near(other)


def test_convolution_with_bias_and_rectifier():
    x, w = drawn((1, 3, 6, 5)), drawn((4, 3, 3, 3), seed=1)
    scales = np.array([0.25, 0.5, 1.0, 2.0], np.float32)
    bias = np.array([64.0, -32.0, 8.5, 0.125], np.float32)
    (data, real_x), (weight, real_w) = real("x", x, 0.5, 7), real("w", w, scales, 0, axis=0)
    y = relay.nn.conv2d(data, weight, kernel_size=(3, 3), padding=(1, 1), channels=4)
    y = quantized(relay.nn.relu(relay.nn.bias_add(y, relay.const(bias))), 64.0, -20)
    _, found = converted(y, hard_fail=True)
    assert operators(found) == ["qnn.conv2d", "qnn.quantize", "nn.bias_add", "maximum", "qnn.requantize"]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(real_x, [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), axis=(2, 3))
    exact = np.einsum("nchwij,ocij->nohw", windows, real_w) + (np.round(bias / (0.5 * scales)) * 0.5 * scales)[:, None, None]
    np.testing.assert_array_equal(run(found, {"x": x, "w": w}), integers(np.maximum(exact, 0), 64.0, -20))


@pytest.mark.parametrize("name", ["dense", "batch_matmul"])
def test_products_of_matrices(name):
    batch = () if name == "dense" else (2,)
    x, w = drawn((*batch, 3, 70), "uint8"), drawn((*batch, 5, 70), seed=1)
    (data, real_x), (weight, real_w) = real("x", x, 0.5, 128), real("w", w, 0.25, 3)
    _, found = converted(quantized(getattr(relay.nn, name)(data, weight), 256.0, 4, "uint8"))
    assert operators(found) == [f"qnn.{name}", "qnn.requantize"]
    np.testing.assert_array_equal(run(found, {"x": x, "w": w}), integers(real_x @ np.swapaxes(real_w, -1, -2), 256.0, 4, "uint8"))


def padded(x):
    return np.pad(x, ((0, 0), (1, 0), (0, 0), (0, 0)), constant_values=2.5)


MOVEMENTS = {
    "transpose": (lambda x: relay.transpose(x, (0, 3, 1, 2)), lambda x: x.transpose(0, 3, 1, 2)),
    "reshape": (lambda x: relay.reshape(x, (4, -1)), lambda x: x.reshape(4, -1)),
    "strided_slice": (lambda x: relay.strided_slice(x, [0, 1, 0, 0], [2, 4, 4, 3]), lambda x: x[:, 1:]),
    "max": (lambda x: relay.max(x, axis=1), lambda x: x.max(1)),
    "take": (lambda x: relay.take(x, relay.const([2, 0]), axis=1), lambda x: x[:, [2, 0]]),
    "concatenate": (lambda x: relay.concatenate([x, x], 1), lambda x: np.concatenate([x, x], 1)),
    "split": (lambda x: relay.split(x, 2, axis=1)[1], lambda x: x[:, 2:]),
    "nn.pad": (lambda x: relay.nn.pad(x, ((0, 0), (1, 0), (0, 0), (0, 0)), 2.5), padded),
    "clip": (lambda x: relay.clip(x, -6.0, 4.0), lambda x: x.clip(-6, 4)),
    "minimum": (lambda x: relay.minimum(x, relay.const(3.0)), lambda x: np.minimum(x, 3)),
    "topk": (lambda x: relay.topk(x, k=2, axis=1, ret_type="values"), lambda x: -np.sort(-x, 1)[:, :2]),
    "nn.pad with a quantized number": (
        lambda x: relay.nn.pad(
            x, ((0, 0), (1, 0), (0, 0), (0, 0)), qnn.dequantize(relay.const(np.int8(10)), relay.const(0.25), relay.const(0))
        ),
        padded,
    ),
    "add": (lambda x: relay.add(x, relay.const(3.0)), lambda x: x + 3),
    "subtract": (lambda x: relay.subtract(relay.const(1.0), x), lambda x: 1 - x),
}


def test_operators_that_are_exact():
    """Scales are powers of two, and no quotient is a half."""
    x = drawn((2, 4, 4, 3))
    data, numbers = real("x", x, 0.5, -9)
    _, found = converted(relay.Tuple([quantized(build(data), 0.25, 11) for build, _ in MOVEMENTS.values()]), hard_fail=True)
    assert "qnn.dequantize" not in operators(found)
    for name, result in zip(MOVEMENTS, run(found, {"x": x}), strict=True):
        np.testing.assert_array_equal(result, integers(MOVEMENTS[name][1](numbers), 0.25, 11), err_msg=name)


def means_of_windows(x):
    return np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(2, 3)).mean((4, 5))


NEAR = {
    "sigmoid": (relay.sigmoid, lambda x: 1 / (1 + np.exp(-x)), 1 / 256),
    "nn.leaky_relu": (lambda x: relay.nn.leaky_relu(x, 0.3), lambda x: np.where(x > 0, x, 0.3 * x), 0.05),
    "nn.avg_pool2d": (lambda x: relay.nn.avg_pool2d(x, (2, 2)), means_of_windows, 0.02),
    "nn.global_avg_pool2d": (relay.nn.global_avg_pool2d, lambda x: x.mean((2, 3), keepdims=True), 0.04),
    "mean": (lambda x: relay.mean(x, axis=(2, 3)), lambda x: x.mean((2, 3)), 0.04),
    "multiply": (lambda x: relay.multiply(x, x), lambda x: x * x, 0.2),
}


def test_operators_that_round():
    """Differences are one step of the data at most: integer means round towards zero."""
    x = drawn((2, 3, 4, 4))
    data, numbers = real("x", x, 0.04, 5)
    _, found = converted(relay.Tuple([quantized(build(data), scale, -3) for build, _, scale in NEAR.values()]), hard_fail=True)
    assert "qnn.dequantize" not in operators(found)
    for (_, reference, scale), result in zip(NEAR.values(), run(found, {"x": x}), strict=True):
        assert np.abs(result.astype(int) - integers(reference(numbers), scale, -3)).max() <= 1


def test_limits_of_channels():
    x = drawn((2, 3, 4))
    data, numbers = real("x", x, CHANNEL_SCALES, 0, axis=1)
    for build, reference in ((relay.nn.relu, lambda v: np.maximum(v, 0)), (lambda v: relay.clip(v, -8.0, 16.0), lambda v: v.clip(-8, 16))):
        _, found = converted(quantized(build(data), 0.25, 1), hard_fail=True)
        np.testing.assert_array_equal(run(found, {"x": x}), integers(reference(numbers), 0.25, 1))


def test_constant_zero_points_of_limits():
    x = drawn((5, 6), "uint8")
    data, numbers = real("x", x, 0.5, 100)
    _, found = converted(quantized(relay.nn.relu(data), 0.5, 100, "uint8"), hard_fail=True)
    assert operators(found) == ["maximum"] and found["main"].body.args[1].data.shape == ()
    np.testing.assert_array_equal(run(found, {"x": x}), np.maximum(x, 100))
    np.testing.assert_array_equal(run(found, {"x": x}), integers(np.maximum(numbers, 0), 0.5, 100, "uint8"))


def test_region_with_an_operator_without_rule_stays():
    data, _ = real("x", drawn((3, 4)), 0.5, 1)
    y = quantized(relay.cumsum(relay.reshape(data, (4, 3)), axis=0), 0.5, 1)
    mod, found = converted(y)
    relay.assert_structural_equal(mod, found)
    with pytest.raises(RelayError, match="expected an operator with a rule, found cumsum"):
        converted(y, hard_fail=True)
    mod, found = converted(quantized(relay.add(data, relay.var("y", shape=(3, 4))), 0.5, 1), hard_fail=True)
    relay.assert_structural_equal(mod, found)  # a parameter in floats is no region


def test_what_the_rules_refuse():
    (data, _), (product, _) = real("x", drawn((2, 4, 3)), 0.5, -9), real("m", drawn((2, 4, 3)), 0.5, 0)
    late = qnn.dequantize(relay.var("l", shape=(2, 3), dtype="int8"), relay.var("s", "float32"), relay.const(0))
    channels, _ = real("p", drawn((2, 3, 4)), CHANNEL_SCALES, 0, axis=1)
    wide, _ = real("n", drawn((2, 3), "int32"), 0.5, 1)
    for y, message in [
        (relay.topk(data, k=2, axis=1)[0], "topk: ret_type: expected values, found both"),
        (
            relay.nn.batch_matmul(product, relay.transpose(product, (0, 2, 1)), transpose_b=False),
            "expected transpose_a=False and transpose_b=True",
        ),
        (relay.nn.batch_matmul(product, product, transpose_a=True, transpose_b=False), "expected transpose_a=False and transpose_b=True"),
        (relay.add(data, relay.add(relay.const(1.0), relay.const(2.0))), "add: expected a quantized operand"),
        (relay.add(data, relay.max(relay.const(np.ones((2, 3), np.float32)), axis=0)), "expected a quantized operand, found Constant"),
        (
            relay.nn.bias_add(product, relay.const(np.ones(3, np.float32)), axis=-1),
            "expected int32 numbers with zero points of 0, .*found int8",
        ),
        (
            relay.nn.bias_add(wide, relay.const(np.ones(3, np.float32)), axis=-1),
            "expected int32 numbers with zero points of 0, .*found int32",
        ),
        (relay.nn.relu(late), "nn.relu: expected a constant"),
        (relay.clip(late, -1.0, 1.0), "clip: expected a constant"),
    ]:
        with pytest.raises(RelayError, match=message):
            converted(quantized(y, 0.5, 1), hard_fail=True)
    whole = qnn.quantize(relay.add(channels, channels), relay.const(CHANNEL_SCALES), relay.const(0), out_dtype="int8", axis=1)
    with pytest.raises(RelayError, match="add: expected one scale and zero point of the result, found several"):
        converted(whole, hard_fail=True)


def test_biases_that_are_quantized():
    """Of another scale and zero point than the product, and of its own."""
    arrays = {"x": drawn((3, 70)), "w": drawn((5, 70), seed=1), "b": drawn((5,), "int8", seed=2) * np.int32(64)}
    arrays["c"] = arrays["b"]
    (data, real_x), (weight, real_w) = real("x", arrays["x"], 0.5, 7), real("w", arrays["w"], 0.25, 3)
    biases = [real("b", arrays["b"], 0.25, 1), real("c", arrays["c"], 0.125, 0)]
    sums = [quantized(relay.nn.bias_add(relay.nn.dense(data, weight), bias), 256.0, 4) for bias, _ in biases]
    _, found = converted(relay.Tuple(sums), hard_fail=True)
    assert operators(found).count("qnn.requantize") == 3  # of the first bias and of both sums
    for result, (_, numbers) in zip(run(found, arrays), biases, strict=True):
        np.testing.assert_array_equal(result, integers(real_x @ real_w.T + numbers, 256.0, 4))


def test_products_whose_scale_the_program_computes():
    x, w = drawn((3, 70)), drawn((5, 70), seed=1)
    data = qnn.dequantize(relay.var("x", shape=x.shape, dtype="int8"), relay.var("s", "float32"), relay.const(7))
    weight, real_w = real("w", w, 0.25, 3)
    _, found = converted(quantized(relay.nn.dense(data, weight), 256.0, 4), hard_fail=True)
    assert "qnn.dense" in operators(found)
    for scale in (0.5, 2.0):
        expected = integers((x.astype(np.float64) - 7) * scale @ real_w.T, 256.0, 4)
        np.testing.assert_array_equal(run(found, {"x": x, "w": w, "s": np.float32(scale)}), expected)


def test_rules_of_programs():
    def negative(call, types):
        found = types[call.args[0]]
        return relay.subtract(relay.cast(relay.const(-2), found.dtype), call.args[0]), found  # the zero point is -1

    relay.op.get("negative").set_attr(KEY, negative)
    try:
        data, numbers = real("x", drawn((3, 4)) // 2, 0.5, -1)
        _, found = converted(quantized(relay.negative(data), 0.5, -1), hard_fail=True)
    finally:
        relay.op.get("negative").reset_attr(KEY)
    assert operators(found) == ["cast", "subtract"]
    np.testing.assert_array_equal(run(found, {"x": drawn((3, 4)) // 2}), integers(-numbers, 0.5, -1))


def test_optional_operators_are_named():
    x = drawn((4, 9))
    data, numbers = real("x", x, 0.05, 0)
    y = quantized(relay.nn.softmax(data, axis=1), 1 / 256, -128)
    assert "nn.softmax" in operators(converted(y)[1])
    _, found = converted(y, hard_fail=True, optional_qnn_ops=["nn.softmax"])
    assert operators(found) == ["qnn.softmax"]
    exponents = np.exp(numbers)
    assert np.abs(run(found, {"x": x}).astype(int) - integers(exponents / exponents.sum(1, keepdims=True), 1 / 256, -128)).max() <= 1


def test_operators_one_by_one_where_no_quantize_follows():
    x, w = drawn((2, 4, 3)), drawn((2, 5, 3), seed=1)
    data, weight = real("x", x, 0.5, 2)[0], real("w", w, 0.25, 0)[0]
    y = relay.erf(relay.add(relay.nn.batch_matmul(relay.clip(data, -4.0, 30.0), weight), relay.const(1.0)))
    assert "qnn.batch_matmul" not in operators(converted(y)[1])
    mod, found = converted(y, use_qat=True, hard_fail=True)
    assert operators(found) == ["clip", "qnn.batch_matmul", "qnn.dequantize", "add", "erf"]
    both = [run(each, {"x": x, "w": w}) for each in (mod, found)]
    np.testing.assert_array_equal(*both)  # sums are exact in floats, too
    sums = relay.add(data, relay.const(1.0))  # the scale of a sum does not follow from the operands
    mod, found = converted(relay.nn.batch_matmul(sums, weight), use_qat=True)
    relay.assert_structural_equal(mod, found)
    halves = relay.split(data, 2, axis=1)[0]
    mod, found = converted(halves, use_qat=True)
    relay.assert_structural_equal(mod, found)
    with pytest.raises(RelayError, match="expected an operator with one result, found one with several"):
        converted(halves, use_qat=True, hard_fail=True)


@pytest.mark.parametrize(("operator", "exact"), [(relay.add, np.add), (relay.maximum, np.maximum)])
def test_results_of_another_type_are_requantized(operator, exact):
    """The operator gives numbers as its first operand is."""
    x, y = drawn((3, 4)) // 4, drawn((3, 4), seed=1) // 4
    (a, left), (b, right) = real("x", x, 0.25, 2), real("y", y, 0.5, -1)
    _, found = converted(quantized(operator(a, b), 0.5, 100, "uint8"), hard_fail=True)
    assert operators(found)[-1] == "qnn.requantize" and "qnn.dequantize" not in operators(found)
    expected = integers(exact(left, right), 0.5, 100, "uint8").astype(int)
    assert np.abs(run(found, {"x": x, "y": y}).astype(int) - expected).max() <= 1
