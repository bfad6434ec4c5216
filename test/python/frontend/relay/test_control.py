"""Programs with data types, references and functions as values, against the same in Python."""

import numpy as np
import pytest

from relayc import relay
from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.inference import TypeInferenceError
from relayc.runtime.values import ConstructorValue, RefValue

X = np.array([[1, -2, 3], [4, 5, -6]], "float32")


def run(source, *args, kind="debug"):
    return relay.create_executor(kind, relay.parse(source) if isinstance(source, str) else source).evaluate()(*args)


def elements(value):
    """The elements of a list of the prelude."""
    found = []
    while value.fields:
        found.append(value.fields[0])
        value = value.fields[1]
    return found


@pytest.fixture(scope="module")
def prelude():
    found = relay.Prelude()
    found.mod.import_from_std("nat.rly")
    return found


def prelude_of(text, *args):
    module = relay.IRModule()
    relay.Prelude(module).mod.import_from_std("nat.rly")
    return run(relay.parse(text, init_module=module), *args)


def listed(*values, last="Nil"):
    return last if not values else f"Cons({values[0]}, {listed(*values[1:], last=last)})"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("@hd(%l)", 4),
        ("@tl(%l)", [1, 7]),
        ("@nth(%l, 2)", 7),
        ("@update(%l, 1, 5)", [4, 5, 7]),
        ("@length(%l)", 3),
        ("@sum(%l)", 12),
        ("@map(fn (%x: int32) { %x * %n }, %l)", [12, 3, 21]),
        ("@filter(fn (%x: int32) { %x > %n }, %l)", [4, 7]),
        ("@foldl(fn (%a: int32, %x: int32) { %a * 2 - %x }, 100, %l)", ((100 * 2 - 4) * 2 - 1) * 2 - 7),
        ("@foldr(fn (%x: int32, %a: int32) { %a * 2 - %x }, 100, %l)", ((100 * 2 - 7) * 2 - 1) * 2 - 4),
        ("@foldr1(fn (%x: int32, %a: int32) { %a * 2 - %x }, %l)", (7 * 2 - 1) * 2 - 4),
        ("@concat(%l, @rev(%l))", [4, 1, 7, 7, 1, 4]),
        ("@map(fn (%p: (int32, int32)) { %p.0 * 10 + %p.1 }, @zip(%l, @tl(%l)))", [41, 17]),
        ("@map_accuml(fn (%a: int32, %x: int32) { (%a + %x, %a * %x) }, 2, %l).0", 14),
        ("@map_accumr(fn (%a: int32, %x: int32) { (%a + %x, %a * %x) }, 2, %l).1", [40, 9, 14]),
        ("@unfoldr(fn (%x: int32) { if (%x > 9) { None } else { Some((%x * 2, %x)) } }, %n)", [3, 6]),
        ("@unfoldl(fn (%x: int32) { if (%x > 9) { None } else { Some((%x * 2, %x)) } }, %n)", [6, 3]),
        ("@size(Rose(1, Cons(Rose(2, Nil), Cons(Rose(3, Cons(Rose(4, Nil), Nil)), Nil))))", 4),
        ("@iterate(fn (%x: int32) { %x * 2 }, 5)(%n)", 96),
        ("@compose(fn (%x: int32) { %x * 2 }, fn (%x: int32) { %x + 1 })(%n)", 8),
        ("@flip(fn (%x: int32, %y: int32) { %x - %y })(%n, 10)", 7),
        ("@nat_nth(%l, @nat_add(succ(zero), succ(zero)))", 7),
        ("@nat_update(%l, @nat_double(succ(zero)), 0)", [4, 1, 0]),
        ("@nat_iterate(fn (%x: int32) { %x * 2 }, succ(succ(zero)))(%n)", 12),
    ],
)
def test_prelude(expression, expected):
    found = prelude_of(f"def @main(%n: int32) {{ let %l = {listed(4, 1, 7)}; {expression} }}", 3)
    assert (elements(found) if isinstance(found, ConstructorValue) else found) == expected


def test_trees_keep_their_form():
    found = prelude_of("def @main() { @tmap(fn (%x: int32) { %x + 1 }, Rose(1, Cons(Rose(2, Nil), Nil))) }")
    assert found.fields[0] == 2 and elements(found.fields[1])[0].fields[0] == 3
    assert found.constructor.name_hint == "Rose" and str(found) == "Rose(NDArray(2, dtype=int32), ...)"


def test_tensors_in_data_types_and_kernels_between_them():
    source = """
    type Tree { Leaf(Tensor[(2, 3), float32]), Node(Tree, Tree) }
    def @fold(%t: Tree) -> Tensor[(2, 3), float32] {
      match (%t) { Leaf(%x) => tanh(%x) * 2f, Node(%l, %r) => nn.relu(@fold(%l) + @fold(%r)) - 1f }
    }
    def @main(%t: Tree, %x: Tensor[(2, 3), float32]) { (@fold(Node(%t, Leaf(%x))), Node(%t, Leaf(%x * %x))) }
    """
    module = relay.parse(source)
    _, leaf, node = module.get_type("Tree")
    tree = ConstructorValue(node.tag, [ConstructorValue(leaf.tag, [X], leaf), ConstructorValue(leaf.tag, [X + 1], leaf)], node)
    value, made = run(module, tree, X)

    def fold(a, b):
        return np.maximum(a + b, 0) - 1

    expected = fold(fold(2 * np.tanh(X), 2 * np.tanh(X + 1)), 2 * np.tanh(X))
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert made.fields[0] is tree
    np.testing.assert_array_equal(made.fields[1].fields[0], X * X)


def test_patterns_are_tried_in_order():
    source = """
    type B { A(int32, B), Z }
    def @f(%b: B) -> int32 {
      match (%b) { A(%x, A(%y, Z)) => %x * 10 + %y, A(%x, A(_, %rest)) => @f(%rest) + %x, A(%x, _) => %x, %other => -1 }
    }
    def @main() {
      (@f(Z), @f(A(3, Z)), @f(A(3, A(4, Z))), @f(A(3, A(4, A(5, Z)))), match ((A(1, Z), 7)) { (Z, _) => 0, (_, %n) => %n })
    }
    """
    assert run(source) == [-1, 3, 34, 8, 7]
    with pytest.raises(RelayError, match="hd: expected a value that a clause of match takes"):
        prelude_of("def @main() -> int32 { @hd(Nil) }")
    with pytest.raises(TypeInferenceError, match=r"expected a clause for every value, found none for A\(_, A\(_, Z\)\)"):
        relay.parse("type B { A(int32, B), Z } def @main(%b: B) { match (%b) { A(_, A(_, A(_, _))) => 1, A(_, Z) => 2, Z => 3 } }")


def test_references_are_changed_in_order():
    source = """
    def @add(%r: ref(int32), %n: int32) -> int32 {
      if (%n == 0) { ref_read(%r) } else { ref_write(%r, ref_read(%r) + %n); @add(%r, %n - 1) }
    }
    def @main(%n: int32) {
      let %r = ref(5);
      let %before = ref_read(%r);
      let %bump = fn () { ref_write(%r, ref_read(%r) * 2) };
      let %a = %bump();
      let %b = %bump();
      let %sum = @add(%r, %n);
      (%before, %sum, ref_read(%r), %r)
    }
    """
    *found, ref = run(source, 3)
    assert found == [5, 26, 26] and isinstance(ref, RefValue) and ref.value == 26


def test_functions_escape():
    source = """
    type Fs { F(fn(float32) -> float32, Fs), E }
    def @fs(%n: int32, %x: float32) -> Fs {
      if (%n == 0) { E } else { F(fn (%y: float32) -> float32 { %x * %y }, @fs(%n - 1, %x + 1f)) }
    }
    def @all(%fs: Fs, %y: float32) -> float32 { match (%fs) { F(%f, %rest) => @all(%rest, %f(%y)), E => %y } }
    def @main(%c: bool, %x: float32) {
      let %power = fn (%n: int32, %y: float32) -> float32 { if (%n == 0) { 1f } else { %y * %power(%n - 1, %y) } };
      let %f = if (%c) { fn (%a: float32) -> float32 { %power(3, %a) } } else { fn (%a: float32) -> float32 { %a - %x } };
      (@all(@fs(3, %x), 1f), %f(%x))
    }
    """
    assert run(source, True, 2.0) == [24, 8] and run(source, False, 2.0, kind="vm") == [24, 0]


def test_calls_nest_as_deep_as_lists_are_long():
    source = """
    def @count(%n: int32, %l: List[int32]) -> List[int32] { if (%n == 0) { %l } else { @count(%n - 1, Cons(%n, %l)) } }
    def @main(%n: int32) { @foldr(fn (%x: int32, %a: int32) { %a + %x }, 0, @map(fn (%x: int32) { %x % 3 }, @count(%n, Nil))) }
    """.replace("%x % 3", "mod(%x, 3)")
    assert prelude_of(source, 5000) == sum(x % 3 for x in range(1, 5001))


def test_arguments_of_any_type(prelude):
    identity = relay.create_executor("debug", prelude.mod).evaluate(prelude.id)
    _, cons, nil = prelude.mod.get_type("List")
    value = ConstructorValue(cons.tag, [X, ConstructorValue(nil.tag, [], nil)], cons)
    assert identity(value) is value and identity([1, (2.5, 3)]) == [1, [2.5, 3]]
    ref = RefValue(X)
    assert identity(ref) is ref and identity(7) == 7


def test_lists_without_a_type_of_elements(prelude):
    _, cons, nil = prelude.mod.get_type("List")
    evaluate = relay.create_executor("debug", prelude.mod).evaluate
    assert evaluate(prelude.length(cons(nil(), cons(nil(), nil())))) == 2


def test_kernels_are_compiled_once():
    from relayc.relay import control

    source = "def @main(%n: int32) { @map(fn (%x: int32) { %x * 17 + %n }, Cons(%n, Cons(1, Nil))) }"
    prelude_of(source, 2)
    before = control._kernel.cache_info().misses
    assert [int(v) for v in elements(prelude_of(source.replace("%x", "%y"), 3))] == [54, 20]
    assert control._kernel.cache_info().misses == before
