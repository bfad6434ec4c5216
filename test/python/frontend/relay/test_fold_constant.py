"""FoldConstant of the Relay language: what depends on constants alone is evaluated."""

import numpy as np
import pytest
from oracle import values

from relayc import relay
from relayc.dialects.relay.errors import RelayError


def folded(function):
    return relay.transform.FoldConstant()(relay.IRModule.from_expr(function))["main"]


def test_what_is_known_is_a_constant():
    x, a, b = relay.var("x", shape=(2, 3)), values((2, 3)), values((3,), seed=1)
    known = relay.exp(relay.add(relay.const(a), relay.const(b)))
    body = folded(relay.Function([x], x * known + known)).body
    assert [type(arg).__name__ for arg in body.args] == ["Call", "Constant"]
    # Both are the exponential function, of float32.
    np.testing.assert_allclose(body.args[1].data.numpy(), np.exp(a + b), rtol=1e-5)


def test_results_of_operators_with_several():
    x, a = relay.var("x", shape=(2, 2)), values((2, 4))
    first, second = relay.split(relay.const(a), 2, axis=1)
    body = folded(relay.Function([x], relay.Tuple([x + first, relay.Tuple([second, x])]))).body
    np.testing.assert_array_equal(body.fields[0].args[1].data.numpy(), a[:, :2])
    np.testing.assert_array_equal(body.fields[1].fields[0].data.numpy(), a[:, 2:])


def test_expressions_are_folded_and_put_in_normal_form_by_themselves():
    x = relay.var("x", shape=(2,))
    found = relay.transform.FoldConstantExpr(x + (relay.const([1.0, 2.0]) + relay.const([3.0, 4.0])))
    np.testing.assert_array_equal(found.args[1].data.numpy(), [4, 6])
    normal = relay.transform.ToANormalFormExpr(relay.exp(relay.abs(x)))
    assert isinstance(normal, relay.Let) and normal.value.op.name == "abs"
    with pytest.raises(RelayError, match="pass Vectorize of Relay is not supported yet"):
        relay.transform.Vectorize  # noqa: B018 # it is read for its error


def test_lets_of_constants_are_gone():
    x, v = relay.var("x", shape=(2, 3)), relay.var("v")
    body = folded(relay.Function([x], relay.Let(v, relay.tanh(relay.const(values((3,)))), x + v))).body
    assert body.op.name == "add" and isinstance(body.args[1], relay.Constant)


def test_what_is_not_known_stays():
    x, zeros = relay.var("x", shape=(2, 3)), relay.zeros((2, 3), "float32")
    function = relay.Function([x], x + zeros)
    relay.assert_structural_equal(folded(function), relay.transform.InferType()(relay.IRModule.from_expr(function))["main"])


def test_what_fails_does_so_when_the_program_runs():
    x, far = relay.var("x", shape=(2,)), relay.const(np.array([[5]]))
    bad = relay.op.scatter_nd(relay.const(values((2,))), far, relay.const(values((1,))), "add")
    assert folded(relay.Function([x], x + bad)).body.args[1].op.name == "scatter_nd"


def test_a_let_is_the_constant_for_the_lets_after_it():
    x, a = relay.var("x", shape=(3,)), values((3,))
    u, v, w = relay.var("u"), relay.var("v"), relay.var("w")
    program = relay.Let(u, relay.const(a), relay.Let(v, u + u, relay.Let(w, v * x, w + v)))
    found = folded(relay.Function([x], program)).body
    assert found.var.name_hint == "w" and isinstance(found.body, relay.Call)
    np.testing.assert_array_equal(found.value.args[0].data.numpy(), a + a)


def test_sizes_and_branches_on_constants_are_known():
    x = relay.var("x", shape=(3, 4))
    shape = relay.shape_of(relay.exp(x))
    taken = relay.If(relay.less(relay.const(2), relay.const(1)), relay.exp(x), relay.tanh(x))
    sizes = relay.shape_of(relay.exp(x), "float32")
    first, second, third = folded(relay.Function([x], relay.Tuple([relay.cast(shape, "int64"), taken, sizes]))).body.fields
    np.testing.assert_array_equal(first.data.numpy(), np.array([3, 4], "int64"))
    assert third.data.dtype == "float32" and third.data.numpy().tolist() == [3, 4]
    assert second.op.name == "tanh"


def test_dropout_and_quantized_operators_stay():
    x, data = relay.var("x", shape=(3,), dtype="int8"), relay.const(np.array([1.0, -2.0, 3.0], "float32"))
    function = relay.Function([x], x + relay.qnn.op.quantize(data, relay.const(0.5), relay.const(0)))
    assert folded(function).body.args[1].op.name == "qnn.quantize"
    module = relay.transform.FoldConstant(fold_qnn=True)(relay.IRModule.from_expr(function))
    np.testing.assert_array_equal(module["main"].body.args[1].data.numpy(), np.array([2, -4, 6], "int8"))
    y = relay.var("y", shape=(3,))
    assert folded(relay.Function([y], y + relay.nn.dropout(data))).body.args[1].tuple_value.op.name == "nn.dropout"
