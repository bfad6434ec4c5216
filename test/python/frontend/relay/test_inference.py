"""Types of Relay programs."""

import numpy as np
import pytest

from relayc.frontend.relay import ast as relay
from relayc.frontend.relay.inference import TypeInferenceError, infer_expr, infer_module
from relayc.frontend.relay.op import op
from relayc.frontend.relay.text import parse_expr, parse_module
from relayc.relay import create_executor
from relayc.relay.transform import InferTypeLocal
from relayc.symbolic import symbol

SCALAR = relay.scalar_type("float32")
IDENTITY = "let %id = fn [A](%x: A) -> A { %x };"


def type_of(text: str) -> relay.Type:
    return infer_expr(parse_expr(text)).checked_type


def shape_of(expr: relay.Expr) -> tuple:
    return infer_expr(expr).checked_type.shape


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("let %x = 1f; (%x, (%x, 2)).1.0", "float32"),
        ("fn (%x: int32) { if (%x < 1) { (1, 2) } else { (%x, %x) } }", "fn (int32) -> (int32, int32)"),
        ("fn (%f, %x: int32) -> float32 { %f(%x) }", "fn (fn (int32) -> float32, int32) -> float32"),
        (f"{IDENTITY} (%id(1), %id(()))", "(int32, ())"),
        ("if (True) { fn [A](%x: A) -> A { %x } } else { fn [B](%x: B) -> B { %x } }", "fn [A](A) -> A"),
        (f"{IDENTITY} (fn (%f: fn (int32) -> int32) {{ %f(1) }})(%id)", "int32"),
        ("let %f = fn (%i, %y) { if (%i < 3) { %f(%i + 1, exp(%y)) } else { %y } }; %f(0, 1f)", "float32"),
        ("let %r = ref(1); ref_write(%r, 2); ref_read(%r)", "int32"),
        ("let %same = fn (%v) { %v }; let %x = %same(1); %same", "fn (int32) -> int32"),
        ("(fn (%x) { %x + 1f }) (2f)", "float32"),
    ],
)
def test_expressions(text, type_):
    assert str(type_of(text)) == type_


@pytest.mark.parametrize("name", ["exp", "annotation.stop_fusion"])
def test_a_call_has_the_operands_of_its_operator(name):
    with pytest.raises(TypeInferenceError, match=rf"{name}: expected 1 argument\(s\) \(data\), found 2"):
        infer_expr(relay.Call(relay.Op.get(name), [relay.const(1.0), relay.const(2.0)]))


def test_operands_that_are_left_out():
    x, w, b = relay.var("x", shape=(2, 8, 9, 9), dtype="float16"), relay.var("w"), relay.var("b")
    out = op.nn.bias_add(op.nn.conv2d(x, w, channels=6, kernel_size=3, groups=2), b)
    out = op.nn.batch_norm(op.nn.prelu(out, relay.var("a")), *map(relay.var, ("gamma", "beta", "mean", "var")))[0]
    found = infer_expr(relay.Function(relay.free_vars(out), out))
    types = {param.name_hint: param.type_annotation for param in found.params}
    assert types.pop("x").dtype == "float16"
    assert types.pop("w") == relay.TensorType((6, 4, 3, 3), "float16")
    assert set(types) == {"b", "a", "gamma", "beta", "mean", "var"}
    assert set(types.values()) == {relay.TensorType((6,), "float16")}
    y = relay.var("y", shape=(1, 4, 4, 6))
    nhwc = infer_expr(op.nn.conv2d(y, w, channels=2, kernel_size=1, data_layout="NHWC", kernel_layout="HWIO"))
    assert nhwc.args[1].type_annotation.shape == (1, 1, 6, 2)
    transposed = infer_expr(op.nn.conv2d_transpose(x, w, channels=6, kernel_size=(2, 3)))
    assert transposed.args[1].type_annotation.shape == (8, 6, 2, 3)
    z = relay.var("z", shape=(2, 3))
    assert infer_expr(op.nn.dense(z, w, units=5)).args[1].type_annotation.shape == (5, 3)
    assert infer_expr(op.nn.matmul(z, w, units=5, transpose_a=True)).args[1].type_annotation.shape == (2, 5)


def test_sizes_that_are_not_known():
    unknown = relay.Any()
    x, y = relay.var("x", shape=(unknown, 3)), relay.var("y", shape=(4, 3))
    n = relay.var("n", shape=(symbol("n"), 3))
    assert shape_of(x * x) == (unknown, 3) and shape_of(op.exp(n)) == (symbol("n"), 3)
    assert shape_of(op.concatenate([n, y], 0)) == (symbol("n") + 4, 3)
    assert shape_of(op.concatenate([x, y], 0)) == (unknown, 3)
    assert shape_of(op.nn.dense(relay.var("d", shape=(2, unknown)), relay.var("w", shape=(7, 3)))) == (2, 7)
    assert shape_of(relay.If(relay.const(True), x, y)) == (unknown, 3)


def test_rules_of_operators_that_only_relay_has():
    x, y = relay.var("x", shape=(2, 3), dtype="int8"), relay.var("y", shape=(3, 2))
    for expr, shape, dtype in [
        (op.zeros_like(x), (2, 3), "int8"),
        (op.full_like(y, relay.const(1)), (3, 2), "float32"),
        (op.cast_like(x, y), (2, 3), "float32"),
        (op.reshape_like(x, y), (3, 2), "int8"),
        (op.arange(relay.const(1), relay.const(8), relay.const(2), "int32"), (4,), "int32"),
        (op.nn.pad(x, ((1, 0), (0, 2))), (3, 5), "int8"),
    ]:
        assert infer_expr(expr).checked_type == relay.TensorType(shape, dtype)


def test_modules():
    module = infer_module(
        parse_module("""
        type List[A] { Cons(A, List[A]), Nil, }
        def @id[A](%x: A) -> A { %x }
        def @main(%n: int32) { (@length(Cons(1f, Nil)), @id(%n), @even(%n)) }
        def @length[A](%xs: List[A]) -> int32 { match (%xs) { Cons(_, %rest) => 1 + @length(%rest), Nil => 0 } }
        def @even(%n: int32) { if (%n < 1) { True } else { @odd(%n - 1) } }
        def @odd(%n: int32) -> bool { if (%n < 1) { False } else { @even(%n - 1) } }
        """)
    )
    assert str(module["main"].checked_type) == "fn (int32) -> (int32, int32, bool)"
    assert str(module["length"].checked_type) == "fn [A](List[A]) -> int32"
    assert module["main"].body.fields[1].type_args == (relay.scalar_type("int32"),)
    relay.assert_structural_equal(infer_module(module), module)
    relay.assert_structural_equal(infer_module(parse_module(module.astext())), module)


def test_types_are_noted_in_the_program_itself():
    x = relay.var("x", "float32")
    inner = op.exp(x)
    assert InferTypeLocal(inner + inner) == SCALAR and inner.checked_type == SCALAR
    with pytest.raises(ValueError, match="InferType"):
        _ = op.log(x).checked_type


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("free_var %x: Tensor[(2), int8];\nexp(1 + %x)", "add(int32, Tensor[(2), int8]) at from_string:2:5: rhs: expected"),
        ("fn (%x) { exp(%x) }", "exp(_) at from_string:1:11: the types of its arguments are not known"),
        ("fn (%x) { 1 }", "%x at from_string:1:5: expected a type, found _"),
        ("1(2)", "expected a function, found int32"),
        ("(fn (%x: int32) { %x })(1, 2)", "expected 1 argument(s), found 2"),
        ("(1, 2).2", "expected a tuple with a field 2, found (int32, int32)"),
        ("if (1) { 2 } else { 3 }", "If at from_string:1:1: expected the type bool, found int32"),
        ("if (True) { 2 } else { 3f }", "expected the type int32, found float32"),
        ("let %f = fn (%x) { %f }; 1", "expected a type that is no part of itself"),
        ("@f(1)", "no function @f"),
        ("fn (%x) { %x }", "expected a type, found _, of which a part is not known: expected annotations"),
        ("fn () { exp }", "an operator that is not called is not supported yet: write a function around it"),
        ("exp(fn () { 1 })", "expected tensors and tuples of them, found fn () -> int32"),
        ("free_var %x: Tensor[(2), int7];\nexp(%x)", "exp(Tensor[(2), int7])"),
        ("if (True) { 1 } else { (1, 2) }", "expected the type int32, found (int32, int32)"),
        ("if (True) { (1, 2, 3) } else { (1, 2) }", "expected the type (int32, int32, int32), found (int32, int32)"),
        ("if (True) { fn () { 1 } } else { fn (%x: int32) { %x } }", "expected the type fn () -> int32, found fn (int32) -> int32"),
        (
            "free_var %x: Tensor[(2, 3), int8];\nfree_var %y: Tensor[(2, 4), int8];\nif (True) { %x } else { %y }",
            "found Tensor[(2, 4), int8]",
        ),
        ("let %f: fn (int32) -> int32 = fn (%x: float32) { 1 }; %f", "expected the type int32, found float32"),
        ("let %f: fn (int32) -> int32 = fn [A](%x: A) -> float32 { 1f }; %f", "expected the type int32, found float32"),
        ("(fn (%x) { let %y: int32 = exp(%x); %y })(1f)", "expected the type int32, found float32"),
        ("free_var %x: Tensor[(1, 2, 4, 4), float32];\nnn.deformable_conv2d(%x, 1f, 1f)", "nn.deformable_conv2d("),
        ("free_var %x: Tensor[(2, 3), float32];\nfn (%w) { nn.matmul(%x, %w) }", "the types of its arguments are not known"),
        ("free_var %x: Tensor[(1, 2, 4, 4), float32];\nfn (%w, %o) { nn.deformable_conv2d(%x, %o, %w) }", "arguments are not known"),
    ],
)
def test_errors_name_the_call_and_its_place(text, message):
    with pytest.raises(TypeInferenceError) as error:
        type_of(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("pattern", "found"), [("Cons(%a)", 1), ("Cons(%a, %b, %c)", 3), ("Nil(%a)", 1), ("Nil", None), ("Cons(_, _)", None)]
)
def test_patterns_have_as_many_parts_as_their_constructor(pattern, found):
    module = parse_module(f"type List[A] {{ Cons(A, List[A]), Nil, }} def @f(%l: List[int32]) {{ match? (%l) {{ {pattern} => 1 }} }}")
    if found is None:
        assert str(infer_module(module)["f"].ret_type) == "int32"
    else:
        with pytest.raises(TypeInferenceError, match=rf": expected [02] pattern\(s\), found {found}"):
            infer_module(module)


def test_deep_programs():
    x = relay.var("x", shape=(2,))
    call, let = x, x
    for _ in range(3_000):
        call = op.exp(call)
        var = relay.Var("v")
        let = relay.Let(var, op.exp(x), let)
    assert shape_of(call) == shape_of(let) == (2,)


def test_functions_of_lets_are_polymorphic_where_they_are_used_so():
    mod = infer_module(
        parse_module("""
    #[version = "0.0.5"]
    def @main(%x: Tensor[(3), float32], %n: int32) {
      let %twice = fn (%f, %v) { %f(%f(%v)) };
      let %same = fn (%v) { %v };
      (%twice(%same, %x), %twice(fn (%k: int32) { %k + 1 }, %n), %same(%n))
    }
    """)
    )
    twice = mod["main"].body.value
    assert len(twice.type_params) == 1 and str(twice.ret_type) == "t0"
    assert mod["main"].ret_type == relay.TupleType([relay.TensorType((3,)), relay.TensorType((), "int32"), relay.TensorType((), "int32")])
    x = np.array([1, -2, 3], np.float32)
    first, second, third = create_executor("graph", mod).evaluate()(x, 4)
    np.testing.assert_array_equal(first.numpy(), x)
    assert (second.numpy(), third.numpy()) == (6, 4)


def test_what_a_variable_around_fixes_is_not_polymorphic():
    with pytest.raises(TypeInferenceError, match="expected the type"):
        infer_module(
            parse_module("""
        #[version = "0.0.5"]
        def @main(%x: Tensor[(3), float32], %n: int32) {
          let %outer = fn (%v) {
            let %first = fn (%w) { (%v, %w) };
            (%first(1), %first(2f), nn.relu(%v))
          };
          (%outer(%x), %outer(%n), %outer((%x, %n)))
        }
        """)
        )


def test_symbols_of_attributes_are_known():
    x, height, width = relay.var("x", shape=(1, 3, 8, 8)), symbol("th"), symbol("tw")
    assert shape_of(op.image.resize2d(x, (height, width))) == (1, 3, height, width)


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "message"),
    [
        ("nn.dense", [(3, 4), (5, 4)], {"units": 0.5}, "attribute units: expected .*, found 0.5"),
        ("zeros", [], {"shape": (0.5,), "dtype": "int8"}, "attribute shape: expected a sequence of sizes, found"),
        ("nn.conv1d", [(3, 4), (3, 1, 3)], {"groups": 3}, "data: expected"),
        ("nn.conv1d", [(2, 3, 4), (3, 1, 3)], {"groups": 3, "data_layout": "NWX"}, "expected"),
        ("searchsorted", [(), (3,)], {}, "expected"),
        ("split", [(symbol("n"), 3)], {"indices_or_sections": -1}, "expected"),
        ("split", [(symbol("n"), 3)], {"indices_or_sections": 0}, "expected"),
        ("nn.contrib_conv2d_gemm_weight_transform", [(3, 2, 5, 6)], {"tile_N": 0, "tile_K": 3}, "weight_transform: expected"),
        ("random.threefry_generate", [(10,)], {"out_shape": ((0, 1), symbol("m"))}, "random.threefry_generate: expected"),
    ],
)
def test_what_an_operator_cannot_take_is_an_error(name, shapes, attrs, message):
    inputs = [relay.var(f"x{i}", shape=shape) for i, shape in enumerate(shapes)]
    with pytest.raises(TypeInferenceError, match=message):
        infer_expr(relay.Function(inputs, op.call(name, *inputs, **attrs)))
