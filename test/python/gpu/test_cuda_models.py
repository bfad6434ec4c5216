"""Whole models on NVIDIA's GPUs from the caller's side: host code, graphs and kernels, over a driver that tests have (see fake_cuda)."""

from pathlib import Path

import pytest
from dynamic_models import arguments
from fake_cuda import fake_cuda

from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.runtime.device import Device
from relayc.tools.reference import compare, run_onnxruntime

FOLDER = Path(__file__).parents[2] / "models" / "dynamic"


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("segmenter", [{"height": 33, "width": 48}, {"height": 61, "width": 37}]),
        ("bert", [{"batch": 2, "seq": 7}, {"batch": 3, "seq": 31}]),
    ],
)
def test_a_model_runs_is_recorded_and_replayed(name, sizes):
    path = FOLDER / f"{name}.onnx"
    with fake_cuda() as driver:
        module = compile(path, target=Target("cuda"))
        assert module.records
        for seed, at in enumerate(sizes[i] for i in (0, 0, 0, 1, 0)):
            captured, launched = driver.captured, len(driver.launches)
            inputs = arguments(module, at, seed)
            found = compare(module.run(inputs), run_onnxruntime(path, inputs))
            assert found.agrees, (at, found)
            launches = len(driver.launches) - launched
            assert launches >= len(module.kernels)
            assert driver.captured - captured == (launches if seed == 2 else 0)
        on_device = {key: Device("cuda").tensor(array) for key, array in inputs.items()}
        results = module.run(on_device)
        assert {str(tensor.device) for tensor in results.values()} == {"cuda:0"}
        again = compare({key: tensor.numpy() for key, tensor in results.items()}, run_onnxruntime(path, inputs))
        assert again.agrees, again
