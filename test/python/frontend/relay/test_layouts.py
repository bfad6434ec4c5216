"""ConvertLayout and AlterOpLayout: programs mean the same, and layouts change where they are to."""

import numpy as np
import pytest
from oracle import values

import relayc
from relayc import relay
from relayc.frontend.relay.op import registered
from relayc.frontend.relay.passes.layout_rules import KEY, InferCorrectLayoutOutput
from relayc.frontend.relay.passes.layouts import Layout, transformed_like, with_ones

transform, nn = relay.transform, relay.nn


def convert(body, desired, *more):
    mod = relay.IRModule.from_expr(body)
    return transform.Sequential([transform.InferType(), *more, transform.ConvertLayout(desired)])(mod)["main"]


def transforms(function):
    found = []
    relay.analysis.post_order_visit(function, lambda node: found.append(node) if isinstance(node, relay.Call) else None)
    return [f"{n.attrs.src_layout}-{n.attrs.dst_layout}" for n in found if n.op.name == "layout_transform"]


def check(body, desired, expected):
    """The transforms of the program in other layouts, which gives the same results."""
    before = relay.Function(relay.analysis.free_vars(body), body)
    after = convert(body, desired)
    assert sorted(transforms(after)) == sorted(expected)
    params = [relay.Var(p.name_hint, p.type_annotation) for p in after.params]
    both = relay.Function(params, relay.Tuple([before(*params), after(*params)]))
    data = [values(p.type_annotation.concrete_shape, p.type_annotation.dtype) for p in params]
    wanted, found = (r if isinstance(r, list) else [r] for r in relay.create_executor("graph").evaluate(both)(*data))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-4)


def image(name="x", channels=4, size=6):
    return relay.var(name, shape=(2, size, size, channels))


def conv(x, out=8, inputs=4, name="w"):
    weight = relay.var(name, shape=(3, 3, inputs, out))
    return nn.conv2d(x, weight, channels=out, kernel_size=(3, 3), padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO")


NCHW = {"nn.conv2d": ["NCHW", "default"]}
IN, OUT = ["NHWC-NCHW", "HWIO-OIHW"], ["NCHW-NHWC"]
FOLLOWERS = {
    "relu": (lambda y: nn.relu(y), OUT),
    "bias": (lambda y: nn.bias_add(y, relay.var("b", shape=(8,)), axis=-1), ["NHWC-NCHW", *OUT]),
    "number": (lambda y: y * relay.const(2.0) + relay.const(np.full((1, 1), 3, "float32")), OUT),
    "vector": (lambda y: relay.var("v", shape=(6, 8)) - y, ["NHWC-NCHW", *OUT]),
    "pool": (lambda y: nn.avg_pool2d(y, (2, 2), layout="NHWC"), OUT),
    "batch_norm": (lambda y: nn.batch_norm(y, *(relay.const(np.linspace(1, 2, 8, dtype="float32")) for _ in range(4)), axis=3)[0], OUT),
    "pad": (lambda y: nn.pad(y, ((0, 0), (1, 0), (0, 2), (0, 0))), OUT),
    "sum": (lambda y: relay.sum(y, axis=(1, 2)), []),
    "mean": (lambda y: relay.mean(y, axis=3, keepdims=True), OUT),
    "others": (lambda y: relay.max(y, axis=(0, -1), exclude=True), []),
    "argmax": (lambda y: relay.argmax(y, axis=-1), []),
    "split": (lambda y: relay.Tuple(list(relay.split(y, [3], axis=3))), OUT * 2),
    "concatenate": (lambda y: relay.concatenate([y, relay.exp(y)], axis=-1), OUT),
    "slice": (lambda y: relay.strided_slice(y, begin=[0, 1], end=[2, 5, 6], strides=[1, 2, 1, 3]), OUT),
    "sliced axes": (lambda y: relay.strided_slice(y, begin=[2, 1], end=[6, 4], axes=[3, 1]), OUT),
    "transpose": (lambda y: relay.transpose(y, [0, 3, 1, 2]), []),
    "flat": (lambda y: nn.batch_flatten(y), OUT),
    "topk": (lambda y: relay.topk(y, k=3, axis=3, ret_type="values"), OUT),
    "shared": (lambda y: relay.Tuple([nn.batch_flatten(y), nn.relu(y), y]), OUT * 2),
    "branches": (lambda y: conv(nn.relu(y), 8, 8, "w2") + y, ["HWIO-OIHW", *OUT]),
}


@pytest.mark.parametrize("name", FOLLOWERS)
def test_operators_follow(name):
    follow, expected = FOLLOWERS[name]
    check(follow(conv(image())), NCHW, IN + expected)


def test_squeezed_axes_are_those_of_the_program():
    x = relay.var("x", shape=(2, 1, 5, 4))
    check(relay.squeeze(conv(x), [1]), NCHW, [*IN, "NCW-NWC"])
    check(relay.squeeze(conv(relay.var("x", shape=(1, 1, 5, 4)))), NCHW, [*IN, "CW-WC"])


def test_each_operator_has_the_layout_that_is_desired():
    pooled = nn.max_pool2d(nn.relu(conv(image())), (2, 2), layout="NHWC")
    check(pooled, {**NCHW, "nn.max_pool2d": ["NHWC"]}, IN + OUT)
    check(pooled, {"nn.max_pool2d": ["NCHW"]}, ["NHWC-NCHW", "NCHW-NHWC"])
    check(conv(image()), {"nn.conv2d": ["NHWC", "OHWI"]}, ["HWIO-OHWI"])
    check(nn.conv2d(relay.var("x", shape=(1, 8, 5, 5)), relay.var("w", shape=(8, 1, 3, 3)), groups=8, channels=8, kernel_size=(3, 3)),
          {"nn.conv2d": ["NHWC", "default"]}, ["NCHW-NHWC", "OIHW-HWOI", "NHWC-NCHW"])  # fmt: skip
    with pytest.raises(relayc.RelayError, match="expected a layout of the weight for the data layout NCWH, found default"):
        convert(conv(image()), {"nn.conv2d": ["NCWH", "default"]})


def test_split_layouts_and_weights():
    check(nn.relu(conv(image(channels=8), 8, 8)), {"nn.conv2d": ["NCHW4c", "OIHW2i4o"]}, ["NHWC-NCHW4c", "HWIO-OIHW2i4o", "NCHW4c-NHWC"])


def test_convolutions_are_left_by_number():
    body = conv(conv(image(), name="a"), 8, 8, name="b")
    with transform.LayoutConfig(skip_layers=[0]):
        after = convert(body, NCHW)
    assert transforms(after)[-1:] == OUT and nn_layouts(after) == ["NHWC", "NCHW"]
    assert transform.LayoutConfig.current is None


def nn_layouts(function):
    found = []
    relay.analysis.post_order_visit(function, lambda node: found.append(node) if isinstance(node, relay.Call) else None)
    return [node.attrs.data_layout for node in found if node.op.name == "nn.conv2d"]


@pytest.fixture
def attributes():
    """Attributes of operators, which are taken away afterwards."""
    before = dict(registered._ATTRS)
    yield registered.register_op_attr
    registered._ATTRS.clear()
    registered._ATTRS.update(before)


def test_operators_are_altered(attributes):
    def alter(attrs, args, types, out_type):
        assert [type_.concrete_shape[-1] for type_ in types] == [4, 8] and out_type.concrete_shape == (2, 6, 6, 8)
        return nn.conv2d(args[0], args[1] * relay.const(2.0), **{**attrs, "data_layout": "NCHW4c", "kernel_layout": "OIHW4o"})

    def doubled(attrs, args, types, out_type):
        return relay.tanh(args[0])

    attributes("nn.conv2d", "FTVMAlterOpLayout", alter)
    attributes("reverse", "FTVMAlterOpLayout", doubled)  # an operator without a rule
    body = relay.reverse(nn.relu(conv(image())), 0)
    before = relay.IRModule.from_expr(body)
    after = transform.Sequential([transform.InferType(), transform.AlterOpLayout()])(before)["main"]
    assert sorted(transforms(after)) == ["HWIO-OIHW4o", "NCHW4c-NHWC", "NHWC-NCHW4c"]
    x, w = values((2, 6, 6, 4)), values((3, 3, 4, 8))
    expected = relay.create_executor("graph").evaluate(relay.Function(relay.analysis.free_vars(body), relay.tanh(body.args[0])))(x, 2 * w)
    np.testing.assert_allclose(relay.create_executor("graph").evaluate(after)(x, w).numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_rules_and_conversions_are_registered(attributes):
    seen = []

    def rule(attrs, new, old, types):
        seen.append((new and new[0], old[0]))
        return InferCorrectLayoutOutput([old[0]], [old[0]], attrs)  # stays

    attributes("nn.relu", KEY, rule)

    def converted(attrs, args, types, desired):
        seen.append(desired)
        return nn.max_pool2d(args[0], (2, 2), layout=desired[0], out_layout=desired[0])

    attributes("nn.max_pool2d", "FTVMConvertOpLayout", converted)
    after = convert(nn.relu(nn.max_pool2d(image(), (2, 2), layout="NHWC")), {"nn.max_pool2d": ["NCHW"]})
    assert transforms(after) == ["NHWC-NCHW", "NCHW-NHWC"] and seen == [["NCHW"], (None, Layout("NHWC")), (Layout("NCHW"), Layout("NHWC"))]
    attributes("nn.relu", KEY, lambda attrs, new, old, types: InferCorrectLayoutOutput([], [old[0]], attrs))
    with pytest.raises(relayc.RelayError, match=r"nn.relu: FInferCorrectLayout: expected 1 layouts of operands, found 0"):
        convert(nn.relu(image()), {})


def test_biases_are_added():
    x, b = relay.var("x", shape=(2, 8, 3, 3)), relay.var("b", shape=(8,))
    found = transform.CanonicalizeOps()(relay.IRModule.from_expr(nn.bias_add(x, b)))["main"]
    relay.assert_structural_equal(
        found, transform.InferType()(relay.IRModule.from_expr(relay.Function([x, b], relay.add(x, relay.expand_dims(b, 1, 2)))))["main"]
    )


@pytest.mark.parametrize(
    ("old", "before", "after", "expected"),
    [
        ("NW", "NC", "NC1c", "NW1w"),
        ("W", "NC", "NC1c", "NW1w"),
        ("HWC", "NHWC", "NCHW", "NCHW"),
        ("C", "NCHW", "NCHW4c", "NAHC4a"),
        ("NN", "NC", "CN", None),
    ],
)
def test_layouts_follow_those_that_they_broadcast_with(old, before, after, expected):
    found = transformed_like(Layout(old), Layout(before), Layout(after))
    assert found == (None if expected is None else Layout(expected))


def test_broadcast_axes_have_inner_parts_of_one():
    assert with_ones(Layout("NCHW16c"), Layout("NHWC"), (1, 5, 5, 1)) == Layout("NCHW1c")
    assert with_ones(Layout("NCHW16c"), Layout("NHWC"), (1, 5, 5, 32)) == Layout("NCHW16c")
    assert str(Layout("OIHW16i4o").part(1, 5)) == "IHW16i" and Layout("NCHW4c").rank == 4


@pytest.mark.parametrize(
    ("layout", "desired", "expected"), [("NHWC", ["NCHW", "default"], "NHWC"), ("NCHW", ["NCHW4c", "OIHW4i4o"], "NCHW4c")]
)
def test_upsampling_follows_where_its_axes_stay(layout, desired, expected):
    """As in TVM: rows and columns are where they are in the layout of the program."""
    y = nn.relu(nn.conv2d(relay.var("x", shape=(2, 4, 4, 4)), relay.var("w", shape=(4, 4, 1, 1)), data_layout="NCHW"))
    if layout == "NHWC":
        y = conv(image())
    after = convert(nn.upsampling(y, 2, 2, layout=layout), {"nn.conv2d": desired})
    found = []
    relay.analysis.post_order_visit(after, lambda node: found.append(node) if isinstance(node, relay.Call) else None)
    assert [node.attrs.layout for node in found if node.op.name == "nn.upsampling"] == [expected]
