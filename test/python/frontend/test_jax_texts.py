"""Programs of StableHLO in which JAX writes no function, compared with numpy: forms of operators that JAX has no name for, and refusals."""

import io

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax_support import same, values  # noqa: E402 # there is JAX

import relayc  # noqa: E402
from relayc.frontend.converter import emit  # noqa: E402
from relayc.frontend.stablehlo import UnsupportedOperators  # noqa: E402
from relayc.frontend.stablehlo.registry import CONVERTERS  # noqa: E402

X, Y = values((4, 6), (3, 6))
I = np.array([2, 0, 3], np.int32)  # noqa: E741


def region(operator, kind="tensor<f32>"):
    """A region of two scalars."""
    return f"({{ ^bb0(%a: {kind}, %b: {kind}): %c = stablehlo.{operator} %a, %b : {kind} stablehlo.return %c : {kind} }})"


def function(arguments, result, body):
    return f"func.func @main({arguments}) -> {result} {{ {body} }}"


def program(body, result="tensor<4x6xf32>", arguments="%x: tensor<4x6xf32>"):
    """A program whose result is %0."""
    return function(arguments, result, f"{body} return %0 : {result}")


# ---- forms of operators -----------------------------------------------------------------------------------------------------------------

IF = """%0 = "stablehlo.if"(%p) ({ stablehlo.return %x : tensor<4x6xf32> },
  { %1 = stablehlo.negate %x : tensor<4x6xf32> stablehlo.return %1 : tensor<4x6xf32> }) : (tensor<i1>) -> tensor<4x6xf32>"""
ROWS = """%0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
  start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<3xi32>) -> tensor<3x6xf32>"""
WRITTEN = """%0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
  inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> REGION
  : (tensor<4x6xTYPE>, tensor<3xi32>, tensor<3x6xTYPE>) -> tensor<4x6xTYPE>"""
CHOSEN = """%z = stablehlo.constant dense<0.5> : tensor<f32>
%0 = "stablehlo.select_and_scatter"(%x, %y, %z) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}>
  ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.compare DIRECTION, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1> }, REGION) : (tensor<4x6xf32>, tensor<2x3xf32>, tensor<f32>) -> tensor<4x6xf32>"""
REAL_SLICE = "%0 = stablehlo.real_dynamic_slice %x, %i, %j, %s : (tensor<4x6xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> KIND"
TWO = "%x: tensor<4x6xf32>, %i: tensor<2xi32>"


def chosen(compare):
    """The sum of 0.5 and of Y at the first place of each window that is better than all others."""
    wanted = np.full((4, 6), 0.5, np.float32)
    for i in range(2):
        for j in range(3):
            window = TIES[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
            at = np.unravel_index(compare(window), (2, 2))
            wanted[2 * i + at[0], 2 * j + at[1]] += Y[i, j]
    return wanted


def written(x, i, u, combine):
    found = x.copy()
    for n, row in zip(i, u, strict=True):
        if 0 <= n < 4:
            found[n] = combine(found[n], row)
    return found


TIES = np.round(X * 2)
TRUTH = X > 0.3
PLACES = np.array([3, 4, 3], np.int32)
OF_ROWS = "%x: tensor<4x6xf32>, %i: tensor<3xi32>"
UPDATED = "%x: tensor<4x6xTYPE>, %i: tensor<3xi32>, %u: tensor<3x6xTYPE>"


def best(direction, operator="add"):
    """The sum of 0.5 and of the second input at one place of each window of the first."""
    body = CHOSEN.replace("DIRECTION", direction).replace("REGION", region(operator)[1:-1])
    return program(body, arguments="%x: tensor<4x6xf32>, %y: tensor<2x3xf32>")


def scatter(operator, kind, text=""):
    body = WRITTEN.replace("REGION", text or region(operator, f"tensor<{kind}>")).replace("TYPE", kind)
    return program(body, f"tensor<4x6x{kind}>", UPDATED.replace("TYPE", kind))


REMAINDER = """func.func private @remainder(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
  %one = stablehlo.constant dense<1> : tensor<i32> %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.compare EQ, %b, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %1 = call @_where(%0, %one, %b) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  %2 = stablehlo.remainder %a, %1 : tensor<i32>
  %3 = stablehlo.compare NE, %2, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %4 = stablehlo.compare LT, %2, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %5 = stablehlo.compare LT, %1, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %6 = stablehlo.compare NE, %4, %5 : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %7 = stablehlo.and %6, %3 : tensor<i1>
  %8 = stablehlo.add %2, %1 : tensor<i32>
  %9 = stablehlo.select %7, %8, %2 : tensor<i1>, tensor<i32>
  return %9 : tensor<i32> }
func.func private @_where(%p: tensor<i1>, %a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.select %p, %a, %b : tensor<i1>, tensor<i32> return %0 : tensor<i32> }
"""
"""jax.numpy's remainder; functions of JAX that is exported with symbolic sizes have these as arguments too."""

PROGRAMS = {
    "if": (program(IF, arguments="%x: tensor<4x6xf32>, %p: tensor<i1>"), [(X, np.True_), (X, np.False_)], lambda x, p: x if p else -x),
    "rows by scalars": (
        program(ROWS, "tensor<3x6xf32>", OF_ROWS),
        [(X, I), (X, np.array([9, -2, 1], np.int32))],
        lambda x, i: x[i.clip(0, 3)],
    ),
    "reversed sum at places": (
        scatter(
            "",
            "f32",
            "({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.add %b, %a : tensor<f32> stablehlo.return %c : tensor<f32> })",
        ),
        [(X, PLACES, Y)],
        lambda x, i, u: written(x, i, u, np.add),
    ),
    "truth at places": (scatter("or", "i1"), [(TRUTH, PLACES, Y > 0)], lambda x, i, u: written(x, i, u, np.logical_or)),
    "all truth at places": (scatter("and", "i1"), [(TRUTH, PLACES, Y > 0)], lambda x, i, u: written(x, i, u, np.logical_and)),
    "truth of numbers": (
        program("%0 = stablehlo.convert %x : (tensor<4x6xf32>) -> tensor<4x6xi1>", "tensor<4x6xi1>"),
        [(np.where(X > 0.5, X, 0 * X),)],
        lambda x: x != 0,
    ),
    "the first of the largest": (
        best("GE"),
        [(TIES, Y[:2, :3])],
        lambda x, y: chosen(np.argmax),
    ),
    "the last of the largest": (
        best("GT"),
        [(TIES, Y[:2, :3])],
        lambda x, y: chosen(lambda w: 3 - np.argmax(w[::-1, ::-1])),
    ),
    "the last of the smallest": (
        best("LT"),
        [(TIES, Y[:2, :3])],
        lambda x, y: chosen(lambda w: 3 - np.argmin(w[::-1, ::-1])),
    ),
    "the first of the smallest": (
        best("LE"),
        [(TIES, Y[:2, :3])],
        lambda x, y: chosen(np.argmin),
    ),
    "a slice from computed places": (
        program(
            "%s = stablehlo.constant dense<1> : tensor<2xi32> %n = stablehlo.constant dense<[2, 3]> : tensor<2xi32>"
            "%j = stablehlo.add %i, %n : tensor<2xi32>" + REAL_SLICE.replace("KIND", "tensor<2x3xf32>"),
            *("tensor<2x3xf32>", TWO),
        ),
        [(X, np.array([1, 2], np.int32)), (X, np.array([2, 3], np.int32))],
        lambda x, i: x[i[0] : i[0] + 2, i[1] : i[1] + 3],
    ),
    "a slice in known steps": (
        program(
            "%i = stablehlo.constant dense<[1, 0]> : tensor<2xi32> %j = stablehlo.constant dense<[4, 5]> : tensor<2xi32>"
            "%s = stablehlo.constant dense<[1, 2]> : tensor<2xi32>" + REAL_SLICE.replace("KIND", "tensor<3x3xf32>"),
            "tensor<3x3xf32>",
        ),
        [(X,)],
        lambda x: x[1:4, 0:5:2],
    ),
    "a shape of data, declared": (
        program("%0 = stablehlo.dynamic_reshape %x, %i : (tensor<4x6xf32>, tensor<2xi32>) -> tensor<8x3xf32>", "tensor<8x3xf32>", TWO),
        [(X, np.array([8, 3], np.int32))],
        lambda x, i: x.reshape(8, 3),
    ),
    "a broadcast to a shape of data, declared": (
        program(
            "%0 = stablehlo.dynamic_broadcast_in_dim %x, %i, dims = [0] : (tensor<2xf32>, tensor<2xi32>) -> tensor<2x3xf32>",
            *("tensor<2x3xf32>", "%x: tensor<2xf32>, %i: tensor<2xi32>"),
        ),
        [(X[0, :2], np.array([2, 3], np.int32))],
        lambda x, i: np.repeat(x[:, None], 3, 1),
    ),
    "an open size within a bound": (
        program(
            "%0 = stablehlo.reshape %x : (tensor<?x6xf32, #stablehlo.bounds<5, ?>>) -> tensor<?xf32, #stablehlo.bounds<30>>",
            *("tensor<?xf32, #stablehlo.bounds<30>>", "%x: tensor<?x6xf32, #stablehlo.bounds<5, ?>>"),
        ),
        [(X,), (Y,)],
        lambda x: x.reshape(-1),
    ),
    "a remainder of sizes": (
        REMAINDER
        + program(
            "%n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, #stablehlo.bounds<5>>) -> tensor<i32>"
            "%d = stablehlo.constant dense<3> : tensor<i32> %m = call @remainder(%n, %d) : (tensor<i32>, tensor<i32>) -> tensor<i32>"
            "%i = stablehlo.constant dense<0> : tensor<1xi32> %j = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>"
            "%s = stablehlo.constant dense<1> : tensor<1xi32> %0 = stablehlo.real_dynamic_slice %x, %i, %j, %s : (tensor<"
            "?xf32, #stablehlo.bounds<5>>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32, #stablehlo.bounds<5>>",
            *("tensor<?xf32, #stablehlo.bounds<5>>", "%x: tensor<?xf32, #stablehlo.bounds<5>>"),
        ),
        [(X[0, :5],), (X[0, :4],)],
        lambda x: x[: len(x) % 3],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_numpy_gives(name):
    text, calls, wanted = PROGRAMS[name]
    main = relayc.compile(relayc.from_stablehlo(text))["main"]
    for args in calls:
        same(main(*args), wanted(*args))


def test_bytecode_of_mlir_compiles():
    from jax.extend.mlir import ir
    from jax.interpreters.mlir import make_ir_context

    buffer = io.BytesIO()
    with make_ir_context():
        ir.Module.parse(PROGRAMS["if"][0]).operation.write_bytecode(buffer)
    main = relayc.compile(relayc.from_stablehlo(buffer.getvalue()))["main"]
    same(main(X, np.False_), -X)


def test_inputs_are_called_after_the_locations_of_arguments():
    text = function(
        '%x: tensor<2xf32> loc("x"), %y: tensor<2xf32> loc("x"), %z: tensor<2xf32> loc("a.py":1:1)',
        "tensor<2xf32>",
        "return %y : tensor<2xf32>",
    )
    assert [spec.name for spec in relayc.compile(relayc.from_stablehlo(text)).inputs] == ["x", "x_1", "arg2"]


# ---- refusals ---------------------------------------------------------------------------------------------------------------------------

LOOP = """%0 = stablehlo.while(%c = %x) : tensor<4x6xf32>
  cond { stablehlo.return %p : tensor<i1> } do { stablehlo.return %c : tensor<4x6xf32> }"""
OWN = """%z = stablehlo.constant dense<0.0> : tensor<f32> %0 = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}>
  ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %1 = stablehlo.custom_call @own(%a) : (tensor<f32>) -> tensor<f32>
  stablehlo.return %1 : tensor<f32> }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>"""
BOTH = WRITTEN.replace('"stablehlo.scatter"(%x, %i, %u)', '"stablehlo.scatter"(%x, %x, %i, %u, %u)').replace("%0 =", "%0, %1 =").replace(
    "REGION",
    "({ ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>): stablehlo.return %c, %d : tensor<f32>, tensor<f32> })",
)  # fmt: skip
REVERSED = """%0 = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {reverse = [true]}
  {feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x2x4xf32>, tensor<3x2x2xf32>) -> tensor<1x3x3xf32>"""
PADDED = """%l = stablehlo.constant dense<1> : tensor<2xi32> %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dynamic_pad %x, %z, %l, %l, %i
  : (tensor<4x6xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>"""
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
        program(REVERSED, "tensor<1x3x3xf32>", "%x: tensor<1x2x4xf32>, %y: tensor<3x2x2xf32>"),
        "no reversal, found 1 axes, 1 groups",
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
    "computed padding between": (program(PADDED, "tensor<?x?xf32>", TWO), "interior padding: expected a value and numbers known at import"),
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
