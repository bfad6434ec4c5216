"""Derivatives of parts of a graph against central differences, and steps of optimisers against the onnx package's reference."""

import numpy as np
import onnx
import pytest
from attention_reference import Case, derivatives
from onnx.reference import ReferenceEvaluator

import relayc
from relayc import OnnxError
from relayc.dialects.relay import TensorType
from relayc.frontend.converter import ModelBuilder, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.gradients import gradients
from relayc.frontend.onnx import from_onnx
from relayc.pipelines.evaluate.relay import RelayInterpreter

DOMAIN = "ai.onnx.preview.training"

# Functions of x [3, 4] and w [4, 3] or b [4], all elements in (0.1, 0.9).
FUNCTIONS = {
    "arithmetic": "p = Mul (x, b)  q = Div (b, x)  r = Sub (p, q)  s = Add (r, b)  y = Div (s, q)",
    "powers": "p = Pow (x, b)  two = Constant <value = double {2.5}> ()  q = Pow (b, two)  y = Mul (p, q)",
    "exponentials": "p = Exp (x)  q = Log (p)  r = Sqrt (q)  s = Neg (r)  y = Exp (s)",
    "activations": "p = Tanh (x)  q = Sigmoid (p)  h = Sub (q, b)  r = Relu (h)  s = LeakyRelu <alpha = 0.3> (h)  y = Add (r, s)",
    "trigonometry": "p = Sin (x)  q = Cos (p)  r = Tan (q)  s = Atan (r)  t = Asin (b)  u = Sinh (t)  y = Mul (s, u)",
    "products": "p = MatMul (x, w)  q = Gemm <transA = 1, transB = 1> (x, p)  y = Transpose (q)",
    "a dense layer": "v = Transpose (w)  p = Gemm <transB = 1> (x, v, c)  y = Softmax <axis = -1> (p)",
    "batches": """t = Constant <value_ints = [0]> ()  p = Unsqueeze (x, t)  q = Concat <axis = 0> (p, p)  r = Unsqueeze (w, t)
        s = MatMul (q, r)  y = LogSoftmax <axis = 1> (s)""",
    "sums and means": """a = Constant <value_ints = [0]> ()  p = ReduceSum <keepdims = 0> (x, a)  q = ReduceMean <keepdims = 1> (w, a)
        r = ReduceMean (x)  s = Mul (p, r)  k = Squeeze (q, a)  t = ReduceMax (k)  y = Mul (s, t)""",
    "moves": """f = Constant <value_ints = [2, 6]> ()  p = Reshape (x, f)  q = Transpose (p)  i = Constant <value_ints = [4, 0, 4]> ()
        r = Gather <axis = 0> (q, i)  k = Concat <axis = 1> (r, r)  b0 = Constant <value_ints = [1]> ()
        e0 = Constant <value_ints = [3]> ()  y0 = Slice (k, b0, e0, b0)  y = Mul (y0, y0)""",
    "choices": """p = Max (x, b)  q = Min (p, x)  c0 = Less (x, b)  r = Where (c0, x, b)  h = Constant <value = double {0.5}> ()
        n = Constant <value = double {0.2}> ()  s = Clip (r, n, h)  t = Add (q, s)  y = Abs (t)""",
    "padding": """f = Constant <value_ints = [1, 2, 2, 1]> ()  p = Pad <mode = "reflect"> (x, f)  q = Pad <mode = "edge"> (p, f)
        y = Mul (q, q)""",
    "steps": """p = Sign (x)  q = Mul (p, x)  c0 = Less (x, b)  f = Cast <to = 11> (c0)  r = Mul (f, q)  k = Ceil (b)
        y = Mul (r, k)""",
    "a shape": "d = Shape (x)  p = Expand (b, d)  q = Mul (p, p)  f = Cast <to = 1> (q)  y = Cast <to = 11> (f)",
}


def proto(text, opset=18):
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}, "{DOMAIN}" : 1]>\n{text}')


def values():
    rng = np.random.default_rng(0)
    return {name: rng.uniform(0.1, 0.9, shape) for name, shape in (("x", (3, 4)), ("w", (4, 3)), ("b", (4,)), ("c", (3,)))}


def differences(function, feed, name, step):
    """The derivatives of a number with respect to each element of an input."""
    found = np.empty(feed[name].shape)
    for i in np.ndindex(*found.shape):
        ends = []
        for sign in (1, -1):
            moved = feed[name].copy()
            moved[i] += sign * step
            ends.append(function({**feed, name: moved}))
        found[i] = (ends[0] - ends[1]) / (2 * step)
    return found


@pytest.mark.parametrize("body", FUNCTIONS.values(), ids=FUNCTIONS)
def test_derivatives_are_those_of_the_function(body):
    rows = "3" if "Reshape" in body or "transA" in body else "n"
    gradient = f'dx, dw, db, dc = {DOMAIN}.Gradient <xs = ["x", "w", "b", "c"], y = "y"> (x, w, b, c)'
    arguments = f"double[{rows}, 4] x, double[4, 3] w, double[4] b, double[3] c"
    text = f"g ({arguments}) => (double[k] y, double[k] dx, double[k] dw, double[k] db, double[k] dc) {{ {body}  {gradient} }}"
    model = proto(text)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    module = relayc.compile(model, cache=False)
    feed = values()
    found = module.run(feed)
    # Where a result is rounded to float32, a wider step: the rounding is 1e-7, the error of the difference step**2.
    step, tolerance = (1e-2, 2e-4) if "Cast <to = 1>" in body else (1e-5, 1e-7)
    for name in feed:
        wanted = differences(lambda at: module.run(at)["y"].sum(), feed, name, step)
        np.testing.assert_allclose(found[f"d{name}"], wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_derivatives_of_stacks(axis):
    """Of the sum of (x, x^3), stacked and squared."""
    with ModelBuilder({"x": TensorType((2, 3), "float64")}) as builder:
        x = builder.inputs["x"]
        stacked = emit("stack", x, emit("multiply", x, emit("multiply", x, x)), axis=axis)
        (dx,) = gradients(emit("multiply", stacked, stacked), [x])
        module = relayc.compile(builder.finish([("dx", dx)]))
    x = values()["x"][:2, :3]
    np.testing.assert_allclose(module["main"](x), 2 * x + 6 * x**5, rtol=1e-12)


def attention_gradients(case, layout, **attributes):
    """The derivatives of the sum of an attention by the given weights, and the layouts of its operands."""
    query, key, value, *mask = case.arrays()
    grad = np.random.default_rng(3).standard_normal((*query.shape[:3], value.shape[3]))
    order = [layout.index(axis) for axis in "BHSD"]
    moved = [np.ascontiguousarray(a.transpose(["BHSD".index(axis) for axis in layout])) for a in (query, key, value, grad)]
    arrays = dict(zip(("q", "k", "v", "g", "m"), [*moved, *mask], strict=False))
    with ModelBuilder({name: TensorType.of_array(a) for name, a in arrays.items()}) as builder:
        q, k, v, g, *m = (builder.inputs[name] for name in arrays)
        layouts = {f"{name}_layout": layout for name in ("query", "key", "value", "out")}
        found = emit("nn.attention", q, k, v, *m, scale=case.shape[5] ** -0.5, **layouts, **case.attributes, **attributes)
        result = emit("multiply", found, g)
        made = gradients(result, [q, k, v, *(m if attributes else [])])
        module = relayc.compile(builder.finish([("y", found), *zip(("dq", "dk", "dv"), made, strict=False)]), cache=False)
    results = [a.transpose(order) for a in module["main"](*arrays.values())]
    return module, results, derivatives(case, grad)[1:]


@pytest.mark.parametrize("layout", ["BHSD", "BSHD"])
@pytest.mark.parametrize("mask", [None, (9, 12)])
def test_derivatives_of_attention(layout, mask):
    """By the log-sum-exp, with which the attention is computed once."""
    attributes = {"empty_to_zero": True} if mask else {"is_causal": True, "causal_offset": 3}
    case = Case((2, 4, 2, 9, 12, 8, 16), mask=mask, mask_dtype="bool" if mask else "", dtype="float64", attributes=attributes)
    module, found, wanted = attention_gradients(case, layout)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13 * np.abs(b).max())
    operators = [op for kernel in module.kernels for op in kernel.ops if "attention" in op]
    assert sorted(operators) == ["nn.attention_grad", "nn.attention_lse"]


@pytest.mark.parametrize(
    ("attributes", "mask_dtype", "found"),
    [
        ({"softcap": 5.0}, "", "softcap"),
        ({"mask_value": -1e9}, "bool", "mask_value -1000000000.0"),
        ({"empty_to_zero": True}, "", "one of the mask of nn.attention"),
    ],
)
def test_attention_without_a_derivative(attributes, mask_dtype, found):
    case = Case((1, 2, 2, 3, 4, 8, 8), mask=(3, 4), mask_dtype=mask_dtype, dtype="float64")
    with pytest.raises(ModelError, match=found):
        attention_gradients(case, "BHSD", **attributes)


NETWORK = """p = Conv <strides = [2, 1], pads = [1, 0, 1, 2], dilations = [1, 2]> (x, w, b)  q = Relu (p)
    r = MaxPool <kernel_shape = [2, 2], strides = [1, 2], pads = [0, 1, 0, 0]> (q)
    s = AveragePool <kernel_shape = [2, 1], strides = [1, 1], count_include_pad = 1, pads = [1, 0, 1, 0]> (r)
    t = GlobalAveragePool (s)  f = Flatten (t)  h = Gemm <transB = 1> (f, c)  l = Constant <value_ints = [2, 0]> ()
    y = SoftmaxCrossEntropyLoss <reduction = "mean"> (h, l)"""


@pytest.mark.parametrize("width", ["9", "wide"])
def test_a_convolutional_network_with_its_loss(width):
    gradient = f'dx, dw, db, dc = {DOMAIN}.Gradient <xs = ["x", "w", "b", "c"], y = "y"> (x, w, b, c)'
    arguments = f"double[2, 3, 8, {width}] x, double[4, 3, 3, 2] w, double[4] b, double[5, 4] c"
    body = NETWORK.replace("strides = [1, 2], pads = [0, 1, 0, 0]", "strides = [1, 1]") if width == "wide" else NETWORK
    model = proto(f"g ({arguments}) => (double y, double[k] dx, double[k] dw, double[k] db, double[k] dc) {{ {body}  {gradient} }}")
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    module = relayc.compile(model, cache=False)
    rng = np.random.default_rng(0)
    shapes = {"x": (2, 3, 8, 9), "w": (4, 3, 3, 2), "b": (4,), "c": (5, 4)}
    feed = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    found = module.run(feed)
    for name in feed:
        wanted = differences(lambda at: module.run(at)["y"], feed, name, 1e-5)
        np.testing.assert_allclose(found[f"d{name}"], wanted, rtol=1e-6, atol=1e-8)


def test_the_derivative_of_a_transposed_convolution_is_a_convolution():
    """Without its last two columns here: the output_padding is longer than a step."""
    window = "strides = [2, 1], dilations = [1, 3], group = 2, pads = [1, 0, 0, 2]"
    text = f"""g (double[2, 4, 3, 5] x, double[4, 3, 2, 3] w, double[2, 6, 6, 11] g) => (double[2, 4, 3, 5] dx) {{
        p = ConvTranspose <{window}, output_padding = [1, 2]> (x, w)  y = Mul (p, g)  dx = {DOMAIN}.Gradient <xs = ["x"], y = "y"> (x)
    }}"""
    forward = f"g (double[2, 6, 6, 11] g, double[4, 3, 2, 3] w) => (double[2, 4, n, k] y) {{ y = Conv <{window}> (g, w) }}"
    rng = np.random.default_rng(0)
    x, w, g = (rng.standard_normal(shape) for shape in ((2, 4, 3, 5), (4, 3, 2, 3), (2, 6, 6, 11)))
    (wanted,) = ReferenceEvaluator(proto(forward)).run(None, {"g": g, "w": w})
    np.testing.assert_allclose(relayc.compile(proto(text), cache=False)["main"](x, w, g), wanted[:, :, :3, :5], rtol=1e-12, atol=1e-12)


def test_the_values_are_those_that_the_node_is_given():
    text = f"""g (float[3] a, float[3] other) => (float[3] y, float[3] at_a, float[3] at_other, float[3] of_middle) {{
        middle = Mul (a, a)
        y = Mul (middle, a)
        at_a = {DOMAIN}.Gradient <xs = ["a"], y = "y"> (a)
        at_other = {DOMAIN}.Gradient <xs = ["a"], y = "y"> (other)
        of_middle = {DOMAIN}.Gradient <xs = ["middle"], zs = ["a"], y = "y"> (middle, other)
    }}"""
    a, other = np.array([1, 2, 3], np.float32), np.array([5, 0, -1], np.float32)
    y, at_a, at_other, of_middle = relayc.compile(proto(text), cache=False)["main"](a, other)
    for found, wanted in ((y, a**3), (at_a, 3 * a**2), (at_other, 3 * other**2), (of_middle, other)):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_derivatives_of_derivatives_with_respect_to_weights():
    text = f"""g (float[4] x) => (float[4] first, float[4] second) <float[4] w = {{1, 2, 3, 4}}> {{
        p = Mul (x, w)
        s = Mul (p, p)
        y = Mul (s, w)
        first = {DOMAIN}.Gradient <xs = ["w"], y = "y"> (w)
        second = {DOMAIN}.Gradient <xs = ["w"], y = "first"> (w)
    }}"""
    x, w = np.array([1, 0.5, -1, 2], np.float32), np.array([1, 2, 3, 4], np.float32)
    first, second = relayc.compile(proto(text), cache=False)["main"](x)
    np.testing.assert_allclose(first, 3 * x**2 * w**2, rtol=1e-6)
    np.testing.assert_allclose(second, 6 * x**2 * w, rtol=1e-6)


@pytest.mark.parametrize(
    "body, message",
    [
        ("y = CumSum (x, zero)", "operators that have a derivative, found cumsum of node"),
        ("y = If (c) <then_branch = a () => (float r) { r = Exp (x) }, else_branch = b () => (float r) { r = Neg (x) }>", "found if"),
        ("y = Cast <to = 7> (x)", "attribute y: expected a tensor of floats, found 'y'"),
    ],
)
def test_what_has_no_derivative(body, message):
    text = f"""g (float[4] x, bool c) => (float[4] d) {{
        zero = Constant <value_int = 0> ()  {body}  d = {DOMAIN}.Gradient <xs = ["x"], y = "y"> (x)
    }}"""
    with pytest.raises(OnnxError, match=message):
        relayc.compile(proto(text), cache=False)


def test_a_slice_by_steps_of_an_unknown_size_has_no_derivative():
    text = f"""g (float[n] x) => (float[n] d) {{
        a = Constant <value_ints = [0]> ()  b = Constant <value_ints = [100]> ()  step = Constant <value_ints = [2]> ()
        y = Slice (x, a, b, a, step)  d = {DOMAIN}.Gradient <xs = ["x"], y = "y"> (x)
    }}"""
    with pytest.raises(OnnxError, match="expected slices of step 1 along an axis whose size is not known, found step 2"):
        relayc.import_model(proto(text))


def test_what_only_a_conversion_to_integers_reads_has_no_derivative():
    text = f"""g (float[4] x) => (float[4] d) {{
        p = Mul (x, x)  q = Cast <to = 7> (p)  r = Cast <to = 1> (q)  y = Add (x, r)  d = {DOMAIN}.Gradient <xs = ["x"], y = "y"> (x)
    }}"""
    found = relayc.compile(proto(text), cache=False)["main"](np.array([1, 2.5, -3, 0], np.float32))
    np.testing.assert_array_equal(found, np.ones(4, np.float32))


def test_what_no_derivative_is_asked_of_needs_none():
    text = f"""g (float[4] x, float[4] b) => (float[4] d) {{
        zero = Constant <value_int = 0> ()  s = CumSum (b, zero)  y = Mul (x, s)  d = {DOMAIN}.Gradient <xs = ["x"], y = "y"> (x)
    }}"""
    relayc.import_model(proto(text))


OPTIMISERS = {
    "Adam": (4, "norm_coefficient = 0.1, norm_coefficient_post = 0.2, alpha = 0.8, beta = 0.95, epsilon = 0.01"),
    "Adagrad": (3, "norm_coefficient = 0.1, decay_factor = 0.2, epsilon = 0.01"),
    "Momentum": (3, 'norm_coefficient = 0.1, alpha = 0.8, beta = 0.7, mode = "nesterov"'),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_steps_of_optimisers_at_symbolic_sizes(name):
    kinds, attributes = OPTIMISERS[name]
    inputs = [f"{'xgvh'[k]}{i}" for k in range(kinds) for i in range(2)]
    outputs = [f"{'abc'[k]}{i}" for k in range(kinds - 1) for i in range(2)]
    types = ", ".join(f"float[{'n' if v[1] == '0' else '2, m'}] {v}" for v in inputs)
    results = ", ".join(f"float[{'n' if v[1] == '0' else '2, m'}] {v}" for v in outputs)
    node = f"{', '.join(outputs)} = {DOMAIN}.{name} <{attributes}> (R, T, {', '.join(inputs)})"
    text = f"g (float R, int64 T, {types}) => ({results}) {{ {node} }}"
    model = proto(text)
    module, reference = relayc.compile(model, cache=False), ReferenceEvaluator(model)
    rng = np.random.default_rng(0)
    for t in (0, 3):
        feed = {v: rng.uniform(0.1, 1, (5,) if v[1] == "0" else (2, 3)).astype(np.float32) for v in inputs}
        feed |= {"R": np.array(0.1, np.float32), "T": np.array(t)}
        with np.errstate(all="ignore"):
            wanted = reference.run(None, feed)
        for found, expected in zip(module.run(feed).values(), wanted, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "count"), [("Adam", 3), ("Adagrad", 4), ("Momentum", 0)])
def test_each_tensor_that_is_optimised_has_a_gradient_and_states(name, count):
    inputs = [f"x{i}" for i in range(count)]
    arguments = ", ".join(["float R, int64 T", *(f"float[2] {v}" for v in inputs)])
    text = f"g ({arguments}) => (float[2] y) {{ y = {DOMAIN}.{name} <{OPTIMISERS[name][1]}> ({', '.join(['R', 'T', *inputs])}) }}"
    with pytest.raises(OnnxError, match=f"expected {OPTIMISERS[name][0]} inputs behind R and T .*, found {count}"):
        relayc.compile(proto(text), cache=False)


def test_a_derivative_of_a_derivative():
    text = f"""g (double[n] x) => (double[n] b) {{ p = Mul (x, x)  z = Mul (p, x)
        a = {DOMAIN}.Gradient <xs = ["x"], y = "z"> (x)  b = {DOMAIN}.Gradient <xs = ["x"], y = "a"> (x) }}"""
    x = values()["b"]
    (found,) = RelayInterpreter(from_onnx(proto(text)))("main", [x])
    np.testing.assert_allclose(found, 6 * x, rtol=1e-12)
