"""Panels that a kernel packs itself, from weights whose steps are contiguous and whose columns are not, against exact sums with rigorous
bounds and ONNX Runtime."""

import numpy as np
import pytest
from contractions import check, convolution, matrix_product
from oracle import check_convolution, values
from support import program

from relayc.dialects.relay import build
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile

IMAGE = {"pads": (1, 1, 1, 1), "constant": False}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_taps_and_channels_around_the_vectors(dtype):
    """Of steps contiguous in memory: fewer than a vector, whole vectors, and some after them; whole panels and narrower ones."""
    taps = [(1, 1), (1, 2), (2, 2), (3, 3), (1, 5), (4, 4), (7, 7)]
    cases = [convolution((1, 3, 9, 8), (40, 3, *t), dtype=dtype, **IMAGE) for t in taps]
    channels = [(1, 15), (2, 16), (5, 17), (16, 31), (17, 64), (33, 129)]
    cases += [convolution((2, i, 6, 5), (o, i, 3, 3), dtype=dtype, **IMAGE) for i, o in channels]
    check([case.then("nn.relu", lambda v: np.maximum(v, 0)) if n % 3 == 1 else case for n, case in enumerate(cases)])


def test_strides_dilations_and_groups():
    cases = [
        convolution((2, 6, 11, 9), (34, 6, 3, 3), strides=(2, 1), **IMAGE),
        convolution((1, 6, 11, 12), (48, 6, 3, 2), dilation=(2, 3), **IMAGE),
        convolution((1, 12, 7, 7), (51, 4, 3, 3), groups=3, **IMAGE),
        convolution((1, 10, 7, 6), (34, 5, 2, 3), groups=2, strides=(2, 2), pads=(0, 2, 1, 0), constant=False),
        convolution((2, 5, 40), (33, 5, 5), pads=(2, 2), strides=(3,), constant=False),
        convolution((1, 3, 5, 6, 4), (20, 3, 2, 3, 2), pads=(1, 0, 1, 0, 1, 1), constant=False),
        convolution((1, 1030, 3, 3), (40, 1030, 3, 3), **IMAGE),
    ]
    check(cases)


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_every_width_of_vectors(mcpu):
    target = Target("cpu", mcpu=mcpu)
    if not target.is_host:
        pytest.skip(f"this machine lacks features of {mcpu}")
    products = [matrix_product(9, depth, 70, transpose_b=True) for depth in (15, 17, 64)]
    check([*products, convolution((1, 9, 6, 6), (35, 9, 3, 3), **IMAGE)], target=target)


def test_chunks_of_the_reduction():
    """Chunks bound the outermost steps: caches so small that a panel has several, of which the last is shorter."""
    target = Target("cpu", num_threads=2, l1_bytes=2 << 10, l2_bytes=32 << 10)
    check([matrix_product(66, depth, 130, transpose_b=True) for depth in (257, 1000, 1031)], target=target)


@pytest.mark.parametrize(("stride", "pads"), [(1, 1), (2, 1), (1, 0)])
def test_weights_that_are_read_backwards(stride, pads):
    """A transposed convolution reads its weights from the last tap to the first, with output channels as columns."""
    for channels, filters, taps in [(3, 5, (3, 3)), (17, 33, (3, 3)), (6, 40, (2, 5)), (4, 19, (4, 4))]:
        x, w = values((2, channels, 5, 6)), values((channels, filters, *taps), seed=1)
        attrs = {"strides": (stride, stride), "padding": (pads,) * 4}
        module = compile(program(lambda x, w, a=attrs: [build("nn.conv2d_transpose", x, w, **a)], [x, w]))
        check_convolution(module["main"](x, w), "ConvTranspose", x, w, strides=[stride] * 2, pads=[pads] * 4)


def test_a_part_of_larger_weights():
    """Columns, and steps, are those of a slice: not all steps are neighbours."""
    x, w = values((20, 48)), values((70, 100), seed=1)

    def body(x, w):
        part = build("strided_slice", w, begin=[3, 17], end=[69, 65], strides=[1, 1])
        return [build("nn.matmul", x, part, transpose_b=True)]

    expected = x.astype(np.float64) @ w[3:69, 17:65].T.astype(np.float64)
    found = compile(program(body, [x, w]))["main"](x, w)
    np.testing.assert_allclose(found, expected, rtol=0, atol=48 * 2**-24 * np.abs(x).sum(1).max() * 4)
