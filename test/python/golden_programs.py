"""Programs of operators whose compilation is recorded (see golden.py): usual sizes of models, and the limits of strategies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from oracle import values
from support import Const
from symbolic_ops import symbolic_program, tensor

from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.dialects.relay import build as b
from relayc.symbolic import FAR, Range

WHOLE = ("v3", "v4", "amx", "ampere", "hopper")
"""The targets that most of PROGRAMS are compiled for."""


@dataclass(frozen=True)
class Program:
    """A program of operators.

    Attributes:
      operands: types, as `float32[n, 64]`; those that begin with "const " are constants, of all numbers where they are integers, with
        "narrow " of those from -64 to 64.
      body: builds operators of the operands.
      highs: the largest values of symbols, whose least is 1; none where nothing is said.
      targets: those that it is compiled for.
    """

    operands: Sequence[str]
    body: Callable[..., Any]
    highs: Mapping[str, int] = field(default_factory=dict)
    targets: Sequence[str] = WHOLE

    def module(self) -> IRModule:
        types = [_operand(text) for text in self.operands]
        names = {name for t in types if not isinstance(t, Const) for name in t.symbols}

        def body(*given: ir.Value) -> Sequence[ir.Value]:
            result = self.body(*given)
            return result if isinstance(result, tuple) else [result]

        return symbolic_program(body, types, {name: Range(1, self.highs.get(name, FAR)) for name in sorted(names)})


def _operand(text: str) -> Any:
    kind, _, type_ = text.partition(" ")
    if kind not in ("const", "narrow"):
        return tensor(text)
    found = tensor(type_)
    return Const(values(found.static_shape, found.dtype, limit=None if kind == "const" else 64))


def _linear(x: ir.Value, w: ir.Value, bias: ir.Value) -> ir.Value:
    return b("nn.relu", b("nn.bias_add", b("nn.dense", x, w), bias, axis=-1))


def _residual(x: ir.Value, w: ir.Value, other: ir.Value, **attrs: Any) -> ir.Value:
    return b("nn.relu", b("add", b("nn.conv2d", x, w, **attrs), other))


def _attention(q: ir.Value, k: ir.Value, v: ir.Value) -> ir.Value:
    return b("nn.batch_matmul", b("nn.softmax", b("nn.batch_matmul", q, k, transpose_b=True)), v, transpose_b=False)


def _norm(x: ir.Value) -> ir.Value:
    centred = b("subtract", x, b("mean", x, axis=(-1,), keepdims=True))
    variance = b("mean", b("multiply", centred, centred), axis=(-1,), keepdims=True)
    return b("divide", centred, b("sqrt", variance))


def _grown(x: ir.Value, *weights: ir.Value) -> ir.Value:
    for w in weights:
        x = b("concatenate", x, b("nn.relu", b("nn.conv2d", x, w, padding=(1, 1, 1, 1))), axis=1)
    return x


def _dense(rows: int | str, columns: int, depth: int) -> Program:
    return Program([f"float32[{rows}, {depth}]", f"const float32[{columns}, {depth}]", f"const float32[{columns}]"], _linear)


def _conv(shape: str, weight: str, **attrs: Any) -> Program:
    return Program([f"float32[{shape}]", f"const float32[{weight}]"], lambda x, w: b("nn.relu", b("nn.conv2d", x, w, **attrs)))


def _unary(name: str, *operands: str, targets: Sequence[str] = WHOLE, **attrs: Any) -> Program:
    return Program(operands, partial(b, name, **attrs), targets=targets)


_FUNCTIONS = (
    "exp",
    "log",
    "log2",
    "log10",
    "sqrt",
    "rsqrt",
    "sigmoid",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
)
_FUNCTIONS += ("asinh", "acosh", "atanh", "erf")


def _functions(x: ir.Value) -> tuple[ir.Value, ...]:
    others = [b("power", x, b("abs", x)), b("floor_mod", x, b("exp", x)), b("mod", x, b("exp", x)), b("maximum", x, b("abs", x))]
    return (*(b(name, x) for name in _FUNCTIONS), *others)


def _bytes(dtype: str, rows: int | str, columns: int, depth: int, weights: str = "const") -> Program:
    return _unary("nn.dense", f"{dtype}[{rows}, {depth}]", f"{weights} int8[{columns}, {depth}]", out_dtype="int32")


_PAD = {"padding": (1, 1, 1, 1)}
PROGRAMS: dict[str, Program] = {
    **{f"dense {m} x {n} x {k}": _dense(m, n, k) for m, n, k in [(512, 3072, 768), (1, 1000, 2048), (7, 130, 77), (1500, 384, 1536)]},
    **{f"dense {m} x {n} x {k}": _dense(m, n, k) for m, n, k in [("n", 768, 768), ("n", 10, 64), (129, 17, 1025)]},
    # As many rows and columns as a block of AMX has, one less and one more.
    **{
        f"matmul of rows that are columns, {m} x {k}": _unary(
            "nn.matmul", f"float32[{k}, {m}]", f"float32[{k}, 80]", transpose_a=True, targets=("amx",)
        )
        for m, k in [(16, 16), (16, 48), (48, 16), (15, 17), (17, 15), (33, 16)]
    },
    "matmul of many": Program(["float32[12, 197, 64]", "float32[12, 64, 197]"], partial(b, "nn.batch_matmul", transpose_b=False)),
    "matmul of symbols": Program(["float32[h, n, k]", "float32[h, k, m]"], partial(b, "nn.batch_matmul", transpose_b=False)),
    "matmul, one column": Program(["float32[32, 1376, 256]", "float32[32, 256, 1]"], partial(b, "nn.batch_matmul", transpose_b=False)),
    "matmul, few columns": Program(
        ["float32[8, 256, 256]", "float32[8, 256, n]"], partial(b, "nn.batch_matmul", transpose_b=False), {"n": 16}
    ),
    "conv 1x1": _conv("1, 64, 56, 56", "256, 64, 1, 1"),
    "conv 1x1 of symbols": _conv("n, 64, h, w", "96, 64, 1, 1"),
    "conv 3x3": _conv("1, 64, 56, 56", "64, 64, 3, 3", **_PAD),
    "conv 3x3, small": _conv("1, 512, 7, 7", "512, 512, 3, 3", **_PAD),
    "conv 3x3 of symbols": _conv("1, 32, h, w", "48, 32, 3, 3", **_PAD),
    "conv 3x3 of symbols, far": _conv("n, 128, h, w", "256, 128, 3, 3", **_PAD),
    "conv 3x3 by 2": _conv("2, 48, 31, 33", "40, 48, 3, 3", strides=(2, 2), padding=(0, 1, 1, 1)),
    "conv 3x2 of few columns": _conv("n, 15, 15, m", "65, 15, 3, 2", strides=(2, 1), dilation=(1, 2), padding=(1, 0, 1, 0)),
    "conv 7x7 by 2": _conv("1, 3, 224, 224", "64, 3, 7, 7", strides=(2, 2), padding=(3, 3, 3, 3)),
    "conv depthwise": _conv("1, 96, 28, 28", "96, 1, 3, 3", groups=96, **_PAD),
    "conv depthwise of symbols": _conv("1, 32, h, w", "32, 1, 5, 5", groups=32, strides=(2, 2), padding=(2, 2, 2, 2)),
    # Windows of as many columns as a strategy unrolls, and of one more.
    **{f"max pool 1x{n}": _unary("nn.max_pool2d", "float32[1, 8, 80, 16]", pool_size=(1, n), layout="NHWC") for n in (32, 33)},
    "conv of groups": _conv("1, 64, 20, 20", "64, 8, 3, 3", groups=8, dilation=(2, 2), padding=(2, 2, 2, 2)),
    "conv with a residual": Program(
        ["float32[1, 64, 28, 28]", "const float32[64, 64, 3, 3]", "float32[1, 64, 28, 28]"], partial(_residual, **_PAD)
    ),
    "conv transposed": _unary(
        "nn.conv2d_transpose", "float32[1, 16, 9, 9]", "const float32[16, 24, 4, 4]", strides=(2, 2), padding=(1, 1, 1, 1)
    ),
    "conv 1d": _unary("nn.conv1d", "float32[1, 80, n]", "const float32[384, 80, 3]", padding=(1, 1)),
    "max pool": _unary("nn.max_pool2d", "float32[1, 64, 112, 112]", pool_size=(3, 3), strides=(2, 2), **_PAD),
    "max pool of symbols": _unary("nn.max_pool2d", "float32[1, 16, h, w]", pool_size=(3, 3), strides=(2, 2), **_PAD),
    "average pool": _unary("nn.avg_pool2d", "float32[1, 64, 14, 14]", pool_size=(2, 2), strides=(2, 2)),
    "global pool": _unary("mean", "float32[2, 96, 7, 7]", axis=(2, 3)),
    "softmax": _unary("nn.softmax", "float32[197, 1000]"),
    "softmax of symbols": _unary("nn.softmax", "float32[n, m]"),
    "softmax of columns": _unary("nn.softmax", "float32[4, 33, 50]", axis=1),
    "norm": Program(["float32[128, 768]"], _norm),
    "norm of symbols": Program(["float32[n, m]"], _norm),
    "sum of rows": _unary("sum", "float32[1000, 65]", axis=(0,)),
    "maximum of symbols": _unary("max", "float32[n, 20, m]", axis=(1,)),
    "argmax": _unary("argmax", "float32[33, 1000]", axis=(1,)),
    # Memory runs on along rows and along the reduction: lanes do where there is a vector of them.
    **{
        f"sum of products, {n} rows": Program([f"float32[{n}, 1]", "float32[1, 64]"], lambda x, y: b("sum", b("multiply", x, y), axis=(1,)))
        for n in (8, 16)
    },
    "running sum": _unary("cumsum", "float32[16, n]", axis=1),
    "running sum, long": _unary("cumsum", "float32[2, 100000]", axis=1),
    "running sum of bytes": _unary("cumsum", "uint8[3, 5000]", axis=1),
    "sort": _unary("sort", "float32[9, 300]"),
    "the largest": _unary("topk", "float32[n, 1000]", k=5),
    "transpose": _unary("transpose", "float32[8, 197, 64]", axes=(1, 0, 2)),
    "transpose of columns": _unary("transpose", "float32[63, 129]", axes=(1, 0)),
    "transpose of symbols": _unary("transpose", "float32[n, 3, m]", axes=(2, 1, 0)),
    "joined": Program(
        ["float32[4, 17, 9]", "float32[4, 30, 9]", "float32[4, 1, 9]"], lambda *x: b("nn.relu", b("concatenate", *x, axis=1))
    ),
    "joined again and again": Program(["float32[1, 16, 14, 14]", "const float32[16, 16, 3, 3]", "const float32[16, 32, 3, 3]"], _grown),
    "gathered": _unary("take", "float32[1000, 64]", "int64[n]", axis=0),
    "resized": _unary("image.resize2d", "float32[1, 8, 20, 20]", size=(40, 40)),
    "elementwise": Program(["float32[n, 3, m]", "float32[3, 1]"], lambda x, y: b("tanh", b("multiply", b("add", x, y), x))),
    "functions": Program(["float32[n, 33]"], _functions, targets=("v4", "ampere")),
    "functions of float64": Program(["float64[n, 33]"], _functions, targets=("v3", "hopper")),
    "functions of float16": Program(["float16[n, 33]"], _functions, targets=("amx",)),
    **{f"bytes, dense {a} {m} x {n} x {k}": _bytes(a, m, n, k) for a, m, n, k in [("uint8", 33, 80, 96), ("int8", 1, 70, 258)]},
    **{f"bytes, dense {a} {m} x {n} x {k}": _bytes(a, m, n, k) for a, m, n, k in [("uint8", "n", 512, 1024), ("int8", 128, 17, 64)]},
    "bytes by seven bits, dense": _bytes("uint8", 33, 80, 96, "narrow"),
    "bytes, conv 3x3": _unary("nn.conv2d", "uint8[1, 32, 19, 21]", "const int8[48, 32, 3, 3]", out_dtype="int32", **_PAD),
    "bytes": Program(["uint8[n, 65]", "uint8[65]"], lambda x, y: b("maximum", b("add", x, y), x)),
    "attention": Program(["float32[12, 197, 64]"] * 3, _attention),
    "attention, long": Program(["float32[6, 1500, 64]"] * 3, _attention),
    "attention of symbols": Program(["float32[h, n, 32]", "float32[h, m, 32]", "float32[h, m, 32]"], _attention),
    "scattered": Program(["float32[9, n]", "int64[5, n]", "float32[5, n]"], partial(b, "scatter_elements", axis=0, reduction="add")),
}
"""By name; sizes are some that real models have, some just beyond limits of vectors and tiles, and symbols."""
SMALL = ("small",)


def _product(a: str, b_: str, **attrs: Any) -> Program:
    return _unary("nn.matmul", a, b_, targets=SMALL, **attrs)


def _window(data: str, size: tuple[int, int], op: str = "max", targets: Sequence[str] = SMALL, **attrs: Any) -> Program:
    return _unary(f"nn.{op}_pool2d", data, pool_size=size, targets=targets, **attrs)


def _slid(data: str, weight: str, dtype: str = "float32", targets: Sequence[str] = SMALL, **attrs: Any) -> Program:
    return _unary("nn.conv2d", f"{dtype}[{data}]", f"const {dtype}[{weight}]", targets=targets, **attrs)


_LAST = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
LIMITS: dict[str, Program] = {
    # A and B as they lie, by few rows, by as many columns as are worth a copy, of as many bytes as caches have.
    "product 1 x 256 x 64": _product("float32[64, 1]", "float32[64, 256]", transpose_a=True),
    "product 1 x 96 x 16": _product("float32[1, 16]", "float32[16, 96]"),
    "product 16 x 8 x 1024": _product("float32[1024, 16]", "float32[8, 1024]", transpose_a=True, transpose_b=True),
    "product 12 x 256 x 1024": _product("float32[1024, 12]", "float32[256, 1024]", transpose_a=True, transpose_b=True),
    "product 64 x 8 x 1024": _product("float32[64, 1024]", "float32[8, 1024]", transpose_b=True),
    "product 24 x 96 x 96": _product("float32[96, 24]", "float32[96, 96]", transpose_a=True),
    "product 32 x 64 x 64": _product("float32[64, 32]", "float32[64, 64]", transpose_a=True),
    "product of words": _product("int16[64, 32]", "int16[32, 64]"),
    "product of few columns": _unary("nn.matmul", "float64[64, 2]", "const float64[64, 3]", transpose_a=True, targets=SMALL),
    "product of symbols, computed operand": Program(
        ["float32[100, n]", "float32[100, m]"], lambda x, y: b("nn.matmul", b("nn.relu", x), y, transpose_a=True), targets=SMALL
    ),
    # Dot products with what is just too large for a cache, and asked for in time just so.
    **{
        f"dot products {n} x {k}": _product(f"float32[1, {k}]", f"float32[{n}, {k}]", transpose_b=True)
        for n, k in [(64, 512), (80, 512), (80, 520)]
    },
    **{f"dot products of {m} rows": _product(f"float32[{m}, 256]", "float32[64, 256]", transpose_b=True) for m in (16, 17)},
    **{
        f"dense {m} x {n} x {k}, small": replace(_dense(m, n, k), targets=SMALL)
        for m, n, k in [(4, 64, 128), (1, 96, 96), (1, 96, 1024), (4, 96, 256)]
    },
    "dense 2 x 256 x 1024": replace(_dense(2, 256, 1024), targets=("v4",)),
    "products of bytes, computed operand": Program(
        ["int8[3, h, 40]", "const int8[3, 100, 40]"], lambda x, w: b("nn.batch_matmul", b("nn.relu", x), w), targets=("v4",)
    ),
    "bytes, dense 32 x 8 x 4": replace(_bytes("uint8", 32, 8, 4), targets=("amx",)),
    "products of symbols, small": Program(
        ["float32[2, n, 100]", "float32[2, 8, 100]"],
        lambda x, y: b("nn.relu", b("nn.batch_matmul", x, y, transpose_b=True)),
        targets=("amx",),
    ),
    # Convolutions whose padded copy costs just a share of their work, or one filter less; of as many taps as are unrolled, and more.
    **{f"conv 5x1 of {n}": _slid("1, 32, 4, 8", f"{n}, 32, 5, 1", padding=(2, 0, 2, 0)) for n in (159, 160)},
    **{f"conv 8x{n}": _slid("1, 4, 16, 16", f"8, 4, 8, {n}", padding=(4, 4, 4, 4)) for n in (8, 9)},
    "conv of lines of few tiles": _slid("2, 80, 17, 17", "64, 80, 3, 3", strides=(2, 2)),
    "conv of short lines": _slid("2, 80, 17, 9", "64, 80, 3, 1", strides=(2, 1)),
    "conv of lines of a call": _slid("n, 80, h, 8", "160, 80, 3, 3", **_PAD),
    "conv of columns of a call": _slid("n, 80, 8, w", "160, 80, 3, 1", padding=(1, 0, 1, 0)),
    "conv of few channels": _slid("1, 8, h, 8", "160, 8, 3, 3", **_PAD),
    "conv of symbols, one tile": _slid("1, 8, h, w", "16, 8, 3, 3", **_PAD),
    "conv of one row of taps": _slid("2, 4, 5, w", "64, 4, 1, 3", strides=(2, 1), dilation=(2, 1), padding=(1, 1, 2, 1)),
    "conv of lines, long": _slid("2, 32, 9, 33", "160, 32, 3, 3", targets=("amx",)),
    "conv of bf16, strided": _slid(
        "1, 32, 8, w", "64, 1, 1, 7", "bfloat16", strides=(2, 3), dilation=(2, 2), padding=(0, 1, 0, 3), groups=32
    ),
    "conv 1x1 of bytes, by 8": _unary(
        "nn.conv2d", "uint8[1, 8, 7, 16]", "const int8[7, 7, 1, 16]", out_dtype="int32", groups=16, targets=SMALL, **_LAST
    ),
    # Windows of as many taps, strides, columns and bytes as their strategies take, and beyond.
    **{f"window {h}x{w} by {n}": _window("float32[3, 8, 64, 240]", (h, w), strides=(n, n)) for h, w, n in [(16, 16, 4), (16, 17, 1)]},
    "window by 5": _window("float32[1, 3, 32, 64]", (6, 6), strides=(5, 5)),
    **{f"window of {n} columns": _window(f"float32[1, 3, 9, {n + 2}]", (3, 3)) for n in (3, 4, 5)},
    "window 5x5 of few columns": _window("float32[3, 8, 64, 12]", (5, 5), "avg", strides=(2, 2)),
    "window 7x7 by 3": _window("float32[3, 8, 16, 240]", (7, 7), "avg", strides=(3, 3)),
    **{f"window of lines of {n}": _window(f"float32[1, 3, 6, {n}]", (4, 3)) for n in (8191, 8192)},
    **{f"window of {n} elements": _window(f"float32[1, 4, 65, {n}]", (2, 2)) for n in (64, 65)},
    **{f"window beside channels of {n} elements": _window(f"float32[1, 65, {n}, 4]", (2, 2), layout="NHWC") for n in (64, 65)},
    **{f"window {n}x{n}": _window("float32[1, 3, 32, 40]", (n, n)) for n in (8, 9)},
    **{f"window {n}x{n} beside channels": _window("float32[1, 32, 40, 8]", (n, n), layout="NHWC") for n in (8, 9)},
    "window of bytes, dilated": _slid("1, 4, 8, 8", "4, 1, 5, 3", "int8", ("v4",), dilation=(2, 1), padding=(1, 3, 0, 1), groups=4),
    "window of doubles": _window("float64[1, 3, 9, 9]", (3, 3)),
    "window of symbols beside channels": _window("float32[1, h, w, 16]", (3, 3), layout="NHWC", **_PAD),
    "window of symbols beside channels, no padding": _window("float32[1, h, w, 16]", (3, 3), layout="NHWC"),
    "window of halves, strided": _window("float16[1, h, 40, 8]", (1, 3), strides=(2, 3), padding=(0, 1, 1, 0), layout="NHWC"),
    "window of halves along columns": _window(
        "float16[n, 8, h, 9]", (1, 5), "avg", targets=("v4",), strides=(1, 3), padding=(0, 1, 0, 1), count_include_pad=False
    ),
    "window of symbols by 3": _window("float32[1, 8, 9, w]", (3, 5), targets=("v4",), strides=(1, 3), **_PAD),
    **{
        f"window 1x{n} of symbols": _window("float32[1, 8, 9, w]", (1, n), targets=("v4",), strides=(1, 2), padding=(0, n - 1, 0, n - 1))
        for n in (4, 5, 32, 33)
    },
    "window 1x33, strided": _window("float32[1, 8, 9, 16]", (1, 33), "avg", targets=("v4",), strides=(1, 2), padding=(0, 32, 0, 32)),
    "window 1x32 of lines of a call": _window("float32[1, 8, h, 16]", (1, 32), "avg", strides=(1, 2), padding=(0, 31, 0, 31)),
    # Columns of bytes: of one row of taps or more, of as many taps as are unrolled; of vectors of channels, and of signed bytes.
    **{
        f"bytes, depthwise {h}x{w} of {c} {dtype}": _unary(
            "nn.conv2d",
            f"{dtype}[1, 12, 12, {c}]",
            f"const int8[{h}, {w}, 1, {c}]",
            targets=("amx",),
            out_dtype="int32",
            groups=c,
            padding=(1, 1, 1, 1),
            **_LAST,
        )
        for h, w, c, dtype in [
            *((h, w, 32, "uint8") for h, w in [(1, 3), (2, 3), (3, 3), (4, 3), (5, 3)]),
            *((h, w, 16, "uint8") for h, w in [(7, 7), (8, 6), (10, 5)]),
            (3, 3, 24, "uint8"),
            (3, 3, 32, "int8"),
        ]
    },
    # As many queries and keys as lanes, and as much work as is worth threads.
    "attention 64 x 128 x 8": Program(["float32[1, 64, 8]", "float32[1, 128, 8]", "float32[1, 128, 8]"], _attention, targets=SMALL),
    **{
        f"attention of {n} keys with a mask": Program(
            ["float32[1, 2, 24, 8]", f"float32[1, 2, {n}, 8]", f"float32[1, 2, {n}, 8]", f"float32[24, {n}]"],
            partial(b, "nn.attention", scale=0.5, mask_value=-1e4),
            targets=("v3",),
        )
        for n in (7, 8, 9)
    },
    "attention of 3 keys": Program(["float32[1, n, 64]", "float32[1, 3, 64]", "float32[1, 3, 64]"], _attention, targets=("amx",)),
    **{
        f"attention {rows} x {keys} x {depth}, {width}, {dtype}": Program(
            [f"{dtype}[2, {rows}, {depth}]", f"{dtype}[2, {keys}, {depth}]", f"{dtype}[2, {width}, {keys}]"],
            lambda q, k, v: b("nn.batch_matmul", b("nn.softmax", b("nn.batch_matmul", q, k)), v),
            targets=("amx",),
        )
        for rows, keys, depth, width, dtype in [
            *(("n", 40, 32, 32, "float32"), (24, "m", 32, 32, "float32"), ("n", "m", 32, 32, "bfloat16")),
            *((24, 48, 32, 24, "float32"), (24, 48, 48, 32, "float32"), (32, 32, 32, 32, "bfloat16")),
        ]
    },
    "window of symbols, computed": Program(
        ["float32[1, 8, h, w]"], lambda x: b("nn.max_pool2d", b("tanh", x), pool_size=(3, 3), **_PAD), targets=("v4",)
    ),
    # Rows of as many elements as are a block of lanes.
    **{f"sum of rows of {n}": _unary("sum", f"float32[n, 5, {n}]", axis=(1,), targets=SMALL) for n in (8192, 8193)},
}
"""By name, programs at the limits of the strategies of CPUs, of the last sizes that one takes and the first that it does not: compiled to
loops, no further."""
