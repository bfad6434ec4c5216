"""Passes that run on the dialect and keep what it has no operators for; SimplifyExpr and FoldExplicitPadding of the Relay language."""

import numpy as np
import pytest
from oracle import values

import relayc
from relayc import relay

transform = relay.transform


def main_of(expr, *passes):
    return transform.Sequential(passes)(relay.IRModule.from_expr(expr))["main"]


def operators(function):
    found = []
    relay.analysis.post_order_visit(function, lambda e: found.append(e.op.name) if isinstance(e, relay.Call) else None)
    return found


def run(function, *args):
    return relay.create_executor("graph").evaluate(function)(*args).numpy()


def simplified(expr):
    with relayc.PassContext(opt_level=3):
        return main_of(expr, transform.SimplifyExpr())


def quantized(x):
    return relay.qnn.op.quantize(x, relay.const(0.25), relay.const(3), out_dtype="uint8")


def test_composed_operators_stay_around_what_changes():
    x, data = relay.var("x", shape=(2, 3)), values((2, 3))
    product = relay.exp(relay.transpose(relay.transpose(x, (1, 0)), (1, 0)))
    low, high = relay.split(quantized(product), [1], axis=1)
    program = relay.Function([x], relay.concatenate([high, relay.cast(relay.cast(low, "int32"), "uint8")], 1))
    found = simplified(program)
    assert operators(found)[:2] == ["exp", "qnn.quantize"] and "transpose" not in operators(found)
    np.testing.assert_array_equal(run(found, data), run(program, data))


@pytest.mark.parametrize(
    "name",
    ["CombineParallelDense", "FoldExplicitPadding", "FoldScaleAxis", "ForwardFoldScaleAxis", "BackwardFoldScaleAxis", "SimplifyExpr"],
)
def test_passes_on_the_dialect_keep_composed_operators(name):
    x, scale = relay.var("x", shape=(1, 2, 3, 3)), relay.const(np.float32([2, 4]).reshape(2, 1, 1))
    padded = relay.nn.pad(relay.nn.dilate(x, (1, 1, 2, 2)) * scale, ((0, 0), (0, 0), (1, 0), (1, 2)))
    conv = relay.nn.conv2d(padded, relay.const(values((2, 2, 3, 3))))
    same = relay.nn.batch_flatten(relay.negative(relay.negative(conv)))
    products = [relay.nn.dense(same, relay.const(values((3, 48), seed=seed))) for seed in range(3)]
    with relayc.PassContext(opt_level=4):
        found = main_of(relay.Tuple([conv * scale, *products]), getattr(transform, name)())
    assert "nn.dilate" in operators(found)


def test_composed_operators_on_unknown_sizes_are_written_out():
    """Also where the result's sizes are known."""
    x, y, data = relay.var("x", shape=(relay.Any(), 3)), relay.const(values((3, 4), seed=1)), values((2, 3))
    same = relay.transpose(relay.transpose(x, (1, 0)), (1, 0))
    lengths = relay.const(np.int32([1, 0, 2]))
    for made in (relay.sequence_mask(same, lengths, 5.0), relay.einsum([same, y], "ij,jk->k")):
        program = relay.Function([x], made)
        found = simplified(program)
        assert {"transpose", made.op.name}.isdisjoint(operators(found))
        np.testing.assert_allclose(run(found, data), run(program, data), rtol=1e-5)


def test_composed_operators_with_tuples():
    """Operands and results that are tuples are tuples again."""
    x, y = relay.var("x", shape=(2, 3), dtype="uint8"), relay.var("y", shape=(2, 3), dtype="uint8")
    scales = relay.Tuple([relay.const(0.5), relay.const(1.5)])
    zeros = relay.Tuple([relay.const(0), relay.const(3)])
    parts = relay.Tuple([relay.reshape(relay.reshape(x, (3, 2)), (2, 3)), y])
    joined = relay.qnn.op.concatenate(parts, scales, zeros, relay.const(1.0), relay.const(1), 1)
    program = relay.Function([x, y], joined)
    found = simplified(program)
    assert operators(found) == ["qnn.concatenate"]
    assert [type(arg).__name__ for arg in found.body.args[:3]] == ["Tuple", "Tuple", "Tuple"]
    assert found.body.args[0].fields == found.params
    first, second = (np.random.default_rng(seed).integers(0, 256, (2, 3)).astype("uint8") for seed in (1, 2))
    np.testing.assert_array_equal(run(found, first, second), run(program, first, second))


def test_functions_that_do_not_change_keep_their_form():
    x = relay.var("x", shape=(1, 2, 4, 4))
    mod = transform.InferType()(relay.IRModule.from_expr(relay.nn.pad(x, ((0, 0), (0, 0), (1, 0), (1, 2)), 1)))
    relay.assert_structural_equal(transform.DialectPass("SimplifyExpr", keeps=True)(mod), mod)
    assert list(mod["main"].body.attrs["pad_width"]) == [(0, 0), (0, 0), (1, 0), (1, 2)]


def test_passes_on_the_dialect_leave_functions_with_data_types_references_and_type_parameters():
    mod = relay.parse("""
type Shape[a] { Circle(a), Empty }
def @area(%s: Shape[Tensor[(3), float32]]) -> Tensor[(3), float32] { match? (%s) { Circle(%r) => %r * 1f } }
def @same[a](%x: a) -> a { %x }
def @plain(%x: Tensor[(3), float32]) -> Tensor[(3), float32] { exp(%x * 1f) }
def @main(%x: Tensor[(3), float32], %s: Shape[Tensor[(3), float32]]) { (ref(@area(%s)), @plain(@same(%x * 1f))) }
""")
    for step in (transform.SimplifyExpr(), transform.FuseOps()):
        found = step(mod)
        assert {var.name_hint for var in found.functions} == {"area", "same", "plain", "main"}
        for name in ("area", "same", "main"):
            relay.assert_structural_equal(found[name], mod[name])
    assert "Primitive" in str(found["plain"])
    assert operators(transform.SimplifyExpr()(mod)["plain"]) == ["exp"]


def test_types_named_by_tensors_are_attributes():
    x, like = relay.var("x", shape=(2, 3)), relay.var("like", shape=(3,), dtype="int32")
    value = relay.var("value", relay.TensorType((), "float32"))
    found = simplified(relay.Tuple([relay.full_like(like, value), relay.collapse_sum_like(x, like)])).body
    relay.assert_structural_equal(found.fields[0].attrs["shape"], (3,))
    assert [field.op.name for field in found.fields] == ["full", "collapse_sum_to"]
    assert found.fields[0].attrs["dtype"] == "int32"
    late = relay.var("late", shape=(relay.Any(), 3))
    found = simplified(relay.full_like(late, value)).body
    assert found.op.name == "full" and str(found.attrs["shape"][0]) == "late_0" and found.attrs["shape"][1] == 3


def test_functions_of_other_generators_stay():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    twice = lambda v: relay.transpose(relay.transpose(v, (1, 0)), (1, 0))  # noqa: E731 (of one line)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.GlobalVar("other")(twice(x))))
    mod["other"] = relay.Function([y], twice(y), attrs={"Compiler": "t", "global_symbol": "other", "Primitive": 1})
    found = transform.SimplifyExpr()(mod)
    assert operators(found["other"]) == ["transpose", "transpose"]
    assert "transpose" not in str(found["main"])


def test_quantized_numbers_are_compared_as_they_are():
    x = relay.var("x", shape=(2, 5), dtype="int8")

    def program(scale):
        return relay.argmax(relay.qnn.op.dequantize(x, relay.const(scale), relay.const(7)), axis=1)

    assert operators(simplified(program(0.5))) == ["argmax"]
    for scale in (-0.5, 0.0):
        assert operators(simplified(program(scale))) == ["qnn.dequantize", "argmax"]
    assert operators(simplified(relay.argmax(relay.maximum(x, relay.const(3, "int8"))))) == ["maximum", "argmax"]
    data = np.random.default_rng(0).permutation(10).reshape(2, 5).astype("int8")
    np.testing.assert_array_equal(run(simplified(program(0.5)), data), run(relay.Function([x], program(0.5)), data))


def test_roots_and_sums_as_products():
    x, data = relay.var("x", shape=(4,)), np.abs(values((4,))) + 1
    for expr, wanted in ((relay.const(3.0) / relay.sqrt(x), ["rsqrt", "multiply"]), (relay.const(1.0) / relay.sqrt(x), ["rsqrt"])):
        assert operators(simplified(expr)) == wanted
        np.testing.assert_allclose(run(simplified(expr), data), run(relay.Function([x], expr), data), rtol=1e-6)
    assert operators(simplified(x + x)) == ["multiply"]
    np.testing.assert_array_equal(run(simplified(x + x), data), data + data)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_padding_of_a_maximum_is_folded(dtype):
    least = np.finfo(dtype).min if dtype == "float32" else 0
    x = relay.var("x", shape=(1, 2, 5, 6), dtype=dtype)
    pad = relay.nn.pad(x, ((0, 0), (0, 0), (1, 0), (0, 2)), relay.const(least, dtype))
    program = relay.Function([x], relay.nn.max_pool2d(pad, pool_size=(3, 2), padding=(0, 1)))
    found = main_of(program, transform.FoldExplicitPadding())
    assert operators(found) == ["nn.max_pool2d"] and tuple(found.body.attrs["padding"]) == (1, 1, 0, 3)
    data = values((1, 2, 5, 6)) * 10 if dtype == "float32" else np.arange(60).reshape(1, 2, 5, 6) * 37 % 256
    data = data.astype(dtype)
    np.testing.assert_array_equal(run(found, data), run(program, data))


def test_padding_of_a_quantized_convolution_is_folded():
    x, w = relay.var("x", shape=(1, 5, 5, 2), dtype="uint8"), relay.var("w", shape=(3, 3, 2, 4), dtype="int8")

    def program(number):
        pad = relay.nn.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)), relay.const(number, "uint8"))
        zeros, scales = (relay.const(9), relay.const(0)), (relay.const(0.5), relay.const(0.25))
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        conv = relay.qnn.op.conv2d(pad, w, *zeros, *scales, kernel_size=(3, 3), channels=4, padding=(0, 1), **layouts)
        return relay.Function([x, w], conv)

    found = main_of(program(9), transform.FoldExplicitPadding())
    assert operators(found) == ["qnn.conv2d"] and tuple(found.body.attrs["padding"]) == (1, 1, 0, 3)
    generator = np.random.default_rng(3)
    image, weight = generator.integers(0, 256, (1, 5, 5, 2)).astype("uint8"), generator.integers(-128, 128, (3, 3, 2, 4)).astype("int8")
    np.testing.assert_array_equal(run(found, image, weight), run(program(9), image, weight))
    assert operators(main_of(program(8), transform.FoldExplicitPadding())) == ["nn.pad", "qnn.conv2d"]
    for widths in (((0, 0), (1, 0), (0, 2), (0, 1)), ((1, 0), (1, 0), (0, 2), (0, 0))):  # channels, and the batch
        channels = 2 + widths[3][1]
        v = relay.var("v", shape=(3, 3, channels, 4), dtype="int8")
        pad = relay.nn.pad(x, widths, relay.const(9, "uint8"))
        numbers = [relay.const(9), relay.const(0), relay.const(0.5), relay.const(0.25)]
        conv = relay.qnn.op.conv2d(pad, v, *numbers, kernel_size=(3, 3), channels=4, data_layout="NHWC", kernel_layout="HWIO")
        assert operators(main_of(relay.Function([x, v], conv), transform.FoldExplicitPadding())) == ["nn.pad", "qnn.conv2d"]


def test_other_forms_of_an_operator_become_the_operator():
    x, y = relay.var("x", shape=(6,)), relay.var("y", shape=(3, 2))
    program = relay.Function([x, y], relay.reshape_like(relay.exp(x), y))
    assert operators(main_of(program, transform.FoldExplicitPadding())) == ["exp", "reshape"]


def test_blocks_around_a_convolution_are_a_dilation():
    x, w = relay.var("x", shape=(1, 5, 7, 2)), relay.var("w", shape=(3, 2, 2, 4))

    def program(blocks=(2, 3), crops=((2, 1), (0, 1)), number=0.0, padding=(1, 0, 0, 1), **attrs):
        into = relay.nn.space_to_batch_nd(x, block_shape=(2, 3), paddings=((2, 3), (1, 4)), pad_value=number)
        conv = relay.nn.conv2d(into, w, padding=padding, data_layout="NHWC", kernel_layout="HWIO", **attrs)
        return relay.Function([x, w], relay.nn.batch_to_space_nd(conv, block_shape=blocks, crops=crops))

    found = main_of(program(), transform.FlattenAtrousConv())
    assert operators(found) == ["nn.conv2d"] and tuple(found.body.attrs["dilation"]) == (2, 3)
    assert tuple(found.body.attrs["padding"]) == (2, 1, 2, 6)
    data, weight = values((1, 5, 7, 2)), values((3, 2, 2, 4), seed=1)
    np.testing.assert_allclose(run(found, data, weight), run(program(), data, weight), rtol=1e-5, atol=1e-5)
    bare = main_of(program(crops=((0, 1), (1, 4)), padding=(0, 0, 0, 0)), transform.FlattenAtrousConv())
    assert operators(bare) == ["nn.conv2d"] and tuple(bare.body.attrs["padding"]) == (2, 0, 2, 0)  # what is left of it
    for other in (
        program(strides=(1, 2)),
        program(blocks=(3, 2)),
        program(number=1.0),
        program(crops=((0, 1), (2, 4)), padding=(0, 0, 0, 0)),  # it takes more away than was added
    ):
        assert len(operators(main_of(other, transform.FlattenAtrousConv()))) == 3


def test_factors_go_into_weights():
    """Through relu where they are positive; both directions are passes of their own."""
    x, data, scale = relay.var("x", shape=(2, 3)), values((2, 3)), np.abs(values((4,))) + 1
    weight, bias = relay.const(values((4, 3), seed=1)), relay.const(values((4,), seed=2))

    def program(factors):
        product = relay.nn.dense(x * relay.const(values((3,), seed=3)), weight)
        return relay.Function([x], relay.nn.relu(product + bias) * relay.const(factors))

    with relayc.PassContext(opt_level=0):  # a pass that is called runs at any level
        assert operators(transform.FoldScaleAxis()(relay.IRModule.from_expr(program(scale)))["main"]) == ["nn.dense", "add", "nn.relu"]
        assert operators(transform.SimplifyExpr()(relay.IRModule.from_expr(relay.negative(relay.negative(x))))["main"]) == []
    with relayc.PassContext(opt_level=3):
        both = main_of(program(scale), transform.FoldScaleAxis())
        assert operators(both) == ["nn.dense", "add", "nn.relu"]
        assert "multiply" in operators(main_of(program(-scale), transform.FoldScaleAxis()))
        assert operators(main_of(program(-scale), transform.ForwardFoldScaleAxis())).count("multiply") == 2  # of the weights, of the result
        backward = operators(main_of(program(scale), transform.BackwardFoldScaleAxis()))
        assert backward[0] == "multiply" and backward[-1] == "nn.relu"
    np.testing.assert_allclose(run(both, data), run(program(scale), data), rtol=1e-5, atol=1e-5)


def test_constants_of_sums_and_products_are_merged():
    x, data = relay.var("x", shape=(2, 3)), values((2, 3))
    b, c, d = (relay.const(values(shape, seed=seed)) for seed, shape in enumerate(((3,), (2, 1), (1,))))
    for expr, wanted in (
        (c + (b + x), ["add"]),
        (c * (x * b), ["multiply"]),
        (d * ((b * x + c) * b), ["multiply", "add"]),
        (x * b + x, ["multiply", "add"]),
        (b + c + x, ["add", "add"]),
    ):
        found = simplified(expr)
        assert operators(found) == wanted
        np.testing.assert_allclose(run(found, data), run(relay.Function([x], expr), data), rtol=1e-5, atol=1e-6)


def test_programs_are_compiled_with_dilations_in_the_place_of_blocks():
    x, w = relay.var("x", shape=(1, 4, 4, 2)), relay.var("w", shape=(3, 3, 2, 4))
    into = relay.nn.space_to_batch_nd(x, block_shape=(2, 2), paddings=((2, 2), (2, 2)))
    conv = relay.nn.conv2d(into, w, data_layout="NHWC", kernel_layout="HWIO")
    module = relayc.import_model(
        relay.IRModule.from_expr(relay.Function([x, w], relay.nn.batch_to_space_nd(conv, block_shape=(2, 2), crops=((0, 0), (0, 0)))))
    )
    assert "dilation = array<i64: 2, 2>" in str(module) and "relay.transpose" not in str(module)
