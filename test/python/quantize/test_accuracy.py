"""Quantised networks keep their accuracy, in relayc and in ONNX Runtime, and are computed in integers."""

from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
import trained

import relayc
from relayc.tools import quantize
from relayc.tools.quantize import twin
from relayc.tools.quantize.twin import Alone

NETWORKS = {"network": trained.network, "language": trained.language}


@pytest.fixture(scope="module", autouse=True)
def cached(tmp_path_factory):
    """What one test compiles, others find."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELAYC_CACHE", "1")
        patch.setenv("RELAYC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def by_onnxruntime(model):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {session.get_inputs()[0].name: x})[0]


def check(network, found):
    """The accuracy is that of floats, up to 1 %, by both engines, whose results agree. Gives relayc's module."""
    onnx.checker.check_model(found.model, full_check=found.layers[0].form == "int8")
    module = relayc.compile(found.model)
    floats, theirs = network.accuracy(by_onnxruntime(network.model)), by_onnxruntime(found.model)
    assert floats > 0.85
    assert network.accuracy(theirs) >= floats - 0.01
    assert network.accuracy(module["main"]) >= floats - 0.01
    assert found.metric == pytest.approx((floats, network.accuracy(module["main"])), abs=1e-3)
    x = network.inputs[: network.batch]
    ours, reference = module["main"](x), theirs(x)
    assert np.sqrt(np.mean((ours - reference) ** 2)) < 5e-3 * reference.std()
    return module


CASES = [("network", {"method": "minmax"}), ("network", {"method": "percentile"}), ("network", {"method": "entropy"}), ("network", {})]
CASES += [("network", {"reduce_range": True}), ("language", {"reduce_range": True, "activations": "int8"})]
CASES += [("language", {}), ("language", {"activations": "int8"})]


@pytest.mark.parametrize("name,options", CASES, ids=str)
def test_eight_bits_keep_the_accuracy(name, options):
    network = NETWORKS[name]()
    found = relayc.quantize(network.model, network.samples, metric=trained.metric, **options)
    assert [layer.form for layer in found.layers] == ["int8"] * 3
    assert sum(layer.bytes_after for layer in found.layers) < 0.35 * sum(layer.bytes_before for layer in found.layers)
    module = check(network, found)
    products = [kernel for kernel in module.kernels if "dense" in kernel.name or "conv2d" in kernel.name]
    assert len(products) == 3
    assert all({spec.dtype for spec in kernel.inputs[:2]} <= {"int8", "uint8"} for kernel in products)


def test_images_stay_in_eight_bits_between_kernels():
    network = trained.network()
    module = relayc.compile(relayc.quantize(network.model, network.samples, metric=trained.metric).model)
    wide = [spec for kernel in module.kernels for spec in kernel.outputs if spec.dtype == "float32" and len(spec.shape) == 4]
    assert not wide


@pytest.mark.parametrize("options", [{"weight_only": 4}, {"weight_only": 8}, {"weight_only": 4, "gptq": True, "block_size": 16}], ids=str)
def test_weights_in_blocks_keep_the_accuracy(options):
    network = trained.language()
    found = relayc.quantize(network.model, network.samples, metric=trained.metric, **options)
    module = check(network, found)
    assert [node.op_type for node in found.model.graph.node].count("MatMulNBits") == 3
    assert any("dense_blocks" in kernel.name for kernel in module.kernels)


def test_the_mean_error_of_a_channel_is_taken_back_beyond_four_standard_errors():
    """Of 16 elements whose errors have the mean 1 and the mean square 2, the standard error is 1/4."""
    means, squares = np.array([16.0, 16.0, -16.0, 0.0]), np.array([32.0, 31.0, 31.0, 16.0])
    alone = Alone(np.stack([means, squares, np.full(4, 275.0)]), 16)
    correction = alone.correction()
    assert correction.tolist() == [0, -1, 1, 0] and correction.dtype == np.float32
    assert alone.decibels(correction[:0]) == pytest.approx(10)  # 1100 to 110
    assert alone.decibels(correction) == pytest.approx(10 * np.log10(1100 / (110 - 2 * 16)))
    assert Alone(np.zeros((3, 2))).correction().tolist() == [0, 0]


@pytest.mark.parametrize(("most", "quantised"), [(4, [0, 1, 2, 3]), (3.5, [0, 1, 3]), (2, [1, 3]), (1, [1]), (0, []), (-1, [])])
def test_as_few_of_the_most_sensitive_layers_as_the_limit_allows_become_floats(most, quantised, monkeypatch):
    """What is lost is the number of the quantised layers."""
    monkeypatch.setattr(twin, "score", lambda samples, floats, found, *_: SimpleNamespace(drop=int(np.sum(found) - np.sum(floats))))
    sensitivity = [0.3, 0.1, 0.9, 0.2]
    layers = SimpleNamespace(sensitivity=lambda samples, progress: sensitivity, call=lambda samples, switches: switches)
    assert twin.choose(layers, None, None, most, None) == (quantised, sensitivity)


@pytest.mark.parametrize(
    ("most", "drops", "left"), [(None, [9], "abc"), (0.5, [0.5], "abc"), (0.5, [0.6, 0.5], "ac"), (0.5, [2, 1, 0.1], "a"), (0, [1] * 4, "")]
)
def test_the_most_sensitive_layers_become_floats_until_the_limit_holds(most, drops, left, monkeypatch):
    sensitivity, given = {"a": 1, "b": 3, "c": 2}, iter(drops)
    monkeypatch.setattr(quantize, "plan", lambda graph, chosen: SimpleNamespace(tensors=[]))
    monkeypatch.setattr(quantize, "write", lambda graph, chosen, steps, how: "".join(layer.name for layer in chosen))
    monkeypatch.setattr(quantize, "score", lambda *_: SimpleNamespace(drop=next(given)))
    settings = SimpleNamespace(max_drop=most, compile=lambda model: model)
    work = SimpleNamespace(
        graph=None, steps={}, samples=(), reference="floats", show=print, metric=None, settings=settings, sensitivity=sensitivity
    )
    work._call = lambda module: module
    chosen = [SimpleNamespace(name=name) for name in "abc"]
    model, module, _ = quantize._Work._checked(work, chosen)
    assert model == module == left == "".join(layer.name for layer in chosen) and next(given, None) is None
