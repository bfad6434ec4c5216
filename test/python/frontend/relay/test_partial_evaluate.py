"""PartialEvaluate and continuation-passing style: what is left of programs, and that they mean the same."""

import numpy as np
import pytest

import relayc
from relayc import relay

transform = relay.transform


def evaluated(text, name="main"):
    mod = text if isinstance(text, relay.IRModule) else relay.parse(f'#[version = "0.0.5"]\n{text}')
    passes = [transform.PartialEvaluate(), transform.InferType(), transform.DeadCodeElimination(inline_once=True), transform.InferType()]
    return transform.Sequential(passes)(mod)[name]


def calls(expr):
    found = []
    relay.analysis.post_order_visit(expr, lambda node: found.append(node) if isinstance(node, relay.Call) else None)
    return [str(getattr(node.op, "name", node.op)) for node in found]


def run(mod, *args):
    return relay.create_executor("graph", mod).evaluate()(*args)


COUNT = """
def @power(%x: float32, %n: int32) -> float32 { if (%n == 0) { 1f } else { %x * @power(%x, %n - 1) } }
def @main(%x: float32) -> float32 { @power(%x, 4) }
def @open(%x: float32, %n: int32) -> float32 { @power(%x, %n) }
"""


def test_recursion_on_known_numbers_ends():
    assert calls(evaluated(COUNT)) == ["multiply"] * 4
    assert "multiply" in calls(evaluated(COUNT, "open")) and run(evaluated_module(COUNT), np.float32(1.5)).numpy() == 1.5**4


def evaluated_module(text):
    return transform.InferType()(transform.PartialEvaluate()(relay.parse(f'#[version = "0.0.5"]\n{text}')))


def test_matches_on_known_data_choose_their_clause():
    mod = relay.Prelude().mod
    x, (_, cons, nil) = relay.var("x", shape=(2,)), mod.get_type("List")
    mod["main"] = relay.Function([x], mod.get_global_var("nth")(cons(relay.exp(x), cons(relay.tanh(x), nil())), relay.const(1)))
    assert calls(evaluated(mod)) == ["tanh"]


def test_references_are_followed_until_unknown_code_may_write():
    known = "def @main(%x: float32) -> float32 { let %r = ref(%x); ref_write(%r, ref_read(%r) * 2f); ref_read(%r) }"
    assert calls(evaluated(known)) == ["multiply"] and "ref_read" not in evaluated(known).astext()
    branch = """def @main(%c: bool, %x: float32) -> float32 {
      let %r = ref(%x); if (%c) { ref_write(%r, 5f) } else { () }; ref_read(%r) + 1f }"""
    found = evaluated_module(branch)
    assert "ref_read" in found.astext()
    assert [run(found, c, np.float32(3)).numpy() for c in (True, False)] == [6, 4]


def test_what_a_known_closure_captures_is_known():
    text = """def @main(%x: float32) -> float32 {
      let %make = fn (%k: float32) { fn (%y: float32) { %y * %k } };
      let %f = %make(2f + 3f);
      %f(%f(%x)) }"""
    found = evaluated(text)
    assert calls(found) == ["multiply", "multiply"] and found.astext().count("5f") + found.astext().count("let") >= 1
    assert run(relay.IRModule.from_expr(found), np.float32(2)).numpy() == 50


def test_polymorphic_functions_take_the_types_of_the_call():
    text = """
    def @twice[A](%f: fn (A) -> A, %x: A) -> A { let %g = fn (%y: A) -> A { %f(%f(%y)) }; %g(%x) }
    def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { @twice(fn (%v: Tensor[(2), float32]) { exp(%v) }, %x) }"""
    assert calls(evaluated(text)) == ["exp", "exp"]


def test_what_says_a_device_is_not_computed():
    assert calls(evaluated("def @main() -> float32 { on_device(1f + 2f) }")) == ["on_device"]


def test_operators_are_computed_with_their_attributes():
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    known = relay.const(x)
    found = evaluated(relay.IRModule.from_expr(relay.Function([], relay.cumsum(known, 0) - relay.cumsum(known, 1))))
    assert calls(found) == []
    np.testing.assert_array_equal(run(relay.IRModule.from_expr(found)).numpy(), x.cumsum(0) - x.cumsum(1))


def test_shared_values_are_evaluated_once():
    x = y = relay.var("x", shape=(2,))
    for _ in range(20):
        y = y + y
    assert calls(evaluated(relay.IRModule.from_expr(relay.Function([x], y)))) == ["add"] * 20


def test_deep_programs_are_evaluated():
    x = y = relay.var("x", shape=(1,))
    for _ in range(2000):
        y = relay.tanh(y)
    assert len(calls(transform.PartialEvaluate()(relay.IRModule.from_expr(relay.Function([x], y)))["main"])) == 2000


def test_continuations_mean_the_same():
    text = """
    type List[A] { Cons(A, List[A]), Nil }
    def @sum(%l: List[float32]) -> float32 { match (%l) { Cons(%x, %rest) => %x + @sum(%rest), Nil => 0f } }
    def @main(%c: bool, %x: float32) -> float32 {
      let %r = ref(%x);
      let %y = if (%c) { ref_write(%r, %x * 2f); @sum(Cons(%x, Cons(ref_read(%r), Nil))) } else { exp(%x) };
      (%y, ref_read(%r)).0 - ref_read(%r) }"""
    mod = relay.parse(f'#[version = "0.0.5"]\n{text}')
    expected = [run(mod, c, np.float32(1.25)).numpy() for c in (True, False)]
    mod["main"] = transform.to_cps(mod["main"], mod)
    mod = transform.InferType()(mod)
    assert mod["main"].checked_type.ret_type == mod["main"].type_params[-1] and "sum_cps" in mod
    mod["main"] = transform.un_cps(mod["main"])
    found = transform.InferType()(mod)
    assert [run(found, c, np.float32(1.25)).numpy() for c in (True, False)] == expected
    left = transform.InferType()(transform.PartialEvaluate()(found))
    assert [run(left, c, np.float32(1.25)).numpy() for c in (True, False)] == expected


def test_deep_programs_have_continuations():
    x = y = relay.var("x", shape=(1,))
    for _ in range(1500):
        y = relay.tanh(y)
    mod = transform.ToCPS()(relay.IRModule.from_expr(relay.Function([x], y)))
    assert transform.UnCPS()(mod)["main"].ret_type == relay.TensorType((1,))


def test_what_is_no_continuation_is_an_error():
    x = relay.var("x", shape=(1,))
    with pytest.raises(relayc.RelayError, match="un_cps: expected a function whose last parameter is its continuation"):
        transform.un_cps(relay.Function([x], x))
