"""Operators whose sizes are numbers of the program: their results and errors are those of ONNX Runtime at each size."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx_models import model_of

import relayc
from relayc.frontend.onnx import from_onnx

INT = TensorProto.INT64
node = helper.make_node


def ramp(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def check(model, calls):
    """Each call gives what it gives in ONNX Runtime. One with a message is an error in both: the message is found in that of the program.

    Args:
      calls: inputs by name, and a message or None.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    main = relayc.compile(from_onnx(model))["main"]
    for inputs, message in calls:
        if message is not None:
            with pytest.raises(Exception, match="Non-zero status code"):
                session.run(None, inputs)
            with pytest.raises(ValueError, match=message):
                main(*inputs.values())
            continue
        found = main(*inputs.values())
        for one, expected in zip(found if isinstance(found, tuple) else (found,), session.run(None, inputs), strict=True):
            assert one.shape == expected.shape
            np.testing.assert_array_equal(one, expected)


def test_an_axis_and_a_size_that_data_say_expand_to_the_larger_one_or_to_none():
    model = model_of([node("Expand", ["x", "s"], ["y"])], {"x": ["n", 3], "s": (INT, [3])})
    sizes = [(1, 2, 3), (2, 2, 1), (2, 1, 3), (0, 1, 1), (0, 0, 3), (1, 0, 3), (1, 1, 1)]
    wrong = [(2, 3, 3), (0, 3, 1), (3, 0, 3), (1, 1, 2), (1, 1, 0)]
    given = [({"x": ramp(n, 3), "s": np.array([2, *s])}, None) for n, *s in sizes]
    check(model, [*given, *(({"x": ramp(n, 3), "s": np.array([2, *s])}, "expected sizes that broadcast") for n, *s in wrong)])


def test_an_axis_of_one_element_expands_to_a_size_that_it_never_is():
    nodes = [node("Shape", ["x"], ["k"]), node("Add", ["k", "one"], ["s"]), node("Expand", ["x", "s"], ["y"])]
    model = model_of(nodes, {"x": ["n"]}, initializers={"one": np.array([1])})
    main = relayc.compile(model, dims={"n": (1, 64)})["main"]
    np.testing.assert_array_equal(main(ramp(1)), [0, 0])
    with pytest.raises(ValueError, match="n is 3"):
        main(ramp(3))


def test_an_axis_of_several_elements_expands_to_a_size_that_is_1():
    nodes = [node("Shape", ["k"], ["s"]), node("Expand", ["x", "s"], ["y"])]
    main = relayc.compile(model_of(nodes, {"x": [3], "k": ["n"]}), dims={"n": (1, 2)})["main"]
    np.testing.assert_array_equal(main(ramp(3), ramp(1)), ramp(3))
    with pytest.raises(ValueError, match="n is 2"):
        main(ramp(3), ramp(2))


def test_an_axis_expands_to_a_number():
    model = model_of([node("Expand", ["x", "s"], ["y"])], {"x": ["n", 3]}, initializers={"s": np.array([4, 3])})
    check(model, [({"x": ramp(n, 3)}, None if n in (1, 4) else f"n is {n}") for n in (1, 4, 2, 0)])


def test_the_largest_none():
    x, k = {"x": ["n", "m"]}, {"k": (INT, [1])}
    made = node("TopK", ["x", "k"], ["y", "i"], axis=1)
    check(model_of([made], x, ["y", "i"], {"k": np.array([0])}), [({"x": ramp(2, 5)}, None)])
    given = [((2, 5), 0, None), ((2, 5), 2, None), ((2, 0), 0, None), ((0, 4), 3, None)]
    wrong = [((2, 5), 6, "k: expected at most"), ((2, 5), -1, "k: expected 0 or more, found -1")]
    check(model_of([made], x | k, ["y", "i"]), [({"x": ramp(*s), "k": np.array([count])}, text) for s, count, text in (*given, *wrong)])


@pytest.mark.parametrize("more", [0, 1])
def test_no_more_of_the_largest_than_there_are(more):
    nodes = [
        node("Pad", ["w", "more"], ["x"]),
        node("Shape", ["x"], ["extent"], start=1, end=2),
        node("Min", ["extent", "five"], ["k"]),
        node("TopK", ["x", "k"], ["y", "i"], axis=1),
    ]
    model = model_of(nodes, {"w": ["n", "m"]}, ["y", "i"], {"five": np.array([5]), "more": np.array([0, 0, 0, more])})
    assert "strided_slice" not in str(from_onnx(model))
    check(model, [({"w": ramp(*s)}, None) for s in ((2, 7), (2, 3), (2, 0), (0, 3))])


def counted(element):
    return model_of([node("Range", ["a", "b", "c"], ["y"])], dict.fromkeys("abc", (element, [])))


@pytest.mark.parametrize(
    ("element", "dtype", "good", "wrong"),
    [
        (
            INT,
            np.int64,
            [(2, 9, 3), (9, 2, -2), (3, 3, 1), (9, 2, 1), (2**62, 2**62 + 3, 2), (-(2**62), -(2**62) + 2, 1)],
            [
                (-(2**62), 2**62, 1, f"limit: expected at most 2147483647, found {2**62}"),
                (2, 9, 0, "magnitude_of_delta: expected 1 or more, found 0"),
            ],
        ),
        (
            TensorProto.FLOAT,
            np.float32,
            [(0, 2, 0.5), (2, 0, -0.75)],
            [
                (0, 2, 0, "magnitude_of_delta: expected 1 or more, found 0"),
                (0, np.inf, 1, "finite_ones_of_start_limit_delta: expected 3 or more, found 2"),
                (np.nan, 2, 1, "finite_ones_of_start_limit_delta: expected 3 or more, found 2"),
            ],
        ),
    ],
    ids=["int64", "float32"],
)
def test_a_range_that_has_no_length_says_why(element, dtype, good, wrong):
    """ONNX Runtime is asked only for those that have one."""
    model = counted(element)
    check(model, [(dict(zip("abc", map(np.asarray, values, [dtype] * 3), strict=True)), None) for values in good])
    main = relayc.compile(from_onnx(model))["main"]
    for *values, message in wrong:
        with pytest.raises(ValueError, match=message):
            main(*map(np.asarray, values, [dtype] * 3))
