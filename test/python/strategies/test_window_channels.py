"""Numerics of windows beside contiguous channels, in blocks and channels last: the same operators in NCHW, against numpy."""

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from accuracy import check_sums
from oracle import values
from support import Const, program

from relayc.dialects.mlir import ir
from relayc.dialects.relay import build
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile


def to_layout(x: np.ndarray, layout: str) -> np.ndarray:
    """An NCHW array in NHWC, NCHW or NCHWc."""
    if layout == "NCHW":
        return x
    if layout == "NHWC":
        return x.transpose(0, 2, 3, 1)
    block = int(layout[4:-1])
    n, c, h, w = x.shape
    return x.reshape(n, c // block, block, h, w).transpose(0, 1, 3, 4, 2)


@dataclass(frozen=True)
class Case:
    """A depthwise convolution or a pooling of an image of [n, channels, *size]; `pads` are top, left, bottom, right."""

    layout: str
    channels: int
    size: tuple[int, int]
    taps: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    op: str = "conv"
    n: int = 1
    constant: bool = True

    @property
    def x(self) -> np.ndarray:
        return values((self.n, self.channels, *self.size), "float32")

    @property
    def w(self) -> np.ndarray:
        return values((self.channels, 1, *self.taps), "float32", seed=1)

    @property
    def arrays(self) -> list:
        data = np.ascontiguousarray(to_layout(self.x, self.layout))
        return [data] if self.op != "conv" else [data, Const(self.w) if self.constant else self.w]

    def build(self, x: ir.Value, w: ir.Value | None = None) -> ir.Value:
        common = {"strides": self.strides, "padding": self.pads, "dilation": self.dilation}
        if self.op == "conv":
            return build("nn.conv2d", x, w, groups=self.channels, data_layout=self.layout, **common)
        attrs = {"count_include_pad": False} if self.op == "avg" else {}
        return build(f"nn.{self.op}_pool2d", x, pool_size=self.taps, layout=self.layout, **common, **attrs)

    def expected(self, of: Callable[[np.ndarray], np.ndarray] = np.float64) -> np.ndarray:
        """The result for `of` the inputs."""
        top, left, bottom, right = self.pads
        outside = {"conv": 0.0, "max": -np.inf, "avg": np.nan}[self.op]
        padded = np.pad(of(self.x.astype(np.float64)), [(0, 0), (0, 0), (top, bottom), (left, right)], constant_values=outside)
        reach = [(k - 1) * d + 1 for k, d in zip(self.taps, self.dilation, strict=True)]
        windows = np.lib.stride_tricks.sliding_window_view(padded, reach, (2, 3))
        (sy, sx), (dy, dx) = self.strides, self.dilation
        windows = windows[:, :, ::sy, ::sx, ::dy, ::dx]
        if self.op == "conv":
            return to_layout(np.einsum("nchwyx,cyx->nchw", windows, of(self.w[:, 0])), self.layout)
        return to_layout(windows.max((4, 5)) if self.op == "max" else np.nanmean(windows, (4, 5)), self.layout)


def check(cases: Sequence[Case], **options) -> None:
    """All cases in one program, each with inputs of its own."""
    arrays = [a for case in cases for a in case.arrays]

    def body(*given: ir.Value) -> list[ir.Value]:
        inputs = iter(given)
        return [case.build(*[next(inputs) for _ in case.arrays]) for case in cases]

    with PassContext(disabled_pass=["AlterOpLayout"]):
        module = compile(program(body, arrays), **options)
    found = module["main"](*[a for a in arrays if not isinstance(a, Const)])
    for case, result in zip(cases, found if isinstance(found, (list, tuple)) else [found], strict=True):
        magnitude = 0 if case.op == "max" else case.expected(np.abs)
        check_sums(np.asarray(result), case.expected(), magnitude, case.taps[0] * case.taps[1], str(case))


LAYOUTS = [("NCHW8c", 16), ("NCHW16c", 32), ("NCHW4c", 12), ("NHWC", 8), ("NHWC", 29), ("NHWC", 5)]


@pytest.mark.parametrize("layout, channels", LAYOUTS)
def test_maps_of_all_sizes(layout, channels):
    sizes = [(7, 7), (1, 9), (9, 1), (14, 13), (5, 33)]
    kinds = [(3, "conv", 1), (5, "conv", 2), (3, "conv", 3), (3, "max", 2), (3, "avg", 1)]
    check([Case(layout, channels, size, (k, k), (s, s), (k // 2,) * 4, op=op) for size, (k, op, s) in itertools.product(sizes, kinds)])


@pytest.mark.parametrize("constant", [True, False])
def test_windows_of_one_column_over_rows_of_pixels(constant):
    """In NCHW the pixels of a row are the innermost dimension, and the channels of the image the one before the rows: with weights each."""
    sizes = [(9, 9), (5, 2), (4, 33)]
    kinds = [((3, 1), (1, 1), 1), ((3, 1), (3, 1), 2), ((2, 1), (1, 1), 1)]
    check(
        [
            Case("NCHW", channels, size, taps, strides, (1, 0, 1, 0), (dilation, 1), n=2, constant=constant)
            for channels, size, (taps, strides, dilation) in itertools.product((3, 17), sizes, kinds)
        ]
    )


@pytest.mark.parametrize("layout, channels", [("NCHW8c", 8), ("NHWC", 19)])
def test_asymmetric_windows(layout, channels):
    check(
        [
            Case(layout, channels, (11, 13), (1, 5), pads=(0, 2, 0, 2)),
            Case(layout, channels, (11, 13), (5, 1), pads=(2, 0, 2, 0)),
            Case(layout, channels, (11, 13), (4, 3), (2, 1), (0, 1, 3, 0)),
            Case(layout, channels, (11, 40), (3, 3), (1, 2), (0, 5, 0, 7)),
            Case(layout, channels, (12, 20), (3, 7), (3, 4), (2, 0, 1, 3)),
            Case(layout, channels, (10, 21), (2, 3), dilation=(2, 3), pads=(1, 3, 2, 0)),
            Case(layout, channels, (10, 21), (3, 3), (2, 2), (2, 2, 2, 2), (2, 2)),
            Case(layout, channels, (6, 7), (3, 2), (1, 3), (5, 5, 5, 5), (2, 2)),
            Case(layout, channels, (7, 7), (7, 7), pads=(3, 3, 3, 3)),
            Case(layout, channels, (20, 18), (7, 7), pads=(3, 3, 3, 3)),
            Case(layout, channels, (8, 8), (2, 2), (2, 2), op="max"),
            Case(layout, channels, (9, 10), (3, 3), (2, 2), op="avg"),
            Case(layout, channels, (9, 10), (3, 3), pads=(1, 1, 1, 1), n=3),
            Case(layout, channels, (9, 10), (3, 3), pads=(1, 1, 1, 1), constant=False),
        ]
    )


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_vectors_of_every_width(mcpu):
    target = Target("cpu", mcpu=mcpu)
    if not target.is_host:
        pytest.skip(f"this machine lacks features of {mcpu}")
    cases = [Case(layout, c, (9, 17), (3, 3), (s, s), (1, 1, 1, 1)) for (layout, c), s in itertools.product(LAYOUTS, [1, 2])]
    check(cases, target=target)


def test_vectors_wider_than_the_machine():
    """Vectors of 64 bytes are right where two registers hold one."""
    check(
        [
            Case(layout, c, (9, 17), (3, 3), (1, 1), (1, 1, 1, 1))
            for layout, c in [("NCHW16c", 32), ("NHWC", 24), ("NHWC", 40), ("NCHW8c", 8)]
        ],
        target=Target("cpu", vector_bytes=64),
    )


@pytest.mark.parametrize(("channels", "shares"), [(16, []), (24, ["2"]), (40, ["2"])])
def test_vectors_beyond_whole_tiles_are_a_task_of_their_own(channels, shares):
    """Of 64 rows, which are tasks enough, two vectors of 8 channels in a tile."""
    case = Case("NHWC", channels, (64, 6), (1, 3), op="max")
    module = compile(program(lambda x: [case.build(x)], case.arrays), target="cpu -mcpu=x86-64-v3", stop_after="tir")
    loops = re.findall(r"scf\.for %\w+ = %c0 to %c(\d+) step %c1 ", str(module.module))
    assert loops[: len(shares) + 1] == [*shares, "64"]


def test_what_follows_is_computed_in_the_same_kernel():
    case = Case("NCHW8c", 24, (15, 15), (3, 3), pads=(1, 1, 1, 1))
    bias, other = values((1, 3, 1, 1, 8), seed=2), values((1, 3, 15, 15, 8), seed=3)

    def body(x: ir.Value, w: ir.Value, bias: ir.Value, other: ir.Value) -> list[ir.Value]:
        return [build("clip", build("add", build("add", case.build(x, w), bias), other), a_min=0.0, a_max=6.0)]

    with PassContext(disabled_pass=["AlterOpLayout"]):
        module = compile(program(body, [*case.arrays, bias, other]))
    assert len(module.kernels) == 1
    found = module["main"](case.arrays[0], bias, other)
    magnitude = case.expected(np.abs) + np.abs(bias) + np.abs(other)
    check_sums(np.asarray(found), np.clip(case.expected() + bias + other, 0, 6), magnitude, 11)
