"""Layouts of images on GPUs: channels last between convolutions, of every element type, and results as on the CPU."""

import re
from pathlib import Path

import numpy as np
import pytest
from oracle import values
from support import Const, program

from relayc.dialects.relay import build
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile

MODELS = Path(__file__).parents[2] / "models"
EMULATED = Target("cuda", arch="sm_80", emulate=True, num_threads=2)


def layouts(module):
    """The layouts that convolutions and poolings read and write, and how many transforms there are between layouts."""
    text = str(module)
    read = re.findall(r'[ {](?:data_)?layout = "(\w+)"', text)
    written = re.findall(r'out_layout = "(\w*)"', text)
    return read, written, len(re.findall(r'"relay\.(?:layout_transform|transpose)"', text))


@pytest.mark.parametrize(("model", "precision"), [("resnet50", "f16")])
def test_convolutional_models_are_channels_last(model, precision):
    """All but the image that goes in, of three channels, which the first convolution reads as it comes."""
    read, written, transforms = layouts(
        compile(MODELS / f"{model}.onnx", target=Target("cuda", arch="sm_80"), precision=precision, stop_after="relay")
    )
    assert (read.count("NCHW"), set(read)) == (1, {"NCHW", "NHWC"})
    assert set(written) == {"NHWC"} and len(written) >= 20
    assert transforms == 0


@pytest.mark.parametrize(("dtype", "sums"), [("float16", "float16")])
def test_images_of_other_types_than_f32(dtype, sums):
    """Small integers, which every type holds: exact."""

    def numbers(shape, seed, of=dtype):
        found = np.clip(np.round(values(shape, seed=seed)), -1, 1)
        return found.astype(of)

    def narrowed(value):
        return build("cast", build("clip", value, a_min=-3.0, a_max=3.0), dtype=dtype)

    def body(x, first, depthwise, last, bias):
        found = build("add", build("nn.conv2d", x, first, padding=[1] * 4, out_dtype=sums), bias)
        pooled = narrowed(build("nn.max_pool2d", found, pool_size=[2, 2], strides=[2, 2]))
        found = narrowed(build("nn.conv2d", pooled, depthwise, groups=16, padding=[1] * 4, out_dtype=sums))
        return [build("nn.conv2d", found, last, out_dtype=sums)]

    x = numbers((1, 8, 10, 6), 0)
    shapes = [(16, 8, 3, 3), (16, 1, 3, 3), (8, 16, 1, 1)]
    arrays = [x, *(Const(numbers(shape, i + 1)) for i, shape in enumerate(shapes)), Const(numbers((16, 1, 1), 4, sums))]
    read, written, transforms = layouts(compile(program(body, arrays), target=EMULATED, stop_after="relay"))
    assert (set(read), written, transforms) == ({"NHWC"}, ["NHWC", "NHWC", "NCHW"], 1)  # the argument is transposed, nothing else
    found, expected = (compile(program(body, arrays), target=target)["main"](x) for target in (EMULATED, Target("cpu")))
    np.testing.assert_array_equal(found, expected)
