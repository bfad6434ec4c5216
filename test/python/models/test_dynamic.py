"""The models under test/models/dynamic, compiled once without any size, at several sizes against ONNX Runtime."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from dynamic_models import arguments

import relayc
from relayc.pipelines import PassContext
from relayc.runtime import GraphExecutor, Module
from relayc.tools.reference import compare, run_onnxruntime

FOLDER = Path(__file__).parents[2] / "models" / "dynamic"

SIZES = {
    "bert": [{"batch": 1, "seq": 1}, {"batch": 2, "seq": 7}, {"batch": 3, "seq": 31}, {"batch": 1, "seq": 101}, {"batch": 4, "seq": 64}],
    "decoder": [
        {"batch": 1, "seq": 1, "past": 0},
        {"batch": 1, "seq": 16, "past": 0},
        {"batch": 2, "seq": 3, "past": 5},
        {"batch": 3, "seq": 1, "past": 127},
    ],
    "recurrent": [{"batch": 1, "seq": 1}, {"batch": 3, "seq": 13}, {"batch": 5, "seq": 2}],
    "resnet18": [{"batch": 1}, {"batch": 2}, {"batch": 5}, {"batch": 13}],
    "segmenter": [{"height": 16, "width": 16}, {"height": 61, "width": 37}, {"height": 33, "width": 128}],
}
"""Sizes that a model is called with: one, primes, and larger ones."""
ARENA = {
    "bert": {"batch": 4, "seq": 64},
    "decoder": {"batch": 1, "seq": 64, "past": 0},
    "recurrent": {"batch": 3, "seq": 13},
    "resnet18": {"batch": 5},
}
"""Sizes at which memory is compared with that of a static program: large enough that positions and masks, which are constants there and
tensors here, matter little in models of a width of 32."""


@cache
def compiled(name: str) -> Module:
    return relayc.compile(FOLDER / f"{name}.onnx")


@pytest.mark.parametrize("name", SIZES)
def test_one_module_agrees_with_onnxruntime_at_every_size(name):
    for sizes in SIZES[name]:
        inputs = arguments(compiled(name), sizes)
        found = compare(compiled(name).run(inputs), run_onnxruntime(FOLDER / f"{name}.onnx", inputs))
        assert found.agrees, (sizes, found)


@pytest.mark.parametrize("name", [name for name in SIZES if name != "recurrent"])
def test_a_graph_at_given_sizes_computes_the_same_bits(name):
    module = compiled(name)
    for sizes in SIZES[name]:
        inputs = arguments(module, sizes)
        executor = GraphExecutor(module, sizes=sizes)
        executor.run(**inputs)
        for output, expected in module.run(inputs).items():
            np.testing.assert_array_equal(executor.get_output(output).numpy(), expected)


def test_a_program_that_finds_out_sizes_is_no_graph():
    with pytest.raises(ValueError, match=r"main: expected a graph: .*; found sizes that only the program finds out"):
        compiled("recurrent").graph(sizes=SIZES["recurrent"][0])


@pytest.mark.parametrize("name", ["decoder", "recurrent"])
def test_a_module_computes_the_same_without_fusion(name):
    plain = relayc.compile(FOLDER / f"{name}.onnx", opt_level=0)
    for sizes in SIZES[name]:
        inputs = arguments(plain, sizes)
        found = compare(plain.run(inputs), run_onnxruntime(FOLDER / f"{name}.onnx", inputs))
        assert found.agrees, (sizes, found)


def test_a_module_in_bf16_agrees_with_onnxruntime_at_every_size():
    with PassContext(config={"relay.ToMixedPrecision.force": True}):
        module = relayc.compile(FOLDER / "bert.onnx", precision="bf16")
    assert module.precision == "bf16"
    for sizes in SIZES["bert"]:
        inputs = arguments(module, sizes)
        found = compare(module.run(inputs), run_onnxruntime(FOLDER / "bert.onnx", inputs), "bf16")
        assert found.agrees, (sizes, found)


@pytest.mark.parametrize("name", ARENA)
def test_memory_is_planned_as_in_a_static_program(name):
    inputs = arguments(compiled(name), ARENA[name])
    static = relayc.compile(FOLDER / f"{name}.onnx", dims=ARENA[name])
    assert compiled(name).arena_bytes(inputs) <= 1.2 * static.arena_bytes(inputs)


def test_tokens_one_by_one_with_a_cache_give_what_all_at_once_do():
    module, steps = compiled("decoder"), 200
    tokens = np.random.default_rng(1).integers(0, 100, (1, steps))
    cache_names = module.input_names[1:]
    empty = {spec.name: np.zeros(spec.at({"batch": 1, "past": 0}), np.float32) for spec in module.inputs[1:]}
    expected = module.run({"input_ids": tokens, **empty})
    past, logits = empty, []
    for step in range(steps):
        found = list(module.run({"input_ids": tokens[:, step : step + 1], **past}).values())
        logits.append(found[0])
        past = dict(zip(cache_names, found[1:], strict=True))
    results = dict(zip(module.output_names, [np.concatenate(logits, axis=1), *past.values()], strict=True))
    found = compare(results, expected)
    assert found.agrees, found
    assert past[cache_names[0]].shape[2] == steps
