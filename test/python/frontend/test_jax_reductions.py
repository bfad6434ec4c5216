"""Reductions, windows and the largest elements as programs of StableHLO, compared with numpy. They are interpreted."""

import re

import numpy as np
import pytest

pytest.importorskip("jax")

from jax_support import interprets, values  # there is JAX
from stablehlo_texts import best, program, region

import relayc

X, Y = values((4, 6), (3, 6))
TIES = np.round(X * 2)
NUMBERS = {"0.0": 0.0, "1.0": 1.0, "2.0": 2.0, "0xFF800000": -np.inf}

ARGMAX = """({ ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
  %e = stablehlo.compare GT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %f = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %g = stablehlo.or %e, %f : tensor<i1> %h = stablehlo.compare EQ, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %i = stablehlo.compare LT, %b, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %j = stablehlo.and %h, %i : tensor<i1> %k = stablehlo.or %g, %j : tensor<i1>
  %l = stablehlo.select %g, %a, %c : tensor<i1>, tensor<f32> %m = stablehlo.select %k, %b, %d : tensor<i1>, tensor<i32>
  stablehlo.return %l, %m : tensor<f32>, tensor<i32> })"""


def reduced(dimensions, shape):
    """Sums of %x and of %s."""
    return program(
        f'%0 = "stablehlo.reduce"(%x, %s) <{{dimensions = array<i64{dimensions}>}}> {region("add")} '
        f": (tensor<4x6xf32>, tensor<f32>) -> tensor<{shape}xf32>",
        *(f"tensor<{shape}xf32>", "%x: tensor<4x6xf32>, %s: tensor<f32>"),
    )


def largest(axis, size, body, places=None):
    """What `body` makes of %r#0 and %r#1, the largest elements along an axis and their places along it, or along another one."""
    along = axis if places is None else places
    return program(
        f"%at = stablehlo.iota dim = {along} : tensor<4x6xi32> %v = stablehlo.constant dense<0xFF800000> : tensor<f32> "
        f'%w = stablehlo.constant dense<0> : tensor<i32> %r:2 = "stablehlo.reduce"(%x, %at, %v, %w) <{{dimensions = array<i64: {axis}>}}> '
        f"{ARGMAX} : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<{size}xf32>, tensor<{size}xi32>) "
        f"%p = stablehlo.convert %r#1 : (tensor<{size}xi32>) -> tensor<{size}xf32> {body.replace('KIND', f'tensor<{size}xf32>')}",
        f"tensor<{size}xf32>",
    )


def windows(name, first, size, steps, edge, shape):
    """Reductions of windows that begin `edge` rows above, and end as many columns behind."""
    return program(
        f'%z = stablehlo.constant dense<{first}> : tensor<f32> %0 = "stablehlo.reduce_window"(%x, %z) '
        f"<{{window_dimensions = array<i64: {size[0]}, {size[1]}>, window_strides = array<i64: {steps[0]}, {steps[1]}>, "
        f"padding = dense<[[{edge}, 0], [0, {edge}]]> : tensor<2x2xi64>}}> {region(name)} "
        f": (tensor<4x6xf32>, tensor<f32>) -> tensor<{shape[0]}x{shape[1]}xf32>",
        f"tensor<{shape[0]}x{shape[1]}xf32>",
    )


def by_windows(x, function, first, size, steps, edge):
    padded = np.pad(x, ((edge, 0), (0, edge)), constant_values=first)
    return function(np.lib.stride_tricks.sliding_window_view(padded, size)[:: steps[0], :: steps[1]], (2, 3))


PROGRAMS = {
    "sums from a number": (reduced(": 1", "4"), [(X, np.float32(2.5))], lambda x, s: x.sum(1) + s),
    **{
        f"quotients of sums of {kind} by {number}": (
            program(
                f"%z = stablehlo.constant dense<{zero}> : tensor<{kind}> %m = stablehlo.constant dense<{number}> : tensor<{kind}> "
                f"%n = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<{kind}>) -> tensor<4x{kind}> "
                f"%s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x6x{kind}>, tensor<{kind}>) "
                f"-> tensor<4x{kind}> %0 = stablehlo.divide %s, %n : tensor<4x{kind}>",
                *(f"tensor<4x{kind}>", f"%x: tensor<4x6x{kind}>"),
            ),
            [(given,)],
            lambda x, number=number: np.trunc(x.sum(1) / np.float32(number)).astype(x.dtype) if x.dtype.kind == "i" else x.sum(1) / number,
        )
        for kind, zero, given in (("i32", "0", np.round(X * 3).astype(np.int32)), ("f32", "0.0", X))
        for number in ((6, 5) if kind == "i32" else (6.0, 5.0))
    },
    "sums along no axis": (reduced("", "4x6"), [(X, np.float32(2.5))], lambda x, s: x + s),
    "places of the largest": (largest(1, 4, "%0 = stablehlo.negate %p : KIND"), [(TIES,)], lambda x: -x.argmax(1).astype(np.float32)),
    "the largest and their places": (
        largest(0, 6, "%0 = stablehlo.add %r#0, %p : KIND"),
        [(TIES,)],
        lambda x: x.max(0) + x.argmax(0).astype(np.float32),
    ),
    "rows of the largest in them": (
        largest(1, 4, "%0 = stablehlo.negate %p : KIND", 0),
        [(TIES,)],
        lambda x: -np.arange(4, dtype=np.float32),
    ),
    "places of truth": (
        program(
            "%z = stablehlo.constant dense<0.0> : tensor<4x6xf32> %t = stablehlo.compare GT, %x, %z "
            ": (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1> %at = stablehlo.iota dim = 1 : tensor<4x6xi32> "
            "%v = stablehlo.constant dense<false> : tensor<i1> %w = stablehlo.constant dense<0> : tensor<i32> "
            '%r:2 = "stablehlo.reduce"(%t, %at, %v, %w) <{dimensions = array<i64: 1>}> '
            f"{ARGMAX.replace('f32', 'i1')} : (tensor<4x6xi1>, tensor<4x6xi32>, tensor<i1>, tensor<i32>) -> (tensor<4xi1>, tensor<4xi32>) "
            "%0 = stablehlo.convert %r#1 : (tensor<4xi32>) -> tensor<4xf32>",
            "tensor<4xf32>",
        ),
        [(X,)],
        lambda x: (x > 0).argmax(1).astype(np.float32),
    ),
    **{
        f"windows of one element and {first}": (
            windows("add", first, (1, 1), (1, 1), 0, (4, 6)),
            [(X,)],
            lambda x, first=first: x + np.float32(first),
        )
        for first in ("0.0", "2.0")
    },
    "differences of windows of one element": (windows("subtract", "2.0", (1, 1), (1, 1), 0, (4, 6)), [(X,)], lambda x: np.float32(2) - x),
    **{
        f"{name} of windows beyond {edge} edges from {first}": (
            windows(name, first, (2, 3), (1, 2), edge, (3 + edge, (3 + edge) // 2 + 1)),
            [(X,)],
            lambda x, given=(function, NUMBERS[first], (2, 3), (1, 2), edge): by_windows(x, *given),
        )
        for name, function, first in (("add", np.sum, "0.0"), ("maximum", np.max, "0xFF800000"), ("multiply", np.prod, "1.0"))
        for edge in (0, 1, 2, 3)
    },
    "parity of windows of truth": (
        program(
            f'%z = stablehlo.constant dense<false> : tensor<i1> %0 = "stablehlo.reduce_window"(%p, %z) '
            f"<{{window_dimensions = array<i64: 2, 3>}}> {region('xor', 'tensor<i1>')} : (tensor<4x6xi1>, tensor<i1>) -> tensor<3x4xi1>",
            *("tensor<3x4xi1>", "%p: tensor<4x6xi1>"),
        ),
        [(X > 0,)],
        lambda p: np.lib.stride_tricks.sliding_window_view(p, (2, 3)).sum((2, 3)) % 2 == 1,
    ),
    "products of halves in floats": (
        program(
            "%h = stablehlo.convert %x : (tensor<4x6xf32>) -> tensor<4x6xf16> "
            "%g = stablehlo.convert %y : (tensor<3x6xf32>) -> tensor<3x6xf16> %0 = stablehlo.dot_general %h, %g, "
            "contracting_dims = [1] x [1] : (tensor<4x6xf16>, tensor<3x6xf16>) -> tensor<4x3xf32>",
            *("tensor<4x3xf32>", "%x: tensor<4x6xf32>, %y: tensor<3x6xf32>"),
        ),
        [(np.round(X * 4) / 4, np.round(Y * 4) / 4)],
        lambda x, y: x @ y.T,
    ),
    "halves in hexadecimal": (
        program(
            '%a = stablehlo.constant dense<"0x003C00BC007C0138"> : tensor<4xf16> %b = stablehlo.convert %a '
            ": (tensor<4xf16>) -> tensor<4xf32> %0 = stablehlo.add %b, %x : tensor<4xf32>",
            *("tensor<4xf32>", "%x: tensor<4xf32>"),
        ),
        [(X[0, :4],)],
        lambda x: x + np.array([0x3C00, 0xBC00, 0x7C00, 0x3801], np.uint16).view(np.float16).astype(np.float32),
    ),
    **{
        f"within bounds {low} and {high}": (
            program(
                "%z = stablehlo.constant dense<-0.5> : tensor<f32> %w = stablehlo.constant dense<0.75> : tensor<4x6xf32> "
                "%v = stablehlo.negate %w : tensor<4x6xf32> "
                f"%0 = stablehlo.clamp %{low}, %x, %{high} : (tensor<{kinds[0]}f32>, tensor<4x6xf32>, tensor<{kinds[1]}f32>) "
                "-> tensor<4x6xf32>",
                arguments="%x: tensor<4x6xf32>, %a: tensor<f32>, %b: tensor<4x6xf32>",
            ),
            [(X, np.float32(-1), np.abs(TIES))],
            lambda x, a, b, bounds=bounds: x.clip(*bounds(a, b)),
        )
        for low, high, kinds, bounds in (
            ("z", "b", ("", "4x6x"), lambda a, b: (np.float32(-0.5), b)),
            ("a", "w", ("", "4x6x"), lambda a, b: (a, np.float32(0.75))),
            ("v", "w", ("4x6x", "4x6x"), lambda a, b: (np.float32(-0.75), np.float32(0.75))),
        )
    },
    **{
        f"a slice from {begin} on": (
            program(
                f"%i = stablehlo.constant dense<{begin[0]}> : tensor<i32> %j = stablehlo.constant dense<{begin[1]}> : tensor<i32> "
                "%0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [2, 3] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>",
                "tensor<2x3xf32>",
            ),
            [(X,)],
            lambda x, first=first: x[first[0] : first[0] + 2, first[1] : first[1] + 3],
        )
        for begin, first in (((9, -2), (2, 0)), ((-1, 2), (0, 2)), ((2, 4), (2, 3)))
    },
    "a row for all rows": (
        program(
            "%b = stablehlo.broadcast_in_dim %y, dims = [0, 1] : (tensor<1x6xf32>) -> tensor<4x6xf32> "
            "%n = stablehlo.negate %b : tensor<4x6xf32> %s = stablehlo.sine %n : tensor<4x6xf32> "
            "%0 = stablehlo.add %s, %x : tensor<4x6xf32>",
            arguments="%x: tensor<4x6xf32>, %y: tensor<1x6xf32>",
        ),
        [(X, Y[:1])],
        lambda x, y: x - np.sin(y),
    ),
    "the largest of a computed number": (
        program(
            "%k = stablehlo.constant dense<3> : tensor<i32> %r:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k) "
            ": (tensor<4x6xf32>, tensor<i32>) -> (tensor<4x3xf32>, tensor<4x3xi32>) "
            "%f = stablehlo.convert %r#1 : (tensor<4x3xi32>) -> tensor<4x3xf32> %0 = stablehlo.add %r#0, %f : tensor<4x3xf32>",
            "tensor<4x3xf32>",
        ),
        [(X,)],
        lambda x: -np.sort(-x, 1)[:, :3] + np.argsort(-x, 1)[:, :3].astype(np.float32),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_numpy_gives(name):
    interprets(*PROGRAMS[name])


@pytest.mark.parametrize(
    ("left", "right", "shape", "wanted"),
    [
        ([1, 2], [1, 2], (5, 3, 4), "abc,dbc->ad"),
        ([1, 2], [0, 1], (3, 4, 5), "abc,bcd->ad"),
        ([1, 2], [0, 2], (3, 5, 4), "abc,bdc->ad"),
        ([1, 2], [2, 1], (5, 4, 3), "abc,dcb->ad"),
        ([2, 1], [1, 0], (3, 4, 5), "abc,bcd->ad"),
        ([1, 2], [0, 1], (3, 4), "abc,bc->a"),
        ([1, 2], [1, 0], (4, 3), "abc,cb->a"),
        ([1], [1], (5, 3, 4), "abc,dbe->acde"),
        ([0, 1, 2], [0, 1, 2], (2, 3, 4), "abc,abc->"),
        ([0, 1, 2], [1, 2, 3], (5, 2, 3, 4), "abc,dabc->d"),
    ],
)
def test_products_along_any_axes(left, right, shape, wanted):
    """A right matrix whose rows or columns are summed over stays as it is."""
    x, y = values((2, 3, 4), shape)
    result = np.einsum(wanted, x, y)
    types = [f"tensor<{'x'.join(map(str, (*t.shape, 'f32')))}>" for t in (x, y, result)]
    product = f"stablehlo.dot_general %x, %y, contracting_dims = {left} x {right} : ({types[0]}, {types[1]}) -> {types[2]}"
    text = program(f"%0 = {product}", types[2], f"%x: {types[0]}, %y: {types[1]}")
    interprets(text, [(x, y)], lambda x, y: result)
    order = right, [j for j in range(y.ndim) if j not in right]
    stays = [*order[0], *order[1]] == list(range(y.ndim)) or ([*order[1], *order[0]] == list(range(y.ndim)))
    assert (re.search(r"transpose.*%arg1", str(relayc.from_stablehlo(text).module)) is None) == stays


@pytest.mark.parametrize("axis", [0, 1])
def test_a_sum_by_the_number_of_its_elements_is_a_mean(axis):
    kind, sum_of = f"tensor<{X.shape[1 - axis]}xf32>", "applies stablehlo.add across dimensions"
    text = program(
        f"%z = stablehlo.constant dense<0.0> : tensor<f32> %n = stablehlo.constant dense<{X.shape[axis]}.0> : {kind} "
        f"%s = stablehlo.reduce(%x init: %z) {sum_of} = [{axis}] : (tensor<4x6xf32>, tensor<f32>) -> {kind} "
        f"%0 = stablehlo.divide %s, %n : {kind}",
        kind,
    )
    interprets(text, [(X,)], lambda x: x.mean(axis))
    assert "relay.mean" in str(relayc.from_stablehlo(text).module)


@pytest.mark.parametrize("edge", [-1, 0, 1, 2, 3])
@pytest.mark.parametrize(("name", "first", "pool"), [("add", "0.0", "avg"), ("maximum", "0xFF800000", "max")])
def test_windows_that_lie_in_no_edge_are_pooling(name, first, pool, edge):
    text = windows(name, first, (2, 3), (1, 2), edge, (3 + edge, (3 + edge) // 2 + 1))
    assert (f"relay.nn_{pool}_pool2d" in str(relayc.from_stablehlo(text).module)) == (0 <= edge < 2)


@pytest.mark.parametrize("count", [3, 4])
def test_windows_along_up_to_three_axes_are_pooling(count):
    text = program(
        f'%z = stablehlo.constant dense<0xFF800000> : tensor<f32> %0 = "stablehlo.reduce_window"(%x, %z) '
        f"<{{window_dimensions = array<i64: {', '.join('2' * count)}>}}> {region('maximum')} "
        f": (tensor<{'3x' * count}f32>, tensor<f32>) -> tensor<{'2x' * count}f32>",
        *(f"tensor<{'2x' * count}f32>", f"%x: tensor<{'3x' * count}f32>"),
    )
    assert ("relay.nn_max_pool3d" in str(relayc.from_stablehlo(text).module)) == (count == 3)


@pytest.mark.parametrize(("count", "steps"), [(1, 0), (4, 2), (5, 3)])
def test_any_reductions_so_far_double_their_reach(count, steps):
    kind = f"tensor<{count}xf32>"
    text = program(
        f'%z = stablehlo.constant dense<1.0> : tensor<f32> %0 = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: '
        f"{count}>, padding = dense<[[{count - 1}, 0]]> : tensor<1x2xi64>}}> {region('maximum')} : ({kind}, tensor<f32>) -> {kind}",
        *(kind, f"%x: {kind}"),
    )
    interprets(text, [(np.abs(X[0, :count]) * 3,)], lambda x: np.maximum.accumulate(np.maximum(x, 1)))
    assert str(relayc.from_stablehlo(text).module).count("tensor.concat") == steps


@pytest.mark.parametrize(
    ("rows", "order", "is_turned"),
    [("3", [0, 2, 1], True), ("2x3", [0, 3, 1, 2], True), ("2x3", [0, 2, 1, 3], False), ("3", [0, 1, 2], False)],
)
def test_products_whose_columns_come_first_exchange_their_operands(rows, order, is_turned):
    shape = ["2", *rows.split("x"), "5"]
    product, result = ("x".join([*sizes, "f32"]) for sizes in (shape, [shape[i] for i in order]))
    text = program(
        f"%p = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [{len(order) - 1}] x [2] "
        f": (tensor<2x{rows}x4xf32>, tensor<2x5x4xf32>) -> tensor<{product}> "
        f"%0 = stablehlo.transpose %p, dims = {order} : (tensor<{product}>) -> tensor<{result}>",
        *(f"tensor<{result}>", f"%x: tensor<2x{rows}x4xf32>, %y: tensor<2x5x4xf32>"),
    )
    x, y = values((2, *map(int, rows.split("x")), 4), (2, 5, 4))
    interprets(text, [(x, y)], lambda x, y: np.einsum("b...k,bnk->b...n", x, y).transpose(order))
    assert (re.search(r"nn_batch_matmul.*\(%arg1,", str(relayc.from_stablehlo(text).module)) is not None) == is_turned


@pytest.mark.parametrize(("high", "is_transposed"), [((3, 3), True), ((4, 2), False), ((2, 4), False)])
def test_transposed_convolutions_extend_their_result_by_less_than_a_stride(high, is_transposed):
    kind = f"tensor<1x3x{5 + high[0]}x{5 + high[1]}xf32>"
    text = program(
        "%0 = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
        f"window = {{pad = [[0, {high[0]}], [0, {high[1]}]], lhs_dilate = [2, 2]}} {{feature_group_count = 1 : i64, "
        f"batch_group_count = 1 : i64}} : (tensor<1x2x4x4xf32>, tensor<3x2x3x3xf32>) -> {kind}",
        *(kind, "%x: tensor<1x2x4x4xf32>, %y: tensor<3x2x3x3xf32>"),
    )
    assert ("relay.nn_conv2d_transpose" in str(relayc.from_stablehlo(text).module)) == is_transposed


def test_nothing_is_made_larger_than_needed():
    """Where windows are written to, the data are no larger; one tensor is its concatenation."""
    sizes = re.findall(r"tensor<(\d+)x(\d+)x", str(relayc.from_stablehlo(best("GE")).module))
    assert max(int(rows) for rows, _ in sizes) == 4 and max(int(columns) for _, columns in sizes) == 6
    alone = program("%0 = stablehlo.concatenate %x, dim = 0 : (tensor<4x6xf32>) -> tensor<4x6xf32>")
    assert "concat" not in str(relayc.from_stablehlo(alone).module)
