"""Dequantised tensors of several readers: each reads 8 bits, and no tensor between kernels is wider than it has to be."""

import numpy as np
import pytest
from support import Const, program

from relayc.dialects.relay import build
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.graph import fuse_ops
from relayc.pipelines.graph.fusion import graph_groups

RNG = np.random.default_rng(3)
X = RNG.integers(0, 256, (6, 40, 24)).astype(np.uint8)
GATE, WEIGHT = (RNG.standard_normal(shape, np.float32) for shape in ((6, 1, 24), (16, 24)))
SCALES = RNG.uniform(0.5, 2, 24).astype(np.float32)


def dequantised(x, zero, scale):
    shifted = build("subtract", build("cast", x, dtype="int32"), zero)
    return build("multiply", build("cast", shifted, dtype="float32"), scale)


def outputs(body, *arrays):
    """The dtypes and shapes of what kernels write, and the results."""
    module = compile(program(body, [X, *arrays]), cache=False)
    found = module["main"](X, *(a for a in arrays if not isinstance(a, Const)))
    written = [(spec.dtype, tuple(map(int, spec.shape))) for kernel in module.kernels for spec in kernel.outputs]
    return written, [np.asarray(v) for v in (found if isinstance(found, (tuple, list)) else [found])]


ZERO, SCALE = np.array(7, np.int32), np.array(0.03, np.float32)
FLOATS = (X.astype(np.float32) - 7) * SCALE


@pytest.mark.parametrize("scale", [SCALE, SCALES], ids=["a tensor", "channels"])
def test_each_reader_widens_8_bits(scale):
    """A mean over rows and a product with a gate: as in squeeze and excitation."""

    def body(x, gate, zero, by):
        wide = dequantised(x, zero, by)
        return [build("mean", wide, axis=(1,), keepdims=True), build("multiply", wide, gate)]

    written, (mean, gated) = outputs(body, GATE, Const(ZERO), Const(scale))
    assert sorted(written) == [("float32", (6, 1, 24)), ("float32", X.shape)], "nothing but the two results"
    floats = (X.astype(np.float32) - 7) * scale
    np.testing.assert_allclose(mean, floats.mean(1, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gated, floats * GATE, rtol=1e-6)


def test_readers_that_need_memory_share_it():
    """Two products of floats read one tensor, which is widened once for both; the reduction reads 8 bits."""

    def body(x, w, other, zero, by):
        wide = dequantised(x, zero, by)
        return [build("nn.dense", wide, w), build("nn.dense", wide, other), build("sum", wide, axis=(2,))]

    other = WEIGHT[::-1].copy()
    mod = program(body, [X, Const(WEIGHT), Const(other), Const(ZERO), Const(SCALE)])
    fuse_ops(mod)
    with mod.context:
        groups = [[m.relay_name for m in g.members] for g in graph_groups(mod.main.regions[0].blocks[0])]
    chain = ["cast", "subtract", "cast", "multiply"]
    assert sorted(groups) == sorted([chain, ["nn.dense"], ["nn.dense"], [*chain, "sum"]])
    _, (a, b, total) = outputs(body, Const(WEIGHT), Const(other), Const(ZERO), Const(SCALE))
    for found, weight in ((a, WEIGHT), (b, other)):
        np.testing.assert_allclose(found, FLOATS @ weight.T, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(total, FLOATS.sum(2), rtol=1e-5, atol=1e-4)


def test_an_operator_that_reads_it_twice_gets_one_copy():
    def body(x, zero, by):
        wide = dequantised(x, zero, by)
        return [build("multiply", wide, wide), build("max", wide, axis=(0,))]

    written, (squares, most) = outputs(body, Const(ZERO), Const(SCALE))
    assert len(written) == 2
    np.testing.assert_allclose(squares, FLOATS**2, rtol=1e-6)
    np.testing.assert_array_equal(most, FLOATS.max(0))


def test_what_is_computed_of_two_tensors_is_computed_once():
    """A sum with another tensor is no widening: it is kept in memory."""

    def body(x, other, zero, by):
        total = build("add", dequantised(x, zero, by), other)
        return [build("max", total, axis=(0,)), build("min", total, axis=(1,))]

    other = RNG.standard_normal(X.shape, np.float32)
    written, (most, least) = outputs(body, other, Const(ZERO), Const(SCALE))
    assert ("float32", X.shape) in written and len(written) == 3
    np.testing.assert_allclose(most, (FLOATS + other).max(0), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(least, (FLOATS + other).min(1), rtol=1e-6, atol=1e-6)
