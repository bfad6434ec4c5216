"""Depthwise convolutions and poolings on GPUs, emulated over awkward shapes, and what device code they become."""

import re

import numpy as np
import pytest
from accuracy import bound_of
from contractions import convolve
from device_kernels import code_of
from oracle import values
from support import Const, program
from symbolic_ops import symbolic_program, tensor

from relayc.dialects.relay import build
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.symbolic import Range

EMULATED = Target("cuda", arch="sm_80", emulate=True, num_threads=2)
SEVERAL = {"schedule.window.rows": 3, "schedule.window.columns": 3}
"""Outputs of a thread, which small maps would have one of."""


def as_planes(x, layout):
    return x.transpose(0, 3, 1, 2) if layout == "NHWC" else x


def compiled(fed, config=None, target=EMULATED):
    with PassContext(config={"gpu.check_races": True, **(config or {})}, disabled_pass=["AlterOpLayout"]):
        module = compile(fed, target=target)
    assert {kernel.schedule.split()[0] for kernel in module.kernels} == {"window"}
    return module


@pytest.mark.parametrize(
    ("layout", "shape", "dtype"),
    [("NHWC", (2, 7, 9, 24), "float16"), ("NHWC", (1, 5, 6, 7), "float32"), ("NCHW", (2, 3, 8, 33), "float32")],
)
def test_depthwise_convolutions(layout, shape, dtype):
    """Strides, dilations, paddings on both sides; vectors of channels, odd channels, columns; taps in a loop; one output and several."""
    x = values(shape, dtype)
    channels = as_planes(x, layout).shape[1]
    forms = [((3, 3), (1, 1), (1, 1), (1, 1, 1, 1)), ((2, 3), (2, 1), (1, 2), (0, 3, 1, 2)), ((7, 5), (1, 2), (1, 1), (3, 2, 3, 2))]
    weights = [values((channels, 1, *taps), dtype, seed=i + 1) for i, (taps, *_) in enumerate(forms)]

    def body(x, *weights):
        return [
            build(
                "nn.conv2d",
                x,
                w,
                groups=channels,
                channels=channels,
                kernel_size=taps,
                strides=s,
                dilation=d,
                padding=p,
                data_layout=layout,
            )
            for w, (taps, s, d, p) in zip(weights, forms, strict=True)
        ]

    module = compiled(program(body, [x, *map(Const, weights)]), SEVERAL)
    for found, w, (taps, s, d, p) in zip(module["main"](x), weights, forms, strict=True):
        wide = as_planes(x, layout).astype("float64"), w.astype("float64")
        expected = convolve(*wide, s, d, p, channels)
        bound = bound_of(taps[0] * taps[1], expected, convolve(*map(np.abs, wide), s, d, p, channels), dtype)
        assert (np.abs(as_planes(found, layout) - expected) <= bound).all()


@pytest.mark.parametrize(("layout", "shape"), [("NHWC", (1, 9, 5, 12)), ("NCHW", (2, 3, 9, 5))])
def test_poolings(layout, shape):
    x = values(shape)
    module = compiled(
        program(
            lambda x: [
                build("nn.relu", build("nn.max_pool2d", x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], layout=layout)),
                build("nn.avg_pool2d", x, pool_size=[2, 3], strides=[1, 1], padding=[0, 1, 1, 1], layout=layout, count_include_pad=True),
            ],
            [x],
        )
    )
    greatest, mean = (as_planes(found, layout) for found in module["main"](x))
    planes = as_planes(x, layout)
    around = np.pad(planes, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    seen = np.lib.stride_tricks.sliding_window_view(around, (3, 3), (2, 3))[:, :, ::2, ::2]
    np.testing.assert_array_equal(greatest, np.maximum(seen.max((4, 5)), 0))
    seen = np.lib.stride_tricks.sliding_window_view(np.pad(planes, [(0, 0), (0, 0), (0, 1), (1, 1)]), (2, 3), (2, 3))
    np.testing.assert_allclose(mean, seen.mean((4, 5)), rtol=0, atol=1e-6)


def test_symbolic_sizes():
    w = values((8, 1, 3, 3), seed=1)
    attrs = {"groups": 8, "channels": 8, "kernel_size": [3, 3], "strides": [1, 2], "padding": [1, 1, 1, 1], "data_layout": "NHWC"}
    ranges = {"n": Range(0), "h": Range(1), "w": Range(1)}
    module = compiled(
        symbolic_program(lambda x, w: [build("nn.conv2d", x, w, **attrs)], [tensor("float32[n, h, w, 8]"), Const(w)], ranges), SEVERAL
    )
    for shape in ((1, 1, 1, 8), (2, 5, 31, 8), (0, 3, 3, 8), (1, 4, 8, 8)):
        x = values((2, *shape[1:]))
        found = module["main"](x[: shape[0]])
        expected = convolve(as_planes(x, "NHWC"), w, (1, 2), (1, 1), (1, 1, 1, 1), 8)[: shape[0]]
        np.testing.assert_allclose(as_planes(found, "NHWC"), expected, rtol=0, atol=1e-5)


def test_channels_are_read_in_vectors():
    """Of nine taps of four outputs 18 inputs and the 9 weights, all of 16 bytes; nothing is spilled."""
    w = Const(np.zeros((192, 1, 3, 3), "float16"))
    attrs = {"groups": 192, "channels": 192, "kernel_size": [3, 3], "padding": [1, 1, 1, 1], "data_layout": "NHWC"}
    fed = program(lambda x, w: [build("nn.relu", build("nn.conv2d", x, w, **attrs))], [np.zeros((8, 56, 56, 192), "float16"), w])
    ptx, figures = code_of(fed, "sm_90a")
    loads = re.findall(r"ld\.global\.nc(\S*)", ptx)
    assert loads == [".v4.b32"] * 27
    assert re.findall(r"st\.global(\S*)", ptx) == [".v4.b32"] * 4
    report = figures.report
    assert report is None or report.spill_stores == report.spill_loads == 0


def test_only_stores_outside_the_result_wait_for_a_branch():
    """Of 28 columns, 3 in a thread, the last two of the last thread are outside: two branches. Of the 3 rows and 7 columns that a thread
    reads, the first of each and the last 4 columns may be outside the input. Padding is chosen in words of two elements."""
    x = np.zeros((8, 56, 56, 64), "float16")
    pool = lambda x: [build("nn.max_pool2d", x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], layout="NHWC")]  # noqa: E731
    with PassContext(config=SEVERAL | {"schedule.window.rows": 1}):
        kernel = str(compile(program(pool, [x]), target=Target("cuda", arch="sm_80"), stop_after="tir").module)
    branches = re.findall(r"scf\.if .*?\n(.*?)\}", kernel, re.DOTALL)
    assert len(branches) == 2 and all("vector.store" in branch and "load" not in branch for branch in branches)
    assert len(set(re.findall(r"arith\.cmpi (.*)", kernel))) == 2 + 1 + 5
    assert set(re.findall(r"arith\.select .*: (\S+)", kernel)) == {"vector<4xi32>"}


@pytest.mark.parametrize(("layout", "shape"), [("OIHW", (24, 1, 3, 3)), ("HWOI", (3, 3, 24, 1))])
def test_weights_are_packed_along_channels(layout, shape):
    attrs = {"groups": 24, "channels": 24, "kernel_size": [3, 3], "data_layout": "NHWC", "kernel_layout": layout}
    x = np.zeros((1, 8, 8, 24), "float32")
    with PassContext(disabled_pass=["AlterOpLayout"]):
        module = compile(program(lambda x, w: [build("nn.conv2d", x, w, **attrs)], [x, Const(np.zeros(shape, "float32"))]), target=EMULATED)
    assert [spec.shape for spec in module.kernels[0].inputs] == [x.shape, (1, 3, 3, 24) if layout == "OIHW" else (3, 3, 1, 24)]


@pytest.mark.parametrize(("pool", "is_taken"), [(3, True), (32, True), (33, False)])
def test_windows_of_many_taps_are_left_to_other_schedules(pool, is_taken):
    pooling = lambda x: [build("nn.max_pool2d", x, pool_size=[pool, pool], layout="NHWC")]  # noqa: E731 (an argument)
    module = compile(program(pooling, [np.zeros((1, 40, 40, 8), np.int8)]), target=EMULATED, stop_after="tir")
    assert ("window" in {kernel.schedule.split()[0] for kernel in module.kernels}) is is_taken
