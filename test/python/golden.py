"""What the compiler makes of programs, recorded: the IR of each stage as a digest, and the schedule of each kernel, target by target.

    .venv/bin/python test/python/golden.py            # what differs from the record
    .venv/bin/python test/python/golden.py --update   # writes the record anew: its diff shows which kernels a change reaches
    .venv/bin/python test/python/golden.py --show calls nn_conv2d   # the texts of a digest, to compare with those of another revision

Results of programs are the business of other tests. This record holds what results cannot show: a schedule that is chosen for other sizes,
a loop that is no longer parallel, a plan that takes more memory.

Beside programs it holds answers of parts of the compiler to random questions, right and wrong ones (see ANSWERS).
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import late_models
import lit_outputs
import random_calls
import random_imports
import random_rules  # noqa: F401 (its rules draw)
import random_sizes
import relay_programs
from deep_models import CASES
from oracle import values
from random_drawing import RULES, draw, draw_one
from random_graphs import build as built
from schedules.kernels import KERNELS as SMALL_KERNELS
from schedules.te_kernels import KERNELS
from schedules.test_random_schedules import Steps
from schedules.walks import walk
from support import Const
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc.bench import tensor_core_product
from relayc.bench.written_kernels import rowwise, softmax
from relayc.dialects.functions import symbols_of
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.dialects.relay import build as b
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.instruments import PassInfo, PassInstrument, ir_text
from relayc.pipelines.context.passes import PASSES, load_passes
from relayc.pipelines.context.target import Target
from relayc.pipelines.llvm.packed import add_packed_entries
from relayc.pipelines.program.entries import packed_entries
from relayc.pipelines.program.packed_entry import PackedEntry
from relayc.pipelines.program.tir import TirModule
from relayc.pipelines.targets.cpu import target as cpu
from relayc.pipelines.targets.cuda.device.llvm_text import kernel_texts
from relayc.pipelines.targets.cuda.host import add_driver_calls, kernel_names, take_kernels, use_driver
from relayc.pipelines.tir.schedule.written_strategy import ScheduleFunction, schedule_by
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.symbolic import FAR, Range
from relayc.tir import Schedule, ScheduleError, from_source, script

load_passes()
# Errors list what is registered, whatever was compiled before.
for module in (*find_backend("cpu").modules, *find_backend("cuda").modules, "relayc.pipelines.targets.cuda.emulate"):
    importlib.import_module(module)

MODELS = Path(__file__).parents[1] / "models"
FOLDER = Path(__file__).parents[1] / "golden"
STAGES = {"GraphPipeline": "relay", "LowerToTe": "te", "TeToTir": "tir", "TirToLlvm": "llvm"}
"""The pass after which each stage is complete."""
TARGETS: dict[str, tuple[str, str]] = {
    "v3": ("cpu -mcpu=x86-64-v3 -num-threads=2", "f32"),
    "v4": ("cpu -mcpu=x86-64-v4 -num-threads=2", "f32"),
    "amx": ("cpu -mcpu=sapphirerapids -num-threads=2", "bf16"),
    "ampere": ("cuda -arch=sm_80", "f32"),
    "hopper": ("cuda -arch=sm_90a", "f16"),
    # What a small operator needs is more than its caches hold.
    "small": ("cpu -mcpu=x86-64 -num-threads=3 -l1-bytes=4096 -l2-bytes=32768 -l3-bytes=262144", "f32"),
    "emulated": ("cuda -arch=sm_80 -emulate=true", "f32"),
}
"""By name, a target that no machine has a say in, and a precision."""
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
NETWORKS: dict[str, Sequence[str]] = {
    **{path.stem: ("v4",) for path in sorted(MODELS.glob("*.onnx"))},
    **{f"dynamic/{path.stem}": ("v4",) for path in sorted((MODELS / "dynamic").glob("*.onnx"))},
    **{name: WHOLE for name in ("resnet18", "gpt2", "dynamic/bert")},
}
"""By name of the file, the targets that models are compiled for."""
_PRODUCTS = {
    **dict.fromkeys(("nn_dense", "nn_matmul", "nn_batch_matmul", "nn_conv2d", "nn_attention"), 40),
    **dict.fromkeys(("nn_conv1d", "nn_conv3d", "nn_conv2d_transpose"), 12),
}
EMULATED = 1
"""The number of the drawing of each operator that an emulated GPU gets."""
_COUNTS = {
    **{op: 3 for rule in RULES for op in rule.ops},
    **dict.fromkeys(("sum", "max", "argmax", "nn_softmax", "nn_layer_norm", "sort", "topk", "cumsum", "transpose", "concatenate"), 9),
    **dict.fromkeys(("nn_dense_blocks", "nn_max_pool2d", "nn_avg_pool2d"), 12),
    **_PRODUCTS,
}
"""How many programs are drawn of each operator: more of those with more to decide."""


def _targets_of(op: str, number: int) -> set[str]:
    """One target, in turn; AMX for products, which have plans of their own there; and an emulated GPU once."""
    turns = (*WHOLE, "small")
    more = [*(["amx"] if op in _PRODUCTS else []), *(["emulated"] if number == EMULATED else [])]
    return {turns[(zlib.crc32(op.encode()) + number) % len(turns)], *more}


DRAWN: dict[str, tuple[set[str], str, int]] = {
    f"{op} {number}": (_targets_of(op, number), op, number) for op, count in _COUNTS.items() for number in range(count)
}
"""By name, the targets, the operator and the number of the drawing. Their sizes are those around limits of schedules; what depends on them
is decided before LLVM's stage, which only those of the number 0 and those of an emulated GPU get to."""
MIXED = {f"mixed {number}": number for number in range(60)}
"""By name, the number of a drawing of several operators, branches, loops and calls, which are compiled in several ways (see `_way`)."""
WALKS = {f"{name}, walk {seed}": (name, seed) for name in KERNELS for seed in range(100, 125)}
ONNX: dict[str, Callable[[], Any]] = {
    **{f"{name}, deep": partial(CASES[name], 3) for name in CASES},
    **{f"{name}, late": partial(late_models.model, name) for name in late_models.NAMES},
}
"""By name, a model of a few operators, branches and loops whose sizes are computed, mostly."""
_PRODUCT = partial(tensor_core_product.product_of_f16, 200, 136, 104)
WRITTEN: dict[str, tuple[set[str], Callable[[], IRModule], ScheduleFunction | None]] = {
    "softmax by rows": ({"v4"}, lambda: softmax(5, 128), rowwise("total", "power", "most")),
    "product by warps": ({"ampere", "emulated"}, _PRODUCT, tensor_core_product.on_tensor_cores),
    "product by groups of warps": ({"hopper"}, _PRODUCT, tensor_core_product.on_warp_groups),
    **{f"{name}, in te": ({"v4", "ampere", "emulated"}, lambda make=make: make().mod, None) for name, make in KERNELS.items()},
    **{f"{name}, of te": ({"small", "hopper"}, lambda make=make: make().mod, None) for name, make in SMALL_KERNELS.items()},
}
"""By name, the targets, what makes a kernel of te, and a schedule for it, or none."""
STEPS = {f"{name}, steps {seed}": (name, seed) for name in SMALL_KERNELS for seed in range(100, 112)}
"""By name, a kernel and the seed of primitives that schedule it."""
SPACES = ("v4", "amx", "hopper")
"""Targets of which the record has the tunable numbers of PROGRAMS, by all strategies that would take them."""


ANSWERS: dict[str, tuple[Callable[[], Sequence[str]], Callable[[str], Iterable[str]]]] = {
    "calls": (random_calls.operators, random_calls.answers),
    "lit": (lit_outputs.files, lit_outputs.outputs),
    "imports": (random_imports.operators, random_imports.imports),
    "language": (relay_programs.names, lambda name: list(relay_programs.answers(name))),
    "sizes": (lambda: [f"seed {i}" for i in range(40)], lambda name: random_sizes.answers(int(name.removeprefix("seed ")))),
}
"""By the name of a file of the record, the names of its lines, and what gives the texts of which a line has the number and the digest: what
type relations of operators say of random calls, what the ONNX frontend makes of mutants of models, what is known of random symbolic sizes,
what inference and lowering make of Relay programs and of mutants of them, and passes of the programs, and all that relayc-opt prints for
the files of test/lit."""


class _Stages(PassInstrument):
    """Keeps the text of each stage, of each kernel in tir, and of packed entries; and the tunable numbers for a target, if one is given."""

    def __init__(self, kind: str, target: str | None) -> None:
        self.lines: list[str] = []
        self._kind, self._target = kind, target
        self._entries: Mapping[str, PackedEntry] = {}

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name not in STAGES:
            return
        self.lines.append(f"  {STAGES[info.name]} {_digest(ir_text(mod.module.operation))}")
        if info.name == "TirToLlvm":
            self.lines += _code_of_device(mod.module) if self._kind == "cuda" else []
            add_packed_entries(mod.module, self._entries, self._kind)
            self.lines.append(f"  entries {_digest(ir_text(mod.module.operation))}")
        if info.name == "LowerToTe" and self._target:
            for space in relayc.tuning_space(mod.module.operation, self._target, all_strategies=True):
                self.lines.append(f"    {space.kernel} {_digest(str((space.chosen, space.values)))} {space.strategy}: {space.size} values")
        if info.name == "TeToTir":
            assert isinstance(mod, TirModule)
            self._entries = packed_entries(mod, {name: (known.low, known.high) for name, known in mod.ranges.items()})
            functions = symbols_of(mod.module)
            for kernel in mod.kernels:
                self.lines.append(f"    {kernel.name} {_digest(ir_text(functions[kernel.name].operation))} {kernel.schedule}")


def _code_of_device(module: ir.Module) -> list[str]:
    """The kernels of a program for GPUs as LLVM's text; leaves the code of the host, lowered."""
    kernels = kernel_names(module)
    texts = [text.text for text in kernel_texts(module)] if kernels else []
    take_kernels(module)
    use_driver(module, kernels)
    find_backend("cpu").lower(module, Target("cpu", mcpu="x86-64-v3", num_threads=2))
    add_driver_calls(module, kernels)
    return [f"  device {_digest(chr(10).join(texts))}"]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _way(number: int) -> tuple[str, int, list[str]]:
    """The target, the level and the passes left out of a mixed program."""
    left_out = [name for name, p in PASSES.items() if p.info.opt_level >= 1 and zlib.crc32(f"{name} {number}".encode()) % 12 == 0]
    return list(TARGETS)[number % len(TARGETS)], (3, 0, 2, 3, 4, 1, 3)[number // 7 % 7], left_out if number % 3 == 0 else []


def cases() -> Iterator[tuple[str, str]]:
    """(target, program) by name, and (file, line) of the answers."""
    for target in TARGETS:
        yield from ((target, name) for name, program in {**PROGRAMS, **LIMITS}.items() if target in program.targets)
        yield from ((target, name) for name, targets in NETWORKS.items() if target in targets)
        yield from ((target, name) for name, number in MIXED.items() if target == _way(number)[0])
        yield from ((target, name) for name in ONNX if target == "v3")
        yield from ((target, name) for name, written in WRITTEN.items() if target in written[0])
        yield from ((target, name) for name in WALKS if target == "v4")
        yield from ((target, name) for name in STEPS if target in ("v4", "ampere"))
        yield from ((target, name) for name, drawn in DRAWN.items() if target in drawn[0])
    for file, (names, _) in ANSWERS.items():
        yield from ((file, name) for name in names())


def _scheduled(target: str, mod: IRModule, steps: Callable[[Schedule], Sequence[str]]) -> list[str]:
    """A kernel as random primitives schedule it: the blocks, their script and trace, what was refused, and the loops, or why there are
    none."""
    lines = list[str]()

    def schedule(s: Schedule) -> None:
        refused = steps(s)
        lines.extend([f"  blocks {_digest(str(s.mod))}", f"  refused {_digest(str(refused))}", f"  trace {_digest(str(s.trace))}"])
        try:
            text = s.script()
            lines.append(f"  script {_digest(text)} {_digest(script(from_source(text)))}")
        except ScheduleError as error:
            lines.append(f"  {error}")

    (function,) = mod.module.body.operations
    with mod.context, mod.ranges, ir.Location.unknown():
        loops = ir.Module.create()
        try:
            with ir.InsertionPoint(loops.body):
                schedule_by("walk", schedule, function, Target(target), Tuning())
            lines.append(f"  tir {_digest(ir_text(loops.operation))}")
        except ScheduleError as error:
            lines.append(f"  {error}")
    return lines


def _stepped(schedule: Schedule, seed: int, count: int = 16) -> list[str]:
    """Applies random primitives of another kind than those of walks; gives the words of those that were refused."""
    steps, refused = Steps(schedule, seed), list[str]()
    for _ in range(count):
        try:
            steps.any()
        except ScheduleError as error:
            refused.append(str(error))
    return refused


def _any_machine() -> dict[str, Any]:
    """The attributes of the CPU that programs are compiled for where nothing says which: no machine has a say in the record."""
    return {**cpu._level("x86-64-v4"), "num_threads": 2}


def made(target: str, name: str) -> list[str]:
    """What the compiler makes of a program, or answers, as lines of the record."""
    with patch.object(cpu, "_native", _any_machine):
        return _made(target, name)


def _made(target: str, name: str) -> list[str]:
    if target in ANSWERS:
        texts = list(ANSWERS[target][1](name))
        return [name, f"  {len(texts)} {_digest(chr(10).join(texts))}"]
    text, precision = TARGETS[target]
    if name in WALKS:
        kernel, seed = WALKS[name]
        return [name, *_scheduled(text, KERNELS[kernel]().mod, partial(walk, seed=seed))]
    if name in STEPS:
        kernel, seed = STEPS[name]
        return [name, *_scheduled(text, SMALL_KERNELS[kernel]().mod, partial(_stepped, seed=seed))]
    is_whole = name not in LIMITS and (name not in DRAWN or target == "emulated" or DRAWN[name][2] == 0)
    level, left_out = _way(MIXED[name])[1:] if name in MIXED else (None, [])
    schedules = {}
    if name in WRITTEN:
        model: Any = WRITTEN[name][1]()
        schedules = {"*": WRITTEN[name][2]} if WRITTEN[name][2] else {}
    elif name in DRAWN:
        model = built(draw_one(*DRAWN[name][1:]))
    elif name in ONNX:
        model = ONNX[name]()
    elif name in MIXED:
        model = built(draw(0, MIXED[name]))
    else:
        program = PROGRAMS.get(name) or LIMITS.get(name)
        model = program.module() if program else str(MODELS / f"{name}.onnx")
    kind = "cuda" if text.startswith("cuda") and target != "emulated" else "cpu"
    stages = _Stages(kind, text if name in PROGRAMS and target in SPACES else None)
    with relayc.PassContext(instruments=[stages], disabled_pass=left_out):
        relayc.compile(
            model,
            opt_level=level,
            target=text,
            precision=precision,
            stop_after="llvm" if is_whole else "tir",
            schedules=schedules,
            cache=False,
        )
    return [name, *stages.lines]


@cache
def recorded(target: str) -> dict[str, list[str]]:
    """The lines of the record of a target, by program."""
    found: dict[str, list[str]] = {}
    path = FOLDER / f"{target}.txt"
    for line in path.read_text().splitlines() if path.exists() else ():
        if not line.startswith(" "):
            lines = found[line] = []
        lines.append(line)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    files = (*TARGETS, *ANSWERS)
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"files of the record, of {', '.join(files)} (default: all)")
    parser.add_argument("--update", action="store_true", help="write the record anew")
    parser.add_argument("--show", nargs=2, metavar=("FILE", "NAME"), help="print the texts that a line is a digest of")
    options = parser.parse_args()
    if options.show:
        print(*ANSWERS[options.show[0]][1](options.show[1]), sep="\n")
        return 0
    differ = 0
    for target in options.files or files:
        known, found = recorded(target), {name: made(target, name) for of, name in cases() if of == target}
        for name in {**known, **found}:
            if known.get(name) != found.get(name):
                differ += 1
                print(target, *found.get(name, [f"{name}: no such program"]), sep="\n  ")
        if options.update:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / f"{target}.txt").write_text("\n".join(line for lines in found.values() for line in lines) + "\n")
    print(f"{differ} programs differ from the record")
    return 0 if options.update else int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
