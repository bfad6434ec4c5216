"""Operators on quantized tensors against numpy: integers are exact, and differ by one step at most where real numbers are rounded twice."""

import math

import numpy as np
import pytest

from relayc import relay
from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.op.composed.qnn import _limits

qnn = relay.qnn.op


def scalars(scale, zero):
    return relay.const(scale, "float32"), relay.const(zero, "int32")


def drawn(shape, dtype, seed=0):
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def run(expr, **arrays):
    variables = {v.name_hint: v for v in relay.free_vars(expr)}
    function = relay.Function([variables[name] for name in arrays], expr)
    return relay.create_executor("graph").evaluate(function)(*arrays.values()).numpy()


def var_of(name, array):
    return relay.var(name, shape=array.shape, dtype=array.dtype.name)


def saturated(x, dtype):
    limits = np.iinfo(dtype)
    return np.clip(x, limits.min, limits.max).astype(dtype)


@pytest.mark.parametrize("compute", ["int64", "float32"])
@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
def test_requantize_rounds_halves(rounding, compute):
    x = np.arange(-40, 40, dtype=np.int32)
    way = {"axis": 0, "rounding": rounding, "compute_dtype": compute}
    y = qnn.requantize(var_of("x", x), *scalars(1.5, 3), *scalars(6.0, -7), out_dtype="int8", **way)
    quarters = (x - 3) / 4  # exact, with many halves
    up = np.floor(quarters + 0.5)
    expected = up if rounding == "UPWARD" else np.where(quarters >= 0, up, np.ceil(quarters - 0.5))
    np.testing.assert_array_equal(run(y, x=x), saturated(expected - 7, "int8"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quantize_rounds_halves_away_from_zero(dtype):
    just_less = np.nextafter(np.array(0.5, dtype), np.array(0, dtype))
    x = np.array([0.5, -0.5, 1.5, 2.5, -2.5, just_less, -just_less, 0, 100.5, 8388607.5 if dtype == "float64" else 4194303.5], dtype)
    y = qnn.quantize(relay.var("x", shape=x.shape, dtype=dtype), *scalars(1.0, 2), out_dtype="int32")
    np.testing.assert_array_equal(run(y, x=x), np.copysign(np.floor(np.abs(x.astype(np.longdouble)) + 0.5), x).astype(np.int32) + 2)


def test_requantize_by_channel_and_saturation():
    x = np.random.default_rng(1).integers(-(1 << 20), 1 << 20, (2, 3, 5)).astype(np.int32)
    scales = np.array([0.0173, 3.0, 0.00021], np.float32)
    y = qnn.requantize(var_of("x", x), relay.const(scales), relay.const(0), *scalars(7.3, 11), axis=1, out_dtype="uint8")
    exact = x * (scales.astype(np.float64) / np.float32(7.3))[None, :, None]
    assert np.abs(exact - np.floor(exact) - 0.5).min() > 1e-6  # no value is near a half, so that rounding is not in question
    np.testing.assert_array_equal(run(y, x=x), saturated(np.floor(exact + 0.5) + 11, "uint8"))


def test_requantize_config_says_how_to_round_what_says_nothing():
    x = np.array([-2, -6, 2], np.int32)
    y = qnn.requantize(var_of("x", x), *scalars(1.0, 0), *scalars(4.0, 0), axis=0)
    np.testing.assert_array_equal(run(y, x=x), [0, -1, 1])
    with relay.qnn.requantize_config(rounding="TONEAREST"):
        np.testing.assert_array_equal(run(y, x=x), [-1, -2, 1])
        scale = np.array(1, np.float32)  # known to the call alone
        y = qnn.requantize(var_of("x", x), var_of("s", scale), relay.const(0), *scalars(4.0, 0), axis=0)
        np.testing.assert_array_equal(run(y, x=x, s=scale), [-1, -2, 1])
    with pytest.raises(RelayError, match="rounding: expected one of UPWARD, TONEAREST, found DOWN"), relay.qnn.requantize_config("DOWN"):
        pass


def test_convolution_pads_with_the_zero_point():
    x, w = drawn((1, 4, 6, 5), "uint8"), drawn((4, 2, 3, 3), "int8", 1)
    zero, kernel_zeros = 131, np.array([3, -5, 0, 7], np.int32)
    call = qnn.conv2d(
        *(var_of("x", x), var_of("w", w), relay.const(zero), relay.const(kernel_zeros), relay.const(0.5), relay.const(0.25)),
        **{"kernel_size": (3, 3), "channels": 4, "padding": (1, 1), "groups": 2, "strides": (2, 1)},
    )
    padded = np.pad(x.astype(np.int64) - zero, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2]
    weight = w.astype(np.int64) - kernel_zeros[:, None, None, None]
    groups = [np.einsum("nchwij,ocij->nohw", windows[:, 2 * g : 2 * g + 2], weight[2 * g : 2 * g + 2]) for g in range(2)]
    np.testing.assert_array_equal(run(call, x=x, w=w), np.concatenate(groups, 1))


def test_products_of_matrices():
    x, w = drawn((3, 7), "int8"), drawn((5, 7), "int8", 1)
    zeros = relay.const(4), relay.const(-9)
    dense = qnn.dense(var_of("x", x), var_of("w", w), *zeros, relay.const(1.0), relay.const(1.0), units=5)
    expected = (x.astype(np.int32) - 4) @ (w.astype(np.int32) + 9).T
    np.testing.assert_array_equal(run(dense, x=x, w=w), expected)
    batch = qnn.batch_matmul(var_of("x", x[None]), var_of("w", w[None]), *zeros, relay.const(1.0), relay.const(1.0))
    np.testing.assert_array_equal(run(batch, x=x[None], w=w[None]), expected[None])


def test_products_of_wide_integers():
    x, w = np.int64([[2**33 + 1, 2]]), np.int64([[1, 3]])
    constants = *(relay.const(v) for v in (3, -2)), *(relay.const(1.0),) * 2
    dense = qnn.dense(var_of("x", x), var_of("w", w), *constants, units=1, out_dtype="int64")
    np.testing.assert_array_equal(run(dense, x=x, w=w), (x - 3) @ (w + 2).T)


@pytest.mark.parametrize(("name", "exact"), [("add", np.add), ("subtract", np.subtract), ("mul", np.multiply)])
def test_binary_operators(name, exact):
    a, b = drawn((4, 9), "uint8"), drawn((9,), "uint8", 1)
    sides = [scalars(0.043, 117), scalars(0.021, 90), scalars(0.11, 101)]
    y = getattr(qnn, name)(var_of("a", a), var_of("b", b), *(part for side in sides for part in side))
    real = exact((a - 117.0) * 0.043, (b - 90.0) * 0.021)
    expected = saturated(np.round(real / 0.11) + 101, "uint8").astype(int)
    assert np.abs(run(y, a=a, b=b).astype(int) - expected).max() <= 1


def test_tuples_of_scales():
    a, b = drawn((2, 3), "uint8"), drawn((2, 4), "uint8", 1)
    y = qnn.concatenate(
        relay.Tuple([var_of("a", a), var_of("b", b)]),
        *(relay.Tuple([relay.const(v) for v in pair]) for pair in ((0.5, 0.25), (3, 120))),
        *(*scalars(0.25, 7), 1),
    )
    expected = np.concatenate([(a.astype(int) - 3) * 2 + 7, b.astype(int) - 120 + 7], 1)
    np.testing.assert_array_equal(run(y, a=a, b=b), saturated(expected, "uint8"))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_unary_operators_are_tables(dtype):
    x = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)
    real = (x.astype(np.float64) - 20) * 0.031
    functions = {
        "tanh": np.tanh,
        "exp": np.exp,
        "erf": np.vectorize(math.erf),
        "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
        "hardswish": lambda v: v * np.clip(v + 3, 0, 6) / 6,
        "abs": np.abs,
    }
    variable = var_of("x", x)
    calls = [getattr(qnn, name)(variable, *scalars(0.031, 20), *scalars(0.017, 5)) for name in functions]
    found = relay.create_executor("graph").evaluate(relay.Function([variable], relay.Tuple(calls)))(x)
    for (name, function), part in zip(functions.items(), found, strict=True):
        expected = saturated(np.round(function(real) / 0.017) + 5, dtype)
        assert np.abs(part.numpy().astype(int) - expected).max() <= 1, name
        assert (part.numpy() == expected).mean() > 0.98, name


def test_activations_and_means():
    x = drawn((1, 4, 4, 2), "uint8")
    real = (x.astype(np.float64) - 120) * 0.05
    variable = var_of("x", x)
    made = [
        qnn.leaky_relu(variable, 0.3, *scalars(0.05, 120), *scalars(0.04, 60)),
        qnn.softmax(variable, *scalars(0.05, 120), *scalars(1 / 256, 0)),
        qnn.avg_pool2d(variable, *scalars(0.05, 120), *scalars(0.04, 100), (2, 2), (2, 2), (0, 0), (1, 1)),
    ]
    means = real.reshape(1, 2, 2, 2, 2, 2).mean((2, 4))
    exponents = np.exp(real)
    expected = [np.where(real > 0, real, 0.3 * real) / 0.04 + 60, 256 * exponents / exponents.sum(-1, keepdims=True), means / 0.04 + 100]
    found = relay.create_executor("graph").evaluate(relay.Function([variable], relay.Tuple(made)))(x)
    for part, right in zip(found, expected, strict=True):
        assert np.abs(part.numpy().astype(int) - saturated(np.round(right), "uint8")).max() <= 1


def test_simulated_operators_take_the_type_as_a_number():
    x = np.array([-300.0, -1.2, 0.4, 77.0, 300.0], np.float32)
    code = relay.var("code", shape=(), dtype="int32")
    y = qnn.simulated_quantize(relay.var("x", shape=(5,)), *scalars(1.0, 10), out_dtype=code)
    back = qnn.simulated_dequantize(y, *scalars(1.0, 10), in_dtype=code)
    limited = {0: (-np.inf, np.inf), 1: (-128, 127), 2: (0, 255), 3: (-(2**31), 2**31)}
    for number, (low, high) in limited.items():
        expected = x if number == 0 else np.clip(np.round(x) + 10, low, high)
        np.testing.assert_array_equal(run(y, x=x, code=np.int32(number)), expected)
        np.testing.assert_array_equal(run(back, x=x, code=np.int32(number)), expected if number == 0 else expected - 10)


def test_weights_of_products_in_blocks():
    x, w = drawn((3, 8), "uint8"), drawn((6, 8), "int8", seed=1)
    blocks = np.ascontiguousarray(w.reshape(3, 2, 2, 4).transpose(0, 2, 1, 3))  # NC2n4c
    y = qnn.contrib_dense_pack(
        var_of("x", x), var_of("w", blocks), relay.const(100), relay.const(-3), *(relay.const(0.1),) * 2, "NC2n4c", 6
    )
    np.testing.assert_array_equal(run(y, x=x, w=blocks), (x.astype(np.int64) - 100) @ (w.astype(np.int64) + 3).T)


def test_simulated_quantize_of_annotations():
    """The halves are those of a scale that is a power of 2."""
    x = np.random.default_rng(2).uniform(-3, 3, (4, 5)).astype(np.float32)
    x[0] = np.array([0.5, 1.5, -2.5, 200, -200]) / 16
    scale, low, high = (relay.const(v, "float32") for v in (1 / 16, -20.0, 19.0))

    def quantized(**attrs):
        return relay.op.call("relay.op.annotation.simulated_quantize", var_of("x", x), scale, low, high, **attrs)

    steps = np.clip(x * 16, -20, 19)
    np.testing.assert_array_equal(run(quantized(kind=1), x=x), np.round(steps) / 16)
    np.testing.assert_array_equal(run(quantized(kind=0), x=x), x)
    assert relay.transform.InferTypeLocal(quantized(kind=3)) == relay.TensorType((4, 5))
    for attrs, message in [
        ({"kind": 2, "rounding": "floor"}, "rounding: expected round, found floor"),
        ({"kind": 4}, "kind: expected 0 to 3, found 4"),
        ({"kind": -1}, "kind: expected 0 to 3, found -1"),
        ({"kind": 1, "sign": False}, "sign: expected numbers with a sign, found False"),
    ]:
        with pytest.raises(RelayError, match=message):
            relay.transform.InferTypeLocal(quantized(**attrs))


def test_canonicalized_programs_have_no_operator_of_quantized_tensors():
    x, w = drawn((3, 7), "uint8"), drawn((5, 7), "int8", 1)
    dense = qnn.dense(var_of("x", x), var_of("w", w), *(relay.const(v) for v in (4, 0, 0.5, 0.25)), units=5)
    y = qnn.requantize(dense, *scalars(0.125, 0), *scalars(60.0, 3), out_dtype="uint8")
    mod = relay.IRModule.from_expr(y)
    found = relay.qnn.transform.CanonicalizeOps()(mod)
    assert "qnn." in mod.astext()
    assert "qnn." not in found.astext()
    assert relay.parse(found.astext())["main"].ret_type == relay.TensorType((3, 5), "uint8")
    both = [relay.create_executor("graph", m).evaluate()(x, w).numpy() for m in (relay.transform.InferType()(mod), found)]
    np.testing.assert_array_equal(*both)


def test_legalize_replaces_calls():
    def twice(attrs, inputs, types):
        assert types[-1] == relay.TensorType((3,), "float32")
        return relay.multiply(inputs[0], relay.const(2.0)) if types[0].dtype == "float32" else None

    x = relay.var("x", shape=(3,))
    relay.op.get("exp").set_attr("FTVMLegalize", twice)
    try:
        found = relay.transform.Legalize()(relay.IRModule.from_expr(relay.exp(x)))["main"].body
    finally:
        relay.op.get("exp").reset_attr("FTVMLegalize")
    assert found.op.name == "multiply"


def test_operands_that_are_not_of_the_operator_are_refused():
    real, whole = relay.var("r", shape=(2, 3)), relay.var("i", shape=(2, 3), dtype="int64")
    scale, zero = scalars(0.5, 1)
    for call, message in (
        (qnn.quantize(whole, scale, zero), "data: expected a floating-point element type"),
        (qnn.dense(real, real, zero, zero, scale, scale, units=2), "data: expected integers, found float32"),
        (
            relay.reverse_sequence(real, relay.const([1, 2, 3], "int32"), 1, -1),
            "seq_axis: expected another axis than batch_axis, -1, found 1",
        ),
    ):
        with pytest.raises(RelayError, match=message):
            relay.transform.InferType()(relay.IRModule.from_expr(call))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32"])
def test_limits_are_numbers_of_both_types(dtype):
    """The largest int32 is no float32: the one below it is."""
    low, high = _limits(dtype, "float32")
    limits = np.iinfo(dtype)
    assert low == limits.min and int(np.float32(high)) == high <= limits.max < float(np.nextafter(np.float32(high), np.float32(np.inf)))
