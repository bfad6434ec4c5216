"""Models with symbolic dimensions: they get the groups that they get with static ones, and compute the same at every size."""

from pathlib import Path

import numpy as np
import pytest
from symbolize import at_sizes, constants_as_arguments, symbolize

import relayc
from relayc.dialects.relay import TensorType
from relayc.dialects.relay.types import numpy_dtype
from relayc.frontend.onnx import from_onnx
from relayc.pipelines import PassContext
from relayc.pipelines.graph import graph_pipeline
from relayc.pipelines.graph.fusion import graph_groups
from relayc.symbolic import Range

MODELS = Path(relayc.__file__).parent / "test" / "models"
BATCH, LENGTH = 11, 13
"""Sizes that are factors of no other size of the models."""
BOTH = {BATCH: "batch", LENGTH: "length"}
CASES = {
    "bert": ({name: [BATCH, LENGTH] for name in ("input_ids", "attention_mask", "token_type_ids")}, BOTH),
    "gpt2": ({name: [BATCH, LENGTH] for name in ("input_ids", "attention_mask")}, BOTH),
    "llama": ({"input_ids": [1, LENGTH]}, {LENGTH: "length"}),
    "mlp_mixer": ({"series": [BATCH, 24, 5]}, {BATCH: "batch"}),
    "resnet18": ({"image": [BATCH, 3, 64, 64]}, {BATCH: "batch"}),
}
"""Shapes of inputs, and the symbols that stand for sizes in them."""
POSITIONS = {"length": Range(1, 32, LENGTH)}


def static(name):
    shapes, primes = CASES[name]
    return constants_as_arguments(from_onnx(str(MODELS / f"{name}.onnx"), shapes), primes)


def symbolic(name):
    primes = CASES[name][1]
    return symbolize(static(name), primes, {n: r for n, r in POSITIONS.items() if n in primes.values()})


def groups(mod):
    """The groups of main after all graph passes, each as the names of its operators."""
    mod = graph_pipeline()(mod)
    mod.verify()
    with mod.ranges:
        return [[member.relay_name for member in group.members] for group in graph_groups(mod.main.regions[0].blocks[0])]


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_a_symbolic_model_has_the_groups_of_the_static_one(name, precision):
    with PassContext(config={"relay.ToMixedPrecision.precision": precision}):
        assert groups(symbolic(name)) == groups(static(name))


def arrays(mod, seed=0):
    """Values for the arguments of main: any index into the tables that integers are read as indices of, else 0 and -1, which masks and
    indices into an axis of one element may be."""
    rng = np.random.default_rng(seed)
    found = []
    for argument in mod.main.regions[0].blocks[0].arguments:
        type_ = TensorType.of(argument)
        shape, dtype = type_.static_shape, numpy_dtype(type_.dtype)
        takes = [op for use in argument.uses if (op := use.owner.opview).operation.name == "relay.take" and use.operand_number == 1]
        rows = min((TensorType.of(op.operation.operands[0]).static_shape[op.axis] for op in takes), default=1)
        found.append((rng.standard_normal(shape) if type_.is_float else rng.integers(-rows, rows, shape)).astype(dtype))
    return found


def results(mod, values):
    found = relayc.compile(mod)["main"](*values)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("sizes", [{"batch": 1, "length": 1}, {"batch": 3, "length": 7}], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_passes_on_a_symbolic_model_change_no_result_at_any_size(name, sizes):
    sizes = {name_: size for name_, size in sizes.items() if name_ in CASES[name][1].values()}
    plain = at_sizes(symbolic(name), sizes)
    passed = at_sizes(graph_pipeline()(symbolic(name)), sizes)
    values = arrays(plain)
    for found, expected in zip(results(passed, values), results(plain, values), strict=True):
        # Sums of float32 in another order, through a few layers: relative to the largest result, a hundred times its rounding.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))


DYNAMIC = {
    "bert": [{"batch": 1, "seq": 1}, {"batch": 3, "seq": 7}],
    "decoder": [{"batch": 1, "seq": 1, "past": 6}, {"batch": 2, "seq": 5, "past": 0}, {"batch": 2, "seq": 3, "past": 4}],
    "resnet18": [{"batch": 2}],
    "segmenter": [{"height": 32, "width": 48}],
}
"""Sizes for the symbols of the models with symbolic dimensions."""


@pytest.mark.parametrize("name", DYNAMIC)
def test_passes_on_a_dynamic_model_change_no_result_at_any_size(name):
    model = str(MODELS / "dynamic" / f"{name}.onnx")
    for sizes in DYNAMIC[name]:
        plain = at_sizes(from_onnx(model), sizes)
        passed = at_sizes(graph_pipeline()(from_onnx(model)), sizes)
        values = arrays(plain)
        for found, expected in zip(results(passed, values), results(plain, values), strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))
