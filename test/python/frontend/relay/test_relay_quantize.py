"""relay.quantize against numpy: which calls compute in integers, and how far results are from those of the floats."""

import numpy as np
import pytest

from relayc import relay
from relayc.dialects.relay.errors import RelayError
from relayc.relay.quantize import NotIntegral, _Places, _ranges

RNG = np.random.default_rng(3)
W1 = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32) / 4
W2 = RNG.standard_normal((5, 4, 1, 1)).astype(np.float32) / 2
BIAS = RNG.standard_normal(4).astype(np.float32)
X = RNG.standard_normal((2, 3, 6, 5)).astype(np.float32)
UNSIGNED = ("uint8", "int32")
"""Element types of products of matrices: the first operand is moved by 128, as processors multiply unsigned bytes by signed ones."""


def network():
    """Two convolutions, with a bias and a rectifier between them."""
    x = relay.var("x", shape=X.shape)
    y = relay.nn.conv2d(x, relay.const(W1), kernel_size=(3, 3), channels=4, padding=(1, 1))
    y = relay.nn.relu(relay.nn.bias_add(y, relay.const(BIAS)))
    return relay.nn.conv2d(y, relay.const(W2), kernel_size=(1, 1), channels=5)


def module(expr):
    return relay.transform.InferType()(relay.IRModule.from_expr(expr))


def quantized(expr, dataset=None, **settings):
    with relay.quantize.qconfig(**{"skip_conv_layers": None, **settings}):
        return relay.quantize.quantize(module(expr), dataset=dataset)


def dtypes(mod, name):
    """The element types of the first operand and of the result of the calls of an operator."""
    found = []

    def add(node):
        if isinstance(node, relay.Call) and getattr(node.op, "name", "") == name:
            found.append((node.args[0].checked_type.dtype, node.checked_type.dtype))

    for function in mod.functions.values():
        relay.analysis.post_order_visit(function, add)
    return found


def run(mod, *arrays):
    return relay.create_executor("vm", mod).evaluate()(*arrays).numpy()


def floats(x):
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), axis=(2, 3))
    y = np.maximum(np.einsum("nchwij,ocij->nohw", windows, W1) + BIAS[:, None, None], 0)
    return np.einsum("nchw,oc->nohw", y, W2[:, :, 0, 0])


def in_steps(x, scale):
    return np.clip(np.round(x / scale), -128, 127)


def test_scales_of_the_settings():
    """Weights have the next power of two as their range, activations `global_scale`: all rounding is that of numpy, but for halves."""
    found = quantized(network(), global_scale=4.0)
    assert dtypes(found, "nn.conv2d") == [("int8", "int32")] * 2
    data, scales = 4.0 / 128, [2.0 ** np.ceil(np.log2(np.abs(w).max())) / 128 for w in (W1, W2)]
    x, first, second = in_steps(X, data), in_steps(W1, scales[0]), in_steps(W2, scales[1])[:, :, 0, 0]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), axis=(2, 3))
    total = np.einsum("nchwij,ocij->nohw", windows, first) + np.round(BIAS / (data * scales[0]))[:, None, None]
    middle = np.clip(np.floor(np.maximum(total, 0) * scales[0] + 0.5), -128, 127)
    steps = np.clip(np.floor(np.einsum("nchw,oc->nohw", middle, second) * scales[1] + 0.5), -128, 127)
    np.testing.assert_array_equal(run(found, X), steps * data)


@pytest.mark.parametrize(("mode", "weight_scale", "chunk"), [("kl_divergence", "max", -1), ("percentile", "power2", 2)])
def test_ranges_of_samples(mode, weight_scale, chunk):
    settings = {"calibrate_mode": mode, "weight_scale": weight_scale, "calibrate_chunk_by": chunk}
    found = quantized(network(), [{"x": X}, {"x": X / 2}], **settings)
    exact = floats(X)
    error = run(found, X) - exact
    assert 10 * np.log10((exact**2).sum() / (error**2).sum()) > 34  # of 8 bits: 39.2 and 37.4 were found


def test_simulation_rounds_as_integers_do():
    found = [quantized(network(), global_scale=4.0, do_simulation=simulated) for simulated in (True, False)]
    assert dtypes(found[0], "nn.conv2d") == [("float32", "float32")] * 2
    results = [run(mod, X) for mod in found]
    assert np.abs(results[0] - results[1]).max() <= 2 * 4.0 / 128


def test_operators_that_stay_in_floats():
    """Calls that settings name, and all calls after a global mean."""
    pooled = relay.nn.global_avg_pool2d(network())
    last = relay.nn.conv2d(pooled, relay.const(np.ones((2, 5, 1, 1), np.float32)), kernel_size=(1, 1))
    x = relay.var("x", shape=(2, 12))
    dense = relay.nn.dense(x, relay.const(RNG.standard_normal((6, 12)).astype(np.float32)))
    y, floats, integers = relay.Tuple([dense, last]), ("float32", "float32"), ("int8", "int32")
    found = quantized(y)
    assert dtypes(found, "nn.conv2d") == [integers, integers, floats]
    assert dtypes(found, "nn.dense") == [floats]
    found = quantized(y, skip_dense_layer=False, skip_conv_layers=[1])
    assert dtypes(found, "nn.conv2d") == [integers, floats, integers]  # no mean of integers
    assert dtypes(found, "nn.dense") == [UNSIGNED]
    assert dtypes(quantized(network(), debug_enabled_ops=["nn.dense"]), "nn.conv2d") == [floats] * 2


def test_operators_between_products():
    """Movements are of int8; sums, products and concatenations of two activations have results on one scale."""
    x = relay.var("x", shape=X.shape)
    first, second = (relay.nn.conv2d(x, relay.const(w), kernel_size=(3, 3), padding=(1, 1)) for w in (W1, W1[::-1].copy()))
    pooled = relay.nn.max_pool2d(first, (2, 2), (2, 2))
    joined = relay.concatenate([relay.add(first, second), relay.multiply(first, relay.sigmoid(second)), first], axis=1)
    y = relay.Tuple([relay.nn.batch_flatten(joined), pooled])
    found = quantized(y, [{"x": X}], calibrate_mode="percentile")
    assert dtypes(found, "nn.batch_flatten") == dtypes(found, "nn.max_pool2d") == [("int8", "int8")]
    exact, results = (relay.create_executor("vm", m).evaluate()(X) for m in (module(y), found))
    for right, result in zip(exact, results, strict=True):
        right, result = right.numpy(), result.numpy()
        assert 10 * np.log10((right**2).sum() / ((right - result) ** 2).sum()) > 28
    data = relay.var("x", shape=(2, 5, 12))
    product = relay.nn.batch_matmul(relay.reshape(relay.nn.batch_matmul(data, data), (2, 5, 5)), relay.exp(relay.var("y", shape=(2, 7, 5))))
    assert dtypes(quantized(product), "nn.batch_matmul") == [UNSIGNED] * 2


def test_movements_of_activations_are_of_integers():
    x = relay.var("x", shape=X.shape)
    first = relay.nn.conv2d(x, relay.const(W1), kernel_size=(3, 3), padding=(1, 1))
    found = quantized(relay.nn.batch_flatten(relay.nn.max_pool2d(first, (2, 2), (2, 2))))
    assert dtypes(found, "nn.max_pool2d") == dtypes(found, "nn.batch_flatten") == [("int8", "int8")]


def test_conversions_apart():
    x, y = relay.var("x", shape=X.shape), relay.var("y", shape=X.shape)
    w = relay.const(W1)
    both = [relay.nn.conv2d(v, w, kernel_size=(3, 3), padding=(1, 1)) for v in (x, y)]
    whole, apart = (quantized(relay.add(*both), partition_conversions=how) for how in ("disabled", "fully_integral"))
    names = {var.name_hint for var in apart.functions}
    assert names == {"main", "quantize_inputs", "quantized_main", "dequantize_outputs"}
    assert [p.checked_type.dtype for p in apart["quantized_main"].params] == ["int8", "int8"]
    np.testing.assert_array_equal(run(whole, X, X[::-1].copy()), run(apart, X, X[::-1].copy()))
    # Results in floats, and of integers.
    whole, apart = (quantized(relay.Tuple([relay.cos(both[0]), both[1]]), partition_conversions=how) for how in ("disabled", "enabled"))
    for a, b in zip(*(relay.create_executor("vm", mod).evaluate()(X, X[::-1].copy()) for mod in (whole, apart)), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    cosine = relay.nn.conv2d(relay.cos(both[0]), relay.const(W2), kernel_size=(1, 1))
    with pytest.raises(NotIntegral, match="expected integers in quantized_main, found"):
        quantized(cosine, partition_conversions="fully_integral")


@pytest.mark.parametrize(("chunk", "expected"), [(-1, [3]), (0, [3]), (1, [1, 1, 1]), (2, [2, 1]), (3, [3]), (4, [3])])
def test_how_many_ranges_are_found_at_once(chunk, expected, monkeypatch):
    """The largest value of the n-th activation of the m-th sample is n + m."""
    sizes, numbers, main = [], {}, module(network())["main"]

    class Executor:
        def evaluate(self, function):
            parts = function.body.fields
            sizes.append(len(parts))
            first = [numbers.setdefault(part, len(numbers) + 1) for part in parts]
            return lambda sample: [relay.const(np.array([0.5, -n - sample[0, 0, 0, 0]], "float32")).data for n in first]

    monkeypatch.setattr(relay.quantize, "create_executor", lambda _: Executor())
    config = relay.quantize.qconfig(calibrate_mode="percentile", calibrate_chunk_by=chunk, skip_conv_layers=None, weight_scale="max")
    found = _ranges(main, _Places(main, config), config, [{"x": np.full(X.shape, n)} for n in (2, 1)])
    assert sizes == expected
    largest = [float(np.abs(w).max()) for w in (W1, W2)]
    np.testing.assert_allclose(sorted(found.values()), sorted([*largest, 3, 4, 5]), rtol=0.02)


def conv(x, weight=W1):
    return relay.nn.conv2d(x, relay.const(weight), kernel_size=weight.shape[2:], padding=(1, 1))


def pool(x):
    return relay.nn.max_pool2d(x, (2, 2))


OF_CONV = {"nn.conv2d": ["x", "const"]}
PLACES = {
    "a convolution": (conv, {**OF_CONV, "result": ["nn.conv2d"]}),
    "a limit of a sum": (lambda x: relay.nn.relu(conv(x)), {**OF_CONV, "result": ["nn.relu"]}),
    "a limit of floats": (lambda x: relay.clip(x, 0, 1), {}),
    "a movement of a sum": (lambda x: pool(conv(x)), {**OF_CONV, "nn.max_pool2d": ["nn.conv2d"]}),
    "a movement of floats": (pool, {}),
    "a limit of a moved sum": (lambda x: relay.clip(pool(conv(x)), 0, 1), {**OF_CONV, "nn.max_pool2d": ["nn.conv2d"]}),
    "a bias": (lambda x: relay.add(conv(x), relay.const(BIAS[:, None, None])), {**OF_CONV, "result": ["add"]}),
    "a bias by name": (lambda x: relay.nn.bias_add(conv(x), relay.const(BIAS)), {**OF_CONV, "result": ["nn.bias_add"]}),
    "a bias of a moved sum": (lambda x: relay.nn.bias_add(pool(conv(x)), relay.const(BIAS)), {**OF_CONV, "nn.max_pool2d": ["nn.conv2d"]}),
    "a sum with floats": (lambda x: relay.add(conv(x), relay.exp(x)), {**OF_CONV, "add": ["nn.conv2d", "exp"], "result": ["add"]}),
    "a sum with a moved sum": (
        lambda x: relay.add(pool(conv(x)), relay.const(BIAS[:, None, None])),
        {**OF_CONV, "nn.max_pool2d": ["nn.conv2d"], "add": ["const"], "result": ["add"]},
    ),
    "a factor": (
        lambda x: relay.multiply(conv(x), relay.const(BIAS[:, None, None])),
        {**OF_CONV, "multiply": ["nn.conv2d", "const"], "result": ["multiply"]},
    ),
    "a sum of floats": (lambda x: relay.add(x, relay.const(1.0)), {}),
    "parts": (
        lambda x: (lambda y: relay.concatenate([pool(y), relay.nn.avg_pool2d(y, (2, 2)), relay.exp(pool(y))], 1))(conv(x)),
        {**OF_CONV, "nn.max_pool2d": ["nn.conv2d"], "nn.avg_pool2d": ["nn.conv2d"], "Tuple": ["exp"], "result": ["concatenate"]},
    ),
    "other operators": (lambda x: relay.exp(conv(x)), {**OF_CONV, "exp": ["nn.conv2d"]}),
    "a product in floats": (lambda x: relay.nn.dense(conv(x), relay.const(W2)), {**OF_CONV, "nn.dense": ["nn.conv2d"]}),
    "after a global mean": (
        lambda x: conv(relay.nn.global_avg_pool2d(conv(x)), W2),
        {**OF_CONV, "nn.global_avg_pool2d": ["nn.conv2d"]},
    ),
    "a global mean of floats": (
        lambda x: conv(relay.nn.global_avg_pool2d(x)),
        {"nn.conv2d": ["nn.global_avg_pool2d", "const"], "result": ["nn.conv2d"]},
    ),
    "products": (lambda x: relay.nn.batch_matmul(x, relay.exp(x)), {"nn.batch_matmul": ["x", "exp"], "result": ["nn.batch_matmul"]}),
    "products of moved sums": (
        lambda x: relay.nn.batch_matmul(pool(conv(x)), x),
        {**OF_CONV, "nn.max_pool2d": ["nn.conv2d"], "nn.batch_matmul": ["x"], "result": ["nn.batch_matmul"]},
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_what_is_quantized(name):
    """By calls, the operands that are: floats, and sums in 32 bits; results of movements are in 8 bits already."""
    make, expected = PLACES[name]
    x = relay.var("x", shape=X.shape)

    def named(node):
        if node is None or isinstance(node, relay.Constant):
            return "const" if node else "result"
        return node.op.name if isinstance(node, relay.Call) else getattr(node, "name_hint", type(node).__name__)

    with relay.quantize.qconfig(skip_conv_layers=None) as config:
        places = _Places(relay.Function([x], make(x)), config)
    found = {named(node): list(map(named, parts)) for node, parts in places.operands.items() if parts}
    assert found == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("calibrate_mode", "mse", "one of global_scale, kl_divergence, percentile"),
        ("weight_scale", "min", "one of power2, max"),
        ("rounding", "DOWN", "one of UPWARD, TONEAREST"),
        ("partition_conversions", "all", "one of disabled, enabled, fully_integral"),
        ("nbit_input", 4, "8"),
        ("nbit_weight", 4, "8"),
        ("nbit_activation", 16, "32"),
        ("dtype_input", "uint8", "int8"),
        ("dtype_weight", "uint8", "int8"),
        ("dtype_activation", "int16", "int32"),
        ("round_for_shift", False, "True"),
    ],
)
def test_settings_that_do_not_exist(name, value, expected):
    with pytest.raises(RelayError, match=f"{name}: expected {expected}, found {value}"):
        relay.quantize.qconfig(**{name: value})


def test_errors():
    with pytest.warns(UserWarning, match="found skip_conv_layer; did you mean skip_conv_layers"):
        relay.quantize.qconfig(skip_conv_layer=[0])
    with pytest.raises(RelayError, match="calibrate_mode percentile: expected a dataset"):
        quantized(network(), calibrate_mode="percentile")
    with pytest.raises(RelayError, match="sample: expected an array for x, found z"):
        quantized(network(), [{"z": X}], calibrate_mode="percentile")
    with pytest.raises(RelayError, match="quantize: sample 1: expected finite values in activation 0, found nan"):
        quantized(network(), [{"x": X}, {"x": np.full_like(X, np.nan)}], calibrate_mode="percentile")
    with relay.quantize.qconfig(global_scale=2.0):
        with relay.quantize.qconfig(global_scale=3.0):
            assert relay.quantize.current_qconfig().global_scale == 3
        assert relay.quantize.current_qconfig().global_scale == 2
    assert relay.quantize.current_qconfig().global_scale == 8


def test_weights_of_another_float_type():
    x = relay.var("x", shape=X.shape)
    y = relay.nn.conv2d(x, relay.const(W1.astype(np.float64)), kernel_size=(3, 3))
    expected = relay.nn.conv2d(x, relay.const(W1), kernel_size=(3, 3))
    assert module(y)["main"].ret_type == module(expected)["main"].ret_type
    np.testing.assert_allclose(run(module(y), X), run(module(expected), X), rtol=1e-6, atol=1e-6)
