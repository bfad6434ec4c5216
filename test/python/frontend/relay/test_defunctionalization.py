"""Defunctionalization: no function is a value afterwards, and programs mean the same."""

import numpy as np
import pytest

import relayc
from relayc import relay


def first_order(text, init=None):
    mod = relay.parse(f'#[version = "0.0.5"]\n{text}', init_module=init)
    made = relay.parse(mod.astext())
    made["main"] = relay.transform.Defunctionalization(made["main"], made)
    made = relay.transform.RemoveUnusedFunctions()(relay.transform.InferType()(made))
    values = [value for function in made.functions.values() for value in values_of(function)]
    assert not any(isinstance(value.checked_type, relay.FuncType) for value in values)
    return mod, made


def values_of(function):
    """The arguments of calls, bound values and results in a function."""
    found = [function.body, *function.params]

    def visit(node):
        if isinstance(node, relay.Call):
            found.extend(node.args)
        elif isinstance(node, relay.Let):
            found.append(node.value)

    relay.analysis.post_order_visit(function, visit)
    return found


def same(mod, made, *args):
    results = [relay.create_executor("debug", each).evaluate()(*args) for each in (mod, made)]
    np.testing.assert_allclose(results[1].numpy(), results[0].numpy(), rtol=1e-6)
    return results[1].numpy()


def test_captured_values_are_fields():
    text = """
    def @twice[A](%f: fn(A) -> A, %x: A) -> A { %f(%f(%x)) }
    def @main(%x: float32, %c: bool) -> float32 {
      let %scale = %x + 1f;
      let %f = if (%c) { fn (%y: float32) -> float32 { %y * %scale } } else { fn (%y: float32) -> float32 { %y - %x } };
      @twice(%f, @twice(fn (%y: float32) -> float32 { %f(%y) / 3f }, %x)) }"""
    mod, made = first_order(text)
    assert [same(mod, made, np.float32(2), c) for c in (True, False)] == pytest.approx([18, -14 / 3])


def test_functions_that_give_functions_and_call_themselves():
    text = """
    def @main(%n: int32) -> int32 {
      let %count: fn(int32, fn(int32) -> int32) -> int32 = fn (%i: int32, %k: fn(int32) -> int32) -> int32 {
        if (%i == 0) { %k(1) } else { %count(%i - 1, fn (%x: int32) -> int32 { %k(%x * %i) }) } };
      let %add = fn (%a: int32) -> fn(int32) -> int32 { fn (%b: int32) -> int32 { %a + %b } };
      %count(%n, %add(100)) }"""
    assert same(*first_order(text), 5) == 220


def test_polymorphic_functions_are_copied_for_types():
    text = """
    def @main(%x: float32) -> float32 {
      let %one = @map(fn (%v: float32) -> int32 { cast(%v, dtype="int32") }, Cons(%x, Cons(3.5f, Nil)));
      let %two = @map(@half, @map(@id, %one));
      @foldl(fn (%a: float32, %b: float32) -> float32 { %a * 10f + %b }, 0f, %two) }
    def @half(%v: int32) -> float32 { cast(%v, dtype="float32") / 2f }"""
    mod, made = first_order(text, relay.Prelude().mod)
    assert same(mod, made, np.float32(8.25)) == 41.5
    assert sum(var.name_hint.startswith("map_") for var in made.functions) == 3


def test_polymorphic_functions_of_lets_and_kernels():
    text = """
    def @kernel(%v: float32, Primitive=1) -> float32 { %v * 2f }
    def @main(%x: float32, %n: int32) -> float32 {
      let %same = fn [A](%v: A) -> A { %v };
      let %apply = fn (%f: fn(float32) -> float32, %v: float32) -> float32 { %f(%v) };
      let %y = %apply(%same(fn (%v: float32) -> float32 { @kernel(%v) + 1f }), %same(%x));
      match ((%same(%n), (%y, %x))) { (%m, (%a, _)) => %a * cast(%m, dtype="float32") } }"""
    assert same(*first_order(text), np.float32(3), 4) == 28


def test_functions_in_tuples_and_references():
    text = """
    def @main(%x: float32) -> float32 {
      let %r = ref(fn (%v: float32) -> float32 { %v * 2f });
      let %t = (ref_read(%r), %x);
      ref_write(%r, fn (%v: float32) -> float32 { %t.0(%v) + 1f });
      let %g = ref_read(%r);
      (fn (%f: fn(float32) -> float32) -> float32 { %f(%g(%t.1)) })(%t.0) }"""
    assert same(*first_order(text), np.float32(3)) == 14


def test_what_has_functions_in_its_type_is_an_error():
    text = "def @main(%f: fn(float32) -> float32) -> float32 { %f(1f) }"
    nested = "def @main(%f: (float32, fn(float32) -> float32)) -> float32 { %f.1(%f.0) }"
    result = "def @main() -> (int32, fn(int32) -> int32) { (1, fn (%x: int32) -> int32 { %x }) }"
    for program in (text, nested, result, "def @main[A](%x: A) -> A { %x }"):
        with pytest.raises(relayc.RelayError, match="expected a type without functions and type parameters, found fn"):
            first_order(program)
    with pytest.raises(relayc.RelayError, match="expected a type of functions without parameters, found fn"):
        first_order(
            "def @main(%c: bool) -> int32 { let %f = if (%c) { fn [A](%x: A) -> A { %x } } else { fn [B](%y: B) -> B { %y } }; %f(1) }"
        )
    boxed = """type Box { Put(fn() -> float32) }
    def @main() -> float32 { match (Put(fn () -> float32 { 1f })) { Put(%f) => %f() } }"""
    deep = boxed.replace("Put(fn() -> float32)", "Put((fn() -> float32, float32))").replace("{ 1f }))", "{ 1f }, 2f))")
    for program in (boxed, deep.replace("(Put(fn", "(Put((fn").replace("2f))", "2f)))").replace("%f()", "%f.0()")):
        with pytest.raises(relayc.RelayError, match="expected data without functions, found constructor Put of Box"):
            first_order(program)
