"""Programs of StableHLO that are refused: the error says what was expected, and what was found."""

import pytest

pytest.importorskip("jax")

from stablehlo_texts import REAL_SLICE, TWO, UPDATED, WRITTEN, best, function, program, scatter

import relayc
from relayc.frontend.converter import emit
from relayc.frontend.stablehlo import UnsupportedOperators, regions, windows
from relayc.frontend.stablehlo.registry import CONVERTERS

LOOP = """%0 = stablehlo.while(%c = %x) : tensor<4x6xf32>
  cond { stablehlo.return %p : tensor<i1> } do { stablehlo.return %c : tensor<4x6xf32> }"""
OWN = """%z = stablehlo.constant dense<0.0> : tensor<f32> %0 = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}>
  ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %1 = stablehlo.custom_call @own(%a) : (tensor<f32>) -> tensor<f32>
  stablehlo.return %1 : tensor<f32> }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>"""
BOTH = WRITTEN.replace('"stablehlo.scatter"(%x, %i, %u)', '"stablehlo.scatter"(%x, %x, %i, %u, %u)').replace("%0 =", "%0, %1 =").replace(
    "REGION",
    "({ ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>): stablehlo.return %c, %d : tensor<f32>, tensor<f32> })",
)  # fmt: skip
REVERSED = """%0 = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {reverse = [true, false]}
  {feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x2x4x1xf32>, tensor<3x2x2x1xf32>) -> tensor<1x3x3x1xf32>"""
PADDED = """%l = stablehlo.constant dense<1> : tensor<2xi32> %z = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x6xf32, #stablehlo.bounds<5, ?>>) -> tensor<i32>
  %n = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32> %o = stablehlo.constant dense<0> : tensor<1xi32>
  %i = stablehlo.concatenate %n, %o, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32> %0 = stablehlo.dynamic_pad %x, %z, %l, %l, %i
  : (tensor<?x6xf32, #stablehlo.bounds<5, ?>>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>"""
SPREAD = """%0 = stablehlo.broadcast_in_dim %x, dims=[0]
  : (tensor<?xf32, #stablehlo.bounds<5>>) -> tensor<?x6xf32, #stablehlo.bounds<5, ?>>"""
ONES = "%s = stablehlo.constant dense<1> : tensor<2xi32>"

REFUSED = {
    "functions": ("func.func @a() { return } func.func @b() { return }", "expected a function main, or a single public one, found a, b"),
    "no function": ("module {}", "expected a function main, or a single public one, found none"),
    "a loop": (program(LOOP, arguments="%x: tensor<4x6xf32>, %p: tensor<i1>"), "expected a loop that changes what it carries"),
    "two at once": (
        program(BOTH.replace("-> tensor<4x6xTYPE>", "-> (tensor<4x6xTYPE>, tensor<4x6xTYPE>)")
                .replace("(tensor<4x6xTYPE>, tensor<3xi32>, tensor<3x6xTYPE>)",
                         "(tensor<4x6xTYPE>, tensor<4x6xTYPE>, tensor<3xi32>, tensor<3x6xTYPE>, tensor<3x6xTYPE>)").replace("TYPE", "f32"),
                arguments=UPDATED.replace("TYPE", "f32")),
        "expected one tensor to write to, found 2",
    ),
    "bits at places": (scatter("or", "i32"), r"expected updates that replace.*found or\(x0,x1\)"),
    "a choice": (
        best("EQ"),
        r"expected the largest or smallest elements of windows, and sums, found eq\(x0,x1\) and add",
    ),
    "a choice and a product": (
        best("GE", "multiply"),
        r"found ge\(x0,x1\) and multiply",
    ),
    "a reversed window": (
        program(REVERSED, "tensor<1x3x3x1xf32>", "%x: tensor<1x2x4x1xf32>, %y: tensor<3x2x2x1xf32>"),
        "no reversal, found 2 axes, 1 groups",
    ),
    "steps of data": (
        program("%0 = stablehlo.dynamic_broadcast_in_dim %x, %i, dims = [0, 1] : (tensor<4x6xf32>, tensor<2xi32>) -> tensor<?x?xf32>"
                " %j = stablehlo.add %i, %i : tensor<2xi32> %1 = stablehlo.real_dynamic_slice %x, %i, %j, %i"
                " : (tensor<4x6xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>", "tensor<?x?xf32>", TWO),
        "expected a slice of known sizes without strides",
    ),
    "a limit of data": (
        program(ONES + REAL_SLICE.replace("KIND", "tensor<?x?xf32>"), "tensor<?x?xf32>", TWO + ", %j: tensor<2xi32>"),
        "expected a slice of known sizes without strides",
    ),
    "computed padding between": (
        program(PADDED, "tensor<?x?xf32>", "%x: tensor<?x6xf32, #stablehlo.bounds<5, ?>>"),
        "interior padding: expected a value and numbers known at import",
    ),
    "a broadcast of open sizes": (
        program(SPREAD, "tensor<?x6xf32, #stablehlo.bounds<5, ?>>", "%x: tensor<?xf32, #stablehlo.bounds<5>>"),
        "broadcast_in_dim: expected sizes known at import, found tensor<",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_what_was_found(name):
    text, message = REFUSED[name]
    with pytest.raises(relayc.ModelError, match=message):
        relayc.from_stablehlo(text)


def test_windows_of_more_elements_than_are_written_out(monkeypatch):
    monkeypatch.setattr(windows, "_MOST", 4)
    relayc.from_stablehlo(best("GE"))
    monkeypatch.setattr(windows, "_MOST", 3)
    with pytest.raises(relayc.ModelError, match=r"expected windows of at most 3 elements, found \[2, 2\]"):
        relayc.from_stablehlo(best("GE"))


def test_regions_of_more_operators_than_are_read(monkeypatch):
    monkeypatch.setattr(regions, "_MOST", 1)
    relayc.from_stablehlo(scatter("add", "f32"))
    monkeypatch.setattr(regions, "_MOST", 0)
    with pytest.raises(relayc.ModelError, match=r"expected updates that replace.*found another region"):
        relayc.from_stablehlo(scatter("add", "f32"))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (program(OWN, "tensor<6xf32>"), "custom_call @own"),
        (function("%t: !stablehlo.token", "!stablehlo.token", "return %t : !stablehlo.token"), "func.return of !stablehlo.token"),
    ],
    ids=["in a region", "a token"],
)
def test_what_has_no_converter_is_named(text, wanted):
    with pytest.raises(UnsupportedOperators) as caught:
        relayc.from_stablehlo(text)
    assert list(caught.value.operators) == [wanted]


@pytest.mark.parametrize(
    ("name", "attrs", "found"),
    [("cast", {"dtype": "int32"}, r"int32\[4, 6\]"), ("sum", {"axis": (0,)}, r"float32\[6\]")],
)
def test_a_converter_that_gives_another_type_is_an_error(name, attrs, found, monkeypatch):
    monkeypatch.setitem(CONVERTERS, "stablehlo.reverse", lambda node, x: emit(name, x, **attrs))
    with pytest.raises(relayc.ModelError, match=rf"stablehlo\.reverse.*expected tensor<4x6xf32>, found {found}"):
        relayc.from_stablehlo(program("%0 = stablehlo.reverse %x, dims = [0] : tensor<4x6xf32>"))
