"""Operators on quantised tensors in the relay dialect: what ONNX models become, and results against ONNX Runtime and numpy.

Sums of integers are exact. Results that are quantised again are those of one rounding of float32 numbers, as numpy computes them here.
"""

import itertools

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from oracle import needs_exact_bytes
from support import Const, program
from support import run as run_operator

import relayc
from relayc.dialects.relay import IRModule, Op, build
from relayc.dialects.relay.qnn import centred
from relayc.frontend import import_model
from relayc.pipelines.graph import canonicalize_ops, fake_quantization_to_integer, graph_pipeline, qnn_canonicalize
from relayc.pipelines.graph.qnn_canonicalize import known
from relayc.pipelines.graph.rewrite import Rewriter


def drawn(shape, dtype, seed=0):
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


OF_MICROSOFT = ("QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu")


def model_of(nodes, inputs, constants, result):
    """An ONNX model: nodes of (operator, inputs, output, attributes), types of inputs, constants by name, the result's name and type."""
    made = [
        helper.make_node(name, given, [out], domain="com.microsoft" if name in OF_MICROSOFT else "", **attrs)
        for name, given, out, attrs in nodes
    ]
    types = {np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int32): TensorProto.INT32, np.dtype(np.float32): TensorProto.FLOAT}

    def info(name, dtype, shape):
        return helper.make_tensor_value_info(name, types[np.dtype(dtype)], shape)

    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(made, "g", [info(name, *given) for name, given in inputs.items()], [info(*result)], tensors)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def expected(model, **inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, inputs)[0]


def operators(mod):
    """Relay's names of the operators of main."""
    found = [op.relay_name for op in mod.main.regions[0].blocks[0].operations if isinstance(op, Op)]
    return [name for name in found if name.startswith("qnn.")]


def run(text, *arrays):
    """What a function of the dialect gives, whose text is read again after it is printed."""
    mod = IRModule.parse(text)
    again = str(mod)
    assert str(IRModule.parse(again)) == again
    return np.asarray(relayc.compile(mod, cache=False)["main"](*arrays))


# ---- models of ONNX ---------------------------------------------------------------------------------------------------------------------

X = ("x", "xs", "xz")
Y = ("ys", "yz")
SCALES = {"xs": np.float32(0.0213), "xz": np.uint8(131), "ws": np.float32(0.011), "ys": np.float32(0.05), "yz": np.uint8(7)}
SCALES |= {"wz": np.int8(0), "cs": np.linspace(0.005, 0.02, 6, dtype=np.float32), "cz": np.zeros(6, np.int8)}
IMAGE, ROWS = ("n", 4, 6, 5), ("n", 9)
QOPERATORS = {
    "QLinearConv": (("w", "cs", "cz", *Y), IMAGE, drawn((6, 4, 3, 3), "int8", 1), {"pads": [1, 0, 1, 2]}, ["qnn.conv2d", "qnn.requantize"]),
    "QLinearMatMul": (("w", "cs", "cz", *Y), ROWS, drawn((9, 6), "int8", 2), {}, ["qnn.matmul", "qnn.requantize"]),
    "QLinearAdd": (("x", "xs", "xz", *Y), ROWS, None, {}, ["qnn.add"]),
    "QLinearMul": (("x", "xs", "xz", *Y), ROWS, None, {}, ["qnn.mul"]),
    "QLinearSigmoid": (Y, ROWS, None, {}, ["qnn.sigmoid"]),
    "QLinearLeakyRelu": (Y, ROWS, None, {"alpha": 0.3}, ["qnn.leaky_relu"]),
}


@pytest.mark.parametrize("name", QOPERATORS)
def test_quantised_operators_are_those_of_the_dialect(name):
    needs_exact_bytes()
    more, shape, weight, attrs, names = QOPERATORS[name]
    constants = SCALES if weight is None else {**SCALES, "w": weight}
    model = model_of([(name, [*X, *more], "y", attrs)], {"x": (np.uint8, shape)}, constants, ("y", np.uint8, [None] * len(shape)))
    assert operators(import_model(model)) == names
    module = relayc.compile(model, cache=False)
    for rows in (1, 3):
        x = drawn((rows, *shape[1:]), "uint8", rows)
        found, right = np.asarray(module["main"](x)).astype(int), expected(model, x=x).astype(int)
        assert np.abs(found - right).max() <= 1 and np.mean(found != right) < 0.02


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_sums_of_convolutions_are_exact(rank):
    """Weights that fit in s8 without their zero point, weights that do not, and a zero point that a call gives."""
    x = drawn((2, 4, *(7, 6, 5)[:rank]), "uint8")
    window = {"pads": [1] * rank + [0] * rank, "strides": [2] * rank, "group": 2}
    for weight, zero in ((drawn((6, 2, *(3,) * rank), "int8", 1), np.int8(0)), (drawn((6, 2, *(3,) * rank), "uint8", 2), np.uint8(9))):
        inputs = {"x": (np.uint8, x.shape), "z": (np.uint8, ())}
        sums = ("ConvInteger", ["x", "w", "z", "wz"], "y", window)
        model = model_of([sums], inputs, {"w": weight, "wz": zero}, ("y", np.int32, [None] * x.ndim))
        assert operators(import_model(model)) == [f"qnn.conv{rank}d"]
        module = relayc.compile(model, cache=False)
        known = model_of([sums], {"x": inputs["x"]}, {"w": weight, "wz": zero, "z": np.uint8(77)}, ("y", np.int32, [None] * x.ndim))
        padded = np.pad(x.astype(np.float64) - 77, [(0, 0), (0, 0), *[(1, 0)] * rank])
        conv = helper.make_node("Conv", ["x", "w"], ["y"], **{k: v for k, v in window.items() if k != "pads"})
        infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * x.ndim) for n in "xwy"]
        graph = helper.make_graph([conv], "g", infos[:2], infos[2:])
        plain = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        # Sums of products of bytes are whole numbers below 2^24, which float32 has.
        right = expected(plain, x=padded.astype(np.float32), w=weight.astype(np.float32) - np.float32(zero))
        np.testing.assert_array_equal(np.asarray(module["main"](x, np.uint8(77))), right)
        np.testing.assert_array_equal(np.asarray(relayc.compile(known, cache=False)["main"](x)), right)


def test_dequantised_graphs_become_operators_on_integers():
    constants = {**SCALES, "w": drawn((6, 4, 3, 3), "int8", 1), "b": np.float32([0.0213 * 0.0113] * 6), "bs": np.float32(0.1)}
    nodes = [
        ("DequantizeLinear", list(X), "a", {}),
        ("DequantizeLinear", ["w", "ws", "wz"], "v", {}),
        ("Conv", ["a", "v"], "c", {"pads": [1, 1, 1, 1]}),
        ("Relu", ["c"], "r", {}),
        ("QuantizeLinear", ["r", "ys", "yz"], "q", {}),
        ("DequantizeLinear", ["q", "ys", "yz"], "d", {}),
        ("Softmax", ["d"], "s", {"axis": 1}),
        ("QuantizeLinear", ["s", "ys", "yz"], "y", {}),
    ]
    model = model_of(nodes, {"x": (np.uint8, (1, 4, 6, 5))}, constants, ("y", np.uint8, (1, 6, 6, 5)))
    mod = fake_quantization_to_integer(canonicalize_ops(import_model(model)))
    assert operators(mod) == ["qnn.conv2d", "qnn.requantize", "qnn.softmax"]
    assert not operators(qnn_canonicalize(mod))
    assert not operators(graph_pipeline()(import_model(model)))
    x = drawn((1, 4, 6, 5), "uint8")
    found = np.asarray(relayc.compile(model, cache=False)["main"](x)).astype(int)
    assert np.abs(found - expected(model, x=x).astype(int)).max() <= 1


FUNCTIONS = {
    "LeakyRelu": ({"alpha": 0.3}, ["qnn.leaky_relu"], (2, 3, 9, 8)),
    "AveragePool": ({"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}, ["qnn.avg_pool2d"], (2, 3, 5, 8)),
    "Concat": ({"axis": 1}, ["qnn.requantize"], (2, 9, 9, 8)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_dequantised_tensors_round_once(name):
    """Those of several tensors bring each to the scale of the result, where it has another one."""
    attrs, names, shape = FUNCTIONS[name]
    inputs = {"x": (np.uint8, (2, 3, 9, 8))} | ({"w": (np.uint8, (2, 6, 9, 8))} if name == "Concat" else {})
    nodes = [
        ("DequantizeLinear", list(X), "a", {}),
        ("DequantizeLinear", ["w", *Y], "b", {}),
        (name, ["a", "b"] if name == "Concat" else ["a"], "c", attrs),
        ("QuantizeLinear", ["c", *Y], "y", {}),
    ]
    if name != "Concat":
        del nodes[1]
    model = model_of(nodes, inputs, SCALES, ("y", np.uint8, shape))
    assert operators(fake_quantization_to_integer(canonicalize_ops(import_model(model)))) == names
    arrays = {key: drawn(size, "uint8", seed) for seed, (key, (_, size)) in enumerate(inputs.items())}
    found = np.asarray(relayc.compile(model, cache=False)["main"](*arrays.values())).astype(int)
    right = expected(model, **arrays).astype(int)
    assert np.abs(found - right).max() <= 1 and np.mean(found != right) < 0.02


# ---- operators of the dialect -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rounding", "exact"), [("TONEVEN", np.rint), ("TONEAREST", lambda v: np.trunc(v + np.copysign(0.5, v)))])
def test_halves_and_scales_of_channels(rounding, exact):
    text = f"""func.func @main(%x: tensor<3x70xf32>, %s: tensor<3xf32>, %z: tensor<3xi8>) -> tensor<3x70xf32> {{
      %0 = "relay.qnn_quantize"(%x, %s, %z) {{axis = 0 : i64, rounding = "{rounding}"}}
        : (tensor<3x70xf32>, tensor<3xf32>, tensor<3xi8>) -> tensor<3x70xi8>
      %1 = "relay.qnn_dequantize"(%0, %s, %z) {{axis = 0 : i64}} : (tensor<3x70xi8>, tensor<3xf32>, tensor<3xi8>) -> tensor<3x70xf32>
      return %1 : tensor<3x70xf32>
    }}"""
    scale, zero = np.float32([0.5, 0.25, 2])[:, None], np.int8([3, -100, 0])[:, None]
    x = np.random.default_rng(0).integers(-200, 200, (3, 70)).astype(np.float32) / 4
    steps = np.clip(exact(x / scale) + zero, -128, 127)
    np.testing.assert_array_equal(run(text, x, scale[:, 0], zero[:, 0]), (steps - zero) * scale)


@pytest.mark.parametrize(("name", "exact"), [("add", np.add), ("subtract", np.subtract), ("mul", np.multiply)])
def test_binary_operators_round_once(name, exact):
    text = f"""func.func @main(%a: tensor<?x65xui8, ["n"]>, %b: tensor<65xi8>, %s: tensor<f32>, %z: tensor<ui8>)
        -> tensor<?x65xui8, ["n"]> {{
      %t = "relay.constant"() {{value = dense<0.25> : tensor<f32>}} : () -> tensor<f32>
      %u = "relay.constant"() {{value = dense<-3> : tensor<i32>}} : () -> tensor<i32>
      %0 = "relay.qnn_{name}"(%a, %b, %s, %z, %t, %u, %t, %z) {{rounding = "TONEVEN", compute_dtype = "float32"}}
        : (tensor<?x65xui8, ["n"]>, tensor<65xi8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<ui8>)
        -> tensor<?x65xui8, ["n"]>
      return %0 : tensor<?x65xui8, ["n"]>
    }}"""
    a, b = drawn((1030, 65), "uint8"), drawn((65,), "int8", 1)
    # Scales are powers of 2: real numbers are exact.
    real = exact((a.astype(np.float64) - 9) * 0.125, (b.astype(np.float64) + 3) * 0.25)
    found = run(text, a, b, np.float32(0.125), np.uint8(9))
    np.testing.assert_array_equal(found, np.clip(np.rint(real / 0.25) + 9, 0, 255).astype(np.uint8))


@pytest.mark.parametrize("compute", ["int64", "float32"])
@pytest.mark.parametrize("given", [False, True])
def test_products_of_tensors_with_scales_along_axes_of_their_own(compute, given):
    """Of which the one has an axis less: its scales are along the last axis of the result, those of the other along the first."""
    scales = np.float32([0.5, 0.25, 0.125, 1, 2]), np.float32([0.25, 1, 0.5])
    constant = '%{0} = "relay.constant"() {{value = dense<{1}> : tensor<{2}xf32>}} : () -> tensor<{2}xf32>\n'
    named = "" if given else "".join(constant.format(n, v.tolist(), v.size) for n, v in zip("st", scales, strict=True))
    inputs = ", %s: tensor<5xf32>, %t: tensor<3xf32>" if given else ""
    text = f"""func.func @main(%a: tensor<5xi8>, %b: tensor<3x5xi8>, %u: tensor<f32>, %z: tensor<i8>{inputs}) -> tensor<3x5xi8> {{
      {named}
      %0 = "relay.qnn_mul"(%a, %b, %s, %z, %t, %z, %u, %z)
        {{rounding = "UPWARD", compute_dtype = "{compute}", lhs_axis = 0 : i64, rhs_axis = 0 : i64}}
        : (tensor<5xi8>, tensor<3x5xi8>, tensor<5xf32>, tensor<i8>, tensor<3xf32>, tensor<i8>, tensor<f32>, tensor<i8>) -> tensor<3x5xi8>
      return %0 : tensor<3x5xi8>
    }}"""
    a, b = drawn((5,), "int8"), drawn((3, 5), "int8", 1)
    real = (a - 3.0) * scales[0] * ((b - 3.0) * scales[1][:, None])
    found = run(text, a, b, np.float32(64), np.int8(3), *(scales if given else ()))
    np.testing.assert_array_equal(found, np.clip(np.floor(real / 64 + 0.5) + 3, -128, 127).astype(np.int8))


def test_transposed_convolutions_and_batches_are_exact():
    text = """func.func @main(%x: tensor<2x3x5x4xui8>, %w: tensor<3x6x2x3xi8>, %a: tensor<2x7x9xi8>, %z: tensor<ui8>,
        %i: tensor<i8>, %s: tensor<f32>) -> tensor<i32> {
      %0 = "relay.qnn_conv2d_transpose"(%x, %w, %z, %i, %s, %s) {strides = array<i64: 2, 1>}
        : (tensor<2x3x5x4xui8>, tensor<3x6x2x3xi8>, tensor<ui8>, tensor<i8>, tensor<f32>, tensor<f32>) -> tensor<2x6x10x6xi32>
      %1 = "relay.qnn_batch_matmul"(%a, %a, %i, %i, %s, %s)
        : (tensor<2x7x9xi8>, tensor<2x7x9xi8>, tensor<i8>, tensor<i8>, tensor<f32>, tensor<f32>) -> tensor<2x7x7xi32>
      %2 = "relay.sum"(%0) : (tensor<2x6x10x6xi32>) -> tensor<i32>
      %3 = "relay.max"(%1) : (tensor<2x7x7xi32>) -> tensor<i32>
      %4 = "relay.add"(%2, %3) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      return %4 : tensor<i32>
    }"""
    x, w, a = drawn((2, 3, 5, 4), "uint8"), drawn((3, 6, 2, 3), "int8", 1), drawn((2, 7, 9), "int8", 2)
    total = ((x.astype(int) - 50).sum((0, 2, 3)) * (w.astype(int) + 4).sum((1, 2, 3))).sum()
    wide = a.astype(int) + 4
    right = total + (wide @ wide.transpose(0, 2, 1)).max()
    assert run(text, x, w, a, np.uint8(50), np.int8(-4), np.float32(1)) == right


SIDES = list(itertools.product(("u", ""), ("u", ""), (False, True), (False, True)))
"""Of two tensors of bytes: which are unsigned, and which are transposed."""


@pytest.mark.parametrize(("batches", "zeros"), [((3, 3), (0, 0)), ((1, 2), (7, 0)), ((2, 1), (0, -5)), ((2, 2), (90, -100))], ids=str)
def test_products_of_two_tensors_are_exact(batches, zeros):
    """Of as many rows, columns and steps as a call says. Zero points are known, or those of the call."""
    rows, depth, columns = 5, 19, 21
    functions, calls = [], []
    for number, (x, y, across, along) in enumerate(SIDES):
        left, right = ("k", "m") if across else ("m", "k"), ("n", "k") if along else ("k", "n")
        sizes = {"m": rows, "k": depth, "n": columns}
        a, b = (
            drawn((batch, *(sizes[d] for d in names)), f"{sign}int8", number)
            for batch, names, sign in zip(batches, (left, right), (x, y), strict=True)
        )
        # Zero points of u8 are moved by 128.
        z = [np.array(zero + 128 if sign else zero, f"{sign}int8") for zero, sign in zip(zeros, (x, y), strict=True)]
        known = number.bit_count() % 2 == 1
        types = [
            f"tensor<{n}x?x?x{s}i8, [{', '.join(map(repr, d))}]>".replace("'", '"')
            for n, d, s in zip(batches, (left, right), (x, y), strict=True)
        ]
        result = f'tensor<{max(batches)}x?x?xi32, ["m", "n"]>'
        scalars = [f"tensor<{s}i8>" for s in (x, y)]
        inputs = "" if known else f", %z: {scalars[0]}, %w: {scalars[1]}"
        constants = [
            f'%{name} = "relay.constant"() {{value = dense<{zero}> : {type_}}} : () -> {type_}'
            for name, zero, type_ in zip("zw", z, scalars, strict=True)
        ]
        functions.append(f"""func.func @f{len(functions)}(%a: {types[0]}, %b: {types[1]}{inputs}) -> {result} {{
          %s = "relay.constant"() {{value = dense<1.0> : tensor<f32>}} : () -> tensor<f32>
          {" ".join(constants) if known else ""}
          %0 = "relay.qnn_batch_matmul"(%a, %b, %z, %w, %s, %s) {{transpose_a = {str(across).lower()}, transpose_b = {str(along).lower()}}}
            : ({types[0]}, {types[1]}, {scalars[0]}, {scalars[1]}, tensor<f32>, tensor<f32>) -> {result}
          return %0 : {result}
        }}""")
        wide = [v.astype(np.int64) - zero for v, zero in zip((a, b), z, strict=True)]
        right_result = np.matmul(*(np.swapaxes(v, 1, 2) if t else v for v, t in zip(wide, (across, along), strict=True)))
        calls.append(((a, b) if known else (a, b, *z), right_result))
    module = relayc.compile(IRModule.parse("module {" + "\n".join(functions) + "}"), cache=False)
    for number, (arrays, right_result) in enumerate(calls):
        np.testing.assert_array_equal(np.asarray(module[f"f{number}"](*arrays)), right_result, str(SIDES[number]))


def test_relays_programs_name_the_same_operators():
    from relayc import relay
    from relayc.frontend.relay.lowering import lower

    x, w = relay.var("x", shape=(3, 8), dtype="uint8"), relay.const(drawn((5, 8), "int8"))
    parameters = [relay.const(v) for v in (4, 0, 0.5, 0.25)]
    y = relay.qnn.op.requantize(relay.qnn.op.dense(x, w, *parameters, units=5), *(relay.const(v) for v in (0.125, 0, 0.3, 3)))
    with relay.qnn.requantize_config(rounding="TONEAREST"):
        mod = lower(relay.transform.InferType()(relay.IRModule.from_expr(y)))
    assert operators(mod) == ["qnn.dense", "qnn.requantize"] and 'rounding = "TONEAREST"' in str(mod)


def test_softmax_is_along_the_last_axis_by_default():
    x = np.random.default_rng(0).integers(-40, 40, (3, 5)).astype(np.int8)
    found = run_operator("qnn.softmax", x, np.float32(0.05), np.int32(3), np.float32(1 / 256), np.int32(-128))
    real = np.exp((x.astype(np.float64) - 3) * 0.05)
    expected = np.rint(real / real.sum(1, keepdims=True) * 256) - 128
    np.testing.assert_array_less(np.abs(found - expected), 1.5)  # a unit, where a value is near the middle of two


@pytest.mark.parametrize(("rounding", "wanted"), [("TONEVEN", [0, 1]), ("TONEAREST", None)])
def test_what_is_computed_of_constants_is_known_where_all_of_it_is(rounding, wanted):
    """Numbers that are rounded away from zero are left to the program, and what is computed of them too."""

    def body(*values):
        return [build("qnn.dequantize", build("qnn.quantize", *values, rounding=rounding, out_dtype="int8"), *values[1:])]

    mod = program(body, [Const(v) for v in (np.float32([0.25, 0.75]), np.array(0.5, np.float32), np.array(0, np.int32))])
    operations = mod.main.regions[0].blocks[0].operations
    with mod.context:
        found = known(operations[len(operations) - 1].operands[0], Rewriter(mod))
    assert (found if found is None else found.tolist()) == wanted


def test_weights_without_their_zero_points_are_bytes_where_they_fit():
    weight = np.array([[0, 130, 255], [1, 131, 200]], np.uint8)
    for zero, axis, fits in (([128], 0, True), ([127], 0, False), ([128, 73], 0, True), ([129, 128], 0, False), ([0, 130, 200], -1, True)):
        found, zero = centred(weight, np.array(zero), axis), np.array(zero)
        expected = weight.astype(int) - (zero[:, None] if axis == 0 and zero.size > 1 else zero)
        assert (found is not None) == fits == (expected.min() >= -128 and expected.max() < 128)
        if fits:
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == np.int8
    assert centred(weight, np.zeros(3, int), 0) is None  # of which there are 2
    assert centred(weight[:0], np.zeros(1, int), 1) is None and centred(weight.astype(np.float32), np.zeros(1, int), 0) is None
