"""Convolutions of every form at sizes around the limits of their kernels, against exact sums with rigorous bounds."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from accuracy import bound_of
from contractions import convolve
from limits import Case, cases_of, check, wide
from support import Const

from relayc.dialects.mlir import ir
from relayc.dialects.relay import build

LAST = {1: {"data_layout": "NWC", "kernel_layout": "WIO"}, 2: {"data_layout": "NHWC", "kernel_layout": "HWIO"}}
"""Layouts with channels last, by spatial axes."""


def convolution(
    weight: Sequence[int],
    strides: Sequence[int] = (),
    pads: Sequence[int] = (),
    dilation: Sequence[int] = (),
    groups: int = 1,
    last: bool = False,
    dtype: str = "float32",
    residual: bool = False,
    strategy: str = "contraction",
) -> Case:
    """A convolution of [b, channels, (h,) w], or of channels last, with constant weights [filters, channels / groups, taps...]."""
    n = len(weight) - 2
    strides, dilation, pads = tuple(strides) or (1,) * n, tuple(dilation) or (1,) * n, tuple(pads) or (0,) * 2 * n
    names, channels = ("h", "w")[2 - n :], weight[1] * groups
    out = [
        f"({s} + {a + b - (k - 1) * d - 1})//{by} + 1"
        for s, a, b, k, d, by in zip(names, pads[:n], pads[n:], weight[2:], dilation, strides, strict=True)
    ]
    shape, shape_out = ([*names, c] if last else [c, *names] for names, c in ((list(names), channels), (out, weight[0])))
    attrs = {"strides": strides, "padding": pads, "dilation": dilation, "groups": groups, "out_dtype": "int32" if dtype == "int8" else ""}
    attrs |= LAST[n] if last else {}
    w = wide(np.random.default_rng(weight), weight, dtype)
    exact = np.int64 if dtype == "int8" else np.float64
    reach = {
        name: max(1, (k - 1) * d + 1 - a - b) for name, k, d, a, b in zip(names, weight[2:], dilation, pads[:n], pads[n:], strict=True)
    }

    def body(x: ir.Value, w: ir.Value, *z: ir.Value) -> ir.Value:
        y = build(f"nn.conv{n}d", x, w, **attrs)
        return build("nn.relu", build("add", y, z[0])) if z else y

    def expected(x: np.ndarray, _: np.ndarray, *z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = (np.moveaxis(x, -1, 1) if last else x).astype(exact)
        how = strides, dilation, pads, groups
        found, magnitude = convolve(x, w.astype(exact), *how), convolve(np.abs(x), np.abs(w.astype(exact)), *how)
        if last:
            found, magnitude = np.moveaxis(found, 1, -1), np.moveaxis(magnitude, 1, -1)
        terms = int(np.prod(weight[1:]))
        if z:
            found, magnitude, terms = found + z[0], magnitude + np.abs(z[0]), terms + 1
        bound = bound_of(terms, found, magnitude, "int32" if dtype == "int8" else dtype)
        return np.maximum(found, 0) if z else found, bound

    def text(shape: Sequence) -> str:
        return f"{dtype}[{', '.join(map(str, ['b', *shape]))}]"

    constant = Const(np.ascontiguousarray(np.moveaxis(w, (0, 1), (-1, -2))) if last else w)
    return Case([text(shape), constant, *([text(shape_out)] if residual else [])], body, expected, strategy, reach)


def transposed(weight: Sequence[int], strides: Sequence[int], pads: Sequence[int], groups: int = 1) -> Case:
    """A transposed convolution with constant weights [channels, filters / groups, taps...]."""
    n = len(weight) - 2
    names = ("h", "w")[2 - n :]
    w = wide(np.random.default_rng(weight), weight, "float32")
    attrs = {"strides": tuple(strides), "padding": tuple(pads), "groups": groups}

    def scattered(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        """As a convolution of the data with zeros between the elements."""
        spread = np.zeros((*x.shape[:2], *((size - 1) * s + 1 for size, s in zip(x.shape[2:], strides, strict=True))))
        spread[(slice(None), slice(None), *(slice(None, None, s) for s in strides))] = x
        w = (
            np.flip(w, tuple(range(2, 2 + n)))
            .reshape(groups, -1, *w.shape[1:])
            .swapaxes(1, 2)
            .reshape(-1, w.shape[0] // groups, *w.shape[2:])
        )
        around = [k - 1 - p for k, p in zip([*weight[2:]] * 2, pads, strict=True)]
        return convolve(spread, w, (1,) * n, (1,) * n, around, groups)

    def expected(x: np.ndarray, _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found, magnitude = scattered(x.astype(np.float64), w.astype(np.float64)), scattered(np.abs(x), np.abs(w))
        return found, bound_of(int(weight[0] // groups * np.prod(weight[2:])), found, magnitude, "float32")

    lows = {
        name: 1 + max(0, -(-(a + b + 1 - k) // s)) for name, k, s, a, b in zip(names, weight[2:], strides, pads[:n], pads[n:], strict=True)
    }
    shape = f"float32[b, {weight[0]}, {', '.join(names)}]"
    return Case([shape, Const(w)], lambda x, w: build(f"nn.conv{n}d_transpose", x, w, **attrs), expected, "contraction", lows)


SMALL = {"l1_bytes": 2 << 10, "l2_bytes": 16 << 10}

CASES = {
    "direct": convolution((12, 7, 3, 3), pads=(1, 1, 1, 1), residual=True),
    "direct, strided, channels last": convolution((20, 5, 3, 5), strides=(2, 2), pads=(1, 2, 0, 1), last=True),
    "direct, dilated": convolution((35, 3, 3, 3), pads=(2, 3, 2, 3), dilation=(2, 3)),
    "1x1": convolution((33, 17, 1, 1), residual=True),
    "1x1, channels last": convolution((33, 17, 1, 1), last=True),
    "1x1, strided": convolution((10, 9, 1, 1), strides=(2, 3)),
    "1x1, chunks": replace(convolution((26, 150, 1, 1), residual=True), caches=SMALL),
    "direct, chunks": replace(convolution((20, 12, 3, 3), pads=(1, 1, 1, 1)), caches=SMALL),
    "lines that share chunks": replace(convolution((60, 12, 3, 3), pads=(1, 1, 1, 1), residual=True), caches=SMALL),
    "lines that share chunks, strided": replace(convolution((210, 5, 3, 3), strides=(2, 2), pads=(1, 0, 1, 2)), caches=SMALL),
    "lines that share chunks, dilated, grouped": replace(
        convolution((110, 3, 3, 3), pads=(2, 1, 0, 1), dilation=(2, 1), groups=2), caches=SMALL
    ),
    "depthwise": convolution((6, 1, 3, 3), pads=(1, 1, 1, 1), groups=6, strategy="window_columns", residual=True),
    "depthwise, strided": convolution((3, 1, 5, 5), strides=(2, 2), pads=(2, 2, 2, 2), groups=3, strategy="window_columns"),
    "depthwise, channels last": convolution((35, 1, 3, 3), pads=(1, 1, 1, 1), groups=35, last=True, strategy="window_channels"),
    "one column": convolution((20, 6, 7, 1), pads=(3, 0, 3, 0)),
    "one row": convolution((20, 6, 1, 7), pads=(0, 3, 0, 3)),
    "grouped": convolution((24, 4, 3, 3), pads=(1, 1, 1, 1), groups=3),
    "1-d": convolution((20, 9, 5), pads=(2, 2), residual=True),
    "1-d, strided, channels last": convolution((18, 6, 3), strides=(3,), pads=(0, 1), last=True),
    "transposed": transposed((7, 5, 3, 3), (2, 2), (1, 1, 1, 1)),
    "transposed, grouped": transposed((8, 3, 4, 3), (2, 1), (1, 0, 1, 2), groups=2),
    "transposed, 1-d": transposed((9, 6, 4), (2,), (1, 1)),
    "bf16": convolution((20, 6, 3, 3), pads=(1, 1, 1, 1), dtype="bfloat16", strategy=""),
    "f16": convolution((20, 6, 1, 1), dtype="float16"),
    "int8": convolution((20, 6, 3, 3), pads=(1, 1, 1, 1), dtype="int8", strategy=""),
}


@pytest.mark.parametrize(("name", "mcpu"), cases_of(CASES))
def test_sizes_around_the_limits_of_the_plan(name: str, mcpu: str) -> None:
    check(CASES[name], mcpu)
