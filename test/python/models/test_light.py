"""The networks of the onnx package against ONNX Runtime, with random weights: those shipped make every output the same."""

import os

import pytest

import relayc
from relayc.tools.inputs import random_inputs
from relayc.tools.light import light_names, light_path, random_light, stored_case
from relayc.tools.reference import compare, run_onnxruntime

LONG = {"densenet121", "inception_v1", "inception_v2", "vgg19", "zfnet512"}
"""Of the same operators as others here, and 8 to 24 s each: RELAYC_TEST_ALL=1 in the environment takes them too."""
NAMES = [name for name in light_names() if name not in LONG or "RELAYC_TEST_ALL" in os.environ]


@pytest.mark.parametrize("name", NAMES)
def test_a_network_agrees_with_onnxruntime(name):
    model = random_light(name)
    module = relayc.compile(model)
    inputs = random_inputs(module.inputs)
    found = compare(module.run(inputs), run_onnxruntime(model.SerializeToString(), inputs))
    assert found.agrees, found


def test_a_network_as_it_is_shipped_meets_the_output_beside_it():
    data, wanted = stored_case("squeezenet")
    found = compare({"y": relayc.compile(light_path("squeezenet"))["main"](data)}, {"y": wanted})
    assert found.agrees, found
