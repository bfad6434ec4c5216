"""ONNX RNN, GRU and LSTM, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import relayc

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
STATES = {"RNN": ("initial_h",), "GRU": ("initial_h",), "LSTM": ("initial_h", "initial_c")}
INPUTS = {name: ("X", "W", "R", "B", "sequence_lens", *states, *(("P",) if name == "LSTM" else ())) for name, states in STATES.items()}
OUTPUTS = {"RNN": ("Y", "Y_h"), "GRU": ("Y", "Y_h"), "LSTM": ("Y", "Y_h", "Y_c")}
STEPS, BATCH, WIDTH, HIDDEN = 4, 3, 5, 6


def arrays(operator, directions=1, batch=BATCH, steps=STEPS, seed=0, dtype="float32"):
    """All inputs but the lengths, at random; weights are of a size with which products are neither small nor large."""
    rng = np.random.default_rng(seed)
    rows = GATES[operator] * HIDDEN
    shapes = {
        "X": (steps, batch, WIDTH),
        "W": (directions, rows, WIDTH),
        "R": (directions, rows, HIDDEN),
        "B": (directions, 2 * rows),
        **dict.fromkeys(STATES[operator], (directions, batch, HIDDEN)),
        "P": (directions, 3 * HIDDEN),
    }
    return {name: rng.uniform(-1, 1, shape).astype(dtype) for name, shape in shapes.items() if name in INPUTS[operator]}


def network(operator, given, constants=("W", "R", "B", "P"), shapes=None, wanted=None, opset=14, **attrs):
    """A model of one node with these inputs, some of which are constants; `shapes` are what it says of those of the others."""
    names = [name if name in given else "" for name in INPUTS[operator]]
    outputs = [name if wanted is None or name in wanted else "" for name in OUTPUTS[operator]]
    node = helper.make_node(operator, names, outputs, hidden_size=HIDDEN, **attrs)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), (shapes or {}).get(name, array.shape))
        for name, array in given.items()
        if name not in constants
    ]
    type_ = helper.np_dtype_to_tensor_dtype(given["X"].dtype)
    results = [helper.make_tensor_value_info(name, type_, None) for name in outputs if name]
    weights = [numpy_helper.from_array(array, name) for name, array in given.items() if name in constants]
    graph = helper.make_graph([node], "g", inputs, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def agree(proto, *feeds):
    """Both give the same. Sums of tens of products of numbers up to 1, through functions of slopes up to 1: errors are a few units in the
    last place of 1."""
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [value.name for value in proto.graph.input]
    module = relayc.compile(proto, cache=False)
    for feed in feeds:
        feed = {name: feed[name] for name in names}
        found = module.run(feed)
        for name, wanted in zip(found, session.run(None, feed), strict=True):
            assert found[name].shape == wanted.shape
            np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=4e-6, err_msg=name)


def directions_of(attrs):
    return 1 + (attrs.get("direction") == "bidirectional")


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", GATES)
def test_lengths_and_initial_states(operator, direction):
    given = arrays(operator, directions_of({"direction": direction}))
    given["sequence_lens"] = np.array([2, 0, 4], np.int32)
    proto = network(operator, given, direction=direction)
    agree(proto, given, {**given, "sequence_lens": np.array([4, 1, 0], np.int32)})


@pytest.mark.parametrize(("operator", "attribute"), [("GRU", "linear_before_reset"), ("LSTM", "input_forget")])
def test_other_forms(operator, attribute):
    given = arrays(operator, 2)
    agree(network(operator, given, direction="bidirectional", **{attribute: 1}), given)
