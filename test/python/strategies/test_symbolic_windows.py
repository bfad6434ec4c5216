"""Numerics of windowed kernels that are compiled once for all sizes: depthwise convolutions, poolings and Winograd transforms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from accuracy import check_sums
from oracle import values
from symbolic_kernels import SymbolicKernel

import relayc
from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay import IRModule, TensorType, build
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.winograd import DATA, RESULT, TILE
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile_kernel import compile_kernel
from relayc.symbolic import ceil_div, parse

Shape = Sequence[int | str]

SIZES = [
    (0, 5, 5),
    (1, 1, 1),
    (2, 2, 3),
    (1, 4, 2),
    (1, 3, 4),
    (1, 6, 5),
    (2, 7, 7),
    (1, 5, 11),
    (1, 14, 13),
    (3, 3, 17),
    (1, 9, 40),
    (1, 31, 37),
    (1, 3, 63),
    (1, 2, 127),
]
"""Batch, height and width: empty, shorter than a tile and than a vector, primes, longer than a task."""


def program(body: Callable[..., ir.Value], shapes: Sequence[Shape], constants: Mapping[int, np.ndarray] | None = None) -> IRModule:
    """A module whose main applies `body` to inputs of some shapes; those with a number in `constants` are constants."""
    constants = constants or {}
    with make_context(), ir.Location.name("test"):
        mod = IRModule(ir.Module.create())
        types = [TensorType(tuple(parse(d) if isinstance(d, str) else d for d in s), "float32").to_mlir() for s in shapes]
        inputs = [t for i, t in enumerate(types) if i not in constants]
        with ir.InsertionPoint(mod.module.body):
            main = func.FuncOp("main", (inputs, []))
        block = main.add_entry_block()
        with ir.InsertionPoint(block):
            arguments = iter(block.arguments)
            result = body(*[mod.constant(constants[i]) if i in constants else next(arguments) for i in range(len(shapes))])
            func.ReturnOp([result])
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [result.type]))
    mod.verify()
    return mod


@dataclass(frozen=True)
class Case:
    """A depthwise convolution or a pooling of [b, channels, h, w] in a layout; `pads` are top, left, bottom, right."""

    op: str
    layout: str
    channels: int
    taps: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    dilation: tuple[int, int] = (1, 1)
    fixed: tuple[tuple[str, int], ...] = ()

    def text(self) -> str:
        b, h, w = (dict(self.fixed).get(name, name) for name in "bhw")
        shape: Shape = (b, self.channels, h, w)
        if self.layout == "NHWC":
            shape = (b, h, w, self.channels)
        elif self.layout != "NCHW":
            shape = (b, self.channels // self.block, h, w, self.block)
        common = {"strides": self.strides, "padding": self.pads, "dilation": self.dilation}

        def body(x: ir.Value) -> ir.Value:
            if self.op == "conv":
                kind = ir.RankedTensorType.get([self.channels, 1, *self.taps], ir.F32Type.get())
                weight = Constant(value=ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(ir.F32Type.get(), 0.0))).result
                return build("nn.relu", build("nn.conv2d", x, weight, groups=self.channels, data_layout=self.layout, **common))
            more = {"count_include_pad": False} if self.op == "avg" else {}
            return build(f"nn.{self.op}_pool2d", x, pool_size=self.taps, layout=self.layout, **common, **more)

        return str(program(body, [shape]).module)

    @property
    def block(self) -> int:
        return int(self.layout[4:-1])

    def ordered(self, x: np.ndarray) -> np.ndarray:
        """An NCHW array in the layout."""
        if self.layout in ("NCHW", "NHWC"):
            return x if self.layout == "NCHW" else x.transpose(0, 2, 3, 1)
        n, c, h, w = x.shape
        return x.reshape(n, c // self.block, self.block, h, w).transpose(0, 1, 3, 4, 2)

    def fits(self, h: int, w: int) -> bool:
        """Whether a window fits, and every one has an element of the data."""
        spans = [(k - 1) * d + 1 for k, d in zip(self.taps, self.dilation, strict=True)]
        pads = (self.pads[:2], self.pads[2:])
        padded = [n + a + b for n, a, b in zip((h, w), *pads, strict=True)]
        return all(p >= s for p, s in zip(padded, spans, strict=True))

    def expected(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The result, which for absolute values is the magnitude of its sums."""
        top, left, bottom, right = self.pads
        outside = {"conv": 0.0, "max": -np.inf, "avg": np.nan}[self.op]
        padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (top, bottom), (left, right)], constant_values=outside)
        reach = [(k - 1) * d + 1 for k, d in zip(self.taps, self.dilation, strict=True)]
        (sy, sx), (dy, dx) = self.strides, self.dilation
        found = np.lib.stride_tricks.sliding_window_view(padded, reach, (2, 3))[:, :, ::sy, ::sx, ::dy, ::dx]
        if self.op == "conv":
            return np.maximum(np.einsum("nchwyx,cyx->nchw", found, weight[:, 0]), 0)
        return found.max((4, 5)) if self.op == "max" else np.nanmean(found, (4, 5))


def check(case: Case, target: Target | None = None, strategy: str | None = None, sizes: Sequence[tuple[int, int, int]] = SIZES) -> None:
    """One kernel at all sizes."""
    with PassContext(disabled_pass=["AlterOpLayout"]):
        kernel = SymbolicKernel(case.text(), target or Target("cpu", num_threads=2))
    assert strategy is None or kernel.schedule.split()[0] == strategy, kernel.schedule
    weight = values((case.channels, 1, *case.taps), "float32", seed=1)
    for size in sizes:
        at = dict(zip("bhw", size, strict=True)) | dict(case.fixed)
        if not case.fits(at["h"], at["w"]):
            continue
        x = values((at["b"], case.channels, at["h"], at["w"]), "float32")
        arrays = [case.ordered(x), weight][: len(kernel.kernel.args)]
        expected = case.ordered(case.expected(x, weight))
        magnitude = 0 if case.op == "max" else case.ordered(case.expected(np.abs(x), np.abs(weight)))
        check_sums(kernel(at, arrays)[0], expected, magnitude, case.taps[0] * case.taps[1], f"{case} at {at}")


LAYOUTS = [("NCHW16c", 32), ("NCHW8c", 8), ("NHWC", 40), ("NHWC", 19)]


@pytest.mark.parametrize("layout, channels", LAYOUTS)
@pytest.mark.parametrize("op, stride", [("conv", 2), ("max", 2)])
def test_windows_beside_channels(layout: str, channels: int, op: str, stride: int) -> None:
    check(Case(op, layout, channels, strides=(stride, stride)), strategy="window_channels")


@pytest.mark.parametrize(
    "case",
    [
        Case("conv", "NCHW8c", 8, (5, 5), pads=(2, 2, 2, 2)),
        Case("conv", "NCHW8c", 8, (5, 5), (3, 3), (2, 2, 2, 2)),
        Case("conv", "NCHW8c", 8, (3, 7), (1, 2), (0, 5, 0, 7)),
        Case("conv", "NHWC", 8, (3, 2), (1, 3), (5, 5, 5, 5), (2, 2)),
        Case("max", "NCHW8c", 8, (2, 2), (2, 2), (0, 0, 0, 0)),
        Case("avg", "NCHW8c", 8, (3, 3), (2, 2), (0, 1, 2, 1)),
        Case("conv", "NCHW8c", 8, (1, 3), pads=(0, 1, 0, 1)),
        Case("conv", "NHWC", 8, pads=(1, 12, 1, 12), taps=(3, 3)),
        Case("conv", "NHWC", 8, fixed=(("w", 21),)),
        Case("conv", "NHWC", 8, fixed=(("h", 6),)),
        Case("max", "NHWC", 8, fixed=(("b", 1),), strides=(2, 2)),
    ],
    ids=str,
)
def test_asymmetric_windows_beside_channels(case: Case) -> None:
    check(case, strategy="window_channels")


@pytest.mark.parametrize("op, stride, taps", [("conv", 2, 3), ("conv", 1, 5), ("max", 2, 5), ("max", 3, 3), ("avg", 1, 5)])
def test_windows_along_columns(op: str, stride: int, taps: int) -> None:
    target = Target("cpu", num_threads=2)
    masked = target.mask_bits and stride <= 2
    check(Case(op, "NCHW", 3, (taps, taps), (stride, stride), (taps // 2,) * 4), target, "window_columns" if masked else "loops")


@pytest.mark.parametrize(
    "case",
    [
        Case("conv", "NCHW", 2, (1, 5), pads=(0, 2, 0, 2)),
        Case("conv", "NCHW", 2, (1, 3), pads=(1, 1, 1, 1)),
        Case("conv", "NCHW", 2, (4, 3), (2, 1), (0, 1, 3, 0)),
        Case("conv", "NCHW", 2, (3, 3), (1, 2), (0, 5, 0, 7)),
        Case("conv", "NCHW", 2, (2, 3), pads=(1, 3, 2, 0), dilation=(2, 3)),
        Case("max", "NCHW", 2, (3, 3), (2, 2), (0, 0, 0, 0)),
        Case("conv", "NCHW", 2, (7, 7), pads=(3, 3, 3, 3)),
        Case("conv", "NCHW", 2, fixed=(("w", 21),)),
        Case("conv", "NCHW", 2, fixed=(("h", 6),), strides=(2, 2)),
    ],
    ids=str,
)
def test_asymmetric_windows_along_columns(case: Case) -> None:
    check(case)


def test_rows_of_padding_beside_single_rows_of_taps() -> None:
    for layout in ("NCHW8c", "NHWC"):
        check(Case("conv", layout, 8, (1, 3), pads=(1, 1, 1, 1)))


@pytest.mark.parametrize("size", [(7, 9), (14, 40)])
def test_windows_along_columns_with_any_batch(size: tuple[int, int]) -> None:
    check(Case("conv", "NCHW", 3, fixed=(("h", size[0]), ("w", size[1]))), strategy="window_columns")


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_vectors_of_every_width(mcpu: str) -> None:
    target = Target("cpu", mcpu=mcpu, num_threads=2)
    if not target.is_host:
        pytest.skip(f"this machine lacks features of {mcpu}")
    for layout, channels in [("NCHW16c", 32), ("NHWC", 19), ("NCHW", 3)]:
        check(Case("conv", layout, channels), target)


# ---- Winograd


def transform(text: str, target: Target) -> SymbolicKernel:
    kernel = SymbolicKernel(text, target)
    assert kernel.schedule.split()[0] == "tile_transform", kernel.schedule
    return kernel


def tiles_of(x: np.ndarray, padding: int) -> np.ndarray:
    """[n, c, tiles, tiles, 6, 6] of an array [n, c, h, w]: what each tile reads."""
    counts = [ceil_div(size + 2 * padding - 2, TILE) for size in x.shape[2:]]
    high = [count * TILE + 2 - size - padding for count, size in zip(counts, x.shape[2:], strict=True)]
    padded = np.pad(x, [(0, 0), (0, 0), *((padding, h) for h in high)])
    return np.lib.stride_tricks.sliding_window_view(padded, (6, 6), (2, 3))[:, :, ::TILE, ::TILE]


@pytest.mark.parametrize("mcpu", ["native", "x86-64-v3"])
@pytest.mark.parametrize("padding", [0, 1])
def test_winograd_input_transform(mcpu: str, padding: int) -> None:
    target = Target("cpu", mcpu=mcpu, num_threads=2)
    body = lambda x: build("nn.winograd_input_transform", x, layout="NCHW16c", padding=(padding,) * 4)  # noqa: E731
    kernel = transform(str(program(body, [("b", 2, "h", "w", 16)]).module), target)
    for b, h, w in [*SIZES, (1, 8, 16), (1, 4, 4)]:
        if min(h, w) + 2 * padding < 3:
            continue
        x = values((b, 32, h, w), "float32")
        blocked = x.reshape(b, 2, 16, h, w).transpose(0, 1, 3, 4, 2)
        arrays = DATA, DATA, tiles_of(x, padding).astype(np.float64)
        tiles = [np.einsum("pi,qj,nctuij->npqctu", *a) for a in (arrays, [*map(np.abs, arrays)])]
        shape = b, 72, 16, *tiles[0].shape[-2:]
        expected, magnitude = (t.reshape(shape).transpose(0, 1, 3, 4, 2) for t in tiles)
        check_sums(kernel({"b": b, "h": h, "w": w}, [blocked])[0], expected, magnitude, 36)


@pytest.mark.parametrize("mcpu", ["native", "x86-64-v3"])
def test_winograd_output_transform(mcpu: str) -> None:
    target = Target("cpu", mcpu=mcpu, num_threads=2)
    height, width = parse("h"), parse("w")
    body = lambda x: build("nn.relu", build("nn.winograd_output_transform", x, height=height, width=width, layout="NCHW16c"))  # noqa: E731
    kernel = transform(str(program(body, [("b", 72, "(h + 3)//4", "(w + 3)//4", 16)]).module), target)
    for b, h, w in [*SIZES, (1, 8, 16), (1, 4, 4)]:
        rows, columns = ceil_div(h, TILE), ceil_div(w, TILE)
        x = values((b, 72, rows, columns, 16), "float32")
        arrays = RESULT, RESULT, x.reshape(b, 6, 6, 2, rows, columns, 16).astype(np.float64)
        tiles = [np.einsum("pi,qj,nijctuk->nctpuqk", *a) for a in (arrays, [*map(np.abs, arrays)])]
        expected, magnitude = (t.reshape(b, 2, rows * TILE, columns * TILE, 16)[:, :, :h, :w] for t in tiles)
        check_sums(kernel({"b": b, "h": h, "w": w}, [x])[0], np.maximum(expected, 0), magnitude, 36)


def test_winograd_convolutions_of_any_size() -> None:
    """A whole program with Winograd against the same one without, which is compiled for each size."""
    rng = np.random.default_rng(3)
    weights = [
        (rng.standard_normal((o, i, k, k)) / np.sqrt(i * k * k)).astype(np.float32) for o, i, k in [(32, 8, 1), (32, 32, 3), (8, 32, 1)]
    ]

    def body(x: ir.Value, *w: ir.Value) -> ir.Value:
        y = build("nn.conv2d", x, w[0])
        return build("nn.conv2d", build("nn.relu", build("add", build("nn.conv2d", y, w[1], padding=(1,) * 4), y)), w[2])

    def module(shape: Shape, winograd: bool) -> relayc.Module:
        mod = program(body, [shape, *(w.shape for w in weights)], dict(enumerate(weights, 1)))
        options = {"required_pass": ["Winograd", "AlterOpLayout"]} if winograd else {"disabled_pass": ["Winograd"]}
        with PassContext(3, **options):
            return relayc.compile(mod, Target("cpu", num_threads=2), cache=False)

    fast = module(("b", 8, "h", "w"), True)
    assert "winograd" in " ".join(fast.function_names())
    for b, h, w in [(0, 5, 5), (1, 1, 1), (1, 4, 4), (2, 7, 11), (1, 17, 23), (3, 16, 32)]:
        x = rng.standard_normal((b, 8, h, w)).astype(np.float32)
        expected = module((b, 8, h, w), False)["main"](x)
        # F(4x4, 3x3) in f32 errs by some units of 1e-6 of the largest output.
        np.testing.assert_allclose(fast["main"](x), expected, rtol=0, atol=2e-5 * max(1.0, np.abs(expected).max(initial=0)))


def test_sizes_of_windows_are_expressions_of_the_input() -> None:
    """The windows of windows: their sizes are nested divisions."""

    def body(x: ir.Value) -> ir.Value:
        pooled = build("nn.max_pool2d", x, pool_size=(3, 3), strides=(2, 2), padding=(1,) * 4, layout="NCHW16c")
        return build("nn.avg_pool2d", pooled, pool_size=(3, 3), strides=(2, 2), padding=(1,) * 4, layout="NCHW16c")

    def compiled(shape: Shape) -> relayc.Module:
        return relayc.compile(program(body, [shape]), Target("cpu", num_threads=2), cache=False)

    symbolic = compiled(("b", 1, "h", "w", 16))
    for b, h, w in SIZES:
        x = values((b, 1, h, w, 16), "float32")
        np.testing.assert_allclose(symbolic["main"](x), compiled((b, 1, h, w, 16))["main"](x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("dtype", "strategy"), [("int8", "loops"), ("float16", "loops"), ("float32", "window_columns")])
def test_elements_that_the_target_cannot_mask_go_along_loops(dtype: str, strategy: str) -> None:
    """AVX2 masks elements of 32 bits and more."""
    element = {"int8": "i8", "float16": "f16", "float32": "f32"}[dtype]
    text = Case("max", "NCHW", 2).text().replace("xf32", f"x{element}")
    module = relayc.compile(IRModule.parse(text), Target("cpu", mcpu="x86-64-v3"), stop_after="tir", cache=False)
    assert [kernel.schedule.split()[0] for kernel in module.kernels] == [strategy]


NEGATED = """func.func @k(%x: tensor<1x2x6x?xf32, ["w"]>, %w: index {relay.symbol = "w"}) -> tensor<1x2x6x?xf32, ["w"]> {
  %low = arith.constant 0xFF800000 : f32
  %empty = tensor.empty(%w) : tensor<1x2x6x?xf32, ["w"]>
  %negated = linalg.generic {
      indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]
  } ins(%x : tensor<1x2x6x?xf32, ["w"]>) outs(%empty : tensor<1x2x6x?xf32, ["w"]>) {
  ^bb0(%e: f32, %_: f32):
    %n = arith.negf %e : f32
    linalg.yield %n : f32
  } -> tensor<1x2x6x?xf32, ["w"]>
  %padded = tensor.pad %negated low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %v: index):
    tensor.yield %low : f32
  } : tensor<1x2x6x?xf32, ["w"]> to tensor<1x2x8x?xf32, ["w + 2"]>
  %taps = tensor.empty() : tensor<3x3xf32>
  %start = linalg.fill ins(%low : f32) outs(%empty : tensor<1x2x6x?xf32, ["w"]>) -> tensor<1x2x6x?xf32, ["w"]>
  %0 = linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %taps : tensor<1x2x8x?xf32, ["w + 2"]>, tensor<3x3xf32>)
      outs(%start : tensor<1x2x6x?xf32, ["w"]>) -> tensor<1x2x6x?xf32, ["w"]>
  return %0 : tensor<1x2x6x?xf32, ["w"]>
}"""


def test_windows_over_what_the_kernel_computes_go_along_loops() -> None:
    """There is no memory that masked vectors could be read from."""
    kernel = compile_kernel(NEGATED, target=Target("cpu", num_threads=2))
    assert kernel.info.schedule.split()[0] == "loops"
    for columns in (1, 7, 40):
        x = values((1, 2, 6, columns), "float32")
        padded = np.pad(-x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
        np.testing.assert_array_equal(kernel(x), np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).max((4, 5)))
