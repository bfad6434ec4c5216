"""The models under test/models, as PyTorch's exporters write them, against ONNX Runtime."""

from pathlib import Path

import numpy as np
import pytest

import relayc
from relayc.runtime import TensorSpec
from relayc.runtime.artifact import numpy_dtype
from relayc.tools.reference import compare, run_onnxruntime

FOLDER = Path(__file__).parents[2] / "models"

BERT = ("input_ids", "attention_mask", "token_type_ids")
SHAPES = {
    "bert": [dict.fromkeys(BERT, (1, 16)), dict.fromkeys(BERT, (3, 7))],
    "gpt2": [dict.fromkeys(BERT[:2], (1, 16)), dict.fromkeys(BERT[:2], (2, 5))],
    "llama": [{"input_ids": (1, 16)}, {"input_ids": (1, 33)}],
    "mlp_mixer": [{"series": (1, 24, 5)}, {"series": (6, 24, 5)}],
    "resnet18": [{"image": (1, 3, 64, 64)}, {"image": (3, 3, 64, 64)}],
}
"""Two shapes of the inputs of each model with symbolic dimensions."""

CASES = [(path.stem, shapes) for path in sorted(FOLDER.glob("*.onnx")) for shapes in SHAPES.get(path.stem, [None])]


def _values(spec: TensorSpec, rng: np.random.Generator) -> np.ndarray:
    """Normal numbers; tokens below 100, segments 0 or 1, masks that leave out the last tokens of all but the first sequence."""
    if spec.dtype.startswith("float"):
        return rng.standard_normal(spec.shape).astype(numpy_dtype(spec.dtype))
    if spec.name == "attention_mask":
        batch, length = spec.shape
        return (np.arange(length) < length - np.arange(batch)[:, None]).astype(np.int64)
    return rng.integers(0, 2 if spec.name == "token_type_ids" else 100, spec.shape)


@pytest.mark.parametrize(("name", "shapes"), CASES, ids=[name for name, _ in CASES])
def test_an_exported_model_agrees_with_onnxruntime(name, shapes):
    path = FOLDER / f"{name}.onnx"
    module = relayc.compile(path, shapes=shapes)
    rng = np.random.default_rng(0)
    inputs = {spec.name: _values(spec, rng) for spec in module.inputs}
    found = compare(module.run(inputs), run_onnxruntime(path, inputs))
    assert found.agrees, found


def test_an_exported_model_computes_the_same_without_fusion():
    path, rng = FOLDER / "bert.onnx", np.random.default_rng(0)
    plain = relayc.compile(path, shapes=SHAPES["bert"][1], opt_level=0)
    inputs = {spec.name: _values(spec, rng) for spec in plain.inputs}
    found = compare(plain.run(inputs), run_onnxruntime(path, inputs))
    assert found.agrees, found
