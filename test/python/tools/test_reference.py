"""Inputs made up for a model, and the comparison of results."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relayc
from relayc.runtime import TensorSpec
from relayc.tools.inputs import load_inputs, parse_shape, random_inputs, save_outputs
from relayc.tools.reference import ATOL, BF16_SPREAD, Difference, compare, difference, run_onnxruntime, spread, tolerance


def test_random_inputs_are_the_same_for_a_seed():
    specs = [TensorSpec("x", (2, 3), "float32"), TensorSpec("ids", (4,), "int64"), TensorSpec("mask", (), "bool")]
    a, b, c = random_inputs(specs, 1), random_inputs(specs, 1), random_inputs(specs, 2)
    assert all(a[s.name].dtype == s.dtype and a[s.name].shape == s.shape for s in specs)
    assert all(np.array_equal(a[k], b[k]) for k in a) and not np.array_equal(a["x"], c["x"])
    assert set(a["ids"]) <= {0, 1}


def test_bfloat16_survives_a_file(tmp_path):
    x = np.arange(3).astype(ml_dtypes.bfloat16)
    save_outputs(tmp_path / "x.npz", {"x": x})
    found = load_inputs(tmp_path / "x.npz", [TensorSpec("x", (3,), "bfloat16")])["x"]
    assert found.dtype == x.dtype and np.array_equal(found, x)


def test_shapes_are_parsed():
    assert parse_shape("x=1,3,224,224") == ("x", [1, 3, 224, 224])
    assert parse_shape("a=b=2") == ("a=b", [2])
    assert parse_shape("x=") == ("x", [])


def test_agreement_reports_the_largest_difference():
    found = compare({"y": np.array([1.0, 2.0])}, {"y": np.array([1.0, 2.5])})
    assert found.difference == 0.5 and not found.agrees
    assert compare({"y": np.array([ATOL / 2])}, {"y": np.array([0.0])}).agrees


def test_the_absolute_tolerance_grows_with_the_size_of_the_output():
    reference = {"y": np.array([0.0, 100.0])}
    assert compare({"y": np.array([50 * ATOL, 100.0])}, reference).agrees
    assert not compare({"y": np.array([100 * ATOL, 100.0])}, reference).agrees


def test_nan_agrees_with_nan_only():
    nan = {"y": np.array([np.nan, np.inf])}
    assert compare(nan, nan).agrees
    assert not compare({"y": np.array([0.0, np.inf])}, nan).agrees


def test_strings_agree_where_they_are_equal():
    words = np.array(["a", "b"], object)
    assert compare({"y": words}, {"y": words.copy()}).agrees and not compare({"y": words}, {"y": words[::-1]}).agrees
    both = {"y": words, "z": np.array([1.0])}
    assert not compare({"y": words, "z": np.array([2.0])}, both).agrees and not compare({"y": words[::-1], "z": both["z"]}, both).agrees
    assert [difference(words, other).largest for other in (words, words[::-1])] == [0, 1]


def test_differences_are_shares_of_the_largest_number():
    a, b = np.array([1.0, 4.0, np.inf]), np.array([2.0, 8.0, np.inf])
    found = difference(a, b)
    assert (found.largest, found.relative, found.kinds) == (4, 0.5, True)
    assert not difference(np.array([np.nan]), np.array([np.inf])).kinds
    for pair in (([np.nan, 2.0], [9.0, 4.0]), ([9.0, 2.0], [np.inf, 4.0])):
        assert difference(*map(np.array, pair)) == Difference(2.0, 0.5, False)
    zero = np.zeros(2)
    assert difference(zero, zero).relative == 0 and difference(zero + 1, zero).relative == float("inf")
    assert difference(zero[:0], zero[:0]).largest == 0


def test_an_error_of_onnxruntime_is_one_of_values():
    with pytest.raises(ValueError, match="ONNX Runtime: "):
        run_onnxruntime(b"no model", {})


def test_another_shape_is_an_error():
    with pytest.raises(ValueError, match=r"output 'y': expected shape \(2,\) as in the reference, found \(1, 2\)"):
        compare({"y": np.zeros((1, 2))}, {"y": np.zeros(2)})


def test_bf16_is_allowed_what_the_readme_says():
    reference = {"y": np.random.default_rng(0).standard_normal(1000) + 100}
    for share, agrees in ((0.9, True), (1.1, False)):
        found = compare({"y": reference["y"] + share * BF16_SPREAD * reference["y"].std()}, reference, "bf16")
        assert found.agrees is agrees and found.spread == pytest.approx(share * BF16_SPREAD)
    for value, agrees in ((11.0, True), (11.0001, False)):  # of one value, in its magnitude
        assert compare({"y": np.array([value])}, {"y": np.array([10.0])}, "bf16").agrees is agrees
    readme = Path(relayc.__file__).parent / "README.md"
    assert f"`relayc run --check` and the benchmarks allow {BF16_SPREAD * 100:.0f} %" in readme.read_text()


def test_bf16_has_nan_and_infinities_where_the_reference_has_them():
    reference = {"y": np.array([np.nan, np.inf, 1.0])}
    assert compare(reference, reference, "bf16").agrees
    assert not compare({"y": np.array([np.nan, -np.inf, 1.0])}, reference, "bf16").agrees
    assert not compare({"y": np.array([np.nan, 5.0, 1.0])}, reference, "bf16").agrees


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("found", "reference", "expected"),
    [
        ([], [], 0.0),
        ([2.0, 4.0], [1.0, 3.0], 1.0),  # a deviation of 1
        ([2.0, 3.0], [1.0, 3.0], np.sqrt(0.5)),
        ([3.0], [2.0], 0.5),  # of one value, in its magnitude
        ([3.0, 3.0], [-2.0, -2.0], 2.5),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([1.0, 0.0], [0.0, 0.0], INF),
        ([NAN, 2.0, 4.0, 9.0], [5.0, 1.0, 3.0, INF], 1.0),
        ([NAN], [NAN], 0.0),
    ],
)
def test_spreads(found, reference, expected):
    assert spread(np.array(found), np.array(reference)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("given", "agrees"), [((0.0, 0.0), False), ((0.25, 0.0), True), ((0.0, 0.5), True), ((0.0, 0.49), False), ((0.24, 0.0), False)]
)
def test_tolerances_that_are_given(given, agrees):
    found = compare({"y": np.array([2.5, NAN])}, {"y": np.array([2.0, NAN])}, given=given)
    assert (found.difference, found.agrees) == (0.5, agrees)


def test_every_output_counts():
    reference = {"a": np.array([1.0, -1.0]), "b": np.array([1.0, -1.0])}
    for name in reference:
        assert not compare({**reference, name: np.array([1.5, -1.0])}, reference, given=(0.1, 0.1)).agrees
    for precision in ("f32", "bf16"):
        for name in reference:
            found = compare({**reference, name: np.array([1.5, -1.0])}, reference, precision)
            assert not found.agrees and found.difference == 0.5 and found.spread == pytest.approx(np.sqrt(0.125))
    with pytest.raises(ValueError, match=r"output 'b': expected shape \(2,\) as in the reference, found nothing"):
        compare({"a": reference["a"]}, reference)


def test_tolerances_in_words():
    assert [tolerance("f32"), tolerance("bf16"), tolerance("bf16", (0.5, 0))] == [
        "rtol 0.001, atol 0.0001",
        "10% of the spread of an output",
        "rtol 0.5, atol 0",
    ]
