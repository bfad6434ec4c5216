"""Operators that TVM's passes put into programs: calls of functions that are compiled, annotations of functions, breakpoints."""

import sys

import numpy as np
import pytest
from oracle import values

import relayc
from relayc import relay

CALLED = """
#[version = "0.0.5"]
def @scaled(%a: Tensor[(2, 3), float32], %b: Tensor[(3), float32]) -> (Tensor[(2, 3), float32], Tensor[(3), float32]) {
  (multiply(%a, %b), negative(%b))
}
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3), float32]) {
  %0 = call_lowered(@scaled, (%x, %y));
  add(%0.0, %0.1)
}
"""


def test_a_call_of_a_lowered_function_is_a_call():
    mod = relay.parse(CALLED)
    assert relay.structural_equal(relay.parse(mod.astext()), mod)
    typed = relay.transform.InferType()(mod)
    assert typed["main"].body.args[0].tuple_value.checked_type == typed["scaled"].ret_type
    x, y = values((2, 3)), values((3,), seed=1)
    for run in (relay.create_executor("graph", mod).evaluate(), relay.create_executor("vm", mod).evaluate(), relayc.compile(mod)["main"]):
        found = run(x, y)
        np.testing.assert_allclose(found.numpy() if hasattr(found, "numpy") else found, x * y - y, rtol=1e-6)


def test_lowered_functions_in_programs_with_control():
    mod = relay.parse(
        """
        #[version = "0.0.5"]
        type Chain { Link(Tensor[(), float32], Chain), End }
        def @total(%chain: Chain) -> Tensor[(), float32] {
          match (%chain) {
            Link(%head, %rest) => { %0 = call_lowered(@total, (%rest,)); add(%head, %0) },
            End => { 0f }
          }
        }
        def @main(%x: Tensor[(), float32]) -> Tensor[(), float32] { @total(Link(%x, Link(2f, End))) }
        """
    )
    assert relay.create_executor("vm", mod).evaluate()(np.float32(5)).numpy() == 7
    assert relayc.compile(mod)["main"](np.float32(5)) == 7


def test_wrong_arguments_of_lowered_functions():
    with pytest.raises(ValueError, match=r"call_lowered: expected a tuple of arguments of the types \(Tensor\[\(2, 3\)"):
        relay.transform.InferType()(relay.parse(CALLED.replace("(%x, %y)", "(%y, %y)")))
    with pytest.raises(ValueError, match="call_lowered: expected a function, found Tensor"):
        relay.transform.InferType()(relay.parse(CALLED.replace("@scaled, ", "%x, ")))


INVOKED = """
#[version = "0.0.5"]
def @main(%x: Tensor[(3), float32], %out: Tensor[(3), float32]) {
  let %f = fn (%a: Tensor[(3), float32], Primitive=1) -> Tensor[(3), float32] { exp(%a) };
  let %done: () = vm.invoke_tvm_op(%f, (%x,), (%out,));
  %out
}
"""


def test_functions_that_write_their_results_stand_in_programs_only():
    mod = relay.transform.InferType()(relay.parse(INVOKED))
    assert relay.structural_equal(relay.parse(mod.astext()), mod)
    with pytest.raises(ValueError, match=r"vm\.invoke_tvm_op: expected a call of the function: relayc plans the memory"):
        relayc.compile(mod)
    with pytest.raises(ValueError, match=r"expected a tuple of tensors to write of the types \(Tensor\[\(3\), float32\],\), found \(\)"):
        relay.transform.InferType()(relay.parse(INVOKED.replace("(%out,)", "()")))


def test_numbers_of_functions_change_nothing():
    x = relay.var("x", shape=(3,))
    square = relay.var("y", shape=(3,))
    function = relay.op.annotation.with_funcid(relay.Function([square], square * square), fid=3)
    program = relay.Function([x], relay.Call(function, [x]))
    assert relay.structural_equal(relay.parse_expr(program.astext()), program)
    assert not relay.structural_equal(relay.parse_expr(program.astext().replace("fid=3", "fid=4")), program)
    data = values((3,))
    np.testing.assert_allclose(relay.create_executor().evaluate(program)(data).numpy(), data * data, rtol=1e-6)


def test_breakpoints_by_the_names_of_functions(monkeypatch):
    text = """
    #[version = "0.0.5"]
    fn (%x: Tensor[(2, 3), float32]) { add(debug(exp(%x), debug_func="test.look"), debug(%x)) }
    """
    seen, stops = [], []

    @relayc.register_func("test.look", override=True)
    def look(value, result):
        seen.append(value.copy())
        result[...] = value

    monkeypatch.setattr(sys, "breakpointhook", lambda *_: stops.append(1))
    data = values((2, 3))
    found = relay.create_executor("graph").evaluate(relay.parse_expr(text))(data)
    np.testing.assert_allclose(found.numpy(), np.exp(data) + data, rtol=1e-5)
    np.testing.assert_allclose(seen, [np.exp(data)], rtol=1e-5)
    assert stops == [1]
