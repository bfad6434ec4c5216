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


def test_recursion_on_numbers_that_come_again_ends():
    """2 and 0 are followed, and 1 is above what has been there."""
    text = """def @turn(%x: float32, %n: int32) -> float32 { if (%x > 9f) { %x } else { @turn(%x * 2f, mod(%n + 1, 3)) } }
    def @main(%x: float32) -> float32 { @turn(%x, 2) }"""
    assert calls(evaluated(text)).count("multiply") == 2
    assert run(evaluated_module(text), np.float32(1.5)).numpy() == 12


def evaluated_module(text):
    return transform.InferType()(transform.PartialEvaluate()(relay.parse(f'#[version = "0.0.5"]\n{text}')))


def test_matches_on_known_data_choose_their_clause():
    mod = relay.Prelude().mod
    x, (_, cons, nil) = relay.var("x", shape=(2,)), mod.get_type("List")
    mod["main"] = relay.Function([x], mod.get_global_var("nth")(cons(relay.exp(x), cons(relay.tanh(x), nil())), relay.const(1)))
    assert calls(evaluated(mod)) == ["tanh"]


def test_patterns_take_values_of_which_all_parts_match():
    text = """def @main(%x: float32) -> float32 {
      match ((Cons(%x, Nil), Nil)) { (Nil, _) => exp(%x), (_, Cons(_, _)) => tanh(%x), _ => %x * 2f } }"""
    assert calls(evaluated(relay.parse(text, init_module=relay.Prelude().mod))) == ["multiply"]


def test_references_are_followed_until_unknown_code_may_write():
    known = "def @main(%x: float32) -> float32 { let %r = ref(%x); ref_write(%r, ref_read(%r) * 2f); ref_read(%r) }"
    assert calls(evaluated(known)) == ["multiply"] and "ref_read" not in evaluated(known).astext()
    late = """def @main(%c: bool, %x: float32) -> float32 {
      let %r = ref(%x);
      let %f = if (%c) { fn () -> float32 { ref_read(%r) } } else { fn () -> float32 { 0f } };
      ref_write(%r, %x * 2f); %f() }"""
    assert run(evaluated_module(late), True, np.float32(3)).numpy() == 6
    read = "def @main(%c: bool, %x: float32) -> float32 { let %r = ref(%x); if (%c) { ref_read(%r) + 1f } else { %x } }"
    assert "ref_read" not in evaluated(read).astext()
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


def test_operators_on_tuples_of_which_a_part_is_not_known_are_left():
    x, known = relay.var("x", shape=(2,)), relay.const(np.float32([3, 4]))
    found = evaluated(relay.IRModule.from_expr(relay.Function([x], relay.concatenate([known, x], 0))))
    assert calls(found) == ["concatenate"]


def test_a_call_in_itself_with_arguments_of_before_is_left():
    """The third of calls in each other has again the arguments of the first, in whose places the second had others."""
    text = """
    def @apply(%g: fn (float32, float32) -> float32, %x: float32, %y: float32) -> float32 { %g(%x, %y) }
    def @main(%x: float32, %y: float32) -> float32 {
      @apply(fn (%a: float32, %b: float32) -> float32 {
        @apply(fn (%c: float32, %d: float32) -> float32 {
          @apply(fn (%e: float32, %f: float32) -> float32 { %e - %f }, %d, %c) }, %b, %a) }, %x, %y) }"""
    assert "@apply" in calls(evaluated(text))


def test_an_operator_is_computed_on_values_of_each_type():
    given = [np.array([1.5, -2], np.float32), np.array([[3, 4, -5]], np.float32), np.array([6, -7], np.int32)]
    found = evaluated(relay.IRModule.from_expr(relay.Function([], relay.Tuple([relay.abs(relay.const(x)) for x in given]))))
    assert calls(found) == []
    for field, x in zip(found.body.fields, given, strict=True):
        np.testing.assert_array_equal(field.data.numpy(), np.abs(x), strict=True)


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


def test_functions_that_are_values_have_continuations():
    text = """
    def @main(%c: bool, %x: float32) -> float32 {
      let %twice = fn (%f: fn(float32) -> float32, %v: float32) -> float32 { %f(%f(%v)) };
      match ((%x + 1f, (%x, 2f))) { (%a, (%b, _)) => %twice(fn (%v: float32) -> float32 { if (%c) { %v * %a } else { %v - %b } }, %b) } }"""
    mod = relay.parse(text)
    found = relay.parse(text)
    found["main"] = transform.un_cps(transform.to_cps(found["main"]))
    for c in (True, False):
        assert run(found, c, np.float32(1.25)).numpy() == run(mod, c, np.float32(1.25)).numpy()
    x = relay.var("x", shape=(1,))
    shared = relay.exp(x)
    graph = relay.IRModule.from_expr(transform.un_cps(transform.to_cps(relay.Function([x], shared + relay.tanh(shared)))))
    np.testing.assert_allclose(run(graph, np.ones(1, "float32")).numpy(), np.e + np.tanh(np.e), rtol=1e-6)


def test_what_is_written_through_an_unknown_reference_may_be_any():
    text = """
    def @main(%c: bool, %x: int32) -> int32 {
      let %r = ref(1);
      let %s = ref(2);
      let %t = if (%c) { %r } else { %s };
      let %w = ref_write(%r, 1);
      let %u = ref_write(%t, 5);
      let %k = fn (%v: int32, Primitive=1) -> int32 { %v + 1 };
      %k(ref_read(%r)) * 100 + ref_read(%s) * 10 + %x }"""
    left = transform.InferType()(transform.PartialEvaluate()(relay.parse(text)))
    assert [int(run(left, c, 3).numpy()) for c in (True, False)] == [623, 253]


def test_what_fails_or_gives_tuples_is_evaluated_as_it_is():
    text = """def @main() {
      let %s = split(meta[relay.Constant][0], indices_or_sections=2);
      (%s.1, reshape(meta[relay.Constant][0], newshape=[2, 2])) }"""
    mod = relay.parse_module(text, init_metadata={"relay.Constant": [relay.const(np.arange(4, dtype="int32"))]})
    left = transform.InferType()(transform.PartialEvaluate()(transform.InferType()(mod)))
    assert "split" not in calls(transform.DeadCodeElimination(inline_once=True)(left)["main"])
    for found, expected in zip(run(left), ([2, 3], [[0, 1], [2, 3]]), strict=True):
        assert found.numpy().tolist() == expected


def test_deep_programs_have_continuations():
    x = y = relay.var("x", shape=(1,))
    for _ in range(1500):
        y = relay.tanh(y)
    mod = transform.ToCPS()(relay.IRModule.from_expr(relay.Function([x], y)))
    assert transform.UnCPS()(mod)["main"].ret_type == relay.TensorType((1,))


def test_what_is_no_continuation_is_an_error():
    x = relay.var("x", shape=(1,))
    a, answer = relay.TypeVar("a"), relay.TypeVar("answer")
    kinds = [relay.FuncType([x.type_annotation], a), relay.FuncType([], answer), relay.FuncType([x.type_annotation] * 2, answer)]
    wrong = [relay.Function([x], x), relay.Function([], relay.const(1.0)), relay.Function([x], x, None, [answer])]
    wrong += [relay.Function([k := relay.Var("k", kind)], k, None, [a, answer]) for kind in kinds]
    for function in wrong:
        with pytest.raises(relayc.RelayError, match=r"un_cps: expected a function of type fn \(A, fn \(B\) -> R\) -> R for any R, found"):
            transform.un_cps(function)
    with pytest.raises(relayc.RelayError, match="to_cps: expected functions that are no kernels of their own, found a primitive function"):
        transform.to_cps(relay.Function([x], x, attrs={"Primitive": 1}))


def test_operators_on_known_values_differ_in_attributes_and_types():
    x, y = relay.const(np.array([[1, 2], [4, 8]], "float32")), relay.const(np.array([[3, 5]], "float32"))
    calls = [relay.sum(x, 0), relay.sum(x, 1), relay.max(x, 0), relay.sum(y, 0)]
    left = transform.PartialEvaluate()(relay.IRModule.from_expr(relay.Function([], relay.Tuple(calls))))
    left = transform.DeadCodeElimination()(transform.InferType()(left))
    found = []
    relay.analysis.post_order_visit(
        left["main"], lambda node: found.append(node.data.numpy()) if isinstance(node, relay.Constant) else None
    )
    for a, b in zip(found, ([5, 10], [3, 12], [4, 8], [3, 5]), strict=True):
        np.testing.assert_array_equal(a, b)
