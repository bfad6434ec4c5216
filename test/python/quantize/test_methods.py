"""What each method is for: ranges against outliers, SmoothQuant, bias correction, GPTQ, layers that stay in floats."""

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
import trained
from onnx import TensorProto, helper, numpy_helper
from onnx_models import model_of

import relayc
from relayc.calibration import BINS, METHODS, Histogram, Largest, NotFinite, Products, Steps, merged, observe, range_of, steps_of
from relayc.pipelines.context.target import Target
from relayc.tools.quantize import Settings, _seconds
from relayc.tools.quantize.graph import Graph
from relayc.tools.quantize.layers import bias_steps, decibels, find_layers, quantize_weights
from relayc.tools.quantize.smooth import _scales
from relayc.tools.quantize.twin import Deviation
from relayc.tools.quantize.weight_only import _gptq, _grid, _pack, quantize_blocks

RNG = np.random.default_rng(7)
X = RNG.standard_normal((6, 8, 32), np.float32)
W = RNG.standard_normal((32, 24), np.float32)
B = RNG.standard_normal(24, np.float32)


def product(x_nodes=(), data="x", bias=True, rows=8, **constants):
    """x [rows, 32] -> nodes -> MatMul by w [+ b]."""
    nodes = [*x_nodes, helper.make_node("MatMul", [data, "w"], ["p" if bias else "y"], name="product")]
    nodes += [helper.make_node("Add", ["p", "b"], ["y"], name="bias")] if bias else []
    return model_of(nodes, {"x": [rows, 32]}, initializers={"w": W, "b": B, **constants}, ir_version=9)


def samples(x=X):
    return [{"x": one} for one in x]


def error(model, found, x):
    """Root mean square of what is lost on inputs."""
    a, b = (relayc.compile(m)["main"] for m in (model, found.model))
    return float(np.sqrt(np.mean([(np.asarray(a(one)) - np.asarray(b(one))) ** 2 for one in x])))


# ---- ranges ---------------------------------------------------------------------------------------------------------------------------


def histogram_of(*arrays):
    found = Histogram()
    for array in arrays:
        found.add(np.asarray(array, np.float32))
    return found


def test_a_histogram_grows_with_its_values_and_loses_none():
    parts = [RNG.standard_normal(1000), 5 * RNG.standard_normal(1000), np.zeros(10), [-90.0]]
    found = histogram_of(*parts)
    values = np.concatenate(parts).astype(np.float32)
    assert (found.total, found.zeros, found.counts.sum()) == (2011, 10, 2001)
    assert (found.low, found.high) == (values.min(), values.max())
    width = 2 * found.reach / BINS
    expected, _ = np.histogram(values[values != 0], BINS, (-found.reach, found.reach))
    assert np.abs(np.cumsum(found.counts) - np.cumsum(expected)).max() <= 2, "values on the edge of a bin"
    assert np.average(found.centres(), weights=found.counts) == pytest.approx(values[values != 0].mean(), abs=width)


def test_the_order_of_samples_does_not_matter_to_the_range():
    parts = [RNG.standard_normal(500), 30 * RNG.standard_normal(500)]
    for method in METHODS:
        a, b = (range_of(histogram_of(*order), method, 99) for order in (parts, parts[::-1]))
        np.testing.assert_allclose(a, b, rtol=0.05)


def test_a_percentile_cuts_both_ends():
    values = np.linspace(-1, 3, 100_001)
    low, high = range_of(histogram_of(values), "percentile", 99)
    np.testing.assert_allclose([low, high], [-0.96, 2.96], atol=2e-3)
    assert range_of(histogram_of(np.abs(values)), "percentile", 99)[0] == 0


def quantised_error(values, low, high):
    steps = steps_of(low, high, "uint8")
    numbers = np.clip(np.rint(values / steps.scale) + steps.zero, 0, 255)
    return np.mean(((numbers - steps.zero) * steps.scale - values) ** 2)


def test_the_least_squared_error_is_as_good_as_any_range():
    values = np.concatenate([RNG.laplace(size=50_000), [40.0]]).astype(np.float32)
    found = quantised_error(values, *range_of(histogram_of(values), "mse"))
    tried = [quantised_error(values, values.min() * a, 40 * b) for a in np.linspace(0.1, 1, 30) for b in np.linspace(0.1, 1, 30)]
    assert found <= 1.05 * min(tried)


def test_steps_hold_zero_exactly():
    steps = steps_of(-1.0, 2.0, "uint8")
    assert (steps.zero, float(steps.scale)) == (85, pytest.approx(3 / 255))
    assert steps_of(0.0, 0.0, "uint8").scale == 1
    assert steps_of(-4.0, 2.0, "int8") == steps_of(-2.0, 4.0, "int8")


@pytest.mark.parametrize("method,limit", [("percentile", 0.1), ("entropy", 0.1), ("mse", 0.6)])
def test_one_outlier_does_not_cost_the_others_their_steps(method, limit):
    """Squares weigh the outlier: the range with the least squared error is between it and the others."""
    x = RNG.standard_normal((8, 4096, 32), np.float32)
    x[0, 0, 0] = 300
    model = product(rows=4096)
    of_all = relayc.quantize(model, samples(x), method="minmax")
    clipped = relayc.quantize(model, samples(x), method=method, percentile=99.99)
    assert error(model, clipped, x[1:]) < limit * error(model, of_all, x[1:])


# ---- what is changed of the model -----------------------------------------------------------------------------------------------------


def normalised(gain, shift):
    """The nodes of a LayerNormalization of x, or of a multiplication and a sum, with their constants."""
    layer = [helper.make_node("LayerNormalization", ["x", "gain", "shift"], ["n"], name="norm")]
    plain = [helper.make_node("Mul", ["x", "gain"], ["m"]), helper.make_node("Add", ["m", "shift"], ["n"])]
    return {"layer": layer, "plain": plain}, {"gain": gain, "shift": shift}


@pytest.mark.parametrize("form", ["layer", "plain"])
def test_smoothing_lowers_the_error_of_outlier_channels(form):
    gain = np.where(np.arange(32) % 11 == 3, 60, 1).astype(np.float32)
    nodes, constants = normalised(gain, np.linspace(-1, 1, 32, dtype=np.float32))
    model = product(nodes[form], "n", **constants)
    rough, smooth = (relayc.quantize(model, samples(), method="minmax", smooth=alpha) for alpha in (None, 0.5))
    assert smooth.snr > rough.snr + 6
    assert error(model, smooth, X) < 0.5 * error(model, rough, X)


def test_what_others_read_is_not_smoothed():
    nodes, constants = normalised(np.full(32, 3, np.float32), np.zeros(32, np.float32))
    model = product(nodes["layer"], "n", **constants)
    model.graph.node.append(helper.make_node("Exp", ["n"], ["z"]))
    model.graph.output.add().name = "z"
    rough, smooth = (relayc.quantize(model, samples(), smooth=alpha) for alpha in (None, 0.5))
    assert rough.model == smooth.model


def test_bias_correction_takes_back_the_mean_error():
    x = np.abs(X) + 0.3  # the errors of the weights, which all are the data's mean times, do not vanish
    model = product()
    a = relayc.compile(model)["main"]
    means = []
    for correct in (False, True):
        b = relayc.compile(relayc.quantize(model, samples(x), correct_bias=correct).model)["main"]
        means.append(np.mean([np.asarray(b(one)) - np.asarray(a(one)) for one in x], (0, 1)))
    assert np.abs(means[1]).mean() < 0.2 * np.abs(means[0]).mean()


def test_an_outlier_moves_no_bias():
    """The mean error is corrected where it is sure: a value that is cut once moves the mean of all, and no other result."""
    x = X.copy()
    x[0, 0, 0] = 300
    model = product()
    found = [relayc.quantize(model, samples(x), method="percentile", percentile=99, correct_bias=correct) for correct in (False, True)]
    assert error(model, found[1], X[1:]) < 1.1 * error(model, found[0], X[1:])


@pytest.mark.parametrize("operator", ["Conv", "Gemm"])
def test_a_layer_without_a_bias_gets_one_for_the_correction(operator):
    w = np.abs(RNG.standard_normal((6, 3, 3, 3) if operator == "Conv" else (3, 6), np.float32))
    shape = [4, 3, 5, 5] if operator == "Conv" else [4, 3]
    model = model_of([helper.make_node(operator, ["x", "w"], ["y"])], {"x": shape}, initializers={"w": w}, ir_version=9)
    data = [{"x": RNG.uniform(0.2, 1, shape).astype(np.float32)} for _ in range(3)]
    found = relayc.quantize(model, data)
    assert len(found.model.graph.node) > len(relayc.quantize(model, data, correct_bias=False).model.graph.node)
    assert found.snr > 30


@pytest.mark.parametrize(
    "features,given,most", [(None, None, 63), ("+avxvnni", None, 127), (None, False, 127), ("+avxvnni", True, 63), ("-avx2", None, 127)]
)
def test_weights_have_seven_bits_where_their_products_are_faster(features, given, most):
    target = Target("cpu", mcpu="x86-64-v3", features=features)
    options = {"compile_options": {"target": target if target.is_host else Target(target, emulate=True)}}
    found = relayc.quantize(product(), samples(), reduce_range=given, **options)
    [weights] = [numpy_helper.to_array(t) for t in found.model.graph.initializer if t.data_type == TensorProto.INT8 and len(t.dims) == 2]
    assert np.abs(weights.astype(int)).max(0).tolist() == [most] * 24  # of each channel


def test_gptq_loses_less_than_rounding_to_the_nearest():
    mixed = X @ (RNG.standard_normal((32, 32)) * np.geomspace(1, 0.03, 32)[:, None]).astype(np.float32)
    model = product(bias=False)
    nearest, gptq = (relayc.quantize(model, samples(mixed), weight_only=4, gptq=way, block_size=16) for way in (False, True))
    assert gptq.layers[0].weights_db < nearest.layers[0].weights_db, "weights are farther, so that results are nearer"
    assert gptq.snr > nearest.snr + 3
    assert error(model, gptq, mixed) < 0.75 * error(model, nearest, mixed)


@pytest.mark.parametrize(("bits", "size"), [(4, 256), (4, 16), (8, 128)])
def test_gptq_moves_errors_as_column_after_column_does(bits, size):
    """The stretches in which errors are added up are 128 columns; blocks may be longer."""
    depth = 512
    weights, data = RNG.standard_normal((3, depth)), RNG.standard_normal((2 * depth, depth))
    data[:, 1:] += 0.7 * data[:, :-1]
    products = data.T @ data
    numbers, scales, zeros = _gptq(weights, products, bits, size)
    curvature = products + 0.01 * np.diag(products).mean() * np.eye(depth)
    inverse, left = np.linalg.cholesky(np.linalg.inv(curvature)).T, weights.copy()
    for i in range(depth):
        block = left[:, i - i % size : i - i % size + size]
        if i % size == 0:
            low, high = np.minimum(block.min(1), 0), np.maximum(block.max(1), 0)
            scale = (high - low) / (2**bits - 1)
            zero = np.rint(-low / scale)
            np.testing.assert_allclose([scales[:, i // size], zeros[:, i // size]], [scale, zero], rtol=1e-6)
        expected = np.clip(np.rint(left[:, i] / scale) + zero, 0, 2**bits - 1)
        np.testing.assert_array_equal(numbers[:, i], expected)
        left[:, i:] -= np.outer((left[:, i] - (expected - zero) * scale) / inverse[i, i], inverse[i, i:])


@pytest.mark.parametrize("bits,block", [(4, 16), (4, 32), (8, 64)])
def test_blocks_that_end_behind_the_last_input(bits, block):
    w = RNG.standard_normal((40, 24), np.float32)
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"])
    model = model_of([node], {"x": [8, 40]}, initializers={"w": w, "b": B}, ir_version=9)
    found = relayc.quantize(model, weight_only=bits, block_size=block)
    x = RNG.standard_normal((3, 8, 40), np.float32)
    assert found.score is None
    spread = np.std(x @ w)
    assert error(model, found, x) < (0.12 if bits == 4 else 0.01) * spread


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("products", [None, np.diag(np.arange(1.0, 21))])
def test_weights_in_blocks_are_near_to_what_they_stand_for(is_turned, products):
    w = RNG.standard_normal((20, 6), np.float32)
    node = helper.make_node("Gemm", ["x", "w"], ["y"], transB=int(is_turned))
    graph = Graph(model_of([node], {"x": [2, 20]}, initializers={"w": w.T.copy() if is_turned else w}))
    (layer,) = find_layers(graph)
    quantize_blocks(graph, layer, 8, 16, products)
    found = layer.weights.T if is_turned else layer.weights
    assert found.shape == w.shape
    for block in (slice(0, 16), slice(16, 20)):
        low, high = np.minimum(w[block].min(0), 0), np.maximum(w[block].max(0), 0)
        assert np.all(np.abs(found[block] - w[block]) <= 0.501 * (high - low) / 255)


# ---- layers in floats -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_layers():
    """x * gain -> MatMul "rough", of channels that min-max cannot hold -> Tanh -> MatMul "fine"."""
    nodes = [
        helper.make_node("Mul", ["x", "gain"], ["n"]),
        helper.make_node("MatMul", ["n", "w"], ["p"], name="rough"),
        helper.make_node("Tanh", ["p"], ["t"]),
        helper.make_node("MatMul", ["t", "v"], ["y"], name="fine"),
    ]
    gain = np.where(np.arange(32) == 3, 400, 1).astype(np.float32)
    w = np.where(np.arange(32)[:, None] == 3, 0.001, W / 8).astype(np.float32)
    return model_of(nodes, {"x": [8, 32]}, initializers={"gain": gain, "w": w, "v": W[:24, :8].copy()}, ir_version=9)


def test_the_most_sensitive_layer_stays_in_floats(two_layers):
    free = relayc.quantize(two_layers, samples(), method="minmax")
    assert free.score.drop > 0.05
    found = relayc.quantize(two_layers, samples(), method="minmax", max_drop=0.05)
    assert {layer.name: layer.form for layer in found.layers} == {"rough": "float", "fine": "int8"}
    rough, fine = found.layers
    assert rough.sensitivity > 0.05 > fine.sensitivity > 0
    assert rough.bytes_after == rough.bytes_before
    assert found.score.drop <= 0.05
    assert all(layer.form == "float" for layer in relayc.quantize(two_layers, samples(), method="minmax", max_drop=0).layers)


def test_a_metric_says_what_may_be_lost(two_layers):
    def metric(outputs, sample):
        return -100 * np.abs(outputs["y"] - sample["right"]).mean()

    reference = relayc.compile(two_layers)["main"]
    data = [{"x": one, "right": np.asarray(reference(one))} for one in X]
    free = relayc.quantize(two_layers, data, method="minmax", metric=metric)
    floats, quantised = free.metric
    assert abs(floats) < 0.01 and quantised < -5
    found = relayc.quantize(two_layers, data, method="minmax", metric=metric, max_drop=-quantised / 2)
    assert [layer.form for layer in found.layers] == ["float", "int8"]
    assert found.metric[1] >= quantised / 2


def test_layers_by_name_and_operator_stay_in_floats(two_layers):
    assert [layer.form for layer in relayc.quantize(two_layers, samples(), keep=["rou*"]).layers] == ["float", "int8"]
    with pytest.raises(ValueError, match="found none"):
        relayc.quantize(two_layers, samples(), keep=["MatMul"])
    with pytest.raises(ValueError, match=r"keep: expected the name or operator of a layer \(rough, fine\), found 'Conv'"):
        relayc.quantize(two_layers, samples(), keep=["Conv"])


def test_the_sensitivity_is_that_of_the_layer_alone(two_layers):
    found = relayc.quantize(two_layers, samples(), max_drop=1.0)
    for layer, other in zip(found.layers, found.layers[::-1], strict=True):
        alone = relayc.quantize(two_layers, samples(), keep=[other.name])
        assert layer.sensitivity == pytest.approx(alone.score.deviation.share, rel=0.02)


# ---- the report -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [63, 127])
def test_ratios_in_the_report_are_those_of_the_layer(most):
    model = product()
    layer = relayc.quantize(model, samples(), correct_bias=False, reduce_range=most == 63).layers[0]
    scales = np.abs(W).max(0) / most
    rounded = np.rint(W / scales) * scales
    assert layer.weights_db == pytest.approx(decibels((W**2).sum(), ((W - rounded) ** 2).sum()), abs=0.05)
    alone = relayc.quantize(model, samples(), correct_bias=False, reduce_range=most == 63)
    difference = error(model, alone, X)
    assert layer.output_db == pytest.approx(20 * np.log10(np.sqrt(np.mean((X @ W) ** 2)) / difference), abs=0.1)
    assert (layer.bytes_before, layer.bytes_after) == (32 * 24 * 4 + 96, 32 * 24 + 96 + 96)


def test_what_a_factor_of_channels_can_be_moved_into():
    gain, other = np.ones(4, np.float32), np.ones((4, 1), np.float32)
    for nodes, expected in [
        ([("LayerNormalization", ["x", "gain", "gain"], "n", {})], [1, 2]),
        ([("LayerNormalization", ["x", "gain"], "n", {"axis": 0})], None),
        ([("LayerNormalization", ["x", "other"], "n", {})], None),
        ([("Mul", ["x", "gain"], "n", {})], [1]),
        ([("Mul", ["gain", "x"], "n", {})], [0]),
        ([("Mul", ["x", "other"], "n", {})], None),
        ([("Mul", ["x", "x"], "n", {})], None),
        ([("Mul", ["x", "gain"], "m", {}), ("Add", ["gain", "m"], "n", {})], [0, 1]),
        ([("Mul", ["x", "gain"], "m", {}), ("Add", ["m", "other"], "n", {})], None),
        ([("Exp", ["x"], "m", {}), ("Add", ["m", "gain"], "n", {})], None),
        ([("Add", ["x", "x"], "n", {})], None),
        ([("Exp", ["x"], "n", {})], None),
        ([("Exp", ["x"], "m", {})], None),
    ]:
        made = [helper.make_node(kind, names, [result], **more) for kind, names, result, more in nodes]
        graph = Graph(model_of(made, {"x": [2, 4]}, initializers={"gain": gain, "other": other}))
        found = _scales(graph, "n", 4)
        assert (found and [i for _, i in found]) == expected, nodes


def test_kernels_with_several_layers_share_their_time():
    rows = [SimpleNamespace(sources=("a", "relu", "b"), seconds=3.0), SimpleNamespace(sources=("a",), seconds=0.25)]
    module = SimpleNamespace(profile=lambda inputs: SimpleNamespace(rows=rows))
    assert _seconds(module, {}, [SimpleNamespace(name=name) for name in "abc"]) == {"a": 1.75, "b": 1.5}


def test_times_and_tables():
    model = product()
    found = relayc.quantize(model, samples(), times=0.05)
    assert found.times.rounds >= 1 and "times as fast" in found.summary()
    assert all(layer.seconds_before > 0 and layer.seconds_after > 0 for layer in found.layers)
    assert [column.header for column in found.table().columns][-2:] == ["us", "after us"]
    assert [*found.table().columns[0].cells] == [*(layer.name for layer in found.layers), "model"]
    data = found.as_data()
    assert data["layers"][0]["name"] == "product" and data["snr_db"] == found.snr and data["metric"] is None
    assert len(relayc.quantize(model, samples()).table().columns) == 7


@pytest.mark.parametrize(
    "options,what",
    [
        ({"method": "entropie"}, "method: expected minmax or percentile or entropy or mse, found entropie; did you mean entropy"),
        ({"percentile": 50}, "percentile: expected a number above 50"),
        ({"smooth": 2}, "smooth: expected a number from 0 to 1, found 2"),
        ({"weight_only": 3}, "weight_only: expected None or 4 or 8, found 3"),
        ({"weight_only": 4, "block_size": 24}, "block_size: expected a power of two, 16 or more, found 24"),
        ({"weight_only": 4, "accuracy_level": 5}, "accuracy_level: expected 0 or 1 or 2 or 3 or 4, found 5"),
        ({"accuracy_level": 4}, "accuracy_level: expected weight_only"),
        ({"gptq": True}, "gptq: expected weight_only"),
        ({"weight_only": 8, "reduce_range": True}, "reduce_range: expected activations that are quantised, found weight_only"),
        ({"max_drop": -1}, "max_drop: expected 0 or more"),
        ({"samples": 0}, "samples: expected 1 or more, found 0"),
        ({"weight_only": 4, "smooth": 0.5}, "smooth: expected activations that are quantised, found weight_only"),
    ],
)
def test_settings_that_make_no_sense(options, what):
    with pytest.raises(ValueError, match=what):
        Settings(**options)


def test_settings_at_their_limits():
    for options in (
        {"samples": 1},
        {"max_drop": 0},
        {"smooth": 0},
        {"smooth": 1},
        {"weight_only": 4, "block_size": 16},
        {"percentile": 100},
    ):
        Settings(**options)


def test_ratios_at_their_limits():
    with np.errstate(divide="raise"):  # a model that gives zeros is no reason for a warning
        assert (
            decibels(100.0, 1.0) == 20 and decibels(1.0, 0.0) == decibels(0.0, 0.0) == float("inf") and decibels(0.0, 1.0) == float("-inf")
        )
    found = Deviation()
    found.add({"a": np.array([3.0, 4.0]), "b": np.array([1, 2, 3, 4])}, {"a": np.array([3.0, 3.0]), "b": np.array([1, 2, 3, 5])})
    assert found.worst.tolist() == [4, 1]  # of integers, those that differ
    found.add({"a": np.array([1.0])}, {"a": np.array([9.0])})
    assert found.worst.tolist() == [26, 65]
    assert Deviation().worst.tolist() == [0, 0]


@pytest.mark.parametrize("other,noise", [(-np.inf, 0), (np.inf, np.inf), (3.0, np.inf), (np.nan, np.inf)])
def test_an_infinite_result_is_exact_or_infinitely_wrong(other, noise):
    found = Deviation()
    found.add({"a": np.array([2.0, -np.inf])}, {"a": np.array([2.0, other])})
    assert found.worst.tolist() == [4, noise]
    assert found.decibels == (np.inf if noise == 0 else -np.inf)


def test_a_range_of_as_many_bins_as_levels_is_tried():
    found = Histogram()
    found.reach, found.low, found.high, found.total = 1.0, 0.0, 1.0, 1000
    first = BINS // 2
    shares = np.geomspace(1, 0.002, 120)
    levels = int(np.ceil(shares[40] * BINS / 2))
    found.counts[first : first + levels] = 1 + np.arange(levels) % 7
    assert range_of(found, "entropy", levels=levels)[1] == pytest.approx(levels * 2 / BINS)
    assert range_of(found, "entropy", levels=levels + 1)[1] > levels * 2 / BINS


def test_a_range_whose_levels_have_one_value_each_is_kept_whole():
    """Bins of no values stay so: the distribution in levels is the one before, however few values are above the half."""
    found, levels = Histogram(), 255
    found.reach, found.low, found.high = 1.0, 0.0, 1.0
    places = BINS // 2 + np.linspace(0, BINS // 2, levels, endpoint=False).astype(int)
    found.counts[places] = np.where(np.arange(levels) < levels // 2, 1000 + np.arange(levels) % 7, 1)
    found.total = int(found.counts.sum())
    assert range_of(found, "entropy", levels=levels) == (0.0, 1.0)


def test_of_ranges_that_diverge_alike_the_widest_is_taken():
    """Few and many values share a level of the whole range, but none of the smaller ones, which all leave out one value."""
    found, levels = Histogram(), 255
    found.reach, found.low, found.high, found.total = 1.0, 0.0, 1.0, 1011
    found.counts[BINS // 2 + np.array([0, 8, BINS // 2 - 1])] = 1000, 10, 1
    # The first two are in levels of their own where a level has at most eight bins, or eight and a part.
    sizes = np.ceil(np.geomspace(1, 0.002, 120) * BINS / 2)
    assert range_of(found, "entropy", levels=levels) == (0.0, pytest.approx(max(sizes[sizes < 9 * levels]) * 2 / BINS))


def test_the_twin_of_a_trained_network_gives_what_the_written_model_gives():
    network = trained.network()
    found = relayc.quantize(network.model, network.samples, metric=trained.metric, max_drop=0.5)
    assert [layer.form for layer in found.layers] == ["int8"] * 3
    assert 0 < max(layer.sensitivity for layer in found.layers) < 2 * found.score.deviation.share


# ---- numbers ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "dtype", "scale", "zero"),
    [
        (0.0, 2.55, "uint8", 0.01, 0),
        (-2.55, 0.0, "uint8", 0.01, 255),
        (-1.0, 1.55, "uint8", 0.01, 100),
        (-1.27, 0.5, "int8", 0.01, 0),
        (-0.5, 1.27, "int8", 0.01, 0),
        (0.0, 0.0, "int8", 1.0, 0),
        (-1e-40, 1e-40, "uint8", 1.0, 0),
        (0.0, 127 * 2.0**-126, "int8", 1.0, 0),
        (0.0, 128 * 2.0**-126, "int8", 128 / 127 * 2.0**-126, 0),
    ],
)
def test_steps_of_a_range(low, high, dtype, scale, zero):
    found = steps_of(low, high, dtype)
    assert (float(found.scale), found.zero, found.dtype) == (pytest.approx(scale), zero, dtype)


def test_histograms_at_limits():
    found = histogram_of([], [0.0, 0.0])
    assert (found.total, found.zeros, found.reach, found.counts.sum()) == (2, 2, 0.0, 0)
    found.add(np.array([1.0, -1.0, 0.25], np.float32))
    assert found.reach == 1.0 and (found.low, found.high) == (-1.0, 1.0)
    assert np.flatnonzero(found.counts).tolist() == [0, BINS * 5 // 8, BINS - 1]
    found.add(np.array([2.0], np.float32))  # twice as far
    assert found.reach == 2.0 and np.flatnonzero(found.counts).tolist() == [BINS // 4, BINS * 9 // 16, BINS * 3 // 4 - 1, BINS - 1]
    found.add(np.array([4.5], np.float32))
    assert found.reach == 8.0 and found.counts.sum() == 5 and (found.total, found.zeros) == (7, 2)


@pytest.mark.parametrize("observer", [Histogram, Largest, Products])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_in_no_statistic(observer, value):
    results = {"x": np.ones((2, 3), np.float32), "y": np.array([[0, value, 2]], np.float32), "z": np.full((1, 3), np.nan, np.float32)}
    with pytest.raises(NotFinite, match=f"expected finite values in y, found {value}") as raised:
        observe({name: observer() for name in results}, results)
    assert raised.value.tensor == "y"


def test_narrow_floats_that_are_not_finite_are_seen():
    values = np.array([[1, np.nan]], ml_dtypes.bfloat16)
    with pytest.raises(NotFinite, match="expected finite values in y, found nan"):
        observe({"y": Largest()}, {"y": values})


def test_ranges_of_nothing_and_of_one_sign():
    for method in METHODS:
        assert range_of(histogram_of([0.0]), method) == (0.0, 0.0)
        assert range_of(histogram_of(np.linspace(1, 2, 999)), method)[0] == 0.0
        assert range_of(histogram_of(np.linspace(-2, -1, 999)), method)[1] == 0.0
    assert merged([(-1.0, 0.5), (-0.5, 2.0), (0.0, 1.0)]) == (-1.0, 2.0)


@pytest.mark.parametrize(
    ("block", "bits", "scale", "zero"),
    [
        ([0, 0, 0], 4, 1.0, 0),
        ([1, 15, 3], 4, 1.0, 0),
        ([-15, -3, -1], 4, 1.0, 15),
        ([-5, 10, 2], 4, 1.0, 5),
        ([-155, 100, 0], 8, 1.0, 155),
        ([0, 510], 8, 2.0, 0),
        ([0, 1e-40], 8, 1.0, 0),
    ],
)
def test_blocks_have_a_scale_and_a_zero_point(block, bits, scale, zero):
    found = _grid(np.array([block], np.float64), bits)
    np.testing.assert_array_equal(found, [[scale], [zero]])


@pytest.mark.parametrize(
    ("numbers", "bits", "packed"),
    [
        ([1, 2, 3, 15], 4, [0x21, 0xF3]),
        ([1, 2, 3], 4, [0x21, 0x03]),
        ([15], 4, [0x0F]),
        ([1, 200], 8, [1, 200]),
    ],
)
def test_numbers_are_packed_from_the_low_bits(numbers, bits, packed):
    for shape in ((), (1, 1)):
        found = _pack(np.array(numbers, np.float64).reshape(*shape, -1), bits)
        assert found.dtype == np.uint8 and found.tolist() == np.array(packed).reshape(*shape, -1).tolist()


CUBE = RNG.standard_normal((4, 6, 3, 3), np.float32)
LAYERS = {
    "conv": ("Conv", {}, {"w": CUBE}, (0, None)),
    "conv with a bias": ("Conv", {}, {"w": CUBE, "b": B[:4]}, (0, "b")),
    "conv with another bias": ("Conv", {}, {"w": CUBE, "b": B[:6]}, None),
    "transposed": ("ConvTranspose", {}, {"w": CUBE, "b": B[:6]}, (1, "b")),
    "transposed of groups": ("ConvTranspose", {"group": 2}, {"w": CUBE, "b": B[:12]}, (1, "b")),
    "transposed of groups with another bias": ("ConvTranspose", {"group": 2}, {"w": CUBE, "b": B[:6]}, None),
    "gemm": ("Gemm", {}, {"w": W, "b": B}, (1, "b")),
    "gemm turned": ("Gemm", {"transB": 1}, {"w": W.T.copy(), "b": B}, (0, "b")),
    "gemm of a column": ("Gemm", {"transA": 1}, {"w": W}, None),
    "gemm times 2": ("Gemm", {"alpha": 2.0}, {"w": W}, None),
    "gemm plus 2": ("Gemm", {"beta": 2.0}, {"w": W}, None),
    "gemm times 1": ("Gemm", {"alpha": 1.0, "beta": 1.0}, {"w": W}, (1, None)),
    "gemm with a matrix": ("Gemm", {}, {"w": W, "b": np.zeros((8, 24), np.float32)}, None),
    "matmul": ("MatMul", {}, {"w": W}, (1, None)),
    "several matrices": ("MatMul", {}, {"w": np.stack([W, W])}, None),
    "of integers": ("MatMul", {}, {"w": np.zeros((32, 24), np.int32)}, None),
    "of halves": ("MatMul", {}, {"w": W.astype(np.float16)}, None),
    "empty": ("MatMul", {}, {"w": W[:, :0]}, None),
}


@pytest.mark.parametrize("name", LAYERS)
def test_nodes_that_are_layers(name):
    operator, given, constants, expected = LAYERS[name]
    node = helper.make_node(operator, ["x", *constants], ["y"], name="n", **given)
    shape = [2, constants["w"].shape[1 if operator == "Conv" else 0], 5, 5] if "Conv" in operator else [8, 32]
    found = find_layers(Graph(model_of([node], {"x": shape}, initializers=constants, ir_version=9)))
    assert [(layer.axis, layer.bias) for layer in found] == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("inputs", "bias", "is_bias"),
    [(["p", "b"], B, True), (["b", "p"], B, True), (["p", "b"], B[:1], False), (["p", "b"], B[None], False), (["p", "x"], B, False)],
)
def test_a_sum_after_a_product_is_its_bias(inputs, bias, is_bias):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="n"), helper.make_node("Add", inputs, ["y"], name="a")]
    for outputs in ((), ("p",)):
        model = model_of(nodes, {"x": [24, 24]}, initializers={"w": W[:24], "b": bias}, ir_version=9)
        model.graph.output.extend(helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs)
        (layer,) = find_layers(Graph(model))
        found = is_bias and not outputs  # others read the product, too
        assert (layer.bias, layer.adder is not None) == ("b" if found else None, found)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("most", [63, 127])
def test_weights_have_a_scale_for_each_channel(axis, most):
    array = np.array([[1.0, -2.0, 0.0], [0.5, 4.0, 0.0]], np.float32)
    constants = {"w": array if axis else array.T.copy(), "b": np.array([0.0, 1e9, 0.0], np.float32)}
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="n", transB=1 - axis)
    graph = Graph(model_of([node], {"x": [1, 2]}, initializers=constants, ir_version=9))
    (layer,) = find_layers(graph)
    quantize_weights(graph, layer, most)
    np.testing.assert_allclose(layer.scales, [1 / most, 4 / most, 1])
    expected = np.rint(array / layer.scales)
    np.testing.assert_array_equal(layer.integers, expected if axis else expected.T)
    np.testing.assert_allclose(layer.weights, (expected * layer.scales) if axis else (expected * layer.scales).T)
    layer.steps = Steps(np.float32(0.5), 0, "uint8")
    quantize_weights(graph, layer, most)  # the second bias has 2^29 steps
    np.testing.assert_allclose(layer.scales, [1 / most, 1e9 / 2**28, 1], rtol=1e-6)
    steps, scales = bias_steps(layer, np.array([1.0, 1e9, -3e9], np.float32))
    np.testing.assert_allclose(scales, layer.scales / 2)
    np.testing.assert_allclose(steps, [np.rint(2 * most), 2**29, -(2**30)], rtol=1e-6)
