"""Sizes that follow from data: results against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from late_models import NAMES, model

import relayc

CASES = [("cpu", name) for name in NAMES] + [("cuda -arch=sm_80 -emulate=true", name) for name in ("branch", "loop of several")]


@pytest.mark.parametrize(("target", "name"), CASES)
def test_late_sizes(target: str, name: str) -> None:
    proto = model(name)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    module = relayc.compile(proto, target=target, cache=False)
    for seed, (n, m) in enumerate([(7, 12), (1, 3), (33, 2), (0, 5)]):
        rng = np.random.default_rng(seed)
        every = {
            "x": np.where(rng.random(n) < 0.5, 0, rng.standard_normal(n)).astype(np.float32),
            "y": np.where(rng.random(m) < 0.3, 0, rng.standard_normal(m)).astype(np.float32),
            "c": np.array(seed % 2 == 0),
            "trips": np.array(seed),
        }
        feeds = {value.name: every[value.name] for value in session.get_inputs()}
        found = module.run(feeds)
        for output, expected in zip(session.get_outputs(), session.run(None, feeds), strict=True):
            # Tanh of another library.
            np.testing.assert_allclose(found[output.name], expected, rtol=1e-6, atol=1e-7)
