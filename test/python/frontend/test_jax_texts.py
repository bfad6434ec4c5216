"""Programs of StableHLO compared with numpy: forms of operators, among them some that JAX writes no function in. They are interpreted."""

import io

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax_support import interprets, same, values  # noqa: E402 # there is JAX
from stablehlo_texts import (  # noqa: E402
    ELEMENTWISE,
    IF,
    REAL_SLICE,
    REMAINDER,
    ROWS,
    TWO,
    WRITTEN,
    best,
    convolved,
    function,
    gathered,
    of_complex,
    program,
    region,
    scatter,
    sort,
)

import relayc  # noqa: E402
from relayc.frontend.sizes import LONGEST  # noqa: E402

X, Y = values((4, 6), (3, 6))
I = np.array([2, 0, 3], np.int32)  # noqa: E741


# ---- forms of operators -----------------------------------------------------------------------------------------------------------------


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


def seen(z):
    """What the program of `of_complex` gives."""
    return z.real - 2 * z.imag


def windows_of(x, w, low, high, base=1, step=1):
    """The same by numpy, of data between which zeros are put."""
    wide = np.zeros((2, (x.shape[2] - 1) * base + 1), np.float32)
    wide[:, ::base] = x[0]
    wide = np.pad(wide, ((0, 0), (max(low, 0), max(high, 0))))[:, max(-low, 0) : wide.shape[1] + max(low, 0) + high]
    count = (wide.shape[1] - 3) // step + 1
    return np.stack([np.einsum("ik,oik->o", wide[:, step * i : step * i + 3], w) for i in range(count)], 1)[None]


OPEN = "tensor<?x3xf32, #stablehlo.bounds<5, ?>>"
TIES = np.round(X * 2)
W = values((4, 6), seed=7)[0]
Z = X + 1j * W
WHOLE = np.array([[3, 0, 2, 1, 5, 4], [1, 1, 0, 7, -2, 3], [0, 2, 4, 5, 1, 3], [2, 2, 2, 0, 1, 5]], np.int32)
TRUTH = X > 0.3
PLACES = np.array([3, 4, 3], np.int32)
OF_ROWS = "%x: tensor<4x6xf32>, %i: tensor<3xi32>"
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
    "an open size and a known one": (
        program(
            f"%s = stablehlo.add %x, %y : ({OPEN}, tensor<4x3xf32>) -> {OPEN} %0 = stablehlo.multiply %s, %x : {OPEN}",
            *(OPEN, f"%x: {OPEN}, %y: tensor<4x3xf32>"),
        ),
        [(X[:, :3], X[:, 3:])],
        lambda x, y: (x + y) * x,
    ),
    "sums along other axes": (
        program(
            "%z = stablehlo.constant dense<0.0> : tensor<f32> "
            "%a = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [2] "
            ": (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3xf32> "
            "%b = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0] "
            ": (tensor<4x2x3xf32>, tensor<f32>) -> tensor<2x3xf32> "
            "%0 = stablehlo.multiply %a, %b : tensor<2x3xf32>",
            *("tensor<2x3xf32>", "%x: tensor<2x3x4xf32>, %y: tensor<4x2x3xf32>"),
        ),
        [(X.reshape(2, 3, 4), W.reshape(4, 2, 3))],
        lambda x, y: x.sum(2) * y.sum(0),
    ),
    "rows downwards": (sort("GT", 1), [(X,)], lambda x: np.sort(-x, 1)),
    "rows upwards": (sort("LT", 1), [(X,)], lambda x: -np.sort(x, 1)),
    "rows in falling order of others": (
        sort("GT", 2),
        [(X, WHOLE)],
        lambda x, i: -np.take_along_axis(x, np.argsort(-i, 1, kind="stable"), 1),
    ),
    "integers that wrap round": (
        program(
            "%a = stablehlo.constant dense<[2147483647, 5]> : tensor<2xi32> %b = stablehlo.constant dense<[1, 2]> : tensor<2xi32> "
            "%s = stablehlo.add %a, %b : tensor<2xi32> %0 = stablehlo.xor %s, %i : tensor<2xi32>",
            *("tensor<2xi32>", "%i: tensor<2xi32>"),
        ),
        [(np.array([3, 4], np.int32),)],
        lambda i: np.array([-(2**31), 7], np.int32) ^ i,
    ),
    "a part of known integers": (
        program(
            "%a = stablehlo.constant dense<[3, 5, 7, 9, 11]> : tensor<5xi32> "
            "%s = stablehlo.slice %a [1:5:3] : (tensor<5xi32>) -> tensor<2xi32> %0 = stablehlo.multiply %s, %i : tensor<2xi32>",
            *("tensor<2xi32>", "%i: tensor<2xi32>"),
        ),
        [(np.array([3, 4], np.int32),)],
        lambda i: np.array([5, 11], np.int32) * i,
    ),
    "other bits": (
        program("%0 = stablehlo.not %i : tensor<3xi32>", *("tensor<3xi32>", "%i: tensor<3xi32>")),
        [(I,)],
        lambda i: ~i,
    ),
    "no truth": (program("%0 = stablehlo.not %p : tensor<3xi1>", *("tensor<3xi1>", "%p: tensor<3xi1>")), [(I > 1,)], lambda p: ~p),
    "within bounds": (
        program(
            "%a = stablehlo.constant dense<-0.5> : tensor<f32> %b = stablehlo.constant dense<0.75> : tensor<f32> "
            "%0 = stablehlo.clamp %a, %x, %b : (tensor<f32>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>",
        ),
        [(X,)],
        lambda x: x.clip(-0.5, 0.75),
    ),
    **{
        f"bits of {kind} as {other}": (
            program(
                f"%0 = stablehlo.bitcast_convert %x : (tensor<{shape}x{kind}>) -> tensor<{seen_as}x{other}>",
                *(f"tensor<{seen_as}x{other}>", f"%x: tensor<{shape}x{kind}>"),
            ),
            [(given,)],
            lambda x, dtype=dtype, seen_as=seen_as: x.view(dtype).reshape([int(d) for d in seen_as.split("x")]),
        )
        for kind, other, shape, seen_as, dtype, given in (
            ("ui8", "ui16", "3x2", "3", np.uint16, np.array([[1, 255], [128, 3], [7, 0]], np.uint8)),
            ("i8", "f32", "2x4", "2", np.float32, np.array([[1, -1, 100, 3], [0, 0, -128, 63]], np.int8)),
            ("f32", "ui8", "2", "2x4", np.uint8, np.array([1.7, -3.3], np.float32)),
            ("f32", "i32", "2", "2", np.int32, np.array([1.7, -3.3], np.float32)),
        )
    },
    "angles from one number": (
        program(
            "%b = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<4x6xf32> "
            "%0 = stablehlo.atan2 %b, %x : tensor<4x6xf32>",
            arguments="%x: tensor<4x6xf32>, %y: tensor<f32>",
        ),
        [(X, np.float32(-0.5))],
        lambda x, y: np.arctan2(y, x),
    ),
    "angles to one number": (
        program(
            "%b = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<4x6xf32> "
            "%0 = stablehlo.atan2 %x, %b : tensor<4x6xf32>",
            arguments="%x: tensor<4x6xf32>, %y: tensor<f32>",
        ),
        [(X, np.float32(-0.5)), (X, np.float32(1))],
        np.arctan2,
    ),
    "elements along an axis": (
        program(
            "%0 = "
            + gathered(
                "collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], "
                "index_vector_dim = 2",
                "1, 1",
                "(tensor<4x6xf32>, tensor<4x3x1xi32>) -> tensor<4x3xf32>",
            ),
            *("tensor<4x3xf32>", "%x: tensor<4x6xf32>, %i: tensor<4x3x1xi32>"),
        ),
        [(X, WHOLE[:, 2:5, None])],
        lambda x, i: np.take_along_axis(x, i[..., 0].clip(0, 5), 1),
    ),
    "elements along an axis at places in another order": (
        program(
            "%0 = "
            + gathered(
                "collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 2], start_index_map = [2], "
                "index_vector_dim = 3",
                "1, 1, 1",
                "(tensor<2x3x4xf32>, tensor<2x2x3x1xi32>) -> tensor<2x2x3xf32>",
            ),
            *("tensor<2x2x3xf32>", "%x: tensor<2x3x4xf32>, %i: tensor<2x2x3x1xi32>"),
        ),
        [(X.reshape(2, 3, 4), WHOLE[:2].reshape(2, 2, 3, 1))],
        lambda x, i: np.take_along_axis(np.stack([x, x], 1), i.clip(0, 3), 3)[..., 0],
    ),
    "begins of columns": (
        program(
            "%0 = "
            + gathered(
                "offset_dims = [0, 1], start_index_map = [1], index_vector_dim = 1",
                "2, 3",
                "(tensor<4x6xf32>, tensor<3x1xi32>) -> tensor<2x3x3xf32>",
            ),
            *("tensor<2x3x3xf32>", "%x: tensor<4x6xf32>, %i: tensor<3x1xi32>"),
        ),
        [(X, np.array([[1], [9], [-2]], np.int32))],
        lambda x, i: np.stack([x[:2, n : n + 3] for n in i[:, 0].clip(0, 3)], 2),
    ),
    "all of it at each place": (
        program(
            "%0 = "
            + gathered(
                "offset_dims = [1, 2], start_index_map = [1], index_vector_dim = 1",
                "4, 6",
                "(tensor<4x6xf32>, tensor<3x1xi32>) -> tensor<3x4x6xf32>",
            ),
            *("tensor<3x4x6xf32>", "%x: tensor<4x6xf32>, %i: tensor<3x1xi32>"),
        ),
        [(X, np.array([[1], [9], [-2]], np.int32))],
        lambda x, i: np.stack([x] * 3),
    ),
    "sums of all of it at each place": (
        program(
            '%0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], '
            f"scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}}> {region('add')} "
            ": (tensor<4x6xf32>, tensor<3x1xi32>, tensor<3x4x6xf32>) -> tensor<4x6xf32>",
            arguments="%x: tensor<4x6xf32>, %i: tensor<3x1xi32>, %u: tensor<3x4x6xf32>",
        ),
        [(X, np.array([[0], [1], [0]], np.int32), np.stack([W, X, X + W]))],
        lambda x, i, u: x + u[0] + u[2],
    ),
    "all of it at places of no axis": (
        program(
            "%0 = "
            + gathered("offset_dims = [1, 2], index_vector_dim = 1", "2, 6", "(tensor<4x6xf32>, tensor<3x0xi32>) -> tensor<3x2x6xf32>"),
            *("tensor<3x2x6xf32>", "%x: tensor<4x6xf32>, %i: tensor<3x0xi32>"),
        ),
        [(X, np.zeros((3, 0), np.int32))],
        lambda x, i: np.stack([x[:2]] * 3),
    ),
    "an axis of one element": (
        program(
            "%0 = "
            + gathered(
                "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1",
                "1, 6",
                "(tensor<1x6xf32>, tensor<3x1xi32>) -> tensor<3x6xf32>",
            ),
            *("tensor<3x6xf32>", "%x: tensor<1x6xf32>, %i: tensor<3x1xi32>"),
        ),
        [(X[:1], np.array([[1], [0], [-2]], np.int32))],
        lambda x, i: np.repeat(x, 3, 0),
    ),
    "whether any are true together": (
        program(
            "%0 = stablehlo.dot_general %p, %q, contracting_dims = [1] x [1] : (tensor<4x6xi1>, tensor<3x6xi1>) -> tensor<4x3xi1>",
            *("tensor<4x3xi1>", "%p: tensor<4x6xi1>, %q: tensor<3x6xi1>"),
        ),
        [(X > 1, Y > 0.5)],
        lambda p, q: p @ q.T,
    ),
    "all products": (
        program(
            "%0 = stablehlo.dot_general %x, %y, contracting_dims = [] x [] : (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x6x3x6xf32>",
            *("tensor<4x6x3x6xf32>", "%x: tensor<4x6xf32>, %y: tensor<3x6xf32>"),
        ),
        [(X, Y)],
        np.multiply.outer,
    ),
    "products of bytes in integers": (
        program(
            "%0 = stablehlo.dot_general %i, %i, contracting_dims = [1] x [1] : (tensor<3x4xi8>, tensor<3x4xi8>) -> tensor<3x3xi32>",
            *("tensor<3x3xi32>", "%i: tensor<3x4xi8>"),
        ),
        [(np.arange(-60, 60, 10, dtype=np.int8).reshape(3, 4),)],
        lambda i: i.astype(np.int32) @ i.astype(np.int32).T,
    ),
    **{
        f"convolved {low} {high} {base} {step}": (
            convolved(f"1x3x{count}", f"stride = [{step}], pad = [[{low}, {high}]], lhs_dilate = [{base}]"),
            [(X[:2].reshape(1, 2, 6), Y.reshape(3, 2, 3))],
            lambda x, w, given=(low, high, base, step): windows_of(x, w, *given),
        )
        for low, high, base, step, count in (
            (1, 2, 1, 1, 7),
            (-1, 1, 1, 1, 4),
            (2, 2, 2, 1, 13),
            (3, 0, 2, 1, 12),
            (1, 3, 2, 1, 13),
            (0, 1, 2, 2, 5),
        )
    },
    "between known padding": (
        program(
            "%l = stablehlo.constant dense<[1, 0]> : tensor<2xi32> %h = stablehlo.constant dense<[-1, 2]> : tensor<2xi32> "
            "%n = stablehlo.constant dense<[0, 1]> : tensor<2xi32> %z = stablehlo.constant dense<3.0> : tensor<f32> "
            "%0 = stablehlo.dynamic_pad %x, %z, %l, %h, %n : (tensor<4x6xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>)"
            " -> tensor<4x13xf32>",
            "tensor<4x13xf32>",
        ),
        [(X,)],
        lambda x: np.pad(np.insert(x, range(1, 6), 3, 1), ((1, 0), (0, 2)), constant_values=3)[:-1],
    ),
    "padding of data": (
        program(
            "%n = stablehlo.constant dense<0> : tensor<2xi32> %z = stablehlo.constant dense<3.0> : tensor<f32> "
            "%0 = stablehlo.dynamic_pad %x, %z, %i, %i, %n : (tensor<4x6xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>)"
            " -> tensor<?x?xf32>",
            *("tensor<?x?xf32>", TWO),
        ),
        [(X, np.array([-1, 2], np.int32)), (X, np.array([1, -2], np.int32))],
        lambda x, i: (
            np.pad(x[1:-1], ((0, 0), (2, 2)), constant_values=3) if i[0] < 0 else np.pad(x[:, 2:-2], ((1, 1), (0, 0)), constant_values=3)
        ),
    ),
    "truth with padding": (
        program(
            "%t = stablehlo.constant dense<true> : tensor<i1> "
            "%0 = stablehlo.pad %p, %t, low = [1, 0], high = [0, -2], interior = [0, 0] : (tensor<4x6xi1>, tensor<i1>) -> tensor<5x4xi1>",
            *("tensor<5x4xi1>", "%p: tensor<4x6xi1>"),
        ),
        [(TRUTH,)],
        lambda p: np.pad(p[:, :4], ((1, 0), (0, 0)), constant_values=True),
    ),
    "places by a shape": (
        program(
            "%s = stablehlo.constant dense<[4, 6]> : tensor<2xi32> %a = stablehlo.dynamic_iota %s, dim = 0 "
            ": (tensor<2xi32>) -> tensor<4x6xf32> %0 = stablehlo.subtract %a, %x : tensor<4x6xf32>"
        ),
        [(X,)],
        lambda x: np.arange(4, dtype=np.float32)[:, None] - x,
    ),
    "what a composite is for": (
        "func.func private @twice(%a: tensor<4x6xf32>) -> tensor<4x6xf32> { %b = stablehlo.add %a, %a : tensor<4x6xf32> "
        "return %b : tensor<4x6xf32> } "
        + program('%0 = stablehlo.composite "own.twice" %x {decomposition = @twice} : (tensor<4x6xf32>) -> tensor<4x6xf32>'),
        [(X,)],
        lambda x: x + x,
    ),
    "halves as they are written": (
        program(
            "%a = stablehlo.constant dense<[0x7C00, 0xFC00, 1.5, -0.25]> : tensor<4xf16> "
            "%b = stablehlo.convert %a : (tensor<4xf16>) -> tensor<4xf32> %0 = stablehlo.add %b, %x : tensor<4xf32>",
            *("tensor<4xf32>", "%x: tensor<4xf32>"),
        ),
        [(X[0, :4],)],
        lambda x: x + np.float32([np.inf, -np.inf, 1.5, -0.25]),
    ),
    **{
        f"complex numbers, {name}": (of_complex(body, shape, more), [(X, W, *given)], lambda x, y, *i, wanted=wanted: seen(wanted(Z, *i)))
        for name, shape, more, given, body, wanted in (
            ("negated", "4x6", "", (), "%c = stablehlo.negate %z : KIND", np.negative),
            (
                *("widened and back", "4x6", "", ()),
                "%w = stablehlo.convert %z : (KIND) -> tensor<4x6xcomplex<f64>> "
                "%k = stablehlo.constant dense<(1.0, 2.0)> : tensor<4x6xcomplex<f64>> "
                "%s = stablehlo.add %w, %k : tensor<4x6xcomplex<f64>> %c = stablehlo.convert %s : (tensor<4x6xcomplex<f64>>) -> KIND",
                lambda z: z + (1 + 2j),
            ),
            (
                *("chosen", "4x6", "", ()),
                "%n = stablehlo.negate %z : KIND %p = stablehlo.compare GT, %x, %y : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1> "
                "%c = stablehlo.select %p, %z, %n : tensor<4x6xi1>, KIND",
                lambda z: np.where(z.real > z.imag, z, -z),
            ),
            (
                *("a slice", "2x3", ", %i: tensor<i32>", (np.int32(9),)),
                "%c = stablehlo.dynamic_slice %z, %i, %i, sizes = [2, 3] : (tensor<4x6xcomplex<f32>>, tensor<i32>, tensor<i32>) -> KIND",
                lambda z, i: z[2:4, 3:6],
            ),
            (
                *("an update", "4x6", ", %i: tensor<i32>", (np.int32(1),)),
                "%n = stablehlo.negate %z : KIND %u = stablehlo.slice %n [0:2, 0:3] : (KIND) -> tensor<2x3xcomplex<f32>> "
                "%c = stablehlo.dynamic_update_slice %z, %u, %i, %i : (KIND, tensor<2x3xcomplex<f32>>, tensor<i32>, tensor<i32>) -> KIND",
                lambda z, i: np.block([[z[:1]], [z[1:3, :1], -z[:2, :3], z[1:3, 4:]], [z[3:]]]),
            ),
            (
                *("rows", "3x6", ", %i: tensor<3xi32>", (I,)),
                ROWS.replace("%0", "%c").replace("%x", "%z").replace("f32", "complex<f32>"),
                lambda z, i: z[i],
            ),
            (
                *("sums at rows", "4x6", ", %i: tensor<3xi32>", (PLACES,)),
                "%u = stablehlo.slice %z [0:3, 0:6] : (KIND) -> tensor<3x6xcomplex<f32>> "
                + WRITTEN.replace("%0", "%c")
                .replace("%x", "%z")
                .replace("TYPE", "complex<f32>")
                .replace("REGION", region("add", "tensor<complex<f32>>")),
                lambda z, i: written(z, i, z[:3], np.add),
            ),
            (
                *("padded", "4x12", "", ()),
                "%one = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>> %c = stablehlo.pad %z, %one, low = [1, 0], "
                "high = [-1, 1], interior = [0, 1] : (tensor<4x6xcomplex<f32>>, tensor<complex<f32>>) -> KIND",
                lambda z: np.pad(np.insert(z, range(1, 6), 1 + 2j, 1), ((1, 0), (0, 1)), constant_values=1 + 2j)[:-1],
            ),
            (
                *("side by side", "4x12", "", ()),
                "%n = stablehlo.negate %z : tensor<4x6xcomplex<f32>> "
                "%c = stablehlo.concatenate %z, %n, dim = 1 : (tensor<4x6xcomplex<f32>>, tensor<4x6xcomplex<f32>>) -> KIND",
                lambda z: np.concatenate([z, -z], 1),
            ),
            (
                *("sums", "6", "", ()),
                "%one = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>> "
                '%c = "stablehlo.reduce"(%z, %one) <{dimensions = array<i64: 0>}> '
                + region("add", "tensor<complex<f32>>")
                + " : (tensor<4x6xcomplex<f32>>, tensor<complex<f32>>) -> KIND",
                lambda z: z.sum(0) + (1 + 2j),
            ),
            (
                *("products", "4x4", "", ()),
                "%c = stablehlo.dot_general %z, %z, contracting_dims = [1] x [1] "
                ": (tensor<4x6xcomplex<f32>>, tensor<4x6xcomplex<f32>>) -> KIND",
                lambda z: z @ z.T,
            ),
            (
                *("the first frequencies", "4x6", "", ()),
                "%c = stablehlo.fft %z, type = FFT, length = [6] : (tensor<4x6xcomplex<f32>>) -> KIND",
                np.fft.fft,
            ),
        )
    },
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_numpy_gives(name):
    interprets(*PROGRAMS[name])


@pytest.mark.parametrize(("kind", "operator"), ELEMENTWISE)
def test_what_is_broadcast_stays_small(kind, operator):
    whole, row = f"tensor<4x6x{kind}>", f"tensor<6x{kind}>"
    text = program(
        f"%b = stablehlo.broadcast_in_dim %i, dims = [1] : ({row}) -> {whole} %p = stablehlo.compare LT, %x, %b : ({whole}, {whole}) -> "
        f"tensor<4x6xi1> %a = stablehlo.{operator.replace('KIND', whole)} %0 = stablehlo.add %x, %a : {whole}",
        *(whole, f"%x: {whole}, %i: {row}"),
    )
    assert "broadcast_to" not in str(relayc.from_stablehlo(text).module)


SHORT = [lambda k: (range(LONGEST + k), range(LONGEST + k)), lambda k: ([2**31 - 2 + k], [1]), lambda k: ([1 - 2**31 - k], [-1])]


@pytest.mark.parametrize("sums", [1, 2])
@pytest.mark.parametrize("made", SHORT, ids=["length", "largest sum", "least sum"])
def test_arithmetic_of_short_constants_is_done_at_once(made, sums):
    """Where no sum wraps round."""
    known, more = made(sums - 1)
    kind = f"tensor<{len(known)}xi32>"
    a, b = (f"stablehlo.constant dense<{[*numbers]}> : {kind}" for numbers in (known, more))
    text = program(f"%a = {a} %b = {b} %c = stablehlo.add %a, %b : {kind} %0 = stablehlo.add %x, %c : {kind}", kind, f"%x: {kind}")
    assert str(relayc.from_stablehlo(text).module).count("relay.add") == sums


def test_which_operators_compute_with_sizes():
    """Twice a size is one; a remainder by what may be 0 is none."""
    twice = str(relayc.from_jax(lambda x: x * (jax.numpy.array(x.shape[0]) * 2.0), X, polymorphic_shapes="n, 6").module)
    assert twice.count("relay.multiply") == 1
    kind = "tensor<?xf32, #stablehlo.bounds<5>>"
    size = "= stablehlo.get_dimension_size %{}, dim = 0 : (" + kind + ") -> tensor<i32> "
    called = "%m = call @remainder(%n, %d) : (tensor<i32>, tensor<i32>) -> tensor<i32> %0 = stablehlo.add %m, %m : tensor<i32>"
    text = program(f"%n {size.format('x')} %d {size.format('y')} {called}", "tensor<i32>", f"%x: {kind}, %y: {kind}")
    assert str(relayc.from_stablehlo(REMAINDER + text).module).count("relay.mod") == 1


@pytest.mark.parametrize("count", [LONGEST, LONGEST + 1])
def test_copies_of_a_number_are_known_while_they_are_few(count):
    text = program(
        f"%a = stablehlo.constant dense<2.0> : tensor<{count}xf32> "
        f"%0 = stablehlo.concatenate %x, %a, dim = 0 : (tensor<1xf32>, tensor<{count}xf32>) -> tensor<{count + 1}xf32>",
        *(f"tensor<{count + 1}xf32>", "%x: tensor<1xf32>"),
    )
    assert ("broadcast_to" in str(relayc.from_stablehlo(text).module)) == (count > LONGEST)


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
