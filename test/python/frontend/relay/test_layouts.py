"""ConvertLayout and AlterOpLayout: programs mean the same, and layouts change where they are to."""

import numpy as np
import pytest
from oracle import values

import relayc
from relayc import relay
from relayc.frontend.relay.op import registered
from relayc.frontend.relay.passes.layout_rules import KEY, InferCorrectLayoutOutput, inferred
from relayc.frontend.relay.passes.layouts import Layout, expanded, transformed_like, with_ones

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
    "row": (lambda y: relay.var("row", shape=(1, 8)) - y, ["NHWC-NCHW", *OUT]),
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


STAYING = {
    *("flat", "dense", "transpose", "more axes", "resize", "roi_align", "slice like another image", "slice like a constant"),
    *("split in a block", "parts in a block", "slice that begins in a block", "slice that ends in a block", "slice with steps"),
    *("normalized channels", "batch_norm in blocks", "group_norm", "topk of channels", "padded channels", "prelu", "requantized channels"),
}
"""Those that have their operand in the layout of the program; the results of others are transformed."""


def _fields(expr):
    return expr.fields if isinstance(expr, relay.Tuple) else [expr]


def _last(expr):
    return expr.op.name if isinstance(expr, relay.Call) else ""


def together(y, followers, desired, inputs, is_run=True):
    """Checks expressions of an image: by themselves which transforms they have but for those of its operands, in one program what they
    give."""
    parts = {name: follow(y) for name, (follow, _) in followers.items()}
    after = {name: convert(part, desired) for name, part in parts.items()}
    found = {name: transforms(function) for name, function in after.items()}
    for made in found.values():
        for each in inputs:
            made.remove(each)
    at_end = {name for name, function in after.items() if "layout_transform" in map(_last, _fields(function.body))}
    assert at_end == {name for name, (_, expected) in followers.items() if expected} - STAYING
    assert {name: sorted(made) for name, made in found.items()} == {name: sorted(expected) for name, (_, expected) in followers.items()}
    if is_run:
        whole = relay.Tuple([field for part in parts.values() for field in _fields(part)])
        check(whole, desired, transforms(convert(whole, desired)))


@pytest.mark.parametrize("is_run", [False, True], ids=["layouts", "results"])
def test_operators_follow(is_run):
    together(conv(image()), FOLLOWERS, NCHW, IN, is_run)


def test_sums_of_no_axis_have_the_new_layout():
    for body in (relay.sum(conv(image()), axis=()), relay.sum(conv(image()), axis=(0, 1, 2, 3), exclude=True)):
        found = convert(body, NCHW).body
        assert [found.op.name, found.args[0].op.name] == ["layout_transform", "sum"]
    check(body, NCHW, IN + OUT)


def test_padding_is_of_the_new_layout():
    found = convert(nn.pad(conv(image()), ((0, 0), (1, 0), (0, 2), (3, 4))), NCHW).body
    pad = found.args[0]
    assert (found.op.name, pad.op.name) == ("layout_transform", "nn.pad")
    assert [tuple(width) for width in pad.attrs.pad_width] == [(0, 0), (3, 4), (1, 0), (0, 2)]


def vector(size=16):
    return relay.const(np.linspace(1, 2, size, dtype="float32"))


BACK = ["NCHW4c-NCHW"]
BLOCKED = {  # of images with 16 channels, NCHW in the program and NCHW4c afterwards
    "split between blocks": (lambda y: relay.Tuple(list(relay.split(y, [4, 12], axis=-3))), BACK * 3),
    "split in a block": (lambda y: relay.Tuple(list(relay.split(y, [4, 6], axis=1))), BACK),
    "split rows": (lambda y: relay.Tuple(list(relay.split(y, [3], axis=2))), BACK * 2),
    "parts of blocks": (lambda y: relay.Tuple(list(relay.split(y, 4, axis=1))), BACK * 4),
    "parts in a block": (lambda y: relay.Tuple(list(relay.split(y, 8, axis=1))), BACK),
    "slice": (lambda y: relay.strided_slice(y, [0, 4], [2, 12]), BACK),
    "slice that begins in a block": (lambda y: relay.strided_slice(y, [0, 3], [2, 12]), BACK),
    "slice that ends in a block": (lambda y: relay.strided_slice(y, [0, 4], [2, 11]), BACK),
    "slice with steps": (lambda y: relay.strided_slice(y, [0, 0], [2, 16], [1, 4]), BACK),
    "slice with ends alone": (lambda y: relay.strided_slice(y, [0], [2, 8]), BACK),
    "slice with beginnings alone": (lambda y: relay.strided_slice(y, [0, 4, 1], [2]), BACK),
    "slice with steps of rows": (lambda y: relay.strided_slice(y, [0, 4, 1], [2, 12, 6], [1, 1, 2]), BACK),
    "slice of sizes": (lambda y: relay.strided_slice(y, [0, 4, 1], [-1, 8, -1], slice_mode="size"), BACK),
    "slice of the rest": (lambda y: relay.strided_slice(y, [4], [-1], axes=[-3], slice_mode="size"), BACK),
    "slice from the end": (lambda y: relay.strided_slice(y, [-12, 1], [-4, 4], axes=[1, 3]), BACK),
    "slice like": (lambda y: relay.slice_like(y, relay.strided_slice(y, [0, 0, 0], [2, 4, 2]), axes=[1, 2]), BACK),
    "slice like another image": (lambda y: relay.slice_like(y, nn.max_pool2d(relay.var("z", shape=(1, 2, 3, 3))), axes=[2, 3]), BACK),
    "slice like a constant": (lambda y: relay.slice_like(y, relay.const(np.zeros((1, 4, 3, 3), "float32")), axes=[2, 3]), BACK),
    "normalized rows": (lambda y: nn.l2_normalize(y, 1e-5, axis=[2, -1]), BACK),
    "normalized channels": (lambda y: nn.l2_normalize(y, 1e-5, axis=[1]), BACK),
    "batch_norm in blocks": (lambda y: nn.batch_norm(y, *[vector()] * 4, axis=1)[0], BACK),
    "layer_norm": (lambda y: nn.layer_norm(y, vector(6), vector(6), axis=-1), BACK),
    "group_norm": (lambda y: nn.group_norm(y, vector(), vector(), num_groups=2, axis=1), BACK),
    "topk of rows": (lambda y: relay.Tuple(list(relay.topk(y, k=2, axis=2))), BACK * 2),
    "topk of channels": (lambda y: relay.Tuple(list(relay.topk(y, k=2, axis=1))), BACK),
    "mean and variance": (lambda y: relay.mean_variance(y, axis=[2, 3]).astuple(), ["NC4c-NC"] * 2),
    "mean and variance of channels": (lambda y: relay.mean_variance(y, axis=1).astuple(), []),
    "mean and deviation": (lambda y: relay.mean_std(y, axis=1, keepdims=True).astuple(), ["NCHW1c-NCHW"] * 2),
    "sum of all but channels": (lambda y: relay.sum(y, axis=[1], exclude=True), ["C4c-C"]),
    "padded rows": (lambda y: nn.pad(y, ((0, 0), (0, 0), (1, 2), (0, 1))), BACK),
    "padded channels": (lambda y: nn.pad(y, ((0, 0), (4, 0), (0, 0), (0, 1))), BACK),
    "concatenated channels": (lambda y: relay.concatenate([y, relay.exp(y)], axis=1), BACK),
    "prelu": (lambda y: nn.prelu(y, vector(), axis=1), BACK),
    "resize": (lambda y: relay.image.resize2d(y, (4, 9), None, "NCHW", "linear"), BACK),
    "roi_align": (
        lambda y: relay.vision.roi_align(y, relay.const(np.array([[1, 1, 2, 5, 4]], "float32")), (2, 2), 1.0, layout="NCHW"),
        BACK,
    ),
    "dense": (lambda y: nn.dense(nn.batch_flatten(y), relay.const(values((3, 576)))), BACK),
    "qnn.add": (lambda y: relay.qnn.op.add(*[relay.cast(y, "int8")] * 2, *map(relay.const, (0.5, 1, 0.25, 2, 0.5, 0))), BACK),
    "requantize": (lambda y: relay.qnn.op.requantize(relay.cast(y, "int32"), *map(relay.const, (0.5, 0, 0.25, 1)), axis=1), BACK),
    "requantized channels": (
        lambda y: relay.qnn.op.requantize(relay.cast(y, "int32"), vector(), *map(relay.const, (0, 0.25, 1)), axis=1),
        BACK,
    ),
    "fewer axes": (lambda y: relay.sum(y, axis=0) * y, BACK),
    "one channel": (lambda y: relay.sum(y, axis=1, keepdims=True) + y, ["NCHW4c-NCHW1c", "NCHW1c-NCHW"]),
    "more axes": (lambda y: relay.const(values((3, 1, 16, 6, 6))) - y, BACK),
    "transpose": (lambda y: relay.transpose(y, [0, -2, -1, 1]), BACK),
    "tuples in tuples": (lambda y: relay.TupleGetItem(relay.TupleGetItem(relay.Tuple([relay.Tuple([y, y]), y]), 0), 1), BACK),
}


@pytest.mark.parametrize("is_run", [False, True], ids=["layouts", "results"])
def test_operators_follow_in_blocks(is_run):
    y = nn.conv2d(relay.var("x", shape=(2, 8, 6, 6)), relay.var("w", shape=(16, 8, 1, 1)))
    together(y, BLOCKED, {"nn.conv2d": ["NCHW4c", "OIHW4i4o"]}, ["NCHW-NCHW4c", "OIHW-OIHW4i4o"], is_run)


def test_slices_of_no_channel_stay_empty():
    y = nn.conv2d(relay.var("x", shape=(2, 8, 6, 6)), relay.var("w", shape=(16, 8, 1, 1)))
    found = convert(relay.strided_slice(y, [0, 4], [-1, 0], slice_mode="size"), {"nn.conv2d": ["NCHW4c", "OIHW4i4o"]}).body
    assert found.op.name == "layout_transform" and found.args[0].op.name == "strided_slice"
    assert relay.transform.InferTypeLocal(found) == relay.TensorType((2, 0, 6, 6))


def test_splits_of_the_blocks_of_a_program_stay():
    x, w = relay.var("x", shape=(1, 2, 3, 3, 4)), relay.var("w", shape=(8, 2, 1, 1, 4, 4))
    layouts = {"data_layout": "NCHW4c", "kernel_layout": "OIHW4i4o", "out_layout": "NCHW4c"}
    y = nn.contrib_conv2d_nchwc(x, w, channels=32, kernel_size=(1, 1), **layouts)
    check(relay.Tuple([*relay.split(y, [4], axis=1), *relay.split(y, [2], axis=4)]), NCHW, [])


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
    one = nn.conv2d(relay.var("x", shape=(1, 1, 5, 5)), relay.var("w", shape=(8, 1, 3, 3)), channels=8, kernel_size=(3, 3))
    assert sorted(transforms(convert(one, {"nn.conv2d": ["NHWC", "default"]}))) == ["NCHW-NHWC", "NHWC-NCHW", "OIHW-HWIO"]
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


def test_calls_that_are_not_altered(attributes):
    y = nn.relu(image())
    mod = transform.InferType()(relay.IRModule.from_expr(y))
    attributes("nn.relu", "FTVMAlterOpLayout", lambda attrs, args, types, out_type: args[0])  # no call
    relay.assert_structural_equal(transform.AlterOpLayout()(mod), mod)
    attributes("nn.relu", "FTVMAlterOpLayout", lambda attrs, args, types, out_type: relay.split(args[0], 2).astuple(), 11)
    with pytest.raises(relayc.RelayError, match=r"nn\.relu: expected a call with as many results, found split"):
        transform.AlterOpLayout()(relay.IRModule.from_expr(nn.relu(nn.max_pool2d(image(), (1, 1), layout="NHWC"))))


def test_operators_without_a_rule_may_stay(attributes):
    mod = transform.InferType()(relay.IRModule.from_expr(relay.reverse(nn.relu(image()), 0)))
    attributes("reverse", "FTVMAlterOpLayout", lambda attrs, args, types, out_type: None)
    relay.assert_structural_equal(transform.AlterOpLayout()(mod), mod)


def test_what_is_not_converted():
    assert transforms(convert(nn.relu(conv(image())), {**NCHW, "nn.relu": ["NCHW"]})) == IN + OUT  # it follows
    number = relay.const(np.full((1, 1), 3, "float32"))
    assert "expand_dims" not in str(convert(conv(image()) * number, NCHW))
    odd = nn.conv2d(relay.var("x", shape=(1, 6, 5, 5)), relay.var("w", shape=(8, 6, 1, 1)))
    assert transforms(convert(odd, {"nn.conv2d": ["NCHW4c", "OIHW4i4o"]})) == []
    nested = relay.op.call("annotation.stop_fusion", relay.Tuple([relay.Tuple([nn.relu(conv(image()))]), relay.var("y", shape=(2,))]))
    assert sorted(transforms(convert(nested, NCHW))) == sorted(IN + OUT)
    other = nn.max_pool2d(conv(image()), (2, 2), layout="NCHW")  # of axes that the program calls by other letters
    check(other, NCHW, IN + OUT)


IMAGE = relay.TensorType((2, 6, 7, 8))


BLOCKS = relay.var("x", relay.TensorType((2, 16, 6, 6)))


def sliced(begin, end, expected, **attrs):
    """A slice of an image NCHW, and the bounds of it in NCHW4c."""
    call = relay.strided_slice(BLOCKS, begin, end, **attrs)
    bounds = expected and ("NCHW4c", "NCHW4c", dict(zip(("begin", "end"), expected, strict=True)))
    return call, "NCHW", "NCHW4c", bounds


def requantized(scales, axis):
    number = relay.const(1)
    scale = relay.const(np.array(scales, "float32").squeeze())
    return relay.qnn.op.requantize(relay.var("x", IMAGE), scale, number, number, number, axis)


RULES = {
    "a rule for no operand": (relay.cumsum(relay.var("x")), "NHWC", "NCHW", None),
    "parts": (relay.split(relay.var("x"), (3,), axis=2).astuple(), "NHWC", "NCHW", ("NCHW", "NCHW", "NCHW", {"axis": 3})),
    "parts along an axis that is gone": (relay.split(relay.var("x"), 2, axis=1).astuple(), "NHWC", "NCW", None),
    "an axis that is gone": (relay.squeeze(relay.var("x"), (1,)), "NHWC", "NCW", None),
    "slices in another order": (
        relay.strided_slice(relay.var("x"), [0, 1], [2, 5, 6], [1, 2, 1, 3]),
        "NHWC",
        "NCHW",
        ("NCHW", "NCHW", {"begin": [0, 0, 1, 0], "end": [2, 8, 5, 6], "strides": [1, 3, 2, 1]}),
    ),
    "slices of some axes in another order": (
        relay.strided_slice(relay.var("x"), [0, 1], [2, 5], [1, 2]),
        "NHWC",
        "NCHW",
        ("NCHW", "NCHW", {"begin": [0, 0, 1, 0], "end": [2, 8, 5, 7], "strides": [1, 1, 2, 1]}),
    ),
    "slices of named axes in another order": (
        relay.strided_slice(relay.var("x"), [2, 1], [6, 4], axes=[3, -3]),
        "NHWC",
        "NCHW",
        ("NCHW", "NCHW", {"begin": [2, 1], "end": [6, 4], "axes": [1, 2]}),
    ),
    "reversed axes": (relay.transpose(relay.var("x")), "NHWC", "NCHW", ("NCHW", "CWHN", {"axes": [1, 3, 2, 0]})),
    "slices of axes of other letters": (relay.strided_slice(relay.var("x"), [0], [2], axes=[0]), "NHWC", "NHWD", None),
    "slices of blocks in another order": (relay.strided_slice(relay.var("x"), [0], [2], axes=[0]), "NHWC", "NCHW4c", None),
    "sums in a layout of fewer axes": (relay.sum(relay.var("x"), (1,)), "NHW", "NWH", None),
    "slices of fewer axes": (relay.strided_slice(relay.var("x"), [0], [2], axes=[0]), "NHWC", "NHW", ("NHWC", "NHWC", {})),
    "operands in several layouts": (relay.add(relay.var("x"), relay.var("y")), "NHWC NCHW", "", ("NHWC", "NCHW", "NHWC", {})),
    "a larger second operand": (relay.add(vector(8), relay.var("y")), "C NHWC", "C NCHW4c", ("NCHW4c", "NCHW4c", "NCHW4c", {})),
    "a vector of an unknown layout": (relay.add(relay.var("x"), vector(8)), "NHWC ?", "", ("NHWC", "C", "NHWC", {})),
    "an image of an unknown layout": (relay.add(relay.var("x"), relay.var("y")), "? NHWC", "", ("NHWC", "NHWC", "NHWC", {})),
    "an image that no vector determines": (relay.add(relay.var("x"), vector(8)), "? C", "", None),
    "quantized numbers": (
        relay.qnn.op.add(relay.var("x"), relay.const(np.ones((1, 1, 1, 1), "int8")), *map(relay.const, (0.5, 1, 0.25, 2, 0.5, 0))),
        "NHWC NHWC C C C C C C",
        "NCHW4c NHWC C C C C C C",
        ("NCHW4c", "NCHW1c", *"CCCCCC", "NCHW4c", {}),
    ),
    "an axis from the end": (relay.topk(relay.var("x"), 1, -4).astuple(), "NCHW", "NHWC", ("NHWC", "NHWC", "NHWC", {"axis": 0})),
    "an axis behind a layout": (relay.topk(relay.var("x"), 1, 4).astuple(), "NCHW", "NHWC", None),
    "slices of blocks": sliced([0, 4], [2, 12], ([0, 1], [2, 3])),
    "slices of blocks by ends": sliced([0], [2, 8], ([0, 0], [2, 2])),
    "slices of blocks by beginnings": sliced([0, 4, 1], [2], ([0, 1, 1], [2, 4, 6])),
    "slices of blocks by sizes": sliced([0, 4, 1], [-1, 8, -1], ([0, 1, 1], [-1, 2, -1]), slice_mode="size"),
    "slices of the last blocks": sliced([4], [-1], ([1], [3]), axes=[-3], slice_mode="size"),
    "slices from the end": sliced([-12, 1], [-4, 4], ([-3, 1], [-1, 4]), axes=[1, 3]),
    "slices of parts of blocks": sliced([0, 4], [2, 10], None),
    "slices with steps of blocks": sliced([0, 0], [2, 16], None, strides=[1, 4]),
    "slices with steps of rows": sliced([0, 4, 1], [2, 12, 6], ([0, 1, 1], [2, 3, 6]), strides=[1, 1, 2]),
    "slices with steps of blocks of one": (
        relay.strided_slice(BLOCKS, [0, 1], [2, 9], [1, 4]),
        "NCHW",
        "NCHW1c",
        ("NCHW1c", "NCHW1c", {"begin": [0, 1], "end": [2, 9]}),
    ),
    "parts of several blocks": (
        relay.split(BLOCKS, (4, 12), 1).astuple(),
        "NCHW",
        "NCHW4c",
        ("NCHW4c",) * 4 + ({"indices_or_sections": (1, 3)},),
    ),
    "parts of several pairs": (
        relay.split(BLOCKS, (4, 12), 1).astuple(),
        "NCHW",
        "NCHW2c",
        ("NCHW2c",) * 4 + ({"indices_or_sections": (2, 6)},),
    ),
    "parts within blocks": (relay.split(BLOCKS, (4, 6), 1).astuple(), "NCHW", "NCHW4c", ("NCHW",) * 4 + ({"indices_or_sections": (4, 6)},)),
    "equal parts of blocks": (relay.split(BLOCKS, 4, -3).astuple(), "NCHW", "NCHW4c", ("NCHW4c",) * 5 + ({"axis": 1},)),
    "equal parts within blocks": (relay.split(BLOCKS, 8, 1).astuple(), "NCHW", "NCHW4c", ("NCHW",) * 9 + ({"axis": 1},)),
    "padding of blocks": (
        nn.pad(BLOCKS, ((1, 0), (0, 0), (1, 2), (0, 3))),
        "NCHW 1",
        "NCHW4c 1",
        ("NCHW4c", "1", "NCHW4c", {"pad_width": [(1, 0), (0, 0), (1, 2), (0, 3), (0, 0)]}),
    ),
    "padding within blocks": (nn.pad(BLOCKS, ((0, 0), (0, 4), (0, 0), (0, 0))), "NCHW 1", "NCHW4c 1", ("NCHW", "1", "NCHW", {})),
    "padding in a layout of fewer axes": (nn.pad(BLOCKS, ((0, 0), (0, 0), (0, 0), (0, 1))), "NCHW 1", "NCHWD 1", ("NCHW", "1", "NCHW", {})),
    "sums of blocks": (relay.sum(BLOCKS, 1), "NCHW", "NCHW4c", ("NCHW4c", "NHW", {"axis": [1, 4]})),
    "sums of an axis from the end": (relay.sum(BLOCKS, [-1]), "NCHW", "NCHW4c", ("NCHW4c", "NCH4c", {"axis": [3]})),
    "sums of all but blocks": (relay.sum(BLOCKS, [1], exclude=True), "NCHW", "NCHW4c", ("NCHW4c", "C4c", {"axis": [1, 4]})),
    "sums that keep axes": (relay.sum(BLOCKS, [1, 2], True), "NCHW", "NHWC", ("NHWC", "NHWC", {"axis": [1, 3]})),
    "sums that keep blocks": (relay.sum(BLOCKS, 1, True), "NCHW", "NCHW4c", ("NCHW4c", "NCHW1c", {"axis": [1, 4]})),
    "sums of all axes": (relay.sum(BLOCKS), "NCHW", "NCHW4c", None),
    "squeezed axes": (relay.squeeze(relay.var("x", relay.TensorType((2, 1, 7, 1)))), "NHWC", "NCHW", ("NCHW", "NW", {"axis": [2, 1]})),
    "a squeezed axis": (
        relay.squeeze(relay.var("x", relay.TensorType((2, 1, 7, 1))), [-1]),
        "NHWC",
        "NCHW",
        ("NCHW", "NHW", {"axis": [1]}),
    ),
    "axes of a transposition": (relay.transpose(BLOCKS, [0, -2, -1, 1]), "NCHW", "NHWC", ("NHWC", "NHWC", {"axes": [0, 1, 2, 3]})),
    "a transposition of blocks": (relay.transpose(BLOCKS, [0, 2, 3, 1]), "NCHW", "NCHW4c", ("NCHW", "NHWC", {"axes": [0, 2, 3, 1]})),
    "slices like others": (relay.slice_like(BLOCKS, BLOCKS, [1, 2]), "NCHW NCHW", "NHWC NHWC", ("NHWC", "NHWC", "NHWC", {"axes": [3, 1]})),
    "slices like others in another layout": (
        relay.slice_like(BLOCKS, BLOCKS, [1, 2]),
        "NCHW NCHW",
        "NHWC NCHW",
        ("NCHW", "NCHW", "NCHW", {"axes": [1, 2]}),
    ),
    "normalized axes": (nn.l2_normalize(BLOCKS, 1e-5, [1, -1]), "NCHW", "NHWC", ("NHWC", "NHWC", {"axis": [3, 2]})),
    "normalized blocks": (nn.l2_normalize(BLOCKS, 1e-5, [1]), "NCHW", "NCHW4c", None),
    "a layer of blocks": (
        nn.layer_norm(BLOCKS, vector(6), vector(6), -1),
        "NCHW C C",
        "NCHW4c C C",
        ("NCHW4c", "C", "C", "NCHW4c", {"axis": 3}),
    ),
    "greatest elements": (relay.topk(BLOCKS, 2, 2, "both").astuple(), "NCHW", "NCHW4c", ("NCHW4c", "NCHW4c", "NCHW4c", {"axis": 2})),
    "places of greatest elements": (relay.topk(BLOCKS, 2, 1, "indices"), "NCHW", "NHWC", ("NHWC", "NHWC", {"axis": 3})),
    "numbers of a requantization": (requantized([0.5], 3), "NHWC C C C C", "NCHW4c C C C C", ("NCHW4c", *"CCCC", "NCHW4c", {"axis": 1})),
    "scales of channels in blocks": (requantized([0.5] * 8, 3), "NHWC C C C C", "NCHW4c C C C C", None),
    "scales of channels": (requantized([0.5] * 8, 3), "NHWC C C C C", "NCHW C C C C", ("NCHW", *"CCCC", "NCHW", {"axis": 1})),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_of_operators(name):
    """The layouts of operands and results that a rule gives, and changed attributes; None where one is not known."""
    call, old, new, expected = RULES[name]
    types = [relay.TensorType(arg.data.shape) if isinstance(arg, relay.Constant) else arg.type_annotation or IMAGE for arg in call.args]
    before, after = ([None if text == "?" else Layout(text) for text in texts.split()] for texts in (old, new))
    found = inferred(call.op.name, call.attrs, after, before, types)
    if expected is None:
        assert found is None
    else:
        *layouts, changed = expected
        assert [*found.input_layouts, *found.output_layouts] == list(map(Layout, layouts))
        for key, value in changed.items():
            relay.assert_structural_equal(relay.Attrs({"v": found.new_attrs[key]}), relay.Attrs({"v": value}))


@pytest.mark.parametrize(
    ("axis", "layout", "is_whole"),
    [(0, "NC", True), (1, "NC", True), (-2, "NC", True), (2, "NC", False), (-3, "NC", False), (2, "NC4c", False)],
)
def test_concatenations_along_axes_of_a_layout(axis, layout, is_whole):
    """Not along a part of an axis."""
    call = relay.concatenate([relay.var("x"), relay.var("y")], axis)
    found = inferred(call.op.name, call.attrs, None, [Layout(layout)] * 2, [relay.TupleType([IMAGE] * 2)])
    assert (found.output_layouts == [Layout(layout)]) if is_whole else found is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("NHWC NHWC", "NCHW NCHW", "NCHW NCHW NCHW"),
        ("NHWC NHWC", "NCHW NHWC", "NHWC NHWC NHWC"),
        ("NHWC NHWC", "NHWC NCHW", "NHWC NHWC NHWC"),
        ("NHWC NHWC", "NCHW4c NCHW4c", "NCHW4c NCHW4c NCHW4c"),
        ("NHWC NHWC", "NHW NHW", None),
    ],
)
def test_concatenations_follow_where_all_operands_do(old, new, expected):
    call = relay.concatenate([relay.var("x"), relay.var("y")], 3)
    before, after = ([Layout(text) for text in texts.split()] for texts in (old, new))
    found = inferred(call.op.name, call.attrs, after, before, [relay.TupleType([IMAGE] * 2)])
    if expected is None:
        assert found is None
    else:
        assert [*found.input_layouts, *found.output_layouts] == [Layout(text) for text in expected.split()]
        assert found.new_attrs["axis"] == found.input_layouts[0].index("C")


def test_one_tensor_in_two_layouts():
    """The program reads its axes in two ways, or wants it in two: it is transformed twice."""
    x = relay.var("x", shape=(4, 4, 4, 4))
    both = relay.Tuple([nn.max_pool2d(x, (2, 1), layout="NHWC"), nn.avg_pool2d(x, (1, 3), layout="NCHW")])
    desired = {"nn.max_pool2d": ["NCHW4c"], "nn.avg_pool2d": ["NCHW4c"]}
    assert sorted(transforms(convert(both, desired))) == sorted(["NHWC-NCHW4c", "NCHW-NCHW4c", "NCHW4c-NHWC", "NCHW4c-NCHW"])
    both = relay.Tuple([nn.max_pool2d(x, (2, 1), layout="NHWC"), nn.avg_pool2d(x, (1, 3), layout="NHWC")])
    desired = {"nn.max_pool2d": ["NCHW4c"], "nn.avg_pool2d": ["NCHW2c"]}
    assert sorted(transforms(convert(both, desired))) == sorted(["NHWC-NCHW4c", "NHWC-NCHW2c", "NCHW4c-NHWC", "NCHW2c-NHWC"])


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
        ("NC", "NC", "NCD", None),
        ("NHWC", "NHWC", "NCHW2c", "NCHW2c"),
    ],
)
def test_layouts_follow_those_that_they_broadcast_with(old, before, after, expected):
    found = transformed_like(Layout(old), Layout(before), Layout(after))
    assert found == (None if expected is None else Layout(expected))


def test_broadcast_axes_have_inner_parts_of_one():
    assert with_ones(Layout("NCHW16c"), Layout("NHWC"), (1, 5, 5, 1)) == Layout("NCHW1c")
    assert with_ones(Layout("NCHW16c"), Layout("NHWC"), (1, 5, 5, 32)) == Layout("NCHW16c")
    assert str(Layout("OIHW16i4o").part(1, 5)) == "IHW16i" and Layout("NCHW4c").rank == 4
    assert expanded(Layout("CHW4c"), Layout("NCHW4c")) == Layout("NCHW4c") and expanded(Layout("W"), Layout("NCHW")) == Layout("NCHW")
    assert len({Layout("NCHW4c"), Layout("NCHW4c"), Layout("NCHW8c")}) == 2


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
