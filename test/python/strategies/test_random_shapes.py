"""Kernels of random shapes, forms and element types, several compiled together, against numpy in float64."""

from math import prod

import numpy as np
from accuracy import UNIT
from contractions import Case, batch_product, check, convolution, matrix_product
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import values
from support import Const

from relayc.dialects.relay import build

# Each example is a program of several kernels; derandomized, so that a run tells the same as the one before.
few = settings(max_examples=5, deadline=None, derandomize=True)
extents = st.one_of(st.integers(1, 9), st.integers(10, 70), st.sampled_from([16, 31, 32, 33, 64, 97, 127, 128]))
floats = st.sampled_from(["float32", "float32", "float32", "bfloat16", "float16", "float64"])


def programs(cases: st.SearchStrategy[Case]) -> st.SearchStrategy[list[Case]]:
    return st.lists(cases, min_size=6, max_size=6)


@st.composite
def products(draw) -> Case:
    shape = [draw(extents) for _ in range(3)]
    forms = {"transpose_a": draw(st.booleans()), "transpose_b": draw(st.booleans()), "dtype": draw(floats)}
    if draw(st.booleans()):
        batch = draw(st.integers(2, 5))
        left, right = draw(st.sampled_from([(batch, batch), (1, batch), (batch, 1), (1, 1)]))
        found = batch_product(left, right, *shape, constant=draw(st.booleans()), **forms)
    else:
        found = matrix_product(*shape, constant=draw(st.sampled_from(["", "a", "b"])), **forms)
    if forms["dtype"] != "float32":
        return found
    followers = [
        lambda c: c,
        lambda c: c.then("nn.relu", lambda v: np.maximum(v, 0)),
        lambda c: c.plus(Const(values(c.expected.shape[-1:], seed=2))),
        lambda c: c.plus(values(c.expected.shape, seed=3)).then("abs", np.abs),
        lambda c: c.plus(values((c.expected.shape[-2], 1), seed=4)),
    ]
    return draw(st.sampled_from(followers))(found)


@few
@given(programs(products()))
def test_any_product(cases):
    check(cases)


@st.composite
def convolutions(draw) -> Case:
    n = draw(st.sampled_from([1, 2, 2, 2, 3]))
    largest = {1: 40, 2: 14, 3: 5}[n]
    taps = [draw(st.integers(1, 4)) for _ in range(n)]
    strides, dilation = ([draw(st.sampled_from([1, 1, 1, 2, 3, 5])) for _ in range(n)] for _ in range(2))
    pads = [draw(st.integers(0, 3)) for _ in range(2 * n)]
    size = [max(1, (k - 1) * d + 1 - before - after) for k, d, before, after in zip(taps, dilation, pads[:n], pads[n:], strict=True)]
    size = [s + draw(st.integers(0, largest)) for s in size]
    groups = draw(st.sampled_from([1, 1, 1, 2, 3, 8]))
    channels = draw(st.sampled_from([1, 1, 2, 3, 8, 13]) if groups > 1 else st.sampled_from([1, 3, 8, 16, 19, 32]))
    filters = draw(st.sampled_from([1, 2, 5, 8]) if groups > 1 else st.sampled_from([1, 4, 8, 11, 16, 33, 64]))
    attrs = {"strides": strides, "dilation": dilation, "pads": pads, "groups": groups}
    batch = draw(st.sampled_from([1, 1, 2]))
    data, weight = (batch, groups * channels, *size), (groups * filters, channels, *taps)
    return convolution(data, weight, constant=draw(st.booleans()), dtype=draw(floats), **attrs)


@few
@given(programs(convolutions()))
def test_any_convolution(cases):
    check(cases)


@st.composite
def rearrangements(draw) -> Case:
    """Transposes of what is computed, between elementwise operators."""
    shape = [draw(st.one_of(st.integers(1, 5), st.integers(6, 40))) for _ in range(draw(st.integers(1, 4)))]
    while prod(shape) > 50000:
        shape[shape.index(max(shape))] //= 2
    order = draw(st.permutations(range(len(shape))))
    x, y = values(shape), values([shape[d] if draw(st.booleans()) else 1 for d in order], seed=1)
    expected = np.maximum(-x, 0).transpose(order).astype(float) + y

    def body(x, y):
        return build("add", build("transpose", build("nn.relu", build("negative", x)), axes=tuple(order)), y)

    return Case(f"transpose {shape} {order}, {y.shape}", body, [x, y], expected, UNIT["float32"] * np.abs(expected))


@few
@given(programs(rearrangements()))
def test_any_transpose(cases):
    check(cases)


@st.composite
def rows(draw) -> Case:
    """A softmax or a normalisation along any axis, of what is computed."""
    shape = [draw(st.one_of(st.integers(1, 5), st.integers(6, 70))) for _ in range(draw(st.integers(1, 3)))]
    axis = draw(st.integers(0, len(shape) - 1))
    x, bias = values(shape), values([1] * (len(shape) - 1) + shape[-1:], seed=1)
    wide = x.astype(float) + bias
    if draw(st.booleans()):
        powers = np.exp(wide - wide.max(axis, keepdims=True))
        expected, arrays = powers / powers.sum(axis, keepdims=True), [x, bias]
        body = lambda x, b: build("nn.softmax", build("add", x, b), axis=axis)  # noqa: E731 (an argument, not a definition)
    else:
        gamma = values(shape[axis : axis + 1], seed=2)
        along = gamma.reshape([-1 if d == axis else 1 for d in range(len(shape))])
        deviation = wide - wide.mean(axis, keepdims=True)
        expected, arrays = deviation / np.sqrt(wide.var(axis, keepdims=True) + 1e-2) * along, [x, bias, gamma]
        body = lambda x, b, g: build("nn.layer_norm", build("add", x, b), g, g, axis=axis, epsilon=1e-2, center=False)  # noqa: E731
    # A few roundings of numbers of order 1 next to a sum of at most 70 of them; the norm divides by at least 0.1.
    return Case(f"rows of {shape} along {axis}", body, arrays, expected, np.full(expected.shape, 2e-5))


@few
@given(programs(rows()))
def test_any_rows(cases):
    check(cases)
