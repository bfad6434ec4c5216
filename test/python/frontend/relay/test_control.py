"""Programs with data types, references and functions as values, against the same in Python."""

import contextlib
import ctypes

import numpy as np
import pytest
import tvm_ffi

import relayc
from relayc import relay
from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.inference import TypeInferenceError
from relayc.pipelines.control.steps import ControlProgram, KernelKey
from relayc.relay.kernel import _KEPT_BYTES, kernel_compiler
from relayc.runtime.values import ConstructorValue, RefValue

X = np.array([[1, -2, 3], [4, 5, -6]], "float32")


KINDS = pytest.mark.parametrize("kind", ["debug", "vm"])
"""The steps one by one, and as machine code."""


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


def prelude_of(text, *args, kind="debug"):
    module = relay.IRModule()
    relay.Prelude(module).mod.import_from_std("nat.rly")
    return run(relay.parse(text, init_module=module), *args, kind=kind)


def listed(*values, last="Nil"):
    return last if not values else f"Cons({values[0]}, {listed(*values[1:], last=last)})"


EXPRESSIONS = [
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
]


@KINDS
def test_prelude(kind):
    expressions = ", ".join(expression for expression, _ in EXPRESSIONS)
    found = prelude_of(f"def @main(%n: int32) {{ let %l = {listed(4, 1, 7)}; ({expressions}) }}", 3, kind=kind)
    for value, (expression, expected) in zip(found, EXPRESSIONS, strict=True):
        assert (elements(value) if isinstance(value, ConstructorValue) else value) == expected, expression


@KINDS
def test_trees_keep_their_form(kind):
    found = prelude_of("def @main() { @tmap(fn (%x: int32) { %x + 1 }, Rose(1, Cons(Rose(2, Nil), Nil))) }", kind=kind)
    assert found.fields[0] == 2 and elements(found.fields[1])[0].fields[0] == 3
    assert found.constructor.name_hint == "Rose" and str(found) == "Rose(NDArray(2, dtype=int32), ...)"


@KINDS
def test_tensors_in_data_types_and_kernels_between_them(kind):
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
    value, made = run(module, tree, X, kind=kind)

    def fold(a, b):
        return np.maximum(a + b, 0) - 1

    expected = fold(fold(2 * np.tanh(X), 2 * np.tanh(X + 1)), 2 * np.tanh(X))
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    np.testing.assert_array_equal(made.fields[0].fields[1].fields[0], X + 1)
    np.testing.assert_array_equal(made.fields[1].fields[0], X * X)


@KINDS
def test_patterns_are_tried_in_order(kind):
    source = """
    type B { A(int32, B), Z }
    def @f(%b: B) -> int32 {
      match (%b) { A(%x, A(%y, Z)) => %x * 10 + %y, A(%x, A(_, %rest)) => @f(%rest) + %x, A(%x, _) => %x, %other => -1 }
    }
    def @main() {
      (@f(Z), @f(A(3, Z)), @f(A(3, A(4, Z))), @f(A(3, A(4, A(5, Z)))), match ((A(1, Z), 7)) { (Z, _) => 0, (_, %n) => %n })
    }
    """
    assert run(source, kind=kind) == [-1, 3, 34, 8, 7]
    with pytest.raises(RelayError, match="hd: expected a value that a clause of match takes"):
        prelude_of("def @main() -> int32 { @hd(Nil) }", kind=kind)
    with pytest.raises(TypeInferenceError, match=r"expected a clause for every value, found none for A\(_, A\(_, Z\)\)"):
        relay.parse("type B { A(int32, B), Z } def @main(%b: B) { match (%b) { A(_, A(_, A(_, _))) => 1, A(_, Z) => 2, Z => 3 } }")


@KINDS
def test_references_are_changed_in_order(kind):
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
    *found, ref = run(source, 3, kind=kind)
    assert found == [5, 26, 26] and isinstance(ref, RefValue) and ref.value == 26


@KINDS
def test_functions_escape(kind):
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
    assert run(source, True, 2.0, kind=kind) == [24, 8] and run(source, False, 2.0, kind=kind) == [24, 0]


@KINDS
def test_calls_nest_as_deep_as_lists_are_long(kind):
    source = """
    def @count(%n: int32, %l: List[int32]) -> List[int32] { if (%n == 0) { %l } else { @count(%n - 1, Cons(%n, %l)) } }
    def @main(%n: int32) { @foldr(fn (%x: int32, %a: int32) { %a + %x }, 0, @map(fn (%x: int32) { %x % 3 }, @count(%n, Nil))) }
    """.replace("%x % 3", "mod(%x, 3)")  # no instruction: a kernel for each element
    assert prelude_of(source, 5000, kind=kind) == sum(x % 3 for x in range(1, 5001))


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
    from relayc.relay import kernel

    source = "def @main(%n: int32) { @map(fn (%x: int32) { %x * 17 + %n }, Cons(%n, Cons(1, Nil))) }"
    prelude_of(source, 2)
    before = kernel._kernel.cache_info().misses
    assert [int(v) for v in elements(prelude_of(source.replace("%x", "%y"), 3))] == [54, 20]
    assert kernel._kernel.cache_info().misses == before


@pytest.mark.parametrize("more", [0, 1])
def test_a_kernel_with_a_large_constant_goes_with_its_program(more):
    x = relay.var("x", shape=(1,), dtype="uint8")
    module = relay.IRModule.from_expr(relay.Function([x], x + relay.const(np.zeros(_KEPT_BYTES + more, np.uint8))))
    first, second = (kernel_compiler("llvm")(KernelKey(module)) for _ in range(2))
    assert (first is second) == (not more)


@KINDS
def test_a_network_over_trees(kind):
    """A recursive network whose depth the data say: h = tanh(W x + U (sum of the children's h))."""
    source = """
    def @sums(%l: List[Tensor[(1, 4), float32]]) -> Tensor[(1, 4), float32] {
      @foldl(fn (%a: Tensor[(1, 4), float32], %h: Tensor[(1, 4), float32]) { %a + %h }, zeros(shape=[1, 4], dtype="float32"), %l)
    }
    def @main(%t: Tree[Tensor[(1, 3), float32]], %w: Tensor[(4, 3), float32], %u: Tensor[(4, 4), float32]) {
      let %net = fn (%t: Tree[Tensor[(1, 3), float32]]) -> Tensor[(1, 4), float32] {
        match (%t) { Rose(%x, %below) => tanh(nn.dense(%x, %w) + nn.dense(@sums(@map(%net, %below)), %u)) }
      };
      %net(%t)
    }
    """
    module = relay.parse(source, init_module=relay.Prelude().mod)
    (_, rose), (_, cons, nil) = module.get_type("Tree"), module.get_type("List")
    draw = np.random.default_rng(0).standard_normal

    def tree(depth):
        children = ConstructorValue(nil.tag, [], nil)
        for i in range(depth):
            children = ConstructorValue(cons.tag, [tree(i), children], cons)
        return ConstructorValue(rose.tag, [draw((1, 3)).astype("float32"), children], rose)

    def expected(node):
        below = sum(map(expected, elements(node.fields[1])), np.zeros((1, 4), "float32"))
        return np.tanh(node.fields[0] @ w.T + below @ u.T)

    w, u, data = draw((4, 3)).astype("float32"), draw((4, 4)).astype("float32"), tree(5)
    np.testing.assert_allclose(run(module, data, w, u, kind=kind), expected(data), rtol=1e-4, atol=1e-5)


# ---- the native heap


def counting(text, *args):
    return relay.create_executor("vm", relay.parse(LISTS + text, init_module=relay.Prelude().mod)).evaluate()(*args)


LISTS = """
def @count(%n: int32, %l: List[int32]) -> List[int32] { if (%n == 0) { %l } else { @count(%n - 1, Cons(%n, %l)) } }
def @total(%l: List[int32], %s: int32) -> int32 { match (%l) { Cons(%x, %rest) => @total(%rest, %s + %x), Nil => %s } }
"""


def bytes_in_use():
    """Bytes of memory that malloc has given and not taken back."""

    class Info(ctypes.Structure):
        _fields_ = [(f"field{i}", ctypes.c_size_t) for i in range(10)]

    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Info
    return mallinfo().field7


@pytest.mark.parametrize(
    "text",
    [
        "def @main(%n: int32) -> List[int32] { @count(%n, Nil) }",
        "def @main(%n: int32) -> int32 { @total(@count(%n, Nil), 0) }",
        "def @main(%n: int32) -> List[int32] { @map(fn (%x: int32) { %x + %n }, @concat(@count(%n, Nil), @rev(@count(5, Nil)))) }",
        "def @main(%n: int32) -> int32 { let %r = ref(@count(%n, Nil)); let %u = ref_write(%r, Nil); @length(ref_read(%r)) }",
        "def @main(%n: int32) -> (List[fn () -> int32], int32) { (@map(fn (%x: int32) { fn () -> int32 { %x } }, @count(%n, Nil)), %n) }",
        "def @main(%n: int32) -> int32 { let %l = @count(%n, Nil); @hd(@tl(@filter(fn (%x: int32) { %x < 1 }, %l))) }",
    ],
    ids=["results", "values", "shared", "references", "closures", "errors"],
)
def test_nothing_is_left_of_what_goes(text):
    function = relay.create_executor("vm", relay.parse(LISTS + text, init_module=relay.Prelude().mod)).evaluate()

    def used():
        with contextlib.suppress(RelayError):  # where the list has no element
            function(100_000)
        return bytes_in_use()

    used()
    before = used()
    assert abs(used() - before) < 100_000  # a cell of a list takes 56


def test_results_are_arguments_again():
    text = "def @main(%n: int32, %l: List[int32]) -> (List[int32], int32) { (@count(%n, %l), @total(%l, 0)) }"
    module = relay.parse(LISTS + text, init_module=relay.Prelude().mod)
    function = relay.create_executor("vm", module).evaluate()
    _, cons, nil = module.get_type("List")
    first, total = function(2, ConstructorValue(cons.tag, [5, ConstructorValue(nil.tag, [])], cons))
    second, again = function(1, first)
    assert (total, again) == (5, 8) and [int(x) for x in elements(second)] == [1, 1, 2, 5]
    assert len(second) == 2 and second[0] == 1 and second[-1].tag == cons.tag and [int(x) for x in elements(first)] == [1, 2, 5]
    with pytest.raises(IndexError):
        second[2]


def test_packed_functions_take_values():
    found = counting("def @main(%n: int32) -> List[int32] { @count(%n, Nil) }", 3)
    held = tvm_ffi.convert(lambda cell: cell)(found.cell)
    assert held.same_as(found.cell)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda cons, nil, some: 3, r"expected List\[int32\], found a value of type int"),
        (lambda cons, nil, some: ConstructorValue(some.tag, [1], some), r"found a value of the constructor Some"),
        (lambda cons, nil, some: ConstructorValue(7, [1]), r"found a value of the constructor 7"),
        (lambda cons, nil, some: ConstructorValue(cons.tag, [1], cons), r"found 1 field\(s\) where it has 2"),
        (
            lambda cons, nil, some: ConstructorValue(cons.tag, [[1], ConstructorValue(nil.tag, [], nil)], cons),
            r"expected int32, found int32\[1\]",
        ),
    ],
)
def test_arguments_that_are_not_of_their_type(value, message):
    module = relay.parse(LISTS + "def @main(%l: List[int32]) { @total(%l, 0) }", init_module=relay.Prelude().mod)
    (_, cons, nil), (_, some, _) = module.get_type("List"), module.get_type("Option")
    with pytest.raises((TypeError, ValueError), match=message):
        relay.create_executor("vm", module).evaluate()(value(cons, nil, some))


def test_variables_are_bound():
    x, y = (relay.var(name, shape=(2,)) for name in "xy")
    with pytest.raises(RelayError, match=r"^expected a variable that is bound, found %y$"):
        relayc.compile(relay.IRModule.from_expr(relay.Function([x], relay.Tuple([relay.RefCreate(x), y]))))


def test_errors_of_native_functions():
    text = "def @up(%n: int32) -> int32 { if (%n == 0) { 0 } else { @up(%n - 1) + 1 } }"
    module = relay.parse(LISTS + text + "def @main(%n: int32) { (@up(%n), Some(%n)) }", init_module=relay.Prelude().mod)
    function = relay.create_executor("vm", module).evaluate()
    assert function(100_000)[0] == 100_000
    with pytest.raises(RecursionError, match="up: expected fewer nested calls"):
        function(100_000_000)
    take = "def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) { Some(%x + %y) }"
    found = counting(take, X[0], X[1])
    np.testing.assert_array_equal(found.fields[0], X[0] + X[1])
    with pytest.raises(ValueError, match="add"):
        counting(take, X[0], X[0, :2])


@KINDS
def test_scalars_are_computed_as_tensors_are(kind):
    text = """
    def @main(%i: int32, %x: float32, %y: float32) {
      Some((%i * 65536 * 65536 + %i - 7, -2147483648 - %i, %x / %y, %x * %y - %x, %x < %y, %x == %x, %x != %x, %i >= 3,
            logical_or(logical_not(%x <= %y), logical_and(%i > 2, %i != 4)), 1f / 0f + %x, True, %i == 5))
    }
    """
    for i, x, y in ((5, 1.5, -0.0), (2, np.nan, 3.0), (4, 1e38, 1e38)):
        found = prelude_of(text, i, x, y, kind=kind).fields[0]
        a, b = np.float32(x), np.float32(y)
        with np.errstate(all="ignore"):
            floats = [a / b, a * b - a, a < b, a == a, a != a]
        expected = [
            i - 7,
            (-2147483648 - i + 2**31) % 2**32 - 2**31,
            *floats,
            i >= 3,
            not a <= b or (i > 2 and i != 4),
            np.inf,
            True,
            i == 5,
        ]
        np.testing.assert_array_equal([v.item() for v in found[:9] + found[10:]], [float(v) for v in expected[:9] + expected[10:]])
        assert np.isnan(found[9]) if np.isnan(x) else found[9] == np.inf


@KINDS
def test_scalars_that_are_true_or_false(kind):
    text = "type Box[A] { Some(A), } def @main(%b: bool, %c: bool) { Some((logical_not(%b), logical_and(%b, %c), logical_or(%b, %c))) }"
    run = relay.create_executor(kind, relay.parse(text)).evaluate()
    for b, c in ((True, False), (False, False), (True, True)):
        assert [bool(v.item()) for v in run(b, c).fields[0]] == [not b, b and c, b or c]


def test_programs_are_machine_code_where_the_target_has_it(monkeypatch):
    monkeypatch.setattr("relayc.relay.executor.ControlProgram", None)  # whose steps are interpreted
    text = "type Box[A] { Some(A), } def @main(%b: bool) { Some(logical_not(%b)) }"
    assert not run(text, True, kind="vm").fields[0].item()


@KINDS
def test_constants_and_constructors_are_values(kind):
    n, large = relay.var("n", "int32"), np.arange(300.0, dtype=np.float32)
    prelude = relay.Prelude()
    some, cons, nil = (prelude.mod.get_constructor(*names) for names in (("Option", "Some"), ("List", "Cons"), ("List", "Nil")))
    x, y = relay.const(np.float32([1, 2])), relay.const(large)
    made = relay.Call(relay.GlobalVar("map"), [some, cons(n, nil())])
    prelude.mod["main"] = relay.Function([n], some(relay.Tuple([relay.If(n < relay.const(2), x, x + x), y, relay.const(7), made])))
    run = relay.create_executor(kind, prelude.mod).evaluate()
    for number in (1, 3, 1):
        chosen, whole, seven, list_ = run(number).fields[0]
        np.testing.assert_array_equal(chosen.numpy(), [1, 2] if number < 2 else [2, 4])
        np.testing.assert_array_equal(whole.numpy(), large)
        assert seven == 7 and [int(value.fields[0]) for value in elements(list_)] == [number]


def test_functions_that_call_recursive_ones_are_control():
    module = relay.parse("""
    def @power(%n: int32) -> int32 { if (%n < 1) { 1 } else { 3 * @power(%n - 1) } }
    def @twice(%n: int32) -> int32 { %n + %n }
    def @main(%n: int32) -> int32 { @twice(@power(%n)) }""")
    program = ControlProgram(relay.transform.InferType()(module))
    assert [program.compiles(name) is not None for name in ("power", "twice", "main")] == [False, True, False]


@KINDS
def test_operators_without_operands_are_kernels(kind):
    text = 'def @main(%n: int32) { if (%n > 2) { Some(zeros(shape=[], dtype="int32")) } else { Some(%n) } }'
    assert [prelude_of(text, n, kind=kind).fields[0].item() for n in (3, 2)] == [0, 2]


def test_kernels_of_other_targets():
    source = """
    def @main(%n: int32, %x: Tensor[(3), float32], %f: fn (Tensor[(3), float32]) -> Tensor[(3), float32]) {
      if (%n > 2) { Some(%f(%x * 2f)) } else { None }
    }
    """
    module = relay.parse(source, init_module=relay.Prelude().mod)
    function = relay.create_executor("vm", module, target="cuda -emulate=true").evaluate()
    np.testing.assert_array_equal(function(3, X[0], lambda x: x + 1)[0], X[0] * 2 + 1)
    assert function(1, X[0], None.__eq__).constructor.name_hint == "None"


def test_truth_as_a_number():
    text = """type B { A(bool, B), Z }
    def @f(%b: B) -> int32 { match (%b) { A(%c, %rest) => cast(%c, dtype="int32") + @f(%rest), Z => 0 } }
    def @main(%n: int32) -> int32 { @f(A(%n > 2, A(%n > 9, A(%n > 3, Z)))) }"""
    assert run(text, 4, kind="vm") == 2
