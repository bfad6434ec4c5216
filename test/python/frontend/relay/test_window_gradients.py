"""Operators that are derivatives of poolings and convolutions, against sums over their windows in float64."""

from itertools import product

import numpy as np
import pytest
from expressions import both_ways, evaluated
from oracle import values

from relayc import relay
from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.lowering import lower

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
"""Sums of some tens of products of float32."""


def unknown(is_batch_known, *arrays):
    """Shapes of arrays, whose batch, the first axis, may not be known."""
    return [a.shape if is_batch_known else (relay.Any(), *a.shape[1:]) for a in arrays]


def windows(shape, pool, out):
    """(place of a window, the rows and columns of the data in it, how many elements of the padded data it has), of a pooling."""
    size, strides, pads, _ = pool
    for place in product(*map(range, out)):
        seen, count = [], 1
        for axis in range(2):
            first = place[axis] * strides[axis] - pads[axis]
            reached = range(max(first, -pads[axis]), min(first + size[axis], shape[axis] + pads[axis + 2]))
            seen.append([i for i in reached if 0 <= i < shape[axis]])
            count *= len(reached)
        yield place, seen, count


POOLS = [((3, 2), (2, 1), (1, 0, 1, 0), False), ((2, 3), (2, 2), (0, 1, 1, 0), True), ((2, 2), (3, 3), (0, 0, 0, 0), True)]


def _pooled(pool, kind, **attrs):
    size, strides, pads, rounds_up = pool
    attrs = {"pool_size": size, "strides": strides, "padding": pads, **({"ceil_mode": True} if rounds_up else {}), **attrs}
    data = values((3, 2, 7, 6))
    forward = getattr(relay.nn, f"{kind}_pool2d")
    out = relay.transform.InferTypeLocal(forward(relay.var("x", shape=data.shape), **attrs)).shape
    return attrs, data, values(tuple(map(int, out)), seed=1)


@both_ways
@pytest.mark.parametrize(
    ("pool", "is_batch_known"),
    [(POOLS[0], False), (POOLS[1], True), (POOLS[2], True), (((1, 2), (2, 2), (1, 0, 1, 0), False), True)],
)
def test_max_pool2d_grad(pool, is_batch_known, run):
    attrs, data, grad = _pooled(pool, "max")
    found = run(lambda g, x: relay.nn.max_pool2d_grad(g, x, **attrs), grad, data, shapes=unknown(is_batch_known, grad, data))
    expected = np.zeros(data.shape)
    for n, c in np.ndindex(3, 2):
        for (top, left), (rows, columns), _ in windows(data.shape[2:], pool, grad.shape[2:]):
            if rows and columns:  # the window is not in the padding alone
                row, column = max(product(rows, columns), key=lambda at: data[n, c, at[0], at[1]])
                expected[n, c, row, column] += grad[n, c, top, left]
    np.testing.assert_allclose(found, expected, **CLOSE)


@both_ways
@pytest.mark.parametrize(("pool", "counts"), [(POOLS[0], True), (POOLS[0], False), (POOLS[1], True), (POOLS[2], False)])
def test_avg_pool2d_grad(pool, counts, run):
    attrs, data, grad = _pooled(pool, "avg", **({"count_include_pad": True} if counts else {}))
    found = run(lambda g, x: relay.nn.avg_pool2d_grad(g, x, **attrs), grad, data, shapes=unknown(counts, grad, data))
    expected = np.zeros(data.shape)
    for (top, left), (rows, columns), in_padded in windows(data.shape[2:], pool, grad.shape[2:]):
        share = grad[:, :, top, left] / (in_padded if counts else len(rows) * len(columns))
        for row, column in product(rows, columns):
            expected[:, :, row, column] += share
    np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize(
    ("attrs", "divides"),
    [
        ({"count_include_pad": False}, False),
        ({"count_include_pad": True}, False),
        ({"count_include_pad": True, "padding": (1, 1)}, False),
        ({"count_include_pad": False, "padding": (1, 1)}, True),
        ({"count_include_pad": False, "padding": (0, 0, 0, 1)}, True),
        ({"count_include_pad": True, "padding": (1, 1, 1, 0), "ceil_mode": True}, True),
        ({"count_include_pad": False, "strides": (3, 3), "ceil_mode": True}, True),
        ({"count_include_pad": False, "strides": (2, 3), "ceil_mode": False}, False),
        ({"count_include_pad": False, "strides": (2, 2), "ceil_mode": True}, False),
    ],
)
def test_windows_are_counted_where_some_have_fewer_elements(attrs, divides):
    attrs = {"pool_size": (2, 2), "strides": (2, 2), **attrs}
    x = relay.var("x", shape=(1, 3, 4, 4))
    grad = relay.var("g", type_annotation=relay.transform.InferTypeLocal(relay.nn.avg_pool2d(x, **attrs)))
    program = relay.IRModule.from_expr(relay.Function([grad, x], relay.nn.avg_pool2d_grad(grad, x, **attrs)))
    assert ("relay.divide" in str(lower(program))) == divides


def test_gradients_of_pools_in_another_layout():
    for kind in ("max", "avg"):
        attrs, data, grad = _pooled(POOLS[0], kind)
        operator = getattr(relay.nn, f"{kind}_pool2d_grad")
        found = evaluated(lambda g, x: operator(g, x, **attrs, layout="NHWC"), *(a.transpose(0, 2, 3, 1).copy() for a in (grad, data)))  # noqa: B023 (called at once)
        np.testing.assert_allclose(found.transpose(0, 3, 1, 2), evaluated(lambda g, x: operator(g, x, **attrs), grad, data), **CLOSE)  # noqa: B023


@both_ways
@pytest.mark.parametrize(
    ("groups", "own", "out", "attrs", "is_last"),
    [
        (1, 3, 4, {"strides": (2, 1), "padding": (1, 0, 0, 1)}, False),
        (2, 4, 6, {"dilation": (1, 2), "padding": (1, 1)}, True),
        (3, 3, 3, {"strides": (2, 2), "padding": (1, 1)}, False),
    ],
)
def test_conv2d_backward_weight(groups, own, out, attrs, is_last, run):
    kernel, data = (3, 2), values((2, own, 7, 6))
    weight = relay.var("w", shape=(out, own // groups, *kernel))
    forward = relay.nn.conv2d(relay.var("x", shape=data.shape), weight, groups=groups, channels=out, kernel_size=kernel, **attrs)
    grad = values(tuple(map(int, relay.transform.InferTypeLocal(forward).shape)), seed=1)
    expected = np.zeros((out, own // groups, *kernel))
    (sy, sx), (dy, dx) = attrs.get("strides", (1, 1)), attrs.get("dilation", (1, 1))
    top, left, bottom, right = attrs["padding"] if len(attrs["padding"]) == 4 else attrs["padding"] * 2
    padded = np.pad(data.astype(np.float64), [(0, 0), (0, 0), (top, bottom), (left, right)])
    for o, i, ky, kx in np.ndindex(expected.shape):
        at = i + o // (out // groups) * (own // groups)
        seen = padded[:, at, ky * dy :: sy, kx * dx :: sx][:, : grad.shape[2], : grad.shape[3]]
        expected[o, i, ky, kx] = (seen * grad[:, o]).sum()
    given, order = [grad, data], (0, 1, 2, 3)
    if is_last:
        attrs = {**attrs, "grad_layout": "NHWC", "data_layout": "NHWC", "kernel_layout": "HWIO"}
        given, order = [a.transpose(0, 2, 3, 1).copy() for a in given], (3, 2, 0, 1)

    def made(g, x):
        return relay.nn.conv2d_backward_weight(g, x, groups=groups, channels=out, kernel_size=kernel, **attrs)

    np.testing.assert_allclose(run(made, *given, shapes=unknown(is_last, *given)).transpose(order), expected, **CLOSE)


@pytest.mark.parametrize("name", ["max_pool2d_grad", "avg_pool2d_grad"])
def test_parts_of_windows_at_the_end_count_only_where_wanted(name):
    x = relay.var("x", shape=(1, 2, 5, 7))
    for ceil, shape in (({}, (2, 3)), ({"ceil_mode": True}, (3, 4))):
        grad = relay.var("grad", shape=(1, 2, *shape))
        made = getattr(relay.nn, name)(grad, x, pool_size=(2, 2), strides=(2, 2), **ceil)
        assert relay.transform.InferTypeLocal(made) == relay.TensorType((1, 2, 5, 7))


def test_errors():
    x, g = relay.var("x", shape=(2, 3, 6, 6)), relay.var("g", shape=(2, 3, 2, 2))
    with pytest.raises(RelayError, match="expected"):
        relay.transform.InferTypeLocal(relay.nn.max_pool2d_grad(g, x, pool_size=(2, 2), strides=(2, 2)))
    with pytest.raises(RelayError, match="kernel_size: expected the size of the weight"):
        relay.transform.InferTypeLocal(relay.nn.conv2d_backward_weight(g, x))
    even = relay.var("x", shape=(2, 4, 6, 6))
    for data, attrs, message in (
        (x, {"groups": 2}, r"channels of data: expected a multiple of 2 \(groups\), found 3"),
        (even, {"groups": 2}, r"channels of grad: expected a multiple of 2 \(groups\), found 3"),
        (x, {"channels": 4}, "channels: expected those of the gradient, 3, found 4"),
    ):
        with pytest.raises(RelayError, match=message):
            relay.transform.InferTypeLocal(relay.nn.conv2d_backward_weight(g, data, kernel_size=(3, 3), **attrs))
    with pytest.raises(RelayError, match="out_layout: expected the layout of the data, NCHW, found NHWC"):
        relay.transform.InferTypeLocal(relay.nn.max_pool2d_grad(g, x, pool_size=(2, 2), out_layout="NHWC"))


@pytest.mark.parametrize(
    "attrs",
    [
        {},
        {"strides": (2, 3), "padding": (1, 0, 2, 1), "output_padding": (1, 2)},
        {"strides": (2, 2), "dilation": (1, 2), "groups": 2, "data_layout": "NHWC"},
        {"strides": (1, 2), "padding": (1, 1, 1, 1), "kernel_layout": "OIHW"},
    ],
    ids=str,
)
def test_transposed_convolution(attrs):
    """The result is linear in images and weight: the product of a derivative and any other image or weight is the result for that."""
    groups, layout, kernel = attrs.get("groups", 1), attrs.get("data_layout", "NCHW"), attrs.get("kernel_layout", "IOHW")
    image, weight = values((2, 4, 5, 6)), values((4, 6 // groups, 3, 2), seed=1)
    images = [image, values(image.shape, seed=2)]
    weights = [weight, values(weight.shape, seed=3)]
    if layout == "NHWC":
        images = [np.ascontiguousarray(x.transpose(0, 2, 3, 1)) for x in images]
    if kernel == "OIHW":
        weights = [np.ascontiguousarray(w.transpose(1, 0, 2, 3)) for w in weights]
    x, w = (relay.var(name, shape=a[0].shape) for name, a in (("x", images), ("w", weights)))
    forward = relay.nn.conv2d_transpose(x, w, channels=6, kernel_size=(3, 2), **attrs)
    shape = tuple(map(int, relay.transform.InferTypeLocal(forward).shape))
    out = values(shape, seed=4)

    def total(x, w):
        return relay.sum(relay.nn.conv2d_transpose(x, w, channels=6, kernel_size=(3, 2), **attrs) * relay.const(out))

    function = relay.Function([x, w], total(x, w))
    run = relay.create_executor("graph").evaluate(relay.transform.gradient(function, mode="first_order"))
    _, (of_images, of_weight) = run(images[0], weights[0])
    for derivative, given, other in ((of_images, images, (images[1], weights[0])), (of_weight, weights, (images[0], weights[1]))):
        assert derivative.shape == given[0].shape
        expected = evaluated(total, *other)
        np.testing.assert_allclose(np.vdot(derivative.numpy().astype(np.float64), given[1]), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_steps_and_padding_that_are_left_out_are_one_and_none(kind):
    data, grad = values((1, 2, 4, 5)), values((1, 2, 3, 4), seed=1)
    given = {"pool_size": (2, 2), "strides": (1, 1), "padding": (0, 0), "layout": "NCHW", "ceil_mode": False}
    given |= {"count_include_pad": False} if kind == "avg" else {}
    name = f"nn.{kind}_pool2d_grad"
    found, expected = (
        evaluated(lambda g, x, a=attrs: relay.op.call(name, g, x, **a), grad, data) for attrs in ({"pool_size": (2, 2)}, given)
    )
    np.testing.assert_array_equal(found, expected)
