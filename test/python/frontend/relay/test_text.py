"""Relay programs as text, and back."""

import base64
import json
import struct

import ml_dtypes
import numpy as np
import pytest

from relayc.frontend.relay import ast as relay
from relayc.frontend.relay.op import op
from relayc.frontend.relay.text import ParseError, parse_expr, parse_module
from relayc.frontend.relay.text.printer import astext
from relayc.symbolic import symbol

LIST = "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n"


def round_trip(program):
    text = program.astext()
    back = parse_expr(text) if isinstance(program, relay.Expr) else parse_module(text)
    relay.assert_structural_equal(back, program, map_free_vars=True)
    return text


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (42, "int16", "42i16"),
        (42, "int32", "42"),
        (-42, "int64", "-42i64"),
        (3.0, "float16", "3f16"),
        (3.0, "float32", "3f"),
        (0.1, "float64", "0.1f64"),
        (1e11, "float32", "1e+11f"),
        (True, "bool", "True"),
    ],
)
def test_scalars(value, dtype, text):
    constant = relay.const(value, dtype)
    assert str(constant) == text
    round_trip(constant)


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float8_e4m3fn", "bool", "float64"])
def test_constants_are_in_the_metadata(dtype):
    values = np.arange(6).reshape(2, 3).astype(getattr(ml_dtypes, dtype, dtype))
    text = round_trip(relay.const(values) + relay.const(np.inf))
    assert "meta[relay.Constant][0]" in text and "#[metadata]" in text


@pytest.mark.parametrize(
    ("dtype", "kind", "bits"), [("int64", 0, 64), ("uint8", 1, 8), ("float16", 2, 16), ("bfloat16", 4, 16), ("bool", 1, 1)]
)
def test_saved_constants_have_the_header_of_relays_runtime(dtype, kind, bits):
    array = np.ones((2, 3), getattr(ml_dtypes, dtype, dtype))
    text = relay.const(array).astext()
    data = base64.b64decode(json.loads(text[text.index("#[metadata]") + 11 :])["b64ndarrays"][0])
    head = struct.pack("<QQiiiBBHqqq", 0xDD5E40F096B4A13F, 0, 1, 0, 2, kind, bits, 1, 2, 3, array.nbytes)
    assert data == head + array.tobytes()


def test_what_is_used_once_is_written_where_it_ends():
    x = relay.var("x", shape=(2, 3))
    one = op.exp(x)
    f = relay.Function([x], op.add(one, one))
    assert str(f) == "fn (%x: Tensor[(2, 3), float32]) {\n  %0 = exp(%x);\n  add(%0, %0)\n}"


def test_attributes_that_are_defaults_are_left_out():
    x = relay.var("x")
    assert str(op.nn.softmax(x)) == "free_var %x;\nnn.softmax(%x)"
    assert "axis=2" in round_trip(op.nn.softmax(x, axis=2))
    assert "transpose_b=True" in round_trip(op.nn.batch_matmul(x, x))
    assert "unipolar=False" in round_trip(op.nn.bitserial_dense(x, x, unipolar=False))
    assert "let %z = exp(%x);" in round_trip(relay.Let(relay.var("z"), op.exp(x), op.tanh(x)))
    round_trip(op.nn.pad(x, ((0, 0), (1, 2))))
    round_trip(op.clip(x, -np.inf, 1e-7))
    round_trip(op.cast(x, "int8"))


def test_names_are_made_unique_and_readable():
    a, b = relay.var("a"), relay.var("a")
    assert "%a, %a1" in round_trip(relay.Function([a, b], a + b))
    assert "%v1" in round_trip(relay.var("1"))
    assert "%base/x" in round_trip(relay.var("base/x")) and "%v" in round_trip(relay.var(""))
    round_trip(relay.Tuple([relay.TupleGetItem(relay.var("layer.weight 2"), 0), relay.var("x.0")]))


def test_symbols_are_in_the_metadata():
    x = relay.var("x", shape=(symbol("n"), 2 * symbol("n"), relay.Any()))
    text = round_trip(relay.Function([x], x))
    assert "Tensor[(meta[tir.SizeVar][0], meta[relayc.Size][0], ?), float32]" in text


def test_control_flow_and_functions():
    x, c, r = relay.var("x", "float32"), relay.var("c", "bool"), relay.var("r")
    let = relay.Let(r, relay.RefCreate(x), relay.RefWrite(r, relay.RefRead(r)))
    shared = relay.Let(relay.var("t"), x, x)
    round_trip(relay.Function([x, c], relay.If(c, let, relay.Tuple([])), attrs={"Primitive": 1, "relay.reshape_only": None}))
    assert "(\n" in round_trip(relay.Tuple([shared, shared]))
    call = relay.Call(relay.Function([x], x), [relay.const(1.0)], relay.Attrs({"name": "f"}, "attrs.TestAttrs"))
    assert 'name="f", attrs_type_key="attrs.TestAttrs"' in round_trip(call)


def test_types():
    a = relay.TypeVar("a")
    for type_ in (
        relay.FuncType([a, relay.TupleType([])], relay.RefType(a), [a]),
        relay.TupleType([relay.scalar_type("bool")]),
        relay.TensorType((3,), "int8x4"),
    ):
        round_trip(relay.Let(relay.Var("x", type_), relay.const(1), relay.const(2)))


def test_modules():
    text = (
        LIST
        + """
def @length[A](%xs: List[A]) -> int32 {
  match (%xs) {
    Cons(_, %rest: List[A]) => { 1 + @length(%rest) },
    Nil => 0,
  }
}

def @main[A]() -> fn (A, List[A]) -> List[A] {
  Cons
}

extern type T[A]
"""
    )
    module = parse_module(text)
    printed = round_trip(module)
    assert LIST in printed and "def @main[A]() -> fn (A, List[A]) -> List[A] {\n  Cons\n}" in printed
    assert module["main"].body is module.get_constructor("List", "Cons")
    more = parse_module("def @g() { @length(Cons(1, Nil)) }", init_module=module)
    assert [var.name_hint for var in more.get_global_vars()] == ["length", "main", "g"]


def test_expressions():
    def same(a, b):
        return relay.structural_equal(parse_expr(a), parse_expr(b))

    assert same("1 * 1 + 1 < 1 == 1", "(((1 * 1) + 1) < 1) == 1") and not same("1 - 1 - 1", "1 - (1 - 1)")
    assert same("/* a /* b */ c */ let %x = 1; %x // d", "let %y = 1; %y")
    assert same("(); 1", "let %_ = (); 1") and same("--10", "10") and same("((1, 2), 3).0.1", "(((1, 2), 3).0).1")
    assert same("match (1, 2) { (%a, _) => %a }", "match ((1, 2)) { (%b, _) => { %b } }")
    assert same("%0 = 1; %1 = (%0, 2); %1.0", "(1, 2).0")
    assert same("-exp(1f)", "negative(exp(1f))") and same("nn.pad(1, pad_width=((0, 1), (2, 3)))", "nn.pad(1, pad_width=[[0, 1], [2, 3]])")
    assert same("let %x: Tensor[(Any, 2), int8] = 1; %x", "let %x: Tensor[(?, 2i32), int8] = 1; %x")
    assert str(parse_expr("let %x: (_, int8) = 1; %x").var.type_annotation) == "(_, int8)"
    for text, dtype in [("2147483647", "int32"), ("2147483648", "int64"), ("-2147483648", "int32"), ("-2147483649", "int64")]:
        assert parse_expr(text).dtype == dtype


def test_parts_of_programs_have_texts():
    module = parse_module(LIST)
    data = module.type_definitions[module.get_global_type_var("List")]
    clause = relay.Clause(relay.PatternConstructor(data.constructors[1]), relay.const(1))
    assert str(data) == LIST.rstrip() and str(clause) == "Nil => 1" and str(clause.lhs) == "Nil"
    x = relay.var("x", shape=(2,))
    assert astext(op.exp(x) + x, annotate=lambda node: "" if isinstance(node, relay.Var) else "kept").count("/* kept */") == 2
    nested = relay.Call(relay.GlobalVar("f"), [x], relay.Attrs({"inner": relay.Attrs({"axis": 1})}))
    assert f"inner={relay.Attrs({'axis': 1})}" in str(nested)
    with pytest.raises(TypeError, match="expected a part of a program, found int"):
        astext(3)


CONSTANT = {"type_key": "relay.Constant", "attrs": {"data": "0"}}


def saved(magic=0xDD5E40F096B4A13F, code=2, lanes=1):
    """An array [1, 2] of float32, as a metadata section has it."""
    data = struct.pack("<QQiiiBBHqq", magic, 0, 1, 0, 1, code, 32, lanes, 2, 8) + np.array([1, 2], np.float32).tobytes()
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("array", "item", "message"),
    [
        (saved(), CONSTANT, None),
        (saved(magic=1), CONSTANT, "an array that Relay's runtime has saved"),
        (saved(lanes=2), CONSTANT, "an array that Relay's runtime has saved"),
        (saved(code=3), CONSTANT, "an array that Relay's runtime has saved"),
        (saved(), {"type_key": "Target"}, "expected constants, symbols and virtual devices, found Target"),
        ("AAAA", CONSTANT, "expected the JSON of a metadata section, found an error: unpack"),
        (saved(), {}, "found an error: 'type_key'"),
    ],
)
def test_metadata(array, item, message):
    nodes = [{}, {"keys": ["relay.Constant"], "data": [2]}, {"data": [3]}, item]
    text = f"meta[relay.Constant][0]\n#[metadata]\n{json.dumps({'root': 1, 'nodes': nodes, 'b64ndarrays': [array]})}"
    if message is None:
        assert parse_expr(text).data.numpy().tolist() == [1, 2]
    else:
        with pytest.raises(ParseError, match=f"from_string:2:1: metadata: .*{message}"):
            parse_expr(text)


def test_metadata_alone():
    text = round_trip(relay.const(np.arange(3, dtype=np.float32)))
    assert not parse_module(text[text.index("\n#[metadata]") :]).functions


def test_what_metadata_cannot_hold():
    with pytest.raises(ParseError, match="1:12: expected an expression, found metadata of type Dim"):
        parse_module("def @f() { meta[tir.SizeVar][0] }", init_metadata={"tir.SizeVar": [symbol("n")]})
    with pytest.raises(TypeError, match=r"expected a constant or a size, found .* of type object: it has no text"):
        relay.Call(relay.GlobalVar("f"), [], relay.Attrs({"a": object()})).astext()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("let x = 1; x", "1:5: expected a variable, found 'x'"),
        ("if (True) { let %x = 1; %x } else { %x }", "1:37: expected a variable that is bound here, found %x"),
        ("1 +\n  nn.bitpacked(2)", "2:3: no operator 'nn.bitpacked' in Relay"),
        ("nn.softmax(1, foo=2)", "1:1: nn.softmax: no attribute foo"),
        ("nn.softmax(1, 2=3)", "1:16: expected ',', found '='"),
        ("32768i16", "1:1: expected an int16, found 32768"),
        ("65520f16", "1:1: expected a float16"),
        ("meta[relay.Constant][0]", "expected metadata of this number, found 0"),
        ("let %x: Foo = 1; %x", "1:9: expected a type, found the name 'Foo'"),
        ("%1", "expected an expression of this number before"),
        ("/* 1", "expected an end of the comment"),
        ("1 + '", '1:5: expected a token, found "\'"'),
        ('nn.softmax(1, axis="\\q")', "1:20: expected a string as in JSON, found Invalid"),
        ("1 + )", "1:5: expected an expression, found ')'"),
        ("1 2", "1:3: expected the end of the text, found '2'"),
        ("nn.softmax(1, axis=@f)", "1:20: expected the value of an attribute, found 'f'"),
        ("match (1) { 3 => 4 }", "1:13: expected a pattern, found '3'"),
        ("ref_write(1)", "1:1: ref_write: expected 2 argument(s), found 1"),
        ("1f8", "1:1: expected a number of 16, 32 or 64 bits, found 1f8"),
        ("1i4", "1:1: expected an int4, found 1"),
        ("1e400f64", "1:1: expected a float64, found 1e400f64, which is beyond its range"),
        ("let %x 1; %x", "1:8: expected '=', found '1'"),
        ("let %x: 3 = 1; %x", "1:9: expected a type, found '3'"),
        ("let %x: Tensor[(2, 1.5), float32] = 1; %x", "1:20: expected a dimension, found 1.5"),
        ("(1, 2).0f", "1:8: expected an integer, found 0f"),
        ("(1, 2).1e5", "1:8: expected an integer, found 1e5"),
        ("meta[relay.Constant][1.5]", "1:22: expected an integer, found 1.5"),
    ],
)
def test_errors_point_at_the_place(text, message):
    with pytest.raises(ParseError) as error:
        parse_expr(f"{text}\n\n")
    assert message in str(error.value)
    assert str(error.value).splitlines()[-2] in text.splitlines() and str(error.value).splitlines()[-1].strip() == "^"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LIST + LIST, "type List: expected a name that is not taken"),
        ("type A { B } type C { B }", "constructor B: expected a name that is not taken"),
        ("def @f() { 1 } def @f() { 2 }", "function @f: expected a name that is not taken"),
        ('#[version = "0.0.4"]\ndef @f() { 1 }', 'expected #.version = "0.0.5".'),
        ("1", "expected def, type or extern"),
        ("def f() { 1 }", "expected the name of a function"),
    ],
)
def test_wrong_modules_are_refused(text, message):
    with pytest.raises(ParseError, match=message):
        parse_module(text)


def test_the_version_may_come_after_comments():
    assert "f" in parse_module('// a\n/* b */\n#[version = "0.0.5"]\ndef @f() { 1 }')


def test_spans_are_those_of_the_text():
    call = parse_expr("let %x = 1;\nexp(%x)").body
    assert (call.span.line, call.span.column, call.span.end_column) == (2, 1, 8)
    assert "span=from_string:2:1" in call.astext() and "span" not in str(call)


def test_deep_programs():
    depth = 10_000
    names = [relay.Var("v") for _ in range(depth)]
    body = names[-1]
    for before, var in zip(names[-2::-1], names[:0:-1], strict=True):
        body = relay.Let(var, before + before, body)
    round_trip(body)
    nested = parse_expr("exp(" * depth + "1f" + ")" * depth)
    round_trip(nested)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_largest_numbers_are_read_as_they_are_printed(dtype):
    largest = np.finfo(dtype).max
    both = relay.Tuple([relay.const(largest, dtype), relay.const(-largest, dtype)])
    found = parse_module(relay.RelayModule.from_expr(relay.Function([], both)).astext())["main"].body
    assert [field.data.numpy() for field in found.fields] == [largest, -largest]
    if dtype != "float64":
        with pytest.raises(ParseError, match="beyond its range"):
            parse_expr(f"-{float(largest) * (1 + 2**-24)}f{np.dtype(dtype).itemsize * 8}")


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_the_outermost_integers_are_read_as_they_are_printed(dtype):
    for number in (np.iinfo(dtype).min, np.iinfo(dtype).max):
        round_trip(relay.const(number, dtype))


def test_what_is_used_twice_is_in_the_metadata_once():
    weight = relay.const(np.arange(6.0))
    x = relay.var("x", shape=(symbol("n"), symbol("n"), 2 * symbol("n"), 2 * symbol("n")))
    text = round_trip(relay.Tuple([weight, relay.Function([x], x), op.exp(weight)]))
    assert "[1]" not in text and text.count("meta[tir.SizeVar][0], meta[tir.SizeVar][0]") == 1
