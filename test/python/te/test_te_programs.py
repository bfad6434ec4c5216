"""Functions and modules made of tensors: packed functions between kernels, rules of operators, what is refused."""

import numpy as np
import pytest
from tensor_expressions import ir_of

import relayc
from relayc import te
from relayc.dialects.relay import IRModule, Op, Operand, Pattern, RelayError, TensorType, View
from relayc.dialects.relay.registration import OPS
from relayc.pipelines.te.lower import lower_module
from relayc.pipelines.te.rules.core import RULES

RANDOM = np.random.default_rng(6)


@relayc.register_func("test.te.sorted", override=True)
def sort(x, y):
    y[...] = np.sort(x, axis=0)


@relayc.register_func("test.te.minmax", override=True)
def extremes(x, bias, low, high):
    low[...], high[...] = x.min(0) + bias, x.max(0) + bias


def test_a_packed_function_between_kernels():
    n = te.var("n")
    X, bias = te.placeholder((n, 4), name="X"), te.placeholder((4,), name="bias")
    Y = te.compute((n, 4), lambda i, j: X[i, j] * 2, name="Y")
    Z = te.extern((n, 4), [Y], "test.te.sorted", name="Z")
    low, high = te.extern(
        [(4,), (4,)], [Z, bias], lambda ins, outs: te.call_packed("test.te.minmax", *ins, *outs), name="E", dtype="float32"
    )
    R = te.compute((n, 4), lambda i, j: Z[i, j] + Y[i, j] + high[j], name="R")
    mod = te.create_prim_func([X, bias, R, low, Z])
    text = str(mod)
    assert text.count("func.func private @main_") == 2 and 'relay.packed = "test.te.minmax"' in text
    module = relayc.compile(mod)
    assert [s.name for s in (*module.inputs, *module.outputs)] == ["X", "bias", "R", "E.v0", "Z"]
    for size in (1, 6):
        x, b = RANDOM.standard_normal((size, 4)).astype(np.float32), np.arange(4, dtype=np.float32)
        r, smallest, z = module["main"](x, b)
        np.testing.assert_array_equal(z, np.sort(2 * x, axis=0))
        np.testing.assert_array_equal(smallest, z[0] + b)
        np.testing.assert_array_equal(r, z + 2 * x + (z[-1] + b))


def test_packed_functions_alone_are_a_program():
    X = te.placeholder((3, 4), name="X")
    Y = te.extern((3, 4), [te.extern((3, 4), [X], "test.te.sorted", name="Y")], "test.te.sorted", name="Y")
    x = RANDOM.standard_normal((3, 4)).astype(np.float32)
    module = relayc.compile(te.create_prim_func([X, Y], name="twice"))
    np.testing.assert_array_equal(module["twice"](x), np.sort(x, axis=0))
    assert module.outputs[0].name == "Y_1"


def test_a_function_is_a_program_too():
    A = te.placeholder((3,), "uint8", "A")
    B = te.compute((3,), lambda i: A[i] // 100, name="B")
    module = relayc.compile(te.create_prim_func([A, B]))
    assert module["main"](np.array([7, 128, 255], np.uint8)).tolist() == [0, 1, 2]
    assert 'stage = "te"' in str(relayc.compile(te.create_prim_func([A, B]), stop_after="te"))
    with pytest.raises(ValueError, match="stop_after: expected te or a later stage"):
        relayc.compile(te.create_prim_func([A, B]), stop_after="relay")


OPERATORS = ("test_te_mish", "test_te_blur", "test_te_shorter")


@pytest.fixture(scope="module", autouse=True)
def operators():
    """Operators of these tests with their rules: while they are there, nothing comes from the cache."""

    class Mish(Op, name="test_te_mish"):
        """x * tanh(log(1 + exp(x))) * gain, and whether x is positive."""

        data: Operand
        gain: float = 1.0
        pattern = Pattern.ELEMWISE
        result_names = ("output", "positive")
        required_results = 2

        @staticmethod
        def infer(op: View) -> list[TensorType]:
            return [op.data, op.data.with_dtype("bool")]

    class Blur(Op, name="test_te_blur"):
        """The mean of each element and its neighbours along the last axis."""

        data: Operand
        pattern = Pattern.INJECTIVE
        keeps_shape = True

        @staticmethod
        def infer(op: View) -> TensorType:
            return op.data

    class Shorter(Op, name="test_te_shorter"):
        """Its rule gives less than it says; of 4 elements also a number."""

        data: Operand
        keeps_shape = True

        @staticmethod
        def infer(op: View) -> TensorType:
            return op.data

    @te.register_compute("test_te_mish")
    def mish(attrs, data):
        return te.compute(data.shape, lambda *i: (data(*i) * te.tanh(te.log(1 + te.exp(data(*i)))) * attrs.gain, data(*i) > 0), name="mish")

    @te.register_compute("test_te_blur")
    def blur(attrs, data):
        *outer, size = data.shape
        wide = te.compute(
            (*outer, size + 2), lambda *i: te.if_then_else(te.all(i[-1] > 0, i[-1] <= size), data(*i[:-1], i[-1] - 1), 0.0), name="wide"
        )
        k = te.reduce_axis((0, 3), "k")
        total = te.compute(data.shape, lambda *i: te.sum(wide(*i[:-1], i[-1] + k), axis=k), name="total")
        return te.compute(data.shape, lambda *i: total(*i) / 3, name="blur")

    @te.register_compute("test_te_shorter")
    def shorter(attrs, data):
        if data.shape == (5,):
            return te.extern(data.shape, [data], "test.te.sorted", name="called")
        made = te.compute((2,), lambda i: data[i])
        return made if data.shape == (3,) else (made, 5)

    yield
    for name in OPERATORS:
        del OPS[name], RULES[name]


def relay_module(shape):
    program = relayc.Program()

    @program.function(x=TensorType(shape, "float32"))
    def main(x):
        y, positive = program.op.test_te_mish(program.op.test_te_blur(x + 1), gain=2.0)
        return program.op.nn.relu(y), positive

    return program.module()


@pytest.mark.parametrize("shape", [(3, 7), ("n", "m")])
def test_the_rule_of_an_operator(shape):
    x = RANDOM.standard_normal((3, 7)).astype(np.float32)
    found, positive = relayc.compile(relay_module(shape))["main"](x)
    padded = np.pad(x + 1, ((0, 0), (1, 1)))
    mean = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3
    wanted = 2 * mean * np.tanh(np.log1p(np.exp(mean)))
    # A few roundings of values below 16.
    np.testing.assert_allclose(found, np.maximum(wanted, 0), rtol=1e-6, atol=1e-5)
    np.testing.assert_array_equal(positive, mean > 0)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (3, "to give .*3.*, found .*2"),
        (4, r"to give tensors of te, found .*, 5\]"),
        (5, r"computations of its operands \(te.compute\), found called"),
    ],
)
def test_a_rule_of_other_results_than_the_operator_is_an_error(size, message):
    program = relayc.Program()

    @program.function(x=TensorType((size,), "float32"))
    def main(x):
        return program.op.test_te_shorter(x)

    with pytest.raises(RelayError, match=f"relay.test_te_shorter at .*: its compute rule: expected {message}"):
        relayc.compile(program.module())


A = te.placeholder((4, 6), name="A")
B = te.compute((4, 6), lambda i, j: A[i, j] * 2, name="B")
X = te.extern((4,), [A], "test.te.sorted", name="X")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: te.create_prim_func([B]), "te.create_prim_func main: expected the placeholder A among its arguments, found B"),
        (lambda: te.create_prim_func([A, B, B]), "te.create_prim_func main: expected each tensor once, found B twice"),
        (lambda: te.create_prim_func([B, A, B]), "te.create_prim_func main: expected each tensor once, found B twice"),
        (lambda: te.create_prim_func([A]), "te.create_prim_func main: expected a tensor that is computed among its arguments, found A"),
        (lambda: te.create_prim_func([A, B, 3]), "te.create_prim_func main: expected tensors, found 3"),
        (lambda: te.extern((4,), [3], "f"), "te.extern extern: inputs: expected a list of tensors, found"),
        (lambda: te.extern((4,), [A, 3], "f"), "te.extern extern: inputs: expected a list of tensors, found"),
        (
            lambda: te.extern((4,), [A], lambda ins, outs: te.call_packed("f", ins[0], outs[0], outs[0]), name="E"),
            "te.extern E: f: expected buffers that it reads, then each that it writes, in order",
        ),
        (lambda: te.extern((4,), [], "f", name="E"), "te.extern E: dtype: expected dtype="),
        (lambda: te.extern((4,), [A], "f", name="E", dtype=["int8"] * 2), "te.extern E: dtype: expected 1 dtypes, found 2"),
        (lambda: te.extern((4,), [A], lambda ins, outs: 3, name="E"), "te.extern E: expected te.call_packed of buffers, found 3"),
        (
            lambda: te.extern((4,), [A], lambda ins, outs: te.call_packed("f", outs[0], ins[0]), name="E"),
            "te.extern E: f: expected buffers that it reads, then each that it writes, in order",
        ),
    ],
)
def test_what_is_no_function_is_an_error(make, message):
    with pytest.raises(RelayError, match=message):
        make()


def test_a_name_alone_takes_all_inputs_and_then_all_outputs():
    made = te.extern([(4,), 2], [A, B, X], "f", name="E")
    assert [t.op.input_tensors for t in made] == [[A, B, X]] * 2 and [t.shape for t in made] == [(4,), (2,)]


def test_a_program_is_no_kernel():
    with pytest.raises(ValueError, match="compile_kernel: expected one function over tensors that calls no other"):
        relayc.compile_kernel(te.create_prim_func([A, X]))


def test_the_loops_of_an_operation_have_names_each_once():
    k = te.reduce_axis((0, 6), "i")
    text = ir_of([A, te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="C"), te.compute((4, 6), lambda *x: A(*x), name="D")])
    assert 'tir.axes = ["i", "i_1"]' in text and 'tir.axes = ["i0", "i1"]' in text


def test_a_padding_of_computed_values_is_left_to_the_fallback():
    kernel = relayc.compile_kernel("""
func.func @main(%x: tensor<4xf32>) -> tensor<7xf32> {
  %y = tensor.pad %x low[1] high[2] {
  ^bb0(%i: index):
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    tensor.yield %f : f32
  } : tensor<4xf32> to tensor<7xf32>
  return %y : tensor<7xf32>
}""")
    assert kernel(np.array([9, 8, 7, 6], np.float32)).tolist() == [0, 9, 8, 7, 6, 5, 6]


def test_a_slice_from_where_the_data_says_is_left_to_the_fallback():
    kernel = relayc.compile_kernel("""
func.func @main(%x: tensor<8xf32>, %at: tensor<2xi64>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %first = tensor.extract %at[%zero] : tensor<2xi64>
  %i = arith.index_cast %first : i64 to index
  %y = tensor.extract_slice %x[%i] [4] [1] : tensor<8xf32> to tensor<4xf32>
  return %y : tensor<4xf32>
}""")
    assert kernel(np.arange(8, dtype=np.float32), np.array([3, 0])).tolist() == [3, 4, 5, 6]


def group(body, arguments="%x: tensor<2xf32>, %y: tensor<2xf32>", result="tensor<2xf32>"):
    """The te stage of a function of a fusion group."""
    text = f"func.func private @f({arguments}) -> {result} attributes {{relay.primitive}} {{\n{body}\nreturn %r : {result}\n}}"
    return str(lower_module(IRModule.parse(text)).module)


def test_a_field_of_a_tuple_that_a_group_builds():
    text = group("""
      %t = builtin.unrealized_conversion_cast %x, %y : tensor<2xf32>, tensor<2xf32> to tuple<tensor<2xf32>, tensor<2xf32>>
      %0 = "relay.tuple_get_item"(%t) {index = 1} : (tuple<tensor<2xf32>, tensor<2xf32>>) -> tensor<2xf32>
      %r = "relay.exp"(%0) : (tensor<2xf32>) -> tensor<2xf32>""")
    assert "ins(%arg1 :" in text and "%arg0 :" not in text


def test_what_no_kernel_computes_is_an_error():
    with pytest.raises(RelayError, match=r"relay\.qnn_abs at .*: expected an operator with a compute rule, found none for it"):
        group(
            '%r = "relay.qnn_abs"(%x, %s, %z, %s, %z) : (tensor<2xi8>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<i32>) -> tensor<2xi8>',
            "%x: tensor<2xi8>, %s: tensor<f32>, %z: tensor<i32>",
            "tensor<2xi8>",
        )
    with pytest.raises(RelayError, match=r"relay\.constant at .*: expected one element inside a fusion group, found tensor<2xf32>"):
        group('%r = "relay.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>')
