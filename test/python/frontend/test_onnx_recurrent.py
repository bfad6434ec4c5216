"""ONNX RNN, GRU and LSTM, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import relayc
from relayc import OnnxError

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
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
    node = helper.make_node(operator, names, outputs, **{"hidden_size": HIDDEN, **attrs})
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


@pytest.mark.parametrize(("operator", "direction"), [(operator, "bidirectional") for operator in GATES] + [("RNN", "reverse")])
def test_lengths_and_initial_states(operator, direction):
    given = arrays(operator, 1 + (direction == "bidirectional"))
    given["sequence_lens"] = np.array([2, 0, 4], np.int32)
    proto = network(operator, given, direction=direction)
    agree(proto, given, {**given, "sequence_lens": np.array([4, 1, 0], np.int32)})


@pytest.mark.parametrize(("operator", "attribute"), [("GRU", "linear_before_reset"), ("LSTM", "input_forget")])
def test_other_forms(operator, attribute):
    given = arrays(operator, 2)
    agree(network(operator, given, direction="bidirectional", **{attribute: 1}), given)


# Functions as ONNX Runtime takes them, which refuses most in an RNN: with numbers of their own for some of those that take any.
ACTIVATIONS = [
    ("RNN", ["Relu"], ["Tanh"], None, None),
    ("GRU", ["HardSigmoid", "ScaledTanh"], ["Sigmoid", "Tanh"], [0.3, 1.5], [0.4, 0.5]),
    ("GRU", ["Sigmoid", "Elu"], ["Affine", "LeakyRelu"], [0.7, 0.3, 0.1], [0.25]),
    ("LSTM", ["HardSigmoid", "Softsign", "Relu"], ["sigmoid", "softplus", "tanh"], None, None),
    ("LSTM", ["Sigmoid", "ThresholdedRelu", "LeakyRelu"], ["Sigmoid", "ThresholdedRelu", "Tanh"], [0.5, 0.02, 0.25], None),
]


@pytest.mark.parametrize(("operator", "first", "second", "alphas", "betas"), ACTIVATIONS)
def test_activations_of_each_direction(operator, first, second, alphas, betas):
    attrs = {key: value for key, value in (("activation_alpha", alphas), ("activation_beta", betas)) if value is not None}
    proto = network(operator, given := arrays(operator, 2), direction="bidirectional", activations=[*first, *second], **attrs)
    agree(proto, given)


@pytest.mark.parametrize("operator", GATES)
def test_what_goes_into_activations_is_clipped(operator):
    agree(network(operator, given := arrays(operator), clip=0.2), given)


def test_the_state_of_a_cell_is_not_clipped():
    """It grows over the steps, and the outputs with it."""
    given = arrays("LSTM") | {"B": np.ones((1, 8 * HIDDEN), np.float32)}
    agree(network("LSTM", given, clip=0.9, activations=["Sigmoid", "Relu", "Relu"]), given)


@pytest.mark.parametrize("operator", GATES)
def test_steps_and_batch_of_a_call(operator):
    given = [arrays(operator, 2, batch, steps) for steps, batch in ((4, 3), (1, 1), (7, 2))]
    for feed in given:
        feed["sequence_lens"] = np.arange(feed["X"].shape[1], dtype=np.int32) + 1
    shapes = {"X": ["steps", "batch", WIDTH], "sequence_lens": ["batch"], **{name: [2, "batch", HIDDEN] for name in STATES[operator]}}
    weights = {name: given[0][name] for name in ("W", "R", "B", "P") if name in given[0]}
    agree(network(operator, given[0], shapes=shapes, direction="bidirectional"), *(feed | weights for feed in given))


def test_no_steps_and_an_empty_batch():
    given = arrays("LSTM")
    proto = network("LSTM", given, shapes={"X": ["steps", "batch", WIDTH], **{name: [1, "batch", HIDDEN] for name in STATES["LSTM"]}})
    module = relayc.compile(proto, cache=False)
    state = {name: given[name] for name in STATES["LSTM"]}
    found = list(module.run({"X": given["X"][:0], **state}).values())
    assert found[0].shape == (0, 1, BATCH, HIDDEN)
    for name, last in zip(STATES["LSTM"], found[1:], strict=True):
        np.testing.assert_array_equal(last, given[name])
    empty = module.run({"X": given["X"][:, :0], **{name: value[:, :0] for name, value in state.items()}})
    assert [t.shape for t in empty.values()] == [(STEPS, 1, 0, HIDDEN), *[(1, 0, HIDDEN)] * len(state)]


def test_the_batch_first():
    """Layout 1, which ONNX Runtime has not: the same with the axes exchanged."""
    given = arrays("LSTM", 2)
    given["sequence_lens"] = np.array([2, 0, 4], np.int32)
    exchanged = {n: a.swapaxes(0, 1).copy() if n in ("X", *STATES["LSTM"]) else a for n, a in given.items()}
    first = relayc.compile(network("LSTM", exchanged, direction="bidirectional", layout=1), cache=False)
    second = relayc.compile(network("LSTM", given, direction="bidirectional"), cache=False)
    found = first.run({n: exchanged[n] for n in ("X", "sequence_lens", *STATES["LSTM"])})
    expected = second.run({n: given[n] for n in ("X", "sequence_lens", *STATES["LSTM"])})
    for name, array in found.items():
        wanted = expected[name].transpose(2, 0, 1, 3) if name == "Y" else expected[name].swapaxes(0, 1)
        np.testing.assert_array_equal(array, wanted)


@pytest.mark.parametrize(("operator", "dtype"), [("RNN", "float64"), ("GRU", "float16"), ("LSTM", "float64"), ("LSTM", "float16")])
def test_dtypes(operator, dtype):
    """Against the reference in float64; float16 is computed in float32 and rounded once."""
    given = arrays(operator, dtype=dtype)
    found = relayc.compile(network(operator, given), cache=False).run({n: given[n] for n in ("X", *STATES[operator])})
    wide = {name: array.astype("float64") for name, array in given.items()}
    inputs = {n: wide[n] for n in ("X", *STATES[operator])}
    for name, wanted in zip(found, ReferenceEvaluator(network(operator, wide)).run(None, inputs), strict=True):
        assert found[name].dtype == dtype
        np.testing.assert_allclose(
            found[name], wanted, rtol=1e-3 if dtype == "float16" else 1e-13, atol=1e-3 if dtype == "float16" else 1e-14
        )


@pytest.mark.parametrize(("operator", "wanted"), [("RNN", ["Y_h"]), ("GRU", ["Y"]), ("LSTM", ["Y_c"]), ("LSTM", ["Y", "Y_c"])])
def test_outputs_and_inputs_that_are_left_out(operator, wanted):
    given = {name: array for name, array in arrays(operator).items() if name in ("X", "W", "R")}
    agree(network(operator, given, wanted=wanted), given)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_one_step_is_no_loop(direction):
    given = arrays("LSTM", steps=1)
    given["sequence_lens"] = np.array([1, 0, 1], np.int32)
    proto = network("LSTM", given, direction=direction)
    agree(proto, given)
    assert "relay.while" not in str(relayc.compile(proto, stop_after="relay"))


def test_weights_that_the_caller_gives():
    given = arrays("GRU")
    agree(network("GRU", given, constants=(), opset=7), given, arrays("GRU", seed=1))


def test_the_first_operator_set():
    """It says whether the outputs of all steps are wanted; the lengths do not depend on it."""
    given = arrays("RNN")
    feed = {n: given[n] for n in ("X", *STATES["RNN"])}
    found = relayc.compile(network("RNN", given, opset=1, output_sequence=1), cache=False).run(feed)
    expected = relayc.compile(network("RNN", given), cache=False).run(feed)
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name])


@pytest.mark.parametrize("sizes", [(5, 2, WIDTH), ("steps", "batch", WIDTH)])
def test_weights_larger_than_the_cache_are_read_to_and_fro(sizes):
    hidden = 96
    rng = np.random.default_rng(0)
    given = {"X": rng.standard_normal((5, 2, WIDTH)), "W": rng.standard_normal((1, 4 * hidden, WIDTH))}
    given["R"] = rng.standard_normal((1, 4 * hidden, hidden)) / hidden**0.5
    given = {name: array.astype(np.float32) for name, array in given.items()}
    proto = network("LSTM", given, shapes={"X": sizes}, hidden_size=hidden)
    target = relayc.Target("cpu", num_threads=1, l2_bytes=64 << 10)
    assert ".turn(" in str(relayc.compile(proto, target=target, cache=False, stop_after="tir"))
    found = relayc.compile(proto, target=target, cache=False).run({"X": given["X"]})
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for name, wanted in zip(found, session.run(None, {"X": given["X"]}), strict=True):
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=4e-6)


@pytest.mark.parametrize(
    ("change", "attrs", "message"),
    [
        ({"W": (1, 4 * HIDDEN, WIDTH + 1)}, {}, "input W: expected a tensor of shape"),
        ({"R": (2, 4 * HIDDEN, HIDDEN)}, {}, "input R: expected a tensor of shape"),
        ({"B": (1, 4 * HIDDEN)}, {}, "input B: expected a tensor of shape"),
        ({"P": (1, 4 * HIDDEN)}, {}, "input P: expected a tensor of shape"),
        ({"initial_c": (1, BATCH + 1, HIDDEN)}, {}, "input initial_c: expected a tensor of shape"),
        ({"X": (STEPS, WIDTH)}, {}, "input X: expected floats of 3 dimensions"),
        ({}, {"direction": "sideways"}, "attribute direction: expected forward, reverse or bidirectional, found 'sideways'"),
        ({}, {"activations": ["Tanh"]}, "attribute activations: expected 3 names, found 1"),
        ({}, {"activations": ["Tanh", "Tanh", "Cosine"]}, "attribute activations: expected names out of .*, found 'Cosine'"),
        ({}, {"activations": ["Tanh", "Tanh", "ScaledTanh"]}, "attribute activation_alpha: expected a number for ScaledTanh, found none"),
        ({}, {"clip": -1.0}, "attribute clip: expected a number above 0"),
        ({}, {"clip": 0.0}, "attribute clip: expected a number above 0"),
    ],
)
def test_wrong_nodes_are_refused(change, attrs, message):
    given = arrays("LSTM") | {name: np.zeros(shape, np.float32) for name, shape in change.items()}
    with pytest.raises(OnnxError, match=message):
        relayc.compile(network("LSTM", given, **attrs), stop_after="relay")
