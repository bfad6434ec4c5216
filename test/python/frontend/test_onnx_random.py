"""Random operators of the ONNX frontend: the same numbers for the same seed, of the distributions that they name."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import relayc

N = 1 << 15


def compiled(op_type, *inputs, opset=22, outputs=1, **attrs):
    """A module of one node; inputs are (name, element type, shape), or arrays that are constants."""
    names, values, constants = [], [], []
    for i, given in enumerate(inputs):
        if isinstance(given, np.ndarray):
            constants.append(onnx.numpy_helper.from_array(given, f"c{i}"))
            names.append(f"c{i}")
        else:
            values.append(helper.make_tensor_value_info(*given))
            names.append(given[0])
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, **attrs)], "random", values, [onnx.ValueInfoProto(name=n) for n in results], constants
    )
    return relayc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10))["main"]


def distance(sample, cumulative):
    """The largest difference between the distribution of a sample and another, in units of 1 / sqrt(n) (Kolmogorov and Smirnov)."""
    x, n = np.sort(np.asarray(sample, np.float64).reshape(-1)), sample.size
    return np.abs(cumulative(x) - (np.arange(n) + 0.5) / n).max() * np.sqrt(n)


# One sample in a million is further away than 2.7.
FAR = 2.7


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_uniform(dtype):
    x = compiled("RandomUniform", shape=[N], low=-3.0, high=5.0, seed=1.5, dtype=dtype)()
    assert x.dtype == helper.tensor_dtype_to_np_dtype(dtype) and x.min() >= -3 and x.max() <= 5
    assert distance(x, lambda v: (v + 3) / 8) < FAR


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_normal(dtype):
    from math import erf

    x = compiled("RandomNormal", shape=[N], mean=2.0, scale=3.0, seed=7.0, dtype=dtype)()
    assert np.isfinite(x).all()
    assert distance(x, lambda v: 0.5 + 0.5 * np.vectorize(erf)((v - 2) / (3 * np.sqrt(2)))) < FAR
    neighbours = np.corrcoef(x[1:], x[:-1])[0, 1] * np.sqrt(N)
    assert abs(neighbours) < 5


def test_a_seed_gives_the_same_numbers_always():
    def drawn(**attrs):
        return compiled("RandomUniform", shape=[3, 5], **attrs)()

    first = drawn(seed=3.0)
    np.testing.assert_array_equal(first, drawn(seed=3.0))
    # More numbers begin with the same ones.
    np.testing.assert_array_equal(first.reshape(-1), compiled("RandomUniform", shape=[100], seed=3.0)()[:15])
    assert not np.array_equal(first, drawn(seed=4.0))
    np.testing.assert_array_equal(drawn(), drawn())


def test_nodes_without_a_seed_draw_different_numbers():
    nodes = [helper.make_node("RandomNormal", [], [name], shape=[8]) for name in ("a", "b")]
    graph = helper.make_graph(nodes, "random", [], [onnx.ValueInfoProto(name=n) for n in ("a", "b")])
    module = relayc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10))
    first, second = module["main"](), module["main"]()
    assert not np.array_equal(first[0], first[1])
    np.testing.assert_array_equal(first, second)


def test_tensors_like_others_have_their_sizes():
    for op_type in ("RandomUniformLike", "RandomNormalLike"):
        main = compiled(op_type, ("x", TensorProto.FLOAT16, ["n", 3]), seed=1.0)
        for n in (0, 1, 5):
            found = main(np.zeros((n, 3), np.float16))
            assert found.shape == (n, 3) and found.dtype == np.float16
    assert compiled("RandomNormalLike", ("x", TensorProto.INT64, [4]), dtype=TensorProto.DOUBLE)(np.arange(4)).dtype == np.float64


def test_bernoulli():
    p = np.linspace(0, 1, 5, dtype=np.float32)[:, None].repeat(N, 1)
    found = compiled("Bernoulli", ("x", TensorProto.FLOAT, list(p.shape)), seed=5.0, dtype=TensorProto.BOOL)(p)
    assert found.dtype == np.bool_ and not found[0].any() and found[4].all()
    np.testing.assert_allclose(found.mean(1), p[:, 0], atol=2.5 / np.sqrt(N))  # five deviations


def test_multinomial():
    p = np.array([[0.1, 0.2, 0.0, 0.7], [0.25, 0.25, 0.25, 0.25]], np.float32)
    with np.errstate(divide="ignore"):
        logs = np.log(p) + 3
    found = compiled("Multinomial", ("x", TensorProto.FLOAT, ["n", 4]), sample_size=N, seed=2.0, dtype=TensorProto.INT64)(logs)
    assert found.shape == (2, N) and found.dtype == np.int64
    shares = np.stack([np.bincount(row, minlength=4) / N for row in found])
    np.testing.assert_allclose(shares, p, atol=2.5 / np.sqrt(N))
    assert shares[0, 2] == 0


def test_dropout_in_training():
    x = np.random.default_rng(0).standard_normal((64, 512)).astype(np.float32)
    main = compiled(
        "Dropout", ("x", TensorProto.FLOAT, ["n", 512]), ("ratio", TensorProto.FLOAT, []), ("on", TensorProto.BOOL, []), outputs=2, seed=9
    )
    y, kept = main(x, np.float32(0.25), np.bool_(True))
    np.testing.assert_allclose(y, np.where(kept, x / 0.75, 0), rtol=1e-6)
    assert abs(kept.mean() - 0.75) < 2.5 / np.sqrt(x.size)
    again, _ = main(x, np.float32(0.25), np.bool_(True))
    np.testing.assert_array_equal(y, again)
    y, kept = main(x, np.float32(0.25), np.bool_(False))
    np.testing.assert_array_equal(y, x)
    assert kept.all()
