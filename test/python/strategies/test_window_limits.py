"""Poolings at sizes around the limits of their kernels: windows beside channels and along columns, against numpy."""

from collections.abc import Sequence

import numpy as np
import pytest
from accuracy import bound_of
from limits import Case, cases_of, check
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc.dialects.mlir import ir
from relayc.dialects.relay import build
from relayc.symbolic import Range


def pooling(
    op: str,
    taps: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    layout: str = "NCHW",
    channels: int = 3,
    dtype: str = "float32",
    dilation: Sequence[int] = (1, 1),
    strategy: str = "window_columns",
    **more: bool,
) -> Case:
    """max_pool2d or avg_pool2d of [b, channels, h, w] in a layout; `pads` are top, left, bottom, right. Means count no padding, and are of
    bytes as floats."""
    is_widened = op == "avg" and dtype in ("int8", "uint8")
    shape = {"NCHW": f"b, {channels}, h, w", "NHWC": f"b, h, w, {channels}"}.get(layout, f"b, {channels // 8}, h, w, 8")
    order = {"NCHW": (0, 1, 2, 3), "NHWC": (0, 3, 1, 2)}

    def plain(x: np.ndarray) -> np.ndarray:
        if layout in order:
            return x.transpose(order[layout])
        return x.transpose(0, 1, 4, 2, 3).reshape(x.shape[0], -1, *x.shape[2:4])

    def ordered(x: np.ndarray) -> np.ndarray:
        if layout in order:
            return x.transpose(np.argsort(order[layout]))
        return x.reshape(x.shape[0], -1, 8, *x.shape[2:]).transpose(0, 1, 3, 4, 2)

    def seen(x: np.ndarray, outside: float) -> np.ndarray:
        """[b, channels, rows, columns, taps...]"""
        x = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])], constant_values=outside)
        reach = [(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)]
        found = np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
        return found[:, :, :: strides[0], :: strides[1], :: dilation[0], :: dilation[1]]

    def expected(x: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        if op == "max":
            exact = np.int64 if np.dtype(dtype).kind in "iu" else np.float64
            lowest = -np.inf if exact == np.float64 else np.iinfo(dtype).min
            return ordered(seen(plain(x).astype(exact), lowest).max((4, 5))), 0.0
        wide = plain(x).astype(np.float64)
        count = seen(np.ones_like(wide), 0).sum((4, 5))
        total, magnitude = (seen(v, 0).sum((4, 5)) / count for v in (wide, np.abs(wide)))
        # A rounding for each sum, and two for the division, which may be a product with the reciprocal.
        return ordered(total), ordered(bound_of(taps[0] * taps[1] + 2, total, magnitude, "float32" if is_widened else dtype))

    attrs = {"pool_size": tuple(taps), "strides": tuple(strides), "padding": tuple(pads), "layout": layout, "dilation": tuple(dilation)}
    spans = [(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)]
    lows = {name: max(1, spans[i] - pads[i] - pads[i + 2]) for i, name in enumerate("hw")}

    def body(x: ir.Value) -> ir.Value:
        return build(f"nn.{op}_pool2d", build("cast", x, dtype="float32") if is_widened else x, **attrs, **more)

    return Case([f"{dtype}[{shape}]"], body, expected, strategy, lows)


CASES = {
    "max": pooling("max", (3, 3), (2, 2), (1, 1, 1, 1)),
    "average": pooling("avg", (3, 3), (1, 1), (1, 1, 1, 1)),
    "max, far at the end": pooling("max", (2, 5), (1, 2), (0, 1, 1, 3)),
    "average, strided": pooling("avg", (5, 5), (2, 2), (2, 2, 2, 2)),
    "max, apart": pooling("max", (3, 3), (3, 3), (0, 0, 0, 0), strategy=""),
    "max, dilated": pooling("max", (3, 3), (1, 1), (2, 3, 2, 3), dilation=(2, 3)),
    "max, channels last": pooling("max", (3, 3), (2, 2), (1, 1, 1, 1), "NHWC", 19, strategy="window_channels"),
    "average, channels last": pooling("avg", (3, 2), (2, 1), (1, 0, 1, 1), "NHWC", 40, strategy="window_channels"),
    "max, blocks of channels": pooling("max", (3, 3), (1, 1), (1, 1, 1, 1), "NCHW8c", 16, strategy="window_channels"),
    "max of doubles": pooling("max", (3, 3), (2, 2), (1, 1, 1, 1), dtype="float64"),
    "max of halves": pooling("max", (3, 3), (2, 2), (1, 1, 1, 1), dtype="float16", strategy=""),
    "max of bytes": pooling("max", (3, 3), (1, 1), (1, 1, 1, 1), dtype="int8", strategy=""),
    "max of bytes, channels last": pooling("max", (3, 3), (2, 2), (1, 1, 1, 1), "NHWC", 70, "uint8", strategy="window_channels"),
    "average of bytes": pooling("avg", (3, 3), (2, 2), (1, 1, 1, 1), dtype="uint8"),
    "average of bytes, channels last": pooling("avg", (3, 2), (2, 1), (1, 0, 1, 1), "NHWC", 40, "int8", strategy="window_channels"),
    "average of bytes, blocks of channels": pooling("avg", (3, 3), (1, 1), (1, 1, 1, 1), "NCHW8c", 16, "uint8", strategy="window_channels"),
    "average of bf16": pooling("avg", (3, 3), (1, 1), (1, 1, 1, 1), dtype="bfloat16", strategy=""),
}


@pytest.mark.parametrize(("name", "mcpu"), cases_of(CASES))
def test_sizes_around_the_limits_of_the_plan(name: str, mcpu: str) -> None:
    check(CASES[name], mcpu)


# Shape, layout, taps, strides, type, level and the strategy on both sides of each limit.
TAKEN = [
    ("1, 3, 9, 40", "NCHW", (3, 5), (1, 4), "float32", 3, "window_columns"),
    ("1, 3, 9, 40", "NCHW", (3, 6), (1, 5), "float32", 3, "loops"),
    ("1, 1, 40, 40", "NCHW", (16, 16), (1, 1), "float32", 3, "window_columns"),
    ("1, 1, 40, 40", "NCHW", (16, 17), (1, 1), "float32", 3, "loops"),
    ("1, 3, 9, 6", "NCHW", (3, 3), (1, 1), "float32", 3, "window_columns"),
    ("1, 3, 9, 5", "NCHW", (3, 3), (1, 1), "float32", 3, "loops"),
    ("1, 3, 9, 40", "NCHW", (3, 3), (1, 1), "float64", 3, "window_columns"),
    ("1, 3, 9, 40", "NCHW", (3, 3), (1, 1), "float64", 1, "loops"),  # vectors of two
    ("1, 1, 8, 4095", "NCHW", (8, 2), (1, 1), "float32", 3, "window_columns"),
    ("1, 1, 8, 4096", "NCHW", (8, 2), (1, 1), "float32", 3, "loops"),  # eight rows and a vector of f32 in 128 KiB
    ("1, 3, 9, w", "NCHW", (3, 3), (1, 2), "float32", 3, "window_columns"),
    ("1, 3, 9, w", "NCHW", (3, 4), (1, 3), "float32", 3, "loops"),
    ("1, 3, 9, w", "NCHW", (1, 32), (1, 1), "float32", 3, "window_columns"),
    ("1, 3, 9, w", "NCHW", (1, 33), (1, 1), "float32", 3, "loops"),
    ("1, 3, 9, w", "NCHW", (3, 3), (1, 1), "float32", 1, "loops"),  # no masks
    ("1, 9, 40, 2", "NHWC", (3, 32), (1, 1), "float32", 3, "window_channels"),
    ("1, 9, 40, 2", "NHWC", (3, 33), (1, 1), "float32", 3, "loops"),
    ("1, 9, 40, 1", "NHWC", (3, 3), (1, 1), "float32", 3, "loops"),
]


@pytest.mark.parametrize(("shape", "layout", "taps", "strides", "dtype", "level", "strategy"), TAKEN)
def test_windows_beyond_a_limit_are_left_to_loops(shape, layout, taps, strides, dtype, level, strategy):
    body = lambda x: [build("nn.max_pool2d", x, pool_size=taps, strides=strides, layout=layout)]  # noqa: E731 (an argument)
    program = symbolic_program(body, [tensor(f"{dtype}[{shape}]")], {"w": Range(1000)} if "w" in shape else {})
    module = relayc.compile(program, "cpu -mcpu=x86-64" + ("-v3" if level == 3 else ""), stop_after="tir", cache=False)
    assert [kernel.schedule.split()[0] for kernel in module.kernels] == [strategy]


@pytest.mark.parametrize(("dtype", "strategy"), [("float16", "loops"), ("int32", "window_columns")])
def test_results_that_the_target_cannot_mask_go_along_loops(dtype, strategy):
    """AVX2 masks elements of 32 bits and more, which what is read and summed has here."""
    body = lambda x: [build("cast", build("nn.max_pool2d", x, pool_size=(3, 3)), dtype=dtype)]  # noqa: E731 (an argument)
    program = symbolic_program(body, [tensor("float32[1, 3, 9, w]")], {"w": Range(1000)})
    module = relayc.compile(program, "cpu -mcpu=x86-64-v3", stop_after="tir", cache=False)
    assert [kernel.schedule.split()[0] for kernel in module.kernels] == [strategy]


@pytest.mark.parametrize(
    ("shape", "layout", "taps", "operations"),
    [
        # Eight vectors of a tile by six rows of taps, each with the end of the body, are 768 operations.
        ("1, 1, 6, 71", "NCHW", (6, 8), 6 * 8 * 8),
        ("1, 1, 6, 72", "NCHW", (6, 9), 9 * 8),
        # Eight columns by four rows of taps are 256 vectors that are added.
        ("1, 4, 15, 8", "NHWC", (4, 8), 4 * 8 * 8),
        ("1, 4, 16, 8", "NHWC", (4, 9), 9 * 8),
    ],
)
def test_windows_of_few_operations_are_unrolled(shape, layout, taps, operations):
    """More of them are a loop over rows of taps."""
    body = lambda x: [build("nn.max_pool2d", x, pool_size=taps, layout=layout)]  # noqa: E731 (an argument)
    program = symbolic_program(body, [tensor(f"float32[{shape}]")])
    text = str(relayc.compile(program, "cpu -mcpu=x86-64-v3", stop_after="tir", cache=False).module)
    assert text.count("arith.maximumf") == operations
