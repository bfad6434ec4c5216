"""Passes that replace calls of operators, on programs of the Relay language."""

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
    relay.analysis.post_order_visit(
        function, lambda e: found.append(e.op.name) if isinstance(e, relay.Call) and isinstance(e.op, relay.Op) else None
    )
    return found


def test_a_division_by_a_float_is_a_product():
    x, divisor = relay.var("x", shape=(3,)), values((3,)) + 5
    found = main_of(x / relay.const(divisor), transform.DivToMul()).body
    assert found.op.name == "multiply"
    np.testing.assert_array_equal(found.args[1].data.numpy(), 1 / divisor)
    n = relay.var("n", shape=(3,), dtype="int32")
    for kept in (n / relay.const(np.array([2, 3, 5], "int32")), relay.const(divisor) / x, x / relay.const(np.array([1, 0, 2], "float32"))):
        assert main_of(kept, transform.DivToMul()).body.op.name == "divide"


def test_a_cast_that_several_read_is_done_for_each():
    x = relay.var("x", shape=(2, 3), dtype="int8")
    wide = relay.cast(relay.clip(x, -3.0, 3.0), "int32")
    found = main_of((wide + relay.const(1)) * (wide - relay.const(2)), transform.CanonicalizeCast())
    assert sorted(operators(found)) == ["add", "cast", "cast", "clip", "multiply", "subtract"]
    narrow = relay.cast(relay.var("y", shape=(3,), dtype="int32"), "int8")
    same = relay.cast(relay.var("y", shape=(3,), dtype="int32"), "float32")
    for one in (narrow, same):
        assert operators(main_of(one * relay.negative(one), transform.CanonicalizeCast())).count("cast") == 1


def test_fused_functions_are_taken_apart():
    x = relay.var("x", shape=(4, 6))
    function = relay.Function([x], relay.squeeze(relay.expand_dims(relay.exp(x + relay.const(2.0)), 0)))
    fused = transform.FuseOps()(relay.IRModule.from_expr(function))
    functions = []
    relay.analysis.post_order_visit(fused["main"], lambda e: functions.append(e) if isinstance(e, relay.Function) else None)
    assert len(functions) > 1
    found = transform.DefuseOps()(fused)["main"]
    assert operators(found)[:2] == ["add", "exp"] and "fn (%p0" not in found.astext()
    data = values((4, 6))
    found = relay.create_executor("graph", transform.DefuseOps()(fused)).evaluate()(data).numpy()
    np.testing.assert_allclose(found, np.exp(data + 2), rtol=1e-6)


@pytest.mark.parametrize(("level", "groups"), [(-1, 1), (0, 3), (1, 1)])
def test_the_level_of_fusion(level, groups):
    """Negative: that of the context; level 0 has no rules."""
    x = relay.var("x", shape=(4, 6))
    program = relay.IRModule.from_expr(relay.exp(relay.tanh(x) + relay.const(2.0)))
    functions = []

    def add(node):
        if isinstance(node, relay.Function):
            functions.append(node)

    relay.analysis.post_order_visit(transform.FuseOps(level)(program)["main"].body, add)
    assert len(functions) == groups


def test_fast_operators_where_the_context_wants_them():
    x = relay.var("x", shape=(2, 4))
    program = relay.nn.softmax(relay.tanh(relay.exp(x)), axis=0)
    mod = relay.IRModule.from_expr(program)
    with relayc.PassContext(opt_level=3):
        assert operators(relay.optimize(mod)[0]["main"]) == ["exp", "tanh", "nn.softmax"]
    with relayc.PassContext(opt_level=3, required_pass=["FastMath"]):
        found, params = relay.optimize(mod, target="llvm")
    assert operators(found["main"]) == ["fast_exp", "fast_tanh", "nn.fast_softmax"] and params == {}
    data = values((2, 4))
    expected = relay.create_executor("graph", mod).evaluate()(data).numpy()
    np.testing.assert_allclose(relay.create_executor("graph", found).evaluate()(data).numpy(), expected, rtol=1e-6)


def test_optimize_takes_parameters_in():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    weight = values((4, 3))
    found, _ = relay.optimize(relay.nn.dense(x, relay.exp(w)), params={"w": weight})
    assert [p.name_hint for p in found["main"].params] == ["x"]
    np.testing.assert_allclose(found["main"].body.args[1].data.numpy(), np.exp(weight), rtol=1e-6)


def test_legalisation_passes_all_attributes_on():
    """What replaces a convolution may be a call with the attributes of the one that it replaces."""
    x, w = relay.var("x", shape=(1, 4, 6, 6)), relay.var("w", shape=(8, 4, 3, 3))
    before = relay.nn.conv2d(x, w, padding=(1, 2), strides=(2, 1))
    call = main_of(before, transform.InferType()).body
    relay.assert_structural_equal(relay.nn.conv2d(*call.args, **call.attrs), call)


def test_modules_have_attributes():
    mod = relay.IRModule.from_expr(relay.var("x", shape=(2,)))
    assert mod.with_attr("executor", "aot").attrs["executor"] == "aot" and "executor" not in mod.attrs
    with pytest.raises(KeyError, match=r"core\.rly"):
        mod.import_from_std("nothing.rly")
    mod.import_from_std("core.rly")
    assert [v.name_hint for v in mod.get_global_type_vars()] == ["Storage"]
